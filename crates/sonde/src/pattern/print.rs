//! What a pattern says in the terminal beside the table of its flows.
//!
//! Model:   a matrix has its verdict; an incast is the canary's latency for each number of senders. Everything is worked out from the
//!          run.
//! Checked: `tests/lab_pattern.rs`.

use super::{AllPairs, incast};
use crate::document::{self, Command, Document};
use crate::events::Event;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::flows;
use crate::measure;
use crate::output::{self, Print, say};
use crate::require::Judgements;
use sonde_measure::Run;
use sonde_record::Judged;
use sonde_report::{Severity, View, is_verdict, matrix};
use sonde_sys::tell;
use sonde_units::plain;

/// Prints the run, in the form that was asked for.
pub(super) fn all(
    run: &Run,
    task: &measure::Task,
    ended: &Outcome,
    (all_pairs, judgements): (Option<&AllPairs>, &Judgements),
) -> Result<(), Failure> {
    let patterns = run.cells.iter().map(|cell| &cell.factors.knobs);
    let pattern = patterns
        .map(|knobs| knobs.get("pattern").map_or("", String::as_str))
        .next();
    let view = View::of(run);
    let verdicts: Vec<_> = view
        .findings
        .iter()
        .filter(|finding| is_verdict(&finding.rule))
        .collect();
    let mut said = match (pattern, all_pairs) {
        (_, Some(all_pairs)) => verdict_lines(all_pairs, &verdicts),
        (Some("incast"), None) => incast::lines(run, run.head.seed),
        _ => Vec::new(),
    };
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
            ..document::of_run(Command::Probe, run, ended.judgement_with(judgements))
        })?;
    } else {
        let table = sonde_report::flows_table(run, output::width());
        say!("{}", table.as_deref().unwrap_or("Nothing was measured."));
        for line in &said {
            say!("{}", plain(line));
        }
        if let Some(text) = measure::requirements_text(judgements) {
            say!("{text}");
        }
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

fn verdict_lines(all_pairs: &AllPairs, verdicts: &[&sonde_report::Finding]) -> Vec<String> {
    let mut lines = Vec::new();
    for one in verdicts {
        lines.push(format!("verdict: [{}] {}", one.rule, one.sentence));
        if let Some(evidence) = one.arithmetic.as_ref().filter(|text| !text.is_empty()) {
            lines.push(format!("  evidence: {evidence}"));
        }
        if let Some(remedy) = &one.remedy {
            lines.push(format!("  remedy: {remedy}"));
        }
    }
    if lines.is_empty() {
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

/// The smallest faults that the matrix would have shown, of those that it measured.
pub(super) fn could_have_seen(run: &Run) -> Option<String> {
    let seen = matrix::sensitivity(run, &flows::retested())?;
    let less = |times: f64| sonde_report::share(1.0 - 1.0 / times);
    let parts = [
        seen.host_stream
            .map(|times| format!("a host whose streams are {} slower", less(times))),
        seen.host_latency
            .map(|times| format!("a host whose latency is {times:.1} times that of others")),
        seen.host_loss.map(|part| {
            format!(
                "a host that loses {} of segments",
                sonde_report::share(part)
            )
        }),
        seen.way_stream.map(|times| {
            format!(
                "one direction between two of the measured hosts {} slower",
                less(times)
            )
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
