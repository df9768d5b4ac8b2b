//! Several launches of one cell: their samples pooled, and an interval over the launches.
//!
//! Model:   `min` to `max` and the mean are of all samples together; the interval is of the median of the launches'
//!          medians, each launch counting once. Where launches have unequal counts, those with more weigh more in the
//!          pool and not in the interval.
//! Source:  Hunold & Carpen-Amarie, TPDS 27(12) 2016, §5. Deviations: none.
//! Checked: `launches_not_samples_make_the_interval`.

use crate::{Interval, Samples, Summary, median_rank_interval};

/// A row's statistics.
#[derive(Debug, Clone, PartialEq)]
pub struct Pooled {
    /// Of all samples of all launches.
    pub summary: Summary,
    /// Over the launches' medians, at 95 %; `None` below six launches.
    pub interval: Option<Interval>,
    /// Launches that gave samples.
    pub launches: u64,
}

/// Pools launches; those without samples are left out. `None` when no launch has any.
pub fn pool(launches: &[Vec<u64>]) -> Option<Pooled> {
    let measured = || {
        launches
            .iter()
            .filter_map(|launch| Samples::new(launch.clone()))
    };
    let medians: Vec<u64> = measured().map(|launch| launch.median()).collect();
    Some(Pooled {
        summary: Samples::new(launches.concat())?.summary(),
        interval: median_rank_interval(&medians, 0.95),
        launches: medians.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_not_samples_make_the_interval() {
        let launch = |centre: u64| vec![centre - 1, centre, centre, centre, 1000 * centre];
        let five: Vec<_> = (10..15).map(launch).collect();
        let pooled = pool(&five).unwrap();
        assert_eq!((pooled.summary.count, pooled.launches), (25, 5));
        assert_eq!(pooled.interval, None);
        let six: Vec<_> = (10..16).map(launch).collect();
        let pooled = pool(&six).unwrap();
        let interval = pooled.interval.unwrap();
        assert_eq!((interval.low, interval.high), (10, 15));
        assert_eq!((pooled.summary.min, pooled.summary.max), (9, 15_000));
    }

    #[test]
    fn launches_without_samples_do_not_count() {
        assert_eq!(pool(&[]), None);
        assert_eq!(pool(&[vec![], vec![]]), None);
        assert_eq!(pool(&[vec![], vec![3]]).unwrap().launches, 1);
    }
}
