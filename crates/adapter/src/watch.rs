//! A watch over calls that a library may not come back from: it ends the process when their time is up.
//!
//! Model:   a call is marked by one number when it begins (odd) and when it ends (even): two stores. A thread looks every
//!          quarter of a second whether the number is the same odd one for longer than the timeout and the call's bytes at
//!          1 Mbit/s. Then it says so on stderr and the process ends with code 2, which the library's own start (mpirun,
//!          pvmd) or the bootstrap takes for the loss of this rank. No library offers another way out of a call that
//!          blocks.
//! Checked: `tests/loading.rs::a_library_that_hangs_is_ended`.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::abi::NS_A_BYTE;

/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(250);
/// As of a command that could not measure.
const EXIT: i32 = 2;

/// What is watched.
#[derive(Debug, Clone, Copy)]
pub enum Doing {
    Open = 0,
    Send = 1,
    Recv = 2,
    Exchange = 3,
    Wait = 4,
    Split = 5,
    Collective = 6,
    Finish = 7,
}

const NAMES: [&str; 8] = [
    "its ranks began",
    "sending",
    "receiving",
    "exchanging",
    "waiting for a transfer",
    "splitting a group",
    "a collective call",
    "its ranks ended",
];

#[derive(Default)]
struct Mark {
    /// Odd within a call.
    number: AtomicU64,
    doing: AtomicUsize,
    bytes: AtomicU64,
    /// Nothing is watched any more.
    over: AtomicBool,
}

/// The watch of one rank.
pub struct Watch {
    mark: Arc<Mark>,
}

impl Watch {
    /// Begins to watch the calls of `library`.
    pub fn new(library: &str, timeout: Duration) -> Self {
        let mark = Arc::new(Mark::default());
        let seen = Arc::downgrade(&mark);
        let library = library.to_owned();
        let thread = std::thread::Builder::new().name("sonde-watch".into());
        // Without a thread the calls are as bounded as the library makes them.
        drop(thread.spawn(move || look(&seen, &library, timeout)));
        Self { mark }
    }

    /// Makes a call that moves `bytes` under watch.
    pub fn around<T>(&self, doing: Doing, bytes: u64, call: impl FnOnce() -> T) -> T {
        let mark = &self.mark;
        mark.doing.store(doing as usize, Ordering::Relaxed);
        mark.bytes.store(bytes, Ordering::Relaxed);
        let number = mark.number.load(Ordering::Relaxed);
        mark.number.store(number + 1, Ordering::Release);
        let given = call();
        mark.number.store(number + 2, Ordering::Release);
        given
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.mark.over.store(true, Ordering::Relaxed);
    }
}

fn look(seen: &Weak<Mark>, library: &str, timeout: Duration) {
    let mut last = (0, Instant::now());
    loop {
        std::thread::sleep(LOOK);
        let Some(mark) = seen.upgrade() else { return };
        if mark.over.load(Ordering::Relaxed) {
            return;
        }
        let number = mark.number.load(Ordering::Acquire);
        if number % 2 == 0 || number != last.0 {
            last = (number, Instant::now());
            continue;
        }
        let bytes = mark.bytes.load(Ordering::Relaxed);
        let bound = timeout + Duration::from_nanos(bytes.saturating_mul(NS_A_BYTE));
        // Those who bound themselves come back first.
        if last.1.elapsed() > bound + bound / 4 {
            let doing = NAMES[mark.doing.load(Ordering::Relaxed) % NAMES.len()];
            // Where nobody can read it, the process ends all the same.
            drop(writeln!(
                std::io::stderr(),
                "sonde: {library} did not come back for {bound:?} while {doing}: this rank ends; are all other ranks running, and \
                 reachable? on a network so slow send less at once: smaller messages"
            ));
            // SAFETY: ends the process at once; handlers of the library, which hangs, are not run.
            unsafe { libc::_exit(EXIT) };
        }
    }
}
