//! `sonde place`: where the ranks of a program should run, what that brings by the arithmetic, and what it brings when tried.
//!
//! Model:   who talks to whom comes from a file or a named pattern, the hosts from a network, a site, a file or a run of all pairs.
//!          The placement found stands beside what launchers do by themselves and beside random draws, of which the one of
//!          median cost is shown.
//! Checked: `crates/sonde/tests/place.rs`, `crates/sonde/tests/lab_place.rs`.

mod folder;
mod kept;
pub mod mpi;
mod network;
mod outcome;
mod record;
mod trial;

pub use mpi::named as mpi_named;
pub use network::{of_pairs, of_site};
pub use record::{run as record, usual as usual_matrix};

use crate::document::{self, Command, Document};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::{command_line, not_kept};
use crate::output::{self, Page, Print};
use crate::testbed::LabOptions;
pub use outcome::Placements;
use outcome::{CircuitsRow, HostRow, PlacementRow};
use sonde_measure::Run;
use sonde_place::{Cluster, Launcher, Matrix, Placement, Topology};
use sonde_record::{Judgement, StoreError};
use sonde_report::counted;
use sonde_sys::tell;
use std::ffi::OsString;
use std::path::PathBuf;
use trial::{Entrant, Trial, TrialResult};

/// Launches of which an interval can be said.
const LAUNCHES_MIN: u64 = 6;

/// What is to be placed, and what is to be done with it.
pub struct Task {
    /// Who talks to whom.
    pub matrix: Matrix,
    /// On what.
    pub cluster: Cluster,
    /// Where random draws begin.
    pub seed: u64,
    /// How many random placements are drawn.
    pub draws: u64,
    /// Files to be written, and for whom.
    pub files: Vec<(Launcher, PathBuf)>,
    /// Which placement they are of.
    pub chosen: String,
    /// A virtual topology to be worked out.
    pub topology: Option<Topology>,
    /// The trial, where one is wanted.
    pub verify: Option<Verify>,
    /// What is to be known of the hosts before the figures are trusted.
    pub notes: Vec<String>,
    /// In which form results are printed.
    pub print: Print,
}

/// How placements are tried out.
pub struct Verify {
    /// In this lab.
    pub lab: LabOptions,
    /// So often each.
    pub launches: u64,
    /// With this program; empty: the matrix is replayed.
    pub program: Vec<OsString>,
    /// The folder of the store in which the launches are kept.
    pub out: PathBuf,
    /// What the run is called.
    pub name: Option<String>,
    /// The run's page, where one is wanted.
    pub page: Page,
}

/// The names of the placements.
pub const NAMES: [&str; 4] = ["mapped", "block", "round-robin", "random"];

