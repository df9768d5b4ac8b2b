//! What messages are made of, so that a wrong byte is seen.
//!
//! Model:   a header of eight bytes, the sequence number and the size of the message (both u32, little-endian), cut off
//!          where the message is shorter: a message of one byte carries the number modulo 256. Then a fixed pattern of
//!          period 251, so that a shift by any power of two shows.
//! Checked: `a_changed_byte_is_seen`, `short_messages_carry_what_fits`, `a_stream_is_checked_across_reads`.
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

/// Bytes of the header.
pub const HEADER_BYTES: usize = 8;

/// Bytes that are not those sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "byte {at} of message {sequence} ({size_bytes} bytes) is {found:#04x}, sent was {wanted:#04x}"
)]
pub struct Mismatch {
    /// The message's number.
    pub sequence: u32,
    /// The message's size.
    pub size_bytes: usize,
    /// Where in the message.
    pub at: usize,
    /// What came.
    pub found: u8,
    /// What was sent.
    pub wanted: u8,
}

#[inline]
pub(crate) fn header(sequence: u32, size_bytes: usize) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = sequence.to_le_bytes();
    let [e, f, g, h] = (size_bytes as u32).to_le_bytes();
    [a, b, c, d, e, f, g, h]
}

fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

/// A message of `size_bytes` with number zero.
pub fn message(size_bytes: usize) -> Vec<u8> {
    let mut message: Vec<u8> = (0..size_bytes).map(pattern).collect();
    stamp(&mut message, 0);
    message
}

/// Gives a message its number.
#[inline]
pub fn stamp(message: &mut [u8], sequence: u32) {
    // One byte is the most usual of the short messages, and worth no call of memcpy.
    if let [only] = message {
        *only = sequence as u8;
        return;
    }
    let header = header(sequence, message.len());
    match message.first_chunk_mut() {
        Some(begin) => *begin = header,
        None => {
            for (to, byte) in message.iter_mut().zip(header) {
                *to = byte;
            }
        }
    }
}

/// Checks the header: cheap, whatever the size.
///
/// # Errors
/// The first byte that differs.
#[inline]
pub fn check(message: &[u8], sequence: u32) -> Result<(), Mismatch> {
    // As whole words first: this is done for every message.
    let header = header(sequence, message.len());
    let same = match (message, message.first_chunk::<HEADER_BYTES>()) {
        ([only], _) => *only == header[0],
        (_, Some(begin)) => *begin == header,
        (_, None) => header.starts_with(message),
    };
    if same {
        return Ok(());
    }
    let begin = message.get(..HEADER_BYTES).unwrap_or(message);
    compare(begin, 0, sequence, message.len())
}

/// Checks an answer that is the begin of its message.
///
/// # Errors
/// The first byte that differs.
#[inline]
pub fn check_answer(answer: &[u8], message: &[u8]) -> Result<(), Mismatch> {
    let mut pairs = answer.iter().zip(message).enumerate();
    match pairs.find(|(_, (found, wanted))| found != wanted) {
        None => Ok(()),
        Some((at, (&found, &wanted))) => Err(Mismatch {
            sequence: sequence(message).unwrap_or(message.first().copied().map_or(0, u32::from)),
            size_bytes: message.len(),
            at,
            found,
            wanted,
        }),
    }
}

/// Checks every byte.
///
/// # Errors
/// The first byte that differs.
pub fn verify(message: &[u8], sequence: u32) -> Result<(), Mismatch> {
    compare(message, 0, sequence, message.len())
}

/// The number in a message that has room for all of it.
#[inline]
pub fn sequence(message: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(message.get(..4)?.try_into().ok()?))
}

#[inline(never)]
fn compare(part: &[u8], from: usize, sequence: u32, size_bytes: usize) -> Result<(), Mismatch> {
    let header = header(sequence, size_bytes);
    for (at, &found) in (from..).zip(part) {
        let wanted = header.get(at).copied().unwrap_or_else(|| pattern(at));
        if found != wanted {
            return Err(Mismatch {
                sequence,
                size_bytes,
                at,
                found,
                wanted,
            });
        }
    }
    Ok(())
}

