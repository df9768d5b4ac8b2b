//! `sonde probe pattern`: its options.

use super::options::Common;
use super::refused::Command;
use super::typed;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::flows::What;
use crate::pattern::Task;
use crate::plan::{self, Effort, FlowsPlan, Kind, Plan, ProbeKind, ProbePlan, Repeat};
use crate::shown::Form;
use clap::Args;
use sonde_units::Span;
use std::path::PathBuf;

pub const EXAMPLES: &str = "Examples:
  sonde probe pattern shift:1 --hosts 8 --network sci-1g8
  sonde probe pattern all-to-one --hosts 8 --senders 1..7
  sonde probe pattern natural-ring,random-ring:7 --kind latency --testbed hosts:a,b[01-16]
  sonde probe pattern neighbours --kind exchange --size 64KiB
  sonde probe pattern all-pairs --quick --testbed hosts:a,b[01-64]      finds a bad host, link or direction, or a bad fabric
  sonde probe pattern incast --hosts 8 --network ethernet-100           latency of a request while many hosts send to one";

/// What a pattern takes.
#[derive(Debug, Args)]
pub struct PatternOptions {
    /// Patterns of concurrent flows, measured one after the other: even-next, odd-previous, half-ring, shift:1, reverse:1,
    /// all-to-one, one-to-all, all-to-all, neighbours, natural-ring, random-ring:7, random:7; or all-pairs, or incast, or one
    /// set of pairs as h1>h2,h3>h4.
    #[arg(default_value = "shift:1")]
    pub pattern: String,
    #[command(flatten)]
    pub common: Common,
    /// Kind of each flow: stream, latency, latency-udp, exchange.
    #[arg(long = "kind", value_delimiter = ',', value_parser = typed::name::<What>)]
    pub kinds: Vec<What>,
    /// User bytes in a message [default: 64KiB; latency 1 B].
    #[arg(long, value_parser = typed::length)]
    pub size: Option<String>,
    /// Number of hosts that send, the first ones of the pattern; 1..8 for each number.
    #[arg(long, value_name = "N..M", value_parser = numbers)]
    pub senders: Option<String>,
    /// Measuring time of each flow.
    #[arg(short = 't', long, aliases = ["budget", "time", "duration"], value_name = "TIME", value_parser = Span::of_option)]
    pub window: Option<Span>,
    /// Warm-up time before it, which does not count.
    #[arg(long, value_name = "TIME", value_parser = Span::of_option)]
    pub lead: Option<Span>,
    /// Latency: pause from a reply to the next message.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = Span::of_option)]
    pub gap: Span,
    /// Latency, exchange: the most samples of a flow in a repetition.
    #[arg(long, default_value = "1000", value_parser = typed::count::<1_000_000>)]
    pub samples: u64,
    /// Other parameters: sndbuf, rcvbuf (as 64KiB), congestion.
    #[arg(long = "with", value_name = "KNOB=VALUE", value_parser = typed::knob)]
    pub knobs: Vec<(String, Vec<String>)>,
    /// Lab: faults and changes with their times, as for `sonde lab run`.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Lab: a command that a host runs as root before the measurement, as `h3: sysctl -w net.ipv4.tcp_rmem='4096 4096 4096'`.
    #[arg(long, value_name = "HOST: COMMAND", value_parser = command)]
    pub prepare: Vec<String>,
}

fn numbers(text: &str) -> Result<String, String> {
    plan::senders(text).map(|_| text.to_owned())
}

pub fn command(text: &str) -> Result<String, String> {
    plan::prepared(text).map(|_| text.to_owned())
}

impl PatternOptions {
    /// Measures; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let plan = self.plan()?;
        let measurement = self.common.measurement(plan, Form::Rows)?;
        Task { measurement }.run()
    }

    /// A plan of one pattern.
    fn plan(&self) -> Result<Plan, Failure> {
        let common = &self.common;
        common.check(Command::Pattern)?;
        let mut probe = ProbePlan::new(ProbeKind::Pattern, &[AnyPath::TCP], &[]);
        for (name, values) in &self.knobs {
            probe.knobs.insert(name.clone(), vec![values.join(",")]);
        }
        probe.samples = Some(self.samples);
        probe.flows = Some(FlowsPlan {
            pattern: typed::patterns(&self.pattern),
            what: self.kinds.clone(),
            size: self.size.clone(),
            senders: self.senders.clone(),
            window: self.window,
            lead: self.lead,
            gap: self.gap,
            quick: common.effort.effort() == Effort::Quick,
        });
        let mut plan = common.plan(vec![probe]);
        plan.repeat = Repeat {
            seed: plan.repeat.seed,
            ..Repeat::of(match common.effort.effort() {
                Effort::Quick => Effort::Quick,
                _ => Effort::Usual,
            })
        };
        if let Some(launches) = common.effort.chosen() {
            (plan.repeat.launches, plan.repeat.max) = (launches, launches);
            plan.probes[0].launches = Some(launches);
        }
        let testbed = &mut plan.testbed;
        if testbed.kind == Kind::Lab {
            // A lab's hosts have several networks at once, of which the first is measured.
            let beside = plan.networks.drain(1..);
            testbed.beside = beside.map(|network| network.name).collect();
        }
        testbed.script.clone_from(&self.script);
        testbed.prepare.clone_from(&self.prepare);
        Ok(plan)
    }
}
