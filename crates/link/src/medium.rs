//! What a medium is to a network: stations that take frames, and steps in the order of time.
//!
//! Model:   [`Fabric`](crate::Fabric) checks what is offered, keeps the books ([`Edge`]) and asks the medium for its next
//!          step; the medium has the queues of the stations and decides who sends when, what waits and what is lost. A step
//!          is done at its own time, and what it tells the edge happens at that time.
//! Checked: `tests/properties.rs`, for every medium.

use crate::edge::Edge;
use crate::{Bus, Command, Crossbar, Frame, NetworkSpec, Port, Refused, SpecError};
use crate::{Credit, Sci, Stages, TokenRing};
use sonde_units::{Bytes, Instant};

pub(crate) mod atm;
pub(crate) mod bus;
pub(crate) mod credit;
pub(crate) mod crossbar;
pub(crate) mod paused;
pub(crate) mod sci;
pub(crate) mod sender;
pub(crate) mod stages;
pub(crate) mod switched;
pub(crate) mod token;

/// Frames of background traffic that wait in one place, at most.
pub(crate) const GHOSTS_MAX: usize = 4_096;

/// Where a frame shall go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To this station.
    One(Port),
    /// To every other station.
    All,
    /// To the address server, which sends it back to its own sender.
    Server,
}

/// A link technology under a [`Fabric`](crate::Fabric).
pub(crate) trait Medium: Send {
    /// Whether the station finds room for a frame of `len`.
    fn admits(&mut self, now: Instant, port: Port, len: Bytes) -> bool;
    /// Whether the station wants more frames. That it turns true is told by [`Edge::ready`].
    fn ready(&self, port: Port) -> bool;
    /// Layer-3 bytes that wait at the station.
    fn backlog(&mut self, now: Instant, port: Port) -> Bytes;
    /// Takes a frame that the station admits. After it the station may not be ready any more.
    fn take(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge);
    /// Takes a frame of background traffic, which no station queue holds back: from the line of `frame.from` where that is a
    /// station, else (a number from the ports on) from elsewhere.
    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge);
    /// Carries out a command: circuits, and the faults that are the medium's own (rate, trunk, restart, manager).
    ///
    /// # Errors
    /// [`Refused`] where the medium has no such thing; nothing is changed then.
    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused>;
    /// When the next step is due; none while idle.
    fn next_at(&self) -> Option<Instant>;
    /// Does the step that is due first, at its own time.
    fn step(&mut self, edge: &mut Edge);
}

/// The medium of a specification that was checked.
///
/// # Errors
/// [`SpecError`] where so many stations cannot be joined.
pub(crate) fn build(
    spec: &NetworkSpec,
    ports: u16,
    seed: u64,
) -> Result<Box<dyn Medium>, SpecError> {
    if let Some(bus) = &spec.bus {
        return Ok(Box::new(bus::Segment::new(spec, bus, ports, seed)?));
    }
    if let Some(token) = &spec.token {
        return Ok(Box::new(token::Ring::new(spec, token, ports, seed)?));
    }
    if let Some(crossbar) = &spec.crossbar {
        return Ok(Box::new(crossbar::Switch::new(
            spec, crossbar, ports, seed,
        )?));
    }
    if let Some(stages) = &spec.stages {
        return Ok(Box::new(stages::Net::new(spec, stages, ports, seed)?));
    }
    if let Some(credit) = &spec.credit {
        return Ok(Box::new(credit::Net::new(spec, credit, ports, seed)?));
    }
    if let Some(sci) = &spec.sci {
        return Ok(Box::new(sci::Rings::new(spec, sci, ports, seed)?));
    }
    if let Some(circuits) = spec.circuits {
        return Ok(Box::new(atm::Atm::new(spec, circuits, ports, seed)?));
    }
    if let Some(switch) = spec.switch.filter(|_| paused::applies(spec)) {
        return Ok(Box::new(paused::Paused::new(spec, switch, ports)?));
    }
    Ok(Box::new(switched::Switched::new(spec, ports, seed)?))
}

/// The tables of a specification that say which medium it is; at most one may be there.
pub(crate) fn tables(spec: &NetworkSpec) -> Vec<&'static str> {
    let there = [
        ("bus", spec.bus.is_some()),
        ("token", spec.token.is_some()),
        ("crossbar", spec.crossbar.is_some()),
        ("stages", spec.stages.is_some()),
        ("credit", spec.credit.is_some()),
        ("sci", spec.sci.is_some()),
        ("circuits", spec.circuits.is_some()),
    ];
    there
        .into_iter()
        .filter_map(|(name, there)| there.then_some(name))
        .collect()
}

/// Checks the table of the medium.
///
/// # Errors
/// The first key that is wrong.
pub(crate) fn check(spec: &NetworkSpec) -> Result<(), SpecError> {
    paused::check(spec)?;
    spec.bus.as_ref().map_or(Ok(()), |t| Bus::check(t, spec))?;
    spec.token
        .as_ref()
        .map_or(Ok(()), |t| TokenRing::check(t, spec))?;
    spec.crossbar
        .as_ref()
        .map_or(Ok(()), |t| Crossbar::check(t, spec))?;
    spec.stages
        .as_ref()
        .map_or(Ok(()), |t| Stages::check(t, spec))?;
    spec.credit
        .as_ref()
        .map_or(Ok(()), |t| Credit::check(t, spec))?;
    spec.sci.as_ref().map_or(Ok(()), |t| Sci::check(t, spec))
}
