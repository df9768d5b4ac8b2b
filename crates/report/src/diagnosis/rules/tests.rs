//! Tests of [`super`].

use super::*;
use crate::diagnosis::of;

const AVAILABLE: Setting = Setting::TcpAvailableCongestionControl;

const MODERN: [(Setting, &str); 9] = [
    (Setting::TcpRmem, "4096 131072 6291456"),
    (Setting::TcpWmem, "4096 65536 4194304"),
    (Setting::TcpWindowScaling, "1"),
    (Setting::TcpTimestamps, "1"),
    (Setting::TcpSack, "1"),
    (Setting::TcpModerateRcvbuf, "1"),
    (AVAILABLE, "reno cubic bbr"),
    (Setting::OffloadGso, "on"),
    (Setting::OffloadGro, "on"),
];

fn end(host: &str) -> End {
    End {
        host: host.into(),
        settings: MODERN.into_iter().collect(),
        mtu_bytes: Some(1_500),
        cpus: 8,
        thread_cpu: Some(0.1),
        cpu_ns_per_byte: Some(1.0),
        host_cpu: Some(0.1),
        put_aside_per_s: Some(1.0),
    }
}

/// A healthy pair: 100 Mb/s, 20 ms.
fn wan() -> Evidence {
    Evidence {
        network: "wan".into(),
        apart: true,
        network_mtu: Some(1_500),
        rate_bps: Some(93.5e6),
        reach_bps: Some(94.1e6),
        rtt_ns: Some(20e6),
        latency_ns: vec![(1, 10e6), (1_448, 10.2e6)],
        rwnd_share: Some(0.0),
        sndbuf_share: Some(0.0),
        again_share: Some(0.0),
        mss_bytes: Some(1_448),
        congestion: Some("cubic".into()),
        lost_share: Some(0.0),
        reordered_share: Some(0.0),
        src: end("a"),
        dst: end("b"),
        ..Evidence::default()
    }
}

/// A healthy pair: 1 Gb/s, 0.1 ms.
fn lan() -> Evidence {
    Evidence {
        network: "lan".into(),
        rate_bps: Some(935e6),
        reach_bps: Some(941e6),
        rtt_ns: Some(1e5),
        latency_ns: vec![(1, 5e4), (1_448, 6e4)],
        ..wan()
    }
}

fn set(end: &mut End, pairs: &[(Setting, &str)]) {
    for (setting, value) in pairs {
        end.settings.read(*setting, value);
    }
}

fn era(evidence: &mut Evidence) {
    for end in [&mut evidence.src, &mut evidence.dst] {
        set(
            end,
            &[
                (Setting::TcpRmem, "4096 131070 131070"),
                (Setting::TcpWmem, "4096 131070 131070"),
                (Setting::TcpWindowScaling, "0"),
                (Setting::TcpTimestamps, "0"),
                (Setting::TcpSack, "0"),
                (Setting::TcpModerateRcvbuf, "0"),
                (Setting::RouteWindow, "65535"),
                (Setting::RouteCongctl, "reno"),
            ],
        );
    }
    evidence.congestion = Some("reno".into());
    (evidence.rate_bps, evidence.rwnd_share) = (Some(26e6), Some(0.99));
}

type Plant = fn(&mut Evidence);

