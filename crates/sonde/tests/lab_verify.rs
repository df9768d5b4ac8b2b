//! `sonde probe files --verify` and `--clients` over a lab: what a finding names is changed and measured again, and clients share a line.
//!
//! Model:   a service that takes 5 ms a call is what holds one call outstanding; with two outstanding the rate is nearly twice as high, whatever the
//!          machine does: the time is the server's own knob. Six repetitions are the least that are compared.

use crate::lab::{Case, Stage, attachments};
use crate::paired::lab_files::{document_of, fact, files, median};
use serde_json::Value;

fn over<'w>(case: Case, network: &'w str, others: &[&'w str]) -> Vec<&'w str> {
    let lab = [
        "--testbed",
        "lab",
        "--hosts",
        "2",
        "--network",
        network,
        "--attachment",
        case.attachment,
    ];
    [&lab[..], others].concat()
}

fn service(launches: &str) -> [&str; 11] {
    [
        "--path",
        "nfs2",
        "--size",
        "256K",
        "--with",
        "service=5ms",
        "--budget",
        "100ms",
        "--verify",
        "--launches",
        launches,
    ]
}

#[test]
fn what_a_finding_names_is_changed_and_measured_again() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let out = stage.path("runs");
    let words = over(case, "ethernet-100", &service("6"));
    let probe = [&["probe", "files", "--json", "--out", &out], &words[..]].concat();
    let outcome = stage.sonde(&probe).limit(300).expect(0);
    let document = document_of(&outcome.out);
    let all = document["verifications"].as_array().unwrap();
    assert_eq!(all.len(), 1, "{all:#?}");
    let one = &all[0];
    assert_eq!(one["rule"], "service-bound", "{one:#}");
    assert_eq!(
        one["changed"],
        serde_json::json!([{ "name": "outstanding", "from": "1", "to": "2" }])
    );
    let number = |name: &str| {
        one[name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {one:#}"))
    };
    assert_eq!(one["verdict"], "confirmed", "{one:#}");
    assert!(
        number("ratio") > 1.5 && number("ratio_low") > 1.2,
        "{one:#}"
    );
    assert!(number("after") > number("before"));
    // The changed cell is in the run, marked, and gives no finding of its own.
    let is_trial = |row: &&Value| row["knobs"]["verify"] == "service-bound";
    let rows = document["results"].as_array().unwrap();
    let trial = rows.iter().find(is_trial).unwrap();
    assert_eq!(trial["knobs"]["outstanding"], "2");
    assert_eq!(trial["cell"], one["cell_after"]);
    let found = document["findings"].as_array().unwrap();
    let of_files = found.iter().filter(|one| one["rule"] == "window-bound");
    assert_eq!(of_files.count(), 0, "{found:#?}");
}

#[test]
fn too_few_repetitions_are_inconclusive() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let out = stage.path("runs");
    let words = over(case, "ethernet-100", &service("1"));
    let probe = [&["probe", "files", "--out", &out], &words[..]].concat();
    let outcome = stage.sonde(&probe).limit(180).expect(0);
    for wanted in [
        "outstanding 1 -> 2",
        "inconclusive",
        "six of each are the least",
    ] {
        let text = outcome.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(wanted), "{wanted}: {outcome}");
    }
}

#[test]
fn clients_share_the_line_of_an_ethernet() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    for path in ["nfs3:tcp", "ftp"] {
        let stage = Stage::new(case);
        let words = [
            "--path",
            path,
            "--op",
            "read",
            "--size",
            "256K",
            "--clients",
            "4",
        ];
        let outcome = files(&stage, &over(case, "ethernet-10", &words)).expect(0);
        let document = document_of(&outcome.out);
        let bps = median(&document, path, "read", Some(256 << 10), "throughput_bps");
        // The most that the line's model has for a stream; parts of rounds are taken as even, which is true within 2 %.
        let networks = stage.sonde(&["lab", "list", "--json"]).expect(0);
        let networks = document_of(&networks.out);
        let all = networks["networks"].as_array().unwrap().iter();
        let line = all
            .clone()
            .find(|one| one["name"] == "ethernet-10")
            .unwrap();
        let most = line["tcp_max_bps"].as_f64().unwrap();
        assert!(bps <= most * 1.02, "{bps} of {most}");
        assert!(bps >= most * 0.5, "{bps} of {most}");
        let out = stage.path("runs");
        let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
        let evidence = &document_of(&export.expect(0).out)["run"]["launches"][0]["evidence"];
        let of = |name: &str| fact(evidence, "262144", name);
        // Each has one connection with one transfer or call outstanding, and shares one queue: a quarter each. A client that waits for a
        // timeout of retransmission of 200 ms in a window of a second or more has four fifths of that; a tenth is starved.
        let (least, most) = (of("client_share_least_ppm"), of("client_share_most_ppm"));
        assert!((100_000..=250_000).contains(&least), "{evidence:#}");
        assert!((250_000..=500_000).contains(&most), "{evidence:#}");
        assert!(of("calls") >= 4, "{evidence:#}");
    }
}
