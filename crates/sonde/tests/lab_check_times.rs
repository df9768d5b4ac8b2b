//! A rank that is killed in the midst of `sonde probe check` ends the others within seconds, over every library, and leaves no memory.
//!
//! Model:   three ranks on this machine, one of which is killed once they have begun. Ranks of UCX and libfabric poll while they begin,
//!          each against all others, so that seventeen beside other tests do not begin in time.

use crate::lab;
use crate::lab::{Case, Stage, eventually, skip};
use crate::paired::lab_check::on_all_ranks;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The ranks of a stage: its copy of their program is nobody else's. A child of one is about to become a shell, which is none.
fn ranks(program: &PathBuf) -> Vec<u32> {
    let process = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let own = std::fs::read_link(entry.path().join("exe")).ok()?;
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        (own == *program).then(|| Some((number, parent.trim().parse().ok()?)))?
    };
    let all: BTreeMap<u32, u32> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(process)
        .collect();
    let is_rank = |(number, parent): (&u32, &u32)| (!all.contains_key(parent)).then_some(*number);
    all.iter().filter_map(is_rank).collect()
}

/// What libfabric's segments of these processes are called.
fn segments(ranks: &[u32]) -> Vec<String> {
    let entries = std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let of_one = |name: &String| {
        ranks
            .iter()
            .any(|rank| name.starts_with(&format!("{rank}:")))
    };
    names.filter(of_one).collect()
}

/// Kills one of three ranks in the middle of a check; how long the others went on, and what was said.
fn killed(path: &str) -> Option<(Duration, String)> {
    let rank = lab::sonde().with_file_name("sonde-rank");
    let adapters = lab::sonde().with_file_name("adapters");
    let stage = Stage::new(Case::own("veth"));
    let program = stage.copy_in(&rank).canonicalize().unwrap();
    let words = [
        "probe",
        "check",
        "--testbed",
        "local",
        "--ranks",
        "3",
        "--cases",
        "100000",
        "--path",
        path,
    ];
    let call = stage
        .sonde(&words)
        .env("SONDE_RANK", program.to_str().unwrap());
    let mut running = call
        .env("SONDE_ADAPTERS", adapters.to_str().unwrap())
        .limit(120)
        .start();
    let mut begun = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while begun.len() < 3 && running.is_alive() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
        begun = ranks(&program);
    }
    if begun.len() < 3 {
        skip(&format!("{path}: {}", running.finish()));
        return None;
    }
    // They have met by then, or some of them meet: both must end.
    std::thread::sleep(Duration::from_millis(700));
    let segments_before = match path {
        // They take as long as the CPUs let them.
        "ofi:shm" => eventually(|| segments(&begun), |all| !all.is_empty()),
        _ => segments(&begun),
    };
    let victim = begun[2].to_string();
    let killed = Instant::now();
    assert!(
        Command::new("kill")
            .args(["-9", &victim])
            .status()
            .unwrap()
            .success()
    );
    let left = eventually(|| ranks(&program), Vec::is_empty);
    let after = killed.elapsed();
    assert!(left.is_empty(), "{path}: {left:?} of {begun:?} go on");
    let outcome = running.finish();
    assert_eq!(outcome.code, 1, "{path}: {outcome}");
    if path == "ofi:shm" {
        assert!(
            !segments_before.is_empty(),
            "what is to be taken away is called otherwise"
        );
    }
    let segments = eventually(|| segments(&begun), Vec::is_empty);
    assert!(segments.is_empty(), "{path}: {segments:?} are left");
    Some((after, outcome.err))
}

#[test]
fn ucx_and_libfabric_are_right_on_1_to_17_ranks() {
    on_all_ranks(&["ucx:tcp", "ucx:posix", "ofi:tcp", "ofi:shm"]);
}

#[test]
fn a_killed_rank_ends_the_others_and_leaves_no_memory() {
    if !lab::sonde().with_file_name("sonde-rank").is_file() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return;
    }
    let paths = [
        "native:tcp",
        "native:unix",
        "native:shm",
        "openmpi:sm",
        "mpich:sm",
        "pvm:default",
        "pvm:direct",
        "ucx:tcp",
        "ucx:posix",
        "ofi:tcp",
        "ofi:shm",
    ];
    for path in paths {
        let Some((after, said)) = killed(path) else {
            continue;
        };
        println!("{path}: the others ended after {after:?}: {}", said.trim());
        assert!(after < Duration::from_secs(5), "{path}: {after:?}: {said}");
        // MPICH tells its process and the signal, all others the rank.
        let named = ["is gone", "by signal 9", "on signal 9", "(signal 9)"];
        assert!(
            named.iter().any(|words| said.contains(words)),
            "{path}: {said}"
        );
    }
}
