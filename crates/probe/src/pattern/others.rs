//! CPU time that other programs of this host take.
//!
//! Model:   user and system time of every process that can be seen, but not of this worker, of the programs above it that
//!          have the same program file (its agent, and in an emulated host what started that), and of the kernel's own threads, which work for
//!          the network. A process that began meanwhile counts from its begin; one that ended does not count. In an
//!          emulated cluster each host sees only its own.
//! Units:   nanoseconds; the kernel counts in ticks of 10 ms.
//! Checked: `a_busy_program_is_seen`, `lines_of_stat_are_read`.
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

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The second word of /proc/PID/stat is the parent of all kernel threads.
const KTHREADD: u64 = 2;
/// The kernel shows ticks of USER_HZ, which is 100 on every architecture that this program is built for.
const TICK_NS: u64 = 10_000_000;

/// What the others had used when it began.
pub(super) struct Others(BTreeMap<u64, u64>);

impl Others {
    pub(super) fn begin() -> Option<Self> {
        used().map(Self)
    }

    /// What they used since.
    pub(super) fn end(self) -> Option<u64> {
        let since =
            |(pid, ticks): (u64, u64)| ticks.saturating_sub(self.0.get(&pid).copied().unwrap_or(0));
        let ticks = used()?.into_iter().map(since);
        let ticks = ticks.fold(0_u64, u64::saturating_add);
        Some(ticks.saturating_mul(TICK_NS))
    }
}

fn used() -> Option<BTreeMap<u64, u64>> {
    let own = fs::read_link("/proc/self/exe").ok();
    let entries = fs::read_dir("/proc").ok()?;
    let of = |entry: fs::DirEntry| {
        let pid: u64 = entry.file_name().to_str()?.parse().ok()?;
        let path = entry.path();
        let (parent, ticks) = parse(&fs::read_to_string(path.join("stat")).ok()?)?;
        let ours = own.is_some() && program(&path) == own;
        (!ours && pid != KTHREADD && parent != KTHREADD).then_some((pid, ticks))
    };
    Some(entries.flatten().filter_map(of).collect())
}

fn program(process: &Path) -> Option<std::path::PathBuf> {
    fs::read_link(process.join("exe")).ok()
}

/// Parent, and user and system time, of a line of /proc/PID/stat.
fn parse(line: &str) -> Option<(u64, u64)> {
    // The name may have spaces and brackets of its own.
    let words: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    Some((number(1)?, number(11)?.checked_add(number(12)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn lines_of_stat_are_read() {
        let line = "77 (a ) b) S 5 77 77 0 -1 4194560 10 0 0 0 30 12 0 0 20 0 1 0 9 1 2";
        assert_eq!(parse(line), Some((5, 42)));
        assert_eq!(parse("77 (cut"), None);
        assert_eq!(parse("77 (cut) S 5"), None);
    }

    #[test]
    fn a_busy_program_is_seen() {
        let others = Others::begin().unwrap();
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(400));
        let ns = others.end().unwrap();
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(ns >= 2 * TICK_NS, "{ns}");
    }
}
