//! Runs for tests, built by hand: networks, then measurements, each with the state that was set before it.

use std::collections::BTreeMap;

use sonde_measure::{
    Backpressure, Ceiling, CellRecord, CellResult, Evidence, Factors, Fidelity, HostFacts,
    HostRecord, Interference, KnobValues, Lateness, LaunchRecord, Layer, Line, Measurement,
    NetworkRecord, NetworkRow, OverheadStep, Phase, Quantity, Run, RunHead, RunState, Step,
    Testbed, Verdict,
};
use sonde_stats::Series;

/// A line of blocking threads.
pub(crate) fn line(network: &str, path: &str) -> Line {
    Line {
        network: network.into(),
        path: path.into(),
        method: Some("plain".into()),
        wait: Some("block".into()),
        load: None,
        knobs: KnobValues::new(),
    }
}

/// A network without a model.
pub(crate) fn net(name: &str) -> Net {
    Net(NetworkRecord {
        row: NetworkRow {
            name: name.into(),
            technology: "ethernet".into(),
            summary: None,
            topology: Some("star".into()),
            mtu_bytes: 1_500,
            line_bps: None,
            tcp_max_bps: None,
            tcp_expected_bps: None,
            one_way_1b_ns: None,
            overhead: Vec::new(),
        },
        ceilings: Vec::new(),
        attachment: None,
        backpressure: None,
        spec: None,
    })
}

/// A network.
#[derive(Clone)]
pub(crate) struct Net(NetworkRecord);

impl Net {
    pub fn name(&self) -> &str {
        &self.0.row.name
    }

    /// A line of this rate; a stream may reach 94.148 % of it.
    pub fn line(mut self, bps: u64) -> Self {
        self.0.row.line_bps = Some(bps);
        self.tcp_max(bps / 100_000 * 94_148)
    }

    pub fn tcp_max(mut self, bps: u64) -> Self {
        self.0.row.tcp_max_bps = Some(bps);
        self
    }

    pub fn tcp_expected(mut self, bps: u64) -> Self {
        self.0.row.tcp_expected_bps = Some(bps);
        self
    }

    pub fn mtu(mut self, bytes: u64) -> Self {
        self.0.row.mtu_bytes = bytes;
        self
    }

    pub fn technology(mut self, name: &str) -> Self {
        self.0.row.technology = name.into();
        self
    }

    pub fn spec(mut self, text: &str) -> Self {
        self.0.spec = Some(text.into());
        self
    }

    pub fn gated(mut self) -> Self {
        self.0.backpressure = Some(Backpressure::Gate);
        self
    }

    pub fn lossless(self) -> Self {
        self.gated().spec("mtu = 1500\n\n[path]\nloss = \"0\"\n")
    }

    pub fn ceiling(
        mut self,
        path: &str,
        quantity: Quantity,
        size: Option<u64>,
        value: u64,
    ) -> Self {
        self.0.ceilings.push(Ceiling {
            path: path.into(),
            quantity,
            phase: Phase::Warm,
            size_bytes: size,
            value,
        });
        self
    }
}

/// A run in the making.
pub(crate) struct Runs {
    run: Run,
    method: String,
    wait: String,
    profile: String,
    load: Option<String>,
    settings: BTreeMap<String, String>,
    knobs: KnobValues,
    verdict: Option<Verdict>,
    disturbance: Interference,
    spread: f64,
    launches: u64,
    together: bool,
    hosts: u64,
    clock: u64,
    last: String,
}

/// What a measurement is of.
struct Of<'a> {
    probe: &'a str,
    mode: Option<&'a str>,
    network: &'a str,
    path: &'a str,
    size: u64,
    quantity: Quantity,
    phase: Phase,
    step: Option<Step>,
}

