//! The arguments of the command, and which task each becomes.

use crate::failure::Failure;
use crate::measure::Task as Measurement;
use crate::plan::{
    Effort, Kind, LoadPlan, Mode, NetworkPlan, Plan, ProbeKind, ProbePlan, Repeat, TestbedPlan,
};
use crate::report::{self, ReportTask};
use crate::{check, doctor, lab, networks, replay, testbed};
use clap::{Args, CommandFactory, Parser, Subcommand};
use sonde_channel::{Path, Wait};
use sonde_units::Span;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where runs are kept when nothing else is said.
pub const OUT: &str = "./sonde-runs";

/// How well a network carries distributed computing, and where it is lost.
#[derive(Debug, Parser)]
#[command(name = "sonde", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    task: Task,
}

const EXAMPLES: &str = "Examples:
  sonde assess                                      how TCP and UDP fare over five networks of an emulated cluster
  sonde assess --testbed hosts:a,b[01-16]           the same on machines of your own, through ssh
  sonde probe latency --network atm-oc3c --path udp --size 1..64KiB
  sonde lab run --network atm-oc3c --hosts 4 -- ping -c 3 h2
  sonde report html                                 the last run as one HTML file
  sonde doctor                                      what this machine can do, what is missing, how to get it";

#[derive(Debug, Subcommand)]
enum Task {
    /// The main job: how TCP and UDP fare over several networks, beside what each allows.
    #[command(after_help = "Examples:
  sonde assess --quick
  sonde assess --network atm-oc3c:vc=svc --network wan-100m-20ms --launches 10
  sonde assess --network atm-oc3c --load 0,0.6,0.9
  sonde assess --testbed hosts:a,b[01-16]
  sonde assess ./my-plan.toml --out /scratch/runs
  sonde assess --resume
  sonde assess --json > assessment.json")]
    Assess {
        /// A plan of your own; all else is then in it.
        #[arg(conflicts_with_all = ["networks", "loads", "testbed", "resume", "quick", "thorough", "launches"])]
        plan: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
        /// By these paths only: tcp, udp.
        #[arg(long = "path", value_parser = path, value_delimiter = ',')]
        paths: Vec<Path>,
    },
    /// One measurement.
    #[command(after_help = "Examples:
  sonde probe latency --network atm-oc3c --path udp --size 1..64KiB
  sonde probe throughput --network wan-100m-20ms --profile era
  sonde probe throughput --mode message --size 1KiB..4MiB --testbed hosts:a,b
  sonde probe startup --network atm-oc3c:vc=svc --size 8 --json")]
    Probe {
        /// What to measure.
        kind: ProbeKind,
        #[command(flatten)]
        common: Common,
        /// By which path: tcp, udp.
        #[arg(long = "path", value_parser = path, value_delimiter = ',', default_value = "tcp")]
        paths: Vec<Path>,
        /// User bytes in a message: 1, 64KiB, 1..64KiB (powers of two, and around the MTU), mtu. Without it: 1 B, and
        /// 1 MiB for throughput (UDP: one full frame).
        #[arg(long = "size", value_delimiter = ',')]
        sizes: Vec<String>,
        /// Throughput of a stream, or of single messages with everything in them.
        #[arg(long, default_value = "stream")]
        mode: Mode,
        /// The longest that a launch samples each size; of a stream, what is rated.
        #[arg(long, value_name = "TIME", default_value = "1s")]
        budget: Span,
        /// The most samples of a launch, for each size.
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
        samples: u64,
    },
    /// An emulated cluster on this machine: any program over any network.
    #[command(subcommand)]
    Lab(LabTask),
    /// What runs say, again and in other forms.
    #[command(subcommand)]
    Report(ReportTask),
    /// What this machine can do, what is missing, and how to get it.
    Doctor {
        /// The folder where runs would be kept.
        #[arg(long, value_name = "DIR", default_value = OUT)]
        out: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
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

/// What every measurement takes.
#[derive(Debug, Args)]
pub struct Common {
    /// The hosts: local (this machine), lab (an emulated cluster on it), hosts:a,b[01-16] or hosts:./FILE (through ssh).
    #[arg(long, default_value = "lab", value_parser = testbed_named)]
    testbed: (Kind, Option<String>),
    /// A network of the lab; may be given several times.
    #[arg(long = "network", value_name = "NAME[:KNOB=VALUE]...")]
    networks: Vec<String>,
    /// Background traffic in the lab's networks, as shares of each link: everything is measured under each. As
    /// RHO[:law=LAW][:size=BYTES]; laws are constant, poisson (the usual), geometric, on-off:20, self-similar:20 (frames a
    /// burst); the usual size is one cell on ATM, else a full frame. UDP streams are measured idle only.
    #[arg(long = "load", value_name = "RHO,...", value_delimiter = ',')]
    loads: Vec<String>,
    #[command(flatten)]
    hosts: testbed::HostOptions,
    /// How both sides wait: block, poll.
    #[arg(long = "wait", value_parser = wait, value_delimiter = ',')]
    waits: Vec<Wait>,
    #[command(flatten)]
    effort: EffortOptions,
    /// The folder of the store and the reports.
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,
    /// Go on with a run that was not finished; the latest where none is named.
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Exit with 1 also where the emulation was not true to the model or an interval is too wide.
    #[arg(long)]
    strict: bool,
    /// Print what would be measured, and how long it takes.
    #[arg(long)]
    dry_run: bool,
}

/// How much is measured.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct EffortOptions {
    /// Launches of each cell.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    launches: Option<u64>,
    /// Two launches of each cell: no intervals.
    #[arg(long)]
    quick: bool,
    /// Ten launches of each cell and up to twenty, until intervals are narrow; more sizes.
    #[arg(long)]
    thorough: bool,
}

impl EffortOptions {
    fn effort(&self) -> Effort {
        match (self.quick, self.thorough) {
            (true, _) => Effort::Quick,
            (_, true) => Effort::Thorough,
            _ => Effort::Usual,
        }
    }
}

fn path(text: &str) -> Result<Path, String> {
    match text {
        "tcp" => Ok(Path::Tcp),
        "udp" => Ok(Path::Udp),
        _ => Err(format!("there is no path `{text}`: write tcp or udp")),
    }
}

fn wait(text: &str) -> Result<Wait, String> {
    match text {
        "block" => Ok(Wait::Block),
        "poll" => Ok(Wait::Poll),
        _ => Err(format!("there is no wait `{text}`: write block or poll")),
    }
}

fn testbed_named(text: &str) -> Result<(Kind, Option<String>), String> {
    match text.split_once(':') {
        None if text == "local" => Ok((Kind::Local, None)),
        None if text == "lab" => Ok((Kind::Lab, None)),
        Some(("hosts", names)) if !names.is_empty() => Ok((Kind::Hosts, Some(names.into()))),
        _ => Err(format!(
            "there is no testbed `{text}`: write local, lab, hosts:a,b[01-16] or hosts:./FILE"
        )),
    }
}

impl Common {
    fn testbed(&self) -> TestbedPlan {
        TestbedPlan {
            kind: self.testbed.0,
            hosts: self.hosts.hosts,
            names: self.testbed.1.clone(),
            attachment: self.hosts.attachment,
            floors: false,
        }
    }

