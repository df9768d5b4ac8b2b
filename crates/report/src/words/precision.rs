//! What is said of how far figures can be trusted, and of what is not there.
//!
//! Units:   parts of a median; launches.
//! Checked: the tests of `finding::precision`.

use sonde_measure::{ResultRow, Status};

use super::Words;
use crate::format::{counted, figure, share};
use crate::index::{p50, words};

/// Intervals that are wide.
pub(crate) struct Wide<'r> {
    pub wide: usize,
    pub all: usize,
    /// The widest, to one side, and its row with its ends.
    pub worst: f64,
    pub row: &'r ResultRow,
    pub ends: (f64, f64),
}

impl Wide<'_> {
    /// `83.23 µs, CI 76.20 µs to 2.134 ms`.
    fn interval(&self) -> String {
        let shown = |value| figure(self.row.quantity, value);
        format!(
            "{}, CI {} to {}",
            shown(p50(self.row)),
            shown(self.ends.0),
            shown(self.ends.1)
        )
    }
}

impl Words for Wide<'_> {
    fn sentence(&self) -> String {
        format!(
            "{} of {} medians have a 95 % CI wider than ±5 % (worst: {}, {}).",
            self.wide,
            self.all,
            words(self.row),
            self.interval()
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{}; {} to one side",
            self.interval(),
            share(self.worst)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some("more repetitions narrow it: `--thorough`, or `--launches N`".into())
    }
}

/// Medians without an interval.
pub(crate) struct Few {
    pub few: usize,
    pub all: usize,
    /// The fewest launches and the most, of these.
    pub least: u64,
    pub most: u64,
}

impl Words for Few {
    fn sentence(&self) -> String {
        let from = match (self.least, self.most) {
            (least, most) if least == most => counted(least, "repetition"),
            (least, most) => format!("{least} to {most} repetitions"),
        };
        format!(
            "{} of {} medians come from {from}: fewer than 6 give no confidence interval, and a difference between two of them may \
             be chance.",
            self.few, self.all
        )
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "6 repetitions are the fewest with a confidence interval: leave `--quick` out, or `--launches 6`"
                .into(),
        )
    }
}

/// Rows that are missing for one reason.
pub(crate) struct Missing<'r> {
    pub status: Status,
    /// One of them, and how many there are.
    pub row: &'r ResultRow,
    pub rows: usize,
    /// `None` where none is recorded.
    pub reason: Option<&'r str>,
}

impl Words for Missing<'_> {
    fn sentence(&self) -> String {
        let what = match self.status {
            Status::Skipped => "Left out",
            Status::Failed | Status::Measured => "Not measured",
        };
        let others = match self.rows {
            1 => String::new(),
            rows => format!(" and {} more", rows - 1),
        };
        let reason = self.reason.unwrap_or("no reason is recorded");
        format!("{what}: {}{others}: {reason}.", words(self.row))
    }

    fn remedy(&self) -> Option<String> {
        Some("`--resume` measures the missing cells, once the reason is gone".into())
    }
}

/// A run without any figure.
pub(crate) struct Nothing;

impl Words for Nothing {
    fn sentence(&self) -> String {
        "Nothing was measured.".into()
    }

    fn remedy(&self) -> Option<String> {
        Some("`sonde assess` measures; `--resume` resumes a run that was interrupted".into())
    }
}

/// Launches that are missing from cells that have others.
pub(crate) struct Launches<'r> {
    pub missing: usize,
    pub planned: u64,
    /// Why most of them failed, and how many of these there are.
    pub why: Option<(&'r str, usize)>,
}

impl Words for Launches<'_> {
    fn sentence(&self) -> String {
        let why = self.why.map_or(String::new(), |(reason, times)| {
            format!("; {times} of them failed: {reason}")
        });
        format!(
            "{} of {} repetitions are missing from cells that have others{why}.",
            self.missing, self.planned
        )
    }

    fn remedy(&self) -> Option<String> {
        Some("`--resume` makes them".into())
    }
}
