//! One rank's messages as a state machine: posts and frames in, frames, copies and completions out.
//!
//! Model:   a message of at most `eager_bytes` for which there is credit is eager: it goes with its bytes. Any other goes
//!          by rendezvous: a request to send (RTS), its envelope alone; the receiver that has a receive for it answers with a
//!          clear to send (CTS), and the bytes come straight to where they are wanted, or takes them out of the sender's memory. What came for no receive is kept. Bounds: an
//!          unreceived message holds an envelope of the sender's credit, and its bytes if they came; credit comes back
//!          with the heads of frames when it is received. Without an envelope a send waits with its sender, and all later
//!          ones to the same rank behind it.
//! Source:  MPI 4.0 §3.5 (order, progress). Deviations: none known.
//! Units:   bytes.
//! Checked: `programs_end_as_the_model_says`, `credit_bounds_what_is_kept`, `protocol_violations_are_refused`.
//!
//! It reads no clock and opens no socket, and never sees the bytes of messages: it says which operation's bytes a frame
//! carries, and where to the body of a frame goes.

use std::collections::VecDeque;

use super::frame::{Head, Kind, TEXT_BYTES_MAX, pair, unpair};
use super::matching::{Envelope, Matching, Pattern};
use super::operation::{Action, Operation, Place, State, Unexpected};
use super::peer::{Body, Failure, Landing, Out, Peer, Target};

const NONE: u32 = u32::MAX;
/// Buffers of consumed messages that are kept for the next ones, and the largest kept.
const SPARES: usize = 32;
const SPARE_BYTES_MAX: usize = 64 << 10;

/// What bounds the messages between two ranks; the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The longest eager message.
    pub(crate) eager_bytes: usize,
    /// Unreceived bytes at a receiver, of each sender.
    pub(crate) window_bytes: u32,
    /// Unreceived messages at a receiver, of each sender; at most 65,535.
    pub(crate) envelopes: u16,
}

/// The state machine of one rank.
#[derive(Debug)]
pub(crate) struct Engine {
    rank: u32,
    limits: Limits,
    /// Whether bytes are taken out of senders' memory where they say where they are.
    pub(crate) pulls: bool,
    matching: Matching,
    ops: Vec<Operation>,
    free_ops: Vec<u32>,
    kept: Vec<Unexpected>,
    free_kept: Vec<u32>,
    spares: Vec<Vec<u8>>,
    /// Where a rank is among those met, and those.
    index: Vec<u32>,
    peers: Vec<Peer>,
    /// Peers, by rank, with frames to go out.
    pub(crate) busy: Vec<u32>,
    pub(crate) actions: VecDeque<Action>,
    /// Operations of the call being made that are not done.
    pub(crate) open_calls: usize,
    pub(crate) failure: Option<Failure>,
}

/// Why a frame is refused.
pub(crate) type Nonsense = String;

impl Engine {
    pub(crate) fn new(rank: u32, size: usize, limits: Limits) -> Self {
        assert!(limits.eager_bytes <= limits.window_bytes as usize / 2);
        Self {
            rank,
            limits,
            pulls: false,
            matching: Matching::default(),
            ops: Vec::new(),
            free_ops: Vec::new(),
            kept: Vec::new(),
            free_kept: Vec::new(),
            spares: Vec::new(),
            index: vec![NONE; size],
            peers: Vec::new(),
            busy: Vec::new(),
            actions: VecDeque::new(),
            open_calls: 0,
            failure: None,
        }
    }

    /// What is known of another rank.
    #[inline]
    pub(crate) fn peer(&mut self, rank: u32) -> &mut Peer {
        let index = self.index[rank as usize];
        if index != NONE {
            return &mut self.peers[index as usize];
        }
        self.meet(rank)
    }

    #[cold]
    fn meet(&mut self, rank: u32) -> &mut Peer {
        self.index[rank as usize] = self.peers.len() as u32;
        self.peers.push(Peer::new(rank, self.limits));
        self.peers.last_mut().expect("just pushed")
    }

    /// All ranks that were met.
    pub(crate) fn met(&self) -> &[Peer] {
        &self.peers
    }

