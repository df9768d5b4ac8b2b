//! Interfaces: looking up, changing, veth pairs, counters.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64,
};

use super::Netlink;
use crate::clock::{monotonic_ns, sleep_until_ns};
use crate::{Error, Result};

/// What to change about an interface; `None` leaves a thing alone.
#[derive(Debug, Clone, Default)]
pub struct LinkChange<'a> {
    /// Up or down.
    pub up: Option<bool>,
    /// Whether it has a carrier; only devices made by software can be told, such as a TAP, and no veth.
    pub carrier: Option<bool>,
    /// Largest IP packet.
    pub mtu_bytes: Option<u32>,
    /// Hardware address; most devices must be down.
    pub mac: Option<[u8; 6]>,
    /// Frames in the device's own queue; for a TAP its ring.
    pub txqueuelen: Option<u32>,
    /// Segments in a super-packet (1: none are built).
    pub gso_max_segs: Option<u32>,
    /// Bytes of a merged received packet.
    pub gro_max_bytes: Option<u32>,
    /// A new name; the interface must be down on older kernels.
    pub name: Option<&'a str>,
    /// The network namespace to move to.
    pub netns: Option<BorrowedFd<'a>>,
}

/// An interface as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number in its namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether it is up, as it was told to be.
    pub up: bool,
    /// Whether it works: up, with a carrier, its queue in place. See [`Netlink::wait_running`].
    pub running: bool,
    /// Whether its neighbours are found by ARP.
    pub arp: bool,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Hardware address; zeros where it has none of six bytes.
    pub mac: [u8; 6],
    /// Frames in its own queue.
    pub txqueuelen: u32,
    /// Segments in a super-packet.
    pub gso_max_segs: u32,
    /// Bytes of a merged received packet.
    pub gro_max_bytes: u32,
    /// Counters.
    pub stats: LinkStats,
}

/// Counters of an interface, as it sees them: a TAP's `tx` is what its reader gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Frames received.
    pub rx_packets: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Broken frames received.
    pub rx_errors: u64,
    /// Frames that could not be sent.
    pub tx_errors: u64,
    /// Frames received for which there was no room or no taker.
    pub rx_dropped: u64,
    /// Frames to send for which there was no room.
    pub tx_dropped: u64,
    /// Frames that the device had no room for in its ring.
    pub rx_missed: u64,
}

impl From<&Stats64> for LinkStats {
    fn from(stats: &Stats64) -> Self {
        Self {
            rx_packets: stats.rx_packets,
            tx_packets: stats.tx_packets,
            rx_bytes: stats.rx_bytes,
            tx_bytes: stats.tx_bytes,
            rx_errors: stats.rx_errors,
            tx_errors: stats.tx_errors,
            rx_dropped: stats.rx_dropped,
            tx_dropped: stats.tx_dropped,
            rx_missed: stats.rx_missed_errors,
        }
    }
}

/// One end of a veth pair to be made.
#[derive(Debug, Clone)]
pub struct VethEnd<'a> {
    /// Its name.
    pub name: &'a str,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Hardware address; `None` lets the kernel choose.
    pub mac: Option<[u8; 6]>,
    /// The network namespace it is made in; `None` is that of the [`Netlink`].
    pub netns: Option<BorrowedFd<'a>>,
}

impl VethEnd<'_> {
    fn message(&self) -> LinkMessage {
        let mut message = LinkMessage::default();
        message
            .attributes
            .push(LinkAttribute::IfName(self.name.into()));
        message.attributes.push(LinkAttribute::Mtu(self.mtu_bytes));
        message
            .attributes
            .extend(self.mac.map(|mac| LinkAttribute::Address(mac.to_vec())));
        message
            .attributes
            .extend(self.netns.map(|fd| LinkAttribute::NetNsFd(fd.as_raw_fd())));
        message
    }
}

fn parse(message: &LinkMessage) -> Link {
    let mut link = Link {
        index: message.header.index,
        up: message.header.flags.contains(LinkFlags::Up),
        running: message.header.flags.contains(LinkFlags::Running),
        arp: !message.header.flags.contains(LinkFlags::Noarp),
        ..Link::default()
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name.clone(),
            LinkAttribute::Mtu(mtu) => link.mtu_bytes = *mtu,
            LinkAttribute::Address(mac) => link.mac = mac.as_slice().try_into().unwrap_or_default(),
            LinkAttribute::TxQueueLen(length) => link.txqueuelen = *length,
            LinkAttribute::GsoMaxSegs(segments) => link.gso_max_segs = *segments,
            LinkAttribute::GroMaxSize(bytes) => link.gro_max_bytes = *bytes,
            LinkAttribute::Stats64(stats) => link.stats = stats.into(),
            _ => {}
        }
    }
    link
}

