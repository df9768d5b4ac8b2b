//! The timed part of each kernel of class S, alone and on two ranks of this process.
//!
//! Run: `cargo bench -p sonde-workload --bench kernels`, or with `alone/cg` behind `--`. Setup and verification are not in it.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use sonde_message::Comm;
use sonde_message::collectives::{Choice, Communicator};
use sonde_message::native::Memory;
use sonde_workload::npb::{Class, Kernel, Problem};

/// The longest rank's time.
fn timed(problem: &Problem, ranks: usize) -> Duration {
    let outcomes = Memory::run(ranks, |messenger| {
        let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
        problem.run(&mut world).expect("a run")
    });
    for outcome in &outcomes {
        assert_ne!(outcome.passes(), Some(false), "{outcome:?}");
    }
    let longest = outcomes.iter().map(|outcome| outcome.timed_ns).max();
    Duration::from_nanos(longest.expect("a rank"))
}

fn kernels(c: &mut Criterion) {
    for (name, ranks) in [("alone", 1), ("two", 2)] {
        let mut group = c.benchmark_group(name);
        group.sample_size(10);
        for kernel in Kernel::ALL {
            let problem = Problem::of(kernel, Class::S).expect("it is there");
            if problem.admits(ranks).is_err() {
                continue;
            }
            group.bench_function(kernel.name(), |b| {
                b.iter_custom(|times| (0..times).map(|_| timed(&problem, ranks)).sum());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
