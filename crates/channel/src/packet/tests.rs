//! Tests of [`super`].

use super::*;
use crate::payload;
use proptest::prelude::*;

const MARK: Mark = Mark {
    tag: 0x0123_4567_89ab_cdef,
    conversation: 7,
};

fn frame(head: Head, body: &[u8], padding: usize) -> Vec<u8> {
    let mut bytes = [0; PACKET_HEADER_BYTES];
    head.write(&mut bytes);
    [&[0; ETHERNET_BYTES][..], &bytes, body, &vec![0; padding]].concat()
}

proptest! {
    #[test]
    fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..200), begin in any::<bool>()) {
        let mut bytes = bytes;
        if begin && bytes.len() > ETHERNET_BYTES + 4 {
            bytes[ETHERNET_BYTES..ETHERNET_BYTES + 2].copy_from_slice(&MAGIC);
            bytes[ETHERNET_BYTES + 3] = VERSION;
        }
        if let Some((head, body)) = Head::read(&bytes) {
            prop_assert_eq!(head.length as usize, body.len());
            prop_assert!(MESSAGE_AT + body.len() <= bytes.len());
        }
    }

    #[test]
    fn a_frame_is_read_back(role in 1u8..3, tag: u64, conversation: u32, sequence: u64, size in 0usize..100, padding in 0usize..60) {
        let mark = Mark { tag, conversation };
        let head = Head { role, mark, sequence, length: size as u32 };
        let body = payload::message(size);
        let bytes = frame(head, &body, padding);
        prop_assert_eq!(Head::read(&bytes), Some((head, &body[..])));
        // One byte less than it says, and it is none.
        let cut = Head { length: (size + padding + 1) as u32, ..head };
        let bytes = frame(cut, &body, padding);
        prop_assert_eq!(Head::read(&bytes), None);
    }
}

#[test]
fn a_frame_of_another_program_or_version_is_none() {
    let head = Head {
        role: 1,
        mark: MARK,
        sequence: 0,
        length: 4,
    };
    let bytes = frame(head, &payload::message(4), 0);
    assert!(Head::read(&bytes).is_some());
    for at in [0, 1, 3] {
        let mut other = bytes.clone();
        other[ETHERNET_BYTES + at] ^= 1;
        assert_eq!(Head::read(&other), None, "byte {at}");
    }
}

fn options(method: Method, wait: Wait, timeout_ms: u64) -> Options {
    Options {
        timeout: Duration::from_millis(timeout_ms),
        method,
        ..Options::new(wait)
    }
}

fn end(role: Role, mark: Mark, options: Options) -> Packet {
    let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let place = Place::towards(peer.ip(), Path::Packet).unwrap();
    Packet::open(place, peer, [0; 6], role, mark, options).unwrap()
}

fn missing() -> bool {
    let obstacle = sonde_sys::frames::obstacle();
    if let Some(why) = &obstacle {
        println!("skipped: {why}");
    }
    obstacle.is_some()
}

/// The loopback is the same one for all tests.
static LOOPBACK: std::sync::Mutex<u32> = std::sync::Mutex::new(0);

/// Every method with every wait.
fn each(mut with: impl FnMut(Method, Wait, Mark)) {
    let mut used = LOOPBACK.lock().unwrap();
    *used += 1;
    let mut conversation = std::process::id() << 8 | *used << 4;
    for method in [Method::Plain, Method::Ring] {
        for wait in [Wait::Block, Wait::Poll] {
            conversation += 1;
            with(
                method,
                wait,
                Mark {
                    conversation,
                    ..MARK
                },
            );
        }
    }
}

#[test]
fn a_lost_ping_is_counted_and_a_replay_refused() {
    if missing() {
        return;
    }
    each(|method, wait, mark| {
        let mut client = end(Role::Measuring, mark, options(method, wait, 20_000));
        let mut server = end(Role::Serving, mark, options(method, Wait::Block, 20_000));
        client.set_within(Duration::from_millis(20)).unwrap();
        server.set_within(Duration::from_secs(10)).unwrap();
        let mut stranger = end(
            Role::Measuring,
            Mark { tag: 1, ..mark },
            options(Method::Plain, wait, 1_000),
        );
        let mut replay = end(Role::Measuring, mark, options(Method::Plain, wait, 1_000));
        let serving = std::thread::spawn(move || {
            let mut message = [0; 64];
            let Came::Message { sequence: lost } = server.recv_fresh(&mut message).unwrap() else {
                panic!("silence");
            };
            let Came::Message { sequence } = server.recv_fresh(&mut message).unwrap() else {
                panic!("silence");
            };
            assert!(sequence > lost);
            stranger.send_as(sequence + 9, &message).unwrap();
            replay.send_as(lost, &message).unwrap();
            replay.send_as(sequence + 9, &message[1..]).unwrap();
            server.set_within(Duration::from_millis(1)).unwrap();
            let end = Instant::now() + Duration::from_secs(10);
            while server.refused() < 3 && Instant::now() < end {
                // Those sent again meanwhile are later transmissions.
                server.recv_fresh(&mut message).unwrap();
            }
            let highest = server.highest;
            server.send_as(highest, &message).unwrap();
            server.send_as(highest, &message).unwrap();
            server.refused()
        });
        let mut ping = payload::message(64);
        payload::stamp(&mut ping, 3);
        let mut pong = vec![0; 64];
        assert!(client.exchange(&ping, &mut pong).unwrap() >= 1);
        assert_eq!(payload::verify(&pong, 3), Ok(()));
        // Other programs' frames on this loopback would be refused too.
        assert!(serving.join().unwrap() >= 3, "{method} {wait:?}");
        assert!(client.losses().resent >= 1);
    });
}

