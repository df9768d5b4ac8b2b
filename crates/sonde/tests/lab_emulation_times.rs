//! `sonde lab check`, whose best launches keep the bounds of the model.
//!
//! Model:   round trips and rates of a slow network, which any machine carries; that the best launch keeps its bounds is a
//!          measurement, and may be skipped for noise. What is printed and judged holds of any machine.

use crate::lab::{Case, Stage};
use crate::paired::lab_emulation::{check, document};
use serde_json::Value;
use sonde_sys::noise::measured;

#[test]
fn bounds_are_kept_and_told() {
    let stage = Stage::new(Case::own("veth"));
    let out = stage.path("runs");
    let words = ["--network", "ethernet-100", "--json", "--out", &out];
    let outcome = check(&stage, &words).output();
    let said = document(&outcome.out);
    let lines = said["lines"].as_array().unwrap();
    let figures: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["figure"].as_str())
        .collect();
    assert_eq!(
        figures,
        ["round_trip_ns", "udp_bps", "tcp_bps", "frames_per_s"]
    );
    let number = |line: &Value, name: &str| line[name].as_u64();
    for line in lines {
        let verdict = &line["verdict"];
        assert!(number(line, "measured") > Some(0), "{line:#}");
        assert!(number(line, "switch_ns_per_frame") > Some(0), "{line:#}");
        assert!(number(verdict, "deliveries") > Some(0), "{line:#}");
        // What was late or lost is told, however little: by the rules of a verdict, and in words.
        let is_untrue = verdict["late_share"].as_f64() > Some(0.01)
            || number(verdict, "attachment_losses") > Some(0);
        let wanted = if is_untrue { "failed" } else { "passed" };
        assert_eq!(verdict["status"], wanted, "{line:#}");
        let reasons = verdict["reasons"].as_array().unwrap();
        assert_eq!(reasons.is_empty(), !is_untrue, "{line:#}");
    }
    let (bounded, blast) = lines.split_at(3);
    assert_eq!(blast[0]["kept"], Value::Null, "{said:#}");
    let is_good = |line: &Value| line["kept"] == true && line["verdict"]["status"] == "passed";
    let all_good = bounded.iter().all(is_good);
    assert_eq!(outcome.code, i32::from(!all_good), "{outcome}");

    // The machine can but take from a launch: the best of each cell is what the lab gives.
    let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
    let run = document(&export.expect(0).out);
    let best = |network: &str, path: &str, quantity: &str, of: fn(&Value) -> Option<u64>| {
        let all = series(&run["run"], network, path, quantity);
        assert!(all.len() >= 3, "{network} {path} {quantity}: {all:?}");
        all.into_iter().filter_map(of).collect::<Vec<u64>>()
    };
    let least = |network: &str| {
        let all = best(network, "udp", "latency_ns", |one| one["min"].as_u64());
        2 * all.into_iter().min().unwrap()
    };
    let most = |path: &str| {
        let all = best("ethernet-100", path, "throughput_bps", |one| {
            one["max"].as_u64()
        });
        all.into_iter().max().unwrap()
    };
    measured(|| {
        let (here, wire) = (least("ethernet-100"), least("wire:delay"));
        assert!(here.abs_diff(wire) <= 10_000, "{here} ns, {wire} on a wire");
        for (line, path) in bounded[1..].iter().zip(["udp", "tcp"]) {
            let (rate, model) = (most(path), number(line, "model").unwrap());
            let error = rate.abs_diff(model);
            assert!(
                error * 1_000 <= model * 15,
                "{path}: {rate} bit/s of {model}"
            );
        }
    });
}

#[test]
fn bounds_of_a_path_are_kept() {
    measured(|| {
        let stage = Stage::new(Case::own("veth"));
        let words = [
            "lab",
            "check",
            "--site",
            "two-rooms",
            "--launches",
            "5",
            "--json",
            "--out",
        ];
        let said = document(
            &stage
                .sonde(&[&words[..], &[&stage.path("sites")]].concat())
                .output()
                .out,
        );
        let lines = said["lines"].as_array().unwrap();
        for line in lines.iter().take(3) {
            assert_eq!(line["kept"], true, "{line:#}");
        }
    });
}

/// The warm series of a quantity, one a launch of full datagrams, of a stream or of round trips.
fn series<'a>(run: &'a Value, network: &str, path: &str, quantity: &str) -> Vec<&'a Value> {
    let cells = run["cells"].as_array().unwrap();
    let is_meant = |cell: &&Value| {
        let factors = &cell["factors"];
        let text = |name: &str| factors[name].as_str().unwrap_or_default();
        text("network").starts_with(network) && text("path") == path
    };
    let ids: Vec<&str> = cells
        .iter()
        .filter(is_meant)
        .filter_map(|cell| cell["id"].as_str())
        .collect();
    let launches = run["launches"].as_array().unwrap().iter();
    let results = launches.filter_map(|launch| launch["results"].as_array());
    let mine = results
        .flatten()
        .filter(|result| ids.iter().any(|id| result["cell"] == *id));
    mine.filter_map(|result| result["series"].as_array())
        .flatten()
        .filter(|one| {
            one["quantity"] == quantity && one["phase"] == "warm" && one["step"].is_null()
        })
        .map(|one| &one["series"])
        .collect()
}
