//! One connection that carries several agents: the tagged pieces between the orchestrator and a relay.
//!
//! Model:   a piece is a ticket (u32), a length (u32, at most 64 KiB; both big-endian) and so many bytes of that ticket's
//!          stream; a length of 0 is the end of that stream's direction. [`OWN`] is the relay's own agent. The orchestrator's
//!          end is a [`Trunk`]: a thread sorts what comes into the queue of each [`Lane`], without ever waiting for who reads
//!          them, so that an answer nobody asks for yet holds up no other. A queue is bounded: a lane beyond it ends.
//! Checked: `pieces_reach_their_lanes`, `an_unread_lane_holds_up_no_other`, `the_end_of_a_trunk_is_that_of_its_lanes`,
//!          `any_bytes_are_pieces_or_an_error`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::collections::{BTreeMap, VecDeque};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sonde_channel::{Woken, readable};

use super::listener::Bell;

/// The relay's own agent.
pub(super) const OWN: u32 = u32::MAX;
/// The longest piece.
pub(super) const PIECE_BYTES_MAX: usize = 64 << 10;
/// What an agent may say before anybody reads it: a few of the longest frames.
const QUEUE_BYTES_MAX: usize = 64 << 20;
const STACK_BYTES: usize = 256 << 10;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes one piece; none of its bytes is an end.
pub(crate) fn write_piece(to: &mut impl Write, ticket: u32, bytes: &[u8]) -> std::io::Result<()> {
    assert!(bytes.len() <= PIECE_BYTES_MAX, "a piece of {}", bytes.len());
    let length = bytes.len() as u32;
    to.write_all(&[&ticket.to_be_bytes()[..], &length.to_be_bytes(), bytes].concat())
}

/// Reads one piece; none at the end of the stream.
pub(crate) fn read_piece(from: &mut impl Read) -> std::io::Result<Option<(u32, Vec<u8>)>> {
    let mut first = [0];
    if from.read(&mut first)? == 0 {
        return Ok(None);
    }
    let mut rest = [0; 7];
    from.read_exact(&mut rest)?;
    let ([a], [b, c, d, length @ ..]) = (first, rest);
    let ticket = u32::from_be_bytes([a, b, c, d]);
    let length = u32::from_be_bytes(length) as usize;
    if length > PIECE_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::InvalidData,
            format!("a piece of {length} bytes"),
        ));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(Some((ticket, bytes)))
}

/// One agent's stream out of a trunk.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Silent exactly while there is nothing to be read and no end.
    bell: Bell,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: VecDeque<u8>,
    ended: bool,
}

impl Lane {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            bell: Bell::new()?,
            queue: Mutex::default(),
        })
    }

    fn put(&self, bytes: &[u8]) {
        let mut queue = locked(&self.queue);
        let all = queue.bytes.len().saturating_add(bytes.len());
        if bytes.is_empty() || all > QUEUE_BYTES_MAX {
            queue.ended = true;
        }
        if !queue.ended {
            queue.bytes.extend(bytes);
        }
        self.bell.ring();
    }

    fn take(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut queue = locked(&self.queue);
        if queue.bytes.is_empty() {
            return if queue.ended {
                Ok(0)
            } else {
                Err(ErrorKind::WouldBlock.into())
            };
        }
        let count = queue.bytes.read(buffer)?;
        if queue.bytes.is_empty() {
            queue.bytes = VecDeque::new();
            if !queue.ended {
                self.bell.hush();
            }
        }
        Ok(count)
    }

    /// Waits until the agent's end has come, and drops what it said until then.
    pub(super) fn await_end(&self, timeout: Duration) -> bool {
        let end = std::time::Instant::now() + timeout;
        loop {
            {
                let mut queue = locked(&self.queue);
                queue.bytes.clear();
                if queue.ended {
                    return true;
                }
                self.bell.hush();
            }
            let left = end.saturating_duration_since(std::time::Instant::now());
            if !matches!(readable(&[self.bell.as_fd()], left), Ok(Woken::Readable(_))) {
                return false;
            }
        }
    }

    /// Whether the agent's end has come.
    pub(super) fn has_ended(&self) -> bool {
        locked(&self.queue).ended
    }
}

/// What reads a lane; it is readable when something is there.
pub(super) struct LaneReader(pub(super) Arc<Lane>);

impl Read for LaneReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.take(buffer)
    }
}

impl AsFd for LaneReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.bell.as_fd()
    }
}

/// What writes to a lane's agent.
pub(super) struct LaneWriter {
    pub(super) trunk: Arc<Trunk>,
    pub(super) ticket: u32,
}

