//! Ranks of Open MPI and MPICH, started by their own launchers.
//!
//! Model:   the launcher runs on the host of rank 0 and is told every host by name, one rank a line, so that ranks are where
//!          the plan has them; the interface and the transport, so that nothing else is taken silently; and to bind nothing,
//!          since each host's daemon takes the machine for its own and would bind its first rank to the first CPU: the
//!          ranks of a lab bind themselves as the agents are bound. Where ranks (and a lab's switch) outnumber the CPUs, Open MPI's
//!          yield when
//!          they find nothing, and so do the waits of both adapters, else one that polls takes a slice of 4 ms from one that has
//!          work. That changes latencies and is a fact of the launch. What Open MPI's ranks of one host share is in a folder of its
//!          own there, which goes with the launcher (`folder.sh`).
//! Source:  mpirun(1) and ompi_info of Open MPI 4.1; mpiexec.hydra of MPICH 4.0 with ch4:ucx.
//! Checked: `commands_say_everything`, `a_killed_launcher_leaves_no_folder` of `lab_npb`, `a_killed_rank_is_the_cause_though_another_aborts`; `lab_library`, `lab_npb` of the command.

use std::collections::BTreeMap;

use sonde_message::Library;
use sonde_probe::library::{Job, MARKER};
use sonde_probe::{Program, Ran};
use sonde_sys::cpu;

use super::output::{cause_of_mpich, stray};
use super::{RanksAsk, attempt, failed, limit, went_well, words};
use crate::error::Result;
use crate::fleet::Fleet;
use crate::placement::Placement;

/// Has the launcher keep its ranks' files in a folder of its own.
const FOLDER: &str = include_str!("folder.sh");

/// What a launcher is told.
#[derive(Debug)]
struct Order<'a> {
    library: Library,
    launcher: &'a str,
    /// A host a rank, as the launcher reaches it.
    hosts: Vec<String>,
    /// The remote shell; none where all is on one host, or where the launcher's own is to be used.
    shell: Option<&'a str>,
    interface: &'a str,
    /// Within the machine's memory.
    is_memory: bool,
    yields: bool,
    /// What all ranks have in their environment.
    exported: BTreeMap<String, String>,
    rank: Vec<String>,
}

impl Fleet {
    pub(super) fn by_mpi(
        &mut self,
        ask: &RanksAsk,
        job: &Job,
        keys: [(usize, Placement); 2],
    ) -> Result<Ran> {
        let seats = self.seats(ask, keys);
        let rank = self.one_tool(ask, &seats)?;
        let launcher = self
            .launcher(keys[0], ask.path.library)
            .map_err(|why| failed(ask, why, ""))?;
        let hosts: Vec<String> = seats.iter().map(|seat| self.reached(seat.0)).collect();
        let interface = self.launch_interface(keys[0].0);
        let mut order = Order {
            library: ask.path.library,
            launcher: &launcher,
            shell: self.machines.remote_shell(),
            interface: &interface,
            is_memory: ask.path.is_within_machine(),
            yields: self.is_crowded(&seats),
            exported: self.rank_environment(),
            hosts,
            rank: self.rank_words(&rank, ask, job, &seats),
        };
        if !order.is_spread() {
            order.shell = None;
        }
        let mut program = Program::new(order.argv(), limit(job));
        program.environment.extend(order.environment());
        let attempt = attempt(ask);
        let ran = self.run_program(keys[0], program, &attempt)?;
        // What was measured stands, however the ranks ended; that they did not end well is told.
        if went_well(&ran) || ran.output.contains(MARKER) {
            return Ok(ran);
        }
        let said = format!("{}\n{}", ran.errors, stray(&ran.output));
        let said = words(&match ask.path.library {
            Library::Mpich => cause_of_mpich(&said),
            _ => said,
        });
        let what = format!("{} {}{said}", order.launcher, ran.told());
        let remedy = "try the same launcher with a program of your own; `sonde doctor` lists what is installed";
        Err(failed(ask, what, remedy))
    }

