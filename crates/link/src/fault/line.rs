//! What the line of one station suffers: frames too long for it, a direction that is slow, directions that collide.
//!
//! Model:   a copy that reaches a station is lost when it is longer than the line carries, and nobody is told. A slow
//!          direction serialises copies once more at its rate, in their order, behind a queue of the station's room; what
//!          does not fit is lost. Collisions, as of a line whose two ends do not agree on its duplex: a copy is lost with the
//!          share times the use of the other direction, the bits that it carried in the last one to two milliseconds over
//!          those that the line could have.
//! Source:  the symptoms of a duplex mismatch in Shalunov and Carlson, PAM 2005 (few losses while one direction is quiet, a
//!          collapse while both are busy). Deviations: no late collision is timed; background frames do not count.
//! Units:   picoseconds, layer-3 bytes; shares of 64-bit draws.
//! Checked: `long_frames_vanish`, `a_slow_direction_has_its_rate`, `only_two_busy_directions_collide` in `tests/faults.rs`.

use crate::network::{Cause, Place};
use crate::{Fault, Frame, Port};
use rand_core::Rng;
use sonde_units::{BitRate, Bytes, Instant, Ratio, Span};
use std::collections::BTreeMap;

/// How long bits are counted together.
const SLOT: Span = Span::millis(1);

/// What one direction of a line carried of late.
#[derive(Clone, Copy, Default)]
struct Carried {
    slot: u64,
    now: Bytes,
    before: Bytes,
}

impl Carried {
    fn turn(&mut self, at: Instant) {
        let slot = at.as_picos() / SLOT.as_picos();
        if slot != self.slot {
            self.before = if slot == self.slot + 1 {
                self.now
            } else {
                Bytes::ZERO
            };
            (self.now, self.slot) = (Bytes::ZERO, slot);
        }
    }

    fn add(&mut self, at: Instant, bytes: Bytes) {
        self.turn(at);
        self.now += bytes;
    }

    /// The share of the line that it used.
    fn used(&mut self, at: Instant, line: Option<BitRate>) -> Ratio {
        self.turn(at);
        let Some(line) = line else {
            return Ratio::ZERO;
        };
        let taken = line.time(self.now + self.before).as_picos();
        let span = SLOT.as_picos() + at.as_picos() % SLOT.as_picos();
        Ratio::new(taken.min(span), span)
    }
}

#[derive(Clone)]
struct Line {
    longest: Option<Bytes>,
    collision: Ratio,
    /// To the station, and from it.
    to: Carried,
    from: Carried,
}

impl Line {
    fn new() -> Self {
        Self {
            longest: None,
            collision: Ratio::ZERO,
            to: Carried::default(),
            from: Carried::default(),
        }
    }
}

/// A direction with a rate of its own.
#[derive(Clone, Copy)]
struct Slow {
    rate: BitRate,
    free_at: Instant,
}

/// The lines of all stations.
pub(super) struct Lines {
    lines: Vec<Line>,
    slow: BTreeMap<(Option<Port>, Port), Slow>,
    /// Of the specification; a network without one is never full.
    rate: Option<BitRate>,
    room: Bytes,
    collides: bool,
}

impl Lines {
    pub fn new(ports: u16, rate: Option<BitRate>, room: Bytes) -> Self {
        Self {
            lines: vec![Line::new(); usize::from(ports)],
            slow: BTreeMap::new(),
            rate,
            room,
            collides: false,
        }
    }

    fn each(&mut self, port: Option<Port>, mut set: impl FnMut(&mut Line)) {
        match port {
            Some(port) => set(&mut self.lines[usize::from(port.0)]),
            None => self.lines.iter_mut().for_each(set),
        }
    }

    /// Sets a fault, if it is one of these.
    pub fn set(&mut self, now: Instant, fault: &Fault) {
        match *fault {
            Fault::Narrow { port, longest } => self.each(port, |line| line.longest = longest),
            Fault::Collision { port, share } => {
                self.each(port, |line| line.collision = share);
                self.collides = self.lines.iter().any(|line| !line.collision.is_zero());
            }
            Fault::Slow {
                from,
                to,
                rate: Some(rate),
            } => {
                let free_at = self.slow.get(&(from, to)).map_or(now, |slow| slow.free_at);
                self.slow.insert((from, to), Slow { rate, free_at });
            }
            Fault::Slow {
                from,
                to,
                rate: None,
            } => drop(self.slow.remove(&(from, to))),
            _ => {}
        }
    }

    /// How much later a copy arrives, or why it is lost.
    pub fn judge(
        &mut self,
        at: Instant,
        frame: &Frame,
        to: Port,
        random: &mut impl Rng,
    ) -> Result<Span, (Place, Cause)> {
        let longest = self.lines[usize::from(to.0)].longest;
        if longest.is_some_and(|longest| frame.len > longest) {
            return Err((Place::Path, Cause::TooLong));
        }
        if self.collides {
            let hit = self.collided(at, frame, to, random);
            self.carry(at, frame, to);
            if hit {
                return Err((Place::Path, Cause::Collisions));
            }
        }
        let mut late = Span::ZERO;
        if !self.slow.is_empty() {
            for key in [(Some(frame.from), to), (None, to)] {
                let Some(slow) = self.slow.get_mut(&key) else {
                    continue;
                };
                let begin = slow.free_at.max(at + late);
                if begin.since(at + late) > slow.rate.time(self.room) {
                    return Err((Place::Path, Cause::Overflow));
                }
                slow.free_at = begin + slow.rate.time(frame.len);
                late = slow.free_at.since(at);
            }
        }
        Ok(late)
    }

    fn collided(&mut self, at: Instant, frame: &Frame, to: Port, random: &mut impl Rng) -> bool {
        let rate = self.rate;
        let mut hit = |share: Ratio, other: &mut Carried| {
            !share.is_zero()
                && share.hit(random.next_u64())
                && other.used(at, rate).hit(random.next_u64())
        };
        let line = &mut self.lines[usize::from(to.0)];
        if hit(line.collision, &mut line.from) {
            return true;
        }
        self.lines
            .get_mut(usize::from(frame.from.0))
            .is_some_and(|line| hit(line.collision, &mut line.to))
    }

    fn carry(&mut self, at: Instant, frame: &Frame, to: Port) {
        self.lines[usize::from(to.0)].to.add(at, frame.len);
        if let Some(line) = self.lines.get_mut(usize::from(frame.from.0)) {
            line.from.add(at, frame.len);
        }
    }
}
