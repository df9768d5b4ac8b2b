//! The medium: its state, its steps, and what a [`Fabric`](crate::Fabric) asks of it.
//!
//! Model:   stations pull: a frame waits in its station's queue until its first packet starts. A change of the rate holds for
//!          datagrams chosen after it; a restart loses what the chips hold and what reaches them before it is over.
//! Checked: `buffers_are_never_lost_or_found`, `trains_are_exactly_the_plain_machine`; `tests/credit.rs`.

use super::agenda::{Agenda, Step};
use super::connection::Connections;
use super::ends::{Login, Source, Waiting};
use super::machine::{Datagram, Input, Line};
use super::packing::{PacketPace, Packing};
use super::train::{NOBODY, Train};
use super::wiring::Wiring;
use crate::edge::Edge;
use crate::medium::{Medium, Target};
use crate::network::{Command, Refused, VcCommand};
use crate::station::Queue;
use crate::{Credit, Fault, Forwarding, Frame, Limit, NetworkSpec, Port, SpecError, Topology};
use sonde_units::{BitRate, Bytes, Instant, Span};
use std::collections::VecDeque;

/// Tables are kept for each two stations.
const PORTS_MAX: u16 = 1_024;

/// The medium.
pub(crate) struct Net {
    pub(super) packing: Packing,
    /// Of the lines, and of the adapters.
    pub(super) paces: [PacketPace; 2],
    rate: BitRate,
    head: Bytes,
    payload: sonde_units::Ratio,
    pub(super) propagation: Span,
    pub(super) forwarding: Forwarding,
    pub(super) latency: Span,
    pub(super) wiring: Wiring,
    pub(super) inputs: Vec<Input>,
    pub(super) lines: Vec<Line>,
    /// The chip before each line.
    pub(super) before: Vec<Option<usize>>,
    /// Of each chip: packets that its central queue still takes, its inputs, the one that was served last.
    pub(super) rooms: Vec<u32>,
    #[cfg(test)]
    shared: u32,
    pub(super) chip_inputs: Vec<Vec<u32>>,
    pub(super) absorbed: Vec<u32>,
    pub(super) datagrams: Vec<Datagram>,
    pub(super) free: Vec<u32>,
    pub(super) stations: Vec<Queue<Waiting>>,
    pub(super) sources: Vec<Source>,
    pub(super) login: Span,
    pub(super) logins: Vec<Login>,
    /// Class 2, from one station to another: packets not acknowledged yet, and how many may be.
    pub(super) is_acknowledged: bool,
    pub(super) outstanding: Vec<u32>,
    pub(super) end_credits: u32,
    pub(super) connections: Option<Connections>,
    pub(super) connect: Span,
    /// Datagrams of class 1 that have ended in this step.
    pub(super) ended: Vec<(u16, u16)>,
    pub(super) discard_after: Option<Span>,
    pub(super) resolution_delay: Span,
    /// Requests that the address server has in hand, first in, first out.
    pub(super) asked: VecDeque<u32>,
    /// Whether datagrams that are alone on their way are computed as trains; of each source; of each line the source of the
    /// train on it, and how many datagrams use it.
    pub(super) has_trains: bool,
    pub(super) trains: Vec<Train>,
    pub(super) owners: Vec<u32>,
    pub(super) users: Vec<u32>,
    /// When the switch is up again.
    pub(super) up_at: Instant,
    pub(super) calendar: Agenda,
}

fn check_ports(spec: &NetworkSpec, ports: u16) -> Result<(), SpecError> {
    let problem = if spec.topology == Topology::Line && ports != 2 {
        format!("is a line, which joins 2 hosts, not {ports}; ask for 2, or use a star")
    } else if ports > PORTS_MAX {
        format!("joins at most {PORTS_MAX} hosts by credits, not {ports}")
    } else {
        return Ok(());
    };
    let key = "topology";
    Err(SpecError { key, problem })
}

