//! What was asked of a run, and whether its rows have it: the plan's requirements, and intervals that are narrow enough.
//!
//! Checked: the end-to-end tests of `assess`; `traps.rs`, `silent_loss_of_the_confidence_target`.

use crate::plan::Requirement;
use sonde_measure::{Quantity, ResultRow};

/// How many medians have no interval, if any.
pub fn too_few(rows: &[ResultRow]) -> Option<String> {
    let medians = || rows.iter().filter(|row| row.p50.is_some());
    let without = medians().filter(|row| row.ci95_low.is_none()).count();
    (without > 0).then(|| {
        format!(
            "{without} of {} medians come from few launches: below six there is no interval",
            medians().count()
        )
    })
}

/// The warning of intervals that are wider than asked for, if any is.
pub fn too_wide(rows: &[ResultRow], per_mille: u64) -> Option<String> {
    if per_mille == 0 {
        return None; // None was asked for: all samples were taken.
    }
    let mut worst: Option<(f64, &ResultRow)> = None;
    let (mut wide, mut all) = (0, 0);
    let main = |row: &&ResultRow| {
        row.step.is_none()
            && matches!(
                row.quantity,
                Quantity::LatencyNs
                    | Quantity::StartupNs
                    | Quantity::ThroughputBps
                    | Quantity::ResponseNs
                    | Quantity::KernelNs
            )
    };
    for row in rows.iter().filter(main) {
        let (Some(p50), Some(low), Some(high)) = (row.p50, row.ci95_low, row.ci95_high) else {
            continue;
        };
        all += 1;
        let half = (p50.0 - low.0).max(high.0 - p50.0) / p50.0.max(1.0);
        if half * 1_000.0 > per_mille as f64 {
            wide += 1;
            if worst.is_none_or(|(most, _)| half > most) {
                worst = Some((half, row));
            }
        }
    }
    let (half, row) = worst?;
    Some(format!(
        "{wide} of {all} intervals of a median are wider than {} %: the widest {:.0} % ({} {} {} of {} B); more launches narrow it",
        per_mille as f64 / 10.0,
        half * 100.0,
        row.network,
        row.path,
        row.probe,
        row.size_bytes.unwrap_or(0),
    ))
}

impl Requirement {
    /// What it selects and does not hold of, in words.
    pub fn unmet(&self, rows: &[ResultRow]) -> Vec<String> {
        let selects = |row: &&ResultRow| {
            row.quantity == self.quantity
                && row.step.is_none()
                && row.load == self.load
                && self.probe.is_none_or(|probe| probe.name() == row.probe)
                && self.path.is_none_or(|path| path.name() == row.path)
                && self
                    .network
                    .as_ref()
                    .is_none_or(|network| *network == row.network)
                && self
                    .size_bytes
                    .is_none_or(|size| Some(size) == row.size_bytes)
        };
        let selected: Vec<&ResultRow> = rows.iter().filter(selects).collect();
        if selected.is_empty() {
            return vec![format!("[[require]] {:?}: no row is of it", self.quantity)];
        }
        let judge = |row: &&ResultRow| {
            let p50 = row.p50.map(|p50| p50.0);
            let low = self
                .p50_min
                .filter(|least| p50.is_none_or(|p50| p50 < *least));
            let high = self
                .p50_max
                .filter(|most| p50.is_none_or(|p50| p50 > *most));
            let bound = low
                .map(|least| format!("at least {least}"))
                .or_else(|| high.map(|most| format!("at most {most}")))?;
            Some(format!(
                "required and not met: {} {} {} of {} B: {} where {bound} is wanted",
                row.network,
                row.path,
                row.probe,
                row.size_bytes.unwrap_or(0),
                p50.map_or_else(|| "nothing was measured".into(), |p50| p50.to_string()),
            ))
        };
        selected.iter().filter_map(judge).collect()
    }
}
