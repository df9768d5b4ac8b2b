//! How far the figures can be trusted, and what is not there.
//!
//! Model:   `not-measured`: rows that failed or were skipped, by network and reason, and cells without any row's figure.
//!          `launches-missing`: launches that failed or were not made, of cells that others measured.
//!          `interval-not-reached`: main rows whose interval of the median is wider than 5 % of it on the farther side.
//!          `few-launches`: main rows from fewer than six launches, which have no interval at all. None of these is ever
//!          left out.
//! Source:  Hoefler & Belli, SC'15, rules 4 and 5; N28. Six launches are the fewest whose extremes hold the median with 95 %.
//! Checked: `wide_intervals_are_counted`, `two_launches_have_no_interval`, `what_is_missing_is_named`,
//!          `lost_launches_are_counted`.

use std::collections::BTreeMap;

use sonde_measure::{ResultRow, Status};

use super::{Finding, Severity};
use crate::format::{share, significant};
use crate::index::{Index, interval, is_main, p50, words};

const WIDE: f64 = 0.05;
/// The fewest launches that have an interval.
pub(crate) const LAUNCHES_MIN: u64 = 6;

/// The larger distance from the median to an end of its interval, over the median.
pub(crate) fn half_width(row: &ResultRow) -> Option<f64> {
    let (low, high) = interval(row)?;
    let centre = p50(row);
    (centre > 0.0).then(|| (centre - low).max(high - centre) / centre)
}

/// `interval-not-reached`.
pub(super) fn wide(index: &Index<'_>) -> Option<Finding> {
    let widths: Vec<(f64, &ResultRow)> = index
        .rows
        .iter()
        .filter(|row| row.status == Status::Measured && is_main(row))
        .filter_map(|row| Some((half_width(row)?, row)))
        .collect();
    let wide = widths.iter().filter(|(width, _)| *width > WIDE).count();
    let (worst, row) = widths
        .iter()
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .filter(|(width, _)| *width > WIDE)?;
    let sentence = format!(
        "{wide} of {} medians are not known within 5 %: the widest interval, {} to one side, is that of {}.",
        widths.len(),
        share(*worst),
        words(row)
    );
    let ends = interval(row)?;
    Some(
        Finding::new("interval-not-reached", Severity::Warning, sentence)
            .since(format!(
                "95 % interval {} to {} around {}, in the unit of {}",
                significant(ends.0, 4),
                significant(ends.1, 4),
                significant(p50(row), 4),
                crate::table::quantity_name(row.quantity)
            ))
            .remedy("more launches narrow it: `--thorough`, or `--launches N`"),
    )
}

/// `few-launches`.
pub(super) fn few_launches(index: &Index<'_>) -> Option<Finding> {
    let main = || {
        index
            .rows
            .iter()
            .filter(|row| row.status == Status::Measured && is_main(row))
    };
    let few: Vec<u64> = main()
        .map(|row| row.launches)
        .filter(|launches| *launches < LAUNCHES_MIN)
        .collect();
    let (least, most) = (few.iter().min()?, few.iter().max()?);
    let from = match (least, most) {
        (1, 1) => "one launch".to_owned(),
        (least, most) if least == most => format!("{least} launches"),
        (least, most) => format!("{least} to {most} launches"),
    };
    let sentence = format!(
        "{} of {} medians come from {from}: below six there is no interval, and a difference between two of them says \
         nothing.",
        few.len(),
        main().count()
    );
    Some(
        Finding::new("few-launches", Severity::Warning, sentence).remedy(
            "six launches are the fewest with an interval: leave `--quick` out, or `--launches 6`",
        ),
    )
}

