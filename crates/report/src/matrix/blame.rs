//! The verdict: what is bad, with its evidence.
//!
//! Model:   of what stands out, that is kept which does so again together and alone. Bad together twice and good alone: the
//!          fabric, unless the host is bad anyway. A host's reason is the first that holds: its segments are overtaken; streams to it stand still each time
//!          while small messages pass; its receive window holds the senders in half of the time; segments are lost while both directions are busy, three times those of one way
//!          at least (intervals at 95 % apart); segments are lost, and its rate is at least half of the usual; it is slow,
//!          unless other programs are busy on it, which explains that. Directions to one host, or from it, that are most of those
//!          measured and bad each for itself are the host's too.
//! Source:  Shalunov and Carlson, PAM 2005, for the signs of a duplex mismatch. Deviations: none.
//! Checked: `each_reason_is_named`, `two_thousand_healthy_runs_blame_next_to_nobody`, `what_moves_again_does_not_stand_still`, `a_window_is_to_blame_from_half_of_the_time_on`, `a_fabric_is_bad_only_together`, `a_bad_host_is_no_fabric`, `what_does_not_come_again_is_nothing`, `what_was_not_alone_is_not_blamed`,
//!          `two_bad_hosts_are_both_named`, `a_busy_host_is_named`, `most_directions_of_a_host_are_the_host`, `who_is_reached_by_streams_is_reached`.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::{SUSPECTED, counted, evidence};
use super::remeasured::{Remeasured, held};
use super::score::scores;
use super::suspect::{PAIRS_MIN, Share, Side, Sign, shares, standing};
use super::{Kind, Matrix, Pair, Stage, Whom, way};
use crate::finding::{Finding, Severity};
use crate::index::median;
use crate::limit::HELD;
use crate::words::matrix as words;
use crate::words::matrix::{Bad, Sides, Verdict};
use sonde_stats::share_interval;

/// A program that takes as much of a CPU disturbs.
const BUSY_MIN: f64 = 0.2;
/// So many times what they take on the usual host.
const BUSY_TIMES: f64 = 5.0;
/// Losses while both directions are busy are of the duplex where they are so many times those of one way alone.
const BOTH_TIMES: f64 = 3.0;

/// A verdict on one of them.
#[derive(Debug, Clone)]
pub(super) struct Blame {
    pub whom: Whom,
    pub rule: &'static str,
    pub found: Verdict,
}

/// All findings of a matrix.
pub(super) fn verdict(matrix: &Matrix) -> Vec<Finding> {
    let all = blames(matrix);
    all.iter().map(|one| finding(one, matrix)).collect()
}

/// One of them as a finding.
pub(super) fn finding(blame: &Blame, matrix: &Matrix) -> Finding {
    Finding::said(blame.rule, Severity::Warning, &blame.found).on_network(&matrix.network)
}

/// All verdicts.
pub(super) fn blames(matrix: &Matrix) -> Vec<Blame> {
    let standing = standing(matrix);
    let mut all = unreached(matrix);
    let mut fabric: Vec<Whom> = Vec::new();
    let busy = busy(matrix);
    let is_busy = |host: usize| busy.iter().any(|one| one.whom == Whom::Host(host));
    let mut blamed: Vec<usize> = Vec::new();
    for (host, signs) in &standing.hosts {
        let mut kept = Vec::new();
        let mut shared = false;
        for (sign, side) in signs {
            match held(matrix, *sign, &standing, |pair| on_side(pair, *host, *side)) {
                Remeasured::Bad | Remeasured::Unknown => kept.push((*sign, *side)),
                // Small messages fill no trunk, and streams both ways fill their hosts first.
                Remeasured::Fabric => shared |= matches!(*sign, STREAM | Sign::Loss),
                Remeasured::Gone => {}
            }
        }
        let is_busy = is_busy(*host);
        let own = host_blame(matrix, *host, &kept);
        // A bad host is no sign of a bad fabric, and who is busy is slow for it.
        if shared && own.is_none() && !is_busy {
            fabric.push(Whom::Host(*host));
        }
        blamed.extend(own.is_some().then_some(*host));
        all.extend(own.filter(|own| !(is_busy && own.rule == "host-slow")));
    }
    let mut ways = way::blames(matrix, &standing, &blamed, &mut fabric);
    let of_hosts = of_one_host(matrix, &mut ways).into_iter();
    all.extend(
        of_hosts
            .filter_map(|(host, own)| (!is_busy(host) || own.rule != "host-slow").then_some(own)),
    );
    all.extend(ways);
    all.extend(busy);
    all.extend(fabric_blame(matrix, &fabric));
    all
}

