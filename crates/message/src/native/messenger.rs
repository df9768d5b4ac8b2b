//! One rank's messenger of the native engine, over whatever wires.
//!
//! Model:   see the engine for how messages move, `progress` for when. An eager send is one push
//!          to the wires and touches nothing else. After an error that names a lost rank, or a silence, the messenger is
//!          ended: every later call gives the same error.
//! Units:   bytes; ranks of a call in its group, of an error in the world.
//! Checked: `native/tests.rs`, over each transport.

use std::time::Duration;

use sonde_measure::Wait;

use super::engine::{Engine, Limits};
use super::frame::{HEAD_BYTES, Head, Kind};
use super::group::Groups;
use super::matching::{Envelope, Pattern};
use super::operation::{Operation, Place};
use super::peer::{Body, Landing, Out, Target};
use super::progress::{Goal, Stop, protocol_violation};
use super::wires::{Broken, Wires};
use crate::{
    Call, Capabilities, Comm, Completion, Error, Messenger, Op, Request, Result, Source, Status,
    Tag, Tagged,
};

/// Tags from here on are the engine's own; those between [`crate::TAG_MAX`] and this are for collectives.
pub const TAG_ENGINE: Tag = 0xffff_ff00;
const TAG_SPLIT: Tag = TAG_ENGINE;
/// An operation that was over before it was posted.
const AT_ONCE: u32 = u32::MAX;
/// A body that is sent with its head as words: both fit a line of shared memory.
const SHORT_BYTES: usize = 32;
/// Tests in vain between two looks at who is lost.
const TESTS: u32 = 256;

/// How a messenger ended.
#[derive(Debug)]
pub(super) enum Ended {
    Finished,
    Lost {
        rank: u32,
        why: String,
        during: String,
    },
    /// Without a rank where it may be any.
    Silent {
        rank: Option<u32>,
        during: String,
    },
}

/// One rank of the native engine.
#[derive(Debug)]
pub struct Native<W: Wires> {
    pub(super) rank: u32,
    size: usize,
    transport: &'static str,
    pub(super) engine: Engine,
    pub(super) wires: W,
    /// The bytes of operations that own theirs, by operation.
    pub(super) own: Vec<Vec<u8>>,
    groups: Groups,
    pub(super) wait: Wait,
    pub(super) timeout: Duration,
    /// Whose message is waited for.
    pub(super) awaited: Option<u32>,
    pub(super) ready: Vec<u32>,
    /// Of whom a head was read that the next round goes on with, whether more has come or not.
    pub(super) begun: Option<u32>,
    pub(super) ended: Option<Ended>,
    posted: Vec<u32>,
    tests: u32,
    /// Who came to this rank as the ranks met, and is none of them.
    strangers: u64,
}

/// How a messenger waits, and for how long at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// How.
    pub wait: Wait,
    /// How long nothing may move.
    pub timeout: Duration,
}

impl Ended {
    pub(super) fn error(&self, timeout: Duration) -> Error {
        match self {
            Self::Finished => Error::Refused {
                library: "native".into(),
                what: "a call".into(),
                why: "the messenger has finished".into(),
            },
            Self::Lost { rank, why, during } => Error::Lost {
                rank: *rank as usize,
                during: during.clone(),
                why: why.clone(),
            },
            Self::Silent { rank, during } => Error::Silent {
                rank: rank.map(|rank| rank as usize),
                during: during.clone(),
                timeout,
            },
        }
    }
}

impl<W: Wires> Native<W> {
    /// With how many came who are no ranks.
    pub(super) fn joined_among(mut self, strangers: u64) -> Self {
        self.strangers = strangers;
        self
    }

