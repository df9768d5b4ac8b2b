//! Where datagrams were lost between real hosts, by the counters of both.
//!
//! Model:   `datagram-loss-place`: as `datagram-loss`, where the hosts' counters were read around each launch. Of the datagrams
//!          that a stream lost, the receiver's sockets had no room for `RcvbufErrors`; its interface had none for rx_missed (its
//!          ring) and rx_dropped (its host), and found rx_errors broken; the sender's queueing discipline or device
//!          had none for queue_dropped and tx_dropped (SndbufErrors are calls that were told so and sent again). The rest was lost on the way. The counters are of the
//!          whole host: each takes at most what is left of the loss, the receiver's first, since what is counted there had
//!          come so far.
//! Source:  Documentation/networking/statistics.rst; RFC 4113 for UDP's counters. Threshold as for `datagram-loss`.
//! Checked: `the_largest_place_is_named`, `the_counters_of_others_take_no_more_than_was_lost`, `no_counters_say_nothing`.

use sonde_measure::{Evidence, InterfaceCounters, Line, Quantity, Side};

use super::{Finding, Severity};
use crate::index::Index;
use crate::words::place::{Lost, Place};

const NOTEWORTHY: f64 = 0.001;
/// Where, in the order in which the loss is given to them.
const PLACES: [Place; 4] = [Place::Socket, Place::Interface, Place::Queue, Place::Broken];

/// What the counters of one launch give to each of [`PLACES`].
fn counted(evidence: &Evidence) -> [u64; 4] {
    let at = |side: &Side, counts: &[fn(&InterfaceCounters) -> Option<u64>]| -> u64 {
        let name = side.transfer.interface.as_ref();
        let interface = name.and_then(|name| side.interfaces.get(name));
        let each = counts
            .iter()
            .map(|count| interface.and_then(count).unwrap_or(0));
        each.sum()
    };
    let Evidence { src, dst, .. } = evidence;
    let sockets = dst.udp.get(&"rcvbuf_errors".into());
    [
        sockets.and_then(|one| one.count).unwrap_or(0),
        at(dst, &[|one| one.rx_missed, |one| one.rx_dropped]),
        at(src, &[|one| one.queue_dropped, |one| one.tx_dropped]),
        at(dst, &[|one| one.rx_errors]),
    ]
}

/// `datagram-loss-place`.
pub(super) fn lost(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = index.stream(line)?;
    if index.beside(stream, Quantity::LostShare)? < NOTEWORTHY {
        return None;
    }
    let (mut sent, mut lost, mut places) = (0_u64, 0_u64, [0_u64; 4]);
    for launch in index.launches(&stream.cell) {
        let datagrams = &launch.evidence.datagrams;
        let (Some(of), Some(without)) = (datagrams.sent, datagrams.lost) else {
            continue;
        };
        (sent, lost) = (sent + of, lost + without);
        let mut left = without;
        for (place, found) in places.iter_mut().zip(counted(&launch.evidence)) {
            let part = found.min(left);
            (*place, left) = (*place + part, left - part);
        }
    }
    if lost == 0 {
        return None;
    }
    let mut counted = PLACES.map(|place| (place, 0));
    for ((_, known), found) in counted.iter_mut().zip(places) {
        *known = found;
    }
    let found = Lost {
        line,
        sent,
        lost,
        counted,
    };
    Some(Finding::said("datagram-loss-place", Severity::Advice, &found).on(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};

    fn found(settings: &[(&str, &str)]) -> Option<Finding> {
        let mut runs = Runs::new().network(net("eth"));
        for (name, value) in settings {
            runs = runs.setting(name, value);
        }
        let run = runs
            .stream("eth", "udp", 90_000_000)
            .beside(Quantity::LostShare, 100_000)
            .done();
        lost(&Index::new(&run), &line("eth", "udp"))
    }

    const OF: [(&str, &str); 4] = [
        ("datagrams.sent", "10000"),
        ("datagrams.lost", "1000"),
        ("src_interface", "eth0"),
        ("dst_interface", "eth1"),
    ];

    #[test]
    fn the_largest_place_is_named() {
        let with = |more: &[(&str, &str)]| found(&[&OF[..], more].concat()).unwrap();
        let socket = with(&[
            ("dst_udp.rcvbuf_errors", "980"),
            ("dst_if.eth1.rx_missed", "5"),
        ]);
        assert!(
            socket
                .sentence
                .contains("98.0 % at the receiver's socket (UdpRcvbufErrors); 1.5 % in transit"),
            "{}",
            socket.sentence
        );
        assert!(socket.remedy.unwrap().contains("rmem_max"));
        let ring = with(&[
            ("dst_if.eth1.rx_missed", "900"),
            ("dst_if.eth0.rx_missed", "77"),
        ]);
        assert!(
            ring.sentence.contains("90.0 % at the receiver's interface"),
            "{}",
            ring.sentence
        );
        assert!(ring.remedy.unwrap().contains("ethtool -G"));
        let queue = with(&[
            ("src_if.eth0.queue_dropped", "700"),
            ("src_if.eth0.tx_dropped", "300"),
        ]);
        assert!(
            queue.sentence.contains("100.0 % at the sender's queue"),
            "{}",
            queue.sentence
        );
        let way = with(&[]);
        assert!(
            way.sentence.contains("100.0 % in transit: no counter"),
            "{}",
            way.sentence
        );
        assert_eq!(way.severity, Severity::Advice);
    }

    #[test]
    fn the_counters_of_others_take_no_more_than_was_lost() {
        let more = [
            ("dst_udp.rcvbuf_errors", "99999"),
            ("src_if.eth0.tx_dropped", "5000"),
        ];
        let finding = found(&[&OF[..], &more[..]].concat()).unwrap();
        assert!(
            finding
                .sentence
                .contains("lost: 100.0 % at the receiver's socket"),
            "{}",
            finding.sentence
        );
        assert!(!finding.sentence.contains("sender"), "{}", finding.sentence);
    }

    #[test]
    fn no_counters_say_nothing() {
        assert_eq!(found(&[]), None);
    }
}
