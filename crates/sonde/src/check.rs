//! `sonde lab check`: the emulation itself measured: rate, delay, lateness, frames a second.
//!
//! Model:   delay: the round trip of 1 byte on the network against the same on a `wire` whose delay is the model's one-way
//!          time, launches interleaved, all on one CPU; what hosts cost is in both and cancels. Rate: a blast of full
//!          datagrams against the model's own, and a TCP stream against the model's kernel-like sender. Frames a second: a
//!          blast of small datagrams over a `wire`, which is this machine's limit and not the network's.

use crate::failure::{self, Failure};
use crate::networks::{self, mbit, micros, table};
use crate::testbed::{HostOptions, LabOptions, this_program};
use sonde_fleet::{Ask, Fleet};
use sonde_lab::{Config, Report};
use sonde_measure::{Path, Wait};
use sonde_measure::{Phase, Quantity};
use sonde_probe::{Probe, Terms};
use sonde_units::{Bytes, Span};

const SECOND_NS: u64 = 1_000_000_000;
/// User bytes of the small datagrams.
const SMALL: u64 = 64;
const UDP_HEADERS: u64 = 28;
/// Bounds of the product: 1.5 % of the rate; 10 us or 3 % of the round trip.
const RATE_PER_MILLE: u64 = 15;
const DELAY_FLOOR_NS: u64 = 10_000;
const DELAY_PER_MILLE: u64 = 30;

/// One figure beside what it should be.
struct Line {
    what: &'static str,
    measured: String,
    model: String,
    error: String,
    /// Whether it keeps its bound; none where there is none.
    kept: Option<bool>,
    report: Report,
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

fn terms(probe: Probe, path: Path, size_bytes: u64) -> Terms {
    let mut terms = Terms::new(probe, path, Wait::Block);
    terms.sizes_bytes = vec![size_bytes];
    match probe {
        Probe::Latency => {
            (terms.samples_min, terms.samples_max) = (1_000, 1_000);
            (terms.budget_ns, terms.warmup) = (SECOND_NS / 2, 20);
        }
        _ => terms.budget_ns = SECOND_NS,
    }
    terms
}

/// A lab with agents in it.
struct Bench {
    fleet: Fleet,
    config: Config,
}

impl Bench {
    fn start(network: &str, hosts: &HostOptions) -> Result<Self, Failure> {
        let options = LabOptions {
            networks: vec![network.into()],
            ..LabOptions::of_hosts(hosts.clone())
        };
        let config = options.config()?;
        let fleet = Fleet::lab(&this_program()?, &config).map_err(Failure::cannot)?;
        Ok(Self { fleet, config })
    }

