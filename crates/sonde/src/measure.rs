//! From a plan to a run, its table, its report and its exit code: what `assess` and `probe` share.
//!
//! Model:   the store is opened before anything is started; labs and agents are started before the run begins, so that its
//!          cells are of what is really there; each launch is in the store before the next. Whatever ends a run, what was
//!          measured is printed.
//! Checked: the end-to-end tests of `assess` and `probe`.

mod answer;
mod finish;
mod kept;
mod lacking;
mod planned;

pub use answer::Answer;
pub use finish::requirements_text;
pub use kept::{begun, command_line, named, not_kept, say_where};
pub use planned::Planned;

use lacking::leave_out;

use crate::campaign::{Campaign, End, LiveNetwork, Observer, Silent, unix_ns};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::layout::{self, Block, TestNetwork};
use crate::library;
use crate::model::{self, Modelled};
use crate::output::{Page, Print};
use crate::plan::{Kind, Mode, NetworkPlan, Plan, Work};
use crate::preflight::Preflight;
use crate::require::Sources;
use crate::shown::Form;
use crate::source::{Searches, Seen, Source, goes_on};
use crate::testbed::{self, LabOptions};
use crate::tune::TUNE;
use sonde_fleet::{Choice, Fleet, Joined, Selector, SshOptions};
use sonde_lab::{Config, Profile};
use sonde_measure::{
    CellRecord, Doubt, EventRecord, HostRecord, NetworkRecord, Noise, Quantity, ResultRow, Run,
    RunState, Status, Testbed,
};
use sonde_measure::{Path as Route, Wait};
use sonde_record::Store;
use sonde_report::{PageError, VERIFY, View, counted};
use sonde_sys::tell;
use sonde_units::BitRate;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What to measure, and what to do with it.
pub struct Task {
    /// The plan; of a resumed run, the run's own.
    pub plan: Plan,
    /// What is required beside what the plan says.
    pub sources: Sources,
    /// The folder of the store and the reports.
    pub out: PathBuf,
    /// Go on with this run; with the latest that can be where the name is empty.
    pub resume: Option<String>,
    /// In which form results are printed.
    pub print: Print,
    /// The run's page, where one is wanted.
    pub page: Page,
    /// What the run is called.
    pub name: Option<String>,
    /// Print each event of the run as a line of JSON when it happens.
    pub json_stream: bool,
    /// What is printed; with every row no report is written.
    pub form: Form,
    /// Exit with 3 where the emulation was not true, or an interval not reached.
    pub strict: bool,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Only print the plan.
    pub print_plan: bool,
    /// The device file of TAPs.
    pub tun: PathBuf,
    /// Where agents connect back to.
    pub listen: sonde_fleet::Listen,
    /// Have the ranks of a kernel write down what each did when.
    pub traced: bool,
    /// What is done first, where this machine is what is measured.
    pub preflight: Preflight,
}

/// What a campaign gave.
pub struct Measured {
    /// The run.
    pub run: Run,
    /// Why some of it may be missing in the store.
    pub trouble: Option<String>,
    /// What the ranks of the last launch wrote down, packed.
    pub trace: Option<String>,
}

