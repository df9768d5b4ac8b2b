//! As many numbers as a vector register holds, with operators.
//!
//! Model:   [`Wide`] is a register of the instruction set that `pulp` found; every operation is on each lane.
//!          [`Wide::fused`] rounds once where the set has fused operations, twice elsewhere.
//! Checked: the kernels' verification.

use std::ops::{Add, Mul, Sub};

use pulp::{Simd, WithSimd};

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
    pulp::Arch::new().dispatch(Lanes)
}
