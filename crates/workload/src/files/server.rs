//! The server of NFS and MOUNT, without a clock or a socket.
//!
//! Model:   calls wait in a bounded queue for a daemon. A daemon takes the oldest, is held for the service time and until the disk
//!          is done with it, and sends the reply; the file is changed when it takes the call. A call that is being worked on and
//!          comes again is dropped; the reply to one that must not be done twice (CREATE, REMOVE, RENAME, …) is kept for a while
//!          and sent again. The outcome does not depend on when it is polled.
//! Source:  RFC 1094, RFC 1813 (§4.3: the cache of replies); C. Juszczak, "Improving the Performance and Correctness of an NFS
//!          Server", USENIX Winter 1989 (what of it is kept). Deviations: owners and groups are those of the server.
//! Units:   times in picoseconds, sizes in bytes.
//! Checked: the tests of `server/tests.rs`; `crates/workload/tests/files_virtual.rs`, `files_partners.rs`.

mod answers;
mod replies;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use sonde_units::{Instant, Span};

use super::disk::{self, Disk};
use super::nfs::{self, Call, MOUNT, MountCall, NFS, Version};
use super::rpc::{self, CallHeader, Rejected};
use super::store::Store;
use super::xdr::Decoder;
use answers::Answers;
use replies::{Known, Replies};

/// How a server works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Calls that are worked on at once.
    pub daemons: usize,
    /// What each takes of a daemon, beside what the store really takes.
    pub service: Span,
    /// Calls that wait for a daemon.
    pub queue: usize,
    /// The most bytes of a read or write.
    pub transfer_max: u32,
    /// Writes are answered before they are on the disk, whatever was asked: the export option `async`.
    pub is_async: bool,
    /// Replies to calls that must not be done twice, kept for when they come again; 0 keeps none.
    pub replies_kept: usize,
    /// A disk that it waits for.
    pub disk: Option<disk::Terms>,
    /// The machine name that callers must have; empty takes everybody.
    pub token: Vec<u8>,
    /// What is exported.
    pub export: Vec<u8>,
    /// Another at each start: the verifier of writes, and part of all handles.
    pub boot: u64,
}

impl Terms {
    /// Eight daemons without a service time of their own, no disk, transfers up to 1 MiB.
    pub fn new(boot: u64) -> Self {
        Self {
            daemons: 8,
            service: Span::ZERO,
            queue: 64,
            transfer_max: nfs::V3_BYTES_MAX,
            is_async: false,
            replies_kept: 1_024,
            disk: None,
            token: Vec::new(),
            export: b"/export".to_vec(),
            boot,
        }
    }
}

/// Who called: a number that is another for each address or connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller(pub u64);

/// What a server has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls that came.
    pub received: u64,
    /// Of these, done.
    pub executed: u64,
    /// Of these, dropped: the queue was full.
    pub overflowed: u64,
    /// Of these, dropped: the same was being worked on.
    pub in_progress: u64,
    /// Of these, answered by a reply that was kept.
    pub repeated: u64,
    /// Of these, of callers without the token, or not calls at all.
    pub refused: u64,
    /// Time that calls waited for a daemon, summed.
    pub waited: Span,
    /// Time that daemons were held, summed.
    pub held: Span,
}

/// A server at work on its store.
#[derive(Debug)]
pub struct Server<S> {
    terms: Terms,
    answers: Answers<S>,
    disk: Option<Disk>,
    waiting: VecDeque<Waiting>,
    /// What daemons work on, by when it is done.
    working: BTreeMap<(Instant, u64), Working>,
    begun: u64,
    replies: Replies,
    ready: VecDeque<(Caller, Vec<u8>)>,
    counters: Counters,
}

#[derive(Debug)]
struct Waiting {
    caller: Caller,
    since: Instant,
    message: Vec<u8>,
}

#[derive(Debug)]
struct Working {
    caller: Caller,
    key: Option<replies::Key>,
    reply: Vec<u8>,
}

impl<S: Store> Server<S> {
    /// One with nothing to do.
    pub fn new(terms: Terms, store: S) -> Self {
        Self {
            answers: Answers::new(store, &terms),
            disk: terms.disk.map(Disk::new),
            waiting: VecDeque::new(),
            working: BTreeMap::new(),
            begun: 0,
            replies: Replies::new(terms.replies_kept),
            ready: VecDeque::new(),
            counters: Counters::default(),
            terms,
        }
    }

    /// Whether it takes another call: one that comes while it does not is dropped.
    pub fn is_ready(&self) -> bool {
        self.working.len() < self.terms.daemons || self.waiting.len() < self.terms.queue
    }

