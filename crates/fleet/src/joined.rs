//! A fleet's networks: joining them, and the proof that a launch's bytes went where they should.
//!
//! Model:   see [`crate::networks`]. The counters are read by the agents that measure, before and after a launch. Some drivers
//!          bring their counters up to date once a second: what is missing at first is looked for again before it is refused.
//! Checked: `sonde/tests/lab_nets.rs`.

use sonde_measure::{Datagrams, Evidence, LoadFlow, Name};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sonde_probe::{Answer, Interfaces, Outcome, Request};
use sonde_units::BitRate;

use crate::agent::Agent;
use crate::error::{FleetError, Result};
use crate::fleet::Fleet;
use crate::launch::Between;
use crate::load::Load;
use crate::networks::{self, Carried, Choice, End, Joined, Passed};
use crate::placement::Placement;
use crate::traffic::{Stream, StreamReport, Traffic, TrafficReport};

/// A host lists its interfaces within this.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Counters are looked at again after these.
const AGAIN_MS: [u64; 3] = [50, 300, 1_000];
/// Queues have found their length under a new load after this.
const STEADY: Duration = Duration::from_millis(100);
/// A load outlasts a launch by this, should nobody end it.
const BEYOND: Duration = Duration::from_secs(30);
/// IPv4's and UDP's headers, which the size of a load's frames counts.
const HEADERS: u64 = 28;

/// Both hosts' interfaces before a launch.
pub(crate) struct Before([Interfaces; 2]);

impl Fleet {
    /// Joins the hosts by these networks beside the one by which they reach each other; see [`take_network`](Self::take_network).
    ///
    /// # Errors
    /// A host without such an interface, named with what it has; all such hosts are.
    pub fn join(&mut self, choices: &[Choice]) -> Result<()> {
        let placement = self.first_placement();
        let mut states: Vec<Option<Interfaces>> = Vec::new();
        for host in 0..self.hosts().len() {
            states.push(match self.alive(host) {
                true => Some(self.interfaces(host, placement)?),
                false => None,
            });
        }
        let (mut joined, mut missing) = (Vec::new(), Vec::new());
        for choice in choices {
            let mut ends: Vec<Option<End>> = Vec::new();
            for (record, state) in self.hosts().iter().zip(&states) {
                let found = state
                    .as_ref()
                    .map(|state| networks::end(&choice.selector, &record.name, state));
                match found.transpose() {
                    Ok(end) => ends.push(end),
                    Err(why) => {
                        missing.push(format!("{} is not on {}: {why}", record.name, choice.name))
                    }
                }
            }
            missing.extend(same_address(&choice.name, self.hosts(), &ends));
            joined.push(Joined {
                name: choice.name.clone(),
                ends,
            });
        }
        if !missing.is_empty() {
            return Err(FleetError::of_all(
                "join the hosts by their networks",
                missing.join("; "),
                "name an interface that each host has: ib=h1/ib0,h2/ib1 for a name of its own on each, ib=10.9.1.0/24 for a subnet",
            ));
        }
        self.networks = joined;
        Ok(())
    }

    /// The networks that were joined.
    pub fn joined(&self) -> &[Joined] {
        &self.networks
    }

    /// From here on launches and loads go by this network; none is the one by which the hosts reach each other.
    ///
    /// # Panics
    /// It was not joined.
    pub fn take_network(&mut self, network: Option<usize>) {
        assert!(network.is_none_or(|one| one < self.networks.len()));
        self.network = network;
    }

    pub(crate) fn network(&self) -> Option<usize> {
        self.network
    }

    /// A host's end of a network.
    pub(crate) fn end_of(&self, network: usize, host: usize) -> Option<&End> {
        self.networks[network].ends[host].as_ref()
    }

    /// Its end of the network in use, if one was chosen.
    pub(crate) fn own_end(&self, host: usize) -> Option<&End> {
        self.network.and_then(|network| self.end_of(network, host))
    }

    /// A host's address on the network in use.
    pub(crate) fn address_of(&self, host: usize) -> IpAddr {
        self.own_end(host)
            .map_or_else(|| self.machines.address(host), |end| end.address)
    }

    /// The same as another host has it.
    pub(crate) fn address_from(&self, src: usize, dst: usize) -> IpAddr {
        self.own_end(dst)
            .map_or_else(|| self.machines.address_from(src, dst), |end| end.address)
    }

    /// The networks on which all of these hosts are: those that were chosen, else those that their machines know of.
    pub(crate) fn common(&self, hosts: &[usize]) -> Vec<(String, Vec<IpAddr>)> {
        if self.networks.is_empty() {
            return self.machines.common(hosts);
        }
        let all = self.networks.iter().filter_map(|network| {
            let ends = hosts.iter().map(|host| network.ends[*host].as_ref());
            let addresses: Option<_> = ends.map(|end| end.map(|end| end.address)).collect();
            Some((network.name.clone(), addresses?))
        });
        all.collect()
    }

