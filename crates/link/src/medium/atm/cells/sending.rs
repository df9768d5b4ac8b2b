//! The sending side of the machine of cells: circuits, stations' lines, management cells.
//!
//! Model:   a frame waits in the channel of its circuit; the line of its station sends one cell after the other, or whole frames
//!          where nothing can come between. Every 32nd cell of an ABR circuit is a management cell, which its destination
//!          returns.
//! Checked: `tests/atm/traffic.rs`, `tests/atm/abr.rs`.

use super::{Cells, Step, Vc};
use crate::edge::Edge;
use crate::medium::atm::abr::{Management, Source, bits_a_second};
use crate::medium::atm::gcra::{Buckets, Gcra, burst_tolerance};
use crate::medium::atm::pdu::{End, Pdu, is_ghost, lose, room_at};
use crate::medium::atm::queue::Cell;
use crate::medium::atm::route::Route;
use crate::medium::atm::spec::{Category, Contract};
use crate::network::{Cause, Place};
use crate::{CELL_WIRE, Class, Frame, Port};
use rand_core::Rng;
use sonde_units::{Instant, Ratio, Span};

impl Cells {
    /// The number of a circuit.
    fn vc(&mut self, frame: &Frame, to: Port) -> u32 {
        let key = (frame.from, to, frame.class);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let contract = self
            .traffic
            .contract
            .iter()
            .find(|contract| contract.class == frame.class.0);
        let category = contract.map_or(Category::Ubr, |contract| contract.category);
        let police = contract
            .filter(|contract| contract.police && category != Category::Abr)
            .map(|contract| buckets(contract, contract.cdvt))
            .filter(|buckets| !buckets.0.is_empty());
        let shaped = contract.is_some_and(|contract| contract.shape && contract.pcr.is_some());
        let number = self.vcs.len() as u32;
        self.vcs.push(Vc {
            rank: category as u8,
            paced: shaped || self.traffic.pcr.is_some() || category == Category::Abr,
            police,
        });
        self.numbers.insert(key, number);
        number
    }

    /// What the channel of a circuit with a rate of its own keeps to.
    fn shape(&self, port: Port, class: Class) -> (Buckets, Option<Source>) {
        let mut contracts = self.traffic.contract.iter();
        let contract = contracts.find(|contract| contract.class == class.0);
        let usable = bits_a_second(1, self.uplinks[usize::from(port.0)].cell);
        let source = contract
            .filter(|contract| contract.category == Category::Abr)
            .map(|contract| Source::new(contract, usable));
        let mut all = match (contract, &source) {
            (_, Some(source)) => Buckets(vec![source.bucket()]),
            (Some(contract), None) if contract.shape => buckets(contract, Span::ZERO),
            _ => Buckets::default(),
        };
        if let Some(pcr) = self.traffic.pcr {
            all.0.push(Gcra::new(pcr.time(CELL_WIRE), Span::ZERO));
        }
        (all, source)
    }

    pub(super) fn admit(
        &mut self,
        frame: Frame,
        end: End,
        route: Route,
        delay: Option<Span>,
    ) -> u32 {
        let to = match end {
            End::Station(to) => to,
            End::Server => frame.from,
        };
        let vc = self.vc(&frame, to);
        let cells = self.framing.units(frame.len);
        self.frames += 1;
        let pdu = Pdu {
            frame,
            end,
            vc,
            rank: self.vcs[vc as usize].rank,
            route,
            delay,
            cells,
            unsent: cells,
            alive: cells,
            head_at: Instant::START,
            order: self.frames,
            damage: None,
            told: false,
            seen: 0,
            broken: 0,
            refused: 0,
            used: 0,
            gap: Span::ZERO,
            to_come: 0,
            management: None,
        };
        self.keep(pdu)
    }

    pub(super) fn keep(&mut self, pdu: Pdu) -> u32 {
        if let Some(number) = self.unused.pop() {
            self.pdus[number as usize] = pdu;
            return number;
        }
        self.pdus.push(pdu);
        (self.pdus.len() - 1) as u32
    }

    /// Sends a frame from its station.
    pub fn send(&mut self, now: Instant, frame: Frame, end: End, edge: &mut Edge) {
        let route = match end {
            End::Station(to) => self.plan.route(frame.from, to),
            End::Server => Some(Route::default()),
        };
        let (delay, route) = match (edge.pass(), route) {
            (Some(delay), Some(route)) => (Some(delay), route),
            (None, _) => {
                self.lose(now, frame, end, (Place::Path, Cause::Random), edge);
                (None, Route::default())
            }
            (_, None) => {
                self.lose(now, frame, end, (Place::Output, Cause::LinkDown), edge);
                (None, Route::default())
            }
        };
        let number = self.admit(frame, end, route, delay);
        self.queue(now, frame.from, number, edge);
    }

