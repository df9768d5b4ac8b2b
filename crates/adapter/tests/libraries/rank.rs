//! What one rank of a test does: opens the adapter, makes its job with the others, and tells on stdout that it went well.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use sonde_adapter::{Loaded, Options, meet, open};
use sonde_measure::Wait;
use sonde_message::collectives::{Choice, Communicator, Made, Maker};
use sonde_message::{
    Call, Comm, Element, Error, Kind, Messenger, Op, Operation, Source, Status, Tagged, native,
    oracle,
};

use super::start::TIMEOUT;

/// What to do.
pub const JOB: &str = "SONDE_TEST_JOB";
/// The adapter's file.
pub const ADAPTER: &str = "SONDE_TEST_ADAPTER";
/// By which all ranks of one start are found.
pub const MARK: &str = "SONDE_TEST_MARK";
/// Options of the library.
pub const SETTINGS: &str = "SONDE_TEST_SETTINGS";
/// How many ranks there shall be.
pub const RANKS: &str = "SONDE_TEST_RANKS";
/// This rank, and where rank 0 listens, for ranks that no library starts.
pub const RANK: &str = "SONDE_TEST_RANK";
pub const PORT: &str = "SONDE_TEST_PORT";
/// How this program becomes a rank.
pub const ARGUMENTS: [&str; 4] = [
    "libraries::a_rank",
    "--exact",
    "--nocapture",
    "--test-threads=1",
];

const WORLD: Comm = Comm::WORLD;
const CASES: usize = 60;

const BLANK: Status = Status {
    from: 0,
    tag: 0,
    bytes: 0,
};

/// Any rank, where the library can receive from it; else this one.
fn any(messenger: &Loaded, rank: usize) -> Source {
    if messenger.capabilities().wildcards {
        Source::Any
    } else {
        Source::Rank(rank)
    }
}

/// Any tag, where the library can receive it; else this one.
fn whatever(messenger: &Loaded, tag: u32) -> Tagged {
    if messenger.capabilities().wildcards {
        Tagged::Any
    } else {
        Tagged::With(tag)
    }
}

/// By the clock that all processes of this machine have.
pub fn since_1970() -> Duration {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).unwrap()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Opens the adapter as a rank of the job.
fn opened(timeout: Duration) -> Loaded {
    let ranks: usize = variable(RANKS).unwrap().parse().unwrap();
    let settings = variable(SETTINGS).unwrap_or_default();
    let settings = settings.split(',').filter_map(|setting| {
        let (name, value) = setting.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    let own = std::env::current_exe().unwrap().display().to_string();
    let command = std::iter::once(own).chain(ARGUMENTS.map(str::to_owned));
    let bootstrap = variable(RANK).zip(variable(PORT)).map(|(rank, port)| {
        let boot = native::Bootstrap {
            rank: rank.parse().unwrap(),
            size: ranks,
            transport: native::Transport::Tcp,
            meeting: native::Meeting::Address(SocketAddr::from((
                [127, 0, 0, 1],
                port.parse().unwrap(),
            ))),
            own: None,
            token: "of this test".into(),
            wait: Wait::Block,
            timeout: TIMEOUT,
        };
        meet(boot).unwrap()
    });
    let options = Options {
        timeout,
        settings: settings.collect(),
        ranks: Some(ranks),
        command: command.collect(),
        bootstrap,
        ..Options::default()
    };
    let file = variable(ADAPTER).unwrap();
    let messenger = open(file.as_ref(), options).unwrap_or_else(|error| {
        let why = std::error::Error::source(&error).map(ToString::to_string);
        panic!("{error} {}", why.unwrap_or_default())
    });
    assert_eq!(messenger.size(WORLD), ranks);
    messenger
}

/// Makes the job; a rank that fails ends the others.
pub fn run(job: &str) {
    // A panic in one rank must not leave the others waiting.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        std::process::exit(3);
    }));
    let timeout = if job == "silent" {
        Duration::from_secs(1)
    } else {
        TIMEOUT
    };
    let mut messenger = opened(timeout);
    match job {
        "messages" => messages(&mut messenger),
        "requests" => requests(&mut messenger),
        "groups" => groups(&mut messenger),
        "truncated" => truncated(&mut messenger),
        "collectives" => collectives(&mut messenger),
        "facts" => facts(&mut messenger),
        "silent" => silent(&mut messenger),
        "lost" => lost(&mut messenger),
        _ => panic!("no job `{job}`"),
    }
    let (rank, ranks) = (messenger.rank(WORLD), messenger.size(WORLD));
    let facts = messenger.facts().unwrap();
    messenger.finish().unwrap();
    assert_eq!(messenger.facts().unwrap(), facts);
    if rank == 0 {
        println!("\npassed: {job} of {ranks} on {}", messenger.library());
    }
}

