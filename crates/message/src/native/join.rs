//! How processes become the ranks of a job: rank 0 listens, the others come, all learn of all.
//!
//! Model:   each other rank comes to the meeting with the run's token, its number, and how it can be reached. When all are
//!          there rank 0 tells each of all; then ranks connect to those of lower numbers (`tcp`, `unix`) or map the memory of
//!          the others (`shm`), say that they are ready, and go when rank 0 says so. Who comes without the token is sent
//!          away; all who come are heard at a time, within bounds, so that none of them holds a rank up. Every wait ends with
//!          the timeout: then the ranks that never came are named, to those that did too.
//! Source:  unix(7) for abstract names, which are in no folder and go with their processes, and for SCM_RIGHTS.
//! Units:   ranks from zero.
//! Checked: `tests/join.rs`, with processes.
//!
//! The token is sent as it is: it keeps strangers and other runs out, not who can read the network.

use std::cell::Cell;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use sonde_channel::{Arrivals, Bounds, Mesh, Said, inbox_bytes, readable};
use sonde_measure::Wait;
use sonde_sys::foreign;
use sonde_sys::shared::{self, Shared};

use super::family::{Family, TcpFamily, UnixFamily};
use super::messenger::{Manner, Native};
use super::record::{LENGTH_BYTES, Part, part_of_record, read_record, said, write_record};
use super::shm::{self, Rings};
use super::stream::{self, Lines};
use crate::{Error, Messenger, Result};

/// What those may take who have not said who they are.
const UNKNOWN: Bounds = Bounds {
    at_a_time: 512,
    bytes: 4 << 10,
    within: Duration::from_secs(3),
};
/// Those that are taken before the others are heard again: each is heard some times, however many come.
const AT_ONCE: usize = 32;
/// Those that may wait as a port is closed; the kernel's own bound, net.core.somaxconn, is as much.
const WAITING_MAX: usize = 4_096;
/// Rank 0 decides who has never come; the others give it so much longer to say so.
const DECISION_WITHIN: Duration = Duration::from_secs(3);
/// Between two attempts to reach rank 0.
const AGAIN_AFTER: Duration = Duration::from_millis(10);
/// What ranks show one another to find out whether memory can be copied.
const SHOWN: u64 = 0x736f_6e64_6520_6c79;

/// What carries messages among processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UNIX sockets.
    Unix,
    /// Shared memory.
    Shm,
}

/// Where ranks meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meeting {
    /// For `tcp`: the address and port of rank 0.
    Address(SocketAddr),
    /// For `unix` and `shm`: any name, which nobody else on the machine uses. It is in no folder.
    Name(String),
}

/// What a process has to know to become a rank.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    /// Which rank.
    pub rank: usize,
    /// Of how many.
    pub size: usize,
    /// By what messages go.
    pub transport: Transport,
    /// Where all meet.
    pub meeting: Meeting,
    /// For `tcp`: the address by which the others reach this rank; without one, that from which it reaches rank 0.
    pub own: Option<IpAddr>,
    /// The run's secret.
    pub token: String,
    /// How it waits.
    pub wait: Wait,
    /// How long nothing may move, and how long others may take to come.
    pub timeout: Duration,
}

impl Transport {
    /// All, in the order of help texts.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Unix, Self::Shm];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Shm => "shm",
        }
    }
}

/// A rank on its way in.
struct Joining<'a> {
    boot: &'a Bootstrap,
    end: Instant,
    /// Who came, and is no rank of this run.
    strangers: Cell<u64>,
}

/// Who has come to a meeting.
struct Arrival<S> {
    stream: S,
    /// How it can be reached, or what else it said of itself.
    says: String,
}

impl Bootstrap {
    /// Becomes a rank: returns when all have.
    ///
    /// # Errors
    /// An argument cannot be; the meeting cannot be held; a rank has not come within the timeout, or went away meanwhile.
    pub fn join(&self) -> Result<Box<dyn Messenger>> {
        self.check()?;
        let joining = Joining {
            boot: self,
            end: Instant::now() + self.timeout,
            strangers: Cell::new(0),
        };
        let manner = Manner {
            wait: self.wait,
            timeout: self.timeout,
        };
        let who = (self.rank, self.size);
        match (self.transport, &self.meeting) {
            (Transport::Tcp, Meeting::Address(meeting)) => {
                let family = TcpFamily { own: self.own };
                let lines = joining.lines(&family, &meeting.to_string())?;
                let native = Native::new(who, "tcp", stream::LIMITS, lines, manner);
                Ok(Box::new(native.joined_among(joining.strangers.get())))
            }
            (Transport::Unix, Meeting::Name(meeting)) => {
                let lines = joining.lines(&UnixFamily, meeting)?;
                let native = Native::new(who, "unix", stream::LIMITS, lines, manner);
                Ok(Box::new(native.joined_among(joining.strangers.get())))
            }
            (Transport::Shm, Meeting::Name(meeting)) => {
                let rings = joining.rings(meeting)?;
                let native = Native::new(who, "shm", shm::LIMITS, rings, manner);
                Ok(Box::new(native.joined_among(joining.strangers.get())))
            }
            (transport, meeting) => Err(Error::Argument {
                what: "the meeting",
                value: format!("{meeting:?}"),
                wanted: match transport {
                    Transport::Tcp => "an address with a port, for `tcp`".into(),
                    _ => format!("a name, for `{}`", transport.name()),
                },
            }),
        }
    }

