//! What a finding says is lost, in figures: where, by what, how much, and of how much.
//!
//! Model:   a loss is a part of a whole in one unit: of the time of each message, of a time that is paid once, of a rate, or of a factor.
//!          Losses are ranked by their share of the whole, which is the same for times and rates: twice the time is half of the
//!          rate. What is paid once counts as if it were spread over [`MESSAGES_OF_A_START`] messages.
//! Source:  the share is 1 - 1/f of a slow-down f (Hoefler & Belli, SC'15, rule 1). A hundred messages a connection: a guess, with which
//!          a start-up of a hundred round trips counts as much as a message that takes twice as long.
//! Units:   as [`LostUnit`] says.
//! Checked: `what_is_paid_once_counts_less`, `times_and_rates_have_one_scale`; the tests of `screen`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Over so many messages a time is spread that is paid once.
const MESSAGES_OF_A_START: f64 = 100.0;

/// Where something is lost.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LostAt {
    /// One host, with whichever other.
    Host,
    /// The route between two hosts.
    Route,
    /// A stream of a transport.
    Stream,
    /// The rate of a library.
    LibraryRate,
    /// The time that a library adds to each message.
    Library,
    /// The transport and the hosts, above the wire.
    Hosts,
    /// The first message.
    Start,
    /// The first message after a pause.
    Pause,
    /// Datagrams on their way.
    Datagrams,
}

/// The unit of a loss and of its whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LostUnit {
    /// Nanoseconds of each message.
    Ns,
    /// Nanoseconds, once.
    NsOnce,
    /// Bits a second.
    Bps,
    /// Thousandths of what others have.
    PerMille,
}

/// A part of a loss, or a figure that explains it, in the same unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LostPart {
    /// What it is.
    pub name: String,
    /// How much.
    pub value: u64,
}

/// What is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// Where.
    pub at: LostAt,
    /// By what: a path, a host, or two hosts as `a>b`.
    pub by: String,
    /// The unit of all that follows.
    pub unit: LostUnit,
    /// How much is lost.
    pub value: u64,
    /// Of how much.
    pub of: u64,
    /// What it is made of, as far as it is known.
    pub parts: Vec<LostPart>,
    /// The rules that explain it.
    pub causes: Vec<String>,
}

/// A measured figure as an integer of its unit.
pub(crate) fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

impl Lost {
    /// A loss without parts or causes.
    pub(crate) fn new(at: LostAt, by: &str, unit: LostUnit, [value, of]: [f64; 2]) -> Self {
        Self {
            at,
            by: by.into(),
            unit,
            value: whole(value),
            of: whole(of),
            parts: Vec::new(),
            causes: Vec::new(),
        }
    }

    /// A rate below one that is possible.
    pub(crate) fn of_rate(at: LostAt, by: &str, bps: f64, possible_bps: f64) -> Self {
        Self::new(at, by, LostUnit::Bps, [possible_bps - bps, possible_bps])
    }

    /// The part of the whole that is lost.
    pub fn share(&self) -> f64 {
        self.value as f64 / self.of.max(1) as f64
    }

    /// What is left of the whole.
    pub(crate) const fn left(&self) -> u64 {
        self.of.saturating_sub(self.value)
    }

    /// How many times as long something takes with it.
    pub(crate) fn times(&self) -> f64 {
        self.of as f64 / self.left().max(1) as f64
    }

    /// Its place among others, from 0 to 1.
    pub fn rank(&self) -> f64 {
        match self.unit {
            LostUnit::NsOnce => {
                let spread = self.value as f64 / MESSAGES_OF_A_START;
                spread / (spread + self.left() as f64).max(1.0)
            }
            LostUnit::Ns | LostUnit::Bps | LostUnit::PerMille => self.share(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_paid_once_counts_less() {
        let of = |unit| Lost::new(LostAt::Start, "tcp", unit, [9_900.0, 10_000.0]).rank();
        assert!((of(LostUnit::Ns) - 0.99).abs() < 1e-9);
        // 99 for each of a hundred messages, beside 100 that are not lost.
        assert!((of(LostUnit::NsOnce) - 99.0 / 199.0).abs() < 1e-9);
    }

    #[test]
    fn times_and_rates_have_one_scale() {
        let time = Lost::new(LostAt::Library, "pvm:default", LostUnit::Ns, [30.0, 40.0]);
        let rate = Lost::of_rate(LostAt::Stream, "tcp", 25e6, 100e6);
        assert!((time.rank() - rate.rank()).abs() < 1e-9);
        assert!((rate.times() - 4.0).abs() < 1e-9 && rate.left() == 25_000_000);
        // A figure above its bound loses nothing.
        assert_eq!(Lost::of_rate(LostAt::Stream, "tcp", 2.0, 1.0).value, 0);
    }
}
