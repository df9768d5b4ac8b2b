//! `sonde npb`: the kernels as a plain benchmark, with the result block that users of the NAS benchmarks know.
//!
//! Model:   one launch for each kernel, size, number of ranks and path, with so many runs after each other by the same ranks; what
//!          is shown is the median run. One rank runs in this process, by no library, once whatever the paths: the sequential
//!          reference. What cannot be is refused before anything starts, or named and left out where others can be. A launch
//!          that fails is told, and the next goes on. Nothing is kept: plans do that, with probes of kind npb.
//!          Where it is asked for, the table of phases follows, and a file has what each rank did when.
//! Units:   seconds, millions of operations a second, shares of the ranks' time.
//! Checked: `tests/lab_npb.rs`, `tests/lab_npb_trace.rs`.

mod phases;
mod trace;

use crate::campaign::interruption;
use crate::failure::{self, Failure};
use crate::kernel::{self, Asked};
use crate::plan::Kind;
use crate::testbed::{self, HostOptions};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sonde_fleet::{Ask, Fleet, Load, RanksAsk};
use sonde_measure::{Evidence, Wait};
use sonde_measure::{npb::Kernel, npb::Run};
use sonde_message::Path;
use sonde_message::native::Memory;
use sonde_probe::library::Task as RankTask;
use sonde_probe::library::npb::TRACE_EVENTS_MAX;
use sonde_units::Span;
use sonde_workload::npb::launch::{self, Launch};
use sonde_workload::npb::result::{Block, NAME};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use trace::TraceFile;

/// What one rank is run by.
const SEQUENTIAL: &str = "sequential";

/// What to run.
pub struct Task {
    /// The kernels, with their sizes and numbers of ranks.
    pub asked: Vec<Asked>,
    /// By which libraries.
    pub paths: Vec<Path>,
    /// The hosts.
    pub testbed: (Kind, Option<String>),
    /// The lab's, where it is one.
    pub hosts: HostOptions,
    /// The network: of the lab, or `NAME=INTERFACE` of real hosts.
    pub network: Option<String>,
    /// Background traffic meanwhile.
    pub load: Option<Load>,
    /// All ranks on the first host.
    pub collapsed: bool,
    /// How ranks of the native engine wait.
    pub wait: Wait,
    /// Runs of a launch.
    pub runs: u64,
    /// The longest that a launch may take.
    pub budget: Option<Span>,
    /// Where the communication matrix goes.
    pub matrix: Option<PathBuf>,
    /// Where what each rank did when goes.
    pub trace: Option<TraceFile>,
    /// Print where the time of each rank went.
    pub phases: bool,
    /// Print JSON.
    pub json: bool,
}

/// One launch to be made; without a path it runs here.
struct Item {
    asked: Asked,
    path: Option<Path>,
}

/// What a launch gave.
struct Ran {
    kernel: Kernel,
    evidence: Evidence,
    trace: Option<String>,
}

/// What a launch gave, as it is shown.
#[derive(Debug, Serialize)]
struct Shown {
    kernel: &'static str,
    /// Null of a size of one's own.
    class: Option<&'static str>,
    /// As it was asked for.
    size: String,
    /// As results say it.
    extent: String,
    iterations: u64,
    ranks: usize,
    /// What each rank keeps in arrays, as it is told before it starts.
    arrays_bytes: u64,
    path: String,
    /// Of the median run, as the three that follow; null where the launch failed.
    time_s: Option<f64>,
    mop_per_s: Option<f64>,
    communicating_share: Option<f64>,
    /// Of all runs; null where no official value is known.
    verified: Option<bool>,
    /// Every run, and each rank of the last one.
    launch: Option<Kernel>,
    /// What is known of the library.
    evidence: Evidence,
    /// What each rank did when, packed.
    #[serde(skip)]
    trace: Option<String>,
    /// The launch with all that is around it.
    took_s: f64,
    /// Why it failed, or what is wrong; null where nothing is.
    error: Option<String>,
}

