//! Ranks that are threads of this process, for tests of what runs above a messenger.
//!
//! Model:   one list of unreceived messages a rank, behind one lock. Sends never wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::{
    Call, Capabilities, Comm, Completion, Error, Messenger, Op, Request, Result, Source, Status,
    TAG_MAX, Tag, Tagged,
};

const PATIENCE: Duration = Duration::from_secs(20);

struct Letter {
    /// The group's members, by which all of it know it.
    group: Vec<usize>,
    /// In the world.
    from: usize,
    tag: Tag,
    payload: Vec<u8>,
}

#[derive(Default)]
struct Office {
    boxes: Mutex<Vec<Vec<Letter>>>,
    came: Condvar,
}

/// One rank of several threads.
pub struct Threads {
    rank: usize,
    office: Arc<Office>,
    groups: Vec<Vec<usize>>,
    /// Receives that were begun, and sends that are done.
    pending: BTreeMap<u64, Pending>,
    next: u64,
}

enum Pending {
    Sent(Completion),
    Recv(Comm, Source, Tagged, Vec<u8>),
}

impl Threads {
    /// The messengers of `ranks` ranks.
    pub fn all(ranks: usize) -> Vec<Self> {
        let office = Arc::new(Office::default());
        (0..ranks).for_each(|_| lock(&office.boxes).push(Vec::new()));
        let one = |rank| Self {
            rank,
            office: Arc::clone(&office),
            groups: vec![(0..ranks).collect()],
            pending: BTreeMap::new(),
            next: 0,
        };
        (0..ranks).map(one).collect()
    }

