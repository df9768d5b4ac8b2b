//! `sonde npb`: the kernels as a plain benchmark, with the result block that users of the NAS benchmarks know.
//!
//! Model:   a plan with probes of kind npb, measured and kept as any other; shown is the median run of each launch, and in the table
//!          that of the median launch, with how far launches differ. One rank, which needs no library, is the sequential reference,
//!          once whatever the paths. What cannot be is refused before anything
//!          starts, or named and left out where others can be. A launch that fails is told, and the next goes on. Where it is asked
//!          for, the table of phases follows, and a file has what each rank did when.
//! Units:   seconds, millions of operations a second, shares of the ranks' time.
//! Checked: `tests/lab_npb.rs`, `tests/lab_npb_trace.rs`.

mod phases;
mod trace;

use crate::campaign::Observer;
use crate::document::Command;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::kernel::{self, KernelRequest};
use crate::measure::{self, Measured};
use crate::output::{self, say};
use crate::source::Searches;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{
    CellRecord, Evidence, Repetition, Run, Testbed, npb::Kernel, npb::Run as KernelRun,
};
use sonde_report::sheet;
use sonde_sys::tell;
use sonde_workload::npb::launch;
use sonde_workload::npb::result::{Block, NAME};
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::path::PathBuf;

pub use trace::TraceFile;

/// What one rank is run by.
const SEQUENTIAL: &str = "sequential";
/// Repetitions where none is said: the fewest that show how far they differ.
const USUAL: u64 = 3;
/// What takes longer is run once, where nothing is said.
const LONG_NS: u64 = 60_000_000_000;
/// Repetitions that differ by so many times are told.
const APART: f64 = 1.25;

/// What to run.
pub struct Task {
    /// The plan, of probes of kind npb alone.
    pub measurement: measure::Task,
    /// How often each is repeated was not said.
    pub is_usual: bool,
    /// Where the communication matrix goes.
    pub matrix: Option<PathBuf>,
    /// Where what each rank did when goes.
    pub trace: Option<TraceFile>,
    /// Print where the time of each rank went.
    pub phases: bool,
}

/// What a launch gave, as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
struct Shown {
    /// In words, with what tells it apart from others.
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    asked: KernelRequest,
    /// The network's name with its knobs.
    network: String,
    /// Background traffic; null when idle.
    load: Option<String>,
    /// Its name: `cg`.
    kernel: &'static str,
    /// Null of a size of one's own.
    class: Option<&'static str>,
    /// As it was asked for.
    size: String,
    /// As results say it.
    extent: String,
    /// How often it iterates.
    iterations: u64,
    /// How many ranks.
    ranks: usize,
    /// What each rank keeps in arrays, as it is told before it starts.
    arrays_bytes: u64,
    /// By which they are joined; `sequential` of one rank.
    path: String,
    /// Of the median run, as the two that follow; null where the launch failed.
    time_s: Option<f64>,
    /// Millions of operations a second.
    mop_per_s: Option<f64>,
    /// Of the ranks' time: in calls of the library.
    communicating_share: Option<f64>,
    /// Of all runs; null where no official value is known.
    verified: Option<bool>,
    /// Every run, and each rank of the last one.
    launch: Option<Kernel>,
    /// What is known of the library.
    evidence: Evidence,
    /// The launch with all that is around it.
    took_s: f64,
    /// Why it failed, or what is wrong; null where nothing is.
    error: Option<String>,
}

/// What was asked for and not run.
#[derive(Debug, Serialize, JsonSchema)]
struct LeftOut {
    /// In words.
    what: String,
    /// Why.
    why: String,
    /// The benchmark has no such number of ranks.
    by_rule: bool,
}

/// What is told of kernels.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Kernels {
    /// By what they are worked out.
    made_by: &'static str,
    /// What the hosts were.
    testbed: Option<Testbed>,
    /// Each launch, in the order in which they were asked for.
    kernels: Vec<Shown>,
    /// What was asked for and not run.
    left_out: Vec<LeftOut>,
}

/// Prints the block of each launch when it ends.
struct Printer {
    phases: bool,
}

impl Observer for Printer {
    fn launched(&mut self, run: &Run) {
        let last = run.launches.last().into_iter();
        for one in last.flat_map(|launch| launch.repetitions()) {
            if let Some(shown) = Shown::of(run, one) {
                shown.print(self.phases);
            }
        }
    }
}

