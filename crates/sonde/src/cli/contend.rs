//! `sonde contend`: its options, lowered to a plan of sets.

use super::options::Common;
use super::refused::Command;
use super::typed;
use crate::contend::workload::Workload;
use crate::failure::Failure;
use crate::plan::{Kind, LoadPlan, NetworkPlan, Plan, ProbeKind, ProbePlan};
use crate::shown::Form;
use clap::Args;
use sonde_report::Contention;
use sonde_units::Span;

/// Examples behind `--help`.
pub const EXAMPLES: &str = "Examples:
  sonde contend nfs:write stream --network ethernet-10
  sonde contend nfs:write npb:lu stream load:0.6 --network ethernet-10,atm-oc3c
  sonde contend nfs:write latency --network ethernet-10 --second-network atm-oc3c
  sonde contend message:64KiB stream --testbed hosts:a,b
  sonde contend latency nfs:read@fddi --network ethernet-10 --for 10s --launches 10

A workload is a kind, with what it needs behind colons: stream, message and latency (a path, a size), rate:1000, nfs:read,
nfs:write and other services of `sonde probe files`, npb:KERNEL[:CLASS], load:LEVEL as of --load; knobs are NAME=VALUE. Each is
measured alone, each pair at once, and all at once, from one agreed time on and as long (--for); a kernel is run again and again
meanwhile, and its figure is the time of a run by how many the window had. docs/contend.md says more.";

/// What `sonde contend` takes.
#[derive(Debug, Args)]
pub struct ContendOptions {
    /// What is measured at once, two or more: stream, latency, message:64KiB, rate:1000, nfs:read, nfs:write, npb:lu, load:0.6; with
    /// @NETWORK on another network of the same hosts.
    #[arg(required_unless_present = "resume", value_name = "WORKLOAD", value_parser = Workload::read)]
    workloads: Vec<Workload>,
    /// How long they are measured at once, in each repetition.
    #[arg(short = 't', long = "for", aliases = ["time", "duration", "budget"], value_name = "TIME", default_value = "3s", value_parser = Span::of_option)]
    lasts: Span,
    /// A second network of the same hosts: what files over it, in place of the first, bring to all others.
    #[arg(long, value_name = "NAME[:KNOB=VALUE]...|NAME=INTERFACE", value_parser = typed::network_name(), hide_possible_values = true)]
    second_network: Option<String>,
    /// Leave out `wire`, on which the same is measured to see what the hosts' CPUs alone do.
    #[arg(long)]
    no_wire: bool,
    #[command(flatten)]
    common: Common,
}

impl ContendOptions {
    /// Measures; the exit code.
    ///
    /// # Errors
    /// What is asked for cannot be.
    pub fn run(self) -> Result<i32, Failure> {
        self.common.check(Command::Contend)?;
        let plan = self.plan()?;
        let measurement = self.common.measurement(plan, Form::Rows)?;
        measurement.answer::<Contention>()
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let kind = self.common.testbed.0;
        let mut probes: Vec<ProbePlan> = Vec::new();
        let mut levels: Vec<&str> = Vec::new();
        for workload in &self.workloads {
            match workload {
                Workload::Probe(probe) => probes.push(ProbePlan::clone(probe)),
                Workload::Load(level) => levels.push(level),
            }
        }
        if self.workloads.len() < 2 && self.common.resume.is_none() {
            return Err(Failure::usage(
                "`sonde contend` measures two workloads or more at once: name another one, as in `sonde contend nfs:write stream`",
            ));
        }
        if levels.len() > 1 {
            return Err(Failure::usage(
                "a network has one background load at a time: name one load:LEVEL",
            ));
        }
        let networks = self.common.networks();
        let own = probes.len();
        let second = self.second(&mut probes)?;
        if second.is_empty() {
            // What the CPUs alone do stands beside what a network does.
            let mut plan = self.common.plan(probes);
            plan.loads = sets(&plan.probes, own, levels.first().copied(), self.lasts);
            let has_wire = plan.networks.iter().any(|network| network.name == WIRE);
            if kind == Kind::Lab && !has_wire && !self.no_wire {
                plan.networks.push(NetworkPlan::lab(WIRE));
            }
            return Ok(once(plan));
        }
        if networks.len() != 1 || kind == Kind::Local {
            return Err(Failure::usage(
                "a second network joins the hosts of the first: name that one with `--network`, on a lab or on real hosts",
            ));
        }
        let mut plan = self.common.plan(probes);
        let first = plan.networks.first().map(|network| network.name.clone());
        for probe in &mut plan.probes {
            if probe.networks.is_empty() {
                probe.networks.extend(first.clone());
            }
        }
        plan.networks
            .extend(second.iter().map(|name| NetworkPlan::of(kind, name)));
        plan.testbed.joined = kind == Kind::Lab;
        plan.loads = sets(&plan.probes, own, levels.first().copied(), self.lasts);
        Ok(once(plan))
    }

