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

/// Writes a record: its length, and its text.
pub(crate) fn write_record(stream: &mut impl Write, text: &str) -> std::io::Result<()> {
    let mut record = (text.len() as u32).to_le_bytes().to_vec();
    record.extend_from_slice(text.as_bytes());
    stream.write_all(&record)
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
