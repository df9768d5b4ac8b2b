//! The verdict: what is bad, with its evidence.
//!
//! Model:   of what stands out, that is kept which stood out again together and was bad alone beside reference pairs, by six
//!          tenths of the least effect. Bad together twice and good alone: the fabric. A host's reason is the first that
//!          holds: its segments are overtaken; streams to it stand still while small messages pass; it is bad only while
//!          both directions are busy; segments are lost and its rate is at least half of the usual; it is slow. A pair
//!          is a link where the way back is bad too, else a direction.
//! Checked: `each_reason_is_named`, `a_fabric_is_bad_only_together`, `what_does_not_come_again_is_nothing`, `links_and_directions`.

use super::score::{badness, effect, scores};
use super::suspect::{
    COUNT_MIN, LOSS_MIN, OVERTAKEN_MIN, PAIRS_MIN, Side, Sign, Standing, shares, standing,
};
use super::{Kind, Matrix, Pair, Reading, Stage};
use crate::finding::{Finding, Severity};
use crate::format::{rate, share, time};
use crate::index::median;

/// A program that takes as much of a CPU disturbs.
const BUSY_MIN: f64 = 0.2;
/// So many times what they take on the usual host.
const BUSY_TIMES: f64 = 5.0;
/// The receiver's window decides where it holds the senders for as long.
const HELD_MIN: f64 = 0.3;
/// Where a larger part of the pairs stands out, and more than so many, none of them is told from noise.
const UNSTEADY_PART: usize = 10;
const UNSTEADY_MIN: usize = 4;
/// The part of the least effect that must be left alone.
const LEFT: f64 = 0.6;

/// Who is to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whom {
    Host(usize),
    Link(Pair),
    Direction(Pair),
    Fabric,
}

/// A verdict on one of them.
#[derive(Debug, Clone)]
pub(super) struct Blame {
    pub whom: Whom,
    pub rule: &'static str,
    pub sentence: String,
    pub evidence: String,
    pub remedy: String,
}

impl Blame {
    /// Whether it is about this ordered pair.
    pub fn is_of(&self, (src, dst): Pair) -> bool {
        match self.whom {
            Whom::Host(host) => host == src || host == dst,
            Whom::Link(pair) => pair == (src, dst) || pair == (dst, src),
            Whom::Direction(pair) => pair == (src, dst),
            Whom::Fabric => false,
        }
    }
}

/// All findings of a matrix.
pub(super) fn verdict(matrix: &Matrix) -> Vec<Finding> {
    let of = |blame: Blame| {
        Finding::new(blame.rule, Severity::Warning, blame.sentence)
            .on_network(&matrix.network)
            .since(blame.evidence)
            .remedy(blame.remedy)
    };
    blames(matrix).into_iter().map(of).collect()
}

/// How what stood out came out of being measured again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Bad,
    Fabric,
    Gone,
    /// It was not measured again.
    Unknown,
}

/// All verdicts.
pub(super) fn blames(matrix: &Matrix) -> Vec<Blame> {
    let standing = standing(matrix);
    let mut all = unreached(matrix);
    let mut fabric: Vec<String> = Vec::new();
    for (host, signs) in &standing.hosts {
        let mut kept = Vec::new();
        for (sign, side) in signs {
            match held(matrix, *sign, |pair| on_side(pair, *host, *side)) {
                Held::Bad | Held::Unknown => kept.push((*sign, *side)),
                Held::Fabric => fabric.push(format!("{} ({})", matrix.name(*host), word(*sign))),
                Held::Gone => {}
            }
        }
        all.extend(host_blame(matrix, *host, &kept));
    }
    all.extend(pair_blames(matrix, &standing, &mut fabric));
    all.extend(busy(matrix));
    if !fabric.is_empty() {
        fabric.dedup();
        all.push(Blame {
            whom: Whom::Fabric,
            rule: "fabric",
            sentence: format!(
                "The fabric of {} does not carry all at once: {} bad twice while others flowed, and good alone.",
                matrix.network,
                if fabric.len() == 1 { format!("{} was", fabric[0]) } else { format!("{} were", fabric.join(", ")) }
            ),
            evidence: evidence(matrix, |_| true),
            remedy: "look at what these ways share: a trunk, a switch's buffers, how flows are spread over equal paths".into(),
        });
    }
    all
}

