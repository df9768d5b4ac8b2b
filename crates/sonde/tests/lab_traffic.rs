//! What programs send arrives as the model says: all of it, in order, unharmed, or lost where the model loses it.

use crate::lab::{
    Case, Outcome, Stage, assert_attachment_lost_nothing, attached, attachments, cases, crossed,
    has, report, spread,
};
use crate::part::traffic;
use serde_json::Value;

pub fn lost_nothing(report: &Value) {
    assert_attachment_lost_nothing(report);
    assert_eq!(report["lost"], serde_json::json!({}), "{report:#}");
}

/// A network, what is sent on it, and whether it holds a sender back.
struct Blast {
    network: &'static str,
    size: usize,
    count: usize,
    is_held_back: bool,
}

const BLASTS: [Blast; 4] = [
    Blast {
        network: "ethernet-100:rate=10Mbit",
        size: 1_472,
        count: 1_500,
        is_held_back: true,
    },
    Blast {
        network: "atm-oc3c",
        size: 1_472,
        count: 15_000,
        is_held_back: true,
    },
    Blast {
        network: "wan-100m-20ms",
        size: 1_472,
        count: 12_000,
        is_held_back: true,
    },
    Blast {
        network: "wire",
        size: 1_472,
        count: 40_000,
        is_held_back: false,
    },
];

