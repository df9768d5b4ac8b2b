//! One kernel among ranks of this process.
//!
//! Model:   `npb KERNEL CLASS RANKS [RUNS] [messages]`: the ranks are threads over the in-process engine. Each run's time and
//!          rate, the best of them, and the results against the official values; with `messages` what rank 0 sent.

use std::process::ExitCode;

use sonde_message::Comm;
use sonde_message::collectives::{Choice, Communicator};
use sonde_message::counted::{Counted, Profile};
use sonde_message::native::Memory;
use sonde_workload::npb::{Class, Kernel, Outcome, Problem};

const USAGE: &str = "npb KERNEL CLASS RANKS [RUNS] [messages]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<bool, Box<dyn std::error::Error>> {
    let counts = words.iter().any(|word| word == "messages");
    let words: Vec<&String> = words.iter().filter(|word| *word != "messages").collect();
    let (kernel, class, ranks, runs) = match words.as_slice() {
        [kernel, class, ranks] => (kernel, class, ranks, 1),
        [kernel, class, ranks, runs] => (kernel, class, ranks, runs.parse()?),
        _ => return Err(USAGE.into()),
    };
    let (kernel, class, ranks): (Kernel, Class, usize) =
        (kernel.parse()?, class.parse()?, ranks.parse()?);
    let problem = Problem::of(kernel, class).ok_or("there is no such kernel yet")?;
    problem.admits(ranks)?;
    let bytes = problem.memory_bytes(ranks);
    println!("{kernel} {class}, {ranks} ranks, {bytes} B each");
    let (mut best, mut passes) = (f64::INFINITY, true);
    for _ in 0..runs {
        let ended = Memory::run(ranks, |messenger| -> sonde_message::Result<_> {
            if !counts {
                return Ok((once(&problem, messenger)?, None));
            }
            let mut counted = Counted::new(messenger);
            let outcome = once(&problem, &mut counted)?;
            Ok((outcome, Some(counted.profile())))
        });
        let ended: Vec<(Outcome, Option<Profile>)> = ended.into_iter().collect::<Result<_, _>>()?;
        let longest = ended.iter().map(|(outcome, _)| outcome.timed_ns).max();
        let seconds = longest.unwrap_or_default() as f64 * 1e-9;
        let rate = problem.operations() / seconds * 1e-6;
        println!("{seconds:.6} s {rate:.1} Mop/s");
        best = best.min(seconds);
        let (outcome, profile) = &ended[0];
        passes &= outcome.passes().unwrap_or(true);
        print(outcome);
        profile.iter().for_each(messages);
    }
    let rate = problem.operations() / best * 1e-6;
    println!("best {best:.6} s {rate:.1} Mop/s passes {passes}");
    Ok(passes)
}

fn once<M: sonde_message::Messenger>(
    problem: &Problem,
    messenger: &mut M,
) -> sonde_message::Result<Outcome> {
    let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
    problem.run(&mut world)
}

fn print(outcome: &Outcome) {
    for check in &outcome.checks {
        let (name, found) = (&check.name, check.found);
        match (check.wanted, check.error(), check.passes()) {
            (Some(wanted), Some(error), Some(passes)) => {
                let word = if passes { "passes" } else { "FAILS" };
                println!("  {name:<20} {found:.15e} {wanted:.15e} error {error:.1e} {word}");
            }
            _ => println!("  {name:<20} {found:.15e} no value is known"),
        }
    }
}

fn messages(profile: &Profile) {
    for phase in &profile.phases {
        let [wall, computing] = [phase.wall_ns, phase.computing_ns].map(|ns| ns as f64 * 1e-9);
        println!(
            "  phase {}: {wall:.6} s, computing {computing:.6} s, sent {:?}",
            phase.name, phase.sent.total
        );
        for power in &phase.sent.powers {
            println!("    from {} B: {}", power.from_bytes, power.messages);
        }
    }
}
