//! What orchestrator and agents say to each other.
//!
//! Model:   a request is answered by exactly one frame, `serve` by two: `serving` when the port is open, then `served`.
//!          Any of them may be `failed` instead. `stop` has no answer of its own: it ends the wait for a peer. `load` is
//!          answered by `serving`; then each `steer` by `loading`, and the end of it by `loaded`.
//!          `join` is answered by `serving` too, then each `go` by `went`, and a `stop` by `left`. `run` is answered by
//!          `ran` when the program has ended; a `stop` ends it.
//! Units:   names end in their unit.
//! Checked: `unknown_members_are_refused`; `tests/conversation.rs`.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use sonde_channel::Options;
use sonde_measure::{Away, Evidence, HostFacts, Interference, Measurement, Moments, Spec};

use crate::host::{Change, Settings};
use crate::interfaces::Interfaces;
use crate::load::{Load, LoadCounts, Steer};
use crate::meter::{Slots, Window};
use crate::pattern::{Go, Join, Went};
use crate::program::{Program, Ran};

/// Serve one conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// What is agreed.
    pub spec: Spec,
    /// The address to open the data port on.
    pub bind: IpAddr,
    /// What the peer must know.
    pub token: String,
    /// The address that the peer sends from; null where only its ports are known.
    #[serde(default)]
    pub peer: Option<IpAddr>,
    /// An interface whose neighbours are forgotten before the port opens.
    pub flush_neighbour: Option<String>,
}

/// Measure against a serving peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// What is agreed.
    pub spec: Spec,
    /// The peer's data port.
    pub peer: SocketAddr,
    /// What the peer wants to know.
    pub token: String,
    /// An interface whose neighbours are forgotten before a start-up.
    pub flush_neighbour: Option<String>,
    /// The address to send from; null leaves it to the routes.
    #[serde(default)]
    pub source: Option<IpAddr>,
    /// When to begin, by the clock of this host (CLOCK_MONOTONIC, nanoseconds), with others that begin then; null as soon as it is
    /// ready.
    #[serde(default)]
    pub begin_ns: Option<u64>,
    /// The peer has this host's clock: tell when samples were taken.
    #[serde(default)]
    pub moments: bool,
}

/// What the channels of a specification are asked to be.
pub(crate) fn options(spec: &Spec) -> Options {
    Options {
        wait: spec.wait,
        timeout: spec.timeout(),
        method: spec.method,
        knobs: spec.knobs.clone(),
        message_bytes: spec.sizes_bytes.iter().copied().max().unwrap_or(1) as usize,
        source: None,
        source_port: 0,
    }
}

impl Measure {
    /// What its channels are asked to be.
    pub(crate) fn options(&self) -> Options {
        Options {
            source: self.source,
            ..options(&self.spec)
        }
    }
}

/// From the orchestrator to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Serve one conversation.
    Serve(Serve),
    /// Measure.
    Measure(Measure),
    /// Take part in a pattern of flows; rounds follow, and a stop.
    Join(Join),
    /// One round of the pattern that was joined.
    Go(Go),
    /// Give up waiting for a peer, or end a pattern.
    Stop {},
    /// End at once what is served or measured: its answer is a failure.
    Abort {},
    /// Say what this host is.
    Facts {
        /// A peer: the interface in question is the one that leads to it.
        peer: Option<IpAddr>,
    },
    /// Say what time it is.
    Clock {},
    /// Say from which address this host sends to another one.
    Source {
        /// The other one's.
        peer: IpAddr,
    },
    /// Say what interfaces there are, and what they have counted.
    Interfaces {},
    /// Take part in a load: open a sink, and wait for [`Steer`].
    Load(Load),
    /// Steer the load that runs.
    Steer(Steer),
    /// Change settings of the host, or look at them.
    Settings(Settings),
    /// Put back the settings that were changed last.
    PutBack {},
    /// Say how fast the kernel copies.
    Copy {
        /// Bytes of each copy.
        bytes: u32,
    },
    /// Leave all changed settings as they are.
    Keep {},
    /// Run a program to its end.
    Run(Program),
}

/// From an agent to the orchestrator.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The data port is open.
    Serving {
        /// Its number.
        port: u16,
    },
    /// The conversation is over, as the serving side saw it.
    Served(Served),
    /// The conversation is over, as the measuring side saw it.
    Measured(Measured),
    /// A round of a pattern is over.
    Went(Went),
    /// The pattern is over.
    Left {
        /// Peers turned away.
        refused: u64,
    },
    /// What this host is.
    Facts {
        /// By its own account.
        facts: Box<HostFacts>,
        /// What an agent that was killed had changed, and this one put back: a sentence each.
        restored: Vec<String>,
    },
    /// What time it is here.
    Clock {
        /// On CLOCK_MONOTONIC.
        monotonic_ns: u64,
    },
    /// From where this host sends.
    Source {
        /// Its own address; none where no route leads to the other host.
        address: Option<IpAddr>,
    },
    /// The interfaces, and what they have counted.
    Interfaces(Interfaces),
    /// How far the load is; it goes on.
    Loading(LoadCounts),
    /// What the load did; it is over.
    Loaded(LoadCounts),
    /// How fast the kernel copies.
    Copy {
        /// Bits a second from one buffer to another, through a pair of sockets.
        bps: u64,
    },
    /// Settings before and after; of what was put back or kept, none.
    Settings {
        /// One for each.
        changes: Vec<Change>,
    },
    /// The program has ended.
    Ran(Ran),
    /// There is no result.
    Failed {
        /// What went wrong, with values.
        what: String,
        /// What to do.
        remedy: String,
    },
}

