//! What a sweep shows: where the plateau begins, which window binds, start and stop, and how much UDP carries.
//!
//! Model:   `sweep-knee`: the smallest buffer that reaches 95 % of a curve's plateau. `window-law`: a curve's plateau lies
//!          within 80 % to 125 % of window / round trip, so the window binds. `start-stop`: a window of less than two
//!          segments, and a rate below half of what the network and window / round trip of a small message allow: the sender
//!          stops after each until its acknowledgement comes. From 40 ms on that was delayed (Linux's TCP_DELACK_MIN). `udp-loss-limit`: of the constant rates that were sent, the largest with no
//!          more lost than the run asked for, else 0.1 %.
//! Source:  RFC 7323 §1.1; RFC 813; the HIPPI study's start/stop anomaly and its UDP tests.
//! Checked: `a_knee_is_told`, `the_law_is_told_where_it_binds`, `start_and_stop_is_told`, `the_last_rate_without_loss_is_told`.

use std::collections::BTreeMap;

use super::{Finding, Severity};
use crate::format::{bytes, count, rate, share, significant, time};
use crate::index::Index;
use crate::sweep::{SweepCurve, curves};

/// Late acknowledgements below; above, what Linux offers more than half of a buffer where segments take less of it.
const BINDS: std::ops::RangeInclusive<f64> = 0.8..=1.25;
/// How long Linux delays an acknowledgement at least.
const DELAYED_NS: f64 = 40e6;
/// The share of datagrams that may be lost, where the run says none.
const LOST: f64 = 1e-3;

/// All of a run.
pub(super) fn all(index: &Index<'_>) -> Vec<Finding> {
    let curves = curves(index);
    let mut found = Vec::new();
    for curve in &curves {
        let stops = start_stop(index, curve);
        let law = stops.is_none().then(|| law(curve)).flatten();
        found.extend(stops);
        found.extend(law);
        found.extend(knee(curve));
    }
    let told = index
        .run
        .events
        .iter()
        .find(|event| event.kind == "loss_limit");
    let lost = told
        .and_then(|event| event.text.parse().ok())
        .unwrap_or(LOST);
    found.extend(udp_limit(&curves, lost));
    found
}

fn about(curve: &SweepCurve, rule: &str, severity: Severity, sentence: String) -> Finding {
    let mut finding = Finding::new(rule, severity, sentence);
    finding.network = Some(curve.network.clone());
    finding.path = Some(curve.path.clone());
    finding
}

fn knee(curve: &SweepCurve) -> Option<Finding> {
    if curve.points.len() < 3 {
        return None;
    }
    let interval = match (curve.knee_low, curve.knee_high) {
        (Some(low), Some(high)) => format!(" (95 %: {} to {})", bytes(low), bytes(high)),
        _ => String::new(),
    };
    let sentence = format!(
        "By {} on {} with {} the rate levels off at {}; calls of {}{interval} reach 95 % of that.",
        curve.by(),
        curve.network,
        curve.setting(),
        rate(curve.plateau_bps.0),
        bytes(curve.knee_bytes)
    );
    Some(about(curve, "sweep-knee", Severity::Note, sentence))
}

fn law(curve: &SweepCurve) -> Option<Finding> {
    let (window, bound) = (curve.window_bytes?, curve.bound_bps?.0);
    let plateau = curve.plateau_bps.0;
    if !BINDS.contains(&(plateau / bound)) {
        return None;
    }
    let trip = window as f64 * 8e9 / bound;
    let sentence = format!(
        "The window binds by {} on {} with {}: {} in a round trip of {} is {}, and the plateau is {}.",
        curve.by(),
        curve.network,
        curve.setting(),
        bytes(window),
        time(trip),
        rate(bound),
        rate(plateau)
    );
    let arithmetic = format!("{} B x 8 / {} = {}", count(window), time(trip), rate(bound));
    Some(about(curve, "window-law", Severity::Note, sentence).since(arithmetic))
}

