//! Who came to a data port without being asked.
//!
//! Model:   `strangers`: connections or datagrams of others reached the data port of a host while it measured. They were turned
//!          away, and their coming may be in the times that were measured meanwhile. Said once a network and host. The flows of a
//!          round of a pattern have one count of a host, and the record of all of them together repeats it.
//! Source:  what the serving side counted, in the record of each launch.
//! Checked: `strangers_are_counted_by_host`, `those_of_a_round_count_once`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Severity};
use crate::index::Index;
use crate::words::strangers::Strangers;

/// `strangers`, once a network and host.
pub(super) fn turned_away(index: &Index<'_>) -> Vec<Finding> {
    let mut seen: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    let mut rounds = BTreeSet::new();
    for (launch, cell) in index.starts() {
        let flow = &launch.evidence.flow;
        if flow.flows.is_some() {
            continue;
        }
        for at in launch.interference.iter().filter(|at| at.strangers > 0) {
            if flow.together.is_some()
                && !rounds.insert((launch.began_unix_ns, &at.host, at.span_ns))
            {
                continue;
            }
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

    #[test]
    fn those_of_a_round_count_once() {
        let mut run = Runs::new()
            .network(net("ethernet-1g"))
            .latency("ethernet-1g", "tcp", 1, 10_000)
            .latency("ethernet-1g", "tcp", 64, 10_000)
            .latency("ethernet-1g", "tcp", 4_096, 10_000)
            .done();
        // The flows of one round, and all together.
        let last = run.launches.len() - 1;
        for (nth, launch) in run.launches.iter_mut().enumerate() {
            launch.began_unix_ns = 3;
            launch.interference.truncate(1);
            let at = &mut launch.interference[0];
            (at.host, at.strangers, at.span_ns) = ("h2".into(), 5, 7);
            match nth == last {
                true => launch.evidence.flow.flows = Some(2),
                false => launch.evidence.flow.together = Some(2),
            }
        }
        let found = turned_away(&Index::new(&run));
        assert!(
            found[0].sentence.contains("(5 attempts in 1 repetition)"),
            "{}",
            found[0].sentence
        );
    }
}
