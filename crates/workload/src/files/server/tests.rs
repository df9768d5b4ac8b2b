//! A server alone: what it does with calls, in which order and when.

use super::*;
use crate::files::client::{Calls, Timers};
use crate::files::nfs::{Changes, Handle, Reply, Stable, Status};
use crate::files::store::{File, Memory};
use sonde_units::{BitRate, Bytes};

const ME: Caller = Caller(1);

fn at(us: u64) -> Instant {
    Instant::START.saturating_add(Span::micros(us))
}

fn terms() -> Terms {
    Terms::new(7)
}

fn server(terms: Terms) -> Server<Memory> {
    Server::new(terms, Memory::new(1 << 20))
}

/// A caller that makes one message after the other.
struct Client(Calls);

impl Client {
    fn new() -> Self {
        Self(Calls::new(None, b"token".to_vec(), 1))
    }

    fn message(&mut self, version: Version, call: &Call<'_>) -> Vec<u8> {
        let procedure = call.procedure(version).unwrap();
        self.0.call(procedure, 0, |to| call.write(version, to));
        self.0.poll_transmit(at(0)).unwrap().to_vec()
    }
}

/// What a server answers at once, in words: `ok` or a refusal.
fn ask(
    server: &mut Server<Memory>,
    client: &mut Client,
    call: &Call<'_>,
) -> Result<Option<Handle>, Status> {
    let message = client.message(Version::V3, call);
    server.on_message(at(0), ME, &message);
    let (_, reply) = server.poll_reply(at(0)).expect("a reply at once");
    let mut from = Decoder::new(&reply);
    rpc::read_reply(&mut from).unwrap().1.unwrap();
    let number = call.procedure(Version::V3).unwrap().number;
    match nfs::read_reply(Version::V3, number, &mut from).unwrap() {
        Reply::Failed(status) => Err(status),
        Reply::Found(handle, _) => Ok(Some(handle)),
        _ => Ok(None),
    }
}

fn root() -> Handle {
    let mut bytes = [0; 32];
    bytes[7] = 7;
    bytes[15] = File::ROOT.0 as u8;
    Handle::new(&bytes).unwrap()
}

