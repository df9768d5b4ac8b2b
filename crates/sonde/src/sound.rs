//! `sonde probe check`: whether message-passing libraries do on these hosts what they should.
//!
//! Model:   a plan of probes of kind check ([`sonde_probe::library::Task::Check`]), measured and kept by the campaign: one cell for
//!          each path and number of ranks, with all that is drawn from the seed. A launch that finds something wrong fails with
//!          what its ranks said, and the next goes on. What is printed is made from the run.
//! Units:   guesses in nanoseconds.
//! Checked: `tests/lab_check.rs`, over every library that is installed.

use crate::any_path::AnyPath;
use crate::campaign::Silent;
use crate::document::Command;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::library::CASES;
use crate::measure::{self, Measured};
use crate::output::{self, say};
use crate::plan::Kind;
use crate::source::Searches;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{CellRecord, Evidence, Repetition, Run};
use sonde_message::Path;
use sonde_report::sheet;
use sonde_sys::tell;
use std::ops::ControlFlow;

/// What to check.
pub struct Task {
    /// The plan, of probes of kind check alone.
    pub measurement: measure::Task,
}

/// One launch.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LibraryCheck")]
struct Check {
    /// The network's name with its knobs.
    network: String,
    /// Background traffic; null when idle.
    load: Option<String>,
    /// By which the ranks are joined.
    path: String,
    /// How many.
    ranks: u64,
    /// Nothing was wrong.
    sound: bool,
    /// Collective calls that were checked.
    collectives: u64,
    /// Of these, by the library itself.
    by_library: u64,
    /// Messages that were checked.
    messages: u64,
    /// What the library says that it cannot do.
    left_out: Vec<String>,
    /// What is known of the library.
    evidence: Evidence,
    /// The launch with all that is around it.
    took_s: f64,
    /// What was wrong, or why there was no launch; null where nothing was.
    error: Option<String>,
}

/// A path that these hosts do not have.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Lacking {
    /// The path.
    path: String,
    /// Why.
    why: String,
}

/// What is told of the libraries.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checks {
    /// Where random draws began.
    seed: u64,
    /// Cases of each launch.
    cases: u64,
    /// Each launch, in the order in which they were asked for.
    checks: Vec<Check>,
    /// Paths that these hosts do not have.
    lacking: Vec<Lacking>,
}

/// The paths of all libraries, as far as ranks of such hosts could be joined by them.
pub fn paths(testbed: Kind) -> Vec<AnyPath> {
    let is_one_machine = testbed == Kind::Local;
    Path::all()
        .filter(|path| is_one_machine || !path.is_within_machine())
        // Only these hosts know whether they have several networks.
        .filter(|path| !path.is_over_all_networks())
        .map(AnyPath::Library)
        .collect()
}

/// What was wrong in a launch of which rank 0 gave a report: a rank that did not end well was wrong in that, and what tells no
/// counts has checked nothing that is known.
pub fn wrong(evidence: &Evidence) -> Option<String> {
    let check = &evidence.check;
    let ended = evidence.ranks.end.as_ref().map(ToString::to_string);
    let counts = [check.collectives, check.by_library, check.messages];
    let uncounted = || {
        counts.contains(&None).then(|| {
            "rank 0 does not report its checks: give all hosts the same version of sonde".into()
        })
    };
    ended.or_else(uncounted)
}

impl Task {
    /// Does it; the exit code: 0 where all was right.
    ///
    /// # Errors
    /// What cannot be checked, or kept.
    pub fn run(mut self) -> Result<i32, Failure> {
        if self.measurement.is_only_printed() {
            return self.measurement.print();
        }
        match self
            .measurement
            .measured(self.measurement.observer(Silent), &mut Searches)?
        {
            ControlFlow::Break(code) => Ok(code),
            ControlFlow::Continue(measured) => self.finish(&measured),
        }
    }

    fn finish(&self, measured: &Measured) -> Result<i32, Failure> {
        let run = &measured.run;
        let checks = Checks::of(run);
        for one in &checks.lacking {
            tell!("sonde: {} is left out: {}", one.path, one.why);
        }
        let outcome = self.outcome(&checks, run);
        let command = Command::ProbeCheck(&checks);
        let print = || checks.print();
        self.measurement.show(measured, &outcome, command, print)?;
        self.measurement.say_kept(measured)?;
        if !outcome.is_measured {
            tell!("sonde: nothing was checked");
        }
        self.measurement.ended(run, outcome)
    }

