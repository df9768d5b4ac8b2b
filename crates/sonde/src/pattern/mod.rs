//! Many flows at once: the blocks of a pattern, and `sonde probe pattern` with its tables and its verdict.
//!
//! Model:   a block of the campaign, whose launch is a fresh worker on every host; it makes all rounds, in an order drawn from the
//!          seed. Each flow has a cell, and all flows of a round have one together, `flow=all`. A matrix is measured by matchings;
//!          what disturbances leave open of it follows, as it was and at most twice; then what stands out of it, which is measured again
//!          together, then alone beside pairs that do not.
//! Checked: the tests of `flows` and `cells`; `tests/lab_pattern.rs`, `tests/lab_verdict.rs`.

mod cells;
mod incast;
mod print;

use crate::allowance::MAX_RATE;
use crate::campaign::{self, Silent};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::flows::{RoundRequest, Rounds};
use crate::layout::{self, Block, TestNetwork};
use crate::measure;
use crate::plan::{Plan, ProbePlan, Work};
use crate::require::Judgements;
use crate::source::{Searches, Seen};
pub use cells::Cells;
pub use print::said;
use sonde_measure::{Judged, Run};
use sonde_report::matrix::{self, ANEW, AllPairs, LeftOpen, Suspects};
use sonde_sys::tell;
use std::ops::ControlFlow;

/// The block of a probe of kind pattern at a network; none of another kind.
///
/// # Errors
/// Flows that cannot be among the network's hosts.
pub fn block(
    plan: &Plan,
    probe: &ProbePlan,
    net: usize,
    of: &TestNetwork,
) -> Result<Option<Block>, Failure> {
    let Some((flows, mut knobs)) = probe.flows(&plan.repeat)? else {
        return Ok(None);
    };
    knobs.max_rate_bps = plan.allow.rate.map(|most| most.bps());
    let all = flows.rounds(of.hosts.len())?;
    let settings = probe.settings();
    let mut named = settings.into_iter().next().unwrap_or_default();
    if let Some(most) = plan.allow.rate {
        named.insert(MAX_RATE.into(), most.to_string());
    }
    let block = Block {
        net,
        work: Work::Rounds(Box::new(Rounds { flows, all, knobs })),
        knobs: named,
        host: Vec::new(),
        load: None,
        launches: probe.launches.unwrap_or(plan.repeat.launches),
        cells: Vec::new(),
        estimate_ns: 0,
        reference: false,
        pair: None,
        lost: None,
    };
    with_cells(block, of).map(Some)
}

/// With its cells and the time that it takes.
fn with_cells(mut block: Block, net: &TestNetwork) -> Result<Block, Failure> {
    if let Some(rounds) = block.rounds() {
        let cells = Cells { net, block: &block };
        (block.cells, block.estimate_ns) = (cells.of(&rounds.all)?, rounds.estimate_ns());
    }
    Ok(block)
}

/// What is measured again of each matrix whose launches were made: what disturbances leave open of it, at most twice; then what stands out
/// of it, together, then alone beside pairs that do not. None where nothing does.
///
/// # Errors
/// A cell that cannot be named.
pub fn again(seen: Seen<'_>) -> Result<Vec<Block>, Failure> {
    let mut all = Vec::new();
    'matrices: for block in seen.blocks {
        let rounds = block.rounds().filter(|rounds| rounds.flows.is_matrix());
        let Some(rounds) = rounds.filter(|rounds| !rounds.is_again() && seen.is_made(block)) else {
            continue;
        };
        let net = &seen.live[block.net].net;
        let with = |all: Vec<RoundRequest>| {
            let rounds = Rounds {
                all,
                ..Rounds::clone(rounds)
            };
            let again = Block {
                work: Work::Rounds(Box::new(rounds)),
                launches: 1,
                ..block.clone()
            };
            with_cells(again, net)
        };
        let mut made = vec![block.clone()];
        for time in 0..ANEW.len() {
            let open = matrix::left_open(&seen.only(&made)).unwrap_or_default();
            let anew = rounds.flows.anew(&net.hosts, &open, time);
            if anew.is_empty() {
                break;
            }
            let count = anew.len();
            let anew = with(anew)?;
            if layout::is_new(seen.blocks, &anew) {
                say_anew(&open, count);
            }
            all.push(anew.clone());
            if !seen.is_made(&anew) {
                continue 'matrices;
            }
            made.push(anew);
        }
        let is_any = |of: &Suspects| !(of.hosts.is_empty() && of.pairs.is_empty());
        let Some(suspects) = matrix::suspects(&seen.only(&made)).filter(is_any) else {
            continue;
        };
        let retest = rounds.flows.retest(&net.hosts, &suspects);
        let count = retest.len();
        let again = with(retest)?;
        if layout::is_new(seen.blocks, &again) {
            say_again(&suspects, count);
        }
        all.push(again);
    }
    Ok(all)
}

