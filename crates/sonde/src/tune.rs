//! `sonde tune`: why a pair's stream is not faster, what to set, and whether that helps.
//!
//! Model:   the pair is measured as it is and diagnosed by the rules of [`sonde_report::diagnosis`]. With `--apply` each
//!          cause's change is tried alone, on top of what was kept: launches without and with it alternate in shuffled
//!          order, and it is kept where the rank sum test finds them apart at 5 % and the rate is higher. What is kept
//!          stays set for the next cause, which is looked for anew. Settings of a trial are put back after each launch.
//! Source:  Mann & Whitney 1947 for the test ([`sonde_stats::rank_sum`]).
//! Units:   bits a second.
//! Checked: `tests/lab_tune.rs`; `better_is_significant_and_higher`.

mod page;

use crate::campaign::{Bed, Campaign, End, interruption, unix_ns};
use crate::document::{self, Command};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::layout::{self, Block};
use crate::measure;
use crate::plan::{self, Work};
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{EventRecord, Knobs, Phase, Quantity, Run, Setting as HostSetting};
use sonde_probe::host::{Change, Setting};
use sonde_record::Store;
use sonde_report::diagnosis::{Advice, Cause, Diagnosis, diagnose};
use sonde_stats::Series;
use sonde_stats::rank_sum;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// The factor that tells launches without a change from those with it.
const TUNE: &str = "tune";
const WITHOUT: &str = "without";
/// From here on two sets of launches are apart.
const APART: f64 = 0.05;
/// Changes that are tried at most.
const TRIALS_MAX: usize = 6;

/// What to tune, and how far to go.
pub struct Task {
    /// The pair as it is, as a plan of one network.
    pub measurement: measure::Task,
    /// What is set of both hosts before anything is measured.
    pub host: Vec<Setting>,
    /// Try what is recommended, and keep what helps.
    pub apply: bool,
    /// Do not ask.
    pub yes: bool,
}

/// A line of a shell at one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TuneStep")]
pub struct Step {
    /// The host.
    pub host: String,
    /// What to run there.
    pub line: String,
    /// What puts it back.
    pub undo: String,
}

/// A cause with what to do about it here.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Recommendation {
    /// What was found.
    pub cause: Cause,
    /// The lines that change it.
    pub steps: Vec<Step>,
    /// What the rate is multiplied with, by the arithmetic.
    pub expected_gain: Option<f64>,
    /// Why the settings cannot be read or changed here; null where they can.
    pub refused: Option<String>,
}

/// A change that was tried.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Trial {
    /// The run with its launches.
    pub run: String,
    /// The rule whose change it was.
    pub rule: String,
    /// Launches that are missing or failed.
    pub missing: usize,
    /// Rates of the launches without it; a stream that did not come through is 0.
    pub without_bps: Vec<u64>,
    /// Rates of those with it.
    pub with_bps: Vec<u64>,
    /// The probability of such ranks by chance.
    pub p: Option<f64>,
    /// Median with it over median without.
    pub gain: Option<f64>,
    /// What the arithmetic said.
    pub expected_gain: Option<f64>,
    /// Whether it was kept.
    pub kept: bool,
}

/// What was found and done.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// The pair as it was.
    pub before: Diagnosis,
    /// What to do.
    pub recommendations: Vec<Recommendation>,
    /// What was tried.
    pub trials: Vec<Trial>,
    /// The pair with what was kept; null where nothing was tried.
    pub after: Option<Diagnosis>,
    /// The lines that put back what was kept, last first.
    pub undo: Vec<Step>,
}

/// What is told of a pair.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tuned {
    /// What was found and done.
    pub tune: Report,
}

/// What is measured now, and what is set.
struct State {
    run: Run,
    /// Knobs of the program's sockets.
    sockets: BTreeMap<String, String>,
    /// The stream's block.
    stream: Block,
    /// The slower way, if one is: the one that is to be faster.
    way: Option<(usize, usize)>,
    /// What was kept of both hosts' settings.
    kept: Vec<Vec<Setting>>,
}

