//! Virtual circuits: a table a station, set up by hand (PVC) or by signalling at first use (SVC).
//!
//! Model:   absent -> signalling -> up -> absent. A circuit joins two stations and carries both directions. An SVC is
//!          signalled by the first frame, which waits with those behind it; it is released after `idle_release` without a
//!          frame, or when the address entry behind it is older than `resolution_lifetime`; a station whose table is full
//!          gives up the circuit that was used longest ago. Releases are found out at the next use, so that an idle network
//!          has no events. A PVC is up from the start and never ages.
//! Source:  RFC 2225 §8 (address resolution and circuit ageing), RFC 1755 §3.4 (idle release), ITU-T Q.2931.
//!          Deviations: set-up takes one configured time, end to end; call rates of switches are not modelled.
//! Checked: `idle_aged_and_evicted_circuits_are_set_up_again`; `tests/circuits.rs`.

use crate::{Circuits, Frame, Port, Signalling};
use sonde_units::{Instant, Span};
use std::collections::BTreeMap;

/// Two ports, the smaller first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair(Port, Port);

impl Pair {
    pub fn new(a: Port, b: Port) -> Self {
        Self(a.min(b), a.max(b))
    }
    pub fn ends(self) -> (Port, Port) {
        (self.0, self.1)
    }
    fn touches(self, port: Port) -> bool {
        self.0 == port || self.1 == port
    }
}

enum State {
    Signalling { waiting: Vec<Frame> },
    Up,
}

struct Circuit {
    state: State,
    used_at: Instant,
    set_up_at: Instant,
}

/// What a frame finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It may go.
    Open,
    /// It waits; set-up was begun earlier.
    Waits,
    /// It waits; set-up begins now and ends at this time.
    Begins(Instant),
    /// There is no circuit, and none can be had.
    Refused,
}

/// All circuits of a network.
pub(crate) struct CircuitTable {
    spec: Circuits,
    circuits: BTreeMap<Pair, Circuit>,
}

impl CircuitTable {
    /// With PVCs all pairs are up at the start.
    pub fn new(spec: Circuits, ports: u16) -> Self {
        let mut table = Self {
            spec,
            circuits: BTreeMap::new(),
        };
        if spec.signalling == Signalling::Pvc {
            for a in 0..ports {
                for b in a + 1..ports {
                    table.raise(Instant::START, Pair::new(Port(a), Port(b)));
                }
            }
        }
        table
    }

    /// How long setting up takes.
    pub fn setup(&self) -> Span {
        self.spec.setup
    }

    /// What `frame` between `pair` finds at `now`. It is kept if it has to wait. Circuits given up on the way are told to
    /// `released`.
    pub fn access(
        &mut self,
        now: Instant,
        pair: Pair,
        frame: Frame,
        mut released: impl FnMut(Pair),
    ) -> Access {
        if self.is_stale(now, pair) {
            self.circuits.remove(&pair);
            released(pair);
        }
        if let Some(circuit) = self.circuits.get_mut(&pair) {
            circuit.used_at = now;
            return match &mut circuit.state {
                State::Up => Access::Open,
                State::Signalling { waiting } => {
                    waiting.push(frame);
                    Access::Waits
                }
            };
        }
        if self.spec.signalling == Signalling::Pvc || !self.make_room(pair, &mut released) {
            return Access::Refused;
        }
        let state = State::Signalling {
            waiting: vec![frame],
        };
        self.circuits.insert(
            pair,
            Circuit {
                state,
                used_at: now,
                set_up_at: now,
            },
        );
        Access::Begins(now + self.spec.setup)
    }

    /// The circuit is up at `now`; the frames that waited, in their order. None if it was released meanwhile.
    pub fn up(&mut self, now: Instant, pair: Pair) -> Option<Vec<Frame>> {
        let circuit = self.circuits.get_mut(&pair)?;
        let State::Signalling { waiting } = &mut circuit.state else {
            return None;
        };
        let waiting = std::mem::take(waiting);
        (circuit.state, circuit.set_up_at, circuit.used_at) = (State::Up, now, now);
        Some(waiting)
    }

    /// Makes a circuit that is up.
    pub fn raise(&mut self, now: Instant, pair: Pair) {
        self.circuits.insert(
            pair,
            Circuit {
                state: State::Up,
                used_at: now,
                set_up_at: now,
            },
        );
    }

