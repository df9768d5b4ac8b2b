//! `sonde report`: what runs in the store say, again and in other forms.
//!
//! Checked: the end-to-end tests of `report`.

use crate::cli;
use crate::cli::{OutputOptions, PageOptions};
use crate::document::{self, Assessed, Command, Document};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::history::HistoryOptions;
use crate::measure::command_line;
use crate::output::{self, Page, Print, say};
use crate::serve::{self, ServeOptions};
use crate::shown::Form;
use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{Run, RunState};
use sonde_record::{Judgement, LATEST, Store, StoreError};
use sonde_report::{
    Change, CompareRow, ComparedRuns, Comparison, Limits, ListedRun, PageData, Place, Served, sheet,
};
use sonde_sys::tell;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where runs are.
#[derive(Debug, Args)]
pub struct From {
    /// The run: its id or a prefix of it, its name, latest, latest~1 (the one before) [default: latest].
    run: Option<String>,
    /// The folder of the store.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = crate::cli::OUT)]
    out: PathBuf,
}

/// What to do with a run.
#[derive(Debug, Subcommand)]
pub enum ReportTask {
    /// List the runs in the store, the newest first.
    #[command(
        after_help = "Examples:\n  sonde report list -n 5\n  sonde report list --name nightly\n  sonde report list --json"
    )]
    List {
        /// The folder of the store.
        #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = crate::cli::OUT)]
        out: PathBuf,
        /// So many of them, the newest.
        #[arg(short = 'n', long, value_name = "N")]
        last: Option<usize>,
        /// Those of this name.
        #[arg(long, visible_alias = "tag", value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Show a run: on one screen where it is of `assess` or `accept`, else its tables and findings.
    #[command(
        after_help = "Examples:\n  sonde report show\n  sonde report show --findings\n  sonde report show --rows 20261121T043302Z-1f09c3"
    )]
    Show {
        #[command(flatten)]
        from: From,
        /// The tables and every finding.
        #[arg(long, conflicts_with_all = ["rows", "json", "csv"])]
        table: bool,
        /// The findings, one entry for each rule.
        #[arg(long, conflicts_with_all = ["rows", "table", "json", "csv"])]
        findings: bool,
        /// Every row.
        #[arg(long, conflicts_with_all = ["json", "csv"])]
        rows: bool,
        #[command(flatten)]
        output: OutputOptions,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Compare two runs: what became better or worse, in what they differ, and where more repetitions are needed.
    #[command(
        after_help = "Examples:\n  sonde report compare latest~1\n  sonde report compare BEFORE AFTER --fail-on-regression --threshold 5%\n  sonde report compare TCP CUBIC --ignore network,congestion --json\n  sonde report compare latest~1 --html comparison.html"
    )]
    Compare {
        /// The run to compare with, the baseline: its id or a prefix of it, its name, latest, latest~1 (the one before).
        baseline: String,
        /// The run [default: latest].
        run: Option<String>,
        /// The folder of the store.
        #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = crate::cli::OUT)]
        out: PathBuf,
        /// Ignore changes below this share.
        #[arg(long = "threshold", value_name = "SHARE", default_value = "2%", value_parser = cli::per_mille::<10_000>)]
        threshold_per_mille: u64,
        /// The change for which the needed repetitions are computed.
        #[arg(long = "detect", value_name = "SHARE", default_value = "5%", value_parser = cli::change)]
        detect_per_mille: u64,
        /// Factors in which the runs may differ: network, hosts, profile, method, wait, attachment, testbed, or a parameter.
        #[arg(long, value_name = "FACTOR,...", value_delimiter = ',')]
        ignore: Vec<String>,
        #[command(flatten)]
        output: OutputOptions,
        /// Write the comparison as one HTML file.
        #[arg(long, value_name = "FILE", value_parser = cli::page)]
        html: Option<PathBuf>,
        /// Open that comparison in the browser.
        #[arg(long)]
        open: bool,
        /// Exit with 1 where a configuration became worse.
        #[arg(long)]
        fail_on_regression: bool,
    },
    /// Tell what the same configurations gave in one run after another, where that changed, and what changed with it.
    #[command(
        after_help = "Examples:\n  sonde report history\n  sonde report history --name nightly --all\n  sonde report history --name nightly --fail-on-regression --within 2\n  sonde report history --csv --to history.csv\n  sonde report history --name nightly --html nightly.html"
    )]
    History(HistoryOptions),
    /// Write the report of a run as one HTML file.
    #[command(after_help = "Example:\n  sonde report html --to /tmp/cluster.html")]
    Html {
        #[command(flatten)]
        from: From,
        /// The file [default: beside the store].
        #[arg(long, visible_alias = "html", value_name = "FILE")]
        to: Option<PathBuf>,
        /// Open the report in the browser.
        #[arg(long)]
        open: bool,
    },
    /// Export all measurements for other programs.
    #[command(
        after_help = "Examples:\n  sonde report export --csv > rows.csv\n  sonde report export --json --to run.json\n  sonde report export --open-metrics --to /var/lib/node_exporter/sonde.prom"
    )]
    Export {
        #[command(flatten)]
        from: From,
        /// The medians as OpenMetrics, for Prometheus and its like.
        #[arg(long, conflicts_with_all = ["json", "csv"])]
        open_metrics: bool,
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Serve the reports of a store to a browser on this machine: its runs, two of them side by side, their history.
    #[command(after_help = serve::EXAMPLES)]
    Serve(ServeOptions),
    /// Print the JSON schema of all that is printed as JSON.
    #[command(after_help = "Example:\n  sonde report schema > sonde.schema.json")]
    Schema,
}

