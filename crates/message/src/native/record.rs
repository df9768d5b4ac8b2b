//! What ranks say to each other while they meet: records of text.
//!
//! Model:   a record is its length, four bytes little-endian, and its text; what is longer than the bound is refused before any room
//!          is made for it.
//! Checked: the tests of `join`; the fuzz target `native_frames`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::io::{ErrorKind, Read, Write};

/// The longest line of a meeting: a table of all addresses.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// Of its length.
pub(crate) const LENGTH_BYTES: usize = 4;

/// A record that has come in part, or whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// So many bytes more.
    Wants(usize),
    /// Its text.
    Whole(String),
}

/// Writes a record: its length, and its text.
pub(crate) fn write_record(stream: &mut impl Write, text: &str) -> std::io::Result<()> {
    let mut record = (text.len() as u32).to_le_bytes().to_vec();
    record.extend_from_slice(text.as_bytes());
    stream.write_all(&record)
}

/// What the first bytes of a record ask for: so many more, or its text.
pub(crate) fn part_of_record(said: &[u8]) -> std::result::Result<Part, String> {
    let Some((length, text)) = said.split_first_chunk() else {
        return Ok(Part::Wants(LENGTH_BYTES.saturating_sub(said.len())));
    };
    let length = u32::from_le_bytes(*length) as usize;
    match length.checked_sub(text.len()) {
        Some(0) => String::from_utf8(text.to_vec())
            .map(Part::Whole)
            .map_err(|error| error.to_string()),
        Some(more) => Ok(Part::Wants(more)),
        None => Err(format!("a record of {length} bytes that is longer")),
    }
}

/// Reads a record.
pub(crate) fn read_record(stream: &mut impl Read) -> std::io::Result<String> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    let wrong = |what: String| std::io::Error::new(ErrorKind::InvalidData, what);
    if length > RECORD_BYTES_MAX {
        return Err(wrong(format!("a record of {length} bytes")));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))
}

/// A process, and an address in its memory.
pub(crate) fn said(text: &str) -> Option<(u32, u64)> {
    let (process, address) = text.split_once(' ')?;
    Some((process.parse().ok()?, address.parse().ok()?))
}
