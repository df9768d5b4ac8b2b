//! Measurements at the library layer: jobs for ranks that are joined by a [`Messenger`], whatever it is made of.
//!
//! Model:   every rank runs the same [`Job`]; rank 0 measures and rank 1 answers or receives, as the two sides of a
//!          conversation over channels do, by the same loops ([`crate::trips`], [`crate::meter`]), so that a difference to the
//!          transport is one of libraries and not of methods. What rank 1 saw travels to rank 0 by the messenger, and rank 0 has
//!          the [`Report`]. Ranks beyond take part in collectives alone. CPU time is that of the whole process, since a
//!          library may have threads of its own; what daemons take is in the host's, not in it.
//! Units:   integer nanoseconds on CLOCK_MONOTONIC, bits a second, bytes.
//! Checked: the tests of each module; `tests/library.rs`: every job among ranks of one process, and what goes wrong.

mod check;
mod collective;
pub mod messages;
pub mod npb;
mod pair;
mod report;
mod runs;
mod startup;
mod stream;
mod volley;

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sonde_measure::Interference;
use sonde_measure::{Evidence, Path, Wait};
use sonde_message::{Comm, Messenger, Source, Tag, Tagged};
use sonde_sys::clock::monotonic_ns;

use crate::talk::{Measured, Served};
use crate::terms::SLOWEST_NS_PER_BYTE;
use crate::{Error, Probe, Result, Terms};

pub use report::{MARKER, Marks, Report};

/// What is measured or received.
const DATA: Tag = 1;
/// What is said beside it.
const BESIDE: Tag = 2;
/// What one rank saw, for rank 0.
const SEEN: Tag = 3;
/// The most of what a rank says of itself.
const SAID_BYTES_MAX: u64 = 8 << 20;
/// In the environment of a native rank: how it meets the others, a [`Native`] as JSON.
pub const NATIVE: &str = "SONDE_NATIVE";
/// In a rank's environment: whether its library yields the CPU when it finds nothing, as who started it knows; a fact of it.
pub const YIELDS: &str = "SONDE_YIELDS";
/// Messages of a volley where nothing else is asked for.
pub const VOLLEY: u64 = 64;
/// What a launch of a kernel may take, and how long a rank of it may compute while others wait, unless the terms say otherwise.
const KERNEL_NS: u64 = 600 * 1_000_000_000;
const KERNEL_TIMEOUT_NS: u64 = 60 * 1_000_000_000;
/// The most ranks of a job.
pub const RANKS_MAX: usize = 1_024;
/// The most collectives of a check.
pub const CASES_MAX: u64 = 100_000;
/// The most messages of a volley.
pub const VOLLEY_MAX: u64 = 4_096;

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
    /// `tcp`, `unix`, `shm`.
    pub transport: String,
    /// Of `tcp`: rank 0's address and port; else a name.
    pub meeting: String,
    /// Of `tcp`: the address by which the others reach this rank; null leaves it to its routes.
    pub own: Option<IpAddr>,
    /// The run's secret.
    pub token: String,
    /// How long nothing may move.
    pub timeout_ns: u64,
}

/// What all ranks do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What is measured.
    pub task: Task,
    /// How. Its path says nothing but that no message is lost; its method and knobs are of no meaning.
    pub terms: Terms,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Task {
    /// Round trips: a ping-pong, or single messages with a short answer, by the probe of the terms.
    Trips {},
    /// So many messages posted at once, and one answer: messages a second.
    Volleys {
        /// Messages of a volley.
        window: u64,
    },
    /// A stream one way, rated by its receiver.
    Stream {},
    /// The first and the second message; what came before is known from [`Marks`].
    Startup {},
    /// A collective call among all ranks.
    Collective {
        /// Its name: `barrier`, `allreduce`.
        kind: String,
        /// Who makes it: `library`, or one of sonde's algorithms by its name; null is the library where it has one.
        #[serde(default)]
        algorithm: Option<String>,
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
        #[serde(default)]
        age: Option<npb::Age>,
        /// So many events of each rank are written down in the last run; null for nothing.
        #[serde(default)]
        trace: Option<u64>,
    },
    /// The messages of a program without what it computes, run by [`Job::run_messages`].
    Messages {
        /// Which.
        asked: sonde_measure::replay::Asked,
        /// Replays of a launch; see [`messages::RUNS_MAX`].
        runs: u64,
    },
    /// Nothing: messages and collectives are held against what they should give. See [`CASES_MAX`].
    Check {
        /// What the cases follow from.
        seed: u64,
        /// Collectives, beside one of each kind by the library.
        cases: u64,
    },
}

