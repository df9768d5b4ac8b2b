//! The network: stations on lines, path elements, and a switch or none.
//!
//! Model:   station queue -> serializer -> wire -> path elements -> switch (latency, output queue, serializer) -> wire. A
//!          frame's times are settled where it meets a queue: at the station when it is offered, at the output when it
//!          arrives there. Frames to all are copied at the switch, or at the station where there is none. On ATM a frame is a train
//!          of cells, a circuit is needed first, and a server at the switch answers address requests.
//! Source:  the modules it is made of. Deviations: stations receive without limit; that is the host's matter.
//! Checked: `tests/properties.rs` (conservation, order, never early, never above the rate, poll times do not matter);
//!          `tests/times.rs` (closed forms of one-way times).

use crate::calendar::Calendar;
use crate::cell::CellOutput;
use crate::circuit::{Access, CircuitTable, Pair};
use crate::network::{
    Admission, Cause, Change, Command, Event, Mark, Network, Place, Refused, VcCommand,
};
use crate::output::{FrameOutput, Limit};
use crate::path::Path;
use crate::station::Transmitter;
use crate::{CELL_WIRE, Class, Counters, Forwarding, Frame, FrameId, Kind, NetworkSpec, Port, To};
use sonde_units::{Bytes, Instant, Span};
use std::collections::{BTreeMap, VecDeque};

/// Bytes that a cut-through switch reads before it forwards: the smallest Ethernet frame.
const CUT_THROUGH_HEAD: Bytes = Bytes(64);

/// What is due at a time.
enum Step {
    /// A copy for `to` is at the output queue, its last bit at `tail`.
    Output {
        frame: Frame,
        to: Port,
        tail: Instant,
    },
    /// The last cell of a train is at an output.
    TrainEnd { output: Port, number: u64 },
    /// A copy has arrived.
    Deliver { frame: Frame, to: Port },
    /// The address server has a request in hand.
    Answer { frame: Frame },
    /// A station's backlog may have fallen.
    Wake(Port),
    /// A circuit is set up.
    CircuitUp(Pair),
}

enum Output {
    Frames(FrameOutput),
    Cells(CellOutput),
}

/// A network of one line a station.
pub struct Fabric {
    spec: NetworkSpec,
    ports: u16,
    stations: Vec<Transmitter>,
    outputs: Vec<Output>,
    circuits: Option<CircuitTable>,
    path: Path,
    calendar: Calendar<Step>,
    events: VecDeque<Event>,
    /// Copies that are still inside, of frames with more than one.
    copies: BTreeMap<FrameId, u16>,
    trains: u64,
    counters: Counters,
}

impl Fabric {
    /// A network of `ports` stations, whose random draws follow from `seed`.
    ///
    /// # Errors
    /// [`crate::SpecError`] where the specification is wrong or a line shall join other than two stations.
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Result<Self, crate::SpecError> {
        spec.check()?;
        if spec.topology == crate::Topology::Line && ports != 2 {
            let problem =
                format!("is a line, which joins 2 hosts, not {ports}; ask for 2, or use a star");
            return Err(crate::SpecError {
                key: "topology",
                problem,
            });
        }
        let output = |switch: &crate::Switch| match switch.buffer {
            Limit::Cells(limit) => {
                Output::Cells(CellOutput::new(spec.line.unit_time(CELL_WIRE), limit))
            }
            limit => Output::Frames(FrameOutput::new(limit)),
        };
        Ok(Self {
            ports,
            stations: (0..ports)
                .map(|_| Transmitter::new(spec.station.queue))
                .collect(),
            outputs: spec
                .switch
                .iter()
                .flat_map(|switch| (0..ports).map(move |_| output(switch)))
                .collect(),
            circuits: spec
                .circuits
                .map(|circuits| CircuitTable::new(circuits, ports)),
            path: Path::new(spec.path, seed),
            calendar: Calendar::new(),
            events: VecDeque::new(),
            copies: BTreeMap::new(),
            trains: 0,
            counters: Counters::new(ports),
            spec: spec.clone(),
        })
    }

