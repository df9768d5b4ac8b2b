//! Processes that tests look at, stop and end.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::agents::SOON;

/// The processes whose parent is `parent`.
pub fn children(parent: u32) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may hold anything: state, then parent.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut words = rest.split_whitespace();
        let (state, found) = (words.next()?, words.next()?);
        (state != "Z" && found == parent.to_string()).then_some(pid)
    });
    numbers.collect()
}

/// Asks again until it is so.
pub fn soon(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < SOON, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(status.unwrap().success());
}
