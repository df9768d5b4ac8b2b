//! What memory this process has had at most, and what its control groups let it have still.
//!
//! Model:   a group that has a limit lets have that limit, less what is used in it and could not be dropped at once (pages of files
//!          that nobody used of late). Of a group and all around it the least counts. The most that a process had in memory is the
//!          kernel's count, which can be begun anew.
//! Source:  Documentation/admin-guide/cgroup-v2.rst (memory.max), cgroup-v1/memory.rst (memory.limit_in_bytes); proc(5) for
//!          VmHWM and clear_refs.
//! Units:   bytes.
//! Checked: `groups_of_both_versions_are_read`, `the_most_is_seen`.

use std::path::{Path, PathBuf};

use crate::error::read_text;

const GROUPS: &str = "/sys/fs/cgroup";

/// What the control groups of this process let it have still; none where none has a limit.
pub fn left_in_groups() -> Option<u64> {
    let groups = read_text("/proc/self/cgroup").ok()?;
    left_in(&groups, Path::new(GROUPS))
}

/// The files of a version of control groups.
struct Files {
    limit: &'static str,
    used: &'static str,
    /// The line of memory.stat with what could be dropped.
    droppable: &'static str,
}

const SECOND: Files = Files {
    limit: "memory.max",
    used: "memory.current",
    droppable: "inactive_file",
};
const FIRST: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    droppable: "total_inactive_file",
};

fn left_in(groups: &str, root: &Path) -> Option<u64> {
    let left = groups.lines().filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let mut controllers = controllers.split(',');
        match number == "0" {
            true => left_up_from(&SECOND, group, root),
            false if controllers.any(|one| one == "memory") => {
                left_up_from(&FIRST, group, &root.join("memory"))
            }
            false => None,
        }
    });
    left.min()
}

/// Of a group and those around it. A group of a namespace of its own may have no folder here; that of the root it has.
fn left_up_from(files: &Files, group: &str, root: &Path) -> Option<u64> {
    let mut folder: PathBuf = root.join(group.trim_start_matches('/'));
    let mut least: Option<u64> = None;
    while folder.starts_with(root) {
        least = [least, left_of(files, &folder)].into_iter().flatten().min();
        folder.pop();
    }
    least
}

fn left_of(files: &Files, folder: &Path) -> Option<u64> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let limit = number(files.limit)?;
    let droppable = text("memory.stat").and_then(|stat| {
        let mut values = stat.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = values.find(|(name, _)| *name == files.droppable)?;
        value.trim().parse().ok()
    });
    let used = number(files.used).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(droppable.unwrap_or(0))))
}

/// Lets the most that this process had in memory begin anew; what it has now. None where the kernel has no such count.
pub fn begin_most() -> Option<u64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    most()
}

/// The most that this process had in memory, since it began or since [`begin_most`].
pub fn most() -> Option<u64> {
    let text = read_text("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_read() {
        let root = std::env::temp_dir().join(format!("sonde-groups-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let file = root.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        put("job/memory.max", "1000\n");
        put("job/memory.current", "700\n");
        put("job/memory.stat", "anon 400\ninactive_file 300\n");
        put("job/step/memory.max", "max\n");
        assert_eq!(left_in("0::/job/step\n", &root), Some(600));
        put("memory/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/a/memory.limit_in_bytes", "500\n");
        put("memory/a/memory.usage_in_bytes", "450\n");
        put(
            "memory/a/memory.stat",
            "inactive_file 1\ntotal_inactive_file 50\n",
        );
        let both = "9:name=systemd:/\n4:cpu,memory:/a\n0::/job/step\n";
        assert_eq!(left_in(both, &root), Some(100));
        // Where the group's folder is not to be seen, that of the root is.
        assert_eq!(
            left_in("4:memory:/elsewhere\n", &root),
            Some(i64::MAX as u64 & !0xfff)
        );
        assert_eq!(left_in("0::/other\n", &root), None);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_most_is_seen() {
        const BYTES: usize = 64 << 20;
        let Some(before) = begin_most() else {
            println!("skipped: no /proc/self/clear_refs");
            return;
        };
        drop(std::hint::black_box(vec![1_u8; BYTES]));
        let seen = most().unwrap() - before;
        assert!(seen > BYTES as u64 / 10 * 9, "{seen}");
    }
}
