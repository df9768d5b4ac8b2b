//! The elements of ranks 0 to this one, combined.
//!
//! Model:   doubling: in round k a rank gives what it has to the rank 2^k after it. Linear: from rank to rank.
//! Source:  Hillis, Steele, CACM 29(12) 1986; Thakur, Rabenseifner, Gropp 2005 use the same for `MPI_Scan`.
//! Units:   bytes, whole elements.

use super::choice::Algorithm;
use super::reduce::Row;
use super::team::{Scratch, Team, room};
use crate::{Messenger, Result};

pub(super) fn run<M: Messenger + ?Sized>(
    team: &mut Team<'_, M>,
    by: Algorithm,
    scratch: &mut Scratch,
    input: &[u8],
    output: &mut [u8],
    row: Row,
) -> Result<()> {
    let came = room(&mut scratch.other, input.len());
    output.copy_from_slice(input);
    let (rank, size) = (team.rank, team.size);
    match by {
        Algorithm::Linear => {
            if rank > 0 {
                team.recv(rank - 1, came)?;
                row.combine(output, came);
            }
            if rank + 1 < size {
                team.send(rank + 1, output)?;
            }
        }
        Algorithm::Doubling => {
            let mut distance = 1;
            while distance < size {
                match (rank >= distance, rank + distance < size) {
                    (true, true) => {
                        team.swap(rank + distance, output, rank - distance, came)?;
                    }
                    (true, false) => team.recv(rank - distance, came)?,
                    (false, true) => team.send(rank + distance, output)?,
                    (false, false) => {}
                }
                if rank >= distance {
                    row.combine(output, came);
                }
                distance *= 2;
            }
        }
        other => unreachable!("a choice has no scan by {other}"),
    }
    Ok(())
}