    /// A frame waits for the line of `port`, and goes at once if it may.
    pub(super) fn queue(&mut self, now: Instant, port: Port, number: u32, edge: &mut Edge) {
        let pdu = &self.pdus[number as usize];
        let (vc, rank, frame) = (pdu.vc, pdu.rank, pdu.frame);
        let paced = self.vcs[vc as usize].paced;
        let place = (rank, paced.then_some(vc));
        let uplink = &mut self.uplinks[usize::from(port.0)];
        uplink.ghosts += u64::from(is_ghost(&frame));
        if !uplink.push(number, room_at(&frame, port), place) {
            let (buckets, source) = if paced {
                self.shape(port, frame.class)
            } else {
                (Buckets::default(), None)
            };
            self.uplink(port).open(number, place, buckets, source);
        }
        self.look(now, port, edge);
        self.uplink(port).settle();
    }

    /// Whether frames from one station to another wait in a channel of their own circuit.
    pub fn has_queued(&self, from: Port, to: Port) -> bool {
        let channels = self.uplinks[usize::from(from.0)].channels.iter();
        let own = channels.filter(|channel| channel.vc.is_some());
        own.filter_map(|channel| channel.frames.front())
            .any(|number| self.pdus[*number as usize].end == End::Station(to))
    }

    /// A frame is lost: told here, or by who knows for whom it was.
    pub(super) fn lose(
        &mut self,
        now: Instant,
        frame: Frame,
        end: End,
        (place, cause): (Place, Cause),
        edge: &mut Edge,
    ) {
        match end {
            End::Station(to) => lose(now, &frame, to, (place, cause), edge),
            End::Server => self.failed.push((frame, place, cause)),
        }
    }

    /// Sends from a station if its line is free, else sees to it that it is looked at when it is.
    pub(super) fn look(&mut self, now: Instant, port: Port, edge: &mut Edge) {
        let uplink = &mut self.uplinks[usize::from(port.0)];
        let Some(may) = uplink.waits_until() else {
            return;
        };
        let at = may.max(uplink.free_at).max(now);
        if at == now {
            return self.transmit(now, port, edge);
        }
        if uplink.look_at.is_none_or(|look| look > at) {
            uplink.look_at = Some(at);
            self.push(at, Step::Line(port));
        }
    }

    /// The line of a station sends one cell.
    fn transmit(&mut self, now: Instant, port: Port, edge: &mut Edge) {
        let uplink = &mut self.uplinks[usize::from(port.0)];
        let index = uplink.next(now).expect("a circuit may send");
        let channel = &mut uplink.channels[index];
        let number = channel.frames[0];
        channel.buckets.take(now);
        if let Some(management) = channel.source.as_mut().and_then(Source::manage) {
            uplink.free_at = now + uplink.cell;
            self.manage(port, number, management);
            return self.look(now, port, edge);
        }
        let pdu = &mut self.pdus[number as usize];
        uplink.free_at = now + uplink.cell;
        let on_line = uplink.free_at + uplink.way + self.plan.latency();
        if pdu.unsent == pdu.cells {
            pdu.head_at = on_line + pdu.delay.unwrap_or_default();
            uplink.start(room_at(&pdu.frame, port));
            uplink.ghosts -= u64::from(is_ghost(&pdu.frame));
            if uplink.wake() {
                edge.ready(now, port);
            }
        }
        if self.is_whole {
            return self.transmit_whole(now, port, index, number, edge);
        }
        pdu.unsent -= 1;
        let last = pdu.unsent == 0;
        if last {
            uplink.channels[index].frames.pop_front();
        }
        let Some(delay) = pdu.delay else {
            self.forget(number, edge);
            return self.look(now, port, edge);
        };
        let arrives = on_line + delay;
        let lost = self.loses_cell();
        let pdu = &mut self.pdus[number as usize];
        let cell = Cell {
            pdu: number,
            vc: pdu.vc,
            hop: 0,
            rank: pdu.rank,
            last,
        };
        if pdu.route.len() > 0 || last || lost {
            self.push(arrives, Step::Arrive(cell, lost));
        } else {
            pdu.alive -= 1;
        }
        self.look(now, port, edge);
    }

    /// Whether the line to the switch loses the next cell.
    fn loses_cell(&mut self) -> bool {
        self.hits(self.traffic.cell_loss)
    }

