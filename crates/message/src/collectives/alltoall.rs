//! To each rank a part, from each rank a part.
//!
//! Model:   pairwise: n - 1 steps, in step k to the rank k after and from the rank k before. Spread: all of them at once, in
//!          groups. Bruck: ⌈log2 n⌉ steps; a block for the rank d after this one moves by 2^k in round k where bit k of d
//!          is set, so that each block is sent as often as d has bits. Of uneven parts Bruck's blocks are all as long as the longest of
//!          any rank, which the ranks find out first.
//! Source:  Thakur, Rabenseifner, Gropp 2005 §4.3; Bruck et al. 1997; padding: Fan, Gilray, Pascucci, Huang, Micinski, Kumar,
//!          "Optimizing the Bruck Algorithm for Non-uniform All-to-all Communication", HPDC 2022.
//! Units:   bytes.

use super::choice::Algorithm;
use super::reduce::{self, Row};
use super::team::{POSTED_MAX, Posts, Scratch, Team, room};
use crate::{Element, Messenger, Operation, Parts, Result};

/// Ranks that are sent to and received from at once.
const GROUP: usize = POSTED_MAX / 2;

/// What a rank sends and receives, and where the parts of each are.
pub(super) struct Blocks<'c> {
    pub input: &'c [u8],
    pub sent: Parts<'c>,
    pub output: &'c mut [u8],
    pub received: Parts<'c>,
}

pub(super) fn run<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    by: Algorithm,
    scratch: &mut Scratch,
    blocks: Blocks<'_>,
) -> Result<()> {
    match by {
        Algorithm::Pairwise => pairwise(team, blocks),
        Algorithm::Spread => spread(team, blocks),
        Algorithm::Bruck => bruck(team, scratch, blocks),
        other => unreachable!("a choice has no alltoall by {other}"),
    }
}

impl Blocks<'_> {
    fn to(&self, rank: usize) -> &[u8] {
        let begin = self.sent.begin(rank);
        &self.input[begin..begin + self.sent.of(rank)]
    }

    fn own<M: Messenger + ?Sized>(&mut self, team: &Team<'_, M>) {
        let begin = self.received.begin(team.rank);
        let end = begin + self.received.of(team.rank);
        let from = self.sent.begin(team.rank);
        let until = from + self.sent.of(team.rank);
        self.output[begin..end].copy_from_slice(&self.input[from..until]);
    }
}

fn pairwise<M: Messenger + ?Sized>(team: &mut Team<'_, M>, mut blocks: Blocks<'_>) -> Result<()> {
    blocks.own(team);
    for distance in 1..team.size {
        let (to, from) = (team.after(distance), team.before(distance));
        let begin = blocks.received.begin(from);
        let end = begin + blocks.received.of(from);
        let room = &mut blocks.output[begin..end];
        let begin = blocks.sent.begin(to);
        let payload = &blocks.input[begin..begin + blocks.sent.of(to)];
        team.swap(to, payload, from, room)?;
    }
    Ok(())
}

/// In each group the next ranks after this one send to it, and it sends to the next before it: each receive meets its send
/// in the same group.
fn spread<M: Messenger + ?Sized>(team: &mut Team<'_, M>, mut blocks: Blocks<'_>) -> Result<()> {
    blocks.own(team);
    let (rank, size) = (team.rank, team.size);
    let Blocks {
        input,
        sent,
        output,
        received,
    } = blocks;
    // The rooms in the order rank + 1, ..., size - 1, 0, ..., rank - 1.
    let (mut front, back) = output.split_at_mut(received.begin(rank));
    let mut back = &mut back[received.of(rank)..];
    let mut first = 1;
    while first < size {
        let mut posts = Posts::new();
        let end = size.min(first + GROUP);
        for distance in first..end {
            let from = (rank + distance) % size;
            let rooms = if from > rank { &mut back } else { &mut front };
            let (part, rest) = std::mem::take(rooms).split_at_mut(received.of(from));
            *rooms = rest;
            posts.recv(from, part);
        }
        for distance in first..end {
            let to = (rank + size - distance) % size;
            let begin = sent.begin(to);
            posts.send(to, &input[begin..begin + sent.of(to)]);
        }
        team.post_all(&mut posts)?;
        first = end;
    }
    Ok(())
}

fn bruck<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    blocks: Blocks<'_>,
) -> Result<()> {
    let (rank, size) = (team.rank, team.size);
    let longest = longest(team, scratch, &blocks)?;
    if longest == 0 {
        return Ok(());
    }
    // Block d is on its way to the rank d after the one that sent it.
    let rows = room(&mut scratch.main, size * longest);
    for distance in 0..size {
        let payload = blocks.to((rank + distance) % size);
        rows[distance * longest..][..payload.len()].copy_from_slice(payload);
    }
    let half = size.div_ceil(2).max(1) * longest;
    let packed = room(&mut scratch.other, 2 * half);
    let (leaving, coming) = packed.split_at_mut(half);
    let mut bit = 1;
    while bit < size {
        let moved = (bit..size).filter(|distance| distance & bit != 0);
        let mut bytes = 0;
        for distance in moved.clone() {
            leaving[bytes..bytes + longest].copy_from_slice(&rows[distance * longest..][..longest]);
            bytes += longest;
        }
        team.swap(
            team.after(bit),
            &leaving[..bytes],
            team.before(bit),
            &mut coming[..bytes],
        )?;
        for (block, distance) in coming[..bytes].chunks_exact(longest).zip(moved) {
            rows[distance * longest..][..longest].copy_from_slice(block);
        }
        bit *= 2;
    }
    for distance in 0..size {
        let from = (rank + size - distance) % size;
        let (begin, bytes) = (blocks.received.begin(from), blocks.received.of(from));
        blocks.output[begin..begin + bytes].copy_from_slice(&rows[distance * longest..][..bytes]);
    }
    Ok(())
}

/// The longest part that any rank sends.
fn longest<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    scratch: &mut Scratch,
    blocks: &Blocks<'_>,
) -> Result<usize> {
    let Parts::Each(own) = blocks.sent else {
        return Ok(blocks.sent.of(0));
    };
    let own = own.iter().copied().max().unwrap_or(0) as i64;
    let mut all = [0; 8];
    let row = Row::new(Element::I64, Operation::Max);
    let by = Algorithm::Doubling;
    reduce::to_all(team, by, scratch, &own.to_ne_bytes(), &mut all, row)?;
    Ok(i64::from_ne_bytes(all) as usize)
}
