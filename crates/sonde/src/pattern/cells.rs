//! A pattern's cells and the records of its launches.
//!
//! Model:   the factors of a flow's cell are its pair of hosts and, as knobs, pattern, flow, what was swept and how long; those of
//!          `flow=all` are all hosts. What the kernel and the hosts said of a flow stands in the settings of its record.
//! Checked: `rates_add_up`.

use crate::campaign::seen;
use crate::failure::Failure;
use crate::flows::{RoundRequest, path};
use crate::layout::{Block, TestNetwork};
use sonde_fleet::{FlowOutcome, PatternLaunched, RoundOutcome};
use sonde_lab::Report;
use sonde_measure::{
    Away, CellRecord, CellResult, Evidence, Factors, Fixed, Interference, LaunchRecord, Layer,
    Measurement, Phase, Quantity,
};
use sonde_probe::Seen;
use sonde_probe::pattern::Kind;
use sonde_stats::Series;
use std::collections::{BTreeMap, BTreeSet};

/// What the cells of a pattern's block have in common.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    /// Where.
    pub net: &'a TestNetwork,
    /// The block, whose knobs they have.
    pub block: &'a Block,
}

impl Cells<'_> {
    /// All cells of these rounds, each once, in their order.
    ///
    /// # Errors
    /// One cannot be named.
    pub fn of(self, rounds: &[RoundRequest]) -> Result<Vec<CellRecord>, Failure> {
        let (mut all, mut known) = (Vec::new(), BTreeSet::new());
        for asked in rounds {
            let flows = asked.round.flows.iter();
            let flows =
                flows.map(|(src, dst, what)| (what.kind, what.size_bytes, Some((*src, *dst))));
            let together: BTreeMap<Kind, u64> = (asked.round.flows.iter().rev())
                .filter(|(_, _, what)| asked.has_sum(what.kind))
                .map(|(_, _, what)| (what.kind, what.size_bytes))
                .collect();
            let sums = together.into_iter().map(|(kind, size)| (kind, size, None));
            for (kind, size_bytes, flow) in flows.chain(sums) {
                let factors = self.factors(asked, kind, size_bytes, flow);
                let id = factors.cell().map_err(Failure::cannot)?;
                if known.insert(id.clone()) {
                    all.push(CellRecord {
                        id,
                        factors,
                        launches: self.block.launches,
                        skipped: None,
                    });
                }
            }
        }
        Ok(all)
    }

    /// What makes the cell of a flow between two hosts, or of all flows of a kind together.
    fn factors(
        self,
        asked: &RoundRequest,
        kind: Kind,
        size_bytes: u64,
        flow: Option<(usize, usize)>,
    ) -> Factors {
        let net = self.net;
        let canary = kind != Kind::Stream && asked.pattern == "incast";
        let name = |host: usize| net.hosts[host].clone();
        let mut knobs = self.block.knobs.clone();
        knobs.insert("pattern".into(), asked.pattern.clone());
        knobs.insert("hosts".into(), net.hosts.len().to_string());
        knobs.insert(
            "window_ms".into(),
            asked.round.window.as_millis().to_string(),
        );
        if let Some(senders) = asked.senders {
            knobs.insert("senders".into(), senders.to_string());
        }
        if let Some(stage) = asked.stage.name() {
            knobs.insert("stage".into(), stage.into());
        }
        let (flow, hosts) = match flow {
            Some((src, dst)) => (
                format!("{}>{}", name(src), name(dst)),
                vec![name(src), name(dst)],
            ),
            None => ("all".into(), net.hosts.clone()),
        };
        knobs.insert("flow".into(), flow);
        Factors {
            probe: "pattern".into(),
            mode: Some(if canary { kind.name() } else { asked.mode }.into()),
            layer: Layer::Transport,
            path: path(kind).into(),
            method: Some("plain".into()),
            knobs,
            wait: Some("block".into()),
            network: net.name.clone(),
            testbed: net.testbed,
            hosts,
            profile: net.profile.map(|profile| profile.to_string()),
            attachment: net.attachment.clone(),
            load: None,
            size_bytes,
        }
    }

    /// The same cell's id.
    fn id(
        self,
        asked: &RoundRequest,
        kind: Kind,
        size_bytes: u64,
        flow: Option<(usize, usize)>,
    ) -> String {
        let id = self.factors(asked, kind, size_bytes, flow).cell();
        id.expect("factors are JSON: texts, numbers and maps of texts")
    }

    /// The records of one round, of a launch in which the emulation was sometimes `behind`.
    pub fn records(
        self,
        asked: &RoundRequest,
        outcome: &RoundOutcome,
        (launched, behind): (&PatternLaunched, &[Away]),
        index: u64,
    ) -> Vec<LaunchRecord> {
        let hosts = &self.net.hosts;
        let mut made = Vec::new();
        for flow in &outcome.flows {
            let Some(what) = flow.what else { continue };
            let ends = Some((flow.src, flow.dst));
            let cell = self.id(asked, what.kind, what.size_bytes, ends);
            let of = |host: usize| {
                let mut one = outcome.interference.get(&host).cloned().unwrap_or_default();
                one.host.clone_from(&hosts[host]);
                one
            };
            let [src, dst] = [flow.src, flow.dst].map(|host| hosts[host].clone());
            let mut record = LaunchRecord {
                evidence: evidence(flow, outcome),
                interference: vec![of(flow.src), of(flow.dst)],
                ..start(launched)
            };
            record.evidence.flow.together = Some(outcome.flows.len() as u64);
            // What met other hosts is of their flows.
            record
                .disturbances
                .retain(|span| [&src, &dst].contains(&&span.host));
            (record.src, record.dst) = (src, dst);
            record.results.push(CellResult {
                cell,
                index,
                failure: flow.failure.clone(),
                series: seen::touched(
                    measurements(flow, what.kind),
                    when(flow, what.kind).as_ref(),
                    behind,
                ),
            });
            made.push(record);
        }
        made.extend(self.together(asked, outcome, launched, index));
        made
    }

    /// The record of all flows of a kind, for each kind of the round.
    fn together(
        self,
        asked: &RoundRequest,
        outcome: &RoundOutcome,
        launched: &PatternLaunched,
        index: u64,
    ) -> Vec<LaunchRecord> {
        let mut kinds: BTreeMap<Kind, Vec<&FlowOutcome>> = BTreeMap::new();
        for flow in &outcome.flows {
            if let Some(what) = flow.what.filter(|what| asked.has_sum(what.kind)) {
                kinds.entry(what.kind).or_default().push(flow);
            }
        }
        let mut made = Vec::new();
        for (kind, flows) in kinds {
            let size = flows[0].what.map_or(0, |what| what.size_bytes);
            let cell = self.id(asked, kind, size, None);
            let (series, failure) = summed(&flows, kind);
            let mut evidence = Evidence::default();
            evidence.flow.flows = Some(flows.len() as u64);
            evidence.flow.start_bound_ns = Some(launched.clock_bound_ns);
            let result = CellResult {
                cell,
                index,
                failure,
                series,
            };
            // Of its hosts only who came to them without being asked: the rest is of each flow.
            let met = |(host, seen): (&usize, &Interference)| {
                let is_there = flows.iter().any(|flow| [flow.src, flow.dst].contains(host));
                (is_there && seen.strangers > 0).then(|| Interference {
                    host: self.net.hosts[*host].clone(),
                    strangers: seen.strangers,
                    ..Interference::default()
                })
            };
            made.push(LaunchRecord {
                results: vec![result],
                evidence,
                interference: outcome.interference.iter().filter_map(met).collect(),
                ..start(launched)
            });
        }
        made
    }
}

