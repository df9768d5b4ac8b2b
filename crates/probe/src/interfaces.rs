//! This host's interfaces: what they are, and what they and its UDP have counted since they were made.
//!
//! Model:   a reading of netlink and /proc of the agent's own network namespace (/sys/class/net would show the namespace of
//!          who mounted it). Two readings make a difference; what an interface does not tell is 0, what the host does not
//!          tell is missing.
//! Units:   bytes and frames as the interface counts them: most count the Ethernet header, none the preamble.
//! Checked: `this_host_has_a_loopback`; `sonde/tests/lab_nets.rs`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use sonde_sys::host;
use sonde_sys::netlink::Netlink;

use crate::Result;

/// What a host says of its interfaces at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interfaces {
    /// All of its network namespace, in the kernel's order.
    pub all: Vec<Interface>,
    /// What UDP lost in it: `rcvbuf_errors`, `sndbuf_errors`, `no_ports`, `in_errors`.
    pub udp: BTreeMap<String, u64>,
}

/// An interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Whether it is up and works.
    pub running: bool,
    /// Largest IP packet.
    pub mtu_bytes: u64,
    /// Its rate, where it has one.
    pub line_bps: Option<u64>,
    /// Its addresses, with prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// What it has counted.
    pub counters: Counters,
}

/// What an interface has counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames received.
    pub rx_packets: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames received for which the host had no room or no taker.
    pub rx_dropped: u64,
    /// Frames that the device had no room for in its ring.
    pub rx_missed: u64,
    /// Broken frames received.
    pub rx_errors: u64,
    /// Frames to send for which the device had no room.
    pub tx_dropped: u64,
    /// Frames that could not be sent.
    pub tx_errors: u64,
    /// Frames dropped by the queueing discipline before the device.
    pub queue_dropped: u64,
}

impl Counters {
    /// Every counter with its name, as in settings.
    pub fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("rx_bytes", self.rx_bytes),
            ("tx_bytes", self.tx_bytes),
            ("rx_packets", self.rx_packets),
            ("tx_packets", self.tx_packets),
            ("rx_dropped", self.rx_dropped),
            ("rx_missed", self.rx_missed),
            ("rx_errors", self.rx_errors),
            ("tx_dropped", self.tx_dropped),
            ("tx_errors", self.tx_errors),
            ("queue_dropped", self.queue_dropped),
        ]
    }

    /// What was counted since `before`; a counter that was set back in between has counted what it shows.
    pub fn since(&self, before: &Self) -> Self {
        let less = |now: u64, then: u64| now.checked_sub(then).unwrap_or(now);
        Self {
            rx_bytes: less(self.rx_bytes, before.rx_bytes),
            tx_bytes: less(self.tx_bytes, before.tx_bytes),
            rx_packets: less(self.rx_packets, before.rx_packets),
            tx_packets: less(self.tx_packets, before.tx_packets),
            rx_dropped: less(self.rx_dropped, before.rx_dropped),
            rx_missed: less(self.rx_missed, before.rx_missed),
            rx_errors: less(self.rx_errors, before.rx_errors),
            tx_dropped: less(self.tx_dropped, before.tx_dropped),
            tx_errors: less(self.tx_errors, before.tx_errors),
            queue_dropped: less(self.queue_dropped, before.queue_dropped),
        }
    }
}

/// This host's, now.
///
/// # Errors
/// Netlink does not answer.
pub(crate) fn here() -> Result<Interfaces> {
    let mut netlink = Netlink::open()?;
    let addresses = netlink.every_address()?;
    let mut all = Vec::new();
    for link in netlink.links()? {
        let own = addresses
            .iter()
            .filter(|(index, ..)| *index == link.index)
            .map(|(_, address, prefix)| (*address, *prefix));
        let addresses: Vec<(IpAddr, u8)> = own.collect();
        // Those without an address are ports of something else, and may be hundreds.
        let queue = match addresses.is_empty() {
            false => netlink.qdisc(link.index).ok(),
            true => None,
        };
        let stats = link.stats;
        all.push(Interface {
            running: link.up && link.running,
            mtu_bytes: link.mtu_bytes.into(),
            line_bps: host::line_bps(&link.name),
            addresses,
            counters: Counters {
                rx_bytes: stats.rx_bytes,
                tx_bytes: stats.tx_bytes,
                rx_packets: stats.rx_packets,
                tx_packets: stats.tx_packets,
                rx_dropped: stats.rx_dropped,
                rx_missed: stats.rx_missed,
                rx_errors: stats.rx_errors,
                tx_dropped: stats.tx_dropped,
                tx_errors: stats.tx_errors,
                queue_dropped: queue.map_or(0, |queue| queue.drops),
            },
            name: link.name,
        });
    }
    Ok(Interfaces { all, udp: udp() })
}

fn udp() -> BTreeMap<String, u64> {
    let Some(found) = host::udp_troubles() else {
        return BTreeMap::new();
    };
    [
        ("rcvbuf_errors", found.rcvbuf_errors),
        ("sndbuf_errors", found.sndbuf_errors),
        ("no_ports", found.no_ports),
        ("in_errors", found.in_errors),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_loopback() {
        let before = here().unwrap();
        let lo = |state: &Interfaces| {
            let found = state.all.iter().find(|one| one.name == "lo");
            found.expect("every namespace has one").clone()
        };
        let sent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sent.send_to(&[0; 1_000], sent.local_addr().unwrap())
            .unwrap();
        let after = lo(&here().unwrap());
        assert!(after.addresses.contains(&("127.0.0.1".parse().unwrap(), 8)));
        let counted = after.counters.since(&lo(&before).counters);
        assert!(
            counted.tx_bytes >= 1_028 && counted.rx_bytes >= 1_028,
            "{counted:?}"
        );
        assert!(before.udp.contains_key("rcvbuf_errors"));
    }

    #[test]
    fn a_counter_that_was_set_back_counts_from_zero() {
        let counters = |tx_bytes| Counters {
            tx_bytes,
            ..Counters::default()
        };
        assert_eq!(counters(9).since(&counters(4)).tx_bytes, 5);
        assert_eq!(counters(3).since(&counters(4)).tx_bytes, 3);
    }
}
