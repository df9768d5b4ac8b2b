//! The command `sonde`: a library, so that the static program, the one linked for tests and the unit tests are not each all of it.
//!
//! Model:   arguments are lowered to a task, the task runs, its result goes to standard output and all else to standard error.
//!          Exit codes: [`exit`].
//! Checked: `tests/` of this crate, which run the built command.
#![forbid(unsafe_code)]

mod allocation;
mod campaign;
mod check;
mod cli;
mod doctor;
mod document;
mod events;
mod exit;
mod failure;
mod kernel;
mod lab;
mod layout;
mod library;
mod limit;
mod load;
mod measure;
mod messages;
mod model;
mod networks;
mod npb;
mod pattern;
mod place;
mod plan;
mod replay;
mod report;
mod shown;
mod sound;
mod testbed;
mod tune;
mod wanted;
mod way;

use clap::Parser;
use exit::Ending;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// Runs the command with the arguments of this process; its exit code.
pub fn main() -> ExitCode {
    // A part of a lab and a worker of an agent are fresh starts of this program; a lab's must not have a second thread when it unshares.
    if let Some(code) = sonde_lab::entry().or_else(sonde_probe::agent::entry) {
        return ended(code);
    }
    end_where_nobody_reads();
    let arguments = match cli::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() {
                exit::code(&Ending::Usage)
            } else {
                0
            };
            // Where even the message cannot be written there is nothing left to do.
            drop(error.print());
            return ended(code);
        }
    };
    match std::panic::catch_unwind(AssertUnwindSafe(|| cli::run(arguments))) {
        Ok(Ok(code)) => ended(code),
        Ok(Err(failure)) => {
            let code = failure.code();
            if code != exit::code(&Ending::Unread) {
                eprintln!("sonde: {failure}");
            }
            ended(code)
        }
        Err(_) => {
            eprintln!("sonde: this is a defect of sonde: please report what stands above");
            ended(exit::code(&Ending::Defect))
        }
    }
}

/// A reader of standard output that has had enough, as `head`, ends the command without a word; where it cannot be written for
/// another reason, that is said.
fn end_where_nobody_reads() {
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload().downcast_ref::<String>();
        let why = said.and_then(|said| said.strip_prefix("failed printing to stdout: "));
        match why {
            Some(why) if why.contains("Broken pipe") => {
                std::process::exit(exit::code(&Ending::Unread));
            }
            Some(why) => {
                eprintln!("sonde: cannot write to standard output: {why}");
                std::process::exit(exit::code(&Ending::Unwritten));
            }
            None => otherwise(panic),
        }
    }));
}

fn ended(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
