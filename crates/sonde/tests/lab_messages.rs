//! Messages of a program without what it computes: by `sonde probe messages` and by a plan, over a lab and over every library here,
//! from an own run, and refused.
//!
//! Model:   small statistics. That messages are those asked for is checked by the ranks themselves, and here again by the rows. What
//!          is not installed says `skipped:`.

use crate::lab;
use crate::lab::{Call, Case, Stage, attachments, eventually, marked, skip};
use serde_json::Value;

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
        .limit(180)
}

fn messages(stage: &Stage, words: &[&str]) -> Call {
    let out = stage.path("runs");
    let beside = ["--json", "--launches", "1", "--out", &out];
    call(stage, &[&["probe", "messages"], words, &beside].concat())
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The rows of a path: each quantity with its status and median.
fn rows<'a>(document: &'a Value, path: &str) -> Vec<(&'a str, &'a str, f64)> {
    let all = document["results"].as_array().unwrap().iter();
    let of_path = all.filter(|row| row["path"] == path);
    let figure = |row: &'a Value| {
        assert_eq!(row["probe"], "messages", "{row:#}");
        assert_eq!(row["layer"], "application", "{row:#}");
        let text = |name: &str| row[name].as_str().unwrap();
        let median = row["p50"].as_f64().unwrap_or(f64::NAN);
        (text("quantity"), text("status"), median)
    };
    of_path.map(figure).collect()
}

/// Holds the rows of a path against the statistic: count, mean, median.
fn assert_are(rows: &[(&str, &str, f64)], count: f64, mean: f64, median: f64) {
    let of = |quantity: &str| {
        let row = rows.iter().find(|row| row.0 == quantity);
        let row = row.unwrap_or_else(|| panic!("no {quantity}: {rows:?}"));
        assert_eq!(row.1, "measured", "{rows:?}");
        row.2
    };
    assert!(of("replay_ns") > 0.0);
    assert!((of("messages") - count).abs() < 0.5, "{rows:?}");
    assert!((of("message_bytes") - count * mean).abs() <= 0.5);
    assert!((of("message_bytes_mean") - mean).abs() < 0.01, "{rows:?}");
    // Counted to a 64th of itself.
    assert!((of("message_bytes_median") - median).abs() <= median / 64.0);
}

#[test]
fn pvms_routes_send_the_messages_of_the_paper_in_a_lab() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    drop(call(&stage, &["doctor", "--build-adapters"]).output());
    let paths = ["native:tcp", "pvm:default", "pvm:direct"];
    let words = [
        "upc:mg",
        "--testbed",
        "lab",
        "--network",
        "ethernet-1g",
        "--load",
        "0,0.3",
        "--attachment",
        case.attachment,
        "--path",
        &paths.join(","),
    ];
    let mut call = messages(&stage, &words);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    let mark = call.mark().to_string();
    let outcome = call.output();
    let document = document(&outcome.out);
    for path in paths {
        let found = rows(&document, path);
        if found.iter().all(|row| row.1 == "skipped") {
            assert_ne!(path, "native:tcp", "{outcome}");
            skip(&format!("{path} is not here"));
            continue;
        }
        // Idle and loaded: five of the messages, and what the network lost of them.
        assert_eq!(found.len(), 12, "{outcome}");
        for loaded in found.chunks(6) {
            assert_are(loaded, 848.0, 30_226.525, 2_592.0);
        }
    }
    let left = eventually(|| marked(&mark), Vec::is_empty);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn frames_that_a_small_buffer_loses_are_told() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let Some(stage) = stage(case) else { return };
    // Three hosts at once to a fourth fill a queue of 256 cells, which is a frame and a third.
    let words = [
        "--count",
        "400",
        "--mean",
        "64KiB",
        "--median",
        "64KiB",
        "--testbed",
        "lab",
        "--network",
        "atm-oc3c:buffer=256cells",
        "--network",
        "atm-oc3c",
        "--path",
        "native:tcp",
        "--attachment",
        case.attachment,
    ];
    let mut call = messages(&stage, &words);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    let outcome = call.expect(0);
    let document = document(&outcome.out);
    let all = document["results"].as_array().unwrap();
    let lost = |network: &str| {
        let mut of = all.iter().filter(|row| {
            (&row["quantity"], &row["network"]) == (&"network_lost_share".into(), &network.into())
        });
        let row = of.next().unwrap_or_else(|| panic!("{network}: {outcome}"));
        row["p50"].as_f64().unwrap()
    };
    let small = lost("atm-oc3c:buffer=256cells");
    assert!(small > 0.0 && small < 0.9, "{outcome}");
    // 13,312 cells have room for all.
    assert!(lost("atm-oc3c") < 1e-6, "{outcome}");
}

