//! A station that sends one frame after the other, each when the medium lets it, with background traffic on its line.
//!
//! Model:   first in, first out over both; the host's frames are admitted by [`Queue`], those of background traffic are not
//!          and never make the host wait for room: beyond 4,096 that wait, more are refused. The frame that is being sent is
//!          not in it.
//! Checked: `both_kinds_leave_in_order`.

use crate::Frame;
use crate::medium::{GHOSTS_MAX, Target};
use crate::station::Queue;
use sonde_units::Bytes;
use std::collections::VecDeque;

/// A frame and where it shall go.
pub(crate) type Parcel = (Frame, Target);

/// The sending side of a port.
pub(crate) struct Sender {
    host: Queue<(u64, Parcel)>,
    background: VecDeque<(u64, Parcel)>,
    /// How many came before: the order of arrival over both queues.
    taken: u64,
}

impl Sender {
    pub fn new(limit: Bytes) -> Self {
        Self {
            host: Queue::new(limit),
            background: VecDeque::new(),
            taken: 0,
        }
    }

    /// Bytes of the host that wait.
    pub fn backlog(&self) -> Bytes {
        self.host.backlog()
    }

    /// Whether a frame of the host finds room.
    pub fn admits(&self, len: Bytes) -> bool {
        self.host.admits(len)
    }

    /// Whether the host is asked for more.
    pub fn ready(&self) -> bool {
        self.host.ready()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.next_is_host().is_none()
    }

    /// Takes a frame of the host.
    pub fn push(&mut self, frame: Frame, target: Target) {
        self.taken += 1;
        self.host.push(frame.len, (self.taken, (frame, target)));
    }

    /// Takes a frame of background traffic; false if too many wait.
    pub fn push_background(&mut self, frame: Frame, target: Target) -> bool {
        if self.background.len() >= GHOSTS_MAX {
            return false;
        }
        self.taken += 1;
        self.background.push_back((self.taken, (frame, target)));
        true
    }

    /// Whether the next frame is one of the host's; none if nothing waits.
    fn next_is_host(&self) -> Option<bool> {
        match (self.host.front(), self.background.front()) {
            (Some((_, (host, _))), Some((other, _))) => Some(host < other),
            (Some(_), None) => Some(true),
            (None, Some(_)) => Some(false),
            (None, None) => None,
        }
    }

    /// The frame that waits longest.
    pub fn front(&self) -> Option<&Parcel> {
        if self.next_is_host()? {
            self.host.front().map(|(_, (_, parcel))| parcel)
        } else {
            self.background.front().map(|(_, parcel)| parcel)
        }
    }

    /// Gives the frame that waits longest to the line. True beside it: the host is asked for more again.
    pub fn pop(&mut self) -> Option<(Parcel, bool)> {
        if self.next_is_host()? {
            let (_, (_, parcel), woken) = self.host.pop()?;
            Some((parcel, woken))
        } else {
            self.background
                .pop_front()
                .map(|(_, parcel)| (parcel, false))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameId, Port};

    #[test]
    fn both_kinds_leave_in_order() {
        let mut sender = Sender::new(Bytes(2_000));
        let target = Target::One(Port(1));
        let frame = |id| Frame::datagram(FrameId(id), Port(0), Port(1), Bytes(1_000));
        sender.push(frame(0), target);
        assert!(sender.push_background(frame(1), target));
        sender.push(frame(2), target);
        for id in 3..5_000 {
            assert_eq!(sender.push_background(frame(id), target), id <= 4_097);
        }
        // Only the host's own count.
        assert_eq!(sender.backlog(), Bytes(2_000));
        assert!(!sender.admits(Bytes(1)));
        let order = std::iter::from_fn(|| {
            let ahead = sender.front()?.0.id;
            let ((frame, _), _) = sender.pop()?;
            assert_eq!(ahead, frame.id);
            Some(frame.id.0)
        });
        assert!(order.eq(0..=4_097));
        assert!(sender.ready() && sender.is_empty());
    }
}
