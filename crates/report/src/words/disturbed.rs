//! What is said of figures that a disturbance leaves uncertain.
//!
//! Checked: the tests of `finding::disturbed`.

use sonde_measure::ResultRow;

use super::Words;
use crate::format::counted;
use crate::index::{under, words};

/// Figures that are disturbed.
pub(crate) struct Disturbed<'r> {
    pub network: &'r str,
    pub load: Option<&'r str>,
    pub disturbed: usize,
    /// All figures of the network.
    pub judged: usize,
    /// The worst of them.
    pub worst: &'r ResultRow,
}

impl Words for Disturbed<'_> {
    fn sentence(&self) -> String {
        format!(
            "A disturbance leaves {} of {} on {}{} uncertain (worst: {}).",
            self.disturbed,
            counted(self.judged as u64, "figure"),
            self.network,
            under(self.load),
            words(self.worst)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        self.worst.why.clone()
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "use fewer hosts, a slower network, more CPUs, or a machine without other work (`--until-quiet` waits for it); `sonde lab check` \
             measures what this one can emulate"
                .into(),
        )
    }
}
