//! ATM: stations that send frames as trains of cells, over circuits, through switches that queue cells.
//!
//! Model:   station queue -> circuit -> cells on the line -> path elements -> switch (latency, output queue in cells) -> wire. A
//!          circuit is needed first; a server at the switch (on a line: at its far end) answers address requests, and with
//!          LAN emulation carries first frames and those to all. Where the cells of a frame cannot fare differently but by
//!          tail drop they are handled as one train ([`trains`]), else each alone ([`cells`]).
//! Source:  ITU-T I.361, I.363.5; RFC 2225, RFC 2684; Q.2931 by [`crate::Circuits`]; ATM Forum LANE 1.0. Deviations: in
//!          `cell`, `circuit` and the modules here.
//! Checked: `tests/properties.rs`, `tests/times.rs`, `tests/circuits.rs`, `tests/atm/`.

mod abr;
mod cells;
mod gcra;
mod lane;
mod pdu;
mod permanent;
mod queue;
mod route;
pub(crate) mod spec;
mod trains;
mod uplink;

use crate::calendar::Calendar;
use crate::circuit::{Access, CircuitTable, Pair};
use crate::edge::Edge;
use crate::graph::is_of_switches;
use crate::medium::{GHOSTS_MAX, Medium, Target};
use crate::network::{Cause, Change, Command, Place, Refused, VcCommand};
use crate::output::Limit;
use crate::{
    Circuits, Encapsulation, Fault, Frame, Framing, NetworkSpec, Port, Signalling, SpecError,
    Topology,
};
use cells::Cells;
use lane::Emulation;
use pdu::{End, lose};
use permanent::Permanent;
use sonde_units::{Bytes, Instant, Span};
use trains::Trains;

/// What is due at a time, in the machine of trains and for both.
enum Step {
    /// A copy for `to` is at the output queue, its last bit at `tail`.
    Output {
        frame: Frame,
        to: Port,
        tail: Instant,
    },
    /// The last cell of a train is at an output.
    TrainEnd { output: Port, number: u64 },
    /// A copy has arrived, which left the output at `departs`.
    Deliver {
        frame: Frame,
        to: Port,
        departs: Instant,
    },
    /// The servers have a frame in hand.
    Answer { frame: Frame },
    /// A station's backlog may have fallen.
    Wake(Port),
    /// A circuit is set up.
    CircuitUp(Pair),
    /// The connection manager sets up a permanent circuit, in the round of this number.
    Restore(Pair, u64),
}

/// How frames travel.
enum Carrier {
    Trains(Box<Trains>),
    Cells(Box<Cells>),
}

/// ATM stations, circuits, and switches or none.
pub(crate) struct Atm {
    ports: u16,
    has_switch: bool,
    carrier: Carrier,
    circuits: CircuitTable,
    permanent: Permanent,
    emulation: Option<Emulation>,
    calendar: Calendar<Step>,
    spec: NetworkSpec,
}

impl Atm {
    pub fn new(
        spec: &NetworkSpec,
        circuits: Circuits,
        ports: u16,
        seed: u64,
    ) -> Result<Self, SpecError> {
        Self::check_ports(spec, circuits, ports)?;
        let limit = match spec.switch.map(|switch| switch.buffer) {
            Some(Limit::Cells(limit)) => Some(limit),
            _ => None,
        };
        let by_rule = spec.atm.as_ref().is_some_and(|atm| atm.needs_cells());
        let by_line = is_of_switches(spec) || !spec.port.is_empty();
        let carrier = if by_rule || by_line {
            Carrier::Cells(Box::new(Cells::new(spec, ports, seed)?))
        } else {
            Carrier::Trains(Box::new(Trains::new(spec, ports, limit)))
        };
        let is_lane = spec.line.framing() == Framing::Atm(Encapsulation::Lane);
        let lane = is_lane.then(|| spec.lane.unwrap_or_default());
        let before_setup = lane.map_or(Span::ZERO, |lane| lane.arp_delay);
        let mut atm = Self {
            ports,
            has_switch: limit.is_some(),
            carrier,
            circuits: CircuitTable::new(circuits, before_setup),
            permanent: Permanent::new(spec, circuits, ports),
            emulation: lane.map(|lane| Emulation::new(lane, ports)),
            calendar: Calendar::new(),
            spec: spec.clone(),
        };
        atm.boot();
        Ok(atm)
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
        let named = spec.pvc.iter().flat_map(|pvc| pvc.between);
        if let Some(absent) = named.max().filter(|port| *port >= ports) {
            let problem = format!(
                "joins station {absent}, but there are {ports}, counted from 0; ask for more hosts, or take it out"
            );
            return Err(SpecError {
                key: "pvc",
                problem,
            });
        }
        if circuits.signalling == Signalling::Svc {
            return Ok(());
        }
        let most = permanent::most_at_a_port(spec, circuits, ports);
        if most > circuits.table {
            let problem = format!(
                "is {}, but a host has {most} of the PVCs that join {ports} hosts; enlarge it, or use `signalling = \"svc\"`",
                circuits.table,
            );
            return Err(SpecError {
                key: "circuits.table",
                problem,
            });
        }
        Ok(())
    }

