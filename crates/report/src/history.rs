//! What the same configurations gave in one run after another: levels, where they change, and what changed with them.
//!
//! Model:   a configuration is a cell with all its factors, and gives a run one value: the median of its launches' medians. The
//!          configurations are those of the newest run. Levels of the values' logarithms are found by
//!          [`sonde_stats::Sequences`], all configurations together. Within the newest level a trend is told where Mann and Kendall's
//!          test has it once in a thousand by chance, over all configurations. Beside a change stands what was otherwise in the first
//!          run after it than in the last before: the version, the hosts, what these say of themselves, and what other programs took
//!          of their CPUs. That is no proof of a cause.
//! Source:  as `sonde_stats::Sequences`; Mann 1945, Kendall §4.9.
//! Units:   of the quantities; ratios.
//! Checked: `a_change_is_told_with_what_changed`, `steady_runs_have_no_change`, `a_creeping_change_is_a_trend`,
//!          `few_runs_tell_nothing`; `lab_history.rs`, of a network that changes.

mod text;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{CellRecord, Fixed, KnobValues, Noise, Number, Quantity, Run, Setting};
use sonde_stats::{Scatter, Sequences, trend};

use crate::compare::{Change, Limits, higher_is_better, is_result, key, medians, middle, named};
use crate::format::{bytes, rate};
use crate::index;

pub use text::history_text;

/// A trend by chance once in so many looks, over all configurations.
const FALSE_SHARE: f64 = 1e-3;
/// What other programs take of a CPU is a condition that changed from this difference on.
const OTHERS_APART: f64 = 0.1;
/// What a host measures anew each time that it says what it is.
const RESTLESS: [Setting; 5] = [
    Setting::ClockSamples,
    Setting::ClockTscRead,
    Setting::ClockTscResolution,
    Setting::CopyRate,
    Setting::SocketsEstablished,
];

/// A run of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PastRun {
    /// Its id.
    pub run: String,
    /// When it began.
    pub began_unix_ns: u64,
}

/// What a configuration gave in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Past {
    /// The run, by its place among `runs`.
    pub run: u64,
    /// The median of the launches' medians, in the quantity's unit.
    pub p50: Number,
    /// Launches that gave one.
    pub launches: u64,
}

/// What was otherwise after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// What: `kernel`, or the name of a setting.
    pub what: String,
    /// On which hosts; empty where it is of the run.
    pub hosts: Vec<String>,
    /// In the last run before; null where it was not there.
    pub before: Option<String>,
    /// In the first run after; null where it is not there.
    pub after: Option<String>,
}

/// A level that ended, and the one that began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LevelChange {
    /// The first run of the new level, by its place among `runs`.
    pub run: u64,
    /// The median of the level before, in the quantity's unit.
    pub before: Number,
    /// The median of the new level.
    pub after: Number,
    /// The new level over the one before.
    pub ratio: Number,
    /// `better` or `worse`.
    pub change: Change,
    /// What was otherwise from then on.
    pub conditions: Vec<Condition>,
}

/// A configuration through all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// What it is called in words.
    pub name: String,
    /// What was measured.
    pub quantity: Quantity,
    /// The factors, as in a row.
    pub probe: String,
    /// Of throughput.
    pub mode: Option<String>,
    /// The network.
    pub network: String,
    /// The channel.
    pub path: String,
    /// Background traffic.
    pub load: Option<String>,
    /// User bytes in a message.
    pub size_bytes: u64,
    /// What else was set.
    pub knobs: KnobValues,
    /// What it gave, the oldest first; runs that do not have it are left out.
    pub past: Vec<Past>,
    /// Where its level changed, the oldest first.
    pub changes: Vec<LevelChange>,
    /// How much the newest level rises from its first run to its last by its trend, as a share; null where there is none.
    pub trend: Option<Number>,
    /// The least change that would be found two runs after it, as a share; null where the newest level has too few runs.
    pub detectable: Option<Number>,
}

