//! `sonde lab check`: the emulation itself measured: rate, delay, lateness, frames a second.
//!
//! Model:   a plan of two networks, the one that is checked and a `wire` whose delay is the model's one-way time, measured and kept
//!          as any other, between h1 and h2, of a site between two of its hosts. Delay: the round trip of 1 byte on the one against the same on the other, all on one
//!          CPU; what hosts cost is in both and cancels. Rate: a blast of full datagrams against the model's own, and a TCP stream
//!          against the model's kernel-like sender. Frames a second: a blast of small datagrams over the wire, which is this
//!          machine's limit and not the network's. All is worked out from the run; a figure is the median of its launches' medians.
//! Units:   nanoseconds, bits a second, frames a second.
//! Checked: `tests/lab_emulation.rs`; `bounds_are_kept_or_missed`, `the_plan_has_what_the_model_bounds`.

use crate::any_path::AnyPath;
use crate::campaign::Silent;
use crate::cli::Common;
use crate::document::Command;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::{self, Measured};
use crate::model::Modelled;
use crate::networks::{mbit, micros};
use crate::output::{self, say};
use crate::plan::{DEFAULT_NETWORK, NetworkPlan, Plan, ProbeKind, ProbePlan};
use crate::source::Searches;
use crate::testbed;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{CellRecord, NetworkRecord, Phase, Quantity, Run, Verdict};
use sonde_report::{counted, sheet};
use sonde_sys::tell;
use sonde_units::Span;
use std::ops::ControlFlow;

/// User bytes of the small datagrams.
const SMALL: u64 = 64;
const SMALL_TEXT: &str = "64";
/// Bounds of the product: 1.5 % of the rate; 10 us or 3 % of the round trip.
const RATE_PER_MILLE: u64 = 15;
const DELAY_FLOOR_NS: u64 = 10_000;
const DELAY_PER_MILLE: u64 = 30;
/// Round trips of a launch.
const TRIPS: u64 = 1_000;
/// Launches of each measurement, where nothing else is said.
const LAUNCHES: u64 = 3;

/// What to check.
pub struct Task {
    /// The plan of [`plan`].
    pub measurement: measure::Task,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Figure {
    /// The round trip of 1 byte, in nanoseconds.
    RoundTripNs,
    /// A stream of full datagrams, in bits a second of user data.
    UdpBps,
    /// A TCP stream, in bits a second of user data.
    TcpBps,
    /// Small datagrams over the wire, frames a second.
    FramesPerS,
}

use Figure::{FramesPerS, RoundTripNs, TcpBps, UdpBps};

/// One figure beside what it should be.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CheckLine")]
struct Line {
    /// What it is about.
    figure: Figure,
    /// Null where no launch gave it.
    measured: Option<u64>,
    /// Of the round trip what was measured on the wire, else the model's; null where there is none.
    model: Option<u64>,
    /// Whether it keeps its bound; null where there is none.
    kept: Option<bool>,
    /// CPU time of the switch, for each frame that it delivered.
    switch_ns_per_frame: Option<u64>,
    /// Of all launches together.
    verdict: Option<Verdict>,
}

/// What is told of an emulation.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EmulationCheck")]
pub struct Check<'a> {
    /// The network that is checked.
    network: &'a str,
    /// How many hosts.
    hosts: usize,
    /// By what they are attached.
    attachment: Option<&'a str>,
    /// Launches of each measurement.
    launches: u64,
    /// Each figure beside what it should be.
    lines: Vec<Line>,
}

