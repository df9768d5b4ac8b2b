//! A messenger made of letters: whole messages with a head, brought by whatever brings them.
//!
//! Model:   a [`Carrier`] takes letters and gives those that came, between two ranks in the order in which they were sent;
//!          [`Letters`] adds to it what a messenger is: groups, matching, requests, timeout. A send is done when the
//!          carrier has the letter. Nothing moves but in calls: a rank that computes carries nothing on. Letters that are
//!          sent and not yet received are kept without bound.
//! Units:   bytes; ranks of the world in heads.
//! Checked: `requests_probes_and_wildcards`, `a_wait_in_vain_ends_and_names_whom`; and by the collectives over `Routed` and `Best`.

mod letter;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::collectives::{Choice, Communicator, Maker};
use crate::native::group::Groups;
use crate::native::matching::{Envelope, Matching, Pattern};
use crate::{
    Call, Capabilities, Comm, Completion, Error, Messenger, Op, Request, Result, Source, Status,
    Tag, Tagged,
};

pub use letter::{Head, Letter};

/// How long nothing may move, unless told otherwise.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The tag of letters in the messengers that carry them.
pub(crate) const LETTER_TAG: Tag = 32_001;

/// What brings letters from rank to rank.
///
/// Errors of every call are those of a messenger.
pub trait Carrier {
    /// This rank.
    fn rank(&self) -> usize;

    /// How many there are.
    fn ranks(&self) -> usize;

    /// Bytes of the longest letter.
    fn bytes_max(&self) -> u64;

    /// Takes a letter of this rank.
    ///
    /// # Errors
    /// Those of the trait.
    fn post(&mut self, letter: Letter) -> Result<()>;

    /// Moves what can be moved, and gives the next letter for this rank.
    ///
    /// # Errors
    /// Those of the trait.
    fn poll(&mut self) -> Result<Option<Letter>>;

    /// Letters taken, given and carried on: it grows as long as anything moves.
    fn moved(&self) -> u64;

    /// Ends in order, once all ranks do: until then others may need this one.
    ///
    /// # Errors
    /// Those of the trait.
    fn leave(&mut self, timeout: Duration) -> Result<()>;

    /// What is to be known of it.
    fn facts(&self) -> Result<sonde_measure::Library>;

    /// Ends all ranks as soon as it can.
    fn abort(&mut self, why: &str);
}

/// A receive that was posted.
#[derive(Debug)]
enum Slot {
    Free,
    Awaited,
    Come(Letter),
}

#[derive(Debug)]
enum Pending {
    Sent(Completion),
    Recv {
        comm: Comm,
        from: Source,
        token: u32,
        room: Vec<u8>,
    },
}

/// A messenger over a carrier of letters.
#[derive(Debug)]
pub struct Letters<C> {
    pub(crate) carrier: C,
    groups: Groups,
    matching: Matching,
    /// Receives and letters that nobody waits for, by the tokens of `matching`.
    slots: Vec<Slot>,
    free: Vec<u32>,
    requests: HashMap<u64, Pending>,
    next_request: u64,
    timeout: Duration,
}

impl<C: Carrier> Letters<C> {
    pub(crate) fn over(carrier: C) -> Self {
        Self {
            groups: Groups::new(carrier.rank(), carrier.ranks()),
            carrier,
            matching: Matching::default(),
            slots: Vec::new(),
            free: Vec::new(),
            requests: HashMap::new(),
            next_request: 0,
            timeout: TIMEOUT,
        }
    }

