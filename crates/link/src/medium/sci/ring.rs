//! The rings: nodes, links, switch, and the order in which things happen.
//!
//! Model:   each node has the time of its next event; the earliest comes first, ties by the node's number. At an event a node
//!          takes in what has come, lets its sources make moves and gives its output link, if that is free, to what waits
//!          longest. [`Rings::run`] does all until a time; between two events that others can see ([`Rings::bound`]) the
//!          network is not asked to come back.
//! Checked: `tests` here, `tests/sci.rs`.

use super::Sci;
use super::source::{Carried, Current, NEVER, Source, Waiting, Write};
use super::wire::{Flight, Packet, Says, Size, Times};
use crate::calendar::Calendar;
use crate::edge::Edge;
use crate::medium::{Medium, Target};
use crate::network::{Cause, Command, Place, Refused};
use crate::{Fault, Frame, NetworkSpec, Port, SpecError};
use sonde_units::{Bytes, Instant, Span};
use std::collections::VecDeque;

/// No source of this kind at a node.
const NONE: u32 = u32::MAX;

/// A node and the link from it to the next.
struct Node {
    next: u16,
    prev: u16,
    ring: u16,
    /// The station here.
    port: Option<Port>,
    is_switch: bool,
    /// From when on the link is free.
    free: Instant,
    /// What is on the link, as it comes to the next node.
    line: VecDeque<Flight>,
    bypass: VecDeque<Flight>,
    responses: VecDeque<Packet>,
    requests: VecDeque<Packet>,
    /// Refused, to be sent again.
    retries: VecDeque<(Instant, Packet)>,
    /// From another ring.
    crossing: VecDeque<(Instant, Packet)>,
    /// Go bits on their way: whose, and whether it withholds them.
    signals: VecDeque<(Instant, u16, bool)>,
    /// Nodes whose go bits are withheld here.
    stops: u16,
    /// It sent a packet of its own since its FIFO was last seen empty.
    has_sent: bool,
    /// It withholds its go bits.
    is_lagging: bool,
    /// When each accepted request will have left the input queue.
    interface: VecDeque<Instant>,
    /// Requests that the switch holds for this ring.
    held: u64,
    /// The age that is served now, 1 or 2.
    age: u8,
    /// Refused requests of each age that will come again.
    owed: [u64; 3],
    sources: [u32; 2],
    /// Bytes that the link carried, idle symbols beside packets included.
    carried: u64,
    /// Busy echoes sent.
    busy: u64,
    /// How long a passing packet waited, at most.
    lag_max: Span,
}

impl Node {
    fn new(next: u16, prev: u16, ring: u16) -> Self {
        Self {
            next,
            prev,
            ring,
            port: None,
            is_switch: false,
            free: Instant::START,
            line: VecDeque::new(),
            bypass: VecDeque::new(),
            responses: VecDeque::new(),
            requests: VecDeque::new(),
            retries: VecDeque::new(),
            crossing: VecDeque::new(),
            signals: VecDeque::new(),
            stops: 0,
            has_sent: false,
            is_lagging: false,
            interface: VecDeque::new(),
            held: 0,
            age: 1,
            owed: [0; 3],
            sources: [NONE; 2],
            carried: 0,
            busy: 0,
            lag_max: Span::ZERO,
        }
    }

    fn has_own(&self) -> bool {
        !self.responses.is_empty() || !self.requests.is_empty()
    }

    /// Whether its age gives a request a place, of which there is one or not; else the age that it gets.
    fn admit(&mut self, age: u8, has_room: bool, is_aging: bool) -> Result<(), u8> {
        if !is_aging {
            return if has_room { Ok(()) } else { Err(0) };
        }
        let (now, other) = (self.age, 3 - self.age);
        let is_due = age == now || self.owed[usize::from(now)] == 0;
        if has_room && is_due {
            if age > 0 {
                self.owed[usize::from(age)] -= 1;
            }
            if self.owed[usize::from(now)] == 0 {
                self.age = other;
            }
            return Ok(());
        }
        if age > 0 {
            return Err(age);
        }
        let age = if self.owed == [0; 3] { now } else { other };
        self.owed[usize::from(age)] += 1;
        Err(age)
    }
}

