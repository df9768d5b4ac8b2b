//! EP: pairs of Gaussian numbers by rejection, counted in square annuli.
//!
//! Model:   pair j is x, y = 2u - 1 of the stream's numbers 2j + 1 and 2j + 2; accepted where t = x² + y² <= 1. With
//!          f = sqrt(-2 ln t / t), X = x f and Y = y f are Gaussian. Sums of |X| and |Y|, and pairs by floor(max(|X|, |Y|)).
//!          A rank has a run of pairs and takes them by blocks of [`COLUMNS`]: each column jumps a block ahead by one
//!          multiplication, so that all columns are alike and have sums of their own.
//! Source:  RNR-94-007 §2.2.1; NPB 3.4.3 for the sums of magnitudes. Deviations: the order of summation; one sum among ranks
//!          of twelve numbers instead of three of one, one and ten.
//! Units:   operations are random numbers, two of each pair.
//! Checked: `official_values_on_any_ranks`, `two_halves_are_class_s`, `a_wrong_seed_fails`, `logarithms_are_exact_to_a_few_bits`.

use pulp::{Simd, WithSimd};
use serde::Deserialize;
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Operation, Result};

use super::random::{Stream, power};
use super::wide::{self, fused};
use super::{Check, Class, Outcome, now_ns, reference};

const SEED: u64 = 271_828_183;
const TOLERANCE: f64 = 1e-8;
/// Ranks have whole batches of so many pairs, as a power of two.
const BATCH_LOG2: u32 = 16;
/// Pairs that are taken together.
const COLUMNS: usize = 256;
const ANNULI: usize = 10;
/// Bits of a count in a column's word.
const COUNT_BITS: u32 = 6;
/// Blocks after which the words are emptied.
const COUNTED_MAX: usize = (1 << COUNT_BITS) - 1;

/// How many pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// As a power of two; from 16.
    pub pairs_log2: u32,
}

/// Values to be held against.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Reference {
    /// The sum of |X|.
    pub sx: f64,
    /// The sum of |Y|.
    pub sy: f64,
    /// Accepted pairs.
    pub gaussian_pairs: u64,
}

impl Size {
    /// That of the UPC study, if it counts pairs: half of class S.
    pub const UPC: Self = Self { pairs_log2: 23 };

    /// That of a class.
    pub const fn of(class: Class) -> Self {
        let pairs_log2 = match class {
            Class::S => 24,
            Class::W => 25,
            Class::A => 28,
            Class::B => 30,
            Class::C => 32,
            Class::D => 36,
        };
        Self { pairs_log2 }
    }

    /// Random numbers.
    pub fn operations(&self) -> f64 {
        (1_u64 << (self.pairs_log2 + 1)) as f64
    }

    /// The columns' arrays; the same of any size.
    pub const fn memory_bytes(&self, _ranks: usize) -> u64 {
        size_of::<Columns>() as u64
    }

    /// A batch for each rank.
    ///
    /// # Errors
    /// There are more ranks than batches.
    pub fn admits(&self, ranks: usize) -> std::result::Result<(), String> {
        // The stream has 2^44 numbers, and two make a pair.
        if !(BATCH_LOG2..44).contains(&self.pairs_log2) {
            return Err(format!(
                "EP takes 2^{BATCH_LOG2} to 2^43 pairs, not 2^{}",
                self.pairs_log2
            ));
        }
        let most = 1_usize << (self.pairs_log2 - BATCH_LOG2);
        if (1..=most).contains(&ranks) {
            return Ok(());
        }
        Err(format!(
            "EP of 2^{} pairs runs on 1 to {most} ranks, not on {ranks}: take {}",
            self.pairs_log2,
            ranks.clamp(1, most)
        ))
    }

    /// What is known of this size.
    pub fn reference(&self) -> Option<Reference> {
        if let Some(class) = Class::ALL
            .into_iter()
            .find(|class| Self::of(*class) == *self)
        {
            return reference::of("ep", class);
        }
        reference::unofficial(&format!("ep_m{}", self.pairs_log2))
    }

