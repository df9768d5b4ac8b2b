//! Messages with descriptors between processes of one machine.
//!
//! Model:   UNIX sockets of type SOCK_SEQPACKET: order and boundaries are kept, the end of the other side is
//!          seen. A message is 1 byte to 256 KiB with up to 8 descriptors (SCM_RIGHTS), which arrive
//!          close-on-exec.
//! Source:  unix(7).
//! Checked: `messages_keep_their_boundaries_and_descriptors`, `limits_are_errors`, `a_path_can_be_dialled`.
//!
//! Path names cross network namespaces; abstract names do not.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::error::Attempt;
use crate::{Error, Result};

/// Most bytes in a message.
pub const BYTES_MAX: usize = 256 * 1024;
/// Most descriptors in a message.
pub const FDS_MAX: usize = 8;

/// A received message.
pub type Message = (Vec<u8>, Vec<OwnedFd>);

/// What a non-blocking receive found.
#[derive(Debug)]
pub enum Incoming {
    /// A message.
    Message(Message),
    /// Nothing yet.
    Nothing,
    /// The other side is closed.
    Closed,
}

/// A message and what the kernel adds to it must fit the send buffer; the kernel doubles the value and caps
/// it at net.core.wmem_max (212992 on most systems), and twice that is enough.
fn widen(fd: BorrowedFd<'_>) -> Result<()> {
    rustix::net::sockopt::set_socket_send_buffer_size(fd, 2 * BYTES_MAX)
        .attempt(|| "set the send buffer of a message socket".into())
}

/// A connected pair.
pub fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let (one, other) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .attempt(|| "create a pair of message sockets".into())?;
    widen(one.as_fd())?;
    widen(other.as_fd())?;
    Ok((one, other))
}

fn endpoint(path: &Path) -> Result<(OwnedFd, SocketAddrUnix)> {
    let address = SocketAddrUnix::new(path).attempt(|| {
        format!(
            "name a socket {} (107 bytes at most: use a shorter folder)",
            path.display()
        )
    })?;
    let fd = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .attempt(|| "create a message socket".into())?;
    widen(fd.as_fd())?;
    Ok((fd, address))
}

/// Listens at a path, which must not exist.
pub fn listen(path: &Path) -> Result<OwnedFd> {
    let (fd, address) = endpoint(path)?;
    rustix::net::bind(&fd, &address).attempt(|| format!("bind a socket to {}", path.display()))?;
    rustix::net::listen(&fd, 128).attempt(|| format!("listen at {}", path.display()))?;
    Ok(fd)
}

/// The next connection; waits unless the listener is non-blocking, where `None` means none.
pub fn accept(listener: impl AsFd) -> Result<Option<OwnedFd>> {
    match rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
        Ok(fd) => {
            widen(fd.as_fd())?;
            Ok(Some(fd))
        }
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(errno) => Err(errno).attempt(|| "accept a connection".into()),
    }
}

/// Connects to a path.
pub fn connect(path: &Path) -> Result<OwnedFd> {
    let (fd, address) = endpoint(path)?;
    rustix::net::connect(&fd, &address).attempt(|| format!("connect to {}", path.display()))?;
    Ok(fd)
}

/// Sends a message, waiting for room.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
    send_with(socket.as_fd(), bytes, fds, SendFlags::NOSIGNAL).map(|_| ())
}

/// Sends a message if there is room; `false` if not.
pub fn try_send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<bool> {
    send_with(
        socket.as_fd(),
        bytes,
        fds,
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    )
}

fn send_with(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<bool> {
    if bytes.len() > BYTES_MAX || fds.len() > FDS_MAX {
        return Err(Error::TooBig {
            bytes: bytes.len(),
            fds: fds.len(),
            bytes_max: BYTES_MAX,
            fds_max: FDS_MAX,
        });
    }
    if bytes.is_empty() {
        let remedy = "send at least one byte: an empty message reads as the end";
        return Err(Error::OutOfRange {
            what: "message length",
            value: "0".into(),
            remedy,
        });
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        let pushed = ancillary.push(SendAncillaryMessage::ScmRights(fds));
        assert!(pushed, "the space is computed for FDS_MAX descriptors");
    }
    loop {
        match rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags) {
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if flags.contains(SendFlags::DONTWAIT) => return Ok(false),
            Err(errno) => {
                return Err(errno).attempt(|| {
                    format!(
                        "send a message of {} bytes, {} descriptors",
                        bytes.len(),
                        fds.len()
                    )
                });
            }
        }
    }
}

/// Receives a message, waiting for one; `None` when the other side is closed.
pub fn recv(socket: impl AsFd) -> Result<Option<Message>> {
    loop {
        match recv_with(socket.as_fd(), RecvFlags::empty())? {
            Incoming::Message(message) => return Ok(Some(message)),
            Incoming::Closed => return Ok(None),
            // A socket set non-blocking by its owner: wait here all the same.
            Incoming::Nothing => {
                let mut one = [rustix::event::PollFd::new(
                    &socket,
                    rustix::event::PollFlags::IN,
                )];
                match rustix::event::poll(&mut one, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno).attempt(|| "wait for a message".into()),
                }
            }
        }
    }
}

