//! A kernel of the NAS parallel benchmarks among all ranks, as this room knows it: words that name it, and what its runs gave.
//!
//! Model:   who has the kernels runs one and gives at rank 0 what all ranks had of it ([`Ended`]); here runs are asked for, watched,
//!          and become rows. A run is a sample. What is counted is of the timed part; a phase that is not in it says so. Of the
//!          last run everything is kept, of those before it the sums; where it is asked for, what each rank did when, too.
//!          Hosts of another age: what ranks compute takes a factor longer, which is told or follows from a recorded time.
//! Source:  NPB 3.4.3: the time is that of the longest rank, of FT that of rank 0. Deviations: none.
//! Units:   nanoseconds, bytes, millions of operations a second; shares are parts of the ranks' time.
//! Checked: `runs_become_rows`, `what_does_not_verify_is_told`; `crates/workload`, `npb::launch`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sonde_measure::{Measurement, Quantity};
use sonde_message::Messenger;
use sonde_message::counted::{Collectives, Lengths, LengthsRow};
use sonde_units::{Matrix, Ratio};

use super::runs::{in_parts, row, size};
use super::{Job, Marks, Report, Task};
use crate::talk::Measured;
use crate::{Error, Result};

/// The most runs of a launch.
pub const RUNS_MAX: u64 = 1_000;
/// The setting of a launch that holds its [`Kernel`], as JSON.
pub const SETTING: &str = "npb";
/// The setting of a launch that has what its ranks did when, as a packed `sonde_message::timeline::Trace`.
pub const TRACE: &str = "npb.trace";
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

/// How much longer ranks computed, and what that follows from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aging {
    /// So many times as long as on this host.
    pub factor: f64,
    /// The timed part of a sequential run on the old host; null where the factor was told.
    pub recorded_ns: Option<u64>,
    /// The same here, in CPU time: of all ranks together, as they are held; null where the factor was told.
    pub own_ns: Option<u64>,
}

impl Aging {
    /// In words: `computing stretched 166.6 times (recorded sequential time 16.66 s / own 0.100 s)`.
    pub fn told(&self) -> String {
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let since = self.recorded_ns.zip(self.own_ns).map(|(recorded, own)| {
            let (recorded, own) = (seconds(recorded), seconds(own));
            format!(" (recorded sequential time {recorded:.4} s / own {own:.4} s)")
        });
        let since = since.unwrap_or_default();
        format!("computing stretched {:.4} times{since}", self.factor)
    }
}

/// One result against its official value. What is no finite number is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What it is: `zeta`, `residual 3`.
    pub name: String,
    /// What came out.
    pub found: Option<f64>,
    /// What should; null where no value is known of this size.
    pub wanted: Option<f64>,
    /// The relative error.
    pub error: Option<f64>,
    /// The greatest relative error that passes; 0 for exact.
    pub tolerance: f64,
    /// Whether it passes; null without a value to hold it against.
    pub passes: Option<bool>,
}

/// What a run gave, of all ranks together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The timed part: of the longest rank, of FT rank 0's.
    pub time_ns: u64,
    /// Millions of operations a second, as the benchmark counts them.
    pub mop_per_s: f64,
    /// Whether all results are as they should be; null where no value is known.
    pub verified: Option<bool>,
    /// The results.
    pub checks: Vec<Check>,
    /// Between calls of the library, of all ranks.
    pub computing_ns: u64,
    /// In calls of the library, of all ranks.
    pub communicating_ns: u64,
    /// Messages of all ranks. Collectives that the library makes of its own are none.
    pub sent: LengthsRow,
}

/// What a rank did in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Whether it is of the timed part.
    pub timed: bool,
    /// Between calls of the library.
    pub computing_ns: u64,
    /// Of it, the time that the rank was held in place of computing on a host of another age.
    #[serde(default)]
    pub held_ns: u64,
    /// In calls of the library.
    pub communicating_ns: u64,
    /// Messages that it sent.
    pub sent: LengthsRow,
    /// Collectives that the library made of its own.
    pub collectives: Vec<Collectives>,
}

