//! What is said of frames.
//!
//! Units:   bytes; nanoseconds; bits a second.
//! Checked: the tests of `finding::mtu`.

use sonde_measure::Line;

use super::Words;
use crate::format::{bytes, count, rate, share, time};

/// A step where a message needs one frame more.
pub(crate) struct Step<'l> {
    pub line: &'l Line,
    /// The sizes on both sides, and their latencies.
    pub small_bytes: u64,
    pub large_bytes: u64,
    pub low_ns: f64,
    pub high_ns: f64,
}

impl Words for Step<'_> {
    fn sentence(&self) -> String {
        format!(
            "One byte more than a frame of {} carries costs {} over {}, {} more: a message of {} needs one frame more than one of {}.",
            self.line.network,
            time(self.high_ns - self.low_ns),
            self.line.by(),
            share(self.high_ns / self.low_ns - 1.0),
            bytes(self.large_bytes),
            bytes(self.small_bytes)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} ({} B) - {} ({} B) = {}",
            time(self.high_ns),
            count(self.large_bytes),
            time(self.low_ns),
            count(self.small_bytes),
            time(self.high_ns - self.low_ns)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(format!(
            "keep messages that must be quick at or below {} B, headers of the program included",
            count(self.small_bytes)
        ))
    }
}

/// Frames that are small for their line.
pub(crate) struct SmallFrames<'l> {
    pub line: &'l Line,
    pub mtu_bytes: u64,
    pub rate_bps: f64,
    pub ceiling_bps: f64,
    /// Of one CPU, at the busier end.
    pub used: f64,
}

impl Words for SmallFrames<'_> {
    fn sentence(&self) -> String {
        format!(
            "Frames of {} bytes are small for {}: the stream over {} is {} of what the network allows, and one end spends {} of a CPU \
             on it.",
            count(self.mtu_bytes),
            self.line.network,
            self.line.by(),
            share(self.rate_bps / self.ceiling_bps),
            share(self.used)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} / 8 / {} B = {} frames/s",
            rate(self.rate_bps),
            count(self.mtu_bytes),
            count((self.rate_bps / 8.0 / self.mtu_bytes as f64) as u64)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "let all hosts and switches carry frames of 9 000 bytes: `ip link set dev IF mtu 9000`"
                .into(),
        )
    }
}