    fn check(&self) -> Result<()> {
        if self.rank >= self.size {
            return Err(Error::Argument {
                what: "the rank",
                value: self.rank.to_string(),
                wanted: format!("below the number of ranks, {}", self.size),
            });
        }
        if self.token.is_empty() || self.token.contains('\n') {
            return Err(Error::Argument {
                what: "the token",
                value: format!("{} bytes", self.token.len()),
                wanted: "one line that is not empty".into(),
            });
        }
        Ok(())
    }
}

/// Whether two tokens are the same, in a time that does not tell how far they are.
fn same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    let differing = pairs.fold(0, |differing, (a, b)| differing | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differing) == 0
}

impl Joining<'_> {
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    fn refused(&self, what: impl Into<String>, why: impl ToString) -> Error {
        Error::Refused {
            library: "native".into(),
            what: what.into(),
            why: why.to_string(),
        }
    }

    fn silent(&self, rank: usize, what: &str) -> Error {
        Error::Silent {
            rank: Some(rank),
            during: format!("joining: {what}"),
            timeout: self.boot.timeout,
        }
    }

    fn lost(&self, rank: usize, why: impl ToString) -> Error {
        Error::Lost {
            rank,
            during: "joining".into(),
            why: why.to_string(),
        }
    }

    /// What a rank says first: the run, itself, and what only some need.
    fn hello(&self, says: &str) -> String {
        let Bootstrap {
            rank, size, token, ..
        } = self.boot;
        let transport = self.boot.transport.name();
        format!("sonde native 1\n{transport}\n{size}\n{token}\n{rank}\n{says}")
    }

    /// Who says hello: its rank, and what it says of itself. `None` for strangers.
    fn known(&self, hello: &str) -> Option<(usize, String)> {
        let mut parts = hello.splitn(6, '\n');
        let mut next = || parts.next();
        let (version, transport, size) = (next()?, next()?, next()?);
        let is_ours = same(next()?, &self.boot.token);
        let (rank, says) = (next()?.parse().ok()?, next()?.to_string());
        let is_alike = version == "sonde native 1"
            && transport == self.boot.transport.name()
            && size == self.boot.size.to_string();
        (is_ours && is_alike && rank < self.boot.size).then_some((rank, says))
    }

    /// Waits until all of these ranks have come; gives them in order of rank, with none for others.
    fn gather<F: Family>(
        &self,
        listener: &F::Listener,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<Option<Arrival<F::Stream>>>> {
        let size = self.boot.size;
        let mut arrivals: Vec<Option<Arrival<F::Stream>>> = (0..size).map(|_| None).collect();
        let mut unknown = Arrivals::new(UNKNOWN);
        loop {
            let absent: Vec<usize> = (0..size)
                .filter(|rank| wanted(*rank) && arrivals[*rank].is_none())
                .collect();
            let Some(first) = absent.first() else {
                // Those who wait at this moment are closed with the port.
                let waiting = std::iter::from_fn(|| F::accept(listener).ok());
                for (stream, from) in waiting.take(WAITING_MAX) {
                    unknown.come(stream, from, LENGTH_BYTES);
                }
                let strangers = self.strangers.get() + unknown.close().count;
                self.strangers.set(strangers);
                return Ok(arrivals);
            };
            let left = unknown.left().unwrap_or(self.left()).min(self.left());
            let descriptors: Vec<_> = std::iter::once(listener.as_fd())
                .chain(unknown.descriptors())
                .collect();
            let woken = readable(&descriptors, left);
            woken.map_err(|error| self.refused("waiting for ranks", error))?;
            drop(descriptors);
            // Some at a time, so that those who came before are heard between them.
            for _ in 0..AT_ONCE {
                let Ok((stream, from)) = F::accept(listener) else {
                    break;
                };
                unknown.come(stream, from, LENGTH_BYTES);
            }
            let known = unknown.hear(|_, said| match part_of_record(said) {
                Ok(Part::Wants(more)) => Said::Wants(more),
                Ok(Part::Whole(hello)) => match self.known(&hello) {
                    Some(known) => Said::Peer(known),
                    None => Said::Unknown("of another run".into()),
                },
                Err(why) => Said::Unknown(why),
            });
            for (stream, (rank, says)) in known {
                let is_wanted = wanted(rank) && arrivals[rank].is_none();
                if is_wanted && F::bound(&stream, self.left() + DECISION_WITHIN).is_ok() {
                    arrivals[rank] = Some(Arrival { stream, says });
                } else {
                    unknown.turn_away(format!("rank {rank}"), "not expected, or here already");
                }
            }
            if self.left().is_zero() && arrivals[*first].is_none() {
                let text = absence(&absent, size, unknown.close().count);
                for arrival in arrivals.iter_mut().flatten() {
                    drop(write_record(
                        &mut arrival.stream,
                        &format!("no\n{first}\n{text}"),
                    ));
                }
                return Err(self.silent(*first, &text));
            }
        }
    }

    /// Reaches a rank that listens, or will: until the timeout ends.
    fn reach<F: Family>(&self, family: &F, rank: usize, address: &str) -> Result<F::Stream> {
        loop {
            let left = self.left();
            match family.dial(address, left) {
                Ok(stream) => return Ok(stream),
                Err(_) if self.left() > AGAIN_AFTER => std::thread::sleep(AGAIN_AFTER),
                Err(error) => {
                    let text = format!("it cannot be reached at {address}: {error}");
                    return Err(self.silent(rank, &text));
                }
            }
        }
    }

    /// Why nothing is heard of rank 0.
    fn unheard(&self, error: &std::io::Error) -> Error {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => self
                .lost(
                    0,
                    "it closed the meeting: have all ranks the same token, size, transport and version?",
                ),
            ErrorKind::WouldBlock => self.silent(0, "it does not answer"),
            _ => self.lost(0, error),
        }
    }

    /// Hears what rank 0 has decided: what comes after the word `go`.
    fn decision<F: Family>(&self, stream: &mut F::Stream) -> Result<String> {
        let bounded = F::bound(stream, self.left() + DECISION_WITHIN);
        let heard = bounded.and_then(|()| read_record(stream));
        let heard = heard.map_err(|error| self.unheard(&error))?;
        if let Some(rest) = heard.strip_prefix("go\n") {
            return Ok(rest.into());
        }
        let mut parts = heard.splitn(3, '\n');
        let rank = parts.nth(1).and_then(|rank| rank.parse().ok());
        Err(self.silent(rank.unwrap_or(0), parts.next().unwrap_or("rank 0 refuses")))
    }

    /// Nobody goes before all are ready.
    fn start<F: Family>(&self, streams: &mut [Option<F::Stream>]) -> Result<()> {
        let within = self.left() + DECISION_WITHIN;
        if self.boot.rank == 0 {
            for (rank, stream) in streams.iter_mut().enumerate() {
                let Some(stream) = stream else { continue };
                let heard = F::bound(stream, within).and_then(|()| read_record(stream));
                heard.map_err(|error| self.lost(rank, error))?;
            }
            for (rank, stream) in streams.iter_mut().enumerate() {
                let Some(stream) = stream else { continue };
                write_record(stream, "go\n").map_err(|error| self.lost(rank, error))?;
            }
            return Ok(());
        }
        let stream = streams[0].as_mut().expect("each is joined to rank 0");
        write_record(stream, "ready").map_err(|error| self.lost(0, error))?;
        self.decision::<F>(stream).map(drop)
    }

    /// A socket to each other rank.
    fn lines<F: Family>(&self, family: &F, meeting: &str) -> Result<Lines<F::Stream>> {
        let Bootstrap { rank, size, .. } = *self.boot;
        let mut streams: Vec<Option<F::Stream>> = (0..size).map(|_| None).collect();
        if size > 1 && rank == 0 {
            let listener = family
                .listen(meeting)
                .map_err(|error| self.refused(format!("listening at {meeting}"), error))?;
            let arrivals = self.gather::<F>(&listener, |rank| rank > 0)?;
            let says: Vec<&str> = arrivals
                .iter()
                .flatten()
                .map(|arrival| &arrival.says[..])
                .collect();
            let table = format!("go\n{}", says.join("\n"));
            for (rank, arrival) in arrivals.into_iter().enumerate() {
                let Some(Arrival { mut stream, .. }) = arrival else {
                    continue;
                };
                write_record(&mut stream, &table).map_err(|error| self.lost(rank, error))?;
                streams[rank] = Some(stream);
            }
        } else if size > 1 {
            let mut first = self.reach(family, 0, meeting)?;
            let (listener, address) = family
                .listen_beside(&first, meeting, rank)
                .map_err(|error| self.refused("listening for other ranks", error))?;
            let hello = self.hello(&address);
            write_record(&mut first, &hello).map_err(|error| self.unheard(&error))?;
            let table = self.decision::<F>(&mut first)?;
            streams[0] = Some(first);
            for (other, address) in (1..rank).zip(table.split('\n')) {
                let mut stream = self.reach(family, other, address)?;
                let hello = self.hello("");
                write_record(&mut stream, &hello).map_err(|error| self.lost(other, error))?;
                streams[other] = Some(stream);
            }
            let arrivals = self.gather::<F>(&listener, |other| other > rank)?;
            for (rank, arrival) in arrivals.into_iter().enumerate() {
                if let Some(arrival) = arrival {
                    streams[rank] = Some(arrival.stream);
                }
            }
        }
        if size > 1 {
            self.start::<F>(&mut streams)?;
        }
        for stream in streams.iter().flatten() {
            F::prepare(stream).map_err(|error| self.refused("setting up a connection", error))?;
        }
        Lines::new(streams).map_err(|error| self.refused("setting up connections", error))
    }

    /// The memory of each other rank.
    fn rings(&self, meeting: &str) -> Result<Rings> {
        let Bootstrap { rank, size, .. } = *self.boot;
        let refused = |error: sonde_sys::Error| self.refused("setting up shared memory", error);
        let (inbox, memory) = Shared::create(inbox_bytes(size)).map_err(refused)?;
        let pair = UnixStream::pair();
        let (life, others) = pair.map_err(|error| self.refused("making a socket pair", error))?;
        let shown = Box::new(std::hint::black_box(SHOWN));
        let own = Own {
            memory,
            others: others.into(),
            says: format!(
                "{} {}",
                std::process::id(),
                std::ptr::from_ref(&*shown).addr()
            ),
        };
        let (all, mut streams) = self.introduce(meeting, own)?;
        let mut inboxes = Vec::new();
        let (mut lives, mut processes) = (Vec::new(), Vec::new());
        let mut why_not = None;
        for (of, other) in all.into_iter().enumerate() {
            let (process, address) = said(&other.says)
                .ok_or_else(|| self.lost(of, format!("it said `{}`", other.says)))?;
            processes.push(process);
            if of != rank && why_not.is_none() {
                let mut found = [0; 8];
                let read = foreign::read(process, address, &mut found);
                why_not = match read {
                    Ok(()) if u64::from_ne_bytes(found) == SHOWN => None,
                    Ok(()) => Some(format!("process {process} is another one here")),
                    Err(error) => Some(error.to_string()),
                };
            }
            let opened = Shared::open(&other.memory, inbox_bytes(size));
            inboxes.push(opened.map_err(refused)?);
            lives.push(other.others);
        }
        // Of this rank the end that is its own.
        lives[rank] = life.into();
        drop(inbox);
        let mesh = Mesh::new(rank, inboxes, lives, self.boot.wait);
        if size > 1 {
            self.start::<UnixFamily>(&mut streams)?;
        }
        drop(shown);
        Ok(Rings::new(mesh, processes, why_not))
    }

    /// Gives the own memory to all, and takes that of all, in order of rank. Also the sockets of the meeting.
    fn introduce(&self, meeting: &str, own: Own) -> Result<(Vec<Own>, Vec<Option<UnixStream>>)> {
        let Bootstrap { rank, size, .. } = *self.boot;
        let mut streams: Vec<_> = (0..size).map(|_| None).collect();
        if size == 1 {
            return Ok((vec![own], streams));
        }
        if rank > 0 {
            let mut stream = self.reach(&UnixFamily, 0, meeting)?;
            let hello = self.hello(&own.says);
            let sent = write_record(&mut stream, &hello).and_then(|()| own.hand_over(&stream));
            sent.map_err(|error| self.unheard(&error))?;
            let table = self.decision::<UnixFamily>(&mut stream)?;
            let taken = table.split('\n').map(|says| Own::take_over(&stream, says));
            let all: std::io::Result<Vec<Own>> = taken.collect();
            let all = all.map_err(|error| self.lost(0, error))?;
            if all.len() != size {
                return Err(self.lost(0, format!("it reported {} ranks", all.len())));
            }
            streams[0] = Some(stream);
            return Ok((all, streams));
        }
        let listener = UnixFamily
            .listen(meeting)
            .map_err(|error| self.refused(format!("listening at {meeting}"), error))?;
        let arrivals = self.gather::<UnixFamily>(&listener, |rank| rank > 0)?;
        let mut all = vec![own];
        for (rank, arrival) in arrivals.into_iter().enumerate() {
            if let Some(arrival) = arrival {
                let taken = Own::take_over(&arrival.stream, &arrival.says);
                all.push(taken.map_err(|error| self.lost(rank, error))?);
                streams[rank] = Some(arrival.stream);
            }
        }
        let says: Vec<&str> = all.iter().map(|own| &own.says[..]).collect();
        let table = format!("go\n{}", says.join("\n"));
        for (rank, stream) in streams.iter_mut().enumerate() {
            let Some(stream) = stream else { continue };
            let told = write_record(stream, &table);
            let given = told.and_then(|()| all.iter().try_for_each(|own| own.hand_over(&*stream)));
            given.map_err(|error| self.lost(rank, error))?;
        }
        Ok((all, streams))
    }
}

