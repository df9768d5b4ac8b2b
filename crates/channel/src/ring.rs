//! A byte stream through shared memory, one way: one writer, one reader, no lock.
//!
//! Model:   slots of one cache line each, and an area for bulk bytes. A slot holds a word of its number and its length, and up
//!          to 56 bytes; what is longer goes in pieces into the area, the slot then saying only how much. The word is stored
//!          last (release), and the reader looks at the word of the slot that comes next (acquire), so that for a small
//!          message one line moves and nothing else is looked at: the numbers of one lap are never those of another. What
//!          was read is given back now and then, a quarter of the ring at a time, on a line of the reader's, of which the
//!          writer keeps a copy that it renews when it finds no room.
//! Source:  cached indices: Lee, Bu, Chandranmenon 2010, "A lock-free, cache-efficient multi-core synchronization
//!          mechanism" (MCRingBuffer); numbers in slots: Vyukov's bounded queue. Deviations: lengths of any size.
//! Units:   bytes; slots and bytes given back are counted since the begin, modulo 2^64.
//! Checked: `bytes_arrive_in_order_whatever_their_sizes`, `an_end_is_seen_after_the_last_byte`,
//!          `lengths_that_cannot_be_are_refused`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sonde_sys::shared::{LINE_BYTES, Shared};

use crate::lookout::{Bell, Lookout, Waited};
use crate::{Error, Result};

/// What a small message may have to travel in one line.
pub(crate) const INLINE_BYTES: usize = LINE_BYTES - 8;
/// A message of a slot costs one way of a line, whatever the number of slots, where the cores share a cache (70 ns). Where they
/// do not, more than eight slots take a tenth longer (375 ns for 340); so few would make streams of small messages wait.
const SLOTS: u64 = 256;
/// The area of bulk bytes: both ends' halves of what moves stay in their second caches. (Twice as much gained nothing where a
/// line's way is 70 ns, and 2 % where it is 340 ns.)
pub(crate) const AREA_BYTES: usize = 512 << 10;
/// Longer ones are cut, so that reader and writer copy at the same time.
const PIECE_BYTES: usize = 32 << 10;
/// The longest piece, of a writer that is ahead of its reader: they copy at the same time anyway, and each piece costs the way
/// of a line once more (190 Gb/s against 174 with pieces of half the length, where that way is 340 ns; nothing where it is 70).
const PIECE_BYTES_MAX: usize = 64 << 10;
/// A pair of lines, which processors fetch together.
const PAIR_BYTES: usize = 2 * LINE_BYTES;

// Where things are, from the begin of a ring.
const ENDED: usize = 0;
const GIVEN_BACK: usize = PAIR_BYTES;
const READER_BELL: usize = 2 * PAIR_BYTES;
const WRITER_BELL: usize = 3 * PAIR_BYTES;
const SLOT: usize = 4 * PAIR_BYTES;
const AREA: usize = SLOT + SLOTS as usize * LINE_BYTES;
/// The size of a ring in shared memory.
pub(crate) const RING_BYTES: usize = AREA + AREA_BYTES;

/// Where slot number `number` is.
#[inline]
fn slot(begin: usize, number: u64) -> usize {
    begin + SLOT + (number % SLOTS) as usize * LINE_BYTES
}

/// The word of a slot: the number, counted from one, and the length.
#[inline]
fn word(number: u64, length: usize) -> u64 {
    (number as u32).wrapping_add(1) as u64 | (length as u64) << 32
}

/// The room that a piece of `length` takes in the area, which begins `align` bytes after a line.
#[inline]
fn lines(align: usize, length: usize) -> usize {
    (align + length).next_multiple_of(LINE_BYTES)
}

