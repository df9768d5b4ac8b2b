//! The parts of all to one rank, and from one rank to all.
//!
//! Model:   ranks are numbered from the root. Up (or down) a binomial tree a rank holds the parts of its subtree in a row; the
//!          root, if it is not rank 0, turns the row round at the end (at the begin). Linear: the root has a message with each.
//! Source:  Thakur, Rabenseifner, Gropp 2005 §4; MPICH's gather and scatter.
//! Units:   bytes.

use super::choice::Algorithm;
use super::team::{POSTED_MAX, Posts, Scratch, Team, lay_out, room};
use crate::{Messenger, Parts, Result};

pub(super) fn gather<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    by: Algorithm,
    scratch: &mut Scratch,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    parts: &Parts<'_>,
) -> Result<()> {
    match by {
        Algorithm::Binomial => gather_binomial(team, scratch, root, input, output, parts),
        Algorithm::Linear => gather_linear(team, root, input, output, parts),
        other => unreachable!("a choice has no gather by {other}"),
    }
}

pub(super) fn scatter<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    by: Algorithm,
    scratch: &mut Scratch,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    parts: &Parts<'_>,
) -> Result<()> {
    match by {
        Algorithm::Binomial => scatter_binomial(team, scratch, root, input, output, parts),
        Algorithm::Linear => scatter_linear(team, root, input, output, parts),
        other => unreachable!("a choice has no scatter by {other}"),
    }
}

fn gather_linear<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    parts: &Parts<'_>,
) -> Result<()> {
    if team.rank != root {
        return team.send(root, input);
    }
    let mut rest = output;
    let mut from = 0;
    while from < team.size {
        let mut posts = Posts::new();
        let end = team.size.min(from + POSTED_MAX);
        for rank in from..end {
            let (part, after) = rest.split_at_mut(parts.of(rank));
            rest = after;
            if rank == root {
                part.copy_from_slice(input);
            } else {
                posts.recv(rank, part);
            }
        }
        team.post_all(&mut posts)?;
        from = end;
    }
    Ok(())
}

fn scatter_linear<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    parts: &Parts<'_>,
) -> Result<()> {
    if team.rank != root {
        return team.recv(root, output);
    }
    let mut rest = input;
    let mut to = 0;
    while to < team.size {
        let mut posts = Posts::new();
        let end = team.size.min(to + POSTED_MAX);
        for rank in to..end {
            let (part, after) = rest.split_at(parts.of(rank));
            rest = after;
            if rank == root {
                output.copy_from_slice(part);
            } else {
                posts.send(rank, part);
            }
        }
        team.post_all(&mut posts)?;
        to = end;
    }
    Ok(())
}

/// The end of the subtree of a number: it holds itself and the numbers up to its lowest bit that is set.
const fn subtree_end(number: usize, size: usize) -> usize {
    if number == 0 {
        return size;
    }
    let end = number + (1 << number.trailing_zeros());
    if end < size { end } else { size }
}

fn gather_binomial<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    parts: &Parts<'_>,
) -> Result<()> {
    let (number, size) = (team.seen_from(root), team.size);
    let begins = lay_out(&mut scratch.begins, parts, root, size);
    if number == 0 && root == 0 {
        return collect(team, number, begins, input, output);
    }
    let held = begins[subtree_end(number, size)] - begins[number];
    let row = room(&mut scratch.main, held);
    collect(team, number, begins, input, row)?;
    if number != 0 {
        return team.send(team.before(1 << number.trailing_zeros()), row);
    }
    // The row begins with the root's part; ranks before it are at its end.
    let (back, front) = row.split_at(begins[size - root]);
    output[..front.len()].copy_from_slice(front);
    output[front.len()..].copy_from_slice(back);
    Ok(())
}

/// The parts of the subtree of a number to a row.
fn collect<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    number: usize,
    begins: &[usize],
    input: &[u8],
    row: &mut [u8],
) -> Result<()> {
    let (own, size) = (begins[number], team.size);
    row[..input.len()].copy_from_slice(input);
    let mut bit = 1;
    while bit < size && number & bit == 0 {
        if number + bit < size {
            let end = (number + 2 * bit).min(size);
            let range = begins[number + bit] - own..begins[end] - own;
            team.recv(team.after(bit), &mut row[range])?;
        }
        bit *= 2;
    }
    Ok(())
}

fn scatter_binomial<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    root: usize,
    input: &[u8],
    output: &mut [u8],
    parts: &Parts<'_>,
) -> Result<()> {
    let (number, size) = (team.seen_from(root), team.size);
    let begins = lay_out(&mut scratch.begins, parts, root, size);
    let own = begins[number];
    let held = begins[subtree_end(number, size)] - own;
    let mut bit = 1;
    while bit < size && number & bit == 0 {
        bit *= 2;
    }
    let row = if number == 0 && root == 0 {
        input
    } else {
        let row = room(&mut scratch.main, held);
        if number == 0 {
            let front = input.len() - begins[size - root];
            let (before, from_root) = input.split_at(front);
            row[..from_root.len()].copy_from_slice(from_root);
            row[from_root.len()..].copy_from_slice(before);
        } else {
            team.recv(team.before(bit), row)?;
        }
        row
    };
    while bit > 1 {
        bit /= 2;
        if number + bit < size {
            let end = (number + 2 * bit).min(size);
            team.send(
                team.after(bit),
                &row[begins[number + bit] - own..begins[end] - own],
            )?;
        }
    }
    output.copy_from_slice(&row[..output.len()]);
    Ok(())
}
