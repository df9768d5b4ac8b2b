//! The machine that handles every cell alone: stations, outputs, and the frames whose cells are on their way.
//!
//! Model:   a station's line sends a cell at a time ([`Uplink`]); it is at the first output of its way after line, path
//!          elements and switch, and goes through one output after the other ([`Output`]), each a line and perhaps another
//!          switch. At one time departures come before arrivals, and arrivals in the order in which their frames' first
//!          cells came. A frame that lost a cell is told lost when its last cell is there (or is found missing); its other
//!          cells go on and use the lines. The last cell of a whole frame delivers it.
//! Source:  ITU-T I.361, I.363.5, I.371. Deviations: a lost last cell does not take the next frame with it (AAL5 joins the
//!          two and rejects both); cells of one frame are never out of order.
//! Units:   picoseconds; the time of a cell rounds up.
//! Checked: `every_cell_alone_equals_trains` in `tests/atm/discard.rs`.

mod sending;

use super::gcra::Buckets;
use super::pdu::{End, Pdu, lose};
use super::queue::{Cell, Output, Pool, Rules, Verdict};
use super::route::{Plan, Route};
use super::spec::{AtmTraffic, Category};
use super::trains::understands;
use super::uplink::Uplink;
use crate::edge::Edge;
use crate::network::{Cause, Place};
use crate::{Class, Frame, Framing, NetworkSpec, Port, SpecError};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_units::{BitRate, Instant, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Sets the draws of this machine apart from those of others of the same seed.
const DRAWS: u64 = 0x0061_746d_2063_656c;

/// What is due, in the order in which it is done at one time.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A cell has left an output.
    Depart(u16),
    /// A cell has come to the next output, or to its end; or it would have, had it not been lost.
    Arrive(Cell, bool),
    /// A station's line is free, or a circuit may send again.
    Line(Port),
    /// A management cell of a circuit is back at its station.
    Feedback(u32),
}

/// A step and its place in time: departures first, then arrivals in the order in which their frames came.
#[derive(Clone, Copy)]
struct Entry {
    key: (u64, u64, u64),
    step: Step,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A circuit in one direction and class.
struct Vc {
    rank: u8,
    /// The number of its channel, where it has a rate of its own; and its place in the switch's police.
    paced: bool,
    police: Option<Buckets>,
}

/// Stations, outputs and cells.
pub(crate) struct Cells {
    framing: Framing,
    plan: Plan,
    traffic: AtmTraffic,
    rules: Rules,
    uplinks: Vec<Uplink>,
    outputs: Vec<Output>,
    pools: Vec<Pool>,
    pdus: Vec<Pdu>,
    unused: Vec<u32>,
    vcs: Vec<Vc>,
    numbers: BTreeMap<(Port, Port, Class), u32>,
    steps: BinaryHeap<Reverse<Entry>>,
    /// Whether stations send whole frames, for no circuit has a rate or a rank of its own.
    is_whole: bool,
    frames: u64,
    down_until: Instant,
    random: Pcg64Mcg,
    /// What was on its way to the servers and is lost.
    failed: Vec<(Frame, Place, Cause)>,
}

impl Cells {
    /// For `ports` stations.
    ///
    /// # Errors
    /// Where the switches cannot join them.
    pub fn new(spec: &NetworkSpec, ports: u16, seed: u64) -> Result<Self, SpecError> {
        let plan = Plan::new(spec, ports)?;
        let traffic = spec.atm.clone().unwrap_or_default();
        let (outputs, pools) = plan.outputs(&traffic);
        let uplink = |port| Uplink::new(spec.station.queue, plan.uplink(Port(port)));
        Ok(Self {
            framing: spec.line.framing(),
            is_whole: traffic.contract.is_empty() && traffic.pcr.is_none(),
            rules: Rules::new(&traffic),
            uplinks: (0..ports).map(uplink).collect(),
            plan,
            outputs,
            pools,
            traffic,
            pdus: Vec::new(),
            unused: Vec::new(),
            vcs: Vec::new(),
            numbers: BTreeMap::new(),
            steps: BinaryHeap::new(),
            frames: 0,
            down_until: Instant::START,
            random: Pcg64Mcg::seed_from_u64(seed ^ DRAWS),
            failed: Vec::new(),
        })
    }

