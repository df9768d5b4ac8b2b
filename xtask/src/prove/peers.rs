//! sonde's own streams and round trips beside those of iperf3 and sockperf, in turns.
//!
//! Model:   a pair is one run of the peer and one launch of sonde, each in a lab of its own, on the same network, attachment
//!          and CPUs. The peer's rate is of the receiver's whole intervals; sockperf prints half of a round trip, as sonde's
//!          `latency_ns` is. Ratios are of the medians over pairs.
//! Units:   Mb/s are 10^6 bits of user data a second; microseconds.
//! Checked: those of `tcp`, `rtt` and `own`, which read the two sides.

use anyhow::Result;
use sonde_link::{Headers, tcp_max};
use sonde_virtual::{Sender, tcp_expected};

use crate::prove::lab::spec;
use crate::prove::own::{Sought, probe, sonde};
use crate::prove::table::{Table, verdict};
use crate::prove::{ATTACHMENTS, Ground, Proof, RATED, median, rtt, tcp};

/// sonde and its peer agree within this.
const ALIKE: f64 = 0.03;

/// Adds one row to a table.
type Row = fn(&Ground, &str, &str, &mut Table, &mut Vec<String>) -> Result<()>;
/// One kind of pair: the peer's figure and sonde's, in the same unit.
type Pair = fn(&Ground, &str, &str) -> Result<(f64, f64)>;

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut unmet = Vec::new();
    let streams = every(ground, &STREAM_HEADS, stream_row, &mut unmet);
    let trips = every(ground, &TRIP_HEADS, trip_row, &mut unmet);
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("peers"), ground.runs),
        note: format!(
            "First streams: `sonde probe throughput` (one launch, a second after the first one) and iperf3 in turns; then half round trips of 14 bytes by UDP: `sonde probe latency` and sockperf in turns, switch and programs on one CPU. {} pairs each. sonde's stream is to be within {:.1} % of what is expected and at most {:.1} % above the upper bound, and both tools within {:.0} % of each other.",
            ground.runs,
            100.0 * tcp::NEAR,
            100.0 * tcp::ABOVE,
            100.0 * ALIKE
        ),
        tables: vec![streams, trips],
        unmet,
    })
}

fn pairs(
    ground: &Ground,
    what: &str,
    network: &str,
    attachment: &str,
    pair: Pair,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for turn in 1..=ground.runs {
        let (peer, own) = pair(ground, network, attachment)?;
        eprintln!(
            "prove peers: {what} {turn}/{} {network} {attachment}: peer {peer:.3}, sonde {own:.3}",
            ground.runs
        );
        theirs.push(peer);
        ours.push(own);
    }
    Ok((theirs, ours))
}

fn stream(ground: &Ground, network: &str, attachment: &str) -> Result<(f64, f64)> {
    let theirs = tcp::one(ground, network, attachment)?.bps;
    let words = probe(
        "throughput",
        network,
        attachment,
        &["--size", "64KiB", "--budget", "2s"],
    );
    let ours = sonde(ground, &words)?.p50(Sought::warm("throughput", "throughput_bps"))?;
    Ok((theirs / 1e6, ours / 1e6))
}

fn trip(ground: &Ground, network: &str, attachment: &str) -> Result<(f64, f64)> {
    let theirs = rtt::round_trip_us(ground, network, attachment)? / 2.0;
    let words = probe(
        "latency",
        network,
        attachment,
        &["--path", "udp", "--size", "14"],
    );
    let ours = sonde(ground, &words)?.p50(Sought::warm("latency", "latency_ns"))?;
    Ok((theirs, ours / 1e3))
}

/// A row for each attachment and network; what fails is a row too.
fn every(ground: &Ground, heads: &[&'static str], row: Row, unmet: &mut Vec<String>) -> Table {
    let mut table = Table::new(heads);
    for attachment in ATTACHMENTS {
        for network in RATED {
            if let Err(error) = row(ground, network, attachment, &mut table, unmet) {
                table.broken(&[network, attachment], &error);
                unmet.push(format!("{network}, {attachment}: {error:#}"));
            }
        }
    }
    table
}

const STREAM_HEADS: [&str; 8] = [
    "network",
    "attachment",
    "iperf3, Mb/s",
    "sonde, Mb/s",
    "sonde / iperf3",
    "sonde / expected, median (worst)",
    "highest / upper bound",
    "verdict",
];

fn stream_row(
    ground: &Ground,
    network: &str,
    attachment: &str,
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let spec = spec(network)?;
    let expected = tcp_expected(&spec, &Sender::modern())
        .map_err(|reason| anyhow::anyhow!("nothing is expected: {reason:?}"))?;
    let expected = expected as f64 / 1e6;
    let most = tcp_max(&spec, Headers::Timestamps).unwrap_or(u64::MAX) as f64 / 1e6;
    let (theirs, ours) = pairs(ground, "stream", network, attachment, stream)?;
    let off = |rate: &f64| (rate / expected - 1.0).abs();
    let worst = ours
        .iter()
        .copied()
        .max_by(|a, b| off(a).total_cmp(&off(b)))
        .unwrap_or(expected);
    let highest = ours.iter().copied().fold(0.0, f64::max) / most;
    let (peer, own) = (median(theirs), median(ours));
    let ratio = own / peer;
    let mut why = Vec::new();
    if (ratio - 1.0).abs() > ALIKE {
        why.push(format!("sonde's stream is {ratio:.4} of iperf3's"));
    }
    if off(&worst) > tcp::NEAR {
        why.push(format!(
            "a launch of sonde's is at {:.4} of the expected rate",
            worst / expected
        ));
    }
    if highest > 1.0 + tcp::ABOVE {
        why.push(format!(
            "a launch of sonde's is at {highest:.4} of the upper bound"
        ));
    }
    table.row(vec![
        network.into(),
        attachment.into(),
        format!("{peer:.3}"),
        format!("{own:.3}"),
        format!("{ratio:.4}"),
        format!("{:.4} ({:.4})", own / expected, worst / expected),
        format!("{highest:.4}"),
        verdict(why.is_empty()),
    ]);
    unmet.extend(
        why.into_iter()
            .map(|why| format!("{network}, {attachment}: {why}")),
    );
    Ok(())
}

const TRIP_HEADS: [&str; 7] = [
    "network",
    "attachment",
    "model, one way, µs",
    "sockperf, µs",
    "sonde, µs",
    "sonde / sockperf",
    "verdict",
];

fn trip_row(
    ground: &Ground,
    network: &str,
    attachment: &str,
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let model_us = rtt::model_us(network)? / 2.0;
    let (theirs, ours) = pairs(ground, "round trip", network, attachment, trip)?;
    let (peer, own) = (median(theirs), median(ours));
    let ratio = own / peer;
    let is_met = (ratio - 1.0).abs() <= ALIKE;
    table.row(vec![
        network.into(),
        attachment.into(),
        format!("{model_us:.1}"),
        format!("{peer:.2}"),
        format!("{own:.2}"),
        format!("{ratio:.4}"),
        verdict(is_met),
    ]);
    if !is_met {
        unmet.push(format!(
            "{network}, {attachment}: sonde's half round trip is {ratio:.4} of sockperf's"
        ));
    }
    Ok(())
}