    /// What became of the run: a check that found something wrong has failed, and a path that was named and is not there is missing.
    fn outcome(&self, checks: &Checks, run: &Run) -> Outcome {
        let mut outcome = Outcome {
            is_measured: !checks.checks.is_empty(),
            is_judged: true,
            ..Outcome::of(run, self.measurement.strict)
        };
        if self.is_lacking(checks) {
            let lacking = checks.lacking.iter().map(|one| one.path.as_str());
            let why = format!(
                "not checked: {}; `sonde doctor` lists what is installed and how to get the rest",
                lacking.collect::<Vec<_>>().join(", ")
            );
            tell!("sonde: {why}");
            outcome.failed.push(why);
        }
        let wrong = checks.checks.iter().filter(|check| !check.sound);
        let wrong = wrong.map(|check| {
            let why = check.error.as_deref().unwrap_or_default();
            format!("{} on {} ranks: {why}", check.path, check.ranks)
        });
        outcome.failed.extend(wrong);
        outcome
    }

    /// Whether a path that was named is not there. Where none is named, all are meant that are there.
    fn is_lacking(&self, checks: &Checks) -> bool {
        let plan = &self.measurement.plan;
        let asked = plan.probes.iter().flat_map(|probe| &probe.path);
        let is_named = !asked.eq(&paths(plan.testbed.kind));
        !checks.lacking.is_empty() && (is_named || checks.checks.is_empty())
    }
}

/// A knob that is a number.
fn number(cell: &CellRecord, name: &str) -> Option<u64> {
    cell.factors.knobs.get(name)?.parse().ok()
}

impl Checks {
    /// In the order in which they were asked for; launches are shuffled.
    fn of(run: &Run) -> Self {
        let of = |name: &str, usual: u64| {
            let mut cells = run.cells.iter();
            cells.find_map(|cell| number(cell, name)).unwrap_or(usual)
        };
        let mut lacking: Vec<Lacking> = Vec::new();
        for cell in &run.cells {
            let one = cell.skipped.as_ref().map(|why| Lacking {
                path: cell.factors.path.clone(),
                why: why.clone(),
            });
            lacking.extend(one.filter(|one| !lacking.contains(one)));
        }
        let cells = run.cells.iter();
        let checks = cells.flat_map(|cell| {
            let made = run.repetitions_of(&cell.id);
            made.map(move |one| Check::of(cell, one))
        });
        Self {
            seed: of("seed", run.head.seed),
            cases: of("cases", CASES),
            checks: checks.collect(),
            lacking,
        }
    }

    fn print(&self) {
        let first = self.checks.first();
        let is_one = self.checks.iter().all(|check| {
            first
                .is_some_and(|first| (&check.network, &check.load) == (&first.network, &first.load))
        });
        let mut heads = vec![
            "path",
            "ranks",
            "collectives",
            "by the library",
            "messages",
            "left out",
            "seconds",
            "",
        ];
        if !is_one {
            heads.splice(2..2, ["network", "load"]);
        }
        let lines = self.checks.iter().map(|check| {
            let mut line = check.line();
            if !is_one {
                let load = check.load.clone().unwrap_or_else(|| "-".into());
                line.splice(2..2, [check.network.clone(), load]);
            }
            line
        });
        say!("{}", sheet(&heads, lines).text(output::width()));
    }
}

impl Check {
    fn of(cell: &CellRecord, one: Repetition<'_>) -> Self {
        let mut evidence = one.launch.evidence.clone();
        let found = std::mem::take(&mut evidence.check);
        let left_out = found.left_out.map_or_else(Vec::new, |names| {
            names.0.iter().map(ToString::to_string).collect()
        });
        Self {
            network: cell.factors.network.clone(),
            load: cell.factors.load.clone(),
            path: cell.factors.path.clone(),
            ranks: number(cell, "ranks").unwrap_or(2),
            sound: one.result.failure.is_none(),
            collectives: found.collectives.unwrap_or(0),
            by_library: found.by_library.unwrap_or(0),
            messages: found.messages.unwrap_or(0),
            left_out,
            evidence,
            took_s: one.launch.took_ns as f64 * 1e-9,
            error: one.result.failure.clone(),
        }
    }

    /// Its line of the table.
    fn line(&self) -> Vec<String> {
        vec![
            self.path.clone(),
            self.ranks.to_string(),
            self.collectives.to_string(),
            self.by_library.to_string(),
            self.messages.to_string(),
            self.left_out.join(", "),
            format!("{:.1}", self.took_s),
            match self.sound {
                true => "right",
                false => "WRONG",
            }
            .into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_counted_is_wrong() {
        let mut evidence = Evidence::default();
        let said = wrong(&evidence).unwrap();
        assert!(said.contains("the same version"), "{said}");
        let check = &mut evidence.check;
        (check.collectives, check.by_library, check.messages) = (Some(9), Some(0), Some(4));
        assert_eq!(wrong(&evidence), None);
        evidence.ranks.end = Some("was ended by signal 9".into());
        assert_eq!(wrong(&evidence).as_deref(), Some("was ended by signal 9"));
    }

    #[test]
    fn each_path_that_joins_the_hosts_is_checked() {
        let apart = paths(Kind::Hosts);
        assert!(apart.len() < paths(Kind::Local).len());
        assert!(apart.iter().all(|path| !path.is_within_machine()));
    }
}
