//! Series as bytes: what stands in the columns `first` and `buckets`.
//!
//! Model:   unsigned LEB128: seven bits a byte, the lowest first, the highest bit says that more follow. `first` is the
//!          samples as they came. `buckets` is pairs: by how much the bucket's largest value is above the one before (the
//!          first: above zero), and how many samples it counts.
//! Source:  DWARF 5 §7.6 for LEB128. Deviations: a number in more bytes than it needs is refused.
//! Checked: `numbers_come_back`, `known_bytes`, `any_bytes_are_numbers_or_an_error`, `damaged_blobs_are_an_error`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use sonde_stats::Damaged;

/// The largest number has ten bytes.
const BYTES_MAX: u32 = 10;

/// The samples in order.
pub(crate) fn of_samples(samples: &[u64]) -> Vec<u8> {
    let mut blob = Vec::with_capacity(samples.len().saturating_mul(4));
    for sample in samples {
        push(&mut blob, *sample);
    }
    blob
}

/// The reverse of [`of_samples`].
pub(crate) fn samples(blob: &[u8]) -> Result<Vec<u64>, Damaged> {
    let mut rest = blob;
    let mut samples = Vec::new();
    while !rest.is_empty() {
        samples.push(pull(&mut rest)?);
    }
    Ok(samples)
}

/// Ascending buckets.
pub(crate) fn of_buckets(buckets: &[(u64, u64)]) -> Vec<u8> {
    let mut blob = Vec::with_capacity(buckets.len().saturating_mul(4));
    let mut before = 0;
    for (value, count) in buckets {
        push(&mut blob, value.saturating_sub(before));
        push(&mut blob, *count);
        before = *value;
    }
    blob
}

/// The reverse of [`of_buckets`].
pub(crate) fn buckets(blob: &[u8]) -> Result<Vec<(u64, u64)>, Damaged> {
    let mut rest = blob;
    let mut buckets = Vec::new();
    let mut value: u64 = 0;
    while !rest.is_empty() {
        value = value
            .checked_add(pull(&mut rest)?)
            .ok_or_else(|| Damaged("a bucket's value has more than 64 bits".into()))?;
        buckets.push((value, pull(&mut rest)?));
    }
    Ok(buckets)
}

fn push(blob: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        blob.push(number as u8 | 0x80);
        number >>= 7;
    }
    blob.push(number as u8);
}

fn pull(rest: &mut &[u8]) -> Result<u64, Damaged> {
    let mut number = 0_u64;
    for (at, shift) in (0..BYTES_MAX).zip((0_u32..).step_by(7)) {
        let (byte, after) = rest
            .split_first()
            .ok_or_else(|| Damaged("its bytes end within a number".into()))?;
        *rest = after;
        let bits = u64::from(byte & 0x7f);
        if (at == 9 && bits > 1) || (at > 0 && *byte == 0) {
            return Err(Damaged("a number has bits or bytes too many".into()));
        }
        // The tenth byte has one bit: the shift takes none away.
        number |= bits.checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Damaged("a number has more than ten bytes".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sonde_stats::{Parts, Series};

    #[test]
    fn known_bytes() {
        assert_eq!(
            of_samples(&[0, 127, 128, 624_485]),
            [0, 127, 0x80, 1, 0xe5, 0x8e, 0x26]
        );
        assert_eq!(of_buckets(&[(5, 1), (133, 2)]), [5, 1, 0x80, 1, 2]);
        assert_eq!(of_samples(&[u64::MAX]).len(), 10);
        let refused: [&[u8]; 5] = [
            &[0x80],
            &[0x80, 0],
            &[0xff; 10],
            &[0xff; 11],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ];
        for blob in refused {
            assert!(samples(blob).is_err(), "{blob:x?}");
        }
        // A value without its count; a value beyond 64 bits.
        assert!(buckets(&[5]).is_err());
        let beyond = [of_samples(&[u64::MAX, 1]), of_samples(&[1, 1])].concat();
        assert!(buckets(&beyond).is_err());
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec((any::<u64>(), 0..64_u32).prop_map(|(n, s)| n >> s), 0..50)) {
            prop_assert_eq!(&samples(&of_samples(&numbers)).unwrap(), &numbers);
            let series: Series = numbers.into_iter().collect();
            prop_assert_eq!(buckets(&of_buckets(&series.buckets())).unwrap(), series.buckets());
        }

        #[test]
        fn any_bytes_are_numbers_or_an_error(blob in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(numbers) = samples(&blob) {
                prop_assert_eq!(of_samples(&numbers), blob.clone());
            }
            if let Ok(pairs) = buckets(&blob) {
                prop_assert_eq!(of_buckets(&pairs), blob);
            }
        }

        /// A changed byte, a lost end or a changed place: a series again, or an error; never a panic, never more than counted.
        #[test]
        fn damaged_blobs_are_an_error(
            numbers in prop::collection::vec(0_u64..1_000_000, 1..40),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let parts = Parts::from(numbers.into_iter().collect::<Series>());
            let (mut first, mut counts) = (of_samples(&parts.first), of_buckets(&parts.buckets));
            for blob in [&mut first, &mut counts] {
                let place = at.index(blob.len());
                blob[place] = byte;
                blob.truncate(cut.index(blob.len()) + 1);
            }
            let Ok(first) = samples(&first) else { return Ok(()) };
            let Ok(counted) = buckets(&counts) else { return Ok(()) };
            let read = Parts { first, buckets: counted, ..parts };
            if let Ok(series) = Series::try_from(read.clone()) {
                prop_assert_eq!(Parts::from(series), read);
            }
        }
    }
}
