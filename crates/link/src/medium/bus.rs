//! A segment that stations share: carrier sense, multiple access, collision detection.
//!
//! Model:   the table `[bus]` of a network; what happens on the segment is in `segment`.
//! Source:  IEEE 802.3 §4.4.2 (slot 512 bits, jam 32, 16 attempts, backoff limit 10); §4.2.3.2 (a sender learns of each
//!          collision within a slot).
//! Checked: `what_cannot_be_is_refused` in `tests/bus.rs`.

mod segment;
mod signal;

use crate::{Command, Fault, Framing, Line, NetworkSpec, Refused, SpecError, Topology};
pub(crate) use segment::Segment;
use serde::{Deserialize, Serialize};
use sonde_units::{Bytes, Span};

/// A segment that stations share. Its length, or the signal's way from end to end, is that of the line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bus {
    /// The unit of backoff, and the longest time after which a sender still learns of a collision: in bytes on the line.
    pub slot: Bytes,
    /// How long a station goes on after a collision, so that all learn of it: in bytes on the line.
    pub jam: Bytes,
    /// How often a frame is tried, 1 to 64.
    pub attempts: u32,
    /// From so many collisions on the range of the backoff grows no more, 1 to 20.
    pub backoff_limit: u32,
    /// How much later than a gap after its own frame a station is ready to begin its next one, 0 to 1 ms. Who waits
    /// elsewhere is heard before if this is longer than the signal's way there and back: two stations then take turns and
    /// do not collide. With 0, the standard's, all begin at once, collide, and who has sent before mostly wins.
    pub turnaround: Span,
}

impl Default for Bus {
    fn default() -> Self {
        Self {
            slot: Bytes(64),
            jam: Bytes(4),
            attempts: 16,
            backoff_limit: 10,
            turnaround: Span::ZERO,
        }
    }
}

/// The smallest frame, which a collision must reach.
const MIN_FRAME: Bytes = Bytes(64);
const GAP: Bytes = Bytes(12);
/// The part of the gap in which carrier starts it anew.
const GAP_FIRST: Bytes = Bytes(8);
const TURNAROUND_MAX: Span = Span::millis(1);

impl Bus {
    /// Whether its values are in their ranges and fit the rest of `spec`.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub(crate) fn check(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        let refuse = |key, problem: String| Err(SpecError { key, problem });
        if spec.topology != Topology::Bus {
            let problem = "needs `topology = \"bus\"`; leave the table out otherwise";
            return refuse("bus", problem.into());
        }
        if spec.switch.is_some() {
            let problem = "needs `topology = \"star\"`; a segment has none";
            return refuse("switch", problem.into());
        }
        if spec.line.framing() != Framing::Ethernet {
            return refuse(
                "line.framing",
                "is not \"ethernet\", as a segment's is".into(),
            );
        }
        if spec.line.rate.is_none() {
            let problem = "is missing; a segment needs one, such as `10Mbit`";
            return refuse("line.rate", problem.into());
        }
        for (key, value, most) in [
            ("bus.slot", self.slot.0, 4_096),
            ("bus.jam", self.jam.0, 64),
            ("bus.attempts", u64::from(self.attempts), 64),
            ("bus.backoff_limit", u64::from(self.backoff_limit), 20),
        ] {
            if value == 0 || value > most {
                return refuse(key, format!("is {value}, but 1 to {most} are possible"));
            }
        }
        if self.turnaround > TURNAROUND_MAX {
            return refuse(
                "bus.turnaround",
                format!(
                    "is {}, but 0 to {TURNAROUND_MAX} are possible",
                    self.turnaround
                ),
            );
        }
        match self.shortfall(&spec.line) {
            None => Ok(()),
            Some(most) => refuse(
                "line.propagation",
                format!(
                    "is {} (5 ns for each of `length_m`), but a sender must learn of each collision within a slot of {}: \
                     at most {most} at this rate; shorten the segment, or lower the rate",
                    spec.line.propagation(),
                    self.slot,
                ),
            ),
        }
    }

    /// The longest way that fits into a slot, if that of `line` does not: there and back, and the last third of a gap or
    /// the jam.
    fn shortfall(&self, line: &Line) -> Option<Span> {
        let slot = line.unit_time(self.slot.min(MIN_FRAME));
        let late = line.unit_time(self.jam.max(GAP.saturating_sub(GAP_FIRST)));
        let most = Span::picos(slot.saturating_sub(late).as_picos() / 2);
        (line.propagation() > most).then_some(most)
    }

    /// For how long a frame of `len` layer-3 bytes keeps others off the segment: with preamble and gap. Collisions are not
    /// counted, nor the turnaround, in which other stations may begin.
    pub(crate) fn frame_time(&self, spec: &NetworkSpec, len: Bytes) -> Span {
        spec.line.time(len)
    }
}

/// Why a medium without circuits, switch and trunks does not carry out a command.
pub(crate) fn refused(command: &Command) -> Refused {
    let (what, remedy) = match command {
        Command::Vc(_) => return Refused::NoCircuits,
        Command::Fault(Fault::Restart { .. }) => (
            "switch that could restart",
            "choose a network with one, such as ethernet-100",
        ),
        Command::Fault(Fault::Trunk { .. }) => (
            "trunk between switches",
            "choose a network of several switches",
        ),
        Command::Fault(Fault::Manager { .. }) => (
            "connection manager",
            "choose an ATM network, such as atm-oc3c",
        ),
        _ => ("such part", "choose another network"),
    };
    Refused::NotHere { what, remedy }
}
