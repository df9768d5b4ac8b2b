//! What joins segments while it runs: bridges and routers.
//!
//! Model:   a frame is taken in when its last bit has come, if there is room for it. It has the processor after those before it, and waits then at
//!          the interface that it leaves by until its station may send. A bridge learns where ports are; a router has its table from the file.
//!          A router, and a bridge that translates, cuts up what is too long for the next segment: each piece has the processor by itself, and is
//!          lost by itself. What a bridge sends to several segments, of which some take no frame so long, has the processor once for each.
//! Source:  IEEE 802.1D-1998 §7.7 (forwarding), §7.8 (learning), §7.9 (ageing); RFC 791 §3.2 (fragments); RFC 1812 §5.3.1 (TTL), §4.3.2 (errors), RFC 792 (their length:
//!          the header and 8 bytes of the datagram).
//! Checked: `tests/site.rs`, `tests/router.rs`.

use super::part::Heard;
use super::spec::TooLong;
use super::{Hop, Internetwork, Left};
use crate::frame::{IP_HEADER, Piece};
use crate::network::{Admission, Cause, Mark, Place};
use crate::{Answer, Datagram, Kind, Port, To};
use sonde_units::{Bytes, Instant, Span};
use std::collections::VecDeque;

/// The TTL of a router's own answers.
const TTL: u8 = 64;
/// An error of ICMP: 20 bytes of IP, 8 of its own, the header and 8 bytes of the datagram that it is about.
const ERROR: Bytes = Bytes(56);

/// A bridge or router while it runs.
pub(super) struct Node {
    pub does: Does,
    pub frame_time: Span,
    pub byte_time: Span,
    pub latency: Span,
    pub buffer: Bytes,
    /// By interface: the network and its station there.
    pub at: Vec<(usize, u16)>,
    /// By interface: its port.
    pub ports: Vec<Port>,
    pub held: Bytes,
    pub free_at: Instant,
    /// What the processor has, with the interfaces that it shall leave by.
    pub jobs: VecDeque<(usize, Outs)>,
    /// By interface: what waits for its station.
    pub outputs: Vec<VecDeque<usize>>,
    pub counts: NodeCounters,
}

/// The interfaces by which a frame shall leave a node.
#[derive(Clone, Copy)]
pub(super) enum Outs {
    One(usize),
    AllBut(usize),
}

impl Outs {
    /// Those of a node with so many.
    fn of(self, interfaces: usize) -> impl Iterator<Item = usize> {
        let (all, without) = match self {
            Self::One(out) => (out..out + 1, None),
            Self::AllBut(came) => (0..interfaces, Some(came)),
        };
        all.filter(move |out| Some(*out) != without)
    }
}

/// What a node does with a frame.
pub(super) enum Does {
    /// It sends on by where ports were heard, what is too long in fragments or not at all.
    Bridge(Heard, Option<TooLong>),
    /// By subnet: the interface, and the next router on the way; none where the subnet is at that interface.
    Route(Vec<Option<(usize, Option<Port>)>>),
}

/// What a bridge or router did with the frames that it heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Sent on: by a bridge to the one segment where their destination was heard, by a router to the next.
    pub forwarded: u64,
    /// By a bridge: sent to all other segments, since it was heard nowhere, or since they are for all.
    pub flooded: u64,
    /// By a bridge: left alone, since their destination is where they came from.
    pub filtered: u64,
    /// By a router: answered, since they were for it, too old or too long.
    pub answered: u64,
    /// Lost for want of room.
    pub dropped: u64,
}

/// A frame in a node.
pub(super) struct Packet {
    pub book: usize,
    pub hop: Hop,
    pub mark: Mark,
    /// Interfaces that it has still to leave by.
    pub left: usize,
}

impl Internetwork {
    /// A node hears a frame at an interface.
    pub(super) fn take_in(
        &mut self,
        at: Instant,
        (number, interface): (usize, usize),
        book: usize,
        hop: Hop,
        mark: Mark,
    ) {
        match self.nodes[number].does {
            Does::Bridge(..) => self.bridge(at, (number, interface), book, hop, mark),
            // It has ears for what is addressed to it on the link.
            Does::Route(_) if hop.to == To::One(self.nodes[number].ports[interface]) => {
                self.route(at, (number, interface), book, hop, mark);
            }
            Does::Route(_) => {}
        }
    }

