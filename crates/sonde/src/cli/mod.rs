//! The arguments of the command, and which task each becomes.

mod accept;
mod agent;
mod check;
mod complete;
mod contend;
mod files;
mod help;
mod instead;
mod lab;
mod lab_check;
mod load;
mod messages;
mod npb;
mod options;
mod output;
mod pattern;
mod place;
mod probe;
mod refused;
mod require;
mod stage;
mod suits;
mod sweep;
mod tune;
pub mod typed;

use crate::any_path::AnyPath;
use crate::doctor;
use crate::failure::Failure;
use crate::plan::{Effort, Kind, Plan};
use crate::report::{self, ReportTask};
use crate::shown::Form;
use crate::testbed;
use clap::{CommandFactory, Parser, Subcommand};
use lab::LabTask;
pub use options::Common;
pub use output::{OutputOptions, PageOptions};
use probe::ProbeTask;
use std::path::{Path, PathBuf};
use tune::TuneOptions;

pub use complete::answered;
pub use instead::explained;
pub use lab::ProgramOptions;
pub use typed::{change, hosts, load, name, network_name, page, per_mille};

/// Where runs are kept when nothing else is said.
pub const OUT: &str = "./sonde-runs";

/// Measures how much of a network's speed reaches distributed programs, and what takes the rest.
#[derive(Debug, Parser)]
#[command(name = "sonde", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    task: Task,
}

