//! Background load: what was wanted and what was achieved, who meets it, and when it ends.

use sonde_link::{
    Admission, Command, Event, Fabric, Frame, FrameId, Network, Port, Refused, named, parse,
    resolve,
};
use sonde_units::{Bytes, Instant, Ratio, Span};

fn network(name: &str, ports: u16) -> Fabric {
    let spec = resolve(name, &|_| unreachable!()).unwrap();
    Fabric::new(&spec, ports, 5).unwrap()
}

fn tell(network: &mut Fabric, at: Instant, text: &str) {
    network.command(at, text.parse().unwrap()).unwrap();
}

fn part(share: Ratio) -> f64 {
    let (n, d) = share.parts();
    n as f64 / d as f64
}

#[test]
fn each_law_achieves_its_level() {
    for name in ["atm-oc3c", "ethernet-100", "ethernet-1g"] {
        for law in [
            "constant",
            "poisson",
            "geometric",
            "on-off:20",
            "self-similar:5",
        ] {
            for rho in [0.1, 0.6, 0.9] {
                for from in ["", "h1 "] {
                    let mut network = network(name, 2);
                    tell(
                        &mut network,
                        Instant::START,
                        &format!("load 3 {from}h2 rho={rho} law={law} size=1000B"),
                    );
                    let frame = network.counters().flows[0].frame_time;
                    let end = Instant::START + frame * 100_000;
                    // Nothing is told of background traffic but that it filled the queue of the station it shares.
                    while let Some(event) = network.poll(end) {
                        let begins = matches!(event, Event::State { .. });
                        let shares = !from.is_empty() && matches!(event, Event::Ready { .. });
                        assert!(begins || shares, "{event:?}");
                    }
                    assert!(network.poll_at().is_some());
                    let flow = network.counters().flows[0];
                    let (offered, achieved) = (part(flow.offered(end)), part(flow.achieved(end)));
                    let bound = match law {
                        "constant" => 0.001,
                        // Four standard deviations of 500 bursts and silences, or of 10,000 frames.
                        "self-similar:5" => 0.5,
                        "on-off:20" => 0.25,
                        _ => 0.04,
                    };
                    assert!(
                        (offered / rho - 1.0).abs() < bound,
                        "{name} {law} {rho}: {offered}"
                    );
                    assert!(achieved <= offered && achieved <= 1.0);
                    assert_eq!(flow.sent_bytes, Bytes(1_000) * flow.sent);
                    assert!(flow.sent >= flow.arrived + flow.lost);
                    // Level 0 ends it: what is under way arrives, then nothing is left.
                    tell(&mut network, end, "load 3 h2 rho=0");
                    while let Some(at) = network.poll_at() {
                        while network.poll(at).is_some() {}
                    }
                    let flow = network.counters().flows[0];
                    assert_eq!(
                        (flow.sent, flow.until),
                        (flow.arrived + flow.lost, Some(end))
                    );
                    assert_eq!(network.counters().lost_total(), 0);
                }
            }
        }
    }
}

/// When the last of ten back-to-back frames of h1 arrives.
fn ten(mut network: Fabric, to: Port) -> Span {
    let start = Instant::START + Span::millis(10);
    let mut last = Instant::START;
    for id in 0..10 {
        let frame = Frame::datagram(FrameId(id), Port(0), to, Bytes(1_400));
        while network.poll(start).is_some() {}
        assert_eq!(network.offer(start, frame), Admission::Taken);
    }
    let end = start + Span::millis(20);
    while let Some(event) = network.poll(end) {
        if let Event::Deliver { at, .. } = event {
            last = at;
        }
    }
    last.since(start)
}

#[test]
fn only_who_shares_a_link_meets_it() {
    for name in ["ethernet-100", "atm-oc3c"] {
        let with = |text: &str| {
            let mut network = network(name, 4);
            if !text.is_empty() {
                tell(&mut network, Instant::START, text);
            }
            ten(network, Port(1))
        };
        let empty = with("");
        // Other links, and the other direction of the same ones.
        for text in [
            "load 0 h3 rho=0.9",
            "load 0 h3 h4 rho=0.9",
            "load 0 h2 h1 rho=0.9",
        ] {
            assert_eq!(with(text), empty, "{name} {text}");
        }
        // The link to h2, the line of h1, both.
        for text in [
            "load 0 h2 rho=0.8 size=1400B",
            "load 0 h1 h3 rho=0.8 size=1400B",
            "load 0 h3 h2 rho=0.8 size=1400B",
        ] {
            assert!(with(text) > empty, "{name} {text}");
        }
    }
}

