//! What counting costs, and each collective by each of its algorithms.
//!
//! Model:   `decorator`: a message of 8 B there and back between two ranks in this process's memory that one thread drives, as
//!          it is and counted, four calls; and a send into a messenger that does nothing, counted and not, whose difference
//!          is what counting a call costs, writing it down, or reading the CPU's time around it. `collectives`: eight ranks that are threads;
//!          a time is that of all of them for one call.
//! Units:   nanoseconds a round trip, a send, a call. Threads that outnumber the CPUs say little of a network: compare
//!          algorithms of one run only.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sonde_message::aged::Aged;
use sonde_message::collectives::{Algorithm, Choice, Communicator, Maker};
use sonde_message::counted::Counted;
use sonde_message::native::Memory;
use sonde_message::timeline::Timeline;
use sonde_message::{
    Call, Capabilities, Comm, Completion, Element, Kind, Messenger, Op, Operation, Parts, Request,
    Result, Source, Status, Tag, Tagged,
};
use sonde_units::Ratio;

const WORLD: Comm = Comm::WORLD;
const RANKS: usize = 8;

/// A messenger that takes sends and does nothing.
struct Nothing;

const NOBODY: Status = Status {
    from: 0,
    tag: 0,
    bytes: 0,
};

impl Messenger for Nothing {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    fn rank(&self, _: Comm) -> usize {
        0
    }
    fn size(&self, _: Comm) -> usize {
        2
    }
    #[inline(never)]
    fn send(&mut self, _: Comm, to: usize, _: Tag, payload: &[u8]) -> Result<()> {
        black_box((to, payload));
        Ok(())
    }
    fn recv(&mut self, _: Comm, _: Source, _: Tagged, _: &mut [u8]) -> Result<Status> {
        Ok(NOBODY)
    }
    fn exchange(&mut self, _: Comm, _: &mut [Op<'_>], _: &mut [Status]) -> Result<()> {
        Ok(())
    }
    fn isend(&mut self, _: Comm, _: usize, _: Tag, _: Vec<u8>) -> Result<Request> {
        Ok(Request(0))
    }
    fn irecv(&mut self, _: Comm, _: Source, _: Tagged, _: Vec<u8>) -> Result<Request> {
        Ok(Request(0))
    }
    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        Ok(Err(request))
    }
    fn wait(&mut self, _: Request) -> Result<Completion> {
        Ok(Completion {
            status: NOBODY,
            buffer: Vec::new(),
        })
    }
    fn iprobe(&mut self, _: Comm, _: Source, _: Tagged) -> Result<Option<Status>> {
        Ok(None)
    }
    fn split(&mut self, _: Comm, _: Option<u32>, _: i32) -> Result<Option<Comm>> {
        Ok(None)
    }
    fn collective(&mut self, _: Comm, _: &mut Call<'_>) -> Result<bool> {
        Ok(false)
    }
    fn progress(&mut self) -> Result<()> {
        Ok(())
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

/// A message of 8 B there and back: what is received has come before, so that nobody waits.
fn there_and_back(ranks: &mut [Box<dyn Messenger>; 2]) {
    let mut room = [0; 8];
    for (from, to) in [(0, 1), (1, 0)] {
        ranks[from].send(WORLD, to, 1, black_box(&[7; 8])).unwrap();
        let (source, tag) = (Source::Rank(from), Tagged::With(1));
        ranks[to].recv(WORLD, source, tag, &mut room).unwrap();
    }
}

fn decorator(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("decorator");
    let two = |made: fn(Memory) -> Box<dyn Messenger>| {
        let ranks: Vec<_> = Memory::all(2).into_iter().map(made).collect();
        <[_; 2]>::try_from(ranks).unwrap_or_else(|_| unreachable!("two ranks"))
    };
    let mut plain = two(|rank| Box::new(rank));
    group.bench_function("round-trip/plain", |bencher| {
        bencher.iter(|| there_and_back(&mut plain));
    });
    let mut counted = two(|rank| Box::new(Counted::new(rank)));
    group.bench_function("round-trip/counted", |bencher| {
        bencher.iter(|| there_and_back(&mut counted));
    });
    let mut plain: Box<dyn Messenger> = Box::new(Nothing);
    group.bench_function("send/plain", |bencher| {
        bencher.iter(|| plain.send(WORLD, 1, 1, black_box(&[7; 8])));
    });
    let mut counted: Box<dyn Messenger> = Box::new(Counted::new(Nothing));
    group.bench_function("send/counted", |bencher| {
        bencher.iter(|| counted.send(WORLD, 1, 1, black_box(&[7; 8])));
    });
    group.bench_function("send/timeline", |bencher| bencher.iter_custom(written_down));
    let aged = Aged::new(Nothing, Ratio::ONE).expect("a factor of 1");
    let mut aged: Box<dyn Messenger> = Box::new(aged);
    group.bench_function("send/aged", |bencher| {
        bencher.iter(|| aged.send(WORLD, 1, 1, black_box(&[7; 8])));
    });
}

/// The time of so many sends that all have room.
fn written_down(mut sends: u64) -> Duration {
    const ROOM: u64 = 1 << 16;
    let mut passed = Duration::ZERO;
    while sends > 0 {
        let some = sends.min(ROOM);
        // One more for the phase.
        let timeline = Timeline::new(Nothing, ROOM as usize + 1);
        let mut timeline: Box<dyn Messenger> = Box::new(timeline);
        let begin = Instant::now();
        for _ in 0..some {
            let sent = timeline.send(WORLD, 1, 1, black_box(&[7; 8]));
            sent.expect("nothing can go wrong");
        }
        passed += begin.elapsed();
        sends -= some;
    }
    passed
}

/// One call of the kind, of about so many bytes a rank.
fn call(group: &mut Communicator<'_, dyn Messenger + '_>, kind: Kind, rows: &mut [Vec<u8>; 2]) {
    let rank = group.rank();
    let part = Parts::Even(rows[0].len() / RANKS);
    let [input, output] = rows;
    let one = input.len() / RANKS;
    let (element, operation) = (Element::F64, Operation::Sum);
    let at_root = |bytes: usize| if rank == 0 { bytes } else { 0 };
    let mut call = match kind {
        Kind::Barrier => Call::Barrier,
        Kind::Broadcast => Call::Broadcast {
            root: 0,
            data: output,
        },
        Kind::Reduce => Call::Reduce {
            root: 0,
            output: &mut output[..at_root(input.len())],
            input,
            element,
            operation,
        },
        Kind::Allreduce => Call::Allreduce {
            input,
            output,
            element,
            operation,
        },
        Kind::Scan => Call::Scan {
            input,
            output,
            element,
            operation,
        },
        Kind::Gather => Call::Gather {
            root: 0,
            output: &mut output[..at_root(one * RANKS)],
            input: &input[..one],
            parts: part,
        },
        Kind::Scatter => Call::Scatter {
            root: 0,
            input: &input[..at_root(one * RANKS)],
            output: &mut output[..one],
            parts: part,
        },
        Kind::Allgather => Call::Allgather {
            input: &input[..one],
            output,
            parts: part,
        },
        Kind::Alltoall => Call::Alltoall {
            input,
            sent: part,
            output,
            received: part,
        },
    };
    group.call(&mut call).unwrap();
}

fn collectives(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("collectives");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(2));
    for kind in Kind::ALL {
        for algorithm in Algorithm::of(kind) {
            for bytes in [64, 65_536] {
                let choice = Choice::default()
                    .with(kind, Maker::Named(*algorithm))
                    .unwrap();
                let name = BenchmarkId::new(format!("{}/{algorithm}", kind.name()), bytes);
                group.bench_function(name, |bencher| {
                    bencher.iter_custom(|rounds| {
                        let times = Memory::run(RANKS, |messenger| {
                            let messenger: &mut dyn Messenger = messenger;
                            let mut group = Communicator::new(messenger, WORLD, choice);
                            let mut rows = [vec![1; bytes], vec![0; bytes]];
                            group.barrier().unwrap();
                            let begin = Instant::now();
                            (0..rounds).for_each(|_| call(&mut group, kind, &mut rows));
                            group.barrier().unwrap();
                            begin.elapsed()
                        });
                        times.into_iter().max().unwrap()
                    });
                });
            }
        }
    }
}

criterion_group!(messages, decorator, collectives);
criterion_main!(messages);
