//! A trial's run in the store: a cell for each placement, a launch for each time that the program was started.
//!
//! Model:   all cells are there before the first launch, and each launch before the next: a trial that is killed lacks what it lacks
//!          and keeps the rest. It has no plan, so it cannot go on: its lab is gone, and its orders were drawn for it. What cannot
//!          be stored is kept in memory, and said at the end.
//! Units:   nanoseconds.
//! Checked: `a_trial_is_a_run`, `crates/sonde/tests/lab_place.rs`.

use super::trial::Trial;
use crate::campaign::lost;
use crate::failure::Failure;
use crate::model::Modelled;
use crate::{measure, model};
use sonde_lab::{Config, Lab, Report};
use sonde_measure::{
    Backpressure, CellRecord, CellResult, Evidence, Factors, HostFacts, HostRecord, LaunchRecord,
    Layer, Measurement, NetworkRecord, Phase, Quantity, Run, RunState, Testbed,
};
use sonde_place::{Cluster, Placement};
use sonde_record::{Store, StoreError};
use sonde_sys::host;
use std::path::Path;

/// What starts the program and carries its messages.
const PATH: &str = "openmpi:tcp";

/// The run of a trial, as far as it has come.
pub struct TrialRun {
    store: Store,
    run: Run,
    trouble: Option<StoreError>,
}

/// One start of the program.
pub struct Launch<'a> {
    /// Under which placement, as an index into the cells.
    pub at: usize,
    /// Which of that placement's, from 0.
    pub index: u64,
    /// Where its ranks were.
    pub placement: &'a Placement,
    /// When it began.
    pub began_unix_ns: u64,
    /// How long it took with its start.
    pub took_ns: u64,
    /// The program's own time, or why there is none.
    pub time_ns: Result<u64, String>,
    /// What the network did meanwhile.
    pub report: Option<Report>,
}

impl TrialRun {
    /// Begins the run of a trial among these placements.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn begin(
        store: Store,
        trial: &Trial<'_>,
        names: &[&str],
        lab: &Lab,
        config: &Config,
    ) -> Result<Self, Failure> {
        let mut warnings = Vec::new();
        let modelled = match config.site.network() {
            Some(spec) => Modelled::network(spec.clone()),
            None => Modelled::site(config.site.clone(), None)?,
        };
        let mut network = model::network(&modelled, config.profile, [], &mut warnings)?;
        network.attachment = Some(lab.info().attachment.name().into());
        network.backpressure = Some(match &*lab.info().backpressure {
            "gate" => Backpressure::Gate,
            _ => Backpressure::None,
        });
        let profile = config.profile.to_string();
        let cells = names
            .iter()
            .map(|name| cell(trial, name, &network, &profile));
        let run = Run {
            head: measure::begun(String::new(), trial.seed)?,
            hosts: trial
                .cluster
                .hosts
                .iter()
                .map(|one| host_of(&one.name))
                .collect(),
            cells: cells.collect::<Result<_, _>>()?,
            networks: vec![network],
            launches: Vec::new(),
            events: measure::named(trial.name),
            warnings,
        };
        store.begin(&run).map_err(Failure::cannot)?;
        Ok(Self {
            store,
            run,
            trouble: None,
        })
    }

    /// Keeps a launch.
    pub fn launched(&mut self, cluster: &Cluster, launch: Launch<'_>) {
        let cell = self.run.cells[launch.at].id.clone();
        let record = record(cluster, cell, launch);
        if self.trouble.is_none() {
            self.trouble = self.store.launch(&self.run.head.id, &record).err();
        }
        self.run.launches.push(record);
    }

    /// Ends the run, and says where it is; the run, and why some of it may be missing in the store.
    pub fn end(mut self, out: &Path) -> (Run, Option<StoreError>) {
        let state = match self.run.missing().is_empty() {
            true => RunState::Complete,
            false => RunState::Partial,
        };
        let ended = self.store.end(&self.run.head.id, state);
        let trouble = self.trouble.take().or(ended.err());
        if trouble.is_none() {
            measure::say_where(&self.run.head.id, out);
        }
        (self.run, trouble)
    }
}

