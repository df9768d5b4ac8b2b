//! Why a stream between two hosts is not faster, and what to set.
//!
//! Model:   the evidence of one pair is a round trip, a rate with what TCP says of it, and both hosts' settings; each rule
//!          reads it alone, and says a sentence, the figures, its threshold and its source. A stream that reaches
//!          [`FULL`] of what its network allows has no cause. A rule names settings only where by its arithmetic they bind;
//!          what it expects of a change is min(what the network allows, window / round trip). What cannot be explained is
//!          not advised about.
//! Source:  RFC 7323 §1.1 (window / round trip); Mathis, Semke, Mahdavi & Ott, CCR 27(3) 1997, eq. 3 (loss); tcp(7),
//!          TCP_INFO; RFC 4821 and RFC 2923 §2.1 (MTU black hole); RFC 896 and RFC 1122 §4.2.3.2 (Nagle, delayed ACK).
//! Units:   bits a second, nanoseconds, bytes; shares are parts of one.
//! Checked: the tables of `rules`, `apart` and `evidence`; `lab_tune` of the command.

mod apart;
mod evidence;
pub(crate) mod rules;
pub(crate) mod window;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::Run;

pub use apart::{BothWays, apart, duplex};
pub(crate) use apart::{HostTrait, apart_but, majority, remedy};
pub use evidence::{End, Evidence};

pub use crate::limit::FULL;

/// What a pair's stream reaches, and what holds it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// The network.
    pub network: String,
    /// Sender and receiver, where one way is slower than the other: all here is of that way; null for both.
    pub way: Option<[String; 2]>,
    /// User bits a second at the receiver: the median of the launches; null where no stream came through.
    pub rate_bps: Option<f64>,
    /// What the network allows with these headers; null where that is not known.
    pub reach_bps: Option<f64>,
    /// The round trip of the smallest message.
    pub rtt_ns: Option<f64>,
    /// Bytes that must be on the way to fill the path: reach × round trip.
    pub needed_bytes: Option<u64>,
    /// What holds it back, the first to be changed first.
    pub causes: Vec<Cause>,
    /// What the rules looked at.
    pub looked: Vec<Looked>,
}

/// What a rule looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Looked {
    /// The rule, as of a cause.
    pub rule: String,
    /// What it found.
    pub found: String,
}

impl Diagnosis {
    /// Whether the stream fills what its network allows.
    pub fn is_full(&self) -> bool {
        match (self.rate_bps, self.reach_bps) {
            (Some(rate), Some(reach)) => rate >= FULL * reach,
            _ => false,
        }
    }
}

/// What holds a stream back, by one rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The rule: `receive-window`, `send-buffer`, `cpu`, `mtu`, `loss`, `congestion`, `offload`, `interrupts`, `nagle`,
    /// `reordering`, `cpu-hog`, `slow-reader`.
    pub rule: String,
    /// The host at which it lies; null where it is the path, or both.
    pub host: Option<String>,
    /// What was found.
    pub sentence: String,
    /// The figures that it follows from.
    pub arithmetic: String,
    /// From where on the rule speaks.
    pub threshold: String,
    /// Where the rule is from.
    pub source: String,
    /// What to do where no setting does it, or beside the settings.
    pub remedy: String,
    /// What to change; null where no setting helps.
    pub change: Option<Advice>,
    /// The rate after the change; null where the rule cannot say.
    pub expected_bps: Option<f64>,
}

/// What to change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// Settings of both hosts: name and value, as the agents take them.
    pub hosts: Vec<(String, String)>,
    /// Knobs of the application's sockets: a value, or null for leaving it to the kernel.
    pub sockets: BTreeMap<String, Option<String>>,
}

/// Diagnoses the pair of hosts that a run measured on `network`, by its streams and its idle latency over TCP.
pub fn diagnose(run: &Run, network: &str) -> Diagnosis {
    of(&Evidence::of(run, network))
}

/// Diagnoses from evidence that was gathered elsewhere.
pub fn of(evidence: &Evidence) -> Diagnosis {
    Diagnosis {
        network: evidence.network.clone(),
        way: evidence.way.clone(),
        rate_bps: evidence.rate_bps,
        reach_bps: evidence.reach_bps,
        rtt_ns: evidence.rtt_ns,
        needed_bytes: evidence.needed_bytes(),
        causes: crate::finding::causes(evidence),
        looked: crate::words::looked::looked(evidence),
    }
}