/// Bytes that tell a message from all others.
fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 7 + seed * 31 + at / 251) as u8)
        .collect()
}

/// Back and forth at sizes around every eager limit, in order within a tag, by wildcards, both ways at once.
fn messages(messenger: &mut Loaded) {
    let (rank, other) = (messenger.rank(WORLD), 1 - messenger.rank(WORLD));
    for (round, length) in [0, 1, 8, 1_000, 4_080, 8_192, 65_537, 1_000_000]
        .into_iter()
        .enumerate()
    {
        let tag = round as u32 * 4_681;
        let payload = bytes(length, round);
        let mut room = vec![0xee; length + 5];
        if rank == 0 {
            messenger.send(WORLD, other, tag, &payload).unwrap();
        }
        let from = if round % 2 == 0 {
            any(messenger, other)
        } else {
            Source::Rank(other)
        };
        let wanted = if round % 3 == 0 {
            whatever(messenger, tag)
        } else {
            Tagged::With(tag)
        };
        let status = messenger.recv(WORLD, from, wanted, &mut room).unwrap();
        assert_eq!(
            (status.from, status.tag, status.bytes),
            (other, tag, length)
        );
        assert!(room[..length] == payload, "{length} bytes came otherwise");
        assert!(
            room[length..].iter().all(|byte| *byte == 0xee),
            "beyond the message"
        );
        if rank == 1 {
            messenger.send(WORLD, other, tag, &payload).unwrap();
        }
    }
    tags_are_told_apart(messenger);
    both_ways_at_once(messenger);
    if messenger.capabilities().probe {
        looked_at_before(messenger);
    }
}

/// Another tag does not overtake, and is not taken for it.
fn tags_are_told_apart(messenger: &mut Loaded) {
    let (rank, other) = (messenger.rank(WORLD), 1 - messenger.rank(WORLD));
    if rank == 0 {
        for (tag, byte) in [(1, 10), (2, 20), (1, 11)] {
            messenger.send(WORLD, other, tag, &[byte]).unwrap();
        }
    } else {
        let mut room = [0];
        for (tag, byte) in [(2, 20), (1, 10), (1, 11)] {
            messenger
                .recv(WORLD, Source::Rank(0), Tagged::With(tag), &mut room)
                .unwrap();
            assert_eq!(room, [byte]);
        }
    }
}

/// Larger than any eager limit, both ways at once, with one to itself.
fn both_ways_at_once(messenger: &mut Loaded) {
    let (rank, other) = (messenger.rank(WORLD), 1 - messenger.rank(WORLD));
    let (out, own) = (bytes(300_000, rank), [rank as u8; 3]);
    let (mut back, mut again) = (vec![0; 300_000], [0; 3]);
    let mut ops = [
        Op::Recv {
            from: Source::Rank(rank),
            tag: Tagged::With(6),
            room: &mut again,
        },
        Op::Send {
            to: other,
            tag: 5,
            payload: &out,
        },
        Op::Send {
            to: rank,
            tag: 6,
            payload: &own,
        },
        Op::Recv {
            from: any(messenger, other),
            tag: Tagged::With(5),
            room: &mut back,
        },
    ];
    let mut statuses = [BLANK; 4];
    messenger.exchange(WORLD, &mut ops, &mut statuses).unwrap();
    let come = [
        (rank, 6, 3),
        (other, 5, 300_000),
        (rank, 6, 3),
        (other, 5, 300_000),
    ];
    assert_eq!(statuses.map(|s| (s.from, s.tag, s.bytes)), come);
    assert!(back == bytes(300_000, other) && again == own);
}