    /// Puts what was given on the command line into the plan.
    fn apply(&self, mut plan: Plan) -> Plan {
        if !self.networks.is_empty() {
            plan.networks = self
                .networks
                .iter()
                .map(|name| NetworkPlan { name: name.clone() })
                .collect();
        }
        if !self.loads.is_empty() {
            plan.loads = self
                .loads
                .iter()
                .map(|level| LoadPlan {
                    level: level.clone(),
                })
                .collect();
        }
        if !self.waits.is_empty() {
            plan.probes
                .iter_mut()
                .for_each(|probe| probe.wait = self.waits.clone());
        }
        if let Some(launches) = self.effort.launches {
            (plan.repeat.launches, plan.repeat.max) = (launches, launches);
            plan.probes
                .iter_mut()
                .for_each(|probe| probe.launches = None);
        }
        plan.profile.name = self.hosts.profile.to_string();
        plan.repeat.seed = self.hosts.seed;
        plan
    }

    fn measurement(self, plan: Plan, rows: bool) -> Measurement {
        Measurement {
            plan,
            out: self.out,
            resume: self.resume,
            json: self.json,
            rows,
            strict: self.strict,
            dry_run: self.dry_run,
            tun: self.hosts.tun,
        }
    }
}

/// The plan of `sonde probe`.
fn probe_plan(
    kind: ProbeKind,
    common: &Common,
    paths: Vec<Path>,
    sizes: Vec<String>,
    mode: Mode,
    (budget, samples): (Span, u64),
) -> Plan {
    let one = |path: &Path| ProbePlan {
        kind,
        mode: (kind == ProbeKind::Throughput).then_some(mode),
        path: vec![*path],
        wait: vec![Wait::Block],
        size: if sizes.is_empty() {
            vec![usual_size(kind, *path).into()]
        } else {
            sizes.clone()
        },
        launches: None,
        samples: Some(samples),
        budget: Some(budget),
    };
    let launches = match common.effort.effort() {
        Effort::Quick => 2,
        Effort::Usual => 6,
        Effort::Thorough => 10,
    };
    let testbed = common.testbed();
    let networks = match testbed.kind {
        Kind::Lab => vec![NetworkPlan {
            name: testbed::DEFAULT_NETWORK.into(),
        }],
        Kind::Local | Kind::Hosts => Vec::new(),
    };
    common.apply(Plan {
        testbed,
        profile: Default::default(),
        networks,
        loads: Vec::new(),
        probes: paths.iter().map(one).collect(),
        repeat: Repeat {
            launches,
            max: if launches == 10 { 20 } else { launches },
            ..Repeat::default()
        },
        requirements: Vec::new(),
    })
}

fn usual_size(kind: ProbeKind, path: Path) -> &'static str {
    match (kind, path) {
        (ProbeKind::Throughput, Path::Tcp) => "1MiB",
        (ProbeKind::Throughput, Path::Udp) => "mtu",
        _ => "1",
    }
}

