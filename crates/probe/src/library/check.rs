//! Whether a library does what it should: collectives against the oracle, and messages in every manner of the messenger.
//!
//! Model:   the cases are [`oracle::cases`] of the seed, spread over a whole round of kinds and makers however few are asked
//!          for, after one of each kind by the library where it has it. Messages go round the ranks: each sends to the
//!          next and receives from the one before, at sizes that are drawn too, with bytes that tell each from all others.
//!          What the library says that it cannot do (wildcards, finding out what comes) is left out and told.
//! Source:  MPI 4.0 §3.5: messages of one sender with one tag do not overtake.
//!          All that were checked are the one sample of a launch.
//! Units:   bytes.
//! Checked: `few_cases_are_spread_over_all_kinds`; `crates/sonde/tests/lab_check.rs` over every library that is installed.

use sonde_measure::{Check, Names, Quantity};
use std::time::{Duration, Instant};

use sonde_message::collectives::{Choice, Communicator, Made, Maker};
use sonde_message::oracle::{self, Case, Unsound};
use sonde_message::{
    Capabilities, Comm, Kind, Messenger, Op, Request, Source, Status, Tag, Tagged,
};

use super::runs::{row, size};
use crate::talk::{Measured, Served, SizeServed};
use crate::{Error, Result};

/// Messages of one size that are under way at once.
const WINDOW: usize = 4;
/// Beyond what is drawn: larger than any library sends without asking first.
const LARGE: usize = 300_000;
/// Of this tag none is sent before all look for it.
const LOOKED_FOR: Tag = 777;

const BLANK: Status = Status {
    from: 0,
    tag: 0,
    bytes: 0,
};

/// What was checked.
#[derive(Debug, Default)]
struct Tally {
    collectives: u64,
    by_library: u64,
    messages: u64,
}

/// Makes all checks; every rank calls it alike.
pub(super) fn all(
    messenger: &mut dyn Messenger,
    timeout: Duration,
    (seed, cases): (u64, u64),
    measured: &mut Measured,
    served: &mut Served,
) -> Result<()> {
    let mut tally = Tally::default();
    let capabilities = messenger.capabilities();
    {
        let mut world = Communicator::new(messenger, Comm::WORLD, Choice::default());
        collectives(&mut world, &drawn(seed, cases as usize), &mut tally)?;
    }
    let mut ring = Ring::new(messenger, Comm::WORLD, timeout);
    let sizes = oracle::cases(seed ^ 0x5152, 1 + cases as usize / 8);
    let sizes = sizes.map(|case| case.elements * case.element.bytes());
    for size in sizes.chain([LARGE]) {
        let made = ring.round(size, &mut tally);
        made.map_err(|error| during(&format!("messages of {size} bytes"), error))?;
    }
    let tally_of = &mut tally;
    let made = ring.tags_are_told_apart(tally_of);
    made.map_err(|error| during("messages of two tags", error))?;
    let made = ring.both_ways_at_once(tally_of);
    made.map_err(|error| during("exchanges", error))?;
    if capabilities.wildcards {
        let made = ring.receive_of_whoever(tally_of);
        made.map_err(|error| during("receives from any rank, of any tag", error))?;
    }
    if capabilities.probe {
        let made = ring.looked_for(tally_of);
        made.map_err(|error| during("looking for messages", error))?;
    }
    let made = parted(messenger, timeout, seed, tally_of);
    made.map_err(|error| during("groups", error))?;
    let checks = row(&[&tally], Quantity::Checks, |tally| {
        Some(tally.collectives + tally.messages)
    });
    // One check, in which all ranks took part.
    measured.sizes.push(size(vec![checks], 1));
    served.sizes.push(SizeServed {
        messages: 1,
        ..SizeServed::default()
    });
    measured.evidence.check = Check {
        collectives: Some(tally.collectives),
        by_library: Some(tally.by_library),
        messages: Some(tally.messages),
        left_out: Some(left_out(capabilities)),
    };
    Ok(())
}

fn left_out(capabilities: Capabilities) -> Names<','> {
    let parts = [
        (capabilities.wildcards, "wildcards"),
        (capabilities.probe, "probe"),
    ];
    let lacking = parts.iter().filter(|(has, _)| !has);
    Names(lacking.map(|(_, name)| (*name).into()).collect())
}

/// What was checked when something was wrong; a call that failed speaks for itself.
fn during(what: &str, error: Error) -> Error {
    match error {
        Error::Integrity(told) => Error::Integrity(format!("checking {what}: {told}")),
        other => other,
    }
}

