//! Samples of one population of one launch, for any number of them.
//!
//! Model:   the count, the sum and both extremes are exact; the first [`FIRST_MAX`] samples are kept as they came; all
//!          are in a histogram of three significant digits. A quantile is exact while every sample is kept, and beyond
//!          that the largest value of its bucket, never outside the extremes. A series that was read back, collected or
//!          closed holds its buckets as a list, a hundredth of a histogram's memory; the next sample makes it a histogram again.
//! Source:  Tene, HdrHistogram. Deviations: none.
//! Units:   the caller's: nanoseconds, bits a second, parts of a million.
//! Checked: `extremes_are_samples`, `exact_while_all_are_kept`, `three_digits_beyond`, `merging_is_counting_together`,
//!          `nothing_is_lost_on_the_way`, `damaged_parts_are_refused`, `room_is_made_beforehand`,
//!          `the_median_s_interval_is_the_samples_own`, `what_is_closed_is_the_same_and_small`.

mod parts;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::interval::lower_rank;
pub use parts::{Damaged, Parts};

use crate::{Interval, SAMPLES_FOR_P99, SAMPLES_FOR_P999, Summary};

/// How many samples are kept as they came.
pub const FIRST_MAX: usize = 1_000;
const DIGITS: u8 = 3;

/// Samples of one population.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Series {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    first: Vec<u64>,
    counts: Counts,
}

/// How often each value came.
#[derive(Debug, Clone)]
enum Counts {
    /// Every bucket up to the largest sample.
    Open(Histogram<u64>),
    /// The buckets that are not empty, as in [`Parts::buckets`].
    Closed(Vec<(u64, u64)>),
}

impl Default for Series {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Series {
    fn eq(&self, other: &Self) -> bool {
        (self.count, self.sum, self.min, self.max) == (other.count, other.sum, other.min, other.max)
            && self.first == other.first
            && self.buckets() == other.buckets()
    }
}

impl Eq for Series {}

impl FromIterator<u64> for Series {
    fn from_iter<I: IntoIterator<Item = u64>>(samples: I) -> Self {
        let mut series = Self::new();
        for sample in samples {
            series.record(sample);
        }
        series.closed()
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("three digits are allowed")
}

/// Counts `count` times `value`. A histogram that grows by itself takes every value of 64 bits; `saturating_record` must
/// not stand here: it never grows, and puts everything above 2047 into one bucket.
#[inline]
fn tally(histogram: &mut Histogram<u64>, value: u64, count: u64) {
    histogram
        .record_n(value, count)
        .expect("a growing histogram takes every value");
}

impl Series {
    /// No samples yet. Recording allocates only when a sample is larger than all before it, by a power of two.
    pub fn new() -> Self {
        Self {
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
            first: Vec::with_capacity(FIRST_MAX),
            counts: Counts::Open(histogram()),
        }
    }

    /// No samples yet, with room for values up to `largest`: recording one of them allocates nothing. It takes 8 KiB for each
    /// power of two, 450 KiB at most.
    pub fn up_to(largest: u64) -> Self {
        let mut open = Histogram::new_with_bounds(1, largest.max(2), DIGITS)
            .expect("two and more are above one, and three digits are allowed");
        open.auto(true);
        Self {
            counts: Counts::Open(open),
            ..Self::new()
        }
    }

    /// The same samples without room for more: a few bytes for each bucket that is not empty. The next sample makes it a
    /// histogram again.
    #[must_use]
    pub fn closed(mut self) -> Self {
        if let Counts::Open(_) = self.counts {
            self.counts = Counts::Closed(self.buckets());
            self.first.shrink_to_fit();
        }
        self
    }

    /// Takes a sample.
    #[inline]
    pub fn record(&mut self, sample: u64) {
        self.count += 1;
        self.sum += u128::from(sample);
        self.min = self.min.min(sample);
        self.max = self.max.max(sample);
        if self.first.len() < FIRST_MAX {
            self.first.push(sample);
        }
        tally(self.opened(), sample, 1);
    }

    /// Takes all samples of `other`, as if they had come after those that are here.
    pub fn merge(&mut self, other: &Self) {
        let room = FIRST_MAX.saturating_sub(self.first.len());
        self.first.extend(other.first.iter().take(room));
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        let counts = self.opened();
        for (value, count) in other.buckets() {
            tally(counts, value, count);
        }
    }

