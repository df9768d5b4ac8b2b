//! One rank among those of a collective: the few messages that algorithms are made of.
//!
//! Model:   all messages of a kind have one tag above those of programs; that none overtakes another between two ranks is
//!          what keeps calls apart. Where both know that a message has no bytes there is none. Sends and receives of one step
//!          are posted together, so that no step relies on a library's buffers.
//! Units:   bytes; ranks of the group.

use std::ops::Range;

use crate::{
    Comm, Error, Kind, Messenger, Op, Parts, Result, Source, Status, TAG_MAX, Tag, Tagged,
};

/// The tag of the first kind; the others follow in the order of [`Kind::ALL`].
const TAG_FIRST: Tag = TAG_MAX + 1_000;

/// The kind of collective that sonde makes of messages with this tag; none of a program's tags.
pub fn made_of(tag: Tag) -> Option<Kind> {
    let kind = tag.checked_sub(TAG_FIRST)?;
    Kind::ALL.get(kind as usize).copied()
}

/// Messages posted at once where a rank has some for all others.
pub(super) const POSTED_MAX: usize = 64;

const NOTHING: Status = Status {
    from: 0,
    tag: 0,
    bytes: 0,
};

/// Memory of a communicator's algorithms, kept from call to call.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// What is combined, or on its way.
    pub main: Vec<u8>,
    /// What comes in meanwhile.
    pub other: Vec<u8>,
    /// Where parts begin; one more than there are.
    pub begins: Vec<usize>,
}

/// A `Vec` at least so long, and its first bytes. What they hold is of no meaning.
pub(super) fn room(of: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if of.len() < bytes {
        of.resize(bytes, 0);
    }
    &mut of[..bytes]
}

/// Where the parts of consecutive ranks begin, `first` first, and where the last one ends.
pub(super) fn lay_out<'s>(
    begins: &'s mut Vec<usize>,
    parts: &Parts<'_>,
    first: usize,
    size: usize,
) -> &'s [usize] {
    begins.clear();
    begins.push(0);
    let mut end = 0;
    for index in 0..size {
        end += parts.of((first + index) % size);
        begins.push(end);
    }
    begins
}

/// Where rows of elements are cut into so many segments, as even as may be: `count + 1` entries, in bytes.
pub(super) fn cut(begins: &mut Vec<usize>, bytes: usize, element: usize, count: usize) -> &[usize] {
    let elements = bytes / element;
    let (each, more) = (elements / count, elements % count);
    begins.clear();
    begins.extend((0..=count).map(|index| element * (index * each + index.min(more))));
    begins
}

/// Two ranges that do not touch, to be sent from the one and received to the other.
pub(super) fn apart(
    bytes: &mut [u8],
    sent: Range<usize>,
    room: Range<usize>,
) -> (&[u8], &mut [u8]) {
    if sent.end <= room.start {
        let (front, back) = bytes.split_at_mut(room.start);
        (&front[sent], &mut back[..room.len()])
    } else {
        let (front, back) = bytes.split_at_mut(sent.start);
        (&back[..sent.len()], &mut front[room])
    }
}

/// A rank, the group and the tag of a call.
pub(super) struct Team<'a, M: Messenger + ?Sized> {
    messenger: &'a mut M,
    comm: Comm,
    tag: Tag,
    pub rank: usize,
    pub size: usize,
}

impl<'a, M: Messenger + ?Sized> Team<'a, M> {
    /// For calls of this kind.
    pub fn new(messenger: &'a mut M, comm: Comm, kind: Kind) -> Self {
        let (rank, size) = (messenger.rank(comm), messenger.size(comm));
        Self {
            messenger,
            comm,
            tag: TAG_FIRST + kind as Tag,
            rank,
            size,
        }
    }

    /// The rank so many after this one, around.
    pub const fn after(&self, distance: usize) -> usize {
        (self.rank + distance) % self.size
    }

    /// The rank so many (at most as many as there are) before this one, around.
    pub const fn before(&self, distance: usize) -> usize {
        (self.rank + self.size - distance) % self.size
    }

