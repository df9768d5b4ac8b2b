//! A host's interface: created, addressed, set to its profile, and read back.
//!
//! Model:   the switch enters the host's network namespace, makes and sets the interface there, and keeps the descriptors
//!          that work from outside: the port, the gate, and a netlink connection for counters.
//! Source:  tcp(7), ip-sysctl of the kernel's documentation; RFC 5681, 7323, 2018 for what the settings mean.
//! Checked: the end-to-end tests read the settings inside hosts.
//!
//! Found by trying on Linux 6.18: a write of `cubic` to the sysctl is refused in a namespace where the first one does not
//! allow it, so congestion control is set on the route; /proc/sys/net follows the namespace of the *caller*, so no mount
//! is needed; with IPv6 on, two hosts send eleven frames of their own in the first ten seconds.

use crate::config::{Attachment, Config, ProfileKind, User};
use crate::fail_over;
use crate::port::{Port, Tx};
use crate::wire::{self, Addresses};
use sonde_link::{Encapsulation, Framing, Line, NetworkSpec, Subnets};
use sonde_sys::ethtool::{self, LinkSpeed};
use sonde_sys::gate::Gate;
use sonde_sys::namespace::{self, Kind};
use sonde_sys::netlink::{LinkChange, Netlink, Route, RouteMetrics, VethEnd};
use sonde_sys::packet::{PacketSender, PacketSocket};
use sonde_sys::tap::Tap;
use sonde_sys::tbf::{LIMIT_BYTES, LinkLayer, Tbf};
use sonde_sys::{Result, sysctl};
use sonde_units::{Bytes, Ratio, Span};
use std::os::fd::OwnedFd;

/// Frames that a TAP holds until the switch reads them: at least so many, at most so many, between them so many bytes. A host
/// sends a million frames a second where no line holds it back, and a switch that loses its CPU was seen to be away for 8 ms:
/// a ring of 5,000 lost 3 % then.
const RING: std::ops::RangeInclusive<u64> = 5_000..=32_768;
const RING_BYTES: u64 = 64 << 20;
/// What a frame costs the kernel beside its bytes.
const FRAME_COST: u64 = 1_024;
/// An interface that does not work after this is broken.
const RUNNING_NS: u64 = 5_000_000_000;
/// Asked for; an ordinary user gets net.core.rmem_max.
const RECEIVE_BUFFER: usize = 32 << 20;
/// Neighbours of all hosts together from which on each has an entry for good: the kernel's table is one for all namespaces, it takes 1,024
/// entries that are not (`net.ipv4.neigh.default.gc_thresh3`), and only the machine's root changes that.
const NEIGHBOURS: usize = 960;
/// Below this rate the kernel builds no super-packets: it cuts the loaded round trip at 100 Mb/s from 12 to 2.7 ms.
const SEGMENT_ALONE_BELOW_BPS: u64 = 200_000_000;

/// What an interface is made by.
pub(crate) struct Plan<'a> {
    pub config: &'a Config,
    pub addresses: &'a Addresses,
    pub subnets: &'a Subnets,
    /// Which of the host's interfaces it is, counted from 0, and the network that it joins.
    pub network: (u16, &'a NetworkSpec),
    pub attachment: Attachment,
    /// The switch's own network namespace.
    pub home: &'a OwnedFd,
}

impl Plan<'_> {
    /// The name of the interface in each host.
    fn name(&self) -> String {
        format!("eth{}", self.network.0)
    }

    /// Whether the host of a port is a router.
    fn sends_on(&self, number: sonde_link::Port) -> bool {
        let end = self.subnets.ends.get(usize::from(number.0));
        end.is_some_and(|end| self.subnets.sends_on(end.host))
    }

    /// Whether neighbours are set, so that nobody asks for them.
    fn knows_neighbours(&self) -> bool {
        self.addresses.neighbours() >= NEIGHBOURS
    }
}

/// Does `work` in the network namespace `there`.
pub(crate) fn inside<T>(
    there: &OwnedFd,
    home: &OwnedFd,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    namespace::setns(there, Kind::Net)?;
    let outcome = work();
    namespace::setns(home, Kind::Net)?;
    outcome
}

