//! Which rung of the ladder loses most: from the wire to the transport, or from the transport to the library's user.
//!
//! Model:   of a message's half round trip the network's model takes a part, the transport (with its hosts) what is measured
//!          above that, and a library what is measured above the transport at equal wait. A library loses most where the
//!          95 % interval of its cost lies above the transport's part, least where it lies below; else the two are not told
//!          apart. Told once a network, wait and load of its own, for the smallest and the largest size.
//! Source:  N44: the loss from raw to protocol against that from protocol to application.
//! Units:   nanoseconds of half a round trip.
//! Checked: `the_heavier_rung_is_told`, `without_a_model_there_is_no_wire`.

use super::{Finding, Severity};
use crate::format::{bytes, significant};
use crate::index::Index;
use crate::library::{LibraryRow, SizeCost, libraries};

/// `rung`.
pub(super) fn most(index: &Index<'_>) -> Vec<Finding> {
    let mut rows = libraries(index);
    rows.retain(|row| row.load.is_none());
    let mut groups: Vec<Vec<LibraryRow>> = Vec::new();
    for row in rows {
        let same = |group: &&mut Vec<LibraryRow>| {
            let first = &group[0];
            (&first.network, &first.beneath, &first.wait) == (&row.network, &row.beneath, &row.wait)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.iter().filter_map(|group| told(group)).collect()
}

fn told(group: &[LibraryRow]) -> Option<Finding> {
    let first = &group[0];
    let mut ends: Vec<u64> = first.sizes.iter().map(|size| size.size_bytes).collect();
    ends.drain(1..ends.len().saturating_sub(1).max(1));
    let mut said = Vec::new();
    let mut arithmetic = Vec::new();
    for size_bytes in ends {
        let at = |row: &LibraryRow| {
            let mut sizes = row.sizes.iter();
            let size = sizes.find(|size| size.size_bytes == size_bytes)?;
            Some((row.path.clone(), size.clone()))
        };
        let rungs: Vec<(String, SizeCost)> = group.iter().filter_map(at).collect();
        let Some((sentence, figures)) = of_size(&first.beneath, size_bytes, &rungs) else {
            continue;
        };
        said.push(sentence);
        arithmetic.push(figures);
    }
    if said.is_empty() {
        return None;
    }
    let wait = first.wait.as_deref().unwrap_or("the same");
    let sentence = format!("On {} ({wait}), {}", first.network, said.join("; "));
    let finding = Finding::new("rung", Severity::Note, sentence).since(arithmetic.join("; "));
    Some(finding.on_network(&first.network))
}

/// One size: which libraries lose more than the transport does, and which less.
fn of_size(
    beneath: &str,
    size_bytes: u64,
    rungs: &[(String, SizeCost)],
) -> Option<(String, String)> {
    let (_, any) = rungs.first()?;
    let wire = any.wire_ns?;
    let transport = i64::try_from(any.transport_ns).ok()? - i64::try_from(wire).ok()?;
    let (mut more, mut less, mut unclear) = (Vec::new(), Vec::new(), Vec::new());
    for (path, size) in rungs {
        let cost = size.cost_ns;
        let sign = if cost.value < 0 { "" } else { "+" };
        let text = format!("{path} ({sign}{} µs)", micros(cost.value));
        match (cost.ci95_low, cost.ci95_high) {
            (Some(low), _) if low > transport => more.push(text),
            (_, Some(high)) if high < transport => less.push(text),
            _ => unclear.push(text),
        }
    }
    if more.is_empty() && less.is_empty() {
        return None;
    }
    let parts = [
        (more, "loses most from transport to library"),
        (less, "loses most from wire to transport"),
        (unclear, "loses alike on both"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(paths, _)| !paths.is_empty())
        .map(|(paths, what)| format!("{what} by {}", paths.join(", ")))
        .collect();
    let sentence = format!(
        "a message of {} {}",
        bytes(size_bytes),
        parts.join(", and ")
    );
    let figures = format!(
        "{}: wire {} µs, {beneath} {} µs above it; in brackets what each library takes above {beneath}",
        bytes(size_bytes),
        micros(i64::try_from(wire).ok()?),
        micros(transport),
    );
    Some((sentence, figures))
}

fn micros(ns: i64) -> String {
    significant(ns as f64 / 1e3, 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};
    use sonde_measure::Quantity;

    #[test]
    fn the_heavier_rung_is_told() {
        let bound = |network: crate::testing::Net, size, ns| {
            network.ceiling("tcp", Quantity::LatencyNs, Some(size), ns)
        };
        let network = bound(bound(net("atm-oc3c"), 8, 5_000), 60_000, 4_000_000);
        let run = Runs::new()
            .network(network)
            .spread(0.01)
            .latency("atm-oc3c", "tcp", 8, 25_000)
            .latency("atm-oc3c", "tcp", 60_000, 4_100_000)
            .latency("atm-oc3c", "native:tcp", 8, 28_000)
            .latency("atm-oc3c", "native:tcp", 60_000, 4_150_000)
            .latency("atm-oc3c", "pvm:default", 8, 95_000)
            .latency("atm-oc3c", "pvm:default", 60_000, 9_100_000)
            .done();
        let found = most(&Index::new(&run));
        assert_eq!(found.len(), 1, "{found:?}");
        let sentence = &found[0].sentence;
        for part in [
            "On atm-oc3c (block), a message of 8 B loses most from transport to library by pvm:default (+70",
            "and loses most from wire to transport by native:tcp (+3",
            "; a message of 60 000 B loses most from transport to library by pvm:default (+5",
        ] {
            assert!(sentence.contains(part), "{part}: {sentence}");
        }
        let since = found[0].arithmetic.as_ref().unwrap();
        assert!(
            since.contains("wire 5.00 µs, tcp 20.0 µs above it"),
            "{since}"
        );
    }

    #[test]
    fn without_a_model_there_is_no_wire() {
        let run = Runs::new()
            .network(net("loopback"))
            .latency("loopback", "tcp", 8, 25_000)
            .latency("loopback", "native:tcp", 8, 28_000)
            .done();
        assert_eq!(most(&Index::new(&run)), []);
    }
}
