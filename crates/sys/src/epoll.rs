//! Waiting for descriptors with a time-out in nanoseconds.
//!
//! Model:   epoll, level-triggered, one `u64` token a descriptor; `epoll_pwait2` where the kernel has it
//!          (5.11), else `epoll_wait` with the time-out rounded up to a millisecond, never early.
//! Checked: `a_readable_pipe_reports_its_token`, `a_time_out_is_not_early`.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use crate::Result;
use crate::error::{Attempt, checked};

/// Which readiness to wait for; errors and hang-ups are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Something to read.
    Read,
    /// Room to write.
    Write,
    /// Either.
    Both,
    /// Only errors and hang-ups.
    Neither,
}

impl Interest {
    fn bits(self) -> u32 {
        let bits = match self {
            Self::Read => libc::EPOLLIN | libc::EPOLLRDHUP,
            Self::Write => libc::EPOLLOUT,
            Self::Both => libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLOUT,
            Self::Neither => 0,
        };
        bits as u32
    }
}

/// One ready descriptor.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Event(libc::epoll_event);

impl Event {
    /// An empty place for [`Epoll::wait`] to fill.
    pub const EMPTY: Self = Self(libc::epoll_event { events: 0, u64: 0 });

    /// The token given to [`Epoll::add`].
    pub fn token(&self) -> u64 {
        self.0.u64
    }

    fn has(&self, bits: i32) -> bool {
        let events = self.0.events;
        events & bits as u32 != 0
    }

    /// There is something to read, be it an end of file or an error.
    pub fn readable(&self) -> bool {
        self.has(libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLRDHUP | libc::EPOLLERR)
    }

    /// There is room to write, or writing would tell of an error.
    pub fn writable(&self) -> bool {
        self.has(libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR)
    }

    /// The other end is gone.
    pub fn hung_up(&self) -> bool {
        self.has(libc::EPOLLHUP | libc::EPOLLRDHUP)
    }

    /// The descriptor holds an error.
    pub fn failed(&self) -> bool {
        self.has(libc::EPOLLERR)
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event {{ token: {}, events: {:#x} }}", self.token(), {
            self.0.events
        })
    }
}

/// A set of descriptors waited for together.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    coarse: AtomicBool,
}

impl Epoll {
    /// An empty set.
    pub fn new() -> Result<Self> {
        // SAFETY: no pointers; the returned descriptor is owned by nobody else.
        let fd = unsafe {
            checked(libc::epoll_create1(libc::EPOLL_CLOEXEC)).map(|fd| OwnedFd::from_raw_fd(fd))
        };
        Ok(Self {
            fd: fd.attempt(|| "create an epoll set".into())?,
            coarse: AtomicBool::new(false),
        })
    }

    fn control(
        &self,
        operation: i32,
        fd: i32,
        token: u64,
        interest: Interest,
    ) -> rustix::io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.bits(),
            u64: token,
        };
        // SAFETY: `event` is a live local; both descriptors are only named by number.
        unsafe {
            checked(libc::epoll_ctl(
                self.fd.as_raw_fd(),
                operation,
                fd,
                &mut event,
            ))
        }
        .map(|_| ())
    }

    /// Adds a descriptor; it must stay open until removed.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<()> {
        let fd = fd.as_fd().as_raw_fd();
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
            .attempt(|| format!("add descriptor {fd} to the epoll set"))
    }

    /// Changes what is waited for.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> Result<()> {
        let fd = fd.as_fd().as_raw_fd();
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
            .attempt(|| format!("change descriptor {fd} in the epoll set"))
    }

    /// Takes a descriptor out.
    pub fn remove(&self, fd: impl AsFd) -> Result<()> {
        let fd = fd.as_fd().as_raw_fd();
        self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::Neither)
            .attempt(|| format!("remove descriptor {fd} from the epoll set"))
    }

    /// Waits and returns the ready events; none after the time-out (`None` waits for ever) or a signal.
    pub fn wait<'e>(
        &self,
        events: &'e mut [Event],
        timeout: Option<Duration>,
    ) -> Result<&'e [Event]> {
        let ready = if self.coarse.load(Ordering::Relaxed) {
            self.wait_ms(events, timeout)
        } else {
            match self.wait_ns(events, timeout) {
                Err(Errno::NOSYS) => {
                    self.coarse.store(true, Ordering::Relaxed);
                    self.wait_ms(events, timeout)
                }
                other => other,
            }
        };
        match ready {
            Ok(count) => Ok(&events[..count]),
            Err(Errno::INTR) => Ok(&events[..0]),
            Err(errno) => Err(errno).attempt(|| "wait for descriptors".into()),
        }
    }

    fn wait_ns(
        &self,
        events: &mut [Event],
        timeout: Option<Duration>,
    ) -> rustix::io::Result<usize> {
        // The kernel's struct __kernel_timespec: 64 bits each on every architecture.
        let time = timeout.map(|t| {
            [
                t.as_secs().min(i64::MAX as u64) as i64,
                i64::from(t.subsec_nanos()),
            ]
        });
        let pointer = time.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
        let length = events.len().min(i32::MAX as usize);
        // SAFETY: `events` is a live slice of transparent epoll_event, `pointer` null or a live pair of i64;
        // a null signal mask is allowed.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                events.as_mut_ptr(),
                length as libc::c_int,
                pointer,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        checked(ready).map(|count| count as usize)
    }

    fn wait_ms(
        &self,
        events: &mut [Event],
        timeout: Option<Duration>,
    ) -> rustix::io::Result<usize> {
        let ms = timeout.map_or(-1, |t| {
            t.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32
        });
        let length = events.len().min(i32::MAX as usize) as i32;
        // SAFETY: `events` is a live slice of transparent epoll_event.
        let ready = unsafe {
            libc::epoll_wait(self.fd.as_raw_fd(), events.as_mut_ptr().cast(), length, ms)
        };
        checked(ready).map(|count| count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;

    #[test]
    fn a_readable_pipe_reports_its_token() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let set = Epoll::new().unwrap();
        set.add(&reader, 7, Interest::Read).unwrap();
        let mut events = [Event::EMPTY; 4];
        assert!(
            set.wait(&mut events, Some(Duration::ZERO))
                .unwrap()
                .is_empty()
        );
        rustix::io::write(&writer, b"x").unwrap();
        let ready = set.wait(&mut events, None).unwrap();
        assert_eq!(ready.len(), 1);
        assert!(ready[0].token() == 7 && ready[0].readable() && !ready[0].hung_up());
        set.modify(&reader, 8, Interest::Neither).unwrap();
        assert!(
            set.wait(&mut events, Some(Duration::ZERO))
                .unwrap()
                .is_empty()
        );
        drop(writer);
        let ready = set.wait(&mut events, None).unwrap();
        assert!(ready[0].token() == 8 && ready[0].hung_up());
        set.remove(&reader).unwrap();
        assert!(
            set.wait(&mut events, Some(Duration::ZERO))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_time_out_is_not_early() {
        let set = Epoll::new().unwrap();
        let mut events = [Event::EMPTY; 1];
        for coarse in [false, true] {
            set.coarse.store(coarse, Ordering::Relaxed);
            let start = monotonic_ns();
            assert!(
                set.wait(&mut events, Some(Duration::from_micros(700)))
                    .unwrap()
                    .is_empty()
            );
            assert!(monotonic_ns() - start >= 700_000);
        }
    }
}
