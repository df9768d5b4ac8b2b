//! What a pattern says in the terminal beside the table of its flows, when it was measured and whenever its run is shown.
//!
//! Model:   a matrix has its verdict; an incast is the canary's latency for each number of senders. Everything is worked out from the
//!          run.
//! Checked: `tests/lab_pattern.rs`.

use super::incast;
use crate::document::{self, Command, Document, Probed};
use crate::events::Event;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure;
use crate::output::{self, Print, say};
use crate::require::Judgements;
use sonde_measure::{Judged, Run};
use sonde_report::matrix::{self, AllPairs};
use sonde_report::{COLUMNS, Finding, Severity, View, is_verdict};
use sonde_sys::tell;
use sonde_units::plain;

/// What is said of the patterns of a run: the verdict on all pairs, and the factors of an incast.
pub fn said(run: &Run) -> Vec<String> {
    let is_incast = run.cells.iter().any(|cell| {
        let pattern = cell.factors.knobs.get("pattern");
        pattern.is_some_and(|pattern| pattern == "incast")
    });
    let mut lines = match AllPairs::of(run) {
        Some(all_pairs) => verdict_lines(&all_pairs, &View::of(run).findings),
        None => Vec::new(),
    };
    if is_incast {
        lines.extend(incast::lines(run, run.head.seed));
    }
    lines
}

/// Prints the run, in the form that was asked for.
pub(super) fn all(
    run: &Run,
    task: &measure::Task,
    ended: &Outcome,
    judgements: &Judgements,
) -> Result<(), Failure> {
    let mut said = said(run);
    if task.print == Print::Json || task.json_stream {
        for state in [Judged::Fail, Judged::Inconclusive] {
            said.extend(judgements.reasons(state));
        }
    }
    if task.json_stream {
        for text in run.warnings.iter().chain(&said) {
            Event::Warning { text }.say()?;
        }
    } else if task.print == Print::Csv {
        output::rows(run)?;
    } else if task.print == Print::Json {
        document::print(&Document {
            warnings: run.warnings.iter().chain(&said).cloned().collect(),
            ..document::of_run(
                Command::Probe(Probed::default()),
                run,
                ended.judgement_with(judgements),
            )
        })?;
    } else {
        let table = sonde_report::flows_table(run, output::width());
        say!("{}", table.as_deref().unwrap_or("Nothing was measured."));
        for line in &said {
            say!("{}", plain(line));
        }
        let columns = output::width().min(COLUMNS);
        if let Some(text) = measure::requirements_text(judgements, columns) {
            say!("{text}");
        }
        let view = View::of(run);
        let others: Vec<_> = view
            .findings
            .iter()
            .filter(|one| one.severity == Severity::Warning && !is_verdict(&one.rule))
            .collect();
        for finding in others {
            tell!("sonde: {}", finding.sentence);
        }
    }
    for warning in &run.warnings {
        tell!("sonde: {warning}");
    }
    Ok(())
}

fn verdict_lines(all_pairs: &AllPairs, findings: &[Finding]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_blamed = false;
    for one in findings.iter().filter(|one| is_verdict(&one.rule)) {
        // Who is set otherwise may be as good as the others.
        is_blamed |= one.rule != matrix::ODD;
        lines.push(format!("verdict: [{}] {}", one.rule, one.sentence));
        if let Some(evidence) = one.arithmetic.as_ref().filter(|text| !text.is_empty()) {
            lines.push(format!("  evidence: {evidence}"));
        }
        if let Some(remedy) = &one.remedy {
            lines.push(format!("  remedy: {remedy}"));
        }
    }
    if !is_blamed {
        let word = match all_pairs.state {
            Judged::Pass => "healthy",
            Judged::Fail => "failed",
            Judged::Inconclusive => "inconclusive",
        };
        let reasons = all_pairs.reasons.iter();
        lines.extend(reasons.map(|reason| format!("verdict: {word}: {reason}")));
    }
    let detectable = all_pairs.detectable.as_ref();
    lines.extend(detectable.map(|what| format!("detectable here (80 % power): {what}")));
    lines
}