/// What is measured to check a network, and to be resumed by the same command.
///
/// # Errors
/// The network is none, or no frame passes it.
pub fn plan(common: &Common) -> Result<Plan, Failure> {
    let network = match (common.networks().first(), common.sites.first()) {
        (_, Some(site)) => NetworkPlan::site(site),
        (network, None) => NetworkPlan::lab(network.map_or(DEFAULT_NETWORK, String::as_str)),
    };
    if !network.site && common.between.is_some() {
        return Err(Failure::usage(
            "a network is checked between h1 and h2: leave `--between` out, or name a site by `--site`",
        ));
    }
    let model = Modelled::named(&network, &common.testbed())?;
    if let Some(host) = model.sender_on() {
        return Err(Failure::usage(format!(
            "host {host} of {} sends on by its own kernel, whose time no model has: measure it by `sonde probe latency --site {}`",
            model.name(),
            network.name
        )));
    }
    let one_way = model.one_way_1b()?;
    // A whole number of nanoseconds can be written as a knob.
    let wire = NetworkPlan::lab(&format!("wire:delay={}", Span::nanos(one_way.as_nanos())));
    let wire_spec = testbed::network(&wire.name)?;
    let probe = |kind, path: AnyPath, size: &str, on: &NetworkPlan| {
        let mut probe = ProbePlan::new(kind, &[path], &[size]);
        probe.networks = vec![on.name.clone()];
        probe.budget = Some(Span::secs(1));
        probe
    };
    // A wire of this very delay is its own measure.
    let wire = if wire_spec.name == model.name() {
        network.clone()
    } else {
        wire
    };
    let mut trips = probe(ProbeKind::Latency, AnyPath::UDP, "1", &network);
    if wire.name != network.name {
        trips.networks.push(wire.name.clone());
    }
    (trips.samples, trips.budget) = (Some(TRIPS), Some(Span::millis(500)));
    let mut probes = vec![trips];
    if model.line().is_some() {
        // What has no rate is bounded by nothing.
        probes.push(probe(ProbeKind::Throughput, AnyPath::UDP, "mtu", &network));
        probes.push(probe(ProbeKind::Throughput, AnyPath::TCP, "1MiB", &network));
    }
    probes.push(probe(
        ProbeKind::Throughput,
        AnyPath::UDP,
        SMALL_TEXT,
        &wire,
    ));
    let mut plan = common.plan(probes);
    if !network.site {
        // The model's times are of these two; of a site they are of its path.
        plan.testbed.between = Some("h1>h2".into());
    }
    plan.networks = vec![network, wire];
    plan.networks.dedup_by(|one, other| one.name == other.name);
    // How much this machine is disturbed is what is asked.
    plan.repeat.again = 0;
    if !common.effort.is_chosen() {
        (plan.repeat.launches, plan.repeat.max) = (LAUNCHES, LAUNCHES);
    }
    Ok(plan)
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

impl Task {
    /// Does it; the exit code: 1 where a bound is not kept or the emulation was not true to the model.
    ///
    /// # Errors
    /// What could not be measured, or kept.
    pub fn run(mut self) -> Result<i32, Failure> {
        if self.measurement.is_only_printed() {
            return self.measurement.print();
        }
        match self
            .measurement
            .measured(self.measurement.observer(Silent), &mut Searches)?
        {
            ControlFlow::Break(code) => Ok(code),
            ControlFlow::Continue(measured) => self.finish(&measured),
        }
    }

    fn finish(&self, measured: &Measured) -> Result<i32, Failure> {
        let run = &measured.run;
        if let Some(reason) = self.measurement.plan.all_skipped(run) {
            return Err(Failure::cannot(reason));
        }
        let check = Check::of(run, &self.measurement.plan)?;
        let outcome = check.outcome(Outcome::of(run, self.measurement.strict));
        let command = Command::LabCheck(&check);
        let print = || check.print();
        self.measurement.show(measured, &outcome, command, print)?;
        self.measurement.say_kept(measured)?;
        if !outcome.is_measured {
            tell!("sonde: no repetition gave a figure");
        }
        self.measurement.ended(run, outcome)
    }
}

impl<'a> Check<'a> {
    fn of(run: &'a Run, plan: &Plan) -> Result<Self, Failure> {
        let (Some(network), Some(wire)) = (run.networks.first(), run.networks.last()) else {
            return Err(no_check(run));
        };
        let spec = network.spec.as_deref().zip(plan.networks.first());
        let (spec, planned) = spec.ok_or_else(|| no_check(run))?;
        let model = Modelled::described(planned, spec, &plan.testbed)?;
        let tcp_bps = network.row.tcp_expected_bps;
        let lines = [
            Line::round_trip(run, network, wire),
            Line::rate(run, UdpBps, network, model.blast_bps()),
            Line::rate(run, TcpBps, network, tcp_bps),
            Line::frames(run, wire),
        ];
        let lines: Vec<Line> = lines.into_iter().flatten().collect();
        let first = run.cells.first().filter(|_| !lines.is_empty());
        let first = first.ok_or_else(|| no_check(run))?;
        Ok(Self {
            network: &network.row.name,
            hosts: first.factors.hosts.len(),
            attachment: network.attachment.as_deref(),
            launches: first.launches,
            lines,
        })
    }

    /// Those whose verdict counts: the last line loads the switch as far as it goes, and its verdict is a limit of the machine, not of
    /// the network.
    fn judged(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.figure != FramesPerS)
    }

    /// What became of the run: a figure that misses its bound, or whose verdict failed, has failed.
    fn outcome(&self, outcome: Outcome) -> Outcome {
        let mut outcome = Outcome {
            is_measured: self.lines.iter().any(|line| line.measured.is_some()),
            is_judged: true,
            ..outcome
        };
        let bad = self.judged().filter(|line| !line.is_good());
        let bad = bad.map(|line| format!("{} is out of bounds", line.figure.name()));
        outcome.failed.extend(bad);
        outcome
    }

    fn print(&self) {
        const HEADS: [&str; 10] = [
            "",
            "measured",
            "model",
            "error",
            "bound",
            "lateness p50 us",
            "p99",
            "max",
            "switch us/frame",
            "verdict",
        ];
        say!(
            "{}: {} hosts attached by {}, {}",
            self.network,
            self.hosts,
            self.attachment.unwrap_or_default(),
            counted(self.launches, "repetition")
        );
        let lines = self.lines.iter().map(Line::shown);
        say!("{}", sheet(&HEADS, lines).text(output::width()));
        for line in self.judged() {
            let reasons = line.verdict.iter().flat_map(|verdict| &verdict.reasons);
            reasons.for_each(|why| say!("- {}: {why}", line.figure.name()));
        }
    }
}

