//! The placement that is proposed.
//!
//! Model:   ranks are divided along the cluster's hierarchy ([`tree`](crate::tree)), at each level by the graph partitioner:
//!          once with every part filled in proportion to its slots, once with as few parts as are needed. These two, block
//!          and round-robin are each made better by small changes, and the cheapest is taken; so it never costs more than
//!          what launchers do by themselves.
//! Checked: `a_stencil_is_cut_where_it_is_narrow`, `a_transpose_stays_at_its_site`, `never_worse_than_launchers` (property),
//!          `the_same_seed_gives_the_same_mapping`, `few_ranks_stay_together`.

use crate::cost::{Link, links};
use crate::partition::divide;
use crate::placement::check_room;
use crate::refine::{Refined, refine};
use crate::tree::{Tree, tree};
use crate::{Cluster, Cost, Matrix, Placement, TooMany, block, cost, round_robin};

/// A placement that was looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// It.
    pub placement: Placement,
    /// What it costs.
    pub cost: Cost,
    /// Whether no change of two ranks would lower the cost; false where the arithmetic allowed was used up before.
    pub is_complete: bool,
}

/// How many ranks each part of a group gets where there is more room than ranks.
#[derive(Clone, Copy)]
enum Filling {
    /// In proportion to its slots.
    Even,
    /// The largest part first, as many as it takes.
    Dense,
}

/// Looks for a placement of little cost, the same for the same seed.
///
/// # Errors
/// [`TooMany`].
pub fn map(matrix: &Matrix, cluster: &Cluster, seed: u64) -> Result<Mapping, TooMany> {
    let ranks = matrix.ranks();
    check_room(ranks, cluster)?;
    let (bytes, messages) = matrix.total();
    let links = links(matrix);
    let tree = tree(cluster, bytes / messages.max(1));
    let mut starts: Vec<Placement> = Vec::new();
    for filling in [Filling::Even, Filling::Dense] {
        let mut of = vec![0; ranks];
        let descent = Descent {
            links: &links,
            cluster,
            filling,
            seed,
        };
        descent.place(&tree, &(0..ranks).collect::<Vec<_>>(), &mut of);
        starts.push(Placement::new(of));
    }
    starts.extend([block(ranks, cluster)?, round_robin(ranks, cluster)?]);
    let mut best: Option<Mapping> = None;
    for start in &starts {
        let Refined {
            placement,
            is_complete,
        } = refine(&links, cluster, start);
        let cost = cost(matrix, cluster, &placement);
        let is_better = |best: &Mapping| cost.total_s() < best.cost.total_s() * (1.0 - 1e-9);
        if best.as_ref().is_none_or(is_better) {
            best = Some(Mapping {
                placement,
                cost,
                is_complete,
            });
        }
    }
    Ok(best.expect("there were starts"))
}

struct Descent<'a> {
    links: &'a [Vec<Link>],
    cluster: &'a Cluster,
    filling: Filling,
    seed: u64,
}

impl Descent<'_> {
    /// Gives these ranks hosts of the tree.
    fn place(&self, tree: &Tree, ranks: &[usize], of: &mut [usize]) {
        match tree {
            Tree::Host(host) => ranks.iter().for_each(|rank| of[*rank] = *host),
            Tree::Group { parts, leg } => {
                let room: Vec<_> = parts.iter().map(|part| part.slots(self.cluster)).collect();
                let sizes = match self.filling {
                    Filling::Even => proportional(&room, ranks.len()),
                    Filling::Dense => dense(&room, ranks.len()),
                };
                let part_of = divide(self.links, ranks, &sizes, leg, self.seed);
                for (at, part) in parts.iter().enumerate() {
                    let mine = ranks.iter().zip(&part_of).filter(|(_, part)| **part == at);
                    let mine: Vec<_> = mine.map(|(rank, _)| *rank).collect();
                    if !mine.is_empty() {
                        self.place(part, &mine, of);
                    }
                }
            }
        }
    }
}

/// `count` in proportion to `room`, whole, none above its room: the largest remainders are rounded up.
fn proportional(room: &[usize], count: usize) -> Vec<usize> {
    let all: usize = room.iter().sum::<usize>().max(1);
    let mut sizes: Vec<_> = room.iter().map(|one| one * count / all).collect();
    let mut order: Vec<_> = (0..room.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(room[*at] * count % all), *at));
    let left = count - sizes.iter().sum::<usize>();
    for at in order.into_iter().filter(|at| room[*at] > 0).take(left) {
        sizes[at] += 1;
    }
    sizes
}