impl Task {
    /// Does it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        if self.measurement.is_only_printed() {
            return self.measurement.print();
        }
        self.measurement.plan.check()?;
        let store = Store::open(&self.measurement.out).map_err(Failure::cannot)?;
        let mut beds = self.measurement.beds()?;
        let hosts = beds[0].fleet.borrow().hosts().len();
        if beds.len() != 1 || hosts != 2 {
            return Err(Failure::usage(format!(
                "`sonde tune` is of one pair of hosts, not of {hosts}: name two, as `--testbed hosts:a,b`"
            )));
        }
        beds[0].fleet.borrow_mut().take_network(beds[0].way);
        self.prepare(&mut beds)?;
        let mut warnings = Vec::new();
        let blocks = self.blocks(&mut beds, &mut warnings)?;
        let stream = blocks
            .iter()
            .find(|block| block.quantity() == Quantity::ThroughputBps)
            .cloned()
            .ok_or_else(|| Failure::cannot("the plan has no stream"))?;
        let (_, sockets) = plan::apart(&stream.knobs)?;
        drop(store);
        let (run, interrupted) = self.campaign(&mut beds, blocks, warnings)?;
        let mut state = State {
            run,
            sockets,
            stream,
            way: None,
            kept: Vec::new(),
        };
        let mut report = self.diagnose(&mut beds, &state);
        state.way = way(&beds[0], &report.before);
        if self.apply && !interrupted && self.agreed(&beds, &report)? {
            self.try_all(&mut beds, &mut state, &mut report)?;
        }
        for bed in beds {
            if let Some(fleet) = Rc::into_inner(bed.fleet) {
                fleet.into_inner().stop().map_err(Failure::cannot)?;
            }
        }
        let outcome = self.outcome(&report, &state.run);
        let tuned = Tuned { tune: report };
        if self.measurement.json {
            let command = Command::Tune(&tuned);
            let document = document::of_run(command, &state.run, outcome.judgement());
            document::print(&document)?;
        } else {
            println!("{}", page::text(&tuned.tune));
        }
        let warnings = state.run.warnings.iter();
        warnings.for_each(|warning| eprintln!("sonde: {warning}"));
        Ok(outcome.code())
    }

    /// What became of it: launches of the pair as it was, and of each trial, that failed have failed.
    fn outcome(&self, report: &Report, run: &Run) -> Outcome {
        let mut outcome = Outcome::of(run, self.measurement.strict);
        let last = report.after.as_ref().unwrap_or(&report.before);
        outcome.is_measured = last.rate_bps.is_some();
        let stood = report.trials.iter().filter(|trial| trial.missing > 0);
        let stood = stood.map(|trial| {
            let (rule, missing) = (&trial.rule, trial.missing);
            format!("launches of the trial of {rule} that are missing or failed: {missing}")
        });
        outcome.failed.extend(stood);
        outcome
    }

    /// Sets what is to be there before, for as long as the agents live.
    fn prepare(&self, beds: &mut [Bed]) -> Result<(), Failure> {
        if self.host.is_empty() {
            return Ok(());
        }
        let mut fleet = beds[0].fleet.borrow_mut();
        for (host, peer) in [(0, 1), (1, 0)] {
            fleet
                .change(host, peer, &self.host, false)
                .map_err(Failure::cannot)?;
        }
        fleet.describe_again().map_err(Failure::cannot)
    }

    fn blocks(&self, beds: &mut [Bed], warnings: &mut Vec<String>) -> Result<Vec<Block>, Failure> {
        let sites: Vec<_> = beds.iter().map(|bed| bed.site.clone()).collect();
        let mut blocks = layout::blocks(&self.measurement.plan, &sites)?;
        beds[0].complete(&blocks, 0, warnings)?;
        // They are set already, and stay.
        blocks.iter_mut().for_each(|block| block.host.clear());
        Ok(blocks)
    }

    /// Measures, into a run of its own.
    fn campaign(
        &self,
        beds: &mut [Bed],
        blocks: Vec<Block>,
        warnings: Vec<String>,
    ) -> Result<(Run, bool), Failure> {
        let store = Store::open(&self.measurement.out).map_err(Failure::cannot)?;
        let run = self.measurement.begin(beds, &blocks, &store)?;
        let repeat = &self.measurement.plan.repeat;
        let mut campaign = Campaign::new(run, store, beds, blocks, repeat)?;
        let end = campaign.measure()?;
        let (run, kept) = campaign.end(warnings);
        kept.map_err(Failure::cannot)?;
        match end {
            End::NotKept(error) => Err(Failure::cannot(error)),
            End::Interrupted => Ok((run, true)),
            End::Tried => Ok((run, false)),
        }
    }

    fn diagnose(&self, beds: &mut [Bed], state: &State) -> Report {
        let before = diagnose(&state.run, &beds[0].site.name);
        let recommendations = before
            .causes
            .iter()
            .map(|cause| recommend(beds, &before, cause))
            .collect();
        Report {
            before,
            recommendations,
            trials: Vec::new(),
            after: None,
            undo: Vec::new(),
        }
    }

    /// Whether settings of these hosts may be changed.
    fn agreed(&self, beds: &[Bed], report: &Report) -> Result<bool, Failure> {
        let bed = &beds[0];
        let steps = report
            .recommendations
            .iter()
            .any(|one| !one.steps.is_empty());
        let lab = bed.fleet.borrow().lab_info().is_some();
        let used = |host: &sonde_measure::HostRecord| {
            let count = host.facts.settings.number(HostSetting::SocketsEstablished);
            let count = count.filter(|count| *count > 0)?;
            let interface = host.facts.interface.as_deref().unwrap_or("its interface");
            Some(format!(
                "{} ({interface}; established TCP connections there: {count})",
                host.name
            ))
        };
        let fleet = bed.fleet.borrow();
        let busy: Vec<String> = fleet.hosts().iter().filter_map(used).collect();
        if !steps || lab || busy.is_empty() || self.yes {
            return Ok(true);
        }
        let what = format!(
            "others use {}, this command's own connections among them: changed settings are theirs too",
            busy.join(" and ")
        );
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage(format!(
                "{what}; add `--yes` to change them"
            )));
        }
        eprint!("sonde: {what}. Change them, and put back what does not help? [y/N] ");
        let mut answer = String::new();
        std::io::stdin()
            .read_line(&mut answer)
            .map_err(Failure::cannot)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Tries each cause's change until none is left.
    fn try_all(
        &self,
        beds: &mut [Bed],
        state: &mut State,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let mut tried = BTreeSet::new();
        let mut now = report.before.clone();
        while tried.len() < TRIALS_MAX {
            let next = now
                .causes
                .iter()
                .find(|cause| cause.change.is_some() && !tried.contains(&cause.rule));
            let Some(cause) = next.cloned() else { break };
            tried.insert(cause.rule.clone());
            let one = recommend(beds, &now, &cause);
            if let Some(refused) = &one.refused {
                eprintln!("sonde: {} is not tried: {refused}", cause.rule);
                continue;
            }
            let advice = cause.change.clone().unwrap_or_default();
            let (trial, run, interrupted) = self.try_one(beds, state, &one, &advice)?;
            let kept = trial.kept;
            report.trials.push(trial);
            if interrupted {
                self.give_up(state, report);
                return Ok(());
            }
            if kept {
                self.keep(beds, state, &one, &advice, report)?;
                now = with_change(state, &run, beds);
                let known = |cause: &Cause| {
                    report
                        .recommendations
                        .iter()
                        .any(|one| one.cause.rule == cause.rule)
                };
                let fresh: Vec<_> = now
                    .causes
                    .iter()
                    .filter(|cause| !known(cause))
                    .cloned()
                    .collect();
                for cause in fresh {
                    report.recommendations.push(recommend(beds, &now, &cause));
                }
                report.after = Some(now.clone());
            }
        }
        if report.after.is_none() && !report.trials.is_empty() {
            report.after = Some(now);
        }
        if interruption()?.load(Ordering::Relaxed) {
            self.give_up(state, report);
            return Ok(());
        }
        self.settle(&mut beds[0], state)
    }

    /// A signal came: nothing is kept. The agents put everything back when they end.
    fn give_up(&self, state: &mut State, report: &mut Report) {
        eprintln!("sonde: interrupted: nothing is kept, and all settings are put back");
        state.kept.clear();
        report.undo.clear();
        report
            .trials
            .iter_mut()
            .for_each(|trial| trial.kept = false);
    }

    /// What was kept outlives this command on real hosts, and nothing else does: what was set before anything was measured
    /// goes.
    fn settle(&self, bed: &mut Bed, state: &State) -> Result<(), Failure> {
        let before = usize::from(!self.host.is_empty());
        if state.kept.is_empty() || bed.fleet.borrow().lab_info().is_some() {
            return Ok(());
        }
        let mut fleet = bed.fleet.borrow_mut();
        for (host, peer) in [(0, 1), (1, 0)] {
            for _ in 0..before + state.kept.len() {
                fleet.put_back(host).map_err(Failure::cannot)?;
            }
            for set in &state.kept {
                let change = fleet.change(host, peer, set, false);
                change.map_err(Failure::cannot)?;
            }
            fleet.keep(host).map_err(Failure::cannot)?;
        }
        Ok(())
    }

    /// Launches without and with a change, in shuffled order.
    fn try_one(
        &self,
        beds: &mut [Bed],
        state: &State,
        one: &Recommendation,
        advice: &Advice,
    ) -> Result<(Trial, Run, bool), Failure> {
        self.tell_undo(&state.run, one)?;
        let mut blocks = Vec::new();
        for with in [false, true] {
            let mut block = state.stream.clone();
            let mut sockets = state.sockets.clone();
            if with {
                block.host = settings(advice);
                change_sockets(&mut sockets, advice);
            }
            if let Work::Channel(spec) = &mut block.work {
                spec.knobs = Knobs::parse(&sockets).map_err(Failure::usage)?;
            }
            let (hosts, _) = split(&state.stream.knobs);
            block.knobs = hosts.into_iter().chain(sockets).collect();
            let word = if with { &one.cause.rule } else { WITHOUT };
            block.knobs.insert(TUNE.into(), word.into());
            block.launches = self.measurement.plan.repeat.launches;
            block.way = state.way;
            block.cells = layout::cells(&beds[0].site, &block, &[])?;
            blocks.push(block);
        }
        let (run, interrupted) = self.campaign(beds, blocks, Vec::new())?;
        let without_bps = rates(&run, |word| word == WITHOUT);
        let with_bps = rates(&run, |word| word != WITHOUT);
        let gain = middle(&with_bps)
            .zip(middle(&without_bps).filter(|median| *median > 0))
            .map(|(with, without)| with as f64 / without as f64);
        let p = rank_sum(&with_bps, &without_bps).map(|test| test.p);
        let trial = Trial {
            run: run.head.id.clone(),
            rule: one.cause.rule.clone(),
            missing: run.missing().len(),
            kept: !interrupted && is_better(&without_bps, &with_bps),
            without_bps,
            with_bps,
            p,
            gain,
            expected_gain: one.expected_gain,
        };
        Ok((trial, run, interrupted))
    }

    /// Says and stores how to put back what is going to be changed.
    fn tell_undo(&self, run: &Run, one: &Recommendation) -> Result<(), Failure> {
        let store = Store::open(&self.measurement.out).map_err(Failure::cannot)?;
        for step in &one.steps {
            let text = format!("{}: {}", step.host, step.undo);
            eprintln!("sonde: to put back what is tried now, should this be cut off: {text}");
            let event = EventRecord {
                at_unix_ns: unix_ns(),
                kind: "undo".into(),
                text,
            };
            store.event(&run.head.id, &event).map_err(Failure::cannot)?;
        }
        Ok(())
    }

    /// Leaves a change set: in a lab as long as it lives, on real hosts for good.
    fn keep(
        &self,
        beds: &mut [Bed],
        state: &mut State,
        one: &Recommendation,
        advice: &Advice,
        report: &mut Report,
    ) -> Result<(), Failure> {
        change_sockets(&mut state.sockets, advice);
        let set = settings(advice);
        if set.is_empty() {
            return Ok(());
        }
        let mut fleet = beds[0].fleet.borrow_mut();
        for (host, peer) in [(0, 1), (1, 0)] {
            let change = fleet.change(host, peer, &set, false);
            change.map_err(Failure::cannot)?;
        }
        state.kept.push(set);
        fleet.describe_again().map_err(Failure::cannot)?;
        report.undo.splice(0..0, one.steps.iter().rev().cloned());
        Ok(())
    }
}