    #[inline]
    pub(crate) fn op(&self, op: u32) -> &Operation {
        &self.ops[op as usize]
    }

    #[inline]
    pub(crate) fn is_done(&self, op: u32) -> bool {
        self.ops[op as usize].state == State::Done
    }

    /// Whether it is one that was posted and not taken back.
    pub(crate) fn is_known(&self, op: u32) -> bool {
        self.ops
            .get(op as usize)
            .is_some_and(|known| known.state != State::Free)
    }

    /// Takes an operation that is done.
    #[inline]
    pub(crate) fn retire(&mut self, op: u32) -> Operation {
        let done = self.ops[op as usize];
        debug_assert_eq!(done.state, State::Done);
        self.ops[op as usize].state = State::Free;
        self.free_ops.push(op);
        done
    }

    #[inline]
    fn add(&mut self, operation: Operation) -> u32 {
        if matches!(operation.place, Place::Call(_)) && operation.state != State::Done {
            self.open_calls += 1;
        }
        match self.free_ops.pop() {
            Some(op) => {
                self.ops[op as usize] = operation;
                op
            }
            None => {
                self.ops.push(operation);
                self.ops.len() as u32 - 1
            }
        }
    }

    #[inline]
    fn done(&mut self, op: u32) {
        let operation = &mut self.ops[op as usize];
        debug_assert!(operation.state != State::Done && operation.state != State::Free);
        operation.state = State::Done;
        if matches!(operation.place, Place::Call(_)) {
            self.open_calls -= 1;
        }
    }

    // Sends.

    /// The head of an eager message, its credit taken; `None` if it has to be posted.
    #[inline]
    pub(crate) fn eager(&mut self, to: u32, envelope: Envelope, bytes: usize) -> Option<Head> {
        if bytes > self.limits.eager_bytes {
            return None;
        }
        let peer = self.peer(to);
        if !peer.outbox.is_empty()
            || !peer.waiting.is_empty()
            || peer.credit_bytes < bytes as u32
            || peer.credit_envelopes == 0
        {
            return None;
        }
        peer.credit_bytes -= bytes as u32;
        peer.credit_envelopes -= 1;
        let mut head = Head::new(Kind::Eager, envelope.context, envelope.tag, bytes as u64);
        peer.stamp(&mut head);
        Some(head)
    }

    /// The rest of what [`eager`](Self::eager) began: `sent` bytes are gone.
    pub(crate) fn post_rest(
        &mut self,
        to: u32,
        head: Head,
        (place, comm): (Place, u32),
        sent: usize,
    ) -> u32 {
        let mut operation = Operation::send(place, comm, to, head.context, head.tag, head.bytes);
        operation.state = State::Going;
        let op = self.add(operation);
        let body = Body::Of(op);
        self.queue(to, Out { head, body, sent });
        op
    }

    /// What [`eager`](Self::eager) began and is gone: over when it is posted.
    pub(crate) fn post_gone(&mut self, to: u32, head: Head, (place, comm): (Place, u32)) -> u32 {
        let mut operation = Operation::send(place, comm, to, head.context, head.tag, head.bytes);
        operation.state = State::Done;
        self.add(operation)
    }

    /// A message of `bytes` that are at `address` in this process, or nowhere that could be told (0).
    pub(crate) fn post_send(
        &mut self,
        (place, comm): (Place, u32),
        to: u32,
        envelope: Envelope,
        (bytes, address): (usize, u64),
    ) -> u32 {
        let Envelope { context, tag, .. } = envelope;
        let mut operation = Operation::send(place, comm, to, context, tag, bytes as u64);
        operation.address = address;
        let op = self.add(operation);
        if !self.peer(to).waiting.is_empty() || !self.launch(op) {
            self.peer(to).waiting.push_back(op);
        }
        op
    }

