//! The agent in the middle: what it hands on between the orchestrator and the agents below it.
//!
//! Model:   one thread waits for the orchestrator, for its own agent (which the main thread plays, on a pair of sockets),
//!          for new agents at its listener, and for those that are there; what they say goes up in pieces with their tickets
//!          ([`super::trunk`]), what comes down goes to the ticket's agent. It keeps nothing and understands nothing.
//!          The end of the orchestrator's connection is the end of all; the end of one agent is told, and no other's.
//! Checked: `agents_below_are_heard_and_end_alone`; `tests/connect.rs` with 130 agents.
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

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::handshake::{self, Welcome};
use super::listener::Listener;
use super::trunk::{OWN, PIECE_BYTES_MAX, read_piece, write_piece};

/// An agent that takes nothing for so long is given up.
const STALL_MAX: Duration = Duration::from_secs(15);

/// Relays until the orchestrator's connection ends.
pub(super) fn serve(up: TcpStream, own: UnixStream, listener: &Listener) -> std::io::Result<()> {
    own.set_write_timeout(Some(STALL_MAX))?;
    // A piece that has begun comes whole, or the connection is no good any more.
    up.set_read_timeout(Some(STALL_MAX))?;
    let mut relay = Relay {
        up,
        below: BTreeMap::from([(OWN, Below::Own(own))]),
    };
    while relay.step(listener)? {}
    Ok(())
}

/// A stream to an agent.
enum Below {
    Own(UnixStream),
    Peer(TcpStream),
}

impl Below {
    fn read(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Own(stream) => (&mut &*stream).read(buffer),
            Self::Peer(stream) => (&mut &*stream).read(buffer),
        }
    }

    /// Hands on what was said to it; nothing is the end of that.
    fn tell(&self, bytes: &[u8]) -> std::io::Result<()> {
        match (self, bytes.is_empty()) {
            (Self::Own(stream), true) => stream.shutdown(Shutdown::Write),
            (Self::Peer(stream), true) => stream.shutdown(Shutdown::Write),
            (Self::Own(stream), false) => (&mut &*stream).write_all(bytes),
            (Self::Peer(stream), false) => (&mut &*stream).write_all(bytes),
        }
    }
}

impl AsFd for Below {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(stream) => stream.as_fd(),
            Self::Peer(stream) => stream.as_fd(),
        }
    }
}

struct Relay {
    up: TcpStream,
    below: BTreeMap<u32, Below>,
}

