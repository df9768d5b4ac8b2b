//! Numbers of a fixed count of decimal digits, and of one digit that counts.
//!
//! Units:   those of the name beside the value. A [`Fixed`] has its digits in its type and is held as an integer.
//! Checked: `fixed_numbers_are_rounded_as_they_are_printed`, `fixed_numbers_come_back_from_json`; `values_come_back` of `text`.
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

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::Text;

/// A number with `DIGITS` decimal digits, held as an integer: 0.25 with four digits is 2500. In JSON it is the number, 0.25, which
/// comes back as it was from an integer below 2⁵²; a number that has more digits, is negative or is none is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixed<const DIGITS: u32>(pub u64);

impl<const DIGITS: u32> Fixed<DIGITS> {
    /// The nearest to `value`; `None` of what is negative or no number.
    pub fn of(value: f64) -> Option<Self> {
        Self::read(&format!("{value:.0$}", DIGITS as usize))
    }

    /// As a floating-point number.
    pub fn value(self) -> f64 {
        self.0 as f64 / 10_u64.pow(DIGITS) as f64
    }
}

impl<const DIGITS: u32> Serialize for Fixed<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de, const DIGITS: u32> Deserialize<'de> for Fixed<DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        let is_same = |read: &Self| read.value().to_bits() == value.to_bits();
        Self::of(value).filter(is_same).ok_or_else(|| {
            let what =
                format!("{value} is not a number from 0 on with at most {DIGITS} decimal digits");
            D::Error::custom(what)
        })
    }
}

impl<const DIGITS: u32> JsonSchema for Fixed<DIGITS> {
    fn schema_name() -> Cow<'static, str> {
        format!("Fixed{DIGITS}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0})
    }
}

impl<const DIGITS: u32> Text for Fixed<DIGITS> {
    fn read(text: &str) -> Option<Self> {
        let (whole, digits) = match DIGITS {
            0 => (text, ""),
            _ => text.split_once('.')?,
        };
        let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if digits.len() != DIGITS as usize || !is_plain(whole) || !is_plain(digits) {
            return None;
        }
        format!("{whole}{digits}").parse().ok().map(Self)
    }

    fn write(&self) -> String {
        let unit = 10_u64.pow(DIGITS);
        let parts = self.0.checked_div(unit).zip(self.0.checked_rem(unit));
        match (DIGITS, parts) {
            (1.., Some((whole, rest))) => format!("{whole}.{rest:00$}", DIGITS as usize),
            _ => self.0.to_string(),
        }
    }
}

/// Shares of several streams, of one, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shares(pub Vec<Fixed<3>>);

impl Text for Shares {
    fn read(text: &str) -> Option<Self> {
        text.split(' ')
            .map(Fixed::read)
            .collect::<Option<_>>()
            .map(Self)
    }

    fn write(&self) -> String {
        let each: Vec<String> = self.0.iter().map(Text::write).collect();
        each.join(" ")
    }
}

/// A scientific number with one digit after the point, as `2.0e-15`: the largest relative error of a kernel's results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelativeError(pub f64);

impl Text for RelativeError {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    fn write(&self) -> String {
        format!("{:.1e}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_numbers_are_rounded_as_they_are_printed() {
        for value in [0.0, 0.00005, 0.12345, 1.0, 166.6, 1e9] {
            let fixed = Fixed::<4>::of(value).unwrap();
            assert_eq!(fixed.write(), format!("{value:.4}"));
            let printed = format!("{value:.4}").parse::<f64>().unwrap();
            assert_eq!(fixed.value().to_bits(), printed.to_bits());
        }
        assert_eq!(Fixed::<4>::of(f64::NAN), None);
        assert_eq!(Fixed::<0>::of(72.6), Some(Fixed(73)));
    }

    #[test]
    fn fixed_numbers_come_back_from_json() {
        let text = |value: &Fixed<4>| serde_json::to_string(value).unwrap();
        assert_eq!(text(&Fixed(2_500)), "0.25");
        assert_eq!(text(&Fixed(10_000)), "1.0");
        let most = (1 << 52) - 1;
        for value in [0, 1, 9_999, 1_666_000, most - 1, most] {
            let read = serde_json::from_str::<Fixed<4>>(&text(&Fixed(value))).unwrap();
            assert_eq!(read, Fixed(value));
        }
        assert_eq!(
            serde_json::from_str::<Fixed<4>>("1").unwrap(),
            Fixed(10_000)
        );
        for wrong in ["0.00001", "-0.5", "-0.0", "null", "\"0.25\"", "1e300"] {
            assert!(serde_json::from_str::<Fixed<4>>(wrong).is_err(), "{wrong}");
        }
    }
}