    /// Its specification.
    pub fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn station(&mut self, port: Port) -> &mut Transmitter {
        &mut self.stations[usize::from(port.0)]
    }

    /// Does what is due until `now`.
    fn advance(&mut self, now: Instant) {
        while let Some((at, step)) = self.calendar.pop_until(now) {
            match step {
                Step::Output { frame, to, tail } => self.forward(at, frame, to, tail),
                Step::TrainEnd { output, number } => self.finish_train(at, output, number),
                Step::Deliver { frame, to } => self.deliver(at, frame, to),
                Step::Answer { frame } => self.forward(at, frame, frame.from, at),
                Step::Wake(port) => self.wake(at, port),
                Step::CircuitUp(pair) => self.circuit_up(at, pair),
            }
        }
    }

    /// The only destination, or why there is none; `None` is all others.
    fn destination(&self, frame: &Frame) -> Result<Option<Port>, (Place, Cause)> {
        let served = self.circuits.is_some();
        match (frame.to, frame.kind) {
            (To::One(to), _) if to.0 < self.ports && to != frame.from => Ok(Some(to)),
            (To::One(_), _) => Err((Place::Station, Cause::NoSuchPort)),
            (_, Kind::Resolve(_)) if served => Ok(Some(frame.from)),
            _ if served => Err((Place::Station, Cause::NoBroadcast)),
            _ => Ok(None),
        }
    }

    /// Puts a frame on its station's line and follows it to the switch, or to the other end.
    fn send(&mut self, now: Instant, frame: Frame, to: Option<Port>) {
        let time = self.spec.line.time(frame.len);
        let start = self.station(frame.from).send(now, frame.len, time);
        let arrives = start + self.spec.line.propagation();
        let Some(switch) = self.spec.switch else {
            return self.fan_out(now, frame, to, arrives + time, arrives + time);
        };
        let head = match switch.forwarding {
            Forwarding::StoreAndForward => time,
            Forwarding::CutThrough => self.spec.line.unit_time(CUT_THROUGH_HEAD).min(time),
            Forwarding::Cells => self.spec.line.unit_time(CELL_WIRE),
        };
        self.fan_out(
            now,
            frame,
            to,
            arrives + head + switch.latency,
            arrives + time + switch.latency,
        );
    }

    /// Makes the copies of a frame, each through the path elements.
    fn fan_out(
        &mut self,
        now: Instant,
        frame: Frame,
        to: Option<Port>,
        head: Instant,
        tail: Instant,
    ) {
        if let Some(to) = to {
            return self.travel(now, frame, to, head, tail);
        }
        let copies = self.ports - 1;
        if copies == 0 {
            return self.events.push_back(Event::Done { id: frame.id });
        }
        self.copies.insert(frame.id, copies);
        for to in (0..self.ports).map(Port).filter(|to| *to != frame.from) {
            self.travel(now, frame, to, head, tail);
        }
    }

    fn travel(&mut self, now: Instant, frame: Frame, to: Port, head: Instant, tail: Instant) {
        let Some(delay) = self.path.pass() else {
            return self.lose(now, frame, to, Place::Path, Cause::Random);
        };
        let (head, tail) = (head + delay, tail + delay);
        let step = match (self.spec.switch, self.spec.circuits) {
            (None, _) => Step::Deliver { frame, to },
            (Some(_), Some(circuits)) if to == frame.from => {
                return self
                    .calendar
                    .insert(tail + circuits.resolution_delay, Step::Answer { frame });
            }
            (Some(_), _) => Step::Output { frame, to, tail },
        };
        self.calendar.insert(head, step);
    }

