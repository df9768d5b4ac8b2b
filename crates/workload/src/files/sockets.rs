//! The sockets of clients and servers: datagrams, and records in streams that never block.
//!
//! Model:   whoever moves an end waits in one poll(2) for all its sockets, up to the time at which the end has something to do of
//!          itself. What the kernel does not take at once waits here, in order.
//! Units:   bytes.
//! Checked: `crates/workload/tests/files_sockets.rs`.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use super::rpc::{self, Records};
use super::xdr::Malformed;

/// Bytes of a stream that are read at once.
const READ_BYTES: usize = 256 << 10;
/// The longest datagram over IPv4 has less.
pub(super) const DATAGRAM_BYTES: usize = 64 << 10;

/// Why a connection is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The peer ended it.
    #[error("the peer closed the connection")]
    Closed,
    /// The kernel says so.
    #[error("the connection failed: {0}")]
    Failed(#[from] std::io::Error),
    /// What came are not records.
    #[error("the peer sends what are not records: {0}")]
    Malformed(#[from] Malformed),
}

/// Whether the same call will do at another time.
fn is_for_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// A connection on which records go both ways.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    records: Records,
    /// What the kernel has not taken; before `sent` it has.
    out: Vec<u8>,
    sent: usize,
}

impl Connection {
    /// On a connected stream.
    ///
    /// # Errors
    /// The kernel refuses an option.
    pub fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            records: Records::default(),
            out: Vec::new(),
            sent: 0,
        })
    }

    /// Bytes that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Sends a record, or keeps it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&mut self, record: &[u8]) -> Result<(), Broken> {
        let Some(mark) = rpc::mark(record) else {
            return Err(Broken::Malformed(Malformed::TooLong {
                length: u32::try_from(record.len()).unwrap_or(u32::MAX),
                max: rpc::RECORD_BYTES_MAX as u32,
            }));
        };
        let mut parts = [IoSlice::new(&mark), IoSlice::new(record)];
        let mut left = &mut parts[..];
        self.flush()?;
        // What the kernel takes at once is not copied.
        if self.waiting() == 0 {
            match self.stream.write_vectored(left) {
                Ok(0) => return Err(Broken::Closed),
                Ok(bytes) => IoSlice::advance_slices(&mut left, bytes),
                Err(error) if is_for_later(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        left.iter()
            .for_each(|part| self.out.extend_from_slice(part));
        self.flush()
    }

    /// Sends what waits, as far as the kernel takes it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush(&mut self) -> Result<(), Broken> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(Broken::Closed),
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        } else if self.sent > self.out.len() / 2 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }

    /// Reads once what is there; whether there was anything.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn fill(&mut self) -> Result<bool, Broken> {
        loop {
            match self.stream.read(self.records.room(READ_BYTES)) {
                Ok(0) => return Err(Broken::Closed),
                Ok(bytes) => {
                    self.records.took(bytes);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next record that is whole.
    ///
    /// # Errors
    /// What came are not records.
    pub fn poll_record(&mut self) -> Result<Option<&[u8]>, Broken> {
        Ok(self.records.poll_record()?)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// What is waited for at a socket.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Which.
    pub socket: BorrowedFd<'a>,
    /// That it has something.
    pub read: bool,
    /// That it takes something.
    pub write: bool,
}

/// Waits until a socket has what is wanted of it, for at most `limit`; which have.
///
/// # Errors
/// poll(2) fails.
pub fn wait(wanted: &[Wanted<'_>], limit: Duration) -> std::io::Result<Vec<bool>> {
    let mut list: Vec<PollFd<'_>> = wanted
        .iter()
        .map(|one| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, one.read);
            flags.set(PollFlags::OUT, one.write);
            PollFd::from_borrowed_fd(one.socket, flags)
        })
        .collect();
    let limit = Timespec {
        tv_sec: limit.as_secs().min(86_400) as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    match poll(&mut list, Some(&limit)) {
        Ok(_) => Ok(list.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(Errno::INTR) => Ok(vec![false; wanted.len()]),
        Err(errno) => Err(errno.into()),
    }
}

/// A connected stream from the address that is asked for, where there is one; `set` sets the socket before it is connected.
pub(super) fn dial(
    server: SocketAddr,
    source: Option<IpAddr>,
    limit: Duration,
    set: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<()>,
) -> std::io::Result<TcpStream> {
    let family = if server.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    set(socket.as_fd())?;
    if let Some(source) = source {
        net::bind(&socket, &SocketAddr::new(source, 0))?;
    }
    match net::connect(&socket, &server) {
        Ok(()) => return Ok(socket.into()),
        Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let wanted = Wanted {
        socket: socket.as_fd(),
        read: false,
        write: true,
    };
    if !wait(&[wanted], limit)?.contains(&true) {
        return Err(ErrorKind::TimedOut.into());
    }
    net::sockopt::socket_error(&socket)??;
    Ok(socket.into())
}

/// Sends a datagram; false where the kernel has no room now. One that is refused for what became of another is tried again.
pub(super) fn send_to(
    socket: &UdpSocket,
    message: &[u8],
    to: Option<SocketAddr>,
) -> std::io::Result<bool> {
    loop {
        let sent = match to {
            Some(to) => socket.send_to(message, to),
            None => socket.send(message),
        };
        match sent {
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A port that nobody has open: said of an earlier datagram, and only once.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}

/// Datagrams that a UDP socket had no room for, as the kernel counts them for it.
pub(super) fn dropped(socket: &UdpSocket) -> Option<u64> {
    let inode = rustix::fs::fstat(socket).ok()?.st_ino.to_string();
    let text = std::fs::read_to_string("/proc/thread-self/net/udp").ok()?;
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // sl local remote st queues timer retransmits uid timeout inode ref pointer drops
        (words.get(9) == Some(&&*inode)).then(|| words.last()?.parse().ok())?
    })
}

/// Datagrams of this host of which fragments are missing: those that the kernel has given up, and those that it still keeps, which
/// it does for 30 s (net.ipv4.ipfrag_time).
pub(super) fn reassembly_failed() -> Option<u64> {
    let net = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).ok();
    let snmp = net("snmp")?;
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Ip:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names
        .split_whitespace()
        .position(|name| name == "ReasmFails")?;
    let failed: u64 = values.split_whitespace().nth(at)?.parse().ok()?;
    let sockstat = net("sockstat")?;
    let mut lines = sockstat.lines();
    let kept = lines.find_map(|line| line.strip_prefix("FRAG: inuse "))?;
    let kept: u64 = kept.split_whitespace().next()?.parse().ok()?;
    Some(failed.saturating_add(kept))
}
