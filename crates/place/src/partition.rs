//! Ranks divided into parts of given sizes, so that little is sent between parts: METIS, and exact sizes.
//!
//! Model:   parts are divided in two groups of about equal size, ranks by METIS's multilevel recursive bisection with the
//!          sizes as targets; then ranks move one by one, the one that costs least first, until the sizes are exact; then
//!          each group is divided further. An edge weighs what its messages take over the leg between parts.
//! Source:  Karypis & Kumar 1998 (METIS). Deviations: bisection is driven from here, one at a time, so that sizes are exact
//!          at each level; METIS is asked for the best of eight cuts.
//! Units:   weights are whole numbers that add up to about 2^28; METIS counts in 32 bits.
//! Checked: `parts_have_their_sizes` (property), `two_clusters_are_found`, `the_same_seed_gives_the_same_parts`.

use crate::Leg;
use crate::cost::Link;
use metis::option::{NCuts, Seed, UFactor};
use std::sync::Mutex;

/// What the weights of all edges add up to, about.
const WEIGHTS: f64 = (1u64 << 28) as f64;
const CUTS: metis::Idx = 8;

/// METIS draws from the C library's one generator, which it seeds at each call: two at once would disturb each other.
static METIS: Mutex<()> = Mutex::new(());

/// The part of each of `ranks`, in their order: `sizes[p]` of them in part `p`.
///
/// # Panics
/// The sizes do not add up to the number of ranks.
pub(crate) fn divide(
    links: &[Vec<Link>],
    ranks: &[usize],
    sizes: &[usize],
    leg: &Leg,
    seed: u64,
) -> Vec<usize> {
    assert_eq!(ranks.len(), sizes.iter().sum::<usize>(), "a place for each");
    let wanted: Vec<usize> = (0..sizes.len()).filter(|part| sizes[*part] > 0).collect();
    let mut part_of = vec![0; ranks.len()];
    let all: Vec<usize> = (0..ranks.len()).collect();
    let task = Task {
        links,
        ranks,
        sizes,
        leg,
        seed,
    };
    task.divide(&all, &wanted, &mut part_of);
    part_of
}

struct Task<'a> {
    links: &'a [Vec<Link>],
    ranks: &'a [usize],
    sizes: &'a [usize],
    leg: &'a Leg,
    seed: u64,
}

impl Task<'_> {
    /// Gives each member, a place in `ranks`, one of the parts.
    fn divide(&self, members: &[usize], parts: &[usize], part_of: &mut [usize]) {
        if let [part] = parts {
            members.iter().for_each(|member| part_of[*member] = *part);
            return;
        }
        if members.len() == parts.len() {
            // One in each: they are equally far from each other, so it does not matter which.
            for (member, part) in members.iter().zip(parts) {
                part_of[*member] = *part;
            }
            return;
        }
        let half = members.len() as u64;
        let mut sum = 0;
        let cut = (1..parts.len())
            .min_by_key(|cut| {
                sum = parts[..*cut]
                    .iter()
                    .map(|part| self.sizes[*part] as u64)
                    .sum();
                (2 * sum).abs_diff(half)
            })
            .expect("two parts at least");
        let (left, right) = parts.split_at(cut);
        let size = left.iter().map(|part| self.sizes[*part]).sum();
        let is_right = self.bisect(members, size);
        let side = |wanted: bool| -> Vec<usize> {
            let sides = members.iter().zip(&is_right);
            sides
                .filter(|(_, right)| **right == wanted)
                .map(|(member, _)| *member)
                .collect()
        };
        self.divide(&side(false), left, part_of);
        self.divide(&side(true), right, part_of);
    }

    /// Which members are on the right, so that `size` are on the left.
    fn bisect(&self, members: &[usize], size: usize) -> Vec<bool> {
        let graph = self.graph(members);
        if graph.neighbours.is_empty() {
            return (0..members.len()).map(|member| member >= size).collect();
        }
        let share = size as f32 / members.len() as f32;
        let targets = [share, 1.0 - share];
        let mut part = vec![0; members.len()];
        let locked = METIS
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        metis::Graph::new(1, 2, &graph.first, &graph.neighbours)
            .expect("the arrays are those of a graph")
            .set_adjwgt(&graph.weights)
            .set_tpwgts(&targets)
            .set_option(Seed((self.seed % (1 << 30)) as metis::Idx))
            .set_option(NCuts(CUTS))
            .set_option(UFactor(1))
            .part_recursive(&mut part)
            .expect("METIS has memory for so small a graph");
        drop(locked);
        let mut is_right: Vec<bool> = part.iter().map(|part| *part != 0).collect();
        graph.make_exact(&mut is_right, size);
        is_right
    }

    fn graph(&self, members: &[usize]) -> Graph {
        let mut place = vec![None; self.links.len()];
        for (at, member) in members.iter().enumerate() {
            place[self.ranks[*member]] = Some(at as metis::Idx);
        }
        let time = |link: &Link| {
            let there = self.leg.time_s(link.sent.0, link.sent.1);
            let time = there + self.leg.time_s(link.got.0, link.got.1);
            // Where nothing takes time, bytes tell.
            if time > 0.0 {
                time
            } else {
                (link.sent.0 + link.got.0) as f64
            }
        };
        let (mut first, mut neighbours, mut times) = (vec![0], Vec::new(), Vec::new());
        for member in members {
            for link in &self.links[self.ranks[*member]] {
                if let Some(with) = place[link.with] {
                    neighbours.push(with);
                    times.push(time(link));
                }
            }
            first.push(neighbours.len() as metis::Idx);
        }
        let sum: f64 = times.iter().sum();
        let scale = if sum > 0.0 { WEIGHTS / sum } else { 1.0 };
        let weights = times
            .iter()
            .map(|time| (time * scale).round().max(1.0) as metis::Idx);
        Graph {
            weights: weights.collect(),
            first,
            neighbours,
        }
    }
}

