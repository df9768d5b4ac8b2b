//! The pending steps of a fabric in the order of their times; ties in an order of their own, not in that of insertion.
//!
//! Model:   a step is one number: its time, its kind, whom it is about. What happens at one time is done in the order of
//!          these numbers, so that it does not matter when a step was planned.
//! Units:   picoseconds.
//! Checked: `steps_are_kept_whole_and_in_order`.

use sonde_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A packet has left a chip's central queue.
    Room(u32),
    /// A line may start a packet.
    Turn(u32),
    /// The head of an input may go on.
    Head(u32),
    /// This head of an input, by its number, has waited too long.
    Expire(u32, u32),
    /// A packet of a datagram is at its host.
    Arrived(u32, u32),
    /// A packet from one to another was acknowledged.
    Acknowledged(u16, u16),
    /// The address server answers the request that it has had for longest.
    Answer,
    /// Two stations know each other.
    LoggedIn(u16, u16),
    /// A connection of class 1 is set up.
    Connected(u16, u16),
}

/// Bits of what a step is about: the first part below the kind, and the second.
const FIRST: u32 = 32;
const KIND: u32 = 60;

impl Step {
    fn number(self) -> u64 {
        let (kind, first, second) = match self {
            Self::Room(chip) => (0, chip, 0),
            Self::Turn(line) => (1, line, 0),
            Self::Head(input) => (2, input, 0),
            Self::Expire(input, head) => (3, input, head),
            Self::Arrived(datagram, packet) => (4, datagram, packet),
            Self::Acknowledged(from, to) => (5, u32::from(from), u32::from(to)),
            Self::Answer => (6, 0, 0),
            Self::LoggedIn(a, b) => (7, u32::from(a), u32::from(b)),
            Self::Connected(a, b) => (8, u32::from(a), u32::from(b)),
        };
        debug_assert!(first < 1 << (KIND - FIRST));
        kind << KIND | u64::from(first) << FIRST | u64::from(second)
    }

    fn of(number: u64) -> Self {
        let first = (number >> FIRST) as u32 & ((1 << (KIND - FIRST)) - 1);
        let second = number as u32;
        match number >> KIND {
            0 => Self::Room(first),
            1 => Self::Turn(first),
            2 => Self::Head(first),
            3 => Self::Expire(first, second),
            4 => Self::Arrived(first, second),
            5 => Self::Acknowledged(first as u16, second as u16),
            6 => Self::Answer,
            7 => Self::LoggedIn(first as u16, second as u16),
            _ => Self::Connected(first as u16, second as u16),
        }
    }
}

/// Steps to come.
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<u128>>,
}

impl Agenda {
    pub fn new() -> Self {
        let heap = BinaryHeap::new();
        Self { heap }
    }

    pub fn insert(&mut self, at: Instant, step: Step) {
        let entry = u128::from(at.as_picos()) << 64 | u128::from(step.number());
        self.heap.push(Reverse(entry));
    }

    pub fn next_at(&self) -> Option<Instant> {
        let time = |entry: &Reverse<u128>| Instant::from_picos((entry.0 >> 64) as u64);
        self.heap.peek().map(time)
    }

    /// The first step.
    pub fn pop(&mut self) -> Option<(Instant, Step)> {
        let Reverse(entry) = self.heap.pop()?;
        Some((
            Instant::from_picos((entry >> 64) as u64),
            Step::of(entry as u64),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_kept_whole_and_in_order() {
        let steps = [
            Step::Room(3),
            Step::Turn(70_000),
            Step::Head(1),
            Step::Head(2),
            Step::Expire(5, u32::MAX),
            Step::Arrived(9, 264),
            Step::Acknowledged(1, u16::MAX),
            Step::Answer,
            Step::LoggedIn(2, 1),
            Step::Connected(1, 2),
        ];
        let mut agenda = Agenda::new();
        let (early, late) = (Instant::from_picos(5), Instant::from_picos(u64::MAX / 2));
        for (at, step) in [late, early]
            .into_iter()
            .flat_map(|at| steps.map(|step| (at, step)).into_iter().rev())
        {
            agenda.insert(at, step);
        }
        assert_eq!(agenda.next_at(), Some(early));
        let want: Vec<_> = [early, late]
            .into_iter()
            .flat_map(|at| steps.map(|step| (at, step)))
            .collect();
        let got: Vec<_> = std::iter::from_fn(|| agenda.pop()).collect();
        assert_eq!(got, want);
    }
}
