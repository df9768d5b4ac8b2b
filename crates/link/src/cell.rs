//! An output port of a switch that forwards ATM cells.
//!
//! Model:   one queue of cells, first in, first out, tail drop a cell. A frame arrives as a train: cells at equal distances.
//!          All cells take the same time, so the queue is described by one number: when the line will be free. Cells are
//!          handled in the order of arrival, ties in the order in which the trains began: at once where a single train
//!          arrives, or where trains mix with room for all and the line stays busy; else one after the other. A frame is lost when one of its cells is; its other
//!          cells still use the line (no frame discard).
//! Source:  ITU-T I.361, I.363.5. Deviations: none.
//! Checked: `trains_equal_the_plain_cell_machine` (property, against a machine that handles every cell alone).

use crate::Frame;
use sonde_units::{Instant, Span};

/// A frame whose cells are arriving.
struct Train {
    number: u64,
    frame: Frame,
    next: Instant,
    gap: Span,
    left: u64,
    lost: u64,
    /// When the cell that was handled last leaves, unless it was dropped.
    departs: Option<Instant>,
}

impl Train {
    /// Its cells that come before `now`.
    fn before(&self, now: Instant) -> u64 {
        let wait = now.since(self.next).as_picos();
        match self.gap.as_picos() {
            _ if wait == 0 => 0,
            0 => self.left,
            gap => wait.div_ceil(gap).min(self.left),
        }
    }

    /// Its cells that come until `now`, which is not before its next.
    fn until(&self, now: Instant) -> u64 {
        match self.gap.as_picos() {
            0 => self.left,
            gap => (now.since(self.next).as_picos() / gap + 1).min(self.left),
        }
    }

    fn skip(&mut self, cells: u64) {
        self.next = self.next + self.gap * cells;
        self.left -= cells;
    }
}

/// The end of a train: when its last cell left, or how many of its cells were dropped.
pub(crate) struct TrainEnd {
    pub frame: Frame,
    pub departs: Result<Instant, u64>,
}

/// An output port for cells.
pub(crate) struct CellOutput {
    cell_time: Span,
    limit: u64,
    free_at: Instant,
    trains: Vec<Train>,
}

impl CellOutput {
    /// `limit` cells may wait beside the one that is being sent.
    pub fn new(cell_time: Span, limit: u64) -> Self {
        Self {
            cell_time,
            limit,
            free_at: Instant::START,
            trains: Vec::new(),
        }
    }

    /// Cells take another time from now on.
    pub fn pace(&mut self, cell_time: Span) {
        self.cell_time = cell_time;
    }

    /// Forgets all cells; the frames whose trains have not ended.
    pub fn clear(&mut self, now: Instant) -> Vec<Frame> {
        self.free_at = now;
        self.trains.drain(..).map(|train| train.frame).collect()
    }

    /// A train whose first of `cells` cells is here at `now`; the arrival of its last cell, at which [`Self::end`] must be
    /// called with the same `number`.
    pub fn begin(
        &mut self,
        now: Instant,
        number: u64,
        frame: Frame,
        cells: u64,
        gap: Span,
    ) -> Instant {
        self.advance(now);
        self.trains.push(Train {
            number,
            frame,
            next: now,
            gap,
            left: cells,
            lost: 0,
            departs: None,
        });
        now + gap * (cells - 1)
    }

    /// The outcome of train `number`, whose last cell arrived at `now`.
    pub fn end(&mut self, now: Instant, number: u64) -> TrainEnd {
        let index = self
            .trains
            .iter()
            .position(|train| train.number == number)
            .expect("an ending train has begun");
        self.mix(now);
        while self.trains[index].left > 0 {
            self.accept(self.first_train(), now);
        }
        let train = self.trains.remove(index);
        let departs = match (train.lost, train.departs) {
            (0, Some(at)) => Ok(at),
            (lost, _) => Err(lost),
        };
        TrainEnd {
            frame: train.frame,
            departs,
        }
    }

    /// Handles all cells that arrived until `now`.
    fn advance(&mut self, now: Instant) {
        self.mix(now);
        while !self.trains.is_empty() {
            let first = self.first_train();
            if self.trains[first].left == 0 || self.trains[first].next > now {
                return;
            }
            self.accept(first, now);
        }
    }

