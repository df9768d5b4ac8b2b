//! Half round trips under background load against the virtual clock's.
//!
//! Model:   `sonde probe latency` over UDP with messages of one frame, without load and under Poisson cells at 0.6 and 0.9 of every host's
//!          link. The model's median under load comes with each launch (`load_model_loaded_ns` of its size), as does its idle time; their
//!          difference is the queueing that the model has. What was measured under load less what was measured without it
//!          is the queueing that a program saw: what the hosts cost is in both.
//! Units:   microseconds, half of a round trip.
//! Checked: `rows_are_joined_to_their_launches`.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::process::{Command, Stdio};

use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof, load_average, median};

const NETWORK: &str = "atm-oc3c";
const LOADS: &str = "0,0.6,0.9";
const SIZES: &str = "8,64,512";
const LAUNCHES_MIN: usize = 6;
const BOUND_US: f64 = 10.0;
const BOUND_SHARE: f64 = 0.1;

/// A size under a load.
#[derive(Debug, PartialEq)]
struct Row {
    load: Option<String>,
    size: u64,
    p50_us: f64,
    /// The interval of the median, where there were enough launches.
    interval_us: Option<(f64, f64)>,
    /// The model's half round trip without load and under it.
    model_us: Option<(f64, f64)>,
    achieved: Option<f64>,
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let launches = LAUNCHES_MIN.max(ground.runs).to_string();
    let arguments = [
        "probe",
        "latency",
        "--testbed",
        "lab",
        "--network",
        NETWORK,
        "--hosts",
        "2",
        "--load",
        LOADS,
        "--path",
        "udp",
        "--size",
        SIZES,
        "--launches",
        &launches,
    ];
    let before = load_average();
    let rows = rows(&export(ground, &arguments)?)?;
    let mut table = Table::new(&[
        "load, achieved",
        "bytes",
        "median, µs",
        "queueing measured, µs (interval)",
        "queueing of the model, µs",
        "difference, µs",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for row in rows.iter().filter(|row| row.load.is_some()) {
        let idle = rows
            .iter()
            .find(|idle| idle.load.is_none() && idle.size == row.size);
        let idle = idle.with_context(|| format!("no row of {} bytes without load", row.size))?;
        let (cells, why) = compare(row, idle)?;
        table.row(cells);
        unmet.extend(why);
    }
    if unmet.is_empty() && rows.iter().all(|row| row.load.is_none()) {
        bail!("sonde gave no row under load");
    }
    Ok(Proof {
        command: format!("target/release/sonde {}", arguments.join(" ")),
        note: format!(
            "Half round trips under Poisson cells to every host; queueing is what the load adds to the median without it. The model's is that of {} round trips of the virtual clock. The difference may be {BOUND_US} µs or {:.0} % of the model's, whichever is more, or no more than the interval of the median. Load average {}.",
            2_001,
            100.0 * BOUND_SHARE,
            before.map_or("unknown".to_owned(), |load| format!("{load:.1}")),
        ),
        tables: vec![table],
        unmet,
    })
}

fn compare(row: &Row, idle: &Row) -> Result<(Vec<String>, Option<String>)> {
    let (still, loaded) = row
        .model_us
        .context("a launch under load has no figure of the model")?;
    let load = row.load.clone().unwrap_or_default();
    let (seen, wanted) = (row.p50_us - idle.p50_us, loaded - still);
    let interval = row
        .interval_us
        .map(|(low, high)| (low - idle.p50_us, high - idle.p50_us));
    let is_near = (seen - wanted).abs() <= BOUND_US.max(BOUND_SHARE * wanted);
    let is_met = is_near || interval.is_some_and(|(low, high)| low <= wanted && wanted <= high);
    let cells = vec![
        format!(
            "{load}, {}",
            row.achieved
                .map_or("–".to_owned(), |share| format!("{share:.3}"))
        ),
        row.size.to_string(),
        format!("{:.1}", row.p50_us),
        match interval {
            Some((low, high)) => format!("{seen:.1} ({low:.1} to {high:.1})"),
            None => format!("{seen:.1}"),
        },
        format!("{wanted:.1}"),
        format!("{:+.1}", seen - wanted),
        verdict(is_met),
    ];
    let why = format!(
        "load {load}, {} B: {seen:.1} us of queueing, {wanted:.1} us in the model",
        row.size
    );
    Ok((cells, (!is_met).then_some(why)))
}

/// The run, down to its launches.
fn export(ground: &Ground, arguments: &[&str]) -> Result<Value> {
    let store = ground.scratch.join("load-runs");
    let sonde = |arguments: &[&str]| -> Result<String> {
        eprintln!("prove load: sonde {}", arguments.join(" "));
        let output = Command::new(&ground.sonde)
            .args(arguments)
            .arg("--out")
            .arg(&store)
            .current_dir(&ground.root)
            .stdin(Stdio::null())
            .output()
            .context("starting the built command")?;
        let said = String::from_utf8_lossy(&output.stderr);
        // 1: a bound was not met, as when the machine is busy; what was measured is there.
        if !matches!(output.status.code(), Some(0 | 1)) {
            bail!(
                "{}: {}",
                output.status,
                said.lines().last().unwrap_or("nothing was said")
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    sonde(arguments)?;
    serde_json::from_str(&sonde(&["report", "export", "--json"])?)
        .context("reading the exported run")
}

/// The warm medians of the lab.
fn rows(export: &Value) -> Result<Vec<Row>> {
    let list = |path: &str| {
        let found = export.pointer(path).and_then(Value::as_array);
        found.with_context(|| format!("the exported run has no {path}"))
    };
    let launches = list("/run/launches")?;
    let mut rows = Vec::new();
    for row in list("/document/results")? {
        let is = |key: &str, wanted: &str| row[key] == wanted;
        let of_network = is("testbed", "lab")
            && row["network"]
                .as_str()
                .is_some_and(|name| name.starts_with(NETWORK));
        let Some(p50) = row["p50"].as_f64() else {
            continue;
        };
        if !(of_network && is("quantity", "latency_ns") && is("phase", "warm")) {
            continue;
        }
        let measured = |launch: &&Value| {
            let mut results = launch["results"].as_array().into_iter().flatten();
            results.any(|result| result["cell"] == row["cell"])
        };
        let of_cell = launches.iter().filter(measured);
        let evidence: Vec<&Value> = of_cell.map(|launch| &launch["evidence"]).collect();
        let seen = |path: &str| {
            let values = evidence
                .iter()
                .filter_map(|all| all.pointer(path)?.as_f64());
            let values: Vec<f64> = values.collect();
            (!values.is_empty()).then(|| median(values))
        };
        let size = row["size_bytes"].as_u64().context("a row of no size")?;
        let model = |name: &str| seen(&format!("/sizes/{size}/{name}"));
        let micros = |key: &str| row[key].as_f64().map(|ns| ns / 1e3);
        rows.push(Row {
            load: row["load"].as_str().map(str::to_owned),
            size,
            p50_us: p50 / 1e3,
            interval_us: micros("ci95_low").zip(micros("ci95_high")),
            model_us: model("load_model_idle_ns")
                .zip(model("load_model_loaded_ns"))
                .map(|(idle, loaded)| (idle / 1e3, loaded / 1e3)),
            achieved: seen("/load_flows/h2/achieved"),
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_joined_to_their_launches() {
        let text = r#"{"document": {"results": [
            {"testbed": "lab", "network": "atm-oc3c", "quantity": "latency_ns", "phase": "warm", "load": "6/10", "size_bytes": 8,
             "p50": 30000, "ci95_low": 29000, "ci95_high": 32000, "cell": "a"},
            {"testbed": "lab", "network": "atm-oc3c", "quantity": "latency_ns", "phase": "warm", "load": null, "size_bytes": 8,
             "p50": 20000, "ci95_low": null, "ci95_high": null, "cell": "b"},
            {"testbed": "local", "network": "loopback", "quantity": "latency_ns", "phase": "warm", "load": null, "size_bytes": 8, "p50": 1, "cell": "c"}]},
            "run": {"launches": [{"results": [{"cell": "a"}], "evidence": {
                "sizes": {"8": {"load_model_idle_ns": 16000, "load_model_loaded_ns": 24000}},
                "load_flows": {"h2": {"achieved": 0.599}}}},
            {"results": [{"cell": "b"}], "evidence": {}}]}}"#;
        let rows = rows(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].model_us, Some((16.0, 24.0)));
        assert_eq!((rows[1].load.clone(), rows[1].model_us), (None, None));
        let (cells, why) = compare(&rows[0], &rows[1]).unwrap();
        assert_eq!(
            (cells[3].as_str(), cells[5].as_str(), why),
            ("10.0 (9.0 to 12.0)", "+2.0", None)
        );
        assert!(
            compare(&rows[1], &rows[1]).is_err(),
            "no figure of the model"
        );
    }
}
