//! A network: a medium, and the books on its edge.
//!
//! Model:   what is offered is checked here (MTU, destination, room at the station, faults), then it is the medium's. Steps of
//!          the medium, copies that are held behind it, commands of the network's schedule and frames of background traffic
//!          are done in the order of their times, at equal times in this order.
//! Source:  the modules it is made of. Deviations: stations receive without limit; that is the host's matter.
//! Checked: `tests/properties.rs` (conservation, order, never early, never above the rate, poll times do not matter);
//!          `tests/times.rs` (closed forms of one-way times, ceilings, tail drop); `tests/circuits.rs`.

use crate::edge::{Edge, Groups};
use crate::fault::state::Faults;
use crate::hosted::Hosted;
use crate::load::sources::Sources;
use crate::medium::{self, Medium, Target};
use crate::network::{Admission, Cause, Change, Command, Event, Network, Place, Refused};
use crate::schedule::{Schedule, schedule};
use crate::{
    Captured, Class, Counters, Fault, Frame, Kind, NetworkSpec, Port, Resolution, SpecError, To,
};
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
    build_with(spec, ports, seed, Vec::new())
}

/// The same, with captured frames for flows that replay them.
///
/// # Errors
/// As [`build`].
pub fn build_with(
    spec: &NetworkSpec,
    ports: u16,
    seed: u64,
    capture: Vec<Captured>,
) -> Result<Box<dyn Network + Send>, SpecError> {
    build_divided(spec, ports, seed, capture, Groups::new())
}

/// The same for a network that is divided: frames to one of these groups are for its stations alone.
///
/// # Errors
/// As [`build`].
pub(crate) fn build_divided(
    spec: &NetworkSpec,
    ports: u16,
    seed: u64,
    capture: Vec<Captured>,
    groups: Groups,
) -> Result<Box<dyn Network + Send>, SpecError> {
    let mut fabric = Fabric::with_capture(spec, ports, seed, capture)?;
    fabric.edge.groups = groups;
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
    schedule: Schedule,
    sources: Sources,
}

impl Fabric {
    /// A network of `ports` stations, whose random draws follow from `seed`.
    ///
    /// # Errors
    /// [`SpecError`] where the specification is wrong, so many stations cannot be joined by it, or its schedule asks for
    /// what it does not have.
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Result<Self, SpecError> {
        Self::with_capture(spec, ports, seed, Vec::new())
    }