/// What was bad twice with others beside it, and good alone.
fn fabric_blame(matrix: &Matrix, suspected: &[Whom]) -> Option<Blame> {
    let name = |host: usize| matrix.name(host).to_owned();
    let suspects = suspected.iter().filter_map(|whom| match *whom {
        Whom::Host(host) => Some(words::Suspect::Host(name(host))),
        Whom::Link((a, b)) | Whom::Direction((a, b)) => {
            Some(words::Suspect::OddPair(name(a), name(b)))
        }
        Whom::Fabric => None,
    });
    let suspects: Vec<_> = suspects.collect();
    (!suspects.is_empty()).then(|| Blame {
        whom: Whom::Fabric,
        rule: "fabric",
        found: Verdict {
            bad: Bad::Fabric {
                network: matrix.network.clone(),
                suspects,
            },
            behind: evidence(matrix, &Whom::Fabric, |pair| {
                suspected.iter().any(|whom| whom.is_of(pair))
            }),
        },
    })
}

/// Takes out of `ways` the bad directions to one host, or from it, that are most of those measured: they are the host's.
fn of_one_host(matrix: &Matrix, ways: &mut Vec<Blame>) -> Vec<(usize, Blame)> {
    let measured = matrix.grid(Stage::Together, Kind::Stream);
    let mut hosts = Vec::new();
    for (host, side) in (0..matrix.hosts.len()).flat_map(|host| [(host, 0), (host, 1)]) {
        let is_its =
            |whom: &Whom| matches!(whom, Whom::Direction(pair) if on_side(*pair, host, side));
        let bad = ways.iter().filter(|way| is_its(&way.whom)).count();
        let all = measured
            .keys()
            .filter(|pair| on_side(**pair, host, side))
            .count();
        if bad >= PAIRS_MIN && 2 * bad > all {
            ways.retain(|way| !is_its(&way.whom));
            let own = host_blame(matrix, host, &[(STREAM, side)]);
            hosts.extend(own.map(|own| (host, own)));
        }
    }
    hosts
}

fn on_side(pair: Pair, host: usize, side: Side) -> bool {
    (if side == 0 { pair.1 } else { pair.0 }) == host
}

/// What was found of a host and held, with what its reason is told by.
struct Suspect<'a> {
    matrix: &'a Matrix,
    host: usize,
    kept: &'a [(Sign, Side)],
}

