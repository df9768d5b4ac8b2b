//! The receiving end of a stream by TCP: every byte into this program's memory.
//!
//! Model:   one receive takes what there is, up to a chunk, into the same memory each time. Nothing is dropped in the kernel
//!          (no MSG_TRUNC), whatever the sender's method is. By `uring` one receive stays and fills a few such chunks.
//! Units:   bytes.
//! Checked: `outlet::tests`.

use std::collections::BTreeMap;

use sonde_sys::uring::Inflow;

use crate::{Method, Result, Tcp, Wait};

/// Bytes of a call where the knob `chunk` is not set.
const CHUNK_BYTES: usize = 256 << 10;

/// Chunks of the ring: one being read, the others to be filled.
const RING_BUFFERS: u16 = 4;

/// The receiving end.
#[derive(Debug)]
pub struct Inlet {
    chunk_bytes: usize,
    by: By,
}

#[derive(Debug)]
enum By {
    Call(Vec<u8>),
    Ring(Box<Inflow>),
}

impl Inlet {
    /// By the connection's method and chunk. By `uring` it is for the calling thread alone.
    ///
    /// # Errors
    /// The kernel has not what the method needs.
    pub fn open(channel: &Tcp) -> Result<Self> {
        if let Some(bytes) = channel.options.knobs.low_water_bytes {
            sonde_sys::socket::set_low_water(&channel.fd, bytes)?;
        }
        let bytes = channel.options.knobs.chunk_bytes.unwrap_or(CHUNK_BYTES);
        let by = match channel.options.method {
            Method::Uring => {
                let poll = channel.options.wait == Wait::Poll;
                By::Ring(Box::new(Inflow::new(RING_BUFFERS, bytes, poll)?))
            }
            _ => By::Call(vec![0; bytes]),
        };
        Ok(Self {
            chunk_bytes: bytes,
            by,
        })
    }

    /// The next bytes, waiting until there are some; none at the end of the stream.
    ///
    /// # Errors
    /// The connection is broken, or nothing came for the patience.
    #[inline]
    pub fn recv_some(&mut self, channel: &mut Tcp) -> Result<&[u8]> {
        match &mut self.by {
            By::Call(chunk) => {
                let received = channel.recv_some(chunk)?;
                Ok(&chunk[..received])
            }
            By::Ring(inflow) => {
                let came = inflow.recv(&channel.fd, channel.options.patience)?;
                came.ok_or_else(|| channel.silence(format!("{} bytes", self.chunk_bytes)))
            }
        }
    }

    /// What is to be known of how it was received, each name after `prefix`.
    pub fn named(&self, prefix: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(format!("{prefix}chunk_bytes"), self.chunk_bytes.to_string())])
    }
}
