//! Hosts on several segments: networks beside each other, halves of a cluster on unlike networks, and files that are wrong.

use crate::site::{drain, frame, refused, site};
use sonde_link::ledger::{Entry, Header, Reader, Writer};
use sonde_link::{
    Admission, Event, Internetwork, Network, NetworkSpec, Port, SiteSpec, join, resolve,
    resolve_site,
};
use sonde_units::{Instant, Span};
use std::collections::BTreeSet;

fn named(name: &str) -> NetworkSpec {
    resolve(name, &|_| unreachable!()).unwrap()
}

/// The deliveries: when, which frame, at which port.
fn came(network: &mut Internetwork) -> Vec<(Instant, u64, u16)> {
    let of = |event: &Event| match *event {
        Event::Deliver { at, id, to, .. } => Some((at, id.0, to.0)),
        _ => None,
    };
    drain(network).iter().filter_map(of).collect()
}

#[test]
fn hosts_are_on_each_and_none_disturbs_another() {
    let networks = ["ethernet-100:rate=10Mbit", "ethernet-100"].map(named);
    let site = SiteSpec::parallel(networks.to_vec(), 2);
    let run = |frames: &[(u64, u16, u16)]| {
        let mut network = Internetwork::new(&site, 0).unwrap();
        for (id, from, to) in frames {
            let taken = network.offer(Instant::START, frame(*id, *from, *to, 1_000));
            assert_eq!(taken, Admission::Taken);
        }
        let arrivals = came(&mut network);
        assert!(arrivals.is_sorted_by_key(|(at, ..)| at));
        (arrivals, network.counters())
    };
    let (alone, _) = run(&[(1, 2, 3)]);
    // Ten more on the other network change nothing on this one.
    let mut frames = vec![(1, 2, 3)];
    frames.extend((2..12).map(|id| (id, 0, 1)));
    let (all, counters) = run(&frames);
    assert_eq!((all.len(), all[0]), (11, alone[0]));
    assert_eq!(counters.ports[3].delivered, 1);
    assert_eq!(counters.ports[1].delivered, 10);
    // From one network to the other there is no way.
    let (none, counters) = run(&[(1, 0, 3)]);
    assert!(none.is_empty(), "{none:?}");
    assert_eq!((counters.ports[3].delivered, counters.lost_total()), (0, 1));
}

#[test]
fn each_network_has_draws_of_its_own() {
    let site = SiteSpec::parallel(vec![named("ethernet-100"); 2], 2);
    let mut network = Internetwork::new(&site, 0).unwrap();
    for number in 0..2 {
        let loss = "loss all 50%".parse().unwrap();
        network.command_on(Instant::START, number, loss).unwrap();
    }
    let mut came = [Vec::new(), Vec::new()];
    for id in 0..64 {
        let now = Instant::START + Span::millis(id);
        for from in [0, 2] {
            network.offer(now, frame(id, from, from + 1, 1_000));
        }
        while let Some(event) = network.poll(now + Span::micros(999)) {
            if let Event::Deliver { to, .. } = event {
                came[usize::from(to.0 / 2)].push(id);
            }
        }
    }
    assert!((8..56).contains(&came[0].len()));
    assert_ne!(came[0], came[1]);
}

/// Two halves of four hosts on networks of their own, all on a third one.
const HALVES: &str = "[[segment]]\nname = \"all\"\nnetwork = \"ethernet-10\"\nhosts = [\"x[1-4]\"]\n\
     [[segment]]\nname = \"low\"\nnetwork = \"fddi\"\nhosts = [\"x[1-2]\"]\n\
     [[segment]]\nname = \"high\"\nnetwork = \"atm-oc3c\"\nhosts = [\"x[3-4]\"]\n";