/// Things with a number that is used again.
struct Slots<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    fn new() -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
        }
    }

    fn add(&mut self, thing: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.all[slot as usize] = thing;
            return slot;
        }
        self.all.push(thing);
        (self.all.len() - 1) as u32
    }

    fn at(&mut self, slot: u32) -> &mut T {
        &mut self.all[slot as usize]
    }

    fn drop(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

/// The medium.
pub(crate) struct Rings {
    table: Sci,
    mtu: Bytes,
    low: Bytes,
    times: Times,
    store_time: Span,
    block_time: Span,
    nodes: Vec<Node>,
    due: Vec<Instant>,
    /// The node of each port.
    homes: Vec<u16>,
    /// The switch's node on each ring.
    exits: Vec<u16>,
    sources: Vec<Source>,
    carried: Slots<Carried>,
    writes: Slots<Write>,
    /// Answers of the address server.
    answers: Calendar<Frame>,
    /// When the last of them is.
    answered_at: Instant,
    is_down_until: Instant,
    /// When to come back.
    bound: Instant,
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
        Ok(Self {
            table: table.clone(),
            mtu: Bytes(spec.mtu),
            low: Bytes(spec.station.queue.0 / 4),
            times: Times::new(spec),
            store_time: table.move_time(Size::Store),
            block_time: table.move_time(table.block_size()),
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

    fn node(&mut self, node: u16) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    /// The node that takes a packet for `to` off the ring of `from`.
    fn stop(&self, from: u16, to: u16) -> u16 {
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
    fn exit(&self, to: u16) -> u16 {
        self.exits[usize::from(self.nodes[usize::from(to)].ring)]
    }

    /// Hops from one node to another of its ring.
    fn hops(&self, from: u16, to: u16) -> u64 {
        let per_ring = self.nodes.len() as u64 / self.exits.len().max(1) as u64;
        (u64::from(to) + per_ring - u64::from(from)) % per_ring
    }

    /// The least time from a node to another, without that of the packet.
    fn way(&self, from: u16, to: u16) -> Span {
        let stop = self.stop(from, to);
        let first = self.times.hop * self.hops(from, stop);
        if stop == to {
            return first;
        }
        let exit = self.exit(to);
        first + self.table.switch_delay + self.times.hop * self.hops(exit, to)
    }

    /// The node whose event is next, and when.
    fn first(&self) -> (Instant, usize) {
        let mut first = (NEVER, 0);
        for (node, &at) in self.due.iter().enumerate() {
            if at < first.0 {
                first = (at, node);
            }
        }
        first
    }

    /// Does all that is due until `until`.
    fn run(&mut self, until: Instant, edge: &mut Edge) {
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
            self.act(at, node as u16, edge);
        }
    }

    /// Before this nothing can happen that others see.
    fn bound(&self) -> Instant {
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

    /// Before this nothing of a source can happen that others see; `next` is the time of the next event.
    fn soonest(&self, source: &Source, next: Instant) -> Instant {
        let least = if source.is_host {
            self.store_time.min(self.block_time)
        } else {
            Span::ZERO
        };
        let from = if source.made_at == NEVER {
            next
        } else {
            source.made_at
        };
        let after = |moves: u64| from + least * moves.saturating_sub(1);
        let mut soonest = NEVER;
        if let Some(moves) = source.moves_to_wake(self.mtu, self.low, self.table.block.max(8)) {
            // Each move beyond the free transactions takes a response, or an echo, from the link.
            let free = self.table.active - source.active + u64::from(source.made_at != NEVER);
            let free = if source.served > 0 { u64::MAX } else { free };
            let back = self.times.least(if self.table.response {
                Size::Response
            } else {
                Size::Echo
            });
            let freed = next + back * moves.saturating_sub(free).saturating_sub(1);
            soonest = after(moves).max(freed).max(next);
        }
        let request = self.times.least(Size::Store);
        for &slot in &source.under_way {
            let carried = &self.carried.all[slot as usize];
            let is_current = source.current.is_some_and(|c| c.carried == Some(slot));
            let made = if is_current {
                after(source.unmade()) + carried.way + request
            } else {
                carried.soonest
            };
            let arrived = next + request * carried.left.saturating_sub(1);
            soonest = soonest.min(made.max(arrived));
        }
        soonest
    }

    /// The events of one node at `now`.
    fn act(&mut self, now: Instant, node: u16, edge: &mut Edge) {
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
            here.requests.push_front(packet);
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
        self.transmit(now, node);
        self.plan(node);
    }

    /// Sets the time of the next event of a node.
    fn plan(&mut self, node: u16) {
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
    fn receive(&mut self, now: Instant, node: u16, flight: Flight, edge: &mut Edge) {
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
            Says::Confirmed => return,
        };
        self.node(node).bypass.push_back(Flight {
            at: now,
            tail: now,
            packet: echo,
        });
    }

    /// A request has come to its target or to the switch; the echo.
    fn requested(&mut self, now: Instant, node: u16, packet: Packet, edge: &mut Edge) -> Packet {
        let write = *self.writes.at(packet.write);
        let (limit, is_aging) = (self.table.input, self.table.aging);
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
        let time = if write.size == Size::Store {
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
            here.busy += 1;
            return packet.echo(Says::Busy, age);
        }
        if !time.is_zero() {
            let from = here.interface.back().map_or(now, |at| now.max(*at));
            here.interface.push_back(from + time);
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
        }
        self.settle(now, packet.write, edge);
        packet.echo(Says::Accepted, 0)
    }

    /// A packet goes through the switch to the node that it is from next.
    fn cross(&mut self, now: Instant, packet: Packet) {
        let at = now + self.table.switch_delay;
        let exit = self.node(packet.from);
        exit.crossing.push_back((at, packet));
        let due = &mut self.due[usize::from(packet.from)];
        *due = at.min(*due);
    }

    /// A response has come to the sender or to the switch; the echo.
    fn responded(&mut self, now: Instant, node: u16, packet: Packet, edge: &mut Edge) -> Packet {
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
    fn accepted(&mut self, now: Instant, node: u16, packet: Packet, edge: &mut Edge) {
        if self.node(node).is_switch {
            let here = self.node(node);
            here.held = here.held.saturating_sub(1);
        } else if !self.table.response {
            self.free(now, packet.write, edge);
        }
    }

    /// The sender is done with a transaction.
    fn free(&mut self, now: Instant, slot: u32, edge: &mut Edge) {
        let write = self.writes.at(slot);
        write.is_freed = true;
        let (source, is_settled, home) = (write.source, write.is_settled, write.home);
        if is_settled {
            self.writes.drop(slot);
        }
        self.sources[source as usize].active -= 1;
        self.resume(now, source, edge);
        // The source's next move may be due before what the node planned.
        let made_at = self.sources[source as usize].made_at;
        let due = &mut self.due[usize::from(home)];
        *due = made_at.min(*due);
    }

    /// A move is at its target.
    fn settle(&mut self, now: Instant, slot: u32, edge: &mut Edge) {
        let write = self.writes.at(slot);
        write.is_settled = true;
        let (carried, is_freed) = (write.carried, write.is_freed);
        if is_freed {
            self.writes.drop(slot);
        }
        let here = self.carried.at(carried);
        here.left -= 1;
        if here.left > 0 {
            return;
        }
        let source = here.source;
        if here.is_lost {
            return self.carried.drop(carried);
        }
        self.release(now, source, edge);
    }

    /// Delivers what is complete and behind nothing incomplete for the same station.
    fn release(&mut self, now: Instant, source: u32, edge: &mut Edge) {
        let under_way = &mut self.sources[source as usize].under_way;
        let mut place = 0;
        while place < under_way.len() {
            let slot = under_way[place];
            let here = &self.carried.all[slot as usize];
            let to = here.to;
            let earlier = under_way.iter().take(place);
            let is_first = !earlier
                .clone()
                .any(|other| self.carried.all[*other as usize].to == to);
            if here.left > 0 || !is_first {
                place += 1;
                continue;
            }
            edge.arrive(now, &here.frame, to);
            under_way.remove(place);
            self.carried.drop(slot);
        }
    }

    /// A move is lost in the switch.
    fn lose(&mut self, now: Instant, slot: u32, edge: &mut Edge) {
        let carried = self.writes.at(slot).carried;
        let here = self.carried.at(carried);
        let source = here.source;
        if !here.is_lost {
            here.is_lost = true;
            edge.lose(now, &here.frame, here.to, Place::Medium, Cause::Restart);
            self.sources[source as usize]
                .under_way
                .retain(|other| *other != carried);
            self.release(now, source, edge);
        }
        self.settle(now, slot, edge);
        if self.table.response {
            self.free(now, slot, edge);
        }
    }

    /// Lets a source that is not making anything go on.
    fn resume(&mut self, now: Instant, number: u32, edge: &mut Edge) {
        loop {
            let source = &mut self.sources[number as usize];
            if source.made_at != NEVER {
                return;
            }
            if let Some(current) = source.current {
                let is_request = current.carried.is_none();
                if !is_request && source.active == self.table.active {
                    return;
                }
                source.active += u64::from(!is_request);
                let is_block = current.moves.is_block(current.made);
                let time = match (source.is_host, is_block) {
                    (false, _) => Span::ZERO,
                    (true, true) => self.block_time,
                    (true, false) => self.store_time,
                };
                source.made_at = source.free_at.max(now) + time;
                return;
            }
            let Some((waiting, woken)) = source.pop() else {
                return;
            };
            let setup = if source.is_host {
                self.table.dma_setup
            } else {
                Span::ZERO
            };
            source.free_at = now + setup;
            if woken {
                edge.ready(now, Port(number as u16));
            }
            self.begin(number, waiting);
        }
    }

    /// Opens the books on a frame.
    fn begin(&mut self, number: u32, waiting: Waiting) {
        let (frame, moves) = (waiting.frame, self.table.moves(waiting.frame.len));
        let home = self.sources[number as usize].node;
        let carried = match waiting.target {
            Target::One(to) => Some(self.carried.add(Carried {
                frame,
                to,
                source: number,
                left: moves.total(),
                is_lost: false,
                soonest: NEVER,
                way: self.way(home, self.homes[usize::from(to.0)]),
            })),
            Target::All | Target::Server => None,
        };
        let source = &mut self.sources[number as usize];
        source.under_way.extend(carried);
        source.current = Some(Current {
            carried,
            frame,
            moves,
            made: 0,
        });
    }

    /// Hands the moves that are made to the node.
    fn make(&mut self, now: Instant, number: u32, edge: &mut Edge) {
        while self.sources[number as usize].made_at <= now {
            let source = &mut self.sources[number as usize];
            let home = source.node;
            source.made_at = NEVER;
            source.free_at = now;
            let Some(current) = source.current.as_mut() else {
                return;
            };
            let is_block = current.moves.is_block(current.made);
            current.made += 1;
            let current = *current;
            let (carried, frame) = (current.carried, current.frame);
            let is_last = current.made == current.moves.total();
            if is_last {
                source.current = None;
            }
            let size = if is_block {
                self.table.block_size()
            } else {
                Size::Store
            };
            if let Some(carried) = carried {
                let here = self.carried.at(carried);
                let to = here.to;
                if is_last {
                    here.soonest = now + here.way + self.times.of(size);
                }
                let target = self.homes[usize::from(to.0)];
                let write = Write {
                    source: number,
                    carried,
                    home,
                    target,
                    size,
                    is_settled: false,
                    is_freed: false,
                };
                let write = self.writes.add(write);
                let packet = Packet {
                    says: Says::Request,
                    size,
                    age: 0,
                    from: home,
                    to: self.stop(home, target),
                    write,
                };
                self.node(home).requests.push_back(packet);
            } else if is_last {
                self.sources[number as usize].served -= 1;
                // There and back once round the ring.
                let way = self.times.hop * (self.nodes.len() / self.exits.len().max(1)) as u64;
                let time = self.times.of(size) * current.moves.total();
                let at = now + way + time + self.table.resolution_delay;
                self.answered_at = at.max(self.answered_at);
                self.answers.insert(self.answered_at, frame);
            }
            self.resume(now, number, edge);
        }
    }

    /// Gives the output link of a node, if it is free, to what may have it.
    fn transmit(&mut self, now: Instant, node: u16) {
        let is_fair = self.table.fair;
        let here = self.node(node);
        if here.free > now {
            return;
        }
        // A packet that comes just now is still outside the FIFO; an echo stands where its packet was.
        let front = here.bypass.front();
        let is_late = front.is_some_and(|f| f.at < now);
        let is_empty = !is_late && front.is_none_or(|f| f.packet.from != node);
        here.has_sent &= is_late;
        let is_lagging = is_fair && here.has_sent;
        if here.is_lagging != is_lagging {
            here.is_lagging = is_lagging;
            self.withhold(now, node, is_lagging);
        }
        let here = self.node(node);
        let flight = if is_empty && here.stops == 0 && here.has_own() {
            here.has_sent = true;
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
    fn send(&mut self, now: Instant, node: u16, flight: Flight) {
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
    fn withhold(&mut self, now: Instant, node: u16, is_held: bool) {
        let at = now + self.times.hop;
        let next = self.node(node).next;
        self.node(next).signals.push_back((at, node, is_held));
        let due = &mut self.due[usize::from(next)];
        *due = at.min(*due);
    }

    /// Go bits of another node come or cease to come.
    fn signal(&mut self, now: Instant, node: u16, whose: u16, is_held: bool) {
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
    fn restart(&mut self, now: Instant, down: Span, edge: &mut Edge) {
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

    /// Does what the new state of a source's node asks for, at once.
    fn start(&mut self, now: Instant, number: u32, edge: &mut Edge) {
        self.resume(now, number, edge);
        let node = self.sources[number as usize].node;
        self.make(now, number, edge);
        self.transmit(now, node);
        self.plan(node);
        self.bound = self.bound();
    }

    /// The source of background traffic that comes from elsewhere: at the node before the target's.
    fn guest(&mut self, to: Port) -> u32 {
        let prev = self.nodes[usize::from(self.homes[usize::from(to.0)])].prev;
        if self.nodes[usize::from(prev)].sources[1] == NONE {
            self.nodes[usize::from(prev)].sources[1] = self.sources.len() as u32;
            self.sources.push(Source::new(prev, false, Bytes::ZERO));
        }
        self.nodes[usize::from(prev)].sources[1]
    }
}

impl Medium for Rings {
    fn admits(&mut self, _: Instant, port: Port, len: Bytes) -> bool {
        self.sources[usize::from(port.0)].queue.admits(len)
    }

    fn ready(&self, port: Port) -> bool {
        self.sources[usize::from(port.0)].queue.ready()
    }

    fn backlog(&mut self, _: Instant, port: Port) -> Bytes {
        self.sources[usize::from(port.0)].queue.backlog()
    }

    fn take(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge) {
        self.run(now, edge);
        let number = u32::from(frame.from.0);
        let source = &mut self.sources[number as usize];
        source.served += u64::from(target == Target::Server);
        source.queue.push(frame.len, Waiting { frame, target });
        self.start(now, number, edge);
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        self.run(now, edge);
        let number = if usize::from(frame.from.0) < self.homes.len() {
            u32::from(frame.from.0)
        } else {
            self.guest(to)
        };
        if !self.sources[number as usize].haunt(frame, to) {
            edge.lose(now, &frame, to, Place::Station, Cause::Overflow);
        }
        self.start(now, number, edge);
    }

    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused> {
        self.run(now, edge);
        let done = match command {
            Command::Vc(_) => Err(Refused::NoCircuits),
            Command::Fault(Fault::Rate { rate }) => {
                self.times.change(rate);
                for carried in &mut self.carried.all {
                    carried.soonest = Instant::START;
                }
                Ok(())
            }
            Command::Fault(Fault::Restart { down }) if !self.exits.is_empty() => {
                self.restart(now, down, edge);
                Ok(())
            }
            Command::Fault(Fault::Restart { .. }) => Err(Refused::NotHere {
                what: "switch",
                remedy: "join rings by one (`rings=2`), or take a host down instead",
            }),
            _ => Err(Refused::NotHere {
                what: "such part",
                remedy: "choose another network, or change its rate",
            }),
        };
        self.bound = self.bound();
        done
    }

    fn next_at(&self) -> Option<Instant> {
        Some(self.bound).filter(|at| *at != NEVER)
    }

    fn step(&mut self, edge: &mut Edge) {
        self.run(self.bound, edge);
        self.bound = self.bound();
    }
}
