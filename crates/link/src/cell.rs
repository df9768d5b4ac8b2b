//! An output port of a switch that forwards ATM cells.
//!
//! Model:   one queue of cells, first in, first out, tail drop a cell. A frame arrives as a train: cells at equal distances.
//!          All cells take the same time, so the queue is described by one number: when the line will be free. While a
//!          single train arrives, its cells are computed at once; where trains mix, one cell after the other, in the order
//!          of arrival, ties in the order in which the trains began. A frame is lost when one of its cells is; its other
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
        let mut departs = None;
        while self.trains[index].left > 0 {
            let first = self.first_train();
            departs = self.accept(first, now);
            debug_assert!(self.trains[first].next <= now || self.trains[first].left == 0);
        }
        let train = self.trains.remove(index);
        let departs = match (train.lost, departs) {
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
        while !self.trains.is_empty() {
            let first = self.first_train();
            if self.trains[first].left == 0 || self.trains[first].next > now {
                return;
            }
            self.accept(first, now);
        }
    }

    /// The train whose next cell comes first; one without cells only if all are without.
    fn first_train(&self) -> usize {
        let key = |train: &Train| (train.left == 0, train.next, train.number);
        (0..self.trains.len())
            .min_by_key(|&i| key(&self.trains[i]))
            .expect("there is a train")
    }

    /// Takes the next cell of train `index`, or all its cells until `now` where that is the same; the last departure.
    fn accept(&mut self, index: usize, now: Instant) -> Option<Instant> {
        let alone = self.trains.iter().filter(|train| train.left > 0).count() == 1;
        let (cell_time, limit, free_at) = (self.cell_time, self.limit, self.free_at);
        let train = &mut self.trains[index];
        if alone {
            let arrived =
                (now.since(train.next) / train.gap.max(Span::picos(1)) + 1).min(train.left);
            if let Some(departs) = Self::burst(free_at, cell_time, limit, train, arrived) {
                train.next = train.next + train.gap * arrived;
                train.left -= arrived;
                self.free_at = departs;
                return Some(departs);
            }
        }
        let at = train.next;
        train.next = at + train.gap;
        train.left -= 1;
        if Self::queued(free_at, at, cell_time) >= limit && free_at > at {
            train.lost += 1;
            return None;
        }
        self.free_at = free_at.max(at) + cell_time;
        Some(self.free_at)
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
