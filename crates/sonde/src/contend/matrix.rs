//! Who slows whom: each workload's own figure beside others against the same alone, of a stored run.
//!
//! Model:   a slow-down is how many times as long the same takes: of a rate alone over together, of a time together over alone, of the
//!          medians of the launches' medians, with the interval of that ratio over launches ([`sonde_stats::ratio`]). It is slowed where the
//!          interval is above [`SLOWED`], not slowed where it is below, and else, and below six launches, inconclusive. On a network
//!          that takes no time (`wire`, or a loopback) all share the hosts' CPUs alone: its slow-down stands beside each other one.
//! Source:  requirement N47 of the studies of workstation clusters, for both at once on one network, each slowed figure reported.
//! Units:   figures in the unit of their quantity; ratios.
//! Checked: `planted_figures_become_slow_downs`, `few_repetitions_are_inconclusive`, `who_hurts_whom_is_said`.

use super::workload;
use crate::layout::{AND, DURING};
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{CellRecord, Number, Phase, Quantity, Repetition, Run, Testbed};
use sonde_report::sheet;
use sonde_stats::{Series, ratio};
use std::collections::BTreeSet;

/// From here on it is slowed: what is less nobody notices, and hosts that run more programs have it anyway.
pub const SLOWED: f64 = 1.1;
/// The bootstrap draws the same each time.
const SEED: u64 = 1;
/// The network whose slow-down is that of the CPUs.
const CPU_ALONE: &str = "wire";

/// What becomes of a workload beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    pub state: State,
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
        (None, _) => (State::NotMeasured, Some(none_of(run, cell, alone.copied()))),
        (Some(_), None) => (
            State::Inconclusive,
            Some(format!(
                "{}: 6 are needed for an interval",
                sonde_report::counted(launches as u64, "repetition")
            )),
        ),
        (Some(_), Some(known)) if known.low > SLOWED => (State::Slowed, None),
        (Some(_), Some(known)) if known.high < SLOWED => (State::NotSlowed, None),
        (Some(_), Some(known)) => (
            State::Inconclusive,
            Some(format!(
                "its interval, {:.2} to {:.2}, holds {SLOWED}: more repetitions narrow it",
                known.low, known.high
            )),
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
        return "it was not measured alone".into();
    };
    let failed = [alone, cell].into_iter().find_map(|cell| {
        let skipped = cell.skipped.clone();
        let all = || run.repetitions_of(&cell.id);
        skipped.or_else(|| all().find_map(|one| one.result.failure.clone()))
    });
    failed.unwrap_or_else(|| "no repetition gave its figure".into())
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
            .filter_map(|network| who_hurts_whom(network, &slowdowns))
            .collect();
        sentences.extend(slowdowns.iter().filter_map(|one| apart(one, &slowdowns)));
        let testbed = cells.first().map(|cell| cell.factors.testbed);
        if testbed == Some(Testbed::Local) {
            sentences.push("This machine's loopback: all slow-downs are the CPUs'.".into());
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

    /// Prints it as a matrix for each network.
    pub fn print(&self, width: usize, print: impl Fn(&str)) {
        let mut networks: Vec<&str> = Vec::new();
        for one in &self.slowdowns {
            if !networks.contains(&one.network.as_str()) {
                networks.push(&one.network);
            }
        }
        for network in networks {
            let here = self.slowdowns.iter().filter(|one| one.network == network);
            let here: Vec<&Slowdown> = here.collect();
            let during = self.during.as_deref().unwrap_or("-");
            print(&format!(
                "{network}: how many times as long each takes beside others, {during} at once"
            ));
            print(&matrix(&here, width));
        }
        // One reason is often that of all.
        let mut reasons: Vec<(State, &str, Vec<&Slowdown>)> = Vec::new();
        for one in &self.slowdowns {
            let Some(why) = one.why.as_deref() else {
                continue;
            };
            match reasons
                .iter_mut()
                .find(|(state, known, _)| (*state, *known) == (one.state, why))
            {
                Some((.., all)) => all.push(one),
                None => reasons.push((one.state, why, vec![one])),
            }
        }
        for (_, why, of) in reasons {
            let which = match &of[..] {
                all if all.len() == self.slowdowns.len() => "all".to_owned(),
                some => some
                    .iter()
                    .map(|one| one.name())
                    .collect::<Vec<_>>()
                    .join(", "),
            };
            let word = of.first().map_or("", |one| one.word());
            print(&format!("{word}: {which}: {why}"));
        }
        for sentence in &self.sentences {
            print(sentence);
        }
    }
}

