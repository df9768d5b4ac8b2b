//! Collectives against what one rank alone works out: cases, and their check in any messenger.
//!
//! Model:   a case says kind, maker, elements and root; the inputs of all ranks follow from its seed, so that each rank knows
//!          them all, works out what it should have, and compares. Integers and most floating point must be equal to the bit:
//!          the latter is drawn so that no operation rounds. Cases said to round are within n ε Σ|x| of the sum in the
//!          order of ranks (of the product, n ε of it), the same when made again, and of an allreduce the same on all ranks.
//! Source:  SplitMix64 of Steele, Lea, Flood 2014; the bound on sums: Higham, Accuracy and Stability of Numerical Algorithms,
//!          §4.2.
//! Units:   elements.
//! Checked: `a_wrong_result_is_found`, `cases_are_the_same_each_time`.

use std::fmt;

use crate::collectives::{Algorithm, Choice, Communicator, Made, Maker};
use crate::{Call, Comm, Element, Kind, Messenger, Operation, Parts};

/// One collective of a group, whatever its number of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What is done.
    pub kind: Kind,
    /// By whom.
    pub maker: Maker,
    /// What is reduced; of other kinds what a part is made of.
    pub element: Element,
    /// How it is combined.
    pub operation: Operation,
    /// Elements that are broadcast or reduced, or of each part.
    pub elements: usize,
    /// Parts are of 0 to twice as many elements, given one by one.
    pub uneven: bool,
    /// Whose turn it is; taken modulo the ranks.
    pub root: usize,
    /// Sums and products round.
    pub rounds: bool,
    /// What the inputs follow from.
    pub seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={} of {}{} {:?}, {:?}{}, root {}, seed {:#x}",
            self.kind.name(),
            self.maker.name(),
            if self.uneven { "about " } else { "" },
            self.elements,
            self.element,
            self.operation,
            if self.rounds { " with rounding" } else { "" },
            self.root,
            self.seed
        )
    }
}

/// How many cases have each kind by each of its algorithms, by sonde's rule and by the library once.
pub fn round() -> usize {
    makers().count()
}

fn makers() -> impl Iterator<Item = (Kind, Maker)> {
    Kind::ALL.into_iter().flat_map(|kind| {
        let named = Algorithm::of(kind).iter().copied().map(Maker::Named);
        let makers = [Maker::Either, Maker::Sonde].into_iter().chain(named);
        makers.map(move |maker| (kind, maker))
    })
}

/// The first `n` cases of a seed: every [`round`] has each kind by each of its makers, the rest is drawn. The same on every
/// rank and every machine.
pub fn cases(seed: u64, n: usize) -> impl Iterator<Item = Case> {
    let all: Vec<_> = makers().collect();
    (0..n).map(move |index| {
        let (kind, maker) = all[index % all.len()];
        let mut draw = Draw::new(seed, index as u64);
        let element = Element::ALL[draw.below(Element::ALL.len())];
        let float = matches!(element, Element::F32 | Element::F64);
        let operations = if float { 4 } else { Operation::ALL.len() };
        let operation = Operation::ALL[draw.below(operations)];
        let rounds = float && matches!(operation, Operation::Sum | Operation::Product);
        Case {
            kind,
            maker,
            element,
            operation,
            elements: elements(&mut draw),
            uneven: draw.below(2) == 1,
            root: draw.below(64),
            rounds: rounds && draw.below(2) == 1,
            seed: draw.bits(),
        }
    })
}

/// Mostly few, sometimes none, sometimes beyond the switch points of the rule.
fn elements(draw: &mut Draw) -> usize {
    match draw.below(16) {
        0 | 1 => 0,
        2..=4 => 1 + draw.below(3),
        5..=8 => 4 + draw.below(30),
        9..=12 => 34 + draw.below(700),
        13 | 14 => 800 + draw.below(4_000),
        _ => 5_000 + draw.below(9_000),
    }
}

/// Why a case did not come out right on a rank.
#[derive(Debug, thiserror::Error)]
pub enum Unsound {
    /// Its result is not the oracle's, with case, rank and element.
    #[error("{0}")]
    Result(String),
    /// The call failed, so nothing is known of its result.
    #[error("{at}: {error}")]
    Call {
        /// Case and rank.
        at: String,
        /// Why.
        error: crate::Error,
    },
}

/// Makes the case among all ranks of a messenger; every rank calls it with the same one.
///
/// # Errors
/// The call failed, or this rank's result is not the oracle's: both are said with case, rank and element.
pub fn check(messenger: &mut dyn Messenger, case: &Case) -> Result<Made, Unsound> {
    check_in(
        &mut Communicator::new(messenger, Comm::WORLD, Choice::default()),
        case,
    )
}

