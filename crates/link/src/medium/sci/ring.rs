//! The rings: nodes, links, switch, and the order in which things happen.
//!
//! Model:   each node has the time of its next event; the earliest comes first, ties by the node's number. At an event a node
//!          takes in what has come, lets its sources make moves and gives its output link, if that is free, to what waits
//!          longest. [`Rings::run`] does all until a time; between two events that others can see ([`Rings::bound`]) the
//!          network is not asked to come back.
//! Checked: `tests` here, `tests/sci.rs`.

use super::Sci;
use super::node::{NONE, Node, Slots};
use super::source::{Carried, NEVER, Source, Write};
use super::wire::{Flight, Packet, Says, Size, Times};
use crate::calendar::Calendar;
use crate::edge::Edge;
use crate::{Frame, NetworkSpec, Port, SpecError};
use sonde_units::{Bytes, Instant, Span};

/// Packets of each node that a node waits for without `fair`: a target may keep its next place for what waits there, so that
/// those who fill the ring with what it refuses would do so for ever.
const UNFAIR: u64 = 1_024;

/// The medium.
pub(crate) struct Rings {
    pub(super) table: Sci,
    pub(super) mtu: Bytes,
    pub(super) low: Bytes,
    pub(super) times: Times,
    /// How long a node waits before it withholds its go bits.
    pub(super) timeout: Span,
    pub(super) store_time: Span,
    pub(super) block_time: Span,
    /// The least time and size of a move here.
    pub(super) least: (Span, Size),
    /// Packets in queues and on links.
    pub(super) live: usize,
    /// Whether lone transactions are computed at once: the same by packets is for tests.
    pub(super) jumps: bool,
    pub(super) nodes: Vec<Node>,
    pub(super) due: Vec<Instant>,
    /// The node of each port.
    pub(super) homes: Vec<u16>,
    /// The switch's node on each ring.
    pub(super) exits: Vec<u16>,
    pub(super) sources: Vec<Source>,
    pub(super) carried: Slots<Carried>,
    pub(super) writes: Slots<Write>,
    /// Answers of the address server.
    pub(super) answers: Calendar<Frame>,
    /// When the last of them is.
    pub(super) answered_at: Instant,
    pub(super) is_down_until: Instant,
    /// When to come back.
    pub(super) bound: Instant,
}

impl Rings {
    pub fn new(spec: &NetworkSpec, table: &Sci, ports: u16, _seed: u64) -> Result<Self, SpecError> {
        let rings = table.rings.min(u64::from(ports)).max(1) as u16;
        let hosts = ports.div_ceil(rings);
        let per_ring = u64::from(hosts + u16::from(rings > 1))
            .max(table.nodes)
            .max(2);
        if u64::from(rings) * per_ring > 32_768 {
            let problem = format!(
                "leads to {rings} rings of {per_ring} nodes, but 32768 nodes can be in all"
            );
            return Err(SpecError {
                key: "sci.rings",
                problem,
            });
        }
        let per_ring = per_ring as u16;
        let mut nodes = Vec::new();
        let (mut homes, mut exits) = (Vec::new(), Vec::new());
        for ring in 0..rings {
            let base = ring * per_ring;
            for place in 0..per_ring {
                let next = base + (place + 1) % per_ring;
                let prev = base + (place + per_ring - 1) % per_ring;
                nodes.push(Node::new(next, prev, ring));
            }
            if rings > 1 {
                let exit = base + per_ring - 1;
                nodes[usize::from(exit)].is_switch = true;
                exits.push(exit);
            }
        }
        let mut sources = Vec::new();
        for port in 0..ports {
            let home = port / hosts * per_ring + port % hosts;
            nodes[usize::from(home)].port = Some(Port(port));
            nodes[usize::from(home)].sources[0] = u32::from(port);
            homes.push(home);
            sources.push(Source::new(home, true, spec.station.queue));
        }
        let times = Times::new(spec);
        let rounds = if table.fair { 1 } else { UNFAIR };
        Ok(Self {
            table: table.clone(),
            mtu: Bytes(spec.mtu),
            low: Bytes(spec.station.queue.0 / 4),
            timeout: times.of(table.block_size()) * u64::from(per_ring) * rounds,
            times,
            store_time: table.move_time(Size::Store),
            block_time: table.move_time(table.block_size()),
            least: table.least_move(),
            live: 0,
            jumps: true,
            due: vec![NEVER; nodes.len()],
            nodes,
            homes,
            exits,
            sources,
            carried: Slots::new(),
            writes: Slots::new(),
            answers: Calendar::new(),
            answered_at: Instant::START,
            is_down_until: Instant::START,
            bound: NEVER,
        })
    }

