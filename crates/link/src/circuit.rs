//! Virtual circuits: a table a station, set up by hand (PVC) or by signalling at first use (SVC).
//!
//! Model:   absent -> signalling -> up -> absent. A circuit joins two stations and carries both directions. An SVC is
//!          signalled by the first frame, which waits with those behind it; it is released after `idle_release` without a
//!          frame, or when the address entry behind it is older than `resolution_lifetime`; a station whose table is full
//!          gives up the circuit that was used longest ago. A circuit released while it is signalled never comes up; the
//!          next set-up begins anew. Releases are found out at the next use, so that an idle network
//!          has no events. A PVC is up from the start, or comes up in its turn, and never ages. The first frame on a circuit
//!          waits for the logical link too; one after a long silence for the bandwidth, where the circuit gave it back.
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
    /// It will be up at `up_at`; a call that ends at another time was given up before. `is_call`: it is signalled, and
    /// not only its logical link or its bandwidth awaited.
    Signalling {
        up_at: Instant,
        began_at: Instant,
        is_call: bool,
        waiting: Vec<Frame>,
    },
    Up,
}

struct Circuit {
    state: State,
    /// Nothing was sent on it yet.
    is_fresh: bool,
    used_at: Instant,
    set_up_at: Instant,
}

/// A circuit that is up now.
pub(crate) struct Up {
    /// The frames that waited for it.
    pub waiting: Vec<Frame>,
    /// For how long.
    pub took: Span,
    /// Whether it was signalled.
    pub is_call: bool,
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
    /// What a call takes beside set-up, and when calls are taken again.
    before_setup: Span,
    calls_from: Instant,
}

impl CircuitTable {
    /// No circuit is there yet. Each call takes `before_setup` more than its set-up.
    pub fn new(spec: Circuits, before_setup: Span) -> Self {
        Self {
            spec,
            circuits: BTreeMap::new(),
            before_setup,
            calls_from: Instant::START,
        }
    }

    /// Calls that begin earlier begin at this time: the switch restarts.
    pub fn take_calls_from(&mut self, at: Instant) {
        self.calls_from = at;
    }

    /// Whether a frame between `pair` would find a circuit that is up.
    pub fn is_open(&self, now: Instant, pair: Pair) -> bool {
        self.circuits.get(&pair).is_some_and(|circuit| {
            matches!(circuit.state, State::Up) && !self.spec.is_stale(now, circuit)
        })
    }

    /// Whether there is a circuit between `pair`, up or not.
    pub fn exists(&self, pair: Pair) -> bool {
        self.circuits.contains_key(&pair)
    }

    /// Whether a call that should have ended is not over.
    pub fn is_late(&self, now: Instant, pair: Pair) -> bool {
        let circuit = self.circuits.get(&pair);
        circuit.is_some_and(
            |circuit| matches!(circuit.state, State::Signalling { up_at, .. } if up_at <= now),
        )
    }

    /// Whether frames wait for the circuit of `pair`.
    pub fn has_waiting(&self, pair: Pair) -> bool {
        let circuit = self.circuits.get(&pair);
        circuit.is_some_and(|circuit| match &circuit.state {
            State::Signalling { waiting, .. } => !waiting.is_empty(),
            State::Up => false,
        })
    }

    /// Puts the end of a call off until `now`.
    pub fn postpone(&mut self, now: Instant, pair: Pair) {
        if let Some(State::Signalling { up_at, .. }) = self
            .circuits
            .get_mut(&pair)
            .map(|circuit| &mut circuit.state)
        {
            *up_at = now;
        }
    }

    /// Whether the call that was to end at `now` is still made.
    pub fn ends_at(&self, now: Instant, pair: Pair) -> bool {
        let circuit = self.circuits.get(&pair);
        circuit.is_some_and(
            |circuit| matches!(circuit.state, State::Signalling { up_at, .. } if up_at == now),
        )
    }

    /// All pairs that have a circuit, up or not.
    pub fn pairs(&self) -> Vec<Pair> {
        self.circuits.keys().copied().collect()
    }

    /// Its figures.
    pub fn spec(&self) -> &Circuits {
        &self.spec
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
        if let Some(circuit) = self.circuits.get_mut(&pair) {
            let is_stale = self.spec.is_stale(now, circuit);
            let wait = self.spec.first_wait(now, circuit);
            circuit.used_at = now;
            circuit.is_fresh = false;
            match &mut circuit.state {
                State::Signalling { waiting, .. } => {
                    waiting.push(frame);
                    return Access::Waits;
                }
                State::Up if is_stale => {}
                State::Up if !wait.is_zero() => {
                    let up_at = now + wait;
                    circuit.state = State::Signalling {
                        up_at,
                        began_at: now,
                        is_call: false,
                        waiting: vec![frame],
                    };
                    return Access::Begins(up_at);
                }
                State::Up => return Access::Open,
            }
            self.circuits.remove(&pair);
            released(pair);
        }
        if self.spec.signalling == Signalling::Pvc || self.make_room(pair, &mut released).is_err() {
            return Access::Refused;
        }
        Access::Begins(self.call(now, pair, vec![frame]))
    }

    /// Begins to signal; when the circuit will be up.
    fn call(&mut self, now: Instant, pair: Pair, waiting: Vec<Frame>) -> Instant {
        let took = self.before_setup + self.spec.setup + self.spec.llc_setup;
        let up_at = now.max(self.calls_from) + took;
        let circuit = Circuit {
            state: State::Signalling {
                up_at,
                began_at: now,
                is_call: true,
                waiting,
            },
            is_fresh: false,
            used_at: now,
            set_up_at: now,
        };
        self.circuits.insert(pair, circuit);
        up_at
    }

