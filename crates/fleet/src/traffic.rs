//! A load between hosts of a fleet, made by agents of its own beside those that measure.
//!
//! Model:   one more agent on each host that takes part, so that the load runs while the others measure. All sinks are open
//!          before any flow begins; at the end all senders stop before any sink does. The share of a link is frames times
//!          their time on the line, by the sender's time; what was planned, sent and received stand apart.
//! Units:   shares of the link of each flow, with all that Ethernet adds to a datagram counted.
//! Checked: `shares_and_limits`; `sonde/tests/lab_nets.rs`.

use sonde_measure::{Fixed, LoadFlow as FlowEvidence, LoadLimit};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use sonde_link::Law;
use sonde_probe::load::{Load as Order, LoadCounts, LoadFlow, Promised, Steer, wire_bytes};
use sonde_probe::{Answer, Interfaces, Request};
use sonde_units::Ratio;

use crate::error::{FleetError, Result};
use crate::fleet::Fleet;
use crate::networks::{self, Carried};
use crate::placement::Placement;

/// An agent answers within this, a flow that waits for its last batch included.
const TIMEOUT: Duration = Duration::from_secs(20);
/// What was sent last has come after this.
const DRAIN: Duration = Duration::from_millis(150);
/// The part of what was planned below which a load is not what was wanted.
const REACHED: f64 = 0.95;
/// The part of the time without room from which the way is the limit, not the CPU.
const BLOCKED: f64 = 0.05;

/// A flow to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The sending host.
    pub src: usize,
    /// The receiving host.
    pub dst: usize,
    /// The share of the link, above 0 and at most 1.
    pub rho: Ratio,
    /// How its datagrams follow each other.
    pub law: Law,
    /// User bytes of each.
    pub size_bytes: u64,
    /// The link's rate.
    pub of_bps: u64,
    /// Largest IP packet: what is longer goes in fragments.
    pub mtu_bytes: u64,
}

impl Stream {
    /// The same at this rate of user data in place of a share; none where its link does not carry that.
    pub fn at_rate(self, user_bps: u64) -> Option<Self> {
        // By IPv6 it would be 20 bytes more for each packet, which no share tells apart.
        let wire = wire_bytes(self.size_bytes, self.mtu_bytes, false);
        let rho = Ratio::new(
            wire.checked_mul(user_bps)?,
            self.size_bytes.checked_mul(self.of_bps)?.max(1),
        );
        (rho <= Ratio::ONE && !rho.is_zero()).then_some(Self { rho, ..self })
    }

    /// The time of one datagram on the link.
    fn unit_ps(&self, is_v6: bool) -> u64 {
        let bits = wire_bytes(self.size_bytes, self.mtu_bytes, is_v6) * 8;
        let ps = u128::from(bits) * 1_000_000_000_000 / u128::from(self.of_bps.max(1));
        u64::try_from(ps).unwrap_or(u64::MAX).max(1)
    }
}

/// A load that runs.
#[derive(Debug)]
pub struct Traffic {
    streams: Vec<Stream>,
    units_ps: Vec<u64>,
    hosts: BTreeSet<usize>,
    before: BTreeMap<usize, Interfaces>,
    network: Option<usize>,
}

/// What a flow did.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamReport {
    /// The flow.
    pub stream: Stream,
    /// How long it has been sending.
    pub span: Duration,
    /// Datagrams whose time came.
    pub planned: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received, each once.
    pub received: u64,
    /// The share of the link that was planned: the level, but for the law's chance.
    pub planned_share: f64,
    /// The share that was sent.
    pub sent_share: f64,
    /// The share that was received.
    pub received_share: f64,
    /// What held it below what was planned, in words.
    pub limit: Option<LoadLimit>,
    /// The sending thread's part of a CPU; all flows of a host share it.
    pub cpu_share: f64,
}