impl Job {
    /// The usual terms of a task; see [`Terms::new`]. Volleys: 8 bytes, 10 to 1,000 samples after 2 discarded, for 1 s.
    /// Collectives: 8 bytes, 10 to 1,000 samples after 3 discarded, for 1 s. Kernels and replays: at most 10 minutes, of which
    /// ranks may wait for one.
    pub fn new(task: Task, probe: Probe, wait: Wait) -> Self {
        let probe = match task {
            Task::Trips {} => probe,
            Task::Volleys { .. } => Probe::Message,
            Task::Stream {} => Probe::Stream,
            Task::Startup {} => Probe::Startup,
            Task::Collective { .. }
            | Task::Check { .. }
            | Task::Npb { .. }
            | Task::Messages { .. } => Probe::Message,
        };
        let mut terms = Terms::new(probe, Path::Unix, wait);
        if let Task::Volleys { .. } | Task::Collective { .. } = task {
            terms.sizes_bytes = vec![8];
            (terms.samples_min, terms.samples_max) = (10, 1_000);
            terms.budget_ns = 1_000_000_000;
        }
        if let Task::Collective { .. } = task {
            terms.warmup = 3;
        }
        if let Task::Npb { .. } | Task::Messages { .. } = task {
            // Its messages have sizes of their own.
            terms.sizes_bytes = vec![1];
            (terms.budget_ns, terms.timeout_ns) = (KERNEL_NS, KERNEL_TIMEOUT_NS);
        }
        Self { task, terms }
    }

    /// Its name, in words: `latency`, `message`, `rate`, `allreduce`.
    pub fn name(&self) -> &str {
        match &self.task {
            Task::Trips {} => self.terms.probe.name(),
            Task::Volleys { .. } => "rate",
            Task::Stream {} => "stream",
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
    /// It is no job.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(crate::frame::parse(text.as_bytes())?)
    }

    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// Those of [`Terms::check`]; a window or a kind that is none.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String, remedy| Err(Error::Terms { what, remedy });
        match &self.task {
            Task::Volleys { window } if !(1..=VOLLEY_MAX).contains(window) => {
                return refuse(
                    format!("a volley of {window} messages cannot be sent"),
                    "ask for 1 to 4096",
                );
            }
            Task::Check { cases, .. } if !(1..=CASES_MAX).contains(cases) => {
                return refuse(
                    format!("{cases} cases cannot be checked"),
                    "ask for 1 to 100000",
                );
            }
            Task::Npb { runs, .. } if !(1..=npb::RUNS_MAX).contains(runs) => {
                return refuse(
                    format!("{runs} runs of a kernel cannot be made"),
                    "ask for 1 to 1000",
                );
            }
            Task::Npb {
                trace: Some(events),
                ..
            } if !(1..=npb::TRACE_EVENTS_MAX).contains(events) => {
                return refuse(
                    format!("{events} events of a rank cannot be written down"),
                    "ask for 1 to 80000",
                );
            }
            Task::Messages { asked, runs } => messages::check(asked, *runs)?,
            Task::Collective { kind, algorithm } => {
                collective::kind(kind)?;
                collective::choice(kind, algorithm.as_deref())?;
            }
            Task::Trips {} if !matches!(self.terms.probe, Probe::Latency | Probe::Message) => {
                return refuse(
                    format!("{} is no ping-pong", self.terms.probe.name()),
                    "ask for latency or message",
                );
            }
            _ => {}
        }
        self.terms.check()
    }

    /// The longest wait without progress: that of the terms, and of a stream also as long as what is under way on any network
    /// takes on the slowest one that is reckoned with, since its sender waits for one word about all of it.
    pub fn timeout(&self) -> Duration {
        let largest = self.terms.sizes_bytes.iter().copied().max();
        let under_way_bytes = match (&self.task, largest) {
            (Task::Stream {}, Some(size_bytes)) => stream::under_way_bytes_min(size_bytes),
            _ => 0,
        };
        self.terms.timeout() + Duration::from_nanos(under_way_bytes * SLOWEST_NS_PER_BYTE)
    }

