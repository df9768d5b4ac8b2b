//! AF_XDP: frames handed to a program before the kernel's protocols see them, by rings in memory of its own.
//!
//! Model:   a memory of chunks, half for sending, half for receiving; four rings of chunk addresses. An XDP program of 17
//!          instructions sends frames of sonde's ethertype and the wanted role to the socket, and all others on their way. It is
//!          attached by a link, which goes with its descriptor: at the end, and at death. Copy mode, on the first queue
//!          of the interface; first in the driver, else before the protocols (SKB mode).
//! Source:  Documentation/networking/af_xdp.rst; include/uapi/linux/{bpf,if_xdp}.h.
//! Units:   bytes; a frame has its Ethernet header.
//! Checked: `tests/xdp.rs`.
//!
//! Limits: real root only, since in a user namespace bpf(PROG_LOAD) is EPERM; frames of at most a chunk less the kernel's
//! headroom, some 3.5 kB; one program an interface; frames that arrive at another queue than the first go to the kernel; what
//! is sent passes by the queueing discipline, so that nothing holds a sender back (dev_direct_xmit, net/xdp/xsk.c).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::Result;
use crate::error::{Attempt, checked};
use crate::frames::{ETHERTYPE, ROLE_AT};
use crate::socket::set_option;

const CHUNK_BYTES: usize = 4_096;
/// The kernel keeps this of a chunk that it fills.
const HEADROOM_BYTES: usize = 256 + 320;
/// The largest frame.
pub const FRAME_BYTES_MAX: usize = CHUNK_BYTES - HEADROOM_BYTES;
/// Chunks for each way, and slots of each ring.
const SLOTS: u32 = 512;
const SOL_XDP: i32 = 283;
/// Attempts at a queue that is just being given up.
const BUSY_TRIES: u32 = 400;

/// How a program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In the driver.
    Driver,
    /// Before the protocols, with a copy more.
    Skb,
}

impl Mode {
    /// As it is written: `driver`, `skb`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Skb => "skb",
        }
    }
}

/// bpf(2) with a part of its attributes.
fn bpf<T>(command: i32, attributes: &mut T, what: &str) -> Result<i32> {
    // SAFETY: the attributes are a live, exclusively borrowed structure of the size given, which the callers lay out as
    // the command wants; pointers in it are to live memory of the lengths given beside them.
    let status = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            size_of::<T>() as u32,
        )
    };
    checked(status).map(|fd| fd as i32).attempt(|| {
        format!("{what} (bpf; needs real root: in a user namespace, and with unprivileged_bpf_disabled, it is refused)")
    })
}

