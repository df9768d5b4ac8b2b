//! A ring with a timed token: FDDI.
//!
//! Model:   the token goes round; each station repeats it, after its own delay, to the next. A station with frames takes it
//!          when its rotation timer says that it came early, sends until the time by which it was early has passed or nothing
//!          waits, and gives it on. A frame that was begun is finished. Each station's timer counts the target time
//!          (TTRT) from the token's last early visit; when it runs out the token is late: the timer starts anew,
//!          and the next visit only clears that mark. Frames pass every station once, are copied at their destinations, all
//!          in one turn, and taken off by their sender. While nobody has a frame the token's place is known by arithmetic:
//!          an idle ring does nothing.
//! Source:  ANSI X3.139 §8.3 (TRT, THT, Late_Ct), ISO 9314-2; Grow 1982; Jain 1990/91; RFC 1390 (4352 bytes).
//!          Deviations: asynchronous class of one priority only, no restricted token; no claim process: the ring is up.
//! Units:   picoseconds; frames and the token round up.
//! Checked: `tests/token.rs` (the four points of Jain's formula, bounds of rotation and access); `tests/properties.rs`.

use crate::calendar::Calendar;
use crate::edge::Edge;
use crate::medium::bus::refused;
use crate::medium::sender::Sender;
use crate::medium::{Medium, Target};
use crate::network::{Cause, Command, Place, Refused};
use crate::{Fault, Frame, Framing, Line, NetworkSpec, Port, SpecError, Topology};
use serde::{Deserialize, Serialize};
use sonde_units::{Bytes, Instant, Span};

/// A ring with a timed token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRing {
    /// The target token rotation time that the stations agreed on (TTRT).
    pub ttrt: Span,
    /// Stations on the ring; those beyond the hosts only repeat. Fewer than the hosts: there are the hosts alone.
    #[serde(default)]
    pub stations: u64,
    /// What each station adds to the way round.
    pub station_delay: Span,
    /// Metres of fibre all the way round, of 5.085 ns each.
    #[serde(default)]
    pub fibre_m: u64,
}

/// Preamble 8, starting delimiter 1, frame control 1, ending delimiter 1.
const TOKEN: Bytes = Bytes(11);
/// The refractive index of fibre, 1.5245 (ANSI X3.139 counts 5.085 us a kilometre).
const FIBRE_PER_METRE: Span = Span::picos(5_085);
/// 500 stations of two attachments (ANSI X3.139), and 200 km.
const STATIONS_MAX: u64 = 1_000;
const FIBRE_MAX_M: u64 = 200_000;
/// The largest that a timer of 22 bits of 80 ns holds is 335 ms; stations ask for at most 165 ms.
const TTRT_MAX: Span = Span::millis(335);

impl TokenRing {
    /// Whether its values are in their ranges and fit the rest of `spec`.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub(crate) fn check(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        let refuse = |key, problem: String| Err(SpecError { key, problem });
        if spec.topology != Topology::Ring {
            let problem = "needs `topology = \"ring\"`; leave the table out otherwise";
            return refuse("token", problem.into());
        }
        if spec.switch.is_some() {
            let problem = "needs `topology = \"star\"`; a ring has none";
            return refuse("switch", problem.into());
        }
        if spec.line.framing() != Framing::Fddi {
            return refuse(
                "line.framing",
                "is not \"fddi\", as that of a token ring is".into(),
            );
        }
        if spec.line.rate.is_none() {
            let problem = "is missing; a ring needs one, such as `100Mbit`";
            return refuse("line.rate", problem.into());
        }
        if !spec.line.propagation().is_zero() {
            let problem = "is for a line; write `fibre_m` in [token], the length of the ring";
            return refuse("line.propagation", problem.into());
        }
        for (key, value, most) in [
            ("token.stations", self.stations, STATIONS_MAX),
            ("token.fibre_m", self.fibre_m, FIBRE_MAX_M),
        ] {
            if value > most {
                return refuse(key, format!("is {value}, but at most {most} are possible"));
            }
        }
        if self.station_delay > Span::millis(1) {
            let problem = format!("is {}, but at most 1ms is possible", self.station_delay);
            return refuse("token.station_delay", problem);
        }
        self.check_times(&spec.line, spec.mtu, 2)
    }

    /// Whether the token has its place on a ring of `hosts`, and comes round in time.
    fn check_times(&self, line: &Line, mtu: u64, hosts: u16) -> Result<(), SpecError> {
        let refuse = |key, problem: String| Err(SpecError { key, problem });
        let (latency, token) = (self.latency(hosts), line.unit_time(TOKEN));
        if latency < token {
            let problem = format!(
                "makes a ring of {latency} with {hosts} hosts, too short for the token of {token}; enlarge it, or `fibre_m`"
            );
            return refuse("token.station_delay", problem);
        }
        // The MTU itself is checked after this.
        let least = latency + token + line.time(Bytes(mtu.min(u64::from(u16::MAX))));
        if self.ttrt < least || self.ttrt > TTRT_MAX {
            let problem = format!(
                "is {}, but from {least} (once round, a token, a frame) to {TTRT_MAX} is possible",
                self.ttrt
            );
            return refuse("token.ttrt", problem);
        }
        Ok(())
    }

    /// Once round an idle ring with so many hosts: the delay of every station, and the fibre.
    pub fn latency(&self, hosts: u16) -> Span {
        let stations = self.stations.max(u64::from(hosts));
        self.station_delay * stations + FIBRE_PER_METRE * self.fibre_m
    }

    /// For how long a frame of `len` layer-3 bytes keeps others of a stream off the ring. The token's way is not counted: of
    /// a ring with n busy stations it leaves n (T - D) / (n T + D), T the target time, D once round with the token (Jain 1991).
    pub(crate) fn frame_time(&self, spec: &NetworkSpec, len: Bytes) -> Span {
        spec.line.time(len)
    }
}

