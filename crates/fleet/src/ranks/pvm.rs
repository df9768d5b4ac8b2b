//! Ranks of PVM: a virtual machine of its own for each launch, in which rank 0 spawns the others.
//!
//! Model:   on rank 0's host a script starts PVM's daemon with a list of the hosts and an identity of its own, so that it
//!          meets no other virtual machine of the user; rank 0 joins it, spawns the others where it is told, and when all
//!          have ended the machine is halted, which ends the daemons everywhere. What is left on rank 0's host is ended
//!          with the script; a daemon elsewhere ends when it does not hear from the first.
//!          Routes are chosen at the begin of fresh tasks: changing a pair from one to the other hangs PVM.
//! Source:  pvm_intro(1PVM), pvmd3(1PVM) of PVM 3.4.6.
//! Checked: `lab_library` of the command.

use std::time::Duration;

use sonde_probe::library::Job;
use sonde_probe::{Program, Ran, token};

use super::{RanksAsk, attempt, failed, went_well, words};
use crate::error::Result;
use crate::fleet::Fleet;
use crate::placement::Placement;

/// What starting and halting daemons may take beside the job.
const DAEMONS: Duration = Duration::from_secs(30);
/// Starts the virtual machine, runs what follows the hosts, halts it. Its words: this host, all hosts joined by commas, the
/// remote shell or nothing, and the program with its arguments.
const SCRIPT: &str = r#"
own=$1 hosts=$2 shell=$3; shift 3
export PVM_ROOT="${PVM_ROOT:-/usr/lib/pvm3}" PVM_ARCH="${PVM_ARCH:-LINUX64}" PVM_ALLOW_ROOT=1
export PVM_DPATH="${PVM_DPATH:-$PVM_ROOT/lib/pvmd}"
[ -n "$shell" ] && export PVM_RSH="$shell"
folder=$(mktemp -d) || exit 125
trap 'rm -rf "$folder"' EXIT
{ echo "* dx=$PVM_DPATH wd=/tmp"; echo "$hosts" | tr , '\n' | sort -u; } >"$folder/hosts"
# The master's own name stands first.
{ head -n 1 "$folder/hosts"; echo "$own"; tail -n +2 "$folder/hosts" | grep -vxF "$own"; } >"$folder/list"
wanted=$(($(wc -l <"$folder/list") - 1))
"$PVM_DPATH" "-n$own" "$folder/list" >"$folder/said" 2>&1 </dev/null &
halt() { echo halt | timeout 5 pvm >/dev/null 2>&1; }
trap 'halt; rm -rf "$folder"' EXIT
trap 'exit 143' TERM INT HUP
tries=0
until [ "$(echo conf | timeout 5 pvm 2>/dev/null | grep -cE '0x|LINUX')" -ge "$wanted" ]; do
    tries=$((tries + 1))
    if [ $tries -ge 100 ]; then
        echo "sonde-rank: PVM's daemons did not come up on $hosts: $(tail -n 3 "$folder/said" | tr '\n' ' ')" >&2
        exit 1
    fi
    sleep 0.1
done
"$@"
"#;

impl Fleet {
    pub(super) fn by_pvm(
        &mut self,
        ask: &RanksAsk,
        job: &Job,
        keys: [(usize, Placement); 2],
    ) -> Result<Ran> {
        let seats = self.seats(ask, keys);
        let mut rank = String::new();
        for seat in &seats {
            rank = self
                .tool(*seat, ask.path)
                .map_err(|why| failed(ask, format!("{}: {why}", self.name(seat.0)), ""))?;
        }
        let names: Vec<String> = seats.iter().map(|seat| self.known_as(seat.0)).collect();
        let identity = token().map_err(|error| failed(ask, &error, error.remedy()))?;
        let shell = self.bed.remote_shell().unwrap_or("");
        let hosts = names.join(",");
        let mut argv: Vec<String> = ["sh", "-c", SCRIPT, "sonde-pvm", &names[0], &hosts, shell]
            .map(String::from)
            .to_vec();
        argv.extend([rank, "--adapter".into(), ask.path.to_string()]);
        // Bytes as they are: the other encodings round lengths up, and the hosts of a measurement are alike.
        argv.extend(["--set", "encoding=raw"].map(String::from));
        argv.extend(["--set".into(), format!("hosts={hosts}")]);
        argv.extend(["--ranks".into(), seats.len().to_string(), job.text()]);
        let mut program = Program::new(argv, Self::limit(job) + DAEMONS);
        program
            .environment
            .insert("PVM_VMID".into(), format!("sonde{}", &identity[..8]));
        let ran = self.run_program(keys[0], program, &attempt(ask))?;
        if went_well(&ran) {
            return Ok(ran);
        }
        let what = format!("PVM's rank 0 {}{}", ran.told(), words(&ran.errors));
        Err(failed(ask, what, "install PVM (pvm), and see `pvm` on that host"))
    }

    /// A host as PVM's daemons name it.
    fn known_as(&self, host: usize) -> String {
        if self.bed.one_machine() {
            let own = std::fs::read_to_string("/proc/sys/kernel/hostname");
            return own.map_or_else(|_| "localhost".into(), |name| name.trim().into());
        }
        match self.lab_info() {
            Some(_) => self.name(host).to_owned(),
            None => self.hosts()[host].facts.hostname.clone(),
        }
    }
}
