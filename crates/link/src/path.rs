//! Elements between the line and the switch: delay, loss, reordering. And jitter, before each station.
//!
//! Model:   each copy is delayed by `delay`; lost with probability `loss`; held back by `reorder_by` more with probability
//!          `reorder`, so that later ones overtake it. Draws come from one seeded generator, in the order of arrival. Jitter delays each copy to a station by a span drawn
//!          evenly up to `jitter`, or longer where the one before it is later still: none overtakes another by it.
//! Checked: `the_shares_are_met`, `one_seed_one_outcome`, `jitter_is_even_and_keeps_the_order`.

use crate::{PathSpec, Port};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_units::{Instant, Span};

/// The elements of one network.
pub(crate) struct Path {
    spec: PathSpec,
    random: Pcg64Mcg,
}

impl Path {
    pub fn new(spec: PathSpec, seed: u64) -> Self {
        Self {
            spec,
            random: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    /// How long a copy is delayed; none if it is lost.
    pub fn pass(&mut self) -> Option<Span> {
        if !self.spec.loss.is_zero() && self.spec.loss.hit(self.random.next_u64()) {
            return None;
        }
        let late = !self.spec.reorder.is_zero() && self.spec.reorder.hit(self.random.next_u64());
        Some(
            self.spec.delay
                + if late {
                    self.spec.reorder_by
                } else {
                    Span::ZERO
                },
        )
    }
}

/// The jitter of one network.
pub(crate) struct Jitter {
    most: Span,
    random: Pcg64Mcg,
    /// By station: when the one before comes out.
    last: Vec<Instant>,
}

impl Jitter {
    /// None where there is none.
    pub fn new(spec: PathSpec, ports: u16, seed: u64) -> Option<Self> {
        /// Of draws other than the path's.
        const STREAM: u64 = 0x6a69_7474_6572;
        (!spec.jitter.is_zero()).then(|| Self {
            most: spec.jitter,
            random: Pcg64Mcg::seed_from_u64(seed ^ STREAM),
            last: vec![Instant::START; usize::from(ports)],
        })
    }

    /// When a copy to a station comes out that would be there at `at`.
    pub fn out(&mut self, at: Instant, to: Port) -> Instant {
        let share = u128::from(self.random.next_u64());
        let late = (share * (u128::from(self.most.as_picos()) + 1)) >> 64;
        let last = &mut self.last[usize::from(to.0)];
        *last = (*last).max(at + Span::picos(late as u64));
        *last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_units::Ratio;

    fn spec() -> PathSpec {
        PathSpec {
            delay: Span::millis(10),
            loss: Ratio::new(1, 100),
            reorder: Ratio::new(1, 10),
            reorder_by: Span::millis(1),
            jitter: Span::ZERO,
        }
    }

    #[test]
    fn the_shares_are_met() {
        let mut path = Path::new(spec(), 1);
        let (mut lost, mut late) = (0, 0);
        for _ in 0..100_000 {
            match path.pass() {
                None => lost += 1,
                Some(span) if span > Span::millis(10) => late += 1,
                Some(span) => assert_eq!(span, Span::millis(10)),
            }
        }
        // Six standard deviations.
        assert!((810..=1_190).contains(&lost), "{lost}");
        assert!((9_330..=10_470).contains(&late), "{late}");
    }

    #[test]
    fn jitter_is_even_and_keeps_the_order() {
        let most = Span::millis(2);
        let spec = PathSpec {
            jitter: most,
            ..spec()
        };
        let mut jitter = Jitter::new(spec, 2, 1).unwrap();
        let at = |number: u64| Instant::START + Span::secs(number);
        let late = (0..10_000).map(|n| jitter.out(at(n), Port(1)).since(at(n)));
        let late: Vec<_> = late.collect();
        assert!(late.iter().all(|late| *late <= most));
        // Even: a mean of a half of it, and a tenth in each tenth; six standard deviations.
        let mean = late.iter().map(|late| late.as_picos() as f64).sum::<f64>() / 1e4;
        let half = most.as_picos() as f64 / 2.0;
        assert!((mean / half - 1.0).abs() < 6.0 * 0.577 / 100.0, "{mean}");
        for tenth in 0..10 {
            let is_in = |late: &&Span| late.as_picos() * 10 / most.as_picos() == tenth;
            let count = late.iter().filter(is_in).count();
            assert!(count.abs_diff(1_000) < 180, "{tenth}: {count}");
        }
        // Copies that come together leave in their order; other stations have their own.
        let mut before = Instant::START;
        for _ in 0..1_000 {
            let out = jitter.out(at(20_000), Port(1));
            assert!(out >= before && out <= at(20_000) + most);
            before = out;
        }
        assert!(jitter.out(at(1), Port(0)) <= at(1) + most);
        assert!(Jitter::new(self::spec(), 2, 1).is_none());
    }

    #[test]
    fn one_seed_one_outcome() {
        let draws = |seed| {
            let mut path = Path::new(spec(), seed);
            (0..1_000).map(|_| path.pass()).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
    }
}
