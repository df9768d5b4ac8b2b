//! A lab whose parts are killed at any moment leaves nothing behind, and the command says what happened.
//!
//! Model:   moments and victims come from a seeded generator; the seed is printed, and taken from `SONDE_SEED` if set. After
//!          each kill: no process with the lab's mark, none of its network namespaces, no new device or mount, no new file.

use crate::lab::{
    Case, Draws, Outcome, Process, Running, Stage, Traces, attachments, cases, eventually, is_long,
    marked, network_namespaces, spread,
};
use sonde_sys::process::kill;
use std::time::Duration;

const SIGKILL: i32 = 9;
const PASSING: i32 = 125;

/// A part of a lab that can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Command,
    Cradle,
    Switch,
    Host,
}

const VICTIMS: [Victim; 4] = [
    Victim::Command,
    Victim::Cradle,
    Victim::Switch,
    Victim::Host,
];

impl Victim {
    fn is(self, process: &Process) -> bool {
        let flag = match self {
            Self::Command => " lab run ",
            Self::Cradle => " --sonde-lab-cradle",
            Self::Switch => " --sonde-lab-switch",
            Self::Host => " --sonde-lab-host",
        };
        process.line.contains(flag)
    }
}

/// Fails unless everything of the lab with this mark has gone, soon.
fn assert_gone(mark: &str, seen: &[Process], before: &Traces, story: &str) {
    let left = eventually(|| marked(mark), Vec::is_empty);
    assert!(left.is_empty(), "{story}: processes are left: {left:?}");
    let own = std::fs::metadata("/proc/self/ns/net")
        .map(|data| std::os::unix::fs::MetadataExt::ino(&data))
        .unwrap();
    let theirs: Vec<_> = seen
        .iter()
        .map(|process| process.netns)
        .filter(|netns| *netns != own && *netns != 0)
        .collect();
    let kept = eventually(
        || {
            network_namespaces()
                .into_iter()
                .filter(|netns| theirs.contains(netns))
                .count()
        },
        |count| *count == 0,
    );
    assert_eq!(kept, 0, "{story}: network namespaces are left");
    before.assert_nothing_new(story);
}

/// The command that was not killed itself ended by itself, said why, and did not break.
fn assert_told(outcome: &Outcome, story: &str) {
    assert_eq!(outcome.code, PASSING, "{story}: {outcome}");
    assert!(outcome.err.contains("sonde: "), "{story}: {outcome}");
    assert!(!outcome.err.contains("panicked"), "{story}: {outcome}");
}

/// Kills a victim `after` the start: the first one there, or the first to come. What was there just before.
fn strike(running: &mut Running, victim: Victim, after: Duration, pick: u64) -> Vec<Process> {
    std::thread::sleep(after);
    let mark = running.mark.clone();
    let there = |seen: &Vec<Process>| seen.iter().any(|process| victim.is(process));
    let seen = eventually(|| marked(&mark), there);
    let found: Vec<_> = seen.iter().filter(|process| victim.is(process)).collect();
    assert!(!found.is_empty(), "no {victim:?} among {seen:?}");
    let process = found[pick as usize % found.len()];
    // It may have ended just now, when it was not yet what it became.
    drop(kill(process.pid, SIGKILL));
    seen
}

/// `count` kills at moments up to `within`; the program runs for ever.
fn strikes(draws: &mut Draws, case: Case, count: u64, within: Duration, program: &[&str]) {
    for number in 0..count {
        let stage = Stage::new(case);
        let before = Traces::of_sonde(&stage.folder);
        let victim = draws.one(&VICTIMS);
        let after = Duration::from_micros(draws.below(within.as_micros() as u64));
        let hosts = (2 + draws.below(3)).to_string();
        let story = format!("{number}: {victim:?} of {hosts} hosts after {after:?}, {case:?}");
        println!("{story}");
        let mut running = stage
            .run(&["--hosts", &hosts, "--network", "ethernet-100"], program)
            .limit(30)
            .start();
        let mark = running.mark.clone();
        let seen = strike(&mut running, victim, after, draws.below(64));
        if victim == Victim::Host {
            // Another host's end is not the program's: end it, unless the lab did not come up, or the program's host is gone.
            std::thread::sleep(Duration::from_millis(300));
            if running.is_alive() {
                drop(kill(running.pid(), SIGKILL));
                assert_eq!(running.finish().code, 128 + SIGKILL, "{story}");
            } else {
                assert_told(&running.finish(), &story);
            }
        } else if victim == Victim::Command {
            assert_eq!(running.finish().code, 128 + SIGKILL, "{story}");
        } else {
            assert_told(&running.finish(), &story);
        }
        assert_gone(&mark, &seen, &before, &story);
    }
}

#[test]
fn killed_while_it_comes_up() {
    let mut draws = Draws::seeded(1);
    let cases = cases();
    for case in &cases {
        strikes(
            &mut draws,
            *case,
            (if is_long() { 48 } else { 16 }) / cases.len() as u64,
            Duration::from_millis(150),
            &["sleep", "1000"],
        );
    }
}

#[test]
fn killed_during_traffic() {
    let mut draws = Draws::seeded(2);
    let cases = cases();
    let program = [
        "sh",
        "-c",
        "sonde lab exec --detach h2 -- ping -q -i 0.002 h1; while :; do ping -q -i 0.002 -c 100 h2 > /dev/null; done",
    ];
    for case in &cases {
        strikes(
            &mut draws,
            *case,
            (if is_long() { 24 } else { 8 }) / cases.len() as u64,
            Duration::from_millis(600),
            &program,
        );
    }
}

