//! Ranks that are processes: they join, one is killed, one never comes, one does not belong, ten thousand others come meanwhile.
//!
//! Each process is this test program again, as the one test [`a_rank`], which does nothing without its environment.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sonde_measure::{Text, Wait};
use sonde_message::native::{Bootstrap, Meeting, Transport};
use sonde_message::{Comm, Error, Messenger, Op, Source, Status, Tagged};

const WORLD: Comm = Comm::WORLD;
const RANKS: usize = 4;
/// A lost rank ends the others within this.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(60);

/// One rank, if its environment says so: `rank size transport wait meeting token timeout-in-ms what`.
#[test]
fn a_rank() {
    let Ok(text) = std::env::var("SONDE_TEST_RANK") else {
        return;
    };
    let parts: Vec<&str> = text.split(' ').collect();
    let [rank, size, transport, wait, meeting, token, timeout, what] = parts[..] else {
        panic!("a rank is told `{text}`");
    };
    let transport = Transport::ALL
        .into_iter()
        .find(|one| one.name() == transport);
    let boot = Bootstrap {
        rank: rank.parse().unwrap(),
        size: size.parse().unwrap(),
        transport: transport.unwrap(),
        meeting: match meeting.parse() {
            Ok(address) => Meeting::Address(address),
            Err(_) => Meeting::Name(meeting.into()),
        },
        own: None,
        token: token.into(),
        wait: if wait == "poll" {
            Wait::Poll
        } else {
            Wait::Block
        },
        timeout: Duration::from_millis(timeout.parse().unwrap()),
    };
    let said = match boot.join() {
        Err(error) => error.to_string(),
        Ok(mut messenger) => act(what, &mut *messenger),
    };
    println!("said: {said}");
}

/// What a rank does; what it says of it.
fn act(what: &str, messenger: &mut dyn Messenger) -> String {
    let rank = messenger.rank(WORLD);
    if what == "converse" {
        let said = converse(messenger);
        messenger.finish().unwrap();
        return said;
    }
    if what == "counted" {
        converse(messenger);
        let refused = messenger.strangers();
        messenger.finish().unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let most = most.unwrap().trim().trim_end_matches(" kB");
        return format!("{refused} {most}");
    }
    // The last rank waits to be killed; the others wait for one another, or for it, or for anybody.
    println!("joined");
    let wanted = match (what, rank) {
        (_, 3) => Source::Rank(0),
        ("large", _) => {
            // A message that the lost rank never takes.
            let error = messenger.send(WORLD, 3, 0, &vec![7; 32 << 20]).unwrap_err();
            return told(&error);
        }
        (_, 0) => Source::Rank(1),
        (_, 1) => Source::Any,
        _ => Source::Rank(3),
    };
    let tag = if rank == 3 {
        Tagged::With(99)
    } else {
        Tagged::Any
    };
    let came = messenger.recv(WORLD, wanted, tag, &mut [0; 8]);
    told(&came.unwrap_err())
}

fn told(error: &Error) -> String {
    match error {
        Error::Lost { rank, .. } => format!("lost {rank}: {error}"),
        other => other.to_string(),
    }
}

/// Messages of many sizes round a ring, both ways at once.
fn converse(messenger: &mut dyn Messenger) -> String {
    let (rank, size) = (messenger.rank(WORLD), messenger.size(WORLD));
    let mut bytes = 0;
    for count in [0, 8, 500, 40_000, 3_000_000] {
        let payload: Vec<u8> = (0..count).map(|at| (at * 3 + rank) as u8).collect();
        let next = (rank + 1) % size;
        let last = (rank + size - 1) % size;
        let mut room = vec![0; count];
        let nothing = Status {
            from: 0,
            tag: 0,
            bytes: 0,
        };
        let mut ops = [
            Op::Send {
                to: next,
                tag: 1,
                payload: &payload,
            },
            Op::Recv {
                from: Source::Rank(last),
                tag: Tagged::With(1),
                room: &mut room,
            },
        ];
        let mut statuses = [nothing; 2];
        messenger.exchange(WORLD, &mut ops, &mut statuses).unwrap();
        assert_eq!(statuses[1].bytes, count);
        assert!((0..count).all(|at| room[at] == (at * 3 + last) as u8));
        bytes += count;
    }
    let long = messenger.facts().unwrap().long_messages.unwrap();
    format!("{bytes} bytes, {}", long.write())
}