/// The runs of a store, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Runs {
    /// Each.
    runs: Vec<ListedRun>,
}

impl From {
    fn load(&self) -> Result<Run, Failure> {
        load(&self.out, self.run.as_deref())
    }

    /// Where the rest of the run is; a page only where one was written.
    fn place(&self, run: &Run) -> Place {
        let named = self.run.as_ref().map(|id| format!(" {id}"));
        let place = place(&run.head.id, &self.out);
        Place {
            page: place.page.filter(|page| Path::new(page).exists()),
            options: named.unwrap_or_default() + &place.options,
        }
    }
}

/// Where a run that was just measured is kept, with its page.
pub fn place(run: &str, out: &Path) -> Place {
    let page = out.join(format!("{run}.html"));
    let is_usual = out == Path::new(crate::cli::OUT);
    Place {
        page: Some(page.display().to_string()),
        options: match is_usual {
            true => String::new(),
            false => format!(" --out {}", out.display()),
        },
    }
}

/// A run of the store in this folder; the latest one where none is named.
pub fn load(out: &Path, id: Option<&str>) -> Result<Run, Failure> {
    let store = Store::read(out).map_err(Failure::cannot)?;
    if id.is_none() && store.latest().map_err(Failure::cannot)?.is_none() {
        return Err(Failure::cannot(format!(
            "there is no run in {}: `sonde assess` makes one",
            out.display()
        )));
    }
    let id = store.find(id.unwrap_or(LATEST)).map_err(Failure::cannot)?;
    store.load(&id).map_err(Failure::cannot)
}