/// The runs of a store, as a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// What follows, in a sentence.
    pub sentence: String,
    /// The runs, the oldest first.
    pub runs: Vec<PastRun>,
    /// Those of the newest run.
    pub configurations: Vec<Configuration>,
}

/// A history in the making: what is kept of each run.
#[derive(Debug, Default)]
pub struct Chronicle {
    runs: Vec<PastRun>,
    conditions: Vec<Conditions>,
    values: BTreeMap<String, Vec<(usize, f64, u64)>>,
    /// The cells of the newest run, with their keys.
    newest: Vec<(String, CellRecord)>,
}

/// What a run was made under.
#[derive(Debug, Default)]
struct Conditions {
    /// By what and host; the host is empty where it is of the run.
    stated: BTreeMap<(String, String), String>,
    /// What other programs took of a CPU, in the median of the launches.
    others: Option<f64>,
}

impl Chronicle {
    /// Takes what a history needs of the next run; they come the oldest first.
    pub fn add(&mut self, run: &Run) {
        let number = self.runs.len();
        self.runs.push(PastRun {
            run: run.head.id.clone(),
            began_unix_ns: run.head.began_unix_ns,
        });
        self.conditions.push(Conditions::of(run));
        self.newest.clear();
        let same = Limits::default();
        for cell in run.cells.iter().filter(|cell| is_result(cell)) {
            let key = key(&cell.factors, &same);
            let medians = medians(run, cell);
            if medians.is_empty() {
                continue;
            }
            let values = self.values.entry(key.clone()).or_default();
            values.push((number, middle(&medians), medians.len() as u64));
            self.newest.push((key, cell.clone()));
        }
    }

    /// How far apart runs are in which nothing changed; changes below this share are none.
    pub(crate) fn scatter(&self, threshold_per_mille: u64) -> EqualRuns {
        let sequences = self.sequences(threshold_per_mille);
        let mut equal = EqualRuns::default();
        for (key, cell) in &self.newest {
            let Some(values) = self.values.get(key) else {
                continue;
            };
            let scatter = sequences.scatter(&logarithms(values));
            equal.of_cells.insert(key.clone(), scatter);
            let kind = equal.of_kinds.entry(kind(cell)).or_default();
            kind.add(scatter);
        }
        equal
    }

    fn sequences(&self, threshold_per_mille: u64) -> Sequences {
        Sequences {
            count: self.newest.len(),
            least: (threshold_per_mille as f64 / 1_000.0).ln_1p(),
        }
    }

    /// What the runs say; changes below this share are none.
    pub fn history(&self, threshold_per_mille: u64) -> History {
        let sequences = self.sequences(threshold_per_mille);
        let cells = self.newest.iter();
        let configurations = cells
            .filter_map(|(key, cell)| {
                Some(self.configuration(cell, self.values.get(key)?, sequences))
            })
            .collect();
        let mut history = History {
            sentence: String::new(),
            runs: self.runs.clone(),
            configurations,
        };
        history.sentence = text::sentence(&history);
        history
    }

