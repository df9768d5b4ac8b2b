//! The rules: each looks at the evidence of one pair and says what holds its stream back, or nothing.
//!
//! Model:   a path that carries small messages and no stream is a black hole, and nothing else is looked at. A stream that is
//!          full has no cause. Windows come before loss, and loss before CPUs: what binds first hides what is behind it.
//! Checked: `planted_faults_are_named`, `healthy_pairs_have_no_cause`, `the_window_of_era_is_found_with_its_arithmetic`,
//!          `a_programs_own_buffer_is_its_own`.

use std::collections::BTreeMap;

use super::{Advice, Cause, End, Evidence};
use crate::format::{bytes, count, rate, share, time};

/// Part of the time from which what holds a stream decides its rate.
const HELD: f64 = 0.5;
/// A thread that uses so much of a CPU has no more.
const BUSY: f64 = 0.9;
/// A thread that uses so much of a CPU would gain by less work.
const LABOURING: f64 = 0.7;
/// Segments sent again from which loss is spoken of.
const LOSS: f64 = 1e-3;
/// Datagrams that overtake from which reordering is spoken of.
const OVERTAKEN: f64 = 1e-3;
/// The largest window without scaling.
const UNSCALED: u64 = 65_535;
/// A delayed acknowledgement of Linux is 40 ms at the least, and most others' 200 ms at the most.
const DELAYED_ACK_NS: std::ops::RangeInclusive<f64> = 35e6..=210e6;

/// All causes, the first to be changed first.
pub(super) fn causes(evidence: &Evidence) -> Vec<Cause> {
    if let Some(cause) = black_hole(evidence) {
        return vec![cause];
    }
    let mut all: Vec<Cause> = nagle(evidence).into_iter().collect();
    if evidence.is_full() || evidence.rate_bps.is_none() {
        return all;
    }
    all.extend(receive_window(evidence));
    all.extend(send_buffer(evidence));
    if all.is_empty() {
        all.extend(loss(evidence));
        all.extend(reordering(evidence));
        all.extend(interrupts(evidence));
        all.extend(offload(evidence));
        all.extend(cpu(evidence));
        all.extend(hog(evidence));
    }
    if all.is_empty() {
        all.extend(slow_reader(evidence));
    }
    all
}

fn cause(rule: &str, sentence: String, arithmetic: String, threshold: &str, source: &str) -> Cause {
    Cause {
        rule: rule.into(),
        host: None,
        sentence,
        arithmetic,
        threshold: threshold.into(),
        source: source.into(),
        remedy: String::new(),
        change: None,
        expected_bps: None,
    }
}

/// `duplex`, in the words of who compared both ways.
pub(super) fn duplex(sentence: String, arithmetic: String, host: Option<&str>) -> Cause {
    let mut found = cause(
        "duplex",
        sentence,
        arithmetic,
        "with both directions busy two thirds of the rate or less, 0.1 % lost or more, and five times what is lost alone",
        "IEEE 802.3 §28",
    );
    found.host = host.map(Into::into);
    found.remedy = "let both ends of the link agree: `ethtool -s DEVICE autoneg on`, on the switch port too;                     `ethtool DEVICE` shows the duplex, `ethtool -S DEVICE` late collisions"
        .into();
    found
}

fn host_settings<const N: usize>(pairs: [(&str, String); N]) -> Vec<(String, String)> {
    pairs
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect()
}

