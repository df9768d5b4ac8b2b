//! The machine of a multistage network: stations that wait for a path, and the wires that are taken.

use super::Stages;
use crate::calendar::Calendar;
use crate::edge::Edge;
use crate::medium::sender::{Parcel, Sender};
use crate::medium::{Medium, Target};
use crate::network::{Cause, Command, Place, Refused};
use crate::pace::Pace;
use crate::{Fault, Frame, NetworkSpec, Port, SpecError};
use sonde_units::{Bytes, Instant, Span};

/// How often a frame is passed over before it keeps its wires from others.
const TIMEOUT: u32 = 16;

/// What is due at a time.
enum Step {
    /// The last bit has left the source; void if the source has turned to something else since.
    End { source: usize, number: u64 },
    /// It is at the destination.
    Deliver { frame: Frame, to: Port },
    /// The address server has its answer.
    Answer { frame: Frame },
}

/// What a source does.
#[derive(Clone, Copy)]
enum State {
    /// Nothing waits.
    Idle,
    /// The frame at its head waits for a path.
    Waiting(Port),
    /// It was taken from the queue, and is sent by this path: no frame where it is lost already.
    Sending(Option<Parcel>, usize),
}

/// A sending side.
struct Source {
    sender: Sender,
    state: State,
    /// Of the state.
    number: u64,
    /// How often the frame at the head was passed over.
    passed: u32,
}

/// The wires between stages and to the stations: which are taken.
struct Wires {
    radix: usize,
    depth: u32,
    /// By path, then by stage but for the last, then by address.
    inner: Vec<bool>,
    /// Those to the stations.
    last: Vec<bool>,
}

impl Wires {
    /// The place of the wire behind stage `stage`, counted from 0, on path `path` between two stations.
    fn place(&self, path: usize, stage: u32, from: usize, to: usize) -> usize {
        let power = |exponent: u32| self.radix.pow(exponent);
        // The digits of the source that are not used up, then the digits of the destination that are.
        let rest = self.depth - 1 - stage;
        let address = from % power(rest) * power(stage + 1) + to / power(rest);
        (path * (self.depth as usize - 1) + stage as usize) * power(self.depth) + address
    }

    /// Whether a path is free from end to end.
    fn is_free(&self, path: usize, from: usize, to: usize) -> bool {
        (0..self.depth - 1).all(|stage| !self.inner[self.place(path, stage, from, to)])
    }

    fn set(&mut self, path: usize, from: usize, to: usize, taken: bool) {
        for stage in 0..self.depth - 1 {
            let place = self.place(path, stage, from, to);
            self.inner[place] = taken;
        }
    }

    /// Whether two paths of the same number share a wire.
    fn meet(&self, a: (usize, usize), b: (usize, usize)) -> bool {
        a.1 == b.1
            || (0..self.depth - 1)
                .any(|stage| self.place(0, stage, a.0, a.1) == self.place(0, stage, b.0, b.1))
    }
}

/// The medium: stations, then one more source a station for what comes to it from elsewhere, past the inner wires.
pub(crate) struct Net {
    table: Stages,
    spec: NetworkSpec,
    pace: Pace,
    ports: u16,
    /// From a station to another.
    way: Span,
    paths: usize,
    wires: Wires,
    sources: Vec<Source>,
    /// Sources whose frames wait for a path, in the order of arrival.
    waiting: Vec<usize>,
    /// One of them that keeps its wires from all others.
    claim: Option<usize>,
    calendar: Calendar<Step>,
    down_until: Instant,
}

