//! A messenger that counts: what went to whom, how long it was, and how long the calls took.
//!
//! Model:   [`Counted`] passes every call on and reads the clock before and after it: time in calls is communicating, time
//!          between them computing. The clock is the CPU's counter where that is one ([`sonde_sys::tsc`]), else the kernel's.
//!          A send is counted when it is called and a receive when it is done, by rank of the world,
//!          tag and length; a call that fails is timed only. Collectives that sonde makes of messages are such messages,
//!          those that the library makes are counted by kind. All of it belongs to the phase in which it happens. A program that
//!          names the phase `setup` has made ready: what it went through before, such as a pass that is not timed, is called
//!          `setup: PHASE` from then on, and what it enters again under the same name begins anew.
//! Source:  what the tables of message statistics of parallel kernels give: count, mean, median (requirement U26).
//! Units:   ticks of the clock within, nanoseconds without; bytes.
//! Checked: `a_program_is_counted_as_it_was`, `ranks_are_those_of_the_world`, `phases_part_the_time`,
//!          `what_came_before_the_setup_belongs_to_it`; the cost by the bench `messages`.

mod clock;
mod groups;
mod lengths;
mod profile;

use std::collections::HashMap;

use crate::collectives::made_of;
use crate::{
    Call, Capabilities, Comm, Completion, Error, Kind, Messenger, Op, Parts, Request, Result,
    Source, Status, Tag, Tagged,
};

use clock::Clock;
use sonde_measure::{Collectives, Total};
use sonde_units::Matrix;

pub(crate) use clock::Spread;
pub(crate) use groups::{Groups, uncounted};
pub use lengths::Lengths;

pub use profile::{Calls, Flow, PROFILE_SCHEMA, Phase, Profile};

/// The phase before any is named.
const FIRST_PHASE: &str = "start";
/// A program that names this phase says that all before it belongs to its setup.
const SETUP: &str = "setup";

/// Calls as they are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// A send.
    Send,
    /// A receive.
    Recv,
    /// Several posted together.
    Exchange,
    /// The begin of a send.
    Isend,
    /// The begin of a receive.
    Irecv,
    /// A look at a request.
    Test,
    /// The end of a request.
    Wait,
    /// A look at what comes.
    Iprobe,
    /// A new group.
    Split,
    /// A chance to move.
    Progress,
    /// A collective of the library.
    Collective,
}

impl Timed {
    /// All.
    pub const ALL: [Self; 11] = [
        Self::Send,
        Self::Recv,
        Self::Exchange,
        Self::Isend,
        Self::Irecv,
        Self::Test,
        Self::Wait,
        Self::Iprobe,
        Self::Split,
        Self::Progress,
        Self::Collective,
    ];

    /// As it is written: `send`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Recv => "recv",
            Self::Exchange => "exchange",
            Self::Isend => "isend",
            Self::Irecv => "irecv",
            Self::Test => "test",
            Self::Wait => "wait",
            Self::Iprobe => "iprobe",
            Self::Split => "split",
            Self::Progress => "progress",
            Self::Collective => "collective",
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Clocked {
    count: u64,
    ticks: u64,
    longest: u64,
}

impl Clocked {
    #[inline]
    fn add(&mut self, ticks: u64) {
        self.count += 1;
        self.ticks += ticks;
        self.longest = self.longest.max(ticks);
    }
}

/// Which way a message went, as its rank sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From this rank.
    Sent = 0,
    /// To this rank.
    Received = 1,
}

/// A phase as it is counted.
#[derive(Debug)]
struct Counts {
    name: String,
    computing: u64,
    /// Nanoseconds of it that the rank was held.
    busy_ns: u64,
    calls: [Clocked; Timed::ALL.len()],
    collectives: [(Clocked, u64); Kind::ALL.len()],
    lengths: [Lengths; 2],
    /// By way and other rank: tags, those of late first.
    flows: [Vec<Vec<(Tag, Total)>>; 2],
}

impl Counts {
    fn new(name: &str, ranks: usize) -> Self {
        Self {
            name: name.into(),
            computing: 0,
            busy_ns: 0,
            calls: Default::default(),
            collectives: Default::default(),
            lengths: [Lengths::new(), Lengths::new()],
            flows: [vec![Vec::new(); ranks], vec![Vec::new(); ranks]],
        }
    }

