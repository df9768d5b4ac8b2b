//! Ethernet headers and address requests, as the hosts' kernels write them.
//!
//! Model:   hosts hN have on network K (from 0) the address 10.9.K.N. Where a /24 has too few addresses, from 255 hosts on, each
//!          network is a /23: host N has the Nth address after 10.9.(2K).0. A link address is 02:00 and the four bytes of the IPv4
//!          address; the ports of the second network follow those of the first. A frame's description for the
//!          models is read from its header; an address server's answer is written from the request.
//! Source:  IEEE 802.3 §3.1.1; RFC 826; RFC 791 §3.1; RFC 3168 §5.
//! Checked: `headers_become_descriptions`, `an_answer_names_the_host_asked_for`, `every_port_has_an_address_of_its_own`.
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

use sonde_link::{Class, Ecn, Frame, FrameId, Kind, Mark, Port, To};
use sonde_units::Bytes;
use std::net::Ipv4Addr;

/// Bytes of the Ethernet header, which the models do not count.
pub(crate) const HEADER: usize = 14;
/// Bytes of an IPv4 header without options, and of an address request of Ethernet for IPv4.
const IP: usize = 20;
const ARP: usize = 28;
const ETHERTYPE_IP: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];

/// What the link addresses of the lab begin with.
const MAC: [u8; 2] = [0x02, 0x00];
/// The first network's own address.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 0);
/// How many addresses the networks have together: 10.9.0.0/16.
const ALL: u32 = 1 << 16;
/// Hosts that a /24 has addresses for.
const HOSTS_24: u16 = 254;

/// The length of the networks' prefix, where each has `hosts`.
pub(crate) const fn prefix(hosts: u16) -> u8 {
    if hosts > HOSTS_24 { 23 } else { 24 }
}

/// How many addresses a network has.
fn size(hosts: u16) -> u32 {
    u32::MAX
        .checked_shr(prefix(hosts).into())
        .map_or(1, |most| most.saturating_add(1))
}

/// The own address of a network (from 0), where each has `hosts`.
pub(crate) fn subnet(network: u16, hosts: u16) -> Ipv4Addr {
    u32::from(FIRST)
        .wrapping_add(u32::from(network).wrapping_mul(size(hosts)))
        .into()
}

/// Where a port is: the network and the host, both from 0.
fn place(port: Port, hosts: u16) -> (u16, u16) {
    // There is at least one host.
    let hosts = hosts.max(1);
    let parts = port.0.checked_div(hosts).zip(port.0.checked_rem(hosts));
    parts.unwrap_or((0, 0))
}

/// The number (from 1) of the host that has an address on any network; 0 or beyond the last where none has.
pub(crate) fn number_of(address: Ipv4Addr, hosts: u16) -> Option<u16> {
    let offset = u32::from(address).checked_sub(u32::from(FIRST))?;
    let number = offset.checked_rem(size(hosts)).filter(|_| offset < ALL)?;
    u16::try_from(number).ok()
}

/// The port that has an address on a network.
fn port_of(address: Ipv4Addr, network: u16, hosts: u16) -> Option<Port> {
    let offset = u32::from(address).checked_sub(u32::from(subnet(network, hosts)))?;
    let host = u16::try_from(offset.checked_sub(1)?).ok();
    let host = host.filter(|host| *host < hosts)?;
    network.checked_mul(hosts)?.checked_add(host).map(Port)
}

/// The link address of a port, where each network has `hosts`.
pub(crate) fn mac(port: Port, hosts: u16) -> [u8; 6] {
    let ([first, second], [a, b, c, d]) = (MAC, address_of(port, hosts).octets());
    [first, second, a, b, c, d]
}

/// The IPv4 address of a port, where each network has `hosts`.
pub(crate) fn address_of(port: Port, hosts: u16) -> Ipv4Addr {
    let (network, host) = place(port, hosts);
    let own = u32::from(subnet(network, hosts));
    own.wrapping_add(u32::from(host)).wrapping_add(1).into()
}

/// The IPv4 address of a host on its first network.
pub fn address(host: Port) -> Ipv4Addr {
    address_of(host, u16::MAX)
}

/// The port with link address `mac` on a network.
fn port_of_mac(mac: &[u8], network: u16, hosts: u16) -> Option<Port> {
    let (begin, address) = mac.split_first_chunk::<2>()?;
    let address: [u8; 4] = *address.first_chunk()?;
    (*begin == MAC)
        .then(|| port_of(address.into(), network, hosts))
        .flatten()
}

/// The port whose address an ARP request on a network asks for.
fn resolved(frame: &[u8], network: u16, hosts: u16) -> Option<Port> {
    let arp: &[u8; ARP] = frame.get(HEADER..)?.first_chunk()?;
    let asks = arp.starts_with(&[0, 1, 0x08, 0x00, 6, 4, 0, 1]);
    let address = Ipv4Addr::new(arp[24], arp[25], arp[26], arp[27]);
    asks.then(|| port_of(address, network, hosts)).flatten()
}

