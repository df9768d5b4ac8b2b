//! The receiving end of a stream: every byte into this program's memory.
//!
//! Model:   one receive takes what there is, up to a chunk, into the same memory each time, or the next of an area that no
//!          cache holds. Nothing is dropped in the kernel
//!          (no MSG_TRUNC), whatever the sender's method is. By `uring` one receive stays and fills a few such chunks.
//! Units:   bytes.
//! Checked: `outlet::tests`.

use sonde_sys::uring::Inflow;

use crate::{ByteStream, Result, Room};
use sonde_measure::{Method, Transfer, Wait};

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
    Call(Room),
    Ring(Box<Inflow>),
}

impl Inlet {
    /// By the connection's method and chunk. By `uring` it is for the calling thread alone.
    ///
    /// # Errors
    /// The kernel has not what the method needs.
    pub fn open(channel: &mut impl ByteStream) -> Result<Self> {
        let options = channel.options().clone();
        let bytes = options.knobs.chunk_bytes.unwrap_or(CHUNK_BYTES);
        let tcp = channel.as_tcp();
        if let (Some(tcp), Some(bytes)) = (&tcp, options.knobs.low_water_bytes) {
            sonde_sys::socket::set_low_water(&tcp.fd, bytes)?;
        }
        let by = match (options.method, tcp) {
            (Method::Uring, Some(_)) => {
                let poll = options.wait == Wait::Poll;
                By::Ring(Box::new(Inflow::new(RING_BUFFERS, bytes, poll)?))
            }
            _ => By::Call(Room::new(bytes, &options.knobs)?),
        };
        Ok(Self {
            chunk_bytes: bytes,
            by,
        })
    }

    /// The next bytes, waiting until there are some; none at the end of the stream.
    ///
    /// # Errors
    /// The connection is broken, or nothing came within the timeout.
    #[inline]
    pub fn recv_some(&mut self, channel: &mut impl ByteStream) -> Result<&[u8]> {
        match &mut self.by {
            By::Call(chunk) => {
                let received = channel.recv_some(chunk.piece())?;
                Ok(chunk.taken(received))
            }
            By::Ring(inflow) => {
                let tcp = channel.as_tcp().expect("a ring is of TCP alone");
                let came = inflow.recv(&tcp.fd, tcp.options.timeout)?;
                tcp.hold_window();
                came.ok_or_else(|| tcp.silence(format!("{} bytes", self.chunk_bytes)))
            }
        }
    }

    /// How it was received.
    pub fn transfer(&self) -> Transfer {
        Transfer {
            chunk_bytes: Some(self.chunk_bytes),
            ..Transfer::default()
        }
    }
}
