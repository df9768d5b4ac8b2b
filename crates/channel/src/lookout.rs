//! Waiting for the other process of shared memory, until it moves, ends or dies.
//!
//! Model:   who waits by `poll` looks at a word again and again, at the clock once in a while, and once a millisecond at the
//!          control socket, whose hang-up says that the other process is gone. Who waits by `block` sleeps on a bell, a word
//!          of its own: it says that it sleeps, looks once more, and lets the kernel put it to sleep only while the word
//!          still says so. The other one moves first and then reads the bell; sequentially consistent fences on both sides
//!          put one of the two looks after the other's move, so that no wake-up is lost. Each says at the begin whether it
//!          ever sleeps: two that poll pay neither fence nor call.
//! Source:  the store buffer case of the fences of C++20 [atomics.fences] (Dekker's pattern); futex(2).
//! Checked: `no_wake_up_is_lost`, `the_dead_are_noticed`; `shm`, `every_wait_mixes_with_every_other`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sonde_sys::shared::{self, Shared};

use crate::Result;
use sonde_measure::Wait;

/// Looks at a word between two looks at the clock: some 10 µs.
const LOOKS: u32 = 1_024;
/// Between two looks at the control socket while polling.
const ALIVE_AFTER: Duration = Duration::from_millis(1);
/// A sleep is cut into such pieces, to see whether the other process lives.
const NAP: Duration = Duration::from_millis(50);

/// A word on which one side sleeps and that the other rings; beside it, whether that side ever sleeps.
#[derive(Debug, Clone)]
pub(crate) struct Bell {
    memory: Arc<Shared>,
    at: usize,
    /// Known once it has been said.
    sleeps: Option<bool>,
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const POLLS: u32 = 1;
const SLEEPS: u32 = 2;

impl Bell {
    /// The bell whose words are at `at`, in a line that only they use.
    pub(crate) fn new(memory: Arc<Shared>, at: usize) -> Self {
        Self {
            memory,
            at,
            sleeps: None,
        }
    }

    fn word(&self) -> &AtomicU32 {
        self.memory.word(self.at)
    }

    fn manner(&self) -> &AtomicU32 {
        self.memory.word(self.at + 4)
    }

    /// Its owner says how it waits, before it does anything else.
    pub(crate) fn say(&self, wait: Wait) {
        let manner = match wait {
            Wait::Poll => POLLS,
            Wait::Block => SLEEPS,
        };
        self.manner().store(manner, Ordering::SeqCst);
    }

    /// The owner sleeps at most so long, unless there is something `ready`, until it is rung. Returns also for no reason.
    pub(crate) fn sleep(&self, nap: Duration, ready: impl FnOnce() -> bool) -> Result<()> {
        self.word().store(ASLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let slept = if ready() {
            Ok(())
        } else {
            shared::sleep(self.word(), ASLEEP, nap)
        };
        self.word().store(AWAKE, Ordering::Relaxed);
        Ok(slept?)
    }

    /// Wakes the owner if it sleeps; to be called after what it waits for was stored.
    #[inline]
    pub(crate) fn ring(&mut self) -> Result<()> {
        if self.sleeps == Some(false) {
            return Ok(());
        }
        self.ring_who_may_sleep()
    }

    fn ring_who_may_sleep(&mut self) -> Result<()> {
        self.sleeps = match self.manner().load(Ordering::SeqCst) {
            POLLS => Some(false),
            SLEEPS => Some(true),
            // Not said yet: as if it slept.
            _ => None,
        };
        fence(Ordering::SeqCst);
        if self.word().load(Ordering::Relaxed) == ASLEEP
            && self.word().swap(AWAKE, Ordering::SeqCst) == ASLEEP
        {
            shared::wake(self.word())?;
        }
        Ok(())
    }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// What was waited for is there.
    Ready,
    /// It will not come: the other side has ended.
    Ended,
    /// It will not come: the other process is gone.
    Gone,
    /// It did not come within the timeout.
    Silence,
}

/// How one side waits for the other.
#[derive(Debug, Clone)]
pub(crate) struct Lookout {
    pub(crate) wait: Wait,
    pub(crate) timeout: Duration,
    /// The other process holds its other end.
    pub(crate) control: Arc<OwnedFd>,
}

impl Lookout {
    /// Waits until `ready`, or `ended`, which is looked at less often.
    #[inline]
    pub(crate) fn wait(
        &self,
        bell: &Bell,
        mut ready: impl FnMut() -> bool,
        ended: impl FnMut() -> bool,
    ) -> Result<Waited> {
        if ready() {
            return Ok(Waited::Ready);
        }
        match self.wait {
            Wait::Poll => self.spin(ready, ended),
            Wait::Block => self.sleep(bell, ready, ended),
        }
    }

    fn spin(
        &self,
        mut ready: impl FnMut() -> bool,
        mut ended: impl FnMut() -> bool,
    ) -> Result<Waited> {
        let mut since: Option<Instant> = None;
        let mut alive_at = Duration::ZERO;
        loop {
            // No pause instruction: the other side has a CPU of its own, and a pause is as long as the way of a line.
            for _ in 0..LOOKS {
                if ready() {
                    return Ok(Waited::Ready);
                }
            }
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            let mut end = None;
            if ended() {
                end = Some(Waited::Ended);
            } else if waited >= alive_at + ALIVE_AFTER {
                alive_at = waited;
                end = self.is_gone()?.then_some(Waited::Gone);
            }
            if let Some(end) = end {
                // What was done before the end counts.
                return Ok(if ready() { Waited::Ready } else { end });
            }
            if waited >= self.timeout {
                return Ok(Waited::Silence);
            }
        }
    }

