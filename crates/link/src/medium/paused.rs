//! Switches that hold their senders back in place of losing frames.
//!
//! Model:   as [`Switched`](super::switched), but each switch counts what it holds by the line that it came by. Above a high
//!          mark it pauses the sender at the far end of that line; below a low mark it lets it go on. The word takes the
//!          time of a shortest frame and the way. The high mark leaves room for all that can come meanwhile, so nothing is
//!          lost. Where waiting in a circle would be possible, the specification is refused.
//! Source:  IEEE 802.3 annex 31B (PAUSE), IEEE 802.1Qbb (one priority). Deviations: pauses do not run out by themselves; of a
//!          frame to all, one copy is counted; a word does not wait for the frame that is on its line.
//! Checked: `tests/topology.rs`: nothing is lost by a blast or by many into one, whatever the rates.

use crate::calendar::Calendar;
use crate::edge::Edge;
use crate::graph::{self, Graph, LinkId};
use crate::medium::switched::{Copy, Kinds};
use crate::medium::{GHOSTS_MAX, Medium, Target};
use crate::network::{Cause, Command, Mark, Place, Refused};
use crate::pace::Pace;
use crate::spec::refuse;
use crate::station::Queue;
use crate::{
    Ecn, Fault, FlowControl, Frame, Limit, Line, NetworkSpec, Port, SpecError, Switch, Topology,
};
use sonde_units::{Bytes, Instant, Span};
use std::collections::{BTreeSet, VecDeque};

/// The shortest frame, as layer 3 counts it.
const WORD: Bytes = Bytes(46);

/// A copy at an output.
struct Item {
    copy: Copy,
    /// The sender by whose line it came, where it is counted.
    by: Option<usize>,
    tail: Instant,
}

/// The queue of an output.
#[derive(Default)]
struct Output {
    items: VecDeque<Item>,
    bytes: Bytes,
}

/// Who sends on a directed line: a station, or an output of a switch.
struct Sender {
    busy_until: Instant,
    paused: bool,
    /// Whether the far end has asked for a pause.
    told: bool,
    /// What the far end holds of it, and the marks there.
    held: Bytes,
    high: Bytes,
    low: Bytes,
}

enum Step {
    /// A copy that came by the line of a sender is at a switch.
    Forward {
        copy: Copy,
        by: usize,
        tail: Instant,
    },
    Deliver {
        copy: Copy,
        to: Port,
    },
    /// A sender has sent a frame, which was counted for another.
    Free {
        sender: usize,
        held: Option<(usize, Bytes)>,
    },
    /// The word of the far end reaches a sender.
    Word {
        sender: usize,
        pause: bool,
    },
}

/// Stations at switches without loss. Senders are the stations, then the links of the graph.
pub(crate) struct Paused {
    switch: Switch,
    ports: u16,
    /// What a switch holds of one line, at most.
    buffer: Bytes,
    graph: Graph,
    kinds: Kinds,
    stations: Vec<Queue<Copy>>,
    /// Background traffic that waits at each station; it goes first.
    ghosts: Vec<VecDeque<Copy>>,
    outputs: Vec<Output>,
    senders: Vec<Sender>,
    /// From a station to its switch, beside the line.
    path: Span,
    up_at: Instant,
    calendar: Calendar<Step>,
}

/// Whether the switches pause their senders.
pub(crate) fn applies(spec: &NetworkSpec) -> bool {
    spec.circuits.is_none()
        && spec
            .switch
            .is_some_and(|switch| switch.flow_control == FlowControl::Pause)
}

/// What a line can bring after its switch has asked for a pause.
fn headroom(spec: &NetworkSpec, line: &Line, path: Span) -> Bytes {
    let latency = spec.switch.map_or(Span::ZERO, |switch| switch.latency);
    let late = line.time(WORD) + (line.propagation() + path) * 2 + spec.path.reorder_by + latency;
    let rate = line
        .usable()
        .map_or(Bytes::ZERO, |rate| rate.bytes_in(late));
    rate + Bytes(3 * spec.mtu)
}

