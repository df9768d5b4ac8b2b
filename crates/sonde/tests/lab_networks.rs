//! Networks in a running lab: several at once, changed by word and by script, loaded, with circuits, without loss, with hosts.
//!
//! Model:   what a host's own programs see: `ping`, its interfaces' counters, datagrams that are counted at both ends. Times are
//!          bounded from below by the model, which is never early, and else compared with each other in one lab.

use crate::lab::{Case, Outcome, Stage, assert_attachment_lost_nothing, attachments, has, report};
use crate::part::traffic;
use serde_json::json;
use sonde_link::Port;
use sonde_link::ledger::{Entry, Reader};
use sonde_sys::noise::measured;
use std::collections::BTreeMap;

const USAGE: i32 = 64;
/// Shell functions of the scripts: `fails` and `answers` say whether h2 (or who is named) answers, with what word for it.
const PINGS: &str = "
answers() { ping -q -c 2 -i 0.1 -W 2 ${2:-h2} >/dev/null && echo $1 yes || echo $1 no; }
fails() { ping -q -c 2 -i 0.1 -W 0.3 ${2:-h2} >/dev/null && echo $1 yes || echo $1 no; }
tell() { sonde lab tell \"$@\" || exit 9; }
";

/// Runs `script` on h1; its last word on a network.
fn on_h1(stage: &Stage, options: &[&str], script: &str) -> Outcome {
    let script = format!("{PINGS}{script}");
    stage.run(options, &["sh", "-c", &script]).expect(0)
}

/// The lines that a script wrote.
fn lines(outcome: &Outcome) -> Vec<&str> {
    outcome.out.lines().collect()
}

/// When the echoes of `ping -D` came, in microseconds.
fn echoes(text: &str) -> Vec<u64> {
    let stamps = text.lines().filter_map(|line| {
        let stamp = line.strip_prefix('[')?.split_once(']')?.0;
        let (seconds, micros) = stamp.split_once('.')?;
        Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
    });
    stamps.collect()
}

/// The longest time without an echo.
fn gap_us(outcome: &Outcome) -> u64 {
    let stamps = echoes(&outcome.out);
    let gaps = stamps.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max()
        .unwrap_or_else(|| panic!("no two echoes: {outcome}"))
}

/// The round trips that `ping` printed after the line `begin`, in microseconds, ascending.
fn round_trips_us(text: &str, begin: &str) -> Vec<u64> {
    let mut lines = text.lines().skip_while(|line| *line != begin).skip(1);
    let mut times = Vec::new();
    for line in lines
        .by_ref()
        .take_while(|line| !line.starts_with("begin "))
    {
        let time = line
            .split_once("time=")
            .and_then(|(_, rest)| rest.split_whitespace().next());
        times.extend(
            time.and_then(|time| time.parse::<f64>().ok())
                .map(|ms| (ms * 1e3) as u64),
        );
    }
    times.sort_unstable();
    assert!(!times.is_empty(), "no echo after `{begin}`: {text}");
    times
}

fn median(times: &[u64]) -> u64 {
    times[times.len() / 2]
}

#[test]
fn hosts_on_two_networks_use_the_one_they_address() {
    if !has("ping") {
        return;
    }
    for case in attachments() {
        let stage = Stage::new(case);
        let sent = "awk '/eth[01]:/ { print $10 }' /proc/net/dev";
        let script = format!(
            "ping -q -c 1 10.9.0.2 >/dev/null && ping -q -c 1 h2-eth1 >/dev/null || exit 7
            {sent}; on h2 receive > heard & wait_for heard; part blast 10.9.1.2 1000 300 > sent; wait; {sent}; cat heard"
        );
        let options = [
            "--hosts",
            "2",
            "--network",
            "ethernet-100",
            "--network",
            "fddi",
        ];
        let (outcome, report) = traffic(&stage, &options, &script);
        let counts: Vec<u64> = lines(&outcome)
            .iter()
            .filter_map(|line| line.parse().ok())
            .collect();
        let [before0, before1, after0, after1] = counts[..] else {
            panic!("not four counters: {outcome}");
        };
        assert!(after1 - before1 >= 300 * 1_028, "{outcome}");
        assert!(
            after0 - before0 < 1_028,
            "nothing went by the other network: {outcome}"
        );
        assert_eq!(
            (outcome.part(0, "received"), outcome.part(0, "wrong")),
            (300, 0),
            "{outcome}"
        );
        assert_attachment_lost_nothing(&report);
        assert_eq!(report["lost"], json!({}), "{report:#}");
    }
}

/// Two hosts overload the way to h2 on one network: who asks h2 there waits in its queue, who asks on the other does not.
#[test]
fn load_on_one_network_leaves_the_other_alone() {
    measured(|| {
        if !has("ping") {
            return;
        }
        for case in attachments() {
            let stage = Stage::new(case);
            let script = "on h2 receive > heard & wait_for heard
            for h in h3 h4; do on $h blast 10.9.0.2 1400 1800 > sent.$h & done; sleep 0.7
            for net in 0 1; do echo begin $net; ping -c 15 -i 0.05 10.9.$net.2; done; wait; cat heard";
            let network = "ethernet-100:rate=10Mbit";
            let options = ["--hosts", "4", "--network", network, "--network", network];
            let (outcome, _) = traffic(&stage, &options, script);
            let [loaded, private] =
                ["begin 0", "begin 1"].map(|begin| median(&round_trips_us(&outcome.out, begin)));
            println!(
                "{case:?}: round trip {loaded} us on the loaded network, {private} us on the other"
            );
            assert!(
                loaded > 5 * private,
                "{loaded} us and {private} us: {outcome}"
            );
        }
    });
}

#[test]
fn what_is_told_happens_and_ends() {
    if !has("ping") {
        return;
    }
    let script = "
answers start
tell link h2 down; fails link; tell link h2 up; answers link
tell loss h2 100%; fails loss; tell loss h2 0%; answers loss
tell pause h2 on; fails pause; tell pause h2 off; answers pause
tell cut h1 h2 on; fails cut; answers beside h3; tell cut h1 h2 off; answers cut
tell host h3 down; fails host h3; tell host h3 up; answers host h3
tell vc release h1 h2; fails vc; tell vc establish h1 h2; answers vc";
    let wanted = "start yes, link no, link yes, loss no, loss yes, pause no, pause yes, cut no, beside yes, cut yes, host no, host yes, vc no, vc yes";
    for case in attachments() {
        let stage = Stage::new(case);
        let outcome = on_h1(&stage, &["--hosts", "3", "--network", "atm-oc3c"], script);
        assert_eq!(lines(&outcome).join(", "), wanted, "{outcome}");
    }
}

#[test]
fn delay_and_rate_are_told_and_taken_back() {
    if !has("ping") {
        return;
    }
    let script = "ping='ping -c 5 -i 0.1 -s 1400'
echo begin first; $ping h2; tell delay all 20ms; echo begin delayed; $ping h2; tell delay all 0s
tell rate 1Mbit; echo begin slow; $ping h2; tell rate own; echo begin last; $ping h2";
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let outcome = on_h1(
        &stage,
        &["--hosts", "2", "--network", "ethernet-100"],
        script,
    );
    let [first, delayed, slow, last] = ["first", "delayed", "slow", "last"]
        .map(|name| round_trips_us(&outcome.out, &format!("begin {name}")));
    assert!(delayed[0] >= 40_000, "two ways of 20 ms: {outcome}");
    // 1,442 bytes and what Ethernet adds, four times: two ways, each stored once.
    assert!(slow[0] >= 4 * 11_600, "{outcome}");
    assert!(
        median(&first) < slow[0] && median(&last) < slow[0],
        "{outcome}"
    );
}

#[test]
fn what_cannot_be_told_is_said() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(case);
    let tell = |words: &str, code: i32, said: &[&str]| {
        let script = format!("sonde lab tell {words}");
        stage
            .run(&["--hosts", "2"], &["sh", "-c", &script])
            .expect(code)
            .tells(said);
    };
    tell(
        "lnk h2 down",
        USAGE,
        &["`lnk` is not a command", "`link`", "link h2 down"],
    );
    tell("eth3 link h1 down", 2, &["no such network", "eth0"]);
    tell("trunk 0 down", 2, &["no such trunk"]);
    tell("vc release h1 h2", 2, &["no virtual circuits", "atm-oc3c"]);
    tell("link h9 down", 2, &["h9 cannot be meant", "h1 to h2"]);
    stage
        .sonde(&["lab", "tell", "link", "h2", "down"])
        .expect(2)
        .tells(&["cannot reach the switch", "lab shell"]);
}

