//! `sonde tune`: why a pair's stream is not faster, what to set, and whether that helps.
//!
//! Model:   the pair is measured as it is and diagnosed by the rules of [`sonde_report::diagnosis`]. With `--apply` each
//!          cause's change is tried alone, on top of what was kept: launches without and with it alternate in shuffled
//!          order, and it is kept where the rank sum test finds them apart at 5 % and the rate is higher. The next cause is looked
//!          for among the launches with it. All is one run, whose cells say by the knob `tune` of which trial they are; what
//!          comes next follows from the run alone, so that one that was cut off goes on where it was. Settings are put back
//!          after each launch, those that are kept are set again for the next.
//! Source:  Mann & Whitney 1947 for the test ([`sonde_stats::rank_sum`]).
//! Units:   bits a second.
//! Checked: `tests/lab_tune.rs`; `better_is_significant_and_higher`.

mod page;

use crate::any_path::AnyPath;
use crate::campaign::{End, LiveNetwork, Silent};
use crate::document::{self, Command};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::layout::{self, Block};
use crate::measure;
use crate::output::{self, Print, say};
use crate::plan::{Kind, Plan};
use crate::source::{Seen, Source};
use schemars::JsonSchema;
use serde::Serialize;
use sonde_fleet::Fleet;
use sonde_measure::{CellRecord, KnobValues, Phase, Quantity, Run, Setting as HostSetting};
use sonde_probe::host::{Change, Setting};
use sonde_report::diagnosis::{Advice, Cause, Diagnosis, diagnose};
use sonde_stats::Series;
use sonde_stats::rank_sum;
use sonde_sys::{tell, told};
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::ops::ControlFlow;

/// The factor that tells launches without a change from those with it, after the rule whose change it is.
pub const TUNE: &str = "tune";
/// From here on two sets of launches are apart.
const APART: f64 = 0.05;
/// Changes that are tried at most.
const TRIALS_MAX: usize = 6;