/// Whether the pauses cannot close a circle, and fit into the buffer.
///
/// # Errors
/// The first key that is wrong.
pub(crate) fn check(spec: &NetworkSpec) -> Result<(), SpecError> {
    if !applies(spec) {
        return Ok(());
    }
    let Some(Switch {
        buffer: Limit::Bytes(buffer),
        ..
    }) = spec.switch
    else {
        return refuse("switch.buffer", "is not a size; what a switch holds of each line before it pauses the sender needs one, such as `256KiB`".into());
    };
    if spec.switch.is_some_and(|switch| switch.memory.is_some()) {
        return refuse("switch.memory", "stands beside `flow_control = \"pause\"`, where each line has its own memory; leave one of them out".into());
    }
    let (switches, trunks) = graph::trunks(spec)?;
    let pairs: BTreeSet<_> = trunks
        .iter()
        .map(|(a, b, _)| (a.min(b), a.max(b)))
        .collect();
    let is_tree = pairs.len() < usize::from(switches);
    if !is_tree && !matches!(spec.topology, Topology::FatTree | Topology::FullMesh) {
        return refuse("switch.flow_control", "is \"pause\", by which switches in a circle can wait for each other for ever; join them as a tree, a fat-tree or a full mesh".into());
    }
    let trunks = trunks.iter().map(|(_, _, line)| (*line, Span::ZERO));
    for (line, path) in trunks.chain([(spec.line, spec.path.delay)]) {
        let least = headroom(spec, &line, path) + Bytes(2 * spec.mtu);
        if buffer < least {
            return refuse(
                "switch.buffer",
                format!(
                    "is {buffer}, but {least} are needed for what a line brings before a pause takes hold"
                ),
            );
        }
    }
    Ok(())
}

impl Paused {
    pub fn new(spec: &NetworkSpec, switch: Switch, ports: u16) -> Result<Self, SpecError> {
        let graph = Graph::new(spec, ports)?;
        let Limit::Bytes(buffer) = switch.buffer else {
            return check(spec).and_then(|()| refuse("switch.buffer", "is not a size".into()));
        };
        let of_station = (0..ports).map(|port| (*graph.line(Port(port)), spec.path.delay));
        let of_link = graph.links().iter().map(|link| (link.line, Span::ZERO));
        let mut senders = Vec::new();
        for (line, path) in of_station.chain(of_link) {
            let high = buffer.saturating_sub(headroom(spec, &line, path));
            if high.0 < spec.mtu {
                return refuse(
                    "port.rate",
                    format!(
                        "asks for more than the {buffer} of `switch.buffer` before a pause takes hold; enlarge the buffer"
                    ),
                );
            }
            senders.push(Sender {
                busy_until: Instant::START,
                paused: false,
                told: false,
                held: Bytes::ZERO,
                high,
                low: Bytes(high.0 / 2),
            });
        }
        Ok(Self {
            switch,
            ports,
            buffer,
            kinds: Kinds::new(spec, Some(&graph), ports),
            stations: (0..ports).map(|_| Queue::new(spec.station.queue)).collect(),
            outputs: graph.links().iter().map(|_| Output::default()).collect(),
            senders,
            ghosts: (0..ports).map(|_| VecDeque::new()).collect(),
            path: spec.path.delay,
            graph,
            up_at: Instant::START,
            calendar: Calendar::new(),
        })
    }

    /// The link of a sender that is not a station.
    fn link(&self, sender: usize) -> Option<LinkId> {
        let link = sender.checked_sub(usize::from(self.ports))?;
        Some(LinkId(link as u32))
    }

    fn pace(&mut self, sender: usize) -> &mut Pace {
        match self.link(sender) {
            Some(link) => self.kinds.of_link(link),
            None => self.kinds.of_station(Port(sender as u16)),
        }
    }

    /// The stations that a copy stands for.
    fn meant(&self, copy: &Copy, by: usize, edge: &Edge) -> Vec<Port> {
        match (copy.to, self.link(by)) {
            (Some(to), _) => vec![to],
            (None, Some(link)) => self.graph.beyond(link).to_vec(),
            (None, None) => edge.others(&copy.frame),
        }
    }

    fn lose(
        &self,
        now: Instant,
        copy: &Copy,
        by: usize,
        (place, cause): (Place, Cause),
        edge: &mut Edge,
    ) {
        for to in self.meant(copy, by, edge) {
            edge.lose(now, &copy.frame, to, place, cause);
        }
    }

    /// Lets a sender send its next frame, if it may and has one.
    fn kick(&mut self, now: Instant, sender: usize, edge: &mut Edge) {
        if self.senders[sender].paused || self.senders[sender].busy_until > now {
            return;
        }
        let Some(link) = self.link(sender) else {
            return self.start(now, sender, edge);
        };
        let output = &mut self.outputs[link.0 as usize];
        let Some(item) = output.items.pop_front() else {
            return;
        };
        output.bytes -= item.copy.frame.len;
        let pace = self.pace(sender);
        let (time, propagation) = (pace.time(item.copy.frame.len), pace.propagation());
        let (head, latency) = pace.forwarding(time);
        let dry = item.tail.as_picos().saturating_sub(time.as_picos());
        let ends = now.max(Instant::from_picos(dry)) + time;
        self.senders[sender].busy_until = ends;
        let held = item.by.map(|by| (by, item.copy.frame.len));
        self.calendar.insert(ends, Step::Free { sender, held });
        let copy = item.copy;
        if link.0 < u32::from(self.ports) {
            let to = Port(link.0 as u16);
            self.calendar
                .insert(ends + propagation, Step::Deliver { copy, to });
        } else {
            let tail = ends + propagation + latency;
            let by = sender;
            self.calendar
                .insert(tail - (time - head), Step::Forward { copy, by, tail });
        }
    }

