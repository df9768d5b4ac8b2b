//! The words of a pattern's set of pairs: `shift:3`, `random-ring:7`, `h1>h2,h3>h4`.
//!
//! Model:   a name, with a number after a colon where it has one; or pairs of hosts, each once.
//! Checked: the tests of `sets`; the fuzz target `words`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::collections::BTreeSet;
use std::str::FromStr;

use super::sets::{NAMES, Pair, Set, SetError};

impl FromStr for Set {
    type Err = SetError;

    fn from_str(text: &str) -> Result<Self, SetError> {
        let refuse = |problem: String| SetError {
            text: text.into(),
            problem,
        };
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => {
                let number = number
                    .parse::<u64>()
                    .map_err(|_| refuse(format!("`{number}` is not a whole number; {NAMES}")))?;
                (name, Some(number))
            }
            None => (text, None),
        };
        let by = || usize::try_from(number.unwrap_or(1)).unwrap_or(usize::MAX);
        let seed = number.unwrap_or(1);
        let set = match name {
            "shift" => Self::Shift(by()),
            "reverse" => Self::Reverse(by()),
            "random" => Self::Random(seed),
            "random-ring" => Self::RandomRing(seed),
            _ if number.is_some() => return Err(refuse(NAMES.into())),
            "even-next" => Self::EvenNext,
            "odd-previous" => Self::OddPrevious,
            "half-ring" => Self::HalfRing,
            "all-to-one" => Self::AllToOne,
            "one-to-all" => Self::OneToAll,
            "all-to-all" => Self::AllToAll,
            "neighbours" => Self::Neighbours,
            "natural-ring" => Self::NaturalRing,
            _ => Self::Pairs(named_pairs(text).ok_or_else(|| refuse(NAMES.into()))?),
        };
        Ok(set)
    }
}

/// `h1>h2,h3>h4`, each pair once.
fn named_pairs(text: &str) -> Option<Vec<Pair>> {
    let host = |word: &str| {
        word.strip_prefix('h')?
            .parse::<usize>()
            .ok()?
            .checked_sub(1)
    };
    let pair = |word: &str| {
        let (from, to) = word.split_once('>')?;
        Some((host(from)?, host(to)?))
    };
    let pairs: Vec<Pair> = text.split(',').map(pair).collect::<Option<_>>()?;
    let different: BTreeSet<&Pair> = pairs.iter().collect();
    (different.len() == pairs.len()).then_some(pairs)
}
