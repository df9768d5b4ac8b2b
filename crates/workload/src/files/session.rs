//! A client of NFS at work on one job after the other, without a clock or a socket.
//!
//! Model:   a job is cut into calls, of which so many are outstanding as the mount says: one is a client that waits for each, more
//!          are its block daemons (biods) and its read-ahead. A read that gives less than was asked for is asked for the rest. What
//!          was written unstable is committed at the end; where a verifier is another than that of the write, the server lost it,
//!          and it is written again. Without the attribute cache each transfer is preceded by a GETATTR.
//! Source:  RFC 1813 §3.3.7 and §3.3.21 (verifiers), §4.11 (what a client may cache). Deviations: one directory level; names are
//!          made by the measurement.
//! Units:   bytes; times in picoseconds.
//! Checked: the tests of `session/tests.rs`; `crates/workload/tests/files_virtual.rs`, `files_partners.rs`.

mod transfer;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use sonde_measure::files::Meta;
use sonde_units::{Instant, Span};

use super::client::{Answer, Calls};
use super::nfs::{
    self, Attributes, Call, Changes, Entry, Handle, MountCall, MountReply, Reply, Stable, Status,
    Version,
};
use super::rpc::Rejected;
use super::xdr::Malformed;
use transfer::{Step, Transfer};

/// How a client works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The version.
    pub version: Version,
    /// Bytes of a read or write.
    pub transfer: u32,
    /// Calls that it has under way at most.
    pub outstanding: usize,
    /// How safe writes are when they are answered; version 2 is always synchronous.
    pub stable: Stable,
    /// Attributes are kept for the length of a job; otherwise each transfer is preceded by a GETATTR.
    pub keeps_attributes: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Calls that do nothing: round trips.
    Null {
        /// How many.
        count: u64,
    },
    /// The handle of what is exported.
    Mount {
        /// Its path.
        path: Vec<u8>,
    },
    /// One call.
    One(One),
    /// A file from its begin to its end.
    Read {
        /// Which.
        file: Handle,
        /// Its length.
        size_bytes: u64,
        /// What is done with it.
        sink: Sink,
    },
    /// Writes a file from its begin to its end.
    Write {
        /// Which.
        file: Handle,
        /// Its length.
        size_bytes: u64,
        /// With what; none is the [pattern](super::pattern).
        content: Option<Vec<u8>>,
    },
    /// A call many times, on names of a directory.
    Meta {
        /// Which.
        call: Meta,
        /// Where.
        directory: Handle,
        /// The number of the first name.
        first: u64,
        /// How many calls; of a listing, how many listings.
        count: u64,
        /// Names are taken in turn from so many.
        names: u64,
    },
    /// All names of a directory.
    List {
        /// Which.
        directory: Handle,
    },
}

/// A single call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum One {
    /// The handle of a name.
    Lookup(Handle, Vec<u8>),
    /// A file, made if it is not there, empty.
    Create(Handle, Vec<u8>),
    /// A directory.
    MakeDirectory(Handle, Vec<u8>),
    /// The end of a file.
    Remove(Handle, Vec<u8>),
    /// The end of a directory.
    RemoveDirectory(Handle, Vec<u8>),
    /// Another name.
    Rename(Handle, Vec<u8>, Handle, Vec<u8>),
    /// What is to be known of a file.
    Attributes(Handle),
    /// A length.
    Truncate(Handle, u64),
    /// How long reads and writes may be. Version 3.
    Limits(Handle),
}

/// What is done with what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    /// Nothing.
    Discard,
    /// It is compared with the [pattern](super::pattern).
    Check,
    /// It is kept.
    Keep,
}

/// What came of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// User bytes.
    pub bytes: u64,
    /// Calls that were answered.
    pub calls: u64,
    /// Of a mount, a lookup or a creation.
    pub handle: Option<Handle>,
    /// Of the same, and of attributes.
    pub attributes: Option<Attributes>,
    /// What was read, where it is kept.
    pub content: Vec<u8>,
    /// Names.
    pub entries: Vec<Entry>,
    /// The longest read and write of the server.
    pub limits: Option<nfs::Limits>,
    /// Bytes written again, since the server had lost them.
    pub written_again: u64,
}

