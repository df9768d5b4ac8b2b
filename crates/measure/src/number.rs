//! A figure of a row: whole where it is whole, with a fraction where the unit needs one.
//!
//! Units:   the quantity's, as its name says.
//! Checked: `whole_numbers_have_no_fraction`, `there_is_no_nan`, `a_share_is_written_as_it_was_counted`.
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

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Up to here every whole number is a double of its own.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A finite number, which JSON shows without a fraction where it has none.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, JsonSchema)]
#[schemars(inline)]
pub struct Number(pub f64);

impl Number {
    /// An integer of which `per_unit` make one.
    pub fn of(integer: u64, per_unit: u64) -> Self {
        Self(integer as f64 / per_unit as f64)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The shortest text that is this number and no other; a whole one has no point.
        self.0.fmt(f)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.0.is_finite() {
            let text = format!("{} is not a figure: what was not measured is null", self.0);
            return Err(serde::ser::Error::custom(text));
        }
        if self.0.fract().abs() > 0.0 || self.0.abs() > EXACT_MAX {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_i64(self.0 as i64)
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        let text = |number| serde_json::to_string(&Number(number)).unwrap();
        assert_eq!(text(155_520_000.0), "155520000");
        assert_eq!(text(0.0), "0");
        assert_eq!(text(-3.0), "-3");
        assert_eq!(text(0.25), "0.25");
        assert_eq!(Number(94_148_244.0).to_string(), "94148244");
        for text in ["155520000", "0.25", "1e3", "-3"] {
            let number: Number = serde_json::from_str(text).unwrap();
            let again = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<Number>(&again).unwrap(), number);
        }
    }

    #[test]
    fn there_is_no_nan() {
        for number in [f64::NAN, f64::INFINITY] {
            let error = serde_json::to_string(&Number(number)).unwrap_err();
            assert!(error.to_string().contains("not a figure"), "{error}");
        }
        assert!(serde_json::from_str::<Number>("null").is_err());
    }

    #[test]
    fn a_share_is_written_as_it_was_counted() {
        for millionths in [0, 1, 10, 123_456, 999_999, 1_000_000] {
            let number = Number::of(millionths, 1_000_000);
            let text = serde_json::to_string(&number).unwrap();
            let back = serde_json::from_str::<Number>(&text).unwrap();
            assert_eq!((back.0 * 1e6).round() as u64, millionths, "{text}");
            assert!(text.len() <= 8, "{text}");
        }
    }
}
