//! Who slows whom: each workload's own figure beside others against the same alone, of a stored run.
//!
//! Model:   a slow-down is how many times as long the same takes: of a rate alone over together, of a time together over alone, of the
//!          medians of the launches' medians, with the interval of that ratio over launches ([`sonde_stats::ratio`]). It is slowed where the
//!          interval is above [`SLOWED`], not slowed where it is below, and else, and below six launches, inconclusive. On a network
//!          that takes no time (`wire`, or a loopback) all share the hosts' CPUs alone: its slow-down stands beside each other one.
//!          A network has a matrix: who is measured in rows, what is beside it in columns, single ones first.
//! Source:  requirement N47 of the studies of workstation clusters, for both at once on one network, each slowed figure reported.
//! Units:   figures in the unit of their quantity; ratios.
//! Checked: `planted_figures_become_the_matrix_of_the_page`, `few_repetitions_are_inconclusive`, `who_hurts_whom_is_said`,
//!          `sets_of_the_same_size_have_columns_of_their_own`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::workload::{self, AND, DURING};
use sonde_measure::{CellRecord, Number, Phase, Quantity, Repetition, Run, Testbed};
use sonde_stats::{Series, ratio};

use crate::format::reasons;
use crate::words::contention as words;

/// From here on it is slowed: what is less nobody notices, and hosts that run more programs have it anyway.
pub const SLOWED: f64 = 1.1;
/// The bootstrap draws the same each time.
const SEED: u64 = 1;
/// The network whose slow-down is that of the CPUs.
pub const CPU_ALONE: &str = "wire";
/// The column of all others at once.
const ALL: &str = "all others";

/// What becomes of a workload beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlowdownState {
    /// Its interval is above 1.1.
    Slowed,
    /// Its interval is below 1.1.
    NotSlowed,
    /// Its interval holds 1.1, or there are fewer than six repetitions.
    Inconclusive,
    /// It has no figure, alone or beside the others.
    NotMeasured,
}

/// A workload beside others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// The network that it is measured on, with its knobs.
    pub network: String,
    /// What is slowed, in the words of the command line.
    pub workload: String,
    /// What is measured at once with it, and the level of a background load.
    pub beside: Vec<String>,
    /// Its own figure.
    pub quantity: Quantity,
    /// The cell alone; null where none was planned.
    pub cell_alone: Option<String>,
    /// The cell beside the others.
    pub cell: String,
    /// The median of the repetitions' medians alone, in the quantity's unit.
    pub alone: Option<Number>,
    /// The same beside the others.
    pub together: Option<Number>,
    /// How many times as long it takes.
    pub slowdown: Option<Number>,
    /// Lower end of its interval at 95 %; null below six repetitions.
    pub low: Option<Number>,
    /// Upper end of its interval at 95 %.
    pub high: Option<Number>,
    /// Repetitions of the fewer of both.
    pub launches: u64,
    /// What follows.
    pub state: SlowdownState,
    /// Why it is inconclusive or not measured.
    pub why: Option<String>,
    /// The slow-down of the same on `wire`, where only the hosts' CPUs are shared; null where that was not measured.
    pub cpu_slowdown: Option<Number>,
}

/// What a run says of workloads at once.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Contention {
    /// How long they were measured at once.
    pub during: Option<String>,
    /// Each workload beside each set of others, in the order in which they were asked for.
    pub slowdowns: Vec<Slowdown>,
    /// Who hurts whom, a sentence for each network, and what a second network brings.
    pub sentences: Vec<String>,
}

/// The slow-downs of a network, as people read them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowdownMatrix {
    /// The network of what is measured, with its knobs.
    pub network: String,
    /// Whether all share the hosts' CPUs alone on it.
    pub is_cpu: bool,
    /// What runs beside it, single ones first.
    pub columns: Vec<String>,
    /// Who is measured.
    pub rows: Vec<SlowdownRow>,
}

/// A workload beside each of the columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowdownRow {
    /// In the words of the command line.
    pub workload: String,
    /// One for each column; null where they were not measured at once.
    pub cells: Vec<Option<Slowdown>>,
}

