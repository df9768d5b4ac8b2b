//! A disk, as far as it keeps a server waiting.
//!
//! Model:   one arm does what it is given in turn: a seek where a piece does not follow the one before in the same file, then the
//!          piece at the disk's rate. What was read or written last is in a cache of whole blocks, the oldest of which go first: a
//!          read within it takes no time. A synchronous write is done when the arm is; an unstable one as soon as the cache has room
//!          for all that is not yet on the disk, and a commit when the last of its file is. No real disk is touched: only the
//!          completions of a server are delayed by it.
//! Source:  requirement S44 and issue of files; the rates of disks in studies are sustained ones, without a seek.
//! Units:   bytes, picoseconds; a time is rounded up.
//! Checked: `a_stream_goes_at_the_rate`, `seeks_are_paid_where_order_ends`, `writes_behind_wait_for_room_alone`.

use super::store::File;
use sonde_units::{BitRate, Bytes, Instant, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the cache is kept in.
const BLOCK_BYTES: u64 = 8_192;

/// How fast a disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Its sustained rate.
    pub rate: BitRate,
    /// What a move of its arm takes.
    pub seek: Span,
    /// The server's memory for it.
    pub cache: Bytes,
}

/// A disk at work.
#[derive(Debug)]
pub struct Disk {
    terms: Terms,
    /// The arm is done with all it was given.
    free_at: Instant,
    /// Behind the last piece.
    at: Option<(File, u64)>,
    cached: BTreeSet<(File, u64)>,
    ages: VecDeque<(File, u64)>,
    /// When the last write of a file is on the disk.
    written: BTreeMap<File, Instant>,
}

impl Disk {
    /// One with nothing cached, whose arm is idle.
    pub const fn new(terms: Terms) -> Self {
        Self {
            terms,
            free_at: Instant::START,
            at: None,
            cached: BTreeSet::new(),
            ages: VecDeque::new(),
            written: BTreeMap::new(),
        }
    }

    /// When a read of `count` bytes from `offset` is done.
    pub fn on_read(&mut self, now: Instant, file: File, offset: u64, count: u64) -> Instant {
        if count == 0 || self.is_cached(file, offset, count) {
            return now;
        }
        let done = self.on_arm(now, file, offset, count);
        self.keep(file, offset, count);
        done
    }

    /// When a write is done: of a synchronous one when it is on the disk.
    pub fn on_write(
        &mut self,
        now: Instant,
        file: File,
        offset: u64,
        count: u64,
        is_sync: bool,
    ) -> Instant {
        let done = self.on_arm(now, file, offset, count);
        self.keep(file, offset, count);
        self.written.retain(|_, at| *at > now);
        self.written.insert(file, done);
        if is_sync {
            return done;
        }
        // It is in the cache as soon as all that is not on the disk fits it.
        let room = self.terms.rate.time(self.terms.cache);
        let drained = Instant::from_picos(done.as_picos().saturating_sub(room.as_picos()));
        drained.max(now)
    }

    /// When all that was written to a file is on the disk.
    pub fn on_commit(&mut self, now: Instant, file: File) -> Instant {
        self.written.remove(&file).map_or(now, |at| at.max(now))
    }

    /// A file is gone, with what was cached of it.
    pub fn on_remove(&mut self, file: File) {
        self.written.remove(&file);
        self.cached.retain(|(of, _)| *of != file);
        self.ages.retain(|(of, _)| *of != file);
    }

    fn on_arm(&mut self, now: Instant, file: File, offset: u64, count: u64) -> Instant {
        let mut begin = self.free_at.max(now);
        if self.at != Some((file, offset)) {
            begin = begin.saturating_add(self.terms.seek);
        }
        self.free_at = begin.saturating_add(self.terms.rate.time(Bytes(count)));
        self.at = Some((file, offset.saturating_add(count)));
        self.free_at
    }

    fn blocks(offset: u64, count: u64) -> std::ops::RangeInclusive<u64> {
        let last = offset.saturating_add(count.saturating_sub(1));
        offset / BLOCK_BYTES..=last / BLOCK_BYTES
    }

    fn is_cached(&self, file: File, offset: u64, count: u64) -> bool {
        Self::blocks(offset, count).all(|block| self.cached.contains(&(file, block)))
    }

    fn keep(&mut self, file: File, offset: u64, count: u64) {
        let most = usize::try_from(self.terms.cache.0 / BLOCK_BYTES).unwrap_or(usize::MAX);
        if most == 0 || count == 0 {
            return;
        }
        for block in Self::blocks(offset, count) {
            if self.cached.insert((file, block)) {
                self.ages.push_back((file, block));
            }
        }
        while self.ages.len() > most {
            if let Some(oldest) = self.ages.pop_front() {
                self.cached.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: File = File(2);
    const OTHER: File = File(3);

    fn disk(cache: u64) -> Disk {
        Disk::new(Terms {
            rate: BitRate::mbit(16),
            seek: Span::millis(10),
            cache: Bytes(cache),
        })
    }

    /// 8 KiB at 16 Mb/s.
    const PIECE: Span = Span::micros(4_096);

    #[test]
    fn a_stream_goes_at_the_rate() {
        let mut disk = disk(0);
        let mut now = Instant::START;
        for at in 0..100 {
            now = disk.on_read(now, FILE, at * 8_192, 8_192);
        }
        let wanted = Span::millis(10).saturating_add(PIECE.saturating_mul(100));
        assert_eq!(now.since(Instant::START), wanted);
    }

    #[test]
    fn seeks_are_paid_where_order_ends() {
        let mut disk = disk(0);
        let first = disk.on_read(Instant::START, FILE, 0, 8_192);
        let next = disk.on_read(first, FILE, 8_192, 8_192);
        assert_eq!(next.since(first), PIECE);
        let other = disk.on_read(next, OTHER, 16_384, 8_192);
        assert_eq!(other.since(next), PIECE.saturating_add(Span::millis(10)));
        let back = disk.on_read(other, FILE, 16_384, 8_192);
        assert_eq!(back.since(other), PIECE.saturating_add(Span::millis(10)));
    }

    #[test]
    fn what_was_read_last_is_cached() {
        let mut disk = disk(2 * 8_192);
        let mut now = Instant::START;
        for at in [0, 1, 2] {
            now = disk.on_read(now, FILE, at * 8_192, 8_192);
        }
        assert_eq!(disk.on_read(now, FILE, 8_192, 16_384), now);
        assert!(disk.on_read(now, FILE, 0, 8_192) > now, "the oldest went");
        // Of these two blocks the first is cached alone.
        assert!(disk.on_read(now, FILE, 2 * 8_192, 16_384) > now);
    }

    #[test]
    fn writes_behind_wait_for_room_alone() {
        let mut disk = disk(4 * 8_192);
        let start = Instant::START;
        let done: Vec<Span> = (0..8)
            .map(|at| {
                disk.on_write(start, FILE, at * 8_192, 8_192, false)
                    .since(start)
            })
            .collect();
        // One seek of 10 ms is more than two pieces: it takes room too.
        assert_eq!(done[0], Span::ZERO);
        assert_eq!(done[7].saturating_sub(done[6]), PIECE);
        let all = Span::millis(10).saturating_add(PIECE.saturating_mul(8));
        assert_eq!(disk.on_commit(start, FILE).since(start), all);
        // A second one has nothing to wait for.
        assert_eq!(disk.on_commit(start, FILE), start);
        let sync = disk
            .on_write(start, FILE, 8 * 8_192, 8_192, true)
            .since(start);
        assert_eq!(sync, all.saturating_add(PIECE));
    }
}