fn on_side(pair: Pair, host: usize, side: Side) -> bool {
    (if side == 0 { pair.1 } else { pair.0 }) == host
}

fn word(sign: Sign) -> &'static str {
    match sign {
        Sign::Slow(Kind::Latency) => "latency",
        Sign::Slow(Kind::Stream) => "rate",
        Sign::Slow(Kind::Duplex) => "rate in both directions",
        Sign::Loss => "loss",
        Sign::Overtaken => "overtaking",
    }
}

/// Whether a sign of these pairs is there again, together and alone.
fn held(matrix: &Matrix, sign: Sign, of: impl Fn(Pair) -> bool) -> Held {
    let (again, alone) = match sign {
        Sign::Slow(kind) => slow_again(matrix, kind, of),
        Sign::Loss => (
            counted_again(matrix, Stage::Again, LOSS_MIN, &of, |r| r.lost),
            counted_again(matrix, Stage::Alone, LOSS_MIN, &of, |r| r.lost),
        ),
        Sign::Overtaken => (
            counted_again(matrix, Stage::Again, OVERTAKEN_MIN, &of, |r| r.overtaken),
            counted_again(matrix, Stage::Alone, OVERTAKEN_MIN, &of, |r| r.overtaken),
        ),
    };
    match (again, alone) {
        (None, None) => Held::Unknown,
        (Some(false), _) => Held::Gone,
        (_, Some(true)) | (Some(true), None) => Held::Bad,
        (Some(true), Some(false)) => Held::Fabric,
        (None, Some(false)) => Held::Gone,
    }
}

fn slow_again(
    matrix: &Matrix,
    kind: Kind,
    of: impl Fn(Pair) -> bool,
) -> (Option<bool>, Option<bool>) {
    let middle = |stage: Stage, usual: f64| {
        let grid = matrix.grid(stage, kind);
        let some = grid.iter().filter(|(pair, _)| of(**pair));
        median(
            some.map(|(_, reading)| badness(kind, reading.value, usual))
                .collect(),
        )
    };
    let usual = scores(matrix, Stage::Together, kind).map(|scores| scores.usual);
    let again = usual.and_then(|usual| Some(middle(Stage::Again, usual)? > effect(kind)));
    let reference = matrix.grid(Stage::Reference, kind);
    let reference = median(reference.values().map(|reading| reading.value).collect());
    let alone =
        reference.and_then(|usual| Some(middle(Stage::Alone, usual)? > LEFT * effect(kind)));
    (again, alone)
}

/// Whether the streams of these pairs have it again; half of the least share will do.
fn counted_again(
    matrix: &Matrix,
    stage: Stage,
    least: f64,
    of: impl Fn(Pair) -> bool,
    count: fn(&Reading) -> u64,
) -> Option<bool> {
    let grid = matrix.grid(stage, Kind::Stream);
    let some: Vec<&&Reading> = grid
        .iter()
        .filter(|(pair, _)| of(**pair))
        .map(|(_, reading)| reading)
        .collect();
    if some.is_empty() {
        return None;
    }
    let counted: u64 = some.iter().map(|reading| count(reading)).sum();
    let segments: u64 = some.iter().map(|reading| reading.segments).sum();
    Some(counted >= 2 && counted as f64 >= least / 2.0 * segments as f64)
}

