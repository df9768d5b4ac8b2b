//! A client and a server with a path between them that loses messages, on virtual time.

use super::*;
use crate::files::client::{Calls, Timers};
use crate::files::pattern;
use crate::files::server::{self, Caller, Server};
use crate::files::store::Memory;
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const HOP: Span = Span::micros(50);

/// A client and a server, some microseconds apart, with a way between them that loses messages.
struct Pair {
    session: Session,
    server: Server<Memory>,
    now: Instant,
    there: VecDeque<(Instant, Vec<u8>)>,
    back: VecDeque<(Instant, Vec<u8>)>,
    /// Of a thousand messages so many are lost, either way.
    lost_per_mille: u64,
    random: Pcg64Mcg,
    lost: u64,
    /// The most calls that were under way at once.
    most: usize,
    /// At this time the server is started anew.
    restart: Option<Instant>,
}

impl Pair {
    fn new(terms: Terms, server: server::Terms, lost_per_mille: u64) -> Self {
        let calls = Calls::new(Some(Timers::HARD), b"token".to_vec(), 1);
        Self {
            session: Session::new(terms, calls),
            server: Server::new(server, Memory::new(1 << 24)),
            now: Instant::START,
            there: VecDeque::new(),
            back: VecDeque::new(),
            lost_per_mille,
            random: Pcg64Mcg::seed_from_u64(5),
            lost: 0,
            most: 0,
            restart: None,
        }
    }

    fn is_lost(&mut self) -> bool {
        let lost = self.random.next_u64() % 1_000 < self.lost_per_mille;
        self.lost += u64::from(lost);
        lost
    }

    /// Does a job, on virtual time.
    fn run(&mut self, job: Job) -> Result<Done, Failure> {
        self.session.begin(job);
        for _ in 0..1_000_000 {
            while let Some(message) = self.session.poll_transmit(self.now) {
                let message = message.to_vec();
                if !self.is_lost() {
                    self.there
                        .push_back((self.now.saturating_add(HOP), message));
                }
            }
            self.most = self.most.max(self.session.calls().pending());
            if let Some(outcome) = self.session.poll_outcome() {
                return outcome;
            }
            while let Some((_, reply)) = self.server.poll_reply(self.now) {
                if !self.is_lost() {
                    self.back.push_back((self.now.saturating_add(HOP), reply));
                }
            }
            let times = [
                self.session.poll_at(),
                self.server.poll_at(),
                self.there.front().map(|(at, _)| *at),
                self.back.front().map(|(at, _)| *at),
            ];
            let next = times
                .into_iter()
                .flatten()
                .min()
                .expect("something is to come");
            self.now = self.now.max(next);
            if self.restart.is_some_and(|at| at <= self.now) {
                self.restart = None;
                let terms = server::Terms::new(9);
                let store = std::mem::replace(self.server.store_mut(), Memory::new(0));
                self.server = Server::new(terms, store);
            }
            while let Some(message) = due(&mut self.there, self.now) {
                self.server.on_message(self.now, Caller(1), &message);
            }
            while let Some(message) = due(&mut self.back, self.now) {
                self.session.on_message(self.now, &message);
            }
        }
        panic!("no end");
    }

    fn mount(&mut self) -> Handle {
        let path = b"/export".to_vec();
        self.run(Job::Mount { path }).unwrap().handle.unwrap()
    }

    fn create(&mut self, name: &str) -> Handle {
        let root = self.mount();
        let one = One::Create(root, name.into());
        self.run(Job::One(one)).unwrap().handle.unwrap()
    }

    fn write(&mut self, file: Handle, size_bytes: u64) -> Done {
        let content = None;
        self.run(Job::Write {
            file,
            size_bytes,
            content,
        })
        .unwrap()
    }

    fn read(&mut self, file: Handle, size_bytes: u64, sink: Sink) -> Result<Done, Failure> {
        self.run(Job::Read {
            file,
            size_bytes,
            sink,
        })
    }
}

/// What has arrived.
fn due(way: &mut VecDeque<(Instant, Vec<u8>)>, now: Instant) -> Option<Vec<u8>> {
    if way.front()?.0 > now {
        return None;
    }
    way.pop_front().map(|(_, message)| message)
}

fn terms(version: Version) -> Terms {
    Terms {
        version,
        transfer: 8_192,
        outstanding: 1,
        stable: Stable::Sync,
        keeps_attributes: true,
    }
}

#[test]
fn one_outstanding_call_is_a_round_trip_each() {
    for version in [Version::V2, Version::V3] {
        let mut pair = Pair::new(terms(version), server::Terms::new(1), 0);
        let file = pair.create("a");
        pair.write(file, 100_000);
        let begin = pair.now;
        let done = pair.read(file, 100_000, Sink::Check).unwrap();
        assert_eq!((done.bytes, done.calls), (100_000, 13));
        let each = HOP.saturating_mul(2);
        assert_eq!(pair.now.since(begin), each.saturating_mul(13));
        assert_eq!(pair.most, 1);
        let samples: Vec<Span> = std::iter::from_fn(|| pair.session.poll_sample()).collect();
        assert!(samples.iter().all(|took| *took == each), "{samples:?}");
    }
}

