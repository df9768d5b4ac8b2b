//! What orchestrator and agents say to each other.
//!
//! Model:   a request is answered by exactly one frame, `serve` by two: `serving` when the port is open, then `served`.
//!          Any of them may be `failed` instead. `stop` has no answer of its own: it ends the wait for a peer.
//! Units:   names end in their unit.
//! Checked: `terms_are_checked`, `unknown_members_are_refused`; `tests/conversation.rs`.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sonde_channel::{Options, Path, Settings, UDP_MESSAGE_BYTES_MAX, Wait};
use sonde_stats::Summary;

use crate::meter::{LEAD_IN_NS, WINDOW_NS_MIN, Window};
use crate::{Error, Result};

/// The most samples of one launch; all of them are kept in memory.
pub const SAMPLES_MAX: u64 = 1_000_000;
const SIZE_BYTES_MAX: u64 = 1 << 30;
const BUDGET_NS_MAX: u64 = 3_600 * 1_000_000_000;

/// The kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// Cold: a fresh socket for every sample.
    Startup,
    /// Warm: a ping-pong.
    Latency,
    /// A stream one way, rated by its receiver.
    Throughput,
}

/// What both sides agree on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The kind of measurement.
    pub probe: Probe,
    /// Over what.
    pub path: Path,
    /// How both sides wait.
    pub wait: Wait,
    /// User bytes in a message.
    pub size_bytes: u64,
    /// Start-ups or round trips, at most; not used for throughput.
    pub samples: u64,
    /// Round trips before the first sample of latency, discarded.
    pub warmup: u64,
    /// The time after which no further sample is begun; for throughput, the time that is rated.
    pub budget_ns: u64,
    /// The longest wait without progress.
    pub patience_ns: u64,
    /// The send buffer; null leaves it to the kernel.
    pub send_buffer_bytes: Option<usize>,
    /// The receive buffer; null leaves it to the kernel.
    pub recv_buffer_bytes: Option<usize>,
    /// TCP's congestion control; null is the host's.
    pub congestion: Option<String>,
    /// Check every byte, not only each message's header. It takes time within what is timed of a stream.
    pub verify: bool,
    /// How many raw samples the measuring side returns, the first ones. The summary is of all.
    pub samples_returned_max: u64,
}

