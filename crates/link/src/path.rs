//! Elements between the line and the switch: delay, loss, reordering.
//!
//! Model:   each copy is delayed by `delay`; lost with probability `loss`; held back by `reorder_by` more with probability
//!          `reorder`, so that later ones overtake it. Draws come from one seeded generator, in the order of arrival.
//! Checked: `the_shares_are_met`, `one_seed_one_outcome`.

use crate::PathSpec;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_units::Span;

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
    fn one_seed_one_outcome() {
        let draws = |seed| {
            let mut path = Path::new(spec(), seed);
            (0..1_000).map(|_| path.pass()).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
    }
}
