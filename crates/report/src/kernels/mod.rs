//! The kernels of a run: the time of each by network, path, place and load, beside the one that it is divided by and beside
//! what papers print.
//!
//! Model:   a cell of the probe `npb` is one kernel of one class among some ranks, whose hosts are told by its launches, or else
//!          are as many as ranks, or as there are. Times are divided by a reference, which is of the same kernel and class, idle and on one
//!          host: the most ranks over shared memory where there are several, else one rank alone. The ratio is that of the
//!          launches' medians, with its bootstrap interval. What a paper prints is divided by the paper's own reference.
//! Source:  `sonde_stats::ratio`; Efron & Tibshirani §13.3 for the interval; [`published`] for the papers.
//! Units:   nanoseconds; shares from 0 to 1; bytes.
//! Checked: `a_kernel_is_beside_its_reference_and_the_paper`, `shared_memory_is_the_reference`, `levels_are_read`,
//!          `hosts_are_those_of_the_ranks`, `ages_are_not_mixed`.

mod published;
mod traffic;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{
    Application, CellRecord, KnobValues, Line, LineField, Number, Phase, Quantity, ResultRow,
    Status,
};

use crate::format::significant;
use crate::index::{Index, KERNEL};
use crate::library::SEED;
use published::{Published, Sought};

pub use published::{PrintedElsewhere, PrintedMessages, PrintedTime, sequential_time};
pub use traffic::{KernelPhase, KernelTraffic};
pub(crate) use traffic::{phases, traffic};

/// Knobs that have places of their own in a row.
const NAMED: [&str; 5] = ["kernel", "class", "size", "ranks", "hosts"];
/// The knob of hosts of another age, and that of this one.
const AGE: &str = "age";
const THIS_AGE: &str = "1";
/// Where ranks share memory.
const SHARED: &str = "native:shm";

/// A time over another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// How many times the other.
    pub value: Number,
    /// Lower end of the interval at 95 %; null below six launches of either.
    pub ci95_low: Option<Number>,
    /// Upper end of the interval at 95 %; null below six launches of either.
    pub ci95_high: Option<Number>,
}

/// One kernel, as it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelRow {
    /// The cell.
    pub cell: String,
    /// The kernel, as `cg`.
    pub kernel: String,
    /// How large it is, as it was asked for: `S`, `upc`.
    pub class: String,
    /// How many ranks share it.
    pub ranks: u64,
    /// On how many hosts.
    pub hosts: u64,
    /// The network.
    pub network: String,
    /// What carries the messages.
    pub path: String,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// What else was set, by name.
    pub knobs: KnobValues,
    /// Traffic of others; null when idle.
    pub load: Option<String>,
    /// Its level, 0 when idle.
    pub level: Number,
    /// The kernel's time: the median of all launches.
    pub time_ns: Number,
    /// Lower end of the interval of the launches' median; null below six launches.
    pub ci95_low_ns: Option<Number>,
    /// Upper end of the interval of the launches' median; null below six launches.
    pub ci95_high_ns: Option<Number>,
    /// Millions of operations a second, as the benchmark counts them.
    pub mops: Option<Number>,
    /// The part of the time in which a rank communicates; what is left is computing.
    pub communicating_share: Option<Number>,
    /// Messages of all ranks.
    pub messages: Option<Number>,
    /// Their mean length.
    pub mean_bytes: Option<Number>,
    /// The median of their lengths.
    pub median_bytes: Option<Number>,
    /// The time over that of the reference; null where there is none.
    pub of_reference: Option<Times>,
    /// What the reference is, as `4 ranks over native:shm on one host`.
    pub reference: Option<String>,
    /// What a paper prints of the same.
    pub printed: Option<PrintedTime>,
    /// What a paper prints of the messages.
    pub printed_messages: Option<PrintedMessages>,
}

impl KernelRow {
    /// Whether it took less time than the other, intervals apart; `None` where one of them has no interval.
    pub fn is_below(&self, other: &Self) -> Option<bool> {
        Some(self.ci95_high_ns? < other.ci95_low_ns?)
    }

    /// The time over the other's.
    pub(crate) fn times(&self, other: &Self) -> f64 {
        self.time_ns.0 / other.time_ns.0
    }

