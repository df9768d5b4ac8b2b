//! `sonde assess`, `probe` and `report` as a user meets them: what is printed, kept, resumed and refused.
//!
//! Model:   plans are small, so that a run takes seconds; what is checked is what holds of any run.

use crate::lab;
use crate::lab::{
    Case, Outcome, Stage, attached, attachments, crossed, eventually, has, skip, spread,
};
use serde_json::Value;
use sonde_sys::process::kill;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

const SIGINT: i32 = 2;
const UNMET: i32 = 1;
const FAILED: i32 = 2;
const USAGE: i32 = 64;

/// Cold and warm of 8 B, small messages, over TCP and UDP, on two networks: about six seconds.
const PLAN: &str = r#"
[testbed]
kind = "lab"
hosts = 3
attachment = "ATTACHMENT"
[[network]]
name = "ethernet-100"
[[network]]
name = "atm-oc3c:vc=svc"
[[probe]]
kind = "startup"
path = ["tcp", "udp"]
size = ["8"]
[[probe]]
kind = "latency"
path = ["tcp", "udp"]
size = ["8", "mtu"]
budget = "20ms"
samples = 500
[repeat]
launches = LAUNCHES
max = LAUNCHES
"#;

pub fn plan(stage: &Stage, launches: u32) -> String {
    let text = PLAN
        .replace("ATTACHMENT", stage.case.attachment)
        .replace("LAUNCHES", &launches.to_string());
    let path = stage.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// `sonde assess PLAN --json` into the stage's store.
pub fn assess(stage: &Stage, plan: &str) -> lab::Call {
    let mut call = stage.sonde(&["assess", plan, "--json", "--out", &stage.path("runs")]);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    call.limit(180)
}

fn report(stage: &Stage, words: &[&str]) -> Outcome {
    let mut all = vec!["report"];
    all.extend(words);
    let out = stage.path("runs");
    all.extend(["--out", &out]);
    stage.sonde(&all).expect(0)
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

pub fn rows(document: &Value) -> &Vec<Value> {
    document["results"].as_array().expect("results")
}

/// The rows of one probe on a network, by path and step.
pub fn row<'a>(
    document: &'a Value,
    network: &str,
    path: &str,
    probe: &str,
    step: Option<&str>,
) -> &'a Value {
    let is = |row: &&Value| {
        row["network"] == network
            && row["path"] == path
            && row["probe"] == probe
            && row["size_bytes"] == 8
            && row["step"] == step.map_or(Value::Null, Value::from)
    };
    let found: Vec<_> = rows(document).iter().filter(is).collect();
    assert_eq!(
        found.len(),
        1,
        "{network} {path} {probe} {step:?}: {found:?}"
    );
    found[0]
}

pub fn p50(row: &Value) -> f64 {
    row["p50"]
        .as_f64()
        .unwrap_or_else(|| panic!("no median: {row:#}"))
}

#[test]
fn a_run_is_printed_kept_and_reported() {
    for case in attached("veth") {
        let stage = Stage::new(case);
        let outcome = assess(&stage, &plan(&stage, 6)).expect(0);
        let document = json(&outcome.out);
        assert_eq!(document["schema"], "sonde/2");
        let id = document["run"].as_str().expect("the run's id");
        for row in rows(&document) {
            let text = row.to_string();
            assert!(
                !text.contains("NaN") && row["mean"].is_null() == row["p50"].is_null(),
                "{text}"
            );
            if row["status"] == "measured" {
                assert_eq!(row["launches"], 6, "{text}");
                let (min, p50, max) = (&row["min"], &row["p50"], &row["max"]);
                assert!(
                    min.as_f64() <= p50.as_f64() && p50.as_f64() <= max.as_f64(),
                    "{text}"
                );
                assert!(
                    row["ci95_low"].as_f64() <= p50.as_f64() || row["samples"].as_u64() > Some(6),
                    "{text}"
                );
                assert!(
                    row["src"].is_null(),
                    "six launches of three hosts have several pairs: {text}"
                );
            } else {
                assert!(row["reason"].is_string(), "{text}");
            }
        }
        // The same again from the store.
        let shown = json(&report(&stage, &["show", "--json"]).out);
        assert_eq!(shown["results"], document["results"]);
        let csv = report(&stage, &["export", "--csv", id]).out;
        assert_eq!(csv.lines().count(), rows(&document).len() + 1, "{csv}");
        let export = json(&report(&stage, &["export", "--json"]).out);
        assert_eq!(results(&export).len(), 16 * 6, "cells by launches");
        let page = stage.path("page.html");
        let mut html = stage.sonde(&[
            "report",
            "html",
            "--to",
            &page,
            "--out",
            &stage.path("runs"),
        ]);
        html.command.env_remove("SONDE_BIN");
        let html = html.output();
        if html.err.contains("without the report page") {
            println!("left out: the page, for want of Node.js at build time");
        } else {
            assert_eq!(html.code, 0, "{html}");
            let text = std::fs::read_to_string(&page).unwrap();
            assert!(
                text.len() < 2_000_000 && text.contains(id),
                "{} bytes",
                text.len()
            );
        }
    }
}

