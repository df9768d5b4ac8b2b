//! Sweeps along the lines of a multi-partitioned cube: elimination forth, substitution back.
//!
//! Model:   as many lines as a register has lanes are a tile; all lines of a cell are worked at by tiles, in rows of numbers
//!          kept of each point. Where a line goes on in another rank's cell, its last rows are sent there, and the solution
//!          comes back; at every stage each rank sends to one neighbour what it receives from the opposite one. Until rows
//!          have come, the left-hand sides of the cell that they are for are formed, tile by tile; once they are there, each is
//!          formed right before its elimination, while it is in the cache.
//! Source:  npb.md §8, §9. Deviations: the lines inside alone travel, without padding; coefficients and lines lie apart in
//!          messages, whatever the registers; BT's blocks are made in the elimination, and nothing of them ahead.
//! Units:   messages are numbers of 8 bytes.
//! Checked: the kernels' verification and counts of messages.

use pulp::{Simd, WithSimd};
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Op, Request, Source, Tagged};

use super::cfd::{Official, VARIABLES, checks};
use super::flow::{GHOSTS, Planes, Site, of_plane};
use super::multipartition::{Fields, NOWHERE, Partition};
use super::wide::{Wide, lanes, numbers, run};
use super::{Outcome, now_ns};

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

/// The tiles of a cell, for lines along a direction; for those of x and y it may be one plane alone.
fn tiles(
    cell: &Site,
    direction: usize,
    lanes: usize,
    plane: Option<usize>,
) -> impl Iterator<Item = Tile> + use<> {
    let shape = cell.shape;
    let mut inside = cell.inside;
    if let Some(plane) = plane {
        inside[2] = (plane, plane + 1);
    }
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
    /// Registers that forming gives to elimination, for each point of a line and two more. With none nothing is formed.
    const FORMED: usize;

    /// Forms what needs nothing of the points before the line: of left-hand sides in `formed`, of right-hand sides in `rows`.
    fn form<S: Simd, const D: usize>(
        &self,
        _: S,
        _tile: &Tile,
        _u: &[f64],
        _rhs: &[f64],
        _rows: &mut [S::f64s],
        _formed: &mut [S::f64s],
    ) {
    }

    /// Eliminates along the tile; `rows` are `KEPT` for each point.
    fn eliminate<S: Simd, const D: usize>(
        &self,
        set: S,
        tile: &Tile,
        u: &[f64],
        rhs: &[f64],
        rows: &mut [S::f64s],
        formed: &[S::f64s],
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
    /// Rows of all tiles of all stages; of the last one only as many tiles as can be under way.
    rows: Vec<f64>,
    formed: Vec<f64>,
    lanes: usize,
    /// Numbers, as bytes: they are the messenger's while they are on their way.
    sent: Vec<u8>,
    received: Vec<u8>,
}

/// How many numbers sweeps need.
struct Room {
    rows: usize,
    formed: usize,
    message: usize,
}

impl Room {
    /// For the systems `L` on a part.
    fn of<L: Lines>(partition: &Partition, lanes: usize) -> Self {
        let q = partition.q;
        let is_ahead = q > 1 && L::FORMED > 0;
        let mut room = Self {
            rows: 0,
            formed: 0,
            message: 0,
        };
        for direction in 0..3 {
            let mut rows = 0;
            for stage in 0..q {
                let cell = &partition.cells[partition.at_stage(direction, stage)];
                let length = cell.inside[direction].1 - cell.inside[direction].0;
                let tiles = tiles(cell, direction, lanes, None).count();
                let row = (length + 2 * L::REACH) * L::KEPT * lanes;
                let is_last = stage + 1 == q;
                rows += row * if is_last && !is_ahead { 1 } else { tiles };
                let formed = (length + 2) * L::FORMED * lanes;
                let formed = formed * if is_ahead { tiles } else { 1 };
                room.formed = room.formed.max(formed);
                let message = lines(cell, direction) * L::KEPT * L::REACH;
                room.message = room.message.max(if q > 1 { message } else { 0 });
            }
            room.rows = room.rows.max(rows);
        }
        room
    }
}

/// Bytes of the arrays of a rank, for the systems `L` on n^3 points; where cells differ, as if all were of the largest.
pub fn memory_bytes<L: Lines>(n: usize, ranks: usize) -> u64 {
    let q = ranks.isqrt().max(1);
    let edge = n.div_ceil(q);
    let partition = Partition::new(edge * q, 0, q * q);
    let cells = partition.cells.iter();
    let fields: usize = cells.map(|cell| 3 * cell.shape.numbers()).sum();
    let faces = 2 * 6 * GHOSTS * (q - 1) * VARIABLES * edge.pow(2);
    let planes = Planes::numbers(&partition.cells[0].shape);
    let room = Room::of::<L>(&partition, lanes());
    let sweeps = room.rows + room.formed + 2 * room.message;
    8 * (fields + faces + planes + sweeps) as u64
}

/// First tag of sweeps: after those of faces.
const TAG: u32 = 6;

/// Marches from the initial state so many time steps of that length, one beforehand that is not timed, over a cube of `n` points
/// along an edge; the norms at the end are held against the official ones.
///
/// # Errors
/// Those of the messenger.
pub fn march<L: Lines, M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    lines: &L,
    n: usize,
    (steps, dt): (usize, f64),
    official: Option<&Official>,
) -> sonde_message::Result<Outcome> {
    world.messenger().phase("setup");
    let mut fields = Fields::new(n, world.rank(), world.size());
    let mut sweeps = Sweeps::new::<L>(&fields.partition);
    fields.start();
    sweeps.step(world, lines, &mut fields, dt)?;
    fields.start();
    world.messenger().phase("setup");
    world.barrier()?;
    let begin_ns = now_ns(world);
    for _ in 0..steps {
        sweeps.step(world, lines, &mut fields, dt)?;
    }
    let timed_ns = now_ns(world) - begin_ns;
    world.messenger().phase("check");
    let [residual, error] = fields.norms(world)?;
    Ok(Outcome {
        timed_ns,
        checks: checks(&residual, &error, official),
    })
}

