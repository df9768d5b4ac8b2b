//! Which receive a message belongs to, at a cost that does not grow with how many of either wait.
//!
//! Model:   receives wait in lists by what they take: (group, sender, tag), each of the two perhaps any. A message looks at
//!          the heads of the at most four lists that take it; the receive that was posted first, by its number, has it.
//!          Lists of kinds of which none waits are not looked at. Messages that nobody waits for are in the list of their
//!          own (group, sender, tag), and, from the first receive with a wildcard on, in the three others that would find
//!          them too; a receive looks at the head of one list.
//! Source:  the semantics are MPI 4.0 §3.5; hashed lists with numbers of posting as in Flajslik et al. 2016, "Mitigating MPI
//!          message matching misery". Deviations: a receive of any tag takes none above [`TAG_MAX`]: those are of
//!          collectives.
//! Checked: `the_first_posted_has_it`, `matches_as_a_plain_list_does`; bench `matching`.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::{TAG_MAX, Tag};

const NONE: u32 = u32::MAX;
/// Any sender, or any tag, in a key.
const ANY: u32 = u32::MAX;

/// The kinds of lists, as bits.
const ANY_TAG: usize = 1;
const ANY_SOURCE: usize = 2;
const KINDS: usize = 4;

/// What a message says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The group, by its agreed number.
    pub context: u32,
    /// The sender, in the world.
    pub source: u32,
    /// What it is for.
    pub tag: Tag,
}

/// What a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// The group, by its agreed number.
    pub context: u32,
    /// The sender, in the world; `None` for any.
    pub source: Option<u32>,
    /// The tag; `None` for any up to [`TAG_MAX`].
    pub tag: Option<Tag>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    context: u32,
    source: u32,
    tag: u32,
}

/// Multiplies and folds: keys come from ranks that know the run's token, not from strangers.
#[derive(Debug, Default)]
pub struct Fold(u64);

impl Hasher for Fold {
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(23) ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Map = HashMap<Key, List, BuildHasherDefault<Fold>>;

#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

/// A receive that waits.
#[derive(Debug, Clone, Copy)]
struct Posted {
    number: u64,
    token: u32,
    next: u32,
}

/// A message that waits.
#[derive(Debug, Clone, Copy)]
struct Arrived {
    envelope: Envelope,
    token: u32,
    number: u64,
    is_there: bool,
    /// Before and after it in the list of each kind.
    before: [u32; KINDS],
    after: [u32; KINDS],
}

/// Receives that wait for messages, and messages that wait for receives. Each is known by a token of its owner's.
#[derive(Debug, Default)]
pub struct Matching {
    posted: Map,
    posts: Vec<Posted>,
    free_posts: Vec<u32>,
    waiting: [usize; KINDS],
    number: u64,
    arrived: Map,
    arrivals: Vec<Arrived>,
    free_arrivals: Vec<u32>,
    /// Whether a wildcard was used, from when on messages are in the lists that those look at.
    wild: bool,
    unexpected: usize,
}

impl Envelope {
    #[inline]
    fn key(self, kind: usize) -> Key {
        Key {
            context: self.context,
            source: if kind & ANY_SOURCE == 0 {
                self.source
            } else {
                ANY
            },
            tag: if kind & ANY_TAG == 0 { self.tag } else { ANY },
        }
    }

    /// Whether receives of this kind may take it.
    #[inline]
    fn is_for(self, kind: usize) -> bool {
        kind & ANY_TAG == 0 || self.tag <= TAG_MAX
    }
}

impl Pattern {
    #[inline]
    fn kind(self) -> usize {
        usize::from(self.tag.is_none()) * ANY_TAG + usize::from(self.source.is_none()) * ANY_SOURCE
    }

    #[inline]
    fn key(self) -> Key {
        Key {
            context: self.context,
            source: self.source.unwrap_or(ANY),
            tag: self.tag.unwrap_or(ANY),
        }
    }
}

impl Matching {
    /// A receive waits: no message that is there was for it.
    #[inline]
    pub fn post(&mut self, pattern: Pattern, token: u32) {
        let post = Posted {
            number: self.number,
            token,
            next: NONE,
        };
        self.number += 1;
        let index = place(&mut self.posts, &mut self.free_posts, post);
        self.waiting[pattern.kind()] += 1;
        let posts = &mut self.posts;
        self.posted
            .entry(pattern.key())
            .and_modify(|list| {
                posts[list.tail as usize].next = index;
                list.tail = index;
            })
            .or_insert(List {
                head: index,
                tail: index,
            });
    }

