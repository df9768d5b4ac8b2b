//! `sonde accept`: its options, lowered to a plan with all pairs first.

use super::options::Common;
use super::pattern::command;
use super::{of_file, only};
use crate::accept::Task;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::plan::{Effort, Kind, Plan};
use crate::shown::Form;
use clap::Args;
use std::path::PathBuf;

pub const EXAMPLES: &str = "Examples:
  sonde accept --testbed hosts:a,b[01-16] --require 'throughput>=95%' --require 'latency.p99<=30us'
  sonde accept --testbed hosts:./nodes --line-rate 25Gbit --require-from contract.txt --quick
  sonde accept --testbed hosts:a,b[01-16] --require-baseline 20261121T043302Z-1f09c3 --require-within 5%
  salloc -N16 sonde accept --require 'throughput>=23.0Gbit' --json > acceptance.json
  sonde accept ./contract.toml
  sonde accept --hosts 4 --network ethernet-100 --require 'throughput>=90Mbit'      on an emulated cluster
The exit code is 0 where it is accepted, 1 where it is not, 3 where it is inconclusive.";

/// What an acceptance takes.
#[derive(Debug, Args)]
pub struct AcceptOptions {
    /// A plan file, which says what to measure in place of the options.
    #[arg(conflicts_with_all = [
        "network_lists", "loads", "testbed", "resume", "quick", "thorough", "launches", "waits", "hosts", "attachment", "priority", "profile", "seed",
        "paths", "script", "prepare", "line_rate",
    ])]
    plan: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
    /// After all pairs, measure these transports and libraries only: tcp, udp, native:tcp and others of `probe latency`.
    #[arg(long = "path", value_delimiter = ',')]
    paths: Vec<AnyPath>,
    /// Lab: faults and changes with their times, as for `sonde lab run`.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Lab: a command that a host runs as root before the measurement, as `h3: ip link set eth0 mtu 1400`.
    #[arg(long, value_name = "HOST: COMMAND", value_parser = command)]
    prepare: Vec<String>,
}

impl AcceptOptions {
    /// Measures and judges; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let plan = self.plan()?;
        let quick = self.common.effort.effort() == Effort::Quick;
        let measurement = self.common.measurement(plan, Form::Table)?;
        Task { measurement, quick }.run()
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let common = &self.common;
        let effort = common.effort.effort();
        let mut plan = match &self.plan {
            Some(file) => of_file(file)?.requiring(common.require.given()),
            None => {
                let mut made = Plan::assess(common.testbed(), effort);
                if made.testbed.kind == Kind::Lab {
                    // One network is accepted, and what this machine does without one is no part of it.
                    made.networks.clear();
                    made.testbed.floors = false;
                }
                made.probes.retain(|probe| !probe.floor);
                only(&mut made, &self.paths);
                common.apply(made)
            }
        };
        plan.testbed.script = self.script.clone().or(plan.testbed.script);
        plan.testbed.prepare.extend(self.prepare.iter().cloned());
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ProbeKind;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: AcceptOptions,
    }

    fn plan(words: &[&str]) -> Plan {
        let line = Line::parse_from([&["accept"], words].concat());
        let quick = words.contains(&"--quick");
        line.options.plan().unwrap().accepting(quick)
    }

    #[test]
    fn all_pairs_come_first() {
        let made = plan(&[
            "--testbed",
            "lab",
            "--network",
            "fddi",
            "--require",
            "latency.p99<=1ms",
            "--quick",
        ]);
        assert_eq!(made.networks.len(), 1);
        assert!(made.probes.iter().all(|probe| !probe.floor));
        let kinds: Vec<ProbeKind> = made.probes.iter().map(|probe| probe.kind).collect();
        assert_eq!(kinds[0], ProbeKind::Pattern);
        assert_eq!(
            kinds
                .iter()
                .filter(|kind| **kind == ProbeKind::Pattern)
                .count(),
            1
        );
        assert!(kinds.contains(&ProbeKind::Latency) && kinds.contains(&ProbeKind::Throughput));
        let flows = made.probes[0].flows.as_ref().unwrap();
        assert!(!flows.quick, "a tail needs a thousand samples");
        assert_eq!(
            made.requirements[0].subject(),
            "latency p99 of 1 B over tcp"
        );
        let again = Plan::parse(&made.text().unwrap()).unwrap();
        assert_eq!(again, made);
        assert_eq!(again.accepting(true), made, "a printed plan stays as it is");
        let quick = plan(&[
            "--testbed",
            "lab",
            "--require",
            "throughput>=90%",
            "--quick",
        ]);
        assert!(quick.probes[0].flows.as_ref().unwrap().quick);
        let two = plan(&[
            "--testbed",
            "lab",
            "--hosts",
            "2",
            "--require",
            "throughput>=90%",
        ]);
        assert_ne!(two.probes[0].kind, ProbeKind::Pattern);
        let tcp = plan(&[
            "--testbed",
            "hosts:a,b,c",
            "--path",
            "tcp",
            "--require",
            "throughput>=90%",
        ]);
        let paths: Vec<&AnyPath> = tcp.probes.iter().flat_map(|probe| &probe.path).collect();
        assert!(paths.iter().all(|path| **path == AnyPath::TCP), "{paths:?}");
        let several = plan(&[
            "--testbed",
            "lab",
            "--network",
            "fddi",
            "--network",
            "wire",
            "--require",
            "loss<=1%",
        ]);
        assert!(
            several
                .check()
                .unwrap_err()
                .to_string()
                .contains("one network")
        );
    }
}
