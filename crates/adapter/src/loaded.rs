//! A library as a messenger: each call checks its arguments, makes one call of the table, and tells what went wrong.
//!
//! Model:   a rank is ready, broken or over. After a lost or silent rank, or a refusal, it is broken: no call reaches the
//!          library any more but `abort`, because a transfer that was given up may still be under way there, with memory
//!          that its owner takes back.
//! Checked: `tests/loading.rs` with the null adapter, `tests/libraries.rs` with all others.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

use sonde_measure::Library;
use sonde_message::{
    Call, Capabilities, Comm, Completion, Error, Messenger, Op, Request, Result, Source, Status,
    TAG_MAX, Tag, Tagged,
};

use crate::abi::{self, About, Calls, Details, Envelope, Rank, Transfer};
use crate::collective::{Counts, lowered};
use crate::group::{Group, Membership, agreed, members};
use crate::load::Meeting;
use crate::slots::{Pending, Slots};
use crate::watch::{Doing, Watch};

/// The tag by which the ranks of a group split it: none of a program, none of a collective.
const TAG_SPLIT: Tag = TAG_MAX + 4_096;

/// A rank whose messages a library carries.
pub struct Loaded {
    calls: Calls,
    rank: *mut Rank,
    library: String,
    file: PathBuf,
    about: About,
    timeout: Duration,
    state: State,
    groups: Vec<Group>,
    /// The least number of a group that this rank has not used.
    next_number: u32,
    slots: Slots,
    transfers: Vec<Transfer>,
    counts: Counts,
    watch: Watch,
    /// What the adapter keeps the addresses of.
    details: Box<Details>,
    meeting: Option<Box<Meeting>>,
    lost: Option<Arc<AtomicI32>>,
    /// What was known at the end.
    last_facts: Library,
}

enum State {
    Ready,
    Broken(String),
    Over,
}

