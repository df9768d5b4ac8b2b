//! A data connection: bytes of a file that go one way, by sockets that never block.
//!
//! Model:   whoever moves bytes waits in poll(2) for the connection and for what ends the server, up to a limit without progress. The window is
//!          set again after each receive, since the kernel forgets it ([`sonde_sys::socket::set_window`]).
//! Units:   bytes, nanoseconds.
//! Checked: `crates/workload/tests/ftp_sockets.rs`.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::net::sockopt;
use sonde_measure::files::Files;
use sonde_measure::{Buffer, Socket};
use sonde_sys::socket;

use crate::files::nfs::Status;
use crate::files::sockets::{self, Wanted};

/// Between two looks at what a socket has not sent yet.
const LOOK: Duration = Duration::from_micros(50);
/// A receiver acknowledges every second segment at once (RFC 9293 §3.8.6.3).
const DELAYED_SEGMENTS: u32 = 2;

/// Why a transfer did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// Who serves was told to stop.
    #[error("the server was stopped")]
    Stopped,
    /// Nothing moved.
    #[error("no byte was moved within {0:?}")]
    Slow(Duration),
    /// The kernel says so.
    #[error("the data connection failed: {0}")]
    Failed(#[from] std::io::Error),
    /// The store refuses.
    #[error("the store refuses: {0}")]
    Store(#[from] Status),
}

/// What is set of the sockets of data connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct Buffers {
    /// The largest window of the receiver.
    pub window_bytes: Option<u64>,
    /// The send buffer.
    pub send_bytes: Option<u64>,
    /// The receive buffer.
    pub receive_bytes: Option<u64>,
}

impl Buffers {
    /// As a measurement sets them.
    pub const fn of(files: &Files) -> Self {
        Self {
            window_bytes: files.ftp.window_bytes,
            send_bytes: files.ftp.send_buffer_bytes,
            receive_bytes: files.receive_buffer_bytes,
        }
    }

    /// Sets them; before a socket is connected or listens, since the window scale is agreed then.
    pub(super) fn apply(&self, fd: BorrowedFd<'_>) -> std::io::Result<()> {
        let set = || {
            if let Some(bytes) = self.send_bytes {
                socket::set_send_buffer(fd, bytes as usize)?;
            }
            if let Some(bytes) = self.receive_bytes {
                socket::set_recv_buffer(fd, bytes as usize)?;
            }
            if let Some(bytes) = self.window_bytes {
                socket::set_window(fd, bytes as usize)?;
            }
            Ok::<_, sonde_sys::Error>(())
        };
        set().map_err(std::io::Error::other)
    }
}

/// A connection of one transfer.
#[derive(Debug)]
pub struct Data<'s> {
    stream: TcpStream,
    buffers: Buffers,
    stop: Option<BorrowedFd<'s>>,
    limit: Duration,
}

impl<'s> Data<'s> {
    /// On a connected stream; `stop` ends a transfer once it can be read.
    pub(super) fn new(
        stream: TcpStream,
        buffers: &Buffers,
        stop: Option<BorrowedFd<'s>>,
        limit: Duration,
    ) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffers: *buffers,
            stop,
            limit,
        })
    }

    /// Hands all bytes to the socket.
    ///
    /// # Errors
    /// The connection is broken, or takes nothing for too long.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write(&bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(true)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Fills a buffer as far as the stream goes; how far.
    ///
    /// # Errors
    /// The connection is broken, or gives nothing for too long.
    pub fn read_piece(&mut self, buffer: &mut [u8]) -> Result<usize, Broken> {
        let mut read = 0;
        while read < buffer.len() {
            match self.stream.read(&mut buffer[read..]) {
                Ok(0) => break,
                Ok(count) => {
                    read += count;
                    if let Some(bytes) = self.buffers.window_bytes {
                        socket::set_window(&self.stream, bytes as usize)
                            .map_err(std::io::Error::other)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(false)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(read)
    }

    /// Waits until the peer has acknowledged all that the socket was handed but the last segments, whose acknowledgement it may delay. The
    /// kernel tells by no event: it is looked at.
    ///
    /// # Errors
    /// Nothing is acknowledged for too long; the server was stopped.
    pub fn drain(&mut self) -> Result<(), Broken> {
        let (mut left, mut still) = ((u32::MAX, u32::MAX), Duration::ZERO);
        loop {
            let info = socket::tcp_info(&self.stream).map_err(std::io::Error::other)?;
            match (info.notsent_bytes.unwrap_or(0), info.unacked_segments) {
                (0, 0..=DELAYED_SEGMENTS) => return Ok(()),
                now if now < left => (left, still) = (now, Duration::ZERO),
                _ => still += LOOK,
            }
            if still >= self.limit {
                return Err(Broken::Slow(self.limit));
            }
            self.rest(LOOK)?;
        }
    }

    /// Sleeps.
    ///
    /// # Errors
    /// The server was stopped.
    pub fn rest(&self, time: Duration) -> Result<(), Broken> {
        let Some(stop) = self.stop else {
            std::thread::sleep(time);
            return Ok(());
        };
        let wanted = Wanted {
            socket: stop,
            read: true,
            write: false,
        };
        match sockets::wait(&[wanted], time)?.contains(&true) {
            true => Err(Broken::Stopped),
            false => Ok(()),
        }
    }

    /// What the kernel made of the buffers.
    ///
    /// # Errors
    /// It does not say.
    pub fn read_back(&self) -> std::io::Result<Socket> {
        let fd = self.stream.as_fd();
        let asked = |bytes: Option<u64>| bytes.map(|bytes| bytes as usize);
        let Buffers {
            window_bytes,
            send_bytes,
            receive_bytes,
        } = self.buffers;
        let of_window = |bytes| {
            Ok::<_, sonde_sys::Error>(Buffer {
                asked_bytes: Some(bytes),
                granted_bytes: socket::set_window(fd, bytes)?,
            })
        };
        let other = std::io::Error::other;
        Ok(Socket {
            send_buffer: Some(Buffer {
                asked_bytes: asked(send_bytes),
                granted_bytes: sockopt::socket_send_buffer_size(fd)? / 2,
            }),
            recv_buffer: Some(Buffer {
                asked_bytes: asked(receive_bytes),
                granted_bytes: sockopt::socket_recv_buffer_size(fd)? / 2,
            }),
            window: asked(window_bytes)
                .map(of_window)
                .transpose()
                .map_err(other)?,
            congestion: Some(socket::congestion(fd).map_err(other)?.into()),
            mss_bytes: Some(socket::tcp_info(fd).map_err(other)?.snd_mss_bytes),
            ..Socket::default()
        })
    }

    /// Segments that were sent again.
    pub fn retransmitted(&self) -> u64 {
        socket::tcp_info(&self.stream).map_or(0, |info| info.total_retrans.into())
    }

    fn wait(&self, is_writing: bool) -> Result<(), Broken> {
        let mut all = vec![Wanted {
            socket: self.stream.as_fd(),
            read: !is_writing,
            write: is_writing,
        }];
        all.extend(self.stop.map(|socket| Wanted {
            socket,
            read: true,
            write: false,
        }));
        let woken = sockets::wait(&all, self.limit)?;
        if woken.get(1) == Some(&true) {
            return Err(Broken::Stopped);
        }
        match woken.first() {
            Some(true) => Ok(()),
            _ => Err(Broken::Slow(self.limit)),
        }
    }
}
