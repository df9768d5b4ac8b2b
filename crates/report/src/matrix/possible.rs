//! Whether what a matrix says holds whatever its disturbed samples were.
//!
//! Model:   the undisturbed figure of a pair lies between two ends; without a disturbance both are what was recorded, and an end
//!          without a bound is as far away as a stream that stands still. That somebody is slow is sure where it is still said
//!          with their figures at their best and all others at their worst. Who stands out with their figures at their worst and
//!          all others at their best, and not as they were recorded, may be slow unseen.
//!          Those figures are measured anew by which somebody may be slow, or who stands out may not be: of a flow's readings that counts
//!          which the disturbances leave least open, whatever it says.
//! Source:  the ends: `state::limits` of `measure`. Deviations: all others are at one end together, which is the worst for a host's
//!          median and nearly so for the spread.
//! Checked: `slowness_by_disturbed_samples_is_not_sure`, `who_may_be_slow_is_named`, `whatever_a_disturbance_does_nobody_is_blamed_falsely`, `little_hides_nobody`,
//!          `what_is_left_open_is_named_flow_by_flow`, `the_reading_that_is_least_open_counts`.

use std::collections::{BTreeMap, BTreeSet};

use sonde_measure::Run;

use super::all_pairs::{OPEN, name_of};
use super::blame::{Blame, blames};
use super::score::{STOOD_STILL, badness, scores};
use super::suspect::{Side, Sign, standing};
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

impl Reading {
    /// How far apart its ends are, as a logarithm; without a bound, infinitely.
    fn openness(&self) -> f64 {
        match self.possible {
            None => 0.0,
            Some((Some(low), Some(high))) => (high.max(1.0) / low.max(1.0)).ln(),
            Some(_) => f64::INFINITY,
        }
    }
}

impl Matrix {
    /// Takes what a flow gave anew, where a disturbance leaves less of it open than of what it gave before.
    pub(super) fn replace(&mut self, kind: Kind, pair: Pair, anew: Reading) {
        let of = self.readings.get_mut(&(Stage::Together, kind, pair));
        if let Some(of) = of.filter(|of| of.openness() > anew.openness()) {
            *of = anew;
        }
    }

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
    let mut all: Vec<Whom> = Vec::new();
    for (whom, _) in hidden_by_kind(matrix) {
        if !all.contains(&whom) {
            all.push(whom);
        }
    }
    all
}

/// The same, hosts first, each with the kinds of figures by which it may be slow.
fn hidden_by_kind(matrix: &Matrix) -> Vec<(Whom, Kind)> {
    if !matrix.is_open() {
        return Vec::new();
    }
    let seen = standing(matrix);
    let slow_at_worst = |host: usize| {
        let is_of = |(a, b): Pair| a == host || b == host;
        let mut worst = standing(&matrix.at(End::Worst, is_of)).hosts;
        slow_kinds(&worst.remove(&host).unwrap_or_default())
    };
    let mut hosts: BTreeMap<usize, BTreeSet<Kind>> = BTreeMap::new();
    for host in (0..matrix.hosts.len()).filter(|host| !seen.hosts.contains_key(host)) {
        let kinds = slow_at_worst(host);
        if !kinds.is_empty() {
            hosts.insert(host, kinds);
        }
    }
    let best = matrix.at(End::Best, |_| true);
    let mut ways: BTreeSet<(Pair, Kind)> = BTreeSet::new();
    for kind in KINDS {
        let Some(scores) = scores(&best, Stage::Together, kind) else {
            continue;
        };
        for (pair, reading) in matrix.grid(Stage::Together, kind) {
            let worst = badness(kind, reading.at(kind, End::Worst), scores.usual);
            let is_known = seen.pairs.contains_key(&pair)
                || [pair.0, pair.1]
                    .iter()
                    .any(|host| hosts.contains_key(host) || seen.hosts.contains_key(host));
            if reading.is_open() && worst > scores.bound && !is_known {
                // Half a round trip is of both ways.
                let ordered = (pair.0.min(pair.1), pair.0.max(pair.1));
                let pair = if kind == Kind::Latency { ordered } else { pair };
                ways.insert((pair, kind));
            }
        }
    }
    let of_host = |(host, kinds): (usize, BTreeSet<Kind>)| {
        let kinds = kinds.into_iter();
        kinds.map(move |kind| (Whom::Host(host), kind))
    };
    let hosts = hosts.into_iter().flat_map(of_host);
    let ways = ways.into_iter();
    hosts
        .chain(ways.map(|(pair, kind)| (Whom::Direction(pair), kind)))
        .collect()
}