/// What to tune, and how far to go.
pub struct Task {
    /// The pair as it is, as a plan of one network.
    pub measurement: measure::Task,
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

/// The source of a run that tunes.
struct Tuner {
    apply: bool,
    yes: bool,
    /// Whether whose settings they are has agreed that they are changed.
    is_agreed: bool,
    /// Causes whose change cannot be made here, as far as that was said.
    refused: BTreeSet<String>,
    /// What was found so far.
    found: Option<Found>,
}

/// What a run says so far.
struct Found {
    report: Report,
    /// Settings of both hosts that were kept.
    kept: Vec<Setting>,
    /// Of the trial that is not made yet what its change does.
    next: Option<Vec<Step>>,
}

impl Task {
    /// Does it; the exit code.
    pub fn run(mut self) -> Result<i32, Failure> {
        if self.measurement.is_only_printed() {
            return self.measurement.print();
        }
        if self.measurement.resume.is_none() {
            one_pair(&self.measurement.plan)?;
        }
        let mut tuner = Tuner {
            apply: self.apply,
            yes: self.yes,
            is_agreed: false,
            refused: BTreeSet::new(),
            found: None,
        };
        let observer = self.measurement.observer(Silent);
        let measured = match self.measurement.measured(observer, &mut tuner)? {
            ControlFlow::Break(code) => return Ok(code),
            ControlFlow::Continue(measured) => measured,
        };
        let run = measured.run;
        let found = tuner
            .found
            .ok_or_else(|| Failure::cannot("the plan has no stream"))?;
        let report = found.report;
        let mut outcome = Outcome::of(&run, self.measurement.strict);
        let last = report.after.as_ref().unwrap_or(&report.before);
        outcome.is_measured = last.rate_bps.is_some();
        let tuned = Tuned { tune: report };
        match self.measurement.print {
            Print::Json => {
                let command = Command::Tune(&tuned);
                let document = document::of_run(command, &run, outcome.judgement());
                document::print(&document)?;
            }
            Print::Csv => output::rows(&run)?,
            Print::Text => {
                let remarks = remarks(&run);
                say!("{}", page::text(&tuned.tune, &remarks, output::width()));
            }
        }
        for warning in &run.warnings {
            tell!("sonde: {warning}");
        }
        match measured.trouble {
            Some(trouble) => Err(measure::not_kept(&trouble)),
            None => self.measurement.ended(&run, outcome),
        }
    }
}

/// What of a run may hold a stream back beside its pair: an emulation that was behind schedule, a busy machine.
fn remarks(run: &Run) -> Vec<String> {
    const RULES: [&str; 3] = ["disturbed", "host-exhausted", "stolen-time"];
    let found = sonde_report::findings_of(run).into_iter();
    let found = found.filter(|one| RULES.contains(&one.rule.as_str()));
    found.map(|one| one.sentence).collect()
}

/// Whether a plan is of one network, and of two hosts as far as it says.
fn one_pair(plan: &Plan) -> Result<(), Failure> {
    let hosts = match plan.testbed.kind {
        Kind::Hosts => plan.testbed.targets()?.len(),
        _ => plan.testbed.count().unwrap_or(2),
    };
    // Of a site it is the pair that its path is of.
    if plan.networks.len() > 1 || hosts != 2 && !plan.networks.iter().any(|one| one.site) {
        return Err(not_a_pair(hosts));
    }
    Ok(())
}

/// The pair, by the hosts' index: of a site the one that its path is of.
fn ends(up: &LiveNetwork) -> Result<(usize, usize), Failure> {
    let of_site = up.net.model.as_ref().and_then(|model| model.pair);
    match (of_site, up.fleet.borrow().hosts().len()) {
        (Some(pair), _) => Ok(pair),
        (None, 2) => Ok((0, 1)),
        (None, hosts) => Err(not_a_pair(hosts)),
    }
}

/// Each of a pair with the other one.
fn both((one, other): (usize, usize)) -> [(usize, usize); 2] {
    [(one, other), (other, one)]
}

fn not_a_pair(hosts: usize) -> Failure {
    Failure::usage(format!(
        "`sonde tune` is of one pair of hosts, not of {hosts}: name two, as `--testbed hosts:a,b`"
    ))
}

impl Source for Tuner {
    fn command(&self) -> &'static str {
        "sonde tune"
    }

    fn follow(&mut self, seen: Seen<'_>) -> Result<Vec<Block>, Failure> {
        // Who resumes a run with trials wants them to go on.
        self.apply |= seen.run.cells.iter().any(|cell| word(cell).is_some());
        let (found, blocks) = self.find(seen)?;
        self.found = Some(found);
        Ok(blocks)
    }

    fn begins(&mut self, seen: Seen<'_>) -> Result<Option<Vec<(&'static str, String)>>, Failure> {
        let next = self.found.as_ref().and_then(|found| found.next.as_ref());
        let steps = next.map_or(&[][..], Vec::as_slice);
        if !steps.is_empty() && !self.is_agreed {
            self.is_agreed = self.yes || agreed(&seen.live[0])?;
            if !self.is_agreed {
                return Ok(None);
            }
        }
        let said = steps
            .iter()
            .map(|step| format!("{}: {}", step.host, step.undo));
        let said: Vec<_> = said.map(|text| ("undo", text)).collect();
        for (_, text) in &said {
            tell!("sonde: to restore the settings under trial, should this be cut off: {text}");
        }
        Ok(Some(said))
    }

