//! Messages of programs that were sent without what these compute, as a table: their times, and what was counted of them.
//!
//! Units:   milliseconds, bytes, messages of all ranks together.
//! Checked: `messages_are_told_with_their_statistic`.

use sonde_measure::{Number, Quantity, ResultRow, Run, Status};

use super::{DASH, Sheet, lost, none_lost, reasons, scaled, with, wrapped};
use crate::index::{Index, MESSAGES};
use sonde_units::plain;

const HEADS: [&str; 14] = [
    "messages of",
    "network",
    "path",
    "completion",
    "with",
    "ranks",
    "load",
    "time\nms",
    "95 %\nms",
    "lost\n%",
    "messages\n ",
    "bytes\nMB",
    "mean\nB",
    "median\nB",
];
const NETWORK: usize = 1;
const WAIT: usize = 3;
const WITH: usize = 4;
const LOAD: usize = 6;
const LOST: usize = 9;

/// The messages, a line a cell, and why others were not sent. `None` where none were asked for.
pub fn messages_table(run: &Run, width: usize) -> Option<String> {
    let index = Index::new(run);
    let rows = index.rows.iter();
    let rows: Vec<&ResultRow> = rows
        .filter(|row| row.probe == MESSAGES && row.quantity == Quantity::ReplayNs)
        .collect();
    let lines: Vec<Vec<String>> = rows.iter().map(|row| line(&index, row)).collect();
    let first = lines.first()?.clone();
    let is = |column: usize, text: &str| (column, lines.iter().all(|line| line[column] == text));
    let marked = [
        (LOST, none_lost(&lines, LOST)),
        is(LOAD, "idle"),
        is(WITH, DASH),
        is(WAIT, &first[WAIT]),
        is(NETWORK, &first[NETWORK]),
    ];
    let mut sheet = Sheet {
        heads: HEADS.map(Into::into).to_vec(),
        lines,
        keys: LOAD + 1,
        first: 4,
        words: LOAD + 1,
        loose: false,
    };
    sheet.leave_out_marked(marked);
    let legend = "Messages of a program without its computation. Time: from the first step to the end of the last one at the longest \
        rank, the median of all repetitions. Columns to the right are exact counts (median length within 1.6 %).";
    let mut text = format!("{}\n\n{}", sheet.text(width), wrapped(legend, width, ""));
    let not_sent: Vec<ResultRow> = rows
        .into_iter()
        .filter(|row| row.status != Status::Measured)
        .cloned()
        .collect();
    for why in reasons(&not_sent) {
        text += &format!("\n{}", wrapped(&why, width, ""));
    }
    Some(text)
}

fn line(index: &Index<'_>, row: &ResultRow) -> Vec<String> {
    let mut others = row.knobs.clone();
    let mut named = |name: &str| others.remove(name).map(|text| plain(&text));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| DASH.into());
    let of = or_dash(named("of"));
    let mut started = index.launches(&row.cell);
    let started =
        || started.find_map(|launch| launch.evidence.ranks.count.map(|ranks| ranks.to_string()));
    let ranks = or_dash(named("ranks").or_else(started));
    let millis = |ns: Option<Number>| scaled(ns.map(|ns| ns.0), 1e6, 4);
    let interval = match (row.ci95_low, row.ci95_high) {
        (Some(_), Some(_)) => format!("{} – {}", millis(row.ci95_low), millis(row.ci95_high)),
        _ => DASH.into(),
    };
    let beside = |quantity, unit, digits| match row.status {
        Status::Measured => scaled(index.beside(row, quantity), unit, digits),
        _ => DASH.into(),
    };
    vec![
        of,
        plain(&row.network),
        plain(&row.path),
        plain(row.wait.as_deref().unwrap_or(DASH)),
        with(&others),
        ranks,
        plain(row.load.as_deref().unwrap_or("idle")),
        millis(row.p50),
        interval,
        lost(index, &row.cell),
        beside(Quantity::Messages, 1.0, 1),
        beside(Quantity::MessageBytes, 1e6, 4),
        beside(Quantity::MessageBytesMean, 1.0, 4),
        beside(Quantity::MessageBytesMedian, 1.0, 1),
    ]
}
