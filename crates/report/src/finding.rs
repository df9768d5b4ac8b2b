//! Findings: sentences with numbers that a person can act on, each derived from a run by a stated rule.
//!
//! Model:   a rule looks at evidence of one kind and says what it finds; [`RULES`] is the list of all of them, of a run, of a
//!          matrix of all pairs and of the pair that `sonde tune` measures. The head of the file of a rule states it, with its thresholds and where
//!          they come from; what rates cannot exceed stands in [`crate::limit`], what is said in [`crate::words`]. A warning says what not to trust, advice what to change, a note what is so. Warnings come
//!          first; then come those of one rule together, in the order of the lines.
//! Checked: each rule has a run that triggers it and one that does not; `warnings_come_first`, `each_rule_is_listed_once`,
//!          `each_rule_is_described_in_docs`.

mod anatomy;
mod ceiling;
mod cold;
mod cpu;
mod crossing;
mod disturbed;
mod drift;
pub(crate) mod files;
mod hosts;
mod kernels;
mod layer_cost;
mod library_rate;
mod load;
mod loss;
mod mtu;
pub(crate) mod noise;
mod pairs;
mod place;
pub(crate) mod precision;
mod strangers;
mod sweep;
mod window;

use sonde_measure::{Line, Run};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnosis::{Cause, Evidence, rules as pair};
use crate::index::Index;
use crate::limit::is_behind;
use crate::lost::Lost;
use crate::matrix::{self, Matrix};
use crate::words::Words;

/// The factor of what was measured to look into a finding: its rule.
pub const VERIFY: &str = "verify";

/// What a finding is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It is so.
    Note,
    /// Something can be changed for the better.
    Advice,
    /// Check this before trusting the results.
    Warning,
}

/// A sentence with numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The rule that found it, as `window-limited`.
    pub rule: String,
    /// What it is for.
    pub severity: Severity,
    /// The network that it is about; null where it is about several.
    pub network: Option<String>,
    /// The path that it is about; null where it is about several.
    pub path: Option<String>,
    /// What was found.
    pub sentence: String,
    /// The figures that it follows from.
    pub arithmetic: Option<String>,
    /// What to do.
    pub remedy: Option<String>,
    /// What is lost by it; absent where it is not a loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

impl Finding {
    /// What was found, in its own words.
    pub(crate) fn said(rule: &str, severity: Severity, found: &dyn Words) -> Self {
        Self {
            rule: rule.into(),
            severity,
            network: None,
            path: None,
            sentence: found.sentence(),
            arithmetic: found.arithmetic(),
            remedy: found.remedy(),
            lost: found.lost(),
        }
    }

    fn on(mut self, line: &Line) -> Self {
        self.network = Some(line.network.clone());
        self.path = Some(line.path.clone());
        self
    }

    pub(crate) fn on_network(mut self, network: &str) -> Self {
        self.network = Some(network.into());
        self
    }
}

