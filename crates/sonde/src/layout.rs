//! A plan laid out on its networks: the blocks that are launched, their cells, and how long they take.
//!
//! Model:   a block is one (network, path, probe, wait, load); a launch of it measures all its sizes, each of which is a cell.
//! Units:   estimates are guesses for people and for the progress bar; nothing measured depends on them.
//! Checked: `references_take_little_of_the_time`, `blocks_are_the_product`, `a_cell_is_its_factors`, `a_knob_is_set_in_one_place`, `the_usual_plan_takes_three_minutes`,
//!          `all_pairs_of_four_hosts_take_ten_seconds`.

mod estimate;
mod network;
#[cfg(test)]
pub mod planted;
mod references;
mod together;

use estimate::launch_ns;
pub use network::TestNetwork;
use network::{best_elsewhere, kept_circuits, machines_apart, without_rate};
pub use references::references;

use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::flows::Rounds;
use crate::kernel::KernelRequest;
use crate::library::Ranks;
use crate::model;
use crate::networks;
use crate::pattern;
use crate::plan::{self, Lost, Mode, Plan, ProbeKind, ProbePlan, Work};
use sonde_fleet::Load;
use sonde_lab::Profile;
use sonde_measure::files::{Files, FilesPath};
use sonde_measure::spec::{NO_STAMPS, NO_START};
use sonde_measure::{
    CellRecord, Factors, KnobValues, Knobs, Layer, Method, Path, Probe, Procedure, Quantity, Spec,
    Testbed, Wait,
};
use sonde_probe::host::Setting;
use sonde_probe::library::Task;

/// What is launched as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Where, as an index into the networks.
    pub net: usize,
    /// What a launch of it does.
    pub work: Work,
    /// What is set, by name, as its cells say it.
    pub knobs: KnobValues,
    /// What is set of both hosts meanwhile.
    pub host: Vec<Setting>,
    /// Background traffic meanwhile.
    pub load: Option<Load>,
    /// Launches that the plan wants.
    pub launches: u64,
    /// One cell for each size, in their order.
    pub cells: Vec<CellRecord>,
    /// A guess at the time of a launch.
    pub estimate_ns: u64,
    /// Repeated among the others to see drift, and none of what the plan asks for.
    pub reference: bool,
    /// The hosts that all launches are between, by their index: from the first to the second; none is every pair in turn.
    pub pair: Option<(usize, usize)>,
    /// Below its rate the highest is looked for at which no more is lost.
    pub lost: Option<Lost>,
}

impl Block {
    /// Whether no more than two hosts take part.
    fn is_of_two(&self) -> bool {
        match &self.work {
            Work::Channel(_) => true,
            Work::Ranks(ranks) => ranks.hosts_max() <= 2,
            Work::Rounds(_) => false,
            Work::Together(parts) => parts.iter().all(Self::is_of_two),
        }
    }

    /// Leaves it out, saying why in its cells.
    pub fn skip(&mut self, reason: &str) {
        (self.launches, self.estimate_ns) = (0, 0);
        for cell in &mut self.cells {
            cell.skipped.get_or_insert_with(|| reason.into());
        }
    }

    /// Why it is left out, if it is.
    pub fn skipped(&self) -> Option<&str> {
        self.cells.iter().find_map(|cell| cell.skipped.as_deref())
    }

