//! How a run begins, and what each command that keeps one says of it beside its results.
//!
//! Checked: `a_run_is_named_by_its_begin`; the end-to-end tests of the commands.

use super::{Measured, Task};
use crate::campaign::{Observer, Silent, unix_ns};
use crate::document::{self, Command};
use crate::events::{self, Event};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::output::{self, Print};
use sonde_measure::{EventRecord, Run, RunHead, RunState};
use sonde_record::NAMED;
use sonde_sys::tell;
use std::fmt::Display;
use std::io::Read;
use std::path::Path;

/// The head of a run that begins now; `plan` is empty where there is none, and the run then cannot be resumed.
///
/// # Errors
/// The kernel gives no random number for its name.
pub fn begun(plan: String, seed: u64) -> Result<RunHead, Failure> {
    let began_unix_ns = unix_ns();
    Ok(RunHead {
        id: run_id(began_unix_ns)?,
        command: command_line(),
        plan,
        seed,
        version: env!("CARGO_PKG_VERSION").into(),
        began_unix_ns,
        ended_unix_ns: None,
        state: RunState::Open,
    })
}

/// The events with which a run begins: what it is called, where it is called anything.
pub fn named(name: Option<&str>) -> Vec<EventRecord> {
    let event = |name: &str| EventRecord {
        at_unix_ns: unix_ns(),
        kind: NAMED.into(),
        text: name.into(),
    };
    name.map(event).into_iter().collect()
}

/// The command as it was given.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    words.join(" ")
}

/// The time in UTC and six random digits.
fn run_id(unix_ns: u64) -> Result<String, Failure> {
    let mut random = [0; 3];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut random))
        .map_err(|e| {
            Failure::cannot(format!("cannot read /dev/urandom for the run's name: {e}"))
        })?;
    let time = sonde_report::utc(unix_ns)
        .replace(['-', ':'], "")
        .replace(' ', "T");
    let [a, b, c] = random;
    Ok(format!("{time}Z-{a:02x}{b:02x}{c:02x}"))
}

/// Says in which store a run is.
pub fn say_where(run: &str, out: &Path) {
    tell!("sonde: run {run} is in {}", out.join("sonde.db").display());
}

/// Some of a run may be missing in the store.
pub fn not_kept(trouble: &dyn Display) -> Failure {
    Failure::unwritten(format!(
        "{trouble}; the results until then are printed above and may be missing in the store"
    ))
}

impl Task {
    /// Who is told of each launch: the stream of events where it was asked for, else `printer` where results are text.
    pub fn observer(&self, printer: impl Observer + 'static) -> Box<dyn Observer> {
        match (self.json_stream, self.print) {
            (true, _) => Box::new(events::Stream),
            (_, Print::Text) => Box::new(printer),
            (_, Print::Json | Print::Csv) => Box::new(Silent),
        }
    }

    /// Prints results: as JSON where it was asked for, by `print` where they are text; the stream of events had them.
    ///
    /// # Errors
    /// They are no JSON.
    pub fn show(
        &self,
        measured: &Measured,
        outcome: &Outcome,
        command: Command<'_>,
        print: impl FnOnce(),
    ) -> Result<(), Failure> {
        if self.json_stream {
            return Ok(());
        }
        match self.print {
            Print::Json => {
                let document = document::of_run(command, &measured.run, outcome.judgement());
                document::print(&document)
            }
            Print::Csv => output::rows(&measured.run),
            Print::Text => {
                print();
                Ok(())
            }
        }
    }

    /// Says where the run is.
    ///
    /// # Errors
    /// Why some of it may be missing there.
    pub fn say_kept(&self, measured: &Measured) -> Result<(), Failure> {
        if let Some(trouble) = &measured.trouble {
            return Err(not_kept(trouble));
        }
        say_where(&measured.run.head.id, &self.out);
        Ok(())
    }

    /// Writes and opens the run's page where that is wanted, and ends the stream of events where there is one; the code.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn ended(&self, run: &Run, outcome: Outcome) -> Result<i32, Failure> {
        self.page.serve(run, &self.out)?;
        let code = outcome.code();
        if self.json_stream {
            let (run, missing) = (run.head.id.as_str(), run.missing().len());
            Event::End { run, missing, code }.say()?;
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_by_its_begin() {
        let id = run_id(1_795_235_582_000_000_000).unwrap();
        assert!(
            id.starts_with("20261121T043302Z-") && id.len() == 23,
            "{id}"
        );
    }
}
