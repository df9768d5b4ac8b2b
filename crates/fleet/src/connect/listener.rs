//! The listening side: a port, and a thread that lets in who shows the token.
//!
//! Model:   each connection is heard by a thread of its own until it has shown the token and said who it is, which has one
//!          deadline; so one that is silent, slow or violates the protocol holds nobody up but itself. So many may be heard at a
//!          time; the rest wait in the kernel. Who fails is dropped and counted.
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

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use sonde_channel::{Woken, readable};

use super::handshake::{self, Hello};
use super::token::Token;
use crate::error::{FleetError, Result};

/// From the connection to the end of the hello.
const HEARING: Duration = Duration::from_secs(5);
/// Connections that are heard at a time.
const HEARD_MAX: usize = 256;
/// Connections that wait in the kernel.
const BACKLOG: i32 = 1_024;
/// The threads do little.
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
    heard: AtomicUsize,
    strangers: AtomicU64,
    last: Mutex<Option<String>>,
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
            heard: AtomicUsize::new(0),
            strangers: AtomicU64::new(0),
            last: Mutex::new(None),
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
    pub(super) fn strangers(&self) -> (u64, Option<String>) {
        let last = self.shared.last.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner).clone();
        (self.shared.strangers.load(Ordering::Relaxed), last)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.closed.ring();
    }
}

/// Takes connections until the listener closes.
fn attend(socket: &TcpListener, shared: &Arc<Shared>, peers: &Sender<Peer>) {
    const PAUSE: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(3_600);
    let mut open = true;
    while open {
        let may = shared.heard.load(Ordering::Acquire) < HEARD_MAX;
        let both = [shared.closed.as_fd(), socket.as_fd()];
        let (list, timeout) = if may {
            (&both[..], LONG)
        } else {
            (both.get(..1).unwrap_or_default(), PAUSE)
        };
        match readable(list, timeout) {
            Ok(Woken::Readable(0)) => open = false,
            Ok(Woken::Readable(_)) => match socket.accept() {
                Ok((stream, from)) => hear(stream, from, shared, peers),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // No descriptor is left, or the peer is gone already.
                Err(_) => std::thread::sleep(PAUSE),
            },
            Ok(Woken::Silence) => {}
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn hear(stream: TcpStream, from: SocketAddr, shared: &Arc<Shared>, peers: &Sender<Peer>) {
    let (theirs, peers) = (Arc::clone(shared), peers.clone());
    shared.heard.fetch_add(1, Ordering::AcqRel);
    let end = Instant::now() + HEARING;
    let hearing = move || {
        let heard = || {
            stream.set_nonblocking(false)?;
            handshake::receive(&stream, &theirs.token, end)?;
            handshake::hear(&stream, end)
        };
        match heard() {
            Ok(hello) => {
                // It fails where nobody wants peers any more.
                drop(peers.send(Peer { stream, hello }));
                theirs.arrived.ring();
            }
            Err(error) => {
                let story = format!("{}: {error}", from.ip());
                let mut last = theirs.last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some(story);
                theirs.strangers.fetch_add(1, Ordering::Relaxed);
            }
        }
        theirs.heard.fetch_sub(1, Ordering::AcqRel);
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    if thread.spawn(hearing).is_err() {
        shared.heard.fetch_sub(1, Ordering::AcqRel);
        shared.strangers.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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
        let soon = Instant::now() + HEARING;
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
        let heard = listener.await_peer(2 * HEARING).unwrap();
        assert_eq!(heard.hello, hello);
        assert!(began.elapsed() < HEARING, "the silent ones were waited for");
        while listener.strangers().0 < 3 {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(silent);
        while listener.strangers().0 < 43 {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(listener.peer().is_none());
        // A closed listener takes nobody.
        drop(listener);
        let end = Instant::now() + HEARING;
        while TcpStream::connect(at).is_ok() {
            assert!(Instant::now() < end, "the port stayed open");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