impl Task {
    /// Does it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        self.run_by(&mut Searches)
    }

    /// The same, where `source` says what follows.
    pub fn run_by(mut self, source: &mut dyn Source) -> Result<i32, Failure> {
        self.take_requirements()?;
        if self.is_only_printed() {
            return self.print();
        }
        let measured = match self.measured(self.observer(Silent), source)? {
            ControlFlow::Break(code) => return Ok(code),
            ControlFlow::Continue(measured) => measured,
        };
        if let Some(reason) = self.plan.all_skipped(&measured.run) {
            tell!("sonde: nothing could be measured: {reason}");
        }
        self.finish(&measured.run, measured.trouble, source.verified())
    }

    /// The plan requires what files and a baseline say.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn take_requirements(&mut self) -> Result<(), Failure> {
        let more = self.sources.requirements(&self.out, &self.plan)?;
        self.sources = Sources::default();
        self.plan = self.plan.clone().requiring(more);
        Ok(())
    }

    /// Measures what the plan says, or goes on with the run that is to be resumed; an exit code where another process of the same
    /// step does.
    ///
    /// # Errors
    /// What could not be started, or kept.
    pub fn measured(
        &mut self,
        observer: Box<dyn Observer>,
        source: &mut dyn Source,
    ) -> Result<ControlFlow<i32, Measured>, Failure> {
        let store = Store::open(&self.out).map_err(Failure::cannot)?;
        let resumed = self.resumed(&store)?;
        if let Some(run) = &resumed {
            self.plan = Plan::parse(&run.head.plan)?;
            let (id, command) = (&run.head.id, goes_on(run, source.command()));
            if command != source.command() {
                tell!(
                    "sonde: `{command} --resume {id}` says what follows from the run {id}, which it began"
                );
            }
        }
        self.plan.check()?;
        if let Some(code) = crate::allocation::bystander(self.plan.testbed.kind) {
            return Ok(ControlFlow::Break(code));
        }
        let mut warnings = Vec::new();
        let noise = match self.plan.testbed.kind.is_real() {
            true => None,
            false => self.preflight.look(&store)?,
        };
        let mut live = self.live()?;
        let nets: Vec<TestNetwork> = live.iter().map(|up| up.net.clone()).collect();
        let mut blocks = layout::blocks(&self.plan, &nets)?;
        leave_out(&mut blocks, &live)?;
        if self.traced {
            let ranks = blocks.iter_mut().filter_map(|block| match &mut block.work {
                Work::Ranks(ranks) => Some(ranks),
                Work::Channel(_) | Work::Rounds(_) | Work::Together(_) => None,
            });
            ranks.for_each(|ranks| ranks.trace());
        }
        blocks.extend(layout::references(&self.plan, &nets, &blocks)?);
        warnings.extend(crowded(&blocks, &nets));
        for (index, up) in live.iter_mut().enumerate() {
            up.complete(&blocks, index, &mut warnings)?;
        }
        if self.plan.is_sweep() {
            live.iter()
                .for_each(|up| up.fleet.borrow_mut().copies(COPY_BYTES));
        }
        if let Some(run) = &resumed {
            let seen = Seen {
                run,
                blocks: &blocks,
                live: &live,
                launches: self.plan.repeat.launches,
            };
            for trial in source.follow(seen)? {
                // What was not begun yet follows once these are made.
                let is_kept = |cell: &CellRecord| run.cells.contains(cell);
                if trial.cells.iter().all(is_kept) {
                    layout::add(&mut blocks, trial);
                }
            }
        }
        let run = match resumed {
            Some(run) => self.resume_run(run, &blocks, &store)?,
            None => self.begin(&live, &blocks, &store, noise.as_ref())?,
        };
        let id = run.head.id.clone();
        let mut campaign = Campaign::new(run, store, &mut live, blocks, &self.plan.repeat)?;
        campaign.allowed = self.plan.allow.time();
        if self.plan.testbed.kind.is_real() {
            tell!("sonde: {}", campaign.announced(&self.plan.allow));
        }
        campaign.observer = observer;
        campaign.observer.began(&campaign.run)?;
        let end = campaign.measure(source)?;
        let trace = campaign.trace.take();
        let (run, blocks, kept) = campaign.end(warnings);
        let seen = Seen {
            run: &run,
            blocks: &blocks,
            live: &live,
            launches: self.plan.repeat.launches,
        };
        source.ended(seen, &end)?;
        for up in live {
            // Beds of the same hosts share their agents: the last one ends them.
            if let Some(fleet) = Rc::into_inner(up.fleet) {
                fleet.into_inner().stop().map_err(Failure::cannot)?;
            }
        }
        let trouble = match (end, kept) {
            (End::NotKept(error), _) | (_, Err(error)) => Some(error.to_string()),
            (End::Interrupted, _) => {
                tell!(
                    "sonde: interrupted: the results until then follow; `{} --resume {id}` resumes the run",
                    goes_on(&run, source.command())
                );
                None
            }
            (End::Tried, Ok(())) => None,
        };
        Ok(ControlFlow::Continue(Measured {
            run,
            trouble,
            trace,
        }))
    }

    /// The run that is to go on, if one is.
    fn resumed(&self, store: &Store) -> Result<Option<Run>, Failure> {
        let Some(name) = &self.resume else {
            return Ok(None);
        };
        let id = if name.is_empty() {
            store
                .resumable()
                .map_err(Failure::cannot)?
                .map(|head| head.id)
                .ok_or_else(|| {
                    Failure::usage(format!(
                        "no run in {} is unfinished; `sonde report list` names them",
                        self.out.display()
                    ))
                })?
        } else {
            store.find(name).map_err(Failure::cannot)?
        };
        let run = store.load(&id).map_err(Failure::cannot)?;
        if run.head.plan.is_empty() {
            return Err(Failure::usage(format!(
                "the run {id} cannot be resumed: trials of placements, and patterns of older versions, have no plan: begin a new run"
            )));
        }
        Ok(Some(run))
    }

    /// Everything up, in the plan's order.
    pub fn live(&self) -> Result<Vec<LiveNetwork>, Failure> {
        let program = testbed::this_program()?;
        let testbed = &self.plan.testbed;
        let mut live = Vec::new();
        if testbed.kind == Kind::Local || testbed.floors {
            live.push(LiveNetwork::of_machine(
                Fleet::local(&program).map_err(Failure::cannot)?,
            ));
        }
        match testbed.kind {
            Kind::Local => {}
            Kind::Lab if testbed.joined => live.extend(self.joined_lab(&program)?),
            Kind::Lab => {
                for network in &self.plan.networks {
                    live.push(self.lab(&program, network)?);
                }
            }
            Kind::Hosts => {
                let targets = testbed.targets()?;
                let options = SshOptions {
                    all: self.strict,
                    ..SshOptions::default()
                };
                let fleet = Fleet::ssh(&program, &targets, &options).map_err(Failure::cannot)?;
                live.extend(self.of_hosts(fleet)?);
            }
            Kind::Slurm | Kind::Mpirun | Kind::Listen => {
                let options = crate::allocation::options(testbed, self.listen)?;
                let fleet = Fleet::connected(&program, &options).map_err(Failure::cannot)?;
                live.extend(self.of_hosts(fleet)?);
            }
        }
        let mut names = BTreeSet::new();
        for up in &live {
            if !names.insert(up.net.name.clone()) {
                return Err(Failure::usage(format!(
                    "the network {} is given twice: its rows would not be distinguishable; name it once",
                    up.net.name
                )));
            }
        }
        Ok(live)
    }

    /// A live network for each network of the same hosts.
    fn of_hosts(&self, fleet: Fleet) -> Result<Vec<LiveNetwork>, Failure> {
        let mut live = self.of_choices(fleet)?;
        if let Some(rate) = self.plan.testbed.line_rate {
            live.iter_mut().for_each(|up| up.rated(rate));
        }
        Ok(live)
    }

    fn of_choices(&self, mut fleet: Fleet) -> Result<Vec<LiveNetwork>, Failure> {
        let choices = self.plan.networks.iter().map(NetworkPlan::choice);
        let choices = choices.collect::<Result<Vec<_>, _>>()?;
        fleet.join(&choices).map_err(Failure::cannot)?;
        let fleet = Rc::new(RefCell::new(fleet));
        if choices.is_empty() {
            return Ok(vec![LiveNetwork::of_hosts(fleet)]);
        }
        let joined = fleet.borrow().joined().to_vec();
        let live = joined.iter().enumerate();
        Ok(live
            .map(|(nth, network)| LiveNetwork::of_network(&fleet, nth, network))
            .collect())
    }

    /// What a lab of a network is.
    fn lab_config(&self, networks: &[NetworkPlan]) -> Result<Config, Failure> {
        let testbed = &self.plan.testbed;
        let profile: Profile = self.plan.profile.name.parse().map_err(Failure::usage)?;
        let mut options = LabOptions::of_hosts(testbed::HostOptions {
            hosts: Some(testbed.hosts),
            attachment: testbed.attachment,
            priority: testbed.priority,
            profile,
            seed: self.plan.repeat.seed,
            tun: self.tun.clone(),
        });
        let mut names = networks.iter().map(|network| network.name.clone());
        match networks {
            [only] if only.site => options.site = names.next(),
            _ => options.networks = names.collect(),
        }
        options.networks.extend(testbed.beside.clone());
        options.script.clone_from(&testbed.script);
        options.config()
    }

    fn lab(&self, program: &Path, network: &NetworkPlan) -> Result<LiveNetwork, Failure> {
        let config = self.lab_config(std::slice::from_ref(network))?;
        let model = Modelled::of(network, config.site.clone(), &self.plan.testbed)?;
        let fleet = self.lab_fleet(program, &config)?;
        let shared = LiveNetwork::shared(fleet);
        Ok(LiveNetwork::of_lab((&shared, None), model, config.profile))
    }

    /// A live network for each network of one lab, by the hosts' interfaces in their order.
    fn joined_lab(&self, program: &Path) -> Result<Vec<LiveNetwork>, Failure> {
        let config = self.lab_config(&self.plan.networks)?;
        let mut fleet = self.lab_fleet(program, &config)?;
        let count = self.plan.networks.len();
        let all = config.site.segment.into_iter();
        let specs: Vec<_> = all.take(count).map(|one| one.network).collect();
        let choices = specs.iter().zip(0..).map(|(spec, nth)| Choice {
            name: spec.name.clone(),
            selector: Selector::Interface(format!("eth{nth}")),
        });
        fleet
            .join(&choices.collect::<Vec<_>>())
            .map_err(Failure::cannot)?;
        let shared = LiveNetwork::shared(fleet);
        let live = specs.into_iter().zip(0..);
        let live = live.map(|(spec, nth)| {
            let model = Modelled::network(spec);
            LiveNetwork::of_lab((&shared, Some(nth)), model, config.profile)
        });
        Ok(live.collect())
    }

    fn lab_fleet(&self, program: &Path, config: &Config) -> Result<Fleet, Failure> {
        let mut fleet = Fleet::lab(program, config).map_err(Failure::cannot)?;
        let prepared = self.plan.testbed.prepared()?;
        for (host, command) in &prepared {
            let done = fleet.prepare(usize::from(*host) - 1, command);
            done.map_err(Failure::cannot)?;
        }
        if !prepared.is_empty() {
            fleet.describe_again().map_err(Failure::cannot)?;
        }
        Ok(fleet)
    }

    pub fn begin(
        &self,
        live: &[LiveNetwork],
        blocks: &[Block],
        store: &Store,
        noise: Option<&Noise>,
    ) -> Result<Run, Failure> {
        let mut hosts: Vec<HostRecord> = Vec::new();
        for up in live {
            for host in up.fleet.borrow().hosts() {
                // The hosts of several labs have the same names and are the same machine.
                if hosts.iter().all(|known| known.name != host.name) {
                    hosts.push(host.clone());
                }
            }
        }
        for host in &mut hosts {
            host.facts.noise = noise.cloned();
        }
        let run = Run {
            head: begun(self.plan.text()?, self.plan.repeat.seed)?,
            hosts,
            networks: live.iter().map(|up| up.network.clone()).collect(),
            cells: blocks
                .iter()
                .flat_map(|block| block.cells.clone())
                .collect(),
            launches: Vec::new(),
            events: kept::named(self.name.as_deref()),
            warnings: Vec::new(),
        };
        store.begin(&run).map_err(Failure::cannot)?;
        Ok(run)
    }

    /// The run as it was, if the cells still are what they were.
    fn resume_run(&self, mut run: Run, blocks: &[Block], store: &Store) -> Result<Run, Failure> {
        let now: BTreeSet<&str> = blocks
            .iter()
            .flat_map(|block| &block.cells)
            .map(|cell| cell.id.as_str())
            .collect();
        let changed = run
            .cells
            .iter()
            .find(|cell| cell.skipped.is_none() && !now.contains(cell.id.as_str()));
        if let Some(cell) = changed {
            let of = |knob: &str| cell.factors.knobs.contains_key(knob);
            if of(TUNE) || of(VERIFY) {
                let command = match of(TUNE) {
                    true => "tune",
                    false => "probe files --verify",
                };
                return Err(Failure::cannot(format!(
                    "the run {0} has trials of settings: `sonde {command} --resume {0}` resumes it",
                    run.head.id
                )));
            }
            return Err(Failure::cannot(format!(
                "cannot resume run {}: its cell {} ({} {} on {}, attached by {}) is not what would be measured now; the \
                 hosts or their attachment have changed: begin a new run",
                run.head.id,
                cell.id,
                cell.factors.path,
                cell.factors.probe,
                cell.factors.network,
                cell.factors.attachment.as_deref().unwrap_or("nothing"),
            )));
        }
        let event = EventRecord {
            at_unix_ns: unix_ns(),
            kind: "resumed".into(),
            text: format!("repetitions missing: {}", run.missing().len()),
        };
        store.event(&run.head.id, &event).map_err(Failure::cannot)?;
        store
            .end(&run.head.id, RunState::Open)
            .map_err(Failure::cannot)?;
        (run.head.state, run.head.ended_unix_ns) = (RunState::Open, None);
        run.events.push(event);
        Ok(run)
    }
}