/// `not-measured`, once a network, status and reason; of an empty run, once.
pub(super) fn not_measured(index: &Index<'_>) -> Vec<Finding> {
    let mut missing: BTreeMap<(&str, &str, &str), (usize, &ResultRow)> = BTreeMap::new();
    for row in index.rows.iter().filter(|row| is_main(row)) {
        let status = match row.status {
            Status::Measured => continue,
            Status::Failed => "Not measured",
            Status::Skipped => "Left out",
        };
        let reason = row.reason.as_deref().unwrap_or("no reason is recorded");
        let reason = reason.strip_prefix("not measured: ").unwrap_or(reason);
        let entry = missing
            .entry((&row.network, status, reason))
            .or_insert((0, row));
        entry.0 += 1;
    }
    let mut all: Vec<Finding> = missing
        .into_iter()
        .map(|((network, status, reason), (rows, row))| {
            let others = match rows {
                1 => String::new(),
                rows => format!(" and {} more", rows - 1),
            };
            let sentence = format!("{status}: {}{others}: {reason}.", words(row));
            Finding::new("not-measured", Severity::Warning, sentence)
                .on_network(network)
                .remedy("`--resume` measures what is missing, once the reason is gone")
        })
        .collect();
    let any = index.rows.iter().any(|row| row.status == Status::Measured);
    if !any && all.is_empty() {
        all.push(
            Finding::new(
                "not-measured",
                Severity::Warning,
                "Nothing was measured.".into(),
            )
            .remedy("`sonde assess` measures; `--resume` goes on with a run that was interrupted"),
        );
    }
    all
}

/// `launches-missing`.
pub(super) fn launches_missing(index: &Index<'_>) -> Option<Finding> {
    let measured = |cell: &str| index.launches(cell).next().is_some();
    let missing = index.run.missing();
    let missing = missing.iter().filter(|(cell, _)| measured(cell)).count();
    if missing == 0 {
        return None;
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for launch in index.run.launches.iter().filter(|one| measured(&one.cell)) {
        if let Some(reason) = &launch.failure {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let planned: u64 = index.run.cells.iter().map(|cell| cell.launches).sum();
    let why = reasons.iter().max_by_key(|(_, times)| **times);
    let sentence = format!(
        "{missing} of {planned} launches are missing from cells that others measured{}.",
        why.map_or(String::new(), |(reason, times)| format!(
            "; {times} of them failed: {reason}"
        ))
    );
    Some(
        Finding::new("launches-missing", Severity::Warning, sentence)
            .remedy("`--resume` makes them"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    #[test]
    fn wide_intervals_are_counted() {
        let run = Runs::new()
            .network(net("wire"))
            .latency("wire", "tcp", 1, 10_000)
            .spread(0.2)
            .latency("wire", "udp", 8, 10_000)
            .done();
        let finding = wide(&Index::new(&run)).unwrap();
        assert!(
            finding.sentence.starts_with(
                "1 of 2 medians are not known within 5 %: the widest interval, 20.0 %"
            ),
            "{finding:?}"
        );
        assert!(finding.sentence.ends_with("latency of 8 B by udp on wire."));
        let run = Runs::new()
            .network(net("wire"))
            .spread(0.04)
            .latency("wire", "tcp", 1, 10_000)
            .done();
        assert_eq!(wide(&Index::new(&run)), None);
    }

    #[test]
    fn two_launches_have_no_interval() {
        let run = |launches| {
            Runs::new()
                .network(net("wire"))
                .launches(launches)
                .latency("wire", "tcp", 1, 10_000)
                .done()
        };
        let two = run(2);
        let finding = few_launches(&Index::new(&two)).unwrap();
        assert!(
            finding
                .sentence
                .starts_with("1 of 1 medians come from 2 launches:"),
            "{finding:?}"
        );
        assert_eq!(wide(&Index::new(&two)), None);
        assert_eq!(few_launches(&Index::new(&run(6))), None);
    }

    #[test]
    fn what_is_missing_is_named() {
        let run = Runs::new()
            .network(net("wire"))
            .failed_cell("wire", "tcp", "h2 is gone")
            .failed_cell("wire", "udp", "h2 is gone")
            .done();
        let all = not_measured(&Index::new(&run));
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(
            all[0].sentence,
            "Not measured: latency of 8 B by tcp on wire and 1 more: 6 failed: h2 is gone."
        );
        let run = Runs::new()
            .network(net("wire"))
            .latency("wire", "tcp", 1, 10_000)
            .done();
        assert_eq!(not_measured(&Index::new(&run)), []);
    }

    #[test]
    fn lost_launches_are_counted() {
        let mut run = Runs::new()
            .network(net("wire"))
            .latency("wire", "tcp", 1, 10_000)
            .done();
        assert_eq!(launches_missing(&Index::new(&run)), None);
        run.launches[4].failure = Some("h2 is gone".into());
        run.launches.pop();
        let finding = launches_missing(&Index::new(&run)).unwrap();
        assert_eq!(
            finding.sentence,
            "2 of 6 launches are missing from cells that others measured; 1 of them failed: h2 is gone."
        );
    }
}