#[test]
fn every_library_here_sends_what_is_said() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    drop(call(&stage, &["doctor", "--build-adapters"]).output());
    let paths = [
        "native:shm",
        "native:unix",
        "native:tcp",
        "pvm:default",
        "pvm:direct",
        "openmpi:sm",
        "mpich:sm",
    ];
    let words =
        "--testbed local --count 301 --mean 900.5 --median 40 --graph ring --ranks 3 --runs 2";
    let mut words: Vec<&str> = words.split(' ').collect();
    let all = paths.join(",");
    words.extend(["--path", &all]);
    let outcome = messages(&stage, &words).output();
    let document = document(&outcome.out);
    for path in paths {
        let found = rows(&document, path);
        if found.iter().all(|row| row.1 == "skipped") {
            assert!(!path.starts_with("native"), "{outcome}");
            skip(&format!("{path} is not here"));
            continue;
        }
        assert_are(&found, 301.0, 271_051.0 / 301.0, 40.0);
    }
}

#[test]
fn an_own_run_is_sent_again() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let matrix = stage.path("lu.json");
    let words = ["npb", "lu", "--class", "S", "--json", "--matrix", &matrix];
    let outcome = call(&stage, &words).expect(0);
    let sent = &document(&outcome.out)["kernels"][0]["launch"]["runs"][0]["sent"];
    let number = |name: &str| sent[name].as_f64().unwrap();
    let file = stage.path("run.json");
    std::fs::write(&file, &outcome.out).unwrap();
    let words = [&file, "--path", "native:shm", "--testbed", "local"];
    let again = messages(&stage, &words).expect(0);
    let (count, mean) = (number("messages"), number("bytes_mean"));
    let again = document(&again.out);
    assert_are(
        &rows(&again, "native:shm"),
        count,
        mean,
        number("bytes_median"),
    );
    // A matrix tells no median.
    let words = [&matrix, "--path", "native:shm", "--testbed", "local"];
    let refused = messages(&stage, &words).output();
    assert_eq!(refused.code, 64, "{refused}");
    assert!(
        refused
            .err
            .contains("the median length of these messages is not known"),
        "{refused}"
    );
    let median = number("bytes_median").to_string();
    let words = [&words[..], &["--median", &median]].concat();
    let again = document(&messages(&stage, &words).expect(0).out);
    assert_are(
        &rows(&again, "native:shm"),
        count,
        mean,
        number("bytes_median"),
    );
}

#[test]
fn a_plan_has_a_table_of_messages() {
    let Some(stage) = stage(Case::own("veth")) else {
        return;
    };
    let plan = stage.path("messages.toml");
    let text = "[testbed]\nkind = \"local\"\n[repeat]\nlaunches = 2\nmax = 2\n[[probe]]\nkind = \"messages\"\n\
        path = [\"native:shm\"]\n[probe.with]\nof = [\"upc:cg\", \"upc:mg\"]\nranks = [\"4\"]\n";
    std::fs::write(&plan, text).unwrap();
    let out = stage.path("runs");
    let words = ["assess", &plan, "--out", &out];
    let outcome = call(&stage, &words).expect(0);
    for words in ["messages of", "upc:cg", "upc:mg", "7116"] {
        assert!(outcome.out.contains(words), "{words}: {outcome}");
    }
    let again = call(&stage, &["report", "show", "--out", &out]).expect(0);
    assert!(again.out.contains("upc:mg"), "{again}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let stage = Stage::new(Case::own("veth"));
    for (words, said) in [
        ("upc:ep", "hardly communicates"),
        ("upc:xy", "ep, cg"),
        ("nowhere.json", "a file that `sonde npb` wrote"),
        ("--mean 8 --median 8", "count=1000"),
        ("upc:cg --count 0", "from 1 to"),
        ("upc:cg --count 99999999", "replay a part"),
        ("upc:cg --median 1MiB", "mean is"),
        ("upc:cg --graph mesh:2x2 --ranks 6", "4 points"),
        ("upc:cg --graph star", "or all-to-all"),
        ("upc:cg --ranks 1", "2 to"),
        ("upc:cg --runs 0", "1 to 1000"),
        ("upc:cg --path tcp", "write a library's path"),
        ("upc:cg --load 0.5", "--testbed lab"),
    ] {
        let mut words: Vec<&str> = words.split(' ').collect();
        words.extend(["--testbed", "local"]);
        let outcome = messages(&stage, &words).limit(30).output();
        assert_eq!(outcome.code, 64, "{words:?}: {outcome}");
        assert!(outcome.err.contains(said), "{words:?}: {outcome}");
        assert!(outcome.out.is_empty(), "{words:?}: {outcome}");
    }
    let words = "--count 4000000 --mean 1GiB --median 1GiB --ranks 1024 --testbed local";
    let words: Vec<&str> = words.split(' ').collect();
    let outcome = messages(&stage, &words).output();
    assert_eq!(outcome.code, 2, "{outcome}");
    assert!(outcome.err.contains("MiB are available"), "{outcome}");
}
