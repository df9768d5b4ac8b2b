//! What happens on a segment: signals, what each station hears of them, and when it sends.
//!
//! Model:   a station with a frame sends at once if it has sensed no carrier for an interframe gap; else when the carrier has
//!          been away for one. Carrier that comes in the last third of the gap no longer stops a frame that waits. What
//!          one station sends is sensed at another after the signal's way between them, so that stations which start within
//!          that time collide: each ends its preamble, sends the jam and waits a random number of slots, of a range that
//!          doubles with each collision of the frame. A frame is given up after as many attempts as are allowed. After a frame
//!          that came through, its station begins the next one a turnaround later than a gap from its end, if it senses no
//!          carrier by then; who has waited for others begins after the gap alone. Each station defers to, collides with and hears each signal at its own place; nothing is decided in common.
//! Source:  IEEE 802.3 §4.2.3.2 (deference, collision, jam, backoff), §4.2.8 (the same as a program), §4.4.2 (gap 96 bits,
//!          slot 512, jam 32, 16 attempts, backoff limit 10); Metcalfe and Boggs 1976. Deviations: stations stand at equal
//!          distances, hosts in the order of their ports, background stations at the far end; signals are sensed as soon
//!          as they are there; the turnaround is the adapter's, in no standard.
//! Units:   times from whole bytes on the line, each rounded up; nothing is drawn but slots.
//! Checked: `tests/bus.rs`; `tests/properties.rs`.

use super::signal::{Signal, Times};
use super::{Bus, refused};
use crate::calendar::Calendar;
use crate::edge::Edge;
use crate::medium::sender::Sender;
use crate::medium::{Medium, Target};
use crate::network::{Cause, Command, Place, Refused};
use crate::{AccessCounters, Fault, Frame, Line, NetworkSpec, Port, SpecError};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_units::{Bytes, Instant, Span};
use std::collections::BTreeMap;

/// Keeps the draws of this medium apart from others of the same seed.
const SEED: u64 = 0xC5_3A_CD;

/// A station of the segment.
struct Access {
    /// The signal's way from the near end of the segment.
    place: Span,
    sender: Sender,
    /// The frame that was tried already, or is on the line.
    current: Option<(Frame, Target)>,
    /// Collisions of that frame.
    collisions: u32,
    /// From when it wants to send; none while it sends, or has nothing.
    wants: Option<Instant>,
    /// Since when it has had this frame before all others; and when its own last signal ended.
    since: Instant,
    sent: Instant,
    /// Before when it cannot begin another frame, after one that came through.
    turned: Instant,
    /// When it starts to send, as far as is known.
    starts: Option<Instant>,
}

/// A copy that has left its sender.
struct Arrival {
    frame: Frame,
    to: Port,
}

/// The medium.
pub(crate) struct Segment {
    table: Bus,
    nominal: Line,
    times: Times,
    ports: u16,
    /// Those of the hosts, by port; then those of background traffic.
    stations: Vec<Access>,
    /// Where a station that is not a host stands in `stations`.
    others: BTreeMap<Port, usize>,
    queue: Bytes,
    /// What can still be sensed somewhere, or keeps a station from sending.
    signals: Vec<Signal>,
    /// From when to when each of them is heard at the station that is looked at.
    heard: Vec<(Instant, Instant)>,
    arrivals: Calendar<Arrival>,
    /// Whether stations defer whose start is not known yet; and the earliest time at which one of them may.
    deferring: bool,
    opens: Option<Instant>,
    /// The next start, and which station's; the next end of a signal, and its place in `signals`.
    next_start: Option<(Instant, usize)>,
    next_end: Option<(Instant, usize)>,
    random: Pcg64Mcg,
}

impl Segment {
    pub fn new(spec: &NetworkSpec, table: &Bus, ports: u16, seed: u64) -> Result<Self, SpecError> {
        let way = spec.line.propagation();
        let gaps = u64::from(ports.max(2) - 1);
        let place = |port: u64| Span::picos((way.as_picos() / gaps) * port);
        let queue = spec.station.queue;
        Ok(Self {
            nominal: spec.line,
            times: Times::new(spec.line, table),
            ports,
            stations: (0..u64::from(ports))
                .map(|port| Access::new(place(port), queue))
                .collect(),
            others: BTreeMap::new(),
            queue,
            signals: Vec::new(),
            heard: Vec::new(),
            arrivals: Calendar::new(),
            deferring: false,
            opens: None,
            next_start: None,
            next_end: None,
            random: Pcg64Mcg::seed_from_u64(seed ^ SEED),
            table: table.clone(),
        })
    }

