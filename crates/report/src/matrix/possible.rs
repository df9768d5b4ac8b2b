//! Whether what a matrix says holds whatever its disturbed samples were.
//!
//! Model:   the undisturbed figure of a pair lies between two ends; without a disturbance both are what was recorded, and an end
//!          without a bound is as far away as a stream that stands still. That somebody is slow is sure where it is still said
//!          with their figures at their best and all others at their worst. Who stands out with their figures at their worst and
//!          all others at their best, and not as they were recorded, may be slow unseen.
//! Source:  the ends: `state::limits` of `measure`. Deviations: all others are at one end together, which is the worst for a host's
//!          median and nearly so for the spread.
//! Checked: `slowness_by_disturbed_samples_is_not_sure`, `who_may_be_slow_is_named`, `whatever_a_disturbance_does_nobody_is_blamed_falsely`, `little_hides_nobody`.

use std::collections::BTreeSet;

use super::all_pairs::OPEN;
use super::blame::{Blame, blames};
use super::score::{STOOD_STILL, badness, scores};
use super::suspect::{Sign, standing};
use super::{KINDS, Kind, Matrix, Pair, Reading, Stage, Whom};

/// An end of what is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Best,
    Worst,
}

impl Reading {
    /// Whether a disturbance leaves open what it is.
    fn is_open(&self) -> bool {
        let same = Some(self.value);
        self.possible.is_some_and(|ends| ends != (same, same))
    }

    /// Its figure at an end.
    fn at(&self, kind: Kind, end: End) -> f64 {
        let far = STOOD_STILL.exp();
        let Some((low, high)) = self.possible else {
            return self.value;
        };
        match (kind == Kind::Latency) == (end == End::Best) {
            true => low.unwrap_or(self.value / far),
            false => high.unwrap_or(self.value * far),
        }
    }
}

impl Matrix {
    /// With the figures of some pairs at this end, and all others at the other one.
    fn at(&self, end: End, is_of: impl Fn(Pair) -> bool) -> Self {
        let mut matrix = self.clone();
        let other = match end {
            End::Best => End::Worst,
            End::Worst => End::Best,
        };
        for ((_, kind, pair), reading) in &mut matrix.readings {
            reading.value = reading.at(*kind, if is_of(*pair) { end } else { other });
        }
        matrix
    }

    /// Whether a disturbance leaves open what some figures are.
    fn is_open(&self) -> bool {
        self.readings.values().any(Reading::is_open)
    }
}

impl Whom {
    /// Whether it is the same host, the same way or the fabric too.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Link((a, b)) | Self::Direction((a, b)),
                Self::Link(of) | Self::Direction(of),
            ) => *of == (*a, *b) || *of == (*b, *a),
            _ => self == other,
        }
    }
}

/// Whether a host, a way or the fabric is slow whatever the disturbed samples were.
pub(super) fn is_sure(matrix: &Matrix, blame: &Blame) -> bool {
    let is_same = |other: &Blame| !OPEN.contains(&other.rule) && other.whom.is_like(&blame.whom);
    let is_said = |matrix: &Matrix| blames(matrix).iter().any(is_same);
    !matrix.is_open()
        || match &blame.whom {
            // It is bad together and good alone.
            Whom::Fabric => {
                let at = |end| is_said(&matrix.at(end, |_| true));
                at(End::Best) && at(End::Worst)
            }
            // A link may be blamed for what is of one direction.
            whom => {
                is_said(&matrix.at(End::Best, |(a, b)| whom.is_of((a, b)) || whom.is_of((b, a))))
            }
        }
}

