//! Several streams by TCP at the same time, both sides: a connection and a thread each.
//!
//! Model:   each connection has its own hello, of the same visit; nobody sends before all were accepted. The threads that move
//!          bytes read no clock: each publishes its count after every call. One thread beside them reads all counts at the
//!          window's two ends, a hundred milliseconds apart in between, so that the rate is of all bytes in one common window
//!          (a second after the first byte of any, as long as the budget), and a stream's share is of the same. A count lags
//!          by at most one call. CPU time is that of the whole process, which does nothing else.
//! Units:   nanoseconds, bytes; shares in thousandths.
//! Checked: `tests/conversation.rs`, `several_streams_share_a_window`; `shares_add_up`.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use sonde_channel::payload::StreamCheck;
use sonde_channel::{ByteStream, Channel, Inlet, Outlet, Tcp};
use sonde_measure::spec::{LEAD_IN_NS, WINDOW_NS_MIN};
use sonde_measure::{Evidence, Fixed, Shares, Transfer};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::process_cpu_ns;
use sonde_sys::socket::{TcpInfo, tcp_info};
use sonde_sys::thread;

use crate::admission::{self, Visit};
use crate::meter::{SLOT_NS, Slots, Window};
use crate::stream::{self, DEAF_NS, LOOK_NS};
use crate::talk::{Measure, Measured, SenderWindow, Sent, Serve, SizeServed};
use crate::watch::Watch;
use crate::{Error, Result};

/// Between two looks of the thread beside.
const LOOK: Duration = Duration::from_millis(1);

/// A stream's count, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicU64);

/// What the threads share.
struct Shared {
    counts: Vec<Count>,
    /// The window is over: the receiver's has been taken, the sender's may end.
    over: AtomicBool,
    /// Nobody says that the stream was rated: it ends all the same.
    stop: AtomicBool,
    ended: AtomicUsize,
}

impl Shared {
    fn new(streams: usize) -> Self {
        Self {
            counts: (0..streams).map(|_| Count::default()).collect(),
            over: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            ended: AtomicUsize::new(0),
        }
    }

    fn bytes(&self) -> Vec<u64> {
        self.counts
            .iter()
            .map(|count| count.0.load(Relaxed))
            .collect()
    }

    fn all_ended(&self) -> bool {
        self.ended.load(Relaxed) == self.counts.len()
    }

    /// Sleeps until this time; `false` where all streams ended before.
    fn sleep_until(&self, at_ns: u64) -> bool {
        loop {
            if self.all_ended() {
                return false;
            }
            let now_ns = monotonic_ns();
            if now_ns >= at_ns {
                return true;
            }
            std::thread::sleep(LOOK.min(Duration::from_nanos(at_ns - now_ns)));
        }
    }
}

/// Counts a thread's end, however it ends.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Relaxed);
    }
}

/// All counts at one moment.
struct Mark {
    at_ns: u64,
    bytes: Vec<u64>,
    cpu_ns: u64,
}

impl Mark {
    fn of(shared: &Shared) -> Result<Self> {
        Ok(Self {
            bytes: shared.bytes(),
            cpu_ns: process_cpu_ns(std::process::id())?,
            at_ns: monotonic_ns(),
        })
    }
}

/// What each stream has of the whole, in the order in which they were opened.
fn shares(begin: &[u64], end: &[u64]) -> Shares {
    let each: Vec<u64> = end
        .iter()
        .zip(begin)
        .map(|(end, begin)| end - begin)
        .collect();
    let whole = each.iter().sum::<u64>().max(1);
    let of = |bytes: &u64| Fixed::of(*bytes as f64 / whole as f64).unwrap_or_default();
    Shares(each.iter().map(of).collect())
}

type Threads<'scope, T> = Vec<std::thread::ScopedJoinHandle<'scope, Result<T>>>;

/// Starts a thread for each channel. Where one is refused, those that run end at once.
fn each<'scope, C: Send + 'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    channels: Vec<C>,
    shared: &Shared,
    work: impl Fn(usize, C) -> Result<T> + Copy + Send + 'scope,
) -> Result<Threads<'scope, T>> {
    let start = |(index, channel)| {
        thread::start_in(scope, "the thread of a stream", move || {
            work(index, channel)
        })
    };
    let threads: sonde_sys::Result<_> = channels.into_iter().enumerate().map(start).collect();
    threads.map_err(|refused| {
        shared.over.store(true, Relaxed);
        shared.stop.store(true, Relaxed);
        refused.into()
    })
}

/// The first failure of the threads, else their results.
fn joined<T>(threads: Threads<'_, T>) -> Result<Vec<T>> {
    let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect()
}

