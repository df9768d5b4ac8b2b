//! What is required of a run: `[[require]]` of a plan, `--require` of a command line.
//!
//! Model:   a requirement bounds one statistic of one quantity, in every row that it selects. A text becomes one in [`text`] alone;
//!          what such a text leaves open, [`Requirement::scoped`] fills in from the plan, so that a printed plan has all of it. It
//!          is held against a run in [`judge`], and the result is printed by [`block`].
//! Units:   bounds in the unit of the quantity's name: nanoseconds, bits a second, parts of one.
//! Checked: the tests of its modules; `what_nothing_can_meet_is_refused`, `what_is_left_open_is_filled_in`.

mod baseline;
mod block;
mod judge;
#[cfg(test)]
pub mod testing;
mod text;

pub use baseline::Baseline;
pub use block::{entry, lines};
pub use judge::Judgements;
use text::of_file;
pub use text::requirement;

use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::plan::{Mode, Plan, ProbeKind, ProbePlan};
use serde::{Deserialize, Serialize};
use sonde_measure::{Quantity, ResultRow};
use sonde_report::{bytes, figure, share};
use std::path::Path;

/// Of which figure of a row a requirement is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    Min,
    #[default]
    P50,
    P90,
    P99,
    P999,
    Max,
    Mean,
}

impl Statistic {
    pub const ALL: [Self; 7] = [
        Self::Min,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Mean,
    ];

    /// As the fields of a row are called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
            Self::Mean => "mean",
        }
    }

    /// The share of samples that lie below it, where it is a quantile.
    pub const fn quantile(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            Self::Min | Self::Max | Self::Mean => None,
        }
    }

    /// The figure of a row.
    pub fn of(self, row: &ResultRow) -> Option<f64> {
        let figure = match self {
            Self::Min => row.min,
            Self::P50 => row.p50,
            Self::P90 => row.p90,
            Self::P99 => row.p99,
            Self::P999 => row.p999,
            Self::Max => row.max,
            Self::Mean => row.mean,
        };
        figure.map(|figure| figure.0)
    }

    const fn is_median(&self) -> bool {
        matches!(self, Self::P50)
    }
}

/// What must hold of every row that it selects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The rows' quantity, as `throughput_bps`.
    pub quantity: Quantity,
    /// Which of their figures: the median, unless it says otherwise.
    #[serde(default, skip_serializing_if = "Statistic::is_median")]
    pub statistic: Statistic,
    /// Only of this probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeKind>,
    /// Only streams, or only single messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Only by this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<AnyPath>,
    /// Only on this network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Under this load, as rows have it; without it, idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// Only of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The figure is at least this.
    #[serde(default, alias = "p50_min", skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The figure is at most this.
    #[serde(default, alias = "p50_max", skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Throughput: the figure is at least this part of the network's ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_of_ceiling: Option<f64>,
}

/// What people call the quantities that they bound, and the quantity; the first name of each is the one that is printed.
pub(super) const NAMES: [(&str, Quantity); 26] = [
    ("throughput", Quantity::ThroughputBps),
    ("bandwidth", Quantity::ThroughputBps),
    ("bw", Quantity::ThroughputBps),
    ("goodput", Quantity::ThroughputBps),
    ("latency", Quantity::LatencyNs),
    ("lat", Quantity::LatencyNs),
    ("loss", Quantity::LostShare),
    ("lost", Quantity::LostShare),
    ("startup", Quantity::StartupNs),
    ("cold-start", Quantity::StartupNs),
    ("one-way", Quantity::OneWayNs),
    ("response", Quantity::ResponseNs),
    ("service", Quantity::ServiceNs),
    ("message-rate", Quantity::RatePerS),
    ("collective", Quantity::CollectiveNs),
    ("exchange", Quantity::ExchangeNs),
    ("kernel", Quantity::KernelNs),
    ("npb", Quantity::KernelNs),
    ("mops", Quantity::MopPerS),
    ("communicating", Quantity::CommunicatingShare),
    ("retransmits", Quantity::Retransmits),
    ("reordered", Quantity::ReorderedShare),
    ("duplicated", Quantity::DuplicatedShare),
    ("late", Quantity::LateShare),
    ("cpu-src", Quantity::CpuSrcNsPerByte),
    ("cpu-dst", Quantity::CpuDstNsPerByte),
];