    /// The receive that a message is for, which waits no longer.
    #[inline]
    pub fn claim(&mut self, envelope: Envelope) -> Option<u32> {
        let mut first: Option<(u64, usize)> = None;
        for kind in 0..KINDS {
            if self.waiting[kind] == 0 || !envelope.is_for(kind) {
                continue;
            }
            if let Some(list) = self.posted.get(&envelope.key(kind)) {
                let number = self.posts[list.head as usize].number;
                if first.is_none_or(|(least, _)| number < least) {
                    first = Some((number, kind));
                }
            }
        }
        let (_, kind) = first?;
        self.waiting[kind] -= 1;
        let std::collections::hash_map::Entry::Occupied(mut list) =
            self.posted.entry(envelope.key(kind))
        else {
            unreachable!("it was there");
        };
        let head = list.get().head;
        let post = self.posts[head as usize];
        if post.next == NONE {
            list.remove();
        } else {
            list.get_mut().head = post.next;
        }
        self.free_posts.push(head);
        Some(post.token)
    }

    /// A message waits: no receive was for it.
    #[inline]
    pub fn arrive(&mut self, envelope: Envelope, token: u32) {
        let arrival = Arrived {
            envelope,
            token,
            number: self.number,
            is_there: true,
            before: [NONE; KINDS],
            after: [NONE; KINDS],
        };
        let index = place(&mut self.arrivals, &mut self.free_arrivals, arrival);
        self.number += 1;
        self.unexpected += 1;
        self.enlist(index, 0);
        if self.wild {
            (1..KINDS).for_each(|kind| self.enlist(index, kind));
        }
    }

    /// The message that a receive would have.
    #[inline]
    pub fn find(&mut self, pattern: Pattern) -> Option<u32> {
        self.head(pattern)
            .map(|index| self.arrivals[index as usize].token)
    }

    /// The message that a receive has, which waits no longer.
    #[inline]
    pub fn take(&mut self, pattern: Pattern) -> Option<u32> {
        let index = self.head(pattern)?;
        self.delist(index, 0);
        if self.wild {
            (1..KINDS).for_each(|kind| self.delist(index, kind));
        }
        self.arrivals[index as usize].is_there = false;
        self.unexpected -= 1;
        self.free_arrivals.push(index);
        Some(self.arrivals[index as usize].token)
    }

    /// How many receives wait.
    pub fn posted(&self) -> usize {
        self.waiting.iter().sum()
    }

    /// How many messages wait.
    pub fn unexpected(&self) -> usize {
        self.unexpected
    }

    #[inline]
    fn head(&mut self, pattern: Pattern) -> Option<u32> {
        if self.unexpected == 0 {
            return None;
        }
        if pattern.kind() != 0 && !self.wild {
            self.index_for_wildcards();
        }
        self.arrived.get(&pattern.key()).map(|list| list.head)
    }

    #[cold]
    fn index_for_wildcards(&mut self) {
        self.wild = true;
        let mut there: Vec<u32> = (0..self.arrivals.len() as u32)
            .filter(|index| self.arrivals[*index as usize].is_there)
            .collect();
        there.sort_unstable_by_key(|index| self.arrivals[*index as usize].number);
        for index in there {
            (1..KINDS).for_each(|kind| self.enlist(index, kind));
        }
    }

    fn enlist(&mut self, index: u32, kind: usize) {
        let envelope = self.arrivals[index as usize].envelope;
        if !envelope.is_for(kind) {
            return;
        }
        let arrivals = &mut self.arrivals;
        self.arrived
            .entry(envelope.key(kind))
            .and_modify(|list| {
                arrivals[list.tail as usize].after[kind] = index;
                arrivals[index as usize].before[kind] = list.tail;
                list.tail = index;
            })
            .or_insert(List {
                head: index,
                tail: index,
            });
    }

