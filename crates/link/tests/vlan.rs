//! Virtual LANs on one network, hosts that send on, and the two together: a star of circuits.

use crate::router::{carried, chain, routed};
use crate::site::{drain, frame, refused, site};
use sonde_link::{
    Edit, Event, FlowControl, Frame, Internetwork, Network, Port, SiteSpec, To, parse_site,
    resolve, resolve_site,
};
use sonde_units::{Instant, Span};

/// A segment on which all hosts reach each other.
const ALL: &str = "[[segment]]\nname = \"all\"\nnetwork = \"ethernet-10\"\nhosts = [\"a1\", \"a2\", \"b1\", \"b2\", \"server\"]\n";

/// Two virtual LANs of two hosts each on a network, with a server that is on both.
fn divided(network: &str) -> SiteSpec {
    site(&format!(
        "[[segment]]\nname = \"core\"\nnetwork = \"{network}\"\nhosts = []\n{ALL}\
         [[segment]]\nname = \"a\"\non = \"core\"\nhosts = [\"a1\", \"a2\", \"server\"]\n\
         [[segment]]\nname = \"b\"\non = \"core\"\nhosts = [\"b1\", \"server\", \"b2\"]\n"
    ))
}

/// The port of a host on a segment.
fn port(site: &SiteSpec, host: &str, segment: &str) -> u16 {
    let names = site.names();
    let is_so = |end: &sonde_link::HostPort| {
        (
            names[usize::from(end.host)],
            &*site.segment[end.segment].name,
        ) == (host, segment)
    };
    site.ends().iter().position(is_so).expect(host) as u16
}