#[test]
fn a_command_is_for_the_interfaces_of_a_number() {
    let site = site(HALVES);
    let mut network = Internetwork::new(&site, 0).unwrap();
    let now = Instant::START;
    let mut tell = |number, text: &str| network.command_on(now, number, text.parse().unwrap());
    // eth1 of the halves is on two segments, each of which loses all.
    tell(1, "loss all 100%").unwrap();
    tell(1, "link x1 down".replace("x1", "h1").as_str()).unwrap();
    let refused = tell(1, "cut h1 h3 on").unwrap_err().to_string();
    assert!(refused.contains("no segment that both are on"), "{refused}");
    let refused = tell(2, "link h1 down").unwrap_err().to_string();
    assert!(
        refused.contains("no interface of this number there"),
        "{refused}"
    );
    assert!(tell(2, "loss all 1%").is_err() && tell(0, "link h5 down").is_err());
    tell(0, "cut h1 h3 on").unwrap();
    for (id, (from, to)) in [(0, 1), (2, 3), (4, 5), (6, 7)].into_iter().enumerate() {
        network.offer(now, frame(id as u64, from, to, 100));
    }
    let arrived: BTreeSet<u64> = came(&mut network)
        .into_iter()
        .map(|(_, id, _)| id)
        .collect();
    assert_eq!(arrived, BTreeSet::from([0, 1]));
    // One network alone has the first number.
    let alone = SiteSpec::single(named("ethernet-10"), 2);
    let mut alone = join(&alone, 0, Vec::new()).unwrap();
    assert!(
        alone
            .command_on(now, 0, "link h1 down".parse().unwrap())
            .is_ok()
    );
    assert!(
        alone
            .command_on(now, 1, "link h1 down".parse().unwrap())
            .is_err()
    );
}

#[test]
fn half_of_the_cluster_has_one_network_and_half_another() {
    let site = resolve_site("lace", &|_| unreachable!()).unwrap();
    assert_eq!(site.count(), 32);
    let on = |network: &str| {
        let is_of = |one: &&sonde_link::Segment| one.network.name == network;
        let all = site.segment.iter().filter(is_of);
        all.map(|one| one.hosts.len()).collect::<Vec<_>>()
    };
    assert_eq!(on("ethernet-10"), [32, 32]);
    for half in ["fddi", "fc-266", "allnode", "atm-oc3c"] {
        assert_eq!(on(half), [16], "{half}");
    }
    // Each pair of hosts of a segment reaches each other there, and no other host does.
    let subnets = site.subnets().unwrap();
    assert_eq!((subnets.ends.len(), subnets.count()), (2 * 32 + 4 * 16, 6));
    let mut network = Internetwork::new(&site, 1).unwrap();
    let mut now = Instant::START;
    for (number, segment) in site.segment.iter().enumerate() {
        let here = (0..)
            .zip(&subnets.ends)
            .filter(|(_, end)| end.segment == number);
        let here: Vec<u16> = here.map(|(port, _)| port).collect();
        assert_eq!(here.len(), segment.hosts.len());
        for pair in here.windows(2) {
            now = now + Span::secs(1);
            network.offer(now, frame(1, pair[0], pair[1], 1_000));
            let came = came(&mut network);
            assert_eq!(came.len(), 1, "{} {pair:?}", segment.name);
            assert_eq!(came[0].2, pair[1]);
        }
    }
    // From half to half by Ethernet, inside a half by that too: its name is first.
    for (from, to) in [(0, 31), (0, 1), (30, 31)] {
        assert_eq!(subnets.between(from, to), Some((Port(from), Port(to))));
    }
    assert!(
        site.network()
            .is_some_and(|network| network.name == "ethernet-10")
    );
}

