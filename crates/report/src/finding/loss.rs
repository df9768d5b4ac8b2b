//! What was lost, overtaken, or sent again.
//!
//! Model:   `datagram-loss`: the median launch of a UDP stream lost at least one in a thousand. Where the network itself
//!          loses nothing (an emulated one that holds its senders back, without loss in its description), they were lost at
//!          the receiver's socket. `reordering`: one in a thousand came after a later one, or came twice. `retransmits`: a
//!          TCP stream sent segments again although its network loses nothing; else, one in a thousand or more.
//! Source:  udp(7), SO_RCVBUF; RFC 4737 §3. Threshold: TCP's rate falls with the root of the loss (Mathis et al. 1997); at
//!          one in a thousand it is about 40 segments a round trip.
//! Checked: `overrun_and_loss_are_told_apart`, `few_lost_datagrams_are_not_said`, `order_is_watched`,
//!          `nothing_is_sent_again_where_nothing_is_lost`.

use sonde_measure::Quantity;

use super::{Finding, Severity};
use crate::format::{count, rate, share};
use crate::index::{Index, Line, p50};

const NOTEWORTHY: f64 = 0.001;
/// A stream is rated over a second at least: what its segments are counted over.
const WINDOW_S: f64 = 1.0;

/// `datagram-loss`.
pub(super) fn datagrams(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = index.stream(line)?;
    let lost = index.beside(stream, Quantity::LostShare)?;
    if lost < NOTEWORTHY {
        return None;
    }
    let sent = (lost < 1.0).then(|| p50(stream) / (1.0 - lost));
    let overrun = index.is_lossless(&line.network);
    let place = if overrun {
        "the network loses none, so they were lost at the receiver, whose socket was full"
    } else {
        "in the network or at the receiver's socket"
    };
    let sentence = format!(
        "{} of the datagrams by {} on {} were lost: {place}.",
        share(lost),
        line.by(),
        line.network
    );
    let mut finding = Finding::new("datagram-loss", Severity::Advice, sentence).on(line);
    if let Some(sent) = sent {
        finding = finding.since(format!(
            "{} sent, {} received",
            rate(sent),
            rate(p50(stream))
        ));
    }
    Some(finding.remedy(if overrun {
        "raise net.core.rmem_max and the receiver's SO_RCVBUF, let it read on a CPU of its own, or send at a pace"
    } else {
        "compare `nstat -az UdpRcvbufErrors` at the receiver with `ethtool -S` on the way: the first is cured by a larger \
         net.core.rmem_max and SO_RCVBUF, the second by sending at a pace"
    }))
}

/// `reordering`.
pub(super) fn reordered(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = index.stream(line)?;
    let late = index
        .beside(stream, Quantity::ReorderedShare)
        .unwrap_or(0.0);
    let twice = index
        .beside(stream, Quantity::DuplicatedShare)
        .unwrap_or(0.0);
    if late < NOTEWORTHY && twice < NOTEWORTHY {
        return None;
    }
    let sentence = format!(
        "Of the datagrams by {} on {}, {} came after a later one and {} came twice.",
        line.by(),
        line.network,
        share(late),
        share(twice)
    );
    Some(
        Finding::new("reordering", Severity::Note, sentence)
            .on(line)
            .remedy(
                "several paths or queues carry one flow: let the switches and the interface (`ethtool -n IF rx-flow-hash udp4`) \
                 choose by flow, not by packet",
            ),
    )
}

