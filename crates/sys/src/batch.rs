//! Several datagrams by one call: sendmmsg and recvmmsg, and one buffer cut into datagrams by the kernel or its device
//! (UDP_SEGMENT), or joined of such (UDP_GRO).
//!
//! Model:   slots of equal size in one piece of memory. A slot that is sent with a segment size is cut into datagrams of
//!          it, the last one shorter; one that was received with a segment size holds such datagrams of one sender.
//! Source:  sendmmsg(2), recvmmsg(2), udp(7); net/ipv4/udp.c (at most 64 segments in a send before Linux 6.9).
//! Checked: `datagrams_cross_in_batches`, `segments_cross_in_one_buffer`.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::Result;
use crate::error::{Attempt, checked};

/// The most datagrams that every kernel cuts one buffer into.
pub const SEGMENTS_MAX: usize = 64;
/// The most bytes of such a buffer: what one datagram over IPv4 may have.
pub const SEGMENTED_BYTES_MAX: usize = 65_507;

/// Whether datagrams of one sender come joined in one buffer (UDP_GRO).
///
/// # Errors
/// The kernel has none (Linux 5.0).
pub fn set_joined(socket: impl AsFd, on: bool) -> Result<()> {
    let value = i32::from(on);
    crate::socket::set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, &value)
        .attempt(|| format!("set UDP_GRO to {value} (Linux 5.0)"))
}

/// Room for one control message of UDP_SEGMENT or UDP_GRO.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// What one slot holds after a receive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filled {
    /// Its bytes; more than a slot has where the datagram was cut off.
    pub bytes: usize,
    /// The size of the datagrams in it, where there are several.
    pub segment_bytes: Option<usize>,
}

/// Datagrams for one call.
pub struct Batch {
    memory: Vec<u8>,
    slot_bytes: usize,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    control: Vec<Control>,
    filled: Vec<Filled>,
}

// SAFETY: the pointers in `parts` and `headers` are to this value's own memory, and are written anew before every call.
unsafe impl Send for Batch {}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch of {} x {} bytes", self.slots(), self.slot_bytes)
    }
}

impl Batch {
    /// `slots` slots of `slot_bytes` zeroes each.
    ///
    /// # Panics
    /// Without slots or bytes.
    pub fn new(slots: usize, slot_bytes: usize) -> Self {
        assert!(slots > 0 && slot_bytes > 0, "a batch of nothing");
        // SAFETY: all zeroes is a valid mmsghdr.
        let header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let part = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        Self {
            memory: vec![0; slots * slot_bytes],
            slot_bytes,
            parts: vec![part; slots],
            headers: vec![header; slots],
            control: vec![Control([0; 64]); slots],
            filled: vec![Filled::default(); slots],
        }
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.parts.len()
    }

    /// The bytes of a slot.
    pub fn slot(&self, index: usize) -> &[u8] {
        &self.memory[index * self.slot_bytes..][..self.slot_bytes]
    }