impl Write for LaneWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let piece = bytes.get(..PIECE_BYTES_MAX).unwrap_or(bytes);
        if !piece.is_empty() {
            self.trunk.say(self.ticket, piece)?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// All lanes, and whether the connection has ended.
#[derive(Debug, Default)]
struct Lanes {
    by_ticket: BTreeMap<u32, Arc<Lane>>,
    ended: bool,
}

/// The orchestrator's end of a connection to a relay; its end is that of the relay and of all below.
#[derive(Debug)]
pub(crate) struct Trunk {
    to: Mutex<TcpStream>,
    lanes: Arc<Mutex<Lanes>>,
}

impl Trunk {
    /// Takes a connection over, with the lane of the relay's own agent, which may have begun to speak.
    pub(super) fn new(stream: TcpStream) -> std::io::Result<(Self, Arc<Lane>)> {
        let mut from = stream.try_clone()?;
        let lanes: Arc<Mutex<Lanes>> = Arc::default();
        let own = Arc::new(Lane::new()?);
        locked(&lanes).by_ticket.insert(OWN, Arc::clone(&own));
        let theirs = Arc::clone(&lanes);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn(move || {
            // A stream that fails or is no pieces has ended like one that says so.
            while let Ok(Some((ticket, bytes))) = read_piece(&mut from) {
                let lane = locked(&theirs).by_ticket.get(&ticket).cloned();
                if let Some(lane) = lane {
                    lane.put(&bytes);
                }
            }
            drop(from.shutdown(Shutdown::Both));
            let mut lanes = locked(&theirs);
            lanes.ended = true;
            lanes.by_ticket.values().for_each(|lane| lane.put(&[]));
        })?;
        let to = Mutex::new(stream);
        Ok((Self { to, lanes }, own))
    }

    /// The lane of a ticket, which is new and not told to anybody.
    pub(super) fn lane(&self, ticket: u32) -> std::io::Result<Arc<Lane>> {
        let lane = Arc::new(Lane::new()?);
        let mut lanes = locked(&self.lanes);
        if lanes.ended {
            lane.put(&[]);
        }
        lanes.by_ticket.insert(ticket, Arc::clone(&lane));
        Ok(lane)
    }

    /// Says something to the agent of a ticket; nothing is its end.
    pub(super) fn say(&self, ticket: u32, bytes: &[u8]) -> std::io::Result<()> {
        let mut to = locked(&self.to);
        write_piece(&mut *to, ticket, bytes).inspect_err(|_| {
            // Half a piece may be out: nothing that follows would be understood.
            drop(to.shutdown(Shutdown::Both));
        })
    }
}

impl Drop for Trunk {
    fn drop(&mut self) {
        // It fails where the other end is gone.
        drop(locked(&self.to).shutdown(Shutdown::Both));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

    const SOON: Duration = Duration::from_secs(5);

    fn trunk() -> (Trunk, Arc<Lane>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (trunk, own) = Trunk::new(near).unwrap();
        (trunk, own, listener.accept().unwrap().0)
    }

    fn heard(lane: &Arc<Lane>, count: usize) -> Vec<u8> {
        let mut reader = LaneReader(Arc::clone(lane));
        let mut all = Vec::new();
        while all.len() < count {
            let woken = readable(&[reader.as_fd()], SOON).unwrap();
            assert_eq!(woken, Woken::Readable(0));
            let mut buffer = vec![0; count - all.len()];
            let found = reader.read(&mut buffer).unwrap();
            assert!(found > 0, "the lane ended");
            all.extend_from_slice(&buffer[..found]);
        }
        all
    }

    #[test]
    fn pieces_reach_their_lanes() {
        let (trunk, own, mut relay) = trunk();
        let one = trunk.lane(7).unwrap();
        write_piece(&mut relay, 7, b"seven").unwrap();
        write_piece(&mut relay, 9, b"nobody").unwrap();
        write_piece(&mut relay, OWN, b"own").unwrap();
        assert_eq!(heard(&own, 3), b"own");
        assert_eq!(heard(&one, 5), b"seven");
        let silent = readable(&[LaneReader(one).as_fd()], Duration::from_millis(20)).unwrap();
        assert_eq!(silent, Woken::Silence);
        let trunk = Arc::new(trunk);
        let mut writer = LaneWriter { trunk, ticket: 7 };
        writer.write_all(&[5; 100_000]).unwrap();
        let (first, second) = (
            read_piece(&mut relay).unwrap(),
            read_piece(&mut relay).unwrap(),
        );
        assert_eq!(first.unwrap(), (7, vec![5; PIECE_BYTES_MAX]));
        assert_eq!(second.unwrap().1.len(), 100_000 - PIECE_BYTES_MAX);
    }

    #[test]
    fn an_unread_lane_holds_up_no_other() {
        let (trunk, _own, mut relay) = trunk();
        let (full, other) = (trunk.lane(1).unwrap(), trunk.lane(2).unwrap());
        // More than any socket buffers, and then more than a lane may hold.
        for _ in 0..(QUEUE_BYTES_MAX / PIECE_BYTES_MAX) {
            write_piece(&mut relay, 1, &[1; PIECE_BYTES_MAX]).unwrap();
        }
        write_piece(&mut relay, 2, b"x").unwrap();
        assert_eq!(heard(&other, 1), b"x");
        assert!(!full.has_ended());
        write_piece(&mut relay, 1, b"too much").unwrap();
        write_piece(&mut relay, 2, b"y").unwrap();
        assert_eq!(heard(&other, 1), b"y");
        assert!(full.has_ended());
        assert!(full.await_end(SOON));
        assert!(!other.await_end(Duration::from_millis(10)));
    }

    #[test]
    fn the_end_of_a_trunk_is_that_of_its_lanes() {
        let (trunk, _own, mut relay) = trunk();
        let (one, two) = (trunk.lane(1).unwrap(), trunk.lane(2).unwrap());
        write_piece(&mut relay, 1, b"last").unwrap();
        write_piece(&mut relay, 1, b"").unwrap();
        assert!(!two.await_end(Duration::from_millis(20)));
        assert_eq!(heard(&one, 4), b"last");
        assert_eq!(LaneReader(one).read(&mut [0; 4]).unwrap(), 0);
        relay.write_all(&[0; 3]).unwrap();
        drop(relay);
        assert!(two.await_end(SOON));
    }

    proptest! {
        #[test]
        fn any_bytes_are_pieces_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut from = &bytes[..];
            while let Ok(Some((_, piece))) = read_piece(&mut from) {
                prop_assert!(piece.len() <= bytes.len());
            }
        }
    }
}
