//! `sonde npb`: its options, lowered to a task.

use super::options::Common;
use super::refused::Command;
use super::typed;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::npb::{Task, TraceFile};
use crate::plan::{Kind, ProbeKind, ProbePlan};
use crate::shown::Form;
use clap::Args;
use sonde_message::{Library, Path};
use sonde_probe::library::RANKS_MAX;
use sonde_probe::library::npb::RUNS_MAX;
use sonde_units::Span;
use sonde_workload::npb::{Class, Kernel};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Examples behind `--help`.
pub const EXAMPLES: &str = "Examples:
  sonde npb all --class A --ranks 4 --path native:shm,openmpi   all eight over sonde's own engine and over Open MPI, here
  sonde npb cg,lu --class S,W --ranks 1,2,4 --runs 5            scaling within this machine; 1 is the sequential reference
  sonde npb is --testbed lab --network ethernet-100 --path pvm:default,pvm:direct
  sonde npb ft --class B --ranks 8 --testbed hosts:a,b,c,d --path openmpi:tcp
  sonde npb mg --size points=64:cycles=4 --ranks 4              a size of your own; upc is that of the UPC study
  sonde npb sp --class W --ranks 4 --matrix sp.json             who sends how much to whom, for `sonde place --matrix`
  sonde npb mg --path pvm:direct --phases --trace mg.json       where each rank's time goes; the trace is for ui.perfetto.dev
  sonde npb cg --size upc --testbed lab --network ./plans/examples/networks/upc.toml --path pvm:direct --age upc
                                                                as workstations of 1997: a sequential run takes what the study prints

The kernels are sonde's own, verified against the official values of the NAS parallel benchmarks; their results are not NPB results.
Allowed numbers of ranks are the benchmark's: a power of two for cg, ft, is and mg, a square for sp and bt, a near-square grid for lu,
any for ep. Each repetition is stored, and `sonde report` shows it again. Exit 1 where a result is wrong or a repetition failed, 2 where
nothing could be run.";

/// What `sonde npb` takes.
#[derive(Debug, Args)]
#[command(mut_arg("testbed", |testbed| testbed.default_value("local")))]
#[command(mut_arg("launches", |launches| launches.help("Repetitions of each configuration (fresh processes each time) [default: 3, or 1 where one takes over a minute, and with --phases, --trace or --matrix]")))]
pub struct NpbOptions {
    /// Kernels: ep, cg, mg, ft, is, lu, sp, bt, or all.
    #[arg(required_unless_present = "resume", value_delimiter = ',', value_parser = kernels)]
    kernels: Vec<Kernels>,
    /// Problem class: S, W, A, B or C; with several, each of them [default: S].
    #[arg(long = "class", value_delimiter = ',', value_parser = class, conflicts_with = "size")]
    classes: Vec<Class>,
    /// A problem size of your own: upc, or parameters as points=64:cycles=4; those left out are of class S.
    #[arg(long, value_name = "upc|NAME=VALUE[:NAME=VALUE]...")]
    size: Option<String>,
    /// Number of ranks; with several values, each of them. One is the sequential reference, whatever the paths.
    #[arg(long, value_delimiter = ',', default_value = "4", value_parser = ranks)]
    ranks: Vec<usize>,
    /// Libraries, as native:shm,openmpi:sm; without a transport the usual one of the testbed [default: native].
    #[arg(short = 'p', long = "path", value_delimiter = ',')]
    paths: Vec<String>,
    /// All ranks on one host, the first.
    #[arg(long)]
    collapsed: bool,
    /// Number of runs of each kernel, one after the other by the same ranks.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    runs: u64,
    /// Time limit of a repetition, up to 1h [default: 10 minutes, or more for large problems].
    #[arg(short = 't', long, value_name = "TIME", value_parser = Span::of_option)]
    budget: Option<Span>,
    /// Write the communication matrix (who sent how much to whom) to this file, as JSON; of one kernel, size, number of ranks
    /// and path.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    matrix: Option<PathBuf>,
    /// Slow computation down to historical hosts: by a factor (120), to the time of a sequential run there (16.66s), or to a
    /// study that prints that time (upc).
    #[arg(long, value_name = "FACTOR|TIME|STUDY", allow_hyphen_values = true)]
    age: Option<String>,
    /// Print the time of each rank by phase, and the lengths of messages; of the last run.
    #[arg(long, conflicts_with = "json")]
    phases: bool,
    /// Write a trace of all ranks in the last run: for Chrome and Perfetto where FILE ends in .json, a table in .csv; of one
    /// kernel, size, number of ranks and path.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// One kernel, or all.
#[derive(Debug, Clone, Copy)]
enum Kernels {
    All,
    One(Kernel),
}

fn kernels(text: &str) -> Result<Kernels, String> {
    match text {
        "all" | "ALL" | "All" => Ok(Kernels::All),
        _ => {
            let one = typed::name(text).map(Kernels::One);
            one.map_err(|error: sonde_workload::npb::Unnamed| format!("{error}, or all"))
        }
    }
}

fn class(text: &str) -> Result<Class, String> {
    match typed::upper(text) {
        Ok(Class::D) => Err(sonde_workload::npb::Unsized::OnlyKnown.to_string()),
        class => class.map_err(|error: sonde_workload::npb::Unnamed| error.to_string()),
    }
}

fn ranks(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=RANKS_MAX).contains(number));
    number.ok_or_else(|| {
        format!("`{text}` is not a number of ranks: write 1 to {RANKS_MAX}, as in 4 or 1,2,4")
    })
}

