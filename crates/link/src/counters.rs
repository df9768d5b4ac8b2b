//! What a network counts: frames by port, losses by place and cause.

use crate::{Cause, Place, Port};
use sonde_units::{Bytes, Span};
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

/// The counters of a network since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// By port.
    pub ports: Vec<PortCounters>,
    /// Lost copies, by place, cause and the port that they were sent from.
    pub lost: BTreeMap<(Place, Cause, Port), u64>,
    /// Cells that an output queue dropped.
    pub cells_lost: u64,
    /// Circuits that were set up by signalling.
    pub circuit_setups: u64,
    /// Circuits that were released: idle, aged, evicted or on command.
    pub circuit_releases: u64,
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

    /// Takes in those of another network, whose first port is `first` here.
    pub(crate) fn add(&mut self, other: Self, first: u16) {
        self.ports.extend(other.ports);
        for ((place, cause, port), count) in other.lost {
            *self
                .lost
                .entry((place, cause, Port(first + port.0)))
                .or_default() += count;
        }
        self.cells_lost += other.cells_lost;
        self.circuit_setups += other.circuit_setups;
        self.circuit_releases += other.circuit_releases;
    }

    /// All copies that were lost inside the network.
    pub fn lost_total(&self) -> u64 {
        self.lost.values().sum()
    }
}