/// Says what disturbances left open.
fn say_anew(open: &LeftOpen, rounds: usize) {
    const NAMED: usize = 4;
    let more = match open.whose.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    tell!(
        "sonde: disturbed samples leave open whether {}{more} {} slow: {rounds} rounds are measured anew",
        open.whose[..open.whose.len().min(NAMED)].join(", "),
        if open.whose.len() == 1 { "is" } else { "are" },
    );
}

/// Says what stood out.
fn say_again(suspects: &Suspects, rounds: usize) {
    let pairs = suspects.pairs.iter().map(|(a, b)| format!("{a} to {b}"));
    let all: Vec<String> = suspects.hosts.iter().cloned().chain(pairs).collect();
    tell!(
        "sonde: {} stood out and {} measured again, together and alone: {rounds} rounds",
        all.join(", "),
        if all.len() == 1 { "is" } else { "are" },
    );
}

/// What to measure.
pub struct Task {
    /// A plan of one pattern.
    pub measurement: measure::Task,
}

impl Task {
    /// Does it; the exit code.
    pub fn run(mut self) -> Result<i32, Failure> {
        self.measurement.take_requirements()?;
        if self.measurement.is_only_printed() {
            return self.measurement.print();
        }
        let observer = self.measurement.observer(Silent);
        let measured = match self.measurement.measured(observer, &mut Searches)? {
            ControlFlow::Break(code) => return Ok(code),
            ControlFlow::Continue(measured) => measured,
        };
        let (run, mut ended) = (&measured.run, outcome(&measured.run));
        let judgements = Judgements::of(&self.measurement.plan, run);
        ended.judge(AllPairs::of(run).as_ref());
        ended.require(&judgements);
        print::all(run, &self.measurement, &ended, &judgements)?;
        if measured.trouble.is_none() {
            let page = format!("{}.html", run.head.id);
            measure::say_report(run, &self.measurement.out.join(page));
        }
        self.measurement.say_kept(&measured)?;
        self.measurement.ended(run, ended)
    }
}

impl Outcome {
    /// With the verdict on all pairs, where these were measured.
    pub fn judge(&mut self, all_pairs: Option<&AllPairs>) {
        let Some(all_pairs) = all_pairs else { return };
        self.is_judged = true;
        match all_pairs.state {
            Judged::Fail => self.failed.extend(all_pairs.reasons.clone()),
            Judged::Inconclusive => self.inconclusive.extend(all_pairs.reasons.clone()),
            Judged::Pass => {}
        }
    }
}

/// What became of a run: a flow that failed in a round has failed.
fn outcome(run: &Run) -> Outcome {
    let failed = run.repetitions().filter(|one| !one.succeeded()).count();
    let failed = (failed > 0).then(|| format!("flows that failed: {failed}"));
    Outcome {
        is_measured: run.repetitions().any(|one| one.succeeded()),
        failed: failed.into_iter().collect(),
        signal: campaign::interrupted(),
        ..Outcome::default()
    }
}