    #[inline]
    fn add(&mut self, way: Direction, rank: usize, tag: Tag, bytes: usize) {
        let bytes = bytes as u64;
        self.lengths[way as usize].add(bytes);
        let tags = &mut self.flows[way as usize][rank];
        match tags.first_mut() {
            Some((of, total)) if *of == tag => total.add(bytes),
            _ => {
                bring_first(tags, tag);
                tags[0].1.add(bytes);
            }
        }
    }

    /// Bytes, then messages, to each rank.
    fn row(&self) -> impl Iterator<Item = u64> {
        let sent = &self.flows[Direction::Sent as usize];
        let sum = |of: fn(&Total) -> u64| {
            let to = move |tags: &Vec<(Tag, Total)>| tags.iter().map(|(_, total)| of(total)).sum();
            sent.iter().map(to)
        };
        sum(|total| total.bytes).chain(sum(|total| total.messages))
    }

    fn phase(&self, clock: Clock) -> Phase {
        let calls = Timed::ALL.iter().zip(&self.calls);
        let calls: Vec<_> = calls
            .filter(|(_, clocked)| clocked.count > 0)
            .map(|(timed, clocked)| Calls {
                call: timed.name().into(),
                count: clocked.count,
                time_ns: clock.ns(clocked.ticks),
                longest_ns: clock.ns(clocked.longest),
            })
            .collect();
        let collectives = Kind::ALL.iter().zip(&self.collectives);
        let collectives = collectives
            .filter(|(_, (clocked, _))| clocked.count > 0)
            .map(|(kind, (clocked, bytes))| Collectives {
                kind: kind.name().into(),
                count: clocked.count,
                bytes: *bytes,
                time_ns: clock.ns(clocked.ticks),
            });
        let computing_ns = clock.ns(self.computing);
        Phase {
            name: self.name.clone(),
            wall_ns: computing_ns + calls.iter().map(|calls| calls.time_ns).sum::<u64>(),
            computing_ns,
            busy_ns: self.busy_ns,
            collectives: collectives.collect(),
            sent: self.lengths[Direction::Sent as usize].row(),
            received: self.lengths[Direction::Received as usize].row(),
            flows: [Direction::Sent, Direction::Received]
                .into_iter()
                .flat_map(|way| self.flows_of(way))
                .collect(),
            calls,
        }
    }

    fn flows_of(&self, way: Direction) -> impl Iterator<Item = Flow> {
        let ranks = self.flows[way as usize].iter().enumerate();
        ranks.flat_map(move |(rank, tags)| {
            let mut tags = tags.clone();
            tags.sort_unstable_by_key(|(tag, _)| *tag);
            tags.into_iter().map(move |(tag, total)| Flow {
                sent: way == Direction::Sent,
                rank,
                tag,
                collective: made_of(tag).map(|kind| kind.name().into()),
                total,
            })
        })
    }
}

/// The tags of a rank with this one before all others.
#[cold]
fn bring_first(tags: &mut Vec<(Tag, Total)>, tag: Tag) {
    let known = tags.iter().position(|(of, _)| *of == tag);
    let place = known.unwrap_or_else(|| {
        tags.push((tag, Total::NONE));
        tags.len() - 1
    });
    tags.swap(0, place);
}

/// Counts what goes through a messenger.
pub struct Counted<M> {
    inner: M,
    ranks: usize,
    groups: Groups,
    /// Receives that are under way, and their group.
    receives: HashMap<u64, Comm, Spread>,
    phases: Vec<Counts>,
    current: usize,
    clock: Clock,
    /// The end of the last call.
    last: u64,
    /// Calls that move messages, until now.
    moves: u64,
    /// From which tick on for how many nanoseconds such calls are counted apart.
    span: Option<(u64, u64)>,
    /// Those before the span was over, once it is.
    moves_within: Option<u64>,
}

impl<M: Messenger> Counted<M> {
    /// Counts from now on, in a phase `start`. Groups that were parted before are not known.
    pub fn new(inner: M) -> Self {
        let ranks = inner.size(Comm::WORLD);
        let clock = Clock::of_this_machine();
        Self {
            inner,
            ranks,
            groups: Groups::default(),
            receives: HashMap::default(),
            phases: vec![Counts::new(FIRST_PHASE, ranks)],
            current: 0,
            clock,
            last: clock.now(),
            moves: 0,
            span: None,
            moves_within: None,
        }
    }

    /// Has what is done within so many nanoseconds from now on counted apart; see [`part_within`](Self::part_within).
    pub fn count_within(&mut self, span_ns: u64) {
        self.span = Some((self.clock.now(), span_ns));
    }