/// The hosts of the slower way, by their index.
fn way(bed: &Bed, diagnosis: &Diagnosis) -> Option<(usize, usize)> {
    let fleet = bed.fleet.borrow();
    let at = |name: &String| fleet.hosts().iter().position(|host| host.name == *name);
    let [src, dst] = diagnosis.way.as_ref()?;
    at(src).zip(at(dst))
}

fn split(knobs: &BTreeMap<String, String>) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let known = |name: &str| {
        sonde_probe::host::KNOBS
            .iter()
            .any(|(known, _)| *known == name)
    };
    knobs.clone().into_iter().partition(|(name, _)| known(name))
}

fn settings(advice: &Advice) -> Vec<Setting> {
    let one = |(name, value): &(String, String)| Setting::new(name, value);
    advice.hosts.iter().map(one).collect()
}

fn change_sockets(sockets: &mut BTreeMap<String, String>, advice: &Advice) {
    // Receivers hold a window that was asked for: what lifts the route's lifts theirs.
    if advice
        .hosts
        .iter()
        .any(|(name, _)| name == HostSetting::RouteWindow.name())
    {
        sockets.remove("window");
    }
    for (name, value) in &advice.sockets {
        match value {
            Some(value) => sockets.insert(name.clone(), value.clone()),
            None => sockets.remove(name),
        };
    }
}

