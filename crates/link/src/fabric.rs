//! A network: a medium, and the books on its edge.
//!
//! Model:   what is offered is checked here (MTU, destination, room at the station), then it is the medium's. Steps of the
//!          medium and copies that are held behind it are done in the order of their times, the medium's first.
//! Source:  the modules it is made of. Deviations: stations receive without limit; that is the host's matter.
//! Checked: `tests/properties.rs` (conservation, order, never early, never above the rate, poll times do not matter);
//!          `tests/times.rs` (closed forms of one-way times, ceilings, tail drop); `tests/circuits.rs`.

use crate::edge::Edge;
use crate::hosted::Hosted;
use crate::medium::{self, Medium, Target};
use crate::network::{Admission, Cause, Command, Event, Network, Place, Refused};
use crate::{Class, Counters, Frame, Kind, NetworkSpec, Port, Resolution, SpecError, To};
use sonde_units::{Bytes, Instant};

/// The network of a specification, ready to be driven: what both clocks use.
///
/// # Errors
/// [`SpecError`] where the specification is wrong, or so many stations cannot be joined by it.
pub fn build(
    spec: &NetworkSpec,
    ports: u16,
    seed: u64,
) -> Result<Box<dyn Network + Send>, SpecError> {
    let fabric = Fabric::new(spec, ports, seed)?;
    Ok(match spec.host {
        Some(_) => Box::new(Hosted::new(fabric, spec, ports)?),
        None => Box::new(fabric),
    })
}

/// A network of one technology, for any of the catalogue or of the user's own.
pub struct Fabric {
    spec: NetworkSpec,
    /// The latest time that was told.
    now: Instant,
    medium: Box<dyn Medium>,
    edge: Edge,
}

impl Fabric {
    /// A network of `ports` stations, whose random draws follow from `seed`.
    ///
    /// # Errors
    /// [`SpecError`] where the specification is wrong, or so many stations cannot be joined by it.
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Result<Self, SpecError> {
        spec.check()?;
        Ok(Self {
            now: Instant::START,
            medium: medium::build(spec, ports, seed)?,
            edge: Edge::new(spec, ports, seed),
            spec: spec.clone(),
        })
    }

    /// Its specification.
    pub fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    /// Takes note of the time of an offer or a command.
    ///
    /// # Panics
    /// If it goes backwards.
    fn enter(&mut self, now: Instant) {
        assert!(now >= self.now, "time does not go backwards");
        self.advance(now);
    }

    /// Does what is due until `now`.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        loop {
            let (medium, edge) = (self.medium.next_at(), self.edge.next_at());
            match (medium, edge) {
                (Some(at), other) if at <= now && other.is_none_or(|other| at <= other) => {
                    self.medium.step(&mut self.edge);
                }
                (_, Some(at)) if at <= now => self.edge.step(),
                _ => return,
            }
        }
    }

    /// Where a frame shall go, or why it cannot.
    fn target(&self, frame: &Frame) -> Result<Target, (Place, Cause)> {
        if frame.len > Bytes(self.spec.mtu) {
            return Err((Place::Station, Cause::TooLong));
        }
        let is_served = self.spec.resolution() == Resolution::Server;
        match (frame.to, frame.kind) {
            (To::One(to), _) if to.0 < self.edge.ports && to != frame.from => Ok(Target::One(to)),
            (To::One(_), _) => Err((Place::Station, Cause::NoSuchPort)),
            (_, Kind::Resolve(_)) if is_served => Ok(Target::Server),
            _ if !self.spec.broadcasts() => Err((Place::Station, Cause::NoBroadcast)),
            _ => Ok(Target::All),
        }
    }
}

impl Network for Fabric {
    fn offer(&mut self, now: Instant, frame: Frame) -> Admission {
        self.enter(now);
        let from = frame.from;
        assert!(from.0 < self.edge.ports, "the sender is on the network");
        let target = self.target(&frame);
        let is_long = target == Err((Place::Station, Cause::TooLong));
        if !is_long && !self.medium.admits(now, from, frame.len) {
            self.edge.counters.port(from).blocked += 1;
            return Admission::Blocked;
        }
        let counters = self.edge.counters.port(from);
        counters.taken += 1;
        counters.taken_bytes += frame.len;
        match target {
            Err((place, cause)) => self.edge.lose(now, &frame, from, place, cause),
            Ok(target) => self.medium.take(now, frame, target, &mut self.edge),
        }
        let backlog = self.medium.backlog(now, from);
        let counters = self.edge.counters.port(from);
        counters.backlog_bytes_max = counters.backlog_bytes_max.max(backlog);
        Admission::Taken
    }

    fn ready(&self, port: Port, _class: Class) -> bool {
        self.medium.ready(port)
    }

    fn command(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.enter(now);
        command.check(self.edge.ports)?;
        self.medium.command(now, command, &mut self.edge)
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        if self.edge.is_told() {
            self.advance(now);
        }
        self.edge.tell()
    }

    fn poll_at(&self) -> Option<Instant> {
        if !self.edge.is_told() {
            return Some(self.now);
        }
        let due = [self.medium.next_at(), self.edge.next_at()];
        due.into_iter().flatten().min()
    }

    fn counters(&self) -> Counters {
        self.edge.counters.clone()
    }
}
