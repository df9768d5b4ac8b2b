//! Patterns of parallel programs by name, as communication matrices: for trying a placement out.
//!
//! Model:   `stencil-2d` and `mesh` exchange with the neighbours in a grid as square as the number of ranks allows, row after row, without
//!          wrapping round; `stencil-3d` the same in a box; `transpose` is all to all within each row of the square grid, as
//!          the transposes of a Fourier transform of several dimensions; `ring` sends to the next; `hypercube` exchanges with
//!          each rank whose number differs in one bit; `all-to-all` is with everyone; `random` sends to four others by seed.
//! Units:   bytes in each message; messages along each directed pair.
//! Checked: `neighbours_are_as_drawn`, `each_pattern_is_as_large_as_it_should_be`.

use crate::{Matrix, MatrixError};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_units::square;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// How many others a rank of `random` sends to.
const OTHERS: usize = 4;

/// A named pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Neighbours in a grid.
    Stencil2d,
    /// Neighbours in a box.
    Stencil3d,
    /// All to all within rows of a grid.
    Transpose,
    /// To the next.
    Ring,
    /// With those that differ in one bit.
    Hypercube,
    /// With everyone.
    AllToAll,
    /// To four others by seed.
    Random,
}

const ALL: [(&str, Pattern); 8] = [
    ("stencil-2d", Pattern::Stencil2d),
    ("mesh", Pattern::Stencil2d),
    ("stencil-3d", Pattern::Stencil3d),
    ("transpose", Pattern::Transpose),
    ("ring", Pattern::Ring),
    ("hypercube", Pattern::Hypercube),
    ("all-to-all", Pattern::AllToAll),
    ("random", Pattern::Random),
];

/// Why there is no such pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    /// Nothing is called so.
    #[error(
        "`{0}` is not a pattern: write stencil-2d (or mesh), stencil-3d, transpose, ring, hypercube, all-to-all or random"
    )]
    Unknown(String),
    /// The number of ranks does not fit.
    #[error("a hypercube has 2, 4, 8, … ranks, not {0}")]
    NoPower(usize),
    /// Too few or too many ranks.
    #[error("the pattern cannot be made: {0}")]
    Ranks(#[from] MatrixError),
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let found = ALL.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, pattern)| *pattern)
            .ok_or_else(|| PatternError::Unknown(text.into()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = ALL.iter().find(|(_, pattern)| pattern == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

impl Pattern {
    /// The matrix of so many ranks, with `messages` of `bytes` along each pair of the pattern.
    ///
    /// # Errors
    /// [`PatternError::NoPower`], [`PatternError::Ranks`].
    pub fn matrix(
        self,
        ranks: usize,
        bytes: u64,
        messages: u64,
        seed: u64,
    ) -> Result<Matrix, PatternError> {
        let mut matrix = Matrix::new(ranks)?;
        let mut add = |from: usize, to: usize| {
            if from != to {
                matrix.add(from, to, bytes.saturating_mul(messages), messages);
            }
        };
        match self {
            Self::Stencil2d => grid(&square(ranks), &mut add),
            Self::Stencil3d => grid(&cube(ranks), &mut add),
            Self::Transpose => {
                let [_, columns] = square(ranks);
                for from in 0..ranks {
                    let row = from / columns * columns;
                    (row..row + columns).for_each(|to| add(from, to));
                }
            }
            Self::Ring => (0..ranks).for_each(|from| add(from, (from + 1) % ranks)),
            Self::Hypercube => {
                if !ranks.is_power_of_two() {
                    return Err(PatternError::NoPower(ranks));
                }
                for from in 0..ranks {
                    (0..ranks.trailing_zeros()).for_each(|bit| add(from, from ^ (1 << bit)));
                }
            }
            Self::AllToAll => {
                for from in 0..ranks {
                    (0..ranks).for_each(|to| add(from, to));
                }
            }
            Self::Random => {
                let mut random = Pcg64Mcg::seed_from_u64(seed);
                for from in (0..ranks).filter(|_| ranks > 1) {
                    for _ in 0..OTHERS {
                        let step = 1 + random.next_u64() % (ranks as u64 - 1);
                        add(from, (from + step as usize) % ranks);
                    }
                }
            }
        }
        Ok(matrix)
    }
}

/// Layers, rows and columns, as equal as they can be.
fn cube(ranks: usize) -> [usize; 3] {
    let layers = (1..=ranks).take_while(|side| side * side * side <= ranks);
    let layers = layers.filter(|side| ranks % side == 0).last().unwrap_or(1);
    let [rows, columns] = square(ranks / layers);
    [layers, rows, columns]
}

/// Neighbours in a grid of these sides, the last one running fastest.
fn grid(sides: &[usize], add: &mut impl FnMut(usize, usize)) {
    let ranks: usize = sides.iter().product();
    let mut stride = 1;
    for side in sides.iter().rev() {
        for from in 0..ranks {
            if from / stride % side + 1 < *side {
                add(from, from + stride);
                add(from + stride, from);
            }
        }
        stride *= side;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(name: &str, ranks: usize, from: usize) -> Vec<usize> {
        let matrix = name
            .parse::<Pattern>()
            .unwrap()
            .matrix(ranks, 10, 2, 1)
            .unwrap();
        (0..ranks)
            .filter(|to| matrix.bytes(from, *to) > 0)
            .collect()
    }

    #[test]
    fn neighbours_are_as_drawn() {
        // 0 1 2 3
        // 4 5 6 7
        assert_eq!(sends("stencil-2d", 8, 0), [1, 4]);
        assert_eq!(sends("mesh", 8, 5), [1, 4, 6]);
        assert_eq!(sends("transpose", 8, 5), [4, 6, 7]);
        assert_eq!(sends("stencil-3d", 27, 13), [4, 10, 12, 14, 16, 22]);
        assert_eq!(sends("ring", 5, 4), [0]);
        assert_eq!(sends("hypercube", 8, 5), [1, 4, 7]);
        assert_eq!(sends("all-to-all", 4, 2), [0, 1, 3]);
        assert_eq!(sends("ring", 1, 0), [0usize; 0]);
    }

    #[test]
    fn each_pattern_is_as_large_as_it_should_be() {
        let total = |name: &str, ranks| {
            name.parse::<Pattern>()
                .unwrap()
                .matrix(ranks, 10, 3, 1)
                .unwrap()
                .total()
        };
        assert_eq!(total("stencil-2d", 16), (48 * 30, 48 * 3));
        assert_eq!(total("transpose", 16), (16 * 3 * 30, 16 * 3 * 3));
        assert_eq!(total("random", 9).1, 9 * 4 * 3);
        assert_eq!(total("all-to-all", 7).1, 7 * 6 * 3);
        // A prime number of ranks has one row.
        assert_eq!(total("stencil-2d", 7).1, 12 * 3);
        let refused = Pattern::Hypercube.matrix(6, 1, 1, 1).unwrap_err();
        assert_eq!(refused, PatternError::NoPower(6));
        assert!(
            "stencil"
                .parse::<Pattern>()
                .unwrap_err()
                .to_string()
                .contains("transpose")
        );
        assert_eq!(Pattern::Stencil2d.to_string(), "stencil-2d");
        let one = Pattern::Random.matrix(9, 1, 1, 7).unwrap();
        assert_eq!(one, Pattern::Random.matrix(9, 1, 1, 7).unwrap());
        assert_ne!(one, Pattern::Random.matrix(9, 1, 1, 8).unwrap());
    }
}
