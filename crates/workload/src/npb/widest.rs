//! The widest vectors that the processor has, found at run time.
//!
//! Model:   a [`Kernel`] is compiled once for plain instructions and once for the widest known ones; the processor decides.
//!          Multiplications and additions are fused where the instructions have it, by [`fused`].
//! Checked: the kernels that use it; `plain_and_fused_agree`.

use pulp::{Arch, Simd, WithSimd};

/// Work that is compiled for each set of instructions; everything in it is to be inlined.
pub trait Kernel {
    /// What it gives.
    type Output;

    /// The work. With `FUSED`, [`fused`] is one instruction.
    fn run<const FUSED: bool>(self) -> Self::Output;
}

struct Dispatched<K>(K);

impl<K: Kernel> WithSimd for Dispatched<K> {
    type Output = K::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> K::Output {
        if size_of::<S::f64s>() > size_of::<f64>() {
            self.0.run::<true>()
        } else {
            self.0.run::<false>()
        }
    }
}

/// Does the work with the best instructions there are.
#[inline]
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    Arch::new().dispatch(Dispatched(kernel))
}

/// a b + c, by one instruction where `FUSED`.
#[inline(always)]
pub fn fused<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Square<'a>(&'a [f64]);

    impl Kernel for Square<'_> {
        type Output = f64;

        #[inline(always)]
        fn run<const FUSED: bool>(self) -> f64 {
            let add = |sum, x: &f64| fused::<FUSED>(*x, *x, sum);
            self.0.iter().fold(0.0, add)
        }
    }

    #[test]
    fn plain_and_fused_agree() {
        let numbers: Vec<f64> = (0..100).map(f64::from).collect();
        let wanted = Square(&numbers).run::<false>();
        assert!((run(Square(&numbers)) - wanted).abs() < 1e-6);
    }
}