    /// With this timeout: how long a wait goes on while nothing moves; 20 s unless told.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn keep(&mut self, slot: Slot) -> u32 {
        if let Some(token) = self.free.pop() {
            self.slots[token as usize] = slot;
            return token;
        }
        self.slots.push(slot);
        self.slots.len() as u32 - 1
    }

    fn let_go(&mut self, token: u32) -> Slot {
        self.free.push(token);
        std::mem::replace(&mut self.slots[token as usize], Slot::Free)
    }

    fn pattern(&self, comm: Comm, from: Source, tag: Tagged) -> Result<Pattern> {
        let group = self.groups.of(comm)?;
        Ok(Pattern {
            context: group.context,
            source: match from {
                Source::Rank(rank) => Some(group.world(rank)?),
                Source::Any => None,
            },
            tag: match tag {
                Tagged::With(tag) => Some(tag),
                Tagged::Any => None,
            },
        })
    }

    /// Takes in all that has come.
    fn pump(&mut self) -> Result<()> {
        while let Some(letter) = self.carrier.poll()? {
            let envelope = Envelope {
                context: letter.head.context,
                source: letter.head.source,
                tag: letter.head.tag,
            };
            match self.matching.claim(envelope) {
                Some(token) => self.slots[token as usize] = Slot::Come(letter),
                None => {
                    let token = self.keep(Slot::Come(letter));
                    self.matching.arrive(envelope, token);
                }
            }
        }
        Ok(())
    }

    fn post_send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        let group = self.groups.of(comm)?;
        let head = Head {
            context: group.context,
            source: self.carrier.rank() as u32,
            to: group.world(to)?,
            tag,
            hops: 0,
            number: 0,
        };
        self.carrier.post(Letter::new(head, payload))
    }

    fn post_recv(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<u32> {
        let pattern = self.pattern(comm, from, tag)?;
        if let Some(token) = self.matching.take(pattern) {
            return Ok(token);
        }
        let token = self.keep(Slot::Awaited);
        self.matching.post(pattern, token);
        Ok(token)
    }

    /// The letter of a receive, when it has come.
    fn come(&mut self, token: u32) -> Option<Letter> {
        if !matches!(self.slots[token as usize], Slot::Come(_)) {
            return None;
        }
        match self.let_go(token) {
            Slot::Come(letter) => Some(letter),
            Slot::Free | Slot::Awaited => unreachable!("it has come"),
        }
    }

    fn wait_for(&mut self, comm: Comm, from: Source, token: u32) -> Result<Letter> {
        let mut since: Option<(Instant, u64)> = None;
        loop {
            self.pump()?;
            if let Some(letter) = self.come(token) {
                return Ok(letter);
            }
            let moved = self.carrier.moved();
            match since {
                Some((begin, then)) if then == moved => {
                    if begin.elapsed() > self.timeout {
                        let group = self.groups.of(comm)?;
                        return Err(Error::Silent {
                            rank: match from {
                                Source::Rank(rank) => Some(group.world(rank)? as usize),
                                Source::Any => None,
                            },
                            during: "receiving a carried message".into(),
                            timeout: self.timeout,
                        });
                    }
                }
                _ => since = Some((Instant::now(), moved)),
            }
            std::thread::yield_now();
        }
    }

    fn land(&self, comm: Comm, letter: &Letter, room: &mut [u8]) -> Result<Status> {
        let status = self.status(comm, letter)?;
        if status.bytes > room.len() {
            return Err(Error::Truncated {
                from: status.from,
                tag: status.tag,
                bytes: status.bytes,
                room: room.len(),
            });
        }
        room[..status.bytes].copy_from_slice(letter.payload());
        Ok(status)
    }

    fn status(&self, comm: Comm, letter: &Letter) -> Result<Status> {
        Ok(Status {
            from: self.groups.of(comm)?.of_world(letter.head.source),
            tag: letter.head.tag,
            bytes: letter.payload().len(),
        })
    }

    fn request(&mut self, pending: Pending) -> Request {
        self.next_request += 1;
        self.requests.insert(self.next_request, pending);
        Request(self.next_request)
    }

    fn pending(&mut self, request: &Request) -> Result<Pending> {
        let pending = self.requests.remove(&request.0);
        pending.ok_or_else(|| Error::Argument {
            what: "a request",
            value: request.0.to_string(),
            wanted: "one of this messenger's that is not done".into(),
        })
    }
}

