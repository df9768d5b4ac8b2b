//! Findings: sentences with numbers that a person can act on, each derived from a run by a stated rule.
//!
//! Model:   a rule is a function from the run to findings. The head of its file states it, with its thresholds and where
//!          they come from. A warning says what not to trust, advice what to change, a note what is so. Warnings come
//!          first; then come those of one rule together, in the order of the lines.
//! Checked: each rule has a run that triggers it and one that does not; `warnings_come_first`.

mod anatomy;
mod ceiling;
mod cold;
mod cpu;
mod crossing;
mod drift;
mod fidelity;
mod kernels;
mod load;
mod loss;
mod mtu;
mod noise;
mod pairs;
mod place;
mod precision;
mod rungs;
mod sweep;
mod window;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_record::Testbed;

use crate::index::{Index, Line};
use crate::words::Words;

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
}

impl Finding {
    pub(crate) fn new(rule: &str, severity: Severity, sentence: String) -> Self {
        Self {
            rule: rule.into(),
            severity,
            network: None,
            path: None,
            sentence,
            arithmetic: None,
            remedy: None,
        }
    }

    /// What was found, in its own words.
    pub(crate) fn said(rule: &str, severity: Severity, found: &dyn Words) -> Self {
        Self {
            arithmetic: found.arithmetic(),
            remedy: found.remedy(),
            ..Self::new(rule, severity, found.sentence())
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

    pub(crate) fn since(mut self, arithmetic: String) -> Self {
        self.arithmetic = Some(arithmetic);
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// All findings of a run.
pub(crate) fn findings(index: &Index<'_>) -> Vec<Finding> {
    let (mut all, told) = crate::matrix::findings(index.run);
    for load in index.loads() {
        all.extend(fidelity::untrue(index, load));
    }
    all.extend(load::reached(index));
    all.extend(load::apart(index));
    all.extend(precision::not_measured(index));
    all.extend(precision::launches_missing(index));
    all.extend(precision::wide(index));
    all.extend(precision::few_launches(index));
    all.extend(index.lines().filter_map(|line| ceiling::above(index, line)));
    all.extend(pairs::apart(index));
    all.extend(noise::stolen(index));
    all.extend(drift::drifting(index));
    for load in index.loads() {
        all.extend(cpu::host_exhausted(index, load));
    }
    for line in index.lines() {
        all.extend(window::receiver(index, line));
        all.extend(window::sender(index, line));
        all.extend(window::reader(index, line));
        all.extend(cpu::thread(index, line));
        all.extend(place::lost(index, line).or_else(|| loss::datagrams(index, line)));
        all.extend(loss::reordered(index, line));
        all.extend(loss::retransmits(index, line));
        all.extend(ceiling::below(index, line));
        all.extend(cold::start(index, line));
        all.extend(cold::idle(index, line));
        all.extend(mtu::crossing(index, line));
        all.extend(mtu::small_frames(index, line));
        all.extend(noise::outliers(index, line));
    }
    all.extend(index.lines().filter_map(|line| ceiling::near(index, line)));
    all.extend(load::queueing(index));
    all.extend(crate::library::costs(index));
    all.extend(kernels::all(index));
    all.extend(rungs::most(index));
    all.extend(crossing::curves(index));
    all.extend(anatomy::past_ip(index));
    all.extend(sweep::all(index));
    // This machine beside a lab is the floor of what hosts cost, and none of them.
    let mut hosts = index.run.hosts.clone();
    let cells = index.run.cells.iter().map(|cell| &cell.factors);
    let floors = cells.filter(|factors| factors.testbed == Testbed::Local);
    let floors: BTreeSet<&String> = floors.flat_map(|factors| &factors.hosts).collect();
    hosts.retain(|host| !floors.contains(&host.name));
    all.extend(crate::diagnosis::apart_but(&hosts, &told));
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

    #[test]
    fn an_empty_run_has_nothing_to_say_but_that() {
        let run = Runs::new().done();
        let all = findings(&Index::new(&run));
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].rule, "not-measured");
    }
}
