//! What stands out of the first measurement, and is worth measuring again.
//!
//! Model:   hosts first, the worst first: one whose pairs as receiver or as sender are bad in the median, over two pairs at
//!          least; its pairs are then left out, so that nobody is bad by its company. Then pairs that no such host explains. Of loss,
//!          overtaking a host's flows are added up, as receiver and as sender, of streams one way alone and of those beside
//!          one the other way; the worst host first, and its pairs are left out of what its peers are judged by.
//! Checked: `a_bad_host_is_suspected_and_nobody_else`, `two_bad_hosts_are_told_apart`, `nothing_is_suspected_of_noise`,
//!          `losses_are_a_hosts_by_several_flows`, `losses_are_told_apart`, `the_worst_pairs_come_first`.

use std::collections::{BTreeMap, BTreeSet};

use super::score::{Scores, scores};
use super::{KINDS, Kind, Matrix, Pair, Stage};
use crate::index::median;
use sonde_measure::Run;

/// The least share of segments lost, or that overtook others, that matters.
pub(super) const LOSS_MIN: f64 = 0.001;
pub(super) const OVERTAKEN_MIN: f64 = 0.0005;
/// The same while both directions are busy, where healthy lines overflow now and then.
pub(super) const LOSS_BOTH_MIN: f64 = 0.01;
/// And the fewest.
pub(super) const COUNT_MIN: u64 = 5;
/// So many times the usual host's.
pub(super) const TIMES: f64 = 3.0;
/// A host is bad only by so many pairs.
pub(super) const PAIRS_MIN: usize = 2;

/// Hosts and pairs to be measured again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suspects {
    /// By name.
    pub hosts: Vec<String>,
    /// Ordered pairs that no suspicious host explains, the worst first.
    pub pairs: Vec<(String, String)>,
    /// The other hosts, those first that are in the fewest of these pairs.
    pub good: Vec<String>,
}

/// Why a host stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    Slow(Kind),
    Loss,
    /// Beside a stream the other way.
    LossBoth,
    Overtaken,
}

impl Sign {
    /// What is counted of a stream, of which kind, and the least share that matters; none of what is a rate or a time.
    pub fn counted(self) -> Option<(Kind, Count, f64)> {
        match self {
            Self::Slow(_) => None,
            Self::Loss => Some((Kind::Stream, |reading| reading.lost, LOSS_MIN)),
            Self::LossBoth => Some((Kind::Duplex, |reading| reading.lost, LOSS_BOTH_MIN)),
            Self::Overtaken => Some((Kind::Stream, |reading| reading.overtaken, OVERTAKEN_MIN)),
        }
    }
}

/// As receiver (0) or sender (1).
pub(super) type Side = usize;

/// What stands out of one stage's readings.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    pub hosts: BTreeMap<usize, BTreeSet<(Sign, Side)>>,
    pub pairs: BTreeMap<Pair, BTreeSet<Kind>>,
}

/// What is to be measured again of a run of all pairs; `None` where it is of something else.
pub fn suspects(run: &Run) -> Option<Suspects> {
    let matrix = Matrix::of(run)?;
    let standing = standing(&matrix);
    let name = |host: &usize| matrix.name(*host).to_owned();
    let touching = |host: &usize| {
        let of = standing.pairs.keys();
        of.filter(|(a, b)| a == host || b == host).count()
    };
    let mut good: Vec<usize> = (0..matrix.hosts.len())
        .filter(|host| !standing.hosts.contains_key(host))
        .collect();
    good.sort_by_key(touching);
    Some(Suspects {
        hosts: standing.hosts.keys().map(name).collect(),
        pairs: worst_first(&matrix, &standing)
            .iter()
            .map(|(a, b)| (name(a), name(b)))
            .collect(),
        good: good.iter().map(name).collect(),
    })
}

