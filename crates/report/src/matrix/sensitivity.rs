//! What a matrix could have seen: the smallest faults that would have been found, were they there.
//!
//! Model:   a host's badness is a median over k pairs with a spread of 1.2533/√k of theirs; it is found where that is beyond
//!          its bound, again over the partners of the second measurement, and alone. For each of the three to be nineteen times
//!          of twenty, the fault must be 1.645 spreads beyond the bound: four times of five for all, with room for spreads that
//!          are themselves estimated. A way is one pair. Of losses, x are expected where x - 1.645 √x are needed, and 4.74 in
//!          the second measurement, of which two come nineteen times of twenty.
//! Source:  the bounds of `score` and `suspect`; Cohen 1988 §2 for power. Deviations: none.
//! Checked: `what_could_be_seen_is_seen_four_times_of_five`, `less_is_not`, `losses_that_could_be_seen_are`.

use super::score::{Scores, bound, scores};
use super::suspect::{COUNT_MIN, LOSS_MIN, Share, shares};
use super::{Kind, Matrix, Stage};
use crate::index::median;
use sonde_measure::Run;

/// Nineteen of twenty normal draws are above this many spreads below the middle.
const NEARLY_ALL: f64 = 1.645;
/// Two come nineteen times of twenty where as many are expected.
const TWO_COME: f64 = 4.74;

/// How a suspect is measured again.
#[derive(Debug, Clone, Copy)]
pub struct Retest {
    /// Good hosts that a suspicious one is measured against.
    pub partners: usize,
    /// How long each stream goes on.
    pub stream_ns: u64,
}

/// As every command measures it again: long enough for a few lost segments of a thousand.
pub const RETEST: Retest = Retest {
    partners: 3,
    stream_ns: 350_000_000,
};

/// The smallest faults that would have been found four times of five; none of what was not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sensitivity {
    /// So many times the latency of others, at all pairs of a host.
    pub host_latency: Option<f64>,
    /// So many times slower, the streams to a host or from it.
    pub host_stream: Option<f64>,
    /// So many times slower, a way of one pair that was measured.
    pub way_stream: Option<f64>,
    /// The share of segments that are lost to a host or from it.
    pub host_loss: Option<f64>,
}

/// What a run of all pairs could have seen; `None` of another.
pub fn sensitivity(run: &Run, retest: &Retest) -> Option<Sensitivity> {
    let matrix = Matrix::of(run)?;
    let mtu = run.hosts.iter().filter_map(|host| host.facts.mtu_bytes);
    Some(of(&matrix, retest, mtu.min().unwrap_or(1_500)))
}

pub(super) fn of(matrix: &Matrix, retest: &Retest, mtu_bytes: u64) -> Sensitivity {
    let hosts = matrix.hosts.len();
    let host = |kind: Kind| {
        let scores = scores(matrix, Stage::Together, kind)?;
        // A host is not told from its one way to the only other.
        (hosts >= 3).then(|| host_factor(&scores, kind, hosts, retest))
    };
    let way = scores(matrix, Stage::Together, Kind::Stream).map(|scores| {
        let again = bound(Kind::Stream, scores.spread, 1);
        (scores.bound.max(again) + NEARLY_ALL * scores.spread).exp()
    });
    Sensitivity {
        host_latency: host(Kind::Latency),
        host_stream: host(Kind::Stream),
        way_stream: way,
        host_loss: (hosts >= 3)
            .then(|| loss(matrix, retest, mtu_bytes))
            .flatten(),
    }
}

/// The spread of a median of so many over that of one: exact for one to three, 1.2533/√k beyond.
fn of_median(count: usize) -> f64 {
    match count {
        0 | 1 => 1.0,
        2 => 0.707,
        3 => 0.67,
        _ => 1.2533 / (count as f64).sqrt(),
    }
}

fn host_factor(scores: &Scores, kind: Kind, hosts: usize, retest: &Retest) -> f64 {
    let pairs: Vec<f64> = (0..hosts)
        .flat_map(|host| scores.of_host(host, &[]))
        .map(|(_, pairs)| pairs as f64)
        .collect();
    let pairs = median(pairs).unwrap_or(0.0) as usize;
    let first =
        scores.host_bound(kind, hosts, pairs) + NEARLY_ALL * of_median(pairs) * scores.spread;
    let again = bound(kind, scores.spread, 1)
        + NEARLY_ALL * of_median(retest.partners.min(hosts - 1)) * scores.spread;
    first.max(again).exp()
}

