//! What starts processes on other machines: a Slurm allocation, an MPI. Where there is none nothing is said.
//!
//! Checked: `an_allocation_is_told_with_its_nodes`, `without_launchers_nothing_is_said`.

use super::machine::{Machine, version};
use super::{Check, Group, topic};
use sonde_fleet::Allocation;

/// The most nodes that are named.
const NAMED_MAX: usize = 8;

/// All checks of launchers; `allocation` is the one that this process is in.
pub fn checks(
    machine: &Machine,
    allocation: sonde_fleet::Result<Option<Allocation>>,
) -> Vec<Check> {
    let slurm = slurm(machine, allocation);
    let mpi = machine.program("mpirun").map(|path| {
        let topic = topic(Group::Hosts, "mpirun", "--testbed mpirun");
        match version(&path, "--version", "") {
            Ok(line) => topic.ok(format!("{line}, {}", path.display())),
            Err(problem) => topic.limited(problem, "run it by hand: `mpirun --version`"),
        }
    });
    slurm.into_iter().chain(mpi).collect()
}

fn slurm(machine: &Machine, allocation: sonde_fleet::Result<Option<Allocation>>) -> Option<Check> {
    let topic = topic(
        Group::Hosts,
        "slurm",
        "--testbed slurm, the usual one in an allocation",
    );
    let srun = machine
        .program("srun")
        .map(|path| version(&path, "--version", "slurm"));
    let here = match allocation {
        Ok(None) => None,
        Ok(Some(allocation)) => Some(allocation),
        // Of one node, for example.
        Err(error) => return Some(topic.limited(error.happened, error.remedy)),
    };
    match (srun, here) {
        (None, None) => None,
        (None, Some(allocation)) => Some(topic.missing(
            format!("job {}, and no srun", allocation.job),
            machine.install("slurm-client"),
        )),
        (Some(Err(problem)), _) => Some(topic.limited(problem, "run it by hand: `srun --version`")),
        (Some(Ok(version)), None) => Some(topic.ok(format!("{version}; no allocation here"))),
        (Some(Ok(version)), Some(allocation)) => {
            let count = allocation.nodes.len();
            let mut names = allocation.nodes[..count.min(NAMED_MAX)].join(", ");
            if count > NAMED_MAX {
                names.push_str(" and more");
            }
            Some(topic.ok(format!(
                "{version}; job {} has {count} nodes: {names}",
                allocation.job
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use crate::doctor::machine::tests::Tree;

    fn allocation(nodes: usize) -> sonde_fleet::Result<Option<Allocation>> {
        Ok(Some(Allocation {
            job: "7".into(),
            nodes: (1..=nodes).map(|node| format!("n{node}")).collect(),
            task: None,
        }))
    }

    #[test]
    fn without_launchers_nothing_is_said() {
        let other = Tree::of(&[]);
        assert!(checks(&other.machine, Ok(None)).is_empty());
        assert_eq!(
            checks(&other.machine, allocation(4))[0].status,
            Status::Missing
        );
    }

    #[test]
    fn an_allocation_is_told_with_its_nodes() {
        let other = Tree::of(&[
            ("usr/bin/srun", "#!/bin/sh\necho slurm 22.05.8\n"),
            (
                "usr/bin/mpirun",
                "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n",
            ),
        ]);
        let said = |nodes| {
            let checks = checks(&other.machine, nodes);
            assert!(
                checks.iter().all(|check| check.status == Status::Ok),
                "{checks:?}"
            );
            (checks[0].value.clone(), checks[1].value.clone())
        };
        assert_eq!(said(Ok(None)).0, "slurm 22.05.8; no allocation here");
        let (slurm, mpi) = said(allocation(4));
        assert_eq!(slurm, "slurm 22.05.8; job 7 has 4 nodes: n1, n2, n3, n4");
        assert!(mpi.starts_with("mpirun (Open MPI) 4.1.4"), "{mpi}");
        assert!(said(allocation(9)).0.ends_with("n8 and more"));
    }
}