#[test]
fn planted_faults_are_named() {
    let plants: [(&str, Plant); 16] = [
        ("receive-window", era),
        ("receive-window", |one| {
            era(one);
            // Both buffers are as large: the kernel charges the wait to either.
            (one.rate_bps, one.rwnd_share) = (Some(22.6e6), Some(0.4));
            one.sndbuf_share = Some(0.4);
        }),
        ("receive-window", |one| {
            set(&mut one.dst, &[(Setting::TcpRmem, "4096 65536 65536")]);
            (one.rate_bps, one.rwnd_share) = (Some(15e6), Some(0.97));
        }),
        ("receive-window", |one| {
            // The sender's buffer is smaller, but the kernel says that the stream did not wait for it.
            set(&mut one.dst, &[(Setting::TcpRmem, "4096 65536 131072")]);
            set(&mut one.src, &[(Setting::TcpWmem, "4096 65536 98304")]);
            (one.rate_bps, one.rwnd_share) = (Some(20e6), Some(0.9));
        }),
        ("receive-window", |one| {
            set(&mut one.src, &[(Setting::TcpWindowScaling, "0")]);
            (one.rate_bps, one.rwnd_share) = (Some(26e6), None);
        }),
        ("send-buffer", |one| {
            set(&mut one.src, &[(Setting::TcpWmem, "4096 16384 32768")]);
            (one.rate_bps, one.sndbuf_share) = (Some(8e6), Some(0.9));
        }),
        ("mtu", |one| {
            (one.rate_bps, one.src.mtu_bytes) = (None, Some(9_000));
            one.failures = vec!["waited 10.000 s for room, which did not come".into(); 6];
        }),
        ("mtu", |one| {
            one.rate_bps = None;
            one.failures = vec!["waited 10.000 s for room, which did not come".into()];
        }),
        ("congestion", |one| {
            (one.rate_bps, one.again_share) = (Some(10e6), Some(0.005));
        }),
        ("loss", |one| {
            (one.rate_bps, one.again_share) = (Some(10e6), Some(0.005));
            one.src.settings.remove(AVAILABLE);
        }),
        // 0.02 of the segments taken for lost leave 5 Mb/s.
        ("reordering", |one| {
            (one.rate_bps, one.reordered_share) = (Some(4e6), Some(0.02));
        }),
        ("offload", |one| {
            set(&mut one.src, &[(Setting::OffloadGso, "off")]);
            (one.rate_bps, one.src.thread_cpu) = (Some(60e6), Some(0.95));
        }),
        ("cpu", |one| {
            (one.rate_bps, one.dst.thread_cpu) = (Some(60e6), Some(0.98));
        }),
        ("cpu-hog", |one| {
            one.rate_bps = Some(40e6);
            let dst = &mut one.dst;
            (dst.host_cpu, dst.put_aside_per_s) = (Some(1.0), Some(400.0));
        }),
        ("interrupts", |one| {
            one.rate_bps = Some(60e6);
            set(&mut one.dst, &[(Setting::InterruptCpus, "0")]);
            (one.dst.host_cpu, one.dst.thread_cpu) = (Some(0.2), Some(0.6));
        }),
        ("nagle", |one| {
            one.latency_ns = vec![(1, 5e4), (3_000, 40.1e6)]
        }),
    ];
    for (rule, plant) in plants {
        let mut evidence = wan();
        plant(&mut evidence);
        let found = of(&evidence);
        let first = found.causes.first();
        let first = first.unwrap_or_else(|| panic!("{rule} was not found in {evidence:?}"));
        assert_eq!(first.rule, rule, "{found:?}");
        for text in [
            &first.sentence,
            &first.arithmetic,
            &first.threshold,
            &first.source,
        ] {
            assert!(!text.is_empty(), "{first:?}");
        }
        assert!(
            first.change.is_some() || !first.remedy.is_empty(),
            "{first:?}"
        );
    }
}

#[test]
fn healthy_pairs_have_no_cause() {
    let healthy: [Plant; 5] = [
        |_| {},
        // A few segments sent again are no fault where the path is full.
        |one| one.again_share = Some(0.002),
        // A slow start of one stream of many.
        |one| one.failures = vec!["the host was lost".into()],
        // The window is often full where the path is.
        |one| one.rwnd_share = Some(0.8),
        // A little below, and nothing holds it.
        |one| one.rate_bps = one.reach_bps.map(|most| 0.85 * most),
    ];
    for base in [wan, lan] {
        for change in healthy {
            let mut evidence = base();
            change(&mut evidence);
            assert_eq!(of(&evidence).causes, [], "{evidence:?}");
        }
    }
    // A starved receiver of a short path is no window: none of its settings binds.
    let mut starved = lan();
    (starved.rate_bps, starved.rwnd_share) = (Some(500e6), Some(0.7));
    let found = of(&starved);
    assert_eq!(found.causes[0].rule, "slow-reader");
    assert_eq!(found.causes[0].change, None);
    // Nor is it a reader where the program's own window is what closes.
    starved.window_asked = Some(8_192);
    starved.rate_bps = Some(300e6);
    starved.rtt_ns = Some(150_000.0);
    let found = of(&starved);
    assert_eq!(found.causes[0].rule, "receive-window");
    let change = found.causes[0].change.clone().unwrap();
    assert_eq!(change.sockets.get("window"), Some(&None));
    // Nor where the window holds less than two segments, though the rate is far below what a round trip allows.
    starved.rate_bps = Some(100e6);
    assert_eq!(of(&starved).causes[0].rule, "slow-reader");
    starved.window_asked = Some(2_048);
    starved.rate_bps = Some(40e6);
    assert_eq!(of(&starved).causes, []);
    let mut unknown = wan();
    (unknown.reach_bps, unknown.rate_bps) = (None, Some(20e6));
    assert_eq!(of(&unknown).causes, []);
}

