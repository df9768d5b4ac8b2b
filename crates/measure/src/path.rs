//! The ways on which bytes go, and the methods by which they are handed over.
//!
//! Checked: `names_are_read_back`, `each_path_begins_with_its_plain_method`.
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

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which kind of channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// A byte stream by TCP.
    Tcp,
    /// Datagrams by UDP.
    Udp,
    /// A byte stream through a UNIX socket, within one machine.
    Unix,
    /// Memory that two processes of one machine share.
    Shm,
    /// Whole frames by packet sockets, past TCP, UDP and IP.
    Packet,
    /// Whole frames by AF_XDP, before the kernel's protocols.
    Xdp,
}

/// How bytes are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// One call and one copy for each message; in shared memory, messages through a ring.
    Plain,
    /// The kernel reads the sender's memory when it sends (MSG_ZEROCOPY), and says when it is done.
    Zerocopy,
    /// The sender hands over pages of a file in memory (sendfile), of which nothing is copied.
    Splice,
    /// Calls are put into a ring (io_uring) and made many at a time.
    Uring,
    /// Many datagrams in a call (sendmmsg, recvmmsg).
    Mmsg,
    /// Many datagrams in a buffer, cut below the socket (UDP_SEGMENT) and joined below it (UDP_GRO).
    Gso,
    /// A shared segment with a flag: each message is written where its reader wants it.
    Segment,
    /// Slots that are shared with the kernel.
    Ring,
}

/// How a program waits for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// It sleeps in the kernel.
    Block,
    /// It asks again and again, and gives the CPU to nobody.
    Poll,
}

impl Wait {
    /// As it is written: `block`, `poll`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Poll => "poll",
        }
    }
}

/// A text that names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} `{text}`: write {}", .names.join(", "))]
pub struct Unnamed {
    /// What was to be named.
    pub what: &'static str,
    /// What was written.
    pub text: String,
    /// What there is.
    pub names: Vec<&'static str>,
}

impl Path {
    /// All, in the order of help texts.
    pub const ALL: &'static [Self] = &[
        Self::Tcp,
        Self::Udp,
        Self::Unix,
        Self::Shm,
        Self::Packet,
        Self::Xdp,
    ];

    /// Whether messages are frames of their own, past TCP, UDP and IP.
    pub const fn is_frames(self) -> bool {
        matches!(self, Self::Packet | Self::Xdp)
    }

    /// As it is written: `tcp`, `udp`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Unix => "unix",
            Self::Shm => "shm",
            Self::Packet => "packet",
            Self::Xdp => "xdp",
        }
    }

    /// The methods that it has, the usual one first.
    pub const fn methods(self) -> &'static [Method] {
        match self {
            Self::Tcp => &[
                Method::Plain,
                Method::Zerocopy,
                Method::Splice,
                Method::Uring,
            ],
            Self::Udp => &[Method::Plain, Method::Mmsg, Method::Gso],
            Self::Unix | Self::Xdp => &[Method::Plain],
            Self::Shm => &[Method::Plain, Method::Segment],
            Self::Packet => &[Method::Plain, Method::Ring],
        }
    }

    /// Whether it joins processes of one machine only.
    pub const fn is_within_machine(self) -> bool {
        matches!(self, Self::Unix | Self::Shm)
    }

    /// Whether nothing is lost on it, so that what was sent and what was received can be held against each other.
    pub const fn is_lossless(self) -> bool {
        !matches!(self, Self::Udp | Self::Packet | Self::Xdp)
    }
}

impl Method {
    /// All, in the order of help texts.
    pub const ALL: &'static [Self] = &[
        Self::Plain,
        Self::Zerocopy,
        Self::Splice,
        Self::Uring,
        Self::Mmsg,
        Self::Gso,
        Self::Segment,
        Self::Ring,
    ];

    /// As it is written: `plain`, `zerocopy`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Zerocopy => "zerocopy",
            Self::Splice => "splice",
            Self::Uring => "uring",
            Self::Mmsg => "mmsg",
            Self::Gso => "gso",
            Self::Segment => "segment",
            Self::Ring => "ring",
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Path {
    type Err = Unnamed;

    fn from_str(text: &str) -> Result<Self, Unnamed> {
        let found = Self::ALL.iter().find(|path| path.name() == text);
        found.copied().ok_or_else(|| Unnamed {
            what: "path",
            text: text.into(),
            names: Self::ALL.iter().map(|path| path.name()).collect(),
        })
    }
}

impl FromStr for Method {
    type Err = Unnamed;

    fn from_str(text: &str) -> Result<Self, Unnamed> {
        let found = Self::ALL.iter().find(|method| method.name() == text);
        found.copied().ok_or_else(|| Unnamed {
            what: "method",
            text: text.into(),
            names: Self::ALL.iter().map(|method| method.name()).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for path in Path::ALL {
            assert_eq!(path.name().parse(), Ok(*path));
            assert_eq!(serde_json::to_value(path).unwrap(), path.name());
        }
        for method in Method::ALL {
            assert_eq!(method.name().parse(), Ok(*method));
            assert_eq!(serde_json::to_value(method).unwrap(), method.name());
        }
        let error = "tpc".parse::<Path>().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("there is no path `tpc`: write tcp"),
            "{error}"
        );
    }

    #[test]
    fn each_path_begins_with_its_plain_method() {
        for path in Path::ALL {
            assert_eq!(path.methods()[0], Method::Plain);
        }
    }
}