/// `mtu`: what is small passes, what is large does not.
fn black_hole(evidence: &Evidence) -> Option<Cause> {
    let small_ns = evidence.rtt_ns?;
    let stalled = |text: &String| text.contains("waited") && text.contains("did not come");
    let stalls = evidence
        .failures
        .iter()
        .filter(|text| stalled(text))
        .count();
    if stalls == 0
        || evidence
            .rate_bps
            .is_some_and(|_| stalls < evidence.failures.len())
    {
        return None;
    }
    if evidence
        .rate_bps
        .is_some_and(|bps| Some(bps) > evidence.reach_bps.map(|most| 0.01 * most))
    {
        return None;
    }
    let mtus = [&evidence.src, &evidence.dst].map(|end| end.mtu_bytes);
    let most = mtus.iter().flatten().max().copied();
    let least = mtus
        .iter()
        .flatten()
        .chain(&evidence.network_mtu)
        .min()
        .copied();
    let (advice, remedy) = match (most, least) {
        (Some(most), Some(least)) if least < most => (
            ("mtu", least.to_string()),
            format!("give all interfaces of this network the MTU of its smallest part, {least} bytes"),
        ),
        _ => (
            ("net.ipv4.tcp_mtu_probing", "1".to_owned()),
            "let routers send ICMP \"fragmentation needed\" (do not filter it), or lower the interfaces' MTU to the path's; \
             probing works around it"
                .to_owned(),
        ),
    };
    let mut found = cause(
        "mtu",
        format!(
            "Small messages pass on {} ({} a round trip) and streams stand still: packets of full size vanish on the way, \
             an MTU black hole.",
            evidence.network,
            time(small_ns)
        ),
        format!(
            "MTU of the hosts {} and {}, of the network {}; {stalls} streams stood still",
            known(mtus[0]),
            known(mtus[1]),
            known(evidence.network_mtu)
        ),
        "every stream stands still for its patience while 1 B is answered",
        "RFC 2923 §2.1; RFC 4821",
    );
    found.remedy = remedy;
    found.expected_bps = evidence.reach_bps;
    found.change = Some(Advice {
        hosts: host_settings([advice]),
        sockets: BTreeMap::new(),
    });
    Some(found)
}

fn known(value: Option<u64>) -> String {
    value.map_or_else(|| "unknown".into(), count)
}

/// The receiver's window: where it is from, and its size.
struct Window {
    bytes: u64,
    /// No window of this origin is larger.
    most: u64,
    origin: String,
    host: bool,
}

/// The bounds of the receive window, the smallest first.
fn windows(evidence: &Evidence) -> Vec<Window> {
    let dst = &evidence.dst;
    let mut all = Vec::new();
    let mut add = |bytes, most, origin: String, host| {
        all.push(Window {
            bytes,
            most,
            origin,
            host,
        });
    };
    if let Some(asked) = evidence.rcvbuf_asked {
        let origin = format!("the program's SO_RCVBUF of {}", bytes(asked));
        add(asked, 2 * asked, origin, false);
    } else if let Some(buffer) = dst.most("ipv4.tcp_rmem") {
        let fixed = dst.is_on("ipv4.tcp_moderate_rcvbuf") == Some(false);
        let fixed = fixed
            .then(|| {
                dst.setting("ipv4.tcp_rmem")?
                    .split_whitespace()
                    .nth(1)?
                    .parse()
                    .ok()
            })
            .flatten();
        let buffer: u64 = fixed.unwrap_or(buffer);
        let origin = format!(
            "net.ipv4.tcp_rmem of {} (half of it is the kernel's)",
            count(buffer)
        );
        add(buffer / 2, buffer, origin, true);
    }
    let unscaled = [&evidence.src, dst]
        .iter()
        .any(|end| end.is_on("ipv4.tcp_window_scaling") == Some(false));
    if unscaled {
        let origin = "no window scaling: the header's 16 bits are all".to_owned();
        add(UNSCALED, UNSCALED, origin, true);
    }
    if let Some(route) = dst.most("route.window") {
        add(route, route, "the route's `window`".to_owned(), true);
    }
    all.sort_by_key(|window| window.bytes);
    all
}

/// Room for `needed` bytes on the way: twice for the kernel's share, twice for queues and recovery, a power of two.
fn room(needed: u64) -> u64 {
    (4 * needed).next_power_of_two()
}

/// Bytes on the way that are to be allowed; where what the network allows is not known, for 10 Gb/s.
fn wanted(evidence: &Evidence) -> Option<(u64, String)> {
    let (reach, words) = match evidence.reach_bps {
        Some(reach) => (reach, rate(reach)),
        None => (1e10, "10 Gb/s (the line's rate is not known)".to_owned()),
    };
    let rtt = evidence.rtt_ns.filter(|ns| *ns > 0.0)?;
    let needed = (reach * rtt / 8e9).ceil() as u64;
    let text = format!(
        "{words} x {} / 8 = {} B needed on the way",
        time(rtt),
        count(needed)
    );
    Some((needed, text))
}

