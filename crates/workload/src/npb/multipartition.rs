//! The cube among q^2 ranks so that every rank works at every stage of a sweep in any direction (BT and SP).
//!
//! Model:   each direction is cut in q, the first n mod q parts one point longer; a rank has q of the q^3 cells, one in every
//!          slab of each direction: rank i + q j has, in layer c of z, the cell at x = (i + c) mod q, y = (j - c) mod q. So its
//!          neighbours are six ranks at most, the same for all of its cells. A sweep eliminates along all lines of the cell
//!          at stage 0, hands the last rows to the rank of the next cell, and so on; back with the solution.
//! Source:  npb.md §8, §9 (Bruno and Cappello 1988; Naik 1995). Deviations: lines of the inside alone travel, without
//!          padding; coefficients and lines lie apart in messages; the left-hand side is made in the sweep, not while waiting.
//! Units:   messages are numbers of 8 bytes.
//! Checked: `every_cell_has_one_owner`, `neighbours_own_the_cells_beside`, the kernels' counts of messages.

use pulp::{Simd, WithSimd};
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Op, Source, Status, Tagged};

use super::cfd::{Exact, Point, VARIABLES};
use super::flow::{GHOSTS, Planes, Site, right_hand_side};
use super::wide::{Wide, lanes, numbers};

