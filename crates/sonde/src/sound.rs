//! `sonde probe check`: whether message-passing libraries do on these hosts what they should.
//!
//! Model:   for each path and each number of ranks one launch of a check ([`sonde_probe::library::Task::Check`]), by the library's
//!          own start, with all that is drawn from the seed. A launch that fails is told with what its ranks said, and the
//!          next goes on. Nothing of it is measured, and nothing is kept.
//! Checked: `tests/lab_check.rs`, over every library that is installed.

use crate::failure::{self, Failure};
use crate::plan::Kind;
use crate::testbed::{self, HostOptions};
use serde::Serialize;
use sonde_fleet::{Ask, Fleet, RanksAsk};
use sonde_measure::{Evidence, Wait};
use sonde_message::Path;
use sonde_probe::Probe;
use sonde_probe::library::{Job, Task as JobTask};

/// What to check.
pub struct Task {
    /// The hosts.
    pub testbed: (Kind, Option<String>),
    /// The lab's, where it is one.
    pub hosts: HostOptions,
    /// The network: of the lab, or `NAME=INTERFACE` of real hosts.
    pub network: Option<String>,
    /// By which libraries; empty: all that can be had.
    pub paths: Vec<Path>,
    /// Among how many, each.
    pub ranks: Vec<usize>,
    /// Collectives that are drawn.
    pub cases: u64,
    /// What they follow from.
    pub seed: u64,
    /// Print JSON.
    pub json: bool,
}

/// One launch.
#[derive(Debug, Serialize)]
struct Check {
    path: String,
    ranks: usize,
    /// Nothing was wrong.
    sound: bool,
    collectives: u64,
    by_library: u64,
    messages: u64,
    /// What the library says that it cannot do.
    left_out: Vec<String>,
    /// What is known of the library.
    evidence: Evidence,
    took_s: f64,
    /// What was wrong, or why there was no launch; null where nothing was.
    error: Option<String>,
}

/// A path that these hosts do not have.
#[derive(Debug, Serialize)]
struct Lacking {
    path: String,
    why: String,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    command: &'static str,
    seed: u64,
    cases: u64,
    checks: Vec<Check>,
    lacking: Vec<Lacking>,
}

impl Task {
    /// Does it; the exit code: 0 where all was right.
    pub fn run(self) -> Result<i32, Failure> {
        let (mut fleet, _) =
            testbed::fleet(&self.testbed, self.hosts.clone(), self.network.as_deref())?;
        for note in fleet.notes() {
            eprintln!("sonde: {note}");
        }
        let mut document = Document {
            schema: "sonde/1",
            command: "check",
            seed: self.seed,
            cases: self.cases,
            checks: Vec::new(),
            lacking: Vec::new(),
        };
        let hosts: Vec<usize> = (0..fleet.hosts().len())
            .filter(|host| fleet.alive(*host))
            .collect();
        for path in self.asked() {
            match fleet.lacks(path, &hosts).map_err(Failure::cannot)? {
                Some(why) => {
                    eprintln!("sonde: {path} is left out: {why}");
                    let path = path.to_string();
                    document.lacking.push(Lacking { path, why });
                }
                None => {
                    let checks = self
                        .ranks
                        .iter()
                        .map(|ranks| self.check(&mut fleet, &hosts, path, *ranks));
                    document.checks.extend(checks);
                }
            }
        }
        drop(fleet.stop());
        self.print(&document)?;
        let wanted_lack = !self.paths.is_empty() && !document.lacking.is_empty();
        if document.checks.is_empty() || wanted_lack {
            let lacking = document.lacking.iter().map(|one| one.path.as_str());
            return Err(Failure::cannot(format!(
                "not checked: {}; `sonde doctor` tells what is there and how to get the rest",
                lacking.collect::<Vec<_>>().join(", ")
            )));
        }
        let sound = document.checks.iter().all(|check| check.sound);
        Ok(if sound { 0 } else { failure::UNMET })
    }

    fn asked(&self) -> Vec<Path> {
        if !self.paths.is_empty() {
            return self.paths.clone();
        }
        let within = self.testbed.0 == Kind::Local;
        Path::all()
            .filter(|path| within || !path.is_within_machine())
            .collect()
    }

    fn check(&self, fleet: &mut Fleet, hosts: &[usize], path: Path, ranks: usize) -> Check {
        let task = JobTask::Check {
            seed: self.seed,
            cases: self.cases,
        };
        let job = Job::new(task, Probe::Message, Wait::Block);
        let ask = RanksAsk {
            pair: Ask {
                terms: job.terms.clone(),
                src: hosts[0],
                dst: hosts[1],
                one_way_ns: None,
                load: None,
            },
            path,
            job,
            count: ranks,
            settings: Vec::new(),
            spread: None,
        };
        let begin = std::time::Instant::now();
        let launched = fleet.ranks(&ask);
        let took_s = begin.elapsed().as_secs_f64();
        let (mut evidence, error) = match launched {
            Ok(launched) => (launched.outcome.evidence, None),
            Err(error) => (Evidence::default(), Some(error.to_string())),
        };
        let told = std::mem::take(&mut evidence.check);
        let counts = [told.collectives, told.by_library, told.messages];
        // A rank that did not end well was wrong in that; and what tells no counts has checked nothing that is known.
        let uncounted =
            "rank 0 does not tell what it checked: give all hosts the same version of sonde";
        let error = error
            .or_else(|| evidence.ranks.end.as_ref().map(ToString::to_string))
            .or_else(|| counts.contains(&None).then(|| uncounted.into()));
        let [collectives, by_library, messages] = counts.map(|count| count.unwrap_or(0));
        let check = Check {
            path: path.to_string(),
            ranks,
            sound: error.is_none(),
            collectives,
            by_library,
            messages,
            left_out: told.left_out.map_or_else(Vec::new, |names| {
                names.0.iter().map(ToString::to_string).collect()
            }),
            evidence,
            took_s,
            error,
        };
        if let Some(error) = &check.error {
            eprintln!("sonde: {path} with {ranks} ranks: {error}");
        }
        check
    }

    fn print(&self, document: &Document) -> Result<(), Failure> {
        if self.json {
            let text = serde_json::to_string_pretty(document);
            println!("{}", text.map_err(Failure::cannot)?);
            return Ok(());
        }
        let heads = [
            "path",
            "ranks",
            "collectives",
            "by the library",
            "messages",
            "left out",
            "seconds",
            "",
        ];
        let lines = document.checks.iter().map(|check| {
            let verdict = if check.sound { "right" } else { "WRONG" };
            vec![
                check.path.clone(),
                check.ranks.to_string(),
                check.collectives.to_string(),
                check.by_library.to_string(),
                check.messages.to_string(),
                check.left_out.join(", "),
                format!("{:.1}", check.took_s),
                verdict.into(),
            ]
        });
        println!("{}", crate::networks::table(&heads, lines));
        Ok(())
    }
}
