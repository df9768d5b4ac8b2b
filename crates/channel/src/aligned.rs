//! User buffers that begin where they are asked to, against the lines of the cache; and that are in it or not.
//!
//! Model:   warm, a buffer is one piece of memory with 127 spare bytes, of which the part is used that begins the wanted
//!          number of bytes after a line: after its first use the cache has it. Cold, it is an area of twice the last-level
//!          cache and one message more, cut into slots of whole lines; each message has the next slot, in an order that
//!          jumps over most of the area, so that no slot comes again before as much as the area holds was used, and no
//!          prefetcher knows the next. The slots are filled in that very order, and a slot gets its next number when it was
//!          used last: none is touched shortly before. What is received with a size that is not known before goes to pieces
//!          one after the other, each from the line after the last.
//!          Only users' buffers are so: those of the kernel and of shared rings are what they are.
//! Source:  McVoy and Staelin 1996, lmbench §3; NetPIPE 3.7, `-I` (cache invalidated). Deviations: the order of the slots.
//! Units:   bytes.
//! Checked: `buffers_begin_where_they_are_asked_to`, `no_address_comes_again_within_the_cache`, `each_slot_has_its_number`,
//!          `pieces_follow_one_another`; `cold_buffers_carry_every_kind` of sonde-probe.

use std::ops::{Deref, DerefMut};

use sonde_sys::topology::{Cache, Topology};

use crate::{Error, Result, payload};
use sonde_measure::{Buffers, ColdBuffers, Knobs};

const LINE_BYTES: usize = 64;
/// An area is so many times the cache.
const CACHES: u64 = 2;
/// The part of the memory that an area may take.
const MEMORY_PART: u64 = 8;

/// The cache that cold buffers are to be out of.
///
/// # Errors
/// The host does not tell its size, or has too little memory beside it.
pub fn outrun() -> Result<Cache> {
    let refuse = |why: String| Err(Error::NoColdBuffers { why });
    let Some(cache) = Topology::here().last_level_cache(sonde_sys::cpu::current()) else {
        return refuse(
            "/sys/devices/system/cpu does not report the size of the last-level cache here".into(),
        );
    };
    match sonde_sys::host::memory_bytes() {
        Some(memory) if CACHES * cache.bytes > memory / MEMORY_PART => refuse(format!(
            "twice the last-level cache of {} MiB is more than an eighth of the memory of {} MiB",
            cache.bytes >> 20,
            memory >> 20
        )),
        _ => Ok(cache),
    }
}

/// Users' buffers as these knobs want them, where no cache is to have them.
///
/// # Errors
/// The caches of this machine are not known.
pub fn cold_buffers(knobs: &Knobs) -> Result<Option<ColdBuffers>> {
    if knobs.buffers == Buffers::Warm {
        return Ok(None);
    }
    let Cache { level, bytes } = outrun()?;
    Ok(Some(ColdBuffers {
        area_kib: (CACHES * bytes) >> 10,
        cache_level: level.into(),
        cache_kib: bytes >> 10,
    }))
}

fn area_bytes(knobs: &Knobs) -> Result<Option<usize>> {
    Ok(match knobs.buffers {
        Buffers::Warm => None,
        Buffers::Cold => Some((CACHES * outrun()?.bytes) as usize),
    })
}

/// Bytes at an offset from a line of 64; as the allocator gives them where none is asked for.
#[derive(Debug)]
pub struct Aligned {
    bytes: Vec<u8>,
    /// Where the first slot begins.
    origin: usize,
    begin: usize,
    len: usize,
    slot_bytes: usize,
    slots: usize,
    /// From a slot to the next.
    step: usize,
    slot: usize,
}

impl Aligned {
    /// A buffer with the content of `bytes`; cold, many, each with the number of its turn where `bytes` is a message.
    ///
    /// # Errors
    /// Cold buffers cannot be had here.
    pub fn new(bytes: Vec<u8>, knobs: &Knobs) -> Result<Self> {
        Ok(match area_bytes(knobs)? {
            Some(area) => Self::cold(&bytes, knobs, area),
            None => Self::warm(bytes, knobs),
        })
    }

    fn warm(bytes: Vec<u8>, knobs: &Knobs) -> Self {
        let len = bytes.len();
        let one = |bytes: Vec<u8>, begin: usize| Self {
            bytes,
            origin: begin,
            begin,
            len,
            slot_bytes: 0,
            slots: 1,
            step: 0,
            slot: 0,
        };
        let Some(align) = knobs.align else {
            return one(bytes, 0);
        };
        let mut spacious = vec![0; len + 2 * LINE_BYTES];
        let begin = spacious.as_ptr().align_offset(LINE_BYTES) + align as usize % LINE_BYTES;
        spacious[begin..begin + len].copy_from_slice(&bytes);
        one(spacious, begin)
    }

