//! How often the cells of a plan are launched.
//!
//! Units:   launches; times with a suffix.
//! Checked: `the_usual_plans_are_read_back`, `what_a_plan_leaves_out_is_filled_in`.

use serde::{Deserialize, Serialize};
use sonde_units::Span;

/// How often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Repeat {
    /// Launches of each cell, at least.
    pub launches: u64,
    /// At most: more are made while an interval is wider than `precision_per_mille` and the budget lasts.
    pub max: u64,
    /// How far an end of a median's interval may be from it, in thousandths of it.
    pub precision_per_mille: u64,
    /// No further launch is begun after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// Where random draws begin.
    pub seed: u64,
    /// Launches of a stream over what has no rate (the loopback, a wire), at most: that tells of this machine alone and needs
    /// no interval. Without it as many as elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrated: Option<u64>,
    /// A short ping-pong on the idle network is repeated after so many launches, to see drift; none where it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub reference: u64,
    /// A launch that a disturbance met for most of its time is made again so often at most, by that alone, so that no figure is chosen.
    #[serde(skip_serializing_if = "is_usual")]
    pub again: u64,
}

/// How often a launch is made again where a plan does not say it.
const AGAIN: u64 = 2;

fn is_usual(again: &u64) -> bool {
    *again == AGAIN
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Default for Repeat {
    fn default() -> Self {
        Self {
            launches: 6,
            max: 6,
            precision_per_mille: 50,
            budget: None,
            seed: 1,
            unrated: None,
            reference: 0,
            again: AGAIN,
        }
    }
}

impl Repeat {
    /// Two launches, six, or ten and up to twenty until intervals are narrow.
    pub fn of(effort: Effort) -> Self {
        let (launches, max) = match effort {
            Effort::Quick => (2, 2),
            Effort::Usual => (6, 6),
            Effort::Thorough => (10, 20),
        };
        Self {
            launches,
            max,
            ..Self::default()
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Two launches, fewer sizes.
    Quick,
    /// Six.
    Usual,
    /// Ten or more.
    Thorough,
}