    fn configuration(
        &self,
        cell: &CellRecord,
        values: &[(usize, f64, u64)],
        sequences: Sequences,
    ) -> Configuration {
        let factors = &cell.factors;
        let (quantity, _) = factors.main();
        let unit = quantity.per_unit() as f64;
        let logarithms = logarithms(values);
        let begins = sequences.changes(&logarithms);
        let level = |from: usize, to: usize| {
            let values = values.get(from..to).unwrap_or_default();
            index::median(values.iter().map(|(_, value, _)| *value).collect()).unwrap_or(0.0)
        };
        let ends = begins.iter().skip(1).copied().chain([values.len()]);
        let starts = std::iter::once(0).chain(begins.iter().copied());
        let around = starts.zip(begins.iter().copied()).zip(ends);
        let changes = around.filter_map(|((start, at), end)| {
            let last = values.get(at.checked_sub(1)?)?.0;
            let first = values.get(at)?.0;
            let (old, new) = (level(start, at), level(at, end));
            let is_better = (new > old) == higher_is_better(quantity);
            Some(LevelChange {
                run: first as u64,
                before: Number(old / unit),
                after: Number(new / unit),
                ratio: Number(new / old.max(1.0)),
                change: if is_better {
                    Change::Better
                } else {
                    Change::Worse
                },
                conditions: self.otherwise(last, first),
            })
        });
        let newest = begins.last().copied().unwrap_or(0);
        let of_newest = values.get(newest..).unwrap_or_default();
        let points: Vec<(u64, u64)> = of_newest
            .iter()
            .map(|(run, value, _)| (*run as u64, *value as u64))
            .collect();
        let rise = trend(&points).filter(|trend| trend.p * (sequences.count as f64) < FALSE_SHARE);
        let rise = rise.map(|trend| trend.change / level(newest, values.len()).max(1.0));
        let rise = rise.filter(|share| share.abs() >= sequences.least.exp_m1());
        let known = logarithms
            .get(newest..)
            .and_then(|level| sequences.detectable(level));
        Configuration {
            name: named(factors),
            quantity,
            probe: factors.probe.clone(),
            mode: factors.mode.clone(),
            network: factors.network.clone(),
            path: factors.path.clone(),
            load: factors.load.clone(),
            size_bytes: factors.size_bytes,
            knobs: factors.knobs.clone(),
            changes: changes.collect(),
            past: (values.iter())
                .map(|(run, value, launches)| Past {
                    run: *run as u64,
                    p50: Number(value / unit),
                    launches: *launches,
                })
                .collect(),
            trend: rise.map(Number),
            detectable: known.map(|apart| Number(apart.exp_m1())),
        }
    }

    /// What was otherwise in run `after` than in run `before`.
    fn otherwise(&self, before: usize, after: usize) -> Vec<Condition> {
        let (Some(before), Some(after)) = (self.conditions.get(before), self.conditions.get(after))
        else {
            return Vec::new();
        };
        let names: BTreeSet<_> = before.stated.keys().chain(after.stated.keys()).collect();
        let mut found: Vec<Condition> = Vec::new();
        for name in names {
            let [old, new] = [before, after].map(|of| of.stated.get(name).cloned());
            if old == new {
                continue;
            }
            let (what, host) = name;
            let hosts = Some(host.clone()).filter(|host| !host.is_empty());
            let like = found
                .iter_mut()
                .find(|one| (&one.what, &one.before, &one.after) == (what, &old, &new));
            match like {
                Some(like) => like.hosts.extend(hosts),
                None => found.push(Condition {
                    what: what.clone(),
                    hosts: hosts.into_iter().collect(),
                    before: old,
                    after: new,
                }),
            }
        }
        if let (Some(old), Some(new)) = (before.others, after.others)
            && (old - new).abs() >= OTHERS_APART
        {
            found.push(Condition {
                what: "a CPU's time that other programs took".into(),
                hosts: Vec::new(),
                before: Some(crate::share(old)),
                after: Some(crate::share(new)),
            });
        }
        found
    }
}

/// A cell that gave nothing has no logarithm.
fn logarithms(values: &[(usize, f64, u64)]) -> Vec<f64> {
    values
        .iter()
        .map(|(_, value, _)| value.max(1.0).ln())
        .collect()
}

/// The probe and what it measures, as runs of few repetitions tell their scatter together.
fn kind(cell: &CellRecord) -> (String, Quantity) {
    let (quantity, _) = cell.factors.main();
    (cell.factors.probe.clone(), quantity)
}

/// How far apart runs are in which nothing changed: by their configuration, or by all of one probe where that has too few runs.
#[derive(Debug, Default)]
pub(crate) struct EqualRuns {
    of_cells: BTreeMap<String, Scatter>,
    of_kinds: BTreeMap<(String, Quantity), Scatter>,
}

