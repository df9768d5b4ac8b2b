//! A run being made: launches in shuffled blocks, each kept as soon as it ends.
//!
//! Model:   in each round every block that still wants a launch gets one, in an order drawn from the seed; launch k of a
//!          block is between the k-th pair of hosts, so that all take part. After the wanted launches more are made where
//!          the interval of a median is wider than asked for, up to the plan's most and its budget. Then come those that follow from
//!          what was seen, until nothing follows. What a launch gave is in
//!          the store before the next begins. A host that is lost is left out, and its launches are told as failed.
//! Source:  Hunold & Carpen-Amarie, TPDS 27(12) 2016, §5 for shuffled launches. Deviations: blocks of launches, so that an
//!          interrupted run has all cells.
//! Checked: `pairs_rotate_over_all_hosts`, `orders_are_drawn_evenly`; the end-to-end tests of interrupts, lost hosts and resumption.

mod at_once;
mod hosts;
mod interruption;
mod keep;
mod observer;
mod progress;
pub mod seen;
mod together;

pub use interruption::{interrupted, interruption};
pub use observer::{Observer, Silent};
pub use seen::lost;

use hosts::{hosts_of, set_hosts, tell_changes};
use progress::Progress;

use crate::allowance::Allowance;
use crate::defect;
use crate::failure::Failure;
use crate::layout::{self, Block, TestNetwork};
use crate::library::Ranks;
use crate::limit::LOSS_LIMIT;
use crate::model::Bounds;
use crate::plan::{ProbeKind, Repeat, Work};
use crate::sound;
use crate::source::{Seen, Source};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_fleet::{Ask, Between, Fleet, Launched};
use sonde_lab::{Profile, Report};
use sonde_measure::files::{Service, Stages};
use sonde_measure::{
    CellRecord, CellResult, EventRecord, Factors, LaunchRecord, Measurement, NetworkRecord, Phase,
    Quantity, Repetition, Run, RunState, Spec, npb::Kernel,
};
use sonde_record::{Store, StoreError};
use sonde_stats::Series;
use sonde_stats::precision;
use sonde_sys::tell;
use sonde_units::Span;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A network with its hosts up.
pub struct LiveNetwork {
    /// What it is.
    pub net: TestNetwork,
    /// Its agents, which live networks of the same hosts share.
    pub fleet: Rc<RefCell<Fleet>>,
    /// Which of its hosts' networks this is; none is the one by which they reach each other.
    pub nth: Option<usize>,
    /// As it is stored.
    pub network: NetworkRecord,
    /// What the model takes for the smallest message, for the verdict.
    pub one_way_ns: Option<u64>,
}

/// A run and what makes it.
pub struct Campaign<'a> {
    /// The run so far.
    pub run: Run,
    store: Store,
    live: &'a mut [LiveNetwork],
    blocks: Vec<Block>,
    repeat: &'a Repeat,
    random: Pcg64Mcg,
    /// Launches that gave what they should.
    done: BTreeSet<(String, u64)>,
    /// Launches at each network, for its reference.
    made: BTreeMap<usize, u64>,
    /// Blocks that cannot be measured here.
    skipped: BTreeSet<usize>,
    /// Blocks of which no launch is made again, since the last one that was is no better.
    in_vain: BTreeSet<usize>,
    /// What the model has for loaded cells: idle, and under their load.
    models: BTreeMap<String, Option<[u64; 2]>>,
    progress: Progress,
    began: Instant,
    /// The time that all of it may take.
    pub allowed: Option<Duration>,
    /// Who is told of each launch.
    pub observer: Box<dyn Observer>,
    /// What the ranks of the last launch wrote down, packed, where they were to; it is not stored.
    pub trace: Option<String>,
}

/// How a campaign ended.
#[derive(Debug)]
pub enum End {
    /// All that was wanted was tried.
    Tried,
    /// A signal came.
    Interrupted,
    /// What was measured could not be kept.
    NotKept(StoreError),
}