/// Where a piece goes after so many bytes of the area: what is passed over at its end, where hardly anything fits, and the
/// place.
#[inline]
fn place(bytes: u64, align: usize) -> (usize, usize) {
    let at = (bytes % AREA_BYTES as u64) as usize;
    if AREA_BYTES - at - align > INLINE_BYTES {
        (0, at)
    } else {
        (AREA_BYTES - at, 0)
    }
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct Writer {
    memory: Arc<Shared>,
    begin: usize,
    align: usize,
    slots: u64,
    bytes: u64,
    /// As last read.
    slots_back: u64,
    bytes_back: u64,
    /// Whether the reader had more than half of the area left to read when that was looked at last.
    is_ahead: bool,
    own: Bell,
    reader: Bell,
    lookout: Lookout,
}

impl Writer {
    pub(crate) fn new(memory: Arc<Shared>, begin: usize, align: usize, lookout: Lookout) -> Self {
        let own = Bell::new(memory.clone(), begin + WRITER_BELL);
        own.say(lookout.wait);
        let reader = Bell::new(memory.clone(), begin + READER_BELL);
        Self::with((memory, begin, align), lookout, [own, reader])
    }

    /// One whose bells, its own and the reader's, are somewhere else than in the ring.
    pub(crate) fn with(
        (memory, begin, align): (Arc<Shared>, usize, usize),
        lookout: Lookout,
        [own, reader]: [Bell; 2],
    ) -> Self {
        Self {
            reader,
            own,
            memory,
            begin,
            align,
            slots: 0,
            bytes: 0,
            slots_back: 0,
            bytes_back: 0,
            is_ahead: false,
            lookout,
        }
    }

    /// Writes all of it, waiting for room; how the wait ended if there was none.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<Waited> {
        if bytes.len() <= INLINE_BYTES {
            return self.write_line(bytes);
        }
        let mut rest = bytes;
        while rest.len() > INLINE_BYTES {
            let (skipped, at) = place(self.bytes, self.align);
            let room = AREA_BYTES - at - self.align;
            let most = if self.is_ahead {
                PIECE_BYTES_MAX
            } else {
                PIECE_BYTES
            };
            let (piece, after) = rest.split_at(rest.len().min(most).min(room));
            let waited = self.write_piece(skipped, at, piece)?;
            if waited != Waited::Ready {
                return Ok(waited);
            }
            rest = after;
        }
        if rest.is_empty() {
            Ok(Waited::Ready)
        } else {
            self.write_line(rest)
        }
    }

    #[inline]
    fn write_line(&mut self, bytes: &[u8]) -> Result<Waited> {
        let waited = self.await_room(0)?;
        if waited != Waited::Ready {
            return Ok(waited);
        }
        self.put_line(bytes)
    }

    #[inline]
    fn put_line(&mut self, bytes: &[u8]) -> Result<Waited> {
        let at = slot(self.begin, self.slots);
        self.put_words(at + 8, bytes);
        self.publish(at, bytes.len())
    }

    /// Stores bytes by whole words.
    #[inline]
    fn put_words(&self, at: usize, bytes: &[u8]) {
        for (index, part) in bytes.chunks(8).enumerate() {
            let value = match part.first_chunk::<8>() {
                Some(whole) => u64::from_le_bytes(*whole),
                None => part
                    .iter()
                    .rev()
                    .fold(0, |value, byte| value << 8 | u64::from(*byte)),
            };
            let place = self.memory.long(at + 8 * index);
            place.store(value, Ordering::Relaxed);
        }
    }

    /// Writes of two parts, one behind the other, what there is room for without waiting; how many bytes.
    #[inline]
    pub(crate) fn offer(&mut self, head: &[u8], body: &[u8]) -> Result<usize> {
        let all = head.len() + body.len();
        if all <= INLINE_BYTES {
            if all == 0 || !self.has_room(0) {
                return Ok(0);
            }
            let mut line = [0; INLINE_BYTES];
            line[..head.len()].copy_from_slice(head);
            line[head.len()..all].copy_from_slice(body);
            self.put_line(&line[..all])?;
            return Ok(all);
        }
        self.offer_pieces(head, body)
    }

    /// As [`offer`](Self::offer), of a head that is three words, each little-endian.
    #[inline]
    pub(crate) fn offer_words(&mut self, head: [u64; 3], body: &[u8]) -> Result<usize> {
        let all = 24 + body.len();
        if all > INLINE_BYTES {
            let mut bytes = [0; 24];
            for (part, word) in bytes.chunks_exact_mut(8).zip(head) {
                part.copy_from_slice(&word.to_le_bytes());
            }
            return self.offer_pieces(&bytes, body);
        }
        if !self.has_room(0) {
            return Ok(0);
        }
        let at = slot(self.begin, self.slots);
        for (index, word) in head.into_iter().enumerate() {
            let place = self.memory.long(at + 8 + 8 * index);
            place.store(word.to_le(), Ordering::Relaxed);
        }
        self.put_words(at + 32, body);
        self.publish(at, all)?;
        Ok(all)
    }

    fn offer_pieces(&mut self, mut head: &[u8], mut body: &[u8]) -> Result<usize> {
        let mut written = 0;
        while head.len() + body.len() > INLINE_BYTES {
            let (skipped, at) = place(self.bytes, self.align);
            let most = if self.is_ahead {
                PIECE_BYTES_MAX
            } else {
                PIECE_BYTES
            };
            let room = most.min(AREA_BYTES - at - self.align);
            let first = head.len().min(room);
            let second = body.len().min(room - first);
            let taken = skipped + lines(self.align, first + second);
            if !self.has_room(taken) {
                return Ok(written);
            }
            let place = self.begin + AREA + at + self.align;
            self.memory.put(place, &head[..first]);
            self.memory.put(place + first, &body[..second]);
            self.bytes += taken as u64;
            let at = slot(self.begin, self.slots);
            self.publish(at, first + second)?;
            written += first + second;
            (head, body) = (&head[first..], &body[second..]);
        }
        Ok(written + self.offer(head, body)?)
    }

    /// Whether there is room for the longest piece.
    pub(crate) fn is_roomy(&mut self) -> bool {
        self.has_room(2 * PIECE_BYTES_MAX)
    }

    /// Whether there is a slot, and so many bytes of the area.
    #[inline]
    fn has_room(&mut self, bytes: usize) -> bool {
        let (slots, until) = (self.slots, self.bytes + bytes as u64);
        let is_room = |slots_back: u64, bytes_back: u64| {
            slots.wrapping_sub(slots_back) < SLOTS
                && until.wrapping_sub(bytes_back) <= AREA_BYTES as u64
        };
        if is_room(self.slots_back, self.bytes_back) {
            return true;
        }
        let back = |at: usize| {
            let place = self.begin + GIVEN_BACK + at;
            self.memory.long(place).load(Ordering::Acquire)
        };
        (self.slots_back, self.bytes_back) = (back(0), back(8));
        self.is_ahead = self.bytes.wrapping_sub(self.bytes_back) > AREA_BYTES as u64 / 2;
        is_room(self.slots_back, self.bytes_back)
    }

    fn write_piece(&mut self, skipped: usize, at: usize, piece: &[u8]) -> Result<Waited> {
        let taken = skipped + lines(self.align, piece.len());
        let waited = self.await_room(taken)?;
        if waited != Waited::Ready {
            return Ok(waited);
        }
        let place = self.begin + AREA + at + self.align;
        self.memory.put(place, piece);
        self.bytes += taken as u64;
        let at = slot(self.begin, self.slots);
        self.publish(at, piece.len())
    }

    #[inline]
    fn publish(&mut self, at: usize, length: usize) -> Result<Waited> {
        let value = word(self.slots, length);
        self.memory.long(at).store(value, Ordering::Release);
        self.slots += 1;
        self.reader.ring()?;
        Ok(Waited::Ready)
    }

    /// Waits for a slot, and for so many bytes of the area.
    #[inline]
    fn await_room(&mut self, bytes: usize) -> Result<Waited> {
        let (slots, until) = (self.slots, self.bytes + bytes as u64);
        let is_room = |slots_back: u64, bytes_back: u64| {
            slots.wrapping_sub(slots_back) < SLOTS
                && until.wrapping_sub(bytes_back) <= AREA_BYTES as u64
        };
        if is_room(self.slots_back, self.bytes_back) {
            return Ok(Waited::Ready);
        }
        let (memory, begin) = (&self.memory, self.begin);
        let back = |at: usize| memory.long(begin + GIVEN_BACK + at).load(Ordering::Acquire);
        self.is_ahead = self.bytes.wrapping_sub(back(8)) > AREA_BYTES as u64 / 2;
        let (slots_back, bytes_back) = (&mut self.slots_back, &mut self.bytes_back);
        let ready = || {
            (*slots_back, *bytes_back) = (back(0), back(8));
            is_room(*slots_back, *bytes_back)
        };
        self.lookout.wait(&self.own, ready, || false)
    }

    /// Says that nothing more comes.
    pub(crate) fn end(&mut self) -> Result<()> {
        let place = self.memory.word(self.begin + ENDED);
        place.store(1, Ordering::Release);
        self.reader.ring()
    }
}