    /// A send that is over when it is posted: to this rank itself, its bytes copied.
    pub(crate) fn post_to_self(
        &mut self,
        (place, comm): (Place, u32),
        envelope: Envelope,
        payload: Vec<u8>,
    ) -> u32 {
        let Envelope { context, tag, .. } = envelope;
        let bytes = payload.len() as u64;
        let mut operation = Operation::send(place, comm, self.rank, context, tag, bytes);
        operation.state = State::Done;
        let op = self.add(operation);
        let kept = self.keep(Unexpected {
            source: self.rank,
            tag,
            bytes,
            is_whole: true,
            payload,
            ..Unexpected::default()
        });
        match self.matching.claim(envelope) {
            Some(receive) => {
                self.ops[receive as usize].matched(self.rank, tag, bytes);
                self.actions.push_back(Action::Fill { op: receive, kept });
            }
            None => self.matching.arrive(envelope, kept),
        }
        op
    }

    /// Sends it if its credit is there.
    fn launch(&mut self, op: u32) -> bool {
        let operation = self.ops[op as usize];
        let eager = operation.bytes <= self.limits.eager_bytes as u64;
        let peer = self.peer(operation.peer);
        if peer.credit_envelopes == 0 {
            return false;
        }
        peer.credit_envelopes -= 1;
        let is_eager = eager && u64::from(peer.credit_bytes) >= operation.bytes;
        let (kind, state, body) = if is_eager {
            peer.credit_bytes -= operation.bytes as u32;
            (Kind::Eager, State::Going, Body::Of(op))
        } else {
            let told = pair(u64::from(op), operation.address);
            (Kind::RequestToSend, State::Requested, Body::Pair(told))
        };
        let head = Head::new(kind, operation.context, operation.tag, operation.bytes);
        self.ops[op as usize].state = state;
        self.queue(operation.peer, Out::new(head, body));
        true
    }

    pub(crate) fn queue(&mut self, to: u32, out: Out) {
        let peer = self.peer(to);
        peer.outbox.push_back(out);
        if !peer.is_busy {
            peer.is_busy = true;
            self.busy.push(to);
        }
    }

    fn tell(&mut self, to: u32, head: Head) {
        let body = match head.kind {
            Kind::ClearToSend => Body::Pair(pair(0, 0)),
            _ => Body::Empty,
        };
        self.queue(to, Out::new(head, body));
    }

    /// The first frame for `to`: its head, which gives back what is owed when none of it is gone yet, its body, and how much
    /// is gone.
    #[inline]
    pub(crate) fn front(&mut self, to: u32) -> Option<(Head, Body, usize)> {
        let peer = self.peer(to);
        let out = peer.outbox.front_mut()?;
        if out.sent == 0 {
            let mut head = out.head;
            let body = out.body.clone();
            peer.stamp(&mut head);
            peer.outbox.front_mut()?.head = head;
            return Some((head, body, 0));
        }
        Some((out.head, out.body.clone(), out.sent))
    }

    /// The first frame for `to` is gone.
    pub(crate) fn on_sent(&mut self, to: u32) {
        let out = self.peer(to).outbox.pop_front().expect("one was sent");
        match (out.head.kind, out.body) {
            (Kind::Eager | Kind::Data, Body::Of(op)) => self.done(op),
            (Kind::Credit, _) => self.peer(to).is_credit_queued = false,
            _ => {}
        }
    }

    /// Nothing is left for `to`.
    pub(crate) fn on_idle(&mut self, to: u32) {
        self.peer(to).is_busy = false;
        self.busy.retain(|busy| *busy != to);
    }

    // Receives.

    /// A receive with so much room.
    pub(crate) fn post_recv(
        &mut self,
        (place, comm): (Place, u32),
        pattern: Pattern,
        room: usize,
    ) -> u32 {
        let op = self.add(Operation::receive(place, comm, pattern.context, room));
        match self.matching.take(pattern) {
            Some(kept) => self.deliver(op, kept),
            None => self.matching.post(pattern, op),
        }
        op
    }

    /// Who sent the message that a receive would have now, with its tag and bytes.
    pub(crate) fn find(&mut self, pattern: Pattern) -> Option<(u32, u32, u64)> {
        let kept = &self.kept[self.matching.find(pattern)? as usize];
        Some((kept.source, kept.tag, kept.bytes))
    }

