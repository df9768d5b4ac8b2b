//! The mean rate of streams that never stand still.
//!
//! Model:   batch means. After a warm-up the time is cut into batches of equal length, at least 16 of them; when there are
//!          32, neighbours are joined, so that batches grow until their means are nearly independent. The mean is good when
//!          the half-width of its 95 % interval is within 2 %.
//! Source:  Law & Kelton, Simulation Modeling and Analysis, §9.5.3 (batch means). Deviations: the normal quantile 2 in place
//!          of Student's 2.13 to 2.04.
//! Units:   bytes in a batch; rates in bits a second, rounded down. Variances are integers: bytes squared.
//! Checked: `even_batches_are_good`, `uneven_batches_are_not`.

use sonde_units::{Instant, Span};

/// The first length of a batch.
const BATCH: Span = Span::millis(250);
const BATCHES_MIN: usize = 16;

/// Bytes by batches.
pub(crate) struct Steady {
    from: Instant,
    length: Span,
    batches: Vec<u64>,
    /// Bytes of the batch that is not yet over.
    open: u64,
}

impl Steady {
    /// The first batch begins at `from`, at an arrival that is not counted.
    pub fn new(from: Instant) -> Self {
        Self {
            from,
            length: BATCH,
            batches: Vec::with_capacity(2 * BATCHES_MIN),
            open: 0,
        }
    }

    /// When the present batch is over.
    pub fn until(&self) -> Instant {
        self.from + self.length * (self.batches.len() as u64 + 1)
    }

    /// `bytes` arrived, not after [`Self::until`].
    pub fn add(&mut self, bytes: u64) {
        self.open += bytes;
    }

    /// The present batch is over.
    pub fn close(&mut self) {
        self.batches.push(self.open);
        self.open = 0;
        if self.batches.len() == 2 * BATCHES_MIN {
            for i in 0..BATCHES_MIN {
                self.batches[i] = self.batches[2 * i] + self.batches[2 * i + 1];
            }
            self.batches.truncate(BATCHES_MIN);
            self.length = self.length * 2;
        }
    }

    /// How long the closed batches took.
    pub fn elapsed(&self) -> Span {
        self.length * self.batches.len() as u64
    }

    /// Whether the mean is known well enough.
    pub fn is_good(&self) -> bool {
        let count = self.batches.len() as u128;
        let sum: u128 = self.batches.iter().map(|batch| u128::from(*batch)).sum();
        if self.batches.len() < BATCHES_MIN || sum == 0 {
            return false;
        }
        // n^2 times the sum of squared differences from the mean.
        let squares: u128 = self
            .batches
            .iter()
            .map(|batch| (u128::from(*batch) * count).abs_diff(sum))
            .map(|off| off * off)
            .sum();
        // (2 s / sqrt(n) / mean)^2 <= (1/50)^2 with s^2 = squares / (n^2 (n - 1)) and mean = sum / n.
        squares.saturating_mul(4 * 2_500) <= (sum * sum).saturating_mul(count * (count - 1))
    }

    /// Bits a second over the closed batches.
    pub fn rate(&self) -> u64 {
        let bytes: u128 = self.batches.iter().map(|batch| u128::from(*batch)).sum();
        let picos = u128::from(self.elapsed().as_picos()).max(1);
        (bytes * 8_000_000_000_000 / picos) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each batch has so many bytes for each first length of a batch.
    fn steady(batches: impl Iterator<Item = u64>) -> Steady {
        let mut steady = Steady::new(Instant::START);
        for bytes in batches {
            let until = Instant::START + steady.elapsed() + steady.length;
            assert_eq!(steady.until(), until);
            steady.add(bytes * (steady.length / BATCH));
            steady.close();
        }
        steady
    }

    #[test]
    fn even_batches_are_good() {
        let some = steady((0..15).map(|_| 1_000));
        assert!(!some.is_good());
        let all = steady((0..100).map(|i| 1_000 + i % 2));
        assert!(all.is_good());
        assert!((8_000 * 4..8_008 * 4).contains(&all.rate()));
        // 32 of a quarter second, then 16 of each length while neighbours were joined.
        assert_eq!(all.batches.len(), 20);
        assert_eq!(all.length, BATCH * 32);
        assert_eq!(all.elapsed(), BATCH * 32 * 20);
    }

    #[test]
    fn uneven_batches_are_not() {
        // A half-width of 2 %: s = 0.02 / 2 * 4 of the mean with 16 batches, less for n - 1.
        for (off, good) in [(38, true), (40, false)] {
            let batches =
                steady((0..16).map(|i| if i % 2 == 0 { 1_000 - off } else { 1_000 + off }));
            assert_eq!(batches.is_good(), good, "{off}");
        }
        assert!(!steady((0..20).map(|_| 0)).is_good());
    }
}