#[derive(Debug, Subcommand)]
enum LabTask {
    /// Run a program on h1 of a fresh lab; its exit code is the command's.
    #[command(after_help = "Examples:
  sonde lab run --network atm-oc3c:vc=svc -- ping -c 3 h2
  sonde lab run --network ethernet-100 --hosts 2 -- sh -c 'sonde lab exec --detach h2 -- iperf3 -s -1; sleep 1; iperf3 -c h2'
  sonde lab run --network wire:delay=1ms --pcap h2=/tmp/h2.pcap -- ping -c 3 h2
  sonde lab run --network ethernet-10 --network fddi -- ping -c 3 h2-eth1")]
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
    /// Break, mend or load the network, from inside a lab.
    #[command(after_help = "Examples, in a lab (`sonde lab shell`):
  sonde lab tell link h2 down              and `link h2 up`; host h2 down; pause h2 on
  sonde lab tell loss h2 1%                also corrupt, duplicate; `all` for every host; 0 ends it
  sonde lab tell reorder all 5% 1ms        one in twenty is held back by 1 ms
  sonde lab tell delay all 20ms            and `delay all 0s` ends it
  sonde lab tell cut h1 h3 on              they cannot reach each other
  sonde lab tell rate 10Mbit               and `rate own`
  sonde lab tell trunk 0 down              between switches; restart 2s; manager down
  sonde lab tell load 1 h2 rho=0.6         background traffic; rho=0 ends it
  sonde lab tell vc release h1 h2          virtual circuits
  sonde lab tell eth1 link h2 down         of the lab's second network")]
    Tell {
        /// What shall change, in words.
        #[arg(required = true, num_args = 1..)]
        words: Vec<String>,
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
        /// The network: a name of `sonde lab list` or a file of your own, with knobs.
        #[arg(long, value_name = "NAME[:KNOB=VALUE]...", default_value = testbed::DEFAULT_NETWORK)]
        network: String,
        #[command(flatten)]
        hosts: testbed::HostOptions,
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
            plan,
            common,
            paths,
        } => {
            let mut made = match &plan {
                Some(file) => Plan::read(file)?,
                None => common.apply(Plan::assess(common.testbed(), common.effort.effort())),
            };
            if !paths.is_empty() {
                made.probes
                    .iter_mut()
                    .for_each(|probe| probe.path.retain(|path| paths.contains(path)));
                made.probes.retain(|probe| !probe.path.is_empty());
            }
            common.measurement(made, false).run()
        }
        Task::Probe {
            kind,
            common,
            paths,
            sizes,
            mode,
            budget,
            samples,
        } => {
            let plan = probe_plan(kind, &common, paths, sizes, mode, (budget, samples));
            common.measurement(plan, true).run()
        }
        Task::Report(task) => report::run(task),
        Task::Doctor { out, json } => doctor::run(&out, sonde_report::has_page(), json),
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
        Task::Lab(LabTask::Tell { words }) => lab::tell(&words.join(" ")),
        Task::Lab(LabTask::List {
            json,
            networks,
            profile,
        }) => networks::list(&networks, profile, json),
        Task::Lab(LabTask::Check {
            network,
            hosts,
            launches,
        }) => check::check(&network, &hosts, launches),
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
