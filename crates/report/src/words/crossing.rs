//! What is said of curves that cross.
//!
//! Units:   bytes of a message.
//! Checked: the tests of `finding::crossing`; `a_place_is_as_exact_as_it_is_known`.

use sonde_measure::Line;

use super::Words;
use crate::format::bytes;

/// Two curves that cross.
pub(crate) struct Crossing<'l> {
    /// The faster one below, and above.
    pub below: &'l Line,
    pub above: &'l Line,
    /// About where.
    pub about_bytes: u64,
    /// Surely not crossed yet, and surely crossed.
    pub between_bytes: (u64, u64),
}

impl Words for Crossing<'_> {
    fn sentence(&self) -> String {
        format!(
            "On {} {} is faster up to about {}, and {} above: the curves cross between {} and {}.",
            self.below.network,
            self.below.by(),
            bytes(two_digits(self.about_bytes)),
            self.above.by(),
            bytes(self.between_bytes.0),
            bytes(self.between_bytes.1)
        )
    }
}

/// As exact as it is known.
fn two_digits(size: u64) -> u64 {
    let mut unit = 1;
    while size / unit >= 100 {
        unit *= 10;
    }
    (size + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_as_exact_as_it_is_known() {
        assert_eq!(
            [7, 99, 1_249, 65_536].map(two_digits),
            [7, 99, 1_200, 66_000]
        );
    }
}
