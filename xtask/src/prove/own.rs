//! sonde's own measurements, read from the JSON that it prints.
//!
//! Model:   one start of `sonde probe`, with a store in the scratch folder. A row is found by what it is, never by its place.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::prove::Ground;

/// Rows that one measurement printed.
pub struct Rows(Vec<Value>);

/// What a row is; `None` is a step of null.
#[derive(Clone, Copy)]
pub struct Sought<'a> {
    pub probe: &'a str,
    pub quantity: &'a str,
    pub phase: &'a str,
    pub step: Option<&'a str>,
}

impl<'a> Sought<'a> {
    /// The warm row of a quantity.
    pub const fn warm(probe: &'a str, quantity: &'a str) -> Self {
        Self {
            probe,
            quantity,
            phase: "warm",
            step: None,
        }
    }

    /// The row of a start-up's step; the whole where it is `None`.
    pub const fn cold(step: Option<&'a str>) -> Self {
        Self {
            probe: "startup",
            quantity: "startup_ns",
            phase: "cold",
            step,
        }
    }
}

impl Rows {
    fn of(document: &Value) -> Result<Self> {
        let rows = document["results"]
            .as_array()
            .context("sonde printed no results")?;
        Ok(Self(rows.clone()))
    }

    /// All of them.
    pub fn all(&self) -> &[Value] {
        &self.0
    }

    /// The row.
    pub fn row(&self, sought: Sought<'_>) -> Option<&Value> {
        self.0.iter().find(|row| {
            row["probe"] == sought.probe
                && row["quantity"] == sought.quantity
                && row["phase"] == sought.phase
                && row["step"] == sought.step.map_or(Value::Null, Value::from)
        })
    }

    /// Its median.
    pub fn p50(&self, sought: Sought<'_>) -> Result<f64> {
        self.number(sought, "p50")
    }

    /// Its mean.
    pub fn mean(&self, sought: Sought<'_>) -> Result<f64> {
        self.number(sought, "mean")
    }

    fn number(&self, sought: Sought<'_>, field: &str) -> Result<f64> {
        let row = self.row(sought);
        row.and_then(|row| row[field].as_f64()).with_context(|| {
            let why = row.map_or("there is no such row".into(), |row| {
                row["reason"].to_string()
            });
            format!(
                "no {} {}: {why}",
                sought.step.unwrap_or(sought.probe),
                sought.quantity
            )
        })
    }
}

/// The words of a command line.
pub fn sonde_words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Runs sonde with these words, and `--json` into the scratch store; its rows.
pub fn sonde(ground: &Ground, words: &[&str]) -> Result<Rows> {
    Rows::of(&document(ground, words)?)
}

/// The same, all that it printed.
pub fn document(ground: &Ground, words: &[&str]) -> Result<Value> {
    let output = Command::new(&ground.sonde)
        .args(words)
        .args(["--json", "--out"])
        .arg(ground.scratch.join("runs"))
        .current_dir(&ground.root)
        .stdin(Stdio::null())
        .output()
        .context("starting the built command")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "sonde {}: {}: {}",
            words.join(" "),
            output.status,
            said.trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("reading what sonde printed")
}

/// The warm samples of one launch.
pub struct Launch {
    /// The first of them, as they came; never empty.
    pub first: Vec<u64>,
    /// Of all.
    pub mean: f64,
}

/// The launches of the latest run that have samples of this quantity, in their order.
pub fn launches(ground: &Ground, quantity: &str) -> Result<Vec<Launch>> {
    let output = Command::new(&ground.sonde)
        .args(["report", "export", "--json", "--out"])
        .arg(ground.scratch.join("runs"))
        .stdin(Stdio::null())
        .output()
        .context("starting the built command")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("sonde report export: {}", said.trim());
    }
    let run: Value = serde_json::from_slice(&output.stdout).context("reading the export")?;
    let launches = run["run"]["launches"].as_array();
    let launches = launches.context("the export has no launches")?;
    let results = launches
        .iter()
        .filter_map(|launch| launch["results"].as_array());
    let all = results.flatten().filter_map(|result| of(result, quantity));
    Ok(all.collect())
}

fn of(result: &Value, quantity: &str) -> Option<Launch> {
    let is_sought = |one: &&Value| one["quantity"] == quantity && one["phase"] == "warm";
    let series = &result["series"].as_array()?.iter().find(is_sought)?["series"];
    let first = series["first"].as_array()?.iter();
    let first: Vec<u64> = first.filter_map(Value::as_u64).collect();
    let buckets = series["buckets"].as_array()?.iter();
    let count: f64 = buckets.filter_map(|bucket| bucket[1].as_f64()).sum();
    (!first.is_empty()).then_some(Launch {
        first,
        mean: series["sum"].as_f64()? / count,
    })
}

/// The words of a probe in a lab of two hosts, with one launch.
pub fn probe<'a>(
    kind: &'a str,
    network: &'a str,
    attachment: &'a str,
    rest: &[&'a str],
) -> Vec<&'a str> {
    let mut words = vec![
        "probe",
        kind,
        "--network",
        network,
        "--attachment",
        attachment,
    ];
    words.extend(["--hosts", "2", "--launches", "1"]);
    words.extend(rest);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_what_they_are() {
        let text = r#"{"results": [
            {"probe": "startup", "quantity": "startup_ns", "phase": "cold", "step": null, "p50": 3, "verdict": null},
            {"probe": "startup", "quantity": "startup_ns", "phase": "cold", "step": "vc", "p50": 21000000, "verdict": {"status": "passed"}},
            {"probe": "startup", "quantity": "startup_ns", "phase": "cold", "step": "neighbour", "p50": null, "reason": "not root", "verdict": null}
        ]}"#;
        let rows = Rows::of(&serde_json::from_str(text).unwrap()).unwrap();
        assert!((rows.p50(Sought::cold(Some("vc"))).unwrap() - 21e6).abs() < 1e-9);
        assert!((rows.p50(Sought::cold(None)).unwrap() - 3.0).abs() < 1e-9);
        let why = rows
            .p50(Sought::cold(Some("neighbour")))
            .unwrap_err()
            .to_string();
        assert!(why.contains("not root"), "{why}");
        assert!(rows.p50(Sought::warm("latency", "latency_ns")).is_err());
        assert!(Rows::of(&Value::Null).is_err());
    }

    #[test]
    fn launches_are_read_from_an_export() {
        let text = r#"{"series": [
            {"quantity": "latency_ns", "phase": "cold", "series": {"first": [9], "sum": 9, "buckets": [[9, 1]]}},
            {"quantity": "latency_ns", "phase": "warm", "series": {"first": [4, 2], "sum": 12, "buckets": [[2, 1], [4, 1], [6, 1]]}}
        ]}"#;
        let launch = serde_json::from_str(text).unwrap();
        let found = of(&launch, "latency_ns").unwrap();
        assert_eq!((found.first, found.mean as u64), (vec![4, 2], 4));
        assert!(of(&launch, "message_ns").is_none());
    }
}
