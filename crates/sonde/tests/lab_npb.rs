//! The kernels of the NAS benchmarks by `sonde npb` and by a plan: over a lab, over every library here, alone, refused and broken.
//!
//! Model:   class S throughout. Of a run only what holds of any is checked: that all results are the official ones, that messages
//!          were counted and add up, that nothing is left behind. What is not installed says `skipped:`.

mod lab;

use lab::{Call, Case, Stage, attachments, eventually, marked, skip};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const KERNELS: [&str; 8] = ["ep", "cg", "mg", "ft", "is", "lu", "sp", "bt"];

/// A stage with the ranks' program where its user sees it.
fn stage(case: Case) -> Option<Stage> {
    let rank = lab::sonde().with_file_name("sonde-rank");
    if !rank.is_file() {
        skip("sonde-rank beside the command: `cargo build --release -p sonde-rank`");
        return None;
    }
    let stage = Stage::new(case);
    stage.copy_in(&rank);
    Some(stage)
}

fn call(stage: &Stage, words: &[&str]) -> Call {
    stage
        .sonde(words)
        .env("SONDE_RANK", stage.path("sonde-rank"))
        .env("SONDE_ADAPTERS", stage.path("adapters"))
        .limit(120)
}

fn npb(stage: &Stage, words: &[&str]) -> Call {
    call(stage, &[&["npb"], words].concat())
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Holds a result of class S on four ranks against what every one must be.
fn assert_is_right(result: &Value) {
    assert_eq!(result["verified"], true, "{result:#}");
    assert!(result["error"].is_null(), "{result:#}");
    let number = |name: &str| result[name].as_f64().unwrap();
    assert!(number("time_s") > 0.0 && number("mop_per_s") > 0.0);
    let share = number("communicating_share");
    assert!((0.0..=1.0).contains(&share), "{share}");
    let launch = &result["launch"];
    let sent = launch["runs"][0]["sent"]["messages"].as_u64().unwrap();
    let ranks = launch["ranks"].as_array().unwrap();
    assert_eq!(ranks.len() as u64, result["ranks"].as_u64().unwrap());
    let sum = ranks
        .iter()
        .flat_map(|rank| rank["messages_to"].as_array().unwrap());
    let sum: u64 = sum.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(sent, sum, "{}", result["kernel"]);
}

fn results<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    let all = document["results"].as_array().unwrap().iter();
    all.filter(|result| result["path"] == path).collect()
}

#[test]
fn all_eight_run_between_the_hosts_of_a_lab() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    let words = [
        "all",
        "--testbed",
        "lab",
        "--network",
        "ethernet-1g",
        "--path",
        "native:tcp",
        "--json",
        "--attachment",
        case.attachment,
    ];
    let mut call = npb(&stage, &words);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    let mark = call.mark().to_string();
    let document = document(&call.expect(0).out);
    let found = results(&document, "native:tcp");
    let kernels: Vec<&str> = found
        .iter()
        .map(|result| result["kernel"].as_str().unwrap())
        .collect();
    assert_eq!(kernels, KERNELS);
    for result in found {
        assert_is_right(result);
        let messages = &result["launch"]["runs"][0]["sent"]["messages"];
        assert!(messages.as_u64().unwrap() > 0, "{result:#}");
        let hosts = result["facts"]["ranks.hosts"].as_str().unwrap();
        assert_eq!(hosts, "h1 h2 h3 h4");
    }
    let left = eventually(|| marked(&mark), Vec::is_empty);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn all_eight_run_by_every_library_here() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let build = call(&stage, &["doctor", "--build-adapters"]);
    drop(build.output());
    let paths = [
        "native:shm",
        "pvm:default",
        "pvm:direct",
        "openmpi",
        "mpich",
    ];
    let outcome = npb(&stage, &["all", "--json", "--path", &paths.join(",")]).output();
    let document = document(&outcome.out);
    let mut lacking = 0;
    for path in [
        "native:shm",
        "pvm:default",
        "pvm:direct",
        "openmpi:sm",
        "mpich:sm",
    ] {
        let found = results(&document, path);
        if found.is_empty() {
            lacking += 1;
            skip(&format!("{path}: {}", document["left_out"]));
            continue;
        }
        assert_eq!(found.len(), KERNELS.len(), "{path}: {outcome}");
        found.into_iter().for_each(assert_is_right);
    }
    assert!(!results(&document, "native:shm").is_empty(), "{outcome}");
    assert_eq!(outcome.code, i32::from(lacking > 0), "{outcome}");
}