    pub(super) fn node(&mut self, node: u16) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    /// The node that takes a packet for `to` off the ring of `from`.
    pub(super) fn stop(&self, from: u16, to: u16) -> u16 {
        let (here, there) = (
            self.nodes[usize::from(from)].ring,
            self.nodes[usize::from(to)].ring,
        );
        if here == there {
            to
        } else {
            self.exits[usize::from(here)]
        }
    }

    /// The switch's node on the ring of `to`.
    pub(super) fn exit(&self, to: u16) -> u16 {
        self.exits[usize::from(self.nodes[usize::from(to)].ring)]
    }

    /// Hops from one node to another of its ring.
    pub(super) fn hops(&self, from: u16, to: u16) -> u64 {
        let per_ring = self.nodes.len() as u64 / self.exits.len().max(1) as u64;
        (u64::from(to) + per_ring - u64::from(from)) % per_ring
    }

    /// The least time from a node to another, without that of the packet.
    pub(super) fn way(&self, from: u16, to: u16) -> Span {
        let stop = self.stop(from, to);
        let first = self.times.hop * self.hops(from, stop);
        if stop == to {
            return first;
        }
        let exit = self.exit(to);
        first + self.table.switch_delay + self.times.hop * self.hops(exit, to)
    }

    /// The node whose event is next, and when.
    pub(super) fn first(&self) -> (Instant, usize) {
        let mut first = (NEVER, 0);
        for (node, &at) in self.due.iter().enumerate() {
            if at < first.0 {
                first = (at, node);
            }
        }
        first
    }

    /// Does all that is due until `until`.
    pub(super) fn run(&mut self, until: Instant, edge: &mut Edge) {
        loop {
            let (at, node) = self.first();
            let answered = self.answers.next_at().unwrap_or(NEVER);
            if at.min(answered) > until {
                return;
            }
            if answered <= at {
                if let Some((at, frame)) = self.answers.pop() {
                    edge.arrive(at, &frame, frame.from);
                }
                continue;
            }
            self.act(at, node as u16, until, edge);
        }
    }

    /// Before this nothing can happen that others see.
    pub(super) fn bound(&self) -> Instant {
        let answered = self.answers.next_at().unwrap_or(NEVER);
        let next = self.first().0;
        if next == NEVER {
            return answered;
        }
        if next < self.is_down_until {
            return next.min(answered);
        }
        let mut soonest = NEVER;
        for source in &self.sources {
            soonest = soonest.min(self.soonest(source, next));
            if soonest <= next {
                return next.min(answered);
            }
        }
        soonest.max(next).min(answered)
    }

    /// The events of one node at `now`.
    pub(super) fn act(&mut self, now: Instant, node: u16, until: Instant, edge: &mut Edge) {
        let prev = self.node(node).prev;
        while let Some(&flight) = self.node(prev).line.front().filter(|f| f.at <= now) {
            self.node(prev).line.pop_front();
            self.receive(now, node, flight, edge);
        }
        let here = self.node(node);
        while let Some(&(_, packet)) = here.crossing.front().filter(|c| c.0 <= now) {
            here.crossing.pop_front();
            match packet.says {
                Says::Request => here.requests.push_back(packet),
                _ => here.responses.push_back(packet),
            }
        }
        while let Some(&(_, packet)) = here.retries.front().filter(|r| r.0 <= now) {
            here.retries.pop_front();
            // Behind the others, each of which may be the one that the target waits for.
            here.requests.push_back(packet);
        }
        while let Some(&(_, whose, is_held)) =
            self.node(node).signals.front().filter(|s| s.0 <= now)
        {
            self.node(node).signals.pop_front();
            self.signal(now, node, whose, is_held);
        }
        for kind in 0..2 {
            let source = self.node(node).sources[kind];
            if source != NONE {
                self.make(now, source, edge);
            }
        }
        if self.live == 1 && self.jumps {
            self.jump(now, node, until, edge);
        }
        self.transmit(now, node);
        self.plan(node);
    }

    /// Sets the time of the next event of a node.
    pub(super) fn plan(&mut self, node: u16) {
        let here = &self.nodes[usize::from(node)];
        let prev = &self.nodes[usize::from(here.prev)];
        let mut due = prev.line.front().map_or(NEVER, |f| f.at);
        due = due.min(here.crossing.front().map_or(NEVER, |c| c.0));
        due = due.min(here.retries.front().map_or(NEVER, |r| r.0));
        due = due.min(here.signals.front().map_or(NEVER, |s| s.0));
        for source in here.sources {
            if source != NONE {
                due = due.min(self.sources[source as usize].made_at);
            }
        }
        let sends_own = here.has_own() && here.stops == 0;
        if sends_own || !here.bypass.is_empty() || here.is_lagging {
            due = due.min(here.free);
        }
        self.due[usize::from(node)] = due;
    }

