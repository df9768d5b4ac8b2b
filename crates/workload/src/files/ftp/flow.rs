//! A file on its way between a store and a data connection.
//!
//! Model:   a sender reads a copy buffer from its store when its disk has it, translates it, and hands it to the socket. Without read-ahead
//!          disk and network take turns: the disk is asked when the piece before was acknowledged. With it the disk is kept at work until it is
//!          so many bytes ahead, in whole pieces. A receiver fills a copy buffer from the socket, translates it, and waits for its disk to write
//!          it, or with `sync=no` for room in the disk's cache; what comes meanwhile is in the socket's receive buffer. Disks are
//!          [models](crate::files::disk), which are told the time.
//! Source:  requirements H35, H36, H38, H39.
//! Units:   bytes, picoseconds.
//! Checked: `a_disk_reads_ahead_as_far_as_it_may`, `without_read_ahead_it_waits_to_be_asked`, `stages_are_timed_apart`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use sonde_measure::files::{Files, Representation, Translation};
use sonde_sys::clock::monotonic_ns;
use sonde_units::{BitRate, Bytes, Instant, Span};

use super::data::{Broken, Data};
use super::translate::{self, FromNetwork};
use crate::files::disk::{self, Disk};
use crate::files::nfs::{Changes, Stable, Status};
use crate::files::pattern;
use crate::files::store::{File, Store};

/// What a transfer is like.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// The copy buffer.
    pub copy_bytes: usize,
    /// How far a disk reads ahead; 0: it does not.
    pub read_ahead_bytes: u64,
    /// As what files are moved.
    pub representation: Representation,
    /// How text is translated.
    pub translation: Translation,
    /// A piece is on the disk before the next is taken.
    pub is_sync: bool,
}

impl Terms {
    /// As a measurement sets them.
    pub const fn of(files: &Files) -> Self {
        Self {
            copy_bytes: files.ftp.copy_bytes as usize,
            read_ahead_bytes: files.ftp.read_ahead_bytes,
            representation: files.ftp.representation,
            translation: files.ftp.translation,
            is_sync: files.is_sync,
        }
    }

    /// What a file that is measured has in it from an offset on.
    pub fn content(&self, offset: u64, count: usize) -> &'static [u8] {
        match self.representation {
            Representation::Binary => pattern::piece(offset, count),
            Representation::Ascii => pattern::text(offset, count),
        }
    }
}

/// The model of a disk with these settings.
pub fn disk_terms(disk: Option<sonde_measure::files::Disk>) -> Option<disk::Terms> {
    let disk = disk?;
    Some(disk::Terms {
        rate: BitRate::new(disk.rate_bps)?,
        seek: Span::nanos(disk.seek_ns),
        cache: Bytes(disk.cache_bytes),
    })
}

/// Files, and the disk that who moves them waits for.
#[derive(Debug)]
pub struct Shelf<S> {
    parts: Mutex<Parts<S>>,
    disk: Option<disk::Terms>,
    began_ns: u64,
}

#[derive(Debug)]
struct Parts<S> {
    store: S,
    disk: Option<Disk>,
}

impl<S: Store> Shelf<S> {
    /// A store, and the model of its disk.
    pub fn new(store: S, disk: Option<disk::Terms>) -> Self {
        let parts = Parts {
            store,
            disk: disk.map(Disk::new),
        };
        Self {
            parts: Mutex::new(parts),
            disk,
            began_ns: monotonic_ns(),
        }
    }

    fn parts(&self) -> MutexGuard<'_, Parts<S>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the store.
    pub fn with<T>(&self, work: impl FnOnce(&mut S) -> T) -> T {
        work(&mut self.parts().store)
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(monotonic_ns().saturating_sub(self.began_ns))
    }

    fn rest_until(&self, at: Instant, data: &Data<'_>) -> Result<(), Broken> {
        let now = self.now();
        match at > now {
            true => data.rest(Duration::from_nanos(at.since(now).as_nanos())),
            false => Ok(()),
        }
    }

