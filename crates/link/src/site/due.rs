//! Which segment has something to tell first.
//!
//! Model:   the earliest time, at equal times the first in the order of the file. A time that a segment has no more stays in the heap until
//!          it is on top.
//! Checked: `the_first_is_the_earliest`.

use sonde_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When each segment is to be polled.
pub(crate) struct Due {
    at: Vec<Option<Instant>>,
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Due {
    pub fn new(segments: usize) -> Self {
        Self {
            at: vec![None; segments],
            heap: BinaryHeap::new(),
        }
    }

    /// A segment is to be polled then; none: it is idle.
    pub fn set(&mut self, segment: usize, at: Option<Instant>) {
        if self.at[segment] != at {
            self.at[segment] = at;
            self.heap.extend(at.map(|at| Reverse((at, segment))));
        }
        while let Some(Reverse((at, segment))) = self.heap.peek()
            && self.at[*segment] != Some(*at)
        {
            self.heap.pop();
        }
    }

    pub fn first(&self) -> Option<(Instant, usize)> {
        self.heap.peek().map(|Reverse(first)| *first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_the_earliest() {
        let mut due = Due::new(3);
        let at = |picos| Instant::from_picos(picos);
        assert_eq!(due.first(), None);
        due.set(2, Some(at(5)));
        due.set(0, Some(at(7)));
        due.set(1, Some(at(5)));
        assert_eq!(due.first(), Some((at(5), 1)));
        // One is idle, one is later than it was, then earlier.
        due.set(1, None);
        assert_eq!(due.first(), Some((at(5), 2)));
        due.set(2, Some(at(9)));
        assert_eq!(due.first(), Some((at(7), 0)));
        due.set(2, Some(at(5)));
        assert_eq!(due.first(), Some((at(5), 2)));
        due.set(2, None);
        due.set(0, None);
        assert_eq!(due.first(), None);
    }
}