    /// The first pair of a rank, and how many it has.
    fn part(&self, rank: usize, ranks: usize) -> (u64, u64) {
        let batches = 1_u64 << (self.pairs_log2 - BATCH_LOG2);
        let (rank, ranks) = (rank as u64, ranks as u64);
        let (each, more) = (batches / ranks, batches % ranks);
        let first = each * rank + more.min(rank);
        let count = each + u64::from(rank < more);
        (first << BATCH_LOG2, count << BATCH_LOG2)
    }
}

/// Runs it; all ranks call it.
///
/// # Errors
/// Those of the messenger.
pub fn run<M: Messenger + ?Sized>(world: &mut Communicator<'_, M>, size: &Size) -> Result<Outcome> {
    let (first, pairs) = size.part(world.rank(), world.size());
    run_pairs(world, first, pairs, size.reference().as_ref())
}

fn run_pairs<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    first: u64,
    pairs: u64,
    reference: Option<&Reference>,
) -> Result<Outcome> {
    world.messenger().phase("setup");
    let mut columns = Columns::new(SEED, first);
    world.barrier()?;
    world.messenger().phase("pairs");
    let begin = now_ns(world);
    let own = wide::run(Pairs {
        columns: &mut columns,
        blocks: pairs / COLUMNS as u64,
    });
    world.messenger().phase("sums");
    let mut sums = [0.0; 2 + ANNULI];
    world.allreduce(&own, &mut sums, Operation::Sum)?;
    let timed_ns = now_ns(world) - begin;
    world.messenger().phase("end");
    let checks = checks(&sums, reference);
    Ok(Outcome { timed_ns, checks })
}

fn checks(sums: &[f64; 2 + ANNULI], reference: Option<&Reference>) -> Vec<Check> {
    let check = |name: &str, found, wanted, tolerance| Check {
        name: name.into(),
        found,
        wanted,
        tolerance,
    };
    let accepted = sums[2..].iter().sum();
    let pairs = reference.map(|wanted| wanted.gaussian_pairs as f64);
    vec![
        check("sum of |X|", sums[0], reference.map(|of| of.sx), TOLERANCE),
        check("sum of |Y|", sums[1], reference.map(|of| of.sy), TOLERANCE),
        check("accepted pairs", accepted, pairs, 0.0),
    ]
}

/// [`COLUMNS`] pairs that advance together, each with sums of its own.
struct Columns {
    /// The stream where the pair's two numbers were, one block before.
    x: [u64; COLUMNS],
    y: [u64; COLUMNS],
    sum_x: [f64; COLUMNS],
    sum_y: [f64; COLUMNS],
    /// Ten counts of [`COUNT_BITS`] bits.
    counts: [u64; COLUMNS],
}

impl Columns {
    /// Before the pair `first`.
    fn new(seed: u64, first: u64) -> Self {
        // The stream's period is 2^44: a step back is as many forward as are missing.
        const PERIOD: u64 = 1 << 44;
        let back = PERIOD - 2 * COLUMNS as u64;
        let mut stream = Stream::new(seed).jumped(2 * first).jumped(back);
        let mut columns = Self {
            x: [0; COLUMNS],
            y: [0; COLUMNS],
            sum_x: [0.0; COLUMNS],
            sum_y: [0.0; COLUMNS],
            counts: [0; COLUMNS],
        };
        for (x, y) in columns.x.iter_mut().zip(&mut columns.y) {
            *x = stream.step();
            *y = stream.step();
        }
        columns
    }