/// The kinds of figures by which a host is slow.
fn slow_kinds(signs: &BTreeSet<(Sign, Side)>) -> BTreeSet<Kind> {
    let slow = signs.iter().filter_map(|(sign, _)| match sign {
        Sign::Slow(kind) => Some(*kind),
        _ => None,
    });
    slow.collect()
}

/// What disturbances leave open of all pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOpen {
    /// Flows to be measured anew: the mode of their cells, from whom, to whom.
    pub flows: BTreeSet<(&'static str, String, String)>,
    /// Whose they are, in the words of the verdict.
    pub whose: Vec<String>,
}

/// The flows of a run of all pairs of which disturbances leave open whether somebody is slow by them; `None` where the run is of something else.
pub fn left_open(run: &Run) -> Option<LeftOpen> {
    let matrix = Matrix::of(run)?;
    let mut whose: Vec<String> = Vec::new();
    let mut flows = BTreeSet::new();
    for (whom, kind) in undecided(&matrix) {
        let is_of =
            |pair: Pair| whom.is_of(pair) || kind == Kind::Latency && whom.is_of((pair.1, pair.0));
        let open = matrix.grid(Stage::Together, kind).into_iter();
        let mut open = open
            .filter(|(pair, reading)| is_of(*pair) && reading.is_open())
            .peekable();
        let name = name_of(&whom, &matrix);
        if open.peek().is_some() && !whose.contains(&name) {
            whose.push(name);
        }
        let name = |host: usize| matrix.name(host).to_owned();
        flows.extend(open.map(|((src, dst), _)| (kind.name(), name(src), name(dst))));
    }
    Some(LeftOpen { flows, whose })
}

/// Who may be slow unseen, and who stands out by what may not be so; by the kinds of figures.
fn undecided(matrix: &Matrix) -> Vec<(Whom, Kind)> {
    let mut all = hidden_by_kind(matrix);
    let standing = standing(matrix);
    for (host, signs) in &standing.hosts {
        let kinds = slow_kinds(signs).into_iter();
        all.extend(kinds.map(|kind| (Whom::Host(*host), kind)));
    }
    for (pair, kinds) in &standing.pairs {
        all.extend(kinds.iter().map(|kind| (Whom::Direction(*pair), *kind)));
    }
    all
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
    fn what_is_left_open_is_named_flow_by_flow() {
        let healthy = Grid::healthy(8, 3).matrix();
        assert_eq!(undecided(&healthy), []);
        for kind in KINDS {
            // One flow that may have been worse than it was recorded.
            let mut matrix = healthy.clone();
            let first = (Stage::Together, kind, (1, 4));
            matrix.readings.get_mut(&first).unwrap().possible = Some((None, None));
            let way = (Whom::Direction((1, 4)), kind);
            assert_eq!(undecided(&matrix), [way], "{kind:?}");
            // A host that stands out, and is as good as the others where its samples were disturbed.
            let mut grid = Grid::healthy(8, 3);
            grid.worsen(kind, |pair| of(2)(pair).then_some(4.0));
            let matrix = open(grid, Some(4.0), of(2));
            assert_eq!(undecided(&matrix), [(Whom::Host(2), kind)], "{kind:?}");
        }
    }

    #[test]
    fn the_reading_that_is_least_open_counts() {
        let key = (Stage::Together, Kind::Stream, (1, 4));
        let with = |before: Reading, anew: Reading| {
            let mut matrix = Matrix::default();
            matrix.readings.insert(key, before);
            matrix.replace(Kind::Stream, (1, 4), anew);
            matrix.readings[&key].value as u64
        };
        let reading = |value: f64, possible| Reading {
            value,
            possible,
            ..Reading::default()
        };
        let ends = |low: f64, high: f64| Some((Some(low), Some(high)));
        let (open, half) = (
            reading(5e6, Some((None, Some(9e6)))),
            reading(6e6, ends(6e6, 9e6)),
        );
        let closed = reading(4e6, ends(4e6, 4e6));
        // The worse one too, and never for its value.
        assert_eq!(with(open.clone(), half.clone()), 6_000_000);
        assert_eq!(with(half.clone(), closed.clone()), 4_000_000);
        assert_eq!(with(closed.clone(), half.clone()), 4_000_000);
        assert_eq!(with(half, open), 6_000_000);
        assert_eq!(with(closed, reading(9e6, ends(9e6, 9e6))), 4_000_000);
        // A flow that gave nothing before gives nothing now.
        let mut matrix = Matrix::default();
        matrix.replace(Kind::Stream, (1, 4), reading(1.0, None));
        assert!(matrix.readings.is_empty());
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
