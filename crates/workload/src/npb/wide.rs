//! The widest vector instructions that the processor has, found at run time.
//!
//! Model:   work is compiled once for plain instructions and once for the widest known ones; [`run`] lets the processor decide.
//!          Work is written for whole arrays, which the compiler turns into vectors, with [`fused`]; or, where it would not find
//!          them, for registers with operators, [`Wide`]. Both round a product and its sum once where the set has fused
//!          operations, twice elsewhere. All of a piece of work is to be inlined.
//! Checked: `plain_and_fused_agree`, `registers_are_as_numbers`; the kernels' verification, also by plain instructions alone:
//!          `kernels_verify_without_wide_registers`.

use std::ops::{Add, Mul, Sub};

use pulp::{Arch, Simd, WithSimd};

/// Does the work with the best instructions there are.
#[inline]
pub fn run<W: WithSimd>(work: W) -> W::Output {
    #[cfg(test)]
    if tests::is_plain() {
        return Arch::Scalar.dispatch(work);
    }
    Arch::new().dispatch(work)
}

/// a b + c, by one instruction where the set has it.
#[inline(always)]
pub fn fused<S: Simd>(a: f64, b: f64, c: f64) -> f64 {
    if S::IS_SCALAR {
        a * b + c
    } else {
        a.mul_add(b, c)
    }
}

/// A register of numbers.
#[derive(Clone, Copy)]
pub struct Wide<S: Simd> {
    /// The instruction set.
    pub set: S,
    /// Its lanes.
    pub lanes: S::f64s,
}

impl<S: Simd> Wide<S> {
    /// The lanes of this register.
    #[inline(always)]
    pub const fn new(set: S, lanes: S::f64s) -> Self {
        Self { set, lanes }
    }

    /// The same in each lane.
    #[inline(always)]
    pub fn splat(set: S, value: f64) -> Self {
        Self::new(set, set.splat_f64s(value))
    }

    /// The numbers from `at` on.
    #[inline(always)]
    pub fn load(set: S, from: &[f64], at: usize) -> Self {
        let lanes = S::as_simd_f64s(&from[at..at + S::F64_LANES]).0[0];
        Self::new(set, lanes)
    }

    /// Writes all lanes from `at` on.
    #[inline(always)]
    pub fn store(self, to: &mut [f64], at: usize) {
        S::as_mut_simd_f64s(&mut to[at..at + S::F64_LANES]).0[0] = self.lanes;
    }

    /// The numbers at `at`, `at + stride` and so on.
    #[inline(always)]
    pub fn gather(set: S, from: &[f64], at: usize, stride: usize) -> Self {
        let mut lanes = set.splat_f64s(0.0);
        for (lane, to) in numbers::<S>(&mut lanes).iter_mut().enumerate() {
            *to = from[at + lane * stride];
        }
        Self::new(set, lanes)
    }

    /// Writes the first `count` lanes to `at`, `at + stride` and so on.
    #[inline(always)]
    pub fn scatter(mut self, to: &mut [f64], at: usize, stride: usize, count: usize) {
        let numbers = numbers::<S>(&mut self.lanes);
        if count == S::F64_LANES {
            for (lane, from) in numbers.iter().enumerate() {
                to[at + lane * stride] = *from;
            }
            return;
        }
        for (lane, from) in numbers.iter().take(count).enumerate() {
            to[at + lane * stride] = *from;
        }
    }

    /// self * factor + term.
    #[inline(always)]
    pub fn fused(self, factor: Self, term: Self) -> Self {
        let set = self.set;
        Self::new(
            set,
            set.mul_add_e_f64s(self.lanes, factor.lanes, term.lanes),
        )
    }

    /// self - a * b.
    #[inline(always)]
    pub fn less(self, a: Self, b: Self) -> Self {
        let set = self.set;
        let negative = set.neg_f64s(a.lanes);
        Self::new(set, set.mul_add_e_f64s(negative, b.lanes, self.lanes))
    }

    /// 1 / self.
    #[inline(always)]
    pub fn inverse(self) -> Self {
        let set = self.set;
        Self::new(set, set.div_f64s(set.splat_f64s(1.0), self.lanes))
    }

    /// Square root.
    #[inline(always)]
    pub fn sqrt(mut self) -> Self {
        for number in numbers::<S>(&mut self.lanes) {
            *number = number.sqrt();
        }
        self
    }
}

/// The lanes as numbers.
#[inline(always)]
pub fn numbers<S: Simd>(lanes: &mut S::f64s) -> &mut [f64] {
    bytemuck::cast_slice_mut(std::slice::from_mut(lanes))
}

impl<S: Simd> Add for Wide<S> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::new(self.set, self.set.add_f64s(self.lanes, other.lanes))
    }
}

