//! The sending side of a station that puts cells of several circuits on its line.
//!
//! Model:   frames without a rate of their own wait in one queue a category and go whole, one after the other. A circuit with
//!          a rate (host rate control, a contract that is kept, ABR) has a queue and buckets of its own, whose cells mix with
//!          those of others. When the line is free the first category that may send does, within it who sent longest ago.
//!          Which frames wait, and when the station wants more, as with [`Transmitter`](crate::station::Transmitter).
//! Source:  ITU-T I.371 §6 (shaping); NASA TP-3532 (static peak rate at the host). Deviations: none.
//! Checked: `tests/atm/traffic.rs`.

use super::abr::Source;
use super::gcra::Buckets;
use sonde_units::{Bytes, Instant, Span};
use std::collections::VecDeque;

/// Frames that wait for the line together.
pub(crate) struct Channel {
    pub rank: u8,
    /// Its circuit, where it has a rate of its own.
    pub vc: Option<u32>,
    pub frames: VecDeque<u32>,
    pub buckets: Buckets,
    /// What it was told of its rate (ABR).
    pub source: Option<Source>,
    /// The turn in which it sent last.
    served: u64,
}

/// A station.
pub(crate) struct Uplink {
    /// The time of a cell on its line, and the line's length.
    pub cell: Span,
    pub way: Span,
    limit: Bytes,
    waiting: Bytes,
    held: Bytes,
    ready: bool,
    pub channels: Vec<Channel>,
    turn: u64,
    /// When the line is free.
    pub free_at: Instant,
    /// When it is to be looked at again.
    pub look_at: Option<Instant>,
    /// Frames of background traffic that wait.
    pub ghosts: u64,
}

impl Uplink {
    pub fn new(limit: Bytes, (cell, way): (Span, Span)) -> Self {
        Self {
            cell,
            way,
            limit,
            waiting: Bytes::ZERO,
            held: Bytes::ZERO,
            ready: true,
            channels: Vec::new(),
            turn: 0,
            free_at: Instant::START,
            look_at: None,
            ghosts: 0,
        }
    }

    pub fn backlog(&self) -> Bytes {
        self.waiting + self.held
    }

    pub fn admits(&self, len: Bytes) -> bool {
        self.backlog() + len <= self.limit
    }

    pub fn ready(&self) -> bool {
        self.ready
    }

    /// After a frame was added: whether more are wanted.
    pub fn settle(&mut self) {
        self.ready &= self.backlog() <= Bytes(self.limit.0 / 2);
    }

    pub fn hold(&mut self, len: Bytes) {
        self.held += len;
        self.settle();
    }

    pub fn release(&mut self, len: Bytes) {
        self.held -= len;
    }

    /// Turns ready if the backlog has fallen far enough: true when it turned.
    pub fn wake(&mut self) -> bool {
        let woken = !self.ready && self.backlog() <= Bytes(self.limit.0 / 4);
        self.ready |= woken;
        woken
    }

    /// A frame waits in the channel of its circuit, or of its category; false if [`Self::open`] has to make one for it.
    pub fn push(&mut self, pdu: u32, len: Bytes, (rank, vc): (u8, Option<u32>)) -> bool {
        self.waiting += len;
        let same = |channel: &&mut Channel| channel.rank == rank && channel.vc == vc;
        let channel = self.channels.iter_mut().find(same);
        channel
            .map(|channel| channel.frames.push_back(pdu))
            .is_some()
    }

    /// A new channel, in which the frame waits.
    pub fn open(
        &mut self,
        pdu: u32,
        (rank, vc): (u8, Option<u32>),
        buckets: Buckets,
        source: Option<Source>,
    ) {
        self.channels.push(Channel {
            rank,
            vc,
            frames: [pdu].into(),
            buckets,
            source,
            served: 0,
        });
    }

    /// A frame of `len` begins.
    pub fn start(&mut self, len: Bytes) {
        self.waiting -= len;
    }

    /// The channel that sends at `now`.
    pub fn next(&mut self, now: Instant) -> Option<usize> {
        let may =
            |channel: &Channel| !channel.frames.is_empty() && channel.buckets.conforms_at() <= now;
        let best = (0..self.channels.len())
            .filter(|index| may(&self.channels[*index]))
            .min_by_key(|index| (self.channels[*index].rank, self.channels[*index].served))?;
        self.turn += 1;
        self.channels[best].served = self.turn;
        Some(best)
    }

    /// When one of the waiting frames may go on, the line aside; none if there is none.
    pub fn waits_until(&self) -> Option<Instant> {
        let waiting = self
            .channels
            .iter()
            .filter(|channel| !channel.frames.is_empty());
        waiting.map(|channel| channel.buckets.conforms_at()).min()
    }
}
