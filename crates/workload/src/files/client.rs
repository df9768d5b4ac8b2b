//! The calling side of RPC, without a clock or a socket: identifiers, timers, what is sent again.
//!
//! Model:   each call waits for the reply that repeats its identifier. Over datagrams one that is not answered within the timeout is
//!          sent again with the same identifier, and the timeout doubled up to a bound; a hard mount goes on for ever, a soft one
//!          gives up after so many sends. Over a stream nothing is sent again unless the connection was lost.
//! Source:  RFC 5531 §4; the usual timers of NFS clients: 1.1 s, doubled up to 60 s (nfs(5): timeo=11 over UDP, and its back-off).
//!          Deviations: none.
//! Units:   times in picoseconds.
//! Checked: `a_call_is_sent_again_when_its_time_is_up`, `late_replies_are_counted`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sonde_units::{Instant, Span};

use super::rpc::{self, Procedure, Rejected};
use super::xdr::{Decoder, Encoder};

/// When a call is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// After this, the first time.
    pub first: Span,
    /// Doubled up to this.
    pub most: Span,
    /// A soft mount gives up after so many sends; none is a hard mount.
    pub sends_max: Option<u32>,
}

impl Timers {
    /// A hard mount: 1.1 s, doubled up to 60 s, for ever.
    pub const HARD: Self = Self {
        first: Span::millis(1_100),
        most: Span::secs(60),
        sends_max: None,
    };
}

/// What a caller has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls.
    pub calls: u64,
    /// Messages sent beyond one for each call.
    pub retransmissions: u64,
    /// Replies to calls that had been answered, or were never made.
    pub unexpected: u64,
    /// Replies that could not be read.
    pub malformed: u64,
}

/// A call that is not answered.
#[derive(Debug)]
struct Pending {
    message: Vec<u8>,
    procedure: Procedure,
    first_sent: Option<Instant>,
    due: Option<Instant>,
    timeout: Span,
    sends: u32,
}

/// The answer to a call.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Which call.
    pub xid: u32,
    /// What was called.
    pub procedure: Procedure,
    /// From when it was sent first.
    pub took: Span,
    /// The results, or why it was not done.
    pub results: Result<Decoder<'a>, Rejected>,
}

/// Calls that wait for their replies.
#[derive(Debug)]
pub struct Calls {
    /// None over a stream.
    timers: Option<Timers>,
    machine: Vec<u8>,
    next: u32,
    pending: BTreeMap<u32, Pending>,
    to_send: VecDeque<u32>,
    due: BTreeSet<(Instant, u32)>,
    given_up: VecDeque<u32>,
    counters: Counters,
}

impl Calls {
    /// None yet. `timers`: none over a stream; `machine` is the name in the credential, `first` the first identifier.
    pub const fn new(timers: Option<Timers>, machine: Vec<u8>, first: u32) -> Self {
        Self {
            timers,
            machine,
            next: first,
            pending: BTreeMap::new(),
            to_send: VecDeque::new(),
            due: BTreeSet::new(),
            given_up: VecDeque::new(),
            counters: Counters {
                calls: 0,
                retransmissions: 0,
                unexpected: 0,
                malformed: 0,
            },
        }
    }

    /// What was counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Calls without a reply.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Makes a call, whose arguments `write` writes into room for `room` bytes; its identifier.
    pub fn call(
        &mut self,
        procedure: Procedure,
        room: usize,
        write: impl FnOnce(&mut Encoder),
    ) -> u32 {
        let xid = self.next;
        self.next = self.next.wrapping_add(1);
        let mut to = rpc::begin_call(xid, procedure, &self.machine, room);
        write(&mut to);
        let timeout = self.timers.map_or(Span::ZERO, |timers| timers.first);
        let pending = Pending {
            message: to.finish(),
            procedure,
            first_sent: None,
            due: None,
            timeout,
            sends: 0,
        };
        self.pending.insert(xid, pending);
        self.to_send.push_back(xid);
        self.counters.calls += 1;
        xid
    }

