//! How ranks that no library starts meet: what each is told in its environment, and the ranks that it starts beside itself.
//!
//! Model:   `SONDE_NATIVE` holds JSON, which is in no command line, since the token in it is a secret. One process is one
//!          rank; where several ranks are on a host, the first starts the others, which die with it.
//! Units:   nanoseconds.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::process::{Child, Command};
use std::time::Duration;

use sonde_message::BEST;
use sonde_message::native::{Bootstrap, Meeting, Transport};
use sonde_probe::library::{Job, NATIVE, Native, Way};
use sonde_sys::exec::{Step, before_exec};

/// What this process was told.
///
/// # Errors
/// The variable is missing, or is not what it must be.
pub fn told() -> Result<Native, String> {
    let text = std::env::var(NATIVE)
        .map_err(|_| format!("${NATIVE} is not set: sonde starts native ranks, nobody else"))?;
    serde_json::from_str(&text).map_err(|error| format!("${NATIVE} is not a meeting: {error}"))
}

/// The one way of ranks that do not choose.
///
/// # Errors
/// There are none, or several.
pub fn sole(native: &Native) -> Result<&Way, String> {
    match native.ways.as_slice() {
        [way] => Ok(way),
        ways => Err(format!("${NATIVE} has {} ways, not one", ways.len())),
    }
}

/// What the engine takes for a way.
///
/// # Errors
/// A transport or an address that is none.
pub fn bootstrap(native: &Native, way: &Way, job: &Job) -> Result<Bootstrap, String> {
    let name = match native.transport.as_str() {
        BEST => Transport::Tcp.name(),
        name => name,
    };
    let transport = Transport::ALL
        .into_iter()
        .find(|one| one.name() == name)
        .ok_or_else(|| format!("the native engine has no transport `{name}`"))?;
    let meeting = match transport {
        Transport::Tcp => {
            let address = way.meeting.parse();
            Meeting::Address(
                address.map_err(|_| format!("`{}` is not an address with a port", way.meeting))?,
            )
        }
        Transport::Unix | Transport::Shm => Meeting::Name(way.meeting.clone()),
    };
    Ok(Bootstrap {
        rank: native.rank,
        size: native.size,
        transport,
        meeting,
        own: way.own,
        token: native.token.clone(),
        wait: job.wait,
        timeout: Duration::from_nanos(native.timeout_ns).max(job.timeout()),
    })
}

/// The ranks beside this one, each a process; they die with it.
pub struct Beside(Vec<(usize, Child)>);

impl Beside {
    /// Starts them, with this process's arguments.
    ///
    /// # Errors
    /// One does not start.
    pub fn start(native: &Native) -> Result<Self, String> {
        let mut all = Self(Vec::new());
        for &rank in &native.beside {
            let one = Native {
                rank,
                beside: Vec::new(),
                ..native.clone()
            };
            let text = serde_json::to_string(&one).map_err(|error| error.to_string())?;
            let mut command = Command::new("/proc/self/exe");
            command.args(std::env::args_os().skip(1)).env(NATIVE, text);
            let expected = std::process::id();
            before_exec(&mut command, vec![Step::DieWithParent { expected }]);
            let child = command
                .spawn()
                .map_err(|error| format!("cannot start rank {rank}: {error}"))?;
            all.0.push((rank, child));
        }
        Ok(all)
    }

    /// Waits for their ends.
    ///
    /// # Errors
    /// One did not end well; it has said why.
    pub fn end(mut self) -> Result<(), String> {
        let mut bad = Vec::new();
        for (rank, child) in &mut self.0 {
            match child.wait() {
                Ok(status) if status.success() => {}
                Ok(status) => bad.push(format!("rank {rank} ended with {status}")),
                Err(error) => bad.push(format!("rank {rank} cannot be waited for: {error}")),
            }
        }
        self.0.clear();
        if bad.is_empty() {
            return Ok(());
        }
        Err(bad.join("; "))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            // It may have ended.
            drop(child.kill());
            drop(child.wait());
        }
    }
}