/// Why a job was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The server refuses a call.
    #[error("{call}: {status}")]
    Refused {
        /// Which.
        call: &'static str,
        /// Why.
        #[source]
        status: Status,
    },
    /// The server does not do it.
    #[error("{0}")]
    Rejected(#[from] Rejected),
    /// Its answer cannot be read.
    #[error("the server's answer cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// A soft mount gave up.
    #[error("the server did not answer, and the mount is soft")]
    GivenUp,
    /// What was read is not what was written.
    #[error("the file has other bytes than were written to it, from offset {offset} on")]
    Content {
        /// From where on.
        offset: u64,
    },
    /// A file ended early.
    #[error("the file ends at {offset} of {size_bytes} bytes")]
    Short {
        /// Where.
        offset: u64,
        /// Where it should.
        size_bytes: u64,
    },
    /// A directory has more names than any has.
    #[error("the server lists a directory without an end")]
    Endless,
    /// The version does not have the call.
    #[error("the version of NFS does not have {0}: take nfs3")]
    Version(&'static str),
}

/// A client at work.
#[derive(Debug)]
pub struct Session {
    terms: Terms,
    calls: Calls,
    running: Option<Running>,
    flight: BTreeMap<u32, Step>,
    samples: VecDeque<Span>,
    outcome: Option<Result<Done, Failure>>,
    answered: u64,
}

#[derive(Debug)]
struct Running {
    job: Job,
    done: Done,
    transfer: Transfer,
}

impl Session {
    /// One without a job.
    pub const fn new(terms: Terms, calls: Calls) -> Self {
        Self {
            terms,
            calls,
            running: None,
            flight: BTreeMap::new(),
            samples: VecDeque::new(),
            outcome: None,
            answered: 0,
        }
    }

    /// How it works from the next job on.
    pub const fn set_terms(&mut self, terms: Terms) {
        self.terms = terms;
    }

    /// How it works.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The calls, to look at.
    pub const fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Begins a job.
    ///
    /// # Panics
    /// If there is one already.
    pub fn begin(&mut self, job: Job) {
        assert!(self.running.is_none(), "one job at a time");
        self.outcome = None;
        self.flight.clear();
        self.running = Some(Running {
            transfer: Transfer::new(),
            job,
            done: Done::default(),
        });
        self.fill();
    }

    /// Calls of all jobs that were answered.
    pub const fn answered(&self) -> u64 {
        self.answered
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        if self.calls.poll_given_up(now).is_some() {
            self.fail(Failure::GivenUp);
        }
        self.calls.poll_transmit(now)
    }

    /// When there is something to send.
    pub fn poll_at(&self) -> Option<Instant> {
        self.calls.poll_at()
    }

    /// What a call of the job took, from its first send to its reply: of a transfer its reads or writes, without what stands around
    /// them; of metadata each call.
    pub fn poll_sample(&mut self) -> Option<Span> {
        self.samples.pop_front()
    }

    /// What came of the job, once.
    pub fn poll_outcome(&mut self) -> Option<Result<Done, Failure>> {
        self.outcome.take()
    }

    /// The connection is a new one.
    pub fn on_reconnected(&mut self) {
        self.calls.on_reconnected();
    }

    /// Takes a message in.
    pub fn on_message(&mut self, now: Instant, message: &[u8]) {
        let Some(answer) = self.calls.on_message(now, message) else {
            return;
        };
        let Some(step) = self.flight.remove(&answer.xid) else {
            // Of a job that failed meanwhile.
            return;
        };
        let Some(running) = &mut self.running else {
            return;
        };
        self.answered += 1;
        running.done.calls += 1;
        let took = answer.took;
        let is_sampled = step.is_sampled();
        match running.on_answer(&self.terms, step, &answer) {
            Err(failure) => return self.fail(failure),
            Ok(None) => {}
            Ok(Some(step)) => self.issue(step),
        }
        if is_sampled {
            self.samples.push_back(took);
        }
        self.fill();
    }

    fn fail(&mut self, failure: Failure) {
        self.running = None;
        self.flight.clear();
        self.outcome = Some(Err(failure));
    }

    /// Makes the calls that may be outstanding; ends the job where nothing is left.
    fn fill(&mut self) {
        while let Some(running) = &mut self.running {
            let most = self.terms.outstanding.max(1);
            if self.flight.len() >= most {
                return;
            }
            match running
                .transfer
                .next(&running.job, &self.terms, self.flight.len())
            {
                Some(step) => self.issue(step),
                None if self.flight.is_empty() => {
                    let done = self.running.take().map(|running| running.done);
                    self.outcome = done.map(Ok);
                    return;
                }
                None => return,
            }
        }
    }

    fn issue(&mut self, step: Step) {
        let Some(running) = &self.running else {
            return;
        };
        let version = self.terms.version;
        if let (Step::Single, Job::Mount { path }) = (&step, &running.job) {
            let call = MountCall::Mount { path };
            let room = path.len();
            let xid = self
                .calls
                .call(call.procedure(version), room, |to| call.write(to));
            self.flight.insert(xid, step);
            return;
        }
        let name = step.name(&running.job);
        let call = step.call(&running.job, &running.transfer, &self.terms, &name);
        let Some(procedure) = call.procedure(version) else {
            return self.fail(Failure::Version(what(&call)));
        };
        let room = match &call {
            Call::Write { data, .. } => data.len(),
            _ => 64,
        };
        let xid = self
            .calls
            .call(procedure, room + 128, |to| call.write(version, to));
        self.flight.insert(xid, step);
    }
}

impl Running {
    /// Takes an answer; gives the call that follows it at once.
    fn on_answer(
        &mut self,
        terms: &Terms,
        step: Step,
        answer: &Answer<'_>,
    ) -> Result<Option<Step>, Failure> {
        let mut from = answer.results?;
        if let Job::Mount { .. } = self.job {
            let mounted = MountReply::read_mounted(terms.version, &mut from)?;
            let call = "MNT";
            let handle = mounted.map_err(|status| Failure::Refused { call, status })?;
            self.done.handle = Some(handle);
            return Ok(None);
        }
        let reply = nfs::read_reply(terms.version, answer.procedure.number, &mut from)?;
        if let Reply::Failed(status) = reply {
            let call = step.what(&self.job);
            return Err(Failure::Refused { call, status });
        }
        self.transfer
            .on_reply(&self.job, terms, &mut self.done, step, reply)
    }
}

/// What a call is, in words.
pub(super) const fn what(call: &Call<'_>) -> &'static str {
    match call {
        Call::Null => "NULL",
        Call::GetAttributes { .. } => "GETATTR",
        Call::SetAttributes { .. } => "SETATTR",
        Call::Lookup { .. } => "LOOKUP",
        Call::Access { .. } => "ACCESS",
        Call::Read { .. } => "READ",
        Call::Write { .. } => "WRITE",
        Call::Create { .. } => "CREATE",
        Call::MakeDirectory { .. } => "MKDIR",
        Call::Remove { .. } => "REMOVE",
        Call::RemoveDirectory { .. } => "RMDIR",
        Call::Rename { .. } => "RENAME",
        Call::ReadDirectory { .. } => "READDIR",
        Call::FileSystem { .. } => "STATFS",
        Call::Capabilities { .. } => "FSINFO",
        Call::PathLimits { .. } => "PATHCONF",
        Call::Commit { .. } => "COMMIT",
        Call::Unsupported { .. } => "an unknown call",
    }
}

/// What a new file is to be: empty, for all to read.
const NEW: Changes = Changes {
    size_bytes: Some(0),
    mode: Some(0o644),
};