impl Task {
    /// Does it; the exit code: 0 where all was run and is right.
    ///
    /// # Errors
    /// What cannot be run, or kept.
    pub fn run(mut self) -> Result<i32, Failure> {
        if self.is_usual {
            // What is looked at closely is looked at once.
            let is_close = self.matrix.is_some() || self.trace.is_some() || self.phases;
            let is_once = is_close || self.is_long();
            let launches = if is_once { 1 } else { USUAL };
            let repeat = &mut self.measurement.plan.repeat;
            (repeat.launches, repeat.max) = (launches, launches);
        }
        if self.measurement.is_only_printed() {
            return self.measurement.print();
        }
        if self.matrix.is_some() || self.trace.is_some() {
            self.check_one()?;
        }
        self.measurement.traced = self.trace.is_some();
        let observer = self.measurement.observer(Printer {
            phases: self.phases,
        });
        match self.measurement.measured(observer, &mut Searches)? {
            ControlFlow::Break(code) => Ok(code),
            ControlFlow::Continue(measured) => self.finish(&measured),
        }
    }

    /// Whether a repetition may take more than a minute. What cannot be planned is refused later.
    fn is_long(&self) -> bool {
        let planned = self.measurement.planned();
        planned.is_ok_and(|(_, blocks)| blocks.iter().any(|block| block.estimate_ns > LONG_NS))
    }

    /// Refuses a file of one launch where there are others.
    fn check_one(&self) -> Result<(), Failure> {
        self.measurement.plan.check()?;
        let (_, blocks) = self.measurement.planned()?;
        let what = match self.matrix {
            Some(_) => "matrix",
            None => "trace",
        };
        match blocks.iter().map(|block| block.launches).sum() {
            1 => Ok(()),
            count => Err(Failure::usage(format!(
                "a {what} is of one repetition, and these are {count}: name one kernel, size, number of ranks, path and network"
            ))),
        }
    }

    fn finish(&self, measured: &Measured) -> Result<i32, Failure> {
        let run = &measured.run;
        if let Some(reason) = self.measurement.plan.all_skipped(run) {
            return Err(Failure::cannot(reason));
        }
        // In the order in which they were asked for; launches are shuffled.
        let cells = run.cells.iter();
        let repetitions = cells.flat_map(|cell| run.repetitions_of(&cell.id));
        let results = repetitions.filter_map(|one| Shown::of(run, one));
        let skipped = |cell: &CellRecord| {
            let why = cell.skipped.clone()?;
            let asked = asked(cell)?;
            Some(LeftOut {
                what: name(run, cell, &asked),
                why,
                by_rule: asked.refused().is_some(),
            })
        };
        let kernels = Kernels {
            made_by: NAME,
            testbed: run.cells.first().map(|cell| cell.factors.testbed),
            kernels: results.collect(),
            left_out: run.cells.iter().filter_map(skipped).collect(),
        };
        let outcome = kernels.outcome(Outcome::of(run, self.measurement.strict));
        let command = Command::Npb(&kernels);
        let print = || kernels.print();
        self.measurement.show(measured, &outcome, command, print)?;
        for one in &kernels.left_out {
            tell!("sonde: {} is left out: {}", one.what, one.why);
        }
        self.measurement.say_kept(measured)?;
        self.write_matrix(&kernels)?;
        if let (Some(file), Some(trace)) = (&self.trace, &measured.trace) {
            file.write(trace)?;
        }
        if !outcome.is_measured {
            tell!("sonde: no run came to its end");
        }
        self.measurement.ended(run, outcome)
    }

    fn write_matrix(&self, kernels: &Kernels) -> Result<(), Failure> {
        let Some(file) = &self.matrix else {
            return Ok(());
        };
        let launch = kernels
            .kernels
            .first()
            .and_then(|shown| shown.launch.as_ref());
        let Some(matrix) = launch.and_then(Kernel::matrix) else {
            return Ok(());
        };
        std::fs::write(file, matrix.to_json()).map_err(|error| {
            Failure::unwritten(format!(
                "cannot write the matrix {}: {error}",
                file.display()
            ))
        })
    }
}

/// The kernel that a cell is of.
fn asked(cell: &CellRecord) -> Option<KernelRequest> {
    let mut knobs = cell.factors.knobs.clone();
    kernel::take(&mut knobs).ok().map(|(asked, _)| asked)
}

/// The path of a cell; one rank sends nothing by it.
fn path(cell: &CellRecord, asked: &KernelRequest) -> String {
    match asked.ranks {
        1 => SEQUENTIAL.into(),
        _ => cell.factors.path.clone(),
    }
}

