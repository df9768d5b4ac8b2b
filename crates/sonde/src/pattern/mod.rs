//! `sonde probe pattern`: many flows at once, from the options to a run, its tables and its verdict.
//!
//! Model:   a launch is a fresh worker on every host; it makes all rounds, in an order drawn from the seed. Each flow has a cell, and
//!          all flows of a round have one together, `flow=all`. A matrix is measured by matchings; what stands out of it is
//!          measured again together, then alone beside pairs that do not. What a launch gave is in the store before the next.
//! Checked: the tests of `rounds` and `cells`; `tests/lab_pattern.rs`, `tests/lab_verdict.rs`.

mod cells;
mod incast;
mod print;
mod rounds;

use crate::campaign::{self, unix_ns};
use crate::cli::Common;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::{self, Planned};
use crate::model;
use crate::plan::Kind as Bed;
use crate::testbed::{self, LabOptions};
use cells::Cells;
pub use rounds::RoundRequest;
use sonde_fleet::{Fleet, PatternAsk, SshOptions};
use sonde_lab::Config;
use sonde_measure::{Knobs, Path as Route};
use sonde_measure::{NetworkRecord, Quantity, Run, RunState, Testbed};
use sonde_probe::pattern::Kind;
use sonde_probe::pattern::sets::Set;
use sonde_record::Store;
use sonde_sys::tell;
use sonde_units::Span;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// What each flow of a set does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Stream,
    Latency,
    LatencyUdp,
    Exchange,
}

impl What {
    fn kind(self) -> Kind {
        match self {
            Self::Stream => Kind::Stream,
            Self::Latency => Kind::Latency,
            Self::LatencyUdp => Kind::LatencyUdp,
            Self::Exchange => Kind::Exchange,
        }
    }
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [
            Self::Stream,
            Self::Latency,
            Self::LatencyUdp,
            Self::Exchange,
        ];
        let found = all.into_iter().find(|one| one.kind().name() == text);
        found.ok_or_else(|| {
            format!("there is no kind `{text}`: write stream, latency, latency-udp or exchange")
        })
    }
}

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A set of pairs.
    Set(Set),
    /// Every ordered pair, with a verdict.
    AllPairs,
    /// More and more to one, beside who only asks.
    Incast,
}

impl Shape {
    /// Those that a text names: sets after each other, or one of the others.
    pub fn parse(text: &str) -> Result<Vec<Self>, Failure> {
        match text {
            sonde_report::matrix::ALL_PAIRS => return Ok(vec![Self::AllPairs]),
            "incast" => return Ok(vec![Self::Incast]),
            _ => {}
        }
        if text.contains('>') {
            let set = text.parse().map_err(Failure::usage)?;
            return Ok(vec![Self::Set(set)]);
        }
        let set = |word: &str| word.parse().map(Self::Set).map_err(Failure::usage);
        text.split(',').map(set).collect()
    }
}

/// What to measure.
#[derive(Debug)]
pub struct Task {
    pub shapes: Vec<Shape>,
    pub kinds: Vec<What>,
    pub size_bytes: Option<u64>,
    pub senders: Option<(usize, usize)>,
    pub window: Option<Span>,
    pub lead: Option<Span>,
    pub gap: Span,
    pub samples: u64,
    pub knobs: Knobs,
    pub knobs_text: BTreeMap<String, String>,
    pub script: Option<PathBuf>,
    pub prepare: Vec<(u16, String)>,
    pub quick: bool,
    pub launches: Option<u64>,
    pub common: Common,
}

/// Hosts that are up, and the network between them.
struct Grounds {
    fleet: Fleet,
    network: NetworkRecord,
    testbed: Testbed,
    profile: Option<String>,
    attachment: Option<String>,
}

/// A store, the run so far, and what makes it.
struct Session {
    store: Store,
    run: Run,
    cells: Cells,
    warnings: Vec<String>,
}