/// The time of day.
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Launch `index` among `hosts` goes from the first to the second: each host in turn to the next one, then to the one after.
pub fn pair(index: u64, hosts: usize) -> (usize, usize) {
    if hosts < 2 {
        return (0, 0);
    }
    let (turn, src) = (index as usize / hosts, index as usize % hosts);
    (src, (src + 1 + turn % (hosts - 1)) % hosts)
}

impl<'a> Campaign<'a> {
    /// Goes on with `run`, which may have launches already.
    pub fn new(
        run: Run,
        store: Store,
        live: &'a mut [LiveNetwork],
        blocks: Vec<Block>,
        repeat: &'a Repeat,
    ) -> Result<Self, Failure> {
        let done = run
            .repetitions()
            .filter(Repetition::succeeded)
            .map(|one| (one.result.cell.clone(), one.result.index))
            .collect();
        let random = Pcg64Mcg::seed_from_u64(run.head.seed);
        let campaign = Self {
            run,
            store,
            live,
            blocks,
            repeat,
            random,
            done,
            made: BTreeMap::new(),
            skipped: BTreeSet::new(),
            in_vain: BTreeSet::new(),
            models: BTreeMap::new(),
            progress: Progress::new(0)?,
            began: Instant::now(),
            allowed: None,
            observer: Box::new(Silent),
            trace: None,
        };
        let left: u64 = campaign
            .blocks
            .iter()
            .flat_map(|block| (0..block.launches).map(move |index| (block, index)))
            .filter(|(block, index)| campaign.wanted(block, *index))
            .map(|(block, _)| block.estimate_ns)
            .sum();
        campaign.progress.grows(left);
        Ok(campaign)
    }

    /// What it takes of the networks, in one sentence.
    pub fn announced(&self, allow: &Allowance) -> String {
        let lines = self.run.networks.iter();
        let line_bps = lines.filter_map(|network| network.row.line_bps).max();
        allow.announced(&self.blocks, line_bps)
    }

