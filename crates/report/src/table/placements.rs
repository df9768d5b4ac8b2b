//! What programs took under placements that were tried, as a table.
//!
//! Units:   milliseconds; ratios without a unit.
//! Checked: `placements_stand_beside_the_first`.

use sonde_measure::{Number, Quantity, ResultRow, Run, Status};

use super::{DASH, Sheet, reasons, scaled, with, wrapped};
use crate::index::{Index, PLACE};
use sonde_units::plain;

const HEADS: [&str; 9] = [
    "placement",
    "ranks",
    "network",
    "path",
    "with",
    "repetitions",
    "time\nms",
    "95 %\nms",
    "to the\nfirst",
];
const NETWORK: usize = 2;
const WITH: usize = 4;

/// The placements, a line a cell, and why others gave nothing. `None` where none was tried.
pub fn placements_table(run: &Run, width: usize) -> Option<String> {
    let index = Index::new(run);
    let rows = index.rows.iter();
    let rows: Vec<&ResultRow> = rows
        .filter(|row| row.probe == PLACE && row.quantity == Quantity::ProgramNs)
        .collect();
    let first = rows.first()?.p50;
    let lines: Vec<Vec<String>> = rows.iter().map(|row| line(row, first)).collect();
    let is_same = |column: usize, text: &str| lines.iter().all(|line| line[column] == text);
    let marked = [
        (WITH, is_same(WITH, DASH)),
        (NETWORK, is_same(NETWORK, &lines[0][NETWORK])),
    ];
    let mut sheet = Sheet {
        heads: HEADS.map(Into::into).to_vec(),
        lines,
        keys: WITH + 1,
        first: 4,
        words: WITH + 1,
        loose: false,
    };
    sheet.leave_out_marked(marked);
    let legend = "A program under placements of its ranks. Time: the program's own on the slowest rank, the median of all repetitions.";
    let mut text = format!("{}\n\n{}", sheet.text(width), wrapped(legend, width, ""));
    let not_tried: Vec<ResultRow> = rows
        .into_iter()
        .filter(|row| row.status != Status::Measured)
        .cloned()
        .collect();
    for why in reasons(&not_tried) {
        text += &format!("\n{}", wrapped(&why, width, ""));
    }
    Some(text)
}

fn line(row: &ResultRow, first: Option<Number>) -> Vec<String> {
    let mut others = row.knobs.clone();
    let mut named = |name: &str| others.remove(name).map(|text| plain(&text));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| DASH.into());
    let placement = or_dash(named("placement"));
    let ranks = or_dash(named("ranks"));
    let millis = |ns: Option<Number>| scaled(ns.map(|ns| ns.0), 1e6, 4);
    let interval = match (row.ci95_low, row.ci95_high) {
        (Some(_), Some(_)) => format!("{} – {}", millis(row.ci95_low), millis(row.ci95_high)),
        _ => DASH.into(),
    };
    let ratio = row.p50.zip(first.filter(|first| first.0 > 0.0));
    vec![
        placement,
        ranks,
        plain(&row.network),
        plain(&row.path),
        with(&others),
        row.launches.to_string(),
        millis(row.p50),
        interval,
        or_dash(ratio.map(|(own, first)| format!("{:.2}x", own.0 / first.0))),
    ]
}