/// The first blast meets cold neighbours, the second warm ones.
///
/// What the hosts' own kernels do is told apart. A receiver that is too slow loses at its own socket. And while a sender's
/// kernel sends what has waited for a neighbour's address, what the program sends on another CPU overtakes it: such
/// datagrams arrive in another order, and one whose fragments are more than 64 others apart is given up
/// (`net.ipv4.ipfrag_max_dist`). The kernel keeps a backlog a CPU: a frame that the gate's reopening sends from the switch's
/// CPU may pass one sent from the program's, and so may one that a switch sends after it was moved to another CPU. A network
/// without a rate holds no sender back; where the switch gets too little of a CPU the attachment may lose, and the count and
/// the verdict must say so. A frame that it lost cost one datagram; where a datagram is several frames, at most one.
fn blast(case: Case, blast: &Blast, options: &[&str]) {
    let Blast {
        network,
        size,
        count,
        is_held_back,
    } = blast;
    let stage = Stage::new(case);
    let round = format!(
        "rm -f heard over; on h2 receive {count} $PWD/over > heard & wait_for heard; part blast h2 {size} {count}; touch over; wait; cat heard\n"
    );
    let options = [&["--hosts", "2", "--network", network], options].concat();
    let (outcome, report) = traffic(&stage, &options, &round.repeat(2));
    let (mut overrun, mut torn, mut arrived) = (0, 0, 0);
    for (line, is_warm) in [(0, false), (2, true)] {
        let heard = |name| outcome.part(line + 1, name);
        let (sent, received) = (outcome.part(line, "sent"), heard("received"));
        let took = outcome.part(line, "took_us").max(1);
        // The kernel's counters go on from round to round.
        let here = (heard("overrun") - overrun, heard("torn") - torn);
        (overrun, torn) = (heard("overrun"), heard("torn"));
        println!(
            "{network} {case:?} {size} B: {received} of {sent}, {} kpkt/s, {} Mb/s, longest send {} us, held back {}, disorder {}, overrun {}, torn {}, clamped {}",
            sent * 1_000 / took,
            sent * (*size as u64) * 8 / took,
            outcome.part(line, "longest_us"),
            outcome.part(line, "held_back"),
            heard("disorder"),
            here.0,
            here.1,
            report["clamped"],
        );
        arrived += received + here.0 + here.1;
        assert!(received + here.0 <= *count as u64, "{outcome}");
        assert!(
            here.0 == 0 || !is_held_back,
            "a line this slow overruns no receiver: {outcome}"
        );
        assert!(here.1 == 0 || !is_warm || !is_held_back, "{outcome}");
        // Two ends of a veth have a backlog a CPU, and a program that moves to another one overtakes what it sent.
        let may_move = case.attachment == "veth" && options.contains(&"free");
        assert!(
            heard("disorder") <= u64::from(may_move) * 3 || !is_warm || !is_held_back,
            "{outcome}\n{report:#}"
        );
        assert_eq!(heard("wrong"), 0, "{outcome}");
        assert!(
            !is_held_back || outcome.part(line, "held_back") > 0,
            "{outcome}"
        );
    }
    assert_eq!(report["lost"], serde_json::json!({}), "{report:#}");
    if *is_held_back {
        assert_attachment_lost_nothing(&report);
    }
    let attachment: u64 = report["attachment"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    let missing = (2 * *count as u64).checked_sub(arrived);
    let is_accounted = match missing {
        Some(missing) if *size <= 1_472 => missing == attachment,
        // What is left of a torn datagram may be torn again, when it is too old.
        _ => missing.is_none_or(|missing| missing <= attachment),
    };
    assert!(
        is_accounted,
        "{missing:?} datagrams did not arrive: {outcome}\n{report:#}"
    );
    assert_eq!(
        outcome.err.contains("lost between a host and the network"),
        attachment > 0,
        "{outcome}"
    );
}

#[test]
fn a_blast_is_held_back_and_arrives() {
    let all: Vec<&Blast> = BLASTS.iter().collect();
    for (case, each) in spread(&crossed(), &all) {
        blast(case, each, &[]);
    }
}

#[test]
fn a_blast_arrives_on_every_cpu_plan() {
    for (case, plan) in spread(&attachments(), &["one", "free"]) {
        blast(case, &BLASTS[1], &["--cpus", plan]);
        blast(case, &BLASTS[3], &["--cpus", plan]);
    }
}

#[test]
fn fragments_arrive() {
    let all = [
        ("ethernet-100:rate=10Mbit", 8_192, 200),
        ("wan-100m-20ms", 8_192, 2_000),
        ("atm-oc3c", 30_000, 800),
        ("wire", 8_192, 8_000),
    ];
    for (case, (network, size, count)) in spread(&attachments(), &all) {
        let is_held_back = network != "wire";
        let each = Blast {
            network,
            size,
            count,
            is_held_back,
        };
        blast(case, &each, &[]);
    }
}

#[test]
fn many_senders_at_one_receiver_overflow_only_the_switch() {
    for case in attached("tap") {
        let stage = Stage::new(case);
        let script = "on h1 receive 6000 > heard & wait_for heard
            for h in 2 3 4; do on h$h blast h1 1472 2000 > sent.$h & done; wait; cat heard sent.*";
        let options = ["--hosts", "4", "--network", "ethernet-100:buffer=64KiB"];
        let (outcome, report) = traffic(&stage, &options, script);
        assert_attachment_lost_nothing(&report);
        let losses = report["lost"].as_object().unwrap();
        let lost: u64 = losses.values().map(|frames| frames.as_u64().unwrap()).sum();
        let all_in_the_switch = losses.keys().all(|loss| loss.contains("-overflow-"));
        println!(
            "{case:?}: {} of 6000 received, {lost} lost in the switch",
            outcome.part(0, "received")
        );
        assert!(lost > 0 && all_in_the_switch, "{report:#}");
        assert_eq!(
            outcome.part(0, "received") + lost,
            6_000,
            "{outcome}\n{report:#}"
        );
        assert_eq!(outcome.part(0, "wrong"), 0);
    }
}

#[test]
fn streams_arrive_unharmed() {
    let networks = [
        ("ethernet-100", 12_000_000),
        ("ethernet-1g", 80_000_000),
        ("atm-oc3c", 20_000_000),
        ("wan-100m-20ms", 10_000_000),
        ("wire", 150_000_000),
        ("ethernet-100:loss=1%", 2_000_001),
        ("wire:delay=1ms:reorder=5%:reorder_by=300us", 5_000_003),
        ("atm-oc3c:mtu=65280", 30_000_007),
    ];
    for (case, (network, bytes)) in spread(&cases(), &networks) {
        let stage = Stage::new(case);
        let script = format!(
            "on h2 receive-stream > heard & wait_for heard; part send-stream h2 {bytes}; wait; cat heard"
        );
        let (outcome, report) = traffic(&stage, &["--hosts", "2", "--network", network], &script);
        assert_eq!(
            (outcome.part(0, "sent"), outcome.part(1, "received")),
            (bytes, bytes),
            "{outcome}"
        );
        assert_eq!(outcome.part(1, "wrong"), 0, "{outcome}");
        println!(
            "{network} {case:?}: {bytes} B in {:?} with start and end",
            outcome.took
        );
        assert_attachment_lost_nothing(&report);
        if !network.contains("loss") {
            assert_eq!(report["lost"], serde_json::json!({}), "{report:#}");
        }
    }
}

#[test]
fn frames_to_all_reach_all_where_the_network_can() {
    let script = "for h in 2 3; do on h$h hear > heard.$h & done
        for h in 2 3; do wait_for heard.$h; done
        part announce; wait; cat heard.2 heard.3";
    for (case, network) in spread(&cases(), &["ethernet-100", "wire", "atm-oc3c"]) {
        let stage = Stage::new(case);
        let (outcome, report) = traffic(&stage, &["--hosts", "3", "--network", network], script);
        let heard = if network == "atm-oc3c" { 0 } else { 10 };
        for line in [0, 1] {
            assert_eq!(
                (outcome.part(line, "all"), outcome.part(line, "group")),
                (heard, heard),
                "{network}: {outcome}"
            );
        }
        if heard > 0 {
            lost_nothing(&report);
            continue;
        }
        assert_attachment_lost_nothing(&report);
        let lost = report["lost"].as_object().unwrap();
        let from_h1 = lost
            .iter()
            .find(|(loss, _)| loss.ends_with("-nobroadcast-from-h1"));
        // Twenty datagrams; memberships of groups are told by the hosts that join.
        assert!(
            from_h1.is_some_and(|(_, frames)| frames.as_u64() == Some(20)),
            "{report:#}"
        );
        assert!(
            lost.keys().all(|loss| loss.contains("-nobroadcast-")),
            "{report:#}"
        );
    }
}

/// The times of `ping`, in microseconds.
pub fn times(outcome: &Outcome) -> Vec<u64> {
    let words = outcome
        .out
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("time="));
    words
        .map(|word| (word.parse::<f64>().unwrap() * 1_000.0) as u64)
        .collect()
}