    /// The specification of the channel, where it is one's.
    pub fn channel(&self) -> Option<&Spec> {
        match &self.work {
            Work::Channel(spec) => Some(spec),
            Work::Ranks(_) | Work::Rounds(_) | Work::Together(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn channel_mut(&mut self) -> Option<&mut Spec> {
        match &mut self.work {
            Work::Channel(spec) => Some(spec),
            Work::Ranks(_) | Work::Rounds(_) | Work::Together(_) => None,
        }
    }

    /// What ranks do, where the path is a library's.
    pub fn ranks(&self) -> Option<&Ranks> {
        match &self.work {
            Work::Ranks(ranks) => Some(ranks),
            Work::Channel(_) | Work::Rounds(_) | Work::Together(_) => None,
        }
    }

    /// What is measured at once; itself where that is nothing else.
    pub fn parts(&self) -> &[Self] {
        match &self.work {
            Work::Together(parts) => parts,
            _ => std::slice::from_ref(self),
        }
    }

    /// The first of what is measured at once: it stands for all of them where one is named.
    fn first(&self) -> &Self {
        self.parts().first().unwrap_or(self)
    }

    /// What all hosts do at once, of a pattern.
    pub fn rounds(&self) -> Option<&Rounds> {
        match &self.work {
            Work::Rounds(rounds) => Some(rounds),
            Work::Channel(_) | Work::Ranks(_) | Work::Together(_) => None,
        }
    }

    /// By which path.
    pub fn path(&self) -> AnyPath {
        match &self.work {
            Work::Channel(spec) => match spec.procedure {
                Procedure::Files(files) => AnyPath::Files(FilesPath {
                    service: files.service,
                    over: spec.path,
                }),
                _ => spec.path.into(),
            },
            Work::Ranks(ranks) => AnyPath::Library(ranks.path),
            Work::Rounds(_) => AnyPath::TCP,
            Work::Together(_) => self.first().path(),
        }
    }

    /// How bytes are handed over.
    pub fn method(&self) -> Method {
        self.channel().map_or(Method::Plain, |spec| spec.method)
    }

    /// How both sides wait.
    pub fn wait(&self) -> Wait {
        match &self.work {
            Work::Channel(spec) => spec.wait,
            Work::Ranks(ranks) => ranks.job.wait,
            Work::Rounds(_) => Wait::Block,
            Work::Together(_) => self.first().wait(),
        }
    }

    /// User bytes in a message; none where these have sizes of their own.
    pub fn sizes_bytes(&self) -> &[u64] {
        match &self.work {
            Work::Channel(spec) => &spec.sizes_bytes,
            Work::Ranks(ranks) => &ranks.job.sizes_bytes,
            Work::Rounds(_) => &[],
            Work::Together(_) => self.first().sizes_bytes(),
        }
    }

    /// The kind of measurement.
    pub fn kind(&self) -> ProbeKind {
        match &self.work {
            Work::Channel(spec) => match spec.probe() {
                Probe::Startup => ProbeKind::Startup,
                Probe::Latency => ProbeKind::Latency,
                Probe::Stream | Probe::Message => ProbeKind::Throughput,
                Probe::Anatomy => ProbeKind::Anatomy,
                Probe::Rate => ProbeKind::Rate,
                Probe::Files => ProbeKind::Files,
            },
            Work::Ranks(ranks) => match ranks.job.task {
                Task::Startup {} => ProbeKind::Startup,
                Task::Latency(_) => ProbeKind::Latency,
                Task::Stream { .. } | Task::Message(_) => ProbeKind::Throughput,
                Task::Batches { .. } => ProbeKind::Rate,
                Task::Collective { .. } => ProbeKind::Collective,
                Task::Npb { .. } => ProbeKind::Npb,
                Task::Messages { .. } => ProbeKind::Messages,
                Task::Check { .. } => ProbeKind::Check,
            },
            Work::Rounds(_) => ProbeKind::Pattern,
            Work::Together(_) => self.first().kind(),
        }
    }

    /// What is measured of files.
    pub fn files(&self) -> Option<&Files> {
        match &self.channel()?.procedure {
            Procedure::Files(files) => Some(files),
            _ => None,
        }
    }

    /// Whether the plan says of which sizes its messages or files are.
    pub fn is_sized(&self) -> bool {
        self.kind().is_sized() && self.files().is_none_or(|files| files.operation.is_sized())
    }

    /// Throughput: of what.
    pub fn mode(&self) -> Option<Mode> {
        match &self.work {
            Work::Channel(spec) => match spec.probe() {
                Probe::Stream => Some(Mode::Stream),
                Probe::Message => Some(Mode::Message),
                _ => None,
            },
            Work::Ranks(ranks) => match ranks.job.task {
                Task::Stream { .. } => Some(Mode::Stream),
                Task::Message(_) => Some(Mode::Message),
                _ => None,
            },
            Work::Rounds(_) => None,
            Work::Together(_) => self.first().mode(),
        }
    }

    /// The same with another value of a channel's knob, and without its cells.
    ///
    /// # Errors
    /// The channel does not take it.
    pub fn with(&self, knob: &str, value: String) -> Result<Self, Failure> {
        let mut block = self.clone();
        block.cells.clear();
        block.knobs.insert(knob.into(), value);
        block.take_knobs()?;
        Ok(block)
    }

    /// Its channel takes the knobs that it has now; of files the hosts do too.
    ///
    /// # Errors
    /// The channel does not take one.
    pub fn take_knobs(&mut self) -> Result<(), Failure> {
        let path = self.path();
        let Work::Channel(spec) = &mut self.work else {
            return Ok(());
        };
        let (hosts, channel) = plan::apart(&self.knobs)?;
        match (&mut spec.procedure, path) {
            (Procedure::Files(files), AnyPath::Files(path)) => {
                let quota = files.quota;
                *files = Files::parse(path, &channel).map_err(Failure::usage)?;
                files.quota = quota;
                self.host = hosts;
                spec.check()
                    .map_err(|error| Failure::usage(format!("{error}: {}", error.remedy)))?;
            }
            _ => spec.knobs = Knobs::parse(&channel).map_err(Failure::usage)?,
        }
        Ok(())
    }

    /// What its rows are about.
    pub fn quantity(&self) -> Quantity {
        if let Work::Together(parts) = &self.work {
            return parts
                .first()
                .map_or(Quantity::ThroughputBps, Self::quantity);
        }
        match self.kind() {
            ProbeKind::Startup => Quantity::StartupNs,
            ProbeKind::Latency => Quantity::LatencyNs,
            ProbeKind::Files if !self.is_sized() => Quantity::RatePerS,
            ProbeKind::Files => Quantity::ThroughputBps,
            // Of a pattern each flow has its own.
            ProbeKind::Throughput | ProbeKind::Pattern => Quantity::ThroughputBps,
            ProbeKind::Anatomy => Quantity::OneWayNs,
            ProbeKind::Rate if self.ranks().is_some() => Quantity::RatePerS,
            ProbeKind::Rate => Quantity::ResponseNs,
            ProbeKind::Collective => Quantity::CollectiveNs,
            ProbeKind::Npb => Quantity::KernelNs,
            ProbeKind::Messages => Quantity::ReplayNs,
            ProbeKind::Check => Quantity::Checks,
        }
    }

    /// Whether the model of the transport beneath bounds it.
    pub fn is_bounded(&self) -> bool {
        let of_times = matches!(self.kind(), ProbeKind::Latency | ProbeKind::Throughput);
        match self.path() {
            AnyPath::Channel(_) => self.rounds().is_none(),
            // What its server takes is no model's.
            AnyPath::Files(_) => false,
            // Its daemons speak by datagrams of their own.
            AnyPath::Library(path) => {
                of_times && path.to_string() != "pvm:default" && !path.is_over_all_networks()
            }
        }
    }
}

/// The number of the block of the same cells, if it is there.
fn same(blocks: &[Block], block: &Block) -> Option<usize> {
    let first = |block: &Block| block.cells.first().map(|cell| cell.id.clone());
    blocks.iter().position(|one| first(one) == first(block))
}

/// Whether [`add`] would have anything launched for a block.
pub fn is_new(blocks: &[Block], block: &Block) -> bool {
    same(blocks, block).is_none_or(|number| blocks[number].launches < block.launches)
}

/// Adds a block, or has that of the same cells launched as often as it asks; its number, none where nothing is new.
pub fn add(blocks: &mut Vec<Block>, block: Block) -> Option<usize> {
    match same(blocks, &block) {
        Some(number) if blocks[number].launches >= block.launches => None,
        Some(number) => {
            let known = &mut blocks[number];
            (known.launches, known.cells) = (block.launches, block.cells);
            Some(number)
        }
        None => {
            blocks.push(block);
            Some(blocks.len() - 1)
        }
    }
}

/// The blocks of a plan on these networks, in the plan's order.
///
/// # Errors
/// A size that is none; a plan without a cell.
pub fn blocks(plan: &Plan, nets: &[TestNetwork]) -> Result<Vec<Block>, Failure> {
    let mut all = Vec::new();
    for (index, net) in nets.iter().enumerate() {
        for probe in &plan.probes {
            if probe.floor && net.testbed != Testbed::Local || !is_on(plan, probe, nets, index) {
                continue;
            }
            if let Some(block) = pattern::block(plan, probe, index, net)? {
                all.push(block);
                continue;
            }
            let loads = if net.model.is_some() || net.testbed == Testbed::Hosts {
                plan.loads()?
            } else {
                vec![None; usize::from(plan.sets().next().is_none())]
            };
            all.extend(of_probe(plan, probe, (nets, index), &loads)?);
        }
    }
    all.extend(together::blocks(plan, nets)?);
    if all.is_empty() {
        return Err(Failure::usage(
            "the plan has no cell: no size that its paths can carry; `--dry-run` shows the cells",
        ));
    }
    Ok(all)
}

/// The blocks of a probe on a network, under each of these loads.
fn of_probe(
    plan: &Plan,
    probe: &ProbePlan,
    (nets, index): (&[TestNetwork], usize),
    loads: &[Option<Load>],
) -> Result<Vec<Block>, Failure> {
    let net = &nets[index];
    let mut all = Vec::new();
    for path in &probe.path {
        let headers = networks::headers(net.profile.unwrap_or(Profile::MODERN));
        let payload = net
            .mtu
            .map(|mtu| model::frame_payload(path.beneath(), mtu, headers));
        let mut sizes = probe.sizes(*path, payload)?;
        let mode = probe.mode();
        if mode == Some(Mode::Stream) && !path.is_lossless() {
            // A stream's datagrams are whole frames: an asked size is cut to what one frame holds.
            sizes = sizes
                .iter()
                .map(|size| payload.map_or(*size, |most| (*size).min(most)))
                .collect();
            sizes.dedup();
        }
        if sizes.is_empty() {
            continue;
        }
        let (sizes, beyond) = fitting(*path, probe.kind, sizes, payload);
        for (method, wait, mut knobs, load) in probe.product(*path, loads) {
            let how = (method, wait);
            let unheld = plan.allow.hold(*path, probe.kind, &mut knobs)?;
            let (host, work) = probe.lower(*path, how, &knobs, sizes.clone(), &plan.repeat)?;
            let mut block = Block {
                net: index,
                work,
                knobs,
                host,
                load,
                launches: launches(plan, probe, net),
                cells: Vec::new(),
                estimate_ns: 0,
                reference: false,
                pair: net.pair(plan)?,
                lost: probe.lost,
            };
            // Where the path carries no size of them, its cells are left out with their reason.
            if let Some(spec) = block.channel().filter(|_| !sizes.is_empty()) {
                spec.check()
                    .map_err(|error| Failure::usage(format!("{error}: {}", error.remedy)))?;
            }
            block.estimate_ns = launch_ns(net, &block)?;
            block.cells = cells(net, &block, &beyond)?;
            let kernel = block.ranks().and_then(|ranks| ranks.kernel.as_ref());
            let refused = kernel.and_then(KernelRequest::refused);
            let refused = unheld.or(refused).or_else(|| without_rate(net, &block));
            let apart = || machines_apart(net, &block).or_else(|| kept_circuits(net, &block));
            let elsewhere = || best_elsewhere(nets, index, &block);
            if let Some(reason) = refused.or_else(apart).or_else(elsewhere) {
                block.skip(&reason);
            }
            all.push(block);
        }
    }
    Ok(all)
}

/// Whether a probe is measured on a network. The plan's networks are the last of the networks, in its order.
fn is_on(plan: &Plan, probe: &ProbePlan, nets: &[TestNetwork], index: usize) -> bool {
    let others = nets.len().saturating_sub(plan.networks.len());
    let network = index.checked_sub(others).map(|at| &plan.networks[at].name);
    probe.networks.is_empty() || network.is_some_and(|name| probe.networks.contains(name))
}

/// What background traffic leaves of a line.
fn left_bps(line_bps: u64, load: Option<&Load>) -> u64 {
    let (part, of) = load.map_or((0, 1), |load| load.rho.parts());
    let left = u128::from(line_bps) * u128::from(of - part.min(of)) / u128::from(of);
    left as u64
}

/// Launches of a probe at a network.
fn launches(plan: &Plan, probe: &ProbePlan, net: &TestNetwork) -> u64 {
    // The first trial of a search, whose limit is launched as often as the plan says.
    let trial = probe.lost.map(|_| 1);
    let wanted = trial.or(probe.launches).unwrap_or(plan.repeat.launches);
    let rated = match &net.model {
        Some(model) => model.line().is_some(),
        None => net.testbed == Testbed::Hosts,
    };
    match plan.repeat.unrated {
        Some(most) if probe.mode() == Some(Mode::Stream) && !rated => wanted.min(most),
        _ => wanted,
    }
}

/// Sizes that `path` can carry in this kind of measurement, and those that it cannot, with the reason.
fn fitting(
    path: AnyPath,
    kind: ProbeKind,
    sizes: Vec<u64>,
    payload: Option<u64>,
) -> (Vec<u64>, Vec<(u64, String)>) {
    let why = |size: u64| match (path.channel()?, payload) {
        (Path::Packet | Path::Xdp, _) if kind == ProbeKind::Startup => Some(NO_START.to_string()),
        (Path::Packet | Path::Xdp, Some(most)) if size > most => Some(format!(
            "{size} bytes do not fit in a frame, which carries {most} here; udp fragments"
        )),
        (Path::Xdp, _) if kind == ProbeKind::Anatomy => Some(NO_STAMPS.to_string()),
        _ => None,
    };
    let (beyond, fitting): (Vec<u64>, Vec<u64>) =
        sizes.into_iter().partition(|size| why(*size).is_some());
    let beyond = beyond
        .into_iter()
        .map(|size| (size, why(size).unwrap_or_default()));
    (fitting, beyond.collect())
}

/// A block's cells, and those that are left out beside them.
pub fn cells(
    net: &TestNetwork,
    block: &Block,
    beyond: &[(u64, String)],
) -> Result<Vec<CellRecord>, Failure> {
    let cell = |(size_bytes, skipped): (&u64, Option<String>)| {
        let factors = Factors {
            probe: block.kind().name().into(),
            mode: block.mode().map(|mode| mode.name().into()),
            layer: match block.kind().is_of_programs() {
                true => Layer::Application,
                false => block.path().layer(),
            },
            path: block.path().name(),
            method: Some(block.method().name().into()),
            knobs: block.knobs.clone(),
            wait: Some(block.wait().name().into()),
            network: net.name.clone(),
            testbed: net.testbed,
            hosts: net.hosts_of(block),
            profile: Some(
                net.profile
                    .map_or_else(|| "asis".into(), |profile| profile.to_string()),
            ),
            attachment: net.attachment.clone(),
            load: block.load.as_ref().map(ToString::to_string),
            size_bytes: *size_bytes,
        };
        Ok(CellRecord {
            id: factors.cell().map_err(Failure::cannot)?,
            factors,
            launches: block.launches,
            skipped,
        })
    };
    let sizes = match block.is_sized() {
        true => block.sizes_bytes(),
        // Its messages have sizes of their own.
        false => &[0],
    };
    let sizes = sizes.iter().map(|size| (size, None));
    let beyond = beyond.iter().map(|(size, why)| (size, Some(why.clone())));
    sizes.chain(beyond).map(cell).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::model::Modelled;
    use crate::plan::{Effort, Kind, TestbedPlan};
    use std::collections::BTreeSet;

    /// A network of four hosts in the lab.
    pub fn net(selector: &str) -> TestNetwork {
        let spec = sonde_link::resolve(selector, &|_| Err("no file".into())).unwrap();
        TestNetwork {
            testbed: Testbed::Lab,
            name: spec.name.clone(),
            mtu: Some(spec.mtu),
            model: Some(Modelled::network(spec)),
            hosts: ["h1", "h2", "h3", "h4"].map(String::from).to_vec(),
            profile: Some(Profile::MODERN),
            attachment: Some("tap".into()),
        }
    }

    #[test]
    fn a_network_without_a_rate_takes_no_load() {
        let plan = "[testbed]\nkind = \"lab\"\n[[probe]]\nkind = \"latency\"\nname = \"latency\"\n[[load]]\nlevel = \"0.6\"\n[[load]]\ntogether = [\"latency\"]\nlevel = \"0.6\"\n";
        let blocks = blocks(
            &Plan::parse(plan).unwrap(),
            &[net("wire"), net("ethernet-10")],
        )
        .unwrap();
        let loaded = blocks
            .iter()
            .filter(|block| block.cells.iter().any(|cell| cell.factors.load.is_some()));
        for block in loaded {
            let is_wire = block.cells[0].factors.network == "wire";
            assert_eq!(block.skipped().is_some(), is_wire, "{block:?}");
        }
    }

    fn loopback() -> TestNetwork {
        TestNetwork {
            testbed: Testbed::Local,
            name: "loopback".into(),
            model: None,
            mtu: Some(65_536),
            hosts: vec!["here".into()],
            profile: None,
            attachment: None,
        }
    }

    fn plan(effort: Effort) -> Plan {
        let testbed = TestbedPlan {
            kind: Kind::Lab,
            hosts: 4,
            names: None,
            floors: true,
            ..TestbedPlan::default()
        };
        Plan::assess(testbed, effort)
    }

    fn usual() -> Vec<TestNetwork> {
        let mut nets = vec![loopback()];
        nets.extend(crate::plan::NETWORKS.map(net));
        nets
    }

    fn seconds(effort: Effort) -> u64 {
        let blocks = blocks(&plan(effort), &usual()).unwrap();
        blocks
            .iter()
            .map(|block| block.launches * block.estimate_ns)
            .sum::<u64>()
            / 1_000_000_000
    }

    #[test]
    fn the_usual_plan_takes_three_minutes() {
        assert!(
            (165..=195).contains(&seconds(Effort::Usual)),
            "{}",
            seconds(Effort::Usual)
        );
        assert!(
            (30..=45).contains(&seconds(Effort::Quick)),
            "{}",
            seconds(Effort::Quick)
        );
    }

    #[test]
    fn all_pairs_of_four_hosts_take_ten_seconds() {
        for effort in [Effort::Quick, Effort::Usual] {
            let plan = plan(effort).assessing_all_pairs(true, &[]);
            let blocks = blocks(&plan, &usual()).unwrap();
            let rounds: Vec<&Block> = (blocks.iter())
                .filter(|block| block.kind() == ProbeKind::Pattern)
                .collect();
            // On one network of five, and not on the loopback beside them.
            assert_eq!(rounds.len(), 1, "{effort:?}");
            assert_eq!(usual()[rounds[0].net].name, "ethernet-100");
            let ns = rounds[0].launches * rounds[0].estimate_ns;
            assert!(ns <= 10_000_000_000, "{effort:?}: {ns}");
        }
    }

    #[test]
    fn references_take_little_of_the_time() {
        for effort in [Effort::Quick, Effort::Usual, Effort::Thorough] {
            let plan = plan(effort);
            let blocks = blocks(&plan, &usual()).unwrap();
            let references = references(&plan, &usual(), &blocks).unwrap();
            assert_eq!(references.len(), 6, "one a net");
            let sum = |all: &[Block]| -> u64 {
                all.iter()
                    .map(|block| block.launches * block.estimate_ns)
                    .sum()
            };
            let share = sum(&references) as f64 / sum(&blocks) as f64;
            assert!(share < 0.03, "{effort:?}: {share}");
            let ids = |all: &[Block]| -> BTreeSet<String> {
                let cells = all.iter().flat_map(|block| &block.cells);
                cells.map(|cell| cell.id.clone()).collect()
            };
            assert!(ids(&references).is_disjoint(&ids(&blocks)));
            for reference in &references {
                assert_eq!((reference.cells.len(), reference.load.clone()), (1, None));
                assert_eq!(reference.cells[0].factors.knobs["reference"], "idle");
            }
            let mut without = plan;
            without.repeat.reference = 0;
            assert!(
                super::references(&without, &usual(), &blocks)
                    .unwrap()
                    .is_empty()
            );
        }
    }

    #[test]
    fn blocks_are_the_product() {
        let blocks = blocks(&plan(Effort::Usual), &usual()).unwrap();
        // Start-up and latency by two paths, messages and streams over TCP, streams over UDP, files by two services; on six networks. Here, by two
        // paths within this machine, latency by both waits. Of libraries the native engine's latency, that of
        // four others, TCP's by polling, and messages of all five, everywhere. A kernel everywhere, and once by shared memory.
        assert_eq!(blocks.len(), 6 * (7 + 2 + 11) + 2 * 2 + 6 + 1);
        let ids: BTreeSet<_> = blocks
            .iter()
            .flat_map(|block| &block.cells)
            .map(|cell| &cell.id)
            .collect();
        let cells: usize = blocks.iter().map(|block| block.cells.len()).sum();
        assert_eq!(ids.len(), cells);
        let latency = blocks.iter().find(|block| {
            block.kind() == ProbeKind::Latency && block.path() == AnyPath::TCP && block.net == 1
        });
        let sizes = latency.unwrap().sizes_bytes();
        assert!(
            sizes.contains(&1_448) && sizes.contains(&1_449),
            "{sizes:?}"
        );
        let streams = blocks
            .iter()
            .filter(|block| block.mode() == Some(Mode::Stream));
        assert!(streams.clone().all(|block| block.cells.len() == 1));
        assert!(streams.clone().any(|block| block.launches == 1));
    }

    #[test]
    fn what_joins_one_machine_is_skipped_between_others() {
        let mut plan = plan(Effort::Usual);
        plan.probes.truncate(1);
        plan.probes[0].path = vec![AnyPath::TCP, AnyPath::Channel(Path::Shm)];
        let blocks = blocks(&plan, &[loopback(), net("ethernet-100")]).unwrap();
        let skipped: Vec<_> = blocks
            .iter()
            .map(|block| (block.net, block.path(), block.skipped().is_some()))
            .collect();
        assert_eq!(
            skipped,
            [
                (0, AnyPath::TCP, false),
                (0, AnyPath::Channel(Path::Shm), false),
                (1, AnyPath::TCP, false),
                (1, AnyPath::Channel(Path::Shm), true)
            ]
        );
        let reason = blocks[3].skipped().unwrap();
        assert!(reason.contains("use `--testbed local`"), "{reason}");
        assert!(blocks[3].launches == 0 && blocks[3].estimate_ns == 0);
    }

    #[test]
    fn a_knob_is_set_in_one_place() {
        let mut plan = plan(Effort::Quick);
        let mut stream = ProbePlan::new(ProbeKind::Throughput, &[AnyPath::UDP], &["mtu"]);
        stream.knobs = [("rate".into(), vec!["50Mbit".into()])].into();
        plan.probes = vec![stream];
        let net = net("ethernet-100");
        let block = &blocks(&plan, std::slice::from_ref(&net)).unwrap()[0];
        let slower = block.with("rate", "40000000bit".into()).unwrap();
        assert_eq!(slower.channel().unwrap().knobs.rate_bps, Some(40_000_000));
        let factors = &cells(&net, &slower, &[]).unwrap()[0].factors;
        assert_eq!(factors.knobs["rate"], "40000000bit");
        let again = slower.with("rate", "50Mbit".into()).unwrap();
        assert_eq!(again.work, block.work);
        assert!(block.with("rate", "fast".into()).is_err());
    }

    #[test]
    fn a_cell_is_its_factors() {
        let ids = |nets: &[TestNetwork]| {
            let blocks = blocks(&plan(Effort::Quick), nets).unwrap();
            blocks
                .iter()
                .flat_map(|block| &block.cells)
                .map(|cell| cell.id.clone())
                .collect::<Vec<_>>()
        };
        let one = net("ethernet-100");
        assert_eq!(
            ids(std::slice::from_ref(&one)),
            ids(std::slice::from_ref(&one))
        );
        let mut other = one.clone();
        other.attachment = Some("veth".into());
        assert!(
            ids(&[other])
                .iter()
                .all(|id| !ids(std::slice::from_ref(&one)).contains(id))
        );
    }
}
