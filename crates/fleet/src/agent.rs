//! A running agent: the link to it, the process behind it, and what it writes to standard error.
//!
//! Model:   an agent ends when its input ends. One that does not within a short timeout is killed: of a process the
//!          local end, in a lab the program itself.
//! Checked: `tests/`.

mod tail;

use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use sonde_channel::{Woken, readable};
use sonde_lab::{Ended, Session};
use sonde_probe::AgentLink;

pub(crate) use tail::ErrorTail;

use crate::connect::Line;

/// An agent that has not ended by itself after this is killed.
const END_TIMEOUT: Duration = Duration::from_secs(3);
const OVERDUE: &str = "did not end within 3 s of its input, and was killed";
const FAR_OVERDUE: &str = "did not end within 3 s of its input";
/// What runs behind a link.
#[derive(Debug)]
pub(crate) enum Body {
    /// A child of ours: a local agent, or the ssh that leads to one.
    Process(Child),
    /// A program in a host of the lab.
    Session(Session, UnixStream),
    /// What came by itself, started by another program.
    Joined(Line),
}

/// An agent that has greeted. Dropping it ends it.
pub(crate) struct Agent {
    name: String,
    /// To talk to it; none once it was hung up.
    link: Option<AgentLink>,
    body: Body,
    said: ErrorTail,
    /// When it must have ended by itself, once it was hung up.
    end_by: Option<Instant>,
    is_gone: bool,
}

impl Agent {
    /// An agent whose marker was read.
    pub(crate) fn new(link: AgentLink, body: Body, said: ErrorTail) -> Self {
        Self {
            name: link.name().to_owned(),
            link: Some(link),
            body,
            said,
            end_by: None,
            is_gone: false,
        }
    }

    /// To talk to it.
    pub(crate) fn link(&mut self) -> &mut AgentLink {
        self.link
            .as_mut()
            .expect("only its end takes the link away")
    }

    /// What can be read once it says something.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref().map(AsFd::as_fd)
    }

    /// Whether its link can be used: no answer is missing, and its process runs.
    pub(crate) fn is_usable(&mut self) -> bool {
        let runs = match &mut self.body {
            Body::Process(child) => matches!(child.try_wait(), Ok(None)),
            Body::Session(session, _) => !matches!(
                readable(&[session.fd()], Duration::ZERO),
                Ok(Woken::Readable(_))
            ),
            Body::Joined(line) => line.is_open(),
        };
        runs && self.link.as_ref().is_some_and(AgentLink::in_step)
    }

    /// What it wrote to standard error.
    pub(crate) fn said(&self) -> String {
        self.said.text()
    }

    /// Ends its input, and with it the agent, without waiting for that.
    pub(crate) fn hang_up(&mut self) {
        if self.link.take().is_none() {
            return;
        }
        match &self.body {
            Body::Process(_) => {}
            // It fails only where the other end is gone, and then so is the agent.
            Body::Session(_, socket) => drop(socket.shutdown(Shutdown::Both)),
            Body::Joined(line) => line.hang_up(),
        }
        self.end_by = Some(Instant::now() + END_TIMEOUT);
    }

    /// Ends it; what it met, if it did not end by itself and well.
    pub(crate) fn end(mut self) -> Option<String> {
        self.finish()
    }

    fn finish(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.is_gone, true) {
            return None;
        }
        self.hang_up();
        let end_by = self.end_by.unwrap_or_else(Instant::now);
        let trouble = match &mut self.body {
            Body::Process(child) => end_process(child, end_by),
            Body::Session(session, _) => end_session(session, end_by),
            Body::Joined(line) => (!line.await_end(end_by)).then(|| FAR_OVERDUE.into()),
        };
        trouble.map(|trouble| match self.said.text() {
            said if said.is_empty() => format!("{}: its agent {trouble}", self.name),
            said => format!("{}: its agent {trouble}: {said}", self.name),
        })
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Who wanted to know of trouble has called `end`.
        drop(self.finish());
    }
}

/// Waits for a child whose input has ended, and kills it if it goes on.
pub(crate) fn end_process(child: &mut Child, end_by: Instant) -> Option<String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                return (!status.success()).then(|| format!("ended with {status}"));
            }
            Ok(None) if Instant::now() < end_by => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => break,
            Err(error) => return Some(format!("cannot be waited for: {error}")),
        }
    }
    // It may have ended between the last look and now.
    drop(child.kill());
    drop(child.wait());
    Some(OVERDUE.into())
}

fn end_session(session: &Session, end_by: Instant) -> Option<String> {
    let left = end_by.saturating_duration_since(Instant::now());
    match readable(&[session.fd()], left) {
        Ok(Woken::Readable(_)) => match session.wait() {
            Ok(Ended::Code(0)) => None,
            Ok(ended) => Some(format!("ended with {}", ended.code())),
            Err(error) => Some(format!("is gone: {error}")),
        },
        // The end of the session kills it.
        Ok(Woken::Silence) => Some(OVERDUE.into()),
        Err(error) => Some(format!("cannot be waited for: {error}")),
    }
}
