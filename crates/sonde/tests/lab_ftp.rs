//! FTP over a lab and over this machine: by `sonde probe files`, with frames that are lost, and what its evidence and table say.
//!
//! Model:   small files. Both ends hash their file before and after the rounds, so that a repetition that ends well has the same bytes at both.

use crate::lab::{Case, Stage, attachments};
use crate::paired::lab_files::{document_of, fact, files, median};
use serde_json::Value;

/// The evidence of the only repetition of a stage's run.
pub fn evidence(stage: &Stage) -> Value {
    let out = stage.path("runs");
    let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
    let run = &document_of(&export.expect(0).out)["run"];
    run["launches"][0]["evidence"].clone()
}

/// The words of a probe of FTP over a network of a lab.
pub fn over<'w>(case: Case, network: &'w str, others: &[&'w str]) -> Vec<&'w str> {
    let lab = [
        "--testbed",
        "lab",
        "--hosts",
        "2",
        "--network",
        network,
        "--attachment",
        case.attachment,
        "--path",
        "ftp",
    ];
    [&lab[..], others].concat()
}

#[test]
fn files_are_got_and_put_on_this_machine() {
    let stage = Stage::new(Case::own("veth"));
    let words = [
        "--testbed",
        "local",
        "--path",
        "ftp",
        "--op",
        "read,write",
        "--size",
        "8K,1M",
        "--with",
        "type=binary,ascii",
    ];
    let outcome = files(&stage, &words).expect(0);
    let document = document_of(&outcome.out);
    for op in ["read", "write"] {
        for size in [8_192, 1 << 20] {
            let of = |quantity| median(&document, "ftp", op, Some(size), quantity);
            assert!(of("throughput_bps") > 1e6 && of("service_ns") > 1e3);
            assert!(of("cpu_src_ns_per_byte") > 0.0 && of("cpu_dst_ns_per_byte") > 0.0);
        }
    }
    let out = stage.path("runs");
    let shown = stage.sonde(&["report", "show", "--table", "--out", &out]);
    let text = shown.expect(0).out;
    assert!(
        text.contains("bottleneck") && text.contains("type=ascii"),
        "{text}"
    );
}

#[test]
fn files_come_whole_where_frames_are_lost() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    for op in ["read", "write"] {
        let stage = Stage::new(case);
        let words = ["--op", op, "--size", "1M"];
        let outcome = files(&stage, &over(case, "ethernet-100:loss=2%", &words)).expect(0);
        let document = document_of(&outcome.out);
        let again = median(&document, "ftp", op, Some(1 << 20), "retransmits");
        assert!(again > 0.0, "{outcome}");
        let evidence = evidence(&stage);
        let of = |name: &str| fact(&evidence, "1048576", name);
        assert!(of("calls") > 0 && of("retransmissions") > 0, "{evidence:#}");
        let losses = evidence["network_losses"].as_object().unwrap();
        let is_random = |place: &String| place.contains("random");
        assert!(losses.keys().any(is_random), "{losses:?}");
    }
}

#[test]
fn the_slowest_stage_is_named() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let words = [
        "--op",
        "read",
        "--size",
        "256K",
        "--with",
        "disk=96Mbit",
        "--with",
        "client-disk=8Mbit",
    ];
    files(&stage, &over(case, "ethernet-100", &words)).expect(0);
    let evidence = evidence(&stage);
    let of = |name: &str| fact(&evidence, "262144", name);
    // 256 KiB at 96 and 8 Mb/s.
    assert_eq!((of("source_ns"), of("sink_ns")), (21_845_333, 262_144_000));
    assert_eq!(evidence["files"]["262144"]["bottleneck"], "sink_disk");
    for name in [
        "trip_ns",
        "null_ns",
        "own_call_ns",
        "stream_ns",
        "wire_ns",
        "expected_ns",
    ] {
        assert!(of(name) > 0, "{name}");
    }
    assert!(of("expected_ns") > of("sink_ns"));
    let out = stage.path("runs");
    let shown = stage
        .sonde(&["report", "show", "--out", &out])
        .expect(0)
        .out;
    assert!(shown.contains("sink disk"), "{shown}");
}
