//! A program's messages without what it computes, among all ranks, as this room knows them: what is asked for, and what its
//! replays gave.
//!
//! Model:   who has the replay makes one and gives at rank 0 what all ranks had of it; here replays are asked for, watched, and
//!          become rows. A replay is a sample. Who makes it holds what was counted against what was asked for.
//! Source:  requirement U27.
//! Units:   nanoseconds, bytes, messages of all ranks together.
//! Checked: `a_replay_becomes_rows`, `what_is_no_statistic_is_refused`; `crates/workload`, `replay::launch`.

use sonde_measure::replay::{Replay, ReplayRequest, Run};

use sonde_measure::Quantity;
use sonde_message::Messenger;

use super::runs::{in_parts, row, size};
use super::{Job, Marks, Report, Task};
use crate::talk::Measured;
use crate::{Error, Result};

/// The most replays of a launch.
pub const RUNS_MAX: u64 = 1_000;
/// The most ranks of a matrix: it is a word of a command line.
pub const MATRIX_RANKS_MAX: usize = 64;

/// Refuses a matrix that is none.
fn check_matrix(asked: &ReplayRequest) -> Result<()> {
    let ranks = asked.messages_to.len();
    if let Some(row) = asked.messages_to.iter().find(|row| row.len() != ranks) {
        return Err(Error::Unmeasurable {
            what: format!(
                "a matrix of {ranks} ranks has a row of {} numbers",
                row.len()
            ),
            remedy: "give it a number for each rank in each row",
        });
    }
    if ranks > MATRIX_RANKS_MAX {
        return Err(Error::Unmeasurable {
            what: format!("a matrix of {ranks} ranks is too large to be handed to ranks"),
            remedy: "take one of 64 ranks at most, or a graph by its name",
        });
    }
    Ok(())
}

/// Puts rows and evidence into what was measured.
fn tell(replay: Replay, measured: &mut Measured) {
    use Quantity::{MessageBytes, MessageBytesMean, MessageBytesMedian, Messages, ReplayNs};
    let runs = &replay.runs;
    let rows = vec![
        row(runs, ReplayNs, |run| Some(run.time_ns)),
        row(runs, Messages, |run| Some(run.sent.total.messages)),
        row(runs, MessageBytes, |run| Some(run.sent.total.bytes)),
        row(runs, MessageBytesMean, |run| {
            Some(in_parts(run.sent.bytes_mean?, MessageBytesMean))
        }),
        row(runs, MessageBytesMedian, |run| run.sent.bytes_median),
    ];
    measured.sizes.push(size(rows, runs.len()));
    measured.evidence.application.replay = Some(replay);
}

/// Refuses what no launch can make.
///
/// # Errors
/// No replay, too many, or a matrix that is none.
pub(super) fn check(asked: &ReplayRequest, runs: u64) -> Result<()> {
    if !(1..=RUNS_MAX).contains(&runs) {
        return Err(Error::Unmeasurable {
            what: format!("{runs} replays cannot be made"),
            remedy: "ask for 1 to 1000",
        });
    }
    check_matrix(asked)
}

impl Job {
    /// Makes the replays that this job names by `once`, which all ranks call and which gives what all had of one at rank 0; the
    /// report, at rank 0.
    ///
    /// # Errors
    /// Those of `once`; a job that is of no messages; a rank is gone or silent.
    pub fn run_messages(
        &self,
        messenger: &mut dyn Messenger,
        marks: Marks,
        mut once: impl FnMut(&mut dyn Messenger) -> Result<Option<Run>>,
    ) -> Result<Option<Report>> {
        self.check()?;
        let Task::Messages { asked, runs, .. } = &self.task else {
            return Err(Error::Unmeasurable {
                what: format!("{} is not a replay of messages", self.name()),
                remedy: "run it as what it is",
            });
        };
        let told = |runs, measured: &mut Measured| {
            let asked = asked.clone();
            tell(Replay { asked, runs }, measured);
        };
        self.in_runs(
            messenger,
            marks,
            *runs,
            |messenger, _| once(messenger),
            told,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::PROGRAM_NS;
    use sonde_measure::{Sampling, Wait};
    use sonde_message::Comm;
    use sonde_message::counted::Lengths;
    use sonde_message::native::Memory;

    fn job(runs: u64, messages_to: Vec<Vec<u64>>) -> Job {
        let asked = ReplayRequest {
            messages: 3,
            bytes: 1_108,
            bytes_median: 8,
            graph: "all-to-all".into(),
            messages_to,
            seed: 1,
        };
        let task = Task::Messages {
            asked,
            runs,
            limit_ns: PROGRAM_NS,
        };
        Job::new(task, Wait::Block)
    }

    #[test]
    fn a_replay_becomes_rows() {
        let job = job(2, Vec::new());
        assert_eq!(Job::parse(&job.text()).unwrap(), job);
        let mut reports = Memory::run(2, |messenger| {
            let is_first = messenger.rank(Comm::WORLD) == 0;
            let once = |_: &mut dyn Messenger| {
                let sent = [0, 8, 1_100].into_iter().collect::<Lengths>().row();
                Ok(is_first.then_some(Run { time_ns: 700, sent }))
            };
            let marks = Marks::default();
            job.run_messages(messenger, marks, once).unwrap()
        });
        let report = reports.swap_remove(0).unwrap();
        let outcome = report.outcome(&job, 0, ["a", "b"]).unwrap();
        let rows = &outcome.sizes[0].measurements;
        let of = |quantity| {
            let row = rows.iter().find(|row| row.quantity == quantity).unwrap();
            (row.series.count(), row.series.median().unwrap())
        };
        assert_eq!(of(Quantity::ReplayNs), (2, 700));
        assert_eq!(of(Quantity::Messages), (2, 3));
        assert_eq!(of(Quantity::MessageBytes), (2, 1_108));
        assert_eq!(of(Quantity::MessageBytesMean), (2, 369_333));
        assert_eq!(of(Quantity::MessageBytesMedian), (2, 8));
        let replay = outcome.evidence.application.replay.unwrap();
        assert_eq!(replay.runs.len(), 2);
        assert!((replay.asked.bytes_mean() - 1_108.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_statistic_is_refused() {
        let said = |runs, matrix: &[&[u64]]| {
            let matrix = matrix.iter().map(|row| row.to_vec()).collect();
            let error = job(runs, matrix).check().unwrap_err();
            format!("{error}: {}", error.remedy())
        };
        assert!(said(0, &[]).contains("1 to 1000"));
        assert!(said(1_001, &[]).contains("1001 replays"));
        assert!(said(1, &[&[0, 1], &[1]]).contains("a row of 1 numbers"));
        let row = [1; 65];
        assert!(said(1, &[&row[..]; 65]).contains("64 ranks at most"));
        let once = |_: &mut dyn Messenger| Ok(None);
        let mut memory = Memory::all(2).remove(0);
        let other = Job::new(Task::Latency(Sampling::LATENCY), Wait::Block);
        let error = other.run_messages(&mut memory, Marks::default(), once);
        assert!(error.unwrap_err().to_string().contains("not a replay"));
        let error = job(1, Vec::new()).run(&mut memory, Marks::default());
        assert!(error.unwrap_err().to_string().contains("not in this room"));
    }
}
