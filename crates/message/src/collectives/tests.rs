//! Every algorithm against the oracle, over ranks that are threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::native::Memory;
use crate::{Capabilities, Completion, Op, Request, Source, Status, Tag, Tagged, oracle};

/// A messenger whose sends end when their message was received, as those of large messages may: between ranks that rely on
/// more, nothing moves.
struct Unbuffered<'a> {
    inner: &'a mut Memory,
    /// Collectives that it says to have made.
    own: Vec<Kind>,
}

/// That a message was received.
const TAKEN: Tag = 60_000;

impl<'a> Unbuffered<'a> {
    fn new(inner: &'a mut Memory) -> Self {
        let own = Vec::new();
        Self { inner, own }
    }

    fn await_taken(&mut self, comm: Comm, by: usize) -> Result<()> {
        let tag = Tagged::With(TAKEN);
        self.inner.recv(comm, Source::Rank(by), tag, &mut [])?;
        Ok(())
    }
}

impl Messenger for Unbuffered<'_> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn rank(&self, comm: Comm) -> usize {
        self.inner.rank(comm)
    }
    fn size(&self, comm: Comm) -> usize {
        self.inner.size(comm)
    }
    fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        self.inner.send(comm, to, tag, payload)?;
        self.await_taken(comm, to)
    }
    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
        let status = self.inner.recv(comm, from, tag, room)?;
        self.inner.send(comm, status.from, TAKEN, &[])?;
        Ok(status)
    }
    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
        self.inner.exchange(comm, ops, statuses)?;
        for (op, status) in ops.iter().zip(statuses.iter()) {
            if let Op::Recv { .. } = op {
                self.inner.send(comm, status.from, TAKEN, &[])?;
            }
        }
        for op in ops.iter() {
            if let Op::Send { to, .. } = op {
                self.await_taken(comm, *to)?;
            }
        }
        Ok(())
    }
    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
        self.inner.isend(comm, to, tag, payload)
    }
    fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request> {
        self.inner.irecv(comm, from, tag, room)
    }
    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        self.inner.test(request)
    }
    fn wait(&mut self, request: Request) -> Result<Completion> {
        self.inner.wait(request)
    }
    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
        self.inner.iprobe(comm, from, tag)
    }
    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
        self.inner.split(comm, colour, key)
    }
    fn collective(&mut self, _: Comm, call: &mut Call<'_>) -> Result<bool> {
        Ok(self.own.contains(&call.kind()))
    }
    fn progress(&mut self) -> Result<()> {
        self.inner.progress()
    }
    fn facts(&self) -> Result<sonde_measure::Library> {
        self.inner.facts()
    }
    fn abort(&mut self, why: &str) {
        self.inner.abort(why);
    }
    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}

