//! How one rank's messages move: frames between the engine and the wires, bytes between the wires and where they belong.
//!
//! Model:   a round sends what can go, takes in what has come, and does what the engine asks for. A wait is rounds until its
//!          goal is reached; after rounds in vain it looks at the clock now and then, sees whether somebody is lost, and
//!          ends when nothing moved within the timeout. Who waits by `block` sleeps between rounds. One thread does all of it,
//!          in calls: nothing moves between them.
//! Checked: the tests of the messenger, over each transport.

use std::time::{Duration, Instant};

use sonde_measure::Wait;

use super::frame::{HEAD_BYTES, Head, Kind, TEXT_BYTES_MAX};
use super::messenger::{Ended, Native};
use super::operation::{Action, Place};
use super::peer::{Body, Out, Target};
use super::wires::{Broken, Wired, Wires};
use crate::{Error, Op, Result, Source};

/// A sleep is cut into such pieces, to see who is lost.
const NAP: Duration = Duration::from_millis(50);
/// A poll that has waited so long lets others have the CPU now and then.
const GENEROUS_AFTER: Duration = Duration::from_micros(200);
/// Between two looks at who is lost while polling.
const ALIVE_AFTER: Duration = Duration::from_millis(1);
/// How long the reason of an end is tried to be told to others.
const TELL_FOR: Duration = Duration::from_millis(200);

/// What a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// All operations of this call are done.
    Calls,
    /// This operation is.
    Of(u32),
    /// All that was sent is on its way.
    Sent,
    /// All others have said goodbye.
    Byes,
}

/// How long a wait has been in vain.
#[derive(Debug, Default)]
struct Idle {
    looks: u32,
    since: Option<Instant>,
    alive: Duration,
}

/// The bytes that an operation sends.
fn bytes_of<'a>(own: &'a [Vec<u8>], ops: &'a [Op<'_>], op: u32, place: Place) -> &'a [u8] {
    match place {
        Place::Own => &own[op as usize],
        Place::Call(index) => match &ops[index as usize] {
            Op::Send { payload, .. } => payload,
            Op::Recv { room, .. } => room,
        },
    }
}

/// The room that an operation receives into.
fn room_of<'a>(
    own: &'a mut [Vec<u8>],
    ops: &'a mut [Op<'_>],
    op: u32,
    place: Place,
) -> &'a mut [u8] {
    match place {
        Place::Own => &mut own[op as usize],
        Place::Call(index) => match &mut ops[index as usize] {
            Op::Recv { room, .. } => room,
            Op::Send { .. } => unreachable!("a send receives nothing"),
        },
    }
}

