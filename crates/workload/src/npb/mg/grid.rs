//! A level of the grid on one rank, and what it exchanges.
//!
//! Model:   a level of s^3 cells is cut along each axis among p ranks; where s < p only every (p/s)-th rank, counted from the
//!          last, holds a cell and the others rest. Ghosts are exchanged along x, then y, then z with what came before, so
//!          that edges and corners travel too; an axis with one rank copies. On the way up a rank that rested takes the two
//!          coarse cells beside its fine one from the neighbour that held them.
//! Source:  npb.md 5.4, 5.5. Deviations: an axis with one rank sends nothing; a hand-over is one message.
//! Units:   cells and ghosts are points of 8 B.

use bytemuck::{cast_slice, cast_slice_mut};
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Op, Result, Source, Status, Tagged};

use super::operators::{Lie, wrap_x, wrap_y};

const NONE: Status = Status {
    from: 0,
    tag: 0,
    bytes: 0,
};
/// The tags of hand-overs, by axis; those of ghosts are two for each axis from zero.
const HAND_OVER: u32 = 6;

/// Where a rank stands among all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Ranks along x, y, z.
    pub ranks: [usize; 3],
    /// This one's place along them.
    pub at: [usize; 3],
}

impl Place {
    /// Of this rank of a power of two.
    pub fn of(rank: usize, ranks: usize) -> Self {
        let k = ranks.ilog2();
        let x = k / 3;
        let y = (k - x) / 2;
        let [px, py] = [1 << x, 1 << y];
        Self {
            ranks: [px, py, ranks / (px * py)],
            at: [rank % px, rank / px % py, rank / (px * py)],
        }
    }

    /// The rank at this place along an axis, else where this one is.
    fn rank(&self, axis: usize, at: usize) -> usize {
        let mut place = self.at;
        place[axis] = at;
        place[0] + self.ranks[0] * (place[1] + self.ranks[1] * place[2])
    }
}

/// Which array of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Array {
    /// The correction; at the top the solution.
    U,
    /// The residual.
    R,
}

/// A level of the grid on one rank.
#[derive(Debug)]
pub struct Level {
    /// Own cells along x, y, z.
    pub cells: [usize; 3],
    /// By axis: whether a rank at this place along it holds cells.
    pub holds: [bool; 3],
    /// By axis 1 where the finer level has one cell of which the coarse one is at the same place, else 0.
    pub off: [usize; 3],
    /// The correction, ghosts included.
    pub u: Vec<f64>,
    /// The residual, ghosts included.
    pub r: Vec<f64>,
    /// By axis, the ranks before and after; none where the axis has one rank.
    neighbours: [Option<[usize; 2]>; 3],
    /// By axis: to give the cells beside it to this rank, or take them, on the way up.
    hand_over: [Option<HandOver>; 3],
}

#[derive(Debug, Clone, Copy)]
enum HandOver {
    To(usize),
    From(usize),
}

impl Level {
    /// Level `log` (2^log cells along each axis) at a place.
    pub fn new(log: u32, place: &Place) -> Self {
        let mut level = Self {
            cells: [1; 3],
            holds: [true; 3],
            off: [0; 3],
            u: Vec::new(),
            r: Vec::new(),
            neighbours: [None; 3],
            hand_over: [None; 3],
        };
        let size = 1_usize << log;
        for axis in 0..3 {
            let (ranks, at) = (place.ranks[axis], place.at[axis]);
            level.cells[axis] = (size / ranks).max(1);
            let stride = (ranks / size).max(1);
            let holds = (at + 1) % stride == 0;
            level.holds[axis] = holds;
            if ranks > 1 && holds {
                let beside = [(at + ranks - stride) % ranks, (at + stride) % ranks];
                level.neighbours[axis] = Some(beside.map(|at| place.rank(axis, at)));
            }
            // The finer level has one cell a rank, of every second of which this level has one.
            if 2 * size <= ranks {
                level.off[axis] = usize::from(holds);
                let finer = stride / 2;
                level.hand_over[axis] = if holds {
                    Some(HandOver::To(place.rank(axis, at - finer)))
                } else if (at + 1) % finer == 0 {
                    Some(HandOver::From(place.rank(axis, at + finer)))
                } else {
                    None
                };
            }
        }
        let points = level.points();
        level.u = vec![0.0; points];
        level.r = vec![0.0; points];
        level
    }