    pub fn uplink(&mut self, port: Port) -> &mut Uplink {
        &mut self.uplinks[usize::from(port.0)]
    }

    /// A frame that did not get to the servers.
    pub fn failed(&mut self) -> Option<(Frame, Place, Cause)> {
        self.failed.pop()
    }

    /// The station at the far end of a line sends a request back.
    pub fn answer(&mut self, now: Instant, frame: Frame, edge: &mut Edge) {
        let far = Port(1 - frame.from.0);
        let number = self.admit(
            frame,
            End::Station(frame.from),
            Route::default(),
            Some(Span::ZERO),
        );
        self.queue(now, far, number, edge);
    }

    pub fn ready(&self, port: Port) -> bool {
        self.uplinks[usize::from(port.0)].ready()
    }

    pub fn next_at(&self) -> Option<Instant> {
        let first = self.steps.peek();
        first.map(|Reverse(entry)| Instant::from_picos(entry.key.0))
    }

    /// The lines of the stations have another rate from the next cell on; none: their own again.
    pub fn pace(&mut self, rate: Option<BitRate>) {
        for (port, uplink) in (0..).map(Port).zip(&mut self.uplinks) {
            uplink.cell = self.plan.cell_at(port, rate);
            if let Some(output) = self.outputs.get_mut(usize::from(port.0)) {
                output.cell_time = uplink.cell;
            }
        }
    }

    /// A trunk is up, or down: what waits for it is lost. False if there is no such trunk.
    pub fn trunk(&mut self, now: Instant, trunk: u16, up: bool, edge: &mut Edge) -> bool {
        let Some(outputs) = self.plan.turn_trunk(trunk, up) else {
            return false;
        };
        if !up {
            for output in outputs {
                self.clear(now, output, Cause::LinkDown, edge);
            }
        }
        true
    }

    fn entry(&self, at: Instant, step: Step) -> Reverse<Entry> {
        let (first, then) = match step {
            Step::Depart(output) => (0, u64::from(output)),
            Step::Arrive(cell, _) => {
                let pdu = &self.pdus[cell.pdu as usize];
                (1 + pdu.head_at.as_picos(), pdu.order)
            }
            Step::Line(port) => (u64::MAX - 1, u64::from(port.0)),
            Step::Feedback(number) => (u64::MAX, u64::from(number)),
        };
        let key = (at.as_picos(), first, then);
        Reverse(Entry { key, step })
    }

    fn push(&mut self, at: Instant, step: Step) {
        let entry = self.entry(at, step);
        self.steps.push(entry);
    }

    /// The step that was due first is over; `next` comes in its place.
    fn replace(&mut self, next: Option<(Instant, Step)>) {
        let entry = next.map(|(at, step)| self.entry(at, step));
        if let Some(entry) = entry {
            if let Some(mut first) = self.steps.peek_mut() {
                *first = entry;
            }
        } else {
            self.steps.pop();
        }
    }

    /// A frame is in a switch at once: in that of `to`, or where a server sends it on in that of its sender.
    pub fn inject(
        &mut self,
        now: Instant,
        frame: Frame,
        to: Port,
        is_sent_on: bool,
        edge: &mut Edge,
    ) {
        let route = if is_sent_on {
            self.plan.route(frame.from, to)
        } else {
            Some(self.plan.last(to))
        };
        let Some(route) = route else {
            return lose(now, &frame, to, (Place::Output, Cause::LinkDown), edge);
        };
        let number = self.admit(frame, End::Station(to), route, Some(Span::ZERO));
        let pdu = &mut self.pdus[number as usize];
        (pdu.head_at, pdu.unsent) = (now, 0);
        let (cells, vc, rank) = (pdu.cells, pdu.vc, pdu.rank);
        for left in (0..cells).rev() {
            let cell = Cell {
                pdu: number,
                vc,
                hop: 0,
                rank,
                last: left == 0,
            };
            self.enter(now, cell, edge);
        }
    }