/// The figures of pairs, at each stage.
fn evidence(matrix: &Matrix, of: impl Fn(Pair) -> bool) -> String {
    let mut parts = Vec::new();
    for (kind, name) in [
        (Kind::Latency, "latency"),
        (Kind::Stream, "rate"),
        (Kind::Duplex, "rate beside one the other way"),
    ] {
        let show = |value: f64| match kind {
            Kind::Latency => time(value),
            Kind::Stream | Kind::Duplex => rate(value),
        };
        let middle = |stage: Stage, inside: bool| {
            let grid = matrix.grid(stage, kind);
            let some: Vec<f64> = grid
                .iter()
                .filter(|(pair, _)| of(**pair) == inside)
                .map(|(_, reading)| reading.value)
                .collect();
            let count = some.len();
            median(some).map(|value| (value, count))
        };
        let mut stages = Vec::new();
        for (stage, when) in [
            (Stage::Together, "together"),
            (Stage::Again, "again"),
            (Stage::Alone, "alone"),
        ] {
            if let Some((value, count)) = middle(stage, true) {
                stages.push(format!("{when} {} ({count} pairs)", show(value)));
            }
        }
        if stages.is_empty() {
            continue;
        }
        let others = middle(Stage::Together, false)
            .map(|(value, count)| format!("; others {} ({count})", show(value)));
        let reference = matrix.grid(Stage::Reference, kind);
        let reference = median(reference.values().map(|reading| reading.value).collect())
            .map(|value| format!(", alone {}", show(value)));
        parts.push(format!(
            "{name}: {}{}{}",
            stages.join(", "),
            others.unwrap_or_default(),
            reference.unwrap_or_default()
        ));
    }
    let grid = matrix.grid(Stage::Together, Kind::Stream);
    let held = grid.iter().filter(|(pair, _)| of(**pair));
    let held = median(held.map(|(_, reading)| reading.rwnd_share).collect());
    if let Some(held) = held.filter(|held| *held >= 0.1) {
        parts.push(format!(
            "the receiver's window held the senders {} of the time",
            share(held)
        ));
    }
    if let Some(scores) = scores(matrix, Stage::Together, Kind::Stream) {
        parts.push(format!(
            "of {} pairs, spread of rates {}",
            scores.pairs.len(),
            share(scores.spread.exp() - 1.0)
        ));
    }
    parts.join("; ")
}

