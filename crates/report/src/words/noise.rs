//! What is said of what disturbed the measurements.
//!
//! Units:   nanoseconds; counts over all launches of a cell.
//! Checked: the tests of `finding::noise`.

use sonde_measure::Line;

use super::Words;
use crate::format::{bytes, count, counted, share, significant, time};

/// CPU time that a hypervisor took.
pub(crate) struct Stolen<'r> {
    pub network: &'r str,
    pub host: &'r str,
    pub stolen_ns: u64,
    /// Of all CPUs while it was watched.
    pub watched_ns: u64,
}

impl Words for Stolen<'_> {
    fn sentence(&self) -> String {
        format!(
            "{} of {}'s CPU time was stolen by other virtual machines while {} was measured; throughput and tail latency are affected.",
            share(self.stolen_ns as f64 / self.watched_ns.max(1) as f64),
            self.host,
            self.network
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} stolen of {} x CPUs watched",
            time(self.stolen_ns as f64),
            time(self.watched_ns as f64)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some("measure when the other virtual machines are quiet, or on dedicated CPUs".into())
    }
}

/// What the hosts recorded in the launches behind a row.
pub(crate) struct Meanwhile {
    pub switches: u64,
    pub steal_ns: u64,
    pub again: u64,
}

impl Meanwhile {
    fn words(&self) -> String {
        let seen = [
            (self.switches > 0).then(|| counted(self.switches, "involuntary context switch")),
            (self.steal_ns > 0)
                .then(|| format!("{} of CPU time stolen", time(self.steal_ns as f64))),
            (self.again > 0).then(|| counted(self.again, "retransmission")),
        ];
        let seen: Vec<String> = seen.into_iter().flatten().collect();
        match seen.is_empty() {
            true => "No recorded event of the hosts explains it.".into(),
            false => format!("In these repetitions: {}.", seen.join(", ")),
        }
    }
}

/// A tail.
pub(crate) struct Outliers<'l> {
    pub line: &'l Line,
    pub samples: u64,
    pub size_bytes: u64,
    pub median_ns: f64,
    pub most_ns: f64,
    pub p99_ns: Option<f64>,
    /// Whether the 99th percentile is far, too.
    pub p99_is_far: bool,
    /// `None` where nobody watched.
    pub meanwhile: Option<Meanwhile>,
}

impl Words for Outliers<'_> {
    fn sentence(&self) -> String {
        let times = |ns: f64| significant(ns / self.median_ns, 2);
        let p99 = self.p99_ns.filter(|_| self.p99_is_far);
        let tail = p99.map_or(String::new(), |ns| {
            format!(
                ", and one in a hundred {} or more, {} times",
                time(ns),
                times(ns)
            )
        });
        let meanwhile = self.meanwhile.as_ref().map_or_else(
            || "The activity of the hosts at that time is not known.".into(),
            Meanwhile::words,
        );
        format!(
            "The slowest of {} messages of {} over {} on {} took {}, {} times the median{tail}. {meanwhile}",
            count(self.samples),
            bytes(self.size_bytes),
            self.line.by(),
            self.line.network,
            time(self.most_ns),
            times(self.most_ns),
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "median {}, p99 {}, max {}",
            time(self.median_ns),
            self.p99_ns.map_or("unknown".into(), time),
            time(self.most_ns)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some("judge this path by its median and p99, not by its mean; programs that wait for the slowest rank wait for these".into())
    }
}