impl<S: Simd> Sub for Wide<S> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::new(self.set, self.set.sub_f64s(self.lanes, other.lanes))
    }
}

impl<S: Simd> Mul for Wide<S> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self::new(self.set, self.set.mul_f64s(self.lanes, other.lanes))
    }
}

impl<S: Simd> Mul<f64> for Wide<S> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, factor: f64) -> Self {
        self * Self::splat(self.set, factor)
    }
}

/// How many numbers a register of this machine holds.
pub fn lanes() -> usize {
    struct Lanes;
    impl WithSimd for Lanes {
        type Output = usize;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F64_LANES
        }
    }
    run(Lanes)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::OnceLock;

    use pulp::Scalar;
    use sonde_message::Comm;
    use sonde_message::collectives::{Choice, Communicator};
    use sonde_message::native::Memory;

    use super::*;
    use crate::npb::{Class, Kernel, Problem};

    /// Tells a process of these tests that it is to have no wide registers.
    const PLAIN: &str = "SONDE_TEST_PLAIN";

    pub fn is_plain() -> bool {
        static PLAIN_ONLY: OnceLock<bool> = OnceLock::new();
        *PLAIN_ONLY.get_or_init(|| std::env::var_os(PLAIN).is_some())
    }

    /// Class S of all, verified; the seconds that each took on one rank.
    fn verify() {
        for kernel in Kernel::ALL {
            for ranks in [1, 4] {
                let problem = Problem::of(kernel, Class::S).expect("it is there");
                let outcomes = Memory::run(ranks, |messenger| {
                    let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
                    problem.run(&mut world).expect("a run")
                });
                let outcome = &outcomes[0];
                let seconds = outcome.timed_ns as f64 * 1e-9;
                println!("{kernel} on {ranks}, {} lanes: {seconds:.4} s", lanes());
                assert_eq!(
                    outcome.passes(),
                    Some(true),
                    "{kernel} on {ranks}: {outcome:?}"
                );
            }
        }
    }

    /// In a process of its own, this test again.
    #[test]
    fn kernels_verify_without_wide_registers() {
        if is_plain() {
            assert_eq!(lanes(), 1);
            verify();
            return;
        }
        let this = std::env::current_exe().expect("this program");
        let output = Command::new(this)
            .args(["kernels_verify_without_wide_registers", "--nocapture"])
            .env(PLAIN, "1")
            .output()
            .expect("this program again");
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}{said}");
        assert_eq!(text.matches(" 1 lanes: ").count(), 16, "{text}");
        print!("{text}");
    }

    struct Squares<'a>(&'a [f64]);

    impl WithSimd for Squares<'_> {
        type Output = f64;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> f64 {
            let add = |sum, x: &f64| fused::<S>(*x, *x, sum);
            self.0.iter().fold(0.0, add)
        }
    }

    #[test]
    fn plain_and_fused_agree() {
        let numbers: Vec<f64> = (0..100).map(f64::from).collect();
        let wanted = Squares(&numbers).with_simd(Scalar);
        assert!((run(Squares(&numbers)) - wanted).abs() < 1e-6);
    }

    /// sqrt((2 a + b - a b) / a) of numbers a and those after them, b, with a stride.
    struct Strided<'a> {
        from: &'a [f64],
        to: &'a mut [f64],
        stride: usize,
    }

    impl WithSimd for Strided<'_> {
        type Output = usize;

        #[inline(always)]
        fn with_simd<S: Simd>(self, set: S) -> usize {
            let a = Wide::gather(set, self.from, 0, self.stride);
            let b = Wide::gather(set, self.from, 1, self.stride);
            let sum = a.fused(Wide::splat(set, 2.0), b).less(b, a) * a.inverse();
            sum.sqrt().scatter(self.to, 0, self.stride, S::F64_LANES);
            S::F64_LANES
        }
    }

    #[test]
    fn registers_are_as_numbers() {
        let from: Vec<f64> = (0..40).map(|number| 0.5 / f64::from(number + 1)).collect();
        for stride in 2..5 {
            let mut to = vec![0.0; from.len()];
            let count = run(Strided {
                from: &from,
                to: &mut to,
                stride,
            });
            assert_eq!(count, lanes());
            for (place, found) in to.iter().enumerate() {
                let is_set = place % stride == 0 && place / stride < count;
                let wanted = if is_set {
                    let (a, b) = (from[place], from[place + 1]);
                    ((2.0 * a + b - b * a) / a).sqrt()
                } else {
                    0.0
                };
                assert!((found - wanted).abs() < 1e-14, "{place} {found} {wanted}");
            }
        }
    }
}
