//! The trace of a kernel's last run, in the file that was asked for.
//!
//! Model:   rank 0 gathers what all ranks wrote down, on its own clock, and gives it with its report, bounded; here it becomes
//!          what Chrome and Perfetto read, or a table. What had no room is told.
//! Checked: `endings_name_the_form`; `tests/lab_npb_trace.rs`.

use crate::failure::Failure;
use sonde_message::timeline::Trace;
use sonde_sys::tell;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Chrome,
    Table,
}

/// A file for a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFile {
    path: PathBuf,
    form: Form,
}

impl TraceFile {
    /// Its form is told by its ending.
    ///
    /// # Errors
    /// It has another ending; there is no such directory.
    pub fn new(path: &Path) -> Result<Self, Failure> {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let form = match ending {
            Some("json") => Form::Chrome,
            Some("csv") => Form::Table,
            _ => {
                return Err(Failure::usage(format!(
                    "a trace is written for Chrome and Perfetto or as a table, and `{}` says neither: end its name in .json or .csv",
                    path.display()
                )));
            }
        };
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
            return Err(Failure::usage(format!(
                "there is no directory {} for the trace: make it first",
                directory.display()
            )));
        }
        Ok(Self {
            path: path.into(),
            form,
        })
    }

    /// Writes what a launch gave.
    ///
    /// # Errors
    /// It is not a trace; the file cannot be written.
    pub fn write(&self, packed: &str) -> Result<(), Failure> {
        let shown = self.path.display();
        let trace = Trace::unpacked(packed).map_err(Failure::cannot)?;
        let cannot = |error: std::io::Error| {
            Failure::unwritten(format!("cannot write the trace {shown}: {error}"))
        };
        let file = BufWriter::new(File::create(&self.path).map_err(cannot)?);
        match self.form {
            Form::Chrome => trace.write_chrome(file),
            Form::Table => trace.write_csv(file),
        }
        .map_err(cannot)?;
        let recordings = trace.ranks.iter().map(|rank| &rank.recording);
        let kept: usize = recordings.clone().map(|one| one.events.len()).sum();
        let dropped: u64 = recordings.map(|one| one.dropped).sum();
        let where_to = match self.form {
            Form::Chrome => "; open it in https://ui.perfetto.dev",
            Form::Table => "",
        };
        tell!(
            "sonde: {shown} has {kept} events of {} ranks, of the last run{where_to}",
            trace.ranks.len()
        );
        if dropped > 0 {
            tell!(
                "sonde: {dropped} later events had no room in the trace: take a smaller size, or fewer iterations, to have a whole run"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_name_the_form() {
        let form = |name: &str| TraceFile::new(Path::new(name)).map(|file| file.form);
        assert_eq!(form("a.json").unwrap(), Form::Chrome);
        assert_eq!(form("./a.csv").unwrap(), Form::Table);
        for (name, said) in [
            ("trace", ".json or .csv"),
            ("trace.html", ".json or .csv"),
            ("no-such-directory/a.json", "make it first"),
        ] {
            let error = form(name).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
