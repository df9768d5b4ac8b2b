//! The cube among q^2 ranks so that every rank works at every stage of a sweep in any direction (BT and SP).
//!
//! Model:   each direction is cut in q, the first n mod q parts one point longer; a rank has q of the q^3 cells, one in every
//!          slab of each direction: rank i + q j has, in layer c of z, the cell at x = (i + c) mod q, y = (j - c) mod q. So its
//!          neighbours are six ranks at most, the same for all of its cells. A sweep eliminates along all lines of the cell
//!          at stage 0, hands the last rows to the rank of the next cell, and so on; back with the solution.
//! Source:  npb.md §8, §9 (Bruno and Cappello 1988; Naik 1995). Deviations: none; those of the
//!          sweeps at `sweeps.rs`.
//! Units:   messages are numbers of 8 bytes.
//! Checked: `every_cell_has_one_owner`, `neighbours_own_the_cells_beside`, the kernels' counts of messages.

use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Op, Source, Status, Tagged};

use super::cfd::{Exact, Point, VARIABLES};
use super::flow::{GHOSTS, Planes, Site, right_hand_side};

/// Why so many ranks cannot share a cube of n^3 points, with what can.
pub fn admits(ranks: usize, n: usize) -> Result<(), String> {
    if n < 6 {
        return Err(format!(
            "the stencils beside two walls need 6 points along an edge, not {n}"
        ));
    }
    let q = ranks.isqrt();
    let most = (n / 3).pow(2);
    if ranks == 0 || q * q != ranks {
        let near = [q.max(1).pow(2), (q + 1).pow(2)].map(|near| near.min(most));
        let nearest = if ranks.abs_diff(near[0]) <= ranks.abs_diff(near[1]) {
            near[0]
        } else {
            near[1]
        };
        return Err(format!(
            "it takes a square number of ranks, not {ranks}: the nearest is {nearest}"
        ));
    }
    if ranks > most {
        return Err(format!(
            "cells of {n} points along an edge need 3 each: at most {most} ranks, not {ranks}"
        ));
    }
    Ok(())
}

/// A rank's part of the cube.
#[derive(Debug)]
pub struct Partition {
    /// Cells of a rank, and ranks along an edge.
    pub q: usize,
    /// i and j of the rank.
    own: [usize; 2],
    /// Its cells by layer of z, and where they are among the q^3.
    pub cells: Vec<Site>,
    places: Vec<[usize; 3]>,
}

impl Partition {
    /// The part of `rank` among `ranks` of a cube of n^3 points.
    pub fn new(n: usize, rank: usize, ranks: usize) -> Self {
        let q = ranks.isqrt();
        let own = [rank % q, rank / q];
        let places: Vec<[usize; 3]> = (0..q)
            .map(|c| [(own[0] + c) % q, (own[1] + q - c) % q, c])
            .collect();
        let length = |part: usize| n / q + usize::from(part < n % q);
        let begin = |part: usize| part * (n / q) + part.min(n % q);
        let site = |place: &[usize; 3]| Site::new(n, place.map(begin), place.map(length));
        Self {
            q,
            own,
            cells: places.iter().map(site).collect(),
            places,
        }
    }

    /// The cell at a stage of a sweep along a direction.
    pub fn at_stage(&self, direction: usize, stage: usize) -> usize {
        let mut places = self.places.iter();
        let found = places.position(|place| place[direction] == stage);
        found.expect("a rank has a cell in every slab")
    }

    /// The rank of the cells that follow along a direction, or go before.
    pub fn neighbour(&self, direction: usize, before: bool) -> usize {
        let q = self.q;
        let (one, back) = if before { (q - 1, 1) } else { (1, q - 1) };
        let [i, j] = self.own;
        let [i, j] = match direction {
            0 => [i + one, j],
            1 => [i, j + one],
            _ => [i + back, j + one],
        };
        i % q + q * (j % q)
    }
}

