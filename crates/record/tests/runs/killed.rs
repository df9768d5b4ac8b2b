//! Stores under kill -9, several writers, full disks and read-only media.
//!
//! The other process is this test program again, which runs one of the ignored tests below; they take their folder from the
//! environment.

use crate::sample::{Folder, cell, launch, measurement, planned};
use sonde_measure::{LaunchRecord, Phase, Quantity, Run};
use sonde_record::{Store, StoreError};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DIR: &str = "SONDE_TEST_DIR";
const RUN: &str = "SONDE_TEST_RUN";

/// This program as `child`, with its folder and run.
fn child(test: &str, dir: &Path, run: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        &format!("killed::{test}"),
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command.env(DIR, dir).env(RUN, run);
    command
}

fn told(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("this is the child of another test, which sets {name}"))
}

/// A launch as large as one of `assess`, which can be told from every other.
fn numbered(run: &Run, index: u64) -> LaunchRecord {
    let many = (0..5_000).map(|n| 20_000 + (n * 7_919 + index) % 6_007);
    let series = vec![
        measurement(Quantity::LatencyNs, Phase::Warm, many),
        measurement(Quantity::LatencyNs, Phase::Cold, [index]),
    ];
    launch(&run.cells[0], index, series)
}

fn endless(id: &str) -> Run {
    planned(id, vec![cell("latency", 1, u64::MAX >> 1)])
}

#[test]
#[ignore = "the child of other tests"]
fn writes_until_it_is_killed() {
    let mut out = std::io::stdout().lock();
    writeln!(out, "begun").unwrap();
    let store = Store::open(Path::new(&told(DIR))).unwrap();
    let run = store.load(&told(RUN)).unwrap();
    for index in run.launches.len() as u64.. {
        store.launch(&run.head.id, &numbered(&run, index)).unwrap();
        // What is told is stored.
        writeln!(out, "stored {index}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_what_it_had_told() {
    let dir = Folder::new("killed");
    let run = endless("r");
    Store::open(&dir).unwrap().begin(&run).unwrap();
    let (mut journals, mut before) = (0, 0);
    for round in 0..50_u64 {
        let mut child = child("writes_until_it_is_killed", &dir, "r")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("begun")));
        // From before it opened the store; a prime, so that it is killed at all points of a transaction.
        std::thread::sleep(Duration::from_micros((round * 7_919) % 40_013));
        child.kill().unwrap();
        let told: Option<u64> = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("stored ")?.parse().ok())
            .last();
        child.wait().unwrap();
        journals += u64::from(dir.join("sonde.db-journal").exists());
        let read = Store::read(&dir).unwrap().load("r").unwrap();
        let stored = read.launches.len() as u64;
        // All that was told, and at most the one that was stored and not yet told.
        let wanted = told.map_or(before, |told| told + 1);
        assert!(
            (wanted..=wanted + 1).contains(&stored),
            "round {round}: {stored} of {wanted}"
        );
        for (index, launch) in read.launches.iter().enumerate() {
            assert_eq!(*launch, numbered(&run, index as u64), "round {round}");
        }
        drop(Store::open(&dir).unwrap());
        assert!(
            !dir.join("sonde.db-journal").exists(),
            "who writes next leaves no journal"
        );
        before = stored;
    }
    println!("{before} launches stored in 50 lives, {journals} of which left a journal");
    assert!(
        before > 0 && journals > 0,
        "{before} launches, {journals} journals: killed at the wrong moments"
    );
}

#[test]
#[ignore = "the child of other tests"]
fn writes_a_hundred() {
    let store = Store::open(Path::new(&told(DIR))).unwrap();
    let run = endless(&told(RUN));
    store.begin(&run).unwrap();
    for index in 0..100 {
        store.launch(&run.head.id, &numbered(&run, index)).unwrap();
    }
}

#[test]
fn several_writers_all_succeed() {
    let dir = Folder::new("writers");
    // None has made the store before: they make it at once.
    let children: Vec<_> = ["a", "b", "c"]
        .map(|run| {
            child("writes_a_hundred", &dir, run)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .into();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = Store::read(&dir).unwrap();
    assert_eq!(store.runs().unwrap().len(), 3);
    for id in ["a", "b", "c"] {
        let run = store.load(id).unwrap();
        assert_eq!(run.launches.len(), 100);
        for (index, launch) in run.launches.iter().enumerate() {
            assert_eq!(*launch, numbered(&run, index as u64), "{id}");
        }
    }
}

#[test]
#[ignore = "the child of other tests"]
fn fills_its_disk() {
    let dir = told(DIR);
    let store = Store::open(Path::new(&dir)).unwrap();
    let run = endless("r");
    store.begin(&run).unwrap();
    let mut stored = 0;
    let error = loop {
        match store.launch("r", &numbered(&run, stored)) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    let text = error.to_string();
    for word in ["sonde.db", "the disk is full", "free space", "--out"] {
        assert!(text.contains(word), "{text}");
    }
    // What was stored is there, for this process and for the next.
    for store in [store, Store::read(Path::new(&dir)).unwrap()] {
        let read = store.load("r").unwrap();
        assert!(
            stored > 3 && read.launches.len() as u64 == stored,
            "{stored}"
        );
        assert_eq!(read.launches[0], numbered(&run, 0));
    }
    println!("{stored} launches on a full disk");
}

#[test]
#[ignore = "the child of other tests"]
fn finds_it_read_only() {
    let dir = told(DIR);
    let error = Store::open(Path::new(&dir)).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("read-only") && text.contains("--out"),
        "{text}"
    );
    // It can be read all the same.
    let read = Store::read(Path::new(&dir)).unwrap().load("r").unwrap();
    assert_eq!(read.launches.len(), 2);
    let within = Store::open(&Path::new(&dir).join("new")).unwrap_err();
    assert!(matches!(within, StoreError::Folder { .. }), "{within:?}");
}

/// Runs `script` and then the child in a mount namespace of its own; whether such a namespace can be had.
fn in_mount_namespace(script: &str, test: &str, dir: &Path) -> bool {
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-ec",
            script,
            "sh",
        ]);
        command.arg(dir);
        command
    };
    let probe = unshare("mount -t tmpfs -o size=64k none \"$1\"")
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        println!("skipped: mounting in a user namespace");
        return false;
    }
    let child = child(test, dir, "r");
    let mut command = unshare(&format!("{script}; shift; exec \"$@\""));
    command.arg(child.get_program()).args(child.get_args());
    command.env(DIR, dir).env(RUN, "r");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("1 passed"), "{text}");
    true
}

#[test]
fn a_full_disk_is_told() {
    let dir = Folder::new("full");
    in_mount_namespace(
        "mount -t tmpfs -o size=400k none \"$1\"",
        "fills_its_disk",
        &dir,
    );
}

#[test]
fn a_read_only_file_system_is_told() {
    let dir = Folder::new("read-only");
    let store = Store::open(&dir).unwrap();
    let run = endless("r");
    store.begin(&run).unwrap();
    store
        .launches("r", &[numbered(&run, 0), numbered(&run, 1)])
        .unwrap();
    drop(store);
    let script = "mount --bind \"$1\" \"$1\"; mount -o remount,ro,bind \"$1\"";
    in_mount_namespace(script, "finds_it_read_only", &dir);
}
