//! Several segments with what joins them, as one network.
//!
//! Model:   the ports are the hosts, then the interfaces of the bridges, in the order of the file. Each is a station of its segment, which is a
//!          network of its own: a bridge waits for the token, it collides. A frame crosses segment after segment as a frame of each. On a
//!          medium that stations share, every bridge hears every frame; the switch of a star sends on what it has not heard of to all its
//!          stations, as a bridge does to all its other segments. Steps of segments and bridges are done in the order of their times, at equal
//!          times segments first, in the order of the file. Every host that a frame is for has one copy of it: delivered, or lost once,
//!          wherever that was; what comes to others is not told. A command that names no host is for every segment that has
//!          such a thing. A buffer is what a bridge holds beside the queues of its stations.
//! Source:  IEEE 802.1D-1998 §7.7 (forwarding), §7.8 (learning), §7.9 (ageing). Deviations: the tree is fixed, no bridge sends frames
//!          of its own, and the switch of a star knows its own stations from the start.
//! Checked: `tests/site.rs`.

mod due;
pub(crate) mod spec;

use crate::calendar::Calendar;
use crate::network::{Admission, Cause, Change, Command, Event, Mark, Network, Place, Refused};
use crate::slab::Slab;
use crate::{
    Captured, Class, Counters, Ecn, Frame, FrameId, Kind, Port, SpecError, To, build_with,
};
use due::Due;
use sonde_units::{Bytes, Instant, Span};
use spec::{SiteSpec, inside};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A segment while it runs.
struct Part {
    net: Box<dyn Network + Send>,
    /// By station: its port in the whole.
    ports: Vec<Port>,
    /// Stations of bridges.
    bridges: Vec<u16>,
    /// All stations hear what one sends to another.
    is_shared: bool,
    /// By host: the station by which it is reached.
    way: Vec<u16>,
    /// At which stations the switch of a star heard hosts that are behind bridges.
    heard: Heard,
}

/// Where hosts were heard last, and when.
struct Heard {
    ageing: Span,
    of: BTreeMap<Port, (u16, Instant)>,
}

impl Heard {
    fn new(ageing: Span) -> Self {
        Self {
            ageing,
            of: BTreeMap::new(),
        }
    }

    fn learn(&mut self, now: Instant, host: Port, at: u16) {
        self.of.insert(host, (at, now));
    }

    fn find(&self, now: Instant, host: Port) -> Option<u16> {
        let (at, when) = self.of.get(&host)?;
        (now.since(*when) < self.ageing).then_some(*at)
    }
}

/// A bridge while it runs.
struct Bridge {
    frame_time: Span,
    byte_time: Span,
    latency: Span,
    buffer: Bytes,
    /// By interface: the segment and its station there.
    at: Vec<(usize, u16)>,
    heard: Heard,
    held: Bytes,
    free_at: Instant,
    /// What the processor has, with where it shall go.
    jobs: VecDeque<(usize, Vec<usize>)>,
    /// By interface: what waits for its station.
    outputs: Vec<VecDeque<usize>>,
    counts: BridgeCounters,
}

/// What a bridge did with the frames that it heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeCounters {
    /// Sent on to the one segment where their destination was heard.
    pub forwarded: u64,
    /// Sent to all other segments, since it was heard nowhere, or since they are for all.
    pub flooded: u64,
    /// Left alone: their destination is where they came from.
    pub filtered: u64,
    /// Lost for want of room.
    pub dropped: u64,
}

/// A frame that was taken.
struct Book {
    frame: Frame,
    /// How often it is on a segment or in a bridge.
    alive: u32,
    /// Hosts whose copies are neither delivered nor lost.
    left: Left,
}

enum Left {
    One(Option<Port>),
    Many(BTreeSet<Port>),
}

impl Left {
    /// Takes out a host's copy; whether it was there.
    fn take(&mut self, port: Port) -> bool {
        match self {
            Self::One(one) => one.take_if(|one| *one == port).is_some(),
            Self::Many(all) => all.remove(&port),
        }
    }

    fn of(&self, is_of: impl Fn(Port) -> bool) -> Vec<Port> {
        match self {
            Self::One(one) => one.iter().copied().filter(|port| is_of(*port)).collect(),
            Self::Many(all) => all.iter().copied().filter(|port| is_of(*port)).collect(),
        }
    }
}