fn wrong(messenger: &(impl Messenger + ?Sized), what: impl std::fmt::Display) -> Error {
    let (rank, ranks) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
    Error::Integrity(format!("rank {rank} of {ranks}: {what}"))
}

/// One case of each kind that the library may make itself, then so many of all.
fn drawn(seed: u64, cases: usize) -> Vec<Case> {
    let own = Kind::ALL
        .into_iter()
        .zip(oracle::cases(seed, Kind::ALL.len()));
    let own = own.map(|(kind, case)| Case {
        kind,
        maker: Maker::Either,
        ..case
    });
    let round = oracle::round().max(cases);
    // Where fewer are asked for than a round has, another seed starts elsewhere in it.
    let begin = (seed % round as u64) as usize;
    let all: Vec<Case> = oracle::cases(seed, round).collect();
    let spread = (0..cases).map(|at| all[(begin + at * round / cases) % round].clone());
    own.chain(spread).collect()
}

fn collectives(
    group: &mut Communicator<'_, dyn Messenger + '_>,
    cases: &[Case],
    tally: &mut Tally,
) -> Result<()> {
    for case in cases {
        let made = oracle::check_in(group, case).map_err(|unsound| match unsound {
            Unsound::Result(told) => Error::Integrity(told),
            Unsound::Call { error, .. } => Error::Message(error),
        })?;
        tally.collectives += 1;
        tally.by_library += u64::from(matches!(made, Made::Library));
    }
    Ok(())
}

/// The ranks of a group, each beside its neighbours.
struct Ring<'m> {
    messenger: &'m mut dyn Messenger,
    comm: Comm,
    rank: usize,
    ranks: usize,
    timeout: Duration,
}

impl<'m> Ring<'m> {
    fn new(messenger: &'m mut dyn Messenger, comm: Comm, timeout: Duration) -> Self {
        let (rank, ranks) = (messenger.rank(comm), messenger.size(comm));
        Self {
            messenger,
            comm,
            rank,
            ranks,
            timeout,
        }
    }

    fn next(&self) -> usize {
        (self.rank + 1) % self.ranks
    }

