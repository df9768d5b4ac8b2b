//! The machine of a crossbar: sources that ask, destinations that are busy, connections that carry one datagram.

use super::channels::Channels;
use super::{Busy, Crossbar, Order, Signals};
use crate::calendar::Calendar;
use crate::edge::Edge;
use crate::medium::sender::{Parcel, Sender};
use crate::medium::{Medium, Target};
use crate::network::{Cause, Command, Place, Refused};
use crate::{Fault, Frame, Line, NetworkSpec, Port, SpecError};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_units::{Bytes, Instant, Span};
use std::collections::VecDeque;

const SEED: u64 = 0x6869_7070_6963_7262;
/// Lengths whose times are kept, by their last bits.
const KEPT: usize = 32;

/// What is due at a time. A step of a source names the state that it belongs to, by number.
enum Step {
    /// The last word of a connection has left the source.
    End { source: usize, number: u64 },
    /// It is at the destination.
    Deliver { frame: Frame, to: Port },
    /// It is at the address server, which has its answer.
    Answer { frame: Frame },
    /// A source asks again.
    Retry { source: usize, number: u64 },
    /// A source hears of its last refusal.
    GiveUp { source: usize, number: u64 },
    /// A request has camped on for as long as it may.
    CampEnd { source: usize, number: u64 },
    /// Connections may begin.
    Slot,
}

/// What a source does about the frame at its head.
#[derive(Clone, Copy)]
enum State {
    /// There is none.
    Idle,
    /// Its request waits at a destination.
    Camped(Port),
    /// It was refused and will ask again, or give up.
    Refused,
    /// It was taken from the queue, and is sent over these channels: none where it goes to the server, or nowhere.
    Sending(Option<Parcel>, u64),
}

/// A sending side.
struct Source {
    sender: Sender,
    state: State,
    /// Of the state: what is due for an earlier one is void.
    number: u64,
    /// How often the frame at the head was refused.
    refusals: u32,
    /// Since when an outband request for the frame at the head was possible: it was at the head, and the data of the one
    /// before it flowed.
    asked: Instant,
}

impl Source {
    fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// A frame is about to be queued.
    fn expect(&mut self, now: Instant) {
        if self.sender.front().is_none() {
            self.asked = self.asked.max(now);
        }
    }
}

/// A receiving side.
struct Destination {
    channels: Channels,
    /// Sources whose requests wait, in the order of arrival.
    camped: VecDeque<usize>,
}

/// The medium: stations, then as many more sources as each station has channels, for what comes to it from elsewhere.
pub(crate) struct Switch {
    table: Crossbar,
    line: Line,
    /// That of the specification.
    nominal: Line,
    ports: u16,
    sources: Vec<Source>,
    destinations: Vec<Destination>,
    calendar: Calendar<Step>,
    random: Pcg64Mcg,
    kept: [(Bytes, Span); KEPT],
    /// Until when the switch is not there.
    down_until: Instant,
    /// Whether a slot is in the calendar.
    is_slotted: bool,
}

impl Switch {
    pub fn new(
        spec: &NetworkSpec,
        table: &Crossbar,
        ports: u16,
        seed: u64,
    ) -> Result<Self, SpecError> {
        table.check(spec)?;
        let source = |_| Source {
            sender: Sender::new(spec.station.queue),
            state: State::Idle,
            number: 0,
            refusals: 0,
            asked: Instant::START,
        };
        let destination = |_| Destination {
            channels: Channels::new(table.channels),
            camped: VecDeque::new(),
        };
        Ok(Self {
            table: table.clone(),
            line: spec.line,
            nominal: spec.line,
            ports,
            sources: (0..usize::from(ports) * (1 + usize::from(table.channels)))
                .map(source)
                .collect(),
            destinations: (0..ports).map(destination).collect(),
            calendar: Calendar::new(),
            random: Pcg64Mcg::seed_from_u64(seed ^ SEED),
            kept: [(Bytes(u64::MAX), Span::ZERO); KEPT],
            down_until: Instant::START,
            is_slotted: false,
        })
    }