    /// The part of all calls that move messages which ended before the span was over, 0 to 1; none while it is not.
    pub fn part_within(&self) -> Option<f64> {
        self.moves_within
            .map(|within| within as f64 / self.moves.max(1) as f64)
    }

    /// What was counted until now. Time since the last call is not in it. The phase `start` is left out if there is nothing in it but
    /// the time until the first one was named.
    pub fn profile(&self) -> Profile {
        let is_empty = |phase: &Counts| phase.calls.iter().all(|calls| calls.count == 0);
        let phases = self.phases.iter().enumerate();
        let phases = phases
            .filter(|(index, phase)| *index > 0 || self.phases.len() == 1 || !is_empty(phase))
            .map(|(_, phase)| phase.phase(self.clock));
        Profile {
            schema: PROFILE_SCHEMA.into(),
            rank: self.inner.rank(Comm::WORLD),
            ranks: self.ranks,
            clock: self.clock.told(),
            phases: phases.collect(),
        }
    }

    /// The lengths of messages sent in the phases whose name is wanted.
    pub fn sent(&self, wanted: impl Fn(&str) -> bool) -> Lengths {
        let mut sent = Lengths::new();
        for phase in self.phases.iter().filter(|phase| wanted(&phase.name)) {
            sent.merge(&phase.lengths[Direction::Sent as usize]);
        }
        sent
    }

    /// Who sent how much to whom in this phase, or in all; all ranks call it and have it. What it sends itself is not counted.
    ///
    /// # Errors
    /// Those of the messenger; there are more ranks than a matrix takes.
    pub fn matrix(&mut self, phase: Option<&str>) -> Result<Matrix> {
        let mut row = vec![0; 2 * self.ranks];
        let wanted = |counts: &&Counts| phase.is_none_or(|name| name == counts.name);
        for counts in self.phases.iter().filter(wanted) {
            row.iter_mut()
                .zip(counts.row())
                .for_each(|(sum, of)| *sum += of);
        }
        let mut rows = vec![0_u64; self.ranks * row.len()];
        let mut group = uncounted(&mut self.inner, Comm::WORLD);
        group.allgather::<u8>(
            bytemuck::cast_slice(&row),
            bytemuck::cast_slice_mut(&mut rows),
        )?;
        let mut matrix = Matrix::new(self.ranks).map_err(|error| Error::Argument {
            what: "the number of ranks",
            value: self.ranks.to_string(),
            wanted: error.to_string(),
        })?;
        for (from, sent) in rows.chunks_exact(2 * self.ranks).enumerate() {
            let (bytes, messages) = sent.split_at(self.ranks);
            for (to, (bytes, messages)) in bytes.iter().zip(messages).enumerate() {
                matrix.add(from, to, *bytes, *messages);
            }
        }
        Ok(matrix)
    }

    /// The messenger that does it; what is done to it directly is not counted.
    pub const fn inner(&mut self) -> &mut M {
        &mut self.inner
    }

    /// The messenger that did it.
    pub fn into_inner(self) -> M {
        self.inner
    }

    #[inline]
    fn timed<T>(&mut self, what: Timed, call: impl FnOnce(&mut M) -> Result<T>) -> Result<T> {
        let begin = self.clock.now();
        let result = call(&mut self.inner);
        let end = self.clock.now();
        let phase = &mut self.phases[self.current];
        // The counters of two CPUs may stand a few ticks apart.
        phase.computing += begin.saturating_sub(self.last);
        phase.calls[what as usize].add(end.saturating_sub(begin));
        self.last = end;
        self.moved(what, end);
        result
    }

    /// After a call: whether it moved messages, and within the span.
    #[inline]
    fn moved(&mut self, what: Timed, end: u64) {
        if let Some((begin, span_ns)) = self.span
            && self.clock.ns(end.saturating_sub(begin)) >= span_ns
        {
            self.span = None;
            self.moves_within = Some(self.moves);
        }
        // Looks at what is under way come as often as one waits long.
        if !matches!(
            what,
            Timed::Test | Timed::Iprobe | Timed::Progress | Timed::Split
        ) {
            self.moves += 1;
        }
    }

    #[inline]
    fn count(&mut self, way: Direction, comm: Comm, rank: usize, tag: Tag, bytes: usize) {
        let rank = self.groups.world_rank(comm, rank);
        self.phases[self.current].add(way, rank, tag, bytes);
    }

    fn completed(&mut self, request: u64, status: Status) {
        if let Some(comm) = self.receives.remove(&request) {
            self.count(
                Direction::Received,
                comm,
                status.from,
                status.tag,
                status.bytes,
            );
        }
    }
}