/// The exact lines of a cause's change at both hosts.
fn recommend(beds: &mut [Bed], diagnosis: &Diagnosis, cause: &Cause) -> Recommendation {
    let mut fleet = beds[0].fleet.borrow_mut();
    let set = settings(&cause.change.clone().unwrap_or_default());
    let mut one = Recommendation {
        cause: cause.clone(),
        steps: Vec::new(),
        expected_gain: cause
            .expected_bps
            .zip(diagnosis.rate_bps.filter(|bps| *bps > 0.0))
            .map(|(expected, now)| expected / now),
        refused: None,
    };
    if set.is_empty() {
        return one;
    }
    for (host, peer) in [(0, 1), (1, 0)] {
        let name = fleet.hosts()[host].name.clone();
        match fleet.change(host, peer, &set, true) {
            Ok(changes) => one.steps.extend(steps(&name, &changes)),
            Err(error) => one.refused = Some(error.to_string()),
        }
    }
    one
}

/// Each line once, and none for what is as wanted already.
fn steps(host: &str, changes: &[Change]) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    for change in changes
        .iter()
        .filter(|change| change.before != change.asked)
    {
        let step = Step {
            host: host.into(),
            line: change.line.clone(),
            undo: change.undo.clone(),
        };
        if !all.contains(&step) {
            all.push(step);
        }
    }
    all
}

