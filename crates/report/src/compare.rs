//! Two runs, cell by cell: what differs, by how much, and what cannot be told yet.
//!
//! Model:   a cell of one run is compared with the same cell of the other: with the same factors, save those that may differ.
//!          The unit is a launch's median. They differ where the rank sum of the launches says so, one is not
//!          in the interval of the medians' ratio (from the bootstrap over launches), and the ratio is at least the
//!          threshold away from one. The rank sums of all cells are judged together ([`sonde_stats::level_of_all`]): of equal runs
//!          one comparison in twenty finds any difference at all. Launches of one run may be more alike than those of two runs:
//!          where runs before tell how far apart equal ones are ([`Chronicle`]), nothing below that differs, but once in twenty
//!          comparisons. Nothing that differs without that is told as a difference (`~`). Where there are fewer
//!          than six launches, or a change of the size asked for of one cell alone would be missed more often than once in ten, the
//!          number of launches that are needed stands beside it; where equal runs are farther apart than this change, none are
//!          enough. Where a cell is in one run only, the factors are named in which it differs from the nearest cell of the
//!          other.
//! Source:  Hoefler & Belli, SC'15, rule 5; Mann & Whitney 1947; Noether 1987; Benjamini & Hochberg 1995.
//! Units:   ratios; thousandths.
//! Checked: `a_change_is_found`, `the_same_is_the_same`, `few_launches_ask_for_more`, `higher_is_better_for_rates`,
//!          `what_differs_is_named`, `what_may_differ_does`, `equal_runs_differ_rarely`, `a_planted_change_is_found`,
//!          `what_equal_runs_differ_by_is_no_change`; the sentences of `text`.

#[cfg(test)]
mod chance;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{CellRecord, Factors, KnobValues, Number, Quantity, Repetition, Run};
use sonde_stats::{RankSum, Ratio, is_apart, launches_wanted, level_of_all, rank_sum, ratio};

use crate::history::Chronicle;

pub use text::compare_table;
pub(crate) use text::{beside, named};

/// In which share of comparisons of equal runs chance finds a difference.
const SIGNIFICANCE: f64 = 0.05;
/// The bootstrap draws the same each time.
const SEED: u64 = 1;

/// What counts as a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// A ratio nearer to one than this is none, in thousandths.
    pub threshold_per_mille: u64,
    /// The change that is to be found, in thousandths, for the number of launches needed.
    pub detect_per_mille: u64,
    /// Factors in which the two may differ: names of [`Factors`], or of knobs.
    pub ignore: BTreeSet<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            threshold_per_mille: 20,
            detect_per_mille: 50,
            ignore: BTreeSet::new(),
        }
    }
}

/// How a cell of the second run is to that of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Lower latency or cost, or higher rate.
    Better,
    /// Higher latency or cost, or lower rate.
    Worse,
    /// No difference was found.
    Same,
    /// There are too few launches to find any.
    Unsure,
}

/// One cell of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareRow {
    /// The cell in the first run.
    pub cell_a: String,
    /// The cell in the second run; the same unless some factors may differ.
    pub cell_b: String,
    /// What is compared.
    pub quantity: Quantity,
    /// The factors of the first cell, as in a row.
    pub probe: String,
    /// Of throughput.
    pub mode: Option<String>,
    /// Of the first cell.
    pub network: String,
    /// The channel.
    pub path: String,
    /// How bytes are handed over, in the first run.
    #[serde(default)]
    pub method: Option<String>,
    /// `block` or `poll`, in the first run.
    #[serde(default)]
    pub wait: Option<String>,
    /// Background traffic.
    pub load: Option<String>,
    /// User bytes in a message.
    pub size_bytes: u64,
    /// What else was set.
    pub knobs: KnobValues,
    /// Launches of the first run.
    pub launches_a: u64,
    /// Launches of the second run.
    pub launches_b: u64,
    /// The median of the launches' medians, in the quantity's unit.
    pub p50_a: Number,
    /// The same of the second run.
    pub p50_b: Number,
    /// The second over the first; null below six launches.
    pub ratio: Option<Number>,
    /// Lower end of its interval at 95 %.
    pub ratio_low: Option<Number>,
    /// Upper end of its interval at 95 %.
    pub ratio_high: Option<Number>,
    /// Of the rank sum.
    pub p: Number,
    /// How far apart equal runs are here, as a share: as the runs before say, but once in twenty comparisons by chance. What is nearer
    /// is no change. Null where they are too few to tell.
    #[serde(default)]
    pub equal_runs_apart: Option<Number>,
    /// What follows.
    pub change: Change,
    /// Launches of each run that would find the change asked for nine times in ten, where there are fewer and where any number would.
    pub launches_wanted: Option<u64>,
}

