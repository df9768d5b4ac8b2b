//! How far the figures can be trusted, and what is not there.
//!
//! Model:   `not-measured`: rows that failed or were skipped, by network and reason, and cells without any row's figure.
//!          `launches-missing`: launches that failed or were not made, of cells that others measured.
//!          `interval-not-reached`: main rows whose interval of the median is wider than 5 % of it on the farther side.
//!          `few-launches`: main rows from fewer than six launches, which have no interval at all; not those of all pairs, of which
//!          a launch has every pair and what stands out is measured again. None of these is ever left out.
//! Source:  Hoefler & Belli, SC'15, rules 4 and 5; N28. Six launches are the fewest whose extremes hold the median with 95 %.
//! Checked: `wide_intervals_are_counted`, `two_launches_have_no_interval`, `what_is_missing_is_named`,
//!          `lost_launches_are_counted`.

use std::collections::BTreeMap;

use sonde_measure::{ResultRow, Status};

use super::{Finding, Severity};
use crate::index::{Index, interval, is_main, p50};
use crate::matrix::is_row_of_matrix;
use crate::words::precision::{Few, Launches, Missing, Nothing, Wide};

pub(crate) const WIDE: f64 = 0.05;
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
        .figures()
        .filter_map(|row| Some((half_width(row)?, row)))
        .collect();
    let wide = widths.iter().filter(|(width, _)| *width > WIDE).count();
    let (worst, row) = widths
        .iter()
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .filter(|(width, _)| *width > WIDE)?;
    let found = Wide {
        wide,
        all: widths.len(),
        worst: *worst,
        row,
        ends: interval(row)?,
    };
    Some(Finding::said(
        "interval-not-reached",
        Severity::Warning,
        &found,
    ))
}

/// `few-launches`.
pub(super) fn few_launches(index: &Index<'_>) -> Option<Finding> {
    let main = || index.figures().filter(|row| !is_row_of_matrix(row));
    let few: Vec<u64> = main()
        .map(|row| row.launches)
        .filter(|launches| *launches < LAUNCHES_MIN)
        .collect();
    let found = Few {
        few: few.len(),
        all: main().count(),
        least: *few.iter().min()?,
        most: *few.iter().max()?,
    };
    Some(Finding::said("few-launches", Severity::Warning, &found))
}

/// `not-measured`, once a network, status and reason; of an empty run, once.
pub(super) fn not_measured(index: &Index<'_>) -> Vec<Finding> {
    let mut missing: BTreeMap<(&str, bool, Option<&str>), Missing<'_>> = BTreeMap::new();
    let rows = index.rows.iter().filter(|row| is_main(row));
    for row in rows.filter(|row| row.status != Status::Measured) {
        let reason = row.reason.as_deref();
        let reason = reason.map(|text| text.strip_prefix("not measured: ").unwrap_or(text));
        let failed = row.status == Status::Failed;
        let known = missing
            .entry((&row.network, failed, reason))
            .or_insert(Missing {
                status: row.status,
                row,
                rows: 0,
                reason,
            });
        known.rows += 1;
    }
    let any = index.rows.iter().any(|row| row.status == Status::Measured);
    if !any && missing.is_empty() {
        return vec![Finding::said("not-measured", Severity::Warning, &Nothing)];
    }
    let told = missing.iter().map(|((network, ..), found)| {
        Finding::said("not-measured", Severity::Warning, found).on_network(network)
    });
    told.collect()
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
    let made = index.run.repetitions().map(|one| one.result);
    for result in made.filter(|one| measured(&one.cell)) {
        if let Some(reason) = &result.failure {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let planned: u64 = index.run.cells.iter().map(|cell| cell.launches).sum();
    let why = reasons.iter().max_by_key(|(_, times)| **times);
    let found = Launches {
        missing,
        planned,
        why: why.map(|(reason, times)| (*reason, *times)),
    };
    Some(Finding::said("launches-missing", Severity::Warning, &found))
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
        assert_eq!(
            finding.sentence,
            "1 of 2 medians have a 95 % CI wider than ±5 % (worst: latency of 8 B over udp on wire, 10.00 µs, CI 10.00 µs to 12.00 µs)."
        );
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
                .starts_with("1 of 1 medians come from 2 repetitions:"),
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
            "Not measured: latency of 8 B over tcp on wire and 1 more: 6 failed: h2 is gone."
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
        run.launches[4].results[0].failure = Some("h2 is gone".into());
        run.launches.pop();
        let finding = launches_missing(&Index::new(&run)).unwrap();
        assert_eq!(
            finding.sentence,
            "2 of 6 repetitions are missing from cells that have others; 1 of them failed: h2 is gone."
        );
    }
}
