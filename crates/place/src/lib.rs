//! Where the ranks of a parallel program should run: a mapping of who talks to whom onto hosts in sites.
//!
//! Model:   a [`Matrix`] says what ranks send to each other, a [`Cluster`] what is between its hosts. [`cost()`] is what a
//!          placement costs, [`map`] looks for a cheap one by partitioning the graph along the cluster's own hierarchy and by
//!          swaps, and [`block`], [`round_robin`] and [`random`] are what it has to beat.
//! Units:   seconds and bytes a second as floats, since only ratios of costs decide; bytes and messages as integers.
//! Checked: the tests of each module.
#![forbid(unsafe_code)]

mod circuits;
mod cluster;
mod cost;
mod file;
mod launcher;
mod mapping;
mod partition;
mod pattern;
mod placement;
mod refine;
mod tree;

pub use circuits::{Circuits, Mode, circuits};
pub use cluster::{Cluster, ClusterError, Host, Leg, SharedLine};
pub use cost::{Cost, Traffic, cost};
pub use file::{FileError, parse as parse_cluster};
pub use launcher::{Launcher, Unnamed as UnnamedLauncher};
pub use mapping::{Mapping, map};
pub use pattern::{Pattern, PatternError};
pub use placement::{Placement, TooMany, block, random, round_robin};
pub use sonde_units::{Matrix, MatrixError, RANKS_MAX, Topology};
pub use tree::groups;
