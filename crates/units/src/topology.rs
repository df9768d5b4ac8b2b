//! Virtual topologies: which ranks are neighbours, and by whom a message goes.
//!
//! Model:   ranks are the points of a grid, the last dimension the fastest; neighbours differ by one in one dimension, around
//!          where the grid wraps. A ring is a torus of one dimension, a hypercube a mesh of twos. A message goes in
//!          the order of the dimensions, each the shorter way round, upwards where both are as long: between two
//!          ranks always the same way, so that none overtakes another.
//! Source:  dimension order routing: Dally, Seitz, IEEE Trans. Computers C-36(5) 1987; on a hypercube it is e-cube. With
//!          buffers without bound nothing can lock up, so that no virtual channels are needed.
//!          A `mesh` without sides is as square as its ranks allow.
//! Checked: `every_pair_arrives_in_as_many_hops`, `ways_use_only_neighbours`, `names_are_read_back`.

mod words;

use std::fmt;

pub use words::Shapeless;

/// Ranks as the points of a grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    name: &'static str,
    sides: Vec<usize>,
    wraps: bool,
}

impl Topology {
    /// How many ranks it has.
    pub fn ranks(&self) -> usize {
        self.sides.iter().product()
    }

    /// The neighbours of a rank, in order.
    pub fn neighbours(&self, rank: usize) -> Vec<usize> {
        let mut all = Vec::new();
        for (dimension, side) in self.sides.iter().enumerate() {
            let (stride, at) = self.place(rank, dimension);
            let begin = rank - at * stride;
            let up = if at + 1 < *side {
                Some(at + 1)
            } else {
                self.wraps.then_some(0)
            };
            let down = at.checked_sub(1).or(self.wraps.then_some(*side - 1));
            all.extend(
                [up, down]
                    .into_iter()
                    .flatten()
                    .map(|at| begin + at * stride),
            );
        }
        all.retain(|other| *other != rank);
        all.sort_unstable();
        all.dedup();
        all
    }

    /// To whom a message for `to` goes from `from`; `to` itself when it is there.
    pub fn next(&self, from: usize, to: usize) -> usize {
        for (dimension, side) in self.sides.iter().enumerate() {
            let ((stride, here), (_, there)) =
                (self.place(from, dimension), self.place(to, dimension));
            if here == there {
                continue;
            }
            let begin = from - here * stride;
            let upwards = (there + side - here) % side;
            let at = match (self.wraps, here < there) {
                (true, _) if 2 * upwards <= *side => (here + 1) % side,
                (true, _) => (here + side - 1) % side,
                (false, true) => here + 1,
                (false, false) => here - 1,
            };
            return begin + at * stride;
        }
        to
    }

    /// The ranks on the way from one to another, both included.
    pub fn way(&self, from: usize, to: usize) -> Vec<usize> {
        let mut way = vec![from];
        let mut at = from;
        while at != to {
            at = self.next(at, to);
            way.push(at);
        }
        way
    }

    /// The pairs of neighbours, the lower rank first.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let of = |rank| {
            self.neighbours(rank)
                .into_iter()
                .map(move |one| (rank, one))
        };
        let all = (0..self.ranks()).flat_map(of);
        all.filter(|(rank, other)| rank < other).collect()
    }

    /// How many steps it is from one rank to another.
    pub fn hops(&self, from: usize, to: usize) -> usize {
        let along = |(dimension, side): (usize, &usize)| {
            let apart = self
                .place(from, dimension)
                .1
                .abs_diff(self.place(to, dimension).1);
            if self.wraps {
                apart.min(side - apart)
            } else {
                apart
            }
        };
        self.sides.iter().enumerate().map(along).sum()
    }

    /// How far apart in ranks neighbours of a dimension are, and where a rank is in it.
    fn place(&self, rank: usize, dimension: usize) -> (usize, usize) {
        let stride: usize = self.sides[dimension + 1..].iter().product();
        (stride, rank / stride % self.sides[dimension])
    }
}

