//! What is said of threads and hosts that have no CPU left.
//!
//! Units:   parts of one CPU, or of all CPUs of a host; bits a second.
//! Checked: the tests of `finding::cpu`.

use sonde_measure::Line;

use super::Words;
use crate::format::{rate, share, significant};
use crate::index::under;

/// A thread without CPU.
pub(crate) struct Thread<'l> {
    pub line: &'l Line,
    /// Whether it is the sending one.
    pub sends: bool,
    pub used: f64,
    pub ns_per_byte: f64,
    pub rate_bps: f64,
}

impl Words for Thread<'_> {
    fn sentence(&self) -> String {
        format!(
            "The {} thread uses {} of one CPU for the stream over {} on {}: the host, not the network, limits it to {}.",
            if self.sends { "sending" } else { "receiving" },
            share(self.used),
            self.line.by(),
            self.line.network,
            rate(self.rate_bps)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} ns/B x {} MB/s = {} CPU",
            significant(self.ns_per_byte, 3),
            significant(self.rate_bps / 8e6, 4),
            significant(self.used, 3)
        ))
    }

    fn remedy(&self) -> Option<String> {
        let text = match self.line.path.starts_with("udp") {
            true => {
                "use larger datagrams or a larger MTU, spread the traffic over several sockets and CPUs, or place the thread beside \
                     the interface's queue"
            }
            false => {
                "use a larger MTU or the interface's offloads (`ethtool -k`), or spread the traffic over several connections and CPUs"
            }
        };
        Some(text.into())
    }
}

/// A host without CPU.
pub(crate) struct Host<'r> {
    pub network: &'r str,
    pub load: Option<&'r str>,
    /// Measurements in which it had none, of all.
    pub full: usize,
    pub all: usize,
    /// The most that was in use, of all its CPUs.
    pub most: f64,
    /// Whether the same machine emulates the network.
    pub emulates: bool,
}

impl Words for Host<'_> {
    fn sentence(&self) -> String {
        format!(
            "CPU was saturated in {} of {} measurements on {}{}: up to {} of a host's CPUs were in use.",
            self.full,
            self.all,
            self.network,
            under(self.load),
            share(self.most)
        )
    }

    fn remedy(&self) -> Option<String> {
        let text = match self.emulates {
            true => {
                "these figures describe the emulating machine: use fewer hosts, a slower network or more CPUs"
            }
            false => "stop other programs there, or take these figures as those of a loaded host",
        };
        Some(text.into())
    }
}