/// A frame on one segment.
#[derive(Clone, Copy)]
struct Transit {
    book: usize,
    station: u16,
    mark: Mark,
    /// It is addressed to one station of the segment.
    is_to_one: bool,
}

/// A frame in a bridge.
struct Packet {
    book: usize,
    mark: Mark,
    len: Bytes,
    /// Interfaces that it has still to leave by.
    left: usize,
}

/// A site as one network.
pub struct Internetwork {
    now: Instant,
    parts: Vec<Part>,
    bridges: Vec<Bridge>,
    hosts: u16,
    /// By port: segment and station.
    at: Vec<(usize, u16)>,
    /// By port behind the hosts: bridge and interface.
    interfaces: Vec<(usize, usize)>,
    books: Slab<Book>,
    transits: Slab<Transit>,
    packets: Slab<Packet>,
    /// When the segments have something to tell.
    due: Due,
    /// Bridges whose processor is done with a frame.
    calendar: Calendar<usize>,
    events: VecDeque<Event>,
    delivered: Vec<(u64, Bytes)>,
    lost: BTreeMap<(Place, Cause, Port), u64>,
}

/// The usual ageing of a switch.
const AGEING: Span = Span::secs(300);

impl Internetwork {
    /// The network of a site, whose random draws follow from `seed`.
    ///
    /// # Errors
    /// [`SpecError`] where a segment cannot join so many stations, or the parts do not fit together.
    pub fn new(site: &SiteSpec, seed: u64) -> Result<Self, SpecError> {
        Self::with_capture(site, seed, &[])
    }