    fn seen(&self) -> Seen<'_> {
        Seen {
            run: &self.run,
            blocks: &self.blocks,
            live: self.live,
            launches: self.repeat.launches,
        }
    }

    /// Adds what follows from what was seen; the numbers of the blocks that are to be launched for it. Where they are not to be,
    /// none of them is kept.
    fn follow(&mut self, source: &mut dyn Source) -> Result<Vec<usize>, Failure> {
        let following = source.follow(self.seen())?;
        let is_new = |block: &Block| layout::is_new(&self.blocks, block);
        if !following.iter().any(is_new) || !self.begins(source)? {
            return Ok(Vec::new());
        }
        let mut numbers = Vec::new();
        for block in following {
            let Some(number) = layout::add(&mut self.blocks, block) else {
                continue;
            };
            let block = &self.blocks[number];
            self.progress.grows(block.estimate_ns * block.launches);
            for cell in &block.cells {
                let kept = self.store.cell(&self.run.head.id, cell);
                kept.map_err(Failure::cannot)?;
                match self.run.cells.iter_mut().find(|one| one.id == cell.id) {
                    Some(known) => known.clone_from(cell),
                    None => self.run.cells.push(cell.clone()),
                }
            }
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Whether blocks that followed are to be launched; what is told of them is kept first.
    fn begins(&mut self, source: &mut dyn Source) -> Result<bool, Failure> {
        let Some(events) = self.progress.suspend(|| source.begins(self.seen()))? else {
            return Ok(false);
        };
        for (kind, text) in events {
            self.event(kind, &text).map_err(Failure::cannot)?;
        }
        Ok(true)
    }

    fn wanted(&self, block: &Block, index: u64) -> bool {
        let missing = |cell: &sonde_measure::CellRecord| {
            cell.skipped.is_none() && !self.done.contains(&(cell.id.clone(), index))
        };
        block.cells.iter().any(missing)
    }

    /// Measures until all is tried, a signal comes, or nothing can be kept.
    ///
    /// # Errors
    /// What follows from what was seen cannot be launched.
    pub fn measure(&mut self, source: &mut dyn Source) -> Result<End, Failure> {
        let interrupted = interruption()?;
        self.progress.turn_spinner();
        let end = self.all(source, &interrupted);
        self.progress.finish();
        end
    }

    fn all(&mut self, source: &mut dyn Source, interrupted: &AtomicBool) -> Result<End, Failure> {
        let is_told = self.run.events.iter().any(|event| event.kind == LOSS_LIMIT);
        let lost = self.blocks.iter().find_map(|block| block.lost);
        if let Some(lost) = lost.filter(|_| !is_told)
            && let Err(error) = self.event(LOSS_LIMIT, &lost.to_string())
        {
            return Ok(End::NotKept(error));
        }
        // A matrix of all pairs comes before all else, with what stands out of it: a bad host is known first.
        let is_matrix = |number: &usize| {
            self.blocks[*number]
                .rounds()
                .is_some_and(|of| of.flows.is_matrix())
        };
        let (first, then): (Vec<usize>, Vec<usize>) = (0..self.blocks.len()).partition(is_matrix);
        for mut numbers in [first, then] {
            while !numbers.is_empty() {
                match self.rounds(&numbers, interrupted) {
                    Ok(None) => {}
                    Ok(Some(end)) => return Ok(end),
                    Err(error) => return Ok(End::NotKept(error)),
                }
                numbers = self.follow(source)?;
            }
        }
        for net in 0..self.live.len() {
            if let Err(error) = self.refer(net, true) {
                return Ok(End::NotKept(error));
            }
        }
        Ok(End::Tried)
    }

    /// Launches of these blocks until none is due; why it ended before, if it did.
    fn rounds(
        &mut self,
        numbers: &[usize],
        interrupted: &AtomicBool,
    ) -> Result<Option<End>, StoreError> {
        for index in 0..self.repeat.max.max(self.most_launches()) {
            let numbers = numbers.iter().copied();
            let mut round: Vec<usize> = numbers
                .filter(|number| !self.blocks[*number].reference)
                .filter(|number| !self.skipped.contains(number))
                .filter(|number| self.due(&self.blocks[*number], index))
                .collect();
            shuffle(&mut round, &mut self.random);
            for number in round {
                if interrupted.load(Ordering::Relaxed) {
                    self.event(
                        "interrupted",
                        "a signal ended the run before all repetitions were made",
                    )?;
                    return Ok(Some(End::Interrupted));
                }
                if self.over_budget() {
                    self.event(
                        "budget",
                        "the budget was used up before all repetitions were made",
                    )?;
                    return Ok(Some(End::Tried));
                }
                if let Some(text) = self.over_allowance(number) {
                    self.event("budget", &text)?;
                    return Ok(Some(End::Tried));
                }
                self.refer(self.blocks[number].net, false)?;
                self.launch(number, index)?;
            }
        }
        Ok(None)
    }

    /// Before a launch at a network: the network's reference, whenever so many others were made; at the end those that are left.
    fn refer(&mut self, net: usize, all: bool) -> Result<(), StoreError> {
        let is_here = |block: &Block| block.reference && block.net == net;
        let Some(number) = self.blocks.iter().position(is_here) else {
            return Ok(());
        };
        let made = self.made.entry(net).or_default();
        *made += 1;
        let due = all || *made % self.repeat.reference.max(1) == 1 || self.repeat.reference == 1;
        let left = (0..self.blocks[number].launches).find(|index| {
            let block = &self.blocks[number];
            self.wanted(block, *index)
        });
        match left.filter(|_| due) {
            Some(index) => {
                self.launch(number, index)?;
                // One that failed is not tried again and again.
                let missing = self.wanted(&self.blocks[number], index);
                if all && !missing {
                    self.refer(net, true)
                } else {
                    Ok(())
                }
            }
            None => Ok(()),
        }
    }

    /// Puts what the model has for a launch's cells into what it saw.
    fn tell_model(&mut self, block: &Block, record: &mut LaunchRecord) {
        for of in &block.cells {
            let Some([idle, loaded]) = self.model_of(block, of) else {
                continue;
            };
            let facts = record.evidence.size(of.factors.size_bytes);
            facts.load_model_idle_ns = Some(idle);
            facts.load_model_loaded_ns = Some(loaded);
        }
    }

    /// What the stages of a transfer give together, and what the model has for the bytes that a call on files carries beyond one that
    /// does nothing, on an idle network.
    fn tell_wire(&self, block: &Block, record: &mut LaunchRecord) {
        let net = &self.live[block.net].net;
        // Of a file system nothing goes over the network.
        let files = block.files();
        let Some(files) = files.filter(|files| files.service != Service::Fs) else {
            return;
        };
        for (size_bytes, facts) in &mut record.evidence.files {
            if let Some(stages) = Stages::of(files, *size_bytes, facts) {
                facts.expected_ns = Some(stages.expected_ns);
                facts.bottleneck = Some(stages.slowest);
            }
        }
        let (Some(model), None) = (&net.model, &block.load) else {
            return;
        };
        let profile = net.profile.unwrap_or(Profile::MODERN);
        let bounds = Bounds { model, profile };
        let path = block.path().beneath();
        for (size_bytes, facts) in &mut record.evidence.files {
            let wire = bounds.wire(path, files, *size_bytes).ok();
            facts.wire_ns = wire.map(Span::as_nanos);
        }
    }

    /// What the model has for a cell's half round trip without load and under it, in nanoseconds; worked out once a cell, as soon
    /// as the idle cell beside it has been measured, which tells what the hosts take.
    fn model_of(&mut self, block: &Block, of: &CellRecord) -> Option<[u64; 2]> {
        let (Some(load), ProbeKind::Latency) = (&block.load, block.kind()) else {
            return None;
        };
        if let Some(known) = self.models.get(&of.id) {
            return *known;
        }
        let net = &self.live[block.net].net;
        let model = net.model.as_ref()?;
        let measured = self.idle_median(&of.factors)?;
        let profile = net.profile.unwrap_or(Profile::MODERN);
        let bounds = Bounds { model, profile };
        let size = of.factors.size_bytes;
        let path = block.path().beneath();
        let times = bounds.one_way(path, size).and_then(|idle| {
            let think = Span::nanos(measured).saturating_sub(idle);
            Ok((idle, bounds.loaded(path, size, load, think)?))
        });
        let model = match times {
            Ok((idle, Some(loaded))) => Some([idle.as_nanos(), loaded.as_nanos()]),
            _ => None,
        };
        self.models.insert(of.id.clone(), model);
        model
    }

    /// The median of the medians of the same cell without load, as far as it has been measured.
    fn idle_median(&self, loaded: &Factors) -> Option<u64> {
        let idle = Factors {
            load: None,
            ..loaded.clone()
        };
        let id = idle.cell().ok()?;
        let median = |one: Repetition<'_>| {
            let samples = one.result.samples(Quantity::LatencyNs, Phase::Warm)?;
            samples.median()
        };
        let mut medians: Vec<u64> = self.run.repetitions_of(&id).filter_map(median).collect();
        medians.sort_unstable();
        medians.get(medians.len() / 2).copied()
    }

    fn most_launches(&self) -> u64 {
        self.blocks
            .iter()
            .filter(|block| !block.reference)
            .map(|block| block.launches)
            .max()
            .unwrap_or(0)
    }

    fn over_budget(&self) -> bool {
        let budget = self
            .repeat
            .budget
            .map(|budget| Duration::from_nanos(budget.as_nanos()));
        budget.is_some_and(|budget| self.began.elapsed() >= budget)
    }

    /// Why no more may be launched, where a launch of this block would end after the time that is allowed.
    fn over_allowance(&self, number: usize) -> Option<String> {
        let allowed = self.allowed?;
        let next = Duration::from_nanos(self.blocks[number].estimate_ns);
        (self.began.elapsed() + next > allowed).then(|| {
            format!(
                "no further repetition fits in the time that is allowed ({:.0} s): raise `--max-seconds` (`time` of [allow])",
                allowed.as_secs_f64()
            )
        })
    }

    /// Whether launch `index` of a block is to be made: wanted by the plan, or by an interval that is too wide. A block with
    /// launches of its own, fewer than the plan's, was to have no interval.
    fn due(&self, block: &Block, index: u64) -> bool {
        if index < block.launches {
            return self.wanted(block, index);
        }
        // A stream at a constant rate is as precise as its sender: more of them say nothing more.
        let is_constant = |spec: &Spec| spec.knobs.rate_bps.is_some();
        // What goes at once is launched as often as the plan says: each of it has an interval of its own.
        let is_of_several = matches!(block.work, Work::Rounds(_) | Work::Together(_));
        let constant = is_of_several || block.channel().is_some_and(is_constant);
        !constant
            && index < self.repeat.max
            && block.launches >= self.repeat.launches
            && self.wanted(block, index)
            && self.is_imprecise(block)
    }

    fn is_imprecise(&self, block: &Block) -> bool {
        let cells: BTreeSet<&str> = block.cells.iter().map(|cell| cell.id.as_str()).collect();
        let mut medians: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let phase = match block.kind() {
            ProbeKind::Startup => Phase::Cold,
            _ => Phase::Warm,
        };
        for Repetition { result, .. } in self.run.repetitions() {
            let main = result.samples(block.quantity(), phase);
            if let (true, Some(median)) = (
                cells.contains(result.cell.as_str()),
                main.and_then(Series::median),
            ) {
                medians.entry(&result.cell).or_default().push(median);
            }
        }
        medians
            .values()
            .any(|medians| !precision(medians).met(self.repeat.precision_per_mille))
    }

    /// One launch, kept. Where a disturbance met most of its time, it is set aside and made again.
    fn launch(&mut self, number: usize, index: u64) -> Result<(), StoreError> {
        let block = self.blocks[number].clone();
        match &block.work {
            Work::Rounds(rounds) => self.launch_rounds(&block, rounds, index),
            Work::Together(parts) => self.launch_at_once(&block, parts, index),
            Work::Channel(_) | Work::Ranks(_) => {
                let mut again = 0;
                while self.launch_pair(number, &block, index, again)? && interrupted().is_none() {
                    again += 1;
                }
                Ok(())
            }
        }
    }

    /// One launch between two hosts, made `again` so often, and kept; whether it was set aside.
    fn launch_pair(
        &mut self,
        number: usize,
        block: &Block,
        index: u64,
        again: u64,
    ) -> Result<bool, StoreError> {
        let up = &self.live[block.net];
        let shared = Rc::clone(&up.fleet);
        let mut fleet = shared.borrow_mut();
        fleet.take_network(up.nth);
        let hosts = fleet.hosts().len();
        let (src, dst) = block.pair.unwrap_or_else(|| pair(index, hosts));
        let name = |host: usize| {
            fleet
                .hosts()
                .get(host)
                .map_or_else(String::new, |host| host.name.clone())
        };
        let (src_name, dst_name) = (name(src), name(dst));
        let now = format!(
            "{} {} {} {src_name} to {dst_name}",
            up.net.name,
            block.path().name(),
            block.kind().name(),
        );
        self.progress.begins(&now);
        defect::doing(format!("in repetition {} of {now}", index + 1));
        let began_unix_ns = unix_ns();
        let began = Instant::now();
        let lost = [src, dst].into_iter().find(|host| !fleet.alive(*host));
        let set_of = hosts_of(&fleet, block, [src, dst]);
        let (mut changes, mut back) = (None, Vec::new());
        let launched = match lost {
            Some(host) => Err(format!(
                "{} was lost: {}",
                name(host),
                fleet.loss(host).unwrap_or("it is gone")
            )),
            None => match set_hosts(&mut fleet, block, &set_of) {
                Err(unset) if !unset.lost => {
                    drop(fleet);
                    self.skip(number, &unset.to_string())?;
                    return Ok(false);
                }
                Err(lost) => Err(lost.to_string()),
                Ok(set) => {
                    changes = Some(set);
                    Ok(())
                }
            }
            .and_then(|()| {
                let between = Between {
                    src,
                    dst,
                    one_way_ns: up.one_way_ns,
                    load: block.load.clone(),
                };
                let launched = match &block.work {
                    Work::Ranks(ranks) => fleet.ranks(&ranks.asked(between)),
                    Work::Channel(spec) => fleet.converse(&Ask {
                        spec: Spec::clone(spec),
                        between,
                    }),
                    Work::Rounds(_) | Work::Together(_) => {
                        unreachable!("they are launched as such")
                    }
                };
                launched.map_err(|error| error.to_string())
            }),
        };
        if changes.is_some() {
            for (host, _) in set_of {
                if let Err(error) = fleet.put_back(host) {
                    back.push(error.to_string());
                }
            }
        }
        drop(fleet);
        let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (launched, failure) = match launched {
            Err(failure) => (None, Some(failure)),
            Ok(mut launched) => {
                let told = &mut launched.outcome.evidence.application;
                self.trace = told.trace.take().map(|trace| trace.0);
                // What it saw is kept: it says what is wrong.
                let wrong = match block.kind() {
                    ProbeKind::Check => sound::wrong(&launched.outcome.evidence),
                    _ => told.kernel.as_ref().and_then(Kernel::unverified),
                };
                (Some(launched), wrong)
            }
        };
        let failure = failure.as_deref();
        let succeeded = launched.as_ref().filter(|_| failure.is_none());
        // Decided before any figure of it is read.
        let disturbed = succeeded
            .and_then(seen::disturbed_share)
            .filter(|share| *share > 0.5);
        if disturbed.is_some() && again == self.repeat.again {
            self.in_vain.insert(number);
        }
        let no_time = self.over_budget() || self.over_allowance(number).is_some();
        let set_aside = disturbed.filter(|_| !no_time && !self.in_vain.contains(&number));
        let mut record = LaunchRecord {
            src: src_name.clone(),
            dst: dst_name.clone(),
            began_unix_ns,
            took_ns,
            set_aside: set_aside.is_some(),
            ..record(block, index, launched.as_ref(), failure)
        };
        seen::tell(&mut record, block, succeeded);
        tell_changes(changes.as_deref().unwrap_or_default(), &mut record.evidence);
        self.tell_model(block, &mut record);
        self.tell_wire(block, &mut record);
        self.keep(vec![record])?;
        for text in back {
            let text = format!("a setting was not restored: {text}");
            self.event("not_put_back", &text)?;
            self.progress.suspend(|| tell!("sonde: {text}"));
        }
        if let Some(text) = failure {
            let net = &self.live[block.net].net.name;
            let (path, number) = (block.path().name(), index + 1);
            let text = match block.ranks().and_then(Ranks::program) {
                Some(program) => {
                    format!("{program} over {path} on {net}: repetition {number} failed: {text}")
                }
                None => format!(
                    "{net} {path} {}: repetition {number} from {src_name} to {dst_name} failed: {text}",
                    block.kind().name()
                ),
            };
            self.progress.suspend(|| tell!("sonde: {text}"));
        }
        if let Some(share) = set_aside {
            self.progress
                .suspend(|| tell!("sonde: {}", seen::set_aside(&now, index, share)));
            return Ok(true);
        }
        let network = &self.live[block.net].net.name;
        self.progress.saw(network, block, &self.run, 1);
        self.progress.ended(block.estimate_ns);
        Ok(false)
    }

    /// The cells of a block are not measured, for want of what `reason` says.
    fn skip(&mut self, number: usize, reason: &str) -> Result<(), StoreError> {
        let block = &self.blocks[number];
        let of = |cell: &&mut CellRecord| block.cells.iter().any(|one| one.id == cell.id);
        for cell in self.run.cells.iter_mut().filter(of) {
            cell.skipped = Some(reason.to_owned());
            self.store.cell(&self.run.head.id, cell)?;
        }
        self.skipped.insert(number);
        let text = format!("{} is left out: {reason}", named(block));
        self.progress.suspend(|| tell!("sonde: {text}"));
        Ok(())
    }
}

