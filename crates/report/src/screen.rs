//! The answer to an assessment on one screen: how far to trust it, a line a network, what is lost, what to do.
//!
//! Model:   an [`Assessment`] holds the facts, worked out of a run and of the typed figures of its findings; [`Assessment::text`]
//!          lays them out in at most [`LINES`] lines of [`COLUMNS`] columns. Losses of one kind are one entry, with the networks
//!          where they are and their range; entries are ranked by [`Lost::rank`], networks by the largest loss on each. The loopback
//!          beside networks is a floor: it comes last, and what it loses is not counted. The verdict on all pairs of hosts, where they
//!          were measured, stands above the networks; its cells are none of the figures that are trusted or not.
//! Units:   as in the records; on the screen µs, bits a second (decimal) and per cent.
//! Checked: the tests below; `tests/screen.rs` of the command, on every frozen run.

mod groups;
mod networks;
mod next;
mod tally;
mod text;
mod trust;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{Number, Repetition, Run, Testbed};

use crate::finding::{Finding, findings};
use crate::index::{Index, PATTERN};
use crate::lost::{Lost, LostAt};
use crate::matrix::{AllPairs, is_of_matrix};

pub(crate) use networks::name as path_name;

pub use groups::findings_by_rule;
pub use networks::{AssessedFiles, AssessedNetwork, AssessedPath, OneWay};
pub use next::Next;
pub use tally::Tally;
pub use text::{COLUMNS, LINES, Place};
pub use trust::{Figures, Trust, TrustLevel};

/// What a run of the main job says, as facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assessment {
    /// What was measured.
    pub scope: Scope,
    /// How far the figures can be trusted.
    pub trust: Trust,
    /// Which host, link or direction stands out; null where not all pairs were measured.
    pub all_pairs: Option<AllPairs>,
    /// The message whose one-way times stand in `networks`; null where no message was measured.
    pub message_bytes: Option<u64>,
    /// The paths whose one-way times stand in `networks`, at most two.
    pub paths: Vec<AssessedPath>,
    /// The kernel that `networks` hold against one host, as `is`; null where none was measured.
    pub kernel: Option<String>,
    /// The networks, those that lose most first.
    pub networks: Vec<AssessedNetwork>,
    /// What is lost, the largest first.
    pub lost: Vec<Loss>,
    /// What to do, the most urgent first.
    pub next: Vec<Next>,
    /// How many findings there are.
    pub findings: u64,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The run's id.
    pub run: String,
    /// What the hosts are; null where there are no cells.
    pub testbed: Option<Testbed>,
    /// The hosts.
    pub hosts: Vec<String>,
    /// Networks, without the loopback that is measured beside them.
    pub networks: u64,
    /// Ordered pairs of hosts between which something was measured.
    pub pairs: u64,
    /// The same without the matrix of all pairs.
    pub pairs_beside: u64,
    /// Ordered pairs that there are.
    pub pairs_all: u64,
    /// When it began.
    pub began_unix_ns: u64,
    /// How long it took; null while it runs, and after it was killed.
    pub took_ns: Option<u64>,
}

/// What is lost in one place, by one kind of finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Where.
    pub at: LostAt,
    /// The rules that found it.
    pub rules: Vec<String>,
    /// The networks on which it is, the one that loses most first.
    pub networks: Vec<String>,
    /// The largest share of a time or rate that is lost.
    pub share: Number,
    /// The figures, the largest first: the network of each, and what is lost there.
    pub figures: Vec<LossFigure>,
    /// The same as a sentence.
    pub sentence: String,
}

/// What is lost on one network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossFigure {
    /// The network.
    pub network: String,
    /// What is lost.
    pub lost: Lost,
}

impl Assessment {
    /// Whether a run is of the main job: at least two of start-up, latency and streams on one network, none of them in a sweep, and no
    /// pattern but all pairs.
    pub fn is_of(run: &Run) -> bool {
        let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for cell in &run.cells {
            let factors = &cell.factors;
            let is_stream = factors.mode.as_deref() == Some("stream");
            match factors.probe.as_str() {
                PATTERN if is_of_matrix(factors) => {}
                PATTERN => return false,
                "throughput" if !is_stream => {}
                probe @ ("startup" | "latency" | "throughput") => {
                    kinds.entry(&factors.network).or_default().insert(probe);
                }
                _ => {}
            }
        }
        kinds.values().any(|probes| probes.len() > 1) && crate::sweep::sweep(run).is_empty()
    }

    /// The facts of a run.
    pub fn of(run: &Run) -> Self {
        let index = Index::new(run);
        Self::of_index(&index, &findings(&index))
    }

    /// The same, with the findings of the run.
    pub(crate) fn of_index(index: &Index<'_>, findings: &[Finding]) -> Self {
        let scope = Scope::of(index);
        let lost = losses(index, findings);
        let trust = Trust::of(index, findings);
        let paths = networks::paths(index);
        let message_bytes = networks::message_bytes(index, &paths);
        let kernel = networks::kernel(index);
        let mut networks = networks::all(index, &paths, message_bytes, kernel.as_deref());
        // Equal ones keep the plan's order.
        networks.sort_by(|one, other| {
            let place = |network: &AssessedNetwork| {
                let ranks = lost.iter().flat_map(|loss| &loss.figures);
                let own = ranks.filter(|figure| figure.network == network.network);
                own.map(|figure| figure.lost.rank()).fold(0.0, f64::max)
            };
            (one.is_floor.cmp(&other.is_floor)).then(place(other).total_cmp(&place(one)))
        });
        let next = next::all(index, &scope, &trust, &lost);
        let all_pairs = AllPairs::of_index(index, findings);
        Self {
            scope,
            trust,
            all_pairs,
            message_bytes,
            paths,
            kernel,
            networks,
            lost,
            next,
            findings: findings.len() as u64,
        }
    }
}