/// What is left of the slot being read.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Where its bytes are.
    at: usize,
    left: usize,
    /// What it takes in the area.
    taken: usize,
}

/// The reading end.
#[derive(Debug)]
pub(crate) struct Reader {
    memory: Arc<Shared>,
    begin: usize,
    align: usize,
    slots: u64,
    bytes: u64,
    slots_given: u64,
    bytes_given: u64,
    piece: Option<Piece>,
    own: Bell,
    writer: Bell,
    lookout: Lookout,
}

impl Reader {
    pub(crate) fn new(memory: Arc<Shared>, begin: usize, align: usize, lookout: Lookout) -> Self {
        let own = Bell::new(memory.clone(), begin + READER_BELL);
        own.say(lookout.wait);
        let writer = Bell::new(memory.clone(), begin + WRITER_BELL);
        Self::with((memory, begin, align), lookout, [own, writer])
    }

    /// One whose bells, its own and the writer's, are somewhere else than in the ring.
    pub(crate) fn with(
        (memory, begin, align): (Arc<Shared>, usize, usize),
        lookout: Lookout,
        [own, writer]: [Bell; 2],
    ) -> Self {
        Self {
            writer,
            own,
            memory,
            begin,
            align,
            slots: 0,
            bytes: 0,
            slots_given: 0,
            bytes_given: 0,
            piece: None,
            lookout,
        }
    }

