//! Sizes in bytes.
//!
//! Units:   in files `B`, decimal `kB MB GB`, binary `KiB MiB GiB`, and no bare number. In options K, KB and KiB in any case are 1024,
//!          M and G alike, and a bare number is bytes.
//! Checked: `sizes_take_binary_and_decimal_suffixes`, `sizes_of_options_are_binary`.

use crate::parse::{self, Grammar, ParseQuantityError};
use std::{fmt, iter::Sum, ops, str::FromStr};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

const GRAMMAR: Grammar = Grammar {
    what: "a size",
    example: "64KiB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    option,
    option_units: "B, K, M, G (powers of 1024, also written KB or KiB)",
};

fn option(unit: &str) -> Option<u64> {
    let lower = unit.to_ascii_lowercase();
    if matches!(lower.as_str(), "byte" | "bytes") {
        return Some(1);
    }
    let short = lower.strip_suffix('b').unwrap_or(&lower);
    let letter = short.strip_suffix('i').filter(|letter| !letter.is_empty());
    parse::prefix(letter.unwrap_or(short), 1 << 10)
}

impl Bytes {
    /// Reads it as options have it: `64`, `64k`, `64KB`, `64KiB`.
    ///
    /// # Errors
    /// It begins with no number, its unit is none of a size, or it does not fit.
    pub fn of_option(text: &str) -> Result<Self, ParseQuantityError> {
        parse::option(text, &GRAMMAR).map(Self)
    }
    /// No byte.
    pub const ZERO: Self = Self(0);
    /// `n` units of 1024 bytes.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }
    /// `n` units of 1024² bytes.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }
    /// Eight times as many bits. Panics above 2^61 bytes.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
    /// The difference, or nothing where `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// So many times it, or the most there is.
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl ops::Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl ops::AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl ops::Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl ops::SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl ops::Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        Self(iter.map(|b| b.0).sum())
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::quantity(text, &GRAMMAR).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&parse::text(
            self.0,
            &[
                ("GiB", 1 << 30),
                ("MiB", 1 << 20),
                ("KiB", 1 << 10),
                ("B", 1),
            ],
        ))
    }
}

parse::as_text!(Bytes);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_binary_and_decimal_suffixes() {
        assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("1.5kB".parse(), Ok(Bytes(1_500)));
        assert_eq!(Bytes(65_536).to_string(), "64KiB");
        assert_eq!(Bytes(1_500).to_string(), "1500B");
    }

    #[test]
    fn sizes_of_options_are_binary() {
        for text in [
            "64k", "64K", "64kb", "64KB", "64kB", "64KiB", "64 kib", "65536", "65536B", "64Ki",
        ] {
            assert_eq!(Bytes::of_option(text), Ok(Bytes::kib(64)), "{text}");
        }
        assert_eq!(Bytes::of_option("1m"), Ok(Bytes::mib(1)));
        assert_eq!(Bytes::of_option("1.5G"), Ok(Bytes::mib(1_536)));
        for text in [
            "",
            "k",
            "1x",
            "1i",
            "1ib",
            "1kk",
            "1/2",
            "1-1024",
            "99999999999G",
        ] {
            assert!(Bytes::of_option(text).is_err(), "{text}");
        }
        let error = Bytes::of_option("64Q").unwrap_err().to_string();
        assert!(
            error.contains("B, K, M, G") && error.contains("`64Q`"),
            "{error}"
        );
    }

    #[test]
    fn a_bare_number_is_refused() {
        let error = "1500".parse::<Bytes>().unwrap_err().to_string();
        assert!(error.contains("KiB") && error.contains("`1500`"), "{error}");
        assert!("".parse::<Bytes>().is_err());
        assert!("1.2.3kB".parse::<Bytes>().is_err());
    }
}
