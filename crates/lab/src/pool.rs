//! The bytes of frames while the models have their descriptions.
//!
//! Model:   slots that are used again; a slot's number is the frame's name. Nothing is allocated once as many frames as ever
//!          travel at the same time have been seen.
//! Checked: `slots_are_used_again`.

use sonde_link::{FrameId, Port};
use sonde_units::Instant;

/// A frame's bytes and what the lab remembers of it.
pub(crate) struct Slot {
    /// Room for the largest frame.
    pub bytes: Vec<u8>,
    /// How much of it is used.
    pub length: usize,
    /// When the model took it.
    pub taken: Instant,
    /// The port that it came from, counted from 0.
    pub from: usize,
    /// How far its stamp had to be moved.
    pub clamp_ns: u64,
    /// Of an address request: who asks, and for whom.
    pub resolves: Option<(Port, Port)>,
}

/// All slots.
pub(crate) struct Pool {
    slots: Vec<Slot>,
    free: Vec<usize>,
    frame_bytes: usize,
}

impl Pool {
    /// Slots for frames of up to `frame_bytes`.
    pub fn new(frame_bytes: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            frame_bytes,
        }
    }

    /// An empty slot.
    pub fn take(&mut self) -> FrameId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                bytes: vec![0; self.frame_bytes],
                length: 0,
                taken: Instant::START,
                from: 0,
                clamp_ns: 0,
                resolves: None,
            });
            self.slots.len() - 1
        });
        FrameId(index as u64)
    }

    /// Gives a slot back.
    pub fn give(&mut self, id: FrameId) {
        self.free.push(id.0 as usize);
    }

    /// The slot of a frame.
    pub fn slot(&mut self, id: FrameId) -> &mut Slot {
        &mut self.slots[id.0 as usize]
    }

    /// Bytes of memory in use by frames.
    pub fn used_bytes(&self) -> usize {
        (self.slots.len() - self.free.len()) * self.frame_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again() {
        let mut pool = Pool::new(100);
        let (a, b) = (pool.take(), pool.take());
        assert_ne!(a, b);
        assert_eq!(pool.used_bytes(), 200);
        pool.give(a);
        assert_eq!(pool.take(), a);
        assert_eq!(pool.slots.len(), 2);
    }
}
