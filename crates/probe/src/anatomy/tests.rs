//! Tests of [`super`].

use super::*;
use sonde_measure::Quantity;

const ONE_CLOCK: Offset = Offset {
    offset_ns: 0,
    error_ns: 0,
};

fn message(index: u32, at: u64) -> (Here, There) {
    let here = Here {
        index,
        called_ns: at,
        scheduled_ns: Some(at + 10),
        left_ns: Some(at + 30),
        acknowledged_ns: None,
        nic_ns: [Some(7_000 + at), Some(7_110 + at)],
    };
    let there = There {
        index,
        stamped_ns: at + 70,
        ready_ns: at + 150,
        returned_ns: at + 151 + u64::from(index),
    };
    (here, there)
}

fn values(cut: &Cut) -> Vec<Vec<u64>> {
    cut.parts
        .iter()
        .map(|(_, found)| found.clone().unwrap_or_default())
        .collect()
}

#[test]
fn parts_add_up() {
    let (sent, mut arrivals): (Vec<_>, Vec<_>) =
        (0..100).map(|n| message(n, 1_000 * u64::from(n))).unzip();
    // One whose answer was lost: it arrived, and was not sent as far as the sender kept it.
    arrivals.insert(
        5,
        There {
            index: 1_000,
            ..arrivals[0]
        },
    );
    let cut = Cut::of(&sent, &arrivals, ONE_CLOCK);
    assert_eq!(cut.one_way.len(), 100);
    for (at, one_way) in cut.one_way.iter().enumerate() {
        let sum: u64 = values(&cut).iter().map(|part| part[at]).sum();
        assert_eq!((sum, *one_way), (151 + at as u64, 151 + at as u64));
    }
    let first: Vec<u64> = values(&cut).iter().map(|part| part[0]).collect();
    assert_eq!(first, [10, 20, 40, 80, 1]);
    // By one clock no message arrives before it left.
    let mut wrong = arrivals;
    wrong[0].stamped_ns = 5;
    let cut = Cut::of(&sent, &wrong, ONE_CLOCK);
    assert_eq!((cut.one_way.len(), cut.out_of_order), (99, 1));
}

#[test]
fn a_missing_stamp_leaves_its_parts_out() {
    let (mut sent, arrivals): (Vec<_>, Vec<_>) = (0..10).map(|n| message(n, 1_000)).unzip();
    sent.iter_mut().for_each(|one| one.left_ns = None);
    let cut = Cut::of(&sent, &arrivals, ONE_CLOCK);
    let missing: Vec<bool> = cut.parts.iter().map(|(_, found)| found.is_err()).collect();
    assert_eq!(missing, [false, true, true, false, false]);
    let rows = cut.measurements(Path::Tcp, Err("veth has none".into()));
    let card = rows
        .iter()
        .find(|one| one.quantity == Quantity::NicTripNs)
        .unwrap();
    assert!(card.series.is_empty() && card.reason.as_deref() == Some("veth has none"));
    let wire = rows
        .iter()
        .find(|one| one.quantity == Quantity::WireNs)
        .unwrap();
    assert!(wire.series.is_empty() && wire.reason.as_deref().unwrap().contains("TX_SOFTWARE"));
    let one_way = rows
        .iter()
        .find(|one| one.quantity == Quantity::OneWayNs)
        .unwrap();
    assert_eq!(one_way.series.count(), 10);
    // A message that lacks what the others have is left out.
    let (mut sent, arrivals): (Vec<_>, Vec<_>) = (0..10).map(|n| message(n, 1_000)).unzip();
    sent[3].scheduled_ns = None;
    assert_eq!(Cut::of(&sent, &arrivals, ONE_CLOCK).one_way.len(), 9);
}

#[test]
fn a_card_s_trip_is_by_its_one_clock() {
    let (mut sent, _): (Vec<_>, Vec<_>) = (0..10).map(|n| message(n, 1_000)).unzip();
    assert_eq!(cut::nic_trips(&sent, Ok(())), Ok(vec![110; 10]));
    // Some stamps that never came are left out; most of them, and there is nothing to tell.
    sent[..4].iter_mut().for_each(|one| one.nic_ns[0] = None);
    assert_eq!(cut::nic_trips(&sent, Ok(())), Ok(vec![110; 6]));
    sent[4].nic_ns[1] = None;
    let why = cut::nic_trips(&sent, Ok(())).unwrap_err();
    assert!(why.contains("5 of 10"), "{why}");
    let why = cut::nic_trips(&sent, Err("eth0 has none".into()));
    assert_eq!(why, Err("eth0 has none".into()));
}

#[test]
fn a_clock_that_is_far_off_is_told() {
    let (sent, mut arrivals): (Vec<_>, Vec<_>) = (0..10).map(|n| message(n, 1_000)).unzip();
    for one in &mut arrivals {
        one.stamped_ns += 5_000;
        one.ready_ns += 5_000;
        one.returned_ns += 5_000;
    }
    let clock = |error_ns| Offset {
        offset_ns: 5_000,
        error_ns,
    };
    let near = Cut::of(&sent, &arrivals, clock(7));
    assert_eq!(near.parts[2].1, Ok(vec![40; 10]));
    let far = Cut::of(&sent, &arrivals, clock(40));
    assert!(
        far.parts[2]
            .1
            .as_ref()
            .unwrap_err()
            .contains("within 40 ns")
    );
    assert!(far.parts[0].1.is_ok() && far.parts[4].1.is_ok());
    let moved = joined(
        Offset {
            offset_ns: 10,
            error_ns: 3,
        },
        Offset {
            offset_ns: 20,
            error_ns: 4,
        },
    );
    assert_eq!(
        moved,
        Offset {
            offset_ns: 15,
            error_ns: 9
        }
    );
}

#[test]
fn arrivals_are_read_back() {
    let (_, there) = message(9, 1 << 60);
    let mut bytes = Vec::new();
    there.write(&mut bytes);
    assert_eq!(There::read(bytes.first_chunk().unwrap()), there);
}
