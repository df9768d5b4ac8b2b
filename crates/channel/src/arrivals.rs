//! Connections that have not shown yet who they are, of whatever listens: bounded in number, bytes, time and memory.
//!
//! Model:   each says what is wanted of it, piece by piece, and nothing beyond is read. Whoever says something else, ends, or is not
//!          done in time is turned away and counted; where more come than may be here at a time, the one that came first goes. So one
//!          that is slow, silent or violates the protocol takes the time and the memory of nobody but itself.
//! Checked: `who_is_slow_holds_nobody_up`, `the_first_goes_where_more_come`, `nothing_is_read_beyond_what_is_wanted`.
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

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// What is read at a time.
const PIECE_BYTES: usize = 4 << 10;

/// What those that have not shown who they are may take together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at a time.
    pub at_a_time: usize,
    /// Bytes that one may say.
    pub bytes: usize,
    /// From the connection to the last of these bytes.
    pub within: Duration,
}

/// What to make of the words of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Said<T> {
    /// So many bytes more are wanted, at least one.
    Wants(usize),
    /// It has shown who it is.
    Peer(T),
    /// It has not, and never will: why.
    Unknown(String),
}

/// Who was turned away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnedAway {
    /// How many.
    pub count: u64,
    /// The last of them, and why.
    pub last: Option<String>,
}

impl TurnedAway {
    /// Counts one.
    pub fn one(&mut self, who: impl Display, why: impl Display) {
        self.count = self.count.saturating_add(1);
        self.last = Some(format!("{who}: {why}"));
    }

    /// Adds others, which came later.
    pub fn add(&mut self, others: Self) {
        self.count = self.count.saturating_add(others.count);
        self.last = others.last.or_else(|| self.last.take());
    }
}

/// A connection that has not said all.
#[derive(Debug)]
struct Speaking<S> {
    stream: S,
    from: String,
    said: Vec<u8>,
    wants: usize,
    since: Instant,
}

/// All of a listener.
#[derive(Debug)]
pub struct Arrivals<S> {
    bounds: Bounds,
    speaking: VecDeque<Speaking<S>>,
    away: TurnedAway,
}

impl<S: Read + AsFd> Arrivals<S> {
    /// Nobody yet.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            speaking: VecDeque::new(),
            away: TurnedAway::default(),
        }
    }

    /// One has connected, by a socket that does not block, and is to say `wants` bytes first.
    pub fn come(&mut self, stream: S, from: impl Display, wants: usize) {
        if self.speaking.len() >= self.bounds.at_a_time
            && let Some(first) = self.speaking.pop_front()
        {
            self.away
                .one(first.from, "more came than may be heard at a time");
        }
        self.speaking.push_back(Speaking {
            stream,
            from: from.to_string(),
            said: Vec::new(),
            wants,
            since: Instant::now(),
        });
    }

    /// One that could not even be heard.
    pub fn turn_away(&mut self, who: impl Display, why: impl Display) {
        self.away.one(who, why);
    }

    /// Their sockets, to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.speaking.iter().map(|one| one.stream.as_fd())
    }

    /// Until the first of them is out of time; `None` where nobody is here.
    pub fn left(&self) -> Option<Duration> {
        let first = self.speaking.front()?;
        Some(self.bounds.within.saturating_sub(first.since.elapsed()))
    }

    /// Hears what all have said since, without waiting: those that have shown who they are.
    pub fn hear<T>(&mut self, mut judge: impl FnMut(&mut S, &[u8]) -> Said<T>) -> Vec<(S, T)> {
        let mut known = Vec::new();
        for mut one in std::mem::take(&mut self.speaking) {
            match one.hear(&self.bounds, &mut judge) {
                Said::Wants(_) => self.speaking.push_back(one),
                Said::Peer(peer) => known.push((one.stream, peer)),
                Said::Unknown(why) => self.away.one(one.from, why),
            }
        }
        known
    }

    /// Who was turned away so far.
    pub fn away(&self) -> &TurnedAway {
        &self.away
    }

    /// Turns away who is still here: nobody else is awaited.
    pub fn close(&mut self) -> TurnedAway {
        for one in std::mem::take(&mut self.speaking) {
            self.away
                .one(one.from, "it had not shown who it is when all were here");
        }
        std::mem::take(&mut self.away)
    }
}

