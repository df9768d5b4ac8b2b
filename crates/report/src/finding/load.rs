//! What background load adds, and whether it was there.
//!
//! Model:   `queueing`: a latency cell under load beside its idle sibling (see [`crate::queueing`]); where its interval holds zero
//!          the wait is not distinguishable from none. `queueing-apart`: of the
//!          cells of a network and load that have an interval and a model, two at least and more than a fifth have the
//!          virtual clock's figure outside. `load-reached`: what a load brought to the ports of the measured hosts, of all
//!          launches on a network. `load-missed`: at some port the median launch brought 2 % more or less than was wanted,
//!          or any launch 10 %. Launches of streams are left out: a stream and the load share the port. Where hosts made the
//!          load, the law's chance is taken out by what they planned.
//! Source:  Kleinrock, Queueing Systems I, §5.6 for M/D/1, which the virtual clock is tested against. Thresholds: at a load
//!          of 0.9, 2 % less of it is a sixth less of waiting; 10 % is far beyond what the law's chance does to a short
//!          launch; of intervals at 95 %, two and more than a fifth miss by chance in less than one run of twenty.
//! Checked: `a_wait_is_set_beside_the_model`, `what_the_model_lacks_is_not_said`,
//!          `a_wait_that_may_be_none_is_told_so`, `a_load_that_is_reached_is_a_note`,
//!          `a_load_that_is_missed_is_a_warning`, `several_outside_are_said_once`.

use sonde_measure::{Evidence, Fixed};
use std::collections::BTreeMap;

use super::{Finding, Severity};
use crate::index::{Index, STREAM, grouped, median};
use crate::queueing::{QueueingRow, queueing as rows};
use crate::words::load as words;

/// The farthest that a load may be from the wanted one in the median repetition, as a part of it.
const OFF: f64 = 0.02;
/// The same in any launch.
const FAR_OFF: f64 = 0.1;

/// The largest part of the intervals that may miss the virtual clock's figure.
const OUTSIDE: f64 = 0.2;
const OUTSIDE_MIN: usize = 2;

/// `queueing`, for all latency cells under load.
pub(super) fn queueing(index: &Index<'_>) -> Vec<Finding> {
    rows(index).iter().map(wait).collect()
}

/// `queueing-apart`, once a network and load.
pub(super) fn apart(index: &Index<'_>) -> Vec<Finding> {
    let rows = rows(index);
    let loads = grouped(rows.iter(), |row| (row.network.as_str(), row.load.as_str()));
    let told = |((network, _), mut judged): (_, Vec<&QueueingRow>)| {
        judged.retain(|row| row.agrees().is_some());
        let ratio = |row: &QueueingRow| {
            let model = row.model_waits_ns().unwrap_or(0).max(1) as f64;
            (row.waits_ns.max(1) as f64 / model).ln().abs()
        };
        let outside = || judged.iter().filter(|row| row.agrees() == Some(false));
        let many = outside().count();
        let worst = outside().max_by(|one, other| ratio(one).total_cmp(&ratio(other)))?;
        if many < OUTSIDE_MIN || many as f64 <= OUTSIDE * judged.len() as f64 {
            return None;
        }
        let found = words::Apart {
            worst,
            outside: many,
            judged: judged.len(),
        };
        let finding = Finding::said("queueing-apart", Severity::Advice, &found);
        Some(finding.on_network(network))
    };
    loads.into_iter().filter_map(told).collect()
}

fn wait(row: &QueueingRow) -> Finding {
    Finding::said("queueing", Severity::Note, &words::Wait { row }).on(&row.line())
}

/// What came to the measured hosts' ports under one load of a network.
#[derive(Default)]
struct Brought {
    wanted: Option<f64>,
    /// Of each port, by launch: as a part of the link.
    ports: BTreeMap<String, Vec<f64>>,
    /// Of one CPU, by launch.
    switch: Vec<f64>,
    launches: usize,
}

/// `load-reached` and `load-missed`, once a network and load.
pub(super) fn reached(index: &Index<'_>) -> Vec<Finding> {
    let mut order: Vec<(&str, &str)> = Vec::new();
    let mut all: BTreeMap<(&str, &str), Brought> = BTreeMap::new();
    for cell in &index.run.cells {
        let Some(load) = cell.factors.load.as_deref() else {
            continue;
        };
        let key = (cell.factors.network.as_str(), load);
        if !order.contains(&key) {
            order.push(key);
        }
    }
    for (launch, cell) in index.starts() {
        let Some(load) = cell.factors.load.as_deref() else {
            continue;
        };
        if cell.factors.probe != STREAM.probe {
            let key = (cell.factors.network.as_str(), load);
            all.entry(key).or_default().add(&launch.evidence);
        }
    }
    let told = |key| Some((key, all.get(&key)?));
    order
        .into_iter()
        .filter_map(told)
        .filter_map(|((network, load), brought)| brought.finding(network, load))
        .collect()
}

