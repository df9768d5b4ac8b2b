//! What a host is, by its own account.
//!
//! Model:   readings of /proc, /sys and netlink; the interface is the one by which the kernel would reach the peer now.
//!          What cannot be read is null.
//! Checked: `this_host_describes_itself`; `tests/conversation.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::collections::BTreeMap;
use std::net::IpAddr;

use sonde_measure::{HostFacts, Path, SetBy, Setting, Settings, Words};
use sonde_sys::netlink::{Link, Netlink};
use sonde_sys::{host, sysctl};

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
        noise: None,
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

/// Paths that this host does not have, and why.
fn absent() -> BTreeMap<Path, Words> {
    let why = [
        (Path::Packet, sonde_sys::frames::obstacle()),
        (Path::Xdp, sonde_sys::xdp::obstacle()),
    ];
    let absent = why
        .into_iter()
        .filter_map(|(path, why)| Some((path, why?.into())));
    absent.collect()
}

fn settings(interface: Option<&str>, peer: Option<IpAddr>) -> Settings {
    let mut all = Settings::default();
    for setting in Setting::ALL {
        if setting.set_by() == Some(SetBy::Sysctl) {
            let name = setting.set_name().replace('.', "/");
            if let Ok(text) = sysctl::read(&name) {
                all.read(*setting, &text);
            }
        }
    }
    // Nothing where there is no card.
    let node = interface.and_then(|name| {
        std::fs::read_to_string(format!("/sys/class/net/{name}/device/numa_node")).ok()
    });
    if let Some(node) = node {
        all.read(Setting::NumaNode, node.trim());
    }
    if let Some(driver) = interface.and_then(host::driver) {
        for (setting, text) in [
            (Setting::InterfaceDriver, driver.name),
            (Setting::DriverVersion, driver.version),
            (Setting::Firmware, driver.firmware),
        ] {
            if !text.is_empty() {
                all.read(setting, &text);
            }
        }
    }
    crate::timer::facts(&mut all);
    if let Some(peer) = peer {
        crate::host::facts(peer, &mut all);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::SettingValue;

    #[test]
    fn this_host_describes_itself() {
        let facts = here(Some("127.0.0.1".parse().unwrap()));
        assert_eq!(facts.interface.as_deref(), Some("lo"));
        assert!(facts.mtu_bytes.unwrap() >= 1_500 && facts.line_bps.is_none());
        assert!(facts.memory_available_bytes.unwrap() <= facts.memory_bytes.unwrap());
        assert!(facts.clock_resolution_ns.unwrap() > 0 && facts.cpus > 0);
        let of = |setting| facts.settings.get(setting);
        assert!(facts.settings.receive_buffer_bytes() > Some(0));
        assert!(matches!(
            of(Setting::OffloadGro),
            Some(SettingValue::Switch(_))
        ));
        // This kernel's values are all of their forms.
        let other = |(_, value): &(_, &_)| matches!(value, SettingValue::Other(_));
        assert_eq!(facts.settings.iter().find(other), None);
        assert_eq!(here(None).interface, None);
    }
}
