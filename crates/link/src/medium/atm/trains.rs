//! The machine of trains: all cells of a frame at once, where that is the same as each alone.
//!
//! Model:   a station sends whole frames, first in, first out ([`Transmitter`]); outputs take trains ([`CellOutput`]).
//! Source:  as [`CellOutput`]. Deviations: after a change of rate an output reckons what waits by the new time of a cell.
//! Checked: `trains_equal_the_plain_cell_machine`; `every_cell_alone_equals_trains` in `tests/atm/discard.rs`.

use super::Step;
use super::pdu::{End, lose, room};
use crate::calendar::Calendar;
use crate::cell::CellOutput;
use crate::edge::Edge;
use crate::network::{Cause, Place};
use crate::pace::Pace;
use crate::station::Transmitter;
use crate::{Frame, NetworkSpec, Port};
use sonde_units::{Instant, Span};

/// Stations and outputs.
pub(crate) struct Trains {
    pace: Pace,
    service: Span,
    stations: Vec<Transmitter>,
    outputs: Vec<CellOutput>,
    trains: u64,
    down_until: Instant,
    /// Ports set to the other encapsulation.
    mismatched: Vec<u16>,
}

impl Trains {
    pub fn new(spec: &NetworkSpec, ports: u16, limit: Option<u64>) -> Self {
        let pace = Pace::new(spec);
        let outputs = limit.iter().flat_map(|limit| (0..ports).map(|_| *limit));
        let lane = spec.lane.unwrap_or_default();
        let resolution = spec.circuits.map(|circuits| circuits.resolution_delay);
        Self {
            stations: (0..ports)
                .map(|_| Transmitter::new(spec.station.queue))
                .collect(),
            outputs: outputs
                .map(|limit| CellOutput::new(pace.cell(), limit))
                .collect(),
            service: if spec.broadcasts() {
                lane.bus_delay
            } else {
                resolution.unwrap_or(Span::ZERO)
            },
            trains: 0,
            down_until: Instant::START,
            mismatched: spec
                .atm
                .as_ref()
                .map_or_else(Vec::new, |atm| atm.mismatched.clone()),
            pace,
        }
    }

    pub fn station(&mut self, port: Port) -> &mut Transmitter {
        &mut self.stations[usize::from(port.0)]
    }

    pub fn ready(&self, port: Port) -> bool {
        self.stations[usize::from(port.0)].ready()
    }

    /// The lines have another rate, for the frames that come now.
    pub fn pace(&mut self, spec: &NetworkSpec) {
        self.pace = Pace::new(spec);
        for output in &mut self.outputs {
            output.pace(self.pace.cell());
        }
    }

    /// Puts a frame on its station's line and follows it to the switch, or to the other end.
    ///
    /// # Errors
    /// Where and why it is lost on the way.
    pub fn send(
        &mut self,
        now: Instant,
        frame: Frame,
        end: End,
        calendar: &mut Calendar<Step>,
        edge: &mut Edge,
    ) -> Result<(), (Place, Cause)> {
        let time = self.pace.time(frame.len);
        let start = self.station(frame.from).send(now, room(&frame), time);
        let (head, latency) = self.pace.forwarding(time);
        let arrives = start + self.pace.propagation() + latency;
        let delay = edge.pass().ok_or((Place::Path, Cause::Random))?;
        let (head, tail) = (arrives + head + delay, arrives + time + delay);
        let (at, step) = match end {
            End::Server => (tail + self.service, Step::Answer { frame }),
            End::Station(to) if self.outputs.is_empty() => {
                let departs = tail;
                (tail, Step::Deliver { frame, to, departs })
            }
            End::Station(to) => (head, Step::Output { frame, to, tail }),
        };
        calendar.insert(at, step);
        Ok(())
    }

    /// The station at the far end of a line sends a request back.
    pub fn answer(&mut self, now: Instant, frame: Frame, far: Port, calendar: &mut Calendar<Step>) {
        let time = self.pace.time(frame.len);
        // The server's frame takes a turn on the line, but no room of the host's.
        let lent = self.station(far).lend(now, time, Span::secs(60));
        let at = lent.unwrap_or(now) + time + self.pace.propagation();
        let arrival = Step::Deliver {
            frame,
            to: frame.from,
            departs: at,
        };
        calendar.insert(at, arrival);
    }