    /// A packet is at the input of a node.
    pub(super) fn receive(&mut self, now: Instant, node: u16, flight: Flight, edge: &mut Edge) {
        let packet = flight.packet;
        if packet.to != node {
            return self.node(node).bypass.push_back(flight);
        }
        let echo = match packet.says {
            Says::Request => self.requested(now, node, packet, edge),
            Says::Response => self.responded(now, node, packet, edge),
            Says::Accepted => return self.accepted(now, node, packet, edge),
            Says::Busy => {
                let request = Packet {
                    says: Says::Request,
                    size: self.writes.at(packet.write).size,
                    from: packet.to,
                    to: packet.from,
                    ..packet
                };
                let again = now + self.table.retry;
                return self.node(node).retries.push_back((again, request));
            }
            Says::Confirmed => {
                self.live -= 1;
                return;
            }
        };
        self.node(node).bypass.push_back(Flight {
            at: now,
            tail: now,
            packet: echo,
        });
    }

    /// A request has come to its target or to the switch; the echo.
    pub(super) fn requested(
        &mut self,
        now: Instant,
        node: u16,
        packet: Packet,
        edge: &mut Edge,
    ) -> Packet {
        let write = *self.writes.at(packet.write);
        let is_aging = self.table.aging;
        if self.node(node).is_switch {
            let exit = self.exit(write.target);
            let is_down = now < self.is_down_until;
            let has_room = self.node(exit).held < self.table.switch_queue || is_down;
            if let Err(age) = self.node(node).admit(packet.age, has_room, is_aging) {
                self.node(node).busy += 1;
                return packet.echo(Says::Busy, age);
            }
            if is_down {
                self.lose(now, packet.write, edge);
            } else {
                self.node(exit).held += 1;
                let onward = Packet {
                    from: exit,
                    to: write.target,
                    age: 0,
                    ..packet
                };
                self.cross(now, onward);
            }
            return packet.echo(Says::Accepted, 0);
        }
        if !self.enter(now, node, packet) {
            let here = self.node(node);
            here.busy += 1;
            let age = here.refused;
            return packet.echo(Says::Busy, age);
        }
        if self.table.response {
            let to = self.stop(node, write.home);
            let response = Packet {
                says: Says::Response,
                size: Size::Response,
                age: 0,
                from: node,
                to,
                write: packet.write,
            };
            self.node(node).responses.push_back(response);
            self.live += 1;
        }
        self.settle(now, packet.write, edge);
        packet.echo(Says::Accepted, 0)
    }

    /// Lets a request into the input queue of its target, if there is room for it.
    pub(super) fn enter(&mut self, now: Instant, node: u16, packet: Packet) -> bool {
        let (limit, is_aging) = (self.table.input, self.table.aging);
        let is_store = packet.size == Size::Store && self.table.block_size() != Size::Store;
        let time = if is_store {
            self.store_time
        } else {
            self.block_time
        };
        let here = self.node(node);
        while here.interface.front().is_some_and(|at| *at <= now) {
            here.interface.pop_front();
        }
        let has_room = (here.interface.len() as u64) < limit;
        if let Err(age) = here.admit(packet.age, has_room, is_aging) {
            here.refused = age;
            return false;
        }
        if !time.is_zero() {
            let from = here.interface.back().map_or(now, |at| now.max(*at));
            here.interface.push_back(from + time);
        }
        true
    }

    /// A packet goes through the switch to the node that it is from next.
    pub(super) fn cross(&mut self, now: Instant, packet: Packet) {
        let at = now + self.table.switch_delay;
        let exit = self.node(packet.from);
        exit.crossing.push_back((at, packet));
        self.live += 1;
        let due = &mut self.due[usize::from(packet.from)];
        *due = at.min(*due);
    }

    /// A response has come to the sender or to the switch; the echo.
    pub(super) fn responded(
        &mut self,
        now: Instant,
        node: u16,
        packet: Packet,
        edge: &mut Edge,
    ) -> Packet {
        let write = *self.writes.at(packet.write);
        if !self.node(node).is_switch || now < self.is_down_until {
            self.free(now, packet.write, edge);
        } else {
            let exit = self.exit(write.home);
            self.cross(
                now,
                Packet {
                    from: exit,
                    to: write.home,
                    ..packet
                },
            );
        }
        packet.echo(Says::Confirmed, 0)
    }

