//! What a channel is asked to be, and what the kernel made of it.
//!
//! Units:   buffer sizes are usable bytes: half of what Linux reports, which counts its own bookkeeping.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;

use sonde_measure::{Buffer, Knobs, Method, Path, Socket, Wait};

use crate::{Error, Result};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How to wait.
    pub wait: Wait,
    /// The longest wait without progress.
    pub timeout: Duration,
    /// How bytes are handed over.
    pub method: Method,
    /// What else is set.
    pub knobs: Knobs,
    /// The longest message, for which shared segments have room; longer ones go in parts.
    pub message_bytes: usize,
    /// The address that the connecting side sends from; `None` leaves the choice to its routes.
    pub source: Option<IpAddr>,
    /// The port that it sends from, TCP and UDP; zero leaves the choice to the kernel.
    pub source_port: u16,
}

impl Options {
    /// The address and port that the connecting side sends from, of the family of `peer`.
    pub fn local(&self, peer: SocketAddr) -> SocketAddr {
        let any: IpAddr = if peer.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        SocketAddr::new(self.source.unwrap_or(any), self.source_port)
    }
}

impl Options {
    /// Waits as given, up to ten seconds, copies plainly, and leaves all else to the kernel.
    pub fn new(wait: Wait) -> Self {
        Self {
            wait,
            timeout: Duration::from_secs(10),
            method: Method::Plain,
            knobs: Knobs::default(),
            message_bytes: 64 << 10,
            source: None,
            source_port: 0,
        }
    }

    /// Sets buffers and congestion control; before connecting, since the window scale is agreed then.
    pub(crate) fn apply(&self, socket: impl AsFd, path: Path) -> Result<()> {
        let fd = socket.as_fd();
        if let Some(bytes) = self.knobs.send_buffer_bytes {
            sonde_sys::socket::set_send_buffer(fd, bytes)?;
        }
        if let Some(bytes) = self.knobs.recv_buffer_bytes {
            sonde_sys::socket::set_recv_buffer(fd, bytes)?;
        }
        if let (Some(bytes), Path::Tcp) = (self.knobs.window_bytes, path) {
            sonde_sys::socket::set_window(fd, bytes)?;
        }
        if let (Some(name), Path::Tcp) = (&self.knobs.congestion, path) {
            sonde_sys::socket::set_congestion(fd, name)?;
        }
        if let (Some(bps), Path::Tcp) = (self.knobs.max_rate_bps, path) {
            // Of several connections each has its part.
            let bytes_per_s = bps / 8 / u64::from(self.knobs.streams.max(1));
            sonde_sys::socket::set_pacing(fd, bytes_per_s.max(1))?;
        }
        if let Some(us) = self.knobs.busy_poll_us {
            sonde_sys::socket::set_busy_poll(fd, us)?;
        }
        Ok(())
    }
}

/// What the kernel says of a socket of `path` for which `options` were asked.
pub(crate) fn read_back(socket: impl AsFd, options: &Options, path: Path) -> Result<Socket> {
    let fd = socket.as_fd();
    let refused = |what: &str, errno| sonde_sys::Error::Call {
        what: what.into(),
        errno,
    };
    let send = sockopt::socket_send_buffer_size(fd)
        .map_err(|errno| refused("read the send buffer", errno))?;
    let recv = sockopt::socket_recv_buffer_size(fd)
        .map_err(|errno| refused("read the receive buffer", errno))?;
    let mut socket = Socket {
        send_buffer: Some(Buffer {
            asked_bytes: options.knobs.send_buffer_bytes,
            granted_bytes: send / 2,
        }),
        recv_buffer: Some(Buffer {
            asked_bytes: options.knobs.recv_buffer_bytes,
            granted_bytes: recv / 2,
        }),
        connected: (path == Path::Udp).then_some(options.knobs.connected),
        ..Socket::default()
    };
    if options.knobs.busy_poll_us.is_some() {
        socket.busy_poll_us = Some(sonde_sys::socket::busy_poll(fd)?);
    }
    if path == Path::Tcp {
        let nodelay =
            sockopt::tcp_nodelay(fd).map_err(|errno| refused("read TCP_NODELAY", errno))?;
        if nodelay != options.knobs.nodelay {
            return Err(Error::NoDelayNotTaken);
        }
        if let Some(bytes) = options.knobs.window_bytes {
            socket.window = Some(Buffer {
                asked_bytes: Some(bytes),
                granted_bytes: sonde_sys::socket::set_window(fd, bytes)?,
            });
        }
        socket.nodelay = Some(nodelay);
        socket.congestion = Some(sonde_sys::socket::congestion(fd)?.into());
        socket.mss_bytes = Some(sonde_sys::socket::tcp_info(fd)?.snd_mss_bytes);
    }
    Ok(socket)
}
