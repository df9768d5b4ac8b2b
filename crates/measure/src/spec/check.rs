//! What of a specification cannot be measured: what no type rules out.
//!
//! Checked: `specs_are_checked`, `methods_and_knobs_are_checked`.

use std::fmt;

use super::{
    NO_STAMPS, NO_START, Probe, Procedure, Quota, SAMPLES_MAX, SIZES_MAX, Sampling, Spec, Startup,
    UDP_MESSAGE_BYTES_MAX, Unmeasurable, WINDOW_NS_MIN,
};
use crate::{Buffers, Method, Path, RATE_MAX};

const SIZE_BYTES_MAX: u64 = 1 << 30;
const TIME_NS_MAX: u64 = 3_600 * 1_000_000_000;

/// Refuses what is wrong.
fn refuse(is_wrong: bool, what: fmt::Arguments<'_>, remedy: &'static str) -> Checked {
    match is_wrong {
        true => Err(Unmeasurable {
            what: what.to_string(),
            remedy,
        }),
        false => Ok(()),
    }
}

type Checked = Result<(), Unmeasurable>;

impl Sampling {
    /// Refuses what cannot be taken.
    ///
    /// # Errors
    /// Counts or a budget out of range, with the range.
    pub fn check(&self) -> Result<(), Unmeasurable> {
        check_counts(self.samples_min, self.samples_max, self.warmup)?;
        check_budget(self.budget_ns)
    }
}

impl Quota {
    pub(crate) fn check(&self) -> Checked {
        check_counts(1, self.samples_max, self.warmup)?;
        check_budget(self.budget_ns)
    }
}

impl Procedure {
    fn check(&self, path: Path, timeout_ns: u64) -> Checked {
        match self {
            Self::Startup(Startup::Whole {}) => Ok(()),
            Self::Startup(Startup::Steps { idle_ns, .. }) => refuse(
                *idle_ns >= timeout_ns,
                format_args!("a pause of {idle_ns} ns outlasts the timeout of {timeout_ns} ns"),
                "ask for a shorter pause or a longer timeout",
            ),
            Self::Latency(sampling) | Self::Message(sampling) => sampling.check(),
            Self::Stream { window_ns } => check_window(*window_ns),
            Self::Anatomy(quota) => quota.check(),
            Self::Rate { pace, quota } => {
                refuse(
                    !(1..=RATE_MAX).contains(&pace.rate_per_s),
                    format_args!("{} messages per second cannot be sent", pace.rate_per_s),
                    "ask for 1 to 10,000,000",
                )?;
                quota.check()
            }
            Self::Files(files) => files.check(path),
        }
    }
}

impl Spec {
    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// A path, a method or a knob that the probe does not have; a size, a count or a time out of range, with the range.
    pub fn check(&self) -> Result<(), Unmeasurable> {
        check_sizes(&self.sizes_bytes)?;
        self.check_datagrams()?;
        self.check_knobs()?;
        self.check_path()?;
        self.check_method()?;
        self.check_buffers()?;
        self.procedure.check(self.path, self.timeout_ns)?;
        check_timeout(self.timeout_ns)
    }

    fn check_datagrams(&self) -> Checked {
        if self.probe() == Probe::Files {
            // Sizes are those of files.
            return Ok(());
        }
        let is_numbered = matches!(self.probe(), Probe::Stream | Probe::Rate);
        for size in &self.sizes_bytes {
            refuse(
                self.path == Path::Udp && *size > UDP_MESSAGE_BYTES_MAX as u64,
                format_args!("a message of {size} bytes does not fit in a datagram"),
                "ask for at most 65,507 bytes",
            )?;
            refuse(
                !self.path.is_lossless() && is_numbered && *size < 8,
                format_args!("datagrams of {size} bytes have no room for a number"),
                "ask for at least 8 bytes",
            )?;
        }
        Ok(())
    }