/// Makes the case in a group; every rank of it calls it with the same one. The group keeps the case's choice.
///
/// # Errors
/// As [`check`].
pub fn check_in<M: Messenger + ?Sized>(
    group: &mut Communicator<'_, M>,
    case: &Case,
) -> Result<Made, Unsound> {
    let (rank, size) = (group.rank(), group.size());
    let at = || format!("{case}: rank {rank} of {size}");
    let wrong = |what: &dyn fmt::Display| Unsound::Result(format!("{}: {what}", at()));
    let failed = |error| Unsound::Call { at: at(), error };
    let choice = Choice::default().with(case.kind, case.maker);
    group.choose(choice.map_err(|error| wrong(&error))?);
    let field = Field::of(case, rank, size);
    let wanted = field.wanted();
    let mut again = || make(group, &field, wanted.len()).map_err(failed);
    let (made, got) = again()?;
    field.compare(&got, &wanted).map_err(|what| wrong(&what))?;
    if case.rounds && matches!(made, Made::Sonde(_)) {
        let (_, again) = again()?;
        if again != got {
            return Err(wrong(&"another result when made again"));
        }
        if case.kind == Kind::Allreduce {
            if let Some(other) = other_than_here(group, &got).map_err(failed)? {
                return Err(wrong(&format_args!("rank {other} has another result")));
            }
        }
    }
    Ok(made)
}

/// The first rank that has not these bytes.
fn other_than_here<M: Messenger + ?Sized>(
    group: &mut Communicator<'_, M>,
    got: &[u8],
) -> crate::Result<Option<usize>> {
    // FNV-1a.
    let digest = got.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut all = vec![0_i64; group.size()];
    group.allgather(&[digest as i64], &mut all)?;
    Ok(all.iter().position(|other| *other != digest as i64))
}

/// A case as one rank of so many sees it.
struct Field<'c> {
    case: &'c Case,
    rank: usize,
    size: usize,
}

impl<'c> Field<'c> {
    fn of(case: &'c Case, rank: usize, size: usize) -> Self {
        Self { case, rank, size }
    }

    fn root(&self) -> usize {
        self.case.root % self.size
    }

    /// The bytes that a rank has of a whole, or sends to another.
    fn part(&self, from: usize, to: usize) -> usize {
        let elements = if self.case.uneven {
            let pair = (from * self.size + to) as u64;
            Draw::new(self.case.seed ^ 0x51ed, pair).below(2 * self.case.elements + 1)
        } else {
            self.case.elements
        };
        elements * self.case.element.bytes()
    }

    fn parts(&self) -> Vec<usize> {
        (0..self.size).map(|rank| self.part(rank, 0)).collect()
    }

    /// What a rank puts in of a broadcast, reduction, gather or allgather; the whole of a scatter.
    fn input(&self, rank: usize) -> Vec<u8> {
        let bytes = match self.case.kind {
            Kind::Barrier => 0,
            Kind::Broadcast | Kind::Reduce | Kind::Allreduce | Kind::Scan => {
                self.case.elements * self.case.element.bytes()
            }
            Kind::Gather | Kind::Allgather => self.part(rank, 0),
            Kind::Scatter => self.parts().iter().sum(),
            Kind::Alltoall => (0..self.size).map(|to| self.part(rank, to)).sum(),
        };
        values(self.case, rank, bytes)
    }

    /// What this rank should have in the end; nothing where it has nothing of it.
    fn wanted(&self) -> Vec<u8> {
        let at_root = self.rank == self.root();
        match self.case.kind {
            Kind::Barrier => Vec::new(),
            Kind::Broadcast => self.input(self.root()),
            Kind::Reduce if at_root => self.combined(self.size),
            Kind::Reduce => Vec::new(),
            Kind::Allreduce => self.combined(self.size),
            Kind::Scan => self.combined(self.rank + 1),
            Kind::Gather if !at_root => Vec::new(),
            Kind::Gather | Kind::Allgather => {
                (0..self.size).flat_map(|rank| self.input(rank)).collect()
            }
            Kind::Scatter => {
                let begin: usize = self.parts()[..self.rank].iter().sum();
                self.input(self.root())[begin..begin + self.part(self.rank, 0)].to_vec()
            }
            Kind::Alltoall => {
                let from = |from: usize| {
                    let begin: usize = (0..self.rank).map(|to| self.part(from, to)).sum();
                    self.input(from)[begin..begin + self.part(from, self.rank)].to_vec()
                };
                (0..self.size).flat_map(from).collect()
            }
        }
    }

    /// The inputs of the first ranks, combined one after the other.
    fn combined(&self, ranks: usize) -> Vec<u8> {
        let rows = (1..ranks).map(|rank| self.input(rank));
        rows.fold(self.input(0), |sum, row| fold(self.case, &sum, &row))
    }