#[test]
fn a_script_is_played_at_its_times_and_read_line_by_line() {
    if !has("ping") {
        return;
    }
    for case in attachments() {
        let stage = Stage::new(case);
        let script = stage.path("script");
        std::fs::write(&script, "1s link h2 down # for a second\n\n2s link h2 up\n").unwrap();
        let options = ["--hosts", "2", "--script", &script];
        let program = ["ping", "-D", "-c", "30", "-i", "0.1", "-W", "1", "h2"];
        let outcome = stage.run(&options, &program).expect(0);
        let gap = gap_us(&outcome);
        println!("{case:?}: no echo for {gap} us, the link was down for 1 s");
        // An echo leaves up to a tenth before the link fails, and comes up to a tenth, and what a busy machine adds, after.
        assert!((990_000..2_000_000).contains(&gap), "{gap} us: {outcome}");
        for (text, said) in [
            (
                "1s link h2 down\n# so\n2s lnk h2 up\n",
                "line 3: `lnk h2 up`",
            ),
            ("link h2 down\n", "line 1"),
            ("\n1 link h2 down\n", "line 2"),
        ] {
            std::fs::write(&script, text).unwrap();
            stage
                .run(&options, &["true"])
                .expect(USAGE)
                .tells(&[said, "script"]);
        }
    }
}

