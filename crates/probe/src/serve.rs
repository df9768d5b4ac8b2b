//! The serving side of a conversation: opens a data port, admits one peer, answers or receives, and reports.
//!
//! Model:   strangers are turned away and counted while the peer is awaited; once it is there the port is closed to
//!          others. The receiver of a stream rates it ([`crate::Window`]).
//! Checked: `tests/conversation.rs`.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use sonde_channel::payload::{self, StreamCheck};
use sonde_channel::{Acceptor, Channel, Datagram, Path, Tcp, UDP_MESSAGE_BYTES_MAX, Udp, UdpPort};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::thread_cpu_ns;

use crate::admission::{self, Reply, Say, Verdict};
use crate::meter::Meter;
use crate::{Error, Probe, Result, Serve, Served, startup};

const RECV_BUFFER_BYTES: usize = 256 << 10;

/// An open data port.
pub(crate) enum Port {
    Tcp(Acceptor),
    Udp(UdpPort),
}

/// Opens the data port.
pub(crate) fn open(serve: &Serve) -> Result<Port> {
    serve.terms.check()?;
    startup::flush(serve.flush_neighbour.as_deref())?;
    let local = SocketAddr::new(serve.bind, 0);
    let options = serve.terms.options();
    Ok(match serve.terms.path {
        Path::Tcp => Port::Tcp(Acceptor::bind(local, options)?),
        Path::Udp => Port::Udp(UdpPort::bind(local, options)?),
    })
}

impl Port {
    pub(crate) fn number(&self) -> u16 {
        match self {
            Self::Tcp(acceptor) => acceptor.local().port(),
            Self::Udp(port) => port.local().port(),
        }
    }

    /// Has the conversation; gives up waiting for a peer when `stop` can be read.
    pub(crate) fn serve(self, serve: &Serve, stop: BorrowedFd<'_>) -> Result<Served> {
        let cpu_begin_ns = thread_cpu_ns();
        let mut served = match self {
            Self::Tcp(acceptor) => tcp(acceptor, serve, stop)?,
            Self::Udp(port) => udp(port, serve, stop)?,
        };
        served.cpu_ns = thread_cpu_ns() - cpu_begin_ns;
        Ok(served)
    }
}

