//! The rules of a pair: each looks at its evidence and says what holds its stream back, or nothing.
//!
//! Model:   entries of [`crate::finding::RULES`]. A path that carries small messages and no stream is a black hole, and nothing else
//!          is looked at. A rule that has a limit of its own names it, and is heard where it explains the rate and no lower one
//!          does ([`crate::finding::causes`]). What has no limit is looked at where nothing that has one speaks: others on the
//!          CPUs first, then the program that reads. With 50 preemptions a second, each of up to a slice of 10 ms, others may
//!          have taken half of the time.
//! Checked: `planted_faults_are_named`, `what_does_not_explain_is_not_named`, `a_larger_cause_hides_the_others`,
//!          `healthy_pairs_have_no_cause`, `the_window_of_era_is_found_with_its_arithmetic`,
//!          `a_programs_own_buffer_is_its_own`.

use std::collections::BTreeMap;

use sonde_measure::{Setting, SettingValue};

use super::window::{Origin, UNSCALED, receive, send, windows};
use super::{Advice, Cause, End, Evidence};
use crate::finding::{Because, Weight};
use crate::limit::{BUSY, HELD, binds, cpu_bps, full_segment_bytes, loss_bps, on_the_way_bytes};
use crate::words::{Words, cause as words};

/// A thread that uses so much of a CPU would gain by less work.
const LABOURING: f64 = 0.7;
/// Segments sent again from which loss is spoken of.
const LOSS: f64 = 1e-3;
/// Datagrams that overtake from which reordering is spoken of.
const OVERTAKEN: f64 = 1e-3;
/// Preemptions a second, and part of all CPUs in use, from which others hold the thread up.
const PUT_ASIDE_PER_S: f64 = 50.0;
const HOST_BUSY: f64 = 0.95;
/// A delayed acknowledgement of Linux is 40 ms at the least, and most others' 200 ms at the most.
const DELAYED_ACK_NS: std::ops::RangeInclusive<f64> = 35e6..=210e6;

fn cause(rule: &str, host: Option<&End>, of: &dyn Words) -> Cause {
    let (threshold, source) = words::terms(rule);
    Cause {
        rule: rule.into(),
        host: host.map(|end| end.host.clone()),
        sentence: of.sentence(),
        arithmetic: of.arithmetic().unwrap_or_default(),
        threshold: threshold.into(),
        source: source.into(),
        remedy: of.remedy().unwrap_or_default(),
        change: None,
        expected_bps: None,
    }
}

/// `duplex`, of who compared both ways.
pub(super) fn duplex(found: &words::Duplex) -> Cause {
    let mut cause = cause("duplex", None, found);
    cause.host.clone_from(&found.host);
    cause
}

fn change(name: impl Into<String>, value: impl Into<String>) -> Option<Advice> {
    Some(Advice {
        hosts: vec![(name.into(), value.into())],
        sockets: BTreeMap::new(),
    })
}

/// `mtu`: what is small passes, what is large does not.
pub(crate) fn black_hole(evidence: &Evidence) -> Option<Because> {
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
    let smaller = least.filter(|least| most.is_some_and(|most| *least < most));
    let found = words::BlackHole {
        network: evidence.network.clone(),
        small_ns,
        host_mtus: mtus,
        network_mtu: evidence.network_mtu,
        stalls,
        smaller,
    };
    let mut cause = cause("mtu", None, &found);
    cause.expected_bps = evidence.reach_bps;
    cause.change = match smaller {
        Some(least) => change("mtu", least.to_string()),
        None => change(Setting::TcpMtuProbing.set_name(), "1"),
    };
    Some(Because {
        cause,
        weight: Weight::Alone,
    })
}

/// Room for `needed` bytes on the way: twice for the kernel's share, twice for queues and recovery, a power of two.
fn room(needed: u64) -> u64 {
    (4 * needed).next_power_of_two()
}

/// Bytes on the way that are to be allowed; where what the network allows is not known, for 10 Gb/s.
fn wanted(evidence: &Evidence) -> Option<words::Need> {
    let bps = evidence.reach_bps.unwrap_or(1e10);
    let rtt_ns = evidence.rtt_ns.filter(|ns| *ns > 0.0)?;
    Some(words::Need {
        bps,
        is_known: evidence.reach_bps.is_some(),
        rtt_ns,
        bytes: on_the_way_bytes(bps, rtt_ns).ceil() as u64,
    })
}

