//! Ethernet headers and address requests, as the hosts' kernels write them.
//!
//! Model:   hosts hN have on network K (from 0) the address 10.9.K.N and the link address 02:00:0a:09:KK:NN; the ports of
//!          the second network follow those of the first. A frame's description for the
//!          models is read from its header; an address server's answer is written from the request.
//! Source:  IEEE 802.3 §3.1.1; RFC 826; RFC 791 §3.1; RFC 3168 §5.
//! Checked: `headers_become_descriptions`, `an_answer_names_the_host_asked_for`.

use sonde_link::{Class, Ecn, Frame, FrameId, Kind, Mark, Port, To};
use sonde_units::Bytes;
use std::net::Ipv4Addr;

/// Bytes of the Ethernet header, which the models do not count.
pub(crate) const HEADER: usize = 14;
const ETHERTYPE_IP: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];

/// Where a port is: the network and the host, both from 0.
fn place(port: Port, hosts: u16) -> (u8, u8) {
    ((port.0 / hosts) as u8, (port.0 % hosts) as u8)
}

/// The port of host `number` (from 1) on a network.
fn port(network: u8, number: u8, hosts: u16) -> Option<Port> {
    let number = u16::from(number);
    (1..=hosts)
        .contains(&number)
        .then(|| Port(u16::from(network) * hosts + number - 1))
}

/// The link address of a port, where each network has `hosts`.
pub(crate) fn mac(port: Port, hosts: u16) -> [u8; 6] {
    let (network, host) = place(port, hosts);
    [0x02, 0x00, 0x0a, 0x09, network, host + 1]
}

/// The IPv4 address of a port, where each network has `hosts`.
pub(crate) fn address_of(port: Port, hosts: u16) -> Ipv4Addr {
    let (network, host) = place(port, hosts);
    Ipv4Addr::new(10, 9, network, host + 1)
}

/// The IPv4 address of a host on its first network.
pub fn address(host: Port) -> Ipv4Addr {
    address_of(host, u16::MAX)
}

/// The port with link address `mac` on a network.
fn port_of_mac(mac: &[u8], network: u8, hosts: u16) -> Option<Port> {
    let number = *mac.get(5)?;
    (mac[..5] == [0x02, 0x00, 0x0a, 0x09, network])
        .then(|| port(network, number, hosts))
        .flatten()
}

/// The port whose address an ARP request on a network asks for.
fn resolved(frame: &[u8], network: u8, hosts: u16) -> Option<Port> {
    let arp = frame.get(HEADER..HEADER + 28)?;
    let asks = arp[..8] == [0, 1, 0x08, 0x00, 6, 4, 0, 1];
    (asks && arp[24..27] == [10, 9, network])
        .then(|| port(network, arp[27], hosts))
        .flatten()
}

/// What the models need to know of `bytes`, sent by `from`; none for what is shorter than a header.
pub(crate) fn describe(bytes: &[u8], from: Port, id: FrameId, hosts: u16) -> Option<Frame> {
    let (network, _) = place(from, hosts);
    let header = bytes.get(..HEADER)?;
    let unicast = header[0] & 1 == 0;
    let to = match port_of_mac(&header[..6], network, hosts) {
        Some(port) => To::One(port),
        None if unicast => To::Unknown,
        None => To::All,
    };
    let ip = &bytes[HEADER..];
    let kind = match [header[12], header[13]] {
        ETHERTYPE_IP => Kind::Ip,
        ETHERTYPE_ARP if to == To::All => {
            resolved(bytes, network, hosts).map_or(Kind::Arp, Kind::Resolve)
        }
        ETHERTYPE_ARP => Kind::Arp,
        _ => Kind::Other,
    };
    let is_ip = kind == Kind::Ip && ip.len() >= 20;
    let ecn = match if is_ip { ip[1] & 3 } else { 0 } {
        0 => Ecn::NotCapable,
        3 => Ecn::Experienced,
        _ => Ecn::Capable,
    };
    let flow = if is_ip { flow(ip) } else { 0 };
    Some(Frame {
        id,
        from,
        to,
        len: Bytes((bytes.len() - HEADER) as u64),
        kind,
        class: Class::default(),
        ecn,
        flow,
    })
}

/// A number for the conversation: addresses, protocol and ports.
fn flow(ip: &[u8]) -> u64 {
    let ports = ip.get(20..24).unwrap_or(&[0; 4]);
    let parts = ip[12..20].iter().chain(ports).chain(&ip[9..10]);
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
    let ip = bytes.get_mut(HEADER..HEADER + 20)?;
    let is_ip = frame[12..HEADER] == ETHERTYPE_IP;
    if !is_ip || ip[1] & 3 == 0 {
        return None;
    }
    let before = u16::from_be_bytes([ip[0], ip[1]]);
    ip[1] |= 3;
    let after = u16::from_be_bytes([ip[0], ip[1]]);
    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
    let sum = u16::from_be_bytes([ip[10], ip[11]]);
    let mut new = u32::from(!sum) + u32::from(!before) + u32::from(after);
    new = (new & 0xffff) + (new >> 16);
    new = (new & 0xffff) + (new >> 16);
    ip[10..12].copy_from_slice(&(!(new as u16)).to_be_bytes());
    Some(bytes)
}

/// Turns an address request in place into the answer of a server: `of` has this link address.
pub(crate) fn answer(frame: &mut [u8], of: Port, hosts: u16) {
    let asker: [u8; 6] = frame[6..12].try_into().expect("six bytes");
    frame[..6].copy_from_slice(&asker);
    frame[6..12].copy_from_slice(&mac(of, hosts));
    let arp = &mut frame[HEADER..HEADER + 28];
    arp[7] = 2;
    let (sender, target) = arp[8..].split_at_mut(10);
    target[..10].copy_from_slice(sender);
    sender[..6].copy_from_slice(&mac(of, hosts));
    sender[6..].copy_from_slice(&address_of(of, hosts).octets());
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
