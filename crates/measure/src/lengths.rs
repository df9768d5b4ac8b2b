//! How many messages there were and how long, and the collectives beside them.
//!
//! Units:   bytes; nanoseconds.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Count, sum, least and greatest of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Total {
    /// How many.
    pub messages: u64,
    /// Their sum.
    pub bytes: u64,
    /// The shortest; 0 where there is none.
    pub bytes_min: u64,
    /// The longest; 0 where there is none.
    pub bytes_max: u64,
}

/// Lengths as they are written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthsRow {
    /// Count, sum, least and greatest: exact.
    #[serde(flatten)]
    pub total: Total,
    /// Sum by count; none of none.
    pub bytes_mean: Option<f64>,
    /// The lower median, off by at most a 64th of itself, exact below 64 B; none of none.
    pub bytes_median: Option<u64>,
    /// How many there are from each power of two on, below the next; of no bytes from 0. Those without are left out.
    pub powers: Vec<Power>,
}

/// Messages of lengths between two powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// The least length of the row: 0, 1, 2, 4, ...
    pub from_bytes: u64,
    /// How many.
    pub messages: u64,
}

impl Total {
    /// Of no message.
    pub const NONE: Self = Self {
        messages: 0,
        bytes: 0,
        bytes_min: 0,
        bytes_max: 0,
    };

    /// Adds a message of `bytes`.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.bytes_min = if self.messages == 0 {
            bytes
        } else {
            self.bytes_min.min(bytes)
        };
        self.bytes_max = self.bytes_max.max(bytes);
        self.messages = self.messages.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Collectives of one kind that the library made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collectives {
    /// `allreduce`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// What this rank put in, of a broadcast the whole, of a scatter what it got.
    pub bytes: u64,
    /// Time in them.
    pub time_ns: u64,
}