    fn cold(content: &[u8], knobs: &Knobs, area: usize) -> Self {
        let len = content.len();
        let align = knobs.align.unwrap_or(0) as usize % LINE_BYTES;
        let slot_bytes = (align + len).next_multiple_of(LINE_BYTES).max(LINE_BYTES);
        // One more, so that what lies between two uses of a slot is the whole area.
        let slots = area.div_ceil(slot_bytes) + 1;
        let bytes = vec![0; slots * slot_bytes + 2 * LINE_BYTES];
        let origin = bytes.as_ptr().align_offset(LINE_BYTES) + align;
        let mut all = Self {
            bytes,
            origin,
            begin: origin,
            len,
            slot_bytes,
            slots,
            step: jump(slots),
            slot: 0,
        };
        for sequence in 0..slots as u32 {
            all.copy_from_slice(content);
            payload::stamp(&mut all, sequence);
            all.turn();
        }
        all
    }

    #[inline]
    fn turn(&mut self) {
        // Both are below their sum's half of what a usize holds.
        self.slot += self.step;
        if self.slot >= self.slots {
            self.slot -= self.slots;
        }
        self.begin = self.origin + self.slot * self.slot_bytes;
    }

    /// Makes the buffer the message `sequence`. Cold it is that already, and stays untouched: messages are numbered from zero,
    /// each as often as [`used`](Self::used) was called before.
    #[inline]
    pub fn number(&mut self, sequence: u32) {
        if self.slots == 1 {
            payload::stamp(self, sequence);
        }
    }

    /// After the message `sequence` was sent from here: cold, it gets the number of its next turn, and the next is up.
    #[inline]
    pub fn used(&mut self, sequence: u32) {
        if self.slots > 1 {
            let next = sequence.wrapping_add(self.slots as u32);
            payload::stamp(self, next);
            self.turn();
        }
    }

    /// After a message was received here: cold, the next is up.
    #[inline]
    pub fn taken(&mut self) {
        if self.slots > 1 {
            self.turn();
        }
    }

    /// Whether what is sent from here is to be this very memory, and not where something was received.
    #[inline]
    pub fn is_cold(&self) -> bool {
        self.slots > 1
    }
}

/// From a slot to the next: some golden section of all, so that neighbours in time are none in space, and each comes once in
/// a round.
fn jump(slots: usize) -> usize {
    let divisor = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let begin = (slots as u128 * 618_034 / 1_000_000) as usize;
    let mut steps = begin.max(1)..slots.max(2);
    steps.find(|step| divisor(*step, slots) == 1).unwrap_or(1)
}

impl Deref for Aligned {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.begin..self.begin + self.len]
    }
}

impl DerefMut for Aligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.begin..self.begin + self.len]
    }
}

/// Room for what is received with a size that is not known before.
#[derive(Debug)]
pub struct Room {
    bytes: Aligned,
    piece_bytes: usize,
    at: usize,
    last: std::ops::Range<usize>,
}

impl Room {
    /// For pieces of at most `piece_bytes`.
    ///
    /// # Errors
    /// Cold buffers cannot be had here.
    pub fn new(piece_bytes: usize, knobs: &Knobs) -> Result<Self> {
        let area = area_bytes(knobs)?.unwrap_or(0);
        Ok(Self::of(piece_bytes, area, knobs))
    }

    fn of(piece_bytes: usize, area: usize, knobs: &Knobs) -> Self {
        // Written once, so that its pages are there.
        let fill = if area > 0 { 0x5a } else { 0 };
        let warm = Knobs {
            buffers: Buffers::Warm,
            ..knobs.clone()
        };
        Self {
            bytes: Aligned::warm(vec![fill; area + piece_bytes], &warm),
            piece_bytes,
            at: 0,
            last: 0..0,
        }
    }

    /// Where the next piece goes.
    #[inline]
    pub fn piece(&mut self) -> &mut [u8] {
        let end = self.at + self.piece_bytes;
        &mut self.bytes[self.at..end]
    }

    /// What of it was received; the next piece goes elsewhere where buffers are cold.
    #[inline]
    pub fn taken(&mut self, bytes: usize) -> &[u8] {
        let begin = self.at;
        let next = begin + bytes.next_multiple_of(LINE_BYTES).max(LINE_BYTES);
        self.at = if next + self.piece_bytes <= self.bytes.len() {
            next
        } else {
            0
        };
        self.last = begin..begin + bytes.min(self.piece_bytes);
        self.last()
    }