    pub(super) fn new(
        (rank, size): (usize, usize),
        transport: &'static str,
        limits: Limits,
        wires: W,
        manner: Manner,
    ) -> Self {
        let mut engine = Engine::new(rank as u32, size, limits);
        engine.pulls = wires.copies();
        if W::SAYS_BYE {
            (0..size as u32)
                .filter(|peer| *peer != rank as u32)
                .for_each(|peer| {
                    engine.peer(peer);
                });
        }
        Self {
            rank: rank as u32,
            size,
            transport,
            engine,
            wires,
            own: Vec::new(),
            groups: Groups::new(rank, size),
            wait: manner.wait,
            timeout: manner.timeout,
            strangers: 0,
            awaited: None,
            ready: Vec::new(),
            begun: None,
            ended: None,
            posted: Vec::new(),
            tests: 0,
        }
    }

    #[inline]
    fn check(&self) -> Result<()> {
        match &self.ended {
            None => Ok(()),
            Some(ended) => Err(ended.error(self.timeout)),
        }
    }

    /// The group's number, and the rank in the world.
    #[inline]
    fn whom(&self, comm: Comm, rank: usize, tag: Tag) -> Result<(u32, u32)> {
        let group = self.groups.of(comm)?;
        check_tag(tag)?;
        Ok((group.context, group.world(rank)?))
    }

    #[inline]
    fn pattern(&self, comm: Comm, from: Source, tag: Tagged) -> Result<Pattern> {
        let group = self.groups.of(comm)?;
        let source = match from {
            Source::Any => None,
            Source::Rank(rank) => Some(group.world(rank)?),
        };
        let tag = match tag {
            Tagged::Any => None,
            Tagged::With(tag) => {
                check_tag(tag)?;
                Some(tag)
            }
        };
        Ok(Pattern {
            context: group.context,
            source,
            tag,
        })
    }

    /// Sends what is eager, or posts what is left of it, or all.
    #[inline]
    fn begin_send(
        &mut self,
        (comm, context, to): (Comm, u32, u32),
        tag: Tag,
        payload: &[u8],
        place: Place,
    ) -> Result<u32> {
        let envelope = Envelope {
            context,
            source: self.rank,
            tag,
        };
        if to == self.rank {
            let copy = payload.to_vec();
            return Ok(self.engine.post_to_self((place, comm.0), envelope, copy));
        }
        let Some(head) = self.engine.eager(to, envelope, payload.len()) else {
            let where_from = (payload.len(), payload.as_ptr() as u64);
            let place = (place, comm.0);
            return Ok(self.engine.post_send(place, to, envelope, where_from));
        };
        let pushed = if payload.len() <= SHORT_BYTES {
            self.wires.push_short(to, head.words(), payload)
        } else {
            self.wires.push(to, &head.write(), payload)
        };
        match pushed {
            Ok(sent) if sent == HEAD_BYTES + payload.len() => match place {
                Place::Call(_) => Ok(AT_ONCE),
                Place::Own => Ok(self.engine.post_gone(to, head, (place, comm.0))),
            },
            Ok(sent) => Ok(self.engine.post_rest(to, head, (place, comm.0), sent)),
            Err(broken) => {
                self.awaited = Some(to);
                let mut ops = [Op::Send {
                    to: 0,
                    tag,
                    payload,
                }];
                Err(self.give_up(Stop::Lost(broken), &mut ops, Goal::Calls))
            }
        }
    }

    /// One message, with tags that only the engine uses too.
    #[inline]
    fn send_any(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        let group = self.groups.of(comm)?;
        let (context, world) = (group.context, group.world(to)?);
        let op = self.begin_send((comm, context, world), tag, payload, Place::Call(0))?;
        if op == AT_ONCE {
            return Ok(());
        }
        self.awaited = Some(world);
        self.drive(&mut [Op::Send { to, tag, payload }], Goal::Calls)?;
        self.engine.retire(op);
        Ok(())
    }

