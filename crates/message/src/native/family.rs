//! The two kinds of stream sockets, as joining needs them.
//!
//! Source:  unix(7): names that begin with a zero byte are in no folder. tcp(7).

use std::io::{Read, Result, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as Name, UnixListener, UnixStream};
use std::time::Duration;

/// A kind of stream sockets.
pub(super) trait Family {
    type Stream: Read + Write + AsFd + 'static;
    type Listener: AsFd;

    /// Listens at the meeting.
    fn listen(&self, meeting: &str) -> Result<Self::Listener>;

    /// Listens at another place, where the others reach `rank`, which is joined to rank 0; also that place.
    fn listen_beside(
        &self,
        first: &Self::Stream,
        meeting: &str,
        rank: usize,
    ) -> Result<(Self::Listener, String)>;

    /// Connects.
    fn dial(&self, address: &str, timeout: Duration) -> Result<Self::Stream>;

    /// The next one that has connected, and from where; nothing of it blocks.
    fn accept(listener: &Self::Listener) -> Result<(Self::Stream, String)>;

    /// Makes it block, and bounds reads and writes.
    fn bound(stream: &Self::Stream, timeout: Duration) -> Result<()>;

    /// Makes it carry messages: nothing blocks, nothing is held back.
    fn prepare(stream: &Self::Stream) -> Result<()>;
}

/// TCP; the others reach this rank at `own`.
pub(super) struct TcpFamily {
    pub(super) own: Option<IpAddr>,
}

fn address(text: &str) -> Result<SocketAddr> {
    text.parse().map_err(std::io::Error::other)
}

impl Family for TcpFamily {
    type Stream = TcpStream;
    type Listener = TcpListener;

    fn listen(&self, meeting: &str) -> Result<TcpListener> {
        let listener = TcpListener::bind(address(meeting)?)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    fn listen_beside(&self, first: &TcpStream, _: &str, _: usize) -> Result<(TcpListener, String)> {
        let own = match self.own {
            Some(own) => own,
            None => first.local_addr()?.ip(),
        };
        let listener = TcpListener::bind((own, 0))?;
        listener.set_nonblocking(true)?;
        let place = listener.local_addr()?.to_string();
        Ok((listener, place))
    }

    fn dial(&self, place: &str, timeout: Duration) -> Result<TcpStream> {
        let timeout = timeout.max(Duration::from_millis(1));
        let stream = TcpStream::connect_timeout(&address(place)?, timeout)?;
        // Within one host a socket can connect to itself where nobody listens yet.
        if stream.local_addr()? == stream.peer_addr()? {
            return Err(std::io::ErrorKind::ConnectionRefused.into());
        }
        Ok(stream)
    }

    fn accept(listener: &TcpListener) -> Result<(TcpStream, String)> {
        let (stream, from) = listener.accept()?;
        stream.set_nonblocking(true)?;
        Ok((stream, from.to_string()))
    }

    fn bound(stream: &TcpStream, timeout: Duration) -> Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))
    }

    fn prepare(stream: &TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)
    }
}

/// UNIX sockets, by abstract names.
pub(super) struct UnixFamily;

fn name(text: &str) -> Result<Name> {
    Name::from_abstract_name(format!("sonde.native.{text}"))
}

impl Family for UnixFamily {
    type Stream = UnixStream;
    type Listener = UnixListener;

    fn listen(&self, meeting: &str) -> Result<UnixListener> {
        let listener = UnixListener::bind_addr(&name(meeting)?)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    fn listen_beside(
        &self,
        _: &UnixStream,
        meeting: &str,
        rank: usize,
    ) -> Result<(UnixListener, String)> {
        let place = format!("{meeting}.{rank}");
        Ok((self.listen(&place)?, place))
    }

    fn dial(&self, place: &str, _: Duration) -> Result<UnixStream> {
        UnixStream::connect_addr(&name(place)?)
    }

    fn accept(listener: &UnixListener) -> Result<(UnixStream, String)> {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        let from = match sonde_sys::message::peer(&stream) {
            Ok(peer) => format!("process {} of user {}", peer.pid, peer.uid),
            Err(error) => error.to_string(),
        };
        Ok((stream, from))
    }

    fn bound(stream: &UnixStream, timeout: Duration) -> Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))
    }

    fn prepare(stream: &UnixStream) -> Result<()> {
        stream.set_nonblocking(true)
    }
}
