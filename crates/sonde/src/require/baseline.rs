//! Requirements from a run that is in the store: as good as it was, within a tolerance.
//!
//! Model:   each median of the run that the plan measures again bounds the same median: a rate from below, a time from above. Rows
//!          that a requirement cannot name apart, as those of two methods, are bounded by the worst of them. What the emulation
//!          made unreliable, pairs of a matrix and the loopback beside networks bound nothing.
//! Units:   of the rows' quantities; the tolerance in parts of one.
//! Checked: `a_run_bounds_the_same_figures`.

use super::{Requirement, Statistic};
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::plan::{Mode, Plan, ProbePlan};
use crate::report;
use sonde_measure::{Quantity, ResultRow, Testbed};
use sonde_units::Ratio;
use std::path::Path;

/// A run, and how much worse than it a figure may be.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// The run's id.
    pub run: String,
    /// In parts of one.
    pub within: Ratio,
}

impl Baseline {
    /// What it requires of a plan whose run is kept in this folder.
    ///
    /// # Errors
    /// There is no such run, or it has nothing that the plan measures.
    pub fn requirements(&self, out: &Path, plan: &Plan) -> Result<Vec<Requirement>, Failure> {
        let run = report::load(out, Some(&self.run))?;
        let all = bounds(&run.rows(), self.within, plan);
        match all.is_empty() {
            true => Err(Failure::usage(format!(
                "the baseline {} has no reliable figure of what is to be measured: name a run of the same plan",
                run.head.id
            ))),
            false => Ok(all),
        }
    }
}

fn bounds(rows: &[ResultRow], within: Ratio, plan: &Plan) -> Vec<Requirement> {
    let (numerator, denominator) = within.parts();
    let within = numerator as f64 / denominator as f64;
    let has_networks = rows.iter().any(|row| row.testbed != Testbed::Local);
    let mut all: Vec<Requirement> = Vec::new();
    for row in rows {
        if row.step.is_some() || (row.testbed == Testbed::Local && has_networks) {
            continue;
        }
        let (Some(p50), Some(is_rate), true) = (row.p50, is_rate(row.quantity), row.is_reliable())
        else {
            continue;
        };
        let Some((probe, path)) = measured(plan, row) else {
            continue;
        };
        let mut one = Requirement::new(row.quantity, Statistic::P50);
        one.probe = Some(probe.kind);
        one.mode = [Mode::Stream, Mode::Message]
            .into_iter()
            .find(|mode| row.mode.as_deref() == Some(mode.name()));
        one.path = Some(path);
        one.network = Some(row.network.clone());
        (one.load, one.size_bytes) = (row.load.clone(), row.size_bytes);
        match is_rate {
            true => one.min = Some(p50.0 * (1.0 - within).max(0.0)),
            false => one.max = Some(p50.0 * (1.0 + within)),
        }
        let scope = |one: &Requirement| Requirement {
            min: None,
            max: None,
            ..one.clone()
        };
        match all.iter_mut().find(|known| scope(known) == scope(&one)) {
            Some(known) => {
                known.min = known.min.zip(one.min).map(|(a, b)| a.min(b));
                known.max = known.max.zip(one.max).map(|(a, b)| a.max(b));
            }
            None => all.push(one),
        }
    }
    all
}

/// Whether more of it is better; none of what is neither a rate nor a time.
fn is_rate(quantity: Quantity) -> Option<bool> {
    match quantity {
        Quantity::ThroughputBps | Quantity::RatePerS | Quantity::MopPerS => Some(true),
        Quantity::LatencyNs
        | Quantity::StartupNs
        | Quantity::OneWayNs
        | Quantity::ResponseNs
        | Quantity::CollectiveNs
        | Quantity::KernelNs
        | Quantity::ReplayNs => Some(false),
        _ => None,
    }
}

/// The probe of the plan that measures a row, and its path.
fn measured<'a>(plan: &'a Plan, row: &ResultRow) -> Option<(&'a ProbePlan, AnyPath)> {
    let path: AnyPath = row.path.parse().ok()?;
    let networks = &plan.networks;
    if !networks.is_empty() && networks.iter().all(|network| network.name != row.network) {
        return None;
    }
    let is_of = |probe: &&ProbePlan| {
        probe.kind.name() == row.probe && probe.flows.is_none() && probe.path.contains(&path)
    };
    plan.probes.iter().find(is_of).map(|probe| (probe, path))
}

#[cfg(test)]
mod tests {
    use super::super::testing::row as of_pair;
    use super::*;
    use sonde_measure::Number;

    fn row(path: &str, method: &str, size_bytes: u64, p50: f64) -> ResultRow {
        ResultRow {
            probe: "latency".into(),
            mode: None,
            path: path.into(),
            method: Some(method.into()),
            network: "fddi".into(),
            testbed: Testbed::Lab,
            size_bytes: Some(size_bytes),
            p50: Some(Number(p50)),
            ..of_pair(Quantity::LatencyNs, p50, ("h1", "h2"))
        }
    }

    #[test]
    fn a_run_bounds_the_same_figures() {
        let plan = Plan::parse(
            "[testbed]\nkind = \"lab\"\n[[network]]\nname = \"fddi\"\n[[probe]]\nkind = \"latency\"\npath = [\"tcp\"]\n",
        )
        .unwrap();
        let rows = [
            row("tcp", "plain", 1, 100.0),
            row("tcp", "uring", 1, 200.0),
            row("udp", "plain", 1, 90.0),
            row("tcp", "plain", 64, 0.0),
        ];
        let all = bounds(&rows, Ratio::new(1, 10), &plan);
        let of = |one: &Requirement| (one.subject(), one.max.unwrap_or(-1.0).round());
        assert_eq!(
            all.iter().map(of).collect::<Vec<_>>(),
            [
                (
                    "latency of 1 B over tcp on fddi (latency)".to_owned(),
                    220.0
                ),
                ("latency of 64 B over tcp on fddi (latency)".to_owned(), 0.0)
            ],
            "the slower method bounds both; udp is not measured again"
        );
        all.iter().for_each(|one| one.check().unwrap());
    }

    #[test]
    fn of_two_rates_the_lower_bounds() {
        let plan = Plan::parse(
            "[testbed]\nkind = \"lab\"\n[[network]]\nname = \"fddi\"\n[[probe]]\nkind = \"throughput\"\npath = [\"tcp\"]\n",
        )
        .unwrap();
        let rows = [("plain", 200.0), ("uring", 100.0), ("sendfile", 300.0)];
        let rows = rows.map(|(method, p50)| ResultRow {
            probe: "throughput".into(),
            mode: Some("stream".into()),
            quantity: Quantity::ThroughputBps,
            ..row("tcp", method, 65_536, p50)
        });
        let all = bounds(&rows, Ratio::new(1, 10), &plan);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].min.map(f64::round), all[0].max), (Some(90.0), None));
    }
}
