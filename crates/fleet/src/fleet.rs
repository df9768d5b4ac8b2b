//! Hosts with agents on them, and one conversation at a time between two of them.
//!
//! Model:   an agent is started once a host and CPU placement and kept. One that is gone or out of step is started anew at
//!          its next use, where the machine is sure to be there; behind ssh its host is lost instead. Lost hosts are left
//!          alone until they are revived. Clocks are asked in pairs, host 0 right before the other, since all drift.
//! Checked: `tests/local.rs`, `tests/lab_fleet.rs`, `tests/lab_ssh.rs`; `clocks_are_against_the_first_host`.

mod pattern;
mod settings;
mod together;

pub use pattern::{FlowOutcome, PatternAsk, PatternLaunched, Round, RoundOutcome};
pub use together::{Part, TogetherAsk, TogetherLaunched, What};

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use sonde_lab::{Attachment, Config, Info, Report};
use sonde_measure::{
    Backpressure, ClockRecord, HostFacts, HostRecord, Setting, SettingValue, Spec,
};
use sonde_probe::host::Settings;
use sonde_probe::{Answer, Outcome, Request, clock};

use crate::agent::Agent;
use crate::connected::Connected;
use crate::error::{FleetError, Result};
use crate::lab::Emulated;
use crate::launch::{Ask, Between, Launched, Pair, Trouble};
use crate::launcher::ConnectOptions;
use crate::local::Local;
use crate::machines::Machines;
use crate::networks::Joined;
use crate::placement::{Placement, is_within_host};
use crate::ranks::Tools;
use crate::ssh::{Remote, SshOptions};
use crate::target::Target;
use crate::virtual_machine::VirtualMachine;

/// A host describes itself within this, or it is not well.
const FACTS_TIMEOUT: Duration = Duration::from_secs(20);
/// Exchanges for one reading of a clock; the shortest counts.
const CLOCK_EXCHANGES: u32 = 20;
/// What two clocks may drift apart in the time between two readings: 100 parts in a million.
const DRIFT_ONE_IN: u64 = 10_000;
/// Kernels correct a clock's rate by no more (adjtimex(2): MAXFREQ, 500 parts in a million), in parts in 10^9.
const DRIFT_MAX_PPB: u128 = 500_000;
/// Parts of what an agent says that may not forget its neighbours.
const FORGET: &str = "cannot flush the ARP entry";
const NOT_PERMITTED: &str = "not permitted";

/// All agents.
#[derive(Default)]
pub(crate) struct Agents(pub(crate) BTreeMap<(usize, Placement), Agent>);

impl Agents {
    /// Ends those of the hosts that `which` names; what they met. All are hung up first, so that their ends are waited for
    /// at the same time.
    fn end(&mut self, which: impl Fn(usize) -> bool) -> Vec<String> {
        let keys: Vec<_> = self
            .0
            .keys()
            .copied()
            .filter(|(host, _)| which(*host))
            .collect();
        let mut ending: Vec<Agent> = keys.iter().filter_map(|key| self.0.remove(key)).collect();
        ending.iter_mut().for_each(Agent::hang_up);
        ending.into_iter().filter_map(Agent::end).collect()
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        // Who wanted to know of trouble has called `Fleet::stop`.
        drop(self.end(|_| true));
    }
}

/// Hosts to measure between.
pub struct Fleet {
    /// PVM's virtual machine, once one was wanted. Dropped before what it runs on.
    pub(crate) machine: Option<VirtualMachine>,
    /// Dropped before what they run on.
    pub(crate) agents: Agents,
    pub(crate) machines: Box<dyn Machines>,
    hosts: Vec<HostRecord>,
    /// Networks by which the hosts were joined, and the one in use; none is the one by which they reach each other.
    pub(crate) networks: Vec<Joined>,
    pub(crate) network: Option<usize>,
    /// Loads so far: where the draws of the next begin.
    pub(crate) loads: u64,
    /// The host that all clocks are against: the first that was there.
    reference: usize,
    /// Hosts that are lost, and why.
    lost: BTreeMap<usize, String>,
    /// The first reading of each clock, and when it was taken.
    readings: Vec<Option<(ClockRecord, Instant)>>,
    /// What is changed of each host now, in layers.
    changed: BTreeMap<usize, Vec<Settings>>,
    /// Hosts whose agents may not forget neighbours.
    keeping: BTreeSet<usize>,
    notes: Vec<String>,
    /// What hosts have of the programs that ranks take.
    pub(crate) tools: Tools,
    /// The time that what is measured at once needs to make ready under each load, as far as it is known.
    leads: BTreeMap<Option<String>, Duration>,
}