#[test]
fn a_host_sends_by_its_nearest_interface() {
    // far - r2 - middle - r1 - near; one host is on near and far.
    let text = "[[segment]]\nname = \"near\"\nnetwork = \"ethernet-10\"\nhosts = [\"a\", \"both\"]\n\
         [[segment]]\nname = \"middle\"\nnetwork = \"ethernet-10\"\nhosts = [\"b\"]\n\
         [[segment]]\nname = \"far\"\nnetwork = \"ethernet-10\"\nhosts = [\"both\", \"c\"]\n\
         [[router]]\nname = \"r1\"\njoins = [\"near\", \"middle\"]\n[[router]]\nname = \"r2\"\njoins = [\"middle\", \"far\"]\n";
    let site = site(text);
    // a, both, b and c have the ports 0 to 3, and both has 4 on far.
    let subnets = site.subnets().unwrap();
    assert_eq!(site.names(), ["a", "both", "b", "c"]);
    let between = |from, to| subnets.between(from, to).map(|(from, to)| (from.0, to.0));
    assert_eq!(between(3, 1), Some((3, 4)));
    assert_eq!(between(1, 3), Some((4, 3)));
    assert_eq!(between(1, 2), Some((1, 2)));
    assert_eq!(between(0, 1), Some((0, 1)));
    assert_eq!(between(1, 1), Some((1, 1)));
    assert_eq!(between(0, 9), None);
    // It sends nothing on for others: from a to c there are two routers.
    let mut network = Internetwork::new(&site, 1).unwrap();
    network.offer(Instant::START, frame(1, 0, 3, 100));
    assert_eq!(came(&mut network).len(), 1);
    let forwarded: Vec<u64> = network.nodes().iter().map(|node| node.forwarded).collect();
    assert_eq!(forwarded, [1, 1]);
}

#[test]
fn a_ledger_keeps_the_interface_of_a_command() {
    let header = Header {
        site: site(HALVES),
        seed: 1,
    };
    let entry = Entry::Command {
        at: Instant::START,
        number: 1,
        command: "link h4 down".parse().unwrap(),
    };
    let mut ledger = Writer::new(Vec::new(), &header).unwrap();
    ledger.append(&entry).unwrap();
    // eth1 of the last host, which is behind the ports of all eth0.
    let frame = frame(1, 7, 6, 100);
    let offer = Entry::Offer {
        at: Instant::START,
        frame,
        admission: Admission::Taken,
    };
    ledger.append(&offer).unwrap();
    let bytes = ledger.end(Instant::START).unwrap();
    let read: Vec<_> = Reader::new(bytes.as_slice())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(
        matches!(read[0], Entry::Command { number: 1, .. }),
        "{read:?}"
    );
    assert!(matches!(read[1], Entry::Offer { frame, .. } if frame.from == Port(7)));
    assert_eq!(read.len(), 3);
}

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    let segment = |name: &str, hosts: &str| {
        format!("[[segment]]\nname = \"{name}\"\nnetwork = \"ethernet-10\"\nhosts = [{hosts}]\n")
    };
    let (ab, bc) = (segment("ab", "\"a\", \"b\""), segment("bc", "\"b\", \"c\""));
    let bridge = "[[bridge]]\nname = \"x\"\njoins = [\"ab\", \"bc\"]\n";
    for (text, said) in [
        (
            segment("ab", "\"a\", \"b\", \"b\""),
            "line 6: host `b` is named twice: it is once on a segment",
        ),
        (
            ab.clone() + &bc + bridge,
            "line 10: host `b` is on segments `ab` and `bc`, which bridges join: name it on one of them",
        ),
        // Who is on both sends nothing on.
        (
            ab.clone() + &bc,
            "line 8: nothing leads from host `a` to segment `bc`, where host `c` is",
        ),
        (
            segment("x", "\"a\", \"b\", \"a-y\"") + &segment("y", "\"a\", \"b\", \"a-y\""),
            "host `a` is called `a-y` there, as something else is",
        ),
        (
            segment("eth1", "\"h[1-2]\"") + &segment("eth0", "\"h[1-2]\""),
            "host `h1` is called `h1-eth0` there, as something else is",
        ),
    ] {
        assert!(refused(&text).contains(said), "{text}\n{}", refused(&text));
    }
    // More interfaces of routers than ports have numbers.
    let many: String = (0..65)
        .map(|n| segment(&format!("s{n}"), &format!("\"x{n}\"")))
        .collect();
    let names: Vec<String> = (0..65).map(|n| format!("\"s{n}\"")).collect();
    let routers = format!(
        "[[router]]\nname = \"r[1-1024]\"\njoins = [{}]\n",
        names.join(", ")
    );
    assert!(refused(&(many + &routers)).contains("at most 16384 interfaces together"));
    assert_eq!(site(&(ab + &segment("ac", "\"a\", \"b\""))).count(), 2);
}