fn looked_at_before(messenger: &mut Loaded) {
    let (rank, other) = (messenger.rank(WORLD), 1 - messenger.rank(WORLD));
    if rank == 0 {
        messenger.send(WORLD, other, 77, &[1, 2, 3]).unwrap();
    } else {
        let begin = Instant::now();
        let seen = loop {
            if let Some(seen) = messenger
                .iprobe(WORLD, Source::Any, Tagged::With(77))
                .unwrap()
            {
                break seen;
            }
            assert!(begin.elapsed() < TIMEOUT, "nothing to be seen");
        };
        assert_eq!((seen.from, seen.tag, seen.bytes), (0, 77, 3));
        assert_eq!(
            messenger
                .iprobe(WORLD, Source::Any, Tagged::With(78))
                .unwrap(),
            None
        );
        messenger
            .recv(WORLD, Source::Rank(0), Tagged::Any, &mut [0; 3])
            .unwrap();
    }
}

/// A window of posted transfers, finished in another order than posted; the receive posted first is served first.
fn requests(messenger: &mut Loaded) {
    let (rank, ranks) = (messenger.rank(WORLD), messenger.size(WORLD));
    let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let lengths = [3, 60_000, 17, 200_000, 1, 9_000];
    let post = |messenger: &mut Loaded| {
        let receives = lengths.map(|length| {
            let room = vec![0; length];
            messenger
                .irecv(WORLD, Source::Rank(from), Tagged::With(4), room)
                .unwrap()
        });
        let sends = [0, 1, 2, 3, 4, 5].map(|at| {
            let payload = bytes(lengths[at], rank + at);
            messenger.isend(WORLD, to, 4, payload).unwrap()
        });
        (receives, sends)
    };
    let (receives, sends) = post(messenger);
    for (at, request) in sends.into_iter().enumerate().rev() {
        let done = messenger.wait(request).unwrap();
        assert_eq!((done.status.from, done.status.bytes), (to, lengths[at]));
        assert!(
            done.buffer == bytes(lengths[at], rank + at),
            "the bytes come back"
        );
    }
    for (at, request) in receives.into_iter().enumerate().rev() {
        let done = messenger.wait(request).unwrap();
        assert_eq!(
            (done.status.from, done.status.tag, done.status.bytes),
            (from, 4, lengths[at])
        );
        assert!(
            done.buffer == bytes(lengths[at], from + at),
            "transfer {at}"
        );
    }
    // The same by tests alone.
    let (receives, sends) = post(messenger);
    let begin = Instant::now();
    let mut open: Vec<_> = receives.into_iter().chain(sends).collect();
    while !open.is_empty() {
        let mut still = Vec::new();
        for request in open {
            match messenger.test(request).unwrap() {
                Ok(done) => assert!(done.buffer.len() == done.status.bytes),
                Err(request) => still.push(request),
            }
        }
        open = still;
        assert!(begin.elapsed() < TIMEOUT, "{} are not done", open.len());
    }
    messenger.progress().unwrap();
}