/// Where a frame came, in the order of the ports.
fn reached(network: &mut Internetwork) -> Vec<u16> {
    let events = drain(network);
    let of = |event: &Event| match event {
        Event::Deliver { to, .. } => Some(to.0),
        Event::Lost { .. } => panic!("{event:?}"),
        _ => None,
    };
    let mut all: Vec<u16> = events.iter().filter_map(of).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_frame_for_all_stays_in_its_virtual_lan() {
    let two = include_str!("../../../plans/examples/networks/two-switches.toml");
    let network = |name: &str| resolve(name, &|_| Ok(two.into())).unwrap();
    let mut paused = network("./two-switches.toml");
    paused.switch.as_mut().unwrap().flow_control = FlowControl::Pause;
    for network in [
        network("ethernet-100"),
        network("./two-switches.toml"),
        paused,
        network("atm-oc3c:encapsulation=lane:mtu=1500"),
    ] {
        let mut site = divided("ethernet-100");
        for segment in site.segment.iter_mut().filter(|one| one.name != "all") {
            segment.network = network.clone();
        }
        let name = &network.name;
        let at = |host, segment| port(&site, host, segment);
        let mut network = Internetwork::new(&site, 1).unwrap();
        let mut now = Instant::START;
        for (from, want) in [
            (at("a1", "a"), [at("a2", "a"), at("server", "a")]),
            (at("server", "a"), [at("a1", "a"), at("a2", "a")]),
            (at("server", "b"), [at("b1", "b"), at("b2", "b")]),
            (at("b2", "b"), [at("b1", "b"), at("server", "b")]),
        ] {
            for to in [To::All, To::Unknown] {
                now = now + Span::secs(1);
                network.offer(
                    now,
                    Frame {
                        to,
                        ..frame(1, from, 0, 200)
                    },
                );
                let mut want = want.to_vec();
                want.sort_unstable();
                assert_eq!(reached(&mut network), want, "{name} {from}");
            }
        }
        // Nothing of the other's was on a line: each host of a had what was for it.
        let counters = network.counters();
        assert_eq!(
            counters.ports[usize::from(at("b1", "b"))].delivered,
            4,
            "{name}"
        );
        // Each reaches the server by its own.
        for (from, to) in [("a2", "a"), ("b1", "b")] {
            now = now + Span::secs(1);
            network.offer(now, frame(2, at(from, to), at("server", to), 200));
            assert_eq!(reached(&mut network), [at("server", to)], "{name}");
        }
    }
}

#[test]
fn virtual_lans_of_a_host_share_its_line() {
    let lasts = Span::millis(200);
    let rate = |site: &SiteSpec, pairs: &[(&str, &str, &str)]| {
        let ports = pairs
            .iter()
            .map(|(from, to, on)| (port(site, from, on), port(site, to, on)));
        carried(site, &ports.collect::<Vec<_>>(), 1_500, lasts)
    };
    let one = divided("ethernet-100");
    let (a, b) = (("server", "a1", "a"), ("server", "b1", "b"));
    let alone = rate(&one, &[a]);
    let both = rate(&one, &[a, b]);
    assert!(both.abs_diff(alone) * 100 < alone, "{both} {alone}");
    // With a line to each it is twice as much.
    let two = site(&format!(
        "{ALL}[[segment]]\nname = \"a\"\nnetwork = \"ethernet-100\"\nhosts = [\"a1\", \"server\"]\n\
         [[segment]]\nname = \"b\"\nnetwork = \"ethernet-100\"\nhosts = [\"b1\", \"server\"]\n",
    ));
    let both = rate(&two, &[a, b]);
    assert!(both.abs_diff(2 * alone) * 100 < alone, "{both} {alone}");
    // Hosts with a line each do not meet, whatever they are on.
    let apart = rate(&one, &[("a1", "a2", "a"), ("b1", "b2", "b")]);
    assert!(apart.abs_diff(2 * alone) * 100 < alone, "{apart} {alone}");
}

/// A parallel machine of four nodes with file servers outside (S52): ATM carries messages among nodes and files at once, by one line a node;
/// with the machine's own switch for messages each has its line.
#[test]
fn one_technology_carries_messages_and_files_by_one_line_a_node() {
    const OUTSIDE: &str =
        "[[segment]]\nname = \"atm\"\nnetwork = \"atm-oc3c\"\nhosts = [\"n[1-4]\", \"s[1-4]\"]\n";
    const INSIDE: &str =
        "[[segment]]\nname = \"switch\"\nnetwork = \"sp2\"\nhosts = [\"n[1-4]\"]\n";
    let (one, two) = (site(OUTSIDE), site(&format!("{OUTSIDE}{INSIDE}")));
    let names: Vec<_> = ["n1", "n2", "n3", "n4", "s1", "s2", "s3", "s4"].to_vec();
    let messages = |on| (0..4).map(move |at| (at, (at + 1) % 4, on));
    let files = (0..4).map(|at| (at, at + 4, "atm"));
    let rate = |site: &SiteSpec, pairs: Vec<(usize, usize, &str)>| {
        let ports = pairs.iter().map(|(from, to, on)| {
            let at = |host: usize| port(site, names[host], on);
            (at(*from), at(*to))
        });
        carried(site, &ports.collect::<Vec<_>>(), 1_500, Span::millis(100))
    };
    let near = |one: u64, other: u64| one.abs_diff(other) * 100 < other;
    let line = rate(&one, messages("atm").take(1).collect());
    let alone = rate(&one, messages("atm").collect());
    assert!(near(alone, 4 * line), "{alone} {line}");
    assert!(near(rate(&one, files.clone().collect()), 4 * line));
    let both = rate(&one, messages("atm").chain(files.clone()).collect());
    assert!(near(both, 4 * line), "{both} {line}");
    let inside = rate(&two, messages("switch").collect());
    let apart = rate(&two, messages("switch").chain(files).collect());
    assert!(near(apart, inside + 4 * line), "{apart} {inside} {line}");
    // What it saves is an interface and a line a node, and a second technology.
    let lines = |site: &SiteSpec| site.subnets().unwrap().lines().0;
    assert_eq!((lines(&one), lines(&two)), (8, 12));
}

#[test]
fn a_router_of_virtual_lans_has_one_line() {
    let with = |segments: &str| {
        site(&format!(
            "{segments}[[router]]\nname = \"r\"\njoins = [\"a\", \"b\"]\n"
        ))
    };
    let one = with(
        "[[segment]]\nname = \"core\"\nnetwork = \"ethernet-100\"\nhosts = []\n\
         [[segment]]\nname = \"a\"\non = \"core\"\nhosts = [\"a1\", \"a2\"]\n\
         [[segment]]\nname = \"b\"\non = \"core\"\nhosts = [\"b1\", \"b2\"]\n",
    );
    let two = with(
        "[[segment]]\nname = \"a\"\nnetwork = \"ethernet-100\"\nhosts = [\"a1\", \"a2\"]\n\
         [[segment]]\nname = \"b\"\nnetwork = \"ethernet-100\"\nhosts = [\"b1\", \"b2\"]\n",
    );
    // There and back over the router: it hears both on one line, or each on its own.
    let rate = |site| carried(site, &[(0, 2), (3, 1)], 1_500, Span::millis(200));
    let (on_one, on_two) = (rate(&one), rate(&two));
    assert!(
        on_two.abs_diff(2 * on_one) * 50 < on_two,
        "{on_one} {on_two}"
    );
    assert_eq!(two.subnets().unwrap().lines(), (4, 6));
    assert_eq!(one.subnets().unwrap().lines(), (4, 5));
}

#[test]
fn a_host_sends_on_and_in_a_lab_its_kernel_does() {
    let text = "[[segment]]\nname = \"a\"\nnetwork = \"ethernet-100\"\nhosts = [\"x\"]\n\
        [[segment]]\nname = \"b\"\nnetwork = \"ethernet-100\"\nhosts = [\"way\"]\n\
        [[segment]]\nname = \"c\"\nnetwork = \"ethernet-100\"\nhosts = [\"way\", \"y\"]\n\
        [[router]]\nname = \"r\"\njoins = [\"a\", \"b\"]\n\
        [[router]]\nname = \"way\"\njoins = [\"b\", \"c\"]\nby = \"host\"\n";
    let site = site(text);
    let at = |host, segment| port(&site, host, segment);
    let (x, y, near, far) = (at("x", "a"), at("y", "c"), at("way", "b"), at("way", "c"));
    let mut network = Internetwork::new(&site, 1).unwrap();
    let came = |network: &mut Internetwork| {
        let events = drain(network);
        let of = |event: &Event| match *event {
            Event::Deliver { at, to, edit, .. } => Some((at, to.0, edit)),
            Event::Lost { .. } => panic!("{event:?}"),
            _ => None,
        };
        events.iter().filter_map(of).collect::<Vec<_>>()
    };
    // Under the virtual clock three lines, each as long as one, and nothing for the host.
    network.offer(Instant::START, frame(1, x, y, 1_000));
    let all = came(&mut network);
    let hops = Edit::Routed {
        by: Port(far),
        hops: 2,
        piece: None,
    };
    assert_eq!(all[0].1, y);
    assert_eq!(all[0].2, hops);
    let three = all[0].0.since(Instant::START);
    let later = Instant::START + Span::secs(1);
    network.offer(later, frame(2, far, y, 1_000));
    assert_eq!(came(&mut network)[0].0.since(later) * 3, three);
    // What is for the far one of its own interfaces ends there.
    let later = later + Span::secs(1);
    network.offer(later, frame(5, x, far, 1_000));
    let all = came(&mut network);
    assert_eq!((all.len(), all[0].1), (1, far));
    // A datagram of a lab: the router gives it to the host, which sends it on anew.
    let later = later + Span::secs(1);
    let router = site.ends().len() as u16;
    network.offer(later, routed(3, (x, router), y, 64, 1_000));
    let all = came(&mut network);
    let hops = Edit::Routed {
        by: Port(router + 1),
        hops: 1,
        piece: None,
    };
    assert_eq!((all.len(), all[0].1, all[0].2), (1, near, hops));
    // What is for the host itself stays there, under either clock.
    let later = later + Span::secs(1);
    network.offer(later, frame(4, x, near, 500));
    assert_eq!(came(&mut network)[0].1, near);
    assert_eq!(network.nodes()[1].forwarded, 1);
}

#[test]
fn a_star_of_circuits_carries_all_twice_by_its_hub() {
    let star = resolve_site("upc-saba", &|_| unreachable!()).unwrap();
    let mesh = {
        let text = include_str!("../../../plans/examples/networks/upc.toml");
        let file = "name = \"mesh\"\nsummary = \"mesh\"\n[[segment]]\nname = \"atm\"\nnetwork = \"./upc.toml\"\n\
            hosts = [\"ultra-1\", \"ultra-2\", \"ultra-3\", \"ss20\"]\n[[segment]]\nname = \"other\"\nnetwork = \"ethernet-10\"\nhosts = [\"ultra-1\"]\n";
        parse_site("mesh", file, &|_| Ok(text.into())).unwrap()
    };
    // From leaf to leaf, and the bits that three leaves send round: 2 to 3, 3 to 4, 4 to 2.
    let of = |site: &SiteSpec| {
        let subnets = site.subnets().unwrap();
        let way = |from: u16, to: u16| {
            let (a, b) = subnets.between(from, to).unwrap();
            (a.0, b.0)
        };
        let mut network = Internetwork::new(site, 1).unwrap();
        let (from, to) = way(1, 2);
        network.offer(Instant::START, frame(1, from, to, 9_180));
        let events = drain(&mut network);
        let at = events.iter().find_map(|event| match *event {
            Event::Deliver { at, .. } => Some(at.since(Instant::START)),
            _ => None,
        });
        let pairs = [way(1, 2), way(2, 3), way(3, 1)];
        (at.unwrap(), carried(site, &pairs, 9_180, Span::millis(400)))
    };
    let ((hub, round_star), (direct, round_mesh)) = (of(&star), of(&mesh));
    let ratio = hub.as_picos() as f64 / direct.as_picos() as f64;
    assert!((1.9..2.1).contains(&ratio), "{hub} {direct}");
    // All three pass the hub's one line, once in and once out.
    let share = round_mesh as f64 / round_star as f64;
    assert!((2.85..3.15).contains(&share), "{round_mesh} {round_star}");
    // Leaves have no circuit to each other: what one sends past the hub is refused.
    assert_eq!(star.subnets().unwrap().lines(), (4, 4));
}

#[test]
fn wrong_virtual_lans_are_told_with_their_line() {
    let core = "[[segment]]\nname = \"core\"\nnetwork = \"ethernet-100\"\nhosts = []\n";
    let lan = |name: &str, more: &str| {
        format!(
            "[[segment]]\nname = \"{name}\"\non = \"core\"\nhosts = [\"{name}1\", \"{name}2\"]\n{more}"
        )
    };
    let two = core.to_owned() + &lan("a", "") + &lan("b", "");
    let router = "[[router]]\nname = \"r\"\njoins = [\"a\", \"b\"]\n";
    site(&(two.clone() + router));
    for (text, said) in [
        (
            two.clone(),
            "line 12: nothing leads from host `a1` to segment `b`",
        ),
        (
            two.replace(
                "on = \"core\"\nhosts = [\"b1\"",
                "on = \"gore\"\nhosts = [\"b1\"",
            ),
            "line 13: there is no segment `gore` with a network of its own before this one",
        ),
        (
            two.replace(
                "on = \"core\"\nhosts = [\"b1\"",
                "on = \"a\"\nhosts = [\"b1\"",
            ),
            "line 13: there is no segment `a` with a network of its own",
        ),
        (
            two.replace("on = \"core\"\nhosts = [\"b1\"", "hosts = [\"b1\""),
            "segment `b` has no network",
        ),
        (
            core.to_owned() + &lan("a", "network = \"fddi\"\n"),
            "leave `network` out",
        ),
        (
            two.replace("ethernet-100", "ethernet-10") + router,
            "all stations of segment `core` (ethernet-10) hear each frame",
        ),
        (
            two.clone() + &router.replace("\"a\"", "\"core\""),
            "segment `core` is divided into virtual LANs: name one of them, such as `a`",
        ),
        (
            two.clone() + "[[bridge]]\nname = \"r\"\njoins = [\"a\", \"b\"]\n",
            "bridges join `a` and `b`, which would be one",
        ),
        (
            two.clone() + "[[segment]]\nname = \"c\"\nnetwork = \"fddi\"\nhosts = [\"c1\"]\n",
            "segment `c` stands behind a virtual LAN",
        ),
        (
            two.clone() + router + "by = \"host\"\n",
            "`r` is not the name of a host",
        ),
        (
            two.replace("\"a2\"", "\"way\"")
                + &router.replace("\"r\"", "\"way\"")
                + "by = \"host\"\n",
            "host `way` is not on segment `b`",
        ),
        (
            two.replace("\"a2\"", "\"way\"")
                .replace("\"b2\"", "\"way\"")
                + &router.replace("\"r\"", "\"way\"")
                + "by = \"host\"\nframe_time = \"1us\"\n",
            "leave `frame_time`, `byte_time`, `latency` and `buffer` out",
        ),
        (
            two.replace("\"a2\"", "\"way\"")
                .replace("\"b2\"", "\"way\"")
                + &(router.replace("\"r\"", "\"way\"") + "by = \"host\"\n").repeat(2),
            "host `way` is a router twice",
        ),
        (
            two.replace("\"a2\"", "\"way\"") + &router.replace("\"r\"", "\"way\""),
            "there are two of the name `way`: give one another, or write `by = \"host\"`",
        ),
    ] {
        assert!(refused(&text).contains(said), "{text}\n{}", refused(&text));
    }
    // A knob is of the network, not of a virtual LAN on it.
    let refused = resolve_site("upc-saba:to-2.rate=10Mbit", &|_| unreachable!()).unwrap_err();
    assert!(refused.to_string().contains("there are atm"), "{refused}");
    assert!(resolve_site("upc-saba:atm.rate=10Mbit", &|_| unreachable!()).is_ok());
    // A row of routers has as many lines as interfaces.
    assert_eq!(chain(&["fddi"; 3], "").subnets().unwrap().lines(), (6, 10));
}