/// Makes the interface of port `number` in its host's namespace `netns`: a TAP of `tun`, which was opened there, else a veth.
pub(crate) fn build(
    plan: &Plan<'_>,
    number: sonde_link::Port,
    netns: &OwnedFd,
    tun: Option<OwnedFd>,
) -> Result<Port> {
    inside(netns, plan.home, quiet)?;
    let (name, address) = (plan.name(), plan.addresses.address(number));
    let tx = match tun {
        None => Tx::Packet(veth(plan, number, netns)?),
        Some(tun) => Tx::Tap(Tap::attach(tun, &name)?),
    };
    inside(netns, plan.home, || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index(&name)?;
        if plan.attachment == Attachment::Veth {
            ethtool::tx_checksum_off(&name)?;
        } else {
            ethtool::set_link_speed(&name, speed(plan.network.1))?;
        }
        netlink.set_link(index, &link_change(plan, number))?;
        for (name, value) in sysctls(plan.config) {
            sysctl::write(name, &value)?;
        }
        neighbours(&name)?;
        if plan.sends_on(number) {
            send_on(&name)?;
        }
        // What a host of several interfaces is sent may come by another one than its answer takes.
        for of in ["all", &name] {
            sysctl::write(&format!("net/ipv4/conf/{of}/rp_filter"), "0")?;
        }
        netlink.set_link(
            index,
            &LinkChange {
                up: Some(true),
                ..LinkChange::default()
            },
        )?;
        netlink.wait_running(index, RUNNING_NS)?;
        netlink.add_address(index, address, plan.addresses.prefix())?;
        netlink.set_route(&route(plan, number, index))?;
        for (subnet, gateway) in plan.addresses.routes(number) {
            netlink.set_route(&Route {
                destination: subnet,
                gateway: Some(gateway),
                ..route(plan, number, index)
            })?;
        }
        if plan.config.fail_over {
            fall_back(plan, number, index, &mut netlink)?;
        }
        // Routers are asked by nobody: they know all link addresses, and all know theirs.
        let routers = plan.addresses.routers_beside(number);
        let hosts = plan.addresses.hosts_beside(number);
        for other in routers.chain(hosts.filter(|_| plan.knows_neighbours())) {
            netlink.set_neighbour(
                index,
                plan.addresses.address(other),
                plan.addresses.mac(other),
            )?;
        }
        let gate = Gate::new(
            Netlink::open()?,
            PacketSender::open(index)?,
            index,
            gate(plan.network.1),
        )?;
        Ok(Port::new(number, tx, gate, netlink, index))
    })
}

/// The name of the switch's end of a veth.
pub(crate) fn near_end(number: sonde_link::Port) -> String {
    format!("p{}", number.0 + 1)
}

/// A veth pair: one end in the host, the other beside the switch, with a packet socket on it.
fn veth(plan: &Plan<'_>, number: sonde_link::Port, netns: &OwnedFd) -> Result<PacketSocket> {
    use std::os::fd::AsFd;
    let name = near_end(number);
    let mtu_bytes = plan.network.1.mtu as u32;
    let inner = plan.name();
    let mut netlink = Netlink::open()?;
    let near = VethEnd {
        name: &name,
        mtu_bytes,
        mac: None,
        netns: None,
    };
    let far = VethEnd {
        name: &inner,
        mtu_bytes,
        mac: Some(plan.addresses.mac(number)),
        netns: Some(netns.as_fd()),
    };
    netlink.add_veth(&near, &far)?;
    let index = netlink.index(&name)?;
    netlink.set_link(
        index,
        &LinkChange {
            up: Some(true),
            ..LinkChange::default()
        },
    )?;
    PacketSocket::open(index, RECEIVE_BUFFER)
}

/// No frames of the kernel's own, and loopback up.
pub(crate) fn quiet() -> Result<()> {
    for name in [
        "net/ipv6/conf/all/disable_ipv6",
        "net/ipv6/conf/default/disable_ipv6",
    ] {
        // Absent where the kernel has no IPv6: there is nothing to turn off.
        if sysctl::read(name).is_ok() {
            sysctl::write(name, "1")?;
        }
    }
    let mut netlink = Netlink::open()?;
    let loopback = netlink.index("lo")?;
    netlink.set_link(
        loopback,
        &LinkChange {
            up: Some(true),
            ..LinkChange::default()
        },
    )
}

fn ring(mtu: u64) -> u32 {
    (RING_BYTES / (mtu + FRAME_COST)).clamp(*RING.start(), *RING.end()) as u32
}

