//! Who is told what happens in a campaign: a stream of events, a printer, or nobody.
//!
//! Checked: `tests/lab_nets.rs`, `tests/lab_npb.rs`.

use crate::failure::Failure;
use sonde_measure::Run;

/// Who is told what happens in a campaign, while it happens.
pub trait Observer {
    /// The run begins, or goes on.
    ///
    /// # Errors
    /// It could not be said.
    fn began(&mut self, _: &Run) -> Result<(), Failure> {
        Ok(())
    }

    /// A launch ended and is kept: the last one of the run.
    fn launched(&mut self, _: &Run) {}
}

/// Who has nothing to say.
pub struct Silent;

impl Observer for Silent {}
