//! A stream one way, the sending side.
//!
//! Model:   messages of the agreed size, back to back, for the first second, the budget, and until the receiver says that
//!          its window is over: by one byte (TCP) or a control datagram (UDP), which comes a round trip after the end, so
//!          that the window always ends within the stream and hardly anything is sent in vain. TCP_INFO is read at the two
//!          ends of the timed part and reported as differences. A message beyond 1 MiB is written in pieces, so that the
//!          clock is looked at.
//! Checked: `tests/conversation.rs`, `stream_*`.

use sonde_channel::{
    Aligned, BatchSender, ByteStream, Channel, Datagram, Outlet, Shm, Tcp, Udp, Unix, payload,
};
use sonde_measure::Interference;
use sonde_measure::spec::LEAD_IN_NS;
use sonde_measure::{Path, Side, Spec};
use sonde_sys::clock::{monotonic_ns, sleep_until_ns};
use sonde_sys::cpu::thread_cpu_ns;
use sonde_sys::socket::TcpInfo;

use crate::admission::{self, Reply, Visit};
use crate::begin::await_begin;
use crate::moments::Waits;
use crate::streams;
use crate::talk::{Measure, Measured, SenderWindow, Sent, SizeMeasured};
use crate::watch::Watch;
use crate::{Error, Result, packet};

/// How long before a datagram is due the clock is watched instead of slept by.
const WATCH_NS: u64 = 60_000;
/// What a sender at a constant rate makes up for.
const LATE_NS: u64 = 2_000_000;
/// How long the stream goes on when the receiver says nothing: it stood still, or its word was lost.
pub(crate) const DEAF_NS: u64 = 2_000_000_000;
/// While this many sends take less than this, the clock is read after the last of them only: it is a hundredth of a short
/// send. A slow one, and the clock is read after every send.
const QUICK_SENDS: u32 = 8;
const QUICK_NS: u64 = 50_000;
/// Between two looks at what the receiver says.
pub(crate) const LOOK_NS: u64 = 1_000_000;

/// One end of the timed part.
#[derive(Clone, Copy)]
struct Mark {
    at_ns: u64,
    bytes: u64,
    cpu_ns: u64,
    info: Option<TcpInfo>,
}

/// What a stream is sent through.
pub(crate) trait Pipe {
    /// The kernel's account, where there is one.
    fn account(&self) -> Result<Option<TcpInfo>>;
    /// Whether the receiver has said that its window is over.
    fn is_rated(&mut self) -> Result<bool>;
}

/// A byte stream.
struct InOrder<'a, C>(&'a mut C);

impl<C: ByteStream> Pipe for InOrder<'_, C> {
    fn account(&self) -> Result<Option<TcpInfo>> {
        Ok(self.0.account()?)
    }

    fn is_rated(&mut self) -> Result<bool> {
        Ok(self.0.recv_now(&mut [0])?.is_some())
    }
}

impl Pipe for Udp {
    fn account(&self) -> Result<Option<TcpInfo>> {
        Ok(None)
    }

    fn is_rated(&mut self) -> Result<bool> {
        let mut buffer = [0; 256];
        let Datagram::Of(size) = self.recv_now(&mut buffer)? else {
            return Ok(false);
        };
        let said = admission::control::<Reply>(&buffer[..size.min(256)]);
        Ok(matches!(said, Some(Ok(Reply::Rated {}))))
    }
}

/// A constant rate: the k-th byte is due at its own time after the first. It sleeps until shortly before and watches the clock
/// from there; what the network held up for longer than [`LATE_NS`] is not made up for, so that no burst follows.
struct Pace {
    begin_ns: u64,
    rate_bps: Option<u64>,
}

impl Pace {
    fn new(now_ns: u64, rate_bps: Option<u64>) -> Self {
        Self {
            begin_ns: now_ns,
            rate_bps,
        }
    }

    #[inline]
    fn wait(&mut self, bytes: u64) {
        let Some(rate) = self.rate_bps else { return };
        let due_ns = self.begin_ns + (u128::from(bytes) * 8_000_000_000 / u128::from(rate)) as u64;
        let now_ns = monotonic_ns();
        if now_ns > due_ns + LATE_NS {
            self.begin_ns += now_ns - due_ns;
            return;
        }
        if due_ns > now_ns + WATCH_NS {
            sleep_until_ns(due_ns - WATCH_NS);
        }
        while monotonic_ns() < due_ns {
            std::hint::spin_loop();
        }
    }
}

/// The schedule of a stream: where its timed part begins and ends, and when its thread waits for a CPU.
pub(crate) struct Schedule {
    begin_ns: u64,
    end_ns: u64,
    next_look_ns: u64,
    /// When the clock was read last, and sends until it is read again.
    last_ns: u64,
    skip: u32,
    watch: Option<Watch>,
    begin: Option<Mark>,
    end: Option<Mark>,
    waits: Option<Waits>,
}