    fn check_knobs(&self) -> Checked {
        let (path, knobs) = (self.path, &self.knobs);
        if let (Procedure::Rate { pace, .. }, Some(most)) = (self.procedure, knobs.max_rate_bps) {
            let largest = self.sizes_bytes.iter().copied().max().unwrap_or(0);
            let bytes = u128::from(largest).saturating_mul(pace.rate_per_s.into());
            let bps = bytes.saturating_mul(8);
            refuse(
                bps > u128::from(most),
                format_args!(
                    "{} messages per second of {largest} bytes are {bps} b/s, and at most {most} b/s may be sent",
                    pace.rate_per_s
                ),
                "ask for fewer messages per second or shorter ones, or raise --max-rate",
            )?;
        }
        refuse(
            path.is_within_machine() && knobs.max_rate_bps.is_some(),
            format_args!("{path} sends nothing over a network, so it has no rate to be bounded"),
            "leave the knob `max-rate` out for unix and shm",
        )?;
        refuse(
            path == Path::Udp && knobs.congestion.is_some(),
            format_args!("UDP has no congestion control"),
            "leave the congestion control out",
        )?;
        refuse(
            path.is_within_machine() && (knobs.congestion.is_some() || knobs.streams > 1),
            format_args!("within one machine there is one stream, without congestion control"),
            "leave the knobs `congestion` and `streams` out for unix and shm",
        )?;
        let has_buffers = knobs.send_buffer_bytes.is_some() || knobs.recv_buffer_bytes.is_some();
        refuse(
            path == Path::Shm && has_buffers,
            format_args!("shared memory has no socket buffers"),
            "leave the knobs `sndbuf` and `rcvbuf` out for shm",
        )
    }

    fn check_path(&self) -> Checked {
        let (path, method, probe) = (self.path, self.method, self.probe());
        refuse(
            path.is_frames() && probe == Probe::Startup,
            format_args!("{NO_START}"),
            "ask for latency, or for the start-up of tcp or udp",
        )?;
        let paced = path == Path::Udp && probe == Probe::Stream;
        refuse(
            self.knobs.rate_bps.is_some() && !paced,
            format_args!("only a stream of datagrams is sent at a constant rate"),
            "leave `rate` out, or measure the throughput of udp",
        )?;
        refuse(
            !path.methods().contains(&method),
            format_args!("{path} has no method {method}"),
            "`sonde doctor` lists the methods of each path",
        )?;
        refuse(
            probe == Probe::Anatomy && path == Path::Xdp,
            format_args!("{NO_STAMPS}"),
            "measure the anatomy of tcp, udp or packet",
        )?;
        refuse(
            probe == Probe::Anatomy && method != Method::Plain,
            format_args!("the kernel's time stamps are not available with the method {method}"),
            "measure the anatomy with the method plain",
        )?;
        refuse(
            probe == Probe::Rate && !matches!(path, Path::Tcp | Path::Udp),
            format_args!("{path} does not carry messages at a rate"),
            "ask for tcp or udp",
        )
    }

    /// Refuses what a method or a knob would not change: nothing runs plainly under another name.
    fn check_method(&self) -> Checked {
        let (path, method, knobs) = (self.path, self.method, &self.knobs);
        let (is_stream, is_tcp) = (self.probe() == Probe::Stream, path == Path::Tcp);
        let name = self.probe().name();
        let fits = match method {
            Method::Plain | Method::Segment | Method::Ring => true,
            Method::Uring => is_stream || self.has_round_trips(),
            _ => is_stream,
        };
        refuse(
            !fits,
            format_args!("{method} would change nothing of a {name} probe"),
            "measure it with the method plain; the others are for streams, and uring for round trips too",
        )?;
        let single = |size: &u64| *size > UDP_MESSAGE_BYTES_MAX as u64 / 2;
        refuse(
            method == Method::Gso && self.sizes_bytes.iter().any(single),
            format_args!("gso joins at least two datagrams in 65,507 bytes"),
            "ask for at most 32,753 bytes, or for the method plain",
        )?;
        refuse(
            !knobs.connected && (is_tcp || method != Method::Plain),
            format_args!("{method} over {path} needs connected sockets"),
            "leave `connected=no` out, which is for UDP with the method plain",
        )?;
        refuse(
            knobs.streams > 1 && !(is_stream && is_tcp),
            format_args!(
                "a {name} over {path} does not have {} streams at once",
                knobs.streams
            ),
            "leave `streams` out, which is for a stream over TCP",
        )?;
        refuse(
            !is_tcp && !knobs.nodelay,
            format_args!("{path} does not delay small messages"),
            "leave `nodelay` out, which is for TCP",
        )?;
        refuse(
            knobs.clock.is_some() && !self.has_round_trips(),
            format_args!("a {name} probe times no round trips in a closed loop"),
            "leave `clock` out, which is for latency and single messages",
        )
    }

    fn check_buffers(&self) -> Checked {
        let (path, method, knobs) = (self.path, self.method, &self.knobs);
        let (is_stream, name) = (self.probe() == Probe::Stream, self.probe().name());
        if knobs.buffers == Buffers::Cold {
            refuse(
                !(is_stream || self.has_round_trips()),
                format_args!("a {name} probe has no cold buffers"),
                "leave `buffers=cold` out, which is for latency, single messages and streams",
            )?;
            let by_ring_too = path.is_frames() && method == Method::Ring;
            refuse(
                method != Method::Plain && !by_ring_too,
                format_args!("{method} has buffers of its own, which stay in the cache"),
                "leave `buffers=cold` out, or measure the method plain",
            )?;
        }
        let reads = knobs.chunk_bytes.is_some() || knobs.low_water_bytes.is_some();
        refuse(
            reads && !(is_stream && path == Path::Tcp),
            format_args!("a {name} probe over {path} takes whole messages"),
            "leave `chunk` and `lowat` out, which are for a stream over TCP",
        )
    }