/// Workloads at once, as the page shows them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentionView {
    /// How long they were measured at once.
    pub during: Option<String>,
    /// Who hurts whom.
    pub sentences: Vec<String>,
    /// Why slow-downs are inconclusive or not measured.
    pub reasons: Vec<String>,
    /// One for each network.
    pub matrices: Vec<SlowdownMatrix>,
}

impl ContentionView {
    /// Of a run; none of one that has no sets of workloads.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let found = Contention::of(run);
        let matrices = found.matrices();
        (!matrices.is_empty()).then_some(Self {
            during: found.during.clone(),
            reasons: found.reasons(),
            sentences: found.sentences,
            matrices,
        })
    }
}

/// Whether more of it is better.
const fn is_rate(quantity: Quantity) -> bool {
    matches!(quantity, Quantity::ThroughputBps | Quantity::RatePerS)
}

/// The launches' medians of a cell's own figure.
fn medians(run: &Run, cell: &CellRecord) -> Vec<u64> {
    let quantity = workload::figure(&cell.factors);
    let median = |one: Repetition<'_>| one.result.samples(quantity, Phase::Warm)?.median();
    let all = run.repetitions_of(&cell.id);
    all.filter(Repetition::succeeded)
        .filter_map(median)
        .collect()
}

fn middle(values: &[u64]) -> Option<u64> {
    values.iter().copied().collect::<Series>().median()
}

/// Whether two cells are of one workload on one network, whatever else is there.
fn is_same(one: &CellRecord, other: &CellRecord) -> bool {
    one.factors.network == other.factors.network
        && workload::name(&one.factors) == workload::name(&other.factors)
}

fn of_cell(run: &Run, cells: &[&CellRecord], cell: &CellRecord) -> Option<Slowdown> {
    let beside = cell.factors.load.as_deref()?.split(AND).map(in_words);
    let alone = cells
        .iter()
        .find(|one| one.factors.load.is_none() && is_same(one, cell));
    let quantity = workload::figure(&cell.factors);
    let of_alone = alone.map_or_else(Vec::new, |alone| medians(run, alone));
    let of_both = medians(run, cell);
    let (first, second) = match is_rate(quantity) {
        true => (&of_alone, &of_both),
        false => (&of_both, &of_alone),
    };
    let unit = quantity.per_unit();
    let figure = |values: &[u64]| middle(values).map(|value| Number::of(value, unit));
    let known = ratio(first, second, SEED);
    let plain = middle(first).zip(middle(second).filter(|value| *value > 0));
    let plain = plain.map(|(first, second)| first as f64 / second as f64);
    let value = known.map(|known| known.value).or(plain);
    let launches = of_alone.len().min(of_both.len());
    let (state, why) = match (value, known) {
        (None, _) => (
            SlowdownState::NotMeasured,
            Some(none_of(run, cell, alone.copied())),
        ),
        (Some(_), None) => (
            SlowdownState::Inconclusive,
            Some(words::too_few(launches as u64)),
        ),
        (Some(_), Some(known)) if known.low > SLOWED => (SlowdownState::Slowed, None),
        (Some(_), Some(known)) if known.high < SLOWED => (SlowdownState::NotSlowed, None),
        (Some(_), Some(known)) => (
            SlowdownState::Inconclusive,
            Some(words::undecided(known.low, known.high, SLOWED)),
        ),
    };
    Some(Slowdown {
        network: cell.factors.network.clone(),
        workload: workload::name(&cell.factors),
        beside: beside.collect(),
        quantity,
        cell_alone: alone.map(|alone| alone.id.clone()),
        cell: cell.id.clone(),
        alone: figure(&of_alone),
        together: figure(&of_both),
        slowdown: value.map(Number),
        low: known.map(|known| Number(known.low)),
        high: known.map(|known| Number(known.high)),
        launches: launches as u64,
        state,
        why,
        cpu_slowdown: None,
    })
}

/// What is beside a cell as the command line has it: of a load the level alone is in the cell.
fn in_words(one: &str) -> String {
    match one.starts_with(|letter: char| letter.is_ascii_digit()) {
        true => format!("load:{one}"),
        false => one.to_owned(),
    }
}

