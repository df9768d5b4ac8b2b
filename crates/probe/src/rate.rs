//! Messages at a rate, in an open loop: what a message takes under load.
//!
//! Model:   each message has a time at which it is due ([`Pace`]), whatever became of those before it. It is sent
//!          then, or as soon as the kernel takes it; none is left out. `response` is from the time it was due to its
//!          answer, and so holds the wait of a message that could not be sent in time; `service` is from the call that
//!          sent it. A closed loop measures only the second, and sends nothing while an answer is late: it omits what a
//!          stall would have done to the messages that it did not send.
//!          One loop sends and receives, so that a late answer stops no message. Messages that the budget and a quarter of
//!          it leave unsent count with the time that they had waited until then: a lower bound. What UDP loses is in no
//!          time, and is counted. The first messages are discarded; settings say how many.
//! Source:  Tene, How NOT to Measure Latency; Schroeder, Wierman, Harchol-Balter, NSDI'06, for open and closed loops.
//!          Deviations: none.
//! Units:   nanoseconds, round trips; a rate in thousandths of a message a second; shares in millionths.
//! Checked: `a_stall_is_in_every_response_that_it_delays`, `an_unsent_backlog_counts`, `the_rate_is_that_of_the_sends`;
//!          `tests/rate.rs`.

use std::time::Duration;

use sonde_channel::payload::{self, StreamCheck};
use sonde_channel::{CONTROL, Channel, Datagram, Tcp, UDP_MESSAGE_BYTES_MAX, Udp, ready};
use sonde_measure::{EndedBy, Interference, Measurement, Phase, Quantity};
use sonde_measure::{Pace, Path, Quota, Spec, Wait};
use sonde_stats::Series;
use sonde_sys::clock::{monotonic_ns, timer_slack_min};

use crate::admission::{self, Visit};
use crate::begin::await_begin;
use crate::pace::Schedule;
use crate::talk::{Measure, Measured, SizeMeasured};
use crate::trips::share;
use crate::watch::Watch;
use crate::{Error, Result};

/// Sends or receives in a row before the other is looked at.
const BURST: u32 = 16;
/// Messages under way that are told apart, at most: 16 MiB.
const FLIGHTS_MAX: u64 = 1 << 20;
/// Up to this a sample finds its bucket there: 17 minutes.
const ROOM: u64 = 1 << 40;
/// The least time that is waited for the last answers.
const DRAIN_NS_MIN: u64 = 1_000_000_000;
const RECV_BUFFER_BYTES: usize = 64 << 10;

/// What became of a send that does not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Nothing,
    Part,
    Whole,
}

/// What messages go through, without waiting.
trait Pipe {
    fn send_now(&mut self, message: &[u8]) -> Result<Taken>;
    /// Tells `answered` the numbers of answers that are here; `false` when there were none.
    fn recv_now(&mut self, answered: impl FnMut(u32)) -> Result<bool>;
    /// Waits until there is something to receive, or room to send where `room` is asked for, or for this long.
    fn wait(&self, room: bool, timeout: Duration) -> Result<()>;
}

/// A message that is under way.
#[derive(Debug, Clone, Copy, Default)]
struct Flight {
    /// Zero where there is none.
    due_ns: u64,
    sent_ns: u64,
    sequence: u32,
    counted: bool,
}

/// What was seen of the messages of one size.
#[derive(Debug)]
struct Sight {
    flights: Vec<Flight>,
    under_way: u64,
    response: Series,
    service: Series,
    sent: u64,
    counted: u64,
    late: u64,
    overtaken: u64,
    unsent: u64,
    first_sent_ns: u64,
    last_sent_ns: u64,
    slowest_ns: u64,
}

impl Sight {
    fn new(flights: u64) -> Self {
        Self {
            flights: vec![Flight::default(); flights as usize],
            under_way: 0,
            response: Series::up_to(ROOM),
            service: Series::up_to(ROOM),
            sent: 0,
            counted: 0,
            late: 0,
            overtaken: 0,
            unsent: 0,
            first_sent_ns: 0,
            last_sent_ns: 0,
            slowest_ns: 0,
        }
    }

    fn flight(&mut self, sequence: u32) -> &mut Flight {
        let at = sequence as usize % self.flights.len();
        &mut self.flights[at]
    }