/// A factor in which cells of the two runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// A name of the factors, or a knob.
    pub factor: String,
    /// What it is in the first run, of cells that only this has; empty where nothing is set.
    pub a: Vec<String>,
    /// What it is in the second run.
    pub b: Vec<String>,
    /// Whether the runs may differ in it (`--ignore`).
    pub may_differ: bool,
}

/// Two runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The first run.
    pub run_a: String,
    /// The second run.
    pub run_b: String,
    /// What follows, in one sentence.
    pub sentence: String,
    /// The factors in which cells that one run alone has differ from those of the other, the most frequent first.
    pub differences: Vec<Difference>,
    /// What both have, in the order of the first.
    pub rows: Vec<CompareRow>,
    /// Cells that only the first has a measurement of.
    pub only_a: Vec<String>,
    /// Cells that only the second has a measurement of.
    pub only_b: Vec<String>,
}

/// Runs that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// A name that is not a factor.
    #[error(
        "`{name}` is not a factor in which runs can differ: write one of {known}, or a knob of the run"
    )]
    Unknown {
        /// What was written.
        name: String,
        /// What there is.
        known: String,
    },
    /// Two cells of one run are the same but for what may differ.
    #[error(
        "run {run} has {cell} several times, which differ only in what is to be ignored ({ignored}): ignore less"
    )]
    Ambiguous {
        /// The run.
        run: String,
        /// A cell in words.
        cell: String,
        /// In what it differs from the other.
        ignored: String,
    },
}

const FACTORS: [&str; 7] = [
    "attachment",
    "hosts",
    "method",
    "network",
    "profile",
    "testbed",
    "wait",
];

/// Compares `b` with `a`; `past` has the runs before that say how far apart equal ones are.
///
/// # Errors
/// A factor to ignore that is none; cells of one run that become the same.
pub fn compare(
    a: &Run,
    b: &Run,
    past: &Chronicle,
    limits: &Limits,
) -> Result<Comparison, CompareError> {
    check(limits, [a, b])?;
    let (of_a, of_b) = (keyed(a, limits)?, keyed(b, limits)?);
    let mut pairs = Vec::new();
    let mut only_a: Vec<String> = Vec::new();
    for cell in a.cells.iter().filter(|cell| is_result(cell)) {
        let known = of_b.get(&key(&cell.factors, limits));
        let medians_a = medians(a, cell);
        let pair = known.map(|other| (*other, medians(b, other)));
        match pair.filter(|(_, medians_b)| !medians_b.is_empty() && !medians_a.is_empty()) {
            Some((other, medians_b)) => pairs.push(Pair {
                cells: [cell, other],
                estimate: ratio(&medians_b, &medians_a, SEED),
                test: rank_sum(&medians_a, &medians_b),
                medians: [medians_a, medians_b],
            }),
            None if !medians_a.is_empty() => only_a.push(cell.id.clone()),
            None => {}
        }
    }
    let in_b = b.cells.iter().filter(|cell| is_result(cell));
    let only_b: Vec<String> = in_b
        .filter(|cell| {
            let other = of_a.get(&key(&cell.factors, limits));
            other.is_none_or(|other| medians(a, other).is_empty()) && !medians(b, cell).is_empty()
        })
        .map(|cell| cell.id.clone())
        .collect();
    let differences = differences([(a, &only_a), (b, &only_b)], limits);
    let rows = rows(&pairs, past, limits);
    let sentence = text::sentence(&rows, &differences, limits);
    Ok(Comparison {
        run_a: a.head.id.clone(),
        run_b: b.head.id.clone(),
        sentence,
        differences,
        rows,
        only_a,
        only_b,
    })
}

