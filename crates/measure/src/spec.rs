//! What both ends of a measurement over a channel agree on.
//!
//! Model:   a conversation measures all its sizes in the order given, each by its [`Procedure`], which has the parameters of its own
//!          probe and no other's. Latency and message: a size ends with `samples_max`, earlier when the median is known well enough
//!          after `samples_min`, or when the budget is used up.
//! Units:   names end in their unit.
//! Checked: the tests of `check`; `tests/conversation.rs` of `crates/probe`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files::{Files, FilesPath, Service};
use crate::{Knobs, Method, Pace, Path, Spacing, Wait};

mod check;

pub use check::{check_budget, check_sizes, check_timeout, check_window};

/// The most samples of one size in one launch: more than an hour holds. They are counted in a histogram, whose memory does not
/// grow with them.
pub const SAMPLES_MAX: u64 = 1_000_000_000_000;
/// The most sizes of one conversation.
pub const SIZES_MAX: usize = 256;
/// The most user bytes of a datagram over IPv4.
pub const UDP_MESSAGE_BYTES_MAX: usize = 65_507;
/// The shortest window in which a stream is rated.
pub const WINDOW_NS_MIN: u64 = SECOND_NS;
/// The part of a stream that is not rated: its first second.
pub const LEAD_IN_NS: u64 = SECOND_NS;
/// What a byte may take at worst, 100 kbit/s: only so that waits for whole measurements are bounded.
pub const SLOWEST_NS_PER_BYTE: u64 = 80_000;
/// The usual pause before the message of the step `idle`.
pub const IDLE_NS: u64 = SECOND_NS / 5;
/// Why frames have no start-up.
pub const NO_START: &str =
    "frames have no start-up: nothing is resolved or connected before the first one";
/// Why frames by AF_XDP cannot be cut.
pub const NO_STAMPS: &str = "AF_XDP bypasses the kernel's time stamps";

const SECOND_NS: u64 = 1_000_000_000;

/// The kind of measurement over a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// Cold: a fresh socket, neighbours forgotten.
    Startup,
    /// A ping-pong.
    Latency,
    /// A stream one way, rated by its receiver.
    Stream,
    /// Single messages one way, each with everything in it, up to a short answer.
    Message,
    /// Single messages one way, cut at the kernel's time stamps.
    Anatomy,
    /// Messages there and back at a rate, whatever became of those before.
    Rate,
    /// Files of a server.
    Files,
}

impl Probe {
    /// As it is written: `startup`, `latency`, `stream`, `message`, `anatomy`, `rate`, `files`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Latency => "latency",
            Self::Stream => "stream",
            Self::Message => "message",
            Self::Anatomy => "anatomy",
            Self::Rate => "rate",
            Self::Files => "files",
        }
    }
}

/// A specification that cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Unmeasurable {
    /// What is wrong, with the value.
    pub what: String,
    /// What to ask for instead.
    pub remedy: &'static str,
}

/// How many samples of a size are taken in a closed loop, and when that is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Warm samples before [`precision_per_mille`](Self::precision_per_mille) may end a size, 1 or more.
    pub samples_min: u64,
    /// Warm samples, at most [`SAMPLES_MAX`].
    pub samples_max: u64,
    /// A size ends when the rank interval (95 %) of its median is within this distance of it; null takes all samples.
    pub precision_per_mille: Option<u64>,
    /// Samples after the first and before the first warm one, discarded.
    pub warmup: u64,
    /// The time after which no further sample is begun, up to an hour; a size that has 9 to 24 samples then goes on to 25.
    pub budget_ns: u64,
}

impl Sampling {
    /// The usual one of round trips: 1,000 to 10,000 samples after 100 discarded, within 5 % and 10 s.
    pub const LATENCY: Self = Self {
        samples_min: 1_000,
        samples_max: 10_000,
        precision_per_mille: Some(50),
        warmup: 100,
        budget_ns: 10 * SECOND_NS,
    };
    /// The usual one of single messages: 10 to 1,000 samples after 2 discarded, within 5 % and 1 s.
    pub const MESSAGE: Self = Self {
        samples_min: 10,
        samples_max: 1_000,
        precision_per_mille: Some(50),
        warmup: 2,
        budget_ns: SECOND_NS,
    };

