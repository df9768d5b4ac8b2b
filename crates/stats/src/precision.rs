//! How well launches agree: the width of the interval of their median, beside what was asked for.
//!
//! Model:   the rank interval at 95 % of the launches' medians; its half width is the larger distance from the median of
//!          the medians to an end, relative to that median.
//! Source:  Hoefler & Belli, SC'15, rule 5: measure until the interval is within a wanted share. Deviations: none.
//! Units:   thousandths, rounded up.
//! Checked: `five_launches_have_no_width`, `the_farther_end_counts`, `a_median_of_zero`.

use crate::{Interval, Samples, median_rank_interval};

/// How well the medians of launches agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Of the median, at 95 %; `None` below six launches.
    pub interval: Option<Interval>,
    /// The larger distance from the median to an end, in thousandths of the median, rounded up; `None` without an interval,
    /// and where the median is zero and an end is not.
    pub half_width_per_mille: Option<u64>,
}

impl Precision {
    /// Whether the interval is known and within `per_mille` of the median.
    pub fn met(&self, per_mille: u64) -> bool {
        self.half_width_per_mille
            .is_some_and(|width| width <= per_mille)
    }
}

/// The precision that launches with these `medians`, in any order, have reached.
pub fn precision(medians: &[u64]) -> Precision {
    let interval = median_rank_interval(medians, 0.95);
    let width = |interval: Interval| {
        if interval.low == interval.high {
            return Some(0);
        }
        interval.half_width_per_mille(Samples::new(medians.to_vec())?.median())
    };
    Precision {
        interval,
        half_width_per_mille: interval.and_then(width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_launches_have_no_width() {
        for count in 0..6 {
            let few = precision(&[100; 5][..count]);
            assert_eq!((few.interval, few.half_width_per_mille), (None, None));
            assert!(!few.met(u64::MAX));
        }
        let six = precision(&[100; 6]);
        assert_eq!(six.half_width_per_mille, Some(0));
        assert!(six.met(0));
    }

    #[test]
    fn the_farther_end_counts() {
        // Ranks 1 and 6; the median is the third, 1000. 1051 is 51 thousandths away, 990 is 10.
        let six = precision(&[1_051, 990, 999, 1_001, 1_000, 1_002]);
        assert_eq!(six.half_width_per_mille, Some(51));
        assert!(six.met(51) && !six.met(50));
    }

    #[test]
    fn a_median_of_zero() {
        assert_eq!(precision(&[0; 6]).half_width_per_mille, Some(0));
        let mostly = precision(&[0, 0, 0, 0, 0, 7]);
        assert_eq!(mostly.half_width_per_mille, None);
        assert!(!mostly.met(u64::MAX));
    }
}