    /// How a plane's points lie.
    pub const fn lie(&self) -> Lie {
        Lie {
            row: self.cells[0] + 2,
            rows: self.cells[1] + 2,
        }
    }

    /// Points of one array.
    pub const fn points(&self) -> usize {
        self.lie().plane() * (self.cells[2] + 2)
    }

    /// Whether this rank holds cells of the level.
    pub fn is_held(&self) -> bool {
        self.holds == [true; 3]
    }

    /// Whether x and y are whole here.
    pub const fn has_whole_planes(&self) -> bool {
        self.neighbours[0].is_none() && self.neighbours[1].is_none()
    }

    /// The longest face that is packed.
    pub const fn face(&self) -> usize {
        let [x, y, z] = self.cells;
        let (along_x, along_y) = (y * z, (x + 2) * z);
        if along_x > along_y { along_x } else { along_y }
    }

    const fn array(&mut self, which: Array) -> &mut Vec<f64> {
        match which {
            Array::U => &mut self.u,
            Array::R => &mut self.r,
        }
    }
}

/// Room for faces: two to send and two that come.
#[derive(Debug)]
pub struct Faces([Vec<f64>; 4]);

impl Faces {
    /// For faces of at most so many points.
    pub fn new(points: usize) -> Self {
        Self(std::array::from_fn(|_| vec![0.0; points]))
    }
}

/// The points of row `row` of plane `plane` that belong to a face across x or y.
fn face_points(lie: Lie, plane: usize, axis: usize, at: usize) -> (usize, usize, usize) {
    let base = plane * lie.plane();
    if axis == 0 {
        (base + lie.row + at, lie.row, lie.rows - 2)
    } else {
        (base + at * lie.row, 1, lie.row)
    }
}

/// Packs the face at `at` across x or y; gives its points.
fn pack(array: &[f64], level: (Lie, usize), axis: usize, at: usize, face: &mut [f64]) -> usize {
    let (lie, planes) = level;
    let mut room = face.iter_mut();
    let mut packed = 0;
    for plane in 1..=planes {
        let (first, stride, count) = face_points(lie, plane, axis, at);
        let points = array[first..].iter().step_by(stride).take(count);
        room.by_ref()
            .zip(points)
            .for_each(|(room, point)| *room = *point);
        packed += count;
    }
    packed
}

fn unpack(array: &mut [f64], level: (Lie, usize), axis: usize, at: usize, face: &[f64]) {
    let (lie, planes) = level;
    let mut face = face.iter();
    for plane in 1..=planes {
        let (first, stride, count) = face_points(lie, plane, axis, at);
        let points = array[first..].iter_mut().step_by(stride).take(count);
        face.by_ref()
            .zip(points)
            .for_each(|(face, point)| *point = *face);
    }
}

/// What goes to both sides and comes from both sides, of one axis.
fn swap<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    [before, after]: [usize; 2],
    axis: usize,
    sent: [&[f64]; 2],
    room: [&mut [f64]; 2],
) -> Result<()> {
    let (up, down) = (2 * axis as u32, 2 * axis as u32 + 1);
    let [low, high] = room;
    let mut ops = [
        Op::Recv {
            from: Source::Rank(before),
            tag: Tagged::With(up),
            room: cast_slice_mut(low),
        },
        Op::Recv {
            from: Source::Rank(after),
            tag: Tagged::With(down),
            room: cast_slice_mut(high),
        },
        Op::Send {
            to: after,
            tag: up,
            payload: cast_slice(sent[1]),
        },
        Op::Send {
            to: before,
            tag: down,
            payload: cast_slice(sent[0]),
        },
    ];
    let comm = world.comm();
    world.messenger().exchange(comm, &mut ops, &mut [NONE; 4])
}

