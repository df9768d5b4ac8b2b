//! Who came to a data port without being asked.
//!
//! Model:   `strangers`: connections or datagrams of others reached the data port of a host while it measured. They were turned
//!          away, and their coming may be in the times that were measured meanwhile. Said once a network and host.
//! Source:  what the serving side counted, in the record of each launch.
//! Checked: `strangers_are_counted_by_host`.

use std::collections::BTreeMap;

use super::{Finding, Severity};
use crate::index::Index;
use crate::words::strangers::Strangers;

/// `strangers`, once a network and host.
pub(super) fn turned_away(index: &Index<'_>) -> Vec<Finding> {
    let mut seen: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for (launch, cell) in index.starts() {
        for at in launch.interference.iter().filter(|at| at.strangers > 0) {
            let (count, launches) = seen.entry((&cell.factors.network, &at.host)).or_default();
            *count += at.strangers;
            *launches += 1;
        }
    }
    seen.into_iter()
        .map(|((network, host), (count, launches))| {
            let found = Strangers {
                network,
                host,
                count,
                launches,
            };
            Finding::said("strangers", Severity::Warning, &found).on_network(network)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    #[test]
    fn strangers_are_counted_by_host() {
        let mut run = Runs::new()
            .network(net("ethernet-1g"))
            .latency("ethernet-1g", "tcp", 1, 10_000)
            .latency("ethernet-1g", "udp", 1, 10_000)
            .done();
        assert_eq!(turned_away(&Index::new(&run)), []);
        let to_h2 = run.launches.iter_mut().filter(|launch| launch.dst == "h2");
        for (launch, count) in to_h2.zip([3, 1]) {
            launch.interference[1].strangers = count;
        }
        let found = turned_away(&Index::new(&run));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].sentence,
            "While ethernet-1g was measured, unauthenticated peers came to the data port of h2 (4 attempts in 2 repetitions). They were refused, but the figures of these repetitions may include their time."
        );
    }
}
