//! One rank's way to all others: the interface of the native engine and of every library.
//!
//! Model:   a group of ranks is named by a [`Comm`]; all start in [`Comm::WORLD`]. A send ends when its bytes may be used
//!          again, which says nothing of the receiver; a receive ends when the message is there. A send and a receive match
//!          when group, sender and tag do; the receive that was posted first is served first, and between two ranks of a
//!          group messages with the same tag are received in the order in which they were sent.
//! Source:  MPI 4.0 §3.5 for the order of messages, §3.7 for requests, §6.4 for groups. Deviations: no modes of sends
//!          (synchronous, buffered, ready); no derived types: a message is bytes; requests own their bytes.
//! Units:   bytes; ranks within their group, from zero.

use crate::{Call, Result};

/// What a message is for: 0 to [`TAG_MAX`].
pub type Tag = u32;

/// The greatest tag of a program; what every library has at least (MPI: 32,767). Collectives use greater ones of the native engine.
pub const TAG_MAX: Tag = 32_767;

/// A group of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm(pub u32);

impl Comm {
    /// All ranks.
    pub const WORLD: Self = Self(0);
}

/// Source whom a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This rank of the group.
    Rank(usize),
    /// Whoever sends first.
    Any,
}

/// Which tags a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tagged {
    /// This one.
    With(Tag),
    /// Whatever comes first.
    Any,
}

/// What was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The sender, in the group.
    pub from: usize,
    /// Its tag.
    pub tag: Tag,
    /// The message's bytes.
    pub bytes: usize,
}

/// A send or receive under way. It is waited for, or tested until it is done: one that is dropped goes on until the messenger ends.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Request(pub u64);

/// A request that is done.
#[derive(Debug)]
pub struct Completion {
    /// Of a receive: what came. Of a send: its own envelope, with the receiver in `from`.
    pub status: Status,
    /// The bytes that the request owned. Of a receive the message is at its begin, `status.bytes` long; the length is what it was.
    pub buffer: Vec<u8>,
}

/// One of several transfers that are posted together.
#[derive(Debug)]
pub enum Op<'a> {
    /// Send this.
    Send {
        /// To this rank of the group.
        to: usize,
        /// With this tag.
        tag: Tag,
        /// These bytes.
        payload: &'a [u8],
    },
    /// Receive here.
    Recv {
        /// Source whom.
        from: Source,
        /// Which tags.
        tag: Tagged,
        /// At most as many bytes as it holds; what was received is at its begin.
        room: &'a mut [u8],
    },
}

/// What a messenger can do of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Receives from any rank, of any tag.
    pub wildcards: bool,
    /// Finding out what comes without receiving it.
    pub probe: bool,
    /// Messages move while the program is not in a call.
    pub asynchronous: bool,
    /// The collectives that it has of its own, as bits `1 << Kind as u32`.
    pub collectives: u32,
    /// The largest message in bytes.
    pub message_bytes_max: u64,
}

/// One rank's way to all others.
///
/// Errors of every call: a rank is gone (named), nothing moved within the messenger's timeout, an argument is out of range,
/// the library refused.
pub trait Messenger {
    /// What it can do of itself.
    fn capabilities(&self) -> Capabilities;

    /// This rank in the group.
    fn rank(&self, comm: Comm) -> usize;

    /// How many ranks the group has.
    fn size(&self, comm: Comm) -> usize;

    /// Sends; returns when `payload` may be used again.
    ///
    /// # Errors
    /// Those of the trait.
    fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()>;

    /// Receives a message of at most `room.len()` bytes to the begin of `room`.
    ///
    /// # Errors
    /// Those of the trait; the message is longer than `room`.
    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status>;

    /// Posts all of them in their order and returns when all are done. `statuses[i]` is of `ops[i]`.
    ///
    /// # Errors
    /// Those of the trait; a message is longer than its room.
    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()>;

    /// Begins to send. The bytes come back with the completion.
    ///
    /// # Errors
    /// Those of the trait.
    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request>;

    /// Begins to receive at most `room.len()` bytes.
    ///
    /// # Errors
    /// Those of the trait.
    fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request>;

    /// Whether it is done, without waiting: afterwards the request is void. `Err(request)` of the inner result gives it back.
    ///
    /// # Errors
    /// Those of the trait; the message is longer than its room.
    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>>;