    /// Puts a frame on its station's line: to another station, or to the servers.
    fn send(&mut self, now: Instant, frame: Frame, end: End, edge: &mut Edge) {
        match &mut self.carrier {
            Carrier::Trains(trains) => {
                if let Err(lost) = trains.send(now, frame, end, &mut self.calendar, edge) {
                    self.lose_sent(now, &frame, end, lost, edge);
                }
            }
            Carrier::Cells(cells) => {
                cells.send(now, frame, end, edge);
                self.lose_failed(now, edge);
            }
        }
    }

    fn lose_sent(
        &mut self,
        now: Instant,
        frame: &Frame,
        end: End,
        why: (Place, Cause),
        edge: &mut Edge,
    ) {
        match end {
            End::Station(to) => lose(now, frame, to, why, edge),
            End::Server => self.lose_served(now, frame, why, edge),
        }
    }

    /// What was on its way to the servers and did not get there.
    fn lose_failed(&mut self, now: Instant, edge: &mut Edge) {
        while let Carrier::Cells(cells) = &mut self.carrier {
            let Some((frame, place, cause)) = cells.failed() else {
                return;
            };
            self.lose_served(now, &frame, (place, cause), edge);
        }
    }

    /// A frame is in the switch at once, for a station: from a server or from elsewhere.
    fn inject(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        match &mut self.carrier {
            Carrier::Trains(trains) => {
                trains.forward(now, frame, to, now, &mut self.calendar, edge);
            }
            Carrier::Cells(cells) => {
                let is_sent_on = self.emulation.is_some() && frame.from.0 < self.ports;
                cells.inject(now, frame, to, is_sent_on, edge);
            }
        }
    }

    /// The servers have a frame: the address server sends it back, through the switch or on a line from the other station;
    /// the broadcast server sends it on.
    fn answer(&mut self, now: Instant, frame: Frame, edge: &mut Edge) {
        if self.emulation.is_some() {
            return self.flood(now, frame, edge);
        }
        if self.has_switch {
            return self.inject(now, frame, frame.from, edge);
        }
        match &mut self.carrier {
            Carrier::Trains(trains) => {
                let far = Port(1 - frame.from.0);
                let was_ready = trains.ready(far);
                trains.answer(now, frame, far, &mut self.calendar);
                if was_ready && !trains.ready(far) {
                    self.wake(now, far, edge);
                }
            }
            Carrier::Cells(cells) => cells.answer(now, frame, edge),
        }
    }

    /// Lets a station want frames again if its backlog has fallen far enough; else comes back when it will have.
    fn wake(&mut self, now: Instant, port: Port, edge: &mut Edge) {
        match &mut self.carrier {
            Carrier::Trains(trains) => trains.wake(now, port, &mut self.calendar, edge),
            Carrier::Cells(cells) => {
                if cells.uplink(port).wake() {
                    edge.ready(now, port);
                }
            }
        }
    }

    fn hold(&mut self, port: Port, len: Bytes) {
        match &mut self.carrier {
            Carrier::Trains(trains) => trains.station(port).hold(len),
            Carrier::Cells(cells) => cells.uplink(port).hold(len),
        }
    }

    fn let_go(&mut self, port: Port, len: Bytes) {
        match &mut self.carrier {
            Carrier::Trains(trains) => trains.station(port).release(len),
            Carrier::Cells(cells) => cells.uplink(port).release(len),
        }
    }

    /// Asks for a circuit and sends, holds or loses the frame.
    fn send_on_circuit(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        let pair = Pair::new(frame.from, to);
        if self.emulation.is_some() && self.goes_by_server(now, &frame, pair, to) {
            // Refused where the table is full of calls: then this frame goes by the server all the same.
            drop(self.call(now, pair, edge));
            return self.send(now, frame, End::Server, edge);
        }
        let mut released = Vec::new();
        let access = self
            .circuits
            .access(now, pair, frame, |gone| released.push(gone));
        for gone in released {
            Self::circuit_down(now, gone, edge);
        }
        match access {
            Access::Open => self.send(now, frame, End::Station(to), edge),
            Access::Refused => {
                lose(now, &frame, to, (Place::Station, Cause::NoCircuit), edge);
            }
            Access::Waits => self.hold(frame.from, frame.len),
            Access::Begins(up) => {
                self.hold(frame.from, frame.len);
                self.calendar.insert(up, Step::CircuitUp(pair));
            }
        }
    }