/// Of so many cells of each run the nearest of the other is looked for.
const COMPARED: usize = 128;

/// A factor of a cell, or a knob.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    name: String,
    value: String,
}

/// What is set of a cell.
type Members = BTreeSet<Member>;

/// The names of what is not the same of two cells.
fn apart<'m>(one: &'m Members, other: &'m Members) -> BTreeSet<&'m str> {
    let members = one.symmetric_difference(other);
    members.map(|member| member.name.as_str()).collect()
}

fn value<'m>(of: &'m Members, name: &str) -> Option<&'m str> {
    let mut members = of.iter();
    let member = members.find(|member| member.name == name)?;
    Some(&member.value)
}

/// The factors in which cells of one run differ from the nearest of the other.
fn differences(sides: [(&Run, &[String]); 2], limits: &Limits) -> Vec<Difference> {
    let members = |(run, only): (&Run, &[String])| -> Vec<Members> {
        let is_only = |cell: &&CellRecord| only.contains(&cell.id);
        let cells = run.cells.iter().filter(is_only).take(COMPARED);
        cells.map(|cell| members(&cell.factors, limits)).collect()
    };
    let [of_a, of_b] = sides.map(members);
    let mut found: BTreeMap<&str, (usize, [BTreeSet<&str>; 2])> = BTreeMap::new();
    for one in &of_a {
        let Some(nearest) = of_b.iter().min_by_key(|other| apart(one, other).len()) else {
            continue;
        };
        for name in apart(one, nearest) {
            let (count, values) = found.entry(name).or_default();
            *count += 1;
            values[0].extend(value(one, name));
            values[1].extend(value(nearest, name));
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let is_knob = |name: &str| {
        let mut cells = sides.iter().flat_map(|(run, _)| &run.cells);
        cells.any(|cell| cell.factors.knobs.contains_key(name))
    };
    let difference = |(name, (_, values)): (&str, (usize, [BTreeSet<&str>; 2]))| {
        let [a, b] = values.map(|values| values.into_iter().map(str::to_owned).collect());
        Difference {
            factor: name.into(),
            a,
            b,
            may_differ: FACTORS.contains(&name) || is_knob(name),
        }
    };
    found.into_iter().map(difference).collect()
}

/// Factors by their names, without those that may differ; what is not set is absent.
fn members(factors: &Factors, limits: &Limits) -> Members {
    let value = serde_json::to_value(factors).unwrap_or_default();
    let own = value.as_object().into_iter().flatten();
    let own = own.filter(|(name, value)| *name != "knobs" && !value.is_null());
    let own = own.map(|(name, value)| {
        let text = match (value.as_str(), value.as_array()) {
            (Some(text), _) => text.to_owned(),
            (_, Some(all)) => {
                let all = all.iter().filter_map(|one| one.as_str());
                all.collect::<Vec<_>>().join(" ")
            }
            _ => value.to_string(),
        };
        (name.clone(), text)
    });
    let knobs = factors.knobs.iter();
    let knobs = knobs.map(|(name, value)| (name.clone(), value.clone()));
    let all = own.chain(knobs).map(|(name, value)| Member { name, value });
    all.filter(|member| !limits.ignore.contains(&member.name))
        .collect()
}

pub(crate) fn is_result(cell: &CellRecord) -> bool {
    !cell.factors.knobs.contains_key("reference")
}

fn check(limits: &Limits, runs: [&Run; 2]) -> Result<(), CompareError> {
    let cells = || runs.iter().flat_map(|run| &run.cells);
    let is_knob = |name: &String| cells().any(|cell| cell.factors.knobs.contains_key(name));
    let bad = limits
        .ignore
        .iter()
        .find(|name| !FACTORS.contains(&name.as_str()) && !is_knob(name));
    match bad {
        None => Ok(()),
        Some(name) => Err(CompareError::Unknown {
            name: name.clone(),
            known: FACTORS.join(", "),
        }),
    }
}

/// A cell's factors without those that may differ, as text.
pub(crate) fn key(factors: &Factors, limits: &Limits) -> String {
    let mut factors = factors.clone();
    factors
        .knobs
        .retain(|name, _| !limits.ignore.contains(name));
    let mut value = serde_json::to_value(factors).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !limits.ignore.contains(name));
    }
    value.to_string()
}

