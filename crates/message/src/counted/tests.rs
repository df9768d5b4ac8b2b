//! Programs whose counts are known.

use std::time::{Duration, Instant};

use super::*;
use crate::collectives::{Choice, Communicator};
use crate::native::Memory;
use crate::{Operation, collectives};

fn rows(phase: &Phase, sent: bool) -> Vec<(usize, Tag, Total)> {
    let flows = phase.flows.iter().filter(|flow| flow.sent == sent);
    flows
        .map(|flow| (flow.rank, flow.tag, flow.total))
        .collect()
}

fn total(lengths: &[u64]) -> Total {
    let mut total = Total::NONE;
    lengths.iter().for_each(|bytes| total.add(*bytes));
    total
}

#[test]
fn what_is_done_within_a_span_is_counted_apart() {
    let world = Comm::WORLD;
    Memory::run(2, |messenger| {
        let mut counted = Counted::new(messenger);
        let other = 1 - counted.rank(world);
        let span = Duration::from_millis(40);
        counted.count_within(span.as_nanos() as u64);
        let turn = |counted: &mut Counted<_>, times: u32| {
            for _ in 0..times {
                counted.send(world, other, 1, &[0; 8]).unwrap();
                counted
                    .recv(world, Source::Rank(other), Tagged::With(1), &mut [0; 8])
                    .unwrap();
                // Looks move nothing, however many there are.
                counted.iprobe(world, Source::Any, Tagged::With(9)).unwrap();
            }
        };
        turn(&mut counted, 3);
        assert_eq!(counted.part_within(), None, "the span goes on");
        std::thread::sleep(span);
        turn(&mut counted, 9);
        // Six of 24 calls; the first one that ends later is not within it.
        assert_eq!(counted.part_within(), Some(0.25));
    });
}

#[test]
fn a_program_is_counted_as_it_was() {
    let world = Comm::WORLD;
    Memory::run(3, |messenger| {
        let mut counted = Counted::new(messenger);
        let rank = counted.rank(world);
        let (next, previous) = ((rank + 1) % 3, (rank + 2) % 3);
        let mut room = [0; 100];
        counted.send(world, next, 5, &[0; 10]).unwrap();
        counted.send(world, next, 5, &[0; 30]).unwrap();
        let request = counted.isend(world, next, 6, vec![0; 99]).unwrap();
        counted.wait(request).unwrap();
        let from = Source::Rank(previous);
        for _ in 0..2 {
            counted
                .recv(world, from, Tagged::With(5), &mut room)
                .unwrap();
        }
        let request = counted
            .irecv(world, from, Tagged::Any, vec![0; 100])
            .unwrap();
        counted.wait(request).unwrap();
        let mut statuses = [Status {
            from: 0,
            tag: 0,
            bytes: 0,
        }; 2];
        let mut ops = [
            Op::Recv {
                from,
                tag: Tagged::With(7),
                room: &mut room,
            },
            Op::Send {
                to: next,
                tag: 7,
                payload: &[1],
            },
        ];
        counted.exchange(world, &mut ops, &mut statuses).unwrap();
        let profile = counted.profile();
        let [phase] = &profile.phases[..] else {
            panic!("one phase: {profile:?}");
        };
        let flows = [(5, &[10, 30][..]), (6, &[99]), (7, &[1])];
        let wanted = |peer| {
            flows
                .map(|(tag, lengths)| (peer, tag, total(lengths)))
                .to_vec()
        };
        assert_eq!(rows(phase, true), wanted(next));
        assert_eq!(rows(phase, false), wanted(previous));
        assert_eq!(phase.sent.total, total(&[10, 30, 99, 1]));
        assert_eq!(phase.sent.bytes_mean, Some(35.0));
        assert_eq!(phase.sent.bytes_median, Some(10));
        let calls: Vec<_> = phase
            .calls
            .iter()
            .map(|calls| (calls.call.as_str(), calls.count))
            .collect();
        let made = [
            ("send", 2),
            ("recv", 2),
            ("exchange", 1),
            ("isend", 1),
            ("irecv", 1),
            ("wait", 2),
        ];
        assert_eq!(calls, made);
        let inside: u64 = phase.calls.iter().map(|calls| calls.time_ns).sum();
        assert_eq!(phase.wall_ns, inside + phase.computing_ns);

        let matrix = counted.matrix(None).unwrap();
        for (sender, receiver) in (0..9).map(|at| (at / 3, at % 3)) {
            let joined = receiver == (sender + 1) % 3;
            let sent = (
                matrix.bytes(sender, receiver),
                matrix.messages(sender, receiver),
            );
            assert_eq!(sent, if joined { (140, 4) } else { (0, 0) });
        }
        assert_eq!(
            counted.profile(),
            profile,
            "the matrix's own messages are not counted"
        );
    });
}