/// `retransmits`.
pub(super) fn retransmits(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = index.stream(line)?;
    let row = index.row_beside(stream, Quantity::Retransmits)?;
    let (usual, most) = (p50(row), row.max.map_or(0.0, |number| number.0));
    let segment = index.segment_bytes(line, &stream.cell)? as f64;
    let segments = (p50(stream) * WINDOW_S / 8.0 / segment).max(1.0);
    let lossless = index.is_lossless(&line.network);
    if most <= 0.0 || (!lossless && usual / segments < NOTEWORTHY) {
        return None;
    }
    let sentence = if lossless {
        format!(
            "A stream by {} on {} sent up to {} segments again, where the network loses none: they were late, or lost inside \
             the hosts.",
            line.by(),
            line.network,
            count(most as u64)
        )
    } else {
        format!(
            "A stream by {} on {} sends {} segments a second again, {} of all.",
            line.by(),
            line.network,
            count(usual as u64),
            share(usual / segments)
        )
    };
    let remedy = if lossless {
        "do not trust these streams without looking: `nstat -az` names the cause (TcpExt), and the verdict of the emulation \
         the delay"
    } else {
        "find where frames are lost: `ethtool -S` at both ends and the switch; a queue that overflows, a bad cable, or a \
         duplex mismatch"
    };
    let severity = if lossless {
        Severity::Warning
    } else {
        Severity::Advice
    };
    Some(
        Finding::new("retransmits", severity, sentence)
            .on(line)
            .since(format!(
                "{} again of about {} a second; the most in a launch {}",
                count(usual as u64),
                count(segments as u64),
                count(most as u64)
            ))
            .remedy(remedy),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Net, Runs, line, net};

    fn udp(net: Net, quantity: Quantity, value: u64) -> Runs {
        let name = net.name().to_string();
        Runs::new()
            .network(net)
            .stream(&name, "udp", 90_000_000)
            .beside(quantity, value)
    }

    #[test]
    fn overrun_and_loss_are_told_apart() {
        let run = udp(net("wire").lossless(), Quantity::LostShare, 100_000).done();
        let finding = datagrams(&Index::new(&run), &line("wire", "udp")).unwrap();
        assert_eq!(
            finding.sentence,
            "10.0 % of the datagrams by udp on wire were lost: the network loses none, so they were lost at the receiver, \
             whose socket was full."
        );
        assert_eq!(
            finding.arithmetic.as_deref(),
            Some("100.0 Mb/s sent, 90.00 Mb/s received")
        );
        let run = udp(net("lan"), Quantity::LostShare, 100_000).done();
        let finding = datagrams(&Index::new(&run), &line("lan", "udp")).unwrap();
        assert!(
            finding.sentence.contains("in the network or"),
            "{finding:?}"
        );
        let lossy = net("wire").spec("[path]\nloss = \"0.01\"\n");
        let run = udp(lossy.gated(), Quantity::LostShare, 100_000).done();
        let finding = datagrams(&Index::new(&run), &line("wire", "udp")).unwrap();
        assert!(
            finding.sentence.contains("in the network or"),
            "{finding:?}"
        );
    }

    #[test]
    fn few_lost_datagrams_are_not_said() {
        let run = udp(net("wire"), Quantity::LostShare, 900).done();
        assert_eq!(datagrams(&Index::new(&run), &line("wire", "udp")), None);
    }

    #[test]
    fn order_is_watched() {
        let found = |millionths| {
            let run = udp(net("wire"), Quantity::ReorderedShare, millionths).done();
            reordered(&Index::new(&run), &line("wire", "udp"))
        };
        assert!(found(20_000).unwrap().sentence.contains("2.0 % came after"));
        assert_eq!(found(100), None);
    }

    #[test]
    fn nothing_is_sent_again_where_nothing_is_lost() {
        let found = |net: Net, again| {
            let run = Runs::new()
                .network(net)
                .stream("wire", "tcp", 90_000_000)
                .beside(Quantity::Retransmits, again)
                .done();
            retransmits(&Index::new(&run), &line("wire", "tcp"))
        };
        let severity = |found: Option<Finding>| found.map(|finding| finding.severity);
        let lossless = || net("wire").lossless();
        assert_eq!(severity(found(lossless(), 3)), Some(Severity::Warning));
        assert_eq!(found(lossless(), 0), None);
        // 90 Mb/s are 7 769 segments a second: one in a thousand is 8.
        assert_eq!(found(net("wire"), 7), None);
        assert_eq!(severity(found(net("wire"), 8)), Some(Severity::Advice));
    }
}
