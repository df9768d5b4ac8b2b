//! Ethernet headers and address requests, as the hosts' kernels write them.
//!
//! Model:   hosts hN have the address 10.9.0.N and the link address 02:00:0a:09:00:NN. A frame's description for the
//!          models is read from its header; an address server's answer is written from the request.
//! Source:  IEEE 802.3 §3.1.1; RFC 826; RFC 791 §3.1; RFC 3168 §5.
//! Checked: `headers_become_descriptions`, `an_answer_names_the_host_asked_for`.

use sonde_link::{Class, Ecn, Frame, FrameId, Kind, Port, To};
use sonde_units::Bytes;
use std::net::Ipv4Addr;

/// Bytes of the Ethernet header, which the models do not count.
pub(crate) const HEADER: usize = 14;
const ETHERTYPE_IP: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];

/// The link address of a host.
pub(crate) fn mac(port: Port) -> [u8; 6] {
    [0x02, 0x00, 0x0a, 0x09, 0x00, (port.0 + 1) as u8]
}

/// The IPv4 address of a host.
pub fn address(port: Port) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, (port.0 + 1) as u8)
}

/// The host with link address `mac`, of `ports`.
fn port_of_mac(mac: &[u8], ports: u16) -> Option<Port> {
    let number = u16::from(*mac.get(5)?);
    (mac[..5] == [0x02, 0x00, 0x0a, 0x09, 0x00] && (1..=ports).contains(&number))
        .then(|| Port(number - 1))
}

/// The host whose address an ARP request asks for.
fn resolved(frame: &[u8], ports: u16) -> Option<Port> {
    let arp = frame.get(HEADER..HEADER + 28)?;
    let asks = arp[..8] == [0, 1, 0x08, 0x00, 6, 4, 0, 1];
    let number = u16::from(arp[27]);
    (asks && arp[24..27] == [10, 9, 0] && (1..=ports).contains(&number)).then(|| Port(number - 1))
}

/// What the models need to know of `bytes`, sent by `from`; none for what is shorter than a header.
pub(crate) fn describe(bytes: &[u8], from: Port, id: FrameId, ports: u16) -> Option<Frame> {
    let header = bytes.get(..HEADER)?;
    let unicast = header[0] & 1 == 0;
    let to = match port_of_mac(&header[..6], ports) {
        Some(port) => To::One(port),
        None if unicast => To::Unknown,
        None => To::All,
    };
    let ip = &bytes[HEADER..];
    let kind = match [header[12], header[13]] {
        ETHERTYPE_IP => Kind::Ip,
        ETHERTYPE_ARP if to == To::All => resolved(bytes, ports).map_or(Kind::Arp, Kind::Resolve),
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

/// Turns an address request in place into the answer of a server: `of` has this link address.
pub(crate) fn answer(frame: &mut [u8], of: Port) {
    let asker: [u8; 6] = frame[6..12].try_into().expect("six bytes");
    frame[..6].copy_from_slice(&asker);
    frame[6..12].copy_from_slice(&mac(of));
    let arp = &mut frame[HEADER..HEADER + 28];
    arp[7] = 2;
    let (sender, target) = arp[8..].split_at_mut(10);
    target[..10].copy_from_slice(sender);
    sender[..6].copy_from_slice(&mac(of));
    sender[6..].copy_from_slice(&address(of).octets());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Vec<u8> {
        let mut frame = vec![0xff; 6];
        frame.extend(mac(Port(0)));
        frame.extend(ETHERTYPE_ARP);
        frame.extend([0, 1, 0x08, 0x00, 6, 4, 0, 1]);
        frame.extend(mac(Port(0)));
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
        let mut ip = [mac(Port(1)), mac(Port(0))].concat();
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
    fn an_answer_names_the_host_asked_for() {
        let mut frame = request();
        answer(&mut frame, Port(2));
        assert_eq!(
            (&frame[..6], &frame[6..12]),
            (&mac(Port(0))[..], &mac(Port(2))[..])
        );
        assert_eq!(frame[20..22], [0, 2]);
        assert_eq!(
            (&frame[22..28], &frame[28..32]),
            (&mac(Port(2))[..], &[10, 9, 0, 3][..])
        );
        assert_eq!(
            (&frame[32..38], &frame[38..42]),
            (&mac(Port(0))[..], &[10, 9, 0, 1][..])
        );
    }
}
