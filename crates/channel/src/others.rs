//! What others send to a UDP port while its socket has its peer.
//!
//! Model:   to the kernel a connected socket is there for its peer alone. A second one at the same port takes the rest. The kernel looks
//!          for a datagram's socket among those of a group (SO_REUSEPORT) that have no peer, since Linux 5.3 (acdcecc61285). The group
//!          is of sockets of one user; it is made when the first socket has its port, so that nobody could have bound to it before.
//! Checked: `udp::tests::strangers_are_counted_and_not_heard`; `lab_strangers.rs`.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};

/// The second socket of a port whose first one has its peer: to the kernel that one is there for its peer alone, so that what
/// others send comes here.
#[derive(Debug)]
pub(crate) struct Others(OwnedFd);

impl Others {
    /// None where the kernel lets no two sockets have one port.
    pub fn beside(socket: &UdpSocket) -> Option<Self> {
        let local = socket.local_addr().ok()?;
        let family = match local.is_ipv4() {
            true => AddressFamily::INET,
            false => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(family, SocketType::DGRAM, flags, None).ok()?;
        sockopt::set_socket_reuseport(socket, true).ok()?;
        sockopt::set_socket_reuseport(&fd, true).ok()?;
        rustix::net::bind(&fd, &local).ok()?;
        Some(Self(fd))
    }

    /// Datagrams of others so far, those of senders that are known left out.
    pub fn count(&self, is_known: impl Fn(SocketAddr) -> bool) -> u64 {
        let mut count = 0;
        while let Ok((.., from)) = rustix::net::recvfrom(&self.0, &mut [0; 1], RecvFlags::DONTWAIT)
        {
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            count += u64::from(!from.is_some_and(&is_known));
        }
        // Whose those were for which there was no room nobody knows: they count where strangers came at all.
        match count {
            0 => 0,
            _ => count + sonde_sys::socket::dropped(&self.0).unwrap_or(0),
        }
    }
}