/// Receives, checks and rates; retransmissions of all connections.
pub(crate) fn receive(
    channels: Vec<impl ByteStream + Send>,
    serve: &Serve,
    (size, window_ns): (usize, u64),
    one: &mut SizeServed,
    evidence: &mut Evidence,
) -> Result<u64> {
    let shared = Shared::new(channels.len());
    let (rated, received) = std::thread::scope(|scope| {
        let shared = &shared;
        let threads = each(scope, channels, shared, move |index, channel| {
            take(channel, index, serve, size, shared)
        })?;
        let rated = rate(shared, window_ns);
        shared.over.store(true, Relaxed);
        Ok::<_, Error>((rated, joined(threads)))
    })?;
    let received = received?;
    let rated = rated?;
    one.bytes = shared.bytes().iter().sum();
    one.messages = received.iter().map(|stream| stream.messages).sum();
    one.window = Some(rated.window);
    one.slots = Slots::of(rated.slots);
    for stream in &received {
        evidence.dst.transfer.merge(stream.transfer.clone());
    }
    evidence.size(size as u64).dst_stream_shares = Some(rated.shares);
    Ok(received.iter().map(|stream| stream.retransmits).sum())
}

/// What one receiving thread saw.
struct Received {
    messages: u64,
    retransmits: u64,
    transfer: Transfer,
}

fn take(
    mut channel: impl ByteStream,
    index: usize,
    serve: &Serve,
    size: usize,
    shared: &Shared,
) -> Result<Received> {
    let _ended = Ended(shared);
    let peer = channel.peer();
    let mut inlet = Inlet::open(&mut channel)?;
    let mut check = StreamCheck::new(size, serve.spec.verify);
    let (mut bytes, mut told) = (0u64, false);
    loop {
        let came = inlet.recv_some(&mut channel)?;
        if came.is_empty() {
            break;
        }
        bytes += came.len() as u64;
        shared.counts[index].0.store(bytes, Relaxed);
        check
            .on_bytes(came)
            .map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?;
        if !told && shared.over.load(Relaxed) {
            told = true;
            channel.send(&[0])?;
        }
    }
    Ok(Received {
        messages: check.messages().into(),
        retransmits: channel
            .account()?
            .map_or(0, |info| info.total_retrans.into()),
        transfer: inlet.transfer(),
    })
}

struct Rated {
    window: Window,
    shares: Shares,
    slots: Vec<u64>,
}

/// Watches the counts over the window.
fn rate(shared: &Shared, budget_ns: u64) -> Result<Rated> {
    while shared.bytes().iter().all(|bytes| *bytes == 0) && !shared.all_ended() {
        std::thread::sleep(LOOK);
    }
    let first_ns = monotonic_ns();
    let mut slots = Vec::new();
    let mut total = 0;
    let mut begin: Option<Mark> = None;
    let end = loop {
        let is_on = shared.sleep_until(first_ns + (slots.len() as u64 + 1) * SLOT_NS);
        let mark = Mark::of(shared)?;
        let now: u64 = mark.bytes.iter().sum();
        slots.push(now - total);
        total = now;
        match &begin {
            Some(begin) if !is_on || mark.at_ns - begin.at_ns >= budget_ns => break mark,
            None if !is_on => break mark,
            None if mark.at_ns - first_ns >= LEAD_IN_NS => begin = Some(mark),
            _ => {}
        }
    };
    let window_ns = begin.as_ref().map_or(0, |begin| end.at_ns - begin.at_ns);
    let Some(begin) = begin.filter(|_| window_ns >= WINDOW_NS_MIN) else {
        return Err(Error::TooShort {
            window_ns,
            needed_ns: WINDOW_NS_MIN,
        });
    };
    let bytes = end.bytes.iter().sum::<u64>() - begin.bytes.iter().sum::<u64>();
    let bps = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(window_ns);
    Ok(Rated {
        window: Window {
            bytes,
            window_ns,
            bps: u64::try_from(bps).unwrap_or(u64::MAX),
            cpu_ns: Some(end.cpu_ns - begin.cpu_ns),
        },
        shares: shares(&begin.bytes, &end.bytes),
        slots,
    })
}

