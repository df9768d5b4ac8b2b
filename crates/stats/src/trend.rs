//! Whether what is repeated changes as time goes by.
//!
//! Model:   Mann and Kendall's test: of all pairs, those in which the later value is larger less those in which it is smaller; with
//!          many values this sum is normal, with a variance that ties lessen. The slope is Theil and Sen's: the median over
//!          all pairs of the change over the time between.
//! Source:  Mann 1945; Kendall, Rank Correlation Methods, §4.9 (ties); Sen 1968. Deviations: none.
//! Units:   values and times in the caller's units.
//! Checked: `a_steady_series_has_no_trend`, `a_slope_is_found`, `known_sums`, `one_outlier_is_no_trend`.

use crate::comparison::both_tails;

/// Fewer values have no test: the normal law is poor below.
const VALUES_MIN: usize = 8;

/// How values change with time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// The probability of a sum at least so far from zero where nothing changes.
    pub p: f64,
    /// The change in a unit of time.
    pub slope: f64,
    /// From the first to the last time, by the slope.
    pub change: f64,
}

/// The trend of `(time, value)` in any order. `None` below eight, and where all times are the same.
pub fn trend(values: &[(u64, u64)]) -> Option<Trend> {
    if values.len() < VALUES_MIN {
        return None;
    }
    let mut points = values.to_vec();
    points.sort_unstable();
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    let mut sum = 0_i64;
    for (at, early) in points.iter().enumerate() {
        for late in &points[at + 1..] {
            if late.0 == early.0 {
                continue;
            }
            let rise = late.1 as f64 - early.1 as f64;
            slopes.push(rise / (late.0 - early.0) as f64);
            sum += match late.1.cmp(&early.1) {
                std::cmp::Ordering::Greater => 1,
                std::cmp::Ordering::Equal => 0,
                std::cmp::Ordering::Less => -1,
            };
        }
    }
    let span = points.last()?.0 - points.first()?.0;
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = *slopes.get(slopes.len().checked_sub(1)? / 2)?;
    Some(Trend {
        p: probability(&points, sum),
        slope,
        change: slope * span as f64,
    })
}

fn probability(points: &[(u64, u64)], sum: i64) -> f64 {
    let part = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted: Vec<u64> = points.iter().map(|(_, value)| *value).collect();
    sorted.sort_unstable();
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|tied| part(tied.len() as f64))
        .sum();
    let variance = (part(points.len() as f64) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    both_tails((sum.unsigned_abs() as f64 - 1.0).max(0.0) / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    fn noisy(random: &mut Pcg64Mcg, count: u64, rise: u64) -> Vec<(u64, u64)> {
        (0..count)
            .map(|at| (1_000 * at, 100_000 + rise * at + random.next_u64() % 4_000))
            .collect()
    }

    #[test]
    fn a_steady_series_has_no_trend() {
        let mut random = Pcg64Mcg::seed_from_u64(11);
        let found = (0..500).filter(|_| trend(&noisy(&mut random, 12, 0)).unwrap().p < 0.01);
        let found = found.count();
        assert!(found <= 12, "{found} of 500 at one in a hundred");
        assert_eq!(trend(&noisy(&mut random, 7, 0)), None);
        assert_eq!(trend(&[(5, 1); 9]), None);
        let flat: Vec<(u64, u64)> = (0..9).map(|at| (at, 7)).collect();
        assert!((trend(&flat).unwrap().p - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_slope_is_found() {
        let mut random = Pcg64Mcg::seed_from_u64(12);
        let found = (0..200).filter(|_| trend(&noisy(&mut random, 12, 700)).unwrap().p < 0.01);
        let found = found.count();
        assert!(found >= 190, "{found} of 200");
        let one = trend(&noisy(&mut random, 40, 1_000)).unwrap();
        assert!((one.slope - 1.0).abs() < 0.05 && (one.change - 39_000.0).abs() < 2_000.0);
        let falling: Vec<(u64, u64)> = (0..10).map(|at| (at, 100 - at)).collect();
        let falling = trend(&falling).unwrap();
        assert!((falling.slope + 1.0).abs() < 1e-9 && falling.p < 0.001);
    }

    #[test]
    fn known_sums() {
        // All 45 pairs rise: S = 45, variance 10·9·25/18 = 125, z = 44/√125 = 3.935.
        let rising: Vec<(u64, u64)> = (0..10).map(|at| (at, at)).collect();
        assert!((trend(&rising).unwrap().p - 8.3e-5).abs() < 2e-6);
    }

    #[test]
    fn one_outlier_is_no_trend() {
        let mut random = Pcg64Mcg::seed_from_u64(13);
        let mut values = noisy(&mut random, 12, 0);
        values[11].1 = 10_000_000;
        let one = trend(&values).unwrap();
        assert!(one.p > 0.01 && one.change.abs() < 10_000.0, "{one:?}");
    }
}
