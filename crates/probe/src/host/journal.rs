//! What an agent changes of its host, on file, for the case that the agent is killed.
//!
//! Model:   a file of lines: who wrote it, then a line for each change before it is made, and one for each that was put back.
//!          Beside the agent runs a guard: a fresh start of the program in a session of its own that waits for the end of a
//!          pipe which only the agent holds, and then puts back what the file still has. Both hold the file's lock. Where
//!          both were killed nobody does: the next agent on that host and network finds the file, puts back, and says so; it
//!          ends a guard that was stopped, which would put back when it goes on.
//!          A file of another boot is void, since settings end with it; one of another network namespace is left alone. The
//!          file goes when nothing is changed any more: what could not be put back stays in it, for the next agent and for the user.
//! Source:  flock(2): the lock lasts as long as any copy of the descriptor, however its holders end.
//! Checked: `a_guard_undoes_what_a_file_says`, `files_of_others_are_left`, `a_stopped_guard_keeps_nothing`,
//!          `what_cannot_be_put_back_stays_on_file`; `lab_tune` of the command kills agents and guards.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::fs::{DirBuilder, File};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sonde_sys::exec::{Step, before_exec};
use sonde_sys::process::{self, SignalFd};
use sonde_sys::{cpu, tell};

use super::changes::{Found, Undo};
use crate::{Error, Result};

/// The first argument of a guard.
pub const GUARD: &str = "--sonde-guard";
const FOLDER: &str = "sonde-changes";
/// A guard that is at it is waited for in so many pieces of this.
const PIECE: Duration = Duration::from_millis(20);
const PIECES: u32 = 250;
/// Signals that end other programs, and not a guard: hang-up, interrupt, termination.
const DEAF_TO: [i32; 3] = [1, 2, 15];
const SIGKILL: i32 = 9;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// Whose settings these are, and the process that changes them.
    Of { network: String, agent: u32 },
    /// This is about to be changed.
    Set(Undo),
    /// The one of this place, among those that were noted, was put back.
    Struck(usize),
}

/// The file of an agent that has changed something, and its guard.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    guard: Child,
    noted: usize,
    /// Something could not be put back.
    is_left: bool,
}

impl Journal {
    /// Begins a file and starts its guard.
    pub(super) fn open() -> Result<Self> {
        let name = format!(
            "{}-{}",
            std::process::id(),
            sonde_sys::clock::monotonic_ns()
        );
        let (folder, begun, mut file) = begin(&name)?;
        process::lock(&file, true)?;
        let of = Line::Of {
            network: sonde_sys::host::network_identity()?,
            agent: std::process::id(),
        };
        write(&mut file, &of)?;
        let path = folder.join(name);
        std::fs::rename(&begun, &path).map_err(unwritten)?;
        let guard = start_guard(&file)?;
        Ok(Self {
            path,
            file,
            guard,
            noted: 0,
            is_left: false,
        })
    }

    /// Says that this is about to be changed; its place.
    pub(super) fn note(&mut self, undo: &Undo) -> Result<usize> {
        if !matches!(self.guard.try_wait(), Ok(None)) {
            self.guard = start_guard(&self.file)?;
        }
        write(&mut self.file, &Line::Set(undo.clone()))?;
        let place = self.noted;
        self.noted = place.saturating_add(1);
        Ok(place)
    }

    /// Says that the change of this place was put back.
    pub(super) fn strike(&mut self, place: usize) -> Result<()> {
        write(&mut self.file, &Line::Struck(place))
    }

    /// Says that a change could not be put back: the guard tries once more, and what it cannot put back either stays on file.
    pub(super) fn leave(&mut self) {
        self.is_left = true;
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.is_left {
            // A guard that finds it cut does nothing. What fails here leaves lines that say so.
            drop(self.file.set_len(0));
            remove(&self.path);
        }
        drop(self.guard.stdin.take());
        drop(self.guard.wait());
    }
}

/// The folder, and a file in it under a name of its own: it gets its name once it is locked, and nobody takes it for a leftover.
fn begin(name: &str) -> Result<(PathBuf, PathBuf, File)> {
    for _ in 0..PIECES {
        let folder = folders().into_iter().find(|folder| is_ours(folder, true));
        let folder = folder.ok_or_else(|| Error::Setting {
            what: "there is no folder for the restore of changed settings".into(),
            remedy: "let /run, XDG_RUNTIME_DIR or /tmp be written to".into(),
        })?;
        let begun = folder.join(format!(".{name}"));
        let mut new = File::options();
        new.read(true).append(true).create_new(true).mode(0o600);
        match new.open(&begun) {
            Ok(file) => return Ok((folder, begun, file)),
            // Another agent had the last file there, and took the folder away.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritten(error)),
        }
    }
    Err(unwritten(std::io::ErrorKind::NotFound.into()))
}

