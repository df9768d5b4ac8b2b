//! What can go wrong with a store, where, and what to do.
//!
//! Checked: the tests of the store, which provoke each.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi;
use sonde_units::excerpt;

/// A store that could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder could not be made.
    #[error("cannot make the folder {}: {source}; choose another with --out", dir.display())]
    Folder {
        /// The folder.
        dir: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its name leads nowhere: through a folder that is closed to this user, or a loop of links.
    #[error("cannot open {}: {source}; choose another folder with --out", path.display())]
    Unreachable {
        /// The store.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no store to read.
    #[error("there is no store at {}: measure first, or name its folder with --out", path.display())]
    Absent {
        /// Where it would be.
        path: PathBuf,
    },
    /// No space.
    #[error("cannot write {}: the disk is full; free space, or choose another folder with --out", path.display())]
    DiskFull {
        /// The store.
        path: PathBuf,
    },
    /// It, or its folder, cannot be written.
    #[error(
        "cannot write {}: the file, its folder or the file system is read-only for this user ({source}); choose another \
         folder with --out",
        path.display()
    )]
    ReadOnly {
        /// The store.
        path: PathBuf,
        /// SQLite's words.
        source: rusqlite::Error,
    },
    /// Another process did not let go of it.
    #[error(
        "cannot use {}: another process has held it for {waited_s} s ({source}); wait until that run has ended, or choose \
         another folder with --out",
        path.display()
    )]
    Locked {
        /// The store.
        path: PathBuf,
        /// How long it was waited for.
        waited_s: u64,
        /// SQLite's words.
        source: rusqlite::Error,
    },
    /// The file system does not lock.
    #[error(
        "cannot lock {}: its file system refuses locks ({source}); choose a folder on a local disk with --out",
        path.display()
    )]
    NoLocks {
        /// The store.
        path: PathBuf,
        /// SQLite's words.
        source: rusqlite::Error,
    },
    /// It is something else.
    #[error("{} is not a store of sonde: {what}; move it away, or choose another folder with --out", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// It was written by a newer sonde.
    #[error(
        "{} is a store of version {found}, and this sonde knows versions up to {known}: use the sonde that wrote it, or \
         choose another folder with --out",
        path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// What is in it contradicts itself.
    #[error(
        "{} is damaged: {what}; `sqlite3 {} .recover` may save the rest, and --out chooses another folder",
        path.display(),
        path.display()
    )]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// A run that is not there.
    #[error("there is no run {} in {}; {}", excerpt(id), path.display(), nearest_words(nearest))]
    NoRun {
        /// The store.
        path: PathBuf,
        /// What was asked for.
        id: String,
        /// Those that are most like it, best first.
        nearest: Vec<String>,
    },
    /// Several runs begin so.
    #[error("{count} runs in {} begin with {}: write more of the id; `sonde report list` names them", path.display(), excerpt(begin))]
    Several {
        /// The store.
        path: PathBuf,
        /// What was asked for.
        begin: String,
        /// How many.
        count: usize,
    },
    /// A launch of a cell that the run does not have, or a record of a run that is not there.
    #[error("cannot store {what} in {}: {missing} is not in the store; store it first", path.display())]
    Orphan {
        /// The store.
        path: PathBuf,
        /// What was to be stored.
        what: String,
        /// What is missing.
        missing: String,
    },
    /// A run with this id is there.
    #[error("cannot begin run {id}: {} has one of that id; begin it with another", path.display())]
    Taken {
        /// The store.
        path: PathBuf,
        /// The id.
        id: String,
    },
    /// A launch that was measured is never replaced.
    #[error(
        "cannot store repetition {index} of cell {cell} in {}: it was measured already, and is kept",
        path.display()
    )]
    Measured {
        /// The store.
        path: PathBuf,
        /// The cell.
        cell: String,
        /// The launch.
        index: u64,
    },
    /// A number that the column cannot hold.
    #[error(
        "cannot store {what}: {value} is more than 2^63-1, the most that a store holds there; this is a bug in sonde"
    )]
    TooLarge {
        /// Which.
        what: &'static str,
        /// The number.
        value: u64,
    },
    /// Anything else.
    #[error("cannot {attempt} {}: {source}; look at the file system and at the limit of a file's size (`ulimit -f`), or choose another folder with --out", path.display())]
    Sqlite {
        /// What was tried.
        attempt: &'static str,
        /// The store.
        path: PathBuf,
        /// SQLite's words.
        source: rusqlite::Error,
    },
}

fn nearest_words(nearest: &[String]) -> String {
    match nearest {
        [] => "it has none yet".into(),
        some => format!("nearest: {}", some.join(", ")),
    }
}

/// How long a lock is waited for.
pub(super) const WAIT_S: u64 = 20;

impl StoreError {
    /// Sorts SQLite's errors by what a person can do about them.
    pub(super) fn of(attempt: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        let Some(error) = source.sqlite_error() else {
            return Self::of_value(attempt, path, source);
        };
        match (error.code, error.extended_code) {
            (ErrorCode::DiskFull, _) => Self::DiskFull { path },
            (ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied, _) => {
                Self::ReadOnly { path, source }
            }
            (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => Self::Locked {
                path,
                waited_s: WAIT_S,
                source,
            },
            (ErrorCode::FileLockingProtocolFailed, _) | (_, ffi::SQLITE_IOERR_LOCK) => {
                Self::NoLocks { path, source }
            }
            (ErrorCode::NotADatabase, _) => Self::Foreign {
                path,
                what: "it is not a database".into(),
            },
            // Of a statement that is right for a whole store: a table or a column is missing.
            (ErrorCode::DatabaseCorrupt, _) | (_, ffi::SQLITE_ERROR) => Self::Damaged {
                path,
                what: source.to_string(),
            },
            _ => Self::Sqlite {
                attempt,
                path,
                source,
            },
        }
    }

    /// Errors of values: a column held what it cannot.
    fn of_value(attempt: &'static str, path: PathBuf, source: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match source {
            E::FromSqlConversionFailure(..)
            | E::IntegralValueOutOfRange(..)
            | E::InvalidColumnType(..)
            | E::Utf8Error(..) => Self::Damaged {
                path,
                what: source.to_string(),
            },
            _ => Self::Sqlite {
                attempt,
                path,
                source,
            },
        }
    }
}
