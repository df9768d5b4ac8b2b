//! The same cell against itself: does an interval hold the median as often as it says?
//!
//! Model:   one cell is launched 600 times, and the launches are dealt by lot to 100 groups of six, each a cell of the usual
//!          number of launches. Group i and group i + 50 are one comparison. The median of all 600 stands for the true one;
//!          coverage is the share of the groups whose interval holds it. A comparison that finds a difference is wrong:
//!          intervals apart.
//!          Power: 40 launches on a network with a delay of 100 µs and 40 with one that makes the median 5 % larger; ten
//!          of each, by lot, say how many are needed ([`launches_wanted`]), and of 100 draws of so many from both sets, with
//!          replacement, at least 84 must be told apart ([`is_apart`]). A/A: the same with both draws from one set.
//! Source:  Hunold & Carpen-Amarie, TPDS 27(12) 2016, for launches as the unit.
//! Checked: `groups_are_dealt`.

use anyhow::{Context, Result, ensure};
use sonde_stats::{Interval, is_apart, launches_wanted, median_rank_interval};

use crate::prove::own::{Sought, launches, sonde};
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof};

const GROUPS: usize = 100;
const LAUNCHES: usize = 6;
/// Launches of each network whose difference is to be found, and of these a first look.
const POWER_LAUNCHES: usize = 40;
const PILOT: usize = 10;
const COVERAGE: std::ops::RangeInclusive<f64> = 0.88..=0.99;

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut table = Table::new(&[
        "cell",
        "launches",
        "median, µs",
        "coverage",
        "comparisons",
        "intervals apart",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for network in ["ethernet-1g", "loopback"] {
        eprintln!("prove again: {network}");
        if let Err(error) = row(ground, network, &mut table, &mut unmet) {
            table.broken(&[network], &error);
            unmet.push(format!("{network}: {error:#}"));
        }
    }
    let mut told = Table::new(&[
        "compared",
        "medians, µs",
        "launches asked for",
        "told apart, of 100",
        "allowed",
        "verdict",
    ]);
    eprintln!("prove again: power");
    if let Err(error) = power(ground, &mut told, &mut unmet) {
        told.broken(&["power"], &error);
        unmet.push(format!("power: {error:#}"));
    }
    Ok(Proof {
        command: Ground::retry("again"),
        note: format!(
            "Latency of 8 B by TCP, {} launches, as {GROUPS} identical cells of {LAUNCHES}. Nominal coverage of six launches is 96.9 %; it is to be between {:.0} and {:.0} %.",
            GROUPS * LAUNCHES,
            100.0 * COVERAGE.start(),
            100.0 * COVERAGE.end()
        ),
        tables: vec![table, told],
        unmet,
    })
}

fn row(ground: &Ground, network: &str, table: &mut Table, unmet: &mut Vec<String>) -> Result<()> {
    let launches = (GROUPS * LAUNCHES).to_string();
    let mut words = vec![
        "probe",
        "latency",
        "--size",
        "8",
        "--budget",
        "20ms",
        "--samples",
        "500",
        "--launches",
        &launches,
    ];
    words.extend(if network == "loopback" {
        vec!["--testbed", "local"]
    } else {
        vec!["--network", network, "--hosts", "2"]
    });
    sonde(ground, &words)?.p50(Sought::warm("latency", "latency_ns"))?;
    let medians = medians(ground)?;
    let all = middle(&medians);
    let groups: Vec<Interval> = deal(&medians)
        .iter()
        .filter_map(|group| median_rank_interval(group, 0.95))
        .collect();
    ensure!(
        groups.len() == GROUPS,
        "{} of {GROUPS} groups have an interval",
        groups.len()
    );
    let held = groups
        .iter()
        .filter(|interval| (interval.low..=interval.high).contains(&all))
        .count();
    let coverage = held as f64 / GROUPS as f64;
    let apart = (0..GROUPS / 2).filter(|i| {
        let (a, b) = (groups[*i], groups[*i + GROUPS / 2]);
        a.high < b.low || b.high < a.low
    });
    let apart = apart.count();
    let is_met = COVERAGE.contains(&coverage);
    table.row(vec![
        network.into(),
        medians.len().to_string(),
        format!("{:.2}", all as f64 / 1e3),
        format!("{:.0} %", 100.0 * coverage),
        (GROUPS / 2).to_string(),
        apart.to_string(),
        verdict(is_met),
    ]);
    if !is_met {
        unmet.push(format!("{network}: coverage is {:.0} %", 100.0 * coverage));
    }
    Ok(())
}

/// Launches of a network whose one-way delay is this.
fn delayed(ground: &Ground, delay: &str) -> Result<Vec<u64>> {
    let network = format!("wire:delay={delay}");
    let launches = POWER_LAUNCHES.to_string();
    let words = [
        "probe",
        "latency",
        "--size",
        "8",
        "--budget",
        "20ms",
        "--samples",
        "200",
        "--hosts",
        "2",
        "--launches",
        &launches,
        "--network",
        &network,
    ];
    sonde(ground, &words)?.p50(Sought::warm("latency", "latency_ns"))?;
    medians(ground)
}

/// How often a change of 5 % is found with the launches that are asked for, and how often none is.
fn power(ground: &Ground, table: &mut Table, unmet: &mut Vec<String>) -> Result<()> {
    let base = delayed(ground, "100us")?;
    // What the network adds to the hosts' own time, so that the sum is 5 % more.
    let more_ns = middle(&base) / 20;
    let longer = delayed(ground, &format!("{}ns", 100_000 + more_ns))?;
    ensure!(
        base.len().min(longer.len()) >= POWER_LAUNCHES - 2,
        "{} and {} of {POWER_LAUNCHES} launches were made",
        base.len(),
        longer.len()
    );
    let mut state = 84_u64;
    let mut draw = |set: &[u64], count: usize| -> Vec<u64> {
        let one = |_| set[below(&mut state, set.len())];
        (0..count).map(one).collect()
    };
    let (pilot_a, pilot_b) = (draw(&base, PILOT), draw(&longer, PILOT));
    let wanted = launches_wanted(&[&pilot_a, &pilot_b], 50)
        .context("ten launches do not say how many are needed")? as usize;
    for (name, other, allowed) in [
        ("100 µs, and 5 % more", &longer, 84..=100),
        ("100 µs with itself", &base, 0..=10),
    ] {
        let apart = (0..100).filter(|_| {
            let (a, b) = (draw(&base, wanted), draw(other, wanted));
            is_apart(&a, &b, 1) == Some(true)
        });
        let apart = apart.count();
        let is_met = allowed.contains(&apart);
        let micros = |set: &[u64]| format!("{:.2}", middle(set) as f64 / 1e3);
        table.row(vec![
            name.into(),
            format!("{}, {}", micros(&base), micros(other)),
            wanted.to_string(),
            apart.to_string(),
            format!("{} to {}", allowed.start(), allowed.end()),
            verdict(is_met),
        ]);
        if !is_met {
            unmet.push(format!("{name}: {apart} of 100 were told apart"));
        }
    }
    Ok(())
}

/// A number below `count`, by Knuth's MMIX generator, whose upper bits are the good ones.
fn below(state: &mut u64, count: usize) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) % count as u64) as usize
}

