//! Who may speak on a data port: the peer with the token, and of the same specification.
//!
//! Model:   the measuring side says hello with token and specification; the serving side accepts or refuses with a reason. Byte
//!          streams carry both as frames, UDP as control datagrams that are repeated until answered. Each size is a visit with
//!          a socket and a hello of its own, so that the first message of a size is as cold as that of any other. The peer by TCP
//!          or UDP is known before it speaks: by the address that it was found to send from, and by its port, one of [`ports`];
//!          whoever comes from elsewhere is turned away unheard. In `startup` the hello follows the timed messages, so that
//!          nothing warms the way for them.
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
use sonde_channel::{Announced, ByteStream, CONTROL, Channel, Datagram, Options, Udp};

use crate::frame::{self, FrameError};
use crate::{Error, Measure, Result, Serve};
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

/// From how many ports a connection may come: another program may have some of them, and so have connections that have ended
/// for a minute.
const PORTS: usize = 16;
/// Above those that Linux gives to sockets which ask for none, 32768 to 60999 (net.ipv4.ip_local_port_range).
const PORT_MIN: u16 = 61_000;

/// The numbers of an anatomy's messages, which go beside its connections, begin here.
pub(crate) const BESIDE: u32 = 1 << 16;

/// The ports that this connection of a conversation comes from. They follow from the token, which strangers do not know.
pub(crate) fn ports(token: &str, number: u32) -> [u16; PORTS] {
    std::array::from_fn(|place| {
        // FNV-1a of 32 bits.
        let step = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let bytes = number.to_be_bytes().into_iter().chain([place as u8]);
        let sum = bytes.chain(token.bytes()).fold(0x811c_9dc5, step);
        let sum = (sum ^ (sum >> 16)) as u16;
        // At most 65,535: the rest is below the number of ports from the least one on.
        PORT_MIN.saturating_add(sum % (u16::MAX - PORT_MIN + 1))
    })
}

/// The numbers of a visit's connections.
fn numbers(spec: &Spec, visit: usize) -> std::ops::Range<u32> {
    let streams = spec.knobs.streams.max(1);
    let first = (visit as u32).saturating_mul(streams);
    first..first.saturating_add(streams)
}

/// The number of a visit's first connection.
pub(crate) fn number(spec: &Spec, visit: Visit) -> u32 {
    numbers(spec, visit.size).start
}

/// From where these connections of a conversation come.
pub(crate) fn announced(serve: &Serve, numbers: impl Iterator<Item = u32>) -> Announced {
    Announced {
        addresses: serve.peer.map(|address| [address.to_canonical()].into()),
        ports: Some(
            numbers
                .flat_map(|number| ports(&serve.token, number))
                .collect(),
        ),
    }
}

/// From where those of this visit and of the next one come: who is done with one begins the next at once. Within a machine
/// there are no ports.
pub(crate) fn expected(serve: &Serve, visit: usize) -> Announced {
    let spec = &serve.spec;
    if spec.path.is_within_machine() {
        return Announced::default();
    }
    let next = visit.saturating_add(1);
    announced(serve, numbers(spec, visit).chain(numbers(spec, next)))
}

/// The options of connection `number` for each port that it may send from, in turn.
fn sources(measure: &Measure, number: u32, options: Options) -> Vec<Options> {
    if measure.spec.path.is_within_machine() {
        return vec![options];
    }
    let from = ports(&measure.token, number).into_iter();
    let with = |source_port| Options {
        source_port,
        ..options.clone()
    };
    from.map(with).collect()
}

fn no_port(measure: &Measure, options: &Options, source: std::io::Error) -> Error {
    let ip = options.local(measure.peer).ip();
    Error::Control {
        what: format!("find a port of {ip} to send from, of {PORTS} tried from {PORT_MIN} up"),
        source,
    }
}

/// The options of a conversation's first connection: it sends from the first of its ports that no other program has, by TCP
/// and by UDP.
pub(crate) fn sent_from(measure: &Measure) -> Result<Options> {
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrInUse);
    for options in sources(measure, 0, measure.options()) {
        let local = options.local(measure.peer);
        let free = UdpSocket::bind(local).and_then(|_| TcpListener::bind(local));
        match free {
            Ok(_) => return Ok(options),
            // Within a machine a port only names the peer.
            Err(_) if local.port() == 0 => return Ok(options),
            Err(error) => last = error,
        }
    }
    Err(no_port(measure, &measure.options(), last))
}

