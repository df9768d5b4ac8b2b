//! When samples are taken, and when their thread waited for a CPU meanwhile.
//!
//! Model:   the log has a pause, a time and a value for each sample. The run queue's wait of the thread is read around blocks of
//!          a millisecond or more, between two samples. A block that waited beyond what its round trips usually wait, by more than
//!          90 us and 5 % of one, is a time in which another program had the CPU. Usual waits are those for the program at the
//!          other end and for the emulation, where they share a CPU. They are much alike, and disturbances are not: what is
//!          usual is the median of the blocks around, since a machine has slower and faster times, and at most twice that of all blocks;
//!          but where three tenths of those around agree best (the shorth) on less than half of it, most are disturbed, and these
//!          are not. Of round trips, of which one follows the other, a disturbed block takes longer than usual, too, by as much:
//!          a CPU that both ends share goes from one to the other more or less often at no cost. A stream's may not: what waited is
//!          caught up.
//! Source:  Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`; the shorth: Andrews et al., Robust Estimates of Location, 1972.
//!          Deviations: of three tenths in place of a half.
//! Units:   nanoseconds of CLOCK_MONOTONIC.
//! Checked: `a_log_has_the_times_of_its_samples`, `what_is_usual_is_no_absence`, `what_takes_no_longer_was_not_disturbed`, `full_logs_fit_into_a_frame`; `planted_preemptions_are_found` in
//!          `tests/moments.rs`.

use sonde_measure::{Away, Moments};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::RunQueue;

use crate::timer::Timer;

/// Samples that one conversation logs, of all sizes together: they fit into the frame that takes them to the orchestrator.
const SAMPLES_MAX: u64 = 400_000;
/// The same of ranks: they fit into what rank 0 may write.
const SAMPLES_OF_RANKS_MAX: u64 = 20_000;
/// A block takes this at least, if more than one round trip fits.
const BLOCK_NS: u64 = 1_000_000;
/// Blocks that are kept, a minute of them.
const BLOCKS_MAX: usize = 60_000;
/// Blocks before and after one by which it is told what is usual.
const NEAR: usize = 25;
/// A wait beyond the usual is noticed from here on, and from this part of a round trip.
const UNUSUAL_NS: u64 = 90_000;
const UNUSUAL_PART: u64 = 20;

/// The log of one series.
pub(crate) struct Log {
    timer: Timer,
    origin: u64,
    last_ns: u64,
    moments: Moments,
    is_cut: bool,
}

impl Log {
    /// How many samples of each of several sizes are logged; of more the log says nothing.
    pub(crate) fn room(sizes: usize) -> u64 {
        SAMPLES_MAX / (sizes as u64).max(1)
    }

    /// The same of ranks.
    pub(crate) fn room_of_ranks(sizes: usize) -> u64 {
        SAMPLES_OF_RANKS_MAX / (sizes as u64).max(1)
    }

    /// Of at most so many samples.
    pub(crate) fn begin(timer: Timer, samples: u64) -> Self {
        let moments = Moments {
            origin_ns: monotonic_ns(),
            samples: Vec::with_capacity(samples as usize),
            away: Vec::new(),
        };
        Self {
            timer,
            origin: timer.now(),
            last_ns: 0,
            moments,
            is_cut: false,
        }
    }

    /// A sample between two readings of the timer.
    #[inline]
    pub(crate) fn push(&mut self, begin: u64, end: u64, value: u64) {
        let samples = &mut self.moments.samples;
        if samples.len() == samples.capacity() {
            self.is_cut = true;
            return;
        }
        // Each from the origin: what is rounded does not add up.
        let (begin_ns, end_ns) = (
            self.timer.ns(self.origin, begin),
            self.timer.ns(self.origin, end),
        );
        samples.push([
            begin_ns.saturating_sub(self.last_ns),
            end_ns.saturating_sub(begin_ns),
            value,
        ]);
        self.last_ns = end_ns;
    }

    /// What was logged, with when the thread waited; none where there were too many samples, or the kernel does not tell.
    pub(crate) fn end(self, waits: Waits) -> Option<Moments> {
        let away = waits.end()?;
        (!self.is_cut).then_some(Moments {
            away,
            ..self.moments
        })
    }
}

/// A block of round trips.
struct Block {
    begin_ns: u64,
    end_ns: u64,
    trips: u64,
    waited_ns: u64,
}