impl Fleet {
    /// Two agents on this machine that talk over loopback, by affinity on one CPU or on two. `program` is the `sonde`
    /// command, which plays the agent.
    ///
    /// # Errors
    /// An agent does not start.
    pub fn local(program: &Path) -> Result<Self> {
        Self::over(Box::new(Local::new(program)?))
    }

    /// Starts a lab, and an agent on each of its hosts. To be called from the main thread, with whose end the lab ends.
    ///
    /// # Errors
    /// The lab or an agent does not start.
    pub fn lab(program: &Path, config: &Config) -> Result<Self> {
        Self::over(Box::new(Emulated::start(program, config)?))
    }

    /// Starts an agent on each of these hosts, several at a time. To be called from the main thread, with whose end every
    /// `ssh` ends. `program` is copied to hosts that do not have it: it should be static.
    ///
    /// # Errors
    /// Hosts do not take an agent, or give no address for their peers, and fewer than two are left; or any does not where
    /// [all](SshOptions::all) are wanted. All such hosts are named. The others are lost from the begin, and noted.
    pub fn ssh(program: &Path, targets: &[Target], options: &SshOptions) -> Result<Self> {
        let (remote, agents) = Remote::start(program, targets, options)?;
        let mut fleet = Self::bare(Box::new(remote));
        for (host, agent) in agents.into_iter().enumerate() {
            match agent {
                Ok(agent) => {
                    fleet.agents.0.insert((host, Placement::Any), agent);
                }
                Err(error) => {
                    fleet
                        .notes
                        .push(format!("{error}; the others are measured"));
                    fleet.lose(host, error);
                }
            }
        }
        // An agent that is gone by now is as one that was not taken.
        while let Err(error) = fleet.describe() {
            let left = (0..fleet.hosts.len()).filter(|host| fleet.alive(*host));
            if options.all || !error.lost || left.count() < 2 {
                return Err(error);
            }
            fleet
                .notes
                .push(format!("{error}; the others are measured"));
        }
        Ok(fleet)
    }

    pub(crate) fn first_placement(&self) -> Placement {
        self.machines.first_placement()
    }

    /// Has agents started by a launcher, and waits until they have connected back. To be called from the main thread, with
    /// whose end the launcher ends. `program` must be where the hosts see it too.
    ///
    /// # Errors
    /// The launcher does not start, hosts do not come, or have no address for their peers.
    pub fn connected(program: &Path, options: &ConnectOptions) -> Result<Self> {
        let (connected, agents, notes) = Connected::start(program, options)?;
        let mut fleet = Self::bare(Box::new(connected));
        for (host, agent) in agents.into_iter().enumerate() {
            fleet.agents.0.insert((host, Placement::Any), agent);
        }
        fleet.notes.extend(notes);
        fleet.describe()?;
        Ok(fleet)
    }

    fn bare(machines: Box<dyn Machines>) -> Self {
        let record = |name| HostRecord {
            name,
            ..Default::default()
        };
        let hosts: Vec<_> = machines.names().into_iter().map(record).collect();
        Self {
            machine: None,
            agents: Agents::default(),
            readings: vec![None; hosts.len()],
            notes: machines.lab_info().map_or_else(Vec::new, lab_notes),
            machines,
            hosts,
            networks: Vec::new(),
            network: None,
            loads: 0,
            reference: 0,
            lost: BTreeMap::new(),
            changed: BTreeMap::new(),
            keeping: BTreeSet::new(),
            tools: Tools::default(),
            leads: BTreeMap::new(),
        }
    }

    fn over(machines: Box<dyn Machines>) -> Result<Self> {
        let mut fleet = Self::bare(machines);
        fleet.describe()?;
        Ok(fleet)
    }

    /// The hosts, as their agents describe them; the first is the reference of the clocks.
    pub fn hosts(&self) -> &[HostRecord] {
        &self.hosts
    }

