//! A kernel as plans and the command ask for it: its words read, what cannot be refused, how long it takes about.
//!
//! Model:   a kernel and its size are the workload's; how many ranks it admits is said there, and what they keep in arrays. Ranks
//!          that go round hosts take the memory of each; hosts of a lab are one machine. Guesses go by rates of one rank of the
//!          reference program, divided among ranks and CPUs; nothing measured depends on them.
//! Source:  rates of NPB 3.4.3, class A, one rank on a server of 2023; rounded.
//! Units:   nanoseconds, bytes, millions of operations a second.
//! Checked: `what_does_not_fit_is_refused`, `guesses_go_by_operations`; `tests/lab_npb.rs`.

use crate::failure::Failure;
use sonde_channel::Wait;
use sonde_fleet::Fleet;
use sonde_probe::Probe;
use sonde_probe::library::npb::Kernel as Told;
use sonde_probe::library::{Job, Task};
use sonde_record::HostRecord;
use sonde_units::Span;
use sonde_workload::npb::{Class, Kernel, Problem};
use std::collections::BTreeMap;

const SECOND_NS: u64 = 1_000_000_000;
/// A launch may take so long at least, and so many times the guess; never more than an hour.
const LIMIT_NS: u64 = 600 * SECOND_NS;
const LIMIT_FACTOR: u64 = 20;
/// Ranks may wait so long at least for one that computes.
const PATIENCE_NS: u64 = 60 * SECOND_NS;
const PATIENCE_FACTOR: u64 = 4;
const HOUR_NS: u64 = 3_600 * SECOND_NS;
/// Setup, the untimed pass and verification: a part of the timed one, and something of its own.
const BESIDE_NS: u64 = 30_000_000;
/// What a rank takes beside its arrays: the program, a library's buffers.
const RANK_BYTES: u64 = 32 << 20;
/// Arrays are at most so many tenths larger than counted.
const ARRAYS_TENTHS: u64 = 11;

/// A kernel of a size among ranks, with its words.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What is computed.
    pub problem: Problem,
    /// The size as it was asked for.
    pub size: String,
    /// Among how many.
    pub ranks: usize,
}

impl Asked {
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
        })
    }

    /// In words: `cg S on 4`.
    pub fn name(&self) -> String {
        let kernel = self.problem.kernel();
        format!("{kernel} {} on {}", self.size, self.ranks)
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
        (arrays / 10 * ARRAYS_TENTHS + RANK_BYTES).saturating_mul(here as u64)
    }

    /// A guess at a run with setup and verification, on so many CPUs.
    pub fn estimate_ns(&self, cpus: usize) -> u64 {
        let rate = pace(self.problem.kernel()) * self.ranks.min(cpus.max(1)) as f64;
        let timed_ns = self.problem.operations() / rate * 1e3;
        (timed_ns * 1.4) as u64 + BESIDE_NS
    }

    /// What all ranks do. `limit` is what a launch may take, without it many times the guess.
    pub fn job(&self, runs: u64, wait: Wait, limit: Option<Span>) -> Job {
        let task = Task::Npb {
            kernel: self.problem.kernel().name().into(),
            size: self.size.clone(),
            runs,
        };
        let mut job = Job::new(task, Probe::Message, wait);
        // Ranks of a lab may share one CPU.
        let guess_ns = self.estimate_ns(1);
        let all_ns = guess_ns.saturating_mul(runs);
        let usual_ns = all_ns.saturating_mul(LIMIT_FACTOR).max(LIMIT_NS);
        job.terms.budget_ns = limit.map_or(usual_ns, Span::as_nanos).min(HOUR_NS);
        let patience_ns = guess_ns.saturating_mul(PATIENCE_FACTOR).max(PATIENCE_NS);
        job.terms.patience_ns = patience_ns.min(HOUR_NS);
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

/// Takes a kernel's words out of the knobs of a plan: `kernel`, `class` or `size`, `ranks`, and how many `runs` a launch makes.
///
/// # Errors
/// One is missing, or names nothing.
pub fn take(knobs: &mut BTreeMap<String, String>) -> Result<(Asked, u64), Failure> {
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
    let mut number =
        |name: &str, usual: u64| match knobs.remove(name) {
            None => Ok(usual),
            Some(text) => text.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
                Failure::usage(format!("`{name}={text}` is no number: write {name}=4"))
            }),
        };
    let (ranks, runs) = (number("ranks", 4)?, number("runs", 1)?);
    Ok((Asked::read(&kernel, &size, ranks as usize)?, runs))
}

/// Why these hosts have no room for it; ranks go round the first `spread` of them, all where none.
pub fn lacks_room(asked: &Asked, fleet: &Fleet, spread: Option<usize>) -> Option<String> {
    let (available, here) = room(fleet, asked.ranks, spread)?;
    asked.too_large(available, here)
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

/// Why a launch with these settings is worth nothing: a result is not the official one.
pub fn unverified(settings: &BTreeMap<String, String>) -> Option<String> {
    match Told::of(settings) {
        Ok(told) => told?.unverified(),
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kernel: &str, size: &str, ranks: usize) -> Asked {
        Asked::read(kernel, size, ranks).unwrap()
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

    #[test]
    fn guesses_go_by_operations() {
        let of = |size, cpus| asked("lu", size, 4).estimate_ns(cpus);
        assert!(of("A", 1) > of("W", 1) && of("W", 1) > of("S", 1));
        assert!(of("A", 4) < of("A", 2) && of("A", 8) == of("A", 4));
        let job = asked("lu", "C", 1).job(100, Wait::Block, None);
        assert_eq!(job.terms.budget_ns, HOUR_NS);
        assert!(job.terms.patience_ns >= PATIENCE_NS);
        job.check().unwrap();
        let short = asked("is", "S", 2).job(1, Wait::Poll, Some(Span::secs(5)));
        assert_eq!(short.terms.budget_ns, 5 * SECOND_NS);
    }

    #[test]
    fn knobs_name_a_kernel() {
        let knobs = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect()
        };
        let mut all = knobs(&[("kernel", "mg"), ("class", "S"), ("ranks", "8"), ("x", "y")]);
        let (mg, runs) = take(&mut all).unwrap();
        assert_eq!((mg, runs), (asked("mg", "S", 8), 1));
        assert_eq!(all.len(), 1);
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
                "no number",
            ),
        ] {
            let error = take(&mut knobs(pairs)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
