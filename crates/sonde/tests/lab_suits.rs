//! An application as traffic, and the question which network carries it, of a run that was measured.
//!
//! Checked: here the rows and the exit codes; the classifier by planted stores, in the command's own tests.

use crate::lab::{Call, Stage, attachments};
use serde_json::Value;

fn call(stage: &Stage, words: &[&str]) -> Call {
    let out = stage.path("runs");
    let mut call = stage.sonde(&[words, &["--json", "--out", &out]].concat());
    let has_hosts = words.first() != Some(&"suits");
    if let Some(tun) = stage.tun().filter(|_| has_hosts) {
        call.command.arg("--tun").arg(tun);
    }
    call.limit(180)
}

fn document_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn an_application_is_a_load_and_a_question() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    // Nothing is measured yet: the command to run is named.
    let none = call(&stage, &["suits", "web"]).expect(2);
    assert!(none.err.contains("sonde probe throughput"), "{none}");
    let lab = [
        "--testbed",
        "lab",
        "--hosts",
        "2",
        "--attachment",
        case.attachment,
    ];
    let measured = [
        "probe",
        "throughput",
        "--path",
        "udp",
        "--size",
        "1KiB",
        "--network",
        "ethernet-10",
        "--launches",
        "1",
    ];
    call(&stage, &[&measured[..], &lab].concat()).expect(0);
    let answer = |words: &[&str]| {
        let words = [&["suits"], words].concat();
        let document = document_of(&call(&stage, &words).expect(0).out);
        assert_eq!(document["command"], "suits");
        let suits = document["suits"].as_array().unwrap().clone();
        assert_eq!(
            (suits.len(), &suits[0]["network"]),
            (1, &"ethernet-10".into())
        );
        suits[0].clone()
    };
    // 80 kb/s go into some 8 Mb/s; 760 Mb/s do not.
    let web = answer(&["web"]);
    assert_eq!(
        (&web["answer"], &web["needs_bps"]),
        (&"yes".into(), &80_000.into())
    );
    assert!(web["at_once"].as_u64().unwrap() >= 30, "{web:#}");
    let film = answer(&["framebuffer"]);
    assert_eq!(
        (&film["answer"], &film["at_once"]),
        (&"no".into(), &Value::Null),
        "{film:#}"
    );
    let wide = answer(&["--rate", "8Mbit", "--datagram", "1KiB"]);
    assert_eq!(wide["answer"], "inconclusive", "one repetition: {wide:#}");
    // The same application as traffic: 8 Mb/s in datagrams of 8 KiB are planned, sent and counted.
    let loaded = [
        "load",
        "--application",
        "tar",
        "--network",
        "ethernet-100",
        "--for",
        "2s",
    ];
    let outcome = call(&stage, &[&loaded[..], &lab].concat()).output();
    let flow = document_of(&outcome.out)["flows"][0].clone();
    assert_eq!(
        (&flow["size_bytes"], &flow["law"]),
        (&8_192.into(), &"on-off:8".into()),
        "{flow:#}"
    );
    let share = flow["wanted_share"].as_f64().unwrap();
    assert!(
        (0.08..0.09).contains(&share),
        "8 Mb/s with headers of 100: {flow:#}"
    );
}