/// The other rank has finished long before rank 0 hears of it, and is not to take that for a loss.
#[test]
fn a_rank_far_away_leaves_in_order() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    drop(call(&stage, &["doctor", "--build-adapters"]).output());
    let words = [
        "ep",
        "--ranks",
        "2",
        "--testbed",
        "lab",
        "--hosts",
        "2",
        "--attachment",
        "veth",
        "--network",
        "wire:delay=150ms",
        "--path",
        "pvm:default,pvm:direct",
        "--json",
    ];
    let outcome = npb(&stage, &words).output();
    if outcome.code == 2 && outcome.err.contains("pvm") {
        skip(&outcome.err);
        return;
    }
    let document = document(&outcome.out);
    for path in ["pvm:default", "pvm:direct"] {
        let found = results(&document, path);
        assert_eq!(found.len(), 1, "{path}: {outcome}");
        assert_is_right(found[0]);
    }
}

#[test]
fn one_rank_runs_by_no_library() {
    let stage = Stage::new(Case::own("veth"));
    let empty = stage.path("nothing");
    let call = stage
        .sonde(&["npb", "all", "--ranks", "1", "--runs", "2", "--json"])
        .env("SONDE_RANK", &empty);
    let outcome = call.limit(60).expect(0);
    let document = document(&outcome.out);
    let found = results(&document, "sequential");
    assert_eq!(found.len(), KERNELS.len(), "{outcome}");
    for result in found {
        assert_is_right(result);
        assert_eq!(result["launch"]["runs"].as_array().unwrap().len(), 2);
        assert_eq!(result["launch"]["runs"][1]["sent"]["messages"], 0);
    }
}

#[test]
fn a_block_and_a_table_are_printed_and_a_matrix_is_written() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let matrix = stage.path("matrix.json");
    let outcome = npb(&stage, &["sp", "--collapsed", "--matrix", &matrix]).expect(0);
    for line in [
        "sp S on 4 by native:shm",
        " Benchmark       =                           SP",
        " Class           =                            S",
        " Total processes =                            4",
        " Verification    =                   SUCCESSFUL",
        "communicating",
    ] {
        assert!(outcome.out.contains(line), "{line}: {outcome}");
    }
    let matrix = document(&std::fs::read_to_string(matrix).unwrap());
    assert_eq!(
        (&matrix["schema"], &matrix["ranks"]),
        (&"sonde-matrix/1".into(), &4.into())
    );
    assert!(matrix["bytes"][0][1].as_u64().unwrap() > 0, "{matrix}");
}