impl Net {
    pub fn new(
        spec: &NetworkSpec,
        table: &Stages,
        ports: u16,
        _seed: u64,
    ) -> Result<Self, SpecError> {
        table.check(spec)?;
        let depth = table.depth(ports)?;
        let radix = usize::from(table.radix);
        let paths = usize::from(table.paths);
        let inner = paths * (depth as usize - 1) * radix.pow(depth);
        let source = |_| Source {
            sender: Sender::new(spec.station.queue),
            state: State::Idle,
            number: 0,
            passed: 0,
        };
        Ok(Self {
            way: table.way(&spec.line, depth),
            table: table.clone(),
            spec: spec.clone(),
            pace: Pace::new(spec),
            ports,
            paths,
            wires: Wires {
                radix,
                depth,
                inner: vec![false; inner],
                last: vec![false; usize::from(ports)],
            },
            sources: (0..2 * usize::from(ports)).map(source).collect(),
            waiting: Vec::new(),
            claim: None,
            calendar: Calendar::new(),
            down_until: Instant::START,
        })
    }

    fn is_station(&self, source: usize) -> bool {
        source < usize::from(self.ports)
    }

    fn turn(&mut self, source: usize, state: State) -> u64 {
        let source = &mut self.sources[source];
        source.state = state;
        source.number += 1;
        source.number
    }

    /// An idle source turns to the frame at its head.
    fn begin(&mut self, now: Instant, source: usize, edge: &mut Edge) {
        let Some(&(_, target)) = self.sources[source].sender.front() else {
            return;
        };
        self.sources[source].passed = 0;
        if now < self.down_until {
            return self.send_nowhere(now, source, edge);
        }
        let Target::One(to) = target else {
            return self.send(now, source, 0, edge);
        };
        self.turn(source, State::Waiting(to));
        if !self.acquire(now, source, to, edge) {
            self.waiting.push(source);
        }
    }

    /// Takes all wires to a station and sends, if they are free.
    fn acquire(&mut self, now: Instant, source: usize, to: Port, edge: &mut Edge) -> bool {
        let place = usize::from(to.0);
        if self.wires.last[place] || self.is_claimed(source, place) {
            return false;
        }
        let mut path = 0;
        if self.is_station(source) {
            let free = (0..self.paths).find(|path| self.wires.is_free(*path, source, place));
            let Some(free) = free else {
                return false;
            };
            path = free;
            self.wires.set(path, source, place, true);
        }
        self.wires.last[place] = true;
        if self.claim == Some(source) {
            self.claim = None;
        }
        self.send(now, source, path, edge);
        true
    }

    /// Whether another source keeps one of these wires for itself.
    fn is_claimed(&self, source: usize, to: usize) -> bool {
        let Some(other) = self.claim.filter(|other| *other != source) else {
            return false;
        };
        let State::Waiting(port) = self.sources[other].state else {
            return false;
        };
        let theirs = usize::from(port.0);
        let both = self.is_station(source) && self.is_station(other);
        theirs == to || (both && self.wires.meet((source, to), (other, theirs)))
    }

    /// Looks at those that wait, since wires came free.
    fn serve(&mut self, now: Instant, edge: &mut Edge) {
        let mut index = 0;
        while index < self.waiting.len() {
            let source = self.waiting[index];
            let State::Waiting(to) = self.sources[source].state else {
                unreachable!("a source waits while it is among those that wait")
            };
            if self.acquire(now, source, to, edge) {
                self.waiting.remove(index);
                continue;
            }
            self.sources[source].passed += 1;
            if self.claim.is_none() && self.sources[source].passed >= TIMEOUT {
                self.claim = Some(source);
            }
            index += 1;
        }
    }

    /// Takes the frame at the head from its queue.
    fn pop(&mut self, now: Instant, source: usize, edge: &mut Edge) -> Option<Parcel> {
        let (parcel, woken) = self.sources[source].sender.pop()?;
        if woken {
            edge.ready(now, Port(source as u16));
        }
        Some(parcel)
    }

    /// The frame at the head is on its way.
    fn send(&mut self, now: Instant, source: usize, path: usize, edge: &mut Edge) {
        if let Some(parcel) = self.pop(now, source, edge) {
            let end = now + self.pace.time(parcel.0.len);
            let number = self.turn(source, State::Sending(Some(parcel), path));
            self.calendar.insert(end, Step::End { source, number });
        }
    }

