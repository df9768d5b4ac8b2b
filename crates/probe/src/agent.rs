//! The agent: a worker that obeys one orchestrator over two byte streams, its stdio.
//!
//! Model:   it writes the marker, then for each request frame its answers (see [`crate::Request`]). What goes wrong in a
//!          conversation is an answer; the end of the input ends the agent, as does a stream that is no frames.
//! Checked: `tests/conversation.rs`; `a_bad_request_is_answered`.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use crate::frame::{self, FrameError};
use crate::{
    Answer, Error, Measure, Measured, Probe, Request, Result, Serve, latency, serve, startup,
    throughput,
};

/// Obeys until the input ends.
///
/// The input is read below any buffer of its own, since its readiness means that the orchestrator says something: give
/// a descriptor from which nothing was read ahead.
///
/// # Errors
/// The streams fail, or the input is no sequence of frames.
pub fn run(from: impl AsFd, mut to: impl Write) -> Result<()> {
    let control = |what: &str| {
        let what = what.to_string();
        move |source| Error::Control { what, source }
    };
    let owned = from
        .as_fd()
        .try_clone_to_owned()
        .map_err(control("read requests"))?;
    let mut from = File::from(owned);
    to.write_all(frame::MARKER)
        .and_then(|()| to.flush())
        .map_err(control("greet the orchestrator"))?;
    while let Some(body) = read_request(&mut from, &mut to)? {
        let answer = match frame::parse::<Request>(&body) {
            Ok(Request::Stop {}) => continue,
            Ok(Request::Measure(request)) => measure(&request).map(Answer::Measured),
            Ok(Request::Serve(request)) => serve_one(&request, &from, &mut to),
            Err(error) => Err(error.into()),
        };
        frame::write(&mut to, &answer.unwrap_or_else(|error| failed(&error)))?;
    }
    Ok(())
}

fn failed(error: &Error) -> Answer {
    Answer::Failed {
        what: error.to_string(),
        remedy: error.remedy(),
    }
}

/// The next body; what is no frame is answered before it ends the agent.
fn read_request(from: &mut File, to: &mut impl Write) -> Result<Option<Vec<u8>>> {
    match frame::read(from) {
        Err(error @ (FrameError::TooLong(_) | FrameError::Truncated { .. })) => {
            let error = Error::from(error);
            // The orchestrator may be gone already; the error itself is what counts.
            let _ = frame::write(to, &failed(&error));
            Err(error)
        }
        read => Ok(read?),
    }
}

fn serve_one(request: &Serve, from: &File, to: &mut impl Write) -> Result<Answer> {
    let port = serve::open(request)?;
    frame::write(
        to,
        &Answer::Serving {
            port: port.number(),
        },
    )?;
    Ok(Answer::Served(port.serve(request, from.as_fd())?))
}

fn measure(request: &Measure) -> Result<Measured> {
    request.terms.check()?;
    match request.terms.probe {
        Probe::Startup => startup::measure(request),
        Probe::Latency => latency::measure(request),
        Probe::Throughput => throughput::measure(request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    /// What an agent says to these bytes, after the marker, and how it ends.
    fn said(input: &[u8]) -> (Vec<Answer>, Result<()>) {
        let path =
            std::env::temp_dir().join(format!("sonde-agent-{}-{:p}", std::process::id(), input));
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(input).unwrap();
        file.rewind().unwrap();
        let mut output = Vec::new();
        let end = run(file, &mut output);
        let mut rest = output.strip_prefix(frame::MARKER).unwrap();
        let mut answers = Vec::new();
        while let Some(body) = frame::read(&mut rest).unwrap() {
            answers.push(frame::parse(&body).unwrap());
        }
        (answers, end)
    }

    #[test]
    fn a_bad_request_is_answered() {
        let nonsense = [
            frame::encode(&"hello").unwrap(),
            frame::encode(&Request::Stop {}).unwrap(),
        ]
        .concat();
        let (answers, end) = said(&nonsense);
        assert!(
            matches!(&answers[..], [Answer::Failed { what, .. }] if what.contains("something else")),
            "{answers:?}"
        );
        end.unwrap();
    }

    #[test]
    fn what_is_no_frame_ends_the_agent_with_an_error() {
        for (input, words) in [
            (&b"GET / HTTP/1.0\r\n\r\n"[..], "was announced"),
            (&[0, 0, 1][..], "the stream ended"),
        ] {
            let (answers, end) = said(input);
            assert!(
                matches!(&answers[..], [Answer::Failed { what, .. }] if what.contains(words)),
                "{answers:?}"
            );
            assert!(end.unwrap_err().to_string().contains(words));
        }
        let (answers, end) = said(b"");
        assert!(answers.is_empty() && end.is_ok());
    }
}
