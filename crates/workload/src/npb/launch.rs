//! A kernel run among ranks and counted: what each had of it, brought to rank 0.
//!
//! Model:   every rank calls [`Launch::once`]. Its messenger is wrapped in the one that counts; what was counted of the timed part is
//!          told apart from setup and verification by the names of phases, and travels to rank 0 when the run is over. The time
//!          is that of the longest rank, of FT that of rank 0. Where it is asked for, around that stands what writes down each
//!          call, and outermost what lets the rank compute as slowly as a host of another age; else neither is there. The
//!          factor is the recorded time of a sequential run over the CPU time that the timed part takes here of all ranks
//!          together, held as they will be: the ranks share what one rank computed there. What one rank takes alone here
//!          (the least of up to three runs, at rank 0) must be less than what was recorded.
//! Source:  NPB 3.4.3 for whose time counts.
//! Units:   nanoseconds, bytes; millions of operations a second.
//! Checked: `ranks_tell_what_they_did`, `time_is_that_of_the_longest`, `an_aged_kernel_takes_its_factor`,
//!          `a_recorded_time_comes_back`, `a_trace_has_what_was_counted`.

use serde::{Deserialize, Serialize};
use sonde_measure::{npb::Aging, npb::Check as Told, npb::Phase, npb::Rank, npb::Run};
use sonde_message::aged::{self, Aged};
use sonde_message::collectives::{Choice, Communicator};
use sonde_message::counted::{Counted, Lengths, Profile};
use sonde_message::native::Memory;
use sonde_message::timeline::{Clocks, Recording, Timeline, Trace};
use sonde_message::{Comm, Messenger};
use sonde_probe::library::npb::{Age, Ended, TRACE_BYTES_MAX, together};
use sonde_probe::library::{hear, tell};
use sonde_probe::{Error, Result};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::memory;
use sonde_units::Ratio;

use super::{Check, Kernel, Outcome, Problem};

/// Phases beside the timed part; so are those whose name begins with the first.
const BESIDE: [&str; 4] = ["setup", "check", "verification", "end"];
/// Sequential runs that say what one takes here, unless they take longer than this together.
const OWN_RUNS: u32 = 3;
const OWN_NS: u64 = 2_000_000_000;

/// Whether a phase of this name is of the timed part.
pub fn is_timed(phase: &str) -> bool {
    !phase.starts_with(BESIDE[0]) && !BESIDE.contains(&phase)
}

/// What a rank tells rank 0.
#[derive(Serialize, Deserialize)]
struct RankReport {
    rank: Rank,
    sent: Lengths,
}

/// A kernel with what stands around it, run after run.
#[derive(Debug, Clone)]
pub struct Launch {
    problem: Problem,
    age: Option<Age>,
    /// Events of this rank that there is room for.
    events: Option<usize>,
    /// What all ranks compute by, once it is known.
    known: Option<(Ratio, Aging)>,
    /// When the span of its job is over, by rank 0's clock.
    end_ns: Option<u64>,
}

/// What stands around the counting messenger.
struct Around {
    factor: Option<Ratio>,
    events: Option<usize>,
}

impl Launch {
    /// A kernel on hosts of this age, of which so many events a rank are written down in a last run.
    pub const fn new(problem: Problem, age: Option<Age>, events: Option<u64>) -> Self {
        Self {
            problem,
            age,
            events: match events {
                Some(events) => Some(events as usize),
                None => None,
            },
            known: None,
            end_ns: None,
        }
    }

    /// The same with runs of a span that is over at this time of rank 0's clock.
    #[must_use]
    pub const fn until(self, end_ns: Option<u64>) -> Self {
        Self { end_ns, ..self }
    }

