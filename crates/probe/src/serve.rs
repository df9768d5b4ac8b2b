//! The serving side of a conversation: opens a data port, admits one peer, answers or receives, and reports.
//!
//! Model:   the peer is known by the address and the ports that were announced: whoever else connects is closed as he is accepted,
//!          unread, and counted, while the peer is awaited and while it measures. The wait for a peer sleeps, whatever the
//!          specification says of waiting: what is cold has nobody ready. The receiver of a stream rates it ([`crate::Window`])
//!          and says when that is done.
//! Checked: `tests/conversation.rs`, `tests/hostile.rs`.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use sonde_channel::payload::{self, StreamCheck};
use sonde_channel::{
    Acceptor, Aligned, Announced, BatchReceiver, ByteStream, CONTROL, Channel, Datagram, Inlet,
    Listener, Room, ShmPort, UDP_MESSAGE_BYTES_MAX, Udp, UdpPort, UnixPort, Woken, readable,
};
use sonde_measure::{Buffers, Path, Probe, Procedure, Quota, Spec, Startup, Transfer};
use sonde_sys::clock::monotonic_ns;

use crate::admission::{self, Reply, Say, Verdict, Visit};
use crate::meter::{Meter, Reading};
use crate::moments::Waits;
use crate::numbers::ArrivedNumbers;
use crate::talk::{Serve, Served, SizeServed, options};
use crate::watch::Watch;
use crate::{Error, Result};
use crate::{anatomy, circuit, packet, startup, streams};

/// How often a sender by UDP is told again that its stream has been rated.
const RATED_AGAIN_NS: u64 = 20_000_000;
/// A hello has this part of the timeout.
const HELLO_PART: u32 = 8;
/// A datagram that steers a conversation is at most so long.
const STEERING_BYTES: usize = 4 << 10;
/// Attempts at a port number that is free for TCP and UDP.
const PAIR_TRIES: u32 = 16;

/// An open data port.
pub(crate) enum Port {
    Tcp {
        acceptor: Acceptor,
        /// Where a circuit is to be set up: the same number, for datagrams.
        datagrams: Option<Box<UdpPort>>,
    },
    Udp(UdpPort),
    Unix(UnixPort),
    Shm(ShmPort),
    /// Of frames: the connection beside them.
    Packet(Acceptor),
    /// Of an anatomy, whatever its path: the connection beside the messages.
    Anatomy(Acceptor, Quota),
}

/// Opens the data port.
pub(crate) fn open(serve: &Serve) -> Result<Port> {
    let spec = &serve.spec;
    let local = SocketAddr::new(serve.bind, 0);
    let port = match (spec.path, spec.procedure) {
        (_, Procedure::Anatomy(quota)) => {
            Port::Anatomy(Acceptor::bind(local, packet::beside(spec))?, quota)
        }
        (Path::Tcp, _) if has_circuits(spec) => open_pair(serve)?,
        (Path::Tcp, _) => Port::Tcp {
            acceptor: Acceptor::bind(local, options(spec))?,
            datagrams: None,
        },
        (Path::Udp, _) => Port::Udp(UdpPort::bind(local, options(spec))?),
        (Path::Unix, _) => Port::Unix(UnixPort::bind(options(spec))?),
        (Path::Shm, _) => Port::Shm(ShmPort::bind(options(spec))?),
        (Path::Packet | Path::Xdp, _) => Port::Packet(Acceptor::bind(local, packet::beside(spec))?),
    };
    startup::flush(serve.flush_neighbour.as_deref())?;
    Ok(port)
}

/// Whether a start-up has a step for circuits.
fn has_circuits(spec: &Spec) -> bool {
    matches!(spec.procedure, Procedure::Startup(startup) if startup.has_circuits())
}

