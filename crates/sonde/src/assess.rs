//! `sonde assess`: the main job: how TCP and UDP fare over several networks of the lab, beside what the model allows.
//!
//! Model:   all labs are up at once. A block is one launch of every cell, in shuffled order; there are as many blocks as
//!          launches are asked for. Cold is a first message to an unknown neighbour over a fresh socket; warm is a ping-pong;
//!          throughput is a stream, rated by its receiver for a second after its first. A row pools the samples of its
//!          launches; its interval is over the launches' medians.

use crate::bench::{self, Bench};
use crate::failure::{self, Failure};
use crate::networks::{mbit, micros, table};
use crate::{networks, testbed::LabOptions};
use indicatif::{ProgressBar, ProgressStyle};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use signal_hook::consts::SIGINT;
use sonde_channel::{Path, Wait};
use sonde_lab::Report;
use sonde_probe::{Figures, Outcome, Probe, Terms};
use sonde_record::{
    Document, Layer, Method, Phase, Quantity, ResultRow, Status, Step, Testbed, VerdictStatus,
    cell_id,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is assessed when nothing is named.
const NETWORKS: &[&str] = &[
    "wire",
    "ethernet-100",
    "ethernet-1g",
    "atm-oc3c",
    "wan-100m-20ms",
];
const SECOND_NS: u64 = 1_000_000_000;
/// Enough round trips for a median, few enough for a path of 20 ms.
const LATENCY_SAMPLES: u64 = 200;
const LATENCY_BUDGET_NS: u64 = SECOND_NS / 2;
/// Below this a comparison with the expected rate is worth a word.
const EXPECTED_PER_MILLE: u64 = 985;

/// How to assess.
pub struct Assessment {
    /// The networks; empty for the usual ones.
    pub networks: Vec<String>,
    /// The lab, but for its network.
    pub lab: LabOptions,
    /// Launches of each cell.
    pub launches: u64,
    /// Print JSON instead of a table.
    pub json: bool,
    /// Exit with 1 where the emulation was not true to the model.
    pub strict: bool,
    /// Print what would be done, and its time.
    pub dry_run: bool,
}

/// A probe by a path; one launch gives a sample set for each of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Cold(Path),
    Warm(Path),
    Stream,
}

const KINDS: &[Kind] = &[
    Kind::Cold(Path::Tcp),
    Kind::Cold(Path::Udp),
    Kind::Warm(Path::Tcp),
    Kind::Warm(Path::Udp),
    Kind::Stream,
];

/// What one cell has given so far.
#[derive(Default)]
struct Cell {
    /// Samples of each launch, by step (none: the whole).
    samples: BTreeMap<Option<Step>, Vec<Vec<u64>>>,
    report: Report,
    failures: Vec<String>,
}

impl Kind {
    fn path(self) -> Path {
        match self {
            Self::Cold(path) | Self::Warm(path) => path,
            Self::Stream => Path::Tcp,
        }
    }

    fn terms(self) -> Terms {
        let probe = match self {
            Self::Cold(_) => Probe::Startup,
            Self::Warm(_) => Probe::Latency,
            Self::Stream => Probe::Throughput,
        };
        let mut terms = Terms::new(probe, self.path(), Wait::Block);
        match self {
            Self::Warm(_) => {
                (terms.samples, terms.budget_ns, terms.warmup) =
                    (LATENCY_SAMPLES, LATENCY_BUDGET_NS, 5);
                terms.samples_returned_max = LATENCY_SAMPLES;
            }
            Self::Stream => terms.budget_ns = SECOND_NS,
            Self::Cold(_) => {}
        }
        terms
    }

    /// A guess at how long a launch takes, for `--dry-run`.
    fn estimate_ns(self) -> u64 {
        match self {
            Self::Cold(_) => SECOND_NS / 10,
            Self::Warm(_) => SECOND_NS / 2,
            Self::Stream => 2 * SECOND_NS + SECOND_NS / 5,
        }
    }
}