    /// The same, with what flows of [`Law::Replay`](crate::Law::Replay) replay.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_capture(
        site: &SiteSpec,
        seed: u64,
        capture: &[Captured],
    ) -> Result<Self, SpecError> {
        let joined = site.joined().map_err(|problem| SpecError {
            key: "segment",
            problem,
        })?;
        let hosts = site.count();
        let mut at = site.places();
        let mut interfaces = Vec::new();
        let mut stations: Vec<Vec<Port>> = vec![Vec::new(); site.segment.len()];
        for (port, (segment, _)) in (0..).zip(&at) {
            stations[*segment].push(Port(port));
        }
        let mut bridges = Vec::new();
        for (number, (spec, joined)) in site.bridge.iter().zip(&joined).enumerate() {
            let mut own = Vec::new();
            for (interface, segment) in joined.iter().enumerate() {
                let station = (*segment, stations[*segment].len() as u16);
                stations[*segment].push(Port(at.len() as u16));
                at.push(station);
                interfaces.push((number, interface));
                own.push(station);
            }
            bridges.push(Bridge {
                frame_time: spec.frame_time,
                byte_time: spec.byte_time,
                latency: spec.latency,
                buffer: spec.buffer,
                outputs: own.iter().map(|_| VecDeque::new()).collect(),
                at: own,
                heard: Heard::new(spec.ageing),
                held: Bytes::ZERO,
                free_at: Instant::START,
                jobs: VecDeque::new(),
                counts: BridgeCounters::default(),
            });
        }
        let mut parts = Vec::new();
        for (segment, (one, ports)) in site.segment.iter().zip(stations).enumerate() {
            let is_bridge = |station: &u16| ports[usize::from(*station)].0 >= hosts;
            let seed = seed.wrapping_add(segment as u64);
            parts.push(Part {
                net: build_with(&one.network, ports.len() as u16, seed, capture.to_vec())?,
                bridges: (0..ports.len() as u16).filter(is_bridge).collect(),
                is_shared: one.network.bus.is_some() || one.network.token.is_some(),
                way: ways(segment, hosts, &at, &bridges),
                heard: Heard::new(AGEING),
                ports,
            });
        }
        let mut due = Due::new(parts.len());
        for (segment, part) in parts.iter().enumerate() {
            due.set(segment, part.net.poll_at());
        }
        Ok(Self {
            now: Instant::START,
            delivered: vec![(0, Bytes::ZERO); usize::from(hosts)],
            due,
            parts,
            bridges,
            hosts,
            at,
            interfaces,
            books: Slab::new(),
            transits: Slab::new(),
            packets: Slab::new(),
            calendar: Calendar::new(),
            events: VecDeque::new(),
            lost: BTreeMap::new(),
        })
    }

    /// How many hosts it has; their ports come first.
    pub fn hosts(&self) -> u16 {
        self.hosts
    }

    /// What each bridge did so far.
    pub fn bridges(&self) -> Vec<BridgeCounters> {
        self.bridges.iter().map(|bridge| bridge.counts).collect()
    }

    fn enter(&mut self, now: Instant) {
        assert!(now >= self.now, "time does not go backwards");
        self.advance(now);
    }

    /// Does what is due until `now`, in the order of time.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        loop {
            let inside = self.due.first().filter(|(at, _)| *at <= now);
            let here = self.calendar.next_at().filter(|at| *at <= now);
            match (inside, here) {
                (Some((at, segment)), other) if other.is_none_or(|other| at <= other) => {
                    while let Some(event) = self.parts[segment].net.poll(at) {
                        self.hear(segment, at, event);
                    }
                    self.due.set(segment, self.parts[segment].net.poll_at());
                }
                (_, Some(_)) => self.process(),
                _ => return,
            }
        }
    }

    /// Takes an event of a segment, polled at `now`.
    fn hear(&mut self, segment: usize, now: Instant, event: Event) {
        match event {
            Event::Deliver { at, id, to, mark } => {
                self.arrive(segment, at, id.0 as usize, to.0, mark)
            }
            Event::Lost {
                at,
                id,
                to,
                place,
                cause,
            } => {
                let Some(transit) = self.transits.get(id.0 as usize).copied() else {
                    return;
                };
                // What is lost to its own sender is lost to all that it was for.
                let way = |part: &Part, host: Port| part.way.get(usize::from(host.0)).copied();
                let is_lost = |part: &Part, host: Port| match way(part, host) {
                    _ if to.0 == transit.station => {
                        way(part, host) != Some(to.0) || part.ports[usize::from(to.0)] == host
                    }
                    by => by == Some(to.0),
                };
                self.lose(at, transit.book, segment, is_lost, (place, cause));
            }
            Event::Done { id } => {
                if let Some(transit) = self.transits.remove(id.0 as usize) {
                    self.leave(now, transit.book);
                }
            }
            Event::Ready { at, port, class } => match self.end(segment, port.0) {
                (port, None) => self.events.push_back(Event::Ready { at, port, class }),
                (_, Some((bridge, interface))) => self.send(now, bridge, interface),
            },
            Event::Busy { at, port, span } => {
                if let (port, None) = self.end(segment, port.0) {
                    self.events.push_back(Event::Busy { at, port, span });
                }
            }
            Event::State { at, change } => {
                let ports = &self.parts[segment].ports;
                let whole = |port: Port| ports.get(usize::from(port.0)).copied().unwrap_or(port);
                let change = match change {
                    Change::CircuitUp(a, b, span) => Change::CircuitUp(whole(a), whole(b), span),
                    Change::CircuitDown(a, b) => Change::CircuitDown(whole(a), whole(b)),
                    Change::Fault(fault) => Change::Fault(fault.with_ports(whole)),
                    Change::Load(flow) => Change::Load(flow.with_ports(whole)),
                };
                self.events.push_back(Event::State { at, change });
            }
        }
    }

    /// The port of a station, and its bridge and interface if it is one's.
    fn end(&self, segment: usize, station: u16) -> (Port, Option<(usize, usize)>) {
        let port = self.parts[segment].ports[usize::from(station)];
        let behind = port.0.checked_sub(self.hosts).map(usize::from);
        (
            port,
            behind.and_then(|number| self.interfaces.get(number).copied()),
        )
    }

    /// A copy has come to a station.
    fn arrive(&mut self, segment: usize, at: Instant, id: usize, station: u16, mark: Mark) {
        let Some(transit) = self.transits.get(id).copied() else {
            return;
        };
        let mark = match (transit.mark, mark) {
            (_, Mark::Corrupt) => Mark::Corrupt,
            (Mark::Ce, _) | (_, Mark::Ce) => Mark::Ce,
            _ => Mark::Ok,
        };
        match self.end(segment, station) {
            (port, None) => self.deliver(at, transit.book, port, mark),
            (_, Some(by)) => self.bridge(at, by, transit.book, mark),
        }
        let part = &self.parts[segment];
        if transit.is_to_one && part.is_shared {
            let others = part.bridges.iter().copied();
            let others = others.filter(|other| ![station, transit.station].contains(other));
            for other in others.collect::<Vec<_>>() {
                if let (_, Some(by)) = self.end(segment, other) {
                    self.bridge(at, by, transit.book, mark);
                }
            }
        }
    }

    fn deliver(&mut self, at: Instant, book: usize, to: Port, mark: Mark) {
        let Some(book) = self.books.get_mut(book) else {
            return;
        };
        // A frame that a fault doubled comes twice.
        if book.frame.is_for(to) {
            book.left.take(to);
            let counted = &mut self.delivered[usize::from(to.0)];
            *counted = (counted.0 + 1, counted.1 + book.frame.len);
            let id = book.frame.id;
            self.events.push_back(Event::Deliver { at, id, to, mark });
        }
    }

    /// The copies of some hosts, by their way on a segment, are gone.
    fn lose(
        &mut self,
        at: Instant,
        book: usize,
        segment: usize,
        is_lost: impl Fn(&Part, Port) -> bool,
        (place, cause): (Place, Cause),
    ) {
        let Some(book) = self.books.get_mut(book) else {
            return;
        };
        let part = &self.parts[segment];
        for to in book.left.of(|host| is_lost(part, host)) {
            book.left.take(to);
            *self
                .lost
                .entry((place, cause, book.frame.from))
                .or_default() += 1;
            self.events.push_back(Event::Lost {
                at,
                id: book.frame.id,
                to,
                place,
                cause,
            });
        }
    }

    /// A frame is once less on a segment or in a bridge.
    fn leave(&mut self, now: Instant, number: usize) {
        let Some(book) = self.books.get_mut(number) else {
            return;
        };
        book.alive -= 1;
        if book.alive > 0 {
            return;
        }
        // Nothing is left of a frame on a tree; a copy that a bridge left alone would be told here.
        self.lose(
            now,
            number,
            0,
            |_, _| true,
            (Place::Bridge, Cause::NoSuchPort),
        );
        if let Some(book) = self.books.remove(number) {
            self.events.push_back(Event::Done { id: book.frame.id });
        }
    }

    /// A bridge hears a frame.
    fn bridge(
        &mut self,
        at: Instant,
        (number, interface): (usize, usize),
        book: usize,
        mark: Mark,
    ) {
        let Some(frame) = self.books.get(book).map(|book| book.frame) else {
            return;
        };
        let bridge = &mut self.bridges[number];
        let (segment, station) = bridge.at[interface];
        let behind =
            move |part: &Part, host: Port| part.way.get(usize::from(host.0)) == Some(&station);
        if mark == Mark::Corrupt {
            return self.lose(at, book, segment, behind, (Place::Bridge, Cause::Random));
        }
        bridge.heard.learn(at, frame.from, interface as u16);
        let others = (0..bridge.at.len()).filter(|other| *other != interface);
        let is_host = |to: Port| to.0 < self.hosts && to != frame.from;
        let found = match frame.to {
            To::One(to) if is_host(to) => bridge.heard.find(at, to).map(usize::from),
            _ => None,
        };
        let outs = match found {
            Some(out) if out == interface => {
                bridge.counts.filtered += 1;
                return;
            }
            Some(out) => vec![out],
            None => others.collect(),
        };
        if bridge.held + frame.len > bridge.buffer {
            bridge.counts.dropped += 1;
            return self.lose(at, book, segment, behind, (Place::Bridge, Cause::Overflow));
        }
        match found {
            Some(_) => bridge.counts.forwarded += 1,
            None => bridge.counts.flooded += 1,
        }
        bridge.held += frame.len;
        let takes = bridge.frame_time + bridge.byte_time * frame.len.0;
        bridge.free_at = bridge.free_at.max(at) + takes;
        let packet = self.packets.insert(Packet {
            book,
            mark,
            len: frame.len,
            left: outs.len(),
        });
        bridge.jobs.push_back((packet, outs));
        self.calendar
            .insert(bridge.free_at + bridge.latency, number);
        if let Some(book) = self.books.get_mut(book) {
            book.alive += 1;
        }
    }

    /// The processor of the bridge that is due first is done with a frame.
    fn process(&mut self) {
        let Some((now, number)) = self.calendar.pop() else {
            return;
        };
        let bridge = &mut self.bridges[number];
        let Some((packet, outs)) = bridge.jobs.pop_front() else {
            return;
        };
        let book = self.packets.get(packet).map(|packet| packet.book);
        if let Some(book) = book.and_then(|book| self.books.get_mut(book)) {
            book.alive += outs.len() as u32 - 1;
        }
        for out in &outs {
            bridge.outputs[*out].push_back(packet);
        }
        for out in outs {
            self.send(now, number, out);
        }
    }

    /// A bridge sends what waits at an interface, as far as its station wants it.
    fn send(&mut self, now: Instant, number: usize, interface: usize) {
        let (segment, station) = self.bridges[number].at[interface];
        while let Some(&packet) = self.bridges[number].outputs[interface].front() {
            let Some(&Packet {
                book, mark, len, ..
            }) = self.packets.get(packet)
            else {
                return;
            };
            let Some(frame) = self.books.get(book).map(|book| book.frame) else {
                return;
            };
            let is_wanted = self.parts[segment].net.ready(Port(station), frame.class);
            if !is_wanted || self.put(now, book, (segment, station), mark) == Admission::Blocked {
                return;
            }
            let part = &mut self.parts[segment];
            if !part.is_shared {
                part.heard.learn(now, frame.from, station);
            }
            let bridge = &mut self.bridges[number];
            bridge.outputs[interface].pop_front();
            let left = self.packets.get_mut(packet).map_or(0, |packet| {
                packet.left -= 1;
                packet.left
            });
            if left == 0 {
                self.packets.remove(packet);
                bridge.held -= len;
            }
        }
    }

    /// Puts a frame before a station of a segment.
    fn put(
        &mut self,
        now: Instant,
        book: usize,
        (segment, station): (usize, u16),
        mark: Mark,
    ) -> Admission {
        let Some(frame) = self.books.get(book).map(|book| book.frame) else {
            return Admission::Taken;
        };
        let part = &mut self.parts[segment];
        let to = part.to(now, &frame, station);
        let id = self.transits.insert(Transit {
            book,
            station,
            mark,
            is_to_one: matches!(to, To::One(_)),
        });
        let admission = part.net.offer(
            now,
            Frame {
                id: FrameId(id as u64),
                from: Port(station),
                to,
                kind: part.kind(frame.kind),
                ecn: if mark == Mark::Ce {
                    Ecn::Experienced
                } else {
                    frame.ecn
                },
                ..frame
            },
        );
        if admission == Admission::Blocked {
            self.transits.remove(id);
        }
        self.due.set(segment, part.net.poll_at());
        admission
    }

    /// The hosts that a frame is for; of one that is for nobody its sender, to whom that is told.
    fn copies(&self, frame: &Frame) -> Left {
        match frame.to {
            To::One(to) if to.0 < self.hosts => Left::One(Some(to)),
            To::One(_) => Left::One(Some(frame.from)),
            To::All | To::Group(_) | To::Unknown => Left::Many(
                (0..self.hosts)
                    .map(Port)
                    .filter(|host| *host != frame.from)
                    .collect(),
            ),
        }
    }
}

