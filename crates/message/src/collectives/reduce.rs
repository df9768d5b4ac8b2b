//! The elements of all, combined, to one rank or to all.
//!
//! Model:   halving: of p = 2^k ranks, in each step a rank gives one half of what it has to the rank whose number differs in
//!          the highest bit left, gets the other half, and combines; then rank c has segment c of the result. The steps are
//!          turned round to gather it at the root, or to all. The ranks beyond p give all they have to a neighbour before. What
//!          is combined with what depends on algorithm, number of ranks and, of `reduce`, the root, and on nothing else: floating
//!          point gives the same bits each time, and of `allreduce` on each rank.
//! Source:  Rabenseifner, ICCS 2004; Thakur, Rabenseifner, Gropp 2005 §4.4–4.5; ring: Patarasuk, Yuan, J. Parallel Distrib. Comput. 69 (2009).
//! Units:   bytes, whole elements.

use super::broadcast;
use super::choice::Algorithm;
use super::combine::combine;
use super::team::{Core, Part, Scratch, Team, apart, cut, room};
use crate::{Element, Messenger, Operation, Result};

/// What is combined, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub element: Element,
    pub operation: Operation,
}

impl Row {
    pub const fn new(element: Element, operation: Operation) -> Self {
        Self { element, operation }
    }

    pub fn combine(self, into: &mut [u8], with: &[u8]) {
        combine(self.element, self.operation, into, with);
    }
}

/// To the root, whose `output` is as long as `input`.
pub(super) fn to_one<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    by: Algorithm,
    scratch: &mut Scratch,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    row: Row,
) -> Result<()> {
    match by {
        Algorithm::Linear => linear(team, scratch, root, input, output, row),
        Algorithm::Binomial => binomial(team, scratch, root, input, output, row),
        Algorithm::Rabenseifner => halving_to_one(team, scratch, root, input, output, row),
        other => unreachable!("a choice has no reduce by {other}"),
    }
}

/// To all.
pub(super) fn to_all<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    by: Algorithm,
    scratch: &mut Scratch,
    input: &[u8],
    output: &mut [u8],
    row: Row,
) -> Result<()> {
    match by {
        Algorithm::Doubling => doubling(team, scratch, input, output, row),
        Algorithm::Ring => ring(team, scratch, input, output, row),
        Algorithm::Rabenseifner => halving_to_all(team, scratch, input, output, row),
        Algorithm::ReduceBroadcast => {
            let sum = if team.rank == 0 {
                &mut *output
            } else {
                &mut []
            };
            binomial(team, scratch, 0, input, sum, row)?;
            broadcast::binomial(team, 0, output)
        }
        other => unreachable!("a choice has no allreduce by {other}"),
    }
}

/// In the order of ranks.
fn linear<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    row: Row,
) -> Result<()> {
    if team.rank != root {
        return team.send(root, input);
    }
    let came = room(&mut scratch.other, input.len());
    for rank in 0..team.size {
        let next = if rank == root {
            input
        } else {
            team.recv(rank, came)?;
            &*came
        };
        if rank == 0 {
            output.copy_from_slice(next);
        } else {
            row.combine(output, next);
        }
    }
    Ok(())
}

fn binomial<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    row: Row,
) -> Result<()> {
    let (number, size) = (team.seen_from(root), team.size);
    if number % 2 == 1 {
        return team.send(team.before(1), input);
    }
    let sum = if number == 0 {
        output
    } else {
        room(&mut scratch.main, input.len())
    };
    sum.copy_from_slice(input);
    let came = room(&mut scratch.other, input.len());
    let mut bit = 1;
    while bit < size {
        if number & bit != 0 {
            return team.send(team.before(bit), sum);
        }
        if number + bit < size {
            team.recv(team.after(bit), came)?;
            row.combine(sum, came);
        }
        bit *= 2;
    }
    Ok(())
}

/// The own number in the core with what the rank beside it had; none where this one sits out, having sent what it has.
fn fold<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    core: &Core,
    sum: &mut [u8],
    came: &mut [u8],
    row: Row,
) -> Result<Option<usize>> {
    match core.part(team.rank) {
        Part::Alone(own) => Ok(Some(own)),
        Part::For(own, other) => {
            team.recv(other, came)?;
            row.combine(sum, came);
            Ok(Some(own))
        }
        Part::Out(other) => {
            team.send(other, sum)?;
            Ok(None)
        }
    }
}

