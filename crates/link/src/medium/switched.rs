//! Stations at a switch with a queue at each output, on one line, or joined by lines without a rate.
//!
//! Model:   station queue -> serializer -> wire -> path elements -> switch (latency, output queue, serializer) -> wire. A
//!          frame's times are settled where it meets a queue: at the station when it is offered, at the output when it
//!          arrives there. Frames to all are copied at the switch, or at the station where there is none.
//! Source:  IEEE 802.3; links.md §2. Deviations: none known.
//! Checked: `tests/properties.rs`, `tests/times.rs`.

use crate::calendar::Calendar;
use crate::edge::Edge;
use crate::medium::{Medium, Target};
use crate::network::{Cause, Command, Place, Refused};
use crate::output::FrameOutput;
use crate::pace::Pace;
use crate::station::Transmitter;
use crate::{Frame, NetworkSpec, Port, SpecError, Topology};
use sonde_units::{Bytes, Instant};

/// What is due at a time.
enum Step {
    /// A copy for `to` is at the output queue, its last bit at `tail`.
    Output {
        frame: Frame,
        to: Port,
        tail: Instant,
    },
    /// A copy has arrived.
    Deliver { frame: Frame, to: Port },
    /// A station's backlog may have fallen.
    Wake(Port),
}

/// One line a station, and a switch or none.
pub(crate) struct Switched {
    pace: Pace,
    ports: u16,
    stations: Vec<Transmitter>,
    outputs: Vec<FrameOutput>,
    calendar: Calendar<Step>,
}

impl Switched {
    pub fn new(spec: &NetworkSpec, ports: u16, _seed: u64) -> Result<Self, SpecError> {
        if spec.topology == Topology::Line && ports != 2 {
            let problem =
                format!("is a line, which joins 2 hosts, not {ports}; ask for 2, or use a star");
            return Err(SpecError {
                key: "topology",
                problem,
            });
        }
        let stations = (0..ports).map(|_| Transmitter::new(spec.station.queue));
        let outputs = spec.switch.iter().flat_map(|switch| {
            let output = || FrameOutput::new(switch.buffer);
            (0..ports).map(move |_| output())
        });
        Ok(Self {
            pace: Pace::new(spec),
            ports,
            stations: stations.collect(),
            outputs: outputs.collect(),
            calendar: Calendar::new(),
        })
    }

    fn station(&mut self, port: Port) -> &mut Transmitter {
        &mut self.stations[usize::from(port.0)]
    }

    /// Makes a copy on its way from the line's end to a station, or to the output for it.
    fn travel(
        &mut self,
        now: Instant,
        frame: Frame,
        to: Port,
        (head, tail): (Instant, Instant),
        edge: &mut Edge,
    ) {
        let Some(delay) = edge.pass() else {
            return edge.lose(now, &frame, to, Place::Path, Cause::Random);
        };
        let (head, tail) = (head + delay, tail + delay);
        if self.outputs.is_empty() {
            self.calendar.insert(tail, Step::Deliver { frame, to });
        } else {
            self.calendar.insert(head, Step::Output { frame, to, tail });
        }
    }

    /// A copy has come to the output for `to`.
    fn forward(&mut self, now: Instant, frame: Frame, to: Port, tail: Instant, edge: &mut Edge) {
        let (time, propagation) = (self.pace.time(frame.len), self.pace.propagation());
        match self.outputs[usize::from(to.0)].take(now, tail, frame.len, time) {
            Ok(departs) => self
                .calendar
                .insert(departs + propagation, Step::Deliver { frame, to }),
            Err(_) => edge.lose(now, &frame, to, Place::Output, Cause::Overflow),
        }
    }

    /// Lets a station want frames again if its backlog has fallen far enough; else comes back when it will have.
    fn wake(&mut self, now: Instant, port: Port, edge: &mut Edge) {
        let station = self.station(port);
        if station.wake(now) {
            edge.ready(now, port);
        } else if let Some(at) = station.wakes_at() {
            self.calendar.insert(at, Step::Wake(port));
        }
    }
}

impl Medium for Switched {
    fn admits(&mut self, now: Instant, port: Port, len: Bytes) -> bool {
        self.station(port).admits(now, len)
    }

    fn ready(&self, port: Port) -> bool {
        self.stations[usize::from(port.0)].ready()
    }

    fn backlog(&mut self, now: Instant, port: Port) -> Bytes {
        self.station(port).backlog(now)
    }

    fn take(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge) {
        let from = frame.from;
        let was_ready = self.ready(from);
        let time = self.pace.time(frame.len);
        let start = self.station(from).send(now, frame.len, time);
        let (head, latency) = self.pace.forwarding(time);
        let arrives = start + self.pace.propagation() + latency;
        let times = (arrives + head, arrives + time);
        match target {
            Target::One(to) => self.travel(now, frame, to, times, edge),
            Target::All | Target::Server => {
                edge.copies(&frame, self.ports - 1);
                for to in (0..self.ports).map(Port).filter(|to| *to != from) {
                    self.travel(now, frame, to, times, edge);
                }
            }
        }
        if was_ready && !self.ready(from) {
            self.wake(now, from, edge);
        }
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        if frame.from.0 < self.ports {
            return self.take(now, frame, Target::One(to), edge);
        }
        if !self.outputs.is_empty() {
            self.forward(now, frame, to, now, edge);
        }
    }

    fn command(&mut self, _: Instant, command: Command, _: &mut Edge) -> Result<(), Refused> {
        Err(match command {
            Command::Vc(_) => Refused::NoCircuits,
            _ => Refused::NotHere {
                what: "such part",
                remedy: "choose another network",
            },
        })
    }

    fn next_at(&self) -> Option<Instant> {
        self.calendar.next_at()
    }

    fn step(&mut self, edge: &mut Edge) {
        match self.calendar.pop() {
            Some((at, Step::Output { frame, to, tail })) => {
                self.forward(at, frame, to, tail, edge);
            }
            Some((at, Step::Deliver { frame, to })) => edge.deliver(at, &frame, to),
            Some((at, Step::Wake(port))) => self.wake(at, port, edge),
            None => {}
        }
    }
}
