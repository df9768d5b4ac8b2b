//! The edge of a network: the books on what was taken, delivered and lost, and what it has to tell.
//!
//! Model:   a medium tells the edge what happens to copies at the time of its step; the edge counts it, turns it into events
//!          and knows when the last copy of a frame is gone. Copies may be held after the medium (path elements, faults)
//!          and are delivered in the order of their times.
//! Checked: `tests/properties.rs`.

use crate::calendar::Calendar;
use crate::network::{Cause, Change, Event, Mark, Place};
use crate::path::Path;
use crate::{Class, Counters, Frame, FrameId, NetworkSpec, Port};
use sonde_units::{Instant, Span};
use std::collections::{BTreeMap, VecDeque};

/// A copy on its last way to a station.
struct Arrival {
    frame: Frame,
    to: Port,
    mark: Mark,
}

/// The books of one network.
pub(crate) struct Edge {
    /// How many stations there are.
    pub ports: u16,
    /// What is counted.
    pub counters: Counters,
    events: VecDeque<Event>,
    /// Copies that are still inside, of frames with more than one.
    copies: BTreeMap<FrameId, u16>,
    path: Path,
    held: Calendar<Arrival>,
}

impl Edge {
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Self {
        Self {
            ports,
            counters: Counters::new(ports),
            events: VecDeque::new(),
            copies: BTreeMap::new(),
            path: Path::new(spec.path, seed),
            held: Calendar::new(),
        }
    }

    /// The next event to tell.
    pub fn tell(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether there is something to tell.
    pub fn is_told(&self) -> bool {
        self.events.is_empty()
    }

    /// When the next held copy arrives.
    pub fn next_at(&self) -> Option<Instant> {
        self.held.next_at()
    }

    /// Delivers the held copy that is due first.
    pub fn step(&mut self) {
        if let Some((at, arrival)) = self.held.pop() {
            self.settle(at, &arrival.frame, arrival.to, arrival.mark);
        }
    }

    /// How long the path elements delay a copy that passes them now; none if they lose it.
    pub fn pass(&mut self) -> Option<Span> {
        self.path.pass()
    }

    /// `frame` goes to so many stations; 0 ends it.
    pub fn copies(&mut self, frame: &Frame, copies: u16) {
        match copies {
            0 => self.events.push_back(Event::Done { id: frame.id }),
            1 => {}
            _ => drop(self.copies.insert(frame.id, copies)),
        }
    }

    /// The last bit of a copy comes out of a medium whose path elements are behind it.
    pub fn arrive(&mut self, at: Instant, frame: &Frame, to: Port) {
        match self.pass() {
            None => self.lose(at, frame, to, Place::Path, Cause::Random),
            Some(delay) if delay.is_zero() => self.deliver(at, frame, to),
            Some(delay) => self.hold(at + delay, frame, to),
        }
    }

    /// Delivers a copy later.
    pub fn hold(&mut self, at: Instant, frame: &Frame, to: Port) {
        let arrival = Arrival {
            frame: *frame,
            to,
            mark: Mark::Ok,
        };
        self.held.insert(at, arrival);
    }

    /// The last bit of a copy reaches a station.
    pub fn deliver(&mut self, at: Instant, frame: &Frame, to: Port) {
        self.settle(at, frame, to, Mark::Ok);
    }

    /// The same, with a mark.
    pub fn settle(&mut self, at: Instant, frame: &Frame, to: Port, mark: Mark) {
        let counters = self.counters.port(to);
        counters.delivered += 1;
        counters.delivered_bytes += frame.len;
        self.events.push_back(Event::Deliver {
            at,
            id: frame.id,
            to,
            mark,
        });
        self.finish(frame.id);
    }

    /// A copy is gone.
    pub fn lose(&mut self, at: Instant, frame: &Frame, to: Port, place: Place, cause: Cause) {
        *self
            .counters
            .lost
            .entry((place, cause, frame.from))
            .or_default() += 1;
        self.events.push_back(Event::Lost {
            at,
            id: frame.id,
            to,
            place,
            cause,
        });
        self.finish(frame.id);
    }

    /// A station that wanted no frames wants them again.
    pub fn ready(&mut self, at: Instant, port: Port) {
        self.events.push_back(Event::Ready {
            at,
            port,
            class: Class::default(),
        });
    }

    /// Something of the network's own changed.
    pub fn change(&mut self, at: Instant, change: Change) {
        self.events.push_back(Event::State { at, change });
    }

    fn finish(&mut self, id: FrameId) {
        if let Some(left) = self.copies.get_mut(&id) {
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.copies.remove(&id);
        }
        self.events.push_back(Event::Done { id });
    }
}
