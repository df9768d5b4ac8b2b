//! Why a command could not do what it was asked, and the exit code that says so.

use sonde_lab::{ExecError, LabError};
use std::fmt;

/// Measured, but something asked for was not met.
pub const UNMET: i32 = 1;
/// Could not measure.
pub const FAILED: i32 = 2;
/// The command was not understood.
pub const USAGE: i32 = 64;
/// A command that passes a program on failed by itself.
pub const PASSING: i32 = 125;

/// A failure with its exit code.
#[derive(Debug)]
pub struct Failure {
    code: i32,
    text: String,
}

impl Failure {
    /// The command was not understood: what, and the remedy.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self {
            code: USAGE,
            text: text.to_string(),
        }
    }

    /// It could not be measured: what, and the remedy.
    pub fn cannot(text: impl fmt::Display) -> Self {
        Self {
            code: FAILED,
            text: text.to_string(),
        }
    }

    /// The same failure in a command that passes a program on. What was not understood stays so.
    pub fn passing(mut self) -> Self {
        if self.code == FAILED {
            self.code = PASSING;
        }
        self
    }

    /// Its exit code.
    pub fn code(&self) -> i32 {
        self.code
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
        Self {
            code: error.code(),
            text: error.to_string(),
        }
    }
}

impl From<sonde_sys::Error> for Failure {
    fn from(error: sonde_sys::Error) -> Self {
        Self::cannot(error)
    }
}
