//! What two cores can do at best: how long a cache line takes from one to the other, and how fast one hands bytes to the other
//! through memory. `xtask floor` prints both.
//!
//! Model:   two threads, each bound to a CPU of its own. A line: each stores into a word of its own what it saw in the
//!          other's, half of a round trip, the median over the parts of a batch; the state of the machine is the least of
//!          [`BATCHES`]. A handing over, which is the floor of a stream: one copies messages from memory of its own into
//!          shared memory while the other copies them out into memory of its own, piece by piece, each piece told by
//!          one word and given back by another; the messages and the receiver's memory are as large as those of sonde's
//!          stream, so that they lie in the same caches; of the sizes of pieces and of shared memory the fastest counts.
//! Units:   nanoseconds; bits a second.
//! Checked: `floors_are_there`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use sonde_sys::shared::Shared;

use crate::bench::row::median;

/// A batch is so many parts of so many round trips: a part in which a core was taken away is not in the middle.
const PARTS: usize = 201;
const TRIPS: u64 = 100;
const HANDED_BYTES: usize = 256 << 20;
/// Batches of which the least tells the state.
const BATCHES: usize = 5;
/// Pieces and shared memory of a handing over.
const HANDED: [(usize, usize); 7] = [
    (16 << 10, 256 << 10),
    (32 << 10, 256 << 10),
    (32 << 10, 512 << 10),
    (64 << 10, 512 << 10),
    (32 << 10, 1 << 20),
    (64 << 10, 1 << 20),
    (128 << 10, 1 << 20),
];
/// The receiver's memory: the chunk of sonde's receives.
const CHUNK_BYTES: usize = 256 << 10;

/// A word in a pair of lines of its own.
#[repr(align(128))]
struct Line(AtomicU64);

impl Line {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn wait_for(&self, value: u64) {
        while self.0.load(Ordering::Acquire) != value {}
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }
}

/// Bytes of the messages of sonde's stream, which it is compared with.
const MESSAGE_BYTES: usize = 64 << 10;

/// `xtask floor`: prints `line_ns` and `handed_bps`.
///
/// # Errors
/// There are no two CPUs.
pub fn run() -> Result<ExitCode> {
    println!(
        "line_ns {}\nhanded_bps {}",
        state_ns()?,
        handed_bps(MESSAGE_BYTES)?
    );
    Ok(ExitCode::SUCCESS)
}

/// The two CPUs that sonde's own ends get on this machine.
fn cpus() -> Result<[usize; 2]> {
    let online = sonde_sys::cpu::online()?;
    let dst = *online
        .get(online.len() / 2)
        .filter(|_| online.len() > 1)
        .context("two cores need two CPUs: allow this process another")?;
    Ok([online[0], dst])
}

/// Plays two parts, each on its CPU.
fn play<T: Send>(one: impl FnOnce() -> T + Send, other: impl FnOnce() + Send) -> Result<T> {
    let [src, dst] = cpus()?;
    std::thread::scope(|scope| {
        let other = scope.spawn(move || sonde_sys::cpu::pin(&[dst]).map(|()| other()));
        let one = scope.spawn(move || sonde_sys::cpu::pin(&[src]).map(|()| one()));
        let ended = (one.join(), other.join());
        let (Ok(one), Ok(other)) = ended else {
            anyhow::bail!("a part of the floor panicked");
        };
        other.context("binding a thread to its CPU")?;
        one.context("binding a thread to its CPU")
    })
}

/// The way of a line from core to core: half a round trip in nanoseconds, the median of one batch.
fn line_ns() -> Result<f64> {
    let (ping, pong) = (Line::new(), Line::new());
    play(
        || {
            let trips = |from: u64, to: u64| {
                for number in from..=to {
                    ping.store(number);
                    pong.wait_for(number);
                }
            };
            let parts = (0..PARTS as u64).map(|part| {
                let begin = Instant::now();
                trips(part * TRIPS + 1, (part + 1) * TRIPS);
                begin.elapsed().as_nanos() as f64 / TRIPS as f64 / 2.0
            });
            median(&parts.collect::<Vec<_>>()).unwrap_or(f64::INFINITY)
        },
        || {
            for number in 1..=PARTS as u64 * TRIPS {
                ping.wait_for(number);
                pong.store(number);
            }
        },
    )
}

/// The state of the machine: the least way of a line over some batches.
pub fn state_ns() -> Result<f64> {
    (0..BATCHES).try_fold(f64::INFINITY, |least, _| Ok(least.min(line_ns()?)))
}

/// The fastest handing over of messages of `message` bytes from one core to the other, in bits a second.
fn handed_bps(message: usize) -> Result<f64> {
    let mut best = 0.0f64;
    for (piece, shared) in HANDED {
        best = best.max(handed_by(message, piece.min(message), shared)?);
    }
    Ok(best)
}

fn handed_by(message: usize, piece: usize, shared: usize) -> Result<f64> {
    let (memory, _) = Shared::create(shared)?;
    let (written, back) = (Line::new(), Line::new());
    let pieces = (HANDED_BYTES / piece) as u64;
    let room = (shared / piece) as u64;
    let place = |number: u64, bytes: usize| (number as usize % (bytes / piece)) * piece;
    play(
        || {
            let own = vec![1u8; message];
            let mut known = 0;
            let begin = Instant::now();
            for number in 0..pieces {
                while number - known >= room {
                    known = back.0.load(Ordering::Acquire);
                }
                let from = place(number, message);
                memory.put(place(number, shared), &own[from..from + piece]);
                written.store(number + 1);
            }
            back.wait_for(pieces);
            (HANDED_BYTES as f64 * 8.0) / begin.elapsed().as_secs_f64()
        },
        || {
            let mut own = vec![0u8; CHUNK_BYTES];
            let mut known = 0;
            for number in 0..pieces {
                while number >= known {
                    known = written.0.load(Ordering::Acquire);
                }
                let to = place(number, CHUNK_BYTES);
                memory.take(place(number, shared), &mut own[to..to + piece]);
                std::hint::black_box(&mut own);
                // A quarter at a time, as the ring does.
                if (number + 1) % (room / 4).max(1) == 0 || number + 1 == pieces {
                    back.store(number + 1);
                }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_there() {
        if cpus().is_err() {
            println!("skipped: two CPUs");
            return;
        }
        let line = line_ns().unwrap();
        let handed = handed_by(64 << 10, 32 << 10, 256 << 10).unwrap();
        println!("a line {line:.1} ns, handed over {:.1} Gb/s", handed / 1e9);
        assert!(line > 1.0 && handed > 1e6);
    }
}