#[test]
fn background_load_is_what_was_asked_for_and_reaches_no_host() {
    measured(|| {
        for case in attachments() {
            for (network, load, share) in [
                ("atm-oc3c", "0.6", 0.6),
                ("ethernet-100", "0.3:law=constant", 0.3),
            ] {
                let stage = Stage::new(case);
                let (written, capture) = (stage.path("report"), stage.path("h2.pcap"));
                let pcap = format!("h2={capture}");
                let options = [
                    "--hosts",
                    "3",
                    "--network",
                    network,
                    "--load",
                    load,
                    "--report",
                    &written,
                    "--pcap",
                    &pcap,
                ];
                let count = "awk '/eth0:/ { print $3 }' /proc/net/dev; sonde lab exec h2 -- awk '/eth0:/ { print $3 }' /proc/net/dev";
                let script = format!("sleep 2; {count}");
                let outcome = stage.run(&options, &["sh", "-c", &script]).expect(0);
                assert_eq!(lines(&outcome), ["0", "0"], "{outcome}");
                let report = report(&written);
                let flows = report["flows"].as_array().unwrap();
                assert_eq!(flows.len(), 3, "{report:#}");
                for flow in flows {
                    let achieved = flow["achieved"].as_f64().unwrap();
                    assert!(
                        (flow["wanted"].as_f64().unwrap() - share).abs() < 1e-9,
                        "{flow}"
                    );
                    assert!(
                        (achieved / share - 1.0).abs() <= 0.03,
                        "{network} {case:?}: {flow}"
                    );
                }
                let length = std::fs::metadata(&capture).unwrap().len();
                assert_eq!(length, 24, "a capture without frames is its head alone");
            }
        }
    });
}

#[test]
fn a_run_with_script_and_load_is_repeated_by_the_virtual_clock() {
    if !has("ping") {
        return;
    }
    for case in attachments() {
        for network in ["atm-oc3c", "ethernet-10"] {
            let stage = Stage::new(case);
            let (script, ledger) = (stage.path("script"), stage.path("ledger"));
            std::fs::write(
                &script,
                "0.5s loss h2 30%\n1s delay all 3ms\n1.2s link h2 down\n1.5s link h2 up\n",
            )
            .unwrap();
            let options = [
                "--hosts",
                "2",
                "--network",
                network,
                "--load",
                "0.3",
                "--script",
                &script,
                "--ledger",
                &ledger,
            ];
            stage
                .run(
                    &options,
                    &["ping", "-q", "-c", "40", "-i", "0.05", "-s", "1000", "h2"],
                )
                .expect(0);
            let replayed = stage.sonde(&["lab", "replay", &ledger]).expect(0);
            assert!(
                replayed
                    .out
                    .contains("same admissions, same order, same losses"),
                "{replayed}"
            );
            let losses = replayed
                .out
                .lines()
                .find_map(|line| line.strip_prefix("losses")?.trim().parse::<u64>().ok());
            assert!(
                losses.is_some_and(|losses| losses > 0),
                "the script lost something: {replayed}"
            );
        }
    }
}

/// A manager that comes back has forgotten the circuits: it restores them in its time, or someone establishes them.
#[test]
fn permanent_circuits_are_lost_at_a_restart_of_their_manager_and_restored() {
    if !has("ping") {
        return;
    }
    let restart = "tell manager down; sleep 0.2; tell manager up";
    for case in attachments() {
        let stage = Stage::new(case);
        let script = format!("ping -D -c 30 -i 0.1 -W 1 h2 & sleep 0.8; {restart}; wait");
        let network = "atm-oc3c:restoration=automatic:restore=1s";
        let outcome = on_h1(&stage, &["--hosts", "2", "--network", network], &script);
        let gap = gap_us(&outcome);
        println!("{case:?}: no echo for {gap} us, restored after 1 s");
        assert!((990_000..2_400_000).contains(&gap), "{gap} us: {outcome}");

        let script = format!(
            "answers there; {restart}; sleep 0.2; fails lost; tell vc establish h1 h2; answers again"
        );
        let outcome = on_h1(&stage, &["--hosts", "2", "--network", "atm-oc3c"], &script);
        assert_eq!(
            lines(&outcome),
            ["there yes", "lost no", "again yes"],
            "{outcome}"
        );
    }
}