impl<S: Read> Speaking<S> {
    fn hear<T>(
        &mut self,
        bounds: &Bounds,
        judge: &mut impl FnMut(&mut S, &[u8]) -> Said<T>,
    ) -> Said<T> {
        let mut piece = [0; PIECE_BYTES];
        loop {
            if self.said.len().saturating_add(self.wants) > bounds.bytes {
                return Said::Unknown(format!("it has more to say than {} bytes", bounds.bytes));
            }
            let room = self.wants.min(PIECE_BYTES);
            let room = piece.get_mut(..room).unwrap_or_default();
            match self.stream.read(room) {
                Ok(0) => return Said::Unknown("it ended before it had said who it is".into()),
                Ok(count) => {
                    self.said.extend(room.iter().take(count));
                    self.wants = self.wants.saturating_sub(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return if self.since.elapsed() > bounds.within {
                        Said::Unknown(format!("silent for {} s", bounds.within.as_secs_f32()))
                    } else {
                        Said::Wants(self.wants)
                    };
                }
                Err(error) => return Said::Unknown(error.to_string()),
            }
            if self.since.elapsed() > bounds.within {
                return Said::Unknown(format!("slower than {} s", bounds.within.as_secs_f32()));
            }
            if self.wants > 0 {
                continue;
            }
            match judge(&mut self.stream, &self.said) {
                Said::Wants(more) => self.wants = more.max(1),
                other => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    const BOUNDS: Bounds = Bounds {
        at_a_time: 3,
        bytes: 16,
        within: Duration::from_millis(200),
    };

    fn arrivals(bounds: Bounds, count: usize) -> (Arrivals<UnixStream>, Vec<UnixStream>) {
        let mut arrivals = Arrivals::new(bounds);
        let far = (0..count).map(|number| {
            let (near, far) = UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            arrivals.come(near, number, 2);
            far
        });
        let far = far.collect();
        (arrivals, far)
    }

    /// Two bytes say how much follows.
    fn judge(_: &mut UnixStream, said: &[u8]) -> Said<Vec<u8>> {
        match said {
            [b'x', ..] => Said::Unknown("x".into()),
            [_, more] => Said::Wants(usize::from(*more)),
            _ => Said::Peer(said[2..].to_vec()),
        }
    }

    #[test]
    fn who_is_slow_holds_nobody_up() {
        let (mut arrivals, mut far) = arrivals(BOUNDS, 3);
        far[0].write_all(b"a").unwrap();
        far[1].write_all(b"a\x03abc").unwrap();
        let known = arrivals.hear(judge);
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].1, b"abc");
        assert!(arrivals.left().unwrap() <= BOUNDS.within && arrivals.away().count == 0);
        std::thread::sleep(BOUNDS.within + Duration::from_millis(20));
        assert_eq!(arrivals.left(), Some(Duration::ZERO));
        far[0].write_all(b"\x01").unwrap();
        assert!(arrivals.hear(judge).is_empty());
        assert_eq!((arrivals.away().count, arrivals.left()), (2, None));
    }

    #[test]
    fn the_first_goes_where_more_come() {
        let (mut arrivals, mut far) = arrivals(BOUNDS, 5);
        far[0].write_all(b"a\x01a").unwrap_or_default();
        far[4].write_all(b"a\x01b").unwrap();
        far[3].write_all(b"x!").unwrap();
        let known = arrivals.hear(judge);
        assert_eq!(known[0].1, b"b");
        assert_eq!(arrivals.away().count, 3);
        assert_eq!(arrivals.close().count, 4);
        assert_eq!(arrivals.descriptors().count(), 0);
    }

    #[test]
    fn nothing_is_read_beyond_what_is_wanted() {
        let (mut arrivals, mut far) = arrivals(BOUNDS, 2);
        far[0].write_all(b"a\x02abrest").unwrap();
        // More is announced than one may say.
        far[1].write_all(b"a\x0f").unwrap();
        let mut known = arrivals.hear(judge);
        let mut rest = [0; 8];
        assert_eq!(known[0].0.read(&mut rest).unwrap(), 4);
        assert_eq!(&rest[..4], b"rest");
        let away = arrivals.away();
        assert_eq!(
            away.last.as_deref(),
            Some("1: it has more to say than 16 bytes")
        );
        assert_eq!(away.count, 1);
    }
}
