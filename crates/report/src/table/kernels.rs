//! The kernels as tables: by place, then their times beside the reference's and a paper's, then their messages.
//!
//! Units:   seconds, millions of operations a second, per cent of the ranks' time, bytes.
//! Checked: `kernels_are_beside_their_reference_and_the_paper`, `kernels_that_were_not_run_say_why`.

use std::collections::BTreeSet;

use sonde_measure::{Number, Quantity, ResultRow, Run, Status};

use super::places::places;
use super::{DASH, Sheet, lost, none_lost, reasons, scaled, with, wrapped};
use crate::format::significant;
use crate::index::{Index, KERNEL};
use crate::kernels::{KernelRow, PrintedElsewhere, ages, elsewhere, kernels};
use sonde_units::plain;

const TIMES: [&str; 18] = [
    "kernel",
    "size",
    "network",
    "path",
    "completion",
    "with",
    "ranks",
    "hosts",
    "load",
    "time\ns",
    "95 %\ns",
    "communicating\n%",
    "lost\n%",
    "Mop/s\n ",
    "of reference\ntimes",
    "95 %\ntimes",
    "printed\ns",
    "of its own\ntimes",
];
const SIZE: usize = 1;
const NETWORK: usize = 2;
const WAIT: usize = 4;
const WITH: usize = 5;
const LOAD: usize = 8;
const LOST: usize = 12;
/// The figures of a line.
const FIGURES: usize = TIMES.len() - LOAD - 1;

const MESSAGES: [&str; 10] = [
    "kernel",
    "size",
    "ranks",
    "path",
    "messages\n ",
    "mean\nB",
    "median\nB",
    "printed\nmessages",
    "mean\nB",
    "median\nB",
];

/// The last columns of each, which are a paper's.
const PRINTED_TIMES: usize = 2;
const PRINTED_MESSAGES: usize = 3;

/// The kernels, a line a cell, and why others were not run; then their messages. `None` where none was asked for.
pub fn kernel_table(run: &Run, width: usize) -> Option<String> {
    let index = Index::new(run);
    let rows = kernels(&index);
    let not_run: Vec<ResultRow> = index
        .rows
        .iter()
        .filter(|row| row.probe == KERNEL && row.quantity == Quantity::KernelNs)
        .filter(|row| row.status != Status::Measured)
        .cloned()
        .collect();
    let mut lines: Vec<Vec<String>> = rows.iter().map(|row| times_line(&index, row)).collect();
    lines.extend(not_run.iter().map(line_without));
    let first = lines.first()?.clone();
    let is = |column: usize, text: &str| lines.iter().all(|line| line[column] == text);
    let same = |column: usize| (column, is(column, &first[column]));
    let blank = |column: usize, text: &str| (column, is(column, text));
    let marked = [
        blank(LOAD, "idle"),
        // From the right, since the others move.
        (LOST, none_lost(&lines, LOST)),
        blank(WITH, DASH),
        same(WAIT),
        same(NETWORK),
        same(SIZE),
    ];
    let mut sheet = Sheet {
        heads: TIMES.map(Into::into).to_vec(),
        lines,
        keys: LOAD + 1,
        first: 4,
        words: LOAD + 1,
        loose: false,
    };
    if rows.iter().all(|row| row.printed.is_none()) {
        sheet.cut(PRINTED_TIMES);
    }
    sheet.leave_out_marked(marked);
    let mut text = format!(
        "{}\n\n{}",
        sheet.text(width),
        wrapped(&legend(&rows), width, "")
    );
    if let Some(ages) = ages(&index, &rows) {
        text += &format!("\n{}", wrapped(&ages, width, ""));
    }
    for why in reasons(&not_run) {
        text += &format!("\n{}", wrapped(&why, width, ""));
    }
    if let Some(messages) = messages(&rows, width) {
        text += &format!("\n\n{messages}");
    }
    let elsewhere = elsewhere(&index, &rows);
    if let Some(others) = others(&elsewhere, width) {
        text += &format!("\n\n{others}");
    }
    Some(match places(&rows, &elsewhere, width) {
        Some(places) => format!("{places}\n\n{text}"),
        None => text,
    })
}

fn times_line(index: &Index<'_>, row: &KernelRow) -> Vec<String> {
    let seconds = |ns: Option<Number>| scaled(ns.map(|ns| ns.0), 1e9, 4);
    let factor = |times: Option<Number>| scaled(times.map(|times| times.0), 1.0, 3);
    let between = |low: String, high: String| match low == DASH || high == DASH {
        true => DASH.into(),
        false => format!("{low} – {high}"),
    };
    let reference = row.of_reference;
    let printed = row.printed.as_ref();
    let print = |seconds: Number| significant(seconds.0, 4);
    vec![
        plain(&row.kernel),
        plain(&row.class),
        plain(&row.network),
        plain(&row.path),
        plain(row.wait.as_deref().unwrap_or(DASH)),
        with(&row.knobs),
        row.ranks.to_string(),
        row.hosts.to_string(),
        plain(row.load.as_deref().unwrap_or("idle")),
        seconds(Some(row.time_ns)),
        between(seconds(row.ci95_low_ns), seconds(row.ci95_high_ns)),
        scaled(row.communicating_share.map(|share| share.0), 0.01, 3),
        lost(index, &row.cell),
        scaled(row.mops.map(|mops| mops.0), 1.0, 4),
        factor(reference.map(|times| times.value)),
        between(
            factor(reference.and_then(|times| times.ci95_low)),
            factor(reference.and_then(|times| times.ci95_high)),
        ),
        printed.map_or(DASH.into(), |one| match one.seconds_to {
            Some(to) => format!("{} to {}", print(one.seconds), print(to)),
            None => print(one.seconds),
        }),
        factor(printed.and_then(|one| one.of_reference)),
    ]
}

