//! What stands out of the first measurement, and is worth measuring again.
//!
//! Model:   hosts first, the worst first: one whose pairs as receiver or as sender are bad in the median, over two pairs at
//!          least; its pairs are then left out, so that nobody is bad by its company. Then pairs that no such host explains. Of loss,
//!          overtaking and streams that stood still a host's flows are added up, as receiver and as sender.
//! Checked: `a_bad_host_is_suspected_and_nobody_else`, `two_bad_hosts_are_told_apart`, `nothing_is_suspected_of_noise`.

use std::collections::{BTreeMap, BTreeSet};

use super::score::{Scores, scores};
use super::{KINDS, Kind, Matrix, Pair, Stage};
use crate::index::median;
use sonde_record::Run;

/// The least share of segments lost, or that overtook others, that matters.
pub(super) const LOSS_MIN: f64 = 0.001;
pub(super) const OVERTAKEN_MIN: f64 = 0.0005;
/// And the fewest.
pub(super) const COUNT_MIN: u64 = 5;
/// So many times the usual host's.
const TIMES: f64 = 5.0;
/// A host is bad only by so many pairs.
pub(super) const PAIRS_MIN: usize = 2;

/// Hosts and pairs to be measured again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suspects {
    /// By name.
    pub hosts: Vec<String>,
    /// Ordered pairs that no suspicious host explains.
    pub pairs: Vec<(String, String)>,
    /// Hosts of which nothing stands out.
    pub good: Vec<String>,
}

/// Why a host stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    Slow(Kind),
    Loss,
    Overtaken,
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
    let touched: BTreeSet<usize> = standing
        .pairs
        .keys()
        .flat_map(|(a, b)| [*a, *b])
        .chain(standing.hosts.keys().copied())
        .collect();
    Some(Suspects {
        hosts: standing.hosts.keys().map(name).collect(),
        pairs: standing
            .pairs
            .keys()
            .map(|(a, b)| (name(a), name(b)))
            .collect(),
        good: (0..matrix.hosts.len())
            .filter(|host| !touched.contains(host))
            .map(|host| name(&host))
            .collect(),
    })
}

/// What stands out of the pairs that were measured together.
pub(super) fn standing(matrix: &Matrix) -> Standing {
    let mut standing = Standing::default();
    let hosts = matrix.hosts.len();
    let counted = counted(matrix, Stage::Together);
    for (host, sign, side) in counted {
        standing.hosts.entry(host).or_default().insert((sign, side));
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

/// Losses and overtaking of a host's streams, added up: share and count by host and side.
pub(super) fn shares(
    matrix: &Matrix,
    stages: &[Stage],
    of: Count,
) -> BTreeMap<(usize, Side), (f64, u64)> {
    let mut sums: BTreeMap<(usize, Side), (u64, u64)> = BTreeMap::new();
    for ((stage, kind, (src, dst)), reading) in &matrix.readings {
        // Beside a stream the other way a slow line loses too: of one way only.
        if !stages.contains(stage) || *kind != Kind::Stream {
            continue;
        }
        for key in [(*dst, 0), (*src, 1)] {
            let sum = sums.entry(key).or_default();
            sum.0 += of(reading);
            sum.1 += reading.segments;
        }
    }
    sums.into_iter()
        .map(|(key, (count, segments))| (key, (count as f64 / segments.max(1) as f64, count)))
        .collect()
}

/// What is counted of a stream.
type Count = fn(&super::Reading) -> u64;

fn counted(matrix: &Matrix, stage: Stage) -> Vec<(usize, Sign, Side)> {
    let mut found = Vec::new();
    let kinds: [(Sign, Count, f64); 2] = [
        (Sign::Loss, |reading| reading.lost, LOSS_MIN),
        (Sign::Overtaken, |reading| reading.overtaken, OVERTAKEN_MIN),
    ];
    for (sign, of, least) in kinds {
        let shares = shares(matrix, &[stage], of);
        for side in [0, 1] {
            let all: Vec<f64> = shares
                .iter()
                .filter(|((_, one), _)| *one == side)
                .map(|(_, (share, _))| *share)
                .collect();
            let usual = median(all).unwrap_or(0.0);
            for ((host, one), (share, count)) in &shares {
                let stands = *share >= least.max(TIMES * usual) && *count >= COUNT_MIN;
                // It is on several of its flows, or it is a pair's.
                let flows = flows_with(matrix, stage, *host, side, of);
                if *one == side && stands && flows >= PAIRS_MIN {
                    found.push((*host, sign, side));
                }
            }
        }
    }
    found
}

/// How many of a host's streams have any.
fn flows_with(matrix: &Matrix, stage: Stage, host: usize, side: Side, of: Count) -> usize {
    let grid = matrix.grid(stage, Kind::Stream);
    grid.iter()
        .filter(|((src, dst), reading)| {
            let own = if side == 0 { *dst } else { *src };
            own == host && of(reading) > 0
        })
        .count()
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
    fn losses_are_a_hosts_by_several_flows() {
        let mut grid = Grid::healthy(8, 1);
        grid.count(|(_, b), reading| {
            if b == 5 {
                reading.lost = 6;
            }
        });
        assert_eq!(bad(&grid.matrix()).0, [5]);
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
