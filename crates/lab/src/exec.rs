//! Starting a program in a host, from the command or from a program in another host.
//!
//! Model:   one connection to the host's init is one program: the request with its standard streams, then `Started` or
//!          `Failed`, then `Ended`. Signals go the same way. When the connection closes, the program's process group is
//!          killed, unless it was started detached.
//! Units:   texts that need not be UTF-8 travel with each byte as one character.
//! Checked: `bytes_survive_the_way`; the end-to-end tests.

use crate::config::User;
use serde::{Deserialize, Serialize};
use sonde_sys::epoll::{Epoll, Event, Interest};
use sonde_sys::message;
use sonde_sys::process::SignalFd;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

const EACCES: i32 = 13;

/// The folder in each host where the inits listen, and the command itself is found.
pub(crate) const FOLDER: &str = "/run/sonde";

/// The socket of host `number`, from 1.
pub(crate) fn socket_path(number: u16) -> PathBuf {
    Path::new(FOLDER).join(format!("h{number}"))
}

/// The socket of the switch, for programs in the lab that change the network.
pub(crate) fn listener_path() -> PathBuf {
    Path::new(FOLDER).join("switch")
}

/// Listens at a socket of the lab's: for the user of its programs and the lab's root, or, where it is shared, for all users.
pub(crate) fn listen(path: &Path, user: User, is_shared: bool) -> Result<OwnedFd, ListenError> {
    let listener = message::listen(path)?;
    let (uid, gid) = user.behind;
    let mode = if is_shared { 0o666 } else { 0o600 };
    std::os::unix::fs::chown(path, Some(uid), Some(gid))
        .and_then(|()| std::fs::set_permissions(path, Permissions::from_mode(mode)))
        .map_err(|problem| ListenError::File {
            path: path.to_path_buf(),
            problem,
        })?;
    Ok(listener)
}

/// Why a socket of the lab's cannot be listened at.
#[derive(Debug, Error)]
pub(crate) enum ListenError {
    #[error("{0}")]
    Call(#[from] sonde_sys::Error),
    #[error("give {} to who may use it: {problem}", path.display())]
    File {
        path: PathBuf,
        problem: std::io::Error,
    },
}

/// Whether who has connected is the user of the lab's programs or its root: programs run as root for no one else.
pub(crate) fn is_of_lab(connection: impl AsFd, user: User) -> bool {
    message::peer(connection).is_ok_and(|peer| peer.uid == 0 || peer.uid == user.behind.0)
}

/// What to say to another user of a lab that is not shared.
pub(crate) fn refused(error: &sonde_sys::Error) -> Option<String> {
    let is_refused = error.errno().map(|errno| errno.raw_os_error()) == Some(EACCES);
    is_refused.then(|| {
        format!(
            "{error}: the lab is for who started it; with `--share` it is for its other users too"
        )
    })
}

/// A program to start in a host.
#[derive(Clone, Debug)]
pub struct Exec {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its environment; `HOSTNAME` and `SONDE_HOST` are set by the init.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory; `/` where the host does not have it.
    pub directory: PathBuf,
    /// Whether it runs as the lab's root, who may change the host's network.
    pub root: bool,
    /// Whether it goes on when the connection ends.
    pub detached: bool,
    /// A terminal of this size, instead of the streams.
    pub terminal: Option<(u16, u16)>,
    /// The CPUs it may use; empty for all of the lab.
    pub cpus: Vec<usize>,
    /// As root: whether it keeps the priority of the lab's own processes.
    pub keeps_priority: bool,
}

impl Exec {
    /// A program with this process's environment and folder.
    pub fn here(argv: &[OsString], root: bool) -> Self {
        Self {
            argv: argv.to_vec(),
            environment: std::env::vars_os().collect(),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            root,
            detached: false,
            terminal: None,
            cpus: Vec::new(),
            keeps_priority: false,
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Ended {
    /// As a shell says it: the code, or 128 and the signal.
    pub const fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// Why a program did not run, or its end is not known.
#[derive(Debug, Error)]
pub enum ExecError {
    /// There is no such program.
    #[error("h{host}: there is no program `{program}`; give its path, or install it")]
    NotFound {
        /// The host.
        host: u16,
        /// What was asked for.
        program: String,
    },
    /// It is there, but may not be run.
    #[error("h{host}: `{program}` may not be run; make it executable, or name another")]
    NotExecutable {
        /// The host.
        host: u16,
        /// What was asked for.
        program: String,
    },
    /// It could not be started.
    #[error("h{host}: cannot start `{program}`: {problem}")]
    Start {
        /// The host.
        host: u16,
        /// What was asked for.
        program: String,
        /// What the system said.
        problem: String,
    },
    /// The host's init is gone.
    #[error("h{host} is gone: its init ended while `{program}` was to run or ran there")]
    HostGone {
        /// The host.
        host: u16,
        /// What was asked for.
        program: String,
    },
    /// The connection failed.
    #[error("h{host}: {problem}")]
    Connection {
        /// The host.
        host: u16,
        /// What failed.
        problem: String,
    },
}

impl ExecError {
    /// A failure of what joins this process to a host.
    pub(crate) fn connection(host: u16, problem: impl std::fmt::Display) -> Self {
        Self::Connection {
            host,
            problem: problem.to_string(),
        }
    }

    /// The exit code that a command which only passes programs on gives: 127 not found, 126 not executable, else 125.
    pub const fn code(&self) -> i32 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::Start { .. } | Self::HostGone { .. } | Self::Connection { .. } => 125,
        }
    }
}

/// A request as it travels.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExecRequest {
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub directory: String,
    pub root: bool,
    pub detached: bool,
    pub terminal: Option<(u16, u16)>,
    pub cpus: Vec<usize>,
    pub keeps_priority: bool,
}

/// From the program's starter, after the request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToProgram {
    Signal(i32),
}

/// From the init.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromInit {
    Started,
    NotFound,
    NotExecutable,
    Failed(String),
    Ended(Ended),
}

