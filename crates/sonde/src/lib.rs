//! The command `sonde`: a library, so that the static program, the one linked for tests and the unit tests are not each all of it.
//!
//! Model:   arguments are lowered to a task, the task runs, its result goes to standard output and all else to standard error.
//!          Exit codes: 0 measured; 1 measured, but something asked for was not met; 2 could not measure; 64 usage. Commands
//!          that pass a program on give the program's own code, or 125 for a failure of their own, 127 for no such program.
//! Checked: `tests/` of this crate, which run the built command.
#![forbid(unsafe_code)]

mod allocation;
mod campaign;
mod check;
mod cli;
mod doctor;
mod events;
mod failure;
mod kernel;
mod knobs;
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
use std::process::ExitCode;

/// Runs the command with the arguments of this process; its exit code.
pub fn main() -> ExitCode {
    // A part of a lab and a worker of an agent are fresh starts of this program; a lab's must not have a second thread when it unshares.
    if let Some(code) = sonde_lab::entry().or_else(sonde_probe::agent::entry) {
        return exit(code);
    }
    end_where_nobody_reads();
    let arguments = match cli::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() {
                failure::USAGE
            } else {
                0
            };
            // Where even the message cannot be written there is nothing left to do.
            drop(error.print());
            return exit(code);
        }
    };
    match cli::run(arguments) {
        Ok(code) => exit(code),
        Err(failure) => {
            eprintln!("sonde: {failure}");
            exit(failure.code())
        }
    }
}

/// A reader of standard output that has had enough, as `head`, ends the command without a word.
fn end_where_nobody_reads() {
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload().downcast_ref::<String>();
        if said.is_some_and(|said| {
            said.starts_with("failed printing to stdout") && said.contains("Broken pipe")
        }) {
            std::process::exit(0);
        }
        otherwise(panic);
    }));
}

fn exit(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
