//! Rings with register insertion (SCI): one ring of nodes, or several that a switch joins.
//!
//! Model:   a datagram is a row of write transactions. The host interface makes one move after the other (a block of 64
//!          bytes, or a store of 1 to 8) at its own rate, each a request of 16 bytes and data. A packet goes from node to
//!          node; a node sends one of its own where its bypass FIFO is empty, and what passes meanwhile waits there. The
//!          target takes a packet off the ring and puts an echo in its place, which goes on round the ring to the sender;
//!          a full input queue echoes busy, and the sender tries again with the age that the target gave it. A response of
//!          16 bytes, echoed likewise, frees the sender's transaction. A frame is delivered when its last request has been
//!          accepted, and after the earlier ones of its pair. With `fair` (go bits) a node whose bypass FIFO does not empty while it
//!          has something to send lets no other begin; without, it does so only after 1,024 times as long. A switch takes part in each ring as a node of its own.
//! Source:  IEEE 1596-1992; Scott, Goodman, Vernon 1992 (ring model, flow control). Deviations: go bits are a
//!          state that a node withholds from those after it until its FIFO is empty, not bits in each idle symbol; a
//!          response is sent when the request was accepted and is never refused, its place being kept; the two directions
//!          of a host interface do not hinder each other; requests for an address do not load the ring; the coherent
//!          mode of the standard is not here yet.
//! Units:   sizes on the ring include one idle symbol of 2 bytes after each packet; times round up.
//! Checked: `tests/sci.rs` (bounds of rings, knee, incast, starvation, switch); the tests of `sci::ring`;
//!          `tests/properties.rs`.

mod host;
mod node;
mod ring;
mod source;
mod wire;

#[cfg(test)]
mod tests;

pub(crate) use ring::Rings;

use crate::edge::Edge;
use crate::medium::{Medium, Target};
use crate::network::{Cause, Command, Place, Refused};
use crate::{Fault, Frame, NetworkSpec, Port, SpecError};
use serde::{Deserialize, Serialize};
use sonde_units::{BitRate, Bytes, Instant, Span};
use source::{NEVER, Waiting};
use wire::Size;

/// Rings with register insertion: SCI.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sci {
    /// Nodes on each ring, at least: those beyond the hosts and the switch only pass on. 2 to 1024.
    #[serde(default = "two")]
    pub nodes: u64,
    /// How many rings share the hosts; 2 to 64 are joined by a switch. With 1 there is no switch.
    #[serde(default = "one")]
    pub rings: u64,
    /// From the input of a node to its output, at most 1 ms.
    pub node_delay: Span,
    /// Bytes of an aligned move, one packet each: 16, 64 or 256.
    #[serde(default = "block")]
    pub block: u64,
    /// Bytes of a store, 1 to 8: each datagram goes in stores, a transaction each; 0: in blocks.
    #[serde(default)]
    pub store: u64,
    /// Where a datagram begins in a block, 0 (aligned: unsplit) up to the block: what lies before the first whole block and
    /// after the last goes in stores of 8 bytes.
    #[serde(default)]
    pub offset: u64,
    /// What the interface of a host carries in each direction; without it the interface takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_rate: Option<BitRate>,
    /// The least time of a store at the host.
    #[serde(default)]
    pub store_time: Span,
    /// To set up the DMA engine for a datagram.
    #[serde(default)]
    pub dma_setup: Span,
    /// Transactions that a node may have under way, 1 to 64.
    #[serde(default = "active")]
    pub active: u64,
    /// Requests that wait at a target for its interface, 1 to 1024.
    #[serde(default = "input")]
    pub input: u64,
    /// From a busy echo to the next try.
    #[serde(default)]
    pub retry: Span,
    /// Whether a target keeps its next place for those that it refused longest ago.
    #[serde(default = "yes")]
    pub aging: bool,
    /// Whether go bits share out the ring; without, they only keep a node from waiting for ever.
    #[serde(default)]
    pub fair: bool,
    /// Whether a response follows each write; without it (moves) the echo ends the transaction.
    #[serde(default = "yes")]
    pub response: bool,
    /// From one ring to the other, through the switch.
    #[serde(default)]
    pub switch_delay: Span,
    /// Requests for a ring that the switch holds, 1 to 1024.
    #[serde(default = "input")]
    pub switch_queue: u64,
    /// How long the address server takes for an answer.
    #[serde(default = "answer")]
    pub resolution_delay: Span,
}

