//! The parts of all, in order of rank, to all.
//!
//! Model:   the ring moves each part n - 1 times to the next rank; doubling takes log2 n steps, each of all that is known so
//!          far, and two more where n is no power of two; Bruck's takes ⌈log2 n⌉ steps for any n, and a copy at the end.
//! Source:  Thakur, Rabenseifner, Gropp 2005 §4.1; Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11) 1997. Deviation: where n is
//!          no power of two, doubling folds the ranks beyond into their neighbours, as Rabenseifner's reduction does.
//! Units:   bytes.

use super::choice::Algorithm;
use super::team::{Core, Part, Scratch, Team, apart, lay_out, room};
use crate::{Messenger, Parts, Result};

pub(super) fn run<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    by: Algorithm,
    scratch: &mut Scratch,
    input: &[u8],
    output: &mut [u8],
    parts: &Parts<'_>,
) -> Result<()> {
    let rank = team.rank;
    if by == Algorithm::Bruck {
        return bruck(team, scratch, input, output, parts);
    }
    let begins = lay_out(&mut scratch.begins, parts, 0, team.size);
    output[begins[rank]..begins[rank + 1]].copy_from_slice(input);
    match by {
        Algorithm::Ring => ring(team, rank, |number, _| number, output, begins),
        Algorithm::Doubling => double(team, rank, |number, _| number, output, begins),
        other => unreachable!("a choice has no allgather by {other}"),
    }
}

/// Around a ring of the ranks `rank_of(number, size)`; this one is numbered `number` and has that segment.
pub(super) fn ring<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    number: usize,
    rank_of: impl Fn(usize, usize) -> usize,
    data: &mut [u8],
    begins: &[usize],
) -> Result<()> {
    let size = team.size;
    let next = rank_of((number + 1) % size, size);
    let previous = rank_of((number + size - 1) % size, size);
    for step in 1..size {
        let sent = (number + size - step + 1) % size;
        let got = (number + size - step) % size;
        let segment = |of: usize| begins[of]..begins[of + 1];
        let (payload, room) = apart(data, segment(sent), segment(got));
        team.swap(next, payload, previous, room)?;
    }
    Ok(())
}

/// By doubling among the ranks `rank_of(number, size)`; this one is numbered `number` and has that segment.
pub(super) fn double<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    number: usize,
    rank_of: impl Fn(usize, usize) -> usize,
    data: &mut [u8],
    begins: &[usize],
) -> Result<()> {
    let size = team.size;
    let core = Core::new(size, None);
    let own = match core.part(number) {
        Part::Alone(own) => own,
        Part::For(own, other) => {
            let range = begins[other]..begins[other + 1];
            team.recv(rank_of(other, size), &mut data[range])?;
            own
        }
        Part::Out(other) => {
            team.send(
                rank_of(other, size),
                &data[begins[number]..begins[number + 1]],
            )?;
            return from_all(team, rank_of(other, size), number, data, begins);
        }
    };
    let mut bit = 1;
    while bit < core.size() {
        let segments = |of: usize| {
            let first = of & !(bit - 1);
            let ranks = core.ranks(first..first + bit);
            begins[ranks.start]..begins[ranks.end]
        };
        let partner = own ^ bit;
        let with = rank_of(core.rank(partner), size);
        let (payload, room) = apart(data, segments(own), segments(partner));
        team.swap(with, payload, with, room)?;
        bit *= 2;
    }
    if let Part::For(_, other) = core.part(number) {
        let (before, after) = (begins[other], begins[other + 1]);
        team.send(rank_of(other, size), &data[..before])?;
        team.send(rank_of(other, size), &data[after..])?;
    }
    Ok(())
}

/// All but the own segment, from the rank that acts for this one.
fn from_all<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    from: usize,
    number: usize,
    data: &mut [u8],
    begins: &[usize],
) -> Result<()> {
    team.recv(from, &mut data[..begins[number]])?;
    team.recv(from, &mut data[begins[number + 1]..])
}

/// Own part first, then those of the ranks after this one; each step doubles how many are known.
fn bruck<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    input: &[u8],
    output: &mut [u8],
    parts: &Parts<'_>,
) -> Result<()> {
    let (rank, size) = (team.rank, team.size);
    let begins = lay_out(&mut scratch.begins, parts, rank, size);
    let whole = room(&mut scratch.main, output.len());
    whole[..input.len()].copy_from_slice(input);
    let mut known = 1;
    while known < size {
        let more = known.min(size - known);
        // What the rank `known` before this one gets are the first `more` parts here.
        let (have, lack) = whole.split_at_mut(begins[known]);
        let room = &mut lack[..begins[known + more] - begins[known]];
        team.swap(
            team.before(known),
            &have[..begins[more]],
            team.after(known),
            room,
        )?;
        known += more;
    }
    let (tail, front) = whole.split_at(begins[size - rank]);
    output[..front.len()].copy_from_slice(front);
    output[front.len()..].copy_from_slice(tail);
    Ok(())
}
