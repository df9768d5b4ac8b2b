//! Real hosts, by the system's own `ssh` with the user's own configuration.
//!
//! Model:   one `ssh` a host, whose remote command is a shell line (`host.sh`) that starts an agent: the host's own sonde if
//!          it has the same SHA-256, else a copy that comes by the same connection and never has a name while it runs. The
//!          agent's stdio is the connection; its end is the agent's end, however it comes. Nothing is asked of a terminal.
//!          One session a host is all there is, so no ControlMaster is made, which could outlive us; one that the user has
//!          open is used, and with it a one-time password that was given once.
//! Source:  ssh(1), ssh_config(5), sshd(8) for SSH_CONNECTION.
//! Checked: `addresses_are_told_apart`, the tests of the parts; `tests/lab_ssh.rs` with OpenSSH servers.
//!
//! A host's address on the network that is measured is the one by which ssh reached it, as its own end of that connection
//! shows it (third word of SSH_CONNECTION): no name is resolved, a name that means 127.0.1.1 on the host itself does no
//! harm, and behind a jump host it is the inner address. `address=` in the file of hosts overrides it.

mod advice;
mod call;
pub(crate) mod greeting;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sonde_measure::{Probe, Wait};
use sonde_sys::thread;

use crate::agent::Agent;
use crate::error::{FleetError, Result};
use crate::machines::Machines;
use crate::placement::Placement;
use crate::target::Target;
use call::{Calling, Program, call};

pub(crate) use advice::remedy as remedy_of_ssh;

/// So many are started at a time: a jump host's sshd drops connections when more than ten log in (MaxStartups).
const CALLS_MAX: usize = 8;
/// A measurement is between two.
const HOSTS_MIN: usize = 2;
/// Questions that a host may leave without an answer.
const SILENCES: u64 = 3;

/// How ssh is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshOptions {
    /// The program.
    pub program: PathBuf,
    /// Options before all others, as in `-F FILE`.
    pub arguments: Vec<String>,
    /// For the connection alone; whole seconds.
    pub connect_timeout: Duration,
    /// A host that says nothing for so long is lost.
    pub silence_max: Duration,
    /// Fail where any host cannot be used, not only where fewer than two can.
    pub all: bool,
}

impl Default for SshOptions {
    fn default() -> Self {
        Self {
            program: "ssh".into(),
            arguments: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            silence_max: Duration::from_secs(15),
            all: false,
        }
    }
}

impl SshOptions {
    /// The whole command for a host. What the user's configuration might add to a plain session is turned off.
    fn command(&self, target: &Target, program: &Program) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.words(target)).arg(program.remote_line());
        command
    }

    /// What stands between `ssh` and the command for a host.
    fn words(&self, target: &Target) -> Vec<String> {
        let seconds = |time: Duration| time.as_secs().max(1);
        let mut words = self.arguments.clone();
        // ssh asks after each interval without a word, and gives up one interval after the last question.
        let interval = self.silence_max.as_secs() / (SILENCES + 1);
        let options = [
            "BatchMode=yes",
            "LogLevel=ERROR",
            "RequestTTY=no",
            "RemoteCommand=none",
            "PermitLocalCommand=no",
            "ControlMaster=no",
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "TCPKeepAlive=yes",
            &format!("ConnectTimeout={}", seconds(self.connect_timeout)),
            &format!("ServerAliveInterval={}", interval.max(1)),
            &format!("ServerAliveCountMax={SILENCES}"),
        ];
        words.extend(
            options
                .iter()
                .flat_map(|option| ["-o".into(), (*option).into()]),
        );
        words.extend(
            target
                .port
                .iter()
                .flat_map(|port| ["-p".into(), port.to_string()]),
        );
        words.extend(
            target
                .user
                .iter()
                .flat_map(|user| ["-l".into(), user.clone()]),
        );
        words.extend(["--".into(), target.host.clone()]);
        words
    }
}

/// What a call gave: an agent, and the address by which its host was reached.
type Called = Result<(Agent, Option<IpAddr>)>;

/// Real hosts, as their agents were started.
pub(crate) struct Remote {
    program: Program,
    targets: Vec<Target>,
    options: SshOptions,
    addresses: Vec<Option<IpAddr>>,
}

impl Remote {
    /// Starts an agent on each, [`CALLS_MAX`] at a time: an agent or a failure for each host. Where fewer than two are left,
    /// or any is missing where all are wanted, those that cannot be used are in the error.
    pub(crate) fn start(
        program: &Path,
        targets: &[Target],
        options: &SshOptions,
    ) -> Result<(Self, Vec<Result<Agent>>)> {
        let mut remote = Self {
            program: Program::read(program)?,
            targets: targets.to_vec(),
            options: options.clone(),
            addresses: targets.iter().map(|target| target.address).collect(),
        };
        let mut agents = Vec::new();
        for (host, called) in remote.call_all().into_iter().enumerate() {
            agents.push(
                called.and_then(|(agent, address)| remote.learn(host, address).map(|()| agent)),
            );
        }
        let there = agents.iter().filter(|agent| agent.is_ok()).count();
        if there == agents.len() || (there >= HOSTS_MIN && !options.all) {
            return Ok((remote, agents));
        }
        let failures = agents.into_iter().filter_map(Result::err).collect();
        Err(all_of(failures).expect("one at least is missing"))
    }

