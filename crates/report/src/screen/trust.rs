//! How far the figures of a run can be trusted, and why.
//!
//! Model:   low: nothing was measured, the emulation was behind schedule in a quarter of its cells, or a hypervisor took 5 % of a host's CPUs.
//!          Medium: any cell was behind schedule, 1 % of the CPUs were taken, a cell has fewer repetitions than an interval needs, a quarter of the
//!          medians is not known within 5 %, repetitions are missing, or another warning stands. High: else. Where the emulation was behind
//!          schedule figures of a kind can be used if no more than a tenth of their cells is touched; rates that come within 5 % of
//!          their ceiling are not touched, since late frames can only make them lower.
//! Source:  the verdicts of the cells; the findings `stolen-time`, `few-launches` and `interval-not-reached`, of whose thresholds these are
//!          multiples.
//! Units:   cells, repetitions, parts of one.
//! Checked: the tests of `screen`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{Number, ResultRow, Status};

use crate::finding::noise::stolen_from;
use crate::finding::precision::{LAUNCHES_MIN, WIDE, half_width};
use crate::finding::{Finding, Severity, is_verdict};
use crate::format::{counted, percent};
use crate::index::{Index, is_main, p50};
use crate::matrix::is_row_of_matrix;

/// From this share of late cells on the trust is low.
pub(super) const LATE: f64 = 0.25;
/// The same of stolen CPU time.
pub(super) const STOLEN: f64 = 0.05;
/// From this share of wide intervals on it is not high.
const MANY_WIDE: f64 = 0.25;
/// Figures of a kind can be used where no more of their cells are touched.
const TOUCHED: f64 = 0.1;
/// A rate that comes so near to its ceiling was not made lower by late frames.
const NEAR: f64 = 0.95;

/// How far figures can be trusted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// Not without a look at the reasons.
    Low,
    /// With the reasons in mind.
    Medium,
    /// As they stand.
    High,
}

/// A kind of figures.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Figures {
    /// Rates of streams.
    Throughput,
    /// Rates of single messages.
    Messages,
    /// Times of messages.
    Latency,
    /// Times of first messages.
    Startup,
    /// Times of kernels.
    Kernel,
}

/// The trust in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// How far.
    pub level: TrustLevel,
    /// Cells of emulated networks that were measured.
    pub emulated: u64,
    /// Of these, cells in which the emulation was behind schedule.
    pub late: u64,
    /// The least and the most CPU time that a hypervisor took, over the networks where it took 1 % or more; null where it did not.
    pub stolen: Option<(Number, Number)>,
    /// The fewest and the most repetitions of a cell; null where nothing was measured.
    pub repetitions: Option<(u64, u64)>,
    /// Medians that are not known within 5 %.
    pub wide: u64,
    /// Medians that have an interval.
    pub intervals: u64,
    /// Repetitions that are missing or failed.
    pub missing: u64,
    /// Figures that can be used though the emulation was behind schedule.
    pub usable: Vec<Figures>,
    /// Figures that cannot.
    pub unusable: Vec<Figures>,
    /// The reasons, the weightiest first.
    pub reasons: Vec<String>,
}

impl Figures {
    fn of(row: &ResultRow) -> Option<Self> {
        match row.probe.as_str() {
            "throughput" if row.mode.as_deref() == Some("stream") => Some(Self::Throughput),
            "throughput" => Some(Self::Messages),
            "latency" => Some(Self::Latency),
            "startup" => Some(Self::Startup),
            "npb" => Some(Self::Kernel),
            _ => None,
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Throughput => "streams",
            Self::Messages => "message rates",
            Self::Latency => "latencies",
            Self::Startup => "start-ups",
            Self::Kernel => "kernels",
        }
    }
}

/// The cells of a kind of figures: emulated, late, and touched by that.
#[derive(Default)]
struct Cells<'a> {
    all: BTreeSet<&'a str>,
    late: BTreeSet<&'a str>,
    touched: BTreeSet<&'a str>,
}

