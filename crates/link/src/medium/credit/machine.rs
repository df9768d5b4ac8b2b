//! Packets from buffer to buffer.
//!
//! Model:   an input keeps its packets in order; its head asks for the line that it takes next as soon as enough of it is
//!          there (all, or its header) and the packet before it has left. A line starts a packet when it is free, when its far
//!          end has a free buffer and when, of the inputs that ask, the next in turn (round robin) is served. A head that
//!          must wait moves to the chip's central queue where there is room, and is served from there first. A buffer is free
//!          when its packet has left it whole; its credit is back one propagation later. Cut-through starts never so early
//!          that the line would run dry.
//! Source:  FC-PH §26 (flow control) (shared central queue). Deviations: a host takes what comes.
//! Checked: `tests/credit.rs`: credits, fairness, head-of-line blocking, no deadlock.

use super::agenda::Step;
use super::net::Net;
use super::packing::Times;
use super::wiring::{End, Node, Pace};
use crate::edge::Edge;
use crate::network::{Cause, Place};
use crate::{Forwarding, Frame};
use sonde_units::{Instant, Span};
use std::collections::VecDeque;

/// The place of a datagram of its own, for packets that have none: acknowledgements.
pub(super) const NO_DATAGRAM: u32 = u32::MAX;

/// A time that does not come.
pub(super) const NEVER: Instant = Instant::from_picos(u64::MAX);

/// A datagram on its way.
#[derive(Clone, Copy)]
pub(super) struct Datagram {
    pub frame: Frame,
    pub to: u16,
    pub packets: u32,
    /// Packets that have arrived or are lost.
    pub gone: u32,
    /// Whether a packet was lost, so that the datagram is.
    pub is_dead: bool,
    /// Whether it is for the fabric's address server.
    pub is_served: bool,
    /// Whether it comes from a station of the network to another, which acknowledges its packets in class 2.
    pub is_tracked: bool,
    /// Whether it holds a connection of class 1.
    pub is_connected: bool,
    pub line: Times,
    pub adapter: Times,
    /// Where it began.
    pub source: u32,
    /// When its last packet is at its host, once that is known.
    pub arrives_at: Instant,
}

/// A packet in a buffer, or on the line to it.
#[derive(Clone, Copy)]
pub(super) struct Packet {
    pub datagram: u32,
    pub index: u32,
    pub from: u16,
    pub to: u16,
    /// When it may go on.
    pub eligible: Instant,
    /// When its first and its last bit are here.
    pub arrives: Instant,
    pub tail: Instant,
}

impl Packet {
    pub fn is_ack(&self) -> bool {
        self.datagram == NO_DATAGRAM
    }
}

/// A buffer at the end of a line, first in, first out.
pub(super) struct Input {
    pub node: Node,
    pub feeder: Option<u32>,
    pub packets: VecDeque<Packet>,
    /// When the packet that left last has left whole.
    pub read_free: Instant,
    /// When the next look at the head is planned.
    head_at: Option<Instant>,
    /// Whether the head asks for its line.
    pub waits: bool,
    /// Heads so far, to tell one from the other.
    heads: u32,
}

impl Input {
    pub fn new(node: Node, feeder: Option<u32>) -> Self {
        Self {
            node,
            feeder,
            packets: VecDeque::new(),
            read_free: Instant::START,
            head_at: None,
            waits: false,
            heads: 0,
        }
    }
}

/// A line in one direction.
pub(super) struct Line {
    pub pace: Pace,
    pub end: End,
    /// When its last packet has left whole.
    pub free_at: Instant,
    /// Free buffers at its end that it knows of, and how many there are.
    pub credits: u32,
    pub buffers: u32,
    /// When others come to be known, in order.
    pub returns: VecDeque<Instant>,
    /// Inputs whose heads ask for it, in the order of their numbers.
    waiting: Vec<u32>,
    /// The input that was served last.
    pub last: u32,
    /// Packets in the central queue of the chip before it.
    pub central: VecDeque<Packet>,
    turn_at: Option<Instant>,
}

impl Line {
    pub fn new(pace: Pace, end: End, buffers: u32) -> Self {
        Self {
            pace,
            end,
            free_at: Instant::START,
            credits: buffers,
            buffers,
            returns: VecDeque::new(),
            waiting: Vec::new(),
            last: u32::MAX,
            central: VecDeque::new(),
            turn_at: None,
        }
    }

    pub fn collect(&mut self, now: Instant) {
        while self.returns.front().is_some_and(|at| *at <= now) {
            self.returns.pop_front();
            self.credits += 1;
            debug_assert!(self.credits <= self.buffers);
        }
    }

