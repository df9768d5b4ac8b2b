//! What framing leaves of each line, and what host rate control leaves of that.

use super::abr::shares;
use super::rig::{Rig, spec};
use sonde_link::{Headers, overhead, tcp_max};
use sonde_units::{Bytes, Instant, Span};

/// The table of TCP maxima at plain headers and an MTU of 9180, in kb/s.
#[test]
fn ceilings_are_those_of_the_table() {
    for (name, kbit) in [
        ("atm-taxi", 89_820),
        ("atm-taxi:payload=53/54", 88_160),
        ("atm-taxi140", 125_750),
        ("atm-25", 22_990),
        ("atm-ds1", 1_380),
        ("atm-e1", 1_725),
        ("atm-e3", 30_470),
        ("atm-ds3", 36_560),
        ("atm-ds3-direct", 39_710),
        ("atm-oc3c", 134_510),
        ("atm-oc12c", 538_050),
        ("atm-oc48c", 2_152_200),
        ("atm-oc3c:mtu=1500", 128_920),
        ("atm-oc3c:mtu=1500:encapsulation=lane", 128_920),
    ] {
        let bps = tcp_max(&spec(name, ""), Headers::Plain).expect("it has a rate") as f64;
        let published = 1_000.0 * f64::from(kbit);
        assert!((bps / published - 1.0).abs() < 0.001, "{name}: {bps}");
    }
}

/// The cells a second of each line.
#[test]
fn cell_rates_are_those_of_the_standards() {
    for (name, cells) in [
        ("atm-taxi", 235_849.0),
        ("atm-ds3", 96_000.0),
        ("atm-ds3-direct", 104_268.0),
        ("atm-oc3c", 353_207.5),
        ("atm-oc12c", 1_412_830.0),
        ("atm-e1", 4_528.0),
    ] {
        let time = spec(name, "").line.unit_time(Bytes(53)).as_picos() as f64;
        assert!(
            (1e12 / time / cells - 1.0f64).abs() < 1e-4,
            "{name}: {time}"
        );
    }
}

/// A stream meets the ceiling, also where stations keep to a peak rate, and the chain says so.
#[test]
fn a_stream_meets_its_ceiling() {
    for name in [
        "atm-taxi",
        "atm-ds3",
        "atm-e3",
        "atm-oc12c",
        "atm-oc3c:pcr=50Mbit",
    ] {
        let spec = spec(name, "");
        let mut rig = Rig::new(&spec, 2, 1);
        let end = Instant::START + spec.frame_time(Bytes(9_180)) * 300;
        rig.blast(&[(0, 1)], 9_180, end);
        let bits = rig.sums().0 as f64 * 8.0 * 9_140.0 / 9_180.0;
        let reached = bits / end.since(Instant::START).as_picos() as f64 * 1e12;
        let ceiling = tcp_max(&spec, Headers::Plain).expect("it has a rate") as f64;
        assert!(
            reached <= ceiling && reached > 0.99 * ceiling,
            "{name}: {reached} of {ceiling}"
        );
        let chain = overhead(&spec, Headers::Plain);
        assert_eq!(
            chain.last().map(|step| step.bps as f64),
            Some(ceiling),
            "{name}"
        );
        assert!(
            chain.windows(2).all(|pair| pair[0].bps >= pair[1].bps),
            "{name}: {chain:?}"
        );
    }
}

/// 5 ns a metre: the 56 m between two hosts take 0.28 us, not the 0.44 us that were printed; a line is half of them.
#[test]
fn propagation_is_5_ns_a_metre() {
    assert_eq!(spec("atm-oc3c", "").line.propagation(), Span::nanos(140));
    assert_eq!(spec("wan-oc3c", "").line.propagation(), Span::micros(1_250));
}

/// Each host has the rate of its interface, whatever the others have; a faster interface leaves the switch and them as they are.
#[test]
fn a_switch_gives_each_host_the_rate_of_its_interface() {
    const PAYLOAD: f64 = 9_180.0 / (192.0 * 53.0);
    let with = |lines: [&str; 4]| {
        let line = |(port, rate): (usize, &str)| {
            format!("[[port]]\nport = {port}\nrate = \"{rate}\"\npayload = \"1/1\"\n")
        };
        spec(
            "atm-oc3c",
            &lines.into_iter().enumerate().map(line).collect::<String>(),
        )
    };
    // Four desktops, each to one of two servers on OC-3c.
    let pairs = [(0, 4), (1, 5), (2, 5), (3, 5)];
    let matched = with(["25.6Mbit"; 4]);
    let replaced = with(["100Mbit", "25.6Mbit", "25.6Mbit", "25.6Mbit"]);
    assert_eq!(
        format!("{:?}", matched.switch),
        format!("{:?}", replaced.switch)
    );
    for (spec, first) in [(&matched, 25.6e6), (&replaced, 100e6)] {
        let (rates, lost) = shares(spec, 6, &pairs, 1_000);
        assert_eq!(lost, 0);
        for (rate, line) in rates.iter().zip([first, 25.6e6, 25.6e6, 25.6e6]) {
            assert!((rate / (line * PAYLOAD) - 1.0).abs() < 0.02, "{rates:?}");
        }
    }
    // On the Ethernet before, four share what one has now.
    let (rates, _) = shares(&spec("ethernet-10:mtu=9180", ""), 6, &pairs, 1_000);
    assert!(rates.iter().sum::<f64>() < 10e6, "{rates:?}");
}
