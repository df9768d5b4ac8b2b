//! XDR: how ONC programs write their values.
//!
//! Model:   every value takes a multiple of four bytes, the most significant first; opaque bytes are padded with zeros. What is read
//!          is bounded by its caller: a length beyond the bound is refused before anything is looked at or kept.
//! Source:  RFC 4506 §4. Deviations: padding is not looked at, as servers and clients in use do not.
//! Checked: `values_come_back`, `what_is_short_or_long_is_refused`; the fuzz target `files`.
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

/// Bytes that are not the value that was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// They end within a value.
    #[error("the message ends within a value")]
    Truncated,
    /// A length is above its bound.
    #[error("{length} bytes are announced where at most {max} may be")]
    TooLong {
        /// As announced.
        length: u32,
        /// The most.
        max: u32,
    },
    /// A value has no meaning there.
    #[error("{value} is not {what}")]
    Value {
        /// What it should be.
        what: &'static str,
        /// What it is.
        value: u32,
    },
}

/// What reading gives.
pub type Result<T> = std::result::Result<T, Malformed>;

/// Reads values one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a> {
    left: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// From the begin of these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// What has not been read.
    pub const fn rest(self) -> &'a [u8] {
        self.left
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, left) = self
            .left
            .split_at_checked(count)
            .ok_or(Malformed::Truncated)?;
        self.left = left;
        Ok(taken)
    }

    /// An unsigned integer of 32 bits.
    ///
    /// # Errors
    /// The bytes end before it does.
    pub fn u32(&mut self) -> Result<u32> {
        let bytes = self.take(4)?;
        let bytes = bytes.try_into().map_err(|_| Malformed::Truncated)?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// An unsigned integer of 64 bits.
    ///
    /// # Errors
    /// The bytes end before it does.
    pub fn u64(&mut self) -> Result<u64> {
        let bytes = self.take(8)?;
        let bytes = bytes.try_into().map_err(|_| Malformed::Truncated)?;
        Ok(u64::from_be_bytes(bytes))
    }

    /// A truth value.
    ///
    /// # Errors
    /// The bytes end before it does; it is neither 0 nor 1.
    pub fn bool(&mut self) -> Result<bool> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(Malformed::Value {
                what: "a truth value",
                value,
            }),
        }
    }

    /// Opaque bytes of a fixed number, without their padding.
    ///
    /// # Errors
    /// The bytes end before they do.
    pub fn fixed(&mut self, count: usize) -> Result<&'a [u8]> {
        let bytes = self.take(count)?;
        self.take(padding(count))?;
        Ok(bytes)
    }

    /// Opaque bytes behind their number, at most `max`.
    ///
    /// # Errors
    /// They are more; the bytes end before they do.
    pub fn opaque(&mut self, max: u32) -> Result<&'a [u8]> {
        let length = self.u32()?;
        if length > max {
            return Err(Malformed::TooLong { length, max });
        }
        self.fixed(length as usize)
    }
}

/// The zeros behind so many opaque bytes.
const fn padding(count: usize) -> usize {
    count.wrapping_neg() & 3
}

/// Writes values one after the other.
#[derive(Debug, Clone, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// With room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
        }
    }

    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// An unsigned integer of 32 bits.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// An unsigned integer of 64 bits.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A truth value.
    pub fn bool(&mut self, value: bool) {
        self.u32(value.into());
    }

    /// Opaque bytes whose number is known to the reader, padded.
    pub fn fixed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let zeros = [0; 3];
        let padding = zeros.get(..padding(bytes.len())).unwrap_or_default();
        self.bytes.extend_from_slice(padding);
    }

    /// Opaque bytes behind their number, padded.
    pub fn opaque(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.fixed(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_short_or_long_is_refused() {
        let mut short = Decoder::new(&[0, 0, 0]);
        assert_eq!(short.u32(), Err(Malformed::Truncated));
        let mut long = Decoder::new(&[0, 0, 1, 0]);
        let refused = Malformed::TooLong {
            length: 256,
            max: 255,
        };
        assert_eq!(long.opaque(255), Err(refused));
        // Announced and within the bound, but not there.
        let mut gone = Decoder::new(&[0, 0, 0, 5, 1, 2, 3, 4, 5]);
        assert_eq!(gone.opaque(255), Err(Malformed::Truncated));
        let mut neither = Decoder::new(&[0, 0, 0, 2]);
        assert!(matches!(
            neither.bool(),
            Err(Malformed::Value { value: 2, .. })
        ));
    }

    proptest! {
        #[test]
        fn values_come_back(small: u32, large: u64, truth: bool, bytes in prop::collection::vec(any::<u8>(), 0..70)) {
            let mut encoder = Encoder::default();
            encoder.u32(small);
            encoder.opaque(&bytes);
            encoder.u64(large);
            encoder.fixed(&bytes);
            encoder.bool(truth);
            let written = encoder.finish();
            prop_assert_eq!(written.len() % 4, 0);
            let mut decoder = Decoder::new(&written);
            prop_assert_eq!(decoder.u32(), Ok(small));
            prop_assert_eq!(decoder.opaque(70), Ok(&bytes[..]));
            prop_assert_eq!(decoder.u64(), Ok(large));
            prop_assert_eq!(decoder.fixed(bytes.len()), Ok(&bytes[..]));
            prop_assert_eq!(decoder.bool(), Ok(truth));
            prop_assert!(decoder.rest().is_empty());
            // Every beginning of it is refused somewhere, and panics nowhere.
            for end in 0..written.len() {
                let mut part = Decoder::new(&written[..end]);
                let all = part.u32().and_then(|_| part.opaque(70)).and_then(|_| part.u64())
                    .and_then(|_| part.fixed(bytes.len())).and_then(|_| part.bool());
                prop_assert!(all.is_err());
            }
        }
    }
}