/// The pairs that stand out, by how far they are beyond the bound.
fn worst_first(matrix: &Matrix, standing: &Standing) -> Vec<Pair> {
    let mut beyond: BTreeMap<Pair, f64> = BTreeMap::new();
    for kind in KINDS {
        let Some(scores) = scores(matrix, Stage::Together, kind) else {
            continue;
        };
        for (pair, kinds) in &standing.pairs {
            let score = scores.pairs.get(pair).filter(|_| kinds.contains(&kind));
            let most = beyond.entry(*pair).or_insert(0.0);
            *most = most.max(score.map_or(0.0, |score| score / scores.bound));
        }
    }
    let mut pairs: Vec<Pair> = beyond.keys().copied().collect();
    pairs.sort_by(|one, other| beyond[other].total_cmp(&beyond[one]));
    pairs
}

/// What stands out of the pairs that were measured together.
pub(super) fn standing(matrix: &Matrix) -> Standing {
    let mut standing = Standing::default();
    let hosts = matrix.hosts.len();
    for sign in [Sign::Loss, Sign::LossBoth, Sign::Overtaken] {
        for (host, side) in counted(matrix, sign) {
            standing.hosts.entry(host).or_default().insert((sign, side));
        }
    }
    for kind in KINDS {
        let Some(scores) = scores(matrix, Stage::Together, kind) else {
            continue;
        };
        let mut bad: Vec<usize> = Vec::new();
        while let Some((host, sides)) = worst_host(&scores, kind, hosts, &bad) {
            bad.push(host);
            let signs = standing.hosts.entry(host).or_default();
            signs.extend(sides.into_iter().map(|side| (Sign::Slow(kind), side)));
        }
    }
    let explained: BTreeSet<usize> = standing.hosts.keys().copied().collect();
    for kind in KINDS {
        let Some(scores) = scores(matrix, Stage::Together, kind) else {
            continue;
        };
        for (pair, score) in &scores.pairs {
            if *score > scores.bound && !explained.contains(&pair.0) && !explained.contains(&pair.1)
            {
                standing.pairs.entry(*pair).or_default().insert(kind);
            }
        }
    }
    standing
}

/// The host whose pairs are the worst, if it is bad, and on which sides.
fn worst_host(
    scores: &Scores,
    kind: Kind,
    hosts: usize,
    bad: &[usize],
) -> Option<(usize, Vec<Side>)> {
    let left = hosts - bad.len();
    // Of two, neither can be told from the way between them.
    if left < 3 {
        return None;
    }
    let mut worst: Option<(f64, usize, Vec<Side>)> = None;
    for host in (0..hosts).filter(|host| !bad.contains(host)) {
        let sides = scores.of_host(host, bad);
        let over: Vec<(Side, f64)> = sides
            .iter()
            .enumerate()
            .filter_map(|(side, (score, pairs))| {
                let score = (*score)?;
                let bound = scores.host_bound(kind, left, *pairs);
                (*pairs >= PAIRS_MIN && score > bound).then_some((side, score))
            })
            .collect();
        // Both medians together: a host that is bad on both sides explains more than its peers do.
        let sum: f64 = sides.iter().filter_map(|(score, _)| *score).sum();
        if !over.is_empty() && worst.as_ref().is_none_or(|(most, ..)| sum > *most) {
            worst = Some((sum, host, over.into_iter().map(|(side, _)| side).collect()));
        }
    }
    let (_, host, sides) = worst?;
    // With three hosts left a bad pair is bad for both its hosts: the third's must be good.
    let others_good = (0..hosts)
        .filter(|other| *other != host && !bad.contains(other))
        .any(|other| {
            let mut without = bad.to_vec();
            without.push(host);
            let medians = scores.of_host(other, &without);
            medians
                .iter()
                .all(|(score, _)| score.is_none_or(|score| score <= scores.bound))
        });
    others_good.then_some((host, sides))
}

/// What is counted of a stream.
pub(super) type Count = fn(&super::Reading) -> u64;