/// A socket buffer of the HIPPI study, whose copies are measured beside a sweep.
const COPY_BYTES: u32 = 384 << 10;
const LOOPBACK: &str = "loopback";
const LOOPBACK_MTU: u64 = 65_536;
/// Real hosts are joined as they are: by the interface that the route to the peer takes.
pub const REAL: &str = "default";

impl TestNetwork {
    pub fn unknown() -> Self {
        Self {
            testbed: Testbed::Local,
            name: String::new(),
            model: None,
            mtu: None,
            hosts: Vec::new(),
            profile: None,
            attachment: None,
        }
    }

    fn of_lab(model: Modelled, profile: Profile) -> Self {
        Self {
            testbed: Testbed::Lab,
            name: model.name().into(),
            mtu: Some(model.mtu()),
            model: Some(model),
            profile: Some(profile),
            ..Self::unknown()
        }
    }
}

fn names(fleet: &Fleet) -> Vec<String> {
    fleet.hosts().iter().map(|host| host.name.clone()).collect()
}

impl LiveNetwork {
    fn shared(fleet: Fleet) -> Rc<RefCell<Fleet>> {
        Rc::new(RefCell::new(fleet))
    }

    /// One of the networks by which real hosts are joined.
    fn of_network(fleet: &Rc<RefCell<Fleet>>, nth: usize, network: &Joined) -> Self {
        let mtu = network.mtu_bytes();
        Self {
            network: record_of(network),
            net: TestNetwork {
                testbed: Testbed::Hosts,
                name: network.name.clone(),
                mtu,
                hosts: names(&fleet.borrow()),
                ..TestNetwork::unknown()
            },
            fleet: Rc::clone(fleet),
            nth: Some(nth),
            one_way_ns: None,
        }
    }

