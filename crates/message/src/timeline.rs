//! A messenger that writes down what a rank does when, for a picture of a run.
//!
//! Model:   [`Timeline`] passes every call on and keeps its begin, its end and what it moved, in memory that was reserved and
//!          touched before; what does not fit is counted, not kept. Messages of an exchange, and those that a test or a
//!          wait ends, are entries of their own at the end of the call. Looks in a row that find nothing are one event. Phases are spans around their calls, and `busy` is a hold of
//!          [`Aged`](crate::aged::Aged). Collectives that sonde makes are such messages; a library's are calls.
//!          Afterwards rank 0 has the recordings of all ([`Trace::gather`]), on its own clock ([`Clocks`]), and writes them
//!          for Chrome and Perfetto or as a table.
//! Units:   nanoseconds of CLOCK_MONOTONIC, bytes, ranks of the world. An event takes 56 bytes.
//! Checked: `sums_are_those_of_the_counts`, `events_nest_and_ascend`, `what_does_not_fit_is_counted`, `ranks_are_those_of_the_world`,
//!          `a_trace_of_four_ranks_has_its_fields`, and those of the parts.

mod arrows;
mod clocks;
mod event;
mod packed;
mod trace;

use std::collections::HashMap;

use sonde_sys::clock::monotonic_ns;

use crate::collectives::made_of;
use crate::counted::{Direction, Groups, Spread, Timed, bytes_of};
use crate::{
    Call, Capabilities, Comm, Completion, Error, Kind, Messenger, Op, Request, Result, Source,
    Status, TAG_MAX, Tag, Tagged,
};

pub use clocks::{Clocks, Standing};
pub use event::{Event, What};
pub use trace::{RankTrace, TRACE_SCHEMA, Trace};

/// The tag of what is brought to rank 0. A program has received all of its own before.
const TAG: Tag = TAG_MAX - 3;
/// The phase before any is named.
const FIRST_PHASE: &str = "start";

/// What one rank did, by its own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// In the order of their begins.
    pub events: Vec<Event>,
    /// Names of phases, by the events' number.
    pub phases: Vec<String>,
    /// How many more there were, which had no room.
    pub dropped: u64,
}

/// Writes down what goes through a messenger. It stands above [`Counted`](crate::counted::Counted) and below
/// [`Aged`](crate::aged::Aged).
pub struct Timeline<M> {
    inner: M,
    groups: Groups,
    /// Receives that are under way, and their group.
    receives: HashMap<u64, Comm, Spread>,
    events: Vec<Event>,
    /// What the memory was reserved for.
    room: usize,
    dropped: u64,
    phases: Vec<String>,
    current: u32,
    /// The event of the phase, where it was kept.
    open: Option<usize>,
    /// The end of the last call.
    last_ns: u64,
}

impl<M: Messenger> Timeline<M> {
    /// Writes down from now on, `room` events at the most. Groups that were parted before are not known.
    pub fn new(inner: M, room: usize) -> Self {
        // Written to once, so that no page is new in a call.
        let mut events = vec![Event::NONE; room];
        events.clear();
        let mut timeline = Self {
            inner,
            groups: Groups::default(),
            receives: HashMap::default(),
            events,
            room,
            dropped: 0,
            phases: Vec::new(),
            current: 0,
            open: None,
            last_ns: 0,
        };
        timeline.enter(FIRST_PHASE);
        timeline
    }

    /// Ends the last phase: what was written down, and the messenger that did it.
    pub fn end(mut self) -> (Recording, M) {
        self.leave(monotonic_ns());
        let recording = Recording {
            events: self.events,
            phases: self.phases,
            dropped: self.dropped,
        };
        (recording, self.inner)
    }

    /// The messenger that does it; what is done to it directly is not written down.
    pub const fn inner(&mut self) -> &mut M {
        &mut self.inner
    }

    /// How many events had no room until now.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    #[inline]
    fn keep(&mut self, event: Event) {
        if self.events.len() < self.room {
            self.events.push(event);
        } else {
            self.dropped += 1;
        }
    }

    fn enter(&mut self, name: &str) {
        let now = monotonic_ns();
        self.leave(now);
        let known = self.phases.iter().position(|phase| phase == name);
        let phase = known.unwrap_or_else(|| {
            self.phases.push(name.into());
            self.phases.len() - 1
        });
        self.current = phase as u32;
        let kept = self.events.len();
        self.keep(Event {
            begin_ns: now,
            end_ns: now,
            what: What::Phase,
            phase: self.current,
            ..Event::NONE
        });
        self.open = (kept < self.events.len()).then_some(kept);
    }

    fn leave(&mut self, now: u64) {
        if let Some(open) = self.open.take() {
            self.events[open].end_ns = now;
        }
    }

    /// Makes a call and keeps it; `told` says of its result what it moved.
    #[inline]
    fn timed<T>(
        &mut self,
        what: Timed,
        call: impl FnOnce(&mut M) -> Result<T>,
        told: impl FnOnce(&Groups, &T, &mut Event),
    ) -> Result<T> {
        let begin_ns = monotonic_ns();
        let result = call(&mut self.inner);
        let mut event = Event {
            begin_ns,
            end_ns: monotonic_ns(),
            what: What::Call(what),
            phase: self.current,
            ..Event::NONE
        };
        match &result {
            Ok(result) => told(&self.groups, result, &mut event),
            Err(_) => event.is_failed = true,
        }
        self.last_ns = event.end_ns;
        match self.events.last_mut() {
            Some(last) if self.dropped == 0 && last.goes_on_as(&event) => {
                last.end_ns = event.end_ns;
                last.calls += 1;
            }
            _ => self.keep(event),
        }
        result
    }

