//! `sonde agent --connect`: an agent that comes to its orchestrator, wherever something else started it.
//!
//! Model:   it connects, again and again until its timeout ends, since it may be started first; shows the token and has it
//!          shown; says who it is; and does what it is told: be the host's agent, be that and hand on for others, go to
//!          one that does, or end. Whatever it is, it ends with its connection.
//! Checked: `hosts_and_ports_are_told_apart`; `tests/connect.rs`.
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

use sonde_sys::tell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use super::handshake::{self, Hello, RelayPort, Welcome};
use super::listener::Listener;
use super::relay;
use super::token::Token;
use crate::error::{FleetError, Result};

/// What the orchestrator may take to decide.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);
const CONNECT_MAX: Duration = Duration::from_secs(5);
const ATTEMPT: &str = "join the run";
const HAND_ON: &str = "hand on for other agents";
/// Who starts processes says so in these, the first that is there counts: an MPI's own go before those of the allocation in
/// which it runs.
const RANKS: [&str; 4] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
];
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];
const NAME_IN_SLURM: &str = "SLURMD_NODENAME";

/// Where to go, and as whom.
#[derive(Debug, Clone)]
pub struct Joining {
    /// `HOST:PORT` of the orchestrator.
    pub to: String,
    /// The run's.
    pub token: Token,
    /// What this host is called; else as Slurm, else as it names itself.
    pub name: Option<String>,
    /// How long a connection is tried.
    pub timeout: Duration,
}

/// Joins the run and obeys until it ends. To be called from the main thread; see [`sonde_probe::agent::run`].
///
/// # Errors
/// The orchestrator is not reached, has another token, or refuses this host; or a stream fails.
pub fn join(joining: &Joining) -> Result<()> {
    let places = resolve(&joining.to)?;
    let (stream, address) = connect(&places, joining)?;
    let mut hello = hello(joining, address);
    let welcome = present(&stream, &hello)?;
    let Welcome::Under { relay, ticket } = welcome else {
        return follow(welcome, stream, joining);
    };
    drop(stream);
    // Peers reach it where the orchestrator did: its own end of the way to the relay may be another.
    let (stream, _) = connect(&[relay], joining)?;
    hello.ticket = Some(ticket);
    let welcome = present(&stream, &hello)?;
    follow(welcome, stream, joining)
}

fn follow(welcome: Welcome, stream: TcpStream, joining: &Joining) -> Result<()> {
    match welcome {
        Welcome::Stay {} => obey(&stream),
        Welcome::Relay {} => hand_on(stream, joining),
        Welcome::Go { why, refused: true } => Err(FleetError::of_all(ATTEMPT, why, "")),
        Welcome::Go { why, .. } => {
            tell!("sonde agent: not needed: {why}");
            Ok(())
        }
        Welcome::Under { .. } => Err(FleetError::of_all(
            ATTEMPT,
            "a relay sent it on to another",
            "run the same version of sonde everywhere",
        )),
    }
}

fn obey(stream: &TcpStream) -> Result<()> {
    sonde_probe::agent::run(stream, stream)
        .map_err(|error| FleetError::of_all("obey the orchestrator", &error, error.remedy()))
}

/// The agent here, the relay beside it.
fn hand_on(stream: TcpStream, joining: &Joining) -> Result<()> {
    let failed = |error: std::io::Error| {
        FleetError::of_all(
            HAND_ON,
            error,
            "raise the limits of open files and processes: `ulimit -n -u`",
        )
    };
    let here = stream.local_addr().map_err(failed)?;
    let listener = Listener::open(SocketAddr::new(here.ip(), 0), joining.token.clone())?;
    let port = listener.address().port();
    handshake::say(&stream, &RelayPort { port }).map_err(failed)?;
    let (near, far) = UnixStream::pair().map_err(failed)?;
    let relaying =
        sonde_sys::thread::start("a relay", move || relay::serve(stream, far, &listener))
            .map_err(|error| FleetError::of_all(HAND_ON, error, ""))?;
    let obeyed = sonde_probe::agent::run(&near, &near)
        .map_err(|error| FleetError::of_all("obey the orchestrator", &error, error.remedy()));
    // The relay sees its end, and goes on for the others.
    drop(near);
    // A relay that panicked has told so, and what is below it is gone.
    let relayed = relaying
        .join()
        .unwrap_or_else(|_| Err(std::io::Error::other("the relay ended with a defect")));
    obeyed.and(relayed.map_err(failed))
}

