//! Runs to test with, and folders that go away.

use sonde_measure::{
    Backpressure, Ceiling, CellRecord, CellResult, ClockRecord, Disturbance, Disturber,
    EventRecord, Evidence, Factors, Fidelity, HostFacts, HostRecord, Interference, KnobValues,
    Lateness, LaunchRecord, Layer, Measurement, NetworkRecord, NetworkRow, OverheadStep, Phase,
    Quantity, Run, RunHead, RunState, Setting, Settings, Step, Testbed, Touch, Verdict,
};
use sonde_record::{Document, Judgement};
use sonde_stats::Series;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new folder below the temporary one, removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("sonde-{name}-{}-{next}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl std::ops::Deref for Folder {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn factors(probe: &str, network: &str, size_bytes: u64) -> Factors {
    Factors {
        probe: probe.into(),
        mode: (probe == "throughput").then(|| "stream".into()),
        layer: Layer::Transport,
        path: "tcp".into(),
        method: Some("plain".into()),
        knobs: KnobValues::from([("streams".into(), "4".into())]),
        wait: Some("block".into()),
        network: network.into(),
        testbed: Testbed::Lab,
        hosts: vec!["h1".into(), "h2".into()],
        profile: Some("modern".into()),
        attachment: Some("tap".into()),
        load: None,
        size_bytes,
    }
}

pub fn cell(probe: &str, size_bytes: u64, launches: u64) -> CellRecord {
    let factors = factors(probe, "wire", size_bytes);
    CellRecord {
        id: factors.cell().unwrap(),
        factors,
        launches,
        skipped: None,
    }
}

pub fn measurement(
    quantity: Quantity,
    phase: Phase,
    samples: impl IntoIterator<Item = u64>,
) -> Measurement {
    let series: Series = samples.into_iter().collect();
    let some = series.first().iter().copied().take(1).collect();
    let touched = match quantity {
        Quantity::LatencyNs => Some(Touch::Samples(some)),
        Quantity::ThroughputBps => Some(Touch::Slices {
            all: [3, 1, 2].into_iter().collect(),
            touched: some,
            span_ns: 30,
            late_ns: 2,
        }),
        _ => None,
    };
    Measurement {
        quantity,
        phase,
        step: None,
        touched,
        series,
        reason: None,
    }
}

/// A step of a start-up that could not be had.
pub fn without(step: Step, reason: &str) -> Measurement {
    Measurement {
        touched: None,
        quantity: Quantity::StartupNs,
        phase: Phase::Cold,
        step: Some(step),
        series: Series::new(),
        reason: Some(reason.into()),
    }
}

fn evidence() -> Evidence {
    let mut all = Evidence::default();
    all.dst.socket.congestion = Some("cubic".into());
    all
}

pub fn launch(cell: &CellRecord, index: u64, series: Vec<Measurement>) -> LaunchRecord {
    LaunchRecord {
        results: vec![CellResult {
            cell: cell.id.clone(),
            index,
            failure: None,
            series,
        }],
        src: "h1".into(),
        dst: "h2".into(),
        began_unix_ns: 1_795_000_000_000_000_000 + (index << 30) + cell.factors.size_bytes,
        took_ns: 900_000_000,
        evidence: evidence(),
        interference: vec![
            Interference {
                host: "h1".into(),
                span_ns: 5,
                cpus: 2,
                host_cpu_ns: Some(3),
                ..Default::default()
            },
            Interference {
                host: "h2".into(),
                steal_ns: Some(9),
                retransmits: Some(1),
                ..Default::default()
            },
        ],
        verdict: Some(Verdict::judge(
            &Lateness {
                count: 3_000,
                p50_ns: Some(900),
                p99_ns: Some(9_000),
                max_ns: Some(60_001),
                ..Default::default()
            },
            Fidelity {
                late: 1,
                bound_ns: Some(50_000),
                ..Fidelity::default()
            },
        )),
        disturbances: Vec::new(),
        set_aside: false,
    }
}

pub fn failed(cell: &CellRecord, index: u64, failure: &str) -> LaunchRecord {
    let mut failed = launch(cell, index, Vec::new());
    failed.results[0].failure = Some(failure.into());
    failed.verdict = None;
    failed
}

pub fn network(name: &str) -> NetworkRecord {
    NetworkRecord {
        row: NetworkRow {
            name: name.into(),
            technology: "wire".into(),
            summary: Some("a \"wire\", ideal".into()),
            topology: None,
            mtu_bytes: 1_500,
            line_bps: Some(1_000_000_000),
            tcp_max_bps: None,
            tcp_expected_bps: None,
            one_way_1b_ns: Some(7),
            overhead: vec![OverheadStep {
                step: "line".into(),
                bps: 1_000_000_000,
                bytes: 1_538,
            }],
        },
        ceilings: vec![Ceiling {
            path: "tcp".into(),
            quantity: Quantity::ThroughputBps,
            phase: Phase::Warm,
            size_bytes: None,
            value: u64::MAX,
        }],
        attachment: Some("tap".into()),
        backpressure: Some(Backpressure::Gate),
        spec: Some("name = 'wire'\n".into()),
    }
}