    fn bridge(
        &mut self,
        at: Instant,
        (number, interface): (usize, usize),
        book: usize,
        hop: Hop,
        mark: Mark,
    ) {
        let node = &mut self.nodes[number];
        let place = node.at[interface];
        let Does::Bridge(heard, too_long) = &mut node.does else {
            return;
        };
        let too_long = *too_long;
        if mark == Mark::Corrupt {
            let gone = self.behind(book, &hop, place);
            return self.lose(at, book, gone, (Place::Bridge, Cause::Random));
        }
        heard.learn(at, hop.from, interface as u16);
        let found = match hop.to {
            To::One(to) if to != hop.from => heard.find(at, to).map(usize::from),
            _ => None,
        };
        let outs = match found {
            Some(out) if out == interface => {
                node.counts.filtered += 1;
                return;
            }
            Some(out) => Outs::One(out),
            None => Outs::AllBut(interface),
        };
        let interfaces = self.nodes[number].at.len();
        let is_long = |out: usize| hop.len.0 > self.mtu_at(number, out);
        if too_long.is_some() && outs.of(interfaces).any(is_long) {
            let cuts = too_long == Some(TooLong::Fragment);
            for out in outs.of(interfaces) {
                let lost = self.send_on(at, (number, out), book, hop, mark, cuts);
                if let Some(cause) = lost {
                    let gone = self.beyond(book, &hop, self.nodes[number].at[out]);
                    self.lose(at, book, gone, (Place::Bridge, cause));
                }
            }
        } else if !self.queue(at, number, (book, hop, mark), outs) {
            let gone = self.behind(book, &hop, place);
            return self.lose(at, book, gone, (Place::Bridge, Cause::Overflow));
        }
        let counts = &mut self.nodes[number].counts;
        match found {
            Some(_) => counts.forwarded += 1,
            None => counts.flooded += 1,
        }
    }

    /// Gives a node's processor a frame that shall leave by an interface, in fragments if it is too long there; why it is lost, if so.
    fn send_on(
        &mut self,
        at: Instant,
        (number, out): (usize, usize),
        book: usize,
        hop: Hop,
        mark: Mark,
        cuts: bool,
    ) -> Option<Cause> {
        let mtu = self.mtu_at(number, out);
        let out = Outs::One(out);
        let mut has_room = true;
        if hop.len.0 <= mtu {
            has_room = self.queue(at, number, (book, hop, mark), out);
        } else {
            let datagram = hop.datagram.filter(|datagram| cuts && !datagram.is_whole);
            let Some(datagram) = datagram else {
                return Some(Cause::TooLong);
            };
            for piece in self.pieces(book, hop, datagram, mtu) {
                has_room &= self.queue(at, number, (book, piece, mark), out);
            }
        }
        (!has_room).then_some(Cause::Overflow)
    }

    /// The longest frame of the segment at an interface of a node.
    fn mtu_at(&self, number: usize, interface: usize) -> u64 {
        self.parts[self.nodes[number].at[interface].0].mtu
    }

    /// The fragments of a datagram, or of a fragment of one.
    fn pieces(&mut self, book: usize, hop: Hop, datagram: Datagram, mtu: u64) -> Vec<Hop> {
        if let Some(book) = self
            .books
            .get_mut(book)
            .filter(|book| datagram.piece.is_none() && book.missing == 0)
        {
            book.missing = hop.len.0 - IP_HEADER;
        }
        let all = Piece::cut(datagram.piece, hop.len.0, mtu);
        all.map(|piece| Hop {
            len: Bytes(IP_HEADER + u64::from(piece.len)),
            datagram: Some(Datagram {
                piece: Some(piece),
                ..datagram
            }),
            ..hop
        })
        .collect()
    }

    fn route(
        &mut self,
        at: Instant,
        (number, interface): (usize, usize),
        book: usize,
        hop: Hop,
        mark: Mark,
    ) {
        let lost = |this: &mut Self, cause| {
            let gone = this.all_left(book);
            this.lose(at, book, gone, (Place::Router, cause));
        };
        if mark == Mark::Corrupt {
            return lost(self, Cause::Random);
        }
        let Some(datagram) = hop.datagram else {
            return lost(self, Cause::NoSuchPort);
        };
        // Nothing is answered about an answer, nor about a fragment.
        let refuse = |this: &mut Self, what, cause| match (datagram.answer, datagram.piece) {
            (None, None) => this.answer(at, (number, interface), book, hop, mark, what),
            _ => lost(this, cause),
        };
        if self.nodes[number].ports.contains(&datagram.to) {
            return refuse(self, Answer::Echo, Cause::NoSuchPort);
        }
        if datagram.ttl <= 1 {
            return refuse(self, Answer::TimeExceeded, Cause::Expired);
        }
        let Some((out, next)) = self.next(number, datagram.to) else {
            return lost(self, Cause::NoSuchPort);
        };
        let mtu = self.mtu_at(number, out);
        if hop.len.0 > mtu && datagram.is_whole {
            let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
            return refuse(self, Answer::TooLong { mtu }, Cause::TooLong);
        }
        let by = self.nodes[number].ports[out];
        let datagram = Datagram {
            ttl: datagram.ttl - 1,
            hops: datagram.hops + 1,
            ..datagram
        };
        let sent = Hop {
            from: by,
            to: To::One(next.unwrap_or(datagram.to)),
            datagram: Some(datagram),
            ..hop
        };
        self.hand_over(book, next);
        match self.send_on(at, (number, out), book, sent, mark, true) {
            None => self.nodes[number].counts.forwarded += 1,
            Some(cause) => lost(self, cause),
        }
    }

