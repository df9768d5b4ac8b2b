//! Every kind of fault and load, again and again: the same bytes, and a replay that agrees with each ledger.

mod scenario;

use sonde_link::ledger::Reader;
use sonde_link::{
    Captured, Fabric, FaultSpec, Law, LoadSpec, NetworkSpec, Port, Script, named, resolve,
};
use sonde_units::{Bytes, Ratio, Span};
use sonde_virtual::{Parity, replay};

/// One script for each kind, its begin and its end amid the traffic of the scenario.
const SCRIPTS: [(&str, &str); 16] = [
    ("link", "3ms link h1 down\n9ms link h1 up"),
    (
        "flap",
        "1ms link h2 down\n2ms link h2 up\n3ms link h2 down\n4ms link h2 up\n30ms link h1 down\n31ms link h1 up",
    ),
    ("host", "3ms host h1 down\n9ms host h1 up"),
    (
        "pause",
        "2ms pause h1 on\n3ms pause h2 on\n12ms pause h1 off\n14ms pause h2 off",
    ),
    ("cut", "1ms cut h1 h2\n9ms cut h1 h2 off"),
    (
        "partition",
        "1ms cut h1 h3\n1ms cut h1 h4\n1ms cut h2 h3\n1ms cut h2 h4",
    ),
    ("loss", "1ms loss 10%\n20ms loss 0"),
    ("corruption", "1ms corrupt 10%"),
    ("duplication", "1ms duplicate 10%"),
    ("reordering", "1ms reorder 10% 700us"),
    ("delay", "1ms delay 3ms\n9ms delay h2 1ms\n15ms delay 0s"),
    ("rate", "2ms rate 50Mbit\n9ms rate own"),
    ("restart", "4ms restart 5ms"),
    (
        "trunk and manager",
        "2ms trunk 0 down\n3ms manager down\n9ms trunk 0 up\n12ms manager up",
    ),
    (
        "load",
        "1ms load 0 h2 rho=0.6\n1ms load 1 h1 h2 rho=0.2 law=constant\n2ms load 2 h3 rho=0.5 law=geometric\n\
         3ms load 3 h1 rho=0.3 law=on-off:20\n4ms load 4 h4 rho=0.4 law=self-similar\n20ms load 0 h2 rho=0.1 size=64B\n\
         40ms load 0 h2 rho=0\n40ms load 1 h2 rho=0\n40ms load 2 h3 rho=0\n40ms load 3 h1 rho=0\n40ms load 4 h4 rho=0",
    ),
    (
        "all together",
        "1ms load 0 h2 rho=0.3\n2ms loss 5%\n3ms corrupt h2 5%\n4ms duplicate 5%\n5ms reorder 5% 1ms\n6ms pause h2 on\n\
         7ms delay h1 2ms\n8ms link h3 down\n9ms host h4 down\n20ms pause h2 off\n21ms link h3 up\n22ms host h4 up\n\
         60ms load 0 h2 rho=0",
    ),
];

fn networks() -> [NetworkSpec; 3] {
    let resolve = |name| resolve(name, &|_| unreachable!()).unwrap();
    [
        resolve("ethernet-100"),
        resolve("atm-oc3c:buffer=300cells"),
        scenario::with_knobs(resolve("ethernet-1g:delay=2ms")),
    ]
}

fn agree(ledger: &[u8]) -> Parity {
    let reader = Reader::new(ledger).unwrap();
    let header = reader.header().clone();
    replay(&header, reader, Span::micros(1)).unwrap()
}

#[test]
fn every_script_gives_the_same_bytes_twenty_times() {
    for spec in networks() {
        let plain = scenario::run(&spec, 7).0;
        for (name, script) in SCRIPTS {
            let script = Script::parse(script).unwrap();
            let first = scenario::run_with(&spec, 7, &script.commands);
            let bare = ["rate", "restart", "trunk and manager"].contains(&name);
            // A medium without such a part refuses the command; nothing is changed then.
            assert!(
                bare || first.0 != plain,
                "{name} does nothing to {}",
                spec.name
            );
            for _ in 1..20 {
                assert!(
                    first == scenario::run_with(&spec, 7, &script.commands),
                    "{name} on {}",
                    spec.name
                );
            }
            let parity = agree(&first.0);
            let difference = parity.first_difference.map(|d| d.to_string());
            assert_eq!(difference, None, "{name} on {}", spec.name);
            assert!(parity.whole && parity.deliveries > 100);
        }
    }
}

/// Commands of the network's own file stand in the header of its ledger: a replay has them from there.
#[test]
fn a_schedule_is_replayed_from_the_header() {
    let mut spec = named("ethernet-100").unwrap();
    spec.load.push(LoadSpec {
        from: None,
        to: Port(1),
        rho: Ratio::new(1, 2),
        law: Law::Poisson,
        size: Bytes::ZERO,
        class: 0,
        at: Span::millis(1),
        until: Some(Span::millis(30)),
        duplex: false,
    });
    spec.fault.push(FaultSpec {
        at: Span::millis(2),
        command: "link h1 down".parse().unwrap(),
        lasts: Some(Span::millis(1)),
        every: Some(Span::millis(5)),
        until: Some(Span::millis(20)),
    });
    let ledger = scenario::run(&spec, 7).0;
    let parity = agree(&ledger);
    assert!(parity.first_difference.is_none() && parity.whole && parity.losses > 20);
    // Without them it parts.
    let reader = Reader::new(ledger.as_slice()).unwrap();
    let mut header = reader.header().clone();
    header.network.load.clear();
    header.network.fault.clear();
    assert!(
        replay(&header, reader, Span::ZERO)
            .unwrap()
            .first_difference
            .is_some()
    );
}

/// What a replayed capture brings is given to the replay of the ledger too.
#[test]
fn a_capture_is_given_to_the_replay() {
    let spec = named("ethernet-100").unwrap();
    let frames = (0..200).map(|i| Captured {
        after: Span::micros(90) * i,
        len: Bytes(1_400),
        from: None,
        to: Port(1),
    });
    let capture: Vec<_> = frames.collect();
    let network = Fabric::with_capture(&spec, scenario::PORTS, 7, capture.clone()).unwrap();
    let script = Script::parse("1ms load 0 h2 rho=1 law=replay").unwrap();
    let ledger = scenario::run_on(network, &spec, 7, &script.commands).0;
    assert!(agree(&ledger).first_difference.is_some());
    let reader = Reader::new(ledger.as_slice()).unwrap();
    let header = reader.header().clone();
    let parity = sonde_virtual::replay_with(&header, reader, Span::ZERO, capture).unwrap();
    assert!(parity.first_difference.is_none() && parity.whole);
}

#[test]
fn every_network_replays_all_of_them_together() {
    let (_, script) = SCRIPTS[SCRIPTS.len() - 1];
    let script = Script::parse(script).unwrap();
    for spec in scenario::networks() {
        let mut commands = script.commands.clone();
        if spec.line.rate.is_none() {
            // Nothing to take a share of.
            commands.retain(|(_, command)| !matches!(command, sonde_link::Command::Load(_)));
        }
        let ledger = scenario::run_with(&spec, 3, &commands).0;
        let parity = agree(&ledger);
        let difference = parity.first_difference.map(|d| d.to_string());
        assert_eq!(difference, None, "{}", spec.name);
        assert!(parity.whole && parity.deliveries > 100, "{}", spec.name);
    }
}
