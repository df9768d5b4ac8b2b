//! Routers: the way of a datagram, what is answered, closed forms of it, and what holds for every site.

use crate::site::{drain, frame, mean_wait, refused, site};
use proptest::prelude::*;
use sonde_link::{
    Admission, Answer, Cause, Edit, Event, Frame, Internetwork, Kind, Mark, Network, Place, Port,
    Routed, SiteSpec, To, parse_site,
};
use sonde_units::{Bytes, Instant, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Segments one after the other with two hosts each and a router between each two.
pub fn chain(networks: &[&str], router: &str) -> SiteSpec {
    row(networks, "router", router)
}

/// The same with nodes of this kind, which have these keys.
pub fn row(networks: &[&str], kind: &str, keys: &str) -> SiteSpec {
    let mut text = String::new();
    for (number, network) in networks.iter().enumerate() {
        text += &format!(
            "[[segment]]\nname = \"s{number}\"\nnetwork = \"{network}\"\nhosts = [\"x{number}-[1-2]\"]\n"
        );
    }
    for number in 1..networks.len() {
        text += &format!(
            "[[{kind}]]\nname = \"r{number}\"\njoins = [\"s{}\", \"s{number}\"]\n{keys}\n",
            number - 1
        );
    }
    site(&text)
}

/// A datagram as a host's kernel sends it: to the router's interface.
pub fn routed(id: u64, (from, by): (u16, u16), to: u16, ttl: u8, len: u64) -> Frame {
    let kind = Kind::Routed(Routed {
        to: Port(to),
        ttl,
        is_whole: true,
    });
    Frame {
        kind,
        ..frame(id, from, by, len)
    }
}

/// The only arrival.
fn arrival(events: &[Event]) -> (Instant, Port, Edit) {
    let all: Vec<_> = events
        .iter()
        .filter_map(|event| match *event {
            Event::Deliver { at, to, edit, .. } => Some((at, to, edit)),
            _ => None,
        })
        .collect();
    let [one] = all[..] else {
        panic!("{events:?}");
    };
    one
}

#[test]
fn a_datagram_passes_routers_and_says_how_many() {
    // Ports: two hosts a segment, then the interfaces of the routers.
    let site = chain(&["ethernet-100"; 4], "frame_time = \"30us\"");
    let mut network = Internetwork::new(&site, 1).unwrap();
    let alone = {
        network.offer(Instant::START, frame(0, 0, 1, 1_000));
        arrival(&drain(&mut network)).0.since(Instant::START)
    };
    for (hops, to) in [(1, 2), (2, 5), (3, 7)] {
        let begin = network
            .poll_at()
            .unwrap_or(Instant::START + Span::secs(u64::from(hops)));
        network.offer(begin, routed(1, (0, 8), to, 64, 1_000));
        let (at, port, edit) = arrival(&drain(&mut network));
        assert_eq!(port, Port(to));
        // By the last router's second interface.
        assert_eq!(
            edit,
            Edit::Routed {
                by: Port(7 + 2 * u16::from(hops)),
                hops,
                piece: None
            }
        );
        let due = alone * u64::from(hops + 1) + Span::micros(30) * u64::from(hops);
        assert_eq!(at.since(begin), due);
        // A plain datagram sets out by itself.
        let later = begin + Span::millis(500);
        network.offer(later, frame(2, 0, to, 1_000));
        assert_eq!(arrival(&drain(&mut network)).0.since(later), due);
    }
    let forwarded: Vec<_> = network.nodes().iter().map(|node| node.forwarded).collect();
    assert_eq!(forwarded, [6, 4, 2]);
}

#[test]
fn routers_answer_what_is_old_or_long_or_for_them() {
    let site = chain(&["fddi", "ethernet-100", "ethernet-100"], "");
    let mut network = Internetwork::new(&site, 1).unwrap();
    let mut now = Instant::START;
    let mut ask = |frame: Frame| {
        now = now + Span::secs(1);
        network.offer(now, frame);
        let events = drain(&mut network);
        assert!(
            events
                .iter()
                .all(|event| !matches!(event, Event::Lost { .. })),
            "{events:?}"
        );
        let (_, to, edit) = arrival(&events);
        assert_eq!(to, frame.from);
        edit
    };
    let answer = |of, by, hops, what| Edit::Answer {
        of: Port(of),
        by: Port(by),
        hops,
        what,
    };
    // The first router has ports 6 and 7, the second 8 and 9.
    assert_eq!(
        ask(routed(1, (0, 6), 4, 1, 100)),
        answer(6, 6, 0, Answer::TimeExceeded)
    );
    assert_eq!(
        ask(routed(2, (0, 6), 4, 2, 100)),
        answer(8, 6, 1, Answer::TimeExceeded)
    );
    let long = Answer::TooLong { mtu: 1_500 };
    assert_eq!(ask(routed(3, (0, 6), 4, 64, 4_000)), answer(6, 6, 0, long));
    assert_eq!(
        ask(routed(4, (0, 6), 7, 64, 100)),
        answer(6, 6, 0, Answer::Echo)
    );
    assert_eq!(
        ask(routed(5, (0, 6), 9, 64, 100)),
        answer(8, 6, 1, Answer::Echo)
    );
    let counts = network.nodes();
    assert_eq!((counts[0].answered, counts[1].answered), (3, 2));
    // What is for nobody is lost.
    network.offer(now + Span::secs(1), routed(6, (0, 6), 99, 64, 4_000));
    let events = drain(&mut network);
    let is_so = |event: &Event| {
        let (place, cause) = (Place::Router, Cause::NoSuchPort);
        matches!(event, Event::Lost { place: at, cause: why, .. } if (*at, *why) == (place, cause))
    };
    assert_eq!(
        events.iter().filter(|event| is_so(event)).count(),
        1,
        "{events:?}"
    );
}

#[test]
fn a_frame_for_all_stays_in_its_subnet() {
    let site = chain(&["ethernet-10", "ethernet-100"], "");
    let mut network = Internetwork::new(&site, 1).unwrap();
    let all = Frame {
        to: To::All,
        ..frame(1, 0, 0, 100)
    };
    network.offer(Instant::START, all);
    assert_eq!(arrival(&drain(&mut network)).1, Port(1));
}

#[test]
fn an_address_server_answers_its_own_segment() {
    let site = chain(&["atm-oc3c", "ethernet-100"], "");
    let mut network = Internetwork::new(&site, 1).unwrap();
    let asks = |id, of| Frame {
        to: To::All,
        kind: Kind::Resolve(Port(of)),
        ..frame(id, 0, 0, 28)
    };
    for of in [1, 4] {
        let now = network
            .poll_at()
            .unwrap_or(Instant::START + Span::secs(u64::from(of)));
        network.offer(now, asks(u64::from(of), of));
        let events = drain(&mut network);
        assert_eq!(arrival(&events).1, Port(0), "of {of}");
        assert!(
            events
                .iter()
                .all(|event| !matches!(event, Event::Lost { .. })),
            "{events:?}"
        );
    }
    // For everybody else there is no way to all.
    let all = Frame {
        kind: Kind::Arp,
        ..asks(9, 1)
    };
    network.offer(Instant::START + Span::secs(9), all);
    let events = drain(&mut network);
    let is_so = |event: &&Event| {
        matches!(
            event,
            Event::Lost {
                to: Port(0) | Port(1),
                cause: Cause::NoBroadcast,
                ..
            }
        )
    };
    assert_eq!(events.iter().filter(is_so).count(), 1, "{events:?}");
}

/// The number of a host of a site.
fn host(site: &SiteSpec, name: &str) -> u16 {
    site.names()
        .iter()
        .position(|other| *other == name)
        .unwrap() as u16
}

#[test]
fn servers_on_both_segments_keep_traffic_off_the_router() {
    let site = sonde_link::resolve_site("sandia-engineering", &|_| unreachable!()).unwrap();
    let desks = |segment: usize| {
        site.segment[segment]
            .hosts
            .iter()
            .filter(|name| name.starts_with("desk"))
            .count()
    };
    assert_eq!((desks(0), desks(1)), (60, 60));
    let servers = ["file-server", "compute-server"].map(|name| host(&site, name));
    let sp2 = site
        .names()
        .into_iter()
        .filter(|name| name.starts_with("sp2-"));
    assert_eq!(sp2.count(), 12);
    let subnets = site.subnets().unwrap();
    for server in servers {
        let on = subnets.ports_of(server).iter();
        let on: Vec<_> = on
            .map(|port| &*site.segment[subnets.ends[usize::from(port.0)].segment].name)
            .collect();
        assert_eq!(on, ["main-1", "main-2", "back-door"]);
    }
    // Each desktop asks a host, at the address of its own that is nearest or at that of its eth0.
    let routed = |asked: u16, is_nearest: bool| {
        let mut network = Internetwork::new(&site, 1).unwrap();
        let mut now = Instant::START;
        for name in site.names() {
            if name.starts_with("desk") {
                let (from, near) = subnets.between(host(&site, name), asked).unwrap();
                let to = if is_nearest { near.0 } else { asked };
                now = now + Span::millis(10);
                network.offer(now, frame(0, from.0, to, 1_000));
                assert_eq!(arrival(&drain(&mut network)).1, Port(to));
            }
        }
        network.nodes()[0].forwarded
    };
    let [file, compute] = servers;
    let outside = host(&site, "outside-1");
    let seen = [
        routed(file, true),
        routed(compute, true),
        routed(file, false),
        routed(outside, true),
    ];
    assert_eq!(seen, [0, 0, 60, 120]);
}

#[test]
fn the_trial_has_three_switches_and_a_router() {
    let site = sonde_link::resolve_site("sandia-trial", &|_| unreachable!()).unwrap();
    let atm = &site.segment[0];
    assert_eq!((atm.hosts.len(), site.router[0].joins.len()), (11, 2));
    let mut network = Internetwork::new(&site, 1).unwrap();
    let mut way = |id, to: &str| {
        let now = Instant::START + Span::secs(id);
        network.offer(
            now,
            frame(id, host(&site, "desktop-1"), host(&site, to), 40),
        );
        arrival(&drain(&mut network)).0.since(now)
    };
    // At one switch, two and three: each has 10 us, and the line between them takes 1.5 us.
    let ways = ["desktop-2", "desktop-6", "sp2-2"]
        .iter()
        .zip(1..)
        .map(|(to, id)| way(id, to))
        .collect::<Vec<_>>();
    for pair in ways.windows(2) {
        let more = pair[1] - pair[0];
        assert!(
            more >= Span::nanos(11_500) && more <= Span::nanos(17_000),
            "{ways:?}"
        );
    }
    assert!(way(9, "desk-1") > ways[2]);
}

#[test]
fn a_datagram_takes_the_shortest_way() {
    // A ring of four subnets: from the first to the third there are two ways, and its host has the first turn.
    let mut text = String::new();
    for name in ["a", "b", "c", "d"] {
        text += &format!(
            "[[segment]]\nname = \"{name}\"\nnetwork = \"ethernet-100\"\nhosts = [\"{name}1\"]\n"
        );
    }
    for (name, joins) in [
        ("dc", "\"d\", \"c\""),
        ("ad", "\"a\", \"d\""),
        ("ab", "\"a\", \"b\""),
        ("bc", "\"b\", \"c\""),
    ] {
        text += &format!("[[router]]\nname = \"{name}\"\njoins = [{joins}]\n");
    }
    let mut network = Internetwork::new(&site(&text), 1).unwrap();
    let mut forwarded = |to: u16| {
        let before: Vec<_> = network.nodes().iter().map(|node| node.forwarded).collect();
        let now = network
            .poll_at()
            .unwrap_or(Instant::START + Span::secs(u64::from(to)));
        network.offer(now, frame(1, 0, to, 100));
        drain(&mut network);
        let after = network.nodes();
        before
            .iter()
            .zip(&after)
            .map(|(before, after)| after.forwarded - before)
            .collect::<Vec<_>>()
    };
    assert_eq!(forwarded(1), [0, 0, 1, 0]);
    assert_eq!(forwarded(2), [1, 1, 0, 0]);
    assert_eq!(forwarded(3), [0, 1, 0, 0]);
}

/// The bits of full frames that arrive in the second half of a time, where each of these senders sends to its receiver as fast as it can.
pub fn carried(site: &SiteSpec, pairs: &[(u16, u16)], len: u64, lasts: Span) -> u64 {
    let half = Instant::START + Span::picos(lasts.as_picos() / 2);
    let mut network = Internetwork::new(site, 1).unwrap();
    let (mut id, mut bits) = (0, 0);
    let mut offer = |network: &mut Internetwork, now, host: u16| {
        let Some((_, to)) = pairs.iter().find(|(from, _)| *from == host) else {
            return;
        };
        while network.ready(Port(host), Default::default()) {
            id += 1;
            if network.offer(now, frame(id, host, *to, len)) == Admission::Blocked {
                break;
            }
        }
    };
    for (from, _) in pairs {
        offer(&mut network, Instant::START, *from);
    }
    while let Some(at) = network
        .poll_at()
        .filter(|at| at.since(Instant::START) < lasts)
    {
        while let Some(event) = network.poll(at) {
            match event {
                Event::Deliver { at, to, .. } => {
                    assert!(pairs.iter().any(|(_, receiver)| *receiver == to.0));
                    bits += u64::from(at >= half) * len * 8;
                }
                Event::Ready { at, port, .. } => offer(&mut network, at, port.0),
                _ => {}
            }
        }
    }
    bits
}

#[test]
fn racks_share_the_lines_to_the_spines() {
    // Full frames of hosts of the first rack to hosts of the second: those with odd numbers take the one spine, the others the other.
    const LASTS: Span = Span::millis(20);
    let site = sonde_link::resolve_site("leaf-spine", &|_| unreachable!()).unwrap();
    let of = |hosts: &[u16]| {
        let pairs: Vec<_> = hosts.iter().map(|host| (*host, host + 4)).collect();
        carried(&site, &pairs, 1_500, LASTS)
    };
    let line = of(&[0]);
    for (hosts, lines) in [(&[0, 1][..], 2), (&[0, 2], 1), (&[0, 1, 2, 3], 2)] {
        let (seen, due) = (of(hosts), line * lines);
        assert!(
            seen.abs_diff(due) * 100 <= due * 3,
            "{hosts:?}: {seen} of {due}"
        );
    }
}

#[test]
fn a_router_s_rate_is_predicted_from_small_frames() {
    const LASTS: Span = Span::millis(400);
    // The last is that of Sandia's trial.
    for costs in [
        "frame_time = \"100us\"\nbyte_time = \"90ns\"",
        "frame_time = \"60us\"\nbyte_time = \"120ns\"",
        "frame_time = \"30us\"",
    ] {
        let site = site(&format!(
            "[[segment]]\nname = \"near\"\nnetwork = \"atm-oc3c\"\nhosts = [\"n[1-8]\"]\n\
             [[segment]]\nname = \"far\"\nnetwork = \"atm-oc3c\"\nhosts = [\"f[1-8]\"]\n\
             [[router]]\nname = \"aip\"\njoins = [\"near\", \"far\"]\n{costs}\n"
        ));
        let pairs: Vec<_> = (0..4_u16).map(|host| (host, host + 8)).collect();
        let rate = |len: u64| carried(&site, &pairs, len, LASTS) as f64 / 0.2;
        // What a frame takes, at two small sizes: a time, and one for each byte.
        let time = |len: u64| len as f64 * 8.0 / rate(len);
        let (small, larger) = (time(64), time(512));
        let each = ((larger - small) / 448.0).max(0.0);
        let line = 135.63e6;
        let due = (9_180.0 * 8.0 / (small + each * (9_180.0 - 64.0))).min(line);
        let seen = rate(9_180);
        assert!((seen / due - 1.0).abs() < 0.03, "{costs}: {seen} of {due}");
        // The study has at least 60 Mb/s through its router.
        assert!(seen >= 60e6, "{costs}: {seen}");
    }
}

/// A parallel machine whose hosts reach a cluster on ATM by so many gateways.
fn coupled(gateways: u16) -> SiteSpec {
    site(&format!(
        "[[segment]]\nname = \"inside\"\nnetwork = \"sp2\"\nhosts = [\"n[1-8]\"]\n\
         [[segment]]\nname = \"outside\"\nnetwork = \"atm-oc3c\"\nhosts = [\"c[1-8]\"]\n\
         [[router]]\nname = \"gate-[1-{gateways}]\"\njoins = [\"inside\", \"outside\"]\n"
    ))
}

#[test]
fn gateways_of_a_parallel_machine_carry_as_many_lines_as_they_are() {
    const LEN: u64 = 9_180;
    const SECOND: Span = Span::secs(1);
    // What one sender brings to one receiver over one gateway; the machine's own link is faster than the line of ATM.
    let carried = |gateways: u16, senders: u16| {
        let pairs: Vec<_> = (0..senders).map(|host| (host, host + 8)).collect();
        carried(&coupled(gateways), &pairs, LEN, SECOND * 2)
    };
    let line = carried(1, 1);
    assert!((130_000_000..140_000_000).contains(&line), "{line}");
    for (gateways, senders) in [(1, 8), (2, 8), (4, 8), (4, 2), (2, 1)] {
        let due = line * u64::from(gateways.min(senders));
        let seen = carried(gateways, senders);
        assert!(
            seen.abs_diff(due) * 100 <= due * 3,
            "{gateways} {senders}: {seen} of {due}"
        );
    }
}

#[test]
fn what_is_between_hosts_of_the_parallel_machine_is_on_no_other_network() {
    let site = sonde_link::resolve_site("lace-sp2", &|_| unreachable!()).unwrap();
    let called = |name: &str| host(&site, name);
    let subnets = site.subnets().unwrap();
    let port = |name: &str, segment: &str| {
        let own = subnets.ports_of(called(name)).iter().copied();
        let is_on =
            |port: &Port| site.segment[subnets.ends[usize::from(port.0)].segment].name == segment;
        own.into_iter().find(is_on).unwrap().0
    };
    let ends = |segment: &str| {
        let all = (0..).zip(&subnets.ends);
        let on = all.filter(|(_, end)| site.segment[end.segment].name == segment);
        on.map(|(port, _)| port).collect::<Vec<u16>>()
    };
    // Each sends to each inside; what ATM took and gave is counted at the lines of its hosts and at the gateways.
    let mut network = Internetwork::new(&site, 1).unwrap();
    let inside = ends("switch");
    assert_eq!((inside.len(), site.router.len()), (16, 2));
    let mut now = Instant::START;
    for (from, to) in inside
        .iter()
        .flat_map(|from| inside.iter().map(move |to| (*from, *to)))
    {
        if from != to {
            now = now + Span::millis(10);
            network.offer(now, frame(1, from, to, 60_000));
            assert_eq!(arrival(&drain(&mut network)).1, Port(to));
        }
    }
    let atm = ends("atm");
    let on_atm = |network: &Internetwork| {
        let ports = network.counters().ports;
        let of_hosts: u64 = atm
            .iter()
            .map(|port| ports[usize::from(*port)].taken + ports[usize::from(*port)].delivered)
            .sum();
        of_hosts
            + network
                .nodes()
                .iter()
                .map(|node| node.forwarded)
                .sum::<u64>()
    };
    assert_eq!(on_atm(&network), 0);
    // Two hosts of the machine have two gateways, and come out on ATM.
    for (name, to) in [("leather01", "lace17"), ("leather02", "lace18")] {
        network.offer(
            now + Span::secs(1),
            frame(2, port(name, "switch"), port(to, "atm"), 1_000),
        );
    }
    drain(&mut network);
    let forwarded: Vec<u64> = network.nodes().iter().map(|node| node.forwarded).collect();
    assert_eq!(forwarded, [1, 1]);
    assert_eq!(on_atm(&network), 4);
}

#[test]
fn a_full_router_loses() {
    let site = chain(
        &["ethernet-100", "ethernet-10:queue=3kB"],
        "buffer = \"4KiB\"",
    );
    let mut network = Internetwork::new(&site, 1).unwrap();
    for id in 0..40 {
        assert_eq!(
            network.offer(Instant::START, frame(id, 0, 2, 1_500)),
            Admission::Taken
        );
    }
    let events = drain(&mut network);
    let is_lost = |event: &&Event| {
        matches!(
            event,
            Event::Lost {
                to: Port(2),
                place: Place::Router,
                cause: Cause::Overflow,
                ..
            }
        )
    };
    // As a bridge: see `a_full_bridge_loses_for_those_behind_it`.
    assert_eq!(events.iter().filter(is_lost).count(), 33);
    assert_eq!(network.nodes()[0].dropped, 33);
}

#[test]
fn in_tandem_who_waits_waits_at_the_first() {
    // Two routers that take as long for each: the second gets each datagram when it is done with the one before.
    let site = chain(
        &["ethernet-1g"; 3],
        "frame_time = \"1ms\"\nbuffer = \"1GiB\"",
    );
    let trips = |to: u16| {
        let mut network = Internetwork::new(&site, 1).unwrap();
        let (mut now, mut random, mut begun) = (Instant::START, 1_u64, Vec::new());
        for id in 0..1_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            now = now + Span::micros((random >> 33) % 2_400);
            assert_eq!(network.offer(now, frame(id, 0, to, 64)), Admission::Taken);
            begun.push(now);
        }
        let events = drain(&mut network);
        let trip = |event: &Event| match *event {
            Event::Deliver { at, id, .. } => Some(at.since(begun[id.0 as usize])),
            _ => None,
        };
        events.iter().filter_map(trip).collect::<Vec<_>>()
    };
    let (one, two) = (trips(2), trips(4));
    assert_eq!((one.len(), two.len()), (1_000, 1_000));
    let least = *one.iter().min().unwrap();
    let waiting = one.iter().filter(|trip| **trip > least + Span::micros(500));
    assert!(waiting.count() > 200, "{least}");
    let more = two[0] - one[0];
    assert!(more > Span::millis(1));
    assert!(one.iter().zip(&two).all(|(one, two)| *two - *one == more));
}