#[test]
fn more_outstanding_calls_share_the_round_trips() {
    for outstanding in [2, 4, 13, 40] {
        let with = Terms {
            outstanding,
            ..terms(Version::V3)
        };
        let mut pair = Pair::new(with, server::Terms::new(1), 0);
        let file = pair.create("a");
        let begin = pair.now;
        pair.write(file, 13 * 8_192);
        let rounds = 13_u64.div_ceil(outstanding as u64);
        let wanted = HOP.saturating_mul(2).saturating_mul(rounds);
        assert_eq!(pair.now.since(begin), wanted, "{outstanding}");
        assert_eq!(pair.most, outstanding.min(13));
    }
}

#[test]
fn without_the_attribute_cache_each_transfer_asks_first() {
    let with = Terms {
        keeps_attributes: false,
        ..terms(Version::V3)
    };
    let mut pair = Pair::new(with, server::Terms::new(1), 0);
    let file = pair.create("a");
    assert_eq!(pair.write(file, 5 * 8_192).calls, 10);
    assert_eq!(pair.read(file, 5 * 8_192, Sink::Check).unwrap().calls, 10);
}

#[test]
fn unstable_writes_are_committed_once() {
    let with = Terms {
        stable: Stable::Unstable,
        outstanding: 3,
        ..terms(Version::V3)
    };
    let mut pair = Pair::new(with, server::Terms::new(1), 0);
    let file = pair.create("a");
    let done = pair.write(file, 5 * 8_192 + 1);
    assert_eq!((done.calls, done.bytes, done.written_again), (7, 40_961, 0));
    pair.read(file, 40_961, Sink::Check).unwrap();
}

#[test]
fn what_a_server_lost_is_written_again() {
    let with = Terms {
        stable: Stable::Unstable,
        ..terms(Version::V3)
    };
    let file = Pair::new(with, server::Terms::new(1), 0).create("a");
    let mut lost = crate::files::session::transfer::Transfer::new();
    let job = Job::Write {
        file,
        size_bytes: 8_192,
        content: None,
    };
    let mut done = Done::default();
    let step = lost.next(&job, &with, 0).unwrap();
    let written = Reply::Written {
        attributes: None,
        count: 8_192,
        stable: Stable::Unstable,
        verifier: 1,
    };
    lost.on_reply(&job, &with, &mut done, step, written)
        .unwrap();
    let commit = lost.next(&job, &with, 0).unwrap();
    assert_eq!(commit, Step::Commit);
    let committed = |verifier| Reply::Committed { verifier };
    lost.on_reply(&job, &with, &mut done, commit, committed(2))
        .unwrap();
    assert_eq!((done.bytes, done.written_again), (0, 8_192));
    assert_eq!(lost.next(&job, &with, 0), Some(step));
    let written = Reply::Written {
        attributes: None,
        count: 8_192,
        stable: Stable::Unstable,
        verifier: 2,
    };
    lost.on_reply(&job, &with, &mut done, step, written)
        .unwrap();
    let commit = lost.next(&job, &with, 0).unwrap();
    lost.on_reply(&job, &with, &mut done, commit, committed(2))
        .unwrap();
    assert_eq!((done.bytes, lost.next(&job, &with, 0)), (8_192, None));
}

#[test]
fn a_memory_that_is_started_anew_makes_handles_stale() {
    let mut pair = Pair::new(terms(Version::V3), server::Terms::new(1), 0);
    let file = pair.create("a");
    pair.restart = Some(pair.now.saturating_add(Span::micros(450)));
    let failure = pair
        .run(Job::Write {
            file,
            size_bytes: 1 << 20,
            content: None,
        })
        .unwrap_err();
    let wanted = Failure::Refused {
        call: "WRITE",
        status: Status::Stale,
    };
    assert_eq!(failure, wanted);
    assert_eq!(
        failure.to_string(),
        "WRITE: the handle is of a file that is gone, or of the server before it was started anew (NFSERR_STALE)"
    );
}

