//! Which rung of the ladder loses most: from the wire to the transport, or from the transport to the library's user.
//!
//! Model:   of a message's half round trip the network's model takes a part, the transport (with its hosts) what is measured
//!          above that, and a library what is measured above the transport at equal wait. A library loses most where the
//!          95 % interval of its cost lies above the transport's part, least where it lies below; else the two are not told
//!          apart. A cost whose interval holds zero is not distinguishable from none, and told so. Told once a network, wait and load of its own, for the smallest and the largest size.
//! Source:  N44: the loss from raw to protocol against that from protocol to application.
//! Units:   nanoseconds of half a round trip.
//! Checked: `the_heavier_rung_is_told`, `a_cost_that_may_be_none_is_not_a_figure_of_the_sentence`,
//!          `without_a_model_there_is_no_wire`.

use super::{Finding, Severity};
use crate::index::{Index, grouped};
use crate::library::{LibraryRow, libraries};
use crate::words::layer_cost::{Cost, LayerCost, Size};

/// `layer-cost`.
pub(super) fn most(index: &Index<'_>) -> Vec<Finding> {
    let mut rows = libraries(index);
    rows.retain(|row| row.load.is_none());
    let groups = grouped(rows.into_iter(), LibraryRow::transport).into_iter();
    groups.filter_map(|(_, group)| told(&group)).collect()
}

fn told(group: &[LibraryRow]) -> Option<Finding> {
    let first = group.first()?;
    let mut ends: Vec<u64> = first.sizes.iter().map(|size| size.size_bytes).collect();
    ends.drain(1..ends.len().saturating_sub(1).max(1));
    let sizes: Vec<Size> = ends
        .into_iter()
        .filter_map(|size| of_size(group, size))
        .collect();
    if sizes.is_empty() {
        return None;
    }
    let found = LayerCost {
        network: first.network.clone(),
        wait: first.wait.clone(),
        beneath: first.beneath.clone(),
        sizes,
    };
    Some(Finding::said("layer-cost", Severity::Note, &found).on_network(&first.network))
}

/// One size: which libraries lose more than the transport does, and which less; nothing where none of either.
fn of_size(group: &[LibraryRow], size_bytes: u64) -> Option<Size> {
    let at = |row: &LibraryRow| {
        let mut sizes = row.sizes.iter();
        let size = sizes.find(|size| size.size_bytes == size_bytes)?;
        Some((row.path.clone(), size.clone()))
    };
    let costs: Vec<_> = group.iter().filter_map(at).collect();
    let (_, any) = costs.first()?;
    let wire_ns = i64::try_from(any.wire_ns?).ok()?;
    let transport_ns = i64::try_from(any.transport_ns).ok()? - wire_ns;
    let mut found = Size {
        size_bytes,
        wire_ns,
        transport_ns,
        more: Vec::new(),
        less: Vec::new(),
        alike: Vec::new(),
    };
    for (path, size) in costs {
        let cost = size.cost_ns;
        let of = match (cost.ci95_low, cost.ci95_high) {
            (Some(low), _) if low > transport_ns => &mut found.more,
            (_, Some(high)) if high < transport_ns => &mut found.less,
            _ => &mut found.alike,
        };
        of.push(Cost { path, cost });
    }
    (!found.more.is_empty() || !found.less.is_empty()).then_some(found)
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
            "On atm-oc3c (blocking), a message of 8 B loses most from transport to library with pvm:default (+70",
            "and loses most from wire to transport with native:tcp (+3",
            "; a message of 60 000 B loses most from transport to library with pvm:default (+5",
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
    fn a_cost_that_may_be_none_is_not_a_figure_of_the_sentence() {
        let of = |value, ends: (i64, i64)| {
            let cost = crate::library::Cost {
                value,
                ci95_low: Some(ends.0),
                ci95_high: Some(ends.1),
            };
            let size = crate::library::SizeCost {
                size_bytes: 8,
                wire_ns: Some(5_000),
                transport_ns: 25_000,
                library_ns: 25_000_u64.saturating_add_signed(value),
                cost_ns: cost,
            };
            let row = LibraryRow {
                network: "atm-oc3c".into(),
                path: "openmpi:tcp".into(),
                beneath: "tcp".into(),
                wait: Some("block".into()),
                load: None,
                per_message_ns: cost,
                per_byte_ps: None,
                sizes: vec![size],
            };
            told(&[row]).unwrap()
        };
        let alike = of(-78, (-1_200, 900));
        assert_eq!(
            alike.sentence,
            "On atm-oc3c (blocking), a message of 8 B loses most from wire to transport with openmpi:tcp (not distinguishable from tcp)"
        );
        // The number stays where the figures are, with its sign.
        let since = alike.arithmetic.unwrap();
        assert!(
            since.ends_with("; openmpi:tcp -0.0780 µs (95 % CI -1.20 to 0.900)"),
            "{since}"
        );
        // A library that is faster for sure keeps its figure.
        let faster = of(-9_000, (-9_500, -8_500));
        assert!(
            faster.sentence.contains("openmpi:tcp (-9.00 µs)"),
            "{faster:?}"
        );
        // And one that takes more than the transport does is what loses most.
        let heavy = of(70_000, (69_000, 71_000));
        assert!(
            heavy
                .sentence
                .contains("most from transport to library with openmpi:tcp (+70.0 µs)"),
            "{heavy:?}"
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
