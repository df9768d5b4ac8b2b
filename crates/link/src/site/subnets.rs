//! The subnets of a site, and the way from one to another.
//!
//! Model:   what bridges join is a subnet, numbered in the order of the file. From one to another a datagram passes as few routers as it can; of
//!          several ways as short hosts take turns by their numbers, in the order of the file, and routers take the first. A host on several sends by the interface from which that is fewest,
//!          of equal ones the first; it sends nothing on for others but where the file makes it a router.
//! Checked: `tests/router.rs`.

use super::check::Joined;
use super::spec::{By, HostPort, SiteSpec, Stations};
use crate::Port;
use std::collections::BTreeSet;

/// The subnets of a site.
#[derive(Clone, Debug)]
pub struct Subnets {
    /// By segment: the number of its subnet.
    pub of: Vec<usize>,
    /// By subnet: the longest datagram that all its segments carry.
    pub mtus: Vec<u64>,
    /// By port: the interfaces of the hosts.
    pub ends: Vec<HostPort>,
    /// By host: its ports.
    hosts: Vec<Vec<Port>>,
    /// By port (those of the hosts, then those of the bridges, then those of the routers): its segment, and its station on the network there.
    pub(crate) at: Vec<(usize, u16)>,
    /// By segment: the one whose network carries it.
    pub(crate) carriers: Vec<usize>,
    /// By bridge and interface: the segment.
    pub(crate) bridges: Vec<Vec<usize>>,
    /// By router and interface: the port, of a host that sends on its own.
    pub(crate) routers: Vec<Vec<Port>>,
    /// By subnet, from and to: how many routers a datagram passes.
    hops: Vec<Vec<Option<u32>>>,
}

impl Subnets {
    pub(super) fn new(site: &SiteSpec, joined: Joined) -> Self {
        let ends = site.ends();
        let carriers: Vec<_> = (0..site.segment.len())
            .map(|one| site.carrier(one))
            .collect();
        let carrier = |segment: usize| carriers.get(segment).copied().unwrap_or(segment);
        let mut at: Vec<_> = ends.iter().map(|end| (end.segment, end.station)).collect();
        let mut stations = Stations::default();
        let names = site.names();
        for end in &ends {
            stations.pass(end.carrier, end.station);
        }
        for segment in joined.bridges.iter().flatten() {
            at.push((*segment, stations.more(carrier(*segment))));
        }
        let mut routers: Vec<Vec<Port>> = Vec::new();
        for (router, segments) in site.router.iter().zip(&joined.routers) {
            let own = |segment: usize| {
                let mut all = (0..).zip(&ends);
                let is_of = |end: &HostPort| {
                    let host = names.get(usize::from(end.host));
                    end.segment == segment && host == Some(&router.name.as_str())
                };
                all.find(|(_, end)| is_of(end)).map(|(port, _)| Port(port))
            };
            let ports = segments.iter().map(|segment| match router.by {
                By::Host => own(*segment).unwrap_or(Port(0)),
                By::Model => {
                    let station = stations.of(carrier(*segment), &router.name);
                    at.push((*segment, station));
                    Port((at.len() as u16).saturating_sub(1))
                }
            });
            routers.push(ports.collect());
        }
        let count = joined
            .subnet
            .iter()
            .max()
            .map_or(0, |most| most.saturating_add(1));
        let of = joined.subnet;
        let mut mtus = vec![u64::MAX; count];
        for (one, subnet) in site.segment.iter().zip(&of) {
            if let Some(mtu) = mtus.get_mut(*subnet) {
                *mtu = one.network.mtu.min(*mtu);
            }
        }
        let mut subnets = Self {
            of,
            mtus,
            hosts: of_hosts(&ends),
            ends,
            at,
            bridges: joined.bridges,
            routers,
            carriers,
            hops: Vec::new(),
        };
        subnets.hops = (0..count)
            .map(|from| subnets.hops_from(from, count))
            .collect();
        subnets
    }

    /// How many routers lie between a subnet and each.
    fn hops_from(&self, from: usize, count: usize) -> Vec<Option<u32>> {
        let mut hops: Vec<Option<u32>> = vec![None; count];
        if let Some(own) = hops.get_mut(from) {
            *own = Some(0);
        }
        for round in 0..self.routers.len() as u32 {
            for router in 0..self.routers.len() {
                let is_there = |subnet| hops.get(subnet) == Some(&Some(round));
                if self.interfaces(router).any(|(_, subnet)| is_there(subnet)) {
                    for (_, subnet) in self.interfaces(router) {
                        if let Some(place @ None) = hops.get_mut(subnet) {
                            *place = Some(round.saturating_add(1));
                        }
                    }
                }
            }
        }
        hops
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.hops.len()
    }