impl Runs {
    pub fn new() -> Self {
        let host = |name: &str| HostRecord {
            name: name.into(),
            address: "10.9.0.1".into(),
            facts: HostFacts {
                hostname: name.into(),
                kernel: "6.18.0".into(),
                cpu: Some("a CPU".into()),
                cpus: 2,
                ..HostFacts::default()
            },
            clock: None,
        };
        Self {
            run: Run {
                head: RunHead {
                    id: "20261121T043302Z-1f09c3".into(),
                    command: "assess".into(),
                    plan: String::new(),
                    seed: 1,
                    version: "0.1.0".into(),
                    began_unix_ns: 1_795_235_582_000_000_000,
                    ended_unix_ns: Some(1_795_235_762_000_000_000),
                    state: RunState::Complete,
                },
                hosts: vec![host("h1"), host("h2")],
                networks: Vec::new(),
                cells: Vec::new(),
                launches: Vec::new(),
                events: Vec::new(),
                warnings: Vec::new(),
            },
            method: "plain".into(),
            wait: "block".into(),
            profile: "modern".into(),
            load: None,
            settings: BTreeMap::new(),
            knobs: KnobValues::new(),
            verdict: None,
            disturbance: Interference::default(),
            spread: 0.0,
            launches: 6,
            together: false,
            hosts: 2,
            clock: 0,
            last: String::new(),
        }
    }

    pub fn network(mut self, net: Net) -> Self {
        self.run.networks.push(net.0);
        self
    }

    pub fn method(mut self, method: &str) -> Self {
        self.method = method.into();
        self
    }

    pub fn wait(mut self, wait: &str) -> Self {
        self.wait = wait.into();
        self
    }

    pub fn profile(mut self, profile: &str) -> Self {
        self.profile = profile.into();
        self
    }

    /// Others send in the network: what is measured from here on is under this load.
    pub fn load(mut self, load: &str) -> Self {
        self.load = Some(load.into());
        self
    }

    /// Without a load from here on.
    pub fn idle(mut self) -> Self {
        self.load = None;
        self
    }

