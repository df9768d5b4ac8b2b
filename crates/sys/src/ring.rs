//! Rings of frames shared with the kernel: a packet socket without a copy or a call for each frame received.
//!
//! Model:   TPACKET_V2. A slot belongs to the kernel or to the program, by its status word, which is read with acquire and
//!          written with release. Receiving: the kernel fills slots in turn; `take` gives the next to a closure and hands it
//!          back. Sending: a free slot is filled, marked, and the kernel told by an empty send, which does not wait.
//!          Version 3 hands over whole blocks and is of no use for latency: its timer is a millisecond.
//! Source:  Documentation/networking/packet_mmap.rst; net/packet/af_packet.c, tpacket_rcv and tpacket_snd.
//! Units:   bytes; a frame has its Ethernet header.
//! Checked: `frames_go_through_both_rings`, `a_full_ring_says_so`.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::error::Attempt;
use crate::frames::FrameSocket;
use crate::socket::set_option;
use crate::{Error, Result};

/// What both rings together may take.
const RING_BYTES: usize = 1 << 20;
const SLOTS_MIN: usize = 16;
const BLOCK_BYTES_MIN: usize = 32 << 10;
/// The largest frame: Ethernet's header and 64 KiB.
const FRAME_BYTES_MAX: usize = 65_536 + 64;
/// Where the frame begins in a slot for sending: behind tpacket2_hdr, aligned to 16 bytes.
const SEND_DATA_AT: usize = 32;
/// What the kernel puts before a received frame: the header, an address, and up to 16 bytes for alignment.
const RECV_HEAD_BYTES: usize = 32 + 20 + 28;

/// A packet socket with a ring each way.
#[derive(Debug)]
pub struct Ring {
    socket: FrameSocket,
    map: *mut u8,
    map_bytes: usize,
    slot_bytes: usize,
    slots: usize,
    next_recv: usize,
    next_send: usize,
}

// SAFETY: the mapping belongs to this value alone and is used through `&mut self` only.
unsafe impl Send for Ring {}

