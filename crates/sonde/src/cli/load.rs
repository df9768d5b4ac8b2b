//! `sonde load`: its options, lowered to a task.

use super::options::testbed_named;
use super::output::{OutputOptions, PageOptions};
use super::{OUT, typed};
use crate::allowance::{Allowance, AllowanceOptions};
use crate::failure::Failure;
use crate::load::Task;
use crate::measure;
use crate::plan::{Kind, NetworkPlan, Plan, Repeat, TestbedPlan};
use crate::preflight::Preflight;
use crate::suits::applications::{self, Application};
use crate::testbed::HostOptions;
use clap::Args;
use sonde_fleet::Load;
use sonde_link::Law;
use sonde_units::{BitRate, Bytes, Ratio, Span};
use std::path::PathBuf;
use std::time::Duration;

/// Examples behind `--help`.
pub const EXAMPLES: &str = "Examples:
  sonde load --testbed hosts:a,b,c --flow 'a>b' --flow 'b>c' --rho 0.6 --for 30s
  sonde load --testbed hosts:a,b --network ib=ib0 --of 100Gbit --rho 0.3 --law on-off:20 --for 1min
  sonde load --testbed lab --network ethernet-100 --rho 0.9 --law constant --size 1472
  sonde load --testbed lab --network ethernet-10 --application web --for 30s
  sonde load --testbed local --of 1Gbit --rho 0.5 --for 5s

A load is a share of a link, whose rate the interface reports (--of where it reports none, as in most virtual machines).
Each datagram counts with all that Ethernet (38 bytes), IP and UDP (28) add to it. Exit 1 where less than 95 % of the
planned load was delivered.";

/// What to load, and how.
#[derive(Debug, Args)]
pub struct LoadOptions {
    /// The hosts: local, lab, hosts:a,b[01-16] or hosts:./FILE.
    #[arg(long, default_value = "lab", value_parser = testbed_named)]
    testbed: (Kind, Option<String>),
    /// A flow from one host to another, as in 'a>b'; may be given several times [default: from the first host to the second].
    #[arg(long = "flow", value_name = "A>B", value_delimiter = ',', value_parser = sonde_fleet::flow)]
    flows: Vec<(String, String)>,
    /// Offered load of each flow, as a share of its link: above 0 and at most 1.
    #[arg(long, value_name = "SHARE", value_parser = typed::rho, required_unless_present = "application")]
    rho: Option<Ratio>,
    /// In place of a share what an application takes, by its rate, its datagrams and its law: a name of `sonde suits --list`.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["rho", "law", "size"])]
    application: Option<String>,
    /// The link's rate, where the interface reports none, or another is meant.
    #[arg(long, value_name = "RATE", value_parser = BitRate::of_option)]
    of: Option<BitRate>,
    /// Law of the gaps between datagrams: constant, poisson, geometric, on-off:20, self-similar:20 (datagrams per burst).
    #[arg(long, default_value = "poisson", value_parser = typed::name::<Law>)]
    law: Law,
    /// User bytes in a datagram [default: a full frame].
    #[arg(long, value_name = "BYTES", value_parser = typed::bytes)]
    size: Option<u64>,
    /// Duration.
    #[arg(short = 't', long = "for", aliases = ["time", "duration", "budget"], value_name = "TIME", default_value = "10s", value_parser = Span::of_option)]
    lasts: Span,
    /// The network: of the lab, or of real hosts as ib=ib0, ib=a/ib0,b/ib1 or ib=10.9.1.0/24.
    #[arg(long, value_name = "NAME[:KNOB=VALUE]...|NAME=INTERFACE", value_parser = typed::network_name(), hide_possible_values = true)]
    network: Option<String>,
    /// Instead of a network a site of the lab, with hosts of its own: a name of `sonde lab list --sites` or a file.
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["network", "hosts"])]
    site: Option<String>,
    #[command(flatten)]
    allow: AllowanceOptions,
    #[command(flatten)]
    hosts: HostOptions,
    /// The folder of the store.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = OUT)]
    out: PathBuf,
    /// Name the run, so that reports find it; of several runs with one name the last is meant, and NAME~1 is the one before.
    #[arg(long, visible_alias = "tag", value_name = "NAME", value_parser = typed::run_name)]
    name: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    page: PageOptions,
    /// Print the flows of the load, as far as they are known before it is made.
    #[arg(long)]
    dry_run: bool,
}

