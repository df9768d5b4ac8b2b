//! What holds of a messenger, whatever carries it.

use std::time::Duration;

use sonde_measure::Wait;

use super::{Bootstrap, Meeting, Memory, Transport};
use crate::{Comm, Error, Messenger, Op, Source, Status, TAG_MAX, Tagged};

const WORLD: Comm = Comm::WORLD;
const NOTHING: Status = Status {
    from: 0,
    tag: 0,
    bytes: 0,
};

/// Bytes that say where they are from.
fn bytes(seed: usize, count: usize) -> Vec<u8> {
    (0..count)
        .map(|at| (at * 7 + at / 251 + seed * 31) as u8)
        .collect()
}

/// Every rank tells every other one, in all sizes at once, and gets the same from each.
pub(super) fn all_meet_all(messenger: &mut dyn Messenger) {
    let (rank, size) = (messenger.rank(WORLD), messenger.size(WORLD));
    for count in [0, 1, 8, 33, 4_000, 33_000, 70_000, 1_500_000] {
        let mut rooms = vec![vec![0xee; count + 5]; size];
        let payload = bytes(rank, count);
        let mut ops = Vec::new();
        for (other, room) in rooms.iter_mut().enumerate() {
            ops.push(Op::Recv {
                from: Source::Rank(other),
                tag: Tagged::With(3),
                room,
            });
            ops.push(Op::Send {
                to: other,
                tag: 3,
                payload: &payload,
            });
        }
        let mut statuses = vec![NOTHING; ops.len()];
        messenger.exchange(WORLD, &mut ops, &mut statuses).unwrap();
        for (other, room) in rooms.iter().enumerate() {
            let wanted = Status {
                from: other,
                tag: 3,
                bytes: count,
            };
            assert_eq!(statuses[2 * other], wanted);
            assert!(
                room[..count] == bytes(other, count)[..],
                "{count} from {other}"
            );
            assert_eq!(room[count..], [0xee; 5]);
        }
    }
}

/// Rank 0 sends in one order, rank 1 receives in others.
pub(super) fn order_holds(messenger: &mut dyn Messenger) {
    let rank = messenger.rank(WORLD);
    let mut room = vec![0; 100_000];
    if rank == 0 {
        let requests: Vec<_> = (0..300_usize)
            .map(|number| {
                let count = [8, 3_000, 90_000][number % 3];
                let tag = (number / 3 % 2) as u32;
                messenger
                    .isend(WORLD, 1, tag, bytes(number, count))
                    .unwrap()
            })
            .collect();
        for request in requests {
            messenger.wait(request).unwrap();
        }
    }
    if rank == 1 {
        for tag in [1, 0] {
            for number in (0..300_usize).filter(|number| (number / 3 % 2) as u32 == tag) {
                let (from, wanted) = match number % 2 {
                    0 => (Source::Any, Tagged::With(tag)),
                    _ => (Source::Rank(0), Tagged::With(tag)),
                };
                let status = messenger.recv(WORLD, from, wanted, &mut room).unwrap();
                let count = [8, 3_000, 90_000][number % 3];
                assert_eq!((status.from, status.tag, status.bytes), (0, tag, count));
                assert!(
                    room[..count] == bytes(number, count)[..],
                    "message {number}"
                );
            }
        }
    }
}

/// A message that is too long is an error of its own and leaves the others whole.
pub(super) fn too_long_is_said(messenger: &mut dyn Messenger) {
    let rank = messenger.rank(WORLD);
    for count in [40, 50_000, 200_000] {
        if rank == 0 {
            messenger.send(WORLD, 1, 1, &bytes(1, count)).unwrap();
            messenger.send(WORLD, 1, 2, &bytes(2, count)).unwrap();
        }
        if rank == 1 {
            let mut room = vec![0; count - 1];
            let error = messenger.recv(WORLD, Source::Rank(0), Tagged::With(1), &mut room);
            let error = error.unwrap_err();
            assert!(
                matches!(error, Error::Truncated { from: 0, tag: 1, bytes, room } if (bytes, room) == (count, count - 1)),
                "{error}"
            );
            let mut room = vec![0; count];
            messenger
                .recv(WORLD, Source::Rank(0), Tagged::Any, &mut room)
                .unwrap();
            assert!(room == bytes(2, count));
        }
    }
}