/// Split by parity with the order turned round, split again, and each kept apart from the world.
fn groups(messenger: &mut Loaded) {
    let (rank, ranks) = (messenger.rank(WORLD), messenger.size(WORLD));
    let colour = Some(rank as u32 % 2);
    let half = messenger
        .split(WORLD, colour, -(rank as i32))
        .unwrap()
        .unwrap();
    let (own, size) = (messenger.rank(half), messenger.size(half));
    assert_eq!(size, ranks / 2);
    assert_eq!(own, size - 1 - rank / 2, "in the order of keys");
    // The same tag in both groups; what is the world's is not taken for the half's.
    let next = (rank + 1) % ranks;
    let world = messenger
        .isend(WORLD, next, 9, vec![200 + rank as u8])
        .unwrap();
    let inner = messenger
        .isend(half, (own + 1) % size, 9, vec![rank as u8])
        .unwrap();
    let mut room = [0];
    let status = messenger
        .recv(
            half,
            any(messenger, (own + size - 1) % size),
            whatever(messenger, 9),
            &mut room,
        )
        .unwrap();
    assert_eq!(status.from, (own + size - 1) % size);
    let sender = rank % 2 + 2 * (size - 1 - status.from);
    assert_eq!(room, [sender as u8]);
    let status = messenger
        .recv(
            WORLD,
            any(messenger, (rank + ranks - 1) % ranks),
            Tagged::With(9),
            &mut room,
        )
        .unwrap();
    assert_eq!(
        (status.from, room[0]),
        ((rank + ranks - 1) % ranks, 200 + status.from as u8)
    );
    messenger.wait(inner).unwrap();
    messenger.wait(world).unwrap();
    // Only rank 0 of each half goes on.
    let one = messenger.split(half, (own == 0).then_some(0), 0).unwrap();
    assert_eq!(one.is_some(), own == 0);
    if let Some(one) = one {
        assert_eq!((messenger.rank(one), messenger.size(one)), (0, 1));
    }
    // A collective of sonde's own over a group.
    let mut group = Communicator::new(messenger, half, Choice::default());
    let mut sum = [0_i64];
    group
        .allreduce(&[rank as i64], &mut sum, Operation::Sum)
        .unwrap();
    assert_eq!(
        sum[0] as usize,
        (0..size).map(|at| rank % 2 + 2 * at).sum::<usize>()
    );
}

/// A message longer than its room is an error that names it, and the rank goes on.
fn truncated(messenger: &mut Loaded) {
    let other = 1 - messenger.rank(WORLD);
    if messenger.rank(WORLD) == 0 {
        messenger.send(WORLD, other, 1, &[1; 100]).unwrap();
        messenger.send(WORLD, other, 2, &[2; 100]).unwrap();
        messenger.send(WORLD, other, 3, &[3; 4]).unwrap();
    } else {
        let told = |error: Error, wanted: u32| match error {
            Error::Truncated {
                from,
                tag,
                room,
                bytes,
            } => {
                assert_eq!((from, tag, room), (0, wanted, 10));
                println!("\nthe library tells {bytes} of 100 bytes");
            }
            error => panic!("{error}"),
        };
        let room = &mut [0; 10];
        told(
            messenger
                .recv(WORLD, Source::Rank(0), Tagged::With(1), room)
                .unwrap_err(),
            1,
        );
        let posted = messenger
            .irecv(WORLD, Source::Rank(0), Tagged::With(2), vec![0; 10])
            .unwrap();
        told(messenger.wait(posted).unwrap_err(), 2);
        messenger
            .recv(WORLD, Source::Rank(0), Tagged::With(3), room)
            .unwrap();
        assert_eq!(room[..4], [3; 4]);
    }
}

/// The library's own where it has them, sonde's over its messages, each against the oracle.
fn collectives(messenger: &mut Loaded) {
    let own = messenger.capabilities().collectives;
    for case in oracle::cases(0x5eed, CASES) {
        oracle::check(messenger, &case).unwrap();
    }
    if own != 0 {
        let mut by_library = 0;
        for mut case in oracle::cases(0xfeed, CASES) {
            case.maker = Maker::Either;
            let made = oracle::check(messenger, &case).unwrap();
            by_library += usize::from(matches!(made, Made::Library));
        }
        assert!(by_library > CASES * 3 / 4, "{by_library} of {CASES}");
    }
    // One that cannot be is refused before it reaches the library.
    let mut call = Call::Allreduce {
        input: &[0; 12],
        output: &mut [0; 8],
        element: Element::F64,
        operation: Operation::Sum,
    };
    if own & (1 << Kind::Allreduce as u32) != 0 {
        assert!(matches!(
            messenger.collective(WORLD, &mut call),
            Err(Error::Argument { .. })
        ));
    } else {
        assert!(!messenger.collective(WORLD, &mut call).unwrap());
    }
}

