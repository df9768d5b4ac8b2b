//! The serving side of a conversation: opens a data port, admits one peer, answers or receives, and reports.
//!
//! Model:   strangers are turned away and counted while the peer is awaited; at its last visit the port is closed to
//!          others. The wait for a peer sleeps, whatever the terms say of waiting: what is cold has nobody ready. The
//!          receiver of a stream rates it ([`crate::Window`]) and says when that is done.
//! Checked: `tests/conversation.rs`.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use sonde_channel::payload::{self, StreamCheck};
use sonde_channel::{
    Acceptor, CONTROL, Channel, Datagram, Path, Tcp, UDP_MESSAGE_BYTES_MAX, Udp, UdpPort, Woken,
    readable,
};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::thread_cpu_ns;

use crate::admission::{self, Reply, Say, Verdict, Visit};
use crate::meter::Meter;
use crate::seen::Seen;
use crate::talk::{Serve, Served, SizeServed};
use crate::watch::Watch;
use crate::{Error, Probe, Result};
use crate::{circuit, startup};

const RECV_BUFFER_BYTES: usize = 256 << 10;
/// How often a sender by UDP is told again that its stream has been rated.
const RATED_AGAIN_NS: u64 = 20_000_000;
/// A hello has this part of the patience.
const HELLO_PART: u32 = 8;
/// Attempts at a port number that is free for TCP and UDP.
const PAIR_TRIES: u32 = 16;

/// An open data port.
pub(crate) enum Port {
    Tcp {
        acceptor: Acceptor,
        /// Where a circuit is to be set up: the same number, for datagrams.
        datagrams: Option<UdpPort>,
    },
    Udp(UdpPort),
}

/// Opens the data port.
pub(crate) fn open(serve: &Serve) -> Result<Port> {
    let terms = &serve.terms;
    terms.check()?;
    let local = SocketAddr::new(serve.bind, 0);
    let port = match terms.path {
        Path::Tcp if terms.parts && terms.circuits => open_pair(serve)?,
        Path::Tcp => Port::Tcp {
            acceptor: Acceptor::bind(local, terms.options())?,
            datagrams: None,
        },
        Path::Udp => Port::Udp(UdpPort::bind(local, terms.options())?),
    };
    startup::flush(serve.flush_neighbour.as_deref())?;
    Ok(port)
}