    /// Whether a host can be used: it was not lost, or was revived since.
    pub fn alive(&self, host: usize) -> bool {
        host < self.hosts.len() && !self.lost.contains_key(&host)
    }

    /// Why a host is lost.
    pub fn loss(&self, host: usize) -> Option<&str> {
        self.lost.get(&host).map(String::as_str)
    }

    /// Check these before trusting the results.
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// How the hosts of a lab are attached: `tap` or `veth`.
    pub fn attachment(&self) -> Option<String> {
        self.lab_info().map(|info| info.attachment.name().into())
    }

    /// What holds senders back in a lab.
    pub fn backpressure(&self) -> Option<Backpressure> {
        self.machines.backpressure()
    }

    /// The lab, if it is one.
    pub fn lab_info(&self) -> Option<&Info> {
        self.machines.lab_info()
    }

    /// What the emulated network did since its last launch began, or since it is up; none of hosts that are real.
    ///
    /// # Errors
    /// The lab is gone.
    pub fn emulated(&mut self) -> Result<Option<Report>> {
        let report = self.machines.report();
        report.map_err(|error| self.machines_failed(error))
    }

    /// Makes one launch.
    ///
    /// # Errors
    /// It failed, or one of the hosts is lost, before or by it; see [`FleetError::lost`].
    ///
    /// # Panics
    /// A host is not of this fleet, or both are the same.
    pub fn converse(&mut self, ask: &Ask) -> Result<Launched> {
        let Ask { spec, between } = ask;
        let count = self.hosts.len();
        assert!(
            between.src < count && between.dst < count && between.src != between.dst,
            "hosts {} and {} of {count}",
            between.src,
            between.dst
        );
        let placements = match is_within_host(spec) {
            true => [Placement::Any; 2],
            false => self.machines.placements(spec.wait, spec.probe()),
        };
        let hosts = [between.src, between.dst];
        self.launch_with(
            between,
            spec.duration_max(),
            placements,
            &hosts,
            |fleet, keys| fleet.measured(ask, keys),
        )
    }

    /// Makes one launch by `measure`: agents, load of the ways to `loaded` and the emulated network are ready before it, and read
    /// after it.
    pub(crate) fn launch_with(
        &mut self,
        between: &Between,
        launch_max: Duration,
        [src, dst]: [Placement; 2],
        loaded: &[usize],
        measure: impl FnOnce(&mut Self, [(usize, Placement); 2]) -> Result<Outcome>,
    ) -> Result<Launched> {
        let began = Instant::now();
        let keys = [(between.src, src), (between.dst, dst)];
        for (host, placement) in keys {
            self.ensure(host, placement)?;
        }
        let begun = self.machines.load(between.load.as_ref(), loaded);
        begun.map_err(|error| self.machines_failed(error))?;
        let traffic = self.load_for(between, launch_max)?;
        let outcome = measure(self, keys);
        let outcome = match traffic {
            // What was measured beside a load that went wrong is worth nothing; a launch that failed has its own story.
            Some(traffic) => {
                let mut outcome = outcome;
                let ended = self.unload(&traffic, outcome.as_mut().ok());
                outcome.and_then(|outcome| ended.map(|()| outcome))?
            }
            None => outcome?,
        };
        Ok(Launched {
            outcome,
            report: self.emulated()?,
            took: began.elapsed(),
        })
    }

    /// The launch itself, with the proof of its way.
    fn measured(&mut self, ask: &Ask, keys: [(usize, Placement); 2]) -> Result<Outcome> {
        self.ready(keys)?;
        let before = self.before(keys)?;
        let mut outcome = self.launch(ask, keys);
        while let Err(Trouble::Conversation(error)) = &outcome {
            if !self.keep_neighbours(error) {
                break;
            }
            outcome = self.launch(ask, keys);
        }
        let mut outcome = outcome.map_err(|trouble| match trouble {
            Trouble::Machines(error) => self.machines_failed(error),
            Trouble::Conversation(error) => self.failed(ask, keys, &error),
        })?;
        self.prove(&ask.between, keys, before, &mut outcome)?;
        Ok(outcome)
    }

