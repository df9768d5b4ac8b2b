//! What rank 0 knows when a job is over, and how it becomes the outcome of a launch.
//!
//! Checked: `marks_become_steps`; `tests/library.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use serde::{Deserialize, Serialize};
use sonde_measure::{Evidence, Interference, Name, Names, Ranks, Step, Words};
use sonde_message::{Comm, Messenger};

use super::startup::row;
use super::{Job, Task, hear, tell};
use crate::conversation::{Agreed, Outcome};
use crate::talk::{Measured, Served};
use crate::{Error, Moved, Result};

/// The line of rank 0's standard output before its report, which is the next one.
pub const MARKER: &str = "sonde-report/1";

/// When rank 0 was how far, by its host's CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// At its program's first line.
    pub main_ns: u64,
    /// When it could send.
    pub open_ns: u64,
    /// When the first message of a start-up was back.
    pub first_ns: Option<u64>,
}

/// What a job gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// As rank 0 saw it.
    pub measured: Measured,
    /// As rank 1 saw it.
    pub served: Served,
    /// When rank 0 was how far.
    pub marks: Marks,
}

/// What a rank tells rank 0.
#[derive(Serialize, Deserialize)]
struct RankReport {
    served: Option<Served>,
    host: String,
    /// Who came to it, and is no rank.
    strangers: u64,
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "unknown".into(), |name| name.trim().to_string())
}

/// Brings what the ranks saw to rank 0.
pub(super) fn gather(
    messenger: &mut dyn Messenger,
    mut measured: Measured,
    served: Served,
    marks: Marks,
) -> Result<Option<Report>> {
    let (rank, ranks) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
    let host = hostname();
    if rank > 0 {
        let report = RankReport {
            served: (rank == 1).then_some(served),
            host,
            strangers: messenger.strangers(),
        };
        tell(messenger, 0, &report)?;
        return Ok(None);
    }
    measured.interference.strangers = messenger.strangers();
    let library = messenger.facts()?;
    let mut hosts = vec![host];
    let mut told: Option<Served> = None;
    let mut strangers = 0_u64;
    for other in 1..ranks {
        let seen: RankReport = hear(messenger, other)?;
        hosts.push(seen.host);
        told = told.or(seen.served);
        strangers = strangers.saturating_add(seen.strangers);
    }
    // A rank that is alone has served itself.
    let mut served = told.unwrap_or(served);
    served.refused = served.refused.saturating_add(strangers);
    measured.evidence.library = library;
    measured.evidence.ranks.merge(Ranks {
        count: Some(ranks as u64),
        hosts: Some(Names(hosts.into_iter().map(Name::from).collect())),
        yields: std::env::var(super::YIELDS).ok().map(Words::from),
        ..Ranks::default()
    });
    Ok(Some(Report {
        measured,
        served,
        marks,
    }))
}

impl Report {
    /// The report in what rank 0 wrote, after the line with the marker; `None` where there is no such line.
    ///
    /// # Errors
    /// What follows the marker is no report.
    pub fn find(output: &str) -> Result<Option<Self>> {
        let mut lines = output.lines().skip_while(|line| line.trim() != MARKER);
        if lines.next().is_none() {
            return Ok(None);
        }
        let body = lines.next().unwrap_or_default();
        Ok(Some(crate::frame::parse(body.as_bytes())?))
    }

    /// What a launch gave: both sides held against each other. `began_ns` is when the ranks were started, by the same
    /// clock as the marks; `names` are the hosts of ranks 0 and 1.
    ///
    /// # Errors
    /// What was received is not what was sent.
    pub fn outcome(mut self, job: &Job, began_ns: u64, names: [&str; 2]) -> Result<Outcome> {
        if let Task::Startup {} = job.task {
            self.add_steps(began_ns)?;
        }
        let named = |name: &str| Interference {
            host: name.into(),
            ..Interference::default()
        };
        let mut outcome = Outcome {
            sizes: Vec::new(),
            evidence: Evidence::default(),
            interference: names.map(named).to_vec(),
            moved: Moved::default(),
        };
        outcome.add(&Agreed::of_job(job), self.measured, self.served)?;
        Ok(outcome)
    }

    /// What came before the first message.
    fn add_steps(&mut self, began_ns: u64) -> Result<()> {
        let Marks {
            main_ns,
            open_ns,
            first_ns,
        } = self.marks;
        let (Some(first_ns), Some(size)) = (first_ns, self.measured.sizes.first_mut()) else {
            return Err(Error::Integrity(
                "rank 0 reports a start-up without a first message".into(),
            ));
        };
        if !(began_ns <= main_ns && main_ns <= open_ns && open_ns <= first_ns) {
            return Err(Error::Integrity(format!(
                "the ranks were started at {began_ns}, rank 0 began at {main_ns}, could send at {open_ns} and had its first \
                 message back at {first_ns} ns: these are not of one clock"
            )));
        }
        size.measurements.extend([
            row(None, first_ns.saturating_sub(began_ns)),
            row(Some(Step::Spawn), main_ns.saturating_sub(began_ns)),
            row(Some(Step::Init), open_ns.saturating_sub(main_ns)),
        ]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talk::{SizeMeasured, SizeServed};
    use sonde_measure::Wait;
    use std::collections::BTreeMap;

    fn report(marks: Marks) -> Report {
        let mut measured = super::super::nothing_measured();
        measured.evidence.library.library = Some("none".into());
        measured.sizes.push(SizeMeasured {
            moments: None,
            size_bytes: 8,
            measurements: vec![row(Some(Step::First), 10)],
            round_trips: 2,
            sent: None,
        });
        let served = Served {
            sizes: vec![SizeServed::default()],
            ..Served::default()
        };
        Report {
            measured,
            served,
            marks,
        }
    }

    #[test]
    fn marks_become_steps() {
        let job = Job::new(Task::Startup {}, Wait::Block);
        let marks = Marks {
            main_ns: 130,
            open_ns: 200,
            first_ns: Some(1_000),
        };
        let text = serde_json::to_string(&report(marks)).unwrap();
        let found = Report::find(&format!("noise\n{MARKER}\n{text}\nmore\n")).unwrap();
        let outcome = found.unwrap().outcome(&job, 100, ["a", "b"]).unwrap();
        let times: BTreeMap<Option<Step>, u64> = outcome.sizes[0]
            .measurements
            .iter()
            .map(|one| (one.step, one.series.min().unwrap()))
            .collect();
        let wanted = [
            (None, 900),
            (Some(Step::First), 10),
            (Some(Step::Spawn), 30),
            (Some(Step::Init), 70),
        ];
        assert_eq!(times, BTreeMap::from(wanted));
        assert_eq!(outcome.evidence.library.library, Some("none".into()));
        assert_eq!(outcome.interference[1].host, "b");
        let error = report(marks).outcome(&job, 131, ["a", "b"]).unwrap_err();
        assert!(error.to_string().contains("not of one clock"), "{error}");
        assert!(Report::find("nothing\n").unwrap().is_none());
        assert!(Report::find(&format!("{MARKER}\nno json\n")).is_err());
    }
}
