//! Rings of shared memory among all ranks of a job on one machine.
//!
//! Model:   each rank has one piece of memory, its inbox: a bell on which it sleeps, whoever moves something for it, and a ring
//!          for each other rank, which writes there. No call but the sleep waits: what there is no room for is not taken. A
//!          socket pair of each rank, one end of which is the rank's alone and the other end all others', tells by its
//!          hang-up that the rank is gone.
//! Units:   bytes; ranks from zero. Memory is had page by page when it is first written: a ring that carries nothing costs
//!          nothing.
//! Checked: `all_write_to_all_and_a_sleeper_is_woken`, `who_is_gone_is_seen_once`.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use sonde_sys::shared::Shared;

use crate::Result;
use crate::lookout::{Bell, Lookout, hung_up};
use crate::ring::{RING_BYTES, Reader, Writer};
use sonde_measure::Wait;

const PAGE_BYTES: usize = 4_096;
const BELL: usize = 0;
const RINGS: usize = PAGE_BYTES;

/// The size of an inbox for so many ranks.
pub const fn inbox_bytes(ranks: usize) -> usize {
    RINGS + ranks * ring_bytes()
}

const fn ring_bytes() -> usize {
    RING_BYTES.next_multiple_of(PAGE_BYTES)
}

/// One rank's ends of all its rings.
#[derive(Debug)]
pub struct Mesh {
    bell: Bell,
    /// By rank; none for this one.
    writers: Vec<Option<Writer>>,
    readers: Vec<Option<Reader>>,
    lives: Vec<Option<OwnedFd>>,
    /// The end of the socket pair by which others see that this rank is there.
    _life: Arc<OwnedFd>,
}

impl Mesh {
    /// The ends of rank `rank`: all inboxes, its own too, in order of rank, and with each other one the socket that tells of
    /// its rank's end; of this rank it is the end that is its alone.
    ///
    /// # Panics
    /// Ranks are not as many as inboxes, or an inbox has another size.
    pub fn new(rank: usize, inboxes: Vec<Shared>, mut lives: Vec<OwnedFd>, wait: Wait) -> Self {
        let ranks = inboxes.len();
        assert!(rank < ranks && lives.len() == ranks);
        let inboxes: Vec<_> = inboxes.into_iter().map(Arc::new).collect();
        for inbox in &inboxes {
            assert_eq!(inbox.size_bytes(), inbox_bytes(ranks));
        }
        let bell = |of: usize| Bell::new(inboxes[of].clone(), BELL);
        bell(rank).say(wait);
        let life = Arc::new(lives.remove(rank));
        let lookout = Lookout {
            wait,
            timeout: Duration::ZERO,
            control: life.clone(),
        };
        let place = |of: usize, from: usize| (inboxes[of].clone(), RINGS + from * ring_bytes(), 0);
        let other = |peer: usize| peer != rank;
        let writer = |to: usize| {
            let bells = [bell(rank), bell(to)];
            Writer::with(place(to, rank), lookout.clone(), bells)
        };
        let reader = |from: usize| {
            let bells = [bell(rank), bell(from)];
            Reader::with(place(rank, from), lookout.clone(), bells)
        };
        let mut lives: Vec<_> = lives.into_iter().map(Some).collect();
        lives.insert(rank, None);
        Self {
            bell: bell(rank),
            writers: (0..ranks).map(|to| other(to).then(|| writer(to))).collect(),
            readers: (0..ranks)
                .map(|from| other(from).then(|| reader(from)))
                .collect(),
            lives,
            _life: life,
        }
    }

    /// Writes of two parts, one behind the other, what rank `to` has room for; how many bytes.
    ///
    /// # Errors
    /// The kernel has no futex to wake it by.
    ///
    /// # Panics
    /// `to` is no other rank.
    #[inline]
    pub fn offer(&mut self, to: usize, head: &[u8], body: &[u8]) -> Result<usize> {
        let writer = self.writers[to].as_mut().expect("another rank");
        writer.offer(head, body)
    }

    /// As [`offer`](Self::offer), of a head that is three words, each little-endian; all or nothing where both fit a line.
    ///
    /// # Errors
    /// As of `offer`.
    ///
    /// # Panics
    /// As of `offer`.
    #[inline]
    pub fn offer_words(&mut self, to: usize, head: [u64; 3], body: &[u8]) -> Result<usize> {
        let writer = self.writers[to].as_mut().expect("another rank");
        writer.offer_words(head, body)
    }

    /// The first three words of what rank `from` has written next, if that begins a line and was not read in part.
    ///
    /// # Errors
    /// It wrote what cannot be.
    ///
    /// # Panics
    /// As of [`read`](Self::read).
    #[inline]
    pub fn take_words(&mut self, from: usize) -> Result<Option<[u64; 3]>> {
        self.readers[from]
            .as_mut()
            .expect("another rank")
            .take_words()
    }

    /// Reads what rank `from` has written; how many bytes.
    ///
    /// # Errors
    /// It wrote what cannot be.
    ///
    /// # Panics
    /// `from` is no other rank.
    #[inline]
    pub fn read(&mut self, from: usize, into: &mut [u8]) -> Result<usize> {
        self.readers[from]
            .as_mut()
            .expect("another rank")
            .read(into)
    }