/// The settings that allow windows of `needed` bytes between both hosts, where they do not yet.
fn window_settings(evidence: &Evidence, needed: u64) -> Vec<(String, String)> {
    let ends = [&evidence.src, &evidence.dst];
    let mut all = Vec::new();
    let mut set = |name: &str, value: String| all.push((name.to_owned(), value));
    let off = |name: &str| ends.iter().any(|end| end.is_on(name) == Some(false));
    if needed > UNSCALED {
        // Time stamps guard large windows against old segments, selective acknowledgements their recovery.
        for name in ["tcp_window_scaling", "tcp_timestamps", "tcp_sack"] {
            if off(&format!("ipv4.{name}")) {
                set(&format!("net.ipv4.{name}"), "1".into());
            }
        }
    }
    let room = room(needed);
    for (name, usual) in [("tcp_rmem", 131_072), ("tcp_wmem", 65_536)] {
        let most = ends
            .iter()
            .filter_map(|end| end.most(&format!("ipv4.{name}")))
            .min();
        if most.is_none_or(|most| most < 2 * needed) {
            let room = room.max(usual);
            set(&format!("net.ipv4.{name}"), format!("4096 {usual} {room}"));
        }
    }
    if off("ipv4.tcp_moderate_rcvbuf") {
        set("net.ipv4.tcp_moderate_rcvbuf", "1".into());
    }
    let bounded = |end: &&End| end.most("route.window").is_some_and(|most| most < needed);
    if ends.iter().any(bounded) {
        set("route.window", "none".into());
    }
    all
}

/// `receive-window`.
fn receive_window(evidence: &Evidence) -> Option<Cause> {
    let (bps, rtt) = (evidence.rate_bps?, evidence.rtt_ns?);
    let held = evidence.rwnd_share;
    let windows = windows(evidence);
    let least = windows.first()?;
    let bound = evidence.bound_bps(least.bytes)?;
    let binds = evidence
        .reach_bps
        .is_none_or(|reach| bound < super::FULL * reach);
    let within = bps <= 1.1 * evidence.bound_bps(least.most)?;
    // Held by it most of the time; or as fast as it allows, where TCP does not tell, or charges part of the wait to a send buffer
    // of the same size.
    let fills = (0.8..=1.1).contains(&(bps / bound));
    let explains = match held {
        Some(held) => {
            let either = held + evidence.sndbuf_share.unwrap_or(0.0);
            held >= HELD || (fills && either >= HELD)
        }
        None => fills,
    };
    // Where nobody knows what the network allows, a window in full use is one to be raised only if TCP says so.
    if !(binds && within && explains) || (evidence.reach_bps.is_none() && held.is_none()) {
        return None;
    }
    let (needed, need) = wanted(evidence)?;
    let held = held.map_or(String::new(), |held| {
        format!(
            " The window held the sender back in {} of the time.",
            share(held)
        )
    });
    let mut found = cause(
        "receive-window",
        format!(
            "The receiver's window limits the stream on {}: {} a round trip of {} is {}, and {} was measured.{held} It is {}.",
            evidence.network,
            bytes(least.bytes),
            time(rtt),
            rate(bound),
            rate(bps),
            least.origin
        ),
        format!(
            "{} B x 8 / {} = {}; {need}",
            count(least.bytes),
            time(rtt),
            rate(bound)
        ),
        "the window, or a send buffer like it, holds the sender in half of the time, and window / round trip is below 90 % of what the network allows",
        "RFC 7323 §1.1; tcp(7), tcpi_rwnd_limited",
    );
    let mut change = Advice::default();
    let hosts = window_settings(evidence, needed);
    if least.host {
        found.host = Some(evidence.dst.host.clone());
        change.hosts = hosts;
    } else {
        change.sockets.insert("rcvbuf".into(), None);
        // What binds behind the program's buffer, if anything does.
        let behind = windows.get(1..).unwrap_or_default();
        let kernel = evidence.dst.most("ipv4.tcp_rmem").map(|most| most / 2);
        let behind = behind.iter().map(|window| window.bytes).chain(kernel).min();
        if behind.is_some_and(|bytes| bytes < needed) {
            change.hosts = hosts;
        }
        found.remedy = format!(
            "let the program leave SO_RCVBUF alone: the kernel then gives up to {} as the path needs it",
            kernel.map_or_else(|| "the last value of net.ipv4.tcp_rmem".into(), bytes)
        );
    }
    found.change = (change != Advice::default()).then_some(change);
    found.expected_bps = evidence.reach_bps;
    Some(found)
}

