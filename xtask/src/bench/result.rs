//! What was recorded of a bench: `bench/results/NAME.toml`.
//!
//! Model:   the commit, the day and the machine of the run; how many rounds were tried and dropped; the figures of each case, a list with a
//!          value for each round that counted (`nan` where a member had none). Figures that were printed before rounds were kept
//!          are `carried`: the tables as they were, with the commit that has them.
//! Checked: `a_result_is_read_as_it_was_written`, `rounds_without_a_figure_keep_their_place`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bench::file::{Bench, Values};
use crate::bench::read::Figures;

/// Digits that a figure keeps.
const DIGITS: usize = 6;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// That of the program that was run.
    pub commit: String,
    /// As `2026-11-26`.
    pub date: String,
    pub machine: String,
    #[serde(default)]
    pub tried: usize,
    #[serde(default)]
    pub dropped: usize,
    /// What disturbed the dropped rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// What was not run, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub case: Vec<Case>,
}

/// Figures of a run whose rounds were not kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carried {
    /// The command that printed them.
    pub command: String,
    /// The tables, in Markdown.
    pub text: String,
}

/// The figures of one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The values of the axes that tables show.
    #[serde(default)]
    pub of: Values,
    /// Rounds that counted.
    pub rounds: usize,
    /// The way of a cache line in each of them, where that makes populations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines_ns: Vec<f64>,
    /// Figures of the models.
    #[serde(default)]
    pub given: BTreeMap<String, f64>,
    #[serde(default)]
    pub figures: BTreeMap<String, Vec<f64>>,
}

impl Case {
    /// Of these values, without a round.
    pub fn of(bench: &Bench, values: &Values) -> Self {
        let heads = bench.heads().into_iter();
        let of = heads.filter_map(|head| Some((head.to_owned(), values.get(head)?.clone())));
        let given = bench.given.iter().filter_map(|given| {
            let value = values.get(&given.name)?.parse().ok()?;
            Some((given.name.clone(), value))
        });
        Self {
            of: of.collect(),
            given: given.collect(),
            ..Self::default()
        }
    }

    /// Adds a round.
    pub fn add(&mut self, figures: Figures, line_ns: Option<f64>) {
        for (name, value) in figures {
            let list = self.figures.entry(name).or_default();
            list.resize(self.rounds, f64::NAN);
            list.push(rounded(value));
        }
        self.rounds += 1;
        for list in self.figures.values_mut() {
            list.resize(self.rounds, f64::NAN);
        }
        self.lines_ns.extend(line_ns.map(rounded));
    }

    /// A figure of a round, or that of a model.
    pub fn figure(&self, name: &str, round: usize) -> Option<f64> {
        let measured = self.figures.get(name).and_then(|list| list.get(round));
        let value = measured.or_else(|| self.given.get(name)).copied();
        value.filter(|value| value.is_finite())
    }
}

/// With so many digits as a figure keeps.
fn rounded(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let mut case = Case {
            of: [("size".to_owned(), "1B".to_owned())].into(),
            ..Case::default()
        };
        case.add(vec![("own.bps".into(), 123_456_789.0)], Some(50.5));
        let recorded = Recorded {
            commit: "0123abc".into(),
            date: "2026-11-26".into(),
            machine: "m".into(),
            tried: 2,
            dropped: 1,
            case: vec![case],
            ..Recorded::default()
        };
        let text = toml::to_string(&recorded).unwrap();
        let again: Recorded = toml::from_str(&text).unwrap();
        assert_eq!(again, recorded, "{text}");
        assert_eq!(again.case[0].figures["own.bps"], [123_457_000.0]);
        assert!(toml::from_str::<Recorded>("commit = 1").is_err());
    }

    #[test]
    fn rounds_without_a_figure_keep_their_place() {
        let mut case = Case::default();
        case.add(vec![("a".into(), 1.0)], None);
        case.add(vec![("b".into(), 2.0)], None);
        case.add(vec![("a".into(), 3.0), ("b".into(), 4.0)], None);
        let of = |name: &str| {
            (0..3)
                .map(|round| case.figure(name, round))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("a"), [Some(1.0), None, Some(3.0)]);
        assert_eq!(of("b"), [None, Some(2.0), Some(4.0)]);
    }
}
