//! What the lab saw of a launch, put into its record: the load that was reached, and what the network lost of a program.
//!
//! Units:   shares; of frames in millionths, of all that the network took.
//! Checked: `lost_frames_are_a_share_of_all_and_have_their_place`.

use super::{Block, LaunchRecord, Launched, Measurement, Phase, Quantity};
use sonde_lab::Report;

/// Puts it there.
pub fn tell(record: &mut LaunchRecord, block: &Block, launched: &Result<Launched, String>) {
    let launched = launched.as_ref().ok();
    let Some(report) = launched.and_then(|one| one.report.as_ref()) else {
        return;
    };
    record.settings.extend(load(report));
    if block.kind.is_of_programs() {
        lost(report, record);
    }
}

/// The load that was reached, and what the switch took of a CPU for it and all else.
fn load(report: &Report) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    if report.flows.is_empty() {
        return settings;
    }
    let mut set = |name: &str, value: f64| {
        settings.push((format!("load.{name}"), format!("{value:.4}")));
    };
    for flow in &report.flows {
        set(&format!("wanted.{}", flow.to), flow.wanted);
        set(&format!("achieved.{}", flow.to), flow.achieved);
    }
    set(
        "switch_cpu_share",
        report.cpu_ns as f64 / report.span_ns.max(1) as f64,
    );
    settings
}

/// Frames of a program that the network lost while it ran: their share of all, and where.
fn lost(report: &Report, record: &mut LaunchRecord) {
    let lost: u64 = report.lost.iter().map(|(_, frames)| frames).sum();
    let quantity = Quantity::NetworkLostShare;
    let parts = u128::from(lost) * u128::from(quantity.per_unit());
    let share = (parts / u128::from(report.taken.max(1))) as u64;
    record.series.push(Measurement {
        quantity,
        phase: Phase::Warm,
        step: None,
        series: std::iter::once(share).collect(),
        reason: None,
    });
    let setting = |(place, frames): &(String, u64)| {
        let place = place.to_lowercase().replace(' ', "-");
        (format!("network.lost.{place}"), frames.to_string())
    };
    record.settings.extend(report.lost.iter().map(setting));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_frames_are_a_share_of_all_and_have_their_place() {
        let report = Report {
            taken: 4_000,
            lost: vec![
                ("Output Overflow from h1".into(), 9),
                ("Path Random from h2".into(), 1),
            ],
            ..Report::default()
        };
        let mut record = LaunchRecord {
            cell: "c".into(),
            index: 0,
            src: "h1".into(),
            dst: "h2".into(),
            began_unix_ns: 0,
            took_ns: 1,
            failure: None,
            series: Vec::new(),
            settings: Default::default(),
            interference: Vec::new(),
            verdict: None,
        };
        lost(&report, &mut record);
        assert_eq!(record.series[0].series.median(), Some(2_500));
        assert_eq!(record.settings["network.lost.output-overflow-from-h1"], "9");
        assert_eq!(record.settings["network.lost.path-random-from-h2"], "1");
        assert!(load(&report).is_empty());
    }
}
