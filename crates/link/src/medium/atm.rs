//! ATM: stations that send frames as trains of cells, over circuits, through a switch that queues cells.
//!
//! Model:   station queue -> circuit -> cells on the line -> path elements -> switch (latency, output queue in cells) -> wire. A
//!          circuit is needed first; a server at the switch (on a line: at its far end) answers address requests.
//! Source:  ITU-T I.361, I.363.5; RFC 2225, RFC 2684; Q.2931 by [`crate::Circuits`]. Deviations: in `cell`, `circuit`.
//! Checked: `tests/properties.rs`, `tests/times.rs`, `tests/circuits.rs`.

use crate::calendar::Calendar;
use crate::cell::CellOutput;
use crate::circuit::{Access, CircuitTable, Pair};
use crate::edge::Edge;
use crate::medium::{Medium, Target};
use crate::network::{Cause, Change, Command, Place, Refused, VcCommand};
use crate::output::Limit;
use crate::pace::Pace;
use crate::station::Transmitter;
use crate::{Circuits, Frame, NetworkSpec, Port, Signalling, SpecError, Topology};
use sonde_units::{Bytes, Instant, Span};

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

/// ATM stations, circuits, and a switch or none.
pub(crate) struct Atm {
    pace: Pace,
    ports: u16,
    stations: Vec<Transmitter>,
    outputs: Vec<CellOutput>,
    circuits: CircuitTable,
    calendar: Calendar<Step>,
    trains: u64,
}

impl Atm {
    pub fn new(
        spec: &NetworkSpec,
        circuits: Circuits,
        ports: u16,
        _seed: u64,
    ) -> Result<Self, SpecError> {
        Self::check_ports(spec, circuits, ports)?;
        let pace = Pace::new(spec);
        let limit = match spec.switch.map(|switch| switch.buffer) {
            Some(Limit::Cells(limit)) => Some(limit),
            _ => None,
        };
        let outputs = limit.iter().flat_map(|limit| (0..ports).map(|_| *limit));
        Ok(Self {
            ports,
            stations: (0..ports)
                .map(|_| Transmitter::new(spec.station.queue))
                .collect(),
            outputs: outputs
                .map(|limit| CellOutput::new(pace.cell(), limit))
                .collect(),
            circuits: CircuitTable::new(circuits, ports),
            calendar: Calendar::new(),
            trains: 0,
            pace,
        })
    }

    fn check_ports(spec: &NetworkSpec, circuits: Circuits, ports: u16) -> Result<(), SpecError> {
        if spec.topology == Topology::Line && ports != 2 {
            let problem =
                format!("is a line, which joins 2 hosts, not {ports}; ask for 2, or use a star");
            return Err(SpecError {
                key: "topology",
                problem,
            });
        }
        if circuits.signalling == Signalling::Pvc && u64::from(ports) > circuits.table + 1 {
            let problem = format!(
                "is {}, but {ports} hosts joined by PVCs need {} each; enlarge it, or use `signalling = \"svc\"`",
                circuits.table,
                ports - 1
            );
            return Err(SpecError {
                key: "circuits.table",
                problem,
            });
        }
        Ok(())
    }

    fn station(&mut self, port: Port) -> &mut Transmitter {
        &mut self.stations[usize::from(port.0)]
    }

    /// Puts a frame on its station's line and follows it to the switch, or to the other end.
    fn send(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge) {
        let time = self.pace.time(frame.len);
        let start = self.station(frame.from).send(now, frame.len, time);
        let (head, latency) = self.pace.forwarding(time);
        let arrives = start + self.pace.propagation() + latency;
        let (to, is_served) = match target {
            Target::One(to) => (to, false),
            Target::Server | Target::All => (frame.from, true),
        };
        let Some(delay) = edge.pass() else {
            return edge.lose(now, &frame, to, Place::Path, Cause::Random);
        };
        let (head, tail) = (arrives + head + delay, arrives + time + delay);
        let (at, step) = if is_served {
            let answered = tail + self.circuits.spec().resolution_delay;
            (answered, Step::Answer { frame })
        } else if self.outputs.is_empty() {
            (tail, Step::Deliver { frame, to })
        } else {
            (head, Step::Output { frame, to, tail })
        };
        self.calendar.insert(at, step);
    }

