//! `sonde accept`: all pairs of hosts first, then what `assess` measures, held against what is required.
//!
//! Model:   a plan as `assess` takes it, with all pairs before its other probes; a tail that is required has samples enough. It is
//!          accepted where every requirement is met and no host stands out. The screen has at most 24 lines of 80 columns: the
//!          verdict, all pairs, each requirement, what would have been detected, how far the figures can be trusted.
//!          `sonde report show` prints it again, from what is kept.
//! Checked: `all_pairs_come_first`, `a_screen_has_24_lines`; `tests/lab_accept.rs`.

use crate::campaign::Silent;
use crate::document::{self, Command, Document};
use crate::events::Event;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure;
use crate::output::{self, Print, say};
use crate::plan::{Plan, ProbeKind};
use crate::require::{self, Judgements, Statistic};
use crate::source::Searches;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{Judged as State, Quantity, Run, RunState};
use sonde_report::matrix::AllPairs;
use sonde_report::{Assessment, COLUMNS, LINES, Place, Scope, Trust, rate};
use sonde_sys::tell;
use sonde_units::{Span, plain};
use std::ops::ControlFlow;

/// What is wrong where nothing is required.
const NOTHING: &str = "`sonde accept` judges what is required, and nothing is: give --require, as in `sonde accept --require \
    'throughput>=95%' --require 'latency.p99<=30us'`, or --require-from FILE, --require-baseline RUN, or [[require]] in the plan";
/// The least that a launch samples a latency whose tail is required.
const TAIL_BUDGET: Span = Span::millis(100);

impl Plan {
    /// With all pairs before the other probes, where there are three hosts or more; with samples enough for the tails that are
    /// required.
    #[must_use]
    pub fn accepting(mut self, quick: bool) -> Self {
        let is_tail = |of: Statistic| matches!(of, Statistic::P99 | Statistic::P999);
        let has_tails = (self.requirements.iter())
            .any(|one| one.quantity == Quantity::LatencyNs && is_tail(one.statistic));
        if has_tails {
            let latencies = self.probes.iter_mut();
            for probe in latencies.filter(|probe| probe.kind == ProbeKind::Latency && !probe.floor)
            {
                probe.budget = probe.budget.map(|budget| budget.max(TAIL_BUDGET));
            }
        }
        self.with_all_pairs(quick && !has_tails)
    }
}

/// What to measure and to judge.
pub struct Task {
    pub measurement: measure::Task,
    /// Whether all pairs are measured in short.
    pub quick: bool,
}

/// The result, beside the requirements.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Acceptance {
    /// `pass`, `fail` or `inconclusive`.
    pub state: State,
    /// The hosts, pairs and the time that it took.
    pub scope: Scope,
    /// The network.
    pub network: Option<String>,
    /// The rate of its line; null where it is not known.
    pub line_bps: Option<u64>,
    /// Which host, link or direction stands out; null where there were fewer than three hosts.
    pub all_pairs: Option<AllPairs>,
    /// How far the figures can be trusted.
    pub trust: Trust,
}

/// The part of a document that is of acceptances alone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Accepted {
    acceptance: Box<Acceptance>,
}

impl Task {
    /// Does it; the exit code.
    ///
    /// # Errors
    /// Nothing is required; what could not be started, or kept.
    pub fn run(mut self) -> Result<i32, Failure> {
        self.measurement.take_requirements()?;
        let is_resumed = self.measurement.resume.is_some();
        if self.measurement.plan.requirements.is_empty() && !is_resumed {
            return Err(Failure::usage(NOTHING));
        }
        let plan = self.measurement.plan.clone();
        self.measurement.plan = plan.accepting(self.quick);
        if self.measurement.is_only_printed() {
            return self.measurement.print();
        }
        let observer = self.measurement.observer(Silent);
        let measured = match self.measurement.measured(observer, &mut Searches)? {
            ControlFlow::Break(code) => return Ok(code),
            ControlFlow::Continue(measured) => measured,
        };
        let run = &measured.run;
        let ended = Outcome::of(run, self.measurement.strict);
        let judged = Judged::of(&self.measurement.plan, run, ended);
        let outcome = judged.outcome.clone();
        let page = self.measurement.out.join(format!("{}.html", run.head.id));
        let mut place = crate::report::place(&run.head.id, &self.measurement.out);
        if let Err(why) = measure::write_report(run, &page) {
            tell!("sonde: {why}");
            place.page = None;
        }
        for warning in &run.warnings {
            tell!("sonde: {warning}");
        }
        let reasons = || outcome.failed.iter().chain(&outcome.inconclusive);
        if self.measurement.json_stream {
            for text in reasons() {
                Event::Warning { text }.say()?;
            }
        } else if self.measurement.print == Print::Csv {
            output::rows(run)?;
        } else if self.measurement.print == Print::Json {
            let verdict = outcome.judgement_with(&judged.judgements);
            let acceptance = Box::new(judged.acceptance);
            let command = Command::Accept(Accepted { acceptance });
            document::print(&Document {
                warnings: run.warnings.clone(),
                ..document::of_run(command, run, verdict)
            })?;
        } else {
            let code = outcome.clone().code();
            say!("{}", judged.text(&place, Some(code)));
        }
        self.measurement.say_kept(&measured)?;
        self.measurement.ended(run, outcome)
    }
}