    fn destination(&mut self, port: Port) -> &mut Destination {
        &mut self.destinations[usize::from(port.0)]
    }

    /// Below `bound`, evenly.
    fn draw(&mut self, bound: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// How long the data of a frame flow.
    fn transfer(&mut self, len: Bytes) -> Span {
        let kept = &mut self.kept[len.0 as usize % KEPT];
        if kept.0 != len {
            *kept = (len, self.table.transfer(&self.line, len));
        }
        kept.1
    }

    /// Puts a source into a state; the number of it.
    fn turn(&mut self, source: usize, state: State) -> u64 {
        let source = &mut self.sources[source];
        source.state = state;
        source.number += 1;
        source.number
    }

    /// Whether a source is still in the state that a step belongs to.
    fn is_current(&self, source: usize, number: u64) -> bool {
        self.sources[source].number == number
    }

    /// An idle source turns to the frame at its head.
    fn begin(&mut self, now: Instant, source: usize, edge: &mut Edge) {
        debug_assert!(self.sources[source].is_idle());
        self.sources[source].refusals = 0;
        if self.sources[source].sender.front().is_some() {
            self.ask(now, source, edge);
        }
    }

    /// Asks for a connection for the frame at the head.
    fn ask(&mut self, now: Instant, source: usize, edge: &mut Edge) {
        let Some(&(_, target)) = self.sources[source].sender.front() else {
            return;
        };
        if now < self.down_until {
            return self.send_nowhere(now, source, edge);
        }
        let Target::One(to) = target else {
            return self.connect(now, source, 0, edge);
        };
        let stripes = self.table.stripes;
        let destination = &self.destinations[usize::from(to.0)];
        let is_free = destination.channels.free() >= u32::from(stripes);
        if self.table.slot.is_none() && is_free && destination.camped.is_empty() {
            self.seize(now, source, to, edge);
        } else if self.table.busy == Busy::CampOn {
            self.camp(now, source, to);
        } else {
            self.reject(now, source, edge);
        }
    }

    /// A request waits for its destination.
    fn camp(&mut self, now: Instant, source: usize, to: Port) {
        let number = self.turn(source, State::Camped(to));
        self.destination(to).camped.push_back(source);
        if let Some(limit) = self.table.camp_limit {
            let step = Step::CampEnd { source, number };
            self.calendar.insert(now + limit, step);
        }
        self.expect_slot(now);
    }

    /// Sees to it that the next slot is in the calendar, if there are slots.
    fn expect_slot(&mut self, now: Instant) {
        let Some(slot) = self.table.slot.filter(|_| !self.is_slotted) else {
            return;
        };
        let at = now.as_picos().next_multiple_of(slot.as_picos());
        self.calendar.insert(Instant::from_picos(at), Step::Slot);
        self.is_slotted = true;
    }

    /// Connections begin: as many as there are free channels for.
    fn begin_slot(&mut self, now: Instant, edge: &mut Edge) {
        // What ends now ends before the slot begins.
        if self.calendar.next_at() == Some(now) {
            return self.calendar.insert(now, Step::Slot);
        }
        self.is_slotted = false;
        for port in (0..self.ports).map(Port) {
            self.serve(now, port, edge);
        }
        if self.destinations.iter().any(|d| !d.camped.is_empty()) {
            self.expect_slot(now + Span::picos(1));
        }
    }

    /// Serves requests that wait for a destination, while it has free channels.
    fn serve(&mut self, now: Instant, to: Port, edge: &mut Edge) {
        let stripes = u32::from(self.table.stripes);
        loop {
            let destination = &self.destinations[usize::from(to.0)];
            let waiting = destination.camped.len();
            if waiting == 0 || destination.channels.free() < stripes {
                return;
            }
            let place = match self.table.order {
                Order::Fifo => 0,
                Order::Random => self.draw(waiting as u64) as usize,
            };
            let camped = &mut self.destination(to).camped;
            if let Some(source) = camped.remove(place) {
                self.seize(now, source, to, edge);
            }
        }
    }

    /// Takes channels of a destination, and connects.
    fn seize(&mut self, now: Instant, source: usize, to: Port, edge: &mut Edge) {
        let (stripes, choice) = (self.table.stripes, self.table.choice);
        let channels = &mut self.destinations[usize::from(to.0)].channels;
        let taken = channels.take(stripes, choice, &mut self.random);
        edge.counters.circuit_setups += 1;
        self.connect(now, source, taken, edge);
    }

    /// Takes the frame at the head from its queue.
    fn pop(&mut self, now: Instant, source: usize, edge: &mut Edge) -> Option<Parcel> {
        let (parcel, woken) = self.sources[source].sender.pop()?;
        if woken {
            edge.ready(now, Port(source as u16));
        }
        Some(parcel)
    }

    /// The connection is granted: the frame at the head is sent over it.
    fn connect(&mut self, now: Instant, source: usize, taken: u64, edge: &mut Edge) {
        let Some(parcel) = self.pop(now, source, edge) else {
            return;
        };
        let mut opening = self.table.opening(&self.line);
        if self.table.signals == Signals::Outband {
            opening = opening.saturating_sub(now.since(self.sources[source].asked));
        }
        let end = now + opening + self.transfer(parcel.0.len);
        let number = self.turn(source, State::Sending(Some(parcel), taken));
        // The next request may go out with the data of this one.
        self.sources[source].asked = now + opening;
        self.calendar.insert(end, Step::End { source, number });
    }

    /// The switch does not answer: the frame is lost, after which its source is as busy as if it had been sent.
    fn send_nowhere(&mut self, now: Instant, source: usize, edge: &mut Edge) {
        let Some(parcel) = self.pop(now, source, edge) else {
            return;
        };
        lose(now, parcel, Cause::Restart, edge);
        let end = now + self.table.opening(&self.line) + self.transfer(parcel.0.len);
        let number = self.turn(source, State::Sending(None, 0));
        self.calendar.insert(end, Step::End { source, number });
    }

    /// A connection has ended at its source.
    fn end(&mut self, now: Instant, source: usize, number: u64, edge: &mut Edge) {
        if !self.is_current(source, number) {
            return;
        }
        if let State::Sending(Some((frame, target)), taken) = self.sources[source].state {
            let arrives = now + self.table.one_way(&self.line);
            let step = match target {
                Target::One(to) => {
                    self.destination(to).channels.release(taken);
                    if self.table.slot.is_none() {
                        self.serve(now, to, edge);
                    }
                    Step::Deliver { frame, to }
                }
                Target::All | Target::Server => Step::Answer { frame },
            };
            let delay = match step {
                Step::Answer { .. } => self.table.resolution_delay,
                _ => Span::ZERO,
            };
            self.calendar.insert(arrives + delay, step);
        }
        self.turn(source, State::Idle);
        self.begin(now, source, edge);
    }

    /// A request is refused.
    fn reject(&mut self, now: Instant, source: usize, edge: &mut Edge) {
        edge.counters.rejections += 1;
        let number = self.turn(source, State::Refused);
        self.sources[source].refusals += 1;
        let told = now + self.table.round_trip(&self.line);
        if self.sources[source].refusals >= self.table.tries {
            let step = Step::GiveUp { source, number };
            return self.calendar.insert(told, step);
        }
        let wait = self.table.retry.as_picos();
        let more = self.draw(wait);
        let at = told + Span::picos(wait + more);
        self.calendar.insert(at, Step::Retry { source, number });
    }

    /// A source gives the frame at its head up.
    fn give_up(&mut self, now: Instant, source: usize, cause: Cause, edge: &mut Edge) {
        if let Some(parcel) = self.pop(now, source, edge) {
            lose(now, parcel, cause, edge);
        }
        self.turn(source, State::Idle);
        self.sources[source].asked = now;
        self.begin(now, source, edge);
    }

    /// A request has waited too long.
    fn end_camp(&mut self, now: Instant, source: usize, number: u64, edge: &mut Edge) {
        let State::Camped(to) = self.sources[source].state else {
            return;
        };
        if self.is_current(source, number) {
            self.destination(to).camped.retain(|other| *other != source);
            self.reject(now, source, edge);
        }
    }

    /// A frame that no station sends waits before the switch like one that a station does: at a source that is idle, if any.
    fn arrive_from_elsewhere(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        let channels = usize::from(self.table.channels);
        let first = usize::from(self.ports) + usize::from(to.0) * channels;
        let mut sources = first..first + channels;
        let idle = sources.find(|source| self.sources[*source].is_idle());
        let source = idle.unwrap_or(first + frame.id.0 as usize % channels);
        self.take_background(now, source, frame, to, edge);
    }

    fn take_background(
        &mut self,
        now: Instant,
        source: usize,
        frame: Frame,
        to: Port,
        edge: &mut Edge,
    ) {
        self.sources[source].expect(now);
        let sender = &mut self.sources[source].sender;
        if !sender.push_background(frame, Target::One(to)) {
            return edge.lose(now, &frame, to, Place::Station, Cause::Overflow);
        }
        if self.sources[source].is_idle() {
            self.begin(now, source, edge);
        }
    }

    /// All connections are cut and all requests forgotten, with their frames.
    fn restart(&mut self, now: Instant, down: Span, edge: &mut Edge) {
        self.down_until = now + down;
        for destination in &mut self.destinations {
            destination.camped.clear();
            destination.channels.release(u64::MAX);
        }
        let mut cut = Vec::new();
        for source in 0..self.sources.len() {
            match self.sources[source].state {
                State::Sending(Some(parcel), _) => lose(now, parcel, Cause::Restart, edge),
                State::Camped(_) => {
                    if let Some(parcel) = self.pop(now, source, edge) {
                        lose(now, parcel, Cause::Restart, edge);
                    }
                }
                State::Idle | State::Refused | State::Sending(None, _) => continue,
            }
            self.turn(source, State::Idle);
            self.sources[source].asked = now;
            cut.push(source);
        }
        for source in cut {
            self.begin(now, source, edge);
        }
    }
}

/// A frame is lost in the switch, or before it.
fn lose(now: Instant, (frame, target): Parcel, cause: Cause, edge: &mut Edge) {
    let to = match target {
        Target::One(to) => to,
        Target::All | Target::Server => frame.from,
    };
    edge.lose(now, &frame, to, Place::Medium, cause);
}

impl Medium for Switch {
    fn admits(&mut self, _: Instant, port: Port, len: Bytes) -> bool {
        self.sources[usize::from(port.0)].sender.admits(len)
    }

