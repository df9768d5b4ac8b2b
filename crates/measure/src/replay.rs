//! What the replays of a program's messages gave.
//!
//! Model:   a replay is a sample: messages of a statistic, without what the program computes between them.
//! Source:  requirement U27.
//! Units:   nanoseconds, bytes, messages of all ranks together.
//! Checked: `a_replay_becomes_rows` in `crates/probe`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LengthsRow;

/// What is replayed: a statistic, and who sends to whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReplayRequest")]
pub struct ReplayRequest {
    /// How many messages, of all ranks together.
    pub messages: u64,
    /// Their lengths, summed; to the messages as the mean is to one.
    pub bytes: u64,
    /// The lower median of their lengths.
    pub bytes_median: u64,
    /// Who sends to whom, in words of who has the replay: `all-to-all`, `ring`, `mesh:2x2`; of a matrix `matrix`.
    pub graph: String,
    /// Of a matrix: how often each rank sends to each, a row a sender; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages_to: Vec<Vec<u64>>,
    /// What the order of lengths follows from.
    pub seed: u64,
}

impl ReplayRequest {
    /// The mean of their lengths.
    pub fn bytes_mean(&self) -> f64 {
        self.bytes as f64 / self.messages as f64
    }
}

/// A replay, of all ranks together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReplayRun")]
pub struct Run {
    /// From the first step to the end of the last one, at the longest rank.
    pub time_ns: u64,
    /// What was counted of it.
    pub sent: LengthsRow,
}

/// What the replays of a launch gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// What was asked for.
    pub asked: ReplayRequest,
    /// Each, in their order.
    pub runs: Vec<Run>,
}
