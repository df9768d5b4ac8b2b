//! The machines changed while they measured: cells made early and late are not alike.
//!
//! Model:   a short ping-pong on the idle network is repeated among all launches, with the knob `reference`. Its medians,
//!          in the order of time, have a trend where Mann and Kendall's test says so at one in a hundred and the change
//!          over the run by Theil and Sen's slope is at least a twentieth of their median. Below eight launches nothing is
//!          said.
//! Checked: `a_reference_that_rises_is_told`, `a_steady_reference_is_not_told`, `a_reference_is_no_result`.

use super::{Finding, Severity};
use crate::index::Index;
use crate::words::drift as words;

/// One in a hundred runs of each network would be told for nothing.
const P_MAX: f64 = 0.01;
const CHANGE_MIN: f64 = 0.05;

/// Networks whose reference has a trend.
pub(super) fn drifting(index: &Index<'_>) -> Vec<Finding> {
    let references = index
        .run
        .cells
        .iter()
        .filter(|cell| cell.factors.knobs.contains_key("reference"));
    references
        .filter_map(|cell| {
            let medians: Vec<(u64, u64)> = index
                .repetitions(&cell.id)
                .filter_map(|one| {
                    let (quantity, phase) = cell.factors.main();
                    let main = one.result.samples(quantity, phase)?;
                    Some((one.launch.began_unix_ns, main.median()?))
                })
                .collect();
            let trend = sonde_stats::trend(&medians)?;
            let mut sorted: Vec<u64> = medians.iter().map(|(_, median)| *median).collect();
            sorted.sort_unstable();
            let middle = sorted[sorted.len() / 2] as f64;
            let share = trend.change / middle.max(1.0);
            if trend.p >= P_MAX || share.abs() < CHANGE_MIN {
                return None;
            }
            let network = &cell.factors.network;
            let at = || medians.iter().map(|(at, _)| *at);
            let found = words::Drift {
                network,
                part: share,
                launches: medians.len(),
                over_ns: at().max()? - at().min()?,
                median_ns: middle,
                change_ns: trend.change,
                p: trend.p,
            };
            Some(Finding::said("drift", Severity::Warning, &found).on_network(network))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    fn run(step_ns: u64, launches: u64) -> sonde_measure::Run {
        let mut run = Runs::new()
            .network(net("wire"))
            .latency("wire", "tcp", 1, 20_000)
            .done();
        let mut cell = run.cells[0].clone();
        cell.factors.knobs.insert("reference".into(), "idle".into());
        cell.id = "reference".into();
        let one = run.launches[0].clone();
        for index in 0..launches {
            let mut launch = one.clone();
            launch.began_unix_ns = 1_000_000_000 * (index + 1);
            let result = &mut launch.results[0];
            (result.cell, result.index) = (cell.id.clone(), index);
            for series in &mut result.series {
                series.series = [20_000 + step_ns * index, 20_001 + step_ns * index]
                    .into_iter()
                    .collect();
            }
            run.launches.push(launch);
        }
        run.cells.push(cell);
        run
    }

    #[test]
    fn a_reference_that_rises_is_told() {
        let run = run(400, 10);
        let found = drifting(&Index::new(&run));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].network.as_deref(), Some("wire"));
        assert!(
            found[0].sentence.contains("rose by 16 %"),
            "{}",
            found[0].sentence
        );
    }

    #[test]
    fn a_steady_reference_is_not_told() {
        // No change; a change that does not matter; too few launches to tell.
        for run in [run(0, 10), run(20, 10), run(400, 7)] {
            assert!(drifting(&Index::new(&run)).is_empty());
        }
    }

    #[test]
    fn a_reference_is_no_result() {
        let run = run(400, 10);
        assert!(
            Index::new(&run)
                .rows
                .iter()
                .all(|row| row.cell != "reference")
        );
        assert!(run.rows().iter().any(|row| row.cell == "reference"));
    }
}