/// The settings that allow windows of `needed` bytes between both hosts, where they do not yet.
fn window_settings(evidence: &Evidence, needed: u64) -> Vec<(String, String)> {
    let ends = [&evidence.src, &evidence.dst];
    let mut all = Vec::new();
    let mut set = |setting: Setting, value: String| all.push((setting.set_name(), value));
    let off = |setting| {
        let mut ends = ends.iter();
        ends.any(|end| end.settings.is_on(setting) == Some(false))
    };
    if needed > UNSCALED {
        // Time stamps guard large windows against old segments, selective acknowledgements their recovery.
        for setting in [
            Setting::TcpWindowScaling,
            Setting::TcpTimestamps,
            Setting::TcpSack,
        ] {
            if off(setting) {
                set(setting, "1".into());
            }
        }
    }
    let room = room(needed);
    for (setting, usual) in [(Setting::TcpRmem, 131_072), (Setting::TcpWmem, 65_536)] {
        let most = ends
            .iter()
            .filter_map(|end| end.settings.number(setting))
            .min();
        if most.is_none_or(|most| most < 2 * needed) {
            let room = room.max(usual);
            let value = SettingValue::Triple([4_096, usual, room]);
            set(setting, value.to_string());
        }
    }
    if off(Setting::TcpModerateRcvbuf) {
        set(Setting::TcpModerateRcvbuf, "1".into());
    }
    let window = |end: &&End| end.settings.number(Setting::RouteWindow);
    if ends.iter().filter_map(window).any(|most| most < needed) {
        set(Setting::RouteWindow, SettingValue::Absent.to_string());
    }
    all
}

/// `receive-window`.
pub(crate) fn receive_window(evidence: &Evidence) -> Option<Because> {
    let hold = receive(evidence)?;
    let (window, limit_bps) = hold.bound?;
    let need = wanted(evidence)?;
    let kernel = evidence
        .dst
        .settings
        .number(Setting::TcpRmem)
        .map(|most| most / 2);
    let needed = need.bytes;
    let found = words::Window {
        network: evidence.network.clone(),
        rtt_ns: need.rtt_ns,
        rate_bps: evidence.rate_bps?,
        limit_bps,
        hold,
        window,
        kernel,
        need,
    };
    let mut cause = cause("receive-window", None, &found);
    let mut advice = Advice::default();
    let hosts = window_settings(evidence, needed);
    let knob = match window.origin {
        Origin::Program(_) => Some("rcvbuf"),
        Origin::Clamp => Some("window"),
        _ => None,
    };
    if let Some(knob) = knob {
        advice.sockets.insert(knob.into(), None);
        // What binds behind the program's buffer, if anything does.
        let all = windows(evidence);
        let behind = all.get(1..).unwrap_or_default();
        let behind = behind.iter().map(|window| window.bytes).chain(kernel).min();
        if behind.is_some_and(|bytes| bytes < needed) {
            advice.hosts = hosts;
        }
    } else {
        cause.host = Some(evidence.dst.host.clone());
        advice.hosts = hosts;
    }
    cause.change = (advice != Advice::default()).then_some(advice);
    cause.expected_bps = evidence.reach_bps;
    // Up to the most of its origin it may be larger than it is.
    let limit_bps = limit_bps.max(evidence.rate_bps?);
    Some(Because {
        cause,
        weight: Weight::Limit(limit_bps),
    })
}

/// `send-buffer`.
pub(crate) fn send_buffer(evidence: &Evidence) -> Option<Because> {
    let hold = send(evidence)?;
    let (buffer, limit_bps) = hold.bound?;
    let need = wanted(evidence)?;
    let needed = need.bytes;
    let found = words::Buffer {
        host: evidence.src.host.clone(),
        network: evidence.network.clone(),
        rtt_ns: need.rtt_ns,
        rate_bps: evidence.rate_bps?,
        limit_bps,
        hold,
        buffer,
        need,
    };
    let mut cause = cause("send-buffer", Some(&evidence.src), &found);
    cause.expected_bps = evidence.reach_bps;
    let mut advice = Advice::default();
    let asked = matches!(buffer.origin, Origin::Program(_));
    if asked {
        advice.sockets.insert("sndbuf".into(), None);
    }
    let most = evidence
        .src
        .settings
        .number(Setting::TcpWmem)
        .map(|most| most / 2);
    if !asked || most.is_some_and(|most| most < needed) {
        advice.hosts = window_settings(evidence, needed);
    }
    cause.change = (advice != Advice::default()).then_some(advice);
    // Up to the most of its origin it may be larger than it is.
    let limit_bps = limit_bps.max(evidence.rate_bps?);
    Some(Because {
        cause,
        weight: Weight::Limit(limit_bps),
    })
}