    fn of_machine(fleet: Fleet) -> Self {
        let network = model::real(
            LOOPBACK,
            "this machine's loopback: the baseline cost of hosts",
            LOOPBACK_MTU,
            None,
        );
        let net = TestNetwork {
            testbed: Testbed::Local,
            name: LOOPBACK.into(),
            mtu: Some(LOOPBACK_MTU),
            hosts: names(&fleet),
            ..TestNetwork::unknown()
        };
        Self {
            net,
            fleet: Self::shared(fleet),
            nth: None,
            network,
            one_way_ns: None,
        }
    }

    fn of_hosts(shared: Rc<RefCell<Fleet>>) -> Self {
        let fleet = shared.borrow();
        // The least of the hosts is what a message between any two of them meets.
        let least = |of: fn(&HostRecord) -> Option<u64>| fleet.hosts().iter().filter_map(of).min();
        let mtu = least(|host| host.facts.mtu_bytes);
        let line = least(|host| host.facts.line_bps);
        let network = model::real(
            REAL,
            "the interfaces by which the hosts reach each other",
            mtu.unwrap_or(1_500),
            line,
        );
        let net = TestNetwork {
            testbed: Testbed::Hosts,
            name: REAL.into(),
            mtu,
            hosts: names(&fleet),
            ..TestNetwork::unknown()
        };
        drop(fleet);
        Self {
            net,
            fleet: shared,
            nth: None,
            network,
            one_way_ns: None,
        }
    }