    /// The address server sends a request back: through the switch, or on a line from the other station.
    fn answer(&mut self, now: Instant, frame: Frame, edge: &mut Edge) {
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
            self.wake(now, far, edge);
        }
    }

    /// A copy has come to the output for `to`.
    fn forward(&mut self, now: Instant, frame: Frame, to: Port, tail: Instant) {
        let cells = self.pace.cells(frame.len);
        self.trains += 1;
        // What the server sends is there at once.
        let gap = if tail > now {
            self.pace.cell()
        } else {
            Span::ZERO
        };
        let (output, number) = (to, self.trains);
        let last = self.outputs[usize::from(to.0)].begin(now, number, frame, cells, gap);
        self.calendar
            .insert(last, Step::TrainEnd { output, number });
    }

    fn finish_train(&mut self, now: Instant, port: Port, number: u64, edge: &mut Edge) {
        let end = self.outputs[usize::from(port.0)].end(now, number);
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
                edge.counters.cells_lost += cells;
                edge.lose(now, &end.frame, port, Place::Output, Cause::Overflow);
            }
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

    /// Asks for a circuit and sends, holds or loses the frame.
    fn send_on_circuit(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        let pair = Pair::new(frame.from, to);
        let mut released = Vec::new();
        let access = self
            .circuits
            .access(now, pair, frame, |gone| released.push(gone));
        for gone in released {
            Self::circuit_down(now, gone, edge);
        }
        match access {
            Access::Open => self.send(now, frame, Target::One(to), edge),
            Access::Refused => edge.lose(now, &frame, to, Place::Station, Cause::NoCircuit),
            Access::Waits => self.station(frame.from).hold(frame.len),
            Access::Begins(up) => {
                self.station(frame.from).hold(frame.len);
                self.calendar.insert(up, Step::CircuitUp(pair));
            }
        }
    }

    fn circuit_up(&mut self, at: Instant, pair: Pair, edge: &mut Edge) {
        let setup = self.circuits.spec().setup;
        let Some(waiting) = self.circuits.up(at, pair) else {
            return;
        };
        edge.counters.circuit_setups += 1;
        let (a, b) = pair.ends();
        edge.change(at, Change::CircuitUp(a, b, setup));
        for frame in waiting {
            let to = if frame.from == a { b } else { a };
            self.station(frame.from).release(frame.len);
            self.send(at, frame, Target::One(to), edge);
        }
        for port in [a, b] {
            self.wake(at, port, edge);
        }
    }

    fn circuit_down(at: Instant, pair: Pair, edge: &mut Edge) {
        edge.counters.circuit_releases += 1;
        let (a, b) = pair.ends();
        edge.change(at, Change::CircuitDown(a, b));
    }

    fn establish(&mut self, now: Instant, pair: Pair, edge: &mut Edge) -> Result<(), Refused> {
        if self.circuits.is_permanent() {
            self.circuits.raise(now, pair);
            return Ok(());
        }
        let table = self.circuits.spec().table;
        let mut released = Vec::new();
        let up = self
            .circuits
            .signal(now, pair, |gone| released.push(gone))
            .map_err(|port| Refused::TableFull { port, table })?;
        for gone in released {
            Self::circuit_down(now, gone, edge);
        }
        if let Some(up) = up {
            self.calendar.insert(up, Step::CircuitUp(pair));
        }
        Ok(())
    }

    fn release(&mut self, now: Instant, pair: Pair, edge: &mut Edge) {
        let Some(waiting) = self.circuits.release(pair) else {
            return;
        };
        Self::circuit_down(now, pair, edge);
        let (a, b) = pair.ends();
        for frame in waiting {
            let to = if frame.from == a { b } else { a };
            self.station(frame.from).release(frame.len);
            edge.lose(now, &frame, to, Place::Station, Cause::NoCircuit);
        }
        for port in [a, b] {
            self.wake(now, port, edge);
        }
    }
}

impl Medium for Atm {
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
        match target {
            Target::One(to) => self.send_on_circuit(now, frame, to, edge),
            target => self.send(now, frame, target, edge),
        }
        if was_ready && !self.ready(from) {
            self.wake(now, from, edge);
        }
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        if frame.from.0 < self.ports {
            return self.send(now, frame, Target::One(to), edge);
        }
        if !self.outputs.is_empty() {
            self.forward(now, frame, to, now);
        }
    }

    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused> {
        match command {
            Command::Vc(VcCommand::Establish(a, b)) => self.establish(now, Pair::new(a, b), edge),
            Command::Vc(VcCommand::Release(a, b)) => {
                self.release(now, Pair::new(a, b), edge);
                Ok(())
            }
            _ => Err(Refused::NotHere {
                what: "such part",
                remedy: "choose another network",
            }),
        }
    }

    fn next_at(&self) -> Option<Instant> {
        self.calendar.next_at()
    }

    fn step(&mut self, edge: &mut Edge) {
        match self.calendar.pop() {
            Some((at, Step::Output { frame, to, tail })) => {
                debug_assert!(at <= tail);
                self.forward(at, frame, to, tail);
            }
            Some((at, Step::TrainEnd { output, number })) => {
                self.finish_train(at, output, number, edge);
            }
            Some((at, Step::Deliver { frame, to })) => edge.deliver(at, &frame, to),
            Some((at, Step::Answer { frame })) => self.answer(at, frame, edge),
            Some((at, Step::Wake(port))) => self.wake(at, port, edge),
            Some((at, Step::CircuitUp(pair))) => self.circuit_up(at, pair, edge),
            None => {}
        }
    }
}
