//! What sends: the interface of a host, or background traffic that comes from elsewhere.
//!
//! Model:   one datagram after the other; each needs the DMA engine's set-up, then one move after the other, each with a
//!          free transaction, goes to the queue of the node.

use super::Moves;
use super::wire::Size;
use crate::medium::{GHOSTS_MAX, Target};
use crate::station::Queue;
use crate::{Frame, Port};
use sonde_units::{Bytes, Instant, Span};
use std::collections::VecDeque;

/// No time at all: after every other.
pub(super) const NEVER: Instant = Instant::from_picos(u64::MAX);

/// A frame that waits.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub frame: Frame,
    pub target: Target,
}

/// A datagram that is being moved.
#[derive(Clone, Copy)]
pub(super) struct Current {
    /// Where the books on it are; none: it is a request for an address.
    pub carried: Option<u32>,
    pub frame: Frame,
    pub moves: Moves,
    pub made: u64,
}

/// One interface.
pub(super) struct Source {
    /// Its node.
    pub node: u16,
    /// Whether it is as slow as a host.
    pub is_host: bool,
    pub queue: Queue<Waiting>,
    ghosts: VecDeque<Waiting>,
    is_ghosts_turn: bool,
    pub current: Option<Current>,
    /// When the move in the making is ready.
    pub made_at: Instant,
    /// From when on the interface can make the next.
    pub free_at: Instant,
    /// Transactions under way.
    pub active: u64,
    /// Requests for an address that wait or are being moved.
    pub served: u64,
    /// Frames that are neither delivered nor lost, in their order.
    pub under_way: VecDeque<u32>,
}

impl Source {
    pub fn new(node: u16, is_host: bool, queue: Bytes) -> Self {
        Self {
            node,
            is_host,
            queue: Queue::new(queue),
            ghosts: VecDeque::new(),
            is_ghosts_turn: false,
            current: None,
            made_at: NEVER,
            free_at: Instant::START,
            active: 0,
            served: 0,
            under_way: VecDeque::new(),
        }
    }

    /// Takes a background frame; false: there is no room.
    pub fn haunt(&mut self, frame: Frame, to: Port) -> bool {
        let has_room = self.ghosts.len() < GHOSTS_MAX;
        if has_room {
            let target = Target::One(to);
            self.ghosts.push_back(Waiting { frame, target });
        }
        has_room
    }

    /// The next frame, the station's and the background's in turn. True beside it: the station wants frames again.
    pub fn pop(&mut self) -> Option<(Waiting, bool)> {
        if self.is_ghosts_turn || self.queue.front().is_none() {
            if let Some(ghost) = self.ghosts.pop_front() {
                self.is_ghosts_turn = false;
                return Some((ghost, false));
            }
        }
        let (_, waiting, woken) = self.queue.pop()?;
        self.is_ghosts_turn = true;
        Some((waiting, woken))
    }

    /// Whether there is a frame behind the current.
    pub fn has_waiting(&self) -> bool {
        self.queue.front().is_some() || !self.ghosts.is_empty()
    }

    /// Moves of the current datagram that are not made.
    pub fn unmade(&self) -> u64 {
        self.current.map_or(0, |c| c.moves.total() - c.made)
    }

    /// How many more moves must be made, at least, before the station wants frames again; none while it does.
    /// `mtu` is the longest frame, `most` the bytes of the largest move.
    pub fn moves_to_wake(&self, mtu: Bytes, low: Bytes, most: u64) -> Option<u64> {
        if self.queue.ready() {
            return None;
        }
        // The last that is popped needs no move before, and is a frame at most.
        let bytes = self.queue.backlog().saturating_sub(low + mtu);
        Some(self.unmade() + bytes.0.div_ceil(most))
    }
}

/// A datagram on its way.
pub(super) struct Carried {
    pub frame: Frame,
    pub to: Port,
    pub source: u32,
    /// Moves that are not at the target yet.
    pub left: u64,
    /// It lost a move in the switch.
    pub is_lost: bool,
    /// Before this it cannot be complete, once its last move is made.
    pub soonest: Instant,
    /// The way of its moves when nothing hinders them: to the target, without the time of the packet.
    pub way: Span,
}

/// A transaction.
#[derive(Clone, Copy)]
pub(super) struct Write {
    pub source: u32,
    pub carried: u32,
    pub home: u16,
    pub target: u16,
    pub size: Size,
    /// The target has it, or it was lost.
    pub is_settled: bool,
    /// The sender is done with it.
    pub is_freed: bool,
}
