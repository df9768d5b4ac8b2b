//! Frames of one ethertype on one interface: the packet socket of a path that passes by TCP/IP.
//!
//! Model:   a raw AF_PACKET socket, bound to its interface and ethertype, that sees what arrives and never what leaves. A
//!          classic BPF program lets only frames of the wanted byte at [`ROLE_AT`] in, so that on a loopback, where each end
//!          sees all frames, none is woken by its own. All else is judged by who reads.
//! Source:  packet(7); Documentation/networking/filter.rst.
//! Units:   bytes; a frame has its Ethernet header.
//! Checked: `frames_of_the_other_role_arrive`; `ring.rs`.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::Result;
use crate::error::{Attempt, checked};
use crate::socket::{set_option, set_recv_buffer, set_send_buffer};

/// The ethertype of sonde's frames: local experimental ethertype 2 of IEEE 802.
pub const ETHERTYPE: u16 = 0x88b6;
/// The bytes of an Ethernet header.
pub const ETHERNET_BYTES: usize = 14;
/// Where in a frame the byte is that says which end sent it.
pub const ROLE_AT: usize = ETHERNET_BYTES + 2;

/// A raw socket for sonde's own frames.
#[derive(Debug)]
pub struct FrameSocket {
    fd: OwnedFd,
}

impl FrameSocket {
    /// Opens a blocking socket on interface `ifindex` that takes frames with `role` at [`ROLE_AT`].
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW in this network namespace; no such interface.
    pub fn open(ifindex: u32, role: u8) -> Result<Self> {
        let fd = open()?;
        only_role(&fd, role).attempt(|| "filter the frames of a packet socket".into())?;
        set_option(
            fd.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            &1i32,
        )
        .attempt(|| "ignore sent frames on a packet socket (Linux 4.20 or later)".into())?;
        Self { fd }.bound(ifindex)
    }

    fn bound(self, ifindex: u32) -> Result<Self> {
        // SAFETY: sockaddr_ll is plain data for which zero is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ETHERTYPE.to_be();
        address.sll_ifindex = ifindex as i32;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: `address` is a live sockaddr_ll of the length given.
        checked(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), length) })
            .attempt(|| format!("bind a packet socket to interface {ifindex}"))?;
        Ok(self)
    }

    /// Sets both buffers, by force where permitted: the granted sizes, send and receive.
    ///
    /// # Errors
    /// The kernel refuses any size.
    pub fn set_buffers(&self, send: Option<usize>, recv: Option<usize>) -> Result<()> {
        if let Some(bytes) = send {
            set_send_buffer(&self.fd, bytes)?;
        }
        if let Some(bytes) = recv {
            set_recv_buffer(&self.fd, bytes)?;
        }
        Ok(())
    }

    /// Frames that this socket had no room for, since the last call.
    ///
    /// # Errors
    /// The kernel refuses to tell.
    pub fn drops(&self) -> Result<u64> {
        let mut found = [0u32; 2]; // struct tpacket_stats: packets, drops.
        let mut length = size_of_val(&found) as libc::socklen_t;
        // SAFETY: the buffer is a live local of the length given.
        let status = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut found).cast(),
                &mut length,
            )
        };
        checked(status).attempt(|| "read the counters of a packet socket".into())?;
        Ok(found[1].into())
    }
}

impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What packet sockets lack here; `None` where they can be had.
pub fn obstacle() -> Option<String> {
    match open() {
        Ok(_) => None,
        Err(error) if matches!(error.errno(), Some(Errno::PERM | Errno::ACCESS)) => Some(
            "packet sockets need CAP_NET_RAW, which this process has not: run as root, or `setcap cap_net_raw+ep` the \
             program; in the lab agents have it"
                .into(),
        ),
        Err(error) => Some(error.to_string()),
    }
}

/// Not bound to any protocol yet, so that nothing is received.
fn open() -> Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers; the returned descriptor is owned by nobody else.
    let fd = unsafe {
        checked(libc::socket(libc::AF_PACKET, kind, 0)).map(|fd| OwnedFd::from_raw_fd(fd))
    };
    fd.attempt(|| "open a packet socket (needs CAP_NET_RAW in this network namespace)".into())
}

/// Lets only frames with `role` at its place in.
fn only_role(fd: &OwnedFd, role: u8) -> rustix::io::Result<()> {
    let code = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut program = [
        code(
            libc::BPF_LD | libc::BPF_B | libc::BPF_ABS,
            0,
            0,
            ROLE_AT as u32,
        ),
        code(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            role.into(),
        ),
        code(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        code(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // The program is copied by the kernel within this call.
    set_option(
        fd.as_fd(),
        libc::SOL_SOCKET,
        libc::SO_ATTACH_FILTER,
        &filter,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Netlink;
    use rustix::net::{RecvFlags, SendFlags};

    fn frame(role: u8) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        frame[ROLE_AT] = role;
        frame
    }

    #[test]
    fn frames_of_the_other_role_arrive() {
        if let Some(why) = obstacle() {
            println!("skipped: {why}");
            return;
        }
        let lo = Netlink::open().unwrap().index("lo").unwrap();
        let (one, two) = (
            FrameSocket::open(lo, 21).unwrap(),
            FrameSocket::open(lo, 22).unwrap(),
        );
        let mut buffer = [0; 100];
        for (from, to, role) in [(&two, &one, 21), (&one, &two, 22)] {
            rustix::net::send(from, &frame(role), SendFlags::empty()).unwrap();
            let (_, size) = rustix::net::recv(to, &mut buffer, RecvFlags::empty()).unwrap();
            assert_eq!((size, buffer[ROLE_AT]), (60, role));
            let own = rustix::net::recv(from, &mut buffer, RecvFlags::DONTWAIT);
            assert_eq!(own.unwrap_err(), Errno::AGAIN);
        }
        assert_eq!(one.drops().unwrap(), 0);
    }
}
