//! A stream of TCP that waits for its windows.
//!
//! Model:   `window-limited`: the stream is below 90 % of its ceiling, no thread used 90 % of a CPU, and the receive window is what
//!          holds it; `sndbuf-limited`: the send buffer is. Both by [`crate::diagnosis::window`], of which `receive-window` and
//!          `send-buffer` of a pair are the other two. Where no bound is known TCP's account stands alone: half of the time. `slow-reader`: the
//!          peer's window held the sender in half of the time, and the bounds that are known would allow more than twice as
//!          much: the receiving program reads too slowly.
//! Source:  RFC 7323 §1.1; tcp(7), tcpi_rwnd_limited and tcpi_sndbuf_limited. Thresholds: [`crate::limit`].
//! Checked: `a_window_limits`, `a_full_path_is_not_limited`, `a_held_sender_is_enough`, `a_busy_receiver_is_not_a_window`,
//!          `a_window_that_would_allow_more_is_not_named`, `a_send_buffer_limits`, `the_lower_of_two_bounds_is_named`.

use sonde_measure::Line;

use super::{Finding, Severity};
use crate::diagnosis::Evidence;
use crate::diagnosis::rules::reads_slowly;
use crate::diagnosis::window::{receive, send, windows};
use crate::index::Index;
use crate::limit::BUSY;
use crate::words::window as words;

/// A stream of TCP that could be faster, and is not for want of a CPU.
fn slow_stream(index: &Index<'_>, line: &Line) -> Option<Evidence> {
    let evidence = line
        .path
        .starts_with("tcp")
        .then(|| Evidence::of_line(index, line))??;
    let busy = evidence.thread_cpu().is_some_and(|used| used >= BUSY);
    (!evidence.is_full() && !busy).then_some(evidence)
}

fn of<'l>(index: &Index<'_>, line: &'l Line, evidence: &Evidence) -> Option<words::Stream<'l>> {
    let profile = index
        .cell(&index.stream(line)?.cell)
        .and_then(|cell| cell.factors.profile.as_deref());
    Some(words::Stream {
        line,
        rate_bps: evidence.rate_bps?,
        rtt_ns: evidence.rtt_ns.filter(|ns| *ns > 0.0)?,
        ceiling_bps: index.ceiling(line),
        era: profile.is_some_and(|profile| profile.starts_with("era")),
    })
}

/// `window-limited`.
pub(super) fn receiver(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let evidence = slow_stream(index, line)?;
    let found = words::Window {
        hold: receive(&evidence)?,
        stream: of(index, line, &evidence)?,
    };
    Some(Finding::said("window-limited", Severity::Advice, &found).on(line))
}

/// `sndbuf-limited`.
pub(super) fn sender(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let evidence = slow_stream(index, line)?;
    let found = words::Buffer {
        hold: send(&evidence)?,
        stream: of(index, line, &evidence)?,
    };
    Some(Finding::said("sndbuf-limited", Severity::Advice, &found).on(line))
}

