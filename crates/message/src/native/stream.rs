//! Ranks that are joined by stream sockets, TCP or UNIX, one between each two.
//!
//! Model:   sockets do not block. A head and a short body go in one piece, longer bodies by one call with their head
//!          (writev). What comes is read into a buffer of the socket's, which a long body passes by: it goes straight to
//!          where it belongs. Who polls asks the socket of the awaited rank every time and all others by epoll now and then;
//!          who blocks sleeps in epoll.
//! Units:   bytes.
//! Checked: `tcp_joins_ranks`, `unix_joins_ranks`; with processes, `tests/join.rs`.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use sonde_measure::LongMessages;
use sonde_sys::epoll::{Epoll, Event, Interest};

use super::engine::Limits;
use super::frame::{self, HEAD_BYTES};
use super::wires::{Broken, Wired, Wires};

/// The bounds of messages over stream sockets.
pub(super) const LIMITS: Limits = Limits {
    eager_bytes: 128 << 10,
    window_bytes: 1 << 20,
    envelopes: 16_384,
};
/// What is read ahead.
const AHEAD_BYTES: usize = 16 << 10;
/// Room that is read into directly.
const DIRECT_BYTES: usize = 4 << 10;
/// Of a body more than this to come is waited for by epoll: to ask the socket itself keeps it from taking in what comes (its
/// lock: 29 % of a ping-pong of 16 MiB over loopback).
const BULK_BYTES: usize = 32 << 10;
/// Head and body up to this long are one piece.
const PIECE_BYTES: usize = 512;
/// Looks at the awaited rank alone, between two at all.
const HOT_LOOKS: u32 = 16;
const EVENTS: usize = 32;

/// The socket to one other rank.
#[derive(Debug)]
struct Line<S> {
    socket: S,
    ahead: Box<[u8]>,
    begin: usize,
    end: usize,
    /// There was no more when it was read last.
    is_dry: bool,
    /// The rest of a long body is coming: epoll tells when there is some of it.
    is_bulk: bool,
    /// It took less than it was given: epoll tells when there is room.
    is_full: bool,
    /// It has said goodbye, and may end.
    has_left: bool,
    is_closed: bool,
}

/// The sockets of one rank.
#[derive(Debug)]
pub struct Lines<S> {
    /// By rank; none for this one.
    lines: Vec<Option<Line<S>>>,
    /// The other rank, where there is but one.
    only: Option<u32>,
    epoll: Epoll,
    /// Ranks whose sockets were found readable while sleeping.
    woken: Vec<u32>,
    /// How many sockets are full, or in the middle of a long body.
    slow: u32,
    looks: u32,
}

fn broken(rank: u32, what: &str, error: &std::io::Error) -> Broken {
    let why = format!("{what}: {error}");
    Broken { rank, why }
}

impl<S: Read + Write + AsFd> Lines<S> {
    /// Those of a rank, in order of rank, with none for itself. The sockets do not block.
    ///
    /// # Errors
    /// The kernel has no epoll.
    pub(super) fn new(sockets: Vec<Option<S>>) -> sonde_sys::Result<Self> {
        let epoll = Epoll::new()?;
        for (rank, socket) in sockets.iter().enumerate() {
            if let Some(socket) = socket {
                epoll.add(socket, rank as u64, Interest::Read)?;
            }
        }
        let line = |socket| Line {
            socket,
            ahead: vec![0; AHEAD_BYTES].into(),
            begin: 0,
            end: 0,
            is_dry: true,
            is_bulk: false,
            is_full: false,
            has_left: false,
            is_closed: false,
        };
        let others = || sockets.iter().flatten().count();
        let only = (others() == 1).then(|| sockets.iter().position(Option::is_some));
        Ok(Self {
            only: only.flatten().map(|rank| rank as u32),
            lines: sockets.into_iter().map(|socket| socket.map(line)).collect(),
            epoll,
            woken: Vec::new(),
            slow: 0,
            looks: 0,
        })
    }

