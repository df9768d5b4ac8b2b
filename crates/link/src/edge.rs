//! The edge of a network: the books on what was taken, delivered and lost, and what it has to tell.
//!
//! Model:   a medium tells the edge what happens to copies at the time of its step; the edge counts it, turns it into events
//!          and knows when the last copy of a frame is gone. Copies may be held after the medium (path elements, faults)
//!          and are delivered in the order of their times. Faults of stations are done here, on what comes out; where there
//!          are none they cost a look at an empty pointer. Background frames (the top bit of their name is set) are
//!          counted by flow, and nothing is told of them.
//! Checked: `tests/properties.rs`.

use crate::calendar::Calendar;
use crate::fault::state::{Arrival, Faults, Reception, Verdict};
use crate::load::GHOST;
use crate::network::{Cause, Change, Edit, Event, Mark, Place};
use crate::path::{Jitter, Path};
use crate::{Class, Counters, Fault, Frame, FrameId, GroupId, NetworkSpec, Port, To};
use sonde_units::{Instant, Span};
use std::collections::{BTreeMap, VecDeque};

/// By group: its stations.
pub(crate) type Groups = BTreeMap<GroupId, Vec<Port>>;

/// The books of one network.
pub(crate) struct Edge {
    /// How many stations there are.
    pub ports: u16,
    /// What is counted.
    pub counters: Counters,
    /// The stations of each group; a frame to another one is for all.
    pub groups: Groups,
    events: VecDeque<Event>,
    /// Copies that are still inside, of frames with more than one.
    copies: BTreeMap<FrameId, u16>,
    path: Path,
    jitter: Option<Jitter>,
    held: Calendar<Arrival>,
    /// None until the first fault of a station.
    faults: Option<Box<Faults>>,
    seed: u64,
}

impl Edge {
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Self {
        Self {
            faults: None,
            seed,
            ports,
            counters: Counters::new(ports),
            groups: Groups::new(),
            events: VecDeque::new(),
            copies: BTreeMap::new(),
            path: Path::new(spec.path, seed),
            jitter: Jitter::new(spec.path, ports, seed),
            held: Calendar::new(),
        }
    }

