//! Segments with what joins them, and hosts on one or more of them, as one network.
//!
//! Model:   the ports are eth0 of each host, eth1 of each that has one and so on, then those of the bridges, then those of the routers, in the
//!          order of the file. Each is a station of its segment, which is a network of its own: a bridge waits for the token, it collides. A frame crosses segment after segment as a frame of each. On a
//!          medium that stations share, every bridge hears every frame; the switch of a star sends on what it has not heard of to all its
//!          stations, as a bridge does to all its other segments. Steps of segments and nodes are done in the order of their times, at equal
//!          times segments first, in the order of the file. Every host that a frame is for has one copy of it: delivered, or lost once,
//!          wherever that was; what comes to others is not told. A command is for the hosts' interfaces of one number; one that names no host is for every
//!          segment that these are on and that has such a thing. A buffer is what a bridge or router holds beside the queues of its stations.
//!          A virtual LAN has no network of its own: its ports are stations of the network that carries it, one for all virtual LANs of a host or router,
//!          and a frame for all is for the stations of its own. What joins segments by bridges is a subnet. A datagram for a host of another goes on the link to a router, hop by hop, and what a
//!          router answers is routed to its sender under the same name, told by the [`Edit`] of its arrival.
//! Source:  IEEE 802.1D-1998 §7.7 to §7.9; RFC 1812. Deviations: the tree is fixed, no bridge sends frames of its own, and the switch of a star
//!          knows its own stations from the start; routers know the link addresses of hosts, and answer nothing about fragments.
//! Checked: `tests/site.rs`, `tests/router.rs`.

pub(crate) mod catalogue;
mod check;
mod due;
mod node;
mod part;
pub(crate) mod spec;
mod subnets;

use crate::calendar::Calendar;
use crate::edge::Groups;
use crate::fabric::build_divided;
use crate::network::{Admission, Cause, Change, Command, Event, Mark, Network, Place, Refused};
use crate::slab::Slab;
use crate::spec::Resolution;
use crate::{
    Captured, Class, Counters, Datagram, Ecn, Edit, Fault, Frame, FrameId, Kind, Port, SpecError,
    To, build_with,
};
use due::Due;
pub use node::NodeCounters;
use node::{Does, Node, Packet};
use part::{Heard, Part, group, ways};
use sonde_units::{Bytes, Instant, Span};
use spec::{SiteSpec, Works, inside};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
pub use subnets::Subnets;

