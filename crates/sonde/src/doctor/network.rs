//! This machine's own network: interfaces with an address, their offloads, and how far TCP's buffers reach.
//!
//! Model:   what is under way is at most W bytes in a round trip. Of a send buffer W is nearly the whole; of a receive
//!          buffer at least half, the rest is the kernel's bookkeeping; what a program asks for by SO_RCVBUF is doubled
//!          first, so there W is at least the whole.
//! Source:  tcp(7), socket(7), RFC 7323 §2.
//! Units:   bytes; bit/s at a round trip of 20 ms.
//! Checked: `windows_reach_as_far_as_they_do`, `small_buffers_have_a_command`, `interfaces_are_described`.
//!
//! NoiseReport on Linux 6.18 between two hosts of `sonde lab run --root --network wire:delay=10ms --hosts 2`, by iperf3
//! (cubic, 1500 bytes MTU), the other side's buffer being 32 MiB: tcp_wmem of 1 and 2 MiB gave 411 and 788 Mb/s (0.98 and
//! 0.94 of the whole), tcp_rmem of 1 and 2 MiB 276 and 551 Mb/s (0.66), `-w 1M` 553 Mb/s (0.66 of twice as much). How much
//! of a receive buffer is window depends on how full the driver's buffers are; the kernel begins with half.

use super::machine::Machine;
use super::{Check, Group, Topic, topic};
use sonde_sys::ethtool::{self, Offload};
use sonde_sys::netlink::Netlink;
use std::net::Ipv4Addr;

/// Below this at 20 ms a buffer is small.
const REACH_BPS: u64 = 1_000_000_000;
/// Round trips of 20 ms in a second.
const ROUND_TRIPS: u64 = 50;
/// What TCP's buffers may grow to, as a remedy: 6.7 Gb/s at 20 ms.
const BUFFER_BYTES: u64 = 32 << 20;
/// What programs may ask for, as a remedy: 1.7 Gb/s at 20 ms.
const ASKED_BYTES: u64 = 4 << 20;
const LOOPBACK: &str = "lo";

fn about(name: impl Into<String>, needed_for: &str) -> Topic {
    topic(Group::Network, name, needed_for)
}

/// An interface that is up and has an address.
#[derive(Debug, Default)]
struct Interface {
    name: String,
    addresses: Vec<(Ipv4Addr, u8)>,
    mtu_bytes: u32,
    /// Those that are on.
    offloads: Vec<&'static str>,
}

/// All checks of the network.
pub fn checks(machine: &Machine) -> Vec<Check> {
    let mut checks = match interfaces() {
        Ok(found) => {
            let mut checks: Vec<Check> = found.iter().map(|one| describe(machine, one)).collect();
            checks.extend(offloads(&found));
            if found.iter().all(|one| one.name == LOOPBACK) {
                checks.push(unconnected());
            }
            checks
        }
        Err(error) => vec![
            about("interfaces", "measuring on this machine's own networks")
                .missing(error.to_string(), "run where netlink sockets are allowed"),
        ],
    };
    checks.extend(super::paths::checks());
    checks.extend([
        receive(machine),
        send(machine),
        asked_for(machine),
        control(machine),
    ]);
    checks
}

fn interfaces() -> sonde_sys::Result<Vec<Interface>> {
    let mut netlink = Netlink::open()?;
    let mut found = Vec::new();
    for link in netlink.links()?.into_iter().filter(|link| link.up) {
        let addresses = netlink.addresses(link.index)?;
        if addresses.is_empty() {
            continue;
        }
        let kinds = [
            (Offload::Tso, "tso"),
            (Offload::Gso, "gso"),
            (Offload::Gro, "gro"),
        ];
        let on = |kind: &(Offload, &'static str)| {
            ethtool::is_on(&link.name, kind.0)
                .unwrap_or(false)
                .then_some(kind.1)
        };
        found.push(Interface {
            offloads: kinds.iter().filter_map(on).collect(),
            name: link.name,
            addresses,
            mtu_bytes: link.mtu_bytes,
        });
    }
    Ok(found)
}