const EXAMPLES: &str = "Examples:
  sonde assess                                      TCP, UDP, MPI and PVM on five emulated networks
  sonde assess --testbed hosts:a,b[01-16]           the same between your own machines, through ssh
  sonde accept --testbed hosts:a,b[01-16] --require 'throughput>=95%'
                                                    all pairs first: PASS, FAIL or INCONCLUSIVE
  sonde probe latency --network atm-oc3c --path udp --size 1..64KiB
  sonde load --testbed hosts:a,b,c --flow 'a>b' --rho 0.6 --for 30s
  sonde npb all --class A --ranks 4 --path native,openmpi
  sonde lab run --network atm-oc3c --hosts 4 -- ping -c 3 h2
  sonde report html                                 the latest run as one HTML file
  sonde doctor                                      what this machine can do, what is missing, how to get it";

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure TCP, UDP, MPI and PVM on one or more networks, and compare with each network's limit.
    #[command(after_help = "Examples:
  sonde assess --quick
  sonde assess --network atm-oc3c:vc=svc --network wan-100m-20ms --launches 10
  sonde assess --network atm-oc3c --load 0,0.6,0.9
  sonde assess --testbed hosts:a,b[01-16]
  salloc -N4 sonde assess --quick                   the nodes of a Slurm allocation
  sonde assess --testbed 'mpirun:--hostfile hosts'  wherever that mpirun starts processes
  sonde assess ./my-plan.toml --out /scratch/runs
  sonde assess --quick --require 'throughput>=90%' --require 'latency<=1ms'
  sonde assess --resume
  sonde assess --json > assessment.json")]
    Assess {
        /// A plan file, which says what to measure in place of the options.
        #[arg(conflicts_with_all = [
            "network_lists", "loads", "testbed", "resume", "quick", "thorough", "launches", "waits", "hosts", "attachment", "priority", "profile", "seed",
            "line_rate",
        ])]
        plan: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
        /// Measure these transports and libraries only: tcp, udp, native:tcp, openmpi:tcp and others of `probe latency`.
        #[arg(short = 'p', long = "path", value_delimiter = ',', value_parser = typed::path_name(), hide_possible_values = true)]
        paths: Vec<AnyPath>,
        /// Print the tables instead of the screen.
        #[arg(long, conflicts_with_all = ["json", "csv", "json_stream"])]
        table: bool,
        /// Print the findings instead of the screen, one entry for each rule.
        #[arg(long, conflicts_with_all = ["json", "csv", "json_stream", "table"])]
        findings: bool,
    },
    /// Accept or reject a cluster: all pairs of hosts, then what `assess` measures, held against what is required.
    #[command(after_help = accept::EXAMPLES)]
    Accept(Box<accept::AcceptOptions>),
    /// Run one benchmark.
    #[command(subcommand)]
    Probe(ProbeTask),
    /// Run the kernels of the NAS parallel benchmarks over any message-passing path, with their usual result block.
    #[command(after_help = npb::EXAMPLES)]
    Npb(Box<npb::NpbOptions>),
    /// Measure several workloads at once, and find who slows whom: messages, kernels, files, streams, background load.
    #[command(after_help = contend::EXAMPLES)]
    Contend(Box<contend::ContendOptions>),
    /// Measure what share of a job's time goes into moving its files: input before it and output after it, over NFS, FTP and a stream.
    #[command(after_help = stage::EXAMPLES)]
    Stage(Box<stage::StageOptions>),
    /// Find what limits TCP throughput between two hosts, and fix it: with the arithmetic; applied and verified on request.
    #[command(after_help = tune::EXAMPLES)]
    Tune(Box<TuneOptions>),
    /// Find where the ranks of a parallel program should run and what that gains, and write the files for launchers.
    #[command(after_help = place::EXAMPLES)]
    Place(Box<place::PlaceOptions>),
    /// Emulate a cluster on this machine: any program over any network.
    #[command(subcommand)]
    Lab(LabTask),
    /// Make background traffic between hosts: offered and delivered load.
    #[command(after_help = load::EXAMPLES)]
    Load(load::LoadOptions),
    /// Say which of the measured networks carries an application, and how many of it at once.
    #[command(after_help = suits::EXAMPLES)]
    Suits(suits::SuitsOptions),
    /// List, show, compare and export stored runs.
    #[command(subcommand)]
    Report(ReportTask),
    /// Check what this machine can do, what is missing, and how to get it.
    Doctor {
        /// The folder where runs would be stored.
        #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = OUT)]
        out: PathBuf,
        /// Build the adapters of the message-passing libraries that are installed, and check nothing else.
        #[arg(long)]
        build_adapters: bool,
        /// The folder of adapters [default: $SONDE_ADAPTERS, else ~/.local/share/sonde/adapters].
        #[arg(long, value_name = "DIR")]
        adapters: Option<PathBuf>,
        /// What dead runs of sonde left on this machine, and look at nothing else: processes, settings, folders, files.
        #[arg(long, conflicts_with_all = ["build_adapters", "adapters"])]
        leftovers: bool,
        /// End and remove these.
        #[arg(long, requires = "leftovers")]
        clear: bool,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Serve measurements over standard input and output, or over a connection to an orchestrator; started by other parts
    /// of sonde, and by you on hosts where nothing else can start it.
    #[command(hide = true)]
    Agent(agent::AgentOptions),
    /// Print the completion script of a shell.
    #[command(
        after_help = "Examples:\n  sonde completions bash > ~/.local/share/bash-completion/completions/sonde\n  sonde completions zsh > ~/.zfunc/_sonde\n  sonde completions fish > ~/.config/fish/completions/sonde.fish\n\nThe script asks this program what may stand at a place: networks, paths, kernels, and the runs of the store."
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder.
    #[command(after_help = "Example:\n  sonde man ~/.local/share/man/man1")]
    Man {
        /// The folder; it is created if it does not exist.
        folder: PathBuf,
    },
}

/// The whole command, as it is parsed and as its help is shown.
pub fn command() -> clap::Command {
    help::arranged(Arguments::command())
}

/// A plan's file, with networks that are there.
fn of_file(file: &Path) -> Result<Plan, Failure> {
    if let Some(instead) = not_a_plan(file) {
        return Err(Failure::usage(format!(
            "there is no plan {}: {instead}",
            file.display()
        )));
    }
    let plan = Plan::read(file)?;
    if plan.testbed.kind == Kind::Lab {
        for network in &plan.networks {
            let found = match network.site {
                true => testbed::site(&network.name).map(drop),
                false => testbed::network(&network.name).map(drop),
            };
            found
                .map_err(|error| Failure::usage(format!("the plan {}: {error}", file.display())))?;
        }
    }
    Ok(plan)
}