/// Removes a file, and the folder if it was the last there.
fn remove(path: &Path) {
    drop(std::fs::remove_file(path));
    if let Some(folder) = path.parent() {
        drop(std::fs::remove_dir(folder));
    }
}

fn unwritten(source: std::io::Error) -> Error {
    Error::Control {
        what: "write down what is going to be changed of this host".into(),
        source,
    }
}

fn write(file: &mut File, line: &Line) -> Result<()> {
    let mut text = serde_json::to_vec(line)
        .map_err(std::io::Error::from)
        .map_err(unwritten)?;
    text.push(b'\n');
    file.write_all(&text).map_err(unwritten)
}

/// Where files may be, the best first.
fn folders() -> Vec<PathBuf> {
    let run = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let user = process::effective_user();
    [Some(PathBuf::from("/run").join(FOLDER))]
        .into_iter()
        .chain([run.map(|run| run.join(FOLDER))])
        .flatten()
        .chain([PathBuf::from(format!("/tmp/{FOLDER}-{user}"))])
        .collect()
}

/// Whether the folder is there and nobody else can write to it; makes it where wanted.
fn is_ours(folder: &Path, make: bool) -> bool {
    if make {
        // It may be there, or not be ours to make: the look says.
        let _ = DirBuilder::new().mode(0o700).create(folder);
    }
    std::fs::symlink_metadata(folder).is_ok_and(|seen| {
        seen.is_dir() && seen.uid() == process::effective_user() && seen.mode() & 0o077 == 0
    })
}

/// A guard has the file, and its lock with it, as its standard output.
fn start_guard(file: &File) -> Result<Child> {
    let failed = |source| Error::Control {
        what: "start the guard that restores settings when the agent is killed".into(),
        source,
    };
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(GUARD)
        .stdin(Stdio::piped())
        .stdout(file.try_clone().map_err(failed)?);
    before_exec(&mut command, vec![Step::NewSession]);
    command.spawn().map_err(failed)
}

/// Plays the guard: waits for the end of `agent`, then puts back what `file` has. Gives the exit code.
pub fn guard(agent: impl AsFd, file: impl AsFd) -> i32 {
    // A lab's agents have real-time priority: who sleeps until it puts things back needs none.
    drop(cpu::usual_priority(0));
    // The agent's end is the only one that it heeds.
    let _deaf = SignalFd::new(&DEAF_TO);
    let opened = agent.as_fd().try_clone_to_owned().and_then(|agent| {
        Ok((
            File::from(agent),
            File::from(file.as_fd().try_clone_to_owned()?),
        ))
    });
    let Ok((mut agent, mut file)) = opened else {
        return 1;
    };
    while matches!(agent.read(&mut [0; 64]), Ok(1..)) {}
    // It has the file alone, and not its name.
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = std::fs::read_link(name).unwrap_or_default();
    for words in undo_all(&mut file, &path) {
        tell!("sonde agent: {words}");
    }
    0
}

/// What was noted and not struck, last first, with the network that it is of and the agent that noted it.
fn read(file: &mut File) -> Option<(String, u32, Vec<Undo>)> {
    file.rewind().ok()?;
    let mut head = None;
    let mut all = Vec::new();
    for line in BufReader::new(file).lines() {
        // A last line that was cut off says of a change that was not made.
        match serde_json::from_str(&line.ok()?) {
            Ok(Line::Of { network, agent }) => head = Some((network, agent)),
            Ok(Line::Set(undo)) => all.push(Some(undo)),
            Ok(Line::Struck(place)) => drop(all.get_mut(place).map(Option::take)),
            Err(_) => break,
        }
    }
    let (network, agent) = head?;
    Some((network, agent, all.into_iter().rev().flatten().collect()))
}

/// Puts back what the file has, and removes it; what cannot be put back stays in it. What was done, in words.
fn undo_all(file: &mut File, path: &Path) -> Vec<String> {
    let (network, agent, all) = read(file).unwrap_or_default();
    let (mut said, mut left) = (Vec::new(), Vec::new());
    for undo in all {
        match undo.put_back_if_as_set() {
            Ok(Found::AsBefore) => {}
            Ok(Found::PutBack) => said.push(format!(
                "{} was restored, which a killed agent had changed",
                undo.words()
            )),
            Ok(Found::Other) => said.push(format!(
                "a killed agent had changed what was {} before; it was set otherwise since then, and is left so",
                undo.words()
            )),
            Err(error) => {
                said.push(format!(
                    "{} was not restored: {error}; it stays in the list {}",
                    undo.words(),
                    path.display()
                ));
                left.push(undo);
            }
        }
    }
    if left.is_empty() {
        if let Err(error) = file.set_len(0) {
            said.push(format!(
                "the list of changed settings cannot be emptied: {error}"
            ));
        }
        remove(path);
        return said;
    }
    let lines = left.into_iter().rev().map(Line::Set);
    let kept = file.set_len(0).map_err(unwritten).and_then(|()| {
        let mut all = std::iter::once(Line::Of { network, agent }).chain(lines);
        all.try_for_each(|line| write(file, &line))
    });
    if let Err(error) = kept {
        said.push(format!("the list of changed settings is lost: {error}"));
    }
    said
}

