//! Ethernet headers and address requests, as the hosts' kernels write them.
//!
//! Model:   a frame's description for the models is read from its header; an address server's answer is written from the request, and so is what a
//!          router makes of a datagram. Which port has which address: `addresses`.
//! Source:  IEEE 802.3 §3.1.1; RFC 826; RFC 791 §3.1; RFC 792; RFC 1191 §4; RFC 1624; RFC 3168 §5.
//! Checked: `headers_become_descriptions`, `an_answer_names_the_host_asked_for`, `what_routers_do_reaches_the_bytes`.
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

mod addresses;

pub use addresses::addresses;
pub(crate) use addresses::{Addresses, MAC};
use sonde_link::{Answer, Class, Ecn, Edit, Frame, FrameId, Kind, Mark, Piece, Port, Routed, To};
use sonde_units::Bytes;
use std::net::Ipv4Addr;

/// Bytes of the Ethernet header, which the models do not count.
pub(crate) const HEADER: usize = 14;
/// Bytes of an IPv4 header without options, and of an address request of Ethernet for IPv4.
const IP: usize = 20;
const ARP: usize = 28;
const ETHERTYPE_IP: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];

/// The protocol number of ICMP, and its types.
const ICMP: u8 = 1;
const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const ECHO: u8 = 8;
const EXCEEDED: u8 = 11;
/// Unreachable since it may not be cut up.
const TOO_LONG: u8 = 4;
/// The TTL of what a router sends itself.
const TTL: u8 = 64;
/// Internetwork control (RFC 1812 §4.3.2.5).
const PRECEDENCE: u8 = 0xc0;

/// The port of the same subnet as `from` with link address `mac`.
fn port_of_mac(mac: &[u8], from: Port, addresses: &Addresses) -> Option<Port> {
    let (begin, address) = mac.split_first_chunk::<2>()?;
    let address: [u8; 4] = *address.first_chunk()?;
    (*begin == MAC)
        .then(|| addresses.port_beside(from, address.into()))
        .flatten()
}

/// The port of the same subnet as `from` whose address an ARP request asks for.
fn resolved(frame: &[u8], from: Port, addresses: &Addresses) -> Option<Port> {
    let arp: &[u8; ARP] = frame.get(HEADER..)?.first_chunk()?;
    let asks = arp.starts_with(&[0, 1, 0x08, 0x00, 6, 4, 0, 1]);
    let address = Ipv4Addr::new(arp[24], arp[25], arp[26], arp[27]);
    asks.then(|| addresses.port_beside(from, address)).flatten()
}