/// A station of the ring.
struct Turn {
    sender: Sender,
    /// From the first station to this one.
    place: Span,
    /// Since when the rotation timer counts.
    timer: Instant,
    /// The token's last visit.
    visited: Instant,
    /// Since when the first frame of the queue is the first.
    since: Instant,
}

/// Where the token is.
#[derive(Clone, Copy)]
enum Token {
    /// On its way: it was at a station at this time.
    Free { station: usize, at: Instant },
    /// At a station, which may begin frames until the second time; the frame on the line ends at the first.
    Held {
        station: usize,
        frame_ends: Instant,
        until: Instant,
    },
}

/// A copy that is on its way.
struct Arrival {
    frame: Frame,
    to: Port,
}

/// The medium.
pub(crate) struct Ring {
    table: TokenRing,
    mtu: u64,
    nominal: Line,
    line: Line,
    token_time: Span,
    ttrt: Span,
    latency: Span,
    ports: u16,
    /// Those of the hosts, by port; then one for background traffic from elsewhere.
    stations: Vec<Turn>,
    token: Token,
    /// The next visit of the token that matters, and at which station; or the end of a frame.
    next: Option<(Instant, usize)>,
    arrivals: Calendar<Arrival>,
    /// The last length that was timed.
    kept: (Bytes, Span),
}

impl Ring {
    pub fn new(
        spec: &NetworkSpec,
        table: &TokenRing,
        ports: u16,
        _seed: u64,
    ) -> Result<Self, SpecError> {
        table.check_times(&spec.line, spec.mtu, ports)?;
        let latency = table.latency(ports);
        let place = |index: u64| {
            let picos =
                u128::from(latency.as_picos()) * u128::from(index.min(u64::from(ports) - 1));
            Span::picos((picos / u128::from(ports)) as u64)
        };
        let station = |index| Turn {
            sender: Sender::new(spec.station.queue),
            place: place(index),
            timer: Instant::START,
            visited: Instant::START,
            since: Instant::START,
        };
        Ok(Self {
            table: table.clone(),
            mtu: spec.mtu,
            nominal: spec.line,
            line: spec.line,
            token_time: spec.line.unit_time(TOKEN),
            ttrt: table.ttrt,
            latency,
            ports,
            stations: (0..=u64::from(ports)).map(station).collect(),
            token: Token::Free {
                station: 0,
                at: Instant::START,
            },
            next: None,
            arrivals: Calendar::new(),
            kept: (Bytes(u64::MAX), Span::ZERO),
        })
    }

    /// How long a frame of `len` takes.
    fn time(&mut self, len: Bytes) -> Span {
        if self.kept.0 != len {
            self.kept = (len, self.line.time(len));
        }
        self.kept.1
    }

    /// From one station on to another; once round to itself, and to one at the same place before it.
    fn way(&self, from: usize, to: usize) -> Span {
        let (start, end) = (self.stations[from].place, self.stations[to].place);
        if to > from {
            end.saturating_sub(start)
        } else {
            (self.latency + end).saturating_sub(start)
        }
    }

    /// The first visit of a free token, which was at a station at `since`, to another from `now` on.
    fn visit(&self, (from, since): (usize, Instant), to: usize, now: Instant) -> Instant {
        let first = since + self.way(from, to);
        let behind = now.since(first).as_picos();
        first + self.latency * behind.div_ceil(self.latency.as_picos())
    }