fn loss(matrix: &Matrix, retest: &Retest, mtu_bytes: u64) -> Option<f64> {
    let all = shares(
        matrix,
        &[Stage::Together],
        (Kind::Stream, |reading| reading.lost),
        &[],
    );
    let of = |of: fn(&Share) -> f64| median(all.values().map(of).collect());
    let segments = of(|share| share.segments as f64).filter(|count| *count > 0.0)?;
    let usual = of(Share::part)?;
    let least = LOSS_MIN.max(super::suspect::TIMES * usual);
    let wanted = (least * segments).max(COUNT_MIN as f64);
    let root = (NEARLY_ALL + NEARLY_ALL.mul_add(NEARLY_ALL, 4.0 * wanted).sqrt()) / 2.0;
    let rate = scores(matrix, Stage::Together, Kind::Stream)?.usual;
    let partners = retest.partners.min(matrix.hosts.len() - 1) as f64;
    let payload_bits = 8.0 * (mtu_bytes.saturating_sub(52).max(1)) as f64;
    let again = partners * rate * retest.stream_ns as f64 / 1e9 / payload_bits;
    Some(
        (root * root / segments)
            .max(TWO_COME / again.max(1.0))
            .min(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::super::blame::blames;
    use super::super::testing::Grid;
    use super::super::{Pair, Whom};
    use super::*;

    const HOST: usize = 5;

    fn is_of_host((a, b): Pair) -> bool {
        a == HOST || b == HOST
    }

    /// In how many of 100 matrices a fault of so many times what could be seen is named. Beyond the first measurement there are three partners.
    fn found(noise: f64, kind: Kind, part: f64) -> usize {
        let one = |seed: u64| {
            let grid = || Grid::noisy(16, seed, noise);
            let seen = of(&grid().matrix(), &RETEST, 1_500);
            let factor = match kind {
                Kind::Latency => seen.host_latency,
                _ => seen.host_stream,
            };
            let factor = (factor.unwrap().ln() * part).exp();
            let mut grid = grid();
            grid.worsen(kind, |pair| is_of_host(pair).then_some(factor));
            grid.keep(|stage, pair| {
                let partner = if pair.0 == HOST { pair.1 } else { pair.0 };
                let alone = is_of_host(pair) && (6..9).contains(&partner);
                stage != Stage::Alone || alone
            });
            grid.keep(|stage, (a, b)| stage != Stage::Again || (6..9).contains(&((a + b) % 16)));
            let all = blames(&grid.matrix());
            usize::from(all.iter().any(|one| one.whom == Whom::Host(HOST)))
        };
        (0..100).map(one).sum()
    }

    #[test]
    fn what_could_be_seen_is_seen_four_times_of_five() {
        for noise in [0.01, 0.03, 0.1, 0.3] {
            for kind in [Kind::Latency, Kind::Stream] {
                let found = found(noise, kind, 1.0);
                assert!(found >= 75, "{noise} {kind:?}: {found}");
            }
        }
    }

    #[test]
    fn less_is_not() {
        for noise in [0.01, 0.03, 0.1, 0.3] {
            for kind in [Kind::Latency, Kind::Stream] {
                let found = found(noise, kind, 0.5);
                assert!(found <= 40, "{noise} {kind:?}: {found}");
            }
        }
    }

    #[test]
    fn losses_that_could_be_seen_are() {
        let seen = of(&Grid::healthy(16, 1).matrix(), &RETEST, 1_500);
        let share = seen.host_loss.unwrap();
        assert!((LOSS_MIN..0.003).contains(&share), "{share}");
        // Draws of each segment, of a thousand a stream; the second measurement is of three partners.
        let named = |share: f64| {
            let one = |seed: u64| {
                let mut grid = Grid::healthy(16, seed);
                let mut state = seed;
                grid.count_of(Kind::Stream, |(_, b), reading| {
                    if b == HOST {
                        reading.lost =
                            (0..1_000).filter(|_| draw(&mut state) < share).count() as u64;
                    }
                });
                grid.keep(|stage, (a, _)| {
                    !matches!(stage, Stage::Alone | Stage::Again) || (6..9).contains(&a)
                });
                usize::from(
                    blames(&grid.matrix())
                        .iter()
                        .any(|one| one.rule == "host-loss"),
                )
            };
            (0..50).map(one).sum::<usize>()
        };
        let (at, below) = (named(share), named(share / 4.0));
        assert!(at >= 38 && below <= 12, "{share}: {at} and {below} of 50");
    }

    fn draw(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }
}
