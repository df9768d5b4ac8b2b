//! The faults of the stations, as they stand: what becomes of a copy that reaches one.
//!
//! Model:   a copy that comes out of the medium is judged once. It is lost where its sender's line or host was down when it
//!          can have been there last, where the two are cut apart, or where a draw says so; it may be damaged, doubled, and
//!          held back. Then, and after what holds it back, its receiver takes it: a line or host that is down loses it, a
//!          host that stands still lets it wait, as much as its adapter queues. A fault for all sets every station's.
//! Source:  the vocabulary of netem, toxiproxy and Kollaps. Deviations: a station's queue is the medium's. What it holds when
//!          its line or host goes down is therefore lost on arrival: all that would arrive in the time that the fault
//!          lasts, later by the least way from the line's end to the receiver. Of what had left the line before, that
//!          loses what a switch still had queued.
//! Units:   picoseconds; shares of 64-bit draws.
//! Checked: `tests/faults.rs`.

use super::line::Lines;
use crate::network::{Cause, Mark, Place, Refused};
use crate::{Fault, Frame, NetworkSpec, Port, Topology};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_units::{Bytes, Instant, Ratio, Span};
use std::collections::{BTreeSet, VecDeque};

/// Keeps the draws of faults apart from those of the path.
const STREAM: u64 = 0xfa17_5eed_0b57_ac1e;
/// No way is made longer by more.
const DELAY_MAX: Span = Span::secs(60);

/// A copy on its last way to a station.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub frame: Frame,
    pub to: Port,
    pub mark: Mark,
    /// Whether faults have said what becomes of it.
    pub judged: bool,
    /// Its jitter is over.
    pub late: bool,
    /// Whether it arrives twice.
    pub twice: bool,
}

/// The last time that a line or host was not there.
#[derive(Clone, Copy, Default)]
struct Outage {
    since: Instant,
    /// None while it lasts.
    until: Option<Instant>,
    happened: bool,
}

impl Outage {
    fn set(&mut self, now: Instant, up: bool) {
        if up != self.is_on() {
            return;
        }
        if up {
            self.until = Some(now);
        } else {
            *self = Self {
                since: now,
                until: None,
                happened: true,
            };
        }
    }

    fn is_on(&self) -> bool {
        self.happened && self.until.is_none()
    }

    fn was_on(&self, at: Instant) -> bool {
        self.happened && self.since <= at && self.until.is_none_or(|until| at < until)
    }
}

/// What one station suffers.
#[derive(Clone)]
struct Station {
    link: Outage,
    host: Outage,
    paused: bool,
    loss: Ratio,
    corruption: Ratio,
    duplication: Ratio,
    reordering: Ratio,
    reorder_by: Span,
    delay: Span,
    /// Copies before a host that stands still.
    waiting: VecDeque<Arrival>,
    waiting_bytes: Bytes,
}

impl Station {
    fn new() -> Self {
        Self {
            link: Outage::default(),
            host: Outage::default(),
            paused: false,
            loss: Ratio::ZERO,
            corruption: Ratio::ZERO,
            duplication: Ratio::ZERO,
            reordering: Ratio::ZERO,
            reorder_by: Span::ZERO,
            delay: Span::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
        }
    }

    fn is_down(&self) -> Option<Cause> {
        if self.host.is_on() {
            Some(Cause::HostDown)
        } else if self.link.is_on() {
            Some(Cause::LinkDown)
        } else {
            None
        }
    }
}

/// What becomes of a copy that comes out of the medium.
pub(crate) enum Verdict {
    /// It is gone.
    Lost(Place, Cause),
    /// It goes on.
    Pass {
        corrupt: bool,
        twice: bool,
        delay: Span,
    },
}

/// What a station does with a copy.
pub(crate) enum Reception {
    /// It has it.
    Taken,
    /// It waits until the host goes on.
    Waits,
    /// It is gone.
    Lost(Cause),
}

/// The faults of all stations.
pub(crate) struct Faults {
    stations: Vec<Station>,
    cuts: BTreeSet<(Port, Port)>,
    lines: Lines,
    random: Pcg64Mcg,
    /// What a host that stands still has room for.
    room: Bytes,
    /// The least time from a host, and from the end of its line, to a receiver.
    from_host: Span,
    from_line: Span,
}

fn ordered(a: Port, b: Port) -> (Port, Port) {
    (a.min(b), a.max(b))
}

impl Faults {
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Self {
        let way = spec.path.delay + spec.line.propagation();
        Self {
            stations: vec![Station::new(); usize::from(ports)],
            cuts: BTreeSet::new(),
            lines: Lines::new(ports, spec.line.rate, spec.station.queue),
            random: Pcg64Mcg::seed_from_u64(seed ^ STREAM),
            room: spec.station.queue,
            from_host: way,
            from_line: match spec.topology {
                Topology::Line | Topology::Mesh => Span::ZERO,
                _ => way,
            },
        }
    }

    /// Whether `fault` is one of a station, and its values can be.
    ///
    /// # Errors
    /// [`Refused::Value`].
    pub fn check(fault: &Fault) -> Result<bool, Refused> {
        match *fault {
            Fault::Loss { share, .. }
            | Fault::Corruption { share, .. }
            | Fault::Duplication { share, .. }
            | Fault::Collision { share, .. } => in_share(share)?,
            Fault::Reordering { share, by, .. } => {
                in_share(share)?;
                in_delay(by)?;
                if by.is_zero() && !share.is_zero() {
                    return Err(Refused::Value {
                        what: "the time by which frames are held back",
                        value: by.to_string(),
                        remedy: "say how long, as in `reorder h2 5% 1ms`",
                    });
                }
            }
            Fault::Delay { by, .. } => in_delay(by)?,
            Fault::Rate { .. }
            | Fault::Trunk { .. }
            | Fault::Restart { .. }
            | Fault::Manager { .. } => return Ok(false),
            Fault::Link { .. }
            | Fault::Host { .. }
            | Fault::Pause { .. }
            | Fault::Cut { .. }
            | Fault::Narrow { .. }
            | Fault::Slow { .. } => {}
        }
        Ok(true)
    }

