//! What is said of where datagrams were lost.
//!
//! Units:   datagrams.
//! Checked: the tests of `finding::place`.

use sonde_measure::Line;

use super::Words;
use crate::format::{count, share};
use crate::lost::{self, LostAt, LostPart, LostUnit};

/// A place with less of the loss is not named.
const PART: f64 = 0.01;

/// Where datagrams are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Socket,
    Interface,
    Queue,
    Broken,
    /// No counter of either host has them.
    OddPair,
}

impl Place {
    fn words(self) -> &'static str {
        match self {
            Self::Socket => "at the receiver's socket (UdpRcvbufErrors)",
            Self::Interface => "at the receiver's interface (rx_missed, rx_dropped)",
            Self::Queue => "at the sender's queue (queueing discipline, tx_dropped)",
            Self::Broken => "corrupted in transit (rx_errors)",
            Self::OddPair => "in transit: no counter of either host has them",
        }
    }

    /// Without the counter.
    fn name(self) -> &'static str {
        match self {
            Self::Socket => "at the receiver's socket",
            Self::Interface => "at the receiver's interface",
            Self::Queue => "at the sender's queue",
            Self::Broken => "corrupted in transit",
            Self::OddPair => "in transit",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Socket => {
                "raise net.core.rmem_max and the receiver's SO_RCVBUF (`--with rcvbuf=4MiB`), let it read on a CPU of its own, or send \
                 at a pace"
            }
            Self::Interface => {
                "lengthen its ring (`ethtool -G IF rx N`) and net.core.netdev_max_backlog, and spread its interrupts over CPUs"
            }
            Self::Queue => {
                "lengthen the sender's queue (`ip link set IF txqueuelen N`) or send at a pace"
            }
            Self::Broken => {
                "look at cable, transceiver and duplex: `ethtool -S IF` at the receiver names the error"
            }
            Self::OddPair => {
                "look at the ports of the switches between them (their output queues overflow where links of different rates meet), or send \
                 at a pace"
            }
        }
    }
}

/// Datagrams that were lost, by place.
pub(crate) struct Lost<'l> {
    pub line: &'l Line,
    pub sent: u64,
    pub lost: u64,
    /// What the hosts' counters have, in the order in which the loss is given to them.
    pub counted: [(Place, u64); 4],
}

impl Lost<'_> {
    /// All places, the one with most first.
    fn sorted(&self) -> Vec<(Place, u64)> {
        let counted: u64 = self.counted.iter().map(|(_, count)| count).sum();
        let mut all = self.counted.to_vec();
        all.push((Place::OddPair, self.lost.saturating_sub(counted)));
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }
}

impl Words for Lost<'_> {
    fn sentence(&self) -> String {
        let part = |count: u64| count as f64 / self.lost as f64;
        let named = self.sorted().into_iter();
        let named = named.filter(|(_, count)| part(*count) >= PART);
        let named: Vec<String> = named
            .map(|(place, count)| format!("{} {}", share(part(count)), place.words()))
            .collect();
        format!(
            "Of {} datagrams over {} on {} {} were lost: {}.",
            count(self.sent),
            self.line.by(),
            self.line.network,
            count(self.lost),
            named.join("; ")
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let of = |wanted: Place| {
            let mut counted = self.counted.iter();
            let found = counted.find(|(place, _)| *place == wanted);
            count(found.map_or(0, |(_, count)| *count))
        };
        Some(format!(
            "{} lost; receiver's sockets {}, its interface {}, corrupted {}, sender's queue {}",
            count(self.lost),
            of(Place::Socket),
            of(Place::Interface),
            of(Place::Broken),
            of(Place::Queue)
        ))
    }

    fn remedy(&self) -> Option<String> {
        let (most, _) = *self.sorted().first()?;
        Some(most.remedy().into())
    }

    fn lost(&self) -> Option<lost::Lost> {
        let per_mille = |count: u64| 1e3 * count as f64 / self.sent.max(1) as f64;
        let (most, count) = *self.sorted().first()?;
        let of = [per_mille(self.lost), 1e3];
        Some(lost::Lost {
            parts: vec![LostPart {
                name: most.name().into(),
                value: lost::whole(per_mille(count)),
            }],
            ..lost::Lost::new(LostAt::Datagrams, &self.line.path, LostUnit::PerMille, of)
        })
    }
}