    /// Waits until it is done.
    ///
    /// # Errors
    /// Those of the trait; the message is longer than its room.
    fn wait(&mut self, request: Request) -> Result<Completion>;

    /// What would be received now, without receiving it; none where nothing is there.
    ///
    /// # Errors
    /// Those of the trait.
    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>>;

    /// Parts a group: those who give the same colour are a new one, in the order of their keys, then of their ranks. All
    /// of the group call it. Without a colour there is none.
    ///
    /// # Errors
    /// Those of the trait.
    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>>;

    /// Makes a collective call with what the library has of its own. False where it has none for it: nothing was done.
    ///
    /// # Errors
    /// Those of the trait.
    fn collective(&mut self, comm: Comm, call: &mut Call<'_>) -> Result<bool>;

    /// Moves what can be moved without waiting; for messengers that move nothing by themselves.
    ///
    /// # Errors
    /// Those of the trait.
    fn progress(&mut self) -> Result<()>;

    /// What follows belongs to this phase of the program, for those who watch it, as [`Counted`](crate::counted::Counted) does.
    fn phase(&mut self, _name: &str) {}

    /// The rank was held between these two times, in nanoseconds of CLOCK_MONOTONIC, in place of computing on a slower host: for
    /// those who watch. [`Aged`](crate::aged::Aged) says so.
    fn busy(&mut self, _begin_ns: u64, _end_ns: u64) {}

    /// The program is about to read its own clock: who holds the rank back, as [`Aged`](crate::aged::Aged) does, makes good now
    /// what is owed of the time before.
    fn due(&mut self) {}

    /// How many came to this rank, as the ranks met, who are none of this run.
    fn strangers(&self) -> u64 {
        0
    }

    /// What the library says of itself; after the end too.
    ///
    /// # Errors
    /// An adapter names what no [`Library`](sonde_measure::Library) has.
    fn facts(&self) -> Result<sonde_measure::Library>;

    /// What messages call the library: its name, or `this messenger` where it says none.
    fn library(&self) -> String {
        let name = self.facts().ok().and_then(|facts| facts.library);
        name.map_or_else(|| "this messenger".into(), |name| name.0)
    }

    /// Ends all ranks as soon as it can: something is wrong here.
    fn abort(&mut self, why: &str);

    /// Ends in order: all ranks call it. Afterwards every call but [`facts`](Self::facts) is an error.
    ///
    /// # Errors
    /// Those of the trait.
    fn finish(&mut self) -> Result<()>;
}

macro_rules! passed_on {
    ($($by:ty),*) => {$(
        /// What it is of.
        impl<M: Messenger + ?Sized> Messenger for $by {
            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }

            fn rank(&self, comm: Comm) -> usize {
                (**self).rank(comm)
            }

            fn size(&self, comm: Comm) -> usize {
                (**self).size(comm)
            }

            fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
                (**self).send(comm, to, tag, payload)
            }

            fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
                (**self).recv(comm, from, tag, room)
            }

            fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
                (**self).exchange(comm, ops, statuses)
            }

            fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
                (**self).isend(comm, to, tag, payload)
            }

            fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request> {
                (**self).irecv(comm, from, tag, room)
            }

            fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
                (**self).test(request)
            }

            fn wait(&mut self, request: Request) -> Result<Completion> {
                (**self).wait(request)
            }

            fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
                (**self).iprobe(comm, from, tag)
            }

            fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
                (**self).split(comm, colour, key)
            }

            fn collective(&mut self, comm: Comm, call: &mut Call<'_>) -> Result<bool> {
                (**self).collective(comm, call)
            }

            fn progress(&mut self) -> Result<()> {
                (**self).progress()
            }

            fn phase(&mut self, name: &str) {
                (**self).phase(name);
            }

            fn busy(&mut self, begin_ns: u64, end_ns: u64) {
                (**self).busy(begin_ns, end_ns);
            }

            fn due(&mut self) {
                (**self).due();
            }

            fn strangers(&self) -> u64 {
                (**self).strangers()
            }

            fn facts(&self) -> Result<sonde_measure::Library> {
                (**self).facts()
            }

            fn abort(&mut self, why: &str) {
                (**self).abort(why);
            }

            fn finish(&mut self) -> Result<()> {
                (**self).finish()
            }
        }
    )*};
}

passed_on!(&mut M, Box<M>);
