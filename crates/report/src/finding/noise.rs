//! What disturbed the measurements.
//!
//! Model:   `stolen-time`: a hypervisor took at least 1 % of a host's CPU time over all launches on a network; said once a
//!          network, of the host that lost most. `outliers`: the slowest warm message of a line took at least fifty times
//!          the median, or the 99th percentile is at least five times it; of the size where that is worst. It is set beside
//!          what the hosts recorded meanwhile: involuntary switches, stolen time, segments sent again.
//! Source:  proc(5), /proc/stat; getrusage(2); Hoefler & Belli, SC'15, rule 8 (tails may matter). Thresholds: 1 % of stolen
//!          time is as much as a verdict allows deliveries to be late; five and fifty are what an idle machine stays below.
//! Checked: `stolen_time_is_said_once`, `outliers_are_set_beside_what_was_seen`, `a_narrow_tail_is_not_said`.

use std::collections::{BTreeMap, BTreeSet};

use sonde_measure::{Line, ResultRow};

use super::{Finding, Severity};
use crate::index::{Index, LATENCY, p50};
use crate::words::noise as words;

pub(crate) const STOLEN: f64 = 0.01;
const TAIL: f64 = 5.0;
const SLOWEST: f64 = 50.0;

/// The host of a network of whose CPU time a hypervisor took most.
pub(crate) struct StolenFrom<'a> {
    pub network: &'a str,
    pub host: &'a str,
    pub stolen_ns: u64,
    /// Of all CPUs while it was watched.
    pub watched_ns: u64,
}

impl StolenFrom<'_> {
    /// The part that was taken.
    pub fn share(&self) -> f64 {
        self.stolen_ns as f64 / self.watched_ns.max(1) as f64
    }
}

/// Where a hypervisor took 1 % or more, a network each.
pub(crate) fn stolen_from<'a>(index: &Index<'a>) -> Vec<StolenFrom<'a>> {
    // The flows of a pattern began together: a host of several of them is counted once.
    let mut seen = BTreeSet::new();
    let mut hosts: BTreeMap<(&'a str, &'a str), (u64, u64)> = BTreeMap::new();
    for (launch, cell) in index.starts() {
        for at in &launch.interference {
            let Some(steal_ns) = at.steal_ns else {
                continue;
            };
            if seen.insert((launch.began_unix_ns, &launch.src, &launch.dst, &at.host)) {
                let network = cell.factors.network.as_str();
                let (stolen, all) = hosts.entry((network, &at.host)).or_default();
                *stolen += steal_ns;
                *all += at.span_ns.saturating_mul(at.cpus);
            }
        }
    }
    let mut worst: BTreeMap<&str, StolenFrom<'_>> = BTreeMap::new();
    for ((network, host), (stolen_ns, watched_ns)) in hosts {
        let one = StolenFrom {
            network,
            host,
            stolen_ns,
            watched_ns,
        };
        let known = worst.get(network).map_or(0.0, StolenFrom::share);
        if one.share() >= STOLEN && one.share() > known {
            worst.insert(network, one);
        }
    }
    worst.into_values().collect()
}

/// `stolen-time`, once a network.
pub(super) fn stolen(index: &Index<'_>) -> Vec<Finding> {
    let worst = stolen_from(index).into_iter();
    worst
        .map(|one| {
            let found = words::Stolen {
                network: one.network,
                host: one.host,
                stolen_ns: one.stolen_ns,
                watched_ns: one.watched_ns,
            };
            Finding::said("stolen-time", Severity::Warning, &found).on_network(one.network)
        })
        .collect()
}

/// `outliers`.
pub(super) fn outliers(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let figures = |row: &ResultRow| {
        let median = p50(row);
        let of =
            |number: Option<sonde_measure::Number>| number.map_or(0.0, |number| number.0) / median;
        (median > 0.0).then(|| (of(row.p99), of(row.max)))
    };
    let (row, p99, most) = index
        .of(line, LATENCY)
        .into_iter()
        .filter_map(|row| figures(row).map(|(p99, most)| (row, p99, most)))
        .filter(|(_, p99, most)| *p99 >= TAIL || *most >= SLOWEST)
        .max_by(|one, other| one.2.total_cmp(&other.2))?;
    let found = words::Outliers {
        line,
        samples: row.samples,
        size_bytes: row.size_bytes.unwrap_or(0),
        median_ns: p50(row),
        most_ns: p50(row) * most,
        p99_ns: row.p99.map(|ns| ns.0),
        p99_is_far: p99 >= TAIL,
        meanwhile: meanwhile(index, row),
    };
    Some(Finding::said("outliers", Severity::Note, &found).on(line))
}

/// What the hosts recorded in the launches behind a row; `None` where nobody watched.
fn meanwhile(index: &Index<'_>, row: &ResultRow) -> Option<words::Meanwhile> {
    let mut seen = words::Meanwhile {
        switches: 0,
        steal_ns: 0,
        again: 0,
    };
    let mut watched = false;
    for at in index.interference(&row.cell) {
        watched = true;
        seen.switches += at.involuntary_switches;
        seen.steal_ns += at.steal_ns.unwrap_or(0);
        seen.again += at.retransmits.unwrap_or(0);
    }
    watched.then_some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};

    #[test]
    fn stolen_time_is_said_once() {
        let found = |steal_ns| {
            let run = Runs::new()
                .network(net("wire"))
                .disturbed(|at| {
                    at.cpus = 2;
                    at.span_ns = 1_000_000;
                    at.steal_ns = Some(steal_ns);
                })
                .latency("wire", "tcp", 1, 10_000)
                .latency("wire", "udp", 1, 10_000)
                .done();
            stolen(&Index::new(&run))
        };
        let all = found(60_000);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(
            all[0]
                .sentence
                .contains("3.0 % of h1's CPU time was stolen"),
            "{all:?}"
        );
        assert_eq!(found(10_000), []);
    }

    fn tailed(slowest: u64) -> Option<Finding> {
        let samples: Vec<u64> = (0..2_000)
            .map(|n| if n % 500 == 0 { slowest } else { 10_000 })
            .collect();
        let run = Runs::new()
            .network(net("wire"))
            .disturbed(|at| at.involuntary_switches = 2)
            .latency_of("wire", "tcp", 1, &samples)
            .done();
        outliers(&Index::new(&run), &line("wire", "tcp"))
    }

    #[test]
    fn outliers_are_set_beside_what_was_seen() {
        assert_eq!(
            tailed(5_200_000).unwrap().sentence,
            "The slowest of 12 000 messages of 1 B over tcp on wire took 5.200 ms, 520 times the median. In these repetitions: 24 involuntary context switches."
        );
    }

    #[test]
    fn a_narrow_tail_is_not_said() {
        assert_eq!(tailed(400_000), None);
    }
}