impl Task {
    /// Does it; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let ranks = self.matrix.ranks();
        let mapping =
            sonde_place::map(&self.matrix, &self.cluster, self.seed).map_err(Failure::usage)?;
        let placements = [
            mapping.placement,
            sonde_place::block(ranks, &self.cluster).map_err(Failure::usage)?,
            sonde_place::round_robin(ranks, &self.cluster).map_err(Failure::usage)?,
            self.median_draw()?,
        ];
        let mut outcome = self.outcome(&placements);
        let mut warnings = self.notes.clone();
        if !mapping.is_complete {
            warnings.push("the limit on swaps was reached: a better placement may exist".into());
        }
        let chosen = NAMES
            .iter()
            .position(|name| *name == self.chosen)
            .unwrap_or(0);
        if let Some(topology) = &self.topology {
            let circuits =
                sonde_place::circuits(topology, &self.matrix, &self.cluster, &placements[chosen]);
            outcome.circuits = circuits.iter().map(CircuitsRow::from).collect();
        }
        for (launcher, path) in &self.files {
            let shown = path.display().to_string();
            std::fs::write(path, launcher.file(&placements[chosen], &self.cluster))
                .map_err(|e| Failure::unwritten(format!("cannot write {shown}: {e}")))?;
            tell!("sonde: wrote {shown}: {}", launcher.command(&shown, ranks));
        }
        let tried = match &self.verify {
            Some(verify) => Some(self.verify(verify, &placements, chosen, &mut outcome)?),
            None => None,
        };
        let few = self.verify.as_ref().map(|verify| verify.launches);
        if let Some(launches) = few.filter(|launches| *launches < LAUNCHES_MIN) {
            warnings.push(format!(
                "no confidence interval with {}: write `--launches {LAUNCHES_MIN}` or more",
                counted(launches, "repetition")
            ));
        }
        let run = tried.as_ref().map(|(run, _)| run);
        let ended = run.map(|run| Outcome::of(run, false));
        if self.print == Print::Csv {
            output::csv(&outcome::CSV_COLUMNS, &outcome.placements)?;
        } else if self.print == Print::Json {
            let command = Command::Place(&outcome);
            let mut document = match run.zip(ended.as_ref()) {
                Some((run, ended)) => document::of_run(command, run, ended.judgement()),
                None => {
                    let verdict = Judgement::none("nothing was measured: see `--verify`");
                    Document::new(command, &command_line(), verdict)
                }
            };
            document.warnings.extend(warnings.iter().cloned());
            document::print(&document)?;
        } else {
            output::shown(&outcome.text());
        }
        if self.print != Print::Json {
            warnings
                .iter()
                .for_each(|warning| tell!("sonde: {warning}"));
        }
        if let (Some(verify), Some(run)) = (&self.verify, run) {
            verify.page.serve(run, &verify.out)?;
        }
        match tried.and_then(|(_, trouble)| trouble) {
            Some(trouble) => Err(not_kept(&trouble)),
            None => Ok(ended.map_or(0, Outcome::code)),
        }
    }

    /// Of all draws the one whose cost is the median.
    fn median_draw(&self) -> Result<Placement, Failure> {
        let mut drawn = Vec::new();
        for draw in 0..self.draws {
            let seed = self.seed.wrapping_add(draw);
            let placement = sonde_place::random(self.matrix.ranks(), &self.cluster, seed)
                .map_err(Failure::usage)?;
            let cost = sonde_place::cost(&self.matrix, &self.cluster, &placement).total_s();
            drawn.push((cost, placement));
        }
        drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
        let middle = (drawn.len() - 1) / 2;
        Ok(drawn.swap_remove(middle).1)
    }

    fn outcome(&self, placements: &[Placement; 4]) -> Placements {
        let rows = NAMES.iter().zip(placements).map(|(name, placement)| {
            let cost = sonde_place::cost(&self.matrix, &self.cluster, placement);
            PlacementRow::new(name, &self.matrix, &self.cluster, placement, &cost)
        });
        let mut rows: Vec<_> = rows.collect();
        let least = rows[0].cost_s;
        for row in &mut rows {
            row.cost_ratio = (least > 0.0).then(|| row.cost_s / least);
        }
        let hosts = self.cluster.hosts.iter().map(|host| HostRow {
            name: host.name.clone(),
            site: self.cluster.sites[host.site].clone(),
            slots: host.slots,
        });
        Placements {
            ranks: self.matrix.ranks(),
            seed: self.seed,
            hosts: hosts.collect(),
            placements: rows,
            circuits: Vec::new(),
        }
    }

    fn verify(
        &self,
        verify: &Verify,
        placements: &[Placement; 4],
        chosen: usize,
        outcome: &mut Placements,
    ) -> Result<(Run, Option<StoreError>), Failure> {
        let ranks = self.matrix.ranks();
        let entrant = |at: usize, forwarded: Option<&Topology>| Entrant {
            name: if forwarded.is_some() {
                "forwarded"
            } else {
                NAMES[at]
            },
            placement: if NAMES[at] == "random" {
                Box::new(move |round| {
                    let seed = self.seed.wrapping_add(round);
                    sonde_place::random(ranks, &self.cluster, seed).expect("there was room before")
                })
            } else {
                Box::new(move |_| placements[at].clone())
            },
            forwarded: forwarded.cloned(),
        };
        let mut entrants: Vec<_> = (0..NAMES.len()).map(|at| entrant(at, None)).collect();
        // A program sends by itself; only a replay can forward.
        if let Some(topology) = self.topology.as_ref().filter(|_| verify.program.is_empty()) {
            entrants.push(entrant(chosen, Some(topology)));
        }
        let trial = Trial {
            lab: verify.lab.clone(),
            cluster: &self.cluster,
            matrix: &self.matrix,
            program: &verify.program,
            launches: verify.launches,
            seed: self.seed,
            out: &verify.out,
            name: verify.name.as_deref(),
        };
        let TrialResult {
            times,
            run,
            trouble,
        } = trial.run(&entrants)?;
        let measured = trial::compared(&times[..NAMES.len()], self.seed);
        for (row, measured) in outcome.placements.iter_mut().zip(measured) {
            row.measured = Some(measured);
        }
        if let Some(forwarded) = times.get(NAMES.len()) {
            let both = trial::compared(&[times[chosen].clone(), forwarded.clone()], self.seed);
            for (row, measured) in outcome.circuits.iter_mut().zip(both) {
                row.measured = Some(measured);
            }
        }
        Ok((run, trouble))
    }
}
