//! Addresses, routes with their TCP metrics, neighbours.

use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::io::Errno;

use super::Netlink;
use crate::{Error, Result};

/// TCP settings that hold for connections over one route; `None` leaves the kernel's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteMetrics {
    /// Largest window offered, in bytes.
    pub window_bytes: Option<u32>,
    /// Segments sent before the first acknowledgement.
    pub initcwnd: Option<u32>,
    /// Segments the first offered window allows.
    pub initrwnd: Option<u32>,
    /// Shortest retransmission time-out.
    pub rto_min_ms: Option<u32>,
    /// Largest segment offered to the peer, in bytes.
    pub advmss_bytes: Option<u32>,
    /// Congestion control; any loaded algorithm, also where the sysctl of the namespace refuses it.
    pub congctl: Option<String>,
    /// Acknowledge every segment at once.
    pub quickack: Option<bool>,
    /// Largest packet sent this way, in bytes.
    pub mtu_bytes: Option<u32>,
}

impl RouteMetrics {
    fn attributes(&self) -> Vec<RouteMetric> {
        let mut metrics = Vec::new();
        metrics.extend(self.window_bytes.map(RouteMetric::Window));
        metrics.extend(self.initcwnd.map(RouteMetric::InitCwnd));
        metrics.extend(self.initrwnd.map(RouteMetric::InitRwnd));
        metrics.extend(self.rto_min_ms.map(RouteMetric::RtoMin));
        metrics.extend(self.advmss_bytes.map(RouteMetric::Advmss));
        metrics.extend(self.congctl.clone().map(RouteMetric::CcAlgo));
        metrics.extend(self.quickack.map(|on| RouteMetric::QuickAck(on.into())));
        metrics.extend(self.mtu_bytes.map(RouteMetric::Mtu));
        metrics
    }

    fn parse(attributes: &[RouteMetric]) -> Self {
        let mut metrics = Self::default();
        for attribute in attributes {
            match attribute {
                RouteMetric::Window(value) => metrics.window_bytes = Some(*value),
                RouteMetric::InitCwnd(value) => metrics.initcwnd = Some(*value),
                RouteMetric::InitRwnd(value) => metrics.initrwnd = Some(*value),
                RouteMetric::RtoMin(value) => metrics.rto_min_ms = Some(*value),
                RouteMetric::Advmss(value) => metrics.advmss_bytes = Some(*value),
                RouteMetric::CcAlgo(name) => metrics.congctl = Some(name.clone()),
                RouteMetric::QuickAck(value) => metrics.quickack = Some(*value != 0),
                RouteMetric::Mtu(value) => metrics.mtu_bytes = Some(*value),
                _ => {}
            }
        }
        metrics
    }
}

/// An IPv4 route of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The network.
    pub destination: Ipv4Addr,
    /// Its length in bits.
    pub prefix_len: u8,
    /// The interface it leaves by.
    pub ifindex: u32,
    /// The next router; `None` is on-link.
    pub gateway: Option<Ipv4Addr>,
    /// The source address preferred.
    pub source: Option<Ipv4Addr>,
    /// Of several routes to one network that with the least is taken; 0 where none is given.
    pub priority: u32,
    /// TCP settings.
    pub metrics: RouteMetrics,
}

impl Route {
    /// An on-link route without settings.
    pub fn on_link(destination: Ipv4Addr, prefix_len: u8, ifindex: u32) -> Self {
        Self {
            destination,
            prefix_len,
            ifindex,
            gateway: None,
            source: None,
            priority: 0,
            metrics: RouteMetrics::default(),
        }
    }

    fn message(&self) -> RouteMessage {
        let mut message = RouteMessage::default();
        let header = &mut message.header;
        header.address_family = AddressFamily::Inet;
        header.destination_prefix_length = self.prefix_len;
        header.table = RouteHeader::RT_TABLE_MAIN;
        // As the prefix route which the kernel makes with an address, so that it is this one that is
        // replaced and not a second one added.
        header.protocol = RouteProtocol::Kernel;
        header.scope = if self.gateway.is_some() {
            RouteScope::Universe
        } else {
            RouteScope::Link
        };
        header.kind = RouteType::Unicast;
        let attributes = &mut message.attributes;
        if self.prefix_len > 0 {
            attributes.push(RouteAttribute::Destination(RouteAddress::Inet(
                self.destination,
            )));
        }
        attributes.push(RouteAttribute::Oif(self.ifindex));
        attributes.extend(
            self.gateway
                .map(|a| RouteAttribute::Gateway(RouteAddress::Inet(a))),
        );
        attributes.extend(
            self.source
                .map(|a| RouteAttribute::PrefSource(RouteAddress::Inet(a))),
        );
        if self.priority > 0 {
            attributes.push(RouteAttribute::Priority(self.priority));
        }
        let metrics = self.metrics.attributes();
        if !metrics.is_empty() {
            attributes.push(RouteAttribute::Metrics(metrics));
        }
        message
    }

