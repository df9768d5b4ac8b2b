//! Collectives of any messenger: the library's own, or sonde's by named algorithms.
//!
//! Model:   a [`Communicator`] is a group of a messenger with a [`Choice`] and the memory of the algorithms. sonde's
//!          algorithms are made of sends and receives of the messenger, with tags above [`TAG_MAX`](crate::TAG_MAX); they take
//!          any number of ranks, any root, no bytes at all, and uneven parts. Which one makes a call where none was asked
//!          for, and by which source, is said in `choice.rs`. A receive of any tag that is under way may take a
//!          collective's message: such a program parts a group for its collectives.
//! Source:  Thakur, Rabenseifner, Gropp, IJHPCA 19(1) 2005; the others at their algorithms. Deviations: there.
//! Units:   [`call`](Communicator::call) takes bytes; the named methods elements.
//! Checked: `every_algorithm_against_the_oracle`, `no_step_relies_on_buffers`, and those of the parts.

mod allgather;
mod alltoall;
mod arguments;
mod barrier;
mod broadcast;
mod choice;
mod combine;
mod gather;
mod reduce;
mod scan;
mod team;

use bytemuck::{cast_slice, cast_slice_mut};

use crate::{Call, Comm, Element, Error, Kind, Messenger, Operation, Parts, Result};

pub use choice::{Algorithm, Choice, Maker, UnnamedChoice, rule};

pub use team::made_of;

use reduce::Row;
use team::{Scratch, Team};

/// Who made a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Made {
    /// The library, by what it has.
    Library,
    /// sonde, by this algorithm.
    Sonde(Algorithm),
}

impl Made {
    /// As it is written: `library`, `ring`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Sonde(algorithm) => algorithm.name(),
        }
    }
}

/// Elements that collectives take.
pub trait Value: bytemuck::Pod {
    /// What they are.
    const ELEMENT: Element;
}

macro_rules! value {
    ($($type:ty: $element:ident),*) => {$(
        impl Value for $type {
            const ELEMENT: Element = Element::$element;
        }
    )*};
}

value!(u8: U8, i32: I32, i64: I64, f32: F32, f64: F64);

/// A group of ranks that make collectives together.
///
/// All ranks of the group make the same calls in the same order, with arguments that fit, and the same choice. Each
/// method says who made the call.
///
/// Errors of each method: an argument that cannot be, a library asked for by name that has none of the kind, and those of
/// the messenger. After an error the group's messages are in disorder: end, or part a new group.
///
/// ```
/// use sonde_message::collectives::{Choice, Communicator};
/// use sonde_message::{Comm, Messenger, Operation};
///
/// fn mean(messenger: &mut dyn Messenger, own: f64) -> Result<f64, Box<dyn std::error::Error>> {
///     let choice: Choice = "allreduce=ring".parse()?;
///     let mut group = Communicator::new(messenger, Comm::WORLD, choice);
///     let mut sum = [0.0];
///     group.allreduce(&[own], &mut sum, Operation::Sum)?;
///     Ok(sum[0] / group.size() as f64)
/// }
/// ```
pub struct Communicator<'a, M: Messenger + ?Sized> {
    messenger: &'a mut M,
    comm: Comm,
    choice: Choice,
    scratch: Scratch,
    /// Counts of the named methods, in bytes.
    counts: [Vec<usize>; 2],
}

impl<'a, M: Messenger + ?Sized> Communicator<'a, M> {
    /// The group `comm` of a messenger.
    pub fn new(messenger: &'a mut M, comm: Comm, choice: Choice) -> Self {
        Self {
            messenger,
            comm,
            choice,
            scratch: Scratch::default(),
            counts: [Vec::new(), Vec::new()],
        }
    }

    /// This rank in the group.
    pub fn rank(&self) -> usize {
        self.messenger.rank(self.comm)
    }

    /// How many ranks the group has.
    pub fn size(&self) -> usize {
        self.messenger.size(self.comm)
    }

    /// The group.
    pub const fn comm(&self) -> Comm {
        self.comm
    }

    /// What is below, for messages between collectives.
    pub const fn messenger(&mut self) -> &mut M {
        self.messenger
    }