    fn poll(&mut self, timeout: Duration) -> Wired<()> {
        let mut events = [Event::EMPTY; EVENTS];
        let found = self.epoll.wait(&mut events, Some(timeout));
        let found = found.map_err(|error| Broken {
            rank: self.only.unwrap_or(0),
            why: error.to_string(),
        })?;
        for event in found {
            let rank = event.token() as u32;
            let Some(line) = &mut self.lines[rank as usize] else {
                continue;
            };
            if event.readable() {
                line.is_dry = false;
                self.woken.push(rank);
            }
            if line.is_full && event.writable() {
                line.is_full = false;
                self.slow -= 1;
                line.tell_epoll(&self.epoll, rank, Interest::Read)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn on_full(&mut self, to: u32) -> Wired<()> {
        let line = self.lines[to as usize].as_mut().expect("another rank");
        line.is_full = true;
        self.slow += 1;
        line.tell_epoll(&self.epoll, to, Interest::Both)
    }
}

impl<S: Read + Write + AsFd> Line<S> {
    fn tell_epoll(&self, epoll: &Epoll, rank: u32, interest: Interest) -> Wired<()> {
        if self.has_left {
            return Ok(());
        }
        let told = epoll.modify(&self.socket, u64::from(rank), interest);
        told.map_err(|error| Broken {
            rank,
            why: error.to_string(),
        })
    }

    /// Reads what there is into `into`, or ahead.
    #[inline]
    fn read(&mut self, from: u32, into: Option<&mut [u8]>) -> Wired<usize> {
        let into = into.unwrap_or(&mut self.ahead);
        let room = into.len();
        loop {
            match self.socket.read(into) {
                Ok(0) => return self.on_end(from),
                Ok(count) => {
                    self.is_dry = count < room;
                    return Ok(count);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => {
                        self.is_dry = true;
                        return Ok(0);
                    }
                    ErrorKind::Interrupted => {}
                    _ if self.has_left => return self.on_end(from),
                    _ => {
                        self.is_closed = true;
                        return Err(broken(from, "its connection broke", &error));
                    }
                },
            }
        }
    }

    #[cold]
    fn on_end(&mut self, from: u32) -> Wired<usize> {
        (self.is_closed, self.is_dry) = (true, true);
        if self.has_left {
            return Ok(0);
        }
        let why = "it closed its connection without a goodbye".into();
        Err(Broken { rank: from, why })
    }
}

impl<S: Read + Write + AsFd> Wires for Lines<S> {
    const LOOKS: u32 = 64;
    const LOOKS_BEFORE_SLEEP: u32 = 0;
    const SAYS_BYE: bool = true;

    #[inline]
    fn push(&mut self, to: u32, head: &[u8], body: &[u8]) -> Wired<usize> {
        let line = self.lines[to as usize].as_mut().expect("another rank");
        let all = head.len() + body.len();
        if all == 0 || line.is_full {
            return Ok(0);
        }
        loop {
            let written = if all <= PIECE_BYTES {
                let mut piece = [0; PIECE_BYTES];
                piece[..head.len()].copy_from_slice(head);
                piece[head.len()..all].copy_from_slice(body);
                line.socket.write(&piece[..all])
            } else if head.is_empty() {
                line.socket.write(body)
            } else {
                let parts = [IoSlice::new(head), IoSlice::new(body)];
                line.socket.write_vectored(&parts)
            };
            match written {
                Ok(count) if count == all => return Ok(count),
                Ok(count) => {
                    self.on_full(to)?;
                    return Ok(count);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => {
                        self.on_full(to)?;
                        return Ok(0);
                    }
                    ErrorKind::Interrupted => {}
                    _ => return Err(broken(to, "its connection broke", &error)),
                },
            }
        }
    }

    #[inline]
    fn pull(&mut self, from: u32, into: &mut [u8]) -> Wired<usize> {
        let line = self.lines[from as usize].as_mut().expect("another rank");
        if line.begin == line.end {
            if line.is_dry || line.is_closed || into.is_empty() {
                return Ok(0);
            }
            if into.len() >= DIRECT_BYTES {
                let room = into.len();
                let count = line.read(from, Some(into))?;
                let is_bulk = room - count >= BULK_BYTES;
                self.slow = self.slow + u32::from(is_bulk) - u32::from(line.is_bulk);
                line.is_bulk = is_bulk;
                return Ok(count);
            }
            (line.begin, line.end) = (0, 0);
            line.end = line.read(from, None)?;
        }
        let count = into.len().min(line.end - line.begin);
        into[..count].copy_from_slice(&line.ahead[line.begin..line.begin + count]);
        line.begin += count;
        Ok(count)
    }

    #[inline]
    fn next_head(&mut self, from: u32) -> Wired<Option<[u64; 3]>> {
        let line = self.lines[from as usize].as_mut().expect("another rank");
        if line.begin == line.end && self.slow == 0 && !line.is_closed {
            (line.begin, line.end) = (0, 0);
            line.end = line.read(from, None)?;
        }
        let Some(head) = line.ahead[line.begin..line.end].first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let words = frame::words(head);
        line.begin += HEAD_BYTES;
        Ok(Some(words))
    }

    #[inline]
    fn look(&mut self, awaited: Option<u32>, sleeps: bool, list: &mut Vec<u32>) -> Wired<()> {
        for (rank, line) in self.lines.iter().enumerate() {
            if line.as_ref().is_some_and(|line| line.begin < line.end) {
                list.push(rank as u32);
            }
        }
        list.append(&mut self.woken);
        if sleeps {
            return Ok(());
        }
        self.looks = self.looks.wrapping_add(1);
        let hot = self.only.or(awaited);
        match hot {
            Some(hot) if self.slow == 0 && (self.only.is_some() || self.looks % HOT_LOOKS != 0) => {
                if let Some(line) = &mut self.lines[hot as usize] {
                    line.is_dry = false;
                    if line.begin == line.end {
                        list.push(hot);
                    }
                }
            }
            _ => self.poll(Duration::ZERO)?,
        }
        list.append(&mut self.woken);
        Ok(())
    }

    fn sleep(&mut self, nap: Duration, stuck: &[u32]) -> Wired<()> {
        // A rank that has left is not in the set any more: what it had not taken is tried again soon.
        let has_left = |rank: &u32| {
            let line = self.lines[*rank as usize].as_ref();
            line.is_some_and(|line| line.has_left)
        };
        let nap = if stuck.iter().any(has_left) {
            nap.min(Duration::from_millis(1))
        } else {
            nap
        };
        self.poll(nap)
    }

    fn lost(&mut self) -> Option<Broken> {
        None
    }

    fn on_bye(&mut self, from: u32) {
        let line = self.lines[from as usize].as_mut().expect("another rank");
        line.has_left = true;
        self.slow -= u32::from(line.is_full) + u32::from(line.is_bulk);
        (line.is_full, line.is_bulk) = (false, false);
        // Its end would be found readable for ever.
        drop(self.epoll.remove(&line.socket));
    }

    fn tell_loss(&mut self, _: u32, _: &str) -> bool {
        false
    }

    fn finish(&mut self) {
        self.lines.clear();
    }

    fn copy_from(&mut self, _: u32, _: u64, _: &mut [u8]) -> bool {
        false
    }

    fn copies(&self) -> bool {
        false
    }

    fn long_messages(&self) -> Option<LongMessages> {
        Some(LongMessages::Rendezvous)
    }
}