    /// A receive has got a message that was kept.
    fn deliver(&mut self, op: u32, kept: u32) {
        let there = &mut self.kept[kept as usize];
        self.ops[op as usize].matched(there.source, there.tag, there.bytes);
        if let Some((other, address)) = there.request {
            self.let_go(kept);
            self.begin(op, other, address);
        } else if there.is_whole {
            self.actions.push_back(Action::Fill { op, kept });
        } else {
            there.claimed = Some(op);
        }
    }

    /// A receive has got a message whose bytes are with its sender.
    fn begin(&mut self, op: u32, other: u32, address: u64) {
        let operation = &mut self.ops[op as usize];
        (operation.other, operation.address) = (other, address);
        let (peer, bytes) = (operation.peer, operation.bytes);
        if bytes > operation.room {
            self.tell(peer, Head::new(Kind::ClearToSend, op, other, 0));
            self.done(op);
        } else if self.pulls && address != 0 {
            self.actions.push_back(Action::Pull(op));
        } else {
            self.tell(peer, Head::new(Kind::ClearToSend, op, other, bytes));
        }
        self.give_back(peer, 0);
    }

    /// The bytes of a kept message were copied to its receive.
    pub(crate) fn on_filled(&mut self, op: u32, kept: u32) {
        let (source, bytes) = {
            let kept = &self.kept[kept as usize];
            (kept.source, kept.bytes)
        };
        self.let_go(kept);
        self.done(op);
        self.give_back(source, bytes as u32);
    }

    /// The bytes were copied from the sender's memory, or could not be.
    pub(crate) fn on_pulled(&mut self, op: u32, is_done: bool) {
        let Operation {
            peer, other, bytes, ..
        } = self.ops[op as usize];
        if is_done {
            self.done(op);
            self.tell(peer, Head::new(Kind::Done, op, other, 0));
        } else {
            self.pulls = false;
            self.tell(peer, Head::new(Kind::ClearToSend, op, other, bytes));
        }
    }

    fn keep(&mut self, kept: Unexpected) -> u32 {
        match self.free_kept.pop() {
            Some(index) => {
                self.kept[index as usize] = kept;
                index
            }
            None => {
                self.kept.push(kept);
                self.kept.len() as u32 - 1
            }
        }
    }

    fn let_go(&mut self, kept: u32) {
        let mut payload = std::mem::take(&mut self.kept[kept as usize].payload);
        self.free_kept.push(kept);
        if payload.capacity() > 0
            && payload.capacity() <= SPARE_BYTES_MAX
            && self.spares.len() < SPARES
        {
            payload.clear();
            self.spares.push(payload);
        }
    }

    /// The bytes of a kept message.
    #[inline]
    pub(crate) fn payload(&mut self, kept: u32) -> &mut Vec<u8> {
        &mut self.kept[kept as usize].payload
    }

    #[inline]
    fn give_back(&mut self, to: u32, bytes: u32) {
        if to == self.rank {
            return;
        }
        let limits = self.limits;
        let peer = self.peer(to);
        peer.held_bytes -= bytes;
        peer.held_envelopes -= 1;
        peer.owed_bytes += bytes;
        peer.owed_envelopes += 1;
        if !peer.is_credit_queued
            && (peer.owed_bytes >= limits.window_bytes / 2
                || peer.owed_envelopes >= limits.envelopes / 2)
        {
            peer.is_credit_queued = true;
            self.tell(to, Head::new(Kind::Credit, 0, 0, 0));
        }
    }

    // Frames in.

    /// Whether nothing waits here but what one receive of this rank may be for: no other receive, no message for it.
    #[inline]
    pub(crate) fn is_alone(&mut self, pattern: Pattern) -> bool {
        self.busy.is_empty()
            && self.actions.is_empty()
            && self.matching.posted() == 0
            && (self.matching.unexpected() == 0 || self.matching.find(pattern).is_none())
    }

