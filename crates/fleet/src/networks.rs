//! Several networks of the same hosts: which interface each host has on a network, and whether the bytes went there.
//!
//! Model:   a network is a name and a selector of one interface on each host: its name, a name for each host, or a subnet in
//!          which one of its addresses lies. The hosts' agents say what there is. A launch is between these addresses: one
//!          side serves at its own, the other sends from its own. That does not yet decide the interface: a host answers
//!          ARP for any of its addresses on any of its interfaces, and routes by destination. So both hosts' counters are read
//!          before and after each launch, and what the named interface carried less than 95 % of what must have passed is no
//!          measurement of that network. What else the other interfaces carried is evidence, and no reason to refuse:
//!          the control plane and other programs use them. Sockets are not bound to the device, which would hide just those
//!          routes that any other program of the host would take.
//! Source:  netperf's manual, §"Multi-homed hosts", for the trap; Documentation/networking/ip-sysctl.rst, arp_ignore, rp_filter;
//!          RFC 1122 §3.3.4.2 for weak hosts.
//! Units:   what must have passed is user bytes, and 28 bytes of headers for each message that needed a frame of its own:
//!          always less than what an interface counts.
//! Checked: `any_text_is_a_network_or_refused`, `interfaces_are_selected`, `bytes_must_pass_the_named_interface`;
//!          `sonde/tests/lab_nets.rs`.
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

use sonde_measure::{InterfaceCounters, Side, UdpCounter};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use sonde_probe::{Interface, Interfaces, Moved};

/// The part of what must have passed that an interface must have carried: counters are read while others count too.
const PASSED_PER_CENT: u64 = 95;
/// Headers of IPv4 and UDP: the least of any message.
const HEADERS: u64 = 28;

/// How a network's interface is found on each host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// By one name on all hosts: `ib0`.
    Interface(String),
    /// By a name for each host: `h1/ib0,h2/ib1`.
    ByHost(BTreeMap<String, String>),
    /// By a subnet in which an address of its lies: `10.9.1.0/24`.
    Subnet(IpAddr, u8),
}

/// A text that names no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a network of real hosts: {problem}; write NAME=INTERFACE as in ib=ib0, ib=h1/ib0,h2/ib1, or ib=10.9.1.0/24"
)]
pub struct NetworkError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// A network of the hosts, as it is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its name in all rows.
    pub name: String,
    /// Its interfaces.
    pub selector: Selector,
}

/// The kernel's longest name of an interface.
const NAME_BYTES_MAX: usize = 15;

fn interface_name(text: &str) -> Result<String, &'static str> {
    let allowed = |byte: u8| byte.is_ascii_graphic() && !b"/,=".contains(&byte);
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err("an interface's name has 1 to 15 characters");
    }
    if !text.bytes().all(allowed) {
        return Err("an interface's name has no blank, `/`, `,` or `=`");
    }
    Ok(text.into())
}

impl FromStr for Selector {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |problem| NetworkError {
            text: text.into(),
            problem,
        };
        if let Some((address, prefix)) = text.split_once('/') {
            if let Ok(address) = address.parse::<IpAddr>() {
                let most = if address.is_ipv4() { 32 } else { 128 };
                let prefix = prefix.parse().ok().filter(|prefix| *prefix <= most);
                let prefix = prefix.ok_or_else(|| refuse("a subnet ends in its length in bits"))?;
                return Ok(Self::Subnet(address, prefix));
            }
        }
        if !text.contains(['/', ',']) {
            return interface_name(text).map(Self::Interface).map_err(refuse);
        }
        let mut by_host = BTreeMap::new();
        for word in text.split(',') {
            let (host, name) = word
                .rsplit_once('/')
                .ok_or_else(|| refuse("several interfaces are each written HOST/INTERFACE"))?;
            let is_host = !host.is_empty()
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && byte != b'=');
            if !is_host || host.contains('/') {
                return Err(refuse("a host's name stands before each `/`"));
            }
            let name = interface_name(name).map_err(refuse)?;
            if by_host.insert(host.to_owned(), name).is_some() {
                return Err(refuse("a host has one interface on a network"));
            }
        }
        Ok(Self::ByHost(by_host))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::Subnet(address, prefix) => write!(f, "{address}/{prefix}"),
            Self::ByHost(names) => {
                let words: Vec<String> = names
                    .iter()
                    .map(|(host, name)| format!("{host}/{name}"))
                    .collect();
                f.write_str(&words.join(","))
            }
        }
    }
}

