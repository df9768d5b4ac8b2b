//! Hosts whose agents connect back: a Slurm allocation, an MPI's hosts, or wherever users start them.
//!
//! Model:   the agents were started once, by one launcher; a host that loses its agent is lost to the run. The port is closed
//!          once all are there. A host's address on the network that is measured is its own end of the connection.
//! Checked: `tests/connect.rs`; `crates/sonde/tests/lab_slurm.rs`.

use std::net::IpAddr;
use std::path::Path;

use rustix::process::{Resource, getrlimit, setrlimit};
use sonde_measure::{Probe, Wait};

use crate::agent::{Agent, Body, ErrorTail};
use crate::connect::{Assembly, DIRECT_MAX, Member, Token};
use crate::error::{FleetError, Result};
use crate::launcher::{ConnectOptions, Ready, Starter};
use crate::machines::Machines;
use crate::placement::Placement;
use crate::target::HOSTS_MAX;

const REMEDY: &str = "look whether the host is up and what its resource manager says; a resumed run measures what is missing";

/// Hosts that came.
pub(crate) struct Connected {
    names: Vec<String>,
    addresses: Vec<IpAddr>,
    /// Ended after the agents.
    _starter: Option<Starter>,
}

impl Connected {
    /// Starts the agents and waits for them; what is to be known beside.
    pub(crate) fn start(
        program: &Path,
        options: &ConnectOptions,
    ) -> Result<(Self, Vec<Agent>, Vec<String>)> {
        let ready = Ready::find(&options.launcher, program)?;
        let token = match &options.token {
            Some(token) => token.clone(),
            None => Token::random()?,
        };
        allow_descriptors()?;
        let place = ready.place(options.listen)?;
        let assembly = Assembly::open(place, &token, ready.expected())?;
        let mut starter = ready.start(assembly.address(), &token)?;
        let over = || starter.as_mut().and_then(Starter::over);
        let gathered = assembly.gather(options.timeout, over);
        let (members, notes) = gathered.map_err(|mut error| {
            if let Some(starter) = &mut starter {
                if starter.over().is_some() {
                    error.remedy = starter.remedy().into();
                }
                starter.abort();
            }
            error
        })?;
        if members.len() < 2 {
            let happened = format!("all agents came from one host, {}", members[0].name);
            let remedy = "a measurement is between two: give the launcher a second host";
            return Err(FleetError::of_all("measure", happened, remedy));
        }
        check_addresses(&members, place.ip().is_loopback())?;
        let connected = Self {
            names: members.iter().map(|member| member.name.clone()).collect(),
            addresses: members.iter().map(|member| member.address).collect(),
            _starter: starter,
        };
        let agent = |member: Member| {
            Agent::new(member.link, Body::Joined(member.line), ErrorTail::nothing())
        };
        Ok((connected, members.into_iter().map(agent).collect(), notes))
    }
}

/// A stream takes three descriptors, a lane one: where so many are not allowed, more are asked for.
fn allow_descriptors() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = 3 * DIRECT_MAX as u64 + 2 * HOSTS_MAX as u64;
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    limit.current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
    setrlimit(Resource::Nofile, limit).map_err(|error| {
        let remedy = "raise the limit of open files: `ulimit -n`";
        FleetError::of_all("open connections for all hosts", error, remedy)
    })
}

/// Peers must be able to use what each says of its address; only on this machine alone it may be the loopback.
fn check_addresses(members: &[Member], on_this_machine: bool) -> Result<()> {
    if on_this_machine {
        return Ok(());
    }
    for (index, member) in members.iter().enumerate() {
        let failed = |problem: String| {
            let remedy =
                "let the orchestrator listen on the network to be measured: `--listen ADDRESS`";
            FleetError::at(
                &member.name,
                "find the address for its peers",
                problem,
                remedy,
            )
        };
        crate::ssh::check_address(Some(member.address)).map_err(failed)?;
        let same = |other: &&Member| other.address == member.address;
        if let Some(other) = members[..index].iter().find(same) {
            return Err(failed(format!(
                "{} is also the address of {}",
                member.address, other.name
            )));
        }
    }
    Ok(())
}

impl Machines for Connected {
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn address(&self, host: usize) -> IpAddr {
        self.addresses[host]
    }

    fn start(&mut self, host: usize, _placement: Placement) -> Result<Agent> {
        let happened = "its agent is gone, and was started by another program";
        Err(FleetError::at(&self.names[host], "use it", happened, REMEDY).and_lost())
    }

    fn placements(&self, _wait: Wait, _probe: Probe) -> [Placement; 2] {
        [Placement::Any; 2]
    }

    fn first_placement(&self) -> Placement {
        Placement::Any
    }

    fn restarts(&self) -> bool {
        false
    }

    fn one_clock(&self) -> bool {
        false
    }

    fn remedy_of_loss(&self) -> Option<&'static str> {
        Some(REMEDY)
    }

    fn unreached(&self) -> Option<&'static str> {
        Some(
            "let the hosts reach each other's ports, TCP and UDP (`sysctl net.ipv4.ip_local_port_range`), or let the \
             orchestrator listen on a network where they do (`--listen ADDRESS`)",
        )
    }
}
