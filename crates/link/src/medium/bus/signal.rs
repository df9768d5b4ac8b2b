//! Signals on a segment, and how long their parts take.
//!
//! Units:   whole bytes on the line, each part rounded up.
//! Checked: `collisions_are_those_of_the_wire`.

use super::{Bus, GAP, GAP_FIRST};
use crate::Line;
use sonde_units::{Bytes, Instant, Span};

const PREAMBLE: Bytes = Bytes(8);

/// How long things take at the present rate.
#[derive(Clone, Copy)]
pub(super) struct Times {
    line: Line,
    pub(super) gap: Span,
    pub(super) gap_first: Span,
    pub(super) preamble: Span,
    pub(super) jam: Span,
    pub(super) slot: Span,
    /// The last length that was asked for, and its time without the gap.
    kept: (Bytes, Span),
}

impl Times {
    pub(super) fn new(line: Line, bus: &Bus) -> Self {
        Self {
            gap: line.unit_time(GAP),
            gap_first: line.unit_time(GAP_FIRST),
            preamble: line.unit_time(PREAMBLE),
            jam: line.unit_time(bus.jam),
            slot: line.unit_time(bus.slot),
            kept: (Bytes(u64::MAX), Span::ZERO),
            line,
        }
    }

    /// A frame from the first bit of its preamble to its last.
    pub(super) fn frame(&mut self, len: Bytes) -> Span {
        if self.kept.0 != len {
            let wire = self.line.framing().wire(len).saturating_sub(GAP);
            self.kept = (len, self.line.unit_time(wire));
        }
        self.kept.1
    }
}

/// What one station sends at once.
pub(super) struct Signal {
    pub(super) station: usize,
    pub(super) start: Instant,
    /// When it ends, as far as is known.
    pub(super) end: Instant,
    /// Whether it is known to collide; and whether its end is dealt with.
    pub(super) collides: bool,
    pub(super) ended: bool,
}

impl Signal {
    /// Its sender learns of a collision: it ends its preamble, and then the jam.
    pub(super) fn collide(&mut self, at: Instant, preamble: Span, jam: Span) {
        let end = at.max(self.start + preamble) + jam;
        self.end = self.end.min(end);
        self.collides = true;
    }
}
