//! The arguments of the command, and which task each becomes.

use crate::assess::Assessment;
use crate::failure::Failure;
use crate::{check, lab, networks, replay, testbed};
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
  sonde assess                                      how TCP and UDP fare over five networks of an emulated cluster
  sonde lab list                                    the networks that can be had
  sonde lab run --network atm-oc3c --hosts 4 -- ping -c 3 h2
  sonde lab shell --network wan-100m-20ms           a shell on h1; `sonde lab exec h2 -- PROGRAM` inside it";

#[derive(Debug, Subcommand)]
enum Task {
    /// The main job: how TCP and UDP fare over several networks, beside what each allows.
    #[command(after_help = "Examples:
  sonde assess --quick
  sonde assess --network atm-oc3c:vc=svc --network wan-100m-20ms --launches 10
  sonde assess --json > assessment.json")]
    Assess {
        /// A network; may be given several times.
        #[arg(long = "network", value_name = "NAME[:KNOB=VALUE]...")]
        networks: Vec<String>,
        #[command(flatten)]
        hosts: testbed::HostOptions,
        #[command(flatten)]
        effort: Effort,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Exit with 1 where the emulation was not true to the model.
        #[arg(long)]
        strict: bool,
        /// Print what would be measured, and how long it takes.
        #[arg(long)]
        dry_run: bool,
    },
    /// An emulated cluster on this machine: any program over any network.
    #[command(subcommand)]
    Lab(LabTask),
    /// Serve measurements by standard input and output; started by other parts of sonde.
    #[command(hide = true)]
    Agent,
    /// Print the completion script of a shell.
    #[command(
        after_help = "Example:\n  sonde completions bash > ~/.local/share/bash-completion/completions/sonde"
    )]
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
        /// TCP settings that the ceilings are for: modern, era, or era:window=BYTES.
        #[arg(long, default_value = "modern")]
        profile: sonde_lab::Profile,
    },
    /// Measure the emulation itself: rate and delay error, lateness, frames a second.
    #[command(after_help = "Example:\n  sonde lab check --network atm-oc3c --attachment veth")]
    Check {
        #[command(flatten)]
        lab: testbed::LabOptions,
        /// Launches of each measurement.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
        launches: u64,
    },
    /// Repeat a ledger of `--ledger` under the virtual clock, and compare.
    #[command(
        after_help = "Example:\n  sonde lab run --ledger /tmp/l -- ping -c 3 h2; sonde lab replay /tmp/l"
    )]
    Replay {
        /// The ledger.
        ledger: PathBuf,
    },
}

/// How much is measured.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct Effort {
    /// Launches of each cell.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    launches: Option<u64>,
    /// Two launches of each cell: no intervals.
    #[arg(long)]
    quick: bool,
    /// Ten launches of each cell.
    #[arg(long)]
    thorough: bool,
}

impl Effort {
    fn launches(&self) -> u64 {
        self.launches.unwrap_or(if self.quick {
            2
        } else if self.thorough {
            10
        } else {
            6
        })
    }
}

/// How the programs of a lab are run.
#[derive(Debug, Args)]
pub struct ProgramOptions {
    /// Run as the lab's root, who may change the host's network.
    #[arg(long)]
    pub root: bool,
    /// Write what the emulation itself did to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Runs the task; the exit code.
pub fn run(arguments: Arguments) -> Result<i32, Failure> {
    match arguments.task {
        Task::Assess {
            networks,
            hosts,
            effort,
            json,
            strict,
            dry_run,
        } => {
            let lab = testbed::LabOptions::of_hosts(hosts);
            Assessment {
                networks,
                lab,
                launches: effort.launches(),
                json,
                strict,
                dry_run,
            }
            .run()
        }
        Task::Agent => sonde_probe::agent::run(std::io::stdin(), std::io::stdout())
            .map(|()| 0)
            .map_err(Failure::cannot),
        Task::Lab(LabTask::Run {
            lab,
            program,
            each,
            command,
        }) => lab::run(&lab, &program, each, &command).map_err(Failure::passing),
        Task::Lab(LabTask::Shell { lab, program }) => {
            lab::shell(&lab, &program).map_err(Failure::passing)
        }
        Task::Lab(LabTask::Exec {
            host,
            detach,
            root,
            command,
        }) => lab::exec(host, detach, root, &command).map_err(Failure::passing),
        Task::Lab(LabTask::List {
            json,
            networks,
            profile,
        }) => networks::list(&networks, profile, json),
        Task::Lab(LabTask::Check { lab, launches }) => check::check(&lab, launches),
        Task::Lab(LabTask::Replay { ledger }) => replay::replay(&ledger),
        Task::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Arguments::command(),
                "sonde",
                &mut std::io::stdout(),
            );
            Ok(0)
        }
        Task::Man { folder } => {
            std::fs::create_dir_all(&folder)
                .and_then(|()| clap_mangen::generate_to(Arguments::command(), &folder))
                .map_err(|e| {
                    Failure::cannot(format!(
                        "cannot write man pages into {}: {e}",
                        folder.display()
                    ))
                })?;
            Ok(0)
        }
    }
}