    /// An eager message has come for the receive that waits alone: its head. Its bytes are read to their end then.
    #[inline]
    pub(crate) fn on_direct(&mut self, from: u32, head: Head) -> Result<(), Nonsense> {
        if head.credit != 0 || head.envelopes != 0 {
            self.on_credit(from, head)?;
        }
        if head.bytes > self.limits.eager_bytes as u64 {
            return Err(format!("{} bytes unasked", head.bytes));
        }
        self.hold(from, head.bytes)?;
        self.give_back(from, head.bytes as u32);
        Ok(())
    }

    /// The rest of such a message is still to come, for this receive.
    pub(crate) fn post_coming(
        &mut self,
        (place, comm): (Place, u32),
        envelope: Envelope,
        (bytes, room): (u64, usize),
    ) -> u32 {
        let mut operation = Operation::receive(place, comm, envelope.context, room);
        operation.matched(envelope.source, envelope.tag, bytes);
        self.add(operation)
    }

    /// The head of a frame has come: where to its body goes.
    #[inline]
    pub(crate) fn on_head(&mut self, from: u32, head: Head) -> Result<Landing, Nonsense> {
        if head.credit != 0 || head.envelopes != 0 {
            self.on_credit(from, head)?;
        }
        let landing = |target, keep| Landing {
            head,
            target,
            keep,
            come: 0,
        };
        match head.kind {
            Kind::Eager => {
                let (target, keep) = self.on_eager(from, head)?;
                Ok(landing(target, keep))
            }
            Kind::Data => {
                let operation = self.coming(from, head)?;
                if operation.bytes != head.bytes {
                    return Err(format!("{} bytes for {}", head.bytes, operation.bytes));
                }
                Ok(landing(Target::Of(head.tag), head.bytes as usize))
            }
            Kind::Fail if head.bytes > TEXT_BYTES_MAX as u64 => {
                Err(format!("a reason of {} bytes", head.bytes))
            }
            Kind::Fail => {
                let text = &mut self.peer(from).inbound.text;
                text.clear();
                text.resize(head.bytes as usize, 0);
                Ok(landing(Target::Text, head.bytes as usize))
            }
            _ => Ok(landing(Target::Pair, head.body() as usize)),
        }
    }

    fn on_credit(&mut self, from: u32, head: Head) -> Result<(), Nonsense> {
        let limits = self.limits;
        let peer = self.peer(from);
        let bytes = u64::from(peer.credit_bytes) + u64::from(head.credit);
        let envelopes = u32::from(peer.credit_envelopes) + u32::from(head.envelopes);
        if bytes > u64::from(limits.window_bytes) || envelopes > u32::from(limits.envelopes) {
            return Err(format!("credit for {bytes} bytes and {envelopes} messages"));
        }
        (peer.credit_bytes, peer.credit_envelopes) = (bytes as u32, envelopes as u16);
        while let Some(op) = self.peer(from).waiting.front().copied() {
            if !self.launch(op) {
                break;
            }
            self.peer(from).waiting.pop_front();
        }
        Ok(())
    }

    #[inline]
    fn hold(&mut self, from: u32, bytes: u64) -> Result<(), Nonsense> {
        let limits = self.limits;
        let peer = self.peer(from);
        let (held, envelopes) = (
            u64::from(peer.held_bytes) + u64::from(peer.owed_bytes) + bytes,
            u32::from(peer.held_envelopes) + u32::from(peer.owed_envelopes) + 1,
        );
        if held > u64::from(limits.window_bytes) || envelopes > u32::from(limits.envelopes) {
            return Err(format!("{bytes} bytes above its credit"));
        }
        peer.held_bytes += bytes as u32;
        peer.held_envelopes += 1;
        Ok(())
    }

    #[inline]
    fn on_eager(&mut self, from: u32, head: Head) -> Result<(Target, usize), Nonsense> {
        if head.bytes > self.limits.eager_bytes as u64 {
            return Err(format!("{} bytes unasked", head.bytes));
        }
        self.hold(from, head.bytes)?;
        let envelope = envelope(from, head);
        if let Some(op) = self.matching.claim(envelope) {
            let operation = &mut self.ops[op as usize];
            operation.matched(from, head.tag, head.bytes);
            return Ok((Target::Of(op), head.bytes.min(operation.room) as usize));
        }
        let mut payload = self.spares.pop().unwrap_or_default();
        payload.resize(head.bytes as usize, 0);
        let kept = self.keep(Unexpected {
            source: from,
            tag: head.tag,
            bytes: head.bytes,
            payload,
            ..Unexpected::default()
        });
        self.matching.arrive(envelope, kept);
        Ok((Target::Unexpected(kept), head.bytes as usize))
    }

