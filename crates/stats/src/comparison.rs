//! Two sets of launches compared: how far apart their medians are, and whether that could be chance.
//!
//! Model:   difference and ratio are of the two sets' medians, each the middle of a set or halfway between its two middle
//!          ones; the intervals are percentiles (2.5 % and 97.5 %) of the same over resampled sets. The rank sum test is
//!          two-sided: the share of all ways to divide the pooled launches whose rank sum is at least as far from the
//!          expected one. Ties have their middle rank. The shares are counted up to 40 launches together, and beyond that
//!          by the normal law with corrections for ties and continuity.
//!          Many tests are judged together by [`level_of_all`].
//! Source:  Efron & Tibshirani, An Introduction to the Bootstrap, §13.3; Mann & Whitney 1947; Lehmann, Nonparametrics, §1.4;
//!          Abramowitz & Stegun 7.1.26 for the normal law. Deviations: none.
//! Units:   a difference in the samples' own; its ends rounded outward.
//! Checked: `identical_populations_are_told_apart_rarely`, `a_shift_is_found`, `known_rank_sums`,
//!          `counted_and_normal_agree`, `the_seed_decides`, `many_tests_find_as_little_by_chance_as_one`.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::levels::normal_deviate;

/// Fewer launches have no interval.
const LAUNCHES_MIN: usize = 6;
const RESAMPLES: usize = 4_000;
/// The normal deviate of a power of nine tenths.
const POWER_Z: f64 = 1.281_552;
/// How many more launches a median needs than the rank sum: the efficiencies beside the mean are 2/π and 3/π (Lehmann,
/// Nonparametrics, §2.4).
const MEDIAN_COST: f64 = 1.5;
/// With more launches together the normal law is used.
const COUNTED_MAX: usize = 40;

/// How much larger the first median is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// The first median less the second.
    pub value: i64,
    /// Lower end of the interval at 95 %.
    pub low: i64,
    /// Upper end of the interval at 95 %.
    pub high: i64,
}

/// How many times the second median the first is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The first median over the second.
    pub value: f64,
    /// Lower end of the interval at 95 %.
    pub low: f64,
    /// Upper end of the interval at 95 %.
    pub high: f64,
}

/// A rank sum test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSum {
    /// The probability of ranks at least so uneven, where both sets are of one population.
    pub p: f64,
    /// The probability that one of the first set is larger than one of the second, halves for equal ones.
    pub superiority: f64,
}

/// The medians of launches `first` less those of `second`. `None` below six launches in either.
pub fn difference(first: &[u64], second: &[u64], seed: u64) -> Option<Difference> {
    let estimate = resampled(first, second, seed, |a, b| a - b)?;
    Some(Difference {
        value: estimate.value.round() as i64,
        low: estimate.low.floor() as i64,
        high: estimate.high.ceil() as i64,
    })
}

/// The medians of launches `first` over those of `second`. `None` below six launches in either, and where the second has a
/// zero.
pub fn ratio(first: &[u64], second: &[u64], seed: u64) -> Option<Ratio> {
    if !has_ratio(first, second) {
        return None;
    }
    resampled(first, second, seed, |a, b| a / b)
}

fn has_ratio(first: &[u64], second: &[u64]) -> bool {
    first.len().min(second.len()) >= LAUNCHES_MIN && !second.contains(&0)
}

fn resampled(
    first: &[u64],
    second: &[u64],
    seed: u64,
    of: impl Fn(f64, f64) -> f64,
) -> Option<Ratio> {
    if first.len().min(second.len()) < LAUNCHES_MIN {
        return None;
    }
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut scratch = Vec::with_capacity(first.len().max(second.len()));
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut median = |set: &[u64]| {
                scratch.clear();
                scratch.extend(set.iter().map(|_| set[below(&mut random, set.len())]));
                middle(&mut scratch)
            };
            of(median(first), median(second))
        })
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let cut = RESAMPLES / 40;
    Some(Ratio {
        value: of(middle(&mut first.to_vec()), middle(&mut second.to_vec())),
        low: drawn[cut],
        high: drawn[RESAMPLES - 1 - cut],
    })
}

/// A number below `count`, each as likely as the others to within 2⁻⁶⁴·`count`.
fn below(random: &mut Pcg64Mcg, count: usize) -> usize {
    ((u128::from(random.next_u64()) * count as u128) >> 64) as usize
}

