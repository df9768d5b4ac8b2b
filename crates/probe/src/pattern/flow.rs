//! One flow of a round, at either end.
//!
//! Model:   a stream goes on from the start to the end of the window and a little longer, so that the window ends within it;
//!          its receiver rates what arrives from the first arrival after the window's begin to the first after its end, by the
//!          kernel's stamps of reception, since a thread may be woken late; where nothing arrives in half of the window, from the
//!          last arrival before it. A
//!          ping-pong records the trips that begin in the window, each the gap after the answer before; flows begin at
//!          different parts of the gap, so that they do not all send at the same instants. An exchange records steps that
//!          end in the window. All end at a deadline, whatever the peer does.
//! Checked: `tests/pattern.rs`.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use sonde_channel::payload;
use sonde_measure::Moments;
use sonde_stats::Series;
use sonde_sys::clock::{monotonic_ns, realtime_minus_monotonic_ns, sleep_until_ns};
use sonde_sys::cpu::thread_cpu_ns;
use sonde_sys::stamps::{self, Arrival};

use super::gate::Gate;
use super::listener::{self, Line};
use super::{Came, Counts, Due, Go, Join, Kind, Left, OutgoingFlow, await_start};
use crate::meter::{Slices, Window};
use crate::moments::{Log, Waits};
use crate::timer::Timer;

/// How long a blocked call waits before the clock is looked at.
const LOOK: Duration = Duration::from_millis(20);
const RECV_BYTES: usize = 64 << 10;
/// The same where a host has many flows.
const RECV_BYTES_OF_MANY: usize = 16 << 10;
const MANY: usize = 32;
/// The longest from the arrival of bytes to their read.
const STAMP_AGE_NS: u64 = 1_000_000_000;
/// How long a datagram's answer is waited for.
const ANSWER_NS: u64 = 200_000_000;

/// What is left of a round after its window: a stream's last bytes.
fn grace_ns(go: &Go) -> u64 {
    (go.window_ns / 4).clamp(20_000_000, 1_000_000_000)
}