    /// What was kept outlives the run on real hosts. After a signal nothing is kept.
    fn ended(&mut self, seen: Seen<'_>, end: &End) -> Result<(), Failure> {
        // What the last look found is the run's end, where it came to one.
        let found = match (self.found.take(), end) {
            (Some(found), End::Tried) => found,
            _ => self.find(seen)?.0,
        };
        let found = self.found.insert(found);
        let ends = ends(&seen.live[0])?;
        let mut fleet = seen.live[0].fleet.borrow_mut();
        if !matches!(end, End::Tried) {
            if !found.report.trials.is_empty() || found.next.is_some() {
                let why = match end {
                    End::NotKept(_) => "the results cannot be stored",
                    End::Interrupted | End::Tried => "interrupted",
                };
                tell!("sonde: {why}: no setting is kept, and all are restored");
            }
            found.report.undo.clear();
            let trials = found.report.trials.iter_mut();
            trials.for_each(|trial| trial.kept = false);
        } else if !found.kept.is_empty() && fleet.lab_info().is_none() {
            for (host, peer) in both(ends) {
                let change = fleet.change(host, peer, &found.kept, false);
                change.map_err(Failure::cannot)?;
                fleet.keep(host).map_err(Failure::cannot)?;
            }
        }
        Ok(())
    }
}

impl Tuner {
    /// What the run says, and the blocks of the trials: those that were made, and the next.
    fn find(&mut self, seen: Seen<'_>) -> Result<(Found, Vec<Block>), Failure> {
        let Seen { run, live, .. } = seen;
        let up = &live[0];
        let ends = ends(up)?;
        let is_base = |block: &&Block| !block.knobs.contains_key(TUNE);
        let base: Vec<&Block> = seen.blocks.iter().filter(is_base).collect();
        let mut streams = base.iter().filter(|block| block.path() == AnyPath::TCP);
        let stream = streams
            .find(|block| block.quantity() == Quantity::ThroughputBps)
            .ok_or_else(|| Failure::cannot("the plan has no stream"))?;
        let before = diagnose(&of_trial(run, None), &up.net.name);
        let mut now = before.clone();
        let mut found = Found {
            report: Report {
                recommendations: recommend_all(up, ends, &stream.host, &before, &before.causes),
                before,
                trials: Vec::new(),
                after: None,
                undo: Vec::new(),
            },
            kept: Vec::new(),
            next: None,
        };
        let mut blocks = Vec::new();
        if !self.apply || !base.iter().all(|block| seen.is_made(block)) {
            return Ok((found, blocks));
        }
        let mut stream = Block {
            pair: pair(up, &found.report.before),
            ..Block::clone(stream)
        };
        let mut tried = BTreeSet::new();
        let mut made: Vec<Advice> = Vec::new();
        while tried.len() < TRIALS_MAX {
            // The same change for another cause is the same trial.
            let is_new = |cause: &&Cause| {
                let change = cause.change.as_ref();
                change.is_some_and(|change| !made.contains(change)) && !tried.contains(&cause.rule)
            };
            let Some(cause) = now.causes.iter().find(is_new).cloned() else {
                break;
            };
            tried.insert(cause.rule.clone());
            let one = recommend(up, ends, &stream.host, &now, &cause);
            if let Some(why) = &one.refused {
                if self.refused.insert(cause.rule.clone()) {
                    tell!("sonde: {} is not tried: {why}", cause.rule);
                }
                continue;
            }
            let advice = cause.change.clone().unwrap_or_default();
            made.push(advice.clone());
            let without = trial(up, &stream, &cause.rule, None, seen.launches)?;
            let with = trial(up, &stream, &cause.rule, Some(&advice), seen.launches)?;
            blocks.extend([without.clone(), with.clone()]);
            if seen.is_left_out(&without) || seen.is_left_out(&with) {
                continue;
            }
            if !seen.is_made(&without) || !seen.is_made(&with) {
                found.next = Some(one.steps);
                break;
            }
            let trial = Trial::of(run, [&without, &with], &one);
            let is_kept = trial.kept;
            found.report.trials.push(trial);
            if !is_kept {
                continue;
            }
            set_all(&mut found.kept, settings(&advice));
            let undo = one.steps.iter().rev().cloned();
            found.report.undo.splice(0..0, undo);
            now = diagnose(&of_trial(run, with.knobs.get(TUNE)), &up.net.name);
            let known = &found.report.recommendations;
            let is_fresh = |cause: &&Cause| known.iter().all(|one| one.cause.rule != cause.rule);
            let fresh: Vec<Cause> = now.causes.iter().filter(is_fresh).cloned().collect();
            stream = with;
            let fresh = recommend_all(up, ends, &stream.host, &now, &fresh);
            found.report.recommendations.extend(fresh);
            found.report.after = Some(now.clone());
        }
        if found.report.after.is_none() && !found.report.trials.is_empty() {
            found.report.after = Some(now);
        }
        Ok((found, blocks))
    }
}

