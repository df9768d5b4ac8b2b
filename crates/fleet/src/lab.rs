//! An emulated cluster on this machine, with agents on its hosts.
//!
//! Model:   agents run as the lab's root, so that they may make a neighbour unknown. Before each launch the switch moves to
//!          the CPUs of its placement and begins to count; before each cold conversation it waits until the network is quiet
//!          and releases the circuit, one for both directions, or ends the login. The control plane is sockets of this machine and never
//!          touches the network that is measured.
//! Checked: `tests/lab_fleet.rs`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sonde_lab::{Config, Ended, Exec, ExecError, Info, Lab, LabError, Report};
use sonde_link::{Command, Port, SiteSpec, Subnets, VcCommand};
use sonde_measure::{Backpressure, HostFacts};
use sonde_measure::{Probe, Wait};
use sonde_probe::AgentLink;
use sonde_units::Ratio;

use crate::agent::{Agent, Body, ErrorTail};
use crate::error::{FleetError, Result};
use crate::load::Load;
use crate::machines::Machines;
use crate::placement::{Cpus, Placement};

/// An agent greets within this, or it will not.
const GREETING: Duration = Duration::from_secs(10);
/// Where the command itself is found in each host.
const COMMAND_INSIDE: &str = "/run/sonde/bin/sonde";
/// The remote shell in each host.
const SHELL_INSIDE: &str = "/run/sonde/bin/rsh";
const INTERFACE: &str = "eth0";
/// Beyond a round trip: what kernels take to answer the last frame.
const QUIET_MARGIN: Duration = Duration::from_millis(5);
/// A network that does not become quiet within this is measured as it is.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// A network across which a host's question may still be under way when the next conversation begins, and tell the other host who
/// it is.
const LONG: Duration = Duration::from_millis(1);
/// A port's buffer has run empty after this: 13,312 cells of OC-3c take 38 ms.
const DRAINED: Duration = Duration::from_millis(60);
/// The background traffic that a station keeps, 4,096 frames, has gone after this on a segment of 10 Mb/s.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// Queues have found their length under a new load after this.
const STEADY: Duration = Duration::from_millis(20);
const IN_THE_LAB: &str = "look at the machine's memory, and at what killed it";

/// A lab, and the CPUs of its placements.
pub(crate) struct Emulated {
    lab: Lab,
    /// Whether the first frame between two hosts waits for a circuit or a login, which a cold start pays.
    has_circuits: bool,
    cpus: Cpus,
    site: SiteSpec,
    subnets: Subnets,
    /// By port of the hosts.
    addresses: Vec<Ipv4Addr>,
    /// The load that is there, and the hosts that it goes to.
    load: Option<(Load, Vec<u16>)>,
}

/// A failure of the lab itself; all of its hosts are lost with it when it is gone.
fn failed(attempt: &str, error: &LabError) -> FleetError {
    match error {
        LabError::Gone => FleetError::of_all(attempt, error, IN_THE_LAB).and_lost(),
        // The others carry their remedy.
        _ => FleetError::of_all(attempt, error, ""),
    }
}

/// A host's number at the switch.
fn port(host: usize) -> u16 {
    u16::try_from(host).expect("a lab has at most 256 hosts")
}

impl Emulated {
    pub(crate) fn start(program: &Path, config: &Config) -> Result<Self> {
        let attempt = "start the lab";
        let subnets = config.site.subnets();
        let subnets = subnets.map_err(|problem| FleetError::of_all(attempt, problem, ""))?;
        let cpus = Cpus::here(true)
            .map_err(|error| FleetError::of_all(attempt, error, "allow sched_getaffinity"))?;
        let lab =
            Lab::start(program, config, None, None).map_err(|error| failed(attempt, &error))?;
        Ok(Self {
            lab,
            has_circuits: config
                .site
                .segment
                .iter()
                .any(|one| one.network.joins_first()),
            cpus,
            site: config.site.clone(),
            addresses: sonde_lab::addresses(&subnets),
            subnets,
            load: None,
        })
    }

    fn name(&self, host: usize) -> String {
        let names = self.site.names();
        names.get(host).copied().unwrap_or_default().to_owned()
    }

    fn address_of(&self, port: Option<&Port>) -> IpAddr {
        let at = port.and_then(|port| self.addresses.get(usize::from(port.0)));
        at.copied().unwrap_or(Ipv4Addr::UNSPECIFIED).into()
    }