impl StreamReport {
    fn of(stream: &Stream, unit_ps: u64, number: u32, from: &LoadCounts, to: &LoadCounts) -> Self {
        let sent = from.sent.iter().find(|one| one.number == number).cloned();
        let sent = sent.unwrap_or_default();
        let received = to.received.iter().find(|one| one.number == number);
        let received = received.map_or(0, |one| one.received);
        let span_ns = sent.span_ns.max(1) as f64;
        let share = |count: u64| count as f64 * unit_ps as f64 / 1_000.0 / span_ns;
        let enough = sent.sent as f64 >= REACHED * sent.planned as f64;
        let blocked = sent.blocked_ns as f64 / span_ns;
        let limit = match (&sent.trouble, enough) {
            (Some(trouble), _) => Some(LoadLimit::Failed(trouble.as_str().into())),
            (None, true) => None,
            (None, false) if blocked > BLOCKED => Fixed::of(blocked * 100.0).map(LoadLimit::NoRoom),
            (None, false) => Fixed::of(sent.lag_ns as f64 / 1e6).map(LoadLimit::SenderCpu),
        };
        Self {
            stream: *stream,
            span: Duration::from_nanos(sent.span_ns),
            planned: sent.planned,
            sent: sent.sent,
            received,
            planned_share: share(sent.planned),
            sent_share: share(sent.sent),
            received_share: share(received),
            limit,
            cpu_share: from.send_cpu_ns as f64 / span_ns,
        }
    }

    /// What a launch keeps of it.
    pub fn evidence(&self) -> FlowEvidence {
        let (part, of) = self.stream.rho.parts();
        FlowEvidence {
            wanted: Fixed::of(part as f64 / of as f64),
            planned: Fixed::of(self.planned_share),
            sent: Fixed::of(self.sent_share),
            achieved: Fixed::of(self.received_share),
            sender_cpu_share: Fixed::of(self.cpu_share),
            limit: self.limit.clone(),
        }
    }

    /// Whether at least 95 % of what was planned came.
    pub fn is_reached(&self) -> bool {
        self.planned > 0 && self.received as f64 >= REACHED * self.planned as f64
    }
}

/// A load as it is, or was.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficReport {
    /// Its flows, in their order.
    pub streams: Vec<StreamReport>,
    /// Datagrams that the sinks turned away: without the token, of no flow.
    pub refused: u64,
    /// At its end: where datagrams were lost, as the hosts' counters have it, and bytes that took another way; in words.
    pub remarks: Vec<String>,
}

impl Fleet {
    /// Begins a load, which ends after `lasts`, or without a word for `lease`.
    ///
    /// # Errors
    /// A host takes no agent, or its agent refuses; nothing runs then.
    ///
    /// # Panics
    /// A host is not of this fleet.
    pub fn begin_load(
        &mut self,
        streams: &[Stream],
        lasts: Duration,
        lease: Duration,
        seed: u64,
    ) -> Result<Traffic> {
        let hosts: BTreeSet<usize> = streams.iter().flat_map(|one| [one.src, one.dst]).collect();
        if let Some(lost) = hosts.iter().copied().find(|host| !self.alive(*host)) {
            let why = self.loss(lost).unwrap_or("it is gone").to_owned();
            let name = &self.hosts()[lost].name;
            return Err(FleetError::at(
                name,
                "make a load",
                why,
                "let the load go between other hosts",
            ));
        }
        let is_v6 = |host: usize| self.address_of(host).is_ipv6();
        let units_ps = streams.iter().map(|one| one.unit_ps(is_v6(one.dst)));
        let mut traffic = Traffic {
            streams: streams.to_vec(),
            units_ps: units_ps.collect(),
            hosts,
            before: BTreeMap::new(),
            network: self.network(),
        };
        let begun = self.begin_streams(&mut traffic, lasts, lease, seed);
        begun
            .inspect_err(|_| self.drop_load(&traffic))
            .map(|()| traffic)
    }