    /// The station of background traffic `from` elsewhere; at the far end of the segment.
    fn other(&mut self, from: Port) -> usize {
        let next = self.stations.len();
        let index = *self.others.entry(from).or_insert(next);
        if index == next {
            let far = self.nominal.propagation();
            self.stations.push(Access::new(far, self.queue));
        }
        index
    }

    fn way(&self, a: usize, b: usize) -> Span {
        let (a, b) = (self.stations[a].place, self.stations[b].place);
        a.max(b).saturating_sub(a.min(b))
    }

    /// A frame has come to a station: if it is alone there, it is the next to be sent.
    fn call(&mut self, now: Instant, index: usize) {
        let station = &mut self.stations[index];
        if station.current.is_some() || station.wants.is_some() || station.sender.is_empty() {
            return;
        }
        (station.wants, station.since) = (Some(now.max(station.turned)), now);
        self.plan(index);
    }

    /// When a station will start, as far as is known: at once, or after a gap without carrier.
    fn plan(&mut self, index: usize) {
        let Some(wants) = self.stations[index].wants else {
            return;
        };
        let start = self.earliest(index, wants);
        self.stations[index].starts = Some(start);
        if self.next_start.is_none_or(|next| (start, index) < next) {
            self.next_start = Some((start, index));
        }
    }

    /// When a station that wants to send from some time on will find the deference over.
    fn earliest(&mut self, index: usize, wants: Instant) -> Instant {
        let (gap, gap_first) = (self.times.gap, self.times.gap_first);
        let mut heard = std::mem::take(&mut self.heard);
        heard.clear();
        heard.extend(self.signals.iter().map(|signal| {
            let way = self.way(index, signal.station);
            (signal.start + way, signal.end + way)
        }));
        if heard.len() > 1 {
            heard.sort_unstable();
        }
        let mut carrier: Option<Instant> = None;
        for &(rise, fall) in &heard {
            let Some(fell) = carrier else {
                if wants <= rise {
                    break;
                }
                carrier = Some(fall);
                continue;
            };
            let open = fell + gap;
            let anew = rise < fell + gap_first;
            if !anew && (wants <= open || (rise > open && wants <= rise)) {
                break;
            }
            carrier = Some(fell.max(fall));
        }
        self.heard = heard;
        carrier.map_or(wants, |fell| wants.max(fell + gap))
    }

    /// Plans anew after `sender` has started. Who starts before it hears that, does so: what ended the earlier by it, ends
    /// there later still. Who would start later than the last third of a gap after, hears it to its end and is planned
    /// then.
    fn plan_others(&mut self, now: Instant, sender: usize) {
        let late = self.times.gap.saturating_sub(self.times.gap_first);
        self.next_start = None;
        for index in 0..self.stations.len() {
            let Some(start) = self.stations[index].starts else {
                continue;
            };
            let rise = now + self.way(index, sender);
            if start > rise + late {
                self.stations[index].starts = None;
                self.deferring = true;
            } else if start > rise {
                self.plan(index);
            } else if self.next_start.is_none_or(|next| (start, index) < next) {
                self.next_start = Some((start, index));
            }
        }
        self.plan_end();
    }

    /// Plans those who defer, now that the first of them may go on.
    fn plan_deferring(&mut self) {
        (self.deferring, self.opens) = (false, None);
        for index in 0..self.stations.len() {
            if self.stations[index].starts.is_none() {
                self.plan(index);
            }
        }
    }

    /// The next end of a signal.
    fn plan_end(&mut self) {
        let ends = self.signals.iter().enumerate();
        let ends = ends.filter(|(_, signal)| !signal.ended);
        self.next_end = ends.map(|(place, signal)| (signal.end, place)).min();
    }

    /// Forgets what keeps nobody from sending any more.
    fn retire(&mut self, now: Instant) {
        let (gap, far) = (self.times.gap, self.nominal.propagation());
        while let Some(place) = self
            .signals
            .iter()
            .position(|signal| signal.ended && signal.end + far + gap < now)
        {
            let gone = self.signals.swap_remove(place);
            for index in 0..self.stations.len() {
                let open = gone.end + self.way(index, gone.station) + gap;
                let wants = &mut self.stations[index].wants;
                *wants = wants.map(|wants| wants.max(open));
            }
        }
    }

