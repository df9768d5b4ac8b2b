//! `sonde report history`: what the same configurations gave in all runs of the store.
//!
//! Checked: `lab_history.rs`; `output.rs`.

use crate::cli;
use crate::cli::OutputOptions;
use crate::document::{self, Command, Document};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::command_line;
use crate::output::{self, Page, Print, say};
use clap::Args;
use serde::Serialize;
use sonde_measure::{Number, Quantity, Run, RunState};
use sonde_record::{Store, StoreError};
use sonde_report::{Chronicle, History, HistoryOfRuns, PageData, Served};
use std::path::{Path, PathBuf};

/// Of which runs, and what follows from it.
#[derive(Debug, Args)]
pub struct HistoryOptions {
    /// The folder of the store.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = crate::cli::OUT)]
    out: PathBuf,
    /// So many runs, the newest.
    #[arg(short = 'n', long, value_name = "N", default_value_t = LAST)]
    last: usize,
    /// Those of this name.
    #[arg(long, visible_alias = "tag", value_name = "NAME")]
    name: Option<String>,
    /// Changes below this share are none.
    #[arg(long = "threshold", value_name = "SHARE", default_value = "2%", value_parser = cli::per_mille::<10_000>)]
    threshold_per_mille: u64,
    /// List the configurations that did not change, too.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    all: bool,
    /// Exit with 1 where a configuration became worse within the newest runs.
    #[arg(long)]
    fail_on_regression: bool,
    /// How many runs those are.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        requires = "fail_on_regression"
    )]
    within: u64,
    #[command(flatten)]
    output: OutputOptions,
    /// Write the history as one HTML file.
    #[arg(long, value_name = "FILE", value_parser = cli::page)]
    html: Option<PathBuf>,
    /// Open that history in the browser.
    #[arg(long)]
    open: bool,
}

/// What a configuration gave in a run, for other programs.
#[derive(Debug, Serialize)]
struct Line<'a> {
    run: &'a str,
    began_unix_ns: u64,
    configuration: &'a str,
    quantity: Quantity,
    launches: u64,
    p50: Number,
    /// The number of its level, from 0.
    level: usize,
}

const COLUMNS: [&str; 7] = [
    "run",
    "began_unix_ns",
    "configuration",
    "quantity",
    "launches",
    "p50",
    "level",
];

/// Prints the history; the exit code.
///
/// # Errors
/// The store cannot be read, or has no such run.
pub fn run(options: HistoryOptions) -> Result<i32, Failure> {
    let print = options.output.take()?;
    let history = read(&options)?;
    let outcome = outcome(&history, &options);
    match print {
        Print::Json => {
            let command = Command::ReportHistory(&history);
            document::print(&Document::new(
                command,
                &command_line(),
                outcome.judgement(),
            ))?;
        }
        Print::Csv => output::csv(&COLUMNS, &lines(&history))?,
        Print::Text => {
            let width = output::width();
            say!(
                "{}",
                sonde_report::history_text(&history, options.all, width)
            );
        }
    }
    let name = options.name.clone();
    let usual = match &name {
        None => "history.html".into(),
        Some(name) => format!("history-{name}.html"),
    };
    let page = Page {
        file: options.html,
        open: options.open,
    };
    page.write(&options.out.join(usual), || {
        let data = HistoryOfRuns::of(name, history);
        sonde_report::page(PageData::History(&data), Served::No)
    })?;
    Ok(outcome.code())
}

/// The newest runs that have ended, one at a time in memory.
fn read(options: &HistoryOptions) -> Result<History, Failure> {
    let store = Store::read(&options.out).map_err(Failure::cannot)?;
    let name = options.name.as_deref();
    let ids = of_name(&store, name, options.last).map_err(Failure::cannot)?;
    if ids.is_empty() {
        return Err(Failure::cannot(nothing(name, &options.out)));
    }
    let mut chronicle = Chronicle::default();
    for id in &ids {
        chronicle.add(&store.load(id).map_err(Failure::cannot)?);
    }
    Ok(chronicle.history(options.threshold_per_mille))
}

