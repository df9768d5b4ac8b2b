//! What is said of streams beside what their network allows.
//!
//! Units:   bits a second.
//! Checked: the tests of `finding::ceiling`.

use sonde_measure::{Line, ResultRow};

use super::Words;
use crate::format::{rate, share};
use crate::index::words;
use crate::lost::{Lost, LostAt};

/// A stream beside a bound.
pub(crate) struct Reached<'l> {
    pub line: &'l Line,
    pub rate_bps: f64,
    pub bound_bps: f64,
}

impl Reached<'_> {
    /// The part of the bound that is reached.
    pub fn part(&self) -> f64 {
        self.rate_bps / self.bound_bps
    }

    fn arithmetic(&self) -> String {
        format!(
            "{} / {} = {}",
            rate(self.rate_bps),
            rate(self.bound_bps),
            share(self.part())
        )
    }
}

/// The ceiling is reached.
pub(crate) struct Near<'l>(pub Reached<'l>);

impl Words for Near<'_> {
    fn sentence(&self) -> String {
        format!(
            "The stream over {} reaches {} of what {} allows.",
            self.0.line.by(),
            share(self.0.part()),
            self.0.line.network
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(self.0.arithmetic())
    }
}

/// A stream that cannot be.
pub(crate) struct Above<'l>(pub Reached<'l>);

impl Words for Above<'_> {
    fn sentence(&self) -> String {
        format!(
            "The stream over {} on {} is faster than the network can be: {} of its ceiling.",
            self.0.line.by(),
            self.0.line.network,
            share(self.0.part())
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} > {}",
            rate(self.0.rate_bps),
            rate(self.0.bound_bps)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "do not trust either figure: check the rate of the interface (`ethtool`), and that the bytes went through it"
                .into(),
        )
    }
}

/// A figure that the model of its network does not allow.
pub(crate) struct Beyond<'r> {
    pub row: &'r ResultRow,
    /// The best figure over the bound.
    pub part: f64,
}

impl Words for Beyond<'_> {
    fn sentence(&self) -> String {
        format!(
            "The best figure of {} is {} of what the network's model allows: do not trust the row.",
            words(self.row),
            share(self.part)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        None
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "a figure above its physical bound is an error of the measurement: measure for longer, and report it if it stays"
                .into(),
        )
    }
}

/// A stream that could be faster.
pub(crate) struct Below<'l> {
    pub reached: Reached<'l>,
    /// Whether the bound is what the model expects of such a sender.
    pub is_expected: bool,
    /// The rules that explain it.
    pub causes: Vec<String>,
    /// Whether a disturbance leaves this figure uncertain.
    pub is_disturbed: bool,
}

impl Words for Below<'_> {
    fn sentence(&self) -> String {
        let what = match self.is_expected {
            true => "what the model expects of such a sender",
            false => "what the network allows",
        };
        format!(
            "The stream over {} on {} reaches {}, {} of {what}.",
            self.reached.line.by(),
            self.reached.line.network,
            rate(self.reached.rate_bps),
            share(self.reached.part())
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(self.reached.arithmetic())
    }

    fn remedy(&self) -> Option<String> {
        let explained = match (self.causes.is_empty(), self.is_disturbed) {
            (false, _) => format!("see {}, which explains it", self.causes.join(" and ")),
            (true, true) => "a disturbance leaves this figure uncertain (disturbed): measure again on a quiet machine, before anything else \
                             is suspected"
                .into(),
            (true, false) => "no limit of window, buffer, CPU or loss explains it: look at the interface (`ethtool -S`), its queues, the \
                              switch between, and other traffic"
                .into(),
        };
        Some(explained)
    }

    fn lost(&self) -> Option<Lost> {
        let reached = &self.reached;
        let at = match reached.line.path.as_str() {
            path if path.contains(':') => LostAt::LibraryRate,
            _ => LostAt::Stream,
        };
        Some(Lost {
            causes: self.causes.clone(),
            ..Lost::of_rate(at, &reached.line.path, reached.rate_bps, reached.bound_bps)
        })
    }
}