    /// A station begins to send.
    fn start(&mut self, now: Instant, index: usize, edge: &mut Edge) {
        self.retire(now);
        let station = &mut self.stations[index];
        let is_first = station.current.is_none();
        let wanted = station.wants.take().expect("only who wants starts");
        station.starts = None;
        if is_first {
            let ((frame, target), woken) =
                station.sender.pop().expect("only who has a frame wants");
            station.current = Some((frame, target));
            station.collisions = 0;
            if woken {
                edge.ready(now, Port(index as u16));
            }
        }
        let deferred = is_first && now > wanted.max(station.sent + self.times.gap);
        let (frame, _) = station.current.expect("there is a frame");
        if let Some(counters) = access(edge, self.ports, index) {
            counters.attempts += 1;
            counters.deferrals += u64::from(deferred);
        }
        let mut signal = Signal {
            station: index,
            start: now,
            end: now + self.times.frame(frame.len),
            collides: false,
            ended: false,
        };
        for place in 0..self.signals.len() {
            let way = self.way(index, self.signals[place].station);
            let (rise, jam) = (now + way, self.times.jam);
            let other = &mut self.signals[place];
            if other.station == index {
                continue;
            }
            if other.end + way > now {
                signal.collide(now.max(other.start + way), self.times.preamble, jam);
            }
            if !other.ended && rise < other.end {
                other.collide(rise, self.times.preamble, jam);
            }
        }
        self.signals.push(signal);
        self.plan_others(now, index);
    }

    /// A station ends what it sends.
    fn end(&mut self, now: Instant, place: usize, edge: &mut Edge) {
        let signal = &mut self.signals[place];
        signal.ended = true;
        let (index, collides) = (signal.station, signal.collides);
        self.stations[index].sent = now;
        if collides {
            self.back_off(now, index, edge);
        } else {
            self.leave(now, index, edge);
        }
        self.call(now, index);
        if self.deferring && self.opens.is_none() {
            self.opens = Some(now + self.times.gap);
        }
        self.plan_end();
    }

    /// A frame has collided: it is tried again later, or given up.
    fn back_off(&mut self, now: Instant, index: usize, edge: &mut Edge) {
        let station = &mut self.stations[index];
        station.collisions += 1;
        let excessive = station.collisions == self.table.attempts;
        if let Some(counters) = access(edge, self.ports, index) {
            counters.collisions += 1;
            counters.excessive += u64::from(excessive);
        }
        if excessive {
            let (frame, target) = station.current.take().expect("it was on the line");
            self.each(frame, target, edge, |_, edge, to| {
                edge.lose(now, &frame, to, Place::Medium, Cause::Collisions);
            });
            return;
        }
        let range = 1u64 << station.collisions.min(self.table.backoff_limit);
        let slots = self.random.next_u64() >> 32 & (range - 1);
        station.wants = Some(now + self.times.slot * slots);
        self.plan(index);
    }

    /// A frame has left its station whole.
    fn leave(&mut self, now: Instant, index: usize, edge: &mut Edge) {
        let station = &mut self.stations[index];
        let (frame, target) = station.current.take().expect("it was on the line");
        station.turned = now + self.times.gap + self.table.turnaround;
        let waited = (now - self.times.frame(frame.len)).since(station.since);
        if let Some(counters) = access(edge, self.ports, index) {
            counters.access_max = counters.access_max.max(waited);
        }
        self.each(frame, target, edge, |segment, _, to| {
            let at = now + segment.way(index, usize::from(to.0));
            segment.arrivals.insert(at, Arrival { frame, to });
        });
    }

    /// Does something for each copy of a frame.
    fn each(
        &mut self,
        frame: Frame,
        target: Target,
        edge: &mut Edge,
        mut with: impl FnMut(&mut Self, &mut Edge, Port),
    ) {
        match target {
            Target::One(to) => with(self, edge, to),
            Target::All | Target::Server => {
                let others = edge.others(&frame);
                edge.copies(&frame, others.len());
                for to in others {
                    with(self, edge, to);
                }
            }
        }
    }
}

impl Access {
    fn new(place: Span, queue: Bytes) -> Self {
        Self {
            place,
            sender: Sender::new(queue),
            current: None,
            collisions: 0,
            wants: None,
            since: Instant::START,
            sent: Instant::START,
            turned: Instant::START,
            starts: None,
        }
    }
}

