//! Kernels of the NAS benchmarks: a line a cell, with what it took and where the time went.
//!
//! Units:   seconds, millions of operations a second, per cent of the ranks' time, bytes.
//! Checked: `kernels_have_a_table_of_their_own`; `crates/sonde/tests/lab_npb.rs`.

use std::collections::BTreeMap;

use sonde_record::{Quantity, ResultRow, Run, Status};

use super::{DASH, Sheet, reasons, wrapped};
use crate::format::{plain, significant};
use crate::index::{Index, KERNEL};

const HEADS: [&str; 15] = [
    "network",
    "path",
    "wait",
    "with",
    "load",
    "kernel",
    "size",
    "ranks",
    "time\ns",
    "95 %\ns",
    "Mop/s\n ",
    "communicating\n%",
    "messages\n ",
    "mean\nB",
    "median\nB",
];
const WITH: usize = 3;
const LOAD: usize = 4;
/// Knobs that have columns of their own.
const NAMED: [&str; 4] = ["kernel", "class", "size", "ranks"];

/// What kernels took, a line a cell, and why others were not run; `None` where none was asked for.
pub fn kernel_table(run: &Run, width: usize) -> Option<String> {
    let index = Index::new(run);
    let rows = index.rows.iter().filter(|row| row.probe == KERNEL);
    let rows: Vec<&ResultRow> = rows.collect();
    let of = |quantity| rows.iter().filter(move |row| row.quantity == quantity);
    let beside = |row: &ResultRow, quantity| of(quantity).find(|one| one.cell == row.cell);
    let line = |row: &&ResultRow| {
        let knob = |name: &str| row.knobs.get(name).map(|value| plain(value));
        let figure = |quantity, scale: f64| {
            let p50 = beside(row, quantity).and_then(|row| row.p50);
            p50.map_or(DASH.into(), |p50| significant(p50.0 * scale, 4))
        };
        let interval = match (row.ci95_low, row.ci95_high) {
            (Some(low), Some(high)) => {
                let [low, high] = [low, high].map(|end| significant(end.0 * 1e-9, 4));
                format!("{low} – {high}")
            }
            _ => DASH.into(),
        };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| DASH.into());
        vec![
            plain(&row.network),
            plain(&row.path),
            plain(row.wait.as_deref().unwrap_or(DASH)),
            with(&row.knobs),
            plain(row.load.as_deref().unwrap_or("idle")),
            or_dash(knob("kernel")),
            or_dash(knob("class").or_else(|| knob("size"))),
            or_dash(knob("ranks")),
            figure(Quantity::KernelNs, 1e-9),
            interval,
            figure(Quantity::MopPerS, 1.0),
            figure(Quantity::CommunicatingShare, 100.0),
            figure(Quantity::Messages, 1.0),
            figure(Quantity::MessageBytesMean, 1.0),
            figure(Quantity::MessageBytesMedian, 1.0),
        ]
    };
    let lines: Vec<Vec<String>> = of(Quantity::KernelNs).map(line).collect();
    if lines.is_empty() {
        return None;
    }
    let is_blank = |column: usize, blank: &str| lines.iter().all(|line| line[column] == blank);
    let (no_load, no_more) = (is_blank(LOAD, "idle"), is_blank(WITH, DASH));
    let mut sheet = Sheet {
        heads: HEADS.map(Into::into).to_vec(),
        lines,
        keys: 8,
        first: 3,
        words: 7,
    };
    sheet.leave_out_marked([(LOAD, no_load), (WITH, no_more)]);
    let legend = "Kernels by sonde, checked against the official values of the NAS benchmarks; no NPB results. Time: of the longest \
                  rank (ft: rank 0), the median of all runs; communicating: the ranks' time in calls of the library; messages: of \
                  all ranks in the timed part, without collectives that a library makes of its own.";
    let not_run = of(Quantity::KernelNs).filter(|row| row.status != Status::Measured);
    let not_run: Vec<ResultRow> = not_run.map(|row| (**row).clone()).collect();
    let whys = reasons(&not_run).into_iter();
    let whys = whys.map(|why| format!("\n{}", wrapped(&why, width, "")));
    Some(format!(
        "{}\n\n{}{}",
        sheet.text(width),
        wrapped(legend, width, ""),
        whys.collect::<String>()
    ))
}

/// Knobs that have no column.
fn with(knobs: &BTreeMap<String, String>) -> String {
    let others = knobs
        .iter()
        .filter(|(name, _)| !NAMED.contains(&name.as_str()));
    let others: Vec<String> = others
        .map(|(name, value)| format!("{}={}", plain(name), plain(value)))
        .collect();
    match others.is_empty() {
        true => DASH.into(),
        false => others.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    #[test]
    fn kernels_have_a_table_of_their_own() {
        let run = Runs::new()
            .network(net("ethernet-100"))
            .kernel("ethernet-100", "pvm:direct", "cg", &[1_500_000_000])
            .beside_each(Quantity::MopPerS, &[250_000])
            .beside_each(Quantity::CommunicatingShare, &[250_000])
            .done();
        let table = kernel_table(&run, 200).unwrap();
        let line = table.lines().find(|line| line.contains("pvm:direct"));
        let words: Vec<&str> = line.unwrap().split_whitespace().collect();
        let wanted = ["ethernet-100", "pvm:direct", "block", "cg", "S", "4"];
        assert_eq!(words[..6], wanted, "{table}");
        let has = |begin: &str| words[6..].iter().any(|word| word.starts_with(begin));
        assert!(has("1.5") && has("250") && has("25.0"), "{table}");
        assert!(crate::table::summary_table(&run, 200).contains("Nothing was measured"));
        let other = Runs::new()
            .network(net("a"))
            .latency("a", "tcp", 1, 9)
            .done();
        assert_eq!(kernel_table(&other, 200), None);
    }
}