/// What a launch gave for each cell of its block and what it saw, without hosts and times. Of one that failed no figure counts.
fn record(
    block: &Block,
    index: u64,
    launched: Option<&Launched>,
    failure: Option<&str>,
) -> LaunchRecord {
    let behind = seen::behind(launched.and_then(|launched| launched.report.as_ref()));
    let result = |cell: &CellRecord| {
        let of = |size: &&sonde_probe::SizeOutcome| size.size_bytes == cell.factors.size_bytes;
        let given = launched.and_then(|launched| launched.outcome.sizes.iter().find(of));
        let (series, failure) = match (failure, given) {
            (Some(_), _) => (Vec::new(), failure),
            (None, Some(size)) => {
                let measured = size.measurements.clone();
                (seen::touched(measured, size.seen.as_ref(), &behind), None)
            }
            (None, None) => (
                Vec::new(),
                Some("the agents returned no result for this size"),
            ),
        };
        CellResult {
            cell: cell.id.clone(),
            index,
            failure: failure.map(str::to_owned),
            series,
        }
    };
    let wanted = block.cells.iter().filter(|cell| cell.skipped.is_none());
    let results = wanted.map(result).collect();
    let Some(launched) = launched else {
        return LaunchRecord {
            results,
            ..LaunchRecord::default()
        };
    };
    // Ranks on one host send nothing over the network whose emulation could be judged.
    let ranks = block.ranks();
    let is_on_one_host = ranks.is_some_and(Ranks::is_on_one_host);
    let report = launched.report.as_ref().filter(|_| !is_on_one_host);
    LaunchRecord {
        results,
        evidence: launched.outcome.evidence.clone(),
        interference: launched.outcome.interference.clone(),
        verdict: report.map(Report::verdict),
        disturbances: report.map(Report::disturbances).unwrap_or_default(),
        ..LaunchRecord::default()
    }
}