/// The middle one, or halfway between the two in the middle: a set of six and its mirror image have mirrored medians.
fn middle(set: &mut [u64]) -> f64 {
    set.sort_unstable();
    let half = set.len() / 2;
    if set.len() % 2 == 1 {
        set[half] as f64
    } else {
        f64::midpoint(set[half - 1] as f64, set[half] as f64)
    }
}

/// Whether the launches `first` and `second` differ: the rank sum says so at `level` (0.05 of one comparison; of several see
/// [`level_of_all`]), and one is not in the interval of the ratio. Both, since the first looks at all launches and the second at the
/// medians that are shown. `None` below six launches in either.
pub fn is_apart(first: &[u64], second: &[u64], level: f64, seed: u64) -> Option<bool> {
    if !has_ratio(first, second) {
        return None;
    }
    // The interval takes much longer than the test.
    Some(
        rank_sum(first, second)?.p <= level
            && ratio(first, second, seed)
                .is_some_and(|ratio| !(ratio.low..=ratio.high).contains(&1.0)),
    )
}

/// The level at which each of several tests with these probabilities is to be judged, so that of what they find the share of chance
/// is `share` on average; where nothing differs, at most this share of all sets of tests finds anything. Source: Benjamini &
/// Hochberg, JRSS B 57(1) 1995. 0 where none is found.
pub fn level_of_all(p: &[f64], share: f64) -> f64 {
    let mut sorted = p.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let levels = (1..).map(|rank| share * f64::from(rank) / count);
    let found = sorted
        .iter()
        .zip(levels)
        .filter(|(p, level)| *p <= level)
        .last();
    found.map_or(0.0, |(_, level)| level)
}

/// Tests whether `first` and `second` can be of one population. `None` when either is empty.
pub fn rank_sum(first: &[u64], second: &[u64]) -> Option<RankSum> {
    let (n, m) = (first.len(), second.len());
    if n == 0 || m == 0 {
        return None;
    }
    let mut all: Vec<(u64, bool)> = first.iter().map(|value| (*value, true)).collect();
    all.extend(second.iter().map(|value| (*value, false)));
    all.sort_unstable();
    let ranks = doubled_ranks(&all);
    let sum: u64 = all
        .iter()
        .zip(&ranks)
        .filter(|((_, mine), _)| *mine)
        .map(|(_, rank)| rank)
        .sum();
    let far = sum.abs_diff(expected(n, m));
    let p = if n + m <= COUNTED_MAX {
        counted(&ranks, n, far)
    } else {
        normal(&all, n, far)
    };
    let pairs = n as f64 * m as f64;
    Some(RankSum {
        p,
        superiority: (sum as f64 / 2.0 - n as f64 * (n as f64 + 1.0) / 2.0) / pairs,
    })
}

/// How many launches each of two sets needs so that a change of every launch by `per_mille` is found ([`is_apart`] at `level`)
/// nine times in ten, judged by how the launches of `sets` are spread around their own medians. `None` below three launches,
/// and where all are zero.
///
/// Noether's formula with equal sets: n = (z + 1.28)² / 6(s - ½)² with z of the level on two sides, times 3/2 for the interval of the medians' ratio, where s is the probability that a changed launch is
/// beyond an unchanged one. It is estimated from all pairs of each set, and drawn towards one half as a set of so few tells
/// it (one pair in each direction is added); where no pair tells, it is that of a normal law of the same spread. There are at least so many that the most uneven ranks reach the level. Source: Noether, JASA 82(398) 1987. Checked: `power_is_what_was_asked_for`.
pub fn launches_wanted(sets: &[&[u64]], per_mille: u64, level: f64) -> Option<u64> {
    let (mut beyond, mut pairs) = (0.0, 0.0);
    for set in sets {
        for (at, one) in set.iter().enumerate() {
            for (other_at, other) in set.iter().enumerate() {
                if at == other_at {
                    continue;
                }
                let changed = u128::from(*one) * u128::from(1_000 + per_mille);
                let plain = u128::from(*other) * 1_000;
                pairs += 1.0;
                beyond += match changed.cmp(&plain) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                };
            }
        }
    }
    if pairs < 6.0 {
        return None;
    }
    let paired = (beyond + 1.0) / (pairs + 2.0) - 0.5;
    // A change that turns no pair around is small beside the spread: as of a normal law of that spread.
    let apart = if paired > 0.0 {
        paired
    } else {
        let z = per_mille as f64 / 1_000.0 / (spread(sets)? * std::f64::consts::SQRT_2);
        (1.0 - both_tails(z)) / 2.0
    };
    if apart <= 0.0 {
        return None;
    }
    let z = normal_deviate(level / 2.0) + POWER_Z;
    let wanted = (MEDIAN_COST * z * z / (6.0 * apart * apart)).ceil() as u64;
    Some(wanted.max(reaching(level)))
}

