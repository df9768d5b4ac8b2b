//! Permanent circuits, and the connection manager that sets them up.
//!
//! Model:   the circuits that are configured (named, a mesh, or a star around station 0) are up at the start, or come up one
//!          after the other, `boot` apart, and none before both of its hosts have booted. When the manager is reached again after its contact was lost it clears all of them;
//!          restored automatically they come back one after the other, `restore` apart, in the order of their stations,
//!          else by hand. While it cannot be reached none can be set up by hand.
//! Source:  Sandia 1996 (loss of all PVCs when contact with the connection manager was regained; restoration by hand, wished
//!          for automatically). Deviations: none.
//! Checked: `tests/atm/circuits.rs`.

use super::spec::{PvcLayout, Restoration};
use super::{Atm, Step};
use crate::circuit::Pair;
use crate::edge::Edge;
use crate::network::{Cause, Change, Refused};
use crate::{Circuits, NetworkSpec, Port, Signalling};
use sonde_units::{Instant, Span};
use std::collections::{BTreeMap, BTreeSet};

/// The circuits that the manager knows.
pub(crate) struct Permanent {
    pairs: Vec<Pair>,
    is_reached: bool,
    /// The round of restoration; circuits of an earlier one do not come up.
    round: u64,
    began_at: Instant,
    /// Stations whose circuits come up later, and when.
    boots: BTreeMap<Port, Span>,
}

impl Permanent {
    pub fn new(spec: &NetworkSpec, circuits: Circuits, ports: u16) -> Self {
        Self {
            pairs: configured(spec, circuits, ports),
            is_reached: true,
            round: 0,
            began_at: Instant::START,
            boots: spec
                .port
                .iter()
                .filter_map(|one| Some((Port(one.port), one.boot?)))
                .collect(),
        }
    }

    /// When both hosts of a circuit have booted, after the start.
    fn booted(&self, pair: Pair) -> Span {
        let (a, b) = pair.ends();
        let own = [a, b].map(|end| self.boots.get(&end).copied().unwrap_or_default());
        own[0].max(own[1])
    }
}

/// The pairs that have a permanent circuit, in order.
fn configured(spec: &NetworkSpec, circuits: Circuits, ports: u16) -> Vec<Pair> {
    if circuits.signalling == Signalling::Svc {
        return Vec::new();
    }
    let pair = |a, b| Pair::new(Port(a), Port(b));
    let pairs: BTreeSet<Pair> = if !spec.pvc.is_empty() {
        let named = spec.pvc.iter();
        named
            .map(|pvc| pair(pvc.between[0], pvc.between[1]))
            .collect()
    } else if circuits.layout == PvcLayout::Star {
        (1..ports).map(|b| pair(0, b)).collect()
    } else {
        let each = (0..ports).flat_map(|a| (a + 1..ports).map(move |b| (a, b)));
        each.map(|(a, b)| pair(a, b)).collect()
    };
    pairs.into_iter().collect()
}

/// The most permanent circuits that one station has.
pub(super) fn most_at_a_port(spec: &NetworkSpec, circuits: Circuits, ports: u16) -> u64 {
    let mut at = vec![0; usize::from(ports)];
    for pair in configured(spec, circuits, ports) {
        let (a, b) = pair.ends();
        at[usize::from(a.0)] += 1;
        at[usize::from(b.0)] += 1;
    }
    at.into_iter().max().unwrap_or(0)
}

impl Atm {
    /// Sets up the permanent circuits at the start.
    pub(super) fn boot(&mut self) {
        let apart = self.circuits.spec().boot;
        for (place, pair) in (1..).zip(&self.permanent.pairs) {
            let after = (apart * place).max(self.permanent.booted(*pair));
            if after.is_zero() {
                self.circuits.raise(Instant::START, *pair);
            } else {
                let step = Step::Restore(*pair, self.permanent.round);
                self.calendar.insert(Instant::START + after, step);
            }
        }
    }

    fn restore_all(&mut self, now: Instant, apart: Span) {
        let round = self.permanent.round;
        self.permanent.began_at = now;
        for (place, pair) in (1..).zip(&self.permanent.pairs) {
            self.calendar
                .insert(now + apart * place, Step::Restore(*pair, round));
        }
    }

    /// The manager sets up one circuit.
    pub(super) fn restore(&mut self, at: Instant, pair: Pair, round: u64, edge: &mut Edge) {
        if round != self.permanent.round || self.circuits.exists(pair) {
            return;
        }
        self.circuits.raise(at, pair);
        let (a, b) = pair.ends();
        let took = at.since(self.permanent.began_at);
        edge.change(at, Change::CircuitUp(a, b, took));
    }

    /// Sets up a permanent circuit by hand, at once.
    pub(super) fn configure(&mut self, now: Instant, pair: Pair) -> Result<(), Refused> {
        if !self.permanent.is_reached {
            return Err(Refused::NotHere {
                what: "connection manager that can be reached",
                remedy: "set the circuit up when the contact is regained",
            });
        }
        if !self.circuits.exists(pair) {
            self.circuits.raise(now, pair);
        }
        Ok(())
    }

    /// Contact with the connection manager is lost, or regained.
    pub(super) fn manager(
        &mut self,
        now: Instant,
        up: bool,
        edge: &mut Edge,
    ) -> Result<(), Refused> {
        if !self.circuits.is_permanent() {
            return Err(Refused::NotHere {
                what: "connection manager, for its circuits are switched",
                remedy: "choose `vc=pvc`",
            });
        }
        if up == self.permanent.is_reached {
            return Ok(());
        }
        self.permanent.is_reached = up;
        self.permanent.round += 1;
        if !up {
            return Ok(());
        }
        for pair in self.circuits.pairs() {
            self.release(now, pair, Cause::NoCircuit, edge);
        }
        let Circuits {
            restoration,
            restore,
            ..
        } = *self.circuits.spec();
        if restoration == Restoration::Automatic {
            self.restore_all(now, restore);
        }
        Ok(())
    }
}
