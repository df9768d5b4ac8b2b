//! Communication matrices, clusters, and the topologies of ranks.

use sonde_place::{Launcher, Matrix, Topology, block, parse_cluster};

/// More are not written into a launcher's file here: what is tried is the reading.
const RANKS: usize = 64;

pub fn run(bytes: &[u8]) {
    if let Ok(matrix) = Matrix::read(bytes) {
        let (_, messages) = matrix.total();
        assert!(messages <= 1 << 63);
        if matrix.ranks() <= RANKS {
            assert_eq!(Matrix::parse(&matrix.to_json()).as_ref(), Ok(&matrix));
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for ranks in [0, 1, 6, 16] {
        if let Ok(topology) = Topology::parse(text, ranks) {
            assert_eq!(
                Topology::parse(&topology.to_string(), ranks).as_ref(),
                Ok(&topology)
            );
        }
    }
    let Ok(mut cluster) = parse_cluster(text) else {
        return;
    };
    for from in 0..cluster.hosts.len().min(RANKS) {
        let _ = (cluster.leg(from, 0), cluster.way(from, 0));
    }
    cluster.even_out(RANKS);
    let ranks = cluster.slots().min(RANKS);
    if let Ok(placement) = block(ranks, &cluster) {
        for name in ["openmpi", "openmpi-hosts", "openmpi-seq", "mpich", "slurm"] {
            let launcher: Launcher = name.parse().expect("there is one of this name");
            let lines = launcher.file(&placement, &cluster).lines().count();
            assert!(
                lines <= ranks.max(cluster.hosts.len()),
                "a name made a line of its own"
            );
        }
    }
}
