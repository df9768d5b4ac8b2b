//! What ranks beside each other exchange.
//!
//! Model:   in a sweep the edge of a plane that is downstream goes to the next rank along x and along y, and the one upstream
//!          comes from the ranks before. For the residual two layers of u go both ways, along x, then along y.
//! Source:  npb.md 10. Deviations: none.
//! Units:   places of points; five numbers of each.

use bytemuck::{cast_slice, cast_slice_mut};
use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Op, Result, Source, Status, Tagged};

use super::super::cfd::VARIABLES;
use super::super::flow::{GHOSTS, Shape, Site};
use super::sweep::Direction;

const NONE: Status = Status {
    from: 0,
    tag: 0,
    bytes: 0,
};
/// Tags of layers, by axis, from here on; those of edges are below.
const LAYERS: u32 = 4;

/// Along which ranks stand beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Neighbours along x.
    X = 0,
    /// Neighbours along y.
    Y = 1,
}

/// Points of a box of a cell: from, to along x, y and z.
type Part = [(isize, isize); 3];

/// The neighbours, and room.
#[derive(Debug)]
pub struct Edges {
    /// By axis, before and after.
    neighbours: [[Option<usize>; 2]; 2],
    sent: [Vec<f64>; 2],
    came: [Vec<f64>; 2],
}

impl Edges {
    /// Of the rank at this place in a grid of so many ranks.
    pub fn new(site: &Site, along: [usize; 2], at: [usize; 2]) -> Self {
        let rank = |at: [usize; 2]| at[0] + along[0] * at[1];
        let neighbours = [0, 1].map(|axis| {
            let beside = |place: usize| {
                let mut at = at;
                at[axis] = place;
                rank(at)
            };
            let before = (at[axis] > 0).then(|| beside(at[axis] - 1));
            let after = (at[axis] + 1 < along[axis]).then(|| beside(at[axis] + 1));
            [before, after]
        });
        let is_alone = along == [1, 1];
        let room = || vec![0.0; if is_alone { 0 } else { longest(&site.shape) }];
        Self {
            neighbours,
            sent: [room(), room()],
            came: [room(), room()],
        }
    }

    /// Numbers of the room where there are neighbours.
    pub const fn numbers(shape: &Shape) -> usize {
        4 * longest(shape)
    }