impl LoadOptions {
    /// Makes the load; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        const HEADERS: u64 = 28;
        let application = match &self.application {
            None => None,
            Some(name) => applications::found(name)?.1.into_iter().next(),
        };
        let rho = self.rho.unwrap_or(Ratio::ONE);
        if rho.is_zero() || rho > Ratio::ONE {
            return Err(Failure::usage(
                "`--rho` is a share of the link above 0 and at most 1, as in 0.6",
            ));
        }
        if self.law == Law::Replay {
            return Err(Failure::usage(
                "a capture is replayed in the lab alone: take constant, poisson, geometric, on-off:20 or self-similar:20",
            ));
        }
        let (kind, _) = self.testbed;
        if self.hosts.hosts.is_some() && kind != Kind::Lab {
            return Err(Failure::usage(
                "this testbed does not take `--hosts`: it is the number of a lab's hosts: leave it out, or use `--testbed lab`",
            ));
        }
        let lasts = Duration::from_nanos(self.lasts.as_nanos());
        if lasts < Duration::from_millis(100) || lasts > Duration::from_secs(86_400) {
            return Err(Failure::usage("`--for` is 100ms to a day, as in 30s"));
        }
        let allow = self.allow.over(&Allowance::default());
        if let Some(most) = allow.time().filter(|most| lasts > *most) {
            return Err(Failure::usage(format!(
                "`--for` is longer than `--max-seconds` ({} s) allows: shorten it, or raise the bound",
                most.as_secs_f64()
            )));
        }
        let datagram = application.as_ref().map(|one| one.datagram.0);
        let size = datagram.or(self.size);
        let law = application.as_ref().map(Application::law).transpose()?;
        Task {
            user_bps: application.as_ref().map(Application::needs_bps),
            load: Load {
                law: law.unwrap_or(self.law),
                size: size.map_or(Bytes::ZERO, |size| Bytes(size + HEADERS)),
                of: self.of,
                flows: self.flows.clone(),
                ..Load::poisson(rho)
            },
            lasts,
            measurement: self.measurement()?,
        }
        .run()
    }

    fn measurement(self) -> Result<measure::Task, Failure> {
        let (kind, names) = self.testbed;
        let testbed = TestbedPlan {
            kind,
            hosts: self.hosts.count(),
            names,
            attachment: self.hosts.attachment,
            priority: self.hosts.priority,
            ..TestbedPlan::default()
        };
        let repeat = Repeat {
            seed: self.hosts.seed,
            ..Repeat::default()
        };
        let mut plan = Plan::new(testbed, Vec::new(), repeat);
        plan.allow = self.allow.over(&Allowance::default());
        let network = self.network.map(|text| NetworkPlan::of(kind, &text));
        plan.networks.extend(network);
        plan.networks
            .extend(self.site.as_deref().map(NetworkPlan::site));
        plan.profile.name = self.hosts.profile.to_string();
        Ok(measure::Task {
            sources: Default::default(),
            plan: plan.filled(),
            out: self.out,
            resume: None,
            print: self.output.take()?,
            page: self.page.taken(),
            name: self.name,
            json_stream: false,
            form: crate::shown::Form::Rows,
            strict: false,
            dry_run: self.dry_run,
            print_plan: false,
            tun: self.hosts.tun,
            listen: sonde_fleet::Listen::default(),
            traced: false,
            preflight: Preflight::SKIPPED,
        })
    }
}