    /// A router sends an answer back in place of a datagram.
    fn answer(
        &mut self,
        at: Instant,
        (number, interface): (usize, usize),
        book: usize,
        hop: Hop,
        mark: Mark,
        what: Answer,
    ) {
        let Some(sender) = self.books.get(book).map(|book| book.frame.from) else {
            return;
        };
        let Some((out, next)) = self.next(number, sender) else {
            return;
        };
        let len = match what {
            Answer::Echo => hop.len,
            Answer::TimeExceeded | Answer::TooLong { .. } => ERROR,
        };
        let answer = Hop {
            from: self.nodes[number].ports[out],
            to: To::One(next.unwrap_or(sender)),
            len,
            datagram: Some(Datagram {
                to: sender,
                ttl: TTL,
                is_whole: true,
                hops: 0,
                answer: Some((self.nodes[number].ports[interface], what)),
                piece: None,
            }),
        };
        // From here on its sender waits for it.
        if let Some(book) = self.books.get_mut(book) {
            book.left = Left::One(Some(sender));
        }
        self.hand_over(book, next);
        if self.queue(at, number, (book, answer, mark), Outs::One(out)) {
            self.nodes[number].counts.answered += 1;
        } else {
            let gone = self.all_left(book);
            self.lose(at, book, gone, (Place::Router, Cause::Overflow));
        }
    }

    /// In a lab a host that is the next on the way takes a frame out of the network: its kernel sends it on anew.
    fn hand_over(&mut self, book: usize, next: Option<Port>) {
        if let (Some(next), Some(book)) = (next, self.books.get_mut(book))
            && self.subnets.is_host(next)
            && matches!(book.frame.kind, Kind::Routed(_))
        {
            book.left = Left::One(Some(next));
        }
    }

    /// By which interface a router sends to a port, and to which router.
    fn next(&self, number: usize, to: Port) -> Option<(usize, Option<Port>)> {
        let subnet = self.subnets.of_port(to)?;
        match &self.nodes[number].does {
            Does::Route(table) => *table.get(subnet)?,
            Does::Bridge(..) => None,
        }
    }

    /// Gives a frame to a node's processor; whether there was room.
    fn queue(
        &mut self,
        at: Instant,
        number: usize,
        (book, hop, mark): (usize, Hop, Mark),
        outs: Outs,
    ) -> bool {
        let node = &mut self.nodes[number];
        if node.held + hop.len > node.buffer {
            node.counts.dropped += 1;
            return false;
        }
        node.held += hop.len;
        node.free_at = node.free_at.max(at) + node.frame_time + node.byte_time * hop.len.0;
        let left = outs.of(node.at.len()).count();
        let packet = self.packets.insert(Packet {
            book,
            hop,
            mark,
            left,
        });
        node.jobs.push_back((packet, outs));
        self.calendar.insert(node.free_at + node.latency, number);
        if let Some(book) = self.books.get_mut(book) {
            book.alive += 1;
        }
        true
    }

    /// The processor of the node that is due first is done with a frame.
    pub(super) fn process(&mut self) {
        let Some((now, number)) = self.calendar.pop() else {
            return;
        };
        let node = &mut self.nodes[number];
        let Some((packet, outs)) = node.jobs.pop_front() else {
            return;
        };
        let interfaces = node.at.len();
        for out in outs.of(interfaces) {
            node.outputs[out].push_back(packet);
        }
        let Some(&Packet { book, left, .. }) = self.packets.get(packet) else {
            return;
        };
        if let Some(book) = self.books.get_mut(book) {
            book.alive += left as u32 - 1;
        }
        for out in outs.of(interfaces) {
            self.send(now, number, out);
        }
    }

    /// A node sends what waits at an interface, as far as its station wants it.
    pub(super) fn send(&mut self, now: Instant, number: usize, interface: usize) {
        let (segment, station) = self.nodes[number].at[interface];
        while let Some(&packet) = self.nodes[number].outputs[interface].front() {
            let Some(&Packet {
                book, hop, mark, ..
            }) = self.packets.get(packet)
            else {
                return;
            };
            let Some(class) = self.books.get(book).map(|book| book.frame.class) else {
                return;
            };
            let is_wanted = self.parts[segment].net.ready(Port(station), class);
            if !is_wanted
                || self.put(now, book, hop, self.nodes[number].ports[interface], mark)
                    == Admission::Blocked
            {
                return;
            }
            let part = &mut self.parts[segment];
            if !part.is_shared {
                part.heard.learn(now, hop.from, station);
            }
            let node = &mut self.nodes[number];
            node.outputs[interface].pop_front();
            let left = self.packets.get_mut(packet).map_or(0, |packet| {
                packet.left -= 1;
                packet.left
            });
            if left == 0 {
                self.packets.remove(packet);
                node.held -= hop.len;
            }
        }
    }
}