/// Why there is no history.
pub fn nothing(name: Option<&str>, out: &Path) -> String {
    let of = name.map_or(String::new(), |name| format!(" of the name {name}"));
    format!(
        "there is no run{of} that has ended in {}: `sonde report list` names what there is",
        out.display()
    )
}

/// So many runs are a history where nothing else is said.
pub const LAST: usize = 100;

/// The newest `last` runs that have ended, of this name or of any, the oldest first.
///
/// # Errors
/// The store cannot be read.
pub fn of_name(store: &Store, name: Option<&str>, last: usize) -> Result<Vec<String>, StoreError> {
    let names = store.names()?;
    ended(store, last, |id| {
        // A run that was named again has its last name, as in the list.
        let mut of = names.iter().rev();
        name.is_none_or(|name| {
            of.find(|one| one.run == id)
                .is_some_and(|last| last.name == name)
        })
    })
}

/// The newest `last` of the wanted runs that have ended, the oldest first.
fn ended(
    store: &Store,
    last: usize,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<String>, StoreError> {
    let heads = store.runs()?;
    let mut ids: Vec<String> = (heads.into_iter())
        .filter(|head| head.state != RunState::Open && wanted(&head.id))
        .map(|head| head.id)
        .collect();
    Ok(ids.split_off(ids.len().saturating_sub(last)))
}

/// So many runs say how far apart equal ones are.
const EQUAL_RUNS: usize = 30;

/// Of the newest runs of the store that have ended those on the hosts of `a`, without `b`: `a` is the last.
///
/// # Errors
/// The store cannot be read.
pub fn before(out: &Path, a: &Run, b: &Run) -> Result<Chronicle, Failure> {
    let store = Store::read(out).map_err(Failure::cannot)?;
    let ids = others(&store, [&a.head.id, &b.head.id]).map_err(Failure::cannot)?;
    chronicle(a, &ids, |id| store.load(id)).map_err(Failure::cannot)
}

/// The newest runs of the store that have ended, without these.
///
/// # Errors
/// The store cannot be read.
pub fn others(store: &Store, without: [&str; 2]) -> Result<Vec<String>, StoreError> {
    ended(store, EQUAL_RUNS, |id| !without.contains(&id))
}

/// Of these runs those on the hosts of `a`, and `a` as the last.
///
/// # Errors
/// One of them cannot be loaded.
pub fn chronicle(
    a: &Run,
    ids: &[String],
    load: impl Fn(&str) -> Result<Run, StoreError>,
) -> Result<Chronicle, StoreError> {
    let mut chronicle = Chronicle::default();
    let hosts =
        |run: &Run| -> Vec<String> { run.hosts.iter().map(|one| one.name.clone()).collect() };
    for id in ids {
        let run = load(id)?;
        if hosts(&run) == hosts(a) {
            chronicle.add(&run);
        }
    }
    chronicle.add(a);
    Ok(chronicle)
}

/// What became worse fails where that was asked for; too few runs leave it open.
fn outcome(history: &History, options: &HistoryOptions) -> Outcome {
    let is_judged = options.fail_on_regression;
    let worse = history.worse_within(options.within);
    let short = is_judged && history.is_short();
    Outcome {
        is_measured: !history.configurations.is_empty(),
        is_judged,
        failed: (worse.iter().filter(|_| is_judged))
            .map(|one| format!("{} became worse", one.name))
            .collect(),
        inconclusive: short
            .then(|| history.sentence.clone())
            .into_iter()
            .collect(),
        ..Outcome::default()
    }
}

fn lines(history: &History) -> Vec<Line<'_>> {
    let of = |one: &'_ sonde_report::Configuration| {
        let levels = one.changes.iter().map(|change| change.run);
        levels.collect::<Vec<u64>>()
    };
    let configurations = history.configurations.iter();
    let lines = configurations.flat_map(|one| {
        let levels = of(one);
        one.past.iter().filter_map(move |past| {
            let run = history.runs.get(past.run as usize)?;
            Some(Line {
                run: &run.run,
                began_unix_ns: run.began_unix_ns,
                configuration: &one.name,
                quantity: one.quantity,
                launches: past.launches,
                p50: past.p50,
                level: levels.iter().filter(|begin| **begin <= past.run).count(),
            })
        })
    });
    lines.collect()
}
