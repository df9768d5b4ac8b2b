//! How long messages were: exact count, sum, least and greatest; shares and median by a logarithmic histogram.
//!
//! Model:   lengths below 64 have a bucket each; above, each power of two has 32 of equal width, so that a quantile is off by
//!          at most a 64th of itself.
//! Source:  the layout is that of HdrHistogram at six bits.
//! Units:   bytes.
//! Checked: `a_median_is_near_that_of_the_sorted_lengths`, `every_length_has_a_bucket_around_it`, `parts_add_up`.

use serde::{Deserialize, Serialize};
use sonde_measure::{LengthsRow, Power, Total};

/// Lengths below this have a bucket each.
const EXACT: u64 = 64;
/// Buckets of a power of two.
const WITHIN: u64 = 32;
/// The power of two at which they begin.
const FIRST: u32 = EXACT.ilog2();
const BUCKETS: usize = (EXACT + WITHIN * (64 - FIRST) as u64) as usize;

/// Lengths as they are counted: of several phases or ranks they can be added, which rows cannot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Sparse", into = "Sparse")]
pub struct Lengths {
    pub(super) total: Total,
    buckets: Vec<u64>,
}

/// The same without empty buckets: each with its index.
#[derive(Clone, Serialize, Deserialize)]
struct Sparse {
    total: Total,
    buckets: Vec<(usize, u64)>,
}

impl From<Lengths> for Sparse {
    fn from(lengths: Lengths) -> Self {
        let buckets = lengths.buckets.into_iter().enumerate();
        Self {
            total: lengths.total,
            buckets: buckets.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

impl From<Sparse> for Lengths {
    fn from(sparse: Sparse) -> Self {
        let mut lengths = Self {
            total: sparse.total,
            ..Self::new()
        };
        for (index, count) in sparse.buckets {
            // The last one is that of the greatest lengths.
            lengths.buckets[index.min(BUCKETS - 1)] += count;
        }
        lengths
    }
}

impl Default for Lengths {
    fn default() -> Self {
        Self::new()
    }
}

impl FromIterator<u64> for Lengths {
    /// Of messages that are known otherwise, to be held against those counted.
    fn from_iter<I: IntoIterator<Item = u64>>(all: I) -> Self {
        let mut lengths = Self::new();
        all.into_iter().for_each(|bytes| lengths.add(bytes));
        lengths
    }
}

impl Lengths {
    /// Of no message.
    pub fn new() -> Self {
        Self {
            total: Total::NONE,
            buckets: vec![0; BUCKETS],
        }
    }

    /// Adds those of another phase or rank.
    pub fn merge(&mut self, other: &Self) {
        if other.total.messages == 0 {
            return;
        }
        let (own, more) = (self.total, other.total);
        self.total = Total {
            messages: own.messages + more.messages,
            bytes: own.bytes + more.bytes,
            bytes_min: match own.messages {
                0 => more.bytes_min,
                _ => own.bytes_min.min(more.bytes_min),
            },
            bytes_max: own.bytes_max.max(more.bytes_max),
        };
        let buckets = self.buckets.iter_mut().zip(&other.buckets);
        buckets.for_each(|(own, more)| *own += more);
    }

    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.total.add(bytes);
        self.buckets[bucket(bytes)] += 1;
    }

    fn median(&self) -> Option<u64> {
        let middle = self.total.messages.div_ceil(2);
        let mut seen = 0;
        let index = self.buckets.iter().position(|count| {
            seen += count;
            *count > 0 && seen >= middle
        })?;
        let (low, high) = (begin(index), begin(index + 1) - 1);
        let centre = low + (high - low) / 2;
        Some(centre.clamp(self.total.bytes_min, self.total.bytes_max))
    }

    /// As they are written down.
    pub fn row(&self) -> LengthsRow {
        let mut powers: Vec<Power> = Vec::new();
        for (index, messages) in self.buckets.iter().enumerate() {
            if *messages == 0 {
                continue;
            }
            let low = begin(index);
            let from_bytes = if low == 0 { 0 } else { 1 << low.ilog2() };
            match powers.last_mut() {
                Some(last) if last.from_bytes == from_bytes => last.messages += messages,
                _ => powers.push(Power {
                    from_bytes,
                    messages: *messages,
                }),
            }
        }
        let total = self.total;
        LengthsRow {
            total,
            bytes_mean: (total.messages > 0).then(|| total.bytes as f64 / total.messages as f64),
            bytes_median: self.median(),
            powers,
        }
    }
}

#[inline]
fn bucket(bytes: u64) -> usize {
    if bytes < EXACT {
        return bytes as usize;
    }
    let power = bytes.ilog2();
    let within = (bytes >> (power - WITHIN.ilog2())) - WITHIN;
    (EXACT + u64::from(power - FIRST) * WITHIN + within) as usize
}

/// The least length of a bucket. The one after the last ends at the greatest length.
fn begin(index: usize) -> u64 {
    let index = index as u64;
    if index < EXACT {
        return index;
    }
    let (power, within) = ((index - EXACT) / WITHIN, (index - EXACT) % WITHIN);
    let width = 1_u128 << (power + u64::from(FIRST - WITHIN.ilog2()));
    u64::try_from((u128::from(WITHIN + within)) * width).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_length_has_a_bucket_around_it(bytes: u64, shift in 0_u32..64) {
            let bytes = (bytes >> shift).min(u64::MAX - 1);
            let index = bucket(bytes);
            prop_assert!(begin(index) <= bytes && bytes < begin(index + 1));
        }

        #[test]
        fn parts_add_up(all in prop::collection::vec(0_u64..1 << 30, 0..60), cut in 0_usize..60) {
            let of = |part: &[u64]| part.iter().copied().collect::<Lengths>();
            let (first, second) = all.split_at(cut.min(all.len()));
            let mut sum = of(first);
            let text = serde_json::to_string(&of(second)).unwrap();
            sum.merge(&serde_json::from_str(&text).unwrap());
            prop_assert_eq!(&sum, &of(&all));
            prop_assert_eq!(sum.row(), of(&all).row());
        }

        #[test]
        fn a_median_is_near_that_of_the_sorted_lengths(all in prop::collection::vec((0_u64..1 << 40, 0_u32..40), 1..80)) {
            let mut all: Vec<_> = all.into_iter().map(|(bytes, shift)| bytes >> shift).collect();
            let mut lengths = Lengths::new();
            all.iter().for_each(|bytes| lengths.add(*bytes));
            all.sort_unstable();
            let (median, row) = (all[(all.len() - 1) / 2], lengths.row());
            prop_assert!(row.bytes_median.unwrap().abs_diff(median) <= median / 64);
            prop_assert_eq!(row.total.bytes, all.iter().sum::<u64>());
            prop_assert_eq!(row.total.bytes_min, all[0]);
            prop_assert_eq!(row.total.bytes_max, all[all.len() - 1]);
            for power in &row.powers {
                let end = (2 * power.from_bytes).max(1);
                let within = all.iter().filter(|bytes| (power.from_bytes..end).contains(*bytes));
                prop_assert_eq!(power.messages, within.count() as u64);
            }
            prop_assert_eq!(row.powers.iter().map(|power| power.messages).sum::<u64>(), all.len() as u64);
        }
    }
}