    /// Runs it once; all ranks call it. What all had of it, at rank 0.
    ///
    /// # Errors
    /// Those of the messenger; the hosts of another age would be faster than this one.
    ///
    /// # Panics
    /// The problem does not admit so many ranks.
    pub fn once(&mut self, messenger: &mut dyn Messenger, is_last: bool) -> Result<Option<Ended>> {
        if let (Some(age), None) = (self.age, self.known) {
            self.known = Some(aging(&self.problem, age, messenger)?);
        }
        let around = Around {
            factor: self.known.map(|known| known.0),
            events: self.events.filter(|_| is_last),
        };
        let before = match around.events {
            Some(_) => Some(Clocks::read(messenger)?),
            None => None,
        };
        let free = memory::begin_most();
        let is_first = messenger.rank(Comm::WORLD) == 0;
        let mut counted = Counted::new(&mut *messenger);
        if let Some(end_ns) = self.end_ns.filter(|_| is_first) {
            counted.count_within(end_ns.saturating_sub(monotonic_ns()));
        }
        let (outcome, recording) = around.run(&self.problem, &mut counted)?;
        let part = counted.part_within();
        let taken = free.and_then(|free| Some(memory::most()?.saturating_sub(free)));
        let own = RankReport {
            rank: Rank {
                memory_bytes: taken,
                ..rank(outcome.timed_ns, &counted.profile(), &counted)
            },
            sent: counted.sent(is_timed),
        };
        let trace = match recording {
            Some(recording) => Trace::gather(messenger, recording, before.as_ref())?,
            None => None,
        };
        if messenger.rank(Comm::WORLD) > 0 {
            tell(messenger, 0, &own)?;
            return Ok(None);
        }
        let mut all = vec![own];
        for other in 1..messenger.size(Comm::WORLD) {
            all.push(hear(messenger, other)?);
        }
        let mut ended = ended(&self.problem, &outcome, all);
        ended.age = self.known.map(|known| known.1);
        ended.part = part;
        ended.trace = trace.map(|trace| trace.packed(TRACE_BYTES_MAX));
        Ok(Some(ended))
    }
}

/// Runs it once on hosts of today; all ranks call it. What all had of it, at rank 0.
///
/// # Errors
/// Those of [`Launch::once`].
///
/// # Panics
/// Those of [`Launch::once`].
pub fn once(problem: &Problem, messenger: &mut dyn Messenger) -> Result<Option<Ended>> {
    Launch::new(*problem, None, None).once(messenger, true)
}

impl Around {
    fn run<M: Messenger>(
        &self,
        problem: &Problem,
        counted: &mut Counted<M>,
    ) -> Result<(Outcome, Option<Recording>)> {
        let Some(events) = self.events else {
            let outcome = match self.factor {
                // Nothing stands around it: the kernel knows what it calls.
                None => run(problem, counted)?,
                Some(factor) => run_watched(problem, &mut Aged::new(counted, factor)?)?,
            };
            return Ok((outcome, None));
        };
        let mut timeline = Timeline::new(counted, events);
        let outcome = match self.factor {
            None => run_watched(problem, &mut timeline)?,
            Some(factor) => run_watched(problem, &mut Aged::new(&mut timeline, factor)?)?,
        };
        Ok((outcome, Some(timeline.end().0)))
    }
}

/// By whatever it is: kernels are compiled once for all that watches.
fn run_watched(problem: &Problem, messenger: &mut dyn Messenger) -> Result<Outcome> {
    run(problem, messenger)
}

fn run<M: Messenger + ?Sized>(problem: &Problem, messenger: &mut M) -> Result<Outcome> {
    let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
    Ok(problem.run(&mut world)?)
}

/// By what all ranks compute longer: rank 0 finds it out and tells the others.
fn aging(problem: &Problem, age: Age, messenger: &mut dyn Messenger) -> Result<(Ratio, Aging)> {
    let told = |factor: Ratio, recorded_ns, own_ns| {
        let (numerator, denominator) = factor.parts();
        let factor = numerator as f64 / denominator as f64;
        Aging {
            factor,
            recorded_ns,
            own_ns,
        }
    };
    let recorded_ns = match age {
        Age::Factor(factor) => return Ok((factor, told(factor, None, None))),
        Age::Recorded(recorded_ns) => recorded_ns,
    };
    let own_ns = if messenger.rank(Comm::WORLD) == 0 {
        let own_ns = own_ns(problem)?;
        for other in 1..messenger.size(Comm::WORLD) {
            tell(messenger, other, &own_ns)?;
        }
        own_ns
    } else {
        hear(messenger, 0)?
    };
    if recorded_ns < own_ns {
        let seconds = |ns: u64| ns as f64 * 1e-9;
        return Err(Error::Unmeasurable {
            what: format!(
                "{} takes {:.4} s of one rank alone here, longer than the recorded {:.4} s: a program cannot be made faster than \
                 this machine",
                problem.kernel(),
                seconds(own_ns),
                seconds(recorded_ns)
            ),
            remedy: "give the time of the same size on a slower host",
        });
    }
    // Never beyond what was recorded: that would be no factor.
    let own_ns = together_ns(problem, recorded_ns, own_ns, messenger)?.min(recorded_ns);
    let factor = aged::factor(recorded_ns, own_ns)?;
    Ok((factor, told(factor, Some(recorded_ns), Some(own_ns))))
}

