//! Quantities as types: times in picoseconds, sizes in bytes, rates in bits a second, exact ratios, ranks; and what is among
//! ranks: communication matrices, virtual topologies.
//!
//! Model:   integers with a unit; arithmetic that can overflow panics (a broken invariant), parsing never does.
//! Units:   [`Instant`] and [`Span`] count picoseconds in `u64` (213 days); [`BitRate`] bits a second; [`Bytes`]
//!          bytes. A time for a size at a rate is rounded up, so that nothing is ever sent above its rate.
//! Checked: the tests of each module; properties `time_is_never_above_the_rate` and `text_round_trips`.
#![forbid(unsafe_code)]

mod list;
mod matrix;
mod parse;
mod rate;
mod ratio;
mod shown;
mod size;
mod time;
mod topology;

pub use list::two;
pub use matrix::{Matrix, MatrixError, RANKS_MAX};
pub use parse::{ParseQuantityError, as_file};
pub use rate::BitRate;
pub use ratio::{ParseShareError, Ratio};
pub use shown::{EXCERPT_BYTES, Excerpt, begin, excerpt, excerpts, lines, plain};
pub use size::Bytes;
pub use time::{Instant, OneWay, RoundTrip, Span};
pub use topology::{Shapeless, Topology, square};

/// A process of a parallel program, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);
