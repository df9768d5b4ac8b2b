//! The orchestrator's end of an agent's stdio.
//!
//! Model:   requests out, answers in, every wait bounded. A link on which an answer failed to come is out of step and
//!          stays unusable: a late answer is never taken for the next one.
//! Checked: `noise_before_the_marker_is_passed_over`, `a_silent_agent_is_named`, `a_dead_agent_is_named`.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use sonde_channel::{Woken, readable};

use crate::frame::{self, FrameError};
use crate::{Answer, Error, Request, Result};

/// How much a shell or ssh may write before the marker.
const NOISE_BYTES_MAX: usize = 64 << 10;

trait Source: Read + AsFd + Send {}
impl<T: Read + AsFd + Send> Source for T {}

/// An agent, as its orchestrator sees it.
pub struct AgentLink {
    name: String,
    from: Box<dyn Source>,
    to: Box<dyn Write + Send>,
    out_of_step: bool,
}

/// What a wait for an answer ended with.
#[derive(Debug)]
pub enum Heard {
    /// The answer.
    Answer(Box<Answer>),
    /// The descriptor of this index could be read before.
    Beside(usize),
    /// Nothing, within the timeout: the answer is still missing.
    Nothing,
}

/// Reads that end.
struct Bounded<'a> {
    from: &'a mut dyn Source,
    end: Instant,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        match readable(&[self.from.as_fd()], left)? {
            Woken::Readable(_) => self.from.read(buffer),
            Woken::Silence => Err(std::io::ErrorKind::TimedOut.into()),
        }
    }
}

