//! Letters over one messenger: what is sent and not yet gone, what has come, and the end in order.
//!
//! Model:   letters go as requests, so that no rank waits for another to send; what comes is found by probing. A rank ends
//!          when a tree of all ranks has told upwards that each wants to and has sent what it had, and downwards that all do;
//!          until then it goes on.
//! Units:   bytes; ranks of the world.

use std::collections::VecDeque;

use crate::letters::LETTER_TAG;
use crate::{Comm, Error, Messenger, Request, Result, Source, Tag, Tagged};

/// The tag of what is told when ranks end.
const LEAVE_TAG: Tag = LETTER_TAG + 1;

/// A messenger that carries letters.
#[derive(Debug)]
pub(crate) struct Postbox<M> {
    pub inner: M,
    leaving: VecDeque<Request>,
    /// From whom letters come.
    sources: Vec<Source>,
    turn: usize,
}

impl<M: Messenger> Postbox<M> {
    /// For letters from these ranks.
    ///
    /// # Errors
    /// The messenger cannot probe.
    pub fn new(inner: M, from: &[usize]) -> Result<Self> {
        let capabilities = inner.capabilities();
        if !capabilities.probe {
            return Err(Error::Missing {
                library: inner.library(),
                what: "probe, without which it cannot carry messages of others".into(),
            });
        }
        let sources = if capabilities.wildcards {
            vec![Source::Any]
        } else {
            from.iter().copied().map(Source::Rank).collect()
        };
        Ok(Self {
            inner,
            leaving: VecDeque::new(),
            sources,
            turn: 0,
        })
    }

    /// Sends a letter when it can.
    pub fn post(&mut self, to: usize, bytes: Vec<u8>) -> Result<()> {
        let request = self.inner.isend(Comm::WORLD, to, LETTER_TAG, bytes)?;
        self.leaving.push_back(request);
        Ok(())
    }

    /// Moves what can be moved.
    pub fn progress(&mut self) -> Result<()> {
        self.inner.progress()?;
        for _ in 0..self.leaving.len() {
            let request = self.leaving.pop_front().expect("as many as there are");
            if let Err(request) = self.inner.test(request)? {
                self.leaving.push_back(request);
            }
        }
        Ok(())
    }

    /// Whether all that was posted is gone.
    pub fn is_sent(&self) -> bool {
        self.leaving.is_empty()
    }

    /// A letter that has come.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>> {
        let tag = Tagged::With(LETTER_TAG);
        for _ in 0..self.sources.len() {
            let source = self.sources[self.turn];
            self.turn = (self.turn + 1) % self.sources.len();
            if let Some(status) = self.inner.iprobe(Comm::WORLD, source, tag)? {
                let mut bytes = vec![0; status.bytes];
                let from = Source::Rank(status.from);
                self.inner.recv(Comm::WORLD, from, tag, &mut bytes)?;
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}

/// Where a rank stands when all end.
#[derive(Debug)]
pub(crate) struct Leaving {
    parent: Option<usize>,
    children: Vec<usize>,
    /// Children not heard of.
    awaited: Vec<usize>,
    told: bool,
}

impl Leaving {
    /// In a tree.
    pub fn new(parent: Option<usize>, children: Vec<usize>) -> Self {
        Self {
            parent,
            awaited: children.clone(),
            children,
            told: false,
        }
    }

    /// Whether all ranks want to leave. `way_to`: by which messenger a rank is told; `is_ready`: this one has nothing left to
    /// send.
    pub fn poll<M: Messenger>(
        &mut self,
        ways: &mut [Postbox<M>],
        way_to: impl Fn(usize) -> usize,
        is_ready: bool,
    ) -> Result<bool> {
        let mut index = 0;
        while index < self.awaited.len() {
            if heard(ways, self.awaited[index])? {
                self.awaited.swap_remove(index);
            } else {
                index += 1;
            }
        }
        let tell = |ways: &mut [Postbox<M>], rank: usize| {
            let way = &mut ways[way_to(rank)].inner;
            way.send(Comm::WORLD, rank, LEAVE_TAG, &[])
        };
        if !self.told {
            if !self.awaited.is_empty() || !is_ready {
                return Ok(false);
            }
            self.told = true;
            if let Some(parent) = self.parent {
                tell(ways, parent)?;
            }
        }
        if let Some(parent) = self.parent {
            if !heard(ways, parent)? {
                return Ok(false);
            }
        }
        for child in &self.children {
            tell(ways, *child)?;
        }
        Ok(true)
    }

    /// Who is waited for.
    pub fn awaited(&self) -> Option<usize> {
        self.awaited.first().copied().or(self.parent)
    }
}

fn heard<M: Messenger>(ways: &mut [Postbox<M>], from: usize) -> Result<bool> {
    let (from, tag) = (Source::Rank(from), Tagged::With(LEAVE_TAG));
    for way in ways {
        if way.inner.iprobe(Comm::WORLD, from, tag)?.is_some() {
            way.inner.recv(Comm::WORLD, from, tag, &mut [])?;
            return Ok(true);
        }
    }
    Ok(false)
}
