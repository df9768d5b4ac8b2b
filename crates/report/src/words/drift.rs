//! What is said of machines that changed while they measured.
//!
//! Units:   nanoseconds; parts of one.
//! Checked: the tests of `finding::drift`.

use super::Words;
use crate::format::{counted, significant};

/// A reference that has a trend.
pub(crate) struct Drift<'r> {
    pub network: &'r str,
    /// The change over the run, of the median.
    pub part: f64,
    pub launches: usize,
    pub over_ns: u64,
    pub median_ns: f64,
    pub change_ns: f64,
    pub p: f64,
}

impl Words for Drift<'_> {
    fn sentence(&self) -> String {
        format!(
            "On {} the latency of the idle reference {} by {} % during the run: early and late measurements are not comparable.",
            self.network,
            if self.part > 0.0 { "rose" } else { "fell" },
            significant(100.0 * self.part.abs(), 2),
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} over {} s, median {} µs; Mann-Kendall p = {}; Theil-Sen change {} µs.",
            counted(self.launches as u64, "repetition"),
            significant(self.over_ns as f64 / 1e9, 3),
            significant(self.median_ns / 1e3, 4),
            significant(self.p, 2),
            significant(self.change_ns / 1e3, 3),
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some("look for what else began or ended meanwhile: heat, power saving, other virtual machines, background work; then measure \
            again".into())
    }
}