/// The fewest launches in each of two sets of which the most uneven ranks are as improbable as `level`.
fn reaching(level: f64) -> u64 {
    let mut p = 2.0;
    for count in 1..COUNTED_MAX as u64 / 2 {
        // Two of so many choices: 2n of n grows by (2n)(2n - 1) / n².
        let n = count as f64;
        p *= n * n / (2.0 * n * (2.0 * n - 1.0));
        if p <= level && count >= LAUNCHES_MIN as u64 {
            return count;
        }
    }
    COUNTED_MAX as u64 / 2
}

/// The standard deviation of a normal law with the same median distance from the sets' medians, relative to them. `None` where
/// there is none, or a median is zero.
fn spread(sets: &[&[u64]]) -> Option<f64> {
    let mut distances = Vec::new();
    for set in sets.iter().filter(|set| !set.is_empty()) {
        let median = middle(&mut set.to_vec());
        if median <= 0.0 {
            return None;
        }
        distances.extend(set.iter().map(|one| (*one as f64 - median).abs() / median));
    }
    distances.sort_unstable_by(f64::total_cmp);
    let middle = *distances.get(distances.len() / 2)?;
    (middle > 0.0).then_some(1.4826 * middle)
}

/// Twice the rank sum that `n` of `n + m` have on average.
fn expected(n: usize, m: usize) -> u64 {
    (n * (n + m + 1)) as u64
}

/// Twice the rank of each, so that the middle rank of ties is whole.
fn doubled_ranks(sorted: &[(u64, bool)]) -> Vec<u64> {
    sorted
        .chunk_by(|a, b| a.0 == b.0)
        .scan(0, |before, tied| {
            let rank = 2 * *before + tied.len() as u64 + 1;
            *before += tied.len() as u64;
            Some(vec![rank; tied.len()])
        })
        .flatten()
        .collect()
}

/// The share of all choices of `n` of `ranks` whose sum is at least `far` from the expected one.
fn counted(ranks: &[u64], n: usize, far: u64) -> f64 {
    let centre = expected(n, ranks.len() - n);
    let most = ranks.iter().sum::<u64>() as usize;
    // ways[k][s]: choices of k ranks with sum s. At most C(40, 20), which a double holds exactly.
    let mut ways = vec![vec![0.0_f64; most + 1]; n + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        for k in (1..=n).rev() {
            let (fewer, same) = ways.split_at_mut(k);
            for sum in rank as usize..=most {
                same[0][sum] += fewer[k - 1][sum - rank as usize];
            }
        }
    }
    let all: f64 = ways[n].iter().sum();
    let uneven = ways[n]
        .iter()
        .enumerate()
        .filter(|(sum, _)| (*sum as u64).abs_diff(centre) >= far);
    uneven.map(|(_, ways)| ways).sum::<f64>() / all
}