    /// The next message to send at `now`. It counts as sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        self.expire(now);
        let xid = loop {
            let xid = self.to_send.pop_front()?;
            if self.pending.contains_key(&xid) {
                break xid;
            }
        };
        let pending = self.pending.get_mut(&xid)?;
        if pending.first_sent.is_some() {
            self.counters.retransmissions += 1;
        }
        pending.first_sent.get_or_insert(now);
        pending.sends += 1;
        if let Some(timers) = self.timers {
            let due = now.saturating_add(pending.timeout);
            pending.due = Some(due);
            self.due.insert((due, xid));
            pending.timeout = pending.timeout.saturating_mul(2).min(timers.most);
        }
        Some(&pending.message)
    }

    /// When a call is to be sent again; the earliest time while one waits to be sent.
    pub fn poll_at(&self) -> Option<Instant> {
        if !self.to_send.is_empty() {
            return Some(Instant::START);
        }
        self.due.first().map(|(at, _)| *at)
    }

    /// A call that a soft mount gave up.
    pub fn poll_given_up(&mut self, now: Instant) -> Option<u32> {
        self.expire(now);
        self.given_up.pop_front()
    }

    fn expire(&mut self, now: Instant) {
        while let Some((at, xid)) = self.due.first().copied() {
            if at > now {
                return;
            }
            self.due.pop_first();
            let Some(pending) = self.pending.get_mut(&xid) else {
                continue;
            };
            pending.due = None;
            let most = self.timers.and_then(|timers| timers.sends_max);
            if most.is_some_and(|most| pending.sends >= most) {
                self.pending.remove(&xid);
                self.given_up.push_back(xid);
            } else {
                self.to_send.push_back(xid);
            }
        }
    }

    /// Takes a message in; none where it answers no call.
    pub fn on_message<'a>(&mut self, now: Instant, message: &'a [u8]) -> Option<Answer<'a>> {
        let mut from = Decoder::new(message);
        let Ok((xid, done)) = rpc::read_reply(&mut from) else {
            self.counters.malformed += 1;
            return None;
        };
        // One that was never sent cannot have been answered.
        let is_sent = |pending: &Pending| pending.first_sent.is_some();
        let Some(pending) = self.pending.get(&xid).filter(|pending| is_sent(pending)) else {
            self.counters.unexpected += 1;
            return None;
        };
        if let Some(due) = pending.due {
            self.due.remove(&(due, xid));
        }
        let first_sent = pending.first_sent.unwrap_or(now);
        let procedure = pending.procedure;
        self.pending.remove(&xid);
        Some(Answer {
            xid,
            procedure,
            took: now.since(first_sent.min(now)),
            results: done.map(|()| from),
        })
    }

    /// The connection is a new one: what is not answered is sent again.
    pub fn on_reconnected(&mut self) {
        self.to_send = self.pending.keys().copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NULL: Procedure = Procedure {
        program: 100_003,
        version: 2,
        number: 0,
    };

    fn at(ms: u64) -> Instant {
        Instant::START.saturating_add(Span::millis(ms))
    }

    /// The times at which a call that nobody answers is sent, in milliseconds.
    fn sends(timers: Timers, until: u64) -> (Vec<u64>, Option<u32>) {
        let mut calls = Calls::new(Some(timers), Vec::new(), 1);
        calls.call(NULL, 0, |_| {});
        let mut times = Vec::new();
        let mut given_up = None;
        let mut now = Instant::START;
        loop {
            while calls.poll_transmit(now).is_some() {
                times.push(now.as_nanos() / 1_000_000);
            }
            given_up = given_up.or_else(|| calls.poll_given_up(now));
            match calls.poll_at().filter(|next| *next <= at(until)) {
                Some(next) => now = next,
                None => return (times, given_up),
            }
        }
    }

    #[test]
    fn a_call_is_sent_again_when_its_time_is_up() {
        let (times, given_up) = sends(Timers::HARD, 200_000);
        let wanted = [
            0, 1_100, 3_300, 7_700, 16_500, 34_100, 69_300, 129_300, 189_300,
        ];
        assert_eq!((&times[..], given_up), (&wanted[..], None));
        let soft = Timers {
            sends_max: Some(3),
            ..Timers::HARD
        };
        assert_eq!(sends(soft, 200_000), (vec![0, 1_100, 3_300], Some(1)));
    }

    #[test]
    fn late_replies_are_counted() {
        let mut calls = Calls::new(Some(Timers::HARD), b"m".to_vec(), 7);
        let xid = calls.call(NULL, 0, |_| {});
        let reply = rpc::begin_reply(xid, 0).finish();
        // Before it was sent nobody can have answered it.
        assert!(calls.on_message(at(0), &reply).is_none());
        assert!(calls.poll_transmit(at(1)).is_some());
        assert!(calls.poll_transmit(at(1_101)).is_some());
        let answer = calls.on_message(at(1_102), &reply).unwrap();
        assert_eq!((answer.xid, answer.took), (7, Span::millis(1_101)));
        assert!(calls.on_message(at(1_103), &reply).is_none());
        assert!(calls.on_message(at(1_103), &reply[..7]).is_none());
        let counters = *calls.counters();
        assert_eq!((counters.calls, counters.retransmissions), (1, 1));
        assert_eq!((counters.unexpected, counters.malformed), (2, 1));
        assert_eq!((calls.poll_at(), calls.pending()), (None, 0));
    }

    #[test]
    fn a_new_connection_is_sent_what_is_not_answered() {
        let mut calls = Calls::new(None, Vec::new(), 1);
        calls.call(NULL, 0, |_| {});
        calls.call(NULL, 0, |_| {});
        let sent = |calls: &mut Calls| {
            let mut count = 0;
            while calls.poll_transmit(at(0)).is_some() {
                count += 1;
            }
            count
        };
        assert_eq!((sent(&mut calls), calls.poll_at()), (2, None));
        calls.on_message(at(1), &rpc::begin_reply(1, 0).finish());
        calls.on_reconnected();
        assert_eq!(sent(&mut calls), 1);
    }
}