    fn ready(&self, port: Port) -> bool {
        self.sources[usize::from(port.0)].sender.ready()
    }

    fn backlog(&mut self, _: Instant, port: Port) -> Bytes {
        self.sources[usize::from(port.0)].sender.backlog()
    }

    fn take(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge) {
        let source = usize::from(frame.from.0);
        self.sources[source].expect(now);
        self.sources[source].sender.push(frame, target);
        if self.sources[source].is_idle() {
            self.begin(now, source, edge);
        }
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        if frame.from.0 < self.ports {
            let source = usize::from(frame.from.0);
            self.take_background(now, source, frame, to, edge);
        } else {
            self.arrive_from_elsewhere(now, frame, to, edge);
        }
    }

    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused> {
        match command {
            Command::Fault(Fault::Rate { rate }) => {
                self.line.rate = rate.or(self.nominal.rate);
                self.kept = [(Bytes(u64::MAX), Span::ZERO); KEPT];
                Ok(())
            }
            Command::Fault(Fault::Restart { down }) => {
                self.restart(now, down, edge);
                Ok(())
            }
            Command::Vc(_) => Err(Refused::NoCircuits),
            _ => Err(Refused::NotHere {
                what: "trunk or connection manager",
                remedy: "its one switch can be restarted",
            }),
        }
    }

