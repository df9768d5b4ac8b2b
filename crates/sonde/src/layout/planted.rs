//! Runs of a plan with planted figures, for tests of what is worked out of runs.

use super::blocks;
use super::tests::net;
use crate::plan::Plan;
use sonde_measure::{CellRecord, CellResult, LaunchRecord, Measurement, Phase, Quantity, Run};

/// A run of a plan on these networks, with so many launches of each cell, of which `of` says the figure; where it says none, h2 is gone.
pub fn planted(
    plan: &str,
    networks: &[&str],
    launches: u64,
    of: impl Fn(&CellRecord, u64) -> Option<(Quantity, u64)>,
) -> Run {
    let nets: Vec<_> = networks.iter().map(|name| net(name)).collect();
    let blocks = blocks(&Plan::parse(plan).unwrap(), &nets).unwrap();
    let cells = blocks.iter().flat_map(|block| block.cells.clone());
    let mut run = Run {
        head: crate::measure::begun(plan.into(), 1).unwrap(),
        hosts: Vec::new(),
        networks: Vec::new(),
        launches: Vec::new(),
        events: Vec::new(),
        warnings: Vec::new(),
        cells: cells.collect(),
    };
    let of = |(cell, index): (&CellRecord, u64)| {
        let figure = of(cell, index);
        let measured = |(quantity, value)| Measurement {
            touched: None,
            quantity,
            phase: Phase::Warm,
            step: None,
            series: std::iter::once(value).collect(),
            reason: None,
        };
        LaunchRecord {
            results: vec![CellResult {
                cell: cell.id.clone(),
                index,
                failure: figure.is_none().then(|| "h2 is gone".into()),
                series: figure.map(measured).into_iter().collect(),
            }],
            ..LaunchRecord::default()
        }
    };
    let all = run.cells.iter();
    let all = all.flat_map(|cell| (0..launches).map(move |index| (cell, index)));
    run.launches = all.map(of).collect();
    run
}