/// The largest first.
fn dense(room: &[usize], count: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..room.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(room[*at]), *at));
    let mut left = count;
    let mut sizes = vec![0; room.len()];
    for at in order {
        sizes[at] = room[at].min(left);
        left -= sizes[at];
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::sites;
    use crate::cost::Traffic;
    use crate::{Pattern, random};
    use proptest::prelude::*;

    #[test]
    fn a_stencil_is_cut_where_it_is_narrow() {
        // 4 x 8 on two sites of 16: across the shorter side, four pairs each way.
        let cluster = sites(2, 4, 4);
        let matrix = Pattern::Stencil2d.matrix(32, 1_000, 1, 1).unwrap();
        let mapping = map(&matrix, &cluster, 1).unwrap();
        let far = |placement: &Placement| Traffic::of(&matrix, &cluster, placement).far_bytes;
        assert_eq!(far(&mapping.placement), 8 * 1_000);
        assert!(mapping.is_complete);
        assert!(
            far(&block(32, &cluster).unwrap()) == 16 * 1_000,
            "rows of eight are cut along"
        );
        assert!(far(&random(32, &cluster, 1).unwrap()) > 24 * 1_000);
    }

    #[test]
    fn a_transpose_stays_at_its_site() {
        let cluster = sites(2, 4, 2);
        let matrix = Pattern::Transpose.matrix(16, 50_000, 3, 1).unwrap();
        let mapping = map(&matrix, &cluster, 1).unwrap();
        assert_eq!(
            Traffic::of(&matrix, &cluster, &mapping.placement).far_bytes,
            0
        );
        let mut drawn: Vec<f64> = (0..21)
            .map(|seed| cost(&matrix, &cluster, &random(16, &cluster, seed).unwrap()).total_s())
            .collect();
        drawn.sort_by(f64::total_cmp);
        assert!(
            drawn[0] > 3.0 * mapping.cost.total_s(),
            "{drawn:?} {mapping:?}"
        );
    }

    #[test]
    fn few_ranks_stay_together() {
        let cluster = sites(3, 2, 4);
        let matrix = Pattern::AllToAll.matrix(4, 1_000, 1, 1).unwrap();
        let hosts = map(&matrix, &cluster, 1).unwrap().placement;
        assert!(
            hosts.hosts().iter().all(|host| *host == hosts.host(0)),
            "{hosts:?}"
        );
    }

    #[test]
    fn shares_are_whole_and_fit() {
        assert_eq!(proportional(&[4, 4, 1], 8), [4, 3, 1]);
        assert_eq!(proportional(&[0, 3, 3], 5), [0, 3, 2]);
        assert_eq!(dense(&[2, 5, 5], 6), [0, 5, 1]);
    }

    #[test]
    fn the_same_seed_gives_the_same_mapping() {
        let cluster = sites(2, 4, 8);
        let matrix = Pattern::Random.matrix(64, 1_000, 1, 3).unwrap();
        assert_eq!(map(&matrix, &cluster, 5), map(&matrix, &cluster, 5));
        let refused = map(&Matrix::new(65).unwrap(), &cluster, 1).unwrap_err();
        assert_eq!((refused.ranks, refused.slots), (65, 64));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn never_worse_than_launchers(ranks in 1usize..25, seed in 0u64..1_000, at in 0usize..6) {
            let cluster = sites(2, 3, 4);
            let pattern = [
                Pattern::Stencil2d, Pattern::Stencil3d, Pattern::Transpose, Pattern::Ring, Pattern::AllToAll, Pattern::Random,
            ][at];
            let matrix = pattern.matrix(ranks, 10_000, 2, seed).unwrap();
            let mapping = map(&matrix, &cluster, seed).unwrap();
            for other in [block(ranks, &cluster).unwrap(), round_robin(ranks, &cluster).unwrap()] {
                prop_assert!(mapping.cost.total_s() <= cost(&matrix, &cluster, &other).total_s() * (1.0 + 1e-9));
            }
            for host in 0..6 {
                prop_assert!(mapping.placement.hosts().iter().filter(|at| **at == host).count() <= 4);
            }
        }
    }
}