    /// Where it ran, as `4 ranks over pvm:direct on 4 hosts of atm-oc3c`.
    pub(crate) fn place(&self) -> String {
        if self.ranks == 1 {
            return "one rank alone".into();
        }
        match self.hosts {
            1 => format!("{} ranks over {} on one host", self.ranks, self.by()),
            hosts => format!(
                "{} ranks over {} on {hosts} hosts of {}",
                self.ranks,
                self.by(),
                self.network
            ),
        }
    }

    /// Whether several ranks share the memory of one host.
    pub(crate) fn shares_memory(&self) -> bool {
        self.hosts == 1 && self.ranks > 1 && self.path == SHARED
    }

    /// Of which age its hosts are; none of this one.
    pub(crate) fn age(&self) -> Option<&str> {
        let age = self.knobs.get(AGE).map(String::as_str);
        age.filter(|age| *age != THIS_AGE)
    }

    /// Its load in words.
    pub(crate) fn under(&self) -> &str {
        self.load.as_deref().unwrap_or("idle")
    }

    /// What it is of: the method is that of its library, and the knobs that name the problem and its ranks are left out.
    pub(crate) fn line(&self) -> Line {
        Line {
            network: self.network.clone(),
            path: self.path.clone(),
            method: None,
            wait: self.wait.clone(),
            load: self.load.clone(),
            knobs: self.knobs.clone(),
        }
    }

    /// The line that it is of where its network is idle.
    pub(crate) fn idle_line(&self) -> Line {
        self.line().without(&[LineField::Load])
    }

    /// The path with what was set of it, in brackets.
    pub(crate) fn by(&self) -> String {
        self.line().by()
    }

    /// Whether it and the other are the same problem under the same load.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.kernel, &self.class, &self.load) == (&other.kernel, &other.class, &other.load)
    }
}

/// All kernels that were measured, in the order of the cells.
pub(crate) fn kernels(index: &Index<'_>) -> Vec<KernelRow> {
    let is_time = |row: &&ResultRow| {
        row.probe == KERNEL
            && row.quantity == Quantity::KernelNs
            && row.status == Status::Measured
            && row.phase == Some(Phase::Warm)
    };
    let measured: Vec<&ResultRow> = index.rows.iter().filter(is_time).collect();
    let mut rows: Vec<KernelRow> = measured
        .into_iter()
        .filter_map(|row| kernel(index, row))
        .collect();
    for at in 0..rows.len() {
        let Some(reference) = reference(&rows, &rows[at]) else {
            continue;
        };
        let (times, words) = (over(index, &rows[at], reference), reference.place());
        (rows[at].of_reference, rows[at].reference) = (times, Some(words));
    }
    if !rows.is_empty() {
        print_beside(index, &mut rows);
    }
    rows
}

fn kernel(index: &Index<'_>, row: &ResultRow) -> Option<KernelRow> {
    let knob = |name: &str| row.knobs.get(name).cloned();
    let mut line = index.line(row).clone();
    line.knobs.retain(|name, _| !NAMED.contains(&name.as_str()));
    let ranks = knob("ranks")?.parse().ok()?;
    let beside = |quantity| index.beside(row, quantity).map(Number);
    Some(KernelRow {
        cell: row.cell.clone(),
        kernel: knob("kernel")?,
        class: knob("class").or_else(|| knob("size"))?,
        ranks,
        hosts: hosts(index, index.cell(&row.cell)?, ranks),
        network: line.network,
        path: line.path,
        wait: line.wait,
        knobs: line.knobs,
        level: Number(line.load.as_deref().map_or(0.0, level)),
        load: line.load,
        time_ns: row.p50?,
        ci95_low_ns: row.ci95_low,
        ci95_high_ns: row.ci95_high,
        mops: beside(Quantity::MopPerS),
        communicating_share: beside(Quantity::CommunicatingShare),
        messages: beside(Quantity::Messages),
        mean_bytes: beside(Quantity::MessageBytesMean),
        median_bytes: beside(Quantity::MessageBytesMedian),
        of_reference: None,
        reference: None,
        printed: None,
        printed_messages: None,
    })
}

/// On how many hosts so many ranks of a cell are.
fn hosts(index: &Index<'_>, cell: &CellRecord, ranks: u64) -> u64 {
    let told = index.launches(&cell.id).filter_map(|launch| {
        let names = launch.evidence.ranks.hosts.as_ref()?;
        Some(names.0.iter().collect::<BTreeSet<_>>().len() as u64)
    });
    let there = (cell.factors.hosts.len() as u64).min(ranks);
    told.max().unwrap_or(there).max(1)
}