    /// A message left; `late` when the one after it was due already.
    fn on_sent(&mut self, flight: Flight, late: bool) {
        let slot = self.flight(flight.sequence);
        let (overtaken, counted) = (slot.due_ns != 0, slot.counted);
        *slot = flight;
        // So long under way that its place is needed: lost.
        self.overtaken += u64::from(overtaken && counted);
        self.under_way += u64::from(!overtaken);
        self.sent += 1;
        if flight.counted {
            if self.counted == 0 {
                self.first_sent_ns = flight.sent_ns;
            }
            self.last_sent_ns = flight.sent_ns;
            self.counted += 1;
            self.late += u64::from(late);
        }
    }

    /// An answer came.
    fn on_answer(&mut self, sequence: u32, now_ns: u64) {
        let slot = self.flight(sequence);
        if slot.due_ns == 0 || slot.sequence != sequence {
            return; // It came again, or after it was given up.
        }
        let flight = std::mem::take(slot);
        self.under_way -= 1;
        self.slowest_ns = self.slowest_ns.max(now_ns - flight.sent_ns);
        if flight.counted {
            self.response.record(now_ns - flight.due_ns);
            self.service.record(now_ns - flight.sent_ns);
        }
    }

    /// A message that was due and could not be sent until the end.
    fn on_unsent(&mut self, due_ns: u64, now_ns: u64) {
        self.unsent += 1;
        self.response.record(now_ns.saturating_sub(due_ns));
    }

    fn lost(&self) -> u64 {
        let under_way = self
            .flights
            .iter()
            .filter(|one| one.due_ns != 0 && one.counted);
        self.overtaken + under_way.count() as u64
    }

    /// Thousandths of a message a second, of the counted ones; `None` below two.
    fn rate_milli(&self) -> Option<u64> {
        let span_ns = self.last_sent_ns.saturating_sub(self.first_sent_ns);
        if self.counted < 2 || span_ns == 0 {
            return None;
        }
        let milli = u128::from(self.counted - 1) * 1_000_000_000_000 / u128::from(span_ns);
        u64::try_from(milli).ok()
    }
}

/// The open loop.
struct Open<'a> {
    spec: &'a Spec,
    quota: Quota,
    schedule: Schedule,
    begin_ns: u64,
    /// When the next message is due, since the begin; `None` when all were sent.
    due: Option<u64>,
    sequence: u32,
    /// When the first bytes of the message at hand were taken.
    begun_ns: Option<u64>,
    message: Vec<u8>,
    sight: Sight,
}

impl<'a> Open<'a> {
    fn new(spec: &'a Spec, (pace, quota): (Pace, Quota), size_bytes: u64) -> Self {
        let mut schedule = Schedule::new(pace);
        let due = Some(schedule.next());
        let seconds = spec.timeout_ns.div_ceil(1_000_000_000);
        let flights = (pace.rate_per_s * seconds).clamp(1_024, FLIGHTS_MAX);
        Self {
            spec,
            quota,
            schedule,
            begin_ns: 0,
            due,
            sequence: 0,
            begun_ns: None,
            message: payload::message(size_bytes as usize),
            sight: Sight::new(flights.next_power_of_two()),
        }
    }

    /// Sends all, receives all; how it ended.
    fn run(&mut self, pipe: &mut impl Pipe) -> Result<EndedBy> {
        // Far enough away that the first message is not late.
        self.begin_ns = monotonic_ns() + 1_000_000;
        let stop_ns = self.begin_ns + self.quota.budget_ns + self.quota.budget_ns / 4;
        let mut heard_ns = self.begin_ns;
        loop {
            let (mut busy, mut blocked) = (false, false);
            for _ in 0..BURST {
                match self.send_due(pipe)? {
                    Some(Taken::Whole) => busy = true,
                    Some(_) => blocked = true,
                    None => {}
                }
                if !busy || blocked {
                    break;
                }
            }
            for _ in 0..BURST {
                let sight = &mut self.sight;
                if !pipe.recv_now(|sequence| sight.on_answer(sequence, monotonic_ns()))? {
                    break;
                }
                busy = true;
                heard_ns = monotonic_ns();
            }
            let now_ns = monotonic_ns();
            if self.due.is_some() && now_ns >= stop_ns {
                // What was begun by TCP is ended first.
                if self.begun_ns.is_none() {
                    self.give_up(now_ns);
                } else if now_ns >= stop_ns + self.spec.timeout_ns {
                    return Err(Error::Integrity(
                        "a message over TCP was never taken whole".into(),
                    ));
                }
            }
            if self.due.is_none() && self.is_drained(now_ns, heard_ns)? {
                return Ok(self.ended_by());
            }
            if !busy && self.spec.wait == Wait::Block {
                let until_ns = match self.due {
                    Some(due) if !blocked => self.begin_ns + due,
                    Some(_) => stop_ns.max(now_ns + 1_000_000),
                    None => now_ns + DRAIN_NS_MIN / 10,
                };
                pipe.wait(
                    blocked,
                    Duration::from_nanos(until_ns.saturating_sub(now_ns)),
                )?;
            }
        }
    }