    /// Finds out what the token does next: nothing while nobody has a frame.
    fn plan(&mut self, now: Instant) {
        let (station, at) = match self.token {
            Token::Held {
                station,
                frame_ends,
                ..
            } => {
                self.next = Some((frame_ends, station));
                return;
            }
            Token::Free { station, at } => (station, at),
        };
        let waiting =
            (0..self.stations.len()).filter(|index| !self.stations[*index].sender.is_empty());
        // Of two at the same place the token meets the first one first, seen from where it comes.
        let visits = waiting.map(|index| {
            let order = (index + self.stations.len() - station - 1) % self.stations.len();
            (self.visit((station, at), index, now), order, index)
        });
        self.next = visits.min().map(|(at, _, index)| (at, index));
    }

    /// A frame has come to a station.
    fn call(&mut self, now: Instant, index: usize, was_empty: bool) {
        if was_empty {
            self.stations[index].since = now;
        }
        if was_empty && matches!(self.token, Token::Free { .. }) {
            self.plan(now);
        }
    }
}

impl Turn {
    /// The token is here: for how long it came early, if it did.
    fn visited(&mut self, now: Instant, ttrt: Span) -> Option<Span> {
        self.visited = now;
        let elapsed = now.since(self.timer);
        if elapsed < ttrt {
            self.timer = now;
            return Some(ttrt.saturating_sub(elapsed));
        }
        // The timer ran out meanwhile and counts anew since then.
        self.timer = self.timer + ttrt * (elapsed.as_picos() / ttrt.as_picos());
        None
    }
}

impl Ring {
    /// The token went from one station to another, past stations with nothing to send, maybe many times round.
    fn pass(
        &mut self,
        (from, since): (usize, Instant),
        (to, now): (usize, Instant),
        edge: &mut Edge,
    ) {
        let count = self.stations.len();
        let hops = (to + count - from - 1) % count;
        let is_direct = since + self.way(from, to) == now;
        for order in 0..if is_direct { hops } else { count } {
            let index = (from + 1 + order) % count;
            let first = since + self.way(from, index);
            let behind = now.since(first).as_picos();
            let visits = match (behind.div_ceil(self.latency.as_picos()), order < hops) {
                // At the same place the token meets this one before.
                (rounds, true) if self.latency * rounds == Span::picos(behind) && first <= now => {
                    rounds + 1
                }
                (rounds, _) => rounds,
            };
            self.go_round(index, first, visits, edge);
        }
    }

    /// A station without frames sees the token so many times, always once round later.
    fn go_round(&mut self, index: usize, first: Instant, visits: u64, edge: &mut Edge) {
        if index == 0 {
            edge.counters.token_rotations += visits;
        }
        for number in 0..visits {
            let now = first + self.latency * number;
            if self.look(index, now, edge).is_some() {
                // All later ones are early as well.
                let last = first + self.latency * (visits - 1);
                let station = &mut self.stations[index];
                (station.timer, station.visited) = (last, last);
                return;
            }
        }
    }

    /// A station sees the token: for how long it came early, if it did.
    fn look(&mut self, index: usize, now: Instant, edge: &mut Edge) -> Option<Span> {
        let station = &mut self.stations[index];
        let longest = &mut edge.counters.token_rotation_max;
        *longest = (*longest).max(now.since(station.visited));
        station.visited(now, self.ttrt)
    }

    /// The token is at a station with frames.
    fn hold(&mut self, now: Instant, index: usize, edge: &mut Edge) {
        if index == 0 {
            edge.counters.token_rotations += 1;
        }
        match self.look(index, now, edge) {
            Some(early) => self.send(now, index, now + early, edge),
            None => {
                self.token = Token::Free {
                    station: index,
                    at: now,
                };
                self.plan(now);
            }
        }
    }

    /// The station with the token begins a frame.
    fn send(&mut self, now: Instant, index: usize, until: Instant, edge: &mut Edge) {
        let station = &mut self.stations[index];
        let ((frame, target), woken) = station
            .sender
            .pop()
            .expect("only who has a frame holds the token");
        let waited = now.since(station.since);
        station.since = now;
        if index < usize::from(self.ports) {
            let counters = edge.counters.access(index);
            counters.attempts += 1;
            counters.access_max = counters.access_max.max(waited);
        }
        if woken {
            edge.ready(now, Port(index as u16));
        }
        let frame_ends = now + self.time(frame.len);
        match target {
            Target::One(to) => self.copy(frame_ends, index, frame, to),
            Target::All | Target::Server => {
                let others = edge.others(&frame);
                edge.copies(&frame, others.len());
                for to in others {
                    self.copy(frame_ends, index, frame, to);
                }
            }
        }
        self.token = Token::Held {
            station: index,
            frame_ends,
            until,
        };
        self.next = Some((frame_ends, index));
    }

