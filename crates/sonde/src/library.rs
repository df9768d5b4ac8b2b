//! What ranks of a library are asked to do, for one combination of a plan's probe.
//!
//! Model:   start-up, latency, throughput and message rates are jobs of two ranks, each on a host of its own; a collective
//!          call is one of `ranks` ranks, which go round the hosts. Knobs of a library: `volley` (messages posted at once) of
//!          a rate; `call`, `ranks` and `algorithm` of a collective; `encoding` of PVM; those of a kernel are in [`kernel`], those of
//!          messages in [`messages`], those of a check in [`sound`].
//! Units:   guesses in nanoseconds.
//! Checked: `jobs_follow_the_probe`.

use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::kernel::{self, KernelRequest};
use crate::messages;
use crate::plan::{BUDGET, Effort, Mode, ProbeKind, ProbePlan, Repeat, SECOND};
use sonde_fleet::{Between, RanksAsk};
use sonde_measure::{Ceiling, KnobValues, Sampling, Testbed, Wait};
use sonde_message::{Library, Path};
use sonde_probe::library::npb::TRACE_EVENTS_MAX;
use sonde_probe::library::{BATCH, CHECK_NS, COLLECTIVE, Job, RANKS_MAX, Task};
use sonde_units::Span;
use std::collections::BTreeSet;

/// Collectives that are drawn where nothing else is said.
pub const CASES: u64 = 50;
/// Trips of a case, about: a collective's of each rank, and what messages come with it.
const TRIPS: u64 = 4;
/// Those of what is checked of any library.
const TRIPS_BESIDE: u64 = 60;

const MILLI_NS: u64 = 1_000_000;
/// What a daemon of PVM sends before it waits for the other's acknowledgement.
const FRAGMENT_BYTES: u64 = 4_080;

/// What all ranks do, and how many there are.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    /// What carries their messages.
    pub path: Path,
    /// What they do.
    pub job: Job,
    /// How many.
    pub count: usize,
    /// Options of the library's adapter that were asked for.
    pub settings: Vec<(String, String)>,
    /// Round how many hosts they go; round all where none.
    pub spread: Option<usize>,
    /// The kernel that they run, if they run one.
    pub kernel: Option<KernelRequest>,
    /// The messages that they replay, if they do.
    pub messages: Option<messages::MessagesRequest>,
}

impl Ranks {
    /// Between these hosts, as the fleet is asked for them.
    pub fn asked(&self, between: Between) -> RanksAsk {
        RanksAsk {
            between,
            path: self.path,
            job: self.job.clone(),
            count: self.count,
            settings: self.settings.clone(),
            spread: self.spread,
        }
    }

    /// A guess at what the kernel's runs of a launch take, where it is one.
    pub fn kernel_ns(&self, testbed: Testbed) -> Option<u64> {
        let kernel = self.kernel.as_ref()?;
        let Task::Npb { runs, .. } = self.job.task else {
            return None;
        };
        let here = sonde_sys::cpu::online().map_or(1, |online| online.len());
        let cpus = match testbed {
            Testbed::Local | Testbed::Virtual => here,
            // The switch has one of its own.
            Testbed::Lab => here - 1,
            Testbed::Hosts => kernel.ranks,
        };
        Some(kernel.estimate_ns(cpus).saturating_mul(runs))
    }

    /// A guess at what the replays of a launch take over a line with this round trip, where they are replays.
    pub fn replays_ns(&self, trip_ns: u64, line_bps: Option<u64>) -> Option<u64> {
        let Task::Messages { runs, .. } = self.job.task else {
            return None;
        };
        let replay_ns = self.messages.as_ref()?.estimate_ns(trip_ns, line_bps);
        Some(replay_ns.saturating_mul(runs))
    }

    /// A guess at what the cases of a check take over a line with this round trip, where it is one.
    pub fn checks_ns(&self, trip_ns: u64) -> Option<u64> {
        match self.job.task {
            Task::Check { cases, .. } => {
                Some((TRIPS_BESIDE + TRIPS * cases) * self.count as u64 * trip_ns)
            }
            _ => None,
        }
    }

    /// Has each rank write down what it did when in the last run, as far as a trace has room.
    pub fn trace(&mut self) {
        if let Task::Npb { trace, .. } = &mut self.job.task {
            *trace = Some((TRACE_EVENTS_MAX / self.count as u64).max(1));
        }
    }

