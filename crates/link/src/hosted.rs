//! The cost of hosts around a network: what a processor takes to send and to receive each frame.
//!
//! Model:   each host has one processor for both directions. A frame to send waits in the host's queue, takes its send
//!          cost, and then the network's station may have it; a frame that arrives waits in the adapter's ring (full: it is
//!          lost there), takes its receive cost, and is delivered then. Frames are handled one at a time, in the
//!          order in which they came, whether to send or to receive. A frame that the station does not want yet waits
//!          without the processor. Background traffic to a host interrupts it: an interrupt serves all that came
//!          during the one before, so that at a frame rate r and a cost c all other work takes 1 + r c times as long.
//!          Computing ([`Command::Busy`]) has the processor when the network does not; each frame handled meanwhile costs a
//!          context switch more. Each handling is told by [`Event::Busy`], for who extends the computing by it.
//! Source:  costs in [`crate::HostSpec`]; interrupts that serve what came meanwhile: Mogul and Ramakrishnan, ACM TOCS 15(3)
//!          1997, §3. Deviations: no cache, no memory bus shared with the adapter; background frames are spread evenly.
//! Checked: `tests/hosted.rs`.

use crate::calendar::Calendar;
use crate::host::{Costs, costs};
use crate::load::sources::size;
use crate::network::{
    Admission, Cause, Change, Command, Edit, Event, Mark, Network, Place, Refused,
};
use crate::station::Queue;
use crate::{Class, Counters, Flow, Frame, FrameId, NetworkSpec, Port, PortCounters, SpecError};
use sonde_units::{Bytes, Instant, Span};
use std::collections::{BTreeMap, VecDeque};

/// A frame under way; its place in the table is its name inside.
#[derive(Clone, Copy)]
struct Slot {
    outer: FrameId,
    from: Port,
    len: Bytes,
    /// Copies that a processor still has in hand.
    pending: u16,
    /// The network inside has none any more.
    done: bool,
}

/// A copy that has arrived.
#[derive(Clone, Copy)]
struct Arrived {
    at: Instant,
    slot: usize,
    mark: Mark,
}

/// What a processor is at.
#[derive(Clone, Copy)]
enum Job {
    Send(Frame),
    Receive(Arrived),
}

struct Host {
    costs: Costs,
    /// What waits to be sent.
    outgoing: Queue<(Instant, Frame)>,
    /// What has arrived.
    ring: VecDeque<Arrived>,
    job: Option<Job>,
    /// Sent by the processor, but not wanted by the station yet.
    stalled: Option<Frame>,
    computes_until: Instant,
    /// Frames a second of background traffic, in thousandths, by flow.
    background: Vec<(u8, u64)>,
    counters: PortCounters,
}

/// A network with hosts that cost time.
pub struct Hosted<N> {
    inner: N,
    now: Instant,
    mtu: Bytes,
    hosts: Vec<Host>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Ends of jobs.
    calendar: Calendar<Port>,
    events: VecDeque<Event>,
    /// Copies that found the ring of their host full, by sender.
    overruns: BTreeMap<Port, u64>,
    spec: NetworkSpec,
}

impl<N: Network> Hosted<N> {
    /// Puts the hosts of `spec` around `inner`, a network of `ports` stations of the same specification.
    ///
    /// # Errors
    /// [`SpecError`] where a host's costs are wrong.
    pub fn new(inner: N, spec: &NetworkSpec, ports: u16) -> Result<Self, SpecError> {
        let mut hosts = Vec::with_capacity(usize::from(ports));
        for port in 0..ports {
            let costs = costs(spec, Port(port))?;
            hosts.push(Host {
                outgoing: Queue::new(costs.queue),
                ring: VecDeque::with_capacity(costs.ring),
                job: None,
                stalled: None,
                computes_until: Instant::START,
                background: Vec::new(),
                counters: PortCounters::default(),
                costs,
            });
        }
        Ok(Self {
            inner,
            now: Instant::START,
            mtu: Bytes(spec.mtu),
            hosts,
            slots: Vec::new(),
            free: Vec::new(),
            calendar: Calendar::new(),
            events: VecDeque::new(),
            overruns: BTreeMap::new(),
            spec: spec.clone(),
        })
    }