    fn sleep(
        &self,
        bell: &Bell,
        mut ready: impl FnMut() -> bool,
        mut ended: impl FnMut() -> bool,
    ) -> Result<Waited> {
        let mut since: Option<Instant> = None;
        loop {
            bell.word().store(ASLEEP, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let mut found = None;
            if ready() {
                found = Some(Waited::Ready);
            } else if ended() {
                found = Some(Waited::Ended);
            } else if let Some(since) = since {
                let waited = since.elapsed();
                if waited >= NAP && self.is_gone()? {
                    found = Some(Waited::Gone);
                } else if waited >= self.timeout {
                    found = Some(Waited::Silence);
                }
            }
            if let Some(found) = found {
                bell.word().store(AWAKE, Ordering::Relaxed);
                return Ok(if ready() { Waited::Ready } else { found });
            }
            since.get_or_insert_with(Instant::now);
            shared::sleep(bell.word(), ASLEEP, NAP.min(self.timeout))?;
        }
    }

    fn is_gone(&self) -> Result<bool> {
        Ok(hung_up(&[self.control.as_fd()]).is_some())
    }
}

/// The first of these sockets whose other end is gone.
pub(crate) fn hung_up(sockets: &[BorrowedFd<'_>]) -> Option<usize> {
    let mut list: Vec<PollFd<'_>> = sockets
        .iter()
        .map(|socket| PollFd::from_borrowed_fd(*socket, PollFlags::empty()))
        .collect();
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if poll(&mut list, Some(&at_once)).unwrap_or(0) == 0 {
        return None;
    }
    list.iter().position(|socket| {
        let seen = socket.revents();
        seen.intersects(PollFlags::HUP | PollFlags::ERR)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::Ordering::{Acquire, Release};

    fn lookout(wait: Wait, timeout: Duration) -> (Lookout, UnixStream) {
        let (one, other) = UnixStream::pair().unwrap();
        let control = Arc::new(OwnedFd::from(one));
        let lookout = Lookout {
            wait,
            timeout,
            control,
        };
        (lookout, other)
    }

    /// Two threads that count in turns, each waiting for the other, in every mix of manners.
    #[test]
    fn no_wake_up_is_lost() {
        const TURNS: u32 = 20_000;
        for (wait_one, wait_other) in [
            (Wait::Block, Wait::Block),
            (Wait::Block, Wait::Poll),
            (Wait::Poll, Wait::Block),
        ] {
            let (memory, fd) = Shared::create(4_096).unwrap();
            let memory = Arc::new(memory);
            let mapped = Arc::new(Shared::open(&fd, 4_096).unwrap());
            let (look_one, look_other) = {
                let timeout = Duration::from_secs(60);
                let (one, other) = UnixStream::pair().unwrap();
                let lookout = |wait, socket: UnixStream| Lookout {
                    wait,
                    timeout,
                    control: Arc::new(socket.into()),
                };
                (lookout(wait_one, one), lookout(wait_other, other))
            };
            // Words: bells at 0 and 64, counts at 128 and 192.
            let play = |memory: Arc<Shared>, look: Lookout, me: usize| {
                let own = Bell::new(memory.clone(), 64 * me);
                let mut peer = Bell::new(memory.clone(), 64 * (1 - me));
                own.say(look.wait);
                for turn in 1..=TURNS {
                    if me == 0 {
                        memory.word(128).store(turn, Release);
                        peer.ring().unwrap();
                    }
                    let awaited = memory.word(if me == 0 { 192 } else { 128 });
                    let waited = look.wait(&own, || awaited.load(Acquire) == turn, || false);
                    assert_eq!(waited.unwrap(), Waited::Ready, "turn {turn}");
                    if me == 1 {
                        memory.word(192).store(turn, Release);
                        peer.ring().unwrap();
                    }
                }
            };
            let begin = Instant::now();
            std::thread::scope(|scope| {
                scope.spawn(|| play(memory, look_one, 0));
                scope.spawn(|| play(mapped, look_other, 1));
            });
            // One lost wake-up in a hundred would cost 200 naps.
            assert!(begin.elapsed() < NAP * TURNS / 100, "{wait_one:?}");
        }
    }

    #[test]
    fn the_dead_are_noticed() {
        for wait in [Wait::Poll, Wait::Block] {
            let (memory, _fd) = Shared::create(4_096).unwrap();
            let bell = Bell::new(Arc::new(memory), 0);
            let (look, other) = lookout(wait, Duration::from_millis(30));
            let silent = look.wait(&bell, || false, || false).unwrap();
            assert_eq!(silent, Waited::Silence, "{wait:?}");
            assert_eq!(
                look.wait(&bell, || false, || true).unwrap(),
                Waited::Ended,
                "{wait:?}"
            );
            let (look, other_end) = lookout(wait, Duration::from_secs(60));
            drop((other, other_end));
            let begin = Instant::now();
            assert_eq!(
                look.wait(&bell, || false, || false).unwrap(),
                Waited::Gone,
                "{wait:?}"
            );
            assert!(begin.elapsed() < Duration::from_secs(30));
        }
    }
}