    /// Takes the edge upstream of plane k.
    pub fn take<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        site: &Site,
        v: &mut [f64],
        (axis, way): (Axis, Direction),
        k: usize,
    ) -> Result<()> {
        let from = self.neighbours[axis as usize][usize::from(way == Direction::Down)];
        let Some(from) = from else { return Ok(()) };
        let extent = site.shape.extent[axis as usize] as isize;
        let at = if way == Direction::Up { -1 } else { extent };
        let part = inner_edge(site, axis, at, k as isize);
        let count = count(&part);
        let (comm, tag) = (world.comm(), tag(axis, way));
        let room = cast_slice_mut(&mut self.came[0][..count]);
        world
            .messenger()
            .recv(comm, Source::Rank(from), Tagged::With(tag), room)?;
        unpack(site, v, &part, &self.came[0][..count]);
        Ok(())
    }

    /// Gives the edge downstream of plane k.
    pub fn give<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        site: &Site,
        v: &[f64],
        (axis, way): (Axis, Direction),
        k: usize,
    ) -> Result<()> {
        let to = self.neighbours[axis as usize][usize::from(way == Direction::Up)];
        let Some(to) = to else { return Ok(()) };
        let extent = site.shape.extent[axis as usize] as isize;
        let at = if way == Direction::Up { extent - 1 } else { 0 };
        let part = inner_edge(site, axis, at, k as isize);
        let count = pack(site, v, &part, &mut self.sent[0]);
        let (comm, tag) = (world.comm(), tag(axis, way));
        world
            .messenger()
            .send(comm, to, tag, cast_slice(&self.sent[0][..count]))
    }

    /// Exchanges two layers on both sides along an axis.
    pub fn layers<M: Messenger + ?Sized>(
        &mut self,
        world: &mut Communicator<'_, M>,
        site: &Site,
        u: &mut [f64],
        axis: Axis,
    ) -> Result<()> {
        let neighbours = self.neighbours[axis as usize];
        if neighbours == [None; 2] {
            return Ok(());
        }
        let layers = GHOSTS as isize;
        let extent = site.shape.extent[axis as usize] as isize;
        let height = (0, site.shape.extent[2] as isize);
        let own = [(0, layers), (extent - layers, extent)];
        let beside = [(-layers, 0), (extent, extent + layers)];
        let own = own.map(|layers| edge(site, axis, layers, height));
        let beside = beside.map(|layers| edge(site, axis, layers, height));
        let count = count(&own[0]);
        for side in 0..2 {
            if neighbours[side].is_some() {
                pack(site, u, &own[side], &mut self.sent[side]);
            }
        }
        let tag = LAYERS + axis as u32;
        let Self { sent, came, .. } = self;
        let [low, high] = &mut *came;
        let room = [low, high].map(|room| &mut room[..count]);
        let receives = room.into_iter().zip(neighbours).filter_map(|(room, from)| {
            Some(Op::Recv {
                from: Source::Rank(from?),
                tag: Tagged::With(tag),
                room: cast_slice_mut(room),
            })
        });
        let sends = sent.iter().zip(neighbours).filter_map(|(sent, to)| {
            Some(Op::Send {
                to: to?,
                tag,
                payload: cast_slice(&sent[..count]),
            })
        });
        let mut ops = receives.chain(sends);
        let comm = world.comm();
        // One neighbour or two: as many receives as sends, without memory of their own.
        let messenger = world.messenger();
        let mut next = || ops.next().expect("a receive and a send for each neighbour");
        if neighbours.contains(&None) {
            messenger.exchange(comm, &mut [next(), next()], &mut [NONE; 2])?;
        } else {
            let mut four = [next(), next(), next(), next()];
            messenger.exchange(comm, &mut four, &mut [NONE; 4])?;
        }
        drop(ops);
        for side in 0..2 {
            if neighbours[side].is_some() {
                unpack(site, u, &beside[side], &self.came[side][..count]);
            }
        }
        Ok(())
    }
}

const fn tag(axis: Axis, way: Direction) -> u32 {
    2 * axis as u32 + way as u32
}

/// So many columns or rows, whole along the other axis.
fn edge(site: &Site, axis: Axis, at: (isize, isize), height: (isize, isize)) -> Part {
    let [nx, ny, _] = site.shape.extent;
    match axis {
        Axis::X => [at, (0, ny as isize), height],
        Axis::Y => [(0, nx as isize), at, height],
    }
}

/// The points of one column or row of a plane that are not at a wall.
fn inner_edge(site: &Site, axis: Axis, at: isize, k: isize) -> Part {
    let inside = site.inside.map(|(from, to)| (from as isize, to as isize));
    let mut part = [inside[0], inside[1], (k, k + 1)];
    part[axis as usize] = (at, at + 1);
    part
}

fn count(part: &Part) -> usize {
    let lengths = part.map(|(from, to)| (to - from) as usize);
    VARIABLES * lengths.iter().product::<usize>()
}

/// Each row of a part, for each variable: where it is.
fn rows<'a>(site: &'a Site, part: &'a Part) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
    let [x, y, z] = *part;
    (0..VARIABLES).flat_map(move |m| {
        (z.0..z.1).flat_map(move |k| {
            (y.0..y.1).map(move |j| {
                let at = m * site.shape.points + site.shape.at([x.0, j, k]);
                at..at + (x.1 - x.0) as usize
            })
        })
    })
}

fn pack(site: &Site, from: &[f64], part: &Part, into: &mut [f64]) -> usize {
    let mut packed = 0;
    for row in rows(site, part) {
        let length = row.len();
        into[packed..packed + length].copy_from_slice(&from[row]);
        packed += length;
    }
    packed
}

fn unpack(site: &Site, into: &mut [f64], part: &Part, from: &[f64]) {
    let mut unpacked = 0;
    for row in rows(site, part) {
        let length = row.len();
        into[row].copy_from_slice(&from[unpacked..unpacked + length]);
        unpacked += length;
    }
}

/// The longest message's numbers: two layers.
const fn longest(shape: &Shape) -> usize {
    let [nx, ny, nz] = shape.extent;
    GHOSTS * VARIABLES * nz * if nx > ny { nx } else { ny }
}