const fn one() -> u64 {
    1
}
const fn two() -> u64 {
    2
}
const fn block() -> u64 {
    64
}
/// The transaction identifier of IEEE 1596 has six bits.
const fn active() -> u64 {
    64
}
const fn input() -> u64 {
    16
}
const fn yes() -> bool {
    true
}
const fn answer() -> Span {
    Span::millis(1)
}

impl Sci {
    /// Whether its values are in their ranges and fit the rest of `spec`.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub(crate) fn check(&self, spec: &NetworkSpec) -> Result<(), SpecError> {
        use crate::Topology;
        let refuse = |key, problem| Err(SpecError { key, problem });
        if spec.topology != Topology::Ring {
            return refuse("topology", "needs \"ring\" beside [sci]".into());
        }
        if spec.switch.is_some() {
            let problem = "stands beside [sci]; leave it out and use `rings` of [sci]".into();
            return refuse("switch", problem);
        }
        if spec.line.rate.is_none() {
            let problem = "is missing; a ring needs one, such as `1Gbit`".into();
            return refuse("line.rate", problem);
        }
        if spec.line.framing() != crate::Framing::None {
            let problem = "must be \"none\" beside [sci], which has packets of its own".into();
            return refuse("line.framing", problem);
        }
        for (key, value, least, most) in [
            ("sci.nodes", self.nodes, 2, 1_024),
            ("sci.rings", self.rings, 1, 64),
            ("sci.store", self.store, 0, 8),
            ("sci.active", self.active, 1, 64),
            ("sci.input", self.input, 1, 1_024),
            ("sci.switch_queue", self.switch_queue, 1, 1_024),
            ("sci.offset", self.offset, 0, self.block.saturating_sub(1)),
        ] {
            if !(least..=most).contains(&value) {
                return refuse(key, format!("is {value}, but {least} to {most} can be"));
            }
        }
        if Size::of_block(self.block).is_none() {
            let problem = format!("is {}, but a packet has 16, 64 or 256 bytes", self.block);
            return refuse("sci.block", problem);
        }
        for (key, span, most) in [
            ("sci.node_delay", self.node_delay, Span::millis(1)),
            ("sci.store_time", self.store_time, Span::secs(1)),
            ("sci.dma_setup", self.dma_setup, Span::secs(1)),
            ("sci.retry", self.retry, Span::secs(1)),
            ("sci.switch_delay", self.switch_delay, Span::secs(1)),
            (
                "sci.resolution_delay",
                self.resolution_delay,
                Span::secs(60),
            ),
        ] {
            if span > most {
                return refuse(key, format!("is {span}, but at most {most} can be"));
            }
        }
        if self.host_rate.is_some_and(|rate| rate.bps() < 1_000) {
            return refuse("sci.host_rate", "is below 1kbit".into());
        }
        Ok(())
    }

    /// For how long a frame of `len` layer-3 bytes keeps others of a stream off the bottleneck: the host interface, the
    /// sender's link (the requests, and the echoes of the responses), or the transactions under way on a ring of `nodes`.
    pub(crate) fn frame_time(&self, spec: &NetworkSpec, len: Bytes) -> Span {
        let moves = self.moves(len);
        let wire = wire::Times::new(spec);
        let (stores, blocks) = (moves.stores(), moves.blocks);
        let host = self.dma_setup
            + self.move_time(Size::Store) * stores
            + self.move_time(self.block_size()) * blocks;
        let echo = if self.response {
            wire.of(Size::Echo)
        } else {
            Span::ZERO
        };
        let on_link = |size| wire.of(size) + echo;
        let link = on_link(Size::Store) * stores + on_link(self.block_size()) * blocks;
        let round = |size| {
            let back = if self.response {
                wire.of(Size::Response)
            } else {
                Span::ZERO
            };
            self.move_time(size)
                + wire.hop * self.nodes
                + wire.of(size)
                + wire.of(Size::Echo)
                + back
        };
        let rounds = round(Size::Store) * stores + round(self.block_size()) * blocks;
        let window = Span::picos(rounds.as_picos().div_ceil(self.active));
        host.max(link).max(window)
    }

    fn block_size(&self) -> Size {
        Size::of_block(self.block).unwrap_or(Size::Block64)
    }

    /// How long the interface of a host is busy with a move.
    fn move_time(&self, size: Size) -> Span {
        let (bytes, least) = match size {
            Size::Store => (
                if self.store == 0 { 8 } else { self.store },
                self.store_time,
            ),
            _ => (self.block, Span::ZERO),
        };
        let rate = self.host_rate;
        rate.map_or(Span::ZERO, |rate| rate.time(Bytes(bytes)))
            .max(least)
    }

    /// The least time of a move, and the size of the smallest.
    fn least_move(&self) -> (Span, Size) {
        let (store, block) = (
            self.move_time(Size::Store),
            self.move_time(self.block_size()),
        );
        match (self.store, self.offset) {
            (0, 0) => (block, self.block_size()),
            _ => (store.min(block), Size::Store),
        }
    }

    /// The moves of a datagram.
    fn moves(&self, len: Bytes) -> Moves {
        let len = len.0.max(1);
        if self.store > 0 {
            let before = len.div_ceil(self.store);
            return Moves {
                before,
                blocks: 0,
                after: 0,
            };
        }
        if self.offset == 0 {
            let blocks = len.div_ceil(self.block);
            return Moves {
                before: 0,
                blocks,
                after: 0,
            };
        }
        let head = len.min(self.block - self.offset);
        let rest = len - head;
        Moves {
            before: head.div_ceil(8),
            blocks: rest / self.block,
            after: (rest % self.block).div_ceil(8),
        }
    }
}

