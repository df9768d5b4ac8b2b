//! Round trips through the kernel: what is set is read back.

use crate::fresh;

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;

use sonde_sys::clock::{monotonic_ns, realtime_minus_monotonic_ns, sleep_until_ns};
use sonde_sys::ethtool::{self, LinkSpeed, Offload};
use sonde_sys::namespace::{Kind, Namespaces};
use sonde_sys::netlink::{
    LinkChange, LinkStats, Neighbour, Netlink, Resolved, Route, RouteMetrics, VethEnd,
};
use sonde_sys::packet::{Batch, PacketSender, PacketSocket};
use sonde_sys::tap::Tap;
use sonde_sys::{Error, message, namespace, socket, sysctl};

const NET: Namespaces = Namespaces::of(&[Kind::User, Kind::Net]);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

/// A pair `a`, `b` in this namespace, both up, without IPv6.
fn pair(netlink: &mut Netlink) -> (u32, u32) {
    sysctl::write("net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    let end = |name, last| VethEnd {
        name,
        mtu_bytes: 1500,
        mac: Some([2, 0, 0, 0, 0, last]),
        netns: None,
    };
    netlink.add_veth(&end("a", 1), &end("b", 2)).unwrap();
    let (a, b) = (netlink.index("a").unwrap(), netlink.index("b").unwrap());
    for index in [a, b] {
        netlink
            .set_link(
                index,
                &LinkChange {
                    up: Some(true),
                    ..LinkChange::default()
                },
            )
            .unwrap();
    }
    for index in [a, b] {
        netlink.wait_running(index, 5_000_000_000).unwrap();
    }
    (a, b)
}

/// Asks again until it is so, at most 2 s: frames cross a veth in a soft interrupt, soon but not at once.
fn wait_until(mut done: impl FnMut() -> bool) {
    let deadline = monotonic_ns() + 2_000_000_000;
    while !done() && monotonic_ns() < deadline {
        sleep_until_ns(monotonic_ns() + 200_000);
    }
}

#[test]
fn links_take_what_they_are_given() {
    fresh::inside("links_take_what_they_are_given", NET, || {
        let mut netlink = Netlink::open().unwrap();
        let (a, b) = pair(&mut netlink);
        assert_eq!(netlink.link(b).unwrap().mac, [2, 0, 0, 0, 0, 2]);
        netlink
            .set_link(
                a,
                &LinkChange {
                    up: Some(false),
                    ..LinkChange::default()
                },
            )
            .unwrap();
        let change = LinkChange {
            up: Some(true),
            carrier: None,
            mtu_bytes: Some(9180),
            mac: Some([2, 0, 0, 9, 9, 9]),
            txqueuelen: Some(5000),
            gso_max_segs: Some(1),
            gro_max_bytes: Some(30_000),
            name: Some("eth0"),
            netns: None,
        };
        netlink.set_link(a, &change).unwrap();
        let link = netlink.link_named("eth0").unwrap();
        let found = (
            link.index,
            link.up,
            link.mtu_bytes,
            link.mac,
            link.txqueuelen,
            link.gso_max_segs,
        );
        assert_eq!(found, (a, true, 9180, [2, 0, 0, 9, 9, 9], 5000, 1));
        assert_eq!(link.gro_max_bytes, 30_000);
        assert_eq!(netlink.links().unwrap().len(), 3);
        let error = netlink.index("a").unwrap_err().to_string();
        assert!(error.contains("find interface a"), "{error}");
        let huge = LinkChange {
            mtu_bytes: Some(70_000),
            ..LinkChange::default()
        };
        let error = netlink.set_link(a, &huge).unwrap_err().to_string();
        // The kernel's own sentence comes along.
        assert!(error.contains("mtu greater than device maximum"), "{error}");
        netlink.delete_link(a).unwrap();
        assert_eq!(netlink.links().unwrap().len(), 1);
    });
}

