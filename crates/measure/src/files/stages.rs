//! The stages of a transfer by FTP, each measured apart, and what they give together.
//!
//! Model:   of a file of n copy buffers each stage takes what it took alone. Stages that one end does in turn are a group, and groups go on
//!          at once: the sender's (source disk, translation, socket), the network, and the receiver's (socket, translation, sink disk). A
//!          modelled source disk that reads ahead is a group of its own; one that does not takes turns with the network, and each turn waits a round trip for its acknowledgement. A transfer
//!          is its opening, the first piece through all stages, and the other n - 1 at the pace of the slowest group:
//!          `opening + sum / n + (n - 1) / n * slowest`. Nothing is fitted.
//! Source:  requirements S44 and H35; the formula is that of a pipeline with n items.
//! Units:   nanoseconds for a whole file.
//! Checked: `stages_take_turns_or_go_on_at_once`, `the_slowest_stage_is_named`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Files, Operation, Service};
use crate::FilesFacts;

/// A part of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The disk of the sender, or its store.
    SourceDisk,
    /// The translation of text, at either end.
    Translation,
    /// The sockets of both ends, on a loopback.
    Socket,
    /// The network, with the buffers of the transfer.
    Network,
    /// The disk of the receiver, or its store.
    SinkDisk,
}

impl Stage {
    /// In the order in which bytes meet them.
    pub const ALL: [Self; 5] = [
        Self::SourceDisk,
        Self::Translation,
        Self::Socket,
        Self::Network,
        Self::SinkDisk,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SourceDisk => "source disk",
            Self::Translation => "translation",
            Self::Socket => "socket",
            Self::Network => "network",
            Self::SinkDisk => "sink disk",
        }
    }
}

/// What the stages of a transfer take, and together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stages {
    /// Reading the file at its source.
    pub source_ns: u64,
    /// Translating it, at the end that takes longer; none of binary files.
    pub translation_ns: Option<u64>,
    /// Sending it over a loopback, beyond an empty one.
    pub socket_ns: u64,
    /// Sending it over the network, beyond an empty one.
    pub network_ns: u64,
    /// Writing it at its sink.
    pub sink_ns: u64,
    /// What the whole transfer should take.
    pub expected_ns: u64,
    /// The stage that takes longest.
    pub slowest: Stage,
}

impl Stages {
    /// Of a file of so many bytes; none of another service, of several clients, or where a stage was not
    /// measured.
    pub fn of(files: &Files, size_bytes: u64, facts: &FilesFacts) -> Option<Self> {
        // Those of several clients go on beside each other.
        if files.service != Service::Ftp || files.clients > 1 {
            return None;
        }
        let socket_ns = facts.own_call_ns?.saturating_sub(facts.own_null_ns?);
        // The same buffers over the network: nothing that the loopback needs is missing there.
        let network_ns = facts.stream_ns?.saturating_sub(facts.null_ns?);
        let (source_ns, sink_ns) = (facts.source_ns?, facts.sink_ns?);
        let at_source = facts.translate_source_ns.unwrap_or(0);
        let at_sink = facts.translate_sink_ns.unwrap_or(0);
        let source_disk = match files.operation {
            Operation::Read {} => files.disk,
            _ => files.ftp.client_disk,
        };
        let pieces = size_bytes.div_ceil(files.ftp.copy_bytes.max(1)).max(1);
        let begun = at_source.saturating_add(socket_ns);
        let acknowledged_ns = facts.trip_ns.unwrap_or(0).saturating_mul(pieces);
        let (disk, sending) = match (source_disk, files.ftp.read_ahead_bytes) {
            (Some(_), 0) => (
                0,
                source_ns
                    .saturating_add(at_source)
                    .saturating_add(network_ns)
                    .saturating_add(acknowledged_ns),
            ),
            (Some(_), _) => (source_ns, begun),
            (None, _) => (0, source_ns.saturating_add(begun)),
        };
        let receiving = socket_ns.saturating_add(at_sink).saturating_add(sink_ns);
        let groups = [disk, sending, network_ns, receiving];
        let slowest_ns = groups.into_iter().fold(0, u64::max);
        let all = [source_ns, at_source, network_ns, at_sink, sink_ns];
        let sum_ns = all.into_iter().fold(0_u64, u64::saturating_add);
        let first_ns = sum_ns.checked_div(pieces)?;
        let others_ns = slowest_ns.saturating_sub(slowest_ns.checked_div(pieces)?);
        let translation_ns = facts.translate_source_ns.max(facts.translate_sink_ns);
        let mut slowest = (Stage::Network, network_ns);
        for stage in [
            (Stage::SourceDisk, source_ns),
            (Stage::SinkDisk, sink_ns),
            (Stage::Translation, translation_ns.unwrap_or(0)),
            (Stage::Socket, socket_ns),
        ] {
            if stage.1 > slowest.1 {
                slowest = stage;
            }
        }
        Some(Self {
            source_ns,
            translation_ns,
            socket_ns,
            network_ns,
            sink_ns,
            expected_ns: facts
                .null_ns?
                .saturating_add(first_ns)
                .saturating_add(others_ns),
            slowest: slowest.0,
        })
    }

