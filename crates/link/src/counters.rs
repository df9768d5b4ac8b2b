//! What a network counts: frames by port, losses by place and cause, background traffic by flow.
//!
//! Units:   layer-3 bytes; a flow's time is that of its frames on the line, in picoseconds.
//! Checked: `counters_agree_with_events` of `tests/properties.rs`; `tests/loads.rs`.

use crate::{Cause, Flow, Frame, Place, Port};
use sonde_units::{Bytes, Instant, Ratio, Span};
use std::collections::BTreeMap;

/// The frames of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames that the station took.
    pub taken: u64,
    /// Layer-3 bytes of those.
    pub taken_bytes: Bytes,
    /// Offers that it could not take.
    pub blocked: u64,
    /// Copies that arrived here.
    pub delivered: u64,
    /// Layer-3 bytes of those.
    pub delivered_bytes: Bytes,
    /// The largest backlog of the station.
    pub backlog_bytes_max: Bytes,
    /// For how long the host's processor was busy with the network (host cost model).
    pub busy: Span,
}

/// How a host's station came to send on a medium that stations share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessCounters {
    /// Transmissions begun: on a segment with those that collided, on a ring one for each frame.
    pub attempts: u64,
    /// Of those, how many collided.
    pub collisions: u64,
    /// On a segment: frames whose first attempt had to wait for others.
    pub deferrals: u64,
    /// Frames that were given up after too many collisions.
    pub excessive: u64,
    /// The longest that a frame which was sent had been first in its station's queue.
    pub access_max: Span,
}

/// The counters of a network since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// By port.
    pub ports: Vec<PortCounters>,
    /// Lost copies, by place, cause and the port that they were sent from.
    pub lost: BTreeMap<(Place, Cause, Port), u64>,
    /// Cells that an output queue dropped.
    pub cells_lost: u64,
    /// Of those, the cells that PPD, EPD and selective drop took with a frame.
    pub cells_discarded: u64,
    /// Cells that an output queue dropped, by output.
    pub cells_lost_at: BTreeMap<Port, u64>,
    /// Cells that did not keep to the contract of their circuit.
    pub cells_policed: u64,
    /// Cells that the first switch sent to another station than theirs.
    pub cells_misdelivered: u64,
    /// Cells of frames that were lost which used an output's line all the same.
    pub cells_wasted: u64,
    /// Cells that outputs sent to stations, of frames lost or not; counted where every cell is handled alone.
    pub cells_sent: u64,
    /// Frames that were lost on ATM, by circuit (from, to) and place.
    pub circuits_lost: BTreeMap<(Port, Port, Place), u64>,
    /// Circuits that were set up by signalling.
    pub circuit_setups: u64,
    /// Circuits that were released: idle, aged, evicted or on command.
    pub circuit_releases: u64,
    /// Requests for a connection that were refused, their destination being busy.
    pub rejections: u64,
    /// Commands of the network's own schedule that could not be carried out when their time came.
    pub commands_refused: u64,
    /// Deliveries that a fault added: the second of a copy.
    pub duplicates: u64,
    /// Deliveries with damaged bytes.
    pub corrupted: u64,
    /// The flows of background traffic, those that ended too, in the order in which their numbers first began.
    pub flows: Vec<FlowCounters>,
    /// How often a token came to the first station, as far as it mattered: that it went round an idle ring is counted when
    /// the next frame is sent.
    pub token_rotations: u64,
    /// The longest time between two visits of the token to a station.
    pub token_rotation_max: Span,
    /// By port, on media that stations share; empty elsewhere, and while none has sent.
    pub access: Vec<AccessCounters>,
}

/// What was wanted of a flow of background traffic, and what came of it. A flow of the same number begins them anew; its
/// level 0 stops them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCounters {
    /// What was asked for.
    pub flow: Flow,
    /// Since when.
    pub since: Instant,
    /// When it ended.
    pub until: Option<Instant>,
    /// The time of a frame on the line; the mean one's with [`Law::Replay`](crate::Law::Replay).
    pub frame_time: Span,
    /// Frames that its law let go.
    pub sent: u64,
    /// Layer-3 bytes of those.
    pub sent_bytes: Bytes,
    /// Frames that came to the end of the link.
    pub arrived: u64,
    /// Layer-3 bytes of those.
    pub arrived_bytes: Bytes,
    /// Frames that were lost on the way.
    pub lost: u64,
}

impl FlowCounters {
    /// Frames that are on their way; too few where it began again while frames of the flow before, of the same number, were.
    pub fn underway(&self) -> u64 {
        self.sent.saturating_sub(self.arrived + self.lost)
    }

    /// The share of the link that its frames took until `now`, as far as they arrived; compare with the wanted `flow.rho`.
    pub fn achieved(&self, now: Instant) -> Ratio {
        self.share(self.arrived, now)
    }

    /// The share that its law sent; it comes close to the wanted one as time goes on.
    pub fn offered(&self, now: Instant) -> Ratio {
        self.share(self.sent, now)
    }

    fn share(&self, frames: u64, now: Instant) -> Ratio {
        let time = self.until.unwrap_or(now).since(self.since).as_picos();
        let busy = u128::from(self.frame_time.as_picos()) * u128::from(frames);
        let busy = u64::try_from(busy).unwrap_or(u64::MAX);
        Ratio::new(busy, time.max(1))
    }
}

impl Counters {
    pub(crate) fn new(ports: u16) -> Self {
        Self {
            ports: vec![PortCounters::default(); usize::from(ports)],
            ..Self::default()
        }
    }

    pub(crate) fn port(&mut self, port: Port) -> &mut PortCounters {
        &mut self.ports[usize::from(port.0)]
    }

    /// Takes in what is no port's of another network, whose ports are these here.
    pub(crate) fn add_shared(&mut self, other: &Self, port: impl Fn(Port) -> Port) {
        self.cells_lost += other.cells_lost;
        self.circuit_setups += other.circuit_setups;
        self.circuit_releases += other.circuit_releases;
        self.rejections += other.rejections;
        self.commands_refused += other.commands_refused;
        self.duplicates += other.duplicates;
        self.corrupted += other.corrupted;
        let flows = other.flows.iter().map(|one| FlowCounters {
            flow: one.flow.with_ports(&port),
            ..*one
        });
        self.flows.extend(flows);
    }

    /// A background frame has ended.
    pub(crate) fn ghost(&mut self, frame: &Frame, arrived: bool) {
        let slot = frame.flow as usize;
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        if arrived {
            flow.arrived += 1;
            flow.arrived_bytes += frame.len;
        } else {
            flow.lost += 1;
        }
    }

    pub(crate) fn access(&mut self, port: usize) -> &mut AccessCounters {
        if self.access.len() <= port {
            let ports = self.ports.len().max(port + 1);
            self.access.resize(ports, AccessCounters::default());
        }
        &mut self.access[port]
    }

    /// All copies that were lost inside the network.
    pub fn lost_total(&self) -> u64 {
        self.lost.values().sum()
    }
}
