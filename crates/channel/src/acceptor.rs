//! A listening socket of TCP, and whom it takes: the peers that were announced, by address and port.
//!
//! Model:   whoever else connects is closed as he is accepted, unread and unanswered, and counted. While a peer measures, a thread
//!          does that ([`Acceptor::watch`]), so that those who come then neither wait nor fill the kernel's queue; it sleeps where
//!          nobody comes. An announced peer that comes meanwhile is kept for the next [`Acceptor::accept`].
//! Checked: `others_are_closed_unread_and_counted`, `who_comes_meanwhile_is_counted_and_the_next_peer_kept`; `tests/hostile.rs` of
//!          `probe`.

use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use sonde_measure::Path;
use sonde_sys::thread;

use crate::arrivals::TurnedAway;
use crate::stream::await_guest;
use crate::wait::{Woken, readable};
use crate::{Error, Options, Result, Tcp};

/// Connections that wait in the kernel; its own bound, net.core.somaxconn, is 4,096 where nobody has changed it.
const BACKLOG: i32 = 4_096;
/// Announced peers that may come before they are awaited.
const EARLY_MAX: usize = 4_096;
/// After a failure to accept: no descriptor is left.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two looks of the thread that watches, where nothing happens.
const LONG: Duration = Duration::from_secs(3_600);
const UNANNOUNCED: &str = "not from an address and port of this conversation";

/// From where peers come; all that is not said may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announced {
    /// Their addresses.
    pub addresses: Option<BTreeSet<IpAddr>>,
    /// The ports that they send from.
    pub ports: Option<BTreeSet<u16>>,
}

impl Announced {
    /// Whether one of them may come from there.
    pub fn has(&self, from: SocketAddr) -> bool {
        let is_address = |all: &BTreeSet<IpAddr>| all.contains(&from.ip().to_canonical());
        self.addresses.as_ref().is_none_or(is_address)
            && self
                .ports
                .as_ref()
                .is_none_or(|all| all.contains(&from.port()))
    }
}

/// Those who came while a peer measured.
#[derive(Debug, Default)]
struct Meanwhile {
    early: VecDeque<(TcpStream, SocketAddr)>,
    away: TurnedAway,
}

/// The thread that takes them.
#[derive(Debug)]
struct Watch {
    over: Arc<OwnedFd>,
    thread: JoinHandle<Meanwhile>,
}

/// A listening socket.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    local: SocketAddr,
    options: Options,
    announced: Arc<Announced>,
    meanwhile: Meanwhile,
    watch: Option<Watch>,
}

impl Acceptor {
    /// Listens on `local`; port zero takes a free one. Connections inherit the options. Anybody may come until peers are
    /// announced.
    ///
    /// # Errors
    /// The address is not one of this host's, or is in use; an option does not take.
    pub fn bind(local: SocketAddr, options: Options) -> Result<Self> {
        let refused = |attempt| Error::refused(local, attempt);
        let listener = TcpListener::bind(local).map_err(refused("listen"))?;
        // A connection's buffers and window scale are the listener's at the time of its SYN; none has come before
        // the port is told to anybody.
        options.apply(&listener, Path::Tcp)?;
        let longer = rustix::net::listen(&listener, BACKLOG).map_err(std::io::Error::from);
        longer.map_err(refused("listen"))?;
        listener
            .set_nonblocking(true)
            .map_err(refused("set non-blocking"))?;
        let local = listener.local_addr().map_err(refused("read the address"))?;
        Ok(Self {
            listener,
            local,
            options,
            announced: Arc::default(),
            meanwhile: Meanwhile::default(),
            watch: None,
        })
    }

    /// The address with its port.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whom it takes from now on.
    pub fn expect(&mut self, announced: Announced) {
        self.announced = Arc::new(announced);
    }

    /// Waits for the next announced peer; `Ok(None)` when `stop` can be read before one comes.
    ///
    /// # Errors
    /// None came within `timeout`.
    pub fn accept(
        &mut self,
        stop: Option<BorrowedFd<'_>>,
        timeout: Duration,
    ) -> Result<Option<Tcp>> {
        self.end_watch();
        while let Some((stream, peer)) = self.meanwhile.early.pop_front() {
            if self.announced.has(peer) {
                return Tcp::bounded(stream.into(), peer, self.options.clone()).map(Some);
            }
            self.meanwhile.away.one(peer, UNANNOUNCED);
        }
        let (listener, announced) = (&self.listener, &self.announced);
        let away = &mut self.meanwhile.away;
        let accepted = await_guest(listener.as_fd(), self.local, stop, timeout, || {
            let (stream, peer) = listener.accept()?;
            if announced.has(peer) {
                return Ok((stream, peer));
            }
            away.one(peer, UNANNOUNCED);
            Err(ErrorKind::WouldBlock.into())
        })?;
        // Linux does not pass O_NONBLOCK from a listener on; accept4 is called without it.
        let tcp = accepted.map(|(fd, peer)| Tcp::bounded(fd.into(), peer, self.options.clone()));
        tcp.transpose()
    }

    /// The announced peers that wait at this moment, each with its connection or what failed of it, and who else was turned away
    /// since the last call.
    pub fn waiting(&mut self) -> (Vec<(SocketAddr, Result<Tcp>)>, TurnedAway) {
        let away = self.turned_away();
        let early = std::mem::take(&mut self.meanwhile.early).into_iter();
        let options = &self.options;
        let peers =
            early.map(|(stream, peer)| (peer, Tcp::bounded(stream.into(), peer, options.clone())));
        (peers.collect(), away)
    }

