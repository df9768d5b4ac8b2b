//! When messages are due that are sent at a rate, or below one.
//!
//! Model:   that of [`Pace`]; what is due does not depend on what was answered.
//! Units:   nanoseconds since the start, rounded down.
//! Checked: `constant_is_exact`, `poisson_has_its_mean_and_deviation`, `a_bound_keeps_messages_apart`.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_measure::{Pace, Spacing};
use sonde_sys::clock::{monotonic_ns, sleep_until_ns};

/// The times at which messages are due.
#[derive(Debug)]
pub(crate) struct Schedule {
    pace: Pace,
    number: u64,
    at_ns: f64,
    random: Pcg64Mcg,
}

impl Schedule {
    /// Without end.
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            pace,
            number: 0,
            at_ns: 0.0,
            random: Pcg64Mcg::seed_from_u64(pace.seed),
        }
    }

    /// When the next message is due, in nanoseconds after the begin.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let number = self.number;
        self.number += 1;
        match self.pace.law {
            Spacing::Constant => {
                (u128::from(number) * 1_000_000_000 / u128::from(self.pace.rate_per_s)) as u64
            }
            Spacing::Poisson => {
                // Above zero and up to one, so that its logarithm is finite.
                let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                self.at_ns -= uniform.ln() * 1e9 / self.pace.rate_per_s as f64;
                self.at_ns as u64
            }
        }
    }
}

/// Keeps messages apart, so that all of them stay below a bound of what is sent.
pub(crate) struct Hold {
    pause_ns: u64,
    due_ns: u64,
}

impl Hold {
    /// So long from the begin of a message to that of the next at least; 0 holds nothing.
    pub(crate) fn new(pause_ns: u64) -> Self {
        Self {
            pause_ns,
            due_ns: 0,
        }
    }

    /// Waits until the next message may go.
    #[inline]
    pub(crate) fn wait(&mut self) {
        if self.pause_ns > 0 {
            self.sleep();
        }
    }

    #[cold]
    fn sleep(&mut self) {
        sleep_until_ns(self.due_ns);
        self.due_ns = monotonic_ns().saturating_add(self.pause_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(rate_per_s: u64, law: Spacing) -> Schedule {
        Schedule::new(Pace {
            rate_per_s,
            law,
            seed: 7,
        })
    }

    #[test]
    fn constant_is_exact() {
        let mut three = schedule(3, Spacing::Constant);
        let times: Vec<u64> = (0..4).map(|_| three.next()).collect();
        assert_eq!(times, [0, 333_333_333, 666_666_666, 1_000_000_000]);
        // No error adds up over an hour of ten million a second.
        three.number = 3 * 3_600;
        assert_eq!(three.next(), 3_600_000_000_000);
    }

    #[test]
    fn poisson_has_its_mean_and_deviation() {
        let mut due = schedule(1_000, Spacing::Poisson);
        let count = 200_000;
        let mut before = 0;
        let gaps: Vec<f64> = (0..count)
            .map(|_| {
                let at = due.next();
                let gap = (at - before) as f64;
                before = at;
                gap
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / f64::from(count);
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / f64::from(count);
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
        assert!((square.sqrt() / mean - 1.0).abs() < 0.02, "{square}");
        // The same seed gives the same times.
        let mut again = schedule(1_000, Spacing::Poisson);
        assert_eq!(again.next(), gaps[0] as u64);
    }

    #[test]
    fn a_bound_keeps_messages_apart() {
        let began_ns = monotonic_ns();
        let mut hold = Hold::new(2_000_000);
        for _ in 0..6 {
            hold.wait();
        }
        // The first goes at once; never early.
        assert!(monotonic_ns() - began_ns >= 10_000_000);
        let mut free = Hold::new(0);
        free.wait();
        assert_eq!(free.due_ns, 0);
    }
}