    /// An empty file of a name in the root.
    ///
    /// # Errors
    /// The store refuses.
    pub fn create(&self, directory: File, name: &[u8]) -> Result<File, Status> {
        let mut parts = self.parts();
        let file = parts.store.create(directory, name, false)?;
        parts.store.change(
            file,
            &Changes {
                size_bytes: Some(0),
                mode: None,
            },
        )?;
        if let Some(disk) = &mut parts.disk {
            disk.on_remove(file);
        }
        Ok(file)
    }

    /// Fills a file with what is measured.
    ///
    /// # Errors
    /// The store refuses.
    pub fn fill(&self, file: File, size_bytes: u64, terms: &Terms) -> Result<(), Status> {
        let mut offset = 0;
        while offset < size_bytes {
            let count = (size_bytes - offset).min(terms.copy_bytes as u64) as usize;
            let data = terms.content(offset, count);
            self.with(|store| store.write(file, offset, data, Stable::Unstable))?;
            offset += count as u64;
        }
        Ok(())
    }

    /// SHA-256 of a file, in hexadecimal.
    ///
    /// # Errors
    /// The store refuses.
    pub fn hash(&self, file: File) -> Result<String, Status> {
        let (mut hash, mut offset) = (Sha256::new(), 0);
        loop {
            let mut parts = self.parts();
            let (bytes, is_end) = parts.store.read(file, offset, 1 << 20)?;
            hash.update(bytes);
            offset += bytes.len() as u64;
            if is_end {
                break;
            }
        }
        Ok(hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }

    /// Sends a file; its bytes.
    ///
    /// # Errors
    /// The store or the connection fails.
    pub fn send(&self, file: File, data: &mut Data<'_>, terms: &Terms) -> Result<u64, Broken> {
        let size = self.with(|store| store.attributes(file))?.size_bytes;
        let mut ahead = Ahead::new(size, terms);
        let takes_turns = self.disk.is_some() && terms.read_ahead_bytes == 0;
        let mut translated = Vec::new();
        let mut copy = Vec::with_capacity(terms.copy_bytes);
        while let Some((offset, count)) = ahead.next() {
            if takes_turns {
                data.drain()?;
            }
            let now = self.now();
            let at = ahead.on_wanted(now, |offset, count| self.ask(now, file, offset, count));
            self.rest_until(at, data)?;
            copy.clear();
            let read = |store: &mut S| {
                copy.extend_from_slice(store.read(file, offset, count)?.0);
                Ok(())
            };
            self.with(read)
                .map_err(|status: Status| Broken::Store(status))?;
            let now = self.now();
            ahead.on_taken(|offset, count| self.ask(now, file, offset, count));
            match terms.representation {
                Representation::Binary => data.write_all(&copy)?,
                Representation::Ascii => {
                    translated.clear();
                    translate::to_network(terms.translation, &copy, &mut translated);
                    data.write_all(&translated)?;
                }
            }
        }
        Ok(size)
    }

    /// Asks the disk for a piece: when it is there.
    fn ask(&self, now: Instant, file: File, offset: u64, count: u32) -> Instant {
        let mut parts = self.parts();
        let disk = parts.disk.as_mut();
        disk.map_or(now, |disk| disk.on_read(now, file, offset, count.into()))
    }

    /// Receives a file; its bytes as they are stored.
    ///
    /// # Errors
    /// The store or the connection fails.
    pub fn receive(&self, file: File, data: &mut Data<'_>, terms: &Terms) -> Result<u64, Broken> {
        let mut translated = Vec::new();
        let mut from = FromNetwork::new(terms.translation);
        let mut copy = vec![0; terms.copy_bytes];
        let mut offset = 0;
        loop {
            let count = data.read_piece(&mut copy)?;
            let piece = match terms.representation {
                Representation::Binary => &copy[..count],
                Representation::Ascii => {
                    translated.clear();
                    from.push(&copy[..count], &mut translated);
                    if count < copy.len() {
                        from.finish(&mut translated);
                    }
                    &translated
                }
            };
            if !piece.is_empty() {
                let at = self.put(file, offset, piece, terms.is_sync)?;
                self.rest_until(at, data)?;
            }
            offset += piece.len() as u64;
            if count < copy.len() {
                return Ok(offset);
            }
        }
    }

    /// Writes a piece: when the disk lets the next one come.
    fn put(&self, file: File, offset: u64, piece: &[u8], is_sync: bool) -> Result<Instant, Status> {
        let now = self.now();
        let mut parts = self.parts();
        let stable = if is_sync {
            Stable::Sync
        } else {
            Stable::Unstable
        };
        parts.store.write(file, offset, piece, stable)?;
        let count = piece.len() as u64;
        let disk = parts.disk.as_mut();
        Ok(disk.map_or(now, |disk| disk.on_write(now, file, offset, count, is_sync)))
    }

    /// What reading a file takes here alone, in nanoseconds: by the disk's model, in a pass after another, or measured of the store.
    ///
    /// # Errors
    /// The store refuses.
    pub fn read_ns(&self, file: File, size_bytes: u64, terms: &Terms) -> Result<u64, Status> {
        if let Some(disk) = self.disk {
            let read = |disk: &mut Disk, now, offset, count| disk.on_read(now, FILE, offset, count);
            return Ok(model_ns(disk, size_bytes, terms, read));
        }
        let mut copy = Vec::with_capacity(terms.copy_bytes);
        let begin_ns = monotonic_ns();
        for (offset, count) in pieces(size_bytes, terms) {
            copy.clear();
            self.with(|store| {
                copy.extend_from_slice(store.read(file, offset, count)?.0);
                Ok::<_, Status>(())
            })?;
        }
        Ok(monotonic_ns() - begin_ns)
    }

    /// What writing a file takes here alone, in nanoseconds; as [`Self::read_ns`].
    ///
    /// # Errors
    /// The store refuses.
    pub fn write_ns(&self, file: File, size_bytes: u64, terms: &Terms) -> Result<u64, Status> {
        if let Some(disk) = self.disk {
            let is_sync = terms.is_sync;
            let write = |disk: &mut Disk, now, offset, count| {
                disk.on_write(now, FILE, offset, count, is_sync)
            };
            return Ok(model_ns(disk, size_bytes, terms, write));
        }
        let begin_ns = monotonic_ns();
        for (offset, count) in pieces(size_bytes, terms) {
            let piece = terms.content(offset, count as usize);
            let stable = if terms.is_sync {
                Stable::Sync
            } else {
                Stable::Unstable
            };
            self.with(|store| store.write(file, offset, piece, stable))?;
        }
        Ok(monotonic_ns() - begin_ns)
    }
}

/// The file of a model.
const FILE: File = File(2);

fn pieces(size_bytes: u64, terms: &Terms) -> impl Iterator<Item = (u64, u32)> {
    let copy = terms.copy_bytes as u64;
    (0..size_bytes.div_ceil(copy)).map(move |at| {
        let offset = at * copy;
        (offset, (size_bytes - offset).min(copy) as u32)
    })
}

/// Of two passes over a file that a disk does one piece after the other, the time of the second, in nanoseconds.
fn model_ns(
    terms: disk::Terms,
    size_bytes: u64,
    of: &Terms,
    mut one: impl FnMut(&mut Disk, Instant, u64, u64) -> Instant,
) -> u64 {
    let mut disk = Disk::new(terms);
    let mut pass = |begin: Instant| {
        pieces(size_bytes, of).fold(begin, |now, (offset, count)| {
            one(&mut disk, now, offset, count.into())
        })
    };
    let first = pass(Instant::START);
    pass(first).since(first).as_nanos()
}

/// What translating a file takes, in nanoseconds, in memory: for sending or of what was received. Of binary files there is none.
pub fn translate_ns(size_bytes: u64, terms: &Terms, is_sender: bool) -> Option<u64> {
    if terms.representation == Representation::Binary {
        return None;
    }
    let mut sent = Vec::new();
    let mut received = Vec::new();
    let mut from = FromNetwork::new(terms.translation);
    let (mut sending_ns, mut receiving_ns) = (0, 0);
    for (offset, count) in pieces(size_bytes, terms) {
        let begin_ns = monotonic_ns();
        sent.clear();
        translate::to_network(
            terms.translation,
            terms.content(offset, count as usize),
            &mut sent,
        );
        let half_ns = monotonic_ns();
        received.clear();
        from.push(&sent, &mut received);
        receiving_ns += monotonic_ns() - half_ns;
        sending_ns += half_ns - begin_ns;
    }
    Some(if is_sender { sending_ns } else { receiving_ns })
}

/// Sends so many bytes of no file.
///
/// # Errors
/// The connection fails.
pub fn send_bare(size_bytes: u64, data: &mut Data<'_>, terms: &Terms) -> Result<u64, Broken> {
    for (offset, count) in pieces(size_bytes, terms) {
        data.write_all(pattern::piece(offset, count as usize))?;
    }
    Ok(size_bytes)
}

/// Receives bytes of no file; how many.
///
/// # Errors
/// The connection fails.
pub fn receive_bare(data: &mut Data<'_>, terms: &Terms) -> Result<u64, Broken> {
    let mut copy = vec![0; terms.copy_bytes];
    let mut all = 0;
    loop {
        let count = data.read_piece(&mut copy)?;
        all += count as u64;
        if count < copy.len() {
            return Ok(all);
        }
    }
}

/// Pieces of a file, and which of them the disk was asked for.
#[derive(Debug)]
struct Ahead {
    size: u64,
    copy: u64,
    ahead: u64,
    /// Behind what was taken.
    taken: u64,
    /// Behind what was asked for.
    asked: u64,
    /// When what was asked for and not taken is there.
    under_way: VecDeque<Instant>,
}

impl Ahead {
    const fn new(size: u64, terms: &Terms) -> Self {
        Self {
            size,
            copy: terms.copy_bytes as u64,
            ahead: terms.read_ahead_bytes,
            taken: 0,
            asked: 0,
            under_way: VecDeque::new(),
        }
    }

