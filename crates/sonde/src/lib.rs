//! The command `sonde`: a library, so that the static program, the one linked for tests and the unit tests are not each all of it.
//!
//! Model:   arguments are lowered to a task, the task runs, its result goes to standard output and all else to standard error.
//!          Exit codes: [`exit`].
//! Checked: `tests/` of this crate, which run the built command.
#![forbid(unsafe_code)]
// What is told goes by `sonde_sys::tell!`, results by `output::say!`: neither panics.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod accept;
mod allocation;
mod allowance;
mod any_path;
mod campaign;
mod check;
mod cli;
mod compare_sites;
mod contend;
mod defect;
mod doctor;
mod document;
mod downtime;
mod events;
mod exit;
mod failure;
mod flows;
#[doc(hidden)]
pub mod fuzz;
mod history;
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
mod output;
mod pattern;
mod place;
mod plan;
mod preflight;
mod quick_link;
mod replay;
mod report;
mod require;
mod serve;
mod shown;
mod sites;
mod sound;
mod source;
mod stage;
mod suits;
mod testbed;
mod tune;
mod verify;
mod wanted;

use clap::FromArgMatches;
use exit::Ending;
use sonde_sys::tell;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A file has grown beyond what it may (signal(7)).
const SIGXFSZ: i32 = 25;

/// Runs the command with the arguments of this process; its exit code.
pub fn main() -> ExitCode {
    defect::watch();
    bound_files_by_errors();
    // A part of a lab and a worker of an agent are fresh starts of this program; a lab's must not have a second thread when it unshares.
    let files = Some(&sonde_workload::files::SERVICE);
    if let Some(code) = sonde_lab::entry().or_else(|| sonde_probe::agent::entry(files)) {
        return ended(code);
    }
    if cli::answered() {
        return ExitCode::SUCCESS;
    }
    let matches = cli::command().try_get_matches();
    let arguments = matches.and_then(|matches| cli::Arguments::from_arg_matches(&matches));
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(error) => {
            let words: Vec<_> = std::env::args_os().collect();
            let error = cli::explained(error, &cli::command(), &words);
            if error.use_stderr() {
                // Where even the message cannot be written there is nothing left to do.
                drop(error.print());
                return ended(exit::code(&Ending::Usage));
            }
            cli::print_help(&error.render());
            return ended(output::code(0));
        }
    };
    match cli::run(arguments) {
        Ok(code) => ended(output::code(code)),
        Err(failure) => {
            tell!("sonde: {failure}");
            ended(failure.code())
        }
    }
}

/// A write beyond the limit of a file's size is an error, EFBIG, that who writes tells, and not the end of this process. The signal has
/// a handler that does nothing: ignored, it would be so in all programs that are started (execve(2)).
fn bound_files_by_errors() {
    let came = Arc::new(AtomicBool::new(false));
    // Refused for no signal that can be handled.
    drop(signal_hook::flag::register(SIGXFSZ, came));
}

fn ended(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
