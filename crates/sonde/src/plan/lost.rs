//! The share of datagrams that may be lost while the highest rate of a stream is looked for.
//!
//! Units:   parts in a million; written as 0.1% or 0.001.
//! Checked: `a_share_is_below_one`, `wrong_plans_are_refused_with_their_place`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A share from 0 to below 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Lost {
    ppm: u64,
}

impl Lost {
    /// In a million.
    pub const fn ppm(self) -> u64 {
        self.ppm
    }
}

impl FromStr for Lost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, of) = match text.strip_suffix('%') {
            Some(number) => (number.trim(), 1e4),
            None => (text, 1e6),
        };
        let share = number.parse().ok().map(|share: f64| share * of);
        share
            .map(f64::round)
            .filter(|ppm| (0.0..1e6).contains(ppm))
            .map(|ppm| Self { ppm: ppm as u64 })
            .ok_or_else(|| format!("`{text}` is not a share: write 0 to below 1, or as 0.1%"))
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ppm as f64 / 1e6)
    }
}

impl TryFrom<String> for Lost {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Lost> for String {
    fn from(lost: Lost) -> Self {
        lost.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_below_one() {
        for (text, ppm) in [
            ("0", 0),
            ("0.1%", 1_000),
            ("0.001", 1_000),
            ("99 %", 990_000),
        ] {
            let lost: Lost = text.parse().unwrap();
            assert_eq!(lost.ppm(), ppm, "{text}");
            assert_eq!(lost.to_string().parse(), Ok(lost), "it is read back");
        }
        for text in ["1", "100%", "0.9999999", "-1", "NaN", "", "%"] {
            assert!(text.parse::<Lost>().is_err(), "{text}");
        }
    }
}
