//! What a channel is asked to be, and what the kernel made of it.
//!
//! Units:   buffer sizes are usable bytes: half of what Linux reports, which counts its own bookkeeping.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

use crate::{Error, Knobs, Method, Path, Result};

/// How a program waits for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// It sleeps in the kernel.
    Block,
    /// It asks again and again, and gives the CPU to nobody.
    Poll,
}

impl Wait {
    /// As it is written: `block`, `poll`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Poll => "poll",
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How to wait.
    pub wait: Wait,
    /// The longest wait without progress.
    pub patience: Duration,
    /// How bytes are handed over.
    pub method: Method,
    /// What else is set.
    pub knobs: Knobs,
    /// The longest message, for which shared segments have room; longer ones go in parts.
    pub message_bytes: usize,
    /// The address that the connecting side sends from; `None` leaves the choice to its routes.
    pub source: Option<IpAddr>,
}

impl Options {
    /// Waits as given, up to ten seconds, copies plainly, and leaves all else to the kernel.
    pub fn new(wait: Wait) -> Self {
        Self {
            wait,
            patience: Duration::from_secs(10),
            method: Method::Plain,
            knobs: Knobs::default(),
            message_bytes: 64 << 10,
            source: None,
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
        if let Some(us) = self.knobs.busy_poll_us {
            sonde_sys::socket::set_busy_poll(fd, us)?;
        }
        Ok(())
    }
}

/// A buffer as asked for and as granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Asked for; `None` is left to the kernel.
    pub asked_bytes: Option<usize>,
    /// Granted; of a buffer that the kernel tunes, its size at the time.
    pub granted_bytes: usize,
}

/// What the kernel says that a channel is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The send buffer.
    pub send_buffer: Buffer,
    /// The receive buffer.
    pub recv_buffer: Buffer,
    /// TCP only: the largest window that it offers, where one was asked for.
    #[serde(default)]
    pub window: Option<Buffer>,
    /// TCP only: small messages are sent at once.
    pub nodelay: Option<bool>,
    /// TCP only: the congestion control in use.
    pub congestion: Option<String>,
    /// TCP only: user bytes in a segment.
    pub mss_bytes: Option<u32>,
    /// How long a receive looks at the device's queue before it sleeps; null where it was not asked for.
    pub busy_poll_us: Option<u32>,
    /// UDP only: the socket has one peer in the kernel.
    pub connected: Option<bool>,
}

impl Settings {
    /// The settings by name, each after `prefix`: what was granted, and what was asked for where it differs.
    pub fn named(&self, prefix: &str) -> BTreeMap<String, String> {
        let buffer = |buffer: &Buffer| match buffer.asked_bytes {
            Some(asked) if asked != buffer.granted_bytes => {
                format!("{} (asked for {asked})", buffer.granted_bytes)
            }
            Some(_) => buffer.granted_bytes.to_string(),
            None => format!("{} (the kernel's)", buffer.granted_bytes),
        };
        let values = [
            ("send_buffer_bytes", Some(buffer(&self.send_buffer))),
            ("recv_buffer_bytes", Some(buffer(&self.recv_buffer))),
            ("window_bytes", self.window.as_ref().map(buffer)),
            ("nodelay", self.nodelay.map(|on| on.to_string())),
            ("congestion", self.congestion.clone()),
            ("mss_bytes", self.mss_bytes.map(|bytes| bytes.to_string())),
            ("busy_poll_us", self.busy_poll_us.map(|us| us.to_string())),
            ("connected", self.connected.map(|on| on.to_string())),
        ];
        let named = values
            .into_iter()
            .filter_map(|(name, value)| Some((format!("{prefix}{name}"), value?)));
        named.collect()
    }

    pub(crate) fn read(socket: impl AsFd, options: &Options, path: Path) -> Result<Self> {
        let fd = socket.as_fd();
        let refused = |what: &str, errno| sonde_sys::Error::Call {
            what: what.into(),
            errno,
        };
        let send = sockopt::socket_send_buffer_size(fd)
            .map_err(|errno| refused("read the send buffer", errno))?;
        let recv = sockopt::socket_recv_buffer_size(fd)
            .map_err(|errno| refused("read the receive buffer", errno))?;
        let mut settings = Self {
            send_buffer: Buffer {
                asked_bytes: options.knobs.send_buffer_bytes,
                granted_bytes: send / 2,
            },
            recv_buffer: Buffer {
                asked_bytes: options.knobs.recv_buffer_bytes,
                granted_bytes: recv / 2,
            },
            window: None,
            nodelay: None,
            congestion: None,
            mss_bytes: None,
            busy_poll_us: None,
            connected: (path == Path::Udp).then_some(options.knobs.connected),
        };
        if options.knobs.busy_poll_us.is_some() {
            settings.busy_poll_us = Some(sonde_sys::socket::busy_poll(fd)?);
        }
        if path == Path::Tcp {
            let nodelay =
                sockopt::tcp_nodelay(fd).map_err(|errno| refused("read TCP_NODELAY", errno))?;
            if nodelay != options.knobs.nodelay {
                return Err(Error::NoDelayNotTaken);
            }
            if let Some(bytes) = options.knobs.window_bytes {
                settings.window = Some(Buffer {
                    asked_bytes: Some(bytes),
                    granted_bytes: sonde_sys::socket::set_window(fd, bytes)?,
                });
            }
            settings.nodelay = Some(nodelay);
            settings.congestion = Some(sonde_sys::socket::congestion(fd)?);
            settings.mss_bytes = Some(sonde_sys::socket::tcp_info(fd)?.snd_mss_bytes);
        }
        Ok(settings)
    }
}
