//! The emulation itself, measured by `sonde lab check` and loaded by `sonde load`: kept as any run; a check is killed and gone on with.
//!
//! Model:   round trips and rates of a slow network, which any machine carries. What is printed, kept and refused holds of any
//!          machine; that bounds are kept is `lab_emulation_times.rs`.

use crate::lab::{Call, Case, Stage};
use serde_json::Value;

const USAGE: i32 = 64;
/// Two round trips, three rates; twice.
const LAUNCHES: usize = 10;

pub fn check(stage: &Stage, words: &[&str]) -> Call {
    let two = ["lab", "check", "--hosts", "2"];
    stage.sonde(&[&two[..], words].concat()).limit(120)
}

pub fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The launches of the latest run.
fn launches(stage: &Stage, out: &str) -> usize {
    let export = stage.sonde(&["report", "export", "--json", "--out", out]);
    let run = document(&export.output().out);
    run["run"]["launches"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_killed_check_goes_on_and_is_kept() {
    let stage = Stage::new(Case::own("veth"));
    let out = stage.path("kept");
    let words = ["--network", "ethernet-100", "--quick", "--out", &out];
    let dry = check(&stage, &[&words[..], &["--dry-run"]].concat()).expect(0);
    assert!(dry.out.contains("5 cells, 10 repetitions"), "{dry}");
    let plan = check(&stage, &[&words[..], &["--print-plan"]].concat()).expect(0);
    let file = stage.path("plan.toml");
    std::fs::write(&file, &plan.out).unwrap();
    let same = stage.sonde(&["assess", &file, "--dry-run"]).expect(0);
    assert_eq!(same.out, dry.out);
    assert!(!std::path::Path::new(&out).exists(), "nothing was measured");

    let mut running = check(&stage, &[&words[..], &["--json-stream"]].concat()).start();
    running.wait_for("\"row\"");
    // By kill -9.
    drop(running);
    let before = launches(&stage, &out);
    assert!((1..LAUNCHES).contains(&before), "{before}");
    let resumed = check(&stage, &["--resume", "--out", &out]).output();
    assert!([0, 1].contains(&resumed.code), "{resumed}");
    for word in [
        "ethernet-100: 2 hosts attached by",
        "round trip of 1 B",
        " on a wire",
        "UDP Mb/s",
        "TCP Mb/s",
    ] {
        assert!(resumed.out.contains(word), "{word}: {resumed}");
    }
    assert_eq!(launches(&stage, &out), LAUNCHES, "each launch once");
    let shown = stage.sonde(&["report", "show", "--out", &out]).expect(0);
    assert!(shown.out.contains("ethernet-100"), "{shown}");
    let mut named = resumed.err.lines();
    let id = named.find_map(|line| line.strip_prefix("sonde: run "));
    let id = id.and_then(|line| line.split(' ').next()).unwrap();
    let compared = stage.sonde(&["report", "compare", id, id, "--out", &out]);
    // Too few launches to tell anything of them.
    compared.expect(3);
}

#[test]
fn a_check_is_of_a_path_of_a_site() {
    let stage = Stage::new(Case::own("veth"));
    let out = stage.path("sites");
    let words = ["lab", "check", "--site", "two-rooms", "--between", "a2>b1"];
    let dry = stage.sonde(&[&words[..], &["--dry-run"]].concat());
    assert!(dry.expect(0).out.contains("5 cells, 15 repetitions"));
    let words = [&words[..], &["--quick", "--json", "--out", &out]].concat();
    let outcome = stage.sonde(&words).limit(120).output();
    let said = document(&outcome.out);
    assert_eq!(said["network"], "two-rooms", "{said:#}");
    let lines = said["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 4, "{said:#}");
    // Over a bridge: two Ethernets one after the other, 70 us of its own, and a rate that the model has.
    let number = |line: usize, name: &str| lines[line][name].as_u64().unwrap();
    assert!(
        number(0, "model") > 300_000 && number(0, "measured") > 300_000,
        "{said:#}"
    );
    assert!(
        (9_000_000..10_000_000).contains(&number(2, "model")),
        "{said:#}"
    );
    let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
    let run = document(&export.expect(0).out);
    let launches = run["run"]["launches"].as_array().unwrap();
    let between = |one: &&Value| one["src"] == "a2" && one["dst"] == "b1";
    assert_eq!(launches.iter().filter(between).count(), 6, "{launches:#?}");
}

#[test]
fn what_has_no_meaning_for_a_check_is_refused() {
    let stage = Stage::new(Case::own("veth"));
    for (words, said) in [
        (&["--testbed", "local"][..], "only a lab is"),
        (&["--load", "0.5"], "an idle network"),
        (&["--wait", "poll"], "both sides block"),
        (
            &["--network", "fddi", "--network", "wire"],
            "one after the other",
        ),
        (&["--network", "nowhere"], "nowhere"),
    ] {
        let outcome = check(&stage, words).expect(USAGE);
        assert!(outcome.err.contains(said), "{words:?}: {outcome}");
    }
    // A wire of the very delay is its own measure, and nothing bounds its rate.
    let dry = check(&stage, &["--network", "wire:delay=10us", "--dry-run"]).expect(0);
    assert!(dry.out.contains("2 cells, 6 repetitions"), "{dry}");
}

#[test]
fn a_load_is_a_run_with_a_cell_for_each_flow() {
    let stage = Stage::new(Case::own("veth"));
    let out = stage.path("loads");
    let load = [
        "load",
        "--testbed",
        "lab",
        "--hosts",
        "3",
        "--network",
        "ethernet-10",
        "--rho",
        "0.2",
        "--law",
        "constant",
        "--for",
        "1s",
        "--flow",
        "h1>h2,h3>h2",
        "--json",
        "--out",
        &out,
    ];
    let outcome = stage.sonde(&load).limit(60).output();
    assert!([0, 1].contains(&outcome.code), "{outcome}");
    let said = document(&outcome.out);
    let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
    let run = &document(&export.expect(0).out)["run"];
    assert_eq!(run["head"]["id"], said["run"]);
    for (launch, flow) in run["launches"]
        .as_array()
        .unwrap()
        .iter()
        .zip(["h1>h2", "h3>h2"])
    {
        let evidence = &launch["evidence"];
        assert!(
            evidence["load_flows"][flow]["achieved"].as_f64() > Some(0.1),
            "{launch:#}"
        );
        assert!(
            evidence["datagrams"]["sent"].as_u64() > Some(0),
            "{launch:#}"
        );
        assert!(
            launch["verdict"]["deliveries"].as_u64() > Some(0),
            "{launch:#}"
        );
    }
    let shown = stage
        .sonde(&["report", "show", "--rows", "--out", &out])
        .expect(0);
    for word in ["probe load", "flow=h3>h2", "rate Mb/s", "lost %"] {
        assert!(shown.out.contains(word), "{word}: {shown}");
    }
    let id = said["run"].as_str().unwrap();
    let compared = stage.sonde(&["report", "compare", id, id, "--out", &out]);
    // Too few launches to tell anything of them.
    compared.expect(3);
}
