//! Frames of AF_PACKET beside UDP and TCP between two hosts of a lab, and which part of a message's way makes the difference.
//!
//! Model:   one run of `sonde probe anatomy`, its launches shuffled by sonde, idle and under load: medians and their intervals
//!          of the one-way time and of its parts by the kernel's time stamps. Whoever is faster is said where the intervals are
//!          apart; the parts that differ, each as a difference of medians, say why. No path is promised to win.
//!          AF_XDP is asked for too, by a latency probe: what it gives, or why it is not there.
//! Source:  requirement N40.
//! Units:   microseconds, one way.
//! Checked: `parts_explain_a_difference`.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::prove::own::{document, sonde_words};
use crate::prove::table::Table;
use crate::prove::{Ground, Proof};

const NETWORK: &str = "ethernet-1g";
const SIZE: &str = "8";
const LAUNCHES_MIN: usize = 6;
const PATHS: [&str; 3] = ["udp", "tcp", "packet"];
/// What a one-way time is the sum of, as rows name it.
const PARTS: [(&str, &str); 5] = [
    ("send_call_ns", "send call"),
    ("queue_ns", "queue"),
    ("wire_ns", "wire"),
    ("wake_ns", "wake-up"),
    ("receive_ns", "receive call"),
];

/// The medians of one path under one load.
#[derive(Debug, Clone, PartialEq)]
struct Way {
    path: String,
    load: Option<String>,
    one_way_ns: f64,
    interval_ns: Option<(f64, f64)>,
    /// In the order of [`PARTS`].
    parts_ns: Vec<f64>,
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let launches = LAUNCHES_MIN.max(ground.runs).to_string();
    let line = format!(
        "probe anatomy --network {NETWORK} --attachment veth --hosts 2 --path {} --size {SIZE} --load 0,0.6 --launches {launches} --samples 2000",
        PATHS.join(",")
    );
    let words = sonde_words(&line);
    let measured = ways(&document(ground, &words)?)?;
    let mut heads = vec!["path", "load", "one way", "95 % interval"];
    heads.extend(PARTS.map(|part| part.1));
    let mut table = Table::new(&heads);
    for way in &measured {
        let mut cells = vec![way.path.clone(), load_of(way), micros(way.one_way_ns)];
        cells.push(way.interval_ns.map_or("–".into(), |(low, high)| {
            format!("{} to {}", micros(low), micros(high))
        }));
        cells.extend(way.parts_ns.iter().map(|part| micros(*part)));
        table.row(cells);
    }
    let mut why = Table::new(&[
        "compared",
        "load",
        "ratio",
        "faster",
        "difference",
        "of the parts",
        "most by",
    ]);
    for one in measured.iter().filter(|way| way.path == "packet") {
        let same_load = measured.iter().filter(|way| way.load == one.load);
        for other in same_load.filter(|way| way.path != "packet") {
            why.row(compare(one, other));
        }
    }
    let mut unmet = Vec::new();
    if measured.len() != 2 * PATHS.len() {
        unmet.push(format!(
            "{} of {} ways have an anatomy",
            measured.len(),
            2 * PATHS.len()
        ));
    }
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("anatomy"), ground.runs),
        note: format!(
            "`sonde {}`, {SIZE} B, medians in µs. Each part is a median of its own, so that they need not add up to the median of the whole under load. `wire` is from the sender's last stamp to the receiver's first one, and holds the emulated network and its queue; what differs in it between paths of the same load is the kernels' way to and from the device. AF_XDP: {}.",
            words.join(" "),
            xdp(ground)?
        ),
        tables: vec![table, why],
        unmet,
    })
}

/// What a latency probe by AF_XDP gives here, in words.
fn xdp(ground: &Ground) -> Result<String> {
    let line = format!(
        "probe latency --network {NETWORK} --attachment veth --hosts 2 --path udp,xdp --size {SIZE} --launches 1"
    );
    let words = sonde_words(&line);
    let found = document(ground, &words)?;
    let rows = found["results"].as_array().context("no results")?;
    let of = |path: &str| {
        rows.iter().find(|row| {
            row["path"] == path && row["quantity"] == "latency_ns" && row["phase"] == "warm"
        })
    };
    let row = of("xdp").context("there is no row of xdp")?;
    Ok(match row["p50"].as_f64() {
        Some(ns) => format!(
            "half a round trip of {} µs, by UDP {} µs",
            micros(ns),
            of("udp")
                .and_then(|row| row["p50"].as_f64())
                .map_or("–".into(), micros)
        ),
        None => format!(
            "not there ({})",
            row["reason"].as_str().unwrap_or("no reason")
        ),
    })
}

