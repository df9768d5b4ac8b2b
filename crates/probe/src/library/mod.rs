//! Measurements at the library layer: jobs for ranks that are joined by a [`Messenger`], whatever it is made of.
//!
//! Model:   every rank runs the same [`Job`]; rank 0 measures and rank 1 answers or receives, as the two sides of a
//!          conversation over channels do, by the same loops ([`crate::trips`], [`crate::meter`]), so that a difference to the
//!          transport is one of libraries and not of methods. What rank 1 saw travels to rank 0 by the messenger, and rank 0 has
//!          the [`Report`]. Ranks beyond take part in collectives alone. CPU time is that of the whole process, since a
//!          library may have threads of its own; what daemons take is in the host's, not in it.
//! Units:   integer nanoseconds on CLOCK_MONOTONIC, bits a second, bytes.
//! Checked: the tests of each module; `tests/library.rs`: every job among ranks of one process, and what goes wrong.

mod batch;
mod check;
mod collective;
pub mod messages;
pub mod npb;
mod pair;
mod report;
mod runs;
mod said;
mod startup;
mod stream;

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sonde_measure::spec::{self, SLOWEST_NS_PER_BYTE};
use sonde_measure::{Evidence, Interference, Sampling, Wait};
use sonde_message::{Comm, Messenger, Tag};
use sonde_sys::clock::monotonic_ns;

use crate::talk::{Measured, Served};
use crate::trips::Sample;
use crate::{Error, Result};

pub use report::{MARKER, Marks, Report};
pub use said::{hear, tell};
use said::{receive, whole};

/// What is measured or received.
const DATA: Tag = 1;
/// What is said beside it.
const BESIDE: Tag = 2;
/// What one rank saw, for rank 0.
const SEEN: Tag = 3;
/// In the environment of a native rank: how it meets the others, a [`Native`] as JSON.
pub const NATIVE: &str = "SONDE_NATIVE";
/// In a rank's environment: whether its library yields the CPU when it finds nothing, as who started it knows; a fact of it.
pub const YIELDS: &str = "SONDE_YIELDS";
/// Messages of a batch where nothing else is asked for.
pub const BATCH: u64 = 64;
/// What a launch of a program may take, where nothing else is said.
pub const PROGRAM_NS: u64 = 600 * 1_000_000_000;
/// How long a rank of a program may compute while others wait, where nothing else is said.
const PROGRAM_TIMEOUT_NS: u64 = 60 * 1_000_000_000;
/// How long nothing may move of all else.
const TIMEOUT_NS: u64 = 10 * 1_000_000_000;
/// What a check is expected to take, where nothing else is said.
pub const CHECK_NS: u64 = 1_000_000_000;
/// A check takes no longer than its budget and a message of this size.
const CHECKED_BYTES: u64 = 1 << 20;
/// The usual sampling of collectives: that of messages, after 3 discarded.
pub const COLLECTIVE: Sampling = Sampling {
    warmup: 3,
    ..Sampling::MESSAGE
};
/// The most ranks of a job.
pub const RANKS_MAX: usize = 1_024;
/// The most collectives of a check.
pub const CASES_MAX: u64 = 100_000;
/// The most messages of a batch.
pub const BATCH_MAX: u64 = 4_096;

/// How a native rank meets the others; see `sonde_message::native::Bootstrap`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Native {
    /// Which rank.
    pub rank: usize,
    /// Of how many.
    pub size: usize,
    /// Ranks that this one's process starts beside it.
    pub beside: Vec<usize>,
    /// `tcp`, `unix`, `shm`, `best`.
    pub transport: String,
    /// Where the ranks meet: one way, of `best` each of those that it chooses among.
    pub ways: Vec<Way>,
    /// The run's secret.
    pub token: String,
    /// How long nothing may move.
    pub timeout_ns: u64,
}

/// By what ranks reach each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The network's name.
    pub name: String,
    /// By TCP: rank 0's address and port; else a name.
    pub meeting: String,
    /// By TCP: the address by which the others reach this rank; null leaves it to its routes.
    pub own: Option<IpAddr>,
}