fn host_blame(matrix: &Matrix, host: usize, kept: &[(Sign, Side)]) -> Option<Blame> {
    if kept.is_empty() {
        return None;
    }
    let has = |sign: Sign| kept.iter().any(|(one, _)| *one == sign);
    let sides = |sign: Sign| {
        let of = |side| kept.contains(&(sign, side));
        match (of(0), of(1)) {
            (true, false) => "to",
            (false, true) => "from",
            _ => "to and from",
        }
    };
    let name = matrix.name(host);
    let own = |pair: Pair| pair.0 == host || pair.1 == host;
    let counted = |of: fn(&Reading) -> u64| {
        let stages = [Stage::Together, Stage::Again, Stage::Alone];
        let all = shares(matrix, &stages, of);
        let worst = [0, 1].iter().filter_map(|side| all.get(&(host, *side)));
        let worst = worst.max_by(|one, other| one.0.total_cmp(&other.0));
        worst.map_or_else(String::new, |(part, count)| {
            format!("{} of segments ({count})", share(*part))
        })
    };
    let (stream, duplex) = (Sign::Slow(Kind::Stream), Sign::Slow(Kind::Duplex));
    let ratio = |kind: Kind| slowness(matrix, kind, host);
    let (rule, sentence, remedy) = if has(Sign::Overtaken) {
        (
            "host-reorders",
            format!(
                "{name} is bad: segments {} it overtake each other, {}.",
                sides(Sign::Overtaken),
                counted(|reading| reading.overtaken)
            ),
            format!(
                "look at how {name}'s frames are spread: several links that are one, a receive queue a packet, a driver that coalesces"
            ),
        )
    } else if stands_still(matrix, host) && !has(Sign::Slow(Kind::Latency)) {
        (
            "host-black-hole",
            format!(
                "{name} is bad: small messages reach it and streams {} it stand still: large frames vanish on the way, a black hole of the MTU.",
                sides(stream)
            ),
            format!(
                "compare the MTU of {name}, of its switch port and of its peers: `ip link`, `ping -M do -s 1472 {name}`"
            ),
        )
    } else if (has(stream) || has(duplex)) && held_by_window(matrix, host) >= HELD_MIN {
        (
            "host-window",
            format!(
                "{name} is bad: its receive window holds streams to it {} of the time.",
                share(held_by_window(matrix, host))
            ),
            format!("raise net.ipv4.tcp_rmem on {name} to what the others have"),
        )
    } else if has(duplex) && (!has(stream) || ratio(Kind::Duplex) > 1.3 * ratio(Kind::Stream)) {
        (
            "host-duplex",
            format!(
                "{name} is bad: its streams are {:.1} times slower than those of others while both directions are busy, {:.1} times one way.",
                ratio(Kind::Duplex),
                ratio(Kind::Stream)
            ),
            format!(
                "the two ends of {name}'s line may not agree on its duplex: `ethtool` on {name}, and the switch's port"
            ),
        )
    } else if has(Sign::Loss) && ratio(Kind::Stream) < 2.0 {
        (
            "host-loss",
            format!(
                "{name} is bad: frames {} it are lost, {}.",
                sides(Sign::Loss),
                counted(|reading| reading.lost)
            ),
            format!(
                "look at {name}'s errors and drops (`ethtool -S`, `ip -s link`), its cable, optics and switch port"
            ),
        )
    } else if has(stream) {
        (
            "host-slow",
            format!(
                "{name} is bad: streams {} it are {:.1} times slower than those of others.",
                sides(stream),
                ratio(Kind::Stream)
            ),
            format!(
                "look at {name}'s line rate (`ethtool`), its CPU's clock and load, and its TCP buffers"
            ),
        )
    } else if has(Sign::Loss) {
        return None;
    } else {
        (
            "host-slow",
            format!(
                "{name} is bad: its latency is {:.1} times that of others.",
                ratio(Kind::Latency)
            ),
            format!(
                "look at {name}'s CPU (load, clock, power saving), its interrupts (`ethtool -c`), and the way to it"
            ),
        )
    };
    Some(Blame {
        whom: Whom::Host(host),
        rule,
        sentence,
        evidence: evidence(matrix, own),
        remedy,
    })
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

/// Whether most streams on one side of a host carry next to nothing.
fn stands_still(matrix: &Matrix, host: usize) -> bool {
    let Some(scores) = scores(matrix, Stage::Together, Kind::Stream) else {
        return false;
    };
    let grid = matrix.grid(Stage::Together, Kind::Stream);
    [0, 1].into_iter().any(|side| {
        let own: Vec<f64> = grid
            .iter()
            .filter(|(pair, _)| on_side(**pair, host, side))
            .map(|(_, reading)| reading.value)
            .collect();
        own.len() >= PAIRS_MIN && median(own).is_some_and(|value| value < scores.usual / 100.0)
    })
}

fn pair_blames(matrix: &Matrix, standing: &Standing, fabric: &mut Vec<String>) -> Vec<Blame> {
    let mut all = Vec::new();
    let mut told: Vec<Pair> = Vec::new();
    let measured = matrix.grid(Stage::Together, Kind::Stream).len();
    let some = standing.pairs.len();
    if some > UNSTEADY_MIN.max(measured / UNSTEADY_PART) {
        return vec![Blame {
            whom: Whom::Fabric,
            rule: "unsteady",
            sentence: format!(
                "{some} of {measured} pairs stand out and no host explains them: hosts or fabric are too unsteady to tell single ways apart."
            ),
            evidence: evidence(matrix, |pair| standing.pairs.contains_key(&pair)),
            remedy: "measure again when the hosts are quiet, or longer, without `--quick`".into(),
        }];
    }
    for (pair, kinds) in &standing.pairs {
        let (a, b) = *pair;
        if told.contains(&(b, a)) {
            continue;
        }
        let mut kept = Vec::new();
        for kind in kinds {
            match held(matrix, Sign::Slow(*kind), |one| one == *pair) {
                Held::Bad | Held::Unknown => kept.push(*kind),
                Held::Fabric => {
                    fabric.push(format!("{} to {}", matrix.name(a), matrix.name(b)));
                }
                Held::Gone => {}
            }
        }
        let Some(kind) = kept.first() else { continue };
        told.push(*pair);
        let back = standing.pairs.get(&(b, a)).is_some_and(|kinds| {
            kinds
                .iter()
                .any(|kind| held(matrix, Sign::Slow(*kind), |one| one == (b, a)) == Held::Bad)
        });
        // Half a round trip is of both ways: it cannot tell one direction.
        let both = back || kept.iter().all(|kind| *kind == Kind::Latency);
        let (whom, rule, way) = if both {
            let way = format!("between {} and {}", matrix.name(a), matrix.name(b));
            (Whom::Link(*pair), "link-slow", way)
        } else {
            let way = format!("from {} to {}", matrix.name(a), matrix.name(b));
            (Whom::Direction(*pair), "direction-slow", way)
        };
        let times = scores(matrix, Stage::Together, *kind)
            .and_then(|scores| scores.pairs.get(pair).copied())
            .unwrap_or(0.0)
            .exp();
        all.push(Blame {
            whom,
            rule,
            sentence: format!(
                "The way {way} is bad: {} {times:.1} times worse than between other hosts, while both hosts are good with others.",
                word(Sign::Slow(*kind))
            ),
            evidence: evidence(matrix, |one| one == *pair || (both && one == (b, a))),
            remedy: "suspect the way between the two, not the hosts: the route, a trunk between switches, a flow's queue".into(),
        });
    }
    all
}

/// Hosts that several others do not reach.
fn unreached(matrix: &Matrix) -> Vec<Blame> {
    let hosts = 0..matrix.hosts.len();
    let failed = |host: usize| {
        let own = matrix
            .failed
            .keys()
            .filter(|(stage, kind, (a, b))| {
                *stage == Stage::Together && *kind == Kind::Latency && (*a == host || *b == host)
            })
            .count();
        let good = matrix.grid(Stage::Together, Kind::Latency);
        let good = good
            .keys()
            .filter(|(a, b)| *a == host || *b == host)
            .count();
        (own, good)
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
                sentence: format!(
                    "{} is bad: {bad} of its {} pairs gave nothing.",
                    matrix.name(host),
                    bad + good
                ),
                evidence: why.unwrap_or_default(),
                remedy: format!("check that {} is up and answers", matrix.name(host)),
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
        let name = matrix.name(*host);
        Blame {
            whom: Whom::Host(*host),
            rule: "host-busy",
            sentence: format!(
                "{name} is busy: other programs took {part:.2} of a CPU while it was measured, on the usual host {usual:.2}."
            ),
            evidence: format!(
                "{}; {COUNT_MIN} hosts or more are compared",
                evidence(matrix, |pair| pair.0 == *host || pair.1 == *host)
            ),
            remedy: format!("see what runs on {name}: `top`, and end or move it"),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Grid;
    use super::*;

    fn rules(grid: Grid) -> Vec<(&'static str, Whom)> {
        let matrix = grid.matrix();
        blames(&matrix)
            .into_iter()
            .map(|blame| {
                assert!(blame.sentence.ends_with('.') && !blame.evidence.is_empty());
                (blame.rule, blame.whom)
            })
            .collect()
    }

    fn of(host: usize) -> impl Fn(Pair) -> bool {
        move |(a, b)| a == host || b == host
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
            assert_eq!(rules(one), host("host-duplex"), "{hosts}");
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
        // Where all are busy nobody stands out.
        matrix.others = (0..8).map(|host| (host, 0.8)).collect();
        assert!(blames(&matrix).is_empty());
    }
}
