//! Libraries measured over a running lab, from plan to report: sonde's own engine, and Open MPI where it is installed.
//!
//! Model:   small measurements of which only what holds of any run is checked: that there are figures and facts, that cold
//!          stands apart from warm, that what cannot be had says why, and that nothing is left behind.

use crate::lab;
use crate::lab::{Call, Case, Stage, attachments, cases, eventually, has, marked, skip};
use serde_json::Value;
use std::path::PathBuf;

/// The program of the ranks, beside the command under test.
fn rank() -> Option<PathBuf> {
    let rank = lab::sonde().with_file_name("sonde-rank");
    let found = rank.is_file().then_some(rank);
    if found.is_none() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
    }
    found
}

/// A stage with the ranks' program where its user sees it.
fn stage(case: Case) -> Option<Stage> {
    let rank = rank()?;
    let stage = Stage::new(case);
    stage.copy_in(&rank);
    Some(stage)
}

fn probe(stage: &Stage, words: &[&str]) -> Call {
    let out = stage.path("runs");
    let mut all = vec!["probe"];
    all.extend(words);
    all.extend([
        "--json",
        "--quick",
        "--out",
        &out,
        "--attachment",
        stage.case.attachment,
    ]);
    let mut call = stage.sonde(&all);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    call.env("SONDE_RANK", stage.path("sonde-rank"))
        .env("SONDE_ADAPTERS", stage.path("adapters"))
        .limit(180)
}

/// Builds the adapters; whether this one is there.
fn built(stage: &Stage, library: &str) -> bool {
    let build = stage.sonde(&["doctor", "--build-adapters"]);
    let build = build.env("SONDE_ADAPTERS", stage.path("adapters"));
    drop(build.limit(120).output());
    let file = format!("adapters/sonde-{library}.so");
    stage.folder.join(file).is_file()
        || skip(&format!(
            "the adapter for {library}, which could not be built"
        ))
}

fn rows(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    document["results"].as_array().unwrap().clone()
}

fn of<'a>(rows: &'a [Value], wanted: &[(&str, &str)]) -> Vec<&'a Value> {
    let is = |row: &&Value| wanted.iter().all(|(name, value)| row[*name] == *value);
    rows.iter().filter(is).collect()
}

/// How many ranks of the stage run, in whatever namespace: its copy of their program is nobody else's.
fn ranks(stage: &Stage) -> usize {
    let program = stage.path("sonde-rank");
    let is_rank = |entry: std::io::Result<std::fs::DirEntry>| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        let first = line.split(|byte| *byte == 0).next()?;
        (first == program.as_bytes()).then_some(())
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(is_rank)
        .count()
}

/// Nothing of a call is left, within some seconds.
fn gone(stage: &Stage, mark: &str) {
    let left = eventually(|| marked(mark), Vec::is_empty);
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(eventually(|| ranks(stage), |count| *count == 0), 0);
}

const LAB: [&str; 4] = ["--network", "ethernet-1g", "--hosts", "2"];

#[test]
fn the_native_engine_is_measured_beside_tcp() {
    for case in cases() {
        let Some(stage) = stage(case) else { return };
        let words = [
            "latency",
            "--path",
            "native:tcp,tcp",
            "--size",
            "8,4KiB",
            "--budget",
            "100ms",
        ];
        let call = probe(&stage, &[&words[..], &LAB].concat());
        let mark = call.mark().to_string();
        let outcome = call.expect(0);
        let rows = rows(&outcome.out);
        let warm = of(
            &rows,
            &[
                ("path", "native:tcp"),
                ("layer", "library"),
                ("phase", "warm"),
                ("quantity", "latency_ns"),
            ],
        );
        assert_eq!(warm.len(), 2, "{case:?}: {outcome}");
        for row in warm {
            assert_eq!(row["status"], "measured", "{row}");
            assert!(row["p50"].as_f64().unwrap() > 0.0 && row["samples"].as_u64().unwrap() > 1);
            assert_eq!(row["wait"], "block");
            assert!(row["verdict"].is_object(), "{row}");
            assert!(row["touched_share"].is_number(), "{row}");
        }
        let first = of(&rows, &[("path", "native:tcp"), ("step", "first")]);
        assert_eq!(first.len(), 2, "cold stands apart: {outcome}");
        gone(&stage, &mark);
    }
}