    /// A copy has come to the output for `to`.
    fn forward(&mut self, now: Instant, frame: Frame, to: Port, tail: Instant) {
        let (time, propagation) = (self.spec.line.time(frame.len), self.spec.line.propagation());
        match &mut self.outputs[usize::from(to.0)] {
            Output::Frames(output) => match output.take(now, tail, frame.len, time) {
                Ok(departs) => self
                    .calendar
                    .insert(departs + propagation, Step::Deliver { frame, to }),
                Err(_) => self.lose(now, frame, to, Place::Output, Cause::Overflow),
            },
            Output::Cells(output) => {
                let cells = self.spec.line.framing().units(frame.len);
                self.trains += 1;
                let gap = if tail > now {
                    self.spec.line.unit_time(CELL_WIRE)
                } else {
                    Span::ZERO
                };
                let last = output.begin(now, self.trains, frame, cells, gap);
                self.calendar.insert(
                    last,
                    Step::TrainEnd {
                        output: to,
                        number: self.trains,
                    },
                );
            }
        }
    }

    fn finish_train(&mut self, now: Instant, port: Port, number: u64) {
        let Output::Cells(output) = &mut self.outputs[usize::from(port.0)] else {
            unreachable!("trains are begun at cell outputs only");
        };
        let end = output.end(now, number);
        match end.departs {
            Ok(departs) => {
                self.calendar.insert(
                    departs + self.spec.line.propagation(),
                    Step::Deliver {
                        frame: end.frame,
                        to: port,
                    },
                );
            }
            Err(cells) => {
                self.counters.cells_lost += cells;
                self.lose(now, end.frame, port, Place::Output, Cause::Overflow);
            }
        }
    }

    fn deliver(&mut self, at: Instant, frame: Frame, to: Port) {
        let counters = self.counters.port(to);
        counters.delivered += 1;
        counters.delivered_bytes += frame.len;
        self.events.push_back(Event::Deliver {
            at,
            id: frame.id,
            to,
            mark: Mark::Ok,
        });
        self.finish_copy(frame.id);
    }

    fn lose(&mut self, at: Instant, frame: Frame, to: Port, place: Place, cause: Cause) {
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
        self.finish_copy(frame.id);
    }

    fn finish_copy(&mut self, id: FrameId) {
        if let Some(left) = self.copies.get_mut(&id) {
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.copies.remove(&id);
        }
        self.events.push_back(Event::Done { id });
    }

    /// Watches a station that wants no more frames until it does.
    fn watch(&mut self, port: Port) {
        if let Some(at) = self.station(port).wakes_at() {
            self.calendar.insert(at, Step::Wake(port));
        }
    }

    fn wake(&mut self, at: Instant, port: Port) {
        if self.station(port).wake(at) {
            self.events.push_back(Event::Ready {
                at,
                port,
                class: Class::default(),
            });
        } else {
            self.watch(port);
        }
    }

    /// Asks for a circuit and sends, holds or loses the frame.
    fn send_on_circuit(&mut self, now: Instant, frame: Frame, to: Port) {
        let Some(circuits) = &mut self.circuits else {
            return self.send(now, frame, Some(to));
        };
        if to == frame.from {
            return self.send(now, frame, Some(to));
        }
        let pair = Pair::new(frame.from, to);
        let mut released = Vec::new();
        let access = circuits.access(now, pair, frame, |gone| released.push(gone));
        for gone in released {
            self.circuit_down(now, gone);
        }
        match access {
            Access::Open => self.send(now, frame, Some(to)),
            Access::Refused => self.lose(now, frame, to, Place::Station, Cause::NoCircuit),
            Access::Waits => self.station(frame.from).hold(frame.len),
            Access::Begins(up) => {
                self.station(frame.from).hold(frame.len);
                self.calendar.insert(up, Step::CircuitUp(pair));
            }
        }
    }

