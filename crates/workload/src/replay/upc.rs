//! What the UPC study tells of the messages of the eight kernels.
//!
//! Source:  `data/upc.toml`, which cites the figures' keys; the graphs are the kernels' own, for the paper tells none.
//! Units:   bytes; messages of all four ranks together.
//! Checked: `kernels_are_as_the_paper_has_them`.

use serde::Deserialize;

use super::{Graph, Statistic};
use crate::npb::Kernel;

const FIGURES: &str = include_str!("../../data/upc.toml");

/// How many ranks the figures are of.
pub const RANKS: usize = 4;

/// What is known of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The size, as the paper writes it.
    pub size: String,
    /// Its messages; none of EP, of which the paper prints `n/a`.
    pub statistic: Option<(Statistic, Graph)>,
}

#[derive(Deserialize)]
struct Row {
    size: String,
    messages: Option<u64>,
    bytes_mean: Option<f64>,
    bytes_median: Option<u64>,
    graph: Option<String>,
}

/// What the paper knows of a kernel.
///
/// # Panics
/// Where the file is broken: it is part of the program.
pub fn known(kernel: Kernel) -> Known {
    let figures: toml::Table = FIGURES.parse().expect("the file of figures is TOML");
    let row = figures.get(kernel.name()).expect("all kernels are in it");
    let row: Row = row.clone().try_into().expect("a row of figures");
    let statistic = match (row.messages, row.bytes_mean, row.bytes_median, row.graph) {
        (Some(messages), Some(bytes_mean), Some(bytes_median), Some(graph)) => {
            let Ok(graph) = graph.parse();
            let statistic = Statistic {
                messages,
                bytes_mean,
                bytes_median,
            };
            Some((statistic, graph))
        }
        (None, None, None, None) => None,
        _ => panic!("the figures of {kernel} are not complete"),
    };
    Known {
        size: row.size,
        statistic,
    }
}