    fn compare(&self, got: &[u8], wanted: &[u8]) -> Result<(), String> {
        let (element, width) = (self.case.element, self.case.element.bytes());
        if got.len() != wanted.len() {
            return Err(format!("{} bytes, not {}", got.len(), wanted.len()));
        }
        let bounds = self.bounds(wanted);
        let pairs = got.chunks(width).zip(wanted.chunks(width));
        for (index, (got, wanted)) in pairs.enumerate() {
            let is_near =
                |bound: &f64| (number(element, got) - number(element, wanted)).abs() <= *bound;
            if got != wanted && !bounds.get(index).is_some_and(is_near) {
                return Err(format!(
                    "element {index} is {}, not {}",
                    shown(element, got),
                    shown(element, wanted)
                ));
            }
        }
        Ok(())
    }

    /// How far each element may be from what is wanted; none of what must be equal.
    fn bounds(&self, wanted: &[u8]) -> Vec<f64> {
        let reduces = matches!(self.case.kind, Kind::Reduce | Kind::Allreduce | Kind::Scan);
        if !self.case.rounds || !reduces {
            return Vec::new();
        }
        let element = self.case.element;
        let epsilon = match element {
            Element::F32 => f64::from(f32::EPSILON),
            _ => f64::EPSILON,
        };
        let sizes = |row: &[u8]| -> Vec<f64> {
            let all = row.chunks(element.bytes());
            all.map(|bytes| number(element, bytes).abs()).collect()
        };
        let mut scales = sizes(wanted);
        if self.case.operation == Operation::Sum {
            scales.fill(0.0);
            for rank in 0..self.size {
                let row = sizes(&self.input(rank));
                scales
                    .iter_mut()
                    .zip(row)
                    .for_each(|(sum, size)| *sum += size);
            }
        }
        let ranks = self.size as f64;
        scales
            .into_iter()
            .map(|scale| ranks * epsilon * scale)
            .collect()
    }
}

/// Makes the call and gives what this rank has afterwards.
fn make<M: Messenger + ?Sized>(
    group: &mut Communicator<'_, M>,
    field: &Field<'_>,
    bytes: usize,
) -> crate::Result<(Made, Vec<u8>)> {
    let (case, rank) = (field.case, field.rank);
    let (root, input) = (field.root(), field.input(rank));
    // A result that is not written shows.
    let mut output = vec![0xa5; bytes];
    let counts = field.parts();
    let parts = if case.uneven {
        Parts::Each(&counts)
    } else {
        Parts::Even(field.part(0, 0))
    };
    let (element, operation) = (case.element, case.operation);
    let (input, output_of) = (input.as_slice(), &mut output);
    let made = match case.kind {
        Kind::Barrier => group.call(&mut Call::Barrier)?,
        Kind::Broadcast => {
            if rank == root {
                output_of.copy_from_slice(input);
            }
            let data = output_of;
            group.call(&mut Call::Broadcast { root, data })?
        }
        Kind::Reduce => group.call(&mut Call::Reduce {
            root,
            input,
            output: output_of,
            element,
            operation,
        })?,
        Kind::Allreduce => group.call(&mut Call::Allreduce {
            input,
            output: output_of,
            element,
            operation,
        })?,
        Kind::Scan => group.call(&mut Call::Scan {
            input,
            output: output_of,
            element,
            operation,
        })?,
        Kind::Gather => group.call(&mut Call::Gather {
            root,
            input,
            output: output_of,
            parts,
        })?,
        Kind::Scatter => group.call(&mut Call::Scatter {
            root,
            input: if rank == root { input } else { &[] },
            output: output_of,
            parts,
        })?,
        Kind::Allgather => group.call(&mut Call::Allgather {
            input,
            output: output_of,
            parts,
        })?,
        Kind::Alltoall => alltoall(group, field, input, output_of)?,
    };
    Ok((made, output))
}

fn alltoall<M: Messenger + ?Sized>(
    group: &mut Communicator<'_, M>,
    field: &Field<'_>,
    input: &[u8],
    output: &mut [u8],
) -> crate::Result<Made> {
    let all = 0..field.size;
    let sent: Vec<_> = all.clone().map(|to| field.part(field.rank, to)).collect();
    let received: Vec<_> = all.map(|from| field.part(from, field.rank)).collect();
    let (sent, received) = if field.case.uneven {
        (Parts::Each(&sent), Parts::Each(&received))
    } else {
        (Parts::Even(sent[0]), Parts::Even(received[0]))
    };
    group.call(&mut Call::Alltoall {
        input,
        sent,
        output,
        received,
    })
}

