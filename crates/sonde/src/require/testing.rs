//! Rows and runs for the tests of requirements.
//!
//! Checked: they are what the tests of this module are made of.

use sonde_measure::{
    Doubt, NetworkRecord, Number, Quantity, ResultRow, Run, RunHead, RunState, State,
};

/// A run without a launch.
pub fn run(networks: Vec<NetworkRecord>) -> Run {
    Run {
        head: RunHead {
            id: String::new(),
            command: "assess".into(),
            plan: String::new(),
            seed: 0,
            version: "0".into(),
            began_unix_ns: 0,
            ended_unix_ns: None,
            state: RunState::Complete,
        },
        hosts: Vec::new(),
        networks,
        cells: Vec::new(),
        launches: Vec::new(),
        events: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A measured row of a pair of a matrix, of one sample.
pub fn row(quantity: Quantity, p50: f64, (src, dst): (&str, &str)) -> ResultRow {
    let mode = match quantity {
        Quantity::ThroughputBps => "stream",
        _ => "latency",
    };
    let value = serde_json::json!({
        "probe": "pattern", "layer": "transport", "path": "tcp", "method": null, "knobs": {}, "mode": mode,
        "wait": "block", "network": "eth", "testbed": "hosts", "profile": null, "load": null, "src": src, "dst": dst,
        "size_bytes": 1, "phase": "warm", "step": null, "cell": "c", "launches": 1, "set_aside": 0, "samples": 1,
        "quantity": quantity, "min": null, "p50": Number(p50), "p90": null, "p99": null, "p999": null, "max": null,
        "mean": null, "ci95_low": null, "ci95_high": null, "touched_share": null, "undisturbed_p50": null, "undisturbed_low": null,
        "undisturbed_high": null, "status": "measured", "reason": null, "state": "sound", "doubts": [],
        "why": null, "backpressure": null, "verdict": null,
    });
    serde_json::from_value(value).expect("it has the fields of a row")
}

/// The row as it is where the emulation was behind schedule.
pub fn late(row: &ResultRow) -> ResultRow {
    ResultRow {
        state: State::Uncertain,
        doubts: vec![Doubt::Late],
        why: Some("late".into()),
        ..row.clone()
    }
}
