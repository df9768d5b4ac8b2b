//! `sonde probe check` over every library that is installed: collectives against the oracle and messages of all kinds, on 1 to 17
//! ranks of this machine; each number of them in the long tier.
//!
//! Model:   fewer cases the more ranks there are, since ranks outnumber the CPUs; each number of ranks has a seed of its own, so
//!          that other cases are drawn. What is not installed says `skipped:`. A run that is killed goes on where it was.

use crate::lab;
use crate::lab::{Case, Stage, skip};
use serde_json::Value;

/// Numbers of ranks, cases, and the limit of a call in seconds.
const EACH: [(&str, &str, u64); 3] = [
    ("1,2,3", "40", 120),
    ("4..9", "6", 180),
    ("10..17", "1", 240),
];
/// One, two, three, a power of two and what is none, and the most: the long tier alone has each number.
const SOME: [(&str, &str, u64); 3] = [("1,2,3", "12", 120), ("5,8", "4", 180), ("17", "1", 240)];

fn check(stage: &Stage, paths: &[&str], (ranks, cases, limit): (&str, &str, u64)) -> (i32, Value) {
    let paths = paths.join(",");
    let words = [
        "probe",
        "check",
        "--testbed",
        "local",
        "--json",
        "--path",
        &paths,
    ];
    let more = [
        "--ranks",
        ranks,
        "--cases",
        cases,
        "--seed",
        &limit.to_string(),
    ];
    let call = stage.sonde(&[&words[..], &more[..]].concat()).limit(limit);
    let outcome = call.output();
    let document = serde_json::from_str(&outcome.out);
    let document = document.unwrap_or_else(|error| panic!("{error}: {outcome}"));
    (outcome.code, document)
}

/// Over these paths, each number of ranks of the plan.
pub fn on_all_ranks(paths: &[&str]) {
    if !lab::sonde().with_file_name("sonde-rank").is_file() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return;
    }
    let stage = Stage::new(Case::own("veth"));
    for plan in if lab::is_long() { EACH } else { SOME } {
        let (code, document) = check(&stage, paths, plan);
        for lacking in document["lacking"].as_array().unwrap() {
            skip(&format!("{}: {}", lacking["path"], lacking["why"]));
        }
        let checks = document["checks"].as_array().unwrap();
        for check in checks {
            assert_eq!(check["sound"], true, "{check:#}");
            let number = |name: &str| check[name].as_u64().unwrap();
            let cases: u64 = plan.1.parse().unwrap();
            // One of each kind, those that were drawn, and those within a group.
            assert!(number("collectives") >= cases + 9, "{check:#}");
            assert!(number("messages") > 0, "{check:#}");
            let is_mpi = ["openmpi", "mpich"]
                .iter()
                .any(|mpi| check["path"].as_str().unwrap().starts_with(mpi));
            assert_eq!(number("by_library") > 8, is_mpi, "{check:#}");
            println!(
                "{} on {}: {:.1} s",
                check["path"],
                check["ranks"],
                check["took_s"].as_f64().unwrap()
            );
        }
        if document["lacking"].as_array().unwrap().is_empty() {
            assert_eq!(code, 0, "{document:#}");
        }
    }
}

#[test]
fn the_native_engine_is_right_on_1_to_17_ranks() {
    on_all_ranks(&["native:tcp", "native:unix", "native:shm"]);
}

#[test]
fn open_mpi_is_right_on_1_to_17_ranks() {
    on_all_ranks(&["openmpi:sm"]);
}

#[test]
fn mpich_is_right_on_1_to_17_ranks() {
    on_all_ranks(&["mpich:sm"]);
}

#[test]
fn pvm_is_right_on_1_to_17_ranks() {
    on_all_ranks(&["pvm:default", "pvm:direct"]);
}

#[test]
fn a_check_is_kept_and_goes_on() {
    if !lab::sonde().with_file_name("sonde-rank").is_file() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return;
    }
    let stage = Stage::new(Case::own("veth"));
    let out = stage.path("kept");
    let words: Vec<&str> = "probe check --testbed local --path native:shm,native:tcp --ranks 1..3 --cases 30 --launches 4 --out"
        .split(' ')
        .chain([&*out])
        .collect();
    let with = |more: &[&str]| stage.sonde(&[&words[..], more].concat()).limit(120);
    let document = |text: &str| -> Value {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let dry = with(&["--dry-run"]).expect(0);
    assert!(dry.out.contains("6 cells, 24 repetitions"), "{dry}");
    let planned = document(&with(&["--dry-run", "--json"]).expect(0).out);
    assert_eq!(
        planned["blocks"][0]["program"], "30 cases on 1",
        "{planned:#}"
    );
    let file = stage.path("plan.toml");
    std::fs::write(&file, with(&["--print-plan"]).expect(0).out).unwrap();
    let same = stage.sonde(&["assess", &file, "--dry-run"]).expect(0);
    assert_eq!(same.out, dry.out);
    assert!(
        !std::path::Path::new(&out).exists(),
        "nothing was checked: {dry}"
    );

    let mut running = with(&["--json-stream"]).start();
    running.wait_for("\"event\":\"row\"");
    // By kill -9.
    drop(running);
    let report = |words: &[&str]| {
        let all = [&["report"], words, &["--out", &out]].concat();
        stage.sonde(&all).output()
    };
    let launches = || {
        let run = document(&report(&["export", "--json"]).out);
        run["run"]["launches"].as_array().map_or(0, Vec::len)
    };
    let before = launches();
    assert!((1..24).contains(&before), "{before}");
    let resume = ["probe", "check", "--resume", "--json", "--out", &out];
    let resumed = stage.sonde(&resume).limit(120).expect(0);
    let resumed = document(&resumed.out);
    let checks = resumed["checks"].as_array().unwrap();
    assert_eq!((checks.len(), launches()), (24, 24), "each launch once");
    assert!(
        checks.iter().all(|check| check["sound"] == true),
        "{resumed:#}"
    );
    let id = resumed["run"].as_str().unwrap();
    let shown = report(&["show", id]);
    for part in ["Libraries compared with", "native:shm", "right"] {
        assert!(shown.out.contains(part), "{part}: {shown}");
    }
    let csv = report(&["export", "--csv"]);
    let is_counted =
        |line: &str| line.starts_with("check,library,native:") && line.contains(",checks,");
    let counted = csv.out.lines().filter(|line| is_counted(line)).count();
    assert_eq!(counted, 6, "{csv}");
    // Too few launches to tell anything of them.
    assert_eq!(report(&["compare", id, id]).code, 3);
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let stage = Stage::new(Case::own("veth"));
    for (words, code, said) in [
        (&["--ranks", "0"][..], 64, "1..17"),
        (&["--path", "tcp"], 64, "native:tcp"),
        (&["--cases", "0"], 64, "1..=100000"),
        (
            &["--testbed", "hosts:./nowhere", "--dry-run"],
            64,
            "nowhere",
        ),
    ] {
        let outcome = stage
            .sonde(&[&["probe", "check"][..], words].concat())
            .output();
        assert_eq!(outcome.code, code, "{words:?}: {outcome}");
        assert!(outcome.err.contains(said), "{words:?}: {outcome}");
    }
}