    /// The subnet of a port; none for one that is not there.
    pub fn of_port(&self, port: Port) -> Option<usize> {
        self.of.get(self.segment(port)?).copied()
    }

    fn segment(&self, port: Port) -> Option<usize> {
        let (segment, _) = self.at.get(usize::from(port.0))?;
        Some(*segment)
    }

    /// The segment whose network carries a port, and its station there.
    pub fn station(&self, port: Port) -> Option<(usize, Port)> {
        let (segment, station) = self.at.get(usize::from(port.0))?;
        Some((*self.carriers.get(*segment)?, Port(*station)))
    }

    /// How many stations the network of a segment has.
    pub fn stations(&self, carrier: usize) -> u16 {
        let all = (0..self.at.len() as u16).filter_map(|port| self.station(Port(port)));
        let own = all.filter(|(segment, _)| *segment == carrier);
        let last = own.map(|(_, station)| station.0).max();
        last.map_or(0, |last| last.saturating_add(1))
    }

    fn hops(&self, from: usize, to: usize) -> Option<u32> {
        self.hops.get(from)?.get(to).copied().flatten()
    }

    /// The ports of a host, eth0 first; none of one that is not there.
    pub fn ports_of(&self, host: u16) -> &[Port] {
        let all = self.hosts.get(usize::from(host));
        all.map_or(&[], Vec::as_slice)
    }

    /// The interface by which a host sends to a subnet; none where no way leads there.
    pub fn interface_to(&self, host: u16, subnet: usize) -> Option<Port> {
        let hops = |port: &Port| Some((self.hops(self.of_port(*port)?, subnet)?, *port));
        let ways = self.ports_of(host).iter().filter_map(hops);
        ways.min_by_key(|(hops, _)| *hops).map(|(_, port)| port)
    }

    /// Both ends of the way from one host to another: of the other's interfaces that with the fewest routers before it, of equal ones the
    /// first. None where no way leads there.
    pub fn between(&self, from: u16, to: u16) -> Option<(Port, Port)> {
        let way = |port: &Port| {
            let subnet = self.of_port(*port)?;
            let out = self.interface_to(from, subnet)?;
            Some((self.hops(self.of_port(out)?, subnet)?, (out, *port)))
        };
        let ways = self.ports_of(to).iter().filter_map(way);
        ways.min_by_key(|(hops, _)| *hops).map(|(_, ends)| ends)
    }

