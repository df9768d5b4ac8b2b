//! What `--max-rate` and `--max-seconds` bound: every kind of figure over every path that sends, and the time of all.
//!
//! Model:   a bound holds on every machine, however busy: no figure here is asked to reach it.

use crate::lab::{Case, Stage, attachments};
use serde_json::Value;
use std::time::{Duration, Instant};

const RATE: &str = "20Mbit";
const RATE_BPS: f64 = 20e6;
/// The first burst of a connection, and what the kernel's timers round, in a rated second.
const ABOVE: f64 = 1.1;

/// The rows of a measurement within the bound, and what was said of it.
fn measured(stage: &Stage, words: &str, code: i32) -> (Vec<Value>, String) {
    let out = stage.path("runs");
    let words: Vec<&str> = words.split(' ').collect();
    let bounds = ["--max-rate", RATE, "--json", "--out", &out];
    let outcome = stage.sonde(&[&words[..], &bounds].concat());
    let outcome = outcome.limit(120).expect(code);
    let document: Value = serde_json::from_str(&outcome.out).unwrap();
    let rows = document["results"].as_array().unwrap().clone();
    (rows, outcome.err)
}

/// The rates of rows that have one.
fn rates(rows: &[Value]) -> Vec<f64> {
    let rated = rows
        .iter()
        .filter(|row| row["quantity"] == "throughput_bps");
    rated.filter_map(|row| row["max"].as_f64()).collect()
}

#[test]
fn no_figure_is_above_the_rate_that_is_allowed() {
    let stage = Stage::new(Case::own("veth"));
    for words in [
        "probe throughput --testbed local --path tcp,udp --size 1400 -n 1",
        "probe throughput --testbed local --path tcp --size 64KiB --with streams=4 -n 1",
    ] {
        let (rows, _) = measured(&stage, words, 0);
        let rates = rates(&rows);
        assert!(!rates.is_empty(), "{words}");
        assert!(
            rates.iter().all(|bps| *bps <= RATE_BPS * ABOVE),
            "{words}: {rates:?}"
        );
        // The figure says under which bound it came about.
        assert!(
            rows.iter().all(|row| row["knobs"]["max-rate"] == RATE),
            "{words}"
        );
    }
    // A ping-pong is held as well: so many messages of 8 KiB a second and no more, in each direction.
    for path in ["tcp", "udp"] {
        let words = format!(
            "probe latency --testbed local --path {path} --size 8KiB --budget 1s --samples 1000000 -n 1"
        );
        let (rows, _) = measured(&stage, &words, 0);
        let warm = rows
            .iter()
            .find(|row| row["quantity"] == "latency_ns" && row["phase"] == "warm");
        let samples = warm.unwrap()["samples"].as_f64().unwrap();
        let most = RATE_BPS / (8.0 * 8_192.0);
        assert!(
            samples > 1.0 && samples <= most + 2.0,
            "{path}: {samples} of {most}"
        );
    }
}

#[test]
fn all_flows_of_a_host_are_below_the_rate_together() {
    let Some(case) = attachments().into_iter().next() else {
        return;
    };
    let stage = Stage::new(case);
    let words = "probe pattern one-to-all --hosts 3 --network ethernet-1g --launches 1 --window 500ms --lead 100ms";
    let (rows, _) = measured(&stage, words, 0);
    let sums: Vec<f64> = rates(&rows);
    assert!(!sums.is_empty());
    // Of one host the flows, and their sum.
    assert!(sums.iter().all(|bps| *bps <= RATE_BPS * 1.2), "{sums:?}");
}

#[test]
fn what_cannot_be_held_is_left_out_or_refused() {
    let stage = Stage::new(Case::own("veth"));
    let words = "probe latency --testbed local --path native:tcp --quick";
    let (rows, _) = measured(&stage, words, 2);
    let reason = rows[0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("cannot be held to 20Mbit") && reason.contains("--max-rate"),
        "{reason}"
    );
    // Within a machine nothing is on a network.
    let (rows, _) = measured(
        &stage,
        "probe throughput --testbed local --path unix --quick",
        0,
    );
    assert!(rows.iter().all(|row| row["knobs"]["max-rate"].is_null()));
    let rate = "probe rate --testbed local --path tcp --size 1000 --rate 10000 --max-rate 20Mbit";
    let rate: Vec<&str> = rate.split(' ').collect();
    let refused = stage.sonde(&rate).expect(64);
    refused.tells(&["80000000 b/s", "at most 20000000 b/s", "--max-rate"]);
    let load = "load --testbed local --of 1Gbit --rho 0.5 --for 5s";
    let load: Vec<&str> = load.split(' ').collect();
    let fast = stage.sonde(&[&load[..], &["--max-rate", RATE]].concat());
    fast.expect(64)
        .tells(&["500.0 Mb/s", "`--max-rate` allows 20.00 Mb/s"]);
    let long = stage.sonde(&[&load[..], &["--max-seconds", "2s"]].concat());
    long.expect(64)
        .tells(&["`--for` is longer than `--max-seconds`"]);
}

#[test]
fn no_repetition_begins_after_the_time_that_is_allowed() {
    let stage = Stage::new(Case::own("veth"));
    let out = stage.path("runs");
    let words =
        "probe throughput --testbed local --path tcp --size 64KiB -n 100 --max-seconds 5s --json";
    let words: Vec<&str> = words.split(' ').collect();
    let began = Instant::now();
    // Repetitions are missing, which is said.
    let outcome = stage.sonde(&[&words[..], &["--out", &out]].concat());
    let outcome = outcome.limit(120).expect(1);
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
    let document: Value = serde_json::from_str(&outcome.out).unwrap();
    let row = &document["results"][0];
    let launches = row["launches"].as_u64().unwrap();
    assert!(
        (1..=4).contains(&launches),
        "{launches} repetitions of more than a second in 5 s"
    );
    assert!(
        row["reason"].as_str().unwrap().contains("`--max-seconds`"),
        "{row}"
    );
}
