//! Who may speak on a data port: the peer with the token, and of the same specification.
//!
//! Model:   the measuring side says hello with token and specification; the serving side accepts or refuses with a reason. Byte
//!          streams carry both as frames, UDP as control datagrams that are repeated until answered. Each size is a visit with
//!          a socket and a hello of its own, so that the first message of a size is as cold as that of any other. In
//!          `startup` the hello follows the timed messages, so that nothing warms the way for them; until then the peer by TCP
//!          or UDP is known by its port, one of [`ports`], and whoever comes from another is turned away unheard.
//! Checked: `a_wrong_token_is_refused`, `other_terms_are_refused`, `ports_follow_from_the_token`; `tests/conversation.rs`,
//!          `tests/hostile.rs`.
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

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sonde_channel::{ByteStream, CONTROL, Channel, Datagram, Udp};

use crate::frame::{self, FrameError};
use crate::{Error, Measure, Result};
use sonde_measure::{Probe, Spec};

/// The longest control message on a data port.
const CONTROL_BYTES_MAX: usize = 16 << 10;
/// How long to wait before a control datagram is sent again.
const RESEND_AFTER: Duration = Duration::from_millis(200);

/// From the measuring to the serving side.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Say {
    /// May I speak?
    Hello {
        token: String,
        spec: Box<Spec>,
        visit: Visit,
    },
    /// UDP: all is sent.
    End { messages: u64 },
}

/// Between two looks for a hello.
const LOOK: Duration = Duration::from_micros(50);

/// One size of a conversation, on a socket of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Visit {
    /// Its place among the sizes of the specification.
    pub(crate) size: usize,
    /// No other follows.
    pub(crate) last: bool,
}

impl Visit {
    /// The visits of a conversation.
    pub(crate) fn all(spec: &Spec) -> impl Iterator<Item = Self> + use<> {
        let count = spec.sizes_bytes.len();
        (0..count).map(move |size| Self {
            size,
            last: count.checked_sub(1) == Some(size),
        })
    }

    /// The size of its messages; `None` where the specification has no such size.
    pub(crate) fn size_bytes(self, spec: &Spec) -> Option<usize> {
        Some(*spec.sizes_bytes.get(self.size)? as usize)
    }
}

/// From the serving to the measuring side.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Reply {
    Accepted {},
    Refused {
        reason: String,
    },
    Ended {},
    /// UDP: the stream has been rated.
    Rated {},
}

/// The serving side's view of a hello.
pub(crate) enum Verdict {
    Accept,
    /// Not our peer: let others come.
    Stranger,
    /// Our peer, with another specification: no conversation is possible.
    Mismatch(String),
}

/// From how many ports a start-up's peer may come: another program may have some of them.
const PORTS: usize = 8;
/// Above those that Linux gives to sockets which ask for none, 32768 to 60999 (net.ipv4.ip_local_port_range).
const PORT_MIN: u16 = 61_000;