    /// This rank's number when the root's is zero.
    pub const fn seen_from(&self, root: usize) -> usize {
        (self.rank + self.size - root) % self.size
    }

    /// Sends a message that may be empty.
    pub fn signal(&mut self, to: usize) -> Result<()> {
        self.messenger.send(self.comm, to, self.tag, &[])
    }

    /// Receives an empty message.
    pub fn await_signal(&mut self, from: usize) -> Result<()> {
        let tagged = Tagged::With(self.tag);
        self.messenger
            .recv(self.comm, Source::Rank(from), tagged, &mut [])?;
        Ok(())
    }

    /// An empty message to the one and from the other.
    pub fn swap_signals(&mut self, to: usize, from: usize) -> Result<()> {
        self.post(to, &[], from, &mut [])
    }

    /// Sends, unless there is nothing to.
    pub fn send(&mut self, to: usize, payload: &[u8]) -> Result<()> {
        if payload.is_empty() {
            return Ok(());
        }
        self.messenger.send(self.comm, to, self.tag, payload)
    }

    /// Receives as many bytes as there is room for, unless there is none.
    pub fn recv(&mut self, from: usize, room: &mut [u8]) -> Result<()> {
        if room.is_empty() {
            return Ok(());
        }
        let tagged = Tagged::With(self.tag);
        let status = self
            .messenger
            .recv(self.comm, Source::Rank(from), tagged, room)?;
        filled(status, room.len())
    }

    /// Sends to the one and receives from the other at once.
    pub fn swap(&mut self, to: usize, payload: &[u8], from: usize, room: &mut [u8]) -> Result<()> {
        match (payload.is_empty(), room.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => self.recv(from, room),
            (false, true) => self.send(to, payload),
            (false, false) => self.post(to, payload, from, room),
        }
    }

    fn post(&mut self, to: usize, payload: &[u8], from: usize, room: &mut [u8]) -> Result<()> {
        let wanted = room.len();
        let mut statuses = [NOTHING; 2];
        let mut ops = [
            Op::Recv {
                from: Source::Rank(from),
                tag: Tagged::With(self.tag),
                room,
            },
            Op::Send {
                to,
                tag: self.tag,
                payload,
            },
        ];
        self.messenger
            .exchange(self.comm, &mut ops, &mut statuses)?;
        filled(statuses[0], wanted)
    }

    /// The messages that were collected, at once.
    pub fn post_all(&mut self, posts: &mut Posts<'_>) -> Result<()> {
        let mut statuses = [NOTHING; POSTED_MAX];
        let ops = &mut posts.ops[..posts.count];
        if ops.is_empty() {
            return Ok(());
        }
        let tag = self.tag;
        for op in ops.iter_mut() {
            match op {
                Op::Send { tag: of, .. } => *of = tag,
                Op::Recv { tag: of, .. } => *of = Tagged::With(tag),
            }
        }
        let statuses = &mut statuses[..ops.len()];
        self.messenger.exchange(self.comm, ops, statuses)?;
        for (op, status) in ops.iter().zip(statuses) {
            if let Op::Recv { room, .. } = op {
                filled(*status, room.len())?;
            }
        }
        Ok(())
    }
}

/// Messages collected to be posted at once, at most [`POSTED_MAX`]; empty ones are left out.
pub(super) struct Posts<'b> {
    ops: [Op<'b>; POSTED_MAX],
    count: usize,
}

impl<'b> Posts<'b> {
    /// None yet.
    pub fn new() -> Self {
        let none = |_| Op::Send {
            to: 0,
            tag: 0,
            payload: &[],
        };
        Self {
            ops: std::array::from_fn(none),
            count: 0,
        }
    }

    /// One to send.
    pub fn send(&mut self, to: usize, payload: &'b [u8]) {
        if !payload.is_empty() {
            self.add(Op::Send {
                to,
                tag: 0,
                payload,
            });
        }
    }

