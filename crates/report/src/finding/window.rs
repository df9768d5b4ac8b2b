//! A stream of TCP that waits for its windows.
//!
//! Model:   a sender may have one window on the way, so its rate is at most window / round trip. `window-limited`: the
//!          stream is below 90 % of its ceiling, no thread used 90 % of a CPU, and the window explains the rate: its size is
//!          known (asked for, or the profile's), and the stream is within 80 % to 110 % of window / round trip, which is below 90 % of the
//!          ceiling; or the peer's window held the sender back in half of the timed window, by TCP_INFO.
//!          `sndbuf-limited`: the same of the send buffer, in half of the timed window. The window that would fill the path
//!          is ceiling × round trip.
//! Source:  RFC 7323 §1.1; tcp(7), tcpi_rwnd_limited and tcpi_sndbuf_limited. Thresholds: what held a stream for most of its
//!          time decides its rate; 80 % leaves room for acknowledgements that come late, 110 % for a round trip that varies.
//! Checked: `a_window_limits`, `a_full_path_is_not_limited`, `a_held_sender_is_enough`, `a_busy_receiver_is_not_a_window`,
//!          `a_send_buffer_limits`.

use sonde_measure::{Quantity, ResultRow};

use super::{Finding, Severity};
use crate::format::{bytes, count, rate, share, time};
use crate::index::{Index, Line, p50};

/// Part of its ceiling from which a stream fills its path.
const FULL: f64 = 0.9;
/// Part of the timed window from which what holds a stream decides its rate.
const HELD: f64 = 0.5;
const EXPLAINS: std::ops::RangeInclusive<f64> = 0.8..=1.1;

/// A stream that could be faster, and is not for want of a CPU.
fn slow_stream<'i>(index: &'i Index<'_>, line: &Line) -> Option<&'i ResultRow> {
    let stream = line.path.starts_with("tcp").then(|| index.stream(line))??;
    let full = index
        .ceiling(line)
        .is_some_and(|ceiling| p50(stream) >= FULL * ceiling);
    let busy = !line.polls()
        && index
            .cpu_shares(stream)
            .into_iter()
            .flatten()
            .any(|share| share >= super::cpu::BUSY);
    (!full && !busy).then_some(stream)
}

/// The largest window that was asked for: of the profile, or of the receiver's buffer. The kernel's own tuning has none.
fn asked_window(index: &Index<'_>, row: &ResultRow) -> Option<u64> {
    let profile = index.cell(&row.cell)?.factors.profile.as_deref();
    let of_profile = profile
        .and_then(|profile| profile.strip_prefix("era"))
        .map(|rest| {
            rest.strip_prefix(":window=")
                .and_then(|window| window.parse().ok())
                .unwrap_or(65_535)
        });
    let buffer = index.least(&row.cell, |socket| socket.recv_buffer?.wanted_bytes());
    buffer.into_iter().chain(of_profile).min()
}

/// `window-limited`.
pub(super) fn receiver(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = slow_stream(index, line)?;
    let (bps, trip_ns) = (p50(stream), index.round_trip_ns(line)?);
    let held = index.beside(stream, Quantity::RwndLimitedShare);
    let ceiling = index.ceiling(line);
    let bound = |window: u64| window as f64 * 8e9 / trip_ns;
    let known = asked_window(index, stream).filter(|window| {
        ceiling.is_none_or(|ceiling| bound(*window) < FULL * ceiling)
            && EXPLAINS.contains(&(bps / bound(*window)))
    });
    if known.is_none() && held.is_none_or(|held| held < HELD) {
        return None;
    }
    let held_text = held
        .filter(|held| *held >= HELD)
        .map_or(String::new(), |held| {
            format!(
                " The peer's window held the sender back in {} of the time.",
                share(held)
            )
        });
    let (sentence, arithmetic) = match known {
        Some(window) => (
            format!(
                "The window limits the stream by {} on {}: {} a round trip of {} is {}, and {} was measured{}.{held_text}",
                line.by(),
                line.network,
                bytes(window),
                time(trip_ns),
                rate(bound(window)),
                rate(bps),
                ceiling.map_or(String::new(), |ceiling| format!(
                    ", {} of what the network allows",
                    share(bps / ceiling)
                )),
            ),
            format!(
                "{} B x 8 / {} = {}",
                count(window),
                time(trip_ns),
                rate(bound(window))
            ),
        ),
        None => {
            let implied = bps * trip_ns / 8e9;
            (
                format!(
                    "The receiver's window limits the stream by {} on {} to {}.{held_text}",
                    line.by(),
                    line.network,
                    rate(bps)
                ),
                format!(
                    "{} x {} / 8 = {} B on the way",
                    rate(bps),
                    time(trip_ns),
                    count(implied as u64)
                ),
            )
        }
    };
    let finding = Finding::new("window-limited", Severity::Advice, sentence)
        .on(line)
        .since(arithmetic);
    let era = index
        .cell(&stream.cell)
        .and_then(|cell| cell.factors.profile.as_deref())
        .is_some_and(|profile| profile.starts_with("era"));
    let profile = if era {
        "`--profile modern`; on real hosts "
    } else {
        ""
    };
    let remedy = remedy(ceiling, trip_ns, "receiving", "net.ipv4.tcp_rmem");
    Some(finding.remedy(format!("{profile}{remedy}")))
}

/// `sndbuf-limited`.
pub(super) fn sender(index: &Index<'_>, line: &Line) -> Option<Finding> {
    let stream = slow_stream(index, line)?;
    let held = index.beside(stream, Quantity::SndbufLimitedShare)?;
    if held < HELD {
        return None;
    }
    let trip_ns = index.round_trip_ns(line);
    let granted = index.least(&stream.cell, |socket| {
        Some(socket.send_buffer?.granted_bytes as u64)
    });
    let sentence = format!(
        "The send buffer limits the stream by {} on {} to {}: the sender waited for it in {} of the time.",
        line.by(),
        line.network,
        rate(p50(stream)),
        share(held)
    );
    let mut finding = Finding::new("sndbuf-limited", Severity::Advice, sentence).on(line);
    if let (Some(granted), Some(trip_ns)) = (granted, trip_ns) {
        finding = finding.since(format!(
            "{} B x 8 / {} = {}",
            count(granted),
            time(trip_ns),
            rate(granted as f64 * 8e9 / trip_ns)
        ));
    }
    Some(finding.remedy(remedy(
        index.ceiling(line),
        trip_ns.unwrap_or(0.0),
        "sending",
        "net.ipv4.tcp_wmem",
    )))
}

/// The setting to change, with the value that would fill the path where that is known.
fn remedy(ceiling: Option<f64>, trip_ns: f64, host: &str, sysctl: &str) -> String {
    let needed = ceiling.map(|bps| (bps * trip_ns / 8e9).ceil() as u64);
    match needed.filter(|bytes| *bytes > 0) {
        Some(needed) => format!(
            "give the {host} host room for {} B on the way: `sysctl -w {sysctl}=\"4096 131072 {}\"` (half of a buffer is \
             the kernel's own), and net.ipv4.tcp_window_scaling=1 above 65 535 B",
            count(needed),
            (2 * needed).max(131_072)
        ),
        None => format!(
            "raise the last value of {sysctl} at the {host} host, and let the receiving program read sooner"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, line, net};

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
            "The window limits the stream by tcp on wan-100m-20ms: 65 535 B a round trip of 20.05 ms is 26.15 Mb/s, and \
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
            Some("50.00 Mb/s x 20.05 ms / 8 = 125 312 B on the way")
        );
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
            .setting("src.send_buffer_bytes", "16384")
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
