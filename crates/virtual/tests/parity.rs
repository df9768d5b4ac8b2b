//! What a ledger says happens again, and what it says wrongly is found.

use crate::scenario;
use proptest::prelude::*;
use sonde_link::ledger::{Entry, Header, LedgerError, RECORD, Reader};
use sonde_link::{Admission, FrameId, named};
use sonde_units::{Instant, Span};
use sonde_virtual::{Difference, Parity, replay};

const TOLERANCE: Span = Span::nanos(500);

fn read(bytes: &[u8]) -> (Header, Vec<Entry>) {
    let reader = Reader::new(bytes).unwrap();
    let header = reader.header().clone();
    (header, reader.map(Result::unwrap).collect())
}

fn check(header: &Header, entries: &[Entry]) -> Parity {
    let entries = entries.iter().map(|entry| Ok::<_, LedgerError>(*entry));
    replay(header, entries, TOLERANCE).unwrap()
}

#[test]
fn every_network_repeats_itself() {
    for spec in scenario::networks() {
        let (ledger, _) = scenario::run(&spec, 7);
        let reader = Reader::new(ledger.as_slice()).unwrap();
        let header = reader.header().clone();
        let parity = replay(&header, reader, TOLERANCE).unwrap();
        let difference = parity.first_difference.map(|d| d.to_string());
        assert_eq!(difference, None, "{}", spec.name);
        assert!(parity.whole && parity.offers >= scenario::FRAMES);
        assert!(
            parity.deliveries > 100 && parity.losses > 0,
            "{}",
            spec.name
        );
        let lateness = parity.lateness;
        assert_eq!(
            (lateness.deliveries, lateness.early),
            (parity.deliveries, 0)
        );
        assert!(lateness.max <= Span::nanos(996) && lateness.mean <= lateness.max);
        assert!(lateness.beyond <= lateness.deliveries);
    }
}

#[test]
fn each_wrong_entry_is_found() {
    let spec = scenario::with_knobs(named("ethernet-100").unwrap());
    let (header, entries) = read(&scenario::run(&spec, 7).0);
    let find = |wanted: fn(&Entry) -> bool| entries.iter().rposition(wanted).unwrap();
    let delivery = find(|entry| matches!(entry, Entry::Deliver { .. }));
    let loss = find(|entry| matches!(entry, Entry::Lost { .. }));
    let offer = find(|entry| matches!(entry, Entry::Offer { .. }));

    for event in [delivery, loss] {
        let mut missing = entries.clone();
        missing.remove(event);
        assert!(matches!(
            check(&header, &missing).first_difference,
            Some(Difference::Event { .. })
        ));
    }
    let mut later = entries.clone();
    if let Entry::Deliver { at, .. } = &mut later[delivery] {
        *at = *at + Span::picos(1);
    }
    let difference = check(&header, &later).first_difference.unwrap();
    assert!(
        difference.to_string().contains("in the model"),
        "{difference}"
    );

    let mut cause = entries.clone();
    if let Entry::Lost { cause, .. } = &mut cause[loss] {
        *cause = sonde_link::Cause::NoCircuit;
    }
    assert!(check(&header, &cause).first_difference.is_some());

    let mut refused = entries.clone();
    if let Entry::Offer { admission, .. } = &mut refused[offer] {
        *admission = Admission::Blocked;
    }
    assert!(matches!(
        check(&header, &refused).first_difference,
        Some(Difference::Admission {
            model: Admission::Taken,
            ..
        })
    ));

    let mut unknown = entries.clone();
    unknown.remove(offer);
    assert!(check(&header, &unknown).first_difference.is_some());

    let other_seed = Header {
        seed: 8,
        ..header.clone()
    };
    assert!(check(&other_seed, &entries).first_difference.is_some());
}

/// A lab that was killed leaves a ledger without an end: what is there still agrees, whole or not.
#[test]
fn a_cut_ledger_agrees_as_far_as_it_goes() {
    let (ledger, _) = scenario::run(&scenario::with_knobs(named("atm-oc3c").unwrap()), 7);
    let (header, entries) = read(&ledger);
    for kept in [0, 1, 100, entries.len() / 2, entries.len() - 1] {
        let parity = check(&header, &entries[..kept]);
        assert!(parity.first_difference.is_none() && !parity.whole, "{kept}");
    }
    // Cut within a record, it is an error that says where.
    let mut reader = Reader::new(&ledger[..ledger.len() - RECORD / 2]).unwrap();
    let error = reader.find_map(Result::err).unwrap().to_string();
    assert!(
        error.contains(&format!("record {}", entries.len())),
        "{error}"
    );
}

/// A driver may poll late: an offer is then written before events of earlier times.
#[test]
fn events_may_be_written_late() {
    let (header, mut entries) = read(&scenario::run(&named("ethernet-1g").unwrap(), 7).0);
    for i in 1..entries.len() {
        let (a, b) = (&entries[i - 1], &entries[i]);
        let is_event = matches!(a, Entry::Deliver { .. } | Entry::Lost { .. });
        if is_event && matches!(b, Entry::Offer { .. }) && a.at() < b.at() {
            entries.swap(i - 1, i);
        }
    }
    assert!(check(&header, &entries).first_difference.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A damaged ledger is refused or replayed; it never brings the program down.
    #[test]
    fn damage_is_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        keep in 20usize..400,
    ) {
        let (mut bytes, _) = scenario::run(&scenario::with_knobs(named("atm-oc3c").unwrap()), 3);
        bytes.truncate(bytes.len() % RECORD + keep * RECORD);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(reader) = Reader::new(bytes.as_slice()) {
            let header = reader.header().clone();
            if let Ok(parity) = replay(&header, reader, TOLERANCE) {
                prop_assert!(parity.deliveries + parity.losses <= keep as u64);
            }
        }
    }
}

#[test]
fn a_difference_says_what_it_is() {
    let at = Instant::from_nanos(1_500);
    let difference = Difference::Admission {
        at,
        id: FrameId(9),
        ledger: Admission::Taken,
        model: Admission::Blocked,
    };
    assert_eq!(
        difference.to_string(),
        "frame 9 offered at 1.5us: Taken in the ledger, Blocked in the model"
    );
}
