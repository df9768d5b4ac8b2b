//! Many flows at once between any hosts of a fleet.
//!
//! Model:   every host of the pattern gets a fresh worker, which stays for all rounds. A round is told to all hosts first and
//!          heard from all afterwards; it begins at a time that each host is told on its own clock. A host that dies is named,
//!          its flows fail, and the others' results are kept. A round in which a host began too late is made once more with
//!          twice the time to get ready, up to three times; what is late then is not valid.
//! Units:   nanoseconds.
//! Checked: `late_flows_are_not_valid`; `tests/lab_pattern.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sonde_lab::Report;
use sonde_measure::{Interference, Knobs};
use sonde_probe::pattern::{Came, Due, Go, Join, Kind, Left, OutgoingFlow, Went, What};
use sonde_probe::{Answer, Request, clock};
use sonde_sys::clock::monotonic_ns;

use super::Fleet;
use crate::agent::Agent;
use crate::error::{FleetError, Result};

/// What an answer may take longer than the host's own waits.
const GRACE: Duration = Duration::from_secs(5);
/// How late a flow may begin beside what the clocks are known to.
const LATE_NS_MAX: u64 = 10_000_000;
/// How often a round is made whose flows begin too late.
const TRIES: u32 = 3;
/// Exchanges for one reading of a clock against the orchestrator's.
const CLOCK_EXCHANGES: u32 = 5;
/// Samples of a launch whose times are told, of all its flows together: 10 MB.
const LOGGED_MAX: u64 = 400_000;

/// A pattern to be measured.
#[derive(Debug, Clone)]
pub struct PatternAsk {
    /// One after the other, each with all its flows at once.
    pub rounds: Vec<Round>,
    /// What is set of the sockets.
    pub knobs: Knobs,
    /// The longest that a connection may take.
    pub timeout: Duration,
}

/// Flows that go at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// From which host to which, counted from 0, and what it does.
    pub flows: Vec<(usize, usize, What)>,
    /// The first part, which does not count.
    pub lead: Duration,
    /// The part that does.
    pub window: Duration,
    /// Ping-pong: from an answer to the next message.
    pub gap: Duration,
    /// Ping-pong, exchange: the most samples of a flow.
    pub samples_max: u64,
}

/// What a pattern gave.
#[derive(Debug, Clone)]
pub struct PatternLaunched {
    /// In the order of the request.
    pub rounds: Vec<RoundOutcome>,
    /// Hosts that did not come to the end, and why.
    pub lost: BTreeMap<usize, String>,
    /// Peers turned away.
    pub refused: u64,
    /// Starts are agreed within this: the worst bound of a clock.
    pub clock_bound_ns: u64,
    /// What an emulated network did meanwhile; none for other networks.
    pub report: Option<Report>,
    /// How long it took.
    pub took: Duration,
}

/// What a round gave.
#[derive(Debug, Clone, Default)]
pub struct RoundOutcome {
    /// In the order of the request.
    pub flows: Vec<FlowOutcome>,
    /// What else each host did.
    pub interference: BTreeMap<usize, Interference>,
    /// CPU time that other programs took on each host meanwhile, of one CPU.
    pub others_share: BTreeMap<usize, f64>,
    /// How often it was made before its flows began in time.
    pub again: u32,
}

/// What a flow gave.
#[derive(Debug, Clone, Default)]
pub struct FlowOutcome {
    /// From which host.
    pub src: usize,
    /// To which.
    pub dst: usize,
    /// What it did.
    pub what: Option<What>,
    /// As its sender saw it.
    pub left: Option<Left>,
    /// As its receiver saw it.
    pub came: Option<Came>,
    /// Why it is not valid.
    pub failure: Option<String>,
}

/// A host while it takes part.
struct Member {
    agent: Agent,
    /// Its data port.
    peer: SocketAddr,
    /// Its clock minus ours.
    offset_ns: i64,
}

/// A pattern under way.
struct Session {
    members: BTreeMap<usize, Member>,
    lost: BTreeMap<usize, String>,
    /// Those that the end took away, to be kept or thrown away.
    dropped: BTreeMap<usize, Agent>,
    bound_ns: u64,
    next_flow: u64,
    /// As in [`Go`].
    log_max: u64,
}

impl PatternAsk {
    /// How many samples each flow may log.
    fn log_max(&self) -> u64 {
        let flows = self.rounds.iter().flat_map(|round| &round.flows);
        let is_asking = |kind: Kind| matches!(kind, Kind::Latency | Kind::LatencyUdp);
        let asking = flows.filter(|(_, _, what)| is_asking(what.kind)).count();
        LOGGED_MAX / (asking as u64).max(1)
    }
}