/// What all flows of a pattern have in common.
fn start(launched: &PatternLaunched) -> LaunchRecord {
    let report = launched.report.as_ref();
    LaunchRecord {
        took_ns: u64::try_from(launched.took.as_nanos()).unwrap_or(u64::MAX),
        verdict: report.map(Report::verdict),
        disturbances: report.map(Report::disturbances).unwrap_or_default(),
        ..LaunchRecord::default()
    }
}

fn warm(quantity: Quantity, series: Series) -> Measurement {
    let reason = series
        .is_empty()
        .then(|| "no sample was taken in the window".to_owned());
    Measurement {
        touched: None,
        quantity,
        phase: Phase::Warm,
        step: None,
        series,
        reason,
    }
}

/// What a flow of this kind is about.
fn main(kind: Kind) -> Quantity {
    match kind {
        Kind::Stream => Quantity::ThroughputBps,
        Kind::Latency | Kind::LatencyUdp => Quantity::LatencyNs,
        Kind::Exchange => Quantity::ExchangeNs,
    }
}

fn samples(flow: &FlowOutcome, kind: Kind) -> Option<Series> {
    let (left, came) = (flow.left.as_ref()?, flow.came.as_ref()?);
    Some(match kind {
        Kind::Stream => came.window.iter().map(|window| window.bps).collect(),
        Kind::Latency | Kind::LatencyUdp => left.trips.clone(),
        Kind::Exchange => came.steps.clone(),
    })
}