    /// Sends the next message if it is due; `None` if it is not.
    fn send_due(&mut self, pipe: &mut impl Pipe) -> Result<Option<Taken>> {
        let Some(due) = self.due else {
            return Ok(None);
        };
        let now_ns = monotonic_ns();
        let due_ns = self.begin_ns + due;
        if now_ns < due_ns {
            return Ok(None);
        }
        if self.begun_ns.is_none() {
            payload::stamp(&mut self.message, self.sequence);
        }
        let taken = pipe.send_now(&self.message)?;
        if taken != Taken::Nothing {
            self.begun_ns.get_or_insert(now_ns);
        }
        if taken == Taken::Whole {
            let sent_ns = self.begun_ns.take().unwrap_or(now_ns);
            let next = self.schedule.next();
            let flight = Flight {
                due_ns,
                sent_ns,
                sequence: self.sequence,
                counted: self.is_counted(due),
            };
            self.sight.on_sent(flight, sent_ns >= self.begin_ns + next);
            self.sequence = self.sequence.wrapping_add(1);
            let more = next < self.quota.budget_ns && self.sight.sent < self.quota.samples_max;
            self.due = more.then_some(next);
        }
        Ok(Some(taken))
    }

    /// Whether a message is a sample: after the warm-up, which has a quarter of the budget at most.
    fn is_counted(&self, due: u64) -> bool {
        self.sight.sent >= self.quota.warmup || due >= self.quota.budget_ns / 4
    }

    /// The rate is more than what can be sent: what is still due counts as far as it has waited.
    fn give_up(&mut self, now_ns: u64) {
        while let Some(due) = self.due {
            self.sight.on_unsent(self.begin_ns + due, now_ns);
            let next = self.schedule.next();
            self.due = (next < self.quota.budget_ns).then_some(next);
        }
    }

    fn ended_by(&self) -> EndedBy {
        if self.sight.sent >= self.quota.samples_max {
            EndedBy::Samples
        } else {
            EndedBy::Budget
        }
    }

    /// Whether nothing more is to be waited for.
    fn is_drained(&self, now_ns: u64, heard_ns: u64) -> Result<bool> {
        if self.sight.under_way == 0 {
            return Ok(true);
        }
        let silent_ns = now_ns.saturating_sub(heard_ns.max(self.sight.last_sent_ns));
        if self.spec.path == Path::Tcp {
            if silent_ns < self.spec.timeout_ns {
                return Ok(false);
            }
            return Err(Error::Integrity(format!(
                "{} messages over TCP were not answered within {} ms",
                self.sight.under_way,
                silent_ns / 1_000_000
            )));
        }
        let drain_ns = (10 * self.sight.slowest_ns).max(DRAIN_NS_MIN);
        Ok(silent_ns >= drain_ns.min(self.spec.timeout_ns))
    }
}

pub(crate) fn measure(measure: &Measure, how: (Pace, Quota)) -> Result<Measured> {
    let spec = &measure.spec;
    let mut measured = Measured {
        sizes: Vec::new(),
        evidence: Default::default(),
        interference: Interference::default(),
    };
    // Without it sleeps end some 50 µs late.
    timer_slack_min()?;
    for visit in Visit::all(spec) {
        let size = match spec.path {
            Path::Tcp => tcp(measure, how, visit, &mut measured)?,
            Path::Udp => udp(measure, how, visit, &mut measured)?,
            path => unreachable!("the specification refuses {path}"),
        };
        measured.sizes.push(size);
    }
    Ok(measured)
}

fn tcp(
    measure: &Measure,
    how: (Pace, Quota),
    visit: Visit,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    let spec = &measure.spec;
    let size_bytes = spec.sizes_bytes[visit.size];
    let mut open = Open::new(spec, how, size_bytes);
    let number = admission::number(spec, visit);
    let mut channel: Tcp = admission::connect(measure, number, measure.options())?;
    admission::hello_stream(&mut channel, measure, visit)?;
    let before = channel.info()?.total_retrans;
    let mut pipe = Stream {
        channel,
        at: 0,
        check: StreamCheck::new(size_bytes as usize, spec.verify),
        buffer: vec![0; RECV_BUFFER_BYTES],
    };
    await_begin(measure.begin_ns, 0)?;
    let watch = Watch::begin()?;
    let ended_by = open.run(&mut pipe)?;
    let retransmits = pipe.channel.info()?.total_retrans - before;
    watch.end(&mut measured.interference, Some(retransmits.into()))?;
    measured.evidence.src.socket = pipe.channel.settings()?;
    Ok(open.measured(size_bytes, ended_by, measured))
}

