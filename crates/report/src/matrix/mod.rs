//! The matrix of all pairs of hosts, and the verdict: which host, link or direction is bad, or whether the fabric is.
//!
//! Model:   a run of `probe pattern all-pairs` has for each ordered pair a latency, a stream, and a stream beside one the other way
//!          (duplex), first together with other pairs, by matchings. A pair's badness is the logarithm of its figure over the
//!          usual one, so that bad is above zero; a host's is the median over its pairs. What stands out is
//!          measured again together, and alone, beside pairs that do not stand out. Before it, flows of which disturbances leave open whether
//!          they are bad are measured anew as they were; of these the one that counts is that of which the disturbances leave least open.
//!          Only what is bad both times and alone
//!          is a host's or a link's; bad together twice and good alone is the fabric's; what does not come again is nothing.
//! Source:  NVIDIA/nccl#325 for the rule. Deviations: a least practical effect beside the spread, an allowance for the
//!          number of comparisons, and measuring again.
//! Checked: the tests of `blame`, `suspect`, `possible` and `odd`.

mod all_pairs;
mod blame;
mod evidence;
mod heat;
mod odd;
mod possible;
mod remeasured;
mod score;
mod sensitivity;
mod suspect;
#[cfg(test)]
mod testing;
mod way;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{Factors, Fixed, Flow, Number, Quantity, Repetition, ResultRow, Run};
use sonde_stats::Bounds;

use crate::diagnosis::HostTrait;
use crate::finding::Finding;
use crate::index::{Index, PATTERN, median};

pub use all_pairs::AllPairs;
pub(crate) use heat::heat;
pub use heat::{HeatFigure, HeatMap, HeatMark, HeatView, SIDE_MAX};
pub use possible::{LeftOpen, left_open};
pub use sensitivity::{RETEST, Retest, Sensitivity, sensitivity};
pub use suspect::{Suspects, suspects};

/// The pattern's name in the knobs of its cells.
pub const ALL_PAIRS: &str = "all-pairs";

/// What cells of flows are called, by their knob `stage`, that are measured anew for the first time and for the second, since a
/// disturbance left open what they are.
pub const ANEW: [&str; 2] = ["anew", "anew-2"];

/// The rule of hosts of a matrix that are not set as the others.
pub const ODD: &str = "host-odd";

/// Whether a cell is of a matrix of all pairs.
pub(crate) fn is_of_matrix(factors: &Factors) -> bool {
    factors.probe == PATTERN && factors.knobs.get(PATTERN).map(String::as_str) == Some(ALL_PAIRS)
}

/// Whether a row is: its figures are judged over pairs, not by repetitions of their own.
pub fn is_row_of_matrix(row: &ResultRow) -> bool {
    row.probe == PATTERN && row.knobs.get(PATTERN).map(String::as_str) == Some(ALL_PAIRS)
}

/// Under what a pair was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// With the other pairs of its matching.
    Together,
    /// The same once more.
    Again,
    /// With nothing else.
    Alone,
    /// With nothing else, and nothing was wrong with it before.
    Reference,
}

/// What was measured of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Latency,
    Stream,
    /// A stream beside one the other way.
    Duplex,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::Latency, Kind::Stream, Kind::Duplex];

impl Kind {
    fn of(mode: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| kind.name() == mode)
    }

    /// As the mode of its cells.
    fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Stream => "stream",
            Self::Duplex => "duplex",
        }
    }

    fn quantity(self) -> Quantity {
        match self {
            Self::Latency => Quantity::LatencyNs,
            Self::Stream | Self::Duplex => Quantity::ThroughputBps,
        }
    }
}

/// What one ordered pair gave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    /// Nanoseconds of half a round trip, or bits a second: the median over launches.
    pub value: f64,
    /// The rank interval of that median, from six launches on.
    pub ends: Option<(f64, f64)>,
    /// Where the undisturbed figure lies; an end that is none has no bound. None where it is not known which samples met a disturbance.
    pub possible: Option<(Option<f64>, Option<f64>)>,
    /// The highest quantile that the samples allow.
    pub tail: Option<f64>,
    /// Segments, those sent again and not in vain, and times that some overtook others.
    pub segments: u64,
    pub lost: u64,
    pub overtaken: u64,
    /// The share of time that the receiver's window held the sender.
    pub rwnd_share: f64,
}

/// Ordered pair, by number of host.
pub(crate) type Pair = (usize, usize);

/// Who is to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whom {
    Host(usize),
    Link(Pair),
    Direction(Pair),
    Fabric,
}

/// What a run says of all pairs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matrix {
    pub network: String,
    pub hosts: Vec<String>,
    pub readings: BTreeMap<(Stage, Kind, Pair), Reading>,
    /// Launches of pairs that failed, with why.
    pub failed: BTreeMap<(Stage, Kind, Pair), String>,
    /// What other programs took of a CPU, in the median of a host's rounds.
    pub others: BTreeMap<usize, f64>,
}