impl Task {
    /// Does it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        if let Some(code) = crate::allocation::bystander(self.common.testbed.0) {
            return Ok(code);
        }
        let launches = self.launches();
        if self.common.dry_run {
            return self.print_plan(launches);
        }
        let store = Store::open(&self.common.out).map_err(Failure::cannot)?;
        let mut warnings = Vec::new();
        let mut ground = self.ground(&mut warnings)?;
        self.check_prepared(ground.fleet.hosts().len())?;
        for (host, command) in &self.prepare {
            let prepared = ground.fleet.prepare(usize::from(*host) - 1, command);
            prepared.map_err(Failure::cannot)?;
        }
        if !self.prepare.is_empty() {
            ground.fleet.describe_again().map_err(Failure::cannot)?;
        }
        let asked = self.asked(ground.fleet.hosts().len())?;
        let run = self.begin(&ground, &store)?;
        let cells = Cells::new(&self, &ground);
        let mut session = Session {
            store,
            run,
            cells,
            warnings,
        };
        let measured = self.measure(&mut ground, &mut session, &asked, launches);
        session.end(&mut ground.fleet)?;
        ground.fleet.stop().map_err(Failure::cannot)?;
        let Session { run, warnings, .. } = session;
        let trouble = measured.err();
        let code = print::all(&self, &run, &warnings)?;
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        let page = self.common.out.join(format!("{}.html", run.head.id));
        measure::say_report(&run, &page);
        measure::say_where(&run.head.id, &self.common.out);
        Ok(code)
    }

    /// How often everything is launched.
    fn launches(&self) -> u64 {
        let usual = match self.shapes[..] {
            [Shape::AllPairs] => 1,
            _ if self.quick => 2,
            _ => 6,
        };
        self.launches.unwrap_or(usual)
    }

    /// Prints what would be launched; what is wrong with it is found as before a run.
    fn print_plan(&self, launches: u64) -> Result<i32, Failure> {
        self.check()?;
        let (hosts, network) = match self.common.testbed.0 {
            Bed::Lab => {
                let config = self.config()?;
                (usize::from(config.hosts), config.network.name)
            }
            kind => {
                let testbed = self.common.testbed();
                let hosts = match kind {
                    Bed::Hosts => testbed.targets()?.len(),
                    _ => testbed.count().unwrap_or(usize::from(testbed.hosts)),
                };
                (hosts, self.real_network()?.into())
            }
        };
        self.check_prepared(hosts)?;
        let asked = self.asked(hosts)?;
        let planned = Planned::of_rounds(&network, launches, &asked);
        if self.common.json {
            planned.print_document()?;
            return Ok(0);
        }
        let flows: usize = asked.iter().map(|one| one.flows()).sum();
        let ns: u64 = asked.iter().map(RoundRequest::estimate_ns).sum();
        println!(
            "{} rounds of {flows} flows among {hosts} hosts, {launches} launches, about {} s",
            asked.len(),
            (ns * launches).div_ceil(1_000_000_000)
        );
        Ok(0)
    }

    /// What is of no use on this testbed is refused.
    fn check(&self) -> Result<(), Failure> {
        let lab_only = self.script.is_some() || !self.prepare.is_empty();
        match self.common.testbed.0 {
            Bed::Local => Err(Failure::usage(
                "a pattern needs hosts: use `--testbed lab` or `--testbed hosts:a,b`",
            )),
            Bed::Lab => Ok(()),
            _ if lab_only => Err(Failure::usage(
                "`--script` and `--prepare` are for a lab's hosts: use `--testbed lab`",
            )),
            _ => Ok(()),
        }
    }

    /// The hosts that are prepared are there.
    fn check_prepared(&self, hosts: usize) -> Result<(), Failure> {
        let beyond = self.prepare.iter().map(|(host, _)| *host);
        match beyond.into_iter().find(|host| usize::from(*host) > hosts) {
            Some(host) => Err(Failure::usage(format!(
                "there is no host h{host}: the lab has h1 to h{hosts}"
            ))),
            None => Ok(()),
        }
    }

    /// The one network of real hosts that was chosen, or a name for that by which they reach each other.
    fn real_network(&self) -> Result<&str, Failure> {
        match &self.common.networks[..] {
            [] => Ok(measure::REAL),
            [one] => Ok(one),
            several => Err(Failure::usage(format!(
                "a pattern is measured in one network, not in {}: give `--network` once",
                several.len()
            ))),
        }
    }

    fn ground(&self, warnings: &mut Vec<String>) -> Result<Grounds, Failure> {
        let program = testbed::this_program()?;
        let common = &self.common;
        self.check()?;
        match common.testbed.0 {
            Bed::Lab | Bed::Local => self.lab(&program, warnings),
            Bed::Hosts => {
                let fleet = Fleet::ssh(
                    &program,
                    &common.testbed().targets()?,
                    &SshOptions::default(),
                );
                self.real(fleet.map_err(Failure::cannot)?)
            }
            Bed::Slurm | Bed::Mpirun | Bed::Listen => {
                let listen = common.listen.unwrap_or_default();
                let options = crate::allocation::options(&common.testbed(), listen)?;
                self.real(Fleet::connected(&program, &options).map_err(Failure::cannot)?)
            }
        }
    }

    /// Hosts as they are, by the network that was chosen or the one by which they reach each other.
    fn real(&self, mut fleet: Fleet) -> Result<Grounds, Failure> {
        let network = match self.real_network()? {
            measure::REAL => {
                let least = |of: fn(&sonde_measure::HostRecord) -> Option<u64>| {
                    fleet.hosts().iter().filter_map(of).min()
                };
                let mtu = least(|host| host.facts.mtu_bytes).unwrap_or(1_500);
                let line = least(|host| host.facts.line_bps);
                let summary = "the interfaces by which the hosts reach each other";
                model::real(measure::REAL, summary, mtu, line)
            }
            one => {
                let choice = one.parse().map_err(Failure::usage)?;
                fleet.join(&[choice]).map_err(Failure::cannot)?;
                fleet.take_network(Some(0));
                measure::record_of(&fleet.joined()[0])
            }
        };
        Ok(Grounds {
            network,
            fleet,
            testbed: Testbed::Hosts,
            profile: None,
            attachment: None,
        })
    }

    fn config(&self) -> Result<Config, Failure> {
        let mut options = LabOptions::of_hosts(self.common.hosts.clone());
        if !self.common.networks.is_empty() {
            options.networks.clone_from(&self.common.networks);
        }
        options.script.clone_from(&self.script);
        options.config()
    }

    fn lab(&self, program: &Path, warnings: &mut Vec<String>) -> Result<Grounds, Failure> {
        let config = self.config()?;
        let profile = self.common.hosts.profile;
        let fleet = Fleet::lab(program, &config).map_err(Failure::cannot)?;
        let points: std::collections::BTreeSet<_> = [(Route::Tcp, Quantity::ThroughputBps, None)]
            .into_iter()
            .collect();
        let mut network = model::network(&config.network, profile, points, warnings)?;
        network.attachment = fleet.attachment();
        network.backpressure = fleet.backpressure();
        Ok(Grounds {
            attachment: fleet.attachment(),
            network,
            fleet,
            testbed: Testbed::Lab,
            profile: Some(profile.to_string()),
        })
    }

    fn begin(&self, ground: &Grounds, store: &Store) -> Result<Run, Failure> {
        let run = Run {
            head: measure::begun(String::new(), self.common.hosts.seed)?,
            hosts: ground.fleet.hosts().to_vec(),
            networks: vec![ground.network.clone()],
            cells: Vec::new(),
            launches: Vec::new(),
            events: Vec::new(),
            warnings: Vec::new(),
        };
        store.begin(&run).map_err(Failure::cannot)?;
        Ok(run)
    }

    fn measure(
        &self,
        ground: &mut Grounds,
        session: &mut Session,
        asked: &[RoundRequest],
        launches: u64,
    ) -> Result<(), Failure> {
        for index in 0..launches {
            let seed = self.common.hosts.seed.wrapping_add(index);
            let some = rounds::in_order(asked, seed);
            tell!(
                "sonde: launch {} of {launches}: {} rounds",
                index + 1,
                some.len()
            );
            session.launch(self, ground, &some, index)?;
        }
        if self.shapes == [Shape::AllPairs] {
            self.again(ground, session)?;
        }
        Ok(())
    }

    /// Measures again what stands out of a matrix.
    fn again(&self, ground: &mut Grounds, session: &mut Session) -> Result<(), Failure> {
        let Some(suspects) = sonde_report::matrix::suspects(&session.run) else {
            return Ok(());
        };
        if suspects.hosts.is_empty() && suspects.pairs.is_empty() {
            return Ok(());
        }
        let hosts = ground.fleet.hosts();
        let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
        let asked = self.retest(&names, &suspects);
        let pairs: Vec<String> = suspects
            .pairs
            .iter()
            .map(|(a, b)| format!("{a} to {b}"))
            .collect();
        let all: Vec<String> = suspects.hosts.iter().cloned().chain(pairs).collect();
        tell!(
            "sonde: {} stood out and {} measured again, together and alone: {} rounds",
            all.join(", "),
            if all.len() == 1 { "is" } else { "are" },
            asked.len()
        );
        session.launch(self, ground, &asked.iter().collect::<Vec<_>>(), 0)
    }
}