    /// One to receive.
    pub fn recv(&mut self, from: usize, room: &'b mut [u8]) {
        if !room.is_empty() {
            self.add(Op::Recv {
                from: Source::Rank(from),
                tag: Tagged::Any,
                room,
            });
        }
    }

    fn add(&mut self, op: Op<'b>) {
        self.ops[self.count] = op;
        self.count += 1;
    }
}

/// That a message is as long as all ranks should have it.
fn filled(status: Status, wanted: usize) -> Result<()> {
    if status.bytes == wanted {
        return Ok(());
    }
    Err(Error::Argument {
        what: "the length of a collective's message",
        value: format!("{} bytes from rank {}", status.bytes, status.from),
        wanted: format!("{wanted}: all ranks make the same calls in the same order"),
    })
}

/// The greatest power of two of ranks among all, for algorithms that need one.
///
/// Of `size - power` pairs of neighbours the first, or as asked for the second, sits out: it gives its data to the other
/// beforehand and gets the result afterwards. Those who stay are numbered in the order of their ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Core {
    power: usize,
    pairs: usize,
    /// Who stays of its pair though it is the first.
    stays: Option<usize>,
}

/// What a rank does in the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// It has this number, and nobody to act for.
    Alone(usize),
    /// It has this number, and acts for that rank too.
    For(usize, usize),
    /// That rank acts for it.
    Out(usize),
}

impl Core {
    /// Of so many ranks, one of which must not sit out.
    pub fn new(size: usize, stays: Option<usize>) -> Self {
        let power = super::choice::floor_power(size);
        Self {
            power,
            pairs: size - power,
            stays,
        }
    }

    /// How many are in it: a power of two.
    pub const fn size(&self) -> usize {
        self.power
    }

    /// What a rank does.
    pub fn part(&self, rank: usize) -> Part {
        if rank >= 2 * self.pairs {
            return Part::Alone(rank - self.pairs);
        }
        let number = rank / 2;
        if self.rank(number) == rank {
            Part::For(number, rank ^ 1)
        } else {
            Part::Out(rank ^ 1)
        }
    }

    /// The rank with this number.
    pub fn rank(&self, number: usize) -> usize {
        if number >= self.pairs {
            number + self.pairs
        } else if self.stays == Some(2 * number) {
            2 * number
        } else {
            2 * number + 1
        }
    }

    /// The ranks whose data those numbered so have among them.
    pub fn ranks(&self, numbers: Range<usize>) -> Range<usize> {
        let first = |number: usize| number + number.min(self.pairs);
        first(numbers.start)..first(numbers.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_a_power_of_two_and_acts_for_all() {
        for size in 1..70 {
            for stays in (0..size).map(Some).chain([None]) {
                let core = Core::new(size, stays);
                let mut seen = vec![0; size];
                for number in 0..core.size() {
                    let rank = core.rank(number);
                    seen[rank] += 1;
                    match core.part(rank) {
                        Part::Alone(own) => assert_eq!(own, number),
                        Part::For(own, other) => {
                            assert_eq!(own, number);
                            assert_eq!(core.part(other), Part::Out(rank));
                            seen[other] += 1;
                        }
                        Part::Out(_) => panic!("{rank} of {size} is in the core"),
                    }
                    assert!(core.ranks(number..number + 1).contains(&rank));
                }
                assert!(seen.iter().all(|times| *times == 1), "{size} {stays:?}");
                assert_eq!(core.ranks(0..core.size()), 0..size);
                assert!(stays.is_none_or(|rank| !matches!(core.part(rank), Part::Out(_))));
            }
        }
    }

    #[test]
    fn segments_are_whole_elements_and_all_of_them() {
        let mut begins = Vec::new();
        assert_eq!(cut(&mut begins, 80, 8, 4), [0, 24, 48, 64, 80]);
        assert_eq!(cut(&mut begins, 8, 8, 3), [0, 8, 8, 8]);
        assert_eq!(
            lay_out(&mut begins, &Parts::Each(&[1, 2, 3]), 2, 3),
            [0, 3, 4, 6]
        );
    }
}