/// What a rank gives the others over shared memory.
struct Own {
    memory: OwnedFd,
    /// The others' end of the socket pair that tells of its end.
    others: OwnedFd,
    /// Its process, and where in its memory is what it shows.
    says: String,
}

impl Own {
    fn hand_over(&self, socket: impl AsFd) -> std::io::Result<()> {
        shared::hand_over(&socket, b"m", &self.memory)?;
        shared::hand_over(&socket, b"l", &self.others)?;
        Ok(())
    }

    fn take_over(socket: impl AsFd, says: &str) -> std::io::Result<Self> {
        let take = || {
            let (_, taken) = shared::take_over(&socket, &mut [0])?;
            taken.ok_or_else(|| std::io::Error::other("it gave no memory"))
        };
        Ok(Self {
            memory: take()?,
            others: take()?,
            says: says.into(),
        })
    }
}

/// Who has not come, in words.
fn absence(absent: &[usize], size: usize, strangers: u64) -> String {
    let names: Vec<String> = absent.iter().take(8).map(usize::to_string).collect();
    let more = if absent.len() > 8 { ", …" } else { "" };
    let mut text = match absent {
        [one] => format!("rank {one} of {size} has not come"),
        _ => format!("ranks {}{more} of {size} have not come", names.join(", ")),
    };
    if strangers > 0 {
        text += &format!(
            "; ranks of other runs refused: {strangers}: have all ranks the same token, size, transport and version?"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn boot() -> Bootstrap {
        Bootstrap {
            rank: 0,
            size: 4,
            transport: Transport::Unix,
            meeting: Meeting::Name("test".into()),
            own: None,
            token: "secret".into(),
            wait: Wait::Block,
            timeout: Duration::from_millis(50),
        }
    }

    fn joining(boot: &Bootstrap) -> Joining<'_> {
        Joining {
            boot,
            end: Instant::now(),
            strangers: Cell::new(0),
        }
    }

    #[test]
    fn strangers_are_not_known() {
        let boot = boot();
        let joining = joining(&boot);
        let hello = joining.hello("here");
        assert_eq!(joining.known(&hello), Some((0, "here".into())));
        for (one, other) in [
            ("secret", "secreu"),
            ("secret", "secret2"),
            ("\n4\n", "\n5\n"),
            ("unix", "tcp"),
            ("\n0\n", "\n4\n"),
            ("native 1", "native 2"),
        ] {
            let changed = hello.replacen(one, other, 1);
            assert_ne!(changed, hello);
            assert_eq!(joining.known(&changed), None, "{changed}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let wrong = |change: fn(&mut Bootstrap)| {
            let mut boot = boot();
            change(&mut boot);
            boot.join().err().expect("refused").to_string()
        };
        assert!(wrong(|boot| boot.rank = 4).contains("the rank is 4"));
        assert!(wrong(|boot| boot.token.clear()).contains("the token is 0 bytes"));
        let text = wrong(|boot| boot.transport = Transport::Tcp);
        assert!(text.contains("an address with a port"), "{text}");
    }

    proptest! {
        #[test]
        fn records_of_any_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let boot = boot();
            if let Ok(text) = read_record(&mut &bytes[..]) {
                prop_assert!(text.len() + 4 <= bytes.len());
                joining(&boot).known(&text);
                said(&text);
            }
            let text = String::from_utf8_lossy(&bytes);
            let mut written = Vec::new();
            write_record(&mut written, &text).unwrap();
            prop_assert_eq!(read_record(&mut &written[..]).unwrap(), text);
        }
    }
}
