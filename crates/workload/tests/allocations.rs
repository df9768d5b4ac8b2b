//! What kernels allocate in their timed part: nothing.
//!
//! Model:   one rank alone, over a messenger that has nobody to talk to and notes at each phase how often memory was asked for
//!          until then. What was asked for in the phases of the timed part counts. It is one test, so that no other allocates.
//! Units:   calls of the allocator.

use std::alloc::System;

use sonde_message::collectives::{Choice, Communicator};
use sonde_message::{
    Call, Capabilities, Comm, Completion, Error, Messenger, Op, Operation, Request, Result, Source,
    Status, Tag, Tagged,
};
use sonde_workload::npb::launch::is_timed;
use sonde_workload::npb::{Class, Kernel, Problem};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Phases that can be noted without asking for memory.
const PHASES_MAX: usize = 1 << 16;

fn asked() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

/// One rank that is alone.
struct Alone {
    /// Whether a phase is timed, and how often memory had been asked for when it began.
    phases: Vec<(bool, usize)>,
}

impl Alone {
    fn new() -> Self {
        Self {
            phases: Vec::with_capacity(PHASES_MAX),
        }
    }

    /// How often memory was asked for in timed phases, and how many these are.
    fn asked_while_timed(&self) -> (usize, usize) {
        let pairs = self.phases.windows(2).filter(|two| two[0].0);
        pairs.fold((0, 0), |(asked, count), two| {
            (asked + two[1].1 - two[0].1, count + 1)
        })
    }
}

impl Messenger for Alone {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn rank(&self, _: Comm) -> usize {
        0
    }

    fn size(&self, _: Comm) -> usize {
        1
    }

    fn send(&mut self, _: Comm, _: usize, _: Tag, _: &[u8]) -> Result<()> {
        unreachable!("there is nobody")
    }

    fn recv(&mut self, _: Comm, _: Source, _: Tagged, _: &mut [u8]) -> Result<Status> {
        unreachable!("there is nobody")
    }

    fn exchange(&mut self, _: Comm, ops: &mut [Op<'_>], _: &mut [Status]) -> Result<()> {
        assert!(ops.is_empty(), "there is nobody");
        Ok(())
    }

    fn isend(&mut self, _: Comm, _: usize, _: Tag, _: Vec<u8>) -> Result<Request> {
        unreachable!("there is nobody")
    }

    fn irecv(&mut self, _: Comm, _: Source, _: Tagged, _: Vec<u8>) -> Result<Request> {
        unreachable!("there is nobody")
    }

    fn test(&mut self, _: Request) -> Result<std::result::Result<Completion, Request>> {
        unreachable!("there is nobody")
    }

    fn wait(&mut self, _: Request) -> Result<Completion> {
        unreachable!("there is nobody")
    }

    fn iprobe(&mut self, _: Comm, _: Source, _: Tagged) -> Result<Option<Status>> {
        Ok(None)
    }

    fn split(&mut self, _: Comm, colour: Option<u32>, _: i32) -> Result<Option<Comm>> {
        Ok(colour.map(|_| Comm::WORLD))
    }

    fn collective(&mut self, _: Comm, _: &mut Call<'_>) -> Result<bool> {
        Ok(false)
    }

    fn progress(&mut self) -> Result<()> {
        Ok(())
    }

    fn phase(&mut self, name: &str) {
        self.phases.push((is_timed(name), asked()));
    }

    fn facts(&self) -> Result<sonde_measure::Library> {
        Ok(sonde_measure::Library::default())
    }

    fn abort(&mut self, why: &str) {
        panic!("{why}");
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn nothing_is_allocated_in_the_timed_part() {
    // The thread that started this one asks for memory for a moment longer.
    let mut settled = None;
    while settled != Some(asked()) {
        settled = Some(asked());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // What is counted is seen.
    let before = asked();
    drop(std::hint::black_box(Box::new(before)));
    assert_ne!(asked(), before, "the allocator counts nothing");
    let mut wrong = Vec::new();
    for kernel in Kernel::ALL {
        let problem = Problem::of(kernel, Class::S).expect("it is there");
        let mut alone = Alone::new();
        let outcome: std::result::Result<_, Error> = {
            let mut world = Communicator::new(&mut alone, Comm::WORLD, Choice::default());
            // A group gets its scratch memory with its first reduction and keeps it: no kernel's own.
            let mut sum = [0.0; 16];
            let summed = world.allreduce(&[1.0; 16], &mut sum, Operation::Sum);
            summed.and_then(|_| problem.run(&mut world))
        };
        let outcome = outcome.expect("a run");
        assert_eq!(outcome.passes(), Some(true), "{kernel}: {outcome:?}");
        let (asked, phases) = alone.asked_while_timed();
        assert!(alone.phases.len() < PHASES_MAX, "{kernel}: too many phases");
        let last = alone.phases.last().expect("a phase");
        assert!(!last.0, "{kernel}: no phase ends the timed part");
        println!("{kernel}: {asked} in {phases} timed phases");
        if asked > 0 || phases == 0 {
            wrong.push(format!("{kernel}: {asked} in {phases} timed phases"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
