//! What background load adds, and whether it was there.
//!
//! Model:   `queueing`: a latency cell under load beside its idle sibling (see [`crate::queueing`]); advice where the virtual
//!          clock's figure is outside the interval, else a note. `load-reached`: what each load brought to the ports of the
//!          measured hosts, of all launches on a network. `load-missed`: at some port the median launch brought 2 % more or
//!          less than was wanted.
//! Source:  Kleinrock, Queueing Systems I, §5.6 for M/D/1, which the virtual clock is tested against. Threshold: at a load
//!          of 0.9, 2 % less of it is a sixth less of waiting.
//! Checked: `a_wait_is_set_beside_the_model`, `what_the_model_lacks_is_not_said`, `a_load_that_is_reached_is_a_note`,
//!          `a_load_that_is_missed_is_a_warning`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Severity};
use crate::format::{bytes, count, share, significant, time};
use crate::index::{Index, Line, median};
use crate::queueing::{QueueingRow, queueing as rows};

/// The farthest that a load may be from the wanted one, as a part of it.
const OFF: f64 = 0.02;

/// `queueing`, for all latency cells under load.
pub(super) fn queueing(index: &Index<'_>) -> Vec<Finding> {
    rows(index).iter().map(wait).collect()
}

fn wait(row: &QueueingRow) -> Finding {
    let ns = |ns: i64| time(ns as f64);
    let (sign, than) = if row.waits_ns < 0 {
        (-1, "less than")
    } else {
        (1, "longer than")
    };
    let interval = match (row.ci95_low_ns, row.ci95_high_ns) {
        (Some(low), Some(high)) => {
            let ends = [sign * low, sign * high];
            format!(
                " ({} to {})",
                ns(ends[0].min(ends[1])),
                ns(ends[0].max(ends[1]))
            )
        }
        _ => String::new(),
    };
    let model = row.model_waits_ns().map_or(String::new(), |model| {
        let verdict = match row.agrees() {
            Some(true) => ": within the interval",
            Some(false) => ": outside the interval",
            None => "",
        };
        format!("; the virtual clock has {}{verdict}", ns(model))
    });
    let sentence = format!(
        "At {} of {} a message of {} by {} waits {}{interval} {than} idle{model}.",
        row.load,
        row.network,
        bytes(row.size_bytes),
        row.path,
        ns(sign * row.waits_ns)
    );
    let outside = row.agrees() == Some(false);
    let severity = if outside {
        Severity::Advice
    } else {
        Severity::Note
    };
    let mut arithmetic = format!(
        "{} loaded - {} idle",
        time(row.loaded_ns as f64),
        time(row.idle_ns as f64)
    );
    if let (Some(loaded), Some(idle)) = (row.model_loaded_ns, row.model_idle_ns) {
        let [loaded, idle] = [loaded, idle].map(|ns| time(ns as f64));
        arithmetic += &format!("; model {loaded} - {idle}");
    }
    let line = Line {
        network: row.network.clone(),
        path: row.path.clone(),
        wait: row.wait.clone(),
        load: Some(row.load.clone()),
    };
    let finding = Finding::new("queueing", severity, sentence)
        .on(&line)
        .since(arithmetic);
    if outside {
        finding.remedy(
            "see that the load was reached and the emulation in time; more launches (`--launches N`) narrow the interval, \
             and one of twenty misses by chance",
        )
    } else {
        finding
    }
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
    // A launch of several sizes is a record for each of them: it counts once.
    let mut seen = BTreeSet::new();
    let mut order: Vec<(&str, &str)> = Vec::new();
    let mut all: BTreeMap<(&str, &str), Brought> = BTreeMap::new();
    for cell in &index.run.cells {
        let Some(load) = cell.factors.load.as_deref() else {
            continue;
        };
        let key = (cell.factors.network.as_str(), load);
        for launch in index.launches(&cell.id) {
            if !seen.insert((launch.began_unix_ns, &launch.src, &launch.dst)) {
                continue;
            }
            if !order.contains(&key) {
                order.push(key);
            }
            all.entry(key).or_default().add(&launch.settings);
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
    fn add(&mut self, settings: &BTreeMap<String, String>) {
        self.launches += 1;
        for (key, value) in settings {
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            if key.starts_with("load.wanted.") && value > 0.0 {
                self.wanted = Some(value);
            } else if let Some(port) = key.strip_prefix("load.achieved.") {
                self.ports.entry(port.into()).or_default().push(value);
            } else if key == "load.switch_cpu_share" {
                self.switch.push(value);
            }
        }
    }

    fn finding(&self, network: &str, load: &str) -> Option<Finding> {
        let wanted = self.wanted?;
        let shares: Vec<f64> = self.ports.values().flatten().copied().collect();
        let least = shares.iter().copied().min_by(f64::total_cmp)?;
        let most = shares.iter().copied().max_by(f64::total_cmp)?;
        let usual = median(shares)?;
        let off = |share: f64| (share / wanted - 1.0).abs();
        let worst = self
            .ports
            .iter()
            .filter_map(|(port, shares)| Some((port, median(shares.clone())?)))
            .max_by(|one, other| off(one.1).total_cmp(&off(other.1)))?;
        let switch = median(self.switch.clone()).map_or(String::new(), |part| {
            format!("; the switch took {} of a CPU", share(part))
        });
        let arithmetic = format!(
            "{} to {} over {} launches, {} wanted",
            significant(least, 4),
            significant(most, 4),
            count(self.launches as u64),
            significant(wanted, 4)
        );
        let finding = if off(worst.1) > OFF {
            let sentence = format!(
                "The load {load} of {network} was not what was wanted: {} of the link to {} in the median launch{switch}.",
                significant(worst.1, 4),
                worst.0
            );
            Finding::new("load-missed", Severity::Warning, sentence).remedy(
                "near a load of one the port overflows, which takes a lower load; else the switch lacks CPU: fewer hosts, a \
                 slower network, larger frames of the load (`:size=BYTES`), or a machine with more CPUs",
            )
        } else {
            let sentence = format!(
                "The load {load} of {network} was there: {} of the link to each measured host in the median launch{switch}.",
                significant(usual, 4)
            );
            Finding::new("load-reached", Severity::Note, sentence)
        };
        Some(finding.on_network(network).since(arithmetic))
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
            "At 0.9 of atm-oc3c a message of 1 B by tcp waits 12.10 µs (12.10 µs to 12.10 µs) longer than idle; the virtual \
             clock has 12.10 µs: within the interval."
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
        assert_eq!(outside.severity, Severity::Advice);
        assert!(outside.remedy.as_deref().unwrap().contains("by chance"));
    }

    #[test]
    fn what_the_model_lacks_is_not_said() {
        assert_eq!(
            waits(16_384, false, 39_000)[0].sentence,
            "At 0.9 of atm-oc3c a message of 16 KiB by tcp waits 1.000 µs (1.000 µs to 1.000 µs) less than idle."
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
            "The load 0.9 of atm-oc3c was there: 0.8991 of the link to each measured host in the median launch; the switch \
             took 34.2 % of a CPU."
        );
        assert_eq!(
            found[0].arithmetic.as_deref(),
            Some("0.8991 to 0.9012 over 6 launches, 0.9000 wanted")
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
            "The load 0.9 of atm-oc3c was not what was wanted: 0.8700 of the link to h2 in the median launch; the switch took \
             34.2 % of a CPU."
        );
        assert!(found[0].remedy.as_deref().unwrap().contains("overflows"));
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
