//! Why a command could not do what it was asked, and how it ends.

use crate::exit::{self, Ending};
use sonde_lab::{ExecError, LabError};
use std::fmt;

/// A failure, and how the command ends by it.
#[derive(Debug)]
pub struct Failure {
    ending: Ending,
    text: String,
}

impl Failure {
    fn new(ending: Ending, text: impl fmt::Display) -> Self {
        Self {
            ending,
            text: text.to_string(),
        }
    }

    /// The command was not understood: what, and the remedy.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self::new(Ending::Usage, text)
    }

    /// It could not be measured: what, and the remedy.
    pub fn cannot(text: impl fmt::Display) -> Self {
        Self::new(Ending::Nothing, text)
    }

    /// Output cannot be written: which, and why.
    pub fn unwritten(text: impl fmt::Display) -> Self {
        Self::new(Ending::Unwritten, text)
    }

    /// The same failure in a command that passes a program on. What was not understood stays so.
    pub fn passing(mut self) -> Self {
        if matches!(self.ending, Ending::Nothing | Ending::Unwritten) {
            self.ending = Ending::Passing;
        }
        self
    }

    /// Its exit code.
    pub fn code(&self) -> i32 {
        exit::code(&self.ending)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Hosts { .. } | LabError::NoSuchHost { .. } => Self::usage(error),
            LabError::Exec(exec) => exec.into(),
            error => Self::cannot(error),
        }
    }
}

impl From<ExecError> for Failure {
    fn from(error: ExecError) -> Self {
        Self::new(Ending::Program(error.code()), error)
    }
}

impl From<sonde_sys::Error> for Failure {
    fn from(error: sonde_sys::Error) -> Self {
        Self::cannot(error)
    }
}
