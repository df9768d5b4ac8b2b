//! The campus of Stuttgart: MAC switches between its rings, and the routers that were rejected.

use crate::router::carried;
use sonde_link::{SiteSpec, resolve_site};
use sonde_units::Span;

fn site(name: &str) -> SiteSpec {
    resolve_site(name, &|_| unreachable!()).unwrap()
}

#[test]
fn routers_in_place_of_mac_switches_carry_less_and_need_addresses() {
    let (switched, routed) = (site("rus-campus"), site("rus-campus-routed"));
    assert_eq!(switched.names(), routed.names());
    let subnets = |site: &SiteSpec| site.subnets().unwrap();
    assert_eq!(subnets(&switched).count(), 1);
    assert_eq!(subnets(&routed).count(), 25);
    // Six rings send to six others of the same switch, all at once: four hosts a ring, in the order of the rings.
    const LEN: u64 = 4_352;
    let pairs: Vec<_> = (0..6).map(|ring| (ring * 4, (ring + 6) * 4)).collect();
    let rate = |site: &SiteSpec| {
        let half_s = carried(site, &pairs, LEN, Span::secs(1)) as f64;
        half_s * 2.0
    };
    let (by_mac, by_ip) = (rate(&switched), rate(&routed));
    // A MAC switch has all rings at full speed; a router as many datagrams as its one processor, however many rings there are.
    let ring = 100e6 * 6.0;
    assert!(by_mac > 0.93 * ring && by_mac < ring, "{by_mac}");
    let most = 10_000.0 * LEN as f64 * 8.0;
    assert!((by_ip / most - 1.0).abs() < 0.01, "{by_ip} of {most}");
}

#[test]
fn a_router_s_processor_holds_back_faster_hosts() {
    // Hosts of three ages, and one router between: 10,000 datagrams per second.
    const LEN: u64 = 1_500;
    let rates = |network: &str| {
        let segment = |name: &str| {
            format!(
                "[[segment]]\nname = \"{name}\"\nnetwork = \"{network}\"\nhosts = [\"{name}-[1-2]\"]\n"
            )
        };
        let router = "[[router]]\nname = \"r\"\njoins = [\"a\", \"b\"]\nframe_time = \"100us\"\n";
        let site = crate::site::site(&(segment("a") + &segment("b") + router));
        let rate = |pair| carried(&site, &[pair], LEN, Span::millis(400)) as f64 * 5.0;
        (rate((0, 1)), rate((0, 2)))
    };
    let (old, new, newest) = (
        rates("ethernet-10"),
        rates("ethernet-100"),
        rates("ethernet-1g"),
    );
    // What two hosts of a segment reach grows with them; what passes the router stays.
    assert!(new.0 > 9.0 * old.0 && newest.0 > 9.0 * new.0);
    let most = 10_000.0 * LEN as f64 * 8.0;
    assert!((old.1 / old.0 - 1.0).abs() < 0.02, "{old:?}");
    assert!(
        new.1 < new.0 * 1.001 && (newest.1 / most - 1.0).abs() < 0.02,
        "{new:?} {newest:?}"
    );
}

/// SCI rings as a mesh (C45): four rings, of which each two that are side by side have a router between them.
#[test]
fn rings_are_a_mesh_of_packet_switches() {
    let mut text = String::new();
    for ring in ["r00", "r01", "r11", "r10"] {
        text += &format!(
            "[[segment]]\nname = \"{ring}\"\nnetwork = \"sci-sbus\"\nhosts = [\"{ring}-[1-2]\"]\n"
        );
    }
    for (number, between) in [
        "r00\", \"r01",
        "r01\", \"r11",
        "r11\", \"r10",
        "r10\", \"r00",
    ]
    .iter()
    .enumerate()
    {
        text += &format!("[[router]]\nname = \"x{number}\"\njoins = [\"{between}\"]\n");
    }
    let mesh = crate::site::site(&text);
    let subnets = mesh.subnets().unwrap();
    let nodes = |from: u16, to: u16| {
        let (from, to) = subnets.between(from, to).unwrap();
        subnets.segments(from, to).unwrap().len() - 1
    };
    // Hosts 0 and 1 are on the first ring, 2 and 3 on the next, and so round.
    assert_eq!(
        [nodes(0, 1), nodes(0, 2), nodes(0, 6), nodes(0, 4)],
        [0, 1, 1, 2]
    );
    // To the ring across hosts take turns by their numbers: one goes by each side.
    let across = |from: u16| {
        let (from, to) = subnets.between(from, 4).unwrap();
        subnets.segments(from, to).unwrap()[1]
    };
    assert_ne!(across(0), across(1));
    let rate = |pairs: &[(u16, u16)]| carried(&mesh, pairs, 1_500, Span::millis(100));
    let one = rate(&[(0, 2)]);
    let near = |rate: u64, times: u64| rate.abs_diff(times * one) * 50 < times * one;
    // Each router has its own, all round.
    let round = rate(&[(0, 2), (2, 4), (4, 6), (6, 0)]);
    assert!(near(round, 4), "{round} {one}");
    let both = rate(&[(0, 4), (1, 5)]);
    assert!(near(both, 2), "{both} {one}");
}
