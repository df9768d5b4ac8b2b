//! The highest rate of datagrams that a network carries: found by bisection, and confirmed.
//!
//! Model:   a trial sends at a constant rate for the budget of a stream; it passes where no more than the stated share is
//!          lost, and the sender kept at least [`KEPT`] of the rate: where the kernel holds senders back, as a lab's gate
//!          and a full queue of a device do, nothing is lost and they fall behind. The highest rate is tried first; then the middle between
//!          the highest that passed and the lowest that failed, until both lie within a hundredth of the highest. What
//!          passed last is confirmed by several launches, all of which must pass; else the next lower step is. Each rate is a
//!          cell with rows of its own. What comes next follows from what the run holds alone, so that a run that was cut off
//!          goes on where it was.
//! Source:  RFC 2544 §26.1, whose throughput is the rate at which nothing is lost, and RFC 1242 §3.17; a share above none is
//!          this program's, since hosts and not networks lose single datagrams.
//! Units:   bits of users a second; parts in a million.
//! Checked: `the_limit_is_between_pass_and_fail`, `a_search_follows_from_what_was_seen`,
//!          `what_fails_to_be_confirmed_is_left_by_a_step`; `lab_tune` of the command.

use crate::failure::Failure;
use crate::layout::{self, Block, TestNetwork};
use crate::plan::Lost;
use sonde_measure::{Phase, Quantity, Repetition, Run};

/// Part of a rate that its sender must keep: what it did not send cannot be lost.
const KEPT: f64 = 0.99;
/// Trials at most: a hundredth takes seven.
const TRIALS_MAX: usize = 16;
/// The step between rates, as a part of the highest.
const STEPS: u64 = 100;
/// The event of a run that says which share may be lost.
pub const LOSS_LIMIT: &str = "loss_limit";
/// The knob that says the rate.
const RATE: &str = "rate";

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

/// The trials of all searches of a plan's blocks, by what was seen: those that were made, in their order, and of each search
/// the next one, or none where its limit is known. A limit that is confirmed by `launches` is a trial of so many.
///
/// # Errors
/// A rate that the channel does not take; a cell that cannot be named.
pub fn trials(
    run: &Run,
    blocks: &[Block],
    nets: &[&TestNetwork],
    launches: u64,
) -> Result<Vec<Block>, Failure> {
    let mut all = Vec::new();
    for start in blocks {
        if let Some(lost) = start.lost.filter(|_| start.skipped().is_none()) {
            let search = Search { run, start, lost };
            search.trials(nets[start.net], launches, &mut all)?;
        }
    }
    Ok(all)
}

/// The search below the rate of a block.
struct Search<'a> {
    run: &'a Run,
    start: &'a Block,
    lost: Lost,
}