    /// Waits until there is something to read.
    #[inline]
    pub(crate) fn await_bytes(&mut self) -> Result<Waited> {
        if self.piece.is_some() || self.is_next() {
            return Ok(Waited::Ready);
        }
        let (memory, begin, number) = (&self.memory, self.begin, self.slots);
        self.lookout.wait(
            &self.own,
            || is_published(memory, begin, number),
            || memory.word(begin + ENDED).load(Ordering::Acquire) != 0,
        )
    }

    /// Whether the peer has said that nothing more comes.
    pub(crate) fn is_ended(&self) -> bool {
        self.memory.word(self.begin + ENDED).load(Ordering::Acquire) != 0
    }

    /// Whether something can be read now.
    #[inline]
    pub(crate) fn is_next(&self) -> bool {
        self.piece.is_some() || is_published(&self.memory, self.begin, self.slots)
    }

    /// The first three words, each little-endian, of the next slot, if it has as many and none was read.
    #[inline]
    pub(crate) fn take_words(&mut self) -> Result<Option<[u64; 3]>> {
        if self.piece.is_some() || !is_published(&self.memory, self.begin, self.slots) {
            return Ok(None);
        }
        let mut piece = self.open_slot()?;
        if piece.left < 24 {
            self.piece = Some(piece);
            return Ok(None);
        }
        let words = if piece.taken == 0 {
            [0, 8, 16].map(|at| {
                let word = self.memory.long(piece.at + at);
                u64::from_le(word.load(Ordering::Relaxed))
            })
        } else {
            let mut bytes = [[0; 8]; 3];
            self.memory.take(piece.at, bytes.as_flattened_mut());
            bytes.map(u64::from_le_bytes)
        };
        piece.left -= 24;
        piece.at += 24;
        if piece.left > 0 {
            self.piece = Some(piece);
        } else {
            self.close_slot(piece)?;
        }
        Ok(Some(words))
    }

