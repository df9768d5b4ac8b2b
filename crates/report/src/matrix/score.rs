//! How bad a pair is beside the others, and what is too bad to be chance.
//!
//! Model:   badness is ln(latency / usual) or ln(usual / rate). Of a normal distribution the 30th percentile is 0.524 spreads
//!          below the middle and 0.757 above the 10th: usual and spread are told by the better third of the pairs, so
//!          that they hold while up to three fifths are bad, as with two bad hosts of six. A pair stands out above the
//!          larger of the least practical effect and z times the spread; z grows with the number of
//!          comparisons n as the extreme of n normal draws does, sqrt(2 ln n), and one more. A host's badness is a median of
//!          k pairs, whose spread is 1.2533 / sqrt(k) of theirs.
//! Checked: `noise_stays_below_the_bound`, `the_bound_grows_with_the_comparisons`.

use std::collections::BTreeMap;

use super::{Kind, Matrix, Pair, Stage};
use crate::index::median;

/// What a stream that stood still counts as: ten thousand times slower.
pub(super) const STOOD_STILL: f64 = 9.2;

/// The least that matters in practice: twice the latency, a fifth less rate, half of it.
pub(super) fn effect(kind: Kind) -> f64 {
    match kind {
        Kind::Latency => 2.0_f64.ln(),
        Kind::Stream => 1.25_f64.ln(),
        Kind::Duplex => 2.0_f64.ln(),
    }
}

/// How bad each pair is.
#[derive(Debug, Clone)]
pub(super) struct Scores {
    pub pairs: BTreeMap<Pair, f64>,
    /// Above this a pair stands out.
    pub bound: f64,
    /// The spread of the pairs.
    pub spread: f64,
    /// The figure of a good pair in the middle.
    pub usual: f64,
}

/// Between the two nearest of sorted values.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// The badness of one figure.
pub(super) fn badness(kind: Kind, value: f64, usual: f64) -> f64 {
    let ratio = match kind {
        Kind::Latency => value / usual,
        Kind::Stream | Kind::Duplex => usual / value,
    };
    if ratio.is_finite() && ratio > 0.0 {
        ratio.ln().min(STOOD_STILL)
    } else if usual > 0.0 {
        STOOD_STILL
    } else {
        0.0
    }
}

/// Of all pairs of a stage; none where there are not two.
pub(super) fn scores(matrix: &Matrix, stage: Stage, kind: Kind) -> Option<Scores> {
    let grid = matrix.grid(stage, kind);
    if grid.len() < 2 {
        return None;
    }
    let logs = grid.values().map(|reading| match kind {
        Kind::Latency => reading.value.max(1.0).ln(),
        Kind::Stream | Kind::Duplex => -reading.value.max(1.0).ln(),
    });
    let mut logs: Vec<f64> = logs.collect();
    logs.sort_by(f64::total_cmp);
    let spread = (quantile(&logs, 0.3) - quantile(&logs, 0.1)) / 0.757;
    let centre = quantile(&logs, 0.3) + 0.524 * spread;
    let usual = match kind {
        Kind::Latency => centre.exp(),
        Kind::Stream | Kind::Duplex => (-centre).exp(),
    };
    let pairs: BTreeMap<Pair, f64> = grid
        .iter()
        .map(|(pair, reading)| (*pair, badness(kind, reading.value, usual)))
        .collect();
    let bound = bound(kind, spread, pairs.len());
    Some(Scores {
        pairs,
        bound,
        spread,
        usual,
    })
}

/// What stands out of so many comparisons.
pub(super) fn bound(kind: Kind, spread: f64, comparisons: usize) -> f64 {
    let z = (2.0 * (comparisons.max(2) as f64).ln()).sqrt() + 1.0;
    effect(kind).max(z * spread)
}

impl Scores {
    /// A host's badness by its pairs as receiver and as sender, and how many there are.
    pub fn of_host(&self, host: usize, without: &[usize]) -> [(Option<f64>, usize); 2] {
        let of = |is: &dyn Fn(&Pair) -> bool| {
            let some: Vec<f64> = self
                .pairs
                .iter()
                .filter(|(pair, _)| is(pair))
                .filter(|((a, b), _)| !without.contains(a) && !without.contains(b))
                .map(|(_, score)| *score)
                .collect();
            let count = some.len();
            (median(some), count)
        };
        [of(&|pair| pair.1 == host), of(&|pair| pair.0 == host)]
    }

    /// What stands out of the hosts' medians over so many pairs.
    pub fn host_bound(&self, kind: Kind, hosts: usize, pairs: usize) -> f64 {
        let spread = 1.2533 * self.spread / (pairs.max(1) as f64).sqrt();
        bound(kind, spread, 2 * hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Grid;
    use super::*;

    #[test]
    fn noise_stays_below_the_bound() {
        for seed in 0..20 {
            for hosts in [2, 3, 4, 7, 16, 40] {
                let matrix = Grid::healthy(hosts, seed).matrix();
                for kind in super::super::KINDS {
                    let scores = scores(&matrix, Stage::Together, kind).unwrap();
                    let over = scores.pairs.values().filter(|score| **score > scores.bound);
                    assert_eq!(over.count(), 0, "{hosts} hosts, seed {seed}");
                }
            }
        }
    }

    #[test]
    fn the_bound_grows_with_the_comparisons() {
        let bounds: Vec<f64> = [2, 12, 240, 4_032]
            .map(|n| bound(Kind::Latency, 0.4, n))
            .to_vec();
        assert!(
            bounds.windows(2).all(|pair| pair[0] < pair[1]),
            "{bounds:?}"
        );
        assert!((bound(Kind::Stream, 0.0, 9) - effect(Kind::Stream)).abs() < 1e-12);
    }

    #[test]
    fn what_stands_still_is_worst() {
        assert!((badness(Kind::Stream, 0.0, 1e6) - STOOD_STILL).abs() < 1e-12);
        assert!((badness(Kind::Latency, 2.0, 1.0) - 2.0_f64.ln()).abs() < 1e-12);
        assert!((badness(Kind::Duplex, 1.0, 2.0) - 2.0_f64.ln()).abs() < 1e-12);
    }
}
