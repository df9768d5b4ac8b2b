//! What the runs of a kernel of the NAS parallel benchmarks gave.
//!
//! Model:   a run is a sample. What is counted is of the timed part; a phase that is not in it says so. Of the last run everything
//!          is kept, of those before it the sums.
//! Source:  NPB 3.4.3: the time is that of the longest rank, of FT that of rank 0. Deviations: none.
//! Units:   nanoseconds, bytes, millions of operations per second; shares are parts of the ranks' time.
//! Checked: `what_does_not_verify_is_told` in `crates/probe`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_units::Matrix;

use crate::{Collectives, LengthsRow};

/// How much longer ranks computed, and what that follows from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "KernelCheck")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "KernelRun")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "KernelPhase")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "KernelRank")]
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

/// What the runs of a launch gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