#[test]
fn the_answer_is_on_one_screen() {
    let stage = Stage::new(Case::own("veth"));
    let (plan, out) = (plan(&stage, 2), stage.path("runs"));
    let outcome = stage
        .sonde(&["assess", &plan, "--out", &out])
        .limit(180)
        .expect(0);
    let screen = &outcome.out;
    assert!(screen.lines().count() <= 24, "{outcome}");
    assert!(
        screen.lines().all(|line| line.chars().count() <= 80),
        "{outcome}"
    );
    // Two launches among three hosts are two of six pairs.
    assert!(
        screen.starts_with("3 emulated hosts, 2 of 6 pairs, 2 networks"),
        "{outcome}"
    );
    for part in [
        "TRUST",
        "ethernet-100",
        "atm-oc3c",
        "LOST, largest first",
        "DO NEXT",
        "MORE",
    ] {
        assert!(screen.contains(part), "{part}: {outcome}");
    }
    let document = json(&report(&stage, &["show", "--json"]).out);
    let id = document["run"].as_str().expect("the run's id");
    assert!(screen.contains(id), "{outcome}");
    let named = screen
        .lines()
        .last()
        .expect("a line")
        .trim_start_matches("REPORT");
    assert!(
        named.contains(id) && !outcome.err.contains("the report is"),
        "{outcome}"
    );
    // The same facts in JSON, and the same screen from the store.
    let facts = &document["assessment"];
    assert_eq!(facts["scope"]["pairs"], 2);
    assert_eq!(facts["networks"].as_array().map(Vec::len), Some(2));
    let findings = document["findings"].as_array().expect("findings");
    assert_eq!(facts["findings"], findings.len());
    let again = report(&stage, &["show"]).out;
    assert_eq!(&again, screen);
    // The tables and the findings are one option away.
    let table = report(&stage, &["show", "--table"]).out;
    assert!(
        table.contains("cold start") && table.contains("[few-launches]"),
        "{table}"
    );
    let grouped = report(&stage, &["show", "--findings"]).out;
    let rules: BTreeSet<&str> = findings
        .iter()
        .filter_map(|one| one["id"].as_str())
        .collect();
    for rule in rules {
        assert_eq!(
            grouped.matches(&format!("[{rule}]")).count(),
            1,
            "{rule}: {grouped}"
        );
    }
}

#[test]
fn an_interrupted_run_is_printed_and_resumed() {
    for (case, ()) in spread(&crossed(), &[()]) {
        let stage = Stage::new(case);
        let mut running = assess(&stage, &plan(&stage, 6)).start();
        let store = stage.folder.join("runs/sonde.db");
        assert!(
            eventually(|| store.exists(), |there| *there),
            "the store is made at the begin"
        );
        std::thread::sleep(Duration::from_millis(2_500));
        assert!(running.is_alive());
        kill(running.pid(), SIGINT).unwrap();
        let outcome = running.finish();
        assert_eq!(outcome.code, 128 + SIGINT, "{outcome}");
        outcome.tells(&["interrupted", "--resume"]);
        let before = json(&outcome.out);
        let measured = |document: &Value| {
            rows(document)
                .iter()
                .filter_map(|row| row["launches"].as_u64())
                .sum::<u64>()
        };
        assert!(measured(&before) > 0, "{outcome}");
        let mut resume =
            stage.sonde(&["assess", "--resume", "--json", "--out", &stage.path("runs")]);
        if let Some(tun) = stage.tun() {
            resume.command.arg("--tun").arg(tun);
        }
        let after = json(&resume.limit(180).expect(0).out);
        assert_eq!(after["run"], before["run"]);
        assert!(measured(&after) > measured(&before));
        let export = json(&report(&stage, &["export", "--json"]).out);
        let all = results(&export);
        let distinct: BTreeSet<_> = all
            .iter()
            .map(|result| (result["cell"].to_string(), result["index"].to_string()))
            .collect();
        assert_eq!((all.len(), distinct.len()), (96, 96), "each launch once");
        let again = stage
            .sonde(&["assess", "--resume", "--out", &stage.path("runs")])
            .expect(USAGE);
        again.tells(&["no run", "sonde report list"]);
    }
}