impl<C: Carrier> Messenger for Letters<C> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            wildcards: true,
            probe: true,
            asynchronous: false,
            collectives: 0,
            message_bytes_max: self.carrier.bytes_max() - Head::BYTES as u64,
        }
    }

    fn rank(&self, comm: Comm) -> usize {
        self.groups
            .of(comm)
            .expect("a group of this messenger")
            .rank
    }

    fn size(&self, comm: Comm) -> usize {
        let group = self.groups.of(comm).expect("a group of this messenger");
        group.size()
    }

    fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        self.post_send(comm, to, tag, payload)?;
        self.pump()
    }

    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
        let token = self.post_recv(comm, from, tag)?;
        let letter = self.wait_for(comm, from, token)?;
        self.land(comm, &letter, room)
    }

    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
        let mut tokens = Vec::with_capacity(ops.len());
        for op in ops.iter() {
            match op {
                Op::Send { to, tag, payload } => self.post_send(comm, *to, *tag, payload)?,
                Op::Recv { from, tag, .. } => tokens.push(self.post_recv(comm, *from, *tag)?),
            }
        }
        let mut tokens = tokens.into_iter();
        for (op, status) in ops.iter_mut().zip(statuses) {
            *status = match op {
                Op::Send { to, tag, payload } => Status {
                    from: *to,
                    tag: *tag,
                    bytes: payload.len(),
                },
                Op::Recv { from, room, .. } => {
                    let token = tokens.next().expect("one a receive");
                    let letter = self.wait_for(comm, *from, token)?;
                    self.land(comm, &letter, room)?
                }
            };
        }
        self.pump()
    }

    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
        self.send(comm, to, tag, &payload)?;
        let status = Status {
            from: to,
            tag,
            bytes: payload.len(),
        };
        let buffer = payload;
        Ok(self.request(Pending::Sent(Completion { status, buffer })))
    }

    fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request> {
        let token = self.post_recv(comm, from, tag)?;
        self.pump()?;
        Ok(self.request(Pending::Recv {
            comm,
            from,
            token,
            room,
        }))
    }

    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        self.pump()?;
        match self.pending(&request)? {
            Pending::Sent(completion) => Ok(Ok(completion)),
            Pending::Recv {
                comm,
                from,
                token,
                room: mut buffer,
            } => {
                let Some(letter) = self.come(token) else {
                    let room = buffer;
                    let pending = Pending::Recv {
                        comm,
                        from,
                        token,
                        room,
                    };
                    self.requests.insert(request.0, pending);
                    return Ok(Err(request));
                };
                let status = self.land(comm, &letter, &mut buffer)?;
                Ok(Ok(Completion { status, buffer }))
            }
        }
    }

    fn wait(&mut self, request: Request) -> Result<Completion> {
        match self.pending(&request)? {
            Pending::Sent(completion) => Ok(completion),
            Pending::Recv {
                comm,
                from,
                token,
                room: mut buffer,
            } => {
                let letter = self.wait_for(comm, from, token)?;
                let status = self.land(comm, &letter, &mut buffer)?;
                Ok(Completion { status, buffer })
            }
        }
    }

    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
        self.pump()?;
        let pattern = self.pattern(comm, from, tag)?;
        let Some(token) = self.matching.find(pattern) else {
            return Ok(None);
        };
        match &self.slots[token as usize] {
            Slot::Come(letter) => Ok(Some(self.status(comm, letter)?)),
            Slot::Free | Slot::Awaited => unreachable!("a letter that nobody waits for"),
        }
    }

    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
        let colour = colour.map_or(-1, i64::from);
        let own = self.carrier.rank() as u32;
        let told = [
            colour,
            i64::from(key),
            i64::from(own),
            i64::from(self.groups.next_context),
        ];
        let choice = Choice::all(Maker::Sonde).expect("of every kind");
        let mut group = Communicator::new(&mut *self, comm, choice);
        let mut all = vec![0; told.len() * group.size()];
        group.allgather(&told, &mut all)?;
        let rows = all.chunks_exact(told.len());
        let context = rows
            .clone()
            .map(|row| row[3] as u32)
            .max()
            .expect("one at least");
        self.groups.next_context = context + 1;
        if colour < 0 {
            return Ok(None);
        }
        // They come in the order of the parent's ranks, and a stable sort keeps it.
        let mut members: Vec<_> = rows.filter(|row| row[0] == colour).collect();
        members.sort_by_key(|row| row[1]);
        let world = members.into_iter().map(|row| row[2] as u32).collect();
        Ok(Some(self.groups.add(context, world, own)))
    }

    fn collective(&mut self, _: Comm, _: &mut Call<'_>) -> Result<bool> {
        Ok(false)
    }

    fn progress(&mut self) -> Result<()> {
        self.pump()
    }

    fn facts(&self) -> Result<sonde_measure::Library> {
        self.carrier.facts()
    }

    fn abort(&mut self, why: &str) {
        self.carrier.abort(why);
    }

    fn finish(&mut self) -> Result<()> {
        self.carrier.leave(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Memory;
    use crate::{Mode, Routed};
    use sonde_units::Topology;

    const WORLD: Comm = Comm::WORLD;

    fn two(timeout: Duration, rank: impl Fn(&mut Routed<&mut Memory>) + Sync) {
        Memory::run(2, |messenger| {
            let ring = Topology::parse("ring", 2).unwrap();
            let routed = Routed::new(messenger, ring, Mode::Forwarding).unwrap();
            let mut routed = routed.with_timeout(timeout);
            rank(&mut routed);
        });
    }

    #[test]
    fn a_wait_in_vain_ends_and_names_whom() {
        let over = std::sync::Barrier::new(2);
        two(Duration::from_millis(300), |messenger| {
            if messenger.rank(WORLD) == 0 {
                let from = Source::Rank(1);
                let waited = messenger.recv(WORLD, from, Tagged::Any, &mut []);
                assert!(
                    matches!(waited, Err(Error::Silent { rank: Some(1), .. })),
                    "{waited:?}"
                );
                let ended = messenger.finish();
                assert!(
                    matches!(ended, Err(Error::Silent { rank: Some(1), .. })),
                    "{ended:?}"
                );
            }
            over.wait();
        });
    }

    #[test]
    fn a_wait_goes_on_while_anything_moves() {
        two(Duration::from_secs(1), |messenger| {
            let tags = [1, 1, 1, 1, 1, 1, 2];
            if messenger.rank(WORLD) == 1 {
                for tag in tags {
                    std::thread::sleep(Duration::from_millis(250));
                    messenger.send(WORLD, 0, tag, &[]).unwrap();
                }
            } else {
                for tag in tags.into_iter().rev() {
                    let from = Source::Rank(1);
                    let came = messenger.recv(WORLD, from, Tagged::With(tag), &mut []);
                    assert_eq!(came.unwrap().tag, tag);
                }
            }
            messenger.finish().unwrap();
        });
    }

    #[test]
    fn requests_probes_and_wildcards() {
        two(TIMEOUT, |messenger| {
            let other = 1 - messenger.rank(WORLD);
            let first = messenger.irecv(WORLD, Source::Any, Tagged::With(2), vec![0; 4]);
            let second = messenger.irecv(WORLD, Source::Any, Tagged::Any, vec![0; 4]);
            for (tag, payload) in [(1, &[1][..]), (2, &[2, 2]), (3, &[3; 9]), (4, &[])] {
                let sent = messenger
                    .isend(WORLD, other, tag, payload.to_vec())
                    .unwrap();
                assert_eq!(messenger.wait(sent).unwrap().buffer, payload);
            }
            let mut request = first.unwrap();
            let first = loop {
                match messenger.test(request).unwrap() {
                    Ok(completion) => break completion,
                    Err(again) => request = again,
                }
            };
            assert_eq!((first.status.tag, &first.buffer[..2]), (2, &[2, 2][..]));
            let second = messenger.wait(second.unwrap()).unwrap();
            assert_eq!((second.status.tag, second.status.bytes), (1, 1));
            // What is too long for its room is an error, and is gone.
            let probed = loop {
                if let Some(status) = messenger.iprobe(WORLD, Source::Any, Tagged::Any).unwrap() {
                    break status;
                }
            };
            assert_eq!((probed.from, probed.tag, probed.bytes), (other, 3, 9));
            let short = messenger.recv(WORLD, Source::Any, Tagged::Any, &mut [0; 8]);
            assert!(
                matches!(
                    short,
                    Err(Error::Truncated {
                        bytes: 9,
                        room: 8,
                        ..
                    })
                ),
                "{short:?}"
            );
            let last = messenger.recv(WORLD, Source::Any, Tagged::Any, &mut []);
            assert_eq!(last.unwrap().tag, 4);
            assert!(messenger.send(WORLD, 2, 0, &[]).is_err());
            assert!(messenger.wait(Request(99)).is_err());
            messenger.finish().unwrap();
        });
    }

    #[test]
    fn a_head_of_nobody_is_refused() {
        for bytes in [vec![0; Head::BYTES - 1], vec![9; Head::BYTES]] {
            let error = Letter::of_bytes(bytes, 2).unwrap_err().to_string();
            assert!(error.contains("ranks below 2"), "{error}");
        }
    }
}
