//! Agents that are processes of this machine and connect back: strangers among them, a tree of them, and the ends of each part.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use sonde_fleet::{
    Ask, Between, ConnectOptions, DIRECT_MAX, Fleet, Launcher, TOKEN_VARIABLE, Token,
};
use sonde_measure::{Path, Wait};
use sonde_measure::{Probe, Procedure, Sampling, Spec};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sonde-fleet-part");
/// What must happen happens within this; it is not a measure of speed.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A port that the kernel gives to nobody, at an address that nothing else takes ports of. A listener that found a free one
/// would live on for a moment in a program that another test starts meanwhile.
fn free_port() -> SocketAddr {
    const PORT: u16 = 7_000;
    static TAKEN: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let taken = TAKEN.fetch_add(1, Ordering::Relaxed);
    (Ipv4Addr::new(127, high | 128, low, taken), PORT).into()
}

/// Processes that do not outlive the test.
struct Agents(Vec<Child>);

impl Drop for Agents {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Most have ended.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn agent(at: SocketAddr, name: &str, token: &Token) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(["join", &at.to_string(), name]);
    command.env(TOKEN_VARIABLE, token.text());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn options(at: SocketAddr, hosts: usize, token: &Token) -> ConnectOptions {
    let mut options = ConnectOptions::new(Launcher::User { hosts });
    options.listen = at.to_string().parse().unwrap();
    options.token = Some(token.clone());
    options.timeout = TIMEOUT;
    options
}

fn gather(at: SocketAddr, hosts: usize, token: &Token) -> sonde_fleet::Result<Fleet> {
    Fleet::connected(std::path::Path::new(PROGRAM), &options(at, hosts, token))
}

fn ask(src: usize, dst: usize) -> Ask {
    let mut spec = Spec::new(Probe::Latency, Path::Tcp, Wait::Block);
    spec.sizes_bytes = vec![1];
    spec.procedure = Procedure::Latency(Sampling {
        samples_min: 10,
        samples_max: 20,
        ..Sampling::LATENCY
    });
    Ask {
        spec,
        between: Between {
            src,
            dst,
            one_way_ns: None,
            load: None,
        },
    }
}

/// Waits until it is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn sockets(child: &Child) -> usize {
    let fds = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    let targets = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    targets
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count()
}