/// What a rank has of the fields: for each of its cells.
#[derive(Debug)]
pub struct Fields {
    /// The part.
    pub partition: Partition,
    /// Variables.
    pub u: Vec<Vec<f64>>,
    /// Right-hand side, then what is left of it.
    pub rhs: Vec<Vec<f64>>,
    /// What is added to the right-hand side.
    pub forcing: Vec<Vec<f64>>,
    exact: Exact,
    /// What the right-hand side keeps of planes.
    pub planes: Planes,
    faces: Faces,
    n: usize,
}

impl Fields {
    /// Of a rank; the start field is not yet there.
    pub fn new(n: usize, rank: usize, ranks: usize) -> Self {
        let partition = Partition::new(n, rank, ranks);
        let room = |value: f64| -> Vec<Vec<f64>> {
            let cells = partition.cells.iter();
            cells
                .map(|cell| vec![value; cell.shape.numbers()])
                .collect()
        };
        let (u, rhs, mut forcing) = (room(1.0), room(0.0), room(0.0));
        let exact = Exact::new(n);
        for (cell, forcing) in partition.cells.iter().zip(&mut forcing) {
            fill(cell, forcing, |place| exact.forcing(place));
        }
        let largest = partition
            .cells
            .iter()
            .max_by_key(|cell| cell.shape.strides[2]);
        let planes = Planes::new(&largest.expect("q cells").shape);
        Self {
            faces: Faces::new(&partition),
            partition,
            u,
            rhs,
            forcing,
            exact,
            planes,
            n,
        }
    }

    /// Sets the start field.
    pub fn start(&mut self) {
        for (cell, u) in self.partition.cells.iter().zip(&mut self.u) {
            u.fill(1.0);
            fill(cell, u, |place| self.exact.start(place));
        }
    }

    /// Fetches the ghosts and makes the right-hand side, times `scale`.
    ///
    /// # Errors
    /// Those of the messenger.
    pub fn right_hand_side<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        scale: f64,
    ) -> sonde_message::Result<()> {
        self.faces.exchange(world, &self.partition, &mut self.u)?;
        for (c, cell) in self.partition.cells.iter().enumerate() {
            let (u, forcing, rhs) = (&self.u[c], &self.forcing[c], &mut self.rhs[c]);
            right_hand_side(cell, u, forcing, rhs, scale, &mut self.planes);
        }
        Ok(())
    }

    /// Norms of the right-hand side and of the solution's error, among all ranks.
    ///
    /// # Errors
    /// Those of the messenger.
    pub fn norms<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
    ) -> sonde_message::Result<[Point; 2]> {
        self.right_hand_side(world, 1.0)?;
        let mut squares = [[0.0; VARIABLES]; 2];
        for (c, cell) in self.partition.cells.iter().enumerate() {
            let shape = cell.shape;
            let [x, y, z] = cell.inside;
            for k in z.0..z.1 {
                for j in y.0..y.1 {
                    for i in x.0..x.1 {
                        let at = shape.at([i as isize, j as isize, k as isize]);
                        let [x, y, z] = cell.origin;
                        let exact = self.exact.at([x + i, y + j, z + k]);
                        for (m, exact) in exact.iter().enumerate() {
                            let place = m * shape.points + at;
                            squares[0][m] += self.rhs[c][place].powi(2);
                            squares[1][m] += (self.u[c][place] - exact).powi(2);
                        }
                    }
                }
            }
        }
        Ok([
            super::cfd::norms(world, &squares[0], self.n)?,
            super::cfd::norms(world, &squares[1], self.n)?,
        ])
    }
}

/// Sets all points of a cell.
fn fill(cell: &Site, numbers: &mut [f64], value: impl Fn([usize; 3]) -> Point) {
    let shape = cell.shape;
    let [x, y, z] = shape.extent;
    for k in 0..z {
        for j in 0..y {
            for i in 0..x {
                let at = shape.at([i as isize, j as isize, k as isize]);
                let place = [cell.origin[0] + i, cell.origin[1] + j, cell.origin[2] + k];
                for (m, value) in value(place).into_iter().enumerate() {
                    numbers[m * shape.points + at] = value;
                }
            }
        }
    }
}

