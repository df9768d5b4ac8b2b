//! An interval for the median by ranks, whatever the distribution.
//!
//! Model:   of n independent samples the number below the median is binomial (n, 1/2). The interval from the sample of
//!          rank l to that of rank n+1-l misses the median with probability 2·P(B < l); l is the largest rank for which
//!          that is at most one minus the confidence. Six samples are the fewest that reach 95 % (1 - 2/2⁶ = 96.9 %).
//! Source:  David & Nagaraja, Order Statistics, §7.1; Le Boudec, Performance Evaluation, §2.2; Wilson, JASA 22 (1927), for a
//!          share. Deviations: beyond
//!          [`COUNTED_MAX`] samples the binomial law is taken as normal, with the correction for continuity.
//! Units:   the samples' own.
//! Checked: `known_ranks`, `none_below_six`, `coverage_is_what_it_says`, `normal_ranks_join_the_counted_ones`,
//!          `a_share_has_wilsons_interval`.

/// With more samples the normal law is used.
const COUNTED_MAX: u64 = 20_000;

use crate::comparison::both_tails;

/// Where a median lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end, a sample.
    pub low: u64,
    /// The upper end, a sample.
    pub high: u64,
    /// The probability that an interval made in this way holds the median; at least what was asked for.
    pub coverage: f64,
}

