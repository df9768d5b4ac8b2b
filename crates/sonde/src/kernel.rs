//! A kernel as plans and the command ask for it: its words read, what cannot be refused, how long it takes about.
//!
//! Model:   a kernel and its size are the workload's; how many ranks it admits is said there, and what they keep in arrays. Ranks
//!          that go round hosts take the memory of each; hosts of a lab are one machine. Guesses go by rates of one rank of the
//!          reference program, divided among ranks and CPUs; nothing measured depends on them. On hosts of another age a
//!          rank computes its part of the stretched whole, whoever has the CPU; what an age is in words is read here.
//! Source:  rates of NPB 3.4.3, class A, one rank on a server of 2023; rounded.
//! Units:   nanoseconds, bytes, millions of operations a second.
//! Checked: `what_does_not_fit_is_refused`, `guesses_go_by_operations`, `ages_are_read`,
//!          `the_main_job_has_a_kernel_and_its_reference`; `tests/lab_npb.rs`, `tests/lab_npb_trace.rs`.

use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::plan::{Effort, Kind, ProbeKind, ProbePlan};
use sonde_fleet::Fleet;
use sonde_measure::Wait;
use sonde_measure::{HostRecord, KnobValues};
use sonde_message::aged;
use sonde_probe::library::npb::Age;
use sonde_probe::library::{Job, Task};
use sonde_units::{Ratio, Span};
use sonde_workload::npb::{Class, Kernel, Problem};

const SECOND_NS: u64 = 1_000_000_000;
/// A launch may take so long at least, and so many times the guess; never more than an hour.
const LIMIT_NS: u64 = 600 * SECOND_NS;
const LIMIT_FACTOR: u64 = 20;
/// Ranks may wait so long at least for one that computes.
const TIMEOUT_NS: u64 = 60 * SECOND_NS;
const TIMEOUT_FACTOR: u64 = 4;
const HOUR_NS: u64 = 3_600 * SECOND_NS;
/// Setup, the untimed pass and verification: a part of the timed one, and something of its own.
const BESIDE_NS: u64 = 30_000_000;
/// The same as a part.
const BESIDE: f64 = 1.4;
/// What finding out a sequential run's own time takes at most, beside one run.
const OWN_NS: u64 = 5 * SECOND_NS;
/// What a rank takes beside its arrays: the program, a library's buffers.
const RANK_BYTES: u64 = 32 << 20;
/// Arrays are at most so many tenths larger than counted.
const ARRAYS_TENTHS: u64 = 11;

/// A kernel of a size among ranks, with its words.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelRequest {
    /// What is computed.
    pub problem: Problem,
    /// The size as it was asked for.
    pub size: String,
    /// Among how many.
    pub ranks: usize,
    /// Of which age the hosts are, with its word; none of this one.
    age: Option<(String, Age)>,
}

impl KernelRequest {
    /// Reads the words.
    ///
    /// # Errors
    /// There is no such kernel or size; what there is.
    pub fn read(kernel: &str, size: &str, ranks: usize) -> Result<Self, Failure> {
        let problem = Problem::named(kernel, size).map_err(Failure::usage)?;
        let size = size.into();
        Ok(Self {
            problem,
            size,
            ranks,
            age: None,
        })
    }

    /// The same on hosts of an age: a factor, the time of a sequential run on such a host, or a study that prints one. 1 is this age.
    ///
    /// # Errors
    /// It is not an age; a study prints no time of this kernel and size.
    pub fn aged(mut self, text: &str) -> Result<Self, Failure> {
        self.age = age(self.problem.kernel(), &self.size, text)?.map(|age| (text.into(), age));
        Ok(self)
    }

    /// Of which age the hosts are; none of this one.
    pub fn age(&self) -> Option<Age> {
        self.age.as_ref().map(|age| age.1)
    }

    /// In words: `cg S on 4`.
    pub fn name(&self) -> String {
        let kernel = self.problem.kernel();
        let age = self.age.as_ref();
        let age = age.map_or(String::new(), |age| format!(" aged {}", age.0));
        format!("{kernel} {} on {}{age}", self.size, self.ranks)
    }

