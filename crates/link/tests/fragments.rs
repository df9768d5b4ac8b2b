//! Fragments that routers and bridges make of datagrams, and those of the source.

use crate::router::{chain, routed, row};
use crate::site::{drain, frame, site};
use proptest::prelude::*;
use sonde_link::{
    Cause, Edit, Event, Frame, Internetwork, Kind, Network, Piece, Place, Port, Routed, SiteSpec,
    To,
};
use sonde_units::Instant;

/// The same, which may be cut up.
fn cuttable(id: u64, from: (u16, u16), to: u16, ttl: u8, len: u64) -> Frame {
    let frame = routed(id, from, to, ttl, len);
    match frame.kind {
        Kind::Routed(whole) => Frame {
            kind: Kind::Routed(Routed {
                is_whole: false,
                ..whole
            }),
            ..frame
        },
        _ => frame,
    }
}

/// What came of a datagram, in its order: when, and which piece.
fn pieces(events: &[Event]) -> Vec<(Instant, Option<Piece>)> {
    let piece = |event: &Event| match *event {
        Event::Deliver {
            at,
            edit: Edit::Routed { piece, .. },
            ..
        } => Some((at, piece)),
        _ => None,
    };
    events.iter().filter_map(piece).collect()
}

/// Where each piece begins, and how long it is.
fn places(pieces: &[(Instant, Option<Piece>)]) -> Vec<Option<(u16, u16)>> {
    let place = |piece: &Piece| (piece.offset, piece.len);
    pieces
        .iter()
        .map(|(_, piece)| piece.as_ref().map(place))
        .collect()
}

#[test]
fn fragments_are_made_at_the_source_or_at_a_router() {
    // 4,000 bytes behind a header from a ring to an Ethernet of 1,500: 1,480, 1,480 and 1,040.
    let site = chain(&["fddi", "ethernet-100"], "frame_time = \"30us\"");
    let mut network = Internetwork::new(&site, 1).unwrap();
    network.offer(Instant::START, cuttable(1, (0, 4), 2, 64, 4_020));
    let events = drain(&mut network);
    let at_router = pieces(&events);
    let told = places(&at_router);
    assert_eq!(
        told,
        [Some((0, 1_480)), Some((1_480, 1_480)), Some((2_960, 1_040))]
    );
    let done = events
        .iter()
        .filter(|event| matches!(event, Event::Done { .. }));
    assert_eq!(done.count(), 1);
    assert_eq!(network.nodes()[0].forwarded, 1);
    // Cut up at the source they are in order as well, and complete sooner: the first leaves the router while the second is on the ring.
    let mut network = Internetwork::new(&site, 1).unwrap();
    let (mut left, mut now) = (vec![1_500, 1_500, 1_060], Instant::START);
    left.reverse();
    let mut events = Vec::new();
    let mut id = 0;
    while let Some(len) = left.last().copied() {
        if network.ready(Port(0), Default::default()) {
            network.offer(now, cuttable(id, (0, 4), 2, 64, len));
            (id, _) = (id + 1, left.pop());
        }
        if let Some(at) = network.poll_at() {
            now = at;
            while let Some(event) = network.poll(now) {
                events.push(event);
            }
        }
    }
    events.extend(drain(&mut network));
    let order: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Deliver { id, .. } => Some(id.0),
            _ => None,
        })
        .collect();
    assert_eq!(order, [0, 1, 2]);
    let at_source = pieces(&events);
    let (source, router) = (at_source[2].0, at_router[2].0);
    assert!(source < router, "{source:?} {router:?}");
    // Without room for all pieces the datagram is lost once, though some of it comes.
    let site = chain(&["fddi", "ethernet-100"], "buffer = \"4KiB\"");
    let mut network = Internetwork::new(&site, 1).unwrap();
    network.offer(Instant::START, cuttable(1, (0, 4), 2, 64, 4_300));
    let events = drain(&mut network);
    let lost = events.iter().filter(|event| {
        matches!(
            event,
            Event::Lost {
                cause: Cause::Overflow,
                ..
            }
        )
    });
    assert_eq!((lost.count(), pieces(&events).len()), (1, 2), "{events:?}");
}

/// Segments one after the other with two hosts each and a bridge between each two, which does this with what is too long.
fn bridged(networks: &[&str], too_long: &str) -> SiteSpec {
    let keys = format!("buffer = \"1MiB\"\ntoo_long = \"{too_long}\"");
    row(networks, "bridge", &keys)
}

/// Of each host what was lost to it, with place and cause.
fn losses(events: &[Event]) -> Vec<(Port, Place, Cause)> {
    let loss = |event: &Event| match *event {
        Event::Lost {
            to, place, cause, ..
        } => Some((to, place, cause)),
        _ => None,
    };
    events.iter().filter_map(loss).collect()
}