    /// When it can start a packet, as far as is known.
    fn opens_at(&self) -> Option<Instant> {
        if self.credits > 0 {
            return Some(self.free_at);
        }
        self.returns.front().map(|at| self.free_at.max(*at))
    }

    /// When it can start a packet that is ready at `ready`, all that comes before being known.
    pub fn open_from(&mut self, ready: Instant) -> Instant {
        let mut at = self.free_at.max(ready);
        self.collect(at);
        if self.credits == 0 {
            at = self.returns.front().map_or(NEVER, |back| at.max(*back));
            self.collect(at);
        }
        at
    }

    fn is_asked(&self) -> bool {
        !self.waiting.is_empty() || !self.central.is_empty()
    }

    /// The next input in turn.
    fn pick(&mut self) -> Option<u32> {
        let after = self.waiting.partition_point(|input| *input <= self.last);
        let index = if after == self.waiting.len() {
            0
        } else {
            after
        };
        if index == self.waiting.len() {
            return None;
        }
        self.last = self.waiting.remove(index);
        Some(self.last)
    }

    fn ask(&mut self, input: u32) {
        let at = self.waiting.partition_point(|other| *other < input);
        self.waiting.insert(at, input);
    }

    fn withdraw(&mut self, input: u32) {
        self.waiting.retain(|other| *other != input);
    }
}

impl Net {
    /// How long `packet` takes at a pace.
    pub(super) fn time(&self, packet: &Packet, pace: Pace) -> Span {
        if packet.is_ack() {
            return self.paces[pace as usize].bare();
        }
        let datagram = &self.datagrams[packet.datagram as usize];
        let times = match pace {
            Pace::Line => datagram.line,
            Pace::Adapter => datagram.adapter,
        };
        if packet.index + 1 == datagram.packets {
            times.last
        } else {
            times.full
        }
    }

    fn next_line(&self, node: Node, packet: &Packet) -> usize {
        self.wiring.next(node, packet.from, packet.to) as usize
    }

    /// Looks at the head of `input` at `at`, or earlier if that is planned.
    pub(super) fn plan_head(&mut self, at: Instant, input: u32) {
        let planned = &mut self.inputs[input as usize].head_at;
        if planned.is_none_or(|planned| at < planned) {
            *planned = Some(at);
            self.calendar.insert(at, Step::Head(input));
        }
    }

    pub(super) fn on_head(&mut self, now: Instant, input: u32, edge: &mut Edge) {
        let here = &mut self.inputs[input as usize];
        if here.head_at == Some(now) {
            here.head_at = None;
            self.head(now, input, edge);
        }
    }

    pub(super) fn on_turn(&mut self, now: Instant, line: u32, edge: &mut Edge) {
        let here = &mut self.lines[line as usize];
        if here.turn_at == Some(now) {
            here.turn_at = None;
            self.turn(now, line as usize, edge);
        }
    }

    /// Plans the next start on a line that is asked for, if it is known when that can be.
    fn plan_turn(&mut self, line: usize) {
        let here = &mut self.lines[line];
        let Some(at) = here.opens_at() else {
            return;
        };
        if here.is_asked() && here.turn_at.is_none_or(|planned| at < planned) {
            here.turn_at = Some(at);
            self.calendar.insert(at, Step::Turn(line as u32));
        }
    }

    /// Lets the head of `input` go on, ask or be dropped.
    pub(super) fn head(&mut self, now: Instant, input: u32, edge: &mut Edge) {
        let here = &self.inputs[input as usize];
        if here.waits {
            return;
        }
        let Some(&packet) = here.packets.front() else {
            if self.wiring.is_source(input) {
                self.feed(now, input, edge);
            }
            return;
        };
        let ready = packet.eligible.max(here.read_free);
        if ready > now {
            return self.plan_head(ready, input);
        }
        let (node, heads) = (here.node, here.heads);
        let chip = self.wiring.chip_number(node);
        if chip.is_some() && packet.arrives < self.up_at {
            return self.drop_head(now, input, Cause::Restart, edge);
        }
        let is_served = !packet.is_ack() && self.datagrams[packet.datagram as usize].is_served;
        if chip.is_some() && is_served {
            return self.sink(now, input);
        }
        if let (Some(_), Some(limit)) = (chip, self.discard_after) {
            if now > packet.arrives + limit {
                return self.drop_head(now, input, Cause::Discarded, edge);
            }
        }
        let line = self.next_line(node, &packet);
        self.lines[line].collect(now);
        let is_open = self.lines[line].credits > 0 && self.lines[line].free_at <= now;
        if is_open && !self.lines[line].is_asked() {
            self.lines[line].last = input;
            return self.depart(now, input, line, edge);
        }
        if let Some(chip) = chip.filter(|chip| self.rooms[*chip] > 0) {
            return self.absorb(now, input, chip, line);
        }
        self.inputs[input as usize].waits = true;
        self.lines[line].ask(input);
        self.plan_turn(line);
        if let (Some(_), Some(limit)) = (chip, self.discard_after) {
            // One picosecond later it has waited for longer.
            let at = packet.arrives + limit + Span::picos(1);
            self.calendar
                .insert(at.max(now), Step::Expire(input, heads));
        }
    }