    const fn has_round_trips(&self) -> bool {
        matches!(
            self.procedure,
            Procedure::Latency(_) | Procedure::Message(_)
        )
    }
}

/// Refuses sizes that no message has.
///
/// # Errors
/// None, or too many; a size out of range, with the range.
pub fn check_sizes(sizes_bytes: &[u64]) -> Result<(), Unmeasurable> {
    refuse(
        sizes_bytes.is_empty() || sizes_bytes.len() > SIZES_MAX,
        format_args!("{} sizes cannot be measured", sizes_bytes.len()),
        "ask for 1 to 256 sizes",
    )?;
    sizes_bytes.iter().try_for_each(|size| {
        refuse(
            !(1..=SIZE_BYTES_MAX).contains(size),
            format_args!("messages of {size} bytes cannot be measured"),
            "ask for 1 B to 1 GiB",
        )
    })
}

/// Refuses a timeout that is out of range.
///
/// # Errors
/// It is, with the range.
pub fn check_timeout(timeout_ns: u64) -> Result<(), Unmeasurable> {
    refuse(
        !(1_000_000..=TIME_NS_MAX).contains(&timeout_ns),
        format_args!("a timeout of {timeout_ns} ns is out of range"),
        "ask for 1 ms to an hour",
    )
}

/// Refuses a time to measure for that is out of range.
///
/// # Errors
/// It is, with the range.
pub fn check_budget(budget_ns: u64) -> Result<(), Unmeasurable> {
    refuse(
        !(1..=TIME_NS_MAX).contains(&budget_ns),
        format_args!("a budget of {budget_ns} ns is out of range"),
        "ask for up to an hour",
    )
}

/// Refuses a time to rate a stream for that is out of range.
///
/// # Errors
/// It is, with the range.
pub fn check_window(window_ns: u64) -> Result<(), Unmeasurable> {
    check_budget(window_ns)?;
    refuse(
        window_ns < WINDOW_NS_MIN,
        format_args!("a stream cannot be rated over {window_ns} ns"),
        "ask for at least 1 s",
    )
}

fn check_counts(low: u64, high: u64, warmup: u64) -> Checked {
    refuse(
        low == 0 || low > high || high > SAMPLES_MAX || warmup > SAMPLES_MAX,
        format_args!("{low} to {high} samples after {warmup} discarded cannot be taken"),
        "ask for 1 to 1,000,000,000,000, the least first",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::IDLE_NS;
    use crate::{Knobs, Wait};

    fn usual(probe: Probe, path: Path) -> Spec {
        Spec::new(probe, path, Wait::Block)
    }

    fn refused(bad: Spec, said: &str) {
        let error = bad.check().unwrap_err();
        assert!(
            error.to_string().contains(said) && !error.remedy.is_empty(),
            "{error}"
        );
    }

    #[test]
    fn specs_are_checked() {
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
        for (sizes, said) in [
            (vec![], "0 sizes"),
            (vec![1; 257], "257 sizes"),
            (vec![1, 0], "messages of 0 bytes"),
            (vec![1, 65_508], "does not fit in a datagram"),
        ] {
            let sizes_bytes = sizes;
            refused(
                Spec {
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
        bad.procedure = Procedure::Stream {
            window_ns: 999_999_999,
        };
        refused(bad, "cannot be rated over 999999999 ns");
        for (low, high) in [(0, 1), (2, 1), (1, SAMPLES_MAX + 1)] {
            let mut bad = latency();
            bad.procedure = Procedure::Latency(Sampling {
                samples_min: low,
                samples_max: high,
                ..Sampling::LATENCY
            });
            refused(bad, &format!("{low} to {high} samples"));
        }
        let mut bad = latency();
        bad.timeout_ns = 0;
        refused(bad, "timeout of 0 ns");
        let mut bad = latency();
        bad.knobs.congestion = Some("reno".into());
        refused(bad, "no congestion control");
    }

    #[test]
    fn methods_and_knobs_are_checked() {
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
        refused(bad, "needs connected sockets");
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
                "does not delay small messages",
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
        bad.timeout_ns = IDLE_NS;
        bad.procedure = Procedure::Startup(Startup::Steps {
            idle_ns: IDLE_NS,
            circuits: false,
        });
        refused(bad, "outlasts the timeout");
    }
}