    /// On how many hosts they are at most.
    pub fn hosts_max(&self) -> usize {
        self.spread.unwrap_or(self.count).min(self.count)
    }

    /// Whether all are on one host.
    pub fn is_on_one_host(&self) -> bool {
        self.hosts_max() == 1
    }

    /// What they run, replay or check, in words.
    pub fn program(&self) -> Option<String> {
        if let Task::Check { cases, .. } = self.job.task {
            return Some(format!("{cases} cases on {}", self.count));
        }
        let kernel = self.kernel.as_ref().map(KernelRequest::name);
        kernel.or_else(|| self.messages.as_ref().map(messages::MessagesRequest::name))
    }

    /// Why it does not fit into memory where a host has so many of its ranks.
    pub fn too_large(&self, available: u64, here: usize) -> Option<String> {
        match (&self.kernel, &self.messages) {
            (Some(kernel), _) => kernel.too_large(available, here),
            (None, Some(messages)) => messages.too_large(available, here),
            (None, None) => None,
        }
    }
}

/// What the ranks of a library take beside their round trips of `trip_ns`: their start, the ways that a start goes over the
/// network, and what each size's three messages there and back wait for the acknowledgements of PVM's daemons.
pub fn beside_ns(path: AnyPath, sizes_bytes: &[u64], trip_ns: u64) -> u64 {
    let by_daemons = path
        .library()
        .is_some_and(|path| path.to_string() == "pvm:default");
    let fragments = sizes_bytes.iter().map(|size| size / FRAGMENT_BYTES);
    let waits = match by_daemons {
        true => 6 * fragments.sum::<u64>(),
        false => 0,
    };
    let starts = match path.library() {
        None => 0,
        Some(_) => 8,
    };
    start_ns(path) + (starts + waits) * trip_ns
}

/// What the start of the ranks takes on this machine, about.
fn start_ns(path: AnyPath) -> u64 {
    match path.library().map(|path| path.library) {
        None => 0,
        Some(Library::Native | Library::Ucx | Library::Ofi) => 15 * MILLI_NS,
        Some(Library::Mpich) => 90 * MILLI_NS,
        Some(Library::OpenMpi) => 280 * MILLI_NS,
        // Its daemons are up.
        Some(Library::Pvm) => 40 * MILLI_NS,
    }
}

/// The job of one combination.
///
/// # Errors
/// A knob that no library has, or a value that it does not take; a kind of measurement that there is none of.
pub fn job(
    probe: &ProbePlan,
    path: Path,
    wait: Wait,
    sizes_bytes: Vec<u64>,
    knobs: &KnobValues,
    repeat: &Repeat,
) -> Result<Ranks, Failure> {
    let seed = repeat.seed;
    match probe.kind {
        ProbeKind::Npb => return of_kernel(probe, path, wait, knobs.clone()),
        ProbeKind::Messages => return of_messages(probe, path, wait, knobs.clone(), seed),
        _ => {}
    }
    let mut left = knobs.clone();
    let number = |left: &mut KnobValues, name| left.take_number(name).map_err(Failure::usage);
    let task = match probe.kind {
        ProbeKind::Startup => Task::Startup {},
        ProbeKind::Latency => Task::Latency(probe.sampling(Sampling::LATENCY, repeat)),
        ProbeKind::Throughput if probe.mode() == Some(Mode::Message) => {
            Task::Message(probe.sampling(Sampling::MESSAGE, repeat))
        }
        ProbeKind::Throughput => Task::Stream {
            window_ns: probe.window_ns(),
        },
        ProbeKind::Rate => Task::Batches {
            window: number(&mut left, "volley")?.unwrap_or(BATCH),
            sampling: calls(probe, Sampling::MESSAGE, SECOND),
        },
        ProbeKind::Collective => Task::Collective {
            kind: left.remove("call").ok_or_else(|| {
                Failure::usage(
                    "a probe of kind collective needs `call` in [probe.with], as in call = [\"allreduce\"]",
                )
            })?,
            algorithm: left.remove("algorithm"),
            sampling: calls(probe, COLLECTIVE, BUDGET),
        },
        ProbeKind::Check => Task::Check {
            seed: number(&mut left, "seed")?.unwrap_or(seed),
            cases: number(&mut left, "cases")?.unwrap_or(CASES),
            budget_ns: probe.budget.map_or(CHECK_NS, Span::as_nanos),
        },
        ProbeKind::Anatomy
        | ProbeKind::Npb
        | ProbeKind::Messages
        | ProbeKind::Pattern
        | ProbeKind::Files => {
            return Err(Failure::usage(format!(
                "the kernel's time stamps do not show the messages of {path}: measure the anatomy of its transport"
            )));
        }
    };
    let (least, asked) = match probe.kind {
        ProbeKind::Check => (1, number(&mut left, "ranks")?),
        ProbeKind::Collective => (2, number(&mut left, "ranks")?),
        _ => (2, None),
    };
    let count = asked.unwrap_or(2);
    if !(least..=RANKS_MAX as u64).contains(&count) {
        return Err(Failure::usage(format!(
            "{count} ranks cannot be started: write {least} to {RANKS_MAX}"
        )));
    }
    let settings = settings(path, &mut left)?;
    none_left(path, probe.kind, &left)?;
    let is_left_out = sizes_bytes.is_empty();
    let mut job = Job::new(task, wait);
    if job.task.is_sized() {
        job.sizes_bytes = sizes_bytes;
    }
    if !is_left_out {
        job.check()
            .map_err(|error| Failure::usage(format!("{error}: {}", error.remedy())))?;
    }
    Ok(Ranks {
        path,
        job,
        count: count as usize,
        settings,
        spread: None,
        kernel: None,
        messages: None,
    })
}