    fn previous(&self) -> usize {
        (self.rank + self.ranks - 1) % self.ranks
    }

    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        wrong(&*self.messenger, what)
    }

    fn expect(&self, what: &str, found: Status, wanted: (usize, Tag, usize)) -> Result<()> {
        if (found.from, found.tag, found.bytes) == wanted {
            return Ok(());
        }
        let (from, tag, bytes) = wanted;
        Err(self.wrong(format!(
            "{what}: received {found:?}, expected {bytes} bytes with tag {tag} of rank {from}"
        )))
    }

    fn compare(
        &self,
        what: &str,
        found: &[u8],
        size: usize,
        from: usize,
        mark: usize,
    ) -> Result<()> {
        let wanted = payload(size, from, mark);
        match found.iter().zip(&wanted).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(at) => Err(self.wrong(format!(
                "{what}: byte {at} of {size} of message {mark} of rank {from} is {}, not {}",
                found[at], wanted[at]
            ))),
        }
    }

    /// A message to the next rank that is under way while others are received.
    fn post(&mut self, size: usize, tag: Tag, mark: usize) -> Result<Request> {
        let (to, bytes) = (self.next(), payload(size, self.rank, mark));
        Ok(self.messenger.isend(self.comm, to, tag, bytes)?)
    }

    /// One message by blocking calls' receive, then a window of posted ones, finished in another order than posted.
    fn round(&mut self, size: usize, tally: &mut Tally) -> Result<()> {
        let (from, comm) = (self.previous(), self.comm);
        let sent = self.post(size, 3, 9)?;
        let mut room = vec![0xee; size + 3];
        let got = self
            .messenger
            .recv(comm, Source::Rank(from), Tagged::With(3), &mut room)?;
        self.expect("a receive", got, (from, 3, size))?;
        self.compare("a receive", &room[..size], size, from, 9)?;
        if room[size..] != [0xee; 3] {
            return Err(self.wrong(format!("a receive of {size} bytes wrote beyond them")));
        }
        self.messenger.wait(sent)?;
        let mut receives = Vec::new();
        for _ in 0..WINDOW {
            let room = vec![0; size];
            receives.push(
                self.messenger
                    .irecv(comm, Source::Rank(from), Tagged::With(4), room)?,
            );
        }
        let mut sends = Vec::new();
        for mark in 0..WINDOW {
            sends.push(self.post(size, 4, mark)?);
        }
        // By turns: half of them by waiting, half by asking.
        for (mark, request) in receives.into_iter().enumerate().rev() {
            let done = match mark % 2 {
                0 => self.messenger.wait(request)?,
                _ => self.asked(request)?,
            };
            self.expect("a posted receive", done.status, (from, 4, size))?;
            self.compare("a posted receive", &done.buffer[..size], size, from, mark)?;
        }
        for (mark, request) in sends.into_iter().enumerate() {
            let done = self.messenger.wait(request)?;
            self.compare("a posted send", &done.buffer, size, self.rank, mark)?;
        }
        tally.messages += 1 + WINDOW as u64;
        Ok(())
    }

    fn asked(&mut self, mut request: Request) -> Result<sonde_message::Completion> {
        let begin = Instant::now();
        loop {
            match self.messenger.test(request)? {
                Ok(done) => return Ok(done),
                Err(back) => request = back,
            }
            if begin.elapsed() > self.timeout {
                return Err(self.wrong("a posted receive never completes when polled"));
            }
            std::thread::yield_now();
        }
    }

    /// Those of one tag come in their order, whatever is received between.
    fn tags_are_told_apart(&mut self, tally: &mut Tally) -> Result<()> {
        let from = self.previous();
        let mut sends = Vec::new();
        for (tag, mark) in [(1, 10), (2, 20), (1, 11), (2, 21), (1, 12)] {
            sends.push(self.post(40, tag, mark)?);
        }
        for (tag, mark) in [(2, 20), (1, 10), (1, 11), (2, 21), (1, 12)] {
            let mut room = [0; 40];
            let wanted = Tagged::With(tag);
            let got = self
                .messenger
                .recv(self.comm, Source::Rank(from), wanted, &mut room)?;
            self.expect("messages of two tags", got, (from, tag, 40))?;
            self.compare("messages of two tags", &room, 40, from, mark)?;
            tally.messages += 1;
        }
        for request in sends {
            self.messenger.wait(request)?;
        }
        Ok(())
    }

    fn both_ways_at_once(&mut self, tally: &mut Tally) -> Result<()> {
        let (to, from) = (self.next(), self.previous());
        let forth = payload(LARGE, self.rank, 1);
        let back = payload(LARGE, self.rank, 2);
        let (mut one, mut other) = (vec![0; LARGE], vec![0; LARGE]);
        let mut ops = [
            Op::Send {
                to,
                tag: 5,
                payload: &forth,
            },
            Op::Send {
                to: from,
                tag: 6,
                payload: &back,
            },
            Op::Recv {
                from: Source::Rank(from),
                tag: Tagged::With(5),
                room: &mut one,
            },
            Op::Recv {
                from: Source::Rank(to),
                tag: Tagged::With(6),
                room: &mut other,
            },
        ];
        let mut statuses = [BLANK; 4];
        self.messenger
            .exchange(self.comm, &mut ops, &mut statuses)?;
        self.expect("an exchange", statuses[2], (from, 5, LARGE))?;
        self.expect("an exchange", statuses[3], (to, 6, LARGE))?;
        self.compare("an exchange", &one, LARGE, from, 1)?;
        self.compare("an exchange", &other, LARGE, to, 2)?;
        tally.messages += 2;
        Ok(())
    }

    /// Rank 0 takes whoever's comes; those of each come in their order. Then of one rank whatever tag comes.
    fn receive_of_whoever(&mut self, tally: &mut Tally) -> Result<()> {
        const EACH: usize = 3;
        let comm = self.comm;
        if self.rank > 0 {
            for mark in 0..EACH {
                self.messenger
                    .send(comm, 0, 7, &payload(24, self.rank, mark))?;
            }
            for tag in [12, 11] {
                self.messenger
                    .send(comm, 0, tag, &payload(8, self.rank, tag as usize))?;
            }
            return Ok(());
        }
        let mut come = vec![0; self.ranks];
        for _ in 0..EACH * (self.ranks - 1) {
            let mut room = [0; 24];
            let got = self
                .messenger
                .recv(comm, Source::Any, Tagged::With(7), &mut room)?;
            if got.from == 0 || got.from >= self.ranks || come[got.from] == EACH {
                return Err(self.wrong(format!("a message of any rank: {got:?} was never sent")));
            }
            self.compare("messages of any rank", &room, 24, got.from, come[got.from])?;
            come[got.from] += 1;
        }
        for from in (1..self.ranks).rev() {
            for tag in [12, 11] {
                let mut room = [0; 8];
                let got = self
                    .messenger
                    .recv(comm, Source::Rank(from), Tagged::Any, &mut room)?;
                self.expect("messages of any tag", got, (from, tag, 8))?;
                self.compare("messages of any tag", &room, 8, from, tag as usize)?;
            }
        }
        tally.messages += ((EACH + 2) * (self.ranks - 1)) as u64;
        Ok(())
    }

    /// What comes is seen with its length before it is received, and what was not sent is not.
    fn looked_for(&mut self, tally: &mut Tally) -> Result<()> {
        let (from, comm) = (self.previous(), self.comm);
        let sent = self.post(33, LOOKED_FOR, 5)?;
        let begin = Instant::now();
        let seen = loop {
            let wanted = Tagged::With(LOOKED_FOR);
            if let Some(seen) = self.messenger.iprobe(comm, Source::Rank(from), wanted)? {
                break seen;
            }
            if begin.elapsed() > self.timeout {
                return Err(self.wrong("a sent message is never found by probing"));
            }
            std::thread::yield_now();
        };
        self.expect("looking for a message", seen, (from, LOOKED_FOR, 33))?;
        let other = Tagged::With(LOOKED_FOR + 1);
        if let Some(seen) = self.messenger.iprobe(comm, Source::Rank(from), other)? {
            return Err(self.wrong(format!("{seen:?} is seen and was never sent")));
        }
        let mut room = [0; 33];
        let wanted = Tagged::With(LOOKED_FOR);
        self.messenger
            .recv(comm, Source::Rank(from), wanted, &mut room)?;
        self.compare("looking for a message", &room, 33, from, 5)?;
        self.messenger.wait(sent)?;
        tally.messages += 1;
        Ok(())
    }
}