impl FromStr for Choice {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |problem| NetworkError {
            text: text.into(),
            problem,
        };
        let (name, selector) = text
            .split_once('=')
            .ok_or_else(|| refuse("a name and `=` stand before the interface"))?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(refuse("its name is of letters, digits, `-`, `_` and `.`"));
        }
        Ok(Self {
            name: name.into(),
            selector: selector.parse()?,
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.selector)
    }
}

/// A host's end of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The interface.
    pub interface: String,
    /// Its address there.
    pub address: IpAddr,
    /// Largest IP packet.
    pub mtu_bytes: u64,
    /// Its rate, where it has one.
    pub line_bps: Option<u64>,
}

/// A network with its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Its name.
    pub name: String,
    /// One end for each host, in the order of the hosts; none of a host that is lost.
    pub ends: Vec<Option<End>>,
}

impl Joined {
    /// The largest packet that all ends take.
    pub fn mtu_bytes(&self) -> Option<u64> {
        self.ends.iter().flatten().map(|end| end.mtu_bytes).min()
    }

    /// The rate of the slowest end, if that of all is known.
    pub fn line_bps(&self) -> Option<u64> {
        let rates = self.ends.iter().flatten().map(|end| end.line_bps);
        rates.collect::<Option<Vec<u64>>>()?.into_iter().min()
    }
}

fn in_subnet(address: IpAddr, subnet: IpAddr, prefix: u8) -> bool {
    let masked = |bits: u128, width: u32| {
        let shift = width.saturating_sub(prefix.into());
        bits.checked_shr(shift).unwrap_or(0)
    };
    match (address, subnet) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            masked(u32::from(a).into(), 32) == masked(u32::from(b).into(), 32)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => masked(a.into(), 128) == masked(b.into(), 128),
        _ => false,
    }
}

/// Whether peers can be told this address: not one of the link or the host alone.
fn is_reachable(address: &IpAddr) -> bool {
    crate::ssh::check_address(Some(*address)).is_ok()
}

/// What a host has, for a sentence.
fn inventory(state: &Interfaces) -> String {
    let one = |interface: &Interface| {
        let addresses: Vec<String> = interface
            .addresses
            .iter()
            .map(|(address, prefix)| format!("{address}/{prefix}"))
            .collect();
        match (interface.running, addresses.is_empty()) {
            (true, false) => format!("{} ({})", interface.name, addresses.join(" ")),
            (true, true) => format!("{} (no address)", interface.name),
            (false, _) => format!("{} (down)", interface.name),
        }
    };
    let all: Vec<String> = state.all.iter().map(one).collect();
    all.join(", ")
}