/// Everything that a port of the outside world sees, then two agents, and a second one of the first host.
fn among_strangers(at: SocketAddr, token: &Token) -> (Agents, std::thread::JoinHandle<bool>) {
    eventually("nobody listens", || TcpStream::connect(at).is_ok());
    let connect = || TcpStream::connect(at).unwrap();
    let silent: Vec<_> = (0..50).map(|_| connect()).collect();
    let huge = [0xff; 64 << 10];
    for bytes in [
        &b"GET / HTTP/1.0\r\n\r\n"[..],
        &huge,
        &[0; 61],
        b"sonde-join/1\n",
    ] {
        // It may be dropped before all is said.
        drop(connect().write_all(bytes));
    }
    let mut slow = connect();
    // Its deadline does not move with what it sends.
    let slowly = std::thread::spawn(move || {
        let kept = silent;
        for byte in b"sonde-join/1\n".iter().cycle().take(1_000) {
            if slow.write_all(&[*byte]).is_err() {
                return kept.len() == 50;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        false
    });
    // One with another token, which says so and fails.
    let mut other = agent(at, "stranger", &Token::random().unwrap());
    assert!(!other.wait().unwrap().success());
    let mut said = String::new();
    other
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(said.contains("token"), "{said}");
    let first = agent(at, "n1", token);
    // Whichever of the two comes first is the agent; the other is told to go, or finds the port closed.
    let agents = vec![first, agent(at, "n2", token), agent(at, "n1", token)];
    (Agents(agents), slowly)
}

#[test]
fn strangers_keep_no_run_from_going_on() {
    let (at, token) = (free_port(), Token::random().unwrap());
    let others = std::thread::spawn({
        let token = token.clone();
        move || among_strangers(at, &token)
    });
    let mut fleet = gather(at, 2, &token).unwrap();
    let notes = fleet.notes().join("; ");
    assert!(
        notes.contains("unauthenticated connections dropped: "),
        "{notes}"
    );
    let names: Vec<&str> = fleet
        .hosts()
        .iter()
        .map(|host| host.name.as_str())
        .collect();
    assert_eq!(names, ["n1", "n2"]);
    let launched = fleet.converse(&ask(0, 1)).unwrap();
    assert_eq!(launched.outcome.sizes.len(), 1);
    assert!(fleet.stop().unwrap().is_empty());
    let (mut agents, slowly) = others.join().unwrap();
    assert!(slowly.join().unwrap(), "the slow one was heard for ever");
    for child in &mut agents.0[1..2] {
        eventually("an agent stays", || child.try_wait().unwrap().is_some());
    }
}

#[test]
fn beyond_64_hosts_agents_hand_on_for_others() {
    const HOSTS: usize = 130;
    let (at, token) = (free_port(), Token::random().unwrap());
    let others = std::thread::spawn({
        let token = token.clone();
        move || {
            let start = |range: std::ops::Range<usize>| {
                range
                    .map(|n| agent(at, &format!("n{n}"), &token))
                    .collect::<Vec<_>>()
            };
            let mut agents = Agents(start(0..DIRECT_MAX));
            // The relays: its connection, its listener, its own agent's pair.
            eventually("the first do not become relays", || {
                agents.0.iter().all(|child| sockets(child) >= 4)
            });
            agents.0.extend(start(DIRECT_MAX..HOSTS));
            agents
        }
    });
    let mut fleet = gather(at, HOSTS, &token).unwrap();
    let mut agents = others.join().unwrap();
    assert_eq!(fleet.hosts().len(), HOSTS);
    assert_eq!(
        (
            fleet.hosts()[0].name.as_str(),
            fleet.hosts()[129].name.as_str()
        ),
        ("n0", "n129")
    );
    fleet.converse(&ask(64, 129)).unwrap();
    fleet.converse(&ask(3, 100)).unwrap();
    // A relay dies: it is lost, and who was below it, each by name; the others go on.
    agents.0[0].kill().unwrap();
    let error = fleet.converse(&ask(0, 1)).unwrap_err();
    assert!(error.lost && error.host.as_deref() == Some("n0"), "{error}");
    let mut lost = Vec::new();
    for host in DIRECT_MAX..HOSTS {
        match fleet.converse(&ask(host, 1)) {
            Ok(_) => assert!(fleet.alive(host)),
            Err(error) => {
                assert_eq!(error.host.as_deref(), Some(&*format!("n{host}")), "{error}");
                assert!(error.lost && !fleet.alive(host), "{error}");
                lost.push(host);
            }
        }
    }
    assert!((1..=2).contains(&lost.len()), "{lost:?}");
    assert!(fleet.alive(1));
    for gone in lost.iter().chain([&0]) {
        eventually("who was below the relay stays", || {
            agents.0[*gone].try_wait().unwrap().is_some()
        });
    }
    assert!(fleet.stop().unwrap().is_empty());
    for (number, child) in agents.0.iter_mut().enumerate() {
        eventually("an agent stays", || child.try_wait().unwrap().is_some());
        let status = child.wait().unwrap();
        assert!(
            number == 0 || lost.contains(&number) || status.success(),
            "n{number}: {status}"
        );
    }
}

#[test]
fn all_end_with_their_orchestrator() {
    const HOSTS: usize = DIRECT_MAX + 4;
    let (at, token) = (free_port(), Token::random().unwrap());
    let mut command = Command::new(PROGRAM);
    command.args(["hold", &at.to_string(), &HOSTS.to_string()]);
    command.env(TOKEN_VARIABLE, token.text());
    let mut root = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut agents = Agents(
        (0..HOSTS)
            .map(|n| agent(at, &format!("n{n}"), &token))
            .collect(),
    );
    let mut line = String::new();
    BufReader::new(root.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, format!("ok {HOSTS}\n"));
    root.kill().unwrap();
    root.wait().unwrap();
    for child in &mut agents.0 {
        eventually("an agent outlives its orchestrator", || {
            child.try_wait().unwrap().is_some()
        });
    }
}

#[test]
fn hosts_are_in_the_order_of_their_ranks() {
    let (at, token) = (free_port(), Token::random().unwrap());
    let ranked = |name: &str, rank: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["join", &at.to_string(), name]);
        command
            .env(TOKEN_VARIABLE, token.text())
            .env("PMI_RANK", rank);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let _agents = Agents(vec![
        ranked("n1", "2"),
        ranked("n2", "0"),
        ranked("n3", "1"),
    ]);
    let fleet = gather(at, 3, &token).unwrap();
    let names: Vec<&str> = fleet.hosts().iter().map(|host| &*host.name).collect();
    assert_eq!(names, ["n2", "n3", "n1"]);
    assert!(fleet.stop().unwrap().is_empty());
}

#[test]
fn who_does_not_come_is_told() {
    let (at, token) = (free_port(), Token::random().unwrap());
    let _agents = Agents(vec![agent(at, "n1", &token)]);
    let mut options = options(at, 2, &token);
    options.timeout = Duration::from_secs(2);
    let error = Fleet::connected(std::path::Path::new(PROGRAM), &options)
        .err()
        .unwrap();
    let said = error.to_string();
    assert!(
        said.contains("1 of 2 agents did not connect back") && said.contains("--listen"),
        "{said}"
    );
}