/// Each byte as one character.
pub(crate) fn pack(text: &OsStr) -> String {
    text.as_bytes()
        .iter()
        .map(|byte| char::from(*byte))
        .collect()
}

/// The bytes again; what is not a byte is left out.
pub(crate) fn unpack(text: &str) -> OsString {
    OsString::from_vec(
        text.chars()
            .filter_map(|c| u8::try_from(u32::from(c)).ok())
            .collect(),
    )
}

impl Exec {
    fn request(&self) -> ExecRequest {
        ExecRequest {
            argv: self.argv.iter().map(|word| pack(word)).collect(),
            environment: self
                .environment
                .iter()
                .map(|(name, value)| (pack(name), pack(value)))
                .collect(),
            directory: pack(self.directory.as_os_str()),
            root: self.root,
            detached: self.detached,
            terminal: self.terminal,
            cpus: self.cpus.clone(),
            keeps_priority: self.keeps_priority,
        }
    }
}

/// The controlling end of a program's terminal.
#[derive(Debug)]
pub struct Terminal(pub OwnedFd);

/// A program that runs in a host. Dropping it kills the program, unless it is detached.
#[derive(Debug)]
pub struct Session {
    host: u16,
    program: String,
    socket: OwnedFd,
}

impl Session {
    /// Starts `exec` through `socket`, a connection to the init of `host` (from 1).
    ///
    /// # Errors
    /// What the init met.
    pub fn start(
        host: u16,
        socket: OwnedFd,
        exec: &Exec,
        streams: [BorrowedFd<'_>; 3],
    ) -> Result<(Self, Option<Terminal>), ExecError> {
        let program = exec
            .argv
            .first()
            .map(|word| word.to_string_lossy().into_owned())
            .unwrap_or_default();
        let session = Self {
            host,
            program,
            socket,
        };
        let request = serde_json::to_vec(&exec.request()).map_err(|e| session.failed(e))?;
        let streams: &[BorrowedFd<'_>] = if exec.terminal.is_some() {
            &[]
        } else {
            &streams
        };
        message::send(&session.socket, &request, streams).map_err(|e| session.failed(e))?;
        let (answer, mut fds) = session.hear()?;
        let program = session.program.clone();
        match answer {
            FromInit::Started => Ok((session, fds.pop().map(Terminal))),
            FromInit::NotFound => Err(ExecError::NotFound { host, program }),
            FromInit::NotExecutable => Err(ExecError::NotExecutable { host, program }),
            FromInit::Failed(problem) => Err(ExecError::Start {
                host,
                program,
                problem,
            }),
            FromInit::Ended(_) => {
                Err(session.failed("protocol violation: the init reported an end before the start"))
            }
        }
    }

    /// Starts `exec` in host `number` from inside the lab.
    ///
    /// # Errors
    /// What the connection or the init met.
    pub fn inside(
        number: u16,
        exec: &Exec,
        streams: [BorrowedFd<'_>; 3],
    ) -> Result<(Self, Option<Terminal>), ExecError> {
        let connection = |e: sonde_sys::Error| ExecError::Connection {
            host: number,
            problem: match refused(&e) {
                Some(problem) => problem,
                None => format!("{e}; is this a program in a lab, and is there a host h{number}?"),
            },
        };
        Self::start(
            number,
            message::connect(&socket_path(number)).map_err(connection)?,
            exec,
            streams,
        )
    }

    /// Waits until the program ends.
    ///
    /// # Errors
    /// [`ExecError::HostGone`] where the init ended first.
    pub fn wait(&self) -> Result<Ended, ExecError> {
        match self.hear()? {
            (FromInit::Ended(ended), _) => Ok(ended),
            (other, _) => Err(self.failed(format!(
                "protocol violation: the init reported {other:?} of a running program"
            ))),
        }
    }

    /// Sends a signal to the program's process group.
    ///
    /// # Errors
    /// Where the connection is gone.
    pub fn signal(&self, signal: i32) -> Result<(), ExecError> {
        let text = serde_json::to_vec(&ToProgram::Signal(signal)).map_err(|e| self.failed(e))?;
        message::send(&self.socket, &text, &[]).map_err(|e| self.failed(e))
    }

    /// The descriptor that becomes readable when the program ends.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn hear(&self) -> Result<(FromInit, Vec<OwnedFd>), ExecError> {
        let gone = || ExecError::HostGone {
            host: self.host,
            program: self.program.clone(),
        };
        let (bytes, fds) = message::recv(&self.socket)
            .map_err(|e| self.failed(e))?
            .ok_or_else(gone)?;
        Ok((
            serde_json::from_slice(&bytes).map_err(|e| self.failed(e))?,
            fds,
        ))
    }

    fn failed(&self, problem: impl std::fmt::Display) -> ExecError {
        ExecError::connection(self.host, problem)
    }
}

/// Hang-up, interrupt and termination, to be passed on by [`follow`].
///
/// # Errors
/// What the kernel said.
pub fn signals() -> sonde_sys::Result<SignalFd> {
    SignalFd::new(&[1, 2, 15])
}

/// Waits for all programs, passing signals on; the first code that is not 0. After a second interrupt nothing is waited for.
///
/// # Errors
/// [`ExecError::HostGone`], or a connection fails.
pub fn follow(sessions: &[Session], signals: &SignalFd) -> Result<i32, ExecError> {
    let here = |error: sonde_sys::Error| {
        ExecError::connection(sessions.first().map_or(0, |session| session.host), error)
    };
    let epoll = Epoll::new().map_err(here)?;
    let token = sessions.len() as u64;
    epoll.add(signals, token, Interest::Read).map_err(here)?;
    for (index, session) in sessions.iter().enumerate() {
        let added = epoll.add(session.fd(), index as u64, Interest::Read);
        added.map_err(here)?;
    }
    let (mut left, mut code, mut interrupts) = (sessions.len(), 0, 0);
    let mut events = [Event::EMPTY; 8];
    while left > 0 {
        for event in epoll.wait(&mut events, None).map_err(here)?.to_vec() {
            if event.token() < token {
                let session = &sessions[event.token() as usize];
                let ended = session.wait()?;
                epoll.remove(session.fd()).map_err(here)?;
                left -= 1;
                code = if code == 0 { ended.code() } else { code };
                continue;
            }
            while let Some(arrival) = signals.read().map_err(here)? {
                interrupts += 1;
                if interrupts > 1 {
                    return Ok(Ended::Signal(arrival.signal).code());
                }
                sessions
                    .iter()
                    .try_for_each(|session| session.signal(arrival.signal))?;
            }
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_the_way() {
        let odd = OsString::from_vec((1..=255).collect());
        let text = serde_json::to_string(&pack(&odd)).unwrap();
        assert_eq!(unpack(&serde_json::from_str::<String>(&text).unwrap()), odd);
    }
}
