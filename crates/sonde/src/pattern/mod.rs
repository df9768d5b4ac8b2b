//! Many flows at once: the blocks of a pattern, and `sonde probe pattern` with its tables and its verdict.
//!
//! Model:   a block of the campaign, whose launch is a fresh worker on every host; it makes all rounds, in an order drawn from the
//!          seed. Each flow has a cell, and all flows of a round have one together, `flow=all`. A matrix is measured by matchings;
//!          what stands out of it follows: it is measured again together, then alone beside pairs that do not.
//! Checked: the tests of `rounds` and `cells`; `tests/lab_pattern.rs`, `tests/lab_verdict.rs`.

mod cells;
mod incast;
mod print;
mod rounds;

use crate::campaign::{self, Silent};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::layout::{self, Block, Site};
use crate::measure;
use crate::plan::{Plan, ProbePlan, Work};
use crate::source::{Searches, Seen};
pub use cells::Cells;
pub use rounds::RoundRequest;
use rounds::Stage;
use serde::{Deserialize, Serialize};
use sonde_measure::{Knobs, Run};
use sonde_probe::pattern::Kind;
use sonde_probe::pattern::sets::Set;
use sonde_report::matrix::{self, Suspects};
use sonde_sys::tell;
use sonde_units::Span;
use std::ops::ControlFlow;
use std::str::FromStr;

/// What each flow of a set does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    Stream,
    Latency,
    LatencyUdp,
    Exchange,
}

impl What {
    fn kind(self) -> Kind {
        match self {
            Self::Stream => Kind::Stream,
            Self::Latency => Kind::Latency,
            Self::LatencyUdp => Kind::LatencyUdp,
            Self::Exchange => Kind::Exchange,
        }
    }
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [
            Self::Stream,
            Self::Latency,
            Self::LatencyUdp,
            Self::Exchange,
        ];
        let found = all.into_iter().find(|one| one.kind().name() == text);
        found.ok_or_else(|| {
            format!("there is no kind `{text}`: write stream, latency, latency-udp or exchange")
        })
    }
}

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A set of pairs.
    Set(Set),
    /// Every ordered pair, with a verdict.
    AllPairs,
    /// More and more to one, beside who only asks.
    Incast,
}

impl Shape {
    /// Those that a text names: sets after each other, or one of the others.
    pub fn parse(text: &str) -> Result<Vec<Self>, Failure> {
        match text {
            sonde_report::matrix::ALL_PAIRS => return Ok(vec![Self::AllPairs]),
            "incast" => return Ok(vec![Self::Incast]),
            _ => {}
        }
        if text.contains('>') {
            let set = text.parse().map_err(Failure::usage)?;
            return Ok(vec![Self::Set(set)]);
        }
        let set = |word: &str| word.parse().map(Self::Set).map_err(Failure::usage);
        text.split(',').map(set).collect()
    }
}

/// Which flows go at once, and for how long; as [`crate::plan::FlowsPlan`] says, typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Flows {
    /// Who sends to whom, one after the other.
    pub shapes: Vec<Shape>,
    /// What each flow of a set does.
    pub kinds: Vec<What>,
    /// User bytes in a message, where not as usual.
    pub size_bytes: Option<u64>,
    /// How many hosts send, from the least to the most; all without it.
    pub senders: Option<(usize, usize)>,
    /// What counts of each flow, where not as usual.
    pub window: Option<Span>,
    /// The part before it.
    pub lead: Option<Span>,
    /// Latency: from an answer to the next message.
    pub gap: Span,
    /// The most samples of a flow in a launch.
    pub samples: u64,
    /// Shorter windows.
    pub quick: bool,
    /// Where random draws begin.
    pub seed: u64,
}

/// What a launch of a pattern does: rounds one after the other, each with all its flows at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// What they are made of.
    pub flows: Flows,
    /// In the order in which they were asked for.
    pub all: Vec<RoundRequest>,
    /// What is set of the sockets.
    pub knobs: Knobs,
}