    /// Does the step that is due first. A frame that is all at the servers is handed over.
    pub fn step(&mut self, edge: &mut Edge) -> Option<Frame> {
        let Reverse(Entry { key, step }) = *self.steps.peek()?;
        let at = Instant::from_picos(key.0);
        match step {
            Step::Depart(output) => self.depart(at, output, edge),
            Step::Arrive(cell, lost) => {
                let next = self.next_cell(at, cell);
                self.replace(next);
                return self.arrive(at, cell, lost, edge);
            }
            Step::Line(port) => {
                self.replace(None);
                let uplink = self.uplink(port);
                if uplink.look_at == Some(at) {
                    uplink.look_at = None;
                    self.look(at, port, edge);
                }
            }
            Step::Feedback(number) => {
                self.replace(None);
                self.hear(at, number, edge);
            }
        }
        None
    }

    fn arrive(&mut self, at: Instant, cell: Cell, lost: bool, edge: &mut Edge) -> Option<Frame> {
        let pdu = &mut self.pdus[cell.pdu as usize];
        if lost {
            pdu.damage.get_or_insert((Place::Path, Cause::Random));
            self.drop_cell(at, cell, edge);
            return None;
        }
        if usize::from(cell.hop) == pdu.route.len() {
            return self.finish(at, cell, edge);
        }
        if cell.hop == 0 {
            if let Some(police) = &mut self.vcs[cell.vc as usize].police {
                if !police.police(at) {
                    pdu.damage.get_or_insert((Place::Output, Cause::Policed));
                    edge.counters.cells_policed += 1;
                    self.drop_cell(at, cell, edge);
                    return None;
                }
            }
        }
        if cell.hop == 0 && self.hits(self.traffic.misdelivery) {
            self.stray(at, cell, edge);
            return None;
        }
        self.enter(at, cell, edge);
        None
    }

    /// The first switch sends a cell to a station that it is not for: it takes its place on that line, and is thrown away there.
    fn stray(&mut self, at: Instant, cell: Cell, edge: &mut Edge) {
        let others = self.uplinks.len().saturating_sub(1).max(1) as u64;
        let draw = (self.random.next_u64() % others) as u16;
        let pdu = &mut self.pdus[cell.pdu as usize];
        pdu.damage
            .get_or_insert((Place::Output, Cause::Misdelivered));
        edge.counters.cells_misdelivered += 1;
        let is_past = matches!(pdu.end, End::Station(to) if draw >= to.0);
        let stray = Pdu {
            route: self.plan.last(Port(draw + u16::from(is_past))),
            cells: 1,
            unsent: 0,
            alive: 1,
            told: true,
            seen: 0,
            broken: 0,
            refused: 0,
            used: 0,
            to_come: 0,
            ..*pdu
        };
        let stray = Cell {
            pdu: self.keep(stray),
            last: true,
            ..cell
        };
        self.enter(at, stray, edge);
        self.drop_cell(at, cell, edge);
    }

    /// A cell is at an output.
    fn enter(&mut self, at: Instant, cell: Cell, edge: &mut Edge) {
        let pdu = &mut self.pdus[cell.pdu as usize];
        let (number, bit) = (pdu.route.hop(cell.hop), 1u16 << cell.hop);
        if at < self.down_until {
            pdu.damage.get_or_insert((Place::Output, Cause::Restart));
            return self.drop_cell(at, cell, edge);
        }
        if !self.plan.is_up(number) {
            pdu.damage.get_or_insert((Place::Output, Cause::LinkDown));
            return self.drop_cell(at, cell, edge);
        }
        let past = pdu.past(cell.hop);
        let output = &mut self.outputs[usize::from(number)];
        let pool = &mut self.pools[output.pool];
        let (cause, whole) = match output.take(at, cell, past, &self.rules, pool) {
            Verdict::Sent(leaves) => {
                self.push(leaves, Step::Depart(number));
                return self.tell_lost(at, cell, edge);
            }
            Verdict::Waits => return self.tell_lost(at, cell, edge),
            Verdict::NoRoom => {
                pdu.broken |= bit;
                (Cause::Overflow, 0)
            }
            Verdict::Partial => (Cause::Overflow, 1),
            Verdict::Early => {
                pdu.refused |= bit;
                (Cause::Discarded, 1)
            }
        };
        pdu.damage.get_or_insert((Place::Output, cause));
        edge.counters.cells_lost += 1;
        edge.counters.cells_discarded += whole;
        *edge.counters.cells_lost_at.entry(Port(number)).or_default() += 1;
        self.drop_cell(at, cell, edge);
    }

