//! The listening side: a port, and a thread that lets in who shows the token.
//!
//! Model:   the thread hears all who have connected at a time, within bounds ([`BOUNDS`]): each is sent a nonce, shows the token, is
//!          shown it, and says who it is. One that is silent, slow or violates the protocol holds nobody up; where more come than
//!          may be here, the one that came first goes. Who fails is dropped and counted.
//! Checked: `strangers_are_counted_and_hold_nobody_up`; `tests/connect.rs`.
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

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use sonde_channel::{Arrivals, Bounds, Said, TurnedAway, Woken, readable};

use super::handshake::{self, Hello, Part};
use super::token::Token;
use crate::error::{FleetError, Result};

/// What those may take who have not shown the token.
const BOUNDS: Bounds = Bounds {
    at_a_time: 512,
    bytes: handshake::BYTES_MAX,
    within: Duration::from_secs(5),
};
/// Connections that are taken before those that are here are heard again: each of these is heard some times, however many come.
const AT_ONCE: usize = 32;
/// Connections that wait in the kernel.
const BACKLOG: i32 = 4_096;
/// The thread does little.
const STACK_BYTES: usize = 128 << 10;

/// One that has shown the token.
#[derive(Debug)]
pub(super) struct Peer {
    pub stream: TcpStream,
    pub hello: Hello,
}

/// A port that is open as long as this lives.
pub(super) struct Listener {
    address: SocketAddr,
    peers: Receiver<Peer>,
    shared: Arc<Shared>,
}

/// A descriptor that is readable from its ring on.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> std::io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    pub(super) fn ring(&self) {
        // It fails only where it has been rung 2^64 times.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it silent again.
    pub(super) fn hush(&self) {
        // It fails where it was silent.
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

struct Shared {
    token: Token,
    /// Rings when a peer is there.
    arrived: Bell,
    /// Rings when the listener closes.
    closed: Bell,
    away: Mutex<TurnedAway>,
}

impl Listener {
    /// Opens it.
    ///
    /// # Errors
    /// The address is not this host's, or the port is taken.
    pub(super) fn open(at: SocketAddr, token: Token) -> Result<Self> {
        let failed = |error: std::io::Error| {
            let remedy = match error.kind() {
                ErrorKind::AddrInUse => {
                    "take another port, or 0 for any free one: `--listen ADDRESS:0`"
                }
                ErrorKind::AddrNotAvailable => {
                    "name an address of this host that the others reach (`ip -br address`): `--listen ADDRESS`"
                }
                _ => "name another address or port: `--listen ADDRESS:PORT`",
            };
            FleetError::of_all(format!("listen for agents at {at}"), error, remedy)
        };
        let listener = TcpListener::bind(at).map_err(failed)?;
        let opened = || -> std::io::Result<_> {
            rustix::net::listen(&listener, BACKLOG)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, Bell::new()?, Bell::new()?))
        };
        let (address, arrived, closed) = opened().map_err(failed)?;
        let shared = Arc::new(Shared {
            token,
            arrived,
            closed,
            away: Mutex::default(),
        });
        let (sender, peers) = channel();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let started = thread.spawn(move || attend(&listener, &theirs, &sender));
        started.map_err(failed)?;
        Ok(Self {
            address,
            peers,
            shared,
        })
    }

    /// Where it is.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Rings when a peer is there.
    pub(super) fn bell(&self) -> &Bell {
        &self.shared.arrived
    }

    /// The next peer, if one is there.
    pub(super) fn peer(&self) -> Option<Peer> {
        self.shared.arrived.hush();
        let peer = self.peers.try_recv().ok();
        if peer.is_some() {
            // Another may wait behind this one.
            self.shared.arrived.ring();
        }
        peer
    }

    /// The next peer, awaited for so long.
    pub(super) fn await_peer(&self, timeout: Duration) -> Option<Peer> {
        self.peers.recv_timeout(timeout).ok()
    }

    /// How many came without the token, and what was wrong with the last.
    pub(super) fn strangers(&self) -> TurnedAway {
        let away = self.shared.away.lock();
        away.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.closed.ring();
    }
}

