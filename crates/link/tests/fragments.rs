//! Fragments that routers make of datagrams, and those of the source.

use crate::router::{chain, routed};
use crate::site::drain;
use proptest::prelude::*;
use sonde_link::{Cause, Edit, Event, Frame, Internetwork, Kind, Network, Piece, Port, Routed};
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

#[test]
fn fragments_are_made_at_the_source_or_at_a_router() {
    // 4,000 bytes behind a header from a ring to an Ethernet of 1,500: 1,480, 1,480 and 1,040.
    let site = chain(&["fddi", "ethernet-100"], "frame_time = \"30us\"");
    let mut network = Internetwork::new(&site, 1).unwrap();
    network.offer(Instant::START, cuttable(1, (0, 4), 2, 64, 4_020));
    let events = drain(&mut network);
    let at_router = pieces(&events);
    let told: Vec<_> = at_router
        .iter()
        .map(|(_, piece)| piece.map(|piece| (piece.offset, piece.len)))
        .collect();
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_pieces_of_a_datagram_add_up(len in 48u64..9_181, first in 68u64..9_181, second in 68u64..9_181) {
        let networks = [9_180, first, second].map(|mtu| format!("atm-oc3c:mtu={mtu}"));
        let site = chain(&[&networks[0], &networks[1], &networks[2]], "buffer = \"1MiB\"");
        let mut network = Internetwork::new(&site, 3).unwrap();
        network.offer(Instant::START, cuttable(1, (0, 6), 4, 64, len));
        let events = drain(&mut network);
        let came = pieces(&events);
        let mtu = first.min(second);
        if len <= mtu {
            prop_assert!(came.len() == 1 && came[0].1.is_none(), "{events:?}");
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