    /// Tells that a frame is lost, once, when its last cell is there.
    fn tell_lost(&mut self, at: Instant, cell: Cell, edge: &mut Edge) {
        if cell.last {
            self.tell(at, cell.pdu, edge);
        }
    }

    fn tell(&mut self, at: Instant, number: u32, edge: &mut Edge) {
        let pdu = &mut self.pdus[number as usize];
        if let Some(why) = pdu.damage.filter(|_| !pdu.told && pdu.management.is_none()) {
            pdu.told = true;
            let (frame, end) = (pdu.frame, pdu.end);
            self.lose(at, frame, end, why, edge);
        }
    }

    /// A cell is gone.
    fn drop_cell(&mut self, at: Instant, cell: Cell, edge: &mut Edge) {
        self.tell_lost(at, cell, edge);
        self.forget(cell.pdu, edge);
    }

    /// One cell of a frame is nowhere any more.
    fn forget(&mut self, number: u32, edge: &mut Edge) {
        let pdu = &mut self.pdus[number as usize];
        pdu.alive -= 1;
        if pdu.alive == 0 {
            if pdu.damage.is_some() {
                edge.counters.cells_wasted += pdu.used;
            }
            self.unused.push(number);
        }
    }

    fn depart(&mut self, at: Instant, number: u16, edge: &mut Edge) {
        let output = &mut self.outputs[usize::from(number)];
        let way = output.way;
        let pool = &mut self.pools[output.pool];
        let Some((cell, next)) = output.depart(at, pool) else {
            return self.replace(None);
        };
        if cell.rank < Category::Abr as u8 {
            output.shares.pass();
        }
        if let Some(management) = &mut self.pdus[cell.pdu as usize].management {
            let time = output.cell_time;
            output.shares.write(at, cell.vc, management, time);
            management.is_marked |= pool.is_congested(cell.rank);
        }
        self.replace(next.map(|leaves| (leaves, Step::Depart(number))));
        let pdu = &mut self.pdus[cell.pdu as usize];
        pdu.used += 1;
        let on = Cell {
            hop: cell.hop + 1,
            ..cell
        };
        let more = usize::from(on.hop) < pdu.route.len();
        edge.counters.cells_sent += u64::from(!more);
        if more || (cell.last && pdu.damage.is_none()) {
            self.push(at + way, Step::Arrive(on, false));
        } else {
            self.forget(cell.pdu, edge);
        }
    }

    /// The last cell of a whole frame is at its end, or of one that was damaged on a line without a switch.
    fn finish(&mut self, at: Instant, cell: Cell, edge: &mut Edge) -> Option<Frame> {
        if !cell.last {
            self.forget(cell.pdu, edge);
            return None;
        }
        if self.pdus[cell.pdu as usize].management.is_some() {
            self.give_back(at, cell.pdu);
            return None;
        }
        self.tell(at, cell.pdu, edge);
        let pdu = &self.pdus[cell.pdu as usize];
        let (told, frame, end) = (pdu.told, pdu.frame, pdu.end);
        self.forget(cell.pdu, edge);
        if told {
            return None;
        }
        match end {
            End::Server => Some(frame),
            End::Station(to) if understands(&self.traffic.mismatched, &frame, to) => {
                edge.deliver(at, &frame, to);
                None
            }
            End::Station(to) => {
                lose(at, &frame, to, (Place::Receiver, Cause::Rejected), edge);
                None
            }
        }
    }

    /// The switches start anew: all cells in them are lost, and those that come until `up_at`.
    pub fn restart(&mut self, now: Instant, up_at: Instant, edge: &mut Edge) {
        self.down_until = up_at;
        for output in 0..self.outputs.len() as u16 {
            self.clear(now, output, Cause::Restart, edge);
        }
    }

    /// All cells at an output are lost, and their frames with them.
    fn clear(&mut self, now: Instant, number: u16, cause: Cause, edge: &mut Edge) {
        let mut cells = Vec::new();
        let output = &mut self.outputs[usize::from(number)];
        output.clear(&mut self.pools[output.pool], |cell| cells.push(cell));
        for cell in cells {
            let pdu = &mut self.pdus[cell.pdu as usize];
            pdu.damage.get_or_insert((Place::Output, cause));
            self.tell(now, cell.pdu, edge);
            self.forget(cell.pdu, edge);
        }
    }
}