    /// What each launch from here on sees, by the name and text of an old store.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.into(), value.into());
        self
    }

    /// A knob of what is measured from here on.
    pub fn knob(mut self, name: &str, value: &str) -> Self {
        self.knobs.insert(name.into(), value.into());
        self
    }

    pub fn verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = Some(verdict);
        self
    }

    /// What disturbs each end of every launch.
    pub fn disturbed(mut self, change: impl FnOnce(&mut Interference)) -> Self {
        change(&mut self.disturbance);
        self
    }

    /// The last launch of a cell is so much larger than the others.
    pub fn spread(mut self, spread: f64) -> Self {
        self.spread = spread;
        self
    }

    pub fn launches(mut self, launches: u64) -> Self {
        self.launches = launches;
        self
    }

    /// The k-th launches of all cells are one.
    pub fn together(mut self) -> Self {
        self.together = true;
        self
    }

    /// The testbed of what is measured from here on has so many hosts.
    pub fn on(mut self, hosts: u64) -> Self {
        self.hosts = hosts;
        self
    }

    pub fn done(self) -> Run {
        self.run
    }

    pub fn latency(self, network: &str, path: &str, size: u64, ns: u64) -> Self {
        self.latency_of(network, path, size, &[ns; 20])
    }

    /// Every launch has these samples.
    pub fn latency_of(self, network: &str, path: &str, size: u64, samples: &[u64]) -> Self {
        let of = Of::latency(network, path, size);
        self.measured(&of, samples)
    }

    /// A launch for each pair.
    pub fn latency_between(
        mut self,
        network: &str,
        path: &str,
        size: u64,
        pairs: &[(&str, &str)],
        ns: impl Fn(&str, &str) -> u64,
    ) -> Self {
        let of = Of::latency(network, path, size);
        let cell = self.cell(&of);
        for (index, (src, dst)) in pairs.iter().enumerate() {
            let mut launch = self.launch(&cell, index as u64);
            (launch.src, launch.dst) = ((*src).into(), (*dst).into());
            let series = &mut launch.results[0].series;
            series.push(of.measurement([ns(src, dst); 20]));
            self.run.launches.push(launch);
        }
        self
    }

    pub fn startup(
        self,
        network: &str,
        path: &str,
        size: u64,
        step: Option<Step>,
        ns: u64,
    ) -> Self {
        let of = Of {
            probe: "startup",
            quantity: Quantity::StartupNs,
            phase: Phase::Cold,
            step,
            ..Of::latency(network, path, size)
        };
        self.measured(&of, &[ns])
    }

    pub fn stream(self, network: &str, path: &str, bps: u64) -> Self {
        self.measured(&Of::rate("stream", network, path, 65_536), &[bps])
    }

    pub fn stream_of(self, network: &str, path: &str, size: u64, bps: u64) -> Self {
        self.measured(&Of::rate("stream", network, path, size), &[bps])
    }

    pub fn message(self, network: &str, path: &str, size: u64, bps: u64) -> Self {
        self.measured(&Of::rate("message", network, path, size), &[bps; 20])
    }

    /// A kernel: its name, class and ranks, as `cg S 4`.
    pub fn kernel(mut self, network: &str, path: &str, what: &str, ns: u64) -> Self {
        let before = self.knobs.clone();
        let named = ["kernel", "class", "ranks"]
            .into_iter()
            .zip(what.split(' '));
        self.knobs
            .extend(named.map(|(name, value)| (name.into(), value.into())));
        let of = Of {
            probe: "npb",
            quantity: Quantity::KernelNs,
            ..Of::latency(network, path, 0)
        };
        let mut runs = self.measured(&of, &[ns]);
        runs.knobs = before;
        runs
    }

    /// Messages of a program: whose, and among how many ranks, as `upc:cg 4`.
    pub fn messages(mut self, network: &str, path: &str, what: &str, ns: u64) -> Self {
        let before = self.knobs.clone();
        let named = ["of", "ranks"].into_iter().zip(what.split(' '));
        self.knobs
            .extend(named.map(|(name, value)| (name.into(), value.into())));
        let of = Of {
            probe: "messages",
            quantity: Quantity::ReplayNs,
            ..Of::latency(network, path, 0)
        };
        let mut runs = self.measured(&of, &[ns]);
        runs.knobs = before;
        runs
    }

    /// A check of a library: among how many ranks, and how much of it was checked.
    pub fn check(
        mut self,
        network: &str,
        path: &str,
        ranks: &str,
        [calls, messages]: [u64; 2],
    ) -> Self {
        let before = self.knobs.clone();
        self.knobs.insert("ranks".into(), ranks.into());
        let of = Of {
            probe: "check",
            quantity: Quantity::Checks,
            ..Of::latency(network, path, 0)
        };
        let mut runs = self.spread(0.0).measured(&of, &[calls + messages]);
        let made = runs.run.launches.last_mut().expect("a launch was measured");
        let check = &mut made.evidence.check;
        (check.collectives, check.messages) = (Some(calls), Some(messages));
        check.by_library = Some(0);
        runs.knobs = before;
        runs
    }

    /// A program under a placement: its time among four ranks.
    pub fn placed(mut self, network: &str, placement: &str, ns: u64) -> Self {
        let before = self.knobs.clone();
        let named = [("placement", placement), ("ranks", "4")];
        self.knobs
            .extend(named.map(|(name, value)| (name.into(), value.into())));
        let of = Of {
            probe: "place",
            quantity: Quantity::ProgramNs,
            ..Of::latency(network, "openmpi:tcp", 0)
        };
        let mut runs = self.measured(&of, &[ns]);
        runs.knobs = before;
        runs
    }

    /// Messages that were cut: their one-way times.
    pub fn anatomy(self, network: &str, path: &str, size: u64, one_way_ns: &[u64]) -> Self {
        let of = Of {
            probe: "anatomy",
            quantity: Quantity::OneWayNs,
            ..Of::latency(network, path, size)
        };
        self.spread(0.0).measured(&of, one_way_ns)
    }

    /// Another quantity of the last cell, of each of its messages.
    pub fn beside_each(mut self, quantity: Quantity, values: &[u64]) -> Self {
        let results = self
            .run
            .launches
            .iter_mut()
            .flat_map(|one| &mut one.results);
        for result in results.filter(|one| one.cell == self.last) {
            result.series.push(Measurement {
                touched: None,
                quantity,
                phase: Phase::Warm,
                step: None,
                series: Series::from_iter(values.iter().copied()),
                reason: None,
            });
        }
        self
    }

    /// Another quantity of the last cell, as the integer that a series holds.
    pub fn beside(self, quantity: Quantity, value: u64) -> Self {
        self.beside_each(quantity, &[value])
    }

    pub fn failed_cell(mut self, network: &str, path: &str, reason: &str) -> Self {
        let cell = self.cell(&Of::latency(network, path, 8));
        for index in 0..self.launches {
            let mut launch = self.launch(&cell, index);
            launch.results[0].failure = Some(reason.into());
            self.run.launches.push(launch);
        }
        self
    }

    fn measured(mut self, of: &Of<'_>, samples: &[u64]) -> Self {
        let cell = self.cell(of);
        for index in 0..self.launches {
            let last = index + 1 == self.launches;
            let scale = if last { 1.0 + self.spread } else { 1.0 };
            let samples = samples.iter().map(|value| (*value as f64 * scale) as u64);
            let measurement = of.measurement(samples);
            self.result(&cell, index).series.push(measurement);
        }
        self
    }

    /// What launch number `index` gave for a cell, to be filled.
    fn result(&mut self, cell: &str, index: u64) -> &mut CellResult {
        let is_it = |one: &CellResult| one.cell == cell && one.index == index;
        let launches = &self.run.launches;
        let known = launches
            .iter()
            .position(|one| one.results.iter().any(is_it));
        let at = known.unwrap_or_else(|| {
            let mut launch = self.launch(cell, index);
            let launches = &mut self.run.launches;
            let cells = &self.run.cells;
            let line = |id: &str| {
                let of = cells.iter().find(|one| one.id == id)?;
                Some((of.factors.line(), &of.factors.probe, &of.factors.mode))
            };
            let same = launches.iter().position(|one| {
                one.began_unix_ns == launch.began_unix_ns
                    && line(&one.results[0].cell) == line(cell)
            });
            match same.filter(|_| self.together) {
                Some(at) => {
                    launches[at].results.append(&mut launch.results);
                    at
                }
                None => {
                    launches.push(launch);
                    launches.len() - 1
                }
            }
        });
        let results = &mut self.run.launches[at].results;
        results
            .iter_mut()
            .find(|one| is_it(one))
            .expect("it is there, or was made")
    }

    fn cell(&mut self, of: &Of<'_>) -> String {
        let factors = Factors {
            probe: of.probe.into(),
            mode: of.mode.map(Into::into),
            layer: match of.path.contains(':') {
                _ if ["npb", "messages"].contains(&of.probe) => Layer::Application,
                true => Layer::Library,
                false => Layer::Transport,
            },
            path: of.path.into(),
            method: Some(self.method.clone()),
            knobs: self.knobs.clone(),
            wait: Some(self.wait.clone()),
            network: of.network.into(),
            testbed: Testbed::Lab,
            hosts: (1..=self.hosts).map(|host| format!("h{host}")).collect(),
            profile: Some(self.profile.clone()),
            attachment: Some("tap".into()),
            load: self.load.clone(),
            size_bytes: of.size,
        };
        let id = factors.cell().unwrap();
        if self.run.cells.iter().all(|cell| cell.id != id) {
            self.run.cells.push(CellRecord {
                id: id.clone(),
                factors,
                launches: self.launches,
                skipped: None,
            });
        }
        self.last.clone_from(&id);
        id
    }

    fn launch(&mut self, cell: &str, index: u64) -> LaunchRecord {
        self.clock += 1;
        let at = if self.together { index } else { self.clock };
        let (src, dst) = if index % 2 == 0 {
            ("h1", "h2")
        } else {
            ("h2", "h1")
        };
        let watched = |host: &str| Interference {
            host: host.into(),
            ..self.disturbance.clone()
        };
        let of = self.run.cells.iter().find(|one| one.id == cell);
        let size_bytes = of.unwrap().factors.size_bytes;
        let result = CellResult {
            cell: cell.into(),
            index,
            ..CellResult::default()
        };
        LaunchRecord {
            src: src.into(),
            dst: dst.into(),
            began_unix_ns: self.run.head.began_unix_ns + at * 1_000_000_000,
            took_ns: 1_000_000,
            results: vec![result],
            evidence: Evidence::read(self.settings.clone(), size_bytes).unwrap(),
            interference: vec![watched(src), watched(dst)],
            verdict: self.verdict.clone(),
            disturbances: Vec::new(),
            set_aside: false,
        }
    }
}

