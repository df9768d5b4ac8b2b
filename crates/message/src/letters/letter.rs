//! A letter: a head of 24 bytes, then the message.
//!
//! Model:   context, source, to, tag, hops, number, four bytes each, little-endian; ranks beyond the world are refused.
//! Checked: by the tests of the messengers that carry letters; the fuzz target `native_frames`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::LETTER_TAG;
use crate::{Error, Result, Tag};

/// What stands on a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The group, by its agreed number.
    pub(crate) context: u32,
    /// The sender.
    pub(crate) source: u32,
    /// The receiver.
    pub(crate) to: u32,
    /// What it is for.
    pub(crate) tag: Tag,
    /// How often it was carried.
    pub(crate) hops: u32,
    /// Which it is of those of this sender to this receiver.
    pub(crate) number: u32,
}

/// A letter: the head, then the message.
#[derive(Debug)]
pub struct Letter {
    pub(crate) head: Head,
    /// With room for the head at its begin.
    bytes: Vec<u8>,
}

impl Head {
    /// Bytes of one.
    pub(crate) const BYTES: usize = 24;
}

impl Letter {
    pub(crate) fn new(head: Head, payload: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(Head::BYTES.saturating_add(payload.len()));
        bytes.resize(Head::BYTES, 0);
        bytes.extend_from_slice(payload);
        Self { head, bytes }
    }

    /// The message.
    pub(crate) fn payload(&self) -> &[u8] {
        self.bytes.get(Head::BYTES..).unwrap_or_default()
    }

    /// As it is sent.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        let head = self.head;
        let fields = [
            head.context,
            head.source,
            head.to,
            head.tag,
            head.hops,
            head.number,
        ];
        for (bytes, field) in self.bytes.chunks_exact_mut(4).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        self.bytes
    }

    /// Of what was sent.
    ///
    /// # Errors
    /// Fewer bytes than a head has, or ranks beyond the world.
    pub(crate) fn of_bytes(bytes: Vec<u8>, ranks: usize) -> Result<Self> {
        let mut fields = [0; Head::BYTES / 4];
        for (field, bytes) in fields.iter_mut().zip(bytes.chunks_exact(4)) {
            *field = bytes
                .first_chunk()
                .map_or(0, |four| u32::from_le_bytes(*four));
        }
        let [context, source, to, tag, hops, number] = fields;
        if bytes.len() < Head::BYTES || source.max(to) as usize >= ranks {
            return Err(Error::Argument {
                what: "the head of a carried message",
                value: format!("{:02x?}", bytes.get(..Head::BYTES).unwrap_or(&bytes)),
                wanted: format!(
                    "of ranks below {ranks}: no program may use tag {LETTER_TAG} below"
                ),
            });
        }
        let head = Head {
            context,
            source,
            to,
            tag,
            hops,
            number,
        };
        Ok(Self { head, bytes })
    }
}
