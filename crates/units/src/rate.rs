//! Rates in bits a second.
//!
//! Units:   decimal: `bit kbit Mbit Gbit`, a second understood. Times are rounded up to the picosecond.
//! Checked: `fractions_are_exact`, property `time_is_never_above_the_rate`.

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
};

impl BitRate {
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
        let bps = parse::quantity(text, &GRAMMAR)?;
        Self::new(bps).ok_or_else(|| ParseQuantityError::Range {
            text: text.into(),
            what: "a rate, which is above zero",
        })
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
