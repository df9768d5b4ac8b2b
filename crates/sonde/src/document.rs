//! What each command prints with `--json`: the document that all have ([`sonde_record::Document`]), and beside it what is the
//! command's own; and the one schema of all of it.
//!
//! Model:   a variant of [`Command`] for each command, whose type stands beside what makes it; its tag is `command`. A run's rows,
//!          findings and warnings are put in here, the verdict is that of its [`Outcome`].
//! Checked: `tests/json.rs`, which holds what each command prints to the schema that `sonde report schema` prints.

use crate::accept::Accepted;
use crate::check::Check;
use crate::compare_sites::SiteChange;
use crate::doctor::{Diagnosis, leftovers::Leftovers};
use crate::downtime::Downtimes;
use crate::events::Event;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::load::{Flows, PlannedLoad};
use crate::measure::Planned;
use crate::networks::Networks;
use crate::npb::Kernels;
use crate::output;
use crate::place::Placements;
use crate::report::Runs;
use crate::sites::Sites;
use crate::sound::Checks;
use crate::stage::share::Staging;
use crate::suits::Suits;
use crate::tune::Tuned;
use crate::verify::Verified;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{Judged, Run};
use sonde_record::{DocumentFinding, Export, Judgement};
use sonde_report::{Assessment, Comparison, Contention, History, Severity};

/// A command, with what stands in its document alone.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "command")]
pub enum Command<'a> {
    /// `sonde assess`.
    #[serde(rename = "assess")]
    Assess(Assessed),
    /// `sonde accept`.
    #[serde(rename = "accept")]
    Accept(Accepted),
    /// `sonde probe` of any kind but `check`.
    #[serde(rename = "probe")]
    Probe(Probed<'a>),
    /// `--dry-run` of any of them.
    #[serde(rename = "dry run")]
    DryRun(&'a Planned<'a>),
    /// `sonde probe check`.
    #[serde(rename = "probe check")]
    ProbeCheck(&'a Checks),
    /// `sonde npb`.
    #[serde(rename = "npb")]
    Npb(&'a Kernels),
    /// `sonde contend`.
    #[serde(rename = "contend")]
    Contend(&'a Contention),
    /// `sonde stage`.
    #[serde(rename = "stage")]
    Stage(&'a Staging),
    /// `sonde suits`.
    #[serde(rename = "suits")]
    Suits(&'a Suits),
    /// `sonde load`.
    #[serde(rename = "load")]
    Load(&'a Flows),
    /// `sonde load --dry-run`.
    #[serde(rename = "load dry run")]
    LoadPlanned(&'a PlannedLoad),
    /// `sonde tune`.
    #[serde(rename = "tune")]
    Tune(&'a Tuned),
    /// `sonde place`.
    #[serde(rename = "place")]
    Place(&'a Placements),
    /// `sonde lab check`.
    #[serde(rename = "lab check")]
    LabCheck(&'a Check<'a>),
    /// `sonde lab list`.
    #[serde(rename = "lab list")]
    LabList(&'a Networks),
    /// `sonde lab list --sites`.
    #[serde(rename = "lab sites")]
    LabSites(&'a Sites),
    /// `sonde lab compare-sites`.
    #[serde(rename = "lab compare-sites")]
    LabCompareSites(&'a SiteChange),
    /// `sonde lab downtime`.
    #[serde(rename = "lab downtime")]
    LabDowntime(&'a Downtimes),
    /// `sonde doctor`.
    #[serde(rename = "doctor")]
    Doctor(&'a Diagnosis),
    /// `sonde doctor --leftovers`.
    #[serde(rename = "doctor leftovers")]
    Leftovers(&'a Leftovers),
    /// `sonde report list`.
    #[serde(rename = "report list")]
    ReportList(&'a Runs),
    /// `sonde report show`.
    #[serde(rename = "report show")]
    ReportShow(Assessed),
    /// The document within `sonde report export`.
    #[serde(rename = "report export")]
    ReportExport,
    /// `sonde report compare`.
    #[serde(rename = "report compare")]
    ReportCompare(&'a Comparison),
    /// `sonde report history`.
    #[serde(rename = "report history")]
    ReportHistory(&'a History),
}

/// What the screen of a run says.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Assessed {
    /// Its facts; null where the run is not of the main job.
    assessment: Option<Box<Assessment>>,
}

impl Assessed {
    /// Of a run.
    pub fn of(run: &Run) -> Self {
        let assessment = Assessment::is_of(run).then(|| Box::new(Assessment::of(run)));
        Self { assessment }
    }
}

/// What a probe says beside its rows.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Probed<'a> {
    /// Findings of files that were looked into (`--verify`).
    #[serde(flatten)]
    pub verified: Option<&'a Verified>,
}

/// What a command prints.
pub type Document<'a> = sonde_record::Document<Command<'a>>;

/// All that is printed as JSON.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "its schema is what is used")]
enum Printed<'a> {
    /// `--json`.
    Document(Document<'a>),
    /// A line of `--json-stream`.
    Event(Event<'a>),
    /// `sonde report export --json`.
    Export(Box<Export<Command<'a>>>),
}

impl Command<'_> {
    /// The command that measured a run, where its document has nothing of its own.
    pub fn of(run: &Run) -> Self {
        match run.head.command.split(' ').next() {
            Some("probe") => Self::Probe(Probed::default()),
            _ => Self::Assess(Assessed::of(run)),
        }
    }
}

impl Outcome {
    /// What is judged, in the document.
    pub fn judgement(&self) -> Judgement {
        let counted = self.uncertain.iter().filter(|_| self.is_strict);
        let open: Vec<String> = self.inconclusive.iter().chain(counted).cloned().collect();
        let (state, reasons) = if !self.failed.is_empty() {
            (Judged::Fail, self.failed.clone())
        } else if !self.is_measured {
            return Judgement::none("nothing could be measured");
        } else if !open.is_empty() {
            (Judged::Inconclusive, open)
        } else if self.is_judged || self.is_strict {
            (Judged::Pass, Vec::new())
        } else {
            return Judgement::none("nothing is required of it");
        };
        Judgement {
            state: Some(state),
            reasons,
            requirements: Vec::new(),
        }
    }
}

/// The document of a run.
pub fn of_run<'a>(command: Command<'a>, run: &Run, verdict: Judgement) -> Document<'a> {
    let findings = sonde_report::findings_of(run).into_iter();
    let findings = findings.map(|one| DocumentFinding {
        id: one.rule,
        severity: match one.severity {
            Severity::Note => "note",
            Severity::Advice => "advice",
            Severity::Warning => "warning",
        }
        .into(),
        network: one.network,
        path: one.path,
        sentence: one.sentence,
        figures: one.arithmetic,
        remedy: one.remedy,
    });
    Document::of(command, run, findings.collect(), verdict)
}

/// Prints a document.
///
/// # Errors
/// It holds what is not a figure.
pub fn print(document: &Document<'_>) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(document).map_err(Failure::cannot)?;
    text.push('\n');
    output::text(&text);
    Ok(())
}

/// Prints the schema of all that is printed.
pub fn print_schema() {
    let schema = sonde_record::schema::<Printed<'_>>();
    output::text(&format!("{schema:#}\n"));
}
