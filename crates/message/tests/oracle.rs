//! Collectives against the oracle over the native transports, straight, counted, over a ring, and by the best of two ways;
//! and a rank that is gone while they go on.
//!
//! The ranks are threads that join as processes would; what they share is nothing but the transport.

use std::time::{Duration, Instant};

use sonde_measure::Wait;
use sonde_message::collectives::{Choice, Communicator, Made, Maker};
use sonde_message::counted::Counted;
use sonde_message::native::{Bootstrap, Meeting, Transport};
use sonde_message::{Best, Comm, Cost, Error, Messenger, Mode, Operation, Routed, oracle};
use sonde_units::Topology;

/// Joins ranks by each of the transports, and runs `rank` on each with its messengers in their order.
fn over(
    transports: &[Transport],
    ranks: usize,
    name: &str,
    rank: impl Fn(Vec<Box<dyn Messenger>>) + Sync,
) {
    let meeting = |transport: &Transport| match transport {
        Transport::Tcp => Meeting::Address(crate::port()),
        _ => Meeting::Name(format!(
            "{}.oracle.{name}.{}.{ranks}",
            std::process::id(),
            transport.name()
        )),
    };
    let meetings: Vec<_> = transports.iter().map(meeting).collect();
    std::thread::scope(|scope| {
        for number in 0..ranks {
            let (rank, meetings) = (&rank, &meetings);
            scope.spawn(move || {
                let join = |(transport, meeting): (&Transport, &Meeting)| {
                    let boot = Bootstrap {
                        rank: number,
                        size: ranks,
                        transport: *transport,
                        meeting: meeting.clone(),
                        own: None,
                        token: "of this run".into(),
                        wait: Wait::Block,
                        timeout: Duration::from_secs(60),
                    };
                    boot.join().unwrap()
                };
                rank(transports.iter().zip(meetings).map(join).collect());
            });
        }
    });
}

fn check<M: Messenger + ?Sized>(messenger: &mut M, seed: u64) {
    let mut group = Communicator::new(messenger, Comm::WORLD, Choice::default());
    for case in oracle::cases(seed, oracle::round()) {
        let made = oracle::check_in(&mut group, &case).unwrap_or_else(|told| panic!("{told}"));
        if let Maker::Named(algorithm) = case.maker {
            assert_eq!(made, Made::Sonde(algorithm));
        }
    }
}

fn straight(transport: Transport, ranks: &[usize]) {
    for ranks in ranks {
        over(&[transport], *ranks, "straight", |messengers| {
            for mut messenger in messengers {
                check(&mut *messenger, *ranks as u64);
                messenger.finish().unwrap();
            }
        });
    }
}

#[test]
fn every_collective_over_tcp() {
    straight(Transport::Tcp, &[2, 5, 17]);
}

#[test]
fn every_collective_over_unix_sockets() {
    straight(Transport::Unix, &[3, 8]);
}

#[test]
fn every_collective_over_shared_memory() {
    straight(Transport::Shm, &[2, 7, 16]);
}

#[test]
fn every_collective_around_a_ring_of_neighbours() {
    over(&[Transport::Shm], 5, "ring", |mut messengers| {
        let topology = Topology::parse("ring", 5).unwrap();
        let counted = Counted::new(messengers.remove(0));
        let mut routed = Routed::new(counted, topology, Mode::Forwarding).unwrap();
        check(&mut routed, 3);
        routed.finish().unwrap();
        assert!(routed.traffic().carried.messages > 0);
        let rank = routed.rank(Comm::WORLD);
        let profile = routed.inner().profile();
        for flow in &profile.phases[0].flows {
            let apart = flow.rank.abs_diff(rank);
            assert!(apart == 1 || apart == 4, "{rank} and {}", flow.rank);
        }
    });
}

#[test]
fn every_collective_by_the_best_of_two_ways() {
    // Two hosts with two ranks each: shared memory within, TCP between.
    let transports = [Transport::Shm, Transport::Tcp];
    over(&transports, 4, "best", |messengers| {
        let rank = messengers[0].rank(Comm::WORLD);
        let near = |other: usize| (other / 2 == rank / 2).then(|| Cost::linear(500, 4_000_000_000));
        let costs = [
            (0..4).map(near).collect(),
            vec![Some(Cost::linear(30_000, 1_000_000_000)); 4],
        ];
        let mut best = Best::new(messengers, &costs).unwrap();
        for other in (0..4).filter(|other| *other != rank) {
            assert_eq!(best.way(other, 1), Some(usize::from(other / 2 != rank / 2)));
        }
        check(&mut best, 4);
        best.finish().unwrap();
        assert!(best.chosen().iter().all(|way| way.messages > 0));
    });
}

/// A rank without its messenger is a lost one to the others.
#[test]
fn a_lost_rank_ends_a_collective() {
    for (transport, elements) in Transport::ALL
        .into_iter()
        .flat_map(|of| [(of, 10), (of, 50_000)])
    {
        over(
            &[transport],
            5,
            &format!("lost.{elements}"),
            |mut messengers| {
                let mut messenger = messengers.remove(0);
                let mut group = Communicator::new(&mut *messenger, Comm::WORLD, Choice::default());
                let rank = group.rank();
                if rank == 3 {
                    return;
                }
                let (own, mut sum) = (vec![1_i64; elements], vec![0; elements]);
                let begin = Instant::now();
                // Some may have what they need of the first; none of the second.
                let again = (0..2).try_for_each(|_| {
                    let made = group.allreduce(&own, &mut sum, Operation::Sum);
                    made.map(drop)
                });
                let Err(Error::Lost { rank: lost, .. }) = again else {
                    panic!("{transport:?}, {elements} elements, rank {rank}: {again:?}");
                };
                assert!(
                    begin.elapsed() < Duration::from_secs(5),
                    "{:?}",
                    begin.elapsed()
                );
                // Who ended in the middle of a long message cannot say any more because of whom: then it is named itself.
                assert!(
                    lost == 3 || elements > 10 && lost != rank,
                    "{transport:?}, {elements} elements, rank {rank}: {again:?}"
                );
            },
        );
    }
}