    /// One launch from h1 to h2: the median of its main quantity, and what the switch did.
    fn launch(&mut self, terms: Terms, quantity: Quantity) -> Result<(u64, Report), Failure> {
        let ask = Ask {
            terms,
            src: 0,
            dst: 1,
            one_way_ns: None,
            load: None,
        };
        let launched = self.fleet.converse(&ask).map_err(Failure::cannot)?;
        let mut measurements = launched
            .outcome
            .sizes
            .iter()
            .flat_map(|size| &size.measurements);
        let main = measurements
            .find(|one| one.quantity == quantity && one.phase == Phase::Warm && one.step.is_none());
        let median = main
            .and_then(|one| one.series.median())
            .ok_or_else(|| Failure::cannot(format!("a launch gave no {quantity:?}")))?;
        Ok((median, launched.report.unwrap_or_default()))
    }
}

/// Adds the counts of one launch to those of others; of quantiles the worst stays.
fn merge(all: &mut Report, one: &Report) {
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
}

/// Signed difference in parts of a thousand, for people.
fn percent(measured: u64, model: u64) -> String {
    let tenths = (i128::from(measured) - i128::from(model)) * 10_000 / i128::from(model.max(1));
    let sign = if tenths < 0 { "-" } else { "+" };
    format!(
        "{sign}{}.{:02} %",
        tenths.unsigned_abs() / 100,
        tenths.unsigned_abs() % 100
    )
}

/// `sonde lab check`; 1 where a bound is not kept or the emulation was not true to the model.
pub fn check(network: &str, hosts: &HostOptions, launches: u64) -> Result<i32, Failure> {
    let mut bench = Bench::start(network, hosts)?;
    let one_way = networks::one_way(&bench.config.network, networks::UDP_1B)?;
    // A whole number of nanoseconds can be written as a knob.
    let delay = Span::nanos(one_way.as_nanos());
    let mut wire = Bench::start(&format!("wire:delay={delay}"), hosts)?;
    let mut lines = vec![delay_line(&mut bench, &mut wire, launches)?];
    lines.extend(rate_lines(&mut bench, launches)?);
    lines.push(frames_line(&mut wire, launches)?);
    let network = &bench.config.network.name;
    println!(
        "{network}: {} hosts attached by {}, {} launches",
        hosts.hosts,
        bench.fleet.attachment().unwrap_or_default(),
        launches
    );
    let row = |line: &Line| {
        let per_frame = line.report.cpu_ns.checked_div(line.report.deliveries);
        vec![
            line.what.into(),
            line.measured.clone(),
            line.model.clone(),
            line.error.clone(),
            line.kept
                .map_or("-", |kept| if kept { "kept" } else { "MISSED" })
                .into(),
            micros(line.report.lateness_ns_p50),
            micros(line.report.lateness_ns_p99),
            micros(line.report.lateness_ns_max),
            micros(per_frame),
            if line.report.verdict().passed() {
                "passed"
            } else {
                "FAILED"
            }
            .into(),
        ]
    };
    println!(
        "{}",
        table(
            &[
                "",
                "measured",
                "model",
                "error",
                "bound",
                "late p50 us",
                "p99",
                "most",
                "switch us/frame",
                "verdict"
            ],
            lines.iter().map(row)
        )
    );
    // The last line loads the switch as far as it goes: its verdict is a limit of the machine, not of the network.
    let judged = &lines[..lines.len() - 1];
    for line in judged {
        line.report
            .verdict()
            .reasons
            .iter()
            .for_each(|why| println!("- {}: {why}", line.what));
    }
    let good = judged
        .iter()
        .all(|line| line.kept != Some(false) && line.report.verdict().passed());
    bench.fleet.stop().map_err(Failure::cannot)?;
    wire.fleet.stop().map_err(Failure::cannot)?;
    Ok(if good { 0 } else { failure::UNMET })
}

fn delay_line(bench: &mut Bench, wire: &mut Bench, launches: u64) -> Result<Line, Failure> {
    let (mut here, mut there, mut report) = (Vec::new(), Vec::new(), Report::default());
    for _ in 0..launches {
        let ask = || terms(Probe::Latency, Path::Udp, 1);
        let (median, launch) = bench.launch(ask(), Quantity::LatencyNs)?;
        merge(&mut report, &launch);
        here.push(2 * median);
        there.push(2 * wire.launch(ask(), Quantity::LatencyNs)?.0);
    }
    let (Some(here), Some(there)) = (median(here), median(there)) else {
        return Err(Failure::cannot("no launch gave a round trip"));
    };
    let bound = DELAY_FLOOR_NS.max(there * DELAY_PER_MILLE / 1_000);
    let difference = here.abs_diff(there);
    let sign = if here < there { "-" } else { "+" };
    Ok(Line {
        what: "round trip of 1 B, us",
        measured: micros(Some(here)),
        model: format!("{} on a wire", micros(Some(there))),
        error: format!("{sign}{}", micros(Some(difference))),
        kept: Some(difference <= bound),
        report,
    })
}

/// Median of a stream's rate over launches, and what the switch did.
fn stream(
    bench: &mut Bench,
    path: Path,
    size: u64,
    launches: u64,
) -> Result<(u64, Report), Failure> {
    let (mut rates, mut report) = (Vec::new(), Report::default());
    for _ in 0..launches {
        let (rate, launch) =
            bench.launch(terms(Probe::Stream, path, size), Quantity::ThroughputBps)?;
        merge(&mut report, &launch);
        rates.push(rate);
    }
    median(rates)
        .map(|rate| (rate, report))
        .ok_or_else(|| Failure::cannot("no launch gave a rate"))
}

fn rate_lines(bench: &mut Bench, launches: u64) -> Result<Vec<Line>, Failure> {
    let spec = &bench.config.network.clone();
    let full = Bytes(spec.mtu - UDP_HEADERS);
    let mut lines = Vec::new();
    for (what, path, size, model) in [
        (
            "UDP Mb/s",
            Path::Udp,
            full.0,
            sonde_virtual::udp_expected(spec, full)
                .ok()
                .filter(|_| spec.line.rate.is_some()),
        ),
        (
            "TCP Mb/s",
            Path::Tcp,
            1 << 20,
            networks::tcp_expected(spec, bench.config.profile).ok(),
        ),
    ] {
        let Some(model) = model else { continue };
        let (rate, report) = stream(bench, path, size, launches)?;
        lines.push(Line {
            what,
            measured: mbit(Some(rate)),
            model: mbit(Some(model)),
            error: percent(rate, model),
            kept: Some(rate.abs_diff(model) * 1_000 <= model * RATE_PER_MILLE),
            report,
        });
    }
    Ok(lines)
}

fn frames_line(wire: &mut Bench, launches: u64) -> Result<Line, Failure> {
    let (rate, report) = stream(wire, Path::Udp, SMALL, launches)?;
    Ok(Line {
        what: "64 B frames/s, wire",
        measured: (rate / (8 * SMALL)).to_string(),
        model: "-".into(),
        error: "-".into(),
        kept: None,
        report,
    })
}
