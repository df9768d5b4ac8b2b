//! Several launches of one cell: their samples pooled, and an interval over the launches.
//!
//! Model:   `min` to `max` and the mean are of all samples together; the interval is of the median of the launches'
//!          medians, each launch counting once. Where launches have unequal counts, those with more weigh more in the
//!          pool and not in the interval. While every launch kept all its samples the quantiles are exact, however many
//!          there are together.
//! Source:  Hunold & Carpen-Amarie, TPDS 27(12) 2016, §5. Deviations: none.
//! Checked: `launches_not_samples_make_the_interval`, `many_small_launches_are_exact`, `a_long_launch_is_counted_whole`.

use crate::{Interval, Samples, Series, Summary, median_rank_interval};

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
pub fn pool(launches: &[Series]) -> Option<Pooled> {
    let medians: Vec<u64> = launches.iter().filter_map(Series::median).collect();
    Some(Pooled {
        summary: together(launches)?,
        interval: median_rank_interval(&medians, 0.95),
        launches: medians.len() as u64,
    })
}

fn together(launches: &[Series]) -> Option<Summary> {
    if launches.iter().all(Series::is_whole) {
        let all = launches.iter().flat_map(Series::first).copied().collect();
        return Samples::new(all).map(|samples| samples.summary());
    }
    let mut all = Series::new();
    for launch in launches {
        all.merge(launch);
    }
    all.summary()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: impl IntoIterator<Item = u64>) -> Series {
        samples.into_iter().collect()
    }

    #[test]
    fn launches_not_samples_make_the_interval() {
        let launch = |centre: u64| series([centre - 1, centre, centre, centre, 1000 * centre]);
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
        assert_eq!(pool(&[Series::new(), Series::new()]), None);
        assert_eq!(pool(&[Series::new(), series([3])]).unwrap().launches, 1);
    }

    #[test]
    fn many_small_launches_are_exact() {
        // 6 000 samples, none of which three digits could hold.
        let launches: Vec<_> = (0..6_u64)
            .map(|launch| series((0..1_000).map(|n| 1_000_000_007 + 1_000 * n + launch)))
            .collect();
        let summary = pool(&launches).unwrap().summary;
        assert_eq!((summary.count, summary.p50), (6_000, 1_000_499_012));
        assert_eq!(summary.p99, Some(1_000_989_012));
    }

    #[test]
    fn a_long_launch_is_counted_whole() {
        let long = series((1..=20_000).map(|n| n * 1_000));
        let short = series([7]);
        let summary = pool(&[short, long]).unwrap().summary;
        assert_eq!(
            (summary.count, summary.min, summary.max),
            (20_001, 7, 20_000_000)
        );
        assert!(summary.p50.abs_diff(10_000_000) <= 10_000, "{summary:?}");
        assert!(summary.p999.unwrap().abs_diff(19_980_000) <= 20_000);
    }
}
