//! Launches of one cell dealt to identical cells: how often their intervals hold the median, and how often differences are found.
//!
//! Model:   `xtask deal coverage EXPORT`: the launches are dealt by lot to groups of six, each a cell of the usual number of launches. The
//!          median of all stands for the true one; coverage is the share of the groups whose interval holds it. Group i and that half of
//!          all further are one comparison, which is wrong where their intervals are apart. `xtask deal more EXPORT`: a twentieth of the
//!          median. `xtask deal power A B`: ten launches of each, by lot, say how many are needed ([`launches_wanted`]); of 100 draws of
//!          so many with replacement, how many are told apart ([`is_apart`]): of A and B, and of A and A. EXPORT is a file of
//!          `sonde report export --json`.
//! Source:  Hunold & Carpen-Amarie, TPDS 27(12) 2016, for launches as the unit.
//! Units:   nanoseconds are read; microseconds and shares are printed.
//! Checked: `groups_are_dealt`, `launches_are_read_from_an_export`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use sonde_stats::{Interval, is_apart, launches_wanted, median_rank_interval};

const LAUNCHES: usize = 6;
/// The level of one comparison.
const ONE: f64 = 0.05;
/// Launches of a first look, and draws.
const PILOT: usize = 10;
const DRAWS: usize = 100;

/// # Errors
/// Words that are none of these, a file that is no export or has too few launches.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["coverage", export] => coverage(&medians(export)?)?,
        ["more", export] => println!("{}", middle(&medians(export)?)? / 20),
        ["power", one, other] => power(&medians(one)?, &medians(other)?)?,
        _ => bail!("deal takes `coverage EXPORT`, `more EXPORT` or `power EXPORT EXPORT`"),
    }
    Ok(ExitCode::SUCCESS)
}

fn coverage(medians: &[u64]) -> Result<()> {
    let all = middle(medians)?;
    let groups = deal(medians);
    let groups: Vec<Interval> = groups
        .iter()
        .filter_map(|group| median_rank_interval(group, 0.95))
        .collect();
    ensure!(groups.len() >= 2, "{} launches are too few", medians.len());
    let holds = |interval: &&Interval| (interval.low..=interval.high).contains(&all);
    let held = groups.iter().filter(holds).count();
    let (one, other) = groups.split_at(groups.len() / 2);
    let apart = one
        .iter()
        .zip(other)
        .filter(|(a, b)| a.high < b.low || b.high < a.low);
    println!(
        "median_us {}\ncoverage {}\napart {}",
        all as f64 / 1e3,
        held as f64 / groups.len() as f64,
        apart.count()
    );
    Ok(())
}

fn power(one: &[u64], other: &[u64]) -> Result<()> {
    let mut state = 84_u64;
    let mut draw = |set: &[u64], count: usize| -> Vec<u64> {
        let drawn = (0..count).filter_map(|_| set.get(below(&mut state, set.len())).copied());
        drawn.collect()
    };
    let pilots = (draw(one, PILOT), draw(other, PILOT));
    let wanted = launches_wanted(&[&pilots.0, &pilots.1], 50, ONE)
        .context("ten launches do not say how many are needed")?;
    let count = usize::try_from(wanted)?;
    let mut apart = |set: &[u64]| {
        let is_one =
            |_: &usize| is_apart(&draw(one, count), &draw(set, count), ONE, 1) == Some(true);
        (0..DRAWS).filter(is_one).count()
    };
    println!(
        "wanted {wanted}\ndifferent {}\nsame {}",
        apart(other),
        apart(one)
    );
    Ok(())
}

/// What is read of an export.
#[derive(Deserialize)]
struct Export {
    run: Run,
}

#[derive(Deserialize)]
struct Run {
    launches: Vec<Launch>,
}

#[derive(Deserialize)]
struct Launch {
    results: Vec<Measured>,
}

#[derive(Deserialize)]
struct Measured {
    series: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    quantity: String,
    phase: String,
    series: Samples,
}

#[derive(Deserialize)]
struct Samples {
    first: Vec<u64>,
}

/// The median of the warm latencies of each launch, in their order.
fn medians(export: &str) -> Result<Vec<u64>> {
    let text = std::fs::read_to_string(export).with_context(|| format!("reading {export}"))?;
    of(&text).with_context(|| format!("reading {export}"))
}

fn of(text: &str) -> Result<Vec<u64>> {
    let export: Export = serde_json::from_str(text)?;
    let results = export
        .run
        .launches
        .iter()
        .flat_map(|launch| &launch.results);
    let named = results.flat_map(|result| &result.series);
    let warm = named.filter(|one| {
        one.quantity == "latency_ns" && one.phase == "warm" && !one.series.first.is_empty()
    });
    warm.map(|one| middle(&one.series.first)).collect()
}

/// A number below `count`, by Knuth's MMIX generator, whose upper bits are the good ones.
fn below(state: &mut u64, count: usize) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) % count.max(1) as u64) as usize
}

/// The lower one of those in the middle.
fn middle(values: &[u64]) -> Result<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = sorted.len().checked_sub(1).context("there is no launch")? / 2;
    sorted.get(at).copied().context("there is no launch")
}

/// By lot, as shuffled cards are dealt; the lot is the same every time. (In turn, without the lot, each group would have a
/// launch of every hour, and its median would be nearer to that of all than independent launches come.)
fn deal(values: &[u64]) -> Vec<Vec<u64>> {
    let mut cards = values.to_vec();
    let mut state = 1_u64;
    for last in (1..cards.len()).rev() {
        cards.swap(last, below(&mut state, last + 1));
    }
    let groups = (values.len() / LAUNCHES).max(1);
    let of_group = |group| cards.iter().skip(group).step_by(groups).copied().collect();
    (0..groups).map(of_group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_dealt() {
        let values: Vec<u64> = (0..600).collect();
        let groups = deal(&values);
        assert!(groups.len() == 100 && groups.iter().all(|group| group.len() == LAUNCHES));
        let mut all: Vec<u64> = groups.concat();
        all.sort_unstable();
        assert_eq!(all, values, "every launch is in one group");
        assert_ne!(
            groups[3],
            [3, 103, 203, 303, 403, 503],
            "by lot and not in turn"
        );
        assert_eq!(groups, deal(&values), "the same every time");
        assert_eq!(middle(&[5, 1, 3, 9]).unwrap(), 3);
        assert!(middle(&[]).is_err() && coverage(&[1; 7]).is_err());
    }

    #[test]
    fn launches_are_read_from_an_export() {
        let text = r#"{"run": {"launches": [{"results": [{"series": [
            {"quantity": "latency_ns", "phase": "cold", "series": {"first": [9]}},
            {"quantity": "latency_ns", "phase": "warm", "series": {"first": [4, 2, 6], "sum": 12}}
        ]}]}]}}"#;
        assert_eq!(of(text).unwrap(), [4]);
        assert!(of("{}").is_err());
    }
}
