//! Order statistics of one population of samples.
//!
//! Model:   the quantile q of n sorted samples is the one of rank ⌈q·n⌉ (the inverse of the empirical distribution,
//!          Hyndman-Fan type 1): always a sample that occurred, never a value between two. The median of an even number
//!          is the lower of the two in the middle.
//! Source:  Hyndman & Fan, The American Statistician 50(4) 1996, definition 1. Deviations: none.
//! Units:   the mean is rounded to the nearest integer, halves up.
//! Checked: `closed_forms`, `quantiles_are_monotone_and_the_max_is_the_max`, `tails_need_samples`.

use serde::{Deserialize, Serialize};

/// Below this many samples there is no 99th percentile.
pub const SAMPLES_FOR_P99: usize = 1_000;
/// Below this many samples there is no 99.9th percentile.
pub const SAMPLES_FOR_P999: usize = 10_000;

/// Samples of one population, sorted; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples(Vec<u64>);

/// A population in eight numbers, all from the same samples. `None`: too few samples to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// How many samples.
    pub count: u64,
    /// The smallest.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// Nine tenths are not above it.
    pub p90: u64,
    /// The 99th percentile; `None` below [`SAMPLES_FOR_P99`].
    pub p99: Option<u64>,
    /// The 99.9th percentile; `None` below [`SAMPLES_FOR_P999`].
    pub p999: Option<u64>,
    /// The largest sample itself, never that of a bucket.
    pub max: u64,
    /// The arithmetic mean, rounded.
    pub mean: u64,
}

impl Samples {
    /// Takes and sorts samples; `None` without any.
    pub fn new(mut samples: Vec<u64>) -> Option<Self> {
        samples.sort_unstable();
        (!samples.is_empty()).then_some(Self(samples))
    }

    /// The sample of rank ⌈n·`numerator`/`denominator`⌉.
    ///
    /// # Panics
    /// When the fraction is not within 0 to 1.
    pub fn quantile(&self, numerator: u64, denominator: u64) -> u64 {
        assert!(
            numerator <= denominator && denominator > 0,
            "{numerator}/{denominator} is not a quantile"
        );
        let rank = (self.0.len() as u128 * u128::from(numerator)).div_ceil(denominator.into());
        self.0[(rank as usize).saturating_sub(1)]
    }

    /// The median, a sample itself.
    pub fn median(&self) -> u64 {
        self.quantile(1, 2)
    }

    /// The samples in ascending order.
    pub fn sorted(&self) -> &[u64] {
        &self.0
    }

    /// The summary of all of them.
    pub fn summary(&self) -> Summary {
        let count = self.0.len();
        let sum: u128 = self.0.iter().map(|&sample| u128::from(sample)).sum();
        let tail = |needed: usize, per_mille: u64| {
            (count >= needed).then(|| self.quantile(per_mille, 1_000))
        };
        Summary {
            count: count as u64,
            min: self.0[0],
            p50: self.median(),
            p90: self.quantile(9, 10),
            p99: tail(SAMPLES_FOR_P99, 990),
            p999: tail(SAMPLES_FOR_P999, 999),
            max: self.0[count - 1],
            mean: ((sum + count as u128 / 2) / count as u128) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn summary(samples: impl IntoIterator<Item = u64>) -> Summary {
        Samples::new(samples.into_iter().collect())
            .unwrap()
            .summary()
    }

    #[test]
    fn closed_forms() {
        let hundred = summary((1..=100).rev());
        assert_eq!(
            (hundred.min, hundred.p50, hundred.p90, hundred.max),
            (1, 50, 90, 100)
        );
        assert_eq!((hundred.count, hundred.mean), (100, 51)); // 50.5, halves up
        let one = summary([7]);
        assert_eq!(
            (one.min, one.p50, one.p90, one.max, one.mean),
            (7, 7, 7, 7, 7)
        );
        assert_eq!(summary([u64::MAX, u64::MAX]).mean, u64::MAX);
        assert_eq!(Samples::new(vec![]), None);
    }

    #[test]
    fn tails_need_samples() {
        assert_eq!(summary(1..=999).p99, None);
        assert_eq!(summary(1..=1_000).p99, Some(990));
        assert_eq!(summary(1..=9_999).p999, None);
        assert_eq!(summary(1..=10_000).p999, Some(9_990));
    }

    proptest! {
        #[test]
        fn quantiles_are_monotone_and_the_max_is_the_max(
            samples in prop::collection::vec(any::<u64>(), 1..1200),
            (low, high) in (0u64..=1000, 0u64..=1000).prop_map(|(a, b)| (a.min(b), a.max(b))),
        ) {
            let sorted = Samples::new(samples.clone()).unwrap();
            prop_assert!(sorted.quantile(low, 1000) <= sorted.quantile(high, 1000));
            let summary = sorted.summary();
            prop_assert_eq!(Some(&summary.max), samples.iter().max());
            prop_assert_eq!(Some(&summary.min), samples.iter().min());
            prop_assert!(summary.min <= summary.mean && summary.mean <= summary.max);
            prop_assert_eq!(summary.p99.is_some(), samples.len() >= SAMPLES_FOR_P99);
            // The definition: at least q·n samples are not above it, and fewer than q·n are below it.
            let value = sorted.quantile(high, 1000);
            let share = |count: usize| count as u64 * 1000;
            let wanted = high * samples.len() as u64;
            prop_assert!(share(samples.iter().filter(|&&s| s <= value).count()) >= wanted);
            prop_assert!(high == 0 || share(samples.iter().filter(|&&s| s < value).count()) < wanted);
        }
    }
}
