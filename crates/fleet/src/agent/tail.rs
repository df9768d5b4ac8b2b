//! What an agent, or what leads to it, writes to standard error: the end of it is kept.
//!
//! Checked: `the_end_of_a_text_is_kept`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
                        kept.bytes.extend(piece.iter().take(count));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

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
