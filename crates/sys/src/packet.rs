//! AF_PACKET sockets: whole frames of one interface, stamped by the kernel.
//!
//! Model:   [`PacketSocket`] receives what the interface receives (never what is sent through it) and
//!          sends; [`PacketSender`] only sends, through the interface's queueing discipline.
//! Source:  packet(7); Documentation/networking/timestamping.rst.
//! Units:   stamps are CLOCK_REALTIME in ns (see [`crate::clock::realtime_minus_monotonic_ns`]).
//! Checked: `tests/gate.rs`, `tests/netlink.rs`.
//!
//! A full receive buffer drops frames; [`PacketSocket::drops`] counts them. As an ordinary user the buffer
//! is capped by net.core.rmem_max.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::Result;
use crate::error::{Attempt, checked};
use crate::socket::{BufferSize, set_option, set_recv_buffer, set_send_buffer};

/// A received frame's place and stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Length on the wire, without frame check sequence; more than the buffer if the frame was cut.
    pub length_bytes: usize,
    /// Arrival by CLOCK_REALTIME; 0 when the kernel gave none.
    pub realtime_ns: u64,
}

/// Room for a control message with one timespec.
const CONTROL_BYTES: usize = 64;

/// Buffers for many frames, filled by [`PacketSocket::recv_batch`] with one system call.
pub struct Batch {
    frame_bytes: usize,
    storage: Vec<u8>,
    control: Vec<[u64; CONTROL_BYTES / 8]>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    stamps: Vec<Stamp>,
    filled: usize,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Batch {{ frames: {}, frame_bytes: {}, filled: {} }}",
            self.stamps.len(),
            self.frame_bytes,
            self.filled
        )
    }
}

// SAFETY: the raw pointers inside `vectors` and `headers` are rebuilt from the owned buffers before every
// use and never read otherwise.
unsafe impl Send for Batch {}

impl Batch {
    /// Room for `frames` frames of up to `frame_bytes` (MTU + 18).
    pub fn new(frames: usize, frame_bytes: usize) -> Self {
        let null = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: mmsghdr is plain data for which zero is valid.
        let header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Self {
            frame_bytes,
            storage: vec![0; frames * frame_bytes],
            control: vec![[0; CONTROL_BYTES / 8]; frames],
            vectors: vec![null; frames],
            headers: vec![header; frames],
            stamps: vec![Stamp::default(); frames],
            filled: 0,
        }
    }

    /// How many frames the last receive brought.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Whether it brought none.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Frame `index` of the last receive.
    ///
    /// # Panics
    /// If `index` is not below [`Self::len`].
    pub fn frame(&self, index: usize) -> (&[u8], Stamp) {
        assert!(index < self.filled, "frame {index} of {}", self.filled);
        let stamp = self.stamps[index];
        let start = index * self.frame_bytes;
        (
            &self.storage[start..start + stamp.length_bytes.min(self.frame_bytes)],
            stamp,
        )
    }

    /// Points every header at its buffers.
    fn prepare(&mut self) {
        let frames = self.storage.chunks_exact_mut(self.frame_bytes);
        let parts = self
            .headers
            .iter_mut()
            .zip(&mut self.vectors)
            .zip(&mut self.control)
            .zip(frames);
        for (((header, vector), control), frame) in parts {
            vector.iov_base = frame.as_mut_ptr().cast();
            vector.iov_len = frame.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
            header.msg_hdr.msg_flags = 0;
        }
    }
}

/// The stamp in a received header's control messages.
fn stamp_ns(header: &libc::msghdr) -> u64 {
    // SAFETY: the kernel filled `msg_control` up to `msg_controllen`, and the CMSG macros stay within;
    // SCM_TIMESTAMPNS carries a timespec, read unaligned.
    unsafe {
        let mut part = libc::CMSG_FIRSTHDR(header);
        while !part.is_null() {
            if (*part).cmsg_level == libc::SOL_SOCKET && (*part).cmsg_type == libc::SCM_TIMESTAMPNS
            {
                let time = std::ptr::read_unaligned(libc::CMSG_DATA(part).cast::<libc::timespec>());
                return time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            }
            part = libc::CMSG_NXTHDR(header, part);
        }
    }
    0
}

