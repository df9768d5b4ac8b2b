//! The routes that a host has beside its own: by which interface else a subnet is reached when the line of the usual one is down.
//!
//! Model:   Linux takes of several routes to a network that with the least priority number whose interface has a carrier
//!          (`ignore_routes_with_linkdown`). A host's other interfaces lead to a subnet by a router, or where a host of that subnet is beside them:
//!          that host answers to all of its addresses at each interface (the weak host model, RFC 1122 §3.3.4.2), and the neighbours are set, so
//!          that nobody has to ask.
//! Source:  ip-sysctl of the kernel's documentation; RFC 1122.
//! Checked: `others_lead_where_the_usual_one_led`; `lab_fail_over` of the command.

use crate::wire::Addresses;
use sonde_link::{Port, Subnets};
use std::net::Ipv4Addr;

/// A route by another interface than the usual one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fallback {
    /// The own address of the subnet that it leads to.
    pub destination: Ipv4Addr,
    /// The router; none where hosts of that subnet are beside the interface.
    pub gateway: Option<Ipv4Addr>,
    /// Below those of the interfaces before it.
    pub priority: u32,
    /// Addresses there, and the link addresses that they are reached by.
    pub neighbours: Vec<(Ipv4Addr, [u8; 6])>,
}

/// The routes of a host's port beside those of [`Addresses::routes`].
pub(crate) fn routes(subnets: &Subnets, addresses: &Addresses, port: Port) -> Vec<Fallback> {
    let (Some(own), Some(end)) = (subnets.of_port(port), subnets.ends.get(usize::from(port.0)))
    else {
        return Vec::new();
    };
    let to = |subnet: usize| {
        let usual = subnets.interface_to(end.host, subnet)?;
        if usual == port {
            return None;
        }
        let gateway = subnets.gateway(end.host, own, subnet);
        let mut neighbours = Vec::new();
        let mut destination = None;
        for (there, _) in (0..).map(Port).zip(&subnets.ends) {
            if subnets.of_port(there) != Some(subnet) {
                continue;
            }
            destination = Some(addresses.subnet(there));
            let host = subnets.ends[usize::from(there.0)].host;
            let mut beside = subnets.ports_of(host).iter().copied();
            let beside = beside.find(|other| subnets.of_port(*other) == Some(own));
            if let Some(beside) = beside.filter(|_| host != end.host) {
                neighbours.push((addresses.address(there), addresses.mac(beside)));
            }
        }
        if gateway.is_some() {
            neighbours.clear();
        } else if neighbours.is_empty() {
            return None;
        }
        Some(Fallback {
            destination: destination?,
            gateway: gateway.map(|router| addresses.address(router)),
            priority: 10 * (1 + u32::from(end.number)),
            neighbours,
        })
    };
    (0..subnets.count()).filter_map(to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_link::{SiteSpec, parse_site, resolve};

    fn of(site: &SiteSpec, port: u16) -> Vec<Fallback> {
        let subnets = site.subnets().unwrap();
        routes(&subnets, &Addresses::new(&subnets), Port(port))
    }

    #[test]
    fn others_lead_where_the_usual_one_led() {
        let wire = resolve("wire", &|_| unreachable!()).unwrap();
        let two = SiteSpec::parallel(vec![wire; 2], 3);
        // h1 reaches 10.9.0.0/24 by its eth1 too, where h2 and h3 are; and 10.9.1.0/24 by its eth0.
        let by_eth1 = of(&two, 3);
        let mac = |last| [2, 0, 10, 9, 1, last];
        let want = Fallback {
            destination: [10, 9, 0, 0].into(),
            gateway: None,
            priority: 20,
            neighbours: vec![
                ([10, 9, 0, 2].into(), mac(2)),
                ([10, 9, 0, 3].into(), mac(3)),
            ],
        };
        assert_eq!(by_eth1, [want]);
        assert_eq!(
            (of(&two, 0)[0].destination, of(&two, 0)[0].priority),
            ([10, 9, 1, 0].into(), 10)
        );
        // By a router; a host of one interface has no other.
        let text = "name = \"x\"\nsummary = \"x\"\n\
            [[segment]]\nname = \"a\"\nnetwork = \"wire\"\nhosts = [\"both\", \"one\"]\n\
            [[segment]]\nname = \"b\"\nnetwork = \"wire\"\nhosts = [\"both\", \"other\"]\n\
            [[router]]\nname = \"r\"\njoins = [\"a\", \"b\"]\n";
        let site = parse_site("x", text, &|_| unreachable!()).unwrap();
        assert!(of(&site, 1).is_empty() && of(&site, 2).is_empty());
        let by_b = of(&site, 3);
        assert_eq!(by_b[0].gateway, Some([10, 9, 1, 254].into()));
        assert_eq!((by_b[0].destination, by_b.len()), ([10, 9, 0, 0].into(), 1));
    }
}
