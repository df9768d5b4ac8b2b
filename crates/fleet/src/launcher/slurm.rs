//! Slurm: the allocation that this process is in, and the `srun` that starts an agent on each of its nodes.
//!
//! Model:   the step has one task a node, overlaps whatever else runs in the allocation, is bound to no CPU, and outlives a
//!          task or node that dies. Nothing is asked of Slurm beside that: names and number of the nodes are in the
//!          environment of every program in an allocation.
//! Source:  srun(1), salloc(1), sbatch(1) of Slurm 22.05. `--overlap` is there since 20.11.
//! Checked: `an_allocation_is_read`, `advice_follows_what_srun_said`; `crates/sonde/tests/lab_slurm.rs`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{FleetError, Result};
use crate::target::targets;

const ATTEMPT: &str = "measure a Slurm allocation";
const RECIPE: &str = "start it in one of several nodes: `salloc -N4 sonde assess`, or in a script for sbatch; outside, name the \
                      hosts (`--testbed hosts:a,b[01-16]`)";

/// A Slurm allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The job's number.
    pub job: String,
    /// Its nodes, in Slurm's order.
    pub nodes: Vec<String>,
    /// Which task of a step this process is, if it is in one.
    pub task: Option<u32>,
}

impl Allocation {
    /// The one that this process is in, if it is in one.
    ///
    /// # Errors
    /// Its list of nodes cannot be read, or names fewer than two.
    pub fn here() -> Result<Option<Self>> {
        Self::of(&std::env::vars().collect())
    }

    pub(crate) fn of(variables: &BTreeMap<String, String>) -> Result<Option<Self>> {
        let of = |names: [&str; 2]| names.iter().find_map(|name| variables.get(*name)).cloned();
        let Some(job) = of(["SLURM_JOB_ID", "SLURM_JOBID"]) else {
            return Ok(None);
        };
        let list = of(["SLURM_JOB_NODELIST", "SLURM_NODELIST"]).unwrap_or_default();
        let nodes = targets(&list, |_| Err("it is not a file"));
        let nodes = nodes.map_err(|error| {
            let happened = format!("job {job} has the nodes `{list}`: {error}");
            FleetError::of_all(ATTEMPT, happened, "take two nodes at least: `salloc -N2`")
        })?;
        let in_step = variables
            .get("SLURM_STEP_ID")
            .is_some_and(|id| id.parse::<u16>().is_ok());
        let task = variables.get("SLURM_PROCID").filter(|_| in_step);
        Ok(Some(Self {
            job,
            nodes: nodes.into_iter().map(|node| node.name).collect(),
            task: task.and_then(|task| task.parse().ok()),
        }))
    }
}

/// What is to be started where.
pub(crate) struct Ready {
    pub(super) allocation: Allocation,
    program: PathBuf,
}

impl Ready {
    pub(super) fn find(program: &Path) -> Result<Self> {
        let allocation = Allocation::here()?.ok_or_else(|| {
            FleetError::of_all(
                ATTEMPT,
                "this process is in none (SLURM_JOB_ID is not set)",
                RECIPE,
            )
        })?;
        Ok(Self {
            allocation,
            program: program.into(),
        })
    }

    pub(super) fn command(&self, at: SocketAddr) -> Command {
        let nodes = self.allocation.nodes.len();
        let mut command = Command::new("srun");
        command.arg(format!("--jobid={}", self.allocation.job));
        command.args([&format!("--nodes={nodes}"), &format!("--ntasks={nodes}")]);
        command.args([
            "--ntasks-per-node=1",
            "--overlap",
            "--no-kill",
            "--kill-on-bad-exit=0",
            "--wait=0",
            "--cpu-bind=none",
            "--mpi=none",
            "--export=ALL",
            "--input=none",
            "--quiet",
        ]);
        // What a batch job or an outer step asked for its own tasks is not for this one.
        for name in [
            "SLURM_NTASKS",
            "SLURM_NPROCS",
            "SLURM_NTASKS_PER_NODE",
            "SLURM_CPUS_PER_TASK",
            "SLURM_CPU_BIND",
        ] {
            command.env_remove(name);
        }
        command.arg("--").arg(&self.program);
        command.args(["agent", "--connect", &at.to_string()]);
        command
    }
}

/// What to do about what srun said.
pub(super) const REMEDY: fn(&str) -> &'static str = |said| {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["not found"]) {
        "install Slurm's client commands (Debian: slurm-client) on this node, or name the hosts: `--testbed hosts:...`"
    } else if has(&["No such file", "execve", "Permission denied"]) {
        "put sonde where all nodes see it, or copy it there: `sbcast $(which sonde) /tmp/sonde`, then `--testbed slurm:/tmp/sonde`"
    } else if has(&["overlap", "unrecognized option"]) {
        "Slurm before 20.11 cannot do this: start the agents yourself, `--testbed listen:N`"
    } else if has(&["nvalid job id", "expired", "revoked"]) {
        "the allocation is gone: take another"
    } else {
        "see whether `srun hostname` runs in this allocation"
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<Allocation>> {
        let owned = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Allocation::of(&owned.collect())
    }

    #[test]
    fn an_allocation_is_read() {
        assert_eq!(of(&[("PATH", "/bin")]).unwrap(), None);
        let found = of(&[
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_NODELIST", "a[08-10],b2,c[1,3]"),
            ("SLURM_PROCID", "0"),
        ]);
        let found = found.unwrap().unwrap();
        assert_eq!(found.nodes, ["a08", "a09", "a10", "b2", "c1", "c3"]);
        assert_eq!((found.job.as_str(), found.task), ("7", None));
        let step = of(&[
            ("SLURM_JOBID", "7"),
            ("SLURM_NODELIST", "a,b"),
            ("SLURM_PROCID", "3"),
            ("SLURM_STEP_ID", "0"),
        ]);
        assert_eq!(step.unwrap().unwrap().task, Some(3));
        let batch = of(&[
            ("SLURM_JOBID", "7"),
            ("SLURM_NODELIST", "a,b"),
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_ID", "4294967291"),
        ]);
        assert_eq!(batch.unwrap().unwrap().task, None);
        for few in ["a", ""] {
            let said = of(&[("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", few)])
                .unwrap_err()
                .to_string();
            assert!(
                said.contains("salloc -N2") && said.contains("job 7"),
                "{said}"
            );
        }
    }

    #[test]
    fn the_step_takes_the_whole_allocation_and_no_token() {
        let ready = Ready {
            allocation: of(&[("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "a[1-4]")])
                .unwrap()
                .unwrap(),
            program: "/opt/sonde".into(),
        };
        let command = ready.command("10.0.0.1:70".parse().unwrap());
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_str().unwrap())
            .collect();
        assert!(
            words.contains(&"--nodes=4") && words.contains(&"--overlap"),
            "{words:?}"
        );
        assert!(words.ends_with(&["--", "/opt/sonde", "agent", "--connect", "10.0.0.1:70"]));
    }

    #[test]
    fn advice_follows_what_srun_said() {
        assert!(REMEDY("execve(): /x/sonde: No such file or directory").contains("sbcast"));
        assert!(REMEDY("srun: unrecognized option '--overlap'").contains("listen:N"));
        assert!(REMEDY("").contains("srun hostname"));
    }
}