/// A wait that ended without bytes.
fn is_wait(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// How far a deadline let a transfer come.
enum Moved {
    Whole,
    /// The peer ended.
    End,
    Deadline,
}

fn send(line: &mut Line, bytes: &[u8], deadline_ns: u64, sent: &mut u64) -> std::io::Result<Moved> {
    let mut at = 0;
    while at < bytes.len() {
        match line.stream.write(&bytes[at..]) {
            Ok(count) => {
                at += count;
                *sent += count as u64;
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
        if at < bytes.len() && monotonic_ns() >= deadline_ns {
            return Ok(Moved::Deadline);
        }
    }
    Ok(Moved::Whole)
}

fn recv(line: &mut Line, bytes: &mut [u8], deadline_ns: u64) -> std::io::Result<Moved> {
    let mut at = 0;
    while at < bytes.len() {
        match line.stream.read(&mut bytes[at..]) {
            Ok(0) => return Ok(Moved::End),
            Ok(count) => at += count,
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
        if at < bytes.len() && monotonic_ns() >= deadline_ns {
            return Ok(Moved::Deadline);
        }
    }
    Ok(Moved::Whole)
}

/// Says that no more comes. A receiver whose deadline was first is gone, with its figures.
fn end(line: &Line) -> std::io::Result<()> {
    match line.stream.shutdown(Shutdown::Write) {
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
        ended => ended,
    }
}

fn counts(line: &Line) -> Counts {
    let Some(info) = line.info() else {
        return Counts::default();
    };
    let wide = |count: Option<u32>| count.map(u64::from);
    Counts {
        segments: wide(info.data_segs_out),
        retransmits: Some(info.total_retrans.into()),
        in_vain: wide(info.dsack_dups),
        overtaken: wide(info.reord_seen),
        busy_us: info.busy_time_us,
        rwnd_limited_us: info.rwnd_limited_us,
        min_rtt_us: wide(info.min_rtt_us).filter(|us| *us < u64::from(u32::MAX)),
        early: wide(info.rcv_ooopack),
    }
}

/// Bounds what goes by this flow: the host's bound, shared by its flows.
fn hold(join: &Join, go: &Go, line: &Line) -> std::io::Result<()> {
    let Some(most) = join.knobs.max_rate_bps else {
        return Ok(());
    };
    let bytes_per_s = most / 8 / go.flows();
    sonde_sys::socket::set_pacing(&line.stream, bytes_per_s.max(1)).map_err(std::io::Error::other)
}

fn ready(line: &Line) -> std::io::Result<()> {
    line.stream.set_read_timeout(Some(LOOK))?;
    line.stream.set_write_timeout(Some(LOOK))?;
    if let Some(socket) = &line.datagrams {
        socket.set_read_timeout(Some(LOOK))?;
    }
    Ok(())
}

/// When a thread without samples waits for a CPU, where that is wanted.
struct Watched(Option<Waits>);

impl Watched {
    fn of(go: &Go, begin: fn() -> Waits) -> Self {
        Self((go.log_max > 0).then(begin))
    }

    /// A message is done, and the next has not begun.
    fn passed(&mut self) {
        if let Some(waits) = &mut self.0 {
            waits.passed();
        }
    }

    fn end(self) -> Option<Moments> {
        Some(Moments::default().beside(&self.0?.end()?))
    }
}

/// A flow that leaves this host, from its connection to its end.
pub(super) fn leave(join: &Join, go: &Go, way: &OutgoingFlow, gate: &Gate) -> Left {
    let mut left = Left {
        flow: way.flow,
        ..Left::default()
    };
    let done = listener::enter(join, go, way)
        .map_err(|error| {
            left.not_admitted = matches!(error, crate::Error::Refused { .. });
            error.to_string()
        })
        .and_then(|mut line| {
            let held = hold(join, go, &line).and_then(|()| ready(&line));
            let worked = held.and_then(|()| {
                left.late_ns = await_start(go.start_ns);
                let size = way.what.size_bytes as usize;
                match way.what.kind {
                    Kind::Stream => stream(go, size, &mut line, &mut left),
                    Kind::Latency => trips(go, size, &mut line, &mut left),
                    Kind::LatencyUdp => trips_udp(go, size, &mut line, &mut left),
                    Kind::Exchange => steps_out(go, size, &mut line, &mut left, gate),
                }
            });
            left.counts = counts(&line);
            worked.map_err(|error| format!("to {}: {error}", way.peer))
        });
    gate.leave(1);
    left.failure = done.err();
    left
}

fn stream(go: &Go, size: usize, line: &mut Line, left: &mut Left) -> std::io::Result<()> {
    let message = payload::message(size);
    let (_, end_ns) = go.counted_ns();
    let grace_ns = grace_ns(go);
    // The window ends within the stream: its last bytes are under way when the receiver's clock says so.
    let stop_ns = end_ns + grace_ns / 4;
    let mut watched = Watched::of(go, Waits::of_stream);
    while monotonic_ns() < stop_ns {
        watched.passed();
        match send(line, &message, stop_ns, &mut left.bytes) {
            Ok(Moved::Deadline) => break,
            Ok(_) => {}
            // The receiver's deadline came first, and it has its figures.
            Err(_) if monotonic_ns() >= end_ns => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    left.seen = watched.end();
    end(line)?;
    // Its end says that the receiver has rated all.
    let deadline_ns = end_ns + grace_ns + grace_ns / 2;
    match recv(line, &mut [0], deadline_ns) {
        Ok(_) => Ok(()),
        // The receiver's deadline came first, and it has its figures.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        Err(error) => Err(error),
    }
}

/// When the first message of a ping-pong is sent.
fn first_ns(go: &Go, flow: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let part = (u128::from(flow.wrapping_mul(GOLDEN)) * u128::from(go.gap_ns)) >> 64;
    go.start_ns + u64::try_from(part).unwrap_or(0)
}

/// The samples of a ping-pong, and when they are taken where that is wanted.
struct Trips<'a> {
    left: &'a mut Left,
    begin_ns: u64,
    seen: Option<(Log, Waits)>,
}

impl<'a> Trips<'a> {
    fn begin(go: &Go, left: &'a mut Left) -> Self {
        let begin = |most: u64| (Log::begin(Timer::Monotonic, most), Waits::begin());
        let most = go.log_max.min(go.samples_max);
        Self {
            left,
            begin_ns: go.counted_ns().0,
            seen: (most > 0).then(|| begin(most)),
        }
    }

    /// A round trip between these times; one that began before the window does not count.
    fn passed(&mut self, sent_ns: u64, now_ns: u64) {
        if sent_ns < self.begin_ns {
            return;
        }
        let value = (now_ns - sent_ns) / 2;
        self.left.trips.record(value);
        if let Some((log, waits)) = &mut self.seen {
            log.push(sent_ns, now_ns, value);
            waits.passed();
        }
    }

    fn end(self) {
        self.left.seen = self.seen.and_then(|(log, waits)| log.end(waits));
    }
}

fn trips(go: &Go, size: usize, line: &mut Line, left: &mut Left) -> std::io::Result<()> {
    let mut message = payload::message(size);
    let mut answer = vec![0; message.len()];
    let (_, end_ns) = go.counted_ns();
    let mut at_ns = first_ns(go, left.flow);
    let mut sequence = 0;
    let mut trips = Trips::begin(go, left);
    while at_ns < end_ns && trips.left.trips.count() < go.samples_max {
        sleep_until_ns(at_ns);
        payload::stamp(&mut message, sequence);
        sequence = sequence.wrapping_add(1);
        let sent_ns = monotonic_ns();
        let deadline_ns = end_ns + grace_ns(go);
        let sent = send(line, &message, deadline_ns, &mut trips.left.bytes)?;
        let came = recv(line, &mut answer, deadline_ns)?;
        let (Moved::Whole, Moved::Whole) = (sent, came) else {
            trips.left.lost += 1;
            return Ok(());
        };
        let now_ns = monotonic_ns();
        if answer != message {
            return Err(other("an answer is not what was sent"));
        }
        trips.passed(sent_ns, now_ns);
        at_ns = now_ns + go.gap_ns;
    }
    trips.end();
    end(line)
}

fn other(what: &str) -> std::io::Error {
    std::io::Error::other(what.to_owned())
}

fn trips_udp(go: &Go, size: usize, line: &mut Line, left: &mut Left) -> std::io::Result<()> {
    let socket = line.datagrams.take();
    let socket = socket.ok_or_else(|| other("it has no port for datagrams"))?;
    let mut message = payload::message(size);
    let mut answer = vec![0; message.len() + 1];
    let (begin_ns, end_ns) = go.counted_ns();
    let mut at_ns = first_ns(go, left.flow);
    let mut sequence = 0;
    let mut trips = Trips::begin(go, left);
    while at_ns < end_ns && trips.left.trips.count() < go.samples_max {
        sleep_until_ns(at_ns);
        payload::stamp(&mut message, sequence);
        sequence = sequence.wrapping_add(1);
        let sent_ns = monotonic_ns();
        socket.send(&message)?;
        trips.left.bytes += message.len() as u64;
        let came = loop {
            match socket.recv(&mut answer) {
                Ok(count) if answer[..count] == message[..] => break true,
                // A late answer to another.
                Ok(_) => {}
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
            if monotonic_ns() >= sent_ns + ANSWER_NS {
                break false;
            }
        };
        let now_ns = monotonic_ns();
        match came {
            true => trips.passed(sent_ns, now_ns),
            false => trips.left.lost += u64::from(sent_ns >= begin_ns),
        }
        at_ns = now_ns + go.gap_ns;
    }
    trips.end();
    end(line)
}

fn steps_out(
    go: &Go,
    size: usize,
    line: &mut Line,
    left: &mut Left,
    gate: &Gate,
) -> std::io::Result<()> {
    let message = payload::message(size);
    let (_, end_ns) = go.counted_ns();
    while gate.arrive(end_ns).is_some() {
        match send(line, &message, end_ns, &mut left.bytes) {
            Ok(Moved::Deadline) => break,
            Ok(_) => {}
            // The receiver's deadline came first, and it has its figures.
            Err(_) if monotonic_ns() >= end_ns => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    end(line)
}

/// A flow that comes to this host, once it was let in.
pub(super) fn come(join: &Join, go: &Go, due: &Due, mut line: Line, gate: &Gate) -> Came {
    let size = due.what.size_bytes as usize;
    let mut came = Came {
        flow: due.flow,
        ..Came::default()
    };
    let held = hold(join, go, &line).and_then(|()| ready(&line));
    let worked = held.and_then(|()| match due.what.kind {
        Kind::Stream => {
            // Where the kernel gives none, a read counts when it is made.
            let _ = stamps::stamp_received(&line.stream);
            receive(go, &mut line, &mut came)
        }
        Kind::Latency => echo(go, size, &mut line, &mut came),
        Kind::LatencyUdp => echo_udp(go, size, &mut line, &mut came),
        Kind::Exchange => steps_in(go, size, &mut line, &mut came, gate),
    });
    gate.leave(1);
    came.counts = counts(&line);
    came.failure = worked.err().map(|error| error.to_string());
    came
}

/// An arrival that bounds what is rated.
#[derive(Clone, Copy)]
struct Mark {
    at_ns: u64,
    bytes: u64,
    cpu_ns: u64,
}

/// What a stream's rate is made of.
struct Marks {
    /// The window as it was planned.
    planned: (u64, u64),
    /// The last arrival before the window, or the start of the round.
    before: Mark,
    begin: Option<Mark>,
    end: Option<Mark>,
}

impl Marks {
    fn new(planned: (u64, u64), start: Mark) -> Self {
        Self {
            planned,
            before: start,
            begin: None,
            end: None,
        }
    }

    /// Whether an arrival at this time bounds anything.
    fn wants(&self, at_ns: u64) -> bool {
        self.begin.is_none() || (self.end.is_none() && at_ns >= self.planned.1)
    }

    fn arrive(&mut self, mark: Mark) {
        let (begin_ns, end_ns) = self.planned;
        match self.begin {
            None if mark.at_ns < begin_ns => self.before = mark,
            // Where little is left of the window, the silence before this arrival is part of the rate: a slow line's
            // segment, or what a pause held back, took that long to come.
            None if mark.at_ns - begin_ns > (end_ns - begin_ns) / 2 => {
                self.begin = Some(self.before);
                self.arrive(mark);
            }
            None => self.begin = Some(mark),
            Some(_) if self.end.is_none() && mark.at_ns >= end_ns => self.end = Some(mark),
            Some(_) => {}
        }
    }
}

fn receive(go: &Go, line: &mut Line, came: &mut Came) -> std::io::Result<()> {
    let flows = go.coming.len() + go.leaving.len();
    let mut buffer = vec![
        0;
        if flows > MANY {
            RECV_BYTES_OF_MANY
        } else {
            RECV_BYTES
        }
    ];
    let planned = go.counted_ns();
    let deadline_ns = planned.1 + grace_ns(go);
    let start = Mark {
        at_ns: go.start_ns.min(planned.0),
        bytes: 0,
        cpu_ns: thread_cpu_ns(),
    };
    let mut marks = Marks::new(planned, start);
    let (mut slices, mut watched) = (
        Slices::within(2 * go.window_ns),
        Watched::of(go, Waits::of_stream),
    );
    loop {
        let arrival = stamps::recv(&line.stream, &mut buffer, true);
        let arrival = arrival.map_err(std::io::Error::other)?;
        let now_ns = monotonic_ns();
        if let Some(Arrival {
            bytes, software_ns, ..
        }) = arrival
        {
            if bytes == 0 {
                break;
            }
            came.bytes += bytes as u64;
            let is_open = marks.end.is_none();
            if marks.wants(now_ns) {
                marks.arrive(Mark {
                    at_ns: arrived_ns(software_ns, now_ns),
                    bytes: came.bytes,
                    cpu_ns: thread_cpu_ns(),
                });
            }
            // The arrival that begins the window is not of it.
            let begin = marks.begin.filter(|begin| begin.bytes < came.bytes);
            if let Some(begin) = begin.filter(|_| is_open) {
                slices.on_arrival(now_ns.saturating_sub(begin.at_ns), bytes as u64);
            }
            watched.passed();
        }
        if now_ns >= deadline_ns {
            break;
        }
    }
    came.window = Some(rated(&marks, came.bytes));
    if let (Some(begin), Some(end), Some(waits)) = (marks.begin, marks.end, watched.0) {
        came.seen = slices.moments((begin.at_ns, end.at_ns), waits);
    }
    Ok(())
}

/// When the last byte of a read arrived: by the kernel's stamp, else when it was read. A thread that is woken late reads late.
fn arrived_ns(stamp_ns: Option<u64>, read_ns: u64) -> u64 {
    let stamp_ns = stamp_ns.map(|ns| realtime_minus_monotonic_ns().monotonic_ns(ns));
    // One that is older is of another clock.
    let stamp_ns =
        stamp_ns.filter(|ns| (read_ns.saturating_sub(STAMP_AGE_NS)..=read_ns).contains(ns));
    stamp_ns.unwrap_or(read_ns)
}

/// The rate between the two marks; a stream that stood still is rated over the window as it was planned.
fn rated(marks: &Marks, bytes: u64) -> Window {
    let (begin_ns, end_ns) = marks.planned;
    let whole = |bytes: u64, window_ns: u64, cpu_ns| {
        let bps = u128::from(bytes) * 8_000_000_000 / u128::from(window_ns.max(1));
        Window {
            bytes,
            window_ns,
            bps: u64::try_from(bps).unwrap_or(u64::MAX),
            cpu_ns,
        }
    };
    match (marks.begin, marks.end) {
        (Some(begin), Some(end)) => whole(
            end.bytes - begin.bytes,
            end.at_ns.saturating_sub(begin.at_ns),
            Some(end.cpu_ns.saturating_sub(begin.cpu_ns)),
        ),
        // Nothing came after the window: all that came in it counts, over all of it.
        (Some(begin), None) => whole(
            bytes - begin.bytes,
            end_ns.saturating_sub(begin.at_ns.min(begin_ns)),
            None,
        ),
        (None, _) => whole(0, end_ns - begin_ns, None),
    }
}

fn echo(go: &Go, size: usize, line: &mut Line, came: &mut Came) -> std::io::Result<()> {
    let mut message = vec![0; size];
    let deadline_ns = go.counted_ns().1 + 2 * grace_ns(go);
    let mut sent = 0;
    let mut watched = Watched::of(go, Waits::begin);
    while let Moved::Whole = recv(line, &mut message, deadline_ns)? {
        came.bytes += message.len() as u64;
        send(line, &message, deadline_ns, &mut sent)?;
        watched.passed();
    }
    came.seen = watched.end();
    Ok(())
}

fn echo_udp(go: &Go, size: usize, line: &mut Line, came: &mut Came) -> std::io::Result<()> {
    let socket = line.datagrams.take();
    let socket = socket.ok_or_else(|| other("it has no port for datagrams"))?;
    let mut message = vec![0; size + 1];
    let deadline_ns = go.counted_ns().1 + 2 * grace_ns(go);
    let mut watched = Watched::of(go, Waits::begin);
    while monotonic_ns() < deadline_ns {
        match socket.recv(&mut message) {
            Ok(count) => {
                came.bytes += count as u64;
                // Its peer may have gone with its last answer.
                let _ = socket.send(&message[..count]);
                watched.passed();
            }
            Err(error) if is_wait(&error) || error.kind() == ErrorKind::ConnectionRefused => {
                line.stream.set_nonblocking(true)?;
                let ended = matches!(line.stream.read(&mut [0]), Ok(0));
                line.stream.set_nonblocking(false)?;
                if ended {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    came.seen = watched.end();
    Ok(())
}

fn steps_in(
    go: &Go,
    size: usize,
    line: &mut Line,
    came: &mut Came,
    gate: &Gate,
) -> std::io::Result<()> {
    let mut message = vec![0; size];
    let (begin_ns, end_ns) = go.counted_ns();
    let mut steps = Series::new();
    await_start(go.start_ns);
    while let Some(step_ns) = gate.arrive(end_ns) {
        let Moved::Whole = recv(line, &mut message, end_ns)? else {
            break;
        };
        let now_ns = monotonic_ns();
        came.bytes += message.len() as u64;
        if step_ns >= begin_ns && steps.count() < go.samples_max {
            steps.record(now_ns - step_ns);
        }
    }
    came.steps = steps;
    // A step that the end cut off is taken off the wire, so that its sender ends in order.
    while let Ok(Moved::Whole) = recv(line, &mut message, end_ns + grace_ns(go)) {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A window from 1 s to 2 s of a round that begins at 0 s, and what arrives: milliseconds and bytes so far.
    fn of(arrivals: &[(u64, u64)], bytes: u64) -> Window {
        let mark = |at_ns, bytes| Mark {
            at_ns,
            bytes,
            cpu_ns: at_ns / 2,
        };
        let mut marks = Marks::new((SECOND, 2 * SECOND), mark(0, 0));
        for (ms, bytes) in arrivals {
            let at_ns = ms * 1_000_000;
            if marks.wants(at_ns) {
                marks.arrive(mark(at_ns, *bytes));
            }
        }
        rated(&marks, bytes)
    }

    #[test]
    fn windows_end_with_an_arrival() {
        let steady = of(&[(900, 50), (1_000, 100), (1_500, 150), (2_000, 225)], 300);
        assert_eq!((steady.bps, steady.bytes), (1_000, 125));
        // A pause across the end is within the window.
        let paused = of(&[(1_000, 0), (3_000, 250)], 250);
        assert_eq!(paused.bps, 1_000);
        // What stopped is rated over all of the window.
        let stopped = of(&[(1_500, 100)], 225);
        assert_eq!((stopped.bps, stopped.cpu_ns), (1_000, None));
        let nothing = of(&[], 50);
        assert_eq!((nothing.bps, nothing.window_ns), (0, SECOND));
    }

    #[test]
    fn a_pause_that_ends_with_a_burst_is_rated_with_its_silence() {
        // A hole from 0.5 s to 2.1 s, filled by a repeated segment: two reads of one stamp.
        let held = of(&[(500, 100), (2_100, 200), (2_100, 300)], 300);
        assert_eq!((held.bps, held.window_ns), (500, 1_600_000_000));
        // The same that ends just within the window.
        let held = of(&[(500, 100), (1_999, 250), (2_000, 275)], 275);
        assert_eq!(held.window_ns, 1_500_000_000);
        assert_eq!(held.bps, 175 * 8 * 10 / 15);
    }

    #[test]
    fn a_line_slower_than_the_window_is_rated_by_its_segments() {
        // One segment of 1,500 bytes every 1.5 s is 8,000 b/s, wherever the window falls.
        for first_ms in [0, 400, 500, 600, 900, 1_000, 1_400] {
            let every: Vec<(u64, u64)> = (0..4)
                .map(|segment| (first_ms + segment * 1_500, 1_500 * (segment + 1)))
                .filter(|(ms, _)| *ms > 0)
                .collect();
            let rated = of(&every, every.last().unwrap().1);
            assert_eq!(rated.bps, 8_000, "{first_ms}");
        }
    }

    #[test]
    fn flows_begin_at_different_parts_of_the_gap() {
        let go = Go {
            start_ns: 1_000,
            lead_ns: 0,
            window_ns: 1_000_000,
            late_max_ns: 0,
            gap_ns: 1_000,
            samples_max: 1,
            log_max: 0,
            leaving: Vec::new(),
            coming: Vec::new(),
        };
        let mut at: Vec<u64> = (0..8).map(|flow| first_ns(&go, flow)).collect();
        assert!(at.iter().all(|at| (1_000..2_000).contains(at)), "{at:?}");
        at.sort_unstable();
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] > 50), "{at:?}");
    }
}