    fn circuit_up(&mut self, at: Instant, pair: Pair, edge: &mut Edge) {
        if self.is_flushed_later(at, pair) {
            return;
        }
        let Some(up) = self.circuits.up(at, pair) else {
            return;
        };
        edge.counters.circuit_setups += u64::from(up.is_call);
        let (a, b) = pair.ends();
        edge.change(at, Change::CircuitUp(a, b, up.took));
        for frame in up.waiting {
            let to = if frame.from == a { b } else { a };
            self.let_go(frame.from, frame.len);
            self.send(at, frame, End::Station(to), edge);
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
            return self.configure(now, pair);
        }
        self.call(now, pair, edge)
    }

    /// Signals a circuit that nobody waits for, unless it is there.
    fn call(&mut self, now: Instant, pair: Pair, edge: &mut Edge) -> Result<(), Refused> {
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

    /// Takes a circuit down; frames that waited for it are lost, for `cause`.
    fn release(&mut self, now: Instant, pair: Pair, cause: Cause, edge: &mut Edge) {
        let Some(waiting) = self.circuits.release(pair) else {
            return;
        };
        Self::circuit_down(now, pair, edge);
        let (a, b) = pair.ends();
        for frame in waiting {
            let to = if frame.from == a { b } else { a };
            self.let_go(frame.from, frame.len);
            lose(now, &frame, to, (Place::Station, cause), edge);
        }
        for port in [a, b] {
            self.wake(now, port, edge);
        }
    }

    /// The switches start anew: what they hold is lost, and what comes until they are up; switched circuits are gone.
    fn restart(&mut self, now: Instant, down: Span, edge: &mut Edge) -> Result<(), Refused> {
        if !self.has_switch {
            return Err(Refused::NotHere {
                what: "switch",
                remedy: "choose a star, such as atm-oc3c",
            });
        }
        let up_at = now + down;
        self.circuits.take_calls_from(up_at);
        match &mut self.carrier {
            Carrier::Trains(trains) => trains.restart(now, up_at, &mut self.calendar, edge),
            Carrier::Cells(cells) => cells.restart(now, up_at, edge),
        }
        if !self.circuits.is_permanent() {
            for pair in self.circuits.pairs() {
                self.release(now, pair, Cause::Rejected, edge);
            }
        }
        Ok(())
    }

    fn fault(&mut self, now: Instant, fault: Fault, edge: &mut Edge) -> Result<(), Refused> {
        match fault {
            Fault::Rate { rate } => {
                match &mut self.carrier {
                    Carrier::Trains(trains) => {
                        let mut spec = self.spec.clone();
                        spec.line.rate = rate.or(spec.line.rate);
                        trains.pace(&spec);
                    }
                    Carrier::Cells(cells) => cells.pace(rate),
                }
                Ok(())
            }
            Fault::Restart { down } => self.restart(now, down, edge),
            Fault::Manager { up } => self.manager(now, up, edge),
            Fault::Trunk { trunk, up } => {
                let turned = match &mut self.carrier {
                    Carrier::Cells(cells) => cells.trunk(now, trunk, up, edge),
                    Carrier::Trains(_) => false,
                };
                turned.then_some(()).ok_or(Refused::NotHere {
                    what: "such trunk",
                    remedy: "choose a network of several switches, and count its trunks from 0",
                })
            }
            _ => Err(Refused::NotHere {
                what: "such part",
                remedy: "choose another network",
            }),
        }
    }
}

impl Medium for Atm {
    fn admits(&mut self, now: Instant, port: Port, len: Bytes) -> bool {
        match &mut self.carrier {
            Carrier::Trains(trains) => trains.station(port).admits(now, len),
            Carrier::Cells(cells) => cells.uplink(port).admits(len),
        }
    }

    fn ready(&self, port: Port) -> bool {
        match &self.carrier {
            Carrier::Trains(trains) => trains.ready(port),
            Carrier::Cells(cells) => cells.ready(port),
        }
    }

    fn backlog(&mut self, now: Instant, port: Port) -> Bytes {
        match &mut self.carrier {
            Carrier::Trains(trains) => trains.station(port).backlog(now),
            Carrier::Cells(cells) => cells.uplink(port).backlog(),
        }
    }