/// Checks messages that arrive as a stream, in pieces of any size.
#[derive(Debug, Clone)]
pub struct StreamCheck {
    size_bytes: usize,
    every_byte: bool,
    sequence: u32,
    at: usize,
}

impl StreamCheck {
    /// For messages of `size_bytes` numbered from zero; headers only, or every byte.
    ///
    /// # Panics
    /// Without a size.
    pub fn new(size_bytes: usize, every_byte: bool) -> Self {
        assert!(
            size_bytes > 0,
            "a message without bytes is not distinguishable from the next"
        );
        Self {
            size_bytes,
            every_byte,
            sequence: 0,
            at: 0,
        }
    }

    /// Whole messages that passed.
    pub fn messages(&self) -> u32 {
        self.sequence
    }

    /// Takes what came next.
    ///
    /// # Errors
    /// The first byte that differs.
    pub fn on_bytes(&mut self, mut bytes: &[u8]) -> Result<(), Mismatch> {
        while !bytes.is_empty() {
            let left = self.size_bytes.saturating_sub(self.at);
            let (piece, rest) = bytes.split_at_checked(left).unwrap_or((bytes, &[]));
            let looked_at = if self.every_byte {
                piece
            } else {
                let end = HEADER_BYTES.saturating_sub(self.at);
                piece.get(..end).unwrap_or(piece)
            };
            compare(looked_at, self.at, self.sequence, self.size_bytes)?;
            self.at = self.at.saturating_add(piece.len());
            bytes = rest;
            if self.at == self.size_bytes {
                self.at = 0;
                self.sequence = self.sequence.wrapping_add(1);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_seen() {
        let mut sent = message(1_000);
        stamp(&mut sent, 77);
        assert_eq!(check(&sent, 77), Ok(()));
        assert_eq!(verify(&sent, 77), Ok(()));
        assert_eq!(sequence(&sent), Some(77));
        assert_eq!(check(&sent, 78).unwrap_err().at, 0);
        for at in 0..1_000 {
            let mut changed = sent.clone();
            changed[at] ^= 0x10;
            assert_eq!(verify(&changed, 77).unwrap_err().at, at);
            assert_eq!(check(&changed, 77).is_err(), at < HEADER_BYTES);
        }
        assert_eq!(check_answer(&sent[..1], &sent), Ok(()));
        let wrong = check_answer(&[78], &sent).unwrap_err();
        assert_eq!((wrong.sequence, wrong.at, wrong.found), (77, 0, 78));
        // Half of a message is no message: the size is in the header.
        assert_eq!(check(&sent[..500], 77).unwrap_err().at, 4);
    }

    #[test]
    fn short_messages_carry_what_fits() {
        let mut one = message(1);
        stamp(&mut one, 258);
        assert_eq!(one, [2]);
        assert_eq!(verify(&one, 258), Ok(()));
        assert!(verify(&one, 259).is_err());
        assert_eq!(sequence(&one), None);
    }

    #[test]
    fn a_stream_is_checked_across_reads() {
        for size in [1, 3, 7, 8, 9, 300] {
            let mut stream = Vec::new();
            let mut next = message(size);
            for sequence in 0..40 {
                stamp(&mut next, sequence);
                stream.extend_from_slice(&next);
            }
            for read in [1, 5, 64, 1_000] {
                for every_byte in [false, true] {
                    let mut check = StreamCheck::new(size, every_byte);
                    stream
                        .chunks(read)
                        .try_for_each(|piece| check.on_bytes(piece))
                        .unwrap();
                    assert_eq!(check.messages(), 40);
                }
                // A lost byte is seen, by the headers alone too: the next message starts early.
                let mut check = StreamCheck::new(size, false);
                let lost: Vec<u8> = stream[..2 * size]
                    .iter()
                    .chain(&stream[2 * size + 1..])
                    .copied()
                    .collect();
                assert!(
                    lost.chunks(read)
                        .try_for_each(|piece| check.on_bytes(piece))
                        .is_err(),
                    "{size} {read}"
                );
            }
        }
    }
}
