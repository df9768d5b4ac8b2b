//! A lab with agents in it: one conversation at a time between two hosts, and what the emulation did meanwhile.
//!
//! Model:   a launch is a fresh pair of agents, as the lab's root, so that they may make a neighbour unknown. Latency is
//!          measured with switch and agents on one CPU, so that no wake-up crosses CPUs; streams with the switch on its own.

use crate::failure::Failure;
use crate::networks;
use crate::testbed::LabOptions;
use sonde_lab::{Config, CpuPlan, Exec, Lab, Report, Session, VcRequest};
use sonde_link::Signalling;
use sonde_probe::{AgentLink, Conversation, Outcome, Probe, Terms};
use sonde_record::{Backpressure, Verdict, VerdictStatus};
use sonde_units::{Bytes, Span};
use std::ffi::OsString;
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// An agent greets within this, or it will not.
const GREETING: Duration = Duration::from_secs(10);
/// Where the command itself is found in each host.
const COMMAND_INSIDE: &str = "/run/sonde/bin/sonde";
const INTERFACE: &str = "eth0";

/// A lab to measure in.
pub struct Bench {
    lab: Lab,
    config: Config,
    latency_cpus: CpuPlan,
    stream_cpus: CpuPlan,
}

/// A running agent.
struct Agent {
    link: AgentLink,
    socket: UnixStream,
    session: Session,
}

impl Bench {
    /// Starts the lab that `options` describe.
    pub fn start(options: &LabOptions) -> Result<Self, Failure> {
        let online = sonde_sys::cpu::online()?;
        let plan = |name| CpuPlan::named(name, &online).map_err(Failure::cannot);
        let (lab, config) = options.start()?;
        Ok(Self {
            lab,
            config,
            latency_cpus: plan("one")?,
            stream_cpus: plan("split")?,
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it is.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// How senders are held back.
    pub fn backpressure(&self) -> Backpressure {
        if self.lab.info().backpressure == "gate" {
            Backpressure::Gate
        } else {
            Backpressure::None
        }
    }

    /// One launch: `terms` between `client` and `server` (from 1), and what the switch did from its begin to its end.
    pub fn launch(
        &self,
        terms: Terms,
        client: u16,
        server: u16,
    ) -> Result<(Outcome, Report), Failure> {
        let cold = terms.probe == Probe::Startup;
        let cpus = if terms.probe == Probe::Throughput {
            &self.stream_cpus
        } else {
            &self.latency_cpus
        };
        self.lab.pin_switch(&cpus.switch)?;
        if cold
            && self
                .config
                .network
                .circuits
                .is_some_and(|circuits| circuits.signalling == Signalling::Svc)
        {
            self.lab
                .circuit(VcRequest::Release(client - 1, server - 1))?;
        }
        let mut measuring = self.agent(client, &cpus.hosts)?;
        let mut serving = self.agent(server, &cpus.hosts)?;
        let address = IpAddr::V4(sonde_lab::address(sonde_link::Port(server - 1)));
        let mut conversation = Conversation::new(terms, address).map_err(Failure::cannot)?;
        if cold {
            conversation.flush_client = Some(INTERFACE.into());
            conversation.flush_server = Some(INTERFACE.into());
        }
        self.lab.mark()?;
        let outcome = conversation.run(&mut measuring.link, &mut serving.link);
        let report = self.lab.report()?;
        measuring.end()?;
        serving.end()?;
        Ok((outcome.map_err(Failure::cannot)?, report))
    }

    fn agent(&self, host: u16, cpus: &[usize]) -> Result<Agent, Failure> {
        let socket = |e: std::io::Error| {
            Failure::cannot(format!("cannot make a socket to the agent on h{host}: {e}"))
        };
        let (mine, theirs) = UnixStream::pair().map_err(socket)?;
        let exec = Exec {
            argv: [COMMAND_INSIDE, "agent"].map(OsString::from).to_vec(),
            environment: Vec::new(),
            directory: PathBuf::from("/"),
            root: true,
            detached: false,
            terminal: None,
            cpus: cpus.to_vec(),
        };
        let (session, _) = self.lab.exec(
            host,
            &exec,
            [theirs.as_fd(), theirs.as_fd(), std::io::stderr().as_fd()],
        )?;
        drop(theirs);
        let (from, to) = (
            mine.try_clone().map_err(socket)?,
            mine.try_clone().map_err(socket)?,
        );
        let link = AgentLink::open(format!("the agent on h{host}"), from, to, GREETING)
            .map_err(Failure::cannot)?;
        Ok(Agent {
            link,
            socket: mine,
            session,
        })
    }

    /// The model's one-way time of a message of `size` user bytes by this path, if it is one frame.
    pub fn model_one_way(&self, path: sonde_channel::Path, size: u64) -> Result<Span, Failure> {
        let one = match path {
            sonde_channel::Path::Tcp => networks::tcp_1b(self.config.profile),
            sonde_channel::Path::Udp => networks::UDP_1B,
        };
        networks::one_way(&self.config.network, one + Bytes(size - 1))
    }

    /// Ends the lab.
    pub fn stop(self) -> Result<(), Failure> {
        self.lab.stop().map_err(Failure::from)
    }
}

impl Agent {
    /// The end of its input is the end of an agent.
    fn end(self) -> Result<(), Failure> {
        drop(self.link);
        self.socket
            .shutdown(Shutdown::Both)
            .map_err(|e| Failure::cannot(format!("cannot end an agent: {e}")))?;
        self.session.wait()?;
        Ok(())
    }
}

/// Adds the counts of one launch to those of others; of quantiles the worst stays.
pub fn merge(all: &mut Report, one: &Report) {
    all.span_ns += one.span_ns;
    all.taken += one.taken;
    all.blocked += one.blocked;
    all.deliveries += one.deliveries;
    all.late += one.late;
    all.lateness_ns_p50 = all.lateness_ns_p50.max(one.lateness_ns_p50);
    all.lateness_ns_p99 = all.lateness_ns_p99.max(one.lateness_ns_p99);
    all.lateness_ns_max = all.lateness_ns_max.max(one.lateness_ns_max);
    all.attachment.interface_tx += one.attachment.interface_tx;
    all.attachment.interface_rx += one.attachment.interface_rx;
    all.attachment.gate += one.attachment.gate;
    all.attachment.socket += one.attachment.socket;
    all.attachment.handover += one.attachment.handover;
    all.cpu_ns += one.cpu_ns;
    all.circuit_setups += one.circuit_setups;
}

/// The verdict of a report, as it is recorded; `one_way` is the model's time of the cell's message.
pub fn verdict(report: &Report, one_way: Span) -> Verdict {
    let reasons = report.failures();
    Verdict {
        status: if reasons.is_empty() {
            VerdictStatus::Passed
        } else {
            VerdictStatus::Failed
        },
        deliveries: report.deliveries,
        late: report.late,
        late_share: (report.deliveries > 0).then(|| report.late as f64 / report.deliveries as f64),
        bound_ns: Verdict::bound_ns(one_way.as_nanos()),
        lateness_p50_ns: report.lateness_ns_p50,
        lateness_p99_ns: report.lateness_ns_p99,
        lateness_max_ns: report.lateness_ns_max,
        attachment_losses: report.attachment.total(),
        reasons,
    }
}
