//! The libraries that are here, by their adapters: what one rank sends another receives, and no wait is without end.
//!
//! Model:   each test starts this program again as ranks, by the library's own start; a rank is `rank.rs`, its job the
//!          variable `SONDE_TEST_JOB`. What cannot run here says `skipped:` and why.

mod machine;
mod rank;
mod start;

use std::time::Duration;

use start::{Ended, Library};

/// What a loss may take to end all others.
const AFTER_LOSS_MAX: Duration = Duration::from_secs(5);

/// Runs a job on so many ranks of each library, one after the other.
fn on_each(job: &str, ranks: usize, judge: impl Fn(Library, &Ended)) {
    for library in Library::ALL {
        match start::run(library, job, ranks) {
            Ok(ended) => judge(library, &ended),
            Err(missing) => println!("skipped: {}: {missing}", library.name()),
        }
    }
}

fn all_passed(job: &str, ranks: usize) {
    on_each(job, ranks, |library, ended| {
        let name = library.name();
        let passed = format!("passed: {job} of {ranks} on {name}");
        assert!(ended.stdout.contains(&passed), "{library:?}: {ended}");
        assert_eq!(ended.code, Some(0), "{library:?}: {ended}");
    });
}

/// Not a test of its own: what the others start.
#[test]
fn a_rank() {
    if let Ok(job) = std::env::var(rank::JOB) {
        rank::run(&job);
    }
}

#[test]
fn what_is_sent_is_received() {
    all_passed("messages", 2);
}

#[test]
fn transfers_are_posted_and_finished() {
    all_passed("requests", 3);
}

#[test]
fn groups_are_split_and_split_again() {
    all_passed("groups", 4);
}

#[test]
fn one_that_does_not_fit_is_told() {
    all_passed("truncated", 2);
}

#[test]
fn own_collectives_are_those_of_one_rank_alone() {
    all_passed("collectives", 3);
}

#[test]
fn facts_name_what_really_ran() {
    all_passed("facts", 2);
}

#[test]
fn a_rank_that_never_sends_is_a_bounded_wait() {
    on_each("silent", 2, |library, ended| {
        let told = ended.stdout.contains("silent as wanted");
        assert!(told, "{}: {ended}", library.name());
    });
}

/// From before the kill, which is 300 ms later, to the end of the last rank, the one that a daemon started too. The timeout is
/// far beyond: it is not by that that the others end.
#[test]
fn a_lost_rank_ends_the_others() {
    on_each("lost", 3, |library, ended| {
        let name = library.name();
        let mut lines = ended.stdout.lines();
        let at = lines.find_map(|line| line.strip_prefix("losing rank 1 at "));
        let at = at.unwrap_or_else(|| panic!("{name}: {ended}"));
        let after = ended.gone - Duration::from_nanos(at.trim().parse().unwrap());
        assert!(after < AFTER_LOSS_MAX, "{name}: {after:?}, {ended}");
        assert_ne!(ended.code, Some(0), "{name}: {ended}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        let named = said.contains("rank 1 is gone")
            || said.contains("exited on signal 9")
            || said.contains("KILLED BY SIGNAL: 9")
            || said.contains("Killed (signal 9)");
        assert!(named, "{name}: {ended}");
        println!("{name}: the others ended within {after:?}");
    });
}