    /// Begins to set up a circuit that nobody waits for; when it will be up. None where there is one.
    pub fn signal(&mut self, now: Instant, pair: Pair) -> Option<Instant> {
        if self.circuits.contains_key(&pair) {
            return None;
        }
        self.circuits.insert(
            pair,
            Circuit {
                state: State::Signalling {
                    waiting: Vec::new(),
                },
                used_at: now,
                set_up_at: now,
            },
        );
        Some(now + self.spec.setup)
    }

    /// Takes a circuit down; the frames that waited for it. None where there is none.
    pub fn release(&mut self, pair: Pair) -> Option<Vec<Frame>> {
        self.circuits
            .remove(&pair)
            .map(|circuit| match circuit.state {
                State::Signalling { waiting } => waiting,
                State::Up => Vec::new(),
            })
    }

    /// Whether circuits are set up by hand.
    pub fn is_permanent(&self) -> bool {
        self.spec.signalling == Signalling::Pvc
    }

    fn is_stale(&self, now: Instant, pair: Pair) -> bool {
        let aged = |circuit: &Circuit| {
            matches!(circuit.state, State::Up)
                && (now.since(circuit.used_at) > self.spec.idle_release
                    || now.since(circuit.set_up_at) > self.spec.resolution_lifetime)
        };
        self.spec.signalling == Signalling::Svc && self.circuits.get(&pair).is_some_and(aged)
    }

    /// Frees an entry at both ends of `pair`; false where all of an end's circuits are being set up.
    fn make_room(&mut self, pair: Pair, released: &mut impl FnMut(Pair)) -> bool {
        let (a, b) = pair.ends();
        for port in [a, b] {
            let at_port = || self.circuits.iter().filter(|(key, _)| key.touches(port));
            if (at_port().count() as u64) < self.spec.table {
                continue;
            }
            let up = at_port().filter(|(_, circuit)| matches!(circuit.state, State::Up));
            let Some(oldest) = up
                .min_by_key(|(key, circuit)| (circuit.used_at, **key))
                .map(|(key, _)| *key)
            else {
                return false;
            };
            self.circuits.remove(&oldest);
            released(oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Ecn, FrameId, Kind, To};
    use sonde_units::Bytes;

    fn frame() -> Frame {
        let (from, to) = (Port(0), To::One(Port(1)));
        Frame {
            id: FrameId(1),
            from,
            to,
            len: Bytes(40),
            kind: Kind::Ip,
            class: Class(0),
            ecn: Ecn::NotCapable,
            flow: 0,
        }
    }

    fn table(entries: u64) -> CircuitTable {
        let spec = Circuits {
            signalling: Signalling::Svc,
            setup: Span::millis(20),
            idle_release: Span::secs(10),
            table: entries,
            resolution_delay: Span::ZERO,
            resolution_lifetime: Span::secs(15),
        };
        CircuitTable::new(spec, 4)
    }

    #[test]
    fn idle_aged_and_evicted_circuits_are_set_up_again() {
        let mut table = table(2);
        let at = |seconds| Instant::START + Span::secs(seconds);
        let pair = |b| Pair::new(Port(0), Port(b));
        let mut gone = Vec::new();
        let mut open =
            |table: &mut CircuitTable, now, pair| match table
                .access(now, pair, frame(), |pair| gone.push(pair))
            {
                Access::Begins(up) => {
                    assert_eq!(up, now + Span::millis(20));
                    assert_eq!(
                        table.access(now, pair, frame(), |_| unreachable!()),
                        Access::Waits
                    );
                    assert_eq!(table.up(now, pair).map(|waiting| waiting.len()), Some(2));
                    true
                }
                access => {
                    assert_eq!(access, Access::Open);
                    false
                }
            };
        assert!(open(&mut table, at(0), pair(1)));
        assert!(!open(&mut table, at(9), pair(1)));
        // Used within ten seconds, but its address entry is older than fifteen.
        assert!(open(&mut table, at(16), pair(1)));
        // Idle for longer than ten.
        assert!(open(&mut table, at(27), pair(1)));
        // The table holds two: the third takes the place of the one used longest ago.
        assert!(open(&mut table, at(28), pair(2)));
        assert!(!open(&mut table, at(29), pair(1)));
        assert!(open(&mut table, at(30), pair(3)));
        assert!(!open(&mut table, at(30), pair(1)));
        assert!(open(&mut table, at(31), pair(2)));
        assert_eq!(gone, [pair(1), pair(1), pair(2), pair(3)]);
    }
}