    /// The same with at most so many samples.
    pub fn up_to(self, samples_max: u64) -> Self {
        Self {
            samples_max,
            samples_min: self.samples_min.min(samples_max),
            ..self
        }
    }
}

/// How many samples of a size are taken at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Samples, 1 to [`SAMPLES_MAX`].
    pub samples_max: u64,
    /// Messages before the first sample, discarded.
    pub warmup: u64,
    /// The time after which no further message is begun, up to an hour.
    pub budget_ns: u64,
}

impl Quota {
    /// The usual one of an anatomy: 1,000 samples after 100 discarded, within 1 s.
    pub const ANATOMY: Self = Self {
        samples_max: 1_000,
        warmup: 100,
        budget_ns: SECOND_NS,
    };
    /// The usual one of messages at a rate: what 1 s holds, after 100 discarded.
    pub const RATE: Self = Self {
        samples_max: SAMPLES_MAX,
        ..Self::ANATOMY
    };
}

/// How a start-up is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Startup {
    /// Undivided.
    Whole {},
    /// In steps, each alone.
    Steps {
        /// The pause before the message of the step `idle`.
        idle_ns: u64,
        /// The network sets up circuits at first use, so that there is a step `vc`.
        circuits: bool,
    },
}

impl Startup {
    /// Its messages, there and back.
    pub const fn messages(self) -> u32 {
        match self {
            Self::Whole {} => 1,
            Self::Steps { .. } => 3,
        }
    }

    /// Whether there is a step for circuits.
    pub const fn has_circuits(self) -> bool {
        matches!(self, Self::Steps { circuits: true, .. })
    }
}

/// What is done with each size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each cell, and as a value it is a constant"
)]
pub enum Procedure {
    /// Of [`Probe::Startup`].
    Startup(Startup),
    /// Of [`Probe::Latency`].
    Latency(Sampling),
    /// Of [`Probe::Message`].
    Message(Sampling),
    /// Of [`Probe::Stream`].
    Stream {
        /// The time that is rated, [`WINDOW_NS_MIN`] to an hour.
        window_ns: u64,
    },
    /// Of [`Probe::Anatomy`].
    Anatomy(Quota),
    /// Of [`Probe::Rate`].
    Rate {
        /// How often messages are sent.
        pace: Pace,
        /// How many.
        quota: Quota,
    },
    /// Of [`Probe::Files`].
    Files(Files),
}

impl Procedure {
    /// The usual one of a probe. Streams are rated for 1 s; messages at a rate are 1,000 a second.
    pub const fn usual(probe: Probe) -> Self {
        match probe {
            Probe::Startup => Self::Startup(Startup::Whole {}),
            Probe::Latency => Self::Latency(Sampling::LATENCY),
            Probe::Message => Self::Message(Sampling::MESSAGE),
            Probe::Stream => Self::Stream {
                window_ns: WINDOW_NS_MIN,
            },
            Probe::Anatomy => Self::Anatomy(Quota::ANATOMY),
            Probe::Rate => Self::Rate {
                pace: Pace {
                    rate_per_s: 1_000,
                    law: Spacing::Constant,
                    seed: 1,
                },
                quota: Quota::RATE,
            },
            Probe::Files => Self::Files(Files::usual(FilesPath {
                service: Service::Nfs3,
                over: Path::Tcp,
            })),
        }
    }

    /// Of which probe it is.
    pub const fn probe(&self) -> Probe {
        match self {
            Self::Startup(_) => Probe::Startup,
            Self::Latency(_) => Probe::Latency,
            Self::Message(_) => Probe::Message,
            Self::Stream { .. } => Probe::Stream,
            Self::Anatomy(_) => Probe::Anatomy,
            Self::Rate { .. } => Probe::Rate,
            Self::Files(_) => Probe::Files,
        }
    }

    /// How many samples it takes, where it takes them in a closed loop.
    pub const fn sampling_mut(&mut self) -> Option<&mut Sampling> {
        match self {
            Self::Latency(sampling) | Self::Message(sampling) => Some(sampling),
            _ => None,
        }
    }
}