    /// Lets a station send its next frame.
    fn start(&mut self, now: Instant, sender: usize, edge: &mut Edge) {
        let ghost = self.ghosts[sender].pop_front();
        let own = |ghost: Copy| (ghost.frame.len, ghost, false);
        let next = ghost.map(own).or_else(|| self.stations[sender].pop());
        let Some((len, copy, woken)) = next else {
            return;
        };
        if woken {
            edge.ready(now, Port(sender as u16));
        }
        let pace = self.pace(sender);
        let (time, propagation) = (pace.time(len), pace.propagation());
        let (head, latency) = pace.forwarding(time);
        let ends = now + time;
        self.senders[sender].busy_until = ends;
        self.calendar
            .insert(ends, Step::Free { sender, held: None });
        match edge.pass() {
            Some(delay) => {
                let (by, tail) = (sender, ends + propagation + latency + delay);
                self.calendar
                    .insert(tail - (time - head), Step::Forward { copy, by, tail });
            }
            None => self.lose(now, &copy, sender, (Place::Path, Cause::Random), edge),
        }
    }

    /// A copy is at a switch.
    fn forward(&mut self, now: Instant, copy: Copy, by: usize, tail: Instant, edge: &mut Edge) {
        let len = copy.frame.len;
        let cause = if now < self.up_at {
            Some(Cause::Restart)
        } else if self.senders[by].held + len > self.buffer {
            Some(Cause::Overflow)
        } else {
            None
        };
        if let Some(cause) = cause {
            return self.lose(now, &copy, by, (Place::Output, cause), edge);
        }
        let came = self.link(by);
        let at = came.map_or_else(
            || self.graph.switch_of(copy.frame.from),
            |link| self.graph.far(link),
        );
        let from = copy.frame.from;
        let way = |to| {
            let link = self.graph.next(at, from, to, copy.frame.flow)?;
            Some((link, Some(to)))
        };
        let ways: Vec<_> = match copy.to {
            Some(to) => way(to).into_iter().collect(),
            None if edge.is_for_group(&copy.frame) => edge
                .others(&copy.frame)
                .into_iter()
                .filter_map(way)
                .collect(),
            None => {
                let hosts = self.graph.hosts(at).iter().filter(|to| **to != from);
                let hosts = hosts.map(|to| (self.graph.last(*to), Some(*to)));
                hosts
                    .chain(self.graph.flood(at, came).map(|link| (link, None)))
                    .collect()
            }
        };
        let mut counted = Some(by);
        for (link, to) in ways {
            let by = counted.take();
            self.queue(
                now,
                link,
                Item {
                    copy: Copy { to, ..copy },
                    by,
                    tail,
                },
                edge,
            );
        }
        if counted.is_some() {
            return;
        }
        let sender = &mut self.senders[by];
        sender.held += len;
        if sender.held > sender.high && !sender.told {
            sender.told = true;
            self.tell(now, by, true);
        }
    }

    /// Sends a word to a sender, against the direction of its line.
    fn tell(&mut self, now: Instant, sender: usize, pause: bool) {
        let path = if self.link(sender).is_none() {
            self.path
        } else {
            Span::ZERO
        };
        let pace = self.pace(sender);
        let at = now + pace.time(WORD) + pace.propagation() + path;
        self.calendar.insert(at, Step::Word { sender, pause });
    }

    /// Puts a copy into the queue of an output.
    fn queue(&mut self, now: Instant, link: LinkId, mut item: Item, edge: &mut Edge) {
        let output = &mut self.outputs[link.0 as usize];
        output.bytes += item.copy.frame.len;
        if item.copy.frame.ecn == Ecn::Capable {
            item.copy.marked |= match self.switch.mark {
                Some(Limit::Bytes(bytes)) => output.bytes >= bytes,
                Some(Limit::Frames(n) | Limit::Cells(n)) => output.items.len() as u64 >= n,
                None => false,
            };
        }
        output.items.push_back(item);
        let sender = usize::from(self.ports) + link.0 as usize;
        self.kick(now, sender, edge);
    }