impl EqualRuns {
    /// By how large a share two more runs of the cell differ but by chance of this probability; `None` where nothing tells it.
    pub(crate) fn apart(&self, cell: &CellRecord, probability: f64) -> Option<f64> {
        let own = self.of_cells.get(&key(&cell.factors, &Limits::default()));
        let own = own.and_then(|scatter| scatter.apart(probability));
        let kind = self.of_kinds.get(&kind(cell));
        let apart = own.or_else(|| kind.and_then(|scatter| scatter.apart(probability)));
        apart.map(f64::exp_m1)
    }
}

impl Conditions {
    fn of(run: &Run) -> Self {
        let mut stated = BTreeMap::new();
        let mut state = |what: &str, host: &str, value: String| {
            stated.insert((what.to_owned(), host.to_owned()), value);
        };
        state("version of sonde", "", run.head.version.clone());
        let hosts: Vec<&str> = run.hosts.iter().map(|host| host.name.as_str()).collect();
        state("hosts", "", hosts.join(" "));
        for host in &run.hosts {
            let facts = &host.facts;
            let texts = [
                ("kernel", Some(facts.kernel.clone())),
                ("CPU", facts.cpu.clone()),
                ("CPUs", Some(facts.cpus.to_string())),
                ("memory", facts.memory_bytes.map(bytes)),
                ("machine before", facts.noise.as_ref().map(Noise::state)),
                ("clock source", facts.clock_source.clone()),
                ("interface", facts.interface.clone()),
                ("MTU", facts.mtu_bytes.map(bytes)),
                ("line rate", facts.line_bps.map(|bps| rate(bps as f64))),
            ];
            for (what, text) in texts {
                text.into_iter()
                    .for_each(|text| state(what, &host.name, text));
            }
            let settings = facts.settings.iter();
            let settings = settings.filter(|(setting, _)| !RESTLESS.contains(setting));
            settings.for_each(|(setting, value)| {
                state(&setting.to_string(), &host.name, value.to_string());
            });
            for (path, why) in &facts.absent {
                state(&format!("path {path}"), &host.name, why.to_string());
            }
        }
        let sides = run
            .launches
            .iter()
            .flat_map(|launch| launch.evidence.sides());
        let shares = sides.filter_map(|side| side.others.share.map(Fixed::value));
        Self {
            stated,
            others: index::median(shares.collect()),
        }
    }
}

impl Configuration {
    /// Whether it became worse within the newest `runs` of `all`.
    fn is_worse_within(&self, runs: u64, all: u64) -> bool {
        let last = self.changes.last();
        last.is_some_and(|last| last.change == Change::Worse && last.run + runs >= all)
    }
}

impl History {
    /// Configurations that became worse within the newest runs.
    pub fn worse_within(&self, runs: u64) -> Vec<&Configuration> {
        let all = self.runs.len() as u64;
        let configurations = self.configurations.iter();
        configurations
            .filter(|one| one.is_worse_within(runs, all))
            .collect()
    }

    /// Whether there are so few runs that no change can be told of any configuration.
    pub fn is_short(&self) -> bool {
        self.configurations
            .iter()
            .all(|one| one.past.len() < text::RUNS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};
    use sonde_measure::HostFacts;

    /// Runs of one configuration, each with the medians of its launches.
    fn history(
        values: impl IntoIterator<Item = u64>,
        kernel: impl Fn(usize) -> &'static str,
    ) -> History {
        history_of(values, |number, facts| facts.kernel = kernel(number).into())
    }

    /// The same with what hosts say of themselves.
    fn history_of(
        values: impl IntoIterator<Item = u64>,
        facts: impl Fn(usize, &mut HostFacts),
    ) -> History {
        let mut chronicle = Chronicle::default();
        for (number, value) in values.into_iter().enumerate() {
            let mut run = Runs::new()
                .network(net("wire"))
                .latency("wire", "tcp", 1, value)
                .done();
            run.head.id = format!("run-{number}");
            for host in &mut run.hosts {
                facts(number, &mut host.facts);
            }
            chronicle.add(&run);
        }
        chronicle.history(20)
    }

    /// A little apart from each other, in no order.
    fn steady(count: u64, level: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |number| level + level * (number * 7 % 11) / 1_000)
    }

