//! A segment of a site while it runs.

use crate::network::Network;
use crate::{GroupId, Kind, Port, To};
use sonde_units::{Instant, Span};
use std::collections::BTreeMap;

/// A segment while it runs.
pub(super) struct Part {
    pub net: Box<dyn Network + Send>,
    /// The longest frame.
    pub mtu: u64,
    /// By station: its port in the whole, or one for each virtual LAN that it is on.
    pub ports: Vec<Vec<Port>>,
    /// It carries virtual LANs.
    pub is_divided: bool,
    /// Stations of bridges.
    pub bridges: Vec<u16>,
    /// A server answers address requests.
    pub is_served: bool,
    /// All stations hear what one sends to another.
    pub is_shared: bool,
    /// By port of the whole: the station by which it is reached; [`NOWHERE`] where no bridge leads there.
    pub way: Vec<u16>,
    /// At which stations the switch of a star heard ports that are behind bridges.
    pub heard: Heard,
}

/// No station.
pub(super) const NOWHERE: u16 = u16::MAX;

impl Part {
    /// The station by which a port is reached.
    pub fn way_to(&self, port: Port) -> Option<u16> {
        let way = self.way.get(usize::from(port.0)).copied();
        way.filter(|station| *station != NOWHERE)
    }

    /// Whether a port is a station's.
    pub fn has(&self, station: u16, port: Port) -> bool {
        let own = self.ports.get(usize::from(station));
        own.is_some_and(|own| own.contains(&port))
    }

    /// The first port of a station.
    pub fn first(&self, station: Port) -> Port {
        let own = self.ports.get(usize::from(station.0));
        own.and_then(|own| own.first()).copied().unwrap_or(station)
    }

    /// To whom of the segment's stations a frame is addressed that `station` sends on a segment, which may be a virtual LAN.
    pub fn to(&self, now: Instant, to: To, station: u16, segment: usize) -> To {
        let several = |to| match self.is_divided {
            true => To::Group(group(segment)),
            false => to,
        };
        let To::One(port) = to else {
            return several(to);
        };
        let Some(by) = self.way_to(port) else {
            // Nobody has it: its own sender, which the segment refuses.
            return To::One(Port(station));
        };
        let is_own = self.has(by, port);
        match self.heard.find(now, port) {
            _ if is_own || self.is_shared => To::One(Port(by)),
            Some(at) => To::One(Port(at)),
            None => several(To::Unknown),
        }
    }

    /// What a frame is to the segment.
    pub fn kind(&self, kind: Kind) -> Kind {
        match kind {
            Kind::Resolve(port) => match self.way_to(port) {
                Some(station) => Kind::Resolve(Port(station)),
                None => Kind::Arp,
            },
            Kind::Routed(_) => Kind::Ip,
            kind => kind,
        }
    }
}

/// The group of those on a segment.
pub(super) fn group(segment: usize) -> GroupId {
    GroupId(segment as u32)
}

/// Where ports were heard last, and when.
pub(super) struct Heard {
    ageing: Span,
    of: BTreeMap<Port, (u16, Instant)>,
}

impl Heard {
    pub fn new(ageing: Span) -> Self {
        Self {
            ageing,
            of: BTreeMap::new(),
        }
    }

    pub fn learn(&mut self, now: Instant, port: Port, at: u16) {
        self.of.insert(port, (at, now));
    }

    pub fn find(&self, now: Instant, port: Port) -> Option<u16> {
        let (at, when) = self.of.get(&port)?;
        (now.since(*when) < self.ageing).then_some(*at)
    }
}

/// By port: the station of a network by which it is reached, which carries these segments, where `bridges` have these segments and stations.
pub(super) fn ways(own: &[usize], at: &[(usize, u16)], bridges: &[&[(usize, u16)]]) -> Vec<u16> {
    // Segments to look at, with the station here by which they are reached.
    let mut found: BTreeMap<usize, Option<u16>> = own.iter().map(|one| (*one, None)).collect();
    let mut next = own.to_vec();
    while let Some(from) = next.pop() {
        let by = found.get(&from).copied().flatten();
        for bridge in bridges {
            let Some((_, station)) = bridge.iter().find(|(joined, _)| *joined == from) else {
                continue;
            };
            let by = by.or(own.contains(&from).then_some(*station));
            for (other, _) in *bridge {
                if !found.contains_key(other) {
                    found.insert(*other, by);
                    next.push(*other);
                }
            }
        }
    }
    let way = |(of, station): &(usize, u16)| match found.get(of) {
        Some(None) => *station,
        Some(Some(by)) => *by,
        None => NOWHERE,
    };
    at.iter().map(way).collect()
}
