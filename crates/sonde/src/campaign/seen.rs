//! What the lab saw of a launch, put into its record: what its switch took, the load that was reached, and what the network lost of a
//! program; and whether a disturbance met most of its time.
//!
//! Units:   nanoseconds; shares; of frames in millionths, of all that the network took.
//! Checked: `lost_frames_are_a_share_of_all_and_have_their_place`, `what_is_timed_has_what_met_a_disturbance`,
//!          `most_of_the_time_was_disturbed`.

use super::{Block, LaunchRecord, Launched, Measurement, Phase, Quantity};
use sonde_lab::Report;
use sonde_measure::{Away, Evidence, Fixed, LoadFlow, NetworkLoss, Touch};
use sonde_probe::Seen;

/// Of a CPU: a switch that takes more is late by its own load.
const SWITCH_BUSY: f64 = 0.8;

/// Puts it there.
pub fn tell(record: &mut LaunchRecord, block: &Block, launched: Option<&Launched>) {
    let Some(report) = launched.and_then(|one| one.report.as_ref()) else {
        return;
    };
    emulation(Some(report), &mut record.evidence);
    load(report, &mut record.evidence);
    if block.kind().is_of_programs() || block.files().is_some() {
        lost(report, record);
    }
}

/// What the lab's own processes took, and with which priority.
pub fn emulation(report: Option<&Report>, evidence: &mut Evidence) {
    let emulation = &mut evidence.emulation;
    emulation.switch_cpu_ns = report.map(|report| report.cpu_ns);
    emulation.priority = report.map(|report| report.priority.name().into());
}

/// When an emulation was behind its model.
pub fn behind(report: Option<&Report>) -> Vec<Away> {
    report.map(Report::away).unwrap_or_default()
}

/// Of the time of a launch's samples the part that a disturbance met, 0 to 1; `None` where that was not seen, or the lab's own switch had so
/// much to do that it was late by itself, which is no disturbance.
pub fn disturbed_share(launched: &Launched) -> Option<f64> {
    let report = launched.report.as_ref();
    if report.is_some_and(|report| switch_share(report) > SWITCH_BUSY) {
        return None;
    }
    let behind = behind(report);
    let sizes = launched.outcome.sizes.iter();
    let seen = sizes.filter_map(|size| Some(size.seen.as_ref()?.moments().met_ns(&behind)));
    let [met_ns, all_ns] = seen.fold([0, 0], |sum: [u64; 2], of| {
        [0, 1].map(|at| sum[at].saturating_add(of[at]))
    });
    (all_ns > 0).then(|| met_ns as f64 / all_ns as f64)
}

/// That repetition `index` of `what` is set aside, with the share of its time that was disturbed.
pub fn set_aside(what: &str, index: u64, share: f64) -> String {
    let (number, percent) = (index + 1, share * 100.0);
    format!(
        "{what}: repetition {number} is set aside and made again: {percent:.0} % of its time was disturbed"
    )
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
    evidence.load.switch_cpu_share = Fixed::of(switch_share(report));
}

/// Of a CPU, what the lab's switch took.
fn switch_share(report: &Report) -> f64 {
    report.cpu_ns as f64 / report.span_ns.max(1) as f64
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
    fn most_of_the_time_was_disturbed() {
        // Two sizes, each of 100 ns, and 60 of the first.
        let size = |origin_ns, away: &[Away]| sonde_probe::SizeOutcome {
            size_bytes: 1,
            measurements: Vec::new(),
            slots: Default::default(),
            seen: Some(Seen::Samples(Moments {
                origin_ns,
                samples: vec![[20, 80, 5]],
                away: away.to_vec(),
            })),
        };
        let away = Away {
            from_ns: 1_040,
            to_ns: 1_200,
            most_ns: 60,
        };
        let launched = |sizes, report| Launched {
            outcome: sonde_probe::Outcome {
                sizes,
                evidence: Evidence::default(),
                interference: Vec::new(),
                moved: Default::default(),
            },
            report,
            took: Default::default(),
        };
        let sizes = vec![size(1_000, &[away]), size(5_000, &[])];
        let one = launched(sizes.clone(), None);
        assert_eq!(disturbed_share(&one), Some(0.3));
        assert_eq!(disturbed_share(&launched(Vec::new(), None)), None);
        let busy = |cpu_ns| Report {
            cpu_ns,
            span_ns: 1_000,
            ..Report::default()
        };
        let at = |cpu_ns| disturbed_share(&launched(sizes.clone(), Some(busy(cpu_ns))));
        assert_eq!((at(800), at(801)), (Some(0.3), None));
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
