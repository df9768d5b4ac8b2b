//! Ranks of one process: threads, or messengers that one thread drives in turns.
//!
//! Model:   each rank has a desk where frames are put whole, in the order in which they come; who puts more than a bound has
//!          to come again. Nothing is kept of pairs of ranks that never meet, so that a rank costs what it uses.
//! Units:   bytes.
//! Checked: `a_thousand_ranks_fit`, and the tests of the messenger.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sonde_measure::{LongMessages, Wait};

use super::engine::Limits;
use super::messenger::{Manner, Native};
use super::wires::{Broken, Wired, Wires};
use crate::Messenger;

const LIMITS: Limits = Limits {
    eager_bytes: 32 << 10,
    window_bytes: 256 << 10,
    envelopes: 4_096,
};
/// Bytes on a desk, from when on nothing more is taken.
const DESK_BYTES: usize = 4 << 20;
/// Bodies are put in pieces of this size, so that both copy at the same time.
const PIECE_BYTES: usize = 256 << 10;
const TIMEOUT: Duration = Duration::from_secs(20);

/// What has come to a rank: who sent it, and bytes.
type Piece = (u32, Vec<u8>);

#[derive(Debug, Default)]
struct Pile {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// Its rank sleeps until something comes.
    sleeps: bool,
}

#[derive(Debug, Default)]
struct Desk {
    pile: Mutex<Pile>,
    /// How many pieces are there, to be looked at without the lock.
    count: AtomicUsize,
    came: Condvar,
}

#[derive(Debug)]
struct Office {
    desks: Vec<Desk>,
    /// Whether a rank is lost; who, and why.
    is_lost: AtomicBool,
    lost: Mutex<Option<(u32, String)>>,
}

/// The streams of one rank of a process.
#[derive(Debug)]
pub struct Desks {
    rank: u32,
    office: Arc<Office>,
    /// What was taken from the own desk; of the first so many bytes were read.
    taken: VecDeque<Piece>,
    read: usize,
}

/// One rank of several in this process.
pub type Memory = Native<Desks>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wires for Desks {
    const LOOKS: u32 = 256;
    const LOOKS_BEFORE_SLEEP: u32 = 0;
    const SAYS_BYE: bool = false;

    fn push(&mut self, to: u32, head: &[u8], body: &[u8]) -> Wired<usize> {
        let desk = &self.office.desks[to as usize];
        let mut pile = lock(&desk.pile);
        if pile.bytes > DESK_BYTES {
            return Ok(0);
        }
        let body = &body[..body.len().min(PIECE_BYTES)];
        let bytes = head.len() + body.len();
        let mut piece = Vec::with_capacity(bytes);
        piece.extend_from_slice(head);
        piece.extend_from_slice(body);
        pile.pieces.push_back((self.rank, piece));
        pile.bytes += bytes;
        desk.count.store(pile.pieces.len(), Ordering::Release);
        if std::mem::take(&mut pile.sleeps) {
            desk.came.notify_one();
        }
        Ok(bytes)
    }

    fn pull(&mut self, from: u32, into: &mut [u8]) -> Wired<usize> {
        let Some((sender, piece)) = self.taken.front() else {
            return Ok(0);
        };
        if *sender != from {
            return Ok(0);
        }
        let count = into.len().min(piece.len() - self.read);
        into[..count].copy_from_slice(&piece[self.read..self.read + count]);
        self.read += count;
        if self.read == piece.len() {
            self.taken.pop_front();
            self.read = 0;
        }
        Ok(count)
    }

    fn next_head(&mut self, _: u32) -> Wired<Option<[u64; 3]>> {
        Ok(None)
    }

    fn look(&mut self, _: Option<u32>, _: bool, list: &mut Vec<u32>) -> Wired<()> {
        let desk = &self.office.desks[self.rank as usize];
        if desk.count.load(Ordering::Acquire) > 0 {
            let mut pile = lock(&desk.pile);
            self.taken.append(&mut pile.pieces);
            pile.bytes = 0;
            desk.count.store(0, Ordering::Relaxed);
        }
        if let Some((sender, _)) = self.taken.front() {
            list.push(*sender);
        }
        Ok(())
    }

    fn sleep(&mut self, nap: Duration, stuck: &[u32]) -> Wired<()> {
        if !self.taken.is_empty() {
            return Ok(());
        }
        // Nobody rings when there is room again.
        let nap = if stuck.is_empty() {
            nap
        } else {
            nap.min(Duration::from_micros(200))
        };
        let desk = &self.office.desks[self.rank as usize];
        let mut pile = lock(&desk.pile);
        if pile.pieces.is_empty() {
            pile.sleeps = true;
            let slept = desk.came.wait_timeout(pile, nap);
            slept.unwrap_or_else(PoisonError::into_inner).0.sleeps = false;
        }
        Ok(())
    }

    fn lost(&mut self) -> Option<Broken> {
        if !self.office.is_lost.load(Ordering::Acquire) {
            return None;
        }
        let lost = lock(&self.office.lost);
        lost.as_ref().map(|(rank, why)| Broken {
            rank: *rank,
            why: why.clone(),
        })
    }

    fn on_bye(&mut self, _: u32) {}

    fn tell_loss(&mut self, rank: u32, why: &str) -> bool {
        lock(&self.office.lost).get_or_insert_with(|| (rank, why.into()));
        self.office.is_lost.store(true, Ordering::Release);
        true
    }

    fn finish(&mut self) {}

    fn copy_from(&mut self, _: u32, _: u64, _: &mut [u8]) -> bool {
        false
    }

    fn copies(&self) -> bool {
        false
    }

    fn long_messages(&self) -> Option<LongMessages> {
        None
    }
}

impl Memory {
    /// The messengers of `ranks` ranks, which wait by sleeping for at most 20 s.
    pub fn all(ranks: usize) -> Vec<Self> {
        let manner = Manner {
            wait: Wait::Block,
            timeout: TIMEOUT,
        };
        Self::with(ranks, manner)
    }

    /// The messengers of `ranks` ranks.
    ///
    /// One thread may drive all of them, by the calls that do not wait.
    pub fn with(ranks: usize, manner: Manner) -> Vec<Self> {
        let office = Arc::new(Office {
            desks: (0..ranks).map(|_| Desk::default()).collect(),
            is_lost: AtomicBool::new(false),
            lost: Mutex::new(None),
        });
        let one = |rank| {
            let desks = Desks {
                rank: rank as u32,
                office: Arc::clone(&office),
                taken: VecDeque::new(),
                read: 0,
            };
            Self::new((rank, ranks), "memory", LIMITS, desks, manner)
        };
        (0..ranks).map(one).collect()
    }

    /// Runs `rank` on a thread for each of `ranks` ranks and gives what each returned, in order of rank.
    ///
    /// # Panics
    /// A rank panics.
    pub fn run<T: Send>(ranks: usize, rank: impl Fn(&mut Self) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let rank = &rank;
            let started: Vec<_> = Self::all(ranks)
                .into_iter()
                .map(|mut messenger| {
                    scope.spawn(move || {
                        let returned = rank(&mut messenger);
                        // A rank that has no more to say is not lost.
                        let finished = messenger.finish();
                        drop(finished);
                        returned
                    })
                })
                .collect();
            let ended = started.into_iter().map(|thread| thread.join());
            ended.map(std::result::Result::unwrap).collect()
        })
    }
}
