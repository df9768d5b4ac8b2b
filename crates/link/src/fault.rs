//! What breaks or changes in a network while it runs.
//!
//! Model:   those of a station are done on the edge of the network ([`state`]), the others by the medium.
//! Units:   shares are probabilities; spans in picoseconds.
//! Checked: `tests/faults.rs`.

use crate::Port;
use sonde_units::{BitRate, Bytes, Ratio, Span};

mod line;
pub(crate) mod state;

/// A fault begins, changes or ends. Each says the new state, so that the same fault said twice is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The line between a station (each, without one) and the network is up, or down: what is on it or sent to it is lost.
    Link {
        /// The station.
        port: Option<Port>,
        /// Whether it is up.
        up: bool,
    },
    /// A host is there, or gone: nothing comes from it, and what is for it is lost without a word.
    Host {
        /// The station.
        port: Port,
        /// Whether it is there.
        up: bool,
    },
    /// A host stands still: its frames wait before it, and what it would send is not taken.
    Pause {
        /// The station.
        port: Port,
        /// Whether it stands still.
        on: bool,
    },
    /// Two stations cannot reach each other, in either direction; a partition is all pairs across it.
    Cut {
        /// One of them.
        a: Port,
        /// The other.
        b: Port,
        /// Whether they are apart.
        on: bool,
    },
    /// The probability that a frame on its way to a station (to any, without one) is lost.
    Loss {
        /// The station.
        port: Option<Port>,
        /// The probability; 0 ends the fault.
        share: Ratio,
    },
    /// The same for damage that the receiver's checksum finds.
    Corruption {
        /// The station.
        port: Option<Port>,
        /// The probability; 0 ends the fault.
        share: Ratio,
    },
    /// The same for frames that arrive twice.
    Duplication {
        /// The station.
        port: Option<Port>,
        /// The probability; 0 ends the fault.
        share: Ratio,
    },
    /// The same for frames that are held back, so that later ones overtake them.
    Reordering {
        /// The station.
        port: Option<Port>,
        /// The probability; 0 ends the fault.
        share: Ratio,
        /// How long they are held back.
        by: Span,
    },
    /// Added to the way of each frame to a station (to any, without one).
    Delay {
        /// The station.
        port: Option<Port>,
        /// How much; 0 ends the fault.
        by: Span,
    },
    /// Frames to a station (to any, without one) that are longer vanish, and nobody is told.
    Narrow {
        /// The station.
        port: Option<Port>,
        /// The longest that arrives, in layer-3 bytes; none ends the fault.
        longest: Option<Bytes>,
    },
    /// The two directions of a station's line (of each, without one) collide, as where its ends do not agree on the duplex.
    Collision {
        /// The station.
        port: Option<Port>,
        /// The probability that a frame is lost while the other direction is full; 0 ends the fault.
        share: Ratio,
    },
    /// Frames to a station pass one by one at this rate.
    Slow {
        /// Those of this station only.
        from: Option<Port>,
        /// The station.
        to: Port,
        /// The rate; none ends the fault.
        rate: Option<BitRate>,
    },
    /// The lines have another rate.
    Rate {
        /// Which; none: that of the specification again.
        rate: Option<BitRate>,
    },
    /// A trunk between switches is up, or down.
    Trunk {
        /// Counted from 0, in the order of the specification.
        trunk: u16,
        /// Whether it is up.
        up: bool,
    },
    /// The switch starts anew: what it holds is lost, and what comes until it is up; switched circuits are gone.
    Restart {
        /// How long it takes.
        down: Span,
    },
    /// The manager that set up the permanent circuits can be reached, or cannot. When contact is regained it clears them.
    Manager {
        /// Whether it can be reached.
        up: bool,
    },
}

impl Fault {
    /// The same with other ports.
    pub(crate) fn with_ports(self, of: impl Fn(Port) -> Port) -> Self {
        let all = |port: Option<Port>| port.map(&of);
        match self {
            Self::Link { port, up } => Self::Link {
                port: all(port),
                up,
            },
            Self::Host { port, up } => Self::Host { port: of(port), up },
            Self::Pause { port, on } => Self::Pause { port: of(port), on },
            Self::Cut { a, b, on } => Self::Cut {
                a: of(a),
                b: of(b),
                on,
            },
            Self::Loss { port, share } => Self::Loss {
                port: all(port),
                share,
            },
            Self::Corruption { port, share } => Self::Corruption {
                port: all(port),
                share,
            },
            Self::Duplication { port, share } => Self::Duplication {
                port: all(port),
                share,
            },
            Self::Reordering { port, share, by } => Self::Reordering {
                port: all(port),
                share,
                by,
            },
            Self::Delay { port, by } => Self::Delay {
                port: all(port),
                by,
            },
            Self::Narrow { port, longest } => Self::Narrow {
                port: all(port),
                longest,
            },
            Self::Collision { port, share } => Self::Collision {
                port: all(port),
                share,
            },
            Self::Slow { from, to, rate } => Self::Slow {
                from: all(from),
                to: of(to),
                rate,
            },
            Self::Rate { .. }
            | Self::Trunk { .. }
            | Self::Restart { .. }
            | Self::Manager { .. } => self,
        }
    }
}