    fn circuit_up(&mut self, at: Instant, pair: Pair) {
        let Some(circuits) = &mut self.circuits else {
            return;
        };
        let setup = circuits.setup();
        let Some(waiting) = circuits.up(at, pair) else {
            return;
        };
        self.counters.circuit_setups += 1;
        let (a, b) = pair.ends();
        self.events.push_back(Event::State {
            at,
            change: Change::CircuitUp(a, b, setup),
        });
        for frame in waiting {
            let to = if frame.from == a { b } else { a };
            self.station(frame.from).release(frame.len);
            self.send(at, frame, Some(to));
        }
        for port in [a, b] {
            self.watch(port);
        }
    }

    fn circuit_down(&mut self, at: Instant, pair: Pair) {
        self.counters.circuit_releases += 1;
        let (a, b) = pair.ends();
        self.events.push_back(Event::State {
            at,
            change: Change::CircuitDown(a, b),
        });
    }
}

impl Network for Fabric {
    fn offer(&mut self, now: Instant, frame: Frame) -> Admission {
        self.advance(now);
        assert!(frame.from.0 < self.ports, "the sender is on the network");
        let was_ready = self.station(frame.from).ready();
        if !self.station(frame.from).admits(now, frame.len) {
            self.counters.port(frame.from).blocked += 1;
            if was_ready {
                self.watch(frame.from);
            }
            return Admission::Blocked;
        }
        let counters = self.counters.port(frame.from);
        counters.taken += 1;
        counters.taken_bytes += frame.len;
        let to = if frame.len > Bytes(self.spec.mtu) {
            Err((Place::Station, Cause::TooLong))
        } else {
            self.destination(&frame)
        };
        match to {
            Err((place, cause)) => self.lose(now, frame, frame.from, place, cause),
            Ok(None) => self.send(now, frame, None),
            Ok(Some(to)) => self.send_on_circuit(now, frame, to),
        }
        let backlog = self.station(frame.from).backlog(now);
        let counters = self.counters.port(frame.from);
        counters.backlog_bytes_max = counters.backlog_bytes_max.max(backlog);
        if was_ready && !self.station(frame.from).ready() {
            self.watch(frame.from);
        }
        Admission::Taken
    }

    fn ready(&self, port: Port, _class: Class) -> bool {
        self.stations[usize::from(port.0)].ready()
    }

    fn command(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.advance(now);
        let Command::Vc(vc) = command;
        let (VcCommand::Establish(a, b) | VcCommand::Release(a, b)) = vc;
        let ports = self.ports;
        if let Some(port) = [a, b].into_iter().find(|port| port.0 >= ports || a == b) {
            return Err(Refused::NoSuchPort { port, ports });
        }
        let circuits = self.circuits.as_mut().ok_or(Refused::NoCircuits)?;
        let pair = Pair::new(a, b);
        match vc {
            VcCommand::Establish(..) if circuits.is_permanent() => circuits.raise(now, pair),
            VcCommand::Establish(..) => {
                if let Some(up) = circuits.signal(now, pair) {
                    self.calendar.insert(up, Step::CircuitUp(pair));
                }
            }
            VcCommand::Release(..) => {
                let Some(waiting) = circuits.release(pair) else {
                    return Ok(());
                };
                self.circuit_down(now, pair);
                for frame in waiting {
                    let to = if frame.from == a { b } else { a };
                    self.station(frame.from).release(frame.len);
                    self.lose(now, frame, to, Place::Station, Cause::NoCircuit);
                    self.watch(frame.from);
                }
            }
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        if self.events.is_empty() {
            self.advance(now);
        }
        self.events.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        let told = self.events.iter().find_map(|event| match event {
            Event::Deliver { at, .. }
            | Event::Lost { at, .. }
            | Event::Ready { at, .. }
            | Event::State { at, .. } => Some(*at),
            Event::Done { .. } => None,
        });
        told.or(if self.events.is_empty() {
            self.calendar.next_at()
        } else {
            Some(Instant::START)
        })
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