/// Puts back what agents have left that were killed together with their guards; what was done, in words.
pub(crate) fn recover() -> Vec<String> {
    let Ok(here) = sonde_sys::host::network_identity() else {
        return Vec::new();
    };
    let ours = folders()
        .into_iter()
        .filter(|folder| is_ours(folder, false));
    ours.flat_map(|folder| recover_in(&folder, &here)).collect()
}

fn recover_in(folder: &Path, here: &str) -> Vec<String> {
    let lists = lists(folder).into_iter();
    lists.flat_map(|path| recover_one(&path, here)).collect()
}

/// The lists in a folder that have their names.
fn lists(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    named.map(|entry| entry.path()).collect()
}

fn recover_one(path: &Path, here: &str) -> Vec<String> {
    let Ok(mut file) = File::options().read(true).append(true).open(path) else {
        return Vec::new();
    };
    let Some((network, agent, _)) = read(&mut file) else {
        // Emptied by a guard that did its work, or by an agent that is about to remove it.
        remove(path);
        return Vec::new();
    };
    let mut said = Vec::new();
    if boot(&network) != boot(here) {
        remove(path);
    } else if network == here && is_left(&file, path, agent) {
        said = undo_all(&mut file, path);
    }
    said
}

/// Of a network's identity the start of the machine.
fn boot(network: &str) -> &str {
    network.split(' ').next().unwrap_or_default()
}

/// A list of changed settings that nobody looks after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrestored {
    /// The list.
    pub path: PathBuf,
    /// What was before, in words; none of a list of an earlier start of the machine, or of one that is empty.
    pub settings: Vec<String>,
}

/// The lists that agents have left which were killed together with their guards, of this host and network.
pub fn unrestored() -> Vec<Unrestored> {
    let Ok(here) = sonde_sys::host::network_identity() else {
        return Vec::new();
    };
    let ours = folders()
        .into_iter()
        .filter(|folder| is_ours(folder, false));
    let left = |path: PathBuf| {
        let mut file = File::options().read(true).append(true).open(&path).ok()?;
        let found = read(&mut file);
        let agent = found.as_ref().map_or(0, |(_, agent, _)| *agent);
        let is_left = match process::lock(&file, false) {
            Ok(true) => true,
            Ok(false) => !is_alive(agent) && stopped_guard(&path).is_some(),
            Err(_) => false,
        };
        let is_here = found
            .as_ref()
            .is_none_or(|(network, ..)| network == &here || boot(network) != boot(&here));
        let ours = found.filter(|(network, ..)| network == &here);
        let settings = ours.map_or(Vec::new(), |(_, _, all)| {
            all.iter().map(Undo::words).collect()
        });
        (is_left && is_here).then_some(Unrestored { path, settings })
    };
    ours.flat_map(|folder| lists(&folder))
        .filter_map(left)
        .collect()
}

/// Puts back what a list has that [`unrestored`] gave, and removes it; what was done, in words.
pub fn put_back(path: &Path) -> Vec<String> {
    sonde_sys::host::network_identity().map_or(Vec::new(), |here| recover_one(path, &here))
}

fn is_alive(agent: u32) -> bool {
    Path::new(&format!("/proc/{agent}")).exists()
}

/// Whether nobody looks after the file any more; waits for the guard of an agent that has ended, and ends one that is stopped.
fn is_left(file: &File, path: &Path, agent: u32) -> bool {
    for _ in 0..PIECES {
        match process::lock(file, false) {
            Ok(true) => return true,
            Ok(false) if !is_alive(agent) => {
                if let Some(guard) = stopped_guard(path) {
                    // What it would do when it goes on is done now.
                    drop(process::kill(guard, SIGKILL));
                }
                std::thread::sleep(PIECE);
            }
            _ => return false,
        }
    }
    false
}

