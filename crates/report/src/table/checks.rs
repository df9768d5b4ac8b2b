//! What libraries were checked for, as a table: how much of each, and whether it was right.
//!
//! Units:   collective calls and messages of a launch, of all ranks together.
//! Checked: `checks_are_right_or_wrong`.

use sonde_measure::{Quantity, ResultRow, Run, Status};

use super::{DASH, Sheet, reasons, with, wrapped};
use crate::index::{CHECK, Index};
use sonde_units::plain;

const HEADS: [&str; 12] = [
    "checked",
    "ranks",
    "network",
    "completion",
    "load",
    "with",
    "left out",
    "result",
    "repetitions",
    "collectives",
    "by the library",
    "messages",
];
const NETWORK: usize = 2;
const WAIT: usize = 3;
const LOAD: usize = 4;
const LEFT_OUT: usize = 6;
const RESULT: usize = 7;

/// The checks, a line a cell, and what was wrong. `None` where none was asked for.
pub fn checks_table(run: &Run, width: usize) -> Option<String> {
    let index = Index::new(run);
    let rows = index.rows.iter();
    let rows: Vec<&ResultRow> = rows
        .filter(|row| row.probe == CHECK && row.quantity == Quantity::Checks)
        .collect();
    let lines: Vec<Vec<String>> = rows.iter().map(|row| line(&index, row)).collect();
    let first = lines.first()?.clone();
    let is = |column: usize, text: &str| (column, lines.iter().all(|line| line[column] == text));
    let marked = [
        is(LEFT_OUT, DASH),
        is(LOAD, "idle"),
        is(WAIT, &first[WAIT]),
        is(NETWORK, &first[NETWORK]),
    ];
    let mut sheet = Sheet {
        heads: HEADS.map(Into::into).to_vec(),
        lines,
        keys: RESULT + 1,
        first: 4,
        words: RESULT + 1,
        loose: false,
    };
    sheet.leave_out_marked(marked);
    let legend = "Libraries compared with what one rank computes alone. A repetition is right where no result of it was wrong.";
    let mut text = format!("{}\n\n{}", sheet.text(width), wrapped(legend, width, ""));
    let not_right: Vec<ResultRow> = rows
        .into_iter()
        .filter(|row| row.status != Status::Measured || has_failed(&index, row))
        .cloned()
        .collect();
    for why in reasons(&not_right) {
        text += &format!("\n{}", wrapped(&why, width, ""));
    }
    Some(text)
}

fn has_failed(index: &Index<'_>, row: &ResultRow) -> bool {
    let mut made = index.run.repetitions_of(&row.cell);
    made.any(|one| one.result.failure.is_some())
}

fn line(index: &Index<'_>, row: &ResultRow) -> Vec<String> {
    let mut others = row.knobs.clone();
    let ranks = others.remove("ranks").map(|text| plain(&text));
    let result = match row.status {
        Status::Skipped => "not checked",
        _ if has_failed(index, row) => "WRONG",
        Status::Measured => "right",
        Status::Failed => "not checked",
    };
    let found = index
        .run
        .repetitions_of(&row.cell)
        .map(|one| &one.launch.evidence.check)
        .find(|check| check.collectives.is_some());
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| DASH.into());
    let count = |of: Option<u64>| or_dash(of.map(|count| count.to_string()));
    let left_out = found.and_then(|check| check.left_out.as_ref());
    let left_out: Vec<String> = left_out
        .iter()
        .flat_map(|names| &names.0)
        .map(|name| plain(&name.to_string()))
        .collect();
    vec![
        plain(&row.path),
        or_dash(ranks),
        plain(&row.network),
        plain(row.wait.as_deref().unwrap_or(DASH)),
        plain(row.load.as_deref().unwrap_or("idle")),
        with(&others),
        or_dash((!left_out.is_empty()).then(|| left_out.join(", "))),
        result.into(),
        row.launches.to_string(),
        count(found.and_then(|check| check.collectives)),
        count(found.and_then(|check| check.by_library)),
        count(found.and_then(|check| check.messages)),
    ]
}
