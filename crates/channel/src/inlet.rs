//! The receiving end of a stream by TCP: every byte into this program's memory.
//!
//! Model:   one receive takes what there is, up to a chunk, into the same memory each time. Nothing is dropped in the kernel
//!          (no MSG_TRUNC), whatever the sender's method is.
//! Units:   bytes.
//! Checked: `outlet::tests`.

use std::collections::BTreeMap;

use crate::{Result, Tcp};

/// Bytes of a call where the knob `chunk` is not set.
const CHUNK_BYTES: usize = 256 << 10;

/// The receiving end.
#[derive(Debug)]
pub struct Inlet {
    chunk: Vec<u8>,
}

impl Inlet {
    /// By the connection's method and chunk.
    ///
    /// # Errors
    /// The kernel has not what the method needs.
    pub fn open(channel: &Tcp) -> Result<Self> {
        if let Some(bytes) = channel.options.knobs.low_water_bytes {
            sonde_sys::socket::set_low_water(&channel.fd, bytes)?;
        }
        let bytes = channel.options.knobs.chunk_bytes.unwrap_or(CHUNK_BYTES);
        Ok(Self {
            chunk: vec![0; bytes],
        })
    }

    /// The next bytes, waiting until there are some; none at the end of the stream.
    ///
    /// # Errors
    /// The connection is broken, or nothing came for the patience.
    #[inline]
    pub fn recv_some(&mut self, channel: &mut Tcp) -> Result<&[u8]> {
        let received = channel.recv_some(&mut self.chunk)?;
        Ok(&self.chunk[..received])
    }

    /// What is to be known of how it was received, each name after `prefix`.
    pub fn named(&self, prefix: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(
            format!("{prefix}chunk_bytes"),
            self.chunk.len().to_string(),
        )])
    }
}
