//! Messages that the kernel reads when it sends them, and says when it is done (MSG_ZEROCOPY).
//!
//! Model:   a ring of whole messages. Each send has a number; a notice of the kernel's frees a range of them, in any order.
//!          A message is stamped anew when no send of it is outstanding. What was copied after all is counted by bytes.
//! Source:  Documentation/networking/msg_zerocopy.rst; ENOBUFS: net.core.optmem_max, or locked memory of an ordinary user.
//! Checked: `outlet::tests`, `notices_free_what_they_name`.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use sonde_sys::zerocopy::{Notice, ZEROCOPY, notice, permit};

use crate::wait::Spin;
use crate::{Error, Result, Tcp, payload};
use sonde_measure::{Fixed, Transfer, Wait, ZerocopyNote};

/// What the ring has at most, where a message is not larger.
const RING_BYTES: usize = 4 << 20;
const RING_MESSAGES_MAX: usize = 256;
/// Sends without a notice, at most.
const OUTSTANDING_MAX: usize = 1_024;
/// Between two looks at the error queue.
const SENDS_PER_LOOK: u32 = 4;

/// A send that took bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    message: usize,
    bytes: usize,
    done: bool,
}

/// The sends without a notice, and those of later number.
#[derive(Debug, Default)]
struct Outstanding {
    /// The number of the first.
    first: u32,
    sends: VecDeque<Sent>,
    /// For each message of the ring.
    of_message: Vec<u32>,
    bytes: u64,
    copied_bytes: u64,
}

impl Outstanding {
    fn on_sent(&mut self, message: usize, bytes: usize) {
        self.of_message[message] += 1;
        self.sends.push_back(Sent {
            message,
            bytes,
            done: false,
        });
    }