    /// A frame has left a switch that had counted it for a line.
    fn release(&mut self, now: Instant, by: usize, len: Bytes) {
        let sender = &mut self.senders[by];
        sender.held -= len;
        if sender.told && sender.held <= sender.low {
            sender.told = false;
            self.tell(now, by, false);
        }
    }

    /// All switches lose what they hold, and what comes to them until they are up; nobody is paused any more.
    fn restart(&mut self, now: Instant, down: Span, edge: &mut Edge) {
        let what = (Place::Output, Cause::Restart);
        for link in 0..self.outputs.len() {
            for item in std::mem::take(&mut self.outputs[link]).items {
                self.lose(now, &item.copy, usize::from(self.ports) + link, what, edge);
            }
        }
        let due: Vec<_> = std::iter::from_fn(|| self.calendar.pop()).collect();
        for (at, mut step) in due {
            match &mut step {
                Step::Word { .. } => continue,
                Step::Free { held, .. } => *held = None,
                Step::Deliver { copy, to } => {
                    let way = self.kinds.of_link(self.graph.last(*to)).propagation();
                    if at - way > now {
                        edge.lose(now, &copy.frame, *to, what.0, what.1);
                        continue;
                    }
                }
                Step::Forward { copy, by, tail } => {
                    let arrives = *tail - self.switch.latency;
                    let way = self.pace(*by).propagation();
                    let is_behind = self.link(*by).is_some() && arrives - way > now;
                    if arrives <= now || is_behind {
                        self.lose(now, copy, *by, what, edge);
                        continue;
                    }
                }
            }
            self.calendar.insert(at, step);
        }
        for sender in &mut self.senders {
            (sender.held, sender.told, sender.paused) = (Bytes::ZERO, false, false);
        }
        self.up_at = self.up_at.max(now + down);
        for sender in 0..self.senders.len() {
            self.kick(now, sender, edge);
        }
    }
}

impl Medium for Paused {
    fn admits(&mut self, _: Instant, port: Port, len: Bytes) -> bool {
        self.stations[usize::from(port.0)].admits(len)
    }

    fn ready(&self, port: Port) -> bool {
        self.stations[usize::from(port.0)].ready()
    }

    fn backlog(&mut self, _: Instant, port: Port) -> Bytes {
        self.stations[usize::from(port.0)].backlog()
    }

    fn take(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge) {
        let to = match target {
            Target::One(to) => Some(to),
            Target::All | Target::Server => {
                let others = edge.others(&frame).len();
                edge.copies(&frame, others);
                if others == 0 {
                    return;
                }
                None
            }
        };
        if self.ports > 1 {
            let marked = false;
            let sender = usize::from(frame.from.0);
            self.stations[sender].push(frame.len, Copy { frame, to, marked });
            self.kick(now, sender, edge);
        }
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        let copy = Copy {
            frame,
            to: Some(to),
            marked: false,
        };
        let sender = usize::from(frame.from.0);
        if sender < self.stations.len() {
            if self.ghosts[sender].len() >= GHOSTS_MAX {
                return edge.lose(now, &frame, to, Place::Station, Cause::Overflow);
            }
            self.ghosts[sender].push_back(copy);
            return self.kick(now, sender, edge);
        }
        let link = self.graph.last(to);
        if self.outputs[link.0 as usize].items.len() >= GHOSTS_MAX {
            return edge.lose(now, &frame, to, Place::Output, Cause::Overflow);
        }
        self.queue(
            now,
            link,
            Item {
                copy,
                by: None,
                tail: now,
            },
            edge,
        );
    }

    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused> {
        match command {
            Command::Vc(_) => Err(Refused::NoCircuits),
            Command::Fault(Fault::Restart { down }) => {
                self.restart(now, down, edge);
                Ok(())
            }
            _ => Err(Refused::NotHere {
                what: "such part that may change while switches pause their senders",
                remedy: "leave `flow_control` out",
            }),
        }
    }

    fn next_at(&self) -> Option<Instant> {
        self.calendar.next_at()
    }

    fn step(&mut self, edge: &mut Edge) {
        let Some((at, step)) = self.calendar.pop() else {
            return;
        };
        match step {
            Step::Forward { copy, by, tail } => self.forward(at, copy, by, tail, edge),
            Step::Deliver { copy, to } => {
                let mark = if copy.marked { Mark::Ce } else { Mark::Ok };
                edge.settle(at, &copy.frame, to, mark);
            }
            Step::Free { sender, held } => {
                if let Some((by, len)) = held {
                    self.release(at, by, len);
                }
                self.kick(at, sender, edge);
            }
            Step::Word { sender, pause } => {
                self.senders[sender].paused = pause;
                self.kick(at, sender, edge);
            }
        }
    }
}