    #[inline]
    fn recv_any(
        &mut self,
        comm: Comm,
        pattern: Pattern,
        from: Source,
        room: &mut [u8],
    ) -> Result<Status> {
        self.awaited = pattern.source;
        let op = match self.recv_direct(comm, pattern, room)? {
            Direct::Done(status) => return Ok(status),
            Direct::Coming(op) => op,
            Direct::Not => self
                .engine
                .post_recv((Place::Call(0), comm.0), pattern, room.len()),
        };
        let tag = Tagged::Any;
        self.drive(&mut [Op::Recv { from, tag, room }], Goal::Calls)?;
        let done = self.engine.retire(op);
        self.status(&done)
    }

    /// Waits a moment for the message of a receive that is the only one, and takes it without posting anything.
    #[inline]
    fn recv_direct(&mut self, comm: Comm, pattern: Pattern, room: &mut [u8]) -> Result<Direct> {
        let (Some(source), Some(tag)) = (pattern.source, pattern.tag) else {
            return Ok(Direct::Not);
        };
        if source == self.rank || !self.engine.is_alone(pattern) {
            return Ok(Direct::Not);
        }
        let inbound = &self.engine.peer(source).inbound;
        if inbound.have > 0 || inbound.landing.is_some() {
            return Ok(Direct::Not);
        }
        let looks = match self.wait {
            Wait::Poll => W::LOOKS,
            Wait::Block => W::LOOKS_BEFORE_SLEEP,
        };
        for _ in 0..looks {
            let words = match self.wires.next_head(source) {
                Ok(None) => continue,
                Ok(Some(words)) => words,
                Err(broken) => return Err(self.fail_receiving(broken)),
            };
            let head = Head::of_words(words);
            let envelope = Envelope {
                context: pattern.context,
                source,
                tag,
            };
            if let Some(head) = head.filter(|head| is_direct(head, envelope, room.len())) {
                return self.land_direct(comm, (envelope, head), room);
            }
            // It is for somebody else: as if its head had been read there.
            let inbound = &mut self.engine.peer(source).inbound;
            for (part, word) in inbound.head.chunks_exact_mut(8).zip(words) {
                part.copy_from_slice(&word.to_le_bytes());
            }
            inbound.have = HEAD_BYTES;
            self.begun = Some(source);
            break;
        }
        Ok(Direct::Not)
    }

    #[inline]
    fn land_direct(
        &mut self,
        comm: Comm,
        (envelope, head): (Envelope, Head),
        room: &mut [u8],
    ) -> Result<Direct> {
        let source = envelope.source;
        if let Err(what) = self.engine.on_direct(source, head) {
            return Err(self.fail_receiving(protocol_violation(source, &what)));
        }
        let keep = head.bytes as usize;
        let mut come = 0;
        while come < keep {
            match self.wires.pull(source, &mut room[come..keep]) {
                Ok(0) => {
                    let place = (Place::Call(0), comm.0);
                    let op = self
                        .engine
                        .post_coming(place, envelope, (head.bytes, room.len()));
                    self.engine.peer(source).inbound.landing = Some(Landing {
                        head: Head::new(Kind::Data, 0, op, head.bytes),
                        target: Target::Of(op),
                        keep,
                        come,
                    });
                    return Ok(Direct::Coming(op));
                }
                Ok(count) => come += count,
                Err(broken) => return Err(self.fail_receiving(broken)),
            }
        }
        Ok(Direct::Done(Status {
            from: self.groups.of(comm)?.of_world(source),
            tag: envelope.tag,
            bytes: keep,
        }))
    }

    #[cold]
    fn fail_receiving(&mut self, broken: Broken) -> Error {
        let mut ops = [Op::Recv {
            from: Source::Rank(broken.rank as usize),
            tag: Tagged::Any,
            room: &mut [],
        }];
        self.give_up(Stop::Lost(broken), &mut ops, Goal::Calls)
    }