#[test]
fn every_job_runs_by_the_native_engine() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    for (words, quantity, phase) in [
        (&["startup", "--size", "8"][..], "startup_ns", "cold"),
        (
            &[
                "throughput",
                "--mode",
                "message",
                "--size",
                "64KiB",
                "--budget",
                "100ms",
            ],
            "throughput_bps",
            "warm",
        ),
        (
            &["throughput", "--size", "64KiB", "--budget", "1s"],
            "throughput_bps",
            "warm",
        ),
        (
            &["rate", "--size", "8", "--budget", "100ms"],
            "rate_per_s",
            "warm",
        ),
        (
            &[
                "collective",
                "allreduce",
                "--ranks",
                "3",
                "--size",
                "8",
                "--budget",
                "200ms",
            ],
            "collective_ns",
            "warm",
        ),
    ] {
        let path = ["--path", "native:tcp"];
        let outcome = probe(&stage, &[words, &path, &LAB].concat()).expect(0);
        let rows = rows(&outcome.out);
        let found = of(&rows, &[("quantity", quantity), ("phase", phase)]);
        let measured = found.iter().filter(|row| row["status"] == "measured");
        assert!(measured.count() > 0, "{words:?}: {outcome}");
        if words[0] == "startup" {
            for step in ["spawn", "init", "first", "second"] {
                assert_eq!(of(&rows, &[("step", step)]).len(), 1, "{step}: {outcome}");
            }
        }
        if words[0] == "collective" {
            assert_eq!(found[0]["knobs"]["call"], "allreduce", "{outcome}");
            assert_eq!(found[0]["knobs"]["ranks"], "3", "{outcome}");
        }
    }
}

#[test]
fn open_mpi_is_measured_over_the_lab() {
    if !has("mpicc.openmpi") || !has("mpirun.openmpi") {
        return;
    }
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    if !built(&stage, "openmpi") {
        return;
    }
    let words = [
        "latency",
        "--path",
        "openmpi:tcp",
        "--size",
        "8,4KiB",
        "--budget",
        "100ms",
    ];
    let call = probe(&stage, &[&words[..], &LAB].concat());
    let mark = call.mark().to_string();
    let outcome = call.expect(0);
    let rows = rows(&outcome.out);
    let warm = of(&rows, &[("path", "openmpi:tcp"), ("phase", "warm")]);
    assert_eq!(warm.len(), 2, "{outcome}");
    for row in warm {
        assert_eq!(
            (&row["status"], &row["wait"]),
            (&"measured".into(), &"poll".into()),
            "{row}"
        );
        // Over a wire, not through memory: two frames of a gigabit take a microsecond at least.
        assert!(row["min"].as_f64().unwrap() > 1_000.0, "{row}");
    }
    gone(&stage, &mark);
}

#[test]
fn pvm_is_measured_by_both_routes() {
    if !has("pvm") {
        return;
    }
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    if !built(&stage, "pvm") {
        return;
    }
    let words = [
        "latency",
        "--path",
        "pvm:default,pvm:direct",
        "--size",
        "1,4KiB",
        "--budget",
        "100ms",
    ];
    let call = probe(&stage, &[&words[..], &LAB].concat());
    let mark = call.mark().to_string();
    let outcome = call.expect(0);
    let rows = rows(&outcome.out);
    for path in ["pvm:default", "pvm:direct"] {
        let warm = of(&rows, &[("path", path), ("phase", "warm")]);
        assert_eq!(warm.len(), 2, "{path}: {outcome}");
        assert!(
            warm.iter().all(|row| row["status"] == "measured"),
            "{outcome}"
        );
        assert!(warm.iter().all(|row| row["wait"] == "block"), "{outcome}");
    }
    // From task to task is surely shorter than through two daemons: by the best of many, which others' work does not move.
    for size in [1, 4096] {
        let best = |path: &str| {
            let warm = of(&rows, &[("path", path), ("phase", "warm")]);
            let row = warm.into_iter().find(|row| row["size_bytes"] == size);
            row.and_then(|row| row["min"].as_f64()).unwrap()
        };
        let (direct, by_daemons) = (best("pvm:direct"), best("pvm:default"));
        assert!(
            direct < by_daemons,
            "{size} B: {direct} {by_daemons}: {outcome}"
        );
    }
    gone(&stage, &mark);
}

