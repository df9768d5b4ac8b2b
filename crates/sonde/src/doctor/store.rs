//! Whether results can be kept: the folder, its file system, its room.
//!
//! Model:   the store's folder, or the nearest one above it that is there, decides. Writing is not tried but asked for, so
//!          nothing is made. The file system is that of the longest mount point above the folder; later mounts cover earlier.
//! Source:  proc_pid_mountinfo(5), access(2), statvfs(3).
//! Units:   MiB.
//! Checked: `mount_points_are_found`, `file_systems_are_judged`, `a_folder_that_is_not_there_is_not_made`.

use super::machine::{Machine, within};
use super::{Check, Group, topic};
use rustix::fs::{Access, access, statvfs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the check that decides.
pub const NAME: &str = "folder of the store";
/// A file server that does not answer by then is taken for dead.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A thorough run takes some tens of MiB.
const ROOM_MIB: u64 = 200;
/// Other machines write there too, and locks go through a server.
const SHARED: [&str; 12] = [
    "nfs",
    "nfs4",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "cifs",
    "smb3",
    "9p",
    "afs",
    "panfs",
    "fuse.sshfs",
];
const VOLATILE: [&str; 2] = ["tmpfs", "ramfs"];

/// What was seen of a folder.
#[derive(Debug)]
struct FolderState {
    /// The folder, or the nearest above that is there.
    folder: PathBuf,
    /// Why nothing can be written there.
    refusal: Option<String>,
    /// MiB that this user may still write.
    free_mib: Option<u64>,
}

/// All checks of the store in the folder `out`.
pub fn checks(machine: &Machine, out: &Path) -> Vec<Check> {
    let Ok(full) = std::path::absolute(out) else {
        let topic = topic(Group::Store, NAME, "storing runs");
        return vec![topic.missing("the current folder is gone", "cd to one that is there")];
    };
    let mounts = machine.text("proc/self/mountinfo").unwrap_or_default();
    let asked = full.clone();
    match within(TIMEOUT, move || look(&asked)) {
        Some(seen) => {
            let kind = mounted(&mounts, &seen.folder);
            vec![
                writable(out, &seen),
                file_system(kind.as_deref()),
                room(seen.free_mib),
            ]
        }
        None => vec![topic(Group::Store, NAME, "storing runs").missing(
            format!(
                "{} does not answer: is it on a file server that is gone?",
                full.display()
            ),
            "--out DIR, on a local disk",
        )],
    }
}

fn look(full: &Path) -> FolderState {
    let there = full.ancestors().find(|folder| folder.exists());
    let folder = there.unwrap_or(Path::new("/")).to_owned();
    let store = full.join("sonde.db");
    let refusal = if !folder.is_dir() {
        Some("it is not a folder".into())
    } else if let Err(errno) = access(&folder, Access::WRITE_OK | Access::EXEC_OK) {
        Some(errno.to_string())
    } else if store.exists() {
        access(&store, Access::WRITE_OK)
            .err()
            .map(|errno| format!("sonde.db: {errno}"))
    } else {
        None
    };
    let free_mib = statvfs(&folder)
        .ok()
        .map(|stat| ((u128::from(stat.f_bavail) * u128::from(stat.f_frsize)) >> 20) as u64);
    FolderState {
        folder,
        refusal,
        free_mib,
    }
}

fn writable(out: &Path, seen: &FolderState) -> Check {
    let topic = topic(Group::Store, NAME, "storing runs");
    match &seen.refusal {
        None => topic.ok(format!("{} can be written", out.display())),
        Some(why) => topic.missing(
            format!(
                "{} cannot be written ({}: {why})",
                out.display(),
                seen.folder.display()
            ),
            "--out DIR, a folder that you may write",
        ),
    }
}

/// The type of the file system that holds `folder`.
fn mounted(mountinfo: &str, folder: &Path) -> Option<String> {
    let parse = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        let point = place.split(' ').nth(4)?.replace("\\040", " ");
        let kind = kind.split(' ').next()?.to_owned();
        folder.starts_with(&point).then_some((point.len(), kind))
    };
    // Of equals max_by_key gives the last.
    let best = mountinfo
        .lines()
        .filter_map(parse)
        .max_by_key(|(length, _)| *length);
    best.map(|(_, kind)| kind)
}

fn file_system(kind: Option<&str>) -> Check {
    let topic = topic(
        Group::Store,
        "file system",
        "a store that is fast, lockable and permanent",
    );
    match kind {
        None => topic.limited("/proc/self/mountinfo cannot be read", "mount /proc"),
        Some(kind) if SHARED.contains(&kind) => topic.limited(
            format!("{kind}, shared: one writer at a time, and each result waits for the server"),
            "--out DIR, on a local disk, where runs are many; where locks fail: ask for the lock service of the server",
        ),
        Some(kind) if VOLATILE.contains(&kind) => {
            topic.limited(format!("{kind}, in memory: gone at the next boot"), "--out DIR, on a disk")
        }
        Some(kind) => topic.ok(kind),
    }
}

fn room(free_mib: Option<u64>) -> Check {
    let topic = topic(
        Group::Store,
        "room",
        "runs with all their series: some tens of MiB each",
    );
    match free_mib {
        None => topic.limited(
            "the file system does not report its free space",
            "--out DIR, on a disk",
        ),
        Some(0) => topic.missing("none", "make room, or --out DIR on another disk"),
        Some(free) => topic.judge(
            free >= ROOM_MIB,
            format!("{free} MiB"),
            "make room, or --out DIR on another disk",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /home rw shared:5 - nfs4 server:/home rw,vers=4.2
31 22 0:41 / /home rw - lustre 10.0.0.1@tcp:/fs rw
32 22 0:42 / /my\\040disk rw master:1 - xfs /dev/sdb rw
33 22 0:43 / /homework rw - tmpfs tmpfs rw";

    #[test]
    fn mount_points_are_found() {
        for (folder, kind) in [
            ("/srv/runs", "ext4"),
            ("/home/ann", "lustre"),
            ("/homework", "tmpfs"),
            ("/my disk/a", "xfs"),
        ] {
            assert_eq!(
                mounted(MOUNTS, Path::new(folder)).as_deref(),
                Some(kind),
                "{folder}"
            );
        }
        assert_eq!(mounted("", Path::new("/")), None);
    }

    #[test]
    fn file_systems_are_judged() {
        assert_eq!(file_system(Some("ext4")).status, Status::Ok);
        for kind in ["nfs4", "lustre", "tmpfs"] {
            let check = file_system(Some(kind));
            assert!(check.status == Status::Limited && check.remedy.unwrap().contains("--out DIR"));
        }
        let status = |free| room(free).status;
        assert_eq!(
            [Some(0), Some(5), Some(200)].map(status),
            [Status::Missing, Status::Limited, Status::Ok]
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_made() {
        let base = std::env::temp_dir().join(format!("sonde-doctor-look-{}", std::process::id()));
        std::fs::create_dir(&base).unwrap();
        let seen = look(&base.join("a/b"));
        assert_eq!((&seen.folder, &seen.refusal), (&base, &None));
        assert!(seen.free_mib.is_some() && !base.join("a").exists());
        std::fs::write(base.join("file"), "").unwrap();
        let file = look(&base.join("file"));
        let check = writable(Path::new("file"), &file);
        assert!(
            check.status == Status::Missing && check.value.contains("not a folder"),
            "{check:?}"
        );
        std::fs::remove_dir_all(&base).unwrap();
        // Not even root may write there.
        assert!(look(Path::new("/proc/self/runs")).refusal.is_some());
    }
}