impl Fleet {
    /// Measures a pattern. Every host that can be used takes part, and what it gave is kept when another fails.
    ///
    /// # Errors
    /// No host takes part, or an emulated network is gone.
    ///
    /// # Panics
    /// A flow is of a host that is not of this fleet, or from a host to itself.
    pub fn pattern(&mut self, ask: &PatternAsk) -> Result<PatternLaunched> {
        let began = Instant::now();
        let flows = ask.rounds.iter().flat_map(|round| &round.flows);
        let hosts: BTreeSet<usize> = flows.flat_map(|(src, dst, _)| [*src, *dst]).collect();
        let count = self.hosts.len();
        assert!(
            hosts.iter().all(|host| *host < count)
                && ask
                    .rounds
                    .iter()
                    .all(|round| round.flows.iter().all(|(src, dst, _)| src != dst)),
            "a flow is of no two hosts of {count}"
        );
        let placement = self.machines.pattern_placement();
        let mut session = Session {
            members: BTreeMap::new(),
            lost: BTreeMap::new(),
            dropped: BTreeMap::new(),
            bound_ns: 0,
            next_flow: 0,
            // Times on several clocks cannot be put together.
            log_max: match self.machines.one_clock() {
                true => ask.log_max(),
                false => 0,
            },
        };
        let mut agents = BTreeMap::new();
        for host in hosts {
            match self.ensure(host, placement) {
                Ok(()) => {}
                Err(error) => {
                    session.lost.insert(host, error.to_string());
                    continue;
                }
            }
            if let Some(agent) = self.agents.0.remove(&(host, placement)) {
                agents.insert(host, agent);
            }
        }
        let begun = self.machines.begin(placement);
        let joined = begun
            .map_err(|error| self.machines_failed(error))
            .and_then(|()| self.open_doors(ask, agents, &mut session));
        let rounds = joined.map(|()| {
            let rounds = ask.rounds.iter();
            rounds
                .map(|round| self.round(ask, round, &mut session))
                .collect::<Vec<_>>()
        });
        let refused = session.stop();
        for (host, agent) in session.rest() {
            self.agents.0.insert((host, placement), agent);
        }
        for host in session.lost.keys().copied().collect::<Vec<_>>() {
            // Where its machine is sure to be there it gets another agent at its next use, else it is lost.
            if let Err(error) = self.ensure(host, placement) {
                session.lost.insert(host, error.to_string());
            }
        }
        let rounds = rounds?;
        let report = self.machines.report();
        let report = report.map_err(|error| self.machines_failed(error))?;
        Ok(PatternLaunched {
            rounds,
            lost: session.lost,
            refused,
            clock_bound_ns: session.bound_ns,
            report,
            took: began.elapsed(),
        })
    }

    /// Asks all hosts again what they are: something may have been changed since.
    ///
    /// # Errors
    /// One does not answer.
    pub fn describe_again(&mut self) -> Result<()> {
        let placement = self.machines.first_placement();
        for host in 0..self.hosts.len() {
            if self.alive(host) {
                self.ensure(host, placement)?;
                self.describe_one(host, placement)?;
            }
        }
        Ok(())
    }

    /// Runs a command in a host of an emulated cluster, as its root, and waits for its end; what it leaves running goes on
    /// until the lab ends.
    ///
    /// # Errors
    /// The hosts are no lab's, or the command fails.
    pub fn prepare(&mut self, host: usize, command: &str) -> Result<()> {
        self.machines.prepare(host, command)
    }