impl Session {
    /// One launch, kept.
    fn launch(
        &mut self,
        task: &Task,
        ground: &mut Grounds,
        asked: &[&RoundRequest],
        index: u64,
    ) -> Result<(), Failure> {
        let began_unix_ns = unix_ns();
        let launched = ground.fleet.pattern(&PatternAsk {
            rounds: asked.iter().map(|one| one.round.clone()).collect(),
            knobs: task.knobs.clone(),
            timeout: Duration::from_secs(5),
        });
        let launched = launched.map_err(Failure::cannot)?;
        let hosts = ground.fleet.hosts();
        for (host, why) in &launched.lost {
            let text = format!("{} did not come to the end: {why}", hosts[*host].name);
            tell!("sonde: {text}");
            self.warnings.push(text);
        }
        if launched.refused > 0 {
            self.warnings.push(format!(
                "{} strangers came to the data ports and were turned away",
                launched.refused
            ));
        }
        let mut made = Vec::new();
        for (asked, outcome) in asked.iter().zip(&launched.rounds) {
            made.extend(self.cells.records(asked, outcome, &launched, index));
        }
        for record in &mut made {
            record.began_unix_ns = began_unix_ns;
        }
        let id = self.run.head.id.clone();
        for cell in self.cells.fresh() {
            self.store.cell(&id, &cell).map_err(Failure::cannot)?;
            self.run.cells.push(cell);
        }
        self.store.launches(&id, &made).map_err(Failure::cannot)?;
        self.run.launches.extend(made);
        Ok(())
    }

