//! What the hosts and the background do on the rings: moves made, transactions freed, frames delivered or lost.

use super::node::NONE;
use super::ring::Rings;
use super::source::{Carried, Current, NEVER, Source, Waiting, Write};
use super::wire::{Packet, Says, Size};
use crate::Port;
use crate::edge::Edge;
use crate::medium::Target;
use crate::network::{Cause, Place};
use sonde_units::{Bytes, Instant, Span};

impl Rings {
    /// Before this nothing of a source can happen that others see; `next` is the time of the next event.
    pub(super) fn soonest(&self, source: &Source, next: Instant) -> Instant {
        let (step, least) = self.least;
        let step = if source.is_host { step } else { Span::ZERO };
        let request = self.times.least(least);
        let is_making = source.made_at != NEVER;
        let from = if is_making { source.made_at } else { next };
        let free = self.table.active - source.active + u64::from(is_making);
        let back = if self.table.response {
            Size::Response
        } else {
            Size::Echo
        };
        let back = self.times.least(back);
        // So many moves more are made: each takes its time, and beyond the free transactions a response, or an echo.
        let made = |moves: u64| {
            let freed = if source.served > 0 {
                0
            } else {
                moves.saturating_sub(free)
            };
            (from + step * moves.saturating_sub(1)).max(next + back * freed.saturating_sub(1))
        };
        let mut soonest = NEVER;
        let unmade = source.unmade();
        if source.served > 0 {
            soonest = made(unmade);
        }
        if source.has_waiting() {
            soonest = soonest.min(made(unmade + 1) + self.times.hop + request);
        }
        if let Some(moves) = source.moves_to_wake(self.mtu, self.low, self.table.block.max(8)) {
            soonest = soonest.min(made(moves)).max(next);
        }
        for &slot in &source.under_way {
            let carried = &self.carried.all[slot as usize];
            let is_current = source.current.is_some_and(|c| c.carried == Some(slot));
            let sent = if is_current {
                made(unmade) + carried.way + request
            } else {
                carried.soonest
            };
            let arrived = next + request * carried.left.saturating_sub(1);
            soonest = soonest.min(sent.max(arrived));
        }
        soonest
    }

    /// The sender is done with a transaction.
    pub(super) fn free(&mut self, now: Instant, slot: u32, edge: &mut Edge) {
        let write = self.writes.at(slot);
        write.is_freed = true;
        let (source, is_settled, home) = (write.source, write.is_settled, write.home);
        if is_settled {
            self.writes.drop(slot);
        }
        self.sources[source as usize].active -= 1;
        self.resume(now, source, edge);
        // The source's next move may be due before what the node planned.
        let made_at = self.sources[source as usize].made_at;
        let due = &mut self.due[usize::from(home)];
        *due = made_at.min(*due);
    }

    /// A move is at its target.
    pub(super) fn settle(&mut self, now: Instant, slot: u32, edge: &mut Edge) {
        let write = self.writes.at(slot);
        write.is_settled = true;
        let (carried, is_freed) = (write.carried, write.is_freed);
        if is_freed {
            self.writes.drop(slot);
        }
        let here = self.carried.at(carried);
        here.left -= 1;
        if here.left > 0 {
            return;
        }
        let source = here.source;
        if here.is_lost {
            return self.carried.drop(carried);
        }
        self.release(now, source, edge);
    }

    /// Delivers what is complete and behind nothing incomplete for the same station.
    pub(super) fn release(&mut self, now: Instant, source: u32, edge: &mut Edge) {
        let under_way = &mut self.sources[source as usize].under_way;
        let mut place = 0;
        while place < under_way.len() {
            let slot = under_way[place];
            let here = &self.carried.all[slot as usize];
            let to = here.to;
            let earlier = under_way.iter().take(place);
            let is_first = !earlier
                .clone()
                .any(|other| self.carried.all[*other as usize].to == to);
            if here.left > 0 || !is_first {
                place += 1;
                continue;
            }
            edge.arrive(now, &here.frame, to);
            under_way.remove(place);
            self.carried.drop(slot);
        }
    }