/// What a word means that stands where a plan's file should, and is none.
fn not_a_plan(file: &Path) -> Option<String> {
    let word = file.to_str()?;
    if file.exists() || word.contains('/') || word.ends_with(".toml") {
        return None;
    }
    if options::testbed_named(word).is_ok() {
        return Some(format!("hosts are named by `--testbed {word}`"));
    }
    let all = typed::networks(word).ok()?;
    let known = all.iter().all(|name| testbed::network(name).is_ok());
    known.then(|| format!("a network is named by `--network {word}`"))
}

/// Prints help or the version.
pub fn print_help(help: &clap::builder::StyledStr) {
    let text = match crate::output::is_coloured() {
        true => help.ansi().to_string(),
        false => help.to_string(),
    };
    crate::output::text(&text);
}

/// The help of a command, where the only word behind it asks for that.
fn help_of(name: &str) -> Result<i32, Failure> {
    let mut root = command();
    // The name above it is filled in when the whole is built.
    root.build();
    let found = root.find_subcommand_mut(name);
    if let Some(command) = found {
        print_help(&command.render_long_help());
    }
    Ok(0)
}

/// Leaves out of a plan what is not measured over these paths; nothing where there are none.
fn only(plan: &mut Plan, paths: &[AnyPath]) {
    if paths.is_empty() {
        return;
    }
    for probe in &mut plan.probes {
        probe.path.retain(|path| paths.contains(path));
    }
    plan.probes.retain(|probe| !probe.path.is_empty());
}

/// Runs the task; the exit code.
pub fn run(arguments: Arguments) -> Result<i32, Failure> {
    match arguments.task {
        Task::Assess {
            plan: Some(word), ..
        } if word.as_os_str() == "help" && !word.exists() => help_of("assess"),
        Task::Assess {
            plan,
            common,
            paths,
            table,
            findings,
        } => {
            let effort = common.effort.effort();
            let mut made = match &plan {
                Some(file) => of_file(file)?.requiring(common.require.given()),
                None => common.apply(Plan::assess(common.testbed(), effort)),
            };
            only(&mut made, &paths);
            if plan.is_none() {
                // What is required is judged by every pair: their streams are to have got up to speed.
                let quick = effort != Effort::Thorough && !common.require.is_given();
                made = made.assessing_all_pairs(quick, &paths);
            }
            common.measurement(made, Form::of(table, findings))?.run()
        }
        Task::Accept(options) => options.run(),
        Task::Probe(task) => task.run(),
        Task::Load(options) => options.run(),
        Task::Npb(options) => options.run(),
        Task::Suits(options) => options.run(),
        Task::Contend(options) => options.run(),
        Task::Stage(options) => options.run(),
        Task::Tune(options) => options.run(),
        Task::Place(options) => options.run(),
        Task::Report(task) => report::run(task),
        Task::Doctor {
            leftovers: true,
            out,
            clear,
            output,
            ..
        } => doctor::leftovers::run(&out, clear, output.take()?),
        Task::Doctor {
            build_adapters: true,
            adapters,
            output,
            ..
        } => doctor::build_adapters(adapters.as_deref(), output.take()?),
        Task::Doctor {
            out,
            adapters,
            output,
            build_adapters: false,
            ..
        } => {
            let look = doctor::Look {
                out: &out,
                page: sonde_report::has_page(),
                adapters: adapters.as_deref(),
            };
            doctor::run(&look, output.take()?)
        }
        Task::Agent(options) => options.run(),
        Task::Lab(task) => task.run(),
        Task::Completions { shell } => {
            crate::output::text(&complete::script(shell));
            Ok(0)
        }
        Task::Man { folder } => {
            std::fs::create_dir_all(&folder)
                .and_then(|()| clap_mangen::generate_to(command(), &folder))
                .map_err(|e| {
                    Failure::unwritten(format!(
                        "cannot write man pages into {}: {e}",
                        folder.display()
                    ))
                })?;
            Ok(0)
        }
    }
}