impl Sweeps {
    /// For the systems `L` on a part.
    pub fn new<L: Lines>(partition: &Partition) -> Self {
        let lanes = lanes();
        let room = Room::of::<L>(partition, lanes);
        let message = || vec![0; room.message * size_of::<f64>()];
        Self {
            rows: vec![0.0; room.rows],
            formed: vec![0.0; room.formed],
            lanes,
            sent: message(),
            received: message(),
        }
    }

    /// A time step: ghosts, right-hand side times `dt`, and the sweeps along x, y and z.
    ///
    /// # Errors
    /// Those of the messenger.
    pub fn step<L: Lines, M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        systems: &L,
        fields: &mut Fields,
        dt: f64,
    ) -> sonde_message::Result<()> {
        if fields.partition.q == 1 {
            world.messenger().phase("right-hand side, x and y sweeps");
            self.planes(systems, fields, dt);
        } else {
            world.messenger().phase("right-hand side");
            fields.right_hand_side(world, dt)?;
            world.messenger().phase("x sweep");
            self.sweep::<_, _, 0>(world, systems, fields)?;
            world.messenger().phase("y sweep");
            self.sweep::<_, _, 1>(world, systems, fields)?;
        }
        world.messenger().phase("z sweep");
        self.sweep::<_, _, 2>(world, systems, fields)
    }

    /// Of one rank all but the sweep along z, plane by plane while it is in the cache.
    fn planes<L: Lines>(&mut self, systems: &L, fields: &mut Fields, dt: f64) {
        let cell = &fields.partition.cells[0];
        let (u, rhs) = (&mut fields.u[0][..], &mut fields.rhs[0][..]);
        for plane in cell.inside[2].0..cell.inside[2].1 {
            let from = [&*u, &fields.forcing[0]];
            of_plane(cell, from, rhs, dt, &mut fields.planes, plane);
            run(Forth::<L, 0> {
                systems,
                cell,
                u: &mut *u,
                rhs: &mut *rhs,
                rows: &mut self.rows,
                formed: &mut self.formed,
                ahead: 0,
                received: None,
                sent: None,
                is_last: true,
                plane: Some(plane),
            });
            run(Forth::<L, 1> {
                systems,
                cell,
                u: &mut *u,
                rhs: &mut *rhs,
                rows: &mut self.rows,
                formed: &mut self.formed,
                ahead: 0,
                received: None,
                sent: None,
                is_last: true,
                plane: Some(plane),
            });
        }
    }

    /// Solves along all lines of a direction.
    ///
    /// # Errors
    /// Those of the messenger.
    fn sweep<L: Lines, M: Messenger + ?Sized, const D: usize>(
        &mut self,
        world: &mut Communicator<'_, M>,
        systems: &L,
        fields: &mut Fields,
    ) -> sonde_message::Result<()> {
        let q = fields.partition.q;
        let after = fields.partition.neighbour(D, false);
        let before = fields.partition.neighbour(D, true);
        let (mut begin, mut under_way) = (0, None);
        for stage in 0..q {
            let number = fields.partition.at_stage(D, stage);
            let ahead = match under_way.take() {
                Some(under_way) => {
                    self.form_until::<L, M, D>(world, systems, fields, (number, begin), under_way)?
                }
                None => 0,
            };
            let cell = &fields.partition.cells[number];
            let is_last = stage + 1 == q;
            if q > 1 {
                let kept = if is_last { VARIABLES } else { L::KEPT };
                self.resize_sent(lines(cell, D) * kept * L::REACH);
            }
            run(Forth::<L, D> {
                systems,
                cell,
                u: &mut fields.u[number],
                rhs: &mut fields.rhs[number],
                rows: &mut self.rows[begin..],
                formed: &mut self.formed,
                ahead,
                received: (stage > 0).then_some(&self.received[..]),
                sent: (q > 1).then_some(&mut self.sent[..]),
                is_last,
                plane: None,
            });
            if !is_last {
                begin += self.stage_rows::<L>(cell, D);
                under_way = Some(self.post(world, [after, before], TAG + 2 * D as u32)?);
            }
        }
        for stage in (0..q - 1).rev() {
            self.pass(world, [before, after], TAG + 1 + 2 * D as u32)?;
            let number = fields.partition.at_stage(D, stage);
            let cell = &fields.partition.cells[number];
            begin -= self.stage_rows::<L>(cell, D);
            self.resize_sent(lines(cell, D) * VARIABLES * L::REACH);
            run(Back::<L, D> {
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

    /// Forms tiles of a cell, whose rows are from `begin` on, until what is to come has come; gives how many.
    fn form_until<L: Lines, M: Messenger + ?Sized, const D: usize>(
        &mut self,
        world: &mut Communicator<'_, M>,
        systems: &L,
        fields: &Fields,
        (number, begin): (usize, usize),
        [coming, going]: [Request; 2],
    ) -> sonde_message::Result<usize> {
        let cell = &fields.partition.cells[number];
        let tiles = tiles(cell, D, self.lanes, None);
        let mut ahead = 0;
        let mut come = Err(coming);
        for tile in tiles.take_while(|_| L::FORMED > 0) {
            come = match come {
                Ok(done) => Ok(done),
                Err(request) => world.messenger().test(request)?,
            };
            if come.is_ok() {
                break;
            }
            run(Form::<L, D> {
                systems,
                tile,
                u: &fields.u[number],
                rhs: &fields.rhs[number],
                rows: &mut self.rows[begin..],
                formed: &mut self.formed,
                number: ahead,
            });
            ahead += 1;
        }
        let come = match come {
            Ok(done) => done,
            Err(request) => world.messenger().wait(request)?,
        };
        self.received = come.buffer;
        self.sent = world.messenger().wait(going)?.buffer;
        Ok(ahead)
    }

    fn resize_sent(&mut self, numbers: usize) {
        self.sent.resize(numbers * size_of::<f64>(), 0);
    }

    /// Numbers of the rows of a stage.
    fn stage_rows<L: Lines>(&self, cell: &Site, direction: usize) -> usize {
        let length = cell.inside[direction].1 - cell.inside[direction].0;
        let tiles = tiles(cell, direction, self.lanes, None).count();
        tiles * (length + 2 * L::REACH) * L::KEPT * self.lanes
    }

    /// Begins to receive from the second of two partners, and to send to the first.
    fn post<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        [to, from]: [usize; 2],
        tag: u32,
    ) -> sonde_message::Result<[Request; 2]> {
        let (comm, messenger) = (world.comm(), world.messenger());
        let room = std::mem::take(&mut self.received);
        let payload = std::mem::take(&mut self.sent);
        let coming = messenger.irecv(comm, Source::Rank(from), Tagged::With(tag), room)?;
        let going = messenger.isend(comm, to, tag, payload)?;
        Ok([coming, going])
    }

    /// Sends to the first of two partners what the other's is received for.
    fn pass<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        [to, from]: [usize; 2],
        tag: u32,
    ) -> sonde_message::Result<()> {
        let comm = world.comm();
        let mut ops = [
            Op::Recv {
                from: Source::Rank(from),
                tag: Tagged::With(tag),
                room: &mut self.received,
            },
            Op::Send {
                to,
                tag,
                payload: &self.sent,
            },
        ];
        world
            .messenger()
            .exchange(comm, &mut ops, &mut [NOWHERE; 2])
    }
}

/// A tile's rows: of the tile `number`, each having so many registers.
#[inline(always)]
fn slot<T>(of: &mut [T], number: usize, length: usize) -> &mut [T] {
    &mut of[number * length..(number + 1) * length]
}

/// Forms one tile, to be eliminated later.
struct Form<'a, L, const D: usize> {
    systems: &'a L,
    tile: Tile,
    u: &'a [f64],
    rhs: &'a [f64],
    rows: &'a mut [f64],
    formed: &'a mut [f64],
    number: usize,
}

