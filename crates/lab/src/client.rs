//! The command's side of a lab: starting it, programs in it, its reports, its end.
//!
//! Model:   a `Lab` is the socket to the switch and the cradle's process. Dropping it ends the lab; so does the death of
//!          the process that holds it. It must be started from the main thread, whose end the cradle follows.
//! Checked: the end-to-end tests.

use crate::config::{Config, HOSTS, Info, User};
use crate::control::{Answer, Request, TalkError, hear, say};
use crate::exec::{Exec, ExecError, Session, Terminal, listener_path, refused};
use crate::meter::Report;
use crate::priority::{self, HadPriority, Priority};
use crate::{cradle, ids, interface};
use sonde_sys::message::{self, Incoming};
use sonde_sys::namespace::{self, Kind};
use sonde_sys::tap;
use std::fs::File;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use thiserror::Error;

/// A nest that has not ended by itself after this is killed.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a lab could not be had, or did not do what it was asked.
#[derive(Debug, Error)]
pub enum LabError {
    /// The number of hosts.
    #[error("a lab has {} to {} hosts, not {hosts}", HOSTS.start(), HOSTS.end())]
    Hosts {
        /// What was asked for.
        hosts: u16,
    },
    /// A host that the lab does not have.
    #[error("there is no host h{number}: this lab has h1 to h{hosts}")]
    NoSuchHost {
        /// What was asked for, from 1.
        number: u16,
        /// How many there are.
        hosts: u16,
    },
    /// Something of the nest refused.
    #[error("{0}")]
    Refused(String),
    /// The switch ended.
    #[error("the lab ended by itself: its switch is gone (killed, or out of memory)")]
    Gone,
    /// A call of the command's own failed.
    #[error("{what}: {problem}")]
    Call {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        problem: String,
    },
    /// A program could not be run.
    #[error("{0}")]
    Exec(#[from] ExecError),
}

impl From<TalkError> for LabError {
    fn from(error: TalkError) -> Self {
        match error {
            TalkError::Ended => Self::Gone,
            other => Self::Call {
                what: "talk to the switch",
                problem: other.to_string(),
            },
        }
    }
}

fn call<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> LabError {
    move |problem| LabError::Call {
        what,
        problem: problem.to_string(),
    }
}

/// A running lab.
#[derive(Debug)]
pub struct Lab {
    control: OwnedFd,
    cradle: Child,
    hosts: u16,
    info: Info,
    /// Or why its own processes have the usual one.
    priority: Result<priority::Held, String>,
}

impl Lab {
    /// Starts a lab; `program` is the `sonde` command, whose [`crate::entry`] plays the parts. The files are for the ledger and
    /// the capture, if the configuration asks for them.
    ///
    /// # Errors
    /// Every variant of [`LabError`] but `Exec`; a refusal names what stands in the way and the remedy.
    pub fn start(
        program: &std::path::Path,
        config: &Config,
        ledger: Option<&File>,
        pcap: Option<&File>,
    ) -> Result<Self, LabError> {
        let hosts = config.hosts();
        if !HOSTS.contains(&hosts) {
            return Err(LabError::Hosts { hosts });
        }
        let port = config.pcap.as_ref().map(|(port, _)| *port);
        if let Some(port) = port.filter(|port| *port >= hosts) {
            return Err(LabError::NoSuchHost {
                number: port + 1,
                hosts,
            });
        }
        let (control, theirs) = message::pair().map_err(call("make a socket to the lab"))?;
        let mut command = Command::new(program);
        command
            .arg(cradle::CRADLE)
            .arg(std::process::id().to_string());
        let cradle = command
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(call("start the lab's first process"))?;
        drop(command);
        let mut lab = Self {
            control,
            cradle,
            hosts,
            info: empty_info(),
            priority: Err("it was not asked for".into()),
        };
        lab.write_maps(config.user)?;
        let files: Vec<BorrowedFd<'_>> = [ledger, pcap]
            .into_iter()
            .flatten()
            .map(AsFd::as_fd)
            .collect();
        let start = Request::Start(Box::new(config.clone()));
        let (mut answer, mut fds) = lab.ask_with(&start, &files)?;
        while let (Answer::LendTun, Some(netns)) = (&answer, fds.pop()) {
            (answer, fds) = lab.lend_tun(config, &netns)?;
        }
        match answer {
            Answer::Ready(info) => lab.info = *info,
            other => return Err(unexpected(other)),
        }
        // A cradle that was killed before the switch had tied its life to it is missed by nobody else.
        if lab
            .cradle
            .try_wait()
            .map_err(call("look after the lab's first process"))?
            .is_some()
        {
            return Err(LabError::Gone);
        }
        // Not before: while labs come up and go, their processes wait for each other in the kernel.
        if config.priority == Priority::Auto {
            lab.priority = priority::give(lab.cradle.id());
        }
        Ok(lab)
    }