impl Part {
    /// To whom of the segment's stations a frame is addressed that `station` sends.
    fn to(&self, now: Instant, frame: &Frame, station: u16) -> To {
        let To::One(host) = frame.to else {
            return frame.to;
        };
        let Some(&by) = self.way.get(usize::from(host.0)) else {
            // Nobody has it: its own sender, which the segment refuses.
            return To::One(Port(station));
        };
        let is_own = self.ports.get(usize::from(by)) == Some(&host);
        match self.heard.find(now, host) {
            _ if is_own || self.is_shared => To::One(Port(by)),
            Some(at) => To::One(Port(at)),
            None => To::Unknown,
        }
    }

    fn kind(&self, kind: Kind) -> Kind {
        match kind {
            Kind::Resolve(host) => match self.way.get(usize::from(host.0)) {
                Some(station) => Kind::Resolve(Port(*station)),
                None => Kind::Arp,
            },
            kind => kind,
        }
    }
}

/// By host: the station of a segment by which it is reached.
fn ways(segment: usize, hosts: u16, at: &[(usize, u16)], bridges: &[Bridge]) -> Vec<u16> {
    let mut way = vec![u16::MAX; usize::from(hosts)];
    // Segments to look at, with the station here by which they are reached.
    let mut found: BTreeMap<usize, Option<u16>> = BTreeMap::from([(segment, None)]);
    let mut next = vec![segment];
    while let Some(from) = next.pop() {
        let by = found.get(&from).copied().flatten();
        for bridge in bridges {
            let Some((_, station)) = bridge.at.iter().find(|(joined, _)| *joined == from) else {
                continue;
            };
            let by = by.or((from == segment).then_some(*station));
            for (other, _) in &bridge.at {
                if !found.contains_key(other) {
                    found.insert(*other, by);
                    next.push(*other);
                }
            }
        }
    }
    for (host, (of, station)) in way.iter_mut().zip(at) {
        match found.get(of) {
            Some(None) => *host = *station,
            Some(Some(by)) => *host = *by,
            None => {}
        }
    }
    way
}

