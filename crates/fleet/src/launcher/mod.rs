//! Who starts agents that connect back: Slurm, an MPI, or the user.
//!
//! Model:   `srun` or `mpirun` runs as a child that dies with the orchestrator's main thread and gets the run's token in its
//!          environment, from where it reaches the agents; on no command line. The agents end with their connections, and
//!          with them the child; one that goes on is told to end, then killed.
//! Checked: the tests of the parts, `a_launcher_that_goes_on_is_ended`; `crates/sonde/tests/lab_slurm.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod mpirun;
mod slurm;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sonde_sys::exec::{Step, before_exec};
use sonde_sys::netlink::Netlink;
use sonde_sys::{process, tell, thread};

use crate::agent::ErrorTail;
use crate::connect::{Expected, Token};
use crate::error::{FleetError, Result};
pub use mpirun::{Make as Mpi, mpi_of};
pub use slurm::Allocation;

/// The variable that holds the token.
pub const TOKEN_VARIABLE: &str = "SONDE_TOKEN";
/// A launcher whose agents have ended ends within this.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// One that was told to end.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);
const SIGTERM: i32 = 15;

/// Who starts the agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launcher {
    /// Slurm's `srun`, in the allocation that this process is in.
    Slurm {
        /// Where sonde is on its nodes, if not where it is here.
        program: Option<PathBuf>,
    },
    /// `mpirun` of Open MPI or MPICH, with these arguments of its own; the first may name the program.
    Mpirun {
        /// As in `--hostfile FILE`.
        arguments: Vec<String>,
    },
    /// The user, on so many hosts.
    User {
        /// At least two.
        hosts: usize,
    },
}

/// Agents that connect back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Who starts them.
    pub launcher: Launcher,
    /// Where this process listens; what is left open is chosen.
    pub listen: Listen,
    /// How long all may take to come.
    pub timeout: Duration,
    /// The run's; a fresh one where none is given.
    pub token: Option<Token>,
}

impl ConnectOptions {
    /// The usual: any port, two minutes for what starts by itself, ten for users.
    pub fn new(launcher: Launcher) -> Self {
        let minutes = if matches!(launcher, Launcher::User { .. }) {
            10
        } else {
            2
        };
        Self {
            launcher,
            listen: Listen::default(),
            timeout: Duration::from_secs(60_u64.saturating_mul(minutes)),
            token: None,
        }
    }
}

/// Where to listen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Listen {
    /// The address that the hosts reach; none leaves it to the routes.
    pub address: Option<IpAddr>,
    /// The port; 0 is any that is free.
    pub port: u16,
}

impl std::str::FromStr for Listen {
    type Err = String;

    /// `ADDRESS`, `ADDRESS:PORT` or `:PORT`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self {
                address: Some(address),
                port: 0,
            });
        }
        if let Ok(both) = text.parse::<SocketAddr>() {
            return Ok(Self {
                address: Some(both.ip()),
                port: both.port(),
            });
        }
        let port = text.strip_prefix(':').and_then(|port| port.parse().ok());
        port.map(|port| Self { address: None, port }).ok_or_else(|| {
            format!("`{text}` is not an address to listen at: write ADDRESS, ADDRESS:PORT or :PORT with a numeric address of this host")
        })
    }
}

/// A launcher that was made ready: what is known before it starts.
pub(crate) enum Ready {
    Slurm(slurm::Ready),
    Mpirun(mpirun::Ready),
    User(usize),
}

