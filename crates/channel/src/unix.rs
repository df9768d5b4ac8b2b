//! A byte stream between two processes of one machine, through a UNIX socket.
//!
//! Model:   the calls are those of TCP's socket. Its name is abstract, made of a number as ports are, so that nothing is left
//!          in any folder, and known in one network namespace. Everyone there can read it, which is why the token is no
//!          part of it: who may speak is decided by the hello.
//! Source:  unix(7).
//! Checked: `messages_cross_and_a_closed_peer_is_named`, `a_number_is_taken_once`.

use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as Name, UnixListener};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use sonde_sys::socket::TcpInfo;

use crate::settings::read_back;
use crate::stream::await_guest;
use crate::wait::bound_send;
use crate::{ByteStream, Channel, Error, Listener, Options, Result, Tcp, TurnedAway};
use sonde_measure::{Path, Socket};

/// Attempts at a number that nobody has taken.
const TRIES: u32 = 64;

/// The address by which a number is known here: this machine's, as far as anybody asks.
fn address(number: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), number)
}

fn name(number: u16) -> String {
    format!("sonde.{number}")
}

/// A connected socket of that number.
pub(crate) fn dial(peer: SocketAddr, options: &Options) -> Result<OwnedFd> {
    let failed = |attempt| {
        move |errno| Error::Call {
            peer,
            attempt,
            errno,
        }
    };
    let fd = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed("open a socket"))?;
    options.apply(&fd, Path::Unix)?;
    // It bounds a connect to a full queue too.
    bound_send(&fd, options.timeout).map_err(failed("bound sends"))?;
    let whom = SocketAddrUnix::new_abstract_name(name(peer.port()).as_bytes());
    let whom = whom.map_err(failed("name the socket"))?;
    match rustix::net::connect(&fd, &whom) {
        Ok(()) => Ok(fd),
        Err(Errno::AGAIN) => Err(Error::Timeout {
            peer,
            awaited: "the connection".into(),
            waited: options.timeout,
        }),
        Err(errno) => Err(failed("connect")(errno)),
    }
}

/// A connection through a UNIX socket.
#[derive(Debug)]
pub struct Unix {
    stream: Tcp,
    options: Options,
}

impl Unix {
    fn over(fd: OwnedFd, peer: SocketAddr, options: &Options) -> Result<Self> {
        Ok(Self {
            stream: Tcp::over(fd, peer, options.clone())?,
            options: options.clone(),
        })
    }
}

impl Channel for Unix {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.stream.send(message)
    }

    #[inline]
    fn recv(&mut self, message: &mut [u8]) -> Result<()> {
        self.stream.recv(message)
    }

    fn settings(&self) -> Result<Socket> {
        read_back(&self.stream, &self.options, Path::Unix)
    }
}

impl ByteStream for Unix {
    fn connect(peer: SocketAddr, options: Options) -> Result<Self> {
        Self::over(dial(peer, &options)?, peer, &options)
    }

    fn peer(&self) -> SocketAddr {
        self.stream.peer()
    }

    fn options(&self) -> &Options {
        &self.options
    }

    #[inline]
    fn send_some(&mut self, bytes: &[u8]) -> Result<usize> {
        self.stream.send_some(bytes)
    }

    #[inline]
    fn recv_some(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.stream.recv_some(buffer)
    }

    fn recv_now(&mut self, buffer: &mut [u8]) -> Result<Option<usize>> {
        self.stream.recv_now(buffer)
    }

    fn end(&mut self) -> Result<()> {
        self.stream.end()
    }

    fn end_in_silence(&mut self) -> Result<()> {
        silent(self)
    }

    fn account(&self) -> Result<Option<TcpInfo>> {
        Ok(None)
    }
}

/// Takes the peer's end and gives the own; within one machine nothing is under way after that.
pub(crate) fn silent(stream: &mut impl ByteStream) -> Result<()> {
    if stream.recv_some(&mut [0])? != 0 {
        return Err(Error::Size {
            peer: stream.peer(),
            found_bytes: 1,
            wanted_bytes: 0,
        });
    }
    stream.end()
}

/// A listening UNIX socket.
#[derive(Debug)]
pub struct UnixPort {
    listener: UnixListener,
    local: SocketAddr,
    options: Options,
    away: TurnedAway,
}

