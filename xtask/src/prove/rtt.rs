//! Round trips of sockperf over each network against those over a plain delay of the same length.
//!
//! Model:   `sockperf ping-pong` over UDP with its smallest message, 14 bytes (a packet of 42). sockperf prints *half* of
//!          the round trip as latency; it is doubled here. What the host itself costs is the same on `wire:delay=D`, D being the
//!          model's one-way time of that packet; so the difference of the two is the error of the emulation. The two take
//!          turns; the difference is the median of those of the pairs.
//! Units:   microseconds.
//! Checked: `the_median_is_doubled`.

use anyhow::{Context, Result};
use sonde_units::Bytes;
use sonde_virtual::one_way;

use crate::prove::lab::{Lab, spec};
use crate::prove::table::{Table, verdict};
use crate::prove::{ATTACHMENTS, Ground, Proof, RATED, median};

/// The packet of the smallest message: 14 bytes, UDP, IPv4.
const PACKET: Bytes = Bytes(14 + 8 + 20);
const PAIRS_MIN: usize = 5;
const BOUND_US: f64 = 10.0;
const BOUND_SHARE: f64 = 0.03;
/// A server on h2 and the ping-pong with it.
pub const SCRIPT: &str = "sonde lab exec --detach h2 -- sockperf sr -i 10.9.0.2 -p 11111 >/dev/null 2>&1; sleep 0.3; sockperf pp -i 10.9.0.2 -p 11111 -m 14 -t 1";

pub fn measure(ground: &Ground) -> Result<Proof> {
    let pairs = PAIRS_MIN.max(ground.runs / 2);
    let mut table = Table::new(&[
        "network",
        "attachment",
        "model, µs",
        "round trip, µs",
        "over a wire of the same delay, µs",
        "difference, µs",
        "at most, µs",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for attachment in ATTACHMENTS {
        for network in RATED {
            if let Err(error) = row(ground, pairs, network, attachment, &mut table, &mut unmet) {
                table.broken(&[network, attachment], &error);
                unmet.push(format!("{network}, {attachment}: {error:#}"));
            }
        }
    }
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("rtt"), ground.runs),
        note: format!(
            "Median round trip of sockperf's ping-pong (UDP, 14 bytes; twice the latency that it prints), switch and programs on one CPU, {pairs} pairs of each network and a `wire` with the model's one-way time as its delay. The difference may be {BOUND_US} µs or {:.0} % of the model's round trip, whichever is more.",
            100.0 * BOUND_SHARE
        ),
        tables: vec![table],
        unmet,
    })
}

fn row(
    ground: &Ground,
    pairs: usize,
    network: &str,
    attachment: &str,
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let model_us = model_us(network)?;
    let wire = wire(network)?;
    let (mut there, mut plain, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 1..=pairs {
        let (a, b) = (
            round_trip_us(ground, network, attachment)?,
            round_trip_us(ground, &wire, attachment)?,
        );
        eprintln!("prove rtt: {pair}/{pairs} {network} {attachment}: {a:.1} us, wire {b:.1} us");
        there.push(a);
        plain.push(b);
        differences.push(a - b);
    }
    let difference = median(differences);
    let bound = BOUND_US.max(BOUND_SHARE * model_us);
    let is_met = difference.abs() <= bound;
    table.row(vec![
        network.to_owned(),
        attachment.to_owned(),
        format!("{model_us:.1}"),
        format!("{:.1}", median(there)),
        format!("{:.1}", median(plain)),
        format!("{difference:+.1}"),
        format!("{bound:.1}"),
        verdict(is_met),
    ]);
    if !is_met {
        unmet.push(format!("{network}, {attachment}: the round trip is {difference:+.1} us from that over a wire of the same delay, more than {bound:.1} us"));
    }
    Ok(())
}

/// A wire that takes as long as the network does for sockperf's packet.
pub fn wire(network: &str) -> Result<String> {
    let way = one_way(&spec(network)?, PACKET)?;
    Ok(format!("wire:delay={}ns", way.0.as_nanos()))
}

/// The model's round trip of sockperf's packet.
pub fn model_us(network: &str) -> Result<f64> {
    let way = one_way(&spec(network)?, PACKET)?;
    Ok(2.0 * way.0.as_nanos() as f64 / 1e3)
}

/// The median round trip of sockperf in a lab of its own.
pub fn round_trip_us(ground: &Ground, network: &str, attachment: &str) -> Result<f64> {
    let lab = Lab {
        cpus: "one",
        ..Lab::new(network, attachment)
    };
    doubled_median(&lab.sh(ground, SCRIPT)?.output)
}

/// Twice the median that sockperf prints.
fn doubled_median(text: &str) -> Result<f64> {
    let line = text.lines().find(|line| line.contains("percentile 50.000"));
    let value = line.and_then(|line| line.rsplit('=').next()?.trim().parse::<f64>().ok());
    Ok(2.0 * value.context("sockperf printed no median")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_doubled() {
        let text = "sockperf: ---> percentile 75.000 =   27.474\nsockperf: ---> percentile 50.000 =   27.119\n";
        assert!((doubled_median(text).unwrap() - 54.238).abs() < 1e-9);
        assert!(doubled_median("sockperf: No messages were received").is_err());
    }
}
