//! What is said of how far figures can be trusted, and of what is not there.
//!
//! Units:   parts of a median; launches.
//! Checked: the tests of `finding::precision`.

use sonde_measure::{ResultRow, Status};

use super::Words;
use crate::format::{share, significant};
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

impl Words for Wide<'_> {
    fn sentence(&self) -> String {
        format!(
            "{} of {} medians are not known within 5 %: the widest interval, {} to one side, is that of {}.",
            self.wide,
            self.all,
            share(self.worst),
            words(self.row)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "95 % interval {} to {} around {}, in the unit of {}",
            significant(self.ends.0, 4),
            significant(self.ends.1, 4),
            significant(p50(self.row), 4),
            crate::table::quantity_name(self.row.quantity)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some("more launches narrow it: `--thorough`, or `--launches N`".into())
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
            (1, 1) => "one launch".to_owned(),
            (least, most) if least == most => format!("{least} launches"),
            (least, most) => format!("{least} to {most} launches"),
        };
        format!(
            "{} of {} medians come from {from}: below six there is no interval, and a difference between two of them says \
             nothing.",
            self.few, self.all
        )
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "six launches are the fewest with an interval: leave `--quick` out, or `--launches 6`"
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
        Some("`--resume` measures what is missing, once the reason is gone".into())
    }
}

/// A run without any figure.
pub(crate) struct Nothing;

impl Words for Nothing {
    fn sentence(&self) -> String {
        "Nothing was measured.".into()
    }

    fn remedy(&self) -> Option<String> {
        Some("`sonde assess` measures; `--resume` goes on with a run that was interrupted".into())
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
            "{} of {} launches are missing from cells that others measured{why}.",
            self.missing, self.planned
        )
    }

    fn remedy(&self) -> Option<String> {
        Some("`--resume` makes them".into())
    }
}
