//! Trains: the packets of a datagram that is alone on its way, each computed in one step from end to end.
//!
//! Model:   a datagram whose lines no other uses (and that follows only datagrams on the same way) needs no steps between its
//!          source and its host: when a packet leaves the source, its start on each further line follows from the packet before
//!          it. The starts are kept until they are past. As soon as another datagram is chosen that needs one of these
//!          lines, and before a fault, the train is taken apart: each packet is put where it is at that time, and the
//!          plain machine goes on. A head that would move to a central queue ends the train too.
//! Source:  none: it is exactly what [`super::machine`] does. Not in classes 1 and 2, nor with `discard_after`.
//! Checked: `trains_are_exactly_the_plain_machine`.

use super::agenda::Step;
use super::machine::{NEVER, Packet};
use super::net::Net;
use super::wiring::{End, Node, Pace};
use sonde_units::{Instant, Span};
use std::collections::VecDeque;

/// Host, adapter, chip, middle, chip, adapter: the lines between them and the host.
const HOPS: usize = 6;
/// No train is on a line.
pub(super) const NOBODY: u32 = u32::MAX;

/// A packet, and when it starts on each line.
struct Flight {
    packet: Packet,
    /// How long it takes on a line, and at an adapter: its datagram may be gone before its credits are back.
    times: [Span; 2],
    starts: [Instant; HOPS],
    /// When its last credit is back.
    clear_at: Instant,
}

/// The train of a source.
#[derive(Default)]
pub(super) struct Train {
    is_on: bool,
    to: u16,
    lines: Vec<u32>,
    /// Whom each line had served last before.
    last: [u32; HOPS],
    flights: VecDeque<Flight>,
    /// Whether there were flights before these.
    is_old: bool,
}

impl Net {
    /// The lines of a datagram from `source`, in their order.
    fn way(&self, source: u32, from: u16, to: u16, is_served: bool) -> ([u32; HOPS], usize) {
        let (mut lines, mut count) = ([0; HOPS], 0);
        let mut node = self.inputs[source as usize].node;
        loop {
            let line = self.wiring.next(node, from, to);
            lines[count] = line;
            count += 1;
            let End::Input(input) = self.lines[line as usize].end else {
                return (lines, count);
            };
            node = self.inputs[input as usize].node;
            if is_served && matches!(node, Node::Chip(_)) {
                return (lines, count);
            }
        }
    }

    /// A datagram begins at `source`: trains in its way are taken apart, and it may be one itself.
    pub(super) fn enroll(&mut self, now: Instant, source: u32, place: u32) {
        if !self.has_trains {
            return;
        }
        let datagram = &mut self.datagrams[place as usize];
        datagram.source = source;
        let (from, to, is_served) = (datagram.frame.from.0, datagram.to, datagram.is_served);
        let (lines, count) = self.way(source, from, to, is_served);
        let is_fit = !is_served && self.up_at <= now;
        let train = &self.trains[source as usize];
        let goes_on = is_fit && train.is_on && train.to == to;
        for line in &lines[..count] {
            let owner = self.owners[*line as usize];
            if owner != NOBODY && !(goes_on && owner == source) {
                self.take_apart(now, owner);
            }
            self.users[*line as usize] += 1;
        }
        if goes_on || !is_fit || source >= u32::from(self.wiring.ports) {
            return;
        }
        for line in &lines[..count] {
            let line = *line as usize;
            self.lines[line].collect(now);
            let here = &self.lines[line];
            if self.users[line] != 1 || here.credits != here.buffers {
                return;
            }
        }
        let train = &mut self.trains[source as usize];
        (train.is_on, train.to, train.is_old) = (true, to, false);
        train.lines.clear();
        train.lines.extend_from_slice(&lines[..count]);
        train.flights.clear();
        for (hop, line) in lines[..count].iter().enumerate() {
            train.last[hop] = self.lines[*line as usize].last;
            self.owners[*line as usize] = source;
        }
    }

    /// A datagram has ended, or goes on from elsewhere.
    pub(super) fn dismiss(&mut self, place: u32) {
        if !self.has_trains {
            return;
        }
        let datagram = &self.datagrams[place as usize];
        let (from, to) = (datagram.frame.from.0, datagram.to);
        let (lines, count) = self.way(datagram.source, from, to, datagram.is_served);
        for line in &lines[..count] {
            self.users[*line as usize] -= 1;
        }
    }

    pub(super) fn is_train(&self, source: u32) -> bool {
        self.has_trains && self.trains[source as usize].is_on
    }