/// Opens the connections of a visit and sends by all of them.
pub(crate) fn send(
    measure: &Measure,
    window_ns: u64,
    visit: Visit,
    measured: &mut Measured,
) -> Result<Sent> {
    let spec = &measure.spec;
    let size = spec.sizes_bytes[visit.size] as usize;
    let mut channels = Vec::new();
    let first = admission::number(spec, visit);
    for stream in 0..spec.knobs.streams {
        let number = first.saturating_add(stream);
        let mut channel: Tcp = admission::connect(measure, number, measure.options())?;
        admission::hello_stream(&mut channel, measure, visit)?;
        channels.push(channel);
    }
    measured.evidence.src.socket = channels[0].settings()?;
    // For TCP_INFO, while the connections are with their threads.
    let sockets: Vec<OwnedFd> = channels
        .iter()
        .map(|channel| channel.as_fd().try_clone_to_owned())
        .collect::<std::io::Result<_>>()
        .map_err(|source| Error::Control {
            what: "open another descriptor of a connection".into(),
            source,
        })?;
    let shared = Shared::new(channels.len());
    let (window, transfers) = std::thread::scope(|scope| {
        let shared = &shared;
        let threads = each(scope, channels, shared, move |index, channel| {
            pour(channel, index, size, shared)
        })?;
        let window = time(shared, &sockets, window_ns, measured, size);
        shared.over.store(true, Relaxed);
        shared.sleep_until(monotonic_ns() + DEAF_NS);
        shared.stop.store(true, Relaxed);
        Ok::<_, Error>((window, joined(threads)))
    })?;
    for transfer in transfers? {
        measured.evidence.src.transfer.merge(transfer);
    }
    let counts = shared.bytes();
    let sent = Sent {
        bytes: counts.iter().sum(),
        messages: counts.iter().map(|bytes| bytes / size as u64).sum(),
        window: window?,
        away: None,
    };
    Ok(sent)
}

/// Sends until the receiver says that its window is over.
fn pour(mut channel: Tcp, index: usize, size: usize, shared: &Shared) -> Result<Transfer> {
    let _ended = Ended(shared);
    let mut outlet = Outlet::open(&mut channel, size)?;
    let (mut bytes, mut next_look_ns) = (0, 0);
    loop {
        bytes += outlet.send_some(&mut channel, bytes)? as u64;
        shared.counts[index].0.store(bytes, Relaxed);
        if shared.over.load(Relaxed) {
            let now_ns = monotonic_ns();
            if now_ns >= next_look_ns {
                next_look_ns = now_ns + LOOK_NS;
                if channel.recv_now(&mut [0])?.is_some() || shared.stop.load(Relaxed) {
                    break;
                }
            }
        }
    }
    stream::end(&mut channel, &mut outlet)?;
    Ok(outlet.transfer())
}

/// The sender's own window: from a second after the begin, for the budget.
fn time(
    shared: &Shared,
    sockets: &[OwnedFd],
    budget_ns: u64,
    measured: &mut Measured,
    size: usize,
) -> Result<SenderWindow> {
    let too_short = || Error::TooShort {
        window_ns: 0,
        needed_ns: budget_ns,
    };
    let infos = || -> Result<Vec<TcpInfo>> {
        Ok(sockets
            .iter()
            .map(tcp_info)
            .collect::<sonde_sys::Result<_>>()?)
    };
    if !shared.sleep_until(monotonic_ns() + LEAD_IN_NS) {
        return Err(too_short());
    }
    let watch = Watch::begin_of(true)?;
    let before = infos()?;
    let begin = Mark::of(shared)?;
    if !shared.sleep_until(begin.at_ns + budget_ns) {
        return Err(too_short());
    }
    let end = Mark::of(shared)?;
    let after = infos()?;
    let sum = |field: fn(&TcpInfo) -> Option<u64>| -> Option<u64> {
        let pairs = after.iter().zip(&before);
        pairs
            .map(|(after, before)| Some(field(after)?.saturating_sub(field(before)?)))
            .sum()
    };
    // A share of time is that of the mean stream.
    let mean = |field| Some(sum(field)? / sockets.len() as u64);
    let retransmits = sum(|info| Some(info.total_retrans.into()));
    watch.end(&mut measured.interference, retransmits)?;
    measured.evidence.size(size as u64).src_stream_shares = Some(shares(&begin.bytes, &end.bytes));
    Ok(SenderWindow {
        window_ns: end.at_ns - begin.at_ns,
        bytes: end.bytes.iter().sum::<u64>() - begin.bytes.iter().sum::<u64>(),
        cpu_ns: end.cpu_ns - begin.cpu_ns,
        busy_us: mean(|info| info.busy_time_us),
        rwnd_limited_us: mean(|info| info.rwnd_limited_us),
        sndbuf_limited_us: mean(|info| info.sndbuf_limited_us),
        retransmits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        let wanted = Shares(vec![Fixed(250), Fixed(500), Fixed(250)]);
        assert_eq!(shares(&[0, 10, 5], &[250, 510, 255]), wanted);
        assert_eq!(shares(&[7], &[7]), Shares(vec![Fixed(0)]));
    }

    #[test]
    fn streams_that_end_early_are_refused() {
        let shared = Shared::new(2);
        shared.counts[0].0.store(5, Relaxed);
        for _ in 0..2 {
            drop(Ended(&shared));
        }
        let error = rate(&shared, 1_000_000_000).err().unwrap().to_string();
        assert!(error.contains("0 ns"), "{error}");
    }
}