fn no_check(run: &Run) -> Failure {
    let id = &run.head.id;
    Failure::cannot(format!(
        "the run {id} is not a check of a lab: `sonde report show {id}` shows it"
    ))
}

impl Figure {
    const fn name(self) -> &'static str {
        match self {
            RoundTripNs => "round trip of 1 B, us",
            UdpBps => "UDP Mb/s",
            TcpBps => "TCP Mb/s",
            FramesPerS => "64 B frames/s, wire",
        }
    }

    /// The quantity of the launches that it is made of.
    const fn quantity(self) -> Quantity {
        match self {
            RoundTripNs => Quantity::LatencyNs,
            UdpBps | TcpBps | FramesPerS => Quantity::ThroughputBps,
        }
    }

    /// Whether it is made of the launches of a cell.
    fn is_of(self, cell: &CellRecord) -> bool {
        let factors = &cell.factors;
        let (probe, path, is_small) = match self {
            RoundTripNs => ("latency", "udp", true),
            UdpBps => ("throughput", "udp", false),
            TcpBps => ("throughput", "tcp", false),
            FramesPerS => ("throughput", "udp", true),
        };
        factors.probe == probe && factors.path == path && (factors.size_bytes <= SMALL) == is_small
    }

    /// Whether what was measured is as near to the model as it has to be.
    fn keeps(self, measured: u64, model: u64) -> bool {
        let error = measured.abs_diff(model);
        match self {
            RoundTripNs => error <= DELAY_FLOOR_NS.max(model * DELAY_PER_MILLE / 1_000),
            _ => error * 1_000 <= model * RATE_PER_MILLE,
        }
    }
}

/// What the launches of a cell gave, and what the switch did meanwhile.
struct Launches {
    /// The median of the launches' medians.
    median: Option<u64>,
    switch_ns_per_frame: Option<u64>,
    verdict: Option<Verdict>,
}

impl Launches {
    /// None where the run has no such cell on the network.
    fn of(run: &Run, figure: Figure, network: &NetworkRecord) -> Option<Self> {
        let is_here =
            |cell: &&CellRecord| cell.factors.network == network.row.name && figure.is_of(cell);
        let cell = run.cells.iter().find(is_here)?;
        let all = || {
            let launches = run.repetitions_of(&cell.id);
            launches.filter(|one| one.succeeded())
        };
        let samples = all().filter_map(|one| one.result.samples(figure.quantity(), Phase::Warm));
        let verdict = Verdict::merged(all().filter_map(|one| one.launch.verdict.as_ref()));
        let cpu_ns = all().map(|one| one.launch.evidence.emulation.switch_cpu_ns);
        let cpu_ns: Option<u64> = cpu_ns.sum();
        let deliveries = verdict.as_ref().map(|verdict| verdict.deliveries);
        Some(Self {
            median: median(samples.filter_map(|series| series.median()).collect()),
            switch_ns_per_frame: cpu_ns
                .zip(deliveries)
                .and_then(|(cpu_ns, deliveries)| cpu_ns.checked_div(deliveries)),
            verdict,
        })
    }

    fn line(self, figure: Figure, measured: Option<u64>, model: Option<u64>) -> Line {
        let kept = measured.zip(model);
        Line {
            figure,
            measured,
            model,
            kept: kept.map(|(measured, model)| figure.keeps(measured, model)),
            switch_ns_per_frame: self.switch_ns_per_frame,
            verdict: self.verdict,
        }
    }
}

impl Line {
    fn round_trip(run: &Run, network: &NetworkRecord, wire: &NetworkRecord) -> Option<Self> {
        let trip = |launches: &Launches| launches.median.map(|half| 2 * half);
        let here = Launches::of(run, RoundTripNs, network)?;
        let there = Launches::of(run, RoundTripNs, wire);
        let there = there.filter(|_| wire.row.name != network.row.name);
        let measured = trip(&here);
        Some(here.line(RoundTripNs, measured, there.as_ref().and_then(trip)))
    }