/// A cell in words: `cg S on 4 over native:shm`, and on which network and under which load where the run has several.
fn name(run: &Run, cell: &CellRecord, asked: &KernelRequest) -> String {
    let factors = &cell.factors;
    let mut name = format!("{} over {}", asked.name(), path(cell, asked));
    if run.networks.len() > 1 {
        name += &format!(" on {}", factors.network);
    }
    if let Some(load) = &factors.load {
        name += &format!(" under load {load}");
    }
    name
}

impl Kernels {
    fn print(&self) {
        let networks = self
            .kernels
            .iter()
            .map(|shown| (&shown.network, &shown.load));
        let is_one = networks
            .clone()
            .all(|one| Some(one) == networks.clone().next());
        let mut heads = vec![
            "kernel",
            "size",
            "ranks",
            "path",
            "seconds",
            "Mop/s",
            "communicating",
            "messages",
            "verified",
        ];
        let all: Vec<Repeated<'_>> = self
            .kernels
            .chunk_by(|one, next| one.name == next.name)
            .map(Repeated)
            .collect();
        let are_repeated = all.iter().any(|one| one.0.len() > 1);
        if are_repeated {
            heads.splice(5..5, ["lowest", "highest", "n"]);
        }
        if !is_one {
            heads.splice(4..4, ["network", "load"]);
        }
        let lines = all.iter().filter_map(|one| {
            let shown = one.median()?;
            let mut line = shown.line();
            if are_repeated {
                let [lowest, highest] = one.ends().map_or([None; 2], |ends| ends.map(Some));
                let count = one.times_s().count().to_string();
                line.splice(5..5, [number(lowest, 4), number(highest, 4), count]);
            }
            if let (Some(last), true) = (line.last_mut(), one.has_failed()) {
                *last = "FAILED".into();
            }
            if !is_one {
                let load = shown.load.clone().unwrap_or_else(|| "-".into());
                line.splice(4..4, [shown.network.clone(), load]);
            }
            Some(line)
        });
        say!("{}", sheet(&heads, lines).text(output::width()));
        if !are_repeated {
            say!("One repetition each: it does not say how far they differ; `--launches 3` does.");
        }
        for one in &all {
            let Some([lowest, highest]) = one.ends() else {
                continue;
            };
            let times = highest / lowest;
            if times > APART {
                say!(
                    "{}: its repetitions differ by {times:.1} times: there is more in these times than the kernel. Use none of them alone.",
                    one.0[0].name
                );
            }
        }
        let launches = self
            .kernels
            .iter()
            .filter_map(|shown| shown.launch.as_ref());
        let runs = launches.map(|launch| launch.runs.len()).max();
        if let Some(runs @ 2..) = runs {
            say!("The median of {runs} runs each.");
        }
        if self.kernels.iter().any(Shown::has_collectives) {
            say!("Messages: without those of a library's own collectives.");
        }
    }

    /// What became of the run: a kernel whose result is wrong has failed, and one that was asked for and left out is missing, but
    /// for numbers of ranks that the benchmark does not have.
    fn outcome(&self, outcome: Outcome) -> Outcome {
        let mut outcome = Outcome {
            is_measured: self.kernels.iter().any(|shown| shown.launch.is_some()),
            is_judged: true,
            ..outcome
        };
        let wrong = self.kernels.iter().filter_map(|shown| {
            let why = shown.error.as_ref()?;
            Some(format!("{}: {why}", shown.name))
        });
        outcome.failed.extend(wrong);
        let absent = self.left_out.iter().filter(|one| !one.by_rule);
        let absent = absent.map(|one| format!("{} is left out: {}", one.what, one.why));
        outcome.failed.extend(absent);
        outcome
    }
}

/// The launches of a cell, one or more.
struct Repeated<'a>(&'a [Shown]);

impl Repeated<'_> {
    fn times_s(&self) -> impl Iterator<Item = f64> {
        self.0.iter().filter_map(|one| one.time_s)
    }

    /// The launch in the middle of their times, of two the longer; of those without a time the first.
    fn median(&self) -> Option<&Shown> {
        let mut timed: Vec<&Shown> = self.0.iter().filter(|one| one.time_s.is_some()).collect();
        timed.sort_by(|a, b| a.time_s.partial_cmp(&b.time_s).unwrap_or(Ordering::Equal));
        timed.get(timed.len() / 2).copied().or(self.0.first())
    }

    /// The lowest and the highest time, in seconds.
    fn ends(&self) -> Option<[f64; 2]> {
        let lowest = self.times_s().reduce(f64::min)?;
        Some([lowest, self.times_s().reduce(f64::max)?])
    }

    fn has_failed(&self) -> bool {
        self.0.iter().any(|one| one.launch.is_none())
    }
}