    /// A line may have become able to start a packet.
    fn turn(&mut self, now: Instant, line: usize, edge: &mut Edge) {
        let here = &mut self.lines[line];
        here.collect(now);
        if here.is_asked() && here.credits > 0 && here.free_at <= now {
            if let Some(packet) = here.central.pop_front() {
                let end = self.start(now, line, packet);
                let chip = self.before[line].expect("a central queue is in a chip");
                self.calendar.insert(end, Step::Room(chip as u32));
            } else if let Some(input) = here.pick() {
                self.inputs[input as usize].waits = false;
                self.depart(now, input, line, edge);
            }
        }
        self.plan_turn(line);
    }

    /// The head of `input` leaves by `line`.
    fn depart(&mut self, now: Instant, input: u32, line: usize, edge: &mut Edge) {
        let packet = self.inputs[input as usize].packets.pop_front();
        let packet = packet.expect("a head departs");
        if self.wiring.is_source(input) {
            self.sent(now, input, &packet, edge);
        }
        let is_train = self.wiring.is_source(input) && !packet.is_ack() && self.is_train(input);
        let end = if is_train {
            self.fly(now, input, packet)
        } else {
            self.start(now, line, packet)
        };
        self.vacate(end, input);
    }

    /// The head of `input` was taken out of it: the buffer is free at `end`.
    fn vacate(&mut self, end: Instant, input: u32) {
        let here = &mut self.inputs[input as usize];
        here.read_free = here.read_free.max(end);
        here.heads = here.heads.wrapping_add(1);
        here.waits = false;
        let (feeder, next) = (here.feeder, here.packets.front().map(|next| next.eligible));
        if let Some(feeder) = feeder {
            self.give_back(end + self.propagation(feeder as usize), feeder as usize);
        }
        let free = self.inputs[input as usize].read_free;
        if let Some(eligible) = next {
            self.plan_head(eligible.max(free), input);
        } else if self.wiring.is_source(input) && self.has_more(input) {
            self.plan_head(free, input);
        }
    }

    pub(super) fn propagation(&self, line: usize) -> Span {
        match self.lines[line].pace {
            Pace::Line => self.propagation,
            Pace::Adapter => Span::ZERO,
        }
    }

    /// A buffer at the end of `line` is free, which the line knows from `at` on.
    fn give_back(&mut self, at: Instant, line: usize) {
        let returns = &mut self.lines[line].returns;
        let mut place = returns.len();
        while place > 0 && returns[place - 1] > at {
            place -= 1;
        }
        returns.insert(place, at);
        self.plan_turn(line);
    }

    /// Sends a packet; when its last bit is on the line.
    fn start(&mut self, now: Instant, line: usize, packet: Packet) -> Instant {
        let pace = self.lines[line].pace;
        let time = self.time(&packet, pace);
        let propagation = self.propagation(line);
        let end = now + time;
        let here = &mut self.lines[line];
        here.free_at = end;
        here.credits -= 1;
        let tail = end + propagation;
        let End::Input(input) = here.end else {
            self.give_back(tail + propagation, line);
            self.reach(tail, packet);
            return end;
        };
        let packet = self.land(now, line, packet);
        let there = &mut self.inputs[input as usize];
        there.packets.push_back(packet);
        if there.packets.len() == 1 {
            let at = packet.eligible.max(there.read_free);
            self.plan_head(at, input);
        }
        end
    }

    /// A packet that starts on `line` at `begin`, as it is at the input at its end.
    pub(super) fn land(&self, begin: Instant, line: usize, mut packet: Packet) -> Packet {
        let here = &self.lines[line];
        let End::Input(input) = here.end else {
            return packet;
        };
        let node = self.inputs[input as usize].node;
        let time = self.time(&packet, here.pace);
        packet.arrives = begin + self.propagation(line);
        packet.tail = packet.arrives + time;
        packet.eligible = packet.tail;
        if self.forwarding == Forwarding::CutThrough && !self.is_for_server(&packet) {
            let next = self.next_line(node, &packet);
            let time_next = self.time(&packet, self.lines[next].pace);
            let dry = packet.tail.as_picos().saturating_sub(time_next.as_picos());
            let head = self.paces[here.pace as usize].head();
            let read = packet.arrives + head.min(time);
            packet.eligible = read.max(Instant::from_picos(dry));
        }
        if self.wiring.chip_number(node).is_some() {
            packet.eligible = packet.eligible + self.latency;
        }
        packet
    }