    /// Reads what is there; how many bytes.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut read = 0;
        while read < buffer.len() && self.is_next() {
            let mut piece = match self.piece.take() {
                Some(piece) => piece,
                None => self.open_slot()?,
            };
            let count = piece.left.min(buffer.len() - read);
            let target = &mut buffer[read..read + count];
            if piece.taken == 0 && piece.at % 8 == 0 {
                read_words(&self.memory, piece.at, target);
            } else {
                self.memory.take(piece.at, target);
            }
            read += count;
            piece.left -= count;
            piece.at += count;
            if piece.left > 0 {
                self.piece = Some(piece);
            } else {
                self.close_slot(piece)?;
            }
        }
        Ok(read)
    }

    /// The piece of the next slot, which is there.
    #[inline]
    fn open_slot(&self) -> Result<Piece> {
        let at = slot(self.begin, self.slots);
        let length = (self.memory.long(at).load(Ordering::Relaxed) >> 32) as usize;
        if length <= INLINE_BYTES {
            return Ok(Piece {
                at: at + 8,
                left: length,
                taken: 0,
            });
        }
        let (skipped, at) = place(self.bytes, self.align);
        let within = at + self.align;
        if length > PIECE_BYTES_MAX || within + length > AREA_BYTES {
            return Err(refused(length));
        }
        Ok(Piece {
            at: self.begin + AREA + within,
            left: length,
            taken: skipped + lines(self.align, length),
        })
    }

    #[inline]
    fn close_slot(&mut self, piece: Piece) -> Result<()> {
        self.slots += 1;
        self.bytes += piece.taken as u64;
        let is_due = self.slots - self.slots_given >= SLOTS / 4
            || self.bytes - self.bytes_given >= AREA_BYTES as u64 / 4;
        if is_due { self.give_back() } else { Ok(()) }
    }

    /// A quarter is held back at most: who waits for room has more of it than any piece needs.
    fn give_back(&mut self) -> Result<()> {
        let place = self.begin + GIVEN_BACK;
        (self.slots_given, self.bytes_given) = (self.slots, self.bytes);
        self.memory
            .long(place + 8)
            .store(self.bytes, Ordering::Release);
        self.memory.long(place).store(self.slots, Ordering::Release);
        self.writer.ring()
    }
}

#[inline]
fn is_published(memory: &Shared, begin: usize, number: u64) -> bool {
    let value = memory.long(slot(begin, number)).load(Ordering::Acquire);
    value as u32 == word(number, 0) as u32
}

/// Copies what lies in a line as it was stored, by whole words.
#[inline]
fn read_words(memory: &Shared, at: usize, target: &mut [u8]) {
    for (index, part) in target.chunks_mut(8).enumerate() {
        let value = memory.long(at + 8 * index).load(Ordering::Relaxed);
        match part.first_chunk_mut::<8>() {
            Some(whole) => *whole = value.to_le_bytes(),
            None => {
                let cut = part.len();
                part.copy_from_slice(&value.to_le_bytes()[..cut]);
            }
        }
    }
}