    /// A copy is on its way to a station.
    fn copy(&mut self, sent: Instant, from: usize, frame: Frame, to: Port) {
        let at = sent + self.way(from, usize::from(to.0));
        self.arrivals.insert(at, Arrival { frame, to });
    }

    /// A frame has left the station with the token.
    fn go_on(&mut self, now: Instant, index: usize, until: Instant, edge: &mut Edge) {
        if now < until && !self.stations[index].sender.is_empty() {
            return self.send(now, index, until, edge);
        }
        self.token = Token::Free {
            station: index,
            at: now + self.token_time,
        };
        self.plan(now);
    }
}

impl Medium for Ring {
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
        let sender = &mut self.stations[index].sender;
        let was_empty = sender.is_empty();
        sender.push(frame, target);
        self.call(now, index, was_empty);
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        let index = usize::from(frame.from.0.min(self.ports));
        let sender = &mut self.stations[index].sender;
        let was_empty = sender.is_empty();
        if !sender.push_background(frame, Target::One(to)) {
            return edge.lose(now, &frame, to, Place::Station, Cause::Overflow);
        }
        self.call(now, index, was_empty);
    }

    fn command(&mut self, _: Instant, command: Command, _: &mut Edge) -> Result<(), Refused> {
        let Command::Fault(Fault::Rate { rate }) = command else {
            return Err(refused(&command));
        };
        let mut line = self.nominal;
        line.rate = rate.or(line.rate);
        if let Err(error) = self.table.check_times(&line, self.mtu, self.ports) {
            return Err(Refused::Value {
                what: "the rate of this ring",
                value: rate.map_or_else(String::new, |rate| {
                    format!("{rate} (`{}` {})", error.key, error.problem)
                }),
                remedy: "choose one at which the token is shorter than the ring, and a frame than the target rotation time",
            });
        }
        self.line = line;
        self.token_time = line.unit_time(TOKEN);
        self.kept = (Bytes(u64::MAX), Span::ZERO);
        Ok(())
    }

    fn next_at(&self) -> Option<Instant> {
        let next = self.next.map(|(at, _)| at);
        [next, self.arrivals.next_at()].into_iter().flatten().min()
    }

    fn step(&mut self, edge: &mut Edge) {
        let Some(now) = self.next_at() else {
            return;
        };
        if self.arrivals.next_at() == Some(now) {
            if let Some((at, Arrival { frame, to })) = self.arrivals.pop() {
                edge.arrive(at, &frame, to);
            }
            return;
        }
        let Some((_, index)) = self.next else {
            return;
        };
        match self.token {
            Token::Free { station, at } => {
                self.pass((station, at), (index, now), edge);
                self.hold(now, index, edge);
            }
            Token::Held { until, .. } => self.go_on(now, index, until, edge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, FrameId, named};

    /// Background traffic has turns of a host's, or of a station behind the last host; it is bounded and holds no host back.
    #[test]
    fn background_takes_turns() {
        let spec = named("fddi").unwrap();
        let table = spec.token.clone().unwrap();
        let mut ring = Ring::new(&spec, &table, 3, 1).unwrap();
        let mut edge = Edge::new(&spec, 3, 1);
        let frame = |id, from| Frame::datagram(FrameId(id), Port(from), Port(1), Bytes(500));
        for (id, from) in [(0, 0), (1, 7), (2, 9), (3, 2)] {
            ring.background(Instant::START, frame(id, from), Port(1), &mut edge);
        }
        ring.take(Instant::START, frame(4, 0), Target::One(Port(1)), &mut edge);
        while ring.next_at().is_some() {
            ring.step(&mut edge);
        }
        let delivered = std::iter::from_fn(|| edge.tell()).filter_map(|event| match event {
            Event::Deliver {
                id, to: Port(1), ..
            } => Some(id.0),
            _ => None,
        });
        // The token has just left the first station: the third is next, then what stands behind it.
        assert_eq!(delivered.collect::<Vec<_>>(), [3, 1, 2, 0, 4]);
        let late = Instant::START + Span::secs(1);
        for id in 0..5_000 {
            ring.background(late, frame(10 + id, 0), Port(1), &mut edge);
        }
        let lost = (Place::Station, Cause::Overflow, Port(0));
        // The token is on its way: none of them has left yet.
        assert_eq!(edge.counters.lost[&lost], 5_000 - 4_096);
        assert!(ring.ready(Port(0)));
    }
}