    fn is_for_server(&self, packet: &Packet) -> bool {
        !packet.is_ack() && self.datagrams[packet.datagram as usize].is_served
    }

    /// A head that must wait moves to the central queue.
    fn absorb(&mut self, now: Instant, input: u32, chip: usize, line: usize) {
        let packet = self.inputs[input as usize].packets.pop_front();
        let packet = packet.expect("a head is absorbed");
        self.rooms[chip] -= 1;
        self.lines[line].central.push_back(packet);
        self.plan_turn(line);
        self.vacate(now.max(packet.tail), input);
    }

    /// There is room in the central queue of `chip` again: the next in turn that waits there moves in.
    pub(super) fn on_room(&mut self, now: Instant, chip: u32) {
        let chip = chip as usize;
        self.rooms[chip] += 1;
        let inputs = &self.chip_inputs[chip];
        let waits = |input: &&u32| self.inputs[**input as usize].waits;
        let after = inputs.partition_point(|input| *input <= self.absorbed[chip]);
        let found = inputs[after..].iter().chain(&inputs[..after]).find(waits);
        let Some(&input) = found else {
            return;
        };
        self.absorbed[chip] = input;
        let here = &mut self.inputs[input as usize];
        here.waits = false;
        let (node, packet) = (here.node, here.packets[0]);
        let line = self.next_line(node, &packet);
        self.lines[line].withdraw(input);
        self.absorb(now, input, chip, line);
    }

    /// The head of `input` was for the server, which has it now.
    fn sink(&mut self, now: Instant, input: u32) {
        let packet = self.inputs[input as usize].packets.pop_front();
        let packet = packet.expect("a head is taken out");
        self.vacate(now, input);
        let last = packet.index + 1 == self.datagrams[packet.datagram as usize].packets;
        if last && !self.datagrams[packet.datagram as usize].is_dead {
            self.request(now, packet.datagram);
        } else {
            self.gone(packet.datagram);
        }
    }

    pub(super) fn on_expire(&mut self, now: Instant, input: u32, heads: u32, edge: &mut Edge) {
        let here = &self.inputs[input as usize];
        if here.waits && here.heads == heads {
            self.drop_head(now, input, Cause::Discarded, edge);
        }
    }

    /// The head of `input` is lost, and with it its datagram.
    pub(super) fn drop_head(&mut self, now: Instant, input: u32, cause: Cause, edge: &mut Edge) {
        let here = &mut self.inputs[input as usize];
        let packet = here.packets.pop_front().expect("a head is dropped");
        if here.waits {
            let node = here.node;
            let line = self.next_line(node, &packet);
            self.lines[line].withdraw(input);
        }
        self.vacate(now.max(packet.tail), input);
        self.lose_packet(now, packet, cause, edge);
    }

    pub(super) fn lose_packet(
        &mut self,
        now: Instant,
        packet: Packet,
        cause: Cause,
        edge: &mut Edge,
    ) {
        if packet.is_ack() {
            return self.acknowledged(now, packet.to, packet.from, edge);
        }
        let datagram = &mut self.datagrams[packet.datagram as usize];
        if !datagram.is_dead {
            datagram.is_dead = true;
            let to = crate::Port(datagram.to);
            edge.lose(now, &datagram.frame, to, Place::Output, cause);
        }
        if self.is_acknowledged && self.datagrams[packet.datagram as usize].is_tracked {
            self.acknowledged(now, packet.from, packet.to, edge);
        }
        self.gone(packet.datagram);
    }

    /// Loses all that the chips hold.
    pub(super) fn clear(&mut self, now: Instant, edge: &mut Edge) {
        for input in 0..self.inputs.len() as u32 {
            if self
                .wiring
                .chip_number(self.inputs[input as usize].node)
                .is_none()
            {
                continue;
            }
            while self.inputs[input as usize]
                .packets
                .front()
                .is_some_and(|packet| packet.arrives <= now)
            {
                self.drop_head(now, input, Cause::Restart, edge);
            }
        }
        for line in 0..self.lines.len() {
            while let Some(packet) = self.lines[line].central.pop_front() {
                let chip = self.before[line].expect("a central queue is in a chip");
                self.rooms[chip] += 1;
                self.lose_packet(now, packet, Cause::Restart, edge);
            }
        }
    }
}
