//! The benchmark's random numbers.
//!
//! Model:   x' = 5^13 x mod 2^46; what is delivered is x' 2^-46, in (0, 1), exact. n numbers are skipped by (5^13)^n.
//! Source:  RNR-94-007 §2.3. Deviations: integers instead of split floating point numbers; the numbers are the same.
//! Checked: `a_jump_is_as_many_steps`, `numbers_are_exact`, `numbers_are_those_of_split_floating_point`.

/// 5^13.
pub const MULTIPLIER: u64 = 1_220_703_125;
const BITS: u32 = 46;
const MASK: u64 = (1 << BITS) - 1;
const SCALE: f64 = 1.0 / (1_u64 << BITS) as f64;

/// A place in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream(u64);

impl Stream {
    /// From a seed, an odd number below 2^46.
    pub const fn new(seed: u64) -> Self {
        Self(seed & MASK)
    }

    /// This many numbers further.
    #[must_use]
    pub const fn jumped(self, numbers: u64) -> Self {
        Self(self.0.wrapping_mul(power(numbers)) & MASK)
    }

    /// The next number's integer, below 2^46.
    #[inline(always)]
    pub const fn step(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(MULTIPLIER) & MASK;
        self.0
    }

    /// The next number, in (0, 1).
    #[inline(always)]
    pub const fn next(&mut self) -> f64 {
        self.step() as f64 * SCALE
    }
}

/// 5^13 to this power, modulo 2^46.
pub const fn power(mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1_u64, MULTIPLIER);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(square) & MASK;
        }
        square = square.wrapping_mul(square) & MASK;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_as_many_steps() {
        let mut stream = Stream::new(271_828_183);
        for steps in 0..1_000 {
            assert_eq!(Stream::new(271_828_183).jumped(steps), stream);
            stream.step();
        }
    }

    #[test]
    fn numbers_are_exact() {
        let mut stream = Stream::new(314_159_265);
        for _ in 0..1_000 {
            let number = stream.next();
            assert!(number > 0.0 && number < 1.0);
            assert_eq!((number * (1_u64 << BITS) as f64) as u64, stream.0);
        }
    }

    /// The benchmark's own form: numbers of 46 bits as two halves of 23, in floating point.
    fn split(x: &mut f64, a: f64) -> f64 {
        const R23: f64 = 1.0 / (1_u64 << 23) as f64;
        const T23: f64 = (1_u64 << 23) as f64;
        let halves = |number: f64| {
            let high = (R23 * number).trunc();
            (high, number - T23 * high)
        };
        let ((a1, a2), (x1, x2)) = (halves(a), halves(*x));
        let (_, z) = halves(a1 * x2 + a2 * x1);
        let sum = T23 * z + a2 * x2;
        *x = sum - T23 * T23 * (R23 * R23 * sum).trunc();
        R23 * R23 * *x
    }

    #[test]
    fn numbers_are_those_of_split_floating_point() {
        for seed in [271_828_183_u64, 314_159_265, 1, (1 << 46) - 1] {
            let (mut stream, mut x) = (Stream::new(seed), seed as f64);
            for place in 0..100_000 {
                let (own, theirs) = (stream.next(), split(&mut x, MULTIPLIER as f64));
                assert_eq!(own.to_bits(), theirs.to_bits(), "{seed}, number {place}");
            }
        }
    }
}
