//! This machine: two agents that talk over loopback, the floor of what hosts cost.
//!
//! Model:   the agents are bound by affinity before they are asked for anything, and the workers of each measurement inherit
//!          it.
//! Checked: `tests/local.rs`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sonde_measure::HostFacts;
use sonde_measure::{Probe, Wait};
use sonde_probe::AgentLink;
use sonde_sys::exec::{Step, before_exec};
use sonde_sys::thread;

use crate::agent::{Agent, Body, ErrorTail};
use crate::error::{FleetError, Result};
use crate::machines::Machines;
use crate::placement::{Cpus, Placement};

/// An agent greets within this, or it will not.
const GREETING: Duration = Duration::from_secs(10);
const NAMES: [&str; 2] = ["local-1", "local-2"];

/// Both hosts.
pub(crate) struct Local {
    program: PathBuf,
    cpus: Cpus,
}

impl Local {
    pub(crate) fn new(program: &Path) -> Result<Self> {
        let cpus = Cpus::here(false).map_err(|error| {
            FleetError::of_all(
                "read this machine's CPUs",
                error,
                "mount /proc, and allow sched_getaffinity",
            )
        })?;
        Ok(Self {
            program: program.into(),
            cpus,
        })
    }
}

impl Machines for Local {
    fn names(&self) -> Vec<String> {
        NAMES.map(String::from).to_vec()
    }

    fn placements(&self, wait: Wait, probe: Probe) -> [Placement; 2] {
        self.cpus.placements(wait, probe)
    }

    fn address(&self, _host: usize) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    fn start(&mut self, host: usize, placement: Placement) -> Result<Agent> {
        let name = NAMES[host];
        let failed = |problem: &dyn std::fmt::Display, remedy: &str| {
            FleetError::at(name, "start an agent on this machine", problem, remedy).and_lost()
        };
        let mut command = Command::new(&self.program);
        command.arg("agent");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A terminal's interrupt is for the command, which still wants what is measured just now.
        before_exec(&mut command, vec![Step::NewGroup]);
        let mut child = command.spawn().map_err(|error| {
            let remedy = match error.kind() {
                std::io::ErrorKind::NotFound => "run sonde from a file that is still there",
                _ => "",
            };
            let program = self.program.display().to_string();
            failed(&thread::refused(&program, error), remedy)
        })?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(error)) = streams else {
            unreachable!("all three were asked for");
        };
        let said = ErrorTail::collect(error).map_err(|error| {
            // It may have ended by itself.
            drop(child.kill());
            drop(child.wait());
            failed(&error, "")
        })?;
        let pinned = sonde_sys::cpu::pin_pid(child.id(), self.cpus.of_agent(placement));
        let link = AgentLink::open(name, from, to, GREETING);
        match (link, pinned) {
            (Ok(link), Ok(())) => Ok(Agent::new(link, Body::Process(child), said)),
            (link, pinned) => {
                // It may have ended by itself.
                drop(child.kill());
                drop(child.wait());
                let remedy = "look at what else runs on this machine";
                Err(match link.err() {
                    Some(error) => failed(&format!("{error}; it said: {}", said.text()), remedy),
                    None => failed(
                        &pinned.map_or_else(|error| error.to_string(), |()| String::new()),
                        "let the process use all CPUs that it sees",
                    ),
                })
            }
        }
    }

    fn interface(&self, _facts: &HostFacts) -> Option<String> {
        None
    }

    fn has_interfaces(&self) -> bool {
        false
    }

    fn cpus_of(&self, placement: Placement) -> Vec<usize> {
        self.cpus.of_agent(placement).to_vec()
    }

    fn one_machine(&self) -> bool {
        true
    }
}
