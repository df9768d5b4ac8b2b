//! The clock of calls: the CPU's counter where it is one, else the kernel's; and how requests are found.
//!
//! Model:   the counter's rate is counted once a process, for 10 ms. What it says is held against the kernel's clock when a
//!          profile is made.
//! Units:   ticks, which are nanoseconds of the kernel's clock.
//! Checked: `a_span_is_that_of_the_kernel`.

use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

use sonde_sys::clock::monotonic_ns;
use sonde_sys::tsc::{self, Counter};

/// What tells the time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clock {
    Counter(Counter),
    Kernel,
}

impl Clock {
    pub(super) fn of_this_machine() -> Self {
        static COUNTER: OnceLock<Option<Counter>> = OnceLock::new();
        match COUNTER.get_or_init(|| Counter::begin().ok()) {
            Some(counter) => Self::Counter(*counter),
            None => Self::Kernel,
        }
    }

    #[inline]
    pub(super) fn now(self) -> u64 {
        match self {
            Self::Counter(_) => tsc::ticks(),
            Self::Kernel => monotonic_ns(),
        }
    }

    pub(super) fn ns(self, ticks: u64) -> u64 {
        match self {
            Self::Counter(counter) => counter.ns(ticks),
            Self::Kernel => ticks,
        }
    }

    /// Which it is, and whether it went astray.
    pub(super) fn told(self) -> String {
        let Self::Counter(counter) = self else {
            return "monotonic".into();
        };
        let stray = counter.end();
        if stray.is_far() {
            return format!(
                "tsc, astray by {} ppm: its times are not to be used",
                stray.ppm
            );
        }
        "tsc".into()
    }
}

/// Spreads the numbers of requests, which nobody chooses to hurt, over a table: one multiplication.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spread;

#[derive(Debug)]
pub(crate) struct Spreader(u64);

impl BuildHasher for Spread {
    type Hasher = Spreader;

    fn build_hasher(&self) -> Spreader {
        Spreader(0)
    }
}

impl Hasher for Spreader {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        // 2^64 by the golden ratio; the table takes the upper bits and the lower ones.
        let spread = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_that_of_the_kernel() {
        let clock = Clock::of_this_machine();
        let (outer, begin) = (monotonic_ns(), clock.now());
        let inner = monotonic_ns();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let inner_ns = monotonic_ns() - inner;
        let span = clock.ns(clock.now() - begin);
        let outer_ns = monotonic_ns() - outer;
        // A rate is wrong by 100 ppm at the most.
        assert!(
            span + inner_ns / 1_000 >= inner_ns && span <= outer_ns + outer_ns / 1_000,
            "{inner_ns} {span} {outer_ns}"
        );
        println!("the clock is {}", clock.told());
    }
}