/// The level of a load that is written `0.6`, `1/3` or `0.6:law=constant`; 0 where it is none.
fn level(load: &str) -> f64 {
    let level = load.split(':').next().unwrap_or_default();
    let value = match level.split_once('/') {
        Some((part, of)) => part
            .parse::<f64>()
            .and_then(|part| Ok(part / of.parse::<f64>()?)),
        None => level.parse(),
    };
    value.ok().filter(|value| value.is_finite()).unwrap_or(0.0)
}

/// What a kernel is divided by.
fn reference<'r>(rows: &'r [KernelRow], of: &KernelRow) -> Option<&'r KernelRow> {
    let here = rows.iter().filter(|row| {
        (&row.kernel, &row.class, row.age()) == (&of.kernel, &of.class, of.age())
            && row.hosts == 1
            && row.load.is_none()
    });
    let shared = here.clone().filter(|row| row.shares_memory());
    // Of several the one with the most ranks; of these the first.
    let most = shared.fold(None, |most: Option<&KernelRow>, row| match most {
        Some(known) if known.ranks >= row.ranks => Some(known),
        _ => Some(row),
    });
    most.or_else(|| here.into_iter().find(|row| row.ranks == 1))
}

/// A time over that of its reference.
fn over(index: &Index<'_>, row: &KernelRow, reference: &KernelRow) -> Option<Times> {
    if reference.time_ns.0 <= 0.0 {
        return None;
    }
    let [own, others] = [row, reference].map(|row| medians(index, &row.cell));
    let known = match row.cell == reference.cell {
        true => None,
        false => sonde_stats::ratio(&own, &others, SEED),
    };
    let value = known.map_or(row.times(reference), |known| known.value);
    Some(Times {
        value: Number(value),
        ci95_low: known.map(|known| Number(known.low)),
        ci95_high: known.map(|known| Number(known.high)),
    })
}

/// The kernel's time in each launch of a cell.
fn medians(index: &Index<'_>, cell: &str) -> Vec<u64> {
    let times = index.repetitions(cell);
    times
        .filter_map(|one| {
            one.result
                .samples(Quantity::KernelNs, Phase::Warm)?
                .median()
        })
        .collect()
}

/// What is to be known of kernels on hosts of another age, in words; `None` where there are none.
pub(crate) fn ages(index: &Index<'_>, rows: &[KernelRow]) -> Option<String> {
    let mut all: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.age().is_some()) {
        let of = |fact: fn(&Application) -> Option<f64>| {
            let launches = index.launches(&row.cell);
            let values = launches.filter_map(|launch| fact(&launch.evidence.application));
            let mut values: Vec<f64> = values.collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        let Some(factor) = of(|told| Some(told.age?.value())) else {
            continue;
        };
        let seconds = |ns: f64| significant(ns * 1e-9, 4);
        let since = of(|told| Some(told.age_recorded_ns? as f64))
            .zip(of(|told| Some(told.age_own_ns? as f64)))
            .map(|(recorded, own)| format!(", {} s over {} s", seconds(recorded), seconds(own)));
        let times = significant(factor, 4);
        let told = format!("{} {times}{}", row.kernel, since.unwrap_or_default());
        if !all
            .iter()
            .any(|known| known.starts_with(&format!("{} ", row.kernel)))
        {
            all.push(told);
        }
    }
    (!all.is_empty()).then(|| {
        format!(
            "Historical hosts: the ranks' computation is stretched by these factors, in the median of repetitions (where shown: the \
             recorded time of a sequential run over its own): {}. Calls of a library are not stretched, nor are programs other than \
             sonde's.",
            all.join("; ")
        )
    })
}

fn technology<'i>(index: &'i Index<'_>, network: &str) -> &'i str {
    let record = index.network(network);
    record.map_or("", |record| record.row.technology.as_str())
}

/// The technologies of the networks that kernels ran over.
fn technologies<'i>(index: &'i Index<'_>, rows: &[KernelRow]) -> Vec<&'i str> {
    let all: BTreeSet<&str> = rows.iter().map(|row| row.network.as_str()).collect();
    all.into_iter()
        .map(|name| technology(index, name))
        .collect()
}