    fn take(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge) {
        let from = frame.from;
        let was_ready = self.ready(from);
        match target {
            Target::One(to) => self.send_on_circuit(now, frame, to, edge),
            Target::Server => self.send(now, frame, End::Server, edge),
            Target::All => {
                edge.copies(&frame, edge.others(&frame).len());
                self.send(now, frame, End::Server, edge);
            }
        }
        if was_ready && !self.ready(from) {
            self.wake(now, from, edge);
        }
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        if frame.from.0 >= self.ports {
            if self.has_switch {
                return self.inject(now, frame, to, edge);
            }
            return edge.lose(now, &frame, to, Place::Medium, Cause::NoSuchPort);
        }
        let waiting = match &mut self.carrier {
            Carrier::Trains(trains) => trains.station(frame.from).waiting(now) as u64,
            Carrier::Cells(cells) => cells.uplink(frame.from).ghosts,
        };
        if waiting >= GHOSTS_MAX as u64 {
            return edge.lose(now, &frame, to, Place::Station, Cause::Overflow);
        }
        self.send(now, frame, End::Station(to), edge);
    }

    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused> {
        match command {
            Command::Vc(VcCommand::Establish(a, b)) => self.establish(now, Pair::new(a, b), edge),
            Command::Vc(VcCommand::Release(a, b)) => {
                self.release(now, Pair::new(a, b), Cause::NoCircuit, edge);
                Ok(())
            }
            Command::Fault(fault) => self.fault(now, fault, edge),
            _ => Err(Refused::NotHere {
                what: "such part",
                remedy: "choose another network",
            }),
        }
    }

    fn next_at(&self) -> Option<Instant> {
        let steps = self.calendar.next_at();
        let Carrier::Cells(cells) = &self.carrier else {
            return steps;
        };
        [steps, cells.next_at()].into_iter().flatten().min()
    }

    fn step(&mut self, edge: &mut Edge) {
        if let Carrier::Cells(cells) = &mut self.carrier {
            let at = cells.next_at();
            if let Some(at) =
                at.filter(|at| self.calendar.next_at().is_none_or(|other| *at <= other))
            {
                if let Some(frame) = cells.step(edge) {
                    let answered = at + self.service_time();
                    self.calendar.insert(answered, Step::Answer { frame });
                }
                return self.lose_failed(at, edge);
            }
        }
        let Some((at, step)) = self.calendar.pop() else {
            return;
        };
        match (step, &mut self.carrier) {
            (Step::Answer { frame }, _) => self.answer(at, frame, edge),
            (Step::CircuitUp(pair), _) => self.circuit_up(at, pair, edge),
            (Step::Restore(pair, round), _) => self.restore(at, pair, round, edge),
            (step, Carrier::Trains(trains)) => trains.step(at, step, &mut self.calendar, edge),
            (_, Carrier::Cells(_)) => unreachable!("trains are not in the machine of cells"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AtmTraffic, Class, Flow, FlowCounters, FrameId, Law, named};
    use sonde_units::Ratio;

    /// `count` frames of background traffic from `from` to station 2 at once: delivered, lost at the station.
    fn background(every_cell: bool, from: u16, count: u64) -> (u64, u64) {
        let mut spec = named("atm-oc3c").expect("it is in the catalogue");
        spec.atm = Some(AtmTraffic {
            every_cell,
            ..AtmTraffic::default()
        });
        let circuits = spec.circuits.expect("it has circuits");
        let mut atm = Atm::new(&spec, circuits, 3, 1).expect("it can be built");
        let mut edge = Edge::new(&spec, 3, 1);
        edge.counters.flows.push(FlowCounters {
            flow: Flow {
                number: 0,
                from: None,
                to: Port(2),
                rho: Ratio::ONE,
                law: Law::Constant,
                size: Bytes::ZERO,
                class: Class(0),
            },
            since: Instant::START,
            until: None,
            frame_time: Span::ZERO,
            sent: count,
            sent_bytes: Bytes::ZERO,
            arrived: 0,
            arrived_bytes: Bytes::ZERO,
            lost: 0,
        });
        for number in 0..count {
            let frame =
                Frame::datagram(FrameId(1 << 63 | number), Port(from), Port(2), Bytes(9_180));
            atm.background(Instant::START, frame, Port(2), &mut edge);
        }
        // It takes nothing of the room of the host.
        assert!(atm.ready(Port(0)) && atm.admits(Instant::START, Port(0), Bytes(256 << 10)));
        while atm.next_at().is_some() {
            atm.step(&mut edge);
        }
        let counted = edge.counters.flows[0];
        (counted.arrived, counted.lost)
    }

    #[test]
    fn background_traffic_shares_lines_but_not_room() {
        for every_cell in [false, true] {
            assert_eq!(background(every_cell, 0, 100), (100, 0));
            // One is on the line while the others wait.
            assert_eq!(background(every_cell, 0, 5_000), (4_097, 903));
            // From elsewhere: straight into the output, which has room for 13,312 cells.
            assert_eq!(background(every_cell, 3, 69), (69, 0));
            assert!(background(every_cell, 3, 80).1 > 0);
        }
    }
}
