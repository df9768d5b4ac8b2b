//! Virtual topologies on virtual circuits: a circuit for each pair of hosts that communicates, or few circuits and
//! forwarding through hosts on the way.
//!
//! Model:   hosts are the nodes, in their order, so that those of a site stand together. `direct` has one circuit, of both directions, for each
//!          pair of hosts whose ranks communicate. `forwarded` has the circuits of the topology alone: those of neighbours; a
//!          message between others goes by hosts on the way, which take it whole and send it on, the same hosts that a
//!          messenger over this topology takes ([`Topology::way`]). The cost is that of [`cost`](crate::cost()), where a forwarded
//!          message pays each leg; what hosts take for forwarding is left out.
//! Units:   bytes, hops (circuits on a message's way, weighted by messages for the mean), seconds.
//! Checked: `a_ring_has_few_circuits_and_long_ways`, `direct_costs_what_the_placement_costs`.

use crate::{Cluster, Cost, Placement};
use sonde_units::{Matrix, Topology};
use std::collections::BTreeMap;

/// Which circuits there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One for each pair of hosts that communicates.
    Direct,
    /// Those of the topology; hosts on the way forward.
    Forwarded,
}

/// What one of the modes needs and costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Circuits {
    /// Which mode.
    pub mode: Mode,
    /// How many circuits.
    pub circuits: usize,
    /// The most that end at one host: what its table must hold.
    pub circuits_host_max: usize,
    /// Circuits on the way of a message between hosts, on average; 0 where there is none.
    pub hops_mean: f64,
    /// The longest way.
    pub hops_max: usize,
    /// What all circuits carry together.
    pub carried_bytes: u64,
    /// What the busiest circuit carries, both directions together.
    pub busiest_bytes: u64,
    /// What it costs.
    pub cost: Cost,
}

/// Both modes for a program that is placed so.
///
/// # Panics
/// The topology is of another number of hosts.
pub fn circuits(
    topology: &Topology,
    matrix: &Matrix,
    cluster: &Cluster,
    placement: &Placement,
) -> [Circuits; 2] {
    let hosts = cluster.hosts.len();
    assert_eq!(topology.ranks(), hosts, "a topology of these hosts");
    let direct = |from: usize, to: usize| vec![from, to];
    let forwarded = |from: usize, to: usize| topology.way(from, to);
    let between = between_hosts(matrix, placement);
    let mut own = vec![(0, 0); hosts];
    for rank_from in 0..matrix.ranks() {
        for rank_to in (0..matrix.ranks()).filter(|to| *to != rank_from) {
            let host = placement.host(rank_from);
            if host == placement.host(rank_to) {
                own[host].0 += matrix.bytes(rank_from, rank_to);
                own[host].1 += matrix.messages(rank_from, rank_to);
            }
        }
    }
    let within: f64 = own
        .iter()
        .map(|(bytes, messages)| cluster.within.time_s(*bytes, *messages))
        .sum();
    let ranks = matrix.ranks() as f64;
    [
        tally(
            Mode::Direct,
            cluster,
            &between,
            within,
            ranks,
            Vec::new(),
            direct,
        ),
        tally(
            Mode::Forwarded,
            cluster,
            &between,
            within,
            ranks,
            topology.pairs(),
            forwarded,
        ),
    ]
}

type Between = BTreeMap<(usize, usize), (u64, u64)>;

/// What hosts send to each other: bytes and messages.
fn between_hosts(matrix: &Matrix, placement: &Placement) -> Between {
    let mut between = Between::new();
    for from in 0..matrix.ranks() {
        for to in 0..matrix.ranks() {
            let pair = (placement.host(from), placement.host(to));
            let sent = (matrix.bytes(from, to), matrix.messages(from, to));
            if pair.0 != pair.1 && sent != (0, 0) {
                let sum = between.entry(pair).or_default();
                *sum = (sum.0 + sent.0, sum.1 + sent.1);
            }
        }
    }
    between
}

