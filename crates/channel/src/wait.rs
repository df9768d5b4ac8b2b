//! Waits that end: by a time-out of the kernel's, or by a look at the clock now and then.
//!
//! Model:   sleeping waits are bounded by the kernel: SO_RCVTIMEO and SO_SNDTIMEO on blocking sockets (EAGAIN when they
//!          end), poll(2) elsewhere. Spinning waits look at the clock once in 256 attempts, some 50 µs.
//! Source:  socket(7) for the time-outs; they bound connect too, which then fails with EINPROGRESS (seen on Linux 6.18:
//!          connect to a black hole with SO_SNDTIMEO of 0.2 s).

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};

/// Attempts between two looks at the clock.
const ATTEMPTS_PER_LOOK: u32 = 256;

/// Bounds the blocking receives of a socket.
pub(crate) fn bound_recv(fd: impl AsFd, timeout: Duration) -> rustix::io::Result<()> {
    sockopt::set_socket_timeout(fd, Timeout::Recv, Some(timeout))
}

/// Bounds the blocking sends of a socket, and its connect.
pub(crate) fn bound_send(fd: impl AsFd, timeout: Duration) -> rustix::io::Result<()> {
    sockopt::set_socket_timeout(fd, Timeout::Send, Some(timeout))
}

/// A spin that ends: counts attempts, and time once in a while.
#[derive(Debug)]
pub(crate) struct Spin {
    attempts: u32,
    timeout: Duration,
    since: Option<Instant>,
}

impl Spin {
    #[inline]
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            attempts: 0,
            timeout,
            since: None,
        }
    }

    /// After an attempt in vain: whether to try again.
    #[inline]
    pub(crate) fn again(&mut self) -> bool {
        std::hint::spin_loop();
        self.attempts += 1;
        if self.attempts < ATTEMPTS_PER_LOOK {
            return true;
        }
        self.attempts = 0;
        self.since.get_or_insert_with(Instant::now).elapsed() < self.timeout
    }
}

/// Waits until the descriptor can be read, or also written where `room` is asked for, or for this long at most.
///
/// # Errors
/// poll(2) fails, for example for lack of memory.
pub fn ready(fd: impl AsFd, room: bool, timeout: Duration) -> std::io::Result<()> {
    let wanted = if room {
        PollFlags::IN | PollFlags::OUT
    } else {
        PollFlags::IN
    };
    let left = Timespec {
        tv_sec: timeout.as_secs() as _,
        tv_nsec: timeout.subsec_nanos() as _,
    };
    match poll(&mut [PollFd::new(&fd, wanted)], Some(&left)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// How a wait for several descriptors ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The descriptor of this index has bytes, a connection, or its end.
    Readable(usize),
    /// Nothing happened within the timeout.
    Silence,
}

/// Waits until one of the descriptors can be read, or the timeout ends. The earliest in the list wins.
///
/// # Errors
/// poll(2) fails, for example for lack of memory.
pub fn readable(descriptors: &[BorrowedFd<'_>], timeout: Duration) -> std::io::Result<Woken> {
    let end = Instant::now() + timeout;
    let mut list: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos() as _,
        };
        match poll(&mut list, Some(&left)) {
            Ok(0) => return Ok(Woken::Silence),
            Ok(_) => {
                let woken = list.iter().position(|fd| !fd.revents().is_empty());
                return Ok(woken.map_or(Woken::Silence, Woken::Readable));
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
