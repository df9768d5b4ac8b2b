//! Measurements over a site: figures of one path, beside what the models say of that path.
//!
//! Model:   a measured time is never below the model's for the path over all segments, and a rate never above. What hosts take in addition is
//!          bounded widely: this machine may be busy.
//! Checked: here.

use crate::lab::{Stage, attachments, has};
use serde_json::Value;

const USAGE: i32 = 64;
/// Two subnets with a router between them, and a server on both.
const SITE: &str = r#"
name = "halves"
summary = "two halves with a server on both"

[[segment]]
name = "left"
network = "ethernet-10"
hosts = ["left-[1-2]", "server"]

[[segment]]
name = "right"
network = "atm-oc3c:mtu=1500"
hosts = ["server", "right-[1-2]"]

[[router]]
name = "router"
joins = ["left", "right"]
latency = "300us"
"#;

fn site(stage: &Stage) -> String {
    let path = stage.path("site.toml");
    std::fs::write(&path, SITE).unwrap();
    path
}

fn results(stage: &Stage, arguments: &[&str]) -> Vec<Value> {
    let out = stage.path("runs");
    let call = [arguments, &["--json", "--out", &out]].concat();
    let document: Value = serde_json::from_str(&stage.sonde(&call).expect(0).out).unwrap();
    document["results"].as_array().unwrap().clone()
}

/// The median of a quantity that was measured warm.
fn warm(rows: &[Value], quantity: &str) -> f64 {
    let is_it = |row: &&Value| row["quantity"] == quantity && row["phase"] == "warm";
    rows.iter().find(is_it).unwrap()["p50"].as_f64().unwrap()
}

#[test]
fn a_path_over_a_router_is_measured_beside_its_model() {
    let stage = Stage::new(attachments()[0]);
    let site = site(&stage);
    let probe = |kind: &str, between: &str| {
        let call = ["probe", kind, "--site", &site, "-n", "1", "--path", "udp"];
        let call = [&call[..], &["--between", between]].concat();
        let rows = results(&stage, &call);
        let (src, dst) = between.split_once('>').unwrap();
        for row in &rows {
            assert_eq!(
                (&row["network"], &row["src"], &row["dst"]),
                (&"halves".into(), &src.into(), &dst.into())
            );
        }
        rows
    };
    // The router's time is in the way between the halves, and none to the server that is on both.
    let far = warm(&probe("latency", "left-1>right-2"), "latency_ns");
    let near = warm(&probe("latency", "left-1>server"), "latency_ns");
    let right = warm(&probe("latency", "right-1>server"), "latency_ns");
    assert!(far > 300_000.0 + 57_000.0, "{far}");
    assert!((57_000.0..300_000.0).contains(&near), "{near}");
    assert!(right < 300_000.0, "{right}");
    // It is never below the model's time for the path, and the slower half bounds its rate: 1,472 of 1,538 bytes at 10 Mb/s.
    let call = ["lab", "list", "--sites", &site, "--json"];
    let listed: Value = serde_json::from_str(&stage.sonde(&call).expect(0).out).unwrap();
    let path = &listed["sites"][0]["segments"][1];
    assert_eq!(path["nodes"], 1, "{path}");
    let least = path["one_way_1b_ns"].as_f64().unwrap();
    assert!(far >= least && far < least + 300_000.0, "{far} {path}");
    let rate = warm(&probe("throughput", "right-1>left-2"), "throughput_bps");
    let most = 1e7 * 1_472.0 / 1_538.0;
    assert!(rate < 1.001 * most && rate > 0.9 * most, "{rate} {most}");
}

