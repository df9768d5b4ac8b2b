//! What both sides of a conversation agree on.
//!
//! Model:   a conversation measures all its sizes in the order given. A size ends with `samples_max`, earlier when the
//!          median is known well enough after `samples_min`, or when the budget is used up.
//! Units:   names end in their unit.
//! Checked: `terms_are_checked`; `tests/conversation.rs`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sonde_channel::{Options, UDP_MESSAGE_BYTES_MAX, Volley};
use sonde_measure::{Buffers, Knobs, Method, Path, Wait};

use crate::meter::{LEAD_IN_NS, WINDOW_NS_MIN};
use crate::pace::{Pace, RATE_MAX, Spacing};
use crate::{Error, Result};

/// The most samples of one size in one launch: more than an hour holds. They are counted in a histogram, whose memory does not
/// grow with them.
pub const SAMPLES_MAX: u64 = 1_000_000_000_000;
/// The most sizes of one conversation.
pub const SIZES_MAX: usize = 256;
const SIZE_BYTES_MAX: u64 = 1 << 30;
const TIME_NS_MAX: u64 = 3_600 * 1_000_000_000;
/// What a byte may take at worst, 100 kbit/s: only so that waits for whole measurements are bounded.
pub(crate) const SLOWEST_NS_PER_BYTE: u64 = 80_000;

/// The kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
}

impl Probe {
    /// As it is written: `startup`, `latency`, `stream`, `message`, `anatomy`, `rate`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Latency => "latency",
            Self::Stream => "stream",
            Self::Message => "message",
            Self::Anatomy => "anatomy",
            Self::Rate => "rate",
        }
    }
}

/// Why frames have no start-up.
pub const NO_START: &str =
    "frames have no start-up: nothing is resolved or connected before the first one";

/// Why frames by AF_XDP cannot be cut.
pub const NO_STAMPS: &str = "frames by AF_XDP pass by the kernel's time stamps";

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
    /// User bytes in a message: the sizes to measure, in this order.
    pub sizes_bytes: Vec<u64>,
    /// Latency, message: warm round trips of each size before [`precision_per_mille`](Self::precision_per_mille) may end it.
    pub samples_min: u64,
    /// Latency, message: warm round trips of each size, at most.
    pub samples_max: u64,
    /// Latency, message: a size ends when the rank interval (95 %) of its median is within this distance of it; null takes
    /// all samples.
    pub precision_per_mille: Option<u64>,
    /// Latency, message: round trips of each size after the first and before the first sample, discarded.
    pub warmup: u64,
    /// For each size the time after which no further sample is begun; of a stream the time that is rated.
    pub budget_ns: u64,
    /// The longest wait without progress.
    pub timeout_ns: u64,
    /// Start-up in parts: the pause before the message of the step `idle`.
    pub idle_ns: u64,
    /// Start-up: in steps, each alone; otherwise the whole, undivided.
    pub parts: bool,
    /// Start-up in parts: the network sets up circuits at first use, so that there is a step `vc`.
    pub circuits: bool,
    /// How bytes are handed over.
    pub method: Method,
    /// What else is set of the channel.
    pub knobs: Knobs,
    /// Rate: how often messages are sent.
    pub pace: Option<Pace>,
    /// Check every byte, not only each message's header. It takes time within what is timed of a stream.
    pub verify: bool,
}

