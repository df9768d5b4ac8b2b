//! TAP devices: an interface whose frames are read and written by this process.
//!
//! Model:   one descriptor, one frame a read or write, never blocking. Without IFF_VNET_HDR the kernel
//!          segments and checksums before the descriptor, so each read is one whole frame.
//! Source:  Documentation/networking/tuntap.rst, and trials on Linux 6.18.
//! Checked: `tests/gate.rs`.
//!
//! The network namespace is fixed when the device file is *opened*, not at TUNSETIFF; CAP_NET_ADMIN is
//! checked at TUNSETIFF only. Reads and writes give EIO until the interface is up: here that is "not now".
//! The ring holds `txqueuelen` frames and drops silently beyond: put a tbf in front. Largest MTU: 65521.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::Result;
use crate::error::{Attempt, checked};

/// Opens the device file `path` for one TAP of the current network namespace.
pub fn device(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open(path, flags, Mode::empty()).attempt(|| {
        format!(
            "open {} (root may, or after: mknod -m 666 tun c 10 200; else use veth)",
            path.display()
        )
    })?;
    let mut features: libc::c_uint = 0;
    // SAFETY: `features` is a live local.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNGETFEATURES as _, &raw mut features) })
        .attempt(|| {
        format!(
            "use {} for TAP devices (it is none; one is made by: mknod -m 666 tun c 10 200)",
            path.display()
        )
    })?;
    Ok(fd)
}

/// A TAP device; it disappears with its last descriptor.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    name: String,
}

impl Tap {
    /// Creates interface `name` in the current network namespace, through the device file `path`
    /// (usually /dev/net/tun).
    pub fn open(path: &Path, name: &str) -> Result<Self> {
        Self::attach(device(path)?, name)
    }

    /// Creates interface `name` from an open, unattached device file; it appears in the network namespace
    /// in which that was opened.
    pub fn attach(fd: OwnedFd, name: &str) -> Result<Self> {
        // SAFETY: ifreq is plain data for which zero is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= request.ifr_name.len() {
            return Err(Errno::NAMETOOLONG)
                .attempt(|| format!("name a TAP device {name} (15 bytes at most)"));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the request lives across the call.
        checked(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })
            .attempt(|| {
                format!(
                    "create the TAP device {name} (needs CAP_NET_ADMIN in its network namespace)"
                )
            })?;
        Ok(Self {
            fd,
            name: name.to_string(),
        })
    }

    /// The interface's name at its creation.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one frame into `buffer`; `None` when there is none or the interface is down.
    ///
    /// A frame longer than the buffer is cut: give MTU + 18 bytes.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>> {
        match rustix::io::read(&self.fd, buffer) {
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::IO | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno).attempt(|| format!("read a frame from {}", self.name)),
        }
    }

    /// Writes one frame; `false` when the kernel cannot take it now or the interface is down.
    pub fn write(&self, frame: &[u8]) -> Result<bool> {
        match rustix::io::write(&self.fd, frame) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::IO | Errno::INTR | Errno::NOBUFS) => Ok(false),
            Err(errno) => Err(errno)
                .attempt(|| format!("write a frame of {} bytes to {}", frame.len(), self.name)),
        }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