    /// The receive of this rank that `tag` names, whose message is coming from there.
    fn coming(&self, from: u32, head: Head) -> Result<&Operation, Nonsense> {
        self.ops
            .get(head.tag as usize)
            .filter(|op| op.state == State::Coming && op.peer == from)
            .ok_or_else(|| format!("{:?} for no receive", head.kind))
    }

    /// The send to that rank that `tag` names, whose request to send is out.
    fn asked(&self, from: u32, head: Head) -> Result<&Operation, Nonsense> {
        self.ops
            .get(head.tag as usize)
            .filter(|op| op.state == State::Requested && op.peer == from)
            .ok_or_else(|| format!("{:?} for no send", head.kind))
    }

    /// The body of a frame has come.
    #[inline]
    pub(crate) fn on_body(&mut self, from: u32, landing: Landing) -> Result<(), Nonsense> {
        let Landing { head, target, .. } = landing;
        match (head.kind, target) {
            (Kind::Eager, Target::Of(op)) => {
                self.done(op);
                self.give_back(from, head.bytes as u32);
                Ok(())
            }
            (Kind::Eager, Target::Unexpected(kept)) => {
                let there = &mut self.kept[kept as usize];
                there.is_whole = true;
                if let Some(op) = there.claimed.take() {
                    self.actions.push_back(Action::Fill { op, kept });
                }
                Ok(())
            }
            (Kind::Data, Target::Of(op)) => {
                self.done(op);
                Ok(())
            }
            _ => self.on_control(from, head),
        }
    }

    fn on_control(&mut self, from: u32, head: Head) -> Result<(), Nonsense> {
        match head.kind {
            Kind::RequestToSend => return self.on_request(from, head),
            Kind::ClearToSend => {
                let bytes = self.asked(from, head)?.bytes;
                if head.bytes == 0 {
                    self.done(head.tag);
                } else if head.bytes == bytes {
                    self.ops[head.tag as usize].state = State::Going;
                    let body = Body::Of(head.tag);
                    let head = Head::new(Kind::Data, 0, head.context, bytes);
                    self.queue(from, Out::new(head, body));
                } else {
                    return Err(format!("{} bytes wanted of {bytes}", head.bytes));
                }
            }
            Kind::Done => {
                self.asked(from, head)?;
                self.done(head.tag);
            }
            Kind::Bye => self.peer(from).has_left = true,
            Kind::Fail => {
                let why = String::from_utf8_lossy(&self.peer(from).inbound.text).into_owned();
                self.failure.get_or_insert(Failure {
                    rank: head.tag,
                    why,
                });
            }
            Kind::Credit | Kind::Eager | Kind::Data => {}
        }
        Ok(())
    }

    fn on_request(&mut self, from: u32, head: Head) -> Result<(), Nonsense> {
        self.hold(from, 0)?;
        let (other, address) = unpair(&self.peer(from).inbound.pair);
        let other = u32::try_from(other).map_err(|_| format!("operation {other}"))?;
        let envelope = envelope(from, head);
        if let Some(op) = self.matching.claim(envelope) {
            self.ops[op as usize].matched(from, head.tag, head.bytes);
            self.begin(op, other, address);
            return Ok(());
        }
        let kept = self.keep(Unexpected {
            source: from,
            tag: head.tag,
            bytes: head.bytes,
            request: Some((other, address)),
            ..Unexpected::default()
        });
        self.matching.arrive(envelope, kept);
        Ok(())
    }
}

fn envelope(from: u32, head: Head) -> Envelope {
    Envelope {
        context: head.context,
        source: from,
        tag: head.tag,
    }
}

#[cfg(test)]
mod tests;
