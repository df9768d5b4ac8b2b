//! A mounted file system by `sonde probe files --path fs`: of this machine and of a lab's host, and what is said where it cannot be.

use crate::lab::{Case, Stage, attachments};
use crate::paired::lab_files::{document_of, files, median};

#[test]
fn a_file_system_is_rated_on_this_machine() {
    let stage = Stage::new(Case::own("veth"));
    let place = stage.path("place");
    std::fs::create_dir(&place).unwrap();
    let directory = format!("directory={place}");
    let words = [
        "--testbed",
        "local",
        "--path",
        "fs",
        "--op",
        "read,write,meta",
        "--size",
        "8K,1M",
        "--with",
        "names=20",
        "--with",
        &directory,
    ];
    let outcome = files(&stage, &words).expect(0);
    let document = document_of(&outcome.out);
    for op in ["read", "write"] {
        for size in [8_192, 1 << 20] {
            let of = |quantity| median(&document, "fs", op, Some(size), quantity);
            assert!(of("throughput_bps") > 1e6 && of("service_ns") > 0.0);
        }
    }
    for op in ["getattr", "lookup", "readdir", "create", "remove"] {
        assert!(median(&document, "fs", op, None, "rate_per_s") > 1.0);
    }
    // Whether memory may have answered stands in each row.
    let rows = document["results"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["knobs"]["cached"] == "no"));
    let out = stage.path("runs");
    let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
    let run = &document_of(&export.expect(0).out)["run"];
    let launches = run["launches"].as_array().unwrap().iter();
    let resident =
        launches.filter_map(|one| one["evidence"]["files"]["1048576"]["resident_bytes"].as_u64());
    let resident: Vec<u64> = resident.collect();
    assert!(resident.len() == 2 && resident.iter().all(|bytes| *bytes <= 1 << 20));
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    let shown = stage.sonde(&["report", "show", "--table", "--out", &out]);
    let text = shown.expect(0).out;
    assert!(text.contains("fs") && text.contains("cached=no"), "{text}");
}

#[test]
fn a_host_of_a_lab_has_a_file_system() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let lab = [
        "--testbed",
        "lab",
        "--hosts",
        "2",
        "--network",
        "ethernet-100",
        "--attachment",
        case.attachment,
        "--path",
        "fs",
        "--size",
        "256K",
        "--outstanding",
        "1,4",
    ];
    let outcome = files(&stage, &lab).output();
    let document = document_of(&outcome.out);
    let rows = document["results"].as_array().unwrap();
    let rate = |outstanding: &str| {
        let row = rows.iter().find(|row| {
            row["quantity"] == "throughput_bps" && row["knobs"]["outstanding"] == outstanding
        });
        row.unwrap()["p50"].as_f64()
    };
    assert!(rate("1").unwrap() > 1e6, "{outcome}");
    // Without io_uring there is no substitute.
    let is_forbidden = outcome.err.contains("set up io_uring");
    assert!(rate("4").is_some() != is_forbidden, "{outcome}");
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let stage = Stage::new(Case::own("veth"));
    let gone = stage.path("gone");
    let directory = format!("directory={gone}");
    let words = ["--testbed", "local", "--path", "fs", "--with", &directory];
    let outcome = files(&stage, &words).output();
    let said = format!("{}{}", outcome.out, outcome.err);
    assert!(
        said.contains(&gone) && said.contains("cannot make"),
        "{outcome}"
    );
    assert!(said.contains("name a directory that is there"), "{outcome}");
}
