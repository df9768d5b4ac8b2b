//! Collective calls as data: what all ranks of a group do together.
//!
//! Source:  MPI 4.0 §6. Deviations: data are bytes whose elements are named; displacements follow from counts.
//! Units:   bytes in native order.

/// The kinds of collective calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Kind {
    /// No rank leaves before all have come.
    Barrier = 0,
    /// One rank's bytes to all.
    Broadcast = 1,
    /// The elements of all, combined, to one.
    Reduce = 2,
    /// The elements of all, combined, to all.
    Allreduce = 3,
    /// The bytes of each, in order of rank, to one.
    Gather = 4,
    /// Each rank's part of one rank's bytes.
    Scatter = 5,
    /// The bytes of each, in order of rank, to all.
    Allgather = 6,
    /// A part of each to each.
    Alltoall = 7,
    /// The elements of ranks 0 to this one, combined.
    Scan = 8,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 9] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Gather,
        Self::Scatter,
        Self::Allgather,
        Self::Alltoall,
        Self::Scan,
    ];

    /// As it is written: `barrier`, `allreduce`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Scan => "scan",
        }
    }
}

/// What the bytes of a reduction are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Element {
    /// Bytes.
    U8 = 0,
    /// 32-bit integers.
    I32 = 1,
    /// 64-bit integers.
    I64 = 2,
    /// Floating point of 32 bits.
    F32 = 3,
    /// Floating point of 64 bits.
    F64 = 4,
}

impl Element {
    /// All.
    pub const ALL: [Self; 5] = [Self::U8, Self::I32, Self::I64, Self::F32, Self::F64];

    /// Bytes of one.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

/// How elements are combined. Integers wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Operation {
    /// Their sum.
    Sum = 0,
    /// Their product.
    Product = 1,
    /// The least.
    Min = 2,
    /// The greatest.
    Max = 3,
    /// Bitwise and; integers only.
    And = 4,
    /// Bitwise or; integers only.
    Or = 5,
}

impl Operation {
    /// All.
    pub const ALL: [Self; 6] = [
        Self::Sum,
        Self::Product,
        Self::Min,
        Self::Max,
        Self::And,
        Self::Or,
    ];
}

/// How many bytes each rank has of a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts<'a> {
    /// As many each.
    Even(usize),
    /// So many each, in order of rank, one entry a rank (the `v` calls).
    Each(&'a [usize]),
}

/// A collective call of one rank. All ranks of the group make the same, in the same order.
#[derive(Debug)]
pub enum Call<'a> {
    /// No rank leaves before all have come.
    Barrier,
    /// The bytes of `root` to all.
    Broadcast {
        /// Whose.
        root: usize,
        /// As long on all ranks.
        data: &'a mut [u8],
    },
    /// Combined elements to `root`.
    Reduce {
        /// To whom.
        root: usize,
        /// As long on all ranks, whole elements.
        input: &'a [u8],
        /// As long as `input` on `root`, empty elsewhere.
        output: &'a mut [u8],
        /// What the bytes are.
        element: Element,
        /// How they are combined.
        operation: Operation,
    },
    /// Combined elements to all.
    Allreduce {
        /// As long on all ranks, whole elements.
        input: &'a [u8],
        /// As long.
        output: &'a mut [u8],
        /// What the bytes are.
        element: Element,
        /// How they are combined.
        operation: Operation,
    },
    /// The parts of all, in order of rank, to `root`.
    Gather {
        /// To whom.
        root: usize,
        /// This rank's part.
        input: &'a [u8],
        /// The whole on `root`, empty elsewhere.
        output: &'a mut [u8],
        /// The parts, known to all.
        parts: Parts<'a>,
    },
    /// To each its part of the bytes of `root`.
    Scatter {
        /// Whose.
        root: usize,
        /// The whole on `root`, empty elsewhere.
        input: &'a [u8],
        /// This rank's part.
        output: &'a mut [u8],
        /// The parts, known to all.
        parts: Parts<'a>,
    },
    /// The parts of all, in order of rank, to all.
    Allgather {
        /// This rank's part.
        input: &'a [u8],
        /// The whole.
        output: &'a mut [u8],
        /// The parts, known to all.
        parts: Parts<'a>,
    },
    /// To each rank a part, from each rank a part.
    Alltoall {
        /// What this rank sends, in order of rank.
        input: &'a [u8],
        /// Bytes to each.
        sent: Parts<'a>,
        /// What this rank receives, in order of rank.
        output: &'a mut [u8],
        /// Bytes from each.
        received: Parts<'a>,
    },
    /// The elements of ranks 0 to this one, combined (inclusive).
    Scan {
        /// As long on all ranks, whole elements.
        input: &'a [u8],
        /// As long.
        output: &'a mut [u8],
        /// What the bytes are.
        element: Element,
        /// How they are combined.
        operation: Operation,
    },
}

impl Parts<'_> {
    /// Bytes of `rank`.
    pub fn of(&self, rank: usize) -> usize {
        match self {
            Self::Even(bytes) => *bytes,
            Self::Each(all) => all[rank],
        }
    }

    /// Where the bytes of `rank` begin in the whole.
    pub fn begin(&self, rank: usize) -> usize {
        match self {
            Self::Even(bytes) => bytes * rank,
            Self::Each(all) => all[..rank].iter().sum(),
        }
    }
}

impl Call<'_> {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Barrier => Kind::Barrier,
            Self::Broadcast { .. } => Kind::Broadcast,
            Self::Reduce { .. } => Kind::Reduce,
            Self::Allreduce { .. } => Kind::Allreduce,
            Self::Gather { .. } => Kind::Gather,
            Self::Scatter { .. } => Kind::Scatter,
            Self::Allgather { .. } => Kind::Allgather,
            Self::Alltoall { .. } => Kind::Alltoall,
            Self::Scan { .. } => Kind::Scan,
        }
    }
}