    /// Ends the run.
    fn end(&mut self, fleet: &mut Fleet) -> Result<(), Failure> {
        fleet.resync();
        self.warnings.extend(fleet.notes());
        // A cell has as many launches as were made of it.
        let id = self.run.head.id.clone();
        self.run.hosts = fleet.hosts().to_vec();
        for warning in &self.warnings {
            if !self.run.warnings.contains(warning) {
                self.store.warning(&id, warning).map_err(Failure::cannot)?;
                self.run.warnings.push(warning.clone());
            }
        }
        for host in &self.run.hosts {
            self.store.host(&id, host).map_err(Failure::cannot)?;
        }
        let complete = self.run.missing().is_empty();
        self.run.head.state = if complete {
            RunState::Complete
        } else {
            RunState::Partial
        };
        self.run.head.ended_unix_ns = Some(unix_ns());
        let (state, ended) = (self.run.head.state, self.run.head.ended_unix_ns);
        self.store
            .end_at(&id, state, ended)
            .map_err(Failure::cannot)
    }
}

/// What became of a run: a flow that failed in a round has failed.
fn outcome(run: &Run) -> Outcome {
    let failed = run.repetitions().filter(|one| !one.succeeded()).count();
    let failed = (failed > 0).then(|| format!("flows that failed: {failed}"));
    Outcome {
        is_measured: run.repetitions().any(|one| one.succeeded()),
        failed: failed.into_iter().collect(),
        signal: campaign::interrupted(),
        ..Outcome::default()
    }
}