/// Bytes by which a message is told from all others.
fn payload(size: usize, from: usize, mark: usize) -> Vec<u8> {
    let first = from * 31 + mark * 101;
    (0..size)
        .map(|at| (first + at * 7 + at / 251) as u8)
        .collect()
}

/// The ranks parted by parity, in turned order: who is who, messages and collectives within, beside those of the world.
fn parted(
    messenger: &mut dyn Messenger,
    timeout: Duration,
    seed: u64,
    tally: &mut Tally,
) -> Result<()> {
    let (rank, ranks) = (messenger.rank(Comm::WORLD), messenger.size(Comm::WORLD));
    let colour = Some(rank as u32 % 2);
    let Some(half) = messenger.split(Comm::WORLD, colour, -(rank as i32))? else {
        return Err(wrong(messenger, "a split with a colour gave no group"));
    };
    let size = (ranks + 1 - rank % 2) / 2;
    let place = size - 1 - rank / 2;
    let found = (messenger.rank(half), messenger.size(half));
    if found != (place, size) {
        let what = format!(
            "after a split it is rank {} of {}, not {place} of {size}",
            found.0, found.1
        );
        return Err(wrong(messenger, what));
    }
    // The same tag in the world and in the half; the latter is not taken for the former.
    let (next, previous) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let world = messenger.isend(Comm::WORLD, next, 3, payload(500, rank, 40))?;
    Ring::new(messenger, half, timeout).round(500, tally)?;
    let mut room = [0; 500];
    let from = Source::Rank(previous);
    messenger.recv(Comm::WORLD, from, Tagged::With(3), &mut room)?;
    messenger.wait(world)?;
    Ring::new(messenger, Comm::WORLD, timeout).compare(
        "beside a group",
        &room,
        500,
        previous,
        40,
    )?;
    tally.messages += 1;
    if messenger.split(half, None, 0)?.is_some() {
        return Err(wrong(messenger, "a split without a colour gave a group"));
    }
    let mut group = Communicator::new(messenger, half, Choice::default());
    collectives(&mut group, &drawn(seed ^ 0x5153, 2), tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_cases_are_spread_over_all_kinds() {
        for seed in [0, 7, 1 << 40] {
            let few = drawn(seed, 9);
            assert_eq!(few.len(), 2 * Kind::ALL.len());
            let kinds = few[Kind::ALL.len()..].iter().map(|case| case.kind as u32);
            let mut kinds: Vec<u32> = kinds.collect();
            kinds.sort_unstable();
            kinds.dedup();
            assert!(kinds.len() >= 7, "{kinds:?}");
        }
        assert_eq!(drawn(3, 200).len(), 209);
    }
}