/// A job of processes.
struct Job {
    meeting: String,
    transport: Transport,
    /// How ranks wait, for how long in milliseconds, and what they do.
    told: [String; 3],
    ranks: Vec<(usize, Child)>,
}

impl Job {
    fn start(
        (transport, wait): (Transport, &str),
        ranks: impl IntoIterator<Item = (usize, &'static str)>,
        timeout: Duration,
        what: &str,
    ) -> Self {
        let mut job = Self {
            meeting: match transport {
                Transport::Tcp => crate::port().to_string(),
                _ => format!("{}.{what}.{wait}.{}", std::process::id(), transport.name()),
            },
            transport,
            told: [wait.into(), timeout.as_millis().to_string(), what.into()],
            ranks: Vec::new(),
        };
        for (rank, token) in ranks {
            job.come(rank, token);
        }
        job
    }

    /// One rank more.
    fn come(&mut self, rank: usize, token: &str) {
        let [wait, timeout, what] = &self.told;
        let (transport, meeting) = (self.transport.name(), &self.meeting);
        let told = format!("{rank} {RANKS} {transport} {wait} {meeting} {token} {timeout} {what}");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "join::a_rank", "--nocapture"])
            .env("SONDE_TEST_RANK", told)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        self.ranks.push((rank, command.spawn().unwrap()));
    }

    /// What each rank said at its end.
    fn said(mut self) -> Vec<String> {
        self.ranks
            .drain(..)
            .map(|(_, mut child)| {
                let mut text = String::new();
                child
                    .stdout
                    .take()
                    .unwrap()
                    .read_to_string(&mut text)
                    .unwrap();
                child.wait().unwrap();
                let said = text
                    .lines()
                    .filter_map(|line| line.split("said: ").nth(1))
                    .next();
                said.unwrap_or_default().to_string()
            })
            .collect()
    }

    /// Waits until a rank has written a line with this word.
    fn await_word(&mut self, at: usize, word: &str) {
        let stdout = self.ranks[at].1.stdout.as_mut().unwrap();
        let mut text = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&text).contains(word) {
            assert_eq!(stdout.read(&mut byte).unwrap(), 1, "a rank ended early");
            text.push(byte[0]);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for (_, child) in &mut self.ranks {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn all(token: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    (0..RANKS).map(move |rank| (rank, token))
}

#[test]
fn processes_are_ranks() {
    for transport in Transport::ALL {
        let job = Job::start((transport, "block"), all("t"), TIMEOUT, "converse");
        for said in job.said() {
            assert!(said.contains("3040508 bytes"), "{transport:?}: {said}");
            if transport == Transport::Shm {
                println!("{said}");
            }
        }
    }
}

/// Names of sonde's in the folders where such things are left, and abstract sockets of a meeting's.
fn left_over(meeting: &str) -> Vec<String> {
    let mut left = Vec::new();
    for folder in ["/dev/shm", "/tmp"] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.contains("sonde.native") {
                left.push(format!("{folder}/{name}"));
            }
        }
    }
    let own = format!("@sonde.native.{meeting}");
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    left.extend(
        sockets
            .lines()
            .filter(|line| line.contains(&own))
            .map(String::from),
    );
    left
}

fn a_lost_rank_ends_the_others(transport: Transport) {
    for (wait, what) in [("block", "recv"), ("poll", "recv"), ("block", "large")] {
        let mut job = Job::start((transport, wait), all("t"), TIMEOUT, what);
        for at in 0..RANKS {
            job.await_word(at, "joined");
        }
        // They are in their calls by now, or will find out when they get there.
        std::thread::sleep(Duration::from_millis(100));
        let (_, lost) = &mut job.ranks[3];
        lost.kill().unwrap();
        lost.wait().unwrap();
        let begin = Instant::now();
        let meeting = job.meeting.clone();
        let said = job.said();
        let ended = begin.elapsed();
        for said in &said[..3] {
            assert!(
                said.starts_with("lost 3"),
                "{transport:?} {wait} {what}: `{said}`"
            );
        }
        println!(
            "{transport:?} {wait} {what}: the others ended after {ended:?}: {}",
            said[0]
        );
        assert!(ended < ENDS_WITHIN, "{transport:?}: {ended:?}");
        assert_eq!(left_over(&meeting), Vec::<String>::new());
    }
}