fn open_pair(serve: &Serve) -> Result<Port> {
    let options = serve.terms.options();
    let mut tries = 0;
    loop {
        let acceptor = Acceptor::bind(SocketAddr::new(serve.bind, 0), options.clone())?;
        tries += 1;
        match UdpPort::bind(acceptor.local(), options.clone()) {
            Ok(port) => {
                return Ok(Port::Tcp {
                    acceptor,
                    datagrams: Some(port),
                });
            }
            // Another program has the number for datagrams.
            Err(_) if tries < PAIR_TRIES => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Port {
    pub(crate) fn number(&self) -> u16 {
        match self {
            Self::Tcp { acceptor, .. } => acceptor.local().port(),
            Self::Udp(port) => port.local().port(),
        }
    }

    /// Has the conversation; gives up waiting for a peer when `stop` can be read.
    pub(crate) fn serve(self, serve: &Serve, stop: BorrowedFd<'_>) -> Result<Served> {
        match self {
            Self::Tcp {
                acceptor,
                datagrams,
            } => tcp(acceptor, datagrams, serve, stop),
            Self::Udp(port) => udp(port, serve, stop),
        }
    }
}

/// The wait for the peer, with those who were turned away.
struct Door<'a> {
    serve: &'a Serve,
    local: SocketAddr,
    since: Instant,
    refused: u64,
    last: String,
}

impl<'a> Door<'a> {
    fn new(serve: &'a Serve, local: SocketAddr) -> Self {
        Self {
            serve,
            local,
            since: Instant::now(),
            refused: 0,
            last: String::new(),
        }
    }

    fn left(&self) -> Duration {
        self.serve
            .terms
            .patience()
            .saturating_sub(self.since.elapsed())
    }

    fn turn_away(&mut self, who: impl std::fmt::Display, why: impl std::fmt::Display) {
        self.refused += 1;
        self.last = format!(" (the last, {who}: {why})");
    }

    /// A time-out becomes the story of the wait.
    fn closed(&self, error: sonde_channel::Error) -> Error {
        match error {
            sonde_channel::Error::Timeout { .. } => Error::NoPeer {
                local: self.local,
                waited: self.since.elapsed(),
                refused: self.refused,
                last: self.last.clone(),
            },
            other => other.into(),
        }
    }

    /// Judges a hello by TCP and answers: the visit and the size of its messages, `None` for a stranger.
    fn hello(&mut self, channel: &mut Tcp) -> Result<Option<(Visit, usize)>> {
        // Who does not finish his hello keeps others waiting for so long only.
        let limit = self.serve.terms.patience() / HELLO_PART;
        let said = admission::recv_frame_within::<Say>(channel, Some(limit));
        let Ok(Say::Hello {
            token,
            terms,
            visit,
        }) = said
        else {
            let why = said
                .err()
                .map_or("an end before a hello".into(), |error| error.to_string());
            self.turn_away(channel.peer(), why);
            return Ok(None);
        };
        let verdict = admission::judge(&self.serve.token, &self.serve.terms, &token, &terms);
        let told = admission::send_frame(channel, &verdict.reply());
        match verdict {
            Verdict::Accept => told.and_then(|()| Ok(Some((visit, self.size(visit)?)))),
            Verdict::Stranger => {
                self.turn_away(channel.peer(), "wrong token");
                Ok(None)
            }
            Verdict::Mismatch(difference) => Err(Error::Integrity(difference)),
        }
    }

    fn size(&self, visit: Visit) -> Result<usize> {
        let none = || Error::Integrity(format!("size number {} was never agreed", visit.size));
        visit.size_bytes(&self.serve.terms).ok_or_else(none)
    }
}

fn tcp(
    mut acceptor: Acceptor,
    mut datagrams: Option<UdpPort>,
    serve: &Serve,
    stop: BorrowedFd<'_>,
) -> Result<Served> {
    let mut door = Door::new(serve, acceptor.local());
    let mut served = Served::default();
    loop {
        if let Some(port) = &mut datagrams {
            answer_datagrams(port, &acceptor, serve, stop, door.left())?;
        }
        // Reading the counters takes its time: of a start-up before anybody comes, else before the hello.
        let before = Watch::begin()?;
        let accepted = acceptor
            .accept(Some(stop), door.left())
            .map_err(|error| door.closed(error))?;
        let mut channel = accepted.ok_or(Error::Abandoned)?;
        let cold = serve.terms.probe == Probe::Startup;
        let watch = if cold { before } else { Watch::begin()? };
        if cold {
            if let Err(error) = answer_cold(&mut channel, serve) {
                door.turn_away(channel.peer(), error);
                continue;
            }
        }
        let Some((visit, size)) = door.hello(&mut channel)? else {
            continue;
        };
        let settings = channel.settings()?;
        let mut one = SizeServed::default();
        match serve.terms.probe {
            Probe::Startup => {
                one.messages = serve.terms.startup_messages().into();
                one.bytes = one.messages * size as u64;
                channel.end_in_silence()?;
            }
            Probe::Latency | Probe::Message | Probe::Rate => {
                echo(&mut channel, serve, size, &mut one)?
            }
            Probe::Stream => receive(&mut channel, serve, size, &mut one)?,
        }
        let retransmits = channel.info()?.total_retrans.into();
        watch.end(&mut served.interference, Some(retransmits))?;
        served.settings.extend(settings.named("dst_"));
        served.refused = door.refused;
        served.sizes.push(one);
        if visit.last {
            return Ok(served);
        }
        door.since = Instant::now();
    }
}

/// Answers the datagrams that set up a circuit until a connection waits. Nobody gets more bytes than he sent.
fn answer_datagrams(
    port: &mut UdpPort,
    acceptor: &Acceptor,
    serve: &Serve,
    stop: BorrowedFd<'_>,
    patience: Duration,
) -> Result<()> {
    let mut buffer = [0; circuit::BYTES];
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let woken = readable(&[stop, acceptor.as_fd(), port.as_fd()], left);
        let woken = woken.map_err(|source| Error::Control {
            what: "wait for a peer".into(),
            source,
        })?;
        if woken != Woken::Readable(2) {
            // The acceptor finds out what it was.
            return Ok(());
        }
        if let Some((circuit::BYTES, from)) = port.recv_from(&mut buffer, Some(stop), left)? {
            if circuit::answer(&mut buffer, from.ip(), serve) {
                port.send_to(&buffer, from)?;
            }
        }
    }
}

/// The messages of a start-up, there and back.
fn answer_cold(channel: &mut Tcp, serve: &Serve) -> Result<()> {
    // One size a conversation.
    let size = serve.terms.sizes_bytes[0] as usize;
    let mut message = vec![0; size];
    for sequence in 0..serve.terms.startup_messages() {
        channel.recv(&mut message)?;
        channel.send(&message)?;
        check(&message, sequence, serve, channel.peer())?;
    }
    Ok(())
}

fn check(message: &[u8], sequence: u32, serve: &Serve, peer: SocketAddr) -> Result<()> {
    let checked = if serve.terms.verify {
        payload::verify(message, sequence)
    } else {
        payload::check(message, sequence)
    };
    Ok(checked.map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?)
}

/// Answers until the peer ends the stream.
fn echo(channel: &mut Tcp, serve: &Serve, size: usize, one: &mut SizeServed) -> Result<()> {
    let mut message = vec![0; size];
    let answer = serve.terms.answer_bytes(size);
    loop {
        match channel.recv(&mut message) {
            Ok(()) => {}
            Err(error) if error.is_end() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        channel.send(&message[..answer])?;
        check(&message, one.messages as u32, serve, channel.peer())?;
        one.messages += 1;
        one.bytes += size as u64;
    }
}

/// Receives and rates a stream.
fn receive(channel: &mut Tcp, serve: &Serve, size: usize, one: &mut SizeServed) -> Result<()> {
    let peer = channel.peer();
    let mut buffer = vec![0; RECV_BUFFER_BYTES];
    let mut stream = StreamCheck::new(size, serve.terms.verify);
    let mut meter = Meter::new(serve.terms.budget_ns);
    let mut told = false;
    loop {
        let received = channel.recv_some(&mut buffer)?;
        if received == 0 {
            break;
        }
        meter.on_arrival(monotonic_ns(), received as u64, thread_cpu_ns);
        stream
            .on_bytes(&buffer[..received])
            .map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?;
        if meter.is_over() && !told {
            told = true;
            channel.send(&[0])?;
        }
    }
    one.bytes = meter.bytes();
    one.messages = stream.messages().into();
    one.window = Some(meter.window()?);
    one.slots = meter.into_slots();
    Ok(())
}

fn udp(mut port: UdpPort, serve: &Serve, stop: BorrowedFd<'_>) -> Result<Served> {
    let mut door = Door::new(serve, port.local());
    let mut served = Served::default();
    let mut cold = SizeServed::default();
    let mut gone = None;
    let mut watch = Watch::begin()?;
    loop {
        let hello = door.hello_udp(&mut port, stop, gone, &mut cold)?;
        if serve.terms.probe != Probe::Startup {
            // Here, so that the peer's first message does not wait for it.
            watch = Watch::begin()?;
        }
        let accepted = admission::datagram(&Verdict::Accept.reply())?;
        served.refused = door.refused;
        served.settings = port.settings()?.named("dst_");
        if serve.terms.probe == Probe::Startup {
            port.send_to(&accepted, hello.from)?;
            watch.end(&mut served.interference, None)?;
            served.sizes.push(cold);
            return Ok(served);
        }
        let mut channel = port.join(hello.from)?;
        // What others sent before stays in the socket's queue and would pass for the peer's, who is silent until he is
        // accepted.
        while channel.recv_now(&mut [0; 1])? != Datagram::Silence {}
        channel.send(&accepted)?;
        let one = visited(&mut channel, serve, door.size(hello.visit)?);
        // In this order: the next visit comes from another socket as soon as its peer heard that this one has ended.
        port = channel.leave()?;
        port.send_to(&admission::datagram(&Reply::Ended {})?, hello.from)?;
        watch.end(&mut served.interference, None)?;
        served.sizes.push(one?);
        if hello.visit.last {
            return Ok(served);
        }
        watch = Watch::begin()?;
        gone = Some(hello.from);
        door.since = Instant::now();
    }
}

/// Our peer's hello by UDP, not yet answered.
struct Hello {
    from: SocketAddr,
    visit: Visit,
}

impl Door<'_> {
    /// Waits for our peer's hello; answers what comes before it, and `gone`, who has been here already.
    fn hello_udp(
        &mut self,
        port: &mut UdpPort,
        stop: BorrowedFd<'_>,
        gone: Option<SocketAddr>,
        cold: &mut SizeServed,
    ) -> Result<Hello> {
        let mut buffer = vec![0; UDP_MESSAGE_BYTES_MAX];
        loop {
            let came = port
                .recv_from(&mut buffer, Some(stop), self.left())
                .map_err(|error| self.closed(error))?;
            let (size, from) = came.ok_or(Error::Abandoned)?;
            let bytes = &mut buffer[..size];
            if self.serve.terms.circuits && circuit::answer(bytes, from.ip(), self.serve) {
                port.send_to(bytes, from)?;
                continue;
            }
            let (token, terms, visit) = match admission::control::<Say>(bytes) {
                None if gone == Some(from) => continue, // What was still under way.
                None if is_cold(self.serve, size) => {
                    // An unknown peer gets its own bytes back and no more; who it was, the hello will say.
                    port.send_to(bytes, from)?;
                    cold.messages += 1;
                    cold.bytes += size as u64;
                    continue;
                }
                None => {
                    self.turn_away(from, format!("a message of {size} bytes without a hello"));
                    continue;
                }
                Some(Ok(Say::Hello {
                    token,
                    terms,
                    visit,
                })) => (token, terms, visit),
                Some(Ok(Say::End { .. })) if gone == Some(from) => {
                    port.send_to(&admission::datagram(&Reply::Ended {})?, from)?;
                    continue;
                }
                Some(_) => {
                    self.turn_away(from, "an end or nonsense without a hello");
                    continue;
                }
            };
            let verdict = admission::judge(&self.serve.token, &self.serve.terms, &token, &terms);
            if let Verdict::Accept = verdict {
                return Ok(Hello { from, visit });
            }
            port.send_to(&admission::datagram(&verdict.reply())?, from)?;
            match verdict {
                Verdict::Mismatch(difference) => return Err(Error::Integrity(difference)),
                _ => self.turn_away(from, "wrong token"),
            }
        }
    }
}

/// Whether a datagram may be one of a start-up.
fn is_cold(serve: &Serve, size: usize) -> bool {
    let terms = &serve.terms;
    terms.probe == Probe::Startup && size as u64 == terms.sizes_bytes[0]
}

fn visited(channel: &mut Udp, serve: &Serve, size: usize) -> Result<SizeServed> {
    channel.set_resend_after(serve.terms.patience())?;
    match serve.terms.probe {
        Probe::Stream => count(channel, serve, size),
        _ => echo_datagrams(channel, serve, size),
    }
}

/// What came to a joined UDP port.
enum Came {
    Message(usize),
    End { messages: u64 },
}

/// The next message or the end; a hello whose answer was lost is answered again.
#[inline]
fn next(channel: &mut Udp, buffer: &mut [u8], serve: &Serve, wanted_bytes: usize) -> Result<Came> {
    loop {
        let came = channel.recv_datagram(buffer)?;
        if came == Datagram::Of(wanted_bytes) && buffer.first_chunk() != Some(CONTROL) {
            return Ok(Came::Message(wanted_bytes));
        }
        if let Some(end) = steered(channel, came, buffer, serve, wanted_bytes)? {
            return Ok(end);
        }
    }
}

/// What is no message of the agreed size: the end, or `None` for what was answered.
#[cold]
fn steered(
    channel: &mut Udp,
    came: Datagram,
    buffer: &[u8],
    serve: &Serve,
    wanted_bytes: usize,
) -> Result<Option<Came>> {
    let peer = channel.peer();
    let Datagram::Of(size) = came else {
        let awaited = format!("a message of {wanted_bytes} bytes, or the end");
        let waited = serve.terms.patience();
        return Err(sonde_channel::Error::Timeout {
            peer,
            awaited,
            waited,
        }
        .into());
    };
    match admission::control::<Say>(&buffer[..size.min(buffer.len())]) {
        None => Err(sonde_channel::Error::Size {
            peer,
            found_bytes: size,
            wanted_bytes,
        }
        .into()),
        Some(Ok(Say::End { messages })) => Ok(Some(Came::End { messages })),
        Some(Ok(Say::Hello { .. })) => {
            channel.send(&admission::datagram(&Reply::Accepted {})?)?;
            Ok(None)
        }
        Some(Err(error)) => Err(error),
    }
}

fn echo_datagrams(channel: &mut Udp, serve: &Serve, size: usize) -> Result<SizeServed> {
    let mut buffer = vec![0; UDP_MESSAGE_BYTES_MAX];
    let answer = serve.terms.answer_bytes(size);
    let mut one = SizeServed::default();
    loop {
        match next(channel, &mut buffer, serve, size)? {
            Came::End { .. } => return Ok(one),
            Came::Message(size) => {
                channel.send(&buffer[..answer])?;
                one.messages += 1;
                one.bytes += size as u64;
            }
        }
    }
}

/// Receives, rates and counts a blast of numbered datagrams.
fn count(channel: &mut Udp, serve: &Serve, size: usize) -> Result<SizeServed> {
    let mut buffer = vec![0; UDP_MESSAGE_BYTES_MAX];
    let mut meter = Meter::new(serve.terms.budget_ns);
    let mut seen = Seen::default();
    let mut tell_ns = 0;
    let sent = loop {
        match next(channel, &mut buffer, serve, size)? {
            Came::End { messages } => break messages,
            Came::Message(size) => {
                let now_ns = monotonic_ns();
                meter.on_arrival(now_ns, size as u64, thread_cpu_ns);
                let message = &buffer[..size];
                let number = payload::sequence(message).unwrap_or(0);
                check(message, number, serve, channel.peer())?;
                seen.on_number(number);
                if meter.is_over() && now_ns >= tell_ns {
                    tell_ns = now_ns + RATED_AGAIN_NS;
                    channel.send(&admission::datagram(&Reply::Rated {})?)?;
                }
            }
        }
    };
    if sent < seen.distinct {
        return Err(Error::Integrity(format!(
            "{} datagrams came of {sent} sent",
            seen.distinct
        )));
    }
    Ok(SizeServed {
        bytes: meter.bytes(),
        messages: seen.distinct,
        lost: Some(sent - seen.distinct),
        reordered: Some(seen.reordered),
        duplicated: Some(seen.duplicated),
        window: Some(meter.window()?),
        slots: meter.into_slots(),
    })
}