#[test]
fn a_loss_is_drawn_and_counted_as_such() {
    if !has("ping") {
        return;
    }
    for (case, ()) in spread(&cases(), &[()]) {
        let stage = Stage::new(case);
        let written = stage.path("report");
        let options = [
            "--hosts",
            "2",
            "--network",
            "ethernet-100:loss=10%",
            "--seed",
            "5",
            "--report",
            &written,
        ];
        let outcome = stage
            .run(
                &options,
                &["sh", "-c", "ping -q -c 1000 -i 0.002 -W 1 h2; exit 0"],
            )
            .expect(0);
        let words: Vec<_> = outcome.out.split([' ', '\n']).collect();
        let at = words
            .iter()
            .position(|word| word.starts_with("received"))
            .unwrap();
        let received: u64 = words[at - 1].parse().unwrap();
        let report = report(&written);
        assert_attachment_lost_nothing(&report);
        let lost = report["lost"].as_object().unwrap();
        assert!(
            lost.keys().all(|loss| loss.contains("-random-")),
            "{report:#}"
        );
        let lost: u64 = lost.values().map(|frames| frames.as_u64().unwrap()).sum();
        let taken = report["taken"].as_u64().unwrap();
        println!("{case:?}: {received} of 1000 answered, {lost} of {taken} frames lost");
        // Five standard deviations of 1,900 draws, and of 1,000 pairs of draws.
        assert!((65..=135).contains(&(lost * 1_000 / taken)), "{report:#}");
        assert!((748..=872).contains(&received), "{outcome}");
    }
}

#[test]
fn a_network_with_a_delay_has_it() {
    if !has("ping") {
        return;
    }
    for (case, (network, delay_us)) in spread(
        &attachments(),
        &[("wan-100m-20ms", 10_000), ("wire:delay=3ms", 3_000)],
    ) {
        let stage = Stage::new(case);
        let outcome = stage
            .run(
                &["--hosts", "2", "--network", network],
                &["ping", "-c", "5", "-i", "0.1", "h2"],
            )
            .expect(0);
        let times = times(&outcome);
        println!("{network} {case:?}: {times:?} us");
        // Never early.
        assert!(
            times.iter().all(|time| *time >= 2 * delay_us - 1),
            "{times:?}"
        );
    }
}
