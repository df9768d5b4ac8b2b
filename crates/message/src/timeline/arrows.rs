//! Which receive took which send, for the arrows of a picture.
//!
//! Model:   messages of one sender, receiver and tag overtake each other nowhere: the first send goes with the first receive.
//!          What one of both ends did not keep has no arrow. Groups that use one tag between the same two ranks are not told
//!          apart. An arrow begins with the call that sent and ends with the one that received.
//! Units:   nanoseconds, as the recordings have them.
//! Checked: `a_trace_of_four_ranks_has_its_fields`, `arrows_join_sends_and_receives_in_their_order`.

use std::collections::{BTreeMap, VecDeque};

use super::event::What;
use super::{RankTrace, Recording};
use crate::Tag;
use crate::counted::Direction;

/// A message from its send to its receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrow {
    pub from: usize,
    pub to: usize,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// A message that a rank sent or received: when its call began and ended.
struct End {
    way: Direction,
    peer: usize,
    tag: Tag,
    call: (u64, u64),
}

fn ends(recording: &Recording) -> impl Iterator<Item = End> + '_ {
    let mut call = (0, 0);
    recording.events.iter().filter_map(move |event| {
        if let What::Call(_) = event.what {
            call = (event.begin_ns, event.end_ns);
        }
        Some(End {
            way: event.way?,
            peer: event.peer? as usize,
            tag: event.tag?,
            call,
        })
    })
}

/// All of them, in the order of their receivers.
pub(super) fn arrows(ranks: &[RankTrace]) -> Vec<Arrow> {
    let mut sent: BTreeMap<(usize, usize, Tag), VecDeque<u64>> = BTreeMap::new();
    for (rank, one) in ranks.iter().enumerate() {
        for end in ends(&one.recording).filter(|end| end.way == Direction::Sent) {
            let way = (rank, end.peer, end.tag);
            sent.entry(way).or_default().push_back(end.call.0);
        }
    }
    let mut all = Vec::new();
    for (rank, one) in ranks.iter().enumerate() {
        for end in ends(&one.recording).filter(|end| end.way == Direction::Received) {
            let begin = sent.get_mut(&(end.peer, rank, end.tag));
            let Some(begin_ns) = begin.and_then(VecDeque::pop_front) else {
                continue;
            };
            // Its last moment, which is still within it.
            let (began_ns, ended_ns) = end.call;
            all.push(Arrow {
                from: end.peer,
                to: rank,
                begin_ns,
                end_ns: ended_ns.saturating_sub(1).max(began_ns),
            });
        }
    }
    all
}
