//! The emulation itself, measured by `sonde lab check` and loaded by `sonde load`: kept as any run; a check is killed and gone on with.
//!
//! Model:   round trips and rates of a slow network, which any machine carries; that the best launch keeps its bounds is a
//!          measurement, and may be skipped for noise. What is printed, kept, judged and refused holds of any machine.

use crate::lab::{Call, Case, Stage};
use serde_json::Value;
use sonde_sys::noise::measured;

const USAGE: i32 = 64;
/// Two round trips, three rates; twice.
const LAUNCHES: usize = 10;

fn check(stage: &Stage, words: &[&str]) -> Call {
    let two = ["lab", "check", "--hosts", "2"];
    stage.sonde(&[&two[..], words].concat()).limit(120)
}

fn document(text: &str) -> Value {
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
    assert!(dry.out.contains("5 cells, 10 launches"), "{dry}");
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
fn bounds_are_kept_and_told() {
    let stage = Stage::new(Case::own("veth"));
    let out = stage.path("runs");
    let words = ["--network", "ethernet-100", "--json", "--out", &out];
    let outcome = check(&stage, &words).output();
    let said = document(&outcome.out);
    let lines = said["lines"].as_array().unwrap();
    let figures: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["figure"].as_str())
        .collect();
    assert_eq!(
        figures,
        ["round_trip_ns", "udp_bps", "tcp_bps", "frames_per_s"]
    );
    let number = |line: &Value, name: &str| line[name].as_u64();
    for line in lines {
        let verdict = &line["verdict"];
        assert!(number(line, "measured") > Some(0), "{line:#}");
        assert!(number(line, "switch_ns_per_frame") > Some(0), "{line:#}");
        assert!(number(verdict, "deliveries") > Some(0), "{line:#}");
        // What was late or lost is told, however little: by the rules of a verdict, and in words.
        let is_untrue = verdict["late_share"].as_f64() > Some(0.01)
            || number(verdict, "attachment_losses") > Some(0);
        let wanted = if is_untrue { "failed" } else { "passed" };
        assert_eq!(verdict["status"], wanted, "{line:#}");
        let reasons = verdict["reasons"].as_array().unwrap();
        assert_eq!(reasons.is_empty(), !is_untrue, "{line:#}");
    }
    let (bounded, blast) = lines.split_at(3);
    assert_eq!(blast[0]["kept"], Value::Null, "{said:#}");
    let is_good = |line: &Value| line["kept"] == true && line["verdict"]["status"] == "passed";
    let all_good = bounded.iter().all(is_good);
    assert_eq!(outcome.code, i32::from(!all_good), "{outcome}");

    // The machine can but take from a launch: the best of each cell is what the lab gives.
    let export = stage.sonde(&["report", "export", "--json", "--out", &out]);
    let run = document(&export.expect(0).out);
    let best = |network: &str, path: &str, quantity: &str, of: fn(&Value) -> Option<u64>| {
        let all = series(&run["run"], network, path, quantity);
        assert!(all.len() >= 3, "{network} {path} {quantity}: {all:?}");
        all.into_iter().filter_map(of).collect::<Vec<u64>>()
    };
    let least = |network: &str| {
        let all = best(network, "udp", "latency_ns", |one| one["min"].as_u64());
        2 * all.into_iter().min().unwrap()
    };
    let most = |path: &str| {
        let all = best("ethernet-100", path, "throughput_bps", |one| {
            one["max"].as_u64()
        });
        all.into_iter().max().unwrap()
    };
    measured(|| {
        let (here, wire) = (least("ethernet-100"), least("wire:delay"));
        assert!(here.abs_diff(wire) <= 10_000, "{here} ns, {wire} on a wire");
        for (line, path) in bounded[1..].iter().zip(["udp", "tcp"]) {
            let (rate, model) = (most(path), number(line, "model").unwrap());
            let error = rate.abs_diff(model);
            assert!(
                error * 1_000 <= model * 15,
                "{path}: {rate} bit/s of {model}"
            );
        }
    });
}

/// The warm series of a quantity, one a launch of full datagrams, of a stream or of round trips.
fn series<'a>(run: &'a Value, network: &str, path: &str, quantity: &str) -> Vec<&'a Value> {
    let cells = run["cells"].as_array().unwrap();
    let is_meant = |cell: &&Value| {
        let factors = &cell["factors"];
        let text = |name: &str| factors[name].as_str().unwrap_or_default();
        text("network").starts_with(network) && text("path") == path
    };
    let ids: Vec<&str> = cells
        .iter()
        .filter(is_meant)
        .filter_map(|cell| cell["id"].as_str())
        .collect();
    let launches = run["launches"].as_array().unwrap().iter();
    let results = launches.filter_map(|launch| launch["results"].as_array());
    let mine = results
        .flatten()
        .filter(|result| ids.iter().any(|id| result["cell"] == *id));
    mine.filter_map(|result| result["series"].as_array())
        .flatten()
        .filter(|one| {
            one["quantity"] == quantity && one["phase"] == "warm" && one["step"].is_null()
        })
        .map(|one| &one["series"])
        .collect()
}

#[test]
fn what_has_no_meaning_for_a_check_is_refused() {
    let stage = Stage::new(Case::own("veth"));
    for (words, said) in [
        (&["--testbed", "local"][..], "only a lab is"),
        (&["--load", "0.5"], "an idle network"),
        (&["--wait", "poll"], "both sleep"),
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
    assert!(dry.out.contains("2 cells, 6 launches"), "{dry}");
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