/// Requests, tests and probes.
pub(super) fn requests_end(messenger: &mut dyn Messenger) {
    let (rank, size) = (messenger.rank(WORLD), messenger.size(WORLD));
    let next = (rank + 1) % size;
    let last = (rank + size - 1) % size;
    for (count, tag) in [(5, 10), (20_000, 11), (400_000, 12)] {
        let mut receive = messenger
            .irecv(WORLD, Source::Rank(last), Tagged::With(9), vec![0; count])
            .unwrap();
        let send = messenger.isend(WORLD, next, 9, bytes(rank, count)).unwrap();
        let come = loop {
            match messenger.test(receive).unwrap() {
                Ok(come) => break come,
                Err(again) => receive = again,
            }
        };
        assert_eq!((come.status.from, come.status.bytes), (last, count));
        assert!(come.buffer == bytes(last, count));
        let sent = messenger.wait(send).unwrap();
        assert!(sent.buffer == bytes(rank, count) && sent.status.from == next);
        messenger.send(WORLD, next, tag, &[rank as u8]).unwrap();
        let found = loop {
            if let Some(found) = messenger
                .iprobe(WORLD, Source::Any, Tagged::With(tag))
                .unwrap()
            {
                break found;
            }
        };
        assert_eq!((found.from, found.tag, found.bytes), (last, tag, 1));
        let mut room = [0];
        let status = messenger.recv(WORLD, Source::Any, Tagged::With(tag), &mut room);
        assert_eq!((status.unwrap(), room), (found, [last as u8]));
        assert_eq!(
            messenger
                .iprobe(WORLD, Source::Any, Tagged::With(tag))
                .unwrap(),
            None
        );
    }
}

/// Groups part by colour, are ordered by key, and keep their messages apart.
pub(super) fn splits_part_and_order(messenger: &mut dyn Messenger) {
    let (rank, size) = (messenger.rank(WORLD), messenger.size(WORLD));
    let parity = messenger
        .split(WORLD, Some(rank as u32 % 2), -(rank as i32))
        .unwrap()
        .unwrap();
    let of_mine = (0..size).rev().filter(|other| other % 2 == rank % 2);
    let members: Vec<usize> = of_mine.collect();
    let own = messenger.rank(parity);
    assert_eq!(
        (members[own], messenger.size(parity)),
        (rank, members.len())
    );
    let alone = messenger.split(WORLD, (rank == 0).then_some(7), 0).unwrap();
    assert_eq!(
        alone.map(|comm| messenger.size(comm)),
        (rank == 0).then_some(1)
    );
    // The same tag to the same rank, in the world and in the group: neither takes the other's.
    let next = (own + 1) % members.len();
    let last = (own + members.len() - 1) % members.len();
    messenger.send(WORLD, members[next], 4, b"world").unwrap();
    messenger.send(parity, next, 4, b"group").unwrap();
    let mut room = [0; 5];
    let status = messenger.recv(parity, Source::Any, Tagged::Any, &mut room);
    assert_eq!((status.unwrap().from, &room), (last, b"group"));
    let status = messenger.recv(WORLD, Source::Any, Tagged::With(4), &mut room);
    assert_eq!((status.unwrap().from, &room), (members[last], b"world"));
}

/// More than any window to a rank that does not receive, then all of it in the other order.
pub(super) fn nothing_waits_for_credit(messenger: &mut dyn Messenger) {
    const MANY: usize = 9_000;
    let rank = messenger.rank(WORLD);
    if rank == 0 {
        let requests: Vec<_> = (0..MANY)
            .map(|number| messenger.isend(WORLD, 1, 1, bytes(number, 500)).unwrap())
            .collect();
        messenger
            .recv(WORLD, Source::Rank(1), Tagged::With(2), &mut [])
            .unwrap();
        for request in requests {
            messenger.wait(request).unwrap();
        }
    }
    if rank == 1 {
        let mut room = [0; 500];
        for number in 0..MANY {
            if number == MANY / 2 {
                messenger.send(WORLD, 0, 2, &[]).unwrap();
            }
            messenger
                .recv(WORLD, Source::Rank(0), Tagged::With(1), &mut room)
                .unwrap();
            assert!(room[..] == bytes(number, 500)[..], "message {number}");
        }
    }
}