    fn delist(&mut self, index: u32, kind: usize) {
        let arrival = self.arrivals[index as usize];
        if !arrival.envelope.is_for(kind) {
            return;
        }
        let (before, after) = (arrival.before[kind], arrival.after[kind]);
        if before != NONE {
            self.arrivals[before as usize].after[kind] = after;
        }
        if after != NONE {
            self.arrivals[after as usize].before[kind] = before;
        }
        if before != NONE && after != NONE {
            return;
        }
        let std::collections::hash_map::Entry::Occupied(mut list) =
            self.arrived.entry(arrival.envelope.key(kind))
        else {
            unreachable!("it was there");
        };
        match (before, after) {
            (NONE, NONE) => {
                list.remove();
            }
            (NONE, after) => list.get_mut().head = after,
            (before, _) => list.get_mut().tail = before,
        }
    }
}

/// Puts a thing where one was before, or at the end.
#[inline]
fn place<T>(all: &mut Vec<T>, free: &mut Vec<u32>, thing: T) -> u32 {
    match free.pop() {
        Some(index) => {
            all[index as usize] = thing;
            index
        }
        None => {
            all.push(thing);
            all.len() as u32 - 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(source: Option<u32>, tag: Option<Tag>) -> Pattern {
        Pattern {
            context: 0,
            source,
            tag,
        }
    }

    fn from(source: u32, tag: Tag) -> Envelope {
        Envelope {
            context: 0,
            source,
            tag,
        }
    }

    #[test]
    fn the_first_posted_has_it() {
        let mut matching = Matching::default();
        matching.post(pattern(Some(1), Some(5)), 10);
        matching.post(pattern(None, None), 11);
        matching.post(pattern(Some(1), None), 12);
        matching.post(pattern(None, Some(5)), 13);
        assert_eq!(matching.claim(from(1, 6)), Some(11));
        assert_eq!(matching.claim(from(1, 5)), Some(10));
        assert_eq!(matching.claim(from(1, TAG_MAX + 1)), None);
        assert_eq!(matching.claim(from(2, 6)), None);
        assert_eq!(matching.claim(from(1, 5)), Some(12));
        assert_eq!(matching.claim(from(1, 5)), Some(13));
        assert_eq!((matching.posted(), matching.unexpected()), (0, 0));
    }

    /// What is done: a receive or a message, of few groups, ranks and tags.
    fn steps() -> impl Strategy<Value = Vec<(bool, u32, Option<u32>, Option<Tag>)>> {
        let tag = prop_oneof![Just(0), Just(1), Just(TAG_MAX), Just(TAG_MAX + 1)];
        let step = (
            any::<bool>(),
            0..2_u32,
            proptest::option::weighted(0.7, 0..3_u32),
            proptest::option::weighted(0.7, tag),
        );
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn matches_as_a_plain_list_does(steps in steps()) {
            let mut matching = Matching::default();
            let mut posts: Vec<(Pattern, u32)> = Vec::new();
            let mut waits: Vec<(Envelope, u32)> = Vec::new();
            let fits = |pattern: &Pattern, envelope: &Envelope| {
                pattern.context == envelope.context
                    && pattern.source.is_none_or(|source| source == envelope.source)
                    && pattern.tag.map_or(envelope.tag <= TAG_MAX, |tag| tag == envelope.tag)
            };
            for (token, (is_receive, context, source, tag)) in (0..).zip(steps) {
                if is_receive {
                    let pattern = Pattern { context, source, tag };
                    let there = waits.iter().position(|(envelope, _)| fits(&pattern, envelope));
                    prop_assert_eq!(matching.find(pattern), there.map(|at| waits[at].1));
                    prop_assert_eq!(matching.take(pattern), there.map(|at| waits.remove(at).1));
                    if there.is_none() {
                        matching.post(pattern, token);
                        posts.push((pattern, token));
                    }
                } else {
                    let envelope = Envelope {
                        context,
                        source: source.unwrap_or(0),
                        tag: tag.unwrap_or(0),
                    };
                    let there = posts.iter().position(|(pattern, _)| fits(pattern, &envelope));
                    prop_assert_eq!(matching.claim(envelope), there.map(|at| posts.remove(at).1));
                    if there.is_none() {
                        matching.arrive(envelope, token);
                        waits.push((envelope, token));
                    }
                }
                prop_assert_eq!((matching.posted(), matching.unexpected()), (posts.len(), waits.len()));
            }
        }
    }
}
