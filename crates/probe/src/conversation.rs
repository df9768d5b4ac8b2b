//! One conversation between two agents, driven to its end.
//!
//! Model:   serve, wait for the port, measure, wait for the measurement, then for the serving side's report. When the
//!          measuring side fails the serving side is told to stop, and both stories are in the error.
//! Checked: `tests/conversation.rs`.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sonde_channel::Path;

use crate::{
    AgentLink, Answer, Error, Figures, Measure, Measured, Request, Result, Serve, Served, Terms,
};

/// What an answer may take longer than the agent's own waits.
const GRACE: Duration = Duration::from_secs(2);

/// What is to be measured between two agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// What both sides agree on.
    pub terms: Terms,
    /// The serving side's address on the network that is measured.
    pub server: IpAddr,
    /// What the peer must know.
    pub token: String,
    /// The measuring side's interface whose neighbours are forgotten before every start-up.
    pub flush_client: Option<String>,
    /// The serving side's, before the port opens.
    pub flush_server: Option<String>,
}

/// What both sides saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The measuring side.
    pub measured: Measured,
    /// The serving side.
    pub served: Served,
}

impl Conversation {
    /// A conversation with a fresh token.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn new(terms: Terms, server: IpAddr) -> Result<Self> {
        let mut random = [0; 16];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut random))
            .map_err(|source| Error::Control {
                what: "read /dev/urandom for a token".into(),
                source,
            })?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            terms,
            server,
            token,
            flush_client: None,
            flush_server: None,
        })
    }

    /// Has it: `client` measures, `server` serves.
    ///
    /// # Errors
    /// Either side fails or is gone; what was received is not what was sent. Links stay usable unless they say
    /// otherwise ([`AgentLink::in_step`]).
    pub fn run(&self, client: &mut AgentLink, server: &mut AgentLink) -> Result<Outcome> {
        self.terms.check()?;
        let patience = self.terms.patience() + GRACE;
        server.send(&Request::Serve(Serve {
            terms: self.terms.clone(),
            bind: self.server,
            token: self.token.clone(),
            flush_neighbour: self.flush_server.clone(),
        }))?;
        let port = match server.answer("its data port", patience)? {
            Answer::Serving { port } => port,
            other => return Err(out_of_turn(server, "its data port", &other)),
        };
        let measured = self
            .measure(client, port)
            .map_err(|error| self.abandon(server, error))?;
        let served = match server.answer("its report", patience)? {
            Answer::Served(served) => served,
            other => return Err(out_of_turn(server, "its report", &other)),
        };
        let outcome = Outcome { measured, served };
        self.compare(&outcome)?;
        Ok(outcome)
    }

    fn measure(&self, client: &mut AgentLink, port: u16) -> Result<Measured> {
        client.send(&Request::Measure(Measure {
            terms: self.terms.clone(),
            peer: SocketAddr::new(self.server, port),
            token: self.token.clone(),
            flush_neighbour: self.flush_client.clone(),
        }))?;
        match client.answer("the measurement", self.terms.duration_max() + GRACE)? {
            Answer::Measured(measured) => Ok(measured),
            other => Err(out_of_turn(client, "the measurement", &other)),
        }
    }

    /// Ends the serving side's part after the measuring side failed, and joins the two stories.
    fn abandon(&self, server: &mut AgentLink, error: Error) -> Error {
        let stopped = server.send(&Request::Stop {});
        let story =
            stopped.and_then(|()| server.answer("its report", 2 * self.terms.patience() + GRACE));
        let other = match story {
            Ok(_) => return error,
            Err(Error::Agent { what, .. }) if what == Error::Abandoned.to_string() => return error,
            Err(other) => other,
        };
        match error {
            Error::Agent {
                agent,
                what,
                remedy,
            } => Error::Agent {
                agent,
                what: format!("{what}; {other}"),
                remedy,
            },
            gone => Error::Agent {
                agent: server.name().into(),
                what: format!("{gone}; {other}"),
                remedy: gone.remedy(),
            },
        }
    }

    /// Whether what was received is what was sent.
    fn compare(&self, outcome: &Outcome) -> Result<()> {
        let served = &outcome.served;
        let (what, sent, received) = match (&outcome.measured.figures, self.terms.path) {
            (Figures::Throughput(sent), Path::Tcp) => ("bytes", sent.bytes, served.bytes),
            (Figures::Throughput(sent), Path::Udp) => (
                "datagrams",
                sent.messages,
                served.messages + served.lost.unwrap_or(0),
            ),
            (Figures::Latency(latency), Path::Tcp) => (
                "round trips",
                latency.warmup_discarded + latency.rtt_ns.count,
                served.messages,
            ),
            _ => return Ok(()),
        };
        if sent != received {
            return Err(Error::Integrity(format!(
                "{sent} {what} were sent and {received} accounted for"
            )));
        }
        Ok(())
    }
}

fn out_of_turn(link: &AgentLink, awaited: &'static str, found: &Answer) -> Error {
    let kind = match found {
        Answer::Serving { .. } => "a data port",
        Answer::Served(_) => "a report",
        Answer::Measured(_) => "a measurement",
        Answer::Failed { .. } => "a failure",
    };
    Error::OutOfTurn {
        agent: link.name().into(),
        awaited,
        found: kind.into(),
    }
}
