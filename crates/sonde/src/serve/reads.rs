//! The thread that reads the store for all pages.
//!
//! Model:   while a run is read SQLite holds a lock that keeps the measurement beside it from storing a repetition. Who makes pages runs only
//!          when nothing else wants the CPU, and might hold that lock for long; so they have their reads done by this thread, which is like
//!          any other. It opens the store anew each time, for looking alone.
//! Checked: `tests/serve.rs`: the store's bytes are the same after.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use sonde_record::{Store, StoreError};
use sonde_sys::thread;

use crate::failure::Failure;

type Read = Box<dyn FnOnce(&Path) + Send>;

/// The way to that thread.
#[derive(Clone)]
pub struct Reads {
    ask: Sender<Read>,
    out: PathBuf,
}

impl Reads {
    /// Starts it, for the store in this folder.
    ///
    /// # Errors
    /// The thread is refused.
    pub fn start(out: &Path) -> Result<Self, Failure> {
        let (ask, asked) = channel::<Read>();
        let own = out.to_path_buf();
        let work = move || asked.into_iter().for_each(|read| read(&own));
        thread::start("a reader of the store", work)?;
        let out = out.to_path_buf();
        Ok(Self { ask, out })
    }

    /// The folder of the store.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// What `work` reads.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (give, given) = channel();
        let read: Read = Box::new(move |out| {
            // Who asked waits for it.
            drop(give.send(Store::look(out).and_then(|store| work(&store))));
        });
        self.ask.send(read).expect("the reader outlives who asks");
        given.recv().expect("the reader answers what it is asked")
    }
}