#[cold]
fn refused(length: usize) -> Error {
    Error::Nonsense {
        what: format!("a piece of {length} bytes in a ring of shared memory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload;
    use sonde_measure::Wait;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    fn ends(waits: [Wait; 2], align: usize) -> (Writer, Reader) {
        let (memory, fd) = Shared::create(RING_BYTES).unwrap();
        let mapped = Shared::open(&fd, RING_BYTES).unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let lookout = |wait, socket: UnixStream| Lookout {
            wait,
            timeout: Duration::from_secs(60),
            control: Arc::new(OwnedFd::from(socket)),
        };
        (
            Writer::new(Arc::new(memory), 0, align, lookout(waits[0], one)),
            Reader::new(Arc::new(mapped), 0, align, lookout(waits[1], other)),
        )
    }

    /// Sizes from 1 B to some 100 KiB, small ones most often; the same for the same seed.
    fn sizes(mut state: u64) -> impl Iterator<Item = usize> {
        std::iter::repeat_with(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let random = (state >> 33) as usize;
            1 + (random >> 5) % [8, 56, 64, 200, 5_000, 20_000, 100_000, 57][random % 8]
        })
    }

    fn read_all(reader: &mut Reader, buffer: &mut [u8]) {
        let mut read = 0;
        while read < buffer.len() {
            assert_eq!(reader.await_bytes().unwrap(), Waited::Ready);
            read += reader.read(&mut buffer[read..]).unwrap();
        }
    }

    #[test]
    fn bytes_arrive_in_order_whatever_their_sizes() {
        const MESSAGES: usize = 6_000;
        for (align, waits) in [
            (0, [Wait::Block, Wait::Block]),
            (1, [Wait::Poll, Wait::Block]),
            (63, [Wait::Block, Wait::Poll]),
        ] {
            let (mut writer, mut reader) = ends(waits, align);
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for (sequence, size) in sizes(7).take(MESSAGES).enumerate() {
                        let mut message = payload::message(size);
                        payload::stamp(&mut message, sequence as u32);
                        assert_eq!(writer.write(&message).unwrap(), Waited::Ready);
                    }
                    writer.end().unwrap();
                });
                // Once more around than the numbers of slots, and of the area.
                let mut cuts = sizes(99);
                for (sequence, size) in sizes(7).take(MESSAGES).enumerate() {
                    let mut message = vec![0xee; size];
                    let cut = cuts.next().unwrap().min(size);
                    read_all(&mut reader, &mut message[..cut]);
                    read_all(&mut reader, &mut message[cut..]);
                    payload::verify(&message, sequence as u32).unwrap();
                }
                assert_eq!(reader.await_bytes().unwrap(), Waited::Ended);
                assert!(reader.slots > 4 * SLOTS && reader.bytes > 40 * AREA_BYTES as u64);
            });
        }
    }

    #[test]
    fn an_end_is_seen_after_the_last_byte() {
        let (mut writer, mut reader) = ends([Wait::Poll, Wait::Poll], 0);
        writer.write(&[1, 2, 3]).unwrap();
        writer.end().unwrap();
        assert!(reader.is_ended() && reader.is_next());
        assert_eq!(reader.await_bytes().unwrap(), Waited::Ready);
        let mut buffer = [0; 8];
        assert_eq!(reader.read(&mut buffer[..2]).unwrap(), 2);
        assert_eq!(reader.read(&mut buffer[2..]).unwrap(), 1);
        assert_eq!(buffer, [1, 2, 3, 0, 0, 0, 0, 0]);
        assert_eq!(reader.await_bytes().unwrap(), Waited::Ended);
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        for length in [PIECE_BYTES_MAX + 1, u32::MAX as usize] {
            let (writer, mut reader) = ends([Wait::Poll, Wait::Poll], 5);
            let place = writer.memory.long(slot(0, 0));
            place.store(word(0, length), Ordering::Release);
            let error = reader.read(&mut [0; 8]).unwrap_err().to_string();
            assert!(error.contains(&length.to_string()), "{error}");
        }
        // One that is short enough, but not for what is left of the area.
        let (writer, mut reader) = ends([Wait::Poll, Wait::Poll], 5);
        reader.bytes = AREA_BYTES as u64 - 1_024;
        let place = writer.memory.long(slot(0, 0));
        place.store(word(0, 4_096), Ordering::Release);
        assert!(reader.read(&mut [0; 8]).is_err());
    }
}
