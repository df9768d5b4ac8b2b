//! What a combination of a probe comes to: one typed piece of work, out of the texts of its knobs.
//!
//! Model:   here alone texts become types: a knob is a setting of both hosts, one of the channel, or a library's.
//! Units:   as in [`sonde_measure::Spec`].
//! Checked: `plan/tests.rs`, and `layout`'s own.

use super::{Mode, ProbeKind, ProbePlan, Repeat};
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::flows::Rounds;
use crate::layout::Block;
use crate::library::{self, Ranks};
use sonde_measure::files::{Files, FilesPath};
use sonde_measure::{
    KnobValues, Knobs, Method, Pace, Path, Procedure, Quota, Sampling, Spec, Wait,
};
use sonde_probe::host::{self, Setting};
use sonde_units::Span;

/// The knob of send and receive buffer together.
const BUFFER: &str = "buffer";
/// A knob of hosts and of sockets.
const WINDOW: &str = "window";
/// The usual budget of round trips.
pub const BUDGET: Span = Span::millis(500);
pub const SECOND: Span = Span::secs(1);
/// The longest that a client of files waits for an answer: calls that were lost are sent again after 1.1 s, 3.3 s, 7.7 s, ...
const FILES_TIMEOUT: Span = Span::secs(60);

/// What a launch does.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// A conversation of two agents over a channel.
    Channel(Box<Spec>),
    /// A job of a library's ranks.
    Ranks(Box<Ranks>),
    /// Rounds of flows among all hosts.
    Rounds(Box<Rounds>),
    /// Several blocks at once, each with its own cells.
    Together(Vec<Block>),
}

impl ProbePlan {
    /// What these knobs set of both hosts, and what one combination does by `path` with these sizes.
    ///
    /// # Errors
    /// A knob that nobody has, or a value that it does not take; a rate that is missing or has no place.
    pub fn lower(
        &self,
        path: AnyPath,
        (method, wait): (Method, Wait),
        knobs: &KnobValues,
        sizes_bytes: Vec<u64>,
        repeat: &Repeat,
    ) -> Result<(Vec<Setting>, Work), Failure> {
        let (hosts, channel) = apart(knobs)?;
        let work = match path {
            AnyPath::Channel(path) => {
                let (knobs, pace) = self.knobs(&channel, repeat.seed)?;
                let procedure = self.procedure(path, repeat, pace)?;
                Work::Channel(Box::new(Spec {
                    method,
                    knobs,
                    sizes_bytes,
                    procedure,
                    ..Spec::new(procedure.probe(), path, wait)
                }))
            }
            AnyPath::Files(path) => {
                let files = self.files(path, &channel)?;
                Work::Channel(Box::new(Spec {
                    method,
                    sizes_bytes,
                    timeout_ns: FILES_TIMEOUT.as_nanos(),
                    procedure: Procedure::Files(files),
                    ..Spec::new(sonde_measure::Probe::Files, path.over, wait)
                }))
            }
            AnyPath::Library(path) => {
                let ranks = library::job(self, path, wait, sizes_bytes, &channel, repeat)?;
                Work::Ranks(Box::new(ranks))
            }
        };
        Ok((hosts, work))
    }

    /// What is done with files.
    fn files(&self, path: FilesPath, values: &KnobValues) -> Result<Files, Failure> {
        if self.kind != ProbeKind::Files {
            return Err(Failure::usage(format!(
                "{path} has no {}: write kind = \"files\" (`sonde probe files`), or a path such as tcp",
                self.kind.name()
            )));
        }
        let files = Files::parse(path, values).map_err(Failure::usage)?;
        let usual = files.quota;
        let files = Files {
            quota: Quota {
                samples_max: self.samples.unwrap_or(usual.samples_max),
                budget_ns: self.budget.unwrap_or(SECOND).as_nanos(),
                ..usual
            },
            ..files
        };
        let checked = files.check(path.over);
        checked.map_err(|error| Failure::usage(format!("{error}: {}", error.remedy)))?;
        Ok(files)
    }