#[test]
fn a_plan_makes_rows_of_kernels() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let plan = stage.path("kernels.toml");
    let text = "[testbed]\nkind = \"local\"\n[repeat]\nlaunches = 2\nmax = 2\n[[probe]]\nkind = \"npb\"\n\
        path = [\"native:shm\"]\n[probe.with]\nkernel = [\"cg\", \"lu\"]\nclass = [\"S\"]\nranks = [\"4\", \"6\"]\n";
    std::fs::write(&plan, text).unwrap();
    let dry = call(&stage, &["assess", &plan, "--dry-run"]).expect(0);
    assert!(dry.out.contains("npb lu S on 6"), "{dry}");
    let out = stage.path("runs");
    let outcome = call(&stage, &["assess", &plan, "--json", "--out", &out]).expect(0);
    let document = document(&outcome.out);
    let rows = document["results"].as_array().unwrap();
    let of = |kernel: &str, ranks: &str, quantity: &str| {
        let is = |row: &&Value| {
            let knobs = &row["knobs"];
            row["quantity"] == quantity && knobs["kernel"] == kernel && knobs["ranks"] == ranks
        };
        rows.iter()
            .find(is)
            .unwrap_or_else(|| panic!("{kernel} {ranks} {quantity}: {outcome}"))
    };
    for quantity in [
        "kernel_ns",
        "mop_per_s",
        "communicating_share",
        "messages",
        "message_bytes_mean",
        "message_bytes_median",
    ] {
        for (kernel, ranks) in [("cg", "4"), ("lu", "4"), ("lu", "6")] {
            let row = of(kernel, ranks, quantity);
            assert_eq!(row["status"], "measured", "{row:#}");
            assert_eq!(
                (&row["layer"], &row["probe"]),
                (&"application".into(), &"npb".into())
            );
            assert_eq!(
                (&row["launches"], &row["size_bytes"]),
                (&2.into(), &Value::Null)
            );
        }
    }
    let left_out = of("cg", "6", "kernel_ns");
    assert_eq!(left_out["status"], "skipped", "{left_out:#}");
    let reason = left_out["reason"].as_str().unwrap();
    assert!(
        reason.contains("cg S on 6") && reason.contains("power of two"),
        "{reason}"
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let empty = stage.path("nothing");
    for (words, code, said) in [
        (&["cg", "--ranks", "3"][..], 64, "power of two"),
        (&["sp,bt", "--ranks", "2"], 64, "square"),
        (&["lu", "--ranks", "5"], 64, "4 is near"),
        (&["cg", "--class", "D"], 64, "parameters alone"),
        (&["cg", "--class", "E"], 64, "S, W, A"),
        (&["dg"], 64, "or all"),
        (&["cg", "--ranks", "0"], 64, "1,2,4"),
        (&["cg", "--path", "openmpi:ib"], 64, "openmpi:sm"),
        (&["mg", "--size", "points=many"], 64, "whole number"),
        (&["all", "--matrix", "m.json"], 64, "one launch"),
        (&["cg", "--load", "0.5"], 64, "--testbed lab"),
        (
            &["cg", "--testbed", "lab", "--path", "native:shm"],
            64,
            "--collapsed",
        ),
        (
            &["ft", "--size", "nx=8192:ny=8192:nz=8192"],
            2,
            "MiB are available",
        ),
        (&["cg", "--path", "ucx:tcp"], 2, ""),
    ] {
        let call = npb(&stage, words)
            .env("SONDE_ADAPTERS", &empty)
            .env("HOME", &empty);
        let outcome = call.limit(30).output();
        assert_eq!(outcome.code, code, "{words:?}: {outcome}");
        assert!(outcome.err.contains(said), "{words:?}: {outcome}");
        assert!(outcome.out.is_empty(), "{words:?}: {outcome}");
    }
}

/// The ranks of a stage: its copy of their program is nobody else's.
fn ranks(program: &PathBuf) -> Vec<u32> {
    let rank = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let own = std::fs::read_link(entry.path().join("exe")).ok()?;
        (own == *program).then(|| entry.file_name().to_str()?.parse().ok())?
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(rank).collect()
}

#[test]
fn a_killed_rank_ends_the_kernel_with_a_word() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let program = PathBuf::from(stage.path("sonde-rank"));
    let program = program.canonicalize().unwrap();
    // So long that it is still under way.
    let words = ["lu", "--class", "B", "--path", "native:shm"];
    let mut running = npb(&stage, &words).start();
    let begun = eventually(|| ranks(&program), |ranks| ranks.len() == 4);
    assert!(begun.len() == 4 && running.is_alive(), "{begun:?}");
    std::thread::sleep(Duration::from_millis(700));
    let victim = begun.iter().max().unwrap().to_string();
    let killed = Command::new("kill").args(["-9", &victim]).status();
    assert!(killed.unwrap().success());
    let left = eventually(|| ranks(&program), Vec::is_empty);
    assert!(left.is_empty(), "{left:?} of {begun:?} go on");
    let outcome = running.finish();
    assert_eq!(outcome.code, 2, "{outcome}");
    assert!(outcome.err.contains("lu B on 4 by native:shm"), "{outcome}");
    let named = ["is gone", "by signal 9", "(signal 9)"];
    let is_named = named.iter().any(|words| outcome.err.contains(words));
    assert!(is_named, "{outcome}");
}
