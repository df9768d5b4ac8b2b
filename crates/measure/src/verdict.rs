//! Whether an emulated network kept its own times while a cell was measured, and whether a figure is one that it can have.
//!
//! Model:   failed if more than 1 % of the deliveries are later than their bound, if any frame is lost between the host
//!          and the network (the attachment), if a host's gate was replaced, or if there is no delivery to judge by. The
//!          bound of a delivery is the larger of 50 µs and 5 % of its own one-way time in the model. Passed is said with
//!          the same figures. A row fails too where its best figure is above 1.003 of what the model allows: that is a
//!          defect of the instrument, and no emulation mends it.
//! Units:   nanoseconds; shares are fractions of one.
//! Checked: `one_per_cent_is_the_edge`, `a_loss_fails`, `nothing_delivered_is_not_passed`, `the_bound_has_a_floor`,
//!          `launches_are_judged_together`, `a_figure_above_its_bound_fails`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The floor of the bound.
const BOUND_NS_MIN: u64 = 50_000;

/// A figure up to this part of its bound is measured; the 0.3 % are those of the edges of a rated second.
const ABOVE_BOUND: f64 = 1.003;

/// What a judgement is: of requirements, checks and comparisons, and of all pairs of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judged {
    /// All that was required, checked or compared holds.
    Pass,
    /// Something does not hold, or is missing.
    Fail,
    /// Something cannot be told.
    Inconclusive,
}

impl Judged {
    /// In capitals, as terminals show it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

/// One bucket of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatenessBucket {
    /// The largest lateness that it counts.
    pub up_to_ns: u64,
    /// Deliveries in it, and in no earlier one.
    pub count: u64,
}

/// How late deliveries were against the model, over all of them. Percentiles are null when there were none, or too few.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lateness {
    /// Deliveries.
    pub count: u64,
    /// Half are not later.
    pub p50_ns: Option<u64>,
    /// 99 % are not later.
    pub p99_ns: Option<u64>,
    /// 99.9 % are not later.
    pub p999_ns: Option<u64>,
    /// The latest.
    pub max_ns: Option<u64>,
    /// Ascending; empty where only the figures above were kept.
    pub buckets: Vec<LatenessBucket>,
}

/// The judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictStatus {
    /// The emulation kept its times.
    Passed,
    /// It did not: do not trust the cell.
    Failed,
}

/// The judgement with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The judgement.
    pub status: VerdictStatus,
    /// Frames that the network delivered.
    pub deliveries: u64,
    /// Of these, later than the bound.
    pub late: u64,
    /// `late` over `deliveries`; null without deliveries.
    pub late_share: Option<f64>,
    /// The smallest bound that a delivery had.
    pub bound_ns: u64,
    /// Median lateness.
    pub lateness_p50_ns: Option<u64>,
    /// 99th percentile of lateness.
    pub lateness_p99_ns: Option<u64>,
    /// Largest lateness.
    pub lateness_max_ns: Option<u64>,
    /// Frames lost between a host and the network.
    pub attachment_losses: u64,
    /// How often a host's gate was put back, because a program had replaced it; absent when 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gate_rearmed: u64,
    /// The best figure of a row over what the model allows, where that is above 1.003; absent else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_bound: Option<f64>,
    /// Why it failed, each with figures; empty when passed.
    pub reasons: Vec<String>,
}