/// The median of each launch of the latest run, in their order.
fn medians(ground: &Ground) -> Result<Vec<u64>> {
    let launches = launches(ground, "latency_ns")?;
    let firsts = launches.into_iter().map(|launch| launch.first);
    Ok(firsts.map(|first| middle(&first)).collect())
}

/// The lower one of those in the middle.
fn middle(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() - 1) / 2]
}

/// By lot, as shuffled cards are dealt; the lot is the same every time. (In turn, without the lot, each group would have a
/// launch of every hour, and its median would be nearer to that of all than independent launches come.)
fn deal(values: &[u64]) -> Vec<Vec<u64>> {
    let mut cards = values.to_vec();
    let mut state = 1_u64;
    for last in (1..cards.len()).rev() {
        cards.swap(last, below(&mut state, last + 1));
    }
    let mut groups = vec![Vec::new(); GROUPS];
    for (index, value) in cards.iter().enumerate() {
        groups[index % GROUPS].push(*value);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_dealt() {
        let values: Vec<u64> = (0..600).collect();
        let groups = deal(&values);
        assert!(groups.iter().all(|group| group.len() == LAUNCHES));
        let mut all: Vec<u64> = groups.concat();
        all.sort_unstable();
        assert_eq!(all, values, "every launch is in one group");
        assert_ne!(
            groups[3],
            [3, 103, 203, 303, 403, 503],
            "by lot and not in turn"
        );
        assert_eq!(groups, deal(&values), "the same every time");
        assert_eq!(middle(&[5, 1, 3, 9]), 3);
    }
}