/// What the models need to know of `bytes`, sent by `from`; none for what is shorter than a header.
pub(crate) fn describe(
    bytes: &[u8],
    from: Port,
    id: FrameId,
    addresses: &Addresses,
) -> Option<Frame> {
    let (header, ip) = bytes.split_first_chunk::<HEADER>()?;
    let unicast = header[0] & 1 == 0;
    let to = match port_of_mac(header, from, addresses) {
        Some(port) => To::One(port),
        None if unicast => To::Unknown,
        None => To::All,
    };
    let kind = match ([header[12], header[13]], to) {
        (ETHERTYPE_IP, To::One(port)) if addresses.is_router(port) => {
            routed(ip, addresses).map_or(Kind::Ip, Kind::Routed)
        }
        // A bridge may have to cut it up.
        (ETHERTYPE_IP, To::One(port)) if addresses.is_long(from, ip.len()) => {
            datagram(ip, port).map_or(Kind::Ip, Kind::Routed)
        }
        (ETHERTYPE_IP, _) => Kind::Ip,
        (ETHERTYPE_ARP, To::All) => {
            resolved(bytes, from, addresses).map_or(Kind::Arp, Kind::Resolve)
        }
        (ETHERTYPE_ARP, _) => Kind::Arp,
        _ => Kind::Other,
    };
    let is_ip = matches!(kind, Kind::Ip | Kind::Routed(_));
    let head = ip.first_chunk::<IP>().filter(|_| is_ip);
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

/// What routers need to know of a datagram; none where they have nothing to do with it. To a router itself only a request for an echo is of use.
fn routed(ip: &[u8], addresses: &Addresses) -> Option<Routed> {
    let head: &[u8; IP] = ip.first_chunk()?;
    let to = addresses.port(Ipv4Addr::new(head[16], head[17], head[18], head[19]))?;
    let is_echo = head[9] == ICMP && parts(ip).and_then(|(_, rest)| rest.first()) == Some(&ECHO);
    let is_of_use = is_echo || !addresses.is_router(to);
    datagram(ip, to).filter(|_| is_of_use)
}

/// A datagram for a port.
fn datagram(ip: &[u8], to: Port) -> Option<Routed> {
    let head: &[u8; IP] = ip.first_chunk()?;
    Some(Routed {
        to,
        ttl: head[8],
        // One with options is not cut up: which of them a fragment has is of each option.
        is_whole: head[6] & 0x40 != 0 || head[0] & 0xf != 5,
    })
}

/// The bytes of a header, as it says, and what follows it.
fn parts(ip: &[u8]) -> Option<(&[u8], &[u8])> {
    let words = usize::from(ip.first()? & 0xf);
    ip.split_at_checked(words.checked_mul(4)?)
}

/// What arrives at `to` in place of a frame that routers sent on or answered; none where nothing changes.
pub(crate) fn edited(frame: &[u8], edit: Edit, to: Port, addresses: &Addresses) -> Option<Vec<u8>> {
    let (_, ip) = frame.split_first_chunk::<HEADER>()?;
    let (by, datagram) = match edit {
        Edit::None => return None,
        Edit::Routed { by, hops, piece } => {
            let datagram = sent_on(ip, hops)?;
            match piece {
                None => (by, datagram),
                Some(piece) => (by, cut(&datagram, piece)?),
            }
        }
        Edit::Answer { of, by, hops, what } => {
            let ttl = TTL.saturating_sub(hops);
            let datagram = match what {
                Answer::Echo => echo(ip, ttl)?,
                Answer::TimeExceeded => error(ip, addresses.address(of), ttl, [EXCEEDED, 0], 0)?,
                Answer::TooLong { mtu } => {
                    error(ip, addresses.address(of), ttl, [UNREACHABLE, TOO_LONG], mtu)?
                }
            };
            (by, datagram)
        }
    };
    let mut all = addresses.mac(to).to_vec();
    all.extend(addresses.mac(by));
    all.extend(ETHERTYPE_IP);
    all.extend(datagram);
    Some(all)
}

/// A datagram that has passed so many routers.
fn sent_on(ip: &[u8], hops: u8) -> Option<Vec<u8>> {
    let mut datagram = ip.to_vec();
    let head: &mut [u8; IP] = datagram.first_chunk_mut()?;
    let before = u16::from_be_bytes([head[8], head[9]]);
    head[8] = head[8].saturating_sub(hops);
    let after = u16::from_be_bytes([head[8], head[9]]);
    let sum = u16::from_be_bytes([head[10], head[11]]);
    [head[10], head[11]] = changed(sum, before, after).to_be_bytes();
    Some(datagram)
}

/// A fragment of a datagram, which may be one itself.
fn cut(ip: &[u8], piece: Piece) -> Option<Vec<u8>> {
    /// More fragments follow; and where this one begins, in eights of bytes.
    const MORE: u16 = 0x2000;
    const OFFSET: u16 = 0x1fff;
    let (header, rest) = parts(ip)?;
    let begin = usize::from(piece.offset);
    let end = begin.checked_add(usize::from(piece.len))?;
    let own = rest.get(begin..end)?;
    let mut all = header.to_vec();
    let head: &mut [u8; IP] = all.first_chunk_mut()?;
    let length = u16::try_from(header.len().checked_add(own.len())?).ok()?;
    [head[2], head[3]] = length.to_be_bytes();
    let before = u16::from_be_bytes([head[6], head[7]]);
    let offset = (before & OFFSET).checked_add(piece.offset / 8)?;
    let more = if end < rest.len() {
        MORE
    } else {
        before & MORE
    };
    [head[6], head[7]] = (before & !(MORE | OFFSET) | more | offset & OFFSET).to_be_bytes();
    [head[10], head[11]] = [0, 0];
    let sum = checksum(&all).to_be_bytes();
    for (place, byte) in all.iter_mut().skip(10).zip(sum) {
        *place = byte;
    }
    all.extend(own);
    Some(all)
}

/// The answer to a request for an echo.
fn echo(ip: &[u8], ttl: u8) -> Option<Vec<u8>> {
    let (header, rest) = parts(ip)?;
    let (mut header, mut rest) = (header.to_vec(), rest.to_vec());
    let head: &mut [u8; IP] = header.first_chunk_mut()?;
    let [.., a, b, c, d, e, f, g, h] = *head;
    let ends = [e, f, g, h, a, b, c, d];
    for (place, byte) in head.iter_mut().skip(12).zip(ends) {
        *place = byte;
    }
    head[8] = ttl;
    [head[10], head[11]] = [0, 0];
    let sum = checksum(&header).to_be_bytes();
    for (place, byte) in header.iter_mut().skip(10).zip(sum) {
        *place = byte;
    }
    let message: &mut [u8; 4] = rest.first_chunk_mut()?;
    let before = u16::from_be_bytes([message[0], message[1]]);
    message[0] = ECHO_REPLY;
    let after = u16::from_be_bytes([message[0], message[1]]);
    let sum = u16::from_be_bytes([message[2], message[3]]);
    [message[2], message[3]] = changed(sum, before, after).to_be_bytes();
    header.extend(rest);
    Some(header)
}

/// An error about a datagram, to its sender: its header and eight bytes more.
fn error(ip: &[u8], of: Ipv4Addr, ttl: u8, kind: [u8; 2], mtu: u16) -> Option<Vec<u8>> {
    /// Of ICMP's own.
    const OWN: usize = 8;
    let (header, rest) = parts(ip)?;
    let head: &[u8; IP] = header.first_chunk()?;
    let quoted = header.iter().chain(rest.iter().take(OWN)).copied();
    let mut message = kind.to_vec();
    message.extend([0, 0, 0, 0]);
    message.extend(mtu.to_be_bytes());
    message.extend(quoted);
    let sum = checksum(&message).to_be_bytes();
    for (place, byte) in message.iter_mut().skip(2).zip(sum) {
        *place = byte;
    }
    let length = u16::try_from(message.len().checked_add(IP)?).ok()?;
    let [high, low] = length.to_be_bytes();
    let mut all = vec![0x45, PRECEDENCE, high, low, 0, 0, 0, 0, ttl, ICMP, 0, 0];
    all.extend(of.octets());
    all.extend(head.iter().skip(12).take(4));
    let sum = checksum(&all).to_be_bytes();
    for (place, byte) in all.iter_mut().skip(10).zip(sum) {
        *place = byte;
    }
    all.extend(message);
    Some(all)
}

/// The checksum of bytes in which its own place is 0.
fn checksum(bytes: &[u8]) -> u16 {
    let word = |two: &[u8]| {
        u16::from_be_bytes([
            two.first().copied().unwrap_or(0),
            two.get(1).copied().unwrap_or(0),
        ])
    };
    !bytes.chunks(2).map(word).fold(0, ones_sum)
}

/// A checksum when one word that it is of becomes another. RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
fn changed(sum: u16, before: u16, after: u16) -> u16 {
    !ones_sum(ones_sum(!sum, !before), after)
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
    let sum = u16::from_be_bytes([ip[10], ip[11]]);
    [ip[10], ip[11]] = changed(sum, before, after).to_be_bytes();
    Some(bytes)
}

/// The sum of ones' complements: what is carried out comes in again.
fn ones_sum(one: u16, other: u16) -> u16 {
    let (sum, carries) = one.overflowing_add(other);
    sum.wrapping_add(carries.into())
}

/// Turns an address request in place into the answer of a server: `of` has this link address. What is shorter stays as it is.
pub(crate) fn answer(frame: &mut [u8], of: Port, addresses: &Addresses) {
    let Some((header, arp)) = frame.split_first_chunk_mut::<HEADER>() else {
        return;
    };
    let Some(arp) = arp.first_chunk_mut::<ARP>() else {
        return;
    };
    let own = addresses.mac(of);
    let (to, from) = header.split_at_mut(6);
    to.copy_from_slice(from.first_chunk::<6>().unwrap_or(&[0; 6]));
    for (place, byte) in from.iter_mut().zip(own) {
        *place = byte;
    }
    // Hardware and protocol of the request; an answer; its sender, and the asker.
    let [a, b, c, d, e, f, _, _, asker @ ..] = *arp;
    let begin = [a, b, c, d, e, f, 0, 2];
    let sender = own.into_iter().chain(addresses.address(of).octets());
    let all = begin.into_iter().chain(sender).chain(asker);
    for (place, byte) in arp.iter_mut().zip(all) {
        *place = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_link::{SiteSpec, parse_site, resolve};

    /// So many hosts on each of so many networks.
    fn flat(hosts: u16, networks: u16) -> Addresses {
        let network = resolve("wire", &|_| unreachable!()).unwrap();
        let site = SiteSpec::parallel(vec![network; networks.into()], hosts);
        Addresses::new(&site.subnets().unwrap())
    }

    /// Two subnets of two hosts each, the first of two segments, with a router between them: ports 0 to 3; 4 and 5 are the bridge's, 6 and 7
    /// the router's.
    fn routed() -> Addresses {
        let mut text = "name = \"x\"\nsummary = \"x\"\n".to_owned();
        for (name, host) in [("a", "\"a1\""), ("b", "\"b1\", \"b2\""), ("c", "\"a2\"")] {
            text += &format!(
                "[[segment]]\nname = \"{name}\"\nnetwork = \"ethernet-10\"\nhosts = [{host}]\n"
            );
        }
        text += "[[bridge]]\nname = \"q\"\njoins = [\"a\", \"c\"]\n[[router]]\nname = \"r\"\njoins = [\"a\", \"b\"]\n";
        let site = parse_site("x", &text, &|_| unreachable!()).unwrap();
        Addresses::new(&site.subnets().unwrap())
    }

    fn request() -> Vec<u8> {
        let four = flat(4, 1);
        let mut frame = vec![0xff; 6];
        frame.extend(four.mac(Port(0)));
        frame.extend(ETHERTYPE_ARP);
        frame.extend([0, 1, 0x08, 0x00, 6, 4, 0, 1]);
        frame.extend(four.mac(Port(0)));
        frame.extend(four.address(Port(0)).octets());
        frame.extend([0; 6]);
        frame.extend(four.address(Port(2)).octets());
        frame
    }

    #[test]
    fn headers_become_descriptions() {
        let (two, four) = (flat(2, 1), flat(4, 1));
        let frame = describe(&request(), Port(0), FrameId(1), &four).unwrap();
        assert_eq!(
            (frame.to, frame.kind, frame.len),
            (To::All, Kind::Resolve(Port(2)), Bytes(28))
        );
        // A host that is not there, or no host at all.
        assert_eq!(
            describe(&request(), Port(0), FrameId(1), &two)
                .unwrap()
                .kind,
            Kind::Arp
        );
        assert!(describe(&[0; 13], Port(0), FrameId(1), &two).is_none());
        let mut ip = [four.mac(Port(1)), four.mac(Port(0))].concat();
        ip.extend(ETHERTYPE_IP);
        ip.extend([0x45, 0x03]);
        ip.extend([0; 26]);
        let frame = describe(&ip, Port(0), FrameId(2), &two).unwrap();
        assert_eq!(
            (frame.to, frame.kind, frame.ecn, frame.len),
            (To::One(Port(1)), Kind::Ip, Ecn::Experienced, Bytes(28))
        );
        ip[5] = 77;
        assert_eq!(
            describe(&ip, Port(0), FrameId(3), &two).unwrap().to,
            To::Unknown
        );
    }

    #[test]
    fn every_port_has_an_address_of_its_own() {
        for (hosts, networks) in [(2, 8), (64, 4), (254, 3), (255, 3), (256, 4)] {
            let all = flat(hosts, networks);
            let mut seen = std::collections::BTreeSet::new();
            for number in 0..hosts * networks {
                let port = Port(number);
                let address = all.address(port);
                assert!(seen.insert(address), "{address} twice");
                assert_eq!(all.port(address), Some(port));
                assert_eq!(port_of_mac(&all.mac(port), port, &all), Some(port));
                let other = Port((number + hosts) % (hosts * networks));
                assert_eq!(all.port_beside(other, address), None);
                // It is inside its network, and neither that nor its broadcast address.
                let mask = u32::MAX << (32 - all.prefix());
                let bits = u32::from(address);
                assert_eq!(bits & mask, u32::from(all.subnet(port)));
                assert!(![0, !mask].contains(&(bits & !mask)), "{address}");
            }
        }
        assert_eq!(flat(256, 2).address(Port(255)), Ipv4Addr::new(10, 9, 1, 0));
        assert_eq!(flat(256, 2).address(Port(256)), Ipv4Addr::new(10, 9, 2, 1));
        assert_eq!(flat(4, 2).address(Port(4)), Ipv4Addr::new(10, 9, 1, 1));
        for out in [
            [10, 8, 255, 1],
            [10, 10, 0, 1],
            [10, 9, 1, 1],
            [10, 9, 0, 5],
            [10, 9, 0, 0],
        ] {
            assert_eq!(flat(4, 1).port(out.into()), None, "{out:?}");
        }
    }

    #[test]
    fn subnets_have_addresses_and_ways_to_each_other() {
        let all = routed();
        let address = |port| all.address(Port(port)).octets();
        // The hosts by their order: a1, b1, b2, a2.
        let hosts = [0, 1, 2, 3].map(address);
        assert_eq!(
            hosts,
            [[10, 9, 0, 1], [10, 9, 1, 1], [10, 9, 1, 2], [10, 9, 0, 2]]
        );
        assert_eq!([6, 7].map(address), [[10, 9, 0, 254], [10, 9, 1, 254]]);
        assert_eq!(all.port([10, 9, 1, 254].into()), Some(Port(7)));
        let ways = |port| {
            all.routes(Port(port))
                .map(|(to, by)| (to.octets(), by.octets()))
                .collect::<Vec<_>>()
        };
        assert_eq!(ways(3), [([10, 9, 1, 0], [10, 9, 0, 254])]);
        assert_eq!(ways(1), [([10, 9, 0, 0], [10, 9, 1, 254])]);
        assert_eq!(flat(4, 2).routes(Port(0)).count(), 0);
        assert_eq!(all.hosts_beside(Port(0)).collect::<Vec<_>>(), [Port(3)]);
        assert_eq!(all.routers_beside(Port(2)).collect::<Vec<_>>(), [Port(7)]);
        assert_eq!(all.neighbours(), 4);
    }

    /// The sum of an IP header, its checksum among it, is all ones.
    fn header_sum(frame: &[u8]) -> u16 {
        !checksum(&frame[HEADER..HEADER + 20])
    }

    /// A datagram of UDP as Linux writes it, with ECT(0), from one address to another.
    fn datagram(from: Ipv4Addr, to: Ipv4Addr, ttl: u8) -> Vec<u8> {
        let mut ip = vec![
            0x45, 0x02, 0x00, 0x20, 0x12, 0x34, 0x40, 0x00, ttl, 0x11, 0, 0,
        ];
        ip.extend(from.octets());
        ip.extend(to.octets());
        let sum = checksum(&ip).to_be_bytes();
        [ip[10], ip[11]] = sum;
        ip.extend([0x30, 0x39, 0x00, 0x35, 0, 12, 0, 0, 1, 2, 3, 4]);
        ip
    }

    fn to_router(all: &Addresses, ip: &[u8]) -> Vec<u8> {
        let mut frame = [all.mac(Port(6)), all.mac(Port(0))].concat();
        frame.extend(ETHERTYPE_IP);
        frame.extend(ip);
        frame
    }

    #[test]
    fn what_routers_do_reaches_the_bytes() {
        let all = routed();
        let (near, far) = (all.address(Port(0)), all.address(Port(2)));
        let frame = to_router(&all, &datagram(near, far, 9));
        let seen = describe(&frame, Port(0), FrameId(1), &all).unwrap();
        let routed = Routed {
            to: Port(2),
            ttl: 9,
            is_whole: true,
        };
        assert_eq!(
            (seen.to, seen.kind, seen.ecn),
            (To::One(Port(6)), Kind::Routed(routed), Ecn::Capable)
        );
        // The same for the router itself, which has no use for it.
        let own = to_router(&all, &datagram(near, all.address(Port(7)), 9));
        assert_eq!(
            describe(&own, Port(0), FrameId(1), &all).unwrap().kind,
            Kind::Ip
        );
        assert_eq!(edited(&frame, Edit::None, Port(2), &all), None);
        let edit = |piece| Edit::Routed {
            by: Port(7),
            hops: 2,
            piece,
        };
        // Of 12 bytes behind the header the first eight and the others, of what was the second fragment of a longer one.
        let mut second = datagram(near, far, 9);
        [second[6], second[7]] = [0x20, 0x03];
        let second = to_router(&all, &second);
        for (offset, len, flags) in [(0, 8, [0x20, 0x03]), (8, 4, [0x20, 0x04])] {
            let piece = edit(Some(Piece { offset, len }));
            let came = edited(&second, piece, Port(2), &all).unwrap();
            let (begin, len) = (usize::from(offset) + HEADER + IP, usize::from(len));
            assert_eq!(came.len(), HEADER + IP + len);
            assert_eq!(usize::from(came[HEADER + 3]), IP + len);
            assert_eq!(came[HEADER + 6..HEADER + 8], flags);
            assert_eq!((came[HEADER + 8], header_sum(&came)), (7, 0xffff));
            assert_eq!(came[HEADER + IP..], second[begin..begin + len]);
        }
        let last = edited(
            &frame,
            edit(Some(Piece { offset: 8, len: 4 })),
            Port(2),
            &all,
        )
        .unwrap();
        assert_eq!(last[HEADER + 6..HEADER + 8], [0x40, 0x01]);
        let beyond = edit(Some(Piece { offset: 8, len: 8 }));
        assert_eq!(edited(&frame, beyond, Port(2), &all), None);
        let came = edited(&frame, edit(None), Port(2), &all).unwrap();
        assert_eq!(
            (&came[..6], &came[6..12]),
            (&all.mac(Port(2))[..], &all.mac(Port(7))[..])
        );
        assert_eq!(
            (came[HEADER + 8], header_sum(&came), came.len()),
            (7, 0xffff, frame.len())
        );
        assert_eq!(came[HEADER + 12..], frame[HEADER + 12..]);

        let answer = |what| Edit::Answer {
            of: Port(6),
            by: Port(6),
            hops: 0,
            what,
        };
        let old = edited(&frame, answer(Answer::TimeExceeded), Port(0), &all).unwrap();
        assert_eq!((&old[..6], old.len()), (&all.mac(Port(0))[..], HEADER + 56));
        assert_eq!(
            (header_sum(&old), old[HEADER + 9], old[HEADER + 8]),
            (0xffff, ICMP, 64)
        );
        assert_eq!(old[HEADER + 12..HEADER + 16], all.address(Port(6)).octets());
        assert_eq!(old[HEADER + 16..HEADER + 20], near.octets());
        assert_eq!((old[34], old[35], checksum(&old[34..])), (EXCEEDED, 0, 0));
        assert_eq!(old[42..], frame[HEADER..HEADER + 28]);
        let long = edited(
            &frame,
            answer(Answer::TooLong { mtu: 1_500 }),
            Port(0),
            &all,
        )
        .unwrap();
        assert_eq!(
            (&long[34..36], &long[40..42]),
            (&[UNREACHABLE, TOO_LONG][..], &[0x05, 0xdc][..])
        );
        assert_eq!(checksum(&long[34..]), 0);

        // A request for an echo, of the router's other side.
        let mut ip = datagram(near, all.address(Port(7)), 64);
        ip[9] = ICMP;
        [ip[10], ip[11]] = [0, 0];
        let sum = checksum(&ip[..20]).to_be_bytes();
        [ip[10], ip[11]] = sum;
        ip[20..24].copy_from_slice(&[ECHO, 0, 0, 0]);
        let sum = checksum(&ip[20..]).to_be_bytes();
        ip[22..24].copy_from_slice(&sum);
        let ping = to_router(&all, &ip);
        assert!(
            matches!(describe(&ping, Port(0), FrameId(1), &all).unwrap().kind, Kind::Routed(one) if one.to == Port(7))
        );
        let pong = edited(&ping, answer(Answer::Echo), Port(0), &all).unwrap();
        assert_eq!(
            (header_sum(&pong), checksum(&pong[34..]), pong[34]),
            (0xffff, 0, ECHO_REPLY)
        );
        assert_eq!(
            pong[HEADER + 12..HEADER + 16],
            all.address(Port(7)).octets()
        );
        assert_eq!(pong[HEADER + 16..HEADER + 20], near.octets());
        assert_eq!(pong[38..], ping[38..]);
    }

    #[test]
    fn a_bridge_knows_of_what_is_too_long_for_some_segment() {
        let text = "name = \"x\"\nsummary = \"x\"\n[[segment]]\nname = \"a\"\nnetwork = \"fddi\"\nhosts = [\"a1\"]\n\
            [[segment]]\nname = \"b\"\nnetwork = \"ethernet-10\"\nhosts = [\"b1\"]\n\
            [[bridge]]\nname = \"q\"\njoins = [\"a\", \"b\"]\ntoo_long = \"fragment\"\n";
        let site = parse_site("x", text, &|_| unreachable!()).unwrap();
        let all = Addresses::new(&site.subnets().unwrap());
        let mut frame = [all.mac(Port(1)), all.mac(Port(0))].concat();
        frame.extend(ETHERTYPE_IP);
        frame.extend(datagram(all.address(Port(0)), all.address(Port(1)), 64));
        let kind = |frame: &[u8]| {
            let seen = describe(frame, Port(0), FrameId(1), &all).unwrap();
            (seen.to, seen.kind)
        };
        frame.resize(HEADER + 1_500, 0);
        assert_eq!(kind(&frame), (To::One(Port(1)), Kind::Ip));
        frame.push(0);
        let routed = |is_whole| {
            Kind::Routed(Routed {
                to: Port(1),
                ttl: 64,
                is_whole,
            })
        };
        assert_eq!(kind(&frame), (To::One(Port(1)), routed(true)));
        frame[HEADER + 6] = 0;
        assert_eq!(kind(&frame), (To::One(Port(1)), routed(false)));
        // The fragment is the sender's still, and its TTL.
        let cut = Edit::Routed {
            by: Port(0),
            hops: 0,
            piece: Some(Piece {
                offset: 1_480,
                len: 1,
            }),
        };
        let came = edited(&frame, cut, Port(1), &all).unwrap();
        assert_eq!(came[..HEADER], frame[..HEADER]);
        assert_eq!((came[HEADER + 8], header_sum(&came)), (64, 0xffff));
    }

    #[test]
    fn marks_reach_the_bytes() {
        let four = flat(4, 1);
        let mut frame = [four.mac(Port(1)), four.mac(Port(0))].concat();
        frame.extend(ETHERTYPE_IP);
        frame.extend(datagram(four.address(Port(0)), four.address(Port(1)), 64));
        assert_eq!(header_sum(&frame), 0xffff);
        assert_eq!(marked(&frame, Mark::Ok), None);
        let congested = marked(&frame, Mark::Ce).unwrap();
        assert_eq!(congested[HEADER + 1], 0x03);
        assert_eq!(header_sum(&congested), 0xffff);
        let damaged = marked(&frame, Mark::Corrupt).unwrap();
        assert_eq!(damaged.last(), Some(&0xfb));
        assert_eq!(damaged[..frame.len() - 1], frame[..frame.len() - 1]);
        // Who takes no part in notification is not marked.
        frame[HEADER + 1] = 0;
        assert_eq!(marked(&frame, Mark::Ce), None);
    }

    #[test]
    fn an_answer_names_the_host_asked_for() {
        let mut frame = request();
        let four = flat(4, 1);
        answer(&mut frame, Port(2), &four);
        assert_eq!(
            (&frame[..6], &frame[6..12]),
            (&four.mac(Port(0))[..], &four.mac(Port(2))[..])
        );
        assert_eq!(frame[20..22], [0, 2]);
        assert_eq!(
            (&frame[22..28], &frame[28..32]),
            (&four.mac(Port(2))[..], &[10, 9, 0, 3][..])
        );
        assert_eq!(
            (&frame[32..38], &frame[38..42]),
            (&four.mac(Port(0))[..], &[10, 9, 0, 1][..])
        );
    }
}