impl<L: Lines, const D: usize> WithSimd for Form<'_, L, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, set: S) {
        let length = (self.tile.count + 2 * L::REACH) * L::KEPT;
        let rows = slot(S::as_mut_simd_f64s(self.rows).0, self.number, length);
        let length = (self.tile.count + 2) * L::FORMED;
        let formed = slot(S::as_mut_simd_f64s(self.formed).0, self.number, length);
        self.systems
            .form::<S, D>(set, &self.tile, self.u, self.rhs, rows, formed);
    }
}

/// One stage forth; the last one back as well.
struct Forth<'a, L, const D: usize> {
    systems: &'a L,
    cell: &'a Site,
    u: &'a mut [f64],
    rhs: &'a mut [f64],
    rows: &'a mut [f64],
    formed: &'a mut [f64],
    /// Tiles that are formed.
    ahead: usize,
    received: Option<&'a [u8]>,
    sent: Option<&'a mut [u8]>,
    is_last: bool,
    /// Of x and y: only this plane.
    plane: Option<usize>,
}

impl<L: Lines, const D: usize> WithSimd for Forth<'_, L, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, set: S) {
        let all = lines(self.cell, D);
        let all_rows = S::as_mut_simd_f64s(self.rows).0;
        let all_formed = S::as_mut_simd_f64s(self.formed).0;
        for (number, tile) in tiles(self.cell, D, S::F64_LANES, self.plane).enumerate() {
            // What is not kept has one place for all tiles: it stays in the cache.
            let place = number.min(self.ahead);
            let length = (tile.count + 2 * L::REACH) * L::KEPT;
            let rows = slot(all_rows, if self.is_last { place } else { number }, length);
            let formed = slot(all_formed, place, (tile.count + 2) * L::FORMED);
            let systems = self.systems;
            if number >= self.ahead {
                systems.form::<S, D>(set, &tile, self.u, self.rhs, rows, formed);
            }
            let (before, _) = rows.split_at_mut(L::REACH * L::KEPT);
            match self.received {
                Some(received) => unpack::<S>(before, received, &tile, all),
                None => before.fill(set.splat_f64s(0.0)),
            }
            systems.eliminate::<S, D>(set, &tile, self.u, self.rhs, rows, formed);
            if self.is_last {
                let after = rows.len() - L::REACH * L::KEPT;
                rows[after..].fill(set.splat_f64s(0.0));
                systems.substitute::<S, D>(set, &tile, self.u, self.rhs, rows);
                if let Some(sent) = &mut self.sent {
                    pack_solution::<L, S>(rows, sent, &tile, all);
                }
            } else if let Some(sent) = &mut self.sent {
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
    received: &'a [u8],
    sent: Option<&'a mut [u8]>,
}

impl<L: Lines, const D: usize> WithSimd for Back<'_, L, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, set: S) {
        let all = lines(self.cell, D);
        let rows = S::as_mut_simd_f64s(self.rows).0;
        let mut begin = 0;
        for tile in tiles(self.cell, D, S::F64_LANES, None) {
            let length = (tile.count + 2 * L::REACH) * L::KEPT;
            let rows = &mut rows[begin..begin + length];
            begin += length;
            for reach in 0..L::REACH {
                let row = (L::REACH + tile.count + reach + 1) * L::KEPT;
                let solution = &mut rows[row - VARIABLES..row];
                let received = &self.received[reach * VARIABLES * all * NUMBER..];
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

/// Bytes of a number.
const NUMBER: usize = size_of::<f64>();

/// Registers to a message: of each the lines of the tile, at their place among `all` lines.
#[inline(always)]
fn pack<S: Simd>(registers: &[S::f64s], message: &mut [u8], tile: &Tile, all: usize) {
    let place = tile.line * NUMBER..(tile.line + tile.lines) * NUMBER;
    for (register, to) in registers.iter().zip(message.chunks_exact_mut(all * NUMBER)) {
        let mut register = *register;
        let from = &numbers::<S>(&mut register)[..tile.lines];
        to[place.clone()].copy_from_slice(bytemuck::cast_slice(from));
    }
}

#[inline(always)]
fn unpack<S: Simd>(registers: &mut [S::f64s], message: &[u8], tile: &Tile, all: usize) {
    let place = tile.line * NUMBER..(tile.line + tile.lines) * NUMBER;
    for (register, from) in registers.iter_mut().zip(message.chunks_exact(all * NUMBER)) {
        let to = &mut numbers::<S>(register)[..tile.lines];
        bytemuck::cast_slice_mut(to).copy_from_slice(&from[place.clone()]);
    }
}

/// The solution of the first points of the lines.
#[inline(always)]
fn pack_solution<L: Lines, S: Simd>(rows: &[S::f64s], message: &mut [u8], tile: &Tile, all: usize) {
    for reach in 0..L::REACH {
        let end = (L::REACH + reach + 1) * L::KEPT;
        let message = &mut message[reach * VARIABLES * all * NUMBER..];
        pack::<S>(&rows[end - VARIABLES..end], message, tile, all);
    }
}