    /// Which priority its own processes have: switch, inits, agents, and workers with one message under way.
    pub fn priority(&self) -> HadPriority {
        let held = self.priority.as_ref();
        held.map_or(HadPriority::Usual, |held| held.now())
    }

    /// Why they never had real-time priority; `None` where they had.
    pub fn why_usual(&self) -> Option<&str> {
        self.priority.as_ref().err().map(String::as_str)
    }

    /// Waits for the cradle and writes its id maps.
    fn write_maps(&mut self, user: User) -> Result<(), LabError> {
        match hear::<Answer>(&self.control)?.0 {
            Answer::Unshared => {
                ids::write(self.cradle.id(), user).map_err(call("write the id maps of the lab"))?
            }
            other => return Err(unexpected(other)),
        }
        Ok(say(&self.control, &Request::Mapped, &[])?)
    }

    /// Opens the device file of a TAP in the network namespace `netns`, for a switch that may not.
    fn lend_tun(
        &self,
        config: &Config,
        netns: &OwnedFd,
    ) -> Result<(Answer, Vec<OwnedFd>), LabError> {
        let home = namespace::open(0, Kind::Net).map_err(call("find the own network"))?;
        let device = interface::inside(netns, &home, || tap::device(&config.tun)).ok();
        let fds: Vec<_> = device.iter().map(AsFd::as_fd).collect();
        self.ask_with(&Request::Tun, &fds)
    }

    /// What it is.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// How many hosts it has.
    pub fn hosts(&self) -> u16 {
        self.hosts
    }

    /// Process id of the cradle, whose only child is the switch.
    pub fn cradle_pid(&self) -> u32 {
        self.cradle.id()
    }

    fn ask_with(
        &self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Answer, Vec<OwnedFd>), LabError> {
        match say(&self.control, request, fds) {
            Ok(()) => Ok(hear(&self.control)?),
            // A switch that has ended said why before.
            Err(error) => match message::try_recv(&self.control) {
                Ok(Incoming::Message((bytes, fds))) => Ok((
                    serde_json::from_slice(&bytes).map_err(TalkError::from)?,
                    fds,
                )),
                Ok(_) | Err(_) => Err(error.into()),
            },
        }
    }

    fn ask(&self, request: &Request) -> Result<(Answer, Vec<OwnedFd>), LabError> {
        self.ask_with(request, &[])
    }

