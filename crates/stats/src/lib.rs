//! What samples say: order statistics, and intervals that assume no distribution.
//!
//! Model:   samples live in launches. Order statistics pool the samples of a row's launches; an interval is over the
//!          launches' medians, since launches differ more from each other than samples within one.
//! Source:  Hoefler & Belli, SC'15 (rules 5 to 8); Hunold & Carpen-Amarie, TPDS 27(12) 2016. Deviations: none.
//! Units:   samples are `u64` in the caller's unit (nanoseconds, bits a second); floats are probabilities, ratios, and
//!          what is between two samples.
//! Checked: the tests of each module.
#![forbid(unsafe_code)]

mod comparison;
mod fit;
mod half_size;
mod interval;
mod launches;
mod levels;
mod precision;
mod series;
mod summary;
mod touched;
mod trend;

pub use comparison::{
    Difference, RankSum, Ratio, difference, is_apart, launches_wanted, level_of_all, rank_sum,
    ratio,
};
pub use fit::{Fit, FitPoint, fit};
pub use half_size::half_size;
pub use interval::{Interval, median_rank_interval, share_interval};
pub use launches::{Pooled, pool};
pub use levels::{Scatter, Sequences};
pub use precision::{Precision, precision};
pub use series::{Damaged, FIRST_MAX, Parts, Series};
pub use summary::{SAMPLES_FOR_P99, SAMPLES_FOR_P999, Samples, Summary};
pub use touched::{
    BoundedInterval, Bounds, Limit, bounded_interval, bounds, rate_bounds, untouched_quantile,
};
pub use trend::{Trend, trend};
