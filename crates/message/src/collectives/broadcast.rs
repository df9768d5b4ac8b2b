//! One rank's bytes to all.
//!
//! Model:   ranks are numbered from the root. The tree takes ⌈log2 n⌉ steps of the whole; scatter and ring move 2(n-1)/n of
//!          it through each rank in ⌈log2 n⌉ + n - 1 steps; the chain n - 2 + s steps of one of s segments.
//! Source:  Thakur, Rabenseifner, Gropp 2005 §4.2; Barnett, Gupta, Payne, Shuler, van de Geijn, Watts, Supercomputing 1994.
//!          Chain: Open MPI's `pipeline` (coll_base_bcast.c), whose segments of large messages are 128 KiB; here 32 KiB.
//! Units:   bytes.

use super::allgather::{double, ring};
use super::choice::Algorithm;
use super::team::{Scratch, Team, cut};
use crate::{Messenger, Result};

/// Bytes of a segment on the chain.
const SEGMENT_BYTES: usize = 32 * 1024;

pub(super) fn run<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    by: Algorithm,
    scratch: &mut Scratch,
    root: usize,
    data: &mut [u8],
) -> Result<()> {
    match by {
        Algorithm::Linear => linear(team, root, data),
        Algorithm::Binomial => binomial(team, root, data),
        Algorithm::Chain => chain(team, root, data),
        Algorithm::ScatterRing | Algorithm::ScatterDoubling => {
            let begins = cut(&mut scratch.begins, data.len(), 1, team.size);
            scatter(team, root, data, begins)?;
            let number = team.seen_from(root);
            let rank_of = |number: usize, size: usize| (number + root) % size;
            if by == Algorithm::ScatterRing {
                ring(team, number, rank_of, data, begins)
            } else {
                double(team, number, rank_of, data, begins)
            }
        }
        other => unreachable!("a choice has no broadcast by {other}"),
    }
}

fn linear<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    root: usize,
    data: &mut [u8],
) -> Result<()> {
    if team.rank != root {
        return team.recv(root, data);
    }
    (1..team.size).try_for_each(|distance| team.send(team.after(distance), data))
}

pub(super) fn binomial<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    root: usize,
    data: &mut [u8],
) -> Result<()> {
    let number = team.seen_from(root);
    let mut bit = 1;
    while bit < team.size {
        if number & bit != 0 {
            team.recv(team.before(bit), data)?;
            break;
        }
        bit *= 2;
    }
    while bit > 1 {
        bit /= 2;
        if number + bit < team.size {
            team.send(team.after(bit), data)?;
        }
    }
    Ok(())
}

/// Down the tree each child gets the segments of its subtree: afterwards the rank numbered k has at least segment k.
fn scatter<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    root: usize,
    data: &mut [u8],
    begins: &[usize],
) -> Result<()> {
    let (number, size) = (team.seen_from(root), team.size);
    let mut bit = 1;
    while bit < size {
        if number & bit != 0 {
            let end = (number + bit).min(size);
            team.recv(team.before(bit), &mut data[begins[number]..begins[end]])?;
            break;
        }
        bit *= 2;
    }
    while bit > 1 {
        bit /= 2;
        if number + bit < size {
            let end = (number + 2 * bit).min(size);
            team.send(team.after(bit), &data[begins[number + bit]..begins[end]])?;
        }
    }
    Ok(())
}

/// While one segment goes on to the next rank, the following one comes from the one before.
fn chain<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    root: usize,
    data: &mut [u8],
) -> Result<()> {
    let number = team.seen_from(root);
    let (first, last) = (number == 0, number + 1 == team.size);
    let (next, previous) = (team.after(1), team.before(1));
    let mut begin = 0;
    if !first {
        let end = SEGMENT_BYTES.min(data.len());
        team.recv(previous, &mut data[..end])?;
    }
    while begin < data.len() {
        let end = (begin + SEGMENT_BYTES).min(data.len());
        let following = (end + SEGMENT_BYTES).min(data.len());
        let (here, rest) = data.split_at_mut(end);
        let sent = if last { &[] } else { &here[begin..] };
        let room = if first {
            &mut []
        } else {
            &mut rest[..following - end]
        };
        team.swap(next, sent, previous, room)?;
        begin = end;
    }
    Ok(())
}
