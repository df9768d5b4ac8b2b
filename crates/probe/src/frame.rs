//! The control plane's frames: a length and JSON, over any byte stream.
//!
//! Model:   four bytes, the length of the body (u32, big-endian), then the body. An end between two frames is the end of
//!          the stream; within one it is an error. Memory grows with what arrives, not with what a length promises.
//! Checked: `frames_round_trip`, `any_bytes_give_frames_or_an_error`, `a_length_alone_takes_no_memory`.
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

use std::io::{self, Read, Write};

use serde::{Serialize, de::DeserializeOwned};

/// The first line that an agent writes, after whatever the shell or ssh wrote before it.
pub const MARKER: &[u8] = b"sonde-agent/1\n";

/// The longest body.
pub const BODY_BYTES_MAX: u32 = 16 << 20;

/// Bytes that are no frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// A length beyond the limit.
    #[error("a frame of {0} bytes was announced; at most {BODY_BYTES_MAX} are allowed")]
    TooLong(u64),
    /// The stream ended within a frame.
    #[error("the stream ended after {found} of {wanted} bytes of a frame's {part}")]
    Truncated {
        /// "length" or "body".
        part: &'static str,
        /// Bytes that came.
        found: u64,
        /// Bytes that were announced.
        wanted: u64,
    },
    /// The body is not the JSON that is expected.
    #[error("a frame holds something else than was expected: {0}")]
    Body(#[from] serde_json::Error),
    /// The stream failed.
    #[error("cannot read or write a frame: {0}")]
    Stream(#[from] io::Error),
}

/// Writes one frame and flushes.
///
/// # Errors
/// The stream fails, or the message is beyond the limit.
pub fn write(to: &mut impl Write, message: &impl Serialize) -> Result<(), FrameError> {
    to.write_all(&encode(message)?)?;
    Ok(to.flush()?)
}

/// One frame as bytes.
///
/// # Errors
/// The message is beyond the limit, or no JSON.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len().saturating_sub(4) as u64;
    if length > u64::from(BODY_BYTES_MAX) {
        return Err(FrameError::TooLong(length));
    }
    if let Some(head) = bytes.first_chunk_mut() {
        *head = (length as u32).to_be_bytes();
    }
    Ok(bytes)
}

/// Reads the next body; `None` at the end of the stream.
///
/// # Errors
/// The stream fails, ends within the frame, or announces more than the limit.
pub fn read(from: &mut impl Read) -> Result<Option<Vec<u8>>, FrameError> {
    let mut head = Vec::with_capacity(4);
    from.by_ref().take(4).read_to_end(&mut head)?;
    let length = match head[..] {
        [] => return Ok(None),
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]),
        _ => {
            return Err(FrameError::Truncated {
                part: "length",
                found: head.len() as u64,
                wanted: 4,
            });
        }
    };
    if length > BODY_BYTES_MAX {
        return Err(FrameError::TooLong(length.into()));
    }
    let mut body = Vec::new();
    let found = from.by_ref().take(length.into()).read_to_end(&mut body)? as u64;
    if found < u64::from(length) {
        return Err(FrameError::Truncated {
            part: "body",
            found,
            wanted: length.into(),
        });
    }
    Ok(Some(body))
}

/// Reads the message in a body.
///
/// # Errors
/// It is not of this type.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    Ok(serde_json::from_slice(body)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use proptest::prelude::*;

    #[test]
    fn frames_round_trip() {
        let mut stream = Vec::new();
        write(&mut stream, &Request::Stop {}).unwrap();
        write(&mut stream, &"ü").unwrap();
        assert_eq!(stream[..4], [0, 0, 0, 11]);
        let mut from = stream.as_slice();
        let stop = read(&mut from).unwrap().unwrap();
        assert!(matches!(parse(&stop).unwrap(), Request::Stop {}));
        assert_eq!(
            parse::<String>(&read(&mut from).unwrap().unwrap()).unwrap(),
            "ü"
        );
        assert!(read(&mut from).unwrap().is_none());
    }

    #[test]
    fn a_length_alone_takes_no_memory() {
        let promised = BODY_BYTES_MAX.to_be_bytes();
        assert!(matches!(
            read(&mut promised.as_slice()),
            Err(FrameError::Truncated {
                part: "body",
                found: 0,
                ..
            })
        ));
        let beyond = (BODY_BYTES_MAX + 1).to_be_bytes();
        assert!(matches!(
            read(&mut beyond.as_slice()),
            Err(FrameError::TooLong(16_777_217))
        ));
        assert!(encode(&"x".repeat(BODY_BYTES_MAX as usize)).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_give_frames_or_an_error(bytes in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..200)) {
            let mut from = bytes.as_slice();
            while let Ok(Some(body)) = read(&mut from) {
                prop_assert!(body.len() <= bytes.len());
                // Whatever it holds: a request or an error, never a panic.
                let _ = parse::<Request>(&body);
            }
        }

        #[test]
        fn a_cut_frame_is_an_error(body in "\\PC{0,60}", cut in 1usize..64) {
            let whole = encode(&body).unwrap();
            let kept = whole.len().saturating_sub(cut);
            let read_back = read(&mut &whole[..kept]);
            let expected = if kept == 0 { matches!(read_back, Ok(None)) } else { read_back.is_err() };
            prop_assert!(expected, "{kept} bytes kept");
        }
    }
}