    fn host(&mut self, port: Port) -> &mut Host {
        &mut self.hosts[usize::from(port.0)]
    }

    fn slot(&mut self, frame: &Frame) -> usize {
        let slot = Slot {
            outer: frame.id,
            from: frame.from,
            len: frame.len,
            pending: 0,
            done: false,
        };
        match self.free.pop() {
            Some(index) => {
                self.slots[index] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        }
    }

    /// Does what is due until `now`, inside and here, in the order of time; what is inside first.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        loop {
            let inside = self.inner.poll_at().filter(|at| *at <= now);
            let here = self.calendar.next_at().filter(|at| *at <= now);
            match (inside, here) {
                (Some(at), other) if other.is_none_or(|other| at <= other) => {
                    while let Some(event) = self.inner.poll(at) {
                        self.hear(event, at);
                    }
                }
                (_, Some(_)) => self.finish_job(),
                _ => return,
            }
        }
    }

    /// Takes an event of the network inside, polled at `now`.
    fn hear(&mut self, event: Event, now: Instant) {
        match event {
            Event::Deliver {
                at, id, to, mark, ..
            } => self.arrive(at, id.0 as usize, to, mark),
            Event::Lost {
                at,
                id,
                to,
                place,
                cause,
            } => self.events.push_back(Event::Lost {
                at,
                id: self.slots[id.0 as usize].outer,
                to,
                place,
                cause,
            }),
            Event::Done { id } => {
                let slot = id.0 as usize;
                self.slots[slot].done = true;
                self.settle(slot);
            }
            Event::Ready { port, .. } => self.unstall(now, port),
            Event::State { change, .. } => {
                if let Change::Load(flow) = change {
                    self.load(&flow);
                }
                self.events.push_back(event);
            }
            Event::Busy { .. } => self.events.push_back(event),
        }
    }

    /// A flow of background traffic begins, changes or ends at the host that it goes to.
    fn load(&mut self, flow: &Flow) {
        let len = size(flow, &self.spec);
        let time = self.spec.frame_time(len).as_picos().max(1);
        let rate = flow.rho.of(1_000_000_000_000_000 / time);
        for host in &mut self.hosts {
            host.background.retain(|(number, _)| *number != flow.number);
        }
        if rate > 0 {
            self.host(flow.to).background.push((flow.number, rate));
        }
    }

    /// A copy is at the adapter of its host.
    fn arrive(&mut self, at: Instant, slot: usize, to: Port, mark: Mark) {
        let host = self.host(to);
        if host.ring.len() >= host.costs.ring {
            let Slot { outer, from, .. } = self.slots[slot];
            *self.overruns.entry(from).or_default() += 1;
            return self.events.push_back(Event::Lost {
                at,
                id: outer,
                to,
                place: Place::Receiver,
                cause: Cause::Overflow,
            });
        }
        host.ring.push_back(Arrived { at, slot, mark });
        self.slots[slot].pending += 1;
        self.begin_job(at, to);
    }

    /// Gives a frame's place away when no copy of it is left.
    fn settle(&mut self, slot: usize) {
        let Slot {
            outer,
            pending,
            done,
            ..
        } = self.slots[slot];
        if done && pending == 0 {
            self.free.push(slot);
            self.events.push_back(Event::Done { id: outer });
        }
    }

    /// Lets an idle processor take up what waits for it.
    fn begin_job(&mut self, now: Instant, port: Port) {
        let Self {
            hosts,
            slots,
            events,
            calendar,
            ..
        } = self;
        let host = &mut hosts[usize::from(port.0)];
        if host.job.is_some() {
            return;
        }
        let sends = host.outgoing.front().map(|(_, (at, _))| *at);
        let sends = sends.filter(|_| host.stalled.is_none());
        let arrived = host.ring.front();
        let arrived = arrived.filter(|arrived| sends.is_none_or(|at| arrived.at <= at));
        let (job, cost) = if let Some(arrived) = arrived.copied() {
            host.ring.pop_front();
            let cost = host.costs.receive(slots[arrived.slot].len);
            (Job::Receive(arrived), cost)
        } else if sends.is_none() {
            return;
        } else if let Some((_, (_, frame), woken)) = host.outgoing.pop() {
            if woken {
                events.push_back(Event::Ready {
                    at: now,
                    port,
                    class: Class::default(),
                });
            }
            (Job::Send(frame), host.costs.send(frame.len))
        } else {
            return;
        };
        host.job = Some(job);
        let switched = if now < host.computes_until {
            host.costs.switch
        } else {
            Span::ZERO
        };
        let rate: u64 = host.background.iter().map(|(_, rate)| rate).sum();
        let span = host.costs.slowed(cost + switched, rate);
        host.counters.busy += span;
        events.push_back(Event::Busy {
            at: now,
            port,
            span,
        });
        calendar.insert(now + span, port);
    }

    /// The processor whose job ends first is done with it.
    fn finish_job(&mut self) {
        let Some((at, port)) = self.calendar.pop() else {
            return;
        };
        match self.host(port).job.take() {
            Some(Job::Send(frame)) => {
                self.host(port).stalled = Some(frame);
                self.unstall(at, port);
            }
            Some(Job::Receive(arrived)) => {
                let slot = &mut self.slots[arrived.slot];
                slot.pending -= 1;
                let (id, len) = (slot.outer, slot.len);
                let counters = &mut self.host(port).counters;
                counters.delivered += 1;
                counters.delivered_bytes += len;
                self.events.push_back(Event::Deliver {
                    at,
                    id,
                    to: port,
                    mark: arrived.mark,
                    edit: Edit::None,
                });
                self.settle(arrived.slot);
            }
            None => {}
        }
        self.begin_job(at, port);
    }

    /// Offers the frame that the station did not want before; then the processor may go on sending.
    fn unstall(&mut self, now: Instant, port: Port) {
        let Some(frame) = self.host(port).stalled else {
            return;
        };
        if !self.inner.ready(port, frame.class)
            || self.inner.offer(now, frame) == Admission::Blocked
        {
            return;
        }
        self.host(port).stalled = None;
        self.begin_job(now, port);
    }
}

