//! What is said of emulation that did not keep its times.
//!
//! Units:   parts of one; nanoseconds.
//! Checked: the tests of `finding::fidelity`.

use sonde_measure::{ResultRow, Verdict};

use super::Words;
use crate::format::{share, time};
use crate::index::{under, words};

/// Cells that are late.
pub(crate) struct Late<'r> {
    pub network: &'r str,
    pub load: Option<&'r str>,
    pub late: usize,
    pub judged: usize,
    /// The worst of them, and its verdict.
    pub worst: &'r ResultRow,
    pub verdict: &'r Verdict,
}

impl Words for Late<'_> {
    fn sentence(&self) -> String {
        format!(
            "The emulation of {}{} was behind schedule in {} of {} cells, so their latencies are too high and their rates unreliable \
             (worst: {}).",
            self.network,
            under(self.load),
            self.late,
            self.judged,
            words(self.worst)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let verdict = self.verdict;
        let Some(late) = verdict.late_share else {
            return Some(verdict.reasons.join("; "));
        };
        let p99 = verdict.lateness_p99_ns;
        Some(format!(
            "{} of {} deliveries more than {} behind schedule; lateness p99 {}; {} frames lost in the attachment",
            share(late),
            verdict.deliveries,
            time(verdict.bound_ns as f64),
            p99.map_or("unknown".into(), |ns| time(ns as f64)),
            verdict.attachment_losses
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "use fewer hosts, a slower network, more CPUs, or a machine without other work; `sonde lab check` measures what this one can \
             emulate"
                .into(),
        )
    }
}
