//! What was lost, overtaken, or sent again.
//!
//! Model:   `datagram-loss`: the median launch of a UDP stream lost at least one in a thousand. Where the network itself
//!          loses nothing (an emulated one that holds its senders back, without loss in its description), they were lost at
//!          the receiver's socket. `reordering`: one in a thousand came after a later one, or came twice. `retransmits`: a
//!          TCP stream sent segments again although its network loses nothing; else, one in a thousand or more. That is a
//!          fact, and the cause of its rate only where the congestion control keeps no more with it ([`explains`]).
//! Source:  udp(7), SO_RCVBUF; RFC 4737 §3. Threshold: TCP's rate falls with the root of the loss (Mathis et al. 1997); at
//!          one in a thousand it is about 40 segments a round trip.
//! Checked: `overrun_and_loss_are_told_apart`, `few_lost_datagrams_are_not_said`, `order_is_watched`,
//!          `nothing_is_sent_again_where_nothing_is_lost`; `only_what_explains_is_named` of `ceiling`.

use sonde_measure::{Line, Quantity, Testbed};

use super::{Finding, Severity};
use crate::diagnosis::{Evidence, rules::loss_limit_bps};
use crate::index::{Index, p50};
use crate::limit;
use crate::words::loss as words;

const NOTEWORTHY: f64 = 0.001;
/// A stream is rated over a second at least: what its segments are counted over.
const WINDOW_S: f64 = 1.0;

/// `datagram-loss-place` where the hosts' counters tell it, else `datagram-loss`.
pub(super) fn of_datagrams(index: &Index<'_>, line: &Line) -> Option<Finding> {
    super::place::lost(index, line).or_else(|| datagrams(index, line))
}

/// `datagram-loss`.
fn datagrams(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = index.stream(line)?;
    let found = words::Datagrams {
        line,
        lost: index.beside(stream, Quantity::LostShare)?,
        received_bps: p50(stream),
        overrun: index.is_lossless(line),
    };
    let is_told = found.lost >= NOTEWORTHY;
    is_told.then(|| Finding::said("datagram-loss", Severity::Advice, &found).on(line))
}

/// `reordering`.
pub(super) fn reordered(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = index.stream(line)?;
    let share = |quantity| index.beside(stream, quantity).unwrap_or(0.0);
    let found = words::Reordered {
        line,
        late: share(Quantity::ReorderedShare),
        twice: share(Quantity::DuplicatedShare),
    };
    let is_told = found.late >= NOTEWORTHY || found.twice >= NOTEWORTHY;
    is_told.then(|| Finding::said("reordering", Severity::Note, &found).on(line))
}

/// `retransmits`.
pub(super) fn retransmits(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = index.stream(line)?;
    let row = index.row_beside(stream, Quantity::Retransmits)?;
    let segment = index.segment_bytes(line, &stream.cell)? as f64;
    let found = words::Retransmits {
        line,
        usual: p50(row),
        most: row.max.map_or(0.0, |number| number.0),
        segments: (p50(stream) * WINDOW_S / 8.0 / segment).max(1.0),
        lossless: index.is_lossless(line),
        cable: stream.testbed == Testbed::Hosts,
    };
    let few = !found.lossless && found.usual / found.segments < NOTEWORTHY;
    let severity = match found.lossless {
        true => Severity::Warning,
        false => Severity::Advice,
    };
    (found.most > 0.0 && !few).then(|| Finding::said("retransmits", severity, &found).on(line))
}

/// Whether the segments that a stream of TCP sent again explain its rate.
pub(super) fn explains(index: &Index<'_>, line: &Line) -> bool {
    let limit = || {
        let evidence = Evidence::of_line(index, line)?;
        let limit = loss_limit_bps(&evidence, evidence.again_share?)?;
        Some(limit::explains(evidence.rate_bps?, limit))
    };
    limit().unwrap_or(false)
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
            "10.0 % of the datagrams over udp on wire were lost: the network loses none, so they were lost at the receiver, \
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
        let own_loss = "[path]\nloss = \"0.01\"\n";
        let own_fault = "mtu = 1500\n\n[[fault]]\nat = \"1s\"\ncommand = \"loss h2 10%\"\n";
        let own_load = "mtu = 1500\n\n[[load]]\nto = \"h2\"\nrho = \"0.9\"\n";
        for spec in [own_loss, own_fault, own_load] {
            let lossy = net("wire").spec(spec).gated();
            let run = udp(lossy, Quantity::LostShare, 100_000).done();
            let finding = datagrams(&Index::new(&run), &line("wire", "udp")).unwrap();
            assert!(
                finding.sentence.contains("in the network or"),
                "{finding:?}"
            );
        }
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
        assert!(
            found(20_000)
                .unwrap()
                .sentence
                .contains("2.0 % arrived out of order")
        );
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
        // A fault of the user's own loses what it was written for.
        let faulty = || {
            net("wire")
                .gated()
                .spec("[[fault]]\ncommand = \"loss h2 1%\"\n")
        };
        assert_eq!(found(faulty(), 3), None);
        assert_eq!(severity(found(faulty(), 80)), Some(Severity::Advice));
        // 90 Mb/s are 7 769 segments a second: one in a thousand is 8.
        assert_eq!(found(net("wire"), 7), None);
        assert_eq!(severity(found(net("wire"), 8)), Some(Severity::Advice));
    }
}
