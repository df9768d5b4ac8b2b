//! `sonde probe check`: its options, lowered to a task.

use super::npb::each_once;
use super::options::Common;
use super::refused::Command;
use super::typed;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::library::CASES;
use crate::plan::{Plan, ProbeKind, ProbePlan};
use crate::shown::Form;
use crate::sound::{self, Task};
use clap::Args;
use sonde_message::Path;
use sonde_probe::library::{CASES_MAX, RANKS_MAX};

/// Examples behind `--help`.
pub const EXAMPLES: &str = "Examples:
  sonde probe check --testbed local --ranks 1..17                        every installed library, within this machine
  sonde probe check --testbed hosts:a,b --path openmpi:tcp,mpich:tcp     is my MPI right between these hosts?
  sonde probe check --testbed hosts:a,b,c --ranks 2,3,12 --seed 7 --cases 500
  sonde probe check --network atm-oc3c --path pvm:default,pvm:direct

Collectives of random kinds, types, sizes and roots are compared with what one rank computes alone; messages must arrive whole, once,
in order and by tag at the rank that waits for them; groups are split. Calls that a library does not support are left out and named.
The same seed makes the same checks. Each repetition is stored, and `sonde report` shows it again. Exit 1 where a result was wrong, 2
where nothing could be checked.";

/// What `sonde probe check` takes.
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// Libraries, as openmpi:tcp,pvm [default: all that are installed on these hosts].
    #[arg(short = 'p', long = "path", value_delimiter = ',', value_parser = typed::library)]
    paths: Vec<Path>,
    /// Numbers of ranks, as 1..17 or 2,4,8; one after the other.
    #[arg(long, default_value = "2,5", value_delimiter = ',', value_parser = span)]
    ranks: Vec<(usize, usize)>,
    /// Number of collectives that are drawn from the seed, beside one of each kind by the library.
    #[arg(long, default_value_t = CASES, value_parser = clap::value_parser!(u64).range(1..=CASES_MAX))]
    cases: u64,
    #[command(flatten)]
    common: Common,
}

/// `4`, or `1..17` with both ends.
fn span(text: &str) -> Result<(usize, usize), String> {
    let number = |text: &str| text.parse().ok().filter(|n| (1..=RANKS_MAX).contains(n));
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let span = number(first).zip(number(last));
    span.filter(|(first, last)| first <= last).ok_or_else(|| {
        format!("`{text}` is not a number of ranks: write 1 to {RANKS_MAX}, as in 2,4,8 or 1..17")
    })
}

impl CheckOptions {
    /// Checks; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        self.common.check(Command::Check)?;
        let plan = self.plan();
        let measurement = self.common.measurement(plan, Form::Rows)?;
        Task { measurement }.run()
    }

    fn plan(&self) -> Plan {
        let paths = match self.paths.is_empty() {
            true => sound::paths(self.common.testbed.0),
            false => each_once(self.paths.iter().map(|path| AnyPath::Library(*path))),
        };
        let ranks = self.ranks.iter().flat_map(|(first, last)| *first..=*last);
        let ranks = each_once(ranks.map(|ranks| ranks.to_string()));
        let mut probe = ProbePlan::new(ProbeKind::Check, &paths, &[]);
        probe.knobs = [
            ("ranks", ranks),
            ("cases", vec![self.cases.to_string()]),
            ("seed", vec![self.common.hosts.seed.to_string()]),
        ]
        .map(|(name, values)| (name.into(), values))
        .into();
        let mut plan = self.common.plan(vec![probe]);
        if !self.common.effort.is_chosen() {
            // The same seed checks the same: once is enough, where nothing else is said.
            (plan.repeat.launches, plan.repeat.max) = (1, 1);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_numbers_and_spans() {
        assert_eq!((span("4"), span("1..17")), (Ok((4, 4)), Ok((1, 17))));
        for text in ["0", "17..1", "1..", "many", "1..100000"] {
            assert!(span(text).unwrap_err().contains("1..17"), "{text}");
        }
    }
}