    fn of_lab(
        (shared, nth): (&Rc<RefCell<Fleet>>, Option<usize>),
        model: Modelled,
        profile: Profile,
    ) -> Self {
        let fleet = shared.borrow();
        let net = TestNetwork {
            hosts: names(&fleet),
            attachment: fleet.attachment(),
            ..TestNetwork::of_lab(model, profile)
        };
        // Completed with its bounds as soon as the sizes are known.
        let network = model::real(&net.name, "", net.mtu.unwrap_or(0), None);
        drop(fleet);
        Self {
            net,
            fleet: Rc::clone(shared),
            nth,
            network,
            one_way_ns: None,
        }
    }

    /// With this rate of the line, whatever the interfaces report.
    fn rated(&mut self, rate: BitRate) {
        let row = &self.network.row;
        if let Some(bps) = row.line_bps.filter(|bps| *bps != rate.bps()) {
            tell!(
                "sonde: {}: `--line-rate {rate}` stands in place of the {} that the interfaces report",
                row.name,
                sonde_report::rate(bps as f64)
            );
        }
        let summary = row.summary.clone().unwrap_or_default();
        self.network = model::real(&row.name.clone(), &summary, row.mtu_bytes, Some(rate.bps()));
    }

    /// Works out the bounds of everything that is measured here.
    pub fn complete(
        &mut self,
        blocks: &[Block],
        index: usize,
        warnings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let Some(model) = &self.net.model else {
            return Ok(());
        };
        let profile = self.net.profile.unwrap_or(Profile::MODERN);
        let mut points = BTreeSet::new();
        let measured = |block: &Block| block.cells.iter().any(|cell| cell.skipped.is_none());
        let here = |block: &&Block| block.net == index && measured(block) && block.is_bounded();
        let bounded = || blocks.iter().flat_map(Block::parts).filter(here);
        for block in bounded() {
            for cell in block.cells.iter().filter(|cell| cell.skipped.is_none()) {
                let size = cell.factors.size_bytes;
                let size = (block.mode() != Some(Mode::Stream)).then_some(size);
                points.insert((block.path().beneath(), block.quantity(), size));
            }
        }
        points.extend([Route::Tcp, Route::Udp].map(|path| (path, Quantity::ThroughputBps, None)));
        let mut network = model::network(model, profile, points, warnings)?;
        let more = library::ceilings(bounded().map(Block::path), &network.ceilings);
        network.ceilings.extend(more);
        network.attachment = self.net.attachment.clone();
        network.backpressure = self.fleet.borrow().backpressure();
        self.one_way_ns = network.row.one_way_1b_ns;
        self.network = network;
        Ok(())
    }
}