fn open_raw(ifindex: u32, protocol: u16) -> Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Protocol 0 at first: nothing is received before the socket is bound to its interface.
    // SAFETY: no pointers; the returned descriptor is owned by nobody else.
    let fd = unsafe {
        checked(libc::socket(libc::AF_PACKET, kind, 0)).map(|fd| OwnedFd::from_raw_fd(fd))
    };
    let fd =
        fd.attempt(|| "open a packet socket (needs CAP_NET_RAW in this network namespace)".into())?;
    // SAFETY: sockaddr_ll is plain data for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = ifindex as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    if protocol != 0 {
        // Before the bind, so that no frame of this machine slips in.
        set_option(
            fd.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            &1i32,
        )
        .attempt(|| "ignore sent frames on a packet socket (Linux 4.20 or later)".into())?;
        set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)
            .attempt(|| "ask for time stamps on a packet socket".into())?;
    }
    // SAFETY: `address` is a live sockaddr_ll of the length given.
    checked(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })
        .attempt(|| format!("bind a packet socket to interface {ifindex}"))?;
    Ok(fd)
}

/// Sends one frame without waiting; `false` when the socket's buffer is full.
fn send_frame(fd: &OwnedFd, frame: &[u8]) -> Result<bool> {
    match rustix::net::send(fd, frame, SendFlags::DONTWAIT) {
        Ok(_) => Ok(true),
        // ENOBUFS: the queueing discipline or the device dropped it; ENETDOWN: the interface is down.
        Err(Errno::AGAIN | Errno::NOBUFS | Errno::NETDOWN | Errno::INTR) => Ok(false),
        Err(errno) => Err(errno).attempt(|| format!("send a frame of {} bytes", frame.len())),
    }
}

/// A packet socket that receives and sends on one interface.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    buffer: BufferSize,
    drops: u64,
}

impl PacketSocket {
    /// Opens a socket on interface `ifindex` of the current network namespace; non-blocking.
    pub fn open(ifindex: u32, rcvbuf_bytes: usize) -> Result<Self> {
        let fd = open_raw(ifindex, libc::ETH_P_ALL as u16)?;
        let buffer = set_recv_buffer(&fd, rcvbuf_bytes)?;
        Ok(Self {
            fd,
            buffer,
            drops: 0,
        })
    }

    /// The receive buffer asked for and granted.
    pub fn buffer(&self) -> BufferSize {
        self.buffer
    }

    /// Receives what is waiting, up to the batch's room; returns the number of frames, 0 when none.
    pub fn recv_batch(&self, batch: &mut Batch) -> Result<usize> {
        batch.filled = 0;
        batch.prepare();
        // SAFETY: every header points at live buffers of the batch, which is exclusively borrowed; a null
        // time-out is allowed.
        let found = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                batch.headers.as_mut_ptr(),
                batch.headers.len() as u32,
                (libc::MSG_DONTWAIT | libc::MSG_TRUNC) as _,
                std::ptr::null_mut(),
            )
        };
        let count = match checked(found) {
            Ok(count) => count as usize,
            Err(Errno::AGAIN | Errno::INTR | Errno::NETDOWN) => return Ok(0),
            Err(errno) => return Err(errno).attempt(|| "receive frames".into()),
        };
        for (stamp, header) in batch.stamps.iter_mut().zip(&batch.headers[..count]) {
            *stamp = Stamp {
                length_bytes: header.msg_len as usize,
                realtime_ns: stamp_ns(&header.msg_hdr),
            };
        }
        batch.filled = count;
        Ok(count)
    }

    /// Sends one frame; `false` when the kernel cannot take it now or the interface is down.
    pub fn send(&self, frame: &[u8]) -> Result<bool> {
        send_frame(&self.fd, frame)
    }

    /// Frames lost in this socket since it was opened. (The kernel clears its count at each read.)
    pub fn drops(&mut self) -> Result<u64> {
        /// struct tpacket_stats.
        #[repr(C)]
        struct Statistics {
            packets: u32,
            drops: u32,
        }
        let mut found = Statistics {
            packets: 0,
            drops: 0,
        };
        let mut length = size_of::<Statistics>() as libc::socklen_t;
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
        debug_assert!(found.packets >= found.drops, "tp_packets includes tp_drops");
        self.drops += u64::from(found.drops);
        Ok(self.drops)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A packet socket that only sends: nothing queues up in it.
#[derive(Debug)]
pub struct PacketSender {
    fd: OwnedFd,
}

impl AsFd for PacketSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl PacketSender {
    /// Opens a socket on interface `ifindex` of the current network namespace; it stays with that
    /// namespace when the thread moves on.
    pub fn open(ifindex: u32) -> Result<Self> {
        let fd = open_raw(ifindex, 0)?;
        set_send_buffer(&fd, 4 << 20)?;
        Ok(Self { fd })
    }

    /// Sends one frame; `false` when the socket's buffer is full, or the interface refuses.
    pub fn send(&self, frame: &[u8]) -> Result<bool> {
        send_frame(&self.fd, frame)
    }
}
