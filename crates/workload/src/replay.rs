//! Synthetic replay: the messages of a program by their statistic alone, without what it computes.
//!
//! Model:   a [`Statistic`] tells how many messages there are, how long they are on average and at the median; a [`Graph`] who
//!          sends to whom. Of all lengths with this statistic those are taken that leave the median least: where the mean
//!          is above it, the ones above share what is left evenly and the ones below are as long as the median, else the
//!          other way round. Lengths are shuffled (by the seed) over the messages; each pair has its share of these, by the
//!          graph's weights, as even as may be. Messages go in steps. In a step every rank sends to the rank a fixed distance on, where
//!          it has one left for it, and receives from the one as far back: one message each way at the most, posted together. All
//!          ranks have the steps in the same order, so that the first step that has not ended can always go on, whatever a
//!          library buffers: nothing locks up.
//! Source:  requirement U27; the median is the lower one of an even number, as in the profile. Deviations: bytes of a matrix are
//!          not used, for they tell no median; its messages are.
//! Units:   bytes, messages of all ranks together; nanoseconds.
//! Checked: [`launch`] by its own; `lengths_have_their_statistic`, `what_cannot_be_is_refused_and_nothing_else`, `sequences_are_whole_and_lock_nothing_up`,
//!          `a_replay_is_counted_as_its_statistic`, `kernels_are_as_the_paper_has_them`.

pub mod launch;
pub mod upc;

use std::collections::BTreeMap;
use std::str::FromStr;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_message::collectives::{Choice, Communicator};
use sonde_message::{Comm, Error, Messenger, Op, Source, Status, Tag, Tagged};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::thread_cpu_ns;
use sonde_units::{Matrix, Shapeless, Topology};

/// More are not replayed: a rank keeps 16 B for each.
pub const MESSAGES_MAX: u64 = 1 << 22;
/// The longest message that a statistic is thought to be of.
pub const BYTES_MAX: u64 = 1 << 30;

const TAG: Tag = 27;

/// What is known of a program's messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistic {
    /// How many, of all ranks together.
    pub messages: u64,
    /// Their mean length in bytes.
    pub bytes_mean: f64,
    /// Their median length in bytes; of an even number the lower one.
    pub bytes_median: u64,
}

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq)]
pub enum Graph {
    /// Every rank to every other, as often.
    AllToAll,
    /// Every rank to its neighbours, as often: `ring`, `mesh`, `torus:2x3`, as [`Topology`] reads it.
    Neighbours(String),
    /// As often as a matrix says. What a rank sends to itself is left out.
    Matrix(Matrix),
}

impl FromStr for Graph {
    type Err = std::convert::Infallible;

    /// `all-to-all`, or a topology, which is checked when the ranks are known.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "all-to-all" => Self::AllToAll,
            _ => Self::Neighbours(text.into()),
        })
    }
}

/// Why there is no such sequence.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// No messages have no mean.
    #[error("no message has neither mean nor median: a statistic is of 1 message or more")]
    Nothing,
    /// A rank would keep too much.
    #[error(
        "{0} messages are more than {MESSAGES_MAX}: replay a part of them, with the same mean and median"
    )]
    TooMany(u64),
    /// The mean is no length.
    #[error("the mean length is {0} B, and must be a number from 0 on")]
    Mean(f64),
    /// No lengths have this statistic.
    #[error(
        "no {messages} messages of at most {bytes_max} B have a median of {bytes_median} B and a mean of {bytes_mean} B: {why}"
    )]
    Infeasible {
        /// How many.
        messages: u64,
        /// The mean that was asked for.
        bytes_mean: f64,
        /// The median that was asked for.
        bytes_median: u64,
        /// The longest that was allowed.
        bytes_max: u64,
        /// What is in the way.
        why: String,
    },
    /// The graph has nobody who sends.
    #[error(
        "among {0} ranks of this graph nobody sends to another: take more ranks or another graph"
    )]
    Silent(usize),
    /// A matrix of other ranks.
    #[error("the matrix is of {matrix} ranks, and there are {ranks}: run as many as it has")]
    Ranks {
        /// Of the matrix.
        matrix: usize,
        /// That there are.
        ranks: usize,
    },
    /// The topology is none of so many ranks.
    #[error("{0}, or all-to-all")]
    Shape(#[from] Shapeless),
}