#[test]
fn four_tasks_of_pvm_on_one_host() {
    if !has("pvm") {
        return;
    }
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    if !built(&stage, "pvm") {
        return;
    }
    let words = "collective alltoall --testbed local --ranks 4 --path pvm:default,pvm:direct --size 8 --budget 100ms";
    let words: Vec<&str> = words.split(' ').collect();
    let out = stage.path("runs");
    let call = stage
        .sonde(&["probe"])
        .env("SONDE_RANK", stage.path("sonde-rank"))
        .env("SONDE_ADAPTERS", stage.path("adapters"));
    let mut call = call.limit(120);
    call.command
        .args(&words)
        .args(["--quick", "--json", "--out", &out]);
    let mark = call.mark().to_string();
    let outcome = call.expect(0);
    let rows = rows(&outcome.out);
    for path in ["pvm:default", "pvm:direct"] {
        let wanted = [
            ("path", path),
            ("phase", "warm"),
            ("quantity", "collective_ns"),
        ];
        let warm = of(&rows, &wanted);
        assert_eq!(warm.len(), 1, "{path}: {outcome}");
        assert_eq!(warm[0]["knobs"]["ranks"], "4", "{outcome}");
        assert!(warm[0]["p50"].as_f64().unwrap() > 0.0, "{outcome}");
    }
    gone(&stage, &mark);
}

#[test]
fn a_load_comes_to_every_host_that_has_a_rank() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    for (ranks, loaded) in [("3", 3), ("2", 2)] {
        let words = "collective allreduce --path native:tcp --size 8 --budget 50ms --network atm-oc3c --hosts 4 --load 0.3 --ranks";
        let words: Vec<&str> = words.split(' ').chain([ranks]).collect();
        let call = probe(&stage, &words);
        let mark = call.mark().to_string();
        drop(call.expect(0));
        let out = stage.path("runs");
        let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
        let text = export.expect(0).out;
        let export: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let launches = export["run"]["launches"].as_array().unwrap();
        assert!(!launches.is_empty());
        for launch in launches {
            let flows = launch["evidence"]["load_flows"].as_object().unwrap();
            let achieved = flows.values().filter(|flow| flow["achieved"].is_number());
            let is_wanted = |flow: &&Value| flow["wanted"].as_f64() > Some(0.0);
            let wanted = flows.values().filter(is_wanted).count();
            assert!(
                wanted == loaded && achieved.count() >= loaded,
                "{ranks}: {flows:#?}"
            );
        }
        gone(&stage, &mark);
    }
}

#[test]
fn what_is_missing_is_said_in_the_row() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    let words = [
        "latency",
        "--path",
        "ucx:tcp,native:tcp",
        "--size",
        "8",
        "--budget",
        "50ms",
    ];
    let empty = stage.path("nothing");
    let call = probe(&stage, &[&words[..], &LAB].concat());
    let outcome = call
        .env("SONDE_ADAPTERS", &empty)
        .env("HOME", &empty)
        .output();
    let rows = rows(&outcome.out);
    let missing = of(&rows, &[("path", "ucx:tcp")]);
    assert!(!missing.is_empty(), "{outcome}");
    for row in missing {
        assert_eq!(row["status"], "skipped", "{row}");
        assert!(row["p50"].is_null(), "{row}");
        let reason = row["reason"].as_str().unwrap();
        assert!(reason.contains("sonde doctor --build-adapters"), "{reason}");
        assert!(reason.contains("libucx-dev"), "{reason}");
    }
    let native = of(&rows, &[("path", "native:tcp"), ("status", "measured")]);
    assert!(!native.is_empty(), "the others are measured: {outcome}");
}

#[test]
fn a_path_that_is_none_lists_what_there_is() {
    let stage = Stage::new(Case::own("veth"));
    let outcome = stage
        .sonde(&["probe", "latency", "--path", "openmpi:xx"])
        .expect(64);
    for name in ["tcp", "native:shm", "openmpi:sm", "pvm:direct"] {
        assert!(outcome.err.contains(name), "{name}: {outcome}");
    }
    let outcome = stage
        .sonde(&["probe", "collective", "allreduce", "--path", "udp"])
        .expect(64);
    assert!(
        outcome.err.contains("udp has no collective calls"),
        "{outcome}"
    );
    let outcome = stage.sonde(&["probe", "collective", "allsum"]).expect(64);
    assert!(outcome.err.contains("alltoall"), "{outcome}");
}

#[test]
fn a_killed_command_leaves_no_rank() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    let words = [
        "latency",
        "--path",
        "native:tcp",
        "--size",
        "8",
        "--budget",
        "60s",
        "--samples",
        "1000000000",
        "--precision",
        "0",
    ];
    let running = probe(&stage, &[&words[..], &LAB].concat()).start();
    let mark = running.mark.clone();
    let both = eventually(|| ranks(&stage), |count| *count == 2);
    assert_eq!(both, 2, "both ranks run");
    drop(running);
    gone(&stage, &mark);
}