/// Why so many ranks cannot share a cube of n^3 points, with what can.
pub fn admits(ranks: usize, n: usize) -> Result<(), String> {
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
    q: usize,
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
    fn at_stage(&self, direction: usize, stage: usize) -> usize {
        let mut places = self.places.iter();
        let found = places.position(|place| place[direction] == stage);
        found.expect("a rank has a cell in every slab")
    }

    /// The rank of the cells that follow along a direction, or go before.
    fn neighbour(&self, direction: usize, before: bool) -> usize {
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
    forcing: Vec<Vec<f64>>,
    exact: Exact,
    planes: Planes,
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

const NOWHERE: Status = Status {
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

/// As many lines of a cell as a register has lanes, side by side.
#[derive(Debug, Clone, Copy)]
pub struct Tile {
    /// The first line's first point that is not at a wall.
    pub at: usize,
    /// From point to point along a line.
    pub stride: usize,
    /// From line to line.
    pub across: usize,
    /// Lines; the lanes after them hold what is not used.
    pub lines: usize,
    /// Points of a line.
    pub count: usize,
    /// Index of the first point along the line, in the cube.
    pub first: usize,
    /// Numbers of a variable in the cell.
    pub points: usize,
    /// Number of the first line among the cell's.
    line: usize,
}

impl Tile {
    /// A cell's numbers by variable, of which it is then seen that they are equally long.
    #[inline(always)]
    pub fn split<'a>(&self, from: &'a [f64]) -> [&'a [f64]; VARIABLES] {
        let (a, from) = from.split_at(self.points);
        let (b, from) = from.split_at(self.points);
        let (c, from) = from.split_at(self.points);
        let (d, from) = from.split_at(self.points);
        [a, b, c, d, &from[..self.points]]
    }

    /// The same, to be written.
    #[inline(always)]
    pub fn split_mut<'a>(&self, from: &'a mut [f64]) -> [&'a mut [f64]; VARIABLES] {
        let (a, from) = from.split_at_mut(self.points);
        let (b, from) = from.split_at_mut(self.points);
        let (c, from) = from.split_at_mut(self.points);
        let (d, from) = from.split_at_mut(self.points);
        [a, b, c, d, &mut from[..self.points]]
    }

    /// The variables of the lines along D at `at`.
    #[inline(always)]
    pub fn load<S: Simd, const D: usize>(
        &self,
        set: S,
        from: [&[f64]; VARIABLES],
        at: usize,
    ) -> [Wide<S>; VARIABLES] {
        // Closures of array functions are not sure to be compiled for the register's instruction set.
        let mut variables = [Wide::splat(set, 0.0); VARIABLES];
        for (variable, from) in variables.iter_mut().zip(from) {
            *variable = if D == 0 {
                Wide::gather(set, from, at, self.across)
            } else {
                Wide::load(set, from, at)
            };
        }
        variables
    }

    /// The same of what is to be written.
    #[inline(always)]
    pub fn load_mut<S: Simd, const D: usize>(
        &self,
        set: S,
        from: &[&mut [f64]; VARIABLES],
        at: usize,
    ) -> [Wide<S>; VARIABLES] {
        let [a, b, c, d, e] = from;
        self.load::<S, D>(set, [a, b, c, d, e], at)
    }

    /// Writes the variables of the lines along D.
    #[inline(always)]
    pub fn store<S: Simd, const D: usize>(
        &self,
        to: &mut [&mut [f64]; VARIABLES],
        at: usize,
        variables: [Wide<S>; VARIABLES],
    ) {
        let is_whole = self.lines == S::F64_LANES;
        for (to, variable) in to.iter_mut().zip(variables) {
            if D == 0 {
                variable.scatter(to, at, self.across, self.lines);
            } else if is_whole {
                variable.store(to, at);
            } else {
                variable.scatter(to, at, 1, self.lines);
            }
        }
    }
}

/// The tiles of a cell, for lines along a direction.
fn tiles(cell: &Site, direction: usize, lanes: usize) -> impl Iterator<Item = Tile> + use<> {
    let shape = cell.shape;
    let inside = cell.inside;
    // Lanes lie along x, those of x along y.
    let (lane, outer) = match direction {
        0 => (1, 2),
        1 => (0, 2),
        _ => (0, 1),
    };
    let first = cell.origin[direction] + inside[direction].0;
    let [inner, others, along] = [lane, outer, direction].map(|d| inside[d]);
    (others.0..others.1).flat_map(move |other| {
        (inner.0..inner.1).step_by(lanes).map(move |begin| {
            let mut place = [0; 3];
            place[lane] = begin as isize;
            place[outer] = other as isize;
            place[direction] = along.0 as isize;
            Tile {
                at: shape.at(place),
                stride: shape.strides[direction],
                across: shape.strides[lane],
                lines: (inner.1 - begin).min(lanes),
                count: along.1 - along.0,
                first,
                points: shape.points,
                line: (other - others.0) * (inner.1 - inner.0) + begin - inner.0,
            }
        })
    })
}

/// Lines of a cell along a direction.
fn lines(cell: &Site, direction: usize) -> usize {
    let inside = cell.inside.map(|(from, to)| to - from);
    (0..3)
        .filter(|d| *d != direction)
        .map(|d| inside[d])
        .product()
}

/// How the systems along lines are solved: Gauss, forth and back.
///
/// Of each point `KEPT` numbers are kept between elimination and substitution, the last five of them the eliminated
/// right-hand side, then the solution. The rows of a tile begin with those of the `REACH` points before the line and end
/// with room for the `REACH` points after it.
pub trait Lines {
    /// Over how many points a row reaches to each side.
    const REACH: usize;
    /// Numbers kept of a point.
    const KEPT: usize;
    /// Registers that a tile's elimination needs for each point of a line, and two more, to itself.
    const SCRATCH: usize;

    /// Eliminates along the tile; `rows` are `KEPT` for each point.
    fn eliminate<S: Simd, const D: usize>(
        &self,
        set: S,
        tile: &Tile,
        u: &[f64],
        rhs: &[f64],
        rows: &mut [S::f64s],
        scratch: &mut [S::f64s],
    );

    /// Substitutes back, leaving the solution in the last five of each row, and writes what is wanted of it.
    fn substitute<S: Simd, const D: usize>(
        &self,
        set: S,
        tile: &Tile,
        u: &mut [f64],
        rhs: &mut [f64],
        rows: &mut [S::f64s],
    );
}

/// The memory of sweeps.
#[derive(Debug)]
pub struct Sweeps {
    /// Rows of all tiles of all stages but the last, which has those of one tile.
    rows: Vec<f64>,
    scratch: Vec<f64>,
    lanes: usize,
    sent: Vec<f64>,
    received: Vec<f64>,
}

/// Bytes of the arrays of the rank that has most, for the systems `L` on n^3 points.
pub fn memory_bytes<L: Lines>(n: usize, ranks: usize) -> u64 {
    let partition = Partition::new(n, 0, ranks);
    let q = partition.q;
    let edge = n.div_ceil(q) + 2 * GHOSTS;
    let fields = 3 * q * VARIABLES * edge.pow(3);
    let faces = 2 * 6 * 2 * (q - 1) * VARIABLES * n.div_ceil(q).pow(2);
    let tiles = |length: usize| length.div_ceil(lanes()) * lanes() * length;
    let inside = n.div_ceil(q);
    let rows = (inside + 2 * L::REACH) * L::KEPT;
    let sweeps = rows * ((q - 1) * tiles(inside) + lanes());
    8 * (fields + faces + sweeps) as u64
}

/// First tag of sweeps: after those of faces.
const TAG: u32 = 6;

impl Sweeps {
    /// For the systems `L` on a part.
    pub fn new<L: Lines>(partition: &Partition) -> Self {
        let lanes = lanes();
        let (mut rows, mut most, mut longest) = (0, 0, 0);
        for direction in 0..3 {
            let mut sum = 0;
            for stage in 0..partition.q {
                let cell = &partition.cells[partition.at_stage(direction, stage)];
                let length = cell.inside[direction].1 - cell.inside[direction].0;
                let tiles = tiles(cell, direction, lanes).count();
                let tile = (length + 2 * L::REACH) * L::KEPT * lanes;
                let last = stage + 1 == partition.q;
                sum += if last { tile } else { tile * tiles };
                longest = longest.max(length);
                most = most.max(lines(cell, direction));
            }
            rows = rows.max(sum);
        }
        let message = if partition.q == 1 {
            0
        } else {
            most * L::KEPT * L::REACH
        };
        Self {
            rows: vec![0.0; rows],
            scratch: vec![0.0; (longest + 2) * L::SCRATCH * lanes],
            lanes,
            sent: vec![0.0; message],
            received: vec![0.0; message],
        }
    }

    /// Solves along all lines of a direction.
    ///
    /// # Errors
    /// Those of the messenger.
    pub fn sweep<L: Lines, M: Messenger + ?Sized, const D: usize>(
        &mut self,
        world: &mut Communicator<'_, M>,
        systems: &L,
        fields: &mut Fields,
    ) -> sonde_message::Result<()> {
        let partition = &fields.partition;
        let q = partition.q;
        let arch = pulp::Arch::new();
        let mut begin = 0;
        for stage in 0..q {
            let number = partition.at_stage(D, stage);
            let cell = &partition.cells[number];
            arch.dispatch(Forth::<L, D> {
                systems,
                cell,
                u: &mut fields.u[number],
                rhs: &mut fields.rhs[number],
                rows: &mut self.rows[begin..],
                scratch: &mut self.scratch,
                received: (stage > 0).then_some(&self.received[..]),
                sent: (q > 1).then_some(&mut self.sent[..]),
                is_last: stage + 1 == q,
            });
            if stage + 1 < q {
                begin += self.stage_rows::<L>(cell, D);
                let numbers = lines(cell, D) * L::KEPT * L::REACH;
                let partners = [partition.neighbour(D, false), partition.neighbour(D, true)];
                self.pass(world, partners, TAG + 2 * D as u32, numbers)?;
            }
        }
        for stage in (0..q - 1).rev() {
            let number = partition.at_stage(D, stage);
            let cell = &partition.cells[number];
            begin -= self.stage_rows::<L>(cell, D);
            let after = &partition.cells[partition.at_stage(D, stage + 1)];
            let numbers = lines(after, D) * VARIABLES * L::REACH;
            let partners = [partition.neighbour(D, true), partition.neighbour(D, false)];
            self.pass(world, partners, TAG + 1 + 2 * D as u32, numbers)?;
            arch.dispatch(Back::<L, D> {
                systems,
                cell,
                u: &mut fields.u[number],
                rhs: &mut fields.rhs[number],
                rows: &mut self.rows[begin..],
                received: &self.received,
                sent: (stage > 0).then_some(&mut self.sent[..]),
            });
        }
        Ok(())
    }

    /// Numbers of the rows of a stage.
    fn stage_rows<L: Lines>(&self, cell: &Site, direction: usize) -> usize {
        let length = cell.inside[direction].1 - cell.inside[direction].0;
        let tiles = tiles(cell, direction, self.lanes).count();
        tiles * (length + 2 * L::REACH) * L::KEPT * self.lanes
    }

    /// Sends to the first of two partners what the other's is received for.
    fn pass<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        [to, from]: [usize; 2],
        tag: u32,
        numbers: usize,
    ) -> sonde_message::Result<()> {
        let comm = world.comm();
        let mut ops = [
            Op::Recv {
                from: Source::Rank(from),
                tag: Tagged::With(tag),
                room: bytemuck::cast_slice_mut(&mut self.received[..]),
            },
            Op::Send {
                to,
                tag,
                payload: bytemuck::cast_slice(&self.sent[..numbers]),
            },
        ];
        world
            .messenger()
            .exchange(comm, &mut ops, &mut [NOWHERE; 2])
    }
}