    /// Asks one of a host's agents, which is there.
    pub(crate) fn ask(
        &mut self,
        host: usize,
        placement: Placement,
        request: &Request,
        awaited: &'static str,
        timeout: Duration,
    ) -> sonde_probe::Result<Answer> {
        let Some(agent) = self.agents.0.get_mut(&(host, placement)) else {
            return Err(sonde_probe::Error::AgentGone {
                agent: self.hosts()[host].name.clone(),
                awaited,
            });
        };
        agent.link().send(request)?;
        agent.link().answer(awaited, timeout)
    }

    /// A host's interfaces, now.
    pub(crate) fn interfaces(&mut self, host: usize, placement: Placement) -> Result<Interfaces> {
        let name = self.hosts()[host].name.clone();
        let request = Request::Interfaces {};
        let failed = |problem: &dyn std::fmt::Display, remedy: String| {
            FleetError::at(&name, "read its interfaces", problem, remedy)
        };
        match self.ask(host, placement, &request, "its interfaces", TIMEOUT) {
            Ok(Answer::Interfaces(state)) => Ok(state),
            Ok(other) => Err(failed(&format!("it answered {other:?}"), String::new())),
            Err(error) => Err(failed(&error, error.remedy())),
        }
    }

    /// Both hosts' interfaces; none where they tell nothing. Where no network was chosen a failure is no matter.
    pub(crate) fn before(&mut self, keys: [(usize, Placement); 2]) -> Result<Option<Before>> {
        if !self.machines.has_interfaces() {
            return Ok(None);
        }
        let [src, dst] = keys;
        let read = self
            .interfaces(src.0, src.1)
            .and_then(|one| Ok(Before([one, self.interfaces(dst.0, dst.1)?])));
        match read {
            Err(error) if self.network.is_some() => Err(error),
            read => Ok(read.ok()),
        }
    }

    /// Adds to the outcome what the interfaces carried.
    ///
    /// # Errors
    /// The network in use was chosen, and the bytes did not pass its interfaces.
    pub(crate) fn prove(
        &mut self,
        between: &Between,
        keys: [(usize, Placement); 2],
        before: Option<Before>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let Some(before) = before else {
            return Ok(());
        };
        let mut looks = AGAIN_MS.iter();
        loop {
            let Some(after) = self.before(keys)? else {
                return Ok(());
            };
            let mut astray = Vec::new();
            let Evidence { src, dst, .. } = &mut outcome.evidence;
            let sides = [src, dst].into_iter().zip(before.0.iter().zip(&after.0));
            let musts = [
                Passed::of_src(&outcome.moved),
                Passed::of_dst(&outcome.moved),
            ];
            for (((side, (then, now)), (host, _)), must) in sides.zip(keys).zip(musts) {
                let carried = Carried::between(then, now);
                carried.tell(side);
                let named = match self.own_end(host) {
                    Some(end) => {
                        let judged = networks::judge(
                            &self.hosts()[host].name,
                            &end.interface,
                            must,
                            &carried,
                        );
                        astray.extend(judged.err());
                        Some(end.interface.as_str())
                    }
                    None => carried.most(),
                };
                if let Some(name) = named {
                    side.transfer.interface = Some(name.into());
                }
                side.transfer.address = Some(self.address_of(host));
            }
            if outcome.moved.datagrams > 0 {
                outcome.evidence.datagrams = Datagrams {
                    sent: Some(outcome.moved.datagrams),
                    lost: Some(outcome.moved.lost_datagrams),
                };
            }
            match (astray.is_empty(), looks.next()) {
                (true, _) => return Ok(()),
                (false, Some(wait)) => std::thread::sleep(Duration::from_millis(*wait)),
                (false, None) => return Err(self.astray(between, &astray)),
            }
        }
    }

    fn astray(&self, between: &Between, evidence: &[String]) -> FleetError {
        let name = |host: usize| self.hosts()[host].name.clone();
        let network = self
            .network
            .map_or("", |one| self.networks[one].name.as_str());
        FleetError::at(
            &format!("{} and {}", name(between.src), name(between.dst)),
            format!("measure {network}"),
            format!("the bytes took another interface: {}", evidence.join("; ")),
            networks::WAYS,
        )
    }

