//! `sonde load`: background traffic between hosts, as much as was asked for and no other.
//!
//! Model:   agents send and count ([`sonde_fleet::Traffic`]); this begins and ends them, and says what was reached. A share is
//!          of a link's line rate, and counts what Ethernet, IP and UDP add to each datagram. What is reached is what came;
//!          it is judged against what the law planned in that time, of which at least 95 % must have come. When this command
//!          dies its agents end with it; should the connection to a host break, its load ends after twenty seconds.
//!          Each flow is a cell of a run in the store.
//! Units:   shares of the link; bits a second on the line, headers and gaps included.
//! Checked: `tests/lab_nets.rs`; `tables_have_what_was_wanted_beside_what_came`.

mod kept;

use crate::campaign::{self, LiveNetwork};
use crate::document::{self, Command, Document};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure;
use crate::model::Modelled;
use crate::output::{self, Print, say};
use crate::plan::{self, Kind};
use kept::LoadRun;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_fleet::{Fleet, Load, Stream, StreamReport, Traffic, TrafficReport};
use sonde_measure::{Run, Text};
use sonde_record::{Judgement, Store};
use sonde_report::{rate, sheet};
use sonde_sys::{tell, told};
use sonde_units::BitRate;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// So often the load is asked how far it is.
const TOLD: Duration = Duration::from_secs(1);
/// A load that nobody asks for so long ends.
const LEASE: Duration = Duration::from_secs(20);
/// A wait for the end is cut into these, so that an interrupt is seen.
const PIECE: Duration = Duration::from_millis(50);

/// What to load, and how long.
pub struct Task {
    /// The hosts, the network and where the run goes; its plan has no probes.
    pub measurement: measure::Task,
    /// The level, its law, its frames' layer-3 bytes, the link's rate, the flows.
    pub load: Load,
    /// The rate of user data in place of the level, in bits a second: an application's.
    pub user_bps: Option<u64>,
    /// How long.
    pub lasts: Duration,
}

impl Task {
    /// Does it; the exit code: 0 where every flow was reached.
    ///
    /// # Errors
    /// What could not be started, or kept.
    pub fn run(self) -> Result<i32, Failure> {
        self.check()?;
        if self.measurement.dry_run {
            return self.planned();
        }
        let store = Store::open(&self.measurement.out).map_err(Failure::cannot)?;
        let mut live = self.measurement.live()?;
        let mut up = live.remove(0);
        up.complete(&[], 0, &mut Vec::new())?;
        let LiveNetwork {
            net,
            fleet,
            nth,
            network,
            ..
        } = up;
        let fleet = Rc::into_inner(fleet).expect("one live network has its agents alone");
        let mut fleet = fleet.into_inner();
        fleet.take_network(nth);
        for note in fleet.notes() {
            tell!("sonde: {note}");
        }
        // A TAP's own rate is an invention: it is the model's that counts.
        let line = net.model.as_ref().and_then(Modelled::line);
        let streams = self.streams(&fleet, line)?;
        self.check_rate(&streams, &net.hosts)?;
        for stream in &streams {
            tell!("sonde: {}", announced(stream, &net.hosts));
        }
        let seed = self.measurement.plan.repeat.seed;
        // A little longer, so that it is this command that ends it.
        let traffic = fleet
            .begin_load(&streams, self.lasts, LEASE, seed)
            .map_err(Failure::cannot)?;
        let at = (&net, network);
        let begin = (seed, self.measurement.name.as_deref());
        let load = Load {
            rho: streams.first().map_or(self.load.rho, |stream| stream.rho),
            ..self.load.clone()
        };
        let kept = LoadRun::begin(store, begin, at, fleet.hosts(), &load, &streams)?;
        self.follow(fleet, &traffic, kept, &net.hosts)
    }