impl Trust {
    pub(super) fn of(index: &Index<'_>, findings: &[Finding]) -> Self {
        let mut kinds: BTreeMap<Option<Figures>, Cells<'_>> = BTreeMap::new();
        // All pairs have a verdict of their own.
        let main = index.rows.iter().filter(|row| is_main(row));
        let main: Vec<&ResultRow> = main.filter(|row| !is_row_of_matrix(row)).collect();
        for row in &main {
            let Some(verdict) = &row.verdict else {
                continue;
            };
            let cells = kinds.entry(Figures::of(row)).or_default();
            cells.all.insert(&row.cell);
            if !verdict.kept_times() {
                cells.late.insert(&row.cell);
                let bound = super::networks::bound(index, row, index.line(row));
                if !bound.is_some_and(|bps| p50(row) >= NEAR * bps) {
                    cells.touched.insert(&row.cell);
                }
            }
        }
        let count = |of: &dyn Fn(&Cells<'_>) -> usize| kinds.values().map(of).sum::<usize>() as u64;
        let measured: Vec<&&ResultRow> = main
            .iter()
            .filter(|row| row.status == Status::Measured)
            .collect();
        let widths = measured.iter().filter_map(|row| half_width(row));
        let widths: Vec<f64> = widths.collect();
        let repetitions = measured.iter().map(|row| row.launches);
        let stolen: Vec<f64> = stolen_from(index).iter().map(|one| one.share()).collect();
        let ends = |all: &[f64]| {
            let least = all.iter().copied().min_by(f64::total_cmp)?;
            let most = all.iter().copied().max_by(f64::total_cmp)?;
            Some((Number(least), Number(most)))
        };
        let mut trust = Self {
            level: TrustLevel::High,
            emulated: count(&|cells| cells.all.len()),
            late: count(&|cells| cells.late.len()),
            stolen: ends(&stolen),
            repetitions: repetitions.clone().min().zip(repetitions.max()),
            wide: widths.iter().filter(|width| **width > WIDE).count() as u64,
            intervals: widths.len() as u64,
            missing: index.run.missing().len() as u64,
            usable: Vec::new(),
            unusable: Vec::new(),
            reasons: Vec::new(),
        };
        if trust.late > 0 {
            for (kind, cells) in &kinds {
                let touched = cells.touched.len() as f64 / cells.all.len() as f64;
                let figures = match touched <= TOUCHED {
                    true => &mut trust.usable,
                    false => &mut trust.unusable,
                };
                figures.extend(*kind);
            }
        }
        trust.judge(index, findings);
        trust
    }

    /// The level, and why it is not high.
    fn judge(&mut self, index: &Index<'_>, findings: &[Finding]) {
        let mut found: Vec<(TrustLevel, String)> = Vec::new();
        let of = |is_low: bool| match is_low {
            true => TrustLevel::Low,
            false => TrustLevel::Medium,
        };
        let Some((least, most)) = self.repetitions else {
            self.level = TrustLevel::Low;
            let why = index.rows.iter().find_map(|row| row.reason.as_deref());
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            self.reasons = vec![format!("nothing was measured{why}")];
            return;
        };
        if self.late > 0 {
            let share = self.late as f64 / self.emulated as f64;
            found.push((
                of(share >= LATE),
                format!(
                    "the emulation was behind schedule in {} of {} cells",
                    self.late, self.emulated
                ),
            ));
        }
        if let Some((least, most)) = self.stolen {
            let (low, high) = (percent(least.0), percent(most.0));
            let range = match low == high {
                true => high,
                false => format!("{low} to {high}"),
            };
            found.push((
                of(most.0 >= STOLEN),
                format!("a hypervisor took {range} % of the CPUs"),
            ));
        }
        if self.missing > 0 {
            found.push((
                TrustLevel::Medium,
                match self.missing {
                    1 => "1 repetition is missing".into(),
                    missing => format!("{missing} repetitions are missing"),
                },
            ));
        }
        if most < LAUNCHES_MIN {
            let range = repetitions(least, most);
            found.push((
                TrustLevel::Medium,
                format!("{range}: no confidence intervals"),
            ));
        } else if self.wide as f64 > MANY_WIDE * self.intervals as f64 {
            let (wide, all) = (self.wide, self.intervals);
            found.push((
                TrustLevel::Medium,
                format!("{wide} of {all} medians have a 95 % interval wider than 5 %"),
            ));
        }
        found.extend(warnings(findings));
        found.sort_by_key(|(level, _)| *level);
        let worst = found.first().map(|(level, _)| *level);
        self.level = worst.unwrap_or(TrustLevel::High);
        self.reasons = found.into_iter().map(|(_, reason)| reason).collect();
        if self.reasons.is_empty() {
            let emulated = match self.emulated {
                0 => String::new(),
                all => format!("the emulation was on schedule in all {all} cells; "),
            };
            self.reasons = vec![format!(
                "{emulated}{}, no CPU time was stolen",
                repetitions(least, most)
            )];
        }
    }
}

/// How many of each row.
fn repetitions(least: u64, most: u64) -> String {
    match least == most {
        true => counted(most, "repetition"),
        false => format!("{least} to {most} repetitions"),
    }
}

/// Warnings that have no figure of their own here: the rules by name.
fn warnings(findings: &[Finding]) -> Option<(TrustLevel, String)> {
    const TOLD: [&str; 7] = [
        "lateness",
        "stolen-time",
        "few-launches",
        "interval-not-reached",
        "launches-missing",
        "host-apart",
        "pair-apart",
    ];
    let mut rules: Vec<&str> = Vec::new();
    for finding in findings {
        let is_told = TOLD.contains(&&*finding.rule) || is_verdict(&finding.rule);
        let is_new = !is_told && !rules.contains(&&*finding.rule);
        if finding.severity == Severity::Warning && is_new {
            rules.push(&finding.rule);
        }
    }
    let told = || {
        (
            TrustLevel::Medium,
            format!("warnings: {}", rules.join(", ")),
        )
    };
    (!rules.is_empty()).then(told)
}