/// All that was sent is found: at the programs, or counted by the receiving host's own kernel, which a busy machine overruns.
fn all_arrived(case: Case, network: &str, hosts: u64, (size, count): (u64, u64)) {
    let stage = Stage::new(case);
    let script = format!(
        "rm -f heard; part receive > heard & wait_for heard; for n in $(seq 2 {hosts}); do on h$n blast h1 {size} {count} > sent.$n & done; wait; cat heard"
    );
    let options = ["--hosts", &hosts.to_string(), "--network", network];
    let (outcome, report) = traffic(&stage, &options, &script);
    let heard = |name| outcome.part(0, name);
    let [received, overrun, torn] = ["received", "overrun", "torn"].map(heard);
    println!(
        "{network} {case:?}, {hosts} hosts: {received} of {}, overrun {overrun}, torn {torn}",
        (hosts - 1) * count
    );
    assert_eq!(
        received + overrun + torn,
        (hosts - 1) * count,
        "{network}: {outcome}\n{report:#}"
    );
    assert_eq!(heard("wrong"), 0, "{outcome}");
    assert_eq!(report["lost"], json!({}), "{network}: {report:#}");
    assert_attachment_lost_nothing(&report);
}

/// One sender, as fast as it may, with datagrams of one frame as large as the network's.
#[test]
fn media_without_loss_lose_nothing_of_a_blast() {
    for case in attachments() {
        for (network, size) in [
            ("hippi-800", 65_000),
            ("sp2", 65_000),
            ("fc-266", 60_000),
            ("sci-sbus", 1_472),
        ] {
            all_arrived(case, network, 2, (size, 200));
        }
    }
}

/// The lab's root may change its host's queues, as the manual says. What it puts in the place of the gate is replaced when the
/// network next holds the host back, the lab goes on, and its report and its verdict say so.
#[test]
fn another_queue_in_the_place_of_a_gate_is_replaced_and_told() {
    if !has("tc") {
        return;
    }
    for case in attachments() {
        for change in [
            "del dev eth0 root",
            "replace dev eth0 root pfifo limit 1000",
            "del dev eth0 root; tc qdisc add dev eth0 root handle 1: pfifo limit 1000",
        ] {
            let stage = Stage::new(case);
            let script = format!(
                "part receive > heard & wait_for heard; tc qdisc {change} || exit 7
                on h2 blast h1 1472 5 > sent; sonde lab exec --root h2 -- sh -c 'tc qdisc {change}' || exit 8
                on h2 blast h1 1472 300 > sent; on h2 blast h1 1472 300 > sent; wait; cat heard
                sonde lab exec h2 -- tc qdisc show dev eth0"
            );
            let options = ["--root", "--hosts", "2", "--network", "ethernet-10"];
            let (outcome, report) = traffic(&stage, &options, &script);
            // The second of the great blasts meets the gate again and loses nothing.
            assert!(outcome.part(0, "received") >= 305, "{outcome}");
            assert!(outcome.out.contains("qdisc tbf 1: root"), "{outcome}");
            let rearmed = report["gate_rearmed"].as_u64();
            assert!(rearmed.is_some_and(|n| n > 0), "{report:#}");
            outcome.tells(&["not true to the model", "put back"]);
        }
    }
}

