//! Streams by libraries over slow emulated networks, held against the model's bound, which nothing that is sound exceeds.
//!
//! Model:   a library may end many messages at once, long after their bytes crossed; its receiver's rate is then that of what
//!          waited. And what a library takes at once may need many seconds on a slow line. The bound is the network's
//!          own, in the record of the run.

use crate::lab;
use crate::lab::{Case, Stage, attachments, skip};
use serde_json::Value;
use sonde_sys::noise::measured;

/// The most that a figure may lie above the bound: the lab's clock, read at two ends of a second.
const ABOVE: f64 = 1.003;

/// A stage with the ranks' program and the adapters.
fn stage(case: Case) -> Option<Stage> {
    let rank = lab::sonde().with_file_name("sonde-rank");
    if !rank.is_file() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return None;
    }
    let stage = Stage::new(case);
    stage.copy_in(&rank);
    let build = stage.sonde(&["doctor", "--build-adapters"]);
    let build = build.env("SONDE_ADAPTERS", stage.path("adapters"));
    drop(build.limit(120).output());
    Some(stage)
}

/// The paths whose library is here; those that are not are told.
fn paths(stage: &Stage, all: &[&'static str]) -> Vec<&'static str> {
    let is_here = |path: &&&str| {
        let library = path.split(':').next().unwrap_or(path);
        let file = format!("adapters/sonde-{library}.so");
        let is_here = library == "native" || stage.folder.join(file).is_file();
        if !is_here {
            println!("left out: {path} for want of its adapter");
        }
        is_here
    };
    all.iter().filter(is_here).copied().collect()
}

/// The throughputs of streams of 64 KiB over a network, a row a path.
fn streams(stage: &Stage, network: &str, paths: &[&str], launches: &str) -> Vec<Value> {
    let (out, paths) = (stage.path("runs"), paths.join(","));
    let mut words = vec!["probe", "throughput", "--mode", "stream", "--json"];
    words.extend(["--path", &paths, "--size", "64KiB", "--launches", launches]);
    words.extend(["--testbed", "lab", "--network", network, "--hosts", "2"]);
    words.extend(["--out", &out, "--attachment", stage.case.attachment]);
    let mut call = stage.sonde(&words);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    let call = call
        .env("SONDE_RANK", stage.path("sonde-rank"))
        .env("SONDE_ADAPTERS", stage.path("adapters"));
    let outcome = call.limit(580).output();
    let document: Value =
        serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{outcome}"));
    let rows = document["results"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["quantity"] == "throughput_bps");
    let rows: Vec<Value> = rows.cloned().collect();
    assert!(
        rows.iter().all(|row| row["status"] == "measured"),
        "{outcome}"
    );
    rows
}

/// What the headers leave of a network, as the command itself lists it.
fn bound_bps(stage: &Stage, network: &str) -> f64 {
    let listed = stage.sonde(&["lab", "list", "--json"]).expect(0);
    let document: Value = serde_json::from_str(&listed.out).unwrap();
    let mut networks = document["networks"].as_array().unwrap().iter();
    let network = networks.find(|one| one["name"] == network).unwrap();
    network["tcp_max_bps"].as_f64().unwrap()
}

#[test]
fn no_library_seems_faster_than_its_line() {
    measured(|| {
        let Some(&case) = attachments().first() else {
            return;
        };
        let Some(stage) = stage(case) else { return };
        let all = ["openmpi:tcp", "mpich:tcp", "native:tcp", "pvm:direct"];
        let paths = paths(&stage, &all);
        let bound = bound_bps(&stage, "sci-sbus");
        let rows = streams(&stage, "sci-sbus", &paths, "6");
        assert_eq!(rows.len(), paths.len());
        for row in rows {
            let share = row["max"].as_f64().unwrap() / bound;
            println!("{}: {share:.4} of the bound", row["path"]);
            assert!(share <= ABOVE, "{share}: {row}");
            // And it is a rate of that line: nothing that crossed is left out.
            let share = row["p50"].as_f64().unwrap() / bound;
            assert!(share > 0.5, "{share}: {row}");
        }
    });
}

#[test]
fn a_stream_over_the_slowest_lines_ends_with_a_figure() {
    measured(|| {
        let Some(&case) = attachments().first() else {
            return;
        };
        let Some(stage) = stage(case) else { return };
        let paths = paths(&stage, &["openmpi:tcp", "mpich:tcp", "native:tcp"]);
        for network in ["atm-ds1", "satellite"] {
            let bound = bound_bps(&stage, network);
            let rows = streams(&stage, network, &paths, "1");
            assert_eq!(rows.len(), paths.len(), "{network}");
            for row in rows {
                let share = row["max"].as_f64().unwrap() / bound;
                println!("{network}, {}: {share:.4} of the bound", row["path"]);
                assert!(share > 0.2 && share <= ABOVE, "{network}: {share}: {row}");
            }
        }
    });
}
