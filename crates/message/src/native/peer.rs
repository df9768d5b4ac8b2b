//! Another rank as one rank knows it: what goes there, what comes from there, and the credit of both.
//!
//! Units:   bytes; ranks in the world.
//! Checked: with the engine.

use std::collections::VecDeque;
use std::sync::Arc;

use super::engine::Limits;
use super::frame::{HEAD_BYTES, Head, PAIR_BYTES};

/// What a frame carries behind its head.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// Nothing.
    Empty,
    /// Two numbers.
    Pair([u8; PAIR_BYTES]),
    /// The bytes of this operation.
    Of(u32),
    /// Why something failed.
    Text(Arc<str>),
}

/// A frame on its way out, of which `sent` bytes are gone.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) head: Head,
    pub(crate) body: Body,
    pub(crate) sent: usize,
}

/// Where to a frame's body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// To the bytes of this operation.
    Of(u32),
    /// To a message that is kept.
    Unexpected(u32),
    /// To the pair of the rank it comes from.
    Pair,
    /// To the text of the rank it comes from.
    Text,
}

/// A body that is coming in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Landing {
    pub(crate) head: Head,
    pub(crate) target: Target,
    /// Bytes of it that go there; the others go nowhere.
    pub(crate) keep: usize,
    /// Bytes that have come.
    pub(crate) come: usize,
}

/// What is read from a rank: a head in parts, then its body.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) head: [u8; HEAD_BYTES],
    pub(crate) have: usize,
    pub(crate) landing: Option<Landing>,
    pub(crate) pair: [u8; PAIR_BYTES],
    pub(crate) text: Vec<u8>,
}

/// Another rank.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) rank: u32,
    pub(crate) outbox: VecDeque<Out>,
    pub(super) is_busy: bool,
    pub(super) waiting: VecDeque<u32>,
    /// What may be sent.
    pub(super) credit_bytes: u32,
    pub(super) credit_envelopes: u16,
    /// What is to be given back, and what was not given back.
    pub(super) owed_bytes: u32,
    pub(super) owed_envelopes: u16,
    pub(super) held_bytes: u32,
    pub(super) held_envelopes: u16,
    pub(super) is_credit_queued: bool,
    pub(crate) has_left: bool,
    pub(crate) inbound: Inbound,
}

/// What another rank has told of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Who is lost or gave up.
    pub(crate) rank: u32,
    pub(crate) why: String,
}

impl Peer {
    pub(super) fn new(rank: u32, limits: Limits) -> Self {
        Self {
            rank,
            outbox: VecDeque::new(),
            is_busy: false,
            waiting: VecDeque::new(),
            credit_bytes: limits.window_bytes,
            credit_envelopes: limits.envelopes,
            owed_bytes: 0,
            owed_envelopes: 0,
            held_bytes: 0,
            held_envelopes: 0,
            is_credit_queued: false,
            has_left: false,
            inbound: Inbound {
                head: [0; HEAD_BYTES],
                have: 0,
                landing: None,
                pair: [0; PAIR_BYTES],
                text: Vec::new(),
            },
        }
    }

    /// Gives back what is owed with this head.
    #[inline]
    pub(crate) fn stamp(&mut self, head: &mut Head) {
        head.credit += self.owed_bytes;
        head.envelopes += self.owed_envelopes;
        (self.owed_bytes, self.owed_envelopes) = (0, 0);
    }

    /// Whether nothing waits to go there.
    pub(crate) fn is_quiet(&self) -> bool {
        self.outbox.is_empty() && self.waiting.is_empty()
    }
}

impl Out {
    pub(super) const fn new(head: Head, body: Body) -> Self {
        Self {
            head,
            body,
            sent: 0,
        }
    }
}
