//! Runs of what another room has: made one after the other by all ranks, watched, and told by rank 0.
//!
//! Checked: `runs_become_rows` of [`super::npb`], `a_replay_becomes_rows` of [`super::messages`].

use sonde_measure::{Measurement, Phase, Quantity};
use sonde_message::{Comm, Messenger};

use super::{Job, Marks, Report, nothing_measured, report};
use crate::Result;
use crate::talk::{Measured, Served, SizeMeasured, SizeServed};
use crate::watch::Watch;

/// The messages of a run have lengths of their own.
const NO_SIZE: u64 = 0;

impl Job {
    /// Makes `runs` runs by `once`, which all ranks call with whether it is the last run, and which gives what all had of it at
    /// rank 0; there `tell` puts them into what was measured.
    pub(super) fn in_runs<T>(
        &self,
        messenger: &mut dyn Messenger,
        marks: Marks,
        runs: u64,
        mut once: impl FnMut(&mut dyn Messenger, bool) -> Result<Option<T>>,
        tell: impl FnOnce(Vec<T>, &mut Measured),
    ) -> Result<Option<Report>> {
        let (mut measured, mut served) = (nothing_measured(), Served::default());
        let watch = Watch::begin_of(true)?;
        let mut ended = Vec::new();
        for run in 1..=runs {
            ended.extend(once(messenger, run == runs)?);
        }
        served.sizes.push(SizeServed {
            messages: runs,
            ..SizeServed::default()
        });
        if messenger.rank(Comm::WORLD) == 0 {
            watch.end(&mut measured.interference, None)?;
            tell(ended, &mut measured);
        } else {
            watch.end(&mut served.interference, None)?;
        }
        report::gather(messenger, measured, served, marks)
    }
}

/// A quantity of all runs; why there is nothing of it, where there is nothing.
pub(super) fn row<R>(
    runs: &[R],
    quantity: Quantity,
    of: impl Fn(&R) -> Option<u64>,
) -> Measurement {
    let series: sonde_stats::Series = runs.iter().filter_map(of).collect();
    let none = "no message was sent in the timed part".to_string();
    Measurement {
        quantity,
        phase: Phase::Warm,
        step: None,
        reason: series.is_empty().then_some(none),
        series,
    }
}

/// A value as a series of the quantity holds it.
pub(super) fn in_parts(value: f64, quantity: Quantity) -> u64 {
    (value * quantity.per_unit() as f64).round().max(0.0) as u64
}

/// The rows of so many runs, as one size.
pub(super) fn size(measurements: Vec<Measurement>, runs: usize) -> SizeMeasured {
    SizeMeasured {
        size_bytes: NO_SIZE,
        measurements,
        round_trips: runs as u64,
        sent: None,
    }
}