/// A count over the segments that it is of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Share {
    pub count: u64,
    pub segments: u64,
    /// How many pairs have any.
    pub flows: usize,
}

impl Share {
    /// Takes what a pair has.
    pub fn add(&mut self, count: u64, segments: u64) {
        self.count += count;
        self.segments += segments;
        self.flows += usize::from(count > 0);
    }

    pub fn part(&self) -> f64 {
        self.count as f64 / self.segments.max(1) as f64
    }
}

/// What is counted of the streams of each host and side, added up, without the pairs of some hosts.
pub(super) fn shares(
    matrix: &Matrix,
    stages: &[Stage],
    (kind, of): (Kind, Count),
    without: &[usize],
) -> BTreeMap<(usize, Side), Share> {
    let mut sums: BTreeMap<(usize, Side), Share> = BTreeMap::new();
    for ((stage, one, (src, dst)), reading) in &matrix.readings {
        let left_out = without.contains(src) || without.contains(dst);
        if !stages.contains(stage) || *one != kind || left_out {
            continue;
        }
        for key in [(*dst, 0), (*src, 1)] {
            let sum = sums.entry(key).or_default();
            sum.add(of(reading), reading.segments);
        }
    }
    sums
}

/// The share of the host in the middle, by its pairs with others than this one and those that are bad.
fn usual(matrix: &Matrix, counted: (Kind, Count), bad: &[usize], host: usize, side: Side) -> f64 {
    let without: Vec<usize> = bad.iter().copied().chain([host]).collect();
    let shares = shares(matrix, &[Stage::Together], counted, &without);
    let of = shares.iter().filter(|((_, one), _)| *one == side);
    median(of.map(|(_, share)| share.part()).collect()).unwrap_or(0.0)
}

