//! Rings of two to ten nodes: for each set of pairs of the SCI study the aggregate grows with the nodes, since no node's
//! adapter fills the ring.
//!
//! Model:   every node sends and receives one stream at most, bound by its own adapter; the ring's links carry the sum of what
//!          passes by, far below their rate. The aggregate is proportional to the senders.
//! Source:  the SCI cluster testbed: rings of 2 to 10 nodes, sets even to next, odd to previous, half way round; the ring is
//!          not felt below twenty nodes.
//! Units:   Mb/s are 10^6 bits of user data a second.
//! Checked: `the_aggregate_is_found`.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::prove::own::sonde;
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof};

const NETWORK: &str = "sci-sbus";
const NODES: [usize; 5] = [2, 4, 6, 8, 10];
const SETS: [&str; 4] = ["even-next", "odd-previous", "half-ring", "shift:1"];
/// How far a sender's share may be from its set's median share.
const APART: f64 = 0.1;

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut table = Table::new(&[
        "set",
        "2 nodes",
        "4",
        "6",
        "8",
        "10",
        "a sender, lowest to highest",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for set in SETS {
        let mut cells = vec![set.to_owned()];
        let mut shares = Vec::new();
        for nodes in NODES {
            let (bps, senders) = aggregate(ground, set, nodes)?;
            eprintln!(
                "prove rings: {set} {nodes}: {:.1} Mb/s of {senders}",
                bps / 1e6
            );
            cells.push(format!("{:.1}", bps / 1e6));
            shares.push(bps / 1e6 / senders as f64);
        }
        shares.sort_by(f64::total_cmp);
        let (low, middle, high) = (
            shares[0],
            shares[shares.len() / 2],
            shares[shares.len() - 1],
        );
        let is_met = low >= middle * (1.0 - APART) && high <= middle * (1.0 + APART);
        if !is_met {
            unmet.push(format!("{set}: a sender has {low:.1} to {high:.1} Mb/s"));
        }
        cells.push(format!("{low:.1} to {high:.1}"));
        cells.push(verdict(is_met));
        table.row(cells);
    }
    Ok(Proof {
        command: Ground::retry("rings"),
        note: format!(
            "`sonde probe pattern SET --network {NETWORK} --hosts NODES`, six launches, the aggregate in Mb/s. The share of a sender is to stay within {:.0} % of the set's median share.",
            100.0 * APART
        ),
        tables: vec![table],
        unmet,
    })
}

/// The aggregate of a set, and how many send.
fn aggregate(ground: &Ground, set: &str, nodes: usize) -> Result<(f64, usize)> {
    let hosts = nodes.to_string();
    let words = [
        "probe",
        "pattern",
        set,
        "--network",
        NETWORK,
        "--hosts",
        &hosts,
        "--launches",
        "6",
    ];
    let rows = sonde(ground, &words)?;
    of(rows.all()).with_context(|| format!("{set} of {nodes} nodes"))
}

fn of(rows: &[Value]) -> Result<(f64, usize)> {
    let rates: Vec<&Value> = rows
        .iter()
        .filter(|row| row["quantity"] == "throughput_bps")
        .collect();
    let all = rates.iter().find(|row| row["knobs"]["flow"] == "all");
    let bps = match all {
        Some(row) => row["p50"].as_f64(),
        // A set of one pair is its own sum.
        None => rates.first().and_then(|row| row["p50"].as_f64()),
    };
    let flows = rates.len() - usize::from(all.is_some());
    Ok((bps.context("no aggregate")?, flows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aggregate_is_found() {
        let row = |flow: &str, p50: f64| serde_json::json!({"quantity": "throughput_bps", "knobs": {"flow": flow}, "p50": p50});
        let rows = [row("h1>h2", 1.0), row("h2>h1", 2.0), row("all", 2.5)];
        assert_eq!(of(&rows).unwrap(), (2.5, 2));
        assert_eq!(of(&rows[..1]).unwrap(), (1.0, 1));
        assert!(of(&[]).is_err());
    }
}