    /// Calls all hosts. Each ssh is started here, by the thread that it dies with; only the waiting is done elsewhere.
    fn call_all(&self) -> Vec<Called> {
        let mut answers = BTreeMap::new();
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let (mut next, mut running) = (0, 0);
            while next < self.targets.len() || running > 0 {
                while next < self.targets.len() && running < CALLS_MAX {
                    let (sender, host) = (sender.clone(), next);
                    let calling = call(&self.targets[host], &self.options, &self.program);
                    let waiting = thread::start_in(scope, "a call by ssh", move || {
                        let greet = |calling: Calling| calling.greet(&self.options, &self.program);
                        // The receiver outlives the threads.
                        drop(sender.send((host, calling.and_then(greet))));
                    });
                    next += 1;
                    match waiting {
                        Ok(_) => running += 1,
                        Err(error) => {
                            let name = &self.targets[host].name;
                            let failed = FleetError::at(name, "call the host", error, "");
                            answers.insert(host, Err(failed.and_lost()));
                        }
                    }
                }
                if let Ok((host, answer)) = receiver.recv() {
                    answers.insert(host, answer);
                    running -= 1;
                }
            }
        });
        answers.into_values().collect()
    }

    /// Takes the address for a host's peers.
    fn learn(&mut self, host: usize, address: Option<IpAddr>) -> Result<()> {
        let target = &self.targets[host];
        let failed = |problem: String| {
            let remedy = format!(
                "name the hosts in a file, with the address on the network to measure: `{} address=10.0.0.1`",
                target.name
            );
            FleetError::at(
                &target.name,
                "find the address for its peers",
                problem,
                remedy,
            )
        };
        let address = match target.address {
            Some(address) => address,
            None => check_address(address).map_err(failed)?,
        };
        let other = |other: &usize| *other != host && self.addresses[*other] == Some(address);
        if let Some(other) = (0..self.targets.len()).find(other) {
            return Err(failed(format!(
                "{address} is also the address of {}",
                self.targets[other].name
            )));
        }
        self.addresses[host] = Some(address);
        Ok(())
    }
}

impl Machines for Remote {
    fn names(&self) -> Vec<String> {
        self.targets
            .iter()
            .map(|target| target.name.clone())
            .collect()
    }

    fn address(&self, host: usize) -> IpAddr {
        self.addresses[host].expect("a host without an address is lost from its start")
    }

    fn start(&mut self, host: usize, _placement: Placement) -> Result<Agent> {
        let calling = call(&self.targets[host], &self.options, &self.program)?;
        let (agent, address) = calling.greet(&self.options, &self.program)?;
        self.learn(host, address).map_err(FleetError::and_lost)?;
        Ok(agent)
    }

    fn route(&self, host: usize) -> Option<String> {
        Some(format!(
            "ssh {}",
            self.options.words(&self.targets[host]).join(" ")
        ))
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
        Some(
            "look whether the host is up and its ssh server runs; a resumed run measures what is missing",
        )
    }

    fn unreached(&self) -> Option<&'static str> {
        Some(
            "let the hosts reach each other's ports, TCP and UDP (`sysctl net.ipv4.ip_local_port_range`), or give \
             addresses on a network where they do (`address=` in a file of hosts)",
        )
    }
}

/// Several failures as one.
fn all_of(mut failures: Vec<FleetError>) -> Option<FleetError> {
    if failures.len() < 2 {
        return failures.pop();
    }
    let hosts: Vec<_> = failures
        .iter()
        .filter_map(|failure| failure.host.clone())
        .collect();
    let texts: Vec<_> = failures.iter().map(ToString::to_string).collect();
    Some(FleetError {
        host: Some(hosts.join(" and ")),
        attempt: "start agents by ssh".into(),
        happened: format!("{} hosts failed:\n  {}", hosts.len(), texts.join("\n  ")),
        remedy: String::new(),
        lost: true,
    })
}

/// Whether peers may be given this address; a sentence where not.
pub(crate) fn check_address(address: Option<IpAddr>) -> std::result::Result<IpAddr, String> {
    let Some(address) = address else {
        return Err("its ssh server does not say by which address it was reached".into());
    };
    let mapped = match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        v4 => v4,
    };
    let link_local = matches!(mapped, IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfe80);
    if mapped.is_loopback() || mapped.is_unspecified() || link_local {
        return Err(format!(
            "ssh reached it at {mapped}, where no other host can"
        ));
    }
    Ok(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        let checked = |text: &str| check_address(text.parse().ok());
        assert_eq!(checked("10.0.0.1").unwrap().to_string(), "10.0.0.1");
        assert_eq!(checked("::ffff:10.0.0.1").unwrap().to_string(), "10.0.0.1");
        assert_eq!(checked("fd00::1").unwrap().to_string(), "fd00::1");
        for bad in [
            "127.0.1.1",
            "::1",
            "::ffff:127.0.0.1",
            "fe80::1",
            "fe80::1%eth0",
            "0.0.0.0",
        ] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
