//! Agents that are processes: this test program, started again to play the part.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sonde_measure::{Path, Probe, Sampling, Spec, Wait};
use sonde_probe::{AgentLink, Answer, Conversation, Error, Measure, Request, Serve};

pub const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
pub const SOON: Duration = Duration::from_secs(20);

/// The command that starts an agent: this test program, playing that part.
pub fn agent() -> Command {
    playing("agents::play_the_agent")
}

pub fn playing(part: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--ignored", "--exact", part, "--nocapture"]);
    command
}

/// No test: the way in for [`agent`]. What the harness prints before is passed over like a shell's greeting.
#[test]
#[ignore = "played by the other tests"]
fn play_the_agent() {
    let worker = || playing("agents::play_the_worker");
    let ended = sonde_probe::agent::run_with(std::io::stdin(), std::io::stdout(), worker);
    if let Err(error) = &ended {
        eprintln!("{error}");
    }
    std::process::exit(i32::from(ended.is_err()));
}

/// No test: the way in for the agent's workers.
#[test]
#[ignore = "played by the other tests"]
fn play_the_worker() {
    std::process::exit(sonde_probe::agent::work(
        std::io::stdin(),
        std::io::stdout(),
        None,
    ));
}

/// A socket of a port by which a data port knows the first connection of the conversation with this token.
pub fn announced(token: &str) -> UdpSocket {
    // Of the last of them: the client of the test takes the first that is free.
    let ports = sonde_probe::fuzz::ports(token, 0).into_iter().rev();
    let mut free = ports.filter_map(|port| UdpSocket::bind((HERE, port)).ok());
    free.next().expect("a port is free")
}

pub struct Agent {
    pub link: AgentLink,
    pub child: Child,
}

impl Agent {
    pub fn start(name: &str) -> Self {
        Self::from(name, agent())
    }

    pub fn from(name: &str, mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let link = AgentLink::open(name, from, to, SOON).unwrap();
        Self { link, child }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn agents() -> (Agent, Agent) {
    (Agent::start("h1"), Agent::start("h2"))
}

pub fn conversation(spec: Spec) -> Conversation {
    Conversation::new(spec, HERE.into()).unwrap()
}

/// Short waits, so that what goes wrong is over soon.
pub fn impatient(probe: Probe, path: Path) -> Spec {
    Spec {
        timeout_ns: 400_000_000,
        ..Spec::new(probe, path, Wait::Block)
    }
}

/// A latency of so many samples.
pub fn samples(path: Path, count: u64) -> Spec {
    sampled(Spec::new(Probe::Latency, path, Wait::Block), |sampling| {
        *sampling = Sampling {
            precision_per_mille: None,
            ..sampling.up_to(count)
        };
    })
}

/// The same with other samples.
pub fn sampled(mut spec: Spec, change: impl FnOnce(&mut Sampling)) -> Spec {
    spec.procedure.sampling_mut().map(change);
    spec
}

pub fn serve(server: &mut AgentLink, spec: &Spec, token: &str) -> SocketAddr {
    let request = Serve {
        spec: spec.clone(),
        bind: HERE.into(),
        token: token.into(),
        peer: Some(HERE.into()),
        flush_neighbour: None,
    };
    server.send(&Request::Serve(request)).unwrap();
    match server.answer("its data port", SOON).unwrap() {
        Answer::Serving { port } => SocketAddr::new(HERE.into(), port),
        other => panic!("{other:?}"),
    }
}

pub fn measure(
    client: &mut AgentLink,
    spec: &Spec,
    peer: SocketAddr,
    token: &str,
) -> Result<Answer, Error> {
    let request = Measure {
        moments: false,
        spec: spec.clone(),
        peer,
        token: token.into(),
        flush_neighbour: None,
        source: None,
        begin_ns: None,
    };
    client.send(&Request::Measure(request)).unwrap();
    client.answer("the measurement", SOON)
}