/// What a rank did in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rank {
    /// The timed part here.
    pub timed_ns: u64,
    /// What told the time: `tsc`, `monotonic`, or that it went astray.
    pub clock: String,
    /// The most that its process had in memory during the run beyond what it had before: arrays, and what the library
    /// keeps of messages. Null where the kernel does not tell.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// In the order in which they were entered.
    pub phases: Vec<Phase>,
    /// Messages that it sent in the timed part.
    pub sent: LengthsRow,
    /// To each rank, in the timed part: bytes.
    pub bytes_to: Vec<u64>,
    /// To each rank, in the timed part: messages.
    pub messages_to: Vec<u64>,
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
}

/// What the runs of a launch gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its name: `cg`.
    pub kernel: String,
    /// How large: a class or a size of one's own, as it was asked for.
    pub size: String,
    /// Each, in their order.
    pub runs: Vec<Run>,
    /// The ranks of the last run.
    pub ranks: Vec<Rank>,
    /// Of which age the hosts were; null of this one.
    #[serde(default)]
    pub age: Option<Aging>,
}

impl Run {
    /// The share of the ranks' time that they spent in calls of the library, 0 to 1.
    pub fn communicating_share(&self) -> f64 {
        let all = self.computing_ns + self.communicating_ns;
        self.communicating_ns as f64 / all.max(1) as f64
    }

    /// The greatest relative error; `None` where no value is known.
    pub fn worst_error(&self) -> Option<f64> {
        let errors = self.checks.iter().filter_map(|check| check.error);
        errors.reduce(f64::max)
    }

    /// What is not as it should be, in words.
    fn wrong(&self) -> Option<String> {
        let check = self
            .checks
            .iter()
            .find(|check| check.passes == Some(false))?;
        let number = |value: Option<f64>| {
            value.map_or_else(|| "no number".into(), |value| format!("{value:.14e}"))
        };
        let error = check
            .error
            .map_or_else(|| "none".into(), |error| format!("{error:.1e}"));
        Some(format!(
            "{} is {} and {} is official, a relative error of {error} where {:.0e} passes",
            check.name,
            number(check.found),
            number(check.wanted),
            check.tolerance
        ))
    }
}

impl Kernel {
    /// Nothing of a kernel of this size yet.
    pub fn new(kernel: &str, size: &str) -> Self {
        Self {
            kernel: kernel.into(),
            size: size.into(),
            runs: Vec::new(),
            ranks: Vec::new(),
            age: None,
        }
    }

    /// Takes in what a run gave; its trace comes back.
    pub fn add(&mut self, ended: Ended) -> Option<String> {
        self.runs.push(ended.run);
        self.ranks = ended.ranks;
        self.age = ended.age;
        ended.trace
    }

    /// That of a launch with these settings; `None` where it was of something else.
    ///
    /// # Errors
    /// The setting is not what it must be.
    pub fn of(settings: &BTreeMap<String, String>) -> Result<Option<Self>> {
        let text = settings.get(SETTING);
        text.map(|text| crate::frame::parse(text.as_bytes()))
            .transpose()
            .map_err(Error::from)
    }

    /// Who sent how much to whom in the timed part of the last run; `None` of more ranks than a matrix has.
    pub fn matrix(&self) -> Option<Matrix> {
        let mut matrix = Matrix::new(self.ranks.len()).ok()?;
        for (from, rank) in self.ranks.iter().enumerate() {
            let to = rank.bytes_to.iter().zip(&rank.messages_to);
            for (to, (bytes, messages)) in to.enumerate().take(self.ranks.len()) {
                matrix.add(from, to, *bytes, *messages);
            }
        }
        matrix.time_ns = self.runs.last().map(|run| run.time_ns);
        Some(matrix)
    }