/// Samples of calls of a library, as far as the plan says how many.
fn calls(probe: &ProbePlan, usual: Sampling, budget: Span) -> Sampling {
    Sampling {
        budget_ns: probe.budget.unwrap_or(budget).as_nanos(),
        ..usual.up_to(probe.samples.unwrap_or(usual.samples_max))
    }
}

/// A kernel of a probe of kind npb.
fn of_kernel(
    probe: &ProbePlan,
    path: Path,
    wait: Wait,
    mut knobs: KnobValues,
) -> Result<Ranks, Failure> {
    let (kernel, runs) = kernel::take(&mut knobs)?;
    let spread = spread(&mut knobs)?;
    let settings = settings(path, &mut knobs)?;
    none_left(path, probe.kind, &knobs)?;
    let job = kernel.job(runs, wait, probe.budget);
    job.check()
        .map_err(|error| Failure::usage(format!("{error}: {}", error.remedy())))?;
    if kernel.ranks > RANKS_MAX {
        return Err(Failure::usage(format!(
            "{} ranks cannot be started: write 1 to {RANKS_MAX}",
            kernel.ranks
        )));
    }
    Ok(Ranks {
        path,
        job,
        count: kernel.ranks,
        settings,
        spread,
        kernel: Some(kernel),
        messages: None,
    })
}

/// Messages of a probe of that kind.
fn of_messages(
    probe: &ProbePlan,
    path: Path,
    wait: Wait,
    mut knobs: KnobValues,
    seed: u64,
) -> Result<Ranks, Failure> {
    let (messages, runs) = messages::take(&mut knobs, seed)?;
    let spread = spread(&mut knobs)?;
    let settings = settings(path, &mut knobs)?;
    none_left(path, probe.kind, &knobs)?;
    let job = messages.job(runs, wait, probe.budget);
    job.check()
        .map_err(|error| Failure::usage(format!("{error}: {}", error.remedy())))?;
    Ok(Ranks {
        path,
        job,
        count: messages.ranks,
        settings,
        spread,
        kernel: None,
        messages: Some(messages),
    })
}

/// Round how many hosts ranks go.
fn spread(knobs: &mut KnobValues) -> Result<Option<usize>, Failure> {
    match knobs.take_number("hosts").map_err(Failure::usage)? {
        Some(0) => Err(Failure::usage(
            "ranks need 1 host or more: `hosts=1` puts all of them on one",
        )),
        hosts => Ok(hosts.map(|hosts| hosts as usize)),
    }
}

