//! The ends of a fabric: stations that cut datagrams into packets, acknowledgements, login, the address server.
//!
//! Model:   a source sends one datagram after the other, packet by packet; frames of the host and ghosts of the same station
//!          take turns. Acknowledgements (class 2) go before data. The first frame between two stations begins a login; it
//!          and what is behind it wait until that is done. A frame waits at its station until its first packet starts.
//! Source:  FC-PH §23 (login), §26.4 (end-to-end credit, ACK_1). Deviations: a login takes one configured time for both;
//!          what a restart loses of class 2 gives its end-to-end credit back at once, without the sender's timeout.
//! Checked: `tests/credit.rs`.

use super::agenda::Step;
use super::connection::Access;
use super::machine::{Datagram, NEVER, NO_DATAGRAM, Packet};
use super::net::Net;
use crate::edge::Edge;
use crate::medium::{GHOSTS_MAX, Target};
use crate::network::{Cause, Change, Place};
use crate::{Frame, Port};
use sonde_units::{Bytes, Instant};
use std::collections::VecDeque;

/// A frame in the queue of its station.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub frame: Frame,
    pub target: Target,
}

/// The datagram that is being sent.
#[derive(Clone, Copy)]
struct Current {
    datagram: u32,
    next: u32,
    /// Whether it is still at the front of the station's queue.
    is_queued: bool,
}

/// Where packets begin.
#[derive(Default)]
pub(super) struct Source {
    current: Option<Current>,
    /// Ghosts, and answers of the server.
    pub ghosts: VecDeque<u32>,
    /// From whom and to whom.
    acks: VecDeque<(u16, u16)>,
    /// Whether a ghost is next in turn.
    is_ghost_next: bool,
}

/// Two stations before they exchange frames.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Login {
    Out,
    Calling(Instant),
    In,
}

impl Net {
    fn pair(&self, a: u16, b: u16) -> usize {
        usize::from(a.min(b)) * usize::from(self.wiring.ports) + usize::from(a.max(b))
    }

    fn one_way(&self, from: u16, to: u16) -> usize {
        usize::from(from) * usize::from(self.wiring.ports) + usize::from(to)
    }

    /// Begins the login between two stations where there is none yet. Whether they are logged in.
    pub(super) fn log_in(&mut self, now: Instant, a: u16, b: u16) -> bool {
        if self.login.is_zero() {
            return true;
        }
        let pair = self.pair(a, b);
        if self.logins[pair] == Login::Out {
            let at = now + self.login;
            self.logins[pair] = Login::Calling(at);
            self.calendar.insert(at, Step::LoggedIn(a, b));
        }
        self.logins[pair] == Login::In
    }

    pub(super) fn on_login(&mut self, now: Instant, a: u16, b: u16, edge: &mut Edge) {
        let pair = self.pair(a, b);
        if self.logins[pair] != Login::Calling(now) {
            return;
        }
        self.logins[pair] = Login::In;
        edge.counters.circuit_setups += 1;
        let (low, high) = (Port(a.min(b)), Port(a.max(b)));
        edge.change(now, Change::CircuitUp(low, high, self.login));
        self.feed(now, u32::from(a), edge);
        self.feed(now, u32::from(b), edge);
    }

    /// Ends the login between two stations; frames that wait begin another.
    pub(super) fn log_out(&mut self, now: Instant, a: u16, b: u16, edge: &mut Edge) {
        let pair = self.pair(a, b);
        let was = std::mem::replace(&mut self.logins[pair], Login::Out);
        if was == Login::In {
            edge.counters.circuit_releases += 1;
            edge.change(now, Change::CircuitDown(Port(a.min(b)), Port(a.max(b))));
        }
        self.feed(now, u32::from(a), edge);
        self.feed(now, u32::from(b), edge);
    }

    /// A place for a datagram.
    fn place(&mut self, datagram: Datagram) -> u32 {
        if let Some(place) = self.free.pop() {
            self.datagrams[place as usize] = datagram;
            return place;
        }
        self.datagrams.push(datagram);
        self.datagrams.len() as u32 - 1
    }

    fn datagram(&mut self, frame: Frame, to: u16) -> Datagram {
        Datagram {
            frame,
            to,
            packets: self.packing.packets(frame.len),
            gone: 0,
            is_dead: false,
            is_served: false,
            is_tracked: false,
            is_connected: false,
            line: self.paces[0].times(frame.len),
            adapter: self.paces[1].times(frame.len),
            source: u32::from(frame.from.0),
            arrives_at: NEVER,
        }
    }