    /// Takes the next block.
    #[inline(always)]
    fn advance<S: Simd>(&mut self) {
        const JUMP: u64 = power(2 * COLUMNS as u64);
        const MASK: u64 = (1 << 46) - 1;
        for column in 0..COLUMNS {
            let x_state = self.x[column].wrapping_mul(JUMP) & MASK;
            let y_state = self.y[column].wrapping_mul(JUMP) & MASK;
            (self.x[column], self.y[column]) = (x_state, y_state);
            let (x, y) = (centred(x_state), centred(y_state));
            let t = fused::<S>(x, x, y * y);
            let accepted = t <= 1.0;
            let factor = polar_factor::<S>(t);
            let zero_unless = |value: f64| if accepted { value } else { 0.0 };
            let big_x = zero_unless((x * factor).abs());
            let big_y = zero_unless((y * factor).abs());
            self.sum_x[column] += big_x;
            self.sum_y[column] += big_y;
            let larger = if big_x > big_y { big_x } else { big_y };
            let annulus = larger.floor();
            // The number as an integer is in the low bits of 2^52 plus it.
            let place = (annulus * f64::from(COUNT_BITS) + TWO_52).to_bits() & 63;
            self.counts[column] += u64::from(accepted) << place;
        }
    }

    fn empty_counts(&mut self, counts: &mut [u64; ANNULI]) {
        for word in &mut self.counts {
            for (annulus, count) in counts.iter_mut().enumerate() {
                *count += *word >> (COUNT_BITS * annulus as u32) & COUNTED_MAX as u64;
            }
            *word = 0;
        }
    }
}

/// The blocks of a rank.
struct Pairs<'a> {
    columns: &'a mut Columns,
    blocks: u64,
}

impl WithSimd for Pairs<'_> {
    /// Sums of |X| and |Y|, and counts.
    type Output = [f64; 2 + ANNULI];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let (columns, mut left) = (self.columns, self.blocks);
        let mut counts = [0; ANNULI];
        while left > 0 {
            let blocks = left.min(COUNTED_MAX as u64);
            for _ in 0..blocks {
                columns.advance::<S>();
            }
            columns.empty_counts(&mut counts);
            left -= blocks;
        }
        let mut sums = [0.0; 2 + ANNULI];
        sums[0] = columns.sum_x.iter().sum();
        sums[1] = columns.sum_y.iter().sum();
        for (sum, count) in sums[2..].iter_mut().zip(counts) {
            *sum = count as f64;
        }
        sums
    }
}

const TWO_52: f64 = (1_u64 << 52) as f64;

/// 2 (state 2^-46) - 1, exact.
#[inline(always)]
fn centred(state: u64) -> f64 {
    const TWO_45: f64 = (1_u64 << 45) as f64;
    let shifted = f64::from_bits(state | TWO_52.to_bits());
    (shifted - (TWO_52 + TWO_45)) * (1.0 / TWO_45)
}

/// sqrt(-2 ln t / t) for a normal t in (0, 1]; not a number above.
///
/// t = 2^k m with m in [sqrt 1/2, sqrt 2), ln m = 2 artanh s with s = (m - 1) / (m + 1), whose series in s² ends below 2^-56
/// of the first term as s² < 0.0295. One division gives 1 / (m + 1) and 1 / t.
#[inline(always)]
fn polar_factor<S: Simd>(t: f64) -> f64 {
    const ROOT: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const ONE: u64 = 1_f64.to_bits();
    const MANTISSA: u64 = (1 << 52) - 1;
    let shifted = t.to_bits() + (ONE - ROOT);
    let m = f64::from_bits((shifted & MANTISSA) + ROOT);
    let k = f64::from_bits((shifted >> 52) | TWO_52.to_bits()) - (TWO_52 + 1023.0);
    let inverse = 1.0 / ((m + 1.0) * t);
    let s = (m - 1.0) * (t * inverse);
    let one_by_t = (m + 1.0) * inverse;
    let z = s * s;
    let mut series = 1.0 / 21.0;
    for odd in [19, 17, 15, 13, 11, 9, 7, 5, 3] {
        series = fused::<S>(series, z, 1.0 / f64::from(odd));
    }
    // ln m = 2 s + 2 s z series; k ln 2 is no smaller than it where k is not zero.
    let ln_m = fused::<S>(2.0 * s * z, series, 2.0 * s);
    let ln_t = fused::<S>(k, std::f64::consts::LN_2, ln_m);
    (-2.0 * ln_t * one_by_t).sqrt()
}