fn keyed<'r>(
    run: &'r Run,
    limits: &Limits,
) -> Result<BTreeMap<String, &'r CellRecord>, CompareError> {
    let mut all: BTreeMap<String, &CellRecord> = BTreeMap::new();
    for cell in run.cells.iter().filter(|cell| is_result(cell)) {
        if let Some(other) = all.insert(key(&cell.factors, limits), cell) {
            let free = Limits::default();
            let [one, other] = [other, cell].map(|cell| members(&cell.factors, &free));
            let apart = limits
                .ignore
                .iter()
                .filter(|name| value(&one, name) != value(&other, name));
            return Err(CompareError::Ambiguous {
                run: run.head.id.clone(),
                cell: text::named(&cell.factors),
                ignored: apart.cloned().collect::<Vec<_>>().join(", "),
            });
        }
    }
    Ok(all)
}

/// The median of each launch of a cell.
pub(crate) fn medians(run: &Run, cell: &CellRecord) -> Vec<u64> {
    let (quantity, phase) = cell.factors.main();
    run.repetitions_of(&cell.id)
        .filter(Repetition::succeeded)
        .filter_map(|one| one.result.samples(quantity, phase)?.median())
        .collect()
}

/// A cell of both runs, and the medians of its launches.
struct Pair<'r> {
    cells: [&'r CellRecord; 2],
    medians: [Vec<u64>; 2],
    /// The second over the first.
    estimate: Option<Ratio>,
    test: Option<RankSum>,
}

/// All cells of both, judged together.
fn rows(pairs: &[Pair<'_>], past: &Chronicle, limits: &Limits) -> Vec<CompareRow> {
    // Those of too few launches are not judged.
    let judged = pairs.iter().filter(|pair| pair.estimate.is_some());
    let probabilities: Vec<f64> = judged.filter_map(|pair| Some(pair.test?.p)).collect();
    let level = level_of_all(&probabilities, SIGNIFICANCE);
    // Of one cell that alone differs.
    let alone = SIGNIFICANCE / pairs.len().max(1) as f64;
    let equal = past.scatter(limits.threshold_per_mille);
    let row = |pair: &Pair<'_>| {
        let [cell, _] = pair.cells;
        let apart = equal.apart(cell, alone);
        row(pair, [level, alone], apart, limits)
    };
    pairs.iter().map(row).collect()
}

