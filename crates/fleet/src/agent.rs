//! A running agent: the link to it, the process behind it, and what it writes to standard error.
//!
//! Model:   an agent ends when its input ends. One that does not within a short timeout is killed: of a process the
//!          local end, in a lab the program itself.
//! Checked: `the_end_of_a_text_is_kept`; `tests/`.

use std::io::Read;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sonde_channel::{Woken, readable};
use sonde_lab::{Ended, Session};
use sonde_probe::AgentLink;

use crate::connect::Line;

/// An agent that has not ended by itself after this is killed.
const END_TIMEOUT: Duration = Duration::from_secs(3);
const OVERDUE: &str = "did not end within 3 s of its input, and was killed";
const FAR_OVERDUE: &str = "did not end within 3 s of its input";
/// How much of what was written to standard error is kept: the end of it.
const SAID_BYTES_MAX: usize = 8 << 10;
/// How long to wait for what a process wrote just before its end.
const SAID_TIMEOUT: Duration = Duration::from_millis(300);

/// The last that was written to a standard error, collected by a thread until its end.
#[derive(Debug, Clone)]
pub(crate) struct ErrorTail {
    kept: Arc<Mutex<Tail>>,
}

#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    ended: bool,
}

impl ErrorTail {
    /// Collects from `stream`.
    ///
    /// # Errors
    /// The thread for it is refused.
    pub(crate) fn collect(
        mut stream: impl Read + Send + 'static,
    ) -> std::result::Result<Self, sonde_sys::Error> {
        let kept = Arc::new(Mutex::new(Tail::default()));
        let written = Arc::clone(&kept);
        sonde_sys::thread::start("the reader of an agent's words", move || {
            let mut piece = [0; 1 << 10];
            loop {
                let read = stream.read(&mut piece);
                let mut kept = written.lock().unwrap_or_else(PoisonError::into_inner);
                match read {
                    Ok(count @ 1..) => {
                        kept.bytes.extend_from_slice(&piece[..count]);
                        let beyond = kept.bytes.len().saturating_sub(SAID_BYTES_MAX);
                        kept.bytes.drain(..beyond);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Ok(_) | Err(_) => {
                        kept.ended = true;
                        return;
                    }
                }
            }
        })?;
        Ok(Self { kept })
    }

    /// Of an agent whose words go elsewhere.
    pub(crate) fn nothing() -> Self {
        let kept = Tail {
            bytes: Vec::new(),
            ended: true,
        };
        Self {
            kept: Arc::new(Mutex::new(kept)),
        }
    }

    /// The lines so far, joined; waits a little for the stream's end, since the last words are the telling ones.
    pub(crate) fn text(&self) -> String {
        let end = Instant::now() + SAID_TIMEOUT;
        loop {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.ended || Instant::now() >= end {
                let text = String::from_utf8_lossy(&kept.bytes).into_owned();
                let lines: Vec<&str> = text
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty())
                    .collect();
                return lines.join(" / ");
            }
            drop(kept);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_kept() {
        let noise = vec![b'x'; 3 * SAID_BYTES_MAX];
        let text = [&noise[..], b"\n\n  Permission denied \r\n last\n"].concat();
        let said = ErrorTail::collect(std::io::Cursor::new(text))
            .unwrap()
            .text();
        assert!(said.ends_with("x / Permission denied / last"), "{said}");
        assert!(said.len() <= SAID_BYTES_MAX);
        assert_eq!(ErrorTail::collect(std::io::empty()).unwrap().text(), "");
        // A stream that does not end is not waited for.
        let (near, _far) = UnixStream::pair().unwrap();
        assert_eq!(ErrorTail::collect(near).unwrap().text(), "");
    }
}
