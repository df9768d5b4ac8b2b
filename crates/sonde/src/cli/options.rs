//! The options that every measurement takes, and how they change a plan.

use super::output::{OutputOptions, PageOptions};
use super::refused::Command;
use super::require::RequireOptions;
use super::{OUT, typed};
use crate::allowance::AllowanceOptions;
use crate::failure::Failure;
use crate::measure::Task as Measurement;
use crate::plan::{Effort, Kind, LoadPlan, NetworkPlan, Plan, ProbePlan, Repeat, TestbedPlan};
use crate::preflight::Preflight;
use crate::shown::Form;
use crate::testbed;
use clap::Args;
use sonde_measure::Wait;
use sonde_units::BitRate;
use std::path::PathBuf;

/// What every measurement takes.
#[derive(Debug, Args)]
pub struct Common {
    /// The hosts: local (this machine), lab (an emulated cluster on it), hosts:a,b[01-16] or hosts:./FILE (through ssh),
    /// slurm (this allocation; the default inside an allocation of several nodes), mpirun[:ARGUMENTS], listen:N (agents
    /// that you start).
    #[arg(long, default_value = crate::allocation::usual_testbed(), value_parser = testbed_named)]
    pub testbed: (Kind, Option<String>),
    /// Address to which agents of slurm, mpirun and listen connect back [default: any port of the address that the hosts
    /// reach].
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub listen: Option<sonde_fleet::Listen>,
    /// A network of the lab, or of real hosts: ib=ib0, ib=a/ib0,b/ib1 or ib=10.9.1.0/24; several by commas, or by giving it several times.
    #[arg(long = "network", value_name = "NAME[:KNOB=VALUE]...|NAME=INTERFACE", value_parser = typed::network_list(), hide_possible_values = true)]
    pub network_lists: Vec<Vec<String>>,
    /// Instead of a network a site of the lab, of segments that bridges and routers join, with hosts of its own: a name of `sonde lab list
    /// --sites` or a file; several by commas.
    #[arg(long = "site", value_name = "NAME|FILE", value_delimiter = ',', conflicts_with_all = ["network_lists", "hosts"])]
    pub sites: Vec<String>,
    /// The two hosts that repetitions are between, as in h1>h2 [default: every pair in turn; of a site its first and its last host].
    #[arg(long, value_name = "A>B", value_parser = flow)]
    pub between: Option<String>,
    /// Background load levels (0 to 1 of link capacity) in the lab's networks or between real hosts; all benchmarks repeat at each
    /// level. As RHO[:law=LAW][:size=BYTES]; laws are constant, poisson (the default), geometric, on-off:20, self-similar:20 (frames
    /// per burst); the default size is one cell on ATM, else a full frame. UDP streams are measured idle only.
    #[arg(long = "load", value_name = "RHO,...", value_delimiter = ',', value_parser = typed::load)]
    pub loads: Vec<String>,
    /// Real hosts: the flows of the background traffic, as in 'c>d' [default: between two other hosts where there are four,
    /// else between the measured ones].
    #[arg(long = "load-flow", value_name = "A>B,...", value_delimiter = ',', value_parser = flow, requires = "loads")]
    pub load_flows: Vec<String>,
    /// Real hosts: the rate of the link that a load is a share of, where the interface does not report it.
    #[arg(long = "load-of", value_name = "RATE", value_parser = BitRate::of_option, requires = "loads")]
    pub load_of: Option<BitRate>,
    /// Real hosts: the rate of the line, where the interfaces report none (as in virtual machines) or not the right one; what streams
    /// reach is given as a part of it.
    #[arg(long, value_name = "RATE", value_parser = BitRate::of_option)]
    pub line_rate: Option<BitRate>,
    #[command(flatten)]
    pub hosts: testbed::HostOptions,
    /// Completion: receive by blocking (block) or by busy polling (poll); with both, each of them [default: block].
    #[arg(long = "wait", value_parser = wait, value_delimiter = ',')]
    pub waits: Vec<Wait>,
    #[command(flatten)]
    pub effort: EffortOptions,
    #[command(flatten)]
    pub allow: AllowanceOptions,
    #[command(flatten)]
    pub preflight: Preflight,
    #[command(flatten)]
    pub require: RequireOptions,
    /// The folder of the store and the reports.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = OUT)]
    pub out: PathBuf,
    /// Resume a run that was not finished: its id or a prefix of it, latest, latest~1; without a value the latest unfinished one.
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,
    /// Name the run, so that reports find it; of several runs with one name the last is meant, and NAME~1 is the one before.
    #[arg(long, visible_alias = "tag", value_name = "NAME", value_parser = typed::run_name, conflicts_with = "resume")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub page: PageOptions,
    /// Print each event as a line of JSON when it happens: start, row (after each repetition, as it stands), warning, end.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub json_stream: bool,
    /// Exit with 3 where a figure is uncertain for another reason than how many its repetitions and samples are and how far they differ: a
    /// disturbance, frames lost outside of the model, unauthenticated peers.
    #[arg(long)]
    pub strict: bool,
    /// Print what would be measured, and how long it takes.
    #[arg(long)]
    pub dry_run: bool,
    /// Print the plan of this command, with all defaults filled in: `sonde assess PLAN` measures it.
    #[arg(long, conflicts_with_all = ["dry_run", "resume"])]
    pub print_plan: bool,
}

