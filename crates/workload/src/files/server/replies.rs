//! The cache of replies: what is being worked on, and what must not be done twice.
//!
//! Model:   a call is known from when it is taken until it is answered, and from then on only if its reply is kept. The oldest
//!          kept replies go first.
//! Source:  Juszczak 1989, as the server's head says.
//! Checked: `a_call_that_comes_again_is_done_once` of `server/tests.rs`.

use super::Caller;
use crate::files::rpc::{CallHeader, Procedure};
use std::collections::{BTreeMap, VecDeque};

/// A call of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    caller: Caller,
    xid: u32,
    procedure: Procedure,
}

impl Key {
    pub(super) fn new(caller: Caller, header: &CallHeader<'_>) -> Self {
        Self {
            caller,
            xid: header.xid,
            procedure: header.procedure,
        }
    }
}

/// What is known of a call.
#[derive(Debug)]
pub(super) enum Known {
    InProgress,
    Replied(Vec<u8>),
}

#[derive(Debug)]
pub(super) struct Replies {
    known: BTreeMap<Key, State>,
    kept: VecDeque<Key>,
    most: usize,
}

#[derive(Debug)]
struct State {
    known: Known,
    is_kept: bool,
}

impl Replies {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            kept: VecDeque::new(),
            most,
        }
    }

    pub(super) fn known(&self, key: &Key) -> Option<&Known> {
        self.known.get(key).map(|state| &state.known)
    }

    pub(super) fn begin(&mut self, key: Key) {
        let state = State {
            known: Known::InProgress,
            is_kept: self.most > 0,
        };
        self.known.insert(key, state);
    }

    /// Its reply is not to be kept.
    pub(super) fn drop_reply(&mut self, key: Key) {
        if let Some(state) = self.known.get_mut(&key) {
            state.is_kept = false;
        }
    }

    pub(super) fn end(&mut self, key: Key, reply: &[u8]) {
        match self.known.get_mut(&key) {
            Some(state) if state.is_kept => {
                state.known = Known::Replied(reply.to_vec());
                self.kept.push_back(key);
            }
            Some(_) => drop(self.known.remove(&key)),
            None => {}
        }
        while self.kept.len() > self.most {
            if let Some(oldest) = self.kept.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    pub(super) fn forget(&mut self, caller: Caller) {
        self.known.retain(|key, _| key.caller != caller);
        self.kept.retain(|key| key.caller != caller);
    }
}