/// The largest segment that the network takes, unless the sweep sets its MTU. Linux cuts its segments to half of the largest
/// window that it was offered (`tcp_bound_to_half_wnd`), so that what it says of itself is never more than half a window.
fn full_segment(index: &Index<'_>, curve: &SweepCurve) -> u64 {
    let network = index.network(&curve.network);
    let mtu = network.filter(|_| !curve.knobs.contains_key("mtu"));
    // Headers of IPv4 and TCP with time stamps.
    mtu.map_or(0, |network| network.row.mtu_bytes.saturating_sub(52))
}

fn start_stop(index: &Index<'_>, curve: &SweepCurve) -> Option<Finding> {
    let window = curve.window_bytes?;
    let segment = curve.segment_bytes?.max(full_segment(index, curve));
    let (bound, plateau) = (curve.bound_bps?.0, curve.plateau_bps.0);
    let full = index
        .network(&curve.network)
        .and_then(|network| network.row.tcp_max_bps)
        .map_or(bound, |most| bound.min(most as f64));
    if window >= 2 * segment || plateau >= full / 2.0 {
        return None;
    }
    let sent = window.min(segment) as f64;
    let pause = sent * 8e9 / plateau;
    let why = if pause >= DELAYED_NS {
        ", which the peer delays"
    } else {
        ""
    };
    let sentence = format!(
        "Start and stop by {} on {} with {}: the window of {} holds less than two segments of {}, so each waits for the \
         acknowledgement of the one before{why}: {} windows a second, {}.",
        curve.by(),
        curve.network,
        curve.setting(),
        bytes(window),
        bytes(segment),
        significant(1e9 / pause, 3),
        rate(plateau)
    );
    let finding = about(curve, "start-stop", Severity::Advice, sentence).since(format!(
        "{} B x 8 / {} = {} from one to the next",
        significant(sent, 5),
        rate(plateau),
        time(pause)
    ));
    Some(finding.remedy("give windows room for several segments, or lower the MTU"))
}

