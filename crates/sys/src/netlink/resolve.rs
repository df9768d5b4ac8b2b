//! The way to an address, and the resolution of a neighbour by itself.
//!
//! Model:   the kernel is asked to use a neighbour (RTM_NEWNEIGH with NTF_USE), which sends the question of ARP at once and
//!          no other frame; it says by RTNLGRP_NEIGH when the entry is reachable.
//! Source:  net/core/neighbour.c, neigh_add: NTF_USE calls neigh_event_send; neigh_update notifies when the answer came.
//!          To see it: `ip monitor neigh` beside `ip neigh replace ADDRESS dev DEVICE use`.
//! Units:   nanoseconds.
//! Checked: `tests/netlink.rs`, `a_neighbour_is_resolved_alone`, `the_way_to_an_address`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, sockopt};

use super::{Neighbour, Netlink, Parts, decode};
use crate::clock::monotonic_ns;
use crate::error::Attempt;
use crate::socket::set_option;
use crate::{Error, Result};

/// How packets to an address leave this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// The interface.
    pub ifindex: u32,
    /// The next router; `None` is on-link, or a gateway that is no IPv4 address.
    pub gateway: Option<Ipv4Addr>,
    /// The address is this host's own.
    pub local: bool,
}

/// How the resolution of a neighbour ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    /// It is reachable, after so long.
    After {
        /// From before the request to the notice.
        ns: u64,
    },
    /// Nothing is to be resolved: it is known, or its interface does without ARP.
    Needless,
    /// It does not answer.
    Failed,
    /// No word within the timeout.
    Silence,
}

impl Netlink {
    /// The way to `address`, as the kernel would route a packet now.
    ///
    /// # Errors
    /// There is none.
    pub fn way_to(&mut self, address: IpAddr) -> Result<NextHop> {
        let what = format!("find the route to {address}");
        let mut request = RouteMessage::default();
        let (family, bits, destination) = match address {
            IpAddr::V4(address) => (AddressFamily::Inet, 32, RouteAddress::Inet(address)),
            IpAddr::V6(address) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(address)),
        };
        request.header.address_family = family;
        request.header.destination_prefix_length = bits;
        request
            .attributes
            .push(RouteAttribute::Destination(destination));
        let found = self.query(&what, RouteNetlinkMessage::GetRoute(request))?;
        let message = found.iter().find_map(|message| match message {
            RouteNetlinkMessage::NewRoute(message) => Some(message),
            _ => None,
        });
        let way = message.and_then(way);
        way.ok_or_else(|| Error::Answer {
            what,
            text: "the kernel named no interface".into(),
        })
    }

    /// Resolves `address` on an interface by itself: no packet of a program's is sent. Its entry has to be gone before
    /// ([`flush_neighbours`](Self::flush_neighbours)), else nothing is to be resolved.
    ///
    /// # Errors
    /// The kernel refuses: EPERM without CAP_NET_ADMIN.
    pub fn resolve_neighbour(
        &mut self,
        ifindex: u32,
        address: Ipv4Addr,
        timeout: Duration,
    ) -> Result<Resolved> {
        let what = format!("resolve {address} on interface {ifindex} by ARP");
        let mut known = self.neighbours(ifindex)?.into_iter();
        // No notice would come of these.
        let is_known =
            |one: Neighbour| one.address == address && (one.permanent || one.mac.is_some());
        if !self.link(ifindex)?.arp || known.any(is_known) {
            return Ok(Resolved::Needless);
        }
        let notices = Self::open()?;
        join_neighbour_notices(&notices).attempt(|| format!("{what} (hear of it)"))?;
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = ifindex;
        message.header.flags = NeighbourFlags::Use;
        let destination = NeighbourAttribute::Destination(NeighbourAddress::Inet(address));
        message.attributes.push(destination);
        let begin_ns = monotonic_ns();
        let end_ns = begin_ns + timeout.as_nanos() as u64;
        let request = RouteNetlinkMessage::NewNeighbour(message);
        self.change(&what, request, NLM_F_CREATE | NLM_F_REPLACE)?;
        let mut notice = vec![0; 16 << 10];
        loop {
            let left_ns = end_ns.saturating_sub(monotonic_ns());
            if !is_readable(&notices, left_ns).attempt(|| what.clone())? {
                return Ok(Resolved::Silence);
            }
            let length =
                match rustix::net::recv(&notices, notice.as_mut_slice(), RecvFlags::DONTWAIT) {
                    Ok((_, length)) => length,
                    Err(Errno::INTR | Errno::AGAIN) => continue,
                    Err(errno) => return Err(errno).attempt(|| format!("{what} (no notice)")),
                };
            let ns = monotonic_ns() - begin_ns;
            for part in Parts(&notice[..length]) {
                let RouteNetlinkMessage::NewNeighbour(found) = decode(&what, part.bytes)? else {
                    continue;
                };
                let same = found.attributes.iter().any(|attribute| {
                    *attribute == NeighbourAttribute::Destination(NeighbourAddress::Inet(address))
                });
                match found.header.state {
                    _ if !same || found.header.ifindex != ifindex => {}
                    NeighbourState::Reachable | NeighbourState::Permanent => {
                        return Ok(Resolved::After { ns });
                    }
                    NeighbourState::Failed => return Ok(Resolved::Failed),
                    _ => {}
                }
            }
        }
    }
}

fn way(message: &RouteMessage) -> Option<NextHop> {
    let mut way = NextHop {
        ifindex: 0,
        gateway: None,
        local: message.header.kind == RouteType::Local,
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => way.ifindex = *index,
            RouteAttribute::Gateway(RouteAddress::Inet(address)) => way.gateway = Some(*address),
            _ => {}
        }
    }
    (way.ifindex > 0).then_some(way)
}

fn join_neighbour_notices(netlink: &Netlink) -> rustix::io::Result<()> {
    // Spares the search of a notice that did not fit; a burst of others' neighbours must not lose ours.
    sockopt::set_socket_recv_buffer_size(&netlink.fd, 256 << 10)?;
    let group: u32 = libc::RTNLGRP_NEIGH;
    set_option(
        std::os::fd::AsFd::as_fd(&netlink.fd),
        libc::SOL_NETLINK,
        libc::NETLINK_ADD_MEMBERSHIP,
        &group,
    )
}

fn is_readable(netlink: &Netlink, left_ns: u64) -> rustix::io::Result<bool> {
    let left = Timespec {
        tv_sec: (left_ns / 1_000_000_000) as _,
        tv_nsec: (left_ns % 1_000_000_000) as _,
    };
    let mut descriptors = [PollFd::new(&netlink.fd, PollFlags::IN)];
    match poll(&mut descriptors, Some(&left)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(true),
        Err(errno) => Err(errno),
    }
}