/// A block in words: `throughput over tcp with mtu=9000`.
fn named(block: &Block) -> String {
    let knobs: Vec<String> = block
        .knobs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!(
        "{} over {} with {}",
        block.kind().name(),
        block.path(),
        knobs.join(", ")
    )
}

/// Fisher and Yates, from the last.
fn shuffle<T>(items: &mut [T], random: &mut Pcg64Mcg) {
    for last in (1..items.len()).rev() {
        items.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_drawn_evenly() {
        // A shuffle that swaps each place with any other one gives some orders too often.
        let mut random = Pcg64Mcg::seed_from_u64(24);
        let mut counts: BTreeMap<[u8; 4], u32> = BTreeMap::new();
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            shuffle(&mut items, &mut random);
            *counts.entry(items).or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        let square = |count: &u32| (f64::from(*count) - 1_000.0).powi(2) / 1_000.0;
        let sum: f64 = counts.values().map(square).sum();
        // 23 degrees of freedom: one in a thousand is above 49.7.
        assert!(sum < 49.7, "{sum}");
    }

    #[test]
    fn pairs_rotate_over_all_hosts() {
        assert_eq!(
            [0, 1, 2, 3].map(|index| pair(index, 2)),
            [(0, 1), (1, 0), (0, 1), (1, 0)]
        );
        for hosts in 2..=7_u64 {
            let all = hosts * (hosts - 1);
            let pairs: BTreeSet<_> = (0..all).map(|index| pair(index, hosts as usize)).collect();
            assert_eq!(
                pairs.len() as u64,
                all,
                "every ordered pair of {hosts}, each once"
            );
            assert!(pairs.iter().all(|(src, dst)| src != dst));
            let first: BTreeSet<_> = (0..hosts)
                .map(|index| pair(index, hosts as usize).0)
                .collect();
            assert_eq!(
                first.len() as u64,
                hosts,
                "all of {hosts} send within the first round of pairs"
            );
        }
    }
}