impl Net {
    pub fn new(
        spec: &NetworkSpec,
        table: &Credit,
        ports: u16,
        _seed: u64,
    ) -> Result<Self, SpecError> {
        check_ports(spec, ports)?;
        let packing = Packing::new(spec, table);
        let rate = spec.line.usable().expect("it was checked");
        let pace = |rate| PacketPace::new(packing, rate, table.head);
        let paces = [pace(rate), pace(table.adapter_rate.unwrap_or(rate))];
        let buffers = match spec.switch.map(|switch| switch.buffer) {
            Some(Limit::Frames(buffers)) => buffers as u32,
            _ => table.credits,
        };
        let wiring = Wiring::new(spec, table, ports, buffers);
        let inputs: Vec<_> = wiring
            .inputs
            .iter()
            .map(|&(node, feeder)| Input::new(node, feeder))
            .collect();
        let mut chip_inputs = vec![Vec::new(); wiring.all_chips()];
        for (number, (node, _)) in (0..).zip(&wiring.inputs) {
            if let Some(chip) = wiring.chip_number(*node) {
                chip_inputs[chip].push(number);
            }
        }
        let wires = wiring.wires.iter();
        let (latency, forwarding) = spec
            .switch
            .map_or((Span::ZERO, Forwarding::StoreAndForward), |switch| {
                (switch.latency, switch.forwarding)
            });
        let pairs = usize::from(ports) * usize::from(ports);
        // The connect frame there and back, stored and forwarded.
        let way = if wiring.has_switch {
            (paces[0].bare() + spec.line.propagation()) * 2 + latency
        } else {
            paces[0].bare() + spec.line.propagation()
        };
        Ok(Self {
            packing,
            rate,
            head: table.head,
            payload: spec.line.payload,
            propagation: spec.line.propagation(),
            forwarding,
            latency,
            lines: wires
                .map(|wire| Line::new(wire.pace, wire.end, wire.buffers))
                .collect(),
            before: wiring.chips_before(),
            rooms: vec![table.shared; wiring.all_chips()],
            absorbed: vec![0; wiring.all_chips()],
            #[cfg(test)]
            shared: table.shared,
            chip_inputs,
            datagrams: Vec::new(),
            free: Vec::new(),
            stations: (0..ports).map(|_| Queue::new(spec.station.queue)).collect(),
            sources: (0..2 * ports).map(|_| Source::default()).collect(),
            login: table.login,
            logins: vec![Login::Out; if table.login.is_zero() { 0 } else { pairs }],
            is_acknowledged: table.class == 2,
            outstanding: vec![0; if table.class == 2 { pairs } else { 0 }],
            end_credits: table.end_credits,
            connections: (table.class == 1).then(|| Connections::new(ports, table.hold)),
            connect: table.connect + way * 2,
            ended: Vec::new(),
            discard_after: table.discard_after,
            resolution_delay: table.resolution_delay,
            asked: VecDeque::new(),
            has_trains: table.class == 3 && table.discard_after.is_none(),
            trains: (0..2 * ports).map(|_| Train::default()).collect(),
            owners: vec![NOBODY; wiring.wires.len()],
            users: vec![0; wiring.wires.len()],
            up_at: Instant::START,
            calendar: Agenda::new(),
            inputs,
            paces,
            wiring,
        })
    }

    fn turn_rate(&mut self, now: Instant, rate: Option<BitRate>) -> Result<(), Refused> {
        let usable = rate.map_or(self.rate, |rate| rate.scaled(self.payload));
        if usable.bps() < 1_000 {
            return Err(Refused::Value {
                what: "the rate",
                value: usable.to_string(),
                remedy: "give 1kbit or more",
            });
        }
        self.take_all_apart(now);
        self.paces[0] = PacketPace::new(self.packing, usable, self.head);
        Ok(())
    }
}

impl Medium for Net {
    fn admits(&mut self, _: Instant, port: Port, len: Bytes) -> bool {
        self.stations[usize::from(port.0)].admits(len)
    }

    fn ready(&self, port: Port) -> bool {
        self.stations[usize::from(port.0)].ready()
    }

    fn backlog(&mut self, _: Instant, port: Port) -> Bytes {
        self.backlog_of(port)
    }