/// Receives a message if there is one.
pub fn try_recv(socket: impl AsFd) -> Result<Incoming> {
    recv_with(socket.as_fd(), RecvFlags::DONTWAIT)
}

fn recv_with(socket: BorrowedFd<'_>, flags: RecvFlags) -> Result<Incoming> {
    // The length first, so that small messages cost small buffers.
    let peek = flags | RecvFlags::PEEK | RecvFlags::TRUNC;
    let length = match rustix::net::recv(socket, &mut [0u8; 0], peek) {
        Ok((_, 0)) | Err(Errno::CONNRESET) => return Ok(Incoming::Closed),
        Ok((_, length)) => length,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Incoming::Nothing),
        Err(errno) => return Err(errno).attempt(|| "look for a message".into()),
    };
    let mut bytes = vec![0; length];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let found = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        flags,
    )
    .attempt(|| "receive a message".into())?;
    let mut fds = Vec::new();
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            fds.extend(rights);
        }
    }
    if found.flags.contains(ReturnFlags::TRUNC) || found.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Error::Answer {
            what: format!("receive a message of {length} bytes"),
            text: format!(
                "part of it was cut off; a message has one reader and at most {FDS_MAX} descriptors"
            ),
        });
    }
    Ok(Incoming::Message((bytes, fds)))
}

/// Credentials of the process at the other end, as they were when it connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Process id, in the reader's pid namespace; 0 when outside.
    pub pid: u32,
    /// User id, in the reader's user namespace.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Who is at the other end.
pub fn peer(socket: impl AsFd) -> Result<Peer> {
    let mut found = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the buffer is a live local of the length given.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &mut length,
        )
    };
    crate::error::checked(status).attempt(|| "read the peer's credentials".into())?;
    Ok(Peer {
        pid: found.pid as u32,
        uid: found.uid,
        gid: found.gid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_boundaries_and_descriptors() {
        let (one, other) = pair().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        assert!(matches!(try_recv(&other).unwrap(), Incoming::Nothing));
        send(&one, b"first", &[writer.as_fd()]).unwrap();
        send(&one, b"2", &[]).unwrap();
        drop(writer);
        let (bytes, fds) = recv(&other).unwrap().unwrap();
        assert_eq!((bytes.as_slice(), fds.len()), (b"first".as_slice(), 1));
        let flags = rustix::io::fcntl_getfd(&fds[0]).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        rustix::io::write(&fds[0], b"through").unwrap();
        let mut text = [0; 16];
        assert_eq!(rustix::io::read(&reader, &mut text).unwrap(), 7);
        let (bytes, fds) = recv(&other).unwrap().unwrap();
        assert_eq!((bytes.as_slice(), fds.len()), (b"2".as_slice(), 0));
        drop(one);
        assert!(recv(&other).unwrap().is_none());
        assert!(matches!(try_recv(&other).unwrap(), Incoming::Closed));
    }

    #[test]
    fn limits_are_errors() {
        let (one, other) = pair().unwrap();
        let big: Vec<u8> = (0..BYTES_MAX).map(|i| i as u8).collect();
        let eight = [one.as_fd(); FDS_MAX];
        send(&one, &big, &eight).unwrap();
        let (bytes, fds) = recv(&other).unwrap().unwrap();
        assert!(bytes == big && fds.len() == FDS_MAX);
        assert!(matches!(
            send(&one, &vec![0; BYTES_MAX + 1], &[]),
            Err(Error::TooBig { .. })
        ));
        assert!(matches!(
            send(&one, b"x", &[one.as_fd(); FDS_MAX + 1]),
            Err(Error::TooBig { .. })
        ));
        assert!(send(&one, b"", &[]).is_err());
        let mut sent = 0;
        while try_send(&one, &big[..1000], &[]).unwrap() {
            sent += 1;
        }
        assert!(sent > 0);
        for _ in 0..sent {
            assert_eq!(recv(&other).unwrap().unwrap().0.len(), 1000);
        }
    }

    #[test]
    fn a_path_can_be_dialled() {
        let folder = std::env::temp_dir().join(format!("sonde-sys-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let listener = listen(&path).unwrap();
        let client = connect(&path).unwrap();
        let server = accept(&listener).unwrap().unwrap();
        send(&client, b"hello", &[]).unwrap();
        assert_eq!(recv(&server).unwrap().unwrap().0, b"hello");
        assert_eq!(peer(&server).unwrap().pid, std::process::id());
        assert!(listen(&path).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(connect(&path).is_err());
        assert!(listen(&folder.join("x".repeat(120))).is_err());
    }
}