    /// The interfaces of a router: the port and the subnet of each.
    pub fn interfaces(&self, router: usize) -> impl Iterator<Item = (Port, usize)> + '_ {
        let ports = self.routers.get(router).into_iter().flatten();
        ports.filter_map(|port| Some((*port, self.of_port(*port)?)))
    }

    /// The routers that are in a subnet and are no hosts, by their ports there.
    pub fn routers_in(&self, subnet: usize) -> impl Iterator<Item = Port> + '_ {
        let all = (0..self.routers.len()).flat_map(|router| self.interfaces(router));
        let is_so = move |(port, of): &(Port, usize)| *of == subnet && !self.is_host(*port);
        all.filter(is_so).map(|(port, _)| port)
    }

    /// Whether a port is a host's.
    pub fn is_host(&self, port: Port) -> bool {
        usize::from(port.0) < self.ends.len()
    }

    /// Whether a host sends on what is for others.
    pub fn sends_on(&self, host: u16) -> bool {
        let own = self.ports_of(host);
        let mut all = self.routers.iter().flatten();
        all.any(|port| own.contains(port))
    }

    /// How many lines hosts have, and how many they, bridges and routers have together: of one with several virtual LANs that is one.
    pub fn lines(&self) -> (usize, usize) {
        let line =
            |(segment, station): &(usize, u16)| (self.carriers.get(*segment).copied(), *station);
        let hosts: BTreeSet<_> = self.at.iter().take(self.ends.len()).map(line).collect();
        let all: BTreeSet<_> = self.at.iter().map(line).collect();
        (hosts.len(), all.len())
    }

    /// From one subnet towards another, in turn `turn`: the router's port in the first, and its port in the one behind it.
    fn step(&self, turn: u16, from: usize, to: usize) -> Option<(Port, Port)> {
        let far = self.hops(from, to)?.checked_sub(1)?;
        let by = |router: usize| {
            let (port, _) = self
                .interfaces(router)
                .find(|(_, subnet)| *subnet == from)?;
            let mut all = self.interfaces(router);
            let (next, _) = all.find(|(_, subnet)| self.hops(*subnet, to) == Some(far))?;
            Some((port, next))
        };
        let all = (0..self.routers.len()).filter_map(by);
        let turn = usize::from(turn).checked_rem(all.clone().count())?;
        all.clone().nth(turn)
    }

    /// The router to which a host of this number sends from one subnet what is for another: its port in the first. None where both are one, or
    /// no router leads there.
    pub fn gateway(&self, host: u16, from: usize, to: usize) -> Option<Port> {
        self.step(host, from, to).map(|(port, _)| port)
    }

    /// The segments on the way from one port to another, in their order; none where no way leads there.
    pub fn segments(&self, from: Port, to: Port) -> Option<Vec<usize>> {
        let legs = self.legs(from, to)?;
        let segments = legs.iter().map(|(into, _)| self.segment(*into));
        segments.collect()
    }

    /// On each of these segments the ports by which the way enters and leaves it.
    pub fn legs(&self, from: Port, to: Port) -> Option<Vec<(Port, Port)>> {
        let subnet = self.of_port(to)?;
        let mut turn = self.ends.get(usize::from(from.0))?.host;
        let (mut at, mut all) = (from, Vec::new());
        while self.of_port(at)? != subnet {
            let (near, far) = self.step(turn, self.of_port(at)?, subnet)?;
            all.extend(self.bridged(at, near)?);
            at = far;
            // After the first router it is theirs.
            turn = 0;
        }
        all.extend(self.bridged(at, to)?);
        Some(all)
    }

    /// Those between two ports of a subnet, which bridges lead to each other.
    fn bridged(&self, from: Port, to: Port) -> Option<Vec<(Port, Port)>> {
        let (first, last) = (self.segment(from)?, self.segment(to)?);
        // By segment: the ports of the bridge that leads there, before and behind it.
        let mut by: Vec<Option<(Port, Port)>> = vec![None; self.of.len()];
        let mut reached = vec![first];
        let mut next = 0;
        while let Some(at) = reached.get(next).copied() {
            next = next.saturating_add(1);
            for bridge in self.bridge_ports() {
                let on = |port: &&Port| self.segment(**port) == Some(at);
                let Some(near) = bridge.iter().find(on) else {
                    continue;
                };
                for far in &bridge {
                    let segment = self.segment(*far)?;
                    if let Some(place @ None) = by.get_mut(segment).filter(|_| segment != first) {
                        *place = Some((*near, *far));
                        reached.push(segment);
                    }
                }
            }
        }
        let (mut at, mut out, mut all) = (last, to, Vec::new());
        while at != first {
            let (near, far) = by.get(at).copied().flatten()?;
            all.push((far, out));
            (at, out) = (self.segment(near)?, near);
        }
        all.push((from, out));
        all.reverse();
        Some(all)
    }

    /// The ports of each bridge.
    fn bridge_ports(&self) -> impl Iterator<Item = Vec<Port>> + '_ {
        let mut next = self.ends.len() as u16;
        self.bridges.iter().map(move |bridge| {
            let first = next;
            next = next.saturating_add(bridge.len() as u16);
            (first..next).map(Port).collect()
        })
    }

    /// What a router does by the subnet of a datagram: the interface that it leaves by, and the next router, if one is between.
    pub(crate) fn table(&self, router: usize) -> Vec<Option<(usize, Option<Port>)>> {
        let way = |to: usize| {
            let near = |(_, (_, subnet)): &(usize, (Port, usize))| {
                self.hops(*subnet, to).unwrap_or(u32::MAX)
            };
            let (out, (_, subnet)) = self.interfaces(router).enumerate().min_by_key(near)?;
            match self.hops(subnet, to)? {
                0 => Some((out, None)),
                _ => Some((out, Some(self.gateway(0, subnet, to)?))),
            }
        };
        (0..self.count()).map(way).collect()
    }
}

/// The ports of each host.
fn of_hosts(ends: &[HostPort]) -> Vec<Vec<Port>> {
    let last = ends.iter().map(|end| usize::from(end.host)).max();
    let mut all = vec![Vec::new(); last.map_or(0, |last| last.saturating_add(1))];
    for (port, end) in (0..).zip(ends) {
        if let Some(own) = all.get_mut(usize::from(end.host)) {
            own.push(Port(port));
        }
    }
    all
}
