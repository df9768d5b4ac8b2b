//! What a quantile is worth where a disturbance met some of the samples: the quantile of the others, and bounds that hold
//! whatever the disturbance did.
//!
//! Model:   a touched sample is one whose time met a disturbance. Its undisturbed value is not known, only a [`Limit`] of it on
//!          either side. The point is the quantile of the untouched samples; the bounds are the quantiles of all of them with each
//!          touched one put at its lower limit, and at its upper one. No other value is possible, and each between them is. The
//!          untouched samples alone would be biased: a long sample is touched more often than a short one. A row goes from
//!          the lower rank limit of its launches' low bounds to the upper rank limit of their high ones. A stream is one sample,
//!          whose time is cut into slices: what it would have carried in a touched one is at most what its line can, and in another
//!          at most what came, part of which may have been held up before.
//! Source:  Manski, J. Human Resources 24:343, 1989; Horowitz & Manski, Econometrica 63:281, 1995, for the bounds; Imbens & Manski,
//!          Econometrica 72:1845, 2004, for an interval of all that they hold. Deviations: none.
//! Units:   the samples' own.
//! Checked: `worst_cases_in_closed_form`, `bounds_hold_every_truth_and_are_reached`, `a_row_takes_the_rank_limits_of_both_ends`,
//!          `three_digits_beyond_what_is_kept`, `rates_of_slices_in_closed_form`, `untouched_samples_of_all_launches_are_pooled`, `a_stream_holds_every_truth`; the simulation of `touched/simulation.rs`.

#[cfg(test)]
mod simulation;

use crate::Series;
use crate::interval::lower_rank;

/// How far from what was recorded the undisturbed value of a touched sample may lie, on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Not beyond this value: what the model of the path allows.
    Value(u64),
    /// Not beyond what was recorded: the disturbance can only have moved the sample to this side.
    Recorded,
    /// Anywhere.
    None,
}

/// A quantile of one launch. An end that is `None` has no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The undisturbed quantile is not below this.
    pub low: Option<u64>,
    /// The quantile of the untouched samples; `None` without any.
    pub point: Option<u64>,
    /// The undisturbed quantile is not above this.
    pub high: Option<u64>,
}

/// Where the median of launches lies. An end that is `None` has no bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundedInterval {
    /// The lower end.
    pub low: Option<u64>,
    /// The upper end.
    pub high: Option<u64>,
    /// The probability that an interval made in this way holds the median; at least what was asked for.
    pub coverage: f64,
}

/// Values with how often each came, ascending.
type Counted = Vec<(u64, u64)>;

/// The quantile `numerator`/`denominator` of a launch's samples `all`, of which `touched` met a disturbance, with what is known of
/// the undisturbed values of these: `limits` below and above. As exact as [`Series::quantile`]. `None` without samples.
///
/// # Panics
/// When the fraction is not within 0 to 1.
pub fn bounds(
    all: &Series,
    touched: &Series,
    (numerator, denominator): (u64, u64),
    limits: (Limit, Limit),
) -> Option<Bounds> {
    let recorded = all.quantile(numerator, denominator)?;
    let untouched = without(all, touched);
    let left: u64 = untouched.iter().map(|(_, count)| count).sum();
    // As many as `all` has beyond the untouched ones, whatever `touched` says.
    let moved = all.count() - left;
    let rank_of = |count| rank_of(count, (numerator, denominator));
    let rank = rank_of(all.count());
    let end = |limit: Limit, beyond: Option<u64>| match limit {
        Limit::Value(value) => of_rank(&with(&untouched, (value, moved)), rank),
        Limit::Recorded => Some(recorded),
        Limit::None => of_rank(&untouched, beyond?),
    };
    Some(Bounds {
        // What has no limit below comes before all others, and what has none above after them.
        low: end(limits.0, rank.checked_sub(moved).filter(|rank| *rank > 0)),
        point: of_rank(&untouched, rank_of(left)),
        high: end(limits.1, Some(rank)),
    })
}

/// The quantile of the samples of several launches that met no disturbance, all together: of each launch its samples, and those of them that
/// met one. As exact as [`Series::quantile`]. `None` without any.
///
/// # Panics
/// When the fraction is not within 0 to 1.
pub fn untouched_quantile(launches: &[(&Series, &Series)], fraction: (u64, u64)) -> Option<u64> {
    let left = launches
        .iter()
        .flat_map(|(all, touched)| without(all, touched));
    let mut left: Counted = left.collect();
    left.sort_unstable();
    let count = left.iter().map(|(_, count)| count).sum();
    of_rank(&left, rank_of(count, fraction))
}

