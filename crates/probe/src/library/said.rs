//! What ranks say to each other beside what is measured: JSON, after its length.
//!
//! Model:   eight bytes of length, little-endian, then the body, each a message of its own; what is longer than the bound is refused
//!          before any room is made for it.
//! Checked: `tests/library.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use serde::{Deserialize, Serialize};
use sonde_message::{Comm, Messenger, Source, Tag, Tagged};

use super::SEEN;
use crate::{Error, Result};

/// The most of what a rank says of itself.
const SAID_BYTES_MAX: u64 = 8 << 20;

/// Sends JSON to a rank: its length, then itself.
///
/// # Errors
/// Those of the messenger; it is no JSON.
pub fn tell<T: Serialize>(messenger: &mut dyn Messenger, to: usize, what: &T) -> Result<()> {
    let body = serde_json::to_vec(what).map_err(crate::frame::FrameError::from)?;
    let length = (body.len() as u64).to_le_bytes();
    messenger.send(Comm::WORLD, to, SEEN, &length)?;
    Ok(messenger.send(Comm::WORLD, to, SEEN, &body)?)
}

/// Receives JSON of a rank.
///
/// # Errors
/// Those of the messenger; it is too long, or not what it must be.
pub fn hear<T: for<'a> Deserialize<'a>>(messenger: &mut dyn Messenger, from: usize) -> Result<T> {
    let mut length = [0; 8];
    receive(messenger, from, SEEN, &mut length)?;
    let length = u64::from_le_bytes(length);
    if length > SAID_BYTES_MAX {
        return Err(Error::Integrity(format!(
            "rank {from} announces a report of {length} bytes"
        )));
    }
    let mut body = vec![0; length as usize];
    receive(messenger, from, SEEN, &mut body)?;
    Ok(serde_json::from_slice(&body).map_err(crate::frame::FrameError::from)?)
}

/// Receives a message that fills the room.
pub(super) fn receive(
    messenger: &mut dyn Messenger,
    from: usize,
    tag: Tag,
    room: &mut [u8],
) -> Result<()> {
    let wanted = room.len();
    let status = messenger.recv(Comm::WORLD, Source::Rank(from), Tagged::With(tag), room)?;
    whole(from, status.bytes, wanted)
}

pub(super) fn whole(from: usize, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::Integrity(format!(
        "a message of {found} bytes came from rank {from} where {wanted} were agreed"
    )))
}