/// The result to the rank that sits out, on both sides.
fn unfold<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    core: &Core,
    sum: &mut [u8],
) -> Result<()> {
    match core.part(team.rank) {
        Part::Alone(_) => Ok(()),
        Part::For(_, other) => team.send(other, sum),
        Part::Out(other) => team.recv(other, sum),
    }
}

fn doubling<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    input: &[u8],
    output: &mut [u8],
    row: Row,
) -> Result<()> {
    let core = Core::new(team.size, None);
    let came = room(&mut scratch.other, input.len());
    output.copy_from_slice(input);
    if let Some(own) = fold(team, &core, output, came, row)? {
        let mut bit = 1;
        while bit < core.size() {
            let partner = core.rank(own ^ bit);
            team.swap(partner, output, partner, came)?;
            row.combine(output, came);
            bit *= 2;
        }
    }
    unfold(team, &core, output)
}

/// Segment s goes round from rank s + 1 to rank s, combined on its way; then the results go round.
fn ring<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    input: &[u8],
    output: &mut [u8],
    row: Row,
) -> Result<()> {
    let size = team.size;
    let begins = cut(&mut scratch.begins, input.len(), row.element.bytes(), size);
    let segment = |of: usize| begins[of]..begins[of + 1];
    output.copy_from_slice(input);
    let came = room(&mut scratch.other, begins[1]);
    let (next, previous) = (team.after(1), team.before(1));
    for step in 1..size {
        let sent = segment(team.before(step));
        let got = segment(team.before(step + 1));
        let came = &mut came[..got.len()];
        team.swap(next, &output[sent], previous, came)?;
        row.combine(&mut output[got], came);
    }
    super::allgather::ring(team, team.rank, |number, _| number, output, begins)
}

/// Halves until segment `own` is combined; gives nothing where there is one rank.
fn halve<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    core: &Core,
    own: usize,
    begins: &[usize],
    sum: &mut [u8],
    came: &mut [u8],
    row: Row,
) -> Result<()> {
    let mut bit = core.size() / 2;
    while bit > 0 {
        let (kept, given) = (block(own, bit, begins), block(own ^ bit, bit, begins));
        let partner = core.rank(own ^ bit);
        let came = &mut came[..kept.len()];
        team.swap(partner, &sum[given], partner, came)?;
        row.combine(&mut sum[kept], came);
        bit /= 2;
    }
    Ok(())
}

/// The segments of the ranks that differ from this one in bits below `bit` only.
fn block(number: usize, bit: usize, begins: &[usize]) -> std::ops::Range<usize> {
    let first = number & !(bit - 1);
    begins[first]..begins[first + bit]
}

fn halving_to_all<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    input: &[u8],
    output: &mut [u8],
    row: Row,
) -> Result<()> {
    let core = Core::new(team.size, None);
    let width = row.element.bytes();
    let begins = cut(&mut scratch.begins, input.len(), width, core.size());
    let came = room(&mut scratch.other, input.len());
    output.copy_from_slice(input);
    if let Some(own) = fold(team, &core, output, came, row)? {
        halve(team, &core, own, begins, output, came, row)?;
        let mut bit = 1;
        while bit < core.size() {
            let partner = core.rank(own ^ bit);
            let (have, lack) = (block(own, bit, begins), block(own ^ bit, bit, begins));
            let (payload, room) = apart(output, have, lack);
            team.swap(partner, payload, partner, room)?;
            bit *= 2;
        }
    }
    unfold(team, &core, output)
}

fn halving_to_one<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    row: Row,
) -> Result<()> {
    let core = Core::new(team.size, Some(root));
    let width = row.element.bytes();
    let begins = cut(&mut scratch.begins, input.len(), width, core.size());
    let came = room(&mut scratch.other, input.len());
    let sum = if team.rank == root {
        output
    } else {
        room(&mut scratch.main, input.len())
    };
    sum.copy_from_slice(input);
    let Some(own) = fold(team, &core, sum, came, row)? else {
        return Ok(());
    };
    halve(team, &core, own, begins, sum, came, row)?;
    let (Part::Alone(target) | Part::For(target, _)) = core.part(root) else {
        unreachable!("the root stays");
    };
    // The lowest bits first: those who differ from the root in one have then given all they have.
    let mut bit = 1;
    while bit < core.size() {
        let partner = own ^ bit;
        if (own ^ target) & bit != 0 {
            return team.send(core.rank(partner), &sum[block(own, bit, begins)]);
        }
        team.recv(core.rank(partner), &mut sum[block(partner, bit, begins)])?;
        bit *= 2;
    }
    Ok(())
}
