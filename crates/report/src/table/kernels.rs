//! The kernels as tables: their times beside the reference's and a paper's, then their messages.

use std::collections::BTreeSet;

use sonde_record::{Number, Run};

use super::{DASH, Sheet, scaled, wrapped};
use crate::format::{plain, significant};
use crate::index::Index;
use crate::kernels::{KernelRow, kernels};

const TIMES: [&str; 15] = [
    "kernel",
    "class",
    "network",
    "path",
    "ranks",
    "hosts",
    "load",
    "time\ns",
    "95 %\ns",
    "communicating\n%",
    "Mop/s\n ",
    "of reference\ntimes",
    "95 %\ntimes",
    "printed\ns",
    "of its own\ntimes",
];
const CLASS: usize = 1;
const NETWORK: usize = 2;
const LOAD: usize = 6;

const MESSAGES: [&str; 10] = [
    "kernel",
    "class",
    "ranks",
    "path",
    "messages\n ",
    "mean\nB",
    "median\nB",
    "printed\nmessages",
    "mean\nB",
    "median\nB",
];

/// The kernels, a line a cell, then their messages; `None` where none was measured.
pub fn kernels_table(run: &Run, width: usize) -> Option<String> {
    let rows = kernels(&Index::new(run));
    let first = rows.first()?;
    let mut sheet = Sheet {
        heads: TIMES.map(Into::into).to_vec(),
        lines: rows.iter().map(times_line).collect(),
        keys: LOAD + 1,
        first: 4,
        words: LOAD + 1,
    };
    sheet.leave_out_marked([
        (LOAD, rows.iter().all(|row| row.load.is_none())),
        (NETWORK, rows.iter().all(|row| row.network == first.network)),
        (CLASS, rows.iter().all(|row| row.class == first.class)),
    ]);
    let mut text = format!(
        "kernels\n{}\n\n{}",
        sheet.text(width),
        wrapped(&legend(&rows), width, "")
    );
    if let Some(messages) = messages(&rows, width) {
        text += "\n\n";
        text += &messages;
    }
    Some(text)
}

fn times_line(row: &KernelRow) -> Vec<String> {
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
        row.ranks.to_string(),
        row.hosts.to_string(),
        plain(row.load.as_deref().unwrap_or("idle")),
        seconds(Some(row.time_ns)),
        between(seconds(row.ci95_low_ns), seconds(row.ci95_high_ns)),
        scaled(row.communicating_share.map(|share| share.0), 0.01, 3),
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

/// What the columns are: the references and the papers by name.
fn legend(rows: &[KernelRow]) -> String {
    let mut text = "Medians of the timed part, of the longest rank. communicating: of the ranks' time, in calls of the library; what \
                    is left is computing."
        .to_string();
    let named = |of: &dyn Fn(&KernelRow) -> Option<String>| -> Vec<String> {
        let all: BTreeSet<String> = rows.iter().filter_map(of).collect();
        all.into_iter().map(|one| plain(&one)).collect()
    };
    let references = named(&|row| row.reference.clone());
    if !references.is_empty() {
        text += &format!(
            " of reference: over the idle time of {}.",
            references.join(", or ")
        );
    }
    let cites = named(&|row| Some(row.printed.as_ref()?.cite.clone()));
    if !cites.is_empty() {
        text += &format!(
            " printed: {}, over machines of its time; of its own: over its reference.",
            cites.join("; ")
        );
    }
    text
}

/// What ranks send, a line a kernel, class, count of ranks and path.
fn messages(rows: &[KernelRow], width: usize) -> Option<String> {
    let mut seen = BTreeSet::new();
    let counted = rows.iter().filter(|row| {
        row.messages.is_some() && seen.insert((&row.kernel, &row.class, row.ranks, &row.path))
    });
    let counted: Vec<&KernelRow> = counted.filter(|row| row.ranks > 1).collect();
    let first = counted.first()?;
    let mut sheet = Sheet {
        heads: MESSAGES.map(Into::into).to_vec(),
        lines: counted.iter().map(|row| messages_line(row)).collect(),
        keys: 4,
        first: 3,
        words: 4,
    };
    sheet.leave_out_marked([(CLASS, counted.iter().all(|row| row.class == first.class))]);
    let cites: BTreeSet<&str> = counted
        .iter()
        .filter_map(|row| Some(row.printed_messages.as_ref()?.cite.as_str()))
        .collect();
    let mut legend = "Messages of all ranks in the timed part, by their users' bytes.".to_string();
    if !cites.is_empty() {
        let cites: Vec<&str> = cites.into_iter().collect();
        legend += &format!(" printed: {}.", cites.join("; "));
    }
    let legend = wrapped(&legend, width, "");
    Some(format!("{}\n\n{legend}", sheet.text(width)))
}

fn messages_line(row: &KernelRow) -> Vec<String> {
    let figure = |value: Option<Number>| scaled(value.map(|value| value.0), 1.0, 4);
    let count = |value: Option<Number>| scaled(value.map(|value| value.0), 1.0, 1);
    let printed = row.printed_messages.as_ref();
    vec![
        plain(&row.kernel),
        plain(&row.class),
        row.ranks.to_string(),
        plain(&row.path),
        count(row.messages),
        figure(row.mean_bytes),
        figure(row.median_bytes),
        count(printed.map(|one| one.messages)),
        figure(printed.map(|one| one.mean_bytes)),
        figure(printed.map(|one| one.median_bytes)),
    ]
}