/// What is counted of a host's access; none for background stations.
fn access(edge: &mut Edge, ports: u16, index: usize) -> Option<&mut AccessCounters> {
    (index < usize::from(ports)).then(|| edge.counters.access(index))
}

impl Medium for Segment {
    fn admits(&mut self, _: Instant, port: Port, len: Bytes) -> bool {
        self.stations[usize::from(port.0)].sender.admits(len)
    }

    fn ready(&self, port: Port) -> bool {
        self.stations[usize::from(port.0)].sender.ready()
    }

    fn backlog(&mut self, _: Instant, port: Port) -> Bytes {
        self.stations[usize::from(port.0)].sender.backlog()
    }

    fn take(&mut self, now: Instant, frame: Frame, target: Target, _: &mut Edge) {
        let index = usize::from(frame.from.0);
        self.stations[index].sender.push(frame, target);
        self.call(now, index);
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        let index = if frame.from.0 < self.ports {
            usize::from(frame.from.0)
        } else {
            self.other(frame.from)
        };
        if !self.stations[index]
            .sender
            .push_background(frame, Target::One(to))
        {
            return edge.lose(now, &frame, to, Place::Station, Cause::Overflow);
        }
        self.call(now, index);
    }

    fn command(&mut self, _: Instant, command: Command, _: &mut Edge) -> Result<(), Refused> {
        match command {
            Command::Fault(Fault::Rate { rate }) => {
                let mut line = self.nominal;
                line.rate = rate.or(line.rate);
                if let Some(most) = self.table.shortfall(&line) {
                    return Err(Refused::Value {
                        what: "the rate of this segment",
                        value: rate.map_or_else(String::new, |rate| {
                            format!("{rate} (its length would have to be at most {most})")
                        }),
                        remedy: "choose a lower rate, or a shorter segment (`length_m=20`)",
                    });
                }
                self.times = Times::new(line, &self.table);
                Ok(())
            }
            command => Err(refused(&command)),
        }
    }