    /// The ranks that have written something.
    #[inline]
    pub fn written(&self) -> impl Iterator<Item = usize> {
        let readers = self.readers.iter().enumerate();
        readers.filter_map(|(from, reader)| reader.as_ref()?.is_next().then_some(from))
    }

    /// Sleeps until something is written here, or one of `stuck` has room again, at most so long. Returns also for no
    /// reason.
    ///
    /// # Errors
    /// The kernel has no futex.
    pub fn sleep(&mut self, nap: Duration, stuck: impl IntoIterator<Item = usize>) -> Result<()> {
        let Self {
            bell,
            writers,
            readers,
            ..
        } = self;
        bell.sleep(nap, || {
            let is_written = readers.iter().flatten().any(Reader::is_next);
            let mut stuck = stuck.into_iter();
            is_written || stuck.any(|to| writers[to].as_mut().is_some_and(Writer::is_roomy))
        })
    }

    /// A rank that is gone and was not left out before.
    pub fn gone(&self) -> Option<usize> {
        let there = || self.lives.iter().enumerate();
        let sockets: Vec<_> = there()
            .filter_map(|(_, life)| life.as_ref().map(AsFd::as_fd))
            .collect();
        let at = hung_up(&sockets)?;
        let mut ranks = there().filter(|(_, life)| life.is_some());
        ranks.nth(at).map(|(rank, _)| rank)
    }

    /// It is known that this rank goes: its end tells nothing.
    pub fn leave_out(&mut self, rank: usize) {
        self.lives[rank] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    const RANKS: usize = 3;

    fn meshes(wait: Wait) -> Vec<Mesh> {
        let inboxes: Vec<_> = (0..RANKS)
            .map(|_| Shared::create(inbox_bytes(RANKS)).unwrap())
            .collect();
        let pairs: Vec<_> = (0..RANKS).map(|_| UnixStream::pair().unwrap()).collect();
        let one = |rank: usize| {
            let opened = inboxes
                .iter()
                .map(|(_, fd)| Shared::open(fd, inbox_bytes(RANKS)).unwrap());
            let lives = pairs.iter().enumerate().map(|(of, (own, others))| {
                let end = if of == rank { own } else { others };
                OwnedFd::from(end.try_clone().unwrap())
            });
            Mesh::new(rank, opened.collect(), lives.collect(), wait)
        };
        (0..RANKS).map(one).collect()
    }

    /// Each rank writes many lengths in two parts to each other one and reads theirs, sleeping where it cannot go on.
    #[test]
    fn all_write_to_all_and_a_sleeper_is_woken() {
        const BYTES: usize = 3_000_000;
        let byte = |from: usize, at: usize| (at * 3 + at / 509 + from * 71) as u8;
        let begin = Instant::now();
        let nap = Duration::from_secs(5);
        std::thread::scope(|scope| {
            for (rank, mut mesh) in meshes(Wait::Block).into_iter().enumerate() {
                scope.spawn(move || {
                    let all: Vec<u8> = (0..BYTES).map(|at| byte(rank, at)).collect();
                    let mut written = [0; RANKS];
                    let mut read = [0; RANKS];
                    written[rank] = BYTES;
                    read[rank] = BYTES;
                    let mut buffer = vec![0; 40_000];
                    while (written, read) != ([BYTES; RANKS], [BYTES; RANKS]) {
                        let mut moved = false;
                        for (to, at) in written.into_iter().enumerate() {
                            let count = (1 + at * 31 % 70_000).min(BYTES - at);
                            let (head, body) = all[at..at + count].split_at(count.min(24));
                            if count > 0 {
                                let took = mesh.offer(to, head, body).unwrap();
                                written[to] += took;
                                moved |= took > 0;
                            }
                        }
                        let list: Vec<_> = mesh.written().collect();
                        for from in list {
                            let got = mesh.read(from, &mut buffer).unwrap();
                            for (at, found) in (read[from]..).zip(&buffer[..got]) {
                                assert_eq!(*found, byte(from, at), "byte {at} of rank {from}");
                            }
                            read[from] += got;
                            moved = true;
                        }
                        if !moved {
                            let stuck = (0..RANKS).filter(|to| written[*to] < BYTES);
                            mesh.sleep(nap, stuck).unwrap();
                        }
                    }
                });
            }
        });
        // A wake-up that is lost costs a nap; each rank sleeps hundreds of times.
        assert!(begin.elapsed() < 10 * nap);
    }

    #[test]
    fn who_is_gone_is_seen_once() {
        let mut meshes = meshes(Wait::Poll);
        let mut two = meshes.pop().unwrap();
        assert_eq!(two.gone(), None);
        drop(meshes.remove(0));
        assert_eq!(two.gone(), Some(0));
        two.leave_out(0);
        assert_eq!(two.gone(), None);
        drop(meshes);
        assert_eq!(two.gone(), Some(1));
    }
}