/// A quantity's name in rows, as `throughput_bps`.
pub(super) fn column(quantity: Quantity) -> String {
    let name = serde_json::to_value(quantity).ok();
    let name = name.as_ref().and_then(|name| name.as_str());
    name.unwrap_or_default().to_owned()
}

impl Requirement {
    /// One without scope and bound.
    pub fn new(quantity: Quantity, statistic: Statistic) -> Self {
        Self {
            quantity,
            statistic,
            probe: None,
            mode: None,
            path: None,
            network: None,
            load: None,
            size_bytes: None,
            min: None,
            max: None,
            min_of_ceiling: None,
        }
    }

    /// What it bounds, in words: `latency p99 of 1 B over tcp`.
    pub fn subject(&self) -> String {
        let named = NAMES.iter().find(|(_, of)| *of == self.quantity);
        let mut words = named.map_or_else(|| column(self.quantity), |(name, _)| (*name).to_owned());
        if !self.statistic.is_median() {
            words += &format!(" {}", self.statistic.name());
        }
        if self.mode == Some(Mode::Message) {
            words += " of messages";
        }
        if let Some(size) = self.size_bytes {
            words += &format!(" of {}", bytes(size));
        }
        if let Some(path) = self.path {
            words += &format!(" over {path}");
        }
        if let Some(network) = &self.network {
            words += &format!(" on {network}");
        }
        if let Some(load) = &self.load {
            words += &format!(" under load {load}");
        }
        if let Some(probe) = self.probe {
            words += &format!(" ({})", probe.name());
        }
        words
    }