    /// The emulated network gets its CPUs, and begins to count.
    pub(crate) fn ready(&mut self, keys: [(usize, Placement); 2]) -> Result<()> {
        let begun = self.machines.begin(keys[0].1);
        begun.map_err(|error| self.machines_failed(error))
    }

    fn launch(
        &mut self,
        ask: &Ask,
        keys: [(usize, Placement); 2],
    ) -> std::result::Result<Outcome, Trouble> {
        let between = &ask.between;
        let [client, server] = keys.map(|key| self.agents.0.remove(&key));
        let (Some(mut client), Some(mut server)) = (client, server) else {
            unreachable!("both are checked");
        };
        let interface = |host: usize| {
            let may = !self.keeping.contains(&host);
            let of = || match self.own_end(host) {
                Some(end) => Some(end.interface.clone()),
                None => self.machines.interface(&self.hosts[host].facts),
            };
            may.then(of).flatten()
        };
        let mut pair = Pair {
            flush_client: interface(between.src),
            flush_server: interface(between.dst),
            address: self.address_from(between.src, between.dst),
            source: self.own_end(between.src).map(|end| end.address),
            one_clock: self.machines.one_clock(),
            client: &mut client,
            server: &mut server,
        };
        let one_way = Duration::from_nanos(between.one_way_ns.unwrap_or(0));
        let circuits = self.machines.has_circuits();
        let machines = &mut self.machines;
        let outcome = pair.launch(&ask.spec, circuits, || {
            machines.cool(between.src, between.dst, one_way)
        });
        self.agents.0.insert(keys[0], client);
        self.agents.0.insert(keys[1], server);
        outcome
    }

    /// Whether this was an agent that may not forget neighbours. Its host keeps them from now on, which is told: its
    /// start-ups are then without their resolution.
    fn keep_neighbours(&mut self, error: &sonde_probe::Error) -> bool {
        let text = error.to_string();
        let name = error
            .agent()
            .filter(|_| !error.lost() && text.contains(FORGET) && text.contains(NOT_PERMITTED));
        let host = name.and_then(|name| self.hosts.iter().position(|host| host.name == name));
        let Some(host) = host.filter(|host| self.keeping.insert(*host)) else {
            return false;
        };
        self.notes.push(format!(
            "{} has no right to flush its ARP cache, so cold start there excludes address resolution; run sonde there as root, or with \
             CAP_NET_ADMIN",
            self.hosts[host].name
        ));
        true
    }

    /// Tries a lost host again: a new agent, and its description and clock anew.
    ///
    /// # Errors
    /// It takes none; it stays lost.
    pub fn revive(&mut self, host: usize) -> Result<()> {
        if self.lost.remove(&host).is_none() {
            return Ok(());
        }
        drop(self.agents.end(|one| one == host));
        let placement = self.machines.first_placement();
        self.start(host, placement)
            .and_then(|()| self.describe_one(host, placement))
            .inspect_err(|error| {
                let why = error.to_string();
                self.lost.entry(host).or_insert(why);
            })
    }

    /// Asks the clocks again: the change of the offset since the begin is the drift. Lost hosts keep what is known.
    pub fn resync(&mut self) {
        if self.machines.one_clock() {
            return;
        }
        for host in 0..self.hosts.len() {
            let (Some((begin, at)), Ok(end)) = (self.readings[host], self.read_clock(host)) else {
                continue;
            };
            let span_ns = u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let drift_ppb = clock::drift(&begin, &end, span_ns);
            let Some(clock) = &mut self.hosts[host].clock else {
                continue;
            };
            clock.drift_ppb = Some(drift_ppb);
            if is_broken(drift_ppb, begin.bound_ns + end.bound_ns, span_ns) {
                let [name, first] = [host, self.reference].map(|one| &self.hosts[one].name);
                self.notes.push(format!(
                    "{name}: its clock drifts by {:.1} ms a second against {first}'s, more than any oscillator does: what is timed \
                     there is wrong by as much; look at its time source",
                    drift_ppb as f64 / 1e6
                ));
            }
        }
    }

