//! Ways between two hosts that are both good with others: a direction, or both.
//!
//! Model:   a stream of one way alone tells a direction, for the other way carries but acknowledgements: slow one way, it is
//!          that direction; slow each way, the link. Streams of both ways at once cannot tell them, since each one's acknowledgements wait
//!          behind the other's data, nor can half a round trip: bad only in these, it is the link.
//! Checked: `links_and_directions`, `a_slow_direction_slows_both_at_once`,
//!          `a_bad_way_is_found_among_noise`, `what_was_measured_again_tells_the_direction`.

use std::collections::{BTreeMap, BTreeSet};

use super::blame::Blame;
use super::evidence::evidence;
use super::remeasured::{Remeasured, held};
use super::score::{badness, scores};
use super::suspect::{Sign, Standing};
use super::{Kind, Matrix, Pair, Stage, Whom};
use crate::words::matrix::{Bad, Verdict};

/// Where a larger part of the pairs stands out, and more than so many, most of them are noise.
const UNSTEADY_PART: usize = 10;
const UNSTEADY_MIN: usize = 4;

/// What is bad between two hosts, by direction.
type Blames = BTreeMap<Pair, BTreeSet<Kind>>;

/// What single ways are to blame for; ways that were good alone are put to `fabric`.
pub(super) fn blames(
    matrix: &Matrix,
    standing: &Standing,
    blamed: &[usize],
    fabric: &mut Vec<Whom>,
) -> Vec<Blame> {
    let mut ways: BTreeMap<Pair, Blames> = BTreeMap::new();
    for ((a, b), kinds) in &standing.pairs {
        if blamed.contains(a) || blamed.contains(b) {
            continue;
        }
        for kind in kinds {
            match held(matrix, Sign::Slow(*kind), standing, |one| one == (*a, *b)) {
                Remeasured::Bad | Remeasured::Unknown => {
                    let way = ways.entry((*a.min(b), *a.max(b))).or_default();
                    way.entry((*a, *b)).or_default().insert(*kind);
                }
                Remeasured::Fabric if *kind == Kind::Stream => {
                    fabric.push(Whom::Direction((*a, *b)))
                }
                // Both streams of a pair share its hosts, and no small message fills a trunk.
                Remeasured::Fabric | Remeasured::Gone => {}
            }
        }
    }
    // A bad way's streams of one way alone were measured again: they tell the direction, whatever stood out first.
    for ((a, b), kept) in &mut ways {
        for pair in [(*a, *b), (*b, *a)] {
            let one_way = held(matrix, Sign::Slow(Kind::Stream), standing, |one| {
                one == pair
            });
            if one_way == Remeasured::Bad {
                kept.entry(pair).or_default().insert(Kind::Stream);
            }
        }
    }
    let mut all: Vec<Blame> = ways.values().map(|way| blame(matrix, way)).collect();
    let measured = matrix.grid(Stage::Together, Kind::Stream).len();
    let some = standing.pairs.len();
    if all.is_empty() && some > UNSTEADY_MIN.max(measured / UNSTEADY_PART) {
        fabric.retain(|whom| !matches!(whom, Whom::Direction(_)));
        all.push(unsteady(matrix, standing, measured));
    }
    all
}

fn unsteady(matrix: &Matrix, standing: &Standing, measured: usize) -> Blame {
    let bad = Bad::Unsteady {
        standing: standing.pairs.len(),
        measured,
    };
    let behind = evidence(matrix, &Whom::Fabric, |pair| {
        standing.pairs.contains_key(&pair)
    });
    Blame {
        rule: "unsteady",
        whom: Whom::Fabric,
        found: Verdict { bad, behind },
    }
}

fn blame(matrix: &Matrix, kept: &Blames) -> Blame {
    let one_way: Vec<Pair> = kept
        .iter()
        .filter(|(_, kinds)| kinds.contains(&Kind::Stream))
        .map(|(pair, _)| *pair)
        .collect();
    let times = |pair: &Pair, kind: Kind| {
        let of = |stage: Stage| {
            let value = matrix.readings.get(&(stage, kind, *pair))?.value;
            let usual = scores(matrix, Stage::Together, kind)?.usual;
            Some(badness(kind, value, usual).exp())
        };
        of(Stage::Together)
            .or_else(|| of(Stage::Again))
            .unwrap_or(1.0)
    };
    let name = |host: usize| matrix.name(host).to_owned();
    let (first, kinds) = kept.first_key_value().expect("a way is kept for a reason"); // text: a broken invariant
    let (whom, rule, bad) = match one_way[..] {
        [pair] => {
            let back = (pair.1, pair.0);
            let measured = matrix
                .readings
                .contains_key(&(Stage::Together, Kind::Stream, back));
            let bad = Bad::Direction {
                src: name(pair.0),
                dst: name(pair.1),
                kind: Kind::Stream,
                times: times(&pair, Kind::Stream),
                back: measured.then(|| times(&back, Kind::Stream)),
            };
            (Whom::Direction(pair), "direction-slow", bad)
        }
        _ => {
            let both = one_way.len() == 2;
            let kind = if both {
                Some(&Kind::Stream)
            } else {
                kinds.last()
            };
            let kind = kind.copied().unwrap_or(Kind::Latency);
            let bad = Bad::Link {
                hosts: [name(first.0), name(first.1)],
                kind,
                times: times(first, kind),
            };
            (Whom::Link(*first), "link-slow", bad)
        }
    };
    let behind = evidence(matrix, &whom, |_| false);
    let found = Verdict { bad, behind };
    Blame { whom, rule, found }
}