/// Sends everything by its way; `given` are circuits that are there whether used or not.
fn tally(
    mode: Mode,
    cluster: &Cluster,
    between: &Between,
    within_s: f64,
    ranks: f64,
    given: Vec<(usize, usize)>,
    way: impl Fn(usize, usize) -> Vec<usize>,
) -> Circuits {
    let mut carried: BTreeMap<(usize, usize), u64> =
        given.into_iter().map(|pair| (pair, 0)).collect();
    let mut loads = vec![0u64; cluster.lines.len()];
    let (mut legs_s, mut hops, mut messages_all, mut hops_max) = (within_s, 0, 0, 0);
    for (&(from, to), &(bytes, messages)) in between {
        let nodes = way(from, to);
        for step in nodes.windows(2) {
            let (a, b) = (step[0], step[1]);
            *carried.entry((a.min(b), a.max(b))).or_default() += bytes;
            legs_s += cluster.leg(a, b).time_s(bytes, messages);
            cluster
                .way(a, b)
                .iter()
                .for_each(|line| loads[*line as usize] += bytes);
        }
        let length = nodes.len() - 1;
        hops += messages * length as u64;
        messages_all += messages;
        hops_max = hops_max.max(length);
    }
    let mut ends = vec![0; cluster.hosts.len()];
    for (a, b) in carried.keys() {
        ends[*a] += 1;
        ends[*b] += 1;
    }
    let times = loads.iter().zip(&cluster.lines).enumerate();
    let times = times.map(|(at, (bytes, line))| (*bytes as f64 / line.bytes_per_s, at));
    let most = times
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(_, at)| loads[*at] > 0);
    Circuits {
        mode,
        circuits: carried.len(),
        circuits_host_max: ends.into_iter().max().unwrap_or(0),
        hops_mean: if messages_all == 0 {
            0.0
        } else {
            hops as f64 / messages_all as f64
        },
        hops_max,
        carried_bytes: carried.values().sum(),
        busiest_bytes: carried.values().copied().max().unwrap_or(0),
        cost: Cost {
            rank_s: legs_s / ranks,
            line_s: most.map_or(0.0, |(time, _)| time),
            line: most.map(|(_, at)| at),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::sites;
    use crate::{Pattern, block, cost};

    fn of(text: &str, hosts: usize) -> Topology {
        Topology::parse(text, hosts).unwrap()
    }

    #[test]
    fn a_ring_has_few_circuits_and_long_ways() {
        let cluster = sites(2, 4, 2);
        let matrix = Pattern::AllToAll.matrix(16, 1_000, 1, 1).unwrap();
        let placement = block(16, &cluster).unwrap();
        let [direct, ring] = circuits(&of("ring", 8), &matrix, &cluster, &placement);
        assert_eq!(
            (direct.circuits, direct.circuits_host_max, direct.hops_max),
            (28, 7, 1)
        );
        assert_eq!(
            (ring.circuits, ring.circuits_host_max, ring.hops_max),
            (8, 2, 4)
        );
        // Distances round a ring of 8: 1 1 2 2 3 3 4.
        assert!((ring.hops_mean - 16.0 / 7.0).abs() < 1e-9, "{ring:?}");
        assert_eq!(ring.carried_bytes * 7, direct.carried_bytes * 16);
        assert!(ring.cost.total_s() > direct.cost.total_s());
        assert!(ring.busiest_bytes > direct.busiest_bytes);
    }

    #[test]
    fn direct_costs_what_the_placement_costs() {
        let cluster = sites(2, 2, 4);
        let matrix = Pattern::Stencil2d.matrix(16, 5_000, 2, 1).unwrap();
        let placement = block(16, &cluster).unwrap();
        let [direct, cube] = circuits(&of("hypercube", 4), &matrix, &cluster, &placement);
        let whole = cost(&matrix, &cluster, &placement);
        assert!(
            (direct.cost.total_s() - whole.total_s()).abs() < 1e-12,
            "{direct:?} {whole:?}"
        );
        assert_eq!((direct.mode, cube.mode), (Mode::Direct, Mode::Forwarded));
        assert_eq!(cube.circuits, 4);
    }
}