/// The guard that has this file as its output, if it is stopped.
fn stopped_guard(path: &Path) -> Option<u32> {
    let names = std::fs::read_dir("/proc").ok()?.flatten();
    let mut all = names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    all.find(|pid| {
        let of = |name: &str| format!("/proc/{pid}/{name}");
        let is_guard = || {
            let line = std::fs::read(of("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0)
                .any(|word| word == GUARD.as_bytes())
        };
        let is_stopped = || {
            let stat = std::fs::read_to_string(of("stat")).unwrap_or_default();
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
        };
        std::fs::read_link(of("fd/1")).is_ok_and(|to| to == path) && is_guard() && is_stopped()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("sonde-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn undo(before: &str) -> Undo {
        Undo::Sysctl {
            path: "net/ipv4/tcp_rmem".into(),
            before: before.into(),
            set: "1 2 3".into(),
        }
    }

    fn kept(path: &Path, network: &str, lines: &[Line]) -> File {
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        let of = Line::Of {
            network: network.into(),
            agent: u32::MAX,
        };
        write(&mut file, &of).unwrap();
        lines
            .iter()
            .for_each(|line| write(&mut file, line).unwrap());
        file
    }

    #[test]
    fn a_guard_undoes_what_a_file_says() {
        let folder = folder("guard");
        let path = folder.join("a");
        let lines = [Line::Set(undo("a")), Line::Set(undo("b")), Line::Struck(1)];
        let mut file = kept(&path, "here 1", &lines);
        // What was cut off was not changed.
        file.write_all(b"{\"set\":{\"sysc").unwrap();
        let (network, _, all) = read(&mut file).unwrap();
        assert_eq!((&*network, all), ("here 1", vec![undo("a")]));
        let (agent, ours) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(ours);
        assert_eq!(guard(agent, &file), 0);
        assert!(!path.exists(), "it did its work");
        assert!(!folder.exists(), "nothing else was there");
    }

    #[test]
    fn what_cannot_be_put_back_stays_on_file() {
        let folder = folder("stays");
        let path = folder.join("a");
        let gone = |name: &str| Undo::Sysctl {
            path: format!("net/ipv4/no_such_{name}"),
            before: "1".into(),
            set: "2".into(),
        };
        let lines = [
            Line::Set(gone("one")),
            Line::Set(undo("4 5 6")),
            Line::Set(gone("struck")),
            Line::Set(gone("two")),
            Line::Struck(2),
        ];
        drop(kept(&path, "boot 1", &lines));
        for said in [3, 2] {
            // Each agent that comes tries again, and says so.
            let told = recover_in(&folder, "boot 1");
            assert_eq!(told.len(), said, "{told:?}");
            let stays = told.iter().filter(|words| {
                words.contains("was not restored") && words.contains("stays in the list")
            });
            assert_eq!(stays.count(), 2, "{told:?}");
            let (network, agent, left) = read(&mut File::open(&path).unwrap()).unwrap();
            assert_eq!((&*network, agent), ("boot 1", u32::MAX));
            assert_eq!(left, [gone("two"), gone("one")]);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_last_change_is_undone_first() {
        let folder = folder("order");
        let lines = ["a", "b", "c"].map(|before| Line::Set(undo(before)));
        let mut file = kept(&folder.join("a"), "here 1", &lines);
        let (_, _, all) = read(&mut file).unwrap();
        assert_eq!(all, ["c", "b", "a"].map(undo));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_ours() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let folder = folder("owner");
        for (mode, ours) in [(0o770, false), (0o705, false), (0o700, true)] {
            std::fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(is_ours(&folder, false), ours, "{mode:o}");
        }
        match chown(&folder, Some(2_001), None) {
            Ok(()) => assert!(!is_ours(&folder, false)),
            Err(_) => println!("skipped: only root can give a folder away"),
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_stopped_guard_keeps_nothing() {
        let folder = folder("stopped");
        let path = folder.join("a");
        let file = kept(&path, "boot 1", &[Line::Set(undo("4 5 6"))]);
        assert!(process::lock(&file, false).unwrap());
        // A process that is called as a guard is, with the file and its lock.
        let mut stopped = Command::new("sh")
            .args(["-c", "read line; true", GUARD])
            .stdin(Stdio::piped())
            .stdout(file)
            .spawn()
            .unwrap();
        process::kill(stopped.id(), 19).unwrap();
        let said = recover_in(&folder, "boot 1");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(!path.exists(), "the list is done with");
        assert!(!stopped.wait().unwrap().success(), "it was ended");
        assert!(!folder.exists(), "nothing else was there");
    }

    #[test]
    fn files_of_others_are_left() {
        let folder = folder("journal");
        let lines = [Line::Set(undo("4 5 6"))];
        for (name, network) in [("mine", "boot 1"), ("other", "boot 2"), ("old", "then 1")] {
            drop(kept(&folder.join(name), network, &lines));
        }
        let watched = kept(&folder.join("watched"), "boot 1", &lines);
        assert!(process::lock(&watched, false).unwrap());
        // Its agent lives: process 1 does.
        std::fs::write(
            folder.join("watched"),
            std::fs::read_to_string(folder.join("watched"))
                .unwrap()
                .replace(&u32::MAX.to_string(), "1"),
        )
        .unwrap();
        let said = recover_in(&folder, "boot 1");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("is left so") && said[0].contains("4 5 6"));
        let mut left: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["other", "watched"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