    /// Has every host say how fast its kernel copies `bytes` from one program to another; kept among its facts' settings, as
    /// `copy_bps`. A host that cannot says so in the notes.
    pub fn copies(&mut self, bytes: u32) {
        let placement = self.machines.first_placement();
        for host in 0..self.hosts.len() {
            let Some(agent) = self.agents.0.get_mut(&(host, placement)) else {
                continue;
            };
            let link = agent.link();
            let answer = link
                .send(&Request::Copy { bytes })
                .and_then(|()| link.answer("its copies", FACTS_TIMEOUT));
            match answer {
                Ok(Answer::Copy { bps }) => {
                    let settings = &mut self.hosts[host].facts.settings;
                    settings.insert(Setting::CopyRate, SettingValue::Number(bps));
                }
                Ok(other) => self
                    .notes
                    .push(format!("{}: no copies: {other:?}", self.hosts[host].name)),
                Err(error) => self
                    .notes
                    .push(format!("{}: no copies: {error}", self.hosts[host].name)),
            }
        }
    }

    /// Ends all agents, and the lab; what did not end by itself and well, of hosts that are not lost.
    ///
    /// # Errors
    /// The lab's files could not be written.
    pub fn stop(mut self) -> Result<Vec<String>> {
        let machine = self.machine.take().map(VirtualMachine::end);
        let left = machine.and_then(|ended| ended.err());
        let lost: Vec<usize> = self.lost.keys().copied().collect();
        drop(self.agents.end(|host| lost.contains(&host)));
        let mut troubles = self.agents.end(|_| true);
        troubles.extend(left.map(|error| error.to_string()));
        match self.machines.end() {
            // That it was gone is known since it went.
            Err(error) if lost.len() == self.hosts.len() => troubles.push(error.to_string()),
            ended => ended?,
        }
        Ok(troubles)
    }

    /// Makes sure that there is an agent that can be used.
    pub(crate) fn ensure(&mut self, host: usize, placement: Placement) -> Result<()> {
        if let Some(why) = self.lost.get(&host) {
            let error = FleetError::at(
                &self.hosts[host].name,
                "use it",
                format!("it was lost before: {why}"),
                "",
            );
            return Err(error.and_lost());
        }
        let key = (host, placement);
        if self.agents.0.get_mut(&key).is_some_and(Agent::is_usable) {
            return Ok(());
        }
        let before = self.agents.0.remove(&key);
        if before.is_some() && !self.machines.restarts() {
            let said = before
                .and_then(Agent::end)
                .unwrap_or_else(|| "its connection ended".into());
            let remedy = self.machines.remedy_of_loss().unwrap_or_default();
            let error = FleetError::at(&self.hosts[host].name, "use it", said, remedy);
            return Err(self.lose(host, error));
        }
        drop(before);
        self.start(host, placement)?;
        self.set_again(host, placement)
    }

    fn start(&mut self, host: usize, placement: Placement) -> Result<()> {
        match self.machines.start(host, placement) {
            Ok(agent) => {
                self.agents.0.insert((host, placement), agent);
                Ok(())
            }
            Err(error) if error.lost => Err(self.lose(host, error)),
            Err(error) => Err(error),
        }
    }

    /// What the machines run on failed: where it is gone, so are all hosts.
    fn machines_failed(&mut self, error: FleetError) -> FleetError {
        if error.lost {
            for host in 0..self.hosts.len() {
                self.lose(host, error.clone());
            }
        }
        error
    }

    /// A host is not used again.
    fn lose(&mut self, host: usize, error: FleetError) -> FleetError {
        drop(self.agents.end(|one| one == host));
        self.lost.entry(host).or_insert_with(|| error.to_string());
        error.and_lost()
    }