impl AgentLink {
    /// Joins an agent that was just started: reads up to its marker, passing over what came before.
    ///
    /// `from` is read without a buffer of its own: a pipe or a socket, not a `BufReader`.
    ///
    /// # Errors
    /// The marker does not come within `timeout`, or only noise does.
    pub fn open(
        name: impl Into<String>,
        from: impl Read + AsFd + Send + 'static,
        to: impl Write + Send + 'static,
        timeout: Duration,
    ) -> Result<Self> {
        let mut link = Self {
            name: name.into(),
            from: Box::new(from),
            to: Box::new(to),
            out_of_step: false,
        };
        let mut bounded = Bounded {
            from: &mut *link.from,
            end: Instant::now() + timeout,
        };
        let mut seen = Vec::new();
        let mut byte = [0];
        while !seen.ends_with(frame::MARKER) {
            match bounded.read(&mut byte) {
                Ok(1) if seen.len() < NOISE_BYTES_MAX => seen.push(byte[0]),
                Ok(0) => {
                    return Err(Error::AgentGone {
                        agent: link.name,
                        awaited: "its greeting",
                    });
                }
                Ok(_) => {
                    let found = format!("{NOISE_BYTES_MAX} bytes without the marker");
                    return Err(Error::OutOfTurn {
                        agent: link.name,
                        awaited: "its greeting",
                        found,
                    });
                }
                Err(error) => return Err(link.lost(error.into(), "its greeting", timeout)),
            }
        }
        Ok(link)
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it may still be used; see the module's head.
    pub fn in_step(&self) -> bool {
        !self.out_of_step
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The agent is gone, or the link is out of step.
    pub fn send(&mut self, request: &Request) -> Result<()> {
        if self.out_of_step {
            return Err(Error::OutOfTurn {
                agent: self.name.clone(),
                awaited: "a request to be sent",
                found: "an earlier answer never came; start the agent anew".into(),
            });
        }
        let sent = frame::write(&mut self.to, request);
        sent.map_err(|error| {
            self.out_of_step = true;
            Error::Link {
                agent: self.name.clone(),
                what: "send a request to",
                source: std::io::Error::other(error),
            }
        })
    }

    /// Waits for the next answer. `Failed` is an error here.
    ///
    /// # Errors
    /// The agent failed, is gone, or says nothing for `timeout`.
    pub fn answer(&mut self, awaited: &'static str, timeout: Duration) -> Result<Answer> {
        let mut bounded = Bounded {
            from: &mut *self.from,
            end: Instant::now() + timeout,
        };
        let read = frame::read(&mut bounded)
            .and_then(|body| body.map(|body| frame::parse(&body)).transpose());
        match read {
            Ok(Some(Answer::Failed { what, remedy })) => Err(Error::Agent {
                agent: self.name.clone(),
                what,
                remedy,
            }),
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => {
                self.out_of_step = true;
                Err(Error::AgentGone {
                    agent: self.name.clone(),
                    awaited,
                })
            }
            Err(error) => {
                self.out_of_step = true;
                Err(self.lost(error, awaited, timeout))
            }
        }
    }

    /// Waits for the next answer, unless one of `beside` can be read before.
    ///
    /// # Errors
    /// Those of [`AgentLink::answer`], but for its silence.
    pub fn hear(
        &mut self,
        awaited: &'static str,
        timeout: Duration,
        beside: &[BorrowedFd<'_>],
    ) -> Result<Heard> {
        let end = Instant::now() + timeout;
        let all = [&[self.from.as_fd()], beside].concat();
        let woken = readable(&all, timeout).map_err(|source| Error::Link {
            agent: self.name.clone(),
            what: "wait for",
            source,
        })?;
        match woken {
            Woken::Silence => Ok(Heard::Nothing),
            Woken::Readable(0) => {
                let left = end.saturating_duration_since(Instant::now());
                let answer = self.answer(awaited, left)?;
                Ok(Heard::Answer(Box::new(answer)))
            }
            Woken::Readable(at) => Ok(Heard::Beside(at - 1)),
        }
    }

    /// The error of a silence of so long. What is missing is never taken for another answer.
    pub fn silent(&mut self, awaited: &'static str, waited: Duration) -> Error {
        self.out_of_step = true;
        Error::AgentSilent {
            agent: self.name.clone(),
            awaited,
            waited,
        }
    }

    fn lost(&self, error: FrameError, awaited: &'static str, waited: Duration) -> Error {
        let agent = self.name.clone();
        match error {
            FrameError::Stream(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                Error::AgentSilent {
                    agent,
                    awaited,
                    waited,
                }
            }
            FrameError::Truncated { .. } => Error::AgentGone { agent, awaited },
            other => other.into(),
        }
    }
}

impl AsFd for AgentLink {
    /// Can be read once an answer comes, or its end.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn open(written: &[u8], keep: bool) -> (Result<AgentLink>, Option<UnixStream>) {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(written).unwrap();
        let far = keep.then_some(far);
        let to = near.try_clone().unwrap();
        (
            AgentLink::open("h2", near, to, Duration::from_millis(50)),
            far,
        )
    }

    #[test]
    fn noise_before_the_marker_is_passed_over() {
        let (link, far) = open(
            b"Welcome to sonde-agent/\nsonde-agent/1\n\x00\x00\x00\x15{\"serving\":{\"port\":7}}",
            true,
        );
        let answer = link.unwrap().answer("the port", Duration::from_secs(5));
        // 22 bytes follow a length of 21: the answer is cut and no JSON.
        assert!(answer.unwrap_err().to_string().contains("something else"));
        drop(far);
        let (link, _far) = open(
            b"motd\nsonde-agent/1\n\x00\x00\x00\x16{\"serving\":{\"port\":7}}",
            true,
        );
        let answer = link.unwrap().answer("the port", Duration::from_secs(5));
        assert!(matches!(answer.unwrap(), Answer::Serving { port: 7 }));
    }

    #[test]
    fn a_silent_agent_is_named() {
        let error = open(b"motd\n", true).0.err().unwrap().to_string();
        assert!(
            error.contains("agent h2 said nothing for 0.050 s while its greeting"),
            "{error}"
        );
        let (link, _far) = open(frame::MARKER, true);
        let mut link = link.unwrap();
        let error = link
            .answer("the result", Duration::from_millis(20))
            .unwrap_err()
            .to_string();
        assert!(error.contains("while the result was awaited"), "{error}");
        assert!(error.contains("agent h2 said nothing"), "{error}");
        assert!(!link.in_step() && link.send(&Request::Stop {}).is_err());
    }

    #[test]
    fn a_dead_agent_is_named() {
        let error = open(b"Permission denied\n", false)
            .0
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("agent h2 ended while its greeting"),
            "{error}"
        );
        let (link, _) = open(b"sonde-agent/1\n\x00\x00\x00\x16{\"serv", false);
        let error = link
            .unwrap()
            .answer("the port", Duration::from_secs(5))
            .unwrap_err()
            .to_string();
        assert!(error.contains("agent h2 ended while the port"), "{error}");
        let noise = vec![b'x'; NOISE_BYTES_MAX + 1];
        assert!(
            open(&noise, true)
                .0
                .err()
                .unwrap()
                .to_string()
                .contains("without the marker")
        );
    }
}
