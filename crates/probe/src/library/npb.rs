//! A kernel of the NAS parallel benchmarks among all ranks, as this room knows it: words that name it, and what its runs gave.
//!
//! Model:   who has the kernels runs one and gives at rank 0 what all ranks had of it ([`Ended`]); here runs are asked for, watched,
//!          and become rows. A run is a sample. What is counted is of the timed part; a phase that is not in it says so. Of the
//!          last run everything is kept, of those before it the sums; where it is asked for, what each rank did when, too.
//!          Hosts of another age: what ranks compute takes a factor longer, which is told or follows from a recorded time.
//! Source:  NPB 3.4.3: the time is that of the longest rank, of FT that of rank 0. Deviations: none.
//! Units:   nanoseconds, bytes, millions of operations a second; shares are parts of the ranks' time.
//! Checked: `runs_become_rows`, `what_does_not_verify_is_told`; `crates/workload`, `npb::launch`.

use sonde_measure::npb::{Aging, Kernel, Rank, Run};

use serde::{Deserialize, Serialize};
use sonde_measure::LengthsRow;
use sonde_measure::{Fixed, Measurement, Phase, Quantity, RelativeError, Verification};
use sonde_message::Messenger;
use sonde_message::counted::Lengths;
use sonde_units::Ratio;

use super::runs::{in_parts, row, size};
use super::{During, Job, Marks, Report, Task};
use crate::talk::Measured;
use crate::{Error, Result};

/// The most runs of a launch.
pub const RUNS_MAX: u64 = 1_000;
/// The longest such text: with the report it is within what is kept of rank 0's standard output.
pub const TRACE_BYTES_MAX: usize = 1 << 20;
/// The most events of all ranks that there is room for: about what such a text has.
pub const TRACE_EVENTS_MAX: u64 = 80_000;

/// Of which age hosts are: how much longer ranks compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Age {
    /// So many times as long.
    Factor(Ratio),
    /// As much longer as a sequential run took this on the old host, in nanoseconds; what the same takes here is measured before the
    /// first run of a launch.
    Recorded(u64),
}

/// A run that has ended, as rank 0 knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// All ranks together.
    pub run: Run,
    /// Each.
    pub ranks: Vec<Rank>,
    /// Of which age the hosts were; none of this one.
    pub age: Option<Aging>,
    /// What each rank did when, packed, where it was asked for.
    pub trace: Option<String>,
    /// The part of it that was done when the span of its job was over, 0 to 1; none where it ended before, or there is no span.
    pub part: Option<f64>,
}

impl Job {
    /// Runs the kernel that this job names by `once`, which all ranks call with whether it is the last run, and which gives what all
    /// had of it at rank 0; the report, at rank 0.
    ///
    /// # Errors
    /// Those of `once`; a job that is of no kernel; a rank is gone or silent.
    pub fn run_kernel(
        &self,
        messenger: &mut dyn Messenger,
        marks: Marks,
        once: impl FnMut(&mut dyn Messenger, bool) -> Result<Option<Ended>>,
    ) -> Result<Option<Report>> {
        self.check()?;
        let Task::Npb {
            kernel, size, runs, ..
        } = &self.task
        else {
            return Err(Error::Unmeasurable {
                what: format!("{} is not a kernel", self.name()),
                remedy: "run it as what it is",
            });
        };
        let mut all = Kernel::new(kernel, size);
        self.in_runs(messenger, marks, *runs, once, |ended, measured| {
            let mut done = 0.0;
            for ended in ended {
                done += ended.part.unwrap_or(1.0);
                all.runs.push(ended.run);
                (all.ranks, all.age) = (ended.ranks, ended.age);
                if let Some(trace) = ended.trace {
                    measured.evidence.application.trace = Some(trace.into());
                }
            }
            let rated = self.during.map(|during| rated(during, done));
            tell(all, rated, measured);
        })
    }
}

/// The time of a run, with all that is around its timed part, by how many a span had.
fn rated(during: During, done: f64) -> Measurement {
    let time_ns = (done > 0.0).then(|| (during.window_ns as f64 / done) as u64);
    let none = "no message of the kernel was sent before the span was over: a longer span has some";
    Measurement {
        touched: None,
        quantity: Quantity::KernelNs,
        phase: Phase::Warm,
        step: None,
        series: time_ns.into_iter().collect(),
        reason: time_ns.is_none().then(|| none.into()),
    }
}