/// What the timed part takes of all ranks together, as CPU time, while they are held by as much of the factor as there is time for; all
/// ranks know it. It is more than one rank takes alone: a rank that sleeps between its calls, or shares its CPU, finds its caches
/// cold, and a factor of thousands would make seconds of that, which no old host had.
fn together_ns(
    problem: &Problem,
    recorded_ns: u64,
    own_ns: u64,
    messenger: &mut dyn Messenger,
) -> Result<u64> {
    let ranks = messenger.size(Comm::WORLD) as u64;
    let free_ns = worked_ns(problem, Ratio::ONE, messenger)?.max(1);
    let part_ns = (free_ns / ranks).max(1);
    let factor = aged::factor(recorded_ns, own_ns)?;
    let possible = Ratio::new(OWN_NS.max(part_ns), part_ns);
    Ok(worked_ns(problem, factor.min(possible), messenger)?.max(1))
}

/// What the timed part takes of all ranks together when they are held by a factor, as CPU time. All ranks call it, and know it.
fn worked_ns(problem: &Problem, factor: Ratio, messenger: &mut dyn Messenger) -> Result<u64> {
    let mut held = Aged::new(&mut *messenger, factor)?;
    run_watched(problem, &mut held)?;
    let own_ns = held.timed().computed_ns;
    let ranks = messenger.size(Comm::WORLD);
    if messenger.rank(Comm::WORLD) > 0 {
        tell(messenger, 0, &own_ns)?;
        return hear(messenger, 0);
    }
    let mut all_ns = own_ns;
    for other in 1..ranks {
        all_ns += hear::<u64>(messenger, other)?;
    }
    for other in 1..ranks {
        tell(messenger, other, &all_ns)?;
    }
    Ok(all_ns)
}

/// What the timed part takes of one rank alone: CPU time, the least of some runs.
///
/// # Errors
/// Those of the messenger, which has nobody to wait for.
pub fn own_ns(problem: &Problem) -> Result<u64> {
    let (begin_ns, mut least_ns) = (monotonic_ns(), u64::MAX);
    for _ in 0..OWN_RUNS {
        let mut alone = Aged::new(Memory::all(1).remove(0), Ratio::ONE)?;
        run_watched(problem, &mut alone)?;
        least_ns = least_ns.min(alone.timed().computed_ns);
        if monotonic_ns() - begin_ns > OWN_NS {
            break;
        }
    }
    Ok(least_ns)
}

/// What this rank did.
fn rank<M: Messenger>(timed_ns: u64, profile: &Profile, counted: &Counted<M>) -> Rank {
    let mut to = vec![[0, 0]; profile.ranks];
    let timed = profile.phases.iter().filter(|phase| is_timed(&phase.name));
    for flow in timed
        .flat_map(|phase| &phase.flows)
        .filter(|flow| flow.sent)
    {
        to[flow.rank][0] += flow.total.bytes;
        to[flow.rank][1] += flow.total.messages;
    }
    let phases = profile.phases.iter().map(|phase| Phase {
        name: phase.name.clone(),
        timed: is_timed(&phase.name),
        computing_ns: phase.computing_ns,
        held_ns: phase.busy_ns,
        communicating_ns: phase.wall_ns - phase.computing_ns,
        sent: phase.sent.clone(),
        collectives: phase.collectives.clone(),
    });
    Rank {
        timed_ns,
        clock: profile.clock.clone(),
        memory_bytes: None,
        phases: phases.collect(),
        sent: counted.sent(is_timed).row(),
        bytes_to: to.iter().map(|to| to[0]).collect(),
        messages_to: to.iter().map(|to| to[1]).collect(),
    }
}

