//! Acceptance of a lab's hosts: a cluster with a lossy host is not accepted, a healthy one is not refused, and what is required decides.
//!
//! Model:   four hosts on a slow line, with bounds far from what it does; where this machine was too busy for the emulation the
//!          verdict is inconclusive and says so, and a healthy cluster never fails.

use crate::lab::{Call, Case, Stage, attachments};

const NETWORK: &str = "ethernet-100:rate=20Mbit";

fn accept(stage: &Stage, options: &[&str]) -> Call {
    let runs = stage.path("runs");
    let mut all = vec!["accept", "--quick", "--hosts", "4", "--path", "tcp"];
    all.extend(["--network", NETWORK, "--out", &runs]);
    all.extend(options);
    stage.sonde(&all).limit(300)
}

fn stage() -> Option<Stage> {
    let case = attachments().first().copied()?;
    Some(Stage::new(Case::own(case.attachment)))
}

#[test]
fn a_lossy_host_is_not_accepted() {
    let Some(stage) = stage() else { return };
    let script = stage.path("script");
    std::fs::write(&script, "0s loss h3 10%\n").unwrap();
    let said = accept(
        &stage,
        &["--script", &script, "--require", "throughput>=1Mbit"],
    )
    .output();
    assert_eq!(said.code, 1, "{said}");
    let first = said.out.lines().next().unwrap();
    assert!(
        first.starts_with("ACCEPTANCE FAIL  4 hosts, 12 of 12 "),
        "{said}"
    );
    assert!(
        said.out.contains("FAIL          all pairs: h3 is bad"),
        "{said}"
    );
    assert!(said.out.lines().count() <= 24, "{said}");
    let shown = stage.sonde(&["report", "show", "--table", "--out", &stage.path("runs")]);
    let shown = shown.expect(0);
    assert!(shown.out.contains("h3"), "the run is kept: {shown}");
}

#[test]
fn what_is_required_decides() {
    let Some(stage) = stage() else { return };
    let met = ["--require", "throughput>=5Mbit", "--require", "latency<=1s"];
    let healthy = accept(&stage, &met).output();
    let state = match healthy.code {
        0 => "ACCEPTANCE PASS",
        3 => "ACCEPTANCE INCONCLUSIVE",
        _ => panic!("a healthy cluster was refused: {healthy}"),
    };
    assert!(healthy.out.starts_with(state), "{healthy}");
    assert!(
        healthy.out.contains("throughput over tcp >= 5.000 Mb/s: "),
        "{healthy}"
    );
    if healthy.code == 3 {
        let why = [
            "deviated from its model",
            "behind schedule",
            "are busy",
            "failed",
            "is unsteady",
        ];
        assert!(why.iter().any(|why| healthy.out.contains(why)), "{healthy}");
    }
    let beyond = accept(&stage, &["--json", "--require", "throughput>=1Gbit"]).output();
    let document: serde_json::Value = serde_json::from_str(&beyond.out).unwrap();
    let required = &document["verdict"]["requirements"][0];
    // Rows on an emulation that kept its times fail; with none of them it cannot be told.
    let wanted = match required["failed"].as_u64() {
        Some(1..) => ("fail", 1),
        _ => ("inconclusive", 3),
    };
    assert_eq!(
        (required["state"].as_str().unwrap(), beyond.code),
        wanted,
        "{beyond}"
    );
    assert!(required["margin"].as_f64().unwrap() < -0.5, "{required}");
    assert_eq!(document["acceptance"]["scope"]["pairs"], 12, "{beyond}");
}

#[test]
fn nothing_required_and_plans() {
    let Some(stage) = stage() else { return };
    accept(&stage, &[])
        .expect(64)
        .tells(&["give --require, as in", "throughput>=95%"]);
    accept(&stage, &["--require", "througput>=1Mbit"])
        .expect(64)
        .tells(&["the nearest is throughput"]);
    let plan = accept(&stage, &["--require", "latency.p99<=1s", "--print-plan"]).expect(0);
    for part in [
        "pattern = \"all-pairs\"",
        "[[require]]",
        "statistic = \"p99\"",
        "max = 1000000000",
    ] {
        assert!(plan.out.contains(part), "{part}: {plan}");
    }
    let file = stage.path("plan.toml");
    std::fs::write(&file, &plan.out).unwrap();
    // A plan says what is measured, and no option beside it is passed over.
    let both = stage.sonde(&["accept", &file, "--network", "fddi", "--dry-run"]);
    both.expect(64).tells(&["cannot be used with"]);
    let again = stage.sonde(&["accept", &file, "--print-plan"]).expect(0);
    assert_eq!(again.out, plan.out, "a printed plan is whole");
    let dry = stage.sonde(&["accept", &file, "--dry-run"]).expect(0);
    assert!(
        dry.out.contains("pattern") && dry.out.contains("about"),
        "{dry}"
    );
}