    /// Runs `rank` on a thread for each of `ranks` ranks and gives what each returned, in order of rank.
    ///
    /// # Panics
    /// A rank panics.
    pub fn run<T: Send>(ranks: usize, rank: impl Fn(&mut Self) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let rank = &rank;
            let started: Vec<_> = Self::all(ranks)
                .into_iter()
                .map(|mut messenger| scope.spawn(move || rank(&mut messenger)))
                .collect();
            let ended = started.into_iter().map(|thread| thread.join());
            ended.map(std::result::Result::unwrap).collect()
        })
    }

    fn take(
        &mut self,
        comm: Comm,
        from: Source,
        tag: Tagged,
        room: &mut [u8],
        wait: bool,
        leave: bool,
    ) -> Result<Option<Status>> {
        let group = self.groups[comm.0 as usize].clone();
        let fits = |letter: &Letter| {
            letter.group == group
                && match from {
                    Source::Any => true,
                    Source::Rank(rank) => group[rank] == letter.from,
                }
                && match tag {
                    Tagged::Any => true,
                    Tagged::With(tag) => tag == letter.tag,
                }
        };
        let mut boxes = lock(&self.office.boxes);
        loop {
            let own = &mut boxes[self.rank];
            if let Some(index) = own.iter().position(fits) {
                let letter = &own[index];
                let status = Status {
                    from: group
                        .iter()
                        .position(|rank| *rank == letter.from)
                        .expect("of the group"),
                    tag: letter.tag,
                    bytes: letter.payload.len(),
                };
                if leave {
                    return Ok(Some(status));
                }
                let letter = own.remove(index);
                if status.bytes > room.len() {
                    return Err(Error::Truncated {
                        from: status.from,
                        tag: status.tag,
                        bytes: status.bytes,
                        room: room.len(),
                    });
                }
                room[..status.bytes].copy_from_slice(&letter.payload);
                return Ok(Some(status));
            }
            if !wait {
                return Ok(None);
            }
            let (back, over) = self
                .office
                .came
                .wait_timeout(boxes, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner);
            boxes = back;
            if over.timed_out() {
                return Err(Error::Silent {
                    rank: match from {
                        Source::Rank(rank) => group[rank],
                        Source::Any => self.rank,
                    },
                    during: "receiving".into(),
                    patience: PATIENCE,
                });
            }
        }
    }

    fn keep(&mut self, pending: Pending) -> Request {
        self.next += 1;
        self.pending.insert(self.next, pending);
        Request(self.next)
    }

    fn finish_one(
        &mut self,
        request: Request,
        wait: bool,
    ) -> Result<std::result::Result<Completion, Request>> {
        match self
            .pending
            .remove(&request.0)
            .expect("a request of this rank")
        {
            Pending::Sent(completion) => Ok(Ok(completion)),
            Pending::Recv(comm, from, tag, mut buffer) => {
                // Of receives that match the same, the one that was begun first is served first only if it is finished first.
                match self.take(comm, from, tag, &mut buffer, wait, false)? {
                    Some(status) => Ok(Ok(Completion { status, buffer })),
                    None => {
                        self.pending
                            .insert(request.0, Pending::Recv(comm, from, tag, buffer));
                        Ok(Err(request))
                    }
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Messenger for Threads {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            wildcards: true,
            probe: true,
            asynchronous: true,
            collectives: 0,
            message_bytes_max: u64::MAX,
        }
    }

    fn rank(&self, comm: Comm) -> usize {
        let group = &self.groups[comm.0 as usize];
        group
            .iter()
            .position(|rank| *rank == self.rank)
            .expect("a group of this rank")
    }

    fn size(&self, comm: Comm) -> usize {
        self.groups[comm.0 as usize].len()
    }

    fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        let group = self.groups[comm.0 as usize].clone();
        let to = group[to];
        let letter = Letter {
            group,
            from: self.rank,
            tag,
            payload: payload.to_vec(),
        };
        lock(&self.office.boxes)[to].push(letter);
        self.office.came.notify_all();
        Ok(())
    }

    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
        let status = self.take(comm, from, tag, room, true, false)?;
        Ok(status.expect("waited for"))
    }

    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
        for op in ops.iter() {
            if let Op::Send { to, tag, payload } = op {
                self.send(comm, *to, *tag, payload)?;
            }
        }
        for (op, status) in ops.iter_mut().zip(statuses) {
            *status = match op {
                Op::Send { to, tag, payload } => Status {
                    from: *to,
                    tag: *tag,
                    bytes: payload.len(),
                },
                Op::Recv { from, tag, room } => self.recv(comm, *from, *tag, room)?,
            };
        }
        Ok(())
    }

    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
        self.send(comm, to, tag, &payload)?;
        let status = Status {
            from: to,
            tag,
            bytes: payload.len(),
        };
        Ok(self.keep(Pending::Sent(Completion {
            status,
            buffer: payload,
        })))
    }

    fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request> {
        Ok(self.keep(Pending::Recv(comm, from, tag, room)))
    }

    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        self.finish_one(request, false)
    }

    fn wait(&mut self, request: Request) -> Result<Completion> {
        Ok(self.finish_one(request, true)?.expect("waited for"))
    }

    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
        self.take(comm, from, tag, &mut [], false, true)
    }

    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
        let (own, size) = (self.rank(comm), self.size(comm));
        let mut mine = vec![0];
        mine[0] = u8::from(colour.is_some());
        mine.extend(colour.unwrap_or(0).to_ne_bytes());
        mine.extend(key.to_ne_bytes());
        for to in 0..size {
            self.send(comm, to, TAG_MAX + 1, &mine)?;
        }
        let mut members = Vec::new();
        for from in 0..size {
            let mut told = [0; 9];
            self.recv(
                comm,
                Source::Rank(from),
                Tagged::With(TAG_MAX + 1),
                &mut told,
            )?;
            if told[..5] == mine[..5] {
                let key = i32::from_ne_bytes(told[5..].try_into().expect("four bytes"));
                members.push((key, self.groups[comm.0 as usize][from]));
            }
        }
        debug_assert!(own < size);
        if colour.is_none() {
            return Ok(None);
        }
        members.sort_unstable();
        self.groups
            .push(members.into_iter().map(|(_, rank)| rank).collect());
        Ok(Some(Comm(self.groups.len() as u32 - 1)))
    }

    fn collective(&mut self, _: Comm, _: &mut Call<'_>) -> Result<bool> {
        Ok(false)
    }

    fn progress(&mut self) -> Result<()> {
        Ok(())
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("library".into(), "threads".into())]
    }

    fn abort(&mut self, why: &str) {
        panic!("{why}");
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_goes_round() {
        let sums = Threads::run(5, |messenger| {
            let world = Comm::WORLD;
            let (rank, size) = (messenger.rank(world), messenger.size(world));
            let mut room = [0; 8];
            let mut statuses = [Status {
                from: 0,
                tag: 0,
                bytes: 0,
            }; 2];
            let payload = (rank as u64).to_ne_bytes();
            let mut ops = [
                Op::Send {
                    to: (rank + 1) % size,
                    tag: 7,
                    payload: &payload,
                },
                Op::Recv {
                    from: Source::Any,
                    tag: Tagged::With(7),
                    room: &mut room,
                },
            ];
            messenger.exchange(world, &mut ops, &mut statuses).unwrap();
            assert_eq!(statuses[1].from, (rank + size - 1) % size);
            let even = messenger
                .split(world, Some(rank as u32 % 2), -(rank as i32))
                .unwrap()
                .unwrap();
            (u64::from_ne_bytes(room), messenger.rank(even))
        });
        assert_eq!(sums, [(4, 2), (0, 1), (1, 1), (2, 0), (3, 0)]);
    }
}
