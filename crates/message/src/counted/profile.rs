//! What was counted, as it is written down: a rank's profile. The matrix of all ranks is [`sonde_units::Matrix`].
//!
//! Units:   nanoseconds, bytes; ranks of the world.

use serde::{Deserialize, Serialize};
use sonde_measure::{Collectives, LengthsRow, Total};

/// The schema of [`Profile`].
pub const PROFILE_SCHEMA: &str = "sonde-profile/1";

/// What one rank did, phase by phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`PROFILE_SCHEMA`].
    pub schema: String,
    /// Which rank.
    pub rank: usize,
    /// Of how many.
    pub ranks: usize,
    /// What told the time: `tsc`, `monotonic`, or that it went astray.
    #[serde(default)]
    pub clock: String,
    /// In the order in which they were first entered.
    pub phases: Vec<Phase>,
}

/// What one rank did in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Time in it: in calls and between them.
    pub wall_ns: u64,
    /// Time between calls.
    pub computing_ns: u64,
    /// Of it, the time that the rank was held in place of computing on a slower host.
    #[serde(default)]
    pub busy_ns: u64,
    /// Each kind of call that was made.
    pub calls: Vec<Calls>,
    /// Collectives that the library made of its own. sonde's are among the messages.
    pub collectives: Vec<Collectives>,
    /// Messages sent.
    pub sent: LengthsRow,
    /// Messages received.
    pub received: LengthsRow,
    /// Messages by other rank and tag.
    pub flows: Vec<Flow>,
}

/// Calls of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// `send`, `recv`, `exchange`, `isend`, `irecv`, `test`, `wait`, `iprobe`, `split`, `progress`, `collective`.
    pub call: String,
    /// How many.
    pub count: u64,
    /// Time in them.
    pub time_ns: u64,
    /// Time in the longest.
    pub longest_ns: u64,
}

/// Messages to or from one rank with one tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Sent to it, else received from it.
    pub sent: bool,
    /// The other rank.
    pub rank: usize,
    /// The tag.
    pub tag: u32,
    /// The collective that the tag is of, made by sonde.
    pub collective: Option<String>,
    /// Count, sum, least and greatest.
    #[serde(flatten)]
    pub total: Total,
}
