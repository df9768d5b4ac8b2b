//! `sonde probe check` over every library that is installed: collectives against the oracle and messages of all kinds, on 1 to 17
//! ranks of this machine.
//!
//! Model:   fewer cases the more ranks there are, since ranks outnumber the CPUs; each number of ranks has a seed of its own, so
//!          that other cases are drawn. What is not installed says `skipped:`.

mod lab;

use lab::{Case, Stage, skip};
use serde_json::Value;

/// Numbers of ranks, cases, and the limit of a call in seconds.
const PLAN: [(&str, &str, u64); 3] = [
    ("1,2,3", "40", 120),
    ("4..9", "10", 180),
    ("10..17", "3", 240),
];

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
fn on_all_ranks(paths: &[&str]) {
    if !lab::sonde().with_file_name("sonde-rank").is_file() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return;
    }
    let stage = Stage::new(Case::own("veth"));
    for plan in PLAN {
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
fn ucx_and_libfabric_are_right_on_1_to_17_ranks() {
    on_all_ranks(&["ucx:tcp", "ucx:posix", "ofi:tcp", "ofi:shm"]);
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let stage = Stage::new(Case::own("veth"));
    for (words, code, said) in [
        (&["--ranks", "0"][..], 64, "1..17"),
        (&["--path", "tcp"], 64, "native:tcp"),
        (&["--cases", "0"], 64, "1..=100000"),
        (&["--testbed", "slurm:srun"], 64, "cannot be used here"),
    ] {
        let outcome = stage
            .sonde(&[&["probe", "check"][..], words].concat())
            .output();
        assert_eq!(outcome.code, code, "{words:?}: {outcome}");
        assert!(outcome.err.contains(said), "{words:?}: {outcome}");
    }
}