fn open_pair(serve: &Serve) -> Result<Port> {
    let options = options(&serve.spec);
    let mut tries = 0;
    loop {
        let acceptor = Acceptor::bind(SocketAddr::new(serve.bind, 0), options.clone())?;
        tries += 1;
        match UdpPort::bind(acceptor.local(), options.clone()) {
            Ok(port) => {
                return Ok(Port::Tcp {
                    acceptor,
                    datagrams: Some(Box::new(port)),
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
            Self::Unix(port) => port.local().port(),
            Self::Shm(port) => port.local().port(),
            Self::Packet(acceptor) | Self::Anatomy(acceptor, _) => acceptor.local().port(),
        }
    }

    /// Has the conversation; gives up waiting for a peer when `stop` can be read.
    pub(crate) fn serve(self, serve: &Serve, stop: BorrowedFd<'_>) -> Result<Served> {
        match self {
            Self::Tcp {
                acceptor,
                datagrams,
            } => stream(acceptor, datagrams, serve, stop),
            Self::Udp(port) => udp(port, serve, stop),
            Self::Unix(port) => stream(port, None, serve, stop),
            Self::Shm(port) => stream(port, None, serve, stop),
            Self::Packet(acceptor) => packet::serve(acceptor, serve, stop),
            Self::Anatomy(acceptor, quota) => anatomy::serve(acceptor, quota, serve, stop),
        }
    }
}

/// The wait for the peer, with those who were turned away.
pub(crate) struct Admission<'a> {
    pub(crate) serve: &'a Serve,
    local: SocketAddr,
    pub(crate) since: Instant,
    refused: u64,
    last: String,
}

impl<'a> Admission<'a> {
    pub(crate) fn new(serve: &'a Serve, local: SocketAddr) -> Self {
        Self {
            serve,
            local,
            since: Instant::now(),
            refused: 0,
            last: String::new(),
        }
    }

    pub(crate) fn left(&self) -> Duration {
        self.serve
            .spec
            .timeout()
            .saturating_sub(self.since.elapsed())
    }

    pub(crate) fn turn_away(&mut self, who: impl std::fmt::Display, why: impl std::fmt::Display) {
        self.refused += 1;
        self.last = format!(" (the last, {who}: {why})");
    }

    /// Whether a datagram may come from there; a stranger is turned away.
    fn expects(&mut self, announced: &Announced, from: SocketAddr) -> bool {
        let is_expected = announced.has(from);
        if !is_expected {
            self.turn_away(from, "not from an address and port of this conversation");
        }
        is_expected
    }

    /// Who was refused so far, those at the port itself among them.
    pub(crate) fn refused_at(&mut self, acceptor: &mut impl Listener) -> u64 {
        let away = acceptor.turned_away();
        self.refused = self.refused.saturating_add(away.count);
        if let Some(last) = away.last {
            self.last = format!(" (the last, {last})");
        }
        self.refused
    }

    /// Waits for a connection of the visit of this number.
    pub(crate) fn accept<L: Listener>(
        &mut self,
        acceptor: &mut L,
        visit: usize,
        stop: BorrowedFd<'_>,
    ) -> Result<L::Stream> {
        acceptor.expect(admission::expected(self.serve, visit));
        self.next(acceptor, stop)
    }

    /// Waits for the next connection that is expected.
    pub(crate) fn next<L: Listener>(
        &mut self,
        acceptor: &mut L,
        stop: BorrowedFd<'_>,
    ) -> Result<L::Stream> {
        match acceptor.accept(Some(stop), self.left()) {
            Ok(accepted) => accepted.ok_or(Error::Abandoned),
            Err(error) => {
                self.refused_at(acceptor);
                Err(self.closed(error))
            }
        }
    }

    /// A time-out becomes the story of the wait.
    pub(crate) fn closed(&self, error: sonde_channel::Error) -> Error {
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

    /// Judges a hello on a byte stream and answers: the visit and the size of its messages, `None` for a stranger.
    pub(crate) fn hello(
        &mut self,
        channel: &mut impl ByteStream,
    ) -> Result<Option<(Visit, usize)>> {
        // Who does not finish his hello keeps others waiting for so long only.
        let limit = self.serve.spec.timeout() / HELLO_PART;
        let said = admission::recv_frame_within::<Say>(channel, Some(limit));
        let Ok(Say::Hello { token, spec, visit }) = said else {
            let why = said
                .err()
                .map_or("an end before a hello".into(), |error| error.to_string());
            self.turn_away(channel.peer(), why);
            return Ok(None);
        };
        let verdict = admission::judge(&self.serve.token, &self.serve.spec, &token, &spec);
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

    /// The other connections of a visit of several streams, behind the first.
    fn others<L: Listener>(
        &mut self,
        acceptor: &mut L,
        first: L::Stream,
        visit: Visit,
        stop: BorrowedFd<'_>,
    ) -> Result<Vec<L::Stream>> {
        let mut channels = vec![first];
        while channels.len() < self.serve.spec.knobs.streams as usize {
            let mut channel = self.next(acceptor, stop)?;
            match self.hello(&mut channel)? {
                Some((other, _)) if other == visit => channels.push(channel),
                Some(_) => {
                    return Err(Error::Integrity(
                        "a connection came of another attempt than the streams before it".into(),
                    ));
                }
                None => {}
            }
        }
        Ok(channels)
    }

    fn size(&self, visit: Visit) -> Result<usize> {
        let none = || Error::Integrity(format!("size number {} was never agreed", visit.size));
        visit.size_bytes(&self.serve.spec).ok_or_else(none)
    }
}

fn stream<L: Listener>(
    mut acceptor: L,
    mut datagrams: Option<Box<UdpPort>>,
    serve: &Serve,
    stop: BorrowedFd<'_>,
) -> Result<Served> {
    let mut admission = Admission::new(serve, acceptor.local());
    let mut served = Served::default();
    loop {
        let visit = served.sizes.len();
        if let Some(port) = &mut datagrams {
            answer_datagrams(port, &acceptor, &mut admission, stop)?;
        }
        // Reading the counters takes its time: of a start-up before anybody comes, else before the hello.
        let before = Watch::begin()?;
        let mut channel = admission.accept(&mut acceptor, visit, stop)?;
        let cold = serve.spec.probe() == Probe::Startup;
        let watch = if cold {
            before
        } else {
            acceptor.watch()?;
            Watch::begin_of(serve.spec.knobs.streams > 1)?
        };
        if let Procedure::Startup(startup) = serve.spec.procedure
            && let Err(error) = answer_cold(&mut channel, startup, serve)
        {
            admission.turn_away(channel.peer(), error);
            continue;
        }
        let Some((visit, size)) = admission.hello(&mut channel)? else {
            continue;
        };
        served.evidence.dst.socket = channel.settings()?;
        let mut one = SizeServed::default();
        match serve.spec.procedure {
            Procedure::Startup(startup) => {
                one.messages = startup.messages().into();
                one.bytes = one.messages * size as u64;
                channel.end_in_silence()?;
            }
            Procedure::Files(_) => unreachable!("files have a server of their own"),
            Procedure::Latency(_)
            | Procedure::Message(_)
            | Procedure::Rate { .. }
            | Procedure::Anatomy(_) => {
                channel.use_method()?;
                echo(&mut channel, serve, size, &mut one)?;
            }
            Procedure::Stream { window_ns } if serve.spec.knobs.streams > 1 => {
                let channels = admission.others(&mut acceptor, channel, visit, stop)?;
                acceptor.watch()?;
                let retransmits = streams::receive(
                    channels,
                    serve,
                    (size, window_ns),
                    &mut one,
                    &mut served.evidence,
                )?;
                watch.end(&mut served.interference, Some(retransmits))?;
                served.refused = admission.refused_at(&mut acceptor);
                served.sizes.push(one);
                if visit.last {
                    return Ok(served);
                }
                admission.since = Instant::now();
                continue;
            }
            Procedure::Stream { window_ns } => {
                let transfer = receive(&mut channel, serve, (size, window_ns), &mut one)?;
                served.evidence.dst.transfer.merge(transfer);
            }
        }
        let account = channel.account()?;
        let retransmits = account.map(|info| info.total_retrans.into());
        watch.end(&mut served.interference, retransmits)?;
        served.refused = admission.refused_at(&mut acceptor);
        served.sizes.push(one);
        if visit.last {
            return Ok(served);
        }
        admission.since = Instant::now();
    }
}

/// Answers the datagrams that set up a circuit until a connection waits. Nobody gets more bytes than he sent.
fn answer_datagrams(
    port: &mut UdpPort,
    acceptor: &impl Listener,
    admission: &mut Admission<'_>,
    stop: BorrowedFd<'_>,
) -> Result<()> {
    let mut buffer = [0; circuit::BYTES];
    let announced = admission::expected(admission.serve, 0);
    loop {
        let left = admission.left();
        let woken = readable(&[stop, acceptor.as_fd(), port.as_fd()], left);
        let woken = woken.map_err(|source| Error::Control {
            what: "wait for a peer".into(),
            source,
        })?;
        if woken != Woken::Readable(2) {
            // The acceptor finds out what it was.
            return Ok(());
        }
        if let Some((circuit::BYTES, from)) = port.recv_from(&mut buffer, Some(stop), left)?
            && admission.expects(&announced, from)
            && circuit::answer(&mut buffer, from.ip(), admission.serve)
        {
            port.send_to(&buffer, from)?;
        }
    }
}

/// The messages of a start-up, there and back.
fn answer_cold(channel: &mut impl ByteStream, startup: Startup, serve: &Serve) -> Result<()> {
    // One size a conversation.
    let size = serve.spec.sizes_bytes[0] as usize;
    let mut message = vec![0; size];
    for sequence in 0..startup.messages() {
        channel.recv(&mut message)?;
        channel.send(&message)?;
        check(&message, sequence, serve, channel.peer())?;
    }
    Ok(())
}

fn check(message: &[u8], sequence: u32, serve: &Serve, peer: SocketAddr) -> Result<()> {
    let checked = if serve.spec.verify {
        payload::verify(message, sequence)
    } else {
        payload::check(message, sequence)
    };
    Ok(checked.map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?)
}

/// Answers until the peer ends the stream.
fn echo(
    channel: &mut impl ByteStream,
    serve: &Serve,
    size: usize,
    one: &mut SizeServed,
) -> Result<()> {
    // What stays in place is answered from here: the pattern of all messages.
    let mut message = Aligned::new(payload::message(size), &serve.spec.knobs)?;
    // Where buffers are cold, what was just received is not: the answer lies elsewhere, with the number that is expected.
    let mut cold = match message.is_cold() {
        true => Some(Aligned::new(payload::message(size), &serve.spec.knobs)?),
        false => None,
    };
    let answer = serve.spec.answer_bytes(size);
    let mut waits = waits(serve);
    loop {
        match channel.recv(&mut message) {
            Ok(()) => {}
            Err(error) if error.is_end() => {
                one.away = waits.and_then(Waits::end);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        let number = one.messages as u32;
        channel.send(&cold.as_ref().unwrap_or(&message)[..answer])?;
        check(&message, number, serve, channel.peer())?;
        message.taken();
        if let Some(cold) = &mut cold {
            cold.used(number);
        }
        one.messages += 1;
        one.bytes += size as u64;
        if let Some(waits) = &mut waits {
            waits.passed();
        }
    }
}

/// When the answering thread waits for a CPU, where single samples are taken.
fn waits(serve: &Serve) -> Option<Waits> {
    matches!(serve.spec.probe(), Probe::Latency | Probe::Message).then(Waits::begin)
}

/// Receives and rates one stream; what is to be known of how it was received.
fn receive(
    channel: &mut impl ByteStream,
    serve: &Serve,
    (size, window_ns): (usize, u64),
    one: &mut SizeServed,
) -> Result<Transfer> {
    let peer = channel.peer();
    let mut inlet = Inlet::open(channel)?;
    let mut stream = StreamCheck::new(size, serve.spec.verify);
    let mut meter = Meter::new(window_ns);
    let (mut waits, mut told) = (Waits::of_stream(), false);
    loop {
        let came = inlet.recv_some(channel)?;
        if came.is_empty() {
            break;
        }
        let now_ns = monotonic_ns();
        waits.passed();
        meter.on_arrival(now_ns, came.len() as u64, || {
            let account = channel.account().ok().flatten();
            Reading {
                came_bytes: account.and_then(|info| info.bytes_received),
                ..Reading::of_thread()
            }
        });
        stream
            .on_bytes(came)
            .map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?;
        if meter.is_over() && !told {
            told = true;
            channel.send(&[0])?;
        }
    }
    one.bytes = meter.bytes();
    one.messages = stream.messages().into();
    one.window = Some(meter.window()?);
    one.slices = meter.slices(waits);
    one.slots = meter.into_slots();
    Ok(inlet.transfer())
}

fn udp(mut port: UdpPort, serve: &Serve, stop: BorrowedFd<'_>) -> Result<Served> {
    let mut admission = Admission::new(serve, port.local());
    let mut served = Served::default();
    let mut cold = SizeServed::default();
    // Who was here, in order.
    let mut gone: Vec<SocketAddr> = Vec::new();
    let mut watch = Watch::begin()?;
    loop {
        let announced = admission::expected(serve, served.sizes.len());
        let last = gone.last().copied();
        let hello = admission.hello_udp(&mut port, stop, (&announced, last), &mut cold)?;
        if serve.spec.probe() != Probe::Startup {
            // Here, so that the peer's first message does not wait for it.
            watch = Watch::begin()?;
        }
        let accepted = admission::datagram(&Verdict::Accept.reply())?;
        served.refused = admission.refused;
        served.evidence.dst.socket = port.settings()?;
        if serve.spec.probe() == Probe::Startup {
            port.send_to(&accepted, hello.from)?;
            watch.end(&mut served.interference, None)?;
            served.sizes.push(cold);
            return Ok(served);
        }
        let mut channel = port.join(hello.from)?;
        let size = admission.size(hello.visit)?;
        // What others sent before stays in the socket's queue and would pass for the peer's, who is silent until he is
        // accepted.
        while channel.recv_now(&mut [0; 1])? != Datagram::Silence {}
        channel.send(&accepted)?;
        let one = visited(&mut channel, serve, size, &mut served.evidence.dst.transfer);
        admission.refused += channel.strangers(|from| gone.contains(&from));
        served.refused = admission.refused;
        // In this order: the next visit comes from another socket as soon as its peer heard that this one has ended.
        port = channel.leave()?;
        port.send_to(&admission::datagram(&Reply::Ended {})?, hello.from)?;
        watch.end(&mut served.interference, None)?;
        served.sizes.push(one?);
        if hello.visit.last {
            return Ok(served);
        }
        watch = Watch::begin()?;
        gone.push(hello.from);
        admission.since = Instant::now();
    }
}

/// Our peer's hello by UDP, not yet answered.
struct Hello {
    from: SocketAddr,
    visit: Visit,
}

impl Admission<'_> {
    /// Waits for our peer's hello, from where it is announced; answers what comes before it, and `gone`, who has been here
    /// already.
    fn hello_udp(
        &mut self,
        port: &mut UdpPort,
        stop: BorrowedFd<'_>,
        (announced, gone): (&Announced, Option<SocketAddr>),
        cold: &mut SizeServed,
    ) -> Result<Hello> {
        let mut buffer = vec![0; UDP_MESSAGE_BYTES_MAX];
        loop {
            let came = port
                .recv_from(&mut buffer, Some(stop), self.left())
                .map_err(|error| self.closed(error))?;
            let (size, from) = came.ok_or(Error::Abandoned)?;
            if gone != Some(from) && !self.expects(announced, from) {
                continue;
            }
            let bytes = &mut buffer[..size];
            if has_circuits(&self.serve.spec) && circuit::answer(bytes, from.ip(), self.serve) {
                port.send_to(bytes, from)?;
                continue;
            }
            let (token, spec, visit) = match admission::control::<Say>(bytes) {
                None if gone == Some(from) => continue, // What was still under way.
                None if is_cold(self.serve, size) => {
                    // Known by its port alone it gets its own bytes back and no more; who it was, the hello will say.
                    port.send_to(bytes, from)?;
                    cold.messages += 1;
                    cold.bytes += size as u64;
                    continue;
                }
                None => {
                    self.turn_away(from, format!("a message of {size} bytes without a hello"));
                    continue;
                }
                Some(Ok(Say::Hello { token, spec, visit })) => (token, spec, visit),
                Some(Ok(Say::End { .. })) if gone == Some(from) => {
                    port.send_to(&admission::datagram(&Reply::Ended {})?, from)?;
                    continue;
                }
                Some(_) => {
                    self.turn_away(from, "an end or a protocol violation before a hello");
                    continue;
                }
            };
            let verdict = admission::judge(&self.serve.token, &self.serve.spec, &token, &spec);
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
    let spec = &serve.spec;
    spec.probe() == Probe::Startup && size as u64 == spec.sizes_bytes[0]
}

fn visited(
    channel: &mut Udp,
    serve: &Serve,
    size: usize,
    transfer: &mut Transfer,
) -> Result<SizeServed> {
    channel.set_resend_after(serve.spec.timeout())?;
    match serve.spec.procedure {
        Procedure::Stream { window_ns } => count(channel, serve, (size, window_ns), transfer),
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
        // A shorter one steers nothing; what follows it in the buffer is of an earlier one.
        let may_steer = wanted_bytes >= CONTROL.len() && buffer.first_chunk() == Some(CONTROL);
        if came == Datagram::Of(wanted_bytes) && !may_steer {
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
        let waited = serve.spec.timeout();
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

/// Whether a message has this number, as far as it has room for one.
#[inline]
pub(crate) fn is_numbered(message: &[u8], number: u32) -> bool {
    payload::check(message, number).is_ok()
}

fn echo_datagrams(channel: &mut Udp, serve: &Serve, size: usize) -> Result<SizeServed> {
    let knobs = &serve.spec.knobs;
    let answer = serve.spec.answer_bytes(size);
    let mut one = SizeServed::default();
    // What steers a conversation must fit too.
    let room = match knobs.buffers {
        Buffers::Warm => UDP_MESSAGE_BYTES_MAX,
        Buffers::Cold => size.max(STEERING_BYTES),
    };
    let mut buffer = Room::new(room, knobs)?;
    let mut cold = match knobs.buffers {
        Buffers::Warm => None,
        Buffers::Cold => Some((Aligned::new(payload::message(size), knobs)?, 0)),
    };
    let mut waits = waits(serve);
    loop {
        match next(channel, buffer.piece(), serve, size)? {
            Came::End { .. } => {
                one.away = waits.and_then(Waits::end);
                return Ok(one);
            }
            Came::Message(size) => {
                let message = &buffer.piece()[..size];
                match &mut cold {
                    // A ping that was sent again is answered as it is.
                    Some((own, number)) if is_numbered(message, *number) => {
                        channel.send(&own[..answer])?;
                        own.used(*number);
                        *number = number.wrapping_add(1);
                    }
                    _ => channel.send(&message[..answer])?,
                }
                buffer.taken(size);
                one.messages += 1;
                one.bytes += size as u64;
                if let Some(waits) = &mut waits {
                    waits.passed();
                }
            }
        }
    }
}

/// Receives, rates and counts a blast of numbered datagrams.
fn count(
    channel: &mut Udp,
    serve: &Serve,
    (size, window_ns): (usize, u64),
    transfer: &mut Transfer,
) -> Result<SizeServed> {
    let mut burst = BatchReceiver::open(channel, size)?;
    let mut meter = Meter::new(window_ns);
    let mut waits = Waits::of_stream();
    let mut seen = ArrivedNumbers::default();
    let (mut tell_ns, mut sent) = (0, None);
    while sent.is_none() {
        let came = burst.recv(channel)?;
        if came == 0 {
            steered(channel, Datagram::Silence, &[], serve, size)?;
        }
        let mut bytes = 0;
        for index in 0..came {
            let (message, whole) = burst.datagram(index);
            if whole != size || message.first_chunk() == Some(CONTROL) {
                let datagram = Datagram::Of(whole);
                if let Some(Came::End { messages }) =
                    steered(channel, datagram, message, serve, size)?
                {
                    sent = Some(messages);
                }
                continue;
            }
            let number = payload::sequence(message).unwrap_or(0);
            check(message, number, serve, channel.peer())?;
            seen.on_number(number);
            bytes += size as u64;
        }
        if bytes > 0 {
            let now_ns = monotonic_ns();
            waits.passed();
            meter.on_arrival(now_ns, bytes, Reading::of_thread);
            if meter.is_over() && now_ns >= tell_ns {
                tell_ns = now_ns + RATED_AGAIN_NS;
                channel.send(&admission::datagram(&Reply::Rated {})?)?;
            }
        }
    }
    let sent = sent.unwrap_or(0);
    transfer.merge(burst.transfer());
    if sent < seen.distinct {
        return Err(Error::Integrity(format!(
            "{} datagrams of {sent} arrived",
            seen.distinct
        )));
    }
    Ok(SizeServed {
        away: None,
        bytes: meter.bytes(),
        messages: seen.distinct,
        lost: Some(sent - seen.distinct),
        reordered: Some(seen.reordered),
        duplicated: Some(seen.duplicated),
        window: Some(meter.window()?),
        slices: meter.slices(waits),
        slots: meter.into_slots(),
    })
}
