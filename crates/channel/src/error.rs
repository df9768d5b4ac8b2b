//! What can go wrong between two hosts: each names the peer, what was waited for, and how long.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::io::Errno;

use crate::payload::Mismatch;

/// The result of an operation on a channel.
pub type Result<T> = std::result::Result<T, Error>;

/// A conversation that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing moved within the channel's timeout.
    #[error("{peer}: waited {:.3} s for {awaited}, which did not come", waited.as_secs_f64())]
    Timeout {
        /// The other end.
        peer: SocketAddr,
        /// What was waited for.
        awaited: String,
        /// How long.
        waited: Duration,
    },
    /// The peer ended the conversation.
    #[error("{peer} closed the connection after {received} of {wanted} bytes of {awaited}")]
    Closed {
        /// The other end.
        peer: SocketAddr,
        /// What was waited for.
        awaited: &'static str,
        /// Bytes of it that came.
        received: usize,
        /// Its size.
        wanted: usize,
    },
    /// A system call failed on the way to the peer.
    #[error("{peer}: cannot {attempt}: {errno}")]
    Call {
        /// The other end.
        peer: SocketAddr,
        /// What was attempted.
        attempt: &'static str,
        /// The kernel's reason.
        errno: Errno,
    },
    /// A datagram of another size than agreed.
    #[error("{peer}: a message of {found_bytes} bytes came where {wanted_bytes} were agreed")]
    Size {
        /// The other end.
        peer: SocketAddr,
        /// What came.
        found_bytes: usize,
        /// What was agreed.
        wanted_bytes: usize,
    },
    /// A message whose bytes are not those sent.
    #[error("{peer}: {mismatch}")]
    Payload {
        /// The other end.
        peer: SocketAddr,
        /// What differs.
        mismatch: Mismatch,
    },
    /// A local socket refused an operation.
    #[error("cannot {attempt} on {local}: {errno}")]
    Local {
        /// What was attempted.
        attempt: &'static str,
        /// The local address.
        local: SocketAddr,
        /// The kernel's reason.
        errno: Errno,
    },
    /// Frames cannot be had, or not of this size.
    #[error("frames cannot reach {peer}: {why}")]
    NoFrames {
        /// The other end.
        peer: std::net::IpAddr,
        /// What is in the way.
        why: String,
    },
    /// Buffers that the cache has not cannot be had.
    #[error("cold buffers are not available: {why}")]
    NoColdBuffers {
        /// What is in the way.
        why: String,
    },
    /// An option did not take, or cannot be read.
    #[error(transparent)]
    Option(#[from] sonde_sys::Error),
    /// The other process wrote into shared memory what cannot be.
    #[error("the other process left {what}: it is damaged, or not a sonde of this version")]
    Nonsense {
        /// What was found.
        what: String,
    },
    /// TCP_NODELAY is not what it was set to when read back.
    #[error(
        "TCP_NODELAY is not what it was set to: small messages would not go when they are meant to"
    )]
    NoDelayNotTaken,
}

impl Error {
    /// Whether the port to send from is another socket's, or an ended connection's to the same peer.
    pub fn is_of_a_taken_port(&self) -> bool {
        let (Self::Local { errno, .. } | Self::Call { errno, .. }) = self else {
            return false;
        };
        matches!(*errno, Errno::ADDRINUSE | Errno::ADDRNOTAVAIL)
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => {
                "check that the peer still runs and that the network carries this size; raise the timeout on slow networks"
            }
            Self::Closed { .. } => "look at what the peer reports: it ended first",
            Self::Call { errno, .. } if *errno == Errno::CONNREFUSED => {
                "nothing listens there: check the address, the port, and that the peer still serves"
            }
            Self::Call { errno, .. }
                if *errno == Errno::NETUNREACH || *errno == Errno::HOSTUNREACH =>
            {
                "check the route to the peer: `ip route get ADDRESS`"
            }
            Self::Call { .. } => "look at what the peer reports, and at the interface's state",
            Self::Nonsense { .. } => "give both ends the same version of sonde",
            Self::Size { .. } => "give both ends the same size",
            Self::Payload { .. } => {
                "do not trust this network: bytes changed in transit, or another program sent them"
            }
            Self::Local { .. } => "check that the address is one of this host's: `ip addr`",
            Self::NoFrames { .. } => {
                "use udp on this path, and messages of at most the interface's MTU less 28 bytes"
            }
            Self::NoColdBuffers { .. } => "leave `buffers=cold` out on this host",
            Self::Option(_) | Self::NoDelayNotTaken => {
                "leave the option out, or use a kernel that has it"
            }
        }
    }

    /// What a refusal by the kernel becomes, on a socket of this address.
    pub(crate) fn refused(
        local: SocketAddr,
        attempt: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Local {
            attempt,
            local,
            errno: Errno::from_io_error(&source).unwrap_or(Errno::IO),
        }
    }

    /// Whether the peer ended the conversation between two messages, as it does when all is said.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Closed { received: 0, .. })
    }
}