    /// A move is lost in the switch.
    pub(super) fn lose(&mut self, now: Instant, slot: u32, edge: &mut Edge) {
        let carried = self.writes.at(slot).carried;
        let here = self.carried.at(carried);
        let source = here.source;
        if !here.is_lost {
            here.is_lost = true;
            edge.lose(now, &here.frame, here.to, Place::Medium, Cause::Restart);
            self.sources[source as usize]
                .under_way
                .retain(|other| *other != carried);
            self.release(now, source, edge);
        }
        self.settle(now, slot, edge);
        if self.table.response {
            self.free(now, slot, edge);
        }
    }

    /// Lets a source that is not making anything go on.
    pub(super) fn resume(&mut self, now: Instant, number: u32, edge: &mut Edge) {
        loop {
            let source = &mut self.sources[number as usize];
            if source.made_at != NEVER {
                return;
            }
            if let Some(current) = source.current {
                let is_request = current.carried.is_none();
                if !is_request && source.active == self.table.active {
                    return;
                }
                source.active += u64::from(!is_request);
                let is_block = current.moves.is_block(current.made);
                let time = match (source.is_host, is_block) {
                    (false, _) => Span::ZERO,
                    (true, true) => self.block_time,
                    (true, false) => self.store_time,
                };
                source.made_at = source.free_at.max(now) + time;
                return;
            }
            let Some((waiting, woken)) = source.pop() else {
                return;
            };
            let setup = if source.is_host {
                self.table.dma_setup
            } else {
                Span::ZERO
            };
            source.free_at = now + setup;
            if woken {
                edge.ready(now, Port(number as u16));
            }
            self.begin(number, waiting);
        }
    }

    /// Opens the books on a frame.
    pub(super) fn begin(&mut self, number: u32, waiting: Waiting) {
        let (frame, moves) = (waiting.frame, self.table.moves(waiting.frame.len));
        let home = self.sources[number as usize].node;
        let carried = match waiting.target {
            Target::One(to) => Some(self.carried.add(Carried {
                frame,
                to,
                source: number,
                left: moves.total(),
                is_lost: false,
                soonest: NEVER,
                way: self.way(home, self.homes[usize::from(to.0)]),
            })),
            Target::All | Target::Server => None,
        };
        let source = &mut self.sources[number as usize];
        source.under_way.extend(carried);
        source.current = Some(Current {
            carried,
            frame,
            moves,
            made: 0,
        });
    }

    /// Hands the moves that are made to the node.
    pub(super) fn make(&mut self, now: Instant, number: u32, edge: &mut Edge) {
        while self.sources[number as usize].made_at <= now {
            let source = &mut self.sources[number as usize];
            let home = source.node;
            source.made_at = NEVER;
            source.free_at = now;
            let Some(current) = source.current.as_mut() else {
                return;
            };
            let is_block = current.moves.is_block(current.made);
            current.made += 1;
            let current = *current;
            let (carried, frame) = (current.carried, current.frame);
            let is_last = current.made == current.moves.total();
            if is_last {
                source.current = None;
            }
            let size = if is_block {
                self.table.block_size()
            } else {
                Size::Store
            };
            if let Some(carried) = carried {
                let here = self.carried.at(carried);
                let to = here.to;
                if is_last {
                    here.soonest = now + here.way + self.times.of(size);
                }
                let target = self.homes[usize::from(to.0)];
                let write = Write {
                    source: number,
                    carried,
                    home,
                    target,
                    size,
                    is_settled: false,
                    is_freed: false,
                };
                let write = self.writes.add(write);
                let packet = Packet {
                    says: Says::Request,
                    size,
                    age: 0,
                    from: home,
                    to: self.stop(home, target),
                    write,
                };
                self.node(home).requests.push_back(packet);
                self.live += 1;
            } else if is_last {
                self.sources[number as usize].served -= 1;
                // There and back once round the ring.
                let way = self.times.hop * (self.nodes.len() / self.exits.len().max(1)) as u64;
                let time = self.times.of(size) * current.moves.total();
                let at = now + way + time + self.table.resolution_delay;
                self.answered_at = at.max(self.answered_at);
                self.answers.insert(self.answered_at, frame);
            }
            self.resume(now, number, edge);
        }
    }