/// When a thread waited for a CPU.
pub(crate) struct Waits {
    /// None where the kernel does not tell.
    queue: Option<RunQueue>,
    /// Whether one round trip follows the other, and a wait lengthens it.
    is_closed: bool,
    /// Round trips of a block, so that it takes its time.
    every: u64,
    trips: u64,
    begin_ns: u64,
    waited_ns: u64,
    blocks: Vec<Block>,
}

impl Waits {
    /// Of the calling thread, which takes part in round trips.
    pub(crate) fn begin() -> Self {
        Self::of(true)
    }

    /// The same of one that sends or receives a stream.
    pub(crate) fn of_stream() -> Self {
        Self::of(false)
    }

    fn of(is_closed: bool) -> Self {
        let queue = RunQueue::of_this_thread();
        let waited_ns = queue.as_ref().and_then(RunQueue::waited_ns);
        Self {
            queue,
            is_closed,
            every: 1,
            trips: 0,
            begin_ns: monotonic_ns(),
            waited_ns: waited_ns.unwrap_or(0),
            blocks: Vec::new(),
        }
    }

    /// A round trip is over, and the next has not begun.
    #[inline]
    pub(crate) fn passed(&mut self) {
        self.trips += 1;
        if self.trips >= self.every {
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        let waited_ns = self.queue.as_ref().and_then(RunQueue::waited_ns);
        let now_ns = monotonic_ns();
        let took_ns = now_ns - self.begin_ns;
        if took_ns < BLOCK_NS / 2 {
            self.every = self.every.saturating_mul(2);
        } else if took_ns > 2 * BLOCK_NS {
            self.every = (self.every / 2).max(1);
        }
        let Some(waited_ns) = waited_ns.filter(|_| self.blocks.len() < BLOCKS_MAX) else {
            self.queue = None;
            self.every = u64::MAX;
            return;
        };
        self.blocks.push(Block {
            begin_ns: self.begin_ns,
            end_ns: now_ns,
            trips: self.trips,
            waited_ns: waited_ns.saturating_sub(self.waited_ns),
        });
        (self.begin_ns, self.waited_ns, self.trips) = (now_ns, waited_ns, 0);
    }

    /// When it waited longer than usual; none where the kernel does not tell.
    pub(crate) fn end(mut self) -> Option<Vec<Away>> {
        if self.trips > 0 {
            self.look();
        }
        self.queue.as_ref()?;
        Some(absences(&self.blocks, self.is_closed))
    }
}

/// The middle of those three tenths of ascending values that are closest to each other; 0 of none.
fn closest(ascending: &[u64]) -> u64 {
    let count = (ascending.len() * 3).div_ceil(10).max(1);
    let spread = |part: &&[u64]| {
        part.last()
            .zip(part.first())
            .map(|(last, first)| last - first)
    };
    let part = ascending.windows(count).min_by_key(spread);
    part.map_or(0, |part| part[count / 2])
}

/// What is usual of a round trip of these blocks.
fn usual(blocks: &[Block], of: impl Fn(&Block) -> u64) -> u64 {
    let each = blocks.iter().map(|block| of(block) / block.trips.max(1));
    let mut each: Vec<u64> = each.collect();
    each.sort_unstable();
    let median = each.get(each.len() / 2).copied().unwrap_or(0);
    let closest = closest(&each);
    match closest < median / 2 {
        true => closest,
        false => median,
    }
}

fn absences(blocks: &[Block], is_closed: bool) -> Vec<Away> {
    let waited = |block: &Block| block.waited_ns;
    let took = |block: &Block| block.end_ns - block.begin_ns;
    let of_all = [usual(blocks, waited), usual(blocks, took)];
    let absence = |(at, block): (usize, &Block)| {
        let near = &blocks[at.saturating_sub(NEAR)..blocks.len().min(at + NEAR + 1)];
        let beyond = |of: &dyn Fn(&Block) -> u64, all_ns: u64| {
            let usual_ns = usual(near, of).min(2 * all_ns);
            of(block).saturating_sub(usual_ns * block.trips)
        };
        let waited_ns = beyond(&waited, of_all[0]);
        let beyond_ns = match is_closed {
            true => waited_ns.min(beyond(&took, of_all[1])),
            false => waited_ns,
        };
        let trip_ns = took(block) / block.trips.max(1);
        (beyond_ns > UNUSUAL_NS.max(trip_ns / UNUSUAL_PART)).then_some(Away {
            from_ns: block.begin_ns,
            to_ns: block.end_ns,
            most_ns: beyond_ns,
        })
    };
    blocks.iter().enumerate().filter_map(absence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::BODY_BYTES_MAX;
    use crate::program::OUTPUT_BYTES_MAX;

    #[test]
    fn a_log_has_the_times_of_its_samples() {
        let mut log = Log::begin(Timer::Monotonic, 3);
        let at = |ns: u64| log.origin + ns;
        let times = [(at(5), at(15)), (at(20), at(30)), (at(30), at(130))];
        for (number, (begin, end)) in times.into_iter().enumerate() {
            log.push(begin, end, number as u64);
        }
        let moments = log.moments.clone();
        assert_eq!(moments.samples, [[5, 10, 0], [5, 10, 1], [0, 100, 2]]);
        assert_eq!(log.end(Waits::begin()), Some(moments));
        // More than it has room for: it says nothing.
        let mut log = Log::begin(Timer::Monotonic, 1);
        let capacity = log.moments.samples.capacity() as u64;
        for _ in 0..=capacity {
            log.push(log.origin, log.origin, 0);
        }
        assert_eq!(log.end(Waits::begin()), None);
    }

    #[test]
    fn full_logs_fit_into_a_frame() {
        // Of 7 sizes, each sample of 10 s.
        let samples = 7 * Log::room(7) as usize;
        let moments = Moments {
            samples: vec![[9_999_999_999; 3]; samples],
            ..Moments::default()
        };
        let text = serde_json::to_string(&moments).unwrap();
        assert!(
            text.len() < BODY_BYTES_MAX as usize * 9 / 10,
            "{}",
            text.len()
        );
        assert_eq!((Log::room(0), Log::room(1)), (SAMPLES_MAX, SAMPLES_MAX));
        let of_ranks = text.len() as u64 * Log::room_of_ranks(1) / SAMPLES_MAX;
        assert!(of_ranks < OUTPUT_BYTES_MAX as u64 / 2, "{of_ranks}");
    }

    #[test]
    fn what_is_usual_is_no_absence() {
        let block = |number: u64, trips, waited_ns| Block {
            begin_ns: number * 1_000_000,
            end_ns: (number + 1) * 1_000_000,
            trips,
            waited_ns,
        };
        // Each round trip waits some 20 us for its peer, on the same CPU.
        let mut blocks: Vec<Block> = (0..100)
            .map(|n| block(n, 10, 200_000 + n * 1_000))
            .collect();
        assert_eq!(absences(&blocks, false), []);
        blocks[7].waited_ns += 200_000;
        // A single long one, all of which was waited.
        blocks[60] = block(60, 1, 900_000);
        let found = |blocks: &[Block]| -> Vec<u64> {
            let away = absences(blocks, false);
            away.iter().map(|away| away.from_ns / 1_000_000).collect()
        };
        assert_eq!(found(&blocks), [7, 60]);
        // Most of the blocks are disturbed: what is usual is seen in the others.
        for (number, block) in blocks[35..].iter_mut().enumerate() {
            block.waited_ns += 300_000 + 37_000 * number as u64;
        }
        assert_eq!(found(&blocks), [vec![7], (35..100).collect()].concat());
        // Of a round trip of 20 ms, 5 % are 1 ms.
        let mut long: Vec<Block> = (0..100).map(|n| block(20 * n, 1, 0)).collect();
        long.iter_mut()
            .for_each(|one| one.end_ns = one.begin_ns + 20_000_000);
        (long[4].waited_ns, long[5].waited_ns) = (1_000_000, 1_000_001);
        assert_eq!(found(&long), [100]);
        assert_eq!(absences(&[], false), []);
    }

    #[test]
    fn what_takes_no_longer_was_not_disturbed() {
        // Sixteen round trips of 55 us on one CPU; in every third block it goes from one end to the other twice as often.
        let mut now_ns = 0;
        let mut block = |waited_ns: u64, longer_ns: u64| {
            let begin_ns = now_ns;
            now_ns += 880_000 + longer_ns;
            Block {
                begin_ns,
                end_ns: now_ns,
                trips: 16,
                waited_ns: waited_ns + longer_ns,
            }
        };
        let mut blocks: Vec<Block> = (0..99)
            .map(|n| block(if n % 3 == 0 { 240_000 } else { 120_000 }, 0))
            .collect();
        blocks.push(block(120_000, 200_000));
        blocks.push(block(240_000, 200_000));
        let most = |is_closed| {
            let away = absences(&blocks, is_closed);
            away.iter().map(|away| away.most_ns).collect::<Vec<_>>()
        };
        assert_eq!(most(true), [200_000, 200_000]);
        assert_eq!(most(false).len(), 33 + 2);
    }
}