    /// Finds out which host failed, and whether it is lost.
    fn failed(
        &mut self,
        ask: &Ask,
        keys: [(usize, Placement); 2],
        error: &sonde_probe::Error,
    ) -> FleetError {
        let names = [ask.between.src, ask.between.dst].map(|host| self.hosts[host].name.clone());
        let attempt = attempt(&ask.spec, &names);
        let mut dead = Vec::new();
        for key in keys {
            let Some(agent) = self.agents.0.get_mut(&key) else {
                continue;
            };
            // Behind ssh a host may be gone whose connection does not know it yet.
            let answers = self.machines.restarts()
                || (agent.is_usable() && clock::offset(agent.link(), 1).is_ok());
            if !answers || !agent.is_usable() {
                dead.push(key);
            }
        }
        let Some(first) = dead.first() else {
            let unreached = self.machines.unreached().filter(|_| is_unreached(error));
            let remedy = unreached.map_or_else(
                || error.remedy(),
                |more| format!("{}; {more}", error.remedy()),
            );
            return FleetError::at(&names.join(" and "), attempt, error, remedy);
        };
        let remedy = self
            .machines
            .remedy_of_loss()
            .map_or_else(|| error.remedy(), str::to_owned);
        let mut failure = FleetError::at(&self.hosts[first.0].name, attempt, error, remedy);
        for key in &dead {
            let agent = self.agents.0.remove(key);
            let said = agent
                .as_ref()
                .map(Agent::said)
                .filter(|said| !said.is_empty());
            drop(agent);
            if let Some(said) = said {
                failure.happened.push_str(&format!("; it said: {said}"));
            }
            // Where the machine is sure to be there a host is lost only if it does not take another agent.
            if !self.machines.restarts() {
                let lost =
                    FleetError::at(&self.hosts[key.0].name, "reach it", &failure.happened, "");
                self.lose(key.0, lost);
            } else if let Err(lost) = self.start(key.0, key.1) {
                failure.happened.push_str(&format!("; {lost}"));
            }
        }
        failure.lost = dead.iter().any(|(host, _)| self.lost.contains_key(host));
        failure
    }

    /// Starts what is missing and asks all hosts what they are.
    fn describe(&mut self) -> Result<()> {
        let placement = self.machines.first_placement();
        let alive: Vec<usize> = (0..self.hosts.len())
            .filter(|host| self.alive(*host))
            .collect();
        self.reference = alive.first().copied().unwrap_or(0);
        for host in &alive {
            self.ensure(*host, placement)?;
        }
        let mut all = alive.into_iter();
        all.try_for_each(|host| self.describe_one(host, placement))
    }

    fn describe_one(&mut self, host: usize, placement: Placement) -> Result<()> {
        self.hosts[host].address = self.machines.address(host).to_string();
        let count = self.hosts.len();
        let next = (1..count).map(|step| (host + step) % count);
        let peer = next.into_iter().find(|other| self.alive(*other));
        let peer = self.address_of(peer.unwrap_or(host));
        let facts = self.facts(host, placement, peer);
        let (facts, restored) = facts.map_err(|error| {
            let name = self.hosts[host].name.clone();
            let failure = FleetError::at(&name, "ask what it is", &error, error.remedy());
            self.lose(host, failure)
        })?;
        let record = &mut self.hosts[host];
        record.facts = facts;
        if !restored.is_empty() {
            let note = format!("{}: {}", record.name, restored.join("; "));
            self.notes.push(note);
        }
        if self.machines.one_clock() {
            return Ok(());
        }
        // A first host that was started anew may have another clock: all others are against it.
        let anew = if host == self.reference && self.readings.iter().any(Option::is_some) {
            0..self.hosts.len()
        } else {
            host..host + 1
        };
        for other in anew {
            if other != self.reference && self.alive(other) {
                self.take_clock(other);
            }
        }
        Ok(())
    }

    /// Reads a host's clock for the begin of its drift.
    fn take_clock(&mut self, host: usize) {
        let clock = self.read_clock(host);
        if let Err(error) = &clock {
            self.notes
                .push(format!("{error}: its clock has no known offset"));
        }
        self.readings[host] = clock.as_ref().ok().map(|clock| (*clock, Instant::now()));
        self.hosts[host].clock = clock.ok();
    }

    fn facts(
        &mut self,
        host: usize,
        placement: Placement,
        peer: IpAddr,
    ) -> sonde_probe::Result<(HostFacts, Vec<String>)> {
        let Some(agent) = self.agents.0.get_mut(&(host, placement)) else {
            unreachable!("it was started just before");
        };
        let link = agent.link();
        link.send(&Request::Facts { peer: Some(peer) })?;
        match link.answer("its description", FACTS_TIMEOUT)? {
            Answer::Facts { facts, restored } => Ok((*facts, restored)),
            other => Err(sonde_probe::Error::OutOfTurn {
                agent: link.name().into(),
                awaited: "its description",
                found: format!("{other:?}"),
            }),
        }
    }

