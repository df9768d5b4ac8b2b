//! How far the figures of a run can be trusted, and why.
//!
//! Model:   low: nothing was measured, a disturbance leaves a quarter of the figures uncertain, or a hypervisor took 5 % of a host's CPUs.
//!          Medium: it leaves any uncertain, 1 % of the CPUs were taken, a cell has fewer repetitions than an interval needs, a quarter of the
//!          medians is not known within 5 %, repetitions are missing, or another warning stands. High: else. Where a disturbance leaves
//!          figures uncertain, those of a kind can be used if no more than a tenth of the kind is.
//! Source:  the states of the rows; the findings `stolen-time`, `few-launches` and `interval-not-reached`, of whose thresholds these are
//!          multiples.
//! Units:   figures, repetitions, parts of one.
//! Checked: the tests of `screen`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{Number, ResultRow};

use crate::finding::noise::stolen_from;
use crate::finding::precision::{LAUNCHES_MIN, WIDE, half_width};
use crate::finding::{Finding, Severity, is_verdict};
use crate::format::{counted, percent};
use crate::index::Index;
use crate::matrix::is_row_of_matrix;

/// From this share of disturbed figures on the trust is low; while they are measured, of launches in which the emulation was late.
pub(super) const LATE: f64 = 0.25;
/// The same of stolen CPU time.
pub(super) const STOLEN: f64 = 0.05;
/// From this share of wide intervals on it is not high.
const MANY_WIDE: f64 = 0.25;
/// Figures of a kind can be used where no more of them are disturbed.
const FEW: f64 = 0.1;

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
    /// Figures that were measured, one a cell.
    pub figures: u64,
    /// Of these, those that a disturbance leaves uncertain.
    pub disturbed: u64,
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
    /// Kinds of figures that can be used though some are disturbed.
    pub usable: Vec<Figures>,
    /// Kinds that cannot.
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

impl Trust {
    pub(super) fn of(index: &Index<'_>, findings: &[Finding]) -> Self {
        // All pairs have a verdict of their own.
        let figures = index.figures().filter(|row| !is_row_of_matrix(row));
        let measured: Vec<&ResultRow> = figures.collect();
        // Of each kind how many, and how many of these are disturbed.
        let mut kinds: BTreeMap<Option<Figures>, (u64, u64)> = BTreeMap::new();
        for row in &measured {
            let (all, disturbed) = kinds.entry(Figures::of(row)).or_default();
            *all += 1;
            *disturbed += u64::from(row.is_disturbed());
        }
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
            figures: measured.len() as u64,
            disturbed: kinds.values().map(|(_, disturbed)| disturbed).sum(),
            stolen: ends(&stolen),
            repetitions: repetitions.clone().min().zip(repetitions.max()),
            wide: widths.iter().filter(|width| **width > WIDE).count() as u64,
            intervals: widths.len() as u64,
            missing: index.run.missing().len() as u64,
            usable: Vec::new(),
            unusable: Vec::new(),
            reasons: Vec::new(),
        };
        if trust.disturbed > 0 {
            for (kind, (all, disturbed)) in &kinds {
                let figures = match *disturbed as f64 <= FEW * *all as f64 {
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
        if self.disturbed > 0 {
            let share = self.disturbed as f64 / self.figures as f64;
            let (some, all) = (self.disturbed, counted(self.figures, "figure"));
            found.push((
                of(share >= LATE),
                format!("a disturbance leaves {some} of {all} uncertain"),
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
            self.reasons = vec![format!(
                "no disturbance leaves any of {} uncertain; {}, no CPU time was stolen",
                counted(self.figures, "figure"),
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
        "disturbed",
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