/// Runs the task; the exit code.
pub fn run(task: ReportTask) -> Result<i32, Failure> {
    match task {
        ReportTask::List {
            out,
            last,
            name,
            output,
        } => list(&out, last, name.as_deref(), output.take()?),
        ReportTask::Show {
            from,
            table,
            findings,
            rows,
            output,
            page,
        } => {
            let print = output.take()?;
            let run = from.load()?;
            let width = output::width();
            let form = Form::of(table, findings);
            if print == Print::Json {
                document::print(&shown(Command::ReportShow(Assessed::of(&run)), &run))?;
            } else if print == Print::Csv {
                output::rows(&run)?;
            } else if rows {
                say!("{}", sonde_report::rows_table(&run.rows(), width));
            } else {
                crate::shown::print_again(&run, form, width, &from.place(&run));
            }
            page.taken().serve(&run, &from.out)?;
            Ok(0)
        }
        ReportTask::Compare {
            baseline,
            run,
            out,
            threshold_per_mille,
            detect_per_mille,
            ignore,
            output,
            html,
            open,
            fail_on_regression,
        } => {
            let print = output.take()?;
            let load = |run| {
                let out = out.clone();
                From { run, out }.load()
            };
            let limits = Limits {
                threshold_per_mille,
                detect_per_mille,
                ignore: ignore.into_iter().collect(),
            };
            let (a, b) = (load(Some(baseline))?, load(run)?);
            let past = crate::history::before(&out, &a, &b)?;
            let comparison =
                sonde_report::compare(&a, &b, &past, &limits).map_err(Failure::usage)?;
            match print {
                Print::Json => {
                    let command = Command::ReportCompare(&comparison);
                    let verdict = outcome(&comparison, fail_on_regression).judgement();
                    document::print(&Document::new(command, &command_line(), verdict))?;
                }
                Print::Csv => output::csv(&COMPARE_COLUMNS, &comparison.rows)?,
                Print::Text => {
                    let width = output::width();
                    let text = sonde_report::compare_table(&comparison, [&a, &b], width);
                    say!("{text}");
                }
            }
            if comparison.rows.is_empty() {
                tell!(
                    "sonde: the runs {} and {} have no measured configuration in common",
                    a.head.id,
                    b.head.id
                );
            }
            let outcome = outcome(&comparison, fail_on_regression);
            let usual = format!("compare-{}-{}.html", a.head.id, b.head.id);
            let page = Page { file: html, open };
            page.write(&out.join(usual), || {
                let names = names(&out, [&a, &b]);
                let data = ComparedRuns::of([&a, &b], names, comparison, &limits);
                sonde_report::page(PageData::Compared(&data), Served::No)
            })?;
            Ok(outcome.code())
        }
        ReportTask::History(options) => crate::history::run(options),
        ReportTask::Html { from, to, open } => {
            let run = from.load()?;
            let usual = || from.out.join(format!("{}.html", run.head.id));
            let file = Some(to.unwrap_or_else(usual));
            Page { file, open }.serve(&run, &from.out)?;
            Ok(0)
        }
        ReportTask::Serve(options) => serve::run(&options),
        ReportTask::Schema => {
            document::print_schema();
            Ok(0)
        }
        ReportTask::Export {
            from,
            open_metrics: true,
            output,
        } => {
            output.take()?;
            let text = sonde_report::open_metrics(&from.load()?);
            say!("{}", text.trim_end());
            Ok(0)
        }
        ReportTask::Export { from, output, .. } => export(&from, &output),
    }
}

/// A whole run, down to its samples, or its rows. It goes out piece by piece: it may be large.
fn export(from: &From, output: &OutputOptions) -> Result<i32, Failure> {
    let print = output.form()?;
    if print == Print::Text {
        return Err(Failure::usage(
            "an export has a form: write `--csv` for the rows, `--json` for everything, or `--open-metrics`",
        ));
    }
    let run = from.load()?;
    output.take()?;
    let mut sink = BufWriter::new(output::Writer);
    let written = match print {
        Print::Csv => sonde_record::export_csv(&run, &mut sink),
        _ => sonde_record::export_json(shown(Command::ReportExport, &run), &run, &mut sink),
    };
    // What could not be written was said, and sets the exit code.
    drop(written.and_then(|()| Ok(sink.flush()?)));
    Ok(0)
}

/// The columns of `report compare --csv`.
const COMPARE_COLUMNS: [&str; 21] = [
    "network",
    "probe",
    "mode",
    "path",
    "method",
    "wait",
    "load",
    "knobs",
    "size_bytes",
    "quantity",
    "launches_a",
    "launches_b",
    "p50_a",
    "p50_b",
    "ratio",
    "ratio_low",
    "ratio_high",
    "p",
    "equal_runs_apart",
    "change",
    "launches_wanted",
];