    /// A message that ended with the call before.
    fn message(&mut self, way: Direction, comm: Comm, status: Status) {
        let mut event = Event {
            begin_ns: self.last_ns,
            end_ns: self.last_ns,
            what: What::Message,
            phase: self.current,
            ..Event::NONE
        };
        event.moves(way, self.groups.world_rank(comm, status.from), status);
        self.keep(event);
    }

    fn completed(&mut self, request: u64, status: Status) {
        if let Some(comm) = self.receives.remove(&request) {
            self.message(Direction::Received, comm, status);
        }
    }
}

/// The envelope of what is sent.
const fn envelope(to: usize, tag: Tag, bytes: usize) -> Status {
    Status {
        from: to,
        tag,
        bytes,
    }
}

impl<M: Messenger> Messenger for Timeline<M> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn rank(&self, comm: Comm) -> usize {
        self.inner.rank(comm)
    }

    fn size(&self, comm: Comm) -> usize {
        self.inner.size(comm)
    }

    fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        self.timed(
            Timed::Send,
            |inner| inner.send(comm, to, tag, payload),
            |groups, (), event| {
                let status = envelope(to, tag, payload.len());
                event.moves(Direction::Sent, groups.world_rank(comm, to), status);
            },
        )
    }

    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
        self.timed(
            Timed::Recv,
            |inner| inner.recv(comm, from, tag, room),
            |groups, status, event| {
                let peer = groups.world_rank(comm, status.from);
                event.moves(Direction::Received, peer, *status);
            },
        )
    }

    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
        self.timed(
            Timed::Exchange,
            |inner| inner.exchange(comm, ops, statuses),
            |_, (), _| (),
        )?;
        for (op, status) in ops.iter().zip(statuses) {
            match op {
                Op::Send { to, tag, payload } => {
                    let status = envelope(*to, *tag, payload.len());
                    self.message(Direction::Sent, comm, status);
                }
                Op::Recv { .. } => self.message(Direction::Received, comm, *status),
            }
        }
        Ok(())
    }

    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
        let status = envelope(to, tag, payload.len());
        self.timed(
            Timed::Isend,
            |inner| inner.isend(comm, to, tag, payload),
            |groups, _, event| event.moves(Direction::Sent, groups.world_rank(comm, to), status),
        )
    }

    fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request> {
        let request = self.timed(
            Timed::Irecv,
            |inner| inner.irecv(comm, from, tag, room),
            |_, _, _| (),
        )?;
        self.receives.insert(request.0, comm);
        Ok(request)
    }

    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        let name = request.0;
        let outcome = self.timed(
            Timed::Test,
            |inner| inner.test(request),
            |_, outcome, event| event.is_idle = outcome.is_err(),
        )?;
        if let Ok(completion) = &outcome {
            self.completed(name, completion.status);
        }
        Ok(outcome)
    }

    fn wait(&mut self, request: Request) -> Result<Completion> {
        let name = request.0;
        let completion = self.timed(Timed::Wait, |inner| inner.wait(request), |_, _, _| ())?;
        self.completed(name, completion.status);
        Ok(completion)
    }

    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
        self.timed(
            Timed::Iprobe,
            |inner| inner.iprobe(comm, from, tag),
            |_, found, event| event.is_idle = found.is_none(),
        )
    }

    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
        let parted = self.timed(
            Timed::Split,
            |inner| Groups::split(inner, comm, colour, key),
            |_, _, _| (),
        )?;
        Ok(self.groups.keep(parted))
    }

    /// One that the library refused is kept as a call of no kind.
    fn collective(&mut self, comm: Comm, call: &mut Call<'_>) -> Result<bool> {
        let (kind, bytes) = (call.kind(), bytes_of(call, self.inner.rank(comm)));
        self.timed(
            Timed::Collective,
            |inner| inner.collective(comm, call),
            |_, made, event| {
                if *made {
                    event.kind = Some(kind);
                    event.bytes = bytes as u64;
                }
            },
        )
    }

    fn progress(&mut self) -> Result<()> {
        self.timed(Timed::Progress, M::progress, |_, (), _| ())
    }

    /// Until the next one is named; a phase may be entered again.
    fn phase(&mut self, name: &str) {
        self.enter(name);
        self.inner.phase(name);
    }

    fn busy(&mut self, begin_ns: u64, end_ns: u64) {
        self.keep(Event {
            begin_ns,
            end_ns,
            what: What::Busy,
            phase: self.current,
            ..Event::NONE
        });
        self.inner.busy(begin_ns, end_ns);
    }

    fn due(&mut self) {
        self.inner.due();
    }

    fn strangers(&self) -> u64 {
        self.inner.strangers()
    }

    fn facts(&self) -> Result<sonde_measure::Library> {
        self.inner.facts()
    }

    fn abort(&mut self, why: &str) {
        self.inner.abort(why);
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}

/// Receives so many bytes as `room` has of what a timeline sends.
fn receive<M: Messenger + ?Sized>(messenger: &mut M, from: usize, room: &mut [u8]) -> Result<()> {
    let wanted = room.len();
    let status = messenger.recv(Comm::WORLD, Source::Rank(from), Tagged::With(TAG), room)?;
    if status.bytes == wanted {
        return Ok(());
    }
    Err(disorder(
        from,
        format!("{} bytes came instead of {wanted}", status.bytes),
    ))
}

fn disorder(from: usize, why: String) -> Error {
    Error::Refused {
        library: "the timeline".into(),
        what: format!("bringing what rank {from} wrote down"),
        why: format!(
            "{why}: have all ranks received their messages, and do all of them bring theirs?"
        ),
    }
}

/// The collective that a message is of, made by sonde, or that a library made.
fn collective_of(event: &Event) -> Option<Kind> {
    event.kind.or_else(|| event.tag.and_then(made_of))
}

#[cfg(test)]
mod tests;