impl Outcome {
    /// What is so of every run: whether anything was measured, which launches are missing, which figures cannot be relied on.
    pub fn of(run: &Run, is_strict: bool) -> Self {
        let rows = run.rows();
        let mut outcome = Self {
            is_measured: rows.iter().any(|row| row.status == Status::Measured),
            is_strict,
            signal: crate::campaign::interrupted(),
            ..Self::default()
        };
        match run.missing().len() {
            0 => {}
            missing => outcome
                .failed
                .push(format!("repetitions missing or failed: {missing}")),
        }
        outcome.uncertain.extend(unreliable(&rows));
        let among_strangers = run.launches.iter().filter(|one| one.met_strangers());
        match among_strangers.count() {
            0 => {}
            count => outcome.uncertain.push(format!(
                "unauthenticated peers came to a data port in repetitions: {count}"
            )),
        }
        outcome
    }
}

/// How many figures cannot be relied on, by each of the reasons. Unauthenticated peers are counted by repetitions, elsewhere.
fn unreliable(rows: &[ResultRow]) -> Vec<String> {
    let measured = || rows.iter().filter(|row| row.status == Status::Measured);
    let all = counted(measured().count() as u64, "figure");
    let count = |is: &dyn Fn(&ResultRow) -> bool| measured().filter(|row| is(row)).count();
    let disturbed = count(&ResultRow::is_disturbed);
    let above = count(&|row| row.doubts.contains(&Doubt::AboveBound));
    let told = [
        (
            disturbed,
            format!("a disturbance leaves {disturbed} of {all} uncertain"),
        ),
        (
            above,
            format!("{above} of {all} are above what the model allows"),
        ),
    ];
    let told = told.into_iter().filter(|(rows, _)| *rows > 0);
    told.map(|(_, text)| text).collect()
}

