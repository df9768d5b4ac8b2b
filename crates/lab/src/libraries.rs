//! What message-passing libraries find in the hosts, so that `mpirun`, `mpiexec` and `pvm` work there as they are.
//!
//! Model:   beside the command lies `rsh`, a remote shell that takes ssh's command line; the lab's folder has lists of the
//!          hosts; each host has a folder of its own for PVM's sockets; variables name them. One process a host goes first,
//!          more are placed by each launcher's own rule; nothing is bound to a CPU, for each host's daemon takes the machine
//!          for its own and would bind to the first; who waits yields, as far as the library can. A variable that the caller
//!          has set stays. No mapping policy is set: Open MPI's daemons on the other hosts, which find it too, end at once
//!          where the user gives a rankfile ("conflicting directives"), which looks like a network that fails. Of Open MPI's
//!          components for one-sided operations the one over UCX is left out: it takes itself for the best though `pml` is
//!          `ob1`, finds none of its transports, and every MPI_Win_* ends with MPI_ERR_WIN (4.1.4, as in Debian 12).
//! Source:  orte and ompi_info of Open MPI 4.1; Hydra of MPICH 4.0; ucx_info of UCX 1.13; pvm_intro(1PVM) of PVM 3.4.6.
//! Checked: `what_the_caller_has_set_stays`; `lab_libraries` of the command.

use crate::exec::FOLDER;
use crate::rsh::REMOTE_SHELL;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Where PVM's daemons and tasks of a host have their sockets: its own, even where hosts share `/tmp`.
const PVM_TMP: &str = "/run/pvm";

/// For every program.
const ALWAYS: [(&str, &str); 24] = [
    ("OMPI_MCA_plm_rsh_agent", "/run/sonde/bin/rsh"),
    ("OMPI_MCA_orte_default_hostfile", "/run/sonde/slots"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ("OMPI_MCA_oob_tcp_if_include", "eth0"),
    ("OMPI_MCA_pml", "ob1"),
    ("OMPI_MCA_btl", "tcp,self,vader"),
    ("OMPI_MCA_btl_tcp_if_include", "eth0"),
    ("OMPI_MCA_osc", "^ucx"),
    ("HYDRA_LAUNCHER", "ssh"),
    ("HYDRA_LAUNCHER_EXEC", "/run/sonde/bin/rsh"),
    ("HYDRA_HOST_FILE", "/run/sonde/hosts"),
    ("HYDRA_IFACE", "eth0"),
    ("HYDRA_BINDING", "none"),
    ("HYDRA_ENV", "none"),
    ("UCX_TLS", "tcp,self,sm"),
    ("UCX_NET_DEVICES", "eth0"),
    ("PVMHOSTFILE", "/run/sonde/hosts"),
    ("PVM_RSH", "/run/sonde/bin/rsh"),
    ("PVM_TMP", PVM_TMP),
    ("PVM_ROOT", "/usr/lib/pvm3"),
    ("PVM_DPATH", "/usr/lib/pvm3/lib/pvmd"),
    ("PVM_ARCH", "LINUX64"),
];

/// For programs of the lab's root, whom the libraries refuse by themselves.
const OF_ROOT: [(&str, &str); 3] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("PVM_ALLOW_ROOT", "1"),
];

/// Adds what the caller has not set.
pub(crate) fn complete(environment: &mut Vec<(OsString, OsString)>, root: bool) {
    let of_root: &[_] = if root { &OF_ROOT } else { &[] };
    for (name, value) in ALWAYS.iter().chain(of_root) {
        if !environment.iter().any(|(key, _)| key == name) {
            environment.push((name.into(), value.into()));
        }
    }
}

/// The files that all hosts share, in the lab's folder.
pub(crate) fn share(hosts: u16) -> io::Result<()> {
    let list = |line: fn(u16) -> String| (1..=hosts).map(line).collect::<String>();
    let folder = Path::new(FOLDER);
    fs::write(folder.join("hosts"), list(|host| format!("h{host}\n")))?;
    // Without a number Open MPI takes each host for as many processes as the machine has CPUs.
    fs::write(
        folder.join("slots"),
        list(|host| format!("h{host} slots=1\n")),
    )?;
    let shell = folder.join("bin/rsh");
    fs::write(
        &shell,
        format!("#!/bin/sh\nexec {FOLDER}/bin/sonde {REMOTE_SHELL} \"$@\"\n"),
    )?;
    fs::set_permissions(&shell, Permissions::from_mode(0o755))
}

/// The folder of one host.
pub(crate) fn furnish() -> io::Result<()> {
    fs::create_dir_all(PVM_TMP)?;
    fs::set_permissions(PVM_TMP, Permissions::from_mode(0o1777))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_caller_has_set_stays() {
        let own = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let before = [own("UCX_TLS", ""), own("PVM_TMP", "/elsewhere")];
        let mut environment = before.to_vec();
        complete(&mut environment, false);
        assert_eq!(environment[..2], before);
        assert_eq!(environment.len(), ALWAYS.len());
        complete(&mut environment, true);
        assert_eq!(environment.len(), ALWAYS.len() + OF_ROOT.len());
        let mut names: Vec<_> = environment.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), environment.len());
    }
}