#[test]
fn an_orderly_end_leaves_nothing_either() {
    for case in cases() {
        let stage = Stage::new(case);
        let before = Traces::of_sonde(&stage.folder);
        let program = [
            "sh",
            "-c",
            "sonde lab exec --detach h2 -- sleep 1000; sleep 1000 & exit 4",
        ];
        let mut running = stage.run(&["--hosts", "3"], &program).start();
        let mark = running.mark.clone();
        let seen = eventually(
            || marked(&mark),
            |seen| seen.len() > 6 || !running.is_alive(),
        );
        let outcome = running.finish();
        assert_eq!(outcome.code, 4, "{outcome}");
        // When the command has ended, the lab has: nothing is awaited here.
        let left = marked(&mark);
        assert!(left.is_empty(), "{left:?}");
        assert_gone(&mark, &seen, &before, "an orderly end");
    }
}

/// The init of a host, once it has its name.
fn init_of(mark: &str, host: &str) -> Process {
    let find = || {
        let hosts = marked(mark)
            .into_iter()
            .filter(|process| Victim::Host.is(process));
        let named = |process: &Process| {
            std::fs::read_to_string(format!("/proc/{}/root/etc/hostname", process.pid))
                .is_ok_and(|name| name.trim() == host)
        };
        hosts
            .filter(|process| !process.line.contains("lender"))
            .find(named)
    };
    eventually(find, Option::is_some).unwrap_or_else(|| panic!("no init of {host}"))
}

#[test]
fn a_host_that_is_gone_is_told_and_the_others_go_on() {
    for case in cases() {
        let stage = Stage::new(case);
        let before = Traces::of_sonde(&stage.folder);
        let script = "sonde lab exec h2 -- sleep 1000 & echo up
            wait $!; echo ran $?
            sonde lab exec h2 -- true; echo again $?
            sonde lab exec h3 -- hostname
            ping -q -c 2 -i 0.1 -W 2 h3 > /dev/null && echo h3 answers";
        let mut running = stage.run(&["--hosts", "3"], &["sh", "-c", script]).start();
        let mut early = running.wait_for("up\n");
        let mark = running.mark.clone();
        let runs =
            |seen: &Vec<Process>| seen.iter().any(|process| process.line.starts_with("sleep"));
        let seen = eventually(|| marked(&mark), runs);
        assert!(runs(&seen), "{seen:?}");
        kill(init_of(&mark, "h2").pid, SIGKILL).unwrap();
        let outcome = running.finish();
        early.push_str(&outcome.out);
        assert_eq!(
            early, "up\nran 125\nagain 125\nh3\nh3 answers\n",
            "{outcome}"
        );
        outcome.tells(&[
            "h2 is gone: its init ended while `sleep` was to run or ran there",
            "sonde: h2 is gone: its init was killed by signal 9",
        ]);
        assert_eq!(outcome.code, PASSING, "{outcome}");
        assert_gone(&mark, &seen, &before, "h2 killed");
    }
}

#[test]
fn the_end_of_the_programs_host_is_told() {
    for (case, each) in spread(&cases(), &[false, true]) {
        let stage = Stage::new(case);
        let options: &[&str] = if each {
            &["--hosts", "3", "--each"]
        } else {
            &["--hosts", "3"]
        };
        let mut running = stage
            .run(options, &["sh", "-c", "echo up; exec sleep 1000"])
            .limit(20)
            .start();
        running.wait_for("up\n");
        let mark = running.mark.clone();
        kill(init_of(&mark, "h1").pid, SIGKILL).unwrap();
        let outcome = running.finish();
        assert_told(&outcome, "h1 killed");
        outcome.tells(&["h1 is gone", "`sh`"]);
        assert!(eventually(|| marked(&mark), Vec::is_empty).is_empty());
    }
}

#[test]
fn the_end_of_the_switch_is_told() {
    for (case, victim) in spread(&attachments(), &[Victim::Cradle, Victim::Switch]) {
        let stage = Stage::new(case);
        let mut running = stage
            .run(&["--hosts", "2"], &["sh", "-c", "echo up; exec sleep 1000"])
            .limit(20)
            .start();
        running.wait_for("up\n");
        strike(&mut running, victim, Duration::ZERO, 0);
        let outcome = running.finish();
        assert_told(&outcome, &format!("{victim:?}"));
        println!("{victim:?}: {}", outcome.err.trim());
    }
}

/// A program that ignores all signals, has left its session and closed its streams ends with the lab nevertheless.
#[test]
fn programs_that_hide_end_too() {
    for case in cases() {
        let stage = Stage::new(case);
        let before = Traces::of_sonde(&stage.folder);
        let script = "trap '' HUP INT TERM; setsid sh -c 'sleep 1000; sleep 1000' < /dev/null > /dev/null 2>&1 & echo up; exec sleep 1000";
        let mut running = stage.run(&["--hosts", "2"], &["sh", "-c", script]).start();
        running.wait_for("up\n");
        let mark = running.mark.clone();
        let seen = marked(&mark);
        kill(running.pid(), SIGKILL).unwrap();
        running.finish();
        assert_gone(&mark, &seen, &before, "hidden programs");
    }
}