    /// Handles the cells that arrived before `now` at once, if the queue has room for all of them, so that none can be
    /// dropped, and one train brings cells fast enough to keep the line busy from the first to the last. Does nothing
    /// otherwise. No train can end here: its end is called when its last cell is there.
    fn mix(&mut self, now: Instant) {
        let Some(first) = self
            .trains
            .iter()
            .filter(|train| train.left > 0)
            .map(|train| train.next)
            .min()
        else {
            return;
        };
        let (mut cells, mut last, mut steady) = (0, first, false);
        for train in &self.trains {
            let arrived = train.before(now);
            if arrived == 0 {
                continue;
            }
            if arrived == train.left {
                return;
            }
            cells += arrived;
            let until = train.next + train.gap * (arrived - 1);
            if until >= last {
                last = until;
                steady = train.gap <= self.cell_time && train.next <= first + self.cell_time;
            }
        }
        let room = Self::queued(self.free_at, first, self.cell_time) + cells <= self.limit;
        if cells == 0 || !steady || !room {
            return;
        }
        self.free_at = self.free_at.max(first) + self.cell_time * cells;
        for train in &mut self.trains {
            train.skip(train.before(now));
        }
    }

    /// The train whose next cell comes first; one without cells only if all are without.
    fn first_train(&self) -> usize {
        let key = |train: &Train| (train.left == 0, train.next, train.number);
        (0..self.trains.len())
            .min_by_key(|&i| key(&self.trains[i]))
            .expect("there is a train")
    }

    /// Takes the next cell of train `index`, or all its cells until `now` where that is the same.
    fn accept(&mut self, index: usize, now: Instant) {
        let alone = self.trains.iter().filter(|train| train.left > 0).count() == 1;
        let (cell_time, limit, free_at) = (self.cell_time, self.limit, self.free_at);
        let train = &mut self.trains[index];
        if alone {
            let arrived = train.until(now);
            if let Some(departs) = Self::burst(free_at, cell_time, limit, train, arrived) {
                train.skip(arrived);
                train.departs = Some(departs);
                self.free_at = departs;
                return;
            }
        }
        let at = train.next;
        train.skip(1);
        if free_at > at && Self::queued(free_at, at, cell_time) >= limit {
            train.lost += 1;
            train.departs = None;
            return;
        }
        self.free_at = free_at.max(at) + cell_time;
        train.departs = Some(self.free_at);
    }

    /// Cells that wait at `at`, beside the one that is being sent.
    fn queued(free_at: Instant, at: Instant, cell_time: Span) -> u64 {
        free_at
            .since(at)
            .as_picos()
            .div_ceil(cell_time.as_picos())
            .saturating_sub(1)
    }