impl Statistic {
    /// Lengths with this statistic, none above `bytes_max`: as many, their mean within half a byte of all together, the
    /// median exactly. Shortest first, but for a byte.
    ///
    /// # Errors
    /// [`Refused`]: there are none.
    pub fn lengths(&self, bytes_max: u64) -> Result<Vec<u64>, Refused> {
        let (total, [below, _]) = self.parts(bytes_max)?;
        let (count, median) = (u128::from(self.messages), u128::from(self.bytes_median));
        let mut lengths = vec![self.bytes_median; self.messages as usize];
        let (front, back) = lengths.split_at_mut(below as usize);
        if total >= count * median {
            share(total - count * median, &mut back[1..], u64::checked_add);
        } else {
            share(count * median - total, front, u64::checked_sub);
        }
        Ok(lengths)
    }

    /// The longest of [`lengths`](Self::lengths), without making them.
    ///
    /// # Errors
    /// Those of [`lengths`](Self::lengths).
    pub fn longest(&self, bytes_max: u64) -> Result<u64, Refused> {
        let (total, [_, above]) = self.parts(bytes_max)?;
        let least = u128::from(self.messages) * u128::from(self.bytes_median);
        let more = total.saturating_sub(least).div_ceil(above.max(1));
        Ok(self.bytes_median + more as u64)
    }

    /// The sum of all lengths, and how many stand before and behind the median.
    fn parts(&self, bytes_max: u64) -> Result<(u128, [u128; 2]), Refused> {
        match self.messages {
            0 => return Err(Refused::Nothing),
            count if count > MESSAGES_MAX => return Err(Refused::TooMany(count)),
            _ => {}
        }
        if !(self.bytes_mean.is_finite() && self.bytes_mean >= 0.0) {
            return Err(Refused::Mean(self.bytes_mean));
        }
        let count = u128::from(self.messages);
        let total = (self.messages as f64 * self.bytes_mean).round() as u128;
        let below = (count - 1) / 2;
        let above = count - 1 - below;
        self.check(total, [below, above], bytes_max)?;
        Ok((total, [below, above]))
    }

    fn check(&self, total: u128, [below, above]: [u128; 2], bytes_max: u64) -> Result<(), Refused> {
        let (median, max) = (u128::from(self.bytes_median), u128::from(bytes_max));
        let (least, most) = ((above + 1) * median, (below + 1) * median + above * max);
        let mean = |total: u128| total as f64 / self.messages as f64;
        let why = if median > max {
            "the median is longer than the longest".into()
        } else if total < least {
            format!(
                "{} are as long as the median or longer, so that the mean is {} B at least",
                above + 1,
                mean(least)
            )
        } else if total > most {
            format!(
                "{} are as long as the median or shorter, so that the mean is {} B at most",
                below + 1,
                mean(most)
            )
        } else {
            return Ok(());
        };
        Err(Refused::Infeasible {
            messages: self.messages,
            bytes_mean: self.bytes_mean,
            bytes_median: self.bytes_median,
            bytes_max,
            why,
        })
    }
}

/// Gives each of `lengths` an equal share of `bytes`, the last ones one byte more where it is not even.
fn share(bytes: u128, lengths: &mut [u64], change: impl Fn(u64, u64) -> Option<u64>) {
    let count = lengths.len() as u128;
    if count == 0 {
        return;
    }
    let (each, more) = ((bytes / count) as u64, (bytes % count) as usize);
    let even = lengths.len() - more;
    for (at, length) in lengths.iter_mut().enumerate() {
        let share = each + u64::from(at >= even);
        *length = change(*length, share).expect("a share was checked to fit");
    }
}

/// A pair of ranks of which the first sends to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edge {
    from: usize,
    to: usize,
    weight: u64,
}

impl Graph {
    /// Refuses what is not a graph of so many ranks.
    ///
    /// # Errors
    /// [`Refused`]: it is of others, or nobody sends.
    pub fn check(&self, ranks: usize) -> Result<(), Refused> {
        self.edges(ranks).map(drop)
    }

    fn edges(&self, ranks: usize) -> Result<Vec<Edge>, Refused> {
        let edge = |from, to, weight| Edge { from, to, weight };
        let all = || (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
        let edges: Vec<Edge> = match self {
            Self::AllToAll => all().map(|(from, to)| edge(from, to, 1)).collect(),
            Self::Neighbours(text) => {
                let topology = Topology::parse(text, ranks)?;
                let of = |from| {
                    topology
                        .neighbours(from)
                        .into_iter()
                        .map(move |to| (from, to))
                };
                let pairs = (0..ranks).flat_map(of);
                pairs.map(|(from, to)| edge(from, to, 1)).collect()
            }
            Self::Matrix(matrix) if matrix.ranks() != ranks => {
                return Err(Refused::Ranks {
                    matrix: matrix.ranks(),
                    ranks,
                });
            }
            Self::Matrix(matrix) => all()
                .map(|(from, to)| edge(from, to, matrix.messages(from, to)))
                .collect(),
        };
        let is_sent = |edge: &Edge| edge.from != edge.to && edge.weight > 0;
        let edges: Vec<Edge> = edges.into_iter().filter(is_sent).collect();
        if edges.is_empty() {
            return Err(Refused::Silent(ranks));
        }
        Ok(edges)
    }
}

/// How many of `messages` each edge has: by weight, the largest remainders first; their sum is exact.
fn apportioned(messages: u64, edges: &[Edge]) -> Vec<u64> {
    let whole: u128 = edges.iter().map(|edge| u128::from(edge.weight)).sum();
    let exact = |edge: &Edge| u128::from(messages) * u128::from(edge.weight);
    let mut counts: Vec<u64> = edges
        .iter()
        .map(|edge| (exact(edge) / whole) as u64)
        .collect();
    let left = messages - counts.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(exact(&edges[*at]) % whole));
    for at in order.into_iter().take(left as usize) {
        counts[at] += 1;
    }
    counts
}