/// Whether a network is this machine's loopback, measured beside others.
fn is_floor(index: &Index<'_>, network: &str) -> bool {
    let is_local = |cell: &&sonde_measure::CellRecord| cell.factors.testbed == Testbed::Local;
    let cells = index.run.cells.iter();
    let has_others = cells.clone().any(|cell| !is_local(&cell));
    let mut own = cells.filter(|cell| cell.factors.network == network);
    has_others && own.next().is_some_and(|cell| is_local(&cell))
}

impl Scope {
    fn of(index: &Index<'_>) -> Self {
        let run = index.run;
        let names: BTreeSet<&str> = run
            .cells
            .iter()
            .map(|cell| cell.factors.network.as_str())
            .filter(|network| !is_floor(index, network))
            .collect();
        let mut cells = run.cells.iter();
        let first = cells.find(|cell| names.contains(cell.factors.network.as_str()));
        let mut hosts = first.map_or_else(Vec::new, |cell| cell.factors.hosts.clone());
        // A flow of a pattern is of two hosts.
        for cell in run
            .cells
            .iter()
            .filter(|cell| names.contains(cell.factors.network.as_str()))
        {
            for host in &cell.factors.hosts {
                if !hosts.contains(host) {
                    hosts.push(host.clone());
                }
            }
        }
        let is_host = |name: &String| hosts.contains(name);
        let matrix = run.cells.iter().filter(|cell| is_of_matrix(&cell.factors));
        let matrix: BTreeSet<&str> = matrix.map(|cell| cell.id.as_str()).collect();
        let measured = |is_beside: bool| -> BTreeSet<(&str, &str)> {
            let is_counted = |cell: &str| !(is_beside && matrix.contains(cell));
            run.counted()
                .filter(|launch| is_host(&launch.src) && is_host(&launch.dst))
                .filter(|launch| {
                    let mut made = launch.repetitions().filter(Repetition::succeeded);
                    made.any(|one| is_counted(&one.result.cell))
                })
                .map(|launch| (launch.src.as_str(), launch.dst.as_str()))
                .collect()
        };
        let (pairs, beside) = (measured(false).len(), measured(true).len());
        let head = &run.head;
        Self {
            run: head.id.clone(),
            testbed: first.map(|cell| cell.factors.testbed),
            networks: names.len() as u64,
            pairs: pairs as u64,
            pairs_beside: beside as u64,
            pairs_all: (hosts.len() * hosts.len().saturating_sub(1)) as u64,
            hosts,
            began_unix_ns: head.began_unix_ns,
            took_ns: head
                .ended_unix_ns
                .map(|ended| ended.saturating_sub(head.began_unix_ns)),
        }
    }
}

/// What the findings lose, a kind of loss each, the largest first.
fn losses(index: &Index<'_>, findings: &[Finding]) -> Vec<Loss> {
    let mut kinds: BTreeMap<LostAt, Vec<(&str, LossFigure)>> = BTreeMap::new();
    for finding in findings {
        let (Some(lost), Some(network)) = (&finding.lost, &finding.network) else {
            continue;
        };
        if !is_floor(index, network) {
            let figure = LossFigure {
                network: network.clone(),
                lost: lost.clone(),
            };
            let of = kinds.entry(lost.at).or_default();
            of.push((&finding.rule, figure));
        }
    }
    let alike = networks::not_distinguishable(index);
    let kinds = kinds.into_iter();
    let mut all: Vec<Loss> = kinds
        .map(|(at, figures)| Loss::of(at, figures, &alike))
        .collect();
    all.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
    all
}

fn rank(loss: &Loss) -> f64 {
    let ranks = loss.figures.iter().map(|figure| figure.lost.rank());
    ranks.fold(0.0, f64::max)
}

impl Loss {
    fn of(at: LostAt, mut found: Vec<(&str, LossFigure)>, alike: &[String]) -> Self {
        found.sort_by(|(_, one), (_, other)| other.lost.rank().total_cmp(&one.lost.rank()));
        let (mut rules, mut networks) = (Vec::new(), Vec::new());
        let mut figures: Vec<LossFigure> = Vec::new();
        for (rule, figure) in found {
            if !rules.contains(&rule.to_owned()) {
                rules.push(rule.to_owned());
            }
            if !networks.contains(&figure.network) {
                networks.push(figure.network.clone());
            }
            // Two rules of one stream are one loss, with what explains it.
            let same = |one: &&mut LossFigure| {
                one.network == figure.network && one.lost.by == figure.lost.by
            };
            match figures.iter_mut().find(same) {
                Some(known) if known.lost.causes.is_empty() => {
                    known.lost.causes = figure.lost.causes;
                }
                Some(_) => {}
                None => figures.push(figure),
            }
        }
        let sentence = crate::words::lost::sentence(at, &figures, alike);
        Self {
            at,
            rules,
            networks,
            share: Number(figures.first().map_or(0.0, |figure| figure.lost.share())),
            figures,
            sentence,
        }
    }
}

/// Bits a second, as a whole.
fn bps(value: f64) -> u64 {
    crate::lost::whole(value)
}