    /// Whether `source` has something to send, be it held back.
    pub(super) fn has_more(&self, source: u32) -> bool {
        let here = &self.sources[source as usize];
        let queue = self.stations.get(source as usize);
        here.current.is_some()
            || !here.acks.is_empty()
            || !here.ghosts.is_empty()
            || queue.is_some_and(|queue| queue.front().is_some())
    }

    /// The next datagram in turn that may go.
    fn choose(&mut self, now: Instant, source: u32) -> Option<Current> {
        let is_ghost_next = self.sources[source as usize].is_ghost_next;
        let ghost = |net: &mut Self| {
            let datagram = net.sources[source as usize].ghosts.pop_front()?;
            net.sources[source as usize].is_ghost_next = false;
            Some(Current {
                datagram,
                next: 0,
                is_queued: false,
            })
        };
        if is_ghost_next {
            if let Some(current) = ghost(self) {
                return Some(current);
            }
        }
        self.choose_queued(now, source).or_else(|| ghost(self))
    }

    fn choose_queued(&mut self, now: Instant, source: u32) -> Option<Current> {
        let &(_, waiting) = self.stations.get(source as usize)?.front()?;
        let from = waiting.frame.from.0;
        let (to, is_served) = match waiting.target {
            Target::One(to) => (to.0, false),
            // On a line the server is at the other end.
            Target::Server | Target::All if self.wiring.has_switch => (from, true),
            Target::Server | Target::All => (1 - from, true),
        };
        if !is_served {
            if !self.log_in(now, from, to) {
                return None;
            }
            if self.connection_of(now, from, to) == Access::Waits {
                return None;
            }
        }
        let datagram = Datagram {
            is_served,
            is_tracked: !is_served,
            is_connected: !is_served && self.connections.is_some(),
            ..self.datagram(waiting.frame, to)
        };
        self.sources[source as usize].is_ghost_next = true;
        Some(Current {
            datagram: self.place(datagram),
            next: 0,
            is_queued: true,
        })
    }

    /// Puts the next packet of a source before its line.
    pub(super) fn feed(&mut self, now: Instant, source: u32, edge: &mut Edge) {
        let here = &self.inputs[source as usize];
        if !here.packets.is_empty() {
            return;
        }
        if here.read_free > now {
            return self.plan_head(here.read_free, source);
        }
        let packet = |datagram, index, from, to| Packet {
            datagram,
            index,
            from,
            to,
            eligible: now,
            arrives: now,
            tail: now,
        };
        let next = if let Some((from, to)) = self.sources[source as usize].acks.pop_front() {
            packet(NO_DATAGRAM, 0, from, to)
        } else {
            let current = self.sources[source as usize].current;
            let current = match current {
                Some(current) => current,
                None => {
                    let Some(current) = self.choose(now, source) else {
                        return;
                    };
                    self.enroll(now, source, current.datagram);
                    current
                }
            };
            self.sources[source as usize].current = Some(current);
            let datagram = &self.datagrams[current.datagram as usize];
            let (from, to) = (datagram.frame.from.0, datagram.to);
            if self.is_acknowledged && datagram.is_tracked {
                let way = self.one_way(from, to);
                if self.outstanding[way] >= self.end_credits {
                    return;
                }
                self.outstanding[way] += 1;
            }
            packet(current.datagram, current.next, from, to)
        };
        self.inputs[source as usize].packets.push_back(next);
        self.head(now, source, edge);
    }

    /// A packet of `source` has started.
    pub(super) fn sent(&mut self, now: Instant, source: u32, packet: &Packet, edge: &mut Edge) {
        if packet.is_ack() {
            return;
        }
        let here = &mut self.sources[source as usize];
        let current = here.current.as_mut().expect("its packet was sent");
        current.next += 1;
        let is_first = current.next == 1 && current.is_queued;
        if current.next == self.datagrams[packet.datagram as usize].packets {
            here.current = None;
        }
        if is_first {
            let popped = self.stations[source as usize].pop();
            if popped.is_some_and(|(_, _, woken)| woken) {
                edge.ready(now, Port(source as u16));
            }
        }
    }