    /// Random digits that a load's datagrams must carry.
    pub(crate) fn token(&self) -> Result<String> {
        let mut random = [0; 16];
        let read =
            std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
        read.map_err(|error| FleetError::of_all("draw a token", error, "mount /dev"))?;
        Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Begins the load of a launch that takes no longer than `launch_max`, if it has one that agents make.
    pub(crate) fn load_for(
        &mut self,
        between: &Between,
        launch_max: Duration,
    ) -> Result<Option<Traffic>> {
        let Some(load) = between.load.as_ref().filter(|load| !load.rho.is_zero()) else {
            return Ok(None);
        };
        if self.machines.loads_itself() {
            return Ok(None);
        }
        let streams = self.streams(load, between)?;
        let lasts = launch_max + BEYOND;
        self.loads += 1;
        let began = Instant::now();
        let traffic = self.begin_load(&streams, lasts, lasts, self.loads)?;
        std::thread::sleep(STEADY.saturating_sub(began.elapsed()));
        Ok(Some(traffic))
    }

    /// Ends it, and adds what it was to the outcome.
    pub(crate) fn unload(
        &mut self,
        traffic: &Traffic,
        outcome: Option<&mut Outcome>,
    ) -> Result<()> {
        let report = self.end_load(traffic)?;
        if let Some(outcome) = outcome {
            outcome.evidence.load_flows = self.load_flows(&report);
        }
        Ok(())
    }

    fn load_flows(&self, report: &TrafficReport) -> BTreeMap<Name, LoadFlow> {
        let flow = |one: &StreamReport| {
            let name = |host: usize| &self.hosts()[host].name;
            let key = format!("{}>{}", name(one.stream.src), name(one.stream.dst));
            (key.into(), one.evidence())
        };
        report.streams.iter().map(flow).collect()
    }

    /// The flows of a load beside a launch: those that it names, else one between two other hosts where there are four, else
    /// one beside what is measured.
    fn streams(&self, load: &Load, between: &Between) -> Result<Vec<Stream>> {
        let mut pairs = Vec::new();
        for (from, to) in &load.flows {
            pairs.push((self.numbered(from)?, self.numbered(to)?));
        }
        if pairs.is_empty() {
            let count = self.hosts().len();
            let others = (1..count).map(|step| (between.dst + step) % count);
            let mut others = others.filter(|host| *host != between.src && self.alive(*host));
            pairs.push(match (others.next(), others.next()) {
                (Some(from), Some(to)) => (from, to),
                _ => (between.src, between.dst),
            });
        }
        let streams = pairs
            .into_iter()
            .map(|(src, dst)| self.stream(load, src, dst));
        streams.collect()
    }

    /// The number of a host.
    ///
    /// # Errors
    /// None has this name.
    pub fn numbered(&self, name: &str) -> Result<usize> {
        let found = self.hosts().iter().position(|host| host.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.hosts().iter().map(|host| host.name.as_str()).collect();
            FleetError::of_all(
                "find the hosts of a flow",
                format!("there is no host {name} among {}", names.join(", ")),
                "name hosts of the testbed, as they are named there",
            )
        })
    }

    /// A flow of a load from one host to another: the link's rate and MTU are those of the sender's interface unless the load
    /// says a rate.
    ///
    /// # Errors
    /// The rate is not known; a size that is none of a load.
    pub fn stream(&self, load: &Load, src: usize, dst: usize) -> Result<Stream> {
        let facts = &self.hosts()[src].facts;
        let (interface, mtu, line) = match self.own_end(src) {
            Some(end) => (
                Some(end.interface.clone()),
                Some(end.mtu_bytes),
                end.line_bps,
            ),
            None => (facts.interface.clone(), facts.mtu_bytes, facts.line_bps),
        };
        let name = &self.hosts()[src].name;
        let of_bps = load.of.map(BitRate::bps).or(line).ok_or_else(|| {
            FleetError::at(
                name,
                "load a link",
                format!(
                    "the rate of its interface {} is not known",
                    interface.as_deref().unwrap_or("to its peers")
                ),
                "give it: --of 1Gbit (--load-of 1Gbit beside a measurement)",
            )
        })?;
        let mtu_bytes = mtu.unwrap_or(1_500);
        let most = mtu_bytes.min(u64::from(u16::MAX));
        let frame = if load.size.0 == 0 { most } else { load.size.0 };
        let size_bytes = frame.saturating_sub(HEADERS);
        let least = sonde_probe::load::HEADER_BYTES as u64;
        if size_bytes < least || frame > u64::from(u16::MAX) {
            return Err(FleetError::at(
                name,
                "load a link",
                format!(
                    "frames of {frame} bytes cannot be sent over UDP with a load's own {least} bytes in them"
                ),
                "ask for 56 to 65535 bytes of layer 3",
            ));
        }
        Ok(Stream {
            src,
            dst,
            rho: load.rho,
            law: load.law,
            size_bytes,
            of_bps,
            mtu_bytes,
        })
    }

    /// Ends the agents of a placement on some hosts.
    pub(crate) fn end_agents(
        &mut self,
        hosts: &std::collections::BTreeSet<usize>,
        placement: Placement,
    ) {
        let mut ending: Vec<Agent> = hosts
            .iter()
            .filter_map(|host| self.agents.0.remove(&(*host, placement)))
            .collect();
        ending.iter_mut().for_each(Agent::hang_up);
        // They went wrong: how they end is of no interest any more.
        ending.into_iter().for_each(|agent| drop(agent.end()));
    }
}

/// Two hosts with one address on a network are one machine.
fn same_address(
    network: &str,
    hosts: &[sonde_measure::HostRecord],
    ends: &[Option<End>],
) -> Option<String> {
    let mut seen: BTreeMap<IpAddr, &str> = BTreeMap::new();
    for (record, end) in hosts.iter().zip(ends) {
        let Some(end) = end else { continue };
        if let Some(other) = seen.insert(end.address, &record.name) {
            return Some(format!(
                "{other} and {} have the same address {} on {network}: they are one machine",
                record.name, end.address
            ));
        }
    }
    None
}
