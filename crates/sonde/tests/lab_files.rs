//! Files over a lab and over this machine: by `sonde probe files` and by a plan, counted at both ends, and refused.
//!
//! Model:   small files. That bytes are those that were written is checked by `crates/workload`; here it is the rows, and that
//!          what was sent is what came and what was lost.

use crate::lab::{Call, Case, Stage, attachments};
use serde_json::Value;

pub fn files(stage: &Stage, words: &[&str]) -> Call {
    let out = stage.path("runs");
    let beside = [
        "--json",
        "--launches",
        "1",
        "--out",
        &out,
        "--budget",
        "200ms",
    ];
    stage
        .sonde(&[&["probe", "files"], words, &beside].concat())
        .limit(180)
}

pub fn document_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The median of a quantity, of the row with this path, operation and size.
pub fn median(document: &Value, path: &str, op: &str, size: Option<u64>, quantity: &str) -> f64 {
    let rows = document["results"].as_array().unwrap();
    let is_it = |row: &&Value| {
        row["path"] == path
            && row["knobs"]["op"] == op
            && row["size_bytes"].as_u64() == size
            && row["quantity"] == quantity
    };
    let row = rows.iter().find(is_it);
    let row = row.unwrap_or_else(|| panic!("no {quantity} of {path} {op}: {document:#}"));
    assert_eq!(row["layer"], "files");
    assert_eq!(row["status"], "measured", "{row:#}");
    row["p50"].as_f64().unwrap()
}

#[test]
fn files_are_read_and_written_on_this_machine() {
    let stage = Stage::new(Case::own("veth"));
    let words = [
        "--testbed",
        "local",
        "--path",
        "nfs2:udp,nfs2:tcp,nfs3:udp,nfs3:tcp",
        "--op",
        "read,write,meta",
        "--size",
        "8K,1M",
        "--with",
        "names=20",
    ];
    let outcome = files(&stage, &words).expect(0);
    let document = document_of(&outcome.out);
    for path in ["nfs2:udp", "nfs2:tcp", "nfs3:udp", "nfs3:tcp"] {
        for op in ["read", "write"] {
            for size in [8_192, 1 << 20] {
                let of = |quantity| median(&document, path, op, Some(size), quantity);
                assert!(of("throughput_bps") > 1e6);
                assert!(of("service_ns") > 1e3 && of("rate_per_s") > 1.0);
                assert!(of("cpu_src_ns_per_byte") > 0.0 && of("cpu_dst_ns_per_byte") > 0.0);
                assert!(of("retransmits") >= 0.0);
            }
        }
        for op in ["getattr", "lookup", "readdir", "create", "remove"] {
            let of = |quantity| median(&document, path, op, None, quantity);
            assert!(of("rate_per_s") > 1.0 && of("service_ns") > 1e3);
        }
    }
}

/// What of a launch's evidence is counted of a size.
pub fn fact(evidence: &Value, size: &str, name: &str) -> u64 {
    let fact = &evidence["files"][size][name];
    fact.as_u64()
        .unwrap_or_else(|| panic!("no {name}: {evidence:#}"))
}

#[test]
fn what_a_lab_loses_is_counted_at_its_place() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let words = [
        "--testbed",
        "lab",
        "--hosts",
        "2",
        "--network",
        "ethernet-100:loss=2%",
        "--attachment",
        case.attachment,
        "--path",
        "nfs2:udp",
        "--op",
        "write",
        "--size",
        "256K",
        "--outstanding",
        "4",
        "--with",
        "retransmit=100ms",
    ];
    let outcome = files(&stage, &words).expect(0);
    let document = document_of(&outcome.out);
    let again = median(
        &document,
        "nfs2:udp",
        "write",
        Some(256 << 10),
        "retransmits",
    );
    assert!(again > 0.0, "{outcome}");
    let out = stage.path("runs");
    let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
    let run = &document_of(&export.expect(0).out)["run"];
    let evidence = &run["launches"][0]["evidence"];
    let of = |name: &str| fact(evidence, "262144", name);
    // Every message of the client came to the server, or is counted at one place there. One that lost all six fragments is the
    // network's alone: one in 10^10.
    let sent = of("calls") + of("retransmissions");
    let lost = of("lost_server_buffer") + of("lost_server_fragments");
    assert!(lost > 0 && of("received") > 0, "{evidence:#}");
    assert_eq!(of("received") + lost, sent, "{evidence:#}");
    let losses = evidence["network_losses"].as_object().unwrap();
    assert!(
        losses.keys().any(|place| place.contains("random")),
        "{losses:?}"
    );
}