/// `send-buffer`.
fn send_buffer(evidence: &Evidence) -> Option<Cause> {
    let (bps, rtt) = (evidence.rate_bps?, evidence.rtt_ns?);
    let held = evidence.sndbuf_share.filter(|held| *held >= HELD)?;
    let asked = evidence.sndbuf_asked;
    let buffer = asked.or_else(|| evidence.src.most("ipv4.tcp_wmem").map(|most| most / 2))?;
    let bound = evidence.bound_bps(buffer)?;
    let binds = evidence
        .reach_bps
        .is_none_or(|reach| bound < super::FULL * reach);
    if !binds || bps > 2.2 * bound {
        return None;
    }
    let (needed, need) = wanted(evidence)?;
    let mut found = cause(
        "send-buffer",
        format!(
            "The send buffer of {} limits the stream on {}: {} a round trip of {} is {}, and {} was measured. The sender \
             waited for it in {} of the time.",
            evidence.src.host,
            evidence.network,
            bytes(buffer),
            time(rtt),
            rate(bound),
            rate(bps),
            share(held)
        ),
        format!(
            "{} B x 8 / {} = {}; {need}",
            count(buffer),
            time(rtt),
            rate(bound)
        ),
        "the buffer holds the sender in half of the time, and buffer / round trip is below 90 % of what the network allows",
        "tcp(7), tcpi_sndbuf_limited",
    );
    found.host = Some(evidence.src.host.clone());
    found.expected_bps = evidence.reach_bps;
    let mut change = Advice::default();
    if asked.is_some() {
        change.sockets.insert("sndbuf".into(), None);
        found.remedy =
            "let the program leave SO_SNDBUF alone: the kernel grows it as the path needs it"
                .into();
    }
    let most = evidence.src.most("ipv4.tcp_wmem").map(|most| most / 2);
    if asked.is_none() || most.is_some_and(|most| most < needed) {
        change.hosts = window_settings(evidence, needed);
    }
    found.change = (change != Advice::default()).then_some(change);
    Some(found)
}

/// What a loss of `p` leaves of reno, by Mathis.
fn mathis_bps(evidence: &Evidence, p: f64) -> Option<f64> {
    let mss = evidence.mss_bytes? as f64;
    let rtt = evidence.rtt_ns.filter(|ns| *ns > 0.0)?;
    Some(mss * 8e9 / rtt * (1.5 / p).sqrt())
}

/// `loss`, with another congestion control where the host has one that bears it.
fn loss(evidence: &Evidence) -> Option<Cause> {
    let bps = evidence.rate_bps?;
    let again = evidence.again_share.filter(|share| *share >= LOSS);
    let datagrams = evidence.lost_share.filter(|share| *share >= LOSS);
    let p = again?;
    let bound = mathis_bps(evidence, p)?;
    let also = datagrams.map_or(String::new(), |lost| {
        format!(", and {} of datagrams were lost", share(lost))
    });
    let control = evidence
        .congestion
        .clone()
        .unwrap_or_else(|| "its congestion control".into());
    let mut found = cause(
        "loss",
        format!(
            "The stream on {} loses segments: {} were sent again{also}. With this loss and {} a round trip {control} keeps \
             about {}, and {} was measured.",
            evidence.network,
            share(p),
            time(evidence.rtt_ns?),
            rate(bound),
            rate(bps)
        ),
        format!(
            "{} B x 8 / {} x sqrt(1.5 / {}) = {}",
            count(evidence.mss_bytes?),
            time(evidence.rtt_ns?),
            share(p),
            rate(bound)
        ),
        "0.1 % of the segments are sent again, below 90 % of what the network allows",
        "Mathis, Semke, Mahdavi & Ott, CCR 27(3) 1997, eq. 3",
    );
    found.remedy = "look for the link that loses: `ethtool -S` for errors, a duplex that was not agreed, a switch port that drops; \
                    `sonde probe pattern` finds which"
        .into();
    let has_bbr = |end: &End| {
        let known = end.setting("ipv4.tcp_available_congestion_control");
        known.is_some_and(|all| all.split_whitespace().any(|name| name == "bbr"))
    };
    let gives_way = matches!(evidence.congestion.as_deref(), Some("reno" | "cubic"));
    if gives_way && has_bbr(&evidence.src) {
        found.rule = "congestion".into();
        found.sentence.push_str(&format!(
            " {} has bbr, which does not take loss for a full path.",
            evidence.src.host
        ));
        found.change = Some(Advice {
            hosts: host_settings([("route.congctl", "bbr".into())]),
            sockets: BTreeMap::new(),
        });
    }
    Some(found)
}

