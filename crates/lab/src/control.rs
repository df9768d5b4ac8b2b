//! What command, switch and host inits say to each other.
//!
//! Model:   JSON in messages of a SOCK_SEQPACKET pair, descriptors beside them. The command asks, the switch answers each
//!          request once, in order; the end of either side is the end of the lab. What does not fit one message, as a script of
//!          thousands of lines does not, comes in several, each of which says whether it is the last.
//! Checked: `what_is_long_comes_in_pieces`.
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

use crate::config::{Config, Info, User};
use crate::meter::Report;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sonde_sys::message;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// From the command to the cradle and the switch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The cradle's maps are written.
    Mapped,
    /// Be this lab. With it come the ledger and the capture file, in this order, as far as asked for.
    Start(Box<Config>),
    /// With it comes the device file that was asked for; nothing where it could not be opened.
    Tun,
    /// A connection to the init of this host.
    Connect(u16),
    /// Count from now on.
    Mark,
    /// What was counted.
    Report,
    /// What is gone.
    Broken,
    /// Use these CPUs.
    Pin(Vec<usize>),
    /// Change the network: a command as it is written, after `ethK ` for another network than the first.
    Command(String),
    /// Write out what is buffered, and end.
    Stop,
}

/// Back to the command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The cradle waits for the id maps of its user namespace.
    Unshared,
    /// The device file of TAPs may not be opened by the switch. With it comes the network namespace in which to open it.
    LendTun,
    /// The lab runs.
    Ready(Box<Info>),
    /// Here is the connection.
    Connected,
    /// What was counted.
    Report(Box<Report>),
    /// Hosts and interfaces that are gone.
    Broken(Vec<String>),
    /// It is done.
    Done,
    /// It could not be done.
    Failed(String),
}

/// From the switch to a host's init.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostRequest {
    /// Be this host.
    Start(HostConfig),
    /// The id maps of its user namespace are written.
    Mapped,
    /// Keep these descriptors: the last references to a port of the host and to its gate's socket.
    Hold,
}

/// A host to be.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostConfig {
    /// Its number, from 1.
    pub number: u16,
    /// What it is called.
    pub name: String,
    /// How many there are.
    pub hosts: u16,
    /// Its /etc/hosts.
    pub table: String,
    /// Folders to keep in sight.
    pub keep: Vec<PathBuf>,
    /// Who its programs are.
    pub user: User,
    /// Whether all users of the lab may have programs started.
    pub share: bool,
    /// Whether its root is root outside, from whom the machine is to be kept.
    pub guarded: bool,
    /// The CPUs that programs use unless told otherwise; empty for all.
    pub cpus: Vec<usize>,
}

/// Back to the switch.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HostAnswer {
    /// It waits for its id maps.
    Unshared,
    /// It listens.
    Ready,
    /// It could not come up.
    Failed(String),
}

/// Why a message could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TalkError {
    #[error("{0}")]
    Call(#[from] sonde_sys::Error),
    #[error("the other side ended")]
    Ended,
    #[error("protocol violation: {0}")]
    Format(#[from] serde_json::Error),
}

/// The first byte of a piece after which more comes, and of the last of several; no JSON begins with them.
const MORE: u8 = b'+';
const LAST: u8 = b'.';
/// The most in a piece.
const PIECE_BYTES: usize = message::BYTES_MAX - 1;

/// Says one thing; descriptors go with its last piece.
pub(crate) fn say<T: Serialize>(
    socket: impl AsFd,
    what: &T,
    fds: &[BorrowedFd<'_>],
) -> Result<(), TalkError> {
    let bytes = serde_json::to_vec(what)?;
    if bytes.len() <= PIECE_BYTES {
        return Ok(message::send(socket, &bytes, fds)?);
    }
    let mut pieces = bytes.chunks(PIECE_BYTES).peekable();
    while let Some(piece) = pieces.next() {
        let (tag, with) = match pieces.peek() {
            Some(_) => (MORE, Default::default()),
            None => (LAST, fds),
        };
        message::send(&socket, &[&[tag], piece].concat(), with)?;
    }
    Ok(())
}

/// Waits for one thing to be said.
pub(crate) fn hear<T: DeserializeOwned>(socket: impl AsFd) -> Result<(T, Vec<OwnedFd>), TalkError> {
    let mut all = Vec::new();
    loop {
        let (bytes, fds) = message::recv(&socket)?.ok_or(TalkError::Ended)?;
        match bytes.split_first() {
            Some((&MORE, piece)) => all.extend_from_slice(piece),
            Some((&LAST, piece)) => {
                all.extend_from_slice(piece);
                return Ok((serde_json::from_slice(&all)?, fds));
            }
            _ => return Ok((serde_json::from_slice(&bytes)?, fds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_comes_in_pieces() {
        let (one, other) = message::pair().unwrap();
        let texts = ["short".to_owned(), "+".repeat(3_700_001), "last".to_owned()];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for text in &texts {
                    say(&one, text, &[other.as_fd()]).unwrap();
                }
            });
            for text in &texts {
                let (heard, fds) = hear::<String>(&other).unwrap();
                assert!(heard == *text, "{} of {} bytes", heard.len(), text.len());
                assert_eq!(fds.len(), 1);
            }
        });
    }
}
