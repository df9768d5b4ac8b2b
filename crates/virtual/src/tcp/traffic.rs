//! The flows of one network, driven by its clock.
//!
//! Model:   a flow sends when its window and its station let it and goes on at the station's [`Event::Ready`], where the
//!          flows of a station take turns, acknowledgements first. What the network took is kept until its [`Event::Done`],
//!          so that a segment and its copy, sent again, are two frames. A damaged frame is not looked at (its checksum).
//!          Hosts that share a network may be *uneven*: each hands its adapter one segment after the other, with a gap
//!          between them that is drawn anew, up to 1/256 of the time that the segment takes. Without it hosts are as regular
//!          as the output that they share, and the one whose frames come when a place is free keeps all others out.
//! Source:  Floyd & Jacobson, CCR 21(2) 1991, §3.2 (phase effects, and a random time of the hosts against them).
//! Units:   layer-3 bytes around a segment; an acknowledgement is its headers and options.
//! Checked: `one_loss_is_repaired_in_a_round_trip`, property `all_arrives_once`; `tests/loss.rs`.

use super::Sender;
use super::receive::{Ack, BLOCKS_MAX, Receive};
use super::transmit::Transmit;
use crate::meter::Reason;
use crate::{Clock, Happening};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_link::{
    Admission, Cause, Class, Ecn, Event, Frame, FrameId, Headers, Kind, Line, Mark, Network, Place,
    Port, To,
};
use sonde_units::{Bytes, Instant, Span};

/// What a flow plans.
#[derive(Clone, Copy)]
pub(crate) enum Due {
    /// It begins.
    Begin(usize),
    /// The delayed acknowledgement may be due.
    Acknowledge(usize),
    /// The retransmission timer may have run out.
    Timer(usize),
    /// The host at this port may hand over its next segment.
    Pace(usize),
}

/// What a frame carries.
#[derive(Clone, Copy)]
enum Cargo {
    Segment {
        flow: usize,
        seq: u64,
        sent_at: Instant,
        /// The sender heard of a mark.
        heard: bool,
    },
    Acknowledgement {
        flow: usize,
        ack: Ack,
    },
}

/// The frames that the network has, named by their place here.
#[derive(Default)]
struct Hold {
    cargo: Vec<Cargo>,
    free: Vec<usize>,
}

impl Hold {
    /// The name of the next frame.
    fn next(&self) -> FrameId {
        FrameId(self.free.last().map_or(self.cargo.len(), |place| *place) as u64)
    }

    /// The network took it.
    fn put(&mut self, cargo: Cargo) {
        match self.free.pop() {
            Some(place) => self.cargo[place] = cargo,
            None => self.cargo.push(cargo),
        }
    }

    /// What a frame of ours carries; nothing is known of others.
    fn see(&self, id: FrameId) -> Option<Cargo> {
        self.cargo.get(id.0 as usize).copied()
    }

    fn release(&mut self, id: FrameId) {
        if (id.0 as usize) < self.cargo.len() {
            self.free.push(id.0 as usize);
        }
    }
}

/// Hosts that are not as regular as a machine.
struct Uneven {
    line: Line,
    random: Pcg64Mcg,
    /// When the host at each port may send next, and whether that is planned.
    hosts: Vec<(Instant, bool)>,
}

impl Uneven {
    /// The host hands over a frame of `len` bytes.
    fn send(&mut self, now: Instant, port: Port, len: Bytes) {
        let time = self.line.time(len);
        let gap = self.random.next_u64() % (time.as_picos() / 256 + 1);
        self.hosts[usize::from(port.0)].0 = now + time + Span::picos(gap);
    }
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// From here.
    pub from: Port,
    /// To there.
    pub to: Port,
    /// User bytes; none for a flow without end.
    pub bytes: Option<Bytes>,
    /// The round trip that its connecting has seen, if any.
    pub rtt: Option<Span>,
}

