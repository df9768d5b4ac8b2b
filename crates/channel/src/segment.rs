//! Shared memory as the SCI study used it: the writer stores a message where the reader wants it, then a flag.
//!
//! Model:   each way has one segment. Its flag line holds the number of the message, its length and, of small messages, the
//!          bytes; longer ones lie in the segment's area. Number, and how many messages of the other way were taken, are one
//!          word, stored last (release) and waited for (acquire), so that an answer says by itself that the question was
//!          taken; who takes without answering says so before it waits again. A message is in the reader's memory when the
//!          flag is there: where that is enough, its header alone is copied on to where the caller wants it.
//! Source:  the SCI study's shared memory benchmark: segment of size + 1 on the destination, write, wait for the flag byte.
//!          Deviations: numbers instead of a byte that is reset, so that no store is needed to arm it.
//! Units:   bytes; messages are counted modulo 2^32.
//! Checked: `shm`, `messages_cross_whole`, `every_wait_mixes_with_every_other`; `a_length_that_cannot_be_is_refused`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sonde_sys::shared::{LINE_BYTES, Shared};

use crate::lookout::{Bell, Lookout, Waited};
use crate::{Error, Result};

const INLINE_BYTES: usize = LINE_BYTES - 16;
const PAIR_BYTES: usize = 2 * LINE_BYTES;
const PAGE_BYTES: usize = 4_096;

// Where things are, from the begin of a segment.
const FLAG: usize = 0;
const LENGTH: usize = 8;
const INLINE: usize = 16;
const ENDED: usize = PAIR_BYTES;
const BELL: usize = 2 * PAIR_BYTES;
const AREA: usize = PAGE_BYTES;

/// The size of one way with room for messages of `room`.
pub(crate) fn segment_bytes(room: usize) -> usize {
    AREA + (room + LINE_BYTES).next_multiple_of(PAGE_BYTES)
}

/// What is left of the message being read.
#[derive(Debug, Clone, Copy)]
struct Open {
    length: usize,
    read: usize,
}

/// Both ways, as one end has them.
#[derive(Debug)]
pub(crate) struct Segments {
    memory: Arc<Shared>,
    /// Where the segment at the peer, and the own one, begin.
    out: usize,
    own: usize,
    room: usize,
    align: usize,
    written: u32,
    taken: u32,
    taken_told: u32,
    open: Option<Open>,
    bell: Bell,
    peer: Bell,
    lookout: Lookout,
}

/// The word of a flag line.
#[inline]
fn flag(written: u32, taken: u32) -> u64 {
    u64::from(written) | u64::from(taken) << 32
}

impl Segments {
    pub(crate) fn new(
        memory: Arc<Shared>,
        [out, own]: [usize; 2],
        (room, align): (usize, usize),
        lookout: Lookout,
    ) -> Self {
        let bell = Bell::new(memory.clone(), own + BELL);
        bell.say(lookout.wait);
        Self {
            peer: Bell::new(memory.clone(), out + BELL),
            bell,
            memory,
            out,
            own,
            room,
            align,
            written: 0,
            taken: 0,
            taken_told: 0,
            open: None,
            lookout,
        }
    }