#[test]
fn a_router_s_port_and_a_row_of_them_are_m_d_1_queues() {
    // The slowest server decides, wherever it stands: in a row of servers that take the same for each who waits for one does not wait for a
    // slower one behind it as long (Friedman 1965). So it is rho / (2 (1 - rho)) of the slow line's time for each.
    let queue = "buffer = \"1GiB\"";
    for networks in [
        &[
            "ethernet-1g:queue=1GiB",
            "ethernet-100:queue=1GiB:buffer=1GiB",
        ][..],
        &[
            "ethernet-1g:queue=1GiB",
            "ethernet-100:queue=1GiB:buffer=1GiB",
            "ethernet-1g:queue=1GiB:buffer=1GiB",
            "ethernet-100:queue=1GiB:buffer=1GiB",
        ],
    ] {
        let site = chain(networks, queue);
        let slow = site.segment[1].network.frame_time(Bytes(1_500));
        let last = 2 * networks.len() as u16 - 1;
        let (mean, half) = mean_wait(&site, (0, last), 1_500, slow);
        assert!(
            (mean - 0.5).abs() < half && half < 0.1,
            "{networks:?}: {mean} +- {half} where 0.5 are due"
        );
    }
}

#[test]
fn wrong_routers_are_told_with_their_line() {
    let two = "[[segment]]\nname = \"a\"\nnetwork = \"ethernet-10\"\nhosts = [\"x\"]\n\
        [[segment]]\nname = \"b\"\nnetwork = \"fddi\"\nhosts = [\"y\"]\n";
    let router = "[[router]]\nname = \"r\"\njoins = [\"a\", \"b\"]\n";
    assert!(
        parse_site(
            "test",
            &format!("name = \"t\"\nsummary = \"t\"\n{two}{router}"),
            &|_| unreachable!()
        )
        .is_ok()
    );
    for (text, said) in [
        (
            two.to_owned() + &router.replace("\"a\", ", ""),
            "line 13: a router joins two segments or more",
        ),
        (
            two.to_owned() + &router.replace("\"b\"", "\"c\""),
            "line 13: there is no segment `c`",
        ),
        (
            two.to_owned() + &router.replace("\"b\"", "\"b\", \"a\""),
            "line 13: segments `a` and `a` are of one subnet already",
        ),
        (
            two.to_owned() + &router.replace("\"r\"", "\"x\""),
            "line 12: there are two of the name `x`",
        ),
        (
            two.to_owned() + router + "ageing = \"1s\"\n",
            "unknown field `ageing`",
        ),
    ] {
        assert!(refused(&text).contains(said), "{text}\n{}", refused(&text));
    }
}