impl Interval {
    /// The larger distance from `centre` to an end, in thousandths of `centre`, rounded up; `None` when that is zero.
    pub fn half_width_per_mille(&self, centre: u64) -> Option<u64> {
        let distance = centre
            .saturating_sub(self.low)
            .max(self.high.saturating_sub(centre));
        let share =
            (u128::from(distance) * 1_000).div_ceil(u128::from((centre > 0).then_some(centre)?));
        Some(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

/// The interval of the median of independent `samples` (in any order) at `confidence`, for example 0.95.
///
/// `None` when so few samples cannot reach the confidence: below six for 0.95.
///
/// # Panics
/// When `confidence` is not between 0 and 1.
pub fn median_rank_interval(samples: &[u64], confidence: f64) -> Option<Interval> {
    assert!(
        confidence > 0.0 && confidence < 1.0,
        "{confidence} is not a confidence"
    );
    let (rank, coverage) = lower_rank(samples.len() as u64, confidence)?;
    let rank = rank as usize;
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    Some(Interval {
        low: sorted[rank - 1],
        high: sorted[samples.len() - rank],
        coverage,
    })
}

/// Where a share lies of which `count` of `total` were counted: Wilson's interval at 95 %, within 0 to 1; it is not empty where
/// none was counted. `None` of nothing.
pub fn share_interval(count: u64, total: u64) -> Option<(f64, f64)> {
    const Z: f64 = 1.96;
    if total == 0 {
        return None;
    }
    let n = total as f64;
    let part = count.min(total) as f64 / n;
    let middle = part + Z * Z / (2.0 * n);
    let half = Z * (part * (1.0 - part) / n + Z * Z / (4.0 * n * n)).sqrt();
    let of = |bound: f64| (bound / (1.0 + Z * Z / n)).clamp(0.0, 1.0);
    Some((of(middle - half), of(middle + half)))
}

/// The largest rank l, from one, with 2·P(B < l) within one minus the confidence, and the coverage it gives.
pub(crate) fn lower_rank(count: u64, confidence: f64) -> Option<(u64, f64)> {
    if count > COUNTED_MAX {
        return Some(normal_rank(count, confidence));
    }
    let n = count as f64;
    // In logarithms, since 2⁻ⁿ underflows beyond n = 1074.
    let mut log_probability = -n * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut found = None;
    for rank in 1..=count.div_ceil(2) {
        // Adds P(B = rank - 1), so that `below` is P(B < rank).
        below += log_probability.exp();
        if 2.0 * below > 1.0 - confidence {
            break;
        }
        found = Some((rank, 1.0 - 2.0 * below));
        let k = (rank - 1) as f64;
        log_probability += ((n - k) / (k + 1.0)).ln();
    }
    found
}

/// The same by the normal law: B is near its mean n/2 with standard deviation √n/2, and B < l is B ≤ l - 1/2.
fn normal_rank(count: u64, confidence: f64) -> (u64, f64) {
    let (mut low, mut high) = (0.0, 9.0);
    // Bisection: 50 halvings leave nothing that a double could show.
    for _ in 0..50 {
        let z = f64::midpoint(low, high);
        if both_tails(z) > 1.0 - confidence {
            low = z;
        } else {
            high = z;
        }
    }
    let n = count as f64;
    let rank = ((n - high * n.sqrt()) / 2.0 + 0.5).floor().max(1.0);
    let coverage = 1.0 - both_tails((n + 1.0 - 2.0 * rank) / n.sqrt());
    (rank as u64, coverage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_wilsons_interval() {
        // Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263, 15 of 148, 0 of 20.
        for (count, total, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
        ] {
            let found = share_interval(count, total).unwrap();
            assert!(
                (found.0 - low).abs() < 6e-5 && (found.1 - high).abs() < 6e-5,
                "{found:?}"
            );
        }
        assert_eq!(share_interval(0, 0), None);
    }
    use rand_core::Rng;
    use rand_pcg::Pcg64;

    #[test]
    fn normal_ranks_join_the_counted_ones() {
        for count in [10_000, 19_999, COUNTED_MAX] {
            for confidence in [0.5, 0.9, 0.95, 0.99] {
                let (counted, _) = lower_rank(count, confidence).unwrap();
                let (normal, coverage) = normal_rank(count, confidence);
                assert!(counted.abs_diff(normal) <= 1, "{count}: {counted} {normal}");
                assert!((coverage - confidence).abs() < 0.01 && coverage >= confidence - 1e-6);
            }
        }
        // A thousand million samples: their median is known to 31,000 ranks, and finding them takes no time.
        let (rank, _) = lower_rank(1_000_000_000, 0.95).unwrap();
        assert!((500_000_000 - rank).abs_diff(30_990) <= 2, "{rank}");
    }

    #[test]
    fn known_ranks() {
        // Tables of the sign test's interval, for example Le Boudec's table A.1 and n = 100: 40 and 61.
        for (count, rank) in [
            (6, 1),
            (8, 1),
            (9, 2),
            (10, 2),
            (20, 6),
            (30, 10),
            (50, 18),
            (100, 40),
        ] {
            assert_eq!(lower_rank(count, 0.95).unwrap().0, rank, "{count} samples");
        }
        // The normal approximation, far beyond where 2⁻ⁿ underflows: n/2 - 0.98·√n.
        let (rank, coverage) = lower_rank(1_000_000, 0.95).unwrap();
        assert!(
            rank.abs_diff(499_020) <= 1 && (0.95..0.951).contains(&coverage),
            "{rank} {coverage}"
        );
    }

    #[test]
    fn none_below_six() {
        for count in 0..6 {
            assert_eq!(median_rank_interval(&[1, 2, 3, 4, 5][..count], 0.95), None);
        }
        let six = median_rank_interval(&[6, 1, 5, 2, 4, 3], 0.95).unwrap();
        assert_eq!((six.low, six.high), (1, 6));
        assert!((six.coverage - 0.968_75).abs() < 1e-12);
        assert_eq!(six.half_width_per_mille(3), Some(1_000));
    }

    #[test]
    fn coverage_is_what_it_says() {
        const TRIALS: u32 = 20_000;
        let mut random = Pcg64::new(7, 11);
        for count in [6, 10, 25, 60] {
            let mut held = 0;
            let mut stated = 0.0;
            for _ in 0..TRIALS {
                // A skewed law: x² of a uniform x; its median is that of the uniform, squared.
                let samples: Vec<u64> = (0..count)
                    .map(|_| u64::from(random.next_u32()).pow(2))
                    .collect();
                let interval = median_rank_interval(&samples, 0.95).unwrap();
                let median = (1u64 << 31).pow(2);
                held += u32::from(interval.low <= median && median <= interval.high);
                stated = interval.coverage;
            }
            let share = f64::from(held) / f64::from(TRIALS);
            let four_sigma = 4.0 * (stated * (1.0 - stated) / f64::from(TRIALS)).sqrt();
            assert!(
                (share - stated).abs() < four_sigma && stated >= 0.95,
                "{count}: {share}, stated {stated}"
            );
        }
    }
}