/// The hosts of the pairs, in the run's order; not those that were measured on other networks alone, as a lab's machine on its loopback.
fn hosts(run: &Run) -> Vec<&str> {
    let pairs: BTreeSet<&str> = run
        .cells
        .iter()
        .filter(|cell| is_of_matrix(&cell.factors))
        .map(|cell| cell.id.as_str())
        .collect();
    let (mut of_pairs, mut others) = (BTreeSet::new(), BTreeSet::new());
    for one in run.repetitions() {
        let of = match pairs.contains(one.result.cell.as_str()) {
            true => &mut of_pairs,
            false => &mut others,
        };
        of.extend([one.launch.src.as_str(), one.launch.dst.as_str()]);
    }
    let all = run.hosts.iter().map(|host| host.name.as_str());
    all.filter(|host| of_pairs.contains(host) || !others.contains(host))
        .collect()
}

impl Matrix {
    /// What the run has; nothing where it is of something else.
    pub fn of(run: &Run) -> Option<Self> {
        let mut matrix = Self {
            hosts: hosts(run).into_iter().map(str::to_owned).collect(),
            ..Self::default()
        };
        let numbers = hosts(run).into_iter().zip(0..);
        let numbers: BTreeMap<&str, usize> = numbers.collect();
        let mut launches: BTreeMap<&str, Vec<Repetition<'_>>> = BTreeMap::new();
        for one in run.repetitions() {
            launches.entry(&one.result.cell).or_default().push(one);
        }
        let mut others: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut anew: Vec<(Kind, Pair, Reading)> = Vec::new();
        for cell in &run.cells {
            let factors = &cell.factors;
            if !is_of_matrix(factors) {
                continue;
            }
            matrix.network.clone_from(&factors.network);
            let stage = factors.knobs.get("stage").map(String::as_str);
            let is_anew = stage.is_some_and(|stage| ANEW.contains(&stage));
            let stage = match stage {
                Some("again") => Stage::Again,
                Some("alone") => Stage::Alone,
                Some("reference") => Stage::Reference,
                _ => Stage::Together,
            };
            let Some(kind) = factors.mode.as_deref().and_then(Kind::of) else {
                continue;
            };
            let made = launches.get(cell.id.as_str()).map_or(&[][..], |made| made);
            let Some(first) = made.first() else { continue };
            let pair = (
                numbers.get(first.launch.src.as_str()),
                numbers.get(first.launch.dst.as_str()),
            );
            let (Some(src), Some(dst)) = pair else {
                continue;
            };
            let key = (stage, kind, (*src, *dst));
            match read(kind, made, &run.ends(cell, made)) {
                Ok(reading) if is_anew => anew.push((kind, (*src, *dst), reading)),
                Ok(reading) => drop(matrix.readings.insert(key, reading)),
                // It was measured before.
                Err(_) if is_anew => {}
                Err(why) => drop(matrix.failed.insert(key, why)),
            }
            for Repetition { launch, .. } in made {
                for (host, side) in [src, dst].into_iter().zip(launch.evidence.sides()) {
                    let share = side.others.share.map(Fixed::value);
                    others.entry(*host).or_default().extend(share);
                }
            }
        }
        for (kind, pair, reading) in anew {
            matrix.replace(kind, pair, reading);
        }
        // Half a round trip is of both ways.
        let mirrored: Vec<_> = matrix
            .readings
            .iter()
            .filter(|((_, kind, _), _)| *kind == Kind::Latency)
            .map(|((stage, kind, (a, b)), reading)| ((*stage, *kind, (*b, *a)), reading.clone()))
            .collect();
        for (key, reading) in mirrored {
            matrix.readings.entry(key).or_insert(reading);
        }
        matrix.others = others
            .into_iter()
            .filter_map(|(host, shares)| Some((host, median(shares)?)))
            .collect();
        let is_there = !matrix.readings.is_empty() || !matrix.failed.is_empty();
        is_there.then_some(matrix)
    }

    /// The readings of one stage and kind.
    pub fn grid(&self, stage: Stage, kind: Kind) -> BTreeMap<Pair, &Reading> {
        let of = self
            .readings
            .iter()
            .filter(move |((one, other, _), _)| *one == stage && *other == kind);
        of.map(|((_, _, pair), reading)| (*pair, reading)).collect()
    }

    /// Ordered pairs that gave a figure together with others.
    pub fn pairs(&self) -> usize {
        let together = self.readings.keys();
        let together = together.filter(|(stage, ..)| *stage == Stage::Together);
        let pairs: BTreeSet<Pair> = together.map(|(.., pair)| *pair).collect();
        pairs.len()
    }

    pub fn name(&self, host: usize) -> &str {
        self.hosts.get(host).map_or("?", String::as_str)
    }
}