    fn piece(&self, offset: u64) -> Option<(u64, u32)> {
        let count = self.size.saturating_sub(offset).min(self.copy);
        (count > 0).then_some((offset, count as u32))
    }

    /// The piece that comes next.
    fn next(&self) -> Option<(u64, u32)> {
        self.piece(self.taken)
    }

    /// It is wanted now: when it is there.
    fn on_wanted(&mut self, now: Instant, mut ask: impl FnMut(u64, u32) -> Instant) -> Instant {
        if self.under_way.is_empty() {
            self.ask(&mut ask);
        }
        self.under_way.front().copied().unwrap_or(now)
    }

    /// It was taken: the disk goes on.
    fn on_taken(&mut self, mut ask: impl FnMut(u64, u32) -> Instant) {
        self.under_way.pop_front();
        self.taken += self.piece(self.taken).map_or(0, |(_, count)| count.into());
        while self.asked < self.size && self.asked < self.taken.saturating_add(self.ahead) {
            self.ask(&mut ask);
        }
    }

    fn ask(&mut self, ask: &mut impl FnMut(u64, u32) -> Instant) {
        if let Some((offset, count)) = self.piece(self.asked) {
            self.under_way.push_back(ask(offset, count));
            self.asked += u64::from(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::store::Memory;

    const COPY: u64 = 8_192;
    /// 8 KiB at 16 Mb/s.
    const PIECE: Span = Span::micros(4_096);

    fn terms(read_ahead_bytes: u64) -> Terms {
        Terms {
            copy_bytes: COPY as usize,
            read_ahead_bytes,
            representation: Representation::Binary,
            translation: Translation::Block,
            is_sync: true,
        }
    }

    fn slow() -> disk::Terms {
        disk::Terms {
            rate: BitRate::mbit(16),
            seek: Span::ZERO,
            cache: Bytes(0),
        }
    }

    /// When each of six pieces is there where the socket holds each for `hold`.
    fn times(read_ahead: u64, hold: Span) -> Vec<Span> {
        let mut disk = Disk::new(slow());
        let mut ahead = Ahead::new(6 * COPY, &terms(read_ahead));
        let mut now = Instant::START;
        let mut times = Vec::new();
        while ahead.next().is_some() {
            let mut ask =
                |at: Instant, offset, count: u32| disk.on_read(at, FILE, offset, count.into());
            let there = ahead.on_wanted(now, |offset, count| ask(now, offset, count));
            now = now.max(there);
            times.push(now.since(Instant::START));
            ahead.on_taken(|offset, count| ask(now, offset, count));
            now = now.saturating_add(hold);
        }
        times
    }

    #[test]
    fn without_read_ahead_it_waits_to_be_asked() {
        let both = PIECE.saturating_mul(2);
        let wanted: Vec<Span> = (0..6).map(|at| PIECE + both.saturating_mul(at)).collect();
        assert_eq!(times(0, PIECE), wanted);
    }

    #[test]
    fn a_disk_reads_ahead_as_far_as_it_may() {
        // One piece ahead: while one is sent the next is read.
        let wanted: Vec<Span> = (1..7).map(|at| PIECE.saturating_mul(at)).collect();
        assert_eq!(times(1, PIECE), wanted);
        assert_eq!(times(COPY, PIECE), wanted);
        // Of a socket that is slower all but the first are there.
        let hold = PIECE.saturating_mul(3);
        let wanted: Vec<Span> = (0..6).map(|at| PIECE + hold.saturating_mul(at)).collect();
        assert_eq!(times(COPY, hold), wanted);
        // Never further than it may.
        let mut ahead = Ahead::new(10 * COPY, &terms(3 * COPY));
        let mut asked = 0;
        ahead.on_wanted(Instant::START, |_, _| {
            asked += 1;
            Instant::START
        });
        ahead.on_taken(|_, _| {
            asked += 1;
            Instant::START
        });
        assert_eq!((asked, ahead.taken, ahead.asked), (4, COPY, 4 * COPY));
    }

    #[test]
    fn stages_are_timed_apart() {
        let shelf = Shelf::new(Memory::new(1 << 20), Some(slow()));
        let file = shelf.create(File::ROOT, b"f").unwrap();
        shelf.fill(file, 10 * COPY, &terms(0)).unwrap();
        let wanted = PIECE.saturating_mul(10).as_nanos();
        assert_eq!(shelf.read_ns(file, 10 * COPY, &terms(0)), Ok(wanted));
        assert_eq!(shelf.write_ns(file, 10 * COPY, &terms(0)), Ok(wanted));
        // What fits the cache is not read again.
        let cached = disk::Terms {
            cache: Bytes(1 << 20),
            ..slow()
        };
        let shelf = Shelf::new(Memory::new(1 << 20), Some(cached));
        assert_eq!(shelf.read_ns(FILE, 10 * COPY, &terms(0)), Ok(0));
        assert_eq!(translate_ns(1 << 16, &terms(0), true), None);
        let text = Terms {
            representation: Representation::Ascii,
            ..terms(0)
        };
        assert!(translate_ns(1 << 16, &text, true) > Some(0));
        assert!(translate_ns(1 << 16, &text, false) > Some(0));
    }

    #[test]
    fn the_hash_is_that_of_the_bytes() {
        let shelf = Shelf::new(Memory::new(1 << 20), None);
        let file = shelf.create(File::ROOT, b"f").unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(shelf.hash(file).unwrap(), empty);
        shelf
            .with(|store| store.write(file, 0, b"abc", Stable::Sync))
            .unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(shelf.hash(file).unwrap(), abc);
    }
}