    /// What starts a rank: the program and its arguments.
    fn rank_words(
        &self,
        rank: &str,
        ask: &RanksAsk,
        job: &Job,
        seats: &[(usize, Placement)],
    ) -> Vec<String> {
        let mut words = vec![rank.to_string(), "--adapter".into(), ask.path.to_string()];
        let idle = if self.is_crowded(seats) {
            "yield"
        } else {
            "spin"
        };
        words.extend(["--set".into(), format!("idle={idle}")]);
        words.extend(self.bound(job, seats));
        words.push(job.text());
        words
    }

    /// A host, as one of the others reaches it.
    fn reached(&self, host: usize) -> String {
        if self.machines.one_machine() {
            return "localhost".into();
        }
        match self.lab_info() {
            Some(_) => self.name(host).to_owned(),
            None => self.address_of(host).to_string(),
        }
    }

    /// The interface that ranks are to use.
    pub(super) fn launch_interface(&self, host: usize) -> String {
        if self.machines.one_machine() {
            return "lo".into();
        }
        if let Some(end) = self.own_end(host) {
            return end.interface.clone();
        }
        let facts = &self.hosts()[host].facts;
        self.machines
            .interface(facts)
            .or_else(|| facts.interface.clone())
            .unwrap_or_else(|| "eth0".into())
    }

    /// Whether ranks outnumber the CPUs that they have.
    fn is_crowded(&self, seats: &[(usize, Placement)]) -> bool {
        if self.is_one_machine() {
            // A lab's switch wants one too.
            let others = usize::from(self.lab_info().is_some());
            return cpu::online().is_ok_and(|online| seats.len() + others > online.len());
        }
        seats.iter().any(|seat| {
            let ranks = seats.iter().filter(|other| other.0 == seat.0).count() as u64;
            ranks > self.hosts()[seat.0].facts.cpus.max(1)
        })
    }
}