/// Rule, and what is wrong.
type Reason = (&'static str, Bad);

fn host_blame(matrix: &Matrix, host: usize, kept: &[(Sign, Side)]) -> Option<Blame> {
    let suspect = Suspect { matrix, host, kept };
    let (rule, bad) = suspect
        .by_counts()
        .or_else(|| suspect.by_standing_still())
        .or_else(|| suspect.by_loss())
        .or_else(|| suspect.by_slowness())?;
    let whom = Whom::Host(host);
    let behind = evidence(matrix, &whom, |_| false);
    let found = Verdict { bad, behind };
    Some(Blame { whom, rule, found })
}

const STREAM: Sign = Sign::Slow(Kind::Stream);
const DUPLEX: Sign = Sign::Slow(Kind::Duplex);
const LATENCY: Sign = Sign::Slow(Kind::Latency);

impl Suspect<'_> {
    fn has(&self, sign: Sign) -> bool {
        self.kept.iter().any(|(one, _)| *one == sign)
    }

    fn name(&self) -> String {
        self.matrix.name(self.host).to_owned()
    }

    fn times(&self, kind: Kind) -> f64 {
        slowness(self.matrix, kind, self.host)
    }

    fn counted(&self, sign: Sign) -> Option<words::Counted> {
        counted(self.matrix, self.host, sign)
    }

    fn sides(&self, sign: Sign) -> Sides {
        let of = |side| self.kept.contains(&(sign, side));
        match (of(0), of(1)) {
            (true, false) => Sides::To,
            (false, true) => Sides::From,
            _ => Sides::Both,
        }
    }

    fn by_counts(&self) -> Option<Reason> {
        let bad = || Bad::Reorders {
            host: self.name(),
            sides: self.sides(Sign::Overtaken),
            counted: self.counted(Sign::Overtaken),
        };
        self.has(Sign::Overtaken).then(|| ("host-reorders", bad()))
    }

    fn by_standing_still(&self) -> Option<Reason> {
        let host = self.name();
        let stands_still = |side| {
            self.kept.contains(&(STREAM, side)) && stands_still(self.matrix, self.host, side)
        };
        if [0, 1].into_iter().any(stands_still) && !self.has(LATENCY) {
            let sides = self.sides(STREAM);
            return Some(("host-black-hole", Bad::BlackHole { host, sides }));
        }
        let held = held_by_window(self.matrix, self.host);
        let times = self.times(Kind::Stream);
        let slow = self.has(STREAM) || self.has(DUPLEX);
        (slow && held >= HELD).then_some(("host-window", Bad::Window { host, held, times }))
    }

    /// Whether the losses while both directions are busy are so many more that they cannot be those of one way alone.
    fn loses_both_ways(&self) -> bool {
        let interval = |sign: Sign| {
            let (kind, of, _) = sign.counted()?;
            let all = shares(self.matrix, &SUSPECTED, (kind, of), &[]);
            let sides = [0, 1].map(|side| all.get(&(self.host, side)).copied());
            let sum = |of: fn(&Share) -> u64| sides.iter().flatten().map(of).sum();
            share_interval(sum(|share| share.count), sum(|share| share.segments))
        };
        let bounds = (interval(Sign::LossBoth), interval(Sign::Loss));
        self.has(Sign::LossBoth)
            && matches!(bounds, (Some((low, _)), Some((_, high))) if low > BOTH_TIMES * high)
    }

    fn by_loss(&self) -> Option<Reason> {
        let host = self.name();
        if self.loses_both_ways() {
            let bad = Bad::Duplex {
                host,
                sides: self.sides(Sign::LossBoth),
                both: self.counted(Sign::LossBoth),
                alone: self.counted(Sign::Loss),
                times_both: self.times(Kind::Duplex),
                times_alone: self.times(Kind::Stream),
            };
            return Some(("host-duplex", bad));
        }
        // What is slow loses by its full queue.
        let loses = self.has(Sign::Loss) && !(self.has(STREAM) && self.times(Kind::Stream) >= 2.0);
        let bad = Bad::Loss {
            host,
            sides: self.sides(Sign::Loss),
            counted: self.counted(Sign::Loss),
        };
        loses.then_some(("host-loss", bad))
    }

    fn by_slowness(&self) -> Option<Reason> {
        let host = self.name();
        let bad = if self.has(STREAM) {
            Bad::SlowStreams {
                host,
                sides: self.sides(STREAM),
                times: self.times(Kind::Stream),
            }
        } else if self.has(DUPLEX) {
            Bad::SlowBothWays {
                host,
                times_both: self.times(Kind::Duplex),
                times_alone: self.times(Kind::Stream),
            }
        } else if self.has(LATENCY) {
            let times = self.times(Kind::Latency);
            Bad::SlowMessages { host, times }
        } else {
            return None;
        };
        Some(("host-slow", bad))
    }
}