/// The line of a cell of which nothing came.
fn line_without(row: &ResultRow) -> Vec<String> {
    let mut others = row.knobs.clone();
    let mut named = |name: &str| others.remove(name).map(|text| plain(&text));
    let (kernel, class, size) = (named("kernel"), named("class"), named("size"));
    let (ranks, hosts) = (named("ranks"), named("hosts"));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| DASH.into());
    let mut line = vec![
        or_dash(kernel),
        or_dash(class.or(size)),
        plain(&row.network),
        plain(&row.path),
        plain(row.wait.as_deref().unwrap_or(DASH)),
        with(&others),
        or_dash(ranks),
        or_dash(hosts),
        plain(row.load.as_deref().unwrap_or("idle")),
    ];
    line.extend(std::iter::repeat_n(DASH.to_string(), FIGURES));
    line
}

/// What the columns are: the references and the papers by name.
fn legend(rows: &[KernelRow]) -> String {
    let mut text = "Kernels of sonde, verified against the official values of the NAS benchmarks; not NPB results. Time: of the longest \
                    rank (ft: rank 0), the median of all runs; communicating: the ranks' time in calls of the library, the rest is \
                    computing."
        .to_string();
    let named = |of: &dyn Fn(&KernelRow) -> Option<String>| -> Vec<String> {
        let all: BTreeSet<String> = rows.iter().filter_map(of).collect();
        all.into_iter().map(|one| plain(&one)).collect()
    };
    let references = named(&|row| row.reference.clone());
    if !references.is_empty() {
        text += &format!(
            " Of reference: relative to the idle time of {}.",
            references.join(", or ")
        );
    }
    let cites = named(&|row| Some(row.printed.as_ref()?.cite.clone()));
    if !cites.is_empty() {
        text += &format!(
            " Printed: {}, of machines of its time; of its own: relative to its own reference.",
            cites.join("; ")
        );
    }
    text
}

/// What ranks send, a line a kernel, size and count of ranks; paths by which they send the same share it.
fn messages(rows: &[KernelRow], width: usize) -> Option<String> {
    let mut counted: Vec<(&KernelRow, Vec<String>)> = Vec::new();
    for row in rows
        .iter()
        .filter(|row| row.messages.is_some() && row.ranks > 1)
    {
        let of = |row: &KernelRow| (row.messages, row.mean_bytes, row.median_bytes);
        let problem = |row: &KernelRow| (row.kernel.clone(), row.class.clone(), row.ranks);
        let is_same = |(one, _): &&mut (&KernelRow, Vec<String>)| {
            problem(one) == problem(row) && of(one) == of(row)
        };
        match counted.iter_mut().find(is_same) {
            Some((_, paths)) if paths.contains(&row.by()) => {}
            Some((_, paths)) => paths.push(row.by()),
            None => counted.push((row, vec![row.by()])),
        }
    }
    let (first, _) = counted.first()?;
    let mut sheet = Sheet {
        heads: MESSAGES.map(Into::into).to_vec(),
        lines: counted
            .iter()
            .map(|(row, paths)| messages_line(row, paths))
            .collect(),
        keys: 4,
        first: 3,
        words: 4,
        loose: false,
    };
    if counted
        .iter()
        .all(|(row, _)| row.printed_messages.is_none())
    {
        sheet.cut(PRINTED_MESSAGES);
    }
    sheet.leave_out_marked([(
        SIZE,
        counted.iter().all(|(row, _)| row.class == first.class),
    )]);
    let cites: BTreeSet<&str> = counted
        .iter()
        .filter_map(|(row, _)| Some(row.printed_messages.as_ref()?.cite.as_str()))
        .collect();
    let mut legend =
        "Messages of all ranks in the timed part, without a library's own collectives.".to_string();
    if !cites.is_empty() {
        let cites: Vec<&str> = cites.into_iter().collect();
        legend += &format!(" Printed: {}.", cites.join("; "));
    }
    let legend = wrapped(&legend, width, "");
    Some(format!("{}\n\n{legend}", sheet.text(width)))
}

/// What papers print of machines of other kinds.
fn others(all: &[PrintedElsewhere], width: usize) -> Option<String> {
    let first = all.first()?;
    let line = |one: &PrintedElsewhere| {
        vec![
            plain(&one.kernel),
            plain(&one.what),
            significant(one.seconds.0, 4),
            scaled(one.of_reference.map(|times| times.0), 1.0, 3),
        ]
    };
    let sheet = Sheet {
        heads: ["kernel", "machine", "printed\ns", "of its own\ntimes"]
            .map(Into::into)
            .to_vec(),
        lines: all.iter().map(line).collect(),
        keys: 2,
        first: 2,
        words: 2,
        loose: false,
    };
    let legend = format!("Printed for other machines: {}.", first.cite);
    Some(format!(
        "{}\n\n{}",
        sheet.text(width),
        wrapped(&legend, width, "")
    ))
}

fn messages_line(row: &KernelRow, paths: &[String]) -> Vec<String> {
    let figure = |value: Option<Number>| scaled(value.map(|value| value.0), 1.0, 4);
    let count = |value: Option<Number>| scaled(value.map(|value| value.0), 1.0, 1);
    let printed = row.printed_messages.as_ref();
    vec![
        plain(&row.kernel),
        plain(&row.class),
        row.ranks.to_string(),
        plain(&paths.join(", ")),
        count(row.messages),
        figure(row.mean_bytes),
        count(row.median_bytes),
        count(printed.map(|one| one.messages)),
        figure(printed.map(|one| one.mean_bytes)),
        count(printed.map(|one| one.median_bytes)),
    ]
}