/// How far apart 1,001 frames of a host that always has more leave the model, by the ledger. Of several thousand frames the
/// thousand is taken in which the host was held up least, for a busy machine keeps it from sending, and such a machine gets
/// more chances; none is too fast. Small cells' worth of frames at 155 Mb/s are more than such a machine sends: `gaps.rs` of
/// `virtual` has all sizes, without one.
#[test]
fn frames_are_as_far_apart_as_the_standards_say() {
    measured(|| {
        let slot = |len: u64| (len.max(46) + 38) as f64 * 0.8;
        let cells = |len: u64| (len + 16).div_ceil(48) as f64 * 424.0 / 149.76;
        let Some(case) = attachments().into_iter().next() else {
            return;
        };
        for (network, len, want_us) in [
            ("ethernet-10", 46, slot(46) + 2.0),
            ("ethernet-10", 576, slot(576) + 2.0),
            ("ethernet-10", 1_500, slot(1_500) + 2.0),
            ("ethernet-10:turnaround=0s", 46, slot(46)),
            ("ethernet-10:turnaround=0s", 1_500, slot(1_500)),
            ("atm-oc3c", 1_500, cells(1_500)),
        ] {
            let mut ratio = f64::INFINITY;
            for _ in 0..5 {
                ratio = ratio.min(least_gap_us(case, network, len) / want_us);
                println!("{network} {len} B: ratio {ratio:.6} of {want_us:.3} us");
                if ratio < 1.000_5 {
                    break;
                }
            }
            assert!((ratio - 1.0).abs() < 0.000_5, "{network} {len} B: {ratio}");
        }
    });
}

/// The least mean gap of 1,000 frames in a row, of 3,500 that h2 sends to h1.
fn least_gap_us(case: Case, network: &str, len: u64) -> f64 {
    const GAPS: usize = 1_000;
    let stage = Stage::new(case);
    let ledger = stage.path("ledger");
    let script = format!(
        "part receive > heard & wait_for heard; on h2 blast h1 {} 3500 > sent; wait",
        len - 28
    );
    let options = ["--hosts", "2", "--network", network, "--ledger", &ledger];
    traffic(&stage, &options, &script);
    let entries = Reader::new(std::fs::File::open(&ledger).unwrap()).unwrap();
    let (mut lens, mut arrived) = (BTreeMap::new(), Vec::new());
    for entry in entries {
        match entry.unwrap() {
            Entry::Offer { frame, .. } if frame.from == Port(1) => {
                lens.insert(frame.id, frame.len.0);
            }
            Entry::Deliver {
                at,
                id,
                to: Port(0),
                ..
            } => arrived.extend((lens.get(&id) == Some(&len)).then_some(at)),
            _ => {}
        }
    }
    assert!(
        arrived.len() > 3_000,
        "{network} {len} B: {}",
        arrived.len()
    );
    let spans = arrived.iter().zip(&arrived[GAPS..]);
    let means = spans.map(|(first, last)| last.since(*first).as_picos() as f64 / 1e6 / GAPS as f64);
    means.fold(f64::INFINITY, f64::min)
}

/// Eight hosts on a TAP each: seven send to one at once.
#[test]
fn media_without_loss_lose_nothing_of_an_incast() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let of = [
        ("hippi-800", 9_000),
        ("fc-266", 9_000),
        ("sci-sbus", 1_472),
        ("allnode", 1_472),
        ("sp2", 9_000),
        ("ultranet", 9_000),
    ];
    for (network, size) in of {
        all_arrived(case, network, 8, (size, 60));
    }
}

#[test]
fn the_largest_packets_pass_whole() {
    if !has("ping") {
        return;
    }
    for case in attachments() {
        for (network, mtu) in [("hippi-800", 65_280_u32), ("sp2", 65_520)] {
            let stage = Stage::new(case);
            let script = format!(
                "ping -M do -q -c 3 -i 0.1 -s {} h2 && sonde lab exec --root h2 -- ip -o link show eth0",
                mtu - 28
            );
            let outcome = on_h1(&stage, &["--hosts", "2", "--network", network], &script);
            assert!(outcome.out.contains(&format!(" mtu {mtu} ")), "{outcome}");
            assert!(outcome.out.contains(" 0% packet loss"), "{outcome}");
        }
    }
}

/// Calls, copies and interrupts of a SPARCstation 20 make a ping of 56 bytes take about 2 ms; the wire takes 0.2 ms of it.
#[test]
fn what_hosts_cost_is_in_a_round_trip() {
    if !has("ping") {
        return;
    }
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let mut least_us = u64::MAX;
    measured(|| {
        let stage = Stage::new(case);
        let [plain, costly] = ["ethernet-10", "ethernet-10:host=sparc-20"].map(|network| {
            let outcome = on_h1(
                &stage,
                &["--hosts", "2", "--network", network],
                "echo begin; ping -c 12 -i 0.1 h2",
            );
            round_trips_us(&outcome.out, "begin")
        });
        println!(
            "without {} us, with {} us at the median",
            median(&plain),
            median(&costly)
        );
        least_us = costly[0];
        assert!(
            plain[0] < 1_700 && median(&costly) > median(&plain),
            "{plain:?}, {costly:?}"
        );
    });
    assert!(least_us >= 1_700, "the model is never early: {least_us}");
}