    /// When the last of `cells` cells of a lone train leaves, if none of them is dropped.
    fn burst(
        free_at: Instant,
        cell_time: Span,
        limit: u64,
        train: &Train,
        cells: u64,
    ) -> Option<Instant> {
        let (first, last) = (train.next, train.next + train.gap * (cells - 1));
        // The queue is longest at the first cell where cells come slower than they leave, else at the last.
        let before_last = (free_at + cell_time * (cells - 1)).max(if train.gap >= cell_time {
            last
        } else {
            first + cell_time * (cells - 1)
        });
        let fits =
            |free: Instant, at: Instant| free <= at || Self::queued(free, at, cell_time) < limit;
        (fits(free_at, first) && fits(before_last, last)).then(|| before_last.max(last) + cell_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameId, Port};
    use proptest::prelude::*;
    use sonde_units::Bytes;
    use std::collections::VecDeque;

    const CELL: u64 = 10;

    /// A train as it will arrive, with its place among what happens at the same time.
    #[derive(Clone, Debug)]
    struct Arrival {
        start: u64,
        gap: u64,
        cells: u64,
        begin_rank: u8,
        end_rank: u8,
    }

    fn frame(id: u64) -> Frame {
        Frame::datagram(FrameId(id), Port(0), Port(1), Bytes(40))
    }

    /// Every cell alone: a line that is busy until some time and a queue of the cells that wait for it. By train: when its
    /// last cell left, or how many were dropped.
    fn plain(trains: &[Arrival], limit: u64) -> Vec<Result<u64, u64>> {
        let mut cells: Vec<_> = trains
            .iter()
            .enumerate()
            .flat_map(|(number, train)| {
                (0..train.cells).map(move |k| (train.start + k * train.gap, number, k))
            })
            .collect();
        cells.sort_unstable();
        let mut outcome = vec![Ok(0); trains.len()];
        let (mut busy_until, mut waiting) = (0, VecDeque::new());
        let serve = |busy_until: &mut u64, waiting: &mut VecDeque<usize>, until: u64| {
            let mut left = Vec::new();
            while *busy_until <= until {
                let Some(number) = waiting.pop_front() else {
                    break;
                };
                *busy_until += CELL;
                left.push((number, *busy_until));
            }
            left
        };
        let mut told = Vec::new();
        for (at, number, _) in cells {
            told.extend(serve(&mut busy_until, &mut waiting, at));
            if busy_until <= at {
                busy_until = at + CELL;
                told.push((number, busy_until));
            } else if (waiting.len() as u64) < limit {
                waiting.push_back(number);
            } else {
                let lost = outcome[number].err().unwrap_or(0);
                outcome[number] = Err(lost + 1);
            }
        }
        told.extend(serve(&mut busy_until, &mut waiting, u64::MAX));
        for (number, at) in told {
            if let Ok(last) = &mut outcome[number] {
                *last = at;
            }
        }
        outcome
    }

    /// The same through [`CellOutput`], told as a calendar would: in the order of time, ties in any.
    fn machine(trains: &[Arrival], limit: u64) -> Vec<Result<u64, u64>> {
        let mut output = CellOutput::new(Span::picos(CELL), limit);
        let mut told: Vec<_> = trains
            .iter()
            .enumerate()
            .flat_map(|(number, train)| {
                let last = train.start + train.gap * (train.cells - 1);
                // No train ends before it begins, nor begins before one of a smaller number.
                [
                    (train.start, train.begin_rank, 0, number),
                    (last, train.end_rank.max(train.begin_rank), 1, number),
                ]
            })
            .collect();
        told.sort_unstable();
        let mut outcome = vec![Ok(0); trains.len()];
        for (at, _, end, number) in told {
            let (now, train) = (Instant::from_picos(at), &trains[number]);
            if end == 0 {
                let gap = Span::picos(train.gap);
                let last = output.begin(now, number as u64, frame(number as u64), train.cells, gap);
                assert_eq!(last, now + gap * (train.cells - 1));
            } else {
                let end = output.end(now, number as u64);
                assert_eq!(end.frame.id, FrameId(number as u64));
                outcome[number] = end.departs.map(Instant::as_picos);
            }
        }
        assert!(output.trains.is_empty());
        outcome
    }

    fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
        let gap = prop_oneof![
            4 => Just(CELL),
            1 => Just(0),
            1 => 1..CELL,
            1 => CELL + 1..4 * CELL,
        ];
        let arrival = (0u64..600, gap, 1u64..50, any::<u8>(), any::<u8>()).prop_map(
            |(start, gap, cells, begin_rank, end_rank)| Arrival {
                start,
                gap,
                cells,
                begin_rank,
                end_rank,
            },
        );
        proptest::collection::vec(arrival, 1..12).prop_map(|mut trains| {
            trains.sort_by_key(|train| (train.start, train.begin_rank));
            trains
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn trains_equal_the_plain_cell_machine(
            trains in arrivals(),
            limit in prop_oneof![1u64..12, 12u64..200, Just(13_312)],
        ) {
            prop_assert_eq!(machine(&trains, limit), plain(&trains, limit));
        }
    }

    /// The train of the first sender ends where another begins, which is told first.
    #[test]
    fn an_end_told_after_a_beginning_is_no_loss() {
        let train = |start, begin_rank, end_rank| Arrival {
            start,
            gap: CELL,
            cells: 3,
            begin_rank,
            end_rank,
        };
        let trains = [train(0, 0, 9), train(20, 1, 9)];
        assert_eq!(machine(&trains, 8), [Ok(30), Ok(60)]);
        assert_eq!(plain(&trains, 8), [Ok(30), Ok(60)]);
    }
}
