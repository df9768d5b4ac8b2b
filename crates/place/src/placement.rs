//! Which rank runs on which host, and the placements that launchers make by themselves.
//!
//! Model:   block fills a host's slots before the next host's; round-robin gives each host with room one rank in turn;
//!          random gives each rank a slot by a shuffle.
//! Units:   ranks and hosts from 0.
//! Checked: `launchers_placements`, `random_is_by_seed_and_within_slots`.

use crate::Cluster;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use thiserror::Error;

/// The host of each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    hosts: Vec<usize>,
}

/// There is not room for all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{ranks} ranks do not fit on {slots} slots of {hosts} hosts: give hosts more slots (`--slots`), or name more hosts"
)]
pub struct TooMany {
    /// How many ranks.
    pub ranks: usize,
    /// How many slots.
    pub slots: usize,
    /// How many hosts.
    pub hosts: usize,
}

impl Placement {
    /// The host of each rank, in the order of ranks.
    pub fn new(hosts: Vec<usize>) -> Self {
        Self { hosts }
    }

    /// The host of a rank.
    pub fn host(&self, rank: usize) -> usize {
        self.hosts[rank]
    }

    /// The host of each rank.
    pub fn hosts(&self) -> &[usize] {
        &self.hosts
    }
}

/// Refuses more ranks than slots.
pub(crate) fn check_room(ranks: usize, cluster: &Cluster) -> Result<(), TooMany> {
    let slots = cluster.slots();
    if ranks > slots {
        let hosts = cluster.hosts.len();
        return Err(TooMany {
            ranks,
            slots,
            hosts,
        });
    }
    Ok(())
}

/// Each host's slots one after the other.
fn seats(cluster: &Cluster) -> Vec<usize> {
    let hosts = cluster.hosts.iter().enumerate();
    hosts
        .flat_map(|(at, host)| std::iter::repeat_n(at, host.slots))
        .collect()
}

/// A host's slots are filled before the next host's.
///
/// # Errors
/// [`TooMany`].
pub fn block(ranks: usize, cluster: &Cluster) -> Result<Placement, TooMany> {
    check_room(ranks, cluster)?;
    Ok(Placement::new(seats(cluster)[..ranks].to_vec()))
}

/// One rank to each host with room, in turn.
///
/// # Errors
/// [`TooMany`].
pub fn round_robin(ranks: usize, cluster: &Cluster) -> Result<Placement, TooMany> {
    check_room(ranks, cluster)?;
    let most = cluster
        .hosts
        .iter()
        .map(|host| host.slots)
        .max()
        .unwrap_or(0);
    let rounds = (0..most).flat_map(|round| {
        let hosts = cluster.hosts.iter().enumerate();
        hosts
            .filter(move |(_, host)| host.slots > round)
            .map(|(at, _)| at)
    });
    Ok(Placement::new(rounds.take(ranks).collect()))
}

/// Each rank gets a slot by chance; the same by the same seed.
///
/// # Errors
/// [`TooMany`].
pub fn random(ranks: usize, cluster: &Cluster, seed: u64) -> Result<Placement, TooMany> {
    check_room(ranks, cluster)?;
    let mut seats = seats(cluster);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for at in 0..ranks {
        let left = (seats.len() - at) as u128;
        let step = (u128::from(random.next_u64()) * left) >> 64;
        seats.swap(at, at + step as usize);
    }
    seats.truncate(ranks);
    Ok(Placement::new(seats))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::sites;

    #[test]
    fn launchers_placements() {
        let mut cluster = sites(1, 3, 2);
        cluster.set_slots("h2", 1).unwrap();
        assert_eq!(block(4, &cluster).unwrap().hosts(), [0, 0, 1, 2]);
        assert_eq!(round_robin(5, &cluster).unwrap().hosts(), [0, 1, 2, 0, 2]);
        let refused = block(6, &cluster).unwrap_err().to_string();
        assert!(
            refused.starts_with("6 ranks do not fit on 5 slots of 3 hosts"),
            "{refused}"
        );
    }

    #[test]
    fn random_is_by_seed_and_within_slots() {
        let cluster = sites(2, 4, 3);
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..50 {
            let placement = random(20, &cluster, seed).unwrap();
            assert_eq!(placement, random(20, &cluster, seed).unwrap());
            for host in 0..8 {
                let there = placement.hosts().iter().filter(|at| **at == host).count();
                assert!(there <= 3);
            }
            seen.insert(placement.hosts().to_vec());
        }
        assert!(seen.len() > 40);
    }
}
