//! The store: runs on disk, as they are measured.
//!
//! Model:   one SQLite file `sonde.db` in a folder. Each call writes one transaction: after it returns the record survives a
//!          kill and a loss of power, and before that nothing of it is visible. The journal is a rollback journal, never a
//!          write-ahead log, whose shared memory does not work over NFS. What a killed process left is rolled back by the
//!          next who opens. A launch's result replaces a failed one of its cell and number, and never one that was measured.
//!          A store of an older version is read as it is, and brought up to this one when it is opened for measuring.
//! Source:  sqlite.org, Atomic Commit In SQLite; Write-Ahead Logging §1. Deviations: none.
//! Units:   as of the types that are stored.
//! Checked: `tests/runs`: store.rs, killed.rs (kill -9, two writers, full disks), page.rs (docs/store.md); the tests of this module: a
//!          store is whole or not there, whoever looks, and many make it at a time.

pub(crate) mod blob;
mod error;
mod old;
mod read;
#[cfg(test)]
mod tests;
pub(crate) mod value;
mod write;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};
use sonde_stats::Damaged;

pub use error::StoreError;
pub use read::{LATEST, NAMED, RunName};

use error::WAIT_S;
use sonde_measure::{
    CellRecord, EventRecord, HostRecord, LaunchRecord, NetworkRecord, Run, RunState,
};
use value::{whole, word};
use write::{insert_cell, insert_event, insert_host, insert_network, insert_warning};

/// The name of the file in its folder.
const FILE: &str = "sonde.db";
/// A file is made where there is none.
const CREATE: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_CREATE);
/// "sond": what tells a store from other programs' databases, and `file` what it is.
const APPLICATION: i64 = 0x736f_6e64;
/// The version of the tables.
const VERSION: i64 = 5;
const SCHEMA: &str = include_str!("store/schema.sql");

/// An open store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

