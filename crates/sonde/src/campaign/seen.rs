//! What the lab saw of a launch, put into its record: what its switch took, the load that was reached, and what the network lost of a
//! program.
//!
//! Units:   nanoseconds; shares; of frames in millionths, of all that the network took.
//! Checked: `lost_frames_are_a_share_of_all_and_have_their_place`, `what_is_timed_has_what_met_a_disturbance`.

use super::{Block, LaunchRecord, Launched, Measurement, Phase, Quantity};
use sonde_lab::Report;
use sonde_measure::{Away, Evidence, Fixed, LoadFlow, NetworkLoss, Touch};
use sonde_probe::Seen;

/// Puts it there.
pub fn tell(record: &mut LaunchRecord, block: &Block, launched: Option<&Launched>) {
    let Some(report) = launched.and_then(|one| one.report.as_ref()) else {
        return;
    };
    record.evidence.emulation.switch_cpu_ns = Some(report.cpu_ns);
    load(report, &mut record.evidence);
    if block.kind().is_of_programs() || block.files().is_some() {
        lost(report, record);
    }
}

/// When an emulation was behind its model.
pub fn behind(report: Option<&Report>) -> Vec<Away> {
    report.map(Report::away).unwrap_or_default()
}

/// What was measured; where it is `seen` when its samples were taken, with those of them that met a time in which the emulation was `behind`
/// or either side waited for a CPU. A stream has slices for samples.
pub fn touched(
    mut measurements: Vec<Measurement>,
    seen: Option<&Seen>,
    behind: &[Away],
) -> Vec<Measurement> {
    let touch = match seen {
        None => return measurements,
        Some(Seen::Samples(moments)) => Touch::Samples(moments.touched(behind)),
        Some(Seen::Stream { slices, resent }) => slices.slices(behind, *resent),
    };
    let is_timed = |one: &&mut Measurement| {
        let quantity = matches!(one.quantity, Quantity::LatencyNs | Quantity::ThroughputBps);
        quantity && one.phase == Phase::Warm && one.step.is_none()
    };
    for one in measurements.iter_mut().filter(is_timed) {
        one.touched = Some(touch.clone());
    }
    measurements
}

/// The load that was reached, and what the switch took of a CPU for it and all else.
fn load(report: &Report, evidence: &mut Evidence) {
    if report.flows.is_empty() {
        return;
    }
    for flow in &report.flows {
        let told = LoadFlow {
            wanted: Fixed::of(flow.wanted),
            achieved: Fixed::of(flow.achieved),
            ..LoadFlow::default()
        };
        evidence.load_flows.insert(flow.to.to_string().into(), told);
    }
    let share = report.cpu_ns as f64 / report.span_ns.max(1) as f64;
    evidence.load.switch_cpu_share = Fixed::of(share);
}

/// Frames of a program that the network lost while it ran: their share of all, and where.
pub fn lost(report: &Report, record: &mut LaunchRecord) {
    let lost: u64 = report.lost.values().sum();
    let quantity = Quantity::NetworkLostShare;
    let parts = u128::from(lost) * u128::from(quantity.per_unit());
    let share = (parts / u128::from(report.taken.max(1))) as u64;
    for result in &mut record.results {
        result.series.push(Measurement {
            touched: None,
            quantity,
            phase: Phase::Warm,
            step: None,
            series: std::iter::once(share).collect(),
            reason: None,
        });
    }
    for (loss, frames) in &report.lost {
        let frames = NetworkLoss {
            frames: Some(*frames),
        };
        record.evidence.network_losses.insert(*loss, frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::{CellResult, Loss, Moments, Text};

    #[test]
    fn what_is_timed_has_what_met_a_disturbance() {
        let measurement = |quantity, phase| Measurement {
            touched: None,
            quantity,
            phase,
            step: None,
            series: std::iter::once(5).collect(),
            reason: None,
        };
        let moments = Moments {
            origin_ns: 100,
            samples: vec![[0, 10, 5], [0, 10, 6]],
            away: Vec::new(),
        };
        let of = |quantity, seen| {
            let measurements = vec![
                measurement(quantity, Phase::Warm),
                measurement(quantity, Phase::Cold),
                measurement(Quantity::Retransmits, Phase::Warm),
            ];
            let behind = [Away {
                from_ns: 101,
                to_ns: 102,
                most_ns: 1,
            }];
            let all = touched(measurements, Some(&seen), &behind);
            all.into_iter().map(|one| one.touched).collect::<Vec<_>>()
        };
        let series = |values: &[u64]| values.iter().copied().collect();
        assert_eq!(
            of(Quantity::LatencyNs, Seen::Samples(moments.clone())),
            [Some(Touch::Samples(series(&[5]))), None, None]
        );
        let stream = |resent| Seen::Stream {
            slices: moments.clone(),
            resent,
        };
        let slices = |touched: &[u64]| Touch::Slices {
            all: series(&[5, 6]),
            touched: series(touched),
            span_ns: 20,
            late_ns: 0,
        };
        assert_eq!(
            of(Quantity::ThroughputBps, stream(false)),
            [Some(slices(&[5])), None, None]
        );
        assert_eq!(
            of(Quantity::ThroughputBps, stream(true)),
            [Some(slices(&[5, 6])), None, None]
        );
    }

    #[test]
    fn lost_frames_are_a_share_of_all_and_have_their_place() {
        let at = |text: &str| Loss::read(text).unwrap();
        let report = Report {
            taken: 4_000,
            lost: [
                (at("output-overflow-from-h1"), 9),
                (at("path-random-from-h2"), 1),
            ]
            .into(),
            ..Report::default()
        };
        let mut record = LaunchRecord {
            results: vec![CellResult::default()],
            ..LaunchRecord::default()
        };
        lost(&report, &mut record);
        assert_eq!(record.results[0].series[0].series.median(), Some(2_500));
        let frames = |place: &str| record.evidence.network_losses[&at(place)].frames;
        assert_eq!(frames("output-overflow-from-h1"), Some(9));
        assert_eq!(frames("path-random-from-h2"), Some(1));
        load(&report, &mut record.evidence);
        assert!(record.evidence.load_flows.is_empty());
    }
}
