//! What can go wrong between sonde and the kernel.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

/// The result of a call into this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A refusal by the kernel or by one of its files; each says what was attempted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {what}: {errno}")]
    Call {
        /// What was attempted, with its values, and where one is known the remedy.
        what: String,
        /// The kernel's reason.
        errno: Errno,
    },
    /// A netlink request was refused.
    #[error("cannot {what}: {errno}{}", said(text))]
    Netlink {
        /// The operation and its object.
        what: String,
        /// The kernel's reason.
        errno: Errno,
        /// The kernel's own sentence (extended acknowledgement); empty when it gave none.
        text: String,
    },
    /// A netlink answer could not be understood, or a wanted object is not there.
    #[error("cannot {what}: {text}")]
    Answer {
        /// The operation and its object.
        what: String,
        /// What was wrong with the answer.
        text: String,
    },
    /// A file of /proc, /sys or /etc could not be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// "read" or "write …to".
        what: String,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A setting did not take: what is read back differs from what was written.
    #[error(
        "{name} is \"{found}\" after \"{asked}\" was written: the kernel ignored or changed the value"
    )]
    NotTaken {
        /// The setting.
        name: String,
        /// The value written.
        asked: String,
        /// The value read back.
        found: String,
    },
    /// A setuid program that writes id maps refused or is missing.
    #[error(
        "{program} failed: {text}; the user needs a range in /etc/subuid and /etc/subgid (package uidmap)"
    )]
    IdMap {
        /// The program.
        program: String,
        /// What it said.
        text: String,
    },
    /// The parent ended before the child could ask to die with it.
    #[error("parent process {expected} is gone (the parent is now {found}): stopping as it asked")]
    Orphaned {
        /// The parent that started this process.
        expected: u32,
        /// The parent found.
        found: u32,
    },
    /// A thread or a process could not be started.
    #[error("cannot start {what}: {source}{}", start_remedy(source, *limit))]
    Start {
        /// What it was to be.
        what: String,
        /// The reason.
        source: io::Error,
        /// How many processes and threads this user may have, where that was met and is known.
        limit: Option<u64>,
    },
    /// A message exceeds what one datagram may carry.
    #[error(
        "message of {bytes} bytes with {fds} descriptors: a message carries at most {bytes_max} bytes and {fds_max} descriptors; split it"
    )]
    TooBig {
        /// Bytes asked for.
        bytes: usize,
        /// Descriptors asked for.
        fds: usize,
        /// Limit in bytes.
        bytes_max: usize,
        /// Limit in descriptors.
        fds_max: usize,
    },
    /// A value is outside what the kernel's format can say.
    #[error("{what} {value} is out of range: {remedy}")]
    OutOfRange {
        /// The quantity.
        what: &'static str,
        /// The value given.
        value: String,
        /// What to do.
        remedy: &'static str,
    },
}

fn said(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({text})")
    }
}

fn start_remedy(source: &io::Error, limit: Option<u64>) -> String {
    if source.kind() != io::ErrorKind::WouldBlock {
        return String::new();
    }
    let is = limit.map_or_else(String::new, |limit| format!(" is {limit}"));
    format!(
        "; a limit of processes and threads is reached (`ulimit -u`{is}, or `pids.max` of the control group): end some, or raise it"
    )
}

impl Error {
    /// The kernel's error number, where there is one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Call { errno, .. } | Self::Netlink { errno, .. } => Some(*errno),
            Self::File { source, .. } | Self::Start { source, .. } => Errno::from_io_error(source),
            _ => None,
        }
    }
}

/// Attaches what was attempted to a bare error number.
pub(crate) trait Attempt<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Attempt<T> for rustix::io::Result<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|errno| Error::Call {
            what: what(),
            errno,
        })
    }
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Call {
            what: what(),
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })
    }
}

/// Turns the return value of a libc call into a result: negative means errno.
pub(crate) fn checked<T: PartialOrd + Default>(value: T) -> rustix::io::Result<T> {
    if value < T::default() {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
    } else {
        Ok(value)
    }
}

/// Reads a small text file of /proc, /sys or /etc.
pub(crate) fn read_text(path: impl Into<PathBuf>) -> Result<String> {
    let path = path.into();
    std::fs::read_to_string(&path).map_err(|source| Error::File {
        what: "read".into(),
        path,
        source,
    })
}