/// What the repetitions of a pair gave, whose undisturbed figures lie between these `ends`, where that is known.
fn read(kind: Kind, made: &[Repetition<'_>], ends: &[Option<Bounds>]) -> Result<Reading, String> {
    let series = |one: &Repetition<'_>| {
        let of = one
            .result
            .series
            .iter()
            .find(|one| one.quantity == kind.quantity() && !one.series.is_empty());
        of.map(|one| one.series.clone())
    };
    let all: Vec<_> = made.iter().filter_map(series).collect();
    let middles: Vec<u64> = all.iter().filter_map(sonde_stats::Series::median).collect();
    let Some(value) = median(middles.iter().map(|m| *m as f64).collect()) else {
        let why = made.iter().find_map(|one| one.result.failure.clone());
        return Err(why.unwrap_or_else(|| "nothing was measured".into()));
    };
    let mut pooled = sonde_stats::Series::new();
    all.iter().for_each(|one| pooled.merge(one));
    let tail = (kind == Kind::Latency)
        .then(|| pooled.quantile(if pooled.count() >= 1_000 { 99 } else { 90 }, 100))
        .flatten();
    let sum = |count: fn(&Flow) -> Option<u64>| -> u64 {
        let counts = made
            .iter()
            .filter_map(|one| count(&one.launch.evidence.flow));
        counts.sum()
    };
    let (again, in_vain) = (sum(|flow| flow.retransmits), sum(|flow| flow.in_vain));
    let window = sum(|flow| flow.busy_us).max(1) as f64;
    // The middle one, where none has no bound below and is before all, and none above after them.
    let known: Option<Vec<Bounds>> = ends.iter().copied().collect();
    let possible = known.map(|known| {
        let bound = |end: Option<u64>, open: f64| end.map_or(open, |end| end as f64);
        let low = known.iter().map(|of| bound(of.low, f64::NEG_INFINITY));
        let high = known.iter().map(|of| bound(of.high, f64::INFINITY));
        let middle = |all: Vec<f64>| median(all).filter(|end| end.is_finite());
        (middle(low.collect()), middle(high.collect()))
    });
    Ok(Reading {
        value,
        possible,
        ends: sonde_stats::median_rank_interval(&middles, 0.95)
            .map(|ends| (ends.low as f64, ends.high as f64)),
        tail: tail.map(|tail| tail as f64),
        segments: sum(|flow| flow.segments),
        lost: again.saturating_sub(in_vain),
        overtaken: sum(|flow| flow.overtaken),
        rwnd_share: (sum(|flow| flow.rwnd_limited_us) as f64 / window).min(1.0),
    })
}

/// The rules of the verdict on all pairs.
pub(crate) const VERDICTS: &[&str] = &[
    "host-unreached",
    "host-reorders",
    "host-black-hole",
    "host-window",
    "host-duplex",
    "host-loss",
    "host-slow",
    "direction-slow",
    "link-slow",
    "unsteady",
    "host-busy",
    "fabric",
];

/// The verdict on all pairs.
pub(crate) fn verdict(_: &Index<'_>, matrix: &Matrix) -> Vec<Finding> {
    blame::verdict(matrix)
}

/// `host-odd`: hosts of a matrix that are not set as the others.
pub(crate) fn odd_hosts(index: &Index<'_>, _: &Matrix) -> Vec<Finding> {
    odd::hosts(index.run)
}

/// Of which host `host-odd` tells what; nothing of a run that is not of all pairs.
pub(crate) fn told(run: &Run) -> Vec<(String, HostTrait)> {
    if Matrix::of(run).is_none() {
        return Vec::new();
    }
    odd::odd(run).iter().map(|one| one.of(run)).collect()
}

/// The matrix as the page draws it: a figure for each ordered pair, together with others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixView {
    /// The network.
    pub network: String,
    /// The hosts, in the order of rows and columns.
    pub hosts: Vec<String>,
    /// What was measured of each pair that was.
    pub pairs: Vec<MatrixPair>,
}

/// An ordered pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixPair {
    /// The row.
    pub src: usize,
    /// The column.
    pub dst: usize,
    /// Half a round trip.
    pub latency_ns: Option<Number>,
    /// Its tail: the 99th percentile of 1,000 samples, else the 90th.
    pub tail_ns: Option<Number>,
    /// The rate of a stream.
    pub rate_bps: Option<Number>,
    /// The same beside a stream the other way.
    pub duplex_bps: Option<Number>,
    /// Whether a finding is about it.
    pub bad: bool,
}

/// The matrix of a run, if it has one.
pub fn matrix(run: &Run) -> Option<MatrixView> {
    let matrix = Matrix::of(run)?;
    let blamed = blame::blames(&matrix);
    let mut pairs: BTreeMap<Pair, MatrixPair> = BTreeMap::new();
    for ((stage, kind, (src, dst)), reading) in &matrix.readings {
        if *stage != Stage::Together {
            continue;
        }
        let one = pairs.entry((*src, *dst)).or_insert_with(|| MatrixPair {
            src: *src,
            dst: *dst,
            latency_ns: None,
            tail_ns: None,
            rate_bps: None,
            duplex_bps: None,
            bad: blamed.iter().any(|blame| blame.whom.is_of((*src, *dst))),
        });
        match kind {
            Kind::Latency => {
                one.latency_ns = Some(Number(reading.value));
                one.tail_ns = reading.tail.map(Number);
            }
            Kind::Stream => one.rate_bps = Some(Number(reading.value)),
            Kind::Duplex => one.duplex_bps = Some(Number(reading.value)),
        }
    }
    Some(MatrixView {
        network: matrix.network,
        hosts: matrix.hosts,
        pairs: pairs.into_values().collect(),
    })
}