/// One interface as a line.
fn describe(machine: &Machine, interface: &Interface) -> Check {
    let name = &interface.name;
    let addresses: Vec<String> = interface
        .addresses
        .iter()
        .map(|(address, prefix)| format!("{address}/{prefix}"))
        .collect();
    let driver = std::fs::read_link(machine.file(&format!("sys/class/net/{name}/device/driver")))
        .ok()
        .and_then(|link| Some(link.file_name()?.to_str()?.to_owned()));
    let speed = machine.numbers(&format!("sys/class/net/{name}/speed"));
    let device = match (driver, speed.first()) {
        _ if name == LOOPBACK => "loopback".into(),
        (None, None) => "no device".into(),
        // A virtual interface says -1, or nothing; of old drivers that is 2^32 - 1.
        (driver, Some(&mbit)) if mbit < u64::from(u32::MAX) => {
            let driver = driver.unwrap_or_else(|| "no device".into());
            format!("{driver}, {}", rate(mbit * 1_000_000))
        }
        (driver, _) => format!(
            "{}, speed not reported",
            driver.unwrap_or_else(|| "no device".into())
        ),
    };
    about(
        format!("interface {name}"),
        "measuring on this machine's own networks",
    )
    .ok(format!(
        "{}, {device}, MTU {}",
        addresses.join(" "),
        interface.mtu_bytes
    ))
}

fn unconnected() -> Check {
    about("interfaces", "--testbed hosts:...").limited(
        "only the loopback has an IPv4 address",
        "as root: ip address add ADDRESS/PREFIX dev INTERFACE; ip link set INTERFACE up",
    )
}

/// What hides single frames from who looks on.
fn offloads(interfaces: &[Interface]) -> Option<Check> {
    let real = interfaces
        .iter()
        .filter(|one| one.name != LOOPBACK && !one.offloads.is_empty());
    let (mut values, mut commands) = (Vec::new(), Vec::new());
    for one in real {
        values.push(format!("{}: {} on", one.name, one.offloads.join(" ")));
        let off: Vec<String> = one
            .offloads
            .iter()
            .map(|kind| format!("{kind} off"))
            .collect();
        commands.push(format!("ethtool -K {} {}", one.name, off.join(" ")));
    }
    let topic = about(
        "offloads",
        "captures that show frames as they are on the wire; rates are right, and better, with them",
    );
    let first = commands.first()?;
    let remedy = match commands.len() {
        1 => format!("as root, while capturing: {first}"),
        _ => format!("as root, while capturing: {first}; likewise the others"),
    };
    Some(topic.limited(values.join("; "), remedy))
}

/// What a window carries at 20 ms.
fn reach_bps(window_bytes: u64) -> u64 {
    window_bytes.saturating_mul(8 * ROUND_TRIPS)
}

/// A rate for people.
fn rate(bps: u64) -> String {
    let (unit, name) = match bps {
        1_000_000_000.. => (1e9, "Gb/s"),
        _ => (1e6, "Mb/s"),
    };
    let value = bps as f64 / unit;
    if value.fract() < 0.005 {
        format!("{value:.0} {name}")
    } else {
        format!("{value:.2} {name}")
    }
}

/// Bytes for people.
fn bytes(count: u64) -> String {
    match count {
        0x10_0000.. => format!("{:.1} MiB", count as f64 / f64::from(1 << 20)),
        _ => format!("{:.0} KiB", count as f64 / 1024.0),
    }
}

/// How far the receive buffers that the kernel tunes reach.
fn receive(machine: &Machine) -> Check {
    let found = machine.numbers("proc/sys/net/ipv4/tcp_rmem");
    let topic = about("tcp_rmem", "TCP over long paths: the receiver's window");
    tuned(topic, "tcp_rmem", &found, 2, ", at least half of it data")
}

/// How far the send buffers that the kernel tunes reach.
fn send(machine: &Machine) -> Check {
    let found = machine.numbers("proc/sys/net/ipv4/tcp_wmem");
    let topic = about(
        "tcp_wmem",
        "TCP over long paths: what is sent and not yet acknowledged",
    );
    tuned(topic, "tcp_wmem", &found, 1, "")
}

/// The line of one triple, of whose largest a `part`-th is data, which `said` tells.
fn tuned(topic: Topic, name: &str, found: &[u64], part: u64, said: &str) -> Check {
    let [least, first, most] = *found else {
        return topic.limited(
            format!("/proc/sys/net/ipv4/{name} cannot be read"),
            "mount /proc",
        );
    };
    let reach = reach_bps(most / part);
    topic.judge(
        reach >= REACH_BPS,
        format!("at most {}{said}: {} at 20 ms", bytes(most), rate(reach)),
        format!("as root: sysctl -w net.ipv4.{name}=\"{least} {first} {BUFFER_BYTES}\""),
    )
}