impl Terms {
    /// The usual terms of a probe. Start-up: 1 byte, whole. Latency: 1 byte, 1,000 to 10,000 samples after 100 discarded,
    /// within 5 % and 10 s. Stream: 1 MiB (UDP: 1,472 bytes, a full Ethernet frame) rated for 1 s. Message: 1 MiB (UDP:
    /// 1,472 bytes), 10 to 1,000 samples after 2 discarded, within 5 % and 1 s. Rate: 64 bytes, 1,000 a second for 1 s.
    pub fn new(probe: Probe, path: Path, wait: Wait) -> Self {
        let second = 1_000_000_000;
        let large = match path {
            Path::Tcp | Path::Unix | Path::Shm => 1 << 20,
            Path::Udp | Path::Packet | Path::Xdp => 1_472,
        };
        let (size_bytes, samples_min, samples_max, warmup, budget_ns) = match probe {
            Probe::Startup => (1, 1, 1, 0, 10 * second),
            Probe::Latency => (1, 1_000, 10_000, 100, 10 * second),
            Probe::Stream => (large, 1, 1, 0, second),
            Probe::Message => (large, 10, 1_000, 2, second),
            Probe::Anatomy => (1, 1, 1_000, 100, second),
            Probe::Rate => (64, 1, SAMPLES_MAX, 100, second),
        };
        let precision = matches!(probe, Probe::Latency | Probe::Message).then_some(50);
        Self {
            probe,
            path,
            wait,
            sizes_bytes: vec![size_bytes],
            samples_min,
            samples_max,
            precision_per_mille: precision,
            warmup,
            budget_ns,
            timeout_ns: 10 * second,
            idle_ns: 200_000_000,
            parts: false,
            circuits: false,
            method: Method::Plain,
            knobs: Knobs::default(),
            pace: (probe == Probe::Rate).then_some(Pace {
                rate_per_s: 1_000,
                law: Spacing::Constant,
                seed: 1,
            }),
            verify: false,
        }
    }

    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// A size, a count or a time out of range, with the range.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String, remedy| Err(Error::Terms { what, remedy });
        if self.sizes_bytes.is_empty() || self.sizes_bytes.len() > SIZES_MAX {
            return refuse(
                format!("{} sizes cannot be measured", self.sizes_bytes.len()),
                "ask for 1 to 256 sizes",
            );
        }
        for &size_bytes in &self.sizes_bytes {
            self.check_size(size_bytes)?;
        }
        self.check_knobs()?;
        if self.path.is_frames() && self.probe == Probe::Startup {
            return refuse(
                NO_START.into(),
                "ask for latency, or for the start-up of tcp or udp",
            );
        }
        let paced = self.path == Path::Udp && self.probe == Probe::Stream;
        if self.knobs.rate_bps.is_some() && !paced {
            return refuse(
                "only a stream of datagrams is sent at a constant rate".into(),
                "leave `rate` out, or measure the throughput by udp",
            );
        }
        if !self.path.methods().contains(&self.method) {
            return refuse(
                format!("{} has no method {}", self.path, self.method),
                "`sonde doctor` lists the methods of each path",
            );
        }
        if self.probe == Probe::Anatomy && self.path == Path::Xdp {
            return refuse(NO_STAMPS.into(), "cut messages of tcp, udp or packet");
        }
        if self.probe == Probe::Anatomy && self.method != Method::Plain {
            return refuse(
                format!(
                    "the kernel's stamps are not to be had with the method {}",
                    self.method
                ),
                "cut messages of the method plain",
            );
        }
        if self.probe == Probe::Rate && !matches!(self.path, Path::Tcp | Path::Udp) {
            return refuse(
                format!("messages at a rate do not go by {}", self.path),
                "ask for tcp or udp",
            );
        }
        self.check_method()?;
        self.check_pace()?;
        self.check_counts()?;
        self.check_times()
    }

    /// Refuses what a method or a knob would not change: nothing runs plainly under another name.
    fn check_method(&self) -> Result<()> {
        let refuse = |what: String, remedy| Err(Error::Terms { what, remedy });
        let (is_stream, is_tcp) = (self.probe == Probe::Stream, self.path == Path::Tcp);
        let name = self.probe.name();
        let fits = match self.method {
            Method::Plain | Method::Segment | Method::Ring => true,
            Method::Uring => matches!(self.probe, Probe::Stream | Probe::Latency | Probe::Message),
            _ => is_stream,
        };
        if !fits {
            return refuse(
                format!("{} would change nothing of a {name} probe", self.method),
                "measure it by the method plain; the others are for streams, and uring for round trips too",
            );
        }
        let single = |&size: &u64| Volley::segments(size as usize) < 2;
        if self.method == Method::Gso && self.sizes_bytes.iter().any(single) {
            return refuse(
                "gso joins at least two datagrams in 65,507 bytes".into(),
                "ask for at most 32,753 bytes, or for the method plain",
            );
        }
        let knobs = &self.knobs;
        if !knobs.connected && (is_tcp || self.method != Method::Plain) {
            return refuse(
                format!("{} by {} goes by connected sockets", self.method, self.path),
                "leave `connected=no` out, which is for UDP by the method plain",
            );
        }
        if knobs.streams > 1 && !(is_stream && is_tcp) {
            return refuse(
                format!(
                    "{} streams at once are no {name} by {}",
                    knobs.streams, self.path
                ),
                "leave `streams` out, which is for a stream by TCP",
            );
        }
        if !is_tcp && !knobs.nodelay {
            return refuse(
                format!("{} holds nothing back", self.path),
                "leave `nodelay` out, which is for TCP",
            );
        }
        let round_trips = matches!(self.probe, Probe::Latency | Probe::Message);
        if knobs.clock.is_some() && !round_trips {
            return refuse(
                format!("a {name} probe times no round trips in a closed loop"),
                "leave `clock` out, which is for latency and single messages",
            );
        }
        if knobs.buffers == Buffers::Cold {
            let by_ring_too = self.path.is_frames() && self.method == Method::Ring;
            if !(is_stream || round_trips) {
                return refuse(
                    format!("a {name} probe has no cold buffers"),
                    "leave `buffers=cold` out, which is for latency, single messages and streams",
                );
            }
            if self.method != Method::Plain && !by_ring_too {
                return refuse(
                    format!(
                        "{} has buffers of its own, which stay in the cache",
                        self.method
                    ),
                    "leave `buffers=cold` out, or measure the method plain",
                );
            }
        }
        let reads = knobs.chunk_bytes.is_some() || knobs.low_water_bytes.is_some();
        if reads && !(is_stream && is_tcp) {
            return refuse(
                format!("a {name} probe by {} takes whole messages", self.path),
                "leave `chunk` and `lowat` out, which are for a stream by TCP",
            );
        }
        Ok(())
    }

    fn check_knobs(&self) -> Result<()> {
        let refuse = |what: &str, remedy| {
            let what = what.into();
            Err(Error::Terms { what, remedy })
        };
        let knobs = &self.knobs;
        if self.path == Path::Udp && knobs.congestion.is_some() {
            return refuse(
                "UDP has no congestion control",
                "leave the congestion control out",
            );
        }
        if self.path.is_within_machine() && (knobs.congestion.is_some() || knobs.streams > 1) {
            return refuse(
                "within one machine there is one stream, without congestion control",
                "leave the knobs `congestion` and `streams` out for unix and shm",
            );
        }
        let has_buffers = knobs.send_buffer_bytes.is_some() || knobs.recv_buffer_bytes.is_some();
        if self.path == Path::Shm && has_buffers {
            return refuse(
                "shared memory has no socket buffers",
                "leave the knobs `sndbuf` and `rcvbuf` out for shm",
            );
        }
        Ok(())
    }

    fn check_size(&self, size: u64) -> Result<()> {
        let refuse = |what: String, remedy| Err(Error::Terms { what, remedy });
        if size == 0 || size > SIZE_BYTES_MAX {
            return refuse(
                format!("messages of {size} bytes cannot be measured"),
                "ask for 1 B to 1 GiB",
            );
        }
        if self.path == Path::Udp && size > UDP_MESSAGE_BYTES_MAX as u64 {
            return refuse(
                format!("a message of {size} bytes fits in no datagram"),
                "ask for at most 65,507 bytes",
            );
        }
        let is_numbered = matches!(self.probe, Probe::Stream | Probe::Rate);
        if !self.path.is_lossless() && is_numbered && size < 8 {
            return refuse(
                format!("datagrams of {size} bytes have no room for a number"),
                "ask for at least 8 bytes",
            );
        }
        Ok(())
    }

    fn check_pace(&self) -> Result<()> {
        let refuse = |what: String, remedy| Err(Error::Terms { what, remedy });
        match (self.probe, self.pace) {
            (Probe::Rate, None) => refuse(
                "messages at a rate have no rate".into(),
                "give one: `--rate 1000`",
            ),
            (Probe::Rate, Some(pace)) if !(1..=RATE_MAX).contains(&pace.rate_per_s) => refuse(
                format!("{} messages a second cannot be sent", pace.rate_per_s),
                "ask for 1 to 10,000,000",
            ),
            (Probe::Rate, Some(_)) | (_, None) => Ok(()),
            (probe, Some(_)) => refuse(
                format!("{} has no rate of its own", probe.name()),
                "leave the rate out, or measure `sonde probe rate`",
            ),
        }
    }

    fn check_counts(&self) -> Result<()> {
        let (low, high) = (self.samples_min, self.samples_max);
        if low == 0 || low > high || high > SAMPLES_MAX || self.warmup > SAMPLES_MAX {
            return Err(Error::Terms {
                what: format!(
                    "{low} to {high} samples after {} discarded cannot be taken",
                    self.warmup
                ),
                remedy: "ask for 1 to 1,000,000,000,000, the least first",
            });
        }
        Ok(())
    }

    fn check_times(&self) -> Result<()> {
        let refuse = |what: String, remedy| Err(Error::Terms { what, remedy });
        if self.budget_ns == 0 || self.budget_ns > TIME_NS_MAX {
            return refuse(
                format!("a budget of {} ns is out of range", self.budget_ns),
                "ask for up to an hour",
            );
        }
        if self.probe == Probe::Stream && self.budget_ns < WINDOW_NS_MIN {
            return refuse(
                format!("a stream cannot be rated over {} ns", self.budget_ns),
                "ask for at least 1 s",
            );
        }
        if self.timeout_ns < 1_000_000 || self.timeout_ns > TIME_NS_MAX {
            return refuse(
                format!("a timeout of {} ns is out of range", self.timeout_ns),
                "ask for 1 ms to an hour",
            );
        }
        if self.probe == Probe::Startup && self.parts && self.idle_ns >= self.timeout_ns {
            return refuse(
                format!(
                    "a pause of {} ns outlasts the timeout of {} ns",
                    self.idle_ns, self.timeout_ns
                ),
                "ask for a shorter pause or a longer timeout",
            );
        }
        Ok(())
    }

    /// The longest wait without progress.
    pub fn timeout(&self) -> Duration {
        Duration::from_nanos(self.timeout_ns)
    }

    /// The longest that the measuring side takes, with every wait within it at its worst.
    pub fn duration_max(&self) -> Duration {
        let each_ns =
            self.budget_ns + self.budget_ns / 4 + LEAD_IN_NS + self.idle_ns + self.timeout_ns;
        let bytes: u64 = self.sizes_bytes.iter().sum();
        let sizes = self.sizes_bytes.len() as u64;
        Duration::from_nanos(sizes * each_ns + 6 * bytes * SLOWEST_NS_PER_BYTE) + 8 * self.timeout()
    }

    /// The same for one size only.
    pub(crate) fn for_size(&self, size_bytes: u64) -> Self {
        Self {
            sizes_bytes: vec![size_bytes],
            ..self.clone()
        }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            wait: self.wait,
            timeout: self.timeout(),
            method: self.method,
            knobs: self.knobs.clone(),
            message_bytes: self.sizes_bytes.iter().copied().max().unwrap_or(1) as usize,
            source: None,
        }
    }

    /// Messages of a start-up, there and back.
    pub(crate) fn startup_messages(&self) -> u32 {
        if self.parts { 3 } else { 1 }
    }

    /// The size of the answer to a message.
    pub(crate) fn answer_bytes(&self, size: usize) -> usize {
        match self.probe {
            Probe::Message => 1,
            _ => size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_checked() {
        let usual = |probe, path| Terms::new(probe, path, Wait::Block);
        for probe in [
            Probe::Startup,
            Probe::Latency,
            Probe::Stream,
            Probe::Message,
            Probe::Rate,
        ] {
            for &path in Path::ALL {
                let is_known = match probe {
                    Probe::Startup => !path.is_frames(),
                    Probe::Rate => matches!(path, Path::Tcp | Path::Udp),
                    _ => true,
                };
                assert_eq!(
                    usual(probe, path).check().is_ok(),
                    is_known,
                    "{probe:?} {path}"
                );
            }
        }
        let latency = || usual(Probe::Latency, Path::Udp);
        let refused = |bad: Terms, said: &str| {
            let error = bad.check().unwrap_err();
            assert!(
                error.to_string().contains(said) && !error.remedy().is_empty(),
                "{error}"
            );
        };
        for (sizes, said) in [
            (vec![], "0 sizes"),
            (vec![1; 257], "257 sizes"),
            (vec![1, 0], "messages of 0 bytes"),
            (vec![1, 65_508], "fits in no datagram"),
        ] {
            let sizes_bytes = sizes;
            refused(
                Terms {
                    sizes_bytes,
                    ..latency()
                },
                said,
            );
        }
        let mut bad = usual(Probe::Stream, Path::Udp);
        bad.sizes_bytes = vec![7];
        refused(bad, "no room for a number");
        let mut bad = usual(Probe::Stream, Path::Udp);
        bad.budget_ns = 999_999_999;
        refused(bad, "cannot be rated over 999999999 ns");
        for (low, high) in [(0, 1), (2, 1), (1, SAMPLES_MAX + 1)] {
            let mut bad = latency();
            (bad.samples_min, bad.samples_max) = (low, high);
            refused(bad, &format!("{low} to {high} samples"));
        }
        let mut bad = usual(Probe::Rate, Path::Udp);
        bad.pace = None;
        refused(bad, "have no rate");
        let mut bad = latency();
        bad.pace = usual(Probe::Rate, Path::Udp).pace;
        refused(bad, "latency has no rate");
        let mut bad = latency();
        bad.timeout_ns = 0;
        refused(bad, "timeout of 0 ns");
        let mut bad = latency();
        bad.knobs.congestion = Some("reno".into());
        refused(bad, "no congestion control");
        for (probe, path, method, said) in [
            (
                Probe::Latency,
                Path::Tcp,
                Method::Splice,
                "splice would change nothing of a latency",
            ),
            (
                Probe::Startup,
                Path::Tcp,
                Method::Uring,
                "uring would change nothing of a startup",
            ),
            (
                Probe::Latency,
                Path::Udp,
                Method::Mmsg,
                "mmsg would change nothing",
            ),
            (
                Probe::Stream,
                Path::Udp,
                Method::Splice,
                "udp has no method splice",
            ),
            (
                Probe::Stream,
                Path::Tcp,
                Method::Gso,
                "tcp has no method gso",
            ),
        ] {
            let mut bad = usual(probe, path);
            bad.method = method;
            refused(bad, said);
        }
        let mut bad = usual(Probe::Stream, Path::Udp);
        (bad.method, bad.sizes_bytes) = (Method::Gso, vec![32_754]);
        refused(bad.clone(), "at least two datagrams");
        bad.sizes_bytes = vec![32_753];
        bad.check().unwrap();
        bad.knobs.connected = false;
        refused(bad, "goes by connected sockets");
        for (probe, path, name, value, said) in [
            (
                Probe::Stream,
                Path::Udp,
                "streams",
                "2",
                "2 streams at once",
            ),
            (
                Probe::Latency,
                Path::Tcp,
                "streams",
                "2",
                "2 streams at once",
            ),
            (
                Probe::Latency,
                Path::Tcp,
                "connected",
                "no",
                "connected sockets",
            ),
            (
                Probe::Stream,
                Path::Udp,
                "nodelay",
                "no",
                "holds nothing back",
            ),
            (
                Probe::Message,
                Path::Tcp,
                "chunk",
                "1KiB",
                "takes whole messages",
            ),
            (
                Probe::Stream,
                Path::Udp,
                "lowat",
                "1KiB",
                "takes whole messages",
            ),
            (Probe::Stream, Path::Tcp, "clock", "tsc", "no round trips"),
            (
                Probe::Startup,
                Path::Tcp,
                "buffers",
                "cold",
                "startup probe has no cold buffers",
            ),
        ] {
            let mut bad = usual(probe, path);
            bad.knobs = Knobs::parse(&[(name.into(), value.into())].into()).unwrap();
            refused(bad, said);
        }
        let mut bad = usual(Probe::Latency, Path::Shm);
        (bad.method, bad.knobs.buffers) = (Method::Segment, Buffers::Cold);
        refused(bad, "segment has buffers of its own");
        let mut bad = usual(Probe::Latency, Path::Shm);
        bad.knobs.recv_buffer_bytes = Some(4_096);
        refused(bad, "no socket buffers");
        let mut bad = usual(Probe::Stream, Path::Unix);
        bad.knobs.streams = 2;
        refused(bad, "within one machine");
        let mut bad = usual(Probe::Stream, Path::Tcp);
        bad.knobs.rate_bps = Some(1_000_000);
        refused(bad, "at a constant rate");
        let mut bad = usual(Probe::Startup, Path::Tcp);
        (bad.parts, bad.timeout_ns) = (true, bad.idle_ns);
        refused(bad, "outlasts the timeout");
    }
}