fn owned(fd: i32) -> OwnedFd {
    // SAFETY: the descriptor was just returned by the kernel and is owned by nobody else.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A map from queues to sockets.
fn new_map() -> Result<OwnedFd> {
    #[repr(C)]
    struct Create {
        kind: u32,
        key_size: u32,
        value_size: u32,
        entries: u32,
        flags: u32,
    }
    const XSKMAP: u32 = 17;
    let mut create = Create {
        kind: XSKMAP,
        key_size: 4,
        value_size: 4,
        entries: 1,
        flags: 0,
    };
    bpf(0, &mut create, "create a map of XDP sockets").map(owned)
}

fn set_first(map: &OwnedFd, socket: &OwnedFd) -> Result<()> {
    #[repr(C)]
    struct Update {
        map: u32,
        pad: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let (key, value) = (0u32, socket.as_raw_fd() as u32);
    let mut update = Update {
        map: map.as_raw_fd() as u32,
        pad: 0,
        key: &raw const key as u64,
        value: &raw const value as u64,
        flags: 0,
    };
    bpf(2, &mut update, "put a socket into its map").map(|_| ())
}

/// The program, as 64-bit words: code, registers, offset, constant.
fn instructions(map: i32, role: u8) -> [u64; 17] {
    let one = |code: u8, dst: u8, src: u8, off: i16, imm: i32| {
        u64::from(code)
            | u64::from(dst | (src << 4)) << 8
            | u64::from(off as u16) << 16
            | u64::from(imm as u32) << 32
    };
    const PASS: i32 = 2;
    let ethertype = i32::from(u16::from_le_bytes(ETHERTYPE.to_be_bytes()));
    [
        one(0x61, 6, 1, 0, 0),                  // r6 = data
        one(0x61, 7, 1, 4, 0),                  // r7 = data_end
        one(0xbf, 2, 6, 0, 0),                  // r2 = r6
        one(0x07, 2, 0, 0, ROLE_AT as i32 + 1), // r2 += what is looked at
        one(0x2d, 2, 7, 10, 0),                 // too short: pass
        one(0x69, 3, 6, 12, 0),                 // r3 = ethertype
        one(0x55, 3, 0, 8, ethertype),          // another: pass
        one(0x71, 3, 6, ROLE_AT as i16, 0),     // r3 = role
        one(0x55, 3, 0, 6, role.into()),        // another: pass
        one(0x61, 2, 1, 16, 0),                 // r2 = queue
        one(0x18, 1, 1, 0, map),                // r1 = map
        0,                                      // (its upper half)
        one(0xb7, 3, 0, 0, PASS),               // r3 = what else to do
        one(0x85, 0, 0, 0, 51),                 // r0 = redirect_map(r1, r2, r3)
        one(0x95, 0, 0, 0, 0),                  // return
        one(0xb7, 0, 0, 0, PASS),               // r0 = pass
        one(0x95, 0, 0, 0, 0),                  // return
    ]
}

fn load(map: &OwnedFd, role: u8) -> Result<OwnedFd> {
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        instructions: u64,
        license: u64,
        log_level: u32,
        log_size: u32,
        log: u64,
        kernel: u32,
        flags: u32,
        name: [u8; 16],
        ifindex: u32,
        attach: u32,
    }
    let program = instructions(map.as_raw_fd(), role);
    let mut load = Load {
        kind: 6,
        count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: c"MIT".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel: 0,
        flags: 0,
        name: *b"sonde\0\0\0\0\0\0\0\0\0\0\0",
        ifindex: 0,
        attach: ATTACH_XDP,
    };
    bpf(5, &mut load, "load an XDP program").map(owned)
}

const ATTACH_XDP: u32 = 37;

fn attach(program: &OwnedFd, ifindex: u32, mode: Mode) -> Result<OwnedFd> {
    #[repr(C)]
    struct Link {
        program: u32,
        ifindex: u32,
        attach: u32,
        flags: u32,
    }
    let mut link = Link {
        program: program.as_raw_fd() as u32,
        ifindex,
        attach: ATTACH_XDP,
        flags: match mode {
            Mode::Skb => 2,
            Mode::Driver => 4,
        },
    };
    let what = format!(
        "attach an XDP program to interface {ifindex} in {} mode",
        mode.name()
    );
    bpf(28, &mut link, &what).map(owned)
}

/// What AF_XDP lacks here; `None` where it can be had.
pub fn obstacle() -> Option<String> {
    let tried = new_map()
        .and_then(|map| load(&map, 1))
        .and_then(|_| socket());
    let remedy =
        "run as real root on the host itself, not in a user namespace or the lab, or use packet";
    tried.err().map(|error| format!("{error}: {remedy}"))
}

fn socket() -> Result<OwnedFd> {
    // SAFETY: no pointers; the returned descriptor is owned by nobody else.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    checked(fd)
        .map(owned)
        .attempt(|| "open an XDP socket".into())
}

/// A mapping that goes with its value.
#[derive(Debug)]
struct Mapped {
    at: *mut u8,
    bytes: usize,
}

impl Mapped {
    fn new(bytes: usize, fd: Option<(&OwnedFd, i64)>) -> Result<Self> {
        let (flags, fd, offset) = match fd {
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
            Some((fd, offset)) => (libc::MAP_SHARED, fd.as_raw_fd(), offset),
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                flags | libc::MAP_POPULATE,
                fd,
                offset,
            )
        };
        if at == libc::MAP_FAILED {
            let errno = Errno::from_io_error(&std::io::Error::last_os_error());
            return Err(errno.unwrap_or(Errno::NOMEM))
                .attempt(|| format!("map {bytes} bytes for XDP"));
        }
        Ok(Self {
            at: at.cast(),
            bytes,
        })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own and nothing refers to it any more.
        unsafe { libc::munmap(self.at.cast(), self.bytes) };
    }
}

/// One ring, of which the program has one end and the kernel the other.
#[derive(Debug)]
struct Slots {
    map: Mapped,
    producer_at: usize,
    consumer_at: usize,
    slots_at: usize,
    slot_bytes: usize,
}