/// Rows and columns of so many points, as equal as they can be, the rows the fewer.
pub fn square(points: usize) -> [usize; 2] {
    let rows = (1..=points).take_while(|rows| rows * rows <= points);
    let rows = rows.filter(|rows| points % rows == 0).last().unwrap_or(1);
    [rows, points / rows]
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if matches!(self.name, "mesh" | "torus") {
            let sides: Vec<_> = self.sides.iter().map(ToString::to_string).collect();
            write!(f, ":{}", sides.join("x"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: [(&str, usize); 12] = [
        ("ring", 1),
        ("ring", 2),
        ("ring", 7),
        ("ring", 8),
        ("mesh:3x4", 12),
        ("mesh:1x5", 5),
        ("torus:4x4", 16),
        ("torus:2x3x5", 30),
        ("torus:2x2", 4),
        ("hypercube", 1),
        ("hypercube", 2),
        ("hypercube", 32),
    ];

    #[test]
    fn every_pair_arrives_in_as_many_hops() {
        for (text, ranks) in SOME {
            let topology = Topology::parse(text, ranks).unwrap();
            for from in 0..ranks {
                for to in 0..ranks {
                    let (mut at, mut hops) = (from, 0);
                    while at != to {
                        let next = topology.next(at, to);
                        assert!(
                            topology.neighbours(at).contains(&next),
                            "{text}: {at} to {to}"
                        );
                        assert!(
                            topology.neighbours(next).contains(&at),
                            "{text}: {at} to {to}"
                        );
                        (at, hops) = (next, hops + 1);
                        assert!(hops <= ranks, "{text}: {from} to {to} goes on for ever");
                    }
                    assert_eq!(hops, topology.hops(from, to), "{text}: {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn ways_use_only_neighbours() {
        for (text, ranks, longest, pairs) in [
            ("ring", 7, 3, 7),
            ("ring", 2, 1, 1),
            ("mesh", 12, 5, 3 * 3 + 2 * 4),
            ("hypercube", 16, 4, 16 * 4 / 2),
        ] {
            let topology = Topology::parse(text, ranks).unwrap();
            let all = topology.pairs();
            assert_eq!(all.len(), pairs, "{text}: {all:?}");
            let mut most = 0;
            for (from, to) in (0..ranks * ranks).map(|at| (at / ranks, at % ranks)) {
                let way = topology.way(from, to);
                assert_eq!((way[0], way[way.len() - 1]), (from, to));
                most = most.max(way.len() - 1);
                for step in way.windows(2) {
                    let pair = (step[0].min(step[1]), step[0].max(step[1]));
                    assert!(all.contains(&pair), "{text}: {pair:?}");
                }
            }
            assert_eq!(most, longest, "{text} of {ranks}");
        }
    }

    #[test]
    fn hops_are_those_of_the_shapes() {
        let of = |text, ranks| Topology::parse(text, ranks).unwrap();
        assert_eq!(of("ring", 8).hops(1, 6), 3);
        assert_eq!(of("mesh:3x4", 12).hops(0, 11), 5);
        assert_eq!(of("torus:4x4", 16).hops(0, 15), 2);
        let cube = of("hypercube", 32);
        for rank in 0..32 {
            assert_eq!(cube.hops(9, rank), (9 ^ rank).count_ones() as usize);
            assert_eq!(cube.neighbours(rank).len(), 5);
        }
    }

    #[test]
    fn names_are_read_back() {
        for (text, ranks) in SOME {
            assert_eq!(Topology::parse(text, ranks).unwrap().to_string(), text);
        }
        assert_eq!(Topology::parse("mesh", 12).unwrap().to_string(), "mesh:3x4");
        for (text, ranks, told) in [
            ("mesh:3x4", 13, "it has 12 points"),
            ("torus:3xx", 3, "its sides are `3xx`"),
            ("hypercube", 12, "not a power of two"),
            ("tree", 4, "torus:AxBxC"),
        ] {
            let error = Topology::parse(text, ranks).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
