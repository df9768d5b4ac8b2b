//! Byte streams, whatever carries them: what a conversation needs of one, and of who waits for one.
//!
//! Checked: `tests/conversation.rs` of `probe`, each kind over each path.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use sonde_sys::socket::TcpInfo;

use crate::wait::{Woken, readable};
use crate::{Acceptor, Announced, Channel, Error, Options, Result, Tcp, TurnedAway};

/// A channel on which messages are bytes in order, and nothing is lost.
pub trait ByteStream: Channel + Sized {
    /// Connects to `peer`; of what stays within one machine, its port names it.
    ///
    /// # Errors
    /// The peer refuses or does not answer within the timeout; an option does not take.
    fn connect(peer: SocketAddr, options: Options) -> Result<Self>;

    /// The other end.
    fn peer(&self) -> SocketAddr;

    /// Sends some of `bytes`, waiting until that is possible; returns how many.
    ///
    /// # Errors
    /// The peer is gone, or took nothing within the timeout.
    fn send_some(&mut self, bytes: &[u8]) -> Result<usize>;

    /// Receives what there is, waiting until there is some; zero at the end of the stream.
    ///
    /// # Errors
    /// The peer is gone, or nothing came within the timeout.
    fn recv_some(&mut self, buffer: &mut [u8]) -> Result<usize>;

    /// Receives what there is without waiting; `None` when there is nothing yet, zero at the end of the stream.
    ///
    /// # Errors
    /// The peer is gone.
    fn recv_now(&mut self, buffer: &mut [u8]) -> Result<Option<usize>>;

    /// Says that nothing more will be sent; what the peer sends can still be received.
    ///
    /// # Errors
    /// The connection is broken.
    fn end(&mut self) -> Result<()>;

    /// Ends both directions after the peer ended its own, so that nothing is under way any more.
    ///
    /// # Errors
    /// The peer still sends, or does not end within the timeout.
    fn end_in_silence(&mut self) -> Result<()>;

    /// The kernel's account of the connection, where it keeps one.
    ///
    /// # Errors
    /// The kernel refuses to tell.
    fn account(&self) -> Result<Option<TcpInfo>>;

    /// What it was asked to be.
    fn options(&self) -> &Options;

    /// The TCP connection that it is, for methods that TCP alone has.
    fn as_tcp(&mut self) -> Option<&mut Tcp> {
        None
    }

    /// From here on whole messages go by the channel's method, from this thread only.
    ///
    /// # Errors
    /// The kernel has not what the method needs.
    fn use_method(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Who waits for connections.
pub trait Listener: AsFd {
    /// What comes.
    type Stream: ByteStream + Send;

    /// The address with its port.
    fn local(&self) -> SocketAddr;

    /// Waits for the next connection; `Ok(None)` when `stop` can be read before one comes.
    ///
    /// # Errors
    /// No connection within `timeout`.
    fn accept(
        &mut self,
        stop: Option<BorrowedFd<'_>>,
        timeout: Duration,
    ) -> Result<Option<Self::Stream>>;

    /// Whom it takes from now on; within a machine it is who is of the same user, whatever is announced.
    fn expect(&mut self, _announced: Announced) {}

    /// Closes to others meanwhile, until the next is awaited; within a machine they wait.
    ///
    /// # Errors
    /// There is no thread to be had.
    fn watch(&mut self) -> Result<()> {
        Ok(())
    }

    /// Who was turned away since the last call.
    fn turned_away(&mut self) -> TurnedAway;
}

impl ByteStream for Tcp {
    fn connect(peer: SocketAddr, options: Options) -> Result<Self> {
        Self::connect(peer, options)
    }

    fn peer(&self) -> SocketAddr {
        self.peer()
    }

    #[inline]
    fn send_some(&mut self, bytes: &[u8]) -> Result<usize> {
        self.send_some(bytes)
    }

    #[inline]
    fn recv_some(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.recv_some(buffer)
    }

    fn recv_now(&mut self, buffer: &mut [u8]) -> Result<Option<usize>> {
        self.recv_now(buffer)
    }

    fn end(&mut self) -> Result<()> {
        self.end()
    }

    fn end_in_silence(&mut self) -> Result<()> {
        self.end_in_silence()
    }

    fn account(&self) -> Result<Option<TcpInfo>> {
        self.info().map(Some)
    }

    fn options(&self) -> &Options {
        &self.options
    }

    fn as_tcp(&mut self) -> Option<&mut Tcp> {
        Some(self)
    }

    fn use_method(&mut self) -> Result<()> {
        self.use_method()
    }
}

/// Waits for a listening socket's next peer; `None` when `stop` can be read before one comes.
///
/// # Errors
/// Nobody came within the timeout; the kernel refuses to wait or to accept.
pub(crate) fn await_guest<T>(
    listener: BorrowedFd<'_>,
    local: SocketAddr,
    stop: Option<BorrowedFd<'_>>,
    timeout: Duration,
    mut accept: impl FnMut() -> std::io::Result<T>,
) -> Result<Option<T>> {
    let mut descriptors = vec![listener];
    descriptors.extend(stop);
    let end = Instant::now() + timeout;
    let mut is_late = false;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let woken = readable(&descriptors, left);
        let woken = woken.map_err(Error::refused(local, "wait for a connection"))?;
        match woken {
            Woken::Readable(0) if !is_late => {}
            Woken::Readable(1) => return Ok(None),
            _ => {
                return Err(Error::Timeout {
                    peer: local,
                    awaited: "a connection".into(),
                    waited: timeout,
                });
            }
        }
        // Those who are turned away put the end of the wait off by one at most.
        is_late = left.is_zero();
        match accept() {
            Ok(peer) => return Ok(Some(peer)),
            // The connection was reset between poll and accept, or is of one who is turned away.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::ConnectionAborted
                ) => {}
            Err(error) => return Err(Error::refused(local, "accept a connection")(error)),
        }
    }
}

impl Listener for Acceptor {
    type Stream = Tcp;

    fn local(&self) -> SocketAddr {
        self.local()
    }

    fn accept(&mut self, stop: Option<BorrowedFd<'_>>, timeout: Duration) -> Result<Option<Tcp>> {
        self.accept(stop, timeout)
    }

    fn expect(&mut self, announced: Announced) {
        self.expect(announced);
    }

    fn watch(&mut self) -> Result<()> {
        self.watch()
    }

    fn turned_away(&mut self) -> TurnedAway {
        self.turned_away()
    }
}