fn names(evidence: &Evidence) -> Vec<String> {
    let causes = of(evidence).causes;
    causes.into_iter().map(|cause| cause.rule).collect()
}

/// Each has its sign, and its own limit is far from what was measured, or there is none.
#[test]
fn what_does_not_explain_is_not_named() {
    let plants: [(&str, Plant); 9] = [
        (
            "a window of 26 Mb/s, held, where 3 Mb/s are carried",
            |one| {
                era(one);
                one.rate_bps = Some(3e6);
            },
        ),
        ("held in 38.7 % of the time, by nothing else", |one| {
            set(&mut one.dst, &[(Setting::TcpRmem, "4096 65536 65536")]);
            (one.rate_bps, one.rwnd_share) = (Some(12e6), Some(0.387));
        }),
        (
            "a send buffer of 6.6 Mb/s, held, where 1 Mb/s is carried",
            |one| {
                set(&mut one.src, &[(Setting::TcpWmem, "4096 16384 32768")]);
                (one.rate_bps, one.sndbuf_share) = (Some(1e6), Some(0.9));
            },
        ),
        (
            "0.1 % again leaves 22 Mb/s, and 3 Mb/s are carried",
            |one| {
                (one.rate_bps, one.again_share) = (Some(3e6), Some(0.001));
            },
        ),
        ("bbr does not give way to loss", |one| {
            (one.rate_bps, one.again_share) = (Some(10e6), Some(0.005));
            one.congestion = Some("bbr".into());
        }),
        ("as of a loopback: loss leaves 545 Gb/s", |one| {
            (one.rtt_ns, one.mss_bytes) = (Some(2e4), Some(32_741));
            (one.rate_bps, one.reach_bps) = (Some(13.31e9), None);
            one.again_share = Some(0.001);
        }),
        ("overtaken, and 30 Mb/s for all that", |one| {
            (one.rate_bps, one.reordered_share) = (Some(30e6), Some(0.02));
        }),
        ("one CPU serves interrupts, and three are in use", |one| {
            one.rate_bps = Some(60e6);
            set(&mut one.dst, &[(Setting::InterruptCpus, "0")]);
            (one.dst.host_cpu, one.dst.thread_cpu) = (Some(0.45), Some(0.6));
        }),
        ("offload off, and the CPU idle", |one| {
            set(&mut one.src, &[(Setting::OffloadGso, "off")]);
            (one.rate_bps, one.src.thread_cpu) = (Some(60e6), Some(0.3));
        }),
    ];
    for (why, plant) in plants {
        let mut evidence = wan();
        plant(&mut evidence);
        let found = names(&evidence);
        let found: Vec<_> = found.iter().filter(|rule| *rule != "slow-reader").collect();
        assert!(found.is_empty(), "{why}: {found:?}");
    }
}