fn row(pair: &Pair<'_>, levels: [f64; 2], apart: Option<f64>, limits: &Limits) -> CompareRow {
    let [cell, other] = pair.cells;
    let [a, b] = &pair.medians;
    let [level, alone] = levels;
    let (quantity, _) = cell.factors.main();
    let number = |value: f64| Number(value);
    let estimate = pair.estimate;
    let p = pair.test.map_or(1.0, |test| test.p);
    let is_hopeless = apart.is_some_and(|apart| apart * 1_000.0 >= limits.detect_per_mille as f64);
    let wanted = launches_wanted(&[a, b], limits.detect_per_mille, alone)
        .filter(|wanted| !is_hopeless && *wanted > a.len().min(b.len()) as u64);
    let (middle_a, middle_b) = (middle(a), middle(b));
    let quotient = middle_b / middle_a.max(1.0);
    let threshold = limits.threshold_per_mille as f64 / 1_000.0;
    // Equal runs are as far apart below as above, by their logarithms.
    let is_beyond = apart.is_none_or(|apart| quotient.ln().abs() >= apart.ln_1p());
    let is_far = (quotient - 1.0).abs() >= threshold && is_beyond;
    let change = match is_apart(b, a, level, SEED) {
        None => Change::Unsure,
        Some(false) => Change::Same,
        Some(true) if !is_far => Change::Same,
        Some(true) if (quotient > 1.0) == higher_is_better(quantity) => Change::Better,
        Some(true) => Change::Worse,
    };
    let per_unit = quantity.per_unit() as f64;
    let factors = &cell.factors;
    CompareRow {
        cell_a: cell.id.clone(),
        cell_b: other.id.clone(),
        quantity,
        probe: factors.probe.clone(),
        mode: factors.mode.clone(),
        network: factors.network.clone(),
        path: factors.path.clone(),
        method: factors.method.clone(),
        wait: factors.wait.clone(),
        load: factors.load.clone(),
        size_bytes: factors.size_bytes,
        knobs: factors.knobs.clone(),
        launches_a: a.len() as u64,
        launches_b: b.len() as u64,
        p50_a: number(middle_a / per_unit),
        p50_b: number(middle_b / per_unit),
        ratio: estimate.map(|one| number(one.value)),
        ratio_low: estimate.map(|one| number(one.low)),
        ratio_high: estimate.map(|one| number(one.high)),
        p: number(p),
        equal_runs_apart: apart.map(number),
        change,
        // What was found needs no more.
        launches_wanted: wanted.filter(|_| matches!(change, Change::Same | Change::Unsure)),
    }
}

pub(crate) fn middle(values: &[u64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half] as f64
    } else {
        f64::midpoint(sorted[half - 1] as f64, sorted[half] as f64)
    }
}

pub(crate) fn higher_is_better(quantity: Quantity) -> bool {
    matches!(
        quantity,
        Quantity::ThroughputBps | Quantity::RatePerS | Quantity::MopPerS
    )
}

