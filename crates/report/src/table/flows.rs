//! Many flows at once, as tables: a matrix by its hosts, other patterns by their flows, all together first.
//!
//! Units:   each figure with its own: what is a rate in one line is a time in another.
//! Checked: `flows_stand_below_their_sum`, `a_matrix_is_its_hosts`; `tests/lab_pattern.rs` of the command.

use std::collections::BTreeMap;

use sonde_measure::{Factors, Number, Quantity, ResultRow, Run, Status};
use sonde_units::plain;

use super::{DASH, Sheet, reasons, wrapped};
use crate::format::{rate, time};
use crate::index::PATTERN;
use crate::matrix::{self, ALL_PAIRS, MatrixPair};

const FLOWS: [&str; 11] = [
    "pattern",
    "network",
    "kind",
    "senders",
    "flow",
    "median",
    "least",
    "most",
    "p99",
    "95 % interval",
    "repetitions",
];
const NETWORK: usize = 1;
const SENDERS: usize = 3;
const FLOW: usize = 4;
const HOSTS: [&str; 8] = [
    "host",
    "latency",
    "tail",
    "to it",
    "from it",
    "duplex to",
    "duplex from",
    "pairs",
];

/// The flows of a run's patterns. `None` where it has none.
pub fn flows_table(run: &Run, width: usize) -> Option<String> {
    let rows = main_rows(run);
    let (matrix, others): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|(factors, _)| knob(factors, "pattern") == ALL_PAIRS);
    let mut parts = Vec::new();
    if !matrix.is_empty() {
        parts.push(hosts(run, width));
    }
    if !others.is_empty() {
        parts.push(flows(others, width));
    }
    parts.extend(ratios(run));
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The rows that flows and sums are about.
fn main_rows(run: &Run) -> Vec<(Factors, ResultRow)> {
    let cells = run.cells.iter();
    let cells: BTreeMap<&str, &Factors> = cells
        .filter(|cell| cell.factors.probe == PATTERN)
        .map(|cell| (cell.id.as_str(), &cell.factors))
        .collect();
    if cells.is_empty() {
        return Vec::new();
    }
    let of = |row: ResultRow| {
        let factors = *cells.get(row.cell.as_str())?;
        (row.quantity == factors.main().0).then(|| (factors.clone(), row))
    };
    run.rows().into_iter().filter_map(of).collect()
}

fn knob<'a>(factors: &'a Factors, name: &str) -> &'a str {
    factors.knobs.get(name).map_or(DASH, String::as_str)
}