    /// Does the whole transaction of the only packet there is, which waits at `node`, if all of it ends before anything else
    /// begins, until `until`, and nobody sees it: exactly what its packets would do one by one.
    pub(super) fn jump(&mut self, now: Instant, node: u16, until: Instant, edge: &mut Edge) {
        let Some(&packet) = self.nodes[usize::from(node)].requests.front() else {
            return;
        };
        let write = *self.writes.at(packet.write);
        let source = &self.sources[write.source as usize];
        let waits = source.made_at == NEVER && (source.current.is_some() || source.has_waiting());
        let here = &self.nodes[usize::from(node)];
        let is_last = self.carried.all[write.carried as usize].left == 1;
        // What crosses a switch, to it or from it, holds a place there and is answered through it.
        let crosses = packet.to != write.target || node != write.home;
        if waits || is_last || crosses || here.stops > 0 || here.free > now {
            return;
        }
        let (there, back) = (self.hops(node, packet.to), self.hops(packet.to, node));
        let echo = self.times.of(Size::Echo);
        let comes = now + self.times.of(packet.size) + self.times.hop * there;
        let mut freed = comes + echo + self.times.hop * back;
        let mut end = freed;
        if self.table.response {
            freed = freed + self.times.of(Size::Response);
            end = freed + echo + self.times.hop * there;
        }
        let others = self
            .due
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != usize::from(node));
        let next = others.map(|(_, at)| *at).min().unwrap_or(NEVER);
        let made = here.sources.iter().filter(|s| **s != NONE);
        let made = made.map(|s| self.sources[*s as usize].made_at).min();
        let next = next
            .min(made.unwrap_or(NEVER))
            .min(self.answers.next_at().unwrap_or(NEVER));
        if end > until || end >= next {
            return;
        }
        // A refusal would leave its mark: it is for the packets themselves to meet.
        let target = &self.nodes[usize::from(packet.to)];
        let waiting = target.interface.iter().filter(|at| **at > comes).count();
        let has_room = (waiting as u64) < self.table.input;
        let is_free = has_room && packet.age == 0 && target.owed == [0; 3];
        if !is_free || !self.enter(comes, packet.to, packet) {
            return;
        }
        self.node(node).requests.pop_front();
        self.live -= 1;
        let (request, echo, response) = (
            packet.size.bytes(),
            Size::Echo.bytes(),
            Size::Response.bytes(),
        );
        let answers = self.table.response;
        let mut at = node;
        for hop in 0..there + back {
            let here = self.node(at);
            here.carried += if hop < there { request } else { echo };
            here.carried += match (answers, hop < there) {
                (false, _) => 0,
                (true, true) => echo,
                (true, false) => response,
            };
            at = here.next;
        }
        self.settle(comes, packet.write, edge);
        self.free(freed, packet.write, edge);
    }

    /// Does what the new state of a source's node asks for, at once.
    pub(super) fn start(&mut self, now: Instant, number: u32, edge: &mut Edge) {
        self.resume(now, number, edge);
        let node = self.sources[number as usize].node;
        self.make(now, number, edge);
        self.transmit(now, node);
        self.plan(node);
        self.bound = self.bound();
    }

    /// The source of background traffic that comes from elsewhere: at the node before the target's.
    pub(super) fn guest(&mut self, to: Port) -> u32 {
        let prev = self.nodes[usize::from(self.homes[usize::from(to.0)])].prev;
        if self.nodes[usize::from(prev)].sources[1] == NONE {
            self.nodes[usize::from(prev)].sources[1] = self.sources.len() as u32;
            self.sources.push(Source::new(prev, false, Bytes::ZERO));
        }
        self.nodes[usize::from(prev)].sources[1]
    }
}