/// Hosts and directions that may be slow without standing out; those of such a host are not named.
pub(super) fn hidden(matrix: &Matrix) -> Vec<Whom> {
    if !matrix.is_open() {
        return Vec::new();
    }
    let seen = standing(matrix);
    let is_hidden = |host: &usize| {
        let is_of = |(a, b): Pair| a == *host || b == *host;
        let worst = || standing(&matrix.at(End::Worst, is_of));
        let is_slow = |sign: &Sign| matches!(sign, Sign::Slow(_));
        !seen.hosts.contains_key(host)
            && (worst().hosts.get(host))
                .is_some_and(|signs| signs.iter().any(|(sign, _)| is_slow(sign)))
    };
    let hosts: Vec<usize> = (0..matrix.hosts.len()).filter(is_hidden).collect();
    let best = matrix.at(End::Best, |_| true);
    let mut ways: BTreeSet<Pair> = BTreeSet::new();
    for kind in KINDS {
        let Some(scores) = scores(&best, Stage::Together, kind) else {
            continue;
        };
        for (pair, reading) in matrix.grid(Stage::Together, kind) {
            let worst = badness(kind, reading.at(kind, End::Worst), scores.usual);
            let is_known = seen.pairs.contains_key(&pair)
                || [pair.0, pair.1]
                    .iter()
                    .any(|host| hosts.contains(host) || seen.hosts.contains_key(host));
            if reading.is_open() && worst > scores.bound && !is_known {
                // Half a round trip is of both ways.
                let ordered = (pair.0.min(pair.1), pair.0.max(pair.1));
                ways.insert(if kind == Kind::Latency { ordered } else { pair });
            }
        }
    }
    let hosts = hosts.into_iter().map(Whom::Host);
    hosts.chain(ways.into_iter().map(Whom::Direction)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Grid;
    use super::*;

    fn of(host: usize) -> impl Fn(Pair) -> bool {
        move |(a, b)| a == host || b == host
    }

    /// With the figures of some pairs open to the side to which a disturbance cannot have moved them, as far as `times`.
    fn open(grid: Grid, times: Option<f64>, is_of: impl Fn(Pair) -> bool) -> Matrix {
        let mut matrix = grid.matrix();
        for ((_, kind, pair), reading) in &mut matrix.readings {
            if is_of(*pair) {
                let value = reading.value;
                reading.possible = Some(match kind {
                    Kind::Latency => (times.map(|times| value / times), Some(value)),
                    Kind::Stream | Kind::Duplex => (Some(value), times.map(|times| value * times)),
                });
            }
        }
        matrix
    }

    #[test]
    fn slowness_by_disturbed_samples_is_not_sure() {
        for kind in KINDS {
            let slow = || {
                let mut grid = Grid::healthy(8, 3);
                grid.worsen(kind, |pair| of(2)(pair).then_some(4.0));
                grid
            };
            let sure = |matrix: &Matrix| -> Vec<bool> {
                let all = blames(matrix);
                assert_eq!(all.len(), 1, "{all:?}");
                all.iter().map(|one| is_sure(matrix, one)).collect()
            };
            assert_eq!(sure(&slow().matrix()), [true], "{kind:?}");
            // Its own figures may be as good as the others'; or better, but not as good.
            assert_eq!(sure(&open(slow(), Some(4.0), of(2))), [false], "{kind:?}");
            assert_eq!(sure(&open(slow(), None, of(2))), [false], "{kind:?}");
            assert_eq!(sure(&open(slow(), Some(1.3), of(2))), [true], "{kind:?}");
            // What the others may be better by makes it worse.
            let others = open(slow(), Some(3.0), |pair| !of(2)(pair));
            assert_eq!(sure(&others), [true], "{kind:?}");
        }
    }

    #[test]
    fn who_may_be_slow_is_named() {
        for kind in KINDS {
            // Whoever is as slow as recorded, where all others are much better.
            let all = |is_of: &dyn Fn(Pair) -> bool| {
                let mut matrix = open(Grid::healthy(8, 3), Some(4.0), is_of);
                matrix.readings.retain(|(_, one, _), _| *one == kind);
                hidden(&matrix)
            };
            let hosts: Vec<Whom> = (0..8).map(Whom::Host).collect();
            assert_eq!(all(&|_| true), hosts, "{kind:?}");
            assert_eq!(all(&|pair| !of(2)(pair)), hosts, "{kind:?}");
            assert_eq!(all(&of(2)), [], "{kind:?}: it can only be better");
            // One pair beside which another flow went, so that it may have been worse.
            let mut matrix = Grid::healthy(8, 3).matrix();
            let reading = matrix.readings.get_mut(&(Stage::Together, kind, (1, 4)));
            reading.unwrap().possible = Some((None, None));
            assert_eq!(hidden(&matrix), [Whom::Direction((1, 4))], "{kind:?}");
        }
    }

    /// What a disturbance made of a matrix: a share of the figures, in thousandths, up to `most` times worse than they are, with ends that
    /// hold what they are.
    fn disturbed(grid: Grid, seed: u64, thousandths: u64, most: f64) -> Matrix {
        let mut state = seed;
        let mut draw = || {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as f64 / (1_u64 << 31) as f64
        };
        let mut matrix = grid.matrix();
        for ((_, kind, _), reading) in &mut matrix.readings {
            let (is_met, worse, room) = (draw() * 1_000.0 < thousandths as f64, draw(), draw());
            if !is_met {
                continue;
            }
            let (truth, worse, room) = (reading.value, most.powf(worse), 1.0 + 0.5 * room);
            (reading.value, reading.possible) = match kind {
                Kind::Latency => (
                    truth * worse,
                    Some((Some(truth / room), Some(truth * worse))),
                ),
                Kind::Stream | Kind::Duplex => (
                    truth / worse,
                    Some((Some(truth / worse), Some(truth * room))),
                ),
            };
        }
        matrix
    }

    #[test]
    fn whatever_a_disturbance_does_nobody_is_blamed_falsely() {
        let mut named = 0;
        let seeds = 0..60;
        for seed in seeds.clone() {
            for (thousandths, most) in [(50, 30.0), (300, 10.0), (900, 5.0)] {
                let sure = |matrix: &Matrix| {
                    let all = blames(matrix).into_iter();
                    let sure = all.filter(|one| is_sure(matrix, one) && !OPEN.contains(&one.rule));
                    sure.map(|one| one.whom).collect::<Vec<_>>()
                };
                let healthy = disturbed(Grid::healthy(8, seed), seed, thousandths, most);
                assert_eq!(sure(&healthy), [], "{seed} {thousandths}");
                let mut grid = Grid::healthy(8, seed);
                grid.worsen(Kind::Stream, |pair| of(2)(pair).then_some(4.0));
                let faulty = disturbed(grid, seed, thousandths, most);
                let found = sure(&faulty);
                assert!(
                    found.iter().all(|whom| *whom == Whom::Host(2)),
                    "{seed} {thousandths}: {found:?}"
                );
                let is_open = !blames(&faulty).is_empty() || !hidden(&faulty).is_empty();
                assert!(is_open, "{seed} {thousandths}: healthy");
                named += usize::from(!found.is_empty());
            }
        }
        // Of those with one figure of twenty disturbed nearly all.
        assert!(named >= seeds.count(), "{named}");
    }

    #[test]
    fn little_hides_nobody() {
        for seed in 0..20 {
            for hosts in [2, 3, 4, 8, 16] {
                let matrix = open(Grid::healthy(hosts, seed), Some(1.02), |_| true);
                assert!(matrix.is_open());
                assert_eq!(hidden(&matrix), [], "{hosts} {seed}");
            }
        }
    }
}