impl Netlink {
    /// The interface called `name`.
    pub fn link_named(&mut self, name: &str) -> Result<Link> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        self.one_link(&format!("find interface {name}"), message)
    }

    /// The number of the interface called `name`.
    pub fn index(&mut self, name: &str) -> Result<u32> {
        Ok(self.link_named(name)?.index)
    }

    /// Interface number `index`.
    pub fn link(&mut self, index: u32) -> Result<Link> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.one_link(&format!("read interface {index}"), message)
    }

    fn one_link(&mut self, what: &str, message: LinkMessage) -> Result<Link> {
        let found = self.query(what, RouteNetlinkMessage::GetLink(message))?;
        let link = found.iter().find_map(|message| match message {
            RouteNetlinkMessage::NewLink(message) => Some(parse(message)),
            _ => None,
        });
        link.ok_or_else(|| Error::Answer {
            what: what.into(),
            text: "the kernel sent no interface".into(),
        })
    }

    /// All interfaces of the namespace.
    pub fn links(&mut self) -> Result<Vec<Link>> {
        let found = self.dump(
            "list the interfaces",
            RouteNetlinkMessage::GetLink(LinkMessage::default()),
        )?;
        let parsed = found.iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewLink(message) => Some(parse(message)),
            _ => None,
        });
        Ok(parsed.collect())
    }

    /// Waits until an interface works, at most `timeout_ns`.
    ///
    /// A veth that was set up before its other end gets its queue from a kernel worker, up to a second
    /// after the other end is up. Until then what is sent is lost, and no error and no counter says so
    /// (seen in one of ten starts: `ip link set a up; ip link set b up` and a frame through `a` at once).
    pub fn wait_running(&mut self, index: u32, timeout_ns: u64) -> Result<()> {
        let deadline_ns = monotonic_ns() + timeout_ns;
        while !self.link(index)?.running {
            if monotonic_ns() > deadline_ns {
                return Err(Error::Answer {
                    what: format!("wait for interface {index} to run"),
                    text: format!(
                        "not after {} ms: is its other end up?",
                        timeout_ns / 1_000_000
                    ),
                });
            }
            sleep_until_ns(monotonic_ns() + 500_000);
        }
        Ok(())
    }

    /// The counters of an interface.
    pub fn stats(&mut self, index: u32) -> Result<LinkStats> {
        Ok(self.link(index)?.stats)
    }

    /// Changes an interface in one request.
    pub fn set_link(&mut self, index: u32, change: &LinkChange<'_>) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        if let Some(up) = change.up {
            message.header.change_mask = LinkFlags::Up;
            message.header.flags = if up {
                LinkFlags::Up
            } else {
                LinkFlags::empty()
            };
        }
        let attributes = &mut message.attributes;
        attributes.extend(change.carrier.map(|on| LinkAttribute::Carrier(on.into())));
        attributes.extend(change.mtu_bytes.map(LinkAttribute::Mtu));
        attributes.extend(change.mac.map(|mac| LinkAttribute::Address(mac.to_vec())));
        attributes.extend(change.txqueuelen.map(LinkAttribute::TxQueueLen));
        attributes.extend(change.gso_max_segs.map(LinkAttribute::GsoMaxSegs));
        attributes.extend(change.gro_max_bytes.map(LinkAttribute::GroMaxSize));
        attributes.extend(change.name.map(|name| LinkAttribute::IfName(name.into())));
        attributes.extend(
            change
                .netns
                .map(|fd| LinkAttribute::NetNsFd(fd.as_raw_fd())),
        );
        let what = format!("change interface {index} ({change:?})");
        self.change(&what, RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Makes a veth pair. Unlike a TAP its carrier is up only while both ends are.
    pub fn add_veth(&mut self, near: &VethEnd<'_>, far: &VethEnd<'_>) -> Result<()> {
        let mut message = near.message();
        let data = InfoData::Veth(InfoVeth::Peer(far.message()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(data),
        ]));
        let what = format!("make the veth pair {} and {}", near.name, far.name);
        self.change(
            &what,
            RouteNetlinkMessage::NewLink(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Removes an interface (of a veth pair: both ends).
    pub fn delete_link(&mut self, index: u32) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.change(
            &format!("remove interface {index}"),
            RouteNetlinkMessage::DelLink(message),
            0,
        )
    }
}
