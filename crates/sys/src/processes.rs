//! Processes that can be seen from here: whose child each is, when it began, with which words and in which namespace.
//!
//! Model:   /proc, read once. A number is taken again by another process; with the time of its begin it is one process alone. Processes
//!          of another pid namespace bear other numbers there, and go with it.
//! Units:   begins in ticks of the kernel since its start.
//! Checked: `this_process_is_seen`, `a_line_of_stat_is_read`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub pid: u32,
    /// When it began.
    pub began: u64,
    /// Whose child it is.
    pub parent: u32,
    /// What it was started with, the program first; empty of one that has ended.
    pub words: Vec<OsString>,
    /// Its program; none where it may not be looked at.
    pub program: Option<PathBuf>,
    /// Whether it is in the pid namespace of this one; false where it may not be looked at.
    pub is_here: bool,
}

/// All of them.
pub fn all() -> Vec<Seen> {
    let own = fs::read_link("/proc/self/ns/pid").ok();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let of = |pid: u32| {
        let (parent, began) = stat(pid)?;
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = words.split(|byte| *byte == 0).map(<[u8]>::to_vec);
        let mut words: Vec<OsString> = words.map(OsString::from_vec).collect();
        // Each ends with a byte of 0, the last too.
        words.pop();
        let here = fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        Some(Seen {
            pid,
            began,
            parent,
            words,
            program: fs::read_link(format!("/proc/{pid}/exe")).ok(),
            is_here: own.is_some() && here == own,
        })
    };
    numbers.filter_map(of).collect()
}

/// When a process began; none where there is none of this number.
pub fn began(pid: u32) -> Option<u64> {
    stat(pid).map(|(_, began)| began)
}

/// The value of a variable in the environment that a process was started with; none where it has none, or may not be looked at.
pub fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut pairs = environment.split(|byte| *byte == 0);
    pairs.find_map(|pair| {
        let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

/// Whether a process has a file of this folder, or the folder itself, open or in memory, or is in it.
pub fn uses(pid: u32, folder: &Path) -> bool {
    let of = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    let is_in = |link: PathBuf| fs::read_link(link).is_ok_and(|to| to.starts_with(folder));
    let open = fs::read_dir(of("fd")).into_iter().flatten().flatten();
    let maps = || fs::read_to_string(of("maps")).unwrap_or_default();
    let mapped = |line: &str| {
        let at = line.find('/').and_then(|at| line.get(at..));
        at.is_some_and(|path| Path::new(path).starts_with(folder))
    };
    is_in(of("cwd")) || open.into_iter().any(|fd| is_in(fd.path())) || maps().lines().any(mapped)
}

fn stat(pid: u32) -> Option<(u32, u64)> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parent and begin of a line of /proc/PID/stat: fields 4 and 22.
fn parse(line: &str) -> Option<(u32, u64)> {
    // The name may have spaces and brackets of its own.
    let mut words = line.rsplit_once(')')?.1.split_whitespace();
    let parent = words.nth(1)?.parse().ok()?;
    Some((parent, words.nth(17)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen() {
        let own = std::process::id();
        let all = all();
        let seen = all.iter().find(|seen| seen.pid == own).unwrap();
        assert_eq!(Some(seen.began), began(own));
        assert!(seen.is_here && seen.parent > 0);
        assert_eq!(seen.program, std::env::current_exe().ok());
        assert_eq!(seen.words, std::env::args_os().collect::<Vec<_>>());
        assert_eq!(variable(own, "PATH"), std::env::var("PATH").ok());
        assert_eq!(variable(own, "PAT"), None);
        assert_eq!(began(u32::MAX), None);
        let folder = std::env::temp_dir().join(format!("sonde-uses-{own}"));
        fs::create_dir(&folder).unwrap();
        assert!(!uses(own, &folder));
        let file = fs::File::create(folder.join("a")).unwrap();
        assert!(uses(own, &folder));
        drop(file);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_line_of_stat_is_read() {
        let line = "77 (a) b) S 5 1 1 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 4711 9 9\n";
        assert_eq!(parse(line), Some((5, 4711)));
        assert_eq!(parse("77 (a) S 5"), None);
        assert_eq!(parse(""), None);
    }
}