/// Where pollers outnumber the CPUs.
fn crowded(blocks: &[Block], nets: &[TestNetwork]) -> Vec<String> {
    let Ok(cpus) = sonde_sys::cpu::online() else {
        return Vec::new();
    };
    let mut warnings = BTreeSet::new();
    for block in blocks.iter().filter(|block| block.wait() == Wait::Poll) {
        let busy = match nets[block.net].testbed {
            Testbed::Lab => 3,
            Testbed::Local => 2,
            _ => continue,
        };
        if busy > cpus.len() {
            warnings.insert(format!(
                "{}: busy polling needs {busy} CPUs, this machine has {}: polled results are slowed",
                nets[block.net].name,
                cpus.len()
            ));
        }
    }
    warnings.into_iter().collect()
}

/// What is written down of a network of real hosts.
pub fn record_of(network: &Joined) -> NetworkRecord {
    let (mtu, line) = (network.mtu_bytes(), network.line_bps());
    let ends = network.ends.iter().flatten();
    let interfaces: BTreeSet<&str> = ends.map(|end| end.interface.as_str()).collect();
    let interfaces: Vec<&str> = interfaces.into_iter().collect();
    let summary = format!("the hosts' interfaces {}", interfaces.join(", "));
    model::real(&network.name, &summary, mtu.unwrap_or(1_500), line)
}

/// Writes the page beside the store; says where, or why not.
pub fn say_report(run: &Run, path: &Path) {
    match write_report(run, path) {
        Ok(()) => tell!("sonde: the report is {}", path.display()),
        Err(why) => tell!("sonde: {why}"),
    }
}

/// Writes the page of a run, whole or not at all.
///
/// # Errors
/// Why there is none.
pub fn write_report(run: &Run, path: &Path) -> Result<(), String> {
    write_page(sonde_report::html(&View::of(run)), path)
}

/// Writes a page that was made, whole or not at all.
///
/// # Errors
/// Why there is none.
pub fn write_page(page: Result<String, PageError>, path: &Path) -> Result<(), String> {
    page.map_err(|e| e.to_string())
        .and_then(|page| {
            let fresh = path.with_extension("html.new");
            std::fs::write(&fresh, page)
                .and_then(|()| std::fs::rename(&fresh, path))
                .map_err(|e| {
                    // A part of it is of no use, and takes room where there may be none.
                    drop(std::fs::remove_file(&fresh));
                    format!(
                        "cannot write {}: {e}; free space there, or choose another place",
                        path.display()
                    )
                })
        })
        .map_err(|why| format!("no HTML report: {why}"))
}
