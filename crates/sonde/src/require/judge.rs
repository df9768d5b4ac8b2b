//! Requirements held against the rows of a run.
//!
//! Model:   a row passes, fails, or is inconclusive: where frames were lost outside of the model or the figure is above it, where the bound lies
//!          within the interval of the median (of a disturbed one that of an undisturbed machine, which may be without an end), where the ceiling that a part is wanted of is not known, and where a quantile was not worked
//!          out of too few samples. Of these a maximum fails still where a lower quantile is above it; it passes where all of n
//!          samples are below it and that would happen less than once in twenty, were the quantile above: q^n <= 0.05. What was
//!          not measured fails. A pair that fails, and passes each time that it was measured again, is inconclusive. A requirement fails with any row, else is inconclusive with any; without a row it fails. The
//!          loopback beside networks is not judged unless it is named.
//! Source:  Conover, Practical Nonparametric Statistics, 1999, section 3.2, for the order statistic. Deviations: samples of several
//!          repetitions are pooled.
//! Units:   of the rows' quantities; margins in parts of the bound.
//! Checked: `rows_pass_fail_or_are_inconclusive`, `a_pair_that_passes_again_is_open`,
//!          `tails_of_few_samples_are_judged_by_what_is_known`,
//!          `a_part_of_the_ceiling_needs_a_ceiling`, `the_worst_comes_first`, `the_loopback_beside_networks_is_not_judged`.

use super::{Requirement, is_again};
use crate::plan::{Mode, Plan};
use sonde_measure::{Doubt, Judged, Number, Quantity, ResultRow, Run, Status, Testbed};
use sonde_record::{JudgedRequirement, JudgedRow};
use sonde_report::{counted, figure};
use std::collections::BTreeMap;

/// A quantile above the bound would leave no sample above it less often than this.
const CHANCE: f64 = 0.05;
/// The most rows of a requirement that are told of by themselves.
const TOLD: usize = 3;
/// The most rows of a requirement that stand in a document.
const LISTED: usize = 20;

/// The result of a requirement in one row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowJudgement {
    pub state: Judged,
    /// The figure that was held against the bound; none where there is none.
    pub figure: Option<f64>,
    /// The bound that it comes nearest to, or misses most.
    pub bound: Option<f64>,
    /// How far it is on the right side of the bound, in parts of the bound; below 0 on the wrong side.
    pub margin: Option<f64>,
    /// Why it is not a pass, beside the figure; how it is known where it is.
    pub why: Option<String>,
    /// Where.
    pub row: ResultRow,
}

/// The result of one requirement, its rows in order: those that fail first, and the smallest margin.
#[derive(Debug, Clone, PartialEq)]
pub struct RequirementJudgement {
    pub requirement: Requirement,
    pub rows: Vec<RowJudgement>,
}

/// The results of all requirements of a plan, in its order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgements {
    pub all: Vec<RequirementJudgement>,
}

impl Judgements {
    /// Of a run.
    pub fn of(plan: &Plan, run: &Run) -> Self {
        let rows = match plan.requirements.is_empty() {
            true => Vec::new(),
            false => run.rows(),
        };
        let all = plan.requirements.iter();
        Self {
            all: all.map(|one| one.judged(run, &rows)).collect(),
        }
    }

    /// Sentences of what fails, and of what is inconclusive.
    pub fn reasons(&self, state: Judged) -> Vec<String> {
        self.all.iter().flat_map(|one| one.reasons(state)).collect()
    }

    /// As they stand in a document.
    pub fn listed(&self) -> Vec<JudgedRequirement> {
        self.all.iter().map(RequirementJudgement::listed).collect()
    }
}