/// Credit that comes while a receive waits alone is taken at once: what waits for it is what the receive's sender waits for.
pub(super) fn credit_comes_to_who_waits(messenger: &mut dyn Messenger) {
    // More than any transport's envelopes of one sender.
    const MANY: usize = 20_000;
    let rank = messenger.rank(WORLD);
    let mut room = [0; 1];
    for turn in 0..2 {
        if rank == 0 {
            let requests: Vec<_> = (0..MANY)
                .map(|_| messenger.isend(WORLD, 1, 1, vec![7]).unwrap())
                .collect();
            let last = messenger.isend(WORLD, 1, 2, vec![8]).unwrap();
            let from = Source::Rank(1);
            messenger
                .recv(WORLD, from, Tagged::With(3), &mut room)
                .unwrap();
            assert_eq!(room, [turn]);
            for request in requests.into_iter().chain([last]) {
                messenger.wait(request).unwrap();
            }
        }
        if rank == 1 {
            for tag in std::iter::repeat_n(1, MANY).chain([2]) {
                let status = messenger.recv(WORLD, Source::Rank(0), Tagged::With(tag), &mut room);
                assert_eq!((status.unwrap().tag, room), (tag, [6 + tag as u8]));
            }
            messenger.send(WORLD, 0, 3, &[turn]).unwrap();
        }
    }
}

/// Arguments that cannot be are named.
pub(super) fn bad_arguments_are_named(messenger: &mut dyn Messenger) {
    let size = messenger.size(WORLD);
    let said = |result: crate::Result<()>| result.unwrap_err().to_string();
    let text = said(messenger.send(WORLD, size, 0, &[]));
    assert!(text.contains(&format!("a rank is {size}")), "{text}");
    let text = said(messenger.send(WORLD, 0, u32::MAX, &[]));
    assert!(text.contains("a tag is 4294967295"), "{text}");
    let text = said(messenger.send(Comm(77), 0, 0, &[]));
    assert!(text.contains("a group is 77"), "{text}");
    let text = said(messenger.wait(crate::Request(1 << 40)).map(drop));
    assert!(text.contains("a request is"), "{text}");
    let text = said(messenger.exchange(WORLD, &mut [], &mut [NOTHING]));
    assert!(text.contains("statuses"), "{text}");
}

/// All of it, as every transport has to have it.
pub(super) fn whole(messenger: &mut dyn Messenger) {
    all_meet_all(messenger);
    order_holds(messenger);
    too_long_is_said(messenger);
    requests_end(messenger);
    splits_part_and_order(messenger);
    nothing_waits_for_credit(messenger);
    credit_comes_to_who_waits(messenger);
    bad_arguments_are_named(messenger);
    all_meet_all(messenger);
}

#[test]
fn threads_are_ranks() {
    for ranks in [2, 3, 5] {
        Memory::run(ranks, |messenger| {
            whole(messenger);
            messenger.finish().unwrap();
            let error = messenger.send(WORLD, 0, 0, &[]).unwrap_err().to_string();
            assert!(error.contains("finished"), "{error}");
        });
    }
}

