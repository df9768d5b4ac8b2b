//! Background traffic inside a network: flows, their levels and laws.
//!
//! Units:   levels are shares of the line that a flow loads; sizes in layer-3 bytes.

use crate::{Class, Port};
use sonde_units::{Bytes, Ratio};

/// A flow of background traffic. One of the same number takes the place of the earlier; level 0 ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its number, below 64.
    pub number: u8,
    /// The station whose line it comes by; none: it meets the others only at the link to `to`.
    pub from: Option<Port>,
    /// The station it ends at, without reaching the host.
    pub to: Port,
    /// The share of the link that it shall take, 0 to 1.
    pub rho: Ratio,
    /// How its frames are spread in time.
    pub law: Law,
    /// Layer-3 bytes of each frame; 0: one cell on ATM, else a full frame.
    pub size: Bytes,
    /// Its class.
    pub class: Class,
}

/// How frames follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// At equal distances, from a random start.
    Constant,
    /// Independent of each other: exponential distances.
    Poisson,
    /// In each slot (the time of a frame on the line) with the same probability.
    Geometric,
    /// Bursts at the line's full rate and silences, both of exponential length, of so many frames a burst in the mean.
    OnOff(u32),
    /// On and off with lengths of infinite variance (Pareto, shape 1.5), of so many frames a burst in the mean: the sum of
    /// many is self-similar with a Hurst parameter of 0.75.
    SelfSimilar(u32),
    /// At the times and with the sizes of a capture that was given to the network beforehand.
    Replay,
}