#[cfg(test)]
mod tests {
    use super::super::blame::blames;
    use super::super::testing::Grid;
    use super::*;
    use crate::words::Words;

    fn rules(grid: Grid) -> Vec<(&'static str, Whom)> {
        let all = blames(&grid.matrix());
        all.into_iter()
            .map(|blame| (blame.rule, blame.whom))
            .collect()
    }

    #[test]
    fn links_and_directions() {
        for hosts in [4, 8, 16, 64] {
            let mut grid = Grid::healthy(hosts, 5);
            grid.worsen(Kind::Stream, |pair| (pair == (0, 1)).then_some(3.0));
            assert_eq!(
                rules(grid),
                [("direction-slow", Whom::Direction((0, 1)))],
                "{hosts}"
            );
            let mut grid = Grid::healthy(hosts, 5);
            grid.worsen(Kind::Stream, |(a, b)| (a.max(b) == 1).then_some(3.0));
            assert_eq!(rules(grid), [("link-slow", Whom::Link((0, 1)))], "{hosts}");
            let mut grid = Grid::healthy(hosts, 5);
            grid.worsen(Kind::Latency, |pair| (pair == (0, 1)).then_some(3.0));
            assert_eq!(rules(grid), [("link-slow", Whom::Link((0, 1)))], "{hosts}");
        }
    }

    /// The acknowledgements of the stream that goes the good way wait behind the data of the bad one.
    #[test]
    fn a_slow_direction_slows_both_at_once() {
        for (hosts, way) in [(4, (0, 1)), (16, (1, 2)), (16, (2, 1)), (64, (9, 3))] {
            let mut grid = Grid::healthy(hosts, 5);
            grid.worsen(Kind::Stream, |pair| (pair == way).then_some(4.0));
            let both = |(a, b): Pair| (a, b) == way || (b, a) == way;
            grid.worsen(Kind::Duplex, |pair| both(pair).then_some(3.5));
            grid.worsen(Kind::Latency, |pair| both(pair).then_some(2.5));
            assert_eq!(rules(grid), [("direction-slow", Whom::Direction(way))]);
            // Good each alone, and slow together: the way as a whole.
            let mut grid = Grid::healthy(hosts, 5);
            grid.worsen(Kind::Duplex, |pair| both(pair).then_some(3.5));
            let low = (way.0.min(way.1), way.0.max(way.1));
            assert_eq!(rules(grid), [("link-slow", Whom::Link(low))]);
        }
    }

    /// Where the first stream of the bad direction gave nothing, since the one before it had filled the way.
    #[test]
    fn what_was_measured_again_tells_the_direction() {
        let mut grid = Grid::healthy(16, 5);
        grid.worsen(Kind::Stream, |pair| (pair == (1, 2)).then_some(4.0));
        let both = |(a, b): Pair| (a.min(b), a.max(b)) == (1, 2);
        grid.worsen(Kind::Duplex, |pair| both(pair).then_some(3.5));
        let mut matrix = grid.matrix();
        let first = (Stage::Together, Kind::Stream, (1, 2));
        matrix.readings.remove(&first);
        let found = blames(&matrix);
        assert_eq!((found.len(), &found[0].whom), (1, &Whom::Direction((1, 2))));
        assert!(
            found[0]
                .found
                .sentence()
                .contains("and the reverse direction is good")
        );
    }

    /// Of many pairs that stand out once, only what does so again is named.
    #[test]
    fn a_bad_way_is_found_among_noise() {
        let mut grid = Grid::healthy(16, 5);
        for number in 0..15 {
            let (a, b) = (number, (number * 7 + 3) % 16);
            let once = [Stage::Together];
            grid.worsen_in(&once, Kind::Duplex, |pair| {
                (pair == (a, b) || pair == (b, a)).then_some(6.0)
            });
        }
        grid.worsen(Kind::Stream, |pair| (pair == (3, 12)).then_some(4.0));
        assert_eq!(rules(grid), [("direction-slow", Whom::Direction((3, 12)))]);
    }
}
