//! Real-time priority of a lab's own processes: who has it, for how long, and who has not.
//!
//! Model:   root may give it where its control group has a share of real-time; else each test says why it is skipped, by the words of
//!          `sonde doctor`.

use crate::lab::{Case, Process, Stage, eventually, is_root, members, report, skip};
use crate::paired::lab_files::document_of;
use sonde_sys::cpu;

/// A stage of root, where the kernel permits real-time priority.
fn stage() -> Option<Stage> {
    if !is_root() {
        skip("root, who may give real-time priority");
        return None;
    }
    let stage = Stage::new(Case::own("veth"));
    let checks = stage.sonde(&["doctor"]).output().out;
    let line = checks.lines().find(|line| line.contains("start of a lab"));
    let line = line.expect("doctor starts a lab");
    if line.contains("with real-time priority") {
        return Some(stage);
    }
    skip(line);
    None
}

/// Of the processes of a call those that have it, by their command lines.
fn with_priority(mark: &str) -> Vec<String> {
    let has_it = |process: &Process| cpu::is_real_time(process.pid).unwrap_or(false);
    let with = members(mark).into_iter().filter(has_it);
    with.map(|process| process.line).collect()
}

#[test]
fn a_switch_and_its_inits_have_it_and_no_program_of_the_user_has() {
    let Some(stage) = stage() else { return };
    let running = stage.run(&["--hosts", "3"], &["sleep", "60"]).start();
    let mark = running.mark.clone();
    let is_up = |all: &Vec<Process>| all.iter().any(|one| one.line.starts_with("sleep"));
    assert!(is_up(&eventually(|| members(&mark), is_up)));
    let with = with_priority(&mark);
    let of = |part: &str| with.iter().filter(|words| words.contains(part)).count();
    assert_eq!(
        (of("--sonde-lab-switch"), of("--sonde-lab-host")),
        (1, 3),
        "{with:#?}"
    );
    assert_eq!(with.len(), 4, "nothing else has it: {with:#?}");

    // Its turn ends with it, and no other command has it meanwhile.
    let path = stage.path("second.json");
    stage.run(&["--report", &path], &["true"]).expect(0);
    assert_eq!(report(&path)["priority"], "usual");
    drop(running);
    assert!(eventually(|| members(&mark), Vec::is_empty).is_empty());
    stage.run(&["--report", &path], &["true"]).expect(0);
    assert_eq!(report(&path)["priority"], "real-time");
    let usual = ["--report", &path, "--priority", "usual"];
    stage.run(&usual, &["true"]).expect(0);
    assert_eq!(report(&path)["priority"], "usual");
}

#[test]
fn one_message_under_way_has_it_and_streams_have_not() {
    let Some(stage) = stage() else { return };
    let workers_of = |probe: &str, more: &[&str]| {
        let out = stage.path("runs");
        let lab = [
            "--testbed",
            "lab",
            "--network",
            "ethernet-100",
            "--out",
            &out,
        ];
        let mut call = stage.sonde(&["probe", probe, "--path", "tcp", "--launches", "2"]);
        call.command.args(lab).args(more);
        let mut running = call.start();
        let mark = running.mark.clone();
        let mut seen = [0, 0];
        while running.is_alive() {
            let all = members(&mark);
            for worker in all.iter().filter(|one| one.line.contains("--sonde-worker")) {
                seen[usize::from(cpu::is_real_time(worker.pid).unwrap_or(false))] += 1;
            }
        }
        let outcome = running.finish();
        assert_eq!(outcome.code, 0, "{outcome}");
        let export = stage.sonde(&["report", "export", "latest", "--json", "--out", &out]);
        let document = document_of(&export.expect(0).out);
        let launches = document["run"]["launches"].as_array().unwrap().clone();
        assert!(!launches.is_empty());
        for launch in launches {
            let had = &launch["evidence"]["emulation"]["priority"];
            assert_eq!(had, "real-time", "{launch:#}");
        }
        seen
    };
    let [usual, real_time] = workers_of("latency", &["--size", "1", "--samples", "20000"]);
    assert!(real_time > usual && real_time > 0, "{usual} {real_time}");
    // A worker begins as its agent is, until it knows what it is to do.
    let [usual, real_time] = workers_of("throughput", &["--size", "64K"]);
    assert!(usual > real_time, "{usual} {real_time}");
}

#[test]
fn a_switch_that_is_busy_gives_it_up() {
    let Some(stage) = stage() else { return };
    // Full lines of the shortest frames: more than a CPU can forward.
    let path = stage.path("report.json");
    let load = [
        "--network",
        "ethernet-10g",
        "--load",
        "0.9:size=64",
        "--hosts",
        "2",
    ];
    let call = stage.run(&[&load[..], &["--report", &path]].concat(), &["sleep", "6"]);
    call.limit(240).expect(0);
    let report = report(&path);
    assert_eq!(report["priority"], "given-up", "{report:#}");
}
