//! LAN emulation: the broadcast server, and when a first frame goes by it.
//!
//! Model:   a frame to a station without a data-direct circuit goes to the broadcast server (BUS), at most `unknown_rate`
//!          a second for one destination and none past a frame that waits; the address is asked for (LE_ARP) and the circuit
//!          signalled at the same time, and the other frames wait for it. The circuit carries frames once those that
//!          went by the server have been sent on (flush protocol), and none goes by the server while others wait for the rate
//!          of a circuit that was released, so that none overtakes. Frames to all go by the server.
//! Source:  ATM Forum LANE 1.0 (af-lane-0021) §2.4, §4.4, §4.5.4, C-10 (maximum unknown frame count). Deviations: an unknown frame is sent to
//!          its destination only, not to all who would ignore it; joining is over before the network starts.
//! Checked: `tests/atm/lane.rs`.

use super::pdu::lose;
use super::spec::Lane;
use super::{Atm, Carrier, Step};
use crate::circuit::Pair;
use crate::edge::Edge;
use crate::network::{Cause, Place};
use crate::{Frame, Port, Signalling, To};
use sonde_units::{Instant, Span};
use std::collections::BTreeMap;

/// What the stations know of the servers.
pub(crate) struct Emulation {
    lane: Lane,
    ports: u16,
    /// When the next unknown frame may go, by sender and destination.
    next: Vec<Instant>,
    /// Frames of a pair that are on their way by the server.
    by_server: BTreeMap<Pair, u32>,
}

impl Emulation {
    pub fn new(lane: Lane, ports: u16) -> Self {
        Self {
            lane,
            ports,
            next: vec![Instant::START; usize::from(ports) * usize::from(ports)],
            by_server: BTreeMap::new(),
        }
    }

    /// Whether one more unknown frame may go now; counted if so.
    fn lets(&mut self, now: Instant, from: Port, to: Port) -> bool {
        let index = usize::from(from.0) * usize::from(self.ports) + usize::from(to.0);
        let lets = self.next[index] <= now;
        if lets {
            let gap = Span::secs(1).as_picos().div_ceil(self.lane.unknown_rate);
            self.next[index] = now + Span::picos(gap);
        }
        lets
    }

    /// A frame of `pair` came out of the server, or was lost; whether it was the last.
    fn ends(&mut self, pair: Pair) {
        if let Some(left) = self.by_server.get_mut(&pair) {
            *left -= 1;
            if *left == 0 {
                self.by_server.remove(&pair);
            }
        }
    }
}

fn other(frame: &Frame) -> Option<Port> {
    match frame.to {
        To::One(to) => Some(to),
        _ => None,
    }
}

impl Atm {
    /// Whether a frame goes by the broadcast server, now that it was asked; counted if so.
    pub(super) fn goes_by_server(
        &mut self,
        now: Instant,
        frame: &Frame,
        pair: Pair,
        to: Port,
    ) -> bool {
        let is_permanent = self.circuits.spec().signalling == Signalling::Pvc;
        if is_permanent || self.circuits.is_open(now, pair) || self.circuits.has_waiting(pair) {
            return false;
        }
        if let Carrier::Cells(cells) = &self.carrier
            && cells.has_queued(frame.from, to)
        {
            return false;
        }
        let Some(emulation) = &mut self.emulation else {
            return false;
        };
        let goes = emulation.lets(now, frame.from, to);
        if goes {
            *emulation.by_server.entry(pair).or_default() += 1;
        }
        goes
    }

    /// How long the servers take for a frame.
    pub(super) fn service_time(&self) -> Span {
        self.emulation.as_ref().map_or_else(
            || self.circuits.spec().resolution_delay,
            |emulation| emulation.lane.bus_delay,
        )
    }

    /// The broadcast server sends a frame on: to its destination, or to all but the sender.
    pub(super) fn flood(&mut self, now: Instant, frame: Frame, edge: &mut Edge) {
        if let Some(to) = other(&frame) {
            self.inject(now, frame, to, edge);
            return self.end_service(now, &frame, to);
        }
        for to in edge.others(&frame) {
            self.inject(now, frame, to, edge);
        }
    }

    /// A frame did not reach the servers.
    pub(super) fn lose_served(
        &mut self,
        now: Instant,
        frame: &Frame,
        why: (Place, Cause),
        edge: &mut Edge,
    ) {
        if self.emulation.is_none() {
            return lose(now, frame, frame.from, why, edge);
        }
        if let Some(to) = other(frame) {
            lose(now, frame, to, why, edge);
            return self.end_service(now, frame, to);
        }
        for to in edge.others(frame) {
            lose(now, frame, to, why, edge);
        }
    }

    /// A frame is past the server: a circuit that waited for that is up.
    fn end_service(&mut self, now: Instant, frame: &Frame, to: Port) {
        let pair = Pair::new(frame.from, to);
        if let Some(emulation) = &mut self.emulation {
            emulation.ends(pair);
            if !emulation.by_server.contains_key(&pair) && self.circuits.is_late(now, pair) {
                self.circuits.postpone(now, pair);
                self.calendar.insert(now, Step::CircuitUp(pair));
            }
        }
    }

    /// Whether a circuit that is set up has to wait for frames that go by the server.
    pub(super) fn is_flushed_later(&self, at: Instant, pair: Pair) -> bool {
        self.emulation
            .as_ref()
            .is_some_and(|emulation| emulation.by_server.contains_key(&pair))
            && self.circuits.ends_at(at, pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_frames_are_limited_by_destination() {
        let lane = Lane {
            unknown_rate: 2,
            ..Lane::default()
        };
        let mut emulation = Emulation::new(lane, 3);
        let at = |ms| Instant::START + Span::millis(ms);
        let mut lets = |ms, from, to| emulation.lets(at(ms), Port(from), Port(to));
        assert!(lets(0, 0, 1) && lets(0, 0, 2) && lets(0, 1, 0));
        assert!(!lets(499, 0, 1));
        assert!(lets(500, 0, 1) && !lets(999, 0, 1) && lets(1_000, 0, 1));
    }
}