/// Why there is no slow-down.
fn none_of(run: &Run, cell: &CellRecord, alone: Option<&CellRecord>) -> String {
    let Some(alone) = alone else {
        return words::NOT_ALONE.into();
    };
    let failed = [alone, cell].into_iter().find_map(|cell| {
        let skipped = cell.skipped.clone();
        let all = || run.repetitions_of(&cell.id);
        skipped.or_else(|| all().find_map(|one| one.result.failure.clone()))
    });
    failed.unwrap_or_else(|| words::NO_FIGURE.into())
}

impl Contention {
    /// Of a run, or of what it has so far.
    pub fn of(run: &Run) -> Self {
        let is_of_set = |cell: &&CellRecord| cell.factors.knobs.contains_key(DURING);
        let cells: Vec<&CellRecord> = run.cells.iter().filter(is_of_set).collect();
        let slowdowns = cells.iter().filter_map(|cell| of_cell(run, &cells, cell));
        let mut slowdowns: Vec<Slowdown> = slowdowns.collect();
        let is_cpu = |network: &str| network == CPU_ALONE;
        let of_cpu: Vec<Slowdown> = slowdowns
            .iter()
            .filter(|one| is_cpu(&one.network))
            .cloned()
            .collect();
        for one in slowdowns.iter_mut().filter(|one| !is_cpu(&one.network)) {
            let same = of_cpu
                .iter()
                .find(|cpu| cpu.workload == one.workload && cpu.beside == one.beside);
            one.cpu_slowdown = same.and_then(|cpu| cpu.slowdown);
        }
        let networks: BTreeSet<&str> = slowdowns.iter().map(|one| one.network.as_str()).collect();
        let mut sentences: Vec<String> = networks
            .iter()
            .filter_map(|network| words::who_hurts_whom(network, &slowdowns))
            .collect();
        sentences.extend(
            slowdowns
                .iter()
                .filter_map(|one| words::apart(one, &slowdowns)),
        );
        let testbed = cells.first().map(|cell| cell.factors.testbed);
        if testbed == Some(Testbed::Local) {
            sentences.push(words::LOOPBACK.into());
        }
        let during = cells
            .first()
            .and_then(|cell| cell.factors.knobs.get(DURING));
        Self {
            during: during.cloned(),
            slowdowns,
            sentences,
        }
    }

    /// Why slow-downs are inconclusive or not measured, each reason once.
    pub fn reasons(&self) -> Vec<String> {
        let of = self.slowdowns.iter().filter_map(|one| {
            let why = one.why.as_deref()?;
            Some((one.name(), why))
        });
        reasons(self.slowdowns.len(), of)
    }

    /// A matrix for each network, in the order of the run.
    pub fn matrices(&self) -> Vec<SlowdownMatrix> {
        let networks = distinct(self.slowdowns.iter().map(|one| one.network.clone()));
        let matrices = networks.into_iter().map(|network| {
            let here = self.slowdowns.iter().filter(|one| one.network == network);
            matrix(&network, &here.collect::<Vec<_>>())
        });
        matrices.collect()
    }
}

fn matrix(network: &str, here: &[&Slowdown]) -> SlowdownMatrix {
    let names = distinct(here.iter().map(|one| one.workload.clone()));
    // Where each has one set of several beside it, that is all others.
    let sets = |name: &String| {
        let own = here.iter().filter(|one| one.workload == *name);
        own.filter(|one| one.beside.len() > 1).count()
    };
    let has_all = names.iter().all(|name| sets(name) < 2);
    let by = |one: &Slowdown| match &one.beside[..] {
        [one] => one.clone(),
        _ if has_all => ALL.to_owned(),
        several => several.join(AND),
    };
    let mut columns: Vec<(usize, String)> = Vec::new();
    for one in here {
        let column = by(one);
        if columns.iter().all(|(_, known)| *known != column) {
            columns.push((one.beside.len(), column));
        }
    }
    columns.sort_by_key(|(beside, _)| *beside);
    let columns: Vec<String> = columns.into_iter().map(|(_, column)| column).collect();
    let rows = names.into_iter().map(|workload| {
        let cell = |column: &String| {
            let mut own = here.iter().filter(|one| one.workload == workload);
            own.find(|one| by(one) == *column).map(|one| (*one).clone())
        };
        let cells = columns.iter().map(cell).collect();
        SlowdownRow { workload, cells }
    });
    SlowdownMatrix {
        network: network.into(),
        is_cpu: network == CPU_ALONE,
        rows: rows.collect(),
        columns,
    }
}