    #[inline]
    fn status(&self, done: &Operation) -> Result<Status> {
        let group = self.groups.of(Comm(done.comm))?;
        let status = Status {
            from: group.of_world(done.peer),
            tag: done.tag,
            bytes: done.bytes as usize,
        };
        if done.is_cut() {
            return Err(Error::Truncated {
                from: status.from,
                tag: status.tag,
                bytes: status.bytes,
                room: done.room as usize,
            });
        }
        Ok(status)
    }

    /// The one rank that all of these receive from, in the world.
    fn only_source(&self, comm: Comm, ops: &[Op<'_>]) -> Option<u32> {
        let mut sources = ops.iter().filter_map(|op| match op {
            Op::Recv { from, .. } => Some(*from),
            Op::Send { .. } => None,
        });
        match sources.next() {
            Some(Source::Rank(rank)) if sources.all(|other| other == Source::Rank(rank)) => {
                self.groups.of(comm).ok()?.world(rank).ok()
            }
            _ => None,
        }
    }

    fn keep(&mut self, op: u32, buffer: Vec<u8>) -> Request {
        if self.own.len() <= op as usize {
            self.own.resize_with(op as usize + 1, Vec::new);
        }
        self.own[op as usize] = buffer;
        Request(u64::from(op))
    }

    /// The operation of a request.
    fn known(&self, request: &Request) -> Result<u32> {
        u32::try_from(request.0)
            .ok()
            .filter(|op| self.engine.is_known(*op))
            .ok_or_else(|| Error::Argument {
                what: "a request",
                value: request.0.to_string(),
                wanted: "one that was given and is not done".into(),
            })
    }

    fn complete(&mut self, op: u32) -> Result<Completion> {
        let done = self.engine.retire(op);
        let buffer = std::mem::take(&mut self.own[op as usize]);
        let status = self.status(&done)?;
        Ok(Completion { status, buffer })
    }

    /// A round of a call that does not wait.
    fn glance(&mut self) -> Result<()> {
        match self.round(&mut []) {
            Ok(true) => {
                self.tests = 0;
                return Ok(());
            }
            Ok(false) => {}
            Err(broken) => return Err(self.give_up(Stop::Lost(broken), &mut [], Goal::Sent)),
        }
        self.tests += 1;
        if self.tests % TESTS == 0 {
            if let Some(lost) = self.wires.lost() {
                let again = self.round(&mut []);
                if again.is_err() || !self.engine.peer(lost.rank).has_left {
                    let lost = again.err().unwrap_or(lost);
                    return Err(self.give_up(Stop::Lost(lost), &mut [], Goal::Sent));
                }
            }
        }
        Ok(())
    }

    /// What each rank of a group says to all, in their order: through rank 0.
    fn tell_all(&mut self, comm: Comm, own: [u32; 4]) -> Result<Vec<[u32; 4]>> {
        let group = self.groups.of(comm)?;
        let (rank, size, context) = (group.rank, group.size(), group.context);
        let mut all = vec![0; size * 16];
        let place = |rank: usize| rank * 16..rank * 16 + 16;
        for (part, value) in all[place(rank)].chunks_exact_mut(4).zip(own) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        let pattern = |source| Pattern {
            context,
            source: Some(source),
            tag: Some(TAG_SPLIT),
        };
        if rank == 0 {
            for from in 1..size {
                let pattern = pattern(self.groups.of(comm)?.world(from)?);
                let room = &mut all[place(from)];
                self.recv_any(comm, pattern, Source::Rank(from), room)?;
            }
            for to in 1..size {
                self.send_any(comm, to, TAG_SPLIT, &all)?;
            }
        } else {
            let mine: Vec<u8> = all[place(rank)].to_vec();
            self.send_any(comm, 0, TAG_SPLIT, &mine)?;
            let pattern = pattern(self.groups.of(comm)?.world(0)?);
            self.recv_any(comm, pattern, Source::Rank(0), &mut all)?;
        }
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let told = all
            .chunks_exact(16)
            .map(|told| [0, 4, 8, 12].map(|at| word(&told[at..at + 4])));
        Ok(told.collect())
    }
}

/// How far a receive came that was not posted.
enum Direct {
    Done(Status),
    /// Its message is coming, for this operation.
    Coming(u32),
    /// It has to be posted.
    Not,
}

/// Whether this is the head of an eager message for this receive, and fits it.
#[inline]
fn is_direct(head: &Head, envelope: Envelope, room: usize) -> bool {
    head.kind == Kind::Eager
        && (head.context, head.tag) == (envelope.context, envelope.tag)
        && head.bytes <= room as u64
}

#[inline]
fn check_tag(tag: Tag) -> Result<()> {
    if tag < TAG_ENGINE {
        return Ok(());
    }
    Err(Error::Argument {
        what: "a tag",
        value: tag.to_string(),
        wanted: format!("below {TAG_ENGINE}"),
    })
}

impl<W: Wires> Messenger for Native<W> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            wildcards: true,
            probe: true,
            asynchronous: false,
            collectives: 0,
            message_bytes_max: u64::from(u32::MAX) << 16,
        }
    }

    fn rank(&self, comm: Comm) -> usize {
        self.groups.of(comm).expect("a group of this rank").rank
    }

    fn size(&self, comm: Comm) -> usize {
        self.groups.of(comm).expect("a group of this rank").size()
    }

    #[inline]
    fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        self.check()?;
        check_tag(tag)?;
        self.send_any(comm, to, tag, payload)
    }

    #[inline]
    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
        self.check()?;
        let pattern = self.pattern(comm, from, tag)?;
        self.recv_any(comm, pattern, from, room)
    }

    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
        self.check()?;
        if ops.len() != statuses.len() {
            return Err(Error::Argument {
                what: "the number of statuses",
                value: statuses.len().to_string(),
                wanted: format!("that of transfers, {}", ops.len()),
            });
        }
        for op in ops.iter() {
            match op {
                Op::Send { to, tag, .. } => drop(self.whom(comm, *to, *tag)?),
                Op::Recv { from, tag, .. } => drop(self.pattern(comm, *from, *tag)?),
            }
        }
        let mut posted = std::mem::take(&mut self.posted);
        posted.clear();
        self.awaited = self.only_source(comm, ops);
        for (index, op) in ops.iter().enumerate() {
            let place = Place::Call(index as u32);
            posted.push(match op {
                Op::Send { to, tag, payload } => {
                    let (context, world) = self.whom(comm, *to, *tag)?;
                    self.begin_send((comm, context, world), *tag, payload, place)?
                }
                Op::Recv { from, tag, room } => {
                    let pattern = self.pattern(comm, *from, *tag)?;
                    self.engine.post_recv((place, comm.0), pattern, room.len())
                }
            });
        }
        self.drive(ops, Goal::Calls)?;
        let mut cut = None;
        for ((op, done), status) in ops.iter().zip(&posted).zip(statuses) {
            let done = (*done != AT_ONCE).then(|| self.engine.retire(*done));
            match op {
                Op::Send { to, tag, payload } => {
                    *status = Status {
                        from: *to,
                        tag: *tag,
                        bytes: payload.len(),
                    };
                }
                Op::Recv { .. } => match self.status(&done.expect("receives are posted")) {
                    Ok(received) => *status = received,
                    Err(error) => cut = cut.or(Some(error)),
                },
            }
        }
        self.posted = posted;
        cut.map_or(Ok(()), Err)
    }

    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
        self.check()?;
        let (context, world) = self.whom(comm, to, tag)?;
        let op = self.begin_send((comm, context, world), tag, &payload, Place::Own)?;
        let request = self.keep(op, payload);
        self.glance()?;
        Ok(request)
    }

    fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request> {
        self.check()?;
        let pattern = self.pattern(comm, from, tag)?;
        let op = self
            .engine
            .post_recv((Place::Own, comm.0), pattern, room.len());
        let request = self.keep(op, room);
        self.act(&mut []);
        Ok(request)
    }

    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        self.check()?;
        let op = self.known(&request)?;
        if !self.engine.is_done(op) {
            self.awaited = None;
            self.glance()?;
        }
        if self.engine.is_done(op) {
            return self.complete(op).map(Ok);
        }
        Ok(Err(request))
    }

    fn wait(&mut self, request: Request) -> Result<Completion> {
        self.check()?;
        let op = self.known(&request)?;
        self.awaited = Some(self.engine.op(op).peer).filter(|peer| (*peer as usize) < self.size);
        self.drive(&mut [], Goal::Of(op))?;
        self.complete(op)
    }

    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
        self.check()?;
        let pattern = self.pattern(comm, from, tag)?;
        if self.engine.find(pattern).is_none() {
            self.awaited = None;
            self.glance()?;
        }
        let group = self.groups.of(comm)?;
        let found = self.engine.find(pattern);
        Ok(found.map(|(source, tag, bytes)| Status {
            from: group.of_world(source),
            tag,
            bytes: bytes as usize,
        }))
    }

    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
        self.check()?;
        let mine = [
            u32::from(colour.is_some()),
            colour.unwrap_or(0),
            key as u32,
            self.groups.next_context,
        ];
        let told = self.tell_all(comm, mine)?;
        let context = told.iter().map(|told| told[3]).max().expect("it told too");
        self.groups.next_context = context + 1;
        if colour.is_none() {
            return Ok(None);
        }
        let group = self.groups.of(comm)?;
        let mut members = Vec::new();
        for (rank, told) in told.iter().enumerate() {
            if told[..2] == mine[..2] {
                members.push((told[2] as i32, group.world(rank)?));
            }
        }
        // The sort is stable: of the same key, the order is that of ranks in the parted group.
        members.sort_by_key(|(key, _)| *key);
        let world = members.into_iter().map(|(_, world)| world).collect();
        Ok(Some(self.groups.add(context, world, self.rank)))
    }

    fn collective(&mut self, _: Comm, _: &mut Call<'_>) -> Result<bool> {
        self.check()?;
        Ok(false)
    }

    fn progress(&mut self) -> Result<()> {
        self.check()?;
        self.awaited = None;
        self.glance()
    }

    fn strangers(&self) -> u64 {
        self.strangers
    }

    fn facts(&self) -> Result<sonde_measure::Library> {
        Ok(sonde_measure::Library {
            library: Some("native".into()),
            version: Some(env!("CARGO_PKG_VERSION").into()),
            transport: Some(self.transport.into()),
            provider: Some(self.transport.into()),
            wait: Some(self.wait.name().into()),
            long_messages: self.wires.long_messages(),
            ..sonde_measure::Library::default()
        })
    }

    fn abort(&mut self, why: &str) {
        if self.ended.is_some() {
            return;
        }
        let why = format!("it gave up: {why}");
        self.tell_loss(self.rank, &why);
        self.ended = Some(Ended::Lost {
            rank: self.rank,
            why,
            during: "running".into(),
        });
    }

    fn finish(&mut self) -> Result<()> {
        self.check()?;
        self.awaited = None;
        self.drive(&mut [], Goal::Sent)?;
        if W::SAYS_BYE {
            let met: Vec<u32> = self.engine.met().iter().map(|peer| peer.rank).collect();
            for to in met {
                let head = Head::new(Kind::Bye, 0, 0, 0);
                self.engine.queue(to, Out::new(head, Body::Empty));
            }
            self.drive(&mut [], Goal::Sent)?;
            self.drive(&mut [], Goal::Byes)?;
        }
        self.wires.finish();
        self.ended = Some(Ended::Finished);
        Ok(())
    }
}

impl<W: Wires> Drop for Native<W> {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.tell_loss(self.rank, "it ended without finishing");
        }
    }
}