    /// Takes a notice; what it names and was never sent is passed over.
    fn on_notice(&mut self, notice: Notice) {
        let count = notice.last.wrapping_sub(notice.first);
        for number in 0..=count.min(OUTSTANDING_MAX as u32) {
            let at = notice.first.wrapping_add(number).wrapping_sub(self.first);
            let Some(sent) = self.sends.get_mut(at as usize) else {
                continue;
            };
            if !std::mem::replace(&mut sent.done, true) {
                self.of_message[sent.message] -= 1;
                self.bytes += sent.bytes as u64;
                self.copied_bytes += u64::from(notice.copied) * sent.bytes as u64;
            }
        }
        while self.sends.front().is_some_and(|sent| sent.done) {
            self.sends.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Zerocopy {
    ring: Vec<u8>,
    size_bytes: usize,
    outstanding: Outstanding,
    until_look: u32,
    /// Times that a message had to be awaited.
    waits: u64,
}

impl Zerocopy {
    pub(crate) fn new(channel: &Tcp, size_bytes: usize) -> Result<Self> {
        permit(&channel.fd)?;
        let messages = (RING_BYTES / size_bytes).clamp(1, RING_MESSAGES_MAX);
        let message = payload::message(size_bytes);
        Ok(Self {
            ring: message.repeat(messages),
            size_bytes,
            outstanding: Outstanding {
                of_message: vec![0; messages],
                ..Outstanding::default()
            },
            until_look: SENDS_PER_LOOK,
            waits: 0,
        })
    }

    #[inline]
    pub(crate) fn send_some(
        &mut self,
        channel: &mut Tcp,
        sequence: u32,
        part: Range<usize>,
    ) -> Result<usize> {
        let message = sequence as usize % self.outstanding.of_message.len();
        let begin = message * self.size_bytes;
        if part.start == 0 {
            self.until(channel, |outstanding| outstanding.of_message[message] == 0)?;
            payload::stamp(&mut self.ring[begin..][..self.size_bytes], sequence);
        }
        self.until(channel, |outstanding| {
            outstanding.sends.len() < OUTSTANDING_MAX
        })?;
        loop {
            let bytes = &self.ring[begin + part.start..begin + part.end];
            match channel.send_with(bytes, SendFlags::NOSIGNAL | ZEROCOPY) {
                Ok(sent) => {
                    self.outstanding.on_sent(message, sent);
                    self.until_look -= 1;
                    if self.until_look == 0 {
                        self.look(channel)?;
                    }
                    return Ok(sent);
                }
                // No room for another notice: until one was read.
                Err(Error::Call {
                    errno: Errno::NOBUFS,
                    ..
                }) if !self.outstanding.sends.is_empty() => {
                    let before = self.outstanding.sends.len();
                    self.until(channel, |outstanding| outstanding.sends.len() < before)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn look(&mut self, channel: &Tcp) -> Result<()> {
        self.until_look = SENDS_PER_LOOK;
        while let Some(notice) = notice(&channel.fd)? {
            self.outstanding.on_notice(notice);
        }
        Ok(())
    }

    /// Reads notices until there were enough.
    #[inline]
    fn until(&mut self, channel: &Tcp, enough: impl Fn(&Outstanding) -> bool) -> Result<()> {
        if enough(&self.outstanding) {
            return Ok(());
        }
        self.waits += 1;
        let begin = Instant::now();
        let mut spin = Spin::new(channel.options.timeout);
        loop {
            let before = self.outstanding.sends.len();
            self.look(channel)?;
            if enough(&self.outstanding) {
                return Ok(());
            }
            let is_late = begin.elapsed() >= channel.options.timeout;
            if is_late && self.outstanding.sends.len() == before {
                return Err(channel.silence("the kernel to be done with what was sent".into()));
            }
            if channel.options.wait == Wait::Poll {
                spin.again();
            } else {
                await_notice(channel)?;
            }
        }
    }

    pub(crate) fn finish(&mut self, channel: &mut Tcp) -> Result<()> {
        self.until(channel, |outstanding| outstanding.sends.is_empty())
    }

    /// The share of copied bytes, and what it means.
    pub(crate) fn transfer(&self) -> Transfer {
        let (copied, bytes) = (self.outstanding.copied_bytes, self.outstanding.bytes);
        Transfer {
            zerocopy_copied_share: Fixed::of(copied as f64 / bytes.max(1) as f64),
            zerocopy_waits: Some(self.waits),
            zerocopy_note: (bytes > 0 && copied == bytes).then_some(ZerocopyNote::CopiedAll),
            ..Transfer::default()
        }
    }
}

/// Sleeps until the error queue has something, a tenth of a second at most.
fn await_notice(channel: &Tcp) -> Result<()> {
    // Errors are reported whatever is asked for.
    let mut list = [PollFd::new(&channel.fd, PollFlags::empty())];
    let most = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    match poll(&mut list, Some(&most)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(Error::Call {
            peer: channel.peer,
            attempt: "wait for the kernel to be done with what was sent",
            errno,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_free_what_they_name() {
        let mut outstanding = Outstanding {
            of_message: vec![0; 2],
            first: u32::MAX,
            ..Outstanding::default()
        };
        for number in 0..4 {
            outstanding.on_sent(number % 2, 10);
        }
        let notice = |first: u32, last: u32, copied| Notice {
            first,
            last,
            copied,
        };
        // Numbers wrap: MAX, 0, 1, 2.
        outstanding.on_notice(notice(0, 1, true));
        assert_eq!((outstanding.sends.len(), outstanding.first), (4, u32::MAX));
        assert_eq!(outstanding.of_message, [1, 1]);
        // Again, and what was never sent.
        outstanding.on_notice(notice(1, 1, true));
        outstanding.on_notice(notice(7, 9, true));
        outstanding.on_notice(notice(u32::MAX, u32::MAX, false));
        assert_eq!((outstanding.sends.len(), outstanding.first), (1, 2));
        outstanding.on_notice(notice(2, 2, false));
        assert_eq!(outstanding.of_message, [0, 0]);
        assert_eq!((outstanding.bytes, outstanding.copied_bytes), (40, 20));
    }
}