#[test]
fn ranks_are_those_of_the_world() {
    Memory::run(4, |messenger| {
        let mut counted = Counted::new(messenger);
        let rank = counted.rank(Comm::WORLD);
        // Two groups, each in the order from the last rank.
        let part = counted.split(Comm::WORLD, Some(rank as u32 / 2), -(rank as i32));
        let part = part.unwrap().unwrap();
        let own = counted.rank(part);
        counted.send(part, 1 - own, 3, &[0; 8]).unwrap();
        let mut room = [0; 8];
        counted
            .recv(part, Source::Any, Tagged::Any, &mut room)
            .unwrap();
        let phase = &counted.profile().phases[0];
        assert_eq!(rows(phase, true), [(rank ^ 1, 3, total(&[8]))]);
        assert_eq!(rows(phase, false), [(rank ^ 1, 3, total(&[8]))]);
    });
}

#[test]
fn what_came_before_the_setup_belongs_to_it() {
    Memory::run(2, |messenger| {
        let mut counted = Counted::new(messenger);
        let other = 1 - counted.rank(Comm::WORLD);
        let mut room = [0; 8];
        for (phase, times) in [("setup", 0), ("work", 1), ("setup", 1), ("work", 3)] {
            counted.phase(phase);
            for _ in 0..times {
                counted.send(Comm::WORLD, other, 1, &[0; 8]).unwrap();
                counted
                    .recv(Comm::WORLD, Source::Any, Tagged::Any, &mut room)
                    .unwrap();
            }
        }
        let profile = counted.profile();
        let sent = profile.phases.iter();
        let sent: Vec<(&str, u64)> = sent
            .map(|phase| (phase.name.as_str(), phase.sent.total.messages))
            .collect();
        assert_eq!(sent, [("setup", 1), ("setup: work", 1), ("work", 3)]);
    });
}

#[test]
fn phases_part_the_time() {
    Memory::run(2, |messenger| {
        let mut counted = Counted::new(messenger);
        for round in 0..3_i64 {
            counted.phase("compute");
            let computing = Instant::now();
            while computing.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            counted.phase("sum");
            let mut group = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
            let mut sum = [0];
            group.allreduce(&[round], &mut sum, Operation::Sum).unwrap();
            assert_eq!(sum, [2 * round]);
        }
        let profile = counted.profile();
        let [compute, sum] = &profile.phases[..] else {
            panic!("{profile:?}");
        };
        assert!(compute.calls.is_empty() && compute.computing_ns >= 60_000_000);
        // sonde's allreduce of two ranks is one message each way, under its own name; the library's was asked for first.
        assert_eq!(sum.sent.total, total(&[8; 3]));
        assert!(
            sum.flows
                .iter()
                .all(|flow| flow.collective.as_deref() == Some("allreduce"))
        );
        assert!(sum.collectives.is_empty());
        let mut messages = |phase| {
            let matrix = counted.matrix(Some(phase)).unwrap();
            [0, 1].map(|from| [0, 1].map(|to| matrix.messages(from, to)))
        };
        assert_eq!(messages("compute"), [[0, 0], [0, 0]]);
        assert_eq!(messages("sum"), [[0, 3], [3, 0]]);
        assert_eq!(collectives::made_of(crate::TAG_MAX), None);
    });
}