fn create(name: &'static [u8]) -> Call<'static> {
    Call::Create {
        directory: root(),
        name,
        changes: Changes::default(),
        guarded: true,
    }
}

#[test]
fn a_call_that_comes_again_is_done_once() {
    for (kept, again) in [(16, 1), (0, 2)] {
        let mut server = server(Terms {
            replies_kept: kept,
            ..terms()
        });
        let mut client = Client::new();
        let message = client.message(Version::V3, &create(b"a"));
        server.on_message(at(0), ME, &message);
        let first = server.poll_reply(at(0)).unwrap();
        server.on_message(at(1), ME, &message);
        let second = server.poll_reply(at(1)).unwrap();
        assert_eq!(server.counters().executed, again);
        assert_eq!(
            first == second,
            kept > 0,
            "without the cache it exists already"
        );
        // The same identifier of another caller is another call.
        server.on_message(at(2), Caller(2), &message);
        assert_eq!(server.counters().executed, again + 1);
    }
}

#[test]
fn what_is_being_worked_on_is_not_begun_again() {
    let mut server = server(Terms {
        service: Span::micros(100),
        ..terms()
    });
    let mut client = Client::new();
    let message = client.message(Version::V2, &Call::Null);
    server.on_message(at(0), ME, &message);
    server.on_message(at(50), ME, &message);
    assert_eq!(server.poll_at(), Some(at(100)));
    assert!(server.poll_reply(at(99)).is_none());
    assert!(server.poll_reply(at(100)).is_some());
    assert!(server.poll_reply(at(1_000)).is_none());
    let counters = server.counters();
    assert_eq!((counters.received, counters.executed), (2, 1));
    assert_eq!(counters.in_progress, 1);
}

#[test]
fn daemons_take_calls_in_turn() {
    for (daemons, done) in [
        (1, [100, 200, 300, 400]),
        (2, [100, 100, 200, 200]),
        (4, [100, 100, 100, 100]),
    ] {
        let mut server = server(Terms {
            service: Span::micros(100),
            daemons,
            queue: 3,
            ..terms()
        });
        let mut client = Client::new();
        for _ in 0..4 {
            let message = client.message(Version::V2, &Call::Null);
            server.on_message(at(0), ME, &message);
        }
        let mut times = Vec::new();
        // Polled late, all is as if it had been polled in time.
        while let Some(next) = server.poll_at() {
            while server.poll_reply(next).is_some() {
                times.push(next.as_nanos() / 1_000);
            }
        }
        assert_eq!(times, done, "{daemons} daemons");
        assert_eq!(server.counters().held, Span::micros(400));
    }
}

#[test]
fn a_queue_is_bounded() {
    let mut server = server(Terms {
        service: Span::micros(100),
        daemons: 1,
        queue: 2,
        ..terms()
    });
    let mut client = Client::new();
    for taken in [true, true, true, false, false] {
        assert_eq!(server.is_ready(), taken);
        let message = client.message(Version::V2, &Call::Null);
        server.on_message(at(0), ME, &message);
    }
    assert_eq!(server.counters().overflowed, 2);
    let mut replies = 0;
    while server.poll_reply(at(1_000)).is_some() {
        replies += 1;
    }
    // Time waited: 0, 100 and 200 us.
    assert_eq!((replies, server.counters().waited), (3, Span::micros(300)));
}

#[test]
fn the_disk_holds_a_daemon() {
    let disk = disk::Terms {
        rate: BitRate::mbit(16),
        seek: Span::ZERO,
        cache: Bytes(1 << 20),
    };
    let piece = Span::micros(4_096);
    for (stable, took) in [(Stable::Sync, piece), (Stable::Unstable, Span::ZERO)] {
        let mut server = server(Terms {
            disk: Some(disk),
            ..terms()
        });
        let mut client = Client::new();
        let file = ask(&mut server, &mut client, &create(b"a"))
            .unwrap()
            .unwrap();
        let data = [1; 8_192];
        let write = Call::Write {
            file,
            offset: 0,
            stable,
            data: &data,
        };
        let message = client.message(Version::V3, &write);
        server.on_message(at(0), ME, &message);
        assert_eq!(server.poll_reply(at(0)).is_some(), took == Span::ZERO);
        assert_eq!(server.counters().held, took);
        let commit = Call::Commit {
            file,
            offset: 0,
            count: 0,
        };
        let message = client.message(Version::V3, &commit);
        server.on_message(at(0), ME, &message);
        // Either way nothing is safe before the arm was there.
        assert_eq!(server.poll_at(), Some(Instant::START.saturating_add(piece)));
    }
}

#[test]
fn strangers_are_refused() {
    let mut server = server(Terms {
        token: b"secret".to_vec(),
        ..terms()
    });
    let mut client = Client::new();
    let message = client.message(Version::V2, &Call::Null);
    server.on_message(at(0), ME, &message);
    let (_, reply) = server.poll_reply(at(0)).unwrap();
    let refused = rpc::read_reply(&mut Decoder::new(&reply)).unwrap().1;
    assert_eq!(refused, Err(Rejected::Credential(rpc::TOO_WEAK)));
    server.on_message(at(0), ME, &message[..9]);
    assert!(server.poll_reply(at(0)).is_none());
    assert_eq!(
        (server.counters().refused, server.counters().executed),
        (2, 0)
    );
}

#[test]
fn what_is_not_had_is_said() {
    let mut server = server(terms());
    for (program, version, number, why) in [
        (100_000, 2, 0, Rejected::NoProgram),
        (nfs::NFS, 4, 0, Rejected::NoVersion { low: 2, high: 3 }),
        (nfs::MOUNT, 2, 0, Rejected::NoVersion { low: 1, high: 3 }),
        (nfs::NFS, 3, 22, Rejected::NoProcedure),
        (nfs::NFS, 3, 1, Rejected::Garbage),
    ] {
        let procedure = rpc::Procedure {
            program,
            version,
            number,
        };
        let call = rpc::begin_call(number, procedure, b"", 0).finish();
        server.on_message(at(0), Caller(program.into()), &call);
        let (_, reply) = server.poll_reply(at(0)).unwrap();
        let said = rpc::read_reply(&mut Decoder::new(&reply)).unwrap().1;
        assert_eq!(said, Err(why));
    }
}

#[test]
fn handles_of_another_start_are_stale() {
    let mut server = server(terms());
    let mut client = Client::new();
    let ask = |server: &mut Server<Memory>, client: &mut Client, bytes: &[u8]| {
        let file = Handle::new(bytes).unwrap();
        super::tests::ask(server, client, &Call::GetAttributes { file })
    };
    let mut bytes = root().bytes().to_vec();
    assert_eq!(ask(&mut server, &mut client, &bytes), Ok(None));
    bytes[7] = 8;
    assert_eq!(ask(&mut server, &mut client, &bytes), Err(Status::Stale));
    bytes[7] = 7;
    bytes[15] = 99;
    assert_eq!(ask(&mut server, &mut client, &bytes), Err(Status::Stale));
    bytes[31] = 1;
    assert_eq!(
        ask(&mut server, &mut client, &bytes),
        Err(Status::BadHandle)
    );
    assert_eq!(
        ask(&mut server, &mut client, &bytes[..31]),
        Err(Status::BadHandle)
    );
}

#[test]
fn who_is_gone_gets_nothing() {
    let mut server = server(Terms {
        daemons: 1,
        service: Span::micros(10),
        ..terms()
    });
    let mut client = Client::new();
    for caller in [ME, Caller(2)] {
        let message = client.message(Version::V2, &Call::Null);
        server.on_message(at(0), caller, &message);
    }
    server.on_gone(Caller(2));
    let told: Vec<Caller> =
        std::iter::from_fn(|| server.poll_reply(at(100)).map(|(to, _)| to)).collect();
    assert_eq!(told, [ME]);
    // Timers of the client are none of the server's.
    assert_eq!(Timers::HARD.first, Span::millis(1_100));
}