impl Assessment {
    /// Assesses, and prints.
    pub fn run(&self) -> Result<i32, Failure> {
        let names: Vec<&str> = if self.networks.is_empty() {
            NETWORKS.to_vec()
        } else {
            self.networks.iter().map(String::as_str).collect()
        };
        for name in &names {
            crate::testbed::network(name)?;
        }
        if self.dry_run {
            return self.print_plan(&names);
        }
        let mut benches = Vec::new();
        for name in &names {
            benches.push(Bench::start(&LabOptions {
                network: (*name).to_owned(),
                ..self.lab.clone()
            })?);
        }
        let cells = self.measure(&benches)?;
        let warnings = warnings(&benches);
        let rows = rows(&benches, &cells)?;
        let all = cells.len() == benches.len() * KINDS.len();
        let code = if all {
            self.code(&rows)
        } else {
            failure::UNMET
        };
        if self.json {
            let document = Document {
                command: "assess".into(),
                results: rows,
                warnings,
                ..Document::default()
            };
            println!(
                "{}",
                serde_json::to_string_pretty(&document).map_err(Failure::cannot)?
            );
        } else {
            print_table(&benches, &rows)?;
            warnings
                .iter()
                .for_each(|warning| eprintln!("sonde: {warning}"));
        }
        benches.into_iter().try_for_each(Bench::stop)?;
        Ok(code)
    }

    fn print_plan(&self, names: &[&str]) -> Result<i32, Failure> {
        let each: u64 = KINDS.iter().map(|kind| kind.estimate_ns()).sum();
        for name in names {
            for kind in KINDS {
                println!(
                    "{name} {} {:?} x {} launches",
                    kind.path().name(),
                    kind.terms().probe,
                    self.launches
                );
            }
        }
        println!(
            "about {} s",
            each * names.len() as u64 * self.launches / SECOND_NS
        );
        Ok(0)
    }

    fn measure(&self, benches: &[Bench]) -> Result<BTreeMap<(usize, Kind), Cell>, Failure> {
        let mut random = Pcg64Mcg::seed_from_u64(self.lab.hosts.seed);
        let mut cells: BTreeMap<(usize, Kind), Cell> = BTreeMap::new();
        let total = (benches.len() * KINDS.len()) as u64 * self.launches;
        let bar = ProgressBar::new(total);
        let style =
            ProgressStyle::with_template("{spinner} {pos}/{len} {wide_bar} {eta} left  {msg}")
                .map_err(Failure::cannot)?;
        bar.set_style(style);
        let interrupted = interruption()?;
        'blocks: for _ in 0..self.launches {
            let mut block: Vec<(usize, Kind)> = (0..benches.len())
                .flat_map(|bench| KINDS.iter().map(move |kind| (bench, *kind)))
                .collect();
            shuffle(&mut block, &mut random);
            for (index, kind) in block {
                if interrupted.load(Ordering::Relaxed) {
                    eprintln!("sonde: interrupted: what was measured follows");
                    break 'blocks;
                }
                let bench = &benches[index];
                bar.set_message(format!(
                    "{} {}",
                    bench.config().network.name,
                    kind.path().name()
                ));
                let cell = cells.entry((index, kind)).or_default();
                match bench.launch(kind.terms(), 1, 2) {
                    Ok((outcome, report)) => {
                        bench::merge(&mut cell.report, &report);
                        cell.keep(&outcome);
                    }
                    Err(failure) => cell.failures.push(failure.to_string()),
                }
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok(cells)
    }

    /// 1 where a cell is missing, or with `--strict` where the emulation was not true to the model.
    fn code(&self, rows: &[ResultRow]) -> i32 {
        let missing = rows
            .iter()
            .any(|row| row.status != Status::Measured || row.launches < self.launches);
        let untrue = rows.iter().any(|row| {
            row.verdict
                .as_ref()
                .is_some_and(|verdict| verdict.status == VerdictStatus::Failed)
        });
        if missing || (self.strict && untrue) {
            failure::UNMET
        } else {
            0
        }
    }
}

impl Cell {
    fn keep(&mut self, outcome: &Outcome) {
        let mut put = |step, samples: &Vec<u64>| {
            if !samples.is_empty() {
                self.samples.entry(step).or_default().push(samples.clone());
            }
        };
        match &outcome.measured.figures {
            Figures::Startup(startup) => {
                put(None, &startup.cold_total_ns);
                put(Some(Step::Connect), &startup.connect_ns);
                put(Some(Step::First), &startup.first_ns);
                put(Some(Step::Second), &startup.second_ns);
            }
            Figures::Latency(latency) => put(
                None,
                &latency.rtt_samples_ns.iter().map(|rtt| rtt / 2).collect(),
            ),
            Figures::Throughput(_) => put(
                None,
                &outcome
                    .served
                    .window
                    .iter()
                    .map(|window| window.bps)
                    .collect(),
            ),
        }
    }
}

/// Turns true with the first interrupt; the second one ends the command, and with it its labs.
fn interruption() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let cannot = |e: std::io::Error| Failure::cannot(format!("cannot watch for interrupts: {e}"));
    // In this order: the second signal finds the flag set by the first.
    signal_hook::flag::register_conditional_shutdown(SIGINT, 128 + SIGINT, Arc::clone(&flag))
        .map_err(cannot)?;
    signal_hook::flag::register(SIGINT, Arc::clone(&flag)).map_err(cannot)?;
    Ok(flag)
}