/// `reordering`.
fn reordering(evidence: &Evidence) -> Option<Cause> {
    let share_of = evidence
        .reordered_share
        .filter(|share| *share >= OVERTAKEN)?;
    let mut found = cause(
        "reordering",
        format!(
            "Packets overtake each other on {}: {} of datagrams came after a later one.",
            evidence.network,
            share(share_of)
        ),
        format!("{} of datagrams", share(share_of)),
        "0.1 % of a blast of datagrams came after a later one",
        "RFC 4737 §4; RFC 5681 §3.2",
    );
    found.remedy = "look for paths of several links that are shared packet by packet (bonding balance-rr, ECMP per packet): share them by flow".into();
    Some(found)
}

/// `interrupts`: one CPU serves the receive queue and has no more. Of real hosts only, whose CPUs are their own.
fn interrupts(evidence: &Evidence) -> Option<Cause> {
    let dst = &evidence.dst;
    let serving = dst.setting("interrupts.cpus")?.split_whitespace().count();
    if !evidence.apart || serving != 1 || dst.cpus < 2 {
        return None;
    }
    let beside = dst.host_cpu? * dst.cpus as f64 - dst.thread_cpu?;
    if beside < BUSY {
        return None;
    }
    let cpu = dst.setting("interrupts.cpus")?;
    let mut found = cause(
        "interrupts",
        format!(
            "CPU {cpu} of {} serves all interrupts of its interface, and beside the receiving thread {} of a CPU were in use: \
             one CPU is the limit.",
            dst.host,
            share(beside)
        ),
        format!(
            "{} of {} CPUs, less {} of the thread",
            share(dst.host_cpu?),
            dst.cpus,
            share(dst.thread_cpu?)
        ),
        "one CPU serves the receive queue, and 90 % of one are in use beside the thread",
        "Documentation/networking/scaling.rst",
    );
    found.host = Some(dst.host.clone());
    found.remedy = "spread the queues: `ethtool -L DEVICE combined N`, or by software: \
                    `echo ff > /sys/class/net/DEVICE/queues/rx-0/rps_cpus`; keep the program off that CPU"
        .into();
    Some(found)
}

/// `offload`: segmentation or merging in software is off, and the CPU feels it.
fn offload(evidence: &Evidence) -> Option<Cause> {
    let sides = [
        (&evidence.src, ["offload.gso", "offload.tso"], "sends"),
        (&evidence.dst, ["offload.gro", "offload.gro"], "receives"),
    ];
    let (end, off, verb) = sides.into_iter().find_map(|(end, names, verb)| {
        let laboured = end.thread_cpu.is_some_and(|share| share >= LABOURING);
        // Without the first of them nothing is merged; hardware alone may be missing.
        let off = end.is_on(names[0]) == Some(false);
        (laboured && off).then_some((end, names[0], verb))
    })?;
    let mut found = cause(
        "offload",
        format!(
            "{} {verb} each segment alone: {off} is off, and the thread uses {} of a CPU for {} on {}.",
            end.host,
            share(end.thread_cpu?),
            rate(evidence.rate_bps?),
            evidence.network
        ),
        format!("{} ns/B", crate::significant(end.cpu_ns_per_byte?, 3)),
        "70 % of a CPU for the thread of the side whose offload is off",
        "Documentation/networking/segmentation-offloads.rst",
    );
    found.host = Some(end.host.clone());
    found.change = Some(Advice {
        hosts: host_settings([(off, "on".into())]),
        sockets: BTreeMap::new(),
    });
    Some(found)
}