fn udp(
    measure: &Measure,
    how: (Pace, Quota),
    visit: Visit,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    let spec = &measure.spec;
    let size_bytes = spec.sizes_bytes[visit.size];
    let mut open = Open::new(spec, how, size_bytes);
    let mut channel = admission::connect_udp(measure, visit)?;
    admission::hello_udp(&mut channel, measure, visit)?;
    let mut pipe = Datagrams {
        channel,
        size: size_bytes as usize,
        verify: spec.verify,
        buffer: vec![0; UDP_MESSAGE_BYTES_MAX],
    };
    await_begin(measure.begin_ns, 0)?;
    let watch = Watch::begin()?;
    let ended_by = open.run(&mut pipe)?;
    watch.end(&mut measured.interference, None)?;
    measured.evidence.src.socket = pipe.channel.settings()?;
    admission::end_udp(&mut pipe.channel, open.sight.sent, spec)?;
    Ok(open.measured(size_bytes, ended_by, measured))
}

impl Open<'_> {
    fn measured(self, size_bytes: u64, ended_by: EndedBy, all: &mut Measured) -> SizeMeasured {
        let sight = self.sight;
        let discarded = sight.sent - sight.counted;
        let facts = all.evidence.size(size_bytes);
        facts.discarded = Some(discarded);
        facts.unsent = Some(sight.unsent);
        facts.rate_ended_by = Some(ended_by);
        let none = "no message was answered; look for what loses datagrams of this size";
        let warm = |quantity, series: Series, reason: &str| Measurement {
            touched: None,
            quantity,
            phase: Phase::Warm,
            step: None,
            reason: series.is_empty().then(|| reason.into()),
            series,
        };
        let lost = sight.lost();
        let due = sight.counted + sight.unsent;
        let rate = sight.rate_milli().into_iter().collect();
        let mut measurements = vec![
            warm(Quantity::ResponseNs, sight.response, none),
            warm(Quantity::ServiceNs, sight.service, none),
            warm(
                Quantity::RatePerS,
                rate,
                "fewer than two messages were sent",
            ),
            share(Quantity::LateShare, sight.late + sight.unsent, due),
        ];
        if self.spec.path == Path::Udp {
            measurements.push(share(Quantity::LostShare, lost, sight.counted));
        }
        SizeMeasured {
            moments: None,
            size_bytes,
            measurements,
            round_trips: sight.sent,
            sent: None,
        }
    }
}

/// Messages by TCP: their answers come in order.
struct Stream {
    channel: Tcp,
    /// How much of the message at hand was taken.
    at: usize,
    check: StreamCheck,
    buffer: Vec<u8>,
}

impl Pipe for Stream {
    fn send_now(&mut self, message: &[u8]) -> Result<Taken> {
        let sent = self.channel.send_now(&message[self.at..])?.unwrap_or(0);
        self.at += sent;
        if self.at == message.len() {
            self.at = 0;
            return Ok(Taken::Whole);
        }
        Ok(if self.at == 0 {
            Taken::Nothing
        } else {
            Taken::Part
        })
    }

    fn recv_now(&mut self, mut answered: impl FnMut(u32)) -> Result<bool> {
        let peer = self.channel.peer();
        let Some(size) = self.channel.recv_now(&mut self.buffer)? else {
            return Ok(false);
        };
        if size == 0 {
            return Err(sonde_channel::Error::Closed {
                peer,
                awaited: "an answer",
                received: 0,
                wanted: 1,
            }
            .into());
        }
        let before = self.check.messages();
        self.check
            .on_bytes(&self.buffer[..size])
            .map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?;
        let count = self.check.messages().wrapping_sub(before);
        for number in 0..count {
            answered(before.wrapping_add(number));
        }
        Ok(true)
    }

    fn wait(&self, room: bool, timeout: Duration) -> Result<()> {
        waited(ready(&self.channel, room, timeout))
    }
}

/// Messages by UDP, each with its number.
struct Datagrams {
    channel: Udp,
    size: usize,
    verify: bool,
    buffer: Vec<u8>,
}

impl Pipe for Datagrams {
    fn send_now(&mut self, message: &[u8]) -> Result<Taken> {
        let taken = self.channel.send_now(message)?;
        Ok(if taken { Taken::Whole } else { Taken::Nothing })
    }

