//! Commands that answer one question of the whole run: measured, kept and resumed as any other, their answer worked out of the run alone.
//!
//! Checked: `tests/lab_contend.rs`, `tests/lab_stage.rs`.

use super::Task;
use crate::campaign::Silent;
use crate::document::Command;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::source::Searches;
use sonde_measure::Run;
use sonde_sys::tell;
use std::ops::ControlFlow;

/// An answer that follows from the whole run.
pub trait Answer: Sized {
    /// Of a run of this plan, or of what it has so far.
    ///
    /// # Errors
    /// The plan is another command's.
    fn of(run: &Run, plan: &Plan) -> Result<Self, Failure>;

    /// As it stands in a document.
    fn command(&self) -> Command<'_>;

    /// Prints it for people.
    fn print(&self);

    /// What is said where the run has no answer; `None` where it has one.
    fn lack(&self, outcome: &Outcome) -> Option<&'static str>;
}

impl Task {
    /// Measures, and answers; the exit code.
    ///
    /// # Errors
    /// What cannot be measured, or kept.
    pub fn answer<A: Answer>(mut self) -> Result<i32, Failure> {
        if self.is_only_printed() {
            return self.print();
        }
        let measured = match self.measured(self.observer(Silent), &mut Searches)? {
            ControlFlow::Break(code) => return Ok(code),
            ControlFlow::Continue(measured) => measured,
        };
        let run = &measured.run;
        if let Some(reason) = self.plan.all_skipped(run) {
            return Err(Failure::cannot(reason));
        }
        let outcome = Outcome::of(run, self.strict);
        let answer = A::of(run, &self.plan)?;
        self.show(&measured, &outcome, answer.command(), || answer.print())?;
        self.say_kept(&measured)?;
        if let Some(lack) = answer.lack(&outcome) {
            tell!("sonde: {lack}");
        }
        self.ended(run, outcome)
    }
}