    /// What it has counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Its store.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.answers.store
    }

    /// The token that callers must have as their machine name.
    pub fn token(&self) -> &[u8] {
        &self.terms.token
    }

    /// Takes a message in: a datagram, or a record of a stream.
    pub fn on_message(&mut self, now: Instant, caller: Caller, message: &[u8]) {
        self.advance(now);
        self.counters.received += 1;
        let mut from = Decoder::new(message);
        let Ok(header) = rpc::read_call(&mut from) else {
            self.counters.refused += 1;
            return;
        };
        if let Some(rejected) = self.refusal(&header) {
            self.counters.refused += 1;
            let reply = rpc::rejection(header.xid, rejected);
            self.ready.push_back((caller, reply));
            return;
        }
        let key = replies::Key::new(caller, &header);
        match self.replies.known(&key) {
            Some(Known::InProgress) => self.counters.in_progress += 1,
            Some(Known::Replied(reply)) => {
                self.counters.repeated += 1;
                let reply = reply.clone();
                self.ready.push_back((caller, reply));
            }
            None if self.working.len() < self.terms.daemons => {
                self.replies.begin(key);
                self.begin(now, now, caller, message);
            }
            None if self.waiting.len() < self.terms.queue => {
                self.replies.begin(key);
                self.waiting.push_back(Waiting {
                    caller,
                    since: now,
                    message: message.to_vec(),
                });
            }
            None => self.counters.overflowed += 1,
        }
    }

    /// The next reply to send until `now`, and to whom.
    pub fn poll_reply(&mut self, now: Instant) -> Option<(Caller, Vec<u8>)> {
        self.advance(now);
        self.ready.pop_front()
    }

    /// When there will be a reply; none while nothing is worked on.
    pub fn poll_at(&self) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(Instant::START);
        }
        self.working.first_key_value().map(|((at, _), _)| *at)
    }

    /// A caller is gone: nothing is sent to it any more.
    pub fn on_gone(&mut self, caller: Caller) {
        self.ready.retain(|(to, _)| *to != caller);
        self.waiting.retain(|one| one.caller != caller);
        self.replies.forget(caller);
    }

    fn refusal(&self, header: &CallHeader<'_>) -> Option<Rejected> {
        if !self.terms.token.is_empty() && header.machine != self.terms.token {
            return Some(Rejected::Credential(rpc::TOO_WEAK));
        }
        let versions = match header.procedure.program {
            NFS => [2, 3],
            MOUNT => [1, 3],
            _ => return Some(Rejected::NoProgram),
        };
        let [low, high] = versions;
        let is_known = versions.contains(&header.procedure.version);
        (!is_known).then_some(Rejected::NoVersion { low, high })
    }

    /// Does what is done until `now`, and gives the daemons that become free their next calls.
    fn advance(&mut self, now: Instant) {
        while let Some(entry) = self.working.first_entry() {
            let (at, _) = *entry.key();
            if at > now {
                return;
            }
            let done = entry.remove();
            if let Some(key) = done.key {
                self.replies.end(key, &done.reply);
            }
            self.ready.push_back((done.caller, done.reply));
            if let Some(next) = self.waiting.pop_front() {
                self.begin(at, next.since, next.caller, &next.message);
            }
        }
    }

    /// A daemon takes a call.
    fn begin(&mut self, at: Instant, since: Instant, caller: Caller, message: &[u8]) {
        let mut from = Decoder::new(message);
        let Ok(header) = rpc::read_call(&mut from) else {
            return;
        };
        let done = self.execute(at, &header, from);
        let key = replies::Key::new(caller, &header);
        if !done.is_kept {
            self.replies.drop_reply(key);
        }
        self.counters.executed += 1;
        self.counters.waited = self.counters.waited.saturating_add(at.since(since));
        let until = done.at.max(at.saturating_add(self.terms.service));
        self.counters.held = self.counters.held.saturating_add(until.since(at));
        self.begun += 1;
        let working = Working {
            caller,
            key: Some(key),
            reply: done.reply,
        };
        self.working.insert((until, self.begun), working);
    }

    fn execute(&mut self, at: Instant, header: &CallHeader<'_>, mut from: Decoder<'_>) -> Done {
        let (xid, procedure) = (header.xid, header.procedure);
        let rejected = |why| Done {
            at,
            reply: rpc::rejection(xid, why),
            is_kept: false,
        };
        if procedure.program == MOUNT {
            let version = if procedure.version == 1 {
                Version::V2
            } else {
                Version::V3
            };
            return match MountCall::read(procedure.number, &mut from) {
                Err(_) => rejected(Rejected::Garbage),
                Ok(None) => rejected(Rejected::NoProcedure),
                Ok(Some(call)) => {
                    let mut to = rpc::begin_reply(xid, 128);
                    self.answers.mount(call).write(version, &mut to);
                    Done {
                        at,
                        reply: to.finish(),
                        is_kept: false,
                    }
                }
            };
        }
        let version = if procedure.version == 2 {
            Version::V2
        } else {
            Version::V3
        };
        match nfs::read_call(version, procedure.number, &mut from) {
            Err(_) => rejected(Rejected::Garbage),
            Ok(None) => rejected(Rejected::NoProcedure),
            Ok(Some(call)) => {
                // The file is changed now; the disk says how long that takes.
                let until = self.disk.as_mut().map_or(at, |disk| {
                    self.answers.wait(disk, at, &call, self.terms.is_async)
                });
                let room = match call {
                    Call::Read { count, .. } | Call::ReadDirectory { count, .. } => {
                        count.min(self.terms.transfer_max)
                    }
                    _ => 256,
                };
                let mut to = rpc::begin_reply(xid, room as usize);
                let reply = self.answers.nfs(version, &call);
                nfs::write_reply(version, procedure.number, &reply, &mut to);
                Done {
                    at: until,
                    reply: to.finish(),
                    is_kept: !call.is_idempotent(),
                }
            }
        }
    }
}

/// What came of a call.
struct Done {
    /// When the disk is done.
    at: Instant,
    reply: Vec<u8>,
    /// Whether the reply is kept for when the call comes again.
    is_kept: bool,
}
