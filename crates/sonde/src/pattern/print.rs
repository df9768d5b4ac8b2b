//! What a pattern says in the terminal.
//!
//! Model:   flows of a set stand one a line, and all together above them; a matrix is its hosts with their medians, and the verdict; an
//!          incast is the canary's latency for each number of senders. Everything is worked out from the run.
//! Checked: `tests/lab_pattern.rs`.

use super::incast;
use crate::document::{self, Command, Document};
use crate::events::Event;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::flows;
use crate::measure;
use crate::networks;
use sonde_measure::{Factors, Quantity, ResultRow, Run, Status};
use sonde_report::{Severity, View, is_verdict, matrix, rate, time};
use sonde_sys::tell;
use sonde_units::plain;
use std::collections::BTreeMap;

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
        match pattern {
            Some(matrix::ALL_PAIRS) => println!("{}", hosts_table(run)),
            _ => println!("{}", flows_table(run)),
        }
        for line in ratios(run).iter().chain(&said) {
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
            .map(|times| format!("a host whose streams are slower by {}", less(times))),
        seen.host_latency
            .map(|times| format!("one whose latency is {times:.1} times that of others")),
        seen.host_loss
            .map(|part| format!("one that loses {} of segments", sonde_report::share(part))),
        seen.way_stream.map(|times| {
            format!(
                "one way between two, of those measured, slower by {}",
                less(times)
            )
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| {
        format!(
            "would have been seen, four times of five: {}",
            parts.join("; ")
        )
    })
}

/// Each host of a matrix with the medians of its pairs.
fn hosts_table(run: &Run) -> String {
    let Some(matrix) = matrix::matrix(run) else {
        return "Nothing was measured.".into();
    };
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let lines = matrix.hosts.iter().enumerate().map(|(host, name)| {
        let of = |is: &dyn Fn(&matrix::MatrixPair) -> bool,
                  value: &dyn Fn(&matrix::MatrixPair) -> Option<f64>| {
            let pairs = matrix.pairs.iter().filter(|pair| is(pair));
            middle(pairs.filter_map(value).collect())
        };
        let from = |pair: &matrix::MatrixPair| pair.src == host;
        let to = |pair: &matrix::MatrixPair| pair.dst == host;
        let shown = |value: Option<f64>, show: fn(f64) -> String| {
            value.map_or_else(|| "-".to_owned(), show)
        };
        vec![
            name.clone(),
            shown(of(&from, &|pair| Some(pair.latency_ns?.0)), time),
            shown(of(&from, &|pair| Some(pair.tail_ns?.0)), time),
            shown(of(&to, &|pair| Some(pair.rate_bps?.0)), rate),
            shown(of(&from, &|pair| Some(pair.rate_bps?.0)), rate),
            shown(of(&to, &|pair| Some(pair.duplex_bps?.0)), rate),
            shown(of(&from, &|pair| Some(pair.duplex_bps?.0)), rate),
            matrix
                .pairs
                .iter()
                .filter(|pair| from(pair))
                .count()
                .to_string(),
        ]
    });
    let heads = [
        "host",
        "latency",
        "tail",
        "to it",
        "from it",
        "duplex to",
        "duplex from",
        "pairs",
    ];
    networks::table(&heads, lines.collect::<Vec<_>>()).to_string()
}

/// The rows that flows and sums are about.
fn main_rows(run: &Run) -> Vec<(Factors, ResultRow)> {
    let cells: BTreeMap<&str, &Factors> = run
        .cells
        .iter()
        .map(|cell| (cell.id.as_str(), &cell.factors))
        .collect();
    run.rows()
        .into_iter()
        .filter_map(|row| {
            let factors = cells.get(row.cell.as_str())?;
            (row.quantity == factors.main().0).then(|| ((*factors).clone(), row))
        })
        .collect()
}

fn shown(quantity: Quantity, value: Option<f64>) -> String {
    value.map_or_else(
        || "-".into(),
        |value| match quantity {
            Quantity::ThroughputBps => rate(value),
            _ => time(value),
        },
    )
}

fn flows_table(run: &Run) -> String {
    let mut rows = main_rows(run);
    // All together before each flow.
    rows.sort_by_key(|(factors, _)| factors.knobs.get("flow").map(String::as_str) != Some("all"));
    let knob =
        |factors: &Factors, name: &str| factors.knobs.get(name).cloned().unwrap_or("-".into());
    let lines = rows.iter().map(|(factors, row)| {
        let figure = |value: Option<sonde_measure::Number>| shown(row.quantity, value.map(|n| n.0));
        vec![
            knob(factors, "pattern"),
            factors.mode.clone().unwrap_or_default(),
            knob(factors, "senders"),
            knob(factors, "flow"),
            figure(row.p50),
            figure(row.min),
            figure(row.max),
            figure(row.p99),
            match (row.ci95_low, row.ci95_high) {
                (Some(low), Some(high)) => {
                    format!("{} to {}", figure(Some(low)), figure(Some(high)))
                }
                _ => "-".into(),
            },
            row.launches.to_string(),
            match row.status {
                Status::Measured => String::new(),
                _ => row.reason.clone().unwrap_or_default(),
            },
        ]
    });
    let heads = [
        "pattern",
        "kind",
        "senders",
        "flow",
        "median",
        "min",
        "max",
        "p99",
        "95 % interval",
        "launches",
        "why not",
    ];
    networks::table(&heads, lines.collect::<Vec<_>>()).to_string()
}

/// Natural ring, random ring and ping-pong beside each other, where they were measured.
fn ratios(run: &Run) -> Vec<String> {
    let mut found: BTreeMap<(String, String), BTreeMap<&str, f64>> = BTreeMap::new();
    for (factors, row) in main_rows(run) {
        let Some(p50) = row.p50.map(|p50| p50.0) else {
            continue;
        };
        let pattern = factors.knobs.get("pattern").map_or("", String::as_str);
        let flow = factors.knobs.get("flow").map_or("", String::as_str);
        // Rates of one flow: a ring's is its sum over its flows.
        let flows: f64 = run
            .repetitions_of(&row.cell)
            .next()
            .and_then(|one| one.launch.evidence.flow.flows)
            .map_or(1.0, |flows| flows as f64);
        let value = if row.quantity == Quantity::ThroughputBps {
            p50 / flows
        } else {
            p50
        };
        let key = (
            factors.mode.clone().unwrap_or_default(),
            factors.network.clone(),
        );
        let name = match pattern {
            "natural-ring" if flow == "all" => "natural",
            _ if pattern.starts_with("random-ring") && flow == "all" => "random",
            "h1>h2" if flow != "all" => "ping-pong",
            _ => continue,
        };
        found.entry(key).or_default().insert(name, value);
    }
    let line = |((mode, network), of): ((String, String), BTreeMap<&str, f64>)| {
        let (natural, random) = (of.get("natural")?, of.get("random")?);
        let alone = of.get("ping-pong").map_or_else(
            || "measure h1>h2 too for the ratio to one pair alone".to_owned(),
            |alone| {
                format!(
                    "one pair alone is 1, natural {:.2}, random {:.2} of it",
                    natural / alone,
                    random / alone
                )
            },
        );
        Some(format!(
            "{mode} on {network}, a flow: random ring over natural ring {:.2}; {alone}",
            random / natural
        ))
    };
    found.into_iter().filter_map(line).collect()
}