impl Brought {
    fn add(&mut self, evidence: &Evidence) {
        let flows = &evidence.load_flows;
        if !flows.values().any(|flow| flow.achieved.is_some()) {
            return;
        }
        self.launches += 1;
        for (port, flow) in flows {
            let [wanted, planned, achieved] =
                [flow.wanted, flow.planned, flow.achieved].map(|share| share.map(Fixed::value));
            self.wanted = wanted.filter(|wanted| *wanted > 0.0).or(self.wanted);
            let Some(achieved) = achieved else { continue };
            // Of a short launch the law's chance is known where hosts made the load: what they planned.
            let chance = match (wanted, planned) {
                (Some(wanted), Some(planned)) if planned > 0.0 => wanted / planned,
                _ => 1.0,
            };
            let shares = self.ports.entry(port.to_string()).or_default();
            shares.push(achieved * chance);
        }
        let switch = evidence.load.switch_cpu_share;
        self.switch.extend(switch.map(Fixed::value));
    }

    /// The launches in which some port was far off.
    fn far_off(&self, wanted: f64) -> usize {
        let launch = |nth: usize| {
            let mut ports = self.ports.values().filter_map(|shares| shares.get(nth));
            ports.any(|share| (share / wanted - 1.0).abs() >= FAR_OFF)
        };
        let most = self.ports.values().map(Vec::len).max().unwrap_or(0);
        (0..most).filter(|nth| launch(*nth)).count()
    }

    fn finding(&self, network: &str, load: &str) -> Option<Finding> {
        let wanted = self.wanted?;
        let shares: Vec<f64> = self.ports.values().flatten().copied().collect();
        let off = |share: f64| (share / wanted - 1.0).abs();
        let farthest = |one: &f64, other: &f64| off(*one).total_cmp(&off(*other));
        let usually = self.ports.values().filter_map(|all| median(all.clone()));
        let usually = usually.max_by(farthest)?;
        let far_off = self.far_off(wanted);
        let missed = off(usually) > OFF || far_off > 0;
        let found = words::Brought {
            network,
            load,
            wanted,
            least: shares.iter().copied().min_by(f64::total_cmp)?,
            most: shares.iter().copied().max_by(f64::total_cmp)?,
            usual: if missed { usually } else { median(shares)? },
            switch: median(self.switch.clone()),
            launches: self.launches,
            far_off,
            missed,
            // Where hosts make the load themselves, it is told by flow.
            by_hosts: self.ports.keys().any(|port| port.contains('>')),
        };
        let (rule, severity) = match missed {
            true => ("load-missed", Severity::Warning),
            false => ("load-reached", Severity::Note),
        };
        Some(Finding::said(rule, severity, &found).on_network(network))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    fn waits(size: u64, model: bool, loaded_ns: u64) -> Vec<Finding> {
        let mut runs = Runs::new()
            .network(net("atm-oc3c"))
            .latency("atm-oc3c", "tcp", size, 40_000)
            .load("0.9");
        if model {
            runs = runs
                .setting("load.model_idle_ns", "16223")
                .setting("load.model_loaded_ns", "28323");
        }
        let run = runs.latency("atm-oc3c", "tcp", size, loaded_ns).done();
        queueing(&Index::new(&run))
    }

    #[test]
    fn a_wait_is_set_beside_the_model() {
        let found = waits(1, true, 52_100);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            found[0].sentence,
            "At load 0.9 on atm-oc3c a message of 1 B over tcp waits 12.10 µs (12.10 µs to 12.10 µs) longer than idle; the virtual clock has 12.10 µs: within the interval."
        );
        assert_eq!(
            found[0].arithmetic.as_deref(),
            Some("52.10 µs loaded - 40.00 µs idle; model 28.32 µs - 16.22 µs")
        );
        assert_eq!(found[0].severity, Severity::Note);
        let outside = &waits(1, true, 57_100)[0];
        assert!(
            outside
                .sentence
                .ends_with("12.10 µs: outside the interval.")
        );
        assert_eq!(outside.severity, Severity::Note);
    }

    #[test]
    fn a_wait_that_may_be_none_is_told_so() {
        let row = |waits_ns: i64, ends: (i64, i64)| {
            let run = Runs::new()
                .network(net("atm-oc3c"))
                .latency("atm-oc3c", "tcp", 1, 40_000)
                .load("0.9")
                .latency(
                    "atm-oc3c",
                    "tcp",
                    1,
                    40_000_u64.saturating_add_signed(waits_ns),
                )
                .done();
            let mut row = rows(&Index::new(&run)).remove(0);
            (row.ci95_low_ns, row.ci95_high_ns) = (Some(ends.0), Some(ends.1));
            wait(&row)
        };
        let none = row(-400, (-1_900, 1_100));
        assert_eq!(
            none.sentence,
            "At load 0.9 on atm-oc3c the queueing delay of a message of 1 B over tcp is not distinguishable from zero."
        );
        assert_eq!(
            none.arithmetic.as_deref(),
            Some("39.60 µs loaded - 40.00 µs idle = -400.0 ns (-1.900 µs to 1.100 µs)")
        );
        // Away from zero it is told, whichever way.
        assert!(
            row(-1_500, (-1_900, -1_100))
                .sentence
                .contains("1.500 µs (1.100 µs to 1.900 µs) less than idle")
        );
        assert!(
            row(9_000, (100, 11_000))
                .sentence
                .contains("9.000 µs (100.0 ns to 11.00 µs) longer than idle")
        );
    }