    fn recv_now(&mut self, mut answered: impl FnMut(u32)) -> Result<bool> {
        let peer = self.channel.peer();
        let Datagram::Of(size) = self.channel.recv_now(&mut self.buffer)? else {
            return Ok(false);
        };
        let message = &self.buffer[..size.min(self.buffer.len())];
        if message.first_chunk() == Some(CONTROL) {
            return Ok(true); // A late answer to the hello.
        }
        let Some(sequence) = payload::sequence(message).filter(|_| size == self.size) else {
            return Err(sonde_channel::Error::Size {
                peer,
                found_bytes: size,
                wanted_bytes: self.size,
            }
            .into());
        };
        let checked = if self.verify {
            payload::verify(message, sequence)
        } else {
            payload::check(message, sequence)
        };
        checked.map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?;
        answered(sequence);
        Ok(true)
    }

    fn wait(&self, room: bool, timeout: Duration) -> Result<()> {
        waited(ready(&self.channel, room, timeout))
    }
}

fn waited(woken: std::io::Result<()>) -> Result<()> {
    woken.map_err(|source| Error::Control {
        what: "wait for an answer".into(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::{Probe, Spacing};

    const MS: u64 = 1_000_000;

    fn flight(sequence: u32, due_ns: u64, sent_ns: u64) -> Flight {
        Flight {
            due_ns,
            sent_ns,
            sequence,
            counted: true,
        }
    }

    #[test]
    fn a_stall_is_in_every_response_that_it_delays() {
        // A message each ms; the peer stands still from 10 to 60 ms and then answers at once. Nothing can be sent meanwhile.
        let mut sight = Sight::new(1_024);
        for number in 0..100 {
            let due = (1 + u64::from(number)) * MS;
            let stalled = (10 * MS..60 * MS).contains(&due);
            let sent = if stalled { 60 * MS } else { due };
            sight.on_sent(flight(number, due, sent), stalled);
            sight.on_answer(number, sent + MS / 10);
        }
        let [response, service] = [&sight.response, &sight.service].map(|all| all.quantile(9, 10));
        assert_eq!(service, Some(MS / 10));
        assert!(response.unwrap() >= 40 * MS, "{response:?}");
        assert_eq!((sight.late, sight.lost(), sight.under_way), (50, 0, 0));
    }

    #[test]
    fn answers_that_come_again_or_not_at_all_are_no_samples() {
        let mut sight = Sight::new(4);
        for number in 0..4 {
            sight.on_sent(flight(number, 5, 6), false);
        }
        for number in [0, 0, 1, 77] {
            sight.on_answer(number, 16);
        }
        assert_eq!(
            (sight.response.count(), sight.lost(), sight.under_way),
            (2, 2, 2)
        );
        // Number 6 needs the place of number 2.
        sight.on_sent(flight(6, 7, 8), false);
        sight.on_answer(2, 20);
        assert_eq!(
            (sight.response.count(), sight.lost(), sight.under_way),
            (2, 3, 2)
        );
    }

    #[test]
    fn the_rate_is_that_of_the_sends() {
        let mut sight = Sight::new(16);
        assert_eq!(sight.rate_milli(), None);
        for number in 0..11 {
            let at = 1_000 * MS + u64::from(number) * 100 * MS;
            sight.on_sent(flight(number, at, at), false);
        }
        assert_eq!(sight.rate_milli(), Some(10_000));
    }

    /// Takes nothing.
    struct Wall;

    impl Pipe for Wall {
        fn send_now(&mut self, _: &[u8]) -> Result<Taken> {
            Ok(Taken::Nothing)
        }
        fn recv_now(&mut self, _: impl FnMut(u32)) -> Result<bool> {
            Ok(false)
        }
        fn wait(&self, _: bool, timeout: Duration) -> Result<()> {
            std::thread::sleep(timeout);
            Ok(())
        }
    }

    #[test]
    fn an_unsent_backlog_counts() {
        let spec = Spec::new(Probe::Rate, Path::Udp, Wait::Block);
        let pace = Pace {
            rate_per_s: 1_000,
            law: Spacing::Constant,
            seed: 1,
        };
        let quota = Quota {
            budget_ns: 40 * MS,
            ..Quota::RATE
        };
        let mut open = Open::new(&spec, (pace, quota), 64);
        assert_eq!(open.run(&mut Wall).unwrap(), EndedBy::Budget);
        let sight = &open.sight;
        assert_eq!(
            (sight.unsent, sight.sent, sight.response.count()),
            (40, 0, 40)
        );
        // Due first, waited longest: through the budget and its quarter.
        assert!(sight.response.max().unwrap() >= 50 * MS);
        assert!(sight.response.min().unwrap() >= 10 * MS);
    }
}
