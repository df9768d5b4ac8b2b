//! A node of a ring: its queues, the link to the next, and whom it lets in.
//!
//! Source:  IEEE 1596-1992: a target that refuses marks the request; those with the older mark have its next places.

use super::wire::{Flight, Packet};
use crate::Port;
use sonde_units::{Instant, Span};
use std::collections::VecDeque;

/// No source of this kind at a node.
pub(super) const NONE: u32 = u32::MAX;

/// A node and the link from it to the next.
pub(super) struct Node {
    pub next: u16,
    pub prev: u16,
    pub ring: u16,
    /// The station here.
    pub port: Option<Port>,
    pub is_switch: bool,
    /// From when on the link is free.
    pub free: Instant,
    /// What is on the link, as it comes to the next node.
    pub line: VecDeque<Flight>,
    pub bypass: VecDeque<Flight>,
    pub responses: VecDeque<Packet>,
    pub requests: VecDeque<Packet>,
    /// Refused, to be sent again.
    pub retries: VecDeque<(Instant, Packet)>,
    /// From another ring.
    pub crossing: VecDeque<(Instant, Packet)>,
    /// Go bits on their way: whose, and whether it withholds them.
    pub signals: VecDeque<(Instant, u16, bool)>,
    /// Nodes whose go bits are withheld here.
    pub stops: u16,
    /// Since when packets that pass have kept it from sending its own.
    pub late_from: Instant,
    /// It withholds its go bits.
    pub is_lagging: bool,
    /// When each accepted request will have left the input queue.
    pub interface: VecDeque<Instant>,
    /// Requests that the switch holds for this ring.
    pub held: u64,
    /// The age that is served now, 1 or 2.
    pub age: u8,
    /// Refused requests of each age that will come again.
    pub owed: [u64; 3],
    /// The age that was given to the request refused last.
    pub refused: u8,
    pub sources: [u32; 2],
    /// Bytes that the link carried, idle symbols beside packets included.
    pub carried: u64,
    /// Busy echoes sent.
    pub busy: u64,
    /// How long a passing packet waited, at most.
    pub lag_max: Span,
}

impl Node {
    pub fn new(next: u16, prev: u16, ring: u16) -> Self {
        Self {
            next,
            prev,
            ring,
            port: None,
            is_switch: false,
            free: Instant::START,
            line: VecDeque::new(),
            bypass: VecDeque::new(),
            responses: VecDeque::new(),
            requests: VecDeque::new(),
            retries: VecDeque::new(),
            crossing: VecDeque::new(),
            signals: VecDeque::new(),
            stops: 0,
            late_from: Instant::START,
            is_lagging: false,
            interface: VecDeque::new(),
            held: 0,
            age: 1,
            owed: [0; 3],
            refused: 0,
            sources: [NONE; 2],
            carried: 0,
            busy: 0,
            lag_max: Span::ZERO,
        }
    }

    pub fn has_own(&self) -> bool {
        !self.responses.is_empty() || !self.requests.is_empty()
    }

    /// Whether its age gives a request a place, of which there is one or not; else the age that it gets.
    pub fn admit(&mut self, age: u8, has_room: bool, is_aging: bool) -> Result<(), u8> {
        if !is_aging {
            return if has_room { Ok(()) } else { Err(0) };
        }
        let (now, other) = (self.age, 3 - self.age);
        let is_due = age == now || self.owed[usize::from(now)] == 0;
        if has_room && is_due {
            if age > 0 {
                self.owed[usize::from(age)] -= 1;
            }
            if self.owed[usize::from(now)] == 0 {
                self.age = other;
            }
            return Ok(());
        }
        if age > 0 {
            return Err(age);
        }
        let age = if self.owed == [0; 3] { now } else { other };
        self.owed[usize::from(age)] += 1;
        Err(age)
    }
}

/// Things with a number that is used again.
pub(super) struct Slots<T> {
    pub all: Vec<T>,
    pub free: Vec<u32>,
}

impl<T> Slots<T> {
    pub fn new() -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
        }
    }

    pub fn add(&mut self, thing: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.all[slot as usize] = thing;
            return slot;
        }
        self.all.push(thing);
        (self.all.len() - 1) as u32
    }

    pub fn at(&mut self, slot: u32) -> &mut T {
        &mut self.all[slot as usize]
    }

    pub fn drop(&mut self, slot: u32) {
        self.free.push(slot);
    }
}
