//! Ranks of PVM: tasks in a virtual machine over all hosts of the fleet, in which rank 0 spawns the others.
//!
//! Model:   the machine's daemons are started with the first launch that wants them and stay until the fleet ends, as a lab
//!          stays up; after a launch that failed they are started anew. Tasks are fresh in every launch: rank 0 is started
//!          by the agent of its host and enrols with the daemon there, the others are spawned where they are to be. The
//!          route is chosen at their begin: changing a pair of tasks from one to the other hangs PVM.
//! Source:  pvm_intro(1PVM), pvm_spawn(3PVM), pvm_setopt(3PVM) of PVM 3.4.6.
//! Checked: `lab_library` of the command.

use sonde_probe::library::Job;
use sonde_probe::{Program, Ran};

use super::{RanksAsk, attempt, failed, limit, went_well, words};
use crate::error::Result;
use crate::fleet::Fleet;
use crate::placement::Placement;
use crate::virtual_machine::VirtualMachine;

/// Names the variables that tasks get from who spawns them.
const EXPORT: &str = "PVM_EXPORT";

impl Fleet {
    pub(super) fn by_pvm(
        &mut self,
        ask: &RanksAsk,
        job: &Job,
        keys: [(usize, Placement); 2],
    ) -> Result<Ran> {
        let seats = self.seats(ask, keys);
        let rank = self.one_tool(ask, &seats)?;
        let machine = self.machine_with(&seats)?;
        let names = seats.iter().map(|seat| machine.name(seat.0).to_owned());
        let names: Vec<String> = names.collect();
        // Bytes as they are, where nothing else is asked for: the hosts of a measurement are alike. Of two the last counts.
        let mut sets = vec![
            "encoding=raw".to_string(),
            format!("hosts={}", names.join(",")),
        ];
        let asked = ask.settings.iter();
        sets.extend(asked.map(|(name, value)| format!("{name}={value}")));
        let mut argv = vec![rank, "--adapter".into(), ask.path.to_string()];
        argv.extend(sets.into_iter().flat_map(|set| ["--set".to_string(), set]));
        if job.task.is_program() {
            argv.extend(self.bound(job, &seats));
        }
        argv.extend(["--ranks".into(), seats.len().to_string(), job.text()]);
        let mut program = Program::new(argv, limit(job));
        program.environment = machine.environment().clone();
        let own = self.rank_environment();
        let exported: Vec<&str> = own.keys().map(String::as_str).collect();
        program
            .environment
            .insert(EXPORT.into(), exported.join(":"));
        program.environment.extend(own.clone());
        let ran = self.run_program(keys[0], program, &attempt(ask))?;
        if went_well(&ran) {
            self.machine = Some(machine);
            return Ok(ran);
        }
        let what = format!("PVM's rank 0 {}{}", ran.told(), words(&ran.errors));
        Err(failed(
            ask,
            what,
            "look at what it said, and at `sonde doctor`",
        ))
    }

    /// A virtual machine over the hosts of these seats, out of the fleet's hands.
    fn machine_with(&mut self, seats: &[(usize, Placement)]) -> Result<VirtualMachine> {
        let wanted =
            |host: usize| self.machines.one_machine() || seats.iter().any(|seat| seat.0 == host);
        let wanted: Vec<usize> = (0..self.hosts().len())
            .filter(|host| wanted(*host))
            .collect();
        // Several hosts that are one machine have one daemon.
        let wanted = if self.machines.one_machine() {
            &wanted[..1]
        } else {
            &wanted[..]
        };
        match self.machine.take() {
            Some(mut machine) => {
                for host in wanted {
                    if !machine.hosts().contains(host) {
                        machine.add(*host)?;
                    }
                }
                Ok(machine)
            }
            None => self.virtual_machine(wanted),
        }
    }
}