    /// Opens every host's data port and reads its clock.
    fn open_doors(
        &mut self,
        ask: &PatternAsk,
        agents: BTreeMap<usize, Agent>,
        session: &mut Session,
    ) -> Result<()> {
        let token = sonde_probe::token()
            .map_err(|error| FleetError::of_all("make a token", &error, error.remedy()))?;
        let one_clock = self.machines.one_clock();
        let peers: Vec<_> = agents.keys().map(|host| self.address_of(*host)).collect();
        let mut waiting = BTreeMap::new();
        for (host, mut agent) in agents {
            let clock = if one_clock {
                Ok((0, 0))
            } else {
                clock::offset(agent.link(), CLOCK_EXCHANGES)
                    .map(|clock| (clock.offset_ns, clock.bound_ns))
            };
            let request = Request::Join(Join {
                bind: self.address_of(host),
                token: token.clone(),
                peers: peers.clone(),
                knobs: ask.knobs.clone(),
                timeout_ns: nanos(ask.timeout),
            });
            let sent = clock.and_then(|clock| agent.link().send(&request).map(|()| clock));
            match sent {
                Ok(clock) => drop(waiting.insert(host, (agent, clock))),
                Err(error) => session.lose(host, agent, &error.to_string()),
            }
        }
        for (host, (mut agent, (offset_ns, bound_ns))) in waiting {
            match agent.link().answer("its data port", ask.timeout + GRACE) {
                Ok(Answer::Serving { port }) => {
                    session.bound_ns = session.bound_ns.max(bound_ns);
                    session.members.insert(
                        host,
                        Member {
                            agent,
                            peer: SocketAddr::new(self.address_of(host), port),
                            offset_ns,
                        },
                    );
                }
                Ok(_) => session.lose(
                    host,
                    agent,
                    "protocol violation: its answer is not its data port",
                ),
                Err(error) => session.lose(host, agent, &error.to_string()),
            }
        }
        if session.members.is_empty() {
            let why: Vec<&str> = session.lost.values().map(String::as_str).collect();
            return Err(FleetError::of_all(
                "measure a pattern",
                why.join("; "),
                "revive a host",
            ));
        }
        Ok(())
    }