/// A run held against what is required of it.
pub struct Judged {
    acceptance: Acceptance,
    judgements: Judgements,
    /// What was not measured.
    missing: Vec<String>,
    /// Whether it was cut off: what is missing then was not refused by the network.
    is_cut_off: bool,
    outcome: Outcome,
}

impl Judged {
    /// A run, by the requirements of its plan; `outcome` is what is so of every run.
    fn of(plan: &Plan, run: &Run, mut outcome: Outcome) -> Self {
        let judgements = Judgements::of(plan, run);
        outcome.is_measured &= plan.all_skipped(run).is_none();
        let missing = outcome.failed.clone();
        let assessment = Assessment::of(run);
        outcome.judge(assessment.all_pairs.as_ref());
        outcome.require(&judgements);
        if judgements.all.is_empty() {
            let nothing = "nothing is required of this run".into();
            outcome.inconclusive.push(nothing);
        }
        let is_cut_off = outcome.signal.is_some() || is_cut_off(run);
        let state = match is_cut_off {
            true => State::Inconclusive,
            false => outcome.judgement().state.unwrap_or(State::Inconclusive),
        };
        let network = run.networks.last();
        let acceptance = Acceptance {
            state,
            scope: assessment.scope,
            network: network.map(|network| network.row.name.clone()),
            line_bps: network.and_then(|network| network.row.line_bps),
            all_pairs: assessment.all_pairs,
            trust: assessment.trust,
        };
        Self {
            acceptance,
            judgements,
            missing,
            is_cut_off,
            outcome,
        }
    }

    /// A run of the store, where it is an acceptance.
    pub fn again(run: &Run) -> Option<Self> {
        if run.head.command.split(' ').next() != Some("accept") {
            return None;
        }
        let plan = Plan::parse(&run.head.plan).ok()?;
        Some(Self::of(&plan, run, Outcome::of(run, false)))
    }

    /// The screen, with the code that the command ends with where it is the command that prints it.
    pub fn text(&self, place: &Place, code: Option<i32>) -> String {
        let acceptance = &self.acceptance;
        let mut lines = vec![acceptance.head()];
        if let Some(all) = &acceptance.all_pairs {
            let (first, others) = all
                .reasons
                .split_first()
                .map_or(("", &[][..]), |(one, more)| (&**one, more));
            lines.extend(require::entry(
                all.state.word(),
                &format!("all pairs: {first}"),
                COLUMNS,
            ));
            for other in others {
                lines.extend(require::entry("", other, COLUMNS));
            }
        }
        lines.extend(require::lines(&self.judgements, COLUMNS));
        let is_missing = match self.is_cut_off {
            true => State::Inconclusive,
            false => State::Fail,
        };
        // What is missing is told however much there is before it.
        let mut last = Vec::new();
        for text in &self.missing {
            let text = match self.is_cut_off {
                true => format!("interrupted; {text}; `sonde accept --resume` measures them"),
                false => text.clone(),
            };
            last.extend(require::entry(is_missing.word(), &text, COLUMNS));
        }
        last.extend(acceptance.last(place, code));
        let room = LINES.saturating_sub(last.len()).max(1);
        if lines.len() > room {
            let more = lines.len() + 1 - room;
            lines.truncate(room - 1);
            lines.push(format!("{:<14}and {more} more lines: --json has all", ""));
        }
        lines.extend(last);
        let lines = lines.iter().map(|line| {
            let line: String = plain(line).chars().take(COLUMNS).collect();
            line.trim_end().to_owned()
        });
        lines.collect::<Vec<String>>().join("\n")
    }
}

/// Whether a run was interrupted or killed, and did not go on since.
fn is_cut_off(run: &Run) -> bool {
    let mut events = run.events.iter().map(|event| event.kind.as_str());
    let last = events.rfind(|kind| ["interrupted", "resumed"].contains(kind));
    let is_whole = run.missing().is_empty();
    !is_whole && (run.head.state == RunState::Open || last == Some("interrupted"))
}

impl Acceptance {
    fn head(&self) -> String {
        let scope = &self.scope;
        let network = self.network.as_deref().unwrap_or("no network");
        let of = |rate: Option<String>, pairs: &str| {
            let mut words = vec![format!("{} hosts", scope.hosts.len())];
            words.push(format!("{} of {} {pairs}", scope.pairs, scope.pairs_all));
            words.push(format!("{network}{}", rate.unwrap_or_default()));
            words.extend(scope.took());
            format!("ACCEPTANCE {}  {}", self.state.word(), words.join(", "))
        };
        // What there is no room for is left out.
        let rate = self.line_bps.map(|bps| format!(" {}", rate(bps as f64)));
        let all = [of(rate, "ordered pairs"), of(None, "ordered pairs")];
        let fits = all.into_iter().find(|line| line.chars().count() <= COLUMNS);
        fits.unwrap_or_else(|| of(None, "pairs"))
    }