/// What joins the hosts of a site, ready to be driven, with captured frames for flows that replay them: what both clocks use.
///
/// # Errors
/// [`SpecError`] where a network is wrong or cannot join so many stations, or the parts do not fit together.
pub fn join(
    site: &SiteSpec,
    seed: u64,
    capture: Vec<Captured>,
) -> Result<Box<dyn Network + Send>, SpecError> {
    match site.network() {
        Some(network) => build_with(network, site.count(), seed, capture),
        None => Ok(Box::new(Internetwork::with_capture(site, seed, &capture)?)),
    }
}

impl Network for Internetwork {
    fn offer(&mut self, now: Instant, frame: Frame) -> Admission {
        self.enter(now);
        assert!(
            frame.from.0 < self.hosts,
            "the sender is a host of the site"
        );
        let left = self.copies(&frame);
        let book = self.books.insert(Book {
            frame,
            alive: 1,
            left,
        });
        let admission = self.put(now, book, self.at[usize::from(frame.from.0)], Mark::Ok);
        if admission == Admission::Blocked {
            self.books.remove(book);
        }
        admission
    }

    fn ready(&self, port: Port, class: Class) -> bool {
        let (segment, station) = self.at[usize::from(port.0)];
        self.parts[segment].net.ready(Port(station), class)
    }

