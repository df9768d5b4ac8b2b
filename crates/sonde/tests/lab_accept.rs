//! Acceptance of a lab's hosts: a cluster with a lossy host is not accepted, a healthy one is not refused, and what is required decides; and
//! the verdict on all pairs with which an assessment begins.
//!
//! Model:   four hosts on a slow line, with bounds far from what it does; where this machine was too busy for the emulation the
//!          verdict is inconclusive and says so, and a healthy cluster never fails.

use crate::lab::{Call, Case, Stage, attachments, is_long};
use sonde_sys::process::kill;
use std::time::{Duration, Instant};

const NETWORK: &str = "ethernet-100:rate=20Mbit";
const SIGINT: i32 = 2;

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
    let first = said.out.lines().next().unwrap();
    // Where so many cells were behind schedule, its slowness may come of that.
    let is_open = said.out.contains("INCONCLUSIVE  all pairs: h3 is bad")
        && said.out.contains("behind schedule");
    let is_bad = said.out.contains("FAIL          all pairs: h3 is bad");
    assert!(is_bad || is_open, "{said}");
    let state = match said.code {
        3 if is_open => "INCONCLUSIVE",
        _ => "FAIL",
    };
    assert_eq!(said.code, if state == "FAIL" { 1 } else { 3 }, "{said}");
    let head = format!("ACCEPTANCE {state}  4 hosts, ");
    assert!(first.starts_with(&head), "{said}");
    assert!(said.out.lines().count() <= 24, "{said}");
    let shown = report(&stage, &["show", "--table"]).expect(0);
    // Loss makes its streams slow, so much on a busy machine that this is the verdict.
    let rules = ["[host-loss]", "[host-slow]", "failed:"];
    let verdicts = rules.map(|rule| format!("verdict: {rule} h3 is bad"));
    assert!(
        verdicts.iter().any(|one| shown.out.contains(one)),
        "{shown}"
    );
    let again = report(&stage, &["show"]).expect(0);
    assert_eq!(
        again.out.lines().next(),
        Some(first),
        "the same screen is shown of what is kept: {again}"
    );
    assert!(
        again
            .out
            .contains("PASS          throughput over tcp >= 1.000 Mb/s")
            || again
                .out
                .contains("INCONCLUSIVE  throughput over tcp >= 1.000 Mb/s")
            || again
                .out
                .contains("FAIL          throughput over tcp >= 1.000 Mb/s"),
        "{again}"
    );
    assert!(
        !again.out.contains("exit code"),
        "that is of the command that measured: {again}"
    );
}

/// `sonde report` on the store of the stage.
fn report(stage: &Stage, words: &[&str]) -> Call {
    let runs = stage.path("runs");
    stage.sonde(&[&["report"], words, &["--out", &runs]].concat())
}

/// The lines of a screen that judge: the verdict, all pairs, and each requirement, without the times that differ.
fn judged(out: &str) -> Vec<String> {
    let states = ["ACCEPTANCE", "PASS", "FAIL", "INCONCLUSIVE"];
    let lines = out
        .lines()
        .filter(|line| states.iter().any(|one| line.starts_with(one)));
    lines.map(str::to_owned).collect()
}

