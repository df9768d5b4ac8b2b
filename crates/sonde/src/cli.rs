//! The arguments of the command, and which task each becomes.

use crate::failure::Failure;
use crate::{lab, testbed};
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// How well a network carries distributed computing, and where it is lost.
#[derive(Debug, Parser)]
#[command(name = "sonde", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    task: Task,
}

const EXAMPLES: &str = "Examples:
  sonde lab list                                    the networks that can be had
  sonde lab run --network atm-oc3c --hosts 4 -- ping -c 3 h2
  sonde lab shell --network wan-100m-20ms           a shell on h1; `sonde lab exec h2 -- PROGRAM` inside it";

#[derive(Debug, Subcommand)]
enum Task {
    /// An emulated cluster on this machine: any program over any network.
    #[command(subcommand)]
    Lab(LabTask),
    /// Print the completion script of a shell.
    #[command(after_help = "Example:\n  sonde completions bash > ~/.local/share/bash-completion/completions/sonde")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder.
    #[command(after_help = "Example:\n  sonde man ~/.local/share/man/man1")]
    Man {
        /// The folder; it is made if it is not there.
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum LabTask {
    /// Run a program on h1 of a fresh lab; its exit code is the command's.
    #[command(after_help = "Examples:
  sonde lab run --network atm-oc3c:vc=svc -- ping -c 3 h2
  sonde lab run --network ethernet-100 --hosts 2 -- sh -c 'sonde lab exec --detach h2 -- iperf3 -s -1; sleep 1; iperf3 -c h2'
  sonde lab run --network wire:delay=1ms --pcap h2=/tmp/h2.pcap -- ping -c 3 h2")]
    Run {
        #[command(flatten)]
        lab: testbed::LabOptions,
        #[command(flatten)]
        program: ProgramOptions,
        /// Run it on every host, and wait for all.
        #[arg(long)]
        each: bool,
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Open a shell on h1 of a fresh lab.
    Shell {
        #[command(flatten)]
        lab: testbed::LabOptions,
        #[command(flatten)]
        program: ProgramOptions,
    },
    /// Run a program on another host, from inside a lab.
    #[command(after_help = "Example, in a lab:\n  sonde lab exec h2 -- iperf3 -s -D")]
    Exec {
        /// The host.
        #[arg(value_parser = testbed::host_number)]
        host: u16,
        /// Go on when this command ends.
        #[arg(long)]
        detach: bool,
        /// Run it as the lab's root.
        #[arg(long)]
        root: bool,
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// The networks of the catalogue, with their ceilings.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// These networks instead, with knobs, or files of your own.
        #[arg(long = "network", value_name = "NAME[:KNOB=VALUE]...")]
        networks: Vec<String>,
    },
}

/// How the programs of a lab are run.
#[derive(Debug, Args)]
pub struct ProgramOptions {
    /// Run as the lab's root, who may change the host's network.
    #[arg(long)]
    pub root: bool,
    /// Print what the emulation itself did as JSON to this file, and its verdict.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Runs the task; the exit code.
pub fn run(arguments: Arguments) -> Result<i32, Failure> {
    match arguments.task {
        Task::Lab(LabTask::Run { lab, program, each, command }) => lab::run(&lab, &program, each, &command).map_err(Failure::passing),
        Task::Lab(LabTask::Shell { lab, program }) => lab::shell(&lab, &program).map_err(Failure::passing),
        Task::Lab(LabTask::Exec { host, detach, root, command }) => lab::exec(host, detach, root, &command).map_err(Failure::passing),
        Task::Lab(LabTask::List { .. }) => Ok(0),
        Task::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "sonde", &mut std::io::stdout());
            Ok(0)
        }
        Task::Man { folder } => {
            std::fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(Arguments::command(), &folder)).map_err(|e| Failure::cannot(format!("cannot write man pages into {}: {e}", folder.display())))?;
            Ok(0)
        }
    }
}
