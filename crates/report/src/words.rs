//! All sentences of findings and causes: what was found, typed, is said here and nowhere else.
//!
//! Model:   a rule finds evidence; each kind of evidence has its [`Words`] in one of the modules below: the sentence, the figures
//!          that it follows from, and what to do. Subject first, one thought a sentence, figures with their units. A
//!          difference whose interval holds zero is told to be not distinguishable; its number, with its sign, is among the figures.
//! Checked: the tests of the rules, which compare whole sentences; `cargo xtask tidy` for sentences elsewhere.

pub(crate) mod all_pairs;
pub(crate) mod cause;
pub(crate) mod ceiling;
pub(crate) mod cold;
pub(crate) mod contention;
pub(crate) mod cpu;
pub(crate) mod crossing;
pub(crate) mod disturbed;
pub(crate) mod drift;
pub(crate) mod files;
pub(crate) mod hosts;
pub(crate) mod kernel_bypass;
pub(crate) mod kernels;
pub(crate) mod layer_cost;
pub(crate) mod library_rate;
pub(crate) mod load;
pub(crate) mod looked;
pub(crate) mod loss;
pub(crate) mod lost;
pub(crate) mod matrix;
pub(crate) mod mtu;
pub(crate) mod noise;
pub(crate) mod pairs;
pub(crate) mod place;
pub(crate) mod precision;
pub(crate) mod strangers;
pub(crate) mod sweep;
pub(crate) mod window;

use crate::lost::Lost;

/// What is said of what a rule found.
pub(crate) trait Words {
    /// What was found.
    fn sentence(&self) -> String;

    /// The figures that it follows from.
    fn arithmetic(&self) -> Option<String> {
        None
    }

    /// What to do about it.
    fn remedy(&self) -> Option<String> {
        None
    }

    /// What is lost by it, where it is a loss.
    fn lost(&self) -> Option<Lost> {
        None
    }
}
