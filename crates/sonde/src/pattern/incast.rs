//! The congestion impact factor: what a crowd does to who only asks.
//!
//! Model:   the canary's half round trip beside senders over that without, of the launches' medians and of their 99th percentiles (of
//!          1,000 samples at least). The interval is of the bootstrap over launches. The smallest effect that could have been seen: with
//!          n launches of each and s the deviation of the idle launches' logarithms, exp((1.96 + 0.84) s sqrt(2/n)),
//!          which a test at 5 % finds four times of five.
//! Source:  GPCNeT (Chunduri et al., SC'19) for the factor; the sensitivity it lacks after Cohen 1988 §2. Deviations: none.
//! Checked: `the_factor_has_an_interval`, `what_could_be_seen_shrinks_with_launches`.

use sonde_measure::{Phase, Quantity, Repetition, Run};
use sonde_stats::Series;
use std::collections::BTreeMap;

/// A tail needs as many samples.
const SAMPLES_FOR_TAIL: u64 = 1_000;

/// Medians and tails of the canary's launches.
#[derive(Debug, Default)]
struct Canary {
    medians: Vec<u64>,
    tails: Vec<u64>,
    goodput: Vec<u64>,
}

/// The lines of an incast.
pub(super) fn lines(run: &Run, seed: u64) -> Vec<String> {
    let by = by_senders(run);
    let Some(idle) = by.get(&0) else {
        return vec!["incast: the canary was not measured without senders".into()];
    };
    let mut lines = Vec::new();
    for (senders, loaded) in by.iter().filter(|(senders, _)| **senders > 0) {
        let goodput = middle(&loaded.goodput).map_or_else(|| "-".into(), sonde_report::rate);
        lines.push(format!(
            "incast of {senders}: congestion impact factor {} of the median, {} of the 99th percentile; goodput {goodput}",
            factor(&loaded.medians, &idle.medians, seed),
            factor(&loaded.tails, &idle.tails, seed)
        ));
    }
    lines.push(match smallest(&idle.medians) {
        Some(effect) => format!(
            "the smallest factor detectable here is {effect:.3} ({} repetitions)",
            idle.medians.len()
        ),
        None => "the smallest detectable factor is not known: it needs two repetitions".into(),
    });
    lines
}

fn middle(values: &[u64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).map(|value| *value as f64)
}

fn by_senders(run: &Run) -> BTreeMap<u64, Canary> {
    let mut by: BTreeMap<u64, Canary> = BTreeMap::new();
    for cell in &run.cells {
        let knob = |name: &str| cell.factors.knobs.get(name).map(String::as_str);
        if knob("pattern") != Some("incast") {
            continue;
        }
        let Some(senders) = knob("senders").and_then(|text| text.parse().ok()) else {
            continue;
        };
        let one = by.entry(senders).or_default();
        for Repetition { result, .. } in run.repetitions_of(&cell.id) {
            let of = |quantity: Quantity| result.samples(quantity, Phase::Warm);
            if let Some(trips) = of(Quantity::LatencyNs) {
                one.medians.extend(trips.median());
                if trips.count() >= SAMPLES_FOR_TAIL {
                    one.tails.extend(trips.quantile(99, 100));
                }
            }
            if knob("flow") == Some("all") {
                one.goodput
                    .extend(of(Quantity::ThroughputBps).and_then(Series::median));
            }
        }
    }
    by
}

/// Loaded over idle, with its interval where there are launches enough.
fn factor(loaded: &[u64], idle: &[u64], seed: u64) -> String {
    let (Some(over), Some(under)) = (middle(loaded), middle(idle)) else {
        return "not known (it needs 1,000 samples per repetition)".into();
    };
    match sonde_stats::ratio(loaded, idle, seed) {
        Some(ratio) => format!("{:.2} [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high),
        None => format!(
            "{:.2} (no interval below six repetitions)",
            over / under.max(1.0)
        ),
    }
}

/// The smallest factor that is found four times of five.
fn smallest(idle: &[u64]) -> Option<f64> {
    if idle.len() < 2 {
        return None;
    }
    let logs: Vec<f64> = idle.iter().map(|ns| (*ns.max(&1) as f64).ln()).collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((2.8 * variance.sqrt() * (2.0 / n).sqrt()).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_has_an_interval() {
        let idle = [100, 101, 99, 100, 102, 98];
        let loaded = [300, 303, 297, 300, 306, 294];
        let text = factor(&loaded, &idle, 1);
        assert!(text.starts_with("3.00 ["), "{text}");
        assert!(factor(&loaded[..2], &idle[..2], 1).contains("no interval"));
        assert!(factor(&[], &idle, 1).contains("1,000 samples"));
    }

    #[test]
    fn what_could_be_seen_shrinks_with_launches() {
        let few = smallest(&[100, 110, 90, 105]).unwrap();
        let many = smallest(&[100, 110, 90, 105].repeat(8)).unwrap();
        assert!(1.0 < many && many < few, "{many} {few}");
        assert!((smallest(&[5, 5, 5]).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(smallest(&[5]), None);
    }
}