    /// A packet is at its host, whole.
    pub(super) fn on_arrived(&mut self, now: Instant, place: u32, index: u32, edge: &mut Edge) {
        let datagram = self.datagrams[place as usize];
        let is_last = index + 1 == datagram.packets;
        if !(self.is_acknowledged || is_last && datagram.arrives_at == now) {
            // It was on a train that was taken apart; its place may be another's now.
            return;
        }
        let (from, to) = (datagram.frame.from.0, datagram.to);
        if self.is_acknowledged && datagram.is_tracked {
            self.sources[usize::from(to)].acks.push_back((to, from));
            self.feed(now, u32::from(to), edge);
        }
        if is_last && !datagram.is_dead {
            if datagram.is_served {
                return self.request(now, place);
            }
            edge.arrive(now, &datagram.frame, Port(to));
        }
        self.gone(place);
        self.grant(now);
    }

    /// A packet from `from` to `to` was acknowledged.
    pub(super) fn acknowledged(&mut self, now: Instant, from: u16, to: u16, edge: &mut Edge) {
        let way = self.one_way(from, to);
        self.outstanding[way] -= 1;
        self.feed(now, u32::from(from), edge);
    }

    /// The fabric's server has a request.
    pub(super) fn request(&mut self, now: Instant, place: u32) {
        // Several may come at one time, behind a packet that has waited.
        self.asked.push_back(place);
        let at = now + self.resolution_delay;
        self.calendar.insert(at, Step::Answer);
    }

    /// The server sends a request back.
    pub(super) fn answer(&mut self, now: Instant, edge: &mut Edge) {
        let place = self.asked.pop_front().expect("each answer has a request");
        self.dismiss(place);
        let datagram = &mut self.datagrams[place as usize];
        let to = datagram.frame.from;
        datagram.arrives_at = NEVER;
        (datagram.to, datagram.gone, datagram.is_served) = (to.0, 0, false);
        self.inject(now, u32::from(self.wiring.ports + to.0), place, edge);
    }

    /// Takes a frame of background traffic.
    pub(super) fn haunt(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        let ports = self.wiring.ports;
        let source = if frame.from.0 < ports {
            frame.from.0
        } else {
            ports + to.0
        };
        let datagram = self.datagram(frame, to.0);
        let place = self.place(datagram);
        self.inject(now, u32::from(source), place, edge);
    }

    /// Puts a datagram behind the ghosts of a source.
    fn inject(&mut self, now: Instant, source: u32, place: u32, edge: &mut Edge) {
        let is_inside = source >= u32::from(self.wiring.ports) && self.wiring.has_switch;
        let is_full = self.sources[source as usize].ghosts.len() >= GHOSTS_MAX;
        let cause = if is_inside && now < self.up_at {
            Some(Cause::Restart)
        } else {
            is_full.then_some(Cause::Overflow)
        };
        if let Some(cause) = cause {
            let at = if is_inside {
                Place::Output
            } else {
                Place::Station
            };
            return self.discard(now, place, at, cause, edge);
        }
        self.sources[source as usize].ghosts.push_back(place);
        self.feed(now, source, edge);
    }

    /// Loses a datagram of which nothing was sent.
    fn discard(&mut self, now: Instant, place: u32, at: Place, cause: Cause, edge: &mut Edge) {
        let datagram = self.datagrams[place as usize];
        edge.lose(now, &datagram.frame, Port(datagram.to), at, cause);
        self.free.push(place);
    }

    /// The switch loses what waits inside it, all logins and connections.
    pub(super) fn restart(&mut self, now: Instant, edge: &mut Edge) {
        self.take_all_apart(now);
        for source in usize::from(self.wiring.ports)..self.sources.len() {
            while let Some(place) = self.sources[source].ghosts.pop_front() {
                self.discard(now, place, Place::Output, Cause::Restart, edge);
            }
        }
        self.clear(now, edge);
        if let Some(connections) = &mut self.connections {
            connections.expire();
        }
        for a in 0..self.wiring.ports {
            for b in a + 1..self.wiring.ports {
                let pair = self.pair(a, b);
                if !self.login.is_zero() && self.logins[pair] == Login::In {
                    self.log_out(now, a, b, edge);
                }
            }
        }
        self.grant(now);
    }

    /// A packet of a datagram has arrived or is lost.
    pub(super) fn gone(&mut self, place: u32) {
        let datagram = &mut self.datagrams[place as usize];
        datagram.gone += 1;
        if datagram.gone < datagram.packets {
            return;
        }
        let (from, to, is_connected) = (datagram.frame.from.0, datagram.to, datagram.is_connected);
        datagram.arrives_at = NEVER;
        self.dismiss(place);
        self.free.push(place);
        if is_connected {
            self.ended.push((from, to));
        }
    }

    /// Bytes that wait at a station.
    pub(super) fn backlog_of(&self, port: Port) -> Bytes {
        self.stations[usize::from(port.0)].backlog()
    }
}
