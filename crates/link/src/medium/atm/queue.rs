//! An output that handles every cell alone: categories, discard, per-circuit accounting.
//!
//! Model:   a queue for each service category, served in strict order of the categories, first in, first out within one;
//!          no cell that is being sent is interrupted. Each category has the whole buffer, so that data cannot take the
//!          room of voice; ports of one module share it. A cell that finds the line idle needs no room. EPD refuses a
//!          frame by its first cell when `threshold` cells wait or more; selective drop only where the circuit holds more
//!          than `fair_share` of (waiting cells / circuits that have some). PPD drops, after a cell was dropped, the rest
//!          of its frame but the last cell.
//! Source:  Romanow and Floyd 1995 (PPD, EPD); Goyal, Jain et al. 1996 (selective drop); ATM Forum TM 4.0 §2 (categories).
//!          Deviations: strict priority between categories; none among the discards.
//! Units:   cells.
//! Checked: `theory` here (M/D/1, N·D/D/1, M/M/1/K); `tests/atm/discard.rs` (against the machine of trains; discards).

use super::abr::Shares;
use super::spec::{AtmTraffic, CATEGORIES, Discard};
use sonde_units::{Instant, Ratio, Span};
use std::collections::VecDeque;

/// A cell of frame `pdu` of circuit `vc`, on hop `hop` of its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub pdu: u32,
    pub vc: u32,
    pub hop: u8,
    /// Its category, the first served first.
    pub rank: u8,
    /// Whether it is the last one of its frame.
    pub last: bool,
}

/// What an output did before with cells of the same frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// It saw none.
    First,
    /// It took all.
    Whole,
    /// It dropped one: the rest but the last may go too.
    Broken,
    /// It refused the frame.
    Refused,
}

/// What an output does with a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is being sent, and has left at this time.
    Sent(Instant),
    /// It waits.
    Waits,
    /// It found no room.
    NoRoom,
    /// It is dropped with its frame, of which a cell was dropped.
    Partial,
    /// Its frame is refused.
    Early,
}

/// The rules of all outputs of a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    discard: Discard,
    fair_share: Ratio,
}

impl Rules {
    pub fn new(traffic: &AtmTraffic) -> Self {
        Self {
            discard: traffic.discard,
            fair_share: traffic.fair_share,
        }
    }
}

/// The buffer of a module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pool {
    /// The cells that wait, by category.
    waiting: [u64; CATEGORIES],
    limit: u64,
    /// From so many waiting cells on frames are refused, or marked.
    threshold: u64,
}

impl Pool {
    /// Whether so many cells of a category wait that senders should slow down.
    pub fn is_congested(&self, rank: u8) -> bool {
        self.waiting[usize::from(rank)] >= self.threshold
    }

    /// One more port brings its `limit`; the threshold is the one given, or half of all.
    pub fn enlarge(&mut self, limit: u64, threshold: Option<u64>) {
        self.limit += limit;
        self.threshold = threshold.unwrap_or(self.limit.div_ceil(2));
    }
}

/// An output port.
pub(crate) struct Output {
    /// The time of a cell on its line.
    pub cell_time: Span,
    /// From its line's one end to the other.
    pub way: Span,
    /// Whose buffer it uses.
    pub pool: usize,
    /// The circuits that share its line by rate.
    pub shares: Shares,
    queues: [VecDeque<Cell>; CATEGORIES],
    serving: Option<Cell>,
    until: Instant,
    /// Waiting cells by circuit, and how many circuits have some.
    held: Vec<u32>,
    holders: u64,
}

impl Output {
    pub fn new(cell_time: Span, way: Span, pool: usize) -> Self {
        Self {
            cell_time,
            way,
            pool,
            shares: Shares::default(),
            queues: Default::default(),
            serving: None,
            until: Instant::START,
            held: Vec::new(),
            holders: 0,
        }
    }

    /// A cell is here at `now`; everything that leaves at `now` or earlier has left.
    pub fn take(
        &mut self,
        now: Instant,
        cell: Cell,
        past: Past,
        rules: &Rules,
        pool: &mut Pool,
    ) -> Verdict {
        match past {
            Past::Refused => return Verdict::Early,
            Past::Broken if rules.discard != Discard::Tail && !cell.last => {
                return Verdict::Partial;
            }
            Past::First if self.refuses(cell, rules, pool) => return Verdict::Early,
            _ => {}
        }
        if self.serving.is_none() {
            self.serving = Some(cell);
            self.until = now + self.cell_time;
            return Verdict::Sent(self.until);
        }
        let waiting = &mut pool.waiting[usize::from(cell.rank)];
        if *waiting >= pool.limit {
            return Verdict::NoRoom;
        }
        *waiting += 1;
        self.queues[usize::from(cell.rank)].push_back(cell);
        let vc = cell.vc as usize;
        if self.held.len() <= vc {
            self.held.resize(vc + 1, 0);
        }
        self.holders += u64::from(self.held[vc] == 0);
        self.held[vc] += 1;
        Verdict::Waits
    }