/// What a share of segments that are taken for lost leaves of the stream, where that is less than the network allows.
pub(crate) fn loss_limit_bps(evidence: &Evidence, p: f64) -> Option<f64> {
    let control = evidence.congestion.as_deref()?;
    let limit = loss_bps(control, evidence.mss_bytes?, evidence.rtt_ns?, p)?;
    binds(limit, evidence.reach_bps).then_some(limit)
}

/// `loss`, or `congestion` where the host has a congestion control that bears it.
pub(crate) fn loss(evidence: &Evidence) -> Option<Because> {
    let again = evidence.again_share.filter(|share| *share >= LOSS)?;
    let limit_bps = loss_limit_bps(evidence, again)?;
    let is_borne = evidence.src.settings.has_congestion("bbr");
    let found = words::Loss {
        network: evidence.network.clone(),
        again,
        datagrams: evidence.lost_share.filter(|share| *share >= LOSS),
        control: evidence.congestion.clone()?,
        mss_bytes: evidence.mss_bytes?,
        rtt_ns: evidence.rtt_ns?,
        limit_bps,
        rate_bps: evidence.rate_bps?,
        borne_by: is_borne.then(|| evidence.src.host.clone()),
        apart: evidence.apart,
    };
    let mut cause = cause("loss", None, &found);
    if is_borne {
        cause.rule = "congestion".into();
        cause.change = change(Setting::RouteCongctl.name(), "bbr");
    }
    Some(Because {
        cause,
        weight: Weight::Limit(limit_bps),
    })
}

/// `reordering`: each datagram that was overtaken stands for a segment that is taken for lost.
pub(crate) fn reordering(evidence: &Evidence) -> Option<Because> {
    let overtaken = evidence
        .reordered_share
        .filter(|share| *share >= OVERTAKEN)?;
    let limit_bps = loss_limit_bps(evidence, overtaken)?;
    let found = words::Reordering {
        network: evidence.network.clone(),
        overtaken,
        limit_bps,
        rate_bps: evidence.rate_bps?,
    };
    let cause = cause("reordering", None, &found);
    Some(Because {
        cause,
        weight: Weight::Limit(limit_bps),
    })
}

/// `interrupts`: one CPU serves the receive queue and has no more. Of real hosts only, whose CPUs are their own.
pub(crate) fn interrupts(evidence: &Evidence) -> Option<Because> {
    let dst = &evidence.dst;
    let Some(SettingValue::Numbers(serving)) = dst.settings.get(Setting::InterruptCpus) else {
        return None;
    };
    let &[cpu] = &serving[..] else {
        return None;
    };
    if !evidence.apart || dst.cpus < 2 {
        return None;
    }
    let (host_cpu, thread_cpu) = (dst.host_cpu?, dst.thread_cpu?);
    let beside = host_cpu * dst.cpus as f64 - thread_cpu;
    if beside < BUSY {
        return None;
    }
    let limit_bps = cpu_bps(evidence.rate_bps?, beside)?;
    let found = words::Interrupts {
        host: dst.host.clone(),
        cpu,
        beside,
        host_cpu,
        cpus: dst.cpus,
        thread_cpu,
    };
    let cause = cause("interrupts", Some(dst), &found);
    Some(Because {
        cause,
        weight: Weight::Limit(limit_bps),
    })
}

/// `offload`: segmentation or merging in software is off, and the CPU feels it.
pub(crate) fn offload(evidence: &Evidence) -> Option<Because> {
    let sides = [
        (&evidence.src, Setting::OffloadGso, true),
        (&evidence.dst, Setting::OffloadGro, false),
    ];
    // Without these nothing is merged; hardware alone may be missing.
    let (end, off, sends) = sides.into_iter().find(|(end, setting, _)| {
        end.thread_cpu.is_some_and(|share| share >= LABOURING)
            && end.settings.is_on(*setting) == Some(false)
    })?;
    let (used, rate_bps) = (end.thread_cpu?, evidence.rate_bps?);
    let limit_bps = cpu_bps(rate_bps, used)?;
    let found = words::Offload {
        network: evidence.network.clone(),
        host: end.host.clone(),
        off,
        sends,
        used,
        rate_bps,
        ns_per_byte: end.cpu_ns_per_byte?,
    };
    let mut cause = cause("offload", Some(end), &found);
    cause.change = change(off.name(), "on");
    Some(Because {
        cause,
        weight: Weight::Limit(limit_bps),
    })
}