    /// Waits until no frame has entered the network for a round trip and a little: the last ones of an earlier
    /// conversation would set the circuit up again as soon as it is released.
    fn settle(&self, one_way: Duration) -> std::result::Result<(), LabError> {
        let quiet = 2 * one_way + QUIET_MARGIN;
        let end = Instant::now() + SETTLE_TIMEOUT;
        let mut taken = self.lab.report()?.taken;
        loop {
            std::thread::sleep(quiet);
            let now = self.lab.report()?.taken;
            if now == taken || Instant::now() >= end {
                return Ok(());
            }
            taken = now;
        }
    }

    /// Waits until what a load and the launch before left in the queues has gone: it would disturb the next launch, and take long to go
    /// beside another load.
    fn drain(&self) -> std::result::Result<(), LabError> {
        let end = Instant::now() + DRAIN_MAX;
        loop {
            std::thread::sleep(DRAINED);
            if self.lab.report()?.load_underway == 0 || Instant::now() >= end {
                return Ok(());
            }
        }
    }
}

impl Machines for Emulated {
    fn names(&self) -> Vec<String> {
        self.site.names().into_iter().map(str::to_owned).collect()
    }

    fn placements(&self, wait: Wait, probe: Probe) -> [Placement; 2] {
        self.cpus.placements(wait, probe)
    }

    fn address(&self, host: usize) -> IpAddr {
        self.address_of(self.subnets.ports_of(port(host)).first())
    }

    fn address_from(&self, src: usize, dst: usize) -> IpAddr {
        let ends = self.subnets.between(port(src), port(dst));
        match ends {
            Some((_, to)) => self.address_of(Some(&to)),
            None => self.address(dst),
        }
    }

    fn common(&self, hosts: &[usize]) -> Vec<(String, Vec<IpAddr>)> {
        let on = |host: usize, subnet: usize| {
            let mut ports = self.subnets.ports_of(port(host)).iter();
            let own = ports.find(|port| self.subnets.of_port(**port) == Some(subnet))?;
            Some(self.address_of(Some(own)))
        };
        let all = (0..self.subnets.count()).filter_map(|subnet| {
            let addresses: Option<_> = hosts.iter().map(|host| on(*host, subnet)).collect();
            let segments = self.site.segment.iter().zip(&self.subnets.of);
            let mut names = segments.filter(|(_, of)| **of == subnet);
            Some((names.next()?.0.name.clone(), addresses?))
        });
        all.collect()
    }

    fn start(&mut self, host: usize, placement: Placement) -> Result<Agent> {
        let name = self.name(host);
        let failed = |problem: &dyn std::fmt::Display| {
            FleetError::at(&name, "start an agent in the lab", problem, IN_THE_LAB).and_lost()
        };
        let pair = || UnixStream::pair().map_err(|error| failed(&error));
        let ((mine, theirs), (errors, their_errors)) = (pair()?, pair()?);
        let exec = Exec {
            argv: [COMMAND_INSIDE, "agent"].map(OsString::from).to_vec(),
            environment: Vec::new(),
            directory: PathBuf::from("/"),
            root: true,
            detached: false,
            terminal: None,
            cpus: self.cpus.of_agent(placement).to_vec(),
            keeps_priority: true,
        };
        let streams = [theirs.as_fd(), theirs.as_fd(), their_errors.as_fd()];
        let (session, _) = self
            .lab
            .exec(port(host) + 1, &exec, streams)
            .map_err(|error| match error {
                LabError::Exec(exec @ ExecError::HostGone { .. }) => failed(&exec),
                error => failed(&error),
            })?;
        drop((theirs, their_errors));
        let said = ErrorTail::collect(errors).map_err(|error| failed(&error))?;
        let clone = || mine.try_clone().map_err(|error| failed(&error));
        let link = AgentLink::open(&*name, clone()?, clone()?, GREETING)
            .map_err(|error| failed(&format!("{error} {}", said.text())))?;
        Ok(Agent::new(link, Body::Session(session, mine), said))
    }

    fn kernel_placement(&self) -> Placement {
        Placement::Split
    }

    fn pattern_placement(&self) -> Placement {
        Placement::Split
    }