impl Shown {
    /// Whether its library made collectives of its own, whose messages nobody counts.
    fn has_collectives(&self) -> bool {
        let mut ranks = self.launch.iter().flat_map(|launch| &launch.ranks);
        ranks.any(|rank| {
            rank.phases
                .iter()
                .any(|phase| !phase.collectives.is_empty())
        })
    }
}

/// What was asked for and not run.
#[derive(Debug, Serialize)]
struct LeftOut {
    what: String,
    why: String,
    /// The benchmark has no such number of ranks.
    by_rule: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    command: &'static str,
    made_by: &'static str,
    testbed: &'static str,
    network: Option<String>,
    load: Option<String>,
    collapsed: bool,
    runs: u64,
    results: Vec<Shown>,
    left_out: Vec<LeftOut>,
}

impl Task {
    /// Does it; the exit code: 0 where all was run and is right.
    pub fn run(self) -> Result<i32, Failure> {
        let mut left_out = Vec::new();
        let mut items = self.items(&mut left_out)?;
        self.leave_out_large(&mut items, &mut left_out)?;
        for (what, is_asked) in [
            ("matrix", self.matrix.is_some()),
            ("trace", self.trace.is_some()),
        ] {
            if is_asked && items.len() != 1 {
                return Err(Failure::usage(format!(
                    "a {what} is of one launch, and these are {}: name one kernel, size, number of ranks and path",
                    items.len()
                )));
            }
        }
        let mut fleet = self.fleet(&items)?;
        if let Some(fleet) = &mut fleet {
            self.leave_out_lacking(fleet, &mut items, &mut left_out)?;
        }
        let mut document = Document {
            schema: "sonde/1",
            command: "npb",
            made_by: NAME,
            testbed: match self.testbed.0 {
                Kind::Local => "local",
                Kind::Lab => "lab",
                _ => "hosts",
            },
            network: self.network.clone(),
            load: self.load.as_ref().map(ToString::to_string),
            collapsed: self.collapsed,
            runs: self.runs,
            results: Vec::new(),
            left_out,
        };
        let is_whole = self.launches(&items, fleet.as_mut(), &mut document.results)?;
        if let Some(fleet) = fleet {
            drop(fleet.stop());
        }
        self.print(&document)?;
        self.write_matrix(&document)?;
        self.write_trace(&document)?;
        code(&document, is_whole)
    }

