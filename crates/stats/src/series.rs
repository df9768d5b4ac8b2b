//! Samples of one population of one launch, for any number of them.
//!
//! Model:   the count, the sum and both extremes are exact; the first [`FIRST_MAX`] samples are kept as they came; all
//!          are in a histogram of three significant digits. A quantile is exact while every sample is kept, and beyond
//!          that the largest value of its bucket, never outside the extremes.
//! Source:  Tene, HdrHistogram. Deviations: none.
//! Units:   the caller's: nanoseconds, bits a second, parts of a million.
//! Checked: `extremes_are_samples`, `exact_while_all_are_kept`, `three_digits_beyond`, `merging_is_counting_together`,
//!          `nothing_is_lost_on_the_way`.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// How many samples are kept as they came.
pub const FIRST_MAX: usize = 1_000;
const DIGITS: u8 = 3;

/// Samples of one population.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Series {
    sum: u128,
    min: u64,
    max: u64,
    first: Vec<u64>,
    histogram: Histogram<u64>,
}

/// A series as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// The smallest sample; 0 when there is none.
    pub min: u64,
    /// The largest sample; 0 when there is none.
    pub max: u64,
    /// The sum of all samples.
    pub sum: u128,
    /// The first samples, in order; at most [`FIRST_MAX`].
    pub first: Vec<u64>,
    /// Every bucket that is not empty: the largest value that it counts, and how many, ascending.
    pub buckets: Vec<(u64, u64)>,
}

/// Parts that are of no series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a series cannot be read: {0}; its source is damaged")]
pub struct Damaged(pub String);

impl Default for Series {
    fn default() -> Self {
        Self::new()
    }
}

impl Series {
    /// No samples yet. Recording allocates only when a sample is larger than all before it, by a power of two.
    ///
    /// # Panics
    /// Never: three digits are within the histogram's range.
    pub fn new() -> Self {
        Self {
            sum: 0,
            min: u64::MAX,
            max: 0,
            first: Vec::with_capacity(FIRST_MAX),
            histogram: Histogram::new(DIGITS).expect("three digits are allowed"),
        }
    }

    /// Takes a sample.
    #[inline]
    pub fn record(&mut self, sample: u64) {
        self.sum += u128::from(sample);
        self.min = self.min.min(sample);
        self.max = self.max.max(sample);
        if self.first.len() < FIRST_MAX {
            self.first.push(sample);
        }
        // An automatically growing histogram takes every value.
        self.histogram.saturating_record(sample);
    }

    /// How many samples.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }
}

impl From<Series> for Parts {
    fn from(series: Series) -> Self {
        let buckets = series
            .histogram
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect();
        Self {
            min: if series.is_empty() { 0 } else { series.min },
            max: series.max,
            sum: series.sum,
            first: series.first,
            buckets,
        }
    }
}

impl TryFrom<Parts> for Series {
    type Error = Damaged;

    fn try_from(parts: Parts) -> Result<Self, Damaged> {
        let mut series = Self::new();
        for (value, count) in &parts.buckets {
            series
                .histogram
                .record_n(*value, *count)
                .map_err(|e| Damaged(format!("bucket {value}: {e}")))?;
        }
        let kept = series.count().min(FIRST_MAX as u64);
        if parts.first.len() as u64 != kept {
            return Err(Damaged(format!(
                "{} samples are kept where {kept} should be",
                parts.first.len()
            )));
        }
        (series.sum, series.max, series.first) = (parts.sum, parts.max, parts.first);
        if !series.is_empty() {
            series.min = parts.min;
        }
        Ok(series)
    }
}