impl Terms {
    /// The usual terms of a probe: latency of 1 byte, 10,000 samples after 100 discarded, within 10 s; one start-up;
    /// throughput of 1 MiB (UDP: 1,472 bytes, a full Ethernet frame) for 2 s.
    pub fn new(probe: Probe, path: Path, wait: Wait) -> Self {
        let second = 1_000_000_000;
        let (size_bytes, samples, budget_ns) = match (probe, path) {
            (Probe::Startup, _) => (1, 1, 10 * second),
            (Probe::Latency, _) => (1, 10_000, 10 * second),
            (Probe::Throughput, Path::Tcp) => (1 << 20, 1, 2 * second),
            (Probe::Throughput, Path::Udp) => (1_472, 1, 2 * second),
        };
        Self {
            probe,
            path,
            wait,
            size_bytes,
            samples,
            warmup: if probe == Probe::Latency { 100 } else { 0 },
            budget_ns,
            patience_ns: 10 * second,
            send_buffer_bytes: None,
            recv_buffer_bytes: None,
            congestion: None,
            verify: false,
            samples_returned_max: 100_000,
        }
    }

    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// A size, a count or a time out of range, with the range.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String, remedy| Err(Error::Terms { what, remedy });
        let (size, path) = (self.size_bytes, self.path);
        if size == 0 || size > SIZE_BYTES_MAX {
            return refuse(
                format!("messages of {size} bytes cannot be measured"),
                "ask for 1 B to 1 GiB",
            );
        }
        if path == Path::Udp && size > UDP_MESSAGE_BYTES_MAX as u64 {
            return refuse(
                format!("a message of {size} bytes fits in no datagram"),
                "ask for at most 65,507 bytes",
            );
        }
        if path == Path::Udp && self.probe == Probe::Throughput && size < 8 {
            return refuse(
                format!("datagrams of {size} bytes have no room for a number"),
                "ask for at least 8 bytes",
            );
        }
        if path == Path::Udp && self.congestion.is_some() {
            return refuse(
                "UDP has no congestion control".into(),
                "leave the congestion control out",
            );
        }
        if self.samples == 0 || self.samples > SAMPLES_MAX || self.warmup > SAMPLES_MAX {
            return refuse(
                format!(
                    "{} samples after {} discarded cannot be kept",
                    self.samples, self.warmup
                ),
                "ask for 1 to 1,000,000, and use several launches for more",
            );
        }
        if self.budget_ns == 0 || self.budget_ns > BUDGET_NS_MAX {
            return refuse(
                format!("a budget of {} ns is out of range", self.budget_ns),
                "ask for up to an hour",
            );
        }
        if self.probe == Probe::Throughput && self.budget_ns < WINDOW_NS_MIN {
            return refuse(
                format!("a stream cannot be rated over {} ns", self.budget_ns),
                "ask for at least 1 s",
            );
        }
        if self.patience_ns < 1_000_000 || self.patience_ns > BUDGET_NS_MAX {
            return refuse(
                format!("a patience of {} ns is out of range", self.patience_ns),
                "ask for 1 ms to an hour",
            );
        }
        Ok(())
    }

    /// The longest wait without progress.
    pub fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience_ns)
    }

    /// The longest that the measuring side takes, with every wait within it at its worst.
    pub fn duration_max(&self) -> Duration {
        Duration::from_nanos(self.budget_ns + self.budget_ns / 4 + LEAD_IN_NS) + 8 * self.patience()
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            wait: self.wait,
            patience: self.patience(),
            send_buffer_bytes: self.send_buffer_bytes,
            recv_buffer_bytes: self.recv_buffer_bytes,
            congestion: self.congestion.clone(),
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.size_bytes as usize
    }
}

/// Serve one conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// What is agreed.
    pub terms: Terms,
    /// The address to open the data port on.
    pub bind: IpAddr,
    /// What the peer must know.
    pub token: String,
    /// An interface whose neighbours are forgotten before the port opens.
    pub flush_neighbour: Option<String>,
}

/// Measure against a serving peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// What is agreed.
    pub terms: Terms,
    /// The peer's data port.
    pub peer: SocketAddr,
    /// What the peer wants to know.
    pub token: String,
    /// An interface whose neighbours are forgotten before every start-up.
    pub flush_neighbour: Option<String>,
}

/// From the orchestrator to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Serve one conversation.
    Serve(Serve),
    /// Measure.
    Measure(Measure),
    /// Give up waiting for a peer.
    Stop {},
}

/// From an agent to the orchestrator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// There is no result.
    Failed {
        /// What went wrong, with values.
        what: String,
        /// What to do.
        remedy: String,
    },
}

/// What the serving side saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// User bytes received.
    pub bytes: u64,
    /// Messages received.
    pub messages: u64,
    /// CPU time of the serving thread, for the whole conversation.
    pub cpu_ns: u64,
    /// Peers turned away.
    pub refused: u64,
    /// Settings read back; null where there was no lasting socket.
    pub settings: Option<Settings>,
    /// Throughput: what was rated.
    pub window: Option<Window>,
    /// Throughput: bytes in each 100 ms since the first arrival.
    pub bytes_per_100ms: Vec<u64>,
    /// Throughput by UDP: messages sent and never received.
    pub lost: Option<u64>,
    /// Throughput by UDP: messages that came after a later one.
    pub reordered: Option<u64>,
    /// Throughput by UDP: messages that came again.
    pub duplicated: Option<u64>,
}

impl Served {
    /// Bytes in each second since the first arrival.
    pub fn bytes_per_second(&self) -> Vec<u64> {
        self.bytes_per_100ms
            .chunks(10)
            .map(|second| second.iter().sum())
            .collect()
    }
}