/// A host's end of a network, or why it has none, in a sentence that names what it has.
pub(crate) fn end(selector: &Selector, host: &str, state: &Interfaces) -> Result<End, String> {
    let has = || format!("it has {}", inventory(state));
    let with = |interface: &Interface, address: IpAddr| End {
        interface: interface.name.clone(),
        address,
        mtu_bytes: interface.mtu_bytes,
        line_bps: interface.line_bps,
    };
    let name = match selector {
        Selector::Subnet(subnet, prefix) => {
            let found = state.all.iter().find_map(|interface| {
                let mut own = interface.addresses.iter();
                let (address, _) = own.find(|(one, _)| in_subnet(*one, *subnet, *prefix))?;
                Some((interface, *address))
            });
            return match found {
                Some((interface, _)) if !interface.running => Err(format!(
                    "its interface {} in {subnet}/{prefix} does not work (no carrier, or down); {}",
                    interface.name,
                    has()
                )),
                Some((interface, address)) => Ok(with(interface, address)),
                None => Err(format!(
                    "no interface has an address in {subnet}/{prefix}; {}",
                    has()
                )),
            };
        }
        Selector::Interface(name) => name,
        Selector::ByHost(names) => names.get(host).ok_or_else(|| {
            format!(
                "the network names no interface for it: `{selector}`; {}",
                has()
            )
        })?,
    };
    let found = state.all.iter().find(|interface| interface.name == *name);
    let interface = found.ok_or_else(|| format!("there is no interface {name}; {}", has()))?;
    if !interface.running {
        return Err(format!(
            "its interface {name} does not work (no carrier, or down); {}",
            has()
        ));
    }
    let mut addresses = interface.addresses.iter().map(|(address, _)| *address);
    let v4 = addresses
        .clone()
        .find(|one| one.is_ipv4() && is_reachable(one));
    let address = v4.or_else(|| addresses.find(is_reachable));
    let address = address.ok_or_else(|| {
        format!(
            "its interface {name} has no address that others can reach; {}",
            has()
        )
    })?;
    Ok(with(interface, address))
}

/// What must have passed the interfaces of the two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub out: u64,
    pub into: u64,
}

impl Passed {
    /// Of the measuring host.
    pub(crate) fn of_src(moved: &Moved) -> Self {
        let with_headers = Self::with_headers(moved);
        // Of datagrams that were lost it is not known whether they got as far as the interface.
        let sent_bytes = match moved.datagrams {
            0 => moved.sent_bytes,
            _ => moved.received_bytes,
        };
        Self {
            out: with_headers(sent_bytes),
            into: with_headers(moved.answered_bytes),
        }
    }

    /// Of the answering host.
    pub(crate) fn of_dst(moved: &Moved) -> Self {
        let with_headers = Self::with_headers(moved);
        Self {
            out: with_headers(moved.answered_bytes),
            into: with_headers(moved.received_bytes),
        }
    }

    /// Bytes of messages, and of the headers of so many trips.
    fn with_headers(moved: &Moved) -> impl Fn(u64) -> u64 {
        let headers = moved.trips.saturating_mul(HEADERS);
        move |bytes| bytes.saturating_add(headers)
    }
}

/// What one host's interfaces counted in a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Of each interface that counted anything.
    pub interfaces: Vec<Interface>,
    /// UDP's troubles, those that are not 0.
    pub udp: BTreeMap<String, u64>,
}

impl Carried {
    /// The difference of two readings.
    pub(crate) fn between(before: &Interfaces, after: &Interfaces) -> Self {
        let then = |name: &str| before.all.iter().find(|one| one.name == name);
        let mut interfaces = Vec::new();
        for now in &after.all {
            let before = then(&now.name).map(|one| one.counters).unwrap_or_default();
            let counters = now.counters.since(&before);
            if counters.named().iter().any(|(_, count)| *count > 0) {
                interfaces.push(Interface {
                    counters,
                    ..now.clone()
                });
            }
        }
        let udp = after.udp.iter().filter_map(|(name, count)| {
            let more = count.saturating_sub(*before.udp.get(name).unwrap_or(&0));
            (more > 0).then(|| (name.clone(), more))
        });
        Self {
            udp: udp.collect(),
            interfaces,
        }
    }

    /// Puts it into a side's evidence. Of frames, drops and errors only those that happened.
    pub(crate) fn tell(&self, side: &mut Side) {
        for interface in &self.interfaces {
            side.interfaces
                .insert(interface.name.as_str().into(), counted(&interface.counters));
        }
        for (name, count) in &self.udp {
            let count = UdpCounter {
                count: Some(*count),
            };
            side.udp.insert(name.as_str().into(), count);
        }
    }

