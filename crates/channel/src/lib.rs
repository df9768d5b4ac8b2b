//! Moving bytes between two hosts: `tcp` and `udp`, through the kernel's sockets, `packet` and `xdp`, past its protocols; within
//! one host also `unix` and `shm`.
//!
//! Model:   a message has an exact size that both sides know. A wait ends with the message, with the peer's end, or after
//!          the channel's timeout without progress: none is unbounded. Settings are made, then read back.
//! Units:   bytes; nanoseconds on CLOCK_MONOTONIC.
//! Checked: the tests of each module.
//!
//! Addresses are numbers: nothing here resolves names, so that it works in a static program.
#![forbid(unsafe_code)]

mod acceptor;
mod aligned;
mod arrivals;
mod batch;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod inlet;
mod lookout;
mod mesh;
mod others;
mod outlet;
mod packet;
pub mod payload;
mod ring;
mod segment;
mod settings;
mod shm;
mod stream;
mod tcp;
mod udp;
mod unix;
mod uring;
mod wait;
mod zerocopy;

pub use acceptor::{Acceptor, Announced};
pub use aligned::{Aligned, Room, cold_buffers, outrun};
pub use arrivals::{Arrivals, Bounds, Said, TurnedAway};
pub use batch::{BatchReceiver, BatchSender};
pub use error::{Error, Result};
pub use inlet::Inlet;
pub use mesh::{Mesh, inbox_bytes};
pub use outlet::Outlet;
pub use packet::{Came, Mark, PACKET_HEADER_BYTES, Packet, Place, Role, XDP_MTU_BYTES_MAX};
pub use settings::Options;
pub use shm::{Shm, ShmPort};
pub use stream::{ByteStream, Listener};
pub use tcp::Tcp;
pub use udp::{CONTROL, Datagram, Losses, UDP_MESSAGE_BYTES_MAX, Udp, UdpPort};
pub use unix::{Unix, UnixPort};
pub use wait::{Woken, readable, ready};

use sonde_measure::Socket;

/// One end of a conversation between two hosts.
pub trait Channel {
    /// Sends the whole message.
    ///
    /// # Errors
    /// The peer is gone, or took nothing within the channel's timeout.
    fn send(&mut self, message: &[u8]) -> Result<()>;

    /// Receives a message of exactly `message.len()` bytes.
    ///
    /// # Errors
    /// The peer is gone, sent another size, or nothing within the channel's timeout.
    fn recv(&mut self, message: &mut [u8]) -> Result<()>;

    /// Sends `ping` and receives its answer into `pong`, which begins like it. Returns how often `ping` was sent again.
    ///
    /// # Errors
    /// Those of [`send`](Self::send) and [`recv`](Self::recv).
    #[inline]
    fn exchange(&mut self, ping: &[u8], pong: &mut [u8]) -> Result<u32> {
        self.send(ping)?;
        self.recv(pong)?;
        Ok(0)
    }

    /// What the kernel made of the options, read back.
    ///
    /// # Errors
    /// The kernel refuses to tell.
    fn settings(&self) -> Result<Socket>;
}