/// How far buffers reach that programs ask for themselves.
fn asked_for(machine: &Machine) -> Check {
    let read = |name: &str| {
        machine
            .numbers(&format!("proc/sys/net/core/{name}"))
            .first()
            .copied()
    };
    let topic = about(
        "rmem_max, wmem_max",
        "programs that set their own buffers, and bursts of datagrams",
    );
    let (Some(receive), Some(send)) = (read("rmem_max"), read("wmem_max")) else {
        return topic.limited(
            "the kernel does not report them (a network namespace of an older kernel)",
            "look on the machine itself",
        );
    };
    let reach = reach_bps(receive.min(send));
    let small = [("rmem_max", receive), ("wmem_max", send)]
        .into_iter()
        .filter(|(_, most)| reach_bps(*most) < REACH_BPS)
        .map(|(name, _)| format!(" net.core.{name}={ASKED_BYTES}"));
    let small: Vec<String> = small.collect();
    topic.judge(
        reach >= REACH_BPS,
        format!(
            "{} and {}: {} at 20 ms",
            bytes(receive),
            bytes(send),
            rate(reach)
        ),
        format!("as root: sysctl -w{}", small.concat()),
    )
}

/// What TCP uses where nobody asks.
fn control(machine: &Machine) -> Check {
    let topic = about(
        "default congestion control",
        "TCP on this machine's own networks, measured as it is",
    );
    match machine.text("proc/sys/net/ipv4/tcp_congestion_control") {
        Some(name) => topic.ok(name),
        None => topic.limited("not reported", "mount /proc"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use crate::doctor::machine::tests::Tree;

    #[test]
    fn windows_reach_as_far_as_they_do() {
        // 64 KiB each 20 ms: 26.2 Mb/s.
        assert_eq!(reach_bps(65_536), 26_214_400);
        assert_eq!(
            (rate(26_214_400), rate(10_000_000_000)),
            ("26.21 Mb/s".into(), "10 Gb/s".into())
        );
        assert_eq!(
            (bytes(212_992), bytes(6 << 20)),
            ("208 KiB".into(), "6.0 MiB".into())
        );
    }

    #[test]
    fn small_buffers_have_a_command() {
        let tree = |most: &str, asked: &str| {
            Tree::of(&[
                (
                    "proc/sys/net/ipv4/tcp_rmem",
                    &format!("4096\t131072\t{most}\n"),
                ),
                (
                    "proc/sys/net/ipv4/tcp_wmem",
                    &format!("4096\t16384\t{most}\n"),
                ),
                ("proc/sys/net/core/rmem_max", asked),
                ("proc/sys/net/core/wmem_max", "4194304\n"),
                ("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
            ])
        };
        let good = tree("6291456", "4194304\n");
        assert_eq!(
            receive(&good.machine).value,
            "at most 6.0 MiB, at least half of it data: 1.26 Gb/s at 20 ms"
        );
        assert_eq!(asked_for(&good.machine).status, Status::Ok);
        assert_eq!(control(&good.machine).value, "cubic");
        let poor = tree("262144", "212992\n");
        let wanted = "as root: sysctl -w net.ipv4.tcp_wmem=\"4096 16384 33554432\"";
        assert_eq!(send(&poor.machine).remedy.as_deref(), Some(wanted));
        let small = asked_for(&poor.machine);
        assert_eq!(
            (small.status, small.value.as_str()),
            (Status::Limited, "208 KiB and 4.0 MiB: 85.20 Mb/s at 20 ms")
        );
        let wanted = "as root: sysctl -w net.core.rmem_max=4194304";
        assert_eq!(small.remedy.as_deref(), Some(wanted), "what is large stays");
        assert_eq!(receive(&Tree::of(&[]).machine).status, Status::Limited);
    }

    #[test]
    fn interfaces_are_described() {
        let tree = Tree::of(&[
            ("sys/class/net/eth0/speed", "10000\n"),
            ("sys/class/net/tap0/speed", "-1\n"),
        ]);
        let device = tree.machine.file("sys/class/net/eth0/device");
        std::fs::create_dir_all(&device).unwrap();
        std::os::unix::fs::symlink("../../../drivers/ixgbe", device.join("driver")).unwrap();
        let interface = |name: &str, offloads: &[&'static str]| Interface {
            name: name.into(),
            addresses: vec![(Ipv4Addr::new(10, 0, 0, 7), 24)],
            mtu_bytes: 9000,
            offloads: offloads.to_vec(),
        };
        let real = interface("eth0", &["gso", "gro"]);
        let check = describe(&tree.machine, &real);
        assert_eq!(
            (check.name.as_str(), check.value.as_str()),
            ("interface eth0", "10.0.0.7/24, ixgbe, 10 Gb/s, MTU 9000")
        );
        let bare = describe(&tree.machine, &interface("tap0", &[]));
        assert_eq!(bare.value, "10.0.0.7/24, no device, MTU 9000");
        assert_eq!(
            offloads(&[interface("lo", &["gro"]), interface("tap0", &[])]),
            None
        );
        let found = offloads(&[real]).unwrap();
        assert_eq!(
            found.remedy.as_deref(),
            Some("as root, while capturing: ethtool -K eth0 gso off gro off")
        );
    }
}
