//! How far a delay is off, by sockperf, on a CPU of its own beside a free one.
//!
//! Model:   the ping-pong of `rtt` on a network and on `wire:delay=D`, D being the model's one-way time of the packet, by
//!          turns. What the hosts themselves cost is in both, so the error of one way is a network's latency less
//!          the wire's median. Its 99th percentile is that of the latencies less the same median. Switch and programs share one CPU; the others
//!          are free. What the machine does beside it shows in the wire's own 99th percentile.
//! Units:   microseconds, one way, which is what sockperf prints: half of a round trip.
//! Checked: `percentiles_are_found`.

use anyhow::{Context, Result};

use crate::prove::lab::Lab;
use crate::prove::rtt::{self, model_us};
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof, load_average, median};

const NETWORKS: [&str; 5] = ["ethernet-10", "fddi", "atm-oc3c", "hippi-800", "fc-266"];
const ATTACHMENT: &str = "tap";
const PAIRS_MIN: usize = 5;
const BOUND_US: f64 = 50.0;

/// Percentiles of one run.
struct Latency {
    median_us: f64,
    p99_us: f64,
}

pub fn measure(ground: &Ground) -> Result<Proof> {
    let pairs = PAIRS_MIN.max(ground.runs / 2);
    let mut table = Table::new(&[
        "network",
        "model, µs",
        "error at the median, µs",
        "error at p99, µs",
        "p99 of the wire itself, µs",
        "fidelity passed",
        "load average",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for network in NETWORKS {
        if let Err(error) = row(ground, pairs, network, &mut table, &mut unmet) {
            table.broken(&[network], &error);
            unmet.push(format!("{network}: {error:#}"));
        }
    }
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("delay"), ground.runs),
        note: format!(
            "sockperf's ping-pong (UDP, 14 bytes) on a TAP, switch and programs on one CPU, the others free; {pairs} pairs of each network and a `wire` with the model's one-way time as its delay. The error of one way is the network's latency less the wire's median; medians over the pairs. Its 99th percentile is to be less than {BOUND_US} µs.",
        ),
        tables: vec![table],
        unmet,
    })
}

fn row(
    ground: &Ground,
    pairs: usize,
    network: &str,
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let model_us = model_us(network)? / 2.0;
    let wire = rtt::wire(network)?;
    let (mut middles, mut tails, mut wires, mut loads) = (vec![], vec![], vec![], vec![]);
    let mut passed = 0;
    for pair in 1..=pairs {
        loads.extend(load_average());
        let (there, is_true) = latency(ground, network)?;
        let (plain, _) = latency(ground, &wire)?;
        eprintln!(
            "prove delay: {pair}/{pairs} {network}: {:.1} us, p99 {:.1} us; wire {:.1} us, p99 {:.1} us",
            there.median_us, there.p99_us, plain.median_us, plain.p99_us
        );
        middles.push(there.median_us - plain.median_us);
        tails.push(there.p99_us - plain.median_us);
        wires.push(plain.p99_us - plain.median_us);
        passed += usize::from(is_true);
    }
    let tail = median(tails);
    let is_met = tail < BOUND_US;
    let load = if loads.is_empty() {
        f64::NAN
    } else {
        median(loads)
    };
    table.row(vec![
        network.to_owned(),
        format!("{model_us:.1}"),
        format!("{:+.1}", median(middles)),
        format!("{tail:+.1}"),
        format!("{:+.1}", median(wires)),
        format!("{passed} of {pairs}"),
        format!("{load:.1}"),
        verdict(is_met),
    ]);
    if !is_met {
        unmet.push(format!("{network}: the delay is off by {tail:+.1} us at the 99th percentile, not by less than {BOUND_US} us"));
    }
    Ok(())
}

/// One run of sockperf in a lab of its own, and whether the lab was true to the model.
fn latency(ground: &Ground, network: &str) -> Result<(Latency, bool)> {
    let lab = Lab {
        cpus: "one",
        ..Lab::new(network, ATTACHMENT)
    };
    let ran = lab.sh(ground, rtt::SCRIPT)?;
    Ok((read(&ran.output)?, ran.report.passed()))
}

fn read(text: &str) -> Result<Latency> {
    let at = |percentile: &str| {
        let line = text.lines().find(|line| line.contains(percentile));
        let value = line.and_then(|line| line.rsplit('=').next()?.trim().parse::<f64>().ok());
        value.with_context(|| format!("sockperf printed no {percentile}"))
    };
    Ok(Latency {
        median_us: at("percentile 50.000")?,
        p99_us: at("percentile 99.000")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_found() {
        let text = "sockperf: ---> percentile 99.900 =   70.1\nsockperf: ---> percentile 99.000 =   40.5\nsockperf: ---> percentile 50.000 =   27.1\n";
        let found = read(text).unwrap();
        assert!((found.median_us - 27.1).abs() < 1e-9 && (found.p99_us - 40.5).abs() < 1e-9);
        assert!(read("sockperf: No messages were received").is_err());
    }
}