/// What a rank puts into a collective, or gets of it where it puts in nothing.
pub(crate) fn bytes_of(call: &Call<'_>, rank: usize) -> usize {
    match call {
        Call::Barrier => 0,
        Call::Broadcast { data, .. } => data.len(),
        Call::Reduce { input, .. }
        | Call::Allreduce { input, .. }
        | Call::Scan { input, .. }
        | Call::Gather { input, .. }
        | Call::Allgather { input, .. }
        | Call::Alltoall { input, .. } => input.len(),
        Call::Scatter { parts, .. } => Parts::of(parts, rank),
    }
}

impl<M: Messenger> Messenger for Counted<M> {
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
        self.timed(Timed::Send, |inner| inner.send(comm, to, tag, payload))?;
        self.count(Direction::Sent, comm, to, tag, payload.len());
        Ok(())
    }

    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
        let status = self.timed(Timed::Recv, |inner| inner.recv(comm, from, tag, room))?;
        self.count(
            Direction::Received,
            comm,
            status.from,
            status.tag,
            status.bytes,
        );
        Ok(status)
    }

    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
        self.timed(Timed::Exchange, |inner| inner.exchange(comm, ops, statuses))?;
        for (op, status) in ops.iter().zip(statuses) {
            match op {
                Op::Send { to, tag, payload } => {
                    self.count(Direction::Sent, comm, *to, *tag, payload.len());
                }
                Op::Recv { .. } => {
                    self.count(
                        Direction::Received,
                        comm,
                        status.from,
                        status.tag,
                        status.bytes,
                    );
                }
            }
        }
        Ok(())
    }

    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
        let bytes = payload.len();
        let request = self.timed(Timed::Isend, |inner| inner.isend(comm, to, tag, payload))?;
        self.count(Direction::Sent, comm, to, tag, bytes);
        Ok(request)
    }

    fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request> {
        let request = self.timed(Timed::Irecv, |inner| inner.irecv(comm, from, tag, room))?;
        self.receives.insert(request.0, comm);
        Ok(request)
    }

    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        let name = request.0;
        let outcome = self.timed(Timed::Test, |inner| inner.test(request))?;
        if let Ok(completion) = &outcome {
            self.completed(name, completion.status);
        }
        Ok(outcome)
    }

    fn wait(&mut self, request: Request) -> Result<Completion> {
        let name = request.0;
        let completion = self.timed(Timed::Wait, |inner| inner.wait(request))?;
        self.completed(name, completion.status);
        Ok(completion)
    }

    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
        self.timed(Timed::Iprobe, |inner| inner.iprobe(comm, from, tag))
    }

    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
        let parted = self.timed(Timed::Split, |inner| {
            Groups::split(inner, comm, colour, key)
        })?;
        Ok(self.groups.keep(parted))
    }

    fn collective(&mut self, comm: Comm, call: &mut Call<'_>) -> Result<bool> {
        let kind = call.kind();
        let bytes = bytes_of(call, self.inner.rank(comm)) as u64;
        let before = self.phases[self.current].calls[Timed::Collective as usize].ticks;
        let made = self.timed(Timed::Collective, |inner| inner.collective(comm, call))?;
        let phase = &mut self.phases[self.current];
        if made {
            let (clocked, sum) = &mut phase.collectives[kind as usize];
            clocked.add(phase.calls[Timed::Collective as usize].ticks - before);
            *sum += bytes;
        }
        Ok(made)
    }

    fn progress(&mut self) -> Result<()> {
        self.timed(Timed::Progress, M::progress)
    }

    /// Until the next one is named; a phase may be entered again.
    fn phase(&mut self, name: &str) {
        let now = self.clock.now();
        self.phases[self.current].computing += now.saturating_sub(self.last);
        self.last = now;
        if name == SETUP {
            let before = self.phases.iter_mut();
            before
                .filter(|phase| !phase.name.starts_with(SETUP))
                .for_each(|phase| phase.name.insert_str(0, "setup: "));
        }
        let known = self.phases.iter().position(|phase| phase.name == name);
        self.current = known.unwrap_or_else(|| {
            self.phases.push(Counts::new(name, self.ranks));
            self.phases.len() - 1
        });
        self.inner.phase(name);
    }

    fn busy(&mut self, begin_ns: u64, end_ns: u64) {
        self.phases[self.current].busy_ns += end_ns.saturating_sub(begin_ns);
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

#[cfg(test)]
mod tests;