    #[inline]
    fn opened(&mut self) -> &mut Histogram<u64> {
        if let Counts::Closed(buckets) = &self.counts {
            let mut open = histogram();
            for (value, count) in buckets {
                tally(&mut open, *value, *count);
            }
            self.counts = Counts::Open(open);
        }
        match &mut self.counts {
            Counts::Open(open) => open,
            Counts::Closed(_) => unreachable!("opened above"),
        }
    }

    /// How many samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether every sample is kept as it came, so that quantiles are exact.
    pub fn is_whole(&self) -> bool {
        self.first.len() as u64 == self.count
    }

    /// The first samples as they came, at most [`FIRST_MAX`].
    pub fn first(&self) -> &[u64] {
        &self.first
    }

    /// The smallest sample.
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min)
    }

    /// The largest sample.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max)
    }

    /// The sum of all samples.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The arithmetic mean, rounded to the nearest, halves up.
    pub fn mean(&self) -> Option<u64> {
        let count = u128::from(self.count);
        // A mean is not above the largest sample.
        (count > 0).then(|| ((self.sum + count / 2) / count) as u64)
    }

    /// Every bucket that is not empty: the largest value that it counts, and how many, ascending.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        match &self.counts {
            // The crate's own largest value of the last bucket of all is one too small.
            Counts::Open(open) => open
                .iter_recorded()
                .map(|bucket| {
                    let value = largest_like(bucket.value_iterated_to());
                    (value, bucket.count_at_value())
                })
                .collect(),
            Counts::Closed(buckets) => buckets.clone(),
        }
    }

    /// The median, which is the sample of rank ⌈n/2⌉.
    pub fn median(&self) -> Option<u64> {
        self.quantile(1, 2)
    }

    /// The interval of the median by ranks, as [`median_rank_interval`](crate::median_rank_interval) has it; its ends are as
    /// exact as [quantiles](Self::quantile) are. `None` where so few samples cannot reach the `confidence`.
    pub fn median_interval(&self, confidence: f64) -> Option<Interval> {
        let (rank, coverage) = lower_rank(self.count, confidence)?;
        let [low, high] = self.of_ranks([rank, self.count + 1 - rank])?;
        Some(Interval {
            low,
            high,
            coverage,
        })
    }

    /// The sample of rank ⌈n·`numerator`/`denominator`⌉: exact while [all are kept](Self::is_whole), else the largest value
    /// of its bucket, which is at most a thousandth above it. `None` without samples.
    ///
    /// # Panics
    /// When the fraction is not within 0 to 1.
    pub fn quantile(&self, numerator: u64, denominator: u64) -> Option<u64> {
        assert!(
            numerator <= denominator && denominator > 0,
            "{numerator}/{denominator} is not a quantile"
        );
        let rank = (u128::from(self.count) * u128::from(numerator)).div_ceil(denominator.into());
        self.of_ranks([rank as u64]).map(|[value]| value)
    }

    /// The values of ranks from one, which must ascend.
    fn of_ranks<const N: usize>(&self, ranks: [u64; N]) -> Option<[u64; N]> {
        if self.is_empty() {
            return None;
        }
        if self.is_whole() {
            let mut sorted = self.first.clone();
            sorted.sort_unstable();
            return Some(ranks.map(|rank| sorted[(rank as usize).saturating_sub(1)]));
        }
        let buckets = self.buckets();
        let mut rest = buckets.iter();
        let (mut value, mut counted) = (0, 0);
        Some(ranks.map(|rank| {
            while counted < rank.max(1) {
                let bucket = rest.next().expect("the buckets hold all samples");
                (value, counted) = (bucket.0, counted + bucket.1);
            }
            match rank {
                0 | 1 => self.min,
                _ => value.clamp(self.min, self.max),
            }
        }))
    }

    /// The order statistics of all samples; `None` without any.
    pub fn summary(&self) -> Option<Summary> {
        let rank = |per_mille: u64| {
            (u128::from(self.count) * u128::from(per_mille)).div_ceil(1_000) as u64
        };
        let [p50, p90, p99, p999] = self.of_ranks([500, 900, 990, 999].map(rank))?;
        let tail = |needed: usize, value: u64| (self.count >= needed as u64).then_some(value);
        Some(Summary {
            count: self.count,
            min: self.min,
            p50,
            p90,
            p99: tail(SAMPLES_FOR_P99, p99),
            p999: tail(SAMPLES_FOR_P999, p999),
            max: self.max,
            mean: self.mean()?,
        })
    }
}