    fn next_at(&self) -> Option<Instant> {
        let start = self.next_start.map(|(at, _)| at);
        let end = self.next_end.map(|(at, _)| at);
        [start, end, self.opens, self.arrivals.next_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn step(&mut self, edge: &mut Edge) {
        let Some(now) = self.next_at() else {
            return;
        };
        if let Some((_, place)) = self.next_end.filter(|(at, _)| *at == now) {
            return self.end(now, place, edge);
        }
        if self.opens == Some(now) {
            return self.plan_deferring();
        }
        if let Some((_, index)) = self.next_start.filter(|(at, _)| *at == now) {
            return self.start(now, index, edge);
        }
        if let Some((at, Arrival { frame, to })) = self.arrivals.pop() {
            edge.arrive(at, &frame, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, FrameId, named, resolve};
    use proptest::prelude::*;

    fn frame(id: u64, from: u16, len: u64) -> Frame {
        Frame::datagram(FrameId(id), Port(from), Port(0), Bytes(len))
    }

    /// A signal as it was in the end.
    #[derive(Clone, Copy, Debug)]
    struct Sent {
        station: usize,
        start: Instant,
        end: Instant,
        collides: bool,
    }

    /// What was on the segment while frames came at the given times.
    fn sent(spec: &NetworkSpec, ports: u16, offers: &[(u64, u16, u64)]) -> (Segment, Vec<Sent>) {
        let bus = spec.bus.as_ref().expect("it is a segment");
        let mut segment = Segment::new(spec, bus, ports, 1).expect("it is right");
        let mut edge = Edge::new(spec, ports, 1);
        let (mut now, mut sent) = (Instant::START, Vec::new());
        let mut run = |segment: &mut Segment, edge: &mut Edge, until: Instant| {
            while let Some(at) = segment.next_at().filter(|at| *at <= until) {
                if let Some((_, place)) = segment.next_end.filter(|(end, _)| *end == at) {
                    let Signal {
                        station,
                        start,
                        end,
                        collides,
                        ..
                    } = segment.signals[place];
                    sent.push(Sent {
                        station,
                        start,
                        end,
                        collides,
                    });
                }
                segment.step(edge);
            }
        };
        for (id, &(gap, from, len)) in (0..).zip(offers) {
            now = now + Span::picos(gap);
            run(&mut segment, &mut edge, now);
            let from = from % ports;
            let to = Port((from + 1) % ports);
            if segment.admits(now, Port(from), Bytes(len)) {
                segment.take(now, frame(id, from, len), Target::One(to), &mut edge);
            }
        }
        run(&mut segment, &mut edge, Instant::from_picos(u64::MAX));
        (segment, sent)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// No frame is received while another signal is heard, whoever collides has heard another, nobody starts into what
        /// it has heard for longer than a third of a gap, and no fragment is shorter than preamble and jam.
        #[test]
        fn collisions_are_those_of_the_wire(
            way in prop_oneof![Just(0u64), Just(925_000), 0u64..24_000_000],
            ports in 2u16..9,
            turnaround in prop_oneof![Just(0u64), Just(2_000_000), 0u64..1_000_000_000],
            offers in proptest::collection::vec((prop_oneof![Just(0u64), 0u64..3_000_000, 0u64..3_000_000_000], 0u16..9, 0u64..1_500), 1..80),
        ) {
            let spec = resolve(
                &format!("ethernet-10:propagation={way}ps:turnaround={turnaround}ps"),
                &|_| unreachable!(),
            )
            .unwrap();
            let (segment, sent) = sent(&spec, ports, &offers);
            let times = segment.times;
            for one in &sent {
                let others = || sent.iter().filter(|other| other.station != one.station);
                for place in 0..usize::from(ports) {
                    let here = segment.way(one.station, place);
                    for other in others().filter(|_| !one.collides) {
                        let there = segment.way(other.station, place);
                        prop_assert!(
                            other.end + there <= one.start + here || one.end + here <= other.start + there,
                            "{other:?} is heard beside {one:?} at {place}"
                        );
                    }
                }
                let heard = |other: &&Sent| {
                    let way = segment.way(one.station, other.station);
                    other.start + way < one.end && one.start < other.end + way
                };
                prop_assert_eq!(one.collides, others().any(|other| heard(&other)), "{:?}", one);
                for other in others().filter(heard) {
                    let rise = other.start + segment.way(one.station, other.station);
                    let late = times.gap.saturating_sub(times.gap_first);
                    prop_assert!(one.start.since(rise) <= late, "{one:?} starts into {other:?}");
                }
                prop_assert!(one.end.since(one.start) >= times.preamble + times.jam);
                for own in sent.iter().filter(|own| own.station == one.station && own.end <= one.start) {
                    let turnaround = Span::picos(if own.collides { 0 } else { turnaround });
                    prop_assert!(one.start.since(own.end) >= times.gap + turnaround);
                }
            }
        }
    }

    /// Background traffic shares the turns of a host, or has a station of its own at the far end.
    #[test]
    fn background_takes_turns() {
        let spec = named("ethernet-10").unwrap();
        let mut segment = Segment::new(&spec, &Bus::default(), 3, 1).unwrap();
        let mut edge = Edge::new(&spec, 3, 1);
        for (id, from) in [(0, 0), (1, 7), (2, 7), (3, 9), (4, 0)] {
            segment.background(Instant::START, frame(id, from, 500), Port(1), &mut edge);
        }
        segment.take(
            Instant::START,
            frame(5, 0, 500),
            Target::One(Port(1)),
            &mut edge,
        );
        assert_eq!(segment.stations.len(), 5);
        assert_eq!(segment.stations[3].place, spec.line.propagation());
        while segment.next_at().is_some() {
            segment.step(&mut edge);
        }
        let mut delivered: Vec<_> = std::iter::from_fn(|| edge.tell())
            .filter_map(|event| match event {
                Event::Deliver {
                    id, to: Port(1), ..
                } => Some(id.0),
                _ => None,
            })
            .collect();
        // Those of one station in their order.
        assert!(
            delivered
                .iter()
                .filter(|id| [0, 4, 5].contains(*id))
                .is_sorted()
        );
        delivered.sort_unstable();
        assert_eq!(delivered, [0, 1, 2, 3, 4, 5]);
        let endless = (0..5_000).map(|id| frame(10 + id, 0, 500));
        let late = Instant::START + Span::secs(1);
        endless.for_each(|frame| segment.background(late, frame, Port(1), &mut edge));
        assert_eq!(
            edge.counters.lost[&(Place::Station, Cause::Overflow, Port(0))],
            904
        );
        assert!(segment.ready(Port(0)));
    }
}
