//! Threads and processes that may be refused: one that cannot be started is an error with its remedy, where
//! `std::thread::spawn` would panic.
//!
//! Source:  pthread_create(3), fork(2): EAGAIN where RLIMIT_NPROC, the kernel's threads-max or a control group's pids.max is met.
//! Checked: `the_limit_and_the_remedy_are_told`; `a_limit_of_processes_is_told` of the end-to-end tests.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use rustix::process::Resource;

use crate::{Error, Result};

/// Starts a thread; `what` it is follows "cannot start".
///
/// # Errors
/// [`Error::Start`].
pub fn start<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let started = Builder::new().spawn(work);
    started.map_err(|error| refused(what, error))
}

/// Starts a thread that ends with `scope`.
///
/// # Errors
/// [`Error::Start`].
pub fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    what: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let started = Builder::new().spawn_scoped(scope, work);
    started.map_err(|error| refused(what, error))
}

/// The error of a thread or process that was refused, for who starts it otherwise.
pub fn refused(what: &str, source: io::Error) -> Error {
    let is_limit = source.kind() == io::ErrorKind::WouldBlock;
    let limit = rustix::process::getrlimit(Resource::Nproc).current;
    Error::Start {
        what: what.into(),
        source,
        limit: if is_limit { limit } else { None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_and_the_remedy_are_told() {
        let text = refused("a sender", io::Error::from_raw_os_error(libc::EAGAIN)).to_string();
        assert!(text.starts_with("cannot start a sender: "), "{text}");
        assert!(
            text.contains("`ulimit -u`") && text.contains("pids.max"),
            "{text}"
        );
        let absent = refused("ssh", io::Error::from_raw_os_error(libc::ENOENT)).to_string();
        assert!(!absent.contains("ulimit"), "{absent}");
    }

    #[test]
    fn work_is_done_and_given_back() {
        assert_eq!(start("a test", || 1).unwrap().join().unwrap(), 1);
        let two = std::thread::scope(|scope| start_in(scope, "a test", || 2).unwrap().join());
        assert_eq!(two.unwrap(), 2);
    }
}