/// How true an emulation was to its model while a cell was measured, beside its lateness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fidelity {
    /// Deliveries that were later than their own bound.
    pub late: u64,
    /// The smallest bound that a delivery had, in ns; null without deliveries.
    pub bound_ns: Option<u64>,
    /// Frames lost between a host and the network.
    pub attachment_losses: u64,
    /// How often a host's gate was put back.
    pub gate_rearmed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Verdict {
    /// How late a delivery may be for which the model takes `one_way_ns`.
    pub fn bound_ns(one_way_ns: u64) -> u64 {
        BOUND_NS_MIN.max(one_way_ns / 20)
    }

    /// Judges an emulation by its deliveries in `lateness` and its `fidelity`.
    ///
    /// # Panics
    /// When more are late than there are.
    pub fn judge(lateness: &Lateness, fidelity: Fidelity) -> Self {
        let Fidelity {
            late,
            attachment_losses,
            gate_rearmed,
            ..
        } = fidelity;
        let bound_ns = fidelity.bound_ns.unwrap_or(BOUND_NS_MIN);
        let deliveries = lateness.count;
        assert!(late <= deliveries, "{late} late of {deliveries} deliveries");
        let mut reasons = Vec::new();
        if deliveries == 0 {
            reasons.push("no frame was delivered, so the emulation cannot be judged".to_string());
        }
        if u128::from(late) * 100 > u128::from(deliveries) {
            reasons.push(format!(
                "{late} of {deliveries} deliveries were more than {bound_ns} ns behind schedule; at most 1 % may be: \
                 fewer hosts, a slower network or more CPUs"
            ));
        }
        if attachment_losses > 0 {
            reasons.push(format!(
                "{attachment_losses} frames were lost between a host and the network, where the model loses none"
            ));
        }
        if gate_rearmed > 0 {
            reasons.push(format!(
                "a program of the lab's root replaced a host's queueing discipline, by which the network holds senders back; \
                 it was restored {}",
                match gate_rearmed {
                    1 => "once".to_owned(),
                    times => format!("{times} times"),
                }
            ));
        }
        let status = if reasons.is_empty() {
            VerdictStatus::Passed
        } else {
            VerdictStatus::Failed
        };
        Self {
            status,
            deliveries,
            late,
            late_share: (deliveries > 0).then(|| late as f64 / deliveries as f64),
            bound_ns,
            lateness_p50_ns: lateness.p50_ns,
            lateness_p99_ns: lateness.p99_ns,
            lateness_max_ns: lateness.max_ns,
            attachment_losses,
            gate_rearmed,
            above_bound: None,
            reasons,
        }
    }

    /// Whether it passed.
    pub fn passed(&self) -> bool {
        self.status == VerdictStatus::Passed
    }

    /// Fails where the best figure is `part` of what the model allows, and that is above 1.003.
    pub fn bounded(mut self, part: f64) -> Self {
        if part > ABOVE_BOUND {
            self.status = VerdictStatus::Failed;
            self.above_bound = Some(part);
            self.reasons.push(format!(
                "the best figure is {:.1} % of what the network's model allows: an error of the measurement",
                part * 100.0
            ));
        }
        self
    }

    /// Whether the emulation kept its times, whatever else is wrong.
    pub fn kept_times(&self) -> bool {
        self.reasons.len() == usize::from(self.above_bound.is_some())
    }

    /// One judgement of several launches: counts are summed, quantiles are the worst launch's. `None` of none.
    pub fn merged<'a>(verdicts: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut all: Option<(Lateness, Fidelity)> = None;
        for one in verdicts {
            let (lateness, fidelity) = all.get_or_insert_default();
            lateness.count += one.deliveries;
            lateness.p50_ns = lateness.p50_ns.max(one.lateness_p50_ns);
            lateness.p99_ns = lateness.p99_ns.max(one.lateness_p99_ns);
            lateness.max_ns = lateness.max_ns.max(one.lateness_max_ns);
            fidelity.late += one.late;
            let bound_ns = fidelity.bound_ns.unwrap_or(u64::MAX);
            fidelity.bound_ns = Some(bound_ns.min(one.bound_ns));
            fidelity.attachment_losses += one.attachment_losses;
            fidelity.gate_rearmed += one.gate_rearmed;
        }
        all.map(|(lateness, fidelity)| Self::judge(&lateness, fidelity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64) -> Lateness {
        Lateness {
            count,
            p50_ns: Some(3_000),
            p99_ns: Some(20_000),
            max_ns: Some(90_000),
            ..Default::default()
        }
    }

    fn judge(lateness: &Lateness, late: u64, attachment_losses: u64) -> Verdict {
        let fidelity = Fidelity {
            late,
            bound_ns: Some(50_000),
            attachment_losses,
            gate_rearmed: 0,
        };
        Verdict::judge(lateness, fidelity)
    }

    #[test]
    fn one_per_cent_is_the_edge() {
        let passed = judge(&of(1_000), 10, 0);
        assert_eq!(
            (passed.status, passed.reasons.len()),
            (VerdictStatus::Passed, 0)
        );
        assert_eq!(
            (passed.late_share, passed.lateness_p99_ns),
            (Some(0.01), Some(20_000))
        );
        let failed = judge(&of(1_000), 11, 0);
        assert_eq!(failed.status, VerdictStatus::Failed);
        assert!(
            failed.reasons[0]
                .contains("11 of 1000 deliveries were more than 50000 ns behind schedule"),
            "{failed:?}"
        );
    }

    #[test]
    fn a_loss_fails() {
        let failed = judge(&of(1_000), 0, 1);
        assert_eq!(
            (failed.status, failed.reasons.len()),
            (VerdictStatus::Failed, 1)
        );
    }

    #[test]
    fn nothing_delivered_is_not_passed() {
        let failed = judge(&Lateness::default(), 0, 0);
        assert_eq!(
            (failed.status, failed.late_share),
            (VerdictStatus::Failed, None)
        );
        assert!(serde_json::to_value(&failed).unwrap()["late_share"].is_null());
    }

    #[test]
    fn the_bound_has_a_floor() {
        assert_eq!(Verdict::bound_ns(0), 50_000);
        assert_eq!(Verdict::bound_ns(1_000_000), 50_000);
        assert_eq!(Verdict::bound_ns(20_000_000), 1_000_000);
    }

    #[test]
    fn launches_are_judged_together() {
        assert_eq!(Verdict::merged([]), None);
        let calm = judge(&of(10_000), 0, 0);
        let late = Lateness {
            p99_ns: Some(70_000),
            max_ns: Some(80_000),
            ..of(1_000)
        };
        let late = judge(&late, 20, 0);
        assert_eq!(late.status, VerdictStatus::Failed);
        // 20 of 11 000 are fewer than 1 %.
        let both = Verdict::merged([&calm, &late]).unwrap();
        assert_eq!(both.status, VerdictStatus::Passed);
        assert_eq!((both.deliveries, both.late), (11_000, 20));
        assert_eq!(both.lateness_p99_ns, Some(70_000));
        assert_eq!(both.lateness_max_ns, Some(90_000));
        assert_eq!(Verdict::merged([&calm]).unwrap(), calm);
        // A gate that was put back is not covered up, and the smallest bound is told.
        let mut wide = calm.clone();
        (wide.bound_ns, wide.gate_rearmed) = (70_000, 1);
        let both = Verdict::merged([&wide, &calm]).unwrap();
        assert_eq!((both.bound_ns, both.gate_rearmed), (50_000, 1));
        assert!(both.reasons[0].contains("restored once"), "{both:?}");
        // A launch without a delivery is not covered up by more launches without one, nor is a loss.
        let none = judge(&Lateness::default(), 0, 1);
        assert_eq!(
            Verdict::merged([&none, &none]).unwrap().attachment_losses,
            2
        );
        assert_eq!(
            Verdict::merged([&calm, &none]).unwrap().status,
            VerdictStatus::Failed
        );
    }

    #[test]
    fn a_figure_above_its_bound_fails() {
        let calm = || judge(&of(1_000), 0, 0);
        assert_eq!(calm().bounded(1.003), calm());
        let above = calm().bounded(1.004);
        assert_eq!(
            (above.status, above.above_bound, above.kept_times()),
            (VerdictStatus::Failed, Some(1.004), true)
        );
        let late = judge(&of(1_000), 11, 0);
        assert!(!late.kept_times() && !late.bounded(1.004).kept_times());
    }
}