impl Slots {
    /// Ring `name`, whose places are the `first` and the next of those that the kernel tells.
    fn new(fd: &OwnedFd, name: i32, page: i64, first: usize, slot_bytes: usize) -> Result<Self> {
        set_option(fd.as_fd(), SOL_XDP, name, &SLOTS)
            .attempt(|| format!("make XDP ring {name}"))?;
        let mut offsets_now = [0u64; 16];
        let mut length = size_of_val(&offsets_now) as libc::socklen_t;
        // SAFETY: the buffer is a live local of the length given.
        let status = unsafe {
            libc::getsockopt(
                fd.as_raw_fd(),
                SOL_XDP,
                1,
                (&raw mut offsets_now).cast(),
                &mut length,
            )
        };
        checked(status).attempt(|| "read the places of XDP rings".into())?;
        let place = |at: usize| offsets_now[first + at] as usize;
        let (producer_at, consumer_at, slots_at) = (place(0), place(1), place(2));
        let bytes = slots_at + SLOTS as usize * slot_bytes;
        Ok(Self {
            map: Mapped::new(bytes, Some((fd, page)))?,
            producer_at,
            consumer_at,
            slots_at,
            slot_bytes,
        })
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the kernel said that an aligned u32 is at this place of the mapping, which lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.map.at.add(at).cast()) }
    }

    #[inline]
    fn slot(&self, index: u32) -> *mut u8 {
        let at = self.slots_at + (index % SLOTS) as usize * self.slot_bytes;
        debug_assert!(at + self.slot_bytes <= self.map.bytes);
        // SAFETY: within the mapping, as just computed.
        unsafe { self.map.at.add(at) }
    }
}

/// A descriptor of the rings for receiving and sending.
#[repr(C)]
#[derive(Clone, Copy)]
struct Descriptor {
    address: u64,
    length: u32,
    options: u32,
}

/// An XDP socket with its memory, its program, and the link that attaches it.
#[derive(Debug)]
pub struct Xdp {
    // First, so that the program is gone before the socket is.
    _link: OwnedFd,
    _map: OwnedFd,
    fd: OwnedFd,
    recv: Slots,
    send: Slots,
    fill: Slots,
    completion: Slots,
    memory: Mapped,
    free: Vec<u64>,
    mode: Mode,
}

// SAFETY: the mappings belong to this value alone and are used through `&mut self` only.
unsafe impl Send for Xdp {}

impl Xdp {
    /// Opens a socket on the first queue of interface `ifindex` for frames with `role` at its place.
    ///
    /// # Errors
    /// EPERM without real root; EBUSY where a program is attached already; the driver has no XDP and the kernel neither.
    pub fn open(ifindex: u32, role: u8) -> Result<Self> {
        let fd = socket()?;
        let memory = Mapped::new(2 * SLOTS as usize * CHUNK_BYTES, None)?;
        register(&fd, &memory)?;
        // Names and pages of the rings, from include/uapi/linux/if_xdp.h.
        let fill = Slots::new(&fd, 5, 0x1_0000_0000, 8, 8)?;
        let completion = Slots::new(&fd, 6, 0x1_8000_0000, 12, 8)?;
        let descriptor = size_of::<Descriptor>();
        let recv = Slots::new(&fd, 2, 0, 0, descriptor)?;
        let send = Slots::new(&fd, 3, 0x8000_0000, 4, descriptor)?;
        let map = new_map()?;
        let program = load(&map, role)?;
        let (link, mode) = match attach(&program, ifindex, Mode::Driver) {
            Ok(link) => (link, Mode::Driver),
            // Another program is there; it would be in the way of either mode.
            Err(error) if error.errno() == Some(Errno::BUSY) => return Err(error),
            Err(_) => (attach(&program, ifindex, Mode::Skb)?, Mode::Skb),
        };
        let mut xdp = Self {
            _link: link,
            _map: map,
            fd,
            recv,
            send,
            fill,
            completion,
            memory,
            free: (0..u64::from(SLOTS))
                .map(|at| at * CHUNK_BYTES as u64)
                .collect(),
            mode,
        };
        for at in SLOTS..2 * SLOTS {
            xdp.give_back(u64::from(at) * CHUNK_BYTES as u64);
        }
        bind(&xdp.fd, ifindex)?;
        set_first(&xdp._map, &xdp.fd)?;
        Ok(xdp)
    }

    /// How the program is attached.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Gives a chunk to the kernel, to be filled.
    #[inline]
    fn give_back(&mut self, address: u64) {
        let producer = self.fill.word(self.fill.producer_at);
        let next = producer.load(Ordering::Relaxed);
        // SAFETY: the slot is the program's until the producer moves on; there are as many slots as chunks for receiving.
        unsafe { self.fill.slot(next).cast::<u64>().write(address) };
        producer.store(next.wrapping_add(1), Ordering::Release);
    }

    /// Whether a frame is there to be taken.
    #[inline]
    pub fn is_ready(&self) -> bool {
        let consumer = self
            .recv
            .word(self.recv.consumer_at)
            .load(Ordering::Relaxed);
        self.recv
            .word(self.recv.producer_at)
            .load(Ordering::Acquire)
            != consumer
    }