impl Ring {
    /// Puts rings under a socket, for frames of up to `frame_bytes`.
    ///
    /// # Errors
    /// The kernel has no memory for them, or frames are larger than 64 KiB.
    pub fn new(socket: FrameSocket, frame_bytes: usize) -> Result<Self> {
        if frame_bytes > FRAME_BYTES_MAX {
            return Err(Error::OutOfRange {
                what: "frame size of a ring",
                value: frame_bytes.to_string(),
                remedy: "use frames of at most 65536 bytes",
            });
        }
        let slot_bytes = (frame_bytes + RECV_HEAD_BYTES).next_power_of_two();
        let slots = (RING_BYTES / slot_bytes).max(SLOTS_MIN);
        let block_bytes = slot_bytes.max(BLOCK_BYTES_MIN);
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: (slots * slot_bytes / block_bytes) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        let fd = socket.as_fd();
        let set = |name, what: &str| {
            set_option(fd, libc::SOL_PACKET, name, &request).attempt(|| {
                format!("give a packet socket a {what} ring of {slots} slots of {slot_bytes} bytes")
            })
        };
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version)
            .attempt(|| "choose TPACKET_V2".into())?;
        set(libc::PACKET_RX_RING, "receive")?;
        set(libc::PACKET_TX_RING, "send")?;
        let map_bytes = 2 * slots * slot_bytes;
        // SAFETY: a fresh shared mapping of the socket's rings, whose size is what was just set; the address is the
        // kernel's choice.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                map_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(
                Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOMEM)
            )
            .attempt(|| format!("map the rings of a packet socket ({map_bytes} bytes)"));
        }
        Ok(Self {
            socket,
            map: map.cast(),
            map_bytes,
            slot_bytes,
            slots,
            next_recv: 0,
            next_send: 0,
        })
    }

    /// Slots of each ring, and bytes of a slot.
    pub fn shape(&self) -> (usize, usize) {
        (self.slots, self.slot_bytes)
    }

    /// The socket below.
    pub fn socket(&self) -> &FrameSocket {
        &self.socket
    }

    /// The status word of slot `index` of both rings, the receive ring's first.
    #[inline]
    fn status(&self, index: usize) -> &AtomicU32 {
        debug_assert!(index < 2 * self.slots);
        // SAFETY: the slot lies within the mapping, is aligned to its power of two, and begins with tp_status (u32); the
        // mapping lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.map.add(index * self.slot_bytes).cast()) }
    }

    /// Whether a frame is there to be taken.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.status(self.next_recv).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Gives the next received frame to `with`, and its slot back; `None` when there is none. A frame that was cut is given
    /// as far as it is there.
    #[inline]
    pub fn take<T>(&mut self, with: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if !self.is_ready() {
            return None;
        }
        let slot = self.next_recv * self.slot_bytes;
        // SAFETY: the slot is ours until its status is given back below; tpacket2_hdr is plain data at its begin.
        let header = unsafe {
            self.map
                .add(slot)
                .cast::<libc::tpacket2_hdr>()
                .read_volatile()
        };
        let at = usize::from(header.tp_mac).min(self.slot_bytes);
        let length = (header.tp_snaplen as usize).min(self.slot_bytes - at);
        // SAFETY: `at` and `length` were kept within the slot, which is ours meanwhile.
        let frame = unsafe { std::slice::from_raw_parts(self.map.add(slot + at), length) };
        let result = with(frame);
        self.status(self.next_recv)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next_recv = (self.next_recv + 1) % self.slots;
        Some(result)
    }

    /// Sends one frame of `parts` without waiting; `false` when the ring is full.
    ///
    /// # Errors
    /// The frame is too large for the interface or the ring; the interface is down.
    #[inline]
    pub fn send(&mut self, parts: &[&[u8]]) -> Result<bool> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length + SEND_DATA_AT > self.slot_bytes {
            return Err(Errno::MSGSIZE).attempt(|| format!("send a frame of {length} bytes"));
        }
        let index = self.slots + self.next_send;
        let status = self.status(index).load(Ordering::Acquire);
        if status == libc::TP_STATUS_WRONG_FORMAT {
            self.status(index)
                .store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
            return Err(Errno::MSGSIZE).attempt(|| format!("send a frame of {length} bytes"));
        }
        if status != libc::TP_STATUS_AVAILABLE {
            self.kick()?;
            return Ok(false);
        }
        let slot = index * self.slot_bytes;
        // SAFETY: the slot is free, hence ours; header and parts lie within it, as checked above.
        unsafe {
            let header = self.map.add(slot).cast::<libc::tpacket2_hdr>();
            (&raw mut (*header).tp_len).write_volatile(length as u32);
            let mut at = slot + SEND_DATA_AT;
            for part in parts {
                std::ptr::copy_nonoverlapping(part.as_ptr(), self.map.add(at), part.len());
                at += part.len();
            }
        }
        self.status(index)
            .store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        if let Err(error) = self.kick() {
            // The kernel stays at a slot that it refused.
            self.status(index)
                .store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
            return Err(error);
        }
        self.next_send = (self.next_send + 1) % self.slots;
        Ok(true)
    }

    /// Tells the kernel that slots are filled.
    fn kick(&self) -> Result<()> {
        match rustix::net::send(&self.socket, &[], SendFlags::DONTWAIT) {
            // The slot stays marked: the next kick sends it.
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno).attempt(|| "send the frames of a ring".into()),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own and nothing refers to it any more.
        unsafe { libc::munmap(self.map.cast(), self.map_bytes) };
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{ETHERTYPE, ROLE_AT, obstacle};
    use crate::netlink::Netlink;
    use std::time::{Duration, Instant};

    /// Two rings on the loopback interface. Each test has roles of its own, since tests run side by side there.
    fn pair(frame_bytes: usize, roles: [u8; 2]) -> Option<(Ring, Ring)> {
        if let Some(why) = obstacle() {
            println!("skipped: {why}");
            return None;
        }
        let lo = Netlink::open().unwrap().index("lo").unwrap();
        let ring = |role| Ring::new(FrameSocket::open(lo, role).unwrap(), frame_bytes).unwrap();
        Some((ring(roles[0]), ring(roles[1])))
    }

    fn head(role: u8) -> [u8; 20] {
        let mut head = [0; 20];
        head[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        head[ROLE_AT] = role;
        head
    }

    fn next(ring: &mut Ring) -> Vec<u8> {
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            if let Some(frame) = ring.take(<[u8]>::to_vec) {
                return frame;
            }
        }
        panic!("no frame within 10 s");
    }

    #[test]
    fn frames_go_through_both_rings() {
        for frame_bytes in [1_514, 9_014, 65_550] {
            let Some((mut one, mut two)) = pair(frame_bytes, [11, 12]) else {
                return;
            };
            // More than a ring has, so that each slot is used again.
            for number in 0..2 * one.shape().0 {
                let body = vec![number as u8; 40 + number];
                while !one.send(&[&head(12), &body]).unwrap() {}
                let frame = next(&mut two);
                assert_eq!((&frame[..20], &frame[20..]), (&head(12)[..], &body[..]));
            }
            assert!(!one.is_ready() && !two.is_ready());
            let large = vec![0; one.shape().1];
            assert!(one.send(&[&large]).is_err());
        }
    }

    #[test]
    fn a_full_ring_says_so() {
        let Some((mut one, two)) = pair(1_514, [13, 14]) else {
            return;
        };
        let slots = one.shape().0;
        for _ in 0..slots + 10 {
            while !one.send(&[&head(14), &[0; 40]]).unwrap() {}
        }
        let end = Instant::now() + Duration::from_secs(10);
        let mut lost = 0;
        while lost == 0 && Instant::now() < end {
            lost += two.socket().drops().unwrap();
        }
        assert!(two.is_ready() && (1..=10).contains(&lost), "{lost}");
    }
}
