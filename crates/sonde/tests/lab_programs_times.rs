//! Real programs in a lab, measured: iperf3 at the ceiling of each kind of network and behind a window, sockperf on one CPU.

use crate::lab::{
    Stage, assert_attachment_lost_nothing, attached, attachments, crossed, has, is_long, report,
    spread,
};
use sonde_link::Headers;
use sonde_sys::noise::measured;
use sonde_virtual::{Sender, tcp_expected};

/// What iperf3 received, in bits a second, without its first second.
fn iperf3(stage: &Stage, network: &str, profile: &str) -> u64 {
    let script = "sonde lab exec --detach h2 -- iperf3 -s -1 > /dev/null; sleep 0.3; iperf3 -J -O 1 -t 2 -c h2";
    let written = stage.path("report");
    let options = [
        "--hosts",
        "2",
        "--network",
        network,
        "--profile",
        profile,
        "--report",
        &written,
    ];
    let outcome = stage.run(&options, &["sh", "-c", script]).expect(0);
    let result: serde_json::Value =
        serde_json::from_str(&outcome.out).unwrap_or_else(|e| panic!("{e}: {outcome}"));
    let received = result["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .unwrap();
    let sent = &result["end"]["sum_sent"]["retransmits"];
    let report = report(&written);
    println!(
        "{network} {profile} {:?}: {received:.0} b/s, {sent} retransmitted, late {} of {}",
        stage.case, report["late"], report["deliveries"]
    );
    if network != "wire" {
        assert_attachment_lost_nothing(&report);
        assert_eq!(report["lost"], serde_json::json!({}), "{report:#}");
    }
    received as u64
}

/// A network of each kind of medium, and the one without a rate; `cargo xtask bench networks` takes all. The short tier has the
/// first five: streams over `sci-sbus` are held to their ceiling in `lab_streams.rs`.
const KINDS: [&str; 9] = [
    "ethernet-100",
    "atm-oc3c",
    "fddi",
    "hippi-800",
    "allnode",
    "fc-266",
    "sci-sbus",
    "ethernet-10",
    "wire",
];

/// Where the attachment and the user make a difference, if anywhere: the long tier runs these in every case.
const EVERY_CASE: [&str; 2] = ["ethernet-100", "atm-oc3c"];

#[test]
fn iperf3_reaches_what_is_expected_and_no_more_than_the_ceiling() {
    measured(|| {
        if !has("iperf3") {
            return;
        }
        for (number, case) in crossed().into_iter().enumerate() {
            for (at, network) in KINDS.into_iter().enumerate() {
                let is_meant = match is_long() {
                    true => number == 0 || EVERY_CASE.contains(&network),
                    // One case a network, in turn.
                    false => at < 5 && at % crossed().len() == number,
                };
                if !is_meant {
                    continue;
                }
                let spec = sonde_link::named(network).expect("a network of the catalogue");
                let ceiling = sonde_link::tcp_max(&spec, Headers::Timestamps);
                let expected = tcp_expected(&spec, &Sender::modern()).ok();
                let stage = Stage::new(case);
                let within = |rate: u64| {
                    rate > 0
                        && ceiling.is_none_or(|ceiling| rate * 1_000 <= ceiling * 1_002)
                        && expected.is_none_or(|expected| rate * 10 >= expected * 9)
                };
                let rate = iperf3(&stage, network, "modern");
                assert!(
                    within(rate),
                    "{network}: {rate} b/s of {expected:?}, at most {ceiling:?}"
                );
                assert_eq!(expected.is_some(), network != "wire", "{network}");
            }
        }
    });
}

/// A window on a long way bounds the rate: 64 KiB in 20 ms are 26.2 Mb/s. Linux lets a smaller window follow the share of
/// data in the receive buffer (tcp_measure_rcv_mss), whatever the route says: 17.8 kB were seen for 16,384.
#[test]
fn a_window_bounds_the_rate_on_a_long_way() {
    measured(|| {
        if !has("iperf3") {
            return;
        }
        let windows = [("era", 65_535), ("era:window=16384", 16_384 * 5 / 4)];
        for (case, (profile, window)) in spread(&attachments(), &windows) {
            let rate = iperf3(&Stage::new(case), "wan-100m-20ms", profile);
            let most = window * 8 * 1_000 / 20;
            assert!(
                rate <= most && rate * 10 >= most * 7,
                "{profile}: {rate} of {most} b/s"
            );
        }
    });
}

/// Half a round trip of 64 B over TCP at the median, in microseconds, and what the lab says of itself.
fn round_trip(stage: &Stage, options: &[&str]) -> (f64, serde_json::Value) {
    let script = "sonde lab exec --detach h2 -- sockperf server --tcp -i 10.9.0.2 -p 7000; sleep 0.5; sockperf ping-pong --tcp -i 10.9.0.2 -p 7000 -t 1 -m 64";
    let written = stage.path("report");
    let usual = ["--hosts", "2", "--network", "ethernet-1g"];
    let options = [&usual[..], &["--report", &written], options].concat();
    let outcome = stage.run(&options, &["sh", "-c", script]).expect(0);
    let line = outcome
        .out
        .lines()
        .find(|line| line.contains("percentile 50.000"));
    let p50 = line.and_then(|line| line.split_whitespace().last()?.parse().ok());
    (p50.unwrap_or_else(|| panic!("{outcome}")), report(&written))
}

#[test]
fn a_round_trip_is_that_of_one_cpu() {
    if !has("sockperf") {
        return;
    }
    measured(|| {
        for case in attached("veth") {
            let stage = Stage::new(case);
            // By turns, and the best of three of each: what else runs on the machine can only add to a round trip.
            let turns: Vec<_> = (0..3)
                .map(|_| {
                    let (usual, one) = (
                        round_trip(&stage, &[]),
                        round_trip(&stage, &["--cpus", "one"]),
                    );
                    println!("{case:?}: {} us by default, {} on one CPU", usual.0, one.0);
                    (usual, one)
                })
                .collect();
            let best = |times: &mut dyn Iterator<Item = f64>| times.fold(f64::INFINITY, f64::min);
            let usual_us = best(&mut turns.iter().map(|(usual, _)| usual.0));
            let one_us = best(&mut turns.iter().map(|(_, one)| one.0));
            assert!(
                usual_us <= 1.3 * one_us,
                "{case:?}: {usual_us} us by default, {one_us} on one CPU"
            );
            let (usual, one) = &turns[0];
            assert_eq!(usual.1["cpu_plan"], "auto");
            assert!(usual.1["cpu_moves"].as_u64() >= Some(1), "{:#}", usual.1);
            assert_eq!(
                (&one.1["cpu_plan"], &one.1["cpu_moves"]),
                (&"one".into(), &0.into())
            );
            // A stream has the switch apart, but for a trial now and then.
            iperf3(&stage, "ethernet-1g", "modern");
            let stream = report(&stage.path("report"));
            let part = |name: &str| stream[name].as_u64().unwrap();
            assert!(10 * part("cpu_shared_ns") <= part("span_ns"), "{stream:#}");
        }
    });
}