    /// Which result of which run is not the official one, in words.
    pub fn unverified(&self) -> Option<String> {
        let runs = self.runs.iter().enumerate();
        let wrong = |(number, run): (usize, &Run)| Some((number, run.wrong()?));
        let (number, what) = runs.filter_map(wrong).next()?;
        let (kernel, size) = (&self.kernel, &self.size);
        Some(format!(
            "{kernel} {size} does not verify in run {}: {what}",
            number + 1
        ))
    }
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
            return Err(Error::Terms {
                what: format!("{} is no kernel", self.name()),
                remedy: "run it as what it is",
            });
        };
        let mut all = Kernel::new(kernel, size);
        self.in_runs(messenger, marks, *runs, once, |ended, measured| {
            for ended in ended {
                if let Some(trace) = all.add(ended) {
                    measured.settings.insert(TRACE.into(), trace);
                }
            }
            all.tell(measured)
        })
    }
}

impl Kernel {
    /// Puts rows and settings into what was measured.
    fn tell(&self, measured: &mut Measured) -> Result<()> {
        let text = serde_json::to_string(self).map_err(crate::frame::FrameError::from)?;
        let mut set = |name: &str, value: String| {
            measured.settings.insert(name.into(), value);
        };
        set(SETTING, text);
        if let Some(age) = &self.age {
            set("npb.age", format!("{:.4}", age.factor));
            for (name, time) in [
                ("npb.age.recorded_ns", age.recorded_ns),
                ("npb.age.own_ns", age.own_ns),
            ] {
                if let Some(ns) = time {
                    set(name, ns.to_string());
                }
            }
        }
        let verified: Vec<bool> = self.runs.iter().filter_map(|run| run.verified).collect();
        let word = match (verified.is_empty(), verified.iter().all(|good| *good)) {
            (true, _) => "not performed",
            (false, true) => "successful",
            (false, false) => "unsuccessful",
        };
        set("npb.verification", word.into());
        let worst = self.runs.iter().filter_map(Run::worst_error);
        if let Some(worst) = worst.reduce(f64::max) {
            set("npb.error", format!("{worst:.1e}"));
        }
        measured.sizes.push(size(self.rows(), self.runs.len()));
        Ok(())
    }

    fn rows(&self) -> Vec<Measurement> {
        let row = |quantity, of: fn(&Run) -> Option<u64>| row(&self.runs, quantity, of);
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
    use crate::Probe;
    use sonde_channel::Wait;
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
        };
        let job = Job::new(task, Probe::Message, Wait::Block);
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
        assert_eq!(outcome.settings["npb.verification"], "successful");
        assert_eq!(outcome.settings[TRACE], "[]");
        assert_eq!(outcome.settings["npb.age"], "120.0000");
        assert_eq!(outcome.settings["npb.age.own_ns"], "100000000");
        let kernel = Kernel::of(&outcome.settings).unwrap().unwrap();
        let told = kernel.age.unwrap().told();
        assert!(told.contains("120.0000 times (recorded"), "{told}");
        assert!(told.contains("12.0000 s / own 0.1000 s"), "{told}");
        assert_eq!((kernel.runs.len(), kernel.unverified()), (3, None));
        let matrix = kernel.matrix().unwrap();
        assert_eq!((matrix.bytes(0, 1), matrix.messages(1, 0)), (800, 4));
        assert_eq!(matrix.time_ns, Some(5_000));
    }

    #[test]
    fn what_does_not_verify_is_told() {
        let outcome = launch(&[2.0, 2.0001]);
        assert_eq!(outcome.settings["npb.verification"], "unsuccessful");
        let kernel = Kernel::of(&outcome.settings).unwrap().unwrap();
        let words = kernel.unverified().unwrap();
        for part in ["cg S", "run 2", "zeta", "2.00010", "5.0e-5", "1e-10"] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert_eq!(Kernel::of(&BTreeMap::new()).unwrap(), None);
    }
}