    /// A copy has come to the output for `to`.
    pub fn forward(
        &mut self,
        now: Instant,
        frame: Frame,
        to: Port,
        tail: Instant,
        calendar: &mut Calendar<Step>,
        edge: &mut Edge,
    ) {
        if now < self.down_until {
            return lose(now, &frame, to, (Place::Output, Cause::Restart), edge);
        }
        let cells = self.pace.cells(frame.len);
        self.trains += 1;
        // What a server sends is there at once.
        let gap = if tail > now {
            self.pace.cell()
        } else {
            Span::ZERO
        };
        let (output, number) = (to, self.trains);
        let last = self.outputs[usize::from(to.0)].begin(now, number, frame, cells, gap);
        if last == now && cells == 1 {
            // It is there as a whole, which saves a step for each of 300,000 background cells a second.
            return self.finish_train(now, to, number, calendar, edge);
        }
        calendar.insert(last, Step::TrainEnd { output, number });
    }

    fn finish_train(
        &mut self,
        now: Instant,
        port: Port,
        number: u64,
        calendar: &mut Calendar<Step>,
        edge: &mut Edge,
    ) {
        let end = self.outputs[usize::from(port.0)].end(now, number);
        match end.departs {
            Ok(departs) => {
                let arrival = Step::Deliver {
                    frame: end.frame,
                    to: port,
                    departs,
                };
                calendar.insert(departs + self.pace.propagation(), arrival);
            }
            Err(cells) => {
                edge.counters.cells_lost += cells;
                edge.counters.cells_wasted += self.pace.cells(end.frame.len) - cells;
                *edge.counters.cells_lost_at.entry(port).or_default() += cells;
                let why = (Place::Output, Cause::Overflow);
                lose(now, &end.frame, port, why, edge);
            }
        }
    }

    /// Lets a station want frames again if its backlog has fallen far enough; else comes back when it will have.
    pub fn wake(
        &mut self,
        now: Instant,
        port: Port,
        calendar: &mut Calendar<Step>,
        edge: &mut Edge,
    ) {
        let station = self.station(port);
        if station.wake(now) {
            edge.ready(now, port);
        } else if let Some(at) = station.wakes_at() {
            calendar.insert(at, Step::Wake(port));
        }
    }

    /// All cells in the switch are lost, and those that come until `up_at`.
    pub fn restart(
        &mut self,
        now: Instant,
        up_at: Instant,
        calendar: &mut Calendar<Step>,
        edge: &mut Edge,
    ) {
        self.down_until = up_at;
        let mut kept = Vec::new();
        while let Some((at, step)) = calendar.pop() {
            match step {
                Step::TrainEnd { .. } => {}
                Step::Deliver {
                    frame, to, departs, ..
                } if departs > now && !self.outputs.is_empty() => {
                    lose(now, &frame, to, (Place::Output, Cause::Restart), edge);
                }
                step => kept.push((at, step)),
            }
        }
        for (at, step) in kept {
            calendar.insert(at, step);
        }
        for (port, output) in (0..).map(Port).zip(&mut self.outputs) {
            for frame in output.clear(now) {
                lose(now, &frame, port, (Place::Output, Cause::Restart), edge);
            }
        }
    }

    /// Does what is due at `at`.
    pub fn step(
        &mut self,
        at: Instant,
        step: Step,
        calendar: &mut Calendar<Step>,
        edge: &mut Edge,
    ) {
        match step {
            Step::Output { frame, to, tail } => {
                debug_assert!(at <= tail);
                self.forward(at, frame, to, tail, calendar, edge);
            }
            Step::TrainEnd { output, number } => {
                self.finish_train(at, output, number, calendar, edge);
            }
            Step::Deliver { frame, to, .. } => {
                if understands(&self.mismatched, &frame, to) {
                    edge.deliver(at, &frame, to);
                } else {
                    lose(at, &frame, to, (Place::Receiver, Cause::Rejected), edge);
                }
            }
            Step::Wake(port) => self.wake(at, port, calendar, edge),
            Step::Answer { .. } | Step::CircuitUp(_) | Step::Restore(..) => {
                unreachable!("circuits and servers are not the trains'")
            }
        }
    }
}

/// Whether `to` reads the encapsulation of a frame: both ends are set to the same.
pub(super) fn understands(mismatched: &[u16], frame: &Frame, to: Port) -> bool {
    mismatched.is_empty() || mismatched.contains(&frame.from.0) == mismatched.contains(&to.0)
}