    fn prepare(&mut self, host: usize, command: &str) -> Result<()> {
        let name = self.name(host);
        let attempt = format!("run `{command}`");
        let failed = |problem: &dyn std::fmt::Display| {
            FleetError::at(&name, &*attempt, problem, "try it with `sonde lab shell`")
        };
        let null = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .map_err(|error| failed(&error))?;
        let path =
            std::env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin:/sbin:/bin".into());
        let exec = Exec {
            argv: ["sh", "-c", command].map(OsString::from).to_vec(),
            environment: vec![("PATH".into(), path)],
            directory: PathBuf::from("/"),
            root: true,
            detached: true,
            terminal: None,
            cpus: self.cpus.of_agent(Placement::Split).to_vec(),
            keeps_priority: false,
        };
        let streams = [null.as_fd(), null.as_fd(), null.as_fd()];
        let ran = self.lab.exec(port(host) + 1, &exec, streams);
        let (session, _) = ran.map_err(|error| failed(&error))?;
        match session.wait().map_err(|error| failed(&error))? {
            Ended::Code(0) => Ok(()),
            ended => Err(failed(&format!("it ended with {}", ended.code()))),
        }
    }

    fn route(&self, host: usize) -> Option<String> {
        Some(format!("{SHELL_INSIDE} h{}", host + 1))
    }

    fn begin(&mut self, placement: Placement) -> Result<()> {
        let attempt = "ready the emulated network for a repetition";
        self.lab
            .pin_switch(self.cpus.of_switch(placement))
            .and_then(|()| self.lab.mark())
            .map_err(|error| failed(attempt, &error))
    }

    fn loads_itself(&self) -> bool {
        true
    }

    fn has_interfaces(&self) -> bool {
        false
    }

    fn load(&mut self, load: Option<&Load>, hosts: &[usize]) -> Result<()> {
        let wanted = load.filter(|load| !load.rho.is_zero()).map(|load| {
            let ports = hosts.iter().map(|host| port(*host));
            (load.clone(), ports.collect::<Vec<u16>>())
        });
        if wanted.is_none() && self.load.is_none() {
            return Ok(());
        }
        let attempt = "load the emulated network";
        let tell = |load: &Load, ports: &[u16]| {
            let mut flows = load.to_hosts(&self.site, ports).into_iter();
            flows.try_for_each(|flow| self.lab.command(&Command::Load(flow)))
        };
        if let Some((load, hosts)) = self.load.clone() {
            let rho = Ratio::ZERO;
            tell(&Load { rho, ..load }, &hosts).map_err(|error| failed(attempt, &error))?;
            self.drain().map_err(|error| failed(attempt, &error))?;
        }
        if let Some((load, hosts)) = &wanted {
            tell(load, hosts).map_err(|error| failed(attempt, &error))?;
        }
        self.load = wanted;
        std::thread::sleep(STEADY);
        Ok(())
    }

    fn cool(&mut self, src: usize, dst: usize, one_way: Duration) -> Result<()> {
        if !self.has_circuits && one_way < LONG {
            return Ok(());
        }
        let attempt = "make the network cold";
        let (a, b) = (Port(port(src)), Port(port(dst)));
        let release = Command::Vc(VcCommand::Release(a, b));
        let settled = self.settle(one_way);
        // Over several segments none leads from one to the other.
        let segment = |host: usize| self.subnets.ends.get(host).map(|end| end.segment);
        let is_direct = segment(src) == segment(dst);
        let cold = settled.and_then(|()| match self.has_circuits && is_direct {
            true => self.lab.command(&release),
            false => Ok(()),
        });
        cold.map_err(|error| failed(attempt, &error))
    }

    fn interface(&self, _facts: &HostFacts) -> Option<String> {
        Some(INTERFACE.into())
    }

    fn has_circuits(&self) -> bool {
        self.has_circuits
    }

    fn report(&mut self) -> Result<Option<Report>> {
        let report = self.lab.report();
        report
            .map(Some)
            .map_err(|error| failed("read the report of the emulated network", &error))
    }

    fn cpus_of(&self, placement: Placement) -> Vec<usize> {
        self.cpus.of_agent(placement).to_vec()
    }

    fn remote_shell(&self) -> Option<&'static str> {
        Some(SHELL_INSIDE)
    }

    fn lab_info(&self) -> Option<&Info> {
        Some(self.lab.info())
    }

    fn backpressure(&self) -> Option<Backpressure> {
        Some(match &*self.lab.info().backpressure {
            "gate" => Backpressure::Gate,
            _ => Backpressure::None,
        })
    }

    fn end(self: Box<Self>) -> Result<()> {
        self.lab
            .stop()
            .map_err(|error| failed("end the lab", &error))
    }
}