/// What the launches of an exported run gave, a cell each.
fn results(export: &Value) -> Vec<&Value> {
    let launches = export["run"]["launches"].as_array();
    let launches = launches.unwrap_or_else(|| panic!("{export:#}"));
    // Beside other tests some are set aside and made again.
    let counted = launches.iter().filter(|launch| launch["set_aside"] != true);
    let each = counted.map(|launch| launch["results"].as_array());
    each.flat_map(|all| all.expect("results")).collect()
}

#[test]
fn a_store_that_cannot_be_written_is_told_before_anything_is_measured() {
    let stage = Stage::new(Case::own("veth"));
    let plan = plan(&stage, 2);
    std::fs::write(stage.path("file"), "").unwrap();
    let told = stage
        .sonde(&["assess", &plan, "--out", &stage.path("file")])
        .expect(FAILED);
    told.tells(&["file", "--out"]);
    let told = stage
        .sonde(&["assess", &plan, "--out", "/proc/sonde-runs"])
        .expect(FAILED);
    told.tells(&["/proc/sonde-runs", "--out"]);
    std::fs::create_dir(stage.path("damaged")).unwrap();
    std::fs::write(
        stage.path("damaged/sonde.db"),
        "this is not a database, and long enough to be read as one. ".repeat(100),
    )
    .unwrap();
    let told = stage
        .sonde(&["assess", &plan, "--out", &stage.path("damaged")])
        .expect(FAILED);
    told.tells(&["damaged", "--out"]);
}

/// In a mount namespace of its own, where the store's folder is a file system of 300 KiB, which a few launches fill.
#[test]
fn when_the_disk_fills_what_was_measured_is_printed() {
    if !has("unshare") {
        return;
    }
    let stage = Stage::new(Case::own("veth"));
    let plan = plan(&stage, 200);
    let folder = stage.path("small");
    std::fs::create_dir(&folder).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=300k tmpfs {folder} || exit 77; exec {} assess {plan} --json --out {folder}",
        lab::sonde().display()
    );
    let mut call = stage.call(Path::new("unshare"));
    call.command.args(["-r", "-m", "sh", "-c", &script]);
    let outcome = call.limit(180).output();
    if outcome.code == 77 {
        skip("a mount namespace with a tmpfs of its own");
        return;
    }
    assert_eq!(outcome.code, 74, "{outcome}");
    outcome.tells(&["full", "--out", "printed"]);
    let document = json(&outcome.out);
    assert!(
        rows(&document)
            .iter()
            .any(|row| row["status"] == "measured"),
        "{outcome}"
    );
}

/// Of each row of latency on a network, of one size or of all: why it is uncertain beside being of one repetition, and whether a longest
/// time is known for it all the same.
fn untrue(json: &str, network: &str, size_bytes: Option<u64>) -> Vec<(Vec<String>, bool)> {
    let document: serde_json::Value = serde_json::from_str(json).unwrap();
    let rows = document["results"].as_array().unwrap().iter();
    rows.filter(|row| row["quantity"] == "latency_ns" && row["network"] == network)
        .filter(|row| size_bytes.is_none_or(|size| row["size_bytes"] == size))
        .map(|row| {
            let doubts = row["doubts"].as_array().unwrap().iter();
            let doubts = doubts.map(|doubt| doubt.as_str().unwrap().to_owned());
            let of_repetitions = ["few_repetitions", "few_samples", "wide"];
            let others = doubts.filter(|doubt| !of_repetitions.contains(&&**doubt));
            (others.collect(), row["undisturbed_high"].is_number())
        })
        .collect()
}

