//! `sonde load`: background traffic between hosts, as much as was asked for and no other.
//!
//! Model:   agents send and count ([`sonde_fleet::Traffic`]); this begins and ends them, and says what was reached. A share is
//!          of a link's line rate, and counts what Ethernet, IP and UDP add to each datagram. What is reached is what came;
//!          it is judged against what the law planned in that time, of which at least 95 % must have come. When this command
//!          dies its agents end with it; should the connection to a host break, its load ends after twenty seconds.
//! Units:   shares of the link; bits a second on the line, headers and gaps included.
//! Checked: `tests/lab_nets.rs`; `tables_have_what_was_wanted_beside_what_came`.

use crate::campaign;
use crate::failure::{self, Failure};
use crate::plan::Kind;
use crate::testbed::{self, HostOptions};
use serde::Serialize;
use sonde_fleet::{Fleet, Load, Stream, StreamReport, TrafficReport};
use sonde_measure::Text;
use sonde_units::BitRate;
use std::io::IsTerminal;
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
    /// The hosts.
    pub testbed: (Kind, Option<String>),
    /// The lab's, where it is one.
    pub hosts: HostOptions,
    /// The network: of the lab, or `NAME=INTERFACE` of real hosts.
    pub network: Option<String>,
    /// The level, its law, its frames' layer-3 bytes, the link's rate, the flows.
    pub load: Load,
    /// How long.
    pub lasts: Duration,
    /// Print JSON.
    pub json: bool,
}

impl Task {
    /// Does it; the exit code: 0 where every flow was reached.
    pub fn run(mut self) -> Result<i32, Failure> {
        let mut fleet = self.fleet()?;
        for note in fleet.notes() {
            eprintln!("sonde: {note}");
        }
        let streams = self.streams(&fleet)?;
        let interrupted = campaign::interruption()?;
        let names: Vec<String> = fleet.hosts().iter().map(|host| host.name.clone()).collect();
        for stream in &streams {
            eprintln!("sonde: {}", announced(stream, &names));
        }
        let seed = self.hosts.seed;
        // A little longer, so that it is this command that ends it.
        let traffic = fleet
            .begin_load(&streams, self.lasts, LEASE, seed)
            .map_err(Failure::cannot)?;
        let mut lost = None;
        let began = Instant::now();
        while let Some(left) = self.left(began, &interrupted) {
            std::thread::sleep(left.min(TOLD));
            match fleet.tell_load(&traffic) {
                Ok(report) => progress(&report, began.elapsed(), self.lasts),
                Err(error) => {
                    lost = Some(error);
                    break;
                }
            }
        }
        if std::io::stderr().is_terminal() {
            eprintln!();
        }
        let ended = fleet.end_load(&traffic);
        // The agents are ended in any case; what they met besides is of no use to anybody.
        drop(fleet.stop());
        if let Some(error) = lost {
            return Err(Failure::cannot(error));
        }
        let report = ended.map_err(Failure::cannot)?;
        self.print(&report, &names)?;
        if interrupted.load(Ordering::Relaxed) {
            eprintln!("sonde: interrupted: this is what was reached until then");
        }
        let reached = report.streams.iter().all(StreamReport::is_reached);
        Ok(if reached { 0 } else { failure::UNMET })
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

    /// A lab's hosts make the load themselves, as real ones do; `sonde lab run --load` makes it inside the network.
    fn fleet(&mut self) -> Result<Fleet, Failure> {
        if matches!(self.testbed.0, Kind::Slurm | Kind::Mpirun | Kind::Listen) {
            return Err(Failure::usage(
                "agents that a launcher starts make no load: use `--testbed hosts:` or lab",
            ));
        }
        let (fleet, rate) =
            testbed::fleet(&self.testbed, self.hosts.clone(), self.network.as_deref())?;
        // A TAP's own rate is an invention: it is the model's that counts.
        self.load.of = self.load.of.or(rate);
        Ok(fleet)
    }

    fn streams(&self, fleet: &Fleet) -> Result<Vec<Stream>, Failure> {
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
            .map(|(src, dst)| fleet.stream(&self.load, src, dst).map_err(Failure::cannot));
        streams.collect()
    }

    fn print(&self, report: &TrafficReport, names: &[String]) -> Result<(), Failure> {
        if self.json {
            let text = serde_json::to_string_pretty(&document(report, names));
            println!("{}", text.map_err(Failure::cannot)?);
        } else {
            println!("{}", table(report, names));
        }
        for one in &report.streams {
            let way = way(&one.stream, names);
            if let Some(limit) = &one.limit {
                eprintln!("sonde: {way}: {}", limit.write());
            } else if !one.is_reached() {
                let lost = one.sent.saturating_sub(one.received);
                eprintln!(
                    "sonde: {way}: {lost} of {} datagrams did not come",
                    one.sent
                );
            }
        }
        for remark in &report.remarks {
            eprintln!("sonde: {remark}");
        }
        if report.refused > 0 {
            eprintln!(
                "sonde: {} datagrams of strangers came to the sinks, and count nowhere",
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
    let (begin, end) = if terminal {
        ("\r", "\x1b[K")
    } else {
        ("sonde: ", "\n")
    };
    // Ten lines are enough of a file.
    let every = (lasts.as_secs() / 10).max(1);
    if terminal || past.as_secs() % every == 0 {
        eprint!(
            "{begin}{} of {} s: {} came{end}",
            past.as_secs(),
            lasts.as_secs(),
            shares.join(" ")
        );
    }
}

fn table(report: &TrafficReport, names: &[String]) -> String {
    let heads = [
        "flow", "wanted", "planned", "sent", "came", "Mb/s", "lost", "seconds", "CPU", "",
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
    crate::networks::table(&heads, lines).to_string()
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    command: &'static str,
    flows: Vec<FlowRow>,
    refused: u64,
    remarks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FlowRow {
    from: String,
    to: String,
    law: String,
    size_bytes: u64,
    link_bps: u64,
    wanted_share: f64,
    planned_share: f64,
    sent_share: f64,
    received_share: f64,
    planned: u64,
    sent: u64,
    received: u64,
    lost: u64,
    span_s: f64,
    sender_cpu_share: f64,
    reached: bool,
    limit: Option<String>,
}

fn document(report: &TrafficReport, names: &[String]) -> Document {
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
    Document {
        schema: "sonde/1",
        command: "load",
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
        let json = serde_json::to_value(document(&report, &names)).unwrap();
        assert_eq!(
            (&json["flows"][0]["lost"], &json["flows"][0]["reached"]),
            (&7_530.into(), &false.into())
        );
        assert!(announced(&stream, &names).starts_with("a>c: 0.6 of 1Gbit, on-off:20, 1472 B"));
    }
}