/// The moves of a datagram, in their order: stores, blocks, stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moves {
    before: u64,
    blocks: u64,
    after: u64,
}

impl Moves {
    fn stores(self) -> u64 {
        self.before + self.after
    }

    fn total(self) -> u64 {
        self.before + self.blocks + self.after
    }

    /// Whether the move of this number, from 0, is a block.
    fn is_block(self, number: u64) -> bool {
        (self.before..self.before + self.blocks).contains(&number)
    }
}

impl Medium for Rings {
    fn admits(&mut self, _: Instant, port: Port, len: Bytes) -> bool {
        self.sources[usize::from(port.0)].queue.admits(len)
    }

    fn ready(&self, port: Port) -> bool {
        self.sources[usize::from(port.0)].queue.ready()
    }

    fn backlog(&mut self, _: Instant, port: Port) -> Bytes {
        self.sources[usize::from(port.0)].queue.backlog()
    }

    fn take(&mut self, now: Instant, frame: Frame, target: Target, edge: &mut Edge) {
        self.run(now, edge);
        let number = u32::from(frame.from.0);
        let source = &mut self.sources[number as usize];
        source.served += u64::from(target == Target::Server);
        source.queue.push(frame.len, Waiting { frame, target });
        self.start(now, number, edge);
    }

    fn background(&mut self, now: Instant, frame: Frame, to: Port, edge: &mut Edge) {
        self.run(now, edge);
        let number = if usize::from(frame.from.0) < self.homes.len() {
            u32::from(frame.from.0)
        } else {
            self.guest(to)
        };
        if !self.sources[number as usize].haunt(frame, to) {
            edge.lose(now, &frame, to, Place::Station, Cause::Overflow);
        }
        self.start(now, number, edge);
    }

    fn command(&mut self, now: Instant, command: Command, edge: &mut Edge) -> Result<(), Refused> {
        self.run(now, edge);
        let done = match command {
            Command::Vc(_) => Err(Refused::NoCircuits),
            Command::Fault(Fault::Rate { rate }) => {
                self.times.change(rate);
                for carried in &mut self.carried.all {
                    carried.soonest = Instant::START;
                }
                Ok(())
            }
            Command::Fault(Fault::Restart { down }) if !self.exits.is_empty() => {
                self.restart(now, down, edge);
                Ok(())
            }
            Command::Fault(Fault::Restart { .. }) => Err(Refused::NotHere {
                what: "switch",
                remedy: "join rings by one (`rings=2`), or take a host down instead",
            }),
            _ => Err(Refused::NotHere {
                what: "such part",
                remedy: "choose another network, or change its rate",
            }),
        };
        self.bound = self.bound();
        done
    }

    fn next_at(&self) -> Option<Instant> {
        Some(self.bound).filter(|at| *at != NEVER)
    }

    fn step(&mut self, edge: &mut Edge) {
        self.run(self.bound, edge);
        self.bound = self.bound();
    }
}