/// The word of a trial in a cell's factors: the rule, and whether its change was made.
fn word(cell: &CellRecord) -> Option<&str> {
    cell.factors.knobs.get(TUNE).map(String::as_str)
}

/// The stream of a trial on top of what was kept, which `stream` has: without its change, or with it.
fn trial(
    up: &LiveNetwork,
    stream: &Block,
    rule: &str,
    change: Option<&Advice>,
    launches: u64,
) -> Result<Block, Failure> {
    let mut block = stream.clone();
    block.knobs.remove(TUNE);
    let mut word = "without";
    if let Some(advice) = change {
        word = "with";
        set_all(&mut block.host, settings(advice));
        change_sockets(&mut block.knobs, advice);
        block.take_knobs()?;
    }
    let word = format!("{rule} {word}");
    block.knobs.insert(TUNE.into(), word);
    block.launches = launches;
    block.cells = layout::cells(&up.net, &block, &[])?;
    Ok(block)
}

impl Trial {
    /// What became of the launches without and with a change.
    fn of(run: &Run, blocks: [&Block; 2], one: &Recommendation) -> Self {
        let [without_bps, with_bps] = blocks.map(|block| rates(run, block));
        let missing = blocks.map(|block| {
            let ids = block.cells.iter().map(|cell| &cell.id);
            let succeeded = ids.flat_map(|id| run.repetitions_of(id));
            let succeeded = succeeded.filter(|one| one.result.failure.is_none());
            (block.launches as usize).saturating_sub(succeeded.count())
        });
        let gain = middle(&with_bps)
            .zip(middle(&without_bps).filter(|median| *median > 0))
            .map(|(with, without)| with as f64 / without as f64);
        Self {
            rule: one.cause.rule.clone(),
            missing: missing.iter().sum(),
            p: rank_sum(&with_bps, &without_bps).map(|test| test.p),
            kept: is_better(&without_bps, &with_bps),
            without_bps,
            with_bps,
            gain,
            expected_gain: one.expected_gain,
        }
    }
}

/// Whether settings of these hosts may be changed.
fn agreed(up: &LiveNetwork) -> Result<bool, Failure> {
    let fleet = up.fleet.borrow();
    let used = |host: &sonde_measure::HostRecord| {
        let count = host.facts.settings.number(HostSetting::SocketsEstablished);
        let count = count.filter(|count| *count > 0)?;
        let interface = host.facts.interface.as_deref().unwrap_or("its interface");
        Some(format!(
            "{} ({interface}; established TCP connections there: {count})",
            host.name
        ))
    };
    let busy: Vec<String> = fleet.hosts().iter().filter_map(used).collect();
    if fleet.lab_info().is_some() || busy.is_empty() {
        return Ok(true);
    }
    let what = format!(
        "other connections use {} (this command's own among them), and changed settings apply to them too",
        busy.join(" and ")
    );
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "{what}; add `--yes` to change them"
        )));
    }
    told::question(format_args!(
        "sonde: {what}. Change them, and restore those that do not help? [y/N]"
    ));
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(Failure::cannot)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The hosts of the slower way, by their index.
fn pair(up: &LiveNetwork, diagnosis: &Diagnosis) -> Option<(usize, usize)> {
    let fleet = up.fleet.borrow();
    let at = |name: &String| fleet.hosts().iter().position(|host| host.name == *name);
    let [src, dst] = diagnosis.way.as_ref()?;
    at(src).zip(at(dst))
}