    /// The network is not there: the frame is lost, after the time that it takes to send it.
    fn send_nowhere(&mut self, now: Instant, source: usize, edge: &mut Edge) {
        if let Some(parcel) = self.pop(now, source, edge) {
            lose(now, parcel, edge);
            let end = now + self.pace.time(parcel.0.len);
            let number = self.turn(source, State::Sending(None, 0));
            self.calendar.insert(end, Step::End { source, number });
        }
    }

    /// A source has sent its frame.
    fn end(&mut self, now: Instant, source: usize, number: u64, edge: &mut Edge) {
        if self.sources[source].number != number {
            return;
        }
        let state = self.sources[source].state;
        self.turn(source, State::Idle);
        if let State::Sending(Some((frame, target)), path) = state {
            let arrives = now + self.way;
            match target {
                Target::One(to) => {
                    self.calendar.insert(arrives, Step::Deliver { frame, to });
                    let place = usize::from(to.0);
                    self.wires.last[place] = false;
                    if self.is_station(source) {
                        self.wires.set(path, source, place, false);
                    }
                    self.serve(now, edge);
                }
                Target::All | Target::Server => {
                    let answered = arrives + self.table.resolution_delay;
                    self.calendar.insert(answered, Step::Answer { frame });
                }
            }
        }
        self.begin(now, source, edge);
    }

    /// A frame that no station sends waits for its wire to the destination only.
    fn take_background(
        &mut self,
        now: Instant,
        source: usize,
        frame: Frame,
        to: Port,
        edge: &mut Edge,
    ) {
        let source_now = &mut self.sources[source];
        if !source_now.sender.push_background(frame, Target::One(to)) {
            return edge.lose(now, &frame, to, Place::Station, Cause::Overflow);
        }
        if matches!(source_now.state, State::Idle) {
            self.begin(now, source, edge);
        }
    }

    fn elsewhere(&self, to: Port) -> usize {
        usize::from(self.ports) + usize::from(to.0)
    }

    /// What is on its way is lost, and what waits for a path.
    fn restart(&mut self, now: Instant, down: Span, edge: &mut Edge) {
        self.down_until = now + down;
        self.waiting.clear();
        self.claim = None;
        self.wires.inner.fill(false);
        self.wires.last.fill(false);
        let mut cut = Vec::new();
        for source in 0..self.sources.len() {
            let parcel = match self.sources[source].state {
                State::Sending(Some(parcel), _) => Some(parcel),
                State::Waiting(_) => self.pop(now, source, edge),
                State::Idle | State::Sending(None, _) => continue,
            };
            if let Some(parcel) = parcel {
                lose(now, parcel, edge);
            }
            self.turn(source, State::Idle);
            cut.push(source);
        }
        for source in cut {
            self.begin(now, source, edge);
        }
    }
}

/// A frame is lost by a restart.
fn lose(now: Instant, (frame, target): Parcel, edge: &mut Edge) {
    let to = match target {
        Target::One(to) => to,
        Target::All | Target::Server => frame.from,
    };
    edge.lose(now, &frame, to, Place::Medium, Cause::Restart);
}

impl Medium for Net {
    fn admits(&mut self, _: Instant, port: Port, len: Bytes) -> bool {
        self.sources[usize::from(port.0)].sender.admits(len)
    }

    fn ready(&self, port: Port) -> bool {
        self.sources[usize::from(port.0)].sender.ready()
    }

    fn backlog(&mut self, _: Instant, port: Port) -> Bytes {
        self.sources[usize::from(port.0)].sender.backlog()
    }