#[test]
fn an_interrupted_acceptance_keeps_what_it_has_and_goes_on() {
    let Some(stage) = stage() else { return };
    let runs = stage.path("runs");
    let mut running = accept(&stage, &["--require", "throughput>=5Mbit"]).start();
    // After all pairs, among the other probes.
    let has_latency = || {
        let rows = report(&stage, &["export", "--csv"]).output();
        let is_latency = |row: &str| row.contains(",latency,") && row.contains(",measured,");
        rows.out.lines().any(is_latency)
    };
    let began = Instant::now();
    while !has_latency() {
        assert!(running.is_alive() && began.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(running.pid(), SIGINT).unwrap();
    let cut = running.finish();
    assert_eq!(cut.code, 128 + SIGINT, "{cut}");
    cut.tells(&["interrupted", "`sonde accept --resume 20"]);
    assert!(
        cut.out
            .starts_with("ACCEPTANCE INCONCLUSIVE  4 hosts, 12 of 12 "),
        "{cut}"
    );
    assert!(
        cut.out
            .contains("INCONCLUSIVE  interrupted; repetitions missing"),
        "{cut}"
    );
    let shown = report(&stage, &["show"]).expect(0);
    assert_eq!(judged(&shown.out), judged(&cut.out), "{shown}\n{cut}");

    let resume = stage.sonde(&["accept", "--resume", "--out", &runs]);
    let whole = resume.limit(300).output();
    assert!([0, 3].contains(&whole.code), "a healthy cluster: {whole}");
    assert!(!whole.out.contains("interrupted"), "{whole}");
    assert!(
        whole.out.contains("throughput over tcp >= 5.000 Mb/s: "),
        "{whole}"
    );
    let list = report(&stage, &["list"]).expect(0);
    assert_eq!(
        list.out.matches("Z-").count(),
        1,
        "one run, which went on: {list}"
    );
    let shown = report(&stage, &["show"]).expect(0);
    assert_eq!(judged(&shown.out), judged(&whole.out), "{shown}\n{whole}");
}

/// The plan of `sonde assess` with these options, in a file, with a script of faults.
fn plan_of(stage: &Stage, options: &[&str], script: Option<&str>) -> String {
    let mut all = vec!["assess", "--quick", "--path", "tcp", "--network", NETWORK];
    all.extend(options);
    all.push("--print-plan");
    let printed = stage.sonde(&all).expect(0).out;
    let text = match script {
        None => printed,
        Some(script) => {
            let file = stage.path("script");
            std::fs::write(&file, script).unwrap();
            let line = format!("kind = \"lab\"\nscript = \"{file}\"\n");
            assert!(printed.contains("kind = \"lab\"\n"), "{printed}");
            printed.replacen("kind = \"lab\"\n", &line, 1)
        }
    };
    let file = stage.path("assess.toml");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn an_assessment_names_a_lossy_host() {
    let Some(stage) = stage() else { return };
    let runs = stage.path("runs");
    let plan = plan_of(&stage, &["--hosts", "4"], Some("0s loss h3 10%\n"));
    let said = stage.sonde(&["assess", &plan, "--out", &runs]);
    let said = said.limit(300).output();
    // As `probe pattern all-pairs`: flows that failed are 1 even where slowness may come of lateness.
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_open = text.contains("PAIRS INCONCLUSIVE") && text.contains("behind schedule in");
    let (word, state) = match is_open {
        true => ("INCONCLUSIVE", "inconclusive"),
        false => ("FAIL", "fail"),
    };
    let codes = if is_open { &[1, 3][..] } else { &[1] };
    assert!(codes.contains(&said.code), "{said}");
    assert!(
        said.out.starts_with("4 emulated hosts, ") && text.contains(" 1 network, "),
        "{said}"
    );
    // In one line, and with its figures: the share of segments, flows that failed, or how slow.
    let (_, pairs) = text
        .split_once(&format!("PAIRS {word}: h3 is bad: "))
        .unwrap_or_else(|| panic!("{said}"));
    let figures = [
        " of segments (",
        " flows failed, all of them",
        " slower than",
    ];
    assert!(
        figures.iter().any(|figure| pairs.contains(figure)),
        "with its figures: {said}"
    );
    let shown = report(&stage, &["show", "--json"]).expect(0);
    let document: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    let all = &document["assessment"]["all_pairs"];
    assert_eq!(all["state"], state);
    let hosts = if state == "fail" { vec!["h3"] } else { vec![] };
    assert_eq!(all["hosts"], serde_json::json!(hosts));
}

#[test]
fn an_assessment_of_two_hosts_has_no_pairs() {
    let Some(stage) = stage() else { return };
    let of = |hosts: &str| {
        let plan = plan_of(&stage, &["--hosts", hosts], None);
        std::fs::read_to_string(plan).unwrap()
    };
    assert!(!of("2").contains("all-pairs"));
    let four = of("4");
    let (first, others) = four
        .split_once("[[probe]]")
        .unwrap()
        .1
        .split_once("[[probe]]")
        .unwrap();
    assert!(first.contains("pattern = \"all-pairs\""), "{four}");
    assert!(!others.contains("all-pairs"), "{four}");
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
    // What is left open says why, and nothing fails.
    let mut lines = healthy.out.lines().skip(1);
    let is_open = lines.any(|line| line.starts_with("INCONCLUSIVE  ") && line.contains(':'));
    assert_eq!(is_open, healthy.code == 3, "{healthy}");
    assert!(!healthy.out.contains("FAIL"), "{healthy}");
    let beyond = accept(&stage, &["--json", "--require", "throughput>=1Gbit"]).output();
    let document: serde_json::Value = serde_json::from_str(&beyond.out).unwrap();
    let required = &document["verdict"]["requirements"][0];
    // Rows on an emulation that kept its times fail; with none of them it cannot be told. Flows that are missing fail as such.
    let is_missing = beyond.out.contains(" flows failed");
    let wanted = match required["failed"].as_u64() {
        Some(1..) => ("fail", 1),
        _ => ("inconclusive", if is_missing { 1 } else { 3 }),
    };
    assert_eq!(
        (required["state"].as_str().unwrap(), beyond.code),
        wanted,
        "{beyond}"
    );
    assert!(required["margin"].as_f64().unwrap() < -0.5, "{required}");
    assert_eq!(document["acceptance"]["scope"]["pairs"], 12, "{beyond}");
}

/// 16 and 64 hosts, each healthy and with one that loses frames: what is said of them, and how long it takes. The emulation of 64 on
/// two CPUs is behind schedule and some of their flows fail: then a healthy cluster is not accepted, and nobody is blamed.
#[test]
fn many_hosts_are_accepted_or_not() {
    if !is_long() {
        return;
    }
    let Some(stage) = stage() else { return };
    let (runs, script) = (stage.path("runs"), stage.path("script"));
    std::fs::write(&script, "0s loss h5 20%\n").unwrap();
    for (hosts, pairs, rate) in [("16", 240, "20Mbit"), ("64", 4_032, "5Mbit")] {
        for is_faulty in [false, true] {
            let network = format!("ethernet-100:rate={rate}");
            let mut all = vec!["accept", "--quick", "--hosts", hosts, "--path", "tcp"];
            all.extend(["--network", &network, "--require", "throughput>=1kbit"]);
            all.extend(["--out", &runs]);
            if is_faulty {
                all.extend(["--script", &script]);
            }
            let said = stage.sonde(&all).limit(1_200).output();
            println!(
                "{hosts} hosts, faulty {is_faulty}: {:?}, {}",
                said.took, said.code
            );
            let first = said.out.lines().next().unwrap_or_default();
            assert!(first.contains(&format!(" of {pairs} ")), "{said}");
            let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
            if is_faulty {
                assert_eq!(said.code, 1, "{said}");
                assert!(text.contains("h5 is bad: "), "{said}");
                continue;
            }
            assert!(!text.contains(" is bad: "), "a healthy cluster: {said}");
            let is_behind = text.contains("flows failed; but the emulation was behind");
            assert!([0, 3].contains(&said.code) || is_behind, "{said}");
        }
    }
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