/// The diagnosis with what was kept: the stream of the trial, the latency as it was, and the hosts as they are now.
fn with_change(state: &mut State, trial: &Run, beds: &[Bed]) -> Diagnosis {
    let network = &beds[0].site.name;
    let run = &mut state.run;
    let is_tcp_stream = |cell: &sonde_measure::CellRecord| {
        cell.factors.mode.as_deref() == Some("stream") && cell.factors.path == "tcp"
    };
    let old: BTreeSet<String> = run
        .cells
        .iter()
        .filter(|cell| is_tcp_stream(cell))
        .map(|cell| cell.id.clone())
        .collect();
    let mut seen = run.clone();
    seen.cells.retain(|cell| !old.contains(&cell.id));
    seen.retain_results(|_, result| !old.contains(&result.cell));
    let with = |cell: &&sonde_measure::CellRecord| {
        cell.factors
            .knobs
            .get(TUNE)
            .is_some_and(|word| word != WITHOUT)
    };
    for cell in trial.cells.iter().filter(with) {
        seen.cells.push(cell.clone());
    }
    let mut tried = trial.clone();
    tried.retain_results(|_, result| seen.cells.iter().any(|cell| cell.id == result.cell));
    seen.launches.append(&mut tried.launches);
    seen.hosts = beds[0].fleet.borrow().hosts().to_vec();
    diagnose(&seen, network)
}

/// The rates of a trial's launches, by the word of their cell; 0 for a stream that did not come through.
fn rates(run: &Run, of: impl Fn(&str) -> bool) -> Vec<u64> {
    let cell = |id: &str| {
        let cell = run.cells.iter().find(|cell| cell.id == id)?;
        cell.factors.knobs.get(TUNE)
    };
    let made = run.repetitions().map(|one| one.result);
    let mine = made.filter(|result| cell(&result.cell).is_some_and(|word| of(word)));
    mine.map(|result| {
        let rate = result.samples(Quantity::ThroughputBps, Phase::Warm);
        rate.and_then(Series::median).unwrap_or(0)
    })
    .collect()
}

fn middle(rates: &[u64]) -> Option<u64> {
    let mut sorted = rates.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

/// Whether the rates with a change are higher, and not by chance.
fn is_better(without: &[u64], with: &[u64]) -> bool {
    rank_sum(with, without).is_some_and(|test| test.p < APART && test.superiority > 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_is_significant_and_higher() {
        let slow = [26, 26, 25, 27];
        let fast = [94, 93, 94, 92];
        assert!(is_better(&slow, &fast));
        assert!(!is_better(&fast, &slow));
        assert!(!is_better(&slow, &slow));
        assert!(!is_better(&[26, 94, 60, 30], &[27, 93, 61, 29]));
        // Streams that stood still count.
        assert!(is_better(&[0; 4], &fast));
        assert!(!is_better(&slow[..2], &fast[..2]), "two prove nothing");
        assert_eq!(middle(&[3, 1, 2, 4]), Some(2));
        assert_eq!(middle(&[]), None);
    }

    #[test]
    fn lines_are_said_once() {
        let change = |name: &str, before: &str, line: &str| Change {
            name: name.into(),
            before: before.into(),
            asked: "1".into(),
            after: before.into(),
            line: line.into(),
            undo: format!("undo {line}"),
        };
        let changes = [
            change("a", "1", "done already"),
            change("route.window", "65535", "ip route replace"),
            change("route.congctl", "reno", "ip route replace"),
        ];
        let all = steps("h1", &changes);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].line, "ip route replace");
    }
}