    /// Does it; the report, at rank 0.
    ///
    /// # Errors
    /// Terms that cannot be measured under; fewer than two ranks; a rank is gone or silent; what was received is not what
    /// was sent.
    pub fn run(&self, messenger: &mut dyn Messenger, mut marks: Marks) -> Result<Option<Report>> {
        self.check()?;
        let (rank, ranks) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
        let may_be_alone = matches!(self.task, Task::Check { .. } | Task::Npb { .. });
        if ranks < 2 && !may_be_alone {
            return Err(Error::Terms {
                what: format!("{ranks} rank cannot be measured"),
                remedy: "start at least two",
            });
        }
        let (mut measured, mut served) = (nothing_measured(), Served::default());
        match (&self.task, rank) {
            (Task::Collective { kind, algorithm }, _) => {
                let choice = collective::choice(kind, algorithm.as_deref())?;
                let what = (collective::kind(kind)?, choice);
                collective::all(messenger, &self.terms, what, &mut measured, &mut served)?;
            }
            (Task::Check { seed, cases }, _) => {
                let what = (*seed, *cases);
                check::all(messenger, &self.terms, what, &mut measured, &mut served)?;
            }
            (Task::Npb { .. } | Task::Messages { .. }, _) => {
                return Err(Error::Terms {
                    what: format!("{} is not in this room", self.name()),
                    remedy: "run it by who has it: sonde-rank",
                });
            }
            (_, 2..) => {}
            (Task::Trips {}, 0) => pair::measure(messenger, &self.terms, &mut measured)?,
            (Task::Trips {}, _) => pair::serve(messenger, &self.terms, &mut served)?,
            (Task::Volleys { window }, 0) => {
                volley::measure(messenger, &self.terms, *window, &mut measured)?;
            }
            (Task::Volleys { window }, _) => {
                volley::serve(messenger, &self.terms, *window, &mut served)?;
            }
            (Task::Stream {}, 0) => stream::measure(messenger, &self.terms, &mut measured)?,
            (Task::Stream {}, _) => stream::serve(messenger, &self.terms, &mut served)?,
            (Task::Startup {}, 0) => {
                marks.first_ns = Some(startup::measure(messenger, &self.terms, &mut measured)?);
            }
            (Task::Startup {}, _) => startup::serve(messenger, &self.terms, &mut served)?,
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

/// Sends JSON to a rank: its length, then itself.
///
/// # Errors
/// Those of the messenger; it is no JSON.
pub fn tell<T: Serialize>(messenger: &mut dyn Messenger, to: usize, what: &T) -> Result<()> {
    let body = serde_json::to_vec(what).map_err(crate::frame::FrameError::from)?;
    let length = (body.len() as u64).to_le_bytes();
    messenger.send(Comm::WORLD, to, SEEN, &length)?;
    Ok(messenger.send(Comm::WORLD, to, SEEN, &body)?)
}

/// Receives JSON of a rank.
///
/// # Errors
/// Those of the messenger; it is too long, or not what it must be.
pub fn hear<T: for<'a> Deserialize<'a>>(messenger: &mut dyn Messenger, from: usize) -> Result<T> {
    let mut length = [0; 8];
    receive(messenger, from, SEEN, &mut length)?;
    let length = u64::from_le_bytes(length);
    if length > SAID_BYTES_MAX {
        return Err(Error::Integrity(format!(
            "rank {from} announces {length} bytes of what it saw"
        )));
    }
    let mut body = vec![0; length as usize];
    receive(messenger, from, SEEN, &mut body)?;
    Ok(serde_json::from_slice(&body).map_err(crate::frame::FrameError::from)?)
}

/// Receives a message that fills the room.
fn receive(messenger: &mut dyn Messenger, from: usize, tag: Tag, room: &mut [u8]) -> Result<()> {
    let wanted = room.len();
    let status = messenger.recv(Comm::WORLD, Source::Rank(from), Tagged::With(tag), room)?;
    whole(from, status.bytes, wanted)
}

fn whole(from: usize, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::Integrity(format!(
        "a message of {found} bytes came from rank {from} where {wanted} were agreed"
    )))
}

/// A program's begin, for [`Marks`].
pub fn begun() -> Marks {
    Marks {
        main_ns: monotonic_ns(),
        open_ns: 0,
        first_ns: None,
    }
}