/// What papers print of the same kernels on machines of other kinds, once each.
pub(crate) fn elsewhere(index: &Index<'_>, rows: &[KernelRow]) -> Vec<PrintedElsewhere> {
    if rows.is_empty() {
        return Vec::new();
    }
    let published = Published::all();
    let technologies = technologies(index, rows);
    let mut all: Vec<PrintedElsewhere> = Vec::new();
    for row in rows {
        for one in published.elsewhere(&row.kernel, &row.class, &technologies) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    all
}

/// Sets what papers print beside the rows.
fn print_beside(index: &Index<'_>, rows: &mut [KernelRow]) {
    let published = Published::all();
    let all = technologies(index, rows);
    for row in rows {
        let level = row.level.to_string();
        let sought = Sought {
            kernel: &row.kernel,
            class: &row.class,
            ranks: row.ranks,
            hosts: row.hosts,
            path: &row.path,
            level: &level,
        };
        // What runs on one host uses no network, and stands beside the study's where one of its technology is measured.
        let technologies: Vec<&str> = match row.hosts {
            1 => all.clone(),
            _ => vec![technology(index, &row.network)],
        };
        row.printed = published.time(&sought, &technologies);
        row.printed_messages = published.messages(&sought);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};
    use sonde_measure::State;

    /// IS of the study's size on its network.
    fn runs() -> Runs {
        Runs::new()
            .network(net("atm-oc3c").technology("atm"))
            .spread(0.01)
    }

    fn near(value: Number, wanted: f64) -> bool {
        (value.0 / wanted - 1.0).abs() < 0.02
    }

    #[test]
    fn a_share_is_known_no_better_than_its_time() {
        let state = |spread: f64| {
            let run = runs()
                .spread(spread)
                .on(2)
                .kernel("atm-oc3c", "native:tcp", "is upc 2", 2_000_000_000)
                .beside(Quantity::CommunicatingShare, 750_000)
                .beside(Quantity::Messages, 600)
                .done();
            let rows = run.rows();
            let of = |quantity| {
                let row = rows.iter().find(|row| row.quantity == quantity).unwrap();
                (row.state, row.why.clone().unwrap_or_default())
            };
            (of(Quantity::CommunicatingShare), of(Quantity::Messages).0)
        };
        let ((steady, _), _) = state(0.01);
        assert_eq!(steady, State::Sound);
        let ((unsteady, why), messages) = state(0.3);
        assert_eq!((unsteady, messages), (State::Uncertain, State::Sound));
        assert!(
            why.starts_with("its time is uncertain: its repetitions differ"),
            "{why}"
        );
    }

    #[test]
    fn a_kernel_is_beside_its_reference_and_the_paper() {
        let run = runs()
            .on(1)
            .kernel("atm-oc3c", "native:tcp", "is upc 1", 2_000_000_000)
            .on(4)
            .kernel("atm-oc3c", "pvm:direct", "is upc 4", 3_000_000_000)
            .beside(Quantity::CommunicatingShare, 750_000)
            .beside(Quantity::Messages, 600)
            .load("0.6")
            .kernel("atm-oc3c", "pvm:direct", "is upc 4", 9_000_000_000)
            .done();
        let rows = kernels(&Index::new(&run));
        assert_eq!(rows.len(), 3, "{rows:?}");
        let [alone, idle, loaded] = &rows[..] else {
            unreachable!("counted above")
        };
        assert_eq!((alone.ranks, alone.hosts, idle.hosts), (1, 1, 4));
        // The reference has no interval against itself.
        let own = alone.of_reference.unwrap();
        assert_eq!((own.value, own.ci95_low), (Number(1.0), None));
        let times = idle.of_reference.unwrap();
        assert!(near(times.value, 1.5), "{times:?}");
        assert!(times.ci95_low.unwrap() <= times.value && times.value <= times.ci95_high.unwrap());
        assert_eq!(idle.reference.as_deref(), Some("one rank alone"));
        assert_eq!(idle.communicating_share, Some(Number(0.75)));
        assert_eq!(idle.messages, Some(Number(600.0)));
        assert_eq!(idle.mean_bytes, None);
        // The first at idle, the other at its level.
        assert_eq!(idle.printed.as_ref().unwrap().seconds, Number(11.34));
        let printed = loaded.printed.as_ref().unwrap();
        assert_eq!(printed.seconds, Number(36.3));
        assert!(near(printed.of_reference.unwrap(), 36.3 / 4.99));
        assert_eq!(alone.printed.as_ref().unwrap().seconds, Number(30.89));
        let messages = loaded.printed_messages.as_ref().unwrap();
        assert_eq!(messages.messages, Number(599.0));
        assert_eq!(idle.is_below(loaded), Some(true));
        assert_eq!(loaded.is_below(idle), Some(false));
    }

    #[test]
    fn shared_memory_is_the_reference() {
        let run = runs()
            .on(1)
            .kernel("loopback", "native:shm", "cg S 2", 500_000_000)
            .kernel("loopback", "native:shm", "cg S 4", 400_000_000)
            .kernel("loopback", "native:tcp", "cg S 1", 900_000_000)
            .kernel("loopback", "native:tcp", "cg W 1", 900_000_000)
            .on(4)
            .kernel("wire", "native:tcp", "cg S 4", 800_000_000)
            .kernel("wire", "native:tcp", "ft S 4", 800_000_000)
            .done();
        let rows = kernels(&Index::new(&run));
        let of = |row: &KernelRow| row.reference.clone();
        let shared = Some("4 ranks over native:shm on one host".to_string());
        assert_eq!((of(&rows[0]), of(&rows[4])), (shared.clone(), shared));
        assert!(near(rows[4].of_reference.unwrap().value, 2.0));
        assert_eq!(of(&rows[3]), Some("one rank alone".into()));
        // Nothing else of FT ran.
        assert_eq!((of(&rows[5]), rows[5].of_reference), (None, None));
        // No network of a study: nothing is printed.
        assert!(rows.iter().all(|row| row.printed.is_none()));
    }

    #[test]
    fn levels_are_read() {
        for (text, wanted) in [("0.6", 0.6), ("0.9:law=on-off:20", 0.9), ("1/4", 0.25)] {
            assert!((level(text) - wanted).abs() < 1e-12, "{text}");
        }
        for text in ["", "x", "1/0", "1/x"] {
            assert_eq!(level(text).to_bits(), 0, "{text}");
        }
    }

    #[test]
    fn hosts_are_those_of_the_ranks() {
        let run = runs()
            .on(4)
            .kernel("wire", "pvm", "lu S 2", 1_000)
            .kernel("wire", "pvm", "lu S 8", 1_000)
            .setting("ranks.hosts", "h2 h2 h2 h2")
            .kernel("wire", "pvm", "lu S 4", 1_000)
            .done();
        let hosts: Vec<u64> = kernels(&Index::new(&run))
            .iter()
            .map(|row| row.hosts)
            .collect();
        assert_eq!(hosts, [2, 4, 1]);
    }

    #[test]
    fn ages_are_not_mixed() {
        let run = runs()
            .on(1)
            .kernel("atm-oc3c", "native:tcp", "cg upc 1", 100_000_000)
            .on(4)
            .kernel("atm-oc3c", "pvm:direct", "cg upc 4", 200_000_000)
            .knob("age", "upc")
            .setting("npb.age", "166.6000")
            .setting("npb.age.recorded_ns", "16660000000")
            .setting("npb.age.own_ns", "100000000")
            .on(1)
            .kernel("atm-oc3c", "native:tcp", "cg upc 1", 16_660_000_000)
            .on(4)
            .kernel("atm-oc3c", "pvm:direct", "cg upc 4", 5_000_000_000)
            .done();
        let index = Index::new(&run);
        let rows = kernels(&index);
        let times: Vec<f64> = rows
            .iter()
            .map(|row| row.of_reference.unwrap().value.0)
            .collect();
        for (found, wanted) in times.iter().zip([1.0, 2.0, 1.0, 5.0 / 16.66]) {
            assert!((found / wanted - 1.0).abs() < 0.02, "{times:?}");
        }
        let words = ages(&index, &rows).unwrap();
        assert!(words.contains("cg 166.6, 16.66 s over 0.1"), "{words}");
        assert!(words.contains("other than sonde's"), "{words}");
        assert_eq!(ages(&index, &rows[..2]), None);
        // Several hosts beat one, of each age by itself.
        let findings = crate::finding::findings(&index);
        let of = |is_aged: bool| {
            let places = findings.iter().filter(|one| one.rule == "kernel-placement");
            places
                .filter(|one| one.sentence.contains("historical hosts (upc)") == is_aged)
                .count()
        };
        assert_eq!((of(false), of(true)), (1, 1), "{findings:?}");
    }
}
