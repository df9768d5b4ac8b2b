//! The words of a load's law and of a buffer's limit, as they are typed and as files have them.
//!
//! Model:   a law is a name, with the frames of a burst after a colon where it has bursts; a limit is a number and what it counts.
//! Checked: `laws_parse_and_print` of `load`; the fuzz target `load`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::load::BURST;
use crate::{Law, Limit};
use std::str::FromStr;

impl FromStr for Law {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || {
            format!(
                "`{text}` is not a law: write constant, poisson, geometric, on-off:20 (frames per burst), self-similar:20 or replay"
            )
        };
        let (name, burst) = match text.split_once(':') {
            Some((name, burst)) => (name, Some(burst.parse().map_err(|_| error())?)),
            None => (text, None),
        };
        match (name, burst) {
            ("constant", None) => Ok(Self::Constant),
            ("poisson", None) => Ok(Self::Poisson),
            ("geometric", None) => Ok(Self::Geometric),
            ("replay", None) => Ok(Self::Replay),
            ("on-off", burst) if burst != Some(0) => Ok(Self::OnOff(burst.unwrap_or(BURST))),
            ("self-similar", burst) if burst != Some(0) => {
                Ok(Self::SelfSimilar(burst.unwrap_or(BURST)))
            }
            _ => Err(error()),
        }
    }
}

impl FromStr for Limit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let counted = |suffix: &str| {
            trimmed
                .strip_suffix(suffix)
                .and_then(|n| n.trim().parse::<u64>().ok())
        };
        counted("cells").map(Self::Cells).or_else(|| counted("frames").map(Self::Frames)).map_or_else(
            || {
                let why = |_| format!("`{text}` is not a buffer: write cells (`13312cells`), frames (`100frames`) or a size (`512KiB`)");
                trimmed.parse().map(Self::Bytes).map_err(why)
            },
            Ok,
        )
    }
}
