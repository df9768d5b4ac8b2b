//! Which flows go at once, and for how long: the rounds that a launch of a pattern makes among so many hosts.
//!
//! Model:   a launch makes all rounds one after the other, in an order drawn from the seed; each has all its flows at once.
//! Checked: the tests of `rounds`; `flows_are_read_and_refused` of the plan.

mod rounds;

use crate::failure::Failure;
pub use rounds::{RoundRequest, Stage, path};
use serde::{Deserialize, Serialize};
use sonde_measure::Knobs;
use sonde_probe::pattern::Kind;
use sonde_probe::pattern::sets::Set;
use sonde_units::Span;
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
            format!(
                "`{text}` is not a kind of flow: write stream, latency, latency-udp or exchange"
            )
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
    pub fn is_matrix(&self) -> bool {
        self.shapes == [Shape::AllPairs]
    }
}

impl Rounds {
    /// The order of launch `index`: what stood out has one of its own.
    pub fn in_order(&self, index: u64) -> Vec<&RoundRequest> {
        let mut stages = self.all.iter().map(|asked| asked.stage);
        match stages.any(|stage| !stage.is_as_first()) {
            true => self.all.iter().collect(),
            false => rounds::in_order(&self.all, self.flows.seed.wrapping_add(index)),
        }
    }

    /// Whether it is measured anew or again what was measured before.
    pub fn is_again(&self) -> bool {
        let mut stages = self.all.iter().map(|asked| asked.stage);
        stages.any(|stage| stage != Stage::Together)
    }

    /// A guess at the time of a launch.
    pub fn estimate_ns(&self) -> u64 {
        self.all.iter().map(RoundRequest::estimate_ns).sum()
    }
}