#[test]
fn a_socket_stays_with_its_namespace() {
    fresh::inside("a_socket_stays_with_its_namespace", NET, || {
        let mut outer = Netlink::open().unwrap();
        namespace::unshare(Namespaces::of(&[Kind::Net])).unwrap();
        let (mut inner, netns) = (
            Netlink::open().unwrap(),
            namespace::open(0, Kind::Net).unwrap(),
        );
        let near = VethEnd {
            name: "near",
            mtu_bytes: 1500,
            mac: None,
            netns: None,
        };
        let far = VethEnd {
            name: "far",
            netns: Some(netns.as_fd()),
            ..near.clone()
        };
        outer.add_veth(&near, &far).unwrap();
        assert!(outer.index("near").is_ok() && outer.index("far").is_err());
        assert!(inner.index("far").is_ok() && inner.index("near").is_err());
        let index = outer.index("near").unwrap();
        outer
            .set_link(
                index,
                &LinkChange {
                    netns: Some(netns.as_fd()),
                    ..LinkChange::default()
                },
            )
            .unwrap();
        assert!(inner.index("near").is_ok());
    });
}

#[test]
fn routes_carry_their_metrics() {
    fresh::inside("routes_carry_their_metrics", NET, || {
        let mut netlink = Netlink::open().unwrap();
        let (a, _) = pair(&mut netlink);
        netlink.add_address(a, ADDRESS, 24).unwrap();
        assert_eq!(netlink.addresses(a).unwrap(), [(ADDRESS, 24)]);
        let mut route = Route::on_link(Ipv4Addr::new(10, 9, 0, 0), 24, a);
        route.source = Some(ADDRESS);
        assert_eq!(netlink.routes().unwrap(), std::slice::from_ref(&route));
        route.metrics = RouteMetrics {
            window_bytes: Some(16_384),
            initcwnd: Some(1),
            initrwnd: Some(10),
            rto_min_ms: Some(200),
            advmss_bytes: Some(1460),
            congctl: Some("reno".into()),
            quickack: Some(true),
            mtu_bytes: Some(1_400),
        };
        netlink.set_route(&route).unwrap();
        assert_eq!(
            netlink.routes().unwrap(),
            std::slice::from_ref(&route),
            "replaced, not added"
        );
        route.metrics.congctl = Some("no_such".into());
        assert!(netlink.set_route(&route).is_err());
        let default = Route {
            gateway: Some(Ipv4Addr::new(10, 9, 0, 254)),
            ..Route::on_link(Ipv4Addr::UNSPECIFIED, 0, a)
        };
        netlink.set_route(&default).unwrap();
        assert!(netlink.routes().unwrap().contains(&default));
        route.metrics = RouteMetrics {
            congctl: Some("cubic".into()),
            ..RouteMetrics::default()
        };
        match netlink.set_route(&route) {
            Ok(()) => {}
            Err(Error::Netlink { .. }) => return println!("skipped: this kernel has no cubic"),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(
            netlink
                .routes()
                .unwrap()
                .iter()
                .filter(|r| r.metrics == route.metrics)
                .count(),
            1
        );
    });
}

#[test]
fn a_connection_uses_its_routes_congestion_control() {
    fresh::inside(
        "a_connection_uses_its_routes_congestion_control",
        NET,
        || {
            let mut outer = Netlink::open().unwrap();
            let server = std::thread::spawn(|| {
                namespace::unshare(Namespaces::of(&[Kind::Net])).unwrap();
                let netns = namespace::open(0, Kind::Net).unwrap();
                (
                    Netlink::open().unwrap(),
                    netns,
                    TcpListener::bind("0.0.0.0:0").unwrap(),
                )
            });
            let (mut inner, netns, listener) = server.join().unwrap();
            let near = VethEnd {
                name: "near",
                mtu_bytes: 1500,
                mac: None,
                netns: None,
            };
            let far = VethEnd {
                name: "far",
                netns: Some(netns.as_fd()),
                ..near.clone()
            };
            outer.add_veth(&near, &far).unwrap();
            let peer = Ipv4Addr::new(10, 9, 0, 2);
            let (near, far) = (outer.index("near").unwrap(), inner.index("far").unwrap());
            for (netlink, index, address) in [(&mut outer, near, ADDRESS), (&mut inner, far, peer)]
            {
                netlink
                    .set_link(
                        index,
                        &LinkChange {
                            up: Some(true),
                            ..LinkChange::default()
                        },
                    )
                    .unwrap();
                netlink.add_address(index, address, 24).unwrap();
            }
            for name in ["reno", "cubic"] {
                let route = Route {
                    source: Some(ADDRESS),
                    metrics: RouteMetrics {
                        congctl: Some(name.into()),
                        ..RouteMetrics::default()
                    },
                    ..Route::on_link(Ipv4Addr::new(10, 9, 0, 0), 24, near)
                };
                match outer.set_route(&route) {
                    Ok(()) => {}
                    Err(Error::Netlink { .. }) => {
                        println!("skipped: this kernel has no {name}");
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                }
                let client =
                    TcpStream::connect((peer, listener.local_addr().unwrap().port())).unwrap();
                assert_eq!(socket::congestion(&client).unwrap(), name);
            }
        },
    );
}

#[test]
fn neighbours_are_set_and_forgotten() {
    fresh::inside("neighbours_are_set_and_forgotten", NET, || {
        let mut netlink = Netlink::open().unwrap();
        let (a, _) = pair(&mut netlink);
        netlink.add_address(a, ADDRESS, 24).unwrap();
        let kept = Ipv4Addr::new(10, 9, 0, 2);
        netlink.set_neighbour(a, kept, [2, 0, 0, 0, 0, 2]).unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.send_to(b"who", "10.9.0.3:9").unwrap();
        assert_eq!(netlink.neighbours(a).unwrap().len(), 2);
        netlink.flush_neighbours(a).unwrap();
        let kept = Neighbour {
            address: kept,
            mac: Some([2, 0, 0, 0, 0, 2]),
            permanent: true,
        };
        assert_eq!(netlink.neighbours(a).unwrap(), [kept]);
    });
}

#[test]
fn settings_that_do_not_take_are_errors() {
    fresh::inside("settings_that_do_not_take_are_errors", NET, || {
        sysctl::write("net/ipv4/tcp_rmem", "4096  16384\t16384").unwrap();
        assert_eq!(
            sysctl::read("net/ipv4/tcp_rmem").unwrap(),
            "4096 16384 16384"
        );
        // The write succeeds and two of the three values stay: only reading back tells.
        match sysctl::write("net/ipv4/tcp_rmem", "8192") {
            Err(Error::NotTaken { found, .. }) => assert_eq!(found, "8192 16384 16384"),
            other => panic!("{other:?}"),
        }
        assert!(sysctl::write("net/ipv4/tcp_sack", "maybe").is_err());
        assert!(sysctl::write("net/core/rmem_max", "1").is_err());
    });
}

#[test]
fn frames_carry_stamps_and_losses_are_counted() {
    fresh::inside("frames_carry_stamps_and_losses_are_counted", NET, || {
        let mut netlink = Netlink::open().unwrap();
        let (a, b) = pair(&mut netlink);
        let mut receiver = PacketSocket::open(b, 1 << 20).unwrap();
        assert!(receiver.buffer().granted_bytes > 0);
        let sender = PacketSender::open(a).unwrap();
        let mut frame = vec![0xff; 100];
        frame[12..14].copy_from_slice(&[0x88, 0xb6]);
        let before = monotonic_ns();
        for number in 0..10 {
            frame[14] = number;
            assert!(sender.send(&frame).unwrap());
        }
        assert!(receiver.send(&frame).unwrap(), "the other direction");
        let mut batch = Batch::new(64, 64);
        let mut found = Vec::new();
        wait_until(|| {
            receiver.recv_batch(&mut batch).unwrap();
            found.extend((0..batch.len()).map(|i| (batch.frame(i).0.to_vec(), batch.frame(i).1)));
            found.len() >= 10
        });
        assert_eq!(found.len(), 10, "its own frame is not seen");
        let offset = realtime_minus_monotonic_ns();
        for (number, (bytes, stamp)) in found.iter().enumerate() {
            // The buffer is shorter than the frame: cut, and its true length told.
            assert_eq!(
                (bytes.len(), bytes[14], stamp.length_bytes),
                (64, number as u8, 100)
            );
            let at = offset.monotonic_ns(stamp.realtime_ns);
            assert!(at + 1_000_000 > before && at < monotonic_ns() + 1_000_000);
        }
        assert_eq!(
            (
                receiver.recv_batch(&mut batch).unwrap(),
                receiver.drops().unwrap()
            ),
            (0, 0)
        );
        let mut small = PacketSocket::open(b, 4096).unwrap();
        for _ in 0..100 {
            sender.send(&frame).unwrap();
        }
        let mut kept = 0;
        // Not read before all have come, so that some find no room.
        wait_until(|| {
            receiver.recv_batch(&mut batch).unwrap();
            kept += batch.len() as u64;
            kept >= 100
        });
        assert_eq!((kept, receiver.drops().unwrap()), (100, 0));
        kept = 0;
        while small.recv_batch(&mut batch).unwrap() > 0 {
            kept += batch.len() as u64;
        }
        let lost = small.drops().unwrap();
        assert_eq!(kept + lost, 100);
        assert!(
            lost > 0 && small.drops().unwrap() == lost,
            "the count adds up over reads"
        );
        let stats = netlink.stats(a).unwrap();
        assert_eq!(
            stats,
            LinkStats {
                tx_packets: 110,
                tx_bytes: 11_000,
                rx_packets: 1,
                rx_bytes: 100,
                ..stats
            }
        );
    });
}

#[test]
fn a_tap_says_the_speed_that_it_is_told() {
    fresh::inside("a_tap_says_the_speed_that_it_is_told", NET, || {
        let told = |mbit, is_full_duplex| LinkSpeed {
            mbit,
            is_full_duplex,
        };
        pair(&mut Netlink::open().unwrap());
        // A veth keeps its own.
        assert!(ethtool::set_link_speed("a", told(Some(155), true)).is_err());
        assert_eq!(ethtool::link_speed("a").unwrap(), told(Some(10_000), true));
        let tap = match Tap::open(Path::new("/dev/net/tun"), "t") {
            Ok(tap) => tap,
            Err(error) => return println!("skipped: {error}"),
        };
        for speed in [
            told(Some(10), false),
            told(Some(400_000), true),
            told(None, true),
        ] {
            ethtool::set_link_speed(tap.name(), speed).unwrap();
            assert_eq!(ethtool::link_speed("t").unwrap(), speed);
        }
        assert!(ethtool::link_speed("none").is_err());
    });
}

#[test]
fn offloads_are_turned_off() {
    fresh::inside("offloads_are_turned_off", NET, || {
        pair(&mut Netlink::open().unwrap());
        assert!(ethtool::is_on("a", Offload::TxChecksum).unwrap());
        ethtool::tx_checksum_off("a").unwrap();
        for offload in [Offload::TxChecksum, Offload::Tso] {
            assert!(!ethtool::is_on("a", offload).unwrap(), "{offload:?}");
        }
        ethtool::set("a", Offload::Gso, false).unwrap();
        ethtool::set("a", Offload::Gro, true).unwrap();
        // Without checksums there is no TSO: asked for, and not had.
        assert!(matches!(
            ethtool::set("a", Offload::Tso, true),
            Err(Error::NotTaken { .. })
        ));
        assert!(ethtool::is_on("none", Offload::Tso).is_err());
    });
}

#[test]
fn a_tap_carries_frames_both_ways() {
    fresh::inside("a_tap_carries_frames_both_ways", NET, || {
        let tap = match Tap::open(Path::new("/dev/net/tun"), "eth0") {
            Ok(tap) => tap,
            Err(error) => return println!("skipped: {error}"),
        };
        let mut netlink = Netlink::open().unwrap();
        sysctl::write("net/ipv6/conf/eth0/disable_ipv6", "1").unwrap();
        let mut buffer = [0; 2000];
        assert_eq!(tap.read(&mut buffer).unwrap(), None, "down");
        assert!(!tap.write(&[0; 60]).unwrap(), "down");
        let index = netlink.index(tap.name()).unwrap();
        netlink
            .set_link(
                index,
                &LinkChange {
                    up: Some(true),
                    ..LinkChange::default()
                },
            )
            .unwrap();
        assert_eq!(tap.read(&mut buffer).unwrap(), None, "nothing sent");
        let receiver = PacketSocket::open(index, 1 << 20).unwrap();
        assert!(tap.write(&[0xff; 60]).unwrap());
        let mut batch = Batch::new(4, 100);
        wait_until(|| receiver.recv_batch(&mut batch).unwrap() > 0);
        assert_eq!(batch.len(), 1);
        assert!(receiver.send(&[0xff; 61]).unwrap());
        let mut length = None;
        wait_until(|| {
            length = tap.read(&mut buffer).unwrap();
            length.is_some()
        });
        assert_eq!(length, Some(61));
        // The descriptor can be handed over; the device lives as long as one holds it.
        let (one, other) = message::pair().unwrap();
        message::send(&one, b"tap", &[tap.as_fd()]).unwrap();
        drop(tap);
        let (_, fds) = message::recv(&other).unwrap().unwrap();
        assert!(netlink.index("eth0").is_ok());
        drop(fds);
        assert!(netlink.index("eth0").is_err());
    });
}

/// Answers the next ARP request on a TAP after `delay`; what it was that came.
fn answer_arp(tap: &Tap, delay_ns: u64) -> Vec<u8> {
    let mut frame = [0; 2_000];
    let deadline = monotonic_ns() + 5_000_000_000;
    loop {
        assert!(monotonic_ns() < deadline, "no ARP request came");
        let size = match tap.read(&mut frame) {
            Ok(Some(size)) => size,
            Ok(None) => {
                sleep_until_ns(monotonic_ns() + 50_000);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        if frame[12..14] != [8, 6] {
            continue;
        }
        let request = frame[..size].to_vec();
        sleep_until_ns(monotonic_ns() + delay_ns);
        let mut reply = request.clone();
        let (asker, asked) = (request[22..32].to_vec(), request[38..42].to_vec());
        reply[..6].copy_from_slice(&asker[..6]);
        reply[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        reply[21] = 2;
        reply[22..28].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        reply[28..32].copy_from_slice(&asked);
        reply[32..42].copy_from_slice(&asker);
        assert!(tap.write(&reply).unwrap());
        return request;
    }
}

#[test]
fn a_neighbour_is_resolved_alone() {
    fresh::inside("a_neighbour_is_resolved_alone", NET, || {
        const DELAY_NS: u64 = 5_000_000;
        let mut netlink = Netlink::open().unwrap();
        let tap = match Tap::open(Path::new("/dev/net/tun"), "t0") {
            Ok(tap) => tap,
            Err(error) => return println!("skipped: {error}"),
        };
        let index = netlink.index("t0").unwrap();
        let up = LinkChange {
            up: Some(true),
            ..LinkChange::default()
        };
        netlink.set_link(index, &up).unwrap();
        netlink.add_address(index, ADDRESS, 24).unwrap();
        let peer = Ipv4Addr::new(10, 9, 0, 2);
        let timeout = std::time::Duration::from_secs(5);
        for _ in 0..2 {
            netlink.flush_neighbours(index).unwrap();
            std::thread::scope(|scope| {
                let answering = scope.spawn(|| answer_arp(&tap, DELAY_NS));
                let resolved = netlink.resolve_neighbour(index, peer, timeout).unwrap();
                let request = answering.join().unwrap();
                assert_eq!(request[38..42], peer.octets());
                // Never before the answer was sent.
                match resolved {
                    Resolved::After { ns } => assert!(ns >= DELAY_NS, "{ns}"),
                    other => panic!("{other:?}"),
                }
            });
            assert_eq!(netlink.neighbours(index).unwrap()[0].address, peer);
        }
        let short = std::time::Duration::from_millis(20);
        let nobody = Ipv4Addr::new(10, 9, 0, 3);
        let silence = netlink.resolve_neighbour(index, nobody, short).unwrap();
        assert_eq!(silence, Resolved::Silence);
        netlink
            .set_neighbour(index, peer, [2, 0, 0, 0, 0, 9])
            .unwrap();
        let known = netlink.resolve_neighbour(index, peer, timeout).unwrap();
        assert_eq!(known, Resolved::Needless);
    });
}

#[test]
fn the_way_to_an_address() {
    fresh::inside("the_way_to_an_address", NET, || {
        let mut netlink = Netlink::open().unwrap();
        let (a, _) = pair(&mut netlink);
        netlink.add_address(a, ADDRESS, 24).unwrap();
        let mut far = Route::on_link(Ipv4Addr::new(10, 77, 0, 0), 16, a);
        far.gateway = Some(Ipv4Addr::new(10, 9, 0, 7));
        netlink.set_route(&far).unwrap();
        let mut way = |address: &str| netlink.way_to(address.parse().unwrap());
        let near = way("10.9.0.2").unwrap();
        assert_eq!((near.ifindex, near.gateway, near.local), (a, None, false));
        let far = way("10.77.3.4").unwrap();
        assert_eq!(
            (far.ifindex, far.gateway),
            (a, Some(Ipv4Addr::new(10, 9, 0, 7)))
        );
        assert!(way("10.9.0.1").unwrap().local);
        let error = way("192.0.2.1").unwrap_err().to_string();
        assert!(error.contains("find the route to 192.0.2.1"), "{error}");
    });
}