/// Puts rows and evidence into what was measured; a time of `rated` stands in place of those of the runs.
fn tell(kernel: Kernel, rated: Option<Measurement>, measured: &mut Measured) {
    let told = &mut measured.evidence.application;
    if let Some(age) = &kernel.age {
        told.age = Fixed::of(age.factor);
        (told.age_recorded_ns, told.age_own_ns) = (age.recorded_ns, age.own_ns);
    }
    let verified: Vec<bool> = kernel.runs.iter().filter_map(|run| run.verified).collect();
    told.verification = Some(
        match (verified.is_empty(), verified.iter().all(|good| *good)) {
            (true, _) => Verification::NotPerformed,
            (false, true) => Verification::Successful,
            (false, false) => Verification::Unsuccessful,
        },
    );
    let worst = kernel.runs.iter().filter_map(Run::worst_error);
    told.error = worst.reduce(f64::max).map(RelativeError);
    let mut rows = rows(&kernel);
    if let Some(rated) = rated {
        rows.retain(|row| row.quantity != Quantity::KernelNs);
        rows.insert(0, rated);
    }
    measured.sizes.push(size(rows, kernel.runs.len()));
    measured.evidence.application.kernel = Some(kernel);
}

fn rows(kernel: &Kernel) -> Vec<Measurement> {
    let row = |quantity, of: fn(&Run) -> Option<u64>| row(&kernel.runs, quantity, of);
    use Quantity::{
        CommunicatingShare, KernelNs, MessageBytesMean, MessageBytesMedian, Messages, MopPerS,
    };
    vec![
        row(KernelNs, |run| Some(run.time_ns)),
        row(MopPerS, |run| Some(in_parts(run.mop_per_s, MopPerS))),
        row(CommunicatingShare, |run| {
            Some(in_parts(run.communicating_share(), CommunicatingShare))
        }),
        row(Messages, |run| Some(run.sent.total.messages)),
        row(MessageBytesMean, |run| {
            let mean = run.sent.bytes_mean?;
            Some(in_parts(mean, MessageBytesMean))
        }),
        row(MessageBytesMedian, |run| run.sent.bytes_median),
    ]
}

