//! What a fleet asks of the machines that it runs on.
//!
//! Checked: through its three implementations.

use std::net::IpAddr;
use std::time::Duration;

use sonde_lab::{Info, Report};
use sonde_measure::{Backpressure, HostFacts};
use sonde_measure::{Probe, Wait};

use crate::agent::Agent;
use crate::error::{FleetError, Result};
use crate::load::Load;
use crate::placement::Placement;

/// Machines that agents run on. Hosts are counted from 0.
pub(crate) trait Machines {
    /// The names of its hosts.
    fn names(&self) -> Vec<String>;

    /// A host's address on the network that is measured, once it has an agent.
    fn address(&self, host: usize) -> IpAddr;

    /// The same as another host has it: the nearest, where the host has several.
    fn address_from(&self, _src: usize, dst: usize) -> IpAddr {
        self.address(dst)
    }

    /// The networks on which all of these hosts are, by name, and their addresses there, in the order of the hosts.
    fn common(&self, hosts: &[usize]) -> Vec<(String, Vec<IpAddr>)> {
        let addresses = hosts.iter().map(|host| self.address(*host));
        vec![("default".into(), addresses.collect())]
    }

    /// Starts an agent. A host that does not take one is lost by it.
    fn start(&mut self, host: usize, placement: Placement) -> Result<Agent>;

    /// Where the agents of the measuring and of the answering host run, which wait so, in such a probe.
    fn placements(&self, wait: Wait, probe: Probe) -> [Placement; 2];

    /// Where the agents that describe their hosts run.
    fn first_placement(&self) -> Placement {
        Placement::One
    }

    /// Where the agents of a pattern run, in which every host sends and receives.
    fn pattern_placement(&self) -> Placement {
        self.first_placement()
    }

    /// Where ranks of a kernel run, which compute: on all CPUs but an emulated network's.
    fn kernel_placement(&self) -> Placement {
        Placement::Any
    }

    /// Runs a command in a host before it is measured.
    fn prepare(&mut self, _host: usize, _command: &str) -> Result<()> {
        Err(FleetError::of_all(
            "run a command in a host",
            "only the hosts of a lab take commands",
            "use `--testbed lab`, or run it there yourself",
        ))
    }

    /// What starts a command on a host from another one, but for the command itself; none where nothing does.
    fn route(&self, _host: usize) -> Option<String> {
        None
    }

    /// Whether an agent that is gone may be started again at once: the host is sure to be there.
    fn restarts(&self) -> bool {
        true
    }

    /// Before a launch of a measuring agent so placed: the emulated network gets its CPUs and begins to count.
    fn begin(&mut self, _placement: Placement) -> Result<()> {
        Ok(())
    }

    /// Whether the network makes its background traffic itself; else agents make it.
    fn loads_itself(&self) -> bool {
        false
    }

    /// Loads the ways to these hosts as long as a launch takes; without a load, no longer. Only where the network
    /// [loads itself](Self::loads_itself).
    fn load(&mut self, _load: Option<&Load>, _hosts: &[usize]) -> Result<()> {
        Ok(())
    }

    /// Whether its hosts' interfaces tell what they carried: those of real machines.
    fn has_interfaces(&self) -> bool {
        true
    }

    /// Makes the network forget the way between two hosts; the model takes `one_way` for a small message.
    fn cool(&mut self, _src: usize, _dst: usize, _one_way: Duration) -> Result<()> {
        Ok(())
    }

    /// The interface whose neighbours are forgotten before a start-up; none where nothing is to be flushed.
    fn interface(&self, facts: &HostFacts) -> Option<String> {
        facts.interface.clone()
    }

    /// Whether the network sets up a circuit for the first message.
    fn has_circuits(&self) -> bool {
        false
    }

    /// After a launch: what an emulated network did since [`begin`](Self::begin).
    fn report(&mut self) -> Result<Option<Report>> {
        Ok(None)
    }

    /// Whether all hosts read the same clock.
    fn one_clock(&self) -> bool {
        true
    }

    /// Whether all hosts are one machine with one set of settings.
    fn one_machine(&self) -> bool {
        false
    }

    /// What to do where a host is lost, if that is known better here than by who noticed.
    fn remedy_of_loss(&self) -> Option<&'static str> {
        None
    }

    /// What to do where hosts that live do not reach each other, beside what the failure itself advises.
    fn unreached(&self) -> Option<&'static str> {
        None
    }

    /// The CPUs of an agent so placed; empty where it has those of its host.
    fn cpus_of(&self, _placement: Placement) -> Vec<usize> {
        Vec::new()
    }

    /// The program that launchers call in place of ssh; none where ssh is the user's own.
    fn remote_shell(&self) -> Option<&'static str> {
        None
    }

    /// The lab, if it is one.
    fn lab_info(&self) -> Option<&Info> {
        None
    }

    /// What holds senders back, where that is known.
    fn backpressure(&self) -> Option<Backpressure> {
        None
    }

    /// Ends it.
    fn end(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