/// What both ends of a measurement over a channel agree on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Over what.
    pub path: Path,
    /// How bytes are handed over.
    pub method: Method,
    /// How both sides wait.
    pub wait: Wait,
    /// What else is set of the channel.
    pub knobs: Knobs,
    /// User bytes in a message: the sizes to measure, in this order.
    pub sizes_bytes: Vec<u64>,
    /// The longest wait without progress, 1 ms to an hour.
    pub timeout_ns: u64,
    /// Check every byte, not only each message's header. It takes time within what is timed of a stream.
    pub verify: bool,
    /// What is done with each size.
    pub procedure: Procedure,
}

impl Spec {
    /// The usual one of a probe; see [`Procedure::usual`]. Startup, latency and anatomy: 1 byte. Stream, message and files: 1 MiB,
    /// of datagrams 1,472 bytes, a full Ethernet frame. Rate: 64 bytes.
    pub fn new(probe: Probe, path: Path, wait: Wait) -> Self {
        let size_bytes = match probe {
            Probe::Startup | Probe::Latency | Probe::Anatomy => 1,
            Probe::Rate => 64,
            Probe::Stream | Probe::Message if path.is_lossless() => 1 << 20,
            Probe::Files => 1 << 20,
            Probe::Stream | Probe::Message => 1_472,
        };
        Self {
            path,
            method: Method::Plain,
            wait,
            knobs: Knobs::default(),
            sizes_bytes: vec![size_bytes],
            timeout_ns: 10 * SECOND_NS,
            verify: false,
            procedure: Procedure::usual(probe),
        }
    }

    /// The kind of measurement.
    pub const fn probe(&self) -> Probe {
        self.procedure.probe()
    }

    /// The same for one size only.
    pub fn for_size(&self, size_bytes: u64) -> Self {
        Self {
            sizes_bytes: vec![size_bytes],
            ..self.clone()
        }
    }

    /// The longest wait without progress.
    pub const fn timeout(&self) -> Duration {
        Duration::from_nanos(self.timeout_ns)
    }

    /// The size of the answer to a message.
    pub const fn answer_bytes(&self, size: usize) -> usize {
        match self.procedure {
            Procedure::Message(_) => 1,
            _ => size,
        }
    }

    /// The longest that the measuring side takes, with every wait within it at its worst.
    pub fn duration_max(&self) -> Duration {
        let longest_ns = match self.procedure {
            Procedure::Startup(Startup::Whole {}) => self.timeout_ns,
            Procedure::Startup(Startup::Steps { idle_ns, .. }) => {
                idle_ns.saturating_add(self.timeout_ns)
            }
            Procedure::Latency(sampling) | Procedure::Message(sampling) => sampling.budget_ns,
            Procedure::Stream { window_ns } => window_ns,
            Procedure::Anatomy(quota)
            | Procedure::Rate { quota, .. }
            | Procedure::Files(Files { quota, .. }) => quota.budget_ns,
        };
        let clients = match self.procedure {
            Procedure::Files(files) => u64::from(files.clients),
            _ => 1,
        };
        let sizes = self.sizes_bytes.iter();
        let sizes: Vec<u64> = sizes.map(|size| size.saturating_mul(clients)).collect();
        duration_max(longest_ns, self.timeout_ns, &sizes)
    }
}

/// The longest that a measurement of these sizes takes, each of which samples for `longest_ns`, with every wait at its worst.
pub fn duration_max(longest_ns: u64, timeout_ns: u64, sizes_bytes: &[u64]) -> Duration {
    let each_ns = longest_ns
        .saturating_add(longest_ns / 4)
        .saturating_add(LEAD_IN_NS)
        .saturating_add(timeout_ns);
    let sizes = sizes_bytes.iter();
    let bytes = sizes.fold(0_u64, |sum, size| sum.saturating_add(*size));
    let moved_ns = bytes.saturating_mul(6).saturating_mul(SLOWEST_NS_PER_BYTE);
    let all_ns = each_ns.saturating_mul(sizes_bytes.len() as u64);
    let waits_ns = timeout_ns.saturating_mul(8);
    Duration::from_nanos(all_ns.saturating_add(moved_ns).saturating_add(waits_ns))
}