/// A status that is to be filled.
pub const NOWHERE: Status = Status {
    from: 0,
    tag: 0,
    bytes: 0,
};

/// The exchange of ghosts: the two outer layers of all variables, of all cells with a neighbour, to each of six.
#[derive(Debug)]
struct Faces {
    /// By direction, then up and down.
    sent: [Vec<f64>; 6],
    received: [Vec<f64>; 6],
}

impl Faces {
    fn new(partition: &Partition) -> Self {
        let room = |face: usize, sends: bool| {
            let mut count = 0;
            visit(partition, face, sends, |_, _, length| count += length);
            vec![0.0; count]
        };
        Self {
            sent: std::array::from_fn(|face| room(face, true)),
            received: std::array::from_fn(|face| room(face, false)),
        }
    }

    fn exchange<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        partition: &Partition,
        u: &mut [Vec<f64>],
    ) -> sonde_message::Result<()> {
        if partition.q == 1 {
            return Ok(());
        }
        for (face, sent) in self.sent.iter_mut().enumerate() {
            let mut rest = &mut sent[..];
            visit(partition, face, true, |cell, at, length| {
                let (now, later) = std::mem::take(&mut rest).split_at_mut(length);
                now.copy_from_slice(&u[cell][at..at + length]);
                rest = later;
            });
        }
        let comm = world.comm();
        let mut statuses = [NOWHERE; 12];
        let [r0, r1, r2, r3, r4, r5] = &mut self.received;
        let [s0, s1, s2, s3, s4, s5] = &self.sent;
        // What goes up along a direction comes from below.
        let from = |face: usize| partition.neighbour(face / 2, face % 2 == 0);
        let to = |face: usize| partition.neighbour(face / 2, face % 2 == 1);
        let room = |face: usize, room| Op::Recv {
            from: Source::Rank(from(face)),
            tag: Tagged::With(face as u32),
            room: bytemuck::cast_slice_mut::<f64, u8>(room),
        };
        let send = |face: usize, payload| Op::Send {
            to: to(face),
            tag: face as u32,
            payload: bytemuck::cast_slice::<f64, u8>(payload),
        };
        let mut ops = [
            room(0, r0),
            room(1, r1),
            room(2, r2),
            room(3, r3),
            room(4, r4),
            room(5, r5),
            send(0, s0),
            send(1, s1),
            send(2, s2),
            send(3, s3),
            send(4, s4),
            send(5, s5),
        ];
        world.messenger().exchange(comm, &mut ops, &mut statuses)?;
        for (face, received) in self.received.iter().enumerate() {
            let mut rest = &received[..];
            visit(partition, face, false, |cell, at, length| {
                let (now, later) = rest.split_at(length);
                u[cell][at..at + length].copy_from_slice(now);
                rest = later;
            });
        }
        Ok(())
    }
}

/// All runs of numbers that a face's message is made of, in its order: cell, place, length. Face 2 d goes up along d, 2 d + 1
/// down.
fn visit(
    partition: &Partition,
    face: usize,
    sends: bool,
    mut run: impl FnMut(usize, usize, usize),
) {
    let (direction, up) = (face / 2, face % 2 == 0);
    let ghosts = GHOSTS as isize;
    for (number, (cell, place)) in partition.cells.iter().zip(&partition.places).enumerate() {
        // Who sends up has a cell above, who receives what went up has one below.
        let beside_above = up == sends;
        let edge = if beside_above { partition.q - 1 } else { 0 };
        if place[direction] == edge {
            continue;
        }
        let shape = cell.shape;
        let mut ranges = shape.extent.map(|extent| (0, extent as isize));
        let extent = shape.extent[direction] as isize;
        ranges[direction] = match (sends, beside_above) {
            (true, true) => (extent - ghosts, extent),
            (true, false) => (0, ghosts),
            (false, true) => (extent, extent + ghosts),
            (false, false) => (-ghosts, 0),
        };
        let [x, y, z] = ranges;
        for m in 0..VARIABLES {
            for k in z.0..z.1 {
                for j in y.0..y.1 {
                    let at = m * shape.points + shape.at([x.0, j, k]);
                    run(number, at, (x.1 - x.0) as usize);
                }
            }
        }
    }
}

