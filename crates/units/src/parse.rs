//! Numbers with a unit suffix, parsed exactly: `1.5ms`, `64KiB`, `155.52Mbit`.
//!
//! Model:   digits, at most one decimal point, then a suffix; the value must be a whole number of the smallest unit. A share is two
//!          whole numbers. There are two readings. That of files (`FromStr`) has a fixed table, in which `kB` is 1000. That of options
//!          (`of_option`) takes what people type: sizes K, KB and KiB in any case are 1024; rates K, M and G are 1000 and bits.
//! Checked: `fractions_are_exact`, `a_bare_number_is_refused`, and of options the tests of each quantity.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::excerpt;
use thiserror::Error;

/// Why a text is not a quantity. The message says what was read and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseQuantityError {
    /// There is no digit where the number should begin.
    #[error(
        "`{}` is not {what}: it must begin with a number, as in `{example}`",
        excerpt(text)
    )]
    NoNumber {
        /// What was read.
        text: String,
        /// The quantity wanted, with its article.
        what: &'static str,
        /// A right one.
        example: &'static str,
    },
    /// The suffix is missing or unknown.
    #[error(
        "`{}` is not {what}: its unit must be one of {units}, as in `{example}`",
        excerpt(text)
    )]
    Unit {
        /// What was read.
        text: String,
        /// The quantity wanted, with its article.
        what: &'static str,
        /// The suffixes that are known.
        units: String,
        /// A right one.
        example: &'static str,
    },
    /// The number does not fit, or is finer than the smallest unit.
    #[error(
        "`{}` is out of range for {what}: it must be a whole number of the smallest unit and below 2^64 of it",
        excerpt(text)
    )]
    Range {
        /// What was read.
        text: String,
        /// The quantity wanted, with its article.
        what: &'static str,
    },
}

/// A kind of quantity: its name, an example, and its suffixes with their worth in the smallest unit.
pub(crate) struct Grammar {
    pub what: &'static str,
    pub example: &'static str,
    pub units: &'static [(&'static str, u64)],
    /// The worth of a suffix of an option, which may be empty.
    pub option: fn(&str) -> Option<u64>,
    /// The suffixes of options, in words.
    pub option_units: &'static str,
}

/// The value of `text`, as files have it, in the smallest unit of `grammar`.
pub(crate) fn quantity(text: &str, grammar: &Grammar) -> Result<u64, ParseQuantityError> {
    let units = || {
        let names = grammar.units.iter().map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    };
    let worth = |unit: &str| {
        let known = grammar.units.iter().find(|(name, _)| *name == unit);
        known.map(|(_, worth)| *worth)
    };
    read(text, grammar, worth, units)
}

/// The value of `text`, as people type it in an option, in the smallest unit of `grammar`.
pub(crate) fn option(text: &str, grammar: &Grammar) -> Result<u64, ParseQuantityError> {
    read(text, grammar, grammar.option, || {
        grammar.option_units.to_owned()
    })
}

/// The worth of a prefix in any case, K, M, G and T being powers of `base`; 1 where there is none.
pub(crate) fn prefix(letter: &str, base: u64) -> Option<u64> {
    let power = match letter {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    base.checked_pow(power)
}

fn read(
    text: &str,
    grammar: &Grammar,
    worth_of: impl Fn(&str) -> Option<u64>,
    units: impl Fn() -> String,
) -> Result<u64, ParseQuantityError> {
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    if !number.starts_with(|c: char| c.is_ascii_digit()) || number.matches('.').count() > 1 {
        return Err(ParseQuantityError::NoNumber {
            text: text.into(),
            what: grammar.what,
            example: grammar.example,
        });
    }
    let unit = unit.trim();
    let Some(worth) = worth_of(unit) else {
        return Err(ParseQuantityError::Unit {
            text: text.into(),
            what: grammar.what,
            units: units(),
            example: grammar.example,
        });
    };
    let range = || ParseQuantityError::Range {
        text: text.into(),
        what: grammar.what,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(range());
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| range())?;
    let product = digits.checked_mul(u128::from(worth)).ok_or_else(range)?;
    if product.checked_rem(scale) != Some(0) {
        return Err(range());
    }
    let value = product.checked_div(scale).ok_or_else(range)?;
    u64::try_from(value).map_err(|_| range())
}

/// The text of a quantity as files have it, of one as options have it: as it is where both readings agree.
///
/// # Errors
/// The option's.
pub fn as_file<Q>(
    text: &str,
    of_option: fn(&str) -> Result<Q, ParseQuantityError>,
) -> Result<String, ParseQuantityError>
where
    Q: std::str::FromStr + std::fmt::Display + PartialEq,
{
    let quantity = of_option(text)?;
    let is_same = text.parse::<Q>().is_ok_and(|read| read == quantity);
    Ok(if is_same {
        text.to_owned()
    } else {
        quantity.to_string()
    })
}

/// A share as a decimal, a percentage or a fraction: numerator and denominator, which is above zero; none where it is not one.
pub(crate) fn share(text: &str) -> Option<(u64, u64)> {
    let trimmed = text.trim();
    if let Some((numerator, denominator)) = trimmed.split_once('/') {
        let parts = (
            numerator.trim().parse().ok()?,
            denominator.trim().parse().ok()?,
        );
        return Some(parts).filter(|(_, denominator)| *denominator > 0);
    }
    let (decimal, scale) = trimmed
        .strip_suffix('%')
        .map_or((trimmed, 1), |p| (p.trim(), 100));
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let digits = format!("{whole}{fraction}");
    if whole.is_empty() || fraction.len() > 15 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let denominator = 10u64.pow(fraction.len() as u32).checked_mul(scale)?;
    Some((digits.parse().ok()?, denominator))
}

/// `value` with the largest suffix of `units` that leaves a short number, exact.
pub(crate) fn text(value: u64, units: &[(&str, u64)]) -> String {
    for &(name, worth) in units {
        let parts = value.checked_div(worth).zip(value.checked_rem(worth));
        if let Some((whole, rest)) = parts.filter(|(whole, _)| *whole > 0) {
            if rest == 0 {
                return format!("{whole}{name}");
            }
            let (thousands, worth) = (u128::from(rest).saturating_mul(1_000), u128::from(worth));
            let thousandths = thousands.checked_div(worth).unwrap_or(0);
            if thousands.checked_rem(worth) == Some(0) {
                return format!(
                    "{whole}.{}{name}",
                    format!("{thousandths:03}").trim_end_matches('0')
                );
            }
        }
    }
    let smallest = units.last().map_or("", |(name, _)| name);
    format!("{value}{smallest}")
}

/// Reads and writes a quantity as its text.
macro_rules! as_text {
    ($quantity:ty) => {
        impl serde::Serialize for $quantity {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $quantity {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use as_text;