    /// Its bounds, in words: `>= 23.00 Gb/s`.
    pub fn bounds(&self) -> String {
        let words = [
            self.min
                .map(|least| format!(">= {}", figure(self.quantity, least))),
            self.min_of_ceiling
                .map(|part| format!(">= {} of the ceiling", share(part))),
            self.max
                .map(|most| format!("<= {}", figure(self.quantity, most))),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        words.join(" and ")
    }

    /// Refuses what nothing can meet or miss.
    ///
    /// # Errors
    /// What it is, and the remedy.
    pub fn check(&self) -> Result<(), Failure> {
        let refuse = |what: &str| {
            Err(Failure::usage(format!(
                "the requirement of {}: {what}",
                self.subject()
            )))
        };
        let bounds = [self.min, self.max, self.min_of_ceiling];
        if bounds.iter().all(Option::is_none) {
            return refuse(
                "it has no bound: write `min` or `max`, or of throughput `min_of_ceiling`",
            );
        }
        if bounds
            .iter()
            .flatten()
            .any(|bound| !bound.is_finite() || *bound < 0.0)
        {
            return refuse("a bound is a finite number and not below 0");
        }
        if self
            .min
            .zip(self.max)
            .is_some_and(|(least, most)| least > most)
        {
            return refuse("`min` is above `max`, which nothing meets: exchange them");
        }
        match self.min_of_ceiling {
            Some(_) if self.quantity != Quantity::ThroughputBps => refuse(
                "only throughput has a ceiling: write `min` or `max` instead of `min_of_ceiling`",
            ),
            Some(part) if part > 1.0 => refuse(
                "`min_of_ceiling` is a part of one, as in 0.95; nothing is above the ceiling",
            ),
            _ => Ok(()),
        }
    }

    /// Whether it is about a row. Of a matrix these are the pairs as they were first measured, and of a pattern its flows, not their sum.
    pub fn selects(&self, row: &ResultRow) -> bool {
        !is_again(row) && self.is_about(row)
    }

    /// The same of rows of pairs that were measured again, too.
    fn is_about(&self, row: &ResultRow) -> bool {
        row.quantity == self.quantity
            && row.step.is_none()
            && row.load == self.load
            && row.knobs.get("flow").is_none_or(|flow| flow != "all")
            && self.probe.is_none_or(|probe| probe.name() == row.probe)
            && (self.mode).is_none_or(|mode| row.mode.as_deref() == Some(mode.name()))
            && self.path.is_none_or(|path| path.name() == row.path)
            && (self.network.as_ref()).is_none_or(|network| *network == row.network)
            && (self.size_bytes).is_none_or(|size| Some(size) == row.size_bytes)
    }

    /// With what a person leaves out and the plan tells: throughput is that of streams where it measures any; times of messages
    /// are those of the smallest; the path is TCP where the quantity is measured over it, and of losses UDP. A network may be
    /// named without its knobs.
    #[must_use]
    pub fn scoped(mut self, plan: &Plan) -> Self {
        let is_of = |probe: &&ProbePlan| !probe.floor && gives(probe, self.quantity);
        let probes: Vec<&ProbePlan> = plan.probes.iter().filter(is_of).collect();
        if self.quantity == Quantity::ThroughputBps && self.mode.is_none() {
            let is_stream = |probe: &&ProbePlan| probe.mode() != Some(Mode::Message);
            self.mode = match probes.iter().any(is_stream) {
                true => Some(Mode::Stream),
                false => Some(Mode::Message).filter(|_| !probes.is_empty()),
            };
        }
        let usual = match self.quantity {
            Quantity::LostShare | Quantity::ReorderedShare | Quantity::DuplicatedShare => {
                AnyPath::UDP
            }
            _ => AnyPath::TCP,
        };
        if self.path.is_none() && probes.iter().any(|probe| probe.path.contains(&usual)) {
            self.path = Some(usual);
        }
        let is_of_messages = matches!(
            self.quantity,
            Quantity::LatencyNs | Quantity::StartupNs | Quantity::OneWayNs
        );
        if is_of_messages && self.size_bytes.is_none() {
            let by = |probe: &ProbePlan| match self.path {
                Some(path) => vec![path]
                    .into_iter()
                    .filter(|path| probe.path.contains(path))
                    .collect(),
                None => probe.path.clone(),
            };
            let sizes = probes
                .iter()
                .filter(|probe| probe.kind.is_sized())
                .flat_map(|probe| {
                    let of = by(probe).into_iter().map(|path| probe.sizes(path, None));
                    of.flatten().flatten().collect::<Vec<u64>>()
                });
            self.size_bytes = sizes.min();
        }
        if let Some(name) = &self.network {
            let names = plan.networks.iter().map(|network| &network.name);
            let begins = |known: &&String| known.split(':').next() == Some(name.as_str());
            let like: Vec<&String> = names.clone().filter(begins).collect();
            if let ([one], false) = (&like[..], names.clone().any(|known| known == name)) {
                self.network = Some((*one).clone());
            }
        }
        self
    }
}

/// Where more requirements are, which are read before anything is measured.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Files that list them.
    pub files: Vec<String>,
    /// A run that must be reached.
    pub baseline: Option<Baseline>,
}

impl Sources {
    /// The requirements of a plan whose run is kept in this folder.
    ///
    /// # Errors
    /// What is wrong with a file, or with the baseline.
    pub fn requirements(&self, out: &Path, plan: &Plan) -> Result<Vec<Requirement>, Failure> {
        let mut all = Vec::new();
        for file in &self.files {
            all.extend(of_file(file).map_err(Failure::usage)?);
        }
        if let Some(baseline) = &self.baseline {
            all.extend(baseline.requirements(out, plan)?);
        }
        Ok(all)
    }
}

/// Whether a row is of a pair that was measured again, since it or another stood out.
fn is_again(row: &ResultRow) -> bool {
    row.knobs.contains_key("stage")
}