impl Flows {
    /// Whether every ordered pair is measured, with a verdict.
    fn is_matrix(&self) -> bool {
        self.shapes == [Shape::AllPairs]
    }
}

impl Rounds {
    /// The order of launch `index`: what is measured again has one of its own.
    pub fn in_order(&self, index: u64) -> Vec<&RoundRequest> {
        match self.is_again() {
            true => self.all.iter().collect(),
            false => rounds::in_order(&self.all, self.flows.seed.wrapping_add(index)),
        }
    }

    fn is_again(&self) -> bool {
        let stages = self.all.iter().map(|asked| asked.stage);
        stages.clone().any(|stage| stage != Stage::Together)
    }

    /// A guess at the time of a launch.
    pub fn estimate_ns(&self) -> u64 {
        self.all.iter().map(RoundRequest::estimate_ns).sum()
    }
}

/// The block of a probe of kind pattern at a site; none of another kind.
///
/// # Errors
/// Flows that cannot be among the site's hosts.
pub fn block(
    plan: &Plan,
    probe: &ProbePlan,
    site: usize,
    of: &Site,
) -> Result<Option<Block>, Failure> {
    let Some((flows, knobs)) = probe.flows(&plan.repeat)? else {
        return Ok(None);
    };
    let all = flows.rounds(of.hosts.len())?;
    let settings = probe.settings();
    let block = Block {
        site,
        work: Work::Rounds(Box::new(Rounds { flows, all, knobs })),
        knobs: settings.into_iter().next().unwrap_or_default(),
        host: Vec::new(),
        load: None,
        launches: probe.launches.unwrap_or(plan.repeat.launches),
        cells: Vec::new(),
        estimate_ns: 0,
        reference: false,
        way: None,
        lost: None,
    };
    named(block, of).map(Some)
}

/// With its cells and the time that it takes.
fn named(mut block: Block, site: &Site) -> Result<Block, Failure> {
    if let Some(rounds) = block.rounds() {
        let cells = Cells {
            site,
            block: &block,
        };
        (block.cells, block.estimate_ns) = (cells.of(&rounds.all)?, rounds.estimate_ns());
    }
    Ok(block)
}

/// What is measured again of each matrix whose launches were made: what stands out of it, together, then alone beside pairs that do
/// not. None where nothing does.
///
/// # Errors
/// A cell that cannot be named.
pub fn again(seen: Seen<'_>) -> Result<Vec<Block>, Failure> {
    let mut all = Vec::new();
    for block in seen.blocks {
        let rounds = block.rounds().filter(|rounds| rounds.flows.is_matrix());
        let Some(rounds) = rounds.filter(|rounds| !rounds.is_again() && seen.is_made(block)) else {
            continue;
        };
        let run = seen.only(block);
        let is_any = |of: &Suspects| !(of.hosts.is_empty() && of.pairs.is_empty());
        let Some(suspects) = matrix::suspects(&run).filter(is_any) else {
            continue;
        };
        let site = &seen.beds[block.site].site;
        let retest = Rounds {
            all: rounds.flows.retest(&site.hosts, &suspects),
            ..Rounds::clone(rounds)
        };
        let count = retest.all.len();
        let again = Block {
            work: Work::Rounds(Box::new(retest)),
            launches: 1,
            ..block.clone()
        };
        let again = named(again, site)?;
        if layout::is_new(seen.blocks, &again) {
            say_again(&suspects, count);
        }
        all.push(again);
    }
    Ok(all)
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
        if self.measurement.is_only_printed() {
            return self.measurement.print();
        }
        let observer = self.measurement.observer(Silent);
        let measured = match self.measurement.measured(observer, &mut Searches)? {
            ControlFlow::Break(code) => return Ok(code),
            ControlFlow::Continue(measured) => measured,
        };
        let (run, ended) = (&measured.run, outcome(&measured.run));
        print::all(run, &self.measurement, &ended)?;
        if measured.trouble.is_none() {
            let page = format!("{}.html", run.head.id);
            measure::say_report(run, &self.measurement.out.join(page));
        }
        self.measurement.say_kept(&measured)?;
        self.measurement.ended(run, ended)
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