impl Comparison {
    /// Whether any cell became worse.
    pub fn is_worse(&self) -> bool {
        self.rows.iter().any(|row| row.change == Change::Worse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    /// A run with one latency cell on `network`, whose launches have these medians.
    pub(super) fn run(id: &str, network: &str, medians: &[u64]) -> Run {
        let mut run = Runs::new()
            .network(net(network))
            .latency(network, "tcp", 1, 20_000)
            .done();
        run.head.id = id.into();
        let one = run.launches[0].clone();
        run.launches = medians
            .iter()
            .zip(0..)
            .map(|(median, index)| {
                let mut launch = one.clone();
                let result = &mut launch.results[0];
                result.index = index;
                for series in &mut result.series {
                    series.series = [*median].into_iter().collect();
                }
                launch
            })
            .collect();
        run
    }

    pub(super) const STEADY: [u64; 8] = [1_000, 1_004, 998, 1_001, 996, 1_003, 1_000, 999];

    pub(super) fn times(per_mille: u64) -> Vec<u64> {
        STEADY.iter().map(|ns| ns * per_mille / 1_000).collect()
    }

    fn compared(a: &[u64], b: &[u64]) -> CompareRow {
        let found = compare(
            &run("a", "wire", a),
            &run("b", "wire", b),
            &Chronicle::default(),
            &Limits::default(),
        );
        found.unwrap().rows.remove(0)
    }

    #[test]
    fn a_change_is_found() {
        let worse = compared(&STEADY, &times(1_050));
        assert_eq!((worse.change, worse.launches_wanted), (Change::Worse, None));
        let (low, high) = (worse.ratio_low.unwrap().0, worse.ratio_high.unwrap().0);
        assert!(1.04 < low && high < 1.06 && worse.p.0 < 0.001);
        assert_eq!(compared(&STEADY, &times(900)).change, Change::Better);
    }

    #[test]
    fn the_same_is_the_same() {
        assert_eq!(compared(&STEADY, &STEADY).change, Change::Same);
        // Significant and too small to matter.
        let little = compared(&STEADY, &times(1_010));
        assert!(
            little.change == Change::Same && little.p.0 < 0.05,
            "{little:?}"
        );
    }

    #[test]
    fn few_launches_ask_for_more() {
        let three = compared(&STEADY[..3], &times(2_000)[..3]);
        assert_eq!((three.change, three.ratio), (Change::Unsure, None));
        assert!(three.launches_wanted.unwrap() >= 6);
        let wild = [1_000, 1_400, 800, 1_200, 900, 1_100];
        let row = compared(&wild, &wild);
        assert!(
            row.change == Change::Same && row.launches_wanted.unwrap() > 50,
            "{row:?}"
        );
    }

    #[test]
    fn higher_is_better_for_rates() {
        for (quantity, better) in [
            (Quantity::ThroughputBps, true),
            (Quantity::RatePerS, true),
            (Quantity::LatencyNs, false),
            (Quantity::ResponseNs, false),
            (Quantity::StartupNs, false),
        ] {
            assert_eq!(higher_is_better(quantity), better, "{quantity:?}");
        }
    }

    #[test]
    fn what_differs_is_named() {
        let (a, mut b) = (run("a", "wire", &STEADY), run("b", "wan", &STEADY));
        let found = compare(&a, &b, &Chronicle::default(), &Limits::default()).unwrap();
        assert!(found.rows.is_empty() && !found.is_worse());
        assert_eq!(found.only_a, [a.cells[0].id.clone()]);
        assert_eq!(found.only_b, [b.cells[0].id.clone()]);
        let network = Difference {
            factor: "network".into(),
            a: vec!["wire".into()],
            b: vec!["wan".into()],
            may_differ: true,
        };
        assert_eq!(found.differences, std::slice::from_ref(&network));
        let free = ["network".to_owned()].into();
        let limits = Limits {
            ignore: free,
            ..Limits::default()
        };
        assert_eq!(
            compare(&a, &b, &Chronicle::default(), &limits)
                .unwrap()
                .differences,
            []
        );
        b.cells[0].factors.size_bytes = 64;
        b.cells[0]
            .factors
            .knobs
            .insert("sndbuf".into(), "64KiB".into());
        let found = compare(&a, &b, &Chronicle::default(), &Limits::default()).unwrap();
        let named: Vec<_> = found
            .differences
            .iter()
            .map(|one| (&*one.factor, one.may_differ))
            .collect();
        assert_eq!(
            named,
            [("network", true), ("size_bytes", false), ("sndbuf", true)]
        );
        assert_eq!(
            (found.differences[2].a.len(), &*found.differences[2].b[0]),
            (0, "64KiB")
        );
    }

    #[test]
    fn what_may_differ_does() {
        let (a, b) = (run("a", "wire", &STEADY), run("b", "wan", &times(1_100)));
        let limits = |name: &str| Limits {
            ignore: [name.to_string()].into(),
            ..Limits::default()
        };
        let found = compare(&a, &b, &Chronicle::default(), &limits("network")).unwrap();
        assert!(found.is_worse() && found.only_a.is_empty());
        // A knob that one of them has and the other has not.
        let mut set = a.clone();
        let knobs = &mut set.cells[0].factors.knobs;
        knobs.insert("sndbuf".into(), "64KiB".into());
        assert!(
            compare(&a, &set, &Chronicle::default(), &Limits::default())
                .unwrap()
                .rows
                .is_empty()
        );
        let found = compare(&a, &set, &Chronicle::default(), &limits("sndbuf")).unwrap();
        assert_eq!((found.rows.len(), found.only_a.len()), (1, 0));
        let error = compare(&a, &b, &Chronicle::default(), &limits("colour"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`colour`") && error.contains("network"),
            "{error}"
        );
        let mut both = a.clone();
        both.cells.extend(b.cells.clone());
        let error = compare(&both, &b, &Chronicle::default(), &limits("network")).unwrap_err();
        assert!(error.to_string().contains("ignore less"), "{error}");
    }
}