    /// The same, to write into.
    pub fn slot_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.memory[index * self.slot_bytes..][..self.slot_bytes]
    }

    /// What the last receive put into a slot.
    pub fn filled(&self, index: usize) -> Filled {
        self.filled[index]
    }

    /// Points the headers of slots `from..to` at their first `bytes` bytes, with room for control messages of a receive.
    fn point(&mut self, from: usize, to: usize, bytes: usize, control: bool) {
        let base = self.memory.as_mut_ptr();
        for index in from..to {
            // In range: a slot lies within the memory.
            let slot = base.wrapping_add(index * self.slot_bytes);
            self.parts[index] = libc::iovec {
                iov_base: slot.cast(),
                iov_len: bytes,
            };
            let header = &mut self.headers[index].msg_hdr;
            header.msg_iov = &raw mut self.parts[index];
            header.msg_iovlen = 1;
            header.msg_flags = 0;
            (header.msg_control, header.msg_controllen) = if control {
                (
                    (&raw mut self.control[index]).cast(),
                    size_of::<Control>() as _,
                )
            } else {
                (std::ptr::null_mut(), 0)
            };
        }
    }

    /// Sends the first `bytes` bytes of each slot of `from..to` as a datagram to the socket's peer; how many were taken.
    ///
    /// # Errors
    /// The kernel's reason why it took none.
    ///
    /// # Panics
    /// Beyond the slots or their size.
    pub fn send(
        &mut self,
        socket: impl AsFd,
        from: usize,
        to: usize,
        bytes: usize,
        flags: i32,
    ) -> rustix::io::Result<usize> {
        assert!(from < to && to <= self.slots() && bytes <= self.slot_bytes);
        self.point(from, to, bytes, false);
        // SAFETY: the headers from..to name live memory of this value, which the call only reads but for msg_len.
        let status = unsafe {
            libc::sendmmsg(
                socket.as_fd().as_raw_fd(),
                self.headers.as_mut_ptr().add(from),
                (to - from) as u32,
                (flags | libc::MSG_NOSIGNAL) as _,
            )
        };
        checked(status).map(|taken| taken as usize)
    }

    /// Sends the first `bytes` bytes of a slot, cut into datagrams of `segment_bytes`.
    ///
    /// # Errors
    /// The kernel's: EINVAL where a datagram does not fit the interface's MTU.
    ///
    /// # Panics
    /// Beyond the slots or their size.
    pub fn send_cut(
        &mut self,
        socket: impl AsFd,
        index: usize,
        bytes: usize,
        segment_bytes: u16,
        flags: i32,
    ) -> rustix::io::Result<()> {
        assert!(index < self.slots() && bytes <= self.slot_bytes);
        self.point(index, index + 1, bytes, true);
        let header = &mut self.headers[index].msg_hdr;
        // SAFETY: the control buffer has room for one header and two bytes, and is aligned for it.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
            let part = libc::CMSG_FIRSTHDR(header);
            (*part).cmsg_level = libc::SOL_UDP;
            (*part).cmsg_type = libc::UDP_SEGMENT;
            (*part).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            std::ptr::write_unaligned(libc::CMSG_DATA(part).cast(), segment_bytes);
        }
        // SAFETY: the header names live memory of this value, which the call only reads.
        let status = unsafe {
            libc::sendmsg(
                socket.as_fd().as_raw_fd(),
                header,
                flags | libc::MSG_NOSIGNAL,
            )
        };
        checked(status as i32).map(|_| ())
    }

    /// Receives into the slots what there is, waiting for the first as the socket does; how many slots were filled.
    ///
    /// # Errors
    /// EAGAIN where nothing came, and other reasons of the kernel's.
    pub fn recv(&mut self, socket: impl AsFd, flags: i32) -> rustix::io::Result<usize> {
        let slots = self.slots();
        self.point(0, slots, self.slot_bytes, true);
        // SAFETY: the headers name live memory of this value and its length.
        let status = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.headers.as_mut_ptr(),
                slots as u32,
                (flags | libc::MSG_WAITFORONE | libc::MSG_TRUNC) as _,
                std::ptr::null_mut(),
            )
        };
        let count = checked(status)? as usize;
        for index in 0..count {
            self.filled[index] = Filled {
                bytes: self.headers[index].msg_len as usize,
                segment_bytes: segment_bytes(&self.headers[index].msg_hdr),
            };
        }
        if count == 0 {
            return Err(Errno::AGAIN);
        }
        Ok(count)
    }
}

/// The size of the datagrams in a received buffer, where the kernel joined several.
fn segment_bytes(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel filled the header and the control buffer that it names.
    let mut part = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !part.is_null() {
        // SAFETY: a whole header inside of the buffer; UDP_GRO carries an int.
        unsafe {
            if (*part).cmsg_level == libc::SOL_UDP && (*part).cmsg_type == libc::UDP_GRO {
                let bytes: i32 = std::ptr::read_unaligned(libc::CMSG_DATA(part).cast());
                return usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            }
            part = libc::CMSG_NXTHDR(header, part);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn pair() -> (UdpSocket, UdpSocket) {
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        one.connect(other.local_addr().unwrap()).unwrap();
        other.connect(one.local_addr().unwrap()).unwrap();
        (one, other)
    }

    #[test]
    fn datagrams_cross_in_batches() {
        let (one, other) = pair();
        let mut out = Batch::new(8, 100);
        for index in 0..8 {
            out.slot_mut(index).fill(index as u8);
        }
        assert_eq!(out.send(&one, 2, 7, 90, 0).unwrap(), 5);
        let mut into = Batch::new(4, 64);
        let mut seen = 2;
        for wanted in [4, 1] {
            assert_eq!(into.recv(&other, 0).unwrap(), wanted);
            for index in 0..wanted {
                // Cut off at the slot's size, and said so.
                let whole = Filled {
                    bytes: 90,
                    segment_bytes: None,
                };
                assert_eq!(into.filled(index), whole);
                assert!(into.slot(index).iter().all(|byte| *byte == seen));
                seen += 1;
            }
        }
        assert_eq!(
            into.recv(&other, libc::MSG_DONTWAIT).unwrap_err(),
            Errno::AGAIN
        );
    }

    #[test]
    fn segments_cross_in_one_buffer() {
        let (one, other) = pair();
        let mut out = Batch::new(1, 1_000);
        for (at, byte) in out.slot_mut(0).iter_mut().enumerate() {
            *byte = (at / 100) as u8;
        }
        // Without UDP_GRO each arrives alone.
        out.send_cut(&one, 0, 250, 100, 0).unwrap();
        let mut into = Batch::new(1, 2_000);
        for bytes in [100, 100, 50] {
            into.recv(&other, 0).unwrap();
            assert_eq!(into.filled(0).bytes, bytes);
        }
        set_joined(&other, true).unwrap();
        out.send_cut(&one, 0, 1_000, 100, 0).unwrap();
        let mut seen = Vec::new();
        while seen.len() < 1_000 {
            into.recv(&other, 0).unwrap();
            let filled = into.filled(0);
            assert!(filled.bytes == 100 || filled.segment_bytes == Some(100));
            seen.extend_from_slice(&into.slot(0)[..filled.bytes]);
        }
        assert_eq!(seen, out.slot(0));
    }
}