fn check_all<M: Messenger + ?Sized>(messenger: &mut M, comm: Comm, seed: u64, cases: usize) {
    let mut group = Communicator::new(messenger, comm, Choice::default());
    for case in oracle::cases(seed, cases) {
        let made = oracle::check_in(&mut group, &case).unwrap_or_else(|told| panic!("{told}"));
        if let Maker::Named(algorithm) = case.maker {
            assert_eq!(made, Made::Sonde(algorithm));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_algorithm_against_the_oracle(ranks in 1_usize..=17, seed: u64) {
        Memory::run(ranks, |messenger| {
            check_all(messenger, Comm::WORLD, seed, oracle::round());
        });
    }
}

#[test]
fn no_step_relies_on_buffers() {
    for ranks in 1..=17 {
        Memory::run(ranks, |messenger| {
            let mut unbuffered = Unbuffered::new(messenger);
            check_all(&mut unbuffered, Comm::WORLD, ranks as u64, oracle::round());
        });
    }
}

#[test]
fn parts_of_a_group_are_groups() {
    Memory::run(11, |messenger| {
        let rank = messenger.rank(Comm::WORLD);
        let colour = Some(rank as u32 % 2);
        let part = messenger.split(Comm::WORLD, colour, -(rank as i32));
        let part = part.unwrap().expect("all have a colour");
        check_all(messenger, part, 5, oracle::round());
        check_all(messenger, Comm::WORLD, 6, oracle::round());
    });
}

#[test]
fn more_ranks_than_are_posted_at_once() {
    Memory::run(70, |messenger| {
        let mut group = Communicator::new(messenger, Comm::WORLD, Choice::default());
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            for algorithm in Algorithm::of(kind) {
                let mut case = oracle::cases(9, 1).next().unwrap();
                case.kind = kind;
                case.maker = Maker::Named(*algorithm);
                case.elements = 3;
                case.root = 31 + index;
                oracle::check_in(&mut group, &case).unwrap();
            }
        }
    });
}

#[test]
fn nobody_leaves_a_barrier_before_all_have_come() {
    const ROUNDS: usize = 20;
    for ranks in [2, 3, 5, 8, 13, 17] {
        for algorithm in Algorithm::of(Kind::Barrier) {
            let came = AtomicUsize::new(0);
            Memory::run(ranks, |messenger| {
                let choice = Choice::default().with(Kind::Barrier, Maker::Named(*algorithm));
                let mut group = Communicator::new(messenger, Comm::WORLD, choice.unwrap());
                let rank = group.rank();
                for round in 1..=ROUNDS {
                    // Each is the last one to come in turn.
                    if round % ranks == rank {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    came.fetch_add(1, Ordering::SeqCst);
                    group.barrier().unwrap();
                    let came = came.load(Ordering::SeqCst);
                    assert!(came >= round * ranks, "{algorithm}, {ranks} ranks: {came}");
                }
            });
        }
    }
}

#[test]
fn the_library_is_asked_first_unless_told() {
    Memory::run(2, |messenger| {
        let mut owner = Unbuffered::new(messenger);
        owner.own.push(Kind::Barrier);
        let mut group = Communicator::new(&mut owner, Comm::WORLD, Choice::default());
        assert_eq!(group.barrier().unwrap(), Made::Library);
        let mut sum = [0];
        let made = group.allreduce(&[2_i64], &mut sum, Operation::Product);
        assert_eq!(made.unwrap(), Made::Sonde(Algorithm::Doubling));
        assert_eq!(sum, [4]);
        group.choose("barrier=tree,scan=library".parse().unwrap());
        assert_eq!(group.barrier().unwrap(), Made::Sonde(Algorithm::Tree));
        let error = group.scan(&[1_u8], &mut [0], Operation::Sum).unwrap_err();
        assert!(error.to_string().contains("scan=sonde"), "{error}");
        assert!(group.broadcast(2, &mut [0_u8]).is_err());
    });
}

#[test]
fn named_calls_count_elements() {
    Memory::run(3, |messenger| {
        let mut group = Communicator::new(messenger, Comm::WORLD, Choice::default());
        let rank = group.rank();
        let own = vec![rank as i32; rank];
        let mut all = [0; 3];
        group.allgatherv(&own, &mut all, &[0, 1, 2]).unwrap();
        assert_eq!(all, [1, 2, 2]);
        let counts = [2, 0, 1];
        let whole: &[i32] = if rank == 1 { &[7, 8, 9] } else { &[] };
        let mut part = vec![0; counts[rank]];
        group.scatterv(1, whole, &mut part, &counts).unwrap();
        let mut back = vec![0; if rank == 2 { 3 } else { 0 }];
        group.gatherv(2, &part, &mut back, &counts).unwrap();
        assert!(rank != 2 || back == [7, 8, 9]);
        // Rank r sends r + 1 elements to each.
        let sent = vec![rank as i64; 3 * (rank + 1)];
        let mut received = [0; 6];
        group
            .alltoallv(&sent, &[rank + 1; 3], &mut received, &[1, 2, 3])
            .unwrap();
        assert_eq!(received, [0, 1, 1, 2, 2, 2]);
    });
}