/// One stage forth; the last one back as well.
struct Forth<'a, L, const D: usize> {
    systems: &'a L,
    cell: &'a Site,
    u: &'a mut [f64],
    rhs: &'a mut [f64],
    rows: &'a mut [f64],
    scratch: &'a mut [f64],
    received: Option<&'a [f64]>,
    sent: Option<&'a mut [f64]>,
    is_last: bool,
}

impl<L: Lines, const D: usize> WithSimd for Forth<'_, L, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, set: S) {
        let all = lines(self.cell, D);
        let rows = S::as_mut_simd_f64s(self.rows).0;
        let scratch = S::as_mut_simd_f64s(self.scratch).0;
        let mut begin = 0;
        for tile in tiles(self.cell, D, S::F64_LANES) {
            let length = (tile.count + 2 * L::REACH) * L::KEPT;
            let rows = &mut rows[begin..begin + length];
            let (before, _) = rows.split_at_mut(L::REACH * L::KEPT);
            match self.received {
                Some(received) => unpack::<S>(before, received, &tile, all),
                None => before.fill(set.splat_f64s(0.0)),
            }
            let systems = self.systems;
            systems.eliminate::<S, D>(set, &tile, self.u, self.rhs, rows, scratch);
            if self.is_last {
                let after = rows.len() - L::REACH * L::KEPT;
                rows[after..].fill(set.splat_f64s(0.0));
                systems.substitute::<S, D>(set, &tile, self.u, self.rhs, rows);
                if let Some(sent) = &mut self.sent {
                    pack_solution::<L, S>(rows, sent, &tile, all);
                }
                continue;
            }
            begin += length;
            if let Some(sent) = &mut self.sent {
                let last = tile.count * L::KEPT;
                pack::<S>(&rows[last..last + L::REACH * L::KEPT], sent, &tile, all);
            }
        }
    }
}

