//! A series as it is written down, and what of it is taken back.
//!
//! Model:   only what a series could have written is taken: count, sum, extremes, first samples and buckets are of the same samples.
//! Units:   as in a series.
//! Checked: `damaged_parts_are_refused`, `nothing_is_lost_on_the_way` of the module above; the fuzz target `blobs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use serde::{Deserialize, Serialize};

use super::{Counts, FIRST_MAX, Series, largest_like};

/// No series has more samples: a sum of many still fits into 64 bits.
const COUNT_MAX: u64 = 1 << 48;

/// A series as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// The smallest sample; 0 when there is none.
    pub min: u64,
    /// The largest sample; 0 when there is none.
    pub max: u64,
    /// The sum of all samples; written as decimal text where it has more than 64 bits.
    #[serde(with = "wide")]
    pub sum: u128,
    /// The first samples, in order; at most [`FIRST_MAX`].
    pub first: Vec<u64>,
    /// Every bucket that is not empty: the largest value that it counts, and how many, ascending.
    pub buckets: Vec<(u64, u64)>,
}

/// Integers of up to 128 bits, which JSON readers of 64 bits take too, and so do serde's enums without a tag.
mod wide {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Wide {
        Short(u64),
        Long(String),
    }

    pub(super) fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        match u64::try_from(*value) {
            Ok(short) => short.serialize(serializer),
            Err(_) => value.to_string().serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        match Wide::deserialize(from)? {
            Wide::Short(short) => Ok(short.into()),
            Wide::Long(text) => text.parse().map_err(|e| {
                D::Error::custom(format!("{text:?} is not an integer of 128 bits: {e}"))
            }),
        }
    }
}

/// Parts that are of no series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a series cannot be read: {0}; its source is damaged")]
pub struct Damaged(pub String);

impl From<Series> for Parts {
    fn from(series: Series) -> Self {
        Self {
            min: if series.is_empty() { 0 } else { series.min },
            max: series.max,
            sum: series.sum,
            buckets: series.buckets(),
            first: series.first,
        }
    }
}

impl TryFrom<Parts> for Series {
    type Error = Damaged;

    /// Takes only what a series could have written: what is damaged is found here, not in a figure later.
    fn try_from(parts: Parts) -> Result<Self, Damaged> {
        let count = checked_count(&parts.buckets)?;
        let kept = count.min(FIRST_MAX as u64);
        if parts.first.len() as u64 != kept {
            let found = parts.first.len();
            return Err(Damaged(format!(
                "{found} samples are kept where {kept} should be"
            )));
        }
        let mut series = Self {
            count,
            sum: parts.sum,
            min: if count == 0 { u64::MAX } else { parts.min },
            max: parts.max,
            first: parts.first,
            counts: Counts::Closed(parts.buckets),
        };
        series.check()?;
        series.first.shrink_to_fit();
        Ok(series)
    }
}

/// How many samples are in ascending `buckets`.
fn checked_count(buckets: &[(u64, u64)]) -> Result<u64, Damaged> {
    let mut count: u64 = 0;
    let mut before = None;
    for (value, many) in buckets {
        if before.is_some_and(|before| before >= *value) || *many == 0 {
            return Err(Damaged(format!("bucket {value} is empty or out of order")));
        }
        before = Some(*value);
        count = count
            .checked_add(*many)
            .filter(|count| *count <= COUNT_MAX)
            .ok_or_else(|| Damaged("its buckets hold more samples than can be counted".into()))?;
    }
    Ok(count)
}

impl Series {
    /// Whether sum, extremes, first samples and buckets can be of the same samples.
    fn check(&self) -> Result<(), Damaged> {
        let damaged = |what: &str| Err(Damaged(what.into()));
        if self.is_empty() {
            return match (self.sum, self.max) {
                (0, 0) => Ok(()),
                _ => damaged("it has no samples, but a sum or a maximum"),
            };
        }
        let count = u128::from(self.count);
        let [low, high] = [self.min, self.max].map(|end| u128::from(end).saturating_mul(count));
        if self.min > self.max || !(low..=high).contains(&self.sum) {
            return damaged("its minimum, maximum and sum contradict each other");
        }
        if self
            .first
            .iter()
            .any(|kept| !(self.min..=self.max).contains(kept))
        {
            return damaged("a kept sample is outside its minimum and maximum");
        }
        let buckets = self.buckets();
        let ends = [buckets.first(), buckets.last()].map(|end| end.map(|(value, _)| *value));
        if ends != [self.min, self.max].map(|end| Some(largest_like(end))) {
            return damaged("its histogram does not end at its minimum and maximum");
        }
        if buckets
            .iter()
            .any(|(value, _)| largest_like(*value) != *value)
        {
            return damaged("a bucket is none of its histogram");
        }
        if self.is_whole() {
            let again: Self = self.first.iter().copied().collect();
            if again != *self {
                return damaged("its histogram or sum is not that of its samples");
            }
        }
        Ok(())
    }
}