/// A placement's cell.
fn cell(
    trial: &Trial<'_>,
    name: &str,
    network: &NetworkRecord,
    profile: &str,
) -> Result<CellRecord, Failure> {
    let words = trial.program.iter().map(|word| word.to_string_lossy());
    let program = match trial.program.is_empty() {
        true => "replay".to_owned(),
        false => words.collect::<Vec<_>>().join(" "),
    };
    let (bytes, messages) = trial.matrix.total();
    let knobs = [
        ("placement", name.to_owned()),
        ("ranks", trial.matrix.ranks().to_string()),
        ("program", program),
        ("bytes", bytes.to_string()),
        ("messages", messages.to_string()),
    ];
    let knobs = knobs.map(|(name, value)| (name.into(), value));
    let hosts = trial.cluster.hosts.iter();
    let factors = Factors {
        probe: "place".into(),
        mode: None,
        layer: Layer::Application,
        path: PATH.into(),
        method: Some("plain".into()),
        knobs: knobs.into(),
        wait: Some("poll".into()),
        network: network.row.name.clone(),
        testbed: Testbed::Lab,
        hosts: hosts.map(|host| host.name.clone()).collect(),
        profile: Some(profile.into()),
        attachment: network.attachment.clone(),
        load: None,
        // Its messages have sizes of their own.
        size_bytes: 0,
    };
    Ok(CellRecord {
        id: factors.cell().map_err(Failure::cannot)?,
        factors,
        launches: trial.launches,
        skipped: None,
    })
}

/// A host of the lab, which is this machine.
fn host_of(name: &str) -> HostRecord {
    let (_, kernel) = host::names();
    HostRecord {
        name: name.into(),
        facts: HostFacts {
            hostname: name.into(),
            kernel,
            cpu: host::cpu_model(),
            cpus: host::cpus(),
            memory_bytes: host::memory_bytes(),
            clock_source: host::clock_source(),
            ..HostFacts::default()
        },
        ..HostRecord::default()
    }
}

/// What is written of a launch.
fn record(cluster: &Cluster, cell: String, launch: Launch<'_>) -> LaunchRecord {
    let hosts = launch.placement.hosts().iter();
    let hosts = hosts.map(|host| cluster.hosts[*host].name.as_str());
    let mut evidence = Evidence::default();
    evidence.ranks.count = Some(launch.placement.hosts().len() as u64);
    evidence.ranks.hosts = Some(sonde_measure::Names(hosts.map(Into::into).collect()));
    let result = CellResult {
        cell,
        index: launch.index,
        failure: launch.time_ns.as_ref().err().cloned(),
        series: launch.time_ns.ok().map(time).into_iter().collect(),
    };
    let report = launch.report.as_ref();
    let mut record = LaunchRecord {
        began_unix_ns: launch.began_unix_ns,
        took_ns: launch.took_ns,
        results: vec![result],
        evidence,
        verdict: report.map(Report::verdict),
        disturbances: report.map(Report::disturbances).unwrap_or_default(),
        ..LaunchRecord::default()
    };
    if let Some(report) = report.filter(|_| record.results[0].failure.is_none()) {
        lost(report, &mut record);
    }
    record
}

fn time(time_ns: u64) -> Measurement {
    Measurement {
        touched: None,
        quantity: Quantity::ProgramNs,
        phase: Phase::Warm,
        step: None,
        series: std::iter::once(time_ns).collect(),
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_a_run() {
        let text = "[[site]]\nname = \"a\"\nhosts = [\"h1\", \"h2\"]\nslots = 2\nrate = \"1Gbit\"\nlatency = \"9us\"\n";
        let cluster = sonde_place::parse_cluster(text).unwrap();
        let placement = Placement::new(vec![1, 0, 1]);
        let launch = |time_ns| Launch {
            at: 0,
            index: 4,
            placement: &placement,
            began_unix_ns: 7,
            took_ns: 9,
            time_ns,
            report: Some(Report::default()),
        };
        let made = record(&cluster, "c".into(), launch(Ok(8)));
        let result = &made.results[0];
        let own = result.samples(Quantity::ProgramNs, Phase::Warm).unwrap();
        assert_eq!((own.median(), result.index), (Some(8), 4));
        let lost = result.samples(Quantity::NetworkLostShare, Phase::Warm);
        assert_eq!(lost.and_then(|lost| lost.median()), Some(0));
        let ranks = &made.evidence.ranks;
        let hosts = ranks.hosts.as_ref().unwrap().0.iter();
        let hosts: Vec<String> = hosts.map(ToString::to_string).collect();
        assert_eq!((ranks.count, hosts.join(" ")), (Some(3), "h2 h1 h2".into()));
        assert!(made.verdict.is_some());
        let failed = record(
            &cluster,
            "c".into(),
            launch(Err("ended with code 1".into())),
        );
        let result = &failed.results[0];
        assert_eq!(result.failure.as_deref(), Some("ended with code 1"));
        assert!(result.series.is_empty());
    }
}
