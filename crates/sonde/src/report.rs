//! `sonde report`: what runs in the store say, again and in other forms.
//!
//! Checked: the end-to-end tests of `report`.

use crate::cli;
use crate::document::{self, Assessed, Command, Document};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::{command_line, width, write_report};
use crate::networks::table;
use crate::shown::Form;
use clap::{Args, Subcommand};
use sonde_measure::{Run, RunState};
use sonde_record::{Judgement, LATEST, Store};
use sonde_report::{Change, Comparison, Limits, Place};
use sonde_sys::tell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where runs are.
#[derive(Debug, Args)]
pub struct From {
    /// The run: its id or the begin of it, latest, latest~1 (the one before) [default: latest].
    run: Option<String>,
    /// The folder of the store.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = crate::cli::OUT)]
    out: PathBuf,
}

/// What to do with a run.
#[derive(Debug, Subcommand)]
pub enum ReportTask {
    /// List the runs in the store.
    List {
        /// The folder of the store.
        #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = crate::cli::OUT)]
        out: PathBuf,
    },
    /// Show a run: on one screen where it is of `assess` or `accept`, else its tables and findings.
    #[command(
        after_help = "Examples:\n  sonde report show\n  sonde report show --findings\n  sonde report show --rows 20261121T043302Z-1f09c3"
    )]
    Show {
        #[command(flatten)]
        from: From,
        /// The tables and every finding.
        #[arg(long, conflicts_with = "rows")]
        table: bool,
        /// The findings, one entry for each rule.
        #[arg(long, conflicts_with_all = ["rows", "table"])]
        findings: bool,
        /// Every row.
        #[arg(long)]
        rows: bool,
        /// Print the results as `sonde assess --json` does.
        #[arg(long, conflicts_with_all = ["rows", "table", "findings"])]
        json: bool,
    },
    /// Compare two runs, cell by cell: what became better or worse, and where more repetitions are needed.
    #[command(
        after_help = "Examples:\n  sonde report compare latest~1\n  sonde report compare BEFORE AFTER --fail-on-regression --threshold 5%\n  sonde report compare TCP CUBIC --ignore network,congestion --json"
    )]
    Compare {
        /// The run to compare with, the baseline: its id or the begin of it, latest, latest~1 (the one before).
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
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Exit with 1 where a cell became worse.
        #[arg(long)]
        fail_on_regression: bool,
    },
    /// Write the report of a run as one HTML file.
    #[command(after_help = "Example:\n  sonde report html --to /tmp/cluster.html")]
    Html {
        #[command(flatten)]
        from: From,
        /// The file [default: beside the store].
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Export all measurements for other programs.
    #[command(
        after_help = "Examples:\n  sonde report export --csv > rows.csv\n  sonde report export --json --to run.json"
    )]
    Export {
        #[command(flatten)]
        from: From,
        #[command(flatten)]
        form: ExportForm,
        /// The file [default: standard output].
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Print the JSON schema of all that is printed as JSON.
    #[command(after_help = "Example:\n  sonde report schema > sonde.schema.json")]
    Schema,
}

/// The form of an export.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct ExportForm {
    /// The rows, as comma-separated values.
    #[arg(long)]
    csv: bool,
    /// Everything, down to the samples of each repetition.
    #[arg(long)]
    json: bool,
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
        ReportTask::List { out } => list(&Store::read(&out).map_err(Failure::cannot)?),
        ReportTask::Show {
            from,
            table,
            findings,
            rows,
            json,
        } => {
            let run = from.load()?;
            let width = width();
            let form = Form::of(table, findings);
            if json {
                document::print(&shown(Command::ReportShow(Assessed::of(&run)), &run))?;
            } else if rows {
                println!("{}", sonde_report::rows_table(&run.rows(), width));
            } else {
                crate::shown::print_again(&run, form, width, &from.place(&run));
            }
            Ok(0)
        }
        ReportTask::Compare {
            baseline,
            run,
            out,
            threshold_per_mille,
            detect_per_mille,
            ignore,
            json,
            fail_on_regression,
        } => {
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
            let comparison = sonde_report::compare(&a, &b, &limits).map_err(Failure::usage)?;
            if json {
                let command = Command::ReportCompare(&comparison);
                let verdict = outcome(&comparison, fail_on_regression).judgement();
                document::print(&Document::new(command, &command_line(), verdict))?;
            } else {
                println!("{}", sonde_report::compare_table(&comparison));
            }
            if comparison.rows.is_empty() {
                tell!(
                    "sonde: the runs {} and {} have no measured cell in common: nothing was compared; `--ignore` names factors that may differ",
                    a.head.id,
                    b.head.id
                );
            }
            Ok(outcome(&comparison, fail_on_regression).code())
        }
        ReportTask::Html { from, to } => {
            let run = from.load()?;
            let path = to.unwrap_or_else(|| from.out.join(format!("{}.html", run.head.id)));
            write_report(&run, &path).map_err(Failure::unwritten)?;
            tell!("sonde: the report is {}", path.display());
            Ok(0)
        }
        ReportTask::Schema => {
            document::print_schema()?;
            Ok(0)
        }
        ReportTask::Export { from, form, to } => {
            let run = from.load()?;
            let failure = |error: &std::io::Error| match &to {
                Some(path) => {
                    Failure::unwritten(format!("cannot write {}: {error}", path.display()))
                }
                None => Failure::of_output(error),
            };
            let mut sink: Box<dyn Write> = match &to {
                Some(path) => Box::new(BufWriter::new(
                    File::create(path).map_err(|error| failure(&error))?,
                )),
                None => Box::new(std::io::stdout().lock()),
            };
            let written = if form.csv {
                sonde_record::export_csv(&run, &mut sink)
            } else {
                sonde_record::export_json(shown(Command::ReportExport, &run), &run, &mut sink)
            };
            written
                .and_then(|()| Ok(sink.flush()?))
                .map_err(|error| failure(error.io()))?;
            Ok(0)
        }
    }
}

/// The document of a run that was measured before.
fn shown<'a>(command: Command<'a>, run: &Run) -> Document<'a> {
    document::of_run(command, run, Judgement::none("a report makes no judgement"))
}

/// What became of a comparison: undecided cells are inconclusive.
fn outcome(comparison: &Comparison, fail_on_regression: bool) -> Outcome {
    let of = |change| {
        let rows = comparison.rows.iter();
        rows.filter(move |row| row.change == change)
            .map(|row| row.cell_a.clone())
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

fn list(store: &Store) -> Result<i32, Failure> {
    let runs = store.runs().map_err(Failure::cannot)?;
    let lines = runs.iter().map(|head| {
        let state = match head.state {
            RunState::Open => "open",
            RunState::Complete => "complete",
            RunState::Partial => "partial",
        };
        vec![head.id.clone(), state.into(), head.command.clone()]
    });
    println!("{}", table(&["run", "state", "command"], lines));
    Ok(0)
}