impl<'a> Of<'a> {
    fn latency(network: &'a str, path: &'a str, size: u64) -> Self {
        Self {
            probe: "latency",
            mode: None,
            network,
            path,
            size,
            quantity: Quantity::LatencyNs,
            phase: Phase::Warm,
            step: None,
        }
    }

    fn rate(mode: &'a str, network: &'a str, path: &'a str, size: u64) -> Self {
        Self {
            probe: "throughput",
            mode: Some(mode),
            quantity: Quantity::ThroughputBps,
            ..Self::latency(network, path, size)
        }
    }

    fn measurement(&self, samples: impl IntoIterator<Item = u64>) -> Measurement {
        Measurement {
            touched: None,
            quantity: self.quantity,
            phase: self.phase,
            step: self.step,
            series: samples.into_iter().collect(),
            reason: None,
        }
    }
}

/// As many samples, skewed as latencies are.
fn skewed(centre: u64, samples: u64) -> Vec<u64> {
    let mut state = centre.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..samples)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let uniform = (state >> 33) as f64 / f64::from(1u32 << 31);
            (centre as f64 * (1.0 + 0.05 / (1.02 - uniform))) as u64
        })
        .collect()
}

/// The verdict on 10 000 deliveries, so many of them late.
pub(crate) fn verdict(late: u64) -> Verdict {
    let lateness = Lateness {
        count: 10_000,
        p99_ns: Some(120_000),
        ..Lateness::default()
    };
    judged(&lateness, late)
}

