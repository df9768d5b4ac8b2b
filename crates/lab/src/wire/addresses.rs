//! Which port of a lab has which address.
//!
//! Model:   subnets have the addresses 10.9.0.0/24, 10.9.1.0/24 and so on. In each the hosts have the first addresses, eth0 of each before
//!          eth1 of any, and routers the last ones. Where a /24 has too few for one of them, all are /23. A link address is 02:00 and the four bytes of the IPv4 address.
//! Checked: in `wire.rs`, `every_port_has_an_address_of_its_own`, `subnets_have_addresses_and_ways_to_each_other`.

use sonde_link::{HostPort, Port, Subnets};
use std::net::Ipv4Addr;

/// What the link addresses of the lab begin with.
pub const MAC: [u8; 2] = [0x02, 0x00];
/// The first subnet's own address.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 0);
/// Addresses that a /24 has for ports.
const PORTS_24: usize = 254;

/// Which port has which address.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    prefix: u8,
    subnets: Vec<Subnet>,
    /// By port: its subnet, and its number there; the other ports have none.
    of: Vec<Option<(u16, u16)>>,
    /// By port of a host: the subnets that the host reaches by it over routers, each with the router.
    routes: Vec<Vec<(u16, Port)>>,
}

/// Ports that reach each other without a router.
#[derive(Clone, Debug, Default)]
struct Subnet {
    hosts: Vec<Port>,
    routers: Vec<Port>,
    /// The longest datagram that all its segments carry.
    mtu: u64,
}

impl Addresses {
    /// Those of what is in these subnets.
    pub fn new(subnets: &Subnets) -> Self {
        let of = |number| Subnet {
            hosts: (0..subnets.ends.len() as u16)
                .map(Port)
                .filter(|port| subnets.of_port(*port) == Some(number))
                .collect(),
            routers: subnets.routers_in(number).collect(),
            mtu: subnets.mtus.get(number).copied().unwrap_or(u64::MAX),
        };
        let mut all = Self::of_subnets((0..subnets.count()).map(of).collect());
        let routes = |(port, end): (Port, &HostPort)| -> Vec<(u16, Port)> {
            let Some(own) = subnets.of_port(port) else {
                return Vec::new();
            };
            let leads = |to: &usize| subnets.interface_to(end.host, *to) == Some(port);
            let way = |to: usize| Some((to as u16, subnets.gateway(end.host, own, to)?));
            let all = (0..subnets.count()).filter(leads);
            all.filter_map(way).collect()
        };
        all.routes = (0..).map(Port).zip(&subnets.ends).map(routes).collect();
        all
    }

    /// Two subnets of so many hosts each with a router between them, for a fuzzer.
    pub fn any(hosts: u16) -> Self {
        let subnet = |number: u16| Subnet {
            hosts: (0..hosts)
                .map(|host| Port(number.saturating_mul(hosts).saturating_add(host)))
                .collect(),
            routers: vec![Port(hosts.saturating_mul(2).saturating_add(number))],
            mtu: 1_500,
        };
        Self::of_subnets(vec![subnet(0), subnet(1)])
    }

    fn of_subnets(subnets: Vec<Subnet>) -> Self {
        let most = subnets
            .iter()
            .map(|one| one.hosts.len().saturating_add(one.routers.len()));
        let prefix = if most.max().unwrap_or(0) > PORTS_24 {
            23
        } else {
            24
        };
        let mut all = Self {
            prefix,
            subnets,
            of: Vec::new(),
            routes: Vec::new(),
        };
        let top = all.size().saturating_sub(2) as u16;
        let mut places = Vec::new();
        for (number, subnet) in (0..).zip(&all.subnets) {
            places.extend(
                (1..)
                    .zip(&subnet.hosts)
                    .map(|(own, port)| (*port, (number, own))),
            );
            places.extend(
                (0..)
                    .zip(&subnet.routers)
                    .map(|(down, port)| (*port, (number, top.saturating_sub(down)))),
            );
        }
        let last = places
            .iter()
            .map(|(port, _)| usize::from(port.0))
            .max()
            .unwrap_or(0);
        all.of = vec![None; last.saturating_add(1)];
        for (port, place) in places {
            if let Some(own) = all.of.get_mut(usize::from(port.0)) {
                *own = Some(place);
            }
        }
        all
    }