/// The ports that a start-up's peer comes from. They follow from the token, which strangers do not know.
pub(crate) fn ports(token: &str) -> [u16; PORTS] {
    std::array::from_fn(|place| {
        let part = token.bytes().skip(place.saturating_mul(4)).take(4);
        let sum = part.fold(place as u16, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        // At most 65,535: the rest is below the number of ports from the least one on.
        PORT_MIN.saturating_add(sum % (u16::MAX - PORT_MIN + 1))
    })
}

/// Whether a start-up's messages may come from there. Within a machine there are no ports.
pub(crate) fn is_expected(spec: &Spec, token: &str, from: SocketAddr) -> bool {
    spec.path.is_within_machine() || ports(token).contains(&from.port())
}

/// The port for a start-up to send from: the first that no other program has, by TCP and by UDP. Zero within a machine.
pub(crate) fn free_port(measure: &Measure) -> Result<u16> {
    if measure.spec.path.is_within_machine() {
        return Ok(0);
    }
    let mut local = measure.options().local(measure.peer);
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrInUse);
    for port in ports(&measure.token) {
        local.set_port(port);
        let free = UdpSocket::bind(local).and_then(|_| TcpListener::bind(local));
        match free {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(Error::Control {
        what: format!(
            "find a port of {} to send from, of {PORTS} tried from {PORT_MIN} up",
            local.ip()
        ),
        source: last,
    })
}

pub(crate) fn judge(token: &str, spec: &Spec, said_token: &str, said_spec: &Spec) -> Verdict {
    if token != said_token {
        return Verdict::Stranger;
    }
    if spec == said_spec {
        return Verdict::Accept;
    }
    Verdict::Mismatch(difference(spec, said_spec))
}

/// The members that differ, by name and with both values.
fn difference(serving: &Spec, measuring: &Spec) -> String {
    let members = |spec| match serde_json::to_value(spec) {
        Ok(serde_json::Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    let (serving, measuring) = (members(serving), members(measuring));
    let differing = serving
        .iter()
        .filter(|(name, value)| measuring.get(*name) != Some(*value));
    let texts: Vec<String> = differing
        .map(|(name, value)| {
            let theirs = measuring
                .get(name)
                .map_or_else(|| "null".into(), ToString::to_string);
            format!("{name} is {value} here and {theirs} at the peer")
        })
        .collect();
    texts.join("; ")
}

impl Verdict {
    pub(crate) fn reply(&self) -> Reply {
        match self {
            Self::Accept => Reply::Accepted {},
            Self::Stranger => Reply::Refused {
                reason: "the token is not the one of this conversation".into(),
            },
            Self::Mismatch(difference) => Reply::Refused {
                reason: difference.clone(),
            },
        }
    }
}

/// Whether these bytes are a hello that a data port with this token and any specification would hear: the body of a frame by TCP, or a
/// control datagram. For tests of what strangers may send; nothing is answered.
pub fn admits(token: &str, bytes: &[u8]) -> bool {
    let framed = frame::parse::<Say>(bytes).map_err(Error::from);
    let said = control::<Say>(bytes).unwrap_or(framed);
    match said {
        Ok(Say::Hello {
            token: said,
            spec,
            visit,
        }) => {
            let verdict = judge(token, &spec, &said, &spec);
            visit.size_bytes(&spec);
            matches!(verdict, Verdict::Accept)
        }
        _ => false,
    }
}

pub(crate) fn send_frame(channel: &mut impl ByteStream, message: &impl Serialize) -> Result<()> {
    Ok(channel.send(&frame::encode(message)?)?)
}

pub(crate) fn recv_frame<T: DeserializeOwned>(channel: &mut impl ByteStream) -> Result<T> {
    recv_frame_within(channel, None)
}

/// A frame that is complete within so long, whatever the pieces in which it comes.
pub(crate) fn recv_frame_within<T: DeserializeOwned>(
    channel: &mut impl ByteStream,
    limit: Option<Duration>,
) -> Result<T> {
    let until = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
    let mut head = [0; 4];
    fill(channel, &mut head, until)?;
    let length = u32::from_be_bytes(head) as usize;
    if length > CONTROL_BYTES_MAX {
        return Err(FrameError::TooLong(length as u64).into());
    }
    let mut body = vec![0; length];
    fill(channel, &mut body, until)?;
    Ok(frame::parse(&body)?)
}

fn fill(
    channel: &mut impl ByteStream,
    bytes: &mut [u8],
    until: Option<(Instant, Duration)>,
) -> Result<()> {
    let Some((until, waited)) = until else {
        return Ok(channel.recv(bytes)?);
    };
    let peer = channel.peer();
    let wanted = bytes.len();
    let mut at = 0_usize;
    while let Some(room) = bytes.get_mut(at..).filter(|room| !room.is_empty()) {
        let left = until.saturating_duration_since(Instant::now());
        let silent = match channel.as_tcp() {
            Some(tcp) => {
                let woken = sonde_channel::readable(&[tcp.as_fd()], left);
                let woken = woken.map_err(|source| Error::Control {
                    what: "wait for a hello".into(),
                    source,
                })?;
                woken == sonde_channel::Woken::Silence
            }
            // Nothing tells of shared memory: it is looked at now and then.
            None => {
                std::thread::sleep(LOOK.min(left));
                left.is_zero()
            }
        };
        if silent {
            let awaited = format!("a whole hello, of which {at} of {wanted} bytes came");
            return Err(sonde_channel::Error::Timeout {
                peer,
                awaited,
                waited,
            }
            .into());
        }
        match channel.recv_now(room)? {
            Some(0) => {
                return Err(sonde_channel::Error::Closed {
                    peer,
                    awaited: "a hello",
                    received: at,
                    wanted,
                }
                .into());
            }
            received => at = at.saturating_add(received.unwrap_or(0)),
        }
    }
    Ok(())
}

fn hello(measure: &Measure, visit: Visit) -> Say {
    Say::Hello {
        token: measure.token.clone(),
        spec: Box::new(measure.spec.clone()),
        visit,
    }
}

/// Says hello on a byte stream and waits to be accepted.
pub(crate) fn hello_stream(
    channel: &mut impl ByteStream,
    measure: &Measure,
    visit: Visit,
) -> Result<()> {
    send_frame(channel, &hello(measure, visit))?;
    match recv_frame(channel)? {
        Reply::Accepted {} | Reply::Ended {} | Reply::Rated {} => Ok(()),
        Reply::Refused { reason } => Err(Error::Refused {
            peer: channel.peer(),
            reason,
        }),
    }
}

/// A control datagram.
pub(crate) fn datagram(message: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = CONTROL.to_vec();
    serde_json::to_writer(&mut bytes, message).map_err(FrameError::from)?;
    Ok(bytes)
}

/// The control message in a datagram; `None` when it is an ordinary message.
#[inline]
pub(crate) fn control<T: DeserializeOwned>(datagram: &[u8]) -> Option<Result<T>> {
    // As whole words: this is done for every message.
    let (begin, body) = datagram.split_first_chunk()?;
    if begin != CONTROL {
        return None;
    }
    Some(frame::parse(body).map_err(Error::from))
}

/// Says hello by UDP, again and again until it is accepted; after a start-up nothing follows it.
pub(crate) fn hello_udp(channel: &mut Udp, measure: &Measure, visit: Visit) -> Result<()> {
    let spec = &measure.spec;
    let nothing_follows = spec.probe() == Probe::Startup;
    ask(
        channel,
        &hello(measure, visit),
        spec.timeout(),
        nothing_follows,
    )
}

/// Says by UDP that all is sent, again and again until it was heard.
pub(crate) fn end_udp(channel: &mut Udp, messages: u64, spec: &Spec) -> Result<()> {
    ask(channel, &Say::End { messages }, spec.timeout(), true)
}

fn ask(channel: &mut Udp, say: &Say, timeout: Duration, last: bool) -> Result<()> {
    let question = datagram(say)?;
    let peer: SocketAddr = channel.peer();
    let begin = Instant::now();
    let mut buffer = vec![0; CONTROL_BYTES_MAX];
    channel.set_resend_after(RESEND_AFTER)?;
    loop {
        let asked = Instant::now();
        channel.send(&question)?;
        while asked.elapsed() < RESEND_AFTER {
            match channel.recv_datagram(&mut buffer) {
                Ok(Datagram::Of(size)) => {
                    match control::<Reply>(buffer.get(..size).unwrap_or(&buffer)) {
                        Some(Ok(Reply::Refused { reason })) => {
                            return Err(Error::Refused { peer, reason });
                        }
                        // Said while the stream still went.
                        Some(Ok(Reply::Rated {})) => {}
                        Some(reply) => return reply.map(|_| ()),
                        None => {} // A late answer to a ping.
                    }
                }
                Ok(Datagram::Silence) => break,
                // The peer heard it and left, and only its reply was lost.
                Err(sonde_channel::Error::Call { .. })
                    if last && begin.elapsed() >= RESEND_AFTER =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        if begin.elapsed() >= timeout {
            let awaited = "a control message to be answered".into();
            return Err(sonde_channel::Error::Timeout {
                peer,
                awaited,
                waited: begin.elapsed(),
            }
            .into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_channel::payload;
    use sonde_measure::{Path, Wait};

    #[test]
    fn a_wrong_token_is_refused() {
        let spec = Spec::new(Probe::Latency, Path::Tcp, Wait::Block);
        assert!(matches!(judge("a", &spec, "a", &spec), Verdict::Accept));
        for wrong in ["", "b", "aa"] {
            let verdict = judge("a", &spec, wrong, &spec);
            assert!(matches!(verdict, Verdict::Stranger));
            assert!(matches!(verdict.reply(), Reply::Refused { .. }));
        }
    }

    #[test]
    fn ports_follow_from_the_token() {
        let tokens: Vec<String> = (0..200).map(|_| crate::token().unwrap()).collect();
        let mut seen = std::collections::BTreeSet::new();
        for token in &tokens {
            assert_eq!(ports(token), ports(token));
            assert!(ports(token).iter().all(|port| *port >= PORT_MIN));
            seen.extend(ports(token));
        }
        // 1,600 draws of 4,536 ports: 1,349 of them at the mean.
        assert!(seen.len() > 1_000, "{}", seen.len());
        let spec = Spec::new(Probe::Startup, Path::Tcp, Wait::Block);
        let from = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let known = ports(&tokens[0]);
        assert!(is_expected(&spec, &tokens[0], from(known[7])));
        assert!(!is_expected(&spec, &tokens[0], from(PORT_MIN - 1)));
        let unix = Spec::new(Probe::Startup, Path::Unix, Wait::Block);
        assert!(is_expected(&unix, &tokens[0], from(1)));
    }

    #[test]
    fn a_port_that_another_has_is_passed_over() {
        let measure = Measure {
            spec: Spec::new(Probe::Startup, Path::Udp, Wait::Block),
            peer: SocketAddr::from(([127, 0, 0, 1], 9)),
            token: crate::token().unwrap(),
            flush_neighbour: None,
            source: None,
        };
        let mut held = Vec::new();
        for _ in 0..PORTS {
            let Ok(port) = free_port(&measure) else {
                break;
            };
            assert!(ports(&measure.token).contains(&port));
            held.push(UdpSocket::bind(("0.0.0.0", port)).unwrap());
        }
        assert!(held.len() > 1, "{}", held.len());
        let error = free_port(&measure).unwrap_err().to_string();
        assert!(error.contains("to send from, of 8 tried"), "{error}");
    }

    #[test]
    fn other_terms_are_refused() {
        let serving = Spec::new(Probe::Latency, Path::Tcp, Wait::Block);
        let measuring = Spec {
            sizes_bytes: vec![64],
            wait: Wait::Poll,
            ..serving.clone()
        };
        let Verdict::Mismatch(difference) = judge("a", &serving, "a", &measuring) else {
            panic!("accepted");
        };
        assert!(
            difference.contains("sizes_bytes is [1] here and [64] at the peer"),
            "{difference}"
        );
        assert!(
            difference.contains("wait") && !difference.contains("samples"),
            "{difference}"
        );
    }

    #[test]
    fn no_message_looks_like_control() {
        for sequence in [0, 1, u32::from_le_bytes(*b"sond")] {
            let mut message = payload::message(100);
            payload::stamp(&mut message, sequence);
            assert!(control::<Reply>(&message).is_none());
        }
        assert!(
            control::<Reply>(&datagram(&Reply::Ended {}).unwrap())
                .unwrap()
                .is_ok()
        );
        assert!(control::<Reply>(&CONTROL[..]).unwrap().is_err());
    }
}
