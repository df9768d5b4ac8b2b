//! Paths past TCP/IP and the anatomy of messages in a running lab, as root and as an ordinary user, by TAP and veth.
//!
//! Model:   small measurements of which only what holds of any run is checked: that there are figures, what they add up to,
//!          and that what cannot be had says why.

use crate::lab::{Call, Case, Stage, cases};
use serde_json::Value;

fn probe(stage: &Stage, words: &[&str]) -> Call {
    let out = stage.path("runs");
    let mut all = vec!["probe"];
    all.extend(words);
    all.extend([
        "--json",
        "--quick",
        "--budget",
        "200ms",
        "--out",
        &out,
        "--attachment",
        stage.case.attachment,
    ]);
    let mut call = stage.sonde(&all);
    if let Some(tun) = stage.tun() {
        call.command.arg("--tun").arg(tun);
    }
    call.limit(180)
}

fn rows(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    document["results"].as_array().unwrap().clone()
}

fn of<'a>(rows: &'a [Value], wanted: &[(&str, Value)]) -> Vec<&'a Value> {
    let is = |row: &&Value| wanted.iter().all(|(name, value)| row[*name] == *value);
    rows.iter().filter(is).collect()
}

#[test]
fn frames_carry_messages_over_every_attachment() {
    for case in cases() {
        let stage = Stage::new(case);
        let words = [
            "latency",
            "--network",
            "ethernet-1g",
            "--hosts",
            "2",
            "--path",
            "packet",
            "--method",
            "plain,ring",
            "--wait",
            "block,poll",
            "--size",
            "1,1472,1473",
        ];
        let outcome = probe(&stage, &words).expect(0);
        let rows = rows(&outcome.out);
        for method in ["plain", "ring"] {
            for wait in ["block", "poll"] {
                for size in [1, 1_472] {
                    let wanted = [
                        ("method", method.into()),
                        ("wait", wait.into()),
                        ("size_bytes", size.into()),
                        ("phase", "warm".into()),
                        ("quantity", "latency_ns".into()),
                    ];
                    let found = of(&rows, &wanted);
                    assert_eq!(found.len(), 1, "{method} {wait} {size}: {rows:#?}");
                    let row = found[0];
                    assert_eq!(
                        (&row["layer"], &row["status"]),
                        (&"wire".into(), &"measured".into()),
                        "{row:#}"
                    );
                    // Never faster than the model: 1 Gb/s, store and forward.
                    let frame_ns = 8.0 * (size as f64 + 28.0 + 38.0);
                    assert!(row["min"].as_f64().unwrap() > frame_ns, "{row:#}");
                }
            }
        }
        // What fits in no frame is left out, and says so.
        let beyond = of(&rows, &[("size_bytes", 1_473.into())]);
        assert!(!beyond.is_empty());
        for row in beyond {
            let reason = row["reason"].as_str().unwrap();
            assert!(
                row["status"] == "skipped" && reason.contains("a frame, which carries 1472 here"),
                "{row:#}"
            );
        }
    }
}

#[test]
fn frames_stream_and_have_no_start_up() {
    let stage = Stage::new(Case::own("veth"));
    let words = [
        "throughput",
        "--network",
        "ethernet-100",
        "--hosts",
        "2",
        "--path",
        "packet",
        "--method",
        "plain,ring",
    ];
    let rows_of_stream = rows(&probe(&stage, &words).expect(0).out);
    for method in ["plain", "ring"] {
        let wanted = [
            ("method", method.into()),
            ("quantity", "throughput_bps".into()),
        ];
        let found = of(&rows_of_stream, &wanted);
        // Of two repetitions beside other labs one may stand still; 1,472 of 1,538 bytes are the most on a line of 100 Mb/s. Where the
        // receiver is woken late frames of more than a second may come within one: then the row says so.
        let rate = found[0]["max"].as_f64().unwrap();
        let doubts = found[0]["doubts"].as_array().unwrap();
        let is_above = doubts.contains(&"above_bound".into());
        assert!(rate > 1e6 && rate < 1e8, "{:#}", found[0]);
        assert_eq!(
            rate > 1e8 * 1_472.0 / 1_538.0 * 1.003,
            is_above,
            "{:#}",
            found[0]
        );
    }
    let outcome = probe(
        &stage,
        &[
            "startup",
            "--network",
            "ethernet-100",
            "--hosts",
            "2",
            "--path",
            "packet",
        ],
    )
    .expect(2);
    let rows = rows(&outcome.out);
    assert_eq!(rows[0]["status"], "skipped");
    assert!(
        rows[0]["reason"].as_str().unwrap().contains("no start-up"),
        "{rows:#?}"
    );
}

#[test]
fn the_parts_of_messages_are_told_over_every_attachment() {
    const PARTS: [&str; 5] = [
        "send_call_ns",
        "queue_ns",
        "wire_ns",
        "wake_ns",
        "receive_ns",
    ];
    for case in cases() {
        let stage = Stage::new(case);
        let words = [
            "anatomy",
            "--network",
            "ethernet-1g",
            "--hosts",
            "2",
            "--path",
            "udp,tcp,packet",
            "--size",
            "1,1024",
        ];
        let rows = rows(&probe(&stage, &words).expect(0).out);
        for path in ["udp", "tcp", "packet"] {
            for size in [1, 1_024] {
                let row = |quantity: &str| {
                    let wanted = [
                        ("path", path.into()),
                        ("size_bytes", size.into()),
                        ("quantity", quantity.into()),
                    ];
                    let found = of(&rows, &wanted);
                    assert_eq!(found.len(), 1, "{path} {size} {quantity}");
                    found[0].clone()
                };
                let mean = |quantity: &str| row(quantity)["mean"].as_f64();
                let whole = mean("one_way_ns").unwrap_or_else(|| panic!("{:#}", row("one_way_ns")));
                let parts: Vec<Option<f64>> = PARTS.iter().map(|part| mean(part)).collect();
                for (part, mean) in PARTS.iter().zip(&parts) {
                    // A stamp that cannot be had says so.
                    assert_eq!(
                        mean.is_none(),
                        row(part)["status"] == "skipped",
                        "{:#}",
                        row(part)
                    );
                }
                let sum: f64 = parts.iter().flatten().sum();
                if parts.iter().all(Option::is_some) {
                    // Each mean is rounded by itself.
                    assert!(
                        (sum - whole).abs() < 10.0,
                        "{path} {size}: {sum} of {whole}"
                    );
                } else {
                    assert!(sum < whole, "{path} {size}: {sum} of {whole}");
                }
            }
        }
    }
}