impl Relay {
    /// Waits for something to happen and does what follows; false at the end.
    fn step(&mut self, listener: &Listener) -> std::io::Result<bool> {
        let tickets: Vec<u32> = self.below.keys().copied().collect();
        let fds = [self.up.as_fd(), listener.bell().as_fd()];
        let fds = fds.into_iter().chain(self.below.values().map(AsFd::as_fd));
        let mut list: Vec<_> = fds
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut list, None) {
            Err(Errno::INTR) => return Ok(true),
            polled => polled?,
        };
        let ready: Vec<bool> = list.iter().map(|fd| !fd.revents().is_empty()).collect();
        let [from_above, comes, below @ ..] = &ready[..] else {
            return Ok(true);
        };
        for (ticket, _) in tickets.iter().zip(below).filter(|(_, ready)| **ready) {
            self.hand_up(*ticket)?;
        }
        if *comes {
            self.admit(listener)?;
        }
        if *from_above {
            return self.hand_down();
        }
        Ok(true)
    }

    fn hand_up(&mut self, ticket: u32) -> std::io::Result<()> {
        let Some(below) = self.below.get(&ticket) else {
            return Ok(());
        };
        let mut buffer = vec![0; PIECE_BYTES_MAX];
        // One that fails has ended.
        let count = below.read(&mut buffer).unwrap_or(0);
        buffer.truncate(count);
        write_piece(&mut self.up, ticket, &buffer)?;
        if count == 0 {
            self.below.remove(&ticket);
        }
        Ok(())
    }

    fn hand_down(&mut self) -> std::io::Result<bool> {
        let Some((ticket, bytes)) = read_piece(&mut self.up)? else {
            return Ok(false);
        };
        let told = self.below.get(&ticket).map(|below| below.tell(&bytes));
        if let Some(Err(_)) = told {
            self.below.remove(&ticket);
            write_piece(&mut self.up, ticket, &[])?;
        }
        Ok(true)
    }

    /// Lets an agent in that brings a ticket, once.
    fn admit(&mut self, listener: &Listener) -> std::io::Result<()> {
        let Some(peer) = listener.peer() else {
            return Ok(());
        };
        let ticket = peer
            .hello
            .ticket
            .filter(|ticket| !self.below.contains_key(ticket));
        let Some(ticket) = ticket else {
            let why = "this relay expects agents that the orchestrator sent, each once".into();
            // It may be gone.
            drop(handshake::say(
                &peer.stream,
                &Welcome::Go { why, refused: true },
            ));
            return Ok(());
        };
        if handshake::say(&peer.stream, &Welcome::Stay {}).is_err() {
            return write_piece(&mut self.up, ticket, &[]);
        }
        self.below.insert(ticket, Below::Peer(peer.stream));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::handshake::Hello;
    use super::super::token::Token;
    use super::*;
    use std::net::TcpListener;
    use std::time::Instant;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    /// One below, and what it was told.
    fn come(listener: std::net::SocketAddr, token: &Token, ticket: u32) -> (TcpStream, Welcome) {
        let stream = TcpStream::connect(listener).unwrap();
        handshake::introduce(&stream, token, soon()).unwrap();
        let hello = Hello {
            name: format!("n{ticket}"),
            machine: String::new(),
            rank: ticket,
            size: None,
            address: listener.ip(),
            version: String::new(),
            ticket: Some(ticket),
        };
        handshake::say(&stream, &hello).unwrap();
        let welcome = handshake::hear(&stream, soon()).unwrap();
        (stream, welcome)
    }

    #[test]
    fn agents_below_are_heard_and_end_alone() {
        let token = Token::random().unwrap();
        let listener = Listener::open("127.0.0.1:0".parse().unwrap(), token.clone()).unwrap();
        let at = listener.address();
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut root = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        root.set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let (up, (own, mut agent)) = (socket.accept().unwrap().0, UnixStream::pair().unwrap());
        let relay = std::thread::spawn(move || serve(up, own, &listener));
        agent.write_all(b"own").unwrap();
        assert_eq!(
            read_piece(&mut root).unwrap().unwrap(),
            (OWN, b"own".to_vec())
        );
        let (mut one, welcome) = come(at, &token, 4);
        assert_eq!(welcome, Welcome::Stay {});
        assert!(matches!(
            come(at, &token, 4).1,
            Welcome::Go { refused: true, .. }
        ));
        let (two, _) = come(at, &token, 5);
        one.write_all(b"four").unwrap();
        assert_eq!(
            read_piece(&mut root).unwrap().unwrap(),
            (4, b"four".to_vec())
        );
        write_piece(&mut root, 4, b"told").unwrap();
        let mut told = [0; 4];
        one.read_exact(&mut told).unwrap();
        assert_eq!(&told, b"told");
        // One that dies is told; the others live.
        drop(two);
        assert_eq!(read_piece(&mut root).unwrap().unwrap(), (5, vec![]));
        // One that is hung up sees the end of its input, and its own end is told.
        write_piece(&mut root, 4, b"").unwrap();
        assert_eq!(one.read(&mut told).unwrap(), 0);
        drop(one);
        assert_eq!(read_piece(&mut root).unwrap().unwrap(), (4, vec![]));
        let (mut three, _) = come(at, &token, 6);
        drop(root);
        relay.join().unwrap().unwrap();
        assert_eq!(
            three.read(&mut told).unwrap_or(0),
            0,
            "all end with the orchestrator"
        );
        assert_eq!(agent.read(&mut told).unwrap_or(0), 0);
    }
}