    fn parse(message: &RouteMessage) -> Option<Self> {
        let unicast = message.header.kind == RouteType::Unicast;
        if !unicast || message.header.table != RouteHeader::RT_TABLE_MAIN {
            return None;
        }
        let mut route = Self::on_link(
            Ipv4Addr::UNSPECIFIED,
            message.header.destination_prefix_length,
            0,
        );
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Destination(RouteAddress::Inet(address)) => {
                    route.destination = *address
                }
                RouteAttribute::Gateway(RouteAddress::Inet(address)) => {
                    route.gateway = Some(*address)
                }
                RouteAttribute::Priority(priority) => route.priority = *priority,
                RouteAttribute::PrefSource(RouteAddress::Inet(address)) => {
                    route.source = Some(*address)
                }
                RouteAttribute::Oif(index) => route.ifindex = *index,
                RouteAttribute::Metrics(metrics) => route.metrics = RouteMetrics::parse(metrics),
                _ => {}
            }
        }
        Some(route)
    }
}

/// An entry of the neighbour (ARP) table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its hardware address, when known.
    pub mac: Option<[u8; 6]>,
    /// Whether it was set for good.
    pub permanent: bool,
}

impl Netlink {
    /// Gives an interface an IPv4 address; the kernel adds the route to its network.
    pub fn add_address(&mut self, ifindex: u32, address: Ipv4Addr, prefix_len: u8) -> Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix_len;
        message.header.index = ifindex;
        message
            .attributes
            .push(AddressAttribute::Local(address.into()));
        message
            .attributes
            .push(AddressAttribute::Address(address.into()));
        if prefix_len < 31 {
            let broadcast = u32::from(address) | (u32::MAX >> prefix_len);
            message
                .attributes
                .push(AddressAttribute::Broadcast(broadcast.into()));
        }
        let what = format!("give interface {ifindex} the address {address}/{prefix_len}");
        self.change(
            &what,
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// The IPv4 addresses of an interface, with prefix lengths.
    pub fn addresses(&mut self, ifindex: u32) -> Result<Vec<(Ipv4Addr, u8)>> {
        let mut request = AddressMessage::default();
        request.header.family = AddressFamily::Inet;
        let found = self.dump(
            "list the addresses",
            RouteNetlinkMessage::GetAddress(request),
        )?;
        let addresses = found.iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewAddress(message) if message.header.index == ifindex => message
                .attributes
                .iter()
                .find_map(|attribute| match attribute {
                    AddressAttribute::Local(std::net::IpAddr::V4(address)) => {
                        Some((*address, message.header.prefix_len))
                    }
                    _ => None,
                }),
            _ => None,
        });
        Ok(addresses.collect())
    }

    /// Every address of this host, IPv4 and IPv6: the interface's number, the address, its prefix length.
    ///
    /// # Errors
    /// The kernel refuses to tell.
    pub fn every_address(&mut self) -> Result<Vec<(u32, IpAddr, u8)>> {
        let found = self.dump(
            "list the addresses",
            RouteNetlinkMessage::GetAddress(AddressMessage::default()),
        )?;
        let addresses = found.iter().filter_map(|message| {
            let RouteNetlinkMessage::NewAddress(message) = message else {
                return None;
            };
            // Of a point-to-point link `Address` is the other end, and `Local` this one; IPv6 has no `Local`.
            let own = message.attributes.iter().find_map(|one| match one {
                AddressAttribute::Local(address) => Some(*address),
                _ => None,
            });
            let any = message.attributes.iter().find_map(|one| match one {
                AddressAttribute::Address(address) => Some(*address),
                _ => None,
            });
            let header = &message.header;
            Some((header.index, own.or(any)?, header.prefix_len))
        });
        Ok(addresses.collect())
    }

    /// Adds a route, or replaces the one with the same destination.
    pub fn replace_route(&mut self, route: &Route) -> Result<()> {
        let what = format!(
            "set the route to {}/{} ({:?})",
            route.destination, route.prefix_len, route.metrics
        );
        let message = RouteNetlinkMessage::NewRoute(route.message());
        self.change(&what, message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Removes a route of the main table.
    pub fn delete_route(&mut self, route: &Route) -> Result<()> {
        let what = format!(
            "remove the route to {}/{}",
            route.destination, route.prefix_len
        );
        self.change(&what, RouteNetlinkMessage::DelRoute(route.message()), 0)
    }

    /// The unicast IPv4 routes of the main table.
    pub fn routes(&mut self) -> Result<Vec<Route>> {
        let mut request = RouteMessage::default();
        request.header.address_family = AddressFamily::Inet;
        let found = self.dump("list the routes", RouteNetlinkMessage::GetRoute(request))?;
        let routes = found.iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewRoute(message) => Route::parse(message),
            _ => None,
        });
        Ok(routes.collect())
    }

    /// Sets the metrics of a route and reads them back.
    pub fn set_route(&mut self, route: &Route) -> Result<()> {
        self.replace_route(route)?;
        let same = |found: &Route| {
            (found.destination, found.prefix_len, found.ifindex)
                == (route.destination, route.prefix_len, route.ifindex)
        };
        let found = self.routes()?.into_iter().find(same);
        match found {
            Some(found) if found.metrics == route.metrics => Ok(()),
            found => Err(Error::NotTaken {
                name: format!("route to {}/{}", route.destination, route.prefix_len),
                asked: format!("{:?}", route.metrics),
                found: found.map_or("no such route".into(), |found| {
                    format!("{:?}", found.metrics)
                }),
            }),
        }
    }

    /// The IPv4 neighbours of an interface.
    pub fn neighbours(&mut self, ifindex: u32) -> Result<Vec<Neighbour>> {
        let mut request = NeighbourMessage::default();
        request.header.family = AddressFamily::Inet;
        let found = self.dump(
            "list the ARP entries",
            RouteNetlinkMessage::GetNeighbour(request),
        )?;
        let neighbours = found.iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewNeighbour(message) if message.header.ifindex == ifindex => {
                neighbour(message)
            }
            _ => None,
        });
        Ok(neighbours.collect())
    }

    /// Forgets the neighbours of an interface, so that the next packet resolves again; those set for good
    /// stay.
    pub fn flush_neighbours(&mut self, ifindex: u32) -> Result<()> {
        for neighbour in self.neighbours(ifindex)? {
            if neighbour.permanent {
                continue;
            }
            let mut message = NeighbourMessage::default();
            message.header.family = AddressFamily::Inet;
            message.header.ifindex = ifindex;
            message
                .attributes
                .push(NeighbourAttribute::Destination(NeighbourAddress::Inet(
                    neighbour.address,
                )));
            let what = format!(
                "flush the ARP entry {} of interface {ifindex}",
                neighbour.address
            );
            match self.change(&what, RouteNetlinkMessage::DelNeighbour(message), 0) {
                // It expired between the listing and now.
                Err(Error::Netlink {
                    errno: Errno::NOENT,
                    ..
                }) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Sets a neighbour for good: no ARP is sent for it.
    pub fn set_neighbour(&mut self, ifindex: u32, address: Ipv4Addr, mac: [u8; 6]) -> Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = ifindex;
        message.header.state = NeighbourState::Permanent;
        message
            .attributes
            .push(NeighbourAttribute::Destination(NeighbourAddress::Inet(
                address,
            )));
        message
            .attributes
            .push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
        let what = format!("set the ARP entry {address} of interface {ifindex}");
        self.change(
            &what,
            RouteNetlinkMessage::NewNeighbour(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }
}

fn neighbour(message: &NeighbourMessage) -> Option<Neighbour> {
    if message.header.state == NeighbourState::Noarp {
        return None;
    }
    let address = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(*address),
            _ => None,
        })?;
    let mac = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::LinkLayerAddress(mac) => mac.as_slice().try_into().ok(),
            _ => None,
        });
    Some(Neighbour {
        address,
        mac,
        permanent: message.header.state == NeighbourState::Permanent,
    })
}