impl Loaded {
    #[expect(
        clippy::too_many_arguments,
        reason = "what `begin` of `load` has made, each once"
    )]
    pub(crate) fn new(
        file: &Path,
        library: String,
        calls: Calls,
        rank: *mut Rank,
        details: Box<Details>,
        about: About,
        watch: Watch,
        lost: Option<Arc<AtomicI32>>,
        meeting: Option<Box<Meeting>>,
        timeout: Duration,
    ) -> Self {
        let world = Group {
            comm: 0,
            rank: about.rank as usize,
            ranks: about.ranks as usize,
            members: None,
        };
        Self {
            calls,
            rank,
            library,
            file: file.into(),
            about,
            timeout,
            state: State::Ready,
            groups: vec![world],
            next_number: 1,
            slots: Slots::default(),
            transfers: Vec::new(),
            counts: Counts::default(),
            watch,
            details,
            meeting,
            lost,
            last_facts: Library::default(),
        }
    }

    /// The group of a call, where the rank is ready.
    fn group(&self, comm: Comm) -> Result<&Group> {
        if !matches!(self.state, State::Ready) {
            return Err(self.unready());
        }
        let group = self.groups.get(comm.0 as usize);
        group.ok_or_else(|| wrong("the group", comm.0, format!("below {}", self.groups.len())))
    }

    #[cold]
    fn unready(&self) -> Error {
        let why = match &self.state {
            State::Broken(why) => format!("it failed before: {why}"),
            _ => "it has ended".into(),
        };
        self.refused("a call", why)
    }

    #[cold]
    fn missing(&self, what: &str) -> Error {
        Error::Missing {
            library: self.library.clone(),
            what: what.into(),
        }
    }

    fn refused(&self, what: &str, why: String) -> Error {
        Error::Refused {
            library: self.library.clone(),
            what: what.into(),
            why,
        }
    }

    /// The adapter's numbers for group, rank and tag of a send.
    fn sending(&self, comm: Comm, to: usize, tag: Tag, bytes: usize) -> Result<(u32, i32, i32)> {
        let group = self.group(comm)?;
        if to >= group.ranks {
            return Err(wrong("the receiver", to, format!("below {}", group.ranks)));
        }
        if tag > self.about.tag_max {
            return Err(wrong(
                "the tag",
                tag,
                format!("at most {}", self.about.tag_max),
            ));
        }
        self.fits(bytes)?;
        Ok((group.comm, group.outside(to) as i32, tag as i32))
    }

    /// The adapter's numbers for group, rank and tag of a receive.
    fn receiving(
        &self,
        comm: Comm,
        from: Source,
        tag: Tagged,
        bytes: usize,
    ) -> Result<(u32, i32, i32)> {
        let group = self.group(comm)?;
        let wild = from == Source::Any || tag == Tagged::Any;
        if wild && self.about.capabilities & abi::WILDCARDS == 0 {
            return Err(self.missing("receives from any rank, or of any tag, here"));
        }
        let from = match from {
            Source::Any => abi::ANY,
            Source::Rank(rank) if rank < group.ranks => group.outside(rank) as i32,
            Source::Rank(rank) => {
                return Err(wrong("the sender", rank, format!("below {}", group.ranks)));
            }
        };
        let tag = match tag {
            Tagged::Any => abi::ANY,
            Tagged::With(tag) if tag <= self.about.tag_max => tag as i32,
            Tagged::With(tag) => {
                return Err(wrong(
                    "the tag",
                    tag,
                    format!("at most {}", self.about.tag_max),
                ));
            }
        };
        self.fits(bytes)?;
        Ok((group.comm, from, tag))
    }

    fn fits(&self, bytes: usize) -> Result<()> {
        if bytes as u64 <= self.about.message_bytes_max {
            return Ok(());
        }
        let most = self.about.message_bytes_max;
        Err(wrong(
            "the message in bytes",
            bytes,
            format!("at most {most}"),
        ))
    }

    /// Makes a call that waits; under watch where the adapter does not bound it.
    fn waiting(&self, doing: Doing, bytes: usize, call: impl FnOnce() -> i32) -> i32 {
        if self.about.capabilities & abi::BOUNDED != 0 {
            call()
        } else {
            self.watch.around(doing, bytes as u64, call)
        }
    }

    /// What a negative result means; afterwards the rank may be broken.
    #[cold]
    fn failure(&mut self, code: i32, during: &str) -> Error {
        let told = self
            .meeting
            .as_mut()
            .and_then(|meeting| meeting.failed.take());
        let error = told.unwrap_or_else(|| {
            let mut error = error_of(code, &self.details, &self.library, during, self.timeout);
            if let Error::Silent { rank, .. } = &mut error {
                *rank = rank.filter(|rank| *rank < self.groups[0].ranks);
            }
            error
        });
        let usable = [abi::TRUNCATED, abi::ARGUMENT, abi::MISSING].contains(&code);
        if !usable {
            self.state = State::Broken(error.to_string());
        }
        error
    }

    fn status(&self, comm: Comm, envelope: &Envelope) -> Status {
        Status {
            from: self.groups[comm.0 as usize].inside(envelope.from.max(0) as usize),
            tag: envelope.tag,
            bytes: envelope.bytes as usize,
        }
    }

    /// What a finished transfer gives; a failed one is given up.
    fn completed(
        &mut self,
        request: &Request,
        code: i32,
        envelope: &Envelope,
    ) -> Result<Completion> {
        let pending = self.slots.take(request).ok_or_else(void)?;
        if code != abi::OK {
            let room = pending.buffer.len();
            let error = self.failure(code, "waiting for a transfer");
            if !matches!(self.state, State::Ready) {
                // The library may still hold its address.
                std::mem::forget(pending.buffer);
            }
            return Err(match error {
                Error::Truncated {
                    from, tag, bytes, ..
                } => Error::Truncated {
                    from,
                    tag,
                    bytes,
                    room,
                },
                Error::Silent {
                    rank: None,
                    during,
                    timeout,
                } => Error::Silent {
                    rank: pending.peer,
                    during,
                    timeout,
                },
                error => error,
            });
        }
        let status = pending
            .sent
            .unwrap_or_else(|| self.status(pending.comm, envelope));
        Ok(Completion {
            status,
            buffer: pending.buffer,
        })
    }

    /// Splits by messages, for a library that has no groups.
    fn split_by_messages(
        &mut self,
        comm: Comm,
        colour: Option<u32>,
        key: i32,
    ) -> Result<Option<Comm>> {
        let (own, ranks) = (self.rank(comm), self.size(comm));
        let mine = Membership {
            colour,
            key,
            number: self.next_number,
        };
        let mut all = vec![0; ranks * Membership::BYTES];
        let tag = Tagged::With(TAG_SPLIT);
        if own == 0 {
            let (first, others) = all.split_at_mut(Membership::BYTES);
            first.copy_from_slice(&mine.bytes());
            for (rank, room) in others.chunks_exact_mut(Membership::BYTES).enumerate() {
                self.recv(comm, Source::Rank(rank + 1), tag, room)?;
            }
            for rank in 1..ranks {
                self.send(comm, rank, TAG_SPLIT, &all)?;
            }
        } else {
            self.send(comm, 0, TAG_SPLIT, &mine.bytes())?;
            self.recv(comm, Source::Rank(0), tag, &mut all)?;
        }
        let told = Membership::all(&all);
        let number = agreed(&told);
        self.next_number = number + 1;
        let Some(found) = members(&told, own) else {
            return Ok(None);
        };
        let place = found.iter().position(|rank| *rank == own);
        let parent = &self.groups[comm.0 as usize];
        let group = Group {
            comm: number,
            rank: place.expect("this rank has this colour"),
            ranks: found.len(),
            members: Some(found.iter().map(|rank| parent.outside(*rank)).collect()),
        };
        Ok(Some(self.keep(group)))
    }

    fn keep(&mut self, group: Group) -> Comm {
        self.groups.push(group);
        Comm(self.groups.len() as u32 - 1)
    }
}