#[test]
fn loss_costs_time_and_no_byte() {
    for version in [Version::V2, Version::V3] {
        let with = Terms {
            outstanding: 4,
            ..terms(version)
        };
        let mut pair = Pair::new(with, server::Terms::new(1), 100);
        let file = pair.create("a");
        let done = pair.write(file, 300_000);
        assert_eq!(done.bytes, 300_000);
        pair.read(file, 300_000, Sink::Check).unwrap();
        let root = pair.mount();
        let meta = |call| Job::Meta {
            call,
            directory: root,
            first: 0,
            count: 40,
            names: 40,
        };
        // None of these may be done twice: what came again was answered by what was kept.
        pair.run(meta(Meta::Create)).unwrap();
        pair.run(meta(Meta::Lookup)).unwrap();
        pair.run(meta(Meta::Remove)).unwrap();
        let counters = *pair.session.calls().counters();
        assert!(pair.lost > 20, "{}", pair.lost);
        // Each loss of a call or of its only reply is one retransmission; no reply comes later than a timeout here.
        assert_eq!(counters.retransmissions, pair.lost);
        assert_eq!(counters.unexpected, 0);
        let server = pair.server.counters();
        assert_eq!(
            server.received,
            server.executed + server.repeated + server.in_progress
        );
    }
}

#[test]
fn without_kept_replies_loss_makes_false_errors() {
    let bare = server::Terms {
        replies_kept: 0,
        ..server::Terms::new(1)
    };
    let mut pair = Pair::new(terms(Version::V2), bare, 200);
    let root = pair.mount();
    let name = |at: u64| format!("n{at}").into_bytes();
    for at in 0..40 {
        pair.run(Job::One(One::Create(root, name(at)))).unwrap();
    }
    let removed = (0..40).map(|at| pair.run(Job::One(One::Remove(root, name(at)))));
    let false_errors = removed
        .filter(|done| {
            matches!(
                done,
                Err(Failure::Refused {
                    status: Status::Absent,
                    ..
                })
            )
        })
        .count();
    assert!(false_errors > 0);
}

#[test]
fn listings_give_every_name_once() {
    for version in [Version::V2, Version::V3] {
        let mut pair = Pair::new(terms(version), server::Terms::new(1), 0);
        let root = pair.mount();
        let (call, directory) = (Meta::Create, root);
        pair.run(Job::Meta {
            call,
            directory,
            first: 0,
            count: 1_000,
            names: 1_000,
        })
        .unwrap();
        let done = pair.run(Job::List { directory }).unwrap();
        let names: std::collections::BTreeSet<Vec<u8>> = done
            .entries
            .iter()
            .map(|entry| entry.name.clone())
            .collect();
        assert_eq!((done.entries.len(), names.len()), (1_002, 1_002));
        assert!(done.calls > 1, "an answer has at most 8 KiB");
    }
}

#[test]
fn a_soft_mount_gives_up() {
    let calls = Calls::new(
        Some(Timers {
            sends_max: Some(2),
            ..Timers::HARD
        }),
        Vec::new(),
        1,
    );
    let mut pair = Pair::new(terms(Version::V2), server::Terms::new(1), 1_000);
    pair.session = Session::new(terms(Version::V2), calls);
    assert_eq!(pair.run(Job::Null { count: 1 }), Err(Failure::GivenUp));
}

#[test]
fn what_differs_from_what_was_written_is_found() {
    let mut pair = Pair::new(terms(Version::V3), server::Terms::new(1), 0);
    let file = pair.create("a");
    let mut content = pattern::piece(0, 20_000).to_vec();
    content[9_000] ^= 1;
    pair.run(Job::Write {
        file,
        size_bytes: 20_000,
        content: Some(content.clone()),
    })
    .unwrap();
    let failure = pair.read(file, 20_000, Sink::Check).unwrap_err();
    assert_eq!(failure, Failure::Content { offset: 9_000 });
    let kept = pair.read(file, 20_000, Sink::Keep).unwrap();
    assert_eq!(kept.content, content);
    let short = pair.read(file, 20_001, Sink::Discard).unwrap_err();
    assert!(
        matches!(short, Failure::Short { offset: 20_000, .. }),
        "{short:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_transfer_comes_back(
        size in 0_u64..200_000,
        transfer in 1_u32..40_000,
        outstanding in 1_usize..9,
        unstable: bool,
        is_v2: bool,
        max in 512_u32..20_000,
        loss in 0_u64..80,
    ) {
        let version = if is_v2 { Version::V2 } else { Version::V3 };
        // Version 2 cannot say that less was written than asked.
        let transfer = if is_v2 { transfer.min(max) } else { transfer };
        let with = Terms {
            version,
            transfer: transfer.max(200),
            outstanding,
            stable: if unstable { Stable::Unstable } else { Stable::Sync },
            keeps_attributes: true,
        };
        let server = server::Terms { transfer_max: max, ..server::Terms::new(1) };
        let mut pair = Pair::new(with, server, loss);
        let file = pair.create("a");
        prop_assert_eq!(pair.write(file, size).bytes, size);
        let done = pair.read(file, size, Sink::Check).unwrap();
        prop_assert_eq!(done.bytes, size);
        prop_assert!(pair.most <= outstanding);
    }
}
