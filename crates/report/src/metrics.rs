//! The figures of a run as OpenMetrics, for a monitoring system that draws them over time.
//!
//! Model:   one gauge a row that gave a median; a family a quantity, in the base units that the format wants: seconds, bits per second,
//!          parts of one. Labels are the row's factors. The run itself is an info metric with the time of its end.
//! Source:  OpenMetrics 1.0 (2020), the text format; Prometheus reads it too.
//! Units:   of the families' names.
//! Checked: `figures_have_base_units_and_labels`.

use std::collections::BTreeMap;

use serde::Serialize;
use sonde_measure::{Quantity, ResultRow, Run, Status};

/// The text of all figures.
pub fn open_metrics(run: &Run) -> String {
    let mut families: BTreeMap<String, (f64, &'static str, Vec<ResultRow>)> = BTreeMap::new();
    for row in run.rows() {
        if row.status != Status::Measured || row.p50.is_none() {
            continue;
        }
        let (name, unit, scale) = family(row.quantity);
        families
            .entry(name)
            .or_insert((scale, unit, Vec::new()))
            .2
            .push(row);
    }
    let mut lines = Vec::new();
    for (name, (scale, unit, rows)) in &families {
        lines.push(format!("# TYPE {name} gauge"));
        lines.extend((!unit.is_empty()).then(|| format!("# UNIT {name} {unit}")));
        lines.push(format!(
            "# HELP {name} Median over the repetitions of a run."
        ));
        let figures = rows
            .iter()
            .filter_map(|row| Some((row, row.p50?.0 * scale)));
        lines.extend(figures.map(|(row, value)| format!("{name}{} {value}", labels(row))));
    }
    let head = &run.head;
    let info = [("run", &head.id), ("version", &head.version)];
    let info = info.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    lines.push("# TYPE sonde_run info".into());
    lines.push(format!("sonde_run_info{{{}}} 1", info.join(",")));
    if let Some(end) = head.ended_unix_ns {
        let name = "sonde_run_end_timestamp_seconds";
        lines.push(format!("# TYPE {name} gauge"));
        lines.push(format!("# UNIT {name} seconds"));
        lines.push(format!("{name} {}", end as f64 / 1e9));
    }
    lines.push("# EOF\n".into());
    lines.join("\n")
}

/// The family of a quantity, its unit, and what its figures are to be multiplied by.
fn family(quantity: Quantity) -> (String, &'static str, f64) {
    let name = word(quantity).unwrap_or_default();
    let known = [
        ("_ns", "seconds", 1e-9),
        ("_bps", "bits_per_second", 1.0),
        ("_share", "ratio", 1.0),
    ];
    let found = known.iter().find_map(|(suffix, unit, scale)| {
        let stem = name.strip_suffix(suffix)?;
        Some((format!("sonde_{stem}_{unit}"), *unit, *scale))
    });
    found.unwrap_or((format!("sonde_{name}"), "", 1.0))
}

/// `{network="…",…}`, what the row has of it.
fn labels(row: &ResultRow) -> String {
    let size = row.size_bytes.map(|size| size.to_string());
    let all = [
        ("cell", Some(row.cell.clone())),
        ("network", Some(row.network.clone())),
        ("path", Some(row.path.clone())),
        ("probe", Some(row.probe.clone())),
        ("mode", row.mode.clone()),
        ("method", row.method.clone()),
        ("wait", row.wait.clone()),
        ("load", row.load.clone()),
        ("size_bytes", size),
        ("src", row.src.clone()),
        ("dst", row.dst.clone()),
        ("phase", word(row.phase)),
        ("step", word(row.step)),
    ];
    let all = all
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}=\"{}\"", escaped(&value?))));
    format!("{{{}}}", all.collect::<Vec<_>>().join(","))
}

/// The word that stands for it in a document; none where it is not set.
fn word(value: impl Serialize) -> Option<String> {
    let text = serde_json::to_string(&value).ok()?;
    Some(text.trim_matches('"').to_owned()).filter(|text| text != "null")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    #[test]
    fn figures_have_base_units_and_labels() {
        let mut run = Runs::new()
            .network(net("a\"b"))
            .latency("a\"b", "tcp", 64, 20_000)
            .done();
        run.head.ended_unix_ns = Some(1_500_000_000);
        let text = open_metrics(&run);
        assert!(
            text.contains(
                "# TYPE sonde_latency_seconds gauge\n# UNIT sonde_latency_seconds seconds\n"
            ),
            "{text}"
        );
        let line = text
            .lines()
            .find(|line| line.starts_with("sonde_latency_seconds{"))
            .unwrap();
        assert!(line.contains("network=\"a\\\"b\",path=\"tcp\""), "{line}");
        let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert!((value - 20e-6).abs() < 1e-6, "{line}");
        assert!(
            text.contains("sonde_run_end_timestamp_seconds 1.5\n"),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn labels_are_of_one_line() {
        assert_eq!(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
    }
}