/// When its samples were taken, as far as both ends know it.
fn when(flow: &FlowOutcome, kind: Kind) -> Option<Seen> {
    let (left, came) = (flow.left.as_ref()?, flow.came.as_ref()?);
    let (asking, answering) = (left.seen.clone()?, came.seen.clone()?);
    match kind {
        Kind::Stream => Some(Seen::Stream {
            slices: answering.beside(&asking.away),
            resent: left.counts.retransmits.is_some_and(|count| count > 0),
        }),
        Kind::Latency | Kind::LatencyUdp => Some(Seen::Samples(asking.beside(&answering.away))),
        Kind::Exchange => None,
    }
}

fn measurements(flow: &FlowOutcome, kind: Kind) -> Vec<Measurement> {
    let valid = flow.failure.is_none();
    let Some(samples) = samples(flow, kind).filter(|_| valid) else {
        return Vec::new();
    };
    let mut all = vec![warm(main(kind), samples)];
    let counts = flow.left.as_ref().map(|left| &left.counts);
    if let (Kind::Stream, Some(count)) = (kind, counts.and_then(|counts| counts.retransmits)) {
        all.push(warm(Quantity::Retransmits, [count].into_iter().collect()));
    }
    if let (Kind::LatencyUdp, Some(left)) = (kind, &flow.left) {
        let asked = left.lost + left.trips.count();
        if let Some(share) = (left.lost * 1_000_000).checked_div(asked) {
            all.push(warm(Quantity::LostShare, [share].into_iter().collect()));
        }
    }
    all
}

/// Rates add up; latencies and steps are one population.
fn summed(flows: &[&FlowOutcome], kind: Kind) -> (Vec<Measurement>, Option<String>) {
    let bad = flows.iter().filter(|flow| flow.failure.is_some()).count();
    if bad > 0 {
        let first = flows.iter().find_map(|flow| flow.failure.clone());
        let why = format!(
            "{bad} of {} flows gave no result: {}",
            flows.len(),
            first.unwrap_or_default()
        );
        return (Vec::new(), Some(why));
    }
    let all: Vec<Series> = flows
        .iter()
        .filter_map(|flow| samples(flow, kind))
        .collect();
    let series = if kind == Kind::Stream {
        let rates = all.iter().filter_map(Series::median);
        [rates.sum::<u64>()].into_iter().collect()
    } else {
        let mut pooled = Series::new();
        all.iter().for_each(|one| pooled.merge(one));
        pooled.closed()
    };
    let mut measured = vec![warm(main(kind), series)];
    if kind == Kind::Stream {
        let counts = flows
            .iter()
            .filter_map(|flow| flow.left.as_ref()?.counts.retransmits);
        measured.push(warm(
            Quantity::Retransmits,
            [counts.sum()].into_iter().collect(),
        ));
    }
    (measured, None)
}

/// What the kernel and the hosts said of a flow.
fn evidence(flow: &FlowOutcome, outcome: &RoundOutcome) -> Evidence {
    let mut all = Evidence::default();
    let told = &mut all.flow;
    if let Some(left) = &flow.left {
        told.late_ns = Some(left.late_ns);
        told.segments = left.counts.segments;
        told.retransmits = left.counts.retransmits;
        told.in_vain = left.counts.in_vain;
        told.overtaken = left.counts.overtaken;
        told.busy_us = left.counts.busy_us;
        told.rwnd_limited_us = left.counts.rwnd_limited_us;
        told.min_rtt_us = left.counts.min_rtt_us;
    }
    if let Some(came) = &flow.came {
        told.early = came.counts.early;
    }
    told.rounds_again = Some(outcome.again.into());
    for (host, side) in [(flow.src, &mut all.src), (flow.dst, &mut all.dst)] {
        let share = outcome.others_share.get(&host);
        side.others.share = share.and_then(|share| Fixed::of(*share));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_probe::pattern::{Came, Left};

    fn flow(bps: u64) -> FlowOutcome {
        let rated = serde_json::json!({"bytes": 1, "window_ns": 1, "bps": bps, "cpu_ns": null});
        FlowOutcome {
            left: Some(Left::default()),
            came: Some(Came {
                window: Some(serde_json::from_value(rated).unwrap()),
                ..Came::default()
            }),
            ..FlowOutcome::default()
        }
    }

    #[test]
    fn rates_add_up() {
        let (one, other) = (flow(30), flow(12));
        let (series, failure) = summed(&[&one, &other], Kind::Stream);
        assert_eq!((series[0].series.median(), failure), (Some(42), None));
        let failed = FlowOutcome {
            failure: Some("h3 is gone".into()),
            ..flow(5)
        };
        let (series, failure) = summed(&[&one, &failed], Kind::Stream);
        assert!(series.is_empty());
        assert_eq!(failure.unwrap(), "1 of 2 flows gave no result: h3 is gone");
        assert!(measurements(&failed, Kind::Stream).is_empty());
        assert_eq!(
            measurements(&one, Kind::Stream)[0].series.median(),
            Some(30)
        );
    }
}