    /// Whether a frame that begins with `cell` is not let in.
    fn refuses(&self, cell: Cell, rules: &Rules, pool: &Pool) -> bool {
        let waiting = pool.waiting[usize::from(cell.rank)];
        match rules.discard {
            Discard::Tail | Discard::Ppd => false,
            Discard::Epd => waiting >= pool.threshold,
            Discard::Selective => {
                let held = self.held.get(cell.vc as usize).copied().unwrap_or(0);
                waiting >= pool.threshold
                    && u64::from(held) * self.holders > rules.fair_share.of(waiting)
            }
        }
    }

    /// The cell that left at `at`, if one did, and when the next will have left.
    pub fn depart(&mut self, at: Instant, pool: &mut Pool) -> Option<(Cell, Option<Instant>)> {
        if self.until != at {
            return None;
        }
        let gone = self.serving.take()?;
        let next = self
            .queues
            .iter_mut()
            .enumerate()
            .find_map(|(rank, queue)| queue.pop_front().map(|cell| (rank, cell)));
        let Some((rank, cell)) = next else {
            return Some((gone, None));
        };
        pool.waiting[rank] -= 1;
        self.release(cell.vc);
        self.serving = Some(cell);
        self.until = at + self.cell_time;
        Some((gone, Some(self.until)))
    }

    fn release(&mut self, vc: u32) {
        let held = &mut self.held[vc as usize];
        *held -= 1;
        self.holders -= u64::from(*held == 0);
    }

    /// All cells are gone, and told to `lost`.
    pub fn clear(&mut self, pool: &mut Pool, mut lost: impl FnMut(Cell)) {
        self.serving.take().into_iter().for_each(&mut lost);
        for rank in 0..CATEGORIES {
            while let Some(cell) = self.queues[rank].pop_front() {
                pool.waiting[rank] -= 1;
                self.release(cell.vc);
                lost(cell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(pdu: u32, vc: u32, last: bool) -> Cell {
        Cell {
            pdu,
            vc,
            hop: 0,
            rank: 4,
            last,
        }
    }

    fn rules(discard: Discard, limit: u64) -> (Rules, Pool) {
        let traffic = AtmTraffic {
            discard,
            ..AtmTraffic::default()
        };
        let mut pool = Pool::default();
        pool.enlarge(limit, None);
        (Rules::new(&traffic), pool)
    }

    /// Ten cells at once into room for four: what is taken by each rule. The line takes the first.
    #[test]
    fn each_rule_drops_what_it_says() {
        for (discard, taken, verdict) in [
            (Discard::Tail, vec![0, 1, 2, 3, 4], Verdict::NoRoom),
            (Discard::Ppd, vec![0, 1, 2, 3, 4], Verdict::Partial),
            // The second frame finds two or more and is refused; the first goes on.
            (Discard::Epd, vec![0, 1, 2, 3, 4], Verdict::Early),
        ] {
            let (rules, mut pool) = rules(discard, 4);
            let mut output = Output::new(Span::picos(10), Span::ZERO, 0);
            let mut past = Past::First;
            let mut verdicts = Vec::new();
            for n in 0..10u32 {
                let (pdu, last) = (n / 5, n % 5 == 4);
                if n == 5 {
                    past = Past::First;
                }
                let verdict =
                    output.take(Instant::START, cell(pdu, 0, last), past, &rules, &mut pool);
                past = match (past, verdict) {
                    (_, Verdict::NoRoom) => Past::Broken,
                    (_, Verdict::Early) => Past::Refused,
                    (Past::First, _) => Past::Whole,
                    (past, _) => past,
                };
                verdicts.push(verdict);
            }
            let got: Vec<_> = (0..10)
                .filter(|n| matches!(verdicts[*n], Verdict::Sent(_) | Verdict::Waits))
                .collect();
            assert_eq!(got, taken, "{discard:?}");
            assert_eq!(verdicts[6], verdict, "{discard:?}");
        }
    }

    /// One circuit holds three of four waiting cells, another one: above the threshold only the first is refused.
    #[test]
    fn selective_drop_takes_from_who_has_most() {
        let (rules, mut pool) = rules(Discard::Selective, 8);
        let mut output = Output::new(Span::picos(10), Span::ZERO, 0);
        for (pdu, vc) in [(0, 0), (0, 0), (0, 0), (0, 0), (1, 1)] {
            let cell = cell(pdu, vc, false);
            output.take(Instant::START, cell, Past::Whole, &rules, &mut pool);
        }
        let mut first = |vc| {
            let cell = cell(9, vc, false);
            output.take(Instant::START, cell, Past::First, &rules, &mut pool)
        };
        assert_eq!(first(0), Verdict::Early);
        assert_eq!(first(1), Verdict::Waits);
    }

    #[test]
    fn the_first_category_goes_first() {
        let (rules, mut pool) = rules(Discard::Tail, 8);
        let mut output = Output::new(Span::picos(10), Span::ZERO, 0);
        for (pdu, rank) in [(0, 4), (1, 4), (2, 2), (3, 0), (4, 0)] {
            let cell = Cell {
                rank,
                ..cell(pdu, 0, true)
            };
            output.take(Instant::START, cell, Past::First, &rules, &mut pool);
        }
        let order: Vec<_> = (1..=5)
            .map(|n| {
                let at = Instant::from_picos(10 * n);
                output.depart(at, &mut pool).expect("a cell leaves").0.pdu
            })
            .collect();
        assert_eq!(order, [0, 3, 4, 2, 1]);
    }
}

#[cfg(test)]
mod theory {
    mod tests;
}