    fn next_at(&self) -> Option<Instant> {
        self.calendar.next_at()
    }

    fn step(&mut self, edge: &mut Edge) {
        let Some((at, step)) = self.calendar.pop() else {
            return;
        };
        match step {
            Step::End { source, number } => self.end(at, source, number, edge),
            Step::Deliver { frame, to } => edge.arrive(at, &frame, to),
            // By a connection to its sender, in turn with all else for it.
            Step::Answer { frame } => self.arrive_from_elsewhere(at, frame, frame.from, edge),
            Step::Retry { source, number } if self.is_current(source, number) => {
                // A new request, with a set-up of its own.
                self.sources[source].asked = at;
                self.ask(at, source, edge);
            }
            Step::GiveUp { source, number } if self.is_current(source, number) => {
                self.give_up(at, source, Cause::Rejected, edge);
            }
            Step::Retry { .. } | Step::GiveUp { .. } => {}
            Step::CampEnd { source, number } => self.end_camp(at, source, number, edge),
            Step::Slot => self.begin_slot(at, edge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, FrameId, resolve};

    fn frame(id: u64, from: u16, to: u16) -> Frame {
        Frame::datagram(FrameId(id), Port(from), Port(to), Bytes(65_280))
    }

    /// Without ways and set-up a frame takes 665.6 us.
    fn switch(knobs: &str) -> (Switch, Edge) {
        let selector = format!("hippi-800:crossing=0ns:length_m=0:setup=0ns{knobs}");
        let spec = resolve(&selector, &|_| Err(String::new())).expect("a network");
        let table = spec.crossbar.clone().expect("a crossbar");
        let switch = Switch::new(&spec, &table, 3, 1).expect("it can be built");
        (switch, Edge::new(&spec, 3, 1))
    }

    /// Names and times of what arrives, in tenths of a frame's time; `losses` beside it.
    fn run(switch: &mut Switch, edge: &mut Edge) -> (Vec<(u64, u64)>, usize) {
        while switch.next_at().is_some() {
            switch.step(edge);
        }
        let (mut arrived, mut losses) = (Vec::new(), 0);
        while let Some(event) = edge.tell() {
            match event {
                Event::Deliver { at, id, .. } => arrived.push((id.0, at.as_nanos() / 66_560)),
                Event::Lost { .. } => losses += 1,
                _ => {}
            }
        }
        (arrived, losses)
    }

    #[test]
    fn background_shares_lines_and_destinations() {
        let start = Instant::START;
        let (mut switch, mut edge) = switch("");
        // By the line of station 0, between two of its own frames; and from elsewhere, to the same destination.
        switch.take(start, frame(0, 0, 2), Target::One(Port(2)), &mut edge);
        switch.background(start, frame(1, 0, 1), Port(1), &mut edge);
        switch.take(start, frame(2, 0, 2), Target::One(Port(2)), &mut edge);
        switch.background(start, frame(3, 3, 2), Port(2), &mut edge);
        let (arrived, losses) = run(&mut switch, &mut edge);
        assert_eq!(arrived, [(0, 10), (3, 20), (1, 20), (2, 30)]);
        assert_eq!(losses, 0);
    }

    #[test]
    fn background_fills_every_channel_and_no_host() {
        let (mut switch, mut edge) = switch(":channels=4");
        for id in 0..8 {
            switch.background(Instant::START, frame(id, 3, 2), Port(2), &mut edge);
        }
        let (arrived, _) = run(&mut switch, &mut edge);
        assert_eq!(arrived.iter().filter(|(_, at)| *at == 10).count(), 4);
        assert_eq!(arrived.last().map(|(_, at)| *at), Some(20));
        let now = Instant::from_nanos(1_331_200);
        for id in 0..5_000 {
            switch.background(now, frame(id, 0, 2), Port(2), &mut edge);
        }
        assert!(switch.ready(Port(0)));
        assert!(switch.backlog(now, Port(0)) == Bytes::ZERO);
        // One is sent, 4,096 wait, the others are lost.
        assert_eq!(run(&mut switch, &mut edge).1, 5_000 - 4_097);
    }

    #[test]
    fn the_address_server_answers_by_a_connection() {
        let (mut switch, mut edge) = switch(":resolution_delay=6656us");
        switch.take(Instant::START, frame(0, 0, 0), Target::Server, &mut edge);
        let (arrived, _) = run(&mut switch, &mut edge);
        assert_eq!(arrived, [(0, 10 + 100 + 10)]);
    }
}
