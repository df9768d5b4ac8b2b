//! CG's ranks as a grid, and what they send.
//!
//! Model:   rank = row cols + column; cols = rows or 2 rows. A rank has the matrix of a row block by a column block; a vector's
//!          part is that of the column, alike in all ranks of it. A product's partial sums are added across the row: with
//!          cols = rows whole, with cols = 2 rows halves, the one of the own column's parity. Then each rank has what its
//!          transposed partner needs: (row, column) with (column, row), or (column / 2, 2 row + column mod 2).
//! Source:  NPB 3.4.3 for grid and partners. Deviations: blocks that are not even are so by balanced cuts; who is its own partner
//!          copies and sends nothing; the residual's sum goes with the norms.
//! Checked: `partners_are_mutual`, `blocks_are_all_rows`, and those of the kernel.

use std::ops::Range;

use sonde_message::collectives::Communicator;
use sonde_message::{Comm, Messenger, Op, Result, Source, Status, Tag, Tagged};

const ROW_TAG: Tag = 1;
const TRANSPOSED_TAG: Tag = 2;
const SUM_TAG: Tag = 3;

/// Where a rank is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grid {
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

impl Grid {
    pub fn new(rank: usize, ranks: usize) -> Self {
        let rows = 1 << (ranks.ilog2() / 2);
        let columns = ranks / rows;
        Self {
            rows,
            columns,
            row: rank / columns,
            column: rank % columns,
        }
    }

    const fn is_square(&self) -> bool {
        self.rows == self.columns
    }

    const fn rank_of(&self, row: usize, column: usize) -> usize {
        row * self.columns + column
    }

    /// The part of a vector of `n` that ranks of a column have.
    pub const fn column_block(&self, n: usize) -> Range<usize> {
        self.cut(n, self.column)..self.cut(n, self.column + 1)
    }

    /// The matrix's rows.
    pub const fn row_block(&self, n: usize) -> Range<usize> {
        let wide = self.columns / self.rows;
        self.cut(n, self.row * wide)..self.cut(n, (self.row + 1) * wide)
    }

    const fn cut(&self, n: usize, index: usize) -> usize {
        n * index / self.columns
    }

    /// The part of the row block that remains after the sum.
    const fn summed(&self, n: usize) -> Range<usize> {
        let index = if self.is_square() {
            self.row
        } else {
            2 * self.row + self.column % 2
        };
        let begin = self.row_block(n).start;
        self.cut(n, index) - begin..self.cut(n, index + 1) - begin
    }

    const fn transposed(&self) -> usize {
        if self.is_square() {
            self.rank_of(self.column, self.row)
        } else {
            self.rank_of(self.column / 2, 2 * self.row + self.column % 2)
        }
    }

    /// Adds `parts` over the ranks of the row, and leaves in `to` the own column's part of it. `room` is as long as `parts`.
    pub fn gathered<M: Messenger + ?Sized>(
        &self,
        world: &mut Communicator<'_, M>,
        n: usize,
        parts: &mut [f64],
        room: &mut [f64],
        to: &mut [f64],
    ) -> Result<()> {
        let summed = self.summed(n);
        let mut distance = 1;
        while distance < self.columns {
            let partner = self.rank_of(self.row, self.column ^ distance);
            let (own, other) = if self.is_square() || distance > 1 {
                (summed.clone(), summed.clone())
            } else if summed.start == 0 {
                (summed.clone(), summed.end..parts.len())
            } else {
                (summed.clone(), 0..summed.start)
            };
            let room = &mut room[..own.len()];
            swap(world, partner, ROW_TAG, &parts[other], room)?;
            add(&mut parts[own], room);
            distance *= 2;
        }
        let partner = self.transposed();
        if partner == world.rank() {
            to.copy_from_slice(&parts[summed]);
            return Ok(());
        }
        swap(world, partner, TRANSPOSED_TAG, &parts[summed], to)
    }

    /// Sums over the ranks of the row, alike in all.
    pub fn sum<M: Messenger + ?Sized, const N: usize>(
        &self,
        world: &mut Communicator<'_, M>,
        mut own: [f64; N],
    ) -> Result<[f64; N]> {
        let mut distance = self.columns / 2;
        while distance > 0 {
            let partner = self.rank_of(self.row, self.column ^ distance);
            let mut other = [0.0; N];
            swap(world, partner, SUM_TAG, &own, &mut other)?;
            add(&mut own, &other);
            distance /= 2;
        }
        Ok(own)
    }
}

#[inline]
fn add(to: &mut [f64], other: &[f64]) {
    to.iter_mut()
        .zip(other)
        .for_each(|(to, other)| *to += other);
}

fn swap<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    partner: usize,
    tag: Tag,
    own: &[f64],
    room: &mut [f64],
) -> Result<()> {
    let nothing = Status {
        from: partner,
        tag,
        bytes: 0,
    };
    let mut ops = [
        Op::Recv {
            from: Source::Rank(partner),
            tag: Tagged::With(tag),
            room: bytemuck::cast_slice_mut(room),
        },
        Op::Send {
            to: partner,
            tag,
            payload: bytemuck::cast_slice(own),
        },
    ];
    let comm: Comm = world.comm();
    world
        .messenger()
        .exchange(comm, &mut ops, &mut [nothing, nothing])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_mutual() {
        for ranks in [1, 2, 4, 8, 16, 32, 64] {
            for rank in 0..ranks {
                let own = Grid::new(rank, ranks);
                let partner = Grid::new(own.transposed(), ranks);
                assert_eq!(partner.transposed(), rank);
                let begin = partner.row_block(1001).start;
                let theirs = partner.summed(1001);
                let theirs = theirs.start + begin..theirs.end + begin;
                assert_eq!(own.column_block(1001), theirs);
            }
        }
    }

    #[test]
    fn blocks_are_all_rows() {
        for ranks in [1, 2, 4, 8, 32] {
            let mut cells = 0;
            for rank in 0..ranks {
                let grid = Grid::new(rank, ranks);
                cells += grid.row_block(77).len() * grid.column_block(77).len();
            }
            assert_eq!(cells, 77 * 77);
        }
    }
}