/// `cpu`.
pub(crate) fn cpu(evidence: &Evidence) -> Option<Because> {
    let sides = [(&evidence.src, true), (&evidence.dst, false)];
    let (end, sends) = sides
        .into_iter()
        .find(|(end, _)| end.thread_cpu.is_some_and(|share| share >= BUSY))?;
    let (used, rate_bps) = (end.thread_cpu?, evidence.rate_bps?);
    let limit_bps = cpu_bps(rate_bps, used)?;
    let found = words::Cpu {
        network: evidence.network.clone(),
        host: end.host.clone(),
        sends,
        used,
        rate_bps,
        ns_per_byte: end.cpu_ns_per_byte?,
    };
    let cause = cause("cpu", Some(end), &found);
    Some(Because {
        cause,
        weight: Weight::Limit(limit_bps),
    })
}

/// `cpu-hog`: others have the CPU that the thread would need.
pub(crate) fn hog(evidence: &Evidence) -> Option<Because> {
    let hogged = |end: &&End| {
        end.put_aside_per_s
            .is_some_and(|times| times >= PUT_ASIDE_PER_S)
            && end.host_cpu.is_some_and(|busy| busy >= HOST_BUSY)
            && end.thread_cpu.is_some_and(|share| share < BUSY)
    };
    let ends = [&evidence.src, &evidence.dst];
    let end = ends.into_iter().filter(hogged).max_by(|a, b| {
        let times = |end: &End| end.put_aside_per_s.unwrap_or(0.0);
        times(a).total_cmp(&times(b))
    })?;
    let found = words::Hog {
        host: end.host.clone(),
        host_cpu: end.host_cpu?,
        cpus: end.cpus,
        thread_cpu: end.thread_cpu?,
        put_aside_per_s: end.put_aside_per_s?,
    };
    Some(Because {
        cause: cause("cpu-hog", Some(end), &found),
        weight: Weight::Otherwise,
    })
}

/// What a reader that is too slow shows: the window is closed most of the time, though no setting makes it small. A window of less
/// than two segments is closed by each segment until the next acknowledgement, however fast the reader is.
pub(crate) fn reads_slowly(evidence: &Evidence) -> Option<words::SlowReader> {
    let held = evidence.rwnd_share.filter(|held| *held >= HELD)?;
    evidence.reach_bps?;
    let segment = evidence.network_mtu.map_or(0, full_segment_bytes);
    let smallest = windows(evidence).first().map(|window| window.bytes);
    if smallest.is_some_and(|bytes| bytes < 2 * segment) {
        return None;
    }
    Some(words::SlowReader {
        network: evidence.network.clone(),
        host: evidence.dst.host.clone(),
        held,
    })
}

/// `slow-reader`.
pub(crate) fn slow_reader(evidence: &Evidence) -> Option<Because> {
    let found = reads_slowly(evidence)?;
    Some(Because {
        cause: cause("slow-reader", Some(&evidence.dst), &found),
        weight: Weight::Otherwise,
    })
}

/// `nagle`: a small size takes a delayed acknowledgement longer than its neighbours.
pub(crate) fn nagle(evidence: &Evidence) -> Option<Because> {
    let least_ns = evidence
        .latency_ns
        .iter()
        .map(|(_, ns)| *ns)
        .min_by(f64::total_cmp)?;
    let (size_bytes, ns) = evidence.latency_ns.iter().find(|(size, ns)| {
        let step = ns - least_ns;
        *size <= 16_384 && least_ns < 20e6 && DELAYED_ACK_NS.contains(&step)
    })?;
    let found = words::Nagle {
        network: evidence.network.clone(),
        size_bytes: *size_bytes,
        ns: *ns,
        least_ns,
    };
    let mut cause = cause("nagle", None, &found);
    cause.change = change(Setting::RouteQuickack.name(), "1");
    Some(Because {
        cause,
        weight: Weight::Beside,
    })
}

#[cfg(test)]
mod tests;