    /// Whether something of this probability happens.
    pub(super) fn hits(&mut self, share: Ratio) -> bool {
        !share.is_zero() && share.hit(self.random.next_u64())
    }

    /// The line of a station sends a frame that nothing can interrupt: its cells come one after the other, each bringing the
    /// next.
    fn transmit_whole(
        &mut self,
        now: Instant,
        port: Port,
        channel: usize,
        number: u32,
        edge: &mut Edge,
    ) {
        let uplink = &mut self.uplinks[usize::from(port.0)];
        let pdu = &mut self.pdus[number as usize];
        uplink.channels[channel].frames.pop_front();
        uplink.free_at = now + uplink.cell * pdu.cells;
        (pdu.unsent, pdu.gap) = (0, uplink.cell);
        let (first, vc, rank) = (pdu.head_at, pdu.vc, pdu.rank);
        if pdu.delay.is_none() {
            pdu.alive = 1;
            self.forget(number, edge);
            return self.look(now, port, edge);
        }
        pdu.to_come = pdu.cells - 1;
        let cell = Cell {
            pdu: number,
            vc,
            hop: 0,
            rank,
            last: pdu.to_come == 0,
        };
        let lost = self.loses_cell();
        self.push(first, Step::Arrive(cell, lost));
        self.look(now, port, edge);
    }

    /// The cell of the same frame that comes after one that is there.
    pub(super) fn next_cell(&mut self, at: Instant, cell: Cell) -> Option<(Instant, Step)> {
        let pdu = &mut self.pdus[cell.pdu as usize];
        if cell.hop > 0 || pdu.to_come == 0 {
            return None;
        }
        pdu.to_come -= 1;
        let (next, last) = (at + pdu.gap, pdu.to_come == 0);
        let lost = self.loses_cell();
        Some((next, Step::Arrive(Cell { last, ..cell }, lost)))
    }

    /// A management cell goes before the next one of frame `number`, on the line of `port` that is free after it.
    fn manage(&mut self, port: Port, number: u32, management: Management) {
        let uplink = &self.uplinks[usize::from(port.0)];
        let pdu = &self.pdus[number as usize];
        let arrives = uplink.free_at + uplink.way + self.plan.latency();
        let arrives = arrives + pdu.delay.unwrap_or_default();
        let (vc, rank) = (pdu.vc, pdu.rank);
        let cell = Pdu {
            management: Some(management),
            cells: 1,
            unsent: 0,
            alive: 1,
            head_at: arrives,
            damage: None,
            told: false,
            ..*pdu
        };
        let cell = Cell {
            pdu: self.keep(cell),
            vc,
            hop: 0,
            rank,
            last: true,
        };
        self.push(arrives, Step::Arrive(cell, false));
    }

    /// A management cell has come to its destination, which returns it: nothing waits before it on the way back.
    pub(super) fn give_back(&mut self, at: Instant, number: u32) {
        let pdu = &self.pdus[number as usize];
        let port = pdu.frame.from;
        let uplink = &self.uplinks[usize::from(port.0)];
        let first = uplink.cell + uplink.way + self.plan.latency();
        let hops = (0..pdu.route.len() as u8).map(|hop| {
            let output = &self.outputs[usize::from(pdu.route.hop(hop))];
            output.cell_time + output.way
        });
        let back = hops.fold(first, |sum, hop| sum + hop);
        self.push(at + back, Step::Feedback(number));
    }

    /// A management cell is back.
    pub(super) fn hear(&mut self, now: Instant, number: u32, edge: &mut Edge) {
        let pdu = &self.pdus[number as usize];
        let (port, vc, management) = (pdu.frame.from, pdu.vc, pdu.management);
        self.forget(number, edge);
        let mut channels = self.uplink(port).channels.iter_mut();
        let Some(channel) = channels.find(|channel| channel.vc == Some(vc)) else {
            return;
        };
        if let (Some(source), Some(management)) = (&mut channel.source, management) {
            source.hear(management);
            channel.buckets.0[0].pace(source.gap());
        }
        self.look(now, port, edge);
    }
}

/// The buckets of a contract: peak, and sustained where it has one.
fn buckets(contract: &Contract, tolerance: Span) -> Buckets {
    let Some(pcr) = contract.pcr else {
        return Buckets::default();
    };
    let peak = pcr.time(CELL_WIRE);
    let mut all = vec![Gcra::new(peak, tolerance)];
    if let (Some(scr), Some(mbs)) = (contract.scr, contract.mbs) {
        let sustained = scr.time(CELL_WIRE);
        let early = burst_tolerance(peak, sustained, mbs) + tolerance;
        all.push(Gcra::new(sustained, early));
    }
    Buckets(all)
}