#[cfg(test)]
mod tests {
    use pulp::Scalar;
    use sonde_message::Comm;
    use sonde_message::collectives::Choice;
    use sonde_message::native::Memory;

    use super::*;

    fn outcome(size: Size, ranks: usize) -> Outcome {
        let mut outcomes = Memory::run(ranks, |messenger| {
            let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
            run(&mut world, &size).unwrap()
        });
        outcomes.swap_remove(0)
    }

    fn sums(seed: u64, first: u64, pairs: u64) -> [f64; 2 + ANNULI] {
        let mut columns = Columns::new(seed, first);
        wide::run(Pairs {
            columns: &mut columns,
            blocks: pairs / COLUMNS as u64,
        })
    }

    #[test]
    fn official_values_on_any_ranks() {
        for (class, ranks) in [(Class::S, 1), (Class::S, 3), (Class::S, 4), (Class::W, 2)] {
            let outcome = outcome(Size::of(class), ranks);
            assert_eq!(outcome.passes(), Some(true), "{class} {ranks} {outcome:?}");
            let worst = outcome.checks.iter().filter_map(Check::error);
            assert!(worst.fold(0.0, f64::max) < 1e-12, "{outcome:?}");
        }
    }

    #[test]
    fn two_halves_are_class_s() {
        #[derive(Deserialize)]
        struct Half {
            sx: f64,
            sy: f64,
            annulus: [u64; ANNULI],
        }
        let half = 1 << 23;
        let halves = [(0, "ep_m23"), (half, "ep_m23_upper_half")].map(|(first, name)| {
            let wanted: Half = reference::unofficial(name).unwrap();
            let found = sums(SEED, first, half);
            assert!((found[0] / wanted.sx - 1.0).abs() < 2e-13, "{name}");
            assert!((found[1] / wanted.sy - 1.0).abs() < 2e-13, "{name}");
            assert_eq!(found[2..], wanted.annulus.map(|count| count as f64));
            found
        });
        let mut sum = halves[0];
        sum.iter_mut().zip(halves[1]).for_each(|(a, b)| *a += b);
        let official = Size::of(Class::S).reference();
        for check in checks(&sum, official.as_ref()) {
            assert!(check.error().unwrap() < 1e-13, "{check:?}");
        }
        let own = outcome(Size::UPC, 2);
        assert_eq!(own.passes(), Some(true), "{own:?}");
    }

    #[test]
    fn a_wrong_seed_fails() {
        let found = sums(SEED + 2, 0, 1 << 24);
        let official = Size::of(Class::S).reference();
        for check in checks(&found, official.as_ref()) {
            assert_eq!(check.passes(), Some(false), "{check:?}");
        }
    }

    struct Factor(f64);

    impl WithSimd for Factor {
        type Output = f64;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> f64 {
            polar_factor::<S>(self.0)
        }
    }

    #[test]
    fn logarithms_are_exact_to_a_few_bits() {
        let mut stream = Stream::new(SEED);
        for shift in (0..40_000).map(|index| index % 90) {
            let t = stream.next() * 0.5_f64.powi(shift);
            let wanted = (-2.0 * t.ln() / t).sqrt();
            for found in [polar_factor::<Scalar>(t), wide::run(Factor(t))] {
                assert!((found / wanted - 1.0).abs() < 1e-15, "{t} {found} {wanted}");
            }
        }
        assert!(polar_factor::<Scalar>(1.0) == 0.0);
    }

    #[test]
    fn ranks_have_all_pairs() {
        let size = Size { pairs_log2: 19 };
        for ranks in 1..=8 {
            size.admits(ranks).unwrap();
            let mut next = 0;
            for rank in 0..ranks {
                let (first, pairs) = size.part(rank, ranks);
                assert_eq!(first, next);
                next += pairs;
            }
            assert_eq!(next, 1 << 19);
        }
        let error = size.admits(9).unwrap_err();
        assert!(error.contains("take 8"), "{error}");
    }
}