fn judged(lateness: &Lateness, late: u64) -> Verdict {
    let fidelity = Fidelity {
        late,
        bound_ns: Some(50_000),
        ..Fidelity::default()
    };
    Verdict::judge(lateness, fidelity)
}

/// The usual assessment: loopback and five networks, TCP and UDP.
pub(crate) fn assessment() -> Run {
    let lateness = Lateness {
        count: 123_456,
        p50_ns: Some(1_234),
        p99_ns: Some(12_345),
        max_ns: Some(1_234_567),
        ..Lateness::default()
    };
    let networks: [(&str, u64, u64); 6] = [
        ("loopback", 65_536, 0),
        ("wire", 1_500, 0),
        ("ethernet-100", 1_500, 100_000_000),
        ("ethernet-1g", 1_500, 1_000_000_000),
        ("atm-oc3c", 9_180, 155_520_000),
        ("wan-100m-20ms", 1_500, 100_000_000),
    ];
    let mut runs = Runs::new().verdict(judged(&lateness, 12)).disturbed(|at| {
        at.cpus = 2;
        at.span_ns = 1_000_000_000;
        at.host_cpu_ns = Some(912_345_678);
        at.steal_ns = Some(1_000_000);
        at.involuntary_switches = 3;
    });
    for (name, mtu, bps) in networks {
        runs = assessed(runs, name, mtu, bps);
    }
    runs.done()
}

