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