impl<N: Network> Network for Hosted<N> {
    fn offer(&mut self, now: Instant, frame: Frame) -> Admission {
        assert!(now >= self.now, "time does not go backwards");
        self.advance(now);
        let (port, len) = (frame.from, frame.len);
        let is_long = len > self.mtu;
        if !is_long && !self.host(port).outgoing.admits(len) {
            self.host(port).counters.blocked += 1;
            return Admission::Blocked;
        }
        let slot = self.slot(&frame);
        let inside = Frame {
            id: FrameId(slot as u64),
            ..frame
        };
        let counters = &mut self.host(port).counters;
        counters.taken += 1;
        counters.taken_bytes += len;
        if is_long {
            // It is lost before any queue.
            return self.inner.offer(now, inside);
        }
        let host = self.host(port);
        host.outgoing.push(len, (now, inside));
        host.counters.backlog_bytes_max =
            host.counters.backlog_bytes_max.max(host.outgoing.backlog());
        self.begin_job(now, port);
        Admission::Taken
    }

    fn ready(&self, port: Port, _class: Class) -> bool {
        self.hosts[usize::from(port.0)].outgoing.ready()
    }

    fn command(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        assert!(now >= self.now, "time does not go backwards");
        self.advance(now);
        let Command::Busy(port, span) = command else {
            return self.inner.command(now, command);
        };
        command.check(self.hosts.len() as u16)?;
        let host = self.host(port);
        host.computes_until = host.computes_until.max(now) + span;
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        if self.events.is_empty() {
            self.advance(now);
        }
        self.events.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        if !self.events.is_empty() {
            return Some(self.now);
        }
        let due = [self.inner.poll_at(), self.calendar.next_at()];
        due.into_iter().flatten().min()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.inner.counters();
        for (port, host) in counters.ports.iter_mut().zip(&self.hosts) {
            *port = host.counters.clone();
        }
        for (from, count) in &self.overruns {
            *counters
                .lost
                .entry((Place::Receiver, Cause::Overflow, *from))
                .or_default() += count;
        }
        counters
    }
}
