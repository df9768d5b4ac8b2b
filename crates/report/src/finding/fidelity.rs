//! Cells whose emulation did not keep its own times.
//!
//! Model:   `lateness`: the verdict of a row is failed (more than 1 % of its deliveries later than max(50 µs, 5 % of the
//!          model's one-way time), or a frame lost in the attachment). Said once a network and load, with the worst cell.
//! Source:  the verdict, in the record of each cell.
//! Checked: `late_cells_are_counted`.

use std::collections::{BTreeMap, BTreeSet};

use sonde_measure::ResultRow;

use super::{Finding, Severity};
use crate::index::{Index, is_main};
use crate::words::fidelity::Late;

/// `lateness` under a load or idle, once a network.
pub(super) fn untrue(index: &Index<'_>, load: Option<&str>) -> Vec<Finding> {
    let mut networks: BTreeMap<&str, (BTreeSet<&str>, Vec<&ResultRow>)> = BTreeMap::new();
    let same = |row: &&ResultRow| is_main(row) && row.load.as_deref() == load;
    for row in index.rows.iter().filter(same) {
        let Some(verdict) = &row.verdict else {
            continue;
        };
        let (judged, late) = networks.entry(&row.network).or_default();
        judged.insert(&row.cell);
        if !verdict.kept_times() && late.iter().all(|one| one.cell != row.cell) {
            late.push(row);
        }
    }
    networks
        .into_iter()
        .filter_map(|(network, (judged, late))| {
            let worst = late.iter().max_by(|one, other| {
                let late = |row: &ResultRow| {
                    row.verdict
                        .as_ref()
                        .and_then(|verdict| verdict.late_share)
                        .unwrap_or(1.0)
                };
                late(one).total_cmp(&late(other))
            })?;
            let found = Late {
                network,
                load,
                late: late.len(),
                judged: judged.len(),
                worst,
                verdict: worst.verdict.as_ref()?,
            };
            Some(Finding::said("lateness", Severity::Warning, &found).on_network(network))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net, verdict};

    #[test]
    fn late_cells_are_counted() {
        let run = Runs::new()
            .network(net("ethernet-1g"))
            .verdict(verdict(0))
            .latency("ethernet-1g", "tcp", 1, 10_000)
            .verdict(verdict(320))
            .latency("ethernet-1g", "udp", 64, 10_000)
            .done();
        let found = untrue(&Index::new(&run), None);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].sentence,
            "The emulation of ethernet-1g was behind schedule in 1 of 2 cells, so their latencies are too high and their rates unreliable (worst: latency of 64 B over udp on ethernet-1g)."
        );
        assert!(
            found[0]
                .arithmetic
                .as_ref()
                .unwrap()
                .starts_with("3.2 % of "),
            "{found:?}"
        );
        let run = Runs::new()
            .network(net("ethernet-1g"))
            .verdict(verdict(100))
            .latency("ethernet-1g", "tcp", 1, 10_000)
            .done();
        assert_eq!(untrue(&Index::new(&run), None), []);
    }
}