/// Two have their signs and explain the rate: the lower limit is the one that binds.
#[test]
fn a_larger_cause_hides_the_others() {
    let plants: [(&str, Plant); 6] = [
        // A window of 26 Mb/s, and 1 % again: 7.1 Mb/s.
        ("congestion", |one| {
            era(one);
            (one.rate_bps, one.again_share) = (Some(14e6), Some(0.0025));
        }),
        // The other way round: 0.1 % again leaves 22 Mb/s, and the window 13.
        ("receive-window", |one| {
            set(&mut one.dst, &[(Setting::TcpRmem, "4096 65536 65536")]);
            (one.rate_bps, one.rwnd_share) = (Some(12.5e6), Some(0.97));
            one.again_share = Some(0.001);
        }),
        // Lost, and overtaken by more.
        ("reordering", |one| {
            (one.rate_bps, one.again_share) = (Some(4.5e6), Some(0.015));
            one.reordered_share = Some(0.02);
        }),
        // The window of 26 Mb/s is wide open at 20 beside a thread that has no CPU left.
        ("cpu", |one| {
            era(one);
            (one.rate_bps, one.rwnd_share) = (Some(20e6), Some(0.6));
            one.dst.thread_cpu = Some(0.99);
        }),
        // A send buffer of 13 Mb/s before a window of 26.
        ("send-buffer", |one| {
            era(one);
            set(&mut one.src, &[(Setting::TcpWmem, "4096 65536 65536")]);
            (one.rate_bps, one.rwnd_share) = (Some(13e6), Some(0.5));
            one.sndbuf_share = Some(0.9);
        }),
        // Others on the CPU, beside a window that explains the rate.
        ("receive-window", |one| {
            era(one);
            let dst = &mut one.dst;
            (dst.host_cpu, dst.put_aside_per_s) = (Some(1.0), Some(400.0));
        }),
    ];
    for (rule, plant) in plants {
        let mut evidence = wan();
        plant(&mut evidence);
        assert_eq!(names(&evidence), [rule], "{evidence:?}");
    }
    // A wait that two buffers of one size share is said once, of the one that has more of it, and with both parts.
    for (rule, held, of_buffer) in [("receive-window", 0.5, 0.387), ("send-buffer", 0.387, 0.5)] {
        let mut evidence = wan();
        era(&mut evidence);
        (evidence.rwnd_share, evidence.sndbuf_share) = (Some(held), Some(of_buffer));
        let found = of(&evidence).causes;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].rule, rule);
        assert!(
            found[0]
                .sentence
                .contains("of the same size in 38.7 %: 88.7 % together"),
            "{found:?}"
        );
    }
}

#[test]
fn the_window_of_era_is_found_with_its_arithmetic() {
    let mut evidence = wan();
    era(&mut evidence);
    let found = of(&evidence);
    let cause = &found.causes[0];
    assert_eq!(
        cause.arithmetic,
        "65 535 B x 8 / 20.00 ms = 26.21 Mb/s; 94.10 Mb/s x 20.00 ms / 8 = 235 250 B needed in flight"
    );
    let change = cause.change.clone().unwrap();
    let text: Vec<String> = change
        .hosts
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(
        text,
        [
            "net.ipv4.tcp_window_scaling=1",
            "net.ipv4.tcp_timestamps=1",
            "net.ipv4.tcp_sack=1",
            "net.ipv4.tcp_rmem=4096 131072 1048576",
            "net.ipv4.tcp_wmem=4096 65536 1048576",
            "net.ipv4.tcp_moderate_rcvbuf=1",
            "route.window=none",
        ]
    );
    assert_eq!(cause.expected_bps, Some(94.1e6));
    assert_eq!(found.needed_bytes, Some(235_250));
}

#[test]
fn a_programs_own_buffer_is_its_own() {
    let mut evidence = wan();
    evidence.rcvbuf_asked = Some(65_536);
    (evidence.rate_bps, evidence.rwnd_share) = (Some(26e6), Some(0.99));
    let change = of(&evidence).causes[0].change.clone().unwrap();
    assert_eq!(change.hosts, []);
    assert_eq!(change.sockets, [("rcvbuf".to_owned(), None)].into());
    // Where the kernel's own bound is as small, that too.
    set(&mut evidence.dst, &[(Setting::TcpRmem, "4096 65536 65536")]);
    let change = of(&evidence).causes[0].change.clone().unwrap();
    assert_eq!(change.hosts[0].0, "net.ipv4.tcp_rmem");
}