    /// What would have been detected, the trust, and where the rest is.
    fn last(&self, place: &Place, code: Option<i32>) -> Vec<String> {
        let mut lines = Vec::new();
        let all_pairs = self.all_pairs.iter();
        for note in all_pairs.clone().flat_map(|all| &all.notes) {
            lines.extend(require::entry("NOTE", note, COLUMNS).into_iter().take(2));
        }
        lines.truncate(4);
        for text in all_pairs.filter_map(|all| all.detectable.as_ref()) {
            lines.extend(
                require::entry("DETECTABLE", &format!("with 80 % power: {text}"), COLUMNS)
                    .into_iter()
                    .take(3),
            );
        }
        let level = self.trust.level.word();
        let trust = format!("{level}: {}", self.trust.reasons.join("; "));
        lines.extend(require::entry("TRUST", &trust, COLUMNS).into_iter().take(2));
        let run = &self.scope.run;
        let code = code.map_or(String::new(), |code| format!("; exit code {code}"));
        let more = format!("sonde report show --table {run}{}{code}", place.options);
        lines.extend(require::entry("MORE", &more, COLUMNS));
        if let Some(page) = &place.page {
            lines.extend(require::entry("REPORT", page, COLUMNS));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::require::requirement;
    use crate::require::testing::{row, run};
    use sonde_measure::Testbed;
    use sonde_report::TrustLevel;

    fn acceptance(reasons: usize) -> Acceptance {
        let hosts: Vec<String> = (1..=16).map(|host| format!("c{host:02}")).collect();
        Acceptance {
            state: State::Fail,
            scope: Scope {
                run: "20261121T043302Z-1f09c3".into(),
                testbed: Some(Testbed::Hosts),
                hosts,
                networks: 1,
                pairs: 240,
                pairs_beside: 8,
                pairs_all: 240,
                began_unix_ns: 0,
                took_ns: Some(72_000_000_000),
            },
            network: Some("eth0".into()),
            line_bps: Some(25_000_000_000),
            all_pairs: Some(AllPairs {
                state: State::Fail,
                network: "eth0".into(),
                pairs: 240,
                pairs_all: 240,
                hosts: vec!["c05".into()],
                directions: Vec::new(),
                reasons: vec!["c05 is bad: streams to it lose 3.0 % [2.8 % to 3.3 %] of segments; look at its cable".into(); reasons],
                notes: vec!["c07 has another MTU".into()],
                detectable: Some("a host whose streams are 21 % slower".into()),
            }),
            trust: Trust {
                level: TrustLevel::Medium,
                figures: 0,
                disturbed: 0,
                stolen: None,
                repetitions: Some((2, 2)),
                wide: 0,
                intervals: 0,
                missing: 0,
                usable: Vec::new(),
                unusable: Vec::new(),
                reasons: vec!["2 repetitions: no confidence intervals".into()],
            },
        }
    }

    #[test]
    fn a_screen_has_24_lines() {
        let rows = [
            row(Quantity::ThroughputBps, 23.4e9, ("c01", "c02")),
            row(Quantity::ThroughputBps, 9e9, ("c05", "c02")),
        ];
        let of = |text: &str| requirement(text).unwrap().judged(&run(Vec::new()), &rows);
        let place = Place {
            page: Some("sonde-runs/r.html".into()),
            options: String::new(),
        };
        let screen = |reasons: usize, requirements: usize| {
            let all = vec![of("throughput>=23.0Gbit"); requirements];
            let judged = Judged {
                acceptance: acceptance(reasons),
                judgements: Judgements { all },
                missing: vec!["repetitions missing or failed: 1".to_owned()],
                is_cut_off: false,
                outcome: Outcome::default(),
            };
            judged.text(&place, Some(1))
        };
        let usual = screen(1, 2);
        assert_eq!(
            usual.lines().next().unwrap(),
            "ACCEPTANCE FAIL  16 hosts, 240 of 240 ordered pairs, eth0 25.00 Gb/s, 1 min 12 s"
        );
        for part in [
            "FAIL          all pairs: c05 is bad",
            "FAIL          throughput >= 23.00 Gb/s: 9.000 Gb/s, 60.9 % below (c05>c02); 1 of",
            "FAIL          repetitions missing",
            "DETECTABLE    with 80 % power: a host whose streams are 21 % slower",
            "TRUST         medium: 2 repetitions",
            "MORE          sonde report show --table 20261121T043302Z-1f09c3; exit code 1",
        ] {
            assert!(usual.contains(part), "{part}:\n{usual}");
        }
        for (reasons, requirements) in [(0, 0), (1, 2), (9, 9), (40, 3), (1, 30)] {
            let text = screen(reasons, requirements);
            assert!(text.lines().count() <= LINES, "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= COLUMNS),
                "{text}"
            );
            assert!(text.contains("exit code 1"), "{text}");
        }
        let long = screen(40, 3);
        for part in [
            "more lines: --json has all",
            "FAIL          repetitions missing",
        ] {
            assert!(long.contains(part), "{part}:\n{long}");
        }
    }
}
