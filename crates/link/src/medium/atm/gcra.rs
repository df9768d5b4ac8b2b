//! The generic cell rate algorithm: which cells keep to a contract, and when the next one would.
//!
//! Model:   virtual scheduling. A cell that comes before its theoretical arrival time by more than the limit does not
//!          conform and changes nothing; else that time moves to an increment after it, or after the cell if that is later.
//!          A contract of two rates is two of them, of which each cell must keep both.
//! Source:  ITU-T I.371 annex A, figure A.1; ATM Forum TM 4.0 §4.4.2, appendix C.4.1 (burst tolerance). Deviations: none.
//! Units:   picoseconds; increments round up.
//! Checked: `both_formulations_agree` (against the continuous-state leaky bucket), `a_burst_is_as_long_as_agreed`.

use sonde_units::{Instant, Span};

/// One bucket: a cell each increment, as much earlier as the limit allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gcra {
    increment: Span,
    limit: Span,
    theoretical: Instant,
}

impl Gcra {
    pub fn new(increment: Span, limit: Span) -> Self {
        Self {
            increment,
            limit,
            theoretical: Instant::START,
        }
    }

    /// Cells are another increment apart, the next one too.
    pub fn pace(&mut self, increment: Span) {
        let last = self
            .theoretical
            .as_picos()
            .saturating_sub(self.increment.as_picos());
        self.theoretical = Instant::from_picos(last) + increment;
        self.increment = increment;
    }

    /// When the next cell conforms, at the earliest.
    pub fn conforms_at(&self) -> Instant {
        Instant::from_picos(
            self.theoretical
                .as_picos()
                .saturating_sub(self.limit.as_picos()),
        )
    }

    /// A conforming cell has come at `now`.
    pub fn take(&mut self, now: Instant) {
        self.theoretical = self.theoretical.max(now) + self.increment;
    }
}

/// The buckets of one circuit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buckets(pub Vec<Gcra>);

impl Buckets {
    /// When the next cell conforms to all of them.
    pub fn conforms_at(&self) -> Instant {
        let each = self.0.iter().map(Gcra::conforms_at);
        each.max().unwrap_or(Instant::START)
    }

    pub fn take(&mut self, now: Instant) {
        for bucket in &mut self.0 {
            bucket.take(now);
        }
    }

    /// Whether a cell at `now` conforms; if so it is counted.
    pub fn police(&mut self, now: Instant) -> bool {
        let conforms = self.conforms_at() <= now;
        if conforms {
            self.take(now);
        }
        conforms
    }
}

/// By how much cells of a burst may be early: so that `burst` cells at the peak distance conform to the sustained one.
pub(crate) fn burst_tolerance(peak: Span, sustained: Span, burst: u64) -> Span {
    sustained.saturating_sub(peak) * burst.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// I.371, figure A.1, right side: a bucket that leaks one unit a unit of time.
    struct LeakyBucket {
        increment: u64,
        limit: u64,
        level: u64,
        last: u64,
    }

    impl LeakyBucket {
        fn police(&mut self, now: u64) -> bool {
            let level = self.level.saturating_sub(now - self.last);
            if level > self.limit {
                return false;
            }
            (self.level, self.last) = (level + self.increment, now);
            true
        }
    }

    proptest! {
        #[test]
        fn both_formulations_agree(
            increment in 1u64..50,
            limit in 0u64..200,
            gaps in proptest::collection::vec(0u64..60, 1..300),
        ) {
            let mut virtual_scheduling = Buckets(vec![Gcra::new(Span::picos(increment), Span::picos(limit))]);
            let mut bucket = LeakyBucket { increment, limit, level: 0, last: 0 };
            let mut now = 0;
            for gap in gaps {
                now += gap;
                prop_assert_eq!(virtual_scheduling.police(Instant::from_picos(now)), bucket.police(now));
            }
        }

        /// Two buckets are a cell that both let pass, neither counting what the other refuses.
        #[test]
        fn two_buckets_count_together(gaps in proptest::collection::vec(0u64..30, 1..300)) {
            let gcra = |t, limit| Gcra::new(Span::picos(t), Span::picos(limit));
            let mut both = Buckets(vec![gcra(5, 2), gcra(20, 60)]);
            let (mut peak, mut sustained) = (gcra(5, 2), gcra(20, 60));
            let mut now = Instant::START;
            for gap in gaps {
                now = now + Span::picos(gap);
                let want = peak.conforms_at() <= now && sustained.conforms_at() <= now;
                if want {
                    peak.take(now);
                    sustained.take(now);
                }
                prop_assert_eq!(both.police(now), want);
            }
        }
    }

    /// MBS cells at the peak rate pass, the next does not; after the same silence as many again.
    #[test]
    fn a_burst_is_as_long_as_agreed() {
        let (peak, sustained, burst) = (Span::picos(10), Span::picos(70), 32);
        let mut buckets = Buckets(vec![
            Gcra::new(peak, Span::ZERO),
            Gcra::new(sustained, burst_tolerance(peak, sustained, burst)),
        ]);
        let mut now = Instant::START;
        for _ in 0..3 {
            let passed = (0..40).take_while(|k| buckets.police(now + peak * *k));
            assert_eq!(passed.count() as u64, burst);
            now = now + sustained * burst;
        }
    }
}