/// A message of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Who sends it.
    pub from: u32,
    /// To whom.
    pub to: u32,
    /// Its length.
    pub bytes: u64,
}

/// All messages of a replay, in steps. The same arguments give the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    ranks: usize,
    messages: Vec<Message>,
    /// Where each step ends.
    ends: Vec<usize>,
}

/// What a rank does in a step in which it has something to do: the other rank, and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What it sends.
    pub send: Option<(usize, usize)>,
    /// What it receives.
    pub recv: Option<(usize, usize)>,
}

impl Sequence {
    /// The messages of a statistic among the ranks of a graph, none longer than `bytes_max`.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn new(
        statistic: &Statistic,
        graph: &Graph,
        ranks: usize,
        bytes_max: u64,
        seed: u64,
    ) -> Result<Self, Refused> {
        let mut lengths = statistic.lengths(bytes_max)?;
        shuffle(&mut lengths, seed);
        let edges = graph.edges(ranks)?;
        let counts = apportioned(statistic.messages, &edges);
        let mut by_distance = BTreeMap::<usize, Vec<(Edge, u64)>>::new();
        for (edge, count) in edges.into_iter().zip(counts) {
            let distance = (edge.to + ranks - edge.from) % ranks;
            by_distance.entry(distance).or_default().push((edge, count));
        }
        let mut lengths = lengths.into_iter();
        let mut messages = Vec::with_capacity(lengths.len());
        let mut ends = Vec::new();
        while !by_distance.is_empty() {
            for edges in by_distance.values_mut() {
                edges.retain_mut(|(edge, left)| {
                    let is_left = *left > 0;
                    if is_left {
                        *left -= 1;
                        messages.push(Message {
                            from: edge.from as u32,
                            to: edge.to as u32,
                            bytes: lengths.next().expect("as many as there are messages"),
                        });
                    }
                    is_left
                });
                ends.push(messages.len());
            }
            by_distance.retain(|_, edges| !edges.is_empty());
        }
        ends.dedup();
        Ok(Self {
            ranks,
            messages,
            ends,
        })
    }

    /// How many ranks it is of.
    pub const fn ranks(&self) -> usize {
        self.ranks
    }

    /// All messages in their order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The steps, each of messages that go at the same time.
    pub fn steps(&self) -> impl Iterator<Item = &[Message]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = begins.zip(&self.ends);
        spans.map(|(begin, end)| &self.messages[begin..*end])
    }

    /// What this rank does, step by step.
    pub fn of(&self, rank: usize) -> Vec<Step> {
        let of_step = |messages: &[Message]| {
            let sent = messages.iter().find(|one| one.from as usize == rank);
            let received = messages.iter().find(|one| one.to as usize == rank);
            let step = Step {
                send: sent.map(|one| (one.to as usize, one.bytes as usize)),
                recv: received.map(|one| (one.from as usize, one.bytes as usize)),
            };
            (step.send.is_some() || step.recv.is_some()).then_some(step)
        };
        self.steps().filter_map(of_step).collect()
    }
}

/// Fisher and Yates, by chance of the seed.
fn shuffle(lengths: &mut [u64], seed: u64) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for at in 0..lengths.len() {
        let left = (lengths.len() - at) as u128;
        let step = (u128::from(random.next_u64()) * left) >> 64;
        lengths.swap(at, at + step as usize);
    }
}

/// A rank's replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// From the first step to the end of the last one.
    pub timed_ns: u64,
    /// Messages that it sent.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that came to it otherwise than they were sent.
    pub wrong: u64,
}