impl Level {
    /// Fills the ghosts of an array from whoever holds the cells.
    pub fn exchange<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        which: Array,
        faces: &mut Faces,
    ) -> Result<()> {
        let (lie, planes) = (self.lie(), self.cells[2]);
        for axis in 0..2 {
            let (cells, neighbours) = (self.cells[axis], self.neighbours[axis]);
            let array = self.array(which);
            let Some(neighbours) = neighbours else {
                let inner = array.chunks_exact_mut(lie.plane()).skip(1).take(planes);
                let wrap = if axis == 0 { wrap_x } else { wrap_y };
                inner.for_each(|plane| wrap(plane, lie));
                continue;
            };
            let [low, high, below, above] = &mut faces.0;
            let count = pack(array, (lie, planes), axis, 1, low);
            pack(array, (lie, planes), axis, cells, high);
            let room = [&mut below[..count], &mut above[..count]];
            swap(
                world,
                neighbours,
                axis,
                [&low[..count], &high[..count]],
                room,
            )?;
            unpack(array, (lie, planes), axis, 0, &below[..count]);
            unpack(array, (lie, planes), axis, cells + 1, &above[..count]);
        }
        self.exchange_z(world, which)
    }

    /// Fills the ghost planes of an array; those of x and y are there.
    pub fn exchange_z<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        which: Array,
    ) -> Result<()> {
        let (plane, planes, neighbours) = (self.lie().plane(), self.cells[2], self.neighbours[2]);
        let array = self.array(which);
        let Some(neighbours) = neighbours else {
            array.copy_within(planes * plane..(planes + 1) * plane, 0);
            array.copy_within(plane..2 * plane, (planes + 1) * plane);
            return Ok(());
        };
        let (below, rest) = array.split_at_mut(plane);
        let (inner, above) = rest.split_at_mut(planes * plane);
        let sent = [&inner[..plane], &inner[(planes - 1) * plane..]];
        swap(world, neighbours, 2, sent, [below, above])
    }

    /// Gives the correction on the way up to a neighbour that rested, or takes it, along each axis where that is so.
    pub fn hand_over<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        face: &mut [f64],
    ) -> Result<()> {
        let size = self.cells.map(|cells| cells + 2);
        for axis in 0..3 {
            // Along the axes to come only those who hold cells have anything yet.
            if self.holds[axis + 1..].contains(&false) {
                continue;
            }
            let Some(hand_over) = self.hand_over[axis] else {
                continue;
            };
            // The two layers along the axis, whatever the order of the others.
            let strides = [1, size[0], size[0] * size[1]];
            let others = [(axis + 1) % 3, (axis + 2) % 3];
            let points = || {
                (0..2 * size[others[0]] * size[others[1]]).map(|point| {
                    let rest = point / 2;
                    point % 2 * strides[axis]
                        + rest % size[others[0]] * strides[others[0]]
                        + rest / size[others[0]] * strides[others[1]]
                })
            };
            let count = 2 * size[others[0]] * size[others[1]];
            let (comm, tag) = (world.comm(), HAND_OVER + axis as u32);
            let face = &mut face[..count];
            match hand_over {
                HandOver::To(to) => {
                    for (face, point) in face.iter_mut().zip(points()) {
                        *face = self.u[point];
                    }
                    world.messenger().send(comm, to, tag, cast_slice(face))?;
                }
                HandOver::From(from) => {
                    let room = cast_slice_mut(face);
                    let from = Source::Rank(from);
                    let tag = Tagged::With(tag);
                    world.messenger().recv(comm, from, tag, room)?;
                    for (face, point) in face.iter().zip(points()) {
                        self.u[point] = *face;
                    }
                }
            }
        }
        Ok(())
    }
}
