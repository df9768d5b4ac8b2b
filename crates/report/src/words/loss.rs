//! What is said of what was lost, overtaken or sent again.
//!
//! Units:   parts of one; segments a second; bits a second.
//! Checked: the tests of `finding::loss`.

use sonde_measure::Line;

use super::Words;
use crate::format::{count, counted, rate, share};
use crate::lost::{Lost, LostAt, LostPart};

/// Where datagrams are lost that the network does not lose.
const RECEIVER: &str = "at the receiver's socket";

/// Datagrams were lost.
pub(crate) struct Datagrams<'l> {
    pub line: &'l Line,
    pub lost: f64,
    pub received_bps: f64,
    /// Whether the network loses none, so that the receiver's socket did.
    pub overrun: bool,
}

impl Words for Datagrams<'_> {
    fn sentence(&self) -> String {
        let place = match self.overrun {
            true => {
                "the network loses none, so they were lost at the receiver, whose socket was full"
            }
            false => "in the network or at the receiver's socket",
        };
        format!(
            "{} of the datagrams over {} on {} were lost: {place}.",
            share(self.lost),
            self.line.by(),
            self.line.network
        )
    }

    fn arithmetic(&self) -> Option<String> {
        (self.lost < 1.0).then(|| {
            format!(
                "{} sent, {} received",
                rate(self.received_bps / (1.0 - self.lost)),
                rate(self.received_bps)
            )
        })
    }

    fn remedy(&self) -> Option<String> {
        let text = match self.overrun {
            true => {
                "raise net.core.rmem_max and the receiver's SO_RCVBUF, let it read on a CPU of its own, or send at a pace"
            }
            false => {
                "compare `nstat -az UdpRcvbufErrors` at the receiver with `ethtool -S` along the path: the first is cured by a larger \
                      net.core.rmem_max and SO_RCVBUF, the second by sending at a pace"
            }
        };
        Some(text.into())
    }

    fn lost(&self) -> Option<Lost> {
        let sent_bps = self.received_bps / (1.0 - self.lost);
        (self.lost < 1.0).then(|| {
            let mut lost = Lost::of_rate(
                LostAt::Datagrams,
                &self.line.path,
                self.received_bps,
                sent_bps,
            );
            lost.parts.extend(self.overrun.then(|| LostPart {
                name: RECEIVER.into(),
                value: lost.value,
            }));
            lost
        })
    }
}

/// Datagrams came late or twice.
pub(crate) struct Reordered<'l> {
    pub line: &'l Line,
    pub late: f64,
    pub twice: f64,
}

impl Words for Reordered<'_> {
    fn sentence(&self) -> String {
        format!(
            "Of the datagrams over {} on {}, {} arrived out of order and {} arrived twice.",
            self.line.by(),
            self.line.network,
            share(self.late),
            share(self.twice)
        )
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "several paths or queues carry one flow: let the switches and the interface (`ethtool -n IF rx-flow-hash udp4`) \
             choose by flow, not by packet"
                .into(),
        )
    }
}

/// Segments were sent again.
pub(crate) struct Retransmits<'l> {
    pub line: &'l Line,
    /// A second, in the median launch and in the worst.
    pub usual: f64,
    pub most: f64,
    /// Segments a second.
    pub segments: f64,
    /// Whether the network loses none.
    pub lossless: bool,
    /// Whether cables are between the hosts.
    pub cable: bool,
}

impl Words for Retransmits<'_> {
    fn sentence(&self) -> String {
        let (by, network) = (self.line.by(), &self.line.network);
        match self.lossless {
            true => format!(
                "A stream over {by} on {network} retransmitted up to {}, though the network loses none: they were delayed, or lost \
                 inside the hosts.",
                counted(self.most as u64, "segment")
            ),
            false => format!(
                "A stream over {by} on {network} retransmits {} per second, {} of all.",
                counted(self.usual as u64, "segment"),
                share(self.usual / self.segments)
            ),
        }
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} retransmitted of about {} per second; at most {} in a repetition",
            count(self.usual as u64),
            count(self.segments as u64),
            count(self.most as u64)
        ))
    }

    fn remedy(&self) -> Option<String> {
        let text = match (self.lossless, self.cable) {
            (true, _) => {
                "do not trust these streams without looking: `nstat -az` names the cause (TcpExt), and the verdict of the emulation \
                          the delay"
            }
            (false, true) => {
                "find where frames are lost: `ethtool -S` at both ends and the switch; a queue that overflows, a bad cable, or a \
                              duplex mismatch"
            }
            (false, false) => {
                "no cable is between these hosts: `nstat -az` (TcpExt) distinguishes lost from late segments, `tc -s qdisc` shows the \
                 queues of this machine"
            }
        };
        Some(text.into())
    }
}