/// A random site of subnets, some of which may be virtual LANs, with hosts on one or several of them, and what is offered to it: after how many nanoseconds, from which port, to which (beyond
/// those of hosts: to all), how long, with which TTL.
type Scene = (String, Vec<(u64, u16, u16, u64, u8)>);

fn scenes() -> impl Strategy<Value = Scene> {
    let network = prop_oneof![
        Just("ethernet-10"),
        Just("ethernet-100:mtu=1000"),
        Just("fddi"),
        Just("ethernet-1g:buffer=4KiB")
    ];
    let maybe = prop::option::of(any::<prop::sample::Index>());
    let segment = (network, 1usize..4, any::<prop::sample::Index>(), maybe);
    let times = (0u64..200, 0u64..100, 0u64..100, 3u64..40);
    let offer = (
        0u64..2_000_000,
        any::<u16>(),
        any::<u16>(),
        60u64..1_500,
        1u8..6,
    );
    (prop::collection::vec(segment, 2..6), times, prop::collection::vec(offer, 1..60), any::<bool>()).prop_map(|(segments, times, offers, is_divided)| {
        let (mut text, mut hosts, mut more) = (String::new(), 0, 0);
        // The last ones may be virtual LANs.
        let own = segments.len() - if is_divided { 2 } else { 0 };
        if is_divided {
            text += "[[segment]]\nname = \"core\"\nnetwork = \"ethernet-100:mtu=1000\"\nhosts = []\n";
        }
        for (number, (network, count, _, also)) in segments.iter().enumerate() {
            // One of the hosts before may be here too.
            let also = also.filter(|_| hosts > 0).map(|also| also.index(hosts) + 1);
            more += usize::from(also.is_some());
            text += &format!(
                "[[segment]]\nname = \"s{number}\"\n{}\nhosts = [\"h[{}-{}]\"{}]\n",
                if number < own { format!("network = \"{network}\"") } else { "on = \"core\"".into() },
                hosts + 1,
                hosts + count,
                also.map_or_else(String::new, |also| format!(", \"h{also}\""))
            );
            hosts += count;
        }
        let (frame, byte, latency, buffer) = times;
        for (number, (_, _, to, _)) in segments.iter().enumerate().skip(1) {
            text += &format!(
                "[[router]]\nname = \"r{number}\"\njoins = [\"s{}\", \"s{number}\"]\nframe_time = \"{frame}us\"\nbyte_time = \"{byte}ns\"\n\
                 latency = \"{latency}us\"\nbuffer = \"{buffer}KiB\"\n",
                to.index(number)
            );
        }
        let hosts = (hosts + more) as u16;
        let offers = offers.into_iter().map(|(after, from, to, len, ttl)| (after, from % hosts, to % (hosts + 2), len, ttl));
        (text, offers.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_datagram_ends_once_and_passes_no_more_routers_than_its_ttl(scene in scenes()) {
        let site = site(&scene.0);
        let subnets = site.subnets().unwrap();
        let mut network = Internetwork::new(&site, 7).unwrap();
        let hosts = network.ends();
        let (mut now, mut taken, mut events) = (Instant::START, BTreeMap::new(), Vec::new());
        for (id, &(after, from, to, len, ttl)) in (0..).zip(&scene.1) {
            now = now + Span::nanos(after);
            while let Some(event) = network.poll(now) {
                events.push(event);
            }
            let [own, other] = [from, to.min(hosts - 1)].map(|port| subnets.of_port(Port(port)).unwrap());
            let frame = match subnets.gateway(0, own, other) {
                _ if to >= hosts => Frame { to: To::All, ..frame(id, from, 0, len) },
                Some(by) => routed(id, (from, by.0), to, ttl, len),
                None => frame(id, from, to, len),
            };
            let fits = len <= site.network_of(Port(from)).unwrap().mtu;
            if fits && network.ready(Port(from), Default::default()) && network.offer(now, frame) == Admission::Taken {
                taken.insert(id, (now, frame, ttl));
            }
        }
        events.extend(drain(&mut network));
        let (mut ends, mut ended) = (BTreeMap::<u64, usize>::new(), BTreeSet::new());
        let mut before = Instant::START;
        for event in &events {
            match *event {
                Event::Deliver { at, id, to, mark, edit } => {
                    let (begin, frame, ttl) = taken[&id.0];
                    prop_assert!(at >= before && at > begin && mark == Mark::Ok);
                    before = at;
                    *ends.entry(id.0).or_default() += 1;
                    match (frame.kind, edit) {
                        (Kind::Routed(routed), Edit::Routed { hops, .. }) => {
                            prop_assert!(to == routed.to && hops < ttl, "{event:?} {ttl}");
                        }
                        (Kind::Routed(_), Edit::Answer { .. }) => prop_assert_eq!(to, frame.from),
                        (Kind::Ip, edit) => prop_assert_eq!(edit, Edit::None),
                        _ => prop_assert!(false, "{:?} of {:?}", event, frame),
                    }
                }
                Event::Lost { at, id, .. } => {
                    prop_assert!(at >= before);
                    before = at;
                    *ends.entry(id.0).or_default() += 1;
                }
                Event::Done { id } => prop_assert!(ended.insert(id.0)),
                _ => {}
            }
        }
        for (id, (_, frame, _)) in &taken {
            prop_assert!(ended.contains(id), "{id} never ended");
            let due = match frame.to {
                To::One(_) => 1,
                _ => {
                    let own = subnets.of_port(frame.from);
                    (0..hosts).filter(|host| *host != frame.from.0 && subnets.of_port(Port(*host)) == own).count()
                }
            };
            prop_assert_eq!(ends.get(id).copied().unwrap_or(0), due, "{}", id);
        }
    }
}