/// The rate of a stream that was `recorded`, by the rates of all its slices, which are equally long, and of those that are `touched`,
/// with what is known of the undisturbed rates of these: `limits` below and above. Where a disturbance can only have lowered it, it is
/// not below what was recorded; and it is not above what it is with each touched slice at its limit, the rate that the line can carry.
/// `None` of no slices.
pub fn rate_bounds(
    recorded: u64,
    all: &Series,
    touched: &Series,
    limits: (Limit, Limit),
) -> Option<Bounds> {
    let untouched = without(all, touched);
    let left: u64 = untouched.iter().map(|(_, count)| count).sum();
    let moved = all.count() - left;
    let mean = |most: u64| {
        let carried = untouched
            .iter()
            .map(|(rate, count)| u128::from(*rate) * u128::from(*count));
        let sum = carried.sum::<u128>() + u128::from(most) * u128::from(moved);
        sum.div_ceil(u128::from(all.count())).min(most.into()) as u64
    };
    (!all.is_empty()).then(|| Bounds {
        // A slice that met nothing may have what was held up in a touched one: it has no least rate.
        low: (moved == 0 || limits.0 == Limit::Recorded).then_some(recorded),
        point: Some(recorded),
        high: match limits.1 {
            _ if moved == 0 => Some(recorded),
            Limit::Value(most) => Some(mean(most).max(recorded)),
            Limit::Recorded => Some(recorded),
            Limit::None => None,
        },
    })
}

/// Where the median of launches with these `bounds`, in any order, lies at `confidence`; `None` where so few cannot reach it: below
/// six for 0.95.
pub fn bounded_interval(bounds: &[Bounds], confidence: f64) -> Option<BoundedInterval> {
    let (rank, coverage) = lower_rank(bounds.len() as u64, confidence)?;
    let rank = rank as usize;
    let mut lows: Vec<Option<u64>> = bounds.iter().map(|one| one.low).collect();
    let mut highs: Vec<Option<u64>> = bounds.iter().map(|one| one.high).collect();
    // Of lows `None` is below all values, of highs above them.
    lows.sort_unstable();
    highs.sort_unstable_by_key(|high| (high.is_none(), *high));
    Some(BoundedInterval {
        low: lows[rank - 1],
        high: highs[bounds.len() - rank],
        coverage,
    })
}

/// The samples of `all` that are not in `part`, exact while `all` is kept whole and else by buckets.
fn without(all: &Series, part: &Series) -> Counted {
    let counted = |series: &Series| -> Counted {
        if !all.is_whole() {
            return series.buckets();
        }
        let mut sorted = series.first().to_vec();
        sorted.sort_unstable();
        sorted.into_iter().map(|sample| (sample, 1)).collect()
    };
    let mut gone = counted(part).into_iter().peekable();
    let mut left = Vec::new();
    for (value, mut count) in counted(all) {
        while let Some((_, less)) = gone.next_if(|(other, _)| *other <= value) {
            count = count.saturating_sub(less);
            if count == 0 {
                break;
            }
        }
        if count > 0 {
            left.push((value, count));
        }
    }
    left
}

/// The same with `more`.
fn with(counted: &[(u64, u64)], more: (u64, u64)) -> Counted {
    let at = counted.partition_point(|(value, _)| *value <= more.0);
    let (before, after) = counted.split_at(at);
    [before, &[more], after].concat()
}

/// The rank, from one, of a quantile of so many.
fn rank_of(count: u64, (numerator, denominator): (u64, u64)) -> u64 {
    let rank = (u128::from(count) * u128::from(numerator)).div_ceil(denominator.into());
    (rank as u64).max(1)
}

