//! The highest rate of datagrams that a network carries: found by bisection, and confirmed.
//!
//! Model:   a trial sends at a constant rate for the budget of a stream; it passes where no more than the stated share is
//!          lost, and the sender kept at least [`KEPT`] of the rate: where the kernel holds senders back, as a lab's gate
//!          and a full queue of a device do, nothing is lost and they fall behind. The highest rate is tried first; then the middle between
//!          the highest that passed and the lowest that failed, until both lie within a hundredth of the highest. What
//!          passed last is confirmed by several launches, all of which must pass; else the next lower step is. Each rate is a
//!          cell with rows of its own.
//! Source:  RFC 2544 §26.1, whose throughput is the rate at which nothing is lost, and RFC 1242 §3.17; a share above none is
//!          this program's, since hosts and not networks lose single datagrams.
//! Units:   bits of users a second; parts in a million.
//! Checked: `the_limit_is_between_pass_and_fail`; `lab_tune` of the command.

use crate::campaign::{Campaign, End};
use crate::failure::Failure;
use crate::layout::Block;
use sonde_measure::{Phase, Quantity, Repetition};

/// Part of a rate that its sender must keep: what it did not send cannot be lost.
const KEPT: f64 = 0.99;
/// Trials at most: a hundredth takes seven.
const TRIALS_MAX: usize = 16;
/// The step between rates, as a part of the highest.
const STEPS: u64 = 100;
/// The knob that says the rate.
const RATE: &str = "rate";

/// What to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// Datagrams that may be lost, in a million.
    pub lost_ppm: u64,
    /// Launches that confirm the limit.
    pub launches: u64,
}

/// Rates that passed and failed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bisection {
    step: u64,
    /// The highest that passed; none is zero.
    low: u64,
    /// The lowest that failed.
    high: u64,
}

impl Bisection {
    /// Begins below a rate that failed.
    fn below(high: u64) -> Self {
        let step = (high / STEPS).max(1);
        Self { step, low: 0, high }
    }

    /// The rate to be tried next; none where the limit is known.
    fn next(&self) -> Option<u64> {
        let open = self.high - self.low > self.step;
        open.then_some(self.low + (self.high - self.low) / 2)
    }

    fn take(&mut self, rate: u64, passed: bool) {
        if passed {
            self.low = rate;
        } else {
            self.high = rate;
        }
    }

    /// What passed once failed when it was confirmed: the next lower step is the candidate.
    fn step_down(&mut self) {
        self.high = self.low;
        self.low = self.low.saturating_sub(self.step);
    }
}

/// The constant rate of a stream of datagrams.
fn rate_bps(block: &Block) -> Option<u64> {
    block.channel()?.knobs.rate_bps
}

impl Search {
    /// Looks for the limit of each stream at a rate of the campaign, whose first trial was made.
    ///
    /// # Errors
    /// What was measured cannot be kept.
    pub fn run(self, campaign: &mut Campaign<'_>) -> Result<End, Failure> {
        let share = format!("{}", self.lost_ppm as f64 / 1e6);
        campaign.tell("loss_limit", &share)?;
        let is_one = |block: &&Block| rate_bps(block).is_some() && !block.reference;
        let starts: Vec<Block> = campaign.blocks().iter().filter(is_one).cloned().collect();
        for start in starts.iter().filter(|start| start.skipped().is_none()) {
            match self.search(campaign, start)? {
                End::Tried => {}
                other => return Ok(other),
            }
        }
        Ok(End::Tried)
    }

    fn search(self, campaign: &mut Campaign<'_>, start: &Block) -> Result<End, Failure> {
        let most = rate_bps(start).unwrap_or_default();
        let mut at = Bisection::below(most);
        if self.passed(campaign, start) {
            (at.low, at.high) = (most, most + at.step);
        }
        for _ in 0..TRIALS_MAX {
            let rate = at.next().unwrap_or(at.low);
            let confirms = at.next().is_none();
            if rate == 0 {
                break;
            }
            let launches = if confirms { self.launches } else { 1 };
            let block = campaign.at_rate(start, RATE, rate, launches)?;
            match campaign.measure()? {
                End::Tried => {}
                other => return Ok(other),
            }
            match (self.passed(campaign, &block), confirms) {
                (true, true) => break,
                (false, true) => at.step_down(),
                (passed, false) => at.take(rate, passed),
            }
        }
        Ok(End::Tried)
    }

    /// Whether all launches of a block's first cell came through, with no more lost than may be.
    fn passed(self, campaign: &Campaign<'_>, block: &Block) -> bool {
        let Some(cell) = block.cells.first() else {
            return false;
        };
        let rate = rate_bps(block).unwrap_or_default();
        let mut made = campaign.run.repetitions_of(&cell.id).peekable();
        made.peek().is_some()
            && made.all(|Repetition { result, .. }| {
                let of = |quantity| result.samples(quantity, Phase::Warm)?.median();
                let (Some(lost), Some(came)) =
                    (of(Quantity::LostShare), of(Quantity::ThroughputBps))
                else {
                    return false;
                };
                let sent = came as f64 / (1.0 - lost as f64 / 1e6).max(f64::EPSILON);
                lost <= self.lost_ppm && sent >= KEPT * rate as f64
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_between_pass_and_fail() {
        for limit in [0, 1, 37_000, 500_000, 937_777, 999_999] {
            let mut at = Bisection::below(1_000_000);
            let mut trials = 0;
            while let Some(rate) = at.next() {
                at.take(rate, rate <= limit);
                trials += 1;
            }
            assert!(trials <= 7, "{trials} trials for {limit}");
            assert!(at.low <= limit && limit < at.high, "{limit}: {at:?}");
            assert!(at.high - at.low <= at.step);
            let before = at.low;
            at.step_down();
            assert!(at.low < before || before == 0);
            assert_eq!(
                at.next(),
                None,
                "a candidate is confirmed, not searched for"
            );
        }
    }
}
