//! Where the charges are.
//!
//! Model:   the stream's numbers fill the grid, x fastest. Every rank finds the ten largest and ten smallest of its own, which it
//!          reaches by jumps; of all ranks' finds the ten largest are +1 and the ten smallest -1.
//! Source:  RNR-94-007 §2.3.3. Deviations: one collective call instead of twenty.
//! Units:   the stream's integers, points in the order of the grid.

use sonde_message::collectives::Communicator;
use sonde_message::{Messenger, Result};

use super::super::random::Stream;
use super::grid::{Level, Place};

const SEED: u64 = 314_159_265;
const TEN: usize = 10;

/// The ten largest of what was put in, with their points.
struct Largest([(i64, i64); TEN]);

impl Largest {
    #[inline]
    fn put(&mut self, number: i64, point: i64) {
        if number <= self.0[0].0 {
            return;
        }
        self.0[0] = (number, point);
        self.0.sort_unstable();
    }
}

/// The right-hand side on this rank, without ghosts filled.
pub fn charges<M: Messenger + ?Sized>(
    world: &mut Communicator<'_, M>,
    points: usize,
    place: &Place,
    top: &Level,
) -> Result<Vec<f64>> {
    let [x, y, z] = top.cells;
    let first = [x * place.at[0], y * place.at[1], z * place.at[2]];
    let none = || Largest([(i64::MIN, 0); TEN]);
    let (mut largest, mut smallest) = (none(), none());
    for k in 0..z {
        for j in 0..y {
            let row = first[0] + points * (first[1] + j + points * (first[2] + k));
            let mut stream = Stream::new(SEED).jumped(row as u64);
            for point in row..row + x {
                let number = stream.step() as i64;
                largest.put(number, point as i64);
                smallest.put(-number, point as i64);
            }
        }
    }
    let mut v = vec![0.0; top.points()];
    let lie = top.lie();
    for (own, sign) in [(largest, 1.0), (smallest, -1.0)] {
        let own: Vec<i64> = own.0.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let mut all = vec![0_i64; own.len() * world.size()];
        world.allgather(&own, &mut all)?;
        let mut all: Vec<_> = all.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        all.sort_unstable();
        for (_, point) in &all[all.len() - TEN..] {
            let point = *point as usize;
            let at = [
                point % points,
                point / points % points,
                point / (points * points),
            ];
            let here = [0, 1, 2].map(|axis| at[axis].wrapping_sub(first[axis]));
            if here
                .iter()
                .zip(top.cells)
                .all(|(here, cells)| *here < cells)
            {
                v[here[0] + 1 + lie.row * (here[1] + 1) + lie.plane() * (here[2] + 1)] = sign;
            }
        }
    }
    Ok(v)
}