fn settings(advice: &Advice) -> Vec<Setting> {
    let one = |(name, value): &(String, String)| Setting::new(name, value);
    advice.hosts.iter().map(one).collect()
}

/// A setting that is set again has its last value.
fn set_all(known: &mut Vec<Setting>, change: Vec<Setting>) {
    known.retain(|one| change.iter().all(|set| set.name != one.name));
    known.extend(change);
}

/// Changes the knobs of the program's sockets.
fn change_sockets(sockets: &mut KnobValues, advice: &Advice) {
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

/// The exact lines of each cause's change at both hosts, where these are set already.
fn recommend_all(
    up: &LiveNetwork,
    ends: (usize, usize),
    set: &[Setting],
    diagnosis: &Diagnosis,
    causes: &[Cause],
) -> Vec<Recommendation> {
    let causes = causes.iter();
    causes
        .map(|cause| recommend(up, ends, set, diagnosis, cause))
        .collect()
}

fn recommend(
    up: &LiveNetwork,
    ends: (usize, usize),
    set: &[Setting],
    diagnosis: &Diagnosis,
    cause: &Cause,
) -> Recommendation {
    let mut fleet = up.fleet.borrow_mut();
    fleet.take_network(up.nth);
    let change = settings(&cause.change.clone().unwrap_or_default());
    let mut one = Recommendation {
        cause: cause.clone(),
        steps: Vec::new(),
        expected_gain: cause
            .expected_bps
            .zip(diagnosis.rate_bps.filter(|bps| *bps > 0.0))
            .map(|(expected, now)| expected / now),
        refused: None,
    };
    if change.is_empty() {
        return one;
    }
    for (host, peer) in both(ends) {
        let name = fleet.hosts()[host].name.clone();
        match looked_up(&mut fleet, [host, peer], set, &change) {
            Ok(changes) => one.steps.extend(steps(&name, &changes)),
            Err(error) => one.refused = Some(error.to_string()),
        }
    }
    one
}

/// What a change would do at a host with these settings, which are set meanwhile.
fn looked_up(
    fleet: &mut Fleet,
    [host, peer]: [usize; 2],
    set: &[Setting],
    change: &[Setting],
) -> sonde_fleet::Result<Vec<Change>> {
    if set.is_empty() {
        return fleet.change(host, peer, change, true);
    }
    fleet.change(host, peer, set, false)?;
    let changes = fleet.change(host, peer, change, true);
    fleet.put_back(host)?;
    changes
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

/// What a run holds of the pair as it was, or with the change of a trial in place of its first stream.
fn of_trial(run: &Run, trial: Option<&String>) -> Run {
    let is_stream = |cell: &CellRecord| {
        cell.factors.mode.as_deref() == Some("stream") && cell.factors.path == "tcp"
    };
    let mut seen = run.clone();
    seen.cells.retain(|cell| match (word(cell), trial) {
        (None, None) => true,
        (None, Some(_)) => !is_stream(cell),
        (Some(word), trial) => trial.is_some_and(|trial| trial == word),
    });
    let kept: BTreeSet<String> = seen.cells.iter().map(|cell| cell.id.clone()).collect();
    seen.retain_results(|_, result| kept.contains(&result.cell));
    seen
}

/// The rates of a block's launches; 0 for a stream that did not come through.
fn rates(run: &Run, block: &Block) -> Vec<u64> {
    let made = block
        .cells
        .iter()
        .flat_map(|cell| run.repetitions_of(&cell.id));
    let rate = made.map(|one| {
        let rate = one.result.samples(Quantity::ThroughputBps, Phase::Warm);
        rate.and_then(Series::median).unwrap_or(0)
    });
    rate.collect()
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