impl Schedule {
    fn new(now_ns: u64, window_ns: u64, is_seen: bool) -> Self {
        let begin_ns = now_ns + LEAD_IN_NS;
        let end_ns = begin_ns + window_ns;
        Self {
            begin_ns,
            end_ns,
            next_look_ns: end_ns,
            last_ns: now_ns,
            skip: 0,
            watch: None,
            begin: None,
            end: None,
            waits: is_seen.then(Waits::of_stream),
        }
    }

    /// After a send: whether to go on.
    #[inline]
    pub(crate) fn on_sent(
        &mut self,
        bytes: u64,
        pipe: &mut impl Pipe,
        interference: &mut Interference,
    ) -> Result<bool> {
        if let Some(waits) = &mut self.waits {
            waits.passed();
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(true);
        }
        let now_ns = monotonic_ns();
        if now_ns - self.last_ns < QUICK_NS {
            self.skip = QUICK_SENDS - 1;
        }
        self.last_ns = now_ns;
        match (self.begin, self.end) {
            (None, _) if now_ns >= self.begin_ns => {
                self.watch = Some(Watch::begin()?);
                self.begin = Some(mark(bytes, pipe)?);
            }
            (Some(begin), None) if now_ns >= self.end_ns => {
                let end = mark(bytes, pipe)?;
                self.end = Some(end);
                let retransmits = difference(&begin, &end, |info| Some(info.total_retrans.into()));
                if let Some(watch) = self.watch.take() {
                    watch.end(interference, retransmits)?;
                }
            }
            (Some(_), Some(_)) if now_ns >= self.next_look_ns => {
                self.next_look_ns = now_ns + LOOK_NS;
                return Ok(!pipe.is_rated()? && now_ns < self.end_ns + DEAF_NS);
            }
            _ => {}
        }
        Ok(true)
    }

    /// What was sent, in all and in the timed part.
    fn sent(self, bytes: u64, messages: u64) -> Result<Sent> {
        Ok(Sent {
            bytes,
            messages,
            window: self.window()?,
            away: self.waits.and_then(Waits::end),
        })
    }

    fn window(&self) -> Result<SenderWindow> {
        let (Some(begin), Some(end)) = (self.begin, self.end) else {
            return Err(Error::TooShort {
                window_ns: 0,
                needed_ns: self.end_ns - self.begin_ns,
            });
        };
        let between = |field| difference(&begin, &end, field);
        Ok(SenderWindow {
            window_ns: end.at_ns - begin.at_ns,
            bytes: end.bytes - begin.bytes,
            cpu_ns: end.cpu_ns - begin.cpu_ns,
            busy_us: between(|info| info.busy_time_us),
            rwnd_limited_us: between(|info| info.rwnd_limited_us),
            sndbuf_limited_us: between(|info| info.sndbuf_limited_us),
            retransmits: between(|info| Some(info.total_retrans.into())),
        })
    }
}

fn mark(bytes: u64, pipe: &impl Pipe) -> Result<Mark> {
    Ok(Mark {
        bytes,
        info: pipe.account()?,
        cpu_ns: thread_cpu_ns(),
        at_ns: monotonic_ns(),
    })
}

fn difference(begin: &Mark, end: &Mark, field: fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
    Some(field(&end.info?)?.saturating_sub(field(&begin.info?)?))
}

pub(crate) fn measure(measure: &Measure, window_ns: u64) -> Result<Measured> {
    let spec = &measure.spec;
    let mut measured = Measured {
        sizes: Vec::new(),
        evidence: Default::default(),
        interference: Interference::default(),
    };
    for visit in Visit::all(spec) {
        let size_bytes = spec.sizes_bytes[visit.size];
        let mut stream = Stream {
            spec,
            window_ns,
            size: size_bytes as usize,
            begin_ns: measure.begin_ns,
            is_seen: measure.moments,
            interference: &mut measured.interference,
            side: &mut measured.evidence.src,
        };
        let sent = match spec.path {
            Path::Tcp if spec.knobs.streams > 1 => {
                await_begin(measure.begin_ns, LEAD_IN_NS)?;
                streams::send(measure, window_ns, visit, &mut measured)?
            }
            Path::Tcp => stream.through::<Tcp>(measure, visit)?,
            Path::Unix => stream.through::<Unix>(measure, visit)?,
            Path::Shm => stream.through::<Shm>(measure, visit)?,
            Path::Udp => {
                let mut channel = admission::connect_udp(measure, visit)?;
                admission::hello_udp(&mut channel, measure, visit)?;
                let sent = stream.udp(&mut channel)?;
                admission::end_udp(&mut channel, sent.messages, spec)?;
                stream.side.socket = channel.settings()?;
                sent
            }
            Path::Packet | Path::Xdp => packet::blast(measure, visit, &mut stream)?,
        };
        measured.sizes.push(SizeMeasured {
            moments: None,
            size_bytes,
            measurements: Vec::new(),
            round_trips: 0,
            sent: Some(sent),
        });
    }
    Ok(measured)
}