impl UnixPort {
    /// Listens under a number that nobody has taken.
    ///
    /// # Errors
    /// The kernel has no UNIX sockets, or every number tried is taken.
    pub fn bind(options: Options) -> Result<Self> {
        let mut tries = 0;
        loop {
            // Hashers are seeded at random.
            let random = RandomState::new().hash_one(tries) as u16;
            match Self::bind_to(random.max(1), &options) {
                Err(Error::Local {
                    errno: Errno::ADDRINUSE,
                    ..
                }) if tries < TRIES => tries += 1,
                bound => return bound,
            }
        }
    }

    fn bind_to(number: u16, options: &Options) -> Result<Self> {
        let local = address(number);
        let refused = |attempt| Error::refused(local, attempt);
        let whom = Name::from_abstract_name(name(number)).map_err(refused("name a socket"))?;
        let listener = UnixListener::bind_addr(&whom).map_err(refused("listen"))?;
        listener
            .set_nonblocking(true)
            .map_err(refused("set non-blocking"))?;
        Ok(Self {
            listener,
            local,
            options: options.clone(),
            away: TurnedAway::default(),
        })
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Who was turned away since the last call.
    pub(crate) fn turned_away(&mut self) -> TurnedAway {
        std::mem::take(&mut self.away)
    }

    /// The next connected socket of the same user: all users of the machine may connect to an abstract name.
    pub(crate) fn accept_socket(
        &mut self,
        stop: Option<BorrowedFd<'_>>,
        timeout: Duration,
    ) -> Result<Option<OwnedFd>> {
        let listener = &self.listener;
        let (away, own) = (&mut self.away, rustix::process::geteuid());
        let accepted = await_guest(listener.as_fd(), self.local, stop, timeout, || {
            let (stream, _) = listener.accept()?;
            let user = rustix::net::sockopt::socket_peercred(&stream)?.uid;
            if user == own {
                return Ok(stream);
            }
            away.one(
                format!("user {}", user.as_raw()),
                "another user of this machine",
            );
            Err(ErrorKind::WouldBlock.into())
        })?;
        let Some(stream) = accepted else {
            return Ok(None);
        };
        let fd = OwnedFd::from(stream);
        self.options.apply(&fd, Path::Unix)?;
        Ok(Some(fd))
    }
}

impl AsFd for UnixPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Listener for UnixPort {
    type Stream = Unix;

    fn local(&self) -> SocketAddr {
        self.local
    }

    fn accept(&mut self, stop: Option<BorrowedFd<'_>>, timeout: Duration) -> Result<Option<Unix>> {
        let accepted = self.accept_socket(stop, timeout)?;
        let stream = accepted.map(|fd| Unix::over(fd, self.local, &self.options));
        stream.transpose()
    }

    fn turned_away(&mut self) -> TurnedAway {
        self.turned_away()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload;
    use sonde_measure::Wait;

    #[test]
    fn messages_cross_and_a_closed_peer_is_named() {
        for wait in [Wait::Block, Wait::Poll] {
            let mut port = UnixPort::bind(Options::new(wait)).unwrap();
            let mut client = Unix::connect(port.local(), Options::new(wait)).unwrap();
            let mut server = port.accept(None, Duration::from_secs(5)).unwrap().unwrap();
            let echo = std::thread::spawn(move || {
                let mut message = vec![0; 300_000];
                server.recv(&mut message).unwrap();
                server.send(&message).unwrap();
                server.recv(&mut message).unwrap_err()
            });
            let ping = payload::message(300_000);
            let mut pong = vec![0; 300_000];
            client.exchange(&ping, &mut pong).unwrap();
            assert_eq!(payload::verify(&pong, 0), Ok(()));
            let settings = client.settings().unwrap();
            assert!(settings.send_buffer.unwrap().granted_bytes > 0 && settings.nodelay.is_none());
            client.end().unwrap();
            let error = echo.join().unwrap();
            assert!(error.is_end(), "{error}");
            assert_eq!(client.recv_some(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn a_number_is_taken_once() {
        let options = Options::new(Wait::Block);
        let port = UnixPort::bind(options.clone()).unwrap();
        let again = UnixPort::bind_to(port.local().port(), &options).unwrap_err();
        let in_use = Errno::ADDRINUSE;
        assert!(
            matches!(again, Error::Local { errno, .. } if errno == in_use),
            "{again}"
        );
        let peer = port.local();
        drop(port);
        let refused = Unix::connect(peer, options).unwrap_err();
        assert!(
            refused.remedy().contains("nothing listens there"),
            "{refused}"
        );
    }
}
