//! Packets of a ring and the time that each takes.
//!
//! Source:  IEEE 1596-1992: header 16, data 0, 16, 64 or 256, echo 8, and an idle symbol of 2 bytes after each packet.

use crate::NetworkSpec;
use sonde_units::{BitRate, Bytes, Instant, Span};

/// An idle symbol follows each packet.
const IDLE: u64 = 2;
const SIZES: usize = 5;
const NEVER: Span = Span::picos(u64::MAX);

/// How long a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// 8 bytes.
    Echo,
    /// 16 bytes: a header.
    Response,
    /// A header and 16 bytes, of which a store fills some.
    Store,
    /// A header and 64 bytes.
    Block64,
    /// A header and 256 bytes.
    Block256,
}

impl Size {
    /// That of a request with a block of so many bytes.
    pub fn of_block(bytes: u64) -> Option<Self> {
        match bytes {
            16 => Some(Self::Store),
            64 => Some(Self::Block64),
            256 => Some(Self::Block256),
            _ => None,
        }
    }

    /// Bytes on the link, with the idle symbol.
    pub const fn bytes(self) -> u64 {
        IDLE + match self {
            Self::Echo => 8,
            Self::Response => 16,
            Self::Store => 32,
            Self::Block64 => 80,
            Self::Block256 => 272,
        }
    }
}

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// A write.
    Request,
    /// The write was done.
    Response,
    /// The request was accepted.
    Accepted,
    /// The request was refused: the queue is full.
    Busy,
    /// The response was accepted.
    Confirmed,
}

/// A packet on its way round one ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub says: Says,
    pub size: Size,
    /// The age that the target gave it: 0 none, else 1 or 2.
    pub age: u8,
    /// The node that put it on the ring.
    pub from: u16,
    /// The node that takes it off.
    pub to: u16,
    /// The transaction.
    pub write: u32,
}

impl Packet {
    /// The echo that takes its place.
    pub fn echo(self, says: Says, age: u8) -> Self {
        Self {
            says,
            age,
            size: Size::Echo,
            from: self.to,
            to: self.from,
            ..self
        }
    }
}

/// A packet that comes to a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// When it can leave the node: behind its first symbol if it passes, else behind its last.
    pub at: Instant,
    /// When its last symbol can.
    pub tail: Instant,
    pub packet: Packet,
}

/// How long packets take.
pub(super) struct Times {
    spec: Option<BitRate>,
    by_size: [Span; SIZES],
    /// The least that each ever took.
    least: [Span; SIZES],
    /// From the output of a node to that of the next.
    pub hop: Span,
}

impl Times {
    pub fn new(spec: &NetworkSpec) -> Self {
        let hop = spec.line.propagation() + spec.sci.as_ref().map_or(Span::ZERO, |t| t.node_delay);
        let mut times = Self {
            spec: spec.line.usable(),
            by_size: [Span::ZERO; SIZES],
            least: [NEVER; SIZES],
            hop,
        };
        times.change(None);
        times
    }

    /// Sets another rate, or that of the specification.
    pub fn change(&mut self, rate: Option<BitRate>) {
        let rate = rate.or(self.spec);
        for size in [
            Size::Echo,
            Size::Response,
            Size::Store,
            Size::Block64,
            Size::Block256,
        ] {
            let bytes = Bytes(size.bytes());
            let time = rate.map_or(Span::ZERO, |rate| rate.time(bytes));
            self.by_size[size as usize] = time;
            self.least[size as usize] = time.min(self.least[size as usize]);
        }
    }

    /// The least that a packet took at any rate until now.
    pub fn least(&self, size: Size) -> Span {
        self.least[size as usize]
    }

    pub fn of(&self, size: Size) -> Span {
        self.by_size[size as usize]
    }
}