fn link_change(plan: &Plan<'_>, number: sonde_link::Port) -> LinkChange<'static> {
    let (config, (_, network)) = (plan.config, plan.network);
    let slow = network
        .line
        .usable()
        .is_some_and(|rate| rate.bps() < SEGMENT_ALONE_BELOW_BPS);
    let alone = slow || config.profile.kind == ProfileKind::Era;
    LinkChange {
        mtu_bytes: Some(network.mtu as u32),
        mac: Some(plan.addresses.mac(number)),
        txqueuelen: Some(ring(network.mtu)),
        gso_max_segs: alone.then_some(1),
        ..LinkChange::default()
    }
}

/// What `ethtool` says of the line: its nominal rate in whole Mb/s, at least one, and half duplex where stations share a medium.
fn speed(network: &NetworkSpec) -> LinkSpeed {
    let mbit = |bps: u64| u32::try_from((bps + 500_000) / 1_000_000).unwrap_or(u32::MAX);
    LinkSpeed {
        mbit: network.line.rate.map(|rate| mbit(rate.bps()).max(1)),
        is_full_duplex: network.bus.is_none() && network.token.is_none(),
    }
}

/// The settings of a profile that hold for a whole host.
fn sysctls(config: &Config) -> Vec<(&'static str, String)> {
    let profile = config.profile;
    let modern = profile.kind == ProfileKind::Modern;
    let flag = |on: bool| if on { "1" } else { "0" }.to_owned();
    let (receive, send) = if modern {
        (
            "4096 131072 6291456".to_owned(),
            "4096 65536 4194304".to_owned(),
        )
    } else {
        // The kernel offers half of the buffer as window.
        (
            format!("4096 {0} {0}", 2 * profile.window_bytes),
            format!("4096 {0} {0}", 2 * profile.window_bytes),
        )
    };
    vec![
        ("net/ipv4/tcp_rmem", receive),
        ("net/ipv4/tcp_wmem", send),
        ("net/ipv4/tcp_sack", flag(modern)),
        ("net/ipv4/tcp_timestamps", flag(modern)),
        ("net/ipv4/tcp_window_scaling", flag(modern)),
        ("net/ipv4/tcp_moderate_rcvbuf", flag(modern)),
        ("net/ipv4/tcp_no_metrics_save", flag(true)),
        ("net/ipv4/tcp_ecn", flag(false)),
        ("net/ipv4/ping_group_range", ping_groups(config.user)),
        ("net/ipv4/ip_unprivileged_port_start", "0".to_owned()),
    ]
}

/// From the lab's root to the programs' group. Under sudo that group alone: the root's is above it outside, by which the kernel
/// compares, and it takes such a range for none.
fn ping_groups(user: User) -> String {
    let last = user.behind.1;
    let first = if user.is_another() { last } else { 0 };
    format!("{first} {last}")
}

/// A cold blast would otherwise lose frames in the neighbour queue without a count, and a busy link the entry itself.
fn neighbours(name: &str) -> Result<()> {
    for (key, value) in [
        ("unres_qlen_bytes", "16777216"),
        ("ucast_solicit", "10"),
        ("mcast_solicit", "10"),
        ("base_reachable_time_ms", "3600000"),
    ] {
        sysctl::write(&format!("net/ipv4/neigh/{name}/{key}"), value)?;
    }
    Ok(())
}

/// The host sends on what is for others. It answers each datagram that it cannot send on, and redirects nobody: of two virtual LANs on one line
/// each host keeps to its own.
fn send_on(name: &str) -> Result<()> {
    sysctl::write("net/ipv4/ip_forward", "1")?;
    sysctl::write("net/ipv4/icmp_ratelimit", "0")?;
    for of in ["all", name] {
        sysctl::write(&format!("net/ipv4/conf/{of}/send_redirects"), "0")?;
    }
    Ok(())
}

fn route(plan: &Plan<'_>, number: sonde_link::Port, index: u32) -> Route {
    let profile = plan.config.profile;
    let metrics = match profile.kind {
        ProfileKind::Modern => RouteMetrics {
            congctl: Some("cubic".into()),
            ..RouteMetrics::default()
        },
        ProfileKind::Era => RouteMetrics {
            congctl: Some("reno".into()),
            window_bytes: Some(profile.window_bytes),
            rto_min_ms: Some(200),
            ..RouteMetrics::default()
        },
    };
    Route {
        source: Some(plan.addresses.address(number)),
        metrics,
        ..Route::on_link(
            plan.addresses.subnet(number),
            plan.addresses.prefix(),
            index,
        )
    }
}

/// The routes by this interface that count when the line of the usual one is down.
fn fall_back(
    plan: &Plan<'_>,
    number: sonde_link::Port,
    index: u32,
    netlink: &mut Netlink,
) -> Result<()> {
    for of in ["all", &plan.name()] {
        let key = format!("net/ipv4/conf/{of}/ignore_routes_with_linkdown");
        sysctl::write(&key, "1")?;
    }
    for other in fail_over::routes(plan.subnets, plan.addresses, number) {
        netlink.set_route(&Route {
            destination: other.destination,
            gateway: other.gateway,
            priority: other.priority,
            ..route(plan, number, index)
        })?;
        for (address, mac) in other.neighbours {
            netlink.set_neighbour(index, address, mac)?;
        }
    }
    Ok(())
}

/// Slightly above the line, for the model does the exact serialisation; a burst for late timers.
fn gate(network: &NetworkSpec) -> Tbf {
    /// Above the line: so that a full-duplex line hardly ever has to be shut.
    const ABOVE: Ratio = Ratio::new(1_002, 1_000);
    /// What a gate may let pass at once where there is no rate.
    const BURST_WITHOUT_RATE: u32 = 1 << 20;
    const RATE_WITHOUT_RATE: u64 = 12_500_000_000;
    let line: &Line = &network.line;
    let frame = network.mtu as u32 + wire::HEADER as u32;
    // A tbf's overhead is unsigned in the kernel (psched_ratecfg): -14 was taken for 65,522 bytes a frame, as `tc -d qdisc`
    // shows (Linux 6.18). Where the line counts less than the Ethernet header, the rate is raised by what that makes of the
    // smallest packet, so that the gate is slower than the line for none: 42 bytes for 28, or two cells for one.
    let (overhead_bytes, mpu_bytes, link_layer, raised) = match line.framing() {
        Framing::Ethernet => (24, 84, LinkLayer::Ethernet, Ratio::ONE),
        Framing::None => (0, 0, LinkLayer::Ethernet, Ratio::new(3, 2)),
        Framing::Atm(Encapsulation::LlcSnap) => (2, 0, LinkLayer::Atm, Ratio::ONE),
        Framing::Atm(Encapsulation::Null) => (0, 0, LinkLayer::Atm, Ratio::new(2, 1)),
        Framing::Atm(Encapsulation::Lane) => (10, 0, LinkLayer::Atm, Ratio::ONE),
        Framing::Fddi => (22, 0, LinkLayer::Ethernet, Ratio::ONE),
        // What a datagram of one frame takes; one of several takes more than the gate counts.
        Framing::FibreChannel => (70, 0, LinkLayer::Ethernet, Ratio::ONE),
        // What a datagram of one burst takes; the headers are 40 bytes, of which the kernel counts 14 already.
        Framing::Hippi(bursts) => (
            26 + bursts.gap.0 as u16,
            bursts.wire(Bytes(0)).0 as u16,
            LinkLayer::Ethernet,
            Ratio::ONE,
        ),
    };
    let (rate_bytes_per_s, burst_bytes) =
        line.usable()
            .map_or((RATE_WITHOUT_RATE, BURST_WITHOUT_RATE), |rate| {
                let burst = rate
                    .bytes_in(Span::millis(2))
                    .max(Bytes(u64::from(4 * frame)));
                (
                    rate.scaled(ABOVE).scaled(raised).bps() / 8,
                    u32::try_from(burst.0).unwrap_or(u32::MAX),
                )
            });
    Tbf {
        rate_bytes_per_s,
        burst_bytes,
        limit_bytes: LIMIT_BYTES,
        mpu_bytes,
        overhead_bytes,
        link_layer,
    }
}

/// The settings of a host, as they read now.
pub(crate) fn read_back(
    plan: &Plan<'_>,
    number: sonde_link::Port,
    netns: &OwnedFd,
    index: u32,
) -> Result<Vec<(String, String)>> {
    inside(netns, plan.home, || {
        let mut settings = Vec::new();
        for (name, _) in sysctls(plan.config) {
            settings.push((name.replace('/', "."), sysctl::read(name)?));
        }
        let mut netlink = Netlink::open()?;
        let link = netlink.link(index)?;
        settings.push(("mtu".into(), link.mtu_bytes.to_string()));
        settings.push(("txqueuelen".into(), link.txqueuelen.to_string()));
        settings.push(("gso_max_segs".into(), link.gso_max_segs.to_string()));
        let speed = ethtool::link_speed(&plan.name())?.mbit;
        settings.push((
            "speed_mbit".into(),
            speed.map_or_else(|| "unknown".into(), |mbit| mbit.to_string()),
        ));
        let routes = netlink.routes()?;
        let metrics = routes
            .into_iter()
            .find(|route| route.destination == plan.addresses.subnet(number))
            .map(|route| route.metrics);
        let metrics = metrics.unwrap_or_default();
        settings.push((
            "route.congctl".into(),
            metrics.congctl.unwrap_or_else(|| "unset".into()),
        ));
        settings.push((
            "route.window".into(),
            metrics
                .window_bytes
                .map_or_else(|| "unset".into(), |bytes| bytes.to_string()),
        ));
        Ok(settings)
    })
}