/// What may go wrong within a transaction.
enum Fault {
    Sqlite(rusqlite::Error),
    Store(StoreError),
    Damaged(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Damaged> for Fault {
    fn from(damaged: Damaged) -> Self {
        Self::Damaged(damaged.0)
    }
}

impl Store {
    /// Opens the store in the folder `dir` for measuring; folder and file are made if absent.
    ///
    /// # Errors
    /// When it cannot be written, before anything was measured for it; when it is not a store, of a newer sonde, or damaged.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(dir).map_err(|source| StoreError::Folder {
            dir: dir.to_path_buf(),
            source,
        })?;
        let path = dir.join(FILE);
        if !path.try_exists().unwrap_or(true) {
            Self::make(&path)?;
        }
        let store = Self::connect(&path, path.clone(), CREATE)?;
        store.prepare()?;
        Ok(store)
    }

    /// Makes an empty store whole under a name that nobody else has, then gives it its own: whoever opens that finds a whole store,
    /// and one that could not be written leaves nothing that another may have opened.
    fn make(path: &Path) -> Result<(), StoreError> {
        // Of threads that make it at the same time each has a number, of hosts that share the folder each a time.
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ns = now.unwrap_or_default().subsec_nanos();
        let own = format!("db.{}-{number}-{now_ns}.new", std::process::id());
        let fresh = path.with_extension(own);
        // The messages name the store.
        let made = Self::connect(&fresh, path.to_path_buf(), CREATE);
        let made = made.and_then(|store| store.prepare());
        let named = made.and_then(|()| {
            let linked = fs::hard_link(&fresh, path);
            let linked = linked.or_else(|error| match path.symlink_metadata() {
                // Another process was faster, or the name is a link to somewhere.
                Ok(_) => Ok(()),
                // A file system without links.
                Err(_) => fs::rename(&fresh, path).map_err(|_| error),
            });
            linked.map_err(|source| StoreError::Unreachable {
                path: path.to_path_buf(),
                source,
            })
        });
        // It fails where there is none.
        drop(fs::remove_file(&fresh));
        named
    }

    /// Makes the tables where there are none, or brings them up.
    fn prepare(&self) -> Result<(), StoreError> {
        self.write("open", |transaction| {
            if self.is_new()? {
                transaction.execute_batch(SCHEMA)?;
                transaction.pragma_update(None, "application_id", APPLICATION)?;
            } else if self.identify()? < VERSION {
                self.bring_up(transaction)?;
            }
            // Written although it is the same, so that a folder without room for a journal is found now.
            Ok(transaction.pragma_update(None, "user_version", VERSION)?)
        })
    }

    /// Opens the store in the folder `dir` for reading: nothing is made, and a store on read-only media will do.
    ///
    /// # Errors
    /// When there is none, it is not a store, of a newer sonde, or damaged.
    pub fn read(dir: &Path) -> Result<Self, StoreError> {
        // Not read-only: what a killed process left half done must be rolled back before anything can be read.
        Self::existing(dir, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Opens the store in the folder `dir` for looking alone: whatever happens, nothing is written. What a killed process left half
    /// done is [`StoreError::ReadOnly`] here, until [`read`](Self::read) has rolled it back.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn look(dir: &Path) -> Result<Self, StoreError> {
        Self::existing(dir, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn existing(dir: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        if !path.try_exists().unwrap_or(true) {
            return Err(StoreError::Absent { path });
        }
        let store = Self::connect(&path, path.clone(), flags)?;
        if store.is_new().map_err(|fault| store.error("read", fault))? {
            return Err(StoreError::Absent { path: store.path });
        }
        store
            .identify()
            .map_err(|fault| store.error("read", fault))?;
        Ok(store)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens `file`, which messages call `path`.
    fn connect(file: &Path, path: PathBuf, flags: OpenFlags) -> Result<Self, StoreError> {
        match fs::metadata(file) {
            Ok(about) if about.is_dir() => {
                let what = "it is a folder".into();
                return Err(StoreError::Foreign { path, what });
            }
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(StoreError::Unreachable { path, source });
            }
            _ => {}
        }
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(file, flags).and_then(|connection| {
            connection.busy_timeout(Duration::from_secs(WAIT_S))?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "foreign_keys", true)?;
            let journal =
                connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| {
                    row.get::<_, String>(0)
                })?;
            Ok((connection, journal))
        });
        let (connection, journal) = opened.map_err(|error| StoreError::of("open", &path, error))?;
        if journal != "delete" {
            let what = format!("its journal mode is {journal}, and could not be set to delete");
            return Err(StoreError::Foreign { path, what });
        }
        Ok(Self { path, connection })
    }

    /// Whether there is nothing in the file.
    fn is_new(&self) -> Result<bool, Fault> {
        let tables: i64 =
            self.connection
                .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok(tables == 0 && self.pragma("application_id")? == 0 && self.pragma("user_version")? == 0)
    }

    /// Its version, if it is a store, and one that we know.
    fn identify(&self) -> Result<i64, Fault> {
        let path = self.path.clone();
        if self.pragma("application_id")? != APPLICATION {
            let what = "it is a database of another program".into();
            return Err(StoreError::Foreign { path, what }.into());
        }
        match self.pragma("user_version")? {
            found if found > VERSION => Err(StoreError::Newer {
                path,
                found,
                known: VERSION,
            }
            .into()),
            found => Ok(found),
        }
    }

    fn pragma(&self, name: &str) -> Result<i64, Fault> {
        Ok(self
            .connection
            .pragma_query_value(None, name, |row| row.get(0))?)
    }

    fn error(&self, attempt: &'static str, fault: Fault) -> StoreError {
        match fault {
            Fault::Sqlite(error) => StoreError::of(attempt, &self.path, error),
            Fault::Store(error) => error,
            Fault::Damaged(what) => StoreError::Damaged {
                path: self.path.clone(),
                what,
            },
        }
    }

    /// All of `work`, or nothing. The lock to write is taken at once: one that is asked for after reading would fail instead
    /// of waiting when two do so.
    fn write<T>(
        &self,
        attempt: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let begun = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate);
        let done = begun.map_err(Fault::from).and_then(|transaction| {
            // Dropped on an error, which rolls it back.
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        });
        done.map_err(|fault| self.error(attempt, fault))
    }

    /// Begins a run: all that it holds already, and the cells that are planned.
    ///
    /// # Errors
    /// When it cannot be written, or a run of its id is there.
    pub fn begin(&self, run: &Run) -> Result<(), StoreError> {
        let id = &run.head.id;
        self.write("begin a run in", |transaction| {
            self.insert_head(transaction, &run.head)?;
            for host in &run.hosts {
                insert_host(transaction, id, host)?;
            }
            for network in &run.networks {
                insert_network(transaction, id, network)?;
            }
            for cell in &run.cells {
                insert_cell(transaction, id, cell)?;
            }
            for launch in &run.launches {
                self.insert_launch(transaction, id, launch)?;
            }
            for event in &run.events {
                insert_event(transaction, id, event)?;
            }
            for warning in &run.warnings {
                insert_warning(transaction, id, warning)?;
            }
            Ok(())
        })
    }

    /// Stores a host of a run, in place of what was known of it.
    ///
    /// # Errors
    /// When it cannot be written, or the run is not there.
    pub fn host(&self, run: &str, host: &HostRecord) -> Result<(), StoreError> {
        self.write("write a host to", |transaction| {
            insert_host(transaction, run, host).map_err(|fault| self.orphan(fault, "a host", run))
        })
    }

    /// Stores a network of a run, in place of what was known of it.
    ///
    /// # Errors
    /// When it cannot be written, or the run is not there.
    pub fn network(&self, run: &str, network: &NetworkRecord) -> Result<(), StoreError> {
        self.write("write a network to", |transaction| {
            insert_network(transaction, run, network)
                .map_err(|fault| self.orphan(fault, "a network", run))
        })
    }

    /// Stores a cell of a run, in place of what was known of it; its launches stay.
    ///
    /// # Errors
    /// When it cannot be written, or the run is not there.
    pub fn cell(&self, run: &str, cell: &CellRecord) -> Result<(), StoreError> {
        self.write("write a cell to", |transaction| {
            insert_cell(transaction, run, cell).map_err(|fault| self.orphan(fault, "a cell", run))
        })
    }

    /// Stores a launch; each of its results in place of a failed one of its cell and index.
    ///
    /// # Errors
    /// When it cannot be written, a cell is not there, or a result that did not fail is.
    pub fn launch(&self, run: &str, launch: &LaunchRecord) -> Result<(), StoreError> {
        self.launches(run, std::slice::from_ref(launch))
    }

    /// Stores several launches in one transaction, each as by [`launch`](Self::launch): those that went on together.
    ///
    /// # Errors
    /// As [`launch`](Self::launch); then none of them is stored.
    pub fn launches(&self, run: &str, launches: &[LaunchRecord]) -> Result<(), StoreError> {
        self.write("write a repetition to", |transaction| {
            for launch in launches {
                self.insert_launch(transaction, run, launch)?;
            }
            Ok(())
        })
    }

    /// Stores an event.
    ///
    /// # Errors
    /// When it cannot be written, or the run is not there.
    pub fn event(&self, run: &str, event: &EventRecord) -> Result<(), StoreError> {
        self.write("write an event to", |transaction| {
            insert_event(transaction, run, event)
                .map_err(|fault| self.orphan(fault, "an event", run))
        })
    }

    /// Stores a warning.
    ///
    /// # Errors
    /// When it cannot be written, or the run is not there.
    pub fn warning(&self, run: &str, warning: &str) -> Result<(), StoreError> {
        self.write("write a warning to", |transaction| {
            insert_warning(transaction, run, warning)
                .map_err(|fault| self.orphan(fault, "a warning", run))
        })
    }

    /// Says how far a run came, now; [`RunState::Open`] says that it goes on.
    ///
    /// # Errors
    /// When it cannot be written, or the run is not there.
    pub fn end(&self, run: &str, state: RunState) -> Result<(), StoreError> {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        self.end_at(run, state, (state != RunState::Open).then_some(now))
    }

    /// Says how far a run came, and when.
    ///
    /// # Errors
    /// When it cannot be written, or the run is not there.
    pub fn end_at(
        &self,
        run: &str,
        state: RunState,
        ended_unix_ns: Option<u64>,
    ) -> Result<(), StoreError> {
        let found = self.write("end a run in", |transaction| {
            let ended = ended_unix_ns.map(|ns| whole("run.ended_unix_ns", ns));
            Ok(transaction.execute(
                "UPDATE run SET state = ?2, ended_unix_ns = ?3 WHERE id = ?1",
                params![run, word(&state), ended.transpose()?],
            )?)
        })?;
        match found {
            0 => Err(self.no_run(run)?),
            _ => Ok(()),
        }
    }

    /// Says which record is missing where a reference points to nothing.
    fn orphan(&self, fault: Fault, what: &str, run: &str) -> Fault {
        match fault {
            Fault::Sqlite(error)
                if error.sqlite_error().is_some_and(|error| {
                    error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY
                }) =>
            {
                Fault::Store(StoreError::Orphan {
                    path: self.path.clone(),
                    what: what.into(),
                    missing: format!("run {run}"),
                })
            }
            other => other,
        }
    }
}