#[cold]
fn wrong(what: &'static str, value: impl ToString, wanted: String) -> Error {
    Error::Argument {
        what,
        value: value.to_string(),
        wanted,
    }
}

#[cold]
fn void() -> Error {
    wrong("the request", "void", "one that is not done yet".into())
}

/// What a negative result of an adapter says.
pub fn error_of(
    code: i32,
    details: &Details,
    library: &str,
    during: &str,
    timeout: Duration,
) -> Error {
    let (what, why) = (abi::text(&details.what), abi::text(&details.why));
    let during = if what.is_empty() {
        during.to_owned()
    } else {
        format!("{what} ({library})")
    };
    let known = usize::try_from(details.rank).ok();
    let rank = known.unwrap_or(usize::MAX);
    match code {
        abi::LOST => Error::Lost { rank, during, why },
        abi::SILENT => Error::Silent {
            rank: known,
            during,
            timeout,
        },
        abi::TRUNCATED => Error::Truncated {
            from: rank,
            tag: details.tag,
            bytes: details.bytes as usize,
            room: details.room as usize,
        },
        abi::ARGUMENT => Error::Refused {
            library: library.into(),
            what: format!("the option or argument `{what}`"),
            why,
        },
        abi::MISSING => Error::Missing {
            library: library.into(),
            what,
        },
        _ => Error::Refused {
            library: library.into(),
            what: if what.is_empty() { during } else { what },
            why,
        },
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if !matches!(self.state, State::Over) {
            // The library still has the addresses.
            std::mem::forget(std::mem::take(&mut self.slots));
            std::mem::forget(std::mem::replace(
                &mut self.details,
                Box::new(Details::NONE),
            ));
            std::mem::forget(self.meeting.take());
            std::mem::forget(self.lost.take());
        }
    }
}

