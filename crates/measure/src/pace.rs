//! How often messages are to be sent: a rate and how it is spread in time.
//!
//! Model:   `constant`: message k is due at k over the rate. `poisson`: the times between are exponential with that mean, so
//!          that arrivals are those of many independent senders.
//! Units:   messages per second.
//! Checked: `paces_are_read_by_name`; the schedule: `crates/probe`, `pace`.
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

use crate::KnobValues;

use serde::{Deserialize, Serialize};

use crate::Unmeasurable;

/// The highest rate: each send takes more than its period.
pub const RATE_MAX: u64 = 10_000_000;

/// How messages are spread in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// Equal times between.
    Constant,
    /// Exponential times between.
    Poisson,
}

/// How often messages are to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Messages a second, 1 to [`RATE_MAX`].
    pub rate_per_s: u64,
    /// How they are spread.
    pub law: Spacing,
    /// Where random draws begin.
    pub seed: u64,
}

impl Spacing {
    /// As it is written: `constant`, `poisson`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
        }
    }
}

impl std::str::FromStr for Spacing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Constant, Self::Poisson];
        let found = all.into_iter().find(|law| law.name() == text);
        found.ok_or_else(|| format!("there is no law `{text}`: write constant or poisson"))
    }
}

impl Pace {
    /// Takes `rate` and `law` out of a measurement's knobs; `None` without a rate. The law is constant where none is said.
    ///
    /// # Errors
    /// A rate or a law that is none, a law without a rate.
    pub fn take(knobs: &mut KnobValues, seed: u64) -> Result<Option<Self>, Unmeasurable> {
        let refuse = |what: String, remedy| Err(Unmeasurable { what, remedy });
        let (rate, law) = (knobs.remove("rate"), knobs.remove("law"));
        let Some(rate) = rate else {
            return match law {
                None => Ok(None),
                Some(law) => refuse(
                    format!("the law {law} has no rate to spread"),
                    "give a rate too: `--rate 1000`",
                ),
            };
        };
        let parsed = rate.parse().ok();
        let Some(rate_per_s) = parsed.filter(|rate| (1..=RATE_MAX).contains(rate)) else {
            return refuse(
                format!("`{rate}` is not a rate of messages"),
                "write 1 to 10000000 messages per second",
            );
        };
        match law.as_deref().map_or(Ok(Spacing::Constant), str::parse) {
            Ok(law) => Ok(Some(Self {
                rate_per_s,
                law,
                seed,
            })),
            Err(what) => refuse(what, "constant spaces messages equally, poisson at random"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate_per_s: u64, law: Spacing) -> Pace {
        Pace {
            rate_per_s,
            law,
            seed: 7,
        }
    }

    #[test]
    fn paces_are_read_by_name() {
        let take = |pairs: &[(&str, &str)]| {
            let mut knobs: KnobValues = pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect();
            let taken = Pace::take(&mut knobs, 7).map_err(|error| error.to_string());
            (taken, knobs.len())
        };
        let all = [("law", "poisson"), ("rate", "50"), ("sndbuf", "1")];
        assert_eq!(take(&all), (Ok(Some(pace(50, Spacing::Poisson))), 1));
        assert_eq!(
            take(&[("rate", "50")]).0,
            Ok(Some(pace(50, Spacing::Constant)))
        );
        assert_eq!(take(&[("sndbuf", "1")]), (Ok(None), 1));
        for (pairs, said) in [
            (&[("rate", "0")][..], "`0` is not a rate"),
            (&[("rate", "10000001")], "not a rate"),
            (&[("rate", "1k")], "`1k`"),
            (&[("rate", "1"), ("law", "even")], "no law `even`"),
            (&[("law", "poisson")], "has no rate"),
        ] {
            let error = take(pairs).0.unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