fn normal(sorted: &[(u64, bool)], n: usize, far: u64) -> f64 {
    let count = sorted.len() as f64;
    let (n, m) = (n as f64, count - n as f64);
    let ties: f64 = sorted
        .chunk_by(|a, b| a.0 == b.0)
        .map(|tied| (tied.len() as f64).powi(3) - tied.len() as f64)
        .sum();
    let variance = n * m / 12.0 * (count + 1.0 - ties / (count * (count - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (far as f64 / 2.0 - 0.5).max(0.0) / variance.sqrt();
    both_tails(z)
}

/// The probability that a standard normal variable is farther than `z` ≥ 0 from zero, within 1.5·10⁻⁷.
pub(crate) fn both_tails(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    let polynomial = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    (polynomial * (-x * x).exp()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::median_rank_interval;

    /// A launch's median of a skewed law: most near 1000, some far above.
    fn launch(random: &mut Pcg64Mcg) -> u64 {
        let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        (1_000_000.0 * (1.0 + 0.05 / (1.0 - 0.95 * uniform))) as u64
    }

    fn launches(random: &mut Pcg64Mcg, count: usize) -> Vec<u64> {
        (0..count).map(|_| launch(random)).collect()
    }

    #[test]
    fn identical_populations_are_told_apart_rarely() {
        const TRIALS: usize = 600;
        let mut random = Pcg64Mcg::seed_from_u64(20_261_121);
        // The median of the law: a uniform of one half.
        let median = (1_000_000.0 * (1.0 + 0.05 / (1.0 - 0.475))) as u64;
        for count in [6, 10, 20] {
            let mut held = [0; 4];
            for trial in 0..TRIALS {
                let (a, b) = (launches(&mut random, count), launches(&mut random, count));
                let apart = difference(&a, &b, trial as u64).unwrap();
                let ratio = ratio(&a, &b, trial as u64).unwrap();
                let own = median_rank_interval(&a, 0.95).unwrap();
                held[0] += usize::from(apart.low <= 0 && 0 <= apart.high);
                held[1] += usize::from(ratio.low <= 1.0 && 1.0 <= ratio.high);
                held[2] += usize::from(rank_sum(&a, &b).unwrap().p > 0.05);
                held[3] += usize::from(own.low <= median && median <= own.high);
            }
            for (what, held) in ["difference", "ratio", "rank sum", "median"]
                .iter()
                .zip(held)
            {
                let share = held as f64 / TRIALS as f64;
                println!("{count} launches, {what}: {share:.3}");
                assert!(
                    (0.88..=0.99).contains(&share),
                    "{count} launches, {what}: {share}"
                );
            }
        }
    }

    #[test]
    fn a_shift_is_found() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let a = launches(&mut random, 12);
        let twice: Vec<u64> = launches(&mut random, 12).iter().map(|ns| 2 * ns).collect();
        let apart = difference(&twice, &a, 1).unwrap();
        assert!(apart.low > 0 && apart.low <= apart.value && apart.value <= apart.high);
        let ratio = ratio(&twice, &a, 1).unwrap();
        assert!((1.7..2.3).contains(&ratio.value), "{ratio:?}");
        assert!(1.0 < ratio.low && ratio.low <= ratio.value && ratio.value <= ratio.high);
        let test = rank_sum(&twice, &a).unwrap();
        assert!(test.p < 1e-4 && test.superiority > 0.99, "{test:?}");
        assert!(rank_sum(&a, &twice).unwrap().superiority < 0.01);
    }

    /// A launch's median as machines give them: most within some per cent, skewed upward, and now and then a slow one.
    fn realistic(random: &mut Pcg64Mcg, spread: f64) -> u64 {
        let mut uniform = || ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let normal = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let slow = if uniform() < 0.03 { 1.15 } else { 1.0 };
        (20_000.0 * (spread * normal).exp() * slow) as u64
    }

    fn drawn(random: &mut Pcg64Mcg, spread: f64, count: u64) -> Vec<u64> {
        (0..count).map(|_| realistic(random, spread)).collect()
    }

    #[test]
    fn identical_launches_differ_in_at_most_ten_of_a_hundred() {
        let mut random = Pcg64Mcg::seed_from_u64(100);
        for (count, spread) in [(6, 0.01), (6, 0.05), (10, 0.02), (20, 0.05), (30, 0.1)] {
            let found = (0..100).filter(|_| {
                let a = drawn(&mut random, spread, count);
                let b = drawn(&mut random, spread, count);
                is_apart(&a, &b, 0.05, 1).unwrap()
            });
            let found = found.count();
            println!("{count} launches, spread {spread}: {found} of 100");
            assert!(
                found <= 10,
                "{count} launches, spread {spread}: {found} of 100"
            );
        }
    }

    #[test]
    fn power_is_what_was_asked_for() {
        let mut random = Pcg64Mcg::seed_from_u64(84);
        for (pilot, spread) in [(6, 0.005), (6, 0.02), (10, 0.02), (10, 0.03), (20, 0.05)] {
            let (mut found, mut asked) = (0, 0);
            for _ in 0..100 {
                let a = drawn(&mut random, spread, pilot);
                let b = drawn(&mut random, spread, pilot);
                let wanted = launches_wanted(&[&a, &b], 50, 0.05).unwrap();
                let a = drawn(&mut random, spread, wanted);
                let b: Vec<u64> = drawn(&mut random, spread, wanted)
                    .iter()
                    .map(|ns| ns * 105 / 100)
                    .collect();
                found += u32::from(is_apart(&a, &b, 0.05, 1).unwrap());
                asked += wanted;
            }
            let mean = asked / 100;
            println!("pilot of {pilot}, spread {spread}: {found} of 100 with {mean} launches");
            assert!(
                found >= 84,
                "pilot of {pilot}, spread {spread}: {found} of 100, {mean} launches"
            );
        }
        // A spread of a quarter, in which 5 % turns no pair around.
        let wild = [1_000, 1_400, 800, 1_200, 900, 1_100];
        let wanted = launches_wanted(&[&wild], 50, 0.05).unwrap();
        assert!((100..1_000).contains(&wanted), "{wanted}");
        assert_eq!(launches_wanted(&[&[5, 5]], 50, 0.05), None);
        assert_eq!(launches_wanted(&[&[0; 9]], 50, 0.05), None);
        assert_eq!(launches_wanted(&[&[1_000; 9]], 50, 0.05), Some(12));
    }

    #[test]
    fn many_tests_find_as_little_by_chance_as_one() {
        let near = |level: f64, wanted: f64| assert!((level - wanted).abs() < 1e-12, "{level}");
        // The example of Benjamini and Hochberg, section 4.1: four of fifteen.
        let printed = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.324, 0.4262,
            0.5719, 0.6528, 0.759, 1.0,
        ];
        near(level_of_all(&printed, 0.05), 0.05 * 4.0 / 15.0);
        near(level_of_all(&[0.04], 0.05), 0.05);
        near(level_of_all(&[0.04, 0.03], 0.05), 0.05);
        near(level_of_all(&[0.04, 0.06], 0.05), 0.0);
        near(level_of_all(&[], 0.05), 0.0);
        // Six and six: 2 of 924. Seven and seven: 2 of 3432.
        assert_eq!(
            [reaching(0.05), reaching(0.0021), reaching(0.0006)],
            [6, 7, 7]
        );
        assert_eq!(reaching(1e-300), 20);
    }

    #[test]
    fn few_launches_have_no_interval() {
        assert_eq!(difference(&[1; 5], &[1; 60], 0), None);
        assert_eq!(ratio(&[1; 60], &[1; 5], 0), None);
        assert_eq!(ratio(&[1; 6], &[1, 1, 1, 1, 1, 0], 0), None);
        assert_eq!(rank_sum(&[], &[1]), None);
    }

    #[test]
    fn known_rank_sums() {
        // Three above three: 2 of the 20 ways. Six above six: 2 of 924.
        let p = |a: &[u64], b: &[u64]| rank_sum(a, b).unwrap().p;
        assert!((p(&[4, 5, 6], &[1, 2, 3]) - 0.1).abs() < 1e-12);
        assert!((p(&[7, 8, 9, 10, 11, 12], &[1, 2, 3, 4, 5, 6]) - 2.0 / 924.0).abs() < 1e-12);
        // R: wilcox.test(c(1,3,5,7), c(2,4,6,8,10)): W = 6, p = 0.4127.
        let odd = rank_sum(&[1, 3, 5, 7], &[2, 4, 6, 8, 10]).unwrap();
        assert!(
            (odd.p - 0.412_698).abs() < 1e-6 && (odd.superiority - 6.0 / 20.0).abs() < 1e-12,
            "{odd:?}"
        );
        assert!((p(&[3; 8], &[3; 9]) - 1.0).abs() < 1e-12);
        assert!((p(&[3; 30], &[3; 30]) - 1.0).abs() < 1e-12);
        assert!((both_tails(1.959_964) - 0.05).abs() < 1e-6);
        assert!((both_tails(0.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn counted_and_normal_agree() {
        let mut random = Pcg64Mcg::seed_from_u64(99);
        for _ in 0..40 {
            let mut all: Vec<(u64, bool)> = (0..40)
                .map(|index| (random.next_u64() % 60, index < 20))
                .collect();
            all.sort_unstable();
            let ranks = doubled_ranks(&all);
            let far = 2 * (random.next_u64() % 150);
            let (exact, near) = (counted(&ranks, 20, far), normal(&all, 20, far));
            assert!((exact - near).abs() < 0.02, "{exact} {near}");
        }
    }

    #[test]
    fn the_seed_decides() {
        let mut random = Pcg64Mcg::seed_from_u64(3);
        let (a, b) = (launches(&mut random, 9), launches(&mut random, 9));
        assert_eq!(difference(&a, &b, 7), difference(&a, &b, 7));
        let seeds = (0..50).map(|seed| ratio(&a, &b, seed).unwrap().low.to_bits());
        assert!(seeds.collect::<std::collections::BTreeSet<_>>().len() > 1);
    }
}