    fn command(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.enter(now);
        command.check(self.hosts)?;
        let all = inside(&self.at, self.parts.len(), command)?;
        let mut given = all.into_iter().map(|(segment, command)| {
            let net = &mut self.parts[segment].net;
            let done = net.command(now, command);
            self.due.set(segment, net.poll_at());
            done
        });
        // What is for each is for those that have such a thing.
        let first = given.next().unwrap_or(Ok(()));
        given.fold(first, |so_far, one| so_far.or(one))
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        if self.events.is_empty() {
            self.advance(now);
        }
        self.events.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        if !self.events.is_empty() {
            return Some(self.now);
        }
        let due = [self.due.first().map(|(at, _)| at), self.calendar.next_at()];
        due.into_iter().flatten().min().map(|at| at.max(self.now))
    }

    fn counters(&self) -> Counters {
        let mut all = Counters::new(self.hosts);
        for part in &self.parts {
            let of = part.net.counters();
            for (station, port) in part
                .ports
                .iter()
                .enumerate()
                .filter(|(_, port)| port.0 < self.hosts)
            {
                *all.port(*port) = of.ports[station].clone();
                if let Some(access) = of.access.get(station) {
                    *all.access(usize::from(port.0)) = access.clone();
                }
            }
            all.add_shared(&of, |port| {
                part.ports.get(usize::from(port.0)).copied().unwrap_or(port)
            });
        }
        for (port, (frames, bytes)) in all.ports.iter_mut().zip(&self.delivered) {
            (port.delivered, port.delivered_bytes) = (*frames, *bytes);
        }
        all.lost.clone_from(&self.lost);
        all
    }
}