/// The values that a rank puts in.
fn values(case: &Case, rank: usize, bytes: usize) -> Vec<u8> {
    let mut draw = Draw::new(case.seed, rank as u64);
    let reduces = matches!(case.kind, Kind::Reduce | Kind::Allreduce | Kind::Scan);
    let mut all = Vec::with_capacity(bytes + 8);
    while all.len() < bytes {
        let bits = draw.bits();
        match case.element {
            Element::F32 if reduces => all.extend((float(case, bits) as f32).to_ne_bytes()),
            Element::F64 if reduces => all.extend(float(case, bits).to_ne_bytes()),
            _ => all.extend(bits.to_ne_bytes()),
        }
    }
    all.truncate(bytes);
    all
}

/// A number whose sums, or products, over all ranks are exact, or else are not.
fn float(case: &Case, bits: u64) -> f64 {
    if case.rounds {
        let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        let sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
        return sign * (0.5 + unit);
    }
    match case.operation {
        Operation::Product => [1.0, -1.0, 2.0, 0.5, -2.0, -0.5][(bits % 6) as usize],
        _ => (bits % 1_999) as f64 - 999.0,
    }
}

/// Two rows combined, in the plainest way.
fn fold(case: &Case, one: &[u8], other: &[u8]) -> Vec<u8> {
    macro_rules! rows {
        ($type:ty, $($operation:ident => $combined:expr),*) => {{
            let combined = |a: $type, b: $type| -> $type {
                match case.operation {
                    $(Operation::$operation => $combined(a, b),)*
                }
            };
            let read = |bytes: &[u8]| <$type>::from_ne_bytes(bytes.try_into().expect("whole"));
            let width = size_of::<$type>();
            let pairs = one.chunks(width).zip(other.chunks(width));
            pairs.flat_map(|(a, b)| combined(read(a), read(b)).to_ne_bytes()).collect()
        }};
    }
    macro_rules! integers {
        ($type:ty) => {
            rows!($type,
                Sum => <$type>::wrapping_add, Product => <$type>::wrapping_mul,
                Min => |a: $type, b: $type| if a < b { a } else { b }, Max => |a: $type, b: $type| if a > b { a } else { b },
                And => |a: $type, b: $type| a & b, Or => |a: $type, b: $type| a | b)
        };
    }
    macro_rules! floats {
        ($type:ty) => {
            rows!($type,
                Sum => |a: $type, b: $type| a + b, Product => |a: $type, b: $type| a * b,
                Min => |a: $type, b: $type| if a < b { a } else { b }, Max => |a: $type, b: $type| if a > b { a } else { b },
                And => no_bits, Or => no_bits)
        };
    }
    match case.element {
        Element::U8 => integers!(u8),
        Element::I32 => integers!(i32),
        Element::I64 => integers!(i64),
        Element::F32 => floats!(f32),
        Element::F64 => floats!(f64),
    }
}

/// No case asks for it.
fn no_bits<T>(_: T, _: T) -> T {
    unreachable!("a bitwise operation of floating point")
}

fn number(element: Element, bytes: &[u8]) -> f64 {
    match element {
        Element::F32 => f64::from(f32::from_ne_bytes(bytes.try_into().expect("four"))),
        _ => f64::from_ne_bytes(bytes.try_into().expect("eight")),
    }
}

fn shown(element: Element, bytes: &[u8]) -> String {
    match element {
        Element::F32 | Element::F64 => number(element, bytes).to_string(),
        _ => format!("{bytes:02x?}"),
    }
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn new(seed: u64, stream: u64) -> Self {
        let mut draw = Self(seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03));
        draw.bits();
        draw
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Memory;

    #[test]
    fn cases_are_the_same_each_time() {
        let all: Vec<_> = cases(7, 3 * round()).collect();
        assert_eq!(all, cases(7, 3 * round()).collect::<Vec<_>>());
        assert_ne!(all, cases(8, 3 * round()).collect::<Vec<_>>());
        for (kind, maker) in makers() {
            let of = all
                .iter()
                .filter(|case| (case.kind, case.maker) == (kind, maker));
            assert_eq!(of.count(), 3, "{kind:?} by {maker:?}");
        }
        assert!(all.iter().any(|case| case.elements == 0));
        assert!(all.iter().any(|case| case.rounds && case.uneven));
    }

    #[test]
    fn a_wrong_result_is_found() {
        for case in cases(3, 20 * round()) {
            let told = Memory::run(3, |messenger| {
                let field = Field::of(&case, messenger.rank(Comm::WORLD), 3);
                let wanted = field.wanted();
                field.compare(&wanted, &wanted).unwrap();
                let last = wanted.len().checked_sub(1)?;
                let mut wrong = wanted.clone();
                // The highest bits: sign or exponent of floating point, on this machine's order.
                wrong[last] ^= 0x40;
                Some(field.compare(&wrong, &wanted).unwrap_err())
            });
            for told in told.into_iter().flatten() {
                assert!(told.contains("not"), "{case}: {told}");
            }
        }
    }
}