#[test]
fn every_wait_ends() {
    if missing() {
        return;
    }
    each(|method, wait, mark| {
        let mut client = end(Role::Measuring, mark, options(method, wait, 60));
        client.set_within(Duration::from_millis(10)).unwrap();
        let error = client.exchange(&[0; 64], &mut [0; 64]).unwrap_err();
        assert!(
            error.to_string().contains("for the answer to 64"),
            "{error}"
        );
        let error = client.recv(&mut [0; 64]).unwrap_err();
        assert!(error.to_string().contains("for a message of 64"), "{error}");
        let most = client.place().message_bytes_max();
        let error = client.send(&vec![0; most + 1]).unwrap_err();
        assert!(error.to_string().contains("does not fit"), "{error}");
        assert!(
            client
                .settings()
                .unwrap()
                .recv_buffer
                .unwrap()
                .granted_bytes
                > 0
        );
    });
}

#[test]
fn frames_do_not_pass_routers() {
    let place = Place::towards("127.0.0.1".parse().unwrap(), Path::Packet).unwrap();
    assert_eq!((place.name.as_str(), place.mac), ("lo", [0; 6]));
    assert_eq!(place.message_bytes_max(), place.mtu_bytes - 28);
}

/// Both ends of a veth pair in a network namespace of this thread's own; `None` says what is missing.
fn veth() -> Option<[Place; 2]> {
    use sonde_sys::namespace::{Kind, Namespaces, unshare};
    use sonde_sys::netlink::{LinkChange, VethEnd};
    if let Some(why) = xdp::obstacle() {
        println!("skipped: {why}");
        return None;
    }
    if let Err(error) = unshare(Namespaces::of(&[Kind::Net])) {
        println!("skipped: {error}");
        return None;
    }
    let mut netlink = Netlink::open().unwrap();
    let end = |name| VethEnd {
        name,
        mtu_bytes: 1_500,
        mac: None,
        netns: None,
    };
    netlink.add_veth(&end("one"), &end("two")).unwrap();
    let mut place = |name: &str| {
        let interface = netlink.index(name).unwrap();
        let up = LinkChange {
            up: Some(true),
            ..LinkChange::default()
        };
        netlink.set_link(interface, &up).unwrap();
        Place {
            interface,
            name: name.into(),
            mac: netlink.link(interface).unwrap().mac,
            mtu_bytes: 1_500,
            path: Path::Xdp,
        }
    };
    let places = [place("one"), place("two")];
    for place in &places {
        netlink
            .wait_running(place.interface, 5_000_000_000)
            .unwrap();
    }
    Some(places)
}

#[test]
fn xdp_carries_messages_of_both_ends() {
    let Some([one, two]) = veth() else {
        return;
    };
    let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
    for wait in [Wait::Block, Wait::Poll] {
        let open = |here: &Place, there: &Place, role| {
            let options = options(Method::Plain, wait, 20_000);
            Packet::open(here.clone(), peer, there.mac, role, MARK, options).unwrap()
        };
        let mut client = open(&one, &two, Role::Measuring);
        let mut server = open(&two, &one, Role::Serving);
        let serving = std::thread::spawn(move || {
            let mut message = [0; 1_472];
            for _ in 0..1_000 {
                let Came::Message { sequence } = server.recv_fresh(&mut message).unwrap() else {
                    panic!("silence");
                };
                server.send_as(sequence, &message).unwrap();
            }
        });
        let mut ping = payload::message(1_472);
        let mut pong = vec![0; 1_472];
        for number in 0..1_000 {
            payload::stamp(&mut ping, number);
            client.exchange(&ping, &mut pong).unwrap();
            assert_eq!(payload::verify(&pong, number), Ok(()));
        }
        serving.join().unwrap();
        assert!(client.transfer().xdp.is_some());
        assert!(client.send(&vec![0; 1_473]).is_err());
    }
}
