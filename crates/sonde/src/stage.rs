//! `sonde stage`: what share of a job's time goes into moving its files, before and after it.
//!
//! Model:   a plan of files read and written, of whole messages, and of a kernel. The shares are worked out of the run alone.
//! Checked: `tests/lab_stage.rs`.

pub mod share;

use crate::document::Command;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::Answer;
use crate::output::{self, say};
use crate::plan::Plan;
use share::Staging;
use sonde_measure::Run;

impl Answer for Staging {
    fn of(run: &Run, plan: &Plan) -> Result<Self, Failure> {
        Self::of(run, plan)
    }

    fn command(&self) -> Command<'_> {
        Command::Stage(self)
    }

    fn print(&self) {
        say!("{}", self.text(output::width()));
        self.reasons().iter().for_each(|why| output::paragraph(why));
    }

    fn lack(&self, _: &Outcome) -> Option<&'static str> {
        let has_none = self.shares.iter().all(|one| one.share.is_none());
        has_none.then_some("no job has all of its parts")
    }
}