    /// Another group of the same messenger, with the same choice.
    pub fn within(&mut self, comm: Comm) -> Communicator<'_, M> {
        Communicator::new(self.messenger, comm, self.choice)
    }

    /// Who shall make each kind from now on; the same on all ranks.
    pub const fn choose(&mut self, choice: Choice) {
        self.choice = choice;
    }

    /// Makes a collective call of bytes.
    ///
    /// # Errors
    /// Those of the type.
    pub fn call(&mut self, call: &mut Call<'_>) -> Result<Made> {
        let (rank, size) = (self.rank(), self.size());
        arguments::check(call, rank, size)?;
        let kind = call.kind();
        let algorithm = match self.choice.of(kind) {
            Maker::Named(algorithm) => algorithm,
            Maker::Sonde => rule(call, size),
            maker @ (Maker::Either | Maker::Library) => {
                if self.messenger.collective(self.comm, call)? {
                    return Ok(Made::Library);
                }
                if maker == Maker::Library {
                    return Err(self.missing(kind));
                }
                rule(call, size)
            }
        };
        self.make(call, algorithm)?;
        Ok(Made::Sonde(algorithm))
    }

    fn missing(&self, kind: Kind) -> Error {
        Error::Missing {
            library: self.messenger.library(),
            what: format!(
                "{0} of its own for such a call: ask for `{0}=sonde` or `{0}=either`",
                kind.name()
            ),
        }
    }

    fn make(&mut self, call: &mut Call<'_>, by: Algorithm) -> Result<()> {
        let team = &mut Team::new(&mut *self.messenger, self.comm, call.kind());
        let scratch = &mut self.scratch;
        match call {
            Call::Barrier => barrier::run(team, by),
            Call::Broadcast { root, data } => broadcast::run(team, by, scratch, *root, data),
            Call::Reduce {
                root,
                input,
                output,
                element,
                operation,
            } => {
                let row = Row::new(*element, *operation);
                reduce::to_one(team, by, scratch, *root, input, output, row)
            }
            Call::Allreduce {
                input,
                output,
                element,
                operation,
            } => {
                let row = Row::new(*element, *operation);
                reduce::to_all(team, by, scratch, input, output, row)
            }
            Call::Gather {
                root,
                input,
                output,
                parts,
            } => gather::gather(team, by, scratch, *root, input, output, parts),
            Call::Scatter {
                root,
                input,
                output,
                parts,
            } => gather::scatter(team, by, scratch, *root, input, output, parts),
            Call::Allgather {
                input,
                output,
                parts,
            } => allgather::run(team, by, scratch, input, output, parts),
            Call::Alltoall {
                input,
                sent,
                output,
                received,
            } => {
                let blocks = alltoall::Blocks {
                    input,
                    sent: *sent,
                    output,
                    received: *received,
                };
                alltoall::run(team, by, scratch, blocks)
            }
            Call::Scan {
                input,
                output,
                element,
                operation,
            } => {
                let row = Row::new(*element, *operation);
                scan::run(team, by, scratch, input, output, row)
            }
        }
    }
}

