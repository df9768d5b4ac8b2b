//! `sonde tune`: its options, lowered to a plan of one pair.

use super::options::Common;
use super::refused::Command;
use super::typed;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::plan::{Effort, Kind, Mode, Plan, ProbeKind, ProbePlan, Repeat};
use crate::shown::Form;
use crate::tune::Task;
use clap::Args;
use sonde_measure::Path;
use sonde_units::Span;
use std::collections::BTreeMap;

/// Examples below the help.
pub const EXAMPLES: &str = "Examples:
  sonde tune --network wan-100m-20ms --profile era            what to set, and the predicted gain
  sonde tune --network wan-100m-20ms --profile era --apply    sets it, measures again, keeps what is better
  sonde tune --network wan-100m-20ms --with rcvbuf=64KiB      for a program that asks for this buffer
  sonde tune --testbed hosts:a,b                              your own machines
  sonde tune --testbed hosts:a,b --apply --yes                as root there; prints the lines that undo it";

/// What `sonde tune` takes.
#[derive(Debug, Args)]
pub struct TuneOptions {
    #[command(flatten)]
    common: Common,
    /// Settings before the change: of the program's sockets (rcvbuf, sndbuf, congestion, streams) and of both hosts (rmem,
    /// wmem, window, scaling, mtu, offloads), each with one value.
    #[arg(long = "with", value_name = "KNOB=VALUE", value_parser = typed::knob)]
    knobs: Vec<(String, Vec<String>)>,
    /// Change what is recommended, measure again, and keep what is significantly better. In the lab it ends with the lab.
    #[arg(long)]
    apply: bool,
    /// Do not ask before settings of hosts with connections to others are changed.
    #[arg(long, requires = "apply")]
    yes: bool,
}

impl TuneOptions {
    /// Runs it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let mut knobs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in &self.knobs {
            if values.len() != 1 || knobs.insert(name.clone(), values.clone()).is_some() {
                return Err(Failure::usage(format!(
                    "`--with {name}` is the setting before the change: write one value; `sonde probe sweep` tries several"
                )));
            }
        }
        self.common.check(Command::Tune)?;
        let plan = self.plan(&knobs)?;
        let (apply, yes) = (self.apply, self.yes);
        let measurement = self.common.measurement(plan, Form::Rows)?;
        Task {
            measurement,
            apply,
            yes,
        }
        .run()
    }

    fn plan(&self, knobs: &BTreeMap<String, Vec<String>>) -> Result<Plan, Failure> {
        let mut testbed = self.common.testbed();
        if testbed.kind == Kind::Lab {
            if self.common.hosts.hosts.is_some_and(|hosts| hosts != 2) {
                return Err(Failure::usage(
                    "`sonde tune` takes two hosts: leave `--hosts` out",
                ));
            }
            testbed.hosts = 2;
        }
        let one = |kind, path: Path, size: &[&str], budget, mode| ProbePlan {
            mode,
            samples: Some(1_000),
            budget: Some(Span::millis(budget)),
            knobs: knobs.clone(),
            ..ProbePlan::new(kind, &[AnyPath::Channel(path)], size)
        };
        let stream = Some(Mode::Stream);
        let mut probes = vec![
            one(
                ProbeKind::Latency,
                Path::Tcp,
                &["1", "mtu", "4KiB"],
                300,
                None,
            ),
            one(ProbeKind::Throughput, Path::Tcp, &["1MiB"], 1_000, stream),
        ];
        let launches = match self.common.effort.effort() {
            // Below four no test finds anything.
            Effort::Quick => 4,
            Effort::Usual => 6,
            Effort::Thorough => 10,
        };
        if !knobs
            .keys()
            .any(|name| matches!(name.as_str(), "congestion" | "streams"))
        {
            let mut datagrams = one(ProbeKind::Throughput, Path::Udp, &["mtu"], 1_000, stream);
            datagrams.launches = Some(2);
            probes.push(datagrams);
        }
        let repeat = Repeat {
            launches,
            max: launches,
            ..Repeat::default()
        };
        let mut plan = self.common.apply(Plan::new(testbed, probes, repeat));
        if plan.repeat.launches < 4 {
            return Err(Failure::usage(
                "`sonde tune` compares repetitions: write at least `--launches 4`",
            ));
        }
        for probe in plan
            .probes
            .iter_mut()
            .filter(|probe| probe.path == [AnyPath::UDP])
        {
            probe.launches = Some(2);
        }
        Ok(plan)
    }
}
