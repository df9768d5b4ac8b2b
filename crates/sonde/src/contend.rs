//! `sonde contend`: several workloads at once, and who slows whom.
//!
//! Model:   a plan whose loads are sets of its probes: each alone, each pair, and all of them. The matrix is worked out of the run alone.
//! Checked: `tests/lab_contend.rs`.

mod matrix;
pub mod workload;

use crate::document::Command;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::Answer;
use crate::output::{self, say};
use crate::plan::Plan;
use sonde_measure::Run;
use sonde_report::Contention;

impl Answer for Contention {
    fn of(run: &Run, _: &Plan) -> Result<Self, Failure> {
        Ok(Self::of(run))
    }

    fn command(&self) -> Command<'_> {
        Command::Contend(self)
    }

    fn print(&self) {
        // Tables have their width; sentences are cut to it.
        let print = |text: &str| match text.contains('\n') {
            true => say!("{text}"),
            false => output::paragraph(text),
        };
        matrix::print(self, output::width(), print);
    }

    fn lack(&self, outcome: &Outcome) -> Option<&'static str> {
        (!outcome.is_measured).then_some("no set came to its end")
    }
}