    /// The networks beside the first. Files are measured on the second one too.
    fn second(&self, probes: &mut Vec<ProbePlan>) -> Result<Vec<String>, Failure> {
        let mut networks: Vec<String> = Vec::new();
        if let Some(second) = &self.second_network {
            let files = probes.iter().filter(|probe| probe.kind == ProbeKind::Files);
            let apart = files
                .filter(|probe| probe.networks.is_empty())
                .map(|probe| {
                    let name = probe.name.as_deref().unwrap_or_default();
                    ProbePlan {
                        name: Some(format!("{name}@{second}")),
                        networks: vec![second.clone()],
                        ..probe.clone()
                    }
                });
            let apart: Vec<ProbePlan> = apart.collect();
            if apart.is_empty() {
                return Err(Failure::usage(
                    "`--second-network` is for files, and none are measured: name nfs:read or nfs:write, or write WORKLOAD@NETWORK",
                ));
            }
            probes.extend(apart);
        }
        for probe in probes.iter() {
            for network in &probe.networks {
                if !networks.contains(network) {
                    networks.push(network.clone());
                }
            }
        }
        Ok(networks)
    }
}

/// The network of which only the hosts' CPUs are shared.
const WIRE: &str = "wire";

/// As many repetitions as the plan wants, and no more: each set has its interval.
pub(super) fn once(mut plan: Plan) -> Plan {
    plan.repeat.max = plan.repeat.launches;
    plan.repeat.reference = 0;
    plan
}

/// Each alone, each pair, and all: with the load in place of a second one, and beside all of them. The first `own` were asked for; the
/// others are copies of some of them, on a second network.
fn sets(probes: &[ProbePlan], own: usize, level: Option<&str>, during: Span) -> Vec<LoadPlan> {
    let of = |probes: &[&ProbePlan], level: Option<&str>| LoadPlan {
        together: probes
            .iter()
            .filter_map(|probe| probe.name.clone())
            .collect(),
        during,
        ..LoadPlan::level(level.unwrap_or("0"))
    };
    // A copy is in place of what it is of.
    let is_of = |copy: &ProbePlan, one: &ProbePlan| {
        let names = copy.name.as_deref().zip(one.name.as_deref());
        names.is_some_and(|(copy, one)| {
            copy.strip_prefix(one)
                .is_some_and(|rest| rest.starts_with('@'))
        })
    };
    let mut all: Vec<LoadPlan> = probes.iter().map(|probe| of(&[probe], None)).collect();
    for (at, one) in probes.iter().enumerate().take(own) {
        for (number, other) in probes.iter().enumerate().skip(at + 1) {
            if number < own || !is_of(other, one) {
                all.push(of(&[one, other], None));
            }
        }
    }
    let asked: Vec<&ProbePlan> = probes.iter().take(own).collect();
    if level.is_some() {
        all.extend(asked.iter().map(|probe| of(&[probe], level)));
    }
    if own + usize::from(level.is_some()) > 2 {
        all.push(of(&asked, level));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DURING;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: ContendOptions,
    }

    fn plan(words: &str) -> Result<Plan, Failure> {
        let words = std::iter::once("contend").chain(words.split(' '));
        Line::try_parse_from(words).unwrap().options.plan()
    }

    fn sets_of(plan: &Plan) -> Vec<String> {
        plan.loads
            .iter()
            .map(|set| format!("{} {}", set.together.join("+"), set.level))
            .collect()
    }

    #[test]
    fn sets_are_each_each_pair_and_all() {
        let made = plan("nfs:write stream load:0.6 --testbed lab --network ethernet-10").unwrap();
        assert_eq!(
            sets_of(&made),
            [
                "nfs:write 0",
                "stream 0",
                "nfs:write+stream 0",
                "nfs:write 0.6",
                "stream 0.6",
                "nfs:write+stream 0.6"
            ]
        );
        let networks: Vec<&str> = made.networks.iter().map(|one| &*one.name).collect();
        assert_eq!(networks, ["ethernet-10", "wire"]);
        assert_eq!(
            (made.repeat.max, made.loads[0].during),
            (made.repeat.launches, DURING)
        );
        made.check().unwrap();
        assert_eq!(Plan::parse(&made.text().unwrap()).unwrap(), made);
        let two = plan("latency stream --testbed local").unwrap();
        assert_eq!(sets_of(&two), ["latency 0", "stream 0", "latency+stream 0"]);
        assert!(two.networks.is_empty());
    }

    #[test]
    fn a_second_network_is_for_files() {
        let made =
            plan("nfs:write stream --testbed lab --network ethernet-10 --second-network fddi")
                .unwrap();
        assert!(made.testbed.joined);
        assert_eq!(
            sets_of(&made),
            [
                "nfs:write 0",
                "stream 0",
                "nfs:write@fddi 0",
                "nfs:write+stream 0",
                "stream+nfs:write@fddi 0"
            ]
        );
        made.check().unwrap();
        for (words, part) in [
            (
                "stream latency --testbed lab --network fddi --second-network wire",
                "for files",
            ),
            (
                "nfs:write stream --testbed lab --second-network fddi",
                "name that one",
            ),
            ("stream --testbed lab", "name another one"),
            ("stream load:0.5 load:0.6 --testbed lab", "one load"),
        ] {
            let error = plan(words).unwrap_err().to_string();
            assert!(error.contains(part), "{words}: {error}");
        }
        let loaded =
            plan("nfs:write stream load:0.6 --testbed lab --network fddi --second-network wire");
        let error = loaded.unwrap().check().unwrap_err().to_string();
        assert!(error.contains("first of several networks"), "{error}");
    }
}
