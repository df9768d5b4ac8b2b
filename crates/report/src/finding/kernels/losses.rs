//! `kernel-loss`: what frames that a network loses cost a kernel.
//!
//! Model:   once a network, path, class and count of ranks: the kernels of which the network lost frames, each beside its own run
//!          under the same load by the same path on another network of the run that lost fewer: the one that lost least. What
//!          is between their times is what recovery takes, where the networks differ in nothing but room.
//! Source:  U45: under extreme congestion the recovery of losses degrades performance fast.
//! Units:   shares of frames, factors between medians.
//! Checked: `lost_frames_are_held_against_a_network_that_loses_fewer`.

use sonde_measure::LineField;

use super::{Compared, Finding, KernelRow, Severity, compared, named, of, on, spread, words};
use crate::index::{Index, grouped};

/// Below this share of frames nothing is said.
const NOTEWORTHY: f64 = 1e-5;

/// Once a network, path, class and count of ranks.
pub(super) fn all(index: &Index<'_>, rows: &[KernelRow]) -> Vec<Finding> {
    let lost = |row: &KernelRow| index.lost(&row.cell);
    let key = |row: &&KernelRow| (row.idle_line(), row.class.clone(), row.ranks);
    let told = |group: Vec<&KernelRow>| {
        let losing: Vec<(&KernelRow, f64)> = group
            .into_iter()
            .filter_map(|row| Some((row, lost(row)?)))
            .filter(|(_, share)| *share >= NOTEWORTHY)
            .collect();
        let (first, _) = losing.first()?;
        let all: Vec<Compared> = losing
            .iter()
            .filter_map(|(row, own)| {
                let same = rows.iter().filter(|other| {
                    other.network != row.network
                        && (other.ranks, other.hosts) == (row.ranks, row.hosts)
                        && other.line().is_same_but(&row.line(), &[LineField::Network])
                        && other.is_like(row)
                });
                let whole = same
                    .filter_map(|other| Some((other, lost(other)?)))
                    .filter(|(_, less)| less < own)
                    .min_by(|one, other| one.1.total_cmp(&other.1))?;
                // A paper has no such network beside its own.
                Some(Compared {
                    printed: None,
                    ..compared(named(row), whole.0, row)
                })
            })
            .collect();
        let found = words::Lost {
            of: of(first),
            by: first.by(),
            shares: losing
                .iter()
                .map(|(row, share)| (named(row), *share))
                .collect(),
            all,
        };
        Some(on(
            Finding::said("kernel-loss", Severity::Note, &found),
            first,
        ))
    };
    let groups = grouped(spread(rows), key).into_iter();
    groups.filter_map(|(_, group)| told(group)).collect()
}
