//! A frame whose cells are on their way.

use super::abr::Management;
use super::queue::Past;
use super::route::Route;
use crate::edge::Edge;
use crate::network::{Cause, Place};
use crate::{Frame, Port};
use sonde_units::{Bytes, Instant, Span};

/// Where a frame ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Station(Port),
    /// The servers at the switch: of addresses, and of frames to all.
    Server,
}

/// A frame, or a management cell.
pub(crate) struct Pdu {
    pub frame: Frame,
    pub end: End,
    pub vc: u32,
    pub rank: u8,
    pub route: Route,
    /// Of the path elements; none if they lose it, which is told when it is sent, and it uses the line all the same.
    pub delay: Option<Span>,
    pub cells: u64,
    /// Cells that are still at the station, and those that are still somewhere.
    pub unsent: u64,
    pub alive: u64,
    /// When its first cell came to the switch, and its place among the frames.
    pub head_at: Instant,
    pub order: u64,
    pub damage: Option<(Place, Cause)>,
    pub told: bool,
    /// What outputs did with it, a bit for each hop.
    pub seen: u16,
    pub broken: u16,
    pub refused: u16,
    /// How often a cell of it left an output.
    pub used: u64,
    /// Where cells bring one another: from one to the next, and how many are to come.
    pub gap: Span,
    pub to_come: u64,
    /// What it carries, if it is not a frame.
    pub management: Option<Management>,
}

impl Pdu {
    /// What the output of this hop did with it before, which sees a cell of it now.
    pub fn past(&mut self, hop: u8) -> Past {
        let bit = 1u16 << hop;
        let past = if self.refused & bit != 0 {
            Past::Refused
        } else if self.broken & bit != 0 {
            Past::Broken
        } else if self.seen & bit != 0 || self.management.is_some() {
            Past::Whole
        } else {
            Past::First
        };
        self.seen |= bit;
        past
    }
}

/// Whether a frame is one of background traffic, which names itself by the top bit.
pub(crate) fn is_ghost(frame: &Frame) -> bool {
    frame.id.0 >> 63 == 1
}

/// What a frame takes of a station's room: one of background traffic nothing.
pub(crate) fn room(frame: &Frame) -> Bytes {
    if is_ghost(frame) {
        Bytes::ZERO
    } else {
        frame.len
    }
}

/// What a frame takes of the room of the station that sends it: what a server at the end of a line sends takes none.
pub(crate) fn room_at(frame: &Frame, port: Port) -> Bytes {
    if frame.from == port {
        room(frame)
    } else {
        Bytes::ZERO
    }
}

/// A frame is lost, and counted for its circuit.
pub(crate) fn lose(
    at: Instant,
    frame: &Frame,
    to: Port,
    (place, cause): (Place, Cause),
    edge: &mut Edge,
) {
    *edge
        .counters
        .circuits_lost
        .entry((frame.from, to, place))
        .or_default() += 1;
    edge.lose(at, frame, to, place, cause);
}