/// Takes connections until the listener closes.
fn attend(socket: &TcpListener, shared: &Shared, peers: &Sender<Peer>) {
    const PAUSE: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(3_600);
    let mut unknown: Arrivals<Greeted> = Arrivals::new(BOUNDS);
    loop {
        let own = [shared.closed.as_fd(), socket.as_fd()];
        let descriptors: Vec<_> = own.into_iter().chain(unknown.descriptors()).collect();
        let woken = readable(&descriptors, unknown.left().unwrap_or(LONG));
        drop(descriptors);
        match woken {
            Ok(Woken::Readable(0)) => return,
            Ok(_) => {}
            Err(_) => std::thread::sleep(PAUSE),
        }
        // Some at a time, so that those who came before are heard between them.
        for _ in 0..AT_ONCE {
            match socket.accept() {
                Ok((stream, from)) => match Greeted::new(stream) {
                    Ok(greeted) => unknown.come(greeted, from.ip(), handshake::WORD_BYTES),
                    Err(error) => unknown.turn_away(from.ip(), error),
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The peer is gone already.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                // No descriptor is left.
                Err(_) => {
                    std::thread::sleep(PAUSE);
                    break;
                }
            }
        }
        for (greeted, hello) in unknown.hear(|greeted, said| greeted.judge(said, &shared.token)) {
            let stream = greeted.stream;
            if stream.set_nonblocking(false).is_ok() {
                // It fails where nobody wants peers any more.
                drop(peers.send(Peer { stream, hello }));
                shared.arrived.ring();
            }
        }
        let mut away = shared.away.lock().unwrap_or_else(PoisonError::into_inner);
        away.clone_from(unknown.away());
    }
}

/// A connection that was sent a nonce.
struct Greeted {
    stream: TcpStream,
    nonce: handshake::Nonce,
}

impl Greeted {
    fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        let nonce = handshake::greet(&stream)?;
        Ok(Self { stream, nonce })
    }

    fn judge(&mut self, said: &[u8], token: &Token) -> Said<Hello> {
        match handshake::judge(&self.stream, &self.nonce, token, said) {
            Ok(Part::Wants(more)) => Said::Wants(more),
            Ok(Part::Hello(hello)) => Said::Peer(hello),
            Err(error) => Said::Unknown(error.to_string()),
        }
    }
}

impl Read for Greeted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl AsFd for Greeted {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Instant;

    #[test]
    fn strangers_are_counted_and_hold_nobody_up() {
        let token = Token::random().unwrap();
        let listener = Listener::open("127.0.0.1:0".parse().unwrap(), token.clone()).unwrap();
        let at = listener.address();
        let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(at).unwrap()).collect();
        let noise: [&[u8]; 3] = [b"GET / HTTP/1.0\r\n\r\n", &[0xff; 4096], b"sonde-join/1\n"];
        for bytes in noise {
            // It may be dropped before it has said all.
            drop(TcpStream::connect(at).unwrap().write_all(bytes));
        }
        let peer = TcpStream::connect(at).unwrap();
        let soon = Instant::now() + BOUNDS.within;
        handshake::introduce(&peer, &token, soon).unwrap();
        let hello = Hello {
            name: "n1".into(),
            machine: String::new(),
            rank: 0,
            size: None,
            address: at.ip(),
            version: String::new(),
            ticket: None,
        };
        handshake::say(&peer, &hello).unwrap();
        let began = Instant::now();
        let heard = listener.await_peer(2 * BOUNDS.within).unwrap();
        assert_eq!(heard.hello, hello);
        assert!(
            began.elapsed() < BOUNDS.within,
            "the silent ones were waited for"
        );
        while listener.strangers().count < 3 {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(silent);
        while listener.strangers().count < 43 {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(listener.peer().is_none());
        // A closed listener takes nobody.
        drop(listener);
        let end = Instant::now() + BOUNDS.within;
        while TcpStream::connect(at).is_ok() {
            assert!(Instant::now() < end, "the port stayed open");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