/// Makes connection `number` from the first port that is free for it.
fn from_a_port<T>(
    measure: &Measure,
    number: u32,
    options: Options,
    connect: impl Fn(Options) -> sonde_channel::Result<T>,
) -> Result<T> {
    let mut last = None;
    for options in sources(measure, number, options.clone()) {
        match connect(options) {
            Ok(made) => return Ok(made),
            // Another socket has the port, or an ended connection to the same peer.
            Err(error) if error.is_of_a_taken_port() => last = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    let last = last.map_or_else(String::new, |error| error.to_string());
    Err(no_port(measure, &options, std::io::Error::other(last)))
}

/// Makes a connection of a conversation, from a port by which the peer knows it.
pub(crate) fn connect<C: ByteStream>(
    measure: &Measure,
    number: u32,
    options: Options,
) -> Result<C> {
    from_a_port(measure, number, options, |options| {
        C::connect(measure.peer, options)
    })
}

/// The same for datagrams.
pub(crate) fn connect_udp(measure: &Measure, visit: Visit) -> Result<Udp> {
    let number = number(&measure.spec, visit);
    from_a_port(measure, number, measure.options(), |options| {
        Udp::connect(measure.peer, options)
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

    fn serve(spec: Spec, peer: Option<&str>) -> Serve {
        Serve {
            spec,
            bind: "127.0.0.1".parse().unwrap(),
            token: crate::token().unwrap(),
            peer: peer.map(|peer| peer.parse().unwrap()),
            flush_neighbour: None,
        }
    }

    #[test]
    fn ports_follow_from_the_token() {
        let tokens: Vec<String> = (0..100).map(|_| crate::token().unwrap()).collect();
        let mut seen = std::collections::BTreeSet::new();
        for token in &tokens {
            assert_eq!(ports(token, 3), ports(token, 3));
            assert!(ports(token, 3).iter().all(|port| *port >= PORT_MIN));
            seen.extend(ports(token, 3));
        }
        // 1,600 draws of 4,536 ports: 1,349 of them at the mean.
        assert!(seen.len() > 1_200, "{}", seen.len());
        let spec = Spec::new(Probe::Latency, Path::Tcp, Wait::Block);
        let from = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let one = serve(spec.clone(), Some("127.0.0.1"));
        let now = expected(&one, 1);
        for number in 1..=2 {
            assert!(
                ports(&one.token, number)
                    .iter()
                    .all(|port| now.has(from(*port)))
            );
        }
        assert!(!now.has(from(PORT_MIN - 1)));
        let past = ports(&one.token, 0)
            .iter()
            .filter(|port| now.has(from(**port)))
            .count();
        assert!(past < PORTS / 2, "{past} ports of an earlier visit");
        let known = ports(&one.token, 1)[7];
        assert!(!now.has(SocketAddr::from(([127, 0, 0, 2], known))));
        assert!(now.has(SocketAddr::new("::ffff:127.0.0.1".parse().unwrap(), known)));
        // Where the address is not known the port is.
        let anywhere = expected(&serve(spec, None), 1);
        assert!(!anywhere.has(from(1)));
        let unix = serve(Spec::new(Probe::Startup, Path::Unix, Wait::Block), None);
        assert!(expected(&unix, 0).has(from(1)));
    }

    #[test]
    fn each_stream_of_a_visit_has_a_number() {
        let mut spec = Spec::new(Probe::Stream, Path::Tcp, Wait::Block);
        assert_eq!(numbers(&spec, 2), 2..3);
        spec.knobs.streams = 4;
        assert_eq!(numbers(&spec, 2), 8..12);
        let last = Visit {
            size: 3,
            last: true,
        };
        assert_eq!(number(&spec, last), 12);
    }

    #[test]
    fn a_port_that_another_has_is_passed_over() {
        let measure = Measure {
            moments: false,
            spec: Spec::new(Probe::Startup, Path::Udp, Wait::Block),
            peer: SocketAddr::from(([127, 0, 0, 1], 9)),
            token: crate::token().unwrap(),
            flush_neighbour: None,
            source: None,
            begin_ns: None,
        };
        let mut held = Vec::new();
        for _ in 0..PORTS {
            let Ok(options) = sent_from(&measure) else {
                break;
            };
            let port = options.source_port;
            assert!(ports(&measure.token, 0).contains(&port));
            held.push(UdpSocket::bind(("0.0.0.0", port)).unwrap());
        }
        assert!(held.len() > 1, "{}", held.len());
        let error = sent_from(&measure).unwrap_err().to_string();
        assert!(error.contains("to send from, of 16 tried"), "{error}");
        let visit = Visit {
            size: 0,
            last: true,
        };
        let error = connect_udp(&measure, visit).unwrap_err().to_string();
        assert!(error.contains("to send from, of 16 tried"), "{error}");
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