    /// What knobs set: of the channel, and for a probe of kind rate when messages are due.
    fn knobs(&self, values: &KnobValues, seed: u64) -> Result<(Knobs, Option<Pace>), Failure> {
        let mut values = values.clone();
        let pace = match self.kind {
            ProbeKind::Rate => Pace::take(&mut values, seed).map_err(Failure::usage)?,
            _ => None,
        };
        Ok((Knobs::parse(&values).map_err(Failure::usage)?, pace))
    }

    /// What is done with each size over a channel.
    fn procedure(
        &self,
        path: Path,
        repeat: &Repeat,
        pace: Option<Pace>,
    ) -> Result<Procedure, Failure> {
        let quota = |usual: Quota, budget: Span| Quota {
            samples_max: self.samples.unwrap_or(usual.samples_max),
            budget_ns: self.budget.unwrap_or(budget).as_nanos(),
            ..usual
        };
        Ok(match (self.kind, self.mode()) {
            (ProbeKind::Startup, _) => Procedure::usual(sonde_measure::Probe::Startup),
            (ProbeKind::Latency, _) => Procedure::Latency(self.sampling(Sampling::LATENCY, repeat)),
            (ProbeKind::Throughput, Some(Mode::Message)) => {
                Procedure::Message(self.sampling(Sampling::MESSAGE, repeat))
            }
            (ProbeKind::Throughput, _) => Procedure::Stream {
                window_ns: self.window_ns(),
            },
            (ProbeKind::Anatomy, _) => {
                let mut quota = quota(Quota::ANATOMY, BUDGET);
                quota.samples_max = quota.samples_max.min(Quota::ANATOMY.samples_max);
                Procedure::Anatomy(quota)
            }
            (ProbeKind::Rate, _) => {
                let pace = pace.ok_or_else(|| {
                    Failure::usage(
                        "a probe of kind rate needs one: `rate` in [probe.with], or --rate 1000",
                    )
                })?;
                let quota = quota(Quota::RATE, SECOND);
                Procedure::Rate { pace, quota }
            }
            (
                ProbeKind::Collective
                | ProbeKind::Npb
                | ProbeKind::Messages
                | ProbeKind::Check
                | ProbeKind::Pattern,
                _,
            ) => {
                return Err(Failure::usage(format!(
                    "{path} has no {}: write a library's path, as native:tcp",
                    self.kind.name()
                )));
            }
            (ProbeKind::Files, _) => {
                return Err(Failure::usage(format!(
                    "{path} has no files: write a service, as nfs3:tcp"
                )));
            }
        })
    }

    /// Samples of a closed loop, as the plan wants them.
    pub fn sampling(&self, usual: Sampling, repeat: &Repeat) -> Sampling {
        let precision = repeat.precision_per_mille;
        Sampling {
            budget_ns: self.budget.unwrap_or(BUDGET).as_nanos(),
            precision_per_mille: (precision > 0).then_some(precision),
            ..usual.up_to(self.samples.unwrap_or(usual.samples_max))
        }
    }

    /// The time that is rated of a stream.
    pub fn window_ns(&self) -> u64 {
        self.budget.unwrap_or(SECOND).max(SECOND).as_nanos()
    }
}

/// Settings of hosts, and the knobs that are the channel's.
pub fn apart(knobs: &KnobValues) -> Result<(Vec<Setting>, KnobValues), Failure> {
    let (mut hosts, mut channel) = (Vec::new(), KnobValues::new());
    for (name, value) in knobs {
        match host::knob(name, value) {
            Some(settings) => {
                hosts.extend(settings.map_err(Failure::usage)?);
                // The kernel alone does not hold it; the receiver does.
                if name == WINDOW {
                    channel.insert(name.clone(), value.clone());
                }
            }
            // Both ends' socket buffers, as the tests of old had it.
            None if name == BUFFER => {
                for end in ["sndbuf", "rcvbuf"] {
                    if knobs.contains_key(end) {
                        return Err(Failure::usage(format!(
                            "`{BUFFER}` sets {end} too: write one of them"
                        )));
                    }
                    channel.insert(end.into(), value.clone());
                }
            }
            None => drop(channel.insert(name.clone(), value.clone())),
        }
    }
    Ok((hosts, channel))
}