impl Requirement {
    /// Holds it against all rows that it selects.
    pub fn judged(&self, run: &Run, rows: &[ResultRow]) -> RequirementJudgement {
        let has_networks = rows.iter().any(|row| row.testbed != Testbed::Local);
        let is_floor = |row: &ResultRow| {
            let is_named = self.network.as_ref() == Some(&row.network);
            row.testbed == Testbed::Local && has_networks && !is_named
        };
        let selected = rows
            .iter()
            .filter(|row| self.selects(row) && !is_floor(row));
        let judged = selected.map(|row| {
            let mut judged = self.judge(run, row);
            if judged.state == Judged::Fail {
                self.look_again(run, rows, &mut judged);
            }
            judged
        });
        let mut judged: Vec<RowJudgement> = judged.collect();
        let rank = |one: &RowJudgement| (order(one.state), one.margin.unwrap_or(f64::NEG_INFINITY));
        judged.sort_by(|one, other| {
            let (a, b) = (rank(one), rank(other));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        RequirementJudgement {
            requirement: self.clone(),
            rows: judged,
        }
    }

    fn judge(&self, run: &Run, row: &ResultRow) -> RowJudgement {
        let mut judged = RowJudgement {
            state: Judged::Inconclusive,
            figure: None,
            bound: None,
            margin: None,
            why: None,
            row: row.clone(),
        };
        if row.status != Status::Measured {
            let reason = row.reason.as_deref().unwrap_or("it gave no result");
            judged.state = Judged::Fail;
            judged.why = Some(match reason.starts_with("not measured") {
                true => reason.to_owned(),
                false => format!("not measured: {reason}"),
            });
            return judged;
        }
        let part = self.min_of_ceiling.map(|part| (part, ceiling(run, row)));
        let part = match part {
            Some((_, None)) => {
                judged.figure = self.statistic.of(row);
                judged.why = Some(format!(
                    "the ceiling of {} over {} is not known: give `--line-rate`, or require a rate",
                    row.network, row.path
                ));
                return judged;
            }
            Some((part, Some(bps))) => Some(part * bps),
            None => None,
        };
        let least = [self.min, part].into_iter().flatten().reduce(f64::max);
        let Some(value) = self.statistic.of(row) else {
            return self.judge_few(judged, least);
        };
        judged.hold(value, least, self.max);
        let ends = self.ends(row);
        let is_within = |bound: f64| ends.is_some_and(|(low, high)| low < bound && bound < high);
        if [least, self.max].into_iter().flatten().any(is_within) {
            judged.state = Judged::Inconclusive;
            judged.why = Some(match row.is_reliable() {
                true => "95 % CI around the bound; more repetitions narrow it".into(),
                false => format!("uncertain: {}", row.why.as_deref().unwrap_or_default()),
            });
        }
        judged
    }

    /// Between what the statistic lies; none where that is not known, and it counts as it is.
    fn ends(&self, row: &ResultRow) -> Option<(f64, f64)> {
        let anywhere = (f64::NEG_INFINITY, f64::INFINITY);
        let is_bounded = |doubt: &Doubt| {
            matches!(doubt, Doubt::Disturbed | Doubt::Late) || doubt.is_of_repetitions()
        };
        if row.is_reliable() {
            let ends = row.ci95_low.zip(row.ci95_high);
            let ends = ends.filter(|_| self.statistic.is_median());
            return ends.map(|(low, high)| (low.0, high.0));
        }
        if !(self.statistic.is_median() && row.doubts.iter().all(is_bounded)) {
            return Some(anywhere);
        }
        let low = row.undisturbed_low.map_or(anywhere.0, |low| low.0);
        let high = row.undisturbed_high.map_or(anywhere.1, |high| high.0);
        Some((low, high))
    }

    /// A pair that fails and was measured again, with more time, fails only where it does so again.
    fn look_again(&self, run: &Run, rows: &[ResultRow], failed: &mut RowJudgement) {
        let pair_of = |row: &ResultRow| {
            let words = [&row.network, &row.path, &row.probe].map(String::clone);
            (
                words,
                row.mode.clone(),
                row.size_bytes,
                row.src.clone(),
                row.dst.clone(),
                row.phase,
            )
        };
        let wanted = pair_of(&failed.row);
        let is_same =
            |row: &&ResultRow| is_again(row) && self.is_about(row) && pair_of(row) == wanted;
        let again = rows.iter().filter(is_same).map(|row| self.judge(run, row));
        let again: Vec<RowJudgement> = again.collect();
        let all_pass = again.iter().all(|one| one.state == Judged::Pass);
        if let (
            Some(RowJudgement {
                figure: Some(figure),
                ..
            }),
            true,
        ) = (again.last(), all_pass)
        {
            failed.state = Judged::Inconclusive;
            let figure = self::figure(self.quantity, *figure);
            let passes = format!("measured again it gave {figure}, which passes");
            failed.why = Some(match failed.why.take() {
                Some(why) => format!("{why}; {passes}"),
                None => passes,
            });
        }
    }

    /// A row whose statistic was not worked out, of too few samples.
    fn judge_few(&self, mut judged: RowJudgement, least: Option<f64>) -> RowJudgement {
        let row = judged.row.clone();
        let name = self.statistic.name();
        let lower = [row.p99, row.p90, row.p50].into_iter().flatten().next();
        let few = format!("{name} needs more than {}", counted(row.samples, "sample"));
        judged.why = Some(few);
        let (Some(most), None, true) = (self.max, least, row.is_reliable()) else {
            return judged;
        };
        if let Some(lower) = lower.filter(|lower| lower.0 > most) {
            judged.hold(lower.0, None, self.max);
            judged.why = Some(format!("{name} is above this lower quantile"));
            return judged;
        }
        let chance = self
            .statistic
            .quantile()
            .map(|part| part.powf(row.samples as f64));
        if let Some(largest) = row.max
            && largest.0 <= most
            && chance.is_some_and(|chance| chance <= CHANCE)
        {
            judged.hold(largest.0, None, self.max);
            judged.why = Some(format!("the largest of {}", counted(row.samples, "sample")));
        } else if let Some(largest) = row.max {
            judged.figure = Some(largest.0);
            judged.bound = Some(most);
        }
        judged
    }
}

impl RowJudgement {
    /// Passes or fails by the figure alone, with the bound of the smaller margin.
    fn hold(&mut self, value: f64, least: Option<f64>, most: Option<f64>) {
        let part = |over: f64, bound: f64| match bound == 0.0 {
            // Of nothing there is no part: what is beyond it is so by all of itself.
            true if over < 0.0 => -1.0,
            true => 0.0,
            false => over / bound,
        };
        let margins = [
            least.map(|bound| (part(value - bound, bound), bound)),
            most.map(|bound| (part(bound - value, bound), bound)),
        ];
        let margins = margins.into_iter().flatten();
        let smallest = margins.min_by(|one, other| one.0.total_cmp(&other.0));
        self.figure = Some(value);
        (self.margin, self.bound) = (smallest.map(|one| one.0), smallest.map(|one| one.1));
        self.state = match self.margin {
            Some(margin) if margin < 0.0 => Judged::Fail,
            _ => Judged::Pass,
        };
    }

    /// Its pair of hosts, as `c05>c11`.
    pub fn pair(&self) -> Option<String> {
        let ends = self.row.src.as_ref().zip(self.row.dst.as_ref());
        ends.map(|(src, dst)| format!("{src}>{dst}"))
    }

    /// Where it is, in words.
    pub fn place(&self) -> String {
        let row = &self.row;
        let size = row.size_bytes.unwrap_or(0);
        let mut words = format!("{} {} {} of {size} B", row.network, row.path, row.probe);
        // Rows of other probes are of all pairs in turn.
        if let Some(pair) = self.pair().filter(|_| row.probe == "pattern") {
            words += &format!(" {pair}");
        }
        words
    }
}

impl RequirementJudgement {
    pub fn state(&self) -> Judged {
        let worst = self.rows.first().map(|row| row.state);
        worst.unwrap_or(Judged::Fail)
    }

    pub fn count(&self, state: Judged) -> usize {
        self.rows.iter().filter(|row| row.state == state).count()
    }

    /// Hosts that all failing pairs have in common, where there are several.
    pub fn common_hosts(&self) -> Vec<String> {
        let failing = self.rows.iter().filter(|row| row.state == Judged::Fail);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut all = 0;
        for one in failing {
            all += 1;
            for host in [&one.row.src, &one.row.dst].into_iter().flatten() {
                *counts.entry(host).or_default() += 1;
            }
        }
        let common = counts
            .into_iter()
            .filter(|(_, count)| all > 1 && *count == all);
        common.map(|(host, _)| host.to_owned()).collect()
    }

    /// A figure of it, with all digits where rounding hides on which side of the bound it is.
    pub fn figure(&self, value: f64, bound: Option<f64>) -> String {
        let quantity = self.requirement.quantity;
        let text = figure(quantity, value);
        match bound {
            Some(bound) if figure(quantity, bound) == text && bound.total_cmp(&value).is_ne() => {
                format!("{text} ({})", Number(value))
            }
            _ => text,
        }
    }

    fn reasons(&self, state: Judged) -> Vec<String> {
        let word = state.word();
        let (subject, bounds) = (self.requirement.subject(), self.requirement.bounds());
        if self.rows.is_empty() {
            let none = format!("{word} {subject}: required {bounds}; no row has this quantity");
            return (state == Judged::Fail)
                .then_some(none)
                .into_iter()
                .collect();
        }
        let rows: Vec<&RowJudgement> = self.rows.iter().filter(|row| row.state == state).collect();
        let told = rows.iter().take(TOLD).map(|row| {
            let mut parts = Vec::new();
            if let Some(value) = row.figure {
                let name = match self.requirement.statistic.is_median() {
                    true => String::new(),
                    false => format!("{} ", self.requirement.statistic.name()),
                };
                parts.push(format!("{name}{}", self.figure(value, row.bound)));
            }
            parts.push(format!("required {bounds}"));
            parts.extend(row.why.clone());
            format!("{word} {}: {}", row.place(), parts.join("; "))
        });
        let mut told: Vec<String> = told.collect();
        if rows.len() > TOLD {
            let more = (rows.len() - TOLD) as u64;
            told.push(format!(
                "{word} {subject}: required {bounds}; the same of {}",
                counted(more, "more row")
            ));
        }
        told
    }

    fn listed(&self) -> JudgedRequirement {
        let worst = self.rows.first();
        let number = |value: Option<f64>| value.map(Number);
        let count = |state| self.count(state) as u64;
        let rows = self.rows.iter().take(LISTED).map(|one| JudgedRow {
            state: one.state,
            figure: number(one.figure),
            margin: number(one.margin),
            cell: one.row.cell.clone(),
            network: one.row.network.clone(),
            path: one.row.path.clone(),
            probe: one.row.probe.clone(),
            size_bytes: one.row.size_bytes,
            src: one.row.src.clone(),
            dst: one.row.dst.clone(),
            why: one.why.clone(),
        });
        JudgedRequirement {
            requirement: format!(
                "{} {}",
                self.requirement.subject(),
                self.requirement.bounds()
            ),
            quantity: self.requirement.quantity,
            statistic: self.requirement.statistic.name().into(),
            state: self.state(),
            figure: number(worst.and_then(|one| one.figure)),
            bound: number(worst.and_then(|one| one.bound)),
            margin: number(worst.and_then(|one| one.margin)),
            passed: count(Judged::Pass),
            failed: count(Judged::Fail),
            inconclusive: count(Judged::Inconclusive),
            hosts: self.common_hosts(),
            worst: rows.collect(),
        }
    }
}

const fn order(state: Judged) -> u8 {
    match state {
        Judged::Fail => 0,
        Judged::Inconclusive => 1,
        Judged::Pass => 2,
    }
}

/// What the network allows a rate: the ceiling of streams, or of messages of the row's size. Under load there is none.
fn ceiling(run: &Run, row: &ResultRow) -> Option<f64> {
    let mut networks = run.networks.iter();
    let network = networks.find(|network| network.row.name == row.network)?;
    let is_stream = row.mode.as_deref() != Some(Mode::Message.name());
    let size = row.size_bytes.filter(|_| !is_stream);
    let of = network.ceilings.iter().find(|one| {
        one.path == row.path
            && one.quantity == Quantity::ThroughputBps
            && one.size_bytes == size
            && row.load.is_none()
    })?;
    Some(of.value as f64).filter(|bps| *bps > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{late, row, run};
    use super::super::{column, requirement};
    use super::*;
    use sonde_measure::{Ceiling, NetworkRecord, NetworkRow, Phase};

    fn state(text: &str, rows: &[ResultRow]) -> (Judged, Option<f64>) {
        let judged = requirement(text).unwrap().judged(&run(Vec::new()), rows);
        (
            judged.state(),
            judged.rows.first().and_then(|row| row.margin),
        )
    }

    #[test]
    fn rows_pass_fail_or_are_inconclusive() {
        let fast = row(Quantity::ThroughputBps, 2e9, ("a", "b"));
        assert_eq!(
            state("throughput>=1Gbit", std::slice::from_ref(&fast)),
            (Judged::Pass, Some(1.0))
        );
        assert_eq!(
            state("throughput>=2Gbit", std::slice::from_ref(&fast)),
            (Judged::Pass, Some(0.0))
        );
        assert_eq!(
            state("throughput>=4Gbit", std::slice::from_ref(&fast)),
            (Judged::Fail, Some(-0.5))
        );
        assert_eq!(
            state("throughput<=1Gbit", std::slice::from_ref(&fast)),
            (Judged::Fail, Some(-1.0))
        );
        let mut wide = fast.clone();
        (wide.ci95_low, wide.ci95_high) = (Some(Number(0.9e9)), Some(Number(3e9)));
        assert_eq!(
            state("throughput>=1Gbit", &[wide.clone()]).0,
            Judged::Inconclusive
        );
        assert_eq!(state("throughput>=800Mbit", &[wide]).0, Judged::Pass);
        let mut late = late(&fast);
        assert_eq!(
            state("throughput>=1Gbit", &[late.clone()]).0,
            Judged::Inconclusive
        );
        // Whatever the disturbance did, it lies between these.
        late.undisturbed_low = Some(Number(1.5e9));
        assert_eq!(state("throughput>=1Gbit", &[late.clone()]).0, Judged::Pass);
        assert_eq!(
            state("throughput>=1.8Gbit", &[late.clone()]).0,
            Judged::Inconclusive
        );
        late.undisturbed_high = Some(Number(3e9));
        assert_eq!(state("throughput>=4Gbit", &[late.clone()]).0, Judged::Fail);
        let lost = ResultRow {
            doubts: vec![Doubt::Late, Doubt::FramesLost],
            ..late.clone()
        };
        assert_eq!(state("throughput>=4Gbit", &[lost]).0, Judged::Inconclusive);
        assert_eq!(
            state("throughput>=4Gbit", &[late, fast.clone()]).0,
            Judged::Fail
        );
        let mut missing = fast;
        (missing.status, missing.p50) = (Status::Failed, None);
        assert_eq!(state("throughput>=1Gbit", &[missing]), (Judged::Fail, None));
        assert_eq!(state("throughput>=1Gbit", &[]), (Judged::Fail, None));
        let none = row(Quantity::Retransmits, 0.0, ("a", "b"));
        let some = row(Quantity::Retransmits, 3.0, ("a", "b"));
        assert_eq!(state("retransmits<=0", &[none]).0, Judged::Pass);
        assert_eq!(state("retransmits<=0", &[some]), (Judged::Fail, Some(-1.0)));
    }

    /// A short window on a busy machine may see nothing of a stream.
    #[test]
    fn a_pair_that_passes_again_is_open() {
        let of = |bps: f64, (src, dst): (&str, &str), stage: Option<&str>| {
            let mut one = row(Quantity::ThroughputBps, bps, (src, dst));
            let knob = stage.map(|stage| ("stage".to_owned(), stage.to_owned()));
            one.knobs.extend(knob);
            one
        };
        let first = [of(0.0, ("a", "b"), None), of(9e6, ("b", "a"), None)];
        let state_with =
            |again: &[ResultRow]| state("throughput>=1Mbit", &[&first, again].concat());
        let (pair, other) = (("a", "b"), ("b", "a"));
        assert_eq!(state_with(&[]).0, Judged::Fail);
        assert_eq!(state_with(&[of(8e6, other, Some("alone"))]).0, Judged::Fail);
        let passes = of(8e6, pair, Some("again"));
        assert_eq!(
            state_with(std::slice::from_ref(&passes)).0,
            Judged::Inconclusive
        );
        let fails = of(5e5, pair, Some("alone"));
        assert_eq!(state_with(&[passes, fails]).0, Judged::Fail);
    }

    #[test]
    fn tails_of_few_samples_are_judged_by_what_is_known() {
        let of = |samples: u64, p90: f64, max: f64| {
            let mut one = row(Quantity::LatencyNs, 10_000.0, ("a", "b"));
            (one.samples, one.p90, one.max) = (samples, Some(Number(p90)), Some(Number(max)));
            state("latency.p99<=30us", &[one]).0
        };
        assert_eq!(
            of(100, 40_000.0, 50_000.0),
            Judged::Fail,
            "p99 is above p90"
        );
        assert_eq!(
            of(100, 20_000.0, 25_000.0),
            Judged::Inconclusive,
            "0.99^100 is 0.37"
        );
        assert_eq!(
            of(300, 20_000.0, 25_000.0),
            Judged::Pass,
            "0.99^300 is 0.049"
        );
        assert_eq!(of(300, 20_000.0, 35_000.0), Judged::Inconclusive);
        let mut whole = row(Quantity::LatencyNs, 10_000.0, ("a", "b"));
        whole.p99 = Some(Number(41_000.0));
        assert_eq!(state("latency.p99<=30us", &[whole]).0, Judged::Fail);
    }

    #[test]
    fn a_part_of_the_ceiling_needs_a_ceiling() {
        let network = |ceilings: Vec<Ceiling>| NetworkRecord {
            row: NetworkRow {
                name: "eth".into(),
                technology: "interface".into(),
                summary: None,
                topology: None,
                mtu_bytes: 1_500,
                line_bps: None,
                tcp_max_bps: None,
                tcp_expected_bps: None,
                one_way_1b_ns: None,
                overhead: Vec::new(),
            },
            ceilings,
            attachment: None,
            backpressure: None,
            spec: None,
        };
        let ceiling = Ceiling {
            path: "tcp".into(),
            quantity: Quantity::ThroughputBps,
            phase: Phase::Warm,
            size_bytes: None,
            value: 1_000_000,
        };
        let rows = [row(Quantity::ThroughputBps, 900_000.0, ("a", "b"))];
        let judged = |text: &str, ceilings: Vec<Ceiling>| {
            requirement(text)
                .unwrap()
                .judged(&run(vec![network(ceilings)]), &rows)
        };
        assert_eq!(
            judged("throughput>=85%", vec![ceiling.clone()]).state(),
            Judged::Pass
        );
        let missed = judged("throughput>=95%", vec![ceiling]);
        assert_eq!(
            (missed.state(), missed.rows[0].bound),
            (Judged::Fail, Some(950_000.0))
        );
        let unknown = judged("throughput>=85%", Vec::new());
        assert_eq!(unknown.state(), Judged::Inconclusive);
        assert!(unknown.reasons(Judged::Inconclusive)[0].contains("--line-rate"));
    }

    #[test]
    fn the_worst_comes_first() {
        let pairs = [("a", "c"), ("b", "c"), ("a", "b"), ("c", "a")];
        let rates = [3e6, 2e6, 9e6, 8e6];
        let rows = pairs.into_iter().zip(rates);
        let rows: Vec<ResultRow> = rows
            .map(|(pair, bps)| row(Quantity::ThroughputBps, bps, pair))
            .collect();
        let judged = requirement("throughput>=5Mbit")
            .unwrap()
            .judged(&run(Vec::new()), &rows);
        assert_eq!(judged.rows[0].pair().as_deref(), Some("b>c"));
        assert_eq!(
            (judged.count(Judged::Fail), judged.count(Judged::Pass)),
            (2, 2)
        );
        assert_eq!(judged.common_hosts(), ["c"]);
        let reasons = judged.reasons(Judged::Fail);
        assert_eq!(
            reasons[0],
            "FAIL eth tcp pattern of 1 B b>c: 2.000 Mb/s; required >= 5.000 Mb/s"
        );
        let listed = judged.listed();
        assert_eq!(
            (listed.failed, listed.passed, listed.hosts),
            (2, 2, vec!["c".to_owned()])
        );
        assert_eq!(listed.figure, Some(Number(2e6)));
        assert_eq!(column(listed.quantity), "throughput_bps");
        let narrow = requirement("throughput>=3.0001Mbit").unwrap();
        let narrow = narrow.judged(&run(Vec::new()), &rows[..1]);
        let reasons = narrow.reasons(Judged::Fail);
        assert!(reasons[0].contains("3.000 Mb/s (3000000)"), "{reasons:?}");
    }

    #[test]
    fn the_loopback_beside_networks_is_not_judged() {
        let mut floor = row(Quantity::ThroughputBps, 1e3, ("a", "a"));
        (floor.testbed, floor.network) = (Testbed::Local, "loopback".into());
        let fast = row(Quantity::ThroughputBps, 2e9, ("a", "b"));
        assert_eq!(
            state("throughput>=1Gbit", &[floor.clone(), fast.clone()]).0,
            Judged::Pass
        );
        assert_eq!(
            state("throughput@loopback>=1Gbit", &[floor.clone(), fast]).0,
            Judged::Fail
        );
        assert_eq!(
            state("throughput>=1Gbit", &[floor]).0,
            Judged::Fail,
            "alone it is what was asked for"
        );
    }
}