#[cfg(test)]
pub mod tested {
    use std::collections::BTreeMap;

    use sonde_message::Comm;
    use sonde_message::collectives::{Choice, Communicator};
    use sonde_message::counted::{Counted, Profile};
    use sonde_message::native::Memory;

    use super::super::Outcome;

    /// A rank's way in tests.
    pub type World<'a, 'b> = Communicator<'a, Counted<&'b mut Memory>>;
    /// Messages by tag: how many, the shortest, the longest.
    pub type Sent = BTreeMap<u32, (u64, u64, u64)>;

    /// Outcomes of all ranks, and what rank 0 sent besides collectives.
    pub fn run(
        ranks: usize,
        one: impl Fn(&mut World<'_, '_>) -> sonde_message::Result<Outcome> + Sync,
    ) -> (Vec<Outcome>, Sent) {
        let mut all = Memory::run(ranks, |messenger| {
            let mut counted = Counted::new(messenger);
            let mut world = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
            let outcome = one(&mut world).unwrap();
            (outcome, counted.profile())
        });
        let sent = sent(&all[0].1);
        (all.drain(..).map(|(outcome, _)| outcome).collect(), sent)
    }

    fn sent(profile: &Profile) -> Sent {
        let mut sent = Sent::new();
        let flows = profile.phases.iter().flat_map(|phase| &phase.flows);
        for flow in flows.filter(|flow| flow.sent && flow.collective.is_none()) {
            let total = flow.total;
            let entry = sent.entry(flow.tag).or_insert((0, u64::MAX, 0));
            entry.0 += total.messages;
            entry.1 = entry.1.min(total.bytes_min);
            entry.2 = entry.2.max(total.bytes_max);
        }
        sent
    }

    /// The worst relative error, all being known.
    pub fn worst(outcome: &Outcome) -> f64 {
        let errors = outcome.checks.iter().map(|check| check.error().unwrap());
        errors.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_one_owner() {
        for (q, n) in [(1, 12), (2, 12), (3, 13), (4, 17), (7, 24)] {
            let mut owners = vec![0; q * q * q];
            let mut points = 0;
            for rank in 0..q * q {
                let partition = Partition::new(n, rank, q * q);
                for (cell, [x, y, z]) in partition.cells.iter().zip(&partition.places) {
                    owners[x + q * (y + q * z)] += 1;
                    points += cell.shape.extent.iter().product::<usize>();
                }
            }
            assert!(owners.iter().all(|owners| *owners == 1));
            assert_eq!(points, n * n * n);
        }
    }

    #[test]
    fn neighbours_own_the_cells_beside() {
        let (n, q) = (24, 4);
        let partitions: Vec<_> = (0..q * q)
            .map(|rank| Partition::new(n, rank, q * q))
            .collect();
        for (rank, partition) in partitions.iter().enumerate() {
            for place in &partition.places {
                for direction in 0..3 {
                    let mut beside = *place;
                    beside[direction] = (place[direction] + 1) % q;
                    let next = partition.neighbour(direction, false);
                    assert!(partitions[next].places.contains(&beside));
                    assert_eq!(partitions[next].neighbour(direction, true), rank);
                }
            }
        }
    }

    #[test]
    fn counts_that_cannot_be_are_refused_with_the_nearest() {
        assert_eq!(admits(9, 12), Ok(()));
        assert!(admits(2, 12).unwrap_err().contains("nearest is 1"));
        assert!(admits(8, 12).unwrap_err().contains("nearest is 9"));
        assert!(admits(25, 12).unwrap_err().contains("at most 16"));
        assert!(admits(1, 5).unwrap_err().contains("need 6"));
    }
}
