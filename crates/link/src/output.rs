//! An output port of a switch that forwards frames: queue with a limit, serializer.
//!
//! Model:   first in, first out, tail drop. A frame that can start at once needs no room; one that must wait needs room
//!          for the whole of it. Cut-through starts before the frame is all in, but never so early that the line would
//!          run dry before its end.
//! Checked: `the_tail_is_dropped`, `cut_through_never_runs_dry`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sonde_units::{Bytes, Instant, Span};
use std::{collections::VecDeque, fmt};

/// How much an output queue holds, not counting what is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Layer-3 bytes.
    Bytes(Bytes),
    /// Frames of any length.
    Frames(u64),
    /// ATM cells.
    Cells(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Frames(n) => write!(f, "{n}frames"),
            Self::Cells(n) => write!(f, "{n}cells"),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The queue was full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

/// An output port for whole frames.
pub(crate) struct FrameOutput {
    limit: Limit,
    free_at: Instant,
    waiting: VecDeque<(Instant, Bytes)>,
    waiting_bytes: Bytes,
}

impl FrameOutput {
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            free_at: Instant::START,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
        }
    }

    /// Takes a frame that was forwarded at `now`, whose last bit is at the output at `tail` and which needs the line for
    /// `time`: when its last bit leaves.
    pub fn take(
        &mut self,
        now: Instant,
        tail: Instant,
        len: Bytes,
        time: Span,
    ) -> Result<Instant, Overflow> {
        self.drain(now);
        // Starting before `tail - time` would leave the line without bits at the end of the frame.
        let start = self.free_at.max(now).max(Instant::from_picos(
            tail.as_picos().saturating_sub(time.as_picos()),
        ));
        if start > now && !self.has_room(len) {
            return Err(Overflow);
        }
        self.free_at = start + time;
        if start > now {
            self.waiting.push_back((start, len));
            self.waiting_bytes += len;
        }
        Ok(self.free_at)
    }

    /// Forgets the frames that have begun to leave until `now`; layer-3 bytes of those that wait.
    pub fn drain(&mut self, now: Instant) -> Bytes {
        while self.waiting.front().is_some_and(|&(start, _)| start <= now) {
            let (_, gone) = self.waiting.pop_front().expect("there is a first");
            self.waiting_bytes -= gone;
        }
        self.waiting_bytes
    }

    /// Layer-3 bytes that waited when the last frame came, and with it where it waits too.
    pub fn waiting(&self) -> Bytes {
        self.waiting_bytes
    }

    /// Whether a frame would have to wait.
    pub fn is_busy(&self, now: Instant) -> bool {
        self.free_at > now
    }

    /// Whether so much waits, with the frame that was taken last.
    pub fn holds(&self, mark: Limit) -> bool {
        match mark {
            Limit::Bytes(bytes) => self.waiting_bytes >= bytes,
            Limit::Frames(n) | Limit::Cells(n) => self.waiting.len() as u64 >= n,
        }
    }

    /// Forgets all that waits and what is being sent; nothing leaves before `at`.
    pub fn clear(&mut self, at: Instant) {
        self.waiting.clear();
        self.waiting_bytes = Bytes::ZERO;
        self.free_at = at;
    }

    fn has_room(&self, len: Bytes) -> bool {
        match self.limit {
            Limit::Bytes(limit) => self.waiting_bytes + len <= limit,
            Limit::Frames(limit) => (self.waiting.len() as u64) < limit,
            Limit::Cells(_) => {
                unreachable!("cells are counted by a cell output; the specification was checked")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_dropped() {
        for (limit, waiting) in [
            (Limit::Frames(2), 2),
            (Limit::Bytes(Bytes(2_999)), 2),
            (Limit::Bytes(Bytes(3_000)), 3),
        ] {
            let mut output = FrameOutput::new(limit);
            let mut take = |at: Instant| output.take(at, at, Bytes(1_000), Span::micros(8));
            let taken = (0..10).filter(|_| take(Instant::START).is_ok()).count();
            assert_eq!(taken, 1 + waiting, "{limit}");
            assert_eq!(take(Instant::START), Err(Overflow));
            // When the next begins, its room is free.
            let later = Instant::START + Span::micros(8);
            assert_eq!(
                take(later),
                Ok(Instant::START + Span::micros(8 * (waiting as u64 + 2)))
            );
        }
    }

    #[test]
    fn cut_through_never_runs_dry() {
        // In at 8 us a frame, out at 2 us: the end of the frame is there at 8 us, so sending starts at 6 us.
        let mut output = FrameOutput::new(Limit::Frames(8));
        let tail = Instant::START + Span::micros(8);
        assert_eq!(
            output.take(Instant::START, tail, Bytes(1_000), Span::micros(2)),
            Ok(tail)
        );
    }

    #[test]
    fn limits_parse_and_print() {
        for text in ["13312cells", "100frames", "512KiB"] {
            assert_eq!(text.parse::<Limit>().unwrap().to_string(), text);
        }
        assert!("many".parse::<Limit>().unwrap_err().contains("13312cells"));
    }
}
