//! What `sonde assess` and `probe` print of times and rates: a cold start, its steps and the median; whole messages at a line's rate.

use crate::lab::{Stage, attached, attachments};
use crate::paired::lab_assess::{assess, json, p50, plan, row, rows};
use serde_json::Value;
use sonde_sys::noise::measured;

/// What the issue of cold starts is about: three rows, and the circuit's set-up among the steps.
#[test]
fn first_second_and_median_are_apart() {
    measured(|| {
        for case in attached("tap") {
            let stage = Stage::new(case);
            let outcome = assess(&stage, &plan(&stage, 6)).expect(0);
            assert_are_apart(&json(&outcome.out));
        }
    });
}

fn assert_are_apart(document: &Value) {
    for network in ["ethernet-100", "atm-oc3c:vc=svc"] {
        for path in ["tcp", "udp"] {
            let step = |name| row(document, network, path, "startup", Some(name));
            let whole = p50(row(document, network, path, "startup", None));
            let warm: Vec<_> = rows(document)
                .iter()
                .filter(|row| {
                    row["network"] == network
                        && row["path"] == path
                        && row["quantity"] == "latency_ns"
                        && row["phase"] == "warm"
                        && row["size_bytes"] == 8
                })
                .collect();
            assert_eq!(warm.len(), 1, "one row of the median");
            assert!(
                warm[0]["samples"].as_u64() > Some(100)
                    && step("first")["samples"] == 6
                    && step("second")["samples"] == 6
            );
            assert!(
                whole > p50(step("second")),
                "a whole start-up costs more than a message"
            );
            assert!(path == "udp" || p50(step("connect")) > 0.0);
            if network.contains("svc") {
                let vc = p50(step("vc"));
                assert!(
                    (vc - 21e6).abs() < 1e6,
                    "the set-up is 21 ms and was measured as {vc} ns"
                );
                assert!(whole > 21e6, "{whole}");
            } else {
                assert!(step("vc")["p50"].is_null() && step("vc")["reason"].is_string());
            }
        }
    }
}

#[test]
fn whole_messages_have_the_rate_of_their_line() {
    measured(|| {
        let Some(case) = attachments().first().copied() else {
            return;
        };
        let stage = Stage::new(case);
        let message = stage
            .sonde(&[
                "probe",
                "throughput",
                "--mode",
                "message",
                "--size",
                "64KiB",
                "--network",
                "ethernet-100",
                "--attachment",
                stage.case.attachment,
                "--launches",
                "1",
                "--json",
                "--out",
                &stage.path("runs"),
            ])
            .expect(0);
        let document = json(&message.out);
        let rate = rows(&document)
            .iter()
            .find(|row| row["quantity"] == "throughput_bps")
            .map(p50)
            .expect("a rate");
        // 46 frames of 1538 B at 100 Mb/s take 5.6 ms, the answer and the switch some hundred microseconds more.
        assert!((60e6..=94.2e6).contains(&rate), "{rate}");
    });
}