    /// Closes to others by a thread until the next [`accept`](Self::accept).
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn watch(&mut self) -> Result<()> {
        self.end_watch();
        let refused = |attempt| Error::refused(self.local, attempt);
        let over = eventfd(0, EventfdFlags::CLOEXEC).map_err(std::io::Error::from);
        let over = Arc::new(over.map_err(refused("watch the port"))?);
        let listener = self
            .listener
            .try_clone()
            .map_err(refused("watch the port"))?;
        let (announced, theirs) = (Arc::clone(&self.announced), Arc::clone(&over));
        let thread = thread::start("the watch over a port", move || {
            watched(&listener, &theirs, &announced)
        })?;
        self.watch = Some(Watch { over, thread });
        Ok(())
    }

    /// Who was turned away since the last call, those who wait at this moment among them, whether or not somebody watched.
    pub fn turned_away(&mut self) -> TurnedAway {
        self.end_watch();
        self.meanwhile.take(&self.listener, &self.announced);
        std::mem::take(&mut self.meanwhile.away)
    }

    fn end_watch(&mut self) {
        let Some(watch) = self.watch.take() else {
            return;
        };
        // It fails only where it has been told 2^64 times.
        let _ = rustix::io::write(&*watch.over, &1u64.to_ne_bytes());
        let Ok(seen) = watch.thread.join() else {
            return;
        };
        self.meanwhile.early.extend(seen.early);
        self.meanwhile.away.add(seen.away);
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.end_watch();
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Meanwhile {
    /// Takes those who wait at this moment.
    fn take(&mut self, listener: &TcpListener, announced: &Announced) {
        loop {
            match listener.accept() {
                Ok((stream, peer)) if announced.has(peer) && self.early.len() < EARLY_MAX => {
                    self.early.push_back((stream, peer));
                }
                Ok((_, peer)) => self.away.one(peer, UNANNOUNCED),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    std::thread::sleep(PAUSE);
                    return;
                }
            }
        }
    }
}

/// Takes all who come until it is over; then those who wait at that moment.
fn watched(listener: &TcpListener, over: &OwnedFd, announced: &Announced) -> Meanwhile {
    let mut seen = Meanwhile::default();
    loop {
        let woken = readable(&[over.as_fd(), listener.as_fd()], LONG);
        seen.take(listener, announced);
        if !matches!(woken, Ok(Woken::Readable(1) | Woken::Silence)) {
            return seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::Wait;
    use std::io::Read;

    fn open(announced: impl FnOnce(SocketAddr) -> Announced) -> (Acceptor, TcpStream) {
        let options = Options::new(Wait::Block);
        let mut acceptor = Acceptor::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let peer = TcpStream::connect(acceptor.local()).unwrap();
        acceptor.expect(announced(peer.local_addr().unwrap()));
        (acceptor, peer)
    }

    fn only(peer: SocketAddr) -> Announced {
        Announced {
            addresses: Some([peer.ip()].into()),
            ports: Some([peer.port()].into()),
        }
    }

    #[test]
    fn others_are_closed_unread_and_counted() {
        let (mut acceptor, peer) = open(only);
        let mut others: Vec<_> = (0..20)
            .map(|_| TcpStream::connect(acceptor.local()).unwrap())
            .collect();
        let soon = Duration::from_secs(5);
        let came = acceptor.accept(None, soon).unwrap().unwrap();
        assert_eq!(came.peer(), peer.local_addr().unwrap());
        let none = acceptor
            .accept(None, Duration::from_millis(50))
            .unwrap_err();
        assert!(matches!(none, Error::Timeout { .. }), "{none}");
        let away = acceptor.turned_away();
        assert_eq!(away.count, 20);
        assert!(away.last.unwrap().ends_with(UNANNOUNCED));
        assert_eq!(acceptor.turned_away(), TurnedAway::default());
        for other in &mut others {
            other.set_read_timeout(Some(soon)).unwrap();
            assert!(!matches!(other.read(&mut [0]), Ok(1..)));
        }
        // The port alone is not enough.
        let (mut acceptor, _peer) = open(|peer| Announced {
            addresses: Some(["127.0.0.9".parse().unwrap()].into()),
            ..only(peer)
        });
        assert!(acceptor.accept(None, Duration::from_millis(50)).is_err());
        assert_eq!(acceptor.turned_away().count, 1);
    }

    #[test]
    fn who_comes_meanwhile_is_counted_and_the_next_peer_kept() {
        let (mut acceptor, peer) = open(only);
        acceptor.watch().unwrap();
        for _ in 0..5_000 {
            drop(TcpStream::connect(acceptor.local()).unwrap());
        }
        let came = acceptor.accept(None, Duration::from_secs(5)).unwrap();
        assert_eq!(came.unwrap().peer(), peer.local_addr().unwrap());
        assert_eq!(acceptor.turned_away().count, 5_000);
    }

    #[test]
    fn a_flood_does_not_put_the_timeout_off() {
        let (mut acceptor, peer) = open(|peer| only(SocketAddr::new(peer.ip(), 1)));
        let local = acceptor.local();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let flood = std::thread::spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                drop(TcpStream::connect(local));
            }
        });
        let none = acceptor.accept(None, Duration::from_millis(100));
        assert!(matches!(none, Err(Error::Timeout { .. })));
        drop(stop);
        flood.join().unwrap();
        assert!(acceptor.turned_away().count > 0);
        drop(peer);
    }
}