fn nothing() -> Served {
    Served {
        bytes: 0,
        messages: 0,
        cpu_ns: 0,
        refused: 0,
        settings: None,
        window: None,
        bytes_per_100ms: Vec::new(),
        lost: None,
        reordered: None,
        duplicated: None,
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

    /// Judges a hello by TCP and answers: whether it was the last, `None` for a stranger.
    fn hello(&mut self, channel: &mut Tcp) -> Result<Option<bool>> {
        let said = admission::recv_frame::<Say>(channel);
        let Ok(Say::Hello { token, terms, last }) = said else {
            let why = said
                .err()
                .map_or("an end before a hello".into(), |error| error.to_string());
            self.turn_away(channel.peer(), why);
            return Ok(None);
        };
        let verdict = admission::judge(&self.serve.token, &self.serve.terms, &token, &terms);
        let told = admission::send_frame(channel, &verdict.reply());
        match verdict {
            Verdict::Accept => told.map(|()| Some(last)),
            Verdict::Stranger => {
                self.turn_away(channel.peer(), "wrong token");
                Ok(None)
            }
            Verdict::Mismatch(difference) => Err(Error::Integrity(difference)),
        }
    }
}

fn tcp(mut acceptor: Acceptor, serve: &Serve, stop: BorrowedFd<'_>) -> Result<Served> {
    let mut door = Door::new(serve, acceptor.local());
    let mut served = nothing();
    loop {
        let accepted = acceptor
            .accept(Some(stop), door.left())
            .map_err(|error| door.closed(error))?;
        let mut channel = accepted.ok_or(Error::Abandoned)?;
        if serve.terms.probe == Probe::Startup {
            if let Err(error) = answer_twice(&mut channel, serve) {
                door.turn_away(channel.peer(), error);
                continue;
            }
        }
        let Some(last) = door.hello(&mut channel)? else {
            continue;
        };
        served.refused = door.refused;
        served.settings = Some(channel.settings()?);
        match serve.terms.probe {
            Probe::Startup => {
                served.messages += 2;
                served.bytes += 2 * serve.terms.size_bytes;
                if last {
                    return Ok(served);
                }
                door.since = Instant::now();
            }
            Probe::Latency => {
                drop(acceptor);
                return echo(&mut channel, serve, served);
            }
            Probe::Throughput => {
                drop(acceptor);
                return receive(&mut channel, serve, served);
            }
        }
    }
}

/// The two messages of a start-up, there and back.
fn answer_twice(channel: &mut Tcp, serve: &Serve) -> Result<()> {
    let mut message = vec![0; serve.terms.size()];
    for sequence in 0..2 {
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
fn echo(channel: &mut Tcp, serve: &Serve, mut served: Served) -> Result<Served> {
    let mut message = vec![0; serve.terms.size()];
    loop {
        match channel.recv(&mut message) {
            Ok(()) => {}
            Err(error) if error.is_end() => return Ok(served),
            Err(error) => return Err(error.into()),
        }
        channel.send(&message)?;
        check(&message, served.messages as u32, serve, channel.peer())?;
        served.messages += 1;
        served.bytes += message.len() as u64;
    }
}

/// Receives and rates a stream.
fn receive(channel: &mut Tcp, serve: &Serve, mut served: Served) -> Result<Served> {
    let peer = channel.peer();
    let mut buffer = vec![0; RECV_BUFFER_BYTES];
    let mut stream = StreamCheck::new(serve.terms.size(), serve.terms.verify);
    let mut meter = Meter::new(serve.terms.budget_ns);
    loop {
        let received = channel.recv_some(&mut buffer)?;
        if received == 0 {
            break;
        }
        meter.on_arrival(monotonic_ns(), received as u64, thread_cpu_ns);
        stream
            .on_bytes(&buffer[..received])
            .map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?;
    }
    served.bytes = meter.bytes();
    served.messages = stream.messages().into();
    served.window = Some(meter.window()?);
    served.bytes_per_100ms = meter.into_slots();
    Ok(served)
}

fn udp(mut port: UdpPort, serve: &Serve, stop: BorrowedFd<'_>) -> Result<Served> {
    let mut door = Door::new(serve, port.local());
    let mut served = nothing();
    let mut buffer = vec![0; UDP_MESSAGE_BYTES_MAX];
    let cold = serve.terms.probe == Probe::Startup;
    loop {
        let came = port
            .recv_from(&mut buffer, Some(stop), door.left())
            .map_err(|error| door.closed(error))?;
        let (size, from) = came.ok_or(Error::Abandoned)?;
        let bytes = &buffer[..size];
        let Some(said) = admission::control::<Say>(bytes) else {
            if cold && size == serve.terms.size() {
                // An unknown peer gets its own bytes back and no more; who it was, the hello will say.
                port.send_to(bytes, from)?;
                served.messages += 1;
                served.bytes += size as u64;
            } else {
                door.turn_away(from, format!("a message of {size} bytes without a hello"));
            }
            continue;
        };
        let Ok(Say::Hello { token, terms, last }) = said else {
            door.turn_away(from, "an end or nonsense without a hello");
            continue;
        };
        let verdict = admission::judge(&serve.token, &serve.terms, &token, &terms);
        port.send_to(&admission::datagram(&verdict.reply())?, from)?;
        match verdict {
            Verdict::Stranger => door.turn_away(from, "wrong token"),
            Verdict::Mismatch(difference) => return Err(Error::Integrity(difference)),
            Verdict::Accept if cold && !last => door.since = Instant::now(),
            Verdict::Accept => {
                served.refused = door.refused;
                served.settings = Some(port.settings()?);
                if cold {
                    return Ok(served);
                }
                let mut channel = port.join(from)?;
                channel.set_resend_after(serve.terms.patience())?;
                return match serve.terms.probe {
                    Probe::Throughput => count(&mut channel, serve, served),
                    _ => echo_datagrams(&mut channel, serve, served),
                };
            }
        }
    }
}

/// What came to a joined UDP port.
enum Came {
    Message(usize),
    End { messages: u64 },
}

/// The next message or the end; a hello whose answer was lost is answered again.
fn next(channel: &mut Udp, buffer: &mut [u8], serve: &Serve) -> Result<Came> {
    let wanted_bytes = serve.terms.size();
    loop {
        let Datagram::Of(size) = channel.recv_datagram(buffer)? else {
            let awaited = format!("a message of {wanted_bytes} bytes, or the end");
            let (peer, waited) = (channel.peer(), serve.terms.patience());
            return Err(sonde_channel::Error::Timeout {
                peer,
                awaited,
                waited,
            }
            .into());
        };
        match admission::control::<Say>(&buffer[..size.min(buffer.len())]) {
            None if size == wanted_bytes => return Ok(Came::Message(size)),
            None => {
                return Err(sonde_channel::Error::Size {
                    peer: channel.peer(),
                    found_bytes: size,
                    wanted_bytes,
                }
                .into());
            }
            Some(Ok(Say::End { messages })) => {
                channel.send(&admission::datagram(&Reply::Ended {})?)?;
                return Ok(Came::End { messages });
            }
            Some(Ok(Say::Hello { .. })) => {
                channel.send(&admission::datagram(&Reply::Accepted {})?)?
            }
            Some(Err(error)) => return Err(error),
        }
    }
}

fn echo_datagrams(channel: &mut Udp, serve: &Serve, mut served: Served) -> Result<Served> {
    let mut buffer = vec![0; UDP_MESSAGE_BYTES_MAX];
    loop {
        match next(channel, &mut buffer, serve)? {
            Came::End { .. } => return Ok(served),
            Came::Message(size) => {
                channel.send(&buffer[..size])?;
                served.messages += 1;
                served.bytes += size as u64;
            }
        }
    }
}

/// Receives, rates and counts a blast of numbered datagrams.
fn count(channel: &mut Udp, serve: &Serve, mut served: Served) -> Result<Served> {
    let mut buffer = vec![0; UDP_MESSAGE_BYTES_MAX];
    let mut meter = Meter::new(serve.terms.budget_ns);
    let mut seen = Seen::default();
    let sent = loop {
        match next(channel, &mut buffer, serve)? {
            Came::End { messages } => break messages,
            Came::Message(size) => {
                meter.on_arrival(monotonic_ns(), size as u64, thread_cpu_ns);
                let message = &buffer[..size];
                let number = payload::sequence(message).unwrap_or(0);
                check(message, number, serve, channel.peer())?;
                seen.on_number(number);
            }
        }
    };
    if sent < seen.distinct {
        return Err(Error::Integrity(format!(
            "{} datagrams came of {sent} sent",
            seen.distinct
        )));
    }
    served.bytes = meter.bytes();
    served.messages = seen.distinct;
    served.lost = Some(sent - seen.distinct);
    served.reordered = Some(seen.reordered);
    served.duplicated = Some(seen.duplicated);
    served.window = Some(meter.window()?);
    served.bytes_per_100ms = meter.into_slots();
    Ok(served)
}

/// Which numbers came: a bit each.
#[derive(Debug, Default)]
struct Seen {
    bits: Vec<u64>,
    highest: Option<u32>,
    distinct: u64,
    reordered: u64,
    duplicated: u64,
}

impl Seen {
    #[inline]
    fn on_number(&mut self, number: u32) {
        let (word, bit) = ((number / 64) as usize, 1u64 << (number % 64));
        if word >= self.bits.len() {
            self.bits.resize((word + 1).next_power_of_two(), 0);
        }
        if self.bits[word] & bit != 0 {
            self.duplicated += 1;
            return;
        }
        self.bits[word] |= bit;
        self.distinct += 1;
        self.reordered += u64::from(self.highest > Some(number));
        self.highest = self.highest.max(Some(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted() {
        let mut seen = Seen::default();
        for number in [0, 1, 3, 2, 3, 200, 0, 199] {
            seen.on_number(number);
        }
        assert_eq!(
            (seen.distinct, seen.reordered, seen.duplicated, seen.highest),
            (6, 2, 2, Some(200))
        );
    }
}