    fn take(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge) {
        let from = frame.from.0;
        self.stations[usize::from(from)].push(frame.len, Waiting { frame, target });
        if let Target::One(to) = target {
            self.log_in(now, from, to.0);
        }
        self.feed(now, u32::from(from), edge);
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        self.haunt(now, frame, to, edge);
    }

    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused> {
        match command {
            Command::Vc(_) if self.login.is_zero() => Err(Refused::NoCircuits),
            Command::Vc(VcCommand::Establish(a, b)) => {
                self.log_in(now, a.0, b.0);
                Ok(())
            }
            Command::Vc(VcCommand::Release(a, b)) => {
                self.log_out(now, a.0, b.0, edge);
                Ok(())
            }
            Command::Fault(Fault::Rate { rate }) => self.turn_rate(now, rate),
            Command::Fault(Fault::Restart { down }) if self.wiring.has_switch => {
                self.up_at = self.up_at.max(now + down);
                self.restart(now, edge);
                Ok(())
            }
            _ => Err(Refused::NotHere {
                what: "such part",
                remedy: "it has stations, lines (`rate`) and, but on a line, a switch (`restart`)",
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
            Step::Head(input) => self.on_head(at, input, edge),
            Step::Turn(line) => self.on_turn(at, line, edge),
            Step::Room(chip) => self.on_room(at, chip),
            Step::Expire(input, heads) => self.on_expire(at, input, heads, edge),
            Step::Arrived(place, index) => self.on_arrived(at, place, index, edge),
            Step::Acknowledged(from, to) => self.acknowledged(at, from, to, edge),
            Step::Answer => self.answer(at, edge),
            Step::LoggedIn(a, b) => self.on_login(at, a, b, edge),
            Step::Connected(a, b) => self.on_connected(at, a, b, edge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wiring::End;
    use super::*;
    use crate::network::Event;
    use crate::{FrameId, resolve};
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Each buffer is free and known to be, free and on its way to be known, or holds a packet.
    fn audit(net: &Net) {
        for (number, line) in net.lines.iter().enumerate() {
            let held = match line.end {
                End::Input(input) => net.inputs[input as usize].packets.len(),
                End::Host => 0,
            };
            let all = line.credits as usize + line.returns.len() + held;
            assert_eq!(all, line.buffers as usize, "line {number}");
            assert!(line.returns.iter().is_sorted());
        }
        let queued = |chip| {
            let lines = (0..net.lines.len()).filter(|line| net.before[*line] == Some(chip));
            lines
                .map(|line| net.lines[line].central.len())
                .sum::<usize>()
        };
        for (chip, room) in net.rooms.iter().enumerate() {
            assert!(
                queued(chip) + *room as usize <= net.shared as usize,
                "chip {chip}"
            );
        }
    }

    fn frame(id: u64, from: u16, to: u16, len: u64) -> Frame {
        Frame::datagram(FrameId(id), Port(from), Port(to), Bytes(len))
    }

    /// Random frames of stations and ghosts, and restarts: no buffer is ever lost or found, and all of it drains.
    #[test]
    fn buffers_are_never_lost_or_found() {
        for selector in [
            "fc-266:credits=2:buffer=3frames",
            "fc-266:class=1:credits=1:buffer=1frames",
            "fc-266:class=2:credits=2:buffer=2frames:end_credits=3",
            "fc-266:discard_after=1ms:credits=2:buffer=2frames",
            "sp2:credits=1:buffer=1frames:shared=2",
            "ultranet:credits=2",
        ] {
            let spec = resolve(selector, &|_| unreachable!()).unwrap();
            let table = spec.credit.as_ref().unwrap();
            let mut edge = Edge::new(&spec, 8, 1);
            let mut net = Net::new(&spec, table, 8, 1).unwrap();
            let mut random = Pcg64Mcg::seed_from_u64(7);
            let mut below = |n: u64| random.next_u64() % n;
            let (mut now, mut taken) = (Instant::START, 0);
            for id in 0..2_000 {
                let (from, len) = (below(8) as u16, 1 + below(9_000));
                let to = (from + 1 + below(7) as u16) % 8;
                match below(10) {
                    0 => net.background(now, frame(id, from, to, len), Port(to), &mut edge),
                    1 => net.background(now, frame(id, 9, to, len), Port(to), &mut edge),
                    _ if !net.admits(now, Port(from), Bytes(len)) => continue,
                    _ => {
                        let target = Target::One(Port(to));
                        net.take(now, frame(id, from, to, len), target, &mut edge);
                    }
                }
                taken += 1;
                if id % 700 == 699 {
                    let down = Span::micros(300);
                    let restart = Command::Fault(Fault::Restart { down });
                    net.command(now, restart, &mut edge).unwrap();
                }
                audit(&net);
                now = now + Span::micros(below(200));
                while net.next_at().is_some_and(|at| at <= now) {
                    net.step(&mut edge);
                    audit(&net);
                }
            }
            while net.next_at().is_some() {
                net.step(&mut edge);
                audit(&net);
            }
            assert_eq!(net.free.len(), net.datagrams.len(), "{selector}");
            assert!(
                net.outstanding.iter().all(|count| *count == 0),
                "{selector}"
            );
            let out: u64 = edge.counters.ports.iter().map(|port| port.delivered).sum();
            assert_eq!(out + edge.counters.lost_total(), taken, "{selector}");
            assert!(out > taken / 2, "{selector}: {out} of {taken}");
        }
    }

    /// Frames, ghosts, questions for addresses and faults at random; what is told, at one time in the order of names.
    fn story(spec: &NetworkSpec, seed: u64, has_trains: bool) -> (Vec<(Instant, String)>, u64) {
        let mut edge = Edge::new(spec, 6, 1);
        let mut net = Net::new(spec, spec.credit.as_ref().unwrap(), 6, 1).unwrap();
        net.has_trains &= has_trains;
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut below = |n: u64| random.next_u64() % n;
        // From one talker to all, and from crowded to lonely.
        let (talkers, gap) = (1 + below(6), 1 << (10 + below(27)));
        let (mut now, mut steps) = (Instant::START, 0);
        let mut told = Vec::new();
        let mut tell = |edge: &mut Edge| {
            while let Some(event) = edge.tell() {
                let at = match event {
                    Event::Deliver { at, .. }
                    | Event::Lost { at, .. }
                    | Event::Ready { at, .. } => at,
                    _ => continue,
                };
                told.push((at, format!("{event:?}")));
            }
        };
        for id in 0..120 {
            let (from, len) = (below(talkers) as u16, 1 + below(spec.mtu));
            let to = (from + 1 + below(5) as u16) % 6;
            match below(40) {
                0 => {
                    let down = Span::micros(below(500));
                    net.command(now, Command::Fault(Fault::Restart { down }), &mut edge)
                        .unwrap();
                }
                1 => {
                    let rate = (below(2) == 0).then(|| BitRate::mbit(1 + below(300)));
                    net.command(now, Command::Fault(Fault::Rate { rate }), &mut edge)
                        .unwrap();
                }
                2 => net.background(now, frame(id, from, to, len), Port(to), &mut edge),
                3 => net.background(now, frame(id, 9, to, len), Port(to), &mut edge),
                4.. if !net.admits(now, Port(from), Bytes(len)) => {}
                4 => net.take(now, frame(id, from, from, len), Target::Server, &mut edge),
                _ => net.take(
                    now,
                    frame(id, from, to, len),
                    Target::One(Port(to)),
                    &mut edge,
                ),
            }
            // Bursts, and gaps of all lengths.
            now = now + Span::picos(if below(3) == 0 { 0 } else { below(gap) });
            while net.next_at().is_some_and(|at| at <= now) {
                net.step(&mut edge);
                steps += 1;
            }
            audit(&net);
            tell(&mut edge);
        }
        while net.next_at().is_some() {
            net.step(&mut edge);
            steps += 1;
        }
        audit(&net);
        assert!(net.users.iter().all(|users| *users == 0));
        tell(&mut edge);
        told.sort();
        (told, steps)
    }

    #[test]
    fn trains_are_exactly_the_plain_machine() {
        for selector in [
            "fc-266:mtu=20000:login=0s",
            "fc-266:mtu=20000:login=100us:length_m=5000:credits=2:buffer=3frames",
            "fc-1062:mtu=9000:forwarding=store-and-forward:credits=1",
            "sp2:mtu=5000",
            "sp2:mtu=5000:credits=1:buffer=1frames:shared=0",
            "sp2:mtu=5000:credits=2:buffer=1frames:shared=3:adapter_rate=10Gbit",
            "sp2:mtu=5000:length_m=2000:adapter_rate=100Mbit:forwarding=store-and-forward",
            "ultranet:mtu=20000",
        ] {
            let spec = resolve(selector, &|_| unreachable!()).unwrap();
            let (mut all, mut saved) = (0, 0);
            for seed in 0..400 {
                let (plain, plain_steps) = story(&spec, seed, false);
                let (trains, steps) = story(&spec, seed, true);
                if plain != trains {
                    let (want, got) = plain.iter().zip(&trains).find(|(a, b)| a != b).unwrap();
                    panic!("{selector} {seed}: {got:?}, not {want:?}");
                }
                (all, saved) = (all + plain_steps, saved + plain_steps.saturating_sub(steps));
            }
            assert!(saved > all / 50, "{selector}: {saved} of {all} steps saved");
        }
    }
}