    /// Writes all of it, each part that fits the segment as a message; how the wait for the segment ended.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<Waited> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.len().min(self.room));
            let waited = self.await_taken()?;
            if waited != Waited::Ready {
                return Ok(waited);
            }
            let at = if part.len() <= INLINE_BYTES {
                self.out + INLINE
            } else {
                self.out + AREA + self.align
            };
            self.memory.put(at, part);
            let length = self.memory.long(self.out + LENGTH);
            length.store(part.len() as u64, Ordering::Relaxed);
            self.written = self.written.wrapping_add(1);
            self.tell()?;
            rest = after;
        }
        Ok(Waited::Ready)
    }

    /// Stores the own flag word: what was written, and what was taken.
    #[inline]
    fn tell(&mut self) -> Result<()> {
        self.taken_told = self.taken;
        let word = self.memory.long(self.out + FLAG);
        word.store(flag(self.written, self.taken), Ordering::Release);
        self.peer.ring()
    }

    #[inline]
    fn tell_taken(&mut self) -> Result<()> {
        if self.taken == self.taken_told {
            Ok(())
        } else {
            self.tell()
        }
    }

    /// Waits until the peer has taken what was written.
    #[inline]
    fn await_taken(&mut self) -> Result<Waited> {
        if is_taken(&self.memory, self.own, self.written) {
            return Ok(Waited::Ready);
        }
        self.tell_taken()?;
        let ready = || is_taken(&self.memory, self.own, self.written);
        self.lookout.wait(&self.bell, ready, || false)
    }

    /// Waits for a message.
    #[inline]
    pub(crate) fn await_bytes(&mut self) -> Result<Waited> {
        if self.is_next() {
            return Ok(Waited::Ready);
        }
        self.tell_taken()?;
        let (memory, own, taken) = (&self.memory, self.own, self.taken);
        self.lookout.wait(
            &self.bell,
            || memory.long(own + FLAG).load(Ordering::Acquire) as u32 != taken,
            || memory.word(own + ENDED).load(Ordering::Acquire) != 0,
        )
    }

    /// Whether something can be read now.
    #[inline]
    pub(crate) fn is_next(&self) -> bool {
        let written = self.memory.long(self.own + FLAG).load(Ordering::Acquire) as u32;
        self.open.is_some() || written != self.taken
    }

    /// Whether the peer has said that nothing more comes.
    pub(crate) fn is_ended(&self) -> bool {
        self.memory.word(self.own + ENDED).load(Ordering::Acquire) != 0
    }

    /// Reads what is there; how many bytes.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() || !self.is_next() {
            return Ok(0);
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open_message()?,
        };
        let count = buffer.len().min(open.length - open.read);
        let at = open.read
            + if open.length <= INLINE_BYTES {
                self.own + INLINE
            } else {
                self.own + AREA + self.align
            };
        self.memory.take(at, &mut buffer[..count]);
        open.read += count;
        if open.read == open.length {
            self.taken = self.taken.wrapping_add(1);
        } else {
            self.open = Some(open);
        }
        Ok(count)
    }

    #[inline]
    fn open_message(&self) -> Result<Open> {
        let length = self.memory.long(self.own + LENGTH).load(Ordering::Relaxed);
        match usize::try_from(length) {
            Ok(length) if length > 0 && length <= self.room => Ok(Open { length, read: 0 }),
            _ => Err(Error::Nonsense {
                what: format!(
                    "a message of {length} bytes in a segment of {} bytes of shared memory",
                    self.room
                ),
            }),
        }
    }

    /// Says that nothing more comes.
    pub(crate) fn end(&mut self) -> Result<()> {
        let word = self.memory.word(self.out + ENDED);
        word.store(1, Ordering::Release);
        self.tell()
    }
}

#[inline]
fn is_taken(memory: &Shared, own: usize, written: u32) -> bool {
    (memory.long(own + FLAG).load(Ordering::Acquire) >> 32) as u32 == written
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::Wait;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        for length in [0, 10_001, u64::MAX] {
            let way = segment_bytes(10_000);
            let (memory, _fd) = Shared::create(2 * way).unwrap();
            let (socket, _other) = UnixStream::pair().unwrap();
            let lookout = Lookout {
                wait: Wait::Poll,
                timeout: Duration::from_secs(60),
                control: Arc::new(OwnedFd::from(socket)),
            };
            memory.long(way + LENGTH).store(length, Ordering::Relaxed);
            memory.long(way + FLAG).store(flag(1, 0), Ordering::Release);
            let mut end = Segments::new(Arc::new(memory), [0, way], (10_000, 0), lookout);
            let error = end.read(&mut [0; 8]).unwrap_err().to_string();
            assert!(error.contains("in a segment of 10000 bytes"), "{error}");
        }
    }
}
