//! What is said of streams that wait for a window or a buffer.
//!
//! Units:   bits a second, nanoseconds, bytes, parts of one.
//! Checked: the tests of `finding::window`.

use sonde_measure::Line;

use super::Words;
use super::cause::{held, of_program};
use crate::diagnosis::window::Hold;
use crate::format::{bytes, count, rate, share, time};
use crate::limit::on_the_way_bytes;
use crate::lost::{Lost, LostAt};

/// The stream that waits.
pub(crate) struct Stream<'l> {
    pub line: &'l Line,
    pub rate_bps: f64,
    pub rtt_ns: f64,
    pub ceiling_bps: Option<f64>,
    /// Whether its hosts are set as those of old.
    pub era: bool,
}

impl Stream<'_> {
    fn words(&self) -> String {
        format!(
            "the stream over {} on {}",
            self.line.by(),
            self.line.network
        )
    }

    /// What is on the way at the rate that was measured.
    fn on_the_way(&self) -> String {
        format!(
            "{} x {} / 8 = {} B in flight",
            rate(self.rate_bps),
            time(self.rtt_ns),
            count(on_the_way_bytes(self.rate_bps, self.rtt_ns) as u64)
        )
    }

    fn bound(&self, hold: &Hold) -> String {
        hold.bound.map_or_else(
            || self.on_the_way(),
            |(window, limit_bps)| {
                format!(
                    "{} B x 8 / {} = {}",
                    count(window.bytes),
                    time(self.rtt_ns),
                    rate(limit_bps)
                )
            },
        )
    }

    /// What the network allows and this stream has not.
    fn lost(&self, rule: &str) -> Option<Lost> {
        let (path, rate_bps) = (&self.line.path, self.rate_bps);
        let of = |possible_bps| Lost {
            causes: vec![rule.into()],
            ..Lost::of_rate(LostAt::Stream, path, rate_bps, possible_bps)
        };
        self.ceiling_bps.map(of)
    }

    /// The setting to change, with the value that would fill the path where that is known.
    fn remedy(&self, host: &str, sysctl: &str) -> String {
        let needed = self.ceiling_bps;
        let needed = needed.map(|bps| on_the_way_bytes(bps, self.rtt_ns).ceil() as u64);
        match needed.filter(|bytes| *bytes > 0) {
            Some(needed) => format!(
                "give the {host} host room for {} B in flight: `sysctl -w {sysctl}=\"4096 131072 {}\"` (half of a buffer is \
                 the kernel's own), and net.ipv4.tcp_window_scaling=1 above 65 535 B",
                count(needed),
                (2 * needed).max(131_072)
            ),
            None => format!(
                "raise the last value of {sysctl} at the {host} host, and let the receiving program read sooner"
            ),
        }
    }
}

/// The peer's window holds it.
pub(crate) struct Window<'l> {
    pub stream: Stream<'l>,
    pub hold: Hold,
}

impl Words for Window<'_> {
    fn sentence(&self) -> String {
        let stream = &self.stream;
        let held = held(&self.hold, "The peer's window", "the send buffer");
        let Some((window, limit_bps)) = self.hold.bound else {
            return format!(
                "The receiver's window limits {} to {}.{held}",
                stream.words(),
                rate(stream.rate_bps)
            );
        };
        let of = stream.ceiling_bps.map_or(String::new(), |ceiling| {
            format!(
                ", {} of what the network allows",
                share(stream.rate_bps / ceiling)
            )
        });
        format!(
            "The window limits {}: {} a round trip of {} is {}, and {} was measured{of}.{held}",
            stream.words(),
            bytes(window.bytes),
            time(stream.rtt_ns),
            rate(limit_bps),
            rate(stream.rate_bps)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(self.stream.bound(&self.hold))
    }

    fn remedy(&self) -> Option<String> {
        let bound = self.hold.bound;
        if let Some(remedy) = bound.and_then(|(window, _)| of_program(window.origin, None)) {
            return Some(remedy);
        }
        let profile = match self.stream.era {
            true => "`--profile modern`; on real hosts ",
            false => "",
        };
        let remedy = self.stream.remedy("receiving", "net.ipv4.tcp_rmem");
        Some(format!("{profile}{remedy}"))
    }

    fn lost(&self) -> Option<Lost> {
        self.stream.lost("window-limited")
    }
}

/// The send buffer holds it.
pub(crate) struct Buffer<'l> {
    pub stream: Stream<'l>,
    pub hold: Hold,
}

impl Words for Buffer<'_> {
    fn sentence(&self) -> String {
        format!(
            "The send buffer limits {} to {}.{}",
            self.stream.words(),
            rate(self.stream.rate_bps),
            held(&self.hold, "It", "the peer's window")
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(self.stream.bound(&self.hold))
    }

    fn remedy(&self) -> Option<String> {
        Some(self.stream.remedy("sending", "net.ipv4.tcp_wmem"))
    }

    fn lost(&self) -> Option<Lost> {
        self.stream.lost("sndbuf-limited")
    }
}