#[test]
fn a_lost_rank_ends_the_others_over_tcp() {
    a_lost_rank_ends_the_others(Transport::Tcp);
}

#[test]
fn a_lost_rank_ends_the_others_over_unix() {
    a_lost_rank_ends_the_others(Transport::Unix);
}

#[test]
fn a_lost_rank_ends_the_others_over_shm() {
    a_lost_rank_ends_the_others(Transport::Shm);
}

#[test]
fn a_rank_that_never_comes_is_named() {
    for transport in Transport::ALL {
        let timeout = Duration::from_millis(1_500);
        let some = all("t").filter(|(rank, _)| *rank != 2);
        let job = Job::start((transport, "block"), some, timeout, "absent");
        for said in job.said() {
            assert!(said.contains("is rank 2 running"), "{transport:?}: {said}");
            assert!(
                said.contains("rank 2 of 4 has not come"),
                "{transport:?}: {said}"
            );
        }
        // Without rank 0 there is no meeting.
        let job = Job::start((transport, "block"), all("t").skip(3), timeout, "alone");
        let said = job.said().remove(0);
        assert!(said.contains("is rank 0 running"), "{transport:?}: {said}");
        assert!(
            said.contains("cannot be reached at"),
            "{transport:?}: {said}"
        );
    }
}

#[test]
fn who_has_another_token_is_sent_away() {
    for transport in Transport::ALL {
        let timeout = Duration::from_millis(1_500);
        let ranks = (0..RANKS).map(|rank| (rank, if rank == 1 { "stolen" } else { "t" }));
        let job = Job::start((transport, "block"), ranks, timeout, "token");
        let said = job.said();
        assert!(
            said[1].contains("have all ranks the same token"),
            "{transport:?}: {}",
            said[1]
        );
        for said in [&said[0], &said[2], &said[3]] {
            assert!(
                said.contains("rank 1 of 4 has not come; ranks of other runs refused: 1"),
                "{transport:?}: {said}"
            );
        }
    }
}

/// They say nothing, a request of the web, half of a hello, or the hello of another run; one in five says it a byte at a time.
#[test]
fn ten_thousand_others_at_a_meeting_are_counted_and_change_nothing() {
    const COUNT: usize = 10_000;
    let mut job = Job::start(
        (Transport::Tcp, "block"),
        all("t").take(3),
        TIMEOUT,
        "counted",
    );
    let hello = "sonde native 1\ntcp\n4\nstolen\n3\n127.0.0.1:9";
    let mut record = u32::try_from(hello.len()).unwrap().to_le_bytes().to_vec();
    record.extend(hello.as_bytes());
    let words: [&[u8]; 5] = [b"", b"GET / HTTP/1.1\r\n\r\n", &record[..20], &record, b""];
    let begin = Instant::now();
    let (mut here, mut answered) = (VecDeque::new(), 0);
    let mut leave = |mut stranger: TcpStream| {
        stranger.set_nonblocking(true).unwrap();
        answered += usize::from(matches!(stranger.read(&mut [0; 8]), Ok(1..)));
    };
    let mut came = 0;
    while came < COUNT {
        let mut stranger = match TcpStream::connect(&job.meeting) {
            Ok(stranger) => stranger,
            // The meeting is not open yet.
            Err(error) => {
                assert!(came == 0 && begin.elapsed() < TIMEOUT, "{came}: {error}");
                continue;
            }
        };
        drop(stranger.write_all(words[came % words.len()]));
        came += 1;
        here.push_back(stranger);
        let slow = here.len().saturating_sub(20);
        for stranger in here.iter_mut().skip(slow).step_by(5) {
            drop(stranger.write(&record[..1]));
        }
        if here.len() > 200 {
            leave(here.pop_front().unwrap());
        }
    }
    job.come(3, "t");
    let said = job.said();
    here.into_iter().for_each(leave);
    let of_rank_0: Vec<usize> = said[0]
        .split(' ')
        .map(|word| word.parse().unwrap_or_else(|_| panic!("{said:?}")))
        .collect();
    println!("{came} came to rank 0: counted, KiB: {of_rank_0:?}");
    assert_eq!((of_rank_0[0], answered), (COUNT, 0));
    assert!(of_rank_0[1] < 16 << 10, "{of_rank_0:?}");
    for said in &said[1..] {
        assert!(said.starts_with("0 "), "{said}");
    }
}