    /// What a stage takes.
    pub const fn ns(&self, stage: Stage) -> u64 {
        match stage {
            Stage::SourceDisk => self.source_ns,
            Stage::Translation => match self.translation_ns {
                Some(ns) => ns,
                None => 0,
            },
            Stage::Socket => self.socket_ns,
            Stage::Network => self.network_ns,
            Stage::SinkDisk => self.sink_ns,
        }
    }
}

/// What a window lets through of a file: a window in each round trip, in nanoseconds. None without a window that was set, or a round
/// trip that was measured.
pub fn window_ns(files: &Files, size_bytes: u64, facts: &FilesFacts) -> Option<u64> {
    let all = u128::from(size_bytes).saturating_mul(facts.trip_ns?.into());
    let ns = all.checked_div(files.ftp.window_bytes?.into())?;
    u64::try_from(ns).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KnobValues;

    fn files(pairs: &[(&str, &str)]) -> Files {
        let pairs = pairs.iter();
        let values: KnobValues = pairs
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        Files::parse("ftp".parse().unwrap(), &values).unwrap()
    }

    /// Ten pieces: 40 at the source, 5 of the socket, 60 of the network, 30 at the sink, after 2 for the opening.
    fn facts() -> FilesFacts {
        FilesFacts {
            null_ns: Some(2_000),
            own_null_ns: Some(1_000),
            own_call_ns: Some(6_000),
            stream_ns: Some(62_000),
            source_ns: Some(40_000),
            sink_ns: Some(30_000),
            ..FilesFacts::default()
        }
    }

    #[test]
    fn stages_take_turns_or_go_on_at_once() {
        let of = |pairs: &[(&str, &str)], facts: &FilesFacts| {
            let stages = Stages::of(&files(pairs), 10 * 65_536, facts).unwrap();
            (stages.expected_ns, stages.slowest)
        };
        // Source and network in turn: 100 for ten pieces, and the first one's 3 at the sink.
        let turns = of(&[("disk", "16Mbit")], &facts());
        assert_eq!(turns, (2_000 + 13_000 + 90_000, Stage::Network));
        // The same where the client reads its disk.
        let put = of(&[("op", "write"), ("client-disk", "16Mbit")], &facts());
        assert_eq!(put, turns);
        // At once: the network's 60.
        let ahead = [("disk", "16Mbit"), ("read-ahead", "64KiB")];
        assert_eq!(of(&ahead, &facts()).0, 2_000 + 13_000 + 54_000);
        // A store is read by who sends: 45, less than the network.
        assert_eq!(of(&[], &facts()).0, 2_000 + 13_000 + 54_000);
        // One piece goes through all stages in turn.
        let stages = Stages::of(&files(&ahead), 65_536, &facts()).unwrap();
        assert_eq!(stages.expected_ns, 2_000 + 130_000);
    }

    #[test]
    fn the_slowest_stage_is_named() {
        for (stage, facts) in [
            (Stage::Network, facts()),
            (
                Stage::SinkDisk,
                FilesFacts {
                    sink_ns: Some(61_000),
                    ..facts()
                },
            ),
            (
                Stage::SourceDisk,
                FilesFacts {
                    source_ns: Some(61_000),
                    ..facts()
                },
            ),
            (
                Stage::Translation,
                FilesFacts {
                    translate_sink_ns: Some(61_000),
                    ..facts()
                },
            ),
            (
                Stage::Socket,
                FilesFacts {
                    own_call_ns: Some(62_001),
                    ..facts()
                },
            ),
        ] {
            let stages = Stages::of(&files(&[]), 1 << 20, &facts).unwrap();
            assert_eq!(stages.slowest, stage);
            assert!(stages.ns(stage) >= 60_000, "{stages:?}");
        }
        let nfs = Files::usual("nfs3".parse().unwrap());
        assert_eq!(Stages::of(&nfs, 1 << 20, &facts()), None);
        let unknown = FilesFacts {
            stream_ns: None,
            ..facts()
        };
        assert_eq!(Stages::of(&files(&[]), 1 << 20, &unknown), None);
    }

    #[test]
    fn a_window_goes_once_a_round_trip() {
        let facts = FilesFacts {
            trip_ns: Some(2_400_000),
            ..facts()
        };
        let set = files(&[("window", "64KiB")]);
        assert_eq!(window_ns(&set, 1 << 20, &facts), Some(16 * 2_400_000));
        assert_eq!(window_ns(&files(&[]), 1 << 20, &facts), None);
    }
}