/// Once a network, method and setting with more than one constant rate.
fn udp_limit(curves: &[SweepCurve], most_lost: f64) -> Vec<Finding> {
    type Key<'c> = (&'c str, String, BTreeMap<String, String>);
    let key = |curve: &'_ SweepCurve| -> Option<(String, BTreeMap<String, String>)> {
        let mut knobs = curve.knobs.clone();
        knobs
            .remove("rate")
            .filter(|_| curve.path.starts_with("udp"))?;
        Some((curve.by(), knobs))
    };
    let mut kinds: Vec<Key<'_>> = Vec::new();
    for curve in curves {
        let Some((by, knobs)) = key(curve) else {
            continue;
        };
        let kind = (curve.network.as_str(), by, knobs);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
        .into_iter()
        .filter_map(|(network, by, knobs)| {
            let mine = curves.iter().filter(|curve| {
                curve.network == network && key(curve).is_some_and(|one| one == (by.clone(), knobs.clone()))
            });
            let set: Vec<String> = (by != "udp")
                .then(|| by.clone())
                .into_iter()
                .chain(knobs.iter().map(|(name, value)| format!("{name}={value}")))
                .collect();
            let of = if set.is_empty() {
                "UDP".to_owned()
            } else {
                format!("UDP ({})", set.join(", "))
            };
            let mut rates: Vec<(f64, f64)> = mine
                .filter_map(|curve| {
                    let point = curve.points.last()?;
                    let lost = point.lost?.0;
                    // What was sent: received over what was not lost.
                    Some((point.bps.0 / (1.0 - lost).max(f64::EPSILON), lost))
                })
                .collect();
            rates.sort_by(|one, other| one.0.total_cmp(&other.0));
            if rates.len() < 2 {
                return None;
            }
            let held = rates.iter().take_while(|(_, lost)| *lost <= most_lost).last();
            let next = rates.iter().find(|(_, lost)| *lost > most_lost);
            let sentence = match (held, next) {
                (Some((held, lost)), Some((sent, much))) => format!(
                    "{of} on {network} carries {} with {} lost; of {} sent {} are lost.",
                    rate(*held),
                    share(*lost),
                    rate(*sent),
                    share(*much)
                ),
                (Some((held, _)), None) => format!(
                    "{of} on {network} carries every constant rate that was sent, up to {}, with {} lost or less.",
                    rate(*held),
                    share(most_lost)
                ),
                (None, _) => format!(
                    "{of} on {network} loses more than {} at every constant rate that was sent, from {} on.",
                    share(most_lost),
                    rate(rates[0].0)
                ),
            };
            let mut finding = Finding::new("udp-loss-limit", Severity::Note, sentence);
            finding.network = Some(network.into());
            finding.path = Some("udp".into());
            Some(finding)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};
    use sonde_measure::{Quantity, Run};

    fn found(run: &Run, rule: &str) -> Vec<Finding> {
        let mut all = all(&Index::new(run));
        all.retain(|finding| finding.rule == rule);
        all
    }

    fn wan() -> Runs {
        Runs::new()
            .network(net("wan").line(100_000_000))
            .latency("wan", "tcp", 1, 10_000_000)
    }

    #[test]
    fn a_knee_is_told() {
        let run = wan()
            .stream_of("wan", "tcp", 512, 40_000_000)
            .stream_of("wan", "tcp", 4_096, 92_000_000)
            .stream_of("wan", "tcp", 65_536, 94_000_000)
            .done();
        let knees = found(&run, "sweep-knee");
        assert!(
            knees[0]
                .sentence
                .contains("levels off at 94.00 Mb/s; calls of 4 KiB"),
            "{knees:?}"
        );
    }

    #[test]
    fn the_law_is_told_where_it_binds() {
        let run = wan()
            .knob("window", "64KiB")
            .stream("wan", "tcp", 25_800_000)
            .knob("window", "1MiB")
            .stream("wan", "tcp", 94_000_000)
            .done();
        let laws = found(&run, "window-law");
        assert_eq!(laws.len(), 1, "{laws:?}");
        assert_eq!(
            laws[0].arithmetic.as_deref(),
            Some("65 536 B x 8 / 20.00 ms = 26.21 Mb/s")
        );
        assert!(found(&run, "start-stop").is_empty());
    }

    #[test]
    fn start_and_stop_is_told() {
        // One segment in a round trip of 0.1 ms and a delayed acknowledgement of 40 ms.
        let run = Runs::new()
            .network(net("lan").line(100_000_000))
            .latency("lan", "tcp", 1, 50_000)
            .knob("window", "2KiB")
            .stream("lan", "tcp", 289_000)
            .knob("window", "64KiB")
            .stream("lan", "tcp", 94_000_000)
            .done();
        let stops = found(&run, "start-stop");
        assert_eq!(stops.len(), 1, "{stops:?}");
        assert!(
            stops[0]
                .sentence
                .contains("which the peer delays: 24.9 windows a second"),
            "{stops:?}"
        );
    }

    #[test]
    fn the_last_rate_without_loss_is_told() {
        let at = |run: Runs, sent: &str, bps: u64, lost: u64| {
            run.knob("rate", sent)
                .stream_of("lan", "udp", 1_472, bps)
                .beside(Quantity::LostShare, lost)
        };
        let lan = || Runs::new().network(net("lan").line(100_000_000));
        let run = at(
            at(
                at(lan(), "50Mbit", 50_000_000, 0),
                "90Mbit",
                90_000_000,
                500,
            ),
            "120Mbit",
            95_700_000,
            202_500,
        );
        let limit = found(&run.done(), "udp-loss-limit");
        assert_eq!(limit.len(), 1, "{limit:?}");
        assert!(
            limit[0].sentence.starts_with("UDP on lan carries 90.0"),
            "{limit:?}"
        );
        let run = at(at(lan(), "50Mbit", 50_000_000, 0), "90Mbit", 90_000_000, 0);
        assert!(
            found(&run.done(), "udp-loss-limit")[0]
                .sentence
                .contains("every constant rate")
        );
    }
}