/// All ranks together; `outcome` is rank 0's.
fn ended(problem: &Problem, outcome: &Outcome, all: Vec<RankReport>) -> Ended {
    let time_ns = match problem.kernel() {
        Kernel::Ft => outcome.timed_ns,
        _ => {
            let times = all.iter().map(|seen| seen.rank.timed_ns);
            times.max().unwrap_or(outcome.timed_ns)
        }
    };
    let phases = || {
        let all = all.iter().flat_map(|seen| &seen.rank.phases);
        all.filter(|phase| phase.timed)
    };
    let run = Run {
        time_ns,
        mop_per_s: problem.operations() / time_ns.max(1) as f64 * 1e3,
        verified: outcome.passes(),
        checks: outcome.checks.iter().map(told).collect(),
        computing_ns: phases().map(|phase| phase.computing_ns).sum(),
        communicating_ns: phases().map(|phase| phase.communicating_ns).sum(),
        sent: together(all.iter().map(|seen| &seen.sent)),
    };
    Ended {
        run,
        ranks: all.into_iter().map(|seen| seen.rank).collect(),
        age: None,
        trace: None,
        part: None,
    }
}

fn told(check: &Check) -> Told {
    let finite = |value: f64| value.is_finite().then_some(value);
    Told {
        name: check.name.clone(),
        found: finite(check.found),
        wanted: check.wanted,
        error: check.error().and_then(finite),
        tolerance: check.tolerance,
        passes: check.passes(),
    }
}

