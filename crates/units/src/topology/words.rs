//! The words of a virtual topology: `ring`, `mesh`, `mesh:4x4`, `torus:2x3x4`, `hypercube`.
//!
//! Model:   the sides of a grid multiply to the number of ranks.
//! Checked: `names_are_read_back` of the module above; the fuzz target `place`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::{Topology, square};

/// A text that names no topology of so many ranks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a topology of {ranks} ranks: {why}; write ring, mesh, mesh:AxB, torus:AxBxC or hypercube",
    crate::excerpt(text)
)]
pub struct Shapeless {
    /// What was written.
    pub text: String,
    /// For how many.
    pub ranks: usize,
    /// What is wrong.
    pub why: String,
}

impl Topology {
    /// Of text and the number of ranks: `ring`, `mesh`, `mesh:4x4`, `torus:2x3x4`, `hypercube`.
    ///
    /// # Errors
    /// Another word, sides that do not multiply to the ranks, a hypercube of a number that is not a power of two.
    pub fn parse(text: &str, ranks: usize) -> Result<Self, Shapeless> {
        let refused = |why: String| Shapeless {
            text: text.into(),
            ranks,
            why,
        };
        if ranks == 0 {
            return Err(refused("there are none".into()));
        }
        let grid = |name, sides: &str, wraps| {
            let read: Result<Vec<usize>, _> = sides.split('x').map(str::parse).collect();
            let sides = read.map_err(|_| refused(format!("its sides are `{sides}`")))?;
            let product = sides
                .iter()
                .try_fold(1_usize, |all, side| all.checked_mul(*side));
            if product != Some(ranks) {
                let has = product.map_or_else(|| "too many".into(), |points| points.to_string());
                return Err(refused(format!("it has {has} points")));
            }
            Ok(Self { name, sides, wraps })
        };
        match text.split_once(':') {
            Some(("mesh", sides)) => grid("mesh", sides, false),
            Some(("torus", sides)) => grid("torus", sides, true),
            None if text == "mesh" => Ok(Self {
                name: "mesh",
                sides: square(ranks).to_vec(),
                wraps: false,
            }),
            None if text == "ring" => Ok(Self {
                name: "ring",
                sides: vec![ranks],
                wraps: true,
            }),
            None if text == "hypercube" && ranks.is_power_of_two() => Ok(Self {
                name: "hypercube",
                sides: vec![2; ranks.ilog2() as usize],
                wraps: false,
            }),
            None if text == "hypercube" => Err(refused("that is not a power of two".into())),
            _ => Err(refused("there is no such word".into())),
        }
    }
}