/// Fisher and Yates, from the last.
fn shuffle<T>(items: &mut [T], random: &mut Pcg64Mcg) {
    for last in (1..items.len()).rev() {
        items.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

/// The rows of all cells, in the order of networks and kinds.
fn rows(
    benches: &[Bench],
    cells: &BTreeMap<(usize, Kind), Cell>,
) -> Result<Vec<ResultRow>, Failure> {
    let mut rows = Vec::new();
    for ((index, kind), cell) in cells {
        let steps: Vec<Option<Step>> = if cell.samples.is_empty() {
            vec![None]
        } else {
            cell.samples.keys().copied().collect()
        };
        for step in steps {
            rows.push(row(&benches[*index], *kind, step, cell)?);
        }
    }
    Ok(rows)
}

fn row(bench: &Bench, kind: Kind, step: Option<Step>, cell: &Cell) -> Result<ResultRow, Failure> {
    let terms = kind.terms();
    let config = bench.config();
    let (probe, quantity, phase) = match kind {
        Kind::Cold(_) => ("startup", Quantity::StartupNs, Phase::Cold),
        Kind::Warm(_) => ("latency", Quantity::LatencyNs, Phase::Warm),
        Kind::Stream => ("throughput", Quantity::ThroughputBps, Phase::Warm),
    };
    let profile = config.profile.to_string();
    let factors = (
        (
            probe,
            kind.path().name(),
            "block",
            &config.network.name,
            "lab",
            &profile,
        ),
        (
            terms.size_bytes,
            config.hosts,
            bench.lab().info().attachment.name(),
            step,
            config.seed,
        ),
    );
    let row = ResultRow {
        probe: probe.into(),
        layer: Layer::Transport,
        path: kind.path().name().into(),
        method: Some(Method::Plain),
        wait: Some("block".into()),
        network: config.network.name.clone(),
        testbed: Testbed::Lab,
        profile: Some(profile.clone()),
        load: None,
        src: Some("h1".into()),
        dst: Some("h2".into()),
        size_bytes: Some(terms.size_bytes),
        phase: Some(phase),
        step,
        cell: cell_id(&factors).map_err(Failure::cannot)?,
        launches: 0,
        samples: 0,
        quantity,
        min: None,
        p50: None,
        p90: None,
        p99: None,
        p999: None,
        max: None,
        mean: None,
        ci95_low: None,
        ci95_high: None,
        status: Status::Failed,
        reason: (!cell.failures.is_empty()).then(|| cell.failures.join("; ")),
        backpressure: Some(bench.backpressure()),
        verdict: Some(bench::verdict(
            &cell.report,
            bench.model_one_way(kind.path(), 1)?,
        )),
    };
    let Some(pooled) = cell
        .samples
        .get(&step)
        .and_then(|launches| sonde_stats::pool(launches))
    else {
        let reason = row
            .reason
            .or_else(|| Some("no launch gave a sample".into()));
        return Ok(ResultRow {
            reason,
            verdict: None,
            ..row
        });
    };
    Ok(ResultRow {
        status: Status::Measured,
        ..row
    }
    .with_statistics(&pooled))
}

fn warnings(benches: &[Bench]) -> Vec<String> {
    let mut warnings: Vec<String> = benches
        .iter()
        .flat_map(|bench| bench.lab().info().notes.clone())
        .collect();
    warnings.extend(benches.iter().filter_map(|bench| {
        bench
            .lab()
            .info()
            .attachment_reason
            .as_ref()
            .map(|reason| format!("hosts are attached by veth: {reason}"))
    }));
    warnings.sort_unstable();
    warnings.dedup();
    warnings
}

fn print_table(benches: &[Bench], rows: &[ResultRow]) -> Result<(), Failure> {
    let mut lines = Vec::new();
    let mut findings = Vec::new();
    for bench in benches {
        let network = &bench.config().network;
        let profile = bench.config().profile;
        let of = |probe: &str, path: &str| {
            rows.iter().find(|row| {
                row.network == network.name
                    && row.probe == probe
                    && row.path == path
                    && row.step.is_none()
            })
        };
        let p50 = |probe: &str, path: &str| of(probe, path).and_then(|row| row.p50);
        let (stream, expected) = (
            p50("throughput", "tcp"),
            networks::tcp_expected(network, profile).ok(),
        );
        let ceiling = sonde_link::tcp_max(network, networks::headers(profile));
        let share = stream.zip(ceiling).map_or_else(
            || "-".into(),
            |(stream, ceiling)| {
                let per_mille = (stream * 1_000 + ceiling / 2) / ceiling;
                format!("{}.{} %", per_mille / 10, per_mille % 10)
            },
        );
        let verdicts: Vec<_> = rows
            .iter()
            .filter(|row| row.network == network.name && row.step.is_none())
            .filter_map(|row| row.verdict.as_ref().map(|verdict| (row, verdict)))
            .collect();
        let lateness = verdicts
            .iter()
            .filter_map(|(_, verdict)| verdict.lateness_p99_ns)
            .max();
        let passed = verdicts
            .iter()
            .filter(|(_, verdict)| verdict.status == VerdictStatus::Passed)
            .count();
        lines.push(vec![
            network.name.clone(),
            micros(p50("startup", "tcp")),
            micros(p50("latency", "tcp")),
            micros(p50("startup", "udp")),
            micros(p50("latency", "udp")),
            micros(Some(bench.model_one_way(Path::Udp, 1)?.as_nanos())),
            mbit(stream),
            mbit(expected),
            mbit(ceiling),
            share,
            micros(lateness),
            format!("{passed}/{}", verdicts.len()),
        ]);
        for (row, verdict) in verdicts
            .iter()
            .filter(|(_, verdict)| verdict.status == VerdictStatus::Failed)
        {
            findings.push(format!(
                "{} {} {}: not true to the model: {}",
                network.name,
                row.path,
                row.probe,
                verdict.reasons.join("; ")
            ));
        }
        if let Some((stream, expected)) = stream
            .zip(expected)
            .filter(|(stream, expected)| stream * 1_000 < expected * EXPECTED_PER_MILLE)
        {
            findings.push(format!(
                "{}: TCP carried {} of {} Mb/s that the model's sender reaches",
                network.name,
                mbit(Some(stream)),
                mbit(Some(expected))
            ));
        }
        if let Some((cold, warm)) = p50("startup", "tcp").zip(p50("latency", "tcp")) {
            findings.push(format!(
                "{}: a first message costs {} us, a later one {} us there and back",
                network.name,
                micros(Some(cold)),
                micros(Some(2 * warm))
            ));
        }
    }
    let heads = [
        "network",
        "tcp cold us",
        "tcp 1 B us",
        "udp cold us",
        "udp 1 B us",
        "model us",
        "tcp Mb/s",
        "expected",
        "ceiling",
        "of ceiling",
        "late p99 us",
        "verdict",
    ];
    println!("{}", table(&heads, lines));
    println!(
        "Cold: from nothing to the first answer. 1 B: half a round trip, median. Model: one way, without hosts. Verdict: cells true to the model."
    );
    rows.iter()
        .filter(|row| row.status != Status::Measured)
        .for_each(|row| {
            println!(
                "{} {} {}: not measured: {}",
                row.network,
                row.path,
                row.probe,
                row.reason.as_deref().unwrap_or("no reason was given")
            );
        });
    findings.iter().for_each(|finding| println!("- {finding}"));
    Ok(())
}