    /// None where the model has no rate.
    fn rate(run: &Run, of: Figure, network: &NetworkRecord, model: Option<u64>) -> Option<Self> {
        model?;
        let launches = Launches::of(run, of, network)?;
        let measured = launches.median;
        Some(launches.line(of, measured, model))
    }

    fn frames(run: &Run, wire: &NetworkRecord) -> Option<Self> {
        let launches = Launches::of(run, FramesPerS, wire)?;
        let measured = launches.median.map(|bps| bps / (8 * SMALL));
        Some(launches.line(FramesPerS, measured, None))
    }

    fn is_good(&self) -> bool {
        let is_true = self.verdict.as_ref().is_some_and(Verdict::passed);
        self.measured.is_some() && self.kept != Some(false) && is_true
    }

    fn shown(&self) -> Vec<String> {
        let dash = || "-".to_owned();
        let value = |value: Option<u64>| match self.figure {
            RoundTripNs => micros(value),
            UdpBps | TcpBps => mbit(value),
            FramesPerS => value.map_or_else(dash, |value| value.to_string()),
        };
        let both = self.measured.zip(self.model);
        let error = both.map_or_else(dash, |(measured, model)| match self.figure {
            RoundTripNs => {
                let sign = if measured < model { "-" } else { "+" };
                format!("{sign}{}", micros(Some(measured.abs_diff(model))))
            }
            _ => percent(measured, model),
        });
        let model = match (self.figure, self.model) {
            (RoundTripNs, Some(_)) => format!("{} on a wire", value(self.model)),
            _ => value(self.model),
        };
        let bound = self.kept.map(|kept| if kept { "kept" } else { "MISSED" });
        let passed = self.verdict.as_ref().map(Verdict::passed);
        let verdict = passed.map(|passed| if passed { "passed" } else { "FAILED" });
        let late = |of: fn(&Verdict) -> Option<u64>| micros(self.verdict.as_ref().and_then(of));
        vec![
            self.figure.name().into(),
            value(self.measured),
            model,
            error,
            bound.unwrap_or("-").into(),
            late(|verdict| verdict.lateness_p50_ns),
            late(|verdict| verdict.lateness_p99_ns),
            late(|verdict| verdict.lateness_max_ns),
            micros(self.switch_ns_per_frame),
            verdict.unwrap_or("-").into(),
        ]
    }
}

/// Signed difference in parts of a hundred, for people.
fn percent(measured: u64, model: u64) -> String {
    let tenths = (i128::from(measured) - i128::from(model)) * 10_000 / i128::from(model.max(1));
    let sign = if tenths < 0 { "-" } else { "+" };
    format!(
        "{sign}{}.{:02} %",
        tenths.unsigned_abs() / 100,
        tenths.unsigned_abs() % 100
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        common: Common,
    }

    fn planned(words: &[&str]) -> Plan {
        let words = [&["check", "--testbed", "lab"], words].concat();
        plan(&Words::parse_from(words).common).unwrap()
    }

    #[test]
    fn the_plan_has_what_the_model_bounds() {
        let plan = planned(&["--network", "ethernet-100"]);
        plan.check().unwrap();
        let names: Vec<&str> = plan.networks.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names.len(), 2);
        assert!(names[1].starts_with("wire:delay="), "{names:?}");
        assert_eq!((plan.probes.len(), plan.repeat.launches), (4, 3));
        assert_eq!(plan.probes[0].networks, names);
        assert_eq!(Plan::parse(&plan.text().unwrap()).unwrap(), plan);
        let site = planned(&["--site", "two-rooms", "--between", "a1>b1"]);
        site.check().unwrap();
        assert!(site.networks[0].site && !site.networks[1].site);
        assert_eq!(site.testbed.between.as_deref(), Some("a1>b1"));
        assert_eq!(site.probes[1].networks, ["two-rooms"]);
        // A wire has no rate, and one of its own delay beside it would be the same network.
        let wire = planned(&["--network", "wire:delay=10us", "--quick"]);
        assert_eq!((wire.networks.len(), wire.probes.len()), (1, 2));
        assert_eq!(wire.repeat.launches, 2);
    }

    #[test]
    fn bounds_are_kept_or_missed() {
        for (figure, measured, model, kept) in [
            (RoundTripNs, 90_000, 100_000, true),
            (RoundTripNs, 110_001, 100_000, false),
            (RoundTripNs, 10_300_000, 10_000_000, true),
            (RoundTripNs, 10_300_001, 10_000_000, false),
            (TcpBps, 985, 1_000, true),
            (UdpBps, 984, 1_000, false),
        ] {
            assert_eq!(figure.keeps(measured, model), kept, "{figure:?} {measured}");
        }
        assert_eq!(percent(985, 1_000), "-1.50 %");
        assert_eq!(median(vec![3, 1, 2, 9]), Some(2));
        assert_eq!(median(Vec::new()), None);
    }
}