/// How many times slower a host's pairs are on its worse side.
fn slowness(matrix: &Matrix, kind: Kind, host: usize) -> f64 {
    let Some(scores) = scores(matrix, Stage::Together, kind) else {
        return 1.0;
    };
    let sides = scores.of_host(host, &[]);
    let worst = sides.iter().filter_map(|(score, _)| *score);
    worst.fold(0.0, f64::max).exp()
}

/// The share of time that a host's receive window holds the streams to it, in the median.
fn held_by_window(matrix: &Matrix, host: usize) -> f64 {
    let grid = matrix.grid(Stage::Together, Kind::Stream);
    let own = grid.iter().filter(|((_, dst), _)| *dst == host);
    median(own.map(|(_, reading)| reading.rwnd_share).collect()).unwrap_or(0.0)
}

/// Whether most streams on this side of a host carry next to nothing, each time that they were measured.
fn stands_still(matrix: &Matrix, host: usize, side: Side) -> bool {
    let Some(scores) = scores(matrix, Stage::Together, Kind::Stream) else {
        return false;
    };
    let most = |stage: Stage| {
        let grid = matrix.grid(stage, Kind::Stream);
        let own = grid
            .into_iter()
            .filter(|(pair, _)| on_side(*pair, host, side));
        let (still, moving): (Vec<_>, Vec<_>) =
            own.partition(|(_, reading)| reading.value < scores.usual / 100.0);
        let flows = still.len() + moving.len();
        (flows > 0).then_some((flows, still.len() > moving.len()))
    };
    most(Stage::Together).is_some_and(|(flows, still)| flows >= PAIRS_MIN && still)
        && [Stage::Again, Stage::Alone]
            .into_iter()
            .filter_map(most)
            .all(|(_, still)| still)
}

/// Hosts that several others do not reach.
fn unreached(matrix: &Matrix) -> Vec<Blame> {
    let hosts = 0..matrix.hosts.len();
    // What passes for one kind reaches.
    fn pairs<T>(of: &BTreeMap<(Stage, Kind, Pair), T>, host: usize) -> BTreeSet<Pair> {
        let together = of.keys().filter(|(stage, ..)| *stage == Stage::Together);
        let pairs = together.map(|(.., pair)| *pair);
        pairs.filter(|(a, b)| *a == host || *b == host).collect()
    }
    let failed = |host: usize| {
        let good = pairs(&matrix.readings, host);
        let bad = &pairs(&matrix.failed, host) - &good;
        (bad.len(), good.len())
    };
    hosts
        .filter_map(|host| {
            let (bad, good) = failed(host);
            if bad < PAIRS_MIN || bad <= 4 * good {
                return None;
            }
            let why = matrix
                .failed
                .iter()
                .find(|((_, _, (a, b)), _)| *a == host || *b == host)
                .map(|(_, why)| why.clone());
            Some(Blame {
                whom: Whom::Host(host),
                rule: "host-unreached",
                found: Verdict {
                    bad: Bad::Unreached {
                        host: matrix.name(host).to_owned(),
                        failed: bad,
                        pairs: bad + good,
                    },
                    behind: words::Behind::Failure(why.unwrap_or_default()),
                },
            })
        })
        .collect()
}

