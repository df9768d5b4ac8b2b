//! What travels between two ranks: a head of 24 bytes, and of some kinds a body.
//!
//! Model:   a stream of frames each way, in order. Every head gives credit back to its receiver: bytes and envelopes of
//!          messages that were consumed since.
//! Units:   bytes; numbers little-endian.
//! Checked: `heads_are_read_back`, `a_kind_that_is_none_is_refused`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

/// Bytes of a head.
pub(crate) const HEAD_BYTES: usize = 24;
/// Bytes of the body of a request and of its answer: two numbers, and filling up to 64 bytes with the head. TCP over loopback
/// moves what follows a segment of fewer bytes at half the rate (Linux 6.18: 1 MiB at 5.5 GB/s after 24 to 63 B, at 10 after
/// 64 to 128 B; to be seen by `examples/pingpong.sh` with 16 here).
pub(crate) const PAIR_BYTES: usize = 40;
/// The longest text of a failure.
pub(crate) const TEXT_BYTES_MAX: usize = 1_000;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A whole message, eager: `context`, `tag`, `bytes`, and the bytes.
    Eager = 1,
    /// RTS, the first frame of a rendezvous: the envelope of a message that stays with its sender: `context`, `tag`, `bytes`, and as a pair the sender's
    /// operation and where the bytes are in its memory.
    RequestToSend = 2,
    /// CTS, the answer: the bytes may come, with an empty pair: operations of the sender (`tag`) and of the receiver (`context`), and how many bytes are wanted.
    ClearToSend = 3,
    /// The bytes of a message for the receiver's operation (`tag`).
    Data = 4,
    /// The receiver has taken the bytes by itself: the sender's operation (`tag`).
    Done = 5,
    /// Nothing but credit.
    Credit = 6,
    /// Nothing comes after this.
    Bye = 7,
    /// A rank (`tag`) is lost or gave up; why, as text of `bytes`.
    Fail = 8,
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// Envelopes given back.
    pub(crate) envelopes: u16,
    /// Bytes given back.
    pub(crate) credit: u32,
    pub(crate) tag: u32,
    pub(crate) context: u32,
    pub(crate) bytes: u64,
}

impl Head {
    /// A head that gives nothing back yet.
    pub(crate) const fn new(kind: Kind, context: u32, tag: u32, bytes: u64) -> Self {
        Self {
            kind,
            envelopes: 0,
            credit: 0,
            tag,
            context,
            bytes,
        }
    }

    /// Bytes of the body that follows.
    #[inline]
    pub(crate) const fn body(&self) -> u64 {
        match self.kind {
            Kind::Eager | Kind::Data | Kind::Fail => self.bytes,
            Kind::RequestToSend | Kind::ClearToSend => PAIR_BYTES as u64,
            Kind::Done | Kind::Credit | Kind::Bye => 0,
        }
    }

    /// As three words, each little-endian.
    #[inline]
    pub(crate) const fn words(&self) -> [u64; 3] {
        [
            self.kind as u64 | (self.envelopes as u64) << 16 | (self.credit as u64) << 32,
            self.tag as u64 | (self.context as u64) << 32,
            self.bytes,
        ]
    }

    /// What was written; `None` for words that are no head.
    #[inline]
    pub(crate) fn of_words([first, second, bytes]: [u64; 3]) -> Option<Self> {
        let kind = match first as u16 {
            1 => Kind::Eager,
            2 => Kind::RequestToSend,
            3 => Kind::ClearToSend,
            4 => Kind::Data,
            5 => Kind::Done,
            6 => Kind::Credit,
            7 => Kind::Bye,
            8 => Kind::Fail,
            _ => return None,
        };
        Some(Self {
            kind,
            envelopes: (first >> 16) as u16,
            credit: (first >> 32) as u32,
            tag: second as u32,
            context: (second >> 32) as u32,
            bytes,
        })
    }

    pub(crate) fn write(&self) -> [u8; HEAD_BYTES] {
        let mut out = [0; HEAD_BYTES];
        for (part, word) in out.chunks_exact_mut(8).zip(self.words()) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// What was written; `None` for bytes that are no head.
    #[inline]
    pub(crate) fn read(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        Self::of_words(words(bytes))
    }
}

/// The numbers that bytes begin with, eight bytes each; 0 where there are too few.
#[inline]
pub(crate) fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut numbers = [0; N];
    for (number, part) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = part
            .first_chunk()
            .map_or(0, |part| u64::from_le_bytes(*part));
    }
    numbers
}

/// Two numbers as a body.
pub(crate) fn pair(one: u64, other: u64) -> [u8; PAIR_BYTES] {
    let mut out = [0; PAIR_BYTES];
    for (part, word) in out.chunks_exact_mut(8).zip([one, other]) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    out
}

/// The two numbers.
pub(crate) fn unpair(bytes: &[u8; PAIR_BYTES]) -> (u64, u64) {
    words(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_back() {
        for number in 1..=8 {
            let mut bytes = [0xa5; HEAD_BYTES];
            bytes[..2].copy_from_slice(&[number, 0]);
            let head = Head::read(&bytes).unwrap();
            assert_eq!(head.kind as u8, number);
            assert_eq!(head.write(), bytes, "{head:?}");
        }
        let both = (3, u64::MAX - 7);
        assert_eq!(unpair(&pair(both.0, both.1)), both);
    }

    #[test]
    fn a_kind_that_is_none_is_refused() {
        for number in [0, 9, 255] {
            assert_eq!(Head::read(&[number; HEAD_BYTES]), None);
        }
    }
}