    /// Why so many runs cannot be waited for: hosts of another age may take very long.
    pub fn too_long(&self, runs: u64) -> Option<String> {
        let guess_ns = self.estimate_ns(1).saturating_mul(runs);
        (self.age.is_some() && guess_ns > HOUR_NS).then(|| {
            format!(
                "{} takes about {:.1} h on such hosts, and a repetition may take an hour: choose a smaller size, fewer runs or a smaller \
                 `--age`",
                self.name(),
                guess_ns as f64 / HOUR_NS as f64
            )
        })
    }

    /// Why so many ranks cannot run it, and how many could.
    pub fn refused(&self) -> Option<String> {
        let why = self.problem.admits(self.ranks).err()?;
        Some(format!("{}: {why}", self.name()))
    }

    /// Why it does not fit into memory where a host has so many of its ranks; and what would.
    pub fn too_large(&self, available: u64, here: usize) -> Option<String> {
        let wanted = self.bytes(here);
        if wanted <= available {
            return None;
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let smaller = |class: &Class| {
            let problem = Problem::of(self.problem.kernel(), *class);
            problem.is_some_and(|problem| {
                let other = Self {
                    problem,
                    ..self.clone()
                };
                problem.admits(self.ranks).is_ok() && other.bytes(here) <= available
            })
        };
        let classes = [Class::C, Class::B, Class::A, Class::W, Class::S];
        let remedy = match classes.iter().find(|class| smaller(class)) {
            Some(class) => format!("class {class} fits; more hosts have more"),
            None => "take fewer ranks a host".into(),
        };
        Some(format!(
            "{}: {here} ranks on one host take {} MiB, and {} MiB are available there: {remedy}",
            self.name(),
            mib(wanted),
            mib(available)
        ))
    }

    fn bytes(&self, here: usize) -> u64 {
        let arrays = self.problem.memory_bytes(self.ranks);
        let of = |arrays: u64| arrays / 10 * ARRAYS_TENTHS + RANK_BYTES;
        let together = of(arrays).saturating_mul(here as u64);
        match self.age() {
            // Before the ranks take theirs, one has all of it alone.
            Some(Age::Recorded(_)) => together.max(of(self.problem.memory_bytes(1))),
            _ => together,
        }
    }

    /// A guess at a run with setup and verification, on so many CPUs.
    pub fn estimate_ns(&self, cpus: usize) -> u64 {
        let alone_ns = self.problem.operations() / pace(self.problem.kernel()) * 1e3;
        let timed_ns = alone_ns / self.ranks.min(cpus.max(1)) as f64;
        let plain_ns = (timed_ns * BESIDE) as u64 + BESIDE_NS;
        let part_ns = |whole_ns: f64| (whole_ns / self.ranks as f64 * BESIDE) as u64;
        match self.age() {
            None => plain_ns,
            Some(Age::Factor(factor)) => {
                let (numerator, denominator) = factor.parts();
                plain_ns + part_ns(alone_ns * numerator as f64 / denominator as f64)
            }
            Some(Age::Recorded(ns)) => {
                let own_ns = (3.0 * alone_ns).min(alone_ns + OWN_NS as f64);
                plain_ns + part_ns(ns as f64) + (own_ns * BESIDE) as u64
            }
        }
    }

    /// What all ranks do. `limit` is what a launch may take, without it many times the guess.
    pub fn job(&self, runs: u64, wait: Wait, limit: Option<Span>) -> Job {
        // Ranks of a lab may share one CPU.
        let guess_ns = self.estimate_ns(1);
        let all_ns = guess_ns.saturating_mul(runs);
        let usual_ns = all_ns.saturating_mul(LIMIT_FACTOR).max(LIMIT_NS);
        let task = Task::Npb {
            kernel: self.problem.kernel().name().into(),
            size: self.size.clone(),
            runs,
            age: self.age(),
            trace: None,
            limit_ns: limit.map_or(usual_ns, Span::as_nanos).min(HOUR_NS),
        };
        let mut job = Job::new(task, wait);
        let timeout_ns = guess_ns.saturating_mul(TIMEOUT_FACTOR).max(TIMEOUT_NS);
        job.timeout_ns = timeout_ns.min(HOUR_NS);
        job
    }
}

/// Millions of operations a second of one rank, about.
const fn pace(kernel: Kernel) -> f64 {
    match kernel {
        Kernel::Ep => 140.0,
        Kernel::Cg => 1_900.0,
        Kernel::Mg => 4_300.0,
        Kernel::Ft => 3_100.0,
        Kernel::Is => 130.0,
        Kernel::Lu => 5_600.0,
        Kernel::Sp => 3_900.0,
        Kernel::Bt => 3_300.0,
    }
}

/// Reads the age of hosts: `120`, `16.66s`, `upc`. None where it is this one.
fn age(kernel: Kernel, size: &str, text: &str) -> Result<Option<Age>, Failure> {
    if let Ok(factor) = text.parse::<Ratio>() {
        aged::check(factor).map_err(Failure::usage)?;
        return Ok((factor != Ratio::ONE).then_some(Age::Factor(factor)));
    }
    let recorded_ns = match text.parse::<Span>() {
        Ok(time) => time.as_nanos(),
        Err(_) if text.starts_with(char::is_alphabetic) && text != "NaN" => {
            let seconds = sonde_report::sequential_time(text, kernel.name(), size);
            (seconds.map_err(Failure::usage)? * SECOND_NS as f64).round() as u64
        }
        Err(_) => 0,
    };
    if recorded_ns == 0 {
        return Err(Failure::usage(format!(
            "`{text}` is not an age of hosts: write the factor by which they compute longer, 1 to {}, as in 120, the time of a \
             sequential run on such a host, as in 16.66s, or a study that prints that time, as in upc",
            aged::FACTOR_MAX
        )));
    }
    Ok(Some(Age::Recorded(recorded_ns)))
}

/// What the main job has of kernels: the one that is over soonest where the way is long, by the native engine; with more time
/// another one and other libraries too. Its reference is the same among ranks that share memory, or on one rank of real hosts.
pub fn assessed(testbed: Kind, effort: Effort) -> Vec<ProbePlan> {
    let probe = |paths: &[&str], kernels: &[&str], ranks: &str| {
        let paths: Vec<AnyPath> = paths.iter().filter_map(|path| path.parse().ok()).collect();
        let mut probe = ProbePlan::new(ProbeKind::Npb, &paths, &[]);
        let with = [("kernel", kernels), ("class", &["S"]), ("ranks", &[ranks])];
        let owned = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect();
        probe.knobs = with.map(|(name, texts)| (name.into(), owned(texts))).into();
        probe
    };
    let (paths, kernels): (&[&str], &[&str]) = match effort {
        Effort::Quick => return Vec::new(),
        Effort::Usual => (&["native:tcp"], &["is"]),
        Effort::Thorough => (&["native:tcp", "openmpi:tcp", "pvm:direct"], &["is", "mg"]),
    };
    let reference = match testbed {
        Kind::Local | Kind::Lab => ProbePlan {
            floor: true,
            ..probe(&["native:shm"], kernels, "4")
        },
        _ => probe(&["native:tcp"], kernels, "1"),
    };
    vec![probe(paths, kernels, "4"), reference]
}

/// Takes a kernel's words out of the knobs of a plan: `kernel`, `class` or `size`, `ranks`, the hosts' `age`, and how many `runs` a
/// launch makes.
///
/// # Errors
/// One is missing, or names nothing.
pub fn take(knobs: &mut KnobValues) -> Result<(KernelRequest, u64), Failure> {
    let kernel = knobs.remove("kernel").ok_or_else(|| {
        Failure::usage(
            "a probe of kind npb needs `kernel` in [probe.with], as in kernel = [\"cg\"]",
        )
    })?;
    let size = match (knobs.remove("class"), knobs.remove("size")) {
        (Some(size), None) | (None, Some(size)) => size,
        _ => {
            return Err(Failure::usage(
                "a probe of kind npb needs either `class` in [probe.with], as in class = [\"S\"], or `size`, as in \
                 size = [\"points=64:cycles=4\"]",
            ));
        }
    };
    let mut number = |name: &str, usual| match knobs.take_number(name).map_err(Failure::usage)? {
        Some(0) => Err(Failure::usage(format!(
            "`{name}=0` is too few: write {name}=4"
        ))),
        number => Ok(number.unwrap_or(usual)),
    };
    let (ranks, runs) = (number("ranks", 4)?, number("runs", 1)?);
    let mut asked = KernelRequest::read(&kernel, &size, ranks as usize)?;
    if let Some(age) = knobs.remove("age") {
        asked = asked.aged(&age)?;
    }
    match asked.too_long(runs) {
        Some(why) => Err(Failure::usage(why)),
        None => Ok((asked, runs)),
    }
}

/// What the host with the least memory has available, and how many of so many ranks a host has.
pub fn room(fleet: &Fleet, ranks: usize, spread: Option<usize>) -> Option<(u64, usize)> {
    let alive = |host: &usize| fleet.alive(*host);
    let alive: Vec<usize> = (0..fleet.hosts().len()).filter(alive).collect();
    let hosts: Vec<&HostRecord> = alive.iter().map(|host| &fleet.hosts()[*host]).collect();
    let available = |host: &&HostRecord| {
        let facts = &host.facts;
        facts.memory_available_bytes.or(facts.memory_bytes)
    };
    let least = hosts.iter().filter_map(available).min()?;
    let count = match fleet.is_one_machine() {
        true => 1,
        false => spread.unwrap_or(hosts.len()).clamp(1, hosts.len()),
    };
    Some((least, ranks.div_ceil(count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kernel: &str, size: &str, ranks: usize) -> KernelRequest {
        KernelRequest::read(kernel, size, ranks).unwrap()
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let ft = asked("ft", "C", 4);
        let words = ft.too_large(1 << 30, 4).unwrap();
        for part in [
            "ft C on 4",
            "4 ranks on one host",
            "1024 MiB",
            "class A fits",
        ] {
            assert!(words.contains(part), "{words}");
        }
        assert_eq!(ft.too_large(u64::MAX, 4), None);
        let words = asked("ep", "S", 4).too_large(1 << 20, 4).unwrap();
        assert!(words.contains("fewer ranks"), "{words}");
        let words = asked("cg", "S", 3).refused().unwrap();
        assert!(
            words.contains("cg S on 3") && words.contains("take"),
            "{words}"
        );
        assert_eq!(asked("lu", "S", 6).refused(), None);
    }

    fn limit_ns(job: &Job) -> u64 {
        job.duration_max().as_nanos() as u64
    }

    #[test]
    fn guesses_go_by_operations() {
        let of = |size, cpus| asked("lu", size, 4).estimate_ns(cpus);
        assert!(of("A", 1) > of("W", 1) && of("W", 1) > of("S", 1));
        assert!(of("A", 4) < of("A", 2) && of("A", 8) == of("A", 4));
        let job = asked("lu", "C", 1).job(100, Wait::Block, None);
        assert_eq!(limit_ns(&job), HOUR_NS);
        assert!(job.timeout_ns >= TIMEOUT_NS);
        job.check().unwrap();
        let short = asked("is", "S", 2).job(1, Wait::Poll, Some(Span::secs(5)));
        assert_eq!(limit_ns(&short), 5 * SECOND_NS);
    }

    #[test]
    fn ages_are_read() {
        let cg = |age: &str| asked("cg", "upc", 4).aged(age);
        assert_eq!(cg("1").unwrap(), asked("cg", "upc", 4));
        let age = |text: &str| cg(text).unwrap().age().unwrap();
        assert_eq!(age("120.5"), Age::Factor(Ratio::new(241, 2)));
        assert_eq!(age("16.66s"), Age::Recorded(16_660_000_000));
        // As the study's Table 2 prints it.
        assert_eq!(age("upc"), age("16.66s"));
        assert_eq!(cg("upc").unwrap().name(), "cg upc on 4 aged upc");
        for text in [
            "0",
            "0.5",
            "1000000000",
            "1e9",
            "-3",
            "NaN",
            "0s",
            "",
            "inf",
        ] {
            let error = cg(text).unwrap_err().to_string();
            assert!(
                error.contains("1 to 1000000") || error.contains("no study"),
                "{error}"
            );
        }
        let error = asked("cg", "A", 4).aged("upc").unwrap_err().to_string();
        assert!(
            error.contains("cg A") && error.contains("upc, S"),
            "{error}"
        );
        // A part of what one rank alone would take, and the timeout of those who wait for it.
        let plain = asked("cg", "upc", 4).estimate_ns(2);
        let guess = cg("upc").unwrap().estimate_ns(2);
        assert!(
            (4 * SECOND_NS..8 * SECOND_NS).contains(&(guess - plain)),
            "{guess}"
        );
        let job = cg("upc").unwrap().job(10, Wait::Block, None);
        assert!(job.timeout_ns >= guess && limit_ns(&job) >= 10 * guess);
        job.check().unwrap();
        let words = asked("lu", "A", 4)
            .aged("100000")
            .unwrap()
            .too_long(1)
            .unwrap();
        assert!(
            words.contains("lu A on 4") && words.contains("an hour"),
            "{words}"
        );
        assert_eq!(asked("lu", "C", 1).too_long(1_000), None);
        // Alone one rank has all of it.
        let bytes = |asked: KernelRequest| asked.bytes(1);
        let ft = || asked("ft", "A", 4);
        assert!(bytes(ft().aged("600s").unwrap()) > 2 * bytes(ft()));
    }

    #[test]
    fn the_main_job_has_a_kernel_and_its_reference() {
        assert_eq!(assessed(Kind::Lab, Effort::Quick), []);
        for (kind, effort) in [
            (Kind::Lab, Effort::Usual),
            (Kind::Hosts, Effort::Usual),
            (Kind::Local, Effort::Thorough),
        ] {
            let probes = assessed(kind, effort);
            let [own, reference] = &probes[..] else {
                panic!("{probes:?}")
            };
            assert!(!own.path.is_empty() && !own.floor);
            // Ranks that share memory are of one machine; real hosts have one rank alone.
            let is_here = kind != Kind::Hosts;
            assert_eq!(reference.floor, is_here);
            assert_eq!(reference.knobs["ranks"], [if is_here { "4" } else { "1" }]);
            assert_eq!(reference.knobs["kernel"], own.knobs["kernel"]);
            for name in &own.knobs["kernel"] {
                let kernel = asked(name, &own.knobs["class"][0], 4);
                assert_eq!(kernel.refused(), None);
            }
        }
    }

    #[test]
    fn knobs_name_a_kernel() {
        let knobs = |pairs: &[(&str, &str)]| -> KnobValues {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect()
        };
        let mut all = knobs(&[("kernel", "mg"), ("class", "S"), ("ranks", "8"), ("x", "y")]);
        let (mg, runs) = take(&mut all).unwrap();
        assert_eq!((mg, runs), (asked("mg", "S", 8), 1));
        assert_eq!(all.len(), 1);
        let mut aged = knobs(&[("kernel", "mg"), ("size", "upc"), ("age", "upc")]);
        let age = take(&mut aged).unwrap().0.age();
        assert_eq!((age, aged.len()), (Some(Age::Recorded(19_550_000_000)), 0));
        for (pairs, said) in [
            (&[("class", "S")][..], "needs `kernel`"),
            (&[("kernel", "mg")], "either `class`"),
            (
                &[("kernel", "mg"), ("class", "S"), ("size", "upc")],
                "either `class`",
            ),
            (&[("kernel", "mg"), ("class", "D")], "parameters alone"),
            (
                &[("kernel", "mg"), ("class", "S"), ("ranks", "0")],
                "`ranks=0` is too few",
            ),
            (
                &[("kernel", "mg"), ("class", "S"), ("age", "old")],
                "no study `old`",
            ),
        ] {
            let error = take(&mut knobs(pairs)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
