//! What was asked of a run, and whether its rows have it: the plan's requirements, and intervals that are narrow enough.
//!
//! Checked: the end-to-end tests of `assess`; `traps.rs`, `silent_loss_of_the_confidence_target`.

use crate::plan::Requirement;
use sonde_measure::{Quantity, ResultRow, VerdictStatus};
use sonde_report::figure;

/// How many medians have no interval, if any.
pub fn too_few(rows: &[ResultRow]) -> Option<String> {
    let medians = || rows.iter().filter(|row| row.p50.is_some());
    let without = medians().filter(|row| row.ci95_low.is_none()).count();
    (without > 0).then(|| {
        format!(
            "{without} of {} medians come from fewer than 6 repetitions and have no confidence interval",
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
        "{wide} of {all} medians have a 95 % CI wider than ±{} % (worst: ±{:.0} %, {} {} {} of {} B); more repetitions narrow it",
        per_mille as f64 / 10.0,
        half * 100.0,
        row.network,
        row.path,
        row.probe,
        row.size_bytes.unwrap_or(0),
    ))
}

/// What a requirement does not hold of, and of what it cannot be told, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// It fails.
    pub failed: Vec<String>,
    /// It is inconclusive.
    pub inconclusive: Vec<String>,
}

impl Requirement {
    /// Holds it against all rows that it selects. It is inconclusive of a row where the bound lies within the interval of the
    /// median, and where the emulation was not true; a median without interval is held against the bound alone.
    pub fn judged(&self, rows: &[ResultRow]) -> Judged {
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
        let mut judged = Judged::default();
        if selected.is_empty() {
            let why = format!(
                "FAIL [[require]] {:?}: no row has this quantity",
                self.quantity
            );
            judged.failed.push(why);
        }
        for row in selected {
            self.judge(row, &mut judged);
        }
        judged
    }

    fn judge(&self, row: &ResultRow, judged: &mut Judged) {
        let what = format!(
            "{} {} {} of {} B",
            row.network,
            row.path,
            row.probe,
            row.size_bytes.unwrap_or(0)
        );
        let words = [
            self.p50_min
                .map(|least| format!(">= {}", figure(self.quantity, least))),
            self.p50_max
                .map(|most| format!("<= {}", figure(self.quantity, most))),
        ];
        let wanted: Vec<String> = words.into_iter().flatten().collect();
        let wanted = wanted.join(" and ");
        let Some(p50) = row.p50 else {
            judged
                .failed
                .push(format!("FAIL {what}: not measured; required {wanted}"));
            return;
        };
        let median = figure(self.quantity, p50.0);
        // Where rounding hides on which side of the bound it is, with all digits.
        let median = match wanted.contains(&median) {
            true => format!("{median} ({p50})"),
            false => median,
        };
        let is_untrue = row
            .verdict
            .as_ref()
            .is_some_and(|verdict| verdict.status == VerdictStatus::Failed);
        let ends = row.ci95_low.zip(row.ci95_high);
        let is_within =
            |bound: f64| ends.is_some_and(|(low, high)| low.0 < bound && bound < high.0);
        if is_untrue {
            judged.inconclusive.push(format!(
                "INCONCLUSIVE {what}: {median}; required {wanted}; the emulation deviated from its model"
            ));
        } else if [self.p50_min, self.p50_max]
            .into_iter()
            .flatten()
            .any(is_within)
        {
            judged.inconclusive.push(format!(
                "INCONCLUSIVE {what}: {median}, 95 % CI around the bound; required {wanted}; more repetitions narrow it"
            ));
        } else if self.p50_min.is_some_and(|least| p50.0 < least)
            || self.p50_max.is_some_and(|most| p50.0 > most)
        {
            judged
                .failed
                .push(format!("FAIL {what}: {median}; required {wanted}"));
        }
    }
}