    /// The same, with what flows of [`Law::Replay`](crate::Law::Replay) replay.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_capture(
        spec: &NetworkSpec,
        ports: u16,
        seed: u64,
        capture: Vec<Captured>,
    ) -> Result<Self, SpecError> {
        spec.check()?;
        let schedule = schedule(&spec.load, &spec.fault)?;
        if !schedule.is_empty() {
            Self::bare(spec, ports, seed, capture.clone())?.rehearse(&schedule)?;
        }
        let mut fabric = Self::bare(spec, ports, seed, capture)?;
        fabric.schedule = schedule;
        Ok(fabric)
    }

    /// A network of a checked specification, without its schedule.
    fn bare(
        spec: &NetworkSpec,
        ports: u16,
        seed: u64,
        capture: Vec<Captured>,
    ) -> Result<Self, SpecError> {
        Ok(Self {
            now: Instant::START,
            medium: medium::build(spec, ports, seed)?,
            edge: Edge::new(spec, ports, seed),
            schedule: Schedule::new(),
            sources: Sources::new(ports, seed, capture),
            spec: spec.clone(),
        })
    }

    /// Gives each command of a schedule to a network that carries nothing, to see whether it has such a thing.
    fn rehearse(mut self, schedule: &Schedule) -> Result<(), SpecError> {
        // Flows are only set: what they would send is of no interest here.
        let mut flows = Counters::default();
        let none = Sources::new(self.edge.ports, 0, Vec::new());
        let mut sources = std::mem::replace(&mut self.sources, none);
        for &(at, command) in schedule {
            let refused = match command {
                Command::Load(flow) => command
                    .check(self.edge.ports)
                    .and_then(|()| sources.set(at, flow, &self.spec, &mut flows)),
                _ => self.command(at, command),
            };
            if let Err(refused) = refused {
                let is_load = matches!(command, Command::Load(_));
                let at = at.since(Instant::START);
                return Err(SpecError {
                    key: if is_load { "load" } else { "fault" },
                    problem: format!("has `{command}` at {at}, but {refused}"),
                });
            }
            while self.edge.tell().is_some() {}
        }
        Ok(())
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
            let outside = self.outside_at();
            let first = [edge, outside].into_iter().flatten().min();
            match medium {
                Some(at) if at <= now && first.is_none_or(|other| at <= other) => {
                    self.medium.step(&mut self.edge);
                    continue;
                }
                _ => {}
            }
            match first {
                Some(at) if at > now => return,
                Some(at) if edge == Some(at) => self.edge.step(),
                Some(_) => self.step_outside(),
                None => return,
            }
        }
    }

    /// When schedule or background traffic do something.
    fn outside_at(&self) -> Option<Instant> {
        let scheduled = self.schedule.front().map(|(at, _)| *at);
        match (scheduled, self.sources.next_at()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Does what schedule or background traffic do first.
    fn step_outside(&mut self) {
        let scheduled = self.schedule.front().map(|(at, _)| *at);
        let ghost = self.sources.next_at();
        if scheduled.is_some_and(|at| ghost.is_none_or(|ghost| at <= ghost)) {
            if let Some((at, command)) = self.schedule.pop_front() {
                let refused = self.carry_out(at, command).is_err();
                self.edge.counters.commands_refused += u64::from(refused);
            }
        } else if let Some((at, frame, to)) = self.sources.pop() {
            let flow = &mut self.edge.counters.flows[frame.flow as usize];
            flow.sent += 1;
            flow.sent_bytes += frame.len;
            match self.edge.is_down(frame.from) {
                Some(cause) => self.edge.lose(at, &frame, to, Place::Station, cause),
                None => self.medium.background(at, frame, to, &mut self.edge),
            }
        }
    }

    /// Carries out a command at its time.
    fn carry_out(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        command.check(self.edge.ports)?;
        match command {
            Command::Load(flow) => {
                self.sources
                    .set(now, flow, &self.spec, &mut self.edge.counters)?;
                self.edge.change(now, Change::Load(flow));
                Ok(())
            }
            Command::Busy(..) => Err(Refused::NotHere {
                what: "processor of a host",
                remedy: "put a host model around it",
            }),
            Command::Fault(fault) => {
                if !Faults::check(&fault)? {
                    self.medium.command(now, command, &mut self.edge)?;
                    self.edge.change(now, Change::Fault(fault));
                    return Ok(());
                }
                let goes_on = match fault {
                    Fault::Pause { port, on: false } if self.edge.is_paused(port) => Some(port),
                    _ => None,
                };
                self.edge.fault(now, &self.spec, fault);
                if let Some(port) = goes_on.filter(|port| self.medium.ready(*port)) {
                    self.edge.ready(now, port);
                }
                Ok(())
            }
            Command::Vc(_) => self.medium.command(now, command, &mut self.edge),
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
        let down = self.edge.is_down(from);
        let has_room = is_long || down.is_some() || self.medium.admits(now, from, frame.len);
        if !has_room || self.edge.is_paused(from) {
            self.edge.counters.port(from).blocked += 1;
            return Admission::Blocked;
        }
        let counters = self.edge.counters.port(from);
        counters.taken += 1;
        counters.taken_bytes += frame.len;
        match target {
            Err((place, cause)) => self.edge.lose(now, &frame, from, place, cause),
            Ok(target) if down.is_some() => {
                let to = match target {
                    Target::One(to) => to,
                    Target::All | Target::Server => from,
                };
                let cause = down.unwrap_or(Cause::LinkDown);
                self.edge.lose(now, &frame, to, Place::Station, cause);
            }
            Ok(target) => self.medium.take(now, frame, target, &mut self.edge),
        }
        let backlog = self.medium.backlog(now, from);
        let counters = self.edge.counters.port(from);
        counters.backlog_bytes_max = counters.backlog_bytes_max.max(backlog);
        Admission::Taken
    }

    fn ready(&self, port: Port, _class: Class) -> bool {
        self.medium.ready(port) && !self.edge.is_paused(port)
    }

    fn command(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.enter(now);
        self.carry_out(now, command)
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
        let due = [
            self.medium.next_at(),
            self.edge.next_at(),
            self.outside_at(),
        ];
        due.into_iter().flatten().min()
    }

    fn counters(&self) -> Counters {
        self.edge.counters.clone()
    }
}
