//! A load on real networks: datagrams at planned times, and a sink that counts them.
//!
//! Model:   each host that takes part has one worker. It opens a sink for the flows that end there, and says its port; when it
//!          is told to begin it sends the flows that begin there, each by the schedule that its law drew from its seed, in open
//!          loop: a time that has come is kept, however late the sender is, and what is late goes out in batches. Planned,
//!          sent and received are counted apart. The sink takes only datagrams with the token, of a flow that it was
//!          promised, of that flow's size, and each number once; all else is turned away and counted. Senders end by
//!          themselves at their time, when they are told, and when nobody has said anything for the lease.
//! Source:  Schroeder, Wierman, Harchol-Balter, NSDI 2006, for open loops; IEEE 802.3 §4.4.2 for a frame's 38 bytes beside its
//!          packet; the window of numbers as in RFC 4303 §3.4.3.
//! Units:   picoseconds between frames, nanoseconds else; sizes are user bytes.
//! Checked: `datagrams_become_frames`, `only_promised_datagrams_count`, `a_number_counts_once`, `the_schedule_is_the_law's`;
//!          `tests/load.rs`.

mod sender;
pub(crate) mod sink;

use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sonde_channel::{Woken, readable};
use sonde_link::Law;
use sonde_units::{Ratio, Span};

use crate::frame;
use crate::{Answer, Error, Request, Result};
use sender::Sender;
use sink::{Sink, token_bytes};

/// The token, the flow's number, the datagram's number.
pub const HEADER_BYTES: usize = 16 + 4 + 8;
/// The most flows of one load.
pub const FLOWS_MAX: usize = 1_024;
const SIZE_BYTES_MAX: u32 = 65_507;
const UDP: u64 = 8;
/// Preamble, header, checksum and gap of an Ethernet frame.
const ETHERNET: u64 = 38;
/// The least that a frame carries.
const ETHERNET_MIN: u64 = 46;

/// What a datagram of `size` user bytes takes on an Ethernet line, in bytes: headers of UDP and IP, of each fragment where it
/// does not fit one frame, and all that Ethernet adds to a frame.
pub fn wire_bytes(size: u64, mtu: u64, is_v6: bool) -> u64 {
    // A fragment of IPv6 has an extension header of 8 bytes.
    let (header, extra) = if is_v6 { (40, 8) } else { (20, 0) };
    let packet = size + UDP;
    let frame = |payload: u64, extra: u64| (payload + header + extra).max(ETHERNET_MIN) + ETHERNET;
    let whole = mtu.saturating_sub(header);
    if packet <= whole || whole < 16 {
        return frame(packet, 0);
    }
    let most = whole.saturating_sub(extra) / 8 * 8;
    let full = (packet - 1) / most;
    full * frame(most, extra) + frame(packet - full * most, extra)
}

/// Take part in a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// What datagrams must carry: 32 hexadecimal digits.
    pub token: String,
    /// The address of the sink and of what is sent.
    pub bind: IpAddr,
    /// The flows that end here.
    pub sinks: Vec<Promised>,
    /// Without a word for so long the load ends.
    pub lease_ns: u64,
}

/// A flow that ends at a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promised {
    /// Its number.
    pub number: u32,
    /// User bytes of its datagrams.
    pub size_bytes: u32,
}

/// A flow to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadFlow {
    /// Its number.
    pub number: u32,
    /// The sink.
    pub to: SocketAddr,
    /// User bytes of its datagrams.
    pub size_bytes: u32,
    /// The law, as it is written.
    pub law: String,
    /// The share of the link, above 0 and at most 1: parts, and of how many.
    pub rho: (u64, u64),
    /// The time of one of its datagrams on the link.
    pub unit_ps: u64,
    /// Where its draws begin.
    pub seed: u64,
    /// It ends after this.
    pub lasts_ns: u64,
}

impl LoadFlow {
    /// Its law and level.
    ///
    /// # Errors
    /// A law or a level that is none, a size out of range.
    fn checked(&self) -> Result<(Law, Ratio)> {
        let refuse = |what: String, remedy| Err(Error::Unmeasurable { what, remedy });
        let (part, of) = self.rho;
        if part == 0 || part > of || self.unit_ps == 0 {
            return refuse(
                format!("a load of {part}/{of} of the link cannot be made"),
                "ask for a share above 0 and at most 1",
            );
        }
        let range = HEADER_BYTES as u32..=SIZE_BYTES_MAX;
        if !range.contains(&self.size_bytes) {
            return refuse(
                format!(
                    "datagrams of {} bytes have no room for a number",
                    self.size_bytes
                ),
                "ask for 28 to 65,507 bytes",
            );
        }
        match self.law.parse() {
            Ok(Law::Replay) | Err(_) => refuse(
                format!("there is no law `{}` for a load", self.law),
                "write constant, poisson, geometric, on-off:20 or self-similar:20",
            ),
            Ok(law) => Ok((law, Ratio::new(part, of))),
        }
    }

    fn unit(&self) -> Span {
        Span::picos(self.unit_ps)
    }
}

/// What a running load is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Steer {
    /// Send these flows.
    Begin {
        /// Those that begin here.
        flows: Vec<LoadFlow>,
    },
    /// Say how far it is.
    Tell {},
    /// Send no more; go on receiving.
    Halt {},
    /// It is over.
    End {},
}