/// Hosts whose CPUs others use.
fn busy(matrix: &Matrix) -> Vec<Blame> {
    let usual = median(matrix.others.values().copied().collect()).unwrap_or(0.0);
    let bound = BUSY_MIN.max(BUSY_TIMES * usual);
    let busy = matrix.others.iter().filter(|(_, share)| **share >= bound);
    busy.map(|(host, part)| {
        let whom = Whom::Host(*host);
        Blame {
            rule: "host-busy",
            found: Verdict {
                bad: Bad::Busy {
                    host: matrix.name(*host).to_owned(),
                    part: *part,
                    usual,
                },
                behind: evidence(matrix, &whom, |_| false),
            },
            whom,
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::KINDS;
    use super::super::all_pairs::OPEN;
    use super::super::testing::Grid;
    use super::*;
    use crate::words::Words;

    fn rules(grid: Grid) -> Vec<(&'static str, Whom)> {
        let matrix = grid.matrix();
        blames(&matrix)
            .into_iter()
            .map(|blame| {
                assert!(blame.found.sentence().ends_with('.'));
                assert!(
                    blame
                        .found
                        .arithmetic()
                        .is_some_and(|text| !text.is_empty())
                );
                (blame.rule, blame.whom)
            })
            .collect()
    }

    fn of(host: usize) -> impl Fn(Pair) -> bool {
        move |(a, b)| a == host || b == host
    }

    #[test]
    fn who_is_reached_by_streams_is_reached() {
        let fail = |matrix: &mut Matrix, kinds: &[Kind]| {
            let keys: Vec<_> = matrix.readings.keys().copied().collect();
            for key in keys {
                if of(2)(key.2) && kinds.contains(&key.1) {
                    matrix.readings.remove(&key);
                    matrix.failed.insert(key, "no sample was taken".into());
                }
            }
        };
        let mut matrix = Grid::healthy(4, 5).matrix();
        fail(&mut matrix, &[Kind::Latency]);
        assert!(unreached(&matrix).is_empty());
        fail(&mut matrix, &KINDS);
        let found = unreached(&matrix);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .found
                .sentence()
                .starts_with("h3 is bad: 6 of its 6 pairs")
        );
    }

    #[test]
    fn two_thousand_healthy_runs_blame_next_to_nobody() {
        let is_blamed = |seed: &u64| {
            let noise = [0.01, 0.03, 0.1, 0.3][*seed as usize % 4];
            let all = blames(&Grid::noisy(16, *seed, noise).matrix());
            all.iter().any(|one| !OPEN.contains(&one.rule))
        };
        let count = (0..2_000).filter(is_blamed).count();
        assert!(count <= 20, "{count} of 2,000");
    }

    #[test]
    fn each_reason_is_named() {
        for hosts in [4, 8, 16, 64] {
            let host = |rule| vec![(rule, Whom::Host(2))];
            let grid = || Grid::healthy(hosts, 5);
            let mut one = grid();
            one.worsen(Kind::Stream, |(_, b)| (b == 2).then_some(1e9));
            one.worsen(Kind::Duplex, |(_, b)| (b == 2).then_some(1e9));
            assert_eq!(rules(one), host("host-black-hole"), "{hosts}");
            let mut one = grid();
            one.worsen(Kind::Duplex, |pair| of(2)(pair).then_some(4.0));
            assert_eq!(rules(one), host("host-slow"), "{hosts}: nothing is lost");
            // Few of one way, by the acknowledgements; many of both.
            let mut one = grid();
            one.count_of(Kind::Stream, |pair, reading| {
                reading.lost = 2 * u64::from(of(2)(pair));
            });
            one.count_of(Kind::Duplex, |pair, reading| {
                reading.lost = 40 * u64::from(of(2)(pair));
            });
            assert_eq!(rules(one), host("host-duplex"), "{hosts}");
            // As many of one way: it is not the duplex.
            let mut one = grid();
            one.count(|pair, reading| reading.lost = 40 * u64::from(of(2)(pair)));
            assert_eq!(rules(one), host("host-loss"), "{hosts}");
            let mut one = grid();
            one.worsen(Kind::Stream, |pair| of(2)(pair).then_some(4.0));
            one.worsen(Kind::Duplex, |pair| of(2)(pair).then_some(4.0));
            assert_eq!(rules(one), host("host-slow"), "{hosts}");
            let mut one = grid();
            one.worsen(Kind::Latency, |pair| of(2)(pair).then_some(3.0));
            assert_eq!(rules(one), host("host-slow"), "{hosts}");
            let mut one = grid();
            one.count(|(_, b), reading| reading.lost = 5 * u64::from(b == 2));
            assert_eq!(rules(one), host("host-loss"), "{hosts}");
            let mut one = grid();
            one.count(|(_, b), reading| {
                (reading.overtaken, reading.lost) = (9 * u64::from(b == 2), 3 * u64::from(b == 2));
            });
            assert_eq!(rules(one), host("host-reorders"), "{hosts}");
        }
    }

    /// In a short window a stream that loses may wait for its timer: it moves when it is measured again.
    #[test]
    fn what_moves_again_does_not_stand_still() {
        let rules_of = |still: &[Stage]| {
            let mut grid = Grid::healthy(4, 5);
            grid.worsen_in(still, Kind::Stream, |(_, b)| (b == 2).then_some(1e9));
            grid.count(|(_, b), reading| reading.lost = 100 * u64::from(b == 2));
            rules(grid)
        };
        let host = |rule| vec![(rule, Whom::Host(2))];
        assert_eq!(rules_of(&[Stage::Together]), host("host-loss"));
        let all = [Stage::Together, Stage::Again, Stage::Alone];
        assert_eq!(rules_of(&all), host("host-black-hole"));
    }

    /// Remeasured in a third of the time and four times slower: something else takes more.
    #[test]
    fn a_window_is_to_blame_from_half_of_the_time_on() {
        let rule = |held: f64, lost: u64| {
            let mut grid = Grid::healthy(8, 5);
            for kind in [Kind::Stream, Kind::Duplex] {
                grid.worsen(kind, |(_, b)| (b == 2).then_some(4.0));
            }
            grid.count(|(_, b), reading| {
                if b == 2 {
                    (reading.rwnd_share, reading.lost) = (held, lost);
                }
            });
            rules(grid)
        };
        let host = |rule| vec![(rule, Whom::Host(2))];
        assert_eq!(rule(0.8, 0), host("host-window"));
        assert_eq!(rule(0.34, 0), host("host-slow"));
        // What overtakes makes the streams slow, and is told before.
        assert_eq!(rule(0.34, 40), host("host-slow"));
    }

    #[test]
    fn a_fabric_is_bad_only_together() {
        for hosts in [4, 8, 16, 64] {
            let mut grid = Grid::healthy(hosts, 5);
            let together = [Stage::Together, Stage::Again];
            grid.worsen_in(&together, Kind::Stream, |pair| {
                (pair == (0, 1)).then_some(3.0)
            });
            assert_eq!(rules(grid), [("fabric", Whom::Fabric)], "{hosts}");
            let mut grid = Grid::healthy(hosts, 5);
            grid.worsen_in(&together, Kind::Stream, |pair| of(3)(pair).then_some(3.0));
            assert_eq!(rules(grid), [("fabric", Whom::Fabric)], "{hosts}");
        }
    }

    /// Where more stood out than are measured alone, the rest is not blamed.
    #[test]
    fn what_was_not_alone_is_not_blamed() {
        let mut grid = Grid::healthy(16, 5);
        let together = [Stage::Together, Stage::Again];
        grid.worsen_in(&together, Kind::Stream, |pair| {
            [(0, 1), (4, 7), (9, 12)].contains(&pair).then_some(2.0)
        });
        grid.keep(|stage, pair| stage != Stage::Alone || pair == (0, 1));
        assert_eq!(rules(grid), [("fabric", Whom::Fabric)]);
    }

    #[test]
    fn what_does_not_come_again_is_nothing() {
        for hosts in [4, 8, 16, 64] {
            let mut grid = Grid::healthy(hosts, 5);
            for kind in super::super::KINDS {
                let once = [Stage::Together];
                grid.worsen_in(&once, kind, |pair| of(3)(pair).then_some(9.0));
                grid.worsen_in(&once, kind, |pair| (pair == (0, 1)).then_some(9.0));
            }
            assert_eq!(rules(grid), [], "{hosts}");
        }
        for seed in 0..20 {
            assert_eq!(rules(Grid::healthy(16, seed)), []);
        }
    }

    /// Overtaking makes segments go again in vain while others flow: it is no sign of the fabric beside a host that is bad.
    #[test]
    fn a_bad_host_is_no_fabric() {
        for hosts in [4, 8, 16, 64] {
            let mut grid = Grid::healthy(hosts, 5);
            grid.count(|(_, b), reading| reading.overtaken = 9 * u64::from(b == 2));
            let together = [Stage::Together, Stage::Again];
            grid.worsen_in(&together, Kind::Stream, |pair| of(2)(pair).then_some(3.0));
            assert_eq!(rules(grid), [("host-reorders", Whom::Host(2))], "{hosts}");
        }
    }

    #[test]
    fn two_bad_hosts_are_both_named() {
        for hosts in [8, 16, 64] {
            let mut grid = Grid::healthy(hosts, 5);
            grid.worsen(Kind::Latency, |pair| of(1)(pair).then_some(3.0));
            grid.count(|(_, b), reading| reading.lost = 5 * u64::from(b == 4));
            let both = [("host-slow", Whom::Host(1)), ("host-loss", Whom::Host(4))];
            assert_eq!(rules(grid), both, "{hosts}");
        }
    }

    #[test]
    fn a_busy_host_is_named() {
        let mut matrix = Grid::healthy(8, 1).matrix();
        matrix.others = (0..8).map(|host| (host, 0.01)).collect();
        assert!(blames(&matrix).is_empty());
        matrix.others.insert(6, 0.97);
        let found = blames(&matrix);
        assert_eq!(
            (found[0].rule, &found[0].whom),
            ("host-busy", &Whom::Host(6))
        );
        // It is slow because it is busy: that is one verdict.
        let mut grid = Grid::healthy(8, 1);
        grid.worsen(Kind::Duplex, |pair| of(6)(pair).then_some(4.0));
        grid.worsen(Kind::Latency, |pair| of(6)(pair).then_some(4.0));
        let mut slow = grid.matrix();
        slow.others.clone_from(&matrix.others);
        let found: Vec<_> = blames(&slow).into_iter().map(|one| one.rule).collect();
        assert_eq!(found, ["host-busy"]);
        // Where all are busy nobody stands out.
        matrix.others = (0..8).map(|host| (host, 0.8)).collect();
        assert!(blames(&matrix).is_empty());
    }

    /// A lossy host whose streams stood out one by one: a flow to it gave nothing, and another was slow both ways alone.
    #[test]
    fn most_directions_of_a_host_are_the_host() {
        let mut grid = Grid::healthy(4, 5);
        grid.worsen(Kind::Stream, |pair| (pair == (0, 3)).then_some(3.0));
        grid.worsen_in(&[Stage::Again, Stage::Alone], Kind::Stream, |pair| {
            (pair == (1, 3)).then_some(5.0)
        });
        let both = |(a, b): Pair| (a.min(b), a.max(b)) == (1, 3);
        grid.worsen(Kind::Duplex, |pair| both(pair).then_some(3.5));
        let lost = |(_, _, pair): &(Stage, Kind, Pair)| *pair == (2, 3);
        let mut matrix = grid.matrix();
        let whole = blames(&matrix);
        assert_eq!(whole.len(), 1, "{whole:?}");
        matrix.readings.retain(|key, _| !lost(key));
        for found in [whole, blames(&matrix)] {
            let found: Vec<_> = found.iter().map(|one| (one.rule, &one.whom)).collect();
            assert_eq!(found, [("host-slow", &Whom::Host(3))]);
        }
        // It is slow because it is busy: that is one verdict.
        matrix.others = (0..4).map(|host| (host, 0.01)).collect();
        matrix.others.insert(3, 0.97);
        let found: Vec<_> = blames(&matrix).into_iter().map(|one| one.rule).collect();
        assert_eq!(found, ["host-busy"]);
        // Two of fifteen are two directions.
        let mut grid = Grid::healthy(16, 5);
        grid.worsen(Kind::Stream, |pair| {
            matches!(pair, (0, 3) | (1, 3)).then_some(3.0)
        });
        assert_eq!(blames(&grid.matrix()).len(), 2);
    }
}