/// The value of a rank from one; `None` beyond the last.
fn of_rank(counted: &[(u64, u64)], rank: u64) -> Option<u64> {
    let mut passed = 0;
    let reached = |(_, count): &&(u64, u64)| {
        passed += count;
        passed >= rank
    };
    counted.iter().find(reached).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(samples: &[u64]) -> Series {
        samples.iter().copied().collect()
    }

    #[test]
    fn untouched_samples_of_all_launches_are_pooled() {
        let (a, b) = (series(&[5, 1, 9]), series(&[7, 3, 100]));
        let (of_a, of_b) = (series(&[9]), series(&[100, 7]));
        let of = |fraction| untouched_quantile(&[(&a, &of_a), (&b, &of_b)], fraction);
        assert_eq!([of((0, 1)), of((1, 2)), of((1, 1))], [1, 3, 5].map(Some));
        let none = Series::new();
        let whole = untouched_quantile(&[(&a, &none), (&b, &none)], (1, 2));
        let pooled = crate::pool(&[a.clone(), b.clone()]).unwrap();
        assert_eq!(whole, Some(pooled.summary.p50), "where nothing met one");
        assert_eq!(untouched_quantile(&[(&a, &a)], (1, 2)), None);
        assert_eq!(untouched_quantile(&[], (1, 2)), None);
    }

    #[test]
    fn worst_cases_in_closed_form() {
        let all: Vec<u64> = (1..=10).map(|n| n * 100).collect();
        let touched = [200, 700, 900];
        let of = |fraction, low, high| {
            bounds(&series(&all), &series(&touched), fraction, (low, high)).unwrap()
        };
        // The untouched are 100, 300, 400, 500, 600, 800, 1000.
        let median = of((1, 2), Limit::Value(50), Limit::Recorded);
        assert_eq!(
            (median.low, median.point, median.high),
            (Some(300), Some(500), Some(500))
        );
        let open = of((1, 2), Limit::None, Limit::None);
        assert_eq!((open.low, open.high), (Some(300), Some(600)));
        // A rate: a disturbance can only have lowered it.
        let rate = of((1, 2), Limit::Recorded, Limit::Value(1_100));
        assert_eq!((rate.low, rate.high), (Some(500), Some(600)));
        // Three of ten touched: nothing is known of the tenth below, nor of the last above.
        let low = of((1, 10), Limit::None, Limit::None);
        assert_eq!((low.low, low.high), (None, Some(100)));
        let high = of((1, 1), Limit::None, Limit::None);
        assert_eq!((high.low, high.high), (Some(1_000), None));
        // All of them touched.
        let none = bounds(
            &series(&all),
            &series(&all),
            (1, 2),
            (Limit::Value(7), Limit::None),
        );
        let wanted = Bounds {
            low: Some(7),
            point: None,
            high: None,
        };
        assert_eq!(none, Some(wanted));
        let without_samples = bounds(
            &Series::new(),
            &Series::new(),
            (1, 2),
            (Limit::None, Limit::None),
        );
        assert_eq!(without_samples, None);
    }

    #[test]
    fn a_row_takes_the_rank_limits_of_both_ends() {
        let one = |low, high| Bounds {
            low,
            point: None,
            high,
        };
        let six: Vec<Bounds> = (10..16).map(|n| one(Some(n), Some(2 * n))).collect();
        assert_eq!(bounded_interval(&six[1..], 0.95), None);
        let row = bounded_interval(&six, 0.95).unwrap();
        assert_eq!((row.low, row.high), (Some(10), Some(30)));
        assert!(row.coverage > 0.968);
        let mut open = six;
        open[3] = one(None, None);
        let row = bounded_interval(&open, 0.95).unwrap();
        assert_eq!((row.low, row.high), (None, None));
        // Of nine the second lowest and the second highest.
        let mut nine: Vec<Bounds> = (0..9).map(|n| one(Some(n), Some(n))).collect();
        nine[0] = one(None, None);
        let row = bounded_interval(&nine, 0.95).unwrap();
        assert_eq!((row.low, row.high), (Some(1), Some(8)));
    }

    #[test]
    fn three_digits_beyond_what_is_kept() {
        let all: Vec<u64> = (0..30_000_u64)
            .map(|n| 500_000 + (n * 7_919) % 300_001)
            .collect();
        let touched: Vec<u64> = all.iter().copied().step_by(10).collect();
        let mut untouched: Vec<u64> = all.clone();
        let mut nth = 0;
        untouched.retain(|_| {
            nth += 1;
            (nth - 1) % 10 != 0
        });
        untouched.sort_unstable();
        let found = bounds(
            &series(&all),
            &series(&touched),
            (1, 2),
            (Limit::Value(400_000), Limit::None),
        )
        .unwrap();
        let near = |found: Option<u64>, rank: usize| {
            let exact = untouched[rank - 1];
            let found = found.unwrap();
            assert!(
                found >= exact && found - exact <= exact / 1_000,
                "{found} {exact}"
            );
        };
        near(found.point, 13_500);
        near(found.low, 12_000);
        near(found.high, 15_000);
    }

    #[test]
    fn rates_of_slices_in_closed_form() {
        let (all, touched) = (series(&[100, 100, 40, 120]), series(&[40]));
        // What was held up in the third may have come in the fourth, or not at all.
        let of = |touched: &Series, limits| {
            let found = rate_bounds(90, &all, touched, limits).unwrap();
            (found.low, found.high)
        };
        let most = |most| (Limit::Recorded, Limit::Value(most));
        assert_eq!(of(&touched, most(120)), (Some(90), Some(110)));
        assert_eq!(of(&touched, most(100)), (Some(90), Some(100)));
        let open = (Limit::None, Limit::None);
        assert_eq!(
            of(&touched, (Limit::Recorded, Limit::None)),
            (Some(90), None)
        );
        // Beside other traffic a disturbance may have made it faster.
        assert_eq!(of(&touched, open), (None, None));
        assert_eq!(of(&Series::new(), open), (Some(90), Some(90)));
        assert_eq!(rate_bounds(1, &Series::new(), &touched, open), None);
    }

    /// A sample, whether it is touched, and where between the ends of its limits its undisturbed value lies, in thousandths.
    fn samples() -> impl Strategy<Value = Vec<(u64, bool, u64)>> {
        prop::collection::vec((100_u64..10_000, any::<bool>(), 0_u64..=1_000), 1..80)
    }

    proptest! {
        #[test]
        fn bounds_hold_every_truth_and_are_reached(samples in samples(), per_cent in 0_u64..=100) {
            const FLOOR: u64 = 60;
            let all: Vec<u64> = samples.iter().map(|one| one.0).collect();
            let touched: Vec<u64> = samples.iter().filter(|one| one.1).map(|one| one.0).collect();
            let truth = |of: &dyn Fn(u64, u64) -> u64| {
                let values: Series = samples
                    .iter()
                    .map(|(recorded, is_touched, at)| match is_touched {
                        true => of(*recorded, *at),
                        false => *recorded,
                    })
                    .collect();
                values.quantile(per_cent, 100)
            };
            let found = bounds(
                &series(&all), &series(&touched), (per_cent, 100), (Limit::Value(FLOOR), Limit::Recorded),
            )
            .unwrap();
            let any = truth(&|recorded, at| FLOOR + (recorded - FLOOR) * at / 1_000);
            prop_assert!(found.low <= any && any <= found.high, "{found:?} {any:?}");
            prop_assert_eq!(found.low, truth(&|_, _| FLOOR));
            prop_assert_eq!(found.high, truth(&|recorded, _| recorded));
            // Without a limit: as with one that is farther than any.
            let open = bounds(
                &series(&all), &series(&touched), (per_cent, 100), (Limit::None, Limit::None),
            )
            .unwrap();
            prop_assert_eq!(open.low.unwrap_or(0), truth(&|_, _| 0).unwrap());
            prop_assert_eq!(open.high.unwrap_or(u64::MAX), truth(&|_, _| u64::MAX).unwrap());
        }

        /// What is held up in a touched slice comes in the next ones, as fast as the receiver takes it, or after the end.
        #[test]
        fn a_stream_holds_every_truth(
            slices in prop::collection::vec((0_u64..=1_000, any::<bool>(), 0_u64..=100, 0_u64..=100), 1..60),
        ) {
            const MOST: u64 = 1_000;
            let count = slices.len() as u64;
            let truth = slices.iter().map(|one| one.0).sum::<u64>() / count;
            let (mut held, mut came, mut touched) = (0_u64, Vec::new(), Vec::new());
            for (rate, is_touched, part_held, part_taken) in &slices {
                let caught_up = held * part_taken / 100;
                held -= caught_up;
                let kept = match is_touched {
                    true => rate * part_held / 100,
                    false => 0,
                };
                held += kept;
                came.push(rate - kept + caught_up);
                if *is_touched {
                    touched.push(rate - kept + caught_up);
                }
            }
            let recorded = came.iter().sum::<u64>() / count;
            let limits = (Limit::Recorded, Limit::Value(MOST));
            let found = rate_bounds(recorded, &series(&came), &series(&touched), limits).unwrap();
            prop_assert!(found.low.unwrap() <= truth && truth <= found.high.unwrap(), "{found:?} {truth}");
        }
    }
}