fn assessed(mut runs: Runs, name: &str, mtu: u64, bps: u64) -> Runs {
    let sizes = |path: &str| {
        let payload = if path == "tcp" { mtu - 52 } else { mtu - 28 };
        [1, 8, 64, 512, payload, payload + 1, 4_096, 16_384, 61_440]
    };
    let mut network = net(name)
        .mtu(mtu)
        .gated()
        .spec(&"key = \"value\"\n".repeat(30));
    if bps > 0 {
        network = network.line(bps).tcp_expected(bps / 100 * 93);
        network.0.row.overhead = ["line", "frame", "ip", "tcp"]
            .map(|step| OverheadStep {
                step: step.into(),
                bps,
                bytes: mtu,
            })
            .to_vec();
    }
    for path in ["tcp", "udp"] {
        for size in sizes(path) {
            network = network.ceiling(path, Quantity::LatencyNs, Some(size), 10_123 + 80 * size);
        }
    }
    runs = runs.network(network);
    for path in ["tcp", "udp"] {
        let steps = [
            None,
            Some(Step::Neighbour),
            Some(Step::Connect),
            Some(Step::First),
            Some(Step::Second),
            Some(Step::Idle),
        ];
        for (at, step) in steps.into_iter().enumerate() {
            runs = runs.startup(name, path, 8, step, 300_123 / (at as u64 + 1));
        }
        for size in sizes(path) {
            runs = runs.latency_of(name, path, size, &skewed(30_123 + 80 * size, 3_000));
            runs = runs.cold_latency(name, path, size, 90_123 + 80 * size);
        }
        let rate = if bps > 0 {
            bps / 100 * 93
        } else {
            9_876_543_210
        };
        runs = runs.stream(name, path, rate);
        let beside: &[Quantity] = if path == "tcp" {
            &[
                Quantity::BusyShare,
                Quantity::RwndLimitedShare,
                Quantity::SndbufLimitedShare,
                Quantity::Retransmits,
            ]
        } else {
            &[
                Quantity::LostShare,
                Quantity::ReorderedShare,
                Quantity::DuplicatedShare,
            ]
        };
        runs = runs
            .beside(Quantity::CpuSrcNsPerByte, 400)
            .beside(Quantity::CpuDstNsPerByte, 500);
        for quantity in beside {
            runs = runs.beside(*quantity, 0);
        }
    }
    for size in [1_024, 8_192, 65_536, 524_288] {
        let rate = if bps > 0 { bps } else { 9_876_543_210 };
        runs = runs
            .message(name, "tcp", size, rate / (1 + 20_000 / size))
            .beside(Quantity::CpuSrcNsPerByte, 450)
            .beside(Quantity::CpuDstNsPerByte, 550);
    }
    runs
}

impl Runs {
    fn cold_latency(self, network: &str, path: &str, size: u64, ns: u64) -> Self {
        let of = Of {
            phase: Phase::Cold,
            ..Of::latency(network, path, size)
        };
        self.measured(&of, &[ns])
    }
}

/// All pairs of so many hosts, by latency.
pub(crate) fn all_pairs(hosts: usize) -> Run {
    let mut run = Runs::new()
        .network(net("lan"))
        .launches(1)
        .latency("lan", "tcp", 64, 50_000)
        .done();
    let (cell, launch) = (run.cells.remove(0), run.launches.remove(0));
    let host = run.hosts.remove(0);
    run.hosts = (0..hosts)
        .map(|number| HostRecord {
            name: format!("node{number:04}"),
            ..host.clone()
        })
        .collect();
    for src in 0..hosts {
        for dst in (0..hosts).filter(|dst| *dst != src) {
            let names = [src, dst].map(|host| run.hosts[host].name.clone());
            let (mut cell, mut launch) = (cell.clone(), launch.clone());
            cell.factors.probe = "pattern".into();
            cell.factors.mode = Some("latency".into());
            cell.factors.knobs = [
                ("pattern", "all-pairs".to_owned()),
                ("flow", format!("{}>{}", names[0], names[1])),
            ]
            .map(|(name, value)| (name.into(), value))
            .into();
            cell.id = format!("{src}-{dst}");
            launch.results[0].cell.clone_from(&cell.id);
            [launch.src, launch.dst] = names;
            run.cells.push(cell);
            run.launches.push(launch);
        }
    }
    run
}