    /// The circuit is up at `now`; the frames that waited, in their order. None if the call that ends now was
    /// given up.
    pub fn up(&mut self, now: Instant, pair: Pair) -> Option<Up> {
        let circuit = self.circuits.get_mut(&pair)?;
        let State::Signalling {
            up_at,
            began_at,
            is_call,
            waiting,
        } = &mut circuit.state
        else {
            return None;
        };
        if *up_at != now {
            return None;
        }
        let up = Up {
            waiting: std::mem::take(waiting),
            took: now.since(*began_at),
            is_call: *is_call,
        };
        if up.is_call {
            circuit.set_up_at = now;
        }
        (circuit.state, circuit.used_at) = (State::Up, now);
        Some(up)
    }

    /// Makes a circuit that is up.
    pub fn raise(&mut self, now: Instant, pair: Pair) {
        self.circuits.insert(
            pair,
            Circuit {
                state: State::Up,
                is_fresh: true,
                used_at: now,
                set_up_at: now,
            },
        );
    }

    /// Begins to set up a circuit that nobody waits for; when it will be up. None where there is one.
    ///
    /// # Errors
    /// The port all of whose circuits are being set up.
    pub fn signal(
        &mut self,
        now: Instant,
        pair: Pair,
        mut released: impl FnMut(Pair),
    ) -> Result<Option<Instant>, Port> {
        if let Some(circuit) = self.circuits.get(&pair) {
            if !self.spec.is_stale(now, circuit) {
                return Ok(None);
            }
            self.circuits.remove(&pair);
            released(pair);
        }
        self.make_room(pair, &mut released)?;
        Ok(Some(self.call(now, pair, Vec::new())))
    }

    /// Takes a circuit down; the frames that waited for it. None where there is none.
    pub fn release(&mut self, pair: Pair) -> Option<Vec<Frame>> {
        self.circuits
            .remove(&pair)
            .map(|circuit| match circuit.state {
                State::Signalling { waiting, .. } => waiting,
                State::Up => Vec::new(),
            })
    }

    /// Whether circuits are set up by hand.
    pub fn is_permanent(&self) -> bool {
        self.spec.signalling == Signalling::Pvc
    }

    /// Frees an entry at both ends of `pair`, or none at all.
    ///
    /// # Errors
    /// The port all of whose circuits are being set up.
    fn make_room(&mut self, pair: Pair, released: &mut impl FnMut(Pair)) -> Result<(), Port> {
        let (a, b) = pair.ends();
        let gone = [self.given_up(a)?, self.given_up(b)?];
        for pair in gone.into_iter().flatten() {
            self.circuits.remove(&pair);
            released(pair);
        }
        Ok(())
    }

    /// The circuit that `port` gives up for another: none while it has room.
    fn given_up(&self, port: Port) -> Result<Option<Pair>, Port> {
        let at_port = || self.circuits.iter().filter(|(key, _)| key.touches(port));
        if (at_port().count() as u64) < self.spec.table {
            return Ok(None);
        }
        let up = at_port().filter(|(_, circuit)| matches!(circuit.state, State::Up));
        let oldest = up.min_by_key(|(key, circuit)| (circuit.used_at, **key));
        oldest.map(|(key, _)| Some(*key)).ok_or(port)
    }
}

impl Circuits {
    /// How long a frame waits for the logical link of a new circuit, or for the bandwidth of one that was idle.
    fn first_wait(&self, now: Instant, circuit: &Circuit) -> Span {
        if circuit.is_fresh {
            return self.llc_setup;
        }
        if now.since(circuit.used_at) > self.reallocate_after {
            return self.reallocation;
        }
        Span::ZERO
    }

    /// Whether a circuit was idle for too long, or the address entry behind it is too old.
    fn is_stale(&self, now: Instant, circuit: &Circuit) -> bool {
        self.signalling == Signalling::Svc
            && matches!(circuit.state, State::Up)
            && (now.since(circuit.used_at) > self.idle_release
                || now.since(circuit.set_up_at) > self.resolution_lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Ecn, FrameId, Kind, PvcLayout, Restoration, To};
    use sonde_units::{Bytes, Span};

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
            layout: PvcLayout::Mesh,
            llc_setup: Span::ZERO,
            reallocation: Span::ZERO,
            reallocate_after: Span::ZERO,
            boot: Span::ZERO,
            restoration: Restoration::Manual,
            restore: Span::ZERO,
        };
        CircuitTable::new(spec, Span::ZERO)
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
                    assert_eq!(table.up(up, pair).map(|up| up.waiting.len()), Some(2));
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
        assert!(!open(&mut table, at(31), pair(1)));
        assert!(open(&mut table, at(32), pair(2)));
        assert_eq!(gone, [pair(1), pair(1), pair(2), pair(3)]);
    }

    #[test]
    fn bandwidth_that_is_had_again_makes_no_entry_younger() {
        let mut table = table(2);
        table.spec.reallocation = Span::millis(2);
        table.spec.reallocate_after = Span::secs(1);
        let pair = Pair::new(Port(0), Port(1));
        let mut waits = |seconds| {
            let now = Instant::START + Span::secs(seconds);
            match table.access(now, pair, frame(), |_| {}) {
                Access::Begins(up) => table.up(up, pair).map(|up| up.took),
                access => panic!("{access:?}"),
            }
        };
        assert_eq!(waits(0), Some(Span::millis(20)));
        assert_eq!(waits(9), Some(Span::millis(2)));
        // Its address entry is older than fifteen seconds, however young its bandwidth.
        assert_eq!(waits(16), Some(Span::millis(20)));
    }
}