/// The calls by name. Errors are those of the type.
impl<M: Messenger + ?Sized> Communicator<'_, M> {
    /// No rank leaves before all have come.
    pub fn barrier(&mut self) -> Result<Made> {
        self.call(&mut Call::Barrier)
    }

    /// The elements of `root` to all; as many on all ranks.
    pub fn broadcast<T: Value>(&mut self, root: usize, data: &mut [T]) -> Result<Made> {
        let data = cast_slice_mut(data);
        self.call(&mut Call::Broadcast { root, data })
    }

    /// The combined elements of all to `root`; `output` is empty elsewhere.
    pub fn reduce<T: Value>(
        &mut self,
        root: usize,
        input: &[T],
        output: &mut [T],
        operation: Operation,
    ) -> Result<Made> {
        self.call(&mut Call::Reduce {
            root,
            input: cast_slice(input),
            output: cast_slice_mut(output),
            element: T::ELEMENT,
            operation,
        })
    }

    /// The combined elements of all to all.
    pub fn allreduce<T: Value>(
        &mut self,
        input: &[T],
        output: &mut [T],
        operation: Operation,
    ) -> Result<Made> {
        self.call(&mut Call::Allreduce {
            input: cast_slice(input),
            output: cast_slice_mut(output),
            element: T::ELEMENT,
            operation,
        })
    }

    /// The combined elements of the ranks up to this one.
    pub fn scan<T: Value>(
        &mut self,
        input: &[T],
        output: &mut [T],
        operation: Operation,
    ) -> Result<Made> {
        self.call(&mut Call::Scan {
            input: cast_slice(input),
            output: cast_slice_mut(output),
            element: T::ELEMENT,
            operation,
        })
    }

    /// As many elements of each to `root`; `output` is empty elsewhere.
    pub fn gather<T: Value>(&mut self, root: usize, input: &[T], output: &mut [T]) -> Result<Made> {
        let input = cast_slice(input);
        self.call(&mut Call::Gather {
            root,
            input,
            output: cast_slice_mut(output),
            parts: Parts::Even(input.len()),
        })
    }

    /// So many elements of each, `counts` in order of rank, to `root`; `output` is empty elsewhere.
    pub fn gatherv<T: Value>(
        &mut self,
        root: usize,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
    ) -> Result<Made> {
        self.with_counts::<T>([counts, &[]], |group, [parts, _]| {
            group.call(&mut Call::Gather {
                root,
                input: cast_slice(input),
                output: cast_slice_mut(output),
                parts: Parts::Each(parts),
            })
        })
    }

    /// To each as many elements of `root`; `input` is empty elsewhere.
    pub fn scatter<T: Value>(
        &mut self,
        root: usize,
        input: &[T],
        output: &mut [T],
    ) -> Result<Made> {
        let output = cast_slice_mut(output);
        let parts = Parts::Even(output.len());
        self.call(&mut Call::Scatter {
            root,
            input: cast_slice(input),
            output,
            parts,
        })
    }

    /// To each so many elements of `root`, `counts` in order of rank; `input` is empty elsewhere.
    pub fn scatterv<T: Value>(
        &mut self,
        root: usize,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
    ) -> Result<Made> {
        self.with_counts::<T>([counts, &[]], |group, [parts, _]| {
            group.call(&mut Call::Scatter {
                root,
                input: cast_slice(input),
                output: cast_slice_mut(output),
                parts: Parts::Each(parts),
            })
        })
    }

    /// As many elements of each to all.
    pub fn allgather<T: Value>(&mut self, input: &[T], output: &mut [T]) -> Result<Made> {
        let input = cast_slice(input);
        self.call(&mut Call::Allgather {
            input,
            output: cast_slice_mut(output),
            parts: Parts::Even(input.len()),
        })
    }

    /// So many elements of each, `counts` in order of rank, to all.
    pub fn allgatherv<T: Value>(
        &mut self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
    ) -> Result<Made> {
        self.with_counts::<T>([counts, &[]], |group, [parts, _]| {
            group.call(&mut Call::Allgather {
                input: cast_slice(input),
                output: cast_slice_mut(output),
                parts: Parts::Each(parts),
            })
        })
    }

    /// To each and from each as many elements.
    pub fn alltoall<T: Value>(&mut self, input: &[T], output: &mut [T]) -> Result<Made> {
        let input = cast_slice(input);
        let part = Parts::Even(input.len() / self.size());
        self.call(&mut Call::Alltoall {
            input,
            sent: part,
            output: cast_slice_mut(output),
            received: part,
        })
    }

    /// To each so many elements as `sent` says, from each so many as `received` says, in order of rank.
    pub fn alltoallv<T: Value>(
        &mut self,
        input: &[T],
        sent: &[usize],
        output: &mut [T],
        received: &[usize],
    ) -> Result<Made> {
        self.with_counts::<T>([sent, received], |group, [sent, received]| {
            group.call(&mut Call::Alltoall {
                input: cast_slice(input),
                sent: Parts::Each(sent),
                output: cast_slice_mut(output),
                received: Parts::Each(received),
            })
        })
    }

    /// Counts of elements as counts of bytes, in memory that is kept.
    fn with_counts<T: Value>(
        &mut self,
        counts: [&[usize]; 2],
        make: impl FnOnce(&mut Self, [&[usize]; 2]) -> Result<Made>,
    ) -> Result<Made> {
        let mut bytes = std::mem::take(&mut self.counts);
        for (bytes, counts) in bytes.iter_mut().zip(counts) {
            bytes.clear();
            bytes.extend(counts.iter().map(|count| count * size_of::<T>()));
        }
        let made = make(self, [&bytes[0], &bytes[1]]);
        self.counts = bytes;
        made
    }
}

#[cfg(test)]
mod tests;