    fn round(&mut self, ask: &PatternAsk, round: &Round, session: &mut Session) -> RoundOutcome {
        let hosts = session.members.len() as u64;
        let mut settle_ns = 30_000_000 + 1_000_000 * (2 * hosts + round.flows.len() as u64);
        let late_max_ns = LATE_NS_MAX + session.bound_ns;
        let mut again = 0;
        loop {
            let (numbers, heard) = session.go(ask, round, settle_ns, late_max_ns);
            let outcome = outcome(round, &numbers, &heard, session, late_max_ns);
            again += 1;
            let late = |flow: &FlowOutcome| {
                let left = flow.left.as_ref();
                left.is_some_and(|left| left.not_admitted || left.late_ns > late_max_ns)
            };
            if again >= TRIES || !outcome.flows.iter().any(late) {
                return RoundOutcome {
                    again: again - 1,
                    ..outcome
                };
            }
            settle_ns *= 2;
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Session {
    fn lose(&mut self, host: usize, agent: Agent, why: &str) {
        self.lost.insert(host, why.to_owned());
        self.dropped.insert(host, agent);
    }

    /// Tells a round to all and hears from all: the flows' numbers, and what each host saw.
    fn go(
        &mut self,
        ask: &PatternAsk,
        round: &Round,
        settle_ns: u64,
        late_max_ns: u64,
    ) -> (Vec<u64>, BTreeMap<usize, Went>) {
        let first = self.next_flow;
        let numbers: Vec<u64> = (first..).take(round.flows.len()).collect();
        self.next_flow += numbers.len() as u64;
        let mut parts: BTreeMap<usize, (Vec<OutgoingFlow>, Vec<Due>)> = BTreeMap::new();
        for ((src, dst, what), flow) in round.flows.iter().zip(&numbers) {
            let (Some(_), Some(to)) = (self.members.get(src), self.members.get(dst)) else {
                continue;
            };
            let way = OutgoingFlow {
                flow: *flow,
                peer: to.peer,
                what: *what,
            };
            parts.entry(*src).or_default().0.push(way);
            parts.entry(*dst).or_default().1.push(Due {
                flow: *flow,
                what: *what,
            });
        }
        let start_ns = monotonic_ns() + settle_ns;
        let mut asked = Vec::new();
        for (host, (leaving, coming)) in parts {
            let Some(member) = self.members.get_mut(&host) else {
                continue;
            };
            let request = Request::Go(Go {
                start_ns: start_ns.saturating_add_signed(member.offset_ns),
                lead_ns: nanos(round.lead),
                window_ns: nanos(round.window),
                late_max_ns,
                gap_ns: nanos(round.gap),
                samples_max: round.samples_max,
                log_max: self.log_max,
                leaving,
                coming,
            });
            match member.agent.link().send(&request) {
                Ok(()) => asked.push(host),
                Err(error) => self.part(host, &error.to_string()),
            }
        }
        let timeout =
            Duration::from_nanos(settle_ns) + round.lead + 3 * round.window + ask.timeout + GRACE;
        let mut heard = BTreeMap::new();
        for host in asked {
            let Some(member) = self.members.get_mut(&host) else {
                continue;
            };
            match member.agent.link().answer("its flows", timeout) {
                Ok(Answer::Went(went)) => drop(heard.insert(host, went)),
                Ok(_) => self.part(host, "protocol violation: its answer is not its flows"),
                Err(error) => self.part(host, &error.to_string()),
            }
        }
        (numbers, heard)
    }

    fn part(&mut self, host: usize, why: &str) {
        if let Some(member) = self.members.remove(&host) {
            self.lose(host, member.agent, why);
        }
    }

    /// Ends all workers; how many peers they turned away.
    fn stop(&mut self) -> u64 {
        let mut failed = Vec::new();
        let mut refused = 0;
        for (host, member) in &mut self.members {
            if let Err(error) = member.agent.link().send(&Request::Stop {}) {
                failed.push((*host, error.to_string()));
            }
        }
        for (host, member) in &mut self.members {
            if failed.iter().any(|(one, _)| one == host) {
                continue;
            }
            match member.agent.link().answer("the end of its flows", GRACE) {
                Ok(Answer::Left { refused: more }) => refused += more,
                Ok(_) => failed.push((*host, "it did not end its flows".into())),
                Err(error) => failed.push((*host, error.to_string())),
            }
        }
        for (host, why) in failed {
            self.part(host, &why);
        }
        refused
    }

    /// The agents, to be used again where they can.
    fn rest(&mut self) -> Vec<(usize, Agent)> {
        let members = std::mem::take(&mut self.members);
        let members = members
            .into_iter()
            .map(|(host, member)| (host, member.agent));
        let dropped = std::mem::take(&mut self.dropped);
        members.chain(dropped).collect()
    }
}

/// Joins what both ends of each flow said.
fn outcome(
    round: &Round,
    numbers: &[u64],
    heard: &BTreeMap<usize, Went>,
    session: &Session,
    late_max_ns: u64,
) -> RoundOutcome {
    let flows = round.flows.iter().zip(numbers);
    let join = |((src, dst, what), number): (&(usize, usize, What), &u64)| {
        let left = heard.get(src).and_then(|went| {
            let one = went.left.iter().find(|one| one.flow == *number);
            one.cloned()
        });
        let came = heard.get(dst).and_then(|went| {
            let one = went.came.iter().find(|one| one.flow == *number);
            one.cloned()
        });
        let lost = [src, dst].into_iter().find_map(|host| {
            let why = session.lost.get(host)?;
            Some(format!("host {}: {why}", host + 1))
        });
        let failure = lost.or_else(|| invalid(left.as_ref(), came.as_ref(), late_max_ns));
        FlowOutcome {
            src: *src,
            dst: *dst,
            what: Some(*what),
            left,
            came,
            failure,
        }
    };
    let share = |went: &Went| {
        let span_ns = went.interference.span_ns.max(1);
        went.others_cpu_ns.map(|ns| ns as f64 / span_ns as f64)
    };
    RoundOutcome {
        flows: flows.map(join).collect(),
        interference: heard
            .iter()
            .map(|(host, went)| (*host, went.interference.clone()))
            .collect(),
        others_share: heard
            .iter()
            .filter_map(|(host, went)| Some((*host, share(went)?)))
            .collect(),
        again: 0,
    }
}

/// Why a flow is not valid, by what its ends say.
fn invalid(left: Option<&Left>, came: Option<&Came>, late_max_ns: u64) -> Option<String> {
    let (Some(left), Some(came)) = (left, came) else {
        return Some("one of its ends did not report it".into());
    };
    if let Some(why) = left.failure.as_ref().or(came.failure.as_ref()) {
        return Some(why.clone());
    }
    (left.late_ns > late_max_ns).then(|| {
        format!(
            "it began {:.1} ms after the agreed start, more than {:.1} ms are not valid: the host is too busy",
            left.late_ns as f64 / 1e6,
            late_max_ns as f64 / 1e6
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_flows_are_not_valid() {
        let left = Left {
            late_ns: 12_000_000,
            ..Left::default()
        };
        let came = Came::default();
        let late = invalid(Some(&left), Some(&came), LATE_NS_MAX).unwrap();
        assert!(late.contains("12.0 ms after"), "{late}");
        assert_eq!(invalid(Some(&left), Some(&came), 13_000_000), None);
        assert!(
            invalid(None, Some(&came), 0)
                .unwrap()
                .contains("did not report")
        );
        let failed = Came {
            failure: Some("reset".into()),
            ..Came::default()
        };
        assert_eq!(
            invalid(Some(&left), Some(&failed), LATE_NS_MAX).as_deref(),
            Some("reset")
        );
    }
}