impl Ready {
    /// Finds the allocation or the MPI.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) fn find(launcher: &Launcher, program: &Path) -> Result<Self> {
        Ok(match launcher {
            Launcher::Slurm { program: theirs } => {
                let program = theirs.as_deref().unwrap_or(program);
                Self::Slurm(slurm::Ready::find(program)?)
            }
            Launcher::Mpirun { arguments } => {
                Self::Mpirun(mpirun::Ready::find(program, arguments)?)
            }
            Launcher::User { hosts } => Self::User(*hosts),
        })
    }

    pub(crate) fn expected(&self) -> Expected {
        match self {
            Self::Slurm(ready) => Expected::Names(ready.allocation.nodes.clone()),
            Self::Mpirun(_) => Expected::AsTold,
            Self::User(hosts) => Expected::Count(*hosts),
        }
    }

    /// Where the agents reach this process.
    ///
    /// # Errors
    /// No address is found that others could reach.
    pub(crate) fn place(&self, listen: Listen) -> Result<SocketAddr> {
        let known: &[String] = match self {
            Self::Slurm(ready) => &ready.allocation.nodes,
            _ => &[],
        };
        let address = match listen.address {
            Some(address) => address,
            None => reachable(known)?,
        };
        Ok(SocketAddr::new(address, listen.port))
    }

    /// Starts the agents.
    ///
    /// # Errors
    /// The launcher does not start.
    pub(crate) fn start(&self, at: SocketAddr, token: &Token) -> Result<Option<Starter>> {
        let (what, command, remedy) = match self {
            Self::Slurm(ready) => ("srun", ready.command(at), slurm::REMEDY),
            Self::Mpirun(ready) => ("mpirun", ready.command(at), mpirun::REMEDY),
            Self::User(hosts) => {
                tell!(
                    "sonde: waiting for {hosts} hosts; on each of them run:\n  {}",
                    line(at, token)
                );
                return Ok(None);
            }
        };
        Starter::start(what, command, token, remedy).map(Some)
    }
}

/// What users run on each host. The token stands in the environment, where only they and root see it.
fn line(at: SocketAddr, token: &Token) -> String {
    let given = std::env::var_os(TOKEN_VARIABLE).is_some();
    let token = if given {
        String::new()
    } else {
        format!("{TOKEN_VARIABLE}={} ", token.text())
    };
    format!("{token}sonde agent --connect {at}")
}

/// The address of this host that the first of these hosts reaches that is another; where none is known, the one with which
/// this host would leave it.
fn reachable(hosts: &[String]) -> Result<IpAddr> {
    let others = hosts
        .iter()
        .flat_map(|host| crate::connect::addresses_of(host));
    let by_route = others
        .filter_map(towards)
        .find(|address| is_ours_to_others(*address));
    let found = by_route.or_else(|| {
        // Documentation addresses: nothing is sent, the kernel only looks for the way.
        let anywhere =
            towards(IpAddr::from([192, 0, 2, 1])).filter(|address| is_ours_to_others(*address));
        anywhere.or_else(first_of_an_interface)
    });
    found.ok_or_else(|| {
        FleetError::of_all(
            "find the address at which agents reach this host",
            "no route to them leaves it, and no interface has an address",
            "name it: `--listen ADDRESS`",
        )
    })
}

