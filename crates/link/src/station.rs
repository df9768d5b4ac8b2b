//! A station: its queue and its transmitter.
//!
//! Model:   first in, first out. The queue holds frames that wait; the one on the line is not in it, nor are those on the
//!          wire. Frames that wait for a circuit count as queued. The station takes frames while its backlog is at most
//!          its queue; it wants more (`ready`) until the backlog passes half of it, and again once it has fallen to a
//!          quarter. Of what a closing gate lets slip, half a queue less one frame is sure to find room.
//! Checked: `a_station_blocks_and_wakes`; `ready_is_kept_and_announced`, `what_slips_finds_room` of the whole.

use sonde_units::{Bytes, Instant, Span};
use std::collections::VecDeque;

/// The sending side of a port.
pub(crate) struct Transmitter {
    queue: Bytes,
    free_at: Instant,
    /// Start of transmission and length of each frame that waits for the line.
    waiting: VecDeque<(Instant, Bytes)>,
    waiting_bytes: Bytes,
    /// Bytes that wait for a circuit.
    held: Bytes,
    ready: bool,
}

impl Transmitter {
    pub fn new(queue: Bytes) -> Self {
        Self {
            queue,
            free_at: Instant::START,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            held: Bytes::ZERO,
            ready: true,
        }
    }

    /// Forgets the frames whose transmission has begun at `now`.
    fn drain(&mut self, now: Instant) {
        while let Some(&(start, len)) = self.waiting.front() {
            if start > now {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= len;
        }
    }

    /// Frames that wait for the line.
    pub fn waiting(&mut self, now: Instant) -> usize {
        self.drain(now);
        self.waiting.len()
    }

    /// Queued bytes, after what has left until `now`.
    pub fn backlog(&mut self, now: Instant) -> Bytes {
        self.drain(now);
        self.waiting_bytes + self.held
    }

    /// Whether a frame of `len`, at most half of the queue, finds room. It does while the station is ready.
    pub fn admits(&mut self, now: Instant, len: Bytes) -> bool {
        self.backlog(now) + len <= self.queue
    }

    /// Sends a frame that needs the line for `time`; the start of its transmission.
    pub fn send(&mut self, now: Instant, len: Bytes, time: Span) -> Instant {
        let start = self.free_at.max(now);
        self.free_at = start + time;
        if start > now {
            self.waiting.push_back((start, len));
            self.waiting_bytes += len;
        }
        self.ready &= self.waiting_bytes + self.held <= Bytes(self.queue.0 / 2);
        start
    }

    /// Lends the line to a frame that is not the host's and counts in no queue: the start of its transmission; none if it
    /// would wait longer than `most`.
    pub fn lend(&mut self, now: Instant, time: Span, most: Span) -> Option<Instant> {
        let start = self.free_at.max(now);
        if start.since(now) > most {
            return None;
        }
        self.free_at = start + time;
        Some(start)
    }

    /// Keeps a frame that has no circuit yet.
    pub fn hold(&mut self, len: Bytes) {
        self.held += len;
        self.ready &= self.waiting_bytes + self.held <= Bytes(self.queue.0 / 2);
    }

    /// Frees what was held, before it is sent or given up.
    pub fn release(&mut self, len: Bytes) {
        self.held -= len;
    }

    pub fn ready(&self) -> bool {
        self.ready
    }

    /// Turns ready if the backlog has fallen far enough: true when it turned.
    pub fn wake(&mut self, now: Instant) -> bool {
        let low = Bytes(self.queue.0 / 4);
        if self.ready || self.backlog(now) > low {
            return false;
        }
        self.ready = true;
        true
    }

    /// When the backlog will have fallen far enough, after a [`Self::wake`] that turned nothing; none while ready, or while
    /// too much waits for a circuit.
    pub fn wakes_at(&self) -> Option<Instant> {
        let low = Bytes(self.queue.0 / 4);
        if self.ready || self.held > low {
            return None;
        }
        let mut left = self.waiting_bytes + self.held;
        for &(start, len) in &self.waiting {
            left -= len;
            if left <= low {
                return Some(start);
            }
        }
        None
    }
}

/// The queue of a station that sends when the medium lets it: the frames themselves, first in, first out. It asks and is
/// asked by the same rules as a [`Transmitter`]; the frame that is being sent is not in it.
pub(crate) struct Queue<T> {
    limit: Bytes,
    waiting: VecDeque<(Bytes, T)>,
    bytes: Bytes,
    ready: bool,
}

impl<T> Queue<T> {
    pub fn new(limit: Bytes) -> Self {
        Self {
            limit,
            waiting: VecDeque::new(),
            bytes: Bytes::ZERO,
            ready: true,
        }
    }

    /// Bytes that wait.
    pub fn backlog(&self) -> Bytes {
        self.bytes
    }

    /// Whether a frame of `len` finds room.
    pub fn admits(&self, len: Bytes) -> bool {
        self.bytes + len <= self.limit
    }

    /// Whether more are wanted.
    pub fn ready(&self) -> bool {
        self.ready
    }

    /// Takes a frame of `len`.
    pub fn push(&mut self, len: Bytes, frame: T) {
        self.waiting.push_back((len, frame));
        self.bytes += len;
        self.ready &= self.bytes <= Bytes(self.limit.0 / 2);
    }

    /// The frame that waits longest, and its length.
    pub fn front(&self) -> Option<&(Bytes, T)> {
        self.waiting.front()
    }

    /// Gives the frame that waits longest to the line. True beside it: the station wants frames again.
    pub fn pop(&mut self) -> Option<(Bytes, T, bool)> {
        let (len, frame) = self.waiting.pop_front()?;
        self.bytes -= len;
        let woken = !self.ready && self.bytes <= Bytes(self.limit.0 / 4);
        self.ready |= woken;
        Some((len, frame, woken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_blocks_and_wakes() {
        let mut station = Transmitter::new(Bytes(4_000));
        let (len, time) = (Bytes(1_000), Span::micros(1));
        let start = Instant::START;
        let mut taken = 0;
        while station.admits(start, len) {
            station.send(start, len, time);
            taken += 1;
            // One on the line, two queued: half the queue is full, not passed.
            assert_eq!(station.ready(), taken <= 3);
        }
        assert_eq!(taken, 5);
        assert_eq!(station.backlog(start), Bytes(4_000));
        // A quarter is left when the fourth frame begins.
        let wakes = station.wakes_at().unwrap();
        assert_eq!(wakes, start + Span::micros(3));
        assert!(!station.wake(wakes - Span::picos(1)));
        assert!(station.wake(wakes) && station.ready());
    }
}
