//! How round trips and streams are measured: the clock, buffers in the cache and not, the CPUs of the ends.

use crate::agents::{agents, conversation, sampled, samples};
use sonde_measure::{Buffers, Clock, Knobs, Method, Path, Seat, Wait};
use sonde_measure::{Probe, Procedure, Quota, Sampling, Spec};
use sonde_measure::{Quantity, SampleClock, Step};
use sonde_probe::{Error, Outcome};

fn have(spec: Spec) -> Result<Outcome, Error> {
    let (mut client, mut server) = agents();
    conversation(spec).run(&mut client.link, &mut server.link)
}

fn counted(outcome: &Outcome) -> bool {
    let mut rows = outcome.sizes.iter().flat_map(|size| &size.measurements);
    rows.all(|row| row.series.count() > 0 || row.reason.is_some())
        && outcome
            .sizes
            .iter()
            .all(|size| size.measurements.iter().any(|row| !row.series.is_empty()))
}

#[test]
fn round_trips_are_timed_by_the_clock_asked_for() {
    for asked in [None, Some(Clock::Monotonic), Some(Clock::Tsc)] {
        let spec = Spec {
            knobs: Knobs {
                clock: asked,
                ..Knobs::default()
            },
            sizes_bytes: vec![8, 100],
            ..samples(Path::Shm, 200)
        };
        match (have(spec), sonde_sys::tsc::obstacle(), asked) {
            (Err(error), Some(why), Some(Clock::Tsc)) => {
                assert!(error.to_string().contains(&why), "{error}");
                println!("skipped: the time stamp counter: {why}");
            }
            (Ok(outcome), obstacle, _) => {
                assert!(counted(&outcome));
                let clock = outcome.evidence.src.place.clock.as_ref().unwrap();
                let is_tsc = matches!(clock, SampleClock::Tsc { .. });
                match asked {
                    Some(Clock::Tsc) => assert!(is_tsc, "{clock:?}"),
                    Some(Clock::Monotonic) => {
                        let why = "asked for".into();
                        assert_eq!(*clock, SampleClock::Monotonic { why });
                    }
                    None => assert!(!is_tsc || obstacle.is_none(), "{clock:?} {obstacle:?}"),
                }
            }
            (found, why, _) => panic!("{found:?} {why:?}"),
        }
    }
}

#[test]
fn cold_buffers_carry_every_kind() {
    if let Err(error) = sonde_channel::outrun() {
        return println!("skipped: {error}");
    }
    for (path, wait) in [
        (Path::Tcp, Wait::Block),
        (Path::Udp, Wait::Block),
        (Path::Unix, Wait::Block),
        (Path::Shm, Wait::Block),
    ] {
        for probe in [Probe::Latency, Probe::Message, Probe::Stream] {
            let sizes = match (probe, path) {
                (Probe::Stream, Path::Udp) => vec![1_400],
                (Probe::Stream, _) => vec![100_000],
                (_, Path::Udp) => vec![1, 9, 30_000],
                _ => vec![1, 5_000, 1 << 20],
            };
            let spec = Spec {
                sizes_bytes: sizes.clone(),
                knobs: Knobs {
                    buffers: Buffers::Cold,
                    align: (probe == Probe::Message).then_some(3),
                    ..Knobs::default()
                },
                verify: true,
                ..sampled(Spec::new(probe, path, wait), |sampling| {
                    *sampling = Sampling {
                        samples_min: 30,
                        samples_max: 30,
                        warmup: 5,
                        precision_per_mille: None,
                        ..*sampling
                    };
                })
            };
            let outcome = have(spec).unwrap_or_else(|error| panic!("{probe:?} {path}: {error}"));
            assert_eq!(outcome.sizes.len(), sizes.len());
            assert!(counted(&outcome), "{probe:?} {path}");
            // The peer fills its area within the first round trip, which is therefore none.
            let rows = outcome.sizes.iter().flat_map(|size| &size.measurements);
            let mut first = rows.filter(|row| row.step == Some(Step::First));
            assert!(first.all(|row| row.reason.as_deref().unwrap().contains("filled its cold")));
            for side in outcome.evidence.sides() {
                let told = side.place.buffers.unwrap();
                assert_eq!(told.area_kib, 2 * told.cache_kib);
            }
        }
    }
    let refused = have(Spec {
        method: Method::Zerocopy,
        knobs: Knobs {
            buffers: Buffers::Cold,
            ..Knobs::default()
        },
        ..Spec::new(Probe::Stream, Path::Tcp, Wait::Block)
    });
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("buffers of its own"), "{error}");
}

#[test]
fn ends_take_their_place() {
    let placed = |place, path| {
        let knobs = Knobs {
            place: Some(place),
            ..Knobs::default()
        };
        have(Spec {
            knobs,
            ..samples(path, 100)
        })
    };
    for path in [Path::Tcp, Path::Shm] {
        let outcome = placed(Seat::Same, path).unwrap();
        assert!(counted(&outcome));
        let bound = |outcome: &Outcome| {
            let sides = outcome.evidence.sides();
            sides.map(|side| side.place.bound.clone().unwrap())
        };
        let [src, dst] = bound(&outcome);
        // Nothing here has a receive interrupt: that is said, and one end's CPU is the other's.
        for told in [&src, &dst] {
            assert!(told.why.contains("no receive interrupt"), "{told:?}");
        }
        assert_eq!(src.cpu, dst.cpu);
        if path == Path::Tcp {
            let place = &outcome.evidence.src.place;
            assert_eq!(place.cpu, Some(src.cpu));
            assert_eq!(place.rx_cpu, place.cpu);
        }
        match placed(Seat::Near, path) {
            Ok(outcome) => {
                let [src, dst] = bound(&outcome);
                assert_ne!(src.cpu, dst.cpu);
            }
            Err(error) => assert!(error.to_string().contains("one core"), "{error}"),
        }
    }
    match placed(Seat::Far, Path::Tcp) {
        Ok(_) => assert!(sonde_sys::topology::Topology::here().nodes().len() > 1),
        Err(error) => assert!(error.to_string().contains("one memory node"), "{error}"),
    }
}

#[test]
fn an_anatomy_says_why_no_card_stamped_it() {
    for path in [Path::Tcp, Path::Udp] {
        let outcome = have(Spec {
            procedure: Procedure::Anatomy(Quota {
                samples_max: 50,
                ..Quota::ANATOMY
            }),
            ..Spec::new(Probe::Anatomy, path, Wait::Block)
        })
        .unwrap();
        let rows = &outcome.sizes[0].measurements;
        let of = |quantity| rows.iter().find(|row| row.quantity == quantity).unwrap();
        let card = of(Quantity::NicTripNs);
        let why = card.reason.as_deref().unwrap();
        assert!(card.series.is_empty() && why.contains("lo "), "{why}");
        assert!(of(Quantity::OneWayNs).series.count() > 0);
    }
}