    /// Sends a packet all the way; when its last bit is on the first line.
    pub(super) fn fly(&mut self, now: Instant, source: u32, packet: Packet) -> Instant {
        let mut train = std::mem::take(&mut self.trains[source as usize]);
        while train
            .flights
            .front()
            .is_some_and(|flight| flight.clear_at <= now)
        {
            train.flights.pop_front();
            train.is_old = true;
        }
        let mut flight = Flight {
            packet,
            times: [Pace::Line, Pace::Adapter].map(|pace| self.time(&packet, pace)),
            starts: [NEVER; HOPS],
            clear_at: now,
        };
        let (mut begin, mut input, mut first_end) = (now, source, now);
        let mut is_blocked = false;
        for (hop, line) in train.lines.iter().map(|line| *line as usize).enumerate() {
            let end = begin + flight.times[self.lines[line].pace as usize];
            flight.starts[hop] = begin;
            let here = &mut self.lines[line];
            (here.free_at, here.last) = (end, input);
            here.credits -= 1;
            if hop == 0 {
                first_end = end;
            } else {
                let before = train.lines[hop - 1] as usize;
                self.inputs[input as usize].read_free = end;
                let back = end + self.propagation(before);
                self.lines[before].returns.push_back(back);
                flight.clear_at = flight.clear_at.max(back);
            }
            let Some(&next) = train.lines.get(hop + 1) else {
                let tail = end + self.propagation(line);
                let back = tail + self.propagation(line);
                self.lines[line].returns.push_back(back);
                flight.clear_at = flight.clear_at.max(back);
                self.reach(tail, packet);
                break;
            };
            let landed = self.land(begin, line, packet);
            let End::Input(there) = self.lines[line].end else {
                unreachable!("there is a line behind it");
            };
            let there_input = &self.inputs[there as usize];
            let ready = landed.eligible.max(there_input.read_free);
            let chip = self.wiring.chip_number(there_input.node);
            begin = self.lines[next as usize].open_from(ready);
            let is_shared = chip.is_some_and(|chip| self.rooms[chip] > 0);
            if begin > ready && is_shared {
                is_blocked = true;
                break;
            }
            input = there;
        }
        train.flights.push_back(flight);
        self.trains[source as usize] = train;
        if is_blocked {
            self.take_apart(now, source);
        }
        first_end
    }

    /// Puts the packets of a train where they are at `now`.
    pub(super) fn take_apart(&mut self, now: Instant, source: u32) {
        let mut train = std::mem::take(&mut self.trains[source as usize]);
        let hops = train.lines.len();
        for hop in 0..hops {
            self.rewind(now, &train, hop);
        }
        for flight in &train.flights {
            if flight.starts[hops - 1] <= now || flight.starts[hops - 1] == NEVER {
                continue;
            }
            // It has not reached its host after all.
            let datagram = &mut self.datagrams[flight.packet.datagram as usize];
            if flight.packet.index + 1 == datagram.packets {
                datagram.arrives_at = NEVER;
            } else {
                datagram.gone -= 1;
            }
        }
        train.is_on = false;
        train.flights.clear();
        self.trains[source as usize] = train;
    }

    /// Sets one line of a train, and the input at its end, to what they are at `now`.
    fn rewind(&mut self, now: Instant, train: &Train, hop: usize) {
        let line = train.lines[hop] as usize;
        self.owners[line] = NOBODY;
        let (pace, end) = (self.lines[line].pace, self.lines[line].end);
        let propagation = self.propagation(line);
        let behind = train
            .lines
            .get(hop + 1)
            .map(|line| self.lines[*line as usize].pace);
        let started = || {
            train
                .flights
                .iter()
                .filter(|flight| flight.starts[hop] <= now)
        };
        let mut returns = std::mem::take(&mut self.lines[line].returns);
        returns.clear();
        let (mut free_at, mut read_free, mut used) = (Instant::START, Instant::START, 0);
        for flight in started() {
            free_at = flight.starts[hop] + flight.times[pace as usize];
            let back = match behind {
                None => Some(free_at + propagation + propagation),
                Some(behind) if flight.starts[hop + 1] <= now => {
                    read_free = flight.starts[hop + 1] + flight.times[behind as usize];
                    Some(read_free + propagation)
                }
                Some(_) => None,
            };
            match back {
                Some(back) if back <= now => {}
                Some(back) => {
                    returns.push_back(back);
                    used += 1;
                }
                None => {
                    let landed = self.land(flight.starts[hop], line, flight.packet);
                    let End::Input(input) = end else {
                        unreachable!("there is a line behind it");
                    };
                    self.inputs[input as usize].packets.push_back(landed);
                    used += 1;
                }
            }
        }
        let is_touched = train.is_old || started().next().is_some();
        let here = &mut self.lines[line];
        here.returns = returns;
        here.free_at = free_at;
        here.credits = here.buffers - used;
        if !is_touched {
            here.last = train.last[hop];
        }
        let End::Input(input) = end else {
            return;
        };
        let there = &mut self.inputs[input as usize];
        there.read_free = read_free;
        if let Some(head) = there.packets.front() {
            let at = head.eligible.max(read_free).max(now);
            self.plan_head(at, input);
        }
    }

    /// Takes all trains apart, before something changes for all.
    pub(super) fn take_all_apart(&mut self, now: Instant) {
        for source in 0..self.trains.len() as u32 {
            if self.is_train(source) {
                self.take_apart(now, source);
            }
        }
    }

    /// A packet is planned to be at its host, whole, at `tail`.
    pub(super) fn reach(&mut self, tail: Instant, packet: Packet) {
        if packet.is_ack() {
            let step = Step::Acknowledged(packet.to, packet.from);
            return self.calendar.insert(tail, step);
        }
        let datagram = &mut self.datagrams[packet.datagram as usize];
        let is_last = packet.index + 1 == datagram.packets;
        if is_last {
            datagram.arrives_at = tail;
        }
        if self.is_acknowledged || is_last {
            self.calendar
                .insert(tail, Step::Arrived(packet.datagram, packet.index));
        } else {
            self.gone(packet.datagram);
        }
    }
}