#[test]
fn requirements_and_dry_runs() {
    let stage = Stage::new(attachments().first().copied().unwrap_or(Case::own("veth")));
    let path = plan(&stage, 1);
    let with = |text: &str| {
        let all = std::fs::read_to_string(&path).unwrap() + text;
        let file = stage.path("with.toml");
        std::fs::write(&file, all).unwrap();
        file
    };
    let easy =
        with("[[require]]\nquantity = \"latency_ns\"\nnetwork = \"ethernet-100\"\np50_max = 1e9\n");
    let met = assess(&stage, &easy).output();
    // Whatever a disturbance did, a time is not longer than its upper end, and not shorter than the model allows.
    let is_open = |(why, is_bounded): &(Vec<String>, bool)| {
        let is_of_time = |why: &String| ["disturbed", "late"].contains(&&**why);
        let is_known = *is_bounded && why.iter().all(is_of_time);
        !(why.is_empty() || is_known)
    };
    let rows = untrue(&met.out, "ethernet-100", None);
    let wanted = if rows.iter().any(is_open) { 3 } else { 0 };
    assert_eq!(met.code, wanted, "{met}");
    let hard = with(
        "[[require]]\nquantity = \"latency_ns\"\nnetwork = \"ethernet-100\"\nsize_bytes = 8\np50_max = 10\n",
    );
    let missed = assess(&stage, &hard).output();
    let rows = untrue(&missed.out, "ethernet-100", Some(8));
    if !rows.iter().all(is_open) {
        assert_eq!(missed.code, UNMET, "{missed}");
        missed.tells(&["FAIL ethernet-100", "required <= 10.00 ns"]);
    } else {
        assert_eq!(missed.code, 3, "{missed}");
        missed.tells(&["INCONCLUSIVE ethernet-100", "uncertain: "]);
    }
    let other = with("[[require]]\nquantity = \"retransmits\"\np50_max = 0\n");
    assess(&stage, &other).expect(UNMET).tells(&["no row"]);
    let dry = stage
        .sonde(&["assess", "--dry-run", "--out", &stage.path("none")])
        .expect(0);
    assert!(
        dry.out.contains("atm-oc3c") && dry.out.contains("cells,") && dry.out.contains("about"),
        "{dry}"
    );
    assert!(
        !Path::new(&stage.path("none")).exists(),
        "a dry run writes nothing"
    );
    for (words, said) in [
        (vec!["assess", "--testbed", "moon"], "a,b[01-16]"),
        (vec!["assess", "--testbed", "hosts:a"], "at least 2"),
        (vec!["assess", "/no/such/plan.toml"], "/no/such/plan.toml"),
        (
            vec!["probe", "latency", "--size", "8..1"],
            "below its begin",
        ),
        (vec!["probe", "latency", "--path", "tpc"], "tcp"),
        (
            vec!["probe", "latency", "--network", "ethernet-10O"],
            "ethernet-100",
        ),
        (
            vec![
                "probe",
                "latency",
                "--testbed",
                "local",
                "--network",
                "wire",
            ],
            "[[network]]",
        ),
    ] {
        stage.sonde(&words).expect(USAGE).tells(&[said]);
    }
}

#[test]
fn a_probe_prints_its_rows() {
    let stage = Stage::new(attachments().first().copied().unwrap_or(Case::own("veth")));
    let out = stage.path("runs");
    let local = stage
        .sonde(&[
            "probe",
            "latency",
            "--testbed",
            "local",
            "--path",
            "tcp,udp",
            "--size",
            "1,1KiB",
            "--budget",
            "50ms",
            "--launches",
            "6",
            "--json",
            "--out",
            &out,
        ])
        .expect(0);
    let document = json(&local.out);
    let warm = rows(&document)
        .iter()
        .filter(|row| row["phase"] == "warm" && row["quantity"] == "latency_ns");
    assert_eq!(warm.clone().count(), 4);
    assert!(
        warm.clone()
            .all(|row| row["ci95_low"].is_number() && row["testbed"] == "local")
    );
    let wan = stage
        .sonde(&[
            "probe",
            "throughput",
            "--network",
            "ethernet-100",
            "--attachment",
            stage.case.attachment,
            "--launches",
            "1",
            "--out",
            &out,
        ])
        .expect(0);
    assert!(
        wan.out.contains("throughput") && wan.out.contains("ethernet-100"),
        "{wan}"
    );
}