fn facts(messenger: &mut Loaded) {
    let other = 1 - messenger.rank(WORLD);
    let mut room = [0; 8];
    let mut ops = [
        Op::Send {
            to: other,
            tag: 0,
            payload: &[1; 8],
        },
        Op::Recv {
            from: any(messenger, other),
            tag: whatever(messenger, 0),
            room: &mut room,
        },
    ];
    messenger
        .exchange(WORLD, &mut ops, &mut [BLANK; 2])
        .unwrap();
    let facts = messenger.facts().unwrap();
    let transport = facts.transport.as_ref().unwrap().0.as_str();
    assert!(!transport.is_empty(), "{facts:?}");
    assert!(
        facts.version.is_some() && facts.adapter.is_some(),
        "{facts:?}"
    );
    assert!(facts.thread_level.is_some(), "{facts:?}");
    let settings = variable(SETTINGS).unwrap();
    match messenger.library().as_str() {
        "openmpi" => assert_eq!(transport, "vader", "{facts:?}"),
        "mpich" => assert!(facts.device.unwrap().0.starts_with("ch")),
        "pvm" => assert!(settings.contains(&format!("route={}", facts.route.unwrap().0))),
        _ => {
            let wanted = settings.split_once('=').unwrap().1;
            assert!(transport.contains(wanted), "{facts:?}");
            assert!(facts.provider.unwrap().0.contains(wanted));
        }
    }
    if messenger.rank(WORLD) == 0 {
        println!("\nfacts: {:?}", messenger.facts());
    }
}

/// Rank 1 never sends; who waits is told so when the timeout is over.
fn silent(messenger: &mut Loaded) {
    if messenger.rank(WORLD) == 1 {
        std::thread::sleep(Duration::from_secs(8));
        std::process::exit(4);
    }
    let begin = Instant::now();
    let error = messenger
        .recv(WORLD, Source::Rank(1), Tagged::With(3), &mut [0; 8])
        .unwrap_err();
    assert!(
        matches!(error, Error::Silent { rank: Some(1), .. }),
        "{error}"
    );
    assert!(begin.elapsed() >= Duration::from_secs(1), "before its time");
    let again = messenger.send(WORLD, 1, 0, &[1]).unwrap_err();
    assert!(again.to_string().contains("it failed before"), "{again}");
    println!("\nsilent as wanted: {error}");
    // A launcher of MPICH passes on no more once a rank has aborted, not even what was printed before.
    std::thread::sleep(Duration::from_millis(500));
    messenger.abort("the other rank is silent");
    std::process::exit(5);
}

/// Rank 1 is killed; the others wait for it, or for each other.
fn lost(messenger: &mut Loaded) {
    let (rank, ranks) = (messenger.rank(WORLD), messenger.size(WORLD));
    // All have begun and have spoken with each other.
    let mut sum = [0_i64];
    let mut world = Communicator::new(messenger, WORLD, Choice::default());
    world.allreduce(&[1], &mut sum, Operation::Sum).unwrap();
    assert_eq!(sum[0] as usize, ranks);
    if rank == 0 {
        println!("\nlosing rank 1 at {}", since_1970().as_nanos());
        messenger.send(WORLD, 1, 2, &[1]).unwrap();
    }
    if rank == 1 {
        messenger
            .recv(WORLD, Source::Rank(0), Tagged::With(2), &mut [0])
            .unwrap();
        // What rank 0 said is to reach whoever started it before all are ended.
        std::thread::sleep(Duration::from_millis(300));
        let own = std::process::id().to_string();
        drop(Command::new("kill").args(["-9", &own]).status());
    }
    let from = (rank + 1) % ranks;
    let begin = Instant::now();
    match messenger.recv(WORLD, Source::Rank(from), Tagged::With(3), &mut [0; 8]) {
        Ok(_) => panic!("nobody sends"),
        Err(error) => {
            eprintln!("rank {rank} after {:?}: {error}", begin.elapsed());
            messenger.abort("a rank is lost");
            std::process::exit(2);
        }
    }
}
