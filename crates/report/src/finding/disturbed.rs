//! Figures that a disturbance leaves uncertain.
//!
//! Model:   `disturbed`: a quieter machine would have given a better figure: too many samples met a time in which the emulation was behind its
//!          model or a program waited for a CPU, or frames were lost in the attachment. Said once a network and load, with the
//!          figure that is worst: the one whose interval is the widest part of it.
//! Source:  the states of the rows.
//! Checked: `disturbed_figures_are_counted`.

use std::collections::BTreeMap;

use sonde_measure::ResultRow;

use super::{Finding, Severity};
use crate::index::{Index, p50};
use crate::words::disturbed::Disturbed;

/// `disturbed` under a load or idle, once a network.
pub(super) fn of_load(index: &Index<'_>, load: Option<&str>) -> Vec<Finding> {
    let mut networks: BTreeMap<&str, (usize, Vec<&ResultRow>)> = BTreeMap::new();
    for row in index.figures().filter(|row| row.load.as_deref() == load) {
        let (judged, disturbed) = networks.entry(&row.network).or_default();
        *judged += 1;
        if row.is_disturbed() {
            disturbed.push(row);
        }
    }
    networks
        .into_iter()
        .filter_map(|(network, (judged, disturbed))| {
            let worst = disturbed
                .iter()
                .max_by(|one, other| width(one).total_cmp(&width(other)))?;
            let found = Disturbed {
                network,
                load,
                disturbed: disturbed.len(),
                judged,
                worst,
            };
            Some(Finding::said("disturbed", Severity::Warning, &found).on_network(network))
        })
        .collect()
}

/// The interval of the undisturbed median over the median; without an end it is infinite.
fn width(row: &ResultRow) -> f64 {
    let ends = row.undisturbed_low.zip(row.undisturbed_high);
    ends.map_or(f64::INFINITY, |(low, high)| (high.0 - low.0) / p50(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net, verdict};

    #[test]
    fn disturbed_figures_are_counted() {
        let run = Runs::new()
            .network(net("ethernet-1g"))
            .verdict(verdict(0))
            .latency("ethernet-1g", "tcp", 1, 10_000)
            .verdict(verdict(320))
            .latency("ethernet-1g", "udp", 64, 10_000)
            .done();
        let found = of_load(&Index::new(&run), None);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].sentence,
            "A disturbance leaves 1 of 2 figures on ethernet-1g uncertain (worst: latency of 64 B over udp on ethernet-1g)."
        );
        let why = found[0].arithmetic.as_ref().unwrap();
        assert!(
            why.starts_with("1920 of 60000 deliveries were behind schedule"),
            "{found:?}"
        );
        let run = Runs::new()
            .network(net("ethernet-1g"))
            .verdict(verdict(100))
            .latency("ethernet-1g", "tcp", 1, 10_000)
            .done();
        assert_eq!(of_load(&Index::new(&run), None), []);
    }
}