/// A figure with so many digits, where there is one.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"))
}

impl Shown {
    /// None of a cell that is not a kernel's.
    fn of(run: &Run, one: Repetition<'_>) -> Option<Self> {
        let cell = run.cells.iter().find(|cell| cell.id == one.result.cell)?;
        let asked = asked(cell)?;
        let mut evidence = one.launch.evidence.clone();
        let kernel = std::mem::take(&mut evidence.application).kernel;
        let ended = evidence.ranks.end.as_ref().map(ToString::to_string);
        let untold = || kernel.is_none().then(|| "rank 0 reported no kernel".into());
        let error = one.result.failure.clone().or(ended).or_else(untold);
        let run_of = kernel.as_ref().and_then(median);
        let verified = kernel.iter().flat_map(|kernel| &kernel.runs);
        let problem = &asked.problem;
        Some(Self {
            name: name(run, cell, &asked),
            network: cell.factors.network.clone(),
            load: cell.factors.load.clone(),
            kernel: problem.kernel().name(),
            class: problem.class().map(|class| class.name()),
            size: asked.size.clone(),
            extent: problem.extent(),
            iterations: problem.iterations(),
            ranks: asked.ranks,
            arrays_bytes: problem.memory_bytes(asked.ranks),
            path: path(cell, &asked),
            time_s: run_of.map(|run| run.time_ns as f64 * 1e-9),
            mop_per_s: run_of.map(|run| run.mop_per_s),
            communicating_share: run_of.map(KernelRun::communicating_share),
            verified: verified.map(|run| run.verified).min().flatten(),
            took_s: one.launch.took_ns as f64 * 1e-9,
            launch: kernel,
            evidence,
            error,
            asked,
        })
    }

    /// Whether its library made collectives of its own, whose messages nobody counts.
    fn has_collectives(&self) -> bool {
        let mut ranks = self.launch.iter().flat_map(|launch| &launch.ranks);
        ranks.any(|rank| {
            rank.phases
                .iter()
                .any(|phase| !phase.collectives.is_empty())
        })
    }

    /// The block of the median run, of which age its hosts were, and where the time went.
    fn print(&self, phases: bool) {
        let Some((block, launch)) = self.block().zip(self.launch.as_ref()) else {
            return;
        };
        say!("{}\n\n{block}", self.name);
        if let Some(age) = &launch.age {
            say!(" Historical hosts: {}\n", age.told());
        }
        if phases {
            say!("{}\n", phases::tables(launch));
        }
    }

    fn block(&self) -> Option<String> {
        let run = median(self.launch.as_ref()?)?;
        let problem = &self.asked.problem;
        let block = Block {
            kernel: problem.kernel(),
            class: problem.class(),
            size: &self.extent,
            iterations: self.iterations,
            seconds: run.time_ns as f64 * 1e-9,
            ranks: self.ranks,
            operations: problem.operations(),
            outcome: &launch::outcome(run),
        };
        Some(block.to_string())
    }

    /// Its line of the table.
    fn line(&self) -> Vec<String> {
        let median = self.launch.as_ref().and_then(median);
        let share = self.communicating_share.map(|share| share * 100.0);
        vec![
            self.kernel.to_string(),
            self.size.clone(),
            self.ranks.to_string(),
            self.path.clone(),
            number(self.time_s, 4),
            number(self.mop_per_s, 1),
            format!("{} %", number(share, 1)),
            median.map_or_else(|| "-".into(), |run| run.sent.total.messages.to_string()),
            match (&self.launch, self.verified) {
                (None, _) => "FAILED",
                (_, Some(true)) => "yes",
                (_, Some(false)) => "NO",
                (_, None) => "no value known",
            }
            .into(),
        ]
    }
}

/// The run in the middle of their times; of two the longer.
fn median(kernel: &Kernel) -> Option<&KernelRun> {
    let mut runs: Vec<&KernelRun> = kernel.runs.iter().collect();
    runs.sort_by_key(|run| run.time_ns);
    runs.get(runs.len() / 2).copied()
}
