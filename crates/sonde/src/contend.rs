//! `sonde contend`: several workloads at once, and who slows whom.
//!
//! Model:   a plan whose loads are sets of its probes: each alone, each pair, and all of them. It is measured, kept and resumed as any
//!          other; the matrix is worked out of the run alone.
//! Checked: `tests/lab_contend.rs`.

mod matrix;
pub mod workload;

use crate::document::Command;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::{self, Measured};
use crate::output::{self, say};
use crate::source::Searches;
use sonde_report::Contention;
use sonde_sys::tell;
use std::ops::ControlFlow;

/// What to measure.
pub struct Task {
    /// The plan, of probes in sets.
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
        let found = Contention::of(run);
        // Tables have their width; sentences are cut to it.
        let print = |text: &str| match text.contains('\n') {
            true => say!("{text}"),
            false => output::paragraph(text),
        };
        let print = || matrix::print(&found, output::width(), print);
        self.measurement
            .show(measured, &outcome, Command::Contend(&found), print)?;
        self.measurement.say_kept(measured)?;
        if !outcome.is_measured {
            tell!("sonde: no set came to its end");
        }
        self.measurement.ended(run, outcome)
    }
}
