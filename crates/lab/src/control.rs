//! What command, switch and host inits say to each other.
//!
//! Model:   JSON in messages of a SOCK_SEQPACKET pair, descriptors beside them. The command asks, the switch answers each
//!          request once, in order; the end of either side is the end of the lab.

use crate::config::{Config, Info, User};
use crate::meter::Report;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sonde_sys::message;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// From the command to the cradle and the switch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The cradle's maps are written, or there are none to write.
    Mapped,
    /// Be this lab. With it come the ledger and the capture file, in this order, as far as asked for.
    Start(Box<Config>),
    /// A connection to the init of this host.
    Connect(u16),
    /// Count from now on.
    Mark,
    /// What was counted.
    Report,
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
    /// The cradle waits for the id maps of its user namespace, if it has one, and for the word to go on.
    Unshared {
        /// Whether it has one.
        user: bool,
    },
    /// The lab runs.
    Ready(Box<Info>),
    /// Here is the connection.
    Connected,
    /// What was counted.
    Report(Box<Report>),
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
    /// Keep this descriptor: the last reference to the host's port.
    Hold,
}

/// A host to be.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostConfig {
    /// Its number, from 1.
    pub number: u16,
    /// How many there are.
    pub hosts: u16,
    /// On how many networks.
    pub networks: u16,
    /// Folders to keep in sight.
    pub keep: Vec<PathBuf>,
    /// Who its programs are.
    pub user: User,
    /// The CPUs that programs use unless told otherwise; empty for all.
    pub cpus: Vec<usize>,
}

/// Back to the switch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostAnswer {
    /// It is in its namespaces.
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
    #[error("a message was not understood: {0}")]
    Format(#[from] serde_json::Error),
}

/// Sends one message.
pub(crate) fn say<T: Serialize>(
    socket: impl AsFd,
    what: &T,
    fds: &[BorrowedFd<'_>],
) -> Result<(), TalkError> {
    Ok(message::send(socket, &serde_json::to_vec(what)?, fds)?)
}

/// Waits for one message.
pub(crate) fn hear<T: DeserializeOwned>(socket: impl AsFd) -> Result<(T, Vec<OwnedFd>), TalkError> {
    let (bytes, fds) = message::recv(socket)?.ok_or(TalkError::Ended)?;
    Ok((serde_json::from_slice(&bytes)?, fds))
}
