//! Rates in bits a second.
//!
//! Units:   decimal: `bit kbit Mbit Gbit`, a second understood. In options K, M and G in any case, alone or before `bit` or `bps`, are
//!          bits, and before `B` bytes. Times are rounded up to the picosecond.
//! Checked: `fractions_are_exact`, `rates_of_options_are_bits`, property `time_is_never_above_the_rate`.

use crate::parse::{self, Grammar, ParseQuantityError};
use crate::{Bytes, Ratio, Span};
use std::{fmt, str::FromStr};

/// Bits a second, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

const UNITS: &[(&str, u64)] = &[
    ("Tbit", 1_000_000_000_000),
    ("Gbit", 1_000_000_000),
    ("Mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];
const GRAMMAR: Grammar = Grammar {
    what: "a rate",
    example: "155.52Mbit",
    units: UNITS,
    option,
    option_units: "K, M, G, T (powers of 1000; bits, also written Mbit, Mbit/s or Mbps; bytes as MB)",
};

/// A second is understood. Only `b` and `B` differ by their case.
fn option(unit: &str) -> Option<u64> {
    let of = |text: &str, end: &str| {
        let at = text.len().checked_sub(end.len())?;
        let (front, back) = (text.get(..at)?, text.get(at..)?);
        back.eq_ignore_ascii_case(end).then(|| front.to_owned())
    };
    let amount = of(unit, "/s").or_else(|| of(unit, "ps"));
    let amount = amount.unwrap_or_else(|| unit.to_owned());
    let bits = ["bits", "bit"].iter().find_map(|word| of(&amount, word));
    let bytes = ["bytes", "byte"].iter().find_map(|word| of(&amount, word));
    let (letter, worth) = match (bits, bytes) {
        (Some(letter), _) => (letter, 1),
        (_, Some(letter)) => (letter, 8),
        _ => match (amount.strip_suffix('b'), amount.strip_suffix('B')) {
            (Some(letter), _) => (letter.to_owned(), 1),
            (_, Some(letter)) => (letter.to_owned(), 8),
            // A number alone has no unit; `10G` has one.
            _ if amount.is_empty() => return None,
            _ => (amount, 1),
        },
    };
    parse::prefix(&letter, 1_000)?.checked_mul(worth)
}

impl BitRate {
    /// Reads it as options have it: `10G`, `100mbit`, `1Gbit/s`, `12.5MB`.
    ///
    /// # Errors
    /// It begins with no number, its unit is none of a rate, it does not fit, or it is 0.
    pub fn of_option(text: &str) -> Result<Self, ParseQuantityError> {
        Self::of(parse::option(text, &GRAMMAR)?, text)
    }
    fn of(bps: u64, text: &str) -> Result<Self, ParseQuantityError> {
        Self::new(bps).ok_or_else(|| ParseQuantityError::Range {
            text: text.into(),
            what: "a rate, which is above zero",
        })
    }
    /// `n` bits a second; none for 0, which is no rate.
    pub const fn new(n: u64) -> Option<Self> {
        if n == 0 { None } else { Some(Self(n)) }
    }
    /// `n` times 10^6 bits a second. Panics at 0.
    pub const fn mbit(n: u64) -> Self {
        assert!(n > 0, "a rate is above zero");
        Self(n * 1_000_000)
    }
    /// `n` times 10^9 bits a second. Panics at 0.
    pub const fn gbit(n: u64) -> Self {
        assert!(n > 0, "a rate is above zero");
        Self(n * 1_000_000_000)
    }
    /// Bits a second.
    pub const fn bps(self) -> u64 {
        self.0
    }
    /// The time that `size` takes at this rate, rounded up to the picosecond.
    pub fn time(self, size: Bytes) -> Span {
        let product = u128::from(size.0) * 8_000_000_000_000;
        Span::picos(
            u64::try_from(product.div_ceil(u128::from(self.0)))
                .expect("a transmission lasts less than 213 days"),
        )
    }
    /// The whole bytes that fit into `span` at this rate, rounded down.
    pub fn bytes_in(self, span: Span) -> Bytes {
        Bytes((u128::from(span.as_picos()) * u128::from(self.0) / 8_000_000_000_000) as u64)
    }
    /// This rate times `ratio`, rounded down, at least 1 bit/s.
    pub fn scaled(self, ratio: Ratio) -> Self {
        Self(ratio.of(self.0).max(1))
    }
}

impl FromStr for BitRate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::of(parse::quantity(text, &GRAMMAR)?, text)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&parse::text(self.0, UNITS))
    }
}

parse::as_text!(BitRate);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fractions_are_exact() {
        assert_eq!("155.52Mbit".parse(), Ok(BitRate(155_520_000)));
        assert!("1e3bit".parse::<BitRate>().is_err());
        assert!("0Mbit".parse::<BitRate>().is_err());
        assert!("0.5bit".parse::<BitRate>().is_err());
        assert_eq!(BitRate(149_760_000).to_string(), "149.76Mbit");
        assert_eq!(BitRate::gbit(100).time(Bytes(1)), Span::picos(80));
        assert_eq!(BitRate::mbit(10).time(Bytes(1_538)), Span::nanos(1_230_400));
    }

    #[test]
    fn rates_of_options_are_bits() {
        for text in [
            "10G", "10g", "10Gbit", "10gbit", "10GBIT/s", "10Gb", "10Gb/s", "10Gbps", "10000M",
            "1.25GB", "1.25GB/s", "1250MBps",
        ] {
            assert_eq!(BitRate::of_option(text), Ok(BitRate::gbit(10)), "{text}");
        }
        assert_eq!(BitRate::of_option("100mbit"), Ok(BitRate::mbit(100)));
        assert_eq!(BitRate::of_option("64k"), Ok(BitRate(64_000)));
        assert_eq!(BitRate::of_option("9600bps"), Ok(BitRate(9_600)));
        for text in ["", "10", "G", "0M", "10GiB", "10x", "10/s/s", "10µ"] {
            assert!(BitRate::of_option(text).is_err(), "{text}");
        }
        // Files have no second spelling.
        assert!("10G".parse::<BitRate>().is_err());
        let error = BitRate::of_option("10").unwrap_err().to_string();
        assert!(error.contains("K, M, G, T"), "{error}");
    }

    proptest! {
        #[test]
        fn time_is_never_above_the_rate(bps in 1_000u64..400_000_000_000, size in 0u64..1 << 20) {
            let rate = BitRate(bps);
            let span = rate.time(Bytes(size));
            prop_assert!(u128::from(size) * 8_000_000_000_000 <= u128::from(span.as_picos()) * u128::from(bps));
            prop_assert!(rate.bytes_in(span).0 >= size);
        }

        #[test]
        fn text_round_trips(bps in 1u64..u64::MAX) {
            let rate = BitRate(bps);
            prop_assert_eq!(rate.to_string().parse::<BitRate>(), Ok(rate));
        }
    }
}
