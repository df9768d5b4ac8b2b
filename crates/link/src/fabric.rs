//! The network: stations on lines, path elements, and a switch or none.
//!
//! Model:   station queue -> serializer -> wire -> path elements -> switch (latency, output queue, serializer) -> wire. A
//!          frame's times are settled where it meets a queue: at the station when it is offered, at the output when it
//!          arrives there. A frame above the MTU is lost before the queue. Frames to all are copied at the switch, or at the station where there is none. On ATM a frame is a train
//!          of cells, a circuit is needed first, and a server at the switch (on a line: at its far end) answers address
//!          requests.
//! Source:  the modules it is made of. Deviations: stations receive without limit; that is the host's matter.
//! Checked: `tests/properties.rs` (conservation, order, never early, never above the rate, poll times do not matter);
//!          `tests/times.rs` (closed forms of one-way times, ceilings, tail drop); `tests/circuits.rs`.

use crate::calendar::Calendar;
use crate::cell::CellOutput;
use crate::circuit::{Access, CircuitTable, Pair};
use crate::network::{
    Admission, Cause, Change, Command, Event, Mark, Network, Place, Refused, VcCommand,
};
use crate::output::{FrameOutput, Limit};
use crate::pace::Pace;
use crate::path::Path;
use crate::station::Transmitter;
use crate::{Class, Counters, Frame, FrameId, Kind, NetworkSpec, Port, Signalling, SpecError, To};
use sonde_units::{Bytes, Instant, Span};
use std::collections::{BTreeMap, VecDeque};

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
    pace: Pace,
    ports: u16,
    /// The latest time that was told.
    now: Instant,
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
    /// [`SpecError`] where the specification is wrong, a line shall join other than two stations, or a mesh of PVCs does
    /// not fit into the stations' tables.
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Result<Self, SpecError> {
        spec.check()?;
        Self::check_ports(spec, ports)?;
        let pace = Pace::new(spec);
        let output = |switch: &crate::Switch| match switch.buffer {
            Limit::Cells(limit) => Output::Cells(CellOutput::new(pace.cell(), limit)),
            limit => Output::Frames(FrameOutput::new(limit)),
        };
        Ok(Self {
            ports,
            now: Instant::START,
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
            pace,
        })
    }

    fn check_ports(spec: &NetworkSpec, ports: u16) -> Result<(), SpecError> {
        if spec.topology == crate::Topology::Line && ports != 2 {
            let problem =
                format!("is a line, which joins 2 hosts, not {ports}; ask for 2, or use a star");
            return Err(SpecError {
                key: "topology",
                problem,
            });
        }
        match spec.circuits {
            Some(circuits)
                if circuits.signalling == Signalling::Pvc
                    && u64::from(ports) > circuits.table + 1 =>
            {
                let problem = format!(
                    "is {}, but {ports} hosts joined by PVCs need {} each; enlarge it, or use `signalling = \"svc\"`",
                    circuits.table,
                    ports - 1
                );
                Err(SpecError {
                    key: "circuits.table",
                    problem,
                })
            }
            _ => Ok(()),
        }
    }

    /// Its specification.
    pub fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn station(&mut self, port: Port) -> &mut Transmitter {
        &mut self.stations[usize::from(port.0)]
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
        while let Some((at, step)) = self.calendar.pop_until(now) {
            match step {
                Step::Output { frame, to, tail } => self.forward(at, frame, to, tail),
                Step::TrainEnd { output, number } => self.finish_train(at, output, number),
                Step::Deliver { frame, to } => self.deliver(at, frame, to),
                Step::Answer { frame } => self.answer(at, frame),
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
        let time = self.pace.time(frame.len);
        let start = self.station(frame.from).send(now, frame.len, time);
        let (head, latency) = self.pace.forwarding(time);
        let arrives = start + self.pace.propagation() + latency;
        self.fan_out(now, frame, to, arrives + head, arrives + time);
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
        let (at, step) = match self.circuits.as_ref().map(CircuitTable::spec) {
            Some(circuits) if to == frame.from => {
                (tail + circuits.resolution_delay, Step::Answer { frame })
            }
            _ if self.outputs.is_empty() => (tail, Step::Deliver { frame, to }),
            _ => (head, Step::Output { frame, to, tail }),
        };
        self.calendar.insert(at, step);
    }

    /// The address server sends a request back: through the switch, or on a line from the other station.
    fn answer(&mut self, now: Instant, frame: Frame) {
        if !self.outputs.is_empty() {
            return self.forward(now, frame, frame.from, now);
        }
        let far = Port(1 - frame.from.0);
        let time = self.pace.time(frame.len);
        let was_ready = self.station(far).ready();
        let start = self.station(far).send(now, frame.len, time);
        let to = frame.from;
        self.calendar.insert(
            start + time + self.pace.propagation(),
            Step::Deliver { frame, to },
        );
        if was_ready && !self.station(far).ready() {
            self.wake(now, far);
        }
    }

    /// A copy has come to the output for `to`.
    fn forward(&mut self, now: Instant, frame: Frame, to: Port, tail: Instant) {
        let (time, propagation) = (self.pace.time(frame.len), self.pace.propagation());
        match &mut self.outputs[usize::from(to.0)] {
            Output::Frames(output) => match output.take(now, tail, frame.len, time) {
                Ok(departs) => self
                    .calendar
                    .insert(departs + propagation, Step::Deliver { frame, to }),
                Err(_) => self.lose(now, frame, to, Place::Output, Cause::Overflow),
            },
            Output::Cells(output) => {
                let cells = self.pace.cells(frame.len);
                self.trains += 1;
                // What the server sends is there at once.
                let gap = if tail > now {
                    self.pace.cell()
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
                    departs + self.pace.propagation(),
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

    /// Lets a station want frames again if its backlog has fallen far enough; else comes back when it will have.
    fn wake(&mut self, now: Instant, port: Port) {
        let station = self.station(port);
        if station.wake(now) {
            self.events.push_back(Event::Ready {
                at: now,
                port,
                class: Class::default(),
            });
        } else if let Some(at) = station.wakes_at() {
            self.calendar.insert(at, Step::Wake(port));
        }
    }

    /// Asks for a circuit and sends, holds or loses the frame.
    fn send_on_circuit(&mut self, now: Instant, frame: Frame, to: Port) {
        let Some(circuits) = self.circuits.as_mut().filter(|_| to != frame.from) else {
            return self.send(now, frame, Some(to));
        };
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
        let setup = circuits.spec().setup;
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
            self.wake(at, port);
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
        self.enter(now);
        assert!(frame.from.0 < self.ports, "the sender is on the network");
        let is_long = frame.len > Bytes(self.spec.mtu);
        let was_ready = self.station(frame.from).ready();
        if !is_long && !self.station(frame.from).admits(now, frame.len) {
            self.counters.port(frame.from).blocked += 1;
            return Admission::Blocked;
        }
        let counters = self.counters.port(frame.from);
        counters.taken += 1;
        counters.taken_bytes += frame.len;
        let to = if is_long {
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
            self.wake(now, frame.from);
        }
        Admission::Taken
    }

    fn ready(&self, port: Port, _class: Class) -> bool {
        self.stations[usize::from(port.0)].ready()
    }

    fn command(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.enter(now);
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
                let table = circuits.spec().table;
                let mut released = Vec::new();
                let up = circuits
                    .signal(now, pair, |gone| released.push(gone))
                    .map_err(|port| Refused::TableFull { port, table })?;
                for gone in released {
                    self.circuit_down(now, gone);
                }
                if let Some(up) = up {
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
                }
                for port in [a, b] {
                    self.wake(now, port);
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
        if self.events.is_empty() {
            self.calendar.next_at()
        } else {
            Some(self.now)
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
