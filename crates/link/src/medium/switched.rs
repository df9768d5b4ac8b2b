//! Stations at switches with a queue at each output, on one line, or joined by lines without a rate.
//!
//! Model:   station queue -> serializer -> wire -> path elements -> switch (latency, output queue, serializer) -> wire, the
//!          last two again for each switch on the way. A frame's times are settled where it meets a queue: at the station
//!          when it is offered, at an output when it arrives there. Frames to all are copied at the switch (with several:
//!          along the spanning tree, where another may overtake them), or at the station where there is none. A restart takes all switches; a trunk that
//!          goes down takes what waits for it and what is on it, and later frames go another way where there is one.
//! Source:  IEEE 802.3; IEEE 802.1D. Marks of congestion: RFC 3168 §5, by the length of the queue as
//!          in RFC 8257 §3.1. Deviations: none known.
//! Checked: `tests/properties.rs`, `tests/times.rs`, `tests/topology.rs`.

use crate::calendar::Calendar;
use crate::edge::Edge;
use crate::graph::{Graph, LinkId};
use crate::medium::{GHOSTS_MAX, Medium, Target};
use crate::network::{Cause, Command, Mark, Place, Refused};
use crate::output::FrameOutput;
use crate::pace::Pace;
use crate::spec::rate_is_possible;
use crate::station::Transmitter;
use crate::{Ecn, Fault, Frame, Line, NetworkSpec, Port, SpecError, Switch, Topology};
use sonde_units::{BitRate, Bytes, Instant, Span};

/// A copy that goes from switch to switch.
#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub frame: Frame,
    /// The station that shall have it; none: all behind the switch.
    pub to: Option<Port>,
    /// Whether it met congestion.
    pub marked: bool,
}

/// What is due at a time.
enum Step {
    /// A copy is at a switch and has passed its latency, its last bit at `tail`.
    Forward {
        copy: Copy,
        /// The trunk that it came by; none: the line of its sender.
        by: Option<LinkId>,
        tail: Instant,
    },
    /// A copy has arrived.
    Deliver { copy: Copy, to: Port },
    /// A station's backlog may have fallen.
    Wake(Port),
}

/// The lines of one kind.
struct Lines {
    /// As specified.
    line: Line,
    pace: Pace,
}

/// The kinds of lines of a network.
pub(crate) struct Kinds {
    /// The rate that a fault may change.
    rate: Option<BitRate>,
    switch: Option<Switch>,
    lines: Vec<Lines>,
    /// By station and by link: the kind of its line.
    of_station: Vec<u16>,
    of_link: Vec<u16>,
}

impl Kinds {
    pub fn new(spec: &NetworkSpec, graph: Option<&Graph>, ports: u16) -> Self {
        let mut lines: Vec<Lines> = Vec::new();
        let mut kind = |line: &Line| {
            let known = lines.iter().position(|known| known.line == *line);
            known.unwrap_or_else(|| {
                let pace = Pace::of(*line, spec.switch.as_ref());
                lines.push(Lines { line: *line, pace });
                lines.len() - 1
            }) as u16
        };
        let sends = |port| graph.map_or(&spec.line, |graph| graph.line(port));
        let of_station = (0..ports).map(|port| kind(sends(Port(port)))).collect();
        let links = graph.map_or(&[][..], Graph::links);
        let of_link = links.iter().map(|link| kind(&link.line)).collect();
        Self {
            rate: spec.line.rate,
            switch: spec.switch,
            lines,
            of_station,
            of_link,
        }
    }

    /// The times of the line by which a station sends.
    pub fn of_station(&mut self, port: Port) -> &mut Pace {
        &mut self.lines[usize::from(self.of_station[usize::from(port.0)])].pace
    }

    /// The times of a link.
    pub fn of_link(&mut self, link: LinkId) -> &mut Pace {
        &mut self.lines[usize::from(self.of_link[link.0 as usize])].pace
    }

    /// All lines of the rate of the specification have another, from the next frame on.
    pub fn set_rate(&mut self, rate: Option<BitRate>) -> Result<(), Refused> {
        if self.rate.is_none() {
            return Err(Refused::NotHere {
                what: "rate",
                remedy: "choose a network whose lines have one, such as ethernet-100",
            });
        }
        if let Some(rate) = rate.filter(|rate| !rate_is_possible(*rate)) {
            return Err(Refused::Value {
                what: "the rate of a line",
                value: rate.to_string(),
                remedy: "give 1kbit to 800Gbit",
            });
        }
        for lines in self
            .lines
            .iter_mut()
            .filter(|lines| lines.line.rate == self.rate)
        {
            let line = lines.line.altered(rate, None, None, None);
            lines.pace = Pace::of(line, self.switch.as_ref());
        }
        Ok(())
    }
}