    /// The length of every subnet's prefix.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// How many addresses a subnet has.
    fn size(&self) -> u32 {
        let most = u32::MAX.checked_shr(self.prefix.into());
        most.map_or(1, |most| most.saturating_add(1))
    }

    /// The own address of a subnet.
    fn base(&self, subnet: u16) -> Ipv4Addr {
        u32::from(FIRST)
            .wrapping_add(u32::from(subnet).wrapping_mul(self.size()))
            .into()
    }

    fn place(&self, port: Port) -> (u16, u16) {
        let place = self.of.get(usize::from(port.0)).copied().flatten();
        place.unwrap_or((0, 0))
    }

    fn around(&self, port: Port) -> Option<&Subnet> {
        self.subnets.get(usize::from(self.place(port).0))
    }

    /// The own address of a port's subnet.
    pub fn subnet(&self, port: Port) -> Ipv4Addr {
        self.base(self.place(port).0)
    }

    /// The address of a port.
    pub fn address(&self, port: Port) -> Ipv4Addr {
        let (subnet, number) = self.place(port);
        let base = u32::from(self.base(subnet));
        base.wrapping_add(u32::from(number)).into()
    }

    /// The link address of a port.
    pub fn mac(&self, port: Port) -> [u8; 6] {
        let ([first, second], [a, b, c, d]) = (MAC, self.address(port).octets());
        [first, second, a, b, c, d]
    }

    /// The other hosts of a port's subnet.
    pub fn hosts_beside(&self, port: Port) -> impl Iterator<Item = Port> + '_ {
        let hosts = self
            .around(port)
            .into_iter()
            .flat_map(|subnet| &subnet.hosts);
        hosts.copied().filter(move |other| *other != port)
    }

    /// The routers of a port's subnet.
    pub fn routers_beside(&self, port: Port) -> impl Iterator<Item = Port> + '_ {
        self.around(port)
            .into_iter()
            .flat_map(|subnet| &subnet.routers)
            .copied()
    }

    /// The subnets that a host reaches by this port of its own over routers, each with the router.
    pub fn routes(&self, port: Port) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> + '_ {
        let own = self.routes.get(usize::from(port.0)).into_iter().flatten();
        own.map(|(to, gateway)| (self.base(*to), self.address(*gateway)))
    }

    /// How many entries of neighbours all hosts have together.
    pub fn neighbours(&self) -> usize {
        let of = |subnet: &Subnet| {
            let hosts = subnet.hosts.len();
            hosts.saturating_mul(hosts.saturating_sub(1))
        };
        self.subnets.iter().map(of).sum()
    }

    /// The port that has an address.
    pub fn port(&self, address: Ipv4Addr) -> Option<Port> {
        let offset = u32::from(address).checked_sub(u32::from(FIRST))?;
        let (subnet, number) = (
            offset.checked_div(self.size())?,
            offset.checked_rem(self.size())?,
        );
        let subnet = self.subnets.get(subnet as usize)?;
        let number = number as usize;
        let top = self.size().saturating_sub(2) as usize;
        let host = number
            .checked_sub(1)
            .and_then(|index| subnet.hosts.get(index));
        let router = || {
            top.checked_sub(number)
                .and_then(|index| subnet.routers.get(index))
        };
        host.or_else(router).copied()
    }

    /// The port of the same subnet as `from` that has an address.
    pub fn port_beside(&self, from: Port, address: Ipv4Addr) -> Option<Port> {
        let port = self.port(address)?;
        (self.place(port).0 == self.place(from).0).then_some(port)
    }

    /// Whether some segment of a port's subnet carries no datagram of so many bytes.
    pub fn is_long(&self, port: Port, bytes: usize) -> bool {
        let own = self.around(port);
        own.is_some_and(|subnet| bytes as u64 > subnet.mtu)
    }

    pub fn is_router(&self, port: Port) -> bool {
        self.routers_beside(port).any(|router| router == port)
    }
}

/// The IPv4 address of each port of a lab's hosts.
pub fn addresses(subnets: &Subnets) -> Vec<Ipv4Addr> {
    let all = Addresses::new(subnets);
    let ports = (0..).map(Port).zip(&subnets.ends);
    ports.map(|(port, _)| all.address(port)).collect()
}
