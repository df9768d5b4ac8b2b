//! Knobs by name, with their values as texts: how a plan sets them, and how rows and records are told from each other by them.
//!
//! Model:   one value a name, in the order of names. Whoever reads a knob takes it out, so that what is left is what nobody knows.
//! Checked: `numbers_are_taken`, `the_text_is_that_of_a_plan`.
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

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Values of knobs, by name.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct KnobValues(BTreeMap<String, String>);

impl KnobValues {
    /// Of none.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each as `name=value`.
    pub fn words(&self) -> impl Iterator<Item = String> + '_ {
        self.iter().map(|(name, value)| format!("{name}={value}"))
    }

    /// Takes a whole number out.
    ///
    /// # Errors
    /// The value is not a whole number from 0 to 2^64 - 1.
    pub fn take_number(&mut self, name: &str) -> Result<Option<u64>, NotANumber> {
        let Some(value) = self.remove(name) else {
            return Ok(None);
        };
        value.parse().map(Some).map_err(|_| NotANumber {
            name: name.to_owned(),
            value,
        })
    }
}

/// The value of a knob that must be a whole number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}={value}` is not a number: write {name}=4")]
pub struct NotANumber {
    /// The knob.
    pub name: String,
    /// What was written.
    pub value: String,
}

impl fmt::Display for KnobValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, word) in self.words().enumerate() {
            write!(f, "{}{word}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl Deref for KnobValues {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for KnobValues {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl FromIterator<(String, String)> for KnobValues {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl<const N: usize> From<[(String, String); N]> for KnobValues {
    fn from(pairs: [(String, String); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl IntoIterator for KnobValues {
    type Item = (String, String);
    type IntoIter = std::collections::btree_map::IntoIter<String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'k> IntoIterator for &'k KnobValues {
    type Item = (&'k String, &'k String);
    type IntoIter = std::collections::btree_map::Iter<'k, String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> KnobValues {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn numbers_are_taken() {
        let mut knobs = set(&[("ranks", "8"), ("volley", "many"), ("window", "-1")]);
        assert_eq!(knobs.take_number("ranks"), Ok(Some(8)));
        assert_eq!(knobs.take_number("ranks"), Ok(None), "it was taken");
        let error = knobs.take_number("volley").unwrap_err().to_string();
        assert_eq!(error, "`volley=many` is not a number: write volley=4");
        assert!(knobs.take_number("window").is_err());
        assert!(knobs.is_empty());
    }

    #[test]
    fn the_text_is_that_of_a_plan() {
        assert_eq!(set(&[]).to_string(), "");
        let knobs = set(&[("window", "1MiB"), ("buffer", "64KiB")]);
        assert_eq!(knobs.to_string(), "buffer=64KiB window=1MiB");
        let json = serde_json::to_string(&knobs).unwrap();
        assert_eq!(json, r#"{"buffer":"64KiB","window":"1MiB"}"#);
        assert_eq!(serde_json::from_str::<KnobValues>(&json).unwrap(), knobs);
    }
}