#[test]
fn a_rank_alone_speaks_with_itself() {
    Memory::run(1, |messenger| {
        let mut room = [0; 3];
        messenger.send(WORLD, 0, TAG_MAX, b"own").unwrap();
        let status = messenger.recv(WORLD, Source::Any, Tagged::Any, &mut room);
        assert_eq!((status.unwrap().bytes, &room), (3, b"own"));
        let receive = messenger.irecv(WORLD, Source::Any, Tagged::Any, vec![0; 2]);
        messenger.send(WORLD, 0, 5, b"long").unwrap();
        let error = messenger.wait(receive.unwrap()).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Truncated {
                    bytes: 4,
                    room: 2,
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn a_rank_that_goes_ends_the_others() {
    let errors = Memory::run(3, |messenger| match messenger.rank(WORLD) {
        1 => {
            messenger.abort("out of beans");
            String::new()
        }
        // It waits for somebody else.
        0 => {
            let came = messenger.recv(WORLD, Source::Rank(2), Tagged::Any, &mut []);
            came.unwrap_err().to_string()
        }
        _ => {
            let came = messenger.recv(WORLD, Source::Any, Tagged::Any, &mut []);
            came.unwrap_err().to_string()
        }
    });
    for error in [&errors[0], &errors[2]] {
        assert!(
            error.contains("rank 1 is gone") && error.contains("out of beans"),
            "{error}"
        );
    }
    assert!(errors[0].contains("receiving from rank 2"), "{}", errors[0]);
}

#[test]
fn a_silence_ends() {
    let manner = super::Manner {
        wait: Wait::Poll,
        timeout: Duration::from_millis(30),
    };
    let mut ranks = Memory::with(2, manner);
    let error = ranks[0]
        .recv(WORLD, Source::Rank(1), Tagged::Any, &mut [])
        .unwrap_err();
    assert!(
        matches!(error, Error::Silent { rank: Some(1), .. }),
        "{error}"
    );
    let again = ranks[0].send(WORLD, 1, 0, &[]).unwrap_err();
    assert!(
        matches!(again, Error::Silent { rank: Some(1), .. }),
        "{again}"
    );
}

/// One thread drives 1,024 ranks, each of which has ten partners, and the whole is small.
#[test]
fn a_thousand_ranks_fit() {
    const RANKS: usize = 1_024;
    let resident = || sonde_sys::cpu::rss_bytes(std::process::id()).unwrap();
    let before = resident();
    let mut ranks = Memory::all(RANKS);
    for bit in 0..10 {
        let mut receives = Vec::new();
        for (rank, messenger) in ranks.iter_mut().enumerate() {
            let partner = Source::Rank(rank ^ 1 << bit);
            let receive = messenger.irecv(WORLD, partner, Tagged::With(bit), vec![0; 8]);
            receives.push(receive.unwrap());
        }
        for (rank, messenger) in ranks.iter_mut().enumerate() {
            let payload = (rank as u64).to_le_bytes().to_vec();
            let send = messenger
                .isend(WORLD, rank ^ 1 << bit, bit, payload)
                .unwrap();
            assert!(messenger.test(send).unwrap().is_ok(), "it goes at once");
        }
        for (rank, (messenger, mut receive)) in ranks.iter_mut().zip(receives).enumerate() {
            let come = loop {
                match messenger.test(receive).unwrap() {
                    Ok(come) => break come,
                    Err(again) => receive = again,
                }
            };
            assert_eq!(come.buffer, ((rank ^ 1 << bit) as u64).to_le_bytes());
        }
    }
    let bytes = resident().saturating_sub(before) / RANKS as u64;
    println!("1,024 native ranks with ten partners each: {bytes} B a rank");
    // Other tests in this process have memory meanwhile: the bound is generous.
    assert!(bytes < 256 << 10, "{bytes} B a rank");
    for messenger in &mut ranks {
        messenger.finish().unwrap();
    }
}

/// A port that nobody takes before it is bound: the sockets of other tests are at 127.0.0.1, from which those that dial come too.
fn port() -> Meeting {
    let [.., high, low] = std::process::id().to_be_bytes();
    let own = std::net::Ipv4Addr::new(127, 77, high, low);
    let listener = std::net::TcpListener::bind((own, 0)).unwrap();
    Meeting::Address(listener.local_addr().unwrap())
}

/// Joins ranks that are threads of this process, as processes would be, and runs `rank` on each.
fn over<T: Send>(
    transport: Transport,
    wait: Wait,
    ranks: usize,
    rank: impl Fn(&mut dyn Messenger) -> T + Sync,
) -> Vec<T> {
    let meeting = match transport {
        Transport::Tcp => port(),
        _ => Meeting::Name(format!(
            "{}.{wait:?}.{transport:?}.{ranks}",
            std::process::id()
        )),
    };
    std::thread::scope(|scope| {
        let (rank, meeting) = (&rank, &meeting);
        let started: Vec<_> = (0..ranks)
            .map(|number| {
                scope.spawn(move || {
                    let boot = Bootstrap {
                        rank: number,
                        size: ranks,
                        transport,
                        meeting: meeting.clone(),
                        own: None,
                        token: "of this run".into(),
                        wait,
                        timeout: Duration::from_secs(30),
                    };
                    rank(&mut *boot.join().unwrap())
                })
            })
            .collect();
        let ended = started.into_iter().map(|thread| thread.join());
        ended.map(Result::unwrap).collect()
    })
}

fn whole_over(transport: Transport) {
    for (wait, ranks) in [(Wait::Block, 3), (Wait::Poll, 2), (Wait::Block, 1)] {
        over(transport, wait, ranks, |messenger| {
            if ranks > 1 {
                whole(messenger);
            }
            let facts = messenger.facts().unwrap();
            assert_eq!(facts.transport, Some(transport.name().into()));
            messenger.finish().unwrap();
        });
    }
}

#[test]
fn tcp_joins_ranks() {
    whole_over(Transport::Tcp);
}

#[test]
fn unix_joins_ranks() {
    whole_over(Transport::Unix);
}

#[test]
fn shm_joins_ranks() {
    whole_over(Transport::Shm);
}
