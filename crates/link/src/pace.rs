//! The times of one network's lines, computed once: a frame's time is met again and again.
//!
//! Model:   as [`Line::time`](crate::Line::time), with the times of recent lengths kept, since a division of 128 bits a frame
//!          would cost more than the rest of its way.
//! Units:   picoseconds, rounded up a frame, or a cell.
//! Checked: `a_kept_time_is_the_line_s_own`.

use crate::{CELL_WIRE, Forwarding, Framing, Line, NetworkSpec, Switch};
use sonde_units::{Bytes, Span};

/// Bytes that a cut-through switch reads before it forwards: the smallest Ethernet frame.
const CUT_THROUGH_HEAD: Bytes = Bytes(64);
/// Lengths that are kept, by their last bits.
const KEPT: usize = 32;

/// The times of a line and of the switch at its end.
pub(crate) struct Pace {
    line: Line,
    framing: Framing,
    cell: Span,
    propagation: Span,
    /// What of a frame a switch must have before it forwards, at most; and its latency.
    head_max: Span,
    latency: Span,
    kept: [(Bytes, Span); KEPT],
}

impl Pace {
    pub fn new(spec: &NetworkSpec) -> Self {
        Self::of(spec.line, spec.switch.as_ref())
    }

    /// The times of `line`, and of the switch at its end.
    pub fn of(line: Line, switch: Option<&Switch>) -> Self {
        let cell = line.unit_time(CELL_WIRE);
        let head_max = match switch.map(|switch| switch.forwarding) {
            Some(Forwarding::CutThrough) => line.unit_time(CUT_THROUGH_HEAD),
            Some(Forwarding::Cells) => cell,
            Some(Forwarding::StoreAndForward) | None => Span::picos(u64::MAX),
        };
        Self {
            line,
            framing: line.framing(),
            cell,
            propagation: line.propagation(),
            head_max,
            latency: switch.map_or(Span::ZERO, |switch| switch.latency),
            kept: [(Bytes(u64::MAX), Span::ZERO); KEPT],
        }
    }

    /// How long a frame of `len` holds the line.
    pub fn time(&mut self, len: Bytes) -> Span {
        if let Framing::Atm(_) = self.framing {
            return self.cell * self.framing.units(len);
        }
        let kept = &mut self.kept[len.0 as usize % KEPT];
        if kept.0 != len {
            *kept = (len, self.line.time(len));
        }
        kept.1
    }

    /// For a frame of `time`: after how much of it the switch forwards, and how long that takes; all and none without one.
    pub fn forwarding(&self, time: Span) -> (Span, Span) {
        (self.head_max.min(time), self.latency)
    }

    /// One cell's time on the line.
    pub fn cell(&self) -> Span {
        self.cell
    }

    /// The cells of a frame of `len`.
    pub fn cells(&self, len: Bytes) -> u64 {
        self.framing.units(len)
    }

    /// From one end of the line to the other.
    pub fn propagation(&self) -> Span {
        self.propagation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn a_kept_time_is_the_line_s_own() {
        for spec in catalogue() {
            let mut pace = Pace::new(&spec);
            for _ in 0..2 {
                for len in (0..2_000).rev().map(Bytes) {
                    assert_eq!(pace.time(len), spec.line.time(len), "{} {len}", spec.name);
                }
            }
        }
    }
}