/// Rows: who is slowed. Columns: by whom. Below each row what the CPUs alone do, where that is known.
fn matrix(here: &[&Slowdown], width: usize) -> String {
    let (mut rows, mut columns): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for one in here {
        if !rows.contains(&one.workload.as_str()) {
            rows.push(&one.workload);
        }
        let by = one.by();
        if !columns.contains(&by) {
            columns.push(by);
        }
    }
    // Single ones first, all of them last.
    columns.sort_by_key(|column| column == ALL);
    let mut heads = vec!["slowed"];
    heads.extend(columns.iter().map(String::as_str));
    let mut lines = Vec::new();
    for row in rows {
        let cell = |of: &dyn Fn(&Slowdown) -> String| {
            let texts = columns.iter().map(|column| {
                let mut found = here.iter();
                let found = found.find(|one| one.workload == row && one.by() == *column);
                found.map_or_else(|| "-".to_owned(), |one| of(one))
            });
            texts.collect::<Vec<String>>()
        };
        let own = cell(&|one| one.text());
        lines.push([vec![row.to_owned()], own].concat());
        let is_known = |one: &&&Slowdown| one.workload == row && one.cpu_slowdown.is_some();
        if here.iter().any(|one| is_known(&one)) {
            let cpu = cell(&|one| match one.cpu_slowdown {
                Some(cpu) => format!("{:.2}", cpu.0),
                None => "-".into(),
            });
            lines.push([vec![format!("  by the CPUs alone ({CPU_ALONE})")], cpu].concat());
        }
    }
    sheet(&heads, lines).loose().text(width)
}

/// The column of all others at once.
const ALL: &str = "all others";

impl Slowdown {
    /// Its column.
    fn by(&self) -> String {
        match &self.beside[..] {
            [one] => one.clone(),
            _ => ALL.into(),
        }
    }

    /// What is slowed, and by whom.
    fn name(&self) -> String {
        format!(
            "{} beside {} on {}",
            self.workload,
            self.beside.join(AND),
            self.network
        )
    }

    const fn word(&self) -> &'static str {
        match self.state {
            State::Slowed => "slowed",
            State::NotSlowed => "not slowed",
            State::Inconclusive => "inconclusive",
            State::NotMeasured => "not measured",
        }
    }

    /// The figure, its interval, and what follows.
    fn text(&self) -> String {
        let Some(value) = self.slowdown else {
            return self.word().into();
        };
        match (self.low, self.high) {
            (Some(low), Some(high)) => {
                format!(
                    "{:.2} ({:.2}-{:.2}) {}",
                    value.0,
                    low.0,
                    high.0,
                    self.word()
                )
            }
            _ => format!("{:.2} {}", value.0, self.word()),
        }
    }
}

/// A sentence on a network: who slows whom most, and whom nothing slows.
fn who_hurts_whom(network: &str, all: &[Slowdown]) -> Option<String> {
    let here = || all.iter().filter(|one| one.network == network);
    let alone = || here().filter(|one| one.beside.len() == 1);
    let slowed = || alone().filter(|one| one.state == State::Slowed);
    let value = |one: &Slowdown| one.slowdown.map_or(0.0, |value| value.0);
    let mut parts = Vec::new();
    if let Some(worst) = slowed().max_by(|a, b| value(a).total_cmp(&value(b))) {
        parts.push(format!(
            "{} slows {} most, {:.2} times{}",
            worst.beside[0],
            worst.workload,
            value(worst),
            worst.cpu_slowdown.map_or_else(String::new, |cpu| {
                format!(" ({:.2} by the CPUs alone)", cpu.0)
            })
        ));
        let others = slowed().filter(|one| one.cell != worst.cell);
        let others: Vec<String> = others
            .map(|one| format!("{} {} {:.2}", one.beside[0], one.workload, value(one)))
            .collect();
        if !others.is_empty() {
            parts.push(format!("then {}", others.join(", ")));
        }
    }
    let names: BTreeSet<&str> = here().map(|one| one.workload.as_str()).collect();
    let unhurt = names.into_iter().filter(|name| {
        here()
            .filter(|one| one.workload == **name)
            .all(|one| one.state == State::NotSlowed)
    });
    let unhurt: Vec<&str> = unhurt.collect();
    if !unhurt.is_empty() {
        parts.push(format!("nothing slows {}", unhurt.join(" and ")));
    }
    if parts.is_empty() {
        here().next()?;
        parts.push("nothing is known to slow anything".into());
    }
    Some(format!("{network}: {}.", parts.join("; ")))
}