/// One stage back.
struct Back<'a, L, const D: usize> {
    systems: &'a L,
    cell: &'a Site,
    u: &'a mut [f64],
    rhs: &'a mut [f64],
    rows: &'a mut [f64],
    received: &'a [f64],
    sent: Option<&'a mut [f64]>,
}

impl<L: Lines, const D: usize> WithSimd for Back<'_, L, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, set: S) {
        let all = lines(self.cell, D);
        let rows = S::as_mut_simd_f64s(self.rows).0;
        let mut begin = 0;
        for tile in tiles(self.cell, D, S::F64_LANES) {
            let length = (tile.count + 2 * L::REACH) * L::KEPT;
            let rows = &mut rows[begin..begin + length];
            begin += length;
            for reach in 0..L::REACH {
                let row = (L::REACH + tile.count + reach + 1) * L::KEPT;
                let solution = &mut rows[row - VARIABLES..row];
                let received = &self.received[reach * VARIABLES * all..];
                unpack::<S>(solution, received, &tile, all);
            }
            let systems = self.systems;
            systems.substitute::<S, D>(set, &tile, self.u, self.rhs, rows);
            if let Some(sent) = &mut self.sent {
                pack_solution::<L, S>(rows, sent, &tile, all);
            }
        }
    }
}

/// Registers to a message: of each the lines of the tile, at their place among `all` lines.
#[inline(always)]
fn pack<S: Simd>(registers: &[S::f64s], message: &mut [f64], tile: &Tile, all: usize) {
    for (register, to) in registers.iter().zip(message.chunks_exact_mut(all)) {
        let mut register = *register;
        let from = &numbers::<S>(&mut register)[..tile.lines];
        to[tile.line..tile.line + tile.lines].copy_from_slice(from);
    }
}

#[inline(always)]
fn unpack<S: Simd>(registers: &mut [S::f64s], message: &[f64], tile: &Tile, all: usize) {
    for (register, from) in registers.iter_mut().zip(message.chunks_exact(all)) {
        let from = &from[tile.line..tile.line + tile.lines];
        numbers::<S>(register)[..tile.lines].copy_from_slice(from);
    }
}

/// The solution of the first points of the lines.
#[inline(always)]
fn pack_solution<L: Lines, S: Simd>(
    rows: &[S::f64s],
    message: &mut [f64],
    tile: &Tile,
    all: usize,
) {
    for reach in 0..L::REACH {
        let end = (L::REACH + reach + 1) * L::KEPT;
        let message = &mut message[reach * VARIABLES * all..];
        pack::<S>(&rows[end - VARIABLES..end], message, tile, all);
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
    }
}
