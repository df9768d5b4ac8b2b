//! The HIPPI study's sweep again: what a window, a large buffer without and with window scaling, the program's buffer and the
//! MTU do to a stream whose segments come back after 3.1 ms.
//!
//! Model:   a stream carries at most a window each round trip. A window of 64 KiB is 21.1 MB/s, whatever the buffers of the
//!          program; a socket buffer of 384 KiB changes nothing while the window is not scaled, and all once it is; a clamp at
//!          192 KiB is three times the first. The delay leaves 3.1 ms for a full segment and its acknowledgement.
//! Source:  the study's section 4.1 and figures 3 and 4: 20 MB/s, 20 MB/s, 70 MB/s down to buffers of 10 KB.
//! Units:   MB/s are 10^6 bytes of user data a second.
//! Checked: `rows_are_found_by_their_size`.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::prove::own::sonde;
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof};

const ROUND_TRIP_S: f64 = 3.1e-3;
const NETWORK: &str = "hippi-800:delay=1.2ms";
/// The program's buffers; from 10 KB on the study found each curve flat.
const BUFFERS: [(&str, u64); 4] = [
    ("1KiB", 1 << 10),
    ("10KiB", 10 << 10),
    ("64KiB", 64 << 10),
    ("384KiB", 384 << 10),
];
/// No stream is above its window's bound by more.
const ABOVE: f64 = 1.02;
/// What a stream is to reach of the bound, or of the study's figure where another limit was first.
const LEAST: f64 = 0.9;

/// A setting, the least bound of its window, and what the study printed.
struct Setting {
    name: &'static str,
    with: &'static [&'static str],
    window_bytes: f64,
    printed_mb: Option<f64>,
}

const SETTINGS: [Setting; 4] = [
    Setting {
        name: "64 KiB",
        with: &["window=64KiB", "scaling=off"],
        window_bytes: 65_536.0,
        printed_mb: Some(20.0),
    },
    Setting {
        name: "384 KiB, not scaled",
        with: &["buffer=384KiB", "scaling=off"],
        window_bytes: 65_536.0,
        printed_mb: Some(20.0),
    },
    Setting {
        name: "clamped at 192 KiB",
        with: &["window=192KiB", "scaling=on"],
        window_bytes: 196_608.0,
        printed_mb: None,
    },
    Setting {
        name: "384 KiB, scaled",
        with: &["buffer=384KiB", "scaling=on"],
        window_bytes: 393_216.0,
        printed_mb: Some(70.0),
    },
];

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut unmet = Vec::new();
    Ok(Proof {
        command: Ground::retry("hippi"),
        note: format!(
            "`sonde probe sweep --network {NETWORK}`, six launches of each cell, MB/s at the receiver. A row is met where no rate is above {ABOVE} of window / round trip, and from buffers of 10 KiB on each is at least {LEAST} of the bound or of what the study printed."
        ),
        tables: vec![windows(ground, &mut unmet)?, segments(ground, &mut unmet)?],
        unmet,
    })
}

/// The rows of one setting.
fn sweep(ground: &Ground, with: &[&str], sizes: &str) -> Result<Vec<Value>> {
    let mut words = vec!["probe", "sweep", "--network", NETWORK, "--hosts", "2"];
    words.extend(["--launches", "6", "--size", sizes]);
    for knob in with {
        words.extend(["--with", knob]);
    }
    Ok(sonde(ground, &words)?.all().to_vec())
}

/// The median of a quantity at one size.
fn at(rows: &[Value], quantity: &str, size_bytes: u64) -> Result<f64> {
    let is_it = |row: &&Value| {
        row["probe"] == "throughput"
            && row["quantity"] == quantity
            && row["size_bytes"] == size_bytes
    };
    let row = rows
        .iter()
        .find(is_it)
        .with_context(|| format!("no row of {quantity} at {size_bytes} B"))?;
    row["p50"]
        .as_f64()
        .with_context(|| format!("{quantity} at {size_bytes} B is null: {}", row["reason"]))
}

fn windows(ground: &Ground, unmet: &mut Vec<String>) -> Result<Table> {
    let mut table = Table::new(&[
        "window",
        "1 KiB",
        "10 KiB",
        "64 KiB",
        "384 KiB",
        "window / 3.1 ms",
        "printed",
        "verdict",
    ]);
    let sizes: Vec<&str> = BUFFERS.iter().map(|(text, _)| *text).collect();
    for setting in &SETTINGS {
        let rows = sweep(ground, setting.with, &sizes.join(","))?;
        let rates: Vec<f64> = BUFFERS
            .iter()
            .map(|(_, size)| Ok(at(&rows, "throughput_bps", *size)? / 8e6))
            .collect::<Result<_>>()?;
        let bound_mb = setting.window_bytes / ROUND_TRIP_S / 1e6;
        let wanted_mb = LEAST * setting.printed_mb.unwrap_or(f64::INFINITY).min(bound_mb);
        let is_met = rates.iter().all(|mb| *mb <= ABOVE * bound_mb)
            && rates[1..].iter().all(|mb| *mb >= wanted_mb);
        if !is_met {
            unmet.push(format!(
                "{}: {rates:.1?} MB/s, bound {bound_mb:.1}",
                setting.name
            ));
        }
        let mut cells = vec![setting.name.to_owned()];
        cells.extend(rates.iter().map(|mb| format!("{mb:.1}")));
        cells.push(format!("{bound_mb:.1}"));
        cells.push(
            setting
                .printed_mb
                .map_or("–".into(), |mb| format!("{mb:.0}")),
        );
        cells.push(verdict(is_met));
        table.row(cells);
    }
    Ok(table)
}

/// Smaller segments carry less, and cost more processor time a byte.
fn segments(ground: &Ground, unmet: &mut Vec<String>) -> Result<Table> {
    let mut table = Table::new(&["MTU", "MB/s", "sender, ns/B", "receiver, ns/B", "verdict"]);
    let mut before: Option<[f64; 2]> = None;
    for mtu in ["mtu=65280", "mtu=9000", "mtu=1500"] {
        let with = ["buffer=384KiB", "scaling=on", mtu];
        let rows = sweep(ground, &with, "64KiB")?;
        let size = 64 << 10;
        let mb = at(&rows, "throughput_bps", size)? / 8e6;
        let sender = at(&rows, "cpu_src_ns_per_byte", size)?;
        let receiver = at(&rows, "cpu_dst_ns_per_byte", size)?;
        let cost = sender + receiver;
        let is_met = before.is_none_or(|[rate, before]| mb < rate && cost > before);
        if !is_met {
            unmet.push(format!(
                "{mtu}: {mb:.1} MB/s at {cost:.2} ns/B are no worse than the larger MTU"
            ));
        }
        before = Some([mb, cost]);
        table.row(vec![
            mtu.trim_start_matches("mtu=").into(),
            format!("{mb:.1}"),
            format!("{sender:.3}"),
            format!("{receiver:.3}"),
            verdict(is_met),
        ]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_size() {
        let row = |size: u64, p50: Value| serde_json::json!({"probe": "throughput", "quantity": "throughput_bps", "size_bytes": size, "p50": p50, "reason": "lost"});
        let rows = [row(1_024, 8e6.into()), row(65_536, Value::Null)];
        assert!((at(&rows, "throughput_bps", 1_024).unwrap() - 8e6).abs() < 1.0);
        let why = at(&rows, "throughput_bps", 65_536).unwrap_err().to_string();
        assert!(why.contains("lost"), "{why}");
        assert!(at(&rows, "throughput_bps", 7).is_err());
    }
}
