//! `sonde probe pattern` in a lab, measured: flows and their sum, sweeps of senders.

use crate::lab::Stage;
use crate::paired::lab_pattern::stage;
use serde_json::Value;
use sonde_sys::noise::measured;

fn rows(stage: &Stage, arguments: &[&str]) -> Vec<Value> {
    let runs = stage.path("runs");
    let all = [
        &["probe", "pattern"],
        arguments,
        &["--json", "--out", &runs],
    ]
    .concat();
    let output = stage.sonde(&all).limit(120).output();
    let document: Value =
        serde_json::from_str(&output.out).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    document["results"].as_array().unwrap().clone()
}

fn rate(rows: &[Value], flow: &str, senders: Option<&str>) -> f64 {
    let of = |row: &&Value| {
        row["quantity"] == "throughput_bps"
            && row["knobs"]["flow"] == flow
            && senders.is_none_or(|count| row["knobs"]["senders"] == count)
    };
    let row = rows
        .iter()
        .find(of)
        .unwrap_or_else(|| panic!("no flow {flow}"));
    row["p50"].as_f64().unwrap_or_else(|| panic!("{row}"))
}

#[test]
fn flows_add_up_and_a_port_is_shared() {
    measured(|| {
        let Some(stage) = stage() else { return };
        let options = [
            "--hosts",
            "4",
            "--network",
            "ethernet-100:rate=10Mbit",
            "--quick",
        ];
        let shift = rows(&stage, &[&["shift:1"][..], &options].concat());
        let all = rate(&shift, "all", None);
        let flows: f64 = ["h1>h2", "h2>h3", "h3>h4", "h4>h1"]
            .iter()
            .map(|flow| rate(&shift, flow, None))
            .sum();
        assert!((all / flows - 1.0).abs() < 0.2, "{all} of {flows}");
        // Four lines carry four times what one port does.
        let one = rows(
            &stage,
            &[&["all-to-one", "--senders", "1..3"][..], &options].concat(),
        );
        let three = rate(&one, "all", Some("3"));
        assert!(three < 1.3 * rate(&one, "all", Some("1")), "{three}");
        assert!(all > 2.5 * three, "{all} beside {three}");
    });
}

/// The most that one pair reaches beside what all hosts carry at once, in one report of one run.
#[test]
fn a_pair_stands_beside_the_total_of_the_system() {
    measured(|| {
        let Some(stage) = stage() else { return };
        let plan = stage.path("totals.toml");
        let text = r#"
[testbed]
kind = "lab"
hosts = 4
[[network]]
name = "ethernet-100:rate=10Mbit"
[[probe]]
kind = "throughput"
path = ["tcp"]
[[probe]]
kind = "pattern"
path = ["tcp"]
[probe.flows]
pattern = "shift:1"
what = ["stream"]
[repeat]
launches = 2
max = 2
"#;
        std::fs::write(&plan, text).unwrap();
        let runs = stage.path("totals");
        let call = stage.sonde(&["assess", &plan, "--json", "--out", &runs]);
        let outcome = call.limit(120).output();
        let document: Value =
            serde_json::from_str(&outcome.out).unwrap_or_else(|error| panic!("{error}: {outcome}"));
        let rows = document["results"].as_array().unwrap();
        let is_pair = |row: &&Value| {
            row["quantity"] == "throughput_bps"
                && row["mode"] == "stream"
                && row["knobs"]["flow"].is_null()
        };
        let row = rows.iter().find(is_pair).expect("the stream of a pair");
        let pair = row["p50"].as_f64().unwrap_or_else(|| panic!("{row}"));
        let all = rate(rows, "all", None);
        // 1448 of 1538 bytes are the user's; four lines, each in its own direction, carry what acknowledgements leave of four pairs.
        let ceiling = 1e7 * 1_448.0 / 1_538.0;
        assert!((0.9..=1.002).contains(&(pair / ceiling)), "{pair}");
        assert!((3.2..=4.01).contains(&(all / ceiling)), "{all}");
        // Both are printed, each where one looks for it.
        let shown = stage
            .sonde(&["report", "show", "--out", &runs])
            .expect(0)
            .out;
        let line = |parts: &[&str]| {
            let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
            shown.lines().find(has_all).map(str::to_owned)
        };
        let of_pair = format!("{:.3}", pair / 1e6);
        assert!(line(&["tcp", &of_pair]).is_some(), "{of_pair}: {shown}");
        let of_all = format!("{:.2} Mb/s", all / 1e6);
        assert!(line(&["all", &of_all]).is_some(), "{of_all}: {shown}");
    });
}
