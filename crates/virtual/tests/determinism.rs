//! The same scenario twice gives the same bytes; another seed gives others.

use crate::scenario;

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for spec in scenario::networks() {
        let (first, second) = (scenario::run(&spec, 7), scenario::run(&spec, 7));
        assert!(first.1.lines().count() > 4_000, "{}", spec.name);
        assert!(first == second, "{}", spec.name);
        assert_ne!(first.1, scenario::run(&spec, 8).1, "{}", spec.name);
    }
}

/// The scenario is worth comparing: all that can happen happens in it.
#[test]
fn everything_happens() {
    let all: String = scenario::networks()
        .iter()
        .map(|spec| scenario::run(spec, 7).1)
        .collect();
    for word in [
        "Deliver",
        "Ready",
        "Blocked",
        "TooLong",
        "Overflow",
        "Random",
        "NoCircuit",
        "NoBroadcast",
        "NoSuchPort",
        "CircuitUp",
        "CircuitDown",
    ] {
        assert!(all.contains(word), "{word}");
    }
}

/// Draws of the network alone: with the same traffic, its seed decides what is lost.
#[test]
fn the_seed_decides_what_is_lost() {
    use sonde_link::{Event, Fabric};
    use sonde_units::{Instant, Span};
    use sonde_virtual::{Clock, Happening};
    let spec = scenario::with_knobs(sonde_link::named("ethernet-100").unwrap());
    let lost = |seed| {
        let mut clock: Clock<_, u64> = Clock::new(Fabric::new(&spec, 2, seed).unwrap());
        for id in 0..1_000 {
            clock.plan(Instant::START + Span::millis(id), id);
        }
        let mut lost = Vec::new();
        clock.run_until(
            Instant::START + Span::secs(2),
            |clock, happening| match happening {
                Happening::Action(id) => drop(clock.offer(sonde_link::Frame {
                    id: sonde_link::FrameId(id),
                    from: sonde_link::Port(0),
                    to: sonde_link::To::One(sonde_link::Port(1)),
                    len: sonde_units::Bytes(100),
                    kind: sonde_link::Kind::Ip,
                    class: sonde_link::Class(0),
                    ecn: sonde_link::Ecn::NotCapable,
                    flow: 0,
                })),
                Happening::Event(Event::Lost { id, .. }) => lost.push(id),
                Happening::Event(_) => {}
            },
        );
        lost
    };
    assert_eq!(lost(1), lost(1));
    assert_ne!(lost(1), lost(2));
    assert!((1..50).contains(&lost(1).len()));
}
