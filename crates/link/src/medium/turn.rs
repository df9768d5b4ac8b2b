//! What waits at a station of a medium that stations share: the host's frames, and background traffic beside them.
//!
//! Model:   first in, first out over both. Only the host's frames count for the station's admission; background traffic has
//!          places of its own, so that it takes turns from the host and no room.
//! Checked: `both_leave_in_the_order_of_their_coming`, `background_takes_no_room`.

use crate::medium::Target;
use crate::station::Queue;
use crate::{Frame, Port};
use sonde_units::Bytes;
use std::collections::VecDeque;

/// Background frames that wait at one station, at most.
const GHOSTS_MAX: usize = 4_096;

/// A frame that waits: its number among those of its station, the frame, and where it goes.
type Item = (u64, Frame, Target);

/// The frames that wait at a station.
pub(crate) struct Turns {
    queue: Queue<Item>,
    ghosts: VecDeque<Item>,
    numbers: u64,
}

impl Turns {
    pub fn new(limit: Bytes) -> Self {
        Self {
            queue: Queue::new(limit),
            ghosts: VecDeque::new(),
            numbers: 0,
        }
    }

    /// Whether a frame of the host finds room.
    pub fn admits(&self, len: Bytes) -> bool {
        self.queue.admits(len)
    }

    /// Whether the host shall send more.
    pub fn ready(&self) -> bool {
        self.queue.ready()
    }

    /// Layer-3 bytes of the host that wait.
    pub fn backlog(&self) -> Bytes {
        self.queue.backlog()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.front().is_none() && self.ghosts.is_empty()
    }

    /// Takes a frame of the host.
    pub fn push(&mut self, frame: Frame, target: Target) {
        self.queue.push(frame.len, (self.numbers, frame, target));
        self.numbers += 1;
    }

    /// Takes a frame of background traffic; false where too many wait already.
    pub fn push_ghost(&mut self, frame: Frame, to: Port) -> bool {
        if self.ghosts.len() == GHOSTS_MAX {
            return false;
        }
        let item = (self.numbers, frame, Target::One(to));
        self.ghosts.push_back(item);
        self.numbers += 1;
        true
    }

    /// The frame that waits longest. True beside it: the station wants frames again.
    pub fn pop(&mut self) -> Option<(Frame, Target, bool)> {
        let host = self.queue.front().map(|(_, item)| item.0);
        let ghost = self.ghosts.front().map(|item| item.0);
        match (host, ghost) {
            (Some(host), Some(ghost)) if ghost < host => self.pop_ghost(),
            (None, Some(_)) => self.pop_ghost(),
            _ => {
                let (_, (_, frame, target), woken) = self.queue.pop()?;
                Some((frame, target, woken))
            }
        }
    }

    fn pop_ghost(&mut self) -> Option<(Frame, Target, bool)> {
        let (_, frame, target) = self.ghosts.pop_front()?;
        Some((frame, target, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameId;

    fn frame(id: u64) -> Frame {
        Frame::datagram(FrameId(id), Port(0), Port(1), Bytes(1_000))
    }

    #[test]
    fn both_leave_in_the_order_of_their_coming() {
        let mut turns = Turns::new(Bytes(100_000));
        for id in 0..9 {
            if id % 3 == 1 {
                assert!(turns.push_ghost(frame(id), Port(1)));
            } else {
                turns.push(frame(id), Target::One(Port(1)));
            }
        }
        let order = std::iter::from_fn(|| turns.pop()).map(|(frame, ..)| frame.id.0);
        assert!(order.eq(0..9));
        assert!(turns.is_empty());
    }

    #[test]
    fn background_takes_no_room() {
        let mut turns = Turns::new(Bytes(4_000));
        let taken = (0..10_000)
            .filter(|id| turns.push_ghost(frame(*id), Port(1)))
            .count();
        assert_eq!(taken, GHOSTS_MAX);
        assert!(turns.ready() && turns.admits(Bytes(4_000)));
        assert_eq!(turns.backlog(), Bytes::ZERO);
    }
}