/// One line a station, and switches or none.
pub(crate) struct Switched {
    switch: Option<Switch>,
    kinds: Kinds,
    ports: u16,
    stations: Vec<Transmitter>,
    graph: Option<Graph>,
    outputs: Vec<FrameOutput>,
    /// By switch, where its outputs share one memory: what waits there, or waited a while ago.
    held: Vec<Bytes>,
    /// All switches restart until then.
    up_at: Instant,
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
        let graph = match &spec.switch {
            Some(_) => Some(Graph::new(spec, ports)?),
            None => None,
        };
        let links = graph.as_ref().map_or(&[][..], Graph::links);
        let outputs = links.iter().map(|link| FrameOutput::new(link.buffer));
        let stations = (0..ports).map(|_| Transmitter::new(spec.station.queue));
        Ok(Self {
            switch: spec.switch,
            kinds: Kinds::new(spec, graph.as_ref(), ports),
            ports,
            stations: stations.collect(),
            outputs: outputs.collect(),
            held: vec![Bytes::ZERO; graph.as_ref().map_or(0, |graph| graph.switches().into())],
            graph,
            up_at: Instant::START,
            calendar: Calendar::new(),
        })
    }

    fn station(&mut self, port: Port) -> &mut Transmitter {
        &mut self.stations[usize::from(port.0)]
    }

    /// The times of a station's line.
    fn pace(&mut self, port: Port) -> &mut Pace {
        self.kinds.of_station(port)
    }

    /// When a frame that a station begins to send can be forwarded, and when its last bit can.
    fn times(&mut self, from: Port, start: Instant, time: Span) -> (Instant, Instant) {
        let pace = self.pace(from);
        let (head, latency) = pace.forwarding(time);
        let arrives = start + pace.propagation() + latency;
        (arrives + head, arrives + time)
    }

    fn has_trunks(&self) -> bool {
        self.graph
            .as_ref()
            .is_some_and(|graph| graph.switches() > 1)
    }

    /// Makes a copy on its way from the line's end to a station, or to the switch.
    fn travel(
        &mut self,
        now: Instant,
        copy: Copy,
        (head, tail): (Instant, Instant),
        edge: &mut Edge,
    ) {
        let Some(delay) = edge.pass() else {
            return self.lose(now, &copy, None, (Place::Path, Cause::Random), edge);
        };
        let (head, tail) = (head + delay, tail + delay);
        match copy.to.filter(|_| self.graph.is_none()) {
            Some(to) => self.calendar.insert(tail, Step::Deliver { copy, to }),
            None => {
                let by = None;
                self.calendar.insert(head, Step::Forward { copy, by, tail });
            }
        }
    }

    /// A copy, or each of those that it stands for, is lost on its way by `by`, or on the line of its sender.
    fn lose(
        &self,
        now: Instant,
        copy: &Copy,
        by: Option<LinkId>,
        (place, cause): (Place, Cause),
        edge: &mut Edge,
    ) {
        let frame = &copy.frame;
        match (copy.to, &self.graph, by) {
            (Some(to), _, _) => edge.lose(now, frame, to, place, cause),
            (None, Some(graph), Some(link)) => {
                for to in graph.beyond(link) {
                    edge.lose(now, frame, *to, place, cause);
                }
            }
            (None, _, _) => {
                for to in edge.others(frame) {
                    edge.lose(now, frame, to, place, cause);
                }
            }
        }
    }

    /// A copy is at a switch: to the output for the next part of its way, or to several.
    fn forward(
        &mut self,
        now: Instant,
        copy: Copy,
        by: Option<LinkId>,
        tail: Instant,
        edge: &mut Edge,
    ) {
        if now < self.up_at {
            return self.lose(now, &copy, by, (Place::Output, Cause::Restart), edge);
        }
        let Some(graph) = &self.graph else {
            return;
        };
        let frame = copy.frame;
        let at = match by {
            Some(link) => graph.far(link),
            None => graph.switch_of(frame.from),
        };
        let Some(to) = copy.to else {
            return self.flood(now, copy, (at, by), tail, edge);
        };
        match graph.next(at, frame.from, to, frame.flow) {
            Some(link) => self.send(now, copy, link, tail, edge),
            None => edge.lose(now, &frame, to, Place::Output, Cause::LinkDown),
        }
    }

    /// A frame to all is at a switch: one copy to each host there but its sender, one to each trunk of the tree.
    fn flood(
        &mut self,
        now: Instant,
        copy: Copy,
        (at, by): (u16, Option<LinkId>),
        tail: Instant,
        edge: &mut Edge,
    ) {
        let Some(graph) = &self.graph else {
            return;
        };
        let from = copy.frame.from;
        let hosts: Vec<_> = graph
            .hosts(at)
            .iter()
            .copied()
            .filter(|to| *to != from)
            .collect();
        let trunks: Vec<_> = graph.flood(at, by).collect();
        if by.is_none() {
            for to in graph.apart(at) {
                edge.lose(now, &copy.frame, *to, Place::Output, Cause::LinkDown);
            }
        }
        for to in hosts {
            let link = LinkId(u32::from(to.0));
            let to = Some(to);
            self.send(now, Copy { to, ..copy }, link, tail, edge);
        }
        for link in trunks {
            self.send(now, copy, link, tail, edge);
        }
    }

    /// Whether the memory that the outputs of a switch share has room for `len` more, where a frame has to wait.
    fn finds_memory(&mut self, now: Instant, link: LinkId, len: Bytes, memory: Bytes) -> bool {
        let Some(graph) = &self.graph else {
            return true;
        };
        let at = graph.link(link).from;
        let held = &mut self.held[usize::from(at)];
        if *held + len <= memory || !self.outputs[link.0 as usize].is_busy(now) {
            return true;
        }
        // The sum is of what waited when each output was last used: make it anew.
        let own = graph.links().iter().zip(&mut self.outputs);
        let own = own.filter(|(link, _)| link.from == at);
        *held = own.map(|(_, output)| output.drain(now)).sum();
        *held + len <= memory
    }

    /// A copy has come to the output of `link`.
    fn send(&mut self, now: Instant, mut copy: Copy, link: LinkId, tail: Instant, edge: &mut Edge) {
        let pace = self.kinds.of_link(link);
        let (time, propagation) = (pace.time(copy.frame.len), pace.propagation());
        let (head, latency) = pace.forwarding(time);
        let len = copy.frame.len;
        let memory = self.switch.and_then(|switch| switch.memory);
        if !memory.is_none_or(|memory| self.finds_memory(now, link, len, memory)) {
            let what = (Place::Output, Cause::Overflow);
            return self.lose(now, &copy, Some(link), what, edge);
        }
        let output = &mut self.outputs[link.0 as usize];
        let before = output.waiting();
        let taken = output.take(now, tail, len, time);
        let after = output.waiting();
        if let (Some(_), Some(graph)) = (memory, &self.graph) {
            let held = &mut self.held[usize::from(graph.link(link).from)];
            *held = (*held + after).saturating_sub(before);
        }
        let Ok(departs) = taken else {
            let what = (Place::Output, Cause::Overflow);
            return self.lose(now, &copy, Some(link), what, edge);
        };
        let output = &self.outputs[link.0 as usize];
        let mark = self.switch.and_then(|switch| switch.mark);
        if copy.frame.ecn == Ecn::Capable && mark.is_some_and(|mark| output.holds(mark)) {
            copy.marked = true;
        }
        if link.0 < u32::from(self.ports) {
            let to = Port(link.0 as u16);
            let arrives = departs + propagation;
            return self.calendar.insert(arrives, Step::Deliver { copy, to });
        }
        let arrives = departs + propagation + latency;
        let (by, tail) = (Some(link), arrives);
        let at = tail - (time - head);
        self.calendar.insert(at, Step::Forward { copy, by, tail });
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

/// Faults.
impl Switched {
    /// What is due, to be gone through and put back.
    fn due(&mut self) -> Vec<(Instant, Step)> {
        std::iter::from_fn(|| self.calendar.pop()).collect()
    }

    fn latency(&self) -> Span {
        self.switch.map_or(Span::ZERO, |switch| switch.latency)
    }

    fn propagation(&mut self, link: LinkId) -> Span {
        self.kinds.of_link(link).propagation()
    }

    /// A trunk goes down or comes up.
    fn set_trunk(
        &mut self,
        now: Instant,
        trunk: u16,
        up: bool,
        edge: &mut Edge,
    ) -> Result<(), Refused> {
        let absent = Refused::NotHere {
            what: "such trunk",
            remedy: "trunks join switches and are counted from 0, in the order of the file",
        };
        let Some(graph) = &self.graph else {
            return Err(absent);
        };
        if trunk >= graph.trunks() {
            return Err(absent);
        }
        if graph.is_trunk_up(trunk) == up {
            return Ok(());
        }
        let latency = self.latency();
        for (at, step) in self.due() {
            let Step::Forward {
                copy,
                by: Some(link),
                tail,
            } = step
            else {
                self.calendar.insert(at, step);
                continue;
            };
            let Some(graph) = &self.graph else { continue };
            let is_on_it = graph.link(link).trunk == Some(trunk) && tail - latency > now;
            if is_on_it && !up {
                let what = (Place::Output, Cause::LinkDown);
                self.lose(now, &copy, Some(link), what, edge);
                continue;
            }
            // The tree will be another: a copy for several goes on as one for each.
            let alone = copy.to.map(|to| vec![to]);
            for to in alone.unwrap_or_else(|| graph.beyond(link).to_vec()) {
                let copy = Copy {
                    to: Some(to),
                    ..copy
                };
                let by = Some(link);
                self.calendar.insert(at, Step::Forward { copy, by, tail });
            }
        }
        if let Some(graph) = &mut self.graph {
            graph.set_trunk(trunk, up);
            for link in graph.of_trunk(trunk) {
                self.outputs[link.0 as usize].clear(now);
            }
        }
        Ok(())
    }

    /// All switches lose what they hold, and what comes to them until they are up.
    fn restart(&mut self, now: Instant, down: Span, edge: &mut Edge) -> Result<(), Refused> {
        if self.graph.is_none() {
            return Err(Refused::NotHere {
                what: "switch",
                remedy: "choose a network with one, such as ethernet-100",
            });
        }
        let latency = self.latency();
        let what = (Place::Output, Cause::Restart);
        for (at, step) in self.due() {
            match &step {
                Step::Deliver { copy, to } => {
                    let link = LinkId(u32::from(to.0));
                    if at - self.propagation(link) > now {
                        edge.lose(now, &copy.frame, *to, what.0, what.1);
                        continue;
                    }
                }
                Step::Forward { copy, by, tail } => {
                    let arrives = *tail - latency;
                    let way = by.map(|link| self.propagation(link));
                    if arrives <= now || way.is_some_and(|way| arrives - way > now) {
                        self.lose(now, copy, *by, what, edge);
                        continue;
                    }
                }
                Step::Wake(_) => {}
            }
            self.calendar.insert(at, step);
        }
        for output in &mut self.outputs {
            output.clear(now);
        }
        self.up_at = self.up_at.max(now + down);
        Ok(())
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
        let time = self.pace(from).time(frame.len);
        let start = self.station(from).send(now, frame.len, time);
        let times = self.times(from, start, time);
        let copy = |to| Copy {
            frame,
            to,
            marked: false,
        };
        match target {
            Target::One(to) => self.travel(now, copy(Some(to)), times, edge),
            Target::All | Target::Server => {
                let others = edge.others(&frame);
                edge.copies(&frame, others.len());
                if self.has_trunks() && !edge.is_for_group(&frame) {
                    if self.ports > 1 {
                        self.travel(now, copy(None), times, edge);
                    }
                } else {
                    for to in others {
                        self.travel(now, copy(Some(to)), times, edge);
                    }
                }
            }
        }
        if was_ready && !self.ready(from) {
            self.wake(now, from, edge);
        }
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        let copy = Copy {
            frame,
            to: Some(to),
            marked: false,
        };
        let from = match (frame.from, &self.graph) {
            (from, _) if from.0 < self.ports => from,
            (_, Some(graph)) => {
                let link = graph.last(to);
                return self.send(now, copy, link, now, edge);
            }
            // Without a switch the line to a station is another's.
            (_, None) => Port((to.0 + 1) % self.ports),
        };
        let time = self.pace(from).time(frame.len);
        match self.station(from).lend(now, time, time * GHOSTS_MAX as u64) {
            Some(start) => {
                let times = self.times(from, start, time);
                self.travel(now, copy, times, edge);
            }
            None => edge.lose(now, &frame, to, Place::Station, Cause::Overflow),
        }
    }

    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused> {
        match command {
            Command::Vc(_) => Err(Refused::NoCircuits),
            Command::Fault(Fault::Rate { rate }) => self.kinds.set_rate(rate),
            Command::Fault(Fault::Trunk { trunk, up }) => self.set_trunk(now, trunk, up, edge),
            Command::Fault(Fault::Restart { down }) => self.restart(now, down, edge),
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
            Some((at, Step::Forward { copy, by, tail })) => self.forward(at, copy, by, tail, edge),
            Some((at, Step::Deliver { copy, to })) => {
                let mark = if copy.marked { Mark::Ce } else { Mark::Ok };
                edge.settle(at, &copy.frame, to, mark);
            }
            Some((at, Step::Wake(port))) => self.wake(at, port, edge),
            None => {}
        }
    }
}