/// What a network of its own for another workload brings to this one.
fn apart(one: &Slowdown, all: &[Slowdown]) -> Option<String> {
    let [beside] = &one.beside[..] else {
        return None;
    };
    let (other, network) = beside.split_once('@')?;
    let shared = all.iter().find(|shared| {
        shared.network == one.network && shared.workload == one.workload && shared.beside == [other]
    })?;
    let (own, both) = (one.slowdown?, shared.slowdown?);
    Some(format!(
        "With {other} on {network}, {} takes {:.2} times as long as alone ({}), with both on {} {:.2} times ({}).",
        one.workload,
        own.0,
        one.word(),
        one.network,
        both.0,
        shared.word()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{blocks, tests::net};
    use crate::plan::Plan;
    use sonde_measure::{CellResult, LaunchRecord, Measurement};

    const PLAN: &str = "[testbed]\nkind = \"lab\"\n[[probe]]\nkind = \"throughput\"\nname = \"stream\"\n[[probe]]\n\
                        kind = \"latency\"\nname = \"latency\"\n[[load]]\ntogether = [\"stream\"]\n[[load]]\n\
                        together = [\"latency\"]\n[[load]]\ntogether = [\"stream\", \"latency\"]\n";

    /// A run of the plan on these networks, with so many launches whose figure `of` says by name and load.
    fn run(networks: &[&str], launches: u64, of: impl Fn(&CellRecord, u64) -> Option<u64>) -> Run {
        let plan = Plan::parse(PLAN).unwrap();
        let nets: Vec<_> = networks.iter().map(|name| net(name)).collect();
        let blocks = blocks(&plan, &nets).unwrap();
        let cells: Vec<CellRecord> = blocks
            .iter()
            .flat_map(|block| block.cells.clone())
            .collect();
        let mut run = Run {
            head: crate::measure::begun(PLAN.into(), 1).unwrap(),
            hosts: Vec::new(),
            networks: Vec::new(),
            launches: Vec::new(),
            events: Vec::new(),
            warnings: Vec::new(),
            cells,
        };
        for cell in run.cells.clone() {
            for index in 0..launches {
                let value = of(&cell, index);
                run.launches.push(LaunchRecord {
                    results: vec![CellResult {
                        cell: cell.id.clone(),
                        index,
                        failure: value.is_none().then(|| "h2 is gone".into()),
                        series: value
                            .map(|value| Measurement {
                                quantity: workload::figure(&cell.factors),
                                phase: Phase::Warm,
                                step: None,
                                series: std::iter::once(value).collect(),
                                reason: None,
                            })
                            .into_iter()
                            .collect(),
                    }],
                    ..LaunchRecord::default()
                });
            }
        }
        run
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
    fn planted_figures_become_slow_downs() {
        let found = Contention::of(&run(&["ethernet-10", "wire"], 6, planted));
        assert_eq!(found.during.as_deref(), Some("3s"));
        assert_eq!(found.slowdowns.len(), 4);
        let [stream, latency, on_wire, _] = &found.slowdowns[..] else {
            panic!("{found:?}");
        };
        assert_eq!(
            (&*stream.workload, &*stream.beside),
            ("stream", &["latency".to_owned()][..])
        );
        assert!((stream.slowdown.unwrap().0 - 2.0).abs() < 0.01);
        assert!((latency.slowdown.unwrap().0 - 3.0).abs() < 0.01);
        assert_eq!(latency.alone, Some(Number(200_002.0)));
        assert_eq!(
            (stream.state, latency.state),
            (State::Slowed, State::Slowed)
        );
        assert_eq!(
            (on_wire.state, on_wire.cpu_slowdown),
            (State::NotSlowed, None)
        );
        assert!((stream.cpu_slowdown.unwrap().0 - 1.0).abs() < 0.01);
        let mut text = String::new();
        let lines = std::cell::RefCell::new(&mut text);
        found.print(100, |line| {
            lines.borrow_mut().push_str(line);
            lines.borrow_mut().push('\n');
        });
        for part in [
            "ethernet-10: how many",
            "2.00 (2.00-2.00) slowed",
            "by the CPUs alone (wire)",
            "1.00",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn few_repetitions_are_inconclusive() {
        let found = Contention::of(&run(&["ethernet-10"], 5, planted));
        let one = &found.slowdowns[0];
        assert_eq!((one.state, one.low), (State::Inconclusive, None));
        assert!(one.slowdown.is_some() && one.why.as_deref().unwrap().contains("6 are needed"));
        // Scattered around the bound: no verdict either.
        let wild = |cell: &CellRecord, index: u64| match cell.factors.load {
            None => planted(cell, 0),
            Some(_) => Some(6_000_000 + index % 3 * 3_000_000),
        };
        let found = Contention::of(&run(&["ethernet-10"], 9, wild));
        let one = &found.slowdowns[0];
        assert_eq!(one.state, State::Inconclusive, "{one:?}");
        assert!(one.why.as_deref().unwrap().contains("holds 1.1"));
        // What failed has no figure, and says why.
        let gone = |cell: &CellRecord, index: u64| {
            cell.factors.load.is_none().then(|| planted(cell, index))?
        };
        let found = Contention::of(&run(&["ethernet-10"], 6, gone));
        let one = &found.slowdowns[0];
        assert_eq!((one.state, one.slowdown), (State::NotMeasured, None));
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