/// What a rule looks at, and how it finds.
#[derive(Clone, Copy)]
pub(crate) enum Find {
    /// A run as a whole, of which there is one thing to say.
    Once(fn(&Index<'_>) -> Option<Finding>),
    /// A run as a whole.
    Run(fn(&Index<'_>) -> Vec<Finding>),
    /// A run under each of its loads, and idle.
    Load(fn(&Index<'_>, Option<&str>) -> Vec<Finding>),
    /// Each line of an idle network.
    Line(fn(&Index<'_>, &Line) -> Option<Finding>),
    /// The matrix of all pairs, where a run has one.
    Matrix(fn(&Index<'_>, &Matrix) -> Vec<Finding>),
    /// What is known of one pair of hosts: why its stream is not faster.
    Pair(fn(&Evidence) -> Option<Because>),
}

/// Why a stream is not faster, and how that stands to the other causes.
pub(crate) struct Because {
    pub cause: Cause,
    pub weight: Weight,
}

/// How a cause stands to the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Weight {
    /// It explains all there is: nothing else is looked at.
    Alone,
    /// It is about messages, whatever the stream reaches.
    Beside,
    /// It limits the stream to so many bits a second.
    Limit(f64),
    /// It is looked at where no limit explains the rate, in the order of the rules.
    Otherwise,
}

/// A rule, or several that look at one thing and of which one speaks.
pub(crate) struct Rule {
    /// What its findings are called.
    pub ids: &'static [&'static str],
    pub find: Find,
}

const fn rule(ids: &'static [&'static str], find: Find) -> Rule {
    Rule { ids, find }
}

/// All rules, in the order in which they are told.
pub(crate) const RULES: &[Rule] = &[
    rule(matrix::VERDICTS, Find::Matrix(matrix::verdict)),
    rule(&[matrix::ODD], Find::Matrix(matrix::odd_hosts)),
    rule(&["disturbed"], Find::Load(disturbed::of_load)),
    rule(&["load-reached", "load-missed"], Find::Run(load::reached)),
    rule(&["queueing-apart"], Find::Run(load::apart)),
    rule(&["not-measured"], Find::Run(precision::not_measured)),
    rule(
        &["launches-missing"],
        Find::Once(precision::launches_missing),
    ),
    rule(&["interval-not-reached"], Find::Once(precision::wide)),
    rule(&["few-launches"], Find::Once(precision::few_launches)),
    rule(&["above-ceiling"], Find::Run(ceiling::above_all)),
    rule(&["host-apart", "pair-apart"], Find::Run(pairs::apart)),
    rule(&["stolen-time"], Find::Run(noise::stolen)),
    rule(&["strangers"], Find::Run(strangers::turned_away)),
    rule(&["drift"], Find::Run(drift::drifting)),
    rule(&[cpu::HOST_EXHAUSTED], Find::Load(cpu::host_exhausted)),
    rule(&["window-limited"], Find::Line(window::receiver)),
    rule(&["sndbuf-limited"], Find::Line(window::sender)),
    rule(&["slow-reader"], Find::Line(window::reader)),
    rule(&["cpu-bound"], Find::Line(cpu::thread)),
    rule(
        &["datagram-loss-place", "datagram-loss"],
        Find::Line(loss::of_datagrams),
    ),
    rule(&["reordering"], Find::Line(loss::reordered)),
    rule(&["retransmits"], Find::Line(loss::retransmits)),
    rule(&["below-expectation"], Find::Line(ceiling::below)),
    rule(&["library-rate"], Find::Line(library_rate::slow)),
    rule(&["cold-start"], Find::Line(cold::start)),
    rule(&["idle-cost"], Find::Line(cold::idle)),
    rule(&["mtu-crossing"], Find::Line(mtu::crossing)),
    rule(&["small-frames"], Find::Line(mtu::small_frames)),
    rule(&["outliers"], Find::Line(noise::outliers)),
    rule(&["near-ceiling"], Find::Run(ceiling::near_all)),
    rule(&["queueing"], Find::Run(load::queueing)),
    rule(&["library-cost"], Find::Run(crate::library::costs)),
    rule(kernels::IDS, Find::Run(kernels::all)),
    rule(files::IDS, Find::Run(files::held)),
    rule(&["layer-cost"], Find::Run(layer_cost::most)),
    rule(&["curves-cross"], Find::Run(crossing::curves)),
    rule(&["kernel-bypass"], Find::Run(anatomy::kernel_bypass)),
    rule(sweep::IDS, Find::Run(sweep::all)),
    rule(&["host-set-apart", "mtu-apart"], Find::Run(hosts::apart)),
    rule(&["mtu"], Find::Pair(pair::black_hole)),
    rule(&["nagle"], Find::Pair(pair::nagle)),
    rule(&["receive-window"], Find::Pair(pair::receive_window)),
    rule(&["send-buffer"], Find::Pair(pair::send_buffer)),
    rule(&["loss", "congestion"], Find::Pair(pair::loss)),
    rule(&["reordering"], Find::Pair(pair::reordering)),
    rule(&["interrupts"], Find::Pair(pair::interrupts)),
    rule(&["offload"], Find::Pair(pair::offload)),
    rule(&["cpu"], Find::Pair(pair::cpu)),
    rule(&["cpu-hog"], Find::Pair(pair::hog)),
    rule(&["slow-reader"], Find::Pair(pair::slow_reader)),
];

/// All findings of a run; warnings first.
pub fn findings_of(run: &Run) -> Vec<Finding> {
    findings(&Index::new(run))
}

/// All findings of a run.
pub(crate) fn findings(index: &Index<'_>) -> Vec<Finding> {
    let matrix = Matrix::of(index.run);
    let mut all = Vec::new();
    let is_of_lines = |rule: &Rule| matches!(rule.find, Find::Line(_));
    // Rules of lines that follow each other are told line by line.
    for some in RULES.chunk_by(|one, next| is_of_lines(one) && is_of_lines(next)) {
        for line in index.lines() {
            for rule in some {
                if let Find::Line(find) = rule.find {
                    rule.add(&mut all, find(index, line));
                }
            }
        }
        for rule in some {
            match rule.find {
                Find::Once(find) => rule.add(&mut all, find(index)),
                Find::Run(find) => rule.add(&mut all, find(index)),
                Find::Load(find) => {
                    for load in index.loads() {
                        rule.add(&mut all, find(index, load));
                    }
                }
                Find::Matrix(find) => {
                    let of = matrix.as_ref().map(|matrix| find(index, matrix));
                    rule.add(&mut all, of.into_iter().flatten());
                }
                Find::Line(_) | Find::Pair(_) => {}
            }
        }
    }
    let mut rules: Vec<String> = Vec::new();
    for finding in &all {
        if !rules.contains(&finding.rule) {
            rules.push(finding.rule.clone());
        }
    }
    let rank = |finding: &Finding| rules.iter().position(|rule| *rule == finding.rule);
    all.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), rank(finding)));
    all
}

impl Rule {
    fn add(&self, all: &mut Vec<Finding>, found: impl IntoIterator<Item = Finding>) {
        for finding in found {
            debug_assert!(self.ids.contains(&finding.rule.as_str()), "{finding:?}");
            all.push(finding);
        }
    }
}

/// Why a pair's stream is not faster: all causes, the first to be changed first.
///
/// A limit that lies behind a lower one that explains the rate, too, is left out: what binds first hides what is behind it.
pub(crate) fn causes(evidence: &Evidence) -> Vec<Cause> {
    let is_slow = evidence.rate_bps.is_some() && !evidence.is_full();
    let mut beside = Vec::new();
    let mut limited: Vec<(f64, Cause)> = Vec::new();
    let mut otherwise = None;
    for rule in RULES {
        let Find::Pair(find) = rule.find else {
            continue;
        };
        let Some(Because { cause, weight }) = find(evidence) else {
            continue;
        };
        match weight {
            Weight::Alone => return vec![cause],
            Weight::Beside => beside.push(cause),
            Weight::Limit(bps) if is_slow && evidence.is_explained_by(bps) => {
                limited.push((bps, cause));
            }
            Weight::Limit(_) => {}
            Weight::Otherwise if is_slow && otherwise.is_none() => otherwise = Some(cause),
            Weight::Otherwise => {}
        }
    }
    let limits: Vec<f64> = limited.iter().map(|(bps, _)| *bps).collect();
    limited.retain(|(bps, _)| !limits.iter().any(|other| is_behind(*bps, *other)));
    if limited.is_empty() {
        beside.extend(otherwise);
    }
    beside.extend(limited.into_iter().map(|(_, cause)| cause));
    beside
}

/// Whether a rule is one of the verdict on all pairs of hosts.
pub fn is_verdict(rule: &str) -> bool {
    RULES
        .iter()
        .any(|one| matches!(one.find, Find::Matrix(_)) && one.ids.contains(&rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    #[test]
    fn warnings_come_first() {
        let run = Runs::new()
            .network(net("atm-oc3c").line(155_520_000).tcp_max(134_340_000))
            .stream("atm-oc3c", "tcp", 134_300_000)
            .latency("atm-oc3c", "tcp", 1, 40_000)
            .failed_cell("atm-oc3c", "udp", "h2 is gone")
            .done();
        let all = findings(&Index::new(&run));
        let severities: Vec<Severity> = all.iter().map(|finding| finding.severity).collect();
        assert!(
            severities.windows(2).all(|pair| pair[0] >= pair[1]),
            "{all:?}"
        );
        assert_eq!(all[0].rule, "not-measured");
        assert_eq!(all.last().unwrap().rule, "near-ceiling");
    }

    /// Every rule of runs and matrices has a name of its own, and so has every one of pairs.
    #[test]
    fn each_rule_is_listed_once() {
        for of_pairs in [false, true] {
            let rules = RULES.iter();
            let rules = rules.filter(|rule| matches!(rule.find, Find::Pair(_)) == of_pairs);
            let mut ids: Vec<&str> = rules.flat_map(|rule| rule.ids).copied().collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), all);
        }
        assert!(is_verdict("host-loss") && is_verdict("host-odd") && is_verdict("unsteady"));
        assert!(!is_verdict("retransmits"));
    }

    #[test]
    fn each_rule_is_described_in_docs() {
        let docs = include_str!("../../../docs/findings.md");
        for id in RULES.iter().flat_map(|rule| rule.ids) {
            assert!(docs.contains(&format!("\n| `{id}` |")), "{id}");
        }
    }

    #[test]
    fn an_empty_run_has_nothing_to_say_but_that() {
        let run = Runs::new().done();
        let all = findings(&Index::new(&run));
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].rule, "not-measured");
    }
}
