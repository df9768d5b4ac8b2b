//! No rank leaves before all have come.
//!
//! Source:  dissemination: Hensgen, Finkel, Manber, Int. J. Parallel Programming 17(1) 1988; ⌈log2 n⌉ rounds. Tree:
//!          2⌈log2 n⌉ rounds of fewer messages. Linear: 2(n-1) messages at rank 0.

use super::choice::Algorithm;
use super::team::Team;
use crate::{Messenger, Result};

pub(super) fn run<M: Messenger + ?Sized>(team: &mut Team<'_, M>, by: Algorithm) -> Result<()> {
    match by {
        Algorithm::Dissemination => dissemination(team),
        Algorithm::Tree => tree(team),
        Algorithm::Linear => linear(team),
        other => unreachable!("a choice has no barrier by {other}"),
    }
}

fn dissemination<M: Messenger + ?Sized>(team: &mut Team<'_, M>) -> Result<()> {
    let mut distance = 1;
    while distance < team.size {
        team.swap_signals(team.after(distance), team.before(distance))?;
        distance *= 2;
    }
    Ok(())
}

fn tree<M: Messenger + ?Sized>(team: &mut Team<'_, M>) -> Result<()> {
    let mut bit = 1;
    while bit < team.size {
        if team.rank & bit != 0 {
            team.signal(team.rank - bit)?;
            team.await_signal(team.rank - bit)?;
            break;
        }
        if team.rank + bit < team.size {
            team.await_signal(team.rank + bit)?;
        }
        bit *= 2;
    }
    while bit > 1 {
        bit /= 2;
        if team.rank + bit < team.size {
            team.signal(team.rank + bit)?;
        }
    }
    Ok(())
}

fn linear<M: Messenger + ?Sized>(team: &mut Team<'_, M>) -> Result<()> {
    if team.rank != 0 {
        team.signal(0)?;
        return team.await_signal(0);
    }
    (1..team.size).try_for_each(|rank| team.await_signal(rank))?;
    (1..team.size).try_for_each(|rank| team.signal(rank))
}