/// Refuses a knob that nobody took.
fn none_left(path: Path, kind: ProbeKind, left: &KnobValues) -> Result<(), Failure> {
    let Some(name) = left.keys().next() else {
        return Ok(());
    };
    Err(Failure::usage(format!(
        "{path} has no knob `{name}` in a probe of kind {}: knobs of libraries are volley (rate), call, ranks and algorithm \
         (collective), kernel, class, size, ranks, runs, hosts and age (npb), of, count, mean, median, graph, ranks, runs and hosts \
         (messages), ranks, cases and seed (check), and of PVM encoding",
        kind.name()
    )))
}

/// How PVM puts bytes into its messages: `default` (XDR), `raw` or `inplace`.
const ENCODINGS: [&str; 3] = ["default", "raw", "inplace"];

fn settings(path: Path, knobs: &mut KnobValues) -> Result<Vec<(String, String)>, Failure> {
    if path.library != Library::Pvm {
        return Ok(Vec::new());
    }
    let Some(encoding) = knobs.remove("encoding") else {
        return Ok(Vec::new());
    };
    if !ENCODINGS.contains(&encoding.as_str()) {
        return Err(Failure::usage(format!(
            "PVM has no encoding `{encoding}`: write default (XDR), raw (the usual here) or inplace"
        )));
    }
    Ok(vec![("encoding".into(), encoding)])
}

/// The libraries beside their transport, and the transport by the wait that most of them have: few sizes, since what they
/// cost is a sum for a message and a slope for a byte.
pub fn assessed(budget: Option<Span>, effort: Effort) -> Vec<ProbePlan> {
    // PVM's daemons acknowledge each 4 KiB: a far larger message takes seconds over a wide area.
    const SIZES: [&str; 3] = ["8", "4KiB", "16KiB"];
    let named = |names: &[&str]| -> Vec<AnyPath> {
        let ways = names.iter().map(|name| name.parse());
        ways.filter_map(Result::ok).collect()
    };
    let mut own = ProbePlan::new(ProbeKind::Latency, &named(&["native:tcp"]), &SIZES);
    (own.budget, own.samples) = (budget, Some(3_000));
    if effort == Effort::Quick {
        return vec![own];
    }
    let all = named(&["openmpi:tcp", "mpich:tcp", "pvm:default", "pvm:direct"]);
    let mut polled = ProbePlan {
        wait: vec![Wait::Poll],
        ..ProbePlan::new(ProbeKind::Latency, &[AnyPath::TCP], &SIZES)
    };
    (polled.budget, polled.samples) = (budget, Some(3_000));
    let theirs = ProbePlan {
        path: all.clone(),
        ..own.clone()
    };
    let mut messages = ProbePlan::new(
        ProbeKind::Throughput,
        &[own.path.clone(), all].concat(),
        &["64KiB"],
    );
    (messages.mode, messages.budget) = (Some(Mode::Message), budget);
    messages.samples = Some(1_000);
    if effort == Effort::Usual {
        // Beside latencies, by which libraries are told apart: no interval.
        messages.launches = Some(1);
    }
    vec![own, polled, theirs, messages]
}