    fn tell(&self, request: &Request) -> Result<(), LabError> {
        match self.ask(request)?.0 {
            Answer::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Starts a program in host `number`, from 1.
    ///
    /// # Errors
    /// [`LabError::NoSuchHost`], or what its init met.
    pub fn exec(
        &self,
        number: u16,
        exec: &Exec,
        streams: [BorrowedFd<'_>; 3],
    ) -> Result<(Session, Option<Terminal>), LabError> {
        if !(1..=self.hosts).contains(&number) {
            return Err(LabError::NoSuchHost {
                number,
                hosts: self.hosts,
            });
        }
        match self.ask(&Request::Connect(number))? {
            (Answer::Connected, mut fds) => {
                let socket = fds.pop().ok_or(LabError::Gone)?;
                Ok(Session::start(number, socket, exec, streams)?)
            }
            (other, _) => Err(unexpected(other)),
        }
    }

    /// Counts from now on.
    ///
    /// # Errors
    /// [`LabError::Gone`].
    pub fn mark(&self) -> Result<(), LabError> {
        self.tell(&Request::Mark)
    }

    /// What the switch did since the last mark, or its start.
    ///
    /// # Errors
    /// [`LabError::Gone`].
    pub fn report(&self) -> Result<Report, LabError> {
        match self.ask(&Request::Report)?.0 {
            Answer::Report(report) => Ok(Report {
                priority: self.priority(),
                ..*report
            }),
            other => Err(unexpected(other)),
        }
    }

    /// Hosts and interfaces that are gone though the lab runs, each in a sentence without its end.
    ///
    /// # Errors
    /// [`LabError::Gone`], [`LabError::Refused`] with the reason where the switch has ended.
    pub fn broken(&self) -> Result<Vec<String>, LabError> {
        match self.ask(&Request::Broken)?.0 {
            Answer::Broken(what) => Ok(what),
            other => Err(unexpected(other)),
        }
    }

    /// What stands behind the end of a program that did not end by itself: the first cause, where the lab knows it.
    pub fn cause(&self, error: ExecError) -> LabError {
        let ExecError::HostGone { host, program } = &error else {
            return error.into();
        };
        match self.broken() {
            Ok(broken) if broken.is_empty() => error.into(),
            Ok(broken) => {
                LabError::Refused(format!("{}; `{program}` ran on h{host}", broken.join("; ")))
            }
            Err(cause) => cause,
        }
    }

    /// Moves the switch to these CPUs.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn pin_switch(&self, cpus: &[usize]) -> Result<(), LabError> {
        self.tell(&Request::Pin(cpus.to_vec()))
    }

    /// Changes the network: circuits, faults, background load.
    ///
    /// # Errors
    /// [`LabError::Refused`] where the network has no such thing.
    pub fn command(&self, command: &sonde_link::Command) -> Result<(), LabError> {
        self.tell(&Request::Command(command.to_string()))
    }

    /// Ends the lab: its files are written, and when this returns none of its processes is left.
    ///
    /// # Errors
    /// What could not be written.
    pub fn stop(mut self) -> Result<(), LabError> {
        self.priority = Err("the lab ends".into());
        let told = self.tell(&Request::Stop);
        self.wait_for_end();
        told
    }

    /// Ends the nest from its inside: the switch ends with its socket, the kernel then ends all the hosts' processes, and
    /// the cradle, which waited for that, ends last. Only a nest that does not end by itself is killed.
    fn wait_for_end(&mut self) {
        self.priority = Err("the lab ends".into());
        // Each call fails only where there is nothing left to end.
        if let Ok(control) = self.control.try_clone() {
            drop(UnixStream::from(control).shutdown(Shutdown::Both));
        }
        let timeout = Instant::now() + END_TIMEOUT;
        while Instant::now() < timeout && matches!(self.cradle.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(self.cradle.kill());
        drop(self.cradle.wait());
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.wait_for_end();
    }
}

/// Changes the network from inside the lab, by a command as it is written, after `ethK ` for another network than the first.
///
/// # Errors
/// [`LabError::Refused`] where the network has no such thing, or where this is not a program of a lab.
pub fn tell(text: &str) -> Result<(), LabError> {
    let outside = |problem: &dyn std::fmt::Display| {
        LabError::Refused(format!(
            "cannot reach the switch: {problem}; this works for programs in a lab, as in `sonde lab shell`"
        ))
    };
    let socket = message::connect(&listener_path())
        .map_err(|e| refused(&e).map_or_else(|| outside(&e), LabError::Refused))?;
    say(&socket, &Request::Command(text.into()), &[]).map_err(|e| outside(&e))?;
    match hear::<Answer>(&socket).map_err(|e| outside(&e))?.0 {
        Answer::Done => Ok(()),
        other => Err(unexpected(other)),
    }
}

fn unexpected(answer: Answer) -> LabError {
    match answer {
        Answer::Failed(problem) => LabError::Refused(problem),
        other => LabError::Refused(format!(
            "the lab sent an answer without a request: {other:?}"
        )),
    }
}

fn empty_info() -> Info {
    Info {
        attachment: crate::Attachment::Auto,
        attachment_reason: None,
        backpressure: String::new(),
        settings: Vec::new(),
        notes: Vec::new(),
        switch_pid: 0,
        epoch_ns: 0,
    }
}