    /// `--dry-run`: the flows, as far as they are known before hosts are up.
    fn planned(&self) -> Result<i32, Failure> {
        let nets = self.measurement.planned_networks()?;
        let net = nets
            .last()
            .ok_or_else(|| Failure::usage("there is no network to load"))?;
        let line = net.model.as_ref().and_then(Modelled::line);
        let mut pairs = self.load.flows.clone();
        if let ([], [first, second, ..]) = (&pairs[..], &net.hosts[..]) {
            pairs.push((first.clone(), second.clone()));
        }
        let mut named = pairs.iter().flat_map(|(from, to)| [from, to]);
        // Of a list that a launcher makes, or of this machine, no names are known yet.
        if let Some(unknown) = named.find(|name| !net.hosts.is_empty() && !net.hosts.contains(name))
        {
            return Err(Failure::usage(format!(
                "there is no host `{unknown}`: the hosts are {}",
                plan::listed(&net.hosts)
            )));
        }
        let (part, of) = self.load.rho.parts();
        let flow = |(from, to): &(String, String)| PlannedFlow {
            from: from.clone(),
            to: to.clone(),
            network: net.name.clone(),
            law: self.load.law.to_string(),
            link_bps: self.load.of.or(line).map(BitRate::bps),
            wanted_share: match self.user_bps {
                None => part as f64 / of as f64,
                Some(user_bps) => {
                    let link = self
                        .load
                        .of
                        .or(line)
                        .map_or(f64::INFINITY, |link| link.bps() as f64);
                    user_bps as f64 / link
                }
            },
            lasts_s: self.lasts.as_secs_f64(),
        };
        let planned = PlannedLoad {
            flows: pairs.iter().map(flow).collect(),
        };
        match self.measurement.print {
            Print::Json => {
                let verdict = Judgement::none("nothing was measured");
                let command = Command::LoadPlanned(&planned);
                document::print(&Document::new(command, &measure::command_line(), verdict))?;
            }
            Print::Csv => output::csv(&PLANNED_COLUMNS, &planned.flows)?,
            Print::Text => {
                let heads = ["flow", "network", "law", "link", "share", "seconds"];
                let lines = planned.flows.iter().map(PlannedFlow::line);
                say!("{}", sheet(&heads, lines).keyed(3).text(output::width()));
            }
        }
        Ok(0)
    }

    /// Waits for the end of a load, keeps and prints what came of it.
    fn follow(
        &self,
        mut fleet: Fleet,
        traffic: &Traffic,
        mut kept: LoadRun,
        names: &[String],
    ) -> Result<i32, Failure> {
        let interrupted = campaign::interruption()?;
        let mut lost = None;
        let began = Instant::now();
        while let Some(left) = self.left(began, &interrupted) {
            std::thread::sleep(left.min(TOLD));
            match fleet.tell_load(traffic) {
                Ok(report) => progress(&report, began.elapsed(), self.lasts),
                Err(error) => {
                    lost = Some(error);
                    break;
                }
            }
        }
        if std::io::stderr().is_terminal() {
            tell!("");
        }
        let ended = fleet.end_load(traffic);
        let emulated = fleet.emulated();
        // The agents are ended in any case; what they met besides is of no use to anybody.
        drop(fleet.stop());
        let report = match lost.map_or(ended, Err) {
            Ok(report) => report,
            Err(error) => {
                let told = kept.failed(&error.to_string(), began.elapsed());
                told.map_err(Failure::cannot)?;
                return Err(Failure::cannot(error));
            }
        };
        // Of a lab that is gone its load has told already.
        let emulated = emulated.ok().flatten();
        let told = kept.reached(&report, emulated.as_ref());
        let missed = report.streams.iter().filter(|one| !one.is_reached());
        let missed = missed.map(|one| format!("{} missed its load", way(&one.stream, names)));
        let outcome = Outcome {
            is_measured: true,
            is_judged: true,
            failed: missed.collect(),
            signal: campaign::interrupted(),
            ..Outcome::default()
        };
        self.print(&report, names, kept.run(), &outcome)?;
        if interrupted.load(Ordering::Relaxed) {
            tell!("sonde: interrupted: the load until then is printed");
            kept.interrupted().map_err(Failure::cannot)?;
        }
        told.map_err(Failure::cannot)?;
        measure::say_where(kept.id(), &self.measurement.out);
        self.measurement.ended(kept.run(), outcome)
    }