pub(crate) struct Stream<'a> {
    spec: &'a Spec,
    window_ns: u64,
    size: usize,
    /// The agreed begin of what is rated.
    begin_ns: Option<u64>,
    /// Whether it is told when the thread waits for a CPU.
    is_seen: bool,
    interference: &'a mut Interference,
    pub(crate) side: &'a mut Side,
}

impl Stream<'_> {
    fn through<C: ByteStream>(&mut self, measure: &Measure, visit: Visit) -> Result<Sent> {
        let number = admission::number(self.spec, visit);
        let mut channel: C = admission::connect(measure, number, measure.options())?;
        admission::hello_stream(&mut channel, measure, visit)?;
        let sent = self.bytes(&mut channel)?;
        self.side.socket = channel.settings()?;
        Ok(sent)
    }

    fn bytes(&mut self, channel: &mut impl ByteStream) -> Result<Sent> {
        let mut outlet = Outlet::open(channel, self.size)?;
        await_begin(self.begin_ns, LEAD_IN_NS)?;
        let mut schedule = Schedule::new(monotonic_ns(), self.window_ns, self.is_seen);
        let mut bytes = 0u64;
        loop {
            bytes += outlet.send_some(channel, bytes)? as u64;
            if !schedule.on_sent(bytes, &mut InOrder(channel), self.interference)? {
                break;
            }
        }
        end(channel, &mut outlet)?;
        self.side.transfer.merge(outlet.transfer());
        schedule.sent(bytes, bytes / self.size as u64)
    }

    fn udp(&mut self, channel: &mut Udp) -> Result<Sent> {
        let mut batch = BatchSender::open(channel, self.size)?;
        let sent = self.batches(channel, |channel, messages| {
            Ok(batch.send_some(channel, messages)? as u64)
        })?;
        self.side.transfer.merge(batch.transfer());
        Ok(sent)
    }

    /// Messages that are numbered, each sent by `send`.
    pub(crate) fn numbered<P: Pipe>(
        &mut self,
        channel: &mut P,
        mut send: impl FnMut(&mut P, &[u8]) -> Result<()>,
    ) -> Result<Sent> {
        let mut message = Aligned::new(payload::message(self.size), &self.spec.knobs)?;
        self.batches(channel, |channel, messages| {
            message.number(messages as u32);
            send(channel, &message)?;
            message.used(messages as u32);
            Ok(1)
        })
    }

    /// Messages of which `send` sends some at a time, told how many have gone before.
    fn batches<P: Pipe>(
        &mut self,
        channel: &mut P,
        mut send: impl FnMut(&mut P, u64) -> Result<u64>,
    ) -> Result<Sent> {
        await_begin(self.begin_ns, LEAD_IN_NS)?;
        let mut schedule = Schedule::new(monotonic_ns(), self.window_ns, self.is_seen);
        let mut messages = 0u64;
        let mut pace = Pace::new(monotonic_ns(), self.spec.knobs.sent_bps());
        loop {
            pace.wait(messages * self.size as u64);
            messages += send(channel, messages)?;
            let bytes = messages * self.size as u64;
            if !schedule.on_sent(bytes, channel, self.interference)? {
                return schedule.sent(bytes, messages);
            }
        }
    }
}

/// Ends a stream: nothing is outstanding on either side afterwards.
pub(crate) fn end(channel: &mut impl ByteStream, outlet: &mut Outlet) -> Result<()> {
    channel.end()?;
    outlet.close(channel)?;
    drained(channel)
}

/// Waits until the receiver has taken everything and closed; as long as acknowledgements come, it does.
fn drained(channel: &mut impl ByteStream) -> Result<()> {
    loop {
        let before = acked(channel)?;
        match channel.recv_some(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            // Its word that the window is over, where it was not waited for.
            Ok(1) => {}
            Ok(_) => {
                return Err(Error::Integrity(
                    "the receiver of a stream broke the protocol: it sent data".into(),
                ));
            }
            Err(sonde_channel::Error::Timeout { .. }) if acked(channel)? > before => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn acked(channel: &impl ByteStream) -> Result<Option<u64>> {
    let account = channel.account()?;
    Ok(account.and_then(|info| info.bytes_acked))
}