/// The results of a run as the kernel gave them.
pub fn outcome(run: &Run) -> Outcome {
    let check = |told: &Told| Check {
        name: told.name.clone(),
        found: told.found.unwrap_or(f64::NAN),
        wanted: told.wanted,
        tolerance: told.tolerance,
    };
    Outcome {
        timed_ns: run.time_ns,
        checks: run.checks.iter().map(check).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_message::counted::Direction;
    use sonde_message::timeline::What;

    fn launched(text: &str, kernel: &str, ranks: usize) -> Ended {
        let problem = Problem::named(kernel, text).unwrap();
        let mut all = Memory::run(ranks, |messenger| once(&problem, messenger).unwrap());
        assert!(all[1..].iter().all(Option::is_none));
        all.swap_remove(0).unwrap()
    }

    #[test]
    fn ranks_tell_what_they_did() {
        for kernel in Kernel::ALL {
            let Ended { run, ranks, .. } = launched("S", kernel.name(), 4);
            assert_eq!((run.verified, ranks.len()), (Some(true), 4), "{kernel}");
            assert!(run.mop_per_s > 0.0 && run.communicating_ns > 0, "{kernel}");
            let sum = |of: fn(&Rank) -> u64| ranks.iter().map(of).sum::<u64>();
            assert_eq!(
                run.sent.total.messages,
                sum(|rank| rank.messages_to.iter().sum()),
                "{kernel}"
            );
            assert_eq!(
                run.sent.total.bytes,
                sum(|rank| rank.bytes_to.iter().sum()),
                "{kernel}"
            );
            for (rank, told) in ranks.iter().enumerate() {
                assert_eq!(told.bytes_to[rank], 0, "{kernel}");
                let timed = told.phases.iter().filter(|phase| phase.timed);
                let sent = timed.map(|phase| phase.sent.total.messages);
                assert_eq!(told.sent.total.messages, sent.sum::<u64>(), "{kernel}");
                // Setup and verification are not in it.
                assert!(told.phases.iter().any(|phase| !phase.timed), "{kernel}");
            }
            assert_eq!(outcome(&run).passes(), Some(true), "{kernel}");
        }
    }

    #[test]
    fn time_is_that_of_the_longest() {
        for (kernel, text) in [("cg", "S"), ("ft", "S"), ("ep", "pairs_log2=18")] {
            let Ended { run, ranks, .. } = launched(text, kernel, 2);
            let times = ranks.iter().map(|rank| rank.timed_ns);
            let wanted = match kernel {
                "ft" => ranks[0].timed_ns,
                _ => times.max().unwrap(),
            };
            assert_eq!(run.time_ns, wanted);
        }
        // One rank sends nothing.
        let Ended { run, ranks, .. } = launched("S", "mg", 1);
        assert_eq!((run.sent.total.messages, ranks.len()), (0, 1));
        assert_eq!(run.sent.bytes_median, None);
    }
    /// One rank alone, or several, on hosts of this age.
    fn aged(text: &str, kernel: &str, ranks: usize, age: Age) -> Result<Ended> {
        let problem = Problem::named(kernel, text).unwrap();
        let mut all = Memory::run(ranks, |messenger| {
            Launch::new(problem, Some(age), None).once(messenger, true)
        });
        all.swap_remove(0).map(Option::unwrap)
    }

    #[test]
    fn an_aged_kernel_takes_its_factor() {
        const FACTOR: u64 = 8;
        for kernel in Kernel::ALL {
            let text = match kernel {
                Kernel::Ep => "pairs_log2=18",
                _ => "S",
            };
            // What else runs can only add to it.
            let problem = Problem::named(kernel.name(), text).unwrap();
            let own = (0..5).map(|_| own_ns(&problem).unwrap()).min().unwrap();
            let age = Age::Factor(Ratio::new(FACTOR, 1));
            let Ended {
                run, ranks, age, ..
            } = aged(text, kernel.name(), 1, age).unwrap();
            assert_ne!(run.verified, Some(false), "{kernel}");
            let times = run.time_ns as f64 / (FACTOR * own) as f64;
            // Also what is computed behind the last call is paid before the clock is read; others may have the CPU meanwhile.
            assert!((0.7..6.0).contains(&times), "{kernel}: {times} of {own} ns");
            let held = ranks[0].phases.iter().filter(|phase| phase.timed);
            let held: u64 = held.map(|phase| phase.held_ns).sum();
            assert!(held > 0 && held < run.computing_ns, "{kernel}: {held}");
            let age = age.unwrap();
            assert_eq!((age.factor, age.own_ns), (8.0, None));
        }
    }

    #[test]
    fn a_recorded_time_comes_back() {
        const RECORDED_NS: u64 = 1_000_000_000;
        let Ended { run, age, .. } = aged("S", "cg", 1, Age::Recorded(RECORDED_NS)).unwrap();
        let times = run.time_ns as f64 / RECORDED_NS as f64;
        // Beside other programs its own time is longer than the least, and the factor as much smaller; a wrong one is some tens off.
        assert!((0.3..5.0).contains(&times), "{times}");
        let age = age.unwrap();
        let own_ns = age.own_ns.unwrap();
        assert_eq!(age.recorded_ns, Some(RECORDED_NS));
        assert!((age.factor * own_ns as f64 / RECORDED_NS as f64 - 1.0).abs() < 1e-9);
        // All ranks have the same factor, and what they computed together is as much.
        let Ended { run, ranks, .. } = aged("S", "cg", 4, Age::Recorded(RECORDED_NS)).unwrap();
        assert_eq!((run.verified, ranks.len()), (Some(true), 4));
        let times = run.computing_ns as f64 / RECORDED_NS as f64;
        assert!((0.2..4.0).contains(&times), "{times}");
        let error = aged("S", "cg", 1, Age::Recorded(1_000))
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot be made faster"), "{error}");
    }

    #[test]
    fn a_trace_has_what_was_counted() {
        let problem = Problem::named("cg", "S").unwrap();
        let mut all = Memory::run(4, |messenger| {
            let mut launch = Launch::new(problem, None, Some(15_000));
            let first = launch.once(messenger, false).unwrap();
            assert!(first.is_none_or(|ended| ended.trace.is_none()));
            launch.once(messenger, true).unwrap()
        });
        let Ended {
            run, ranks, trace, ..
        } = all.swap_remove(0).unwrap();
        let trace = Trace::unpacked(&trace.unwrap()).unwrap();
        assert_eq!(trace.ranks.len(), 4);
        let (mut sent, mut received) = (0, 0);
        for (told, counted) in trace.ranks.iter().zip(&ranks) {
            let recording = &told.recording;
            assert_eq!(recording.dropped, 0);
            let in_time = |phase: u32| is_timed(&recording.phases[phase as usize]);
            let timed = recording.events.iter().filter(|event| in_time(event.phase));
            let mut in_calls_ns = 0;
            for event in timed {
                sent += u64::from(event.way == Some(Direction::Sent));
                received += u64::from(event.way == Some(Direction::Received));
                if let What::Call(_) = event.what {
                    in_calls_ns += event.end_ns - event.begin_ns;
                }
            }
            let phases = counted.phases.iter().filter(|phase| phase.timed);
            let counted_ns: u64 = phases.map(|phase| phase.communicating_ns).sum();
            let times = in_calls_ns as f64 / counted_ns as f64;
            assert!((0.8..2.0).contains(&times), "{in_calls_ns} {counted_ns}");
        }
        assert_eq!((sent, received), (run.sent.total.messages, sent));
    }
}
