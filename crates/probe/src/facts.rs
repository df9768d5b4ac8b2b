//! What a host is, by its own account.
//!
//! Model:   readings of /proc, /sys and netlink; the interface is the one by which the kernel would reach the peer now.
//!          What cannot be read is null.
//! Checked: `this_host_describes_itself`; `tests/conversation.rs`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use sonde_measure::HostFacts;
use sonde_sys::netlink::{Link, Netlink};
use sonde_sys::{host, sysctl};

/// Settings that decide how TCP and UDP fare, below `net/`.
const SETTINGS: [&str; 21] = [
    "core/default_qdisc",
    "core/rmem_default",
    "core/rmem_max",
    "core/wmem_default",
    "core/wmem_max",
    "core/busy_poll",
    "core/busy_read",
    "ipv4/tcp_autocorking",
    "ipv4/tcp_available_congestion_control",
    "ipv4/tcp_congestion_control",
    "ipv4/tcp_ecn",
    "ipv4/tcp_moderate_rcvbuf",
    "ipv4/tcp_mtu_probing",
    "ipv4/tcp_no_metrics_save",
    "ipv4/tcp_rmem",
    "ipv4/tcp_sack",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_timestamps",
    "ipv4/tcp_window_scaling",
    "ipv4/tcp_wmem",
    "ipv4/udp_mem",
];

/// This host, as seen on its way to `peer`.
pub(crate) fn here(peer: Option<IpAddr>) -> HostFacts {
    let (hostname, kernel) = host::names();
    let link = peer.and_then(towards);
    let settings = settings(link.as_ref().map(|link| link.name.as_str()), peer);
    let worth = host::clock_worth();
    HostFacts {
        hostname,
        kernel,
        cpu: host::cpu_model(),
        cpus: host::cpus(),
        memory_bytes: host::memory_bytes(),
        memory_available_bytes: host::memory_available_bytes(),
        clock_source: host::clock_source(),
        clock_read_ns: Some(worth.read_ns),
        clock_resolution_ns: Some(worth.resolution_ns),
        mtu_bytes: link.as_ref().map(|link| link.mtu_bytes.into()),
        line_bps: link.as_ref().and_then(|link| host::line_bps(&link.name)),
        interface: link.map(|link| link.name),
        absent: absent(),
        settings,
    }
}

fn towards(peer: IpAddr) -> Option<Link> {
    let mut netlink = Netlink::open().ok()?;
    let way = netlink.way_to(peer).ok()?;
    netlink.link(way.ifindex).ok()
}

/// Paths that cannot be had here.
fn absent() -> BTreeMap<String, String> {
    let packet = sonde_sys::frames::obstacle().map(|why| ("packet".to_string(), why));
    let xdp = sonde_sys::xdp::obstacle().map(|why| ("xdp".to_string(), why));
    packet.into_iter().chain(xdp).collect()
}

fn settings(interface: Option<&str>, peer: Option<IpAddr>) -> BTreeMap<String, String> {
    let read = |name: &&str| {
        let value = sysctl::read(&format!("net/{name}")).ok()?;
        Some((name.replace('/', "."), value))
    };
    let mut all: BTreeMap<String, String> = SETTINGS.iter().filter_map(read).collect();
    // The memory that the network card is next to; -1 where there is one only, nothing where there is no card.
    let node = interface.and_then(|name| {
        std::fs::read_to_string(format!("/sys/class/net/{name}/device/numa_node")).ok()
    });
    if let Some(node) = node {
        all.insert("interface.numa_node".into(), node.trim().into());
    }
    all.extend(crate::timer::facts());
    all.extend(peer.map(crate::host::facts).into_iter().flatten());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_describes_itself() {
        let facts = here(Some("127.0.0.1".parse().unwrap()));
        assert_eq!(facts.interface.as_deref(), Some("lo"));
        assert!(facts.mtu_bytes.unwrap() >= 1_500 && facts.line_bps.is_none());
        assert!(facts.memory_available_bytes.unwrap() <= facts.memory_bytes.unwrap());
        assert!(facts.clock_resolution_ns.unwrap() > 0 && facts.cpus > 0);
        assert!(facts.settings.contains_key("ipv4.tcp_rmem"));
        assert_eq!(here(None).interface, None);
    }
}