/// `slow-reader`.
pub(super) fn reader(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let evidence = slow_stream(index, line)?;
    let is_known = !windows(&evidence).is_empty();
    if !is_known || receive(&evidence).is_some() || send(&evidence).is_some() {
        return None;
    }
    let found = reads_slowly(&evidence)?;
    Some(Finding::said("slow-reader", Severity::Advice, &found).on(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};
    use sonde_measure::{Quantity, Setting};

    fn wan() -> Runs {
        Runs::new()
            .network(net("wan-100m-20ms").line(100_000_000).tcp_max(94_148_000))
            .latency("wan-100m-20ms", "tcp", 1, 10_025_000)
    }

    fn found(run: Runs) -> Option<Finding> {
        let run = run.done();
        receiver(&Index::new(&run), &line("wan-100m-20ms", "tcp"))
    }

    #[test]
    fn a_window_limits() {
        let finding = found(wan().profile("era:window=65535").stream(
            "wan-100m-20ms",
            "tcp",
            26_000_000,
        ))
        .unwrap();
        assert_eq!(
            finding.arithmetic.as_deref(),
            Some("65 535 B x 8 / 20.05 ms = 26.15 Mb/s")
        );
        assert_eq!(
            finding.sentence,
            "The window limits the stream over tcp on wan-100m-20ms: 65 535 B a round trip of 20.05 ms is 26.15 Mb/s, and \
             26.00 Mb/s was measured, 27.6 % of what the network allows."
        );
        assert!(finding.remedy.unwrap().contains("room for 235 959 B"));
    }

    #[test]
    fn a_full_path_is_not_limited() {
        let full = wan()
            .stream("wan-100m-20ms", "tcp", 94_000_000)
            .beside(Quantity::RwndLimitedShare, 900_000);
        assert_eq!(found(full), None);
        // Slow for another reason: the window would allow three times as much.
        let other = wan()
            .profile("era:window=65535")
            .stream("wan-100m-20ms", "tcp", 8_000_000)
            .beside(Quantity::RwndLimitedShare, 10_000);
        assert_eq!(found(other), None);
        assert_eq!(found(wan()), None);
    }

    #[test]
    fn a_held_sender_is_enough() {
        let held = wan()
            .stream("wan-100m-20ms", "tcp", 50_000_000)
            .beside(Quantity::RwndLimitedShare, 830_000);
        let finding = found(held).unwrap();
        assert!(
            finding.sentence.contains("83.0 % of the time"),
            "{finding:?}"
        );
        assert_eq!(
            finding.arithmetic.as_deref(),
            Some("50.00 Mb/s x 20.05 ms / 8 = 125 312 B in flight")
        );
    }

    /// A host whose buffers grow to 6 MB allows 1.26 Gb/s: not the setting, but the program is slow.
    #[test]
    fn a_window_that_would_allow_more_is_not_named() {
        let held = wan()
            .stream("wan-100m-20ms", "tcp", 50_000_000)
            .beside(Quantity::RwndLimitedShare, 830_000);
        let mut run = held.done();
        for host in &mut run.hosts {
            let settings = &mut host.facts.settings;
            settings.read(Setting::TcpRmem, "4096 131072 6291456");
        }
        let (index, line) = (Index::new(&run), line("wan-100m-20ms", "tcp"));
        assert_eq!(receiver(&index, &line), None);
        let finding = reader(&index, &line).unwrap();
        assert!(
            finding.sentence.contains("on h2 reads more slowly")
                && finding.sentence.contains("83.0 % of the time"),
            "{finding:?}"
        );
        // The same host with a window that explains the rate: 200 000 B are 79.8 Mb/s, and 63 % of that is carried.
        for host in &mut run.hosts {
            let settings = &mut host.facts.settings;
            settings.read(Setting::TcpRmem, "4096 131072 400000");
        }
        let index = Index::new(&run);
        assert!(receiver(&index, &line).is_some() && reader(&index, &line).is_none());
    }

    /// A window of 26 Mb/s behind a send buffer of 13: the buffer is what holds.
    #[test]
    fn the_lower_of_two_bounds_is_named() {
        let run = wan()
            .profile("era:window=65535")
            .setting("src_send_buffer_bytes", "32768")
            .stream("wan-100m-20ms", "tcp", 13_000_000)
            .beside(Quantity::RwndLimitedShare, 510_000)
            .beside(Quantity::SndbufLimitedShare, 900_000)
            .done();
        let (index, line) = (Index::new(&run), line("wan-100m-20ms", "tcp"));
        assert_eq!(receiver(&index, &line), None);
        assert!(sender(&index, &line).is_some());
    }

    #[test]
    fn a_busy_receiver_is_not_a_window() {
        // 160 ns a byte at 6.25 MB/s is a whole CPU.
        let busy = wan()
            .stream("wan-100m-20ms", "tcp", 50_000_000)
            .beside(Quantity::RwndLimitedShare, 830_000)
            .beside(Quantity::CpuDstNsPerByte, 160_000);
        assert_eq!(found(busy), None);
    }

    #[test]
    fn a_send_buffer_limits() {
        let run = wan()
            .setting("src_send_buffer_bytes", "16384")
            .stream("wan-100m-20ms", "tcp", 6_500_000)
            .beside(Quantity::SndbufLimitedShare, 950_000)
            .done();
        let index = Index::new(&run);
        let finding = sender(&index, &line("wan-100m-20ms", "tcp")).unwrap();
        assert_eq!(
            finding.arithmetic.as_deref(),
            Some("16 384 B x 8 / 20.05 ms = 6.537 Mb/s")
        );
        assert!(finding.remedy.unwrap().contains("net.ipv4.tcp_wmem"));
        let free = wan()
            .stream("wan-100m-20ms", "tcp", 6_500_000)
            .beside(Quantity::SndbufLimitedShare, 100_000)
            .done();
        assert_eq!(
            sender(&Index::new(&free), &line("wan-100m-20ms", "tcp")),
            None
        );
    }
}
