//! NetPIPE above message-passing libraries beside sonde's own probe: what both measure is the same.

use crate::lab::{Stage, attachments};
use crate::paired::lab_libraries::{NETPIPES, netpipe};
use sonde_sys::noise::measured;

/// NetPIPE's best half round trip and sonde's least are the same, by each library but MPICH.
#[test]
fn netpipe_and_sonde_agree() {
    measured(|| {
        const ATTEMPTS: usize = 4;
        let Some(case) = attachments().first().copied() else {
            return;
        };
        let stage = Stage::new(case);
        let mut least: Vec<(&str, f64, f64)> = Vec::new();
        for attempt in 1..=ATTEMPTS {
            let theirs = netpipe(
                &stage,
                "wan-ds3",
                "-p 0 -l 65536 -u 65536 -n 1",
                &NETPIPES[..3],
            );
            let paths: Vec<&str> = theirs.iter().map(|(path, _)| *path).collect();
            if paths.is_empty() {
                return;
            }
            let words = [
                "probe",
                "latency",
                "--network",
                "wan-ds3",
                "--hosts",
                "2",
                "--size",
                "64KiB",
                "--launches",
                "1",
                "--json",
                "--attachment",
                case.attachment,
                "--path",
            ];
            let call = stage.sonde(&[&words[..], &[&paths.join(",")]].concat());
            let outcome = call.limit(120).output();
            let said: serde_json::Value =
                serde_json::from_str(&outcome.out).unwrap_or_else(|e| panic!("{e}: {outcome}"));
            let rows = said["results"].as_array().unwrap();
            for (path, [_, _, seconds]) in theirs {
                let row = rows.iter().find(|row| {
                    row["path"] == path && row["quantity"] == "latency_ns" && row["phase"] == "warm"
                });
                let Some(ours) = row.and_then(|row| row["min"].as_f64()) else {
                    let why = row.map(|row| row["reason"].to_string());
                    println!("left out: {path}: {}", why.unwrap_or_default());
                    continue;
                };
                match least.iter_mut().find(|(known, ..)| *known == path) {
                    Some((_, peer, own)) => {
                        (*peer, *own) = (peer.min(seconds), own.min(ours / 1e9))
                    }
                    None => least.push((path, seconds, ours / 1e9)),
                }
            }
            println!("{attempt}: {least:?}");
            let agree = |(_, peer, own): &(&str, f64, f64)| (0.9..1.1).contains(&(own / peer));
            if least.iter().all(agree) {
                assert!(!least.is_empty(), "sonde measured none of {paths:?}");
                return;
            }
        }
        panic!("apart after {ATTEMPTS} attempts: {least:?}");
    });
}