pub fn head(id: &str) -> RunHead {
    RunHead {
        id: id.into(),
        command: "assess --network wire".into(),
        plan: "[testbed]\nkind = \"lab\"\n".into(),
        seed: u64::MAX,
        version: "0.1.0".into(),
        began_unix_ns: 1_795_000_000_000_000_000,
        ended_unix_ns: None,
        state: RunState::Open,
    }
}

/// A run with `cells` and no launches.
pub fn planned(id: &str, cells: Vec<CellRecord>) -> Run {
    let host = |name: &str, clock| HostRecord {
        name: name.into(),
        address: "10.9.0.1".into(),
        facts: HostFacts {
            hostname: name.into(),
            kernel: "6.18".into(),
            cpus: 2,
            memory_bytes: Some(u64::MAX),
            settings: Settings::from_iter([(Setting::TcpSack, "1")]),
            ..Default::default()
        },
        clock,
    };
    let clock = ClockRecord {
        offset_ns: -77,
        drift_ppb: None,
        bound_ns: 12,
    };
    Run {
        head: head(id),
        hosts: vec![host("h1", None), host("h2", Some(clock))],
        networks: vec![network("wire"), network("atm-oc3c:vc=svc")],
        cells,
        launches: Vec::new(),
        events: vec![EventRecord {
            at_unix_ns: 5,
            kind: "resumed".into(),
            text: "repetitions missing: 3".into(),
        }],
        warnings: vec!["more pollers than CPUs, \"sic\"".into()],
    }
}

/// A run with something of everything.
pub fn full(id: &str) -> Run {
    let latency = cell("latency", 1, 2);
    let startup = cell("startup", 8, 2);
    let throughput = cell("throughput", 1 << 20, 2);
    let skipped = CellRecord {
        skipped: Some("no ATM here".into()),
        ..cell("latency", 64, 2)
    };
    let step = |step, samples: [u64; 3]| Measurement {
        touched: None,
        step: Some(step),
        ..measurement(Quantity::StartupNs, Phase::Cold, samples)
    };
    let mut run = planned(
        id,
        vec![
            latency.clone(),
            startup.clone(),
            throughput.clone(),
            skipped,
        ],
    );
    for index in 0..2 {
        let many = (0..12_000).map(|n| 20_000 + (n * 7_919) % 5_003 + index);
        let mut disturbed = launch(
            &latency,
            index,
            vec![
                measurement(Quantity::LatencyNs, Phase::Warm, many),
                measurement(Quantity::LatencyNs, Phase::Cold, [300_000 + index]),
            ],
        );
        disturbed.disturbances = vec![Disturbance {
            source: Disturber::Emulation,
            host: "h2".into(),
            interface: Some("eth0".into()),
            from_unix_ns: 1_795_000_000_100_000_000,
            to_unix_ns: 1_795_000_000_100_700_000,
            most_ns: 600_000,
            events: 3,
        }];
        run.launches.push(disturbed);
        run.launches.push(launch(
            &startup,
            index,
            vec![
                step(Step::Idle, [90, 91, 92]),
                step(Step::Connect, [70, 71, 72]),
                step(Step::First, [80, 81, 82]),
                without(
                    Step::Neighbour,
                    "may not flush the neighbour table: run as root",
                ),
            ],
        ));
    }
    run.launches.push(launch(
        &throughput,
        0,
        vec![
            measurement(Quantity::ThroughputBps, Phase::Warm, [941_000_000]),
            measurement(Quantity::CpuSrcNsPerByte, Phase::Warm, [1_250]),
            measurement(Quantity::BusyShare, Phase::Warm, [999_999]),
        ],
    ));
    run.launches.push(failed(
        &throughput,
        1,
        "h2: connection reset by peer, at \"send\"\nafter 3 s",
    ));
    run
}

/// A launch that measured all these cells, with a sample of each.
pub fn launch_of(cells: &[CellRecord], index: u64) -> LaunchRecord {
    let one = |cell: &CellRecord| {
        let sample = measurement(Quantity::LatencyNs, Phase::Warm, [cell.factors.size_bytes]);
        launch(cell, index, vec![sample])
    };
    let mut all = one(&cells[0]);
    let others = cells[1..].iter().flat_map(|cell| one(cell).results);
    all.results.extend(others);
    all
}

/// What is printed of a run, by a command that adds nothing.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(tag = "command")]
pub enum Shown {
    #[serde(rename = "report show")]
    Show,
}

/// The document of a run.
pub fn document(run: &Run) -> Document<Shown> {
    Document::of(
        Shown::Show,
        run,
        Vec::new(),
        Judgement::none("a test judges nothing"),
    )
}