/// What the models need to know of `bytes`, sent by `from`; none for what is shorter than a header.
pub(crate) fn describe(bytes: &[u8], from: Port, id: FrameId, hosts: u16) -> Option<Frame> {
    let (network, _) = place(from, hosts);
    let (header, ip) = bytes.split_first_chunk::<HEADER>()?;
    let unicast = header[0] & 1 == 0;
    let to = match port_of_mac(header, network, hosts) {
        Some(port) => To::One(port),
        None if unicast => To::Unknown,
        None => To::All,
    };
    let kind = match [header[12], header[13]] {
        ETHERTYPE_IP => Kind::Ip,
        ETHERTYPE_ARP if to == To::All => {
            resolved(bytes, network, hosts).map_or(Kind::Arp, Kind::Resolve)
        }
        ETHERTYPE_ARP => Kind::Arp,
        _ => Kind::Other,
    };
    let head = ip.first_chunk::<IP>().filter(|_| kind == Kind::Ip);
    let ecn = match head.map_or(0, |head| head[1] & 3) {
        0 => Ecn::NotCapable,
        3 => Ecn::Experienced,
        _ => Ecn::Capable,
    };
    let flow = head.map_or(0, |head| flow(head, ip));
    Some(Frame {
        id,
        from,
        to,
        len: Bytes(ip.len() as u64),
        kind,
        class: Class::default(),
        ecn,
        flow,
    })
}

