//! The init of a host: its namespaces, its folders, and the server that starts programs in it.
//!
//! Model:   the first process of its pid namespace. It has its own network, mounts, names and IPC, so that programs
//!          of two hosts meet on the network only: /tmp, /run, /dev/shm and /dev/pts are its own. It starts what it is asked
//!          to at its socket, collects what has ended, and ends with the switch. It keeps the last references to its
//!          ports and their packet sockets, so that those of many hosts are taken down in parallel: for the end of each the kernel waits 13 ms, and
//!          one process that closes those of 64 hosts takes 1.7 s.
//! Checked: the end-to-end tests.

use crate::config::User;
use crate::control::{HostAnswer, HostConfig, HostRequest, TalkError, hear, say};
use crate::exec::{self, Ended, ExecRequest, FromInit, ToProgram};
use crate::{furnish, libraries};
use sonde_sys::cpu;
use sonde_sys::epoll::{Epoll, Event, Interest};
use sonde_sys::exec::{Step, before_exec};
use sonde_sys::message::{self, Incoming};
use sonde_sys::namespace::{self, IdMap, Kind, Namespaces};
use sonde_sys::process::{self, Capability, SignalFd};
use sonde_sys::pty::{Pty, WindowSize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SIGCHLD: i32 = 17;
const SIGKILL: i32 = 9;
const TOKEN_PARENT: u64 = u64::MAX;
const TOKEN_SIGNAL: u64 = u64::MAX - 1;
const TOKEN_LISTENER: u64 = u64::MAX - 2;

/// What the root of a host has: its files, its processes, its network, its mounts.
const KEPT: [Capability; 19] = [
    Capability::Chown,
    Capability::DacOverride,
    Capability::DacReadSearch,
    Capability::Fowner,
    Capability::Fsetid,
    Capability::Kill,
    Capability::Setgid,
    Capability::Setuid,
    Capability::Setpcap,
    Capability::NetBindService,
    Capability::NetBroadcast,
    Capability::NetAdmin,
    Capability::NetRaw,
    Capability::IpcOwner,
    Capability::SysChroot,
    Capability::SysPtrace,
    Capability::SysAdmin,
    Capability::SysNice,
    Capability::Setfcap,
];

/// Why a host did not come up, or ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error("{0}")]
    Call(#[from] sonde_sys::Error),
    #[error("{0}")]
    Talk(#[from] TalkError),
    #[error("{0}")]
    Listen(#[from] exec::ListenError),
    #[error("{what}: {problem}")]
    File {
        what: String,
        problem: std::io::Error,
    },
}

pub(crate) fn file(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> HostError {
    let what = what.into();
    move |problem| HostError::File { what, problem }
}

/// Runs the init; standard input is the socket to the switch.
pub(crate) fn run() -> i32 {
    let parent = std::io::stdin();
    match Init::come_up(parent.as_fd().try_clone_to_owned()) {
        Ok(mut init) => init.serve().map_or(1, |()| 0),
        Err(error) => {
            // If the switch is gone too there is nobody left to tell.
            drop(say(&parent, &HostAnswer::Failed(error.to_string()), &[]));
            1
        }
    }
}

/// The process that lends its user namespace to a host's programs: it tells that it is in, and waits for the end.
pub(crate) fn lend_user_namespace() -> i32 {
    use std::io::Write;
    let told = namespace::unshare(Namespaces::of(&[Kind::User])).is_ok()
        && std::io::stdout().write_all(b"1").is_ok()
        && std::io::stdout().flush().is_ok();
    if told {
        // The end of standard input is the sign to go; what is read does not matter.
        drop(std::io::stdin().read(&mut [0]));
    }
    i32::from(!told)
}

/// A program that was started and its connection.
struct Program {
    connection: u64,
    detached: bool,
}

struct Init {
    config: HostConfig,
    parent: OwnedFd,
    held: Vec<OwnedFd>,
    listener: OwnedFd,
    signals: SignalFd,
    epoll: Epoll,
    connections: BTreeMap<u64, OwnedFd>,
    next_connection: u64,
    programs: BTreeMap<u32, Program>,
    user: Option<OwnedFd>,
}

impl Init {
    fn come_up(parent: std::io::Result<OwnedFd>) -> Result<Self, HostError> {
        let parent = parent.map_err(file("keep the socket to the switch"))?;
        let (request, _) = hear::<HostRequest>(&parent)?;
        let HostRequest::Start(config) = request else {
            return Err(TalkError::Ended.into());
        };
        namespace::unshare(Namespaces::of(&[Kind::Mount]))?;
        furnish::furnish(&config)?;
        // The mounts made so far are locked for whoever is in the namespaces to come, the host's root too.
        namespace::unshare(Namespaces::of(&[Kind::User]))?;
        say(&parent, &HostAnswer::Unshared, &[])?;
        let (HostRequest::Mapped, _) = hear::<HostRequest>(&parent)? else {
            return Err(TalkError::Ended.into());
        };
        namespace::unshare(Namespaces::of(&[
            Kind::Net,
            Kind::Mount,
            Kind::Uts,
            Kind::Ipc,
        ]))?;
        process::set_hostname(&config.name)?;
        process::bound_capabilities(&KEPT)?;
        let path = exec::socket_path(config.number);
        let listener = exec::listen(&path, config.user, config.share)?;
        let signals = SignalFd::new(&[SIGCHLD, 1, 2, 15])?;
        let epoll = Epoll::new()?;
        epoll.add(&parent, TOKEN_PARENT, Interest::Read)?;
        epoll.add(&signals, TOKEN_SIGNAL, Interest::Read)?;
        epoll.add(&listener, TOKEN_LISTENER, Interest::Read)?;
        say(&parent, &HostAnswer::Ready, &[])?;
        Ok(Self {
            config,
            parent,
            held: Vec::new(),
            listener,
            signals,
            epoll,
            connections: BTreeMap::new(),
            next_connection: 0,
            programs: BTreeMap::new(),
            user: None,
        })
    }

    /// Serves until the switch ends.
    fn serve(&mut self) -> Result<(), HostError> {
        let mut events = [Event::EMPTY; 16];
        loop {
            let tokens: Vec<u64> = self
                .epoll
                .wait(&mut events, None)?
                .iter()
                .map(Event::token)
                .collect();
            for token in tokens {
                match token {
                    TOKEN_PARENT => {
                        let Incoming::Message((_, fds)) = message::try_recv(&self.parent)? else {
                            return Ok(());
                        };
                        self.held.extend(fds);
                    }
                    TOKEN_SIGNAL => {
                        while self.signals.read()?.is_some() {}
                        self.collect();
                    }
                    TOKEN_LISTENER => {
                        if let Some(connection) = message::accept(&self.listener)? {
                            self.epoll
                                .add(&connection, self.next_connection, Interest::Read)?;
                            self.connections.insert(self.next_connection, connection);
                            self.next_connection += 1;
                        }
                    }
                    token => self.on_connection(token),
                }
            }
        }
    }

    /// A request, a signal, or the end of a connection.
    fn on_connection(&mut self, token: u64) {
        let Some(connection) = self.connections.get(&token) else {
            return;
        };
        let running = self
            .programs
            .iter()
            .find(|(_, program)| program.connection == token)
            .map(|(pid, _)| *pid);
        let (bytes, fds) = match message::try_recv(connection) {
            Ok(Incoming::Message(message)) => message,
            Ok(Incoming::Nothing) => return,
            Ok(Incoming::Closed) | Err(_) => return self.hang_up(token, running),
        };
        let answer = match running {
            Some(pid) => {
                if let Ok(ToProgram::Signal(signal)) = serde_json::from_slice(&bytes) {
                    // The group may have ended just now.
                    drop(process::kill_group(pid, signal));
                }
                return;
            }
            None => self.start(token, &bytes, fds),
        };
        let (answer, terminal) = answer.unwrap_or_else(|failed| (failed, None));
        let fds: Vec<_> = terminal.iter().map(|fd| fd.as_fd()).collect();
        if let Some(connection) = self.connections.get(&token) {
            // Who hung up meanwhile is found out at the next turn.
            drop(say(connection, &answer, &fds));
        }
    }

    fn hang_up(&mut self, token: u64, running: Option<u32>) {
        if let Some(connection) = self.connections.remove(&token) {
            drop(self.epoll.remove(&connection));
        }
        if let Some(pid) = running.filter(|pid| !self.programs[pid].detached) {
            drop(process::kill_group(pid, SIGKILL));
        }
    }

    fn start(
        &mut self,
        token: u64,
        bytes: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<(FromInit, Option<OwnedFd>), FromInit> {
        let failed = |problem: &dyn std::fmt::Display| FromInit::Failed(problem.to_string());
        let request: ExecRequest = serde_json::from_slice(bytes).map_err(|e| failed(&e))?;
        if request.root && !exec::is_of_lab(&self.connections[&token], self.config.user) {
            return Err(failed(&"the lab's root is for who started the lab"));
        }
        let (streams, terminal) = streams(&request, fds).map_err(|e| failed(&e))?;
        let steps = self
            .steps(&request, terminal.is_some())
            .map_err(|e| failed(&e))?;
        let mut words = request.argv.iter().map(|word| exec::unpack(word));
        let mut command = Command::new(
            words
                .next()
                .ok_or_else(|| failed(&"there is no program to start"))?,
        );
        command
            .args(words)
            .env_clear()
            .envs(self.environment(&request))
            .current_dir(directory(&request));
        let [input, output, error] = streams;
        command.stdin(input).stdout(output).stderr(error);
        before_exec(&mut command, steps);
        match command.spawn() {
            Ok(child) => {
                self.programs.insert(
                    child.id(),
                    Program {
                        connection: token,
                        detached: request.detached,
                    },
                );
                Ok((FromInit::Started, terminal))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(FromInit::NotFound),
            // A folder of the path that the user may not enter hides that the program is in none.
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied && !is_found(&command) => {
                Err(FromInit::NotFound)
            }
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(FromInit::NotExecutable)
            }
            Err(e) if e.kind() == std::io::ErrorKind::InvalidInput && !request.root => {
                let uid = self.config.user.uid;
                Err(failed(&format!(
                    "user {uid} is not available here ({e}); `--root` runs it as the lab's root"
                )))
            }
            Err(e) => Err(failed(&e)),
        }
    }

    /// What happens between fork and exec. A child has the CPUs of this process, which are chosen anew for each program.
    fn steps(&mut self, request: &ExecRequest, terminal: bool) -> Result<Vec<Step>, HostError> {
        let cpus = if request.cpus.is_empty() {
            &self.config.cpus
        } else {
            &request.cpus
        };
        if !cpus.is_empty() {
            cpu::pin(cpus)?;
        }
        let mut steps = vec![Step::UnblockSignals, Step::NewSession];
        if !(request.root && request.keeps_priority) {
            steps.push(Step::UsualPriority);
        }
        if terminal {
            steps.push(Step::ControlTerminal);
        }
        if !request.root {
            let User { uid, gid, .. } = self.config.user;
            steps.extend(
                self.user_namespace()?
                    .map(|namespace| Step::Join(namespace, Kind::User)),
            );
            steps.extend([Step::SetIds { uid, gid }, Step::NoNewPrivileges]);
        }
        Ok(steps)
    }

    fn environment(&self, request: &ExecRequest) -> Vec<(OsString, OsString)> {
        let name = format!("h{}", self.config.number);
        let mut environment: Vec<_> = request
            .environment
            .iter()
            .map(|(name, value)| (exec::unpack(name), exec::unpack(value)))
            .collect();
        let own = |key: &OsString| {
            matches!(
                key.to_str(),
                Some("HOSTNAME" | "SONDE_HOST" | "SONDE_HOSTS" | "TMPDIR")
            )
        };
        environment.retain(|(key, _)| !own(key));
        let mut path = environment
            .iter()
            .find(|(key, _)| key == "PATH")
            .map_or_else(
                || "/usr/local/bin:/usr/bin:/bin".into(),
                |(_, value)| value.clone(),
            );
        environment.retain(|(key, _)| key != "PATH");
        path.push(format!(":/usr/sbin:/sbin:{}/bin", exec::FOLDER));
        environment.push(("PATH".into(), path));
        environment.push(("HOSTNAME".into(), self.config.name.clone().into()));
        environment.push(("SONDE_HOST".into(), name.into()));
        environment.push(("SONDE_HOSTS".into(), self.config.hosts.to_string().into()));
        libraries::complete(&mut environment, request.root);
        environment
    }

    /// The one user namespace in which all programs of this host run, made at first use; none where there is none to be
    /// had. A fresh one a program would break shared memory and tracing between siblings.
    fn user_namespace(&mut self) -> Result<Option<OwnedFd>, HostError> {
        if self.user.is_none() {
            let Ok(namespace) = lend(self.config.user) else {
                return Ok(None);
            };
            self.user = Some(namespace);
        }
        let namespace = self.user.as_ref().expect("it was made just now");
        Ok(Some(
            namespace
                .try_clone()
                .map_err(file("keep the user namespace"))?,
        ))
    }

    /// Tells the end of each program that has ended.
    fn collect(&mut self) {
        for (pid, status) in process::reap() {
            let Some(program) = self.programs.remove(&pid) else {
                continue;
            };
            let ended = status
                .signal()
                .map_or_else(|| Ended::Code(status.code().unwrap_or(0)), Ended::Signal);
            if let Some(connection) = self.connections.remove(&program.connection) {
                // A detached program's starter may be gone.
                drop(say(&connection, &FromInit::Ended(ended), &[]));
                drop(self.epoll.remove(&connection));
            }
        }
    }
}

/// The standard streams of a program, and the controlling end of its terminal if it has one.
fn streams(
    request: &ExecRequest,
    fds: Vec<OwnedFd>,
) -> Result<([OwnedFd; 3], Option<OwnedFd>), HostError> {
    let Some((rows, columns)) = request.terminal else {
        let streams = <[OwnedFd; 3]>::try_from(fds).map_err(|_| TalkError::Ended)?;
        return Ok((streams, None));
    };
    let pty = Pty::open()?;
    sonde_sys::pty::set_window_size(&pty.terminal, WindowSize { rows, columns })?;
    let copy = || pty.terminal.try_clone().map_err(file("copy the terminal"));
    let streams = [copy()?, copy()?, copy()?];
    Ok((streams, Some(pty.controller)))
}

/// Whether a program named without a folder is in one of its path's.
fn is_found(command: &Command) -> bool {
    let program = Path::new(command.get_program());
    let path = command
        .get_envs()
        .find(|(name, _)| *name == "PATH")
        .and_then(|(_, value)| value);
    program.components().count() > 1
        || std::env::split_paths(path.unwrap_or_default())
            .any(|folder| folder.join(program).is_file())
}

fn directory(request: &ExecRequest) -> PathBuf {
    let wanted = PathBuf::from(exec::unpack(&request.directory));
    if wanted.is_dir() {
        wanted
    } else {
        PathBuf::from("/")
    }
}

/// Makes a user namespace in which `user` has its ids.
fn lend(user: User) -> Result<OwnedFd, HostError> {
    let mut lender = Command::new("/proc/self/exe")
        .arg(crate::cradle::LENDER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(file("start the lender of a user namespace"))?;
    let outcome = (|| {
        let mut told = [0];
        let stdout = lender.stdout.as_mut().expect("it was piped");
        stdout
            .read_exact(&mut told)
            .map_err(file("hear of the user namespace"))?;
        let map = |inside, outside| {
            [IdMap {
                inside,
                outside,
                count: 1,
            }]
        };
        let (uid, gid) = user.behind;
        namespace::write_id_maps(lender.id(), &map(user.uid, uid), &map(user.gid, gid), false)?;
        Ok(namespace::open(lender.id(), Kind::User)?)
    })();
    drop(lender.stdin.take());
    lender
        .wait()
        .map_err(file("wait for the lender of a user namespace"))?;
    outcome
}