    fn station(&mut self, port: Port) -> &mut Station {
        &mut self.stations[usize::from(port.0)]
    }

    fn each(&mut self, port: Option<Port>, mut set: impl FnMut(&mut Station)) {
        match port {
            Some(port) => set(self.station(port)),
            None => self.stations.iter_mut().for_each(set),
        }
    }

    /// Sets a fault of a station.
    pub fn set(&mut self, now: Instant, fault: &Fault) {
        match *fault {
            Fault::Link { port, up } => self.each(port, |station| station.link.set(now, up)),
            Fault::Host { port, up } => self.station(port).host.set(now, up),
            Fault::Pause { port, on } => self.station(port).paused = on,
            Fault::Cut { a, b, on: true } => drop(self.cuts.insert(ordered(a, b))),
            Fault::Cut { a, b, on: false } => drop(self.cuts.remove(&ordered(a, b))),
            Fault::Loss { port, share } => self.each(port, |station| station.loss = share),
            Fault::Corruption { port, share } => {
                self.each(port, |station| station.corruption = share);
            }
            Fault::Duplication { port, share } => {
                self.each(port, |station| station.duplication = share);
            }
            Fault::Reordering { port, share, by } => self.each(port, |station| {
                station.reordering = share;
                station.reorder_by = by;
            }),
            Fault::Delay { port, by } => self.each(port, |station| station.delay = by),
            Fault::Narrow { .. } | Fault::Collision { .. } | Fault::Slow { .. } => {
                self.lines.set(now, fault);
            }
            Fault::Rate { .. }
            | Fault::Trunk { .. }
            | Fault::Restart { .. }
            | Fault::Manager { .. } => {}
        }
    }

    /// Whether a host stands still.
    pub fn is_paused(&self, port: Port) -> bool {
        self.stations[usize::from(port.0)].paused
    }

    /// Why nothing comes from a station or reaches it.
    pub fn is_down(&self, port: Port) -> Option<Cause> {
        self.stations.get(usize::from(port.0))?.is_down()
    }

    /// The first copy that waits before a host that does not stand still any more, or is gone.
    pub fn release(&mut self, port: Port) -> Option<Arrival> {
        let station = self.station(port);
        if station.paused && !station.host.is_on() {
            return None;
        }
        let arrival = station.waiting.pop_front()?;
        station.waiting_bytes -= arrival.frame.len;
        Some(arrival)
    }

    /// Whether what a station sent was lost on the way into the network, as far as it can be told from where it arrives.
    pub fn sender_lost(&self, at: Instant, from: Port) -> Option<(Place, Cause)> {
        let station = self.stations.get(usize::from(from.0))?;
        let before = |way: Span| Instant::from_picos(at.as_picos().saturating_sub(way.as_picos()));
        if station.host.was_on(before(self.from_host)) {
            Some((Place::Station, Cause::HostDown))
        } else if station.link.was_on(before(self.from_line)) {
            Some((Place::Path, Cause::LinkDown))
        } else {
            None
        }
    }

    /// What becomes of a copy that comes out of the medium.
    pub fn judge(&mut self, at: Instant, frame: &Frame, to: Port) -> Verdict {
        if let Some((place, cause)) = self.sender_lost(at, frame.from) {
            return Verdict::Lost(place, cause);
        }
        if !self.cuts.is_empty() && self.cuts.contains(&ordered(frame.from, to)) {
            return Verdict::Lost(Place::Path, Cause::Parted);
        }
        let (station, random) = (&self.stations[usize::from(to.0)], &mut self.random);
        let line = match self.lines.judge(at, frame, to, random) {
            Ok(late) => late,
            Err((place, cause)) => return Verdict::Lost(place, cause),
        };
        let mut hit = |share: Ratio| !share.is_zero() && share.hit(random.next_u64());
        if hit(station.loss) {
            return Verdict::Lost(Place::Path, Cause::Random);
        }
        let late = if hit(station.reordering) {
            station.reorder_by
        } else {
            Span::ZERO
        };
        Verdict::Pass {
            corrupt: hit(station.corruption),
            twice: hit(station.duplication),
            delay: station.delay + line + late,
        }
    }

    /// What the receiver of a judged copy does with it.
    pub fn receive(&mut self, arrival: Arrival) -> Reception {
        let room = self.room;
        let station = self.station(arrival.to);
        if let Some(cause) = station.is_down() {
            return Reception::Lost(cause);
        }
        if !station.paused {
            return Reception::Taken;
        }
        if station.waiting_bytes + arrival.frame.len > room {
            return Reception::Lost(Cause::Overflow);
        }
        station.waiting_bytes += arrival.frame.len;
        station.waiting.push_back(arrival);
        Reception::Waits
    }
}

fn in_share(share: Ratio) -> Result<(), Refused> {
    if share <= Ratio::ONE {
        return Ok(());
    }
    Err(Refused::Value {
        what: "a probability",
        value: share.to_string(),
        remedy: "give 0 to 1, as in `1%`",
    })
}

fn in_delay(by: Span) -> Result<(), Refused> {
    if by <= DELAY_MAX {
        return Ok(());
    }
    Err(Refused::Value {
        what: "a delay",
        value: by.to_string(),
        remedy: "give at most 60s",
    })
}
