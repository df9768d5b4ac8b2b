//! `sonde probe messages`: its options, lowered to a plan of its own.

use super::options::Common;
use super::typed;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::plan::{Plan, ProbeKind, ProbePlan};
use crate::shown::Form;
use clap::Args;
use sonde_units::Span;
use std::collections::BTreeMap;

/// Examples behind `--help`.
pub const EXAMPLES: &str = "Examples:
  sonde probe messages upc:cg,upc:mg --path pvm:default,pvm:direct --network atm-oc3c --load 0,0.6
  sonde probe messages --count 1000 --mean 2000 --median 8 --graph ring --ranks 6 --path openmpi:tcp --testbed hosts:a,b,c
  sonde probe messages upc:sp --count 10000 --path native:shm --testbed local      fewer messages of the same mean and median
  sonde npb lu --class W --json > lu.json                                          what LU sends among 4 ranks here ...
  sonde probe messages lu.json --path mpich:tcp --testbed hosts:a,b,c,d            ... sent by another library elsewhere

The messages of a program are described by a statistic (their number, mean and median length) and by who sends to whom. They are sent
without the program's computation, counted, and compared with the request: a repetition that sends anything else fails.";

/// What `sonde probe messages` takes.
#[derive(Debug, Args)]
pub struct MessagesOptions {
    /// The program: upc:KERNEL, as the UPC study counts its messages, or a file that `sonde npb` wrote by --json or --matrix;
    /// with several, each of them. Other options replace its values.
    #[arg(value_delimiter = ',')]
    of: Vec<String>,
    /// Number of messages, of all ranks together.
    #[arg(long, value_parser = typed::count::<{ u64::MAX }>)]
    count: Option<u64>,
    /// Their mean length in bytes, as 1963.5 or 2KiB.
    #[arg(long, value_name = "BYTES", value_parser = typed::length)]
    mean: Option<String>,
    /// Their median length in bytes; a matrix does not have it.
    #[arg(long, value_name = "BYTES", value_parser = typed::length)]
    median: Option<String>,
    /// Communication graph, each edge as often: all-to-all, ring, mesh, mesh:2x3, torus:2x2x2, hypercube [default: that of the
    /// program, or all-to-all].
    #[arg(long)]
    graph: Option<String>,
    /// Number of ranks; with several values, each of them [default: 4, or that of the file].
    #[arg(long, value_delimiter = ',')]
    ranks: Vec<u64>,
    /// How often all messages are sent in a repetition.
    #[arg(long)]
    runs: Option<u64>,
    /// Libraries, as native:tcp, pvm:default, pvm:direct, openmpi:tcp, mpich:tcp; within one machine also native:shm.
    #[arg(short = 'p', long = "path", value_delimiter = ',', default_value = "native:tcp", value_parser = typed::path_name(), hide_possible_values = true)]
    paths: Vec<AnyPath>,
    /// Time limit of a repetition [default: 10 minutes].
    #[arg(short = 't', long, value_name = "TIME", value_parser = Span::of_option)]
    budget: Option<Span>,
    #[command(flatten)]
    common: Common,
}

impl MessagesOptions {
    /// Measures; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let plan = self.plan();
        self.common.measurement(plan, Form::Rows)?.run()
    }

    fn knobs(&self) -> BTreeMap<String, Vec<String>> {
        let ranks = self.ranks.iter().map(u64::to_string);
        let one = |value: Option<String>| Vec::from_iter(value);
        let all = [
            ("of", self.of.clone()),
            ("count", one(self.count.map(|count| count.to_string()))),
            ("mean", one(self.mean.clone())),
            ("median", one(self.median.clone())),
            ("graph", one(self.graph.as_deref().map(typed::graph))),
            ("ranks", ranks.collect()),
            ("runs", one(self.runs.map(|runs| runs.to_string()))),
        ];
        let said = all.into_iter().filter(|(_, values)| !values.is_empty());
        said.map(|(name, values)| (name.into(), values)).collect()
    }

    fn plan(&self) -> Plan {
        let mut probe = ProbePlan::new(ProbeKind::Messages, &self.paths, &[]);
        (probe.budget, probe.knobs) = (self.budget, self.knobs());
        self.common.plan(vec![probe])
    }
}