impl Order<'_> {
    fn argv(&self) -> Vec<String> {
        match self.library {
            Library::OpenMpi if self.is_spread() => self.open_mpi(),
            Library::OpenMpi => {
                let mut words = ["sh", "-c", FOLDER, "sh"].map(String::from).to_vec();
                words.extend(self.open_mpi());
                words
            }
            _ => self.hydra(),
        }
    }

    /// Whether ranks are on several hosts.
    fn is_spread(&self) -> bool {
        self.hosts.iter().any(|host| *host != self.hosts[0])
    }

    fn open_mpi(&self) -> Vec<String> {
        let btl = if self.is_memory {
            "vader,self"
        } else {
            "tcp,self"
        };
        let mut words: Vec<String> = [self.launcher, "--bind-to", "none", "--oversubscribe"]
            .map(String::from)
            .to_vec();
        let mut set = |name: &str, value: &str| {
            words.extend(["--mca", name, value].map(String::from));
        };
        set("pml", "ob1");
        set("btl", btl);
        set("btl_tcp_if_include", self.interface);
        set("oob_tcp_if_include", self.interface);
        // The order of the hosts is the order of the ranks.
        set("rmaps_base_mapping_policy", "slot");
        set("hwloc_base_binding_policy", "none");
        set("mpi_yield_when_idle", if self.yields { "1" } else { "0" });
        if let Some(shell) = self.shell {
            set("plm_rsh_agent", shell);
        }
        for (name, _) in self
            .environment()
            .iter()
            .filter(|(name, _)| !name.starts_with("OMPI_"))
        {
            words.extend(["-x".into(), name.clone()]);
        }
        words.extend(["--host".into(), self.hosts.join(",")]);
        words.extend(["-np".into(), self.hosts.len().to_string()]);
        words.extend(self.rank.iter().cloned());
        words
    }

    fn hydra(&self) -> Vec<String> {
        let mut words: Vec<String> = [self.launcher, "-bind-to", "none", "-iface", self.interface]
            .map(String::from)
            .to_vec();
        if let Some(shell) = self.shell {
            words.extend(["-launcher", "ssh", "-launcher-exec", shell].map(String::from));
        }
        for (name, value) in self.environment() {
            words.extend(["-genv".into(), name, value]);
        }
        words.extend(["-hosts".into(), self.hosts.join(",")]);
        words.extend(["-n".into(), self.hosts.len().to_string()]);
        words.extend(self.rank.iter().cloned());
        words
    }

    fn environment(&self) -> Vec<(String, String)> {
        let pairs: &[(&str, &str)] = match (self.library, self.is_memory) {
            // A folder of its own for each user is made where this says; as root it wants to be asked twice.
            (Library::OpenMpi, _) => &[
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ],
            (_, false) => &[("UCX_TLS", "tcp,self"), ("MPIR_CVAR_NOLOCAL", "1")],
            (_, true) => &[("UCX_TLS", "sm,self")],
        };
        let mut all: Vec<(String, String)> = pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        if self.library == Library::Mpich && !self.is_memory {
            all.push(("UCX_NET_DEVICES".into(), self.interface.into()));
        }
        let yields = if self.yields { "yes" } else { "no" };
        all.push((sonde_probe::library::YIELDS.into(), yields.into()));
        all.extend(self.exported.clone());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(library: Library, is_memory: bool, yields: bool) -> Order<'static> {
        Order {
            library,
            launcher: "go",
            hosts: vec!["h2".into(), "h1".into()],
            shell: Some("/run/rsh"),
            interface: "eth0",
            is_memory,
            yields,
            exported: BTreeMap::from([("SONDE_ADAPTERS".into(), "/a".into())]),
            rank: vec!["sonde-rank".into(), "{}".into()],
        }
    }

    #[test]
    fn commands_say_everything() {
        let words = order(Library::OpenMpi, false, true).argv().join(" ");
        for part in [
            "--bind-to none",
            "--mca btl tcp,self",
            "--mca btl_tcp_if_include eth0",
            "--mca mpi_yield_when_idle 1",
            "--mca plm_rsh_agent /run/rsh",
            "-x SONDE_ADAPTERS",
            "--host h2,h1 -np 2 sonde-rank {}",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        let words = order(Library::OpenMpi, true, false).argv().join(" ");
        assert!(
            words.contains("btl vader,self") && words.contains("when_idle 0"),
            "{words}"
        );
        let mut here = order(Library::OpenMpi, true, false);
        here.hosts = vec!["localhost".into(); 2];
        assert_eq!(
            here.argv()[..5],
            ["sh", "-c", FOLDER, "sh", "go"].map(String::from)
        );
        let order = order(Library::Mpich, false, false);
        let words = order.argv().join(" ");
        assert!(words.contains("-hosts h2,h1 -n 2 sonde-rank {}"), "{words}");
        for part in [
            "-launcher-exec /run/rsh",
            "-genv UCX_TLS tcp,self",
            "-genv UCX_NET_DEVICES eth0",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    #[test]
    fn a_killed_rank_is_the_cause_though_another_aborts() {
        // As seen where rank 3 (pid 364) of four was killed while rank 2 read its memory.
        let both = "[vm:363:0:363]      cma_ep.c:81   process_vm_readv(pid=364 {0x7f,416160}-->{0x7f,416160}) returned -1: No such process
==== backtrace (tid:  363) ====
16  /tmp/sonde-rank(+0x257a9e) [0x5572cec77a9e]
=================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 361 RUNNING AT localhost
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)";
        assert_eq!(
            words(&cause_of_mpich(both)),
            "; it said: process 364 is gone, and another rank read its memory / =   PID 361 RUNNING AT localhost / \
             =   EXIT CODE: 9 / ranks were ended by signal 9 and others, which the launcher joins to (signal 15)"
        );
        // One signal alone is told as it is, and so is what is not a signal.
        for alone in [
            "=   EXIT CODE: 9\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
            "=   EXIT CODE: 1\nmore",
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Hangup (signal 1)",
        ] {
            assert_eq!(cause_of_mpich(alone), alone);
        }
    }
}
