//! Runs of what another room has: made one after the other by all ranks, watched, and told by rank 0.
//!
//! Checked: `runs_become_rows` of [`super::npb`], `a_replay_becomes_rows` of [`super::messages`].

use serde::Serialize;
use serde::de::DeserializeOwned;
use sonde_measure::{Measurement, Phase, Quantity};
use sonde_message::{Comm, Messenger};
use sonde_sys::clock::monotonic_ns;

use super::{Job, Marks, Report, hear, nothing_measured, report, tell};
use crate::begin::await_begin;
use crate::talk::{Measured, Served, SizeMeasured, SizeServed};
use crate::watch::Watch;
use crate::{Error, Result};

/// The messages of a run have lengths of their own.
const NO_SIZE: u64 = 0;

impl Job {
    /// Makes `runs` runs, or as many as a span has, by `once`, which all ranks call with whether it is the last run, and which gives what all had of it at
    /// rank 0; there `put` puts them into what was measured.
    pub(super) fn in_runs<T>(
        &self,
        messenger: &mut dyn Messenger,
        marks: Marks,
        runs: u64,
        mut once: impl FnMut(&mut dyn Messenger, bool) -> Result<Option<T>>,
        put: impl FnOnce(Vec<T>, &mut Measured),
    ) -> Result<Option<Report>> {
        let (mut measured, mut served) = (nothing_measured(), Served::default());
        let end_ns = self.begun(messenger)?;
        let watch = Watch::begin_of(true)?;
        let (mut ended, mut made) = (Vec::new(), 0);
        loop {
            made += 1;
            let is_last = end_ns.is_none() && made == runs;
            ended.extend(once(messenger, is_last)?);
            let goes_on = match end_ns {
                Some(end_ns) => agreed(messenger, || Ok(monotonic_ns() < end_ns))?,
                None => !is_last,
            };
            if !goes_on {
                break;
            }
        }
        served.sizes.push(SizeServed {
            messages: made,
            ..SizeServed::default()
        });
        if messenger.rank(Comm::WORLD) == 0 {
            watch.end(&mut measured.interference, None)?;
            put(ended, &mut measured);
        } else {
            watch.end(&mut served.interference, None)?;
        }
        report::gather(messenger, measured, served, marks)
    }
}

impl Job {
    /// When no further run is begun, where a span says so: all ranks wait until it begins. It is of rank 0's clock.
    fn begun(&self, messenger: &mut dyn Messenger) -> Result<Option<u64>> {
        let Some(during) = self.during else {
            return Ok(None);
        };
        let end_ns = during.end_ns().ok_or(Error::Unmeasurable {
            what: "the span in which a kernel is to run has no begin".into(),
            remedy: "let the orchestrator agree on one",
        })?;
        agreed(messenger, || await_begin(during.begin_ns, 0))?;
        Ok(Some(end_ns))
    }
}

/// What rank 0 finds, at all ranks.
fn agreed<T: Serialize + DeserializeOwned>(
    messenger: &mut dyn Messenger,
    find: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if messenger.rank(Comm::WORLD) > 0 {
        return hear(messenger, 0);
    }
    let found = find()?;
    for other in 1..messenger.size(Comm::WORLD) {
        tell(messenger, other, &found)?;
    }
    Ok(found)
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
        touched: None,
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
        moments: None,
        size_bytes: NO_SIZE,
        measurements,
        round_trips: runs as u64,
        sent: None,
    }
}