/// The source address of the way to `peer`.
fn towards(peer: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if peer.is_ipv4() {
        [0, 0, 0, 0].into()
    } else {
        [0u16; 8].into()
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((peer, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn is_ours_to_others(address: IpAddr) -> bool {
    crate::ssh::check_address(Some(address)).is_ok()
}

fn first_of_an_interface() -> Option<IpAddr> {
    let mut netlink = Netlink::open().ok()?;
    let links = netlink.links().ok()?;
    links.into_iter().filter(|link| link.up).find_map(|link| {
        let addresses = netlink.addresses(link.index).ok()?;
        let mut addresses = addresses
            .into_iter()
            .map(|(address, _)| IpAddr::from(address));
        addresses.find(|address| is_ours_to_others(*address))
    })
}

/// A launcher that runs.
pub(crate) struct Starter {
    what: &'static str,
    child: Child,
    said: ErrorTail,
    /// What its words mean, and what to do.
    remedy: fn(&str) -> &'static str,
}

impl Starter {
    fn start(
        what: &'static str,
        mut command: Command,
        token: &Token,
        remedy: fn(&str) -> &'static str,
    ) -> Result<Self> {
        command.env(TOKEN_VARIABLE, token.text());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let expected = std::process::id();
        // A terminal's interrupt is for the orchestrator, which ends the agents itself.
        before_exec(
            &mut command,
            vec![Step::DieWithParent { expected }, Step::NewGroup],
        );
        let failed = |happened: sonde_sys::Error, remedy: &str| {
            FleetError::of_all(format!("start agents by {what}"), happened, remedy)
        };
        let mut child = command.spawn().map_err(|error| {
            let remedy = match error.kind() {
                std::io::ErrorKind::NotFound => remedy("not found"),
                _ => "",
            };
            let program = command.get_program().to_string_lossy();
            failed(thread::refused(&program, error), remedy)
        })?;
        let said = match child.stderr.take() {
            Some(stream) => ErrorTail::collect(stream),
            None => Ok(ErrorTail::nothing()),
        };
        let said = said.map_err(|error| {
            // It may have ended by itself.
            drop(child.kill());
            drop(child.wait());
            failed(error, "")
        })?;
        Ok(Self {
            what,
            child,
            said,
            remedy,
        })
    }

    /// Why no more agents will come, if it has ended.
    pub(crate) fn over(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let said = self.said.text();
        let said = if said.is_empty() {
            "it said nothing".into()
        } else {
            format!("it said: {said}")
        };
        Some(format!("{} ended with {status}; {said}", self.what))
    }

    /// What to do about what it said.
    pub(crate) fn remedy(&self) -> &'static str {
        (self.remedy)(&self.said.text())
    }

    /// Ends it, which has nothing left to do.
    fn end(&mut self) {
        if self.ends_within(END_TIMEOUT) {
            return;
        }
        // Both fail only for one that has ended.
        drop(process::kill_group(self.child.id(), SIGTERM));
        if !self.ends_within(TERM_TIMEOUT) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }

    fn ends_within(&mut self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) => return false,
                _ => return true,
            }
        }
    }

    /// It is to end at once: something failed.
    pub(crate) fn abort(&mut self) {
        drop(process::kill_group(self.child.id(), SIGTERM));
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let read = |text: &str| text.parse::<Listen>().unwrap();
        let address = Some("10.0.0.1".parse().unwrap());
        assert_eq!(read("10.0.0.1"), Listen { address, port: 0 });
        assert_eq!(
            read("10.0.0.1:7000"),
            Listen {
                address,
                port: 7_000
            }
        );
        assert_eq!(
            read(":7000"),
            Listen {
                address: None,
                port: 7_000
            }
        );
        assert_eq!(read("[fd00::1]:1").port, 1);
        for bad in ["", "7000", "node1", "node1:7", ":70000", "10.0.0.1:"] {
            assert!(
                bad.parse::<Listen>().unwrap_err().contains("ADDRESS"),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_token_stands_before_the_command() {
        let token = Token::random().unwrap();
        let line = line("10.0.0.1:7".parse().unwrap(), &token);
        assert_eq!(
            line,
            format!(
                "SONDE_TOKEN={} sonde agent --connect 10.0.0.1:7",
                token.text()
            )
        );
    }

    #[test]
    fn an_address_is_one_that_others_can_use() {
        match reachable(&["127.0.0.1".into(), "localhost".into()]) {
            Ok(address) => assert!(is_ours_to_others(address), "{address}"),
            Err(error) => assert!(error.to_string().contains("--listen")),
        }
    }

    #[test]
    fn a_launcher_that_goes_on_is_ended() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo started >&2; test -n \"$SONDE_TOKEN\" || exit 3; sleep 1000",
        ]);
        let token = Token::random().unwrap();
        let mut starter = Starter::start("sh", command, &token, |_| "").unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while starter.said.text() != "started" {
            assert!(Instant::now() < end && starter.over().is_none());
        }
        let pid = starter.child.id();
        starter.abort();
        drop(starter);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