    /// A host's clock against the first host's.
    fn read_clock(&mut self, host: usize) -> Result<ClockRecord> {
        let placement = self.machines.first_placement();
        let mut read = |one: usize| {
            let agent = self.agents.0.get_mut(&(one, placement));
            let name = &self.hosts[one].name;
            let attempt = "read its clock";
            let agent = agent
                .ok_or_else(|| FleetError::at(name, attempt, "it has no agent", "revive it"))?;
            clock::offset(agent.link(), CLOCK_EXCHANGES)
                .map_err(|error| FleetError::at(name, attempt, &error, error.remedy()))
        };
        let began = Instant::now();
        let (first, other) = (read(self.reference)?, read(host)?);
        let apart_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(against(&first, &other, apart_ns))
    }
}

/// Whether a clock drifts by more than a kernel ever corrects, also by the readings that are kindest to it.
fn is_broken(drift_ppb: i64, bound_ns: u64, span_ns: u64) -> bool {
    let doubt_ppb = u128::from(bound_ns) * 1_000_000_000 / u128::from(span_ns.max(1));
    u128::from(drift_ppb.unsigned_abs()) > DRIFT_MAX_PPB + doubt_ppb
}

/// One clock against another, both read against ours within `apart_ns`.
fn against(first: &ClockRecord, other: &ClockRecord, apart_ns: u64) -> ClockRecord {
    ClockRecord {
        offset_ns: other.offset_ns - first.offset_ns,
        drift_ppb: None,
        bound_ns: first.bound_ns + other.bound_ns + apart_ns.div_ceil(DRIFT_ONE_IN),
    }
}

fn attempt(spec: &Spec, names: &[String; 2]) -> String {
    let [src, dst] = names;
    format!(
        "measure {} over {} from {src} to {dst}",
        spec.probe().name(),
        spec.path.name()
    )
}

/// Whether the two ends did not reach each other. What an agent tells of that comes as text.
fn is_unreached(error: &sonde_probe::Error) -> bool {
    let text = error.to_string();
    ["cannot connect", "did not come", "no peer with the token"]
        .iter()
        .any(|part| text.contains(part))
}

/// What a lab could not have as it was asked for.
fn lab_notes(info: &Info) -> Vec<String> {
    let mut notes = info.notes.clone();
    if let (Attachment::Veth, Some(reason)) = (info.attachment, &info.attachment_reason) {
        notes.push(format!("hosts are attached by veth: {reason}"));
    }
    if sonde_sys::cpu::online().is_ok_and(|online| online.len() == 1) {
        notes.push(
            "switch and programs share one CPU: deliveries will often be behind schedule".into(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_against_the_first_host() {
        let reading = |offset_ns, bound_ns| ClockRecord {
            offset_ns,
            drift_ppb: None,
            bound_ns,
        };
        let clock = against(&reading(-500, 20), &reading(1_500, 30), 1_000_001);
        assert_eq!((clock.offset_ns, clock.bound_ns), (2_000, 20 + 30 + 101));
        assert_eq!(clock.drift_ppb, None);
    }

    #[test]
    fn a_clock_is_broken_beyond_what_its_readings_are_known_to() {
        // 600 and 400 parts in a million over 10 s, known to 100 us in all: 10 parts.
        assert!(is_broken(-600_000, 100_000, 10_000_000_000));
        assert!(!is_broken(400_000, 100_000, 10_000_000_000));
        // Over 10 ms nothing is known of a drift.
        assert!(!is_broken(5_000_000, 100_000, 10_000_000));
        assert!(is_broken(i64::MIN, 0, 0));
    }

    #[test]
    fn only_what_did_not_arrive_is_unreached() {
        let told = |what: &str| {
            is_unreached(&sonde_probe::Error::Agent {
                agent: "a".into(),
                what: what.into(),
                remedy: String::new(),
            })
        };
        assert!(told(
            "10.0.0.2:40001: cannot connect: Connection refused (os error 111)"
        ));
        assert!(told(
            "10.0.0.2:40001: waited 10.000 s for the connection, which did not come"
        ));
        assert!(!told("integrity: 3 bytes were sent and 4 accounted for"));
    }
}