/// The largest value of the bucket that holds `value`: buckets are one wide up to 2047, and then 2, 4, 8 … wide, so that
/// there are always 1024 to 2047 in a power of two.
fn largest_like(value: u64) -> u64 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(11);
    value | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Samples;
    use proptest::prelude::*;

    fn back(series: &Series) -> Series {
        Series::try_from(Parts::from(series.clone())).unwrap()
    }

    #[test]
    fn room_is_made_beforehand() {
        let buckets = |series: &Series| match &series.counts {
            Counts::Open(open) => open.distinct_values(),
            Counts::Closed(_) => panic!("closed"),
        };
        let (mut roomy, mut plain) = (Series::up_to(u64::MAX), Series::new());
        let room = buckets(&roomy);
        for sample in [0, 1, 2_047, 2_048, 1 << 40, u64::MAX, 17] {
            roomy.record(sample);
            plain.record(sample);
        }
        assert!(buckets(&roomy) == room && roomy == plain);
        // Beyond the room it grows.
        let mut small = Series::up_to(1_000);
        small.record(1 << 50);
        assert_eq!(small.max(), Some(1 << 50));
    }

    #[test]
    fn what_is_closed_is_the_same_and_small() {
        let mut open = Series::new();
        let samples = [1_500_000_000, 3, 3, 94_000_000];
        samples.iter().for_each(|sample| open.record(*sample));
        let closed: Series = samples.into_iter().collect();
        assert_eq!(open, closed);
        let Counts::Closed(buckets) = &closed.counts else {
            panic!("it is open");
        };
        assert!(buckets.capacity() <= 8 && closed.first.capacity() <= 8);
        // It takes samples as before.
        let (mut closed, mut open) = (closed, open);
        closed.record(7);
        open.record(7);
        assert_eq!(open, closed.clone().closed());
        closed.merge(&open.closed());
        assert_eq!(closed.count(), 10);
    }

    #[test]
    fn a_tail_is_told_from_its_number_of_samples_on() {
        let tails = |count: usize| {
            let summary = (0..count as u64).collect::<Series>().summary().unwrap();
            (summary.p99.is_some(), summary.p999.is_some())
        };
        assert_eq!(tails(SAMPLES_FOR_P99 - 1), (false, false));
        assert_eq!(tails(SAMPLES_FOR_P99), (true, false));
        assert_eq!(tails(SAMPLES_FOR_P999 - 1), (true, false));
        assert_eq!(tails(SAMPLES_FOR_P999), (true, true));
    }

    #[test]
    fn the_median_s_interval_is_the_samples_own() {
        let samples: Vec<u64> = (0..900).map(|n| 5_000 + (n * 7_919) % 3_001).collect();
        let series: Series = samples.iter().copied().collect();
        let exact = crate::median_rank_interval(&samples, 0.95);
        assert_eq!(series.median_interval(0.95), exact);
        assert_eq!(
            series.first()[..5]
                .iter()
                .copied()
                .collect::<Series>()
                .median_interval(0.95),
            None
        );
        // Out of buckets: within a thousandth.
        let many: Vec<u64> = (0..50_000)
            .map(|n| 500_000 + (n * 7_919) % 300_001)
            .collect();
        let (exact, found) = (
            crate::median_rank_interval(&many, 0.95).unwrap(),
            many.iter()
                .copied()
                .collect::<Series>()
                .median_interval(0.95)
                .unwrap(),
        );
        for (exact, found) in [(exact.low, found.low), (exact.high, found.high)] {
            assert!(
                found >= exact && found - exact <= exact / 1_000,
                "{exact} {found}"
            );
        }
    }

    #[test]
    fn extremes_are_samples() {
        let series: Series = [1_000_003, u64::MAX, 77, 0].into_iter().collect();
        assert_eq!((series.min(), series.max()), (Some(0), Some(u64::MAX)));
        assert_eq!(series.sum(), u128::from(u64::MAX) + 1_000_080);
        assert_eq!(series.mean(), Some((u64::MAX >> 2) + 250_021));
        assert_eq!(series.first(), [1_000_003, u64::MAX, 77, 0]);
        // Beyond what is kept as it came the extremes are still no bucket's ends.
        let long: Series = (0..5_000).map(|n| 1_000_003 + 7 * n).collect();
        assert_eq!(long.quantile(0, 1), Some(1_000_003));
        assert_eq!(long.quantile(1, 1), Some(1_000_003 + 7 * 4_999));
        assert!(!long.is_whole() && long.first().len() == FIRST_MAX);
    }

    #[test]
    fn none_is_none() {
        let none = Series::new();
        assert_eq!((none.min(), none.max(), none.mean()), (None, None, None));
        assert_eq!(
            (none.median(), none.summary(), none.count()),
            (None, None, 0)
        );
        assert!(none.is_empty() && none.is_whole() && none.buckets().is_empty());
        assert_eq!(back(&none), none);
    }

    #[test]
    fn a_series_that_was_read_back_goes_on() {
        let mut series: Series = (0..1_500).map(|n| n * 1_000).collect();
        let mut read = back(&series);
        for sample in [5, 10_000_000, 6] {
            series.record(sample);
            read.record(sample);
        }
        assert_eq!(series, read);
    }

    #[test]
    fn damaged_parts_are_refused() {
        let good = Parts::from((1..=1_200).map(|n| n * 10).collect::<Series>());
        type Damage = fn(&mut Parts);
        let cases: [(&str, Damage); 9] = [
            ("kept", |p| p.first.truncate(FIRST_MAX - 1)),
            ("contradict", |p| p.sum = 0),
            ("contradict", |p| p.min = p.max + 1),
            ("kept sample", |p| p.first[7] = 12_001),
            ("end at", |p| p.max += 10_000),
            ("out of order", |p| p.buckets.swap(0, 1)),
            ("empty", |p| p.buckets[3].1 = 0),
            ("more samples", |p| p.buckets[3].1 = u64::MAX),
            ("none of its histogram", |p| {
                let last = p.buckets.len() - 2;
                p.buckets[last].0 -= 1;
            }),
        ];
        for (word, damage) in cases {
            let mut parts = good.clone();
            damage(&mut parts);
            let error = Series::try_from(parts).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("damaged"), "{error}");
        }
        let mut short = Parts::from([5, 6, 7].into_iter().collect::<Series>());
        short.first = vec![5, 7, 7];
        assert!(Series::try_from(short).is_err());
        assert!(Series::try_from(good).is_ok());
    }

    /// Samples over the whole range of magnitudes.
    fn samples(most: usize) -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec((any::<u64>(), 0..64_u32).prop_map(|(n, s)| n >> s), 0..most)
    }

    proptest! {
        #[test]
        fn exact_while_all_are_kept(samples in samples(1_000)) {
            let series: Series = samples.iter().copied().collect();
            let exact = Samples::new(samples);
            prop_assert_eq!(series.summary(), exact.map(|exact| exact.summary()));
        }

        #[test]
        fn three_digits_beyond(samples in samples(3_000), per_mille in 0_u64..=1_000) {
            let series: Series = samples.iter().copied().collect();
            let Some(exact) = Samples::new(samples) else { return Ok(()) };
            let exact = exact.quantile(per_mille, 1_000);
            let found = series.quantile(per_mille, 1_000).unwrap();
            prop_assert!(exact <= found && found - exact <= exact / 1_000, "{exact} {found}");
        }

        #[test]
        fn merging_is_counting_together(one in samples(1_500), other in samples(1_500)) {
            let mut merged: Series = one.iter().copied().collect();
            merged.merge(&back(&other.iter().copied().collect()));
            let together: Series = one.into_iter().chain(other).collect();
            prop_assert_eq!(merged, together);
        }

        #[test]
        fn nothing_is_lost_on_the_way(samples in samples(2_500)) {
            let series: Series = samples.into_iter().collect();
            let read = back(&series);
            prop_assert_eq!(read.summary(), series.summary());
            prop_assert_eq!(&read, &series);
        }

        #[test]
        fn any_parts_are_a_series_or_an_error(
            ends in (0_u64..50, 0_u64..50, 0_u64..500),
            first in prop::collection::vec(0_u64..50, 0..6),
            buckets in prop::collection::vec((0_u64..50, 0_u64..4), 0..6),
        ) {
            let (min, max, sum) = ends;
            let parts = Parts { min, max, sum: sum.into(), first, buckets };
            if let Ok(series) = Series::try_from(parts.clone()) {
                prop_assert_eq!(Parts::from(series), parts);
            }
        }
    }
}