impl Answer {
    /// What it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Serving { .. } => "a data port",
            Self::Served(_) => "a report",
            Self::Measured(_) => "a measurement",
            Self::Went(_) => "a round of a pattern",
            Self::Left { .. } => "the end of a pattern",
            Self::Facts { .. } => "its description",
            Self::Clock { .. } => "its clock",
            Self::Source { .. } => "its address",
            Self::Interfaces(_) => "its interfaces",
            Self::Loading(_) | Self::Loaded(_) => "counts of a load",
            Self::Settings { .. } => "its settings",
            Self::Copy { .. } => "its copies",
            Self::Ran(_) => "the end of a program",
            Self::Failed { .. } => "a failure",
        }
    }
}

/// What the serving side saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// One entry for each size.
    pub sizes: Vec<SizeServed>,
    /// Peers turned away.
    pub refused: u64,
    /// What was seen beside the samples: of its own side, and of the sizes.
    pub evidence: Evidence,
    /// What else its host did.
    pub interference: Interference,
}

/// What the serving side saw of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeServed {
    /// User bytes received.
    pub bytes: u64,
    /// Messages received.
    pub messages: u64,
    /// Stream: what was rated.
    pub window: Option<Window>,
    /// Stream: bytes in each part of its time.
    pub slots: Slots,
    /// Stream: the rate of each slice of its window, bits a second, when it was, and when the receiving thread waited for a CPU; none where
    /// that was not seen.
    #[serde(default)]
    pub slices: Option<Moments>,
    /// Stream by UDP: messages sent and never received.
    pub lost: Option<u64>,
    /// Stream by UDP: messages that came after a later one.
    pub reordered: Option<u64>,
    /// Stream by UDP: messages that came again.
    pub duplicated: Option<u64>,
    /// Latency, message: when the answering thread waited for a CPU, by this host's CLOCK_MONOTONIC; none where that was not seen.
    #[serde(default)]
    pub away: Option<Vec<Away>>,
}

/// What the measuring side saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// One entry for each size, in the order of the specification.
    pub sizes: Vec<SizeMeasured>,
    /// What was seen beside the samples: of its own side, and of the sizes.
    pub evidence: Evidence,
    /// What else its host did.
    pub interference: Interference,
}

/// What the measuring side saw of one size.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SizeMeasured {
    /// User bytes in a message.
    pub size_bytes: u64,
    /// What was measured; of a stream nothing, since its receiver rates it.
    pub measurements: Vec<Measurement>,
    /// Latency, message: round trips, all of them.
    pub round_trips: u64,
    /// The sending side of a stream.
    pub sent: Option<Sent>,
    /// When its samples were taken, and when the measuring thread waited for a CPU; none where that was not asked for, or not seen.
    #[serde(default)]
    pub moments: Option<Moments>,
}

/// The sending side of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// User bytes sent, in all.
    pub bytes: u64,
    /// Whole messages sent.
    pub messages: u64,
    /// The timed part.
    pub window: SenderWindow,
    /// When the sending thread waited for a CPU; none where that was not asked for, or not seen.
    #[serde(default)]
    pub away: Option<Vec<Away>>,
}

/// The timed part of a stream, by the sender's clock: differences between its begin and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderWindow {
    /// Its length.
    pub window_ns: u64,
    /// Bytes handed to the kernel in it.
    pub bytes: u64,
    /// CPU time of the sending thread.
    pub cpu_ns: u64,
    /// TCP_INFO: time with something to send.
    pub busy_us: Option<u64>,
    /// TCP_INFO: of that, held by the peer's window.
    pub rwnd_limited_us: Option<u64>,
    /// TCP_INFO: of that, held by the send buffer.
    pub sndbuf_limited_us: Option<u64>,
    /// TCP_INFO: segments sent again.
    pub retransmits: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::{Path, Probe, Wait};

    #[test]
    fn unknown_members_are_refused() {
        let request = Request::Serve(Serve {
            spec: Spec::new(Probe::Latency, Path::Tcp, Wait::Block),
            bind: "10.9.0.2".parse().unwrap(),
            token: "t".into(),
            peer: None,
            flush_neighbour: None,
        });
        let mut json = serde_json::to_value(&request).unwrap();
        assert_eq!(json["serve"]["spec"]["path"], "tcp");
        assert_eq!(
            serde_json::from_value::<Request>(json.clone()).unwrap(),
            request
        );
        json["serve"]["spec"]["sises_bytes"] = 3.into();
        assert!(serde_json::from_value::<Request>(json).is_err());
    }
}
