//! Connections of class 1: two stations that are joined for as long as they talk.
//!
//! Model:   a station has one connection at a time. Who has a datagram for another asks for both; requests are granted in
//!          their order, as soon as both stations are idle, and a later one does not overtake an earlier one that needs a
//!          station of it. Set-up takes the configured time and the way of a connect frame there and back. Both ends
//!          send over it without asking while it is up and nobody else waits for either of them; it is given up when another is
//!          granted one of its stations, or at the next use after it was idle for `hold`.
//! Source:  FC-PH §28 (class 1, camp-on by X3.297). Deviations: the end of a datagram is where others get their turn, as
//!          with a connection for each sequence; a fabric's internal paths always suffice.
//! Checked: `tests/credit.rs`: set-up is seen once; nobody starves.

use super::agenda::Step;
use super::net::Net;
use crate::edge::Edge;
use sonde_units::{Instant, Span};
use std::collections::VecDeque;

/// What a datagram finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Open,
    Waits,
}

/// A station's side.
#[derive(Clone, Copy, Default)]
struct Side {
    peer: Option<u16>,
    /// Datagrams on their way, and a set-up.
    busy: u32,
    /// When it is set up, and when it became idle.
    up_at: Option<Instant>,
    idle_at: Option<Instant>,
    /// Whom it asks for.
    asks: Option<u16>,
    /// Whether the datagram that asked may go now.
    is_granted: bool,
}

/// The connections of all stations.
pub(super) struct Connections {
    hold: Span,
    sides: Vec<Side>,
    asked: VecDeque<(u16, u16)>,
    /// Stations that earlier requests wait for, while requests are granted.
    claimed: Vec<bool>,
}

impl Connections {
    pub fn new(ports: u16, hold: Span) -> Self {
        Self {
            hold,
            sides: vec![Side::default(); usize::from(ports)],
            asked: VecDeque::new(),
            claimed: vec![false; usize::from(ports)],
        }
    }

    fn side(&mut self, port: u16) -> &mut Side {
        &mut self.sides[usize::from(port)]
    }

    /// Asks for a way from one station to another; an open one is busy from now on.
    fn access(&mut self, now: Instant, from: u16, to: u16) -> Access {
        let side = *self.side(from);
        if side.is_granted && side.up_at.is_some_and(|up| up <= now) {
            self.side(from).is_granted = false;
            return Access::Open;
        }
        if side.peer == Some(to) {
            if side.up_at.is_some_and(|up| up > now) {
                return Access::Waits;
            }
            let is_kept = side.busy > 0
                || side
                    .idle_at
                    .is_some_and(|idle| now.since(idle) <= self.hold);
            if is_kept && !self.is_wanted(from, to) {
                self.side(from).busy += 1;
                self.side(to).busy += 1;
                return Access::Open;
            }
        }
        if side.asks.is_none() {
            self.side(from).asks = Some(to);
            self.asked.push_back((from, to));
        }
        Access::Waits
    }

    /// Whether another pair waits for one of the two.
    fn is_wanted(&self, a: u16, b: u16) -> bool {
        let touches =
            |&(from, to): &(u16, u16)| [from, to].iter().any(|end| *end == a || *end == b);
        self.asked.iter().any(touches)
    }

    /// A datagram is through.
    fn end(&mut self, now: Instant, a: u16, b: u16) {
        for port in [a, b] {
            let side = self.side(port);
            side.busy -= 1;
            side.idle_at = Some(now);
        }
    }

    /// The first request that can be granted; its stations are joined, and busy with the set-up.
    fn grant(&mut self, up_at: Instant) -> Option<(u16, u16)> {
        self.claimed.fill(false);
        let found = (0..self.asked.len()).find(|index| {
            let (a, b) = self.asked[*index];
            let ends = [usize::from(a), usize::from(b)];
            let is_free = |end: &usize| !self.claimed[*end] && self.sides[*end].busy == 0;
            if ends.iter().all(is_free) {
                return true;
            }
            ends.iter().for_each(|end| self.claimed[*end] = true);
            false
        })?;
        let (a, b) = self.asked.remove(found).expect("it was found");
        for (port, other) in [(a, b), (b, a)] {
            if let Some(old) = self.side(port).peer {
                self.side(old).peer = None;
            }
            let side = self.side(port);
            side.peer = Some(other);
            side.busy = 1;
            side.up_at = Some(up_at);
        }
        self.side(a).asks = None;
        self.side(a).is_granted = true;
        Some((a, b))
    }

    /// All connections are to be set up anew.
    pub fn expire(&mut self) {
        for side in &mut self.sides {
            if side.busy == 0 {
                side.peer = None;
            }
        }
    }
}

impl Net {
    /// Whether a datagram may go now; always, but in class 1.
    pub(super) fn connection_of(&mut self, now: Instant, from: u16, to: u16) -> Access {
        let Some(connections) = &mut self.connections else {
            return Access::Open;
        };
        let access = connections.access(now, from, to);
        if access == Access::Waits {
            self.grant(now);
        }
        access
    }

    /// Grants what can be granted, after datagrams have ended.
    pub(super) fn grant(&mut self, now: Instant) {
        let Some(connections) = &mut self.connections else {
            return;
        };
        for (from, to) in self.ended.drain(..) {
            connections.end(now, from, to);
        }
        let up_at = now + self.connect;
        while let Some((a, b)) = connections.grant(up_at) {
            self.calendar.insert(up_at, Step::Connected(a, b));
        }
    }

    pub(super) fn on_connected(&mut self, now: Instant, a: u16, b: u16, edge: &mut Edge) {
        self.feed(now, u32::from(a), edge);
        self.feed(now, u32::from(b), edge);
    }
}