    #[test]
    fn a_change_is_told_with_what_changed() {
        let values = steady(20, 20_000).chain(steady(2, 22_000));
        let found = history(values, |number| if number < 20 { "6.1" } else { "6.2" });
        let [one] = &found.configurations[..] else {
            panic!("{found:?}");
        };
        let [change] = &one.changes[..] else {
            panic!("{one:?}");
        };
        assert_eq!((change.run, change.change), (20, Change::Worse));
        assert!((change.ratio.0 - 1.1).abs() < 0.01, "{change:?}");
        let [kernel] = &change.conditions[..] else {
            panic!("{change:?}");
        };
        assert_eq!((&*kernel.what, kernel.hosts.is_empty()), ("kernel", false));
        assert_eq!(found.worse_within(2).len(), 1);
        assert!(found.worse_within(1).is_empty());
        let text = history_text(&found, false, 80);
        assert!(
            text.starts_with("Of 1 configuration in 22 runs 1 became worse ("),
            "{text}"
        );
        assert!(text.contains("▃▆▆"), "{text}");
        assert!(text.contains("worse since run-20: "), "{text}");
        assert!(text.contains("kernel of "), "{text}");
        assert!(text.contains("6.1 before, 6.2 now"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn a_driver_of_another_version_is_told_where_it_lowers_results() {
        let values = steady(20, 20_000).chain(steady(2, 22_000));
        let found = history_of(values, |number, facts| {
            let version = if number < 20 { "8.0.1" } else { "8.1.0" };
            facts.settings.read(Setting::InterfaceDriver, "sba200e");
            facts.settings.read(Setting::DriverVersion, version);
        });
        let [one] = &found.configurations[..] else {
            panic!("{found:?}");
        };
        let [change] = &one.changes[..] else {
            panic!("{one:?}");
        };
        assert_eq!((change.run, change.change), (20, Change::Worse));
        let [driver] = &change.conditions[..] else {
            panic!("{change:?}");
        };
        assert_eq!(driver.what, "interface.driver_version");
        let text = history_text(&found, false, 120);
        assert!(text.contains("8.0.1 before, 8.1.0 now"), "{text}");
    }

    #[test]
    fn steady_runs_have_no_change() {
        let found = history(steady(30, 20_000), |_| "6.1");
        let one = &found.configurations[0];
        assert_eq!(
            (&one.changes[..], one.trend, one.past.len()),
            (&[][..], None, 30)
        );
        assert!(
            one.detectable
                .is_some_and(|share| (0.019..0.05).contains(&share.0)),
            "{one:?}"
        );
        assert_eq!(
            found.sentence,
            "Of 1 configuration in 30 runs none changed."
        );
        let text = history_text(&found, false, 80);
        assert!(text.contains("It would show a change of "), "{text}");
    }

    #[test]
    fn a_creeping_change_is_a_trend() {
        let creeping = (0..30).map(|number| 20_000 + number * 20);
        let found = history(creeping, |_| "6.1");
        let rises: f64 = found.configurations[0]
            .changes
            .iter()
            .map(|one| one.ratio.0)
            .product();
        let trend = found.configurations[0].trend;
        assert!(
            trend.is_some_and(|share| share.0 > 0.02) || rises > 1.01,
            "{found:?}"
        );
    }

    #[test]
    fn few_runs_tell_nothing() {
        let found = history([20_000, 40_000, 40_000], |_| "6.1");
        assert!(found.is_short() && found.configurations[0].changes.is_empty());
        assert!(
            found
                .sentence
                .starts_with("3 runs: a change is told from chance")
        );
        let none = Chronicle::default().history(20);
        assert!(none.sentence.starts_with("0 runs"), "{}", none.sentence);
        assert!(!history_text(&none, true, 80).is_empty());
    }
}