#[test]
fn without_a_pair_the_first_and_the_last_host_are_measured() {
    let stage = Stage::new(attachments()[0]);
    let site = site(&stage);
    let rows = results(&stage, &["probe", "latency", "--site", &site, "-n", "2"]);
    for row in &rows {
        assert_eq!(
            (&row["src"], &row["dst"]),
            (&"left-1".into(), &"right-2".into())
        );
    }
    // Ranks go round all hosts, over both networks and the router.
    let call = [
        "npb",
        "is",
        "--class",
        "S",
        "--ranks",
        "4",
        "--testbed",
        "lab",
        "--site",
        &site,
        "-n",
        "1",
    ];
    let rows = results(&stage, &[&call[..], &["--path", "native:tcp"]].concat());
    let of = |quantity: &str| {
        rows.iter()
            .filter(|row| row["quantity"] == quantity)
            .count()
    };
    assert!(
        of("kernel_ns") == 1 && rows.iter().all(|row| row["status"] == "measured"),
        "{rows:?}"
    );
    // A load is on the segments of both hosts: of a shared line there is less left.
    let call = [
        "probe",
        "throughput",
        "--site",
        &site,
        "-n",
        "1",
        "--load",
        "0,0.5",
    ];
    let rows = results(&stage, &call);
    let rate = |load: Option<&str>| {
        let is_it = |row: &&Value| {
            row["load"] == load.map_or(Value::Null, Value::from)
                && row["quantity"] == "throughput_bps"
        };
        rows.iter().find(is_it).unwrap()["p50"].as_f64().unwrap()
    };
    assert!(rate(Some("0.5")) < 0.75 * rate(None), "{rows:?}");
}

#[test]
fn a_program_of_the_study_runs_between_two_cities() {
    if !has("pvmd") && !has("pvm") {
        return;
    }
    let stage = Stage::new(attachments()[0]);
    let call = [
        "npb",
        "is",
        "--class",
        "S",
        "--ranks",
        "8",
        "--testbed",
        "lab",
        "-n",
        "1",
    ];
    let sites = "two-cities:line.delay=50us,two-cities:line.delay=20ms";
    let rows = results(
        &stage,
        &[
            &call[..],
            &["--path", "native:tcp,pvm:direct", "--site", sites],
        ]
        .concat(),
    );
    for path in ["native:tcp", "pvm:direct"] {
        let time = |site: &str| {
            let is_it = |row: &&Value| {
                row["path"] == path && row["network"] == site && row["quantity"] == "kernel_ns"
            };
            let row = rows
                .iter()
                .find(is_it)
                .unwrap_or_else(|| panic!("{path} {site}: {rows:?}"));
            assert_eq!(row["status"], "measured", "{row}");
            row["p50"].as_f64().unwrap()
        };
        let [near, far] = ["two-cities:line.delay=50us", "two-cities:line.delay=20ms"].map(time);
        // Ten iterations, in each of which messages go to the other city and are waited for: twice at least.
        assert!(far > near + 10.0 * 2.0 * 20e6, "{path}: {near} {far}");
    }
}

#[test]
fn what_a_site_is_not_for_is_refused() {
    let stage = Stage::new(attachments()[0]);
    let site = site(&stage);
    for (call, told) in [
        (
            &["probe", "latency", "--site", "nowhere"][..],
            "there is no site `nowhere`: there are two-rooms",
        ),
        (
            &["probe", "latency", "--site", &site, "--network", "wire"],
            "--site",
        ),
        (
            &["probe", "latency", "--site", &site, "--hosts", "3"],
            "--site",
        ),
        (
            &["probe", "latency", "--site", &site, "--testbed", "local"],
            "only a lab emulates",
        ),
        (
            &["probe", "latency", "--site", &site, "--between", "left-1>b"],
            "there is no host b: there are left-1, left-2, server, right-1",
        ),
        (
            &["lab", "check", "--site", "two-rooms,lace"],
            "check one after the other",
        ),
        (
            &["lab", "check", "--between", "h1>h2"],
            "name a site by `--site`",
        ),
        (
            &["lab", "check", "--site", "rus-workstation"],
            "host gateway of rus-workstation sends on by its own kernel",
        ),
        (
            &["tune", "--site", "two-rooms,lace"],
            "tune one after the other",
        ),
        (
            &[
                "probe",
                "pattern",
                "shift:1",
                "--site",
                &site,
                "--between",
                "left-1>server",
            ],
            "name them as pairs",
        ),
    ] {
        let refused = stage.sonde(call).expect(USAGE);
        refused.tells(&[told]);
    }
}