/// The hosts that have more of it than others, and on which side, the worst first.
fn counted(matrix: &Matrix, sign: Sign) -> Vec<(usize, Side)> {
    let Some((kind, of, least)) = sign.counted() else {
        return Vec::new();
    };
    let mut found: Vec<(usize, Side)> = Vec::new();
    let mut bad: Vec<usize> = Vec::new();
    loop {
        let shares = shares(matrix, &[Stage::Together], (kind, of), &bad);
        // It is on several of its flows, or it is a pair's.
        let stands = shares.iter().filter(|((host, side), share)| {
            share.part() >= least
                && share.count >= COUNT_MIN
                && share.flows >= PAIRS_MIN
                && share.part() >= TIMES * usual(matrix, (kind, of), &bad, *host, *side)
        });
        let stands: Vec<_> = stands.collect();
        let worst = stands.iter().max_by_key(|(_, share)| share.count);
        let Some(((host, _), _)) = worst else {
            return found;
        };
        let sides = stands.iter().filter(|((one, _), _)| one == host);
        found.extend(sides.map(|(key, _)| **key));
        bad.push(*host);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Grid;
    use super::*;

    fn bad(matrix: &Matrix) -> (Vec<usize>, Vec<Pair>) {
        let standing = standing(matrix);
        (
            standing.hosts.keys().copied().collect(),
            standing.pairs.keys().copied().collect(),
        )
    }

    #[test]
    fn a_bad_host_is_suspected_and_nobody_else() {
        for hosts in [4, 5, 6, 7, 8, 12, 16, 33, 64] {
            for kind in KINDS {
                let mut grid = Grid::healthy(hosts, hosts as u64);
                grid.worsen(kind, |(a, b)| (a == 2 || b == 2).then_some(3.0));
                assert_eq!(bad(&grid.matrix()), (vec![2], vec![]), "{hosts} {kind:?}");
                let mut grid = Grid::healthy(hosts, hosts as u64);
                grid.worsen(kind, |(_, b)| (b == 2).then_some(3.0));
                assert_eq!(
                    bad(&grid.matrix()),
                    (vec![2], vec![]),
                    "{hosts} {kind:?} to"
                );
            }
        }
    }

    #[test]
    fn two_bad_hosts_are_told_apart() {
        for hosts in [6, 7, 8, 9, 16, 40] {
            for kind in KINDS {
                let mut grid = Grid::healthy(hosts, 7);
                grid.worsen(kind, |(a, b)| {
                    let hit = [a, b].iter().filter(|one| [1, 4].contains(*one)).count();
                    (hit > 0).then_some(2.5_f64.powi(hit as i32))
                });
                assert_eq!(
                    bad(&grid.matrix()),
                    (vec![1, 4], vec![]),
                    "{hosts} {kind:?}"
                );
            }
        }
    }

    #[test]
    fn bad_ways_are_pairs() {
        for hosts in [4, 5, 6, 9, 16, 40] {
            for kind in KINDS {
                let mut grid = Grid::healthy(hosts, 3);
                grid.worsen(kind, |pair| (pair == (0, 3)).then_some(3.0));
                assert_eq!(
                    bad(&grid.matrix()),
                    (vec![], vec![(0, 3)]),
                    "{hosts} {kind:?}"
                );
                let mut grid = Grid::healthy(hosts, 3);
                grid.worsen(kind, |(a, b)| {
                    (a.min(b) == 0 && a.max(b) == 3).then_some(3.0)
                });
                assert_eq!(bad(&grid.matrix()).1, [(0, 3), (3, 0)], "{hosts}");
            }
        }
    }

    #[test]
    fn nothing_is_suspected_of_noise() {
        for seed in 0..60 {
            for hosts in [2, 3, 4, 8, 16, 33] {
                let grid = Grid::healthy(hosts, seed);
                assert_eq!(bad(&grid.matrix()), (vec![], vec![]), "{hosts} {seed}");
            }
        }
    }

    #[test]
    fn losses_are_told_apart() {
        for hosts in [5, 6, 8, 16] {
            let mut grid = Grid::healthy(hosts, 1);
            grid.count(|(a, b), reading| {
                let hit = [a, b].iter().filter(|one| [1, 4].contains(*one)).count();
                reading.lost = 30 * hit as u64;
            });
            assert_eq!(bad(&grid.matrix()).0, [1, 4], "{hosts}");
        }
    }

    #[test]
    fn the_worst_pairs_come_first() {
        let mut grid = Grid::healthy(16, 3);
        for (pair, factor) in [((0, 3), 2.0), ((7, 5), 9.0), ((2, 9), 4.0)] {
            grid.worsen(Kind::Stream, |one| (one == pair).then_some(factor));
        }
        let matrix = grid.matrix();
        let standing = standing(&matrix);
        assert_eq!(worst_first(&matrix, &standing), [(7, 5), (2, 9), (0, 3)]);
    }

    #[test]
    fn losses_are_a_hosts_by_several_flows() {
        let mut grid = Grid::healthy(8, 1);
        grid.count(|(_, b), reading| {
            if b == 5 {
                reading.lost = 6;
            }
        });
        assert_eq!(bad(&grid.matrix()).0, [5]);
        let mut grid = Grid::healthy(8, 1);
        grid.count(|(a, b), reading| {
            reading.lost = if a == 5 || b == 5 { 40 } else { 0 };
        });
        assert_eq!(bad(&grid.matrix()).0, [5], "its peers are good");
        let mut grid = Grid::healthy(8, 1);
        grid.count(|pair, reading| {
            reading.lost = u64::from(pair == (1, 5)) * 20;
        });
        assert_eq!(bad(&grid.matrix()).0, Vec::<usize>::new());
        // Where all lose alike nobody stands out.
        let mut grid = Grid::healthy(8, 1);
        grid.count(|_, reading| reading.lost = 6);
        assert_eq!(bad(&grid.matrix()).0, Vec::<usize>::new());
    }
}
