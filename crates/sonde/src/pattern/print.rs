//! What a pattern says in the terminal beside the table of its flows.
//!
//! Model:   a matrix has its verdict; an incast is the canary's latency for each number of senders. Everything is worked out from the
//!          run.
//! Checked: `tests/lab_pattern.rs`.

use super::incast;
use crate::document::{self, Command, Document};
use crate::events::Event;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::flows;
use crate::measure;
use sonde_measure::Run;
use sonde_report::{Severity, View, is_verdict, matrix};
use sonde_sys::tell;
use sonde_units::plain;

/// Prints the run, in the form that was asked for.
pub(super) fn all(run: &Run, task: &measure::Task, ended: &Outcome) -> Result<(), Failure> {
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
    let said = match pattern {
        Some(matrix::ALL_PAIRS) => verdict_lines(run, &verdicts),
        Some("incast") => incast::lines(run, run.head.seed),
        _ => Vec::new(),
    };
    if task.json_stream {
        for text in run.warnings.iter().chain(&said) {
            Event::Warning { text }.say()?;
        }
    } else if task.json {
        document::print(&Document {
            warnings: run.warnings.iter().chain(&said).cloned().collect(),
            ..document::of_run(Command::Probe, run, ended.judgement())
        })?;
    } else {
        let table = sonde_report::flows_table(run, measure::width());
        println!("{}", table.as_deref().unwrap_or("Nothing was measured."));
        for line in &said {
            println!("{}", plain(line));
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

fn verdict_lines(run: &Run, verdicts: &[&sonde_report::Finding]) -> Vec<String> {
    let pairs = matrix::matrix(run).map_or(0, |matrix| matrix.pairs.len());
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
        lines.push(format!(
            "verdict: healthy: of {} hosts and {pairs} ordered pairs none stands out",
            run.hosts.len()
        ));
    }
    lines.extend(could_have_seen(run));
    lines
}

/// The smallest faults that the matrix would have shown, of those that it measured.
fn could_have_seen(run: &Run) -> Option<String> {
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
    (!parts.is_empty()).then(|| format!("detectable here (80 % power): {}", parts.join("; ")))
}