    /// What is to be launched: what the benchmark does not allow is left out, or refused where it is all.
    fn items(&self, left_out: &mut Vec<LeftOut>) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::new();
        for asked in &self.asked {
            if let Some(why) = asked.refused() {
                left_out.push(LeftOut {
                    what: asked.name(),
                    why,
                    by_rule: true,
                });
                continue;
            }
            let paths = self.paths.iter().map(|path| Some(*path));
            let paths: Vec<_> = match asked.ranks {
                1 => vec![None],
                _ => paths.collect(),
            };
            items.extend(paths.into_iter().map(|path| Item {
                asked: asked.clone(),
                path,
            }));
        }
        match (items.is_empty(), left_out.first()) {
            (true, Some(first)) => Err(Failure::usage(&first.why)),
            _ => {
                tell(left_out);
                Ok(items)
            }
        }
    }

    /// On this machine it is known before anything starts what there is room for.
    fn leave_out_large(
        &self,
        items: &mut Vec<Item>,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<(), Failure> {
        let is_here = matches!(self.testbed.0, Kind::Local | Kind::Lab);
        let Some(available) = sonde_sys::host::memory_available_bytes() else {
            return Ok(());
        };
        let why = |item: &Item| match item.path {
            Some(_) if !is_here => None,
            _ => item.asked.too_large(available, item.asked.ranks),
        };
        leave_out(items, left_out, why)
    }

    /// What the hosts have not: a library, or room.
    fn leave_out_lacking(
        &self,
        fleet: &mut Fleet,
        items: &mut Vec<Item>,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<(), Failure> {
        let hosts = alive(fleet);
        let mut lacking = BTreeMap::new();
        for path in &self.paths {
            if let Some(why) = fleet.lacks(*path, &hosts).map_err(Failure::cannot)? {
                lacking.insert(*path, why);
            }
        }
        leave_out(items, left_out, |item| {
            let path = item.path?;
            let no_room = || kernel::lacks_room(&item.asked, fleet, self.spread());
            lacking.get(&path).cloned().or_else(no_room)
        })
    }

    fn spread(&self) -> Option<usize> {
        self.collapsed.then_some(1)
    }

    /// The hosts, where any of these wants them.
    fn fleet(&self, items: &[Item]) -> Result<Option<Fleet>, Failure> {
        if items.iter().all(|item| item.path.is_none()) {
            return Ok(None);
        }
        let (fleet, _) =
            testbed::fleet(&self.testbed, self.hosts.clone(), self.network.as_deref())?;
        for note in fleet.notes() {
            eprintln!("sonde: {note}");
        }
        Ok(Some(fleet))
    }

    /// One after the other; whether none is missing.
    fn launches(
        &self,
        items: &[Item],
        mut fleet: Option<&mut Fleet>,
        results: &mut Vec<Shown>,
    ) -> Result<bool, Failure> {
        let interrupted = interruption()?;
        let style = ProgressStyle::with_template("{spinner} {pos} of {len} {wide_bar} {msg}")
            .map_err(Failure::cannot)?;
        let bar = ProgressBar::new(items.len() as u64).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        for item in items {
            if interrupted.load(Ordering::Relaxed) {
                bar.finish_and_clear();
                eprintln!("sonde: interrupted: what was run until then follows");
                return Ok(false);
            }
            bar.set_message(item.name());
            let shown = self.launch(item, fleet.as_deref_mut());
            bar.suspend(|| {
                if !self.json {
                    self.print_one(item, &shown);
                }
                if let Some(error) = &shown.error {
                    eprintln!("sonde: {}: {error}", item.name());
                }
            });
            results.push(shown);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(true)
    }

    fn launch(&self, item: &Item, fleet: Option<&mut Fleet>) -> Shown {
        let begin = Instant::now();
        let launched = match (item.path, fleet) {
            (Some(path), Some(fleet)) => self.among_ranks(&item.asked, path, fleet),
            _ => self.sequential(&item.asked),
        };
        let problem = &item.asked.problem;
        let mut shown = Shown {
            kernel: problem.kernel().name(),
            class: problem.class().map(|class| class.name()),
            size: item.asked.size.clone(),
            extent: problem.extent(),
            iterations: problem.iterations(),
            ranks: item.asked.ranks,
            arrays_bytes: problem.memory_bytes(item.asked.ranks),
            path: item.path_name(),
            time_s: None,
            mop_per_s: None,
            communicating_share: None,
            verified: None,
            launch: None,
            evidence: Evidence::default(),
            trace: None,
            took_s: begin.elapsed().as_secs_f64(),
            error: None,
        };
        match launched {
            Ok(ran) => {
                // A rank that did not end well was wrong in that.
                shown.error = ran
                    .kernel
                    .unverified()
                    .or_else(|| ran.evidence.ranks.end.as_ref().map(ToString::to_string));
                (shown.evidence, shown.trace) = (ran.evidence, ran.trace);
                shown.fill(ran.kernel);
            }
            Err(error) => shown.error = Some(error),
        }
        shown
    }

    /// Events of each of so many ranks that a trace has room for.
    fn events(&self, ranks: usize) -> Option<u64> {
        let events = TRACE_EVENTS_MAX / ranks as u64;
        self.trace.as_ref().map(|_| events.max(1))
    }

    /// In this process.
    fn sequential(&self, asked: &Asked) -> Result<Ran, String> {
        let mut kernel = Kernel::new(asked.problem.kernel().name(), &asked.size);
        let mut launch = Launch::new(asked.problem, asked.age(), self.events(1));
        let mut trace = None;
        for run in 1..=self.runs {
            let is_last = run == self.runs;
            let alone = Memory::all(1).into_iter();
            for mut messenger in alone {
                let ended = launch.once(&mut messenger, is_last);
                let ended = ended.map_err(|error| format!("{error}; {}", error.remedy()))?;
                if let Some(ended) = ended {
                    kernel.runs.push(ended.run);
                    (kernel.ranks, kernel.age, trace) = (ended.ranks, ended.age, ended.trace);
                }
            }
        }
        Ok(Ran {
            kernel,
            evidence: Evidence::default(),
            trace,
        })
    }

    fn among_ranks(&self, asked: &Asked, path: Path, fleet: &mut Fleet) -> Result<Ran, String> {
        let hosts = alive(fleet);
        let [src, dst, ..] = hosts[..] else {
            return Err("ranks need two hosts that are up: look at what was lost".into());
        };
        let mut job = asked.job(self.runs, self.wait, self.budget);
        if let RankTask::Npb { trace, .. } = &mut job.task {
            *trace = self.events(asked.ranks);
        }
        job.check()
            .map_err(|error| format!("{error}: {}", error.remedy()))?;
        let ask = RanksAsk {
            pair: Ask {
                terms: job.terms.clone(),
                src,
                dst,
                one_way_ns: None,
                load: self.load.clone(),
            },
            path,
            job,
            count: asked.ranks,
            settings: Vec::new(),
            spread: self.spread(),
        };
        let launched = fleet.ranks(&ask).map_err(|error| error.to_string())?;
        let mut evidence = launched.outcome.evidence;
        let told = std::mem::take(&mut evidence.application);
        Ok(Ran {
            kernel: told.kernel.ok_or("rank 0 told nothing of a kernel")?,
            evidence,
            trace: told.trace.map(|trace| trace.0),
        })
    }

    /// The block of a launch, of which age its hosts were, and where the time went.
    fn print_one(&self, item: &Item, shown: &Shown) {
        let Some((block, launch)) = block(item, shown).zip(shown.launch.as_ref()) else {
            return;
        };
        println!("{}\n\n{block}", item.name());
        if let Some(age) = &launch.age {
            println!(" Hosts of another age: {}\n", age.told());
        }
        if self.phases {
            println!("{}\n", phases::tables(launch));
        }
    }

    fn print(&self, document: &Document) -> Result<(), Failure> {
        if self.json {
            let text = serde_json::to_string_pretty(document);
            println!("{}", text.map_err(Failure::cannot)?);
            return Ok(());
        }
        let heads = [
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
        let line = |shown: &Shown| {
            let median = shown.launch.as_ref().and_then(median);
            let number = |value: Option<f64>, digits: usize| {
                value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"))
            };
            let share = shown.communicating_share.map(|share| share * 100.0);
            vec![
                shown.kernel.to_string(),
                shown.size.clone(),
                shown.ranks.to_string(),
                shown.path.clone(),
                number(shown.time_s, 4),
                number(shown.mop_per_s, 1),
                format!("{} %", number(share, 1)),
                median.map_or_else(|| "-".into(), |run| run.sent.total.messages.to_string()),
                match (&shown.launch, shown.verified) {
                    (None, _) => "FAILED",
                    (_, Some(true)) => "yes",
                    (_, Some(false)) => "NO",
                    (_, None) => "no value known",
                }
                .into(),
            ]
        };
        let lines = document.results.iter().map(line);
        println!("{}", crate::networks::table(&heads, lines));
        if self.runs > 1 {
            println!("The median of {} runs each.", self.runs);
        }
        if document.results.iter().any(Shown::has_collectives) {
            println!("Messages: without those of collectives that a library makes of its own.");
        }
        Ok(())
    }

    fn write_trace(&self, document: &Document) -> Result<(), Failure> {
        let trace = document.results.first();
        let trace = trace.and_then(|shown| shown.trace.as_ref());
        match (&self.trace, trace) {
            (Some(file), Some(trace)) => file.write(trace),
            _ => Ok(()),
        }
    }

    fn write_matrix(&self, document: &Document) -> Result<(), Failure> {
        let Some(file) = &self.matrix else {
            return Ok(());
        };
        let launch = document
            .results
            .first()
            .and_then(|shown| shown.launch.as_ref());
        let Some(matrix) = launch.and_then(Kernel::matrix) else {
            return Ok(());
        };
        std::fs::write(file, matrix.to_json()).map_err(|error| {
            Failure::cannot(format!(
                "cannot write the matrix {}: {error}",
                file.display()
            ))
        })
    }
}

impl Item {
    fn path_name(&self) -> String {
        self.path
            .map_or_else(|| SEQUENTIAL.into(), |path| path.to_string())
    }

    fn name(&self) -> String {
        format!("{} by {}", self.asked.name(), self.path_name())
    }
}

impl Shown {
    fn fill(&mut self, kernel: Kernel) {
        if let Some(run) = median(&kernel) {
            self.time_s = Some(run.time_ns as f64 * 1e-9);
            self.mop_per_s = Some(run.mop_per_s);
            self.communicating_share = Some(run.communicating_share());
        }
        let verified = kernel.runs.iter().map(|run| run.verified);
        self.verified = verified.min().flatten();
        self.launch = Some(kernel);
    }
}

/// The run in the middle of their times; of two the longer.
fn median(kernel: &Kernel) -> Option<&Run> {
    let mut runs: Vec<&Run> = kernel.runs.iter().collect();
    runs.sort_by_key(|run| run.time_ns);
    runs.get(runs.len() / 2).copied()
}

/// The block of the median run.
fn block(item: &Item, shown: &Shown) -> Option<String> {
    let run = median(shown.launch.as_ref()?)?;
    let problem = &item.asked.problem;
    let block = Block {
        kernel: problem.kernel(),
        class: problem.class(),
        size: &shown.extent,
        iterations: shown.iterations,
        seconds: run.time_ns as f64 * 1e-9,
        ranks: shown.ranks,
        operations: problem.operations(),
        outcome: &launch::outcome(run),
    };
    Some(block.to_string())
}

fn alive(fleet: &Fleet) -> Vec<usize> {
    let hosts = 0..fleet.hosts().len();
    hosts.filter(|host| fleet.alive(*host)).collect()
}

/// Takes away what cannot be; a failure where that is all.
fn leave_out(
    items: &mut Vec<Item>,
    left_out: &mut Vec<LeftOut>,
    why: impl Fn(&Item) -> Option<String>,
) -> Result<(), Failure> {
    let known = left_out.len();
    items.retain(|item| {
        let why = why(item);
        left_out.extend(why.clone().map(|why| LeftOut {
            what: item.name(),
            why,
            by_rule: false,
        }));
        why.is_none()
    });
    if let (true, Some(last)) = (items.is_empty(), left_out.last()) {
        return Err(Failure::cannot(&last.why));
    }
    tell(&left_out[known..]);
    Ok(())
}

fn tell(left_out: &[LeftOut]) {
    for one in left_out {
        eprintln!("sonde: {} is left out: {}", one.what, one.why);
    }
}

fn code(document: &Document, is_whole: bool) -> Result<i32, Failure> {
    let results = &document.results;
    if results.iter().all(|shown| shown.launch.is_none()) {
        return Err(Failure::cannot("nothing was run to its end"));
    }
    let right = results.iter().all(|shown| shown.error.is_none());
    let all = is_whole && document.left_out.iter().all(|one| one.by_rule);
    Ok(match right && all {
        true => 0,
        false => failure::UNMET,
    })
}