/// The two ends of a flow.
struct Ends {
    from: Port,
    to: Port,
    transmit: Transmit,
    receive: Receive,
    total: u64,
    /// User bytes of the last segment.
    tail: u64,
    /// An acknowledgement waits for its station.
    ack_waits: bool,
    /// When the earliest [`Due::Acknowledge`] and [`Due::Timer`] are planned.
    ack_planned: Option<Instant>,
    timer_planned: Option<Instant>,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A segment arrived for the first time.
    Arrived {
        flow: usize,
        at: Instant,
        bytes: u64,
        /// All before it had arrived.
        in_order: bool,
    },
    /// The network lost a segment or an acknowledgement.
    Lost {
        segment: bool,
        place: Place,
        cause: Cause,
    },
    /// Nothing of the kind.
    Other,
}

/// Flows over a network.
pub(crate) struct Traffic<N> {
    clock: Clock<N, Due>,
    flows: Vec<Ends>,
    hold: Hold,
    /// The flows that send, and those that are received, at each port.
    senders: Vec<Vec<usize>>,
    receivers: Vec<Vec<usize>>,
    /// Whose turn it is at each port.
    turns: Vec<usize>,
    segment: u64,
    header: u64,
    cap: u64,
    ecn: Ecn,
    uneven: Option<Uneven>,
}

impl<N: Network> Traffic<N> {
    /// Flows of one kind over the network of `clock` with frames of at most `mtu` bytes; none has begun.
    ///
    /// # Errors
    /// [`Reason::NoWindow`].
    pub fn new(network: N, mtu: Bytes, sender: &Sender, flows: &[Flow]) -> Result<Self, Reason> {
        let full = sender.headers.segment(mtu);
        let limit = sender.receive_window.min(sender.send_buffer);
        let (segment, header) = (full.min(limit).0, (mtu - full).0);
        if segment == 0 {
            return Err(Reason::NoWindow);
        }
        let ports = flows.iter().map(|flow| flow.from.max(flow.to).0).max();
        let ports = ports.map_or(0, |port| usize::from(port) + 1);
        let mut traffic = Self {
            clock: Clock::new(network),
            flows: Vec::with_capacity(flows.len()),
            hold: Hold::default(),
            senders: vec![Vec::new(); ports],
            receivers: vec![Vec::new(); ports],
            turns: vec![0; ports],
            segment,
            header,
            cap: limit.0 / segment,
            ecn: if sender.ecn {
                Ecn::Capable
            } else {
                Ecn::NotCapable
            },
            uneven: None,
        };
        for flow in flows {
            traffic.add(sender, mtu, flow);
        }
        Ok(traffic)
    }