    fn take(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge) {
        let source = usize::from(frame.from.0);
        self.sources[source].sender.push(frame, target);
        if matches!(self.sources[source].state, State::Idle) {
            self.begin(now, source, edge);
        }
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        let source = if frame.from.0 < self.ports {
            usize::from(frame.from.0)
        } else {
            self.elsewhere(to)
        };
        self.take_background(now, source, frame, to, edge);
    }

    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused> {
        match command {
            Command::Fault(Fault::Rate { rate }) => {
                let mut changed = self.spec.clone();
                changed.line.rate = rate.or(changed.line.rate);
                self.pace = Pace::new(&changed);
                Ok(())
            }
            Command::Fault(Fault::Restart { down }) => {
                self.restart(now, down, edge);
                Ok(())
            }
            Command::Vc(_) => Err(Refused::NoCircuits),
            _ => Err(Refused::NotHere {
                what: "trunk or connection manager",
                remedy: "its stages can be restarted, all together",
            }),
        }
    }

    fn next_at(&self) -> Option<Instant> {
        self.calendar.next_at()
    }

    fn step(&mut self, edge: &mut Edge) {
        match self.calendar.pop() {
            Some((at, Step::End { source, number })) => self.end(at, source, number, edge),
            Some((at, Step::Deliver { frame, to })) => edge.arrive(at, &frame, to),
            Some((at, Step::Answer { frame })) => {
                let to = frame.from;
                self.take_background(at, self.elsewhere(to), frame, to, edge);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, FrameId, resolve};

    fn frame(id: u64, from: u16, to: u16) -> Frame {
        Frame::datagram(FrameId(id), Port(from), Port(to), Bytes(1_000))
    }

    /// A frame takes 1 ms, and no time beside it.
    fn net() -> (Net, Edge) {
        let selector = "allnode:rate=8Mbit:payload=1/1:length_m=0:hop=0ns:resolution_delay=10ms";
        let spec = resolve(selector, &|_| Err(String::new())).expect("a network");
        let table = spec.stages.clone().expect("stages");
        let net = Net::new(&spec, &table, 3, 1).expect("it can be built");
        (net, Edge::new(&spec, 3, 1))
    }

    /// Names and times of what arrives, in milliseconds; losses beside it.
    fn run(net: &mut Net, edge: &mut Edge) -> (Vec<(u64, u64)>, usize) {
        while net.next_at().is_some() {
            net.step(edge);
        }
        let (mut arrived, mut losses) = (Vec::new(), 0);
        while let Some(event) = edge.tell() {
            match event {
                Event::Deliver { at, id, .. } => arrived.push((id.0, at.as_nanos() / 1_000_000)),
                Event::Lost { .. } => losses += 1,
                _ => {}
            }
        }
        (arrived, losses)
    }

    #[test]
    fn background_shares_lines_and_destinations() {
        let start = Instant::START;
        let (mut net, mut edge) = net();
        net.take(start, frame(0, 0, 2), Target::One(Port(2)), &mut edge);
        net.background(start, frame(1, 0, 1), Port(1), &mut edge);
        net.take(start, frame(2, 0, 2), Target::One(Port(2)), &mut edge);
        net.background(start, frame(3, 3, 2), Port(2), &mut edge);
        let (arrived, losses) = run(&mut net, &mut edge);
        assert_eq!(arrived, [(0, 1), (3, 2), (1, 2), (2, 3)]);
        assert_eq!(losses, 0);
        let now = Instant::from_nanos(3_000_000);
        for id in 0..5_000 {
            net.background(now, frame(id, 0, 2), Port(2), &mut edge);
        }
        assert!(net.ready(Port(0)));
        assert_eq!(run(&mut net, &mut edge).1, 5_000 - 4_097);
    }

    #[test]
    fn the_address_server_answers_in_turn() {
        let (mut net, mut edge) = net();
        net.take(Instant::START, frame(0, 0, 0), Target::Server, &mut edge);
        assert_eq!(run(&mut net, &mut edge).0, [(0, 1 + 10 + 1)]);
    }
}
