//! Background traffic inside a network: flows, their levels and laws.
//!
//! Model:   each flow draws the distances of its frames ([`laws`]); all of them are merged by time ([`sources`]) and given to
//!          the medium as frames that no host sends or gets. What became of them is counted by flow.
//! Units:   levels are shares of the line that a flow loads; sizes in layer-3 bytes.
//! Checked: `tests/loads.rs`, `tests/queues.rs`; `laws_parse_and_print`.

use crate::{Class, Port};
use sonde_units::{Bytes, Ratio, Span};
use std::fmt;

pub(crate) mod laws;
pub(crate) mod sources;

/// Set in the name of each background frame.
pub(crate) const GHOST: u64 = 1 << 63;
/// Flows have numbers below it.
pub const FLOWS_MAX: u8 = 64;
/// Frames of a burst where none is said.
pub(crate) const BURST: u32 = 10;

/// A flow of background traffic. One of the same number takes the place of the earlier; level 0 ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its number, below [`FLOWS_MAX`].
    pub number: u8,
    /// The station whose line it comes by; none: it meets the others only at the link to `to`.
    pub from: Option<Port>,
    /// The station it ends at, without reaching the host.
    pub to: Port,
    /// The share of the link that it shall take, 0 to 1, at the rate of the specification. A replay has its own pace and
    /// takes this only as an end where it is 0.
    pub rho: Ratio,
    /// How its frames are spread in time.
    pub law: Law,
    /// Layer-3 bytes of each frame; 0: one cell on ATM, else a full frame.
    pub size: Bytes,
    /// Its class.
    pub class: Class,
}

impl Flow {
    /// The same with other ports.
    pub(crate) fn with_ports(self, of: impl Fn(Port) -> Port) -> Self {
        Self {
            from: self.from.map(&of),
            to: of(self.to),
            ..self
        }
    }
}

/// How frames follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// At equal distances, from a random start.
    Constant,
    /// Independent of each other: exponential distances.
    Poisson,
    /// In each slot (the time of a frame on the line, counted from the start of the network) with the same probability.
    Geometric,
    /// Bursts at the line's full rate and silences: a geometric number of frames, so many a burst in the mean, and an
    /// exponential silence.
    OnOff(u32),
    /// On and off with lengths of infinite variance (Pareto, shape 1.5), of so many frames a burst in the mean: the sum of
    /// many is self-similar with a Hurst parameter of 0.75.
    SelfSimilar(u32),
    /// Once, at the times and with the sizes of those frames of a capture, given to the network beforehand, that end where
    /// the flow does and come from where it does.
    Replay,
}

/// A frame of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When, after the begin of the flow that replays it.
    pub after: Span,
    /// Layer-3 bytes.
    pub len: Bytes,
    /// The station that it comes from; none: from elsewhere.
    pub from: Option<Port>,
    /// The station that it goes to.
    pub to: Port,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Poisson => f.write_str("poisson"),
            Self::Geometric => f.write_str("geometric"),
            Self::OnOff(burst) => write!(f, "on-off:{burst}"),
            Self::SelfSimilar(burst) => write!(f, "self-similar:{burst}"),
            Self::Replay => f.write_str("replay"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_parse_and_print() {
        for text in [
            "constant",
            "poisson",
            "geometric",
            "on-off:7",
            "self-similar:20",
            "replay",
        ] {
            assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
        }
        assert_eq!("on-off".parse(), Ok(Law::OnOff(BURST)));
        for text in ["", "gauss", "on-off:0", "on-off:x", "poisson:3"] {
            assert!(text.parse::<Law>().unwrap_err().contains("self-similar:20"));
        }
    }
}
