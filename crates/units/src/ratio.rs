//! Exact fractions, for probabilities, efficiencies and shares.
//!
//! Units:   numerator over denominator, both whole; text is a decimal (`0.001`), a percentage (`0.1%`) or a
//!          fraction (`1/1000`). In options a number alone that is 1 or above is refused: 50 may be 50 % or 50 times the whole.
//! Checked: `decimals_percentages_and_fractions_agree`, `a_share_of_an_option_says_percent`.

use crate::parse;
use std::{fmt, str::FromStr};

/// A fraction with a denominator above zero, not reduced.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self::new(0, 1);
    /// The whole.
    pub const ONE: Self = Self::new(1, 1);

    /// `numerator / denominator`. Panics at a denominator of 0.
    pub const fn new(numerator: u64, denominator: u64) -> Self {
        assert!(denominator > 0, "a ratio has a denominator above zero");
        Self {
            numerator,
            denominator,
        }
    }
    /// Its two parts, numerator first.
    pub const fn parts(self) -> (u64, u64) {
        (self.numerator, self.denominator)
    }
    /// This share of `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        (u128::from(whole) * u128::from(self.numerator) / u128::from(self.denominator)) as u64
    }
    /// Whether it is nothing.
    pub const fn is_zero(self) -> bool {
        self.numerator == 0
    }
    /// Whether an even draw of 64 bits falls into this share: true with this probability.
    pub fn hit(self, draw: u64) -> bool {
        u128::from(draw) * u128::from(self.denominator) < u128::from(self.numerator) << 64
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ratio {}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (u128::from(self.numerator) * u128::from(other.denominator))
            .cmp(&(u128::from(other.numerator) * u128::from(self.denominator)))
    }
}

/// Why a text is not a ratio.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a ratio: write a decimal (`0.001`), a percentage (`0.1%`) or a fraction (`1/1000`)",
    crate::excerpt(.0)
)]
pub struct ParseRatioError(String);

/// Why a text is not a share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseShareError {
    /// It is not a ratio.
    #[error(transparent)]
    Ratio(#[from] ParseRatioError),
    /// A number alone that may be meant in two ways.
    #[error(
        "`{}` may be read in two ways: write {percent}% or {share}",
        crate::excerpt(text)
    )]
    TwoReadings {
        /// What was read.
        text: String,
        /// In percent.
        percent: String,
        /// What else it may be, with a sign of percent.
        share: String,
    },
}

impl Ratio {
    /// Reads a share as options have it: `5%`, `0.05`, `1/20`. A number alone that is 1 or above is refused.
    ///
    /// # Errors
    /// It is not a share, or it can be read in two ways; both are named.
    pub fn of_option(text: &str) -> Result<Self, ParseShareError> {
        Self::of_option_in(text, 1)
    }

    /// The same of an option that was once in so many parts of a whole: of 1000 where it was per mille.
    ///
    /// # Errors
    /// As for [`Ratio::of_option`].
    pub fn of_option_in(text: &str, parts: u64) -> Result<Self, ParseShareError> {
        let ratio: Self = text.parse()?;
        let is_bare = !text.contains(['%', '/']);
        if !is_bare || ratio < Self::ONE {
            return Ok(ratio);
        }
        let number = text.trim();
        let other = Self::new(ratio.numerator, ratio.denominator.saturating_mul(parts));
        Err(ParseShareError::TwoReadings {
            text: text.to_owned(),
            percent: number.to_owned(),
            share: other.percent(),
        })
    }

    /// In percent, with three decimals at most: `0.5%`.
    pub fn percent(self) -> String {
        let thousandths = self.of(100_000);
        let (whole, rest) = (thousandths / 1_000, thousandths % 1_000);
        let decimals = format!("{rest:03}");
        match decimals.trim_end_matches('0') {
            "" => format!("{whole}%"),
            decimals => format!("{whole}.{decimals}%"),
        }
    }
}

impl FromStr for Ratio {
    type Err = ParseRatioError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match parse::share(text) {
            Some((numerator, denominator)) => Ok(Self::new(numerator, denominator)),
            None => Err(ParseRatioError(text.to_owned())),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

parse::as_text!(Ratio);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_percentages_and_fractions_agree() {
        let one_in_a_thousand = Ratio::new(1, 1_000);
        for text in ["0.001", "0.1%", "1/1000", "0.0010"] {
            assert_eq!(text.parse(), Ok(one_in_a_thousand), "{text}");
        }
        for text in ["", "x", "1/0", "-1", ".5", "1e-3"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
        assert_eq!(Ratio::new(26, 27).of(155_520_000), 149_760_000);
        assert!(Ratio::ONE.hit(u64::MAX) && !Ratio::ZERO.hit(0));
        assert!(Ratio::new(1, 2).hit((1 << 63) - 1) && !Ratio::new(1, 2).hit(1 << 63));
    }

    #[test]
    fn a_share_of_an_option_says_percent() {
        let twentieth = Ok(Ratio::new(1, 20));
        for text in ["5%", "0.05", "1/20"] {
            assert_eq!(Ratio::of_option(text), twentieth, "{text}");
        }
        assert_eq!(Ratio::of_option("0"), Ok(Ratio::ZERO));
        assert_eq!(Ratio::of_option("100%"), Ok(Ratio::ONE));
        let refused = |text, parts| Ratio::of_option_in(text, parts).unwrap_err().to_string();
        assert!(
            refused("50", 1_000).contains("50% or 5%"),
            "{}",
            refused("50", 1_000)
        );
        assert!(
            refused("1", 1).contains("1% or 100%"),
            "{}",
            refused("1", 1)
        );
        assert!(refused("2.5", 1_000).contains("2.5% or 0.25%"));
        assert!(refused("10.5", 1_000).contains("10.5% or 1.05%"));
        assert!(refused("many", 1).contains("percentage"));
    }
}