/// Replays the part of this rank; all ranks of the world call it with the same sequence. Before each step it computes for
/// `computing_ns` of CPU time. Phases: `setup`, `replay`, in which there are the messages of the sequence only, and `end`.
///
/// # Errors
/// Those of the messenger; the sequence is of another number of ranks.
pub fn run<M: Messenger + ?Sized>(
    messenger: &mut M,
    sequence: &Sequence,
    computing_ns: u64,
) -> sonde_message::Result<Outcome> {
    let (rank, ranks) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
    if ranks != sequence.ranks {
        return Err(Error::Argument {
            what: "the number of ranks of a replay",
            value: ranks.to_string(),
            wanted: format!("{}, as its sequence is of", sequence.ranks),
        });
    }
    messenger.phase("setup");
    let steps = sequence.of(rank);
    let mut talk = Talk::new(&steps, ranks);
    meet(messenger)?;
    messenger.phase("replay");
    let begin_ns = monotonic_ns();
    for step in &steps {
        compute(computing_ns);
        talk.step(messenger, step)?;
    }
    let timed_ns = monotonic_ns() - begin_ns;
    messenger.phase("end");
    meet(messenger)?;
    let sent = steps.iter().filter_map(|step| step.send);
    Ok(Outcome {
        timed_ns,
        messages: sent.clone().count() as u64,
        bytes: sent.map(|(_, bytes)| bytes as u64).sum(),
        wrong: talk.wrong,
    })
}

fn meet<M: Messenger + ?Sized>(messenger: &mut M) -> sonde_message::Result<()> {
    let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
    world.barrier().map(drop)
}

/// Uses the CPU for so long.
fn compute(computing_ns: u64) {
    if computing_ns == 0 {
        return;
    }
    let end_ns = thread_cpu_ns() + computing_ns;
    while thread_cpu_ns() < end_ns {
        std::hint::spin_loop();
    }
}

/// The memory of a rank's messages. Each begins with its number among those of its pair, as far as it is long enough.
struct Talk {
    payload: Vec<u8>,
    room: Vec<u8>,
    sent: Vec<u64>,
    received: Vec<u64>,
    wrong: u64,
}

impl Talk {
    fn new(steps: &[Step], ranks: usize) -> Self {
        let longest = |of: fn(&Step) -> Option<(usize, usize)>| {
            let bytes = steps.iter().filter_map(of).map(|(_, bytes)| bytes);
            bytes.max().unwrap_or(0)
        };
        Self {
            payload: vec![0x5a; longest(|step| step.send)],
            room: vec![0xa5; longest(|step| step.recv)],
            sent: vec![0; ranks],
            received: vec![0; ranks],
            wrong: 0,
        }
    }

    fn step<M: Messenger + ?Sized>(
        &mut self,
        messenger: &mut M,
        step: &Step,
    ) -> sonde_message::Result<()> {
        let world = Comm::WORLD;
        if let Some((to, bytes)) = step.send {
            stamp(&mut self.payload[..bytes], &mut self.sent[to]);
        }
        let status = match (step.send, step.recv) {
            (None, None) => None,
            (Some((to, bytes)), None) => {
                messenger.send(world, to, TAG, &self.payload[..bytes])?;
                None
            }
            (None, Some((from, bytes))) => {
                let room = &mut self.room[..bytes];
                Some(messenger.recv(world, Source::Rank(from), Tagged::With(TAG), room)?)
            }
            (Some((to, sent)), Some((from, received))) => {
                let mut ops = [
                    Op::Recv {
                        from: Source::Rank(from),
                        tag: Tagged::With(TAG),
                        room: &mut self.room[..received],
                    },
                    Op::Send {
                        to,
                        tag: TAG,
                        payload: &self.payload[..sent],
                    },
                ];
                let mut statuses = [Status {
                    from,
                    tag: TAG,
                    bytes: 0,
                }; 2];
                messenger.exchange(world, &mut ops, &mut statuses)?;
                Some(statuses[0])
            }
        };
        if let (Some(status), Some((from, bytes))) = (status, step.recv) {
            self.check(status, from, bytes);
        }
        Ok(())
    }

    fn check(&mut self, status: Status, from: usize, bytes: usize) {
        let wanted = Status {
            from,
            tag: TAG,
            bytes,
        };
        let mut begin = [0; 8];
        let begin = &mut begin[..bytes.min(8)];
        stamp(begin, &mut self.received[from]);
        self.wrong += u64::from(status != wanted || *begin != self.room[..begin.len()]);
    }
}

/// Writes the number of a message of its pair, and counts it.
fn stamp(bytes: &mut [u8], number: &mut u64) {
    let long = bytes.len().min(8);
    bytes[..long].copy_from_slice(&number.to_le_bytes()[..long]);
    *number += 1;
}

#[cfg(test)]
mod tests;
