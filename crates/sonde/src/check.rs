//! `sonde lab check`: the emulation itself measured: rate, delay, lateness, frames a second.
//!
//! Model:   delay: the round trip of 1 byte on the network against the same on a `wire` whose delay is the model's one-way
//!          time, launches interleaved, all on one CPU; what hosts cost is in both and cancels. Rate: a blast of full
//!          datagrams against the model's own, and a TCP stream against the model's kernel-like sender. Frames a second: a
//!          blast of small datagrams over a `wire`, which is this machine's limit and not the network's.

use crate::bench::{self, Bench};
use crate::failure::{self, Failure};
use crate::networks::{self, mbit, micros, table};
use crate::testbed::LabOptions;
use sonde_channel::{Path, Wait};
use sonde_lab::Report;
use sonde_probe::{Figures, Probe, Terms};
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
    terms.size_bytes = size_bytes;
    match probe {
        Probe::Latency => {
            (terms.samples, terms.budget_ns, terms.warmup) = (1_000, SECOND_NS / 2, 20)
        }
        Probe::Throughput => terms.budget_ns = SECOND_NS,
        Probe::Startup => {}
    }
    terms
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
pub fn check(options: &LabOptions, launches: u64) -> Result<i32, Failure> {
    let bench = Bench::start(options)?;
    let one_way = bench.model_one_way(Path::Udp, 1)?;
    // A whole number of nanoseconds can be written as a knob.
    let delay = Span::nanos(one_way.as_nanos());
    let wire = Bench::start(&LabOptions {
        network: format!("wire:delay={delay}"),
        ledger: None,
        pcap: None,
        ..options.clone()
    })?;
    let mut lines = vec![delay_line(&bench, &wire, launches)?];
    lines.extend(rate_lines(&bench, launches)?);
    lines.push(frames_line(&wire, launches)?);
    let network = &bench.config().network.name;
    println!(
        "{network}: {} hosts attached by {}, {} launches",
        options.hosts.hosts,
        bench.lab().info().attachment.name(),
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
            if line.report.passed() {
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
            .failures()
            .iter()
            .for_each(|why| println!("- {}: {why}", line.what));
    }
    let good = judged
        .iter()
        .all(|line| line.kept != Some(false) && line.report.passed());
    bench.stop()?;
    wire.stop()?;
    Ok(if good { 0 } else { failure::UNMET })
}

fn delay_line(bench: &Bench, wire: &Bench, launches: u64) -> Result<Line, Failure> {
    let (mut here, mut there, mut report) = (Vec::new(), Vec::new(), Report::default());
    for _ in 0..launches {
        let (outcome, launch) = bench.launch(terms(Probe::Latency, Path::Udp, 1), 1, 2)?;
        bench::merge(&mut report, &launch);
        here.extend(rtt(&outcome));
        there.extend(rtt(&wire
            .launch(terms(Probe::Latency, Path::Udp, 1), 1, 2)?
            .0));
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

fn rtt(outcome: &sonde_probe::Outcome) -> Option<u64> {
    match &outcome.measured.figures {
        Figures::Latency(latency) => Some(latency.rtt_ns.p50),
        Figures::Startup(_) | Figures::Throughput(_) => None,
    }
}

/// Medians of a stream's rate over launches, and what the switch did.
fn stream(bench: &Bench, path: Path, size: u64, launches: u64) -> Result<(u64, Report), Failure> {
    let (mut rates, mut report) = (Vec::new(), Report::default());
    for _ in 0..launches {
        let (outcome, launch) = bench.launch(terms(Probe::Throughput, path, size), 1, 2)?;
        bench::merge(&mut report, &launch);
        rates.extend(outcome.served.window.map(|window| window.bps));
    }
    median(rates)
        .map(|rate| (rate, report))
        .ok_or_else(|| Failure::cannot("no launch gave a rate"))
}

fn rate_lines(bench: &Bench, launches: u64) -> Result<Vec<Line>, Failure> {
    let spec = &bench.config().network;
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
            networks::tcp_expected(spec, bench.config().profile).ok(),
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

fn frames_line(wire: &Bench, launches: u64) -> Result<Line, Failure> {
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