impl Search<'_> {
    fn trials(
        &self,
        net: &TestNetwork,
        launches: u64,
        all: &mut Vec<Block>,
    ) -> Result<(), Failure> {
        let Some(passed) = self.passed(self.start, 1) else {
            return Ok(());
        };
        let most = rate_bps(self.start).unwrap_or_default();
        let mut at = Bisection::below(most);
        if passed {
            (at.low, at.high) = (most, most + at.step);
        }
        for _ in 0..TRIALS_MAX {
            let next = at.next();
            let rate = next.unwrap_or(at.low);
            if rate == 0 {
                break;
            }
            let launches = next.map_or(launches, |_| 1);
            let block = self.at_rate(net, rate, launches)?;
            let passed = self.passed(&block, launches);
            all.push(block);
            match (passed, next) {
                (None, _) | (Some(true), None) => break,
                (Some(false), None) => at.step_down(),
                (Some(passed), Some(rate)) => at.take(rate, passed),
            }
        }
        Ok(())
    }

    /// The block at another rate, with cells of its own.
    fn at_rate(&self, net: &TestNetwork, bps: u64, launches: u64) -> Result<Block, Failure> {
        let mut block = match rate_bps(self.start) == Some(bps) {
            // The plan's own word for it makes its cell.
            true => self.start.clone(),
            false => self.start.with(RATE, format!("{bps}bit"))?,
        };
        (block.launches, block.lost) = (launches, None);
        block.cells = layout::cells(net, &block, &[])?;
        Ok(block)
    }

    /// Whether the first `launches` of a block's first cell came through, with no more lost than may be; none where they were not all
    /// made.
    fn passed(&self, block: &Block, launches: u64) -> Option<bool> {
        let cell = block.cells.first()?;
        let made = self.run.repetitions_of(&cell.id);
        let first: Vec<_> = made.filter(|one| one.result.index < launches).collect();
        let rate = rate_bps(block)?;
        let all = first.iter().all(|one| self.came_through(one, rate));
        (first.len() as u64 == launches).then_some(all)
    }

    fn came_through(&self, one: &Repetition<'_>, rate: u64) -> bool {
        let of = |quantity| one.result.samples(quantity, Phase::Warm)?.median();
        let (Some(lost), Some(came)) = (of(Quantity::LostShare), of(Quantity::ThroughputBps))
        else {
            return false;
        };
        let sent = came as f64 / (1.0 - lost as f64 / 1e6).max(f64::EPSILON);
        lost <= self.lost.ppm() && sent >= KEPT * rate as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::net;
    use crate::plan::Plan;
    use sonde_measure::{CellResult, LaunchRecord, Measurement};
    use std::collections::BTreeSet;

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
    const PLAN: &str = "
        [[network]]
        name = 'ethernet-10'
        [[probe]]
        kind = 'throughput'
        path = ['udp']
        lost = '0.1%'
        with.rate = ['10Mbit']
        [repeat]
        launches = 3";

    /// A launch of a block's cell on a network that carries `limit_bps`.
    fn launched(block: &Block, index: u64, limit_bps: u64) -> LaunchRecord {
        let rate = rate_bps(block).unwrap();
        let came = rate.min(limit_bps);
        let one = |quantity, value: u64| Measurement {
            touched: None,
            quantity,
            phase: Phase::Warm,
            step: None,
            series: [value].into_iter().collect(),
            reason: None,
        };
        let result = CellResult {
            cell: block.cells[0].id.clone(),
            index,
            failure: None,
            series: vec![
                one(Quantity::ThroughputBps, came),
                one(Quantity::LostShare, (rate - came) * 1_000_000 / rate),
            ],
        };
        LaunchRecord {
            results: vec![result],
            ..LaunchRecord::default()
        }
    }

    fn empty(blocks: &[Block]) -> Run {
        Run {
            head: crate::measure::begun(String::new(), 1).unwrap(),
            hosts: Vec::new(),
            networks: Vec::new(),
            cells: blocks.iter().flat_map(|one| one.cells.clone()).collect(),
            launches: Vec::new(),
            events: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_search_follows_from_what_was_seen() {
        let plan = Plan::parse(PLAN).unwrap();
        let net = net("ethernet-10");
        let limit_bps = 7_210_000;
        let mut blocks = layout::blocks(&plan, std::slice::from_ref(&net)).unwrap();
        assert_eq!(blocks[0].launches, 1, "the first trial is one launch");
        let mut run = empty(&blocks);
        let seen = |run: &Run, blocks: &[Block]| trials(run, blocks, &[&net], 3).unwrap();
        assert!(seen(&run, &blocks).is_empty(), "nothing was measured yet");
        run.launches.push(launched(&blocks[0], 0, limit_bps));
        let mut made = 0;
        // Each launch is as if the run were resumed: only the run knows what was made.
        loop {
            let all = seen(&run, &blocks);
            let last = all.last().unwrap().clone();
            let cell = &last.cells[0].id;
            let index = run.repetitions_of(cell).count() as u64;
            if index == last.launches {
                let rate = rate_bps(&last).unwrap();
                assert_eq!(last.launches, 3, "the limit is confirmed");
                assert!(rate <= 7_217_218 && rate > 7_100_000, "{rate}");
                break;
            }
            layout::add(&mut blocks, last.clone());
            run.launches.push(launched(&last, index, limit_bps));
            made += 1;
            assert!(made < 20, "{made} launches");
        }
        assert_eq!(
            made,
            7 + 2,
            "seven trials, the last of them launched twice more"
        );
        let ids: BTreeSet<&str> = blocks.iter().map(|one| one.cells[0].id.as_str()).collect();
        assert_eq!(ids.len(), blocks.len(), "each rate is one block");
    }

    #[test]
    fn what_fails_to_be_confirmed_is_left_by_a_step() {
        let plan = Plan::parse(PLAN).unwrap();
        let net = net("ethernet-10");
        let blocks = layout::blocks(&plan, std::slice::from_ref(&net)).unwrap();
        let mut run = empty(&blocks);
        // All passes at first, and the highest rate fails at its second launch.
        run.launches.push(launched(&blocks[0], 0, 10_000_000));
        run.launches.push(launched(&blocks[0], 1, 5_000_000));
        run.launches.push(launched(&blocks[0], 2, 10_000_000));
        let all = trials(&run, &blocks, &[&net], 3).unwrap();
        let rates: Vec<_> = all.iter().filter_map(rate_bps).collect();
        assert_eq!(rates, [10_000_000, 9_900_000]);
        assert!(all.iter().all(|block| block.launches == 3));
    }

    #[test]
    fn a_rate_that_was_not_sent_did_not_come_through() {
        let plan = Plan::parse(PLAN).unwrap();
        let blocks = layout::blocks(&plan, &[net("ethernet-10")]).unwrap();
        let mut run = empty(&blocks);
        let mut launch = launched(&blocks[0], 0, 10_000_000);
        // Nine tenths of it came, and 0.05 % of what was sent was lost: less than is allowed.
        for (one, value) in launch.results[0].series.iter_mut().zip([9_000_000, 500]) {
            one.series = [value].into_iter().collect();
        }
        run.launches.push(launch);
        let search = Search {
            run: &run,
            start: &blocks[0],
            lost: blocks[0].lost.unwrap(),
        };
        assert_eq!(search.passed(&blocks[0], 1), Some(false));
    }
}