/// How much is measured.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct EffortOptions {
    /// Repetitions of each configuration (fresh processes each time) [default: 6].
    #[arg(short = 'n', long, visible_alias = "repetitions", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    launches: Option<u64>,
    /// 2 repetitions of each configuration; too few for confidence intervals.
    #[arg(short = 'q', long)]
    quick: bool,
    /// 10 repetitions of each configuration, and up to 20 until the intervals are narrow; more sizes.
    #[arg(long)]
    thorough: bool,
}

impl EffortOptions {
    /// Whether anything was said.
    pub fn is_chosen(&self) -> bool {
        self.launches.is_some() || self.quick || self.thorough
    }

    /// The number of repetitions, where one was given.
    pub fn chosen(&self) -> Option<u64> {
        self.launches
    }

    pub fn effort(&self) -> Effort {
        match (self.quick, self.thorough) {
            (true, _) => Effort::Quick,
            (_, true) => Effort::Thorough,
            _ => Effort::Usual,
        }
    }
}

pub fn wait(text: &str) -> Result<Wait, String> {
    match text.to_lowercase().as_str() {
        "block" => Ok(Wait::Block),
        "poll" => Ok(Wait::Poll),
        _ => Err(format!(
            "`{text}` is not a completion: write block (blocking) or poll (busy polling)"
        )),
    }
}

fn flow(text: &str) -> Result<String, String> {
    sonde_fleet::flow(text).map(|_| text.into())
}

pub fn testbed_named(text: &str) -> Result<(Kind, Option<String>), String> {
    // Several hosts, or a file of them, need no word before them.
    let is_list = text.contains([',', '[']) || text.starts_with(['.', '/']);
    match text.split_once(':') {
        None if is_list => Ok((Kind::Hosts, Some(text.into()))),
        None => match text.to_lowercase().as_str() {
            "local" | "localhost" => Ok((Kind::Local, None)),
            "lab" => Ok((Kind::Lab, None)),
            "slurm" => Ok((Kind::Slurm, None)),
            "mpirun" => Ok((Kind::Mpirun, None)),
            _ => Err(format!(
                "there is no testbed `{text}`: write local, lab, slurm or mpirun, or name two hosts or more, as in a,b[01-16]"
            )),
        },
        Some(("slurm", program)) if !program.is_empty() => Ok((Kind::Slurm, Some(program.into()))),
        Some(("mpirun", words)) => Ok((Kind::Mpirun, Some(words.into()))),
        Some(("listen", count)) if !count.is_empty() => Ok((Kind::Listen, Some(count.into()))),
        Some(("hosts" | "ssh", names)) if !names.is_empty() => {
            Ok((Kind::Hosts, Some(names.into())))
        }
        _ if is_list => Ok((Kind::Hosts, Some(text.into()))),
        _ => Err(format!(
            "there is no testbed `{text}`: write local, lab, hosts:a,b[01-16], hosts:./FILE, slurm, mpirun or listen:N"
        )),
    }
}

impl Common {
    pub fn testbed(&self) -> TestbedPlan {
        TestbedPlan {
            kind: self.testbed.0,
            hosts: self.hosts.count(),
            names: self.testbed.1.clone(),
            line_rate: self.line_rate,
            attachment: self.hosts.attachment,
            priority: self.hosts.priority,
            between: self.between.clone(),
            ..TestbedPlan::default()
        }
    }

    /// These probes on the testbed, as often as asked for.
    pub fn plan(&self, probes: Vec<ProbePlan>) -> Plan {
        let repeat = Repeat::of(self.effort.effort());
        self.apply(Plan::new(self.testbed(), probes, repeat))
    }

    /// Puts what was given on the command line into the plan, and fills in the rest.
    pub fn apply(&self, mut plan: Plan) -> Plan {
        let networks = self.networks();
        if !networks.is_empty() {
            let of = |text: &String| NetworkPlan::of(self.testbed.0, text);
            plan.networks = networks.iter().map(of).collect();
        }
        if !self.sites.is_empty() {
            plan.networks = self
                .sites
                .iter()
                .map(|name| NetworkPlan::site(name))
                .collect();
        }
        if !self.loads.is_empty() {
            plan.loads = self
                .loads
                .iter()
                .map(|level| LoadPlan::level(&self.level(level)))
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
        plan.allow = self.allow.over(&plan.allow);
        plan.profile.name = self.hosts.profile.to_string();
        plan.repeat.seed = self.hosts.seed;
        plan.filled().requiring(self.require.given())
    }

    /// A level with what was said of all: where it goes, and of what it is a share.
    fn level(&self, level: &str) -> String {
        let mut text = level.to_owned();
        if let Some(of) = self.load_of.or(self.line_rate) {
            text += &format!(":of={of}");
        }
        if !self.load_flows.is_empty() {
            text += &format!(":flow={}", self.load_flows.join("+"));
        }
        text
    }

    /// All networks, in their order.
    pub fn networks(&self) -> Vec<String> {
        self.network_lists.concat()
    }

    /// The measurement of a plan.
    ///
    /// # Errors
    /// An option that would change nothing; a file for the results that cannot be written.
    pub fn measurement(self, plan: Plan, form: Form) -> Result<Measurement, Failure> {
        self.check(Command::Any)?;
        Ok(Measurement {
            plan,
            sources: self.require.sources(),
            out: self.out,
            resume: self.resume,
            print: self.output.take()?,
            page: self.page.taken(),
            name: self.name,
            json_stream: self.json_stream,
            form,
            strict: self.strict,
            dry_run: self.dry_run,
            print_plan: self.print_plan,
            tun: self.hosts.tun,
            listen: self.listen.unwrap_or_default(),
            traced: false,
            preflight: self.preflight,
        })
    }
}