/// What all ranks do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What is measured.
    pub task: Task,
    /// How ranks wait.
    pub wait: Wait,
    /// User bytes in a message: the sizes to measure, in this order. None of a program or a check, whose messages have sizes of
    /// their own.
    pub sizes_bytes: Vec<u64>,
    /// The longest wait without progress, 1 ms to an hour.
    pub timeout_ns: u64,
    /// Check every byte, not only each message's header.
    pub verify: bool,
    /// Of a kernel: in place of a number of runs the span in which runs are begun and by which they are rated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<During>,
    /// All ranks have one clock: of round trips it is said when they were taken.
    #[serde(default)]
    pub moments: bool,
}

/// A span in which a kernel is run again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct During {
    /// When it begins, by the clock of rank 0's host (CLOCK_MONOTONIC); null until it is agreed.
    pub begin_ns: Option<u64>,
    /// How long it lasts, 1 ms to an hour.
    pub window_ns: u64,
}

impl During {
    /// When it ends, by the same clock, once its begin is agreed.
    pub const fn end_ns(self) -> Option<u64> {
        match self.begin_ns {
            Some(begin_ns) => Some(begin_ns.saturating_add(self.window_ns)),
            None => None,
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Task {
    /// Round trips: a ping-pong.
    Latency(Sampling),
    /// Round trips: single messages with a short answer.
    Message(Sampling),
    /// So many messages posted at once, and one answer: messages per second.
    Batches {
        /// Messages of a batch.
        window: u64,
        /// How many batches.
        sampling: Sampling,
    },
    /// A stream one way, rated by its receiver.
    Stream {
        /// The time that is rated, 1 s to an hour.
        window_ns: u64,
    },
    /// The first and the second message; what came before is known from [`Marks`].
    Startup {},
    /// A collective call among all ranks.
    Collective {
        /// Its name: `barrier`, `allreduce`.
        kind: String,
        /// Who makes it: `library`, or one of sonde's algorithms by its name; null is the library where it has one.
        algorithm: Option<String>,
        /// How many calls.
        sampling: Sampling,
    },
    /// A kernel of the NAS parallel benchmarks among all ranks, run by [`Job::run_kernel`].
    Npb {
        /// Its name: `cg`.
        kernel: String,
        /// How large: a class (`S`), or a size of one's own in words of who has the kernels.
        size: String,
        /// Runs of a launch; see [`npb::RUNS_MAX`].
        runs: u64,
        /// Of which age the hosts are; null of this one.
        age: Option<npb::Age>,
        /// So many events of each rank are written down in the last run; null for nothing.
        trace: Option<u64>,
        /// What a launch may take, up to an hour.
        limit_ns: u64,
    },
    /// The messages of a program without what it computes, run by [`Job::run_messages`].
    Messages {
        /// Which.
        asked: sonde_measure::replay::ReplayRequest,
        /// Replays of a launch; see [`messages::RUNS_MAX`].
        runs: u64,
        /// What a launch may take, up to an hour.
        limit_ns: u64,
    },
    /// Nothing: messages and collectives are held against what they should give. See [`CASES_MAX`].
    Check {
        /// What the cases follow from.
        seed: u64,
        /// Collectives, beside one of each kind by the library.
        cases: u64,
        /// What they are expected to take at most, up to an hour.
        budget_ns: u64,
    },
}

impl Task {
    /// Whether its ranks do what a program does: a kernel, or the messages of one.
    pub const fn is_program(&self) -> bool {
        matches!(self, Self::Npb { .. } | Self::Messages { .. })
    }

    /// Whether its messages are of sizes that are asked for.
    pub const fn is_sized(&self) -> bool {
        !(self.is_program() || matches!(self, Self::Check { .. }))
    }

    /// How many samples it takes, where it takes them in a closed loop.
    pub const fn sampling_mut(&mut self) -> Option<&mut Sampling> {
        match self {
            Self::Latency(sampling)
            | Self::Message(sampling)
            | Self::Batches { sampling, .. }
            | Self::Collective { sampling, .. } => Some(sampling),
            _ => None,
        }
    }

    fn check(&self) -> Result<()> {
        let refuse = |what: String, remedy| Err(Error::Unmeasurable { what, remedy });
        match self {
            Self::Batches { window, .. } if !(1..=BATCH_MAX).contains(window) => {
                return refuse(
                    format!("a batch of {window} messages cannot be sent"),
                    "ask for 1 to 4096",
                );
            }
            Self::Check { cases, .. } if !(1..=CASES_MAX).contains(cases) => {
                return refuse(
                    format!("{cases} cases cannot be checked"),
                    "ask for 1 to 100000",
                );
            }
            Self::Npb { runs, .. } if !(1..=npb::RUNS_MAX).contains(runs) => {
                return refuse(
                    format!("{runs} runs of a kernel cannot be made"),
                    "ask for 1 to 1000",
                );
            }
            Self::Npb {
                trace: Some(events),
                ..
            } if !(1..=npb::TRACE_EVENTS_MAX).contains(events) => {
                return refuse(
                    format!("{events} events of a rank cannot be written down"),
                    "ask for 1 to 80000",
                );
            }
            Self::Messages { asked, runs, .. } => messages::check(asked, *runs)?,
            Self::Collective {
                kind, algorithm, ..
            } => {
                collective::kind(kind)?;
                collective::choice(kind, algorithm.as_deref())?;
            }
            _ => {}
        }
        Ok(match self {
            Self::Latency(sampling)
            | Self::Message(sampling)
            | Self::Batches { sampling, .. }
            | Self::Collective { sampling, .. } => sampling.check(),
            Self::Stream { window_ns } => spec::check_window(*window_ns),
            Self::Npb { limit_ns, .. } | Self::Messages { limit_ns, .. } => {
                spec::check_budget(*limit_ns)
            }
            Self::Check { budget_ns, .. } => spec::check_budget(*budget_ns),
            Self::Startup {} => Ok(()),
        }?)
    }
}

impl Job {
    /// The usual job of a task. Latency and start-up: 1 byte. Messages and streams: 1 MiB. Batches and collectives: 8 bytes. Nothing
    /// may stand still for 10 s, of kernels and replays for a minute.
    pub fn new(task: Task, wait: Wait) -> Self {
        let size_bytes = match task {
            Task::Latency(_) | Task::Startup {} => Some(1),
            Task::Message(_) | Task::Stream { .. } => Some(1 << 20),
            Task::Batches { .. } | Task::Collective { .. } => Some(8),
            Task::Npb { .. } | Task::Messages { .. } | Task::Check { .. } => None,
        };
        Self {
            timeout_ns: match task.is_program() {
                true => PROGRAM_TIMEOUT_NS,
                false => TIMEOUT_NS,
            },
            task,
            wait,
            sizes_bytes: size_bytes.into_iter().collect(),
            verify: false,
            during: None,
            moments: false,
        }
    }

    /// Its name, in words: `latency`, `message`, `rate`, `allreduce`.
    pub fn name(&self) -> &str {
        match &self.task {
            Task::Latency(_) => "latency",
            Task::Message(_) => "message",
            Task::Batches { .. } => "rate",
            Task::Stream { .. } => "stream",
            Task::Startup {} => "startup",
            Task::Collective { kind, .. } => kind,
            Task::Npb { kernel, .. } => kernel,
            Task::Messages { .. } => "messages",
            Task::Check { .. } => "check",
        }
    }

    /// As `sonde-rank` takes it.
    ///
    /// # Panics
    /// Never: it is all text and numbers.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("text and numbers")
    }

    /// What [`text`](Self::text) gave.
    ///
    /// # Errors
    /// It is not a job.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(crate::frame::parse(text.as_bytes())?)
    }

    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// A size, a count or a time out of range; a window or a kind that is none.
    pub fn check(&self) -> Result<()> {
        self.task.check()?;
        match (self.task.is_sized(), self.sizes_bytes.is_empty()) {
            (true, _) => spec::check_sizes(&self.sizes_bytes)?,
            (false, true) => {}
            (false, false) => {
                return Err(Error::Unmeasurable {
                    what: format!("the messages of {} have sizes of their own", self.name()),
                    remedy: "leave sizes out",
                });
            }
        }
        match (&self.during, &self.task) {
            (None, _) => {}
            (Some(during), Task::Npb { .. }) => spec::check_budget(during.window_ns)?,
            (Some(_), _) => {
                return Err(Error::Unmeasurable {
                    what: format!("{} is not rated by runs in a span", self.name()),
                    remedy: "leave `during` out",
                });
            }
        }
        Ok(spec::check_timeout(self.timeout_ns)?)
    }

    /// The longest wait without progress, and of a stream also as long as what is under way on any network takes on the slowest
    /// one that is reckoned with, since its sender waits for one word about all of it.
    pub fn timeout(&self) -> Duration {
        let largest = self.sizes_bytes.iter().copied().max();
        let under_way_bytes = match (&self.task, largest) {
            (Task::Stream { .. }, Some(size_bytes)) => stream::under_way_bytes_min(size_bytes),
            _ => 0,
        };
        Duration::from_nanos(self.timeout_ns + under_way_bytes * SLOWEST_NS_PER_BYTE)
    }

    /// The longest that its ranks may take once they are started.
    pub fn duration_max(&self) -> Duration {
        let (longest_ns, sizes_bytes) = match &self.task {
            Task::Npb { limit_ns, .. } | Task::Messages { limit_ns, .. } => {
                return Duration::from_nanos(*limit_ns);
            }
            Task::Check { budget_ns, .. } => (*budget_ns, &[CHECKED_BYTES][..]),
            Task::Latency(sampling)
            | Task::Message(sampling)
            | Task::Batches { sampling, .. }
            | Task::Collective { sampling, .. } => (sampling.budget_ns, &self.sizes_bytes[..]),
            Task::Stream { window_ns } => (*window_ns, &self.sizes_bytes[..]),
            Task::Startup {} => (self.timeout_ns, &self.sizes_bytes[..]),
        };
        spec::duration_max(longest_ns, self.timeout_ns, sizes_bytes)
    }

    /// Does it; the report, at rank 0.
    ///
    /// # Errors
    /// It cannot be measured; fewer than two ranks; a rank is gone or silent; what was received is not what was sent.
    pub fn run(&self, messenger: &mut dyn Messenger, mut marks: Marks) -> Result<Option<Report>> {
        self.check()?;
        let (rank, ranks) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
        let may_be_alone = matches!(self.task, Task::Check { .. } | Task::Npb { .. });
        if ranks < 2 && !may_be_alone {
            return Err(Error::Unmeasurable {
                what: format!("{ranks} rank cannot be measured"),
                remedy: "start at least two",
            });
        }
        let (mut measured, mut served) = (nothing_measured(), Served::default());
        match (&self.task, rank) {
            (
                Task::Collective {
                    kind,
                    algorithm,
                    sampling,
                },
                _,
            ) => {
                let choice = collective::choice(kind, algorithm.as_deref())?;
                let what = (collective::kind(kind)?, choice);
                let sizes = (*sampling, &self.sizes_bytes[..]);
                collective::all(messenger, sizes, what, &mut measured, &mut served)?;
            }
            (Task::Check { seed, cases, .. }, _) => {
                let what = (*seed, *cases);
                let timeout = Duration::from_nanos(self.timeout_ns);
                check::all(messenger, timeout, what, &mut measured, &mut served)?;
            }
            (Task::Npb { .. } | Task::Messages { .. }, _) => {
                return Err(Error::Unmeasurable {
                    what: format!("{} is not in this room", self.name()),
                    remedy: "run it by who has it: sonde-rank",
                });
            }
            (_, 2..) => {}
            (Task::Latency(sampling), 0) => {
                let how = (*sampling, Sample::Latency);
                pair::measure(messenger, self, how, &mut measured)?;
            }
            (Task::Message(sampling), 0) => {
                let how = (*sampling, Sample::Throughput);
                pair::measure(messenger, self, how, &mut measured)?;
            }
            (Task::Latency(_), _) => {
                pair::serve(messenger, self, Sample::Latency, &mut served)?;
            }
            (Task::Message(_), _) => {
                pair::serve(messenger, self, Sample::Throughput, &mut served)?;
            }
            (Task::Batches { window, sampling }, 0) => {
                batch::measure(messenger, self, (*window, *sampling), &mut measured)?;
            }
            (Task::Batches { window, .. }, _) => {
                batch::serve(messenger, self, *window, &mut served)?;
            }
            (Task::Stream { .. }, 0) => {
                stream::measure(messenger, &self.sizes_bytes, &mut measured)?;
            }
            (Task::Stream { window_ns }, _) => {
                stream::serve(messenger, self, *window_ns, &mut served)?;
            }
            (Task::Startup {}, 0) => {
                marks.first_ns = Some(startup::measure(messenger, self, &mut measured)?);
            }
            (Task::Startup {}, _) => startup::serve(messenger, self, &mut served)?,
        }
        report::gather(messenger, measured, served, marks)
    }
}

fn nothing_measured() -> Measured {
    Measured {
        sizes: Vec::new(),
        evidence: Evidence::default(),
        interference: Interference::default(),
    }
}

/// A program's begin, for [`Marks`].
pub fn begun() -> Marks {
    Marks {
        main_ns: monotonic_ns(),
        open_ns: 0,
        first_ns: None,
    }
}
