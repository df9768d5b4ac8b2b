//! What a sweep shows: where the plateau begins, which window binds, start and stop, and how much UDP carries.
//!
//! Model:   `sweep-knee`: the smallest buffer that reaches 95 % of a curve's plateau. `window-law`: a curve's plateau lies
//!          within 80 % to 125 % of window / round trip, so the window binds. `start-stop`: a window of less than two
//!          segments, and a rate below 80 % of window / round trip of a small message, and below half of what the network
//!          allows: the sender stops after each until its acknowledgement comes. From 40 ms on that was delayed (Linux's TCP_DELACK_MIN). `udp-loss-limit`: of the constant rates that were sent, the largest with no
//!          more lost than the run asked for, else 0.1 %.
//! Source:  RFC 7323 §1.1; RFC 813; the HIPPI study's start/stop anomaly and its UDP tests.
//! Checked: `a_knee_is_told`, `the_law_is_told_where_it_binds`, `start_and_stop_is_told`,
//!          `start_and_stop_begins_where_the_window_no_longer_explains`, `the_last_rate_without_loss_is_told`.

use super::{Finding, Severity};
use crate::index::{Index, grouped};
use crate::limit::full_segment_bytes;
use crate::sweep::{SweepCurve, curves};
use crate::words::{Words, sweep as words};

/// Late acknowledgements below; above, what Linux offers more than half of a buffer where segments take less of it.
const BINDS: std::ops::RangeInclusive<f64> = 0.8..=1.25;
/// The share of datagrams that may be lost, where the run says none.
const LOST: f64 = 1e-3;

/// All of them.
pub(super) const IDS: &[&str] = &["start-stop", "window-law", "sweep-knee", "udp-loss-limit"];

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

fn about(curve: &SweepCurve, rule: &str, severity: Severity, found: &dyn Words) -> Finding {
    let mut finding = Finding::said(rule, severity, found);
    finding.network = Some(curve.network.clone());
    finding.path = Some(curve.path.clone());
    finding
}

fn knee(curve: &SweepCurve) -> Option<Finding> {
    let is_told = curve.points.len() >= 3;
    is_told.then(|| about(curve, "sweep-knee", Severity::Note, &words::Knee(curve)))
}

fn law(curve: &SweepCurve) -> Option<Finding> {
    let (window_bytes, limit_bps) = (curve.window_bytes?, curve.bound_bps?.0);
    let found = words::Law {
        curve,
        window_bytes,
        limit_bps,
    };
    let binds = BINDS.contains(&(curve.plateau_bps.0 / limit_bps));
    binds.then(|| about(curve, "window-law", Severity::Note, &found))
}

/// The largest segment that the network takes, unless the sweep sets its MTU. Linux cuts its segments to half of the largest
/// window that it was offered (`tcp_bound_to_half_wnd`), so that what it says of itself is never more than half a window.
fn full_segment(index: &Index<'_>, curve: &SweepCurve) -> u64 {
    let network = index.network(&curve.network);
    let mtu = network.filter(|_| !curve.knobs.contains_key("mtu"));
    mtu.map_or(0, |network| full_segment_bytes(network.row.mtu_bytes))
}

fn start_stop(index: &Index<'_>, curve: &SweepCurve) -> Option<Finding> {
    let window = curve.window_bytes?;
    let segment = curve.segment_bytes?.max(full_segment(index, curve));
    let (bound, plateau) = (curve.bound_bps?.0, curve.plateau_bps.0);
    let most = index
        .network(&curve.network)
        .and_then(|network| network.row.tcp_max_bps);
    let is_full = most.is_some_and(|most| plateau >= most as f64 / 2.0);
    if window >= 2 * segment || is_full || plateau >= BINDS.start() * bound {
        return None;
    }
    let sent_bytes = window.min(segment) as f64;
    let found = words::StartStop {
        curve,
        window_bytes: window,
        segment_bytes: segment,
        sent_bytes,
        pause_ns: sent_bytes * 8e9 / plateau,
    };
    Some(about(curve, "start-stop", Severity::Advice, &found))
}

/// Once a network, method and setting with more than one constant rate.
fn udp_limit(curves: &[SweepCurve], most_lost: f64) -> Vec<Finding> {
    let constant = curves
        .iter()
        .filter(|curve| curve.path.starts_with("udp") && curve.knobs.contains_key("rate"));
    let kinds = grouped(constant, |curve| {
        let mut line = curve.line();
        line.knobs.remove("rate");
        line
    });
    kinds
        .into_iter()
        .filter_map(|(line, mine)| {
            let mut rates: Vec<(f64, f64)> = mine
                .iter()
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
            let held = rates.iter().take_while(|(_, lost)| *lost <= most_lost);
            let next = rates.iter().find(|(_, lost)| *lost > most_lost);
            let found = words::UdpLimit {
                network: &line.network,
                by: &mine[0].by(),
                knobs: &line.knobs,
                most_lost,
                lowest_bps: rates[0].0,
                held: held.last().copied(),
                next: next.copied(),
            };
            let mut finding = Finding::said("udp-loss-limit", Severity::Note, &found);
            finding.network = Some(line.network);
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
                .contains("which the peer delays: 24.9 windows per second"),
            "{stops:?}"
        );
    }

    #[test]
    fn start_and_stop_begins_where_the_window_no_longer_explains() {
        // 2 KiB a round trip of 0.1 ms are 164 Mb/s.
        let rules = |line_bps: u64, bps: u64| {
            let run = Runs::new()
                .network(net("lan").line(line_bps).tcp_max(line_bps))
                .latency("lan", "tcp", 1, 50_000)
                .knob("window", "2KiB")
                .stream("lan", "tcp", bps)
                .knob("window", "64KiB")
                .stream("lan", "tcp", line_bps * 94 / 100)
                .done();
            let all = all(&Index::new(&run));
            let of_window =
                |one: &Finding| one.sentence.contains("2 KiB").then(|| one.rule.clone());
            all.iter().filter_map(of_window).collect::<Vec<_>>()
        };
        assert_eq!(rules(800_000_000, 125_000_000), ["start-stop"]);
        assert_eq!(rules(800_000_000, 135_000_000), ["window-law"]);
        // The line itself allows no more.
        assert!(rules(100_000_000, 94_000_000).is_empty());
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