/// What bounds a transport bounds the libraries that stand on it: the same ceilings under those of these paths that are theirs.
pub fn ceilings(paths: impl Iterator<Item = AnyPath>, known: &[Ceiling]) -> Vec<Ceiling> {
    let libraries: BTreeSet<AnyPath> = paths.filter(|path| path.library().is_some()).collect();
    let of = |path: AnyPath| {
        let beneath = known
            .iter()
            .filter(move |one| one.path == path.beneath().name());
        beneath.map(move |ceiling| Ceiling {
            path: path.name(),
            ..ceiling.clone()
        })
    };
    libraries.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(kind: ProbeKind) -> ProbePlan {
        let text = format!(
            "kind = \"{}\"\npath = [\"native:tcp\"]\nsize = [\"8\"]",
            kind.name()
        );
        toml::from_str(&text).unwrap()
    }

    fn of(kind: ProbeKind, knobs: &[(&str, &str)]) -> Result<Ranks, String> {
        by("native:tcp", kind, knobs)
    }

    fn by(path: &str, kind: ProbeKind, knobs: &[(&str, &str)]) -> Result<Ranks, String> {
        let knobs = knobs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        let path = path.parse().unwrap();
        let repeat = Repeat::default();
        job(
            &probe(kind),
            path,
            Wait::Block,
            vec![8],
            &knobs.collect(),
            &repeat,
        )
        .map_err(|failure| failure.to_string())
    }

    #[test]
    fn jobs_follow_the_probe() {
        let latency = of(ProbeKind::Latency, &[]).unwrap().job;
        assert!(matches!(latency.task, Task::Latency(_)));
        assert_eq!(
            of(ProbeKind::Startup, &[]).unwrap().job.task,
            Task::Startup {}
        );
        let rate = of(ProbeKind::Rate, &[("volley", "16")]).unwrap();
        assert!(matches!(rate.job.task, Task::Batches { window: 16, .. }));
        assert_eq!((rate.count, rate.job.sizes_bytes), (2, vec![8]));
        let knobs = [("call", "allreduce"), ("ranks", "4"), ("algorithm", "ring")];
        let all = of(ProbeKind::Collective, &knobs).unwrap();
        assert_eq!(all.count, 4);
        assert!(all.settings.is_empty());
        let xdr = by("pvm:direct", ProbeKind::Latency, &[("encoding", "default")]).unwrap();
        assert_eq!(xdr.settings, [("encoding".into(), "default".into())]);
        let knobs = [
            ("kernel", "lu"),
            ("class", "S"),
            ("ranks", "6"),
            ("hosts", "1"),
        ];
        let lu = by("pvm:direct", ProbeKind::Npb, &knobs).unwrap();
        assert_eq!((lu.count, lu.spread), (6, Some(1)));
        assert!(lu.kernel.is_some_and(|kernel| kernel.refused().is_none()));
        let knobs = [("of", "upc:mg"), ("hosts", "2"), ("encoding", "raw")];
        let mg = by("pvm:direct", ProbeKind::Messages, &knobs).unwrap();
        assert_eq!((mg.count, mg.spread, mg.settings.len()), (4, Some(2), 1));
        assert_eq!(mg.program().as_deref(), Some("upc:mg on 4"));
        assert!(mg.kernel.is_none() && mg.replays_ns(1_000, None) > Some(0));
        assert!(mg.too_large(1, 2).is_some() && mg.too_large(u64::MAX, 2).is_none());
        let error = by("pvm", ProbeKind::Latency, &[("encoding", "xml")]).unwrap_err();
        assert!(
            error.contains("`xml`") && error.contains("inplace"),
            "{error}"
        );
        for (kind, knobs, said) in [
            (ProbeKind::Collective, &[][..], "needs `call`"),
            (ProbeKind::Collective, &[("call", "allsum")], "allsum"),
            (
                ProbeKind::Collective,
                &[("call", "barrier"), ("ranks", "1")],
                "1 ranks",
            ),
            (ProbeKind::Rate, &[("volley", "many")], "not a number"),
            (ProbeKind::Rate, &[("volley", "0")], "batch of 0"),
            (
                ProbeKind::Latency,
                &[("sndbuf", "1KiB")],
                "no knob `sndbuf`",
            ),
            (
                ProbeKind::Latency,
                &[("encoding", "raw")],
                "no knob `encoding`",
            ),
            (ProbeKind::Anatomy, &[], "anatomy"),
            (ProbeKind::Check, &[("ranks", "0")], "1 to"),
            (ProbeKind::Check, &[("cases", "0")], "1 to 100000"),
            (ProbeKind::Check, &[("runs", "2")], "ranks, cases and seed"),
            (ProbeKind::Npb, &[("class", "S")], "needs `kernel`"),
            (
                ProbeKind::Npb,
                &[("kernel", "cg"), ("class", "S"), ("volley", "3")],
                "no knob `volley`",
            ),
            (
                ProbeKind::Npb,
                &[("kernel", "cg"), ("class", "S"), ("hosts", "0")],
                "ranks need 1 host or more",
            ),
            (ProbeKind::Messages, &[("of", "upc:ep")], "hardly"),
            (
                ProbeKind::Messages,
                &[("of", "upc:cg"), ("runs", "0")],
                "0 replays",
            ),
            (
                ProbeKind::Messages,
                &[("of", "upc:cg"), ("class", "S")],
                "no knob `class`",
            ),
        ] {
            let error = of(kind, knobs).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
