//! `sonde stage`: what share of a job's time goes into moving its files, before and after it.
//!
//! Model:   a plan of files read and written, of whole messages, and of a kernel. It is measured, kept and resumed as any other; the
//!          shares are worked out of the run alone.
//! Checked: `tests/lab_stage.rs`.

pub mod share;

use crate::document::Command;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::{self, Measured};
use crate::output::{self, say};
use crate::source::Searches;
use share::Staging;
use sonde_sys::tell;
use std::ops::ControlFlow;

/// What to measure.
pub struct Task {
    /// The plan, of moves of files and of the job.
    pub measurement: measure::Task,
}

impl Task {
    /// Does it; the exit code.
    ///
    /// # Errors
    /// What cannot be measured, or kept.
    pub fn run(mut self) -> Result<i32, Failure> {
        if self.measurement.is_only_printed() {
            return self.measurement.print();
        }
        let observer = self.measurement.observer(crate::campaign::Silent);
        match self.measurement.measured(observer, &mut Searches)? {
            ControlFlow::Break(code) => Ok(code),
            ControlFlow::Continue(measured) => self.finish(&measured),
        }
    }

    fn finish(&self, measured: &Measured) -> Result<i32, Failure> {
        let run = &measured.run;
        if let Some(reason) = self.measurement.plan.all_skipped(run) {
            return Err(Failure::cannot(reason));
        }
        let outcome = Outcome::of(run, self.measurement.strict);
        let found = Staging::of(run, &self.measurement.plan)?;
        let print = || {
            say!("{}", found.text(output::width()));
            let reasons = found.reasons();
            reasons.iter().for_each(|why| output::paragraph(why));
        };
        self.measurement
            .show(measured, &outcome, Command::Stage(&found), print)?;
        self.measurement.say_kept(measured)?;
        if found.shares.iter().all(|one| one.share.is_none()) {
            tell!("sonde: no job has all of its parts");
        }
        self.measurement.ended(run, outcome)
    }
}
