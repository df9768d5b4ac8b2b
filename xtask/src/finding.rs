//! What a rule found wrong, where, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    file: PathBuf,
    line: usize,
    what: String,
    remedy: String,
}

impl Finding {
    /// A finding in `file` (relative to the root) at `line`, counted from 1.
    pub fn new(
        file: &Path,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Finding {
            file: file.to_path_buf(),
            line,
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// The line it points at, counted from 1.
    #[cfg(test)]
    pub fn line(&self) -> usize {
        self.line
    }

    /// What is wrong.
    #[cfg(test)]
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}; {}",
            self.file.display(),
            self.line,
            self.what,
            self.remedy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_place_fault_remedy() {
        let finding = Finding::new(
            Path::new("crates/link/src/atm.rs"),
            7,
            "no module head",
            "write one",
        );
        assert_eq!(
            finding.to_string(),
            "crates/link/src/atm.rs:7: no module head; write one"
        );
    }
}