/// What the measuring side saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Settings read back, of the last socket.
    pub settings: Settings,
    /// The measurement.
    pub figures: Figures,
}

/// A measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figures {
    /// Cold.
    Startup(Startup),
    /// Warm.
    Latency(Latency),
    /// The sending side of a stream.
    Throughput(Sent),
}

/// Start-ups: one entry of each list for every fresh socket, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Startup {
    /// TCP only: the handshake.
    pub connect_ns: Vec<u64>,
    /// The round trip of the first message.
    pub first_ns: Vec<u64>,
    /// From before the connection to the first answer.
    pub cold_total_ns: Vec<u64>,
    /// The round trip of the second message.
    pub second_ns: Vec<u64>,
    /// UDP only: start-ups whose message or answer was lost; they are in no list.
    pub lost: u64,
}

/// Why no further sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// All were taken.
    Samples,
    /// The budget was used up.
    Budget,
}

/// A ping-pong: a closed loop, one message under way at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Round trips, all samples.
    pub rtt_ns: Summary,
    /// Halves of the round trips, rounded down, all samples.
    pub latency_ns: Summary,
    /// The first round trips, in order.
    pub rtt_samples_ns: Vec<u64>,
    /// Round trips before the first sample, discarded.
    pub warmup_discarded: u64,
    /// What ended it.
    pub ended_by: EndedBy,
    /// UDP only: pings sent again whose answer never came. Their round trips are no samples.
    pub lost: u64,
    /// UDP only: answers that came after their ping had been sent again.
    pub late: u64,
    /// CPU time of the measuring thread while sampling.
    pub cpu_ns: u64,
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
    /// TCP_INFO: bytes sent again.
    pub retransmitted_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_checked() {
        let usual = |probe, path| Terms::new(probe, path, Wait::Block);
        for probe in [Probe::Startup, Probe::Latency, Probe::Throughput] {
            for path in [Path::Tcp, Path::Udp] {
                usual(probe, path).check().unwrap();
            }
        }
        let latency = || usual(Probe::Latency, Path::Udp);
        let blast = || usual(Probe::Throughput, Path::Udp);
        for (bad, said) in [
            (
                Terms {
                    size_bytes: 0,
                    ..latency()
                },
                "messages of 0 bytes",
            ),
            (
                Terms {
                    size_bytes: 65_508,
                    ..latency()
                },
                "fits in no datagram",
            ),
            (
                Terms {
                    size_bytes: 7,
                    ..blast()
                },
                "no room for a number",
            ),
            (
                Terms {
                    samples: 0,
                    ..latency()
                },
                "0 samples",
            ),
            (
                Terms {
                    samples: SAMPLES_MAX + 1,
                    ..latency()
                },
                "1000001 samples",
            ),
            (
                Terms {
                    budget_ns: 999_999_999,
                    ..blast()
                },
                "cannot be rated over 999999999 ns",
            ),
            (
                Terms {
                    patience_ns: 0,
                    ..latency()
                },
                "patience of 0 ns",
            ),
            (
                Terms {
                    congestion: Some("reno".into()),
                    ..latency()
                },
                "no congestion control",
            ),
        ] {
            let error = bad.check().unwrap_err();
            assert!(
                error.to_string().contains(said) && !error.remedy().is_empty(),
                "{error}"
            );
        }
    }

    #[test]
    fn unknown_members_are_refused() {
        let request = Request::Serve(Serve {
            terms: Terms::new(Probe::Latency, Path::Tcp, Wait::Block),
            bind: "10.9.0.2".parse().unwrap(),
            token: "t".into(),
            flush_neighbour: None,
        });
        let mut json = serde_json::to_value(&request).unwrap();
        assert_eq!(json["serve"]["terms"]["path"], "tcp");
        assert_eq!(
            serde_json::from_value::<Request>(json.clone()).unwrap(),
            request
        );
        json["serve"]["terms"]["sise_bytes"] = 3.into();
        assert!(serde_json::from_value::<Request>(json).is_err());
    }
}
