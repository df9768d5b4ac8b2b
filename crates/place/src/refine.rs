//! A placement made better by small changes: two ranks change places, or one goes to a free slot.
//!
//! Model:   for each rank in order, every other one on another host and every host with room is tried; the first change
//!          that lowers the cost is kept. It ends when a whole pass keeps nothing, or when the arithmetic allowed is used up.
//! Source:  pairwise exchange (Kernighan & Lin 1970, without look-ahead), on the whole cost instead of the cut.
//! Units:   a step of arithmetic is a link of a rank or a line of the cluster looked at once.
//! Checked: `refining_never_makes_worse` (property), `a_bad_start_is_mended`.

use crate::cost::{Link, State};
use crate::{Cluster, Placement};

/// The most steps: about a second.
const STEPS_MAX: u64 = 200_000_000;
/// What is less is rounding.
const LEAST_GAIN: f64 = 1e-9;

/// What came of it.
pub(crate) struct Refined {
    pub placement: Placement,
    /// Whether no small change is left that helps.
    pub is_complete: bool,
}

/// Changes a placement until no small change lowers its cost.
pub(crate) fn refine(links: &[Vec<Link>], cluster: &Cluster, start: &Placement) -> Refined {
    let mut state = State::new(links, cluster, start.hosts().to_vec());
    let mut room: Vec<usize> = cluster.hosts.iter().map(|host| host.slots).collect();
    start.hosts().iter().for_each(|host| room[*host] -= 1);
    let mut best = state.total_s();
    let is_complete = loop {
        let before = best;
        if !pass(&mut state, &mut room, &mut best) {
            break false;
        }
        if best >= before * (1.0 - LEAST_GAIN) {
            break true;
        }
    };
    Refined {
        placement: Placement::new(state.into_hosts()),
        is_complete,
    }
}

/// Tries every change once; false where the arithmetic is used up.
fn pass(state: &mut State<'_>, room: &mut [usize], best: &mut f64) -> bool {
    let ranks = state.ranks();
    for rank in 0..ranks {
        for other in rank + 1..ranks {
            let (a, b) = (state.host(rank), state.host(other));
            if a == b {
                continue;
            }
            state.shift(rank, b);
            state.shift(other, a);
            let total = state.total_s();
            if total < *best * (1.0 - LEAST_GAIN) {
                *best = total;
            } else {
                state.shift(other, b);
                state.shift(rank, a);
            }
        }
        for host in 0..room.len() {
            let here = state.host(rank);
            if room[host] == 0 || host == here {
                continue;
            }
            state.shift(rank, host);
            let total = state.total_s();
            if total < *best * (1.0 - LEAST_GAIN) {
                *best = total;
                room[host] -= 1;
                room[here] += 1;
            } else {
                state.shift(rank, here);
            }
        }
        if state.steps > STEPS_MAX {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::sites;
    use crate::cost::links;
    use crate::{Host, Leg, Matrix};
    use crate::{Pattern, cost, random, round_robin};
    use proptest::prelude::*;

    #[test]
    fn a_bad_start_is_mended() {
        let cluster = sites(2, 1, 4);
        let matrix = Pattern::Ring.matrix(8, 100_000, 1, 1).unwrap();
        let start = round_robin(8, &cluster).unwrap();
        let refined = refine(&links(&matrix), &cluster, &start);
        assert!(refined.is_complete);
        let hosts = refined.placement.hosts();
        let across = (0..8)
            .filter(|rank| hosts[*rank] != hosts[(rank + 1) % 8])
            .count();
        assert_eq!(across, 2, "a ring is cut twice: {hosts:?}");
    }

    #[test]
    fn the_room_that_a_rank_leaves_is_free() {
        // Rank 0 goes to rank 1 on h2; only then is room for rank 2 on h1, which is nearer to rank 3.
        let ms = [
            [0.0, 1.0, 100.0, 1.0],
            [1.0, 0.0, 100.0, 100.0],
            [100.0, 100.0, 0.0, 5.0],
            [1.0, 100.0, 5.0, 0.0],
        ];
        let hosts = [1, 2, 1, 1].iter().enumerate().map(|(at, slots)| Host {
            name: format!("h{}", at + 1),
            slots: *slots,
            site: 0,
        });
        let leg = |from: usize, to: usize| {
            let leg = Leg {
                latency_s: ms[from][to] * 1e-3,
                bytes_per_s: 1e9,
            };
            (leg, Vec::new())
        };
        let cluster = Cluster::new(hosts.collect(), vec!["site".into()], Vec::new(), leg).unwrap();
        let mut matrix = Matrix::new(4).unwrap();
        matrix.add(0, 1, 100, 1);
        matrix.add(2, 3, 100, 1);
        let start = Placement::new(vec![0, 1, 2, 3]);
        let refined = refine(&links(&matrix), &cluster, &start);
        assert_eq!(refined.placement.hosts(), [1, 1, 0, 3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn refining_never_makes_worse(seed in 0u64..1_000, slots in 2usize..5) {
            let cluster = sites(3, 2, slots);
            let matrix = Pattern::Random.matrix(11, 40_000, 2, seed).unwrap();
            let start = random(11, &cluster, seed).unwrap();
            let refined = refine(&links(&matrix), &cluster, &start).placement;
            let total = |placement| cost(&matrix, &cluster, placement).total_s();
            prop_assert!(total(&refined) <= total(&start) * (1.0 + 1e-9));
            for host in 0..6 {
                prop_assert!(refined.hosts().iter().filter(|at| **at == host).count() <= slots);
            }
        }
    }
}
