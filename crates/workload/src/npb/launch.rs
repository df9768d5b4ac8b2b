//! A kernel run once among ranks and counted: what each had of it, brought to rank 0.
//!
//! Model:   every rank calls [`once`]. Its messenger is wrapped in the one that counts; what was counted of the timed part is
//!          told apart from setup and verification by the names of phases, and travels to rank 0 when the run is over. The time
//!          is that of the longest rank, of FT that of rank 0.
//! Source:  NPB 3.4.3 for whose time counts.
//! Units:   nanoseconds, bytes; millions of operations a second.
//! Checked: `ranks_tell_what_they_did`, `time_is_that_of_the_longest`.

use serde::{Deserialize, Serialize};
use sonde_message::collectives::{Choice, Communicator};
use sonde_message::counted::{Counted, Lengths, Profile};
use sonde_message::{Comm, Messenger};
use sonde_probe::Result;
use sonde_probe::library::npb::{Check as Told, Ended, Phase, Rank, Run, together};
use sonde_probe::library::{hear, tell};
use sonde_sys::memory;

use super::{Check, Kernel, Outcome, Problem};

/// Phases beside the timed part; so are those whose name begins with the first.
const BESIDE: [&str; 4] = ["setup", "check", "verification", "end"];

/// Whether a phase of this name is of the timed part.
pub fn is_timed(phase: &str) -> bool {
    !phase.starts_with(BESIDE[0]) && !BESIDE.contains(&phase)
}

/// What a rank tells rank 0.
#[derive(Serialize, Deserialize)]
struct Seen {
    rank: Rank,
    sent: Lengths,
}

/// Runs it once; all ranks call it. What all had of it, at rank 0.
///
/// # Errors
/// Those of the messenger.
///
/// # Panics
/// The problem does not admit so many ranks.
pub fn once(problem: &Problem, messenger: &mut dyn Messenger) -> Result<Option<Ended>> {
    let before = memory::begin_most();
    let mut counted = Counted::new(&mut *messenger);
    let outcome = {
        let mut world = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
        problem.run(&mut world)?
    };
    let taken = before.and_then(|before| Some(memory::most()?.saturating_sub(before)));
    let own = Seen {
        rank: Rank {
            memory_bytes: taken,
            ..rank(outcome.timed_ns, &counted.profile(), &counted)
        },
        sent: counted.sent(is_timed),
    };
    if messenger.rank(Comm::WORLD) > 0 {
        tell(messenger, 0, &own)?;
        return Ok(None);
    }
    let mut all = vec![own];
    for other in 1..messenger.size(Comm::WORLD) {
        all.push(hear(messenger, other)?);
    }
    Ok(Some(ended(problem, &outcome, all)))
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
fn ended(problem: &Problem, outcome: &Outcome, all: Vec<Seen>) -> Ended {
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
    use sonde_message::native::Memory;

    fn launched(text: &str, kernel: &str, ranks: usize) -> Ended {
        let problem = Problem::named(kernel, text).unwrap();
        let mut all = Memory::run(ranks, |messenger| once(&problem, messenger).unwrap());
        assert!(all[1..].iter().all(Option::is_none));
        all.swap_remove(0).unwrap()
    }

    #[test]
    fn ranks_tell_what_they_did() {
        for kernel in Kernel::ALL {
            let Ended { run, ranks } = launched("S", kernel.name(), 4);
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
            let Ended { run, ranks } = launched(text, kernel, 2);
            let times = ranks.iter().map(|rank| rank.timed_ns);
            let wanted = match kernel {
                "ft" => ranks[0].timed_ns,
                _ => times.max().unwrap(),
            };
            assert_eq!(run.time_ns, wanted);
        }
        // One rank sends nothing.
        let Ended { run, ranks } = launched("S", "mg", 1);
        assert_eq!((run.sent.total.messages, ranks.len()), (0, 1));
        assert_eq!(run.sent.bytes_median, None);
    }
}
