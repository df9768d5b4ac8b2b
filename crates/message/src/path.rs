//! The ways of messages: a library, its transport and provider, as they are written in plans and rows.
//!
//! Model:   `library[:transport[:provider]]`. What is not written is the library's usual.
//! Checked: `names_are_read_back`.
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

/// The native transport that takes all networks of its hosts at once: each message by the best.
pub const BEST: &str = "best";

/// Who carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Library {
    /// sonde's own engine: `tcp`, `unix`, `shm`; `best` is `tcp` over all networks of its hosts, each message by the best.
    Native,
    /// PVM 3: `default` (by the daemons) and `direct` (task to task).
    Pvm,
    /// Open MPI: `tcp`, `sm`.
    OpenMpi,
    /// MPICH: `tcp`, `sm`.
    Mpich,
    /// UCX, its tagged messages: `tcp`, `posix`, `sysv`, `cma`.
    Ucx,
    /// libfabric, its tagged messages: `tcp`, `shm`, `udp`.
    Ofi,
}

/// A way of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Who carries them.
    pub library: Library,
    /// By what of it.
    pub transport: &'static str,
}

/// A text that names no way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no path `{text}`: write {wanted}")]
pub struct Unnamed {
    /// What was written.
    pub text: String,
    /// What there is.
    pub wanted: String,
}

impl Library {
    /// All, in the order of help texts.
    pub const ALL: [Self; 6] = [
        Self::Native,
        Self::Pvm,
        Self::OpenMpi,
        Self::Mpich,
        Self::Ucx,
        Self::Ofi,
    ];

    /// As it is written: `openmpi`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Pvm => "pvm",
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Ucx => "ucx",
            Self::Ofi => "ofi",
        }
    }

    /// Its transports, the usual one first.
    pub const fn transports(self) -> &'static [&'static str] {
        match self {
            Self::Native => &["tcp", "unix", "shm", BEST],
            Self::Pvm => &["default", "direct"],
            Self::OpenMpi | Self::Mpich => &["tcp", "sm"],
            Self::Ucx => &["tcp", "posix", "sysv", "cma"],
            Self::Ofi => &["tcp", "shm", "udp"],
        }
    }
}

impl Path {
    /// Every way, in the order of help texts.
    pub fn all() -> impl Iterator<Item = Self> {
        Library::ALL.into_iter().flat_map(|library| {
            let transports = library.transports().iter();
            transports.map(move |transport| Self { library, transport })
        })
    }

    /// Whether it takes all networks of its hosts at once.
    pub fn is_over_all_networks(self) -> bool {
        self.transport == BEST
    }

    /// Whether it joins processes of one machine only.
    pub fn is_within_machine(self) -> bool {
        matches!(
            self.transport,
            "unix" | "shm" | "sm" | "posix" | "sysv" | "cma"
        )
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.library.name(), self.transport)
    }
}

impl FromStr for Path {
    type Err = Unnamed;

    fn from_str(text: &str) -> Result<Self, Unnamed> {
        Self::all()
            .find(|path| {
                path.to_string() == text
                    || (path.library.transports().first() == Some(&path.transport)
                        && path.library.name() == text)
            })
            .ok_or_else(|| Unnamed {
                text: text.into(),
                wanted: Self::all()
                    .map(|path| path.to_string())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for path in Path::all() {
            assert_eq!(path.to_string().parse(), Ok(path));
        }
        assert_eq!("openmpi".parse::<Path>().unwrap().transport, "tcp");
        let error = "openmpi:ib".parse::<Path>().unwrap_err().to_string();
        assert!(error.contains("openmpi:sm"), "{error}");
    }
}