impl<W: Wires> Native<W> {
    /// Makes rounds until the goal is reached. `ops` are those of the call being made.
    #[inline]
    pub(super) fn drive(&mut self, ops: &mut [Op<'_>], goal: Goal) -> Result<()> {
        let mut idle = Idle::default();
        let driven = loop {
            if self.is_reached(goal) {
                break Ok(());
            }
            match self.round_before(self.wait == Wait::Block, ops) {
                Ok(true) => idle = Idle::default(),
                Ok(false) => {
                    idle.looks += 1;
                    if self.wait == Wait::Block || idle.looks % W::LOOKS == 0 {
                        if let Err(stop) = self.rest(&mut idle, ops, goal) {
                            break Err(stop);
                        }
                    }
                }
                Err(broken) => break Err(Stop::Lost(broken)),
            }
        };
        match driven {
            // What is to be told of it, that it was taken for example, goes now.
            Ok(()) if self.engine.busy.is_empty() => Ok(()),
            Ok(()) => match self.flush(ops) {
                Ok(_) => Ok(()),
                Err(broken) => Err(self.give_up(Stop::Lost(broken), ops, goal)),
            },
            Err(stop) => Err(self.give_up(stop, ops, goal)),
        }
    }

    #[inline]
    fn is_reached(&mut self, goal: Goal) -> bool {
        if !self.engine.actions.is_empty() {
            return false;
        }
        match goal {
            Goal::Calls => self.engine.open_calls == 0,
            Goal::Of(op) => self.engine.is_done(op),
            Goal::Sent => self.engine.met().iter().all(|peer| peer.is_quiet()),
            Goal::Byes => self.engine.met().iter().all(|peer| peer.has_left),
        }
    }

    /// One round without waiting; whether anything moved.
    pub(super) fn round(&mut self, ops: &mut [Op<'_>]) -> Wired<bool> {
        self.round_before(false, ops)
    }

    /// A round of who sleeps next, if nothing moved, or does not.
    #[inline]
    fn round_before(&mut self, sleeps: bool, ops: &mut [Op<'_>]) -> Wired<bool> {
        let mut moved = self.act(ops);
        if !self.engine.busy.is_empty() {
            moved |= self.flush(ops)?;
        }
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        ready.extend(self.begun.take());
        let looked = self.wires.look(self.awaited, sleeps, &mut ready);
        let mut came = looked.map(|()| moved);
        for from in &ready {
            came = match (came, self.intake(*from, ops)) {
                (Ok(moved), Ok(more)) => Ok(moved | more),
                (Err(broken), _) | (_, Err(broken)) => Err(broken),
            };
        }
        self.ready = ready;
        came
    }

    /// Sends what there is room for; whether anything went.
    fn flush(&mut self, ops: &[Op<'_>]) -> Wired<bool> {
        let mut moved = false;
        let mut at = 0;
        while let Some(to) = self.engine.busy.get(at).copied() {
            let went = self.flush_to(to, ops)?;
            moved |= went;
            if self.engine.busy.get(at) == Some(&to) {
                at += 1;
            }
        }
        Ok(moved)
    }

    fn flush_to(&mut self, to: u32, ops: &[Op<'_>]) -> Wired<bool> {
        let mut moved = false;
        while let Some((head, body, sent)) = self.engine.front(to) {
            let bytes = match &body {
                Body::Empty => &[][..],
                Body::Pair(pair) => pair,
                Body::Text(text) => text.as_bytes(),
                Body::Of(op) => bytes_of(&self.own, ops, *op, self.engine.op(*op).place),
            };
            let head = head.write();
            let (head, rest) = if sent < HEAD_BYTES {
                (&head[sent..], bytes)
            } else {
                (&[][..], &bytes[sent - HEAD_BYTES..])
            };
            let took = self.wires.push(to, head, rest)?;
            moved |= took > 0;
            if took < head.len() + rest.len() {
                let out = self.engine.peer(to).outbox.front_mut();
                out.expect("it is being sent").sent += took;
                return Ok(moved);
            }
            self.engine.on_sent(to);
        }
        self.engine.on_idle(to);
        Ok(moved)
    }

    /// Takes in what has come from a rank; whether anything has.
    #[inline]
    fn intake(&mut self, from: u32, ops: &mut [Op<'_>]) -> Wired<bool> {
        let calls = self.engine.open_calls;
        let mut moved = false;
        loop {
            let inbound = &mut self.engine.peer(from).inbound;
            let mut landing = match inbound.landing.take() {
                Some(landing) => landing,
                None => {
                    let got = self.wires.pull(from, &mut inbound.head[inbound.have..])?;
                    inbound.have += got;
                    if inbound.have < HEAD_BYTES {
                        return Ok(moved || got > 0);
                    }
                    inbound.have = 0;
                    moved = true;
                    let head = Head::read(&inbound.head).ok_or_else(|| {
                        protocol_violation(from, &format!("a frame {:?}", inbound.head))
                    })?;
                    let taken = self.engine.on_head(from, head);
                    taken.map_err(|what| protocol_violation(from, &what))?
                }
            };
            let body = landing.head.body() as usize;
            while landing.come < body {
                let got = self.land(from, ops, landing, body)?;
                if got == 0 {
                    self.engine.peer(from).inbound.landing = Some(landing);
                    return Ok(moved);
                }
                landing.come += got;
                moved = true;
            }
            let taken = self.engine.on_body(from, landing);
            taken.map_err(|what| protocol_violation(from, &what))?;
            if matches!(landing.head.kind, Kind::Bye | Kind::Fail) {
                self.on_end_of(from)?;
            }
            self.act(ops);
            if calls > 0 && self.engine.open_calls == 0 {
                return Ok(true);
            }
        }
    }

    /// Takes in some of a body.
    #[inline]
    fn land(
        &mut self,
        from: u32,
        ops: &mut [Op<'_>],
        landing: super::peer::Landing,
        body: usize,
    ) -> Wired<usize> {
        let super::peer::Landing {
            target, keep, come, ..
        } = landing;
        if come >= keep {
            let mut nowhere = [0; 4_096];
            let count = nowhere.len().min(body - come);
            return self.wires.pull(from, &mut nowhere[..count]);
        }
        let into = match target {
            Target::Of(op) => {
                let place = self.engine.op(op).place;
                &mut room_of(&mut self.own, ops, op, place)[come..keep]
            }
            Target::Unexpected(kept) => &mut self.engine.payload(kept)[come..keep],
            Target::Pair => &mut self.engine.peer(from).inbound.pair[come..keep],
            Target::Text => &mut self.engine.peer(from).inbound.text[come..keep],
        };
        self.wires.pull(from, into)
    }

    #[cold]
    fn on_end_of(&mut self, from: u32) -> Wired<()> {
        if let Some(failure) = self.engine.failure.clone() {
            return Err(Broken {
                rank: failure.rank,
                why: failure.why,
            });
        }
        self.wires.on_bye(from);
        Ok(())
    }

    /// Does what the engine asks for; whether there was anything.
    #[inline]
    pub(super) fn act(&mut self, ops: &mut [Op<'_>]) -> bool {
        let mut moved = false;
        while let Some(action) = self.engine.actions.pop_front() {
            moved = true;
            match action {
                Action::Fill { op, kept } => {
                    let place = self.engine.op(op).place;
                    let room = room_of(&mut self.own, ops, op, place);
                    let payload = self.engine.payload(kept);
                    let count = payload.len().min(room.len());
                    room[..count].copy_from_slice(&payload[..count]);
                    self.engine.on_filled(op, kept);
                }
                Action::Pull(op) => {
                    let operation = *self.engine.op(op);
                    let room = room_of(&mut self.own, ops, op, operation.place);
                    let room = &mut room[..operation.bytes as usize];
                    let (from, address) = (operation.peer, operation.address);
                    let is_done = self.wires.copy_from(from, address, room);
                    self.engine.on_pulled(op, is_done);
                }
            }
        }
        moved
    }

    /// After rounds in vain: looks at the clock, and who is lost; sleeps, if that is how this rank waits.
    #[cold]
    fn rest(
        &mut self,
        idle: &mut Idle,
        ops: &mut [Op<'_>],
        goal: Goal,
    ) -> std::result::Result<(), Stop> {
        let waited = idle.since.get_or_insert_with(Instant::now).elapsed();
        let is_block = self.wait == Wait::Block;
        if waited >= idle.alive + if is_block { NAP } else { ALIVE_AFTER } {
            idle.alive = waited;
            if let Some(lost) = self.wires.lost() {
                // What it said before it went may be that it left, or who made it go.
                self.round(ops).map_err(Stop::Lost)?;
                self.intake(lost.rank, ops).map_err(Stop::Lost)?;
                if !self.engine.peer(lost.rank).has_left {
                    return Err(Stop::Lost(lost));
                }
            }
            self.check_awaited(goal).map_err(Stop::Lost)?;
        }
        if waited >= self.timeout {
            return Err(Stop::Silence);
        }
        if is_block {
            let nap = NAP.min(self.timeout - waited);
            let busy = &self.engine.busy;
            self.wires.sleep(nap, busy).map_err(Stop::Lost)?;
        } else if waited >= GENEROUS_AFTER {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Nothing comes from a rank that has left in order.
    fn check_awaited(&mut self, goal: Goal) -> Wired<()> {
        let Some(awaited) = self.awaited.filter(|_| goal != Goal::Byes) else {
            return Ok(());
        };
        if self.engine.peer(awaited).has_left {
            let why = "it has finished".into();
            return Err(Broken { rank: awaited, why });
        }
        Ok(())
    }

    /// Ends this rank's part: tells the others, and says why.
    #[cold]
    pub(super) fn give_up(&mut self, stop: Stop, ops: &mut [Op<'_>], goal: Goal) -> Error {
        let during = self.during(ops, goal);
        let ended = match stop {
            Stop::Lost(broken) => {
                let Broken { rank, why } = self.best_known(broken, ops);
                Ended::Lost { rank, why, during }
            }
            Stop::Silence => Ended::Silent {
                rank: self.awaited,
                during,
            },
        };
        let (rank, why) = match &ended {
            Ended::Lost { rank, why, .. } => (*rank, why.clone()),
            Ended::Silent { rank, during } => {
                let timeout = self.timeout;
                let why = format!("nothing moved for {timeout:?} while {during}");
                (rank.unwrap_or(self.rank), why)
            }
            Ended::Finished => unreachable!("nobody gives up in order"),
        };
        self.tell_loss(rank, &why);
        let error = ended.error(self.timeout);
        self.ended = Some(ended);
        error
    }

    /// A rank that ends because of another one says so before it goes: then the other one is the reason.
    fn best_known(&mut self, broken: Broken, ops: &mut [Op<'_>]) -> Broken {
        let met: Vec<u32> = self.engine.met().iter().map(|peer| peer.rank).collect();
        let begin = Instant::now();
        // What came since the last look is not known to be there; a stream that fails at this too tells nothing more.
        drop(self.wires.sleep(Duration::ZERO, &[]));
        for from in met {
            // One intake ends with the last open operation, and leaves what came behind it.
            while self.engine.failure.is_none()
                && begin.elapsed() < TELL_FOR
                && matches!(self.intake(from, ops), Ok(true))
            {}
        }
        match self.engine.failure.take() {
            Some(failure) => Broken {
                rank: failure.rank,
                why: failure.why,
            },
            None => broken,
        }
    }

    /// Tells all others that a rank is lost, as far as they take it.
    pub(super) fn tell_loss(&mut self, rank: u32, why: &str) {
        if self.wires.tell_loss(rank, why) {
            return;
        }
        let cut = (0..=TEXT_BYTES_MAX.min(why.len()))
            .rev()
            .find(|at| why.is_char_boundary(*at));
        let why = &why[..cut.unwrap_or(0)];
        let mut left: Vec<u32> = Vec::new();
        let met: Vec<u32> = self.engine.met().iter().map(|peer| peer.rank).collect();
        for to in met {
            let peer = self.engine.peer(to);
            // Of frames that are in part gone the rest cannot be told any more: their bytes may be away.
            if to == rank || peer.has_left || peer.outbox.front().is_some_and(|out| out.sent > 0) {
                continue;
            }
            peer.outbox.clear();
            let head = Head::new(Kind::Fail, 0, rank, why.len() as u64);
            self.engine
                .queue(to, Out::new(head, Body::Text(why.into())));
            left.push(to);
        }
        let begin = Instant::now();
        while !left.is_empty() && begin.elapsed() < TELL_FOR {
            left.retain(|to| {
                let flushed = self.flush_to(*to, &[]);
                flushed.is_ok() && !self.engine.peer(*to).outbox.is_empty()
            });
            std::thread::yield_now();
        }
    }

    /// What this rank was doing, in words.
    fn during(&self, ops: &[Op<'_>], goal: Goal) -> String {
        let whom = |rank: Option<u32>| match rank {
            Some(rank) => format!("rank {rank}"),
            None => "any rank".into(),
        };
        let first = ops.iter().find(|op| match op {
            Op::Recv { from, .. } => *from == Source::Any || self.awaited.is_some(),
            Op::Send { .. } => ops.len() == 1,
        });
        match (goal, first) {
            (Goal::Of(_), _) => format!("waiting for a request with {}", whom(self.awaited)),
            (Goal::Sent | Goal::Byes, _) => "finishing".into(),
            (Goal::Calls, Some(Op::Recv { from, .. })) => match from {
                Source::Any => "receiving from any rank".into(),
                Source::Rank(_) => format!("receiving from {}", whom(self.awaited)),
            },
            (Goal::Calls, Some(Op::Send { .. })) => format!("sending to {}", whom(self.awaited)),
            (Goal::Calls, None) => "exchanging messages".into(),
        }
    }
}

/// Why a wait is over before its goal.
#[derive(Debug)]
pub(super) enum Stop {
    Lost(Broken),
    Silence,
}

pub(super) fn protocol_violation(rank: u32, what: &str) -> Broken {
    let why = format!("it sent {what}: are both of the same version?");
    Broken { rank, why }
}