    #[test]
    fn several_outside_are_said_once() {
        let found = |sizes: &[(u64, u64)]| {
            let mut runs = Runs::new().network(net("atm-oc3c"));
            for (size, _) in sizes {
                runs = runs.latency("atm-oc3c", "udp", *size, 40_000);
            }
            runs = runs
                .load("0.9")
                .setting("load.model_idle_ns", "16223")
                .setting("load.model_loaded_ns", "28323");
            for (size, loaded_ns) in sizes {
                runs = runs.latency("atm-oc3c", "udp", *size, *loaded_ns);
            }
            apart(&Index::new(&runs.done()))
        };
        // One of six misses by chance.
        let one = [1, 8, 64, 512, 1_024, 4_096].map(|size| (size, 52_100));
        assert_eq!(found(&one), []);
        let mut two = one;
        (two[0].1, two[2].1) = (62_100, 90_000);
        let all = found(&two);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(
            all[0].sentence,
            "At load 0.9 on atm-oc3c the waits of 2 of 6 messages differ from the virtual clock's; the farthest, of 64 B over udp, waits 50.00 µs, there 12.10 µs."
        );
        assert_eq!(all[0].severity, Severity::Advice);
        two[0].1 = 52_100;
        assert_eq!(found(&two), []);
    }

    #[test]
    fn what_the_model_lacks_is_not_said() {
        assert_eq!(
            waits(16_384, false, 39_000)[0].sentence,
            "At load 0.9 on atm-oc3c a message of 16 KiB over tcp waits 1.000 µs (1.000 µs to 1.000 µs) less than idle."
        );
    }

    fn brought(achieved: &str) -> Vec<Finding> {
        let run = Runs::new()
            .network(net("atm-oc3c"))
            .together()
            .latency("atm-oc3c", "udp", 1, 40_000)
            .load("0.9")
            .setting("load.wanted.h1", "0.9000")
            .setting("load.wanted.h2", "0.9000")
            .setting("load.achieved.h1", "0.9012")
            .setting("load.achieved.h2", achieved)
            .setting("load.switch_cpu_share", "0.3421")
            .latency("atm-oc3c", "udp", 1, 52_000)
            .latency("atm-oc3c", "udp", 8, 52_000)
            .done();
        reached(&Index::new(&run))
    }

    #[test]
    fn a_load_that_is_reached_is_a_note() {
        let found = brought("0.8991");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].rule.as_str(), found[0].severity),
            ("load-reached", Severity::Note)
        );
        assert_eq!(
            found[0].sentence,
            "The load 0.9 on atm-oc3c was delivered: 0.8991 of the link to each measured host in the median repetition; the switch took 34.2 % of a CPU."
        );
        assert_eq!(
            found[0].arithmetic.as_deref(),
            Some("0.8991 to 0.9012 over 6 repetitions, 0.9000 requested")
        );
    }

    #[test]
    fn a_load_that_is_missed_is_a_warning() {
        let found = brought("0.8700");
        assert_eq!(
            (found[0].rule.as_str(), found[0].severity),
            ("load-missed", Severity::Warning)
        );
        assert_eq!(
            found[0].sentence,
            "The load 0.9 on atm-oc3c was not delivered as requested: 0.8700 of the link to a measured host in the median repetition; \
             the switch took 34.2 % of a CPU."
        );
        assert!(found[0].remedy.as_deref().unwrap().contains("overflows"));
        let far = brought("0.5000");
        assert!(
            far[0]
                .sentence
                .contains("median repetition, and 10 % off or more in 6 of 6 repetitions; the"),
            "{far:?}"
        );
    }

    #[test]
    fn a_load_that_hosts_make_is_of_their_flows() {
        let found = |achieved: &str| {
            let run = Runs::new()
                .network(net("eth"))
                .load("0.3:flow=c>d")
                .setting("load.wanted.c>d", "0.3000")
                .setting("load.planned.c>d", "0.2500")
                .setting("load.achieved.c>d", achieved)
                .latency("eth", "udp", 1, 52_000)
                .done();
            reached(&Index::new(&run)).remove(0)
        };
        // A sixth less was planned by chance.
        let sentence = found("0.2500").sentence;
        assert!(
            sentence.ends_with("0.3000 of each flow's link in the median repetition."),
            "{sentence}"
        );
        let missed = found("0.2000");
        assert!(
            missed.sentence.contains("0.2400 of a flow's link"),
            "{missed:?}"
        );
        assert!(missed.remedy.unwrap().contains("`limit` of `load_flows`"));
    }

    #[test]
    fn an_idle_run_has_no_load() {
        let run = Runs::new()
            .network(net("lan"))
            .latency("lan", "udp", 1, 40_000)
            .done();
        let index = Index::new(&run);
        assert_eq!((queueing(&index), reached(&index)), (vec![], vec![]));
    }
}