    fn begin_streams(
        &mut self,
        traffic: &mut Traffic,
        lasts: Duration,
        lease: Duration,
        seed: u64,
    ) -> Result<()> {
        let token = self.token()?;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut sinks: BTreeMap<usize, SocketAddr> = BTreeMap::new();
        for host in traffic.hosts.clone() {
            self.ensure(host, Placement::Load)?;
            if let Ok(state) = self.interfaces(host, Placement::Load) {
                traffic.before.insert(host, state);
            }
            let promised = traffic.streams.iter().zip(0..);
            let promised =
                promised
                    .filter(|(stream, _)| stream.dst == host)
                    .map(|(stream, number)| Promised {
                        number,
                        size_bytes: stream.size_bytes as u32,
                    });
            let order = Order {
                token: token.clone(),
                bind: self.address_of(host),
                sinks: promised.collect(),
                lease_ns: nanos(lease),
            };
            let request = Request::Load(order);
            match self.ask_load(host, &request)? {
                Answer::Serving { port } => {
                    sinks.insert(host, SocketAddr::new(self.address_of(host), port));
                }
                other => return Err(self.strange(host, &other)),
            }
        }
        for host in traffic.hosts.clone() {
            let all = traffic.streams.iter().zip(&traffic.units_ps).zip(0..);
            let flows = all.filter(|((stream, _), _)| stream.src == host).map(
                |((stream, unit_ps), number)| LoadFlow {
                    number,
                    to: sinks[&stream.dst],
                    size_bytes: stream.size_bytes as u32,
                    law: stream.law.to_string(),
                    rho: stream.rho.parts(),
                    unit_ps: *unit_ps,
                    seed: seed.wrapping_add(u64::from(number)),
                    lasts_ns: nanos(lasts),
                },
            );
            let flows: Vec<LoadFlow> = flows.collect();
            if !flows.is_empty() {
                self.steer(host, Steer::Begin { flows })?;
            }
        }
        Ok(())
    }

    /// How far a load is.
    ///
    /// # Errors
    /// An agent is gone or answers nothing.
    pub fn tell_load(&mut self, traffic: &Traffic) -> Result<TrafficReport> {
        let mut counts = BTreeMap::new();
        for host in &traffic.hosts {
            counts.insert(*host, self.steer(*host, Steer::Tell {})?);
        }
        Ok(report(traffic, &counts))
    }

    /// Ends a load: the senders, then the sinks.
    ///
    /// # Errors
    /// An agent is gone or answers nothing; the others are ended all the same.
    pub fn end_load(&mut self, traffic: &Traffic) -> Result<TrafficReport> {
        let ended = self.end_streams(traffic);
        if ended.is_err() {
            self.drop_load(traffic);
        }
        let counts = ended?;
        let mut report = report(traffic, &counts);
        report.remarks = self.remarks(traffic, &report);
        Ok(report)
    }

    fn end_streams(&mut self, traffic: &Traffic) -> Result<BTreeMap<usize, LoadCounts>> {
        for host in &traffic.hosts {
            self.steer(*host, Steer::Halt {})?;
        }
        std::thread::sleep(DRAIN);
        let mut counts = BTreeMap::new();
        for host in &traffic.hosts {
            counts.insert(*host, self.steer(*host, Steer::End {})?);
        }
        Ok(counts)
    }

    /// Where it was lost, and whether it went where it should.
    fn remarks(&mut self, traffic: &Traffic, report: &TrafficReport) -> Vec<String> {
        let mut remarks = Vec::new();
        for (host, before) in &traffic.before {
            let Ok(after) = self.interfaces(*host, Placement::Load) else {
                continue;
            };
            let name = self.hosts()[*host].name.clone();
            let carried = Carried::between(before, &after);
            let lost = carried.losses().into_iter();
            remarks.extend(lost.map(|(place, count)| format!("{name}: {place} {count}")));
            let bytes = |of: fn(&StreamReport) -> u64, at: fn(&Stream) -> usize| {
                let own = report.streams.iter().filter(|one| at(&one.stream) == *host);
                own.map(|one| of(one) * one.stream.size_bytes).sum()
            };
            let must = networks::Passed {
                // What was lost may have been lost before the interface.
                out: bytes(|one| one.received, |stream| stream.src),
                into: bytes(|one| one.received, |stream| stream.dst),
            };
            let Some(end) = traffic.network.and_then(|way| self.end_of(way, *host)) else {
                continue;
            };
            if let Err(evidence) = networks::judge(&name, &end.interface, must, &carried) {
                remarks.push(format!(
                    "the load took another path than it should: {evidence}; {}",
                    networks::WAYS
                ));
            }
        }
        remarks
    }