/// All addresses of `HOST:PORT`.
fn resolve(to: &str) -> Result<Vec<SocketAddr>> {
    let refused = |problem: String| {
        let remedy = "write HOST:PORT, as in 10.0.0.1:7000, [fd00::1]:7000 or node1:7000";
        FleetError::of_all(ATTEMPT, problem, remedy)
    };
    if let Ok(place) = to.parse() {
        return Ok(vec![place]);
    }
    let (host, port) =
        split(to).ok_or_else(|| refused(format!("`{to}` is not a host and port")))?;
    let addresses = addresses_of(host);
    if addresses.is_empty() {
        return Err(refused(format!(
            "`{host}` has no address here (`getent ahosts {host}`)"
        )));
    }
    Ok(addresses
        .into_iter()
        .map(|address| SocketAddr::new(address, port))
        .collect())
}

fn split(to: &str) -> Option<(&str, u16)> {
    let (host, port) = to.rsplit_once(':')?;
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let plain = !host.is_empty() && !host.starts_with('-') && host.bytes().all(letters);
    let port = port.parse().ok().filter(|port| *port > 0)?;
    plain.then_some((host, port))
}

/// The addresses of a name, as this system resolves it; a static program cannot ask the C library. Empty where it has none.
pub(crate) fn addresses_of(name: &str) -> Vec<IpAddr> {
    let Ok(output) = Command::new("getent").args(["ahosts", name]).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found: Vec<IpAddr> = Vec::new();
    for word in text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
    {
        if let Some(address) = word.parse().ok().filter(|address| !found.contains(address)) {
            found.push(address);
        }
    }
    found
}

/// A connection that has shown the token and was shown it, and this end's address.
fn connect(places: &[SocketAddr], joining: &Joining) -> Result<(TcpStream, IpAddr)> {
    let end = Instant::now() + joining.timeout;
    let mut last = String::new();
    loop {
        for place in places {
            let tried = TcpStream::connect_timeout(place, CONNECT_MAX).and_then(|stream| {
                handshake::introduce(
                    &stream,
                    &joining.token,
                    Instant::now() + CONNECT_MAX.saturating_mul(2),
                )?;
                let address = stream.local_addr()?.ip();
                Ok((stream, address))
            });
            match tried {
                Ok(joined) => return Ok(joined),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    let remedy =
                        "give this agent the token and the port of the run that waits for it";
                    return Err(FleetError::of_all(
                        format!("{ATTEMPT} at {place}"),
                        error,
                        remedy,
                    ));
                }
                Err(error) => last = format!("{place}: {error}"),
            }
        }
        if Instant::now() + PAUSE >= end {
            let remedy = "let this host reach that port (firewall, routing), or have the orchestrator listen where it does: \
                          `sonde assess --listen ADDRESS:PORT`";
            let happened = format!("{last}, tried for {} s", joining.timeout.as_secs());
            return Err(FleetError::of_all(ATTEMPT, happened, remedy));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Says who this is, and hears what it is to do.
fn present(stream: &TcpStream, hello: &Hello) -> Result<Welcome> {
    let heard = handshake::say(stream, hello)
        .and_then(|()| handshake::hear(stream, Instant::now() + WELCOME_TIMEOUT));
    heard.map_err(|error| {
        let remedy = "see what the orchestrator said; its run may have ended meanwhile";
        FleetError::of_all(ATTEMPT, error, remedy)
    })
}

fn hello(joining: &Joining, address: IpAddr) -> Hello {
    let variables: BTreeMap<String, String> = std::env::vars().collect();
    let number = |names: &[&str]| {
        let text = names.iter().find_map(|name| variables.get(*name));
        text.and_then(|text| text.parse().ok())
    };
    let named = joining.name.clone();
    let (own, _) = sonde_sys::host::names();
    // Where the boot cannot be told, the name stands for it: two machines must never pass for one.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let boot = boot.unwrap_or_else(|_| own.clone());
    let space = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    Hello {
        name: named
            .or_else(|| variables.get(NAME_IN_SLURM).cloned())
            .unwrap_or(own),
        machine: format!("{} {}", boot.trim(), space.display()),
        rank: number(&RANKS).unwrap_or(0),
        size: number(&SIZES),
        address,
        version: env!("CARGO_PKG_VERSION").into(),
        ticket: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        let one = |text: &str| resolve(text).unwrap()[0].to_string();
        assert_eq!(one("10.0.0.1:7000"), "10.0.0.1:7000");
        assert_eq!(one("[fd00::1]:7000"), "[fd00::1]:7000");
        assert!(one("localhost:7000").ends_with(":7000"));
        for bad in [
            "",
            "node1",
            "node1:",
            ":7000",
            "a b:1",
            "-n:7",
            "node1:0",
            "node1:70000",
            "fd00::1",
        ] {
            let said = resolve(bad).unwrap_err().to_string();
            assert!(said.contains("HOST:PORT"), "{bad}: {said}");
        }
    }
}