/// UPC SABA, 2.3: four simplex circuits from a generator at the first switch, one to each workstation, two of them by the trunk.
#[test]
fn the_generator_of_the_upc_study_loads_four_workstations() {
    let text = include_str!("../../../plans/examples/networks/upc.toml");
    let spec = parse("upc.toml", text).unwrap();
    let study = || Fabric::new(&spec, 5, 5).unwrap();
    // Its line at 0.6 and 0.9, in four equal parts.
    for rho in [0.15, 0.225] {
        let mut network = study();
        for host in 1..=4 {
            let flow = format!("load {host} h5 h{host} rho={rho}");
            tell(&mut network, Instant::START, &flow);
        }
        let end = Instant::START + Span::millis(200);
        while network.poll(end).is_some() {}
        let flows = &network.counters().flows;
        assert_eq!(flows.len(), 4);
        for flow in flows {
            let achieved = part(flow.achieved(end));
            // Four standard deviations of 10,000 cells.
            assert!((achieved / rho - 1.0).abs() < 0.04, "{rho}: {achieved}");
        }
        assert_eq!(network.counters().lost_total(), 0);
    }
    // What goes on to the second switch meets whoever goes there too, and nobody else.
    for (flow, to, meets) in [
        ("h5 h4", 2, true),
        ("h5 h4", 1, false),
        ("h5 h2", 1, true),
        ("h5 h2", 2, false),
    ] {
        let mut loaded = study();
        tell(
            &mut loaded,
            Instant::START,
            &format!("load 0 {flow} rho=0.6"),
        );
        let (loaded, idle) = (ten(loaded, Port(to)), ten(study(), Port(to)));
        assert_eq!(loaded > idle, meets, "{flow}, to h{}", to + 1);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let mut ethernet = network("ethernet-100", 2);
    let mut refuse = |text: &str| {
        ethernet
            .command(Instant::START, text.parse().unwrap())
            .unwrap_err()
    };
    for text in [
        "load 64 h2 rho=0.5",
        "load 0 h2 rho=1.1",
        "load 0 h2 rho=0.5 size=1501B",
    ] {
        assert!(matches!(refuse(text), Refused::Value { .. }), "{text}");
    }
    assert!(matches!(
        refuse("load 0 h2 rho=1 law=replay"),
        Refused::NotHere { .. }
    ));
    assert!(matches!(
        refuse("load 0 h9 rho=1"),
        Refused::NoSuchPort { .. }
    ));
    assert!(ethernet.counters().flows.is_empty() && ethernet.poll_at().is_none());
    let mut wire = network("wire", 2);
    let load: Command = "load 0 h2 rho=0.5".parse().unwrap();
    assert!(matches!(
        wire.command(Instant::START, load),
        Err(Refused::NotHere { .. })
    ));
}

#[test]
fn a_line_that_is_down_loses_the_load_too() {
    let mut network = network("ethernet-100", 3);
    tell(
        &mut network,
        Instant::START,
        "load 0 h2 rho=0.5 law=constant",
    );
    tell(
        &mut network,
        Instant::START,
        "load 1 h1 h3 rho=0.5 law=constant",
    );
    let at = |n: u64| Instant::START + Span::millis(n);
    tell(&mut network, at(100), "link h2 down");
    tell(&mut network, at(100), "host h1 down");
    tell(&mut network, at(200), "link h2 up");
    tell(&mut network, at(200), "host h1 up");
    while network.poll(at(300)).is_some() {}
    for flow in &network.counters().flows {
        let lost = flow.lost as f64 / flow.sent as f64;
        assert!((lost - 1.0 / 3.0).abs() < 0.01, "{lost}");
    }
    assert_eq!(network.counters().lost_total(), 0);
}

#[test]
fn a_schedule_of_loads_is_played_and_checked() {
    let plain = toml::to_string(&named("ethernet-100").unwrap()).unwrap();
    let load = "[[load]]\nfrom = \"h1\"\nto = \"h2\"\nrho = \"0.5\"\nlaw = \"constant\"\nat = \"10ms\"\nuntil = \"20ms\"\nduplex = true\n";
    let spec = parse("loaded", &format!("{plain}{load}")).unwrap();
    let mut network = Fabric::new(&spec, 2, 1).unwrap();
    let mut told = 0;
    while let Some(at) = network.poll_at() {
        while let Some(event) = network.poll(at) {
            assert!(matches!(event, Event::State { .. }), "{event:?}");
            told += 1;
        }
    }
    // Both begin and end.
    assert_eq!(told, 4);
    let flows = &network.counters().flows;
    assert_eq!(flows.len(), 2);
    assert_eq!(
        (flows[0].flow.from, flows[0].flow.to),
        (Some(Port(0)), Port(1))
    );
    assert_eq!(
        (flows[1].flow.from, flows[1].flow.to),
        (Some(Port(1)), Port(0))
    );
    for flow in flows {
        assert_eq!(flow.since, Instant::START + Span::millis(10));
        assert_eq!(flow.until, Some(Instant::START + Span::millis(20)));
        assert!((part(flow.achieved(Instant::START)) - 0.5).abs() < 0.02);
    }
    for (from, to, wanted) in [
        ("from = \"h1\"\n", "", "has no `from`"),
        ("until = \"20ms\"", "until = \"10ms\"", "raise `until`"),
        ("rho = \"0.5\"", "rho = \"1.5\"", "0 to 1"),
        ("\"h2\"", "\"two\"", "h1, h2"),
        ("\"constant\"", "\"steady\"", "self-similar:20"),
        ("law = \"constant\"", "law = \"replay\"", "capture"),
        ("to = \"h2\"", "to = \"h3\"", "h1 to h2"),
    ] {
        let text = format!("{plain}{}", load.replace(from, to));
        let spec = parse("loaded", &text).map_err(|e| e.to_string());
        let error = spec.and_then(|spec| {
            Fabric::new(&spec, 2, 1)
                .map(drop)
                .map_err(|e| e.to_string())
        });
        assert!(
            error.clone().unwrap_err().contains(wanted),
            "{to}: {error:?}"
        );
    }
}

/// The examples of a network with load and of one with faults are right.
#[test]
fn the_examples_are_networks() {
    for (name, loads, faults) in [("loaded", 2, 0), ("failing", 0, 3)] {
        let path = format!(
            "{}/../../plans/examples/networks/{name}.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let spec = parse(name, &std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!((spec.load.len(), spec.fault.len()), (loads, faults));
        Fabric::new(&spec, 4, 1).unwrap();
    }
}