/// Whether a probe measures a quantity. What comes beside another is measured with it.
fn gives(probe: &ProbePlan, quantity: Quantity) -> bool {
    use ProbeKind::{
        Anatomy, Collective, Latency, Messages, Npb, Pattern, Rate, Startup, Throughput,
    };
    match quantity {
        Quantity::LatencyNs => matches!(probe.kind, Latency | Pattern),
        Quantity::StartupNs => probe.kind == Startup,
        Quantity::ThroughputBps | Quantity::Retransmits => {
            matches!(probe.kind, Throughput | Pattern)
        }
        Quantity::LostShare
        | Quantity::ReorderedShare
        | Quantity::DuplicatedShare
        | Quantity::CpuSrcNsPerByte
        | Quantity::CpuDstNsPerByte => probe.mode() == Some(Mode::Stream),
        Quantity::OneWayNs => probe.kind == Anatomy,
        Quantity::ResponseNs | Quantity::ServiceNs | Quantity::RatePerS | Quantity::LateShare => {
            probe.kind == Rate
        }
        Quantity::CollectiveNs => probe.kind == Collective,
        Quantity::KernelNs | Quantity::MopPerS => probe.kind == Npb,
        Quantity::CommunicatingShare => matches!(probe.kind, Npb | Messages),
        Quantity::ExchangeNs => probe.kind == Pattern,
        _ => true,
    }
}

impl Plan {
    /// With more requirements, each scoped to what it measures.
    #[must_use]
    pub fn requiring(mut self, more: impl IntoIterator<Item = Requirement>) -> Self {
        let scoped: Vec<Requirement> = more.into_iter().map(|one| one.scoped(&self)).collect();
        self.requirements.extend(scoped);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Effort, Kind, NetworkPlan, TestbedPlan};

    fn lab() -> Plan {
        let testbed = TestbedPlan {
            kind: Kind::Lab,
            ..TestbedPlan::default()
        };
        Plan::assess(testbed, Effort::Usual)
    }

    #[test]
    fn what_is_left_open_is_filled_in() {
        let mut plan = lab();
        plan.networks.push(NetworkPlan::lab("fddi:mtu=1500"));
        let of = |words: &str| requirement(words).unwrap().scoped(&plan).subject();
        for (words, subject) in [
            ("throughput>=1Gbit", "throughput over tcp"),
            ("latency.p99<=1ms", "latency p99 of 1 B over tcp"),
            ("latency@udp@64<=1ms", "latency of 64 B over udp"),
            ("loss<=1%", "loss over udp"),
            (
                "startup@fddi<=1s",
                "startup of 8 B over tcp on fddi:mtu=1500",
            ),
            ("latency@wire<=1ms", "latency of 1 B over tcp on wire"),
            ("kernel<=1s", "kernel"),
        ] {
            assert_eq!(of(words), subject, "{words}");
        }
        let messages =
            Plan::parse("[[probe]]\nkind = \"throughput\"\nmode = \"message\"\n").unwrap();
        let one = requirement("throughput>=1Mbit").unwrap().scoped(&messages);
        assert_eq!(one.subject(), "throughput of messages over tcp");
        let again = one.clone().scoped(&messages);
        assert_eq!(again, one, "what is filled in stays");
        let printed = messages.requiring([one]).text().unwrap();
        assert_eq!(
            Plan::parse(&printed).unwrap().requirements.len(),
            1,
            "{printed}"
        );
    }

    #[test]
    fn what_nothing_can_meet_is_refused() {
        let plan = |more: &str| {
            Plan::parse(&format!(
                "[[probe]]\nkind = \"latency\"\n[[require]]\nquantity = {more}\n"
            ))
        };
        for (more, said) in [
            ("\"latency_ns\"", "has no bound"),
            ("\"latency_ns\"\nmin = 2\nmax = 1", "`min` is above `max`"),
            ("\"latency_ns\"\nmax = -1", "not below 0"),
            ("\"latency_ns\"\nmin_of_ceiling = 0.9", "only throughput"),
            ("\"throughput_bps\"\nmin_of_ceiling = 95", "part of one"),
        ] {
            let error = plan(more).unwrap_err().to_string();
            assert!(error.contains(said), "{more}: {error}");
        }
        let old = plan("\"latency_ns\"\np50_max = 1e6").unwrap();
        assert_eq!(old.requirements[0].max, Some(1e6), "as plans had it before");
        assert_eq!(old.requirements[0].bounds(), "<= 1.000 ms");
    }
}