/// `cpu`.
fn cpu(evidence: &Evidence) -> Option<Cause> {
    let sides = [(&evidence.src, "sending"), (&evidence.dst, "receiving")];
    let (end, side) = sides
        .into_iter()
        .find(|(end, _)| end.thread_cpu.is_some_and(|share| share >= BUSY))?;
    let mut found = cause(
        "cpu",
        format!(
            "The {side} thread on {} uses {} of one CPU: the host, not the network, limits the stream on {} to {}.",
            end.host,
            share(end.thread_cpu?),
            evidence.network,
            rate(evidence.rate_bps?)
        ),
        format!(
            "{} ns/B x {} MB/s",
            crate::significant(end.cpu_ns_per_byte?, 3),
            crate::significant(evidence.rate_bps? / 8e6, 4)
        ),
        "90 % of one CPU",
        "getrusage(2), RUSAGE_THREAD",
    );
    found.host = Some(end.host.clone());
    found.remedy =
        "several streams (`--with streams=4`), larger messages, or a method that copies less"
            .into();
    Some(found)
}

/// `cpu-hog`: others have the CPU that the thread would need.
fn hog(evidence: &Evidence) -> Option<Cause> {
    let hogged = |end: &&End| {
        end.put_aside_per_s.is_some_and(|times| times >= 50.0)
            && end.host_cpu.is_some_and(|busy| busy >= 0.95)
            && end.thread_cpu.is_some_and(|share| share < BUSY)
    };
    let ends = [&evidence.src, &evidence.dst];
    let end = ends.into_iter().filter(hogged).max_by(|a, b| {
        let times = |end: &End| end.put_aside_per_s.unwrap_or(0.0);
        times(a).total_cmp(&times(b))
    })?;
    let mut found = cause(
        "cpu-hog",
        format!(
            "Others use the CPUs of {}: {} of all are in use, the stream's thread has {} of one and was put aside {} times \
             a second.",
            end.host,
            share(end.host_cpu?),
            share(end.thread_cpu?),
            crate::significant(end.put_aside_per_s?, 3)
        ),
        format!("{} of {} CPUs", share(end.host_cpu?), end.cpus),
        "95 % of all CPUs in use, 50 preemptions a second, and the thread below 90 % of one",
        "getrusage(2), ru_nivcsw; proc(5), /proc/stat",
    );
    found.host = Some(end.host.clone());
    found.remedy = "`top` there: stop what else runs, or give it a lower priority".into();
    Some(found)
}

/// `slow-reader`: the window is closed most of the time, though no setting makes it small.
fn slow_reader(evidence: &Evidence) -> Option<Cause> {
    let held = evidence.rwnd_share.filter(|held| *held >= HELD)?;
    evidence.reach_bps?;
    let mut found = cause(
        "slow-reader",
        format!(
            "The receiving program on {} reads more slowly than the network of {} brings: its window held the sender back in {} \
             of the time, and no setting makes that window small.",
            evidence.dst.host,
            evidence.network,
            share(held)
        ),
        format!("{} of the time", share(held)),
        "the window, or a send buffer like it, holds the sender in half of the time, and window / round trip is not below what the network allows",
        "tcp(7), tcpi_rwnd_limited",
    );
    found.host = Some(evidence.dst.host.clone());
    found.remedy =
        "look at what else that host does, and whether the program reads in large pieces".into();
    Some(found)
}

/// `nagle`: a small size takes a delayed acknowledgement longer than its neighbours.
fn nagle(evidence: &Evidence) -> Option<Cause> {
    let least = evidence
        .latency_ns
        .iter()
        .map(|(_, ns)| *ns)
        .min_by(f64::total_cmp)?;
    let (size, ns) = evidence.latency_ns.iter().find(|(size, ns)| {
        let step = ns - least;
        *size <= 16_384 && least < 20e6 && DELAYED_ACK_NS.contains(&step)
    })?;
    let mut found = cause(
        "nagle",
        format!(
            "Messages of {} take {} on {}, {} more than the fastest: the last segment waits for an acknowledgement that the peer \
             delays.",
            bytes(*size),
            time(*ns),
            evidence.network,
            time(ns - least)
        ),
        format!("{} - {} = {}", time(*ns), time(least), time(ns - least)),
        "35 to 210 ms more than the fastest size, up to 16 KiB",
        "RFC 896; RFC 1122 §4.2.3.2",
    );
    found.remedy = "set TCP_NODELAY in the program, or send each message by one call".into();
    found.change = Some(Advice {
        hosts: host_settings([("route.quickack", "1".into())]),
        sockets: BTreeMap::new(),
    });
    Some(found)
}

#[cfg(test)]
mod tests;