    /// The next event to tell.
    pub fn tell(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether nothing is left to tell.
    pub fn is_told(&self) -> bool {
        self.events.is_empty()
    }

    /// When the next held copy arrives.
    pub fn next_at(&self) -> Option<Instant> {
        self.held.next_at()
    }

    /// Delivers the held copy that is due first.
    pub fn step(&mut self) {
        match self.held.pop() {
            Some((at, arrival)) if arrival.judged => self.receive(at, arrival),
            Some((at, arrival)) if arrival.late => {
                self.judge(at, &arrival.frame, arrival.to, arrival.mark);
            }
            Some((at, arrival)) => self.settle(at, &arrival.frame, arrival.to, arrival.mark),
            None => {}
        }
    }

    /// How long the path elements delay a copy that passes them now; none if they lose it.
    pub fn pass(&mut self) -> Option<Span> {
        self.path.pass()
    }

    /// Whether a frame is for a group that not every station is in.
    pub fn is_for_group(&self, frame: &Frame) -> bool {
        matches!(frame.to, To::Group(group) if self.groups.contains_key(&group))
    }

    /// The stations that a frame to several is for: all others, or those of its group.
    pub fn others(&self, frame: &Frame) -> Vec<Port> {
        let group = match frame.to {
            To::Group(group) => self.groups.get(&group).cloned(),
            _ => None,
        };
        let mut all = group.unwrap_or_else(|| (0..self.ports).map(Port).collect());
        all.retain(|to| *to != frame.from);
        all
    }

    /// `frame` goes to so many stations; 0 ends it.
    pub fn copies(&mut self, frame: &Frame, copies: usize) {
        match copies {
            0 => self.events.push_back(Event::Done { id: frame.id }),
            1 => {}
            _ => drop(self.copies.insert(frame.id, copies as u16)),
        }
    }

    /// The last bit of a copy comes out of a medium whose path elements are behind it.
    pub fn arrive(&mut self, at: Instant, frame: &Frame, to: Port) {
        match self.pass() {
            None => self.lose(at, frame, to, Place::Path, Cause::Random),
            Some(delay) if delay.is_zero() => self.deliver(at, frame, to),
            Some(delay) => self.hold(at + delay, frame, to, Mark::Ok, false),
        }
    }

    /// Delivers a copy later, with its jitter over or not.
    fn hold(&mut self, at: Instant, frame: &Frame, to: Port, mark: Mark, late: bool) {
        let arrival = Arrival {
            frame: *frame,
            to,
            mark,
            judged: false,
            late,
            twice: false,
        };
        self.held.insert(at, arrival);
    }

    /// The last bit of a copy reaches a station.
    pub fn deliver(&mut self, at: Instant, frame: &Frame, to: Port) {
        self.settle(at, frame, to, Mark::Ok);
    }

    /// The same, with a mark.
    pub fn settle(&mut self, at: Instant, frame: &Frame, to: Port, mark: Mark) {
        if frame.id.0 & GHOST != 0 {
            return self.settle_ghost(at, frame, to);
        }
        let Some(jitter) = &mut self.jitter else {
            return self.judge(at, frame, to, mark);
        };
        let out = jitter.out(at, to);
        self.hold(out, frame, to, mark, true);
    }

    /// Faults of the station decide about a copy.
    fn judge(&mut self, at: Instant, frame: &Frame, to: Port, mark: Mark) {
        let Some(faults) = &mut self.faults else {
            self.hand(at, frame, to, mark);
            return self.finish(frame.id);
        };
        match faults.judge(at, frame, to) {
            Verdict::Lost(place, cause) => self.lose(at, frame, to, place, cause),
            Verdict::Pass {
                corrupt,
                twice,
                delay,
            } => {
                let arrival = Arrival {
                    frame: *frame,
                    to,
                    mark: if corrupt { Mark::Corrupt } else { mark },
                    judged: true,
                    late: true,
                    twice,
                };
                if delay.is_zero() {
                    self.receive(at, arrival);
                } else {
                    self.held.insert(at + delay, arrival);
                }
            }
        }
    }

    /// A judged copy reaches its station.
    fn receive(&mut self, at: Instant, arrival: Arrival) {
        let reception = self
            .faults
            .as_mut()
            .map_or(Reception::Taken, |faults| faults.receive(arrival));
        let Arrival {
            frame, to, mark, ..
        } = arrival;
        match reception {
            Reception::Taken => {
                self.hand(at, &frame, to, mark);
                if arrival.twice {
                    self.counters.duplicates += 1;
                    self.hand(at, &frame, to, mark);
                }
                self.finish(frame.id);
            }
            Reception::Waits => {}
            Reception::Lost(cause) => self.lose(at, &frame, to, Place::Receiver, cause),
        }
    }

    /// A station has a copy.
    fn hand(&mut self, at: Instant, frame: &Frame, to: Port, mark: Mark) {
        let counters = self.counters.port(to);
        counters.delivered += 1;
        counters.delivered_bytes += frame.len;
        self.counters.corrupted += u64::from(mark == Mark::Corrupt);
        self.events.push_back(Event::Deliver {
            at,
            id: frame.id,
            to,
            mark,
            edit: Edit::None,
        });
    }

    /// A background frame ends where it should, unless the line is down there or was where it came from.
    fn settle_ghost(&mut self, at: Instant, frame: &Frame, to: Port) {
        let lost = self.faults.as_ref().is_some_and(|faults| {
            faults.is_down(to) == Some(Cause::LinkDown)
                || faults.sender_lost(at, frame.from).is_some()
        });
        self.counters.ghost(frame, !lost);
    }

    /// A copy is gone.
    pub fn lose(&mut self, at: Instant, frame: &Frame, to: Port, place: Place, cause: Cause) {
        if frame.id.0 & GHOST != 0 {
            return self.counters.ghost(frame, false);
        }
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

    /// A station that wanted no frames wants them again; that is told later of a host that stands still.
    pub fn ready(&mut self, at: Instant, port: Port) {
        if self.is_paused(port) {
            return;
        }
        self.events.push_back(Event::Ready {
            at,
            port,
            class: Class::default(),
        });
    }

    /// Whether a host stands still.
    pub fn is_paused(&self, port: Port) -> bool {
        let faults = self.faults.as_ref();
        faults.is_some_and(|faults| faults.is_paused(port))
    }

    /// Why what a station would send now is lost before the line.
    pub fn is_down(&self, port: Port) -> Option<Cause> {
        self.faults.as_ref()?.is_down(port)
    }

    /// A fault of a station begins, changes or ends.
    pub fn fault(&mut self, now: Instant, spec: &NetworkSpec, fault: Fault) {
        let (ports, seed) = (self.ports, self.seed);
        let faults = self
            .faults
            .get_or_insert_with(|| Box::new(Faults::new(spec, ports, seed)));
        faults.set(now, &fault);
        self.change(now, Change::Fault(fault));
        if let Fault::Pause { port, .. } | Fault::Host { port, .. } = fault {
            while let Some(arrival) = self.faults.as_mut().and_then(|faults| faults.release(port)) {
                self.receive(now, arrival);
            }
        }
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
