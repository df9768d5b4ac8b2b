//! Two rows of elements combined to one, as a reduction does it.
//!
//! Model:   integers wrap. Of floating point, each operation gives the same bits whichever operand comes first: minus zero is
//!          less than zero, and a number goes before what is none in `Min` and `Max`.
//! Units:   elements in native byte order, wherever they lie in memory.
//! Checked: `order_of_operands_does_not_matter`, and the oracle.

use crate::{Element, Error, Operation, Result};

/// Combines `into` with `with`, element by element, to `into`.
///
/// # Panics
/// Rows of different length, or of a pair that [`check`] refuses.
pub(super) fn combine(element: Element, operation: Operation, into: &mut [u8], with: &[u8]) {
    assert_eq!(into.len(), with.len(), "rows of one length");
    match element {
        Element::U8 => integers::<1, u8>(operation, into, with),
        Element::I32 => integers::<4, i32>(operation, into, with),
        Element::I64 => integers::<8, i64>(operation, into, with),
        Element::F32 => floats::<4, f32>(operation, into, with),
        Element::F64 => floats::<8, f64>(operation, into, with),
    }
}

/// That elements can be combined so.
///
/// # Errors
/// Bitwise operations on floating point.
pub(super) fn check(element: Element, operation: Operation) -> Result<()> {
    let bitwise = matches!(operation, Operation::And | Operation::Or);
    if bitwise && matches!(element, Element::F32 | Element::F64) {
        return Err(Error::Argument {
            what: "the operation",
            value: format!("{operation:?} of {element:?}"),
            wanted: "Sum, Product, Min or Max of floating point".into(),
        });
    }
    Ok(())
}

fn each<const N: usize>(
    into: &mut [u8],
    with: &[u8],
    combined: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    for (one, other) in into.chunks_exact_mut(N).zip(with.chunks_exact(N)) {
        let whole = |bytes: &[u8]| <[u8; N]>::try_from(bytes).expect("a chunk of N");
        one.copy_from_slice(&combined(whole(one), whole(other)));
    }
}

trait Integer<const N: usize>:
    Ord + Copy + std::ops::BitAnd<Output = Self> + std::ops::BitOr<Output = Self>
{
    fn read(bytes: [u8; N]) -> Self;
    fn write(self) -> [u8; N];
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
}

macro_rules! integer {
    ($($type:ty: $bytes:literal),*) => {$(
        impl Integer<$bytes> for $type {
            fn read(bytes: [u8; $bytes]) -> Self { Self::from_ne_bytes(bytes) }
            fn write(self) -> [u8; $bytes] { self.to_ne_bytes() }
            fn sum(self, other: Self) -> Self { self.wrapping_add(other) }
            fn product(self, other: Self) -> Self { self.wrapping_mul(other) }
        }
    )*};
}

integer!(u8: 1, i32: 4, i64: 8);

fn integers<const N: usize, T: Integer<N>>(operation: Operation, into: &mut [u8], with: &[u8]) {
    match operation {
        Operation::Sum => each::<N>(into, with, |a, b| T::read(a).sum(T::read(b)).write()),
        Operation::Product => each::<N>(into, with, |a, b| T::read(a).product(T::read(b)).write()),
        Operation::Min => each::<N>(into, with, |a, b| T::read(a).min(T::read(b)).write()),
        Operation::Max => each::<N>(into, with, |a, b| T::read(a).max(T::read(b)).write()),
        Operation::And => each::<N>(into, with, |a, b| (T::read(a) & T::read(b)).write()),
        Operation::Or => each::<N>(into, with, |a, b| (T::read(a) | T::read(b)).write()),
    }
}

trait Float<const N: usize>: Copy {
    fn read(bytes: [u8; N]) -> Self;
    fn write(self) -> [u8; N];
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn least(self, other: Self) -> Self;
    fn greatest(self, other: Self) -> Self;
}

macro_rules! float {
    ($($type:ty: $bytes:literal),*) => {$(
        impl Float<$bytes> for $type {
            fn read(bytes: [u8; $bytes]) -> Self { Self::from_ne_bytes(bytes) }
            fn write(self) -> [u8; $bytes] { self.to_ne_bytes() }
            fn sum(self, other: Self) -> Self { self + other }
            fn product(self, other: Self) -> Self { self * other }
            fn least(self, other: Self) -> Self {
                match (self.is_nan(), other.is_nan()) {
                    (true, false) => other,
                    (false, true) => self,
                    _ if self.total_cmp(&other).is_le() => self,
                    _ => other,
                }
            }
            fn greatest(self, other: Self) -> Self {
                match (self.is_nan(), other.is_nan()) {
                    (true, false) => other,
                    (false, true) => self,
                    _ if self.total_cmp(&other).is_ge() => self,
                    _ => other,
                }
            }
        }
    )*};
}

float!(f32: 4, f64: 8);

fn floats<const N: usize, T: Float<N>>(operation: Operation, into: &mut [u8], with: &[u8]) {
    match operation {
        Operation::Sum => each::<N>(into, with, |a, b| T::read(a).sum(T::read(b)).write()),
        Operation::Product => each::<N>(into, with, |a, b| T::read(a).product(T::read(b)).write()),
        Operation::Min => each::<N>(into, with, |a, b| T::read(a).least(T::read(b)).write()),
        Operation::Max => each::<N>(into, with, |a, b| T::read(a).greatest(T::read(b)).write()),
        Operation::And | Operation::Or => unreachable!("refused before: bitwise, of floats"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_operands_does_not_matter() {
        let values = [-0.0_f64, 0.0, 1.5, -3.25, f64::INFINITY, f64::NAN, 1e-310];
        for a in values {
            for b in values {
                for operation in [Operation::Min, Operation::Max] {
                    let (mut one, mut other) = (a.to_ne_bytes(), b.to_ne_bytes());
                    combine(Element::F64, operation, &mut one, &b.to_ne_bytes());
                    combine(Element::F64, operation, &mut other, &a.to_ne_bytes());
                    assert_eq!(one, other, "{operation:?} of {a} and {b}");
                }
            }
        }
    }

    #[test]
    fn integers_wrap_and_floats_have_no_bits() {
        let mut into = [250_u8, 3];
        combine(Element::U8, Operation::Sum, &mut into, &[10, 4]);
        assert_eq!(into, [4, 7]);
        combine(Element::U8, Operation::And, &mut into, &[6, 1]);
        assert_eq!(into, [4, 1]);
        assert!(check(Element::F32, Operation::Or).is_err());
        assert!(check(Element::I32, Operation::Or).is_ok());
    }
}
