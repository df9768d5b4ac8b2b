//! A placement as the files that launchers follow.
//!
//! Model:   `openmpi` is a rankfile (`mpirun --rankfile FILE`): rank, host, and which of the host's slots, to which the rank is bound;
//!          `openmpi-hosts` a hostfile with slots, for all that `mpirun` places itself; `openmpi-seq` a host a rank
//!          (`mpirun --map-by seq --hostfile FILE`, which does not bind); `mpich` a host a rank with the number of ranks in a
//!          row (`mpiexec -f FILE`); `slurm` a host a task (`SLURM_HOSTFILE=FILE srun --distribution=arbitrary`).
//! Source:  mpirun(1) of Open MPI 4.1, "Rankfiles"; the Hydra wiki, "Using Hydra"; srun(1), `--distribution=arbitrary`.
//! Checked: `files_are_as_the_manuals_say`, and `crates/sonde/tests/lab_place.rs` by running them.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use crate::{Cluster, Placement};
use std::str::FromStr;
use thiserror::Error;

/// The file of a launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// A rankfile of Open MPI.
    OpenMpi,
    /// A hostfile of Open MPI.
    OpenMpiHosts,
    /// A host a rank, for Open MPI's sequential mapper.
    OpenMpiSeq,
    /// A host file of MPICH's Hydra.
    Mpich,
    /// The arbitrary distribution of Slurm.
    Slurm,
}

const ALL: [(&str, Launcher); 5] = [
    ("openmpi", Launcher::OpenMpi),
    ("openmpi-hosts", Launcher::OpenMpiHosts),
    ("openmpi-seq", Launcher::OpenMpiSeq),
    ("mpich", Launcher::Mpich),
    ("slurm", Launcher::Slurm),
];

/// Nothing is called so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a launcher's file: write openmpi, openmpi-hosts, openmpi-seq, mpich or slurm"
)]
pub struct Unnamed(pub String);

impl FromStr for Launcher {
    type Err = Unnamed;

    fn from_str(text: &str) -> Result<Self, Unnamed> {
        let found = ALL.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, launcher)| *launcher)
            .ok_or_else(|| Unnamed(text.into()))
    }
}

impl Launcher {
    /// The contents of its file.
    pub fn file(self, placement: &Placement, cluster: &Cluster) -> String {
        let name = |host: usize| cluster.hosts.get(host).map_or("", |host| &host.name);
        let mut text = String::new();
        let mut line = |words: std::fmt::Arguments<'_>| text.push_str(&format!("{words}\n"));
        match self {
            Self::OpenMpi => {
                let mut used = vec![0_usize; cluster.hosts.len()];
                for (rank, host) in placement.hosts().iter().enumerate() {
                    let Some(slot) = used.get_mut(*host) else {
                        continue;
                    };
                    line(format_args!("rank {rank}={} slot={slot}", name(*host)));
                    *slot = slot.saturating_add(1);
                }
            }
            Self::OpenMpiHosts => {
                for host in cluster.hosts.iter().filter(|host| host.slots > 0) {
                    line(format_args!("{} slots={}", host.name, host.slots));
                }
            }
            Self::OpenMpiSeq | Self::Slurm => {
                for host in placement.hosts() {
                    line(format_args!("{}", name(*host)));
                }
            }
            Self::Mpich => {
                for row in placement.hosts().chunk_by(|a, b| a == b) {
                    let host = row.first().map_or("", |host| name(*host));
                    line(format_args!("{host}:{}", row.len()));
                }
            }
        }
        text
    }

    /// The command that follows the file.
    pub fn command(self, file: &str, ranks: usize) -> String {
        match self {
            Self::OpenMpi => format!("mpirun -np {ranks} --rankfile {file} PROGRAM"),
            Self::OpenMpiHosts => format!("mpirun -np {ranks} --hostfile {file} PROGRAM"),
            Self::OpenMpiSeq => {
                format!("mpirun -np {ranks} --map-by seq --bind-to none --hostfile {file} PROGRAM")
            }
            Self::Mpich => format!("mpiexec -n {ranks} -f {file} PROGRAM"),
            Self::Slurm => {
                format!("SLURM_HOSTFILE={file} srun -n {ranks} --distribution=arbitrary PROGRAM")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::sites;

    #[test]
    fn files_are_as_the_manuals_say() {
        let cluster = sites(1, 3, 2);
        let placement = Placement::new(vec![2, 2, 0, 2]);
        let file = |name: &str| name.parse::<Launcher>().unwrap().file(&placement, &cluster);
        assert_eq!(
            file("openmpi"),
            "rank 0=h3 slot=0\nrank 1=h3 slot=1\nrank 2=h1 slot=0\nrank 3=h3 slot=2\n"
        );
        assert_eq!(
            file("openmpi-hosts"),
            "h1 slots=2\nh2 slots=2\nh3 slots=2\n"
        );
        assert_eq!(file("openmpi-seq"), "h3\nh3\nh1\nh3\n");
        assert_eq!(file("mpich"), "h3:2\nh1:1\nh3:1\n");
        assert_eq!(file("slurm"), file("openmpi-seq"));
        assert!(
            "lam"
                .parse::<Launcher>()
                .unwrap_err()
                .to_string()
                .contains("openmpi-seq")
        );
        for (name, launcher) in ALL {
            let command = launcher.command("/tmp/f", 4);
            assert!(
                command.contains("/tmp/f") && command.contains('4'),
                "{name}: {command}"
            );
        }
    }
}