    /// What was lost here, by place: all but what the sender's socket refused, which is sent again.
    pub(crate) fn losses(&self) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        for Interface { name, counters, .. } in &self.interfaces {
            for (what, count) in [
                ("queue_dropped", counters.queue_dropped),
                ("rx_dropped", counters.rx_dropped),
                ("rx_errors", counters.rx_errors),
                ("rx_missed", counters.rx_missed),
                ("tx_dropped", counters.tx_dropped),
                ("tx_errors", counters.tx_errors),
            ] {
                if count > 0 {
                    all.push((format!("{name}.{what}"), count));
                }
            }
        }
        let sockets = self
            .udp
            .iter()
            .filter(|(name, _)| name.ends_with("rcvbuf_errors"));
        all.extend(sockets.map(|(name, count)| (format!("udp.{name}"), *count)));
        all
    }

    /// The interface that carried most, both ways.
    pub(crate) fn most(&self) -> Option<&str> {
        let both = |one: &&Interface| {
            let counters = one.counters;
            counters.tx_bytes.saturating_add(counters.rx_bytes)
        };
        self.interfaces
            .iter()
            .max_by_key(both)
            .map(|one| one.name.as_str())
    }
}

/// Whether the bytes of a launch passed the interface that its network names; the evidence where they did not.
///
/// # Errors
/// What the interface carried of what must have passed, and what the others carried.
pub(crate) fn judge(
    host: &str,
    named: &str,
    must: Passed,
    carried: &Carried,
) -> Result<(), String> {
    let of = |name: &str| {
        let found = carried.interfaces.iter().find(|one| one.name == name);
        found.map(|one| one.counters).unwrap_or_default()
    };
    let counted = of(named);
    let least = |bytes: u64| u128::from(bytes).saturating_mul(PASSED_PER_CENT.into()) / 100;
    let short = |bytes: u64, must: u64| u128::from(bytes) < least(must);
    let mut wrong = Vec::new();
    if short(counted.tx_bytes, must.out) {
        wrong.push(format!(
            "sent {} of at least {} bytes",
            counted.tx_bytes, must.out
        ));
    }
    if short(counted.rx_bytes, must.into) {
        wrong.push(format!(
            "received {} of at least {} bytes",
            counted.rx_bytes, must.into
        ));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let others = carried.interfaces.iter().filter(|one| one.name != named);
    let others: Vec<String> = others
        .map(|one| {
            let counters = one.counters;
            format!(
                "{} sent {} and received {}",
                one.name, counters.tx_bytes, counters.rx_bytes
            )
        })
        .collect();
    let beside = match others.is_empty() {
        true => "no other interface carried anything".into(),
        false => others.join(", "),
    };
    let same = carried.most() == Some("lo");
    let hint = match same {
        true => {
            "; the two hosts are one machine, whose own bytes pass its loopback: name two machines"
        }
        false => "",
    };
    Err(format!(
        "on {host} the interface {named} {}; {beside}{hint}",
        wrong.join(" and ")
    ))
}

/// What to do where the bytes took another way.
pub(crate) const WAYS: &str = "look at `ip route get ADDRESS from ADDRESS` on both hosts; several interfaces in one subnet or behind one switch need \
     sysctl net.ipv4.conf.all.arp_ignore=1, arp_announce=2 and rp_filter, or a route for each source address (`ip rule`)";

fn counted(counters: &sonde_probe::Counters) -> InterfaceCounters {
    let some = |count: u64| (count > 0).then_some(count);
    InterfaceCounters {
        rx_bytes: Some(counters.rx_bytes),
        tx_bytes: Some(counters.tx_bytes),
        rx_packets: some(counters.rx_packets),
        tx_packets: some(counters.tx_packets),
        rx_dropped: some(counters.rx_dropped),
        rx_missed: some(counters.rx_missed),
        rx_errors: some(counters.rx_errors),
        tx_dropped: some(counters.tx_dropped),
        tx_errors: some(counters.tx_errors),
        queue_dropped: some(counters.queue_dropped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sonde_probe::Counters;

    fn interface(name: &str, addresses: &[(&str, u8)]) -> Interface {
        Interface {
            name: name.into(),
            running: true,
            mtu_bytes: 1_500,
            addresses: addresses
                .iter()
                .map(|(address, prefix)| (address.parse().unwrap(), *prefix))
                .collect(),
            ..Interface::default()
        }
    }

    fn state() -> Interfaces {
        let mut down = interface("eth2", &[("10.7.0.1", 24)]);
        down.running = false;
        Interfaces {
            all: vec![
                interface("lo", &[("127.0.0.1", 8), ("::1", 128)]),
                interface("eth0", &[("fe80::1", 64), ("10.9.0.1", 24)]),
                interface("ib0", &[("10.9.1.1", 24), ("fd00::1", 64)]),
                interface("six", &[("fe80::2", 64), ("fd01::1", 64)]),
                interface("bare", &[("fe80::3", 64)]),
                down,
            ],
            udp: BTreeMap::new(),
        }
    }

    #[test]
    fn interfaces_are_selected() {
        let end = |text: &str| {
            let selector: Selector = text.parse().unwrap();
            super::end(&selector, "h1", &state())
                .map(|end| (end.interface, end.address.to_string()))
        };
        let is = |name: &str, address: &str| Ok((name.to_owned(), address.to_owned()));
        assert_eq!(end("ib0"), is("ib0", "10.9.1.1"));
        assert_eq!(end("six"), is("six", "fd01::1"));
        assert_eq!(end("h2/eth0,h1/ib0"), is("ib0", "10.9.1.1"));
        assert_eq!(end("10.9.1.0/24"), is("ib0", "10.9.1.1"));
        assert_eq!(end("10.9.0.77/24"), is("eth0", "10.9.0.1"));
        assert_eq!(end("fd00::/64"), is("ib0", "fd00::1"));
        for (text, says) in [
            (
                "ib1",
                "no interface ib1; it has lo (127.0.0.1/8 ::1/128), eth0",
            ),
            ("eth2", "eth2 does not work"),
            ("10.7.0.0/16", "eth2 in 10.7.0.0/16 does not work"),
            ("10.8.0.0/24", "no interface has an address in 10.8.0.0/24"),
            ("bare", "no address that others can reach"),
            ("lo", "no address that others can reach"),
            ("h2/eth0", "names no interface for it"),
        ] {
            let said = end(text).unwrap_err();
            assert!(
                said.contains(says) && said.contains("it has"),
                "{text}: {said}"
            );
        }
    }

    #[test]
    fn bad_networks_are_refused() {
        for (text, says) in [
            ("ib", "`=`"),
            ("=ib0", "its name"),
            ("i b=ib0", "its name"),
            ("ib=", "1 to 15"),
            ("ib=averylonginterface", "1 to 15"),
            ("ib=10.9.1.0/33", "length in bits"),
            ("ib=h1/ib0,ib1", "HOST/INTERFACE"),
            ("ib=h1/ib0,h1/ib1", "one interface"),
            ("ib=/ib0,h2/ib1", "before each"),
        ] {
            let error = text.parse::<Choice>().unwrap_err().to_string();
            assert!(
                error.contains(says) && error.contains("ib=ib0"),
                "{text}: {error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_network_or_refused(text in "\\PC{0,40}") {
            if let Ok(choice) = text.parse::<Choice>() {
                prop_assert_eq!(choice.to_string().parse::<Choice>(), Ok(choice));
            }
        }

        #[test]
        fn what_looks_like_a_network_is_read_back(text in "[a-z0-9]{1,4}=[a-f0-9.:/,]{1,30}") {
            if let Ok(choice) = text.parse::<Choice>() {
                let again: Choice = choice.to_string().parse().unwrap();
                prop_assert_eq!(again, choice);
            }
        }
    }

    fn carried(bytes: &[(&str, u64, u64)]) -> Carried {
        let one = |(name, tx_bytes, rx_bytes): &(&str, u64, u64)| Interface {
            counters: Counters {
                tx_bytes: *tx_bytes,
                rx_bytes: *rx_bytes,
                ..Counters::default()
            },
            ..interface(name, &[])
        };
        Carried {
            interfaces: bytes.iter().map(one).collect(),
            udp: BTreeMap::new(),
        }
    }

    #[test]
    fn bytes_must_pass_the_named_interface() {
        // 1,000 round trips of 100 bytes.
        let moved = Moved {
            sent_bytes: 100_000,
            received_bytes: 100_000,
            answered_bytes: 100_000,
            trips: 1_000,
            ..Moved::default()
        };
        let must = Passed::of_src(&moved);
        assert_eq!((must.out, must.into), (128_000, 128_000));
        let judged = |bytes: &[(&str, u64, u64)]| judge("h1", "ib0", must, &carried(bytes));
        // Headers of Ethernet come on top; what others do elsewhere is no matter.
        assert_eq!(
            judged(&[("ib0", 142_000, 142_000), ("eth0", 9_000_000, 4_000)]),
            Ok(())
        );
        assert_eq!(judged(&[("ib0", 121_700, 121_700)]), Ok(()));
        let said = judged(&[("eth0", 142_000, 142_000), ("ib0", 42, 0)]).unwrap_err();
        assert_eq!(
            said,
            "on h1 the interface ib0 sent 42 of at least 128000 bytes and received 0 of at least 128000 bytes; eth0 sent \
             142000 and received 142000"
        );
        // One direction alone: the answers came back by another interface.
        let said = judged(&[("ib0", 142_000, 100), ("eth0", 0, 142_000)]).unwrap_err();
        assert!(
            said.starts_with("on h1 the interface ib0 received 100 of"),
            "{said}"
        );
        assert!(
            judged(&[("lo", 284_000, 284_000)])
                .unwrap_err()
                .contains("one machine")
        );
        assert!(judged(&[]).unwrap_err().contains("no other interface"));
        // A stream's answers are not counted on; of datagrams only those that came must have come in.
        let stream = Moved {
            sent_bytes: 1_000,
            received_bytes: 600,
            datagrams: 10,
            ..Moved::default()
        };
        assert_eq!(Passed::of_src(&stream), Passed { out: 600, into: 0 });
        assert_eq!(Passed::of_dst(&stream), Passed { out: 0, into: 600 });
    }

    #[test]
    fn differences_become_evidence() {
        let reading = |rx_bytes, rx_missed, rcvbuf| Interfaces {
            all: vec![
                Interface {
                    counters: Counters {
                        rx_bytes,
                        rx_missed,
                        ..Counters::default()
                    },
                    ..interface("eth0", &[])
                },
                interface("idle", &[]),
            ],
            udp: BTreeMap::from([("rcvbuf_errors".into(), rcvbuf)]),
        };
        let carried = Carried::between(&reading(100, 1, 5), &reading(350, 4, 12));
        let mut side = Side::default();
        carried.tell(&mut side);
        let wanted = InterfaceCounters {
            rx_bytes: Some(250),
            tx_bytes: Some(0),
            rx_missed: Some(3),
            ..InterfaceCounters::default()
        };
        assert_eq!(side.interfaces, BTreeMap::from([("eth0".into(), wanted)]));
        assert_eq!(side.udp[&"rcvbuf_errors".into()].count, Some(7));
        let lost = [
            ("eth0.rx_missed".to_string(), 3),
            ("udp.rcvbuf_errors".to_string(), 7),
        ];
        assert_eq!(carried.losses(), lost);
        assert_eq!(carried.most(), Some("eth0"));
    }
}