    fn steer(&mut self, host: usize, steer: Steer) -> Result<LoadCounts> {
        match self.ask_load(host, &Request::Steer(steer))? {
            Answer::Loading(counts) | Answer::Loaded(counts) => Ok(counts),
            other => Err(self.strange(host, &other)),
        }
    }

    fn ask_load(&mut self, host: usize, request: &Request) -> Result<Answer> {
        let asked = self.ask(
            host,
            Placement::Load,
            request,
            "what the load does",
            TIMEOUT,
        );
        asked.map_err(|error| {
            let name = &self.hosts()[host].name;
            FleetError::at(name, "make a load", &error, error.remedy())
        })
    }

    fn strange(&self, host: usize, answer: &Answer) -> FleetError {
        FleetError::at(
            &self.hosts()[host].name,
            "make a load",
            format!("its agent answered {answer:?}"),
            "use the same version of sonde on all hosts",
        )
    }

    /// Ends the agents of a load that went wrong, and with them their workers.
    fn drop_load(&mut self, traffic: &Traffic) {
        self.end_agents(&traffic.hosts, Placement::Load);
    }
}

fn report(traffic: &Traffic, counts: &BTreeMap<usize, LoadCounts>) -> TrafficReport {
    let all = traffic.streams.iter().zip(&traffic.units_ps).zip(0..);
    let streams = all.map(|((stream, unit_ps), number)| {
        StreamReport::of(
            stream,
            *unit_ps,
            number,
            &counts[&stream.src],
            &counts[&stream.dst],
        )
    });
    TrafficReport {
        streams: streams.collect(),
        refused: counts.values().map(|one| one.refused).sum(),
        remarks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_probe::load::{ReceivedFlow, SentFlow};

    fn told(sent: u64, received: u64, blocked_ns: u64) -> StreamReport {
        let stream = Stream {
            src: 0,
            dst: 1,
            rho: Ratio::new(3, 5),
            law: Law::Poisson,
            size_bytes: 1_472,
            of_bps: 1_000_000_000,
            mtu_bytes: 1_500,
        };
        let from = LoadCounts {
            sent: vec![SentFlow {
                number: 4,
                span_ns: 1_000_000_000,
                planned: 48_765,
                sent,
                blocked_ns,
                lag_ns: 7_000_000,
                ..SentFlow::default()
            }],
            ..LoadCounts::default()
        };
        let to = LoadCounts {
            received: vec![ReceivedFlow {
                number: 4,
                received,
                again: 0,
            }],
            ..LoadCounts::default()
        };
        StreamReport::of(&stream, stream.unit_ps(false), 4, &from, &to)
    }

    #[test]
    fn shares_and_limits() {
        // 1,538 bytes at 1 Gb/s are 12.304 us; 0.6 of a second is 48,765 of them.
        let whole = told(48_765, 48_765, 0);
        assert!((whole.sent_share - 0.6).abs() < 1e-4 && whole.is_reached());
        assert_eq!(whole.limit, None);
        let lost = told(48_765, 40_000, 0);
        assert!(!lost.is_reached() && lost.limit.is_none());
        assert!((lost.received_share - 0.4922).abs() < 1e-3);
        let slow = told(30_000, 30_000, 0).limit.unwrap();
        assert_eq!(slow, LoadLimit::SenderCpu(Fixed(70)));
        let full = told(30_000, 30_000, 400_000_000).limit.unwrap();
        assert_eq!(full, LoadLimit::NoRoom(Fixed(40)));
    }
}