/// A number for the conversation: addresses, protocol and ports.
fn flow(head: &[u8; IP], packet: &[u8]) -> u64 {
    let ports = packet.get(IP..).and_then(<[u8]>::first_chunk);
    let ports: &[u8; 4] = ports.unwrap_or(&[0; 4]);
    let addresses = head.iter().skip(12);
    let parts = addresses.chain(ports).chain([&head[9]]);
    // FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/.
    parts.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The bytes of a copy that arrives with a mark: its last byte damaged, so that a checksum finds it, or congestion noted in
/// its IP header. None where nothing changes.
pub(crate) fn marked(frame: &[u8], mark: Mark) -> Option<Vec<u8>> {
    let mut bytes = match mark {
        Mark::Ok => return None,
        Mark::Ce | Mark::Corrupt => frame.to_vec(),
    };
    if mark == Mark::Corrupt {
        *bytes.last_mut()? ^= 0xff;
        return Some(bytes);
    }
    let (header, ip) = bytes.split_first_chunk_mut::<HEADER>()?;
    let ip: &mut [u8; IP] = ip.first_chunk_mut()?;
    if [header[12], header[13]] != ETHERTYPE_IP || ip[1] & 3 == 0 {
        return None;
    }
    let before = u16::from_be_bytes([ip[0], ip[1]]);
    ip[1] |= 3;
    let after = u16::from_be_bytes([ip[0], ip[1]]);
    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
    let sum = u16::from_be_bytes([ip[10], ip[11]]);
    let parts = [!sum, !before, after];
    let new = parts.into_iter().fold(0, ones_sum);
    [ip[10], ip[11]] = (!new).to_be_bytes();
    Some(bytes)
}

/// The sum of ones' complements: what is carried out comes in again.
fn ones_sum(one: u16, other: u16) -> u16 {
    let (sum, carries) = one.overflowing_add(other);
    sum.wrapping_add(carries.into())
}

/// Turns an address request in place into the answer of a server: `of` has this link address. What is shorter stays as it is.
pub(crate) fn answer(frame: &mut [u8], of: Port, hosts: u16) {
    let Some((header, arp)) = frame.split_first_chunk_mut::<HEADER>() else {
        return;
    };
    let Some(arp) = arp.first_chunk_mut::<ARP>() else {
        return;
    };
    let own = mac(of, hosts);
    let (to, from) = header.split_at_mut(6);
    to.copy_from_slice(from.first_chunk::<6>().unwrap_or(&[0; 6]));
    for (place, byte) in from.iter_mut().zip(own) {
        *place = byte;
    }
    // Hardware and protocol of the request; an answer; its sender, and the asker.
    let [a, b, c, d, e, f, _, _, asker @ ..] = *arp;
    let begin = [a, b, c, d, e, f, 0, 2];
    let sender = own.into_iter().chain(address_of(of, hosts).octets());
    let all = begin.into_iter().chain(sender).chain(asker);
    for (place, byte) in arp.iter_mut().zip(all) {
        *place = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Vec<u8> {
        let mut frame = vec![0xff; 6];
        frame.extend(mac(Port(0), 4));
        frame.extend(ETHERTYPE_ARP);
        frame.extend([0, 1, 0x08, 0x00, 6, 4, 0, 1]);
        frame.extend(mac(Port(0), 4));
        frame.extend(address(Port(0)).octets());
        frame.extend([0; 6]);
        frame.extend(address(Port(2)).octets());
        frame
    }

    #[test]
    fn headers_become_descriptions() {
        let frame = describe(&request(), Port(0), FrameId(1), 4).unwrap();
        assert_eq!(
            (frame.to, frame.kind, frame.len),
            (To::All, Kind::Resolve(Port(2)), Bytes(28))
        );
        // A host that is not there, or no host at all.
        assert_eq!(
            describe(&request(), Port(0), FrameId(1), 2).unwrap().kind,
            Kind::Arp
        );
        assert!(describe(&[0; 13], Port(0), FrameId(1), 2).is_none());
        let mut ip = [mac(Port(1), 4), mac(Port(0), 4)].concat();
        ip.extend(ETHERTYPE_IP);
        ip.extend([0x45, 0x03]);
        ip.extend([0; 26]);
        let frame = describe(&ip, Port(0), FrameId(2), 2).unwrap();
        assert_eq!(
            (frame.to, frame.kind, frame.ecn, frame.len),
            (To::One(Port(1)), Kind::Ip, Ecn::Experienced, Bytes(28))
        );
        ip[5] = 77;
        assert_eq!(
            describe(&ip, Port(0), FrameId(3), 2).unwrap().to,
            To::Unknown
        );
    }

    #[test]
    fn every_port_has_an_address_of_its_own() {
        for (hosts, networks) in [(2, 8), (64, 4), (254, 3), (255, 3), (256, 4)] {
            let mut seen = std::collections::BTreeSet::new();
            for number in 0..hosts * networks {
                let port = Port(number);
                let (network, host) = (number / hosts, number % hosts);
                let address = address_of(port, hosts);
                assert!(seen.insert(address), "{address} twice");
                assert_eq!(port_of(address, network, hosts), Some(port));
                assert_eq!(port_of_mac(&mac(port, hosts), network, hosts), Some(port));
                assert_eq!(port_of(address, network + 1, hosts), None);
                assert_eq!(number_of(address, hosts), Some(host + 1));
                // It is inside its network, and neither that nor its broadcast address.
                let mask = u32::MAX << (32 - prefix(hosts));
                let bits = u32::from(address);
                assert_eq!(bits & mask, u32::from(subnet(network, hosts)));
                assert!(![0, !mask].contains(&(bits & !mask)), "{address}");
            }
        }
        assert_eq!(address_of(Port(255), 256), Ipv4Addr::new(10, 9, 1, 0));
        assert_eq!(address_of(Port(256), 256), Ipv4Addr::new(10, 9, 2, 1));
        assert_eq!(address_of(Port(4), 4), Ipv4Addr::new(10, 9, 1, 1));
        assert_eq!(number_of(Ipv4Addr::new(10, 8, 255, 1), 4), None);
        assert_eq!(number_of(Ipv4Addr::new(10, 10, 0, 1), 4), None);
    }

    /// The sum of an IP header, its checksum among it, is all ones.
    fn header_sum(frame: &[u8]) -> u32 {
        let words = frame[HEADER..HEADER + 20].chunks(2);
        let sum: u32 = words
            .map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])))
            .sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn marks_reach_the_bytes() {
        let mut frame = [mac(Port(1), 4), mac(Port(0), 4)].concat();
        frame.extend(ETHERTYPE_IP);
        // A header as Linux wrote it, with ECT(0), and a byte of data.
        frame.extend([
            0x45, 0x02, 0x00, 0x15, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0, 0,
        ]);
        frame.extend([10, 9, 0, 1, 10, 9, 0, 2, 0x77]);
        let sum = header_sum(&frame);
        let check = !((sum & 0xffff) + (sum >> 16)) as u16;
        frame[HEADER + 10..HEADER + 12].copy_from_slice(&check.to_be_bytes());
        assert_eq!(header_sum(&frame), 0xffff);
        assert_eq!(marked(&frame, Mark::Ok), None);
        let congested = marked(&frame, Mark::Ce).unwrap();
        assert_eq!(congested[HEADER + 1], 0x03);
        assert_eq!(header_sum(&congested), 0xffff);
        let damaged = marked(&frame, Mark::Corrupt).unwrap();
        assert_eq!(damaged.last(), Some(&0x88));
        assert_eq!(damaged[..frame.len() - 1], frame[..frame.len() - 1]);
        // Who takes no part in notification is not marked.
        frame[HEADER + 1] = 0;
        assert_eq!(marked(&frame, Mark::Ce), None);
    }

    #[test]
    fn an_answer_names_the_host_asked_for() {
        let mut frame = request();
        answer(&mut frame, Port(2), 4);
        assert_eq!(
            (&frame[..6], &frame[6..12]),
            (&mac(Port(0), 4)[..], &mac(Port(2), 4)[..])
        );
        assert_eq!(frame[20..22], [0, 2]);
        assert_eq!(
            (&frame[22..28], &frame[28..32]),
            (&mac(Port(2), 4)[..], &[10, 9, 0, 3][..])
        );
        assert_eq!(
            (&frame[32..38], &frame[38..42]),
            (&mac(Port(0), 4)[..], &[10, 9, 0, 1][..])
        );
    }
}