impl Messenger for Loaded {
    fn capabilities(&self) -> Capabilities {
        let has = |bit: u64| self.about.capabilities & bit != 0;
        Capabilities {
            wildcards: has(abi::WILDCARDS),
            probe: has(abi::PROBE),
            asynchronous: has(abi::ASYNCHRONOUS),
            collectives: self.about.collectives as u32,
            message_bytes_max: self.about.message_bytes_max,
        }
    }

    fn rank(&self, comm: Comm) -> usize {
        self.groups[comm.0 as usize].rank
    }

    fn size(&self, comm: Comm) -> usize {
        self.groups[comm.0 as usize].ranks
    }

    fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        let (comm, to, tag) = self.sending(comm, to, tag, payload.len())?;
        // SAFETY: the rank is ready; the payload lives over the call, after which the library does not read it (a failed
        // call breaks the rank, and nothing moves it on).
        let code = self.waiting(Doing::Send, payload.len(), || unsafe {
            let data = abi::address(payload);
            (self.calls.send)(self.rank, comm, to, tag, data, payload.len() as u64)
        });
        if code == abi::OK {
            return Ok(());
        }
        Err(self.failure(code, "sending"))
    }

    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
        let group = comm;
        let (comm, from, tag) = self.receiving(comm, from, tag, room.len())?;
        let mut envelope = Envelope::default();
        // SAFETY: the rank is ready; room and envelope live over the call, after which the library does not write them.
        let code = self.waiting(Doing::Recv, room.len(), || unsafe {
            let data = abi::room(room);
            let bytes = room.len() as u64;
            (self.calls.recv)(self.rank, comm, from, tag, data, bytes, &raw mut envelope)
        });
        if code == abi::OK {
            return Ok(self.status(group, &envelope));
        }
        Err(self.failure(code, "receiving"))
    }

    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
        if ops.len() != statuses.len() {
            return Err(wrong(
                "the number of statuses",
                statuses.len(),
                format!("that of the transfers, {}", ops.len()),
            ));
        }
        let mut transfers = std::mem::take(&mut self.transfers);
        transfers.clear();
        let mut bytes = 0;
        for op in ops.iter_mut() {
            let (kind, (_, peer, tag), data, length) = match op {
                Op::Send { to, tag, payload } => {
                    let numbers = self.sending(comm, *to, *tag, payload.len())?;
                    (0, numbers, abi::address(payload).cast_mut(), payload.len())
                }
                Op::Recv { from, tag, room } => {
                    let numbers = self.receiving(comm, *from, *tag, room.len())?;
                    (1, numbers, abi::room(room), room.len())
                }
            };
            bytes += length;
            transfers.push(Transfer {
                kind,
                peer,
                tag,
                reserved: 0,
                data,
                bytes: length as u64,
                envelope: Envelope::default(),
            });
        }
        let number = self.group(comm)?.comm;
        // SAFETY: the rank is ready; what the transfers point to lives over the call, and sends are only read.
        let code = self.waiting(Doing::Exchange, bytes, || unsafe {
            let count = transfers.len() as u64;
            (self.calls.exchange)(self.rank, number, transfers.as_mut_ptr(), count)
        });
        for ((op, status), done) in ops.iter().zip(statuses).zip(&transfers) {
            *status = match op {
                Op::Send { to, tag, payload } => Status {
                    from: *to,
                    tag: *tag,
                    bytes: payload.len(),
                },
                Op::Recv { .. } => self.status(comm, &done.envelope),
            };
        }
        self.transfers = transfers;
        if code == abi::OK {
            return Ok(());
        }
        Err(self.failure(code, "exchanging"))
    }

    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
        let status = Status {
            from: to,
            tag,
            bytes: payload.len(),
        };
        let peer = (comm == Comm::WORLD).then_some(to);
        let (number, to, tag) = self.sending(comm, to, tag, payload.len())?;
        let mut handle = 0;
        // SAFETY: the rank is ready; the payload's bytes stay where they are in `slots` until the transfer is done.
        let code = self.waiting(Doing::Send, payload.len(), || unsafe {
            let data = abi::address(&payload);
            let bytes = payload.len() as u64;
            (self.calls.isend)(self.rank, number, to, tag, data, bytes, &raw mut handle)
        });
        if code != abi::OK {
            return Err(self.failure(code, "sending"));
        }
        Ok(self.slots.keep(Pending {
            handle,
            buffer: payload,
            comm,
            sent: Some(status),
            peer,
        }))
    }

    fn irecv(
        &mut self,
        comm: Comm,
        from: Source,
        tag: Tagged,
        mut room: Vec<u8>,
    ) -> Result<Request> {
        let peer = match from {
            Source::Rank(rank) if comm == Comm::WORLD => Some(rank),
            _ => None,
        };
        let (number, from, tag) = self.receiving(comm, from, tag, room.len())?;
        let mut handle = 0;
        // SAFETY: the rank is ready; the room's bytes stay where they are in `slots` until the transfer is done.
        let code = unsafe {
            let data = abi::room(&mut room);
            let bytes = room.len() as u64;
            (self.calls.irecv)(self.rank, number, from, tag, data, bytes, &raw mut handle)
        };
        if code != abi::OK {
            return Err(self.failure(code, "receiving"));
        }
        Ok(self.slots.keep(Pending {
            handle,
            buffer: room,
            comm,
            sent: None,
            peer,
        }))
    }

    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        self.group(Comm::WORLD)?;
        let mut envelope = Envelope::default();
        let (calls, rank) = (self.calls, self.rank);
        let pending = self.slots.find(&request).ok_or_else(void)?;
        // SAFETY: the rank is ready, and the handle is of a transfer under way.
        let code = unsafe { (calls.test)(rank, &raw mut pending.handle, &raw mut envelope) };
        if code == abi::NOT {
            return Ok(Err(request));
        }
        self.completed(&request, code, &envelope).map(Ok)
    }

    fn wait(&mut self, request: Request) -> Result<Completion> {
        self.group(Comm::WORLD)?;
        let (calls, rank) = (self.calls, self.rank);
        let pending = self.slots.find(&request).ok_or_else(void)?;
        let bytes = pending.buffer.len();
        let mut handle = pending.handle;
        let mut envelope = Envelope {
            bytes: bytes as u64,
            ..Envelope::default()
        };
        // SAFETY: as in `test`.
        let code = self.waiting(Doing::Wait, bytes, || unsafe {
            (calls.wait)(rank, &raw mut handle, &raw mut envelope)
        });
        self.completed(&request, code, &envelope)
    }

    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
        let group = comm;
        let (comm, from, tag) = self.receiving(comm, from, tag, 0)?;
        if self.about.capabilities & abi::PROBE == 0 {
            return Err(self.missing("call to probe for a message without receiving it"));
        }
        let mut envelope = Envelope::default();
        // SAFETY: the rank is ready; the envelope lives over the call.
        let code = unsafe { (self.calls.iprobe)(self.rank, comm, from, tag, &raw mut envelope) };
        match code {
            abi::OK => Ok(Some(self.status(group, &envelope))),
            abi::NOT => Ok(None),
            code => Err(self.failure(code, "looking for a message")),
        }
    }

    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
        let number = self.group(comm)?.comm;
        if self.about.capabilities & abi::SPLIT == 0 {
            return self.split_by_messages(comm, colour, key);
        }
        let given = match colour.map(i32::try_from) {
            None => abi::ANY,
            Some(Ok(colour)) => colour,
            Some(Err(_)) => {
                let colour = colour.unwrap_or_default();
                return Err(wrong("the colour", colour, format!("at most {}", i32::MAX)));
            }
        };
        let mut made = Group {
            comm: 0,
            rank: 0,
            ranks: 0,
            members: None,
        };
        let (calls, handle) = (self.calls, self.rank);
        // SAFETY: the rank is ready.
        let code = self.watch.around(Doing::Split, 0, || unsafe {
            (calls.split)(handle, number, given, key, &raw mut made.comm)
        });
        if code == abi::NOT {
            return Ok(None);
        }
        if code != abi::OK {
            return Err(self.failure(code, "splitting a group"));
        }
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: as above; the group was made just now.
        let code = unsafe { (calls.group)(handle, made.comm, &raw mut rank, &raw mut ranks) };
        if code != abi::OK {
            return Err(self.failure(code, "splitting a group"));
        }
        (made.rank, made.ranks) = (rank.max(0) as usize, ranks.max(0) as usize);
        Ok(Some(self.keep(made)))
    }

    fn collective(&mut self, comm: Comm, call: &mut Call<'_>) -> Result<bool> {
        let group = self.group(comm)?;
        if self.about.collectives & (1 << call.kind() as u64) == 0 {
            return Ok(false);
        }
        let (number, own, ranks) = (group.comm, group.rank, group.ranks);
        let (mut raw, moved) = lowered(call, own, ranks, &mut self.counts)?;
        // SAFETY: the rank is ready; the lengths were held to the counts, and all of it lives over the call.
        let code = self.watch.around(Doing::Collective, moved, || unsafe {
            (self.calls.collective)(self.rank, number, &raw mut raw)
        });
        match code {
            abi::OK => Ok(true),
            abi::NOT => Ok(false),
            code => Err(self.failure(code, call.kind().name())),
        }
    }

    fn progress(&mut self) -> Result<()> {
        self.group(Comm::WORLD)?;
        // SAFETY: the rank is ready.
        let code = unsafe { (self.calls.progress)(self.rank) };
        if code == abi::OK {
            return Ok(());
        }
        Err(self.failure(code, "moving messages"))
    }

    fn facts(&self) -> Result<Library> {
        if !matches!(self.state, State::Ready) {
            return Ok(self.last_facts.clone());
        }
        let mut facts = Facts::new();
        // SAFETY: the rank is ready; `tell` is called during the call only, with the address of `facts`.
        let code = unsafe { (self.calls.facts)(self.rank, tell, (&raw mut facts).cast()) };
        if code == abi::OK {
            facts.retain(|(_, value)| !value.is_empty());
            facts.push(("adapter".into(), self.file.display().to_string()));
        }
        Library::read(facts).map_err(|error| Error::Refused {
            library: self.file.display().to_string(),
            what: "reading what the adapter says of its library".into(),
            why: error.to_string(),
        })
    }

    fn abort(&mut self, why: &str) {
        if matches!(self.state, State::Over) {
            return;
        }
        self.state = State::Broken(format!("it was aborted: {why}"));
        let why = CString::new(why.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the rank was opened and has not ended.
        self.watch.around(Doing::Finish, 0, || unsafe {
            (self.calls.abort)(self.rank, why.as_ptr());
        });
    }

    fn finish(&mut self) -> Result<()> {
        self.group(Comm::WORLD)?;
        if self.slots.len() > 0 {
            return Err(wrong(
                "the number of transfers under way at the end",
                self.slots.len(),
                "0: wait for each".into(),
            ));
        }
        // The library is ended whatever it said of itself.
        let said = self.facts().map(|facts| self.last_facts = facts);
        // SAFETY: the rank is ready; afterwards it is over, and no call is made with it.
        let code = self.watch.around(Doing::Finish, 0, || unsafe {
            (self.calls.finish)(self.rank)
        });
        self.state = State::Over;
        if code == abi::OK {
            return said;
        }
        let error = self.failure(code, "ending");
        self.state = State::Over;
        Err(error)
    }
}

/// What an adapter says of its library, by the names that the header gives.
type Facts = Vec<(String, String)>;

/// Takes one fact of an adapter.
unsafe extern "C" fn tell(to: *mut c_void, name: *const c_char, value: *const c_char) {
    // SAFETY: the address that `facts` gave, of its own list, within its call.
    let facts = unsafe { &mut *to.cast::<Facts>() };
    let text = |text: *const c_char| {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the header promises a text with a zero at its end.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().trim().to_owned()
    };
    facts.push((text(name), text(value)));
}
