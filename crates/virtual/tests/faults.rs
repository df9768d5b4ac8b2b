//! Every kind of fault and load, again and again: the same bytes, and a replay that agrees with each ledger.

use crate::scenario;
use sonde_link::ledger::Reader;
use sonde_link::{
    Captured, Fabric, FaultSpec, Law, LoadSpec, Network, NetworkSpec, Port, Refused, Script, named,
    resolve,
};
use sonde_units::{Bytes, Ratio, Span};
use sonde_virtual::{Parity, Sender, replay, tcp_expected};
use std::collections::BTreeMap;

/// One script for each kind, its begin and its end amid the traffic of the scenario.
const SCRIPTS: [(&str, &str); 17] = [
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
    ("trunk", "2ms trunk 0 down\n9ms trunk 0 up"),
    ("manager", "3ms manager down\n12ms manager up"),
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

fn resolved(name: &str) -> NetworkSpec {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let mut spec = resolve(name, &read).unwrap();
    // It names more hosts than the scenario has.
    spec.assign.clear();
    spec
}

/// Those that have switches, trunks and managers to fail.
fn switches() -> Vec<NetworkSpec> {
    let names = [
        "ethernet-100",
        "atm-oc3c:buffer=300cells",
        "../../plans/examples/networks/two-switches.toml",
        "../../plans/examples/networks/atm-two-switches.toml",
    ];
    let mut all: Vec<_> = names.iter().map(|name| resolved(name)).collect();
    all.push(scenario::with_knobs(resolved("ethernet-1g:delay=2ms")));
    all
}

/// One of each other medium.
fn media() -> Vec<NetworkSpec> {
    let names = [
        "ethernet-1g:flow_control=pause",
        "ethernet-10",
        "fddi",
        "fc-266:mtu=4000",
        "sp2:mtu=4000",
        "hippi-800",
        "allnode",
        "sci-sbus",
    ];
    names.iter().map(|name| resolved(name)).collect()
}

/// Why the network does not carry out all of these, if it does not.
fn refusal(spec: &NetworkSpec, script: &Script) -> Option<Refused> {
    let mut network = Fabric::new(spec, scenario::PORTS, 0).unwrap();
    let results = script
        .commands
        .iter()
        .map(|(at, command)| network.command(*at, *command));
    results.filter_map(Result::err).next()
}

fn agree(ledger: &[u8]) -> Parity {
    let reader = Reader::new(ledger).unwrap();
    let header = reader.header().clone();
    replay(&header, reader, Span::micros(1)).unwrap()
}

/// How many of these networks carry out each script; that they do so `times` times alike, and as a replay does.
fn run_all(specs: &[NetworkSpec], times: u32) -> BTreeMap<&'static str, usize> {
    let mut takers = BTreeMap::new();
    for spec in specs {
        let plain = scenario::run(spec, 7).0;
        for (name, script) in SCRIPTS {
            let script = Script::parse(script).unwrap();
            if let Some(refusal) = refusal(spec, &script) {
                println!("{name} is not for {}: {refusal}", spec.name);
                continue;
            }
            *takers.entry(name).or_insert(0) += 1;
            let first = scenario::run_with(spec, 7, &script.commands);
            assert!(first.0 != plain, "{name} does nothing to {}", spec.name);
            for _ in 1..times {
                assert!(
                    first == scenario::run_with(spec, 7, &script.commands),
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
    takers
}

/// A refusal is no way to pass: only what few networks have may be missing.
#[test]
fn every_script_gives_the_same_bytes_twenty_times() {
    let specs = switches();
    let takers = run_all(&specs, 20);
    for (name, _) in SCRIPTS {
        let want = match name {
            "trunk" | "manager" => 2,
            _ => specs.len(),
        };
        assert_eq!(takers.get(name), Some(&want), "{name}");
    }
}

#[test]
fn every_medium_gives_the_same_bytes_again() {
    let specs = media();
    let takers = run_all(&specs, 3);
    for (name, _) in SCRIPTS {
        let want = match name {
            "trunk" | "manager" => 0,
            // Not a segment and two rings.
            "restart" => specs.len() - 3,
            // Not while switches pause their senders.
            "rate" => specs.len() - 1,
            _ => specs.len(),
        };
        assert_eq!(takers.get(name).copied().unwrap_or(0), want, "{name}");
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
    let network = &mut header.site.segment[0].network;
    network.load.clear();
    network.fault.clear();
    assert!(
        replay(&header, reader, Span::ZERO)
            .unwrap()
            .first_difference
            .is_some()
    );
}

/// What a script does to a third host is no reason to expect nothing between the first two.
#[test]
fn a_fault_elsewhere_is_of_no_concern() {
    let mut spec = named("ethernet-100").unwrap();
    let healthy = tcp_expected(&spec, &Sender::modern()).unwrap();
    let mut with = |command: &str| {
        spec.fault = vec![FaultSpec {
            at: Span::ZERO,
            command: command.parse().unwrap(),
            lasts: None,
            every: None,
            until: None,
        }];
        tcp_expected(&spec, &Sender::modern())
    };
    assert_eq!(with("loss h3 10%"), Ok(healthy));
    assert!(with("loss h2 10%").unwrap() < healthy);
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