/// A frame that was taken.
struct Book {
    frame: Frame,
    /// How often it is on a segment or in a bridge.
    alive: u32,
    /// Hosts whose copies are neither delivered nor lost.
    left: Left,
    /// Bytes behind the header that have not come yet, where a router cut it up.
    missing: u64,
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

/// From where to where a frame goes, as far as the next router.
#[derive(Clone, Copy)]
struct Hop {
    from: Port,
    to: To,
    /// Its layer-3 bytes, which are fewer of an answer.
    len: Bytes,
    /// What routers know of it; none of what no router sends on.
    datagram: Option<Datagram>,
}

/// A frame on one segment.
#[derive(Clone, Copy)]
struct Transit {
    book: usize,
    hop: Hop,
    station: u16,
    mark: Mark,
    /// It is addressed to one station of the segment.
    is_to_one: bool,
}

/// A site as one network.
pub struct Internetwork {
    now: Instant,
    parts: Vec<Part>,
    /// The bridges, then the routers.
    nodes: Vec<Node>,
    subnets: Subnets,
    /// How many interfaces the hosts have.
    ends: u16,
    /// By port: network and station.
    at: Vec<(usize, u16)>,
    /// By port: node and interface; none of hosts that send nothing on.
    interfaces: Vec<Option<(usize, usize)>>,
    books: Slab<Book>,
    transits: Slab<Transit>,
    packets: Slab<Packet>,
    /// When the segments have something to tell.
    due: Due,
    /// Nodes whose processor is done with a frame.
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
        let subnets = site.subnets().map_err(|problem| SpecError {
            key: "segment",
            problem,
        })?;
        let ends = subnets.ends.len() as u16;
        let carrier = |(segment, station): &(usize, u16)| (subnets.carriers[*segment], *station);
        let at: Vec<(usize, u16)> = subnets.at.iter().map(carrier).collect();
        let mut stations: Vec<Vec<Vec<Port>>> = vec![Vec::new(); site.carriers()];
        for ((network, station), port) in at.iter().zip(0..) {
            let all = &mut stations[*network];
            all.resize(all.len().max(usize::from(*station) + 1), Vec::new());
            all[usize::from(*station)].push(Port(port));
        }
        let (mut nodes, mut interfaces) = (Vec::new(), vec![None; at.len()]);
        let mut node = |works: Works, ports: Vec<Port>, does: Does| {
            for (interface, port) in ports.iter().enumerate() {
                interfaces[usize::from(port.0)] = Some((nodes.len(), interface));
            }
            nodes.push(Node {
                does,
                frame_time: works.frame_time,
                byte_time: works.byte_time,
                latency: works.latency,
                buffer: works.buffer,
                at: ports.iter().map(|port| at[usize::from(port.0)]).collect(),
                held: Bytes::ZERO,
                free_at: Instant::START,
                jobs: VecDeque::new(),
                outputs: ports.iter().map(|_| VecDeque::new()).collect(),
                ports,
                counts: NodeCounters::default(),
            });
        };
        let mut last = ends;
        for (spec, joined) in site.bridge.iter().zip(&subnets.bridges) {
            let next = last + joined.len() as u16;
            let ports = (last..next).map(Port).collect();
            let does = Does::Bridge(Heard::new(spec.ageing), spec.too_long);
            node(spec.works(), ports, does);
            last = next;
        }
        for (number, (spec, ports)) in site.router.iter().zip(&subnets.routers).enumerate() {
            let does = Does::Route(subnets.table(number));
            node(spec.works(), ports.clone(), does);
        }
        let mut rest = &subnets.at[usize::from(ends)..];
        let bridges = subnets.bridges.iter().map(|joined| {
            let (own, others) = rest.split_at(joined.len());
            rest = others;
            own
        });
        let bridges: Vec<&[(usize, u16)]> = bridges.collect();
        let mut parts = Vec::new();
        for (network, (one, ports)) in site.segment.iter().zip(stations).enumerate() {
            let is_bridge =
                |station: &u16| (ends..last).contains(&ports[usize::from(*station)][0].0);
            let seed = seed.wrapping_add(network as u64);
            let own = (0..site.segment.len()).filter(|of| subnets.carriers[*of] == network);
            let own: Vec<usize> = own.collect();
            let mut groups = Groups::new();
            for ((segment, station), _) in
                subnets.at.iter().zip(&at).filter(|(_, at)| at.0 == network)
            {
                let stations = groups.entry(group(*segment)).or_default();
                stations.push(Port(*station));
            }
            let is_divided = own.len() > 1;
            if !is_divided {
                groups.clear();
            }
            let count = ports.len() as u16;
            parts.push(Part {
                net: build_divided(&one.network, count, seed, capture.to_vec(), groups)?,
                mtu: one.network.mtu,
                bridges: (0..count).filter(is_bridge).collect(),
                is_served: one.network.resolution() == Resolution::Server,
                is_shared: one.network.bus.is_some() || one.network.token.is_some(),
                is_divided,
                way: ways(&own, &subnets.at, &bridges),
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
            delivered: vec![(0, Bytes::ZERO); usize::from(ends)],
            due,
            parts,
            nodes,
            subnets,
            ends,
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

    /// How many interfaces its hosts have; their ports come first.
    pub fn ends(&self) -> u16 {
        self.ends
    }

    /// What each bridge did so far, then each router.
    pub fn nodes(&self) -> Vec<NodeCounters> {
        self.nodes.iter().map(|node| node.counts).collect()
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
            Event::Deliver {
                at, id, to, mark, ..
            } => self.arrive(segment, at, id.0 as usize, to.0, mark),
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
                // What is lost to its own sender is lost to all that it was for on this segment.
                let part = &self.parts[segment];
                let is_own = to.0 == transit.station;
                let is_gone = |port: Port| match part.way_to(port) == Some(to.0) {
                    true => !is_own || part.has(to.0, port),
                    false => is_own,
                };
                let gone = self.copies_of(transit.book, &transit.hop, is_gone);
                self.lose(at, transit.book, gone, (place, cause));
            }
            Event::Done { id } => {
                if let Some(transit) = self.transits.remove(id.0 as usize) {
                    self.leave(now, transit.book);
                }
            }
            Event::Ready { at, port, class } => {
                for number in 0..self.parts[segment].ports[usize::from(port.0)].len() {
                    let port = self.parts[segment].ports[usize::from(port.0)][number];
                    if port.0 < self.ends {
                        self.events.push_back(Event::Ready { at, port, class });
                    }
                    if let Some((node, interface)) = self.interfaces[usize::from(port.0)] {
                        self.send(now, node, interface);
                    }
                }
            }
            Event::Busy { at, port, span } => {
                let port = self.parts[segment].first(port);
                if port.0 < self.ends {
                    self.events.push_back(Event::Busy { at, port, span });
                }
            }
            Event::State { at, change } => {
                let part = &self.parts[segment];
                if let Change::Fault(Fault::Link { port, up }) = change {
                    // Of a line, or of all lines of this segment, not of the whole.
                    let ports = match port {
                        Some(station) => &part.ports[usize::from(station.0)..][..1],
                        None => &part.ports[..],
                    };
                    let of_hosts = ports.iter().flatten().filter(|port| port.0 < self.ends);
                    self.events.extend(of_hosts.map(|port| {
                        let port = Some(*port);
                        let change = Change::Fault(Fault::Link { port, up });
                        Event::State { at, change }
                    }));
                    return;
                }
                let whole = |port: Port| part.first(port);
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

    /// The port of a station at which a frame comes: the one that it is for, of a frame for several that of its virtual LAN.
    fn port_at(&self, segment: usize, station: u16, hop: &Hop) -> Port {
        let own = &self.parts[segment].ports[usize::from(station)];
        let is_so = |port: &&Port| match hop.to {
            To::One(to) => **port == to,
            _ => self.subnets.of_port(**port) == self.subnets.of_port(hop.from),
        };
        let port = own.iter().find(is_so).or(own.first());
        port.copied().unwrap_or(hop.from)
    }

    /// The other port that a datagram is for which has come to a host's port. In a lab the host's kernel looks at that.
    fn onward(&self, book: usize, hop: &Hop, port: Port) -> Option<Port> {
        let to = hop.datagram?.to;
        let is_virtual = self.books.get(book)?.frame.kind == Kind::Ip;
        (is_virtual && to != port && hop.to == To::One(port)).then_some(to)
    }

    /// The host of a port, if it is one's.
    fn host(&self, port: Port) -> Option<u16> {
        let end = self.subnets.ends.get(usize::from(port.0))?;
        Some(end.host)
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
        let mut hop = transit.hop;
        let mut port = self.port_at(segment, station, &hop);
        let mut by = self.interfaces[usize::from(port.0)];
        if port.0 < self.ends && by.is_some() {
            let onward = self.onward(transit.book, &hop, port);
            if let Some(to) = onward.filter(|to| self.host(*to) == self.host(port)) {
                // Its own, by another of its interfaces.
                (hop.to, port, by) = (To::One(to), to, None);
            }
            by = by.filter(|_| onward.is_some());
        }
        match by {
            None => self.deliver(at, transit.book, &hop, port, mark),
            Some(by) => self.take_in(at, by, transit.book, hop, mark),
        }
        let part = &self.parts[segment];
        if transit.is_to_one && part.is_shared {
            let others = part.bridges.iter().copied();
            let others = others.filter(|other| ![station, transit.station].contains(other));
            for other in others.collect::<Vec<_>>() {
                let port = self.parts[segment].first(Port(other));
                if let Some(by) = self.interfaces[usize::from(port.0)] {
                    self.take_in(at, by, transit.book, transit.hop, mark);
                }
            }
        }
    }

    fn deliver(&mut self, at: Instant, book: usize, hop: &Hop, to: Port, mark: Mark) {
        let Some(book) = self.books.get_mut(book) else {
            return;
        };
        let is_for = match (hop.to, &book.left) {
            (To::One(port), _) => port == to,
            // An address server's answer.
            (To::All, Left::One(_)) => true,
            (To::All | To::Group(_) | To::Unknown, _) => to != hop.from,
        };
        // A frame that a fault doubled comes twice.
        if is_for {
            // Of one that was cut up the last piece completes the copy.
            let piece = hop.datagram.and_then(|datagram| datagram.piece);
            if let Some(piece) = piece {
                book.missing = book.missing.saturating_sub(piece.len.into());
            }
            if piece.is_none() || book.missing == 0 {
                book.left.take(to);
            }
            let counted = &mut self.delivered[usize::from(to.0)];
            *counted = (counted.0 + 1, counted.1 + hop.len);
            self.events.push_back(Event::Deliver {
                at,
                id: book.frame.id,
                to,
                mark,
                edit: hop.edit(),
            });
        }
    }

    /// Whose copies of a frame go by a station of a segment.
    fn behind(&self, book: usize, hop: &Hop, (segment, station): (usize, u16)) -> Vec<Port> {
        let part = &self.parts[segment];
        self.copies_of(book, hop, |port| part.way_to(port) == Some(station))
    }

    /// Whose copies of a frame go on from a bridge by its station of a segment.
    fn beyond(&self, book: usize, hop: &Hop, (segment, station): (usize, u16)) -> Vec<Port> {
        let way = |port: Port| self.parts[segment].way_to(port);
        self.copies_of(book, hop, |port| way(port).is_some_and(|by| by != station))
    }

    /// Whose copies of a frame are neither delivered nor lost, of the ports for which this holds on a segment.
    fn copies_of(&self, book: usize, hop: &Hop, is_of: impl Fn(Port) -> bool) -> Vec<Port> {
        match hop.to {
            To::One(port) if is_of(port) => self.all_left(book),
            To::One(_) => Vec::new(),
            _ => self
                .books
                .get(book)
                .map_or_else(Vec::new, |book| book.left.of(is_of)),
        }
    }

    /// Whose copies of a frame are neither delivered nor lost.
    fn all_left(&self, book: usize) -> Vec<Port> {
        self.books
            .get(book)
            .map_or_else(Vec::new, |book| book.left.of(|_| true))
    }

    /// The copies of these hosts are gone.
    fn lose(&mut self, at: Instant, book: usize, gone: Vec<Port>, (place, cause): (Place, Cause)) {
        let Some(book) = self.books.get_mut(book) else {
            return;
        };
        for to in gone {
            book.left.take(to);
            let key = (place, cause, book.frame.from);
            *self.lost.entry(key).or_default() += 1;
            self.events.push_back(Event::Lost {
                at,
                id: book.frame.id,
                to,
                place,
                cause,
            });
        }
    }

    /// A frame is once less on a segment or in a node.
    fn leave(&mut self, now: Instant, number: usize) {
        let Some(book) = self.books.get_mut(number) else {
            return;
        };
        book.alive -= 1;
        if book.alive > 0 {
            return;
        }
        // Nothing is left of a frame on a tree; a copy that a bridge left alone would be told here.
        let gone = self.all_left(number);
        self.lose(now, number, gone, (Place::Bridge, Cause::NoSuchPort));
        if let Some(book) = self.books.remove(number) {
            self.events.push_back(Event::Done { id: book.frame.id });
        }
    }

    /// Puts a frame before the station of a port.
    fn put(&mut self, now: Instant, book: usize, hop: Hop, by: Port, mark: Mark) -> Admission {
        let (segment, station) = self.at[usize::from(by.0)];
        let (lan, _) = self.subnets.at[usize::from(by.0)];
        let Some(frame) = self.books.get(book).map(|book| book.frame) else {
            return Admission::Taken;
        };
        let part = &mut self.parts[segment];
        let to = part.to(now, hop.to, station, lan);
        let id = self.transits.insert(Transit {
            book,
            hop,
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
                len: hop.len,
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

    /// How a host's frame sets out: one for a host of another subnet to the router on the way there.
    fn set_out(&self, frame: &Frame) -> Hop {
        let plain = Hop {
            from: frame.from,
            to: frame.to,
            len: frame.len,
            datagram: None,
        };
        match (frame.to, frame.kind) {
            (To::One(_), Kind::Routed(routed)) => Hop {
                datagram: Some(Datagram::of(routed.to, routed.ttl, routed.is_whole)),
                ..plain
            },
            (To::One(to), Kind::Ip) if to.0 < self.ends => {
                let host = self.subnets.ends[usize::from(frame.from.0)].host;
                let (own, other) = (self.subnet(frame.from), self.subnet(to));
                match self.subnets.gateway(host, own, other) {
                    Some(router) => Hop {
                        to: To::One(router),
                        datagram: Some(Datagram::of(to, Datagram::TTL, false)),
                        ..plain
                    },
                    None => Hop {
                        datagram: Some(Datagram::of(to, Datagram::TTL, false)),
                        ..plain
                    },
                }
            }
            _ => plain,
        }
    }

    /// The subnet of a port that is there.
    fn subnet(&self, port: Port) -> usize {
        let (segment, _) = self.subnets.at[usize::from(port.0)];
        self.subnets.of[segment]
    }

    /// The hosts that a frame is for; of one that is for no host its sender, to whom an answer or the loss is told.
    fn copies(&self, frame: &Frame, hop: &Hop) -> Left {
        let one = |to: Port| Left::One(Some(if to.0 < self.ends { to } else { frame.from }));
        let (segment, _) = self.at[usize::from(frame.from.0)];
        let is_served = self.parts[segment].is_served;
        match (frame.to, hop.datagram, frame.kind) {
            (To::One(_), Some(datagram), _) => one(datagram.to),
            (To::One(to), None, _) => one(to),
            (To::All, _, Kind::Resolve(_)) if is_served => Left::One(Some(frame.from)),
            (To::All | To::Group(_) | To::Unknown, ..) => {
                let own = self.subnet(frame.from);
                let others = (0..self.ends).map(Port).filter(|port| *port != frame.from);
                Left::Many(others.filter(|port| self.subnet(*port) == own).collect())
            }
        }
    }
}

impl Hop {
    /// What routers made of it.
    fn edit(&self) -> Edit {
        let by = self.from;
        match self.datagram {
            None => Edit::None,
            Some(Datagram {
                answer: Some((of, what)),
                hops,
                ..
            }) => Edit::Answer { of, by, hops, what },
            Some(Datagram {
                hops: 0,
                piece: None,
                ..
            }) => Edit::None,
            Some(Datagram { hops, piece, .. }) => Edit::Routed { by, hops, piece },
        }
    }
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
    match &site.segment[..] {
        [one] => build_with(&one.network, site.count(), seed, capture),
        _ => Ok(Box::new(Internetwork::with_capture(site, seed, &capture)?)),
    }
}

impl Network for Internetwork {
    fn offer(&mut self, now: Instant, frame: Frame) -> Admission {
        self.enter(now);
        assert!(frame.from.0 < self.ends, "the sender is a host's interface");
        let hop = self.set_out(&frame);
        let left = self.copies(&frame, &hop);
        let book = self.books.insert(Book {
            frame,
            alive: 1,
            left,
            missing: 0,
        });
        let admission = self.put(now, book, hop, frame.from, Mark::Ok);
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
        self.command_on(now, 0, command)
    }

    fn command_on(&mut self, now: Instant, number: u16, command: Command) -> Result<(), Refused> {
        self.enter(now);
        let all = inside(&self.subnets.ends, self.parts.len(), number, command)?;
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
        let mut all = Counters::new(self.ends);
        for part in &self.parts {
            let of = part.net.counters();
            for station in 0..part.ports.len() {
                // What a line of several virtual LANs did is told of the first.
                let port = part.first(Port(station as u16));
                if port.0 < self.ends {
                    *all.port(port) = of.ports[station].clone();
                    if let Some(access) = of.access.get(station) {
                        *all.access(usize::from(port.0)) = access.clone();
                    }
                }
            }
            all.add_shared(&of, |port| part.first(port));
        }
        for (port, (frames, bytes)) in all.ports.iter_mut().zip(&self.delivered) {
            (port.delivered, port.delivered_bytes) = (*frames, *bytes);
        }
        all.lost.clone_from(&self.lost);
        all
    }
}