/// The document of a run that was measured before.
fn shown<'a>(command: Command<'a>, run: &Run) -> Document<'a> {
    document::of_run(command, run, Judgement::none("a report makes no judgement"))
}

/// What became of a comparison: undecided cells are inconclusive.
fn outcome(comparison: &Comparison, fail_on_regression: bool) -> Outcome {
    let of = |change| {
        let rows = comparison.rows.iter();
        rows.filter(move |row| row.change == change)
            .map(CompareRow::named)
    };
    let worse = of(Change::Worse).filter(|_| fail_on_regression);
    Outcome {
        is_measured: !comparison.rows.is_empty(),
        is_judged: true,
        failed: worse.map(|cell| format!("{cell} became worse")).collect(),
        inconclusive: of(Change::Unsure)
            .map(|cell| format!("{cell} has too few repetitions"))
            .collect(),
        ..Outcome::default()
    }
}

/// The columns of `report list --csv`.
const LIST_COLUMNS: [&str; 6] = [
    "run",
    "name",
    "began_unix_ns",
    "ended_unix_ns",
    "state",
    "command",
];

/// The runs of a store, the newest first; a run that was named again has its last name.
///
/// # Errors
/// The store cannot be read.
pub fn listed(store: &Store) -> Result<Vec<ListedRun>, StoreError> {
    let names = store.names()?;
    let name_of = |id: &str| {
        let mut of = names.iter().rev();
        of.find(|one| one.run == id).map(|one| one.name.clone())
    };
    let heads = store.runs()?.into_iter().rev();
    Ok(heads
        .map(|head| ListedRun::of(&head, name_of(&head.id)))
        .collect())
}

/// What runs are called; a store that cannot be read any more names none.
fn names(out: &Path, runs: [&Run; 2]) -> [Option<String>; 2] {
    let all = Store::read(out).and_then(|store| listed(&store));
    let all = all.unwrap_or_default();
    runs.map(|run| {
        let one = all.iter().find(|one| one.run == run.head.id);
        one.and_then(|one| one.name.clone())
    })
}

fn list(out: &Path, last: Option<usize>, name: Option<&str>, print: Print) -> Result<i32, Failure> {
    let store = Store::read(out).map_err(Failure::cannot)?;
    let runs = listed(&store).map_err(Failure::cannot)?.into_iter();
    let runs = runs.filter(|run| name.is_none() || run.name.as_deref() == name);
    let runs: Vec<ListedRun> = runs.take(last.unwrap_or(usize::MAX)).collect();
    match print {
        Print::Json => {
            let runs = Runs { runs };
            let verdict = Judgement::none("a list makes no judgement");
            let command = Command::ReportList(&runs);
            document::print(&Document::new(command, &command_line(), verdict))?;
        }
        Print::Csv => output::csv(&LIST_COLUMNS, &runs)?,
        Print::Text if runs.is_empty() => match name {
            Some(name) => say!("There is no run of the name {name} in {}.", out.display()),
            None => say!(
                "There is no run in {}: `sonde assess` makes one.",
                out.display()
            ),
        },
        Print::Text => {
            let heads = ["run", "name", "began, UTC", "took", "state", "command"];
            let lines = runs.iter().map(line);
            let sheet = sheet(&heads, lines).worded(heads.len()).loose();
            say!("{}", sheet.text(output::width()));
        }
    }
    Ok(0)
}

/// A run as a line of the list.
fn line(run: &ListedRun) -> Vec<String> {
    let state = match run.state {
        RunState::Open => "open",
        RunState::Complete => "complete",
        RunState::Partial => "partial",
    };
    let took = run
        .ended_unix_ns
        .and_then(|end| end.checked_sub(run.began_unix_ns));
    vec![
        run.run.clone(),
        run.name.clone().unwrap_or_else(|| "-".into()),
        sonde_report::utc(run.began_unix_ns),
        took.map_or_else(|| "-".into(), sonde_report::lasted),
        state.into(),
        run.command.clone(),
    ]
}