    /// A lab's hosts make the load themselves, as real ones do; `sonde lab run --load` makes it inside the network.
    fn check(&self) -> Result<(), Failure> {
        let plan = &self.measurement.plan;
        match plan.testbed.kind {
            Kind::Slurm | Kind::Mpirun | Kind::Listen => Err(Failure::usage(
                "agents that a launcher starts cannot make a load: use `--testbed hosts:` or lab",
            )),
            Kind::Local if !plan.networks.is_empty() => Err(Failure::usage(
                "this machine has only its loopback: leave `--network` out",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a load of a host that is above the rate that is allowed.
    fn check_rate(&self, streams: &[Stream], names: &[String]) -> Result<(), Failure> {
        let Some(most) = self.measurement.plan.allow.rate else {
            return Ok(());
        };
        let mut sent: BTreeMap<usize, u128> = BTreeMap::new();
        for stream in streams {
            let (part, of) = stream.rho.parts();
            let bps = u128::from(stream.of_bps) * u128::from(part) / u128::from(of);
            *sent.entry(stream.src).or_default() += bps;
        }
        match sent
            .into_iter()
            .find(|(_, bps)| *bps > u128::from(most.bps()))
        {
            Some((host, bps)) => Err(Failure::usage(format!(
                "{} would send {}, and `--max-rate` allows {}: lower `--rho`, or raise the bound",
                names.get(host).map_or("a host", String::as_str),
                rate(bps as f64),
                rate(most.bps() as f64)
            ))),
            None => Ok(()),
        }
    }

    /// How long to wait before the next look; none when it is over.
    fn left(&self, began: Instant, interrupted: &AtomicBool) -> Option<Duration> {
        let next = Instant::now() + TOLD;
        loop {
            let left = self.lasts.saturating_sub(began.elapsed());
            if left.is_zero() || interrupted.load(Ordering::Relaxed) {
                return None;
            }
            if Instant::now() >= next {
                return Some(Duration::ZERO);
            }
            std::thread::sleep(left.min(PIECE));
        }
    }

    /// The flows; `line` is the rate of the network's lines, where a model says it.
    fn streams(&self, fleet: &Fleet, line: Option<BitRate>) -> Result<Vec<Stream>, Failure> {
        let load = Load {
            of: self.load.of.or(line),
            ..self.load.clone()
        };
        let mut pairs = Vec::new();
        for (from, to) in &self.load.flows {
            let number = |name: &str| fleet.numbered(name).map_err(Failure::usage);
            pairs.push((number(from)?, number(to)?));
        }
        if pairs.is_empty() {
            let mut alive = (0..fleet.hosts().len()).filter(|host| fleet.alive(*host));
            pairs.extend(alive.next().zip(alive.next()));
        }
        for (src, dst) in &pairs {
            if let Some(lost) = [*src, *dst].into_iter().find(|host| !fleet.alive(*host)) {
                let name = &fleet.hosts()[lost].name;
                let why = fleet.loss(lost).unwrap_or("it is gone");
                return Err(Failure::cannot(format!(
                    "{name} cannot take part in the load: {why}"
                )));
            }
        }
        let streams = pairs
            .into_iter()
            .map(|(src, dst)| fleet.stream(&load, src, dst).map_err(Failure::cannot))
            .map(|stream| stream.and_then(|stream| self.rated(stream)));
        streams.collect()
    }

    /// At the rate of an application, where it is one's.
    fn rated(&self, stream: Stream) -> Result<Stream, Failure> {
        let Some(user_bps) = self.user_bps else {
            return Ok(stream);
        };
        stream.at_rate(user_bps).ok_or_else(|| {
            Failure::usage(format!(
                "the application takes {} of user data, more than a link of {} carries: choose a faster network",
                rate(user_bps as f64),
                rate(stream.of_bps as f64)
            ))
        })
    }

    fn print(
        &self,
        report: &TrafficReport,
        names: &[String],
        run: &Run,
        outcome: &Outcome,
    ) -> Result<(), Failure> {
        match self.measurement.print {
            Print::Json => {
                let flows = flows(report, names);
                let command = Command::Load(&flows);
                document::print(&document::of_run(command, run, outcome.judgement()))?;
            }
            Print::Csv => output::rows(run)?,
            Print::Text => say!("{}", table(report, names)),
        }
        for one in &report.streams {
            let way = way(&one.stream, names);
            if let Some(limit) = &one.limit {
                tell!("sonde: {way}: {}", limit.write());
            } else if !one.is_reached() {
                let lost = one.sent.saturating_sub(one.received);
                tell!(
                    "sonde: {way}: {lost} of {} datagrams did not arrive",
                    one.sent
                );
            }
        }
        for remark in &report.remarks {
            tell!("sonde: {remark}");
        }
        if report.refused > 0 {
            tell!(
                "sonde: {} datagrams of unauthenticated senders came to the sinks and are not counted",
                report.refused
            );
        }
        Ok(())
    }
}

fn way(stream: &Stream, names: &[String]) -> String {
    format!("{}>{}", names[stream.src], names[stream.dst])
}

fn announced(stream: &Stream, names: &[String]) -> String {
    let (part, of) = stream.rho.parts();
    let line = BitRate::new(stream.of_bps).map_or_else(String::new, |rate| rate.to_string());
    format!(
        "{}: {} of {line}, {}, {} B of user data in each datagram; a datagram counts with all that Ethernet, IP and UDP add to it",
        way(stream, names),
        part as f64 / of as f64,
        stream.law,
        stream.size_bytes
    )
}

fn progress(report: &TrafficReport, past: Duration, lasts: Duration) {
    let terminal = std::io::stderr().is_terminal();
    let shares: Vec<String> = report
        .streams
        .iter()
        .map(|one| format!("{:.3}", one.received_share))
        .collect();
    let (past, lasts, shares) = (past.as_secs(), lasts.as_secs(), shares.join(" "));
    // Ten lines are enough of a file.
    let every = (lasts / 10).max(1);
    if terminal {
        told::progress(format_args!("{past} of {lasts} s: {shares} delivered"));
    } else if past % every == 0 {
        tell!("sonde: {past} of {lasts} s: {shares} delivered");
    }
}

fn table(report: &TrafficReport, names: &[String]) -> String {
    let heads = [
        "flow",
        "requested",
        "planned",
        "sent",
        "delivered",
        "Mb/s",
        "lost",
        "seconds",
        "CPU",
        "",
    ];
    let lines = report.streams.iter().map(|one| {
        let (part, of) = one.stream.rho.parts();
        let share = |value: f64| format!("{value:.4}");
        let verdict = if one.is_reached() {
            "reached"
        } else {
            "missed"
        };
        vec![
            way(&one.stream, names),
            share(part as f64 / of as f64),
            share(one.planned_share),
            share(one.sent_share),
            share(one.received_share),
            format!("{:.1}", one.received_share * one.stream.of_bps as f64 / 1e6),
            one.sent.saturating_sub(one.received).to_string(),
            format!("{:.1}", one.span.as_secs_f64()),
            format!("{:.0} %", one.cpu_share * 100.0),
            verdict.into(),
        ]
    });
    sheet(&heads, lines).text(output::width())
}

/// The columns of `--dry-run --csv`.
const PLANNED_COLUMNS: [&str; 7] = [
    "from",
    "to",
    "network",
    "law",
    "link_bps",
    "wanted_share",
    "lasts_s",
];

/// What `sonde load --dry-run` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlannedLoad {
    /// Each flow.
    flows: Vec<PlannedFlow>,
}

/// A flow that would be made.
#[derive(Debug, Serialize, JsonSchema)]
struct PlannedFlow {
    /// The sending host.
    from: String,
    /// The receiving host.
    to: String,
    /// Over which network.
    network: String,
    /// By which law datagrams come.
    law: String,
    /// The rate of the link; null where an interface has yet to tell it.
    link_bps: Option<u64>,
    /// What is asked for, as a share of the link.
    wanted_share: f64,
    /// For how long.
    lasts_s: f64,
}

impl PlannedFlow {
    fn line(&self) -> Vec<String> {
        let link = self.link_bps.map(|bps| sonde_report::rate(bps as f64));
        vec![
            format!("{}>{}", self.from, self.to),
            self.network.clone(),
            self.law.clone(),
            link.unwrap_or_else(|| "as the interface tells".into()),
            sonde_report::share(self.wanted_share),
            format!("{:.1}", self.lasts_s),
        ]
    }
}

/// What is told of a load.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Flows {
    /// Each, as it was asked for.
    flows: Vec<FlowRow>,
    /// Datagrams of strangers, which count nowhere.
    refused: u64,
    /// What to know of the hosts.
    remarks: Vec<String>,
}

/// A flow: what was wanted beside what came. Shares are of the link's line rate.
#[derive(Debug, Serialize, JsonSchema)]
struct FlowRow {
    /// The sending host.
    from: String,
    /// The receiving host.
    to: String,
    /// By which law datagrams come.
    law: String,
    /// User bytes in each.
    size_bytes: u64,
    /// The rate of the link.
    link_bps: u64,
    /// What was asked for.
    wanted_share: f64,
    /// What the law planned in that time.
    planned_share: f64,
    /// What was sent.
    sent_share: f64,
    /// What came.
    received_share: f64,
    /// Datagrams planned.
    planned: u64,
    /// Datagrams sent.
    sent: u64,
    /// Datagrams that came.
    received: u64,
    /// Datagrams that did not.
    lost: u64,
    /// How long it lasted.
    span_s: f64,
    /// Of one CPU: what the sender used.
    sender_cpu_share: f64,
    /// Whether at least 95 % of what was planned came.
    reached: bool,
    /// What held the sender back; null where nothing did.
    limit: Option<String>,
}

fn flows(report: &TrafficReport, names: &[String]) -> Flows {
    let row = |one: &StreamReport| {
        let (part, of) = one.stream.rho.parts();
        FlowRow {
            from: names[one.stream.src].clone(),
            to: names[one.stream.dst].clone(),
            law: one.stream.law.to_string(),
            size_bytes: one.stream.size_bytes,
            link_bps: one.stream.of_bps,
            wanted_share: part as f64 / of as f64,
            planned_share: one.planned_share,
            sent_share: one.sent_share,
            received_share: one.received_share,
            planned: one.planned,
            sent: one.sent,
            received: one.received,
            lost: one.sent.saturating_sub(one.received),
            span_s: one.span.as_secs_f64(),
            sender_cpu_share: one.cpu_share,
            reached: one.is_reached(),
            limit: one.limit.as_ref().map(Text::write),
        }
    };
    Flows {
        flows: report.streams.iter().map(row).collect(),
        refused: report.refused,
        remarks: report.remarks.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_link::Law;
    use sonde_units::Ratio;

    #[test]
    fn tables_have_what_was_wanted_beside_what_came() {
        let stream = Stream {
            src: 0,
            dst: 2,
            rho: Ratio::new(3, 5),
            law: Law::OnOff(20),
            size_bytes: 1_472,
            of_bps: 1_000_000_000,
            mtu_bytes: 1_500,
        };
        let report = TrafficReport {
            streams: vec![StreamReport {
                stream,
                span: Duration::from_secs(2),
                planned: 97_530,
                sent: 97_530,
                received: 90_000,
                planned_share: 0.6001,
                sent_share: 0.6001,
                received_share: 0.5538,
                limit: None,
                cpu_share: 0.25,
            }],
            refused: 0,
            remarks: Vec::new(),
        };
        let names = ["a", "b", "c"].map(String::from);
        let table = table(&report, &names);
        for word in ["a>c", "0.6000", "0.5538", "553.8", "7530", "25 %", "missed"] {
            assert!(table.contains(word), "{word}: {table}");
        }
        let json = serde_json::to_value(flows(&report, &names)).unwrap();
        assert_eq!(
            (&json["flows"][0]["lost"], &json["flows"][0]["reached"]),
            (&7_530.into(), &false.into())
        );
        assert!(announced(&stream, &names).starts_with("a>c: 0.6 of 1Gbit, on-off:20, 1472 B"));
    }
}