/// Each once, in the order of their first appearance.
fn distinct(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for one in all {
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known
}

impl Slowdown {
    /// What is slowed, by whom and where.
    pub fn name(&self) -> String {
        words::name(self)
    }
}

impl SlowdownState {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Slowed => "slowed",
            Self::NotSlowed => "not slowed",
            Self::Inconclusive => "inconclusive",
            Self::NotMeasured => "not measured",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::View;
    use crate::testing::{Runs, net};
    use sonde_measure::{CellResult, Factors, LaunchRecord, Layer, Measurement};

    /// A cell of a set on a network: `stream` or `latency`, and what is beside it.
    fn cell(network: &str, workload: &str, load: Option<&str>) -> CellRecord {
        let is_stream = workload == "stream";
        let factors = Factors {
            probe: if is_stream { "throughput" } else { workload }.into(),
            mode: is_stream.then(|| "stream".into()),
            layer: Layer::Transport,
            path: "tcp".into(),
            method: Some("plain".into()),
            knobs: [(DURING.to_owned(), "3s".to_owned())].into_iter().collect(),
            wait: Some("block".into()),
            network: network.into(),
            testbed: Testbed::Lab,
            hosts: vec!["h1".into(), "h2".into()],
            profile: Some("modern".into()),
            attachment: Some("tap".into()),
            load: load.map(Into::into),
            size_bytes: if is_stream { 1 << 20 } else { 1 },
        };
        CellRecord {
            id: factors.cell().unwrap(),
            factors,
            launches: 6,
            skipped: None,
        }
    }

    /// A run of these cells, with so many launches whose figure `of` says.
    fn run_of(
        cells: Vec<CellRecord>,
        launches: u64,
        of: impl Fn(&CellRecord, u64) -> Option<u64>,
    ) -> Run {
        let mut run = Runs::new()
            .network(net("ethernet-10"))
            .network(net("wire"))
            .done();
        run.cells = cells;
        for cell in run.cells.clone() {
            for index in 0..launches {
                let value = of(&cell, index);
                let measured = value.map(|value| Measurement {
                    touched: None,
                    quantity: workload::figure(&cell.factors),
                    phase: Phase::Warm,
                    step: None,
                    series: std::iter::once(value).collect(),
                    reason: None,
                });
                run.launches.push(LaunchRecord {
                    results: vec![CellResult {
                        cell: cell.id.clone(),
                        index,
                        failure: value.is_none().then(|| "h2 is gone".into()),
                        series: measured.into_iter().collect(),
                    }],
                    ..LaunchRecord::default()
                });
            }
        }
        run
    }

    /// A stream and a ping-pong alone and at once on these networks.
    fn run(networks: &[&str], launches: u64, of: impl Fn(&CellRecord, u64) -> Option<u64>) -> Run {
        let sets = [
            ("stream", None),
            ("latency", None),
            ("stream", Some("latency")),
            ("latency", Some("stream")),
        ];
        let cells = networks
            .iter()
            .flat_map(|network| sets.map(|(workload, beside)| cell(network, workload, beside)));
        run_of(cells.collect(), launches, of)
    }

    /// A stream of half its rate beside a ping-pong that takes three times as long; on `wire` nothing happens.
    fn planted(cell: &CellRecord, index: u64) -> Option<u64> {
        let is_alone = cell.factors.load.is_none() || cell.factors.network == "wire";
        Some(match (cell.factors.probe.as_str(), is_alone) {
            ("throughput", true) => 9_000_000 + index * 1_000,
            ("throughput", false) => 4_500_000 + index * 1_000,
            (_, true) => 200_000 + index,
            (_, false) => 600_000 + index,
        })
    }

    #[test]
    fn planted_figures_become_the_matrix_of_the_page() {
        let view = View::of(&run(&["ethernet-10", "wire"], 6, planted));
        let found = view.contention.unwrap();
        assert_eq!(found.during.as_deref(), Some("3s"));
        assert_eq!(found.sentences.len(), 2);
        let [shared, on_wire] = &found.matrices[..] else {
            panic!("{found:?}");
        };
        assert_eq!(
            (&*shared.network, shared.is_cpu, on_wire.is_cpu),
            ("ethernet-10", false, true)
        );
        assert_eq!(shared.columns, ["latency", "stream"]);
        let [stream, latency] = &shared.rows[..] else {
            panic!("{shared:?}");
        };
        assert_eq!(
            (&*stream.workload, &*latency.workload),
            ("stream", "latency")
        );
        // Nothing is measured beside itself.
        assert_eq!((&stream.cells[1], &latency.cells[0]), (&None, &None));
        let [stream, latency] =
            [&stream.cells[0], &latency.cells[1]].map(|one| one.as_ref().unwrap());
        assert!((stream.slowdown.unwrap().0 - 2.0).abs() < 0.01);
        assert!((latency.slowdown.unwrap().0 - 3.0).abs() < 0.01);
        assert!(latency.low.unwrap() <= latency.slowdown.unwrap());
        assert_eq!(
            (latency.alone, latency.launches),
            (Some(Number(200_002.0)), 6)
        );
        for one in [stream, latency] {
            assert_eq!(one.state, SlowdownState::Slowed);
            assert!((one.cpu_slowdown.unwrap().0 - 1.0).abs() < 0.01);
        }
        let on_wire = on_wire.rows[0].cells[0].as_ref().unwrap();
        assert_eq!(
            (on_wire.state, on_wire.cpu_slowdown),
            (SlowdownState::NotSlowed, None)
        );
        // A run without sets has none.
        assert_eq!(View::of(&Runs::new().done()).contention, None);
    }

    #[test]
    fn sets_of_the_same_size_have_columns_of_their_own() {
        let network = "ethernet-10";
        let cells = |sets: &[(&str, Option<&str>)]| {
            let cells = sets
                .iter()
                .map(|(workload, beside)| cell(network, workload, *beside));
            run_of(cells.collect(), 6, planted)
        };
        let one = [
            ("stream", None),
            ("stream", Some("latency")),
            ("stream", Some("latency + 0.6")),
            ("stream", Some("0.6")),
        ];
        let columns = |run: &Run| Contention::of(run).matrices()[0].columns.clone();
        assert_eq!(columns(&cells(&one)), ["latency", "load:0.6", "all others"]);
        let two = [&one[..], &[("stream", Some("latency + nfs:write"))]].concat();
        assert_eq!(
            columns(&cells(&two)),
            [
                "latency",
                "load:0.6",
                "latency + load:0.6",
                "latency + nfs:write"
            ]
        );
    }

    #[test]
    fn few_repetitions_are_inconclusive() {
        let found = Contention::of(&run(&["ethernet-10"], 5, planted));
        let one = &found.slowdowns[0];
        assert_eq!((one.state, one.low), (SlowdownState::Inconclusive, None));
        assert!(one.slowdown.is_some() && one.why.as_deref().unwrap().contains("6 are needed"));
        // Scattered around the bound: no verdict either.
        let wild = |cell: &CellRecord, index: u64| match cell.factors.load {
            None => planted(cell, 0),
            Some(_) => Some(6_000_000 + index % 3 * 3_000_000),
        };
        let found = Contention::of(&run(&["ethernet-10"], 9, wild));
        let one = &found.slowdowns[0];
        assert_eq!(one.state, SlowdownState::Inconclusive, "{one:?}");
        assert!(one.why.as_deref().unwrap().contains("holds 1.1"));
        // What failed has no figure, and says why.
        let gone = |cell: &CellRecord, index: u64| {
            cell.factors.load.is_none().then(|| planted(cell, index))?
        };
        let found = Contention::of(&run(&["ethernet-10"], 6, gone));
        let one = &found.slowdowns[0];
        assert_eq!(
            (one.state, one.slowdown),
            (SlowdownState::NotMeasured, None)
        );
        assert_eq!(one.why.as_deref(), Some("h2 is gone"));
    }

    #[test]
    fn who_hurts_whom_is_said() {
        let found = Contention::of(&run(&["ethernet-10", "wire"], 6, planted));
        assert_eq!(
            found.sentences,
            [
                "ethernet-10: stream slows latency most, 3.00 times (1.00 by the CPUs alone); then latency stream 2.00.",
                "wire: nothing slows latency and stream."
            ]
        );
    }
}