    fn add(&mut self, sender: &Sender, mtu: Bytes, flow: &Flow) {
        let bytes = flow.bytes.map(|bytes| bytes.0.max(1));
        let total = bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(self.segment));
        let tail = bytes.map_or(self.segment, |bytes| (bytes - 1) % self.segment + 1);
        // As many ranges as the options hold, and a short MTU.
        let room = mtu.0.saturating_sub(self.header + 4) / 8;
        let blocks = match (sender.sack, sender.headers) {
            (false, _) => 0,
            (true, Headers::Plain) => BLOCKS_MAX,
            (true, _) => BLOCKS_MAX - 1,
        };
        let name = self.flows.len();
        self.senders[usize::from(flow.from.0)].push(name);
        self.receivers[usize::from(flow.to.0)].push(name);
        self.flows.push(Ends {
            from: flow.from,
            to: flow.to,
            transmit: Transmit::new(sender, self.cap, total, flow.rtt),
            receive: Receive::new(sender, blocks.min(room as usize)),
            total,
            tail,
            ack_waits: false,
            ack_planned: None,
            timer_planned: None,
        });
    }

    /// Makes the hosts uneven; their gaps follow from `seed`.
    pub fn make_uneven(&mut self, line: Line, seed: u64) {
        self.uneven = Some(Uneven {
            line,
            random: Pcg64Mcg::seed_from_u64(seed),
            hosts: vec![(Instant::START, false); self.senders.len()],
        });
    }

    /// The clock and its network.
    pub fn clock(&mut self) -> &mut Clock<N, Due> {
        &mut self.clock
    }

    /// The model's time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// How many segments may be out, whatever the window.
    pub fn cap(&self) -> u64 {
        self.cap
    }

    /// The sending end of a flow.
    pub fn transmit(&self, flow: usize) -> &Transmit {
        &self.flows[flow].transmit
    }

    /// Whether all of a bounded flow has arrived in order.
    pub fn is_complete(&self, flow: usize) -> bool {
        let ends = &self.flows[flow];
        ends.receive.next() >= ends.total
    }

    /// A flow begins now.
    pub fn begin(&mut self, flow: usize) {
        self.send(flow);
    }

    /// A flow begins at `at`.
    pub fn begin_at(&mut self, at: Instant, flow: usize) {
        self.clock.plan(at, Due::Begin(flow));
    }

    /// Takes the next step, if there is one at `until` or before.
    pub fn step(&mut self, until: Instant) -> Option<Outcome> {
        match self.clock.step(until)? {
            Happening::Event(Event::Deliver { at, id, mark, .. }) if mark != Mark::Corrupt => {
                return Some(self.on_delivery(at, id, mark));
            }
            Happening::Event(Event::Lost {
                id, place, cause, ..
            }) => {
                if let Some(cargo) = self.hold.see(id) {
                    return Some(Outcome::Lost {
                        segment: matches!(cargo, Cargo::Segment { .. }),
                        place,
                        cause,
                    });
                }
            }
            Happening::Event(Event::Done { id }) => self.hold.release(id),
            Happening::Event(Event::Ready { port, .. }) => self.on_ready(port),
            Happening::Event(_) => {}
            Happening::Action(due) => self.on_due(due),
        }
        Some(Outcome::Other)
    }

    fn on_delivery(&mut self, at: Instant, id: FrameId, mark: Mark) -> Outcome {
        match self.hold.see(id) {
            None => Outcome::Other,
            Some(Cargo::Acknowledgement { flow, ack }) => {
                self.flows[flow].transmit.on_ack(at, &ack);
                self.send(flow);
                Outcome::Other
            }
            Some(Cargo::Segment {
                flow,
                seq,
                sent_at,
                heard,
            }) => {
                let receive = &mut self.flows[flow].receive;
                receive.on_mark(mark == Mark::Ce, heard);
                self.receive(at, flow, seq, sent_at)
            }
        }
    }

    fn receive(&mut self, at: Instant, flow: usize, seq: u64, sent_at: Instant) -> Outcome {
        let ends = &mut self.flows[flow];
        let in_order = seq == ends.receive.next();
        let arrival = ends.receive.on_segment(at, seq, sent_at);
        let bytes = self.len(flow, seq);
        if arrival.acknowledge {
            self.acknowledge(flow);
        } else {
            self.plan_ack(flow);
        }
        if !arrival.fresh {
            return Outcome::Other;
        }
        Outcome::Arrived {
            flow,
            at,
            bytes,
            in_order,
        }
    }

    /// User bytes of a segment.
    fn len(&self, flow: usize, seq: u64) -> u64 {
        let ends = &self.flows[flow];
        if seq + 1 == ends.total {
            ends.tail
        } else {
            self.segment
        }
    }

    fn on_due(&mut self, due: Due) {
        let now = self.clock.now();
        match due {
            Due::Begin(flow) => self.send(flow),
            Due::Acknowledge(flow) => {
                let ends = &mut self.flows[flow];
                ends.ack_planned = ends.ack_planned.filter(|at| *at > now);
                match ends.receive.due() {
                    Some(at) if at <= now => self.acknowledge(flow),
                    _ => self.plan_ack(flow),
                }
            }
            Due::Timer(flow) => {
                let ends = &mut self.flows[flow];
                ends.timer_planned = ends.timer_planned.filter(|at| *at > now);
                ends.transmit.on_timer(now);
                self.send(flow);
            }
            Due::Pace(port) => {
                if let Some(uneven) = &mut self.uneven {
                    uneven.hosts[port].1 = false;
                }
                self.take_turns(port);
            }
        }
    }

    fn plan_ack(&mut self, flow: usize) {
        let ends = &mut self.flows[flow];
        let Some(due) = ends.receive.due() else {
            return;
        };
        if ends.ack_planned.is_none_or(|at| at > due) {
            ends.ack_planned = Some(due);
            self.clock.plan(due, Due::Acknowledge(flow));
        }
    }

    fn plan_timer(&mut self, flow: usize) {
        let ends = &mut self.flows[flow];
        let Some(due) = ends.transmit.due() else {
            return;
        };
        if ends.timer_planned.is_none_or(|at| at > due) {
            ends.timer_planned = Some(due);
            self.clock.plan(due, Due::Timer(flow));
        }
    }

    /// Sends what window and station allow.
    fn send(&mut self, flow: usize) {
        while self.send_one(flow) {}
        self.plan_timer(flow);
    }

    /// Sends a segment if window and station allow; whether they did.
    fn send_one(&mut self, flow: usize) -> bool {
        let ends = &mut self.flows[flow];
        let Some(seq) = ends.transmit.poll() else {
            return false;
        };
        let (from, to, now) = (ends.from, ends.to, self.clock.now());
        if !self.clock.ready(from, Class::default()) || self.waits(from) {
            return false;
        }
        let len = self.len(flow, seq) + self.header;
        if !self.offer(flow, from, to, len, self.ecn) {
            return false;
        }
        if let Some(uneven) = &mut self.uneven {
            uneven.send(now, from, Bytes(len));
        }
        let heard = self.flows[flow].transmit.on_sent(now, seq);
        self.hold.put(Cargo::Segment {
            flow,
            seq,
            sent_at: now,
            heard,
        });
        true
    }

    /// Whether the host at `port` has to wait before its next segment; it goes on then.
    fn waits(&mut self, port: Port) -> bool {
        let port = usize::from(port.0);
        let Some(uneven) = &mut self.uneven else {
            return false;
        };
        let (at, planned) = &mut uneven.hosts[port];
        if *at <= self.clock.now() {
            return false;
        }
        if !*planned {
            *planned = true;
            self.clock.plan(*at, Due::Pace(port));
        }
        true
    }

    /// Acknowledges what was received, or waits for the station.
    fn acknowledge(&mut self, flow: usize) {
        let ends = &self.flows[flow];
        let (from, to, ack) = (ends.to, ends.from, ends.receive.ack());
        let len = self.header + ack.options();
        let sent = self.clock.ready(from, Class::default())
            && self.offer(flow, from, to, len, Ecn::NotCapable);
        let ends = &mut self.flows[flow];
        ends.ack_waits = !sent;
        if sent {
            ends.receive.on_acknowledged();
            self.hold.put(Cargo::Acknowledgement { flow, ack });
        }
    }

    fn offer(&mut self, flow: usize, from: Port, to: Port, len: u64, ecn: Ecn) -> bool {
        let frame = Frame {
            id: self.hold.next(),
            from,
            to: To::One(to),
            len: Bytes(len),
            kind: Kind::Ip,
            class: Class::default(),
            ecn,
            flow: flow as u64,
        };
        self.clock.offer(frame) == Admission::Taken
    }

    /// A station is ready again: what waits is acknowledged, then its flows take turns.
    fn on_ready(&mut self, port: Port) {
        let port = usize::from(port.0);
        if port >= self.senders.len() {
            return;
        }
        for i in 0..self.receivers[port].len() {
            let flow = self.receivers[port][i];
            if self.flows[flow].ack_waits {
                self.acknowledge(flow);
            }
        }
        self.take_turns(port);
    }

    /// The flows of a station send in turn, until none may.
    fn take_turns(&mut self, port: usize) {
        let count = self.senders[port].len();
        let mut idle = 0;
        while idle < count {
            let flow = self.senders[port][self.turns[port] % count];
            self.turns[port] = (self.turns[port] + 1) % count;
            if self.send_one(flow) {
                idle = 0;
                self.plan_timer(flow);
            } else {
                idle += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