/// A graph as METIS takes it.
struct Graph {
    first: Vec<metis::Idx>,
    neighbours: Vec<metis::Idx>,
    weights: Vec<metis::Idx>,
}

impl Graph {
    /// Moves members, each time the one that costs least, until `size` are on the left.
    fn make_exact(&self, is_right: &mut [bool], size: usize) {
        let mut left = is_right.iter().filter(|right| !**right).count();
        while left != size {
            let from = left < size;
            let movable = (0..is_right.len()).filter(|at| is_right[*at] == from);
            let best = movable.max_by_key(|at| (self.gain(is_right, *at), std::cmp::Reverse(*at)));
            let best = best.expect("too many on one side");
            is_right[best] = !from;
            left = if from { left + 1 } else { left - 1 };
        }
    }

    /// What the other side is closer than its own.
    fn gain(&self, is_right: &[bool], at: usize) -> i64 {
        let range = self.first[at] as usize..self.first[at + 1] as usize;
        let edges = self.neighbours[range.clone()]
            .iter()
            .zip(&self.weights[range]);
        edges
            .map(|(with, weight)| {
                let weight = i64::from(*weight);
                if is_right[*with as usize] == is_right[at] {
                    -weight
                } else {
                    weight
                }
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::links;
    use crate::{Matrix, Pattern};
    use proptest::prelude::*;

    const LEG: Leg = Leg {
        latency_s: 1e-3,
        bytes_per_s: 1e6,
    };

    fn divided(matrix: &Matrix, sizes: &[usize], seed: u64) -> Vec<usize> {
        let ranks: Vec<_> = (0..matrix.ranks()).collect();
        divide(&links(matrix), &ranks, sizes, &LEG, seed)
    }

    #[test]
    fn two_clusters_are_found() {
        // Even ranks talk to even ones, odd to odd, and one pair across.
        let mut matrix = Matrix::new(12).unwrap();
        for from in 0..12 {
            for to in (0..12).filter(|to| *to != from && to % 2 == from % 2) {
                matrix.add(from, to, 1_000, 1);
            }
        }
        matrix.add(3, 4, 10, 1);
        let parts = divided(&matrix, &[6, 6], 1);
        for rank in 0..12 {
            assert_eq!(parts[rank], parts[rank % 2], "{parts:?}");
        }
        assert_ne!(parts[0], parts[1]);
    }

    #[test]
    fn the_same_seed_gives_the_same_parts() {
        let matrix = Pattern::Random.matrix(64, 1_000, 1, 3).unwrap();
        let sizes = [10, 20, 4, 30];
        let first = divided(&matrix, &sizes, 9);
        assert_eq!(first, divided(&matrix, &sizes, 9));
        assert_ne!(first, divided(&matrix, &sizes, 10));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn parts_have_their_sizes(sizes in prop::collection::vec(0usize..9, 1..7), density in 0u64..4, seed in 0u64..50) {
            let count: usize = sizes.iter().sum();
            prop_assume!(count > 0);
            let mut matrix = Matrix::new(count).unwrap();
            let mut draw = seed;
            for from in 0..count {
                for to in 0..count {
                    draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    if (draw >> 60) < 4 * density {
                        matrix.add(from, to, draw >> 40, 1);
                    }
                }
            }
            let parts = divided(&matrix, &sizes, seed);
            for (part, size) in sizes.iter().enumerate() {
                prop_assert_eq!(parts.iter().filter(|of| **of == part).count(), *size);
            }
        }
    }
}
