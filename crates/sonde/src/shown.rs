//! What a run shows on the terminal when it is over: the answer on one screen, its tables, its findings or its rows.
//!
//! Model:   the screen is for runs of the main job, of which it can say something; what else a plan measures is shown as tables. A run
//!          that is shown again has what its command printed: an acceptance its screen, patterns their verdict, a plan with requirements
//!          their results, all worked out of what is kept.
//! Checked: the end-to-end tests of `assess` and `probe`; `tests/screen.rs`, on every frozen run.

use crate::accept::Judged;
use crate::measure::requirements_text;
use crate::output::say;
use crate::pattern;
use crate::plan::Plan;
use crate::require::Judgements;
use sonde_measure::Run;
use sonde_report::{Assessment, COLUMNS, Place, Severity, View, counted, is_verdict};
use sonde_units::plain;

/// What is shown of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The answer on one screen.
    Screen,
    /// The tables, and the findings that want something done.
    Table,
    /// The findings, one entry a rule.
    Findings,
    /// Every row.
    Rows,
}

impl Form {
    /// The form that was asked for, else the screen.
    pub fn of(table: bool, findings: bool) -> Self {
        match (table, findings) {
            (true, _) => Self::Table,
            (_, true) => Self::Findings,
            _ => Self::Screen,
        }
    }

    /// The same, or tables where a run has nothing for a screen.
    pub fn for_run(self, run: &Run) -> Self {
        match self {
            Self::Screen if !Assessment::is_of(run) => Self::Table,
            form => form,
        }
    }
}

/// Prints a run as `form` says; `place` names on the screen where the rest is.
pub fn print(run: &Run, form: Form, width: usize, place: &Place) {
    match form.for_run(run) {
        Form::Screen => say!("{}", Assessment::of(run).text(place)),
        Form::Table => print_assessment(run, width),
        Form::Findings => say!("{}", sonde_report::findings_by_rule(run, width)),
        Form::Rows => print_rows(run, width),
    }
}

/// Prints a run of the store as `form` says, with what was required of it.
pub fn print_again(run: &Run, form: Form, width: usize, place: &Place) {
    let is_screen = form == Form::Screen;
    if let Some(judged) = is_screen.then(|| Judged::again(run)).flatten() {
        say!("{}", judged.text(place, None));
        return;
    }
    match form.for_run(run) {
        Form::Table => {
            print_tables(run, width);
            say!("{}", sonde_report::findings_text(&beside(run), width));
        }
        form => print(run, form, width, place),
    }
    let plan = Plan::parse(&run.head.plan).ok();
    let judgements = plan.map(|plan| Judgements::of(&plan, run));
    let required = judgements.and_then(|all| requirements_text(&all, width.min(COLUMNS)));
    if let Some(text) = required {
        say!("{text}");
    }
}

fn print_rows(run: &Run, width: usize) {
    say!("{}", sonde_report::rows_table(&run.rows(), width));
    let tables = [
        sonde_report::library_table(run, width),
        sonde_report::kernel_table(run, width),
        sonde_report::messages_table(run, width),
        sonde_report::files_table(run, width),
        sonde_report::checks_table(run, width),
        sonde_report::placements_table(run, width),
        sonde_report::flows_table(run, width),
    ];
    for table in tables.into_iter().flatten() {
        say!("\n{table}");
    }
    if let Some(anatomy) = sonde_report::anatomy_table(run, width) {
        say!("\n{anatomy}");
        let mut view = View::of(run);
        view.findings
            .retain(|finding| finding.rule == "kernel-bypass");
        if !view.findings.is_empty() {
            say!("\n{}", sonde_report::findings_text(&view, width));
        }
    }
}

fn print_assessment(run: &Run, width: usize) {
    print_tables(run, width);
    print_findings(run, width);
}

/// The tables of what was measured; the summary where anything was that has no table of its own.
pub fn print_tables(run: &Run, width: usize) {
    if !sonde_report::has_own_tables(run) {
        say!("{}", sonde_report::summary_table(run, width));
    }
    let tables = [
        sonde_report::queueing_table(run, width),
        sonde_report::library_table(run, width),
        sonde_report::kernel_table(run, width),
        sonde_report::messages_table(run, width),
        sonde_report::files_table(run, width),
        sonde_report::checks_table(run, width),
        sonde_report::placements_table(run, width),
        sonde_report::sweep_table(run, width),
        sonde_report::flows_table(run, width),
    ];
    for table in tables.into_iter().flatten() {
        say!("\n{table}\n");
    }
    for line in pattern::said(run) {
        say!("{}", plain(&line));
    }
}

/// A run with the findings that its tables do not say: the verdict on all pairs stands below that of the flows.
fn beside(run: &Run) -> View {
    let mut view = View::of(run);
    view.findings.retain(|finding| !is_verdict(&finding.rule));
    view
}

/// The findings that want something done; how many notes there are beside them.
fn print_findings(run: &Run, width: usize) {
    let mut view = beside(run);
    let all = view.findings.len();
    view.findings
        .retain(|finding| finding.severity != Severity::Note);
    let notes = all - view.findings.len();
    if !view.findings.is_empty() {
        say!("{}", sonde_report::findings_text(&view, width));
    }
    if notes > 0 {
        say!(
            "{} in the report; `sonde report show --table` prints them.",
            counted(notes as u64, "more note")
        );
    }
}