/// What ranks sent, together.
pub fn together<'a>(ranks: impl Iterator<Item = &'a Lengths>) -> LengthsRow {
    let mut all = Lengths::new();
    ranks.for_each(|one| all.merge(one));
    all.row()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::Wait;
    use sonde_measure::npb::Check;
    use sonde_message::Comm;
    use sonde_message::native::Memory;

    fn ended(time_ns: u64, found: f64) -> Ended {
        let error = (found - 2.0).abs() / 2.0;
        let check = Check {
            name: "zeta".into(),
            found: Some(found),
            wanted: Some(2.0),
            error: Some(error),
            tolerance: 1e-10,
            passes: Some(error <= 1e-10),
        };
        let sent = Lengths::new().row();
        let rank = |to: [u64; 2]| Rank {
            timed_ns: time_ns,
            clock: "tsc".into(),
            memory_bytes: None,
            phases: Vec::new(),
            sent: sent.clone(),
            bytes_to: to.to_vec(),
            messages_to: to.iter().map(|bytes| bytes.div_ceil(100)).collect(),
        };
        Ended {
            run: Run {
                time_ns,
                mop_per_s: 12.5,
                verified: check.passes,
                checks: vec![check],
                computing_ns: 300,
                communicating_ns: 100,
                sent: sent.clone(),
            },
            ranks: vec![rank([0, 800]), rank([400, 0])],
            age: None,
            trace: None,
            part: None,
        }
    }

    /// The launch of two ranks whose runs find these values.
    fn launch(values: &[f64]) -> crate::Outcome {
        let task = Task::Npb {
            kernel: "cg".into(),
            size: "S".into(),
            runs: values.len() as u64,
            age: None,
            trace: None,
            limit_ns: super::super::PROGRAM_NS,
        };
        let job = Job::new(task, Wait::Block);
        let mut reports = Memory::run(2, |messenger| {
            let is_first = messenger.rank(Comm::WORLD) == 0;
            let mut values = values.iter();
            let once = |_: &mut dyn Messenger, is_last: bool| {
                let value = values.next().copied().unwrap();
                let mut ended = ended(5_000, value);
                ended.trace = is_last.then(|| "[]".into());
                ended.age = Some(Aging {
                    factor: 120.0,
                    recorded_ns: Some(12_000_000_000),
                    own_ns: Some(100_000_000),
                });
                Ok(is_first.then_some(ended))
            };
            job.run_kernel(messenger, Marks::default(), once).unwrap()
        });
        let report = reports.swap_remove(0).unwrap();
        report.outcome(&job, 0, ["a", "b"]).unwrap()
    }

    #[test]
    fn runs_become_rows() {
        let outcome = launch(&[2.0, 2.0, 2.0]);
        let rows = &outcome.sizes[0].measurements;
        let of = |quantity| rows.iter().find(|row| row.quantity == quantity).unwrap();
        assert_eq!(of(Quantity::KernelNs).series.count(), 3);
        assert_eq!(of(Quantity::KernelNs).series.median(), Some(5_000));
        assert_eq!(of(Quantity::MopPerS).series.median(), Some(12_500));
        let share = of(Quantity::CommunicatingShare).series.median();
        assert_eq!(share, Some(250_000));
        let mean = of(Quantity::MessageBytesMean);
        assert!(mean.series.is_empty() && mean.reason.is_some());
        let told = outcome.evidence.application;
        assert_eq!(told.verification, Some(Verification::Successful));
        assert_eq!(told.trace, Some("[]".into()));
        assert_eq!(
            (told.age, told.age_own_ns),
            (Fixed::of(120.0), Some(100_000_000))
        );
        let kernel = told.kernel.unwrap();
        let told = kernel.age.unwrap().told();
        assert!(told.contains("120.0000 times (recorded"), "{told}");
        assert!(told.contains("12.0000 s / own 0.1000 s"), "{told}");
        assert_eq!((kernel.runs.len(), kernel.unverified()), (3, None));
        let matrix = kernel.matrix().unwrap();
        assert_eq!((matrix.bytes(0, 1), matrix.messages(1, 0)), (800, 4));
        assert_eq!(matrix.time_ns, Some(5_000));
    }

    #[test]
    fn a_span_is_rated_by_the_runs_that_it_had() {
        let begin_ns = sonde_sys::clock::monotonic_ns() + 20_000_000;
        let window_ns = 30_000_000;
        let mut job = Job::new(
            Task::Npb {
                kernel: "cg".into(),
                size: "S".into(),
                runs: 1,
                age: None,
                trace: None,
                limit_ns: super::super::PROGRAM_NS,
            },
            Wait::Block,
        );
        job.during = Some(During {
            begin_ns: Some(begin_ns),
            window_ns,
        });
        assert_eq!(Job::parse(&job.text()).unwrap(), job);
        let mut reports = Memory::run(2, |messenger| {
            let is_first = messenger.rank(Comm::WORLD) == 0;
            let mut count = 0_u32;
            let once = |_: &mut dyn Messenger, _: bool| {
                assert!(
                    sonde_sys::clock::monotonic_ns() >= begin_ns,
                    "all wait for it"
                );
                count += 1;
                std::thread::sleep(std::time::Duration::from_millis(8));
                let mut ended = ended(5_000, 2.0);
                let over = sonde_sys::clock::monotonic_ns() >= begin_ns + window_ns;
                ended.part = over.then_some(0.5);
                Ok(is_first.then_some(ended))
            };
            let report = job.run_kernel(messenger, Marks::default(), once).unwrap();
            (report, count)
        });
        let (report, count) = reports.swap_remove(0);
        assert!((2..=5).contains(&count), "{count} runs of 8 ms in 30 ms");
        let outcome = report.unwrap().outcome(&job, 0, ["a", "b"]).unwrap();
        let of = |quantity| {
            let rows = &outcome.sizes[0].measurements;
            rows.iter()
                .find(|row| row.quantity == quantity)
                .unwrap()
                .series
                .clone()
        };
        let done = f64::from(count) - 0.5;
        let wanted = (window_ns as f64 / done) as u64;
        assert_eq!(of(Quantity::KernelNs).median(), Some(wanted));
        assert_eq!(of(Quantity::MopPerS).count(), u64::from(count));
        // Without a begin there is no span, and without a kernel none either.
        job.during = Some(During {
            begin_ns: None,
            window_ns,
        });
        let error = Memory::run(1, |messenger| {
            job.run_kernel(messenger, Marks::default(), |_, _| Ok(None))
                .unwrap_err()
                .to_string()
        });
        assert!(error[0].contains("no begin"), "{error:?}");
        let mut other = Job::new(Task::Startup {}, Wait::Block);
        other.during = job.during;
        assert!(other.check().is_err());
    }

    #[test]
    fn what_does_not_verify_is_told() {
        let outcome = launch(&[2.0, 2.0001]);
        let told = outcome.evidence.application;
        assert_eq!(told.verification, Some(Verification::Unsuccessful));
        let words = told.kernel.unwrap().unverified().unwrap();
        for part in ["cg S", "run 2", "zeta", "2.00010", "5.0e-5", "1e-10"] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}