/// What a load has done at one host so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadCounts {
    /// The flows that begin here.
    pub sent: Vec<SentFlow>,
    /// The flows that end here.
    pub received: Vec<ReceivedFlow>,
    /// Datagrams that the sink turned away.
    pub refused: u64,
    /// CPU time of the sending thread.
    pub send_cpu_ns: u64,
    /// CPU time of the receiving thread.
    pub recv_cpu_ns: u64,
    /// Whether the sender watches the clock for the last microseconds before a time, for there are CPUs enough.
    pub spins: bool,
}

/// A flow at its begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentFlow {
    /// Its number.
    pub number: u32,
    /// How long it has been sending.
    pub span_ns: u64,
    /// Datagrams whose time has come.
    pub planned: u64,
    /// Datagrams that the kernel took.
    pub sent: u64,
    /// The latest that one was handed over after its time.
    pub lag_ns_max: u64,
    /// The same of the last one.
    pub lag_ns: u64,
    /// Time in which the kernel had no room for one.
    pub blocked_ns: u64,
    /// What ended it before its time.
    pub trouble: Option<String>,
}

/// A flow at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceivedFlow {
    /// Its number.
    pub number: u32,
    /// Datagrams that came, each counted once.
    pub received: u64,
    /// Datagrams that came again, or too late to be told from these.
    pub again: u64,
}

/// Plays one host's part of a load until it is over.
pub(crate) fn work(load: &Load, from: &mut File, to: &mut impl Write) -> Result<Answer> {
    if load.sinks.len() > FLOWS_MAX {
        return Err(Error::Unmeasurable {
            what: format!("{} flows cannot end at one host", load.sinks.len()),
            remedy: "ask for at most 1,024",
        });
    }
    let token = token_bytes(&load.token)?;
    let sink = Sink::open(load.bind, token, &load.sinks)?;
    let mut sender: Option<Sender> = None;
    frame::write(to, &Answer::Serving { port: sink.port() })?;
    let lease = Duration::from_nanos(load.lease_ns);
    loop {
        let said = match readable(&[from.as_fd()], lease) {
            Ok(Woken::Readable(_)) => frame::read(from)?,
            Ok(Woken::Silence) => None,
            Err(source) => {
                let what = "wait for the commands of the load".into();
                return Err(Error::Control { what, source });
            }
        };
        // The end of the input, or of the lease: nobody waits for an answer.
        let Some(body) = said else {
            return Err(Error::Abandoned);
        };
        match frame::parse::<Request>(&body)? {
            Request::Steer(Steer::Begin { flows }) => {
                sender = Some(Sender::start(load.bind, token, &flows)?);
            }
            Request::Steer(Steer::Tell {}) => {}
            Request::Steer(Steer::Halt {}) => {
                if let Some(sender) = &mut sender {
                    sender.halt();
                }
            }
            _ => {
                if let Some(sender) = &mut sender {
                    sender.halt();
                }
                return Ok(Answer::Loaded(counts(&sink, sender.as_ref())));
            }
        }
        frame::write(to, &Answer::Loading(counts(&sink, sender.as_ref())))?;
    }
}

fn counts(sink: &Sink, sender: Option<&Sender>) -> LoadCounts {
    let mut counts = LoadCounts {
        received: sink.counts(),
        refused: sink.shared.refused.load(Ordering::Relaxed),
        recv_cpu_ns: sink.shared.cpu_ns.load(Ordering::Relaxed),
        ..LoadCounts::default()
    };
    if let Some(sender) = sender {
        sender.tell(&mut counts);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_become_frames() {
        // 1,472 B fill a frame of 1,500 and take 1,538 on the line; 1 B is padded to 46 and takes 84.
        assert_eq!(wire_bytes(1_472, 1_500, false), 1_538);
        assert_eq!(wire_bytes(1, 1_500, false), 84);
        assert_eq!(wire_bytes(1_452, 1_500, true), 1_538);
        // 1,473 B: 1,480 of payload in the first frame, one byte in the second, which is padded.
        assert_eq!(wire_bytes(1_473, 1_500, false), 1_538 + 84);
        let three = wire_bytes(4_000, 1_500, false);
        assert_eq!(three, 2 * 1_538 + (4_008 - 2_960 + 20 + 38));
    }

    #[test]
    fn tokens_are_hexadecimal() {
        let bytes = token_bytes("000102030405060708090a0b0c0d0eff").unwrap();
        assert_eq!((bytes[1], bytes[15]), (1, 255));
        for bad in [
            "",
            "0",
            "zz0102030405060708090a0b0c0d0eff",
            "äääääääääääääääää",
        ] {
            assert!(token_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_flows_are_refused() {
        let flow = LoadFlow {
            number: 0,
            to: "127.0.0.1:9".parse().unwrap(),
            size_bytes: 100,
            law: "poisson".into(),
            rho: (3, 5),
            unit_ps: 1_000,
            seed: 1,
            lasts_ns: 1,
        };
        flow.checked().unwrap();
        let bad = |change: fn(&mut LoadFlow)| {
            let mut bad = flow.clone();
            change(&mut bad);
            bad.checked().unwrap_err().to_string()
        };
        assert!(bad(|flow| flow.rho = (2, 1)).contains("2/1"));
        assert!(bad(|flow| flow.rho = (0, 1)).contains("0/1"));
        assert!(bad(|flow| flow.size_bytes = 27).contains("27 bytes"));
        assert!(bad(|flow| flow.law = "replay".into()).contains("replay"));
        assert!(bad(|flow| flow.law = "murphy".into()).contains("murphy"));
    }
}
