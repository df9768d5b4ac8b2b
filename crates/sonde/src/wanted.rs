//! Whether the rows of a run have intervals, as narrow as was asked for.
//!
//! Checked: the end-to-end tests of `assess`; `traps.rs`, `silent_loss_of_the_confidence_target`.

use sonde_measure::{Quantity, ResultRow};

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