    /// What was received last.
    #[inline]
    pub fn last(&self) -> &[u8] {
        &self.bytes[self.last.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn knobs(align: Option<u32>) -> Knobs {
        Knobs {
            align,
            ..Knobs::default()
        }
    }

    #[test]
    fn buffers_begin_where_they_are_asked_to() {
        for align in [0, 1, 32, 63] {
            let knobs = knobs(Some(align));
            for size in [1, 63, 64, 1_000] {
                let mut buffer = Aligned::new(vec![7; size], &knobs).unwrap();
                assert_eq!(buffer.as_ptr() as usize % 64, align as usize);
                buffer[size - 1] = 8;
                assert_eq!((buffer.len(), buffer[size - 1]), (size, 8));
            }
        }
        let plain = Aligned::new(vec![1, 2], &Knobs::default()).unwrap();
        assert_eq!(plain[..], [1, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Between two uses of an address at least as much as the area holds was used, whatever sizes and alignments.
        #[test]
        fn no_address_comes_again_within_the_cache(
            size in 1_usize..9_000, align in proptest::option::of(0_u32..64), area in 1_usize..200_000,
        ) {
            let mut buffer = Aligned::cold(&payload::message(size), &knobs(align), area);
            let (mut last, mut used) = (BTreeMap::new(), 0_usize);
            for sequence in 0..3 * buffer.slots as u32 {
                let lines = buffer.as_ptr() as usize / LINE_BYTES..(buffer.as_ptr() as usize + size).div_ceil(LINE_BYTES);
                prop_assert_eq!(buffer.as_ptr() as usize % LINE_BYTES, align.unwrap_or(0) as usize);
                let count = lines.len();
                for line in lines {
                    if let Some(before) = last.insert(line, used) {
                        prop_assert!(used - before >= area, "{} of {area}", used - before);
                    }
                }
                used += count * LINE_BYTES;
                buffer.number(sequence);
                buffer.used(sequence);
            }
        }

        #[test]
        fn pieces_follow_one_another(
            sizes in proptest::collection::vec(0_usize..=3_000, 1..200), area in 1_usize..100_000,
        ) {
            let mut room = Room::of(3_000, area, &knobs(Some(0)));
            let (mut last, mut used) = (BTreeMap::new(), 0_usize);
            for size in sizes {
                let begin = room.piece().as_ptr() as usize;
                prop_assert_eq!(room.piece().len(), 3_000);
                room.piece()[..size].fill(9);
                prop_assert_eq!(room.taken(size), &vec![9; size][..]);
                let lines = begin / LINE_BYTES..(begin + size).div_ceil(LINE_BYTES);
                let count = lines.len();
                for line in lines {
                    if let Some(before) = last.insert(line, used) {
                        // The last piece of a round may have left room for one that is whole.
                        prop_assert!(used - before + 3_000 + LINE_BYTES >= area);
                    }
                }
                used += count.max(1) * LINE_BYTES;
            }
            let mut warm = Room::new(3_000, &Knobs::default()).unwrap();
            let first = warm.piece().as_ptr();
            prop_assert_eq!(warm.taken(100).len(), 100);
            prop_assert_eq!(warm.piece().as_ptr(), first);
        }
    }

    #[test]
    fn each_slot_has_its_number() {
        let mut buffer = Aligned::cold(&payload::message(100), &Knobs::default(), 6_000);
        assert!(buffer.is_cold());
        for sequence in 0..500 {
            buffer.number(sequence);
            assert_eq!(payload::verify(&buffer, sequence), Ok(()));
            buffer.used(sequence);
        }
        let mut warm = Aligned::new(payload::message(100), &Knobs::default()).unwrap();
        assert!(!warm.is_cold());
        let place = warm.as_ptr();
        warm.number(7);
        warm.used(7);
        warm.taken();
        assert_eq!((payload::verify(&warm, 7), warm.as_ptr()), (Ok(()), place));
    }

    #[test]
    fn slots_are_beyond_the_cache_of_this_machine() {
        let cold = Knobs {
            buffers: Buffers::Cold,
            ..Knobs::default()
        };
        match outrun() {
            Ok(cache) => {
                let buffer = Aligned::new(payload::message(4_096), &cold).unwrap();
                assert!((buffer.slots - 1) as u64 * 4_096 >= 2 * cache.bytes);
                let told = cold_buffers(&cold).unwrap().unwrap();
                assert_eq!(told.area_kib, CACHES * told.cache_kib);
            }
            Err(error) => {
                assert!(Aligned::new(vec![1], &cold).is_err() && !error.remedy().is_empty());
                println!("skipped: {error}");
            }
        }
        assert_eq!(cold_buffers(&Knobs::default()).unwrap(), None);
    }
}