    /// The echo of a request is back: the copy may go.
    pub(super) fn accepted(&mut self, now: Instant, node: u16, packet: Packet, edge: &mut Edge) {
        self.live -= 1;
        if self.node(node).is_switch {
            let here = self.node(node);
            here.held = here.held.saturating_sub(1);
        } else if !self.table.response {
            self.free(now, packet.write, edge);
        }
    }

    /// Gives the output link of a node, if it is free, to what may have it.
    pub(super) fn transmit(&mut self, now: Instant, node: u16) {
        let timeout = self.timeout;
        let here = self.node(node);
        if here.free > now {
            return;
        }
        // A packet that comes just now is still outside the FIFO; an echo stands where its packet was.
        let front = here.bypass.front();
        let is_late = front.is_some_and(|f| f.at < now);
        let is_empty = !is_late && front.is_none_or(|f| f.packet.from != node);
        // It withholds its go bits when packets that pass have kept it from its own for too long.
        if !(is_late && here.has_own()) {
            here.late_from = now;
        }
        let is_lagging = now.since(here.late_from) > timeout;
        if here.is_lagging != is_lagging {
            here.is_lagging = is_lagging;
            self.withhold(now, node, is_lagging);
        }
        let here = self.node(node);
        let flight = if is_empty && here.stops == 0 && here.has_own() {
            let packet = here
                .responses
                .pop_front()
                .or_else(|| here.requests.pop_front());
            packet.map(|packet| Flight {
                at: now,
                tail: now,
                packet,
            })
        } else {
            here.bypass.pop_front()
        };
        if let Some(flight) = flight {
            self.send(now, node, flight);
        }
    }

    /// Puts a packet on the output link.
    pub(super) fn send(&mut self, now: Instant, node: u16, flight: Flight) {
        let packet = flight.packet;
        let time = self.times.of(packet.size);
        let hop = self.times.hop;
        let here = self.node(node);
        // Not faster than it comes in, where the rate has changed.
        let end = (now + time).max(flight.tail);
        here.lag_max = here.lag_max.max(now.since(flight.at));
        here.free = end;
        here.carried += packet.size.bytes();
        let next = here.next;
        let at = if packet.to == next { end } else { now } + hop;
        here.line.push_back(Flight {
            at,
            tail: end + hop,
            packet,
        });
        if here.line.len() == 1 {
            let due = &mut self.due[usize::from(next)];
            *due = at.min(*due);
        }
    }

    /// A node begins or ends to withhold its go bits from those after it.
    pub(super) fn withhold(&mut self, now: Instant, node: u16, is_held: bool) {
        let at = now + self.times.hop;
        let next = self.node(node).next;
        self.node(next).signals.push_back((at, node, is_held));
        let due = &mut self.due[usize::from(next)];
        *due = at.min(*due);
    }

    /// Go bits of another node come or cease to come.
    pub(super) fn signal(&mut self, now: Instant, node: u16, whose: u16, is_held: bool) {
        if whose == node {
            return;
        }
        let here = self.node(node);
        if is_held {
            here.stops += 1;
        } else {
            here.stops -= 1;
        }
        let at = now + self.times.hop;
        let next = self.node(node).next;
        self.node(next).signals.push_back((at, whose, is_held));
        let due = &mut self.due[usize::from(next)];
        *due = at.min(*due);
    }

    /// What the switch holds is lost.
    pub(super) fn restart(&mut self, now: Instant, down: Span, edge: &mut Edge) {
        self.is_down_until = now + down;
        for exit in self.exits.clone() {
            let here = self.node(exit);
            let waiting = here
                .requests
                .drain(..)
                .chain(here.retries.drain(..).map(|r| r.1));
            let crossing = here.crossing.drain(..).map(|c| c.1);
            let all: Vec<_> = waiting
                .chain(here.responses.drain(..))
                .chain(crossing)
                .collect();
            self.live -= all.len();
            for packet in all {
                if packet.says == Says::Response {
                    self.free(now, packet.write, edge);
                } else {
                    let target = self.writes.at(packet.write).target;
                    // A refused one will not come again to the node that remembers it.
                    let owed = &mut self.node(target).owed[usize::from(packet.age)];
                    *owed = owed.saturating_sub(1);
                    self.node(exit).held -= 1;
                    self.lose(now, packet.write, edge);
                }
            }
            self.plan(exit);
        }
    }
}