fn micros(ns: f64) -> String {
    format!("{:.2}", ns / 1e3)
}

fn load_of(way: &Way) -> String {
    way.load.clone().unwrap_or("idle".into())
}

/// The ways that have a one-way time, in the rows' order.
fn ways(document: &Value) -> Result<Vec<Way>> {
    let rows = document["results"].as_array().context("no results")?;
    let warm = |quantity: &str, of: &Value| {
        rows.iter().find(|row| {
            row["quantity"] == quantity
                && row["phase"] == "warm"
                && row["path"] == of["path"]
                && row["load"] == of["load"]
        })
    };
    let mut all = Vec::new();
    for row in rows {
        let is_whole = row["quantity"] == "one_way_ns" && row["phase"] == "warm";
        let Some(one_way_ns) = row["p50"].as_f64().filter(|_| is_whole) else {
            continue;
        };
        let mut parts_ns = Vec::new();
        for (part, name) in PARTS {
            let median = warm(part, row).and_then(|row| row["p50"].as_f64());
            parts_ns.push(median.with_context(|| format!("{} has no {name}", row["path"]))?);
        }
        all.push(Way {
            path: row["path"].as_str().unwrap_or_default().into(),
            load: match &row["load"] {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            },
            one_way_ns,
            interval_ns: row["ci95_low"].as_f64().zip(row["ci95_high"].as_f64()),
            parts_ns,
        });
    }
    Ok(all)
}

/// One row: who is faster, and by which part.
fn compare(one: &Way, other: &Way) -> Vec<String> {
    let differences: Vec<f64> = one
        .parts_ns
        .iter()
        .zip(&other.parts_ns)
        .map(|(a, b)| a - b)
        .collect();
    let whole = one.one_way_ns - other.one_way_ns;
    let faster = match one.interval_ns.zip(other.interval_ns) {
        Some((a, b)) if a.1 < b.0 => one.path.as_str(),
        Some((a, b)) if b.1 < a.0 => other.path.as_str(),
        Some(_) => "not told apart",
        None => "no interval",
    };
    // The part that goes furthest in the direction of the whole.
    let towards = |difference: f64| difference * whole.signum();
    let largest = differences
        .iter()
        .zip(PARTS)
        .max_by(|a, b| towards(*a.0).total_cmp(&towards(*b.0)));
    vec![
        format!("{} to {}", one.path, other.path),
        load_of(one),
        format!("{:.3}", one.one_way_ns / other.one_way_ns),
        faster.into(),
        micros(whole),
        differences
            .iter()
            .zip(PARTS)
            .map(|(difference, (_, name))| format!("{name} {:+.2}", difference / 1e3))
            .collect::<Vec<_>>()
            .join(", "),
        largest.map_or("–".into(), |(_, (_, name))| name.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_explain_a_difference() {
        let row = |path: &str, quantity: &str, p50: u64| {
            serde_json::json!({"path": path, "load": null, "phase": "warm", "quantity": quantity,
                "p50": p50, "ci95_low": p50 - 10, "ci95_high": p50 + 10})
        };
        let mut rows = Vec::new();
        for (path, call) in [("udp", 440), ("packet", 270)] {
            rows.push(row(path, "one_way_ns", 9_000 + call));
            rows.push(row(path, "send_call_ns", call));
            for (part, _) in &PARTS[1..] {
                rows.push(row(path, part, 2_000));
            }
        }
        let document = serde_json::json!({ "results": rows });
        let found = ways(&document).unwrap();
        assert_eq!((found.len(), found[1].parts_ns[0] as u64), (2, 270));
        let cells = compare(&found[1], &found[0]);
        assert_eq!((cells[3].as_str(), cells[4].as_str()), ("packet", "-0.17"));
        assert_eq!(cells[6], "send call");
        let back = compare(&found[0], &found[1]);
        assert_eq!(
            (back[3].as_str(), back[6].as_str()),
            ("packet", "send call")
        );
        let broken = serde_json::json!({ "results": [row("udp", "one_way_ns", 9_000)] });
        assert!(ways(&broken).is_err());
    }
}