    /// Gives the next received frame to `with`, and its chunk back; `None` when there is none.
    #[inline]
    pub fn take<T>(&mut self, with: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if !self.is_ready() {
            return None;
        }
        let consumer = self
            .recv
            .word(self.recv.consumer_at)
            .load(Ordering::Relaxed);
        // SAFETY: the kernel has filled this slot: its producer is past it.
        let found = unsafe { self.recv.slot(consumer).cast::<Descriptor>().read() };
        let at = (found.address as usize).min(self.memory.bytes);
        let length = (found.length as usize).min(self.memory.bytes - at);
        // SAFETY: within the memory, as just made sure of; the chunk is the program's until it is given back.
        let frame = unsafe { std::slice::from_raw_parts(self.memory.at.add(at), length) };
        let result = with(frame);
        self.recv
            .word(self.recv.consumer_at)
            .store(consumer.wrapping_add(1), Ordering::Release);
        self.give_back(found.address & !(CHUNK_BYTES as u64 - 1));
        Some(result)
    }

    /// Sends one frame of `parts` without waiting; `false` when all chunks are under way.
    ///
    /// # Errors
    /// The frame is larger than a chunk; the interface is down.
    #[inline]
    pub fn send(&mut self, parts: &[&[u8]]) -> Result<bool> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > FRAME_BYTES_MAX {
            return Err(Errno::MSGSIZE)
                .attempt(|| format!("send a frame of {length} bytes by XDP"));
        }
        self.reclaim();
        let Some(address) = self.free.pop() else {
            self.kick()?;
            return Ok(false);
        };
        let mut at = address as usize;
        for part in parts {
            // SAFETY: the chunk is free, hence the program's, and the parts fit into it, as checked above.
            unsafe {
                std::ptr::copy_nonoverlapping(part.as_ptr(), self.memory.at.add(at), part.len());
            }
            at += part.len();
        }
        let producer = self.send.word(self.send.producer_at);
        let next = producer.load(Ordering::Relaxed);
        let descriptor = Descriptor {
            address,
            length: length as u32,
            options: 0,
        };
        // SAFETY: the slot is the program's until the producer moves on; there are as many slots as chunks for sending.
        unsafe { self.send.slot(next).cast::<Descriptor>().write(descriptor) };
        producer.store(next.wrapping_add(1), Ordering::Release);
        self.kick()?;
        Ok(true)
    }

    /// Takes the chunks back that were sent.
    #[inline]
    fn reclaim(&mut self) {
        let consumer = self.completion.word(self.completion.consumer_at);
        let mut next = consumer.load(Ordering::Relaxed);
        let end = self
            .completion
            .word(self.completion.producer_at)
            .load(Ordering::Acquire);
        while next != end {
            // SAFETY: the kernel has filled this slot: its producer is past it.
            let address = unsafe { self.completion.slot(next).cast::<u64>().read() };
            self.free.push(address & !(CHUNK_BYTES as u64 - 1));
            next = next.wrapping_add(1);
        }
        consumer.store(next, Ordering::Release);
    }

    fn kick(&self) -> Result<()> {
        match rustix::net::send(&self.fd, &[], SendFlags::DONTWAIT) {
            // The next kick sends it.
            Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno).attempt(|| "send frames by XDP".into()),
        }
    }
}

impl AsFd for Xdp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn register(fd: &OwnedFd, memory: &Mapped) -> Result<()> {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Register {
        address: u64,
        bytes: u64,
        chunk: u32,
        headroom: u32,
    }
    let register = Register {
        address: memory.at as u64,
        bytes: memory.bytes as u64,
        chunk: CHUNK_BYTES as u32,
        headroom: 0,
    };
    set_option(fd.as_fd(), SOL_XDP, 4, &register)
        .attempt(|| format!("give {} bytes of memory to an XDP socket", memory.bytes))
}

fn bind(fd: &OwnedFd, ifindex: u32) -> Result<()> {
    #[repr(C)]
    struct Address {
        family: u16,
        flags: u16,
        ifindex: u32,
        queue: u32,
        shared: u32,
    }
    const COPY: u16 = 1 << 1;
    let address = Address {
        family: libc::AF_XDP as u16,
        flags: COPY,
        ifindex,
        queue: 0,
        shared: 0,
    };
    let length = size_of::<Address>() as libc::socklen_t;
    // The queue of a socket that was closed is given up by a worker of the kernel, some milliseconds later (xp_put_pool in
    // net/xdp/xsk_buff_pool.c): until then it is busy. To see it: close and bind again at once.
    let mut tries = 0;
    loop {
        // SAFETY: a live sockaddr_xdp of the length given.
        let status = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
        match checked(status) {
            Err(Errno::BUSY) if tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            other => {
                return other.map(|_| ()).attempt(|| {
                    format!(
                        "bind an XDP socket to interface {ifindex} (its MTU at most some 3500 bytes)"
                    )
                });
            }
        }
    }
}