fn flows(mut rows: Vec<(Factors, ResultRow)>, width: usize) -> String {
    // All together before each flow.
    rows.sort_by_key(|(factors, _)| knob(factors, "flow") != "all");
    let line = |(factors, row): &(Factors, ResultRow)| {
        let figure = |value: Option<Number>| match (value, row.quantity) {
            (None, _) => DASH.into(),
            (Some(value), Quantity::ThroughputBps) => rate(value.0),
            (Some(value), _) => time(value.0),
        };
        let interval = match (row.ci95_low, row.ci95_high) {
            (Some(low), Some(high)) => format!("{} to {}", figure(Some(low)), figure(Some(high))),
            _ => DASH.into(),
        };
        vec![
            plain(knob(factors, "pattern")),
            plain(&factors.network),
            plain(factors.mode.as_deref().unwrap_or(DASH)),
            plain(knob(factors, "senders")),
            plain(knob(factors, "flow")),
            figure(row.p50),
            figure(row.min),
            figure(row.max),
            figure(row.p99),
            interval,
            row.launches.to_string(),
        ]
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    let alike = |column: usize, text: &str| lines.iter().all(|line| line[column] == text);
    let marked = [
        (SENDERS, alike(SENDERS, DASH)),
        (NETWORK, alike(NETWORK, &lines[0][NETWORK])),
    ];
    let mut sheet = Sheet {
        heads: FLOWS.map(Into::into).to_vec(),
        lines,
        keys: FLOW + 1,
        first: 3,
        words: FLOW + 1,
        loose: false,
    };
    sheet.leave_out_marked(marked);
    let missing = rows.into_iter().map(|(_, row)| row);
    let missing: Vec<ResultRow> = missing
        .filter(|row| row.status != Status::Measured)
        .collect();
    let mut text = sheet.text(width);
    for why in reasons(&missing) {
        text += &format!("\n\n{}", wrapped(&why, width, ""));
    }
    text
}

/// Each host of a matrix with the medians of its pairs.
fn hosts(run: &Run, width: usize) -> String {
    let Some(matrix) = matrix::matrix(run) else {
        return "Nothing was measured.".into();
    };
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let lines = matrix.hosts.iter().enumerate().map(|(host, name)| {
        let from = |pair: &&MatrixPair| pair.src == host;
        let to = |pair: &&MatrixPair| pair.dst == host;
        let of = |is: &dyn Fn(&&MatrixPair) -> bool,
                  value: fn(&MatrixPair) -> Option<Number>,
                  show: fn(f64) -> String| {
            let pairs = matrix.pairs.iter().filter(is);
            let middle = middle(pairs.filter_map(value).map(|value| value.0).collect());
            middle.map_or_else(|| DASH.to_owned(), show)
        };
        vec![
            plain(name),
            of(&from, |pair| pair.latency_ns, time),
            of(&from, |pair| pair.tail_ns, time),
            of(&to, |pair| pair.rate_bps, rate),
            of(&from, |pair| pair.rate_bps, rate),
            of(&to, |pair| pair.duplex_bps, rate),
            of(&from, |pair| pair.duplex_bps, rate),
            matrix.pairs.iter().filter(from).count().to_string(),
        ]
    });
    let sheet = Sheet {
        heads: HOSTS.map(Into::into).to_vec(),
        lines: lines.collect(),
        keys: 1,
        first: 4,
        words: 1,
        loose: false,
    };
    let legend = "All pairs, medians of each host: one-way latency (RTT/2) of 1 B and its tail, streams to the host and from it, the \
        same with one in the other direction.";
    format!("{}\n\n{}", sheet.text(width), wrapped(legend, width, ""))
}

/// Natural ring, random ring and ping-pong beside each other, where they were measured.
fn ratios(run: &Run) -> Vec<String> {
    let mut found: BTreeMap<(String, String), BTreeMap<&str, f64>> = BTreeMap::new();
    for (factors, row) in main_rows(run) {
        let Some(p50) = row.p50.map(|p50| p50.0) else {
            continue;
        };
        let (pattern, flow) = (knob(&factors, "pattern"), knob(&factors, "flow"));
        // Rates of one flow: a ring's is its sum over its flows.
        let flows: f64 = run
            .repetitions_of(&row.cell)
            .next()
            .and_then(|one| one.launch.evidence.flow.flows)
            .map_or(1.0, |flows| flows as f64);
        let value = match row.quantity {
            Quantity::ThroughputBps => p50 / flows,
            _ => p50,
        };
        let name = match pattern {
            "natural-ring" if flow == "all" => "natural",
            _ if pattern.starts_with("random-ring") && flow == "all" => "random",
            "h1>h2" if flow != "all" => "ping-pong",
            _ => continue,
        };
        let key = (
            factors.mode.clone().unwrap_or_default(),
            factors.network.clone(),
        );
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
        Some(plain(&format!(
            "{mode} on {network}, per flow: random ring over natural ring {:.2}; {alone}",
            random / natural
        )))
    };
    found.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, all_pairs, net};

    #[test]
    fn flows_stand_below_their_sum() {
        let mut run = Runs::new()
            .network(net("lan"))
            .launches(2)
            .knob("pattern", "shift:1")
            .knob("flow", "h1>h2")
            .stream("lan", "tcp", 40_000_000)
            .knob("flow", "all")
            .stream("lan", "tcp", 80_000_000)
            .done();
        assert_eq!(flows_table(&run, 120), None, "it is no pattern");
        for cell in &mut run.cells {
            cell.factors.probe = PATTERN.into();
        }
        let text = flows_table(&run, 120).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        // Neither the network nor senders differ.
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            [
                "pattern",
                "kind",
                "flow",
                "median",
                "least",
                "most",
                "p99",
                "95",
                "%",
                "interval",
                "repetitions"
            ]
        );
        assert!(
            lines[2].contains("all") && lines[2].contains("80.00 Mb/s"),
            "{text}"
        );
        assert!(
            lines[3].contains("h1>h2") && lines[3].contains("40.00 Mb/s"),
            "{text}"
        );
        assert!(crate::has_own_tables(&run), "no line of a transport");
    }

    #[test]
    fn a_matrix_is_its_hosts() {
        let text = flows_table(&all_pairs(4), 120).unwrap();
        let hosts = text.lines().filter(|line| line.starts_with("node"));
        let hosts: Vec<&str> = hosts.collect();
        assert_eq!(hosts.len(), 4, "{text}");
        assert!(
            hosts
                .iter()
                .all(|line| line.contains("50.00 µs") && line.ends_with('3')),
            "{text}"
        );
    }
}