#[test]
fn a_translational_bridge_cuts_up_what_may_be_and_drops_the_rest() {
    let gone = (Port(2), Place::Bridge, Cause::TooLong);
    let site = bridged(&["fddi", "ethernet-100"], "fragment");
    let play = |site: &SiteSpec, frame: Frame| {
        let mut network = Internetwork::new(site, 1).unwrap();
        network.offer(Instant::START, frame);
        (drain(&mut network), network)
    };
    let (events, network) = play(&site, cuttable(1, (0, 2), 2, 64, 4_020));
    let told = places(&pieces(&events));
    assert_eq!(
        told,
        [Some((0, 1_480)), Some((1_480, 1_480)), Some((2_960, 1_040))]
    );
    assert!(losses(&events).is_empty());
    // It is a bridge: the fragments come from the host that sent the datagram, and have passed no router.
    let is_so = |event: &Event| {
        matches!(
            event,
            Event::Deliver {
                to: Port(2),
                edit: Edit::Routed {
                    by: Port(0),
                    hops: 0,
                    ..
                },
                ..
            }
        )
    };
    assert_eq!(events.iter().filter(|event| is_so(event)).count(), 3);
    assert_eq!(network.nodes()[0].flooded, 1);
    // One that has to stay whole, and one of which the models know no more than its length, are lost without an answer.
    let (events, _) = play(&site, routed(1, (0, 2), 2, 64, 4_020));
    assert_eq!(losses(&events), [gone]);
    let to_all = Frame {
        to: To::All,
        ..frame(1, 0, 2, 4_020)
    };
    let (events, _) = play(&site, to_all);
    let other = (Port(3), Place::Bridge, Cause::TooLong);
    assert_eq!(losses(&events), [gone, other]);
    let whole = events.iter().filter(|event| {
        matches!(
            event,
            Event::Deliver {
                to: Port(1),
                edit: Edit::None,
                ..
            }
        )
    });
    assert_eq!(whole.count(), 1);
    // To the longer frames it leaves all as it is.
    let (events, _) = play(&site, routed(1, (2, 0), 0, 64, 1_500));
    assert!(losses(&events).is_empty());
    // One that cuts up nothing.
    let hole = bridged(&["fddi", "ethernet-100"], "drop");
    let (events, _) = play(&hole, cuttable(1, (0, 2), 2, 64, 4_020));
    assert_eq!(losses(&events), [gone]);
    // Over an Ethernet to another ring it comes in the fragments that the first bridge made.
    let rings = bridged(&["fddi", "ethernet-100", "fddi"], "fragment");
    let (events, _) = play(&rings, cuttable(1, (0, 4), 4, 64, 4_020));
    assert_eq!((pieces(&events).len(), losses(&events).len()), (3, 0));
    // A bridge to both sends what it has not heard of whole to a ring, and in fragments to an Ethernet.
    let star = site_of_a_star();
    for (to, came) in [(2, 3), (4, 0)] {
        let (events, network) = play(&star, cuttable(1, (0, to), to, 64, 4_020));
        assert_eq!(
            (pieces(&events).len(), losses(&events).len()),
            (came, 0),
            "{events:?}"
        );
        assert_eq!(network.nodes()[0].flooded, 1);
    }
}

/// Two rings and an Ethernet, joined by one bridge.
fn site_of_a_star() -> SiteSpec {
    let mut text = String::new();
    for (name, network) in [("a", "fddi"), ("b", "ethernet-100"), ("c", "fddi")] {
        text += &format!(
            "[[segment]]\nname = \"{name}\"\nnetwork = \"{network}\"\nhosts = [\"{name}-[1-2]\"]\n"
        );
    }
    site(&format!(
        "{text}[[bridge]]\nname = \"q\"\njoins = [\"a\", \"b\", \"c\"]\ntoo_long = \"fragment\"\n"
    ))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_pieces_of_a_datagram_add_up(len in 48u64..9_181, first in 68u64..9_181, second in 68u64..9_181, network in prop::sample::select(vec!["atm-oc3c", "ethernet-1g"])) {
        let networks = [9_180, first, second].map(|mtu| format!("{network}:mtu={mtu}"));
        let networks = networks.each_ref().map(String::as_str);
        // A bridge's frame is addressed to the host itself.
        let (site, link) = match network {
            "atm-oc3c" => (chain(&networks, "buffer = \"1MiB\""), 6),
            _ => (bridged(&networks, "fragment"), 4),
        };
        let mut network = Internetwork::new(&site, 3).unwrap();
        network.offer(Instant::START, cuttable(1, (0, link), 4, 64, len));
        let events = drain(&mut network);
        let came = pieces(&events);
        let mtu = first.min(second);
        if len <= mtu {
            prop_assert!(came.len() <= 1 && came.iter().all(|(_, piece)| piece.is_none()), "{events:?}");
        } else {
            let mut next = 0;
            for (_, piece) in &came {
                let piece = piece.unwrap();
                // In order, and each on a border of eight bytes.
                prop_assert_eq!(u64::from(piece.offset), next);
                prop_assert!(next % 8 == 0 && u64::from(piece.len) + 20 <= mtu);
                next += u64::from(piece.len);
            }
            prop_assert_eq!(next, len - 20);
        }
        let done = events.iter().filter(|event| matches!(event, Event::Done { .. })).count();
        let lost = events.iter().any(|event| matches!(event, Event::Lost { .. }));
        prop_assert!(done == 1 && !lost);
    }
}