/// A library with its transport; without one the usual: memory within this machine.
fn path(text: &str, testbed: Kind) -> Result<Path, Failure> {
    let path = typed::library(text).map_err(Failure::usage)?;
    let within = match path.library {
        Library::Native => "native:shm",
        Library::OpenMpi => "openmpi:sm",
        Library::Mpich => "mpich:sm",
        _ => return Ok(path),
    };
    match text.contains(':') || testbed != Kind::Local {
        true => Ok(path),
        false => within.parse().map_err(Failure::usage),
    }
}

/// The path of ranks for which none was named.
pub(super) fn usual_path(testbed: Kind) -> Result<AnyPath, Failure> {
    path("native", testbed).map(AnyPath::Library)
}

impl NpbOptions {
    /// Runs it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let task = self.task()?;
        task.run()
    }

    fn task(self) -> Result<Task, Failure> {
        self.common.check(Command::Npb)?;
        let testbed = self.common.testbed.0;
        let paths = match self.paths.is_empty() {
            true => vec![path("native", testbed)?],
            false => {
                let paths = self.paths.iter().map(|text| path(text, testbed));
                paths.collect::<Result<Vec<_>, _>>()?
            }
        };
        let is_apart = testbed != Kind::Local && !self.collapsed;
        let mut within = paths.iter().filter(|path| path.is_within_machine());
        if let (true, Some(path)) = (is_apart, within.next()) {
            return Err(Failure::usage(format!(
                "{path} joins processes of one machine, and these hosts are apart: use `--testbed local`, or `--collapsed`"
            )));
        }
        let trace = self.trace.as_deref().map(TraceFile::new).transpose()?;
        let plan = self.common.plan(self.probes(&paths)?);
        Ok(Task {
            is_usual: !self.common.effort.is_chosen(),
            matrix: self.matrix,
            trace,
            phases: self.phases,
            measurement: self.common.measurement(plan, Form::Rows)?,
        })
    }

    /// One rank alone needs no path, and is run once.
    fn probes(&self, paths: &[Path]) -> Result<Vec<ProbePlan>, Failure> {
        let (one, more): (Vec<usize>, Vec<usize>) =
            self.ranks.iter().partition(|ranks| **ranks == 1);
        let within = path("native", Kind::Local)?;
        let probe = |ranks: &[usize], paths: &[Path]| {
            let paths = each_once(paths.iter().map(|path| AnyPath::Library(*path)));
            let mut probe = ProbePlan::new(ProbeKind::Npb, &paths, &[]);
            (probe.budget, probe.knobs) = (self.budget, self.knobs(ranks));
            (!ranks.is_empty()).then_some(probe)
        };
        let probes = [probe(&one, &[within]), probe(&more, paths)];
        Ok(probes.into_iter().flatten().collect())
    }

    fn knobs(&self, ranks: &[usize]) -> BTreeMap<String, Vec<String>> {
        let kernels = self.kernels.iter().flat_map(|one| match one {
            Kernels::All => Kernel::ALL.to_vec(),
            Kernels::One(kernel) => vec![*kernel],
        });
        let (size, sizes) = match (&self.size, self.classes.is_empty()) {
            (Some(size), _) => ("size", vec![size.clone()]),
            (None, true) => ("class", vec![Class::S.name().into()]),
            (None, false) => {
                let names = self.classes.iter().map(|class| class.name().to_owned());
                ("class", each_once(names))
            }
        };
        let runs = (self.runs > 1).then(|| self.runs.to_string());
        let hosts = self.collapsed.then(|| "1".to_owned());
        let all = [
            (
                "kernel",
                each_once(kernels.map(|kernel| kernel.name().to_owned())),
            ),
            (size, sizes),
            ("ranks", each_once(ranks.iter().map(usize::to_string))),
            ("runs", runs.into_iter().collect()),
            ("hosts", hosts.into_iter().collect()),
            ("age", self.age.iter().cloned().collect()),
        ];
        let said = all.into_iter().filter(|(_, values)| !values.is_empty());
        said.map(|(name, values)| (name.into(), values)).collect()
    }
}

/// In their order, without those that were there before.
pub(super) fn each_once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_transport_is_that_of_the_hosts() {
        for (text, testbed, wanted) in [
            ("native", Kind::Local, "native:shm"),
            ("openmpi", Kind::Local, "openmpi:sm"),
            ("openmpi", Kind::Hosts, "openmpi:tcp"),
            ("native:tcp", Kind::Local, "native:tcp"),
            ("pvm", Kind::Lab, "pvm:default"),
        ] {
            assert_eq!(path(text, testbed).unwrap().to_string(), wanted);
        }
        assert!(path("smoke", Kind::Local).is_err());
    }

    #[test]
    fn words_are_refused_with_what_could_be() {
        assert!(kernels("dg").unwrap_err().contains("or all"));
        assert!(class("D").unwrap_err().contains("parameters alone"));
        assert!(class("E").unwrap_err().contains("S, W"));
        assert!(ranks("0").unwrap_err().contains("1,2,4"));
    }
}
