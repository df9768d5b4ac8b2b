//! What a frame of `packet` and `xdp` says of itself: 28 bytes after Ethernet's own.
//!
//! Model:   magic 0, role 2, version 3, conversation 4, tag 8, sequence 16, length of the message 24, little-endian; then the message, then
//!          whatever the network adds.
//! Checked: property `any_bytes_are_judged` of the module above; the fuzz target `packet_frames`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::{ETHERNET_BYTES, Mark, PACKET_HEADER_BYTES};

/// Where the message begins in a frame.
pub(crate) const MESSAGE_AT: usize = ETHERNET_BYTES + PACKET_HEADER_BYTES;
pub(crate) const MAGIC: [u8; 2] = *b"sd";
pub(crate) const VERSION: u8 = 1;

/// What a frame says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) role: u8,
    pub(crate) mark: Mark,
    pub(crate) sequence: u64,
    pub(crate) length: u32,
}

impl Head {
    pub(crate) fn write(&self, to: &mut [u8; PACKET_HEADER_BYTES]) {
        let fields = MAGIC
            .into_iter()
            .chain([self.role, VERSION])
            .chain(self.mark.conversation.to_le_bytes())
            .chain(self.mark.tag.to_le_bytes())
            .chain(self.sequence.to_le_bytes())
            .chain(self.length.to_le_bytes());
        for (to, byte) in to.iter_mut().zip(fields) {
            *to = byte;
        }
    }

    /// The header of a frame and its message; `None` for what is none of ours.
    #[inline]
    pub(crate) fn read(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (head, body) = frame.get(ETHERNET_BYTES..)?.split_first_chunk()?;
        let head: &[u8; PACKET_HEADER_BYTES] = head;
        if !head.starts_with(&MAGIC) || head[3] != VERSION {
            return None;
        }
        let u32_at = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(*head.get(at..)?.first_chunk()?));
        let read = Self {
            role: head[2],
            mark: Mark {
                conversation: u32_at(4)?,
                tag: u64_at(8)?,
            },
            sequence: u64_at(16)?,
            length: u32_at(24)?,
        };
        // What follows is padding: Ethernet's frames have 60 bytes at least.
        Some((read, body.get(..read.length as usize)?))
    }
}
